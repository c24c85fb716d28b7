/*
 * A node in disguise is a val of the private type VAL_NODE whose pointer is the node.
 *
 * Objects are an array of members in the order of insertion; removed ones stay as VAL_NONE. From INDEX_MIN members on a
 * hash map finds them. Lists are a short array of chunks, so that an insertion moves a few kilobytes however long the
 * list is.
 */
#include "machinery/json_patch_tree.h"

enum { VAL_NODE = 0xff, INDEX_MIN = 16, CHUNK_MAX = 256 };

struct chunk {
	uint32_t n, cap;
	struct val *items;
};

struct patch_node {
	struct patch_node *next; /* in patch_tree.nodes */
	bool list;
	uint32_t n; /* members or chunks */
	uint32_t cap;
	struct member *members;
	uint32_t live; /* members that are not removed */
	struct map index; /* key -> place in members + 1; empty while there are few */
	struct chunk *chunks;
};

static struct val val_of_node(struct patch_node *n) { return (struct val){ .type = VAL_NODE, .s = (const char *)n }; }
static struct patch_node *node_of(struct val v)
{
	return v.type == VAL_NODE ? (struct patch_node *)(uintptr_t)v.s : NULL;
}

void patch_tree_init(struct patch_tree *t, struct arena *a, struct val doc)
{
	*t = (struct patch_tree){ .arena = a, .root = doc };
}

void patch_tree_done(struct patch_tree *t)
{
	for (struct patch_node *n = t->nodes; n; n = n->next)
		map_done(&n->index);
}

/* Room for one more element in an array that lives in the arena. */
static void *grow(struct arena *a, void *old, uint32_t n, uint32_t *cap, size_t size)
{
	if (n < *cap)
		return old;
	*cap = *cap ? *cap * 2 : 4;
	void *room = arena_array_of(a, *cap, size, _Alignof(struct member));
	if (n)
		memcpy(room, old, n * size);
	return room;
}

/* ---- objects ---- */

static void index_add(struct patch_node *n, uint32_t at)
{
	if (n->n < INDEX_MIN)
		return;
	for (uint32_t i = map_len(&n->index) ? at : 0; i < n->n; i++)
		map_put(&n->index, atom_str(n->members[i].key), (void *)(uintptr_t)(i + 1));
}

static struct member *member_find(struct patch_node *n, str key)
{
	if (map_len(&n->index)) {
		uintptr_t at = (uintptr_t)map_get(&n->index, key);
		return at ? &n->members[at - 1] : NULL;
	}
	for (uint32_t i = 0; i < n->n; i++)
		if (str_eq(atom_str(n->members[i].key), key))
			return &n->members[i];
	return NULL;
}

struct val *patch_node_member(struct patch_node *n, str key)
{
	struct member *m = member_find(n, key);
	return m && val_exists(m->val) ? &m->val : NULL;
}

void patch_node_put(struct patch_tree *t, struct patch_node *n, str key, struct val v)
{
	struct member *m = member_find(n, key);

	if (!m) {
		n->members = grow(t->arena, n->members, n->n, &n->cap, sizeof(*m));
		m = &n->members[n->n++];
		m->key = atom_make(t->arena, key);
		m->val = VAL_EMPTY;
		index_add(n, n->n - 1);
	}
	n->live += !val_exists(m->val);
	m->val = v;
}

bool patch_node_remove(struct patch_node *n, str key)
{
	struct val *place = patch_node_member(n, key);
	if (!place)
		return false;
	*place = VAL_EMPTY;
	n->live--;
	return true;
}

static void open_object(struct patch_tree *t, struct patch_node *n, struct val object)
{
	object = patch_sorted(t->arena, object);
	n->cap = object.n + 4;
	n->members = ARENA_ARRAY(t->arena, struct member, n->cap);
	if (object.n)
		memcpy(n->members, object.members, object.n * sizeof(*n->members));
	n->n = n->live = object.n;
	index_add(n, 0);
}

/* ---- lists ---- */

static struct chunk chunk_of(struct arena *a, const struct val *items, uint32_t n, uint32_t cap)
{
	struct chunk c = { .n = n, .cap = cap, .items = ARENA_ARRAY(a, struct val, cap) };
	if (n)
		memcpy(c.items, items, n * sizeof(*items));
	return c;
}

static void open_list(struct patch_tree *t, struct patch_node *n, struct val list)
{
	enum { FILL = CHUNK_MAX * 3 / 4 };
	uint32_t left = list.n;

	n->list = true;
	n->n = left <= FILL ? 1 : (left + FILL - 1) / FILL;
	n->cap = n->n;
	n->chunks = ARENA_ARRAY(t->arena, struct chunk, n->cap);
	for (uint32_t i = 0; i < n->n; i++) {
		uint32_t take = MIN(left, (uint32_t)FILL);
		n->chunks[i] = chunk_of(t->arena, list.items ? list.items + (size_t)i * FILL : NULL, take,
					MIN(take + 4, (uint32_t)CHUNK_MAX));
		left -= take;
	}
}

uint32_t patch_node_len(const struct patch_node *n)
{
	uint32_t len = 0;
	for (uint32_t i = 0; i < n->n; i++)
		len += n->chunks[i].n;
	return len;
}

/* The chunk of item *i, which becomes the place in that chunk; the place after the last item is in the last chunk. */
static uint32_t chunk_at(const struct patch_node *n, uint32_t *i)
{
	uint32_t c = 0;
	while (c + 1 < n->n && *i >= n->chunks[c].n)
		*i -= n->chunks[c++].n;
	return c;
}

struct val *patch_node_item(struct patch_node *n, uint32_t i)
{
	uint32_t c = chunk_at(n, &i);
	return &n->chunks[c].items[i];
}

