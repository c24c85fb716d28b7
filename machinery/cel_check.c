/*
 * The type checker, with the rules of cel-go's: every node gets a type, every call the overloads that it can mean, every name its
 * place. Types are unified as needed (cel_unify.c); what stays open in the end is dyn. A second walk (settle) puts the final types
 * in. Recursion is bounded by the height that the parser allows.
 */
#include "base/buf.h"
#include "machinery/cel_priv.h"

/* More than any function takes, and more bytes than any name of a function or type has. */
enum { PARAMS_MAX = 8, QUALIFIED_MAX = 128 };

struct scope {
	const struct scope *outer;
	str name;
	const struct cel_type *type;
	uint16_t slot;
};

struct checker {
	struct cel_program *program;
	struct cel_issues *issues;
	struct arena *arena;
	const struct cel_env *env;
	struct cel_unify types;
	const struct scope *scope;
	uint16_t depth;   /* slots in use */
};

bool cel_fold_is_bind(const struct cel_node *n)
{
	return n->fold.cond->kind == CEL_N_LITERAL && n->fold.cond->literal.kind == CEL_BOOL && !n->fold.cond->literal.b;
}

static void check(struct checker *c, struct cel_node *n);

static const struct cel_type *known(struct checker *c, const struct cel_type *t) { return cel_unify_resolve(&c->types, t, false); }

static bool accepts(struct checker *c, const struct cel_type *from, const struct cel_type *to)
{
	return cel_unify_assignable(&c->types, from, to);
}

static str text_of(struct checker *c, const struct cel_type *t) { return cel_type_text(c->arena, cel_unify_resolve(&c->types, t, true)); }

static void mismatch(struct checker *c, uint32_t at, const struct cel_type *want, const struct cel_type *got)
{
	str w = text_of(c, want), g = text_of(c, got);

	cel_issue(c->issues, at, "expected type '" STR_FMT "' but found '" STR_FMT "'", STR_ARG(w), STR_ARG(g));
}

static void undeclared(struct checker *c, struct cel_node *n, str name)
{
	cel_issue(c->issues, n->at, "undeclared reference to '" STR_FMT "' (in container '')", STR_ARG(name));
	n->type = &cel_type_error;
}

/* ---- names ---- */

static bool resolve_name(struct checker *c, struct cel_node *n, str name)
{
	if (str_starts(name, STR(".")))
		name = str_skip(name, 1);
	else
		for (const struct scope *s = c->scope; s; s = s->outer)
			if (str_eq(s->name, name)) {
				n->ident.place = CEL_LOCAL;
				n->ident.slot = s->slot;
				n->type = s->type;
				return true;
			}
	for (size_t i = 0; i < c->env->n_vars; i++)
		if (str_eq(c->env->vars[i].name, name)) {
			n->ident.place = CEL_VARIABLE;
			n->ident.slot = (uint16_t)i;
			n->type = c->env->vars[i].type;
			c->program->uses[i] = true;
			return true;
		}
	const struct cel_type *t = cel_type_named(c->env, name);
	if (!t)
		return false;
	n->ident.place = CEL_TYPE_NAME;
	n->ident.named = t;
	n->type = cel_type_of_type(c->arena, t);
	return true;
}

static void check_ident(struct checker *c, struct cel_node *n)
{
	if (!resolve_name(c, n, n->ident.name))
		undeclared(c, n, n->ident.name);
}

/* a.b.c as it is written, when that is all it is and it can be a name; else "". */
static str qualified(struct checker *c, const struct cel_node *n)
{
	if (n->kind == CEL_N_IDENT)
		return n->ident.name;
	if (n->kind != CEL_N_SELECT || n->select.test || n->select.optional)
		return STR("");
	str front = qualified(c, n->select.operand);
	if (!front.n || front.n + n->select.field.n > QUALIFIED_MAX)
		return STR("");
	return arena_printf(c->arena, STR_FMT "." STR_FMT, STR_ARG(front), STR_ARG(n->select.field));
}

