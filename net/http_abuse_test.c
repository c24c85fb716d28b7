/* Clients that do harm, or nothing. */
#include "net/http_server_test.h"

#include "base/clock.h"
#include "base/fiber_test.h"
#include "net/test_certs.h"

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, WINDOW_UPDATE = 8, CONTINUATION = 9 };
enum { END_STREAM = 1, END_HEADERS = 4 };

static void add_frame(struct buf *b, int type, int flags, unsigned stream, str payload)
{
	const unsigned char head[] = {
		(unsigned char)(payload.n >> 16), (unsigned char)(payload.n >> 8), (unsigned char)payload.n,
		(unsigned char)type, (unsigned char)flags,
		(unsigned char)(stream >> 24), (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream,
	};
	buf_add(b, str_span((const char *)head, sizeof(head)));
	buf_add(b, payload);
}

/* HPACK without tables: GET or POST, http, this path. */
static void add_request(struct buf *b, unsigned stream, bool post, const char *path, int flags)
{
	char block[64];
	int n = snprintf(block, sizeof(block), "%c\x86%c%c%s", post ? 0x83 : 0x82, 4, (int)strlen(path), path);
	n += snprintf(block + n, sizeof(block) - (size_t)n, "\x01\x01x");
	add_frame(b, HEADERS, flags | END_HEADERS, stream, str_span(block, (size_t)n));
}

static struct stream *open_h2(struct test_server *t, str settings)
{
	struct stream *s = test_dial(t);
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);

	buf_add(&b, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	add_frame(&b, SETTINGS, 0, 0, settings);
	test_send(s, buf_str(&b));
	return s;
}

/* The error code of the last GOAWAY among the frames, or -1. */
static int goaway_code(struct buf b)
{
	int code = -1;

	for (size_t at = 0, n; at + 9 <= b.n; at += 9 + n) {
		const unsigned char *f = (const unsigned char *)b.p + at;
		n = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
		if (f[3] == GOAWAY && at + 17 <= b.n)
			code = f[16];
	}
	return code;
}

static void wait_connections(struct test_server *t, unsigned want)
{
	for (int i = 0; http_server_stats(t->server).connections != want; i++) {
		CHECK(i < 2000);
		CHECK_INT(fiber_sleep_ms(5, NULL), 0);
	}
}

/* ---- Floods ---- */

static void add_ping(struct buf *b, unsigned i) { (void)i, add_frame(b, PING, 0, 0, STR("12345678")); }
static void add_settings(struct buf *b, unsigned i) { (void)i, add_frame(b, SETTINGS, 0, 0, STR_NONE); }
static void add_window(struct buf *b, unsigned i) { (void)i, add_frame(b, WINDOW_UPDATE, 0, 0, STR("\0\0\0\1")); }

static void add_reset(struct buf *b, unsigned i)
{
	add_request(b, 2 * i + 1, false, "/slow", END_STREAM);
	add_frame(b, RST_STREAM, 0, 2 * i + 1, STR("\0\0\0\x8"));
}

static void add_too_many(struct buf *b, unsigned i) { add_request(b, 2 * i + 1, false, "/slow", END_STREAM); }

static void add_empty_data(struct buf *b, unsigned i)
{
	if (i == 0)
		add_request(b, 1, true, "/echo", 0);
	add_frame(b, DATA, 0, 1, STR_NONE);
}

static void add_continuation(struct buf *b, unsigned i)
{
	if (i == 0)
		add_frame(b, HEADERS, END_STREAM, 1, STR("\x82\x86\x84"));
	add_frame(b, CONTINUATION, 0, 1, STR("\0\1a\1b"));
}

static void flood(void (*add)(struct buf *b, unsigned i), unsigned most_handlers)
{
	struct test_server t;
	int r = 0;

	test_server_start(&t, (struct http_server_options){ .write_timeout_ms = 5000 }, 1000);
	CLEANUP(stream_freep) struct stream *s = open_h2(&t, STR_NONE);
	for (unsigned i = 0; i < 200000 && r == 0; i += 500) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
		for (unsigned j = 0; j < 500; j++)
			add(&b, i + j);
		r = stream_write(s, b.p, b.n, NULL);
	}
	wait_connections(&t, 0);
	CHECK(http_server_stats(t.server).floods <= 1);
	if (add != add_continuation)
		CHECK_INT(http_server_stats(t.server).floods, 1);
	CHECK((unsigned)t.begun <= most_handlers);
	CHECK_INT(t.begun, t.ended);
	test_server_stop(&t);
}

