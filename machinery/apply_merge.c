/* The walks over two values: what changed between them, and one merged into the other. */
#include "machinery/apply_walk_priv.h"
#include "machinery/patch_priv.h"

/* Kept out of its caller: every level of a tree would pay for the frame of the shape that it does not have. */
#define LEAN __attribute__((noinline))

/* Null and what is no map at all have no members; the same goes for lists. */
static struct val as_map(struct val v) { return v.type == VAL_OBJECT ? v : VAL_EMPTY; }
static struct val as_list(struct val v) { return v.type == VAL_LIST ? v : VAL_EMPTY; }

/* ---- comparing ---- */

enum { REMOVED, MODIFIED, ADDED, SIDES };

struct compare {
	struct typed_walk walk;
	struct field_set_builder sets[SIDES];
};

/* What is to be said about one place: whether it is itself in each of the sets, and what is below it. */
struct change {
	bool self[SIDES];
	struct field_set below[SIDES];
};

static void compare(struct compare *c, struct apply_type t, struct val from, struct val to, const struct step *at,
		    struct change *ret);

struct level {
	uint32_t begin[SIDES];
};

static struct level level_begin(const struct compare *c)
{
	struct level l;
	for (int i = 0; i < SIDES; i++)
		l.begin[i] = field_set_begin(&c->sets[i]);
	return l;
}

static void level_add(struct compare *c, struct path_element at, const struct change *change)
{
	for (int i = 0; i < SIDES; i++)
		field_set_add(&c->sets[i], at, change->self[i], change->below[i]);
}

/* A place can be looked at in two shapes, one after the other: then both say something. */
static void level_end(struct compare *c, const struct level *l, struct change *ret)
{
	for (int i = 0; i < SIDES; i++)
		ret->below[i] = field_set_union(c->walk.arena, ret->below[i], field_set_end(&c->sets[i], l->begin[i]));
}

static bool same_pointer(struct val x, struct val y)
{
	return x.type == y.type && x.type >= VAL_STRING && x.n == y.n && x.s == y.s;
}

static bool compare_leaf(struct val from, struct val to, struct change *ret)
{
	if (!val_exists(from))
		ret->self[ADDED] = true;
	else if (!val_exists(to))
		ret->self[REMOVED] = true;
	else if (!val_equal(from, to))
		ret->self[MODIFIED] = true;
	return true;
}

static void compare_member(struct compare *c, struct apply_type t, atom key, struct val from, struct val to,
			   const struct step *at)
{
	struct apply_type member = { 0 };
	struct change change = { 0 };
	typed_member(t, key, &member);
	compare(c, member, from, to, STEP(at, path_field(key)), &change);
	level_add(c, path_field(key), &change);
}

/* Larger objects are sorted first: looking up every member in turn would take quadratic time. */
enum { FEW_MEMBERS = 32 };

static void compare_maps(struct compare *c, struct apply_type t, struct val from, struct val to,
			 const struct step *at, struct change *ret)
{
	struct level l = level_begin(c);

	if (val_len(from) > FEW_MEMBERS || val_len(to) > FEW_MEMBERS) {
		struct pairs ps = patch_pairs_join(c->walk.arena, from, to);
		for (uint32_t i = 0; i < ps.n; i++)
			compare_member(c, t, ps.p[i].key, ps.p[i].left, ps.p[i].right, at);
	} else {
		VAL_EACH_MEMBER(m, from)
			compare_member(c, t, m->key, m->val, val_member(to, m->key), at);
		VAL_EACH_MEMBER(m, to)
			if (!val_exists(val_member(from, m->key)))
				compare_member(c, t, m->key, VAL_EMPTY, m->val, at);
	}
	level_end(c, &l, ret);
}

LEAN
static bool compare_map(struct compare *c, struct apply_type t, const struct apply_shape *s, struct val from,
			struct val to, const struct step *at, struct change *ret)
{
	struct val x = as_map(from), y = as_map(to);
	if (s->map_atomic || (!x.n && !y.n)) /* two empty ones as leaves: empty and null differ */
		return compare_leaf(from, to, ret);
	compare_maps(c, t, x, y, at, ret);
	return false;
}

/* Items with the same element: x and y of them, the first ones given. */
static void compare_item(struct compare *c, struct apply_type item, struct typed_item *const *x, uint32_t n_x,
			 struct typed_item *const *y, uint32_t n_y, const struct step *at)
{
	struct path_element element = (n_x ? x : y)[0]->at;
	const struct step *below = STEP(at, element);
	struct change change = { 0 };

	if (n_x <= 1 && n_y <= 1) {
		compare(c, item, n_x ? x[0]->val : VAL_EMPTY, n_y ? y[0]->val : VAL_EMPTY, below, &change);
	} else if (n_x >= 2 && n_y >= 2) {
		bool equal = n_x == n_y;
		for (uint32_t i = 0; equal && i < n_x; i++)
			equal = val_equal(x[i]->val, y[i]->val);
		change.self[MODIFIED] = !equal;
	} else if (n_x >= 2) {
		if (n_y)
			compare(c, item, VAL_EMPTY, y[0]->val, below, &change);
		change.self[REMOVED] = true;
	} else {
		if (n_x)
			compare(c, item, x[0]->val, VAL_EMPTY, below, &change);
		change.self[ADDED] = true;
	}
	level_add(c, element, &change);
}

