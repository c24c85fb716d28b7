/*
 * Lists and maps, and when values are equal. Numbers are equal across their types (1 == 1u == 1.0), also as keys of maps. Values
 * nest no deeper than VAL_RECURSION_MAX here; beyond that an evaluation ends as if it had cost too much.
 */
#include "codec/quantity.h"
#include "machinery/cel_priv.h"
#include "machinery/cel_url.h"
#include "machinery/ip.h"
#include "machinery/semver.h"

enum { INDEX_FROM = 8, LIST_MAX = 1 << 30, JOIN_DEPTH_MAX = 32, COPY_MAX = 64 };

/* ---- lists ---- */

struct cel_val cel_list_take(struct arena *a, const struct cel_val *items, size_t n)
{
	struct cel_list *l = ARENA_NEW(a, struct cel_list);

	l->n = (uint32_t)n;
	l->items = items;
	return (struct cel_val){ .kind = CEL_LIST, .list = l };
}

struct cel_val cel_of_list(struct arena *a, const struct cel_val *items, size_t n)
{
	struct cel_val *copy = ARENA_ARRAY(a, struct cel_val, n);

	if (n)
		memcpy(copy, items, n * sizeof(*items));
	return cel_list_take(a, copy, n);
}

static struct cel_val list_at(struct arena *a, const struct cel_list *l, size_t i)
{
	while (l->joined) {
		bool right = i >= l->left->n;
		i -= right ? l->left->n : 0;
		l = right ? l->right : l->left;
	}
	if (l->tree.type == VAL_LIST)
		return cel_of_val(a, l->elem ? l->elem : &cel_type_dyn, l->tree.items[i]);
	return l->items[i];
}

struct cel_val cel_at(struct arena *a, struct cel_val list, size_t i)
{
	return list.kind == CEL_LIST && i < list.list->n ? list_at(a, list.list, i) : cel_of_null();
}

/* left with the items of right added to its array, or to a new one. */
static struct cel_val list_append(struct arena *a, const struct cel_list *left, const struct cel_list *right)
{
	struct cel_list *l = ARENA_NEW(a, struct cel_list);
	struct cel_val *items = (struct cel_val *)(uintptr_t)left->items;

	*l = *left;
	l->joined = false;
	l->tree = VAL_EMPTY;
	l->n = left->n + right->n;
	if (left->joined || !left->room || left->room->used != left->n || left->room->cap < l->n) {
		l->room = ARENA_NEW(a, struct cel_room);
		l->room->cap = MAX(l->n * 2, 8u);
		items = ARENA_ARRAY(a, struct cel_val, l->room->cap);
		for (size_t i = 0; i < left->n; i++)
			items[i] = list_at(a, left, i);
	}
	for (size_t i = 0; i < right->n; i++)
		items[left->n + i] = list_at(a, right, i);
	l->items = items;
	l->room->used = l->n;
	l->depth = 0;
	return (struct cel_val){ .kind = CEL_LIST, .list = l };
}

struct cel_val cel_list_join(struct cel_eval *ev, struct cel_val x, struct cel_val y)
{
	const struct cel_list *left = x.list, *right = y.list;

	if (!left->n)
		return y;
	if (!right->n)
		return x;
	if ((uint64_t)left->n + right->n > LIST_MAX)
		return cel_fail(ev, "list is too long");
	bool room = !left->joined && left->room && left->room->used == left->n;
	unsigned depth = MAX(left->depth, right->depth) + 1u;
	if ((right->n <= COPY_MAX && (room || left->n <= COPY_MAX)) || depth > JOIN_DEPTH_MAX) {
		if (!cel_work(ev, right->n + (room ? 0 : left->n)))
			return cel_of_null();
		return list_append(ev->arena, left, right);
	}
	struct cel_list *l = ARENA_NEW(ev->arena, struct cel_list);
	l->n = left->n + right->n;
	l->joined = true;
	l->depth = (uint8_t)depth;
	l->left = left;
	l->right = right;
	return (struct cel_val){ .kind = CEL_LIST, .list = l };
}