FIBER_TEST(http2_flood_of_pings) { flood(add_ping, 0); }
FIBER_TEST(http2_flood_of_settings) { flood(add_settings, 0); }
FIBER_TEST(http2_flood_of_window_updates) { flood(add_window, 0); }
FIBER_TEST(http2_flood_of_empty_data) { flood(add_empty_data, 0); }
FIBER_TEST(http2_flood_of_continuations) { flood(add_continuation, 0); }
FIBER_TEST(http2_flood_of_resets) { flood(add_reset, 2000); }
FIBER_TEST(http2_flood_of_streams) { flood(add_too_many, 250); }

FIBER_TEST(http2_flood_is_told_to_calm_down)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	CLEANUP(stream_freep) struct stream *s = open_h2(&t, STR_NONE);
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	for (unsigned i = 0; i < 12000; i++)
		add_window(&b, i);
	test_send(s, buf_str(&b));
	CLEANUP(buf_done) struct buf frames = test_read_all(s);
	CHECK_INT(goaway_code(frames), 11);
	test_server_stop(&t);
}

/* ---- Sharing a connection ---- */

FIBER_TEST(http2_small_answers_pass_large_ones)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	CLEANUP(stream_freep) struct stream *s = open_h2(&t, STR("\0\4\0\xf0\0\0"));
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);

	add_frame(&b, WINDOW_UPDATE, 0, 0, STR("\0\xf0\0\0"));
	add_request(&b, 1, false, "/big", END_STREAM);
	test_send(s, buf_str(&b));
	test_skip_until(s, "aaaaaaaa");
	buf_reset(&b);
	add_request(&b, 3, false, "/big", END_STREAM);
	add_request(&b, 5, false, "/hello", END_STREAM);
	test_send(s, buf_str(&b));
	size_t seen = 0;
	for (bool found = false; !found;) {
		CLEANUP(buf_done) struct buf more = BUF_INIT(1 << 20);
		ssize_t n = stream_read(s, buf_reserve(&more, 65536), 65536, NULL);
		CHECK(n > 0);
		buf_commit(&more, (size_t)n);
		found = str_find(buf_str(&more), STR("hello\n")) >= 0;
		seen += (size_t)n;
	}
	CHECK(seen < 2 * BIG - (2 << 20));
	stream_free(TAKE(s));
	wait_for(&t.stopped, 2);
	test_server_stop(&t);
}

/* ---- Slow ones ---- */

FIBER_TEST(http_slow_headers)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ .header_timeout_ms = 500 }, 1000);
	CLEANUP(stream_freep) struct stream *partial = test_dial(&t), *silent = test_dial(&t), *h2 = open_h2(&t, STR_NONE);
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);

	test_send(partial, STR("GET /hello HTTP/1.1\r\nHost"));
	add_frame(&b, HEADERS, 0, 1, STR("\x82\x86\x84"));
	test_send(h2, buf_str(&b));
	CLEANUP(buf_done) struct buf late = test_read_all(partial);
	CHECK(str_starts(buf_str(&late), STR("HTTP/1.1 408 Request Timeout\r\n")));
	CLEANUP(buf_done) struct buf none = test_read_all(silent);
	CHECK_INT(none.n, 0);
	CLEANUP(buf_done) struct buf frames = test_read_all(h2);
	CHECK(goaway_code(frames) > 0);
	wait_connections(&t, 0);
	test_server_stop(&t);
}

/* One request that makes no sense is not a slow header, and does not concern the others. */
FIBER_TEST(http2_malformed_request_leaves_the_others_alone)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ .header_timeout_ms = 100 }, 1000);
	CLEANUP(stream_freep) struct stream *s = open_h2(&t, STR_NONE);
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);

	add_request(&b, 1, false, "/ticks", END_STREAM);
	add_frame(&b, HEADERS, END_STREAM | END_HEADERS, 3, STR("\x82\x86")); /* no path */
	test_send(s, buf_str(&b));
	wait_for(&t.begun, 1);
	CHECK_INT(fiber_sleep_ms(300, NULL), 0);
	ticks_push(&t, "still here");
	test_skip_until(s, "still here");
	stream_free(TAKE(s));
	wait_for(&t.stopped, 1);
	test_server_stop(&t);
}

