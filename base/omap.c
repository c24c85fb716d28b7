/*
 * A persistent B-tree. Nodes and items are reference counted and shared between maps:
 *
 *	omap -> root node -> child nodes ...
 *	                  -> items: key and value, one block each
 *
 * A map may change a node in place when it alone holds it: the node's count is 1 and so are those of all nodes above.
 * Every change walks down from the root and makes each node on its way `writable`, copying it when it is shared; the copy
 * adds a reference to everything below, which then counts as shared in turn. Counts go down with release and are tested
 * with acquire order, so that a map that finds itself alone sees the end of all other threads' reading.
 *
 * Both insertion and removal keep the tree in shape on the way down (full nodes are split, sparse ones filled before they
 * are entered), so that nothing has to be done on the way back and there is no recursion but that of freeing, which is as
 * deep as the tree: at most OMAP_DEPTH_MAX, enough for 8^16 items.
 */
#include "base/omap.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"

/* Larger nodes make lookups no faster (the keys are elsewhere) and copying under snapshots dearer. */
enum { ITEMS_MAX = 15, ITEMS_MIN = ITEMS_MAX / 2 };

struct item {
	atomic_uint refs;
	size_t n;
	void *value;
	char key[];
};

struct omap_node {
	atomic_uint refs;
	uint16_t n;
	bool leaf;
	struct item *items[ITEMS_MAX];
	struct omap_node *kids[]; /* n + 1 of them, with room for ITEMS_MAX + 1; none in a leaf */
};

struct omap {
	struct omap_node *root; /* NULL while empty */
	size_t len;
	const struct omap_type *type;
};

static str item_key(const struct item *item) { return str_span(item->key, item->n); }

static struct item *item_new(const struct omap_type *type, str key, void *value)
{
	struct item *item = mem_alloc(sizeof(*item) + key.n);
	atomic_init(&item->refs, 1);
	item->n = key.n;
	item->value = value;
	if (key.n)
		memcpy(item->key, key.p, key.n);
	type->ref(value);
	return item;
}

/* Gives up one reference; true when it was the last. */
static bool release(atomic_uint *refs) { return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1; }
static void acquire(atomic_uint *refs) { atomic_fetch_add_explicit(refs, 1, memory_order_relaxed); }
static bool is_alone(atomic_uint *refs) { return atomic_load_explicit(refs, memory_order_acquire) == 1; }

static void item_unref(const struct omap_type *type, struct item *item)
{
	if (!release(&item->refs))
		return;
	type->unref(item->value);
	free(item);
}

static struct omap_node *node_new(bool leaf)
{
	size_t kids = leaf ? 0 : ITEMS_MAX + 1;
	struct omap_node *node = mem_alloc(sizeof(*node) + kids * sizeof(node->kids[0]));
	atomic_init(&node->refs, 1);
	node->n = 0;
	node->leaf = leaf;
	return node;
}

static void node_unref(const struct omap_type *type, struct omap_node *node)
{
	if (!release(&node->refs))
		return;
	for (size_t i = 0; i < node->n; i++)
		item_unref(type, node->items[i]);
	for (size_t i = 0; !node->leaf && i <= node->n; i++)
		node_unref(type, node->kids[i]);
	free(node);
}

static struct omap_node *node_copy(const struct omap_node *from)
{
	struct omap_node *node = node_new(from->leaf);
	node->n = from->n;
	for (size_t i = 0; i < from->n; i++) {
		node->items[i] = from->items[i];
		acquire(&node->items[i]->refs);
	}
	for (size_t i = 0; !from->leaf && i <= from->n; i++) {
		node->kids[i] = from->kids[i];
		acquire(&node->kids[i]->refs);
	}
	return node;
}

/* The node at *slot, first replaced by a copy when it is shared. The slot itself is in a writable node or the map. */
static struct omap_node *writable(const struct omap_type *type, struct omap_node **slot)
{
	if (!is_alone(&(*slot)->refs)) {
		struct omap_node *copy = node_copy(*slot);
		node_unref(type, *slot);
		*slot = copy;
	}
	return *slot;
}

