/* Conversions: int(), string(), timestamp() and their kind; and optional values. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "codec/quantity.h"
#include "codec/time.h"
#include "machinery/cel_priv.h"

static struct cel_val conversion_error(struct cel_eval *ev, struct cel_val v, const char *to)
{
	return cel_fail(ev, "type conversion error from '" STR_FMT "' to '%s'", STR_ARG(cel_type_name(v)), to);
}

static struct cel_val convert_same(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)n;
	return v[0];
}

/* ---- numbers ---- */

/* Decimal digits after an optional sign, as strconv.ParseInt has them. */
static bool parse_int(str s, int64_t *ret)
{
	bool plus = str_starts(s, STR("+"));

	if (plus && (s.n == 1 || s.p[1] == '-'))
		return false;
	return str_to_i64(str_skip(s, plus), ret);
}

static struct cel_val to_int(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	int64_t i;

	(void)n;
	switch (v[0].kind) {
	case CEL_UINT:
		return v[0].u > INT64_MAX ? cel_fail(ev, "integer overflow") : cel_of_int((int64_t)v[0].u);
	case CEL_DOUBLE:
		return v[0].d > -0x1p63 && v[0].d < 0x1p63 ? cel_of_int((int64_t)v[0].d) : cel_fail(ev, "integer overflow");
	case CEL_STRING:
		return parse_int(cel_text(v[0]), &i) ? cel_of_int(i) : conversion_error(ev, v[0], "int");
	default:
		return cel_of_int(v[0].i);
	}
}

static struct cel_val uint_of_text(struct cel_eval *ev, struct cel_val v)
{
	uint64_t u = 0;

	for (size_t i = 0; i < v.n; i++)
		if (v.s[i] < '0' || v.s[i] > '9' || __builtin_mul_overflow(u, 10, &u) || __builtin_add_overflow(u, (uint64_t)(v.s[i] - '0'), &u))
			return conversion_error(ev, v, "uint");
	return v.n ? cel_of_uint(u) : conversion_error(ev, v, "uint");
}

static struct cel_val to_uint(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	switch (v[0].kind) {
	case CEL_INT:
		return v[0].i < 0 ? cel_fail(ev, "unsigned integer overflow") : cel_of_uint((uint64_t)v[0].i);
	case CEL_DOUBLE:
		return v[0].d >= 0 && v[0].d < 0x1p64 ? cel_of_uint((uint64_t)v[0].d) : cel_fail(ev, "unsigned integer overflow");
	case CEL_STRING:
		return uint_of_text(ev, v[0]);
	default:
		return v[0];
	}
}

/* A number as Go's ParseFloat reads it; no hexadecimal without an exponent. */
static struct cel_val double_of_text(struct cel_eval *ev, struct cel_val v)
{
	str s = arena_str(ev->arena, cel_text(v));
	char *end;

	for (size_t i = 0; i < s.n; i++)
		if (!strchr("0123456789+-.eEinfatyNIFATY", s.p[i]) || !s.p[i])
			return conversion_error(ev, v, "double");
	errno = 0;
	double d = strtod(s.p, &end);
	bool range = errno == ERANGE && fabs(d) > 1;
	if (!s.n || end != s.p + s.n || range)
		return conversion_error(ev, v, "double");
	return cel_of_double(d);
}

static struct cel_val to_double(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	switch (v[0].kind) {
	case CEL_INT:
		return cel_of_double((double)v[0].i);
	case CEL_UINT:
		return cel_of_double((double)v[0].u);
	case CEL_STRING:
		return double_of_text(ev, v[0]);
	default:
		return v[0];
	}
}

/* ---- others ---- */

static struct cel_val to_bool(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	static const str yes[] = { STR_INIT("1"), STR_INIT("t"), STR_INIT("T"), STR_INIT("true"), STR_INIT("TRUE"), STR_INIT("True") };
	static const str no[] = { STR_INIT("0"), STR_INIT("f"), STR_INIT("F"), STR_INIT("false"), STR_INIT("FALSE"), STR_INIT("False") };

	(void)n;
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (str_eq(yes[i], cel_text(v[0])))
			return cel_of_bool(true);
		if (str_eq(no[i], cel_text(v[0])))
			return cel_of_bool(false);
	}
	return conversion_error(ev, v[0], "bool");
}