/* ---- maps ---- */

static bool whole_double(double d, struct cel_val *ret)
{
	if (d >= -0x1p63 && d < 0x1p63 && (double)(int64_t)d == d) {
		*ret = cel_of_int((int64_t)d);
		return true;
	}
	if (d >= 0x1p63 && d < 0x1p64 && (double)(uint64_t)d == d) {
		*ret = cel_of_uint((uint64_t)d);
		return true;
	}
	return false;
}

/* Numbers that are equal as one and the same: an int if it fits. */
static struct cel_val key_form(struct cel_val k)
{
	if (k.kind == CEL_DOUBLE)
		whole_double(k.d, &k);
	if (k.kind == CEL_UINT && k.u <= INT64_MAX)
		return cel_of_int((int64_t)k.u);
	return k;
}

static bool key_eq(struct cel_val x, struct cel_val y)
{
	if (x.kind == CEL_STRING || y.kind == CEL_STRING)
		return x.kind == y.kind && str_eq(cel_text(x), cel_text(y));
	x = key_form(x);
	y = key_form(y);
	return x.kind == y.kind && (x.kind == CEL_BOOL ? x.b == y.b : x.kind == CEL_NULL || (x.kind <= CEL_DOUBLE && x.i == y.i));
}

static uint64_t key_hash(struct cel_val k)
{
	if (k.kind == CEL_STRING)
		return str_hash(cel_text(k));
	k = key_form(k);
	return ((k.kind == CEL_BOOL ? (uint64_t)k.b : k.u) + k.kind) * 0x9e3779b97f4a7c15u >> 7;
}

/* The position of a key in the pairs of a map, or -1. */
static int64_t pair_find(const struct cel_map *m, struct cel_val key)
{
	if (!m->index) {
		for (uint32_t i = 0; i < m->n; i++)
			if (key_eq(m->pairs[i].key, key))
				return i;
		return -1;
	}
	for (uint64_t h = key_hash(key);; h++) {
		uint32_t at = m->index[h & m->mask];
		if (!at)
			return -1;
		/* What was added after this map was made is not of it. */
		if (at - 1 < m->n && key_eq(m->pairs[at - 1].key, key))
			return at - 1;
	}
}

static void index_put(struct cel_map *m, uint32_t i)
{
	uint64_t h = key_hash(m->pairs[i].key);

	while (m->index[h & m->mask])
		h++;
	m->index[h & m->mask] = i + 1;
}

/* A table with room for cap members that holds those of the map. */
static void index_make(struct arena *a, struct cel_map *m, uint32_t cap)
{
	uint32_t size = 16;

	while (size < cap * 2)
		size *= 2;
	m->index = ARENA_ARRAY(a, uint32_t, size);
	memset(m->index, 0, size * sizeof(*m->index));
	m->mask = size - 1;
	for (uint32_t i = 0; i < m->n; i++)
		index_put(m, i);
}

struct cel_val cel_of_pairs(struct arena *a, const struct cel_type *object, const struct cel_pair *pairs, size_t n,
			    const struct cel_val *missing)
{
	struct cel_map *m = ARENA_NEW(a, struct cel_map);

	m->n = (uint32_t)n;
	m->pairs = pairs;
	m->object = object;
	m->missing = missing;
	if (n > INDEX_FROM)
		index_make(a, m, m->n);
	return (struct cel_val){ .kind = object ? CEL_OBJECT : CEL_MAP, .map = m };
}

struct cel_val cel_map_new(struct arena *a)
{
	static const struct cel_pair none;

	return cel_of_pairs(a, NULL, &none, 0, NULL);
}

/* Its own array with twice the room, when another map has added to the old one or it is full. */
static struct cel_map *map_grown(struct arena *a, const struct cel_map *old, size_t n)
{
	struct cel_map *m = ARENA_NEW(a, struct cel_map);

