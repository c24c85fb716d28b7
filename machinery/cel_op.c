/* Operators: arithmetic with overflow checks, comparisons, equality, membership, size; and what macros need. */
#include "machinery/cel_priv.h"

static struct cel_val int_overflow(struct cel_eval *ev) { return cel_fail(ev, "integer overflow"); }
static struct cel_val uint_overflow(struct cel_eval *ev) { return cel_fail(ev, "unsigned integer overflow"); }

/* ---- time ---- */

/* The years 1 to 9999. */
static struct cel_val checked_time(struct cel_eval *ev, int64_t seconds, int64_t nanos, int zone)
{
	if (nanos < 0 || nanos >= 1000000000) {
		int64_t carry = nanos / 1000000000 - (nanos % 1000000000 < 0);
		seconds += carry;
		nanos -= carry * 1000000000;
	}
	if (seconds < -62135596800 || seconds > 253402300799)
		return cel_fail(ev, "timestamp overflow");
	return cel_timestamp(seconds, (int32_t)nanos, zone);
}

static struct cel_val add_time(struct cel_eval *ev, struct cel_val t, int64_t ns)
{
	return checked_time(ev, t.i + ns / 1000000000, (int64_t)t.n + ns % 1000000000, t.zone);
}

static struct cel_val time_difference(struct cel_eval *ev, struct cel_val a, struct cel_val b)
{
	int64_t ns;

	if (__builtin_mul_overflow(a.i - b.i, (int64_t)1000000000, &ns) || __builtin_add_overflow(ns, (int64_t)a.n - (int64_t)b.n, &ns))
		return int_overflow(ev);
	return cel_of_duration(ns);
}

/* ---- arithmetic ---- */

static struct cel_val join_text(struct cel_eval *ev, struct cel_val a, struct cel_val b)
{
	if (!cel_work(ev, (a.n + b.n) / 64) || (uint64_t)a.n + b.n > INT32_MAX)
		return cel_fail(ev, "string is too long");
	str s = arena_join(ev->arena, cel_text(a), cel_text(b));
	return a.kind == CEL_STRING ? cel_of_str(s) : cel_of_bytes(s);
}

/* Whether any value of this type can be on the left of the operator. */
static bool has_arithmetic(struct cel_val v)
{
	return v.kind == CEL_INT || v.kind == CEL_UINT || v.kind == CEL_DOUBLE || v.kind == CEL_DURATION || v.kind == CEL_TIMESTAMP;
}

static struct cel_val op_add(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	int64_t i;
	uint64_t u;

	(void)n;
	if (v[0].kind == CEL_DURATION && v[1].kind == CEL_TIMESTAMP)
		return add_time(ev, v[1], v[0].i);
	if (v[0].kind == CEL_TIMESTAMP && v[1].kind == CEL_DURATION)
		return add_time(ev, v[0], v[1].i);
	if (v[0].kind == v[1].kind)
		switch (v[0].kind) {
		case CEL_INT:
			return __builtin_add_overflow(v[0].i, v[1].i, &i) ? int_overflow(ev) : cel_of_int(i);
		case CEL_UINT:
			return __builtin_add_overflow(v[0].u, v[1].u, &u) ? uint_overflow(ev) : cel_of_uint(u);
		case CEL_DOUBLE:
			return cel_of_double(v[0].d + v[1].d);
		case CEL_DURATION:
			return __builtin_add_overflow(v[0].i, v[1].i, &i) ? int_overflow(ev) : cel_of_duration(i);
		case CEL_STRING:
		case CEL_BYTES:
			return join_text(ev, v[0], v[1]);
		case CEL_LIST:
			return cel_list_join(ev, v[0], v[1]);
		default:
			break;
		}
	bool adds = has_arithmetic(v[0]) || v[0].kind == CEL_STRING || v[0].kind == CEL_BYTES || v[0].kind == CEL_LIST;
	return adds ? cel_no_overload(ev) : cel_no_overload_named(ev);
}