/* Whether a select is the name of a type (google.protobuf.Duration), which makes it an identifier. Its first part must not be a variable. */
static bool select_is_name(struct checker *c, struct cel_node *n)
{
	if (n->select.test || n->select.optional || n->select.operand->kind == CEL_N_CALL)
		return false;
	str name = qualified(c, n);
	const struct cel_type *t = name.n ? cel_type_named(c->env, name) : NULL;
	if (!t)
		return false;
	n->kind = CEL_N_IDENT;
	n->ident.name = name;
	n->ident.place = CEL_TYPE_NAME;
	n->ident.named = t;
	n->type = cel_type_of_type(c->arena, t);
	return true;
}

/* ---- fields ---- */

static const struct cel_type *field_type(struct checker *c, uint32_t at, const struct cel_type *object, str field)
{
	const struct cel_type *t = cel_type_field(c->arena, object, field);

	if (t)
		return t;
	cel_issue(c->issues, at, "undefined field '" STR_FMT "'", STR_ARG(field));
	return &cel_type_error;
}

static void check_select(struct checker *c, struct cel_node *n)
{
	if (select_is_name(c, n))
		return;
	check(c, n->select.operand);
	const struct cel_type *operand = known(c, n->select.operand->type), *result = &cel_type_dyn;
	bool optional = operand->kind == CEL_OPTIONAL;

	if (optional)
		operand = operand->elem;
	if (operand->kind == CEL_MAP) {
		result = operand->elem ? operand->elem : &cel_type_dyn;
	} else if (operand->kind == CEL_OBJECT) {
		result = field_type(c, n->at, operand, n->select.field);
	} else if (operand->kind == CEL_PARAM) {
		accepts(c, &cel_type_dyn, operand);
	} else if (!cel_type_is_dyn(operand) && operand->kind != CEL_ERROR) {
		str text = text_of(c, operand);
		cel_issue(c->issues, n->at, "type '" STR_FMT "' does not support field selection", STR_ARG(text));
	}
	if (n->select.test)
		n->type = &cel_type_bool;
	else
		n->type = known(c, optional || n->select.optional ? cel_type_optional(c->arena, result) : result);
}

/* ---- calls ---- */

static void no_overload(struct checker *c, struct cel_node *n, const struct cel_type *const *args, size_t count)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(128 * 1024);
	size_t first = n->call.method;

	if (n->call.method) {
		buf_add(&b, text_of(c, args[0]));
		buf_addc(&b, '.');
	}
	buf_addc(&b, '(');
	for (size_t i = first; i < count; i++) {
		buf_add(&b, i > first ? STR(", ") : STR(""));
		buf_add(&b, text_of(c, args[i]));
	}
	buf_addc(&b, ')');
	cel_issue(c->issues, n->at, "found no matching overload for '" STR_FMT "' applied to '" STR_FMT "'", STR_ARG(n->call.name),
		  STR_ARG(buf_str(&b)));
	n->type = &cel_type_error;
}

/* Whether an overload fits, and then its result. */
static bool overload_fits(struct checker *c, const struct cel_overload *o, const struct cel_type *const *args, size_t n,
			  const struct cel_type **ret_result)
{
	const struct cel_type *params[2] = { NULL, NULL }, *wants[PARAMS_MAX];
	const char *p = o->signature;
	size_t count = 0;

	if (strchr(p, 'A'))
		params[0] = cel_unify_var(&c->types);
	if (strchr(p, 'B'))
		params[1] = cel_unify_var(&c->types);
	while (*p != ':') {
		if (count == n || count == PARAMS_MAX)
			return false;
		wants[count++] = cel_signature_type(c->arena, &p, params);
	}
	p++;
	if (count != n || !cel_unify_lists(&c->types, args, wants, n))
		return false;
	*ret_result = known(c, cel_signature_type(c->arena, &p, params));
	return true;
}

