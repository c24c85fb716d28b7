/*
 * Every operation is a merge of two sorted arrays, level by level. What is equal on both sides or untouched keeps its
 * old array: after the usual small change only the nodes on the way to it are new.
 */
#include "machinery/field_set.h"

#include <stdlib.h>

#include "base/mem.h"

/* ---- order ---- */

static int int_cmp(int64_t x, int64_t y) { return (x > y) - (x < y); }

int path_name_cmp(atom x, atom y)
{
	if (x == y)
		return 0;
	if (x < ATOM_LIMIT && y < ATOM_LIMIT)
		return x < y ? -1 : 1; /* the schema numbers its names in the order of their texts */
	return str_cmp(atom_str(x), atom_str(y));
}

static int value_rank(struct val v)
{
	switch ((enum val_type)v.type) {
	case VAL_INT:
	case VAL_DOUBLE: return 0;
	case VAL_STRING: return 1;
	case VAL_BOOL: return 2;
	case VAL_LIST: return 3;
	case VAL_RAW:
	case VAL_OBJECT: return 4;
	case VAL_NULL: return 5;
	case VAL_NONE: break;
	}
	return 6;
}

static int list_cmp(struct val x, struct val y)
{
	for (uint32_t i = 0; i < x.n && i < y.n; i++) {
		int order = path_value_cmp(x.items[i], y.items[i]);
		if (order)
			return order;
	}
	return int_cmp(x.n, y.n);
}

/* Members stand in the order of their names. The first name that only one side has decides. */
static int object_cmp(struct val x, struct val y)
{
	for (uint32_t i = 0; i < x.n && i < y.n; i++) {
		int order = path_name_cmp(x.members[i].key, y.members[i].key);
		if (!order)
			order = path_value_cmp(x.members[i].val, y.members[i].val);
		if (order)
			return order;
	}
	return int_cmp(x.n, y.n);
}

int path_value_cmp(struct val x, struct val y)
{
	int rank = value_rank(x);
	if (rank != value_rank(y))
		return rank < value_rank(y) ? -1 : 1;
	switch ((enum val_type)x.type) {
	case VAL_INT:
	case VAL_DOUBLE: {
		if (x.type == VAL_INT && y.type == VAL_INT)
			return int_cmp(x.i, y.i);
		double dx = val_as_double(x), dy = val_as_double(y);
		return (dx > dy) - (dx < dy);
	}
	case VAL_STRING:
	case VAL_RAW: return str_cmp(val_as_str(x), val_as_str(y));
	case VAL_BOOL: return x.b - y.b;
	case VAL_LIST: return list_cmp(x, y);
	case VAL_OBJECT: return object_cmp(x, y);
	case VAL_NONE:
	case VAL_NULL: break;
	}
	return 0;
}

static int key_cmp(const struct path_element *x, const struct path_element *y)
{
	for (uint32_t i = 0; i < x->n && i < y->n; i++) {
		int order = path_name_cmp(x->key[i].key, y->key[i].key);
		if (!order)
			order = path_value_cmp(x->key[i].val, y->key[i].val);
		if (order)
			return order;
	}
	return int_cmp(x->n, y->n);
}

int path_element_cmp(const struct path_element *x, const struct path_element *y)
{
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	switch ((enum path_kind)x->kind) {
	case PATH_FIELD: return path_name_cmp(x->field, y->field);
	case PATH_KEY: return key_cmp(x, y);
	case PATH_VALUE: return path_value_cmp(*x->value, *y->value);
	case PATH_INDEX: return int_cmp(x->index, y->index);
	case PATH_BROKEN: break;
	}
	return 0;
}

/* ---- building ---- */

void field_set_builder_done(struct field_set_builder *b)
{
	free(b->nodes);
	b->nodes = NULL;
}

void field_set_add(struct field_set_builder *b, struct path_element at, bool member, struct field_set children)
{
	if (!member && !children.n)
		return;
	if (b->n == b->cap) {
		b->cap = b->cap ? b->cap * 2 : 64;
		b->nodes = mem_resize(b->nodes, b->cap * sizeof(*b->nodes));
	}
	b->nodes[b->n++] = (struct field_node){ .at = at, .children = children.nodes, .n = children.n,
						.member = member };
}

