/* Functions of lists: Kubernetes' own (sum, min, isSorted, ...), CEL's extensions for lists and for sets. */
#include <inttypes.h>
#include <stdlib.h>

#include "machinery/cel_format.h"
#include "machinery/cel_priv.h"

/* ---- Kubernetes' ---- */

static struct cel_val is_sorted(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	for (size_t i = 1; i < cel_len(v[0]) && cel_work(ev, 1); i++)
		if (cel_compare(cel_at(ev->arena, v[0], i - 1), cel_at(ev->arena, v[0], i)) == 1)
			return cel_of_bool(false);
	return cel_of_bool(true);
}

/* The one that all others are not more (less) than. */
static struct cel_val extreme(struct cel_eval *ev, struct cel_val list, int wrong_way, const char *name)
{
	if (!cel_len(list))
		return cel_fail(ev, "%s called on empty list", name);
	struct cel_val best = cel_at(ev->arena, list, 0);
	for (size_t i = 1; i < cel_len(list) && cel_work(ev, 1); i++) {
		struct cel_val item = cel_at(ev->arena, list, i);
		if (cel_compare(best, item) == wrong_way)
			best = item;
	}
	return best;
}

static struct cel_val min(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return extreme(ev, v[0], 1, "min");
}

static struct cel_val max(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return extreme(ev, v[0], -1, "max");
}

static struct cel_val sum_from(struct cel_eval *ev, struct cel_val list, struct cel_val sum)
{
	for (size_t i = 0; i < cel_len(list) && cel_work(ev, 1); i++) {
		struct cel_val item = cel_at(ev->arena, list, i);
		if (item.kind != sum.kind)
			return cel_no_overload(ev);
		if (sum.kind == CEL_DOUBLE)
			sum.d += item.d;
		else if (sum.kind == CEL_UINT && __builtin_add_overflow(sum.u, item.u, &sum.u))
			return cel_fail(ev, "unsigned integer overflow");
		else if (sum.kind != CEL_UINT && __builtin_add_overflow(sum.i, item.i, &sum.i))
			return cel_fail(ev, "integer overflow");
	}
	return sum;
}

/* An empty list adds up to what its type says; a list of no known type to 0. */
static struct cel_val sum(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val first = cel_at(ev->arena, v[0], 0);

	(void)n;
	switch (first.kind) {
	case CEL_DOUBLE:
		return sum_from(ev, v[0], cel_of_double(0));
	case CEL_UINT:
		return sum_from(ev, v[0], cel_of_uint(0));
	case CEL_DURATION:
		return sum_from(ev, v[0], cel_of_duration(0));
	default:
		return sum_from(ev, v[0], cel_of_int(0));
	}
}

static struct cel_val index_of(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	if (v[0].kind == CEL_STRING && v[1].kind == CEL_STRING)
		return cel_string_index(ev, v, n);
	for (size_t i = 0; i < cel_len(v[0]) && cel_work(ev, 1); i++)
		if (cel_equals(ev, cel_at(ev->arena, v[0], i), v[1]))
			return cel_of_int((int64_t)i);
	return cel_of_int(-1);
}

static struct cel_val last_index_of(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	if (v[0].kind == CEL_STRING && v[1].kind == CEL_STRING)
		return cel_string_last_index(ev, v, n);
	for (size_t i = cel_len(v[0]); i-- > 0 && cel_work(ev, 1);)
		if (cel_equals(ev, cel_at(ev->arena, v[0], i), v[1]))
			return cel_of_int((int64_t)i);
	return cel_of_int(-1);
}

/* ---- the extension for lists ---- */

/* Room for n items, unless that is too much. */
static struct cel_val *room(struct cel_eval *ev, size_t n)
{
	return cel_work(ev, n) ? ARENA_ARRAY(ev->arena, struct cel_val, n + 1) : NULL;
}

static struct cel_val distinct(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val *items = room(ev, cel_len(v[0]));
	size_t count = 0;

	(void)n;
	for (size_t i = 0; items && i < cel_len(v[0]); i++) {
		struct cel_val item = cel_at(ev->arena, v[0], i);
		bool seen = false;
		for (size_t k = 0; k < count && !seen; k++)
			seen = cel_equals(ev, items[k], item);
		if (!seen)
			items[count++] = item;
	}
	return cel_list_take(ev->arena, items, count);
}

static struct cel_val first(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return cel_len(v[0]) ? cel_optional_of(ev->arena, cel_at(ev->arena, v[0], 0)) : cel_optional_none();
}

static struct cel_val last(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	size_t len = cel_len(v[0]);

	(void)n;
	return len ? cel_optional_of(ev->arena, cel_at(ev->arena, v[0], len - 1)) : cel_optional_none();
}

