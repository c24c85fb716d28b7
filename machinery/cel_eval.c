/*
 * Evaluation: a walk over the nodes. Errors are values, so that && || and the quantifiers can absorb them. Costs are counted as cel-go's
 * tracker does with Kubernetes' options: 1 for a name, for a field, for an index; presence tests and ternaries are free, and so are
 * names that a ternary chooses or that index something. The real work is counted too (cel_work), because some operations cost less
 * than they do.
 */
#include <stdarg.h>

#include "machinery/cel_priv.h"

enum { WORK_MAX = 20000000, MEMORY_MAX = 128 * 1024 * 1024, ARGS_INLINE = 4 };

/* In a slot: the fold whose value is not computed yet. Never seen by functions. */
enum { LAZY = CEL_PARAM };

static struct cel_val eval(struct cel_eval *ev, const struct cel_node *n);
static struct cel_val eval_chain(struct cel_eval *ev, const struct cel_node *n, bool free);

/* Levels of evaluation. The parser bounds the height of a tree, but a name that cel.bind made stands for another tree, which is evaluated
 * where the name is first read: chains of them must not eat the stack of a fiber. */
enum { NEST_MAX = CEL_DEPTH_MAX + 100 };

/* ---- what functions may ask for ---- */

/* Some operations take much more memory than they cost: lists that are copied to grow, flatten(), the state of a match. */
static bool too_big(const struct cel_eval *ev) { return ev->most && ev->arena->used > ev->most; }

bool cel_work(struct cel_eval *ev, size_t n)
{
	ev->work += n;
	if (ev->work > WORK_MAX || too_big(ev))
		ev->exceeded = true;
	return !ev->exceeded;
}

struct cel_val cel_fail(struct cel_eval *ev, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str text = arena_vprintf(ev->arena, fmt, ap);
	va_end(ap);
	return (struct cel_val){ .kind = CEL_ERROR, .n = (uint32_t)text.n, .s = text.p };
}

struct cel_val cel_no_overload(struct cel_eval *ev) { return cel_fail(ev, "no such overload"); }
struct cel_val cel_no_overload_named(struct cel_eval *ev) { return cel_fail(ev, "no such overload: " STR_FMT, STR_ARG(ev->name)); }

static void charge(struct cel_eval *ev, uint64_t cost)
{
	if (__builtin_add_overflow(ev->cost, cost, &ev->cost))
		ev->cost = UINT64_MAX;
	if (ev->cost > ev->run->limit || too_big(ev))
		ev->exceeded = true;
}

static bool is_error(struct cel_val v) { return v.kind == CEL_ERROR; }

/* ---- names, fields, elements ---- */

static struct cel_val eval_ident(struct cel_eval *ev, const struct cel_node *n)
{
	if (n->ident.place == CEL_TYPE_NAME)
		return (struct cel_val){ .kind = CEL_TYPE, .type = n->ident.named };
	if (n->ident.place == CEL_VARIABLE)
		return ev->vars[n->ident.slot];
	struct cel_val v = ev->slots[n->ident.slot];
	if (v.kind != LAZY)
		return v;
	const struct cel_node *fold = (const struct cel_node *)(const void *)v.s;
	return ev->slots[n->ident.slot] = eval(ev, fold->fold.init);
}

static struct cel_val no_key(struct cel_eval *ev, str key) { return cel_fail(ev, "no such key: " STR_FMT, STR_ARG(key)); }

static bool has_fields(struct cel_val v) { return v.kind == CEL_MAP || v.kind == CEL_OBJECT; }

static struct cel_val index_error(struct cel_eval *ev, struct cel_val index)
{
	return cel_fail(ev, "index out of bounds: " STR_FMT, STR_ARG(cel_show(ev->arena, index)));
}

/* The position that an index means; false when it is no number that can be one. */
static bool list_position(struct cel_val index, int64_t *ret)
{
	if (index.kind == CEL_INT)
		*ret = index.i;
	else if (index.kind == CEL_UINT && index.u <= INT64_MAX)
		*ret = (int64_t)index.u;
	else if (index.kind == CEL_DOUBLE && index.d >= -0x1p53 && index.d <= 0x1p53 && (double)(int64_t)index.d == index.d)
		*ret = (int64_t)index.d;
	else
		return false;
	return true;
}

