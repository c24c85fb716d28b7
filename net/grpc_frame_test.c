#include "net/grpc_frame.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/test.h"

TEST(grpc_frames)
{
	/* Three messages, the second empty, cut into pieces of every size. */
	static const char wire[] = "\0\0\0\0\5hello\0\0\0\0\0\0\0\0\0\3abc";
	static const char *const want[] = { "hello", "", "abc" };

	for (size_t piece = 1; piece < sizeof wire; piece++) {
		struct grpc_deframer d = { .max = 5 };
		size_t n = 0;
		for (str all = str_span(wire, sizeof wire - 1); all.n; all = str_skip(all, piece)) {
			str bytes = str_head(all, piece);
			struct grpc_message *m;
			while (grpc_deframe(&d, &bytes, &m, NULL) == 1) {
				CHECK(n < ARRAY_LEN(want));
				CHECK_STR_ROW(piece, grpc_message_str(m), want[n++]);
				grpc_message_free(m);
			}
			CHECK_INT(bytes.n, 0);
		}
		CHECK_INT(n, ARRAY_LEN(want));
		CHECK(!grpc_deframe_pending(&d));
		grpc_deframer_done(&d);
	}
}

TEST(grpc_frame_large)
{
	enum { N = 300 * 1000 };
	struct grpc_deframer d = { .max = N };
	struct grpc_message *m = NULL;
	CLEANUP(mem_freep) char *wire = mem_zalloc(GRPC_PREFIX + N);

	grpc_prefix(wire, N);
	wire[GRPC_PREFIX + N - 1] = 'z';
	for (size_t at = 0; at < GRPC_PREFIX + N; at += 7000) {
		str bytes = str_span(wire + at, MIN((size_t)7000, (size_t)(GRPC_PREFIX + N) - at));
		CHECK_INT(grpc_deframe(&d, &bytes, &m, NULL), at + 7000 >= GRPC_PREFIX + N);
	}
	CHECK(m && m->n == N && m->bytes[N - 1] == 'z');
	grpc_message_free(m);
}

TEST(grpc_frames_refused)
{
	static const struct {
		str wire;
		int r;
	} t[] = {
		{ STR_INIT("\0\0\0\0\6abcdef"), -ERR_TOO_LARGE },
		{ STR_INIT("\0\377\377\377\377"), -ERR_TOO_LARGE },
		{ STR_INIT("\1\0\0\0\1a"), -ERR_INTERNAL },
		{ STR_INIT("\0\0\0\0\2a"), 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct grpc_deframer d = { .max = 5 };
		struct grpc_message *m;
		str bytes = t[i].wire;
		int r = grpc_deframe(&d, &bytes, &m, NULL);
		CHECK_ROW(i, r == t[i].r);
		CHECK_ROW(i, grpc_deframe_pending(&d));
		grpc_deframer_done(&d);
	}
}

TEST(grpc_timeouts)
{
	static const struct {
		int64_t ns;
		const char *want;
	} t[] = {
		{ -5, "1u" }, { 0, "1u" }, { 1, "1u" }, { 1000, "1u" }, { 1001, "2u" }, { 10 * NS_PER_S, "10000000u" },
		{ 100 * NS_PER_S, "100000m" }, { 86400 * NS_PER_S, "86400000m" }, { 864000 * NS_PER_S, "864000S" },
		{ INT64_MAX, "2562048H" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char text[GRPC_TIMEOUT_TEXT];
		CHECK_STR_ROW(i, grpc_timeout_text(t[i].ns, text), t[i].want);
	}
}

TEST(grpc_message_texts)
{
	static const struct {
		const char *in, *want;
	} t[] = {
		{ "plain", "plain" }, { "a%20b", "a b" },   { "%C3%A9", "\xc3\xa9" },
		{ "100%", "100%" },   { "%zz%2", "%zz%2" }, { "", "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(100);
		grpc_message_decode(&b, str_of(t[i].in));
		CHECK_STR_ROW(i, buf_str(&b), t[i].want);
	}
}

TEST(grpc_statuses)
{
	CHECK_INT(grpc_status_parse(STR("14")), GRPC_UNAVAILABLE);
	CHECK_INT(grpc_status_parse(STR("x")), -1);
	CHECK_INT(grpc_status_parse(STR("-1")), -1);
	CHECK_INT(grpc_status_parse(STR("99999999999")), -1);
	CHECK_INT(grpc_status_err(GRPC_UNAVAILABLE), ERR_UNAVAILABLE);
	CHECK_INT(grpc_status_err(GRPC_NOT_FOUND), ERR_NOT_FOUND);
	CHECK_INT(grpc_status_err(77), ERR_INTERNAL);
	CHECK_INT(grpc_status_of_http(503), GRPC_UNAVAILABLE);
	CHECK_INT(grpc_status_of_http(418), GRPC_UNKNOWN);
}