/* Fills in what a call of the function means; its arguments are checked already. */
static void resolve_overload(struct checker *c, struct cel_node *n, const struct cel_overload *const *list, size_t count)
{
	const struct cel_type **args = ARENA_ARRAY(c->arena, const struct cel_type *, n->call.n), *result = NULL, *one = NULL;
	size_t fits = 0;

	n->call.overloads = list;
	n->call.n_overloads = (uint16_t)count;
	n->call.lenient = cel_overload_is_lenient(list[0]);
	for (size_t i = 0; i < n->call.n; i++)
		args[i] = n->call.args[i]->type;
	for (size_t i = 0; i < count; i++) {
		if (list[i]->method != n->call.method || !overload_fits(c, list[i], args, n->call.n, &one))
			continue;
		n->call.only = fits++ ? NULL : list[i];
		n->call.fits |= i < 64 ? UINT64_C(1) << i : 0;
		if (!result)
			result = one;
		else if (!cel_type_is_dyn(result) && !cel_type_same(result, one))
			result = &cel_type_dyn;
	}
	if (result)
		n->type = result;
	else
		no_overload(c, n, args, n->call.n);
}

/* Puts the target in front of the arguments. */
static void take_target(struct checker *c, struct cel_node *n)
{
	struct cel_node **args = ARENA_ARRAY(c->arena, struct cel_node *, n->call.n + 1);

	args[0] = n->call.target;
	if (n->call.n)
		memcpy(args + 1, n->call.args, n->call.n * sizeof(*args));
	n->call.args = args;
	n->call.n++;
	n->call.target = NULL;
}

static void check_call(struct checker *c, struct cel_node *n)
{
	const struct cel_overload *const *list;
	size_t count;

	for (size_t i = 0; i < n->call.n; i++)
		check(c, n->call.args[i]);
	if (n->call.target) {
		/* a.b.f(): a function of that name, or a method of a.b. */
		str front = qualified(c, n->call.target);
		str whole = front.n ? arena_printf(c->arena, STR_FMT "." STR_FMT, STR_ARG(front), STR_ARG(n->call.name)) : STR("");
		count = front.n ? cel_overloads(c->env, c->arena, whole, &list) : 0;
		if (count) {
			n->call.name = whole;
			n->call.target = NULL;
			n->call.method = false;
			resolve_overload(c, n, list, count);
			return;
		}
		check(c, n->call.target);
		take_target(c, n);
	}
	str name = str_skip(n->call.name, !n->call.method && str_starts(n->call.name, STR(".")));
	count = cel_overloads(c->env, c->arena, name, &list);
	if (!count) {
		undeclared(c, n, n->call.name);
		return;
	}
	n->call.name = name;
	resolve_overload(c, n, list, count);
}

/* && and || */
static void check_logic(struct checker *c, struct cel_node *n)
{
	n->type = &cel_type_bool;
	for (size_t i = 0; i < n->call.n; i++)
		check(c, n->call.args[i]);
	for (size_t i = 0; i < n->call.n; i++)
		if (!accepts(c, n->call.args[i]->type, &cel_type_bool)) {
			mismatch(c, n->call.args[i]->at, &cel_type_bool, n->call.args[i]->type);
			n->type = &cel_type_error;
		}
}

static void check_cond(struct checker *c, struct cel_node *n)
{
	const struct cel_type *any = cel_unify_var(&c->types), *args[3], *wants[3] = { &cel_type_bool, any, any };

	for (size_t i = 0; i < 3; i++) {
		check(c, n->call.args[i]);
		args[i] = n->call.args[i]->type;
	}
	if (cel_unify_lists(&c->types, args, wants, 3))
		n->type = known(c, any);
	else
		no_overload(c, n, args, 3);
}

/* ---- aggregates ---- */

static const struct cel_type *join(struct checker *c, const struct cel_type *so_far, const struct cel_type *t)
{
	if (!so_far)
		return t;
	return accepts(c, so_far, t) ? cel_type_more_general(so_far, t) : &cel_type_dyn;
}

static void too_large(struct checker *c, struct cel_node *n)
{
	if (n->type->weight <= CEL_TYPE_WEIGHT_MAX)
		return;
	cel_issue(c->issues, n->at, "the type of the expression is too large");
	n->type = &cel_type_error;
}

/* The type inside of an optional element. */
static const struct cel_type *unwrapped(struct checker *c, const struct cel_node *item, bool optional)
{
	if (!optional)
		return item->type;
	const struct cel_type *t = known(c, item->type);
	if (t->kind == CEL_OPTIONAL)
		return t->elem;
	if (!cel_type_is_dyn(t))
		mismatch(c, item->at, cel_type_optional(c->arena, t), t);
	return t;
}