static bool good_key(struct cel_val key)
{
	return key.kind == CEL_STRING || key.kind == CEL_BOOL || key.kind == CEL_INT || key.kind == CEL_UINT || key.kind == CEL_DOUBLE;
}

/* v[index]. *ret_found is false, and the result the error, when it is not there. */
static struct cel_val element(struct cel_eval *ev, struct cel_val v, struct cel_val index, bool *ret_found)
{
	struct cel_val got;
	int64_t i;

	cel_work(ev, cel_text(index).n / 64);
	*ret_found = true;
	if (v.kind == CEL_LIST) {
		if (!list_position(index, &i) && index.kind == CEL_DOUBLE)
			return cel_fail(ev, "unsupported index value " STR_FMT " in list", STR_ARG(cel_show(ev->arena, index)));
		if (!list_position(index, &i))
			return cel_fail(ev, "unsupported index type '" STR_FMT "' in list", STR_ARG(cel_type_name(index)));
		if (i >= 0 && i < (int64_t)v.list->n)
			return cel_at(ev->arena, v, (size_t)i);
		*ret_found = false;
		return index_error(ev, index);
	}
	if (has_fields(v)) {
		if (!good_key(index))
			return cel_fail(ev, "no such overload");
		if (cel_map_find(ev->arena, v, index, &got))
			return got;
	}
	*ret_found = false;
	return no_key(ev, cel_show(ev->arena, index));
}

/* The same for a field. */
static struct cel_val field(struct cel_eval *ev, struct cel_val v, const struct cel_node *n, bool *ret_found)
{
	struct cel_val got;

	*ret_found = has_fields(v) && cel_field_find(ev->arena, v, n->select.name, n->select.field, &got);
	return *ret_found ? got : no_key(ev, n->select.field);
}

static bool is_attribute(const struct cel_node *n)
{
	switch (n->kind) {
	case CEL_N_IDENT:
		return n->ident.place != CEL_TYPE_NAME;
	case CEL_N_SELECT:
		return !n->select.test;
	case CEL_N_CALL:
		return n->call.special == CEL_INDEX || n->call.special == CEL_OPT_INDEX;
	default:
		return n->kind == CEL_N_COND;
	}
}

/* The value that a field or element is taken from. */
static struct cel_val eval_operand(struct cel_eval *ev, const struct cel_node *n, bool free)
{
	if (is_attribute(n))
		return eval_chain(ev, n, free);
	struct cel_val v = eval(ev, n);
	charge(ev, free ? 0 : 1);
	return v;
}

/* The value of an attribute that is used inside of another: its own name is free. */
static struct cel_val eval_inner(struct cel_eval *ev, const struct cel_node *n)
{
	return is_attribute(n) ? eval_chain(ev, n, true) : eval(ev, n);
}

/* One step (field or element) from operand to what n is. */
static struct cel_val step(struct cel_eval *ev, const struct cel_node *n, struct cel_val operand, struct cel_val index, bool *ret_found)
{
	return n->kind == CEL_N_SELECT ? field(ev, operand, n, ret_found) : element(ev, operand, index, ret_found);
}

static struct cel_val eval_step(struct cel_eval *ev, const struct cel_node *n, bool free)
{
	bool select = n->kind == CEL_N_SELECT, found;
	bool optional = select ? n->select.optional : n->call.special == CEL_OPT_INDEX;
	struct cel_val v = eval_operand(ev, select ? n->select.operand : n->call.args[0], free), index = cel_of_null();

	if (!select && !is_error(v))
		index = eval_inner(ev, n->call.args[1]);
	if (is_error(v) || is_error(index))
		return is_error(v) ? v : index;
	bool wrapped = v.kind == CEL_OPTIONAL;
	if (wrapped) {
		if (!v.optional)
			return v;
		v = *v.optional;
	}
	struct cel_val got = step(ev, n, v, index, &found);
	bool lenient = optional || wrapped;
	charge(ev, found || !lenient);
	if (!lenient || (found && is_error(got)))
		return got;
	return found ? cel_optional_of(ev->arena, got) : cel_optional_none();
}

