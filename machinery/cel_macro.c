/*
 * Macros: calls that the parser turns into comprehensions (CEL_N_FOLD) and other nodes. A fold goes over a range with an
 * accumulator: while cond, accu = step; then result. The nodes that a macro makes stand where its call does.
 */
#include "machinery/cel_priv.h"

/* No source can spell it, so that it hides nothing. */
static const str accu_name = STR_INIT("@result");

struct expansion {
	struct cel_parser *p;
	uint32_t at;
	struct cel_node *target;
	struct cel_node **args;
	size_t n;
};

static struct cel_node *ident(struct expansion *x, str name)
{
	struct cel_node *n = cel_node_new(x->p, CEL_N_IDENT, x->at);

	n->ident.name = name;
	return n;
}

static struct cel_node *accu(struct expansion *x) { return ident(x, accu_name); }

static struct cel_node *constant(struct expansion *x, struct cel_val v)
{
	struct cel_node *n = cel_node_new(x->p, CEL_N_LITERAL, x->at);

	n->literal = v;
	n->constant = true;
	return n;
}

static struct cel_node *call(struct expansion *x, str name, struct cel_node *a, struct cel_node *b, struct cel_node *c)
{
	struct cel_node **args = ARENA_ARRAY(x->p->arena, struct cel_node *, 3);

	args[0] = a;
	args[1] = b;
	args[2] = c;
	return cel_node_call(x->p, x->at, name, NULL, args, c ? 3 : b ? 2 : 1);
}

static struct cel_node *list_of(struct expansion *x, struct cel_node *item)
{
	struct cel_node *n = cel_node_new(x->p, CEL_N_LIST, x->at);

	if (item) {
		n->list.items = ARENA_ARRAY(x->p->arena, struct cel_node *, 1);
		n->list.items[0] = item;
		n->list.n = 1;
		n->height = (uint16_t)(item->height + 1);
	}
	return n;
}

static struct cel_node *problem(struct expansion *x, uint32_t at, const char *text)
{
	cel_issue(x->p->issues, at, "%s", text);
	return cel_node_new(x->p, CEL_N_BAD, at);
}

/* The names of the iteration variables; false with an issue when they are none. */
static bool variables(struct expansion *x, size_t count, const char *not_a_name, str ret[2])
{
	ret[1] = STR("");
	for (size_t i = 0; i < count; i++) {
		const struct cel_node *n = x->args[i];
		if (n->kind != CEL_N_IDENT) {
			problem(x, n->at, not_a_name);
			return false;
		}
		ret[i] = n->ident.name;
	}
	if (count == 2 && str_eq(ret[0], ret[1])) {
		cel_issue(x->p->issues, x->args[1]->at, "duplicate variable name: " STR_FMT, STR_ARG(ret[0]));
		return false;
	}
	for (size_t i = 0; i < count; i++)
		if (str_eq(ret[i], STR("__result__"))) {
			problem(x, x->args[i]->at, "iteration variable overwrites accumulator variable");
			return false;
		}
	return true;
}

static struct cel_node *fold(struct expansion *x, const str vars[2], struct cel_node *init, struct cel_node *cond, struct cel_node *step,
			     struct cel_node *result)
{
	struct cel_node *n = cel_node_new(x->p, CEL_N_FOLD, x->at);

	n->fold.range = x->target;
	n->fold.iter = vars[0];
	n->fold.iter2 = vars[1];
	n->fold.accu = accu_name;
	n->fold.init = init;
	n->fold.cond = cond;
	n->fold.step = step;
	n->fold.result = result;
	return n;
}

enum quantifier { ALL, EXISTS, EXISTS_ONE };

static struct cel_node *quantifier(struct expansion *x, enum quantifier which)
{
	struct cel_node *test = x->args[x->n - 1], *one = constant(x, cel_of_int(1));
	str vars[2];

	if (!variables(x, x->n - 1, "argument must be a simple name", vars))
		return cel_node_new(x->p, CEL_N_BAD, x->at);
	switch (which) {
	case ALL:
		return fold(x, vars, constant(x, cel_of_bool(true)), call(x, STR("@not_strictly_false"), accu(x), NULL, NULL),
			    call(x, STR("_&&_"), accu(x), test, NULL), accu(x));
	case EXISTS:
		return fold(x, vars, constant(x, cel_of_bool(false)),
			    call(x, STR("@not_strictly_false"), call(x, STR("!_"), accu(x), NULL, NULL), NULL, NULL),
			    call(x, STR("_||_"), accu(x), test, NULL), accu(x));
	default:
		return fold(x, vars, constant(x, cel_of_int(0)), constant(x, cel_of_bool(true)),
			    call(x, STR("_?_:_"), test, call(x, STR("_+_"), accu(x), one, NULL), accu(x)),
			    call(x, STR("_==_"), accu(x), constant(x, cel_of_int(1)), NULL));
	}
}

