/*
 * Lists of strategic merge patch: which items are the same, and in which order they end up. Kubernetes searches lists
 * item by item; here a sorted copy of the keys is searched, so that long lists cost n log n. The results are the same,
 * down to its two sorting habits: an item that is not in the wanted order goes before its neighbour, and duplicates are
 * replaced by the last item.
 */
#include <stdlib.h>

#include "machinery/strategic_priv.h"

enum {
	/* Up to here Go sorts by insertion, and what is not in the order lands where insertion puts it. */
	INSERTION_MAX = 20,
	/* Longer lists with duplicates keep each first one in its place, which costs less than Go's way. */
	UNIQUE_MAX = 2048,
};

/* ---- scalars ---- */

static int scalar_cmp(struct val x, struct val y)
{
	if (x.type != y.type)
		return x.type < y.type ? -1 : 1;
	switch ((enum val_type)x.type) {
	case VAL_BOOL: return x.b - y.b;
	case VAL_INT: return x.i < y.i ? -1 : x.i > y.i;
	case VAL_DOUBLE: return x.d < y.d ? -1 : x.d > y.d;
	case VAL_STRING:
	case VAL_RAW: return str_cmp(val_as_str(x), val_as_str(y));
	case VAL_NONE:
	case VAL_NULL:
	case VAL_LIST:
	case VAL_OBJECT: break;
	}
	return 0;
}

bool smp_scalar_same(struct val x, struct val y) { return x.type < VAL_LIST && scalar_cmp(x, y) == 0; }

const char *smp_go_type(struct val v)
{
	switch ((enum val_type)v.type) {
	case VAL_BOOL: return "bool";
	case VAL_INT: return "int64";
	case VAL_DOUBLE: return "float64";
	case VAL_STRING: return "string";
	case VAL_LIST: return "[]interface {}";
	case VAL_RAW:
	case VAL_OBJECT: return "map[string]interface {}";
	case VAL_NONE:
	case VAL_NULL: break;
	}
	return "%!s(<nil>)";
}

int smp_bad_type(const char *expected, struct val got, struct err *err)
{
	return err_set(err, ERR_INTERNAL, "expected a %s, but received a %s", expected, smp_go_type(got));
}

int smp_no_merge_key(struct val object, str merge_key, struct err *err)
{
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	return err_set(err, ERR_INTERNAL, "map: " STR_FMT " does not contain declared merge key: " STR_FMT,
		       STR_ARG(patch_go_text(&scratch, object)), STR_ARG(merge_key));
}

struct position {
	struct val key;
	uint32_t at;
};

static int position_cmp(const void *x, const void *y)
{
	const struct position *a = x, *b = y;
	int r = scalar_cmp(a->key, b->key);
	return r ? r : a->at < b->at ? -1 : 1;
}

/* What identifies an item. */
static struct val item_key(struct val item, str merge_key) { return merge_key.n ? val_find(item, merge_key) : item; }

struct positions smp_positions_of(struct arena *a, struct val list, str merge_key)
{
	struct positions ps = { .at = ARENA_ARRAY(a, struct position, val_len(list)) };

	for (uint32_t i = 0; i < val_len(list); i++) {
		struct val key = item_key(list.items[i], merge_key);
		if (val_exists(key) && key.type < VAL_LIST)
			ps.at[ps.n++] = (struct position){ key, i };
	}
	qsort(ps.at, ps.n, sizeof(*ps.at), position_cmp);
	return ps;
}