static struct cel_val eval_cond(struct cel_eval *ev, const struct cel_node *n)
{
	struct cel_val test = eval(ev, n->call.args[0]);

	if (is_error(test))
		return test;
	if (test.kind != CEL_BOOL)
		return cel_no_overload(ev);
	return eval_inner(ev, n->call.args[test.b ? 1 : 2]);
}

static struct cel_val eval_chain(struct cel_eval *ev, const struct cel_node *n, bool free)
{
	struct cel_val v;

	ev->exceeded |= ev->depth >= NEST_MAX;
	if (ev->exceeded)
		return cel_fail(ev, "operation cancelled");
	ev->depth++;
	if (n->kind == CEL_N_COND)
		v = eval_cond(ev, n);
	else
		v = n->kind == CEL_N_IDENT ? eval_ident(ev, n) : eval_step(ev, n, free);
	ev->depth--;
	if (n->kind == CEL_N_IDENT)
		charge(ev, free ? 0 : 1);
	return v;
}

/* has(a.b) */
static struct cel_val eval_test(struct cel_eval *ev, const struct cel_node *n)
{
	struct cel_val v = eval_operand(ev, n->select.operand, false);
	bool found;

	if (is_error(v))
		return v;
	if (v.kind == CEL_OPTIONAL) {
		if (!v.optional)
			return cel_of_bool(false);
		v = *v.optional;
	}
	if (v.kind == CEL_LIST)
		return cel_fail(ev, "unsupported index type 'string' in list");
	(void)field(ev, v, n, &found);
	return cel_of_bool(found);
}

/* ---- logic ---- */

static struct cel_val eval_logic(struct cel_eval *ev, const struct cel_node *n)
{
	bool decides = n->kind == CEL_N_OR;
	struct cel_val error = cel_of_null();

	for (size_t i = 0; i < n->call.n; i++) {
		struct cel_val v = eval(ev, n->call.args[i]);
		if (v.kind == CEL_BOOL && v.b == decides)
			return v;
		if (v.kind != CEL_BOOL && !is_error(error))
			error = is_error(v) ? v : cel_no_overload(ev);
	}
	return is_error(error) ? error : cel_of_bool(!decides);
}

/* ---- calls ---- */

static struct cel_val none_fits(struct cel_eval *ev, const struct cel_val *args, size_t n)
{
	str types = STR("");

	for (size_t i = 0; i < n; i++)
		types = arena_printf(ev->arena, STR_FMT "%s" STR_FMT, STR_ARG(types), i ? ", " : "", STR_ARG(cel_type_name(args[i])));
	return cel_fail(ev, "no such overload: " STR_FMT "(" STR_FMT ")", STR_ARG(ev->name), STR_ARG(types));
}

struct cel_val cel_dispatch(struct cel_eval *ev, const struct cel_node *n, const struct cel_val *args, size_t count)
{
	str outer = ev->name;
	const struct cel_overload *found = n->call.lenient ? n->call.overloads[0] : NULL;

	for (size_t i = 0; i < n->call.n_overloads && !found; i++) {
		const struct cel_overload *o = n->call.overloads[i];
		if (o->method == n->call.method && cel_signature_fits(o->signature, args, count))
			found = o;
	}
	ev->name = n->call.name;
	ev->re = n->call.re;
	struct cel_val v = found ? found->run(ev, args, count) : none_fits(ev, args, count);
	ev->name = outer;
	return v;
}

static struct cel_val eval_call(struct cel_eval *ev, const struct cel_node *n)
{
	struct cel_val few[ARGS_INLINE] = { { 0 } }, *args = few, result = cel_of_null();

	if (n->call.n > ARGS_INLINE)
		args = ARENA_ARRAY(ev->arena, struct cel_val, n->call.n);
	for (size_t i = 0; i < n->call.n; i++) {
		args[i] = eval(ev, n->call.args[i]);
		if (!is_error(args[i]) || is_error(result))
			continue;
		result = args[i];
		if (n->call.n > 2)
			return result;
	}
	/* It is meant for errors. */
	bool strict = n->call.only == NULL || strcmp(n->call.only->id, "not_strictly_false") != 0;
	if (!is_error(result) || !strict)
		result = cel_dispatch(ev, n, args, n->call.n);
	if (n->call.special != CEL_IN_SET)
		charge(ev, cel_call_cost(ev, n, args, n->call.n, result));
	return result;
}