/* A stable merge sort: of equal nodes the first and the last must stay recognisable. */
static void nodes_sort(struct field_node *v, struct field_node *spare, uint32_t n)
{
	if (n < 2)
		return;
	uint32_t half = n / 2, i = 0, j = half, k = 0;
	nodes_sort(v, spare, half);
	nodes_sort(v + half, spare, n - half);
	if (path_element_cmp(&v[half - 1].at, &v[half].at) <= 0)
		return;
	memcpy(spare, v, half * sizeof(*v));
	while (i < half && j < n)
		v[k++] = path_element_cmp(&spare[i].at, &v[j].at) <= 0 ? spare[i++] : v[j++];
	memcpy(&v[k], &spare[i], (half - i) * sizeof(*v));
}

static bool nodes_sorted(const struct field_node *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (path_element_cmp(&v[i - 1].at, &v[i].at) >= 0)
			return false;
	return true;
}

static uint32_t nodes_unite(struct field_set_builder *b, struct field_node *v, uint32_t n)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct field_node *last = kept ? &v[kept - 1] : NULL;
		if (!last || path_element_cmp(&last->at, &v[i].at) != 0) {
			v[kept++] = v[i];
			continue;
		}
		last->member |= v[i].member;
		struct field_set children = field_node_set(&v[i]);
		if (!b->last_wins)
			children = field_set_union(b->arena, field_node_set(last), children);
		if (children.n) {
			last->children = children.nodes;
			last->n = children.n;
		}
	}
	return kept;
}

struct field_set field_set_end(struct field_set_builder *b, uint32_t begin)
{
	struct field_node *v = b->nodes ? b->nodes + begin : NULL;
	uint32_t n = b->n - begin;

	if (!nodes_sorted(v, n)) {
		struct field_node *spare = mem_array(n, sizeof(*spare));
		nodes_sort(v, spare, n);
		free(spare);
		n = nodes_unite(b, v, n);
	}
	b->n = begin;
	if (!n)
		return FIELD_SET_EMPTY;
	struct field_node *copy = ARENA_ARRAY(b->arena, struct field_node, n);
	memcpy(copy, v, n * sizeof(*copy));
	return (struct field_set){ copy, n };
}

static struct field_set set_of_one(struct arena *a, const struct path_element *path, size_t n)
{
	struct field_set s = FIELD_SET_EMPTY;
	for (size_t i = n; i-- > 0;) {
		struct field_node *node = ARENA_NEW(a, struct field_node);
		*node = (struct field_node){ .at = path[i], .children = s.nodes, .n = s.n, .member = i == n - 1 };
		s = (struct field_set){ node, 1 };
	}
	return s;
}

struct field_set field_set_with(struct arena *a, struct field_set s, const struct path_element *path, size_t n)
{
	return field_set_union(a, s, set_of_one(a, path, n));
}

struct field_set field_set_of(struct arena *a, const char *const *paths)
{
	struct field_set s = FIELD_SET_EMPTY;
	for (; paths && *paths; paths++) {
		struct path_element path[16];
		size_t n = 0;
		for (str rest = str_of(*paths), name; rest.n && n < ARRAY_LEN(path);) {
			str_cut(rest, '.', &name, &rest);
			path[n++] = path_field(atom_make(a, name));
		}
		s = field_set_with(a, s, path, n);
	}
	return s;
}

/* ---- asking ---- */