static struct cel_val op_sub(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	int64_t i;
	uint64_t u;

	(void)n;
	if (v[0].kind == CEL_TIMESTAMP && v[1].kind == CEL_DURATION)
		return v[1].i == INT64_MIN ? int_overflow(ev) : add_time(ev, v[0], -v[1].i);
	if (v[0].kind == v[1].kind)
		switch (v[0].kind) {
		case CEL_INT:
			return __builtin_sub_overflow(v[0].i, v[1].i, &i) ? int_overflow(ev) : cel_of_int(i);
		case CEL_UINT:
			return __builtin_sub_overflow(v[0].u, v[1].u, &u) ? uint_overflow(ev) : cel_of_uint(u);
		case CEL_DOUBLE:
			return cel_of_double(v[0].d - v[1].d);
		case CEL_DURATION:
			return __builtin_sub_overflow(v[0].i, v[1].i, &i) ? int_overflow(ev) : cel_of_duration(i);
		case CEL_TIMESTAMP:
			return time_difference(ev, v[0], v[1]);
		default:
			break;
		}
	return has_arithmetic(v[0]) ? cel_no_overload(ev) : cel_no_overload_named(ev);
}

static bool is_number(struct cel_val v) { return v.kind == CEL_INT || v.kind == CEL_UINT || v.kind == CEL_DOUBLE; }

static struct cel_val not_numbers(struct cel_eval *ev, const struct cel_val *v)
{
	return is_number(v[0]) ? cel_no_overload(ev) : cel_no_overload_named(ev);
}

static struct cel_val op_mul(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	int64_t i;
	uint64_t u;

	(void)n;
	if (v[0].kind != v[1].kind || !is_number(v[0]))
		return not_numbers(ev, v);
	if (v[0].kind == CEL_INT)
		return __builtin_mul_overflow(v[0].i, v[1].i, &i) ? int_overflow(ev) : cel_of_int(i);
	if (v[0].kind == CEL_UINT)
		return __builtin_mul_overflow(v[0].u, v[1].u, &u) ? uint_overflow(ev) : cel_of_uint(u);
	return cel_of_double(v[0].d * v[1].d);
}

static struct cel_val op_div(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	if (v[0].kind != v[1].kind || !is_number(v[0]))
		return not_numbers(ev, v);
	if (v[0].kind == CEL_DOUBLE)
		return cel_of_double(v[0].d / v[1].d);
	if (v[1].u == 0)
		return cel_fail(ev, "division by zero");
	if (v[0].kind == CEL_UINT)
		return cel_of_uint(v[0].u / v[1].u);
	return v[0].i == INT64_MIN && v[1].i == -1 ? int_overflow(ev) : cel_of_int(v[0].i / v[1].i);
}

static struct cel_val op_mod(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	if (v[0].kind != v[1].kind || (v[0].kind != CEL_INT && v[0].kind != CEL_UINT))
		return v[0].kind == CEL_INT || v[0].kind == CEL_UINT ? cel_no_overload(ev) : cel_no_overload_named(ev);
	if (v[1].u == 0)
		return cel_fail(ev, "modulus by zero");
	if (v[0].kind == CEL_UINT)
		return cel_of_uint(v[0].u % v[1].u);
	return v[0].i == INT64_MIN && v[1].i == -1 ? int_overflow(ev) : cel_of_int(v[0].i % v[1].i);
}

static struct cel_val op_negate(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	if (v[0].kind == CEL_DOUBLE)
		return cel_of_double(-v[0].d);
	if (v[0].kind != CEL_INT && v[0].kind != CEL_DURATION)
		return v[0].kind == CEL_BOOL ? cel_no_overload(ev) : cel_no_overload_named(ev);
	if (v[0].i == INT64_MIN)
		return int_overflow(ev);
	return v[0].kind == CEL_INT ? cel_of_int(-v[0].i) : cel_of_duration(-v[0].i);
}

static struct cel_val op_not(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return v[0].kind == CEL_BOOL ? cel_of_bool(!v[0].b) : cel_no_overload(ev);
}

static struct cel_val op_not_strictly_false(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)n;
	return v[0].kind == CEL_BOOL ? v[0] : cel_of_bool(true);
}

/* ---- comparisons ---- */

static bool comparable(struct cel_val v)
{
	return is_number(v) || v.kind == CEL_BOOL || v.kind == CEL_STRING || v.kind == CEL_BYTES || v.kind == CEL_DURATION ||
	       v.kind == CEL_TIMESTAMP;
}

