#include "base/str.h"

#include "base/test.h"

TEST(str_to_i64)
{
	static const struct {
		const char *in;
		bool ok;
		int64_t want;
	} t[] = {
		{ "0", true, 0 },
		{ "-1", true, -1 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775808", false, 0 },
		{ "-9223372036854775809", false, 0 },
		{ "", false, 0 },
		{ "-", false, 0 },
		{ "+1", false, 0 },
		{ "1 ", false, 0 },
		{ "1x", false, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int64_t got = 0;
		CHECK_ROW(i, str_to_i64(str_of(t[i].in), &got) == t[i].ok);
		CHECK_ROW(i, got == t[i].want);
	}
}

TEST(str_is_utf8)
{
	static const struct {
		const char *in;
		bool want;
	} t[] = {
		{ "", true },
		{ "plain ascii that is longer than one word", true },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", true },
		{ "\xc0\x80", false },         /* overlong NUL */
		{ "\xe0\x80\x80", false },     /* overlong */
		{ "\xed\xa0\x80", false },     /* surrogate */
		{ "\xf4\x90\x80\x80", false }, /* above U+10FFFF */
		{ "\xe2\x82", false },         /* cut off */
		{ "12345678\xff", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, str_is_utf8(str_of(t[i].in)) == t[i].want);
}

TEST(str_cut_and_trim)
{
	str head, tail;
	CHECK(str_cut(STR("a=b=c"), '=', &head, &tail));
	CHECK_STR(head, "a");
	CHECK_STR(tail, "b=c");
	CHECK(!str_cut(STR("abc"), '=', &head, &tail));
	CHECK_STR(head, "abc");
	CHECK_STR(tail, "");
	CHECK_STR(str_trim(STR(" \t x y\r\n")), "x y");
	CHECK_STR(str_trim(STR(" \n ")), "");
}

TEST(str_rune)
{
	static const struct {
		const char *in;
		size_t len;
		uint32_t rune;
	} t[] = {
		{ "", 0, 0 },
		{ "a", 1, 'a' },
		{ "\xc3\xa9z", 2, 0xe9 },
		{ "\xe2\x82\xac", 3, 0x20ac },
		{ "\xf0\x9f\x98\x80", 4, 0x1f600 },
		{ "\xf4\x8f\xbf\xbf", 4, 0x10ffff },
		{ "\x80", 0, 0 },
		{ "\xe2\x82", 0, 0 },
		{ "\xe2z\xac", 0, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		uint32_t rune = 0;
		CHECK_ROW(i, str_rune(str_of(t[i].in), &rune) == t[i].len);
		CHECK_ROW(i, rune == t[i].rune);
	}
}

TEST(str_cmp)
{
	/* In byte order: every entry is less than all after it. */
	static const str t[] = { STR_INIT(""), STR_INIT("\0"), STR_INIT("A"), STR_INIT("a"), STR_INIT("a\0"), STR_INIT("aa"),
				 STR_INIT("b"), STR_INIT("\xff") };
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		for (size_t k = 0; k < ARRAY_LEN(t); k++) {
			int c = str_cmp(t[i], t[k]);
			CHECK_ROW(i, i < k ? c < 0 : i > k ? c > 0 : c == 0);
			CHECK_ROW(i, str_eq(t[i], t[k]) == (i == k));
		}
	}
}

TEST(str_search)
{
	CHECK_INT(str_chr(STR("a/b/c"), '/'), 1);
	CHECK_INT(str_rchr(STR("a/b/c"), '/'), 3);
	CHECK_INT(str_chr(STR("abc"), '/'), -1);
	CHECK_INT(str_rchr(STR_NONE, '/'), -1);
	CHECK_INT(str_find(STR("hello"), STR("llo")), 2);
	CHECK_INT(str_find(STR("hello"), STR("xx")), -1);
	CHECK_INT(str_find(STR_NONE, STR("")), 0);
	CHECK_INT(str_find(STR_NONE, STR("x")), -1);
	CHECK(str_starts(STR("abc"), STR("ab")) && str_starts(STR_NONE, STR_NONE) && !str_starts(STR("a"), STR("ab")));
	CHECK(str_ends(STR("abc"), STR("bc")) && str_ends(STR("abc"), STR("")) && !str_ends(STR("c"), STR("bc")));
}

TEST(str_slices)
{
	CHECK_STR(str_skip(STR("abc"), 0), "abc");
	CHECK_STR(str_skip(STR("abc"), 2), "c");
	CHECK_STR(str_skip(STR("abc"), 9), "");
	CHECK_STR(str_skip(STR_NONE, 1), "");
	CHECK_STR(str_head(STR("abc"), 2), "ab");
	CHECK_STR(str_head(STR("abc"), 9), "abc");
}

TEST(str_hash_spreads)
{
	/* All strings of one and two letters, and a long one changed in every byte, hash differently. */
	enum { PAIRS = 26 * 27, LONG = 40 };
	static uint64_t seen[PAIRS + LONG + 1];
	char text[LONG] = { 0 };
	size_t n = 0;

	for (int i = 0; i < PAIRS; i++) {
		char pair[2] = { (char)('a' + i % 26), (char)('a' + i / 26 - 1) };
		seen[n++] = str_hash(str_span(pair, i < 26 ? 1 : 2));
	}
	seen[n++] = str_hash(str_span(text, LONG));
	for (int i = 0; i < LONG; i++) {
		text[i] ^= 1;
		seen[n++] = str_hash(str_span(text, LONG));
		text[i] ^= 1;
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			CHECK_ROW(i, seen[i] != seen[k]);
}
