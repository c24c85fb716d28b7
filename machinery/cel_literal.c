/*
 * What Kubernetes asks of literals beyond their types: the elements of a list or map that is written out have one type (but for the
 * arguments of format()), and patterns, formats, durations and timestamps that are written out are good ones.
 */
#include "machinery/cel_format.h"
#include "machinery/cel_priv.h"

struct walk {
	const struct cel_program *program;
	struct cel_issues *issues;
	struct arena *arena;
	bool lax;        /* inside of format() */
};

static void walk(struct walk *w, const struct cel_node *n);

/* Types that are the same, or that both are types, or of which parts are not known. */
static bool equivalent(const struct cel_type *a, const struct cel_type *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case CEL_MAP:
		if (!equivalent(a->key ? a->key : &cel_type_dyn, b->key ? b->key : &cel_type_dyn))
			return false;
		return equivalent(a->elem ? a->elem : &cel_type_dyn, b->elem ? b->elem : &cel_type_dyn);
	case CEL_LIST:
	case CEL_OPTIONAL:
	case CEL_TYPE:
		return equivalent(a->elem ? a->elem : &cel_type_dyn, b->elem ? b->elem : &cel_type_dyn);
	default:
		return cel_type_same(a, b);
	}
}

static bool same_type(struct walk *w, const struct cel_node *n, const struct cel_type *want, const struct cel_type *got)
{
	if (equivalent(want, got))
		return true;
	str a = cel_type_text(w->arena, want), b = cel_type_text(w->arena, got);
	cel_issue(w->issues, n->at, "expected type '" STR_FMT "' but found '" STR_FMT "'", STR_ARG(a), STR_ARG(b));
	return false;
}

static const struct cel_type *inner(const struct cel_node *n, bool optional)
{
	return optional && n->type->kind == CEL_OPTIONAL ? n->type->elem : n->type;
}

static void walk_list(struct walk *w, const struct cel_node *n)
{
	const struct cel_type *first = NULL;
	bool same = !w->lax;

	for (size_t i = 0; i < n->list.n; i++) {
		const struct cel_type *t = inner(n->list.items[i], n->list.optional && n->list.optional[i]);
		walk(w, n->list.items[i]);
		first = first ? first : t;
		same = same && same_type(w, n->list.items[i], first, t);
	}
}

static void walk_map(struct walk *w, const struct cel_node *n)
{
	for (size_t i = 0; i < n->map.n; i++) {
		const struct cel_entry *e = &n->map.entries[i], *first = &n->map.entries[0];
		if (e->key)
			walk(w, e->key);
		walk(w, e->val);
		if (w->lax || n->kind != CEL_N_MAP)
			continue;
		same_type(w, e->key, first->key->type, e->key->type);
		same_type(w, e->val, inner(first->val, first->optional), inner(e->val, e->optional));
	}
}

/* The first argument that is in brackets, if it is a literal. */
static void check_argument(struct walk *w, const struct cel_node *n)
{
	const struct cel_node *arg = n->call.n > n->call.method ? n->call.args[n->call.method] : NULL;
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT; /* a pattern can take a megabyte */
	struct err err = ERR_INIT;
	bool good;

	if (!arg || arg->kind != CEL_N_LITERAL)
		return;
	if (str_eq(n->call.name, STR("matches"))) {
		good = arg->literal.kind == CEL_STRING && cel_re_compile(&scratch, cel_text(arg->literal), &err) != NULL;
	} else if (str_eq(n->call.name, STR("duration")) || str_eq(n->call.name, STR("timestamp"))) {
		struct cel_run run = { .arena = w->arena, .limit = UINT64_MAX };
		struct cel_eval ev = { .arena = w->arena, .program = w->program, .run = &run };
		good = cel_dispatch(&ev, n, &arg->literal, 1).kind != CEL_ERROR;
	} else {
		return;
	}
	if (!good)
		cel_issue(w->issues, arg->at, "invalid " STR_FMT " argument", STR_ARG(n->call.name));
}

/* "%d".format([x]), when both are written out. */
static void check_format(struct walk *w, const struct cel_node *n)
{
	const struct cel_node *text = n->call.args[0], *list = n->call.n == 2 ? n->call.args[1] : NULL;
	size_t arg;

	if (!n->call.method || !list || text->kind != CEL_N_LITERAL || text->literal.kind != CEL_STRING || list->kind != CEL_N_LIST ||
	    list->list.optional)
		return;
	const struct cel_type **types = ARENA_ARRAY(w->arena, const struct cel_type *, list->list.n);
	for (size_t i = 0; i < list->list.n; i++)
		types[i] = list->list.items[i]->type;
	str why = cel_format_check(w->arena, cel_text(text->literal), types, list->list.n, &arg);
	if (why.n)
		cel_issue(w->issues, arg < list->list.n ? list->list.items[arg]->at : n->at, STR_FMT, STR_ARG(why));
}

static void walk_call(struct walk *w, const struct cel_node *n)
{
	bool lax = w->lax;

	if (n->kind == CEL_N_CALL) {
		bool format = str_eq(n->call.name, STR("format"));
		w->lax |= format;
		if (format)
			check_format(w, n);
		check_argument(w, n);
	}
	for (size_t i = 0; i < n->call.n; i++)
		walk(w, n->call.args[i]);
	w->lax = lax;
}

static void walk(struct walk *w, const struct cel_node *n)
{
	switch ((enum cel_node_kind)n->kind) {
	case CEL_N_SELECT:
		walk(w, n->select.operand);
		return;
	case CEL_N_CALL:
	case CEL_N_AND:
	case CEL_N_OR:
	case CEL_N_COND:
		walk_call(w, n);
		return;
	case CEL_N_LIST:
		walk_list(w, n);
		return;
	case CEL_N_MAP:
	case CEL_N_OBJECT:
		walk_map(w, n);
		return;
	case CEL_N_FOLD:
		walk(w, n->fold.range);
		walk(w, n->fold.init);
		walk(w, n->fold.cond);
		walk(w, n->fold.step);
		walk(w, n->fold.result);
		return;
	case CEL_N_LITERAL:
	case CEL_N_IDENT:
	case CEL_N_BAD:
		return;
	}
}

void cel_check_literals(const struct cel_program *p, struct cel_issues *e)
{
	struct walk w = { .program = p, .issues = e, .arena = e->arena };

	walk(&w, p->root);
}