/* The order of two values; false, with the error in *ret, when they have none. */
static bool compare(struct cel_eval *ev, const struct cel_val *v, int *ret_order, struct cel_val *ret)
{
	*ret_order = cel_compare(v[0], v[1]);
	if (*ret_order == 2)
		*ret = cel_fail(ev, "NaN values cannot be ordered");
	else if (*ret_order == -2)
		*ret = comparable(v[0]) ? cel_no_overload(ev) : cel_no_overload_named(ev);
	return *ret_order >= -1 && *ret_order <= 1;
}

#define COMPARISON(name, operator)                                                                     \
	static struct cel_val op_##name(struct cel_eval *ev, const struct cel_val *v, size_t n)        \
	{                                                                                              \
		struct cel_val error;                                                                  \
		int order;                                                                             \
		(void)n;                                                                               \
		return compare(ev, v, &order, &error) ? cel_of_bool(order operator 0) : error;         \
	}

COMPARISON(less, <)
COMPARISON(less_equals, <=)
COMPARISON(greater, >)
COMPARISON(greater_equals, >=)

static struct cel_val op_equals(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return cel_of_bool(cel_equals(ev, v[0], v[1]));
}

static struct cel_val op_not_equals(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return cel_of_bool(!cel_equals(ev, v[0], v[1]));
}

static struct cel_val op_in(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	if (v[1].kind == CEL_MAP || v[1].kind == CEL_OBJECT)
		return cel_of_bool(cel_map_has(v[1], v[0]));
	if (v[1].kind != CEL_LIST)
		return cel_no_overload(ev);
	for (size_t i = 0; i < cel_len(v[1]); i++)
		if (cel_equals(ev, cel_at(ev->arena, v[1], i), v[0]))
			return cel_of_bool(true);
	return cel_of_bool(false);
}

/* Never called: the evaluation does it itself. Here for the signatures. */
static struct cel_val op_index(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)v;
	(void)n;
	return cel_no_overload(ev);
}

static struct cel_val op_size(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	switch (v[0].kind) {
	case CEL_STRING:
		return cel_of_int((int64_t)cel_runes(cel_text(v[0])));
	case CEL_BYTES:
		return cel_of_int(v[0].n);
	case CEL_LIST:
	case CEL_MAP:
		return cel_of_int((int64_t)cel_len(v[0]));
	default:
		return cel_no_overload_named(ev);
	}
}

static struct cel_val op_map_insert(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val map = v[0], key, val;

	if (map.kind != CEL_MAP)
		return cel_no_overload_named(ev);
	if (n == 3)
		return cel_map_add(ev->arena, &map, v[1], v[2]) ? map :
			cel_fail(ev, "insert failed: key " STR_FMT " already exists", STR_ARG(cel_show(ev->arena, v[1])));
	if (v[1].kind != CEL_MAP)
		return cel_no_overload_named(ev);
	for (size_t i = 0; i < cel_len(v[1]) && cel_work(ev, 1); i++) {
		cel_member_at(ev->arena, v[1], i, &key, &val);
		if (!cel_map_add(ev->arena, &map, key, val))
			return cel_fail(ev, "insert failed: key " STR_FMT " already exists", STR_ARG(cel_show(ev->arena, key)));
	}
	return map;
}

#define COMPARED(op, id, run)                                                                                                         \
	{ op, id "_bool", "bb:b", false, run, 0 }, { op, id "_int64", "ii:b", false, run, 0 },                                         \
	{ op, id "_int64_double", "id:b", false, run, 0 }, { op, id "_int64_uint64", "iu:b", false, run, 0 },                          \
	{ op, id "_uint64", "uu:b", false, run, 0 }, { op, id "_uint64_double", "ud:b", false, run, 0 },                               \
	{ op, id "_uint64_int64", "ui:b", false, run, 0 }, { op, id "_double", "dd:b", false, run, 0 },                                \
	{ op, id "_double_int64", "di:b", false, run, 0 }, { op, id "_double_uint64", "du:b", false, run, 0 },                         \
	{ op, id "_string", "ss:b", false, run, 0 }, { op, id "_bytes", "yy:b", false, run, 0 },                                       \
	{ op, id "_timestamp", "tt:b", false, run, 0 }, { op, id "_duration", "rr:b", false, run, 0 }