static struct cel_val to_bytes(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)n;
	return cel_of_bytes(cel_text(v[0]));
}

static struct cel_val to_string(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	if (v[0].kind == CEL_BYTES && !str_is_utf8(cel_text(v[0])))
		return cel_fail(ev, "invalid UTF-8 in bytes, cannot convert to string");
	return cel_of_str(cel_show(ev->arena, v[0]));
}

static struct cel_val to_duration(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct err err = ERR_INIT;
	int64_t ns;

	(void)n;
	/* A number is declared as an argument, but nothing takes it. */
	return v[0].kind == CEL_INT || duration_parse(cel_text(v[0]), &ns, &err) < 0 ? conversion_error(ev, v[0], "google.protobuf.Duration") : cel_of_duration(ns);
}

static struct cel_val to_timestamp(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct err err = ERR_INIT;
	struct timestamp t = { v[0].i, 0 };

	(void)n;
	if (v[0].kind == CEL_STRING && time_parse(cel_text(v[0]), &t, &err) < 0)
		return conversion_error(ev, v[0], "google.protobuf.Timestamp");
	if (t.seconds < -62135596800 || t.seconds > 253402300799)
		return cel_fail(ev, "timestamp overflow");
	return cel_timestamp(t.seconds, t.nanos, v[0].kind == CEL_STRING ? cel_zone_of(cel_text(v[0])) : 0);
}

/* A type as a value. */
static struct cel_val to_type(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	if (v[0].kind == CEL_OBJECT)
		return (struct cel_val){ .kind = CEL_TYPE, .type = v[0].map->object };
	struct cel_type *t = ARENA_NEW(ev->arena, struct cel_type);
	t->kind = v[0].kind;
	return (struct cel_val){ .kind = CEL_TYPE, .type = t };
}

static const struct cel_overload overloads[] = {
	{ "bool", "bool_to_bool", "b:b", false, convert_same, 0 },
	{ "bool", "string_to_bool", "s:b", false, to_bool, 0 },
	{ "bytes", "bytes_to_bytes", "y:y", false, convert_same, 0 },
	{ "bytes", "string_to_bytes", "s:y", false, to_bytes, 0 },
	{ "double", "double_to_double", "d:d", false, convert_same, 0 },
	{ "double", "int64_to_double", "i:d", false, to_double, 0 },
	{ "double", "string_to_double", "s:d", false, to_double, 0 },
	{ "double", "uint64_to_double", "u:d", false, to_double, 0 },
	{ "duration", "duration_to_duration", "r:r", false, convert_same, 0 },
	{ "duration", "int64_to_duration", "i:r", false, to_duration, 0 },
	{ "duration", "string_to_duration", "s:r", false, to_duration, 0 },
	{ "dyn", "to_dyn", "A:*", false, convert_same, 0 },
	{ "int", "double_to_int64", "d:i", false, to_int, 0 },
	{ "int", "duration_to_int64", "r:i", false, to_int, 0 },
	{ "int", "int64_to_int64", "i:i", false, convert_same, 0 },
	{ "int", "string_to_int64", "s:i", false, to_int, 0 },
	{ "int", "timestamp_to_int64", "t:i", false, to_int, 0 },
	{ "int", "uint64_to_int64", "u:i", false, to_int, 0 },
	{ "string", "bool_to_string", "b:s", false, to_string, 0 },
	{ "string", "bytes_to_string", "y:s", false, to_string, 0 },
	{ "string", "cidr_to_string", "c:s", false, to_string, 0 },
	{ "string", "double_to_string", "d:s", false, to_string, 0 },
	{ "string", "duration_to_string", "r:s", false, to_string, 0 },
	{ "string", "int64_to_string", "i:s", false, to_string, 0 },
	{ "string", "ip_to_string", "a:s", false, to_string, 0 },
	{ "string", "string_to_string", "s:s", false, convert_same, 0 },
	{ "string", "timestamp_to_string", "t:s", false, to_string, 0 },
	{ "string", "uint64_to_string", "u:s", false, to_string, 0 },
	{ "timestamp", "int64_to_timestamp", "i:t", false, to_timestamp, 0 },
	{ "timestamp", "string_to_timestamp", "s:t", false, to_timestamp, 0 },
	{ "timestamp", "timestamp_to_timestamp", "t:t", false, convert_same, 0 },
	{ "type", "type", "A:ZA", false, to_type, 0 },
	{ "uint", "double_to_uint64", "d:u", false, to_uint, 0 },
	{ "uint", "int64_to_uint64", "i:u", false, to_uint, 0 },
	{ "uint", "string_to_uint64", "s:u", false, to_uint, 0 },
	{ "uint", "uint64_to_uint64", "u:u", false, convert_same, 0 },
};

