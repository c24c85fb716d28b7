#include <float.h>
#include <math.h>

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

static str encode(struct buf *b, struct val v, const struct type *type)
{
	struct json_encode_options opt = { .type = type };
	static struct err err; /* outlives the call: its message may be the result */

	buf_reset(b);
	return json_encode(b, v, &opt, &err) < 0 ? err_str(&err) : buf_str(b);
}

TEST(json_quote)
{
	static const struct { const char *in, *escaped, *plain; } t[] = {
		{ "", "\"\"", "\"\"" },
		{ "abc", "\"abc\"", "\"abc\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"", "\"a\\\"b\\\\c\"" },
		{ "<a>&b", "\"\\u003ca\\u003e\\u0026b\"", "\"<a>&b\"" },
		{ "\b\f\n\r\t\v\x01\x1f", "\"\\b\\f\\n\\r\\t\\u000b\\u0001\\u001f\"",
		  "\"\\b\\f\\n\\r\\t\\u000b\\u0001\\u001f\"" },
		{ "\x7f", "\"\x7f\"", "\"\x7f\"" },
		{ "h\303\251", "\"h\303\251\"", "\"h\303\251\"" },
		{ "\342\200\250\342\200\251\342\200\247", "\"\\u2028\\u2029\342\200\247\"",
		  "\"\\u2028\\u2029\342\200\247\"" },
		{ "\360\237\230\200", "\"\360\237\230\200\"", "\"\360\237\230\200\"" },
		{ "a\377b\303", "\"a\\ufffdb\\ufffd\"", "\"a\\ufffdb\\ufffd\"" },
		{ "\355\240\200", "\"\\ufffd\\ufffd\\ufffd\"", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "0123456789abcdef", "\"0123456789abcdef\"", "\"0123456789abcdef\"" },
		{ "0123456789abcdef<", "\"0123456789abcdef\\u003c\"", "\"0123456789abcdef<\"" },
		{ "0123456789<bcdef0123456789", "\"0123456789\\u003cbcdef0123456789\"",
		  "\"0123456789<bcdef0123456789\"" },
		{ "\n123456789abcdef\n123456789abcdef\n", "\"\\n123456789abcdef\\n123456789abcdef\\n\"",
		  "\"\\n123456789abcdef\\n123456789abcdef\\n\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
		json_quote(&b, str_of(t[i].in), false);
		CHECK_STR_ROW(i, buf_str(&b), t[i].escaped);
		buf_reset(&b);
		json_quote(&b, str_of(t[i].in), true);
		CHECK_STR_ROW(i, buf_str(&b), t[i].plain);
	}
}

/* A special character at every place of strings of every length up to a few vectors. */
TEST(json_quote_everywhere)
{
	for (size_t n = 1; n < 70; n++) {
		for (size_t at = 0; at < n; at++) {
			CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 10);
			char text[70], want[80];
			memset(text, 'x', n);
			text[at] = '&';
			json_quote(&b, str_span(text, n), false);
			int len = snprintf(want, sizeof(want), "\"%.*s\\u0026%.*s\"", (int)at, text,
					   (int)(n - at - 1), text + at + 1);
			CHECK(len > 0);
			CHECK_STR(buf_str(&b), want);
		}
	}
}

TEST(json_encode_doubles)
{
	static const struct { double d; const char *want; } t[] = {
		{ 0, "0" }, { -0.0, "-0" }, { 1, "1" }, { -1.5, "-1.5" }, { 0.1, "0.1" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 1.0 / 3, "0.3333333333333333" }, { 100, "100" }, { 123456789, "123456789" },
		{ 1e20, "100000000000000000000" },
		{ 1e21, "1e+21" }, { 1.5e300, "1.5e+300" }, { 0.000001, "0.000001" }, { 9.99e-7, "9.99e-7" },
		{ 1e-7, "1e-7" },
		{ 1e-10, "1e-10" }, { 5e-324, "5e-324" }, { DBL_MAX, "1.7976931348623157e+308" },
		{ DBL_MIN, "2.2250738585072014e-308" },
		{ 0x1p-24, "5.960464477539063e-8" }, { 0x1p-1017, "7.120236347223045e-307" },
		{ 9007199254740992, "9007199254740992" },
		{ 2.5, "2.5" }, { 1234567.875, "1234567.875" }, { 4.35, "4.35" }, { 1e23, "1e+23" },
		{ 8.41e21, "8.41e+21" },
		{ NAN, "json: unsupported value: NaN" }, { INFINITY, "json: unsupported value: +Inf" },
		{ -INFINITY, "json: unsupported value: -Inf" },
	};
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, encode(&b, val_of_double(t[i].d), NULL), t[i].want);
}

TEST(json_encode_integers)
{
	static const struct { int64_t i; const char *want; } t[] = {
		{ 0, "0" }, { 7, "7" }, { 10, "10" }, { 99, "99" }, { 100, "100" }, { 101, "101" }, { -1, "-1" },
		{ 65536, "65536" },
		{ 1234567890, "1234567890" }, { INT64_MAX, "9223372036854775807" }, { INT64_MIN, "-9223372036854775808" },
	};
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, encode(&b, val_of_int(t[i].i), NULL), t[i].want);
}