static uint32_t run_length(const struct typed_items *items, uint32_t i)
{
	uint32_t n = 1;
	while (i + n < items->n && items->sorted[i + n]->again)
		n++;
	return n;
}

LEAN
static bool compare_list(struct compare *c, struct apply_type t, const struct apply_shape *s, struct val from,
			 struct val to, const struct step *at, struct change *ret)
{
	struct val lists[2] = { as_list(from), as_list(to) };
	struct typed_items x, y;
	uint32_t i = 0, j = 0;

	if (s->list_atomic || (!lists[0].n && !lists[1].n))
		return compare_leaf(from, to, ret);
	struct apply_type item = t.schema->item(t);
	struct level l = level_begin(c);
	typed_items(&c->walk, at, t, s, lists[0], TYPED_SKIP, &x);
	typed_items(&c->walk, at, t, s, lists[1], TYPED_SKIP, &y);
	while (i < x.n || j < y.n) {
		int order = i == x.n ? 1 : j == y.n ? -1 : path_element_cmp(&x.sorted[i]->at, &y.sorted[j]->at);
		uint32_t n_x = order <= 0 ? run_length(&x, i) : 0, n_y = order >= 0 ? run_length(&y, j) : 0;
		compare_item(c, item, n_x ? &x.sorted[i] : NULL, n_x, n_y ? &y.sorted[j] : NULL, n_y, at);
		i += n_x;
		j += n_y;
	}
	level_end(c, &l, ret);
	return false;
}

/* Returns true when the place was treated as a leaf. */
static bool compare_as(struct compare *c, enum typed_shape as, struct apply_type t, const struct apply_shape *s,
		       struct val from, struct val to, const struct step *at, struct change *ret)
{
	switch (as) {
	case TYPED_MAP: return compare_map(c, t, s, from, to, at, ret);
	case TYPED_LIST: return compare_list(c, t, s, from, to, at, ret);
	case TYPED_SCALAR: return compare_leaf(from, to, ret);
	case TYPED_NOTHING: typed_error(&c->walk, at, STR("schema error: invalid atom: inlined"));
	}
	return false;
}

static void compare(struct compare *c, struct apply_type t, struct val from, struct val to, const struct step *at,
		    struct change *ret)
{
	if (same_pointer(from, to) || typed_too_deep(&c->walk, at))
		return;
	struct apply_shape s = typed_type(t);
	enum typed_shape as = typed_shape_of(&s, val_exists(to) ? to : from);

	if (val_exists(from) && val_exists(to) && !typed_same_shape(&s, from, to))
		compare_as(c, typed_shape_of(&s, from), t, &s, from, to, at, ret);
	if (compare_as(c, as, t, &s, from, to, at, ret))
		return;
	ret->self[ADDED] |= !val_exists(from);
	ret->self[REMOVED] |= !val_exists(to);
}

int apply_compare(struct arena *a, struct apply_type t, struct val from, struct val to, struct apply_comparison *ret,
		  struct err *err)
{
	struct compare c = { .walk = { .arena = a }, .sets = { { .arena = a }, { .arena = a }, { .arena = a } } };
	struct change change = { 0 };

	compare(&c, t, from, to, NULL, &change);
	for (int i = 0; i < SIDES; i++)
		field_set_builder_done(&c.sets[i]);
	int r = typed_result(&c.walk, err);
	if (r == 0)
		*ret = (struct apply_comparison){ change.below[REMOVED], change.below[MODIFIED], change.below[ADDED] };
	return r;
}

/* ---- merging ---- */

static struct val merge(struct typed_walk *w, struct apply_type t, struct val base, struct val over,
			const struct step *at);

LEAN
static struct val merge_maps(struct typed_walk *w, struct apply_type t, struct val base, struct val over,
			     const struct step *at)
{
	struct val_builder b = val_builder(w->arena);
	struct pairs ps = patch_pairs_join(w->arena, base, over);

	for (uint32_t i = 0; i < ps.n; i++) {
		struct apply_type member = { 0 };
		atom key = ps.p[i].key;
		typed_member(t, key, &member);
		val_add_member(&b, key, merge(w, member, ps.p[i].left, ps.p[i].right, STEP(at, path_field(key))));
	}
	return b.n ? val_end_object(&b) : VAL_EMPTY;
}

/*
 * How two lists of items become one: items of over come in its order, and items that only base has stay between the
 * neighbours that they had. An item of both is merged where over has it.
 */