static struct cel_node *macro_all(struct expansion *x) { return quantifier(x, ALL); }
static struct cel_node *macro_exists(struct expansion *x) { return quantifier(x, EXISTS); }
static struct cel_node *macro_exists_one(struct expansion *x) { return quantifier(x, EXISTS_ONE); }

/* A fold that collects: step is what is added, test (may be NULL) says when. */
static struct cel_node *collect(struct expansion *x, const str vars[2], struct cel_node *init, struct cel_node *test, struct cel_node *step)
{
	if (test)
		step = call(x, STR("_?_:_"), test, step, accu(x));
	return fold(x, vars, init, constant(x, cel_of_bool(true)), step, accu(x));
}

static struct cel_node *map_list(struct expansion *x, size_t count)
{
	struct cel_node *test = x->n == count + 2 ? x->args[count] : NULL;
	str vars[2];

	if (!variables(x, count, "argument is not an identifier", vars))
		return cel_node_new(x->p, CEL_N_BAD, x->at);
	return collect(x, vars, list_of(x, NULL), test, call(x, STR("_+_"), accu(x), list_of(x, x->args[x->n - 1]), NULL));
}

static struct cel_node *macro_map(struct expansion *x) { return map_list(x, 1); }
static struct cel_node *macro_transform_list(struct expansion *x) { return map_list(x, 2); }

static struct cel_node *macro_filter(struct expansion *x)
{
	str vars[2];

	if (!variables(x, 1, "argument is not an identifier", vars))
		return cel_node_new(x->p, CEL_N_BAD, x->at);
	return collect(x, vars, list_of(x, NULL), x->args[1], call(x, STR("_+_"), accu(x), list_of(x, x->args[0]), NULL));
}

static struct cel_node *transform_map(struct expansion *x, bool entry)
{
	struct cel_node *test = x->n == 4 ? x->args[2] : NULL, *what = x->args[x->n - 1], *step;
	str vars[2];

	if (!variables(x, 2, "argument is not an identifier", vars))
		return cel_node_new(x->p, CEL_N_BAD, x->at);
	if (entry)
		step = call(x, STR("cel.@mapInsert"), accu(x), what, NULL);
	else
		step = call(x, STR("cel.@mapInsert"), accu(x), ident(x, vars[0]), what);
	return collect(x, vars, cel_node_new(x->p, CEL_N_MAP, x->at), test, step);
}

static struct cel_node *macro_transform_map(struct expansion *x) { return transform_map(x, false); }
static struct cel_node *macro_transform_map_entry(struct expansion *x) { return transform_map(x, true); }

static struct cel_node *macro_has(struct expansion *x)
{
	struct cel_node *arg = x->args[0];

	if (arg->kind != CEL_N_SELECT || arg->select.optional)
		return problem(x, arg->at, "invalid argument to has() macro");
	struct cel_node *n = cel_node_new(x->p, CEL_N_SELECT, x->at);
	n->select = arg->select;
	n->select.test = true;
	n->height = arg->height;
	return n;
}

/* A fold over nothing, whose accumulator is the variable: it lives while the result is computed. */
static struct cel_node *bind(struct expansion *x, str name, struct cel_node *value, struct cel_node *result)
{
	struct cel_node *n = cel_node_new(x->p, CEL_N_FOLD, x->at);
	const struct cel_node *parts[] = { value, result };

	n->fold.range = list_of(x, NULL);
	n->fold.iter = STR("#unused");
	n->fold.accu = name;
	n->fold.init = value;
	n->fold.cond = constant(x, cel_of_bool(false));
	n->fold.step = ident(x, name);
	n->fold.result = result;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		n->height = MAX(n->height, (uint16_t)(parts[i]->height + 1));
	return n;
}

