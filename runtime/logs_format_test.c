#include "runtime/logs_format.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/test.h"

TEST(logs_head)
{
	char out[LOGS_HEAD_MAX];

	CHECK_STR(logs_head(1475713029669794202, LOGS_STDOUT, false, out), "2016-10-06T00:17:09.669794202Z stdout F ");
	CHECK_STR(logs_head(0, LOGS_STDERR, true, out), "1970-01-01T00:00:00.000000000Z stderr P ");
	CHECK_STR(logs_head(-1, LOGS_STDERR, true, out), "1969-12-31T23:59:59.999999999Z stderr P ");
	CHECK_STR(logs_head(INT64_MAX, LOGS_STDOUT, true, out), "2262-04-11T23:47:16.854775807Z stdout P ");
}

TEST(logs_cut)
{
	static const struct {
		const char *held, *data;
		enum logs_cut want;
		const char *want_held, *want_piece;
		size_t taken;
	} t[] = {
		{ "", "a\nb\n", LOGS_FULL, "", "a", 2 },
		{ "", "\n", LOGS_FULL, "", "", 1 },
		{ "", "\n\n", LOGS_FULL, "", "", 1 },
		{ "", "abc", LOGS_MORE, "", "abc", 3 },
		{ "ab", "c\n", LOGS_FULL, "ab", "c", 2 },
		{ "ab", "\n", LOGS_FULL, "ab", "", 1 },
		{ "ab", "", LOGS_MORE, "ab", "", 0 },
		{ "", "a\r\n", LOGS_FULL, "", "a", 3 },
		{ "a\r", "\n", LOGS_FULL, "a", "", 1 },
		{ "", "\r\n", LOGS_FULL, "", "", 2 },
		{ "a", "\rb\n", LOGS_FULL, "a", "\rb", 3 },
		{ "a", "\r", LOGS_MORE, "a", "\r", 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str held, piece;
		size_t taken;
		CHECK_ROW(i, logs_cut(str_of(t[i].held), str_of(t[i].data), &held, &piece, &taken) == t[i].want);
		CHECK_STR_ROW(i, held, t[i].want_held);
		CHECK_STR_ROW(i, piece, t[i].want_piece);
		CHECK_ROW(i, taken == t[i].taken);
	}
}

/* A line of n bytes comes in blocks of a size: the lengths of its entries, the partial ones negative. */
static void check_long(size_t n, size_t block, const char *end, const char *want)
{
	CLEANUP(buf_done) struct buf data = BUF_INIT(1 << 20), held = BUF_INIT(LOGS_TEXT_MAX), got = BUF_INIT(4096);

	for (size_t i = 0; i < n; i++)
		buf_addc(&data, 'x');
	buf_add(&data, str_of(end));
	for (size_t at = 0; at < data.n;) {
		str part = str_head(str_skip(buf_str(&data), at), block);
		at += part.n;
		while (part.n) {
			str a, b;
			size_t taken;
			enum logs_cut cut = logs_cut(buf_str(&held), part, &a, &b, &taken);
			if (cut == LOGS_MORE) {
				buf_add(&held, part);
				break;
			}
			buf_addf(&got, "%s%d ", cut == LOGS_PARTIAL ? "-" : "", (int)(a.n + b.n));
			buf_reset(&held);
			part = str_skip(part, taken);
		}
		CHECK(!held.overflow);
	}
	buf_addf(&got, "%d", (int)held.n);
	CHECK_STR(buf_str(&got), want);
}

TEST(logs_cut_long)
{
	static const size_t blocks[] = { 1, 1000, 16384, 16385, 1 << 20 };

	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		check_long(16383, blocks[i], "\n", "16383 0");
		check_long(16384, blocks[i], "\n", "16384 0");
		check_long(16385, blocks[i], "\n", "-16384 1 0");
		check_long(40000, blocks[i], "\n", "-16384 -16384 7232 0");
		check_long(32768, blocks[i], "", "-16384 16384");
		check_long(16383, blocks[i], "\r\n", "16383 0");
	}
}

TEST(logs_parse)
{
	static const struct {
		const char *line;
		int r;
		int64_t ns;
		enum logs_stream stream;
		bool partial;
		const char *text;
	} t[] = {
		{ "2016-10-06T00:17:09.669794202Z stdout F log content", 0, 1475713029669794202, LOGS_STDOUT, false, "log content" },
		{ "2016-10-06T00:17:09Z stderr P x", 0, 1475713029000000000, LOGS_STDERR, true, "x" },
		{ "2016-10-06T02:17:09.5+02:00 stderr P:other x", 0, 1475713029500000000, LOGS_STDERR, true, "x" },
		{ "2016-10-06T00:17:09Z stdout F ", 0, 1475713029000000000, LOGS_STDOUT, false, "" },
		{ "2016-10-06T00:17:09Z stdout F  two", 0, 1475713029000000000, LOGS_STDOUT, false, " two" },
		{ "2016-10-06T00:17:09Z stdout new x", 0, 1475713029000000000, LOGS_STDOUT, false, "x" },
		{ "2016-10-06T00:17:09Z stdout F", -ERR_INVALID, 0, 0, false, "" },
		{ "2016-10-06T00:17:09Z stdin F x", -ERR_INVALID, 0, 0, false, "" },
		{ "2016-10-06T00:17:09Z stdout", -ERR_INVALID, 0, 0, false, "" },
		{ "2016-10-06 00:17:09Z stdout F x", -ERR_INVALID, 0, 0, false, "" },
		{ "9999-10-06T00:17:09Z stdout F x", -ERR_INVALID, 0, 0, false, "" },
		{ "0001-10-06T00:17:09Z stdout F x", -ERR_INVALID, 0, 0, false, "" },
		{ "nonsense", -ERR_INVALID, 0, 0, false, "" },
		{ "", -ERR_INVALID, 0, 0, false, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct logs_entry e = { 0 };
		struct err err = ERR_INIT;
		CHECK_ROW(i, logs_parse(str_of(t[i].line), &e, &err) == t[i].r);
		if (t[i].r < 0)
			continue;
		CHECK_ROW(i, e.ns == t[i].ns && e.stream == t[i].stream && e.partial == t[i].partial);
		CHECK_STR_ROW(i, e.text, t[i].text);
	}
}