/* How many keys sort before the scalar; with equal, those that equal it too. */
static uint32_t positions_before(struct positions ps, struct val scalar, bool equal)
{
	uint32_t low = 0, high = ps.n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (scalar_cmp(ps.at[mid].key, scalar) < (equal ? 1 : 0))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* What stands at i of the sorted keys, if that is the scalar. What is absent, a list or an object is in no set. */
static int64_t position_at(struct positions ps, uint32_t i, struct val scalar)
{
	bool found = i < ps.n && val_exists(scalar) && smp_scalar_same(ps.at[i].key, scalar);
	return found ? (int64_t)ps.at[i].at : -1;
}

int64_t smp_positions_find(struct positions ps, struct val scalar)
{
	return position_at(ps, positions_before(ps, scalar, false), scalar);
}

int64_t smp_positions_last(struct positions ps, struct val scalar)
{
	/* Before the first one the index wraps around, beyond the end. */
	return position_at(ps, positions_before(ps, scalar, true) - 1, scalar);
}

/* ---- whole lists ---- */

struct val smp_list_concat(struct arena *a, struct val x, struct val y)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(item, x)
		val_add_item(&b, *item);
	VAL_EACH(item, y)
		val_add_item(&b, *item);
	return val_end_list(&b);
}

int smp_list_type(struct val x, struct val y, uint8_t *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	uint32_t nx = val_len(x), n = nx + val_len(y);
	struct val empty = VAL_EMPTY_LIST;
	bool same = true;

	if (n == 0)
		return err_set(err, ERR_INTERNAL, "no elements in any of the given slices");
	*ret = nx ? x.items[0].type : y.items[0].type;
	if (*ret == VAL_LIST)
		return err_set(err, ERR_INVALID, "lists of lists are not supported");
	for (uint32_t i = 0; same && i < n; i++)
		same = (i < nx ? x.items[i] : y.items[i - nx]).type == *ret;
	if (same && *ret != VAL_NULL)
		return 0;
	return err_set(err, ERR_INTERNAL, "list element types are not identical: [" STR_FMT " " STR_FMT "]",
		       STR_ARG(patch_go_text(&scratch, nx ? x : empty)),
		       STR_ARG(patch_go_text(&scratch, n > nx ? y : empty)));
}

/* Every item is an object with the merge key. */
static int check_keys(struct val list, str merge_key, struct err *err)
{
	VAL_EACH(item, list) {
		if (item->type != VAL_OBJECT)
			return smp_bad_type("map[string]interface {}", *item, err);
		if (!val_exists(val_find(*item, merge_key)))
			return smp_no_merge_key(*item, merge_key, err);
	}
	return 0;
}

int smp_list_partition(struct arena *a, struct val list, struct val by, str merge_key, struct val *ret_in,
		       struct val *ret_out, struct err *err)
{
	struct positions ps = smp_positions_of(a, by, merge_key);
	struct val_builder in = val_builder(a), out = val_builder(a);
	uint32_t objects = 0; /* at the beginning of by */
	int r = merge_key.n ? check_keys(list, merge_key, err) : 0;

	if (r < 0)
		return r;
	while (objects < val_len(by) && (by.items[objects].type == VAL_OBJECT || !merge_key.n))
		objects++;
	VAL_EACH(item, list) {
		int64_t at = smp_positions_find(ps, item_key(*item, merge_key));
		if (objects < val_len(by) && (at < 0 || at > objects))
			return err_set(err, ERR_INTERNAL, "value for key %u is not a map", objects);
		val_add_item(at < 0 ? &out : &in, *item);
	}
	*ret_in = val_end_list(&in);
	*ret_out = val_end_list(&out);
	return 0;
}

bool smp_is_delete(struct val item)
{
	return item.type == VAL_OBJECT && str_eq(val_as_str(val_find(item, PATCH_DIRECTIVE)), STR("delete"));
}

struct ranked {
	struct val item;
	int64_t rank; /* in the wanted order, -1 when it is not there */
	uint32_t at;
};

static int ranked_cmp(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

static void ranked_sort(struct ranked *r, uint32_t n)
{
	if (n > INSERTION_MAX) {
		qsort(r, n, sizeof(*r), ranked_cmp);
		return;
	}
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t j = i; j > 0; j--) {
			bool less = r[j].rank < 0 || r[j - 1].rank < 0 || r[j].rank < r[j - 1].rank;
			if (!less)
				break;
			struct ranked t = r[j];
			r[j] = r[j - 1];
			r[j - 1] = t;
		}
}

int smp_list_sort(struct arena *a, struct val list, struct val order, str merge_key, bool objects, struct val *ret,
		  struct err *err)
{
	struct ranked *ranked = ARENA_ARRAY(a, struct ranked, val_len(list));
	struct val_builder b = val_builder(a);
	uint32_t n = 0;
	int r = 0;