static struct cel_node *macro_bind(struct expansion *x)
{
	if (x->target->kind != CEL_N_IDENT || !str_eq(x->target->ident.name, STR("cel")))
		return NULL;
	if (x->args[0]->kind != CEL_N_IDENT)
		return problem(x, x->args[0]->at, "cel.bind() variable names must be simple identifiers");
	return bind(x, x->args[0]->ident.name, x->args[1], x->args[2]);
}

/* o.optMap(v, f): o.hasValue() ? optional.of(f with v = o.value()) : optional.none() */
static struct cel_node *optional_map(struct expansion *x, bool flat, const char *name)
{
	str range = STR("@target");

	if (x->args[0]->kind != CEL_N_IDENT)
		return problem(x, x->args[0]->at, arena_printf(x->p->arena, "%s() variable name must be a simple identifier", name).p);
	struct cel_node *value = cel_node_call(x->p, x->at, STR("value"), ident(x, range), NULL, 0);
	struct cel_node *inner = bind(x, x->args[0]->ident.name, value, x->args[1]);
	struct cel_node *some = flat ? inner : call(x, STR("optional.of"), inner, NULL, NULL);
	struct cel_node *none = cel_node_call(x->p, x->at, STR("optional.none"), NULL, NULL, 0);
	struct cel_node *test = cel_node_call(x->p, x->at, STR("hasValue"), ident(x, range), NULL, 0);
	return bind(x, range, x->target, call(x, STR("_?_:_"), test, some, none));
}

static struct cel_node *macro_opt_map(struct expansion *x) { return optional_map(x, false, "optMap"); }
static struct cel_node *macro_opt_flat_map(struct expansion *x) { return optional_map(x, true, "optFlatMap"); }

/* l.sortBy(v, key): l bound to a name, sorted by the list of its keys. */
static struct cel_node *macro_sort_by(struct expansion *x)
{
	str input = STR("@__sortBy_input__");
	str vars[2];

	if (!variables(x, 1, "argument is not an identifier", vars))
		return cel_node_new(x->p, CEL_N_BAD, x->at);
	struct expansion keys = { x->p, x->at, ident(x, input), x->args, 2 };
	struct cel_node **args = ARENA_ARRAY(x->p->arena, struct cel_node *, 1);
	args[0] = macro_map(&keys);
	args[0]->height = (uint16_t)(x->args[1]->height + 4);
	struct cel_node *sorted = cel_node_call(x->p, x->at, STR("@sortByAssociatedKeys"), ident(x, input), args, 1);
	return bind(x, input, x->target, sorted);
}

struct cel_node *cel_macro(struct cel_parser *p, uint32_t at, str name, struct cel_node *target, struct cel_node **args, size_t n)
{
	static const struct {
		str name;
		uint8_t min, max;
		bool method;
		unsigned option;
		struct cel_node *(*expand)(struct expansion *x);
	} macros[] = {
		{ STR_INIT("has"), 1, 1, false, 0, macro_has },
		{ STR_INIT("all"), 2, 3, true, 0, macro_all },
		{ STR_INIT("exists"), 2, 3, true, 0, macro_exists },
		{ STR_INIT("exists_one"), 2, 3, true, 0, macro_exists_one },
		{ STR_INIT("existsOne"), 3, 3, true, 0, macro_exists_one },
		{ STR_INIT("map"), 2, 3, true, 0, macro_map },
		{ STR_INIT("filter"), 2, 2, true, 0, macro_filter },
		{ STR_INIT("transformList"), 3, 4, true, 0, macro_transform_list },
		{ STR_INIT("transformMap"), 3, 4, true, 0, macro_transform_map },
		{ STR_INIT("transformMapEntry"), 3, 4, true, 0, macro_transform_map_entry },
		{ STR_INIT("optMap"), 2, 2, true, 0, macro_opt_map },
		{ STR_INIT("optFlatMap"), 2, 2, true, 0, macro_opt_flat_map },
		{ STR_INIT("sortBy"), 2, 2, true, 0, macro_sort_by },
		{ STR_INIT("bind"), 3, 3, true, CEL_BINDINGS, macro_bind },
	};
	struct expansion x = { p, at, target, args, n };

	for (size_t i = 0; i < ARRAY_LEN(macros); i++)
		if (macros[i].method == (target != NULL) && n >= macros[i].min && n <= macros[i].max && str_eq(macros[i].name, name) &&
		    (p->env->options & macros[i].option) == macros[i].option)
			return macros[i].expand(&x);
	return NULL;
}