FIBER_TEST(http_slow_handshake)
{
	CLEANUP(test_cert_done) struct test_cert c = test_cert_new("server", "IP:127.0.0.1", NULL);
	const struct tls_options o = { .cert_pem = c.cert, .key_pem = c.key };
	struct tls_context *tls = NULL;
	struct test_server t;

	CHECK_INT(tls_server_new(&o, &tls, NULL), 0);
	test_server_start(&t, (struct http_server_options){ .tls = tls, .header_timeout_ms = 100 }, 1000);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t);
	CLEANUP(buf_done) struct buf none = test_read_all(s);
	CHECK_INT(none.n, 0);
	test_server_stop(&t);
	tls_context_free(tls);
}

FIBER_TEST(http_slow_body)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ .body_timeout_ms = 100 }, 1000);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t);

	test_send(s, STR("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nConnection: close\r\n\r\nabc"));
	CLEANUP(buf_done) struct buf b = test_read_until(s, "\r\n\r\n");
	CHECK(str_starts(buf_str(&b), STR("HTTP/1.1 504 Gateway Timeout\r\n")));
	stream_free(TAKE(s));
	test_server_stop(&t);
}

FIBER_TEST(http_slow_reader)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ .write_timeout_ms = 200 }, 1000);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t);

	test_send(s, STR("GET /big HTTP/1.1\r\nHost: x\r\n\r\n"));
	wait_for(&t.stopped, 1);
	wait_connections(&t, 0);
	test_server_stop(&t);
}

FIBER_TEST(http2_window_that_is_never_opened)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ .write_timeout_ms = 200 }, 1000);
	CLEANUP(stream_freep) struct stream *s = open_h2(&t, STR("\0\4\0\0\0\0"));
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);

	add_request(&b, 1, false, "/big", END_STREAM);
	add_request(&b, 3, false, "/ticks", END_STREAM);
	add_frame(&b, WINDOW_UPDATE, 0, 3, STR("\0\0\0\x9"));
	test_send(s, buf_str(&b));
	wait_for(&t.stopped, 1);
	/* A stream that has nothing to say may wait as long as it likes. */
	CHECK_INT(fiber_sleep_ms(300, NULL), 0);
	CHECK_INT(t.stopped, 1);
	CHECK_INT(http_server_stats(t.server).connections, 1);
	stream_free(TAKE(s));
	wait_for(&t.stopped, 2);
	test_server_stop(&t);
}

FIBER_TEST(http_idle_connections_end)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ .idle_timeout_ms = 500 }, 1000);
	CLEANUP(stream_freep) struct stream *h1 = test_dial(&t), *h2 = open_h2(&t, STR_NONE);

	test_send(h1, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
	CLEANUP(buf_done) struct buf b = test_read_all(h1);
	CHECK(str_ends(buf_str(&b), STR("hello\n")));
	CLEANUP(buf_done) struct buf frames = test_read_all(h2);
	CHECK_INT(goaway_code(frames), 0);
	test_server_stop(&t);
}

FIBER_TEST(http_connections_at_the_maximum)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ .max_connections = 2 }, 1000);
	CLEANUP(stream_freep) struct stream *idle = test_dial(&t), *busy = test_dial(&t);

	test_send(idle, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
	test_skip_until(idle, "hello\n");
	test_send(busy, STR("GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n"));
	wait_for(&t.begun, 1);
	CLEANUP(stream_freep) struct stream *third = test_dial(&t);
	CLEANUP(buf_done) struct buf end = test_read_all(idle);
	CHECK_INT(end.n, 0);
	test_send(third, STR("GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n"));
	wait_for(&t.begun, 2);
	CLEANUP(stream_freep) struct stream *fourth = test_dial(&t);
	CLEANUP(buf_done) struct buf none = test_read_all(fourth);
	CHECK_INT(none.n, 0);
	stream_free(TAKE(busy));
	stream_free(TAKE(third));
	wait_for(&t.stopped, 2);
	test_server_stop(&t);
}