	*m = *old;
	if (old->pairs && old->room && old->room->used == old->n && old->room->cap > old->n)
		return m;
	m->room = ARENA_NEW(a, struct cel_room);
	m->room->cap = MAX((uint32_t)n * 2, 4u);
	m->room->used = (uint32_t)n;
	struct cel_pair *pairs = ARENA_ARRAY(a, struct cel_pair, m->room->cap);
	for (size_t i = 0; i < n; i++)
		cel_member_at(a, (struct cel_val){ .kind = CEL_MAP, .map = old }, i, &pairs[i].key, &pairs[i].val);
	m->pairs = pairs;
	m->tree = VAL_EMPTY;
	m->n = (uint32_t)n;
	m->index = NULL;
	if (m->room->cap > INDEX_FROM)
		index_make(a, m, m->room->cap);
	return m;
}

bool cel_map_add(struct arena *a, struct cel_val *map, struct cel_val key, struct cel_val val)
{
	if (cel_map_has(*map, key))
		return false;
	struct cel_map *m = map_grown(a, map->map, cel_len(*map));
	struct cel_pair *pairs = (struct cel_pair *)(uintptr_t)m->pairs;
	pairs[m->n] = (struct cel_pair){ key, val };
	if (m->index)
		index_put(m, m->n);
	m->n++;
	m->room->used = m->n;
	*map = (struct cel_val){ .kind = CEL_MAP, .map = m };
	return true;
}

void cel_map_set(struct arena *a, struct cel_val *map, struct cel_val key, struct cel_val val)
{
	int64_t i = pair_find(map->map, key);

	/* Only what is being built is changed like this: nobody else has seen it. */
	if (i >= 0)
		((struct cel_pair *)(uintptr_t)map->map->pairs)[i].val = val;
	else
		(void)cel_map_add(a, map, key, val);
}

static const struct cel_type *member_type(struct arena *a, const struct cel_map *m, str name)
{
	const struct cel_type *t = m->object ? cel_type_field(a, m->object, name) : m->elem;

	return t ? t : &cel_type_dyn;
}

static bool not_found(const struct cel_map *m, struct cel_val *ret)
{
	if (!m->missing)
		return false;
	*ret = *m->missing;
	return true;
}

bool cel_field_find(struct arena *a, struct cel_val map, atom name, str field, struct cel_val *ret)
{
	const struct cel_map *m = map.map;

	if (m->pairs) {
		int64_t i = pair_find(m, cel_of_str(field));
		if (i < 0)
			return not_found(m, ret);
		*ret = m->pairs[i].val;
		return true;
	}
	struct val v = val_member(m->tree, name);
	if (!val_exists(v))
		return not_found(m, ret);
	*ret = cel_of_val(a, member_type(a, m, field), v);
	return true;
}

bool cel_map_has(struct cel_val map, struct cel_val key)
{
	if (map.map->pairs)
		return pair_find(map.map, key) >= 0;
	return key.kind == CEL_STRING && val_exists(val_find(map.map->tree, cel_text(key)));
}

bool cel_map_find(struct arena *a, struct cel_val map, struct cel_val key, struct cel_val *ret)
{
	const struct cel_map *m = map.map;

	if (m->pairs) {
		int64_t i = pair_find(m, key);
		if (i < 0)
			return not_found(m, ret);
		*ret = m->pairs[i].val;
		return true;
	}
	struct val v = key.kind == CEL_STRING ? val_find(m->tree, cel_text(key)) : VAL_EMPTY;
	if (!val_exists(v))
		return not_found(m, ret);
	*ret = cel_of_val(a, member_type(a, m, cel_text(key)), v);
	return true;
}

void cel_member_at(struct arena *a, struct cel_val map, size_t i, struct cel_val *ret_key, struct cel_val *ret_val)
{
	const struct cel_map *m = map.map;

	if (m->pairs) {
		*ret_key = m->pairs[i].key;
		*ret_val = m->pairs[i].val;
		return;
	}
	str name = atom_str(m->tree.members[i].key);
	*ret_key = cel_of_str(name);
	*ret_val = cel_of_val(a, member_type(a, m, name), m->tree.members[i].val);
}

