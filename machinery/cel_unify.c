/*
 * Unification of types: whether a value of one type can be used where another is wanted, and what that says of type variables.
 * What is known of a variable is written into a table, with a list of what stood there before, so that a failed attempt
 * (one of several overloads) leaves no trace.
 *
 * Types can share parts, so that a small expression can have a type that is exponentially large when written out: WORK_MAX bounds
 * the steps.
 */
#include "machinery/cel_priv.h"

enum { WORK_MAX = 2000000 };

static bool tired(struct cel_unify *u)
{
	if (++u->work > WORK_MAX)
		u->tired = true;
	return u->tired;
}

const struct cel_type *cel_unify_var(struct cel_unify *u)
{
	if (u->n == u->cap) {
		size_t cap = u->cap ? u->cap * 2 : 32;
		const struct cel_type **more = ARENA_ARRAY(u->arena, const struct cel_type *, cap);
		if (u->n)
			memcpy(more, u->bound, u->n * sizeof(*more));
		u->bound = more;
		u->cap = cap;
	}
	struct cel_type *t = ARENA_NEW(u->arena, struct cel_type);
	t->kind = CEL_PARAM;
	t->n_fields = u->n;
	u->bound[u->n++] = NULL;
	return t;
}

static void bind(struct cel_unify *u, const struct cel_type *var, const struct cel_type *t)
{
	if (u->n_undo == u->cap_undo) {
		size_t cap = u->cap_undo ? u->cap_undo * 2 : 32;
		struct cel_undo *more = ARENA_ARRAY(u->arena, struct cel_undo, cap);
		if (u->n_undo)
			memcpy(more, u->undo, u->n_undo * sizeof(*more));
		u->undo = more;
		u->cap_undo = cap;
	}
	u->undo[u->n_undo++] = (struct cel_undo){ (uint32_t)var->n_fields, u->bound[var->n_fields] };
	u->bound[var->n_fields] = t;
}

static const struct cel_type *part(const struct cel_type *t) { return t ? t : &cel_type_dyn; }
static bool has_elem(const struct cel_type *t) { return t->kind == CEL_LIST || t->kind == CEL_MAP || t->kind == CEL_OPTIONAL; }

/* Whether a variable does not occur in a type. */
static bool not_within(struct cel_unify *u, const struct cel_type *var, const struct cel_type *t)
{
	if (tired(u) || cel_type_same(var, t))
		return false;
	if (t->kind == CEL_PARAM)
		return !u->bound[t->n_fields] || not_within(u, var, u->bound[t->n_fields]);
	if (t->kind == CEL_MAP && !not_within(u, var, part(t->key)))
		return false;
	return !(has_elem(t) || t->kind == CEL_TYPE) || not_within(u, var, part(t->elem));
}

static bool less_specific(const struct cel_type *a, const struct cel_type *b)
{
	if (cel_type_is_dyn(a) || a->kind == CEL_PARAM)
		return true;
	if (cel_type_is_dyn(b) || b->kind == CEL_PARAM || a->kind != b->kind)
		return false;
	if (a->kind == CEL_TYPE)
		return true;
	if (a->kind == CEL_MAP && !less_specific(part(a->key), part(b->key)))
		return false;
	return has_elem(a) ? less_specific(part(a->elem), part(b->elem)) : cel_type_same(a, b);
}

const struct cel_type *cel_type_more_general(const struct cel_type *a, const struct cel_type *b) { return less_specific(a, b) ? a : b; }

static bool assignable(struct cel_unify *u, const struct cel_type *from, const struct cel_type *to);

/* Whether var can stand for t; *ret_known: something is known of var already. */
static bool substitutes(struct cel_unify *u, const struct cel_type *t, const struct cel_type *var, bool *ret_known)
{
	*ret_known = true;
	if (cel_type_same(t, var))
		return true;
	const struct cel_type *known = u->bound[var->n_fields];
	if (known) {
		if (cel_type_same(t, known))
			return true;
		if (!assignable(u, t, known))
			return false;
		const struct cel_type *general = cel_type_more_general(t, known);
		if (not_within(u, var, general))
			bind(u, var, general);
		return true;
	}
	*ret_known = false;
	if (!not_within(u, var, t))
		return false;
	bind(u, var, t);
	return true;
}

static bool nullable(const struct cel_type *t)
{
	switch (t->kind) {
	case CEL_BOOL:
	case CEL_INT:
	case CEL_UINT:
	case CEL_DOUBLE:
	case CEL_STRING:
	case CEL_BYTES:
	case CEL_LIST:
	case CEL_MAP:
	case CEL_TYPE:
		return false;
	default:
		return true;
	}
}

static bool assignable(struct cel_unify *u, const struct cel_type *from, const struct cel_type *to)
{
	bool known = false;

	if (tired(u))
		return false;
	if (to->kind == CEL_PARAM) {
		if (substitutes(u, from, to, &known))
			return true;
		if (known)
			return false;
	}
	if (from->kind == CEL_PARAM)
		return substitutes(u, to, from, &known);
	if (cel_type_is_dyn(from) || cel_type_is_dyn(to) || from->kind == CEL_ERROR || to->kind == CEL_ERROR)
		return true;
	if (from->kind == CEL_NULL)
		return nullable(to);
	if (to->kind == CEL_NULL)
		return nullable(from);
	if (from->kind != to->kind)
		return false;
	if (from->kind == CEL_TYPE)
		return true;
	if (from->kind == CEL_MAP && !assignable(u, part(from->key), part(to->key)))
		return false;
	return has_elem(from) ? assignable(u, part(from->elem), part(to->elem)) : cel_type_same(from, to);
}

bool cel_unify_lists(struct cel_unify *u, const struct cel_type *const *from, const struct cel_type *const *to, size_t n)
{
	u->n_undo = 0;
	for (size_t i = 0; i < n; i++)
		if (!assignable(u, from[i], to[i])) {
			while (u->n_undo) {
				const struct cel_undo *back = &u->undo[--u->n_undo];
				u->bound[back->var] = back->before;
			}
			return false;
		}
	return true;
}

bool cel_unify_assignable(struct cel_unify *u, const struct cel_type *from, const struct cel_type *to)
{
	return cel_unify_lists(u, &from, &to, 1);
}

const struct cel_type *cel_unify_resolve(struct cel_unify *u, const struct cel_type *t, bool to_dyn)
{
	while (t->kind == CEL_PARAM && u->bound[t->n_fields] && !tired(u))
		t = u->bound[t->n_fields];
	if (t->kind == CEL_PARAM)
		return to_dyn ? &cel_type_dyn : t;
	if (tired(u) || !(has_elem(t) || (t->kind == CEL_TYPE && t->elem)))
		return t;
	const struct cel_type *key = t->kind == CEL_MAP ? cel_unify_resolve(u, part(t->key), to_dyn) : NULL;
	const struct cel_type *elem = cel_unify_resolve(u, part(t->elem), to_dyn);
	if (key == t->key && elem == t->elem)
		return t;
	struct cel_type *n = ARENA_NEW(u->arena, struct cel_type);
	*n = *t;
	n->key = key;
	n->elem = elem;
	n->weight = 1 + (key ? MAX(key->weight, 1u) : 0) + MAX(elem->weight, 1u);
	u->tired |= n->weight > CEL_TYPE_WEIGHT_MAX;
	return n;
}
