/*
 * What can be done before a program runs: lists and maps of literals, conversions of literals (duration("1h")) and patterns are
 * made once and live in the program. cel-go does the same, which shows in costs and in errors that come before any evaluation.
 */
#include "machinery/cel_priv.h"

struct planner {
	struct cel_program *p;
	struct arena *arena;
	str why;          /* the first thing that could not be made */
	size_t patterns;  /* bytes of all */
};

/* A few bytes of source, such as (a{1000}){11}, can be a megabyte of program: patterns beyond this are made when they are run. */
enum { PATTERNS_MAX = 4 * 1024 * 1024 };

static void plan(struct planner *x, struct cel_node *n);

/* The value of a constant. */
static struct cel_val value_of(const struct cel_node *n)
{
	return n->kind == CEL_N_LITERAL ? n->literal : n->kind == CEL_N_LIST ? *n->list.made : *n->map.made;
}

static void plan_list(struct planner *x, struct cel_node *n)
{
	bool constant = !n->list.optional;

	for (size_t i = 0; i < n->list.n; i++) {
		plan(x, n->list.items[i]);
		constant &= n->list.items[i]->constant;
	}
	if (!constant)
		return;
	struct cel_val *items = ARENA_ARRAY(x->arena, struct cel_val, n->list.n), *made = ARENA_NEW(x->arena, struct cel_val);
	for (size_t i = 0; i < n->list.n; i++)
		items[i] = value_of(n->list.items[i]);
	*made = cel_list_take(x->arena, items, n->list.n);
	n->list.made = made;
	n->constant = true;
}

static void plan_map(struct planner *x, struct cel_node *n)
{
	bool constant = true;
	struct cel_val map = cel_map_new(x->arena);

	for (size_t i = 0; i < n->map.n; i++) {
		struct cel_entry *e = &n->map.entries[i];
		plan(x, e->key);
		plan(x, e->val);
		constant &= e->key->constant && e->val->constant && e->key->kind == CEL_N_LITERAL && !e->optional;
	}
	for (size_t i = 0; i < n->map.n && constant; i++) {
		const struct cel_entry *e = &n->map.entries[i];
		struct cel_val v = value_of(e->val);
		uint8_t kind = e->key->literal.kind;
		if (kind > CEL_STRING)
			return;
		cel_map_set(x->arena, &map, e->key->literal, v);
	}
	if (!constant)
		return;
	struct cel_val *made = ARENA_NEW(x->arena, struct cel_val);
	*made = map;
	n->map.made = made;
	n->constant = true;
}

static bool is_conversion(str name)
{
	static const str names[] = {
		STR_INIT("bool"), STR_INIT("bytes"), STR_INIT("double"), STR_INIT("duration"), STR_INIT("dyn"), STR_INIT("int"),
		STR_INIT("string"), STR_INIT("timestamp"), STR_INIT("type"), STR_INIT("uint"),
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

/* Turns the conversion of a literal into a literal. */
static void fold_conversion(struct planner *x, struct cel_node *n)
{
	struct cel_run run = { .arena = x->arena, .limit = UINT64_MAX };
	struct cel_eval ev = { .arena = x->arena, .program = x->p, .run = &run };
	struct cel_val arg = value_of(n->call.args[0]), v = cel_dispatch(&ev, n, &arg, 1);

	if (v.kind == CEL_ERROR) {
		x->why = x->why.n ? x->why : cel_text(v);
		return;
	}
	n->kind = CEL_N_LITERAL;
	n->literal = v;
	n->constant = true;
}

static void plan_pattern(struct planner *x, struct cel_node *n)
{
	const struct cel_node *pattern = n->call.n >= 2 ? n->call.args[1] : NULL;
	bool takes = str_eq(n->call.name, STR("matches")) || str_eq(n->call.name, STR("find")) || str_eq(n->call.name, STR("findAll"));
	struct err err = ERR_INIT;

	if (!takes || !pattern || pattern->kind != CEL_N_LITERAL || pattern->literal.kind != CEL_STRING ||
	    x->patterns > PATTERNS_MAX)
		return;
	size_t before = x->arena->used;
	n->call.re = cel_re_compile(x->arena, cel_text(pattern->literal), &err);
	x->patterns += x->arena->used - before;
	if (!n->call.re && !x->why.n)
		x->why = arena_str(x->arena, err_str(&err));
}

static bool is_scalar_list(const struct cel_node *n)
{
	if (n->kind != CEL_N_LIST || !n->constant || !n->list.n)
		return false;
	for (size_t i = 0; i < n->list.n; i++)
		if (n->list.items[i]->kind != CEL_N_LITERAL)
			return false;
	return true;
}

static void plan_call(struct planner *x, struct cel_node *n)
{
	static const struct {
		str name;
		uint8_t special;
	} specials[] = { { STR_INIT("_[_]"), CEL_INDEX }, { STR_INIT("_[?_]"), CEL_OPT_INDEX }, { STR_INIT("or"), CEL_OR_VALUE },
			 { STR_INIT("orValue"), CEL_OR_VALUE } };

	for (size_t i = 0; i < n->call.n; i++)
		plan(x, n->call.args[i]);
	for (size_t i = 0; i < ARRAY_LEN(specials); i++)
		if (str_eq(specials[i].name, n->call.name))
			n->call.special = specials[i].special;
	if (str_eq(n->call.name, STR("@in")) && is_scalar_list(n->call.args[1]))
		n->call.special = CEL_IN_SET;
	plan_pattern(x, n);
	if (n->call.n == 1 && !n->call.method && n->call.args[0]->constant && is_conversion(n->call.name))
		fold_conversion(x, n);
}

static void plan(struct planner *x, struct cel_node *n)
{
	switch ((enum cel_node_kind)n->kind) {
	case CEL_N_SELECT:
		plan(x, n->select.operand);
		return;
	case CEL_N_CALL:
		plan_call(x, n);
		return;
	case CEL_N_AND:
	case CEL_N_OR:
	case CEL_N_COND:
		for (size_t i = 0; i < n->call.n; i++)
			plan(x, n->call.args[i]);
		return;
	case CEL_N_LIST:
		plan_list(x, n);
		return;
	case CEL_N_MAP:
		plan_map(x, n);
		return;
	case CEL_N_OBJECT:
		for (size_t i = 0; i < n->map.n; i++)
			plan(x, n->map.entries[i].val);
		return;
	case CEL_N_FOLD:
		plan(x, n->fold.range);
		plan(x, n->fold.init);
		plan(x, n->fold.cond);
		plan(x, n->fold.step);
		plan(x, n->fold.result);
		return;
	case CEL_N_LITERAL:
	case CEL_N_IDENT:
	case CEL_N_BAD:
		return;
	}
}

int cel_plan(struct cel_program *p, str *ret_why)
{
	struct planner x = { .p = p, .arena = &p->arena };

	plan(&x, p->root);
	*ret_why = x.why;
	return x.why.n ? -ERR_INVALID : 0;
}
