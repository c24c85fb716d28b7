#include "base/buf.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/test.h"

TEST(buf_builds)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(100000);
	struct err err;

	buf_add(&b, STR("pods"));
	buf_addc(&b, '/');
	buf_addf(&b, "%s-%d", "web", 7);
	buf_add(&b, STR_NONE);
	CHECK_STR(buf_str(&b), "pods/web-7");
	CHECK(b.p[b.n] == '\0');
	for (int i = 0; i < 1000; i++)
		buf_addf(&b, "%03d,", i);
	CHECK_INT(b.n, 10 + 4000);
	CHECK(memcmp(b.p + b.n - 8, "998,999,", 9) == 0);
	CHECK_INT(buf_check(&b, "list", &err), 0);
	buf_reset(&b);
	CHECK_STR(buf_str(&b), "");
}

TEST(buf_add_quoted_as_go)
{
	static const struct {
		const char *in, *want;
	} t[] = {
		{ "", "\"\"" },
		{ "a b", "\"a b\"" },
		{ "\"\\", "\"\\\"\\\\\"" },
		{ "\a\b\t\n\v\f\r\x1b\x7f", "\"\\a\\b\\t\\n\\v\\f\\r\\x1b\\x7f\"" },
		{ "\xc3\xa9\xe4\xb8\x96", "\"\xc3\xa9\xe4\xb8\x96\"" },
		{ "\xc2\x85\xc2\xa0\xe2\x80\xa8", "\"\\u0085\\u00a0\\u2028\"" },
		{ "\xff\xc3", "\"\\xff\\xc3\"" },
		{ "\xf3\xa0\x80\x81", "\"\\U000e0001\"" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(100);
		buf_add_quoted(&b, str_of(t[i].in));
		CHECK_STR_ROW(i, buf_str(&b), t[i].want);
	}
}

TEST(buf_maximum)
{
	/* Exactly the maximum fits, in one piece or several, by every way of adding; one byte more does not. */
	static const char *const pieces[][4] = {
		{ "0123456789", NULL },
		{ "0123", "456789", NULL },
		{ "0", "12345678", "9", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		for (int way = 0; way < 3; way++) {
			CLEANUP(buf_done) struct buf b = BUF_INIT(10);
			struct err err;
			for (const char *const *p = pieces[i]; *p; p++)
				buf_addf(&b, "%s", *p);
			CHECK_ROW(i, !b.overflow && b.n == 10);
			if (way == 0)
				buf_addc(&b, 'x');
			else if (way == 1)
				buf_add(&b, STR("xyz"));
			else
				buf_addf(&b, "%d", 5);
			CHECK_ROW(i, b.overflow);
			CHECK_STR_ROW(i, buf_str(&b), "0123456789");
			CHECK_ROW(i, b.p[10] == '\0');
			CHECK_INT(buf_check(&b, "the line", &err), -ERR_TOO_LARGE);
			CHECK_STR(err_str(&err), "the line is larger than 10 bytes");
		}
	}
}

TEST(buf_overflow_stays)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(100);
	buf_add(&b, STR("a"));
	buf_addf(&b, "%200d", 1);
	buf_add(&b, STR("b"));
	CHECK_STR(buf_str(&b), "a"); /* no hole in the middle */
	CHECK(b.overflow);
	buf_reset(&b);
	buf_add(&b, STR("c"));
	CHECK_STR(buf_str(&b), "c");
	CHECK(!b.overflow);
}

TEST(buf_take)
{
	struct buf b = BUF_INIT(10);
	CLEANUP(mem_freep) char *empty = buf_take(&b);
	CHECK_STR(str_of(empty), "");

	buf_add(&b, STR("more than ten bytes"));
	CLEANUP(mem_freep) char *overflowed = buf_take(&b);
	CHECK_STR(str_of(overflowed), "");

	buf_add(&b, STR("text"));
	CLEANUP(mem_freep) char *text = buf_take(&b);
	CHECK_STR(str_of(text), "text");
	CHECK(!b.p && b.n == 0 && b.max == 10);

	struct buf none = BUF_INIT(0);
	buf_add(&none, STR(""));
	CHECK(!none.overflow);
	buf_addc(&none, 'x');
	CHECK(none.overflow);
	buf_done(&none);
}