const struct field_node *field_set_find(struct field_set s, const struct path_element *at)
{
	uint32_t low = 0, high = s.n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = path_element_cmp(&s.nodes[middle].at, at);
		if (order == 0)
			return &s.nodes[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

bool field_set_has(struct field_set s, const struct path_element *path, size_t n)
{
	const struct field_node *node = NULL;
	for (size_t i = 0; i < n; i++) {
		node = field_set_find(s, &path[i]);
		if (!node)
			return false;
		s = field_node_set(node);
	}
	return node && node->member;
}

bool field_set_equal(struct field_set x, struct field_set y)
{
	if (x.n != y.n)
		return false;
	if (x.nodes == y.nodes)
		return true;
	for (uint32_t i = 0; i < x.n; i++)
		if (x.nodes[i].member != y.nodes[i].member || path_element_cmp(&x.nodes[i].at, &y.nodes[i].at) != 0 ||
		    !field_set_equal(field_node_set(&x.nodes[i]), field_node_set(&y.nodes[i])))
			return false;
	return true;
}

size_t field_set_size(struct field_set s)
{
	size_t n = 0;
	for (uint32_t i = 0; i < s.n; i++)
		n += s.nodes[i].member + field_set_size(field_node_set(&s.nodes[i]));
	return n;
}

struct each {
	struct path_element path[VAL_RECURSION_MAX];
	void (*visit)(const struct path_element *path, size_t n, void *arg);
	void *arg;
};

static void each_level(struct each *e, struct field_set s, size_t depth)
{
	if (depth == ARRAY_LEN(e->path))
		return;
	for (uint32_t i = 0; i < s.n; i++) {
		if (!s.nodes[i].member)
			continue;
		e->path[depth] = s.nodes[i].at;
		e->visit(e->path, depth + 1, e->arg);
	}
	for (uint32_t i = 0; i < s.n; i++) {
		e->path[depth] = s.nodes[i].at;
		each_level(e, field_node_set(&s.nodes[i]), depth + 1);
	}
}

void field_set_each(struct field_set s, void (*visit)(const struct path_element *path, size_t n, void *arg), void *arg)
{
	struct each e = { .visit = visit, .arg = arg };
	each_level(&e, s, 0);
}

/* ---- operations ---- */

/* The result of an operation in the making: a copy of x that is begun only at the first difference. */
struct output {
	struct arena *arena;
	struct field_set same;   /* what the result is as long as nothing differed */
	uint32_t taken;          /* nodes that came unchanged and in order from same */
	struct field_node *nodes;
	uint32_t n, cap;
};

static void output_own(struct output *o)
{
	if (o->nodes)
		return;
	o->nodes = ARENA_ARRAY(o->arena, struct field_node, o->cap);
	if (o->taken)
		memcpy(o->nodes, o->same.nodes, o->taken * sizeof(*o->nodes));
	o->n = o->taken;
}

/* Passes on node i of same. */
static void output_keep(struct output *o, uint32_t i)
{
	if (!o->nodes && o->taken == i) {
		o->taken++;
		return;
	}
	output_own(o);
	o->nodes[o->n++] = o->same.nodes[i];
}

static void output_add(struct output *o, struct path_element at, bool member, struct field_set children)
{
	output_own(o);
	if (member || children.n)
		o->nodes[o->n++] = (struct field_node){ .at = at, .children = children.nodes, .n = children.n,
							.member = member };
}

/* Node i of same with these children instead of its own. */
static void output_change(struct output *o, uint32_t i, bool member, struct field_set children)
{
	const struct field_node *node = &o->same.nodes[i];
	if (member == node->member && children.n == node->n && children.nodes == node->children)
		output_keep(o, i);
	else
		output_add(o, node->at, member, children);
}

static struct field_set output_set(struct output *o)
{
	struct field_set s = { o->same.nodes, o->taken };
	if (o->nodes)
		s = (struct field_set){ o->nodes, o->n };
	return s.n ? s : FIELD_SET_EMPTY;
}

struct field_set field_set_union(struct arena *a, struct field_set x, struct field_set y)
{
	if (!x.n || (x.nodes == y.nodes && x.n == y.n))
		return y;
	if (!y.n)
		return x;
	struct output o = { .arena = a, .same = x, .cap = x.n + y.n };
	uint32_t i = 0, j = 0;

	while (i < x.n || j < y.n) {
		int order = i == x.n ? 1 : j == y.n ? -1 : path_element_cmp(&x.nodes[i].at, &y.nodes[j].at);
		if (order < 0) {
			output_keep(&o, i++);
		} else if (order > 0) {
			const struct field_node *node = &y.nodes[j++];
			output_add(&o, node->at, node->member, field_node_set(node));
		} else {
			struct field_set both = field_set_union(a, field_node_set(&x.nodes[i]),
								field_node_set(&y.nodes[j]));
			output_change(&o, i, x.nodes[i].member || y.nodes[j].member, both);
			i++;
			j++;
		}
	}
	return output_set(&o);
}

/*
 * The first node from position `from` on that is not before at. Steps that double keep it cheap both when the next
 * one is meant and when few elements are sought in many: sets of many managers are held against one big change.
 */
static uint32_t seek(struct field_set s, uint32_t from, const struct path_element *at)
{
	uint32_t step = 1, low = from;
	while (low < s.n && path_element_cmp(&s.nodes[low].at, at) < 0) {
		from = low + 1;
		low += MIN(step, s.n - low);
		step *= 2;
	}
	uint32_t high = low;
	while (from < high) {
		uint32_t middle = from + (high - from) / 2;
		if (path_element_cmp(&s.nodes[middle].at, at) < 0)
			from = middle + 1;
		else
			high = middle;
	}
	return from;
}

/* The node of y for node i of x, or NULL; *j goes along. */
static const struct field_node *counterpart(struct field_set x, uint32_t i, struct field_set y, uint32_t *j)
{
	*j = seek(y, *j, &x.nodes[i].at);
	return *j < y.n && path_element_cmp(&y.nodes[*j].at, &x.nodes[i].at) == 0 ? &y.nodes[*j] : NULL;
}

struct field_set field_set_union_all(struct arena *a, const struct field_set *sets, size_t n)
{
	if (n < 2)
		return n ? sets[0] : FIELD_SET_EMPTY;
	return field_set_union(a, field_set_union_all(a, sets, n / 2), field_set_union_all(a, sets + n / 2, n - n / 2));
}

struct field_set field_set_intersection(struct arena *a, struct field_set x, struct field_set y)
{
	if (x.nodes == y.nodes && x.n == y.n)
		return x;
	struct output o = { .arena = a, .same = x, .cap = x.n };

	for (uint32_t i = 0, j = 0; i < x.n; i++) {
		const struct field_node *node = &x.nodes[i], *other = counterpart(x, i, y, &j);
		if (other)
			output_change(&o, i, node->member && other->member,
				      field_set_intersection(a, field_node_set(node), field_node_set(other)));
	}
	return output_set(&o);
}

static struct field_set difference(struct arena *a, struct field_set x, struct field_set y, bool recursive)
{
	if (!x.n || !y.n)
		return x;
	struct output o = { .arena = a, .same = x, .cap = x.n };

	for (uint32_t i = 0, j = 0; i < x.n; i++) {
		const struct field_node *node = &x.nodes[i], *other = counterpart(x, i, y, &j);
		if (!other) {
			output_keep(&o, i);
			continue;
		}
		struct field_set rest = FIELD_SET_EMPTY;
		if (!recursive || !other->member)
			rest = difference(a, field_node_set(node), field_node_set(other), recursive);
		output_change(&o, i, node->member && !other->member, rest);
	}
	return output_set(&o);
}

struct field_set field_set_difference(struct arena *a, struct field_set x, struct field_set y)
{
	return difference(a, x, y, false);
}

struct field_set field_set_recursive_difference(struct arena *a, struct field_set x, struct field_set y)
{
	return difference(a, x, y, true);
}

struct field_set field_set_leaves(struct arena *a, struct field_set s)
{
	struct output o = { .arena = a, .same = s, .cap = s.n };
	for (uint32_t i = 0; i < s.n; i++)
		output_change(&o, i, s.nodes[i].member && !s.nodes[i].n,
			      field_set_leaves(a, field_node_set(&s.nodes[i])));
	return output_set(&o);
}

/* ---- patterns ---- */

enum { PATTERNS_MAX = 16 };

/* What is left of the patterns at one level; an empty rest matches everything from here on. */
struct patterns {
	str rest[PATTERNS_MAX];
	size_t n;
};

static bool patterns_end(const struct patterns *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (!p->rest[i].n)
			return true;
	return false;
}

/* The patterns that go on through this element. */
static void patterns_through(const struct patterns *p, const struct path_element *at, struct patterns *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < p->n; i++) {
		str head, tail;
		str_cut(p->rest[i], '.', &head, &tail);
		if (str_eq(head, STR("*")) || (at->kind == PATH_FIELD && str_eq(head, atom_str(at->field))))
			ret->rest[ret->n++] = tail;
	}
}

static struct field_set matching(struct arena *a, struct field_set s, const struct patterns *p)
{
	if (patterns_end(p))
		return s;
	struct output o = { .arena = a, .same = s, .cap = s.n };
	struct patterns below;

	for (uint32_t i = 0; i < s.n; i++) {
		patterns_through(p, &s.nodes[i].at, &below);
		if (below.n)
			output_change(&o, i, s.nodes[i].member, matching(a, field_node_set(&s.nodes[i]), &below));
	}
	return output_set(&o);
}

struct field_set field_set_matching(struct arena *a, struct field_set s, const char *const *patterns)
{
	struct patterns p = { .n = 0 };
	for (; *patterns && p.n < PATTERNS_MAX; patterns++)
		p.rest[p.n++] = str_of(*patterns);
	return matching(a, s, &p);
}