struct list_merge {
	struct typed_walk *walk;
	struct apply_type item;
	const struct step *at;
	struct typed_items base, over;
	const struct typed_item **base_of; /* per item of over: the one of base, or NULL */
	uint32_t *over_of;                /* per item of base: index in over, or NOT_THERE */
	bool *merged;                     /* per item of over */
	uint32_t next_shared;             /* the first item of over that is in base too and was not yet in turn */
	struct val_builder out;
};

enum { NOT_THERE = UINT32_MAX };

static void find_shared(struct list_merge *m, uint32_t from)
{
	while (from < m->over.n && !m->base_of[from])
		from++;
	m->next_shared = from;
}

static void index_lists(struct list_merge *m)
{
	struct arena *a = m->walk->arena;
	m->base_of = ARENA_ARRAY(a, const struct typed_item *, m->over.n);
	m->over_of = ARENA_ARRAY(a, uint32_t, m->base.n);
	m->merged = ARENA_ARRAY(a, bool, m->over.n);
	for (uint32_t i = 0; i < m->over.n; i++) {
		m->base_of[i] = typed_items_find(&m->base, &m->over.v[i].at);
		m->merged[i] = false;
	}
	for (uint32_t i = 0; i < m->base.n; i++) {
		const struct typed_item *item = typed_items_find(&m->over, &m->base.v[i].at);
		m->over_of[i] = item ? (uint32_t)(item - m->over.v) : NOT_THERE;
	}
	find_shared(m, 0);
}

/* Items that base has more than once are not merged: the one of over takes their place. */
static void merge_item(struct list_merge *m, uint32_t i)
{
	const struct typed_item *base = m->base_of[i], *over = &m->over.v[i];
	struct val from = base && !base->more ? base->val : VAL_EMPTY;

	m->merged[i] = true;
	struct val merged = merge(m->walk, m->item, from, over->val, STEP(m->at, over->at));
	if (val_exists(merged))
		val_add_item(&m->out, merged);
}

static void merge_in_order(struct list_merge *m)
{
	for (uint32_t i = 0, j = 0; i < m->base.n || j < m->over.n;) {
		if (i < m->base.n && j < m->over.n) {
			if (m->over_of[i] == j) {
				merge_item(m, j);
				find_shared(m, m->next_shared + 1);
				i++;
				j++;
				continue;
			}
			if (m->over_of[i] != NOT_THERE && m->next_shared < m->over.n &&
			    m->next_shared != m->over_of[i]) {
				i++; /* shared, but its turn comes later */
				continue;
			}
		}
		if (i < m->base.n) {
			if (m->over_of[i] == NOT_THERE) {
				val_add_item(&m->out, m->base.v[i++].val);
				continue;
			}
			if (m->merged[m->over_of[i]])
				i++;
		}
		if (j < m->over.n) {
			merge_item(m, j);
			if (m->next_shared == j)
				find_shared(m, j + 1);
			j++;
		}
	}
}

LEAN
static struct val merge_lists(struct typed_walk *w, struct apply_type t, const struct apply_shape *s, struct val base,
			      struct val over, const struct step *at)
{
	struct list_merge m = { .walk = w, .item = t.schema->item(t), .at = at, .out = val_builder(w->arena) };
	bool ok = typed_items(w, at, t, s, over, TYPED_SKIP, &m.over);

	for (uint32_t i = 0; i < m.over.n; i++) {
		if (!m.over.v[i].again)
			continue;
		CLEANUP(buf_done) struct buf b = BUF_INIT(1024);
		buf_add(&b, STR("duplicate entries for key "));
		path_element_print(&b, &m.over.v[i].at);
		typed_error(w, at, buf_str(&b));
		ok = false;
	}
	if (!typed_items(w, at, t, s, base, TYPED_SKIP, &m.base) || !ok)
		return VAL_EMPTY;
	index_lists(&m);
	merge_in_order(&m);
	return m.out.n ? val_end_list(&m.out) : VAL_EMPTY;
}

static struct val merge(struct typed_walk *w, struct apply_type t, struct val base, struct val over,
			const struct step *at)
{
	if (typed_too_deep(w, at) || !val_exists(over))
		return base;
	if (!val_exists(base))
		return over;
	struct apply_shape s = typed_type(t);
	switch (typed_shape_of(&s, over)) {
	case TYPED_MAP: {
		struct val x = as_map(base), y = as_map(over);
		return s.map_atomic || (!x.n && !y.n) ? over : merge_maps(w, t, x, y, at);
	}
	case TYPED_LIST: {
		struct val x = as_list(base), y = as_list(over);
		return s.list_atomic || (!x.n && !y.n) ? over : merge_lists(w, t, &s, x, y, at);
	}
	case TYPED_SCALAR:
	case TYPED_NOTHING:
		break;
	}
	return over;
}

int apply_merge(struct arena *a, struct apply_type t, struct val base, struct val over, struct val *ret,
		struct err *err)
{
	struct typed_walk w = { .arena = a };
	struct val merged = merge(&w, t, base, over, NULL);
	int r = typed_result(&w, err);
	if (r == 0)
		*ret = merged;
	return r;
}