static struct cel_val flatten_into(struct cel_eval *ev, struct cel_val so_far, struct cel_val list, int64_t depth, unsigned level)
{
	for (size_t i = 0; i < cel_len(list) && cel_work(ev, 1); i++) {
		struct cel_val item = cel_at(ev->arena, list, i);
		if (item.kind == CEL_LIST && depth > 0 && level < VAL_RECURSION_MAX)
			so_far = flatten_into(ev, so_far, item, depth - 1, level + 1);
		else
			so_far = cel_list_join(ev, so_far, cel_of_list(ev->arena, &item, 1));
		if (so_far.kind != CEL_LIST)
			break;
	}
	return so_far;
}

static struct cel_val flatten(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	int64_t depth = n == 2 ? v[1].i : 1;

	if (depth < 0)
		return cel_fail(ev, "level must be non-negative");
	return flatten_into(ev, cel_list_take(ev->arena, NULL, 0), v[0], depth, 0);
}

static struct cel_val range(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	size_t count = v[0].i > 0 ? (size_t)v[0].i : 0;
	struct cel_val *items = room(ev, count);

	(void)n;
	for (size_t i = 0; items && i < count; i++)
		items[i] = cel_of_int((int64_t)i);
	return cel_list_take(ev->arena, items, items ? count : 0);
}

static struct cel_val reverse(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	size_t count = cel_len(v[0]);
	struct cel_val *items = room(ev, count);

	(void)n;
	for (size_t i = 0; items && i < count; i++)
		items[i] = cel_at(ev->arena, v[0], count - 1 - i);
	return cel_list_take(ev->arena, items, items ? count : 0);
}

static struct cel_val slice(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	int64_t from = v[1].i, to = v[2].i, len = (int64_t)cel_len(v[0]);

	(void)n;
	if (from < 0 || to < 0)
		return cel_fail(ev, "cannot slice(%" PRId64 ", %" PRId64 "), negative indexes not supported", from, to);
	if (from > to)
		return cel_fail(ev, "cannot slice(%" PRId64 ", %" PRId64 "), start index must be less than or equal to end index", from, to);
	if (len < to)
		return cel_fail(ev, "cannot slice(%" PRId64 ", %" PRId64 "), list is length %" PRId64, from, to, len);
	struct cel_val *items = room(ev, (size_t)(to - from));
	for (int64_t i = from; items && i < to; i++)
		items[i - from] = cel_at(ev->arena, v[0], (size_t)i);
	return cel_list_take(ev->arena, items, items ? (size_t)(to - from) : 0);
}

struct sorted {
	struct cel_val key, item;
	size_t at;
};

static int by_key(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	int c = cel_compare(x->key, y->key);

	if (c == -1 || c == 1)
		return c;
	return x->at < y->at ? -1 : 1;
}

static struct cel_val sort_by(struct cel_eval *ev, struct cel_val list, struct cel_val keys)
{
	size_t n = cel_len(list);

	if (n != cel_len(keys))
		return cel_fail(ev,
				"@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got %zu and %zu "
				"elements respectively", n, cel_len(keys));
	if (!n)
		return list;
	struct cel_val *items = room(ev, n * 4);
	if (!items)
		return list;
	struct sorted *order = ARENA_ARRAY(ev->arena, struct sorted, n);
	for (size_t i = 0; i < n; i++) {
		order[i] = (struct sorted){ cel_at(ev->arena, keys, i), cel_at(ev->arena, list, i), i };
		if (cel_compare(order[i].key, order[i].key) == -2)
			return cel_fail(ev, "list elements must be comparable");
		if (order[i].key.kind != order[0].key.kind)
			return cel_fail(ev, "list elements must have the same type");
	}
	qsort(order, n, sizeof(*order), by_key);
	for (size_t i = 0; i < n; i++)
		items[i] = order[i].item;
	return cel_list_take(ev->arena, items, n);
}

static struct cel_val sort(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return sort_by(ev, v[0], v[0]);
}

static struct cel_val sort_by_keys(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return sort_by(ev, v[0], v[1]);
}

/* ---- sets ---- */

static bool includes(struct cel_eval *ev, struct cel_val list, struct cel_val item)
{
	for (size_t i = 0; i < cel_len(list) && !ev->exceeded; i++)
		if (cel_equals(ev, cel_at(ev->arena, list, i), item))
			return true;
	return false;
}

static bool includes_all(struct cel_eval *ev, struct cel_val list, struct cel_val items)
{
	for (size_t i = 0; i < cel_len(items) && !ev->exceeded; i++)
		if (!includes(ev, list, cel_at(ev->arena, items, i)))
			return false;
	return true;
}