	if (objects && ((r = check_keys(list, merge_key, err)) < 0 || (r = check_keys(order, merge_key, err)) < 0))
		return r;
	struct positions ps = smp_positions_of(a, order, merge_key);
	VAL_EACH(item, list)
		if (!objects || !smp_is_delete(*item)) {
			ranked[n] = (struct ranked){ *item, smp_positions_find(ps, item_key(*item, merge_key)), n };
			n++;
		}
	ranked_sort(ranked, n);
	for (uint32_t i = 0; i < n; i++)
		val_add_item(&b, ranked[i].item);
	VAL_EACH(item, list)
		if (objects && smp_is_delete(*item))
			val_add_item(&b, *item);
	*ret = val_end_list(&b);
	return 0;
}

/* An item of left goes before the first one of right that the server has after it. */
static struct val interleave(struct arena *a, struct val left, struct val right, struct val server_order, str merge_key)
{
	struct positions ps = smp_positions_of(a, server_order, merge_key);
	struct val_builder b = val_builder(a);
	uint32_t i = 0, j = 0;

	while (i < left.n && j < right.n) {
		int64_t l = smp_positions_find(ps, item_key(left.items[i], merge_key));
		int64_t r = smp_positions_find(ps, item_key(right.items[j], merge_key));
		val_add_item(&b, l >= 0 && l < r ? left.items[i++] : right.items[j++]);
	}
	while (i < left.n)
		val_add_item(&b, left.items[i++]);
	while (j < right.n)
		val_add_item(&b, right.items[j++]);
	return val_end_list(&b);
}

int smp_list_order(struct arena *a, struct val patch, struct val server_only, struct val patch_order,
		   struct val server_order, str merge_key, bool objects, struct val *ret, struct err *err)
{
	int r;

	if ((r = smp_list_sort(a, patch, patch_order, merge_key, objects, &patch, err)) < 0 ||
	    (r = smp_list_sort(a, server_only, server_order, merge_key, objects, &server_only, err)) < 0)
		return r;
	*ret = interleave(a, server_only, patch, server_order, merge_key);
	return 0;
}

/* Every duplicate of an earlier item is overwritten by the last item of the list, which is then one shorter. */
static uint32_t unique_by_last(struct val *items, uint32_t n)
{
	for (uint32_t i = 0; i + 1 < n; i++)
		for (uint32_t j = i + 1; j < n;)
			if (smp_scalar_same(items[i], items[j]))
				items[j] = items[--n];
			else
				j++;
	return n;
}

bool smp_primitives_differ(struct arena *a, struct val left, struct val right)
{
	struct positions l = smp_positions_of(a, left, STR_NONE), r = smp_positions_of(a, right, STR_NONE);
	uint32_t j = 0;

	for (uint32_t i = 0; i < l.n; i++) {
		if (i && scalar_cmp(l.at[i - 1].key, l.at[i].key) == 0)
			continue;
		while (j && j < r.n && scalar_cmp(r.at[j - 1].key, r.at[j].key) == 0)
			j++;
		if (j == r.n || scalar_cmp(l.at[i].key, r.at[j++].key) != 0)
			return true;
	}
	return false;
}

struct val smp_list_unique(struct arena *a, struct val list)
{
	struct positions ps = smp_positions_of(a, list, STR_NONE);
	bool unique = true;

	for (uint32_t i = 1; unique && i < ps.n; i++)
		unique = scalar_cmp(ps.at[i - 1].key, ps.at[i].key) != 0;
	if (unique)
		return list;
	struct val copy = val_list(a, list.items, list.n);
	struct val *items = (struct val *)copy.items;
	if (list.n <= UNIQUE_MAX) {
		copy.n = unique_by_last(items, list.n);
		return copy;
	}
	copy.n = 0;
	for (uint32_t i = 0; i < list.n; i++)
		if (smp_positions_find(ps, list.items[i]) == i)
			items[copy.n++] = list.items[i];
	return copy;
}
