#include "codec/val.h"

#include <stdlib.h>

#include "base/mem.h"

struct val val_list(struct arena *a, const struct val *items, size_t n)
{
	struct val *copy = ARENA_ARRAY(a, struct val, n);
	if (n)
		memcpy(copy, items, n * sizeof(*items));
	return (struct val){ .type = VAL_LIST, .n = (uint32_t)n, .items = copy };
}

struct val val_object(struct arena *a, const struct member *members, size_t n)
{
	struct member *copy = ARENA_ARRAY(a, struct member, n);
	uint32_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (val_exists(members[i].val))
			copy[kept++] = members[i];
	return (struct val){ .type = VAL_OBJECT, .n = kept, .members = copy };
}

/* ---- builders ---- */

/* Room for one more element of the given size; what was there is copied when the array grows. */
static void *builder_next(struct val_builder *b, size_t size)
{
	if (b->n == b->cap) {
		size_t cap = b->cap ? (size_t)b->cap * 2 : 8;
		char *room = arena_array_of(b->arena, cap <= UINT32_MAX ? cap : SIZE_MAX, size, _Alignof(struct member));
		if (b->n)
			memcpy(room, b->room, b->n * size);
		b->room = room;
		b->cap = (uint32_t)cap;
	}
	return (char *)b->room + b->n++ * size;
}

void val_add_item(struct val_builder *b, struct val item) { *(struct val *)builder_next(b, sizeof(item)) = item; }

void val_add_member(struct val_builder *b, atom key, struct val v)
{
	if (val_exists(v))
		*(struct member *)builder_next(b, sizeof(struct member)) = (struct member){ key, v };
}

struct val val_end_list(struct val_builder *b) { return (struct val){ .type = VAL_LIST, .n = b->n, .items = b->room }; }
struct val val_end_object(struct val_builder *b) { return (struct val){ .type = VAL_OBJECT, .n = b->n, .members = b->room }; }

/* ---- reading ---- */

bool val_is_zero(struct val v)
{
	switch ((enum val_type)v.type) {
	case VAL_NONE:
	case VAL_NULL: return true;
	case VAL_BOOL: return !v.b;
	case VAL_INT: return v.i == 0;
	case VAL_DOUBLE: return v.d == 0;
	case VAL_STRING:
	case VAL_RAW:
	case VAL_LIST:
	case VAL_OBJECT: return v.n == 0;
	}
	return false;
}

/* Position of the last member whose key is that known name, or -1. Reading trees is mostly this: four at a time. */
static ptrdiff_t known_index(const struct member *members, ptrdiff_t n, atom key)
{
	for (; n >= 4; n -= 4) {
		const struct member *m = members + n;
		if (m[-1].key == key)
			return n - 1;
		if (m[-2].key == key)
			return n - 2;
		if (m[-3].key == key)
			return n - 3;
		if (m[-4].key == key)
			return n - 4;
	}
	while (n > 0 && members[n - 1].key != key)
		n--;
	return n - 1;
}

/* Position of the last member with that key, or -1. */
static ptrdiff_t member_index(struct val object, atom key)
{
	if (object.type != VAL_OBJECT)
		return -1;
	if (LIKELY(key < ATOM_LIMIT))
		return known_index(object.members, object.n, key);
	ptrdiff_t i = (ptrdiff_t)object.n - 1;
	while (i >= 0 && !atom_eq(object.members[i].key, key))
		i--;
	return i;
}

struct val val_member(struct val object, atom key)
{
	ptrdiff_t i = member_index(object, key);
	return i < 0 ? VAL_EMPTY : object.members[i].val;
}

struct val val_find(struct val object, str key)
{
	atom known = atom_find(key);
	if (known)
		return val_member(object, known);
	if (object.type == VAL_OBJECT)
		for (uint32_t i = object.n; i-- > 0;)
			if (object.members[i].key >= ATOM_LIMIT && str_eq(atom_str(object.members[i].key), key))
				return object.members[i].val;
	return VAL_EMPTY;
}