static struct cel_val sets_contains(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return cel_of_bool(includes_all(ev, v[0], v[1]));
}

static struct cel_val sets_equivalent(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return cel_of_bool(includes_all(ev, v[0], v[1]) && includes_all(ev, v[1], v[0]));
}

static struct cel_val sets_intersects(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	for (size_t i = 0; i < cel_len(v[1]) && !ev->exceeded; i++)
		if (includes(ev, v[0], cel_at(ev->arena, v[1], i)))
			return cel_of_bool(true);
	return cel_of_bool(false);
}

/* One overload for each type that can be ordered. The first of them is what an empty list is taken for. */
#define EXTREME(name, type, letter, run) { name, "list_" type "_" name "_" type, "L" letter ":" letter, true, run, 0 }
#define EXTREMES(name, run)                                                                                                     \
	EXTREME(name, "int", "i", run), EXTREME(name, "uint", "u", run), EXTREME(name, "double", "d", run),                     \
	EXTREME(name, "bool", "b", run), EXTREME(name, "duration", "r", run), EXTREME(name, "timestamp", "t", run),             \
	EXTREME(name, "string", "s", run), EXTREME(name, "bytes", "y", run)

#define IS_SORTED(type, letter) { "isSorted", "list_" type "_is_sorted_bool", "L" letter ":b", true, is_sorted, 0 }
#define SORT(type, letter) { "sort", "list_" type "_sort", "L" letter ":L" letter, true, sort, 0 }
#define SORT_BY(type, letter) { "@sortByAssociatedKeys", "list_" type "_sortByAssociatedKeys", "LAL" letter ":LA", true, sort_by_keys, 0 }

static const struct cel_overload overloads[] = {
	IS_SORTED("int", "i"), IS_SORTED("uint", "u"), IS_SORTED("double", "d"), IS_SORTED("bool", "b"), IS_SORTED("duration", "r"),
	IS_SORTED("timestamp", "t"), IS_SORTED("string", "s"), IS_SORTED("bytes", "y"),
	EXTREMES("max", max),
	EXTREMES("min", min),
	{ "sum", "list_int_sum_int", "Li:i", true, sum, 0 },
	{ "sum", "list_uint_sum_uint", "Lu:u", true, sum, 0 },
	{ "sum", "list_double_sum_double", "Ld:d", true, sum, 0 },
	{ "sum", "list_duration_sum_duration", "Lr:r", true, sum, 0 },
	{ "indexOf", "list_a_index_of_int", "LAA:i", true, index_of, 0 },
	{ "indexOf", "string_index_of_string", "ss:i", true, index_of, 0 },
	{ "indexOf", "string_index_of_string_int", "ssi:i", true, index_of, 0 },
	{ "lastIndexOf", "list_a_last_index_of_int", "LAA:i", true, last_index_of, 0 },
	{ "lastIndexOf", "string_last_index_of_string", "ss:i", true, last_index_of, 0 },
	{ "lastIndexOf", "string_last_index_of_string_int", "ssi:i", true, last_index_of, 0 },
	{ "distinct", "list_distinct", "LA:LA", true, distinct, 0 },
	{ "first", "list_first", "LA:OA", true, first, 0 },
	{ "last", "list_last", "LA:OA", true, last, 0 },
	{ "flatten", "list_flatten", "LLA:LA", true, flatten, 0 },
	{ "flatten", "list_flatten_int", "L*i:L*", true, flatten, 0 },
	{ "lists.range", "lists_range", "i:Li", false, range, 0 },
	{ "reverse", "list_reverse", "LA:LA", true, reverse, 0 },
	{ "slice", "list_slice", "LAii:LA", true, slice, 0 },
	SORT("int", "i"), SORT("uint", "u"), SORT("double", "d"), SORT("bool", "b"), SORT("google.protobuf.Duration", "r"),
	SORT("google.protobuf.Timestamp", "t"), SORT("string", "s"), SORT("bytes", "y"),
	SORT_BY("int", "i"), SORT_BY("uint", "u"), SORT_BY("double", "d"), SORT_BY("bool", "b"), SORT_BY("google.protobuf.Duration", "r"),
	SORT_BY("google.protobuf.Timestamp", "t"), SORT_BY("string", "s"), SORT_BY("bytes", "y"),
	{ "sets.contains", "list_sets_contains_list", "LALA:b", false, sets_contains, 0 },
	{ "sets.equivalent", "list_sets_equivalent_list", "LALA:b", false, sets_equivalent, 0 },
	{ "sets.intersects", "list_sets_intersects_list", "LALA:b", false, sets_intersects, 0 },
};

const struct cel_library cel_lib_list = { overloads, ARRAY_LEN(overloads), false };