const struct cel_library cel_lib_convert = { overloads, ARRAY_LEN(overloads), false };

/* ---- optional values ---- */

static struct cel_val optional_none(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)v;
	(void)n;
	return cel_optional_none();
}

static struct cel_val optional_of(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return cel_optional_of(ev->arena, v[0]);
}

static bool is_zero(struct cel_val v)
{
	switch (v.kind) {
	case CEL_NULL:
		return true;
	case CEL_BOOL:
		return !v.b;
	case CEL_INT:
	case CEL_UINT:
	case CEL_DURATION:
		return v.i == 0;
	case CEL_DOUBLE:
		return v.d == 0;
	case CEL_STRING:
	case CEL_BYTES:
		return v.n == 0;
	case CEL_TIMESTAMP:
		return v.i == TIME_ZERO_SECONDS && v.n == 0;
	case CEL_LIST:
	case CEL_MAP:
	case CEL_OBJECT:
		return cel_len(v) == 0;
	case CEL_OPTIONAL:
		return !v.optional;
	default:
		return false;
	}
}

static struct cel_val optional_of_non_zero(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return is_zero(v[0]) ? cel_optional_none() : cel_optional_of(ev->arena, v[0]);
}

static struct cel_val optional_has_value(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)n;
	return cel_of_bool(v[0].optional != NULL);
}

static struct cel_val optional_value(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return v[0].optional ? *v[0].optional : cel_fail(ev, "optional.none() dereference");
}

static struct cel_val optional_unwrap(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	size_t count = 0, all = cel_len(v[0]);

	(void)n;
	if (!cel_work(ev, all))
		return cel_of_null();
	struct cel_val *items = ARENA_ARRAY(ev->arena, struct cel_val, all);
	for (size_t i = 0; i < all; i++) {
		struct cel_val item = cel_at(ev->arena, v[0], i);
		if (item.kind != CEL_OPTIONAL)
			return cel_fail(ev, "value " STR_FMT " is not optional", STR_ARG(cel_show(ev->arena, item)));
		if (item.optional)
			items[count++] = *item.optional;
	}
	return cel_list_take(ev->arena, items, count);
}

static const struct cel_overload optional_overloads[] = {
	{ "hasValue", "optional_hasValue", "OA:b", true, optional_has_value, 0 },
	{ "optional.none", "optional_none", ":OA", false, optional_none, 0 },
	{ "optional.of", "optional_of", "A:OA", false, optional_of, 0 },
	{ "optional.ofNonZeroValue", "optional_ofNonZeroValue", "A:OA", false, optional_of_non_zero, 0 },
	{ "optional.unwrap", "optional_unwrap", "LOA:LA", false, optional_unwrap, 0 },
	/* These two are evaluated by cel_eval.c, which looks at the second argument only when it is needed. */
	{ "or", "optional_or_optional", "OAOA:OA", true, optional_value, 0 },
	{ "orValue", "optional_orValue_value", "OAA:A", true, optional_value, 0 },
	{ "unwrapOpt", "optional_unwrapOpt", "LOA:LA", true, optional_unwrap, 0 },
	{ "value", "optional_value", "OA:A", true, optional_value, 0 },
};

const struct cel_library cel_lib_optional = { optional_overloads, ARRAY_LEN(optional_overloads), false };