static void check_list(struct checker *c, struct cel_node *n)
{
	const struct cel_type *elem = NULL;

	for (size_t i = 0; i < n->list.n; i++) {
		check(c, n->list.items[i]);
		elem = join(c, elem, unwrapped(c, n->list.items[i], n->list.optional && n->list.optional[i]));
	}
	n->type = cel_type_list(c->arena, elem ? elem : cel_unify_var(&c->types));
	too_large(c, n);
}

static void check_map(struct checker *c, struct cel_node *n)
{
	const struct cel_type *key = NULL, *elem = NULL;

	for (size_t i = 0; i < n->map.n; i++) {
		const struct cel_entry *e = &n->map.entries[i];
		check(c, e->key);
		key = join(c, key, e->key->type);
		check(c, e->val);
		elem = join(c, elem, unwrapped(c, e->val, e->optional));
	}
	if (!key) {
		key = cel_unify_var(&c->types);
		elem = cel_unify_var(&c->types);
	}
	n->type = cel_type_map(c->arena, key, elem);
	too_large(c, n);
}

static void check_object(struct checker *c, struct cel_node *n)
{
	str name = str_skip(n->map.type_name, str_starts(n->map.type_name, STR(".")));
	const struct cel_type *t = cel_type_named(c->env, name);

	if (!t) {
		undeclared(c, n, n->map.type_name);
		return;
	}
	n->type = t;
	if (t->kind != CEL_OBJECT) {
		cel_issue(c->issues, n->at, "'" STR_FMT "' is not a message type", STR_ARG(name));
		n->type = &cel_type_error;
	}
	for (size_t i = 0; i < n->map.n; i++) {
		struct cel_entry *e = &n->map.entries[i];
		check(c, e->val);
		e->type = n->type->kind == CEL_OBJECT ? field_type(c, e->at, t, e->field) : &cel_type_error;
		const struct cel_type *got = unwrapped(c, e->val, e->optional);
		if (accepts(c, e->type, got))
			continue;
		str want = text_of(c, e->type), text = text_of(c, got);
		cel_issue(c->issues, e->at, "expected type of field '" STR_FMT "' is '" STR_FMT "' but provided type is '" STR_FMT "'",
			  STR_ARG(e->field), STR_ARG(want), STR_ARG(text));
	}
}

/* ---- comprehensions ---- */

/* The types of the one or two variables that go over a range. */
static void range_types(struct checker *c, const struct cel_node *n, const struct cel_type *ret[2])
{
	const struct cel_type *range = known(c, n->fold.range->type);
	bool two = n->fold.iter2.n > 0;

	ret[0] = ret[1] = &cel_type_dyn;
	if (range->kind == CEL_LIST) {
		ret[0] = two ? &cel_type_int : range->elem;
		ret[1] = range->elem;
	} else if (range->kind == CEL_MAP) {
		ret[0] = range->key ? range->key : &cel_type_dyn;
		ret[1] = range->elem ? range->elem : &cel_type_dyn;
	} else if (cel_type_is_dyn(range) || range->kind == CEL_ERROR || range->kind == CEL_PARAM) {
		accepts(c, &cel_type_dyn, range);
	} else {
		str text = text_of(c, range);
		cel_issue(c->issues, n->fold.range->at,
			  "expression of type '" STR_FMT "' cannot be range of a comprehension (must be list, map, or dynamic)",
			  STR_ARG(text));
		ret[0] = ret[1] = &cel_type_error;
	}
}

static void check_part(struct checker *c, struct cel_node *part, const struct cel_type *want)
{
	check(c, part);
	if (!accepts(c, want, part->type))
		mismatch(c, part->at, want, part->type);
}