size_t cel_len(struct cel_val v)
{
	if (v.kind == CEL_LIST)
		return v.list->n;
	if (v.kind == CEL_MAP || v.kind == CEL_OBJECT)
		return v.map->n;
	return 0;
}

/* ---- others ---- */

struct cel_val cel_of_quantity(struct arena *a, const struct quantity *q)
{
	struct quantity *copy = ARENA_NEW(a, struct quantity);

	*copy = *q;
	return (struct cel_val){ .kind = CEL_QUANTITY, .quantity = copy };
}

struct cel_val cel_of_semver(struct arena *a, const struct semver *v)
{
	struct semver *copy = ARENA_NEW(a, struct semver);

	*copy = *v;
	return (struct cel_val){ .kind = CEL_SEMVER, .semver = copy };
}

struct cel_val cel_timestamp(int64_t seconds, int32_t nanos, int zone)
{
	return (struct cel_val){ .kind = CEL_TIMESTAMP, .zone = (int16_t)zone, .n = (uint32_t)nanos, .i = seconds };
}

/* "+02:00" */
int cel_zone_of(str text)
{
	if (text.n < 6 || text.p[text.n - 1] == 'Z')
		return 0;
	const char *p = text.p + text.n - 6;
	int minutes = ((p[1] - '0') * 10 + p[2] - '0') * 60 + (p[4] - '0') * 10 + p[5] - '0';
	return p[0] == '-' ? -minutes : minutes;
}

struct cel_val cel_optional_of(struct arena *a, struct cel_val v)
{
	struct cel_val *copy = ARENA_NEW(a, struct cel_val);

	*copy = v;
	return (struct cel_val){ .kind = CEL_OPTIONAL, .optional = copy };
}

size_t cel_runes(str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += (s.p[i] & 0xc0) != 0x80;
	return n;
}

str cel_type_name(struct cel_val v)
{
	if (v.kind == CEL_OBJECT)
		return v.map->object->name;
	return cel_type_runtime_name(&(struct cel_type){ .kind = v.kind });
}

/* ---- comparing ---- */

static int order(bool less, bool more) { return less ? -1 : more; }

static int compare_int_double(int64_t i, double d)
{
	if (d != d)
		return 2;
	if (d >= 0x1p63)
		return -1;
	if (d < -0x1p63)
		return 1;
	int64_t whole = (int64_t)d;
	return i != whole ? order(i < whole, true) : order((double)whole < d, (double)whole > d);
}

static int compare_uint_double(uint64_t u, double d)
{
	if (d != d)
		return 2;
	if (d >= 0x1p64)
		return -1;
	if (d < 0)
		return 1;
	uint64_t whole = (uint64_t)d;
	return u != whole ? order(u < whole, true) : order((double)whole < d, false);
}

static int reversed(int c) { return c == 1 || c == -1 ? -c : c; }

static int compare_numbers(struct cel_val x, struct cel_val y)
{
	if (x.kind == y.kind) {
		if (x.kind == CEL_INT)
			return order(x.i < y.i, x.i > y.i);
		if (x.kind == CEL_UINT)
			return order(x.u < y.u, x.u > y.u);
		return x.d != x.d || y.d != y.d ? 2 : order(x.d < y.d, x.d > y.d);
	}
	if (x.kind == CEL_DOUBLE)
		return reversed(compare_numbers(y, x));
	if (y.kind == CEL_DOUBLE)
		return x.kind == CEL_INT ? compare_int_double(x.i, y.d) : compare_uint_double(x.u, y.d);
	if (x.kind == CEL_UINT)
		return reversed(compare_numbers(y, x));
	return x.i < 0 ? -1 : order((uint64_t)x.i < y.u, (uint64_t)x.i > y.u);
}