static struct cel_val eval_or_value(struct cel_eval *ev, const struct cel_node *n)
{
	struct cel_val v = eval(ev, n->call.args[0]);

	if (is_error(v))
		return v;
	if (v.kind != CEL_OPTIONAL)
		return cel_no_overload_named(ev);
	if (!v.optional)
		return eval(ev, n->call.args[1]);
	return str_eq(n->call.name, STR("or")) ? v : *v.optional;
}

/* ---- aggregates ---- */

/* Takes an optional element apart: false when there is nothing in it. */
static bool present(struct cel_eval *ev, struct cel_val *v, bool optional)
{
	if (!optional || is_error(*v))
		return true;
	if (v->kind != CEL_OPTIONAL) {
		*v = cel_fail(ev, "cannot initialize optional list element from non-optional value " STR_FMT, STR_ARG(cel_show(ev->arena, *v)));
		return true;
	}
	if (!v->optional)
		return false;
	*v = *v->optional;
	return true;
}

static struct cel_val eval_list(struct cel_eval *ev, const struct cel_node *n)
{
	if (n->constant)
		return *n->list.made;
	struct cel_val *items = ARENA_ARRAY(ev->arena, struct cel_val, n->list.n);
	size_t count = 0;
	charge(ev, 10);
	for (size_t i = 0; i < n->list.n; i++) {
		struct cel_val v = eval(ev, n->list.items[i]);
		bool there = present(ev, &v, n->list.optional && n->list.optional[i]);
		if (is_error(v))
			return v;
		if (there)
			items[count++] = v;
	}
	return cel_list_take(ev->arena, items, count);
}

static struct cel_val eval_map(struct cel_eval *ev, const struct cel_node *n)
{
	if (n->constant)
		return *n->map.made;
	struct cel_val map = cel_map_new(ev->arena);
	charge(ev, 30);
	for (size_t i = 0; i < n->map.n; i++) {
		const struct cel_entry *e = &n->map.entries[i];
		struct cel_val key = eval(ev, e->key);
		cel_work(ev, cel_text(key).n / 64);
		if (is_error(key))
			return key;
		struct cel_val v = eval(ev, e->val);
		bool there = present(ev, &v, e->optional);
		if (is_error(v))
			return v;
		if (!good_key(key) && key.kind != CEL_NULL)
			return cel_fail(ev, "unsupported key type: " STR_FMT, STR_ARG(cel_type_name(key)));
		if (there)
			cel_map_set(ev->arena, &map, key, v);
	}
	return map;
}

static struct cel_val eval_object(struct cel_eval *ev, const struct cel_node *n)
{
	struct cel_pair *pairs = ARENA_ARRAY(ev->arena, struct cel_pair, n->map.n + 1);
	size_t count = 0;

	for (size_t i = 0; i < n->map.n; i++) {
		const struct cel_entry *e = &n->map.entries[i];
		struct cel_val v = eval(ev, e->val);
		bool there = present(ev, &v, e->optional);
		if (is_error(v))
			return v;
		if (there)
			pairs[count++] = (struct cel_pair){ cel_of_str(e->field), v };
	}
	charge(ev, 40);
	return cel_of_pairs(ev->arena, n->type, pairs, count, NULL);
}

/* ---- comprehensions ---- */

static void set_variables(struct cel_eval *ev, const struct cel_node *n, struct cel_val range, size_t i)
{
	struct cel_val *slots = ev->slots + n->fold.slot;
	bool two = n->fold.iter2.n > 0;

	if (range.kind != CEL_LIST) {
		cel_member_at(ev->arena, range, i, &slots[1], &slots[2]);
		return;
	}
	struct cel_val item = cel_at(ev->arena, range, i);
	slots[1] = two ? cel_of_int((int64_t)i) : item;
	slots[2] = item;
}