static void check_fold(struct checker *c, struct cel_node *n)
{
	const struct scope *outer = c->scope;
	uint16_t depth = c->depth;
	const struct cel_type *vars[2];

	check(c, n->fold.range);
	n->fold.slot = depth;
	c->depth = (uint16_t)(depth + 3);
	c->program->n_slots = MAX(c->program->n_slots, c->depth);
	check(c, n->fold.init);
	range_types(c, n, vars);
	/* A bound value is computed within the result, which must not use the slots of that computation. */
	if (cel_fold_is_bind(n))
		c->depth = c->program->n_slots;
	struct scope accu = { outer, n->fold.accu, n->fold.init->type, depth };
	struct scope iter = { &accu, n->fold.iter, vars[0], (uint16_t)(depth + 1) };
	struct scope iter2 = { &iter, n->fold.iter2, vars[1], (uint16_t)(depth + 2) };
	c->scope = n->fold.iter2.n ? &iter2 : &iter;
	check_part(c, n->fold.cond, &cel_type_bool);
	check_part(c, n->fold.step, accu.type);
	c->scope = &accu;
	check(c, n->fold.result);
	c->scope = outer;
	c->depth = depth;
	n->type = known(c, n->fold.result->type);
}

static const struct cel_type *literal_type(struct cel_val v)
{
	switch (v.kind) {
	case CEL_BOOL:
		return &cel_type_bool;
	case CEL_INT:
		return &cel_type_int;
	case CEL_UINT:
		return &cel_type_uint;
	case CEL_DOUBLE:
		return &cel_type_double;
	case CEL_STRING:
		return &cel_type_string;
	case CEL_BYTES:
		return &cel_type_bytes;
	default:
		return &cel_type_null;
	}
}

static void check(struct checker *c, struct cel_node *n)
{
	switch ((enum cel_node_kind)n->kind) {
	case CEL_N_LITERAL:
		n->type = literal_type(n->literal);
		return;
	case CEL_N_IDENT:
		check_ident(c, n);
		return;
	case CEL_N_SELECT:
		check_select(c, n);
		return;
	case CEL_N_CALL:
		check_call(c, n);
		return;
	case CEL_N_AND:
	case CEL_N_OR:
		check_logic(c, n);
		return;
	case CEL_N_COND:
		check_cond(c, n);
		return;
	case CEL_N_LIST:
		check_list(c, n);
		return;
	case CEL_N_MAP:
		check_map(c, n);
		return;
	case CEL_N_OBJECT:
		check_object(c, n);
		return;
	case CEL_N_FOLD:
		check_fold(c, n);
		return;
	case CEL_N_BAD:
		n->type = &cel_type_error;
		return;
	}
}

/* ---- the final types ---- */

static void settle(struct checker *c, struct cel_node *n)
{
	n->type = cel_unify_resolve(&c->types, n->type, true);
	switch ((enum cel_node_kind)n->kind) {
	case CEL_N_SELECT:
		settle(c, n->select.operand);
		return;
	case CEL_N_CALL:
	case CEL_N_AND:
	case CEL_N_OR:
	case CEL_N_COND:
		for (size_t i = 0; i < n->call.n; i++)
			settle(c, n->call.args[i]);
		return;
	case CEL_N_LIST:
		for (size_t i = 0; i < n->list.n; i++)
			settle(c, n->list.items[i]);
		return;
	case CEL_N_MAP:
	case CEL_N_OBJECT:
		for (size_t i = 0; i < n->map.n; i++) {
			if (n->kind == CEL_N_MAP)
				settle(c, n->map.entries[i].key);
			settle(c, n->map.entries[i].val);
		}
		return;
	case CEL_N_FOLD:
		settle(c, n->fold.range);
		settle(c, n->fold.init);
		settle(c, n->fold.cond);
		settle(c, n->fold.step);
		settle(c, n->fold.result);
		return;
	case CEL_N_LITERAL:
	case CEL_N_IDENT:
	case CEL_N_BAD:
		return;
	}
}

bool cel_check(struct cel_program *p, struct cel_issues *e)
{
	struct checker c = { .program = p, .issues = e, .arena = &p->arena, .env = p->env, .types = { .arena = &p->arena } };

	p->uses = ARENA_ARRAY(&p->arena, bool, p->env->n_vars + 1);
	memset(p->uses, 0, p->env->n_vars + 1);
	check(&c, p->root);
	if (!e->total)
		settle(&c, p->root);
	if (c.types.tired)
		cel_issue(e, CEL_NOWHERE, "the types of the expression are too large");
	return e->total == 0;
}