static bool is_number(struct cel_val v) { return v.kind == CEL_INT || v.kind == CEL_UINT || v.kind == CEL_DOUBLE; }

int cel_compare(struct cel_val x, struct cel_val y)
{
	int c;

	if (is_number(x) && is_number(y))
		return compare_numbers(x, y);
	if (x.kind != y.kind)
		return -2;
	switch (x.kind) {
	case CEL_BOOL:
		return order(x.b < y.b, x.b > y.b);
	case CEL_STRING:
	case CEL_BYTES:
		c = str_cmp(cel_text(x), cel_text(y));
		return order(c < 0, c > 0);
	case CEL_DURATION:
		return order(x.i < y.i, x.i > y.i);
	case CEL_TIMESTAMP:
		return x.i != y.i ? order(x.i < y.i, true) : order(x.n < y.n, x.n > y.n);
	default:
		return -2;
	}
}

static bool equals(struct cel_eval *ev, struct cel_val x, struct cel_val y, unsigned depth);

static bool lists_equal(struct cel_eval *ev, struct cel_val x, struct cel_val y, unsigned depth)
{
	if (x.list->n != y.list->n)
		return false;
	for (size_t i = 0; i < x.list->n; i++)
		if (!equals(ev, list_at(ev->arena, x.list, i), list_at(ev->arena, y.list, i), depth))
			return false;
	return true;
}

static bool maps_equal(struct cel_eval *ev, struct cel_val x, struct cel_val y, unsigned depth)
{
	struct cel_val key, a, b;

	if (x.map->n != y.map->n || (x.kind == CEL_OBJECT && !cel_type_same(x.map->object, y.map->object)))
		return false;
	for (size_t i = 0; i < x.map->n; i++) {
		cel_member_at(ev->arena, x, i, &key, &a);
		if (!cel_map_find(ev->arena, y, key, &b) || !equals(ev, a, b, depth))
			return false;
	}
	return true;
}

static bool same_type_equals(struct cel_eval *ev, struct cel_val x, struct cel_val y, unsigned depth)
{
	switch (x.kind) {
	case CEL_NULL:
		return true;
	case CEL_LIST:
		return lists_equal(ev, x, y, depth);
	case CEL_MAP:
	case CEL_OBJECT:
		return maps_equal(ev, x, y, depth);
	case CEL_TYPE:
		return str_eq(cel_type_runtime_name(x.type), cel_type_runtime_name(y.type));
	case CEL_OPTIONAL:
		if (!x.optional || !y.optional)
			return x.optional == y.optional;
		return equals(ev, *x.optional, *y.optional, depth);
	case CEL_QUANTITY:
		return quantity_cmp(*x.quantity, *y.quantity) == 0;
	case CEL_SEMVER:
		return semver_cmp(x.semver, y.semver) == 0;
	case CEL_IP:
		return ip_equal(x.ip, y.ip);
	case CEL_CIDR:
		return ip_equal(&x.cidr->ip, &y.cidr->ip) && x.cidr->bits == y.cidr->bits;
	case CEL_URL:
		return str_eq(x.url->text, y.url->text);
	case CEL_FORMAT:
		return x.format == y.format;
	default:
		return cel_compare(x, y) == 0;
	}
}

static bool equals(struct cel_eval *ev, struct cel_val x, struct cel_val y, unsigned depth)
{
	if (!cel_work(ev, 1 + (x.kind == CEL_STRING ? x.n / 64 : 0)))
		return false;
	if (depth >= VAL_RECURSION_MAX) {
		ev->exceeded = true;
		return false;
	}
	if (x.kind != y.kind)
		return is_number(x) && is_number(y) && compare_numbers(x, y) == 0;
	return same_type_equals(ev, x, y, depth + 1);
}

bool cel_equals(struct cel_eval *ev, struct cel_val x, struct cel_val y) { return equals(ev, x, y, 0); }