/* Go's name of the type, as cel-go shows it. */
static struct cel_val not_iterable(struct cel_eval *ev, struct cel_val v)
{
	static const char *const names[] = {
		[CEL_NULL] = "types.Null", [CEL_BOOL] = "types.Bool", [CEL_INT] = "types.Int", [CEL_UINT] = "types.Uint",
		[CEL_DOUBLE] = "types.Double", [CEL_STRING] = "types.String", [CEL_BYTES] = "types.Bytes",
		[CEL_DURATION] = "types.Duration", [CEL_TIMESTAMP] = "types.Timestamp", [CEL_OPTIONAL] = "*types.Optional",
		[CEL_TYPE] = "*types.Type",
	};
	str name = v.kind < ARRAY_LEN(names) && names[v.kind] ? str_of(names[v.kind]) : cel_type_name(v);

	return cel_fail(ev, "got '" STR_FMT "', expected iterable type", STR_ARG(name));
}

static struct cel_val eval_fold(struct cel_eval *ev, const struct cel_node *n)
{
	struct cel_val *accu = &ev->slots[n->fold.slot];

	if (cel_fold_is_bind(n)) {
		*accu = (struct cel_val){ .kind = LAZY, .s = (const char *)n };
		return eval(ev, n->fold.result);
	}
	struct cel_val range = eval(ev, n->fold.range);
	if (is_error(range))
		return range;
	if (range.kind != CEL_LIST && !has_fields(range))
		return not_iterable(ev, range);
	*accu = eval(ev, n->fold.init);
	for (size_t i = 0; i < cel_len(range) && cel_work(ev, 1); i++) {
		set_variables(ev, n, range, i);
		struct cel_val more = eval(ev, n->fold.cond);
		if (more.kind == CEL_BOOL && !more.b)
			break;
		struct cel_val v = eval(ev, n->fold.step);
		*accu = v;
	}
	return eval(ev, n->fold.result);
}

static struct cel_val eval_node(struct cel_eval *ev, const struct cel_node *n);

static struct cel_val eval(struct cel_eval *ev, const struct cel_node *n)
{
	ev->exceeded |= ev->depth >= NEST_MAX;
	if (ev->exceeded)
		return cel_fail(ev, "operation cancelled");
	ev->depth++;
	struct cel_val v = eval_node(ev, n);
	ev->depth--;
	return v;
}

static struct cel_val eval_node(struct cel_eval *ev, const struct cel_node *n)
{
	switch ((enum cel_node_kind)n->kind) {
	case CEL_N_LITERAL:
		return n->literal;
	case CEL_N_IDENT:
		return n->ident.place == CEL_TYPE_NAME ? eval_ident(ev, n) : eval_chain(ev, n, false);
	case CEL_N_SELECT:
		return n->select.test ? eval_test(ev, n) : eval_step(ev, n, false);
	case CEL_N_CALL:
		if (n->call.special == CEL_INDEX || n->call.special == CEL_OPT_INDEX)
			return eval_step(ev, n, false);
		return n->call.special == CEL_OR_VALUE ? eval_or_value(ev, n) : eval_call(ev, n);
	case CEL_N_AND:
	case CEL_N_OR:
		return eval_logic(ev, n);
	case CEL_N_COND:
		return eval_cond(ev, n);
	case CEL_N_LIST:
		return eval_list(ev, n);
	case CEL_N_MAP:
		return eval_map(ev, n);
	case CEL_N_OBJECT:
		return eval_object(ev, n);
	case CEL_N_FOLD:
		return eval_fold(ev, n);
	case CEL_N_BAD:
		break;
	}
	return cel_fail(ev, "internal error");
}

struct cel_val cel_run(const struct cel_program *p, const struct cel_val *values, struct cel_run *run)
{
	struct cel_eval ev = { .arena = run->arena, .program = p, .vars = values, .run = run, .most = run->arena->used + MEMORY_MAX };

	ev.slots = ARENA_ARRAY(run->arena, struct cel_val, p->n_slots);
	struct cel_val v = eval(&ev, p->root);
	run->cost = ev.cost;
	run->exceeded = ev.exceeded;
	return ev.exceeded ? cel_fail(&ev, "operation cancelled: actual cost limit exceeded") : v;
}