static const struct cel_overload overloads[] = {
	{ "!_", "logical_not", "b:b", false, op_not, 0 },
	{ "-_", "negate_double", "d:d", false, op_negate, 0 },
	{ "-_", "negate_int64", "i:i", false, op_negate, 0 },
	{ "@in", "in_list", "ALA:b", false, op_in, 0 },
	{ "@in", "in_map", "AMAB:b", false, op_in, 0 },
	{ "@not_strictly_false", "not_strictly_false", "b:b", false, op_not_strictly_false, 0 },
	{ "_==_", "equals", "AA:b", false, op_equals, 0 },
	{ "_!=_", "not_equals", "AA:b", false, op_not_equals, 0 },
	{ "_+_", "add_bytes", "yy:y", false, op_add, 0 },
	{ "_+_", "add_double", "dd:d", false, op_add, 0 },
	{ "_+_", "add_duration_duration", "rr:r", false, op_add, 0 },
	{ "_+_", "add_duration_timestamp", "rt:t", false, op_add, 0 },
	{ "_+_", "add_timestamp_duration", "tr:t", false, op_add, 0 },
	{ "_+_", "add_int64", "ii:i", false, op_add, 0 },
	{ "_+_", "add_list", "LALA:LA", false, op_add, 0 },
	{ "_+_", "add_string", "ss:s", false, op_add, 0 },
	{ "_+_", "add_uint64", "uu:u", false, op_add, 0 },
	{ "_-_", "subtract_double", "dd:d", false, op_sub, 0 },
	{ "_-_", "subtract_duration_duration", "rr:r", false, op_sub, 0 },
	{ "_-_", "subtract_int64", "ii:i", false, op_sub, 0 },
	{ "_-_", "subtract_timestamp_duration", "tr:t", false, op_sub, 0 },
	{ "_-_", "subtract_timestamp_timestamp", "tt:r", false, op_sub, 0 },
	{ "_-_", "subtract_uint64", "uu:u", false, op_sub, 0 },
	{ "_*_", "multiply_double", "dd:d", false, op_mul, 0 },
	{ "_*_", "multiply_int64", "ii:i", false, op_mul, 0 },
	{ "_*_", "multiply_uint64", "uu:u", false, op_mul, 0 },
	{ "_/_", "divide_double", "dd:d", false, op_div, 0 },
	{ "_/_", "divide_int64", "ii:i", false, op_div, 0 },
	{ "_/_", "divide_uint64", "uu:u", false, op_div, 0 },
	{ "_%_", "modulo_int64", "ii:i", false, op_mod, 0 },
	{ "_%_", "modulo_uint64", "uu:u", false, op_mod, 0 },
	COMPARED("_<_", "less", op_less),
	COMPARED("_<=_", "less_equals", op_less_equals),
	COMPARED("_>_", "greater", op_greater),
	COMPARED("_>=_", "greater_equals", op_greater_equals),
	{ "_[_]", "index_list", "LAi:A", false, op_index, 0 },
	{ "_[_]", "index_map", "MABA:B", false, op_index, 0 },
	{ "_[_]", "optional_list_index_int", "OLAi:OA", false, op_index, 0 },
	{ "_[_]", "optional_map_index_value", "OMABA:OB", false, op_index, 0 },
	{ "_[?_]", "list_optindex_optional_int", "LAi:OA", false, op_index, 0 },
	{ "_[?_]", "map_optindex_optional_value", "MABA:OB", false, op_index, 0 },
	{ "_[?_]", "optional_list_optindex_optional_int", "OLAi:OA", false, op_index, 0 },
	{ "_[?_]", "optional_map_optindex_optional_value", "OMABA:OB", false, op_index, 0 },
	{ "size", "size_string", "s:i", false, op_size, 0 },
	{ "size", "size_bytes", "y:i", false, op_size, 0 },
	{ "size", "size_list", "LA:i", false, op_size, 0 },
	{ "size", "size_map", "MAB:i", false, op_size, 0 },
	{ "size", "string_size", "s:i", true, op_size, 0 },
	{ "size", "bytes_size", "y:i", true, op_size, 0 },
	{ "size", "list_size", "LA:i", true, op_size, 0 },
	{ "size", "map_size", "MAB:i", true, op_size, 0 },
	{ "cel.@mapInsert", "@mapInsert_map_key_value", "MABAB:MAB", false, op_map_insert, 0 },
	{ "cel.@mapInsert", "@mapInsert_map_map", "MABMAB:MAB", false, op_map_insert, 0 },
};

const struct cel_library cel_lib_op = { overloads, ARRAY_LEN(overloads), true };