struct val val_path(struct val v, const atom *path, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v = val_member(v, path[i]);
	return v;
}

/* ---- editing ---- */

struct val val_put(struct arena *a, struct val object, atom key, struct val v)
{
	uint32_t n = object.type == VAL_OBJECT ? object.n : 0;
	ptrdiff_t at = member_index(object, key);

	if (at < 0 && !val_exists(v))
		return n ? object : VAL_EMPTY_OBJECT;
	if (at >= 0 && val_same(object.members[at].val, v))
		return object;
	struct member *members = ARENA_ARRAY(a, struct member, n + 1);
	if (n)
		memcpy(members, object.members, n * sizeof(*members));
	if (at < 0) {
		members[n++] = (struct member){ key, v };
	} else if (val_exists(v)) {
		members[at].val = v;
	} else {
		n--;
		memmove(members + at, members + at + 1, (n - (size_t)at) * sizeof(*members));
	}
	return (struct val){ .type = VAL_OBJECT, .n = n, .members = members };
}

enum { PATH_MAX_ATOMS = 16 };

struct val val_put_path(struct arena *a, struct val object, const atom *path, size_t n, struct val v)
{
	struct val spine[PATH_MAX_ATOMS];

	if (n > PATH_MAX_ATOMS || (!val_exists(v) && !val_exists(val_path(object, path, n))))
		return object;
	for (size_t i = 0; i < n; i++) {
		spine[i] = object;
		object = val_member(object, path[i]);
	}
	while (n-- > 0)
		v = val_put(a, spine[n], path[n], v);
	return v;
}

struct val val_list_set(struct arena *a, struct val list, size_t i, struct val v)
{
	struct val copy = val_list(a, list.items, val_len(list));
	if (i < copy.n)
		((struct val *)copy.items)[i] = v;
	return copy;
}

struct val val_list_insert(struct arena *a, struct val list, size_t i, struct val v)
{
	size_t n = val_len(list);
	struct val *items = ARENA_ARRAY(a, struct val, n + 1);

	i = MIN(i, n);
	if (i)
		memcpy(items, list.items, i * sizeof(*items));
	items[i] = v;
	if (n > i)
		memcpy(items + i + 1, list.items + i, (n - i) * sizeof(*items));
	return (struct val){ .type = VAL_LIST, .n = (uint32_t)n + 1, .items = items };
}

struct val val_list_append(struct arena *a, struct val list, struct val v)
{
	return val_list_insert(a, list, val_len(list), v);
}

struct val val_list_remove(struct arena *a, struct val list, size_t i)
{
	size_t n = val_len(list);
	if (i >= n)
		return list;
	struct val copy = val_list(a, list.items, n);
	struct val *items = (struct val *)copy.items;
	memmove(items + i, items + i + 1, (n - i - 1) * sizeof(*items));
	copy.n--;
	return copy;
}

/* ---- sorting ---- */

static int place_cmp(const void *x, const void *y, void *members)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	const struct member *m = members;
	int c = str_cmp(atom_str(m[a].key), atom_str(m[b].key));
	return c ? c : a < b ? -1 : 1;
}

struct val val_sorted(struct arena *a, struct val object)
{
	const struct member *m = object.members;
	uint32_t n = object.n, in_order = 1;

	while (in_order < n && str_cmp(atom_str(m[in_order - 1].key), atom_str(m[in_order].key)) < 0)
		in_order++;
	if (in_order >= n)
		return object;
	CLEANUP(mem_freep) uint32_t *places = mem_array(n, sizeof(*places));
	for (uint32_t i = 0; i < n; i++)
		places[i] = i;
	qsort_r(places, n, sizeof(*places), place_cmp, (void *)(uintptr_t)m);
	struct member *sorted = ARENA_ARRAY(a, struct member, n);
	object.members = sorted;
	object.n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (i + 1 == n || !atom_eq(m[places[i]].key, m[places[i + 1]].key))
			sorted[object.n++] = m[places[i]];
	return object;
}