/* Makes two chunks of the full one. */
static void chunk_split(struct patch_tree *t, struct patch_node *n, uint32_t c)
{
	enum { HALF = CHUNK_MAX / 2 };

	n->chunks = grow(t->arena, n->chunks, n->n, &n->cap, sizeof(*n->chunks));
	memmove(n->chunks + c + 1, n->chunks + c, (n->n - c) * sizeof(*n->chunks));
	n->n++;
	n->chunks[c + 1] = chunk_of(t->arena, n->chunks[c].items + HALF, CHUNK_MAX - HALF, CHUNK_MAX);
	n->chunks[c].n = HALF;
}

void patch_node_insert(struct patch_tree *t, struct patch_node *n, uint32_t i, struct val v)
{
	uint32_t c = chunk_at(n, &i);
	struct chunk *k = &n->chunks[c];

	if (k->n == CHUNK_MAX) {
		chunk_split(t, n, c);
		k = &n->chunks[c];
		if (i > k->n)
			i -= k++->n;
	}
	k->items = grow(t->arena, k->items, k->n, &k->cap, sizeof(*k->items));
	memmove(k->items + i + 1, k->items + i, (k->n - i) * sizeof(*k->items));
	k->items[i] = v;
	k->n++;
}

void patch_node_drop(struct patch_node *n, uint32_t i)
{
	uint32_t c = chunk_at(n, &i);
	struct chunk *k = &n->chunks[c];

	k->n--;
	memmove(k->items + i, k->items + i + 1, (k->n - i) * sizeof(*k->items));
	if (k->n == 0 && n->n > 1) {
		n->n--;
		memmove(k, k + 1, (n->n - c) * sizeof(*k));
	}
}

/* ---- places ---- */

bool patch_node_is_list(const struct patch_node *n) { return n->list; }

struct patch_node *patch_tree_open(struct patch_tree *t, struct val *place)
{
	struct patch_node *n = node_of(*place);

	if (n)
		return n;
	if (place->type == VAL_RAW && json_decode(t->arena, val_as_str(*place),
						  &(struct json_decode_options){ .sort_keys = true }, place, NULL) < 0)
		return NULL;
	if (place->type != VAL_OBJECT && place->type != VAL_LIST)
		return NULL;
	n = ARENA_NEW(t->arena, struct patch_node);
	map_init(&n->index);
	if (place->type == VAL_OBJECT)
		open_object(t, n, *place);
	else
		open_list(t, n, *place);
	n->next = t->nodes;
	t->nodes = n;
	*place = val_of_node(n);
	return n;
}

static int node_value(struct patch_tree *t, struct val v, unsigned depth, struct val *ret, struct err *err)
{
	struct patch_node *n = node_of(v);
	struct val_builder b = val_builder(t->arena);
	int r = 0;

	*ret = v;
	if (!n)
		return 0;
	if (depth > VAL_RECURSION_MAX)
		return err_set(err, ERR_INVALID, "exceeded max depth of %d", VAL_RECURSION_MAX);
	for (uint32_t i = 0; i < n->n; i++) {
		if (!n->list) {
			if ((r = node_value(t, n->members[i].val, depth + 1, &v, err)) < 0)
				return r;
			val_add_member(&b, n->members[i].key, v);
			continue;
		}
		for (uint32_t j = 0; j < n->chunks[i].n; j++) {
			if ((r = node_value(t, n->chunks[i].items[j], depth + 1, &v, err)) < 0)
				return r;
			val_add_item(&b, v);
		}
	}
	*ret = n->list ? val_end_list(&b) : patch_sorted(t->arena, val_end_object(&b));
	return 0;
}

int patch_tree_value(struct patch_tree *t, struct val *place, struct val *ret, struct err *err)
{
	return node_value(t, *place, 0, ret, err);
}

/* ---- comparing ---- */

static int node_equal(struct patch_tree *t, struct val *place, struct val v, unsigned depth, bool *ret, struct err *err);

static int object_equal(struct patch_tree *t, struct patch_node *n, struct val v, unsigned depth, bool *ret,
			struct err *err)
{
	int r = 0;

	v = patch_sorted(t->arena, v);
	*ret = n->live == v.n;
	for (uint32_t i = 0; *ret && r >= 0 && i < v.n; i++) {
		struct val *m = patch_node_member(n, atom_str(v.members[i].key));
		*ret = m != NULL;
		if (m)
			r = node_equal(t, m, v.members[i].val, depth + 1, ret, err);
	}
	return r;
}

static int list_equal(struct patch_tree *t, struct patch_node *n, struct val v, unsigned depth, bool *ret,
		      struct err *err)
{
	uint32_t at = 0;
	int r = 0;

	*ret = patch_node_len(n) == v.n;
	for (uint32_t c = 0; *ret && c < n->n; c++)
		for (uint32_t i = 0; *ret && r >= 0 && i < n->chunks[c].n; i++)
			r = node_equal(t, &n->chunks[c].items[i], v.items[at++], depth + 1, ret, err);
	return r;
}

static int node_equal(struct patch_tree *t, struct val *place, struct val v, unsigned depth, bool *ret, struct err *err)
{
	int r = patch_depth(depth, err);

	*ret = false;
	if (r < 0)
		return r;
	if (v.type < VAL_LIST) {
		*ret = place->type == v.type && val_equal(*place, v);
		return 0;
	}
	struct patch_node *n = patch_tree_open(t, place);
	if (!n || n->list != (v.type == VAL_LIST))
		return 0;
	return n->list ? list_equal(t, n, v, depth, ret, err) : object_equal(t, n, v, depth, ret, err);
}

int patch_tree_equal(struct patch_tree *t, struct val *place, struct val v, bool *ret, struct err *err)
{
	return node_equal(t, place, v, 0, ret, err);
}