/* Trees that code put together: any order, nulls and zeros, unsorted maps, names that the type does not have. */
TEST(json_encode_untidy_trees)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val labels = OBJECT(&a, { atom_make(&a, STR("zz")), VAL_LIT("1") },
				   { atom_make(&a, STR("aa")), VAL_LIT("2") });
	struct val pod = OBJECT(&a, F(spec, OBJECT(&a, F(nodeName, VAL_LIT("n")), F(hostname, VAL_LIT("")),
						   F(priority, val_of_int(0)))),
				F(replicas, val_of_int(3)),
				F(metadata, OBJECT(&a, F(labels, labels), F(name, VAL_LIT("p")),
						   F(generation, val_of_int(0)),
						   F(annotations, VAL_EMPTY_OBJECT),
						   F(deletionTimestamp, VAL_NULL_VALUE))),
				F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Pod")));

	CHECK_STR(encode(&b, pod, TYPE(core_v1, Pod)),
		  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\",\"labels\":{\"aa\":\"2\",\"zz\":\"1\"}},"
		  "\"spec\":{\"containers\":null,\"nodeName\":\"n\",\"priority\":0},\"status\":{}}");
	CHECK_STR(encode(&b, pod, NULL),
		  "{\"spec\":{\"nodeName\":\"n\",\"hostname\":\"\",\"priority\":0},\"replicas\":3,\"metadata\":{\"labels\":"
		  "{\"zz\":\"1\",\"aa\":\"2\"},\"name\":\"p\",\"generation\":0,\"annotations\":{},\"deletionTimestamp\":null},"
		  "\"apiVersion\":\"v1\",\"kind\":\"Pod\"}");
}

TEST(json_encode_always)
{
	static const struct { const struct type *type; const char *want; } t[] = {
		{ TYPE(core_v1, Pod), "{\"metadata\":{},\"spec\":{\"containers\":null},\"status\":{}}" },
		{ TYPE(core_v1, Container), "{\"name\":\"\",\"resources\":{}}" },
		{ TYPE(core_v1, PodList), "{\"metadata\":{},\"items\":null}" },
		{ TYPE(core_v1, ServicePort), "{\"port\":0,\"targetPort\":0}" },
		{ TYPE(core_v1, ResourceFieldSelector), "{\"resource\":\"\",\"divisor\":\"0\"}" },
		{ TYPE(core_v1, EventSource), "{}" },
	};
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_STR_ROW(i, encode(&b, VAL_EMPTY_OBJECT, t[i].type), t[i].want);
		CHECK_ROW(i, str_eq(t[i].type->zero_json, str_of(t[i].want)));
	}
}

TEST(json_encode_raw)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	static const char text[] = "{\"f:a<b\":{\"k:{\\\"x\\\":\\\"\342\200\250\\\"}\":{},\"0123456789abcdef&\":{}}}";
	struct val raw = { .type = VAL_RAW, .n = sizeof(text) - 1, .s = text };

	CHECK_STR(encode(&b, raw, NULL),
		  "{\"f:a\\u003cb\":{\"k:{\\\"x\\\":\\\"\\u2028\\\"}\":{},\"0123456789abcdef\\u0026\":{}}}");
}

TEST(json_encode_indent)
{
	static const struct { const char *in, *want; } t[] = {
		{ "{}", "{}" },
		{ "[]", "[]" },
		{ "5", "5" },
		{ "{\"a\":{},\"b\":[],\"c\":[1,{\"d\":\"{[,:]}\\\"\"}]}",
		  "{\n  \"a\": {},\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"{[,:]}\\\"\"\n    }\n  ]\n}" },
		{ "[[],[[]],null]", "[\n  [],\n  [\n    []\n  ],\n  null\n]" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct json_decode_options decode = { .type = NULL };
		struct json_encode_options opt = { .indent = 2 };
		struct val v;
		CHECK_ROW(i, json_decode(&a, str_of(t[i].in), &decode, &v, NULL) == 0);
		CHECK_ROW(i, json_encode(&b, v, &opt, NULL) == 0);
		CHECK_STR_ROW(i, buf_str(&b), t[i].want);
	}
}

/* A buffer takes what fits to the last byte, and nothing of what does not. */
TEST(json_encode_limit)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v = LIST(&a, VAL_LIT("0123456789"), val_of_int(42), VAL_LIT("\n\n\n"), VAL_EMPTY_OBJECT);
	static const char want[] = "[\"0123456789\",42,\"\\n\\n\\n\",{}]";

	for (size_t max = 0; max < sizeof(want) + 40; max++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(max);
		struct json_encode_options opt = { .type = NULL };
		struct err err = ERR_INIT;
		int r = json_encode(&b, v, &opt, &err);
		CHECK_ROW(max, r == (max < sizeof(want) - 1 ? -ERR_TOO_LARGE : 0));
		CHECK_ROW(max, b.n == (r < 0 ? 0 : sizeof(want) - 1) && b.cap <= max + 1);
	}
}

TEST(json_encode_appends)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct json_encode_options opt = { .type = NULL };

	buf_add(&b, STR("x,"));
	CHECK(json_encode(&b, VAL_EMPTY_LIST, &opt, NULL) == 0);
	json_quote(&b, STR("y"), false);
	CHECK_STR(buf_str(&b), "x,[]\"y\"");
}

TEST(json_encode_mismatch)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	CHECK_STR(encode(&b, OBJECT(&a, F(spec, val_of_int(1))), TYPE(core_v1, Pod)),
		  "value does not fit its type: object expected");
	CHECK_INT(b.n, 0);
	CHECK_STR(encode(&b, OBJECT(&a, F(containers, VAL_EMPTY_OBJECT)), TYPE(core_v1, PodSpec)),
		  "value does not fit its type: list expected");
}