/* The place of the first key that is not less than key; *ret_found when it is key itself. */
static size_t node_search(const struct omap_node *node, str key, bool *ret_found)
{
	size_t lo = 0, hi = node->n;
	*ret_found = false;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int c = str_cmp(item_key(node->items[mid]), key);
		if (c == 0) {
			*ret_found = true;
			return mid;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Moves an array's tail by one place, to open a gap at `at` or to close it. */
#define GAP_OPEN(array, at, n) memmove(&(array)[(at) + 1], &(array)[at], ((n) - (at)) * sizeof((array)[0]))
#define GAP_CLOSE(array, at, n) memmove(&(array)[at], &(array)[(at) + 1], ((n) - (at) - 1) * sizeof((array)[0]))

/* Splits the full kid i (writable, like its parent) in two, with its middle item between them in the parent. */
static void node_split(struct omap_node *parent, size_t i)
{
	struct omap_node *left = parent->kids[i], *right = node_new(left->leaf);

	right->n = ITEMS_MAX - ITEMS_MIN - 1;
	left->n = ITEMS_MIN;
	memcpy(right->items, left->items + ITEMS_MIN + 1, right->n * sizeof(right->items[0]));
	if (!left->leaf)
		memcpy(right->kids, left->kids + ITEMS_MIN + 1, (right->n + 1u) * sizeof(right->kids[0]));

	GAP_OPEN(parent->items, i, parent->n);
	GAP_OPEN(parent->kids, i + 1, parent->n + 1u);
	parent->items[i] = left->items[ITEMS_MIN];
	parent->kids[i + 1] = right;
	parent->n++;
}

static void replace_value(const struct omap_type *type, struct item **slot, str key, void *value)
{
	struct item *item = *slot;
	if (!is_alone(&item->refs)) {
		*slot = item_new(type, key, value);
		item_unref(type, item);
		return;
	}
	void *before = item->value;
	type->ref(value);
	item->value = value;
	type->unref(before);
}

bool omap_put(struct omap *m, str key, void *value)
{
	assert(value);
	if (!m->root)
		m->root = node_new(true);
	struct omap_node *node = writable(m->type, &m->root);
	if (node->n == ITEMS_MAX) {
		m->root = node_new(false);
		m->root->kids[0] = node;
		node_split(m->root, 0);
		node = m->root;
	}
	for (;;) {
		bool found;
		size_t i = node_search(node, key, &found);
		if (found) {
			replace_value(m->type, &node->items[i], key, value);
			return false;
		}
		if (node->leaf) {
			GAP_OPEN(node->items, i, node->n);
			node->items[i] = item_new(m->type, key, value);
			node->n++;
			m->len++;
			return true;
		}
		struct omap_node *kid = writable(m->type, &node->kids[i]);
		if (kid->n == ITEMS_MAX)
			node_split(node, i); /* then look again in this node: the key may be the item that came up */
		else
			node = kid;
	}
}

/* Makes one node of kid i, the item after it, and kid i + 1. */
static struct omap_node *node_merge(const struct omap_type *type, struct omap_node *parent, size_t i)
{
	struct omap_node *left = writable(type, &parent->kids[i]), *right = writable(type, &parent->kids[i + 1]);

	left->items[left->n] = parent->items[i];
	memcpy(left->items + left->n + 1, right->items, right->n * sizeof(right->items[0]));
	if (!left->leaf)
		memcpy(left->kids + left->n + 1, right->kids, (right->n + 1u) * sizeof(right->kids[0]));
	left->n = (uint16_t)(left->n + 1 + right->n);
	free(right);

	GAP_CLOSE(parent->items, i, parent->n);
	GAP_CLOSE(parent->kids, i + 1, parent->n + 1u);
	parent->n--;
	return left;
}

/* Moves an item from kid i - 1 through the parent to the front of kid i. */
static void rotate_right(const struct omap_type *type, struct omap_node *parent, size_t i)
{
	struct omap_node *from = writable(type, &parent->kids[i - 1]), *to = writable(type, &parent->kids[i]);

	GAP_OPEN(to->items, 0, to->n);
	to->items[0] = parent->items[i - 1];
	if (!to->leaf) {
		GAP_OPEN(to->kids, 0, to->n + 1u);
		to->kids[0] = from->kids[from->n];
	}
	parent->items[i - 1] = from->items[from->n - 1];
	to->n++;
	from->n--;
}

/* Moves an item from kid i + 1 through the parent to the end of kid i. */
static void rotate_left(const struct omap_type *type, struct omap_node *parent, size_t i)
{
	struct omap_node *from = writable(type, &parent->kids[i + 1]), *to = writable(type, &parent->kids[i]);

	to->items[to->n] = parent->items[i];
	parent->items[i] = from->items[0];
	GAP_CLOSE(from->items, 0, from->n);
	if (!to->leaf) {
		to->kids[to->n + 1] = from->kids[0];
		GAP_CLOSE(from->kids, 0, from->n + 1u);
	}
	to->n++;
	from->n--;
}

/* Makes kid i writable with more than the least number of items; the node that now covers its keys. */
static struct omap_node *fill(const struct omap_type *type, struct omap_node *parent, size_t i)
{
	if (parent->kids[i]->n <= ITEMS_MIN) {
		if (i > 0 && parent->kids[i - 1]->n > ITEMS_MIN)
			rotate_right(type, parent, i);
		else if (i < parent->n && parent->kids[i + 1]->n > ITEMS_MIN)
			rotate_left(type, parent, i);
		else
			return node_merge(type, parent, i < parent->n ? i : i - 1);
	}
	return writable(type, &parent->kids[i]);
}

enum target { TARGET_KEY, TARGET_FIRST, TARGET_LAST };

/*
 * Takes key, which is there, out of the tree under node (writable, not sparse or the root). A key in an inner node is
 * replaced by its neighbour, which is taken out of a leaf below; if both kids are sparse they become one around it.
 */
static struct item *take(const struct omap_type *type, struct omap_node *node, str key)
{
	enum target target = TARGET_KEY;
	struct item **hole = NULL;

	for (;;) {
		bool found = false;
		size_t i = target == TARGET_FIRST ? 0 : target == TARGET_LAST ? node->n : node_search(node, key, &found);
		if (node->leaf) {
			i -= target == TARGET_LAST;
			struct item *item = node->items[i];
			GAP_CLOSE(node->items, i, node->n);
			node->n--;
			if (!hole)
				return item;
			struct item *taken = *hole;
			*hole = item;
			return taken;
		}
		if (!found) {
			node = fill(type, node, i);
		} else if (node->kids[i]->n > ITEMS_MIN) {
			hole = &node->items[i];
			target = TARGET_LAST;
			node = writable(type, &node->kids[i]);
		} else if (node->kids[i + 1]->n > ITEMS_MIN) {
			hole = &node->items[i];
			target = TARGET_FIRST;
			node = writable(type, &node->kids[i + 1]);
		} else {
			node = node_merge(type, node, i);
		}
	}
}

bool omap_remove(struct omap *m, str key)
{
	if (!omap_get(m, key))
		return false; /* without having copied anything */
	struct omap_node *root = writable(m->type, &m->root);
	struct item *item = take(m->type, root, key);
	if (root->n == 0) {
		m->root = root->leaf ? NULL : root->kids[0];
		free(root);
	}
	m->len--;
	item_unref(m->type, item);
	return true;
}

void *omap_get(const struct omap *m, str key)
{
	const struct omap_node *node = m->root;
	while (node) {
		bool found;
		size_t i = node_search(node, key, &found);
		if (found)
			return node->items[i]->value;
		node = node->leaf ? NULL : node->kids[i];
	}
	return NULL;
}

size_t omap_len(const struct omap *m) { return m->len; }

struct omap *omap_new(const struct omap_type *type)
{
	struct omap *m = mem_zalloc(sizeof(*m));
	m->type = type;
	return m;
}

struct omap *omap_snapshot(const struct omap *m)
{
	struct omap *s = mem_alloc(sizeof(*s));
	*s = *m;
	if (s->root)
		acquire(&s->root->refs);
	return s;
}

void omap_free(struct omap *m)
{
	if (!m)
		return;
	if (m->root)
		node_unref(m->type, m->root);
	free(m);
}

void omap_freep(struct omap **m) { omap_free(*m); }

static void push(struct omap_iter *it, const struct omap_node *node, size_t at)
{
	assert(it->depth < OMAP_DEPTH_MAX);
	it->path[it->depth].node = node;
	it->path[it->depth].at = (unsigned)at;
	it->depth++;
}

void omap_seek(struct omap_iter *it, const struct omap *m, str from)
{
	const struct omap_node *node = m->root;
	it->depth = 0;
	while (node) {
		bool found;
		size_t i = node_search(node, from, &found);
		push(it, node, i);
		node = node->leaf || found ? NULL : node->kids[i];
	}
}

void *omap_next(struct omap_iter *it, str *ret_key)
{
	while (it->depth && it->path[it->depth - 1].at == it->path[it->depth - 1].node->n)
		it->depth--;
	if (it->depth == 0)
		return NULL;

	const struct omap_node *node = it->path[it->depth - 1].node;
	unsigned at = it->path[it->depth - 1].at++;
	const struct item *item = node->items[at];
	if (!node->leaf) {
		for (node = node->kids[at + 1]; !node->leaf; node = node->kids[0])
			push(it, node, 0);
		push(it, node, 0);
	}
	if (ret_key)
		*ret_key = item_key(item);
	return item->value;
}
