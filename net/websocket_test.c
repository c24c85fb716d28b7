#include "net/websocket.h"

#include <sys/socket.h>

#include "base/buf.h"
#include "base/fiber_test.h"
#include "base/mem.h"
#include "base/random.h"
#include "net/stream.h"

/* ---- frames ---- */

#define BYTES(lit) { lit, sizeof(lit) - 1 }

TEST(websocket_frame_parse)
{
	static const struct { str in; int r; bool fin, masked; int opcode; uint64_t length; size_t used; } t[] = {
		{ BYTES(""), 0, 0, 0, 0, 0, 0 },
		{ BYTES("\x81"), 0, 0, 0, 0, 0, 0 },
		{ BYTES("\x81\x05Hello"), 1, true, false, WS_TEXT, 5, 2 },                    /* RFC 6455, section 5.7 */
		{ BYTES("\x81\x85\x37\xfa\x21\x3d"), 1, true, true, WS_TEXT, 5, 6 },
		{ BYTES("\x81\x85\x37\xfa\x21"), 0, 0, 0, 0, 0, 0 },
		{ BYTES("\x01\x03Hel"), 1, false, false, WS_TEXT, 3, 2 },
		{ BYTES("\x80\x02lo"), 1, true, false, WS_CONTINUATION, 2, 2 },
		{ BYTES("\x82\x7e\x01\x00"), 1, true, false, WS_BINARY, 256, 4 },
		{ BYTES("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"), 1, true, false, WS_BINARY, 65536, 10 },
		{ BYTES("\x89\x7d"), 1, true, false, WS_PING, 125, 2 },
		{ BYTES("\x82\x7e\x00\x7d"), -ERR_BAD_REQUEST, 0, 0, 0, 0, 0 },                /* could be shorter */
		{ BYTES("\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff"), -ERR_BAD_REQUEST, 0, 0, 0, 0, 0 },
		{ BYTES("\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00"), -ERR_BAD_REQUEST, 0, 0, 0, 0, 0 },
		{ BYTES("\x89\x7e\x00\xff"), -ERR_BAD_REQUEST, 0, 0, 0, 0, 0 },                /* long ping */
		{ BYTES("\x09\x00"), -ERR_BAD_REQUEST, 0, 0, 0, 0, 0 },                        /* fragmented ping */
		{ BYTES("\xc1\x00"), -ERR_BAD_REQUEST, 0, 0, 0, 0, 0 },                        /* reserved bit: no deflate */
		{ BYTES("\x83\x00"), -ERR_BAD_REQUEST, 0, 0, 0, 0, 0 },
		{ BYTES("\x8b\x00"), -ERR_BAD_REQUEST, 0, 0, 0, 0, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct ws_frame f = { 0 };
		size_t used = 0;
		char again[WS_FRAME_HEAD_MAX];
		CHECK_ROW(i, ws_frame_parse(t[i].in, &f, &used, NULL) == t[i].r && used == t[i].used);
		if (t[i].r != 1)
			continue;
		CHECK_ROW(i, f.fin == t[i].fin && f.masked == t[i].masked && (int)f.opcode == t[i].opcode && f.length == t[i].length);
		CHECK_ROW(i, ws_frame_write(again, &f) == used && memcmp(again, t[i].in.p, used) == 0);
	}
}

TEST(websocket_mask)
{
	char text[] = "\x7f\x9f\x4d\x51\x58";
	ws_mask(text, 5, (const uint8_t *)"\x37\xfa\x21\x3d", 0);
	CHECK_STR(str_of(text), "Hello");
	/* In pieces of any size it comes to the same. */
	for (size_t step = 1; step < 30; step++) {
		char a[100] = { 0 }, b[100] = { 0 };
		ws_mask(a, sizeof(a), (const uint8_t *)"abcd", 0);
		for (size_t at = 0; at < sizeof(b); at += step)
			ws_mask(b + at, MIN(step, sizeof(b) - at), (const uint8_t *)"abcd", at);
		CHECK_ROW(step, memcmp(a, b, sizeof(a)) == 0);
	}
}

TEST(websocket_utf8)
{
	static const struct { const char *in; bool ok, whole; } t[] = {
		{ "abc", true, true }, { "\xc3\xa4", true, true }, { "\xe2\x82\xac", true, true }, { "\xf0\x9f\x98\x80", true, true },
		{ "\xc3", true, false }, { "\xf0\x9f\x98", true, false }, { "\xf4\x8f\xbf\xbf", true, true },
		{ "\x80", false, false }, { "\xc0\x80", false, false }, { "\xe0\x80\x80", false, false }, { "\xed\xa0\x80", false, false },
		{ "\xf4\x90\x80\x80", false, false }, { "\xf5\x80\x80\x80", false, false }, { "\xc3x", false, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct ws_utf8 u = { 0 };
		bool ok = true;
		for (const char *c = t[i].in; *c; c++)
			ok = ok && ws_utf8_next(&u, str_span(c, 1));
		CHECK_ROW(i, ok == t[i].ok);
		CHECK_ROW(i, !ok || (u.left == 0) == t[i].whole);
	}
}

/* ---- handshake ---- */

#define H(name, value) { STR_INIT(name), STR_INIT(value) }
#define KEY H("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
#define UPGRADE H("connection", "keep-alive, Upgrade"), H("upgrade", "WebSocket")

TEST(websocket_accept)
{
	static const struct { struct http_header h[5]; size_t n; const char *error; } t[] = {
		{ { UPGRADE, KEY, H("sec-websocket-version", "13") }, 4, NULL },
		{ { UPGRADE, KEY }, 3, "websocket: unsupported version: 13 not found in 'Sec-Websocket-Version' header" },
		{ { UPGRADE, KEY, H("sec-websocket-version", "8") }, 4,
		  "websocket: unsupported version: 13 not found in 'Sec-Websocket-Version' header" },
		{ { UPGRADE, H("sec-websocket-version", "13"), H("sec-websocket-key", "short") }, 4,
		  "websocket: not a websocket handshake: 'Sec-WebSocket-Key' header must be Base64 encoded value of 16-byte in length" },
		{ { H("upgrade", "websocket"), KEY, H("sec-websocket-version", "13") }, 3,
		  "websocket: the client is not using the websocket protocol" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct ws_headers out;
		struct err err = ERR_INIT;
		int r = ws_accept_headers(&a, t[i].h, t[i].n, STR("v5.channel.k8s.io"), &out, &err);
		CHECK_ROW(i, r == (t[i].error ? -ERR_BAD_REQUEST : 0));
		if (t[i].error) {
			CHECK_STR_ROW(i, err_str(&err), t[i].error);
			continue;
		}
		CHECK_STR_ROW(i, http_header_find(out.headers, out.n, STR("sec-websocket-accept")), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
		CHECK_STR_ROW(i, http_header_find(out.headers, out.n, STR("sec-websocket-protocol")), "v5.channel.k8s.io");
	}
}

TEST(websocket_choose_protocol)
{
	static const char *const server[] = { "v4.channel.k8s.io", "v5.channel.k8s.io", NULL };
	static const struct { struct http_header h[2]; const char *want; } t[] = {
		{ { H("sec-websocket-protocol", "v5.channel.k8s.io, v4.channel.k8s.io") }, "v5.channel.k8s.io" },
		{ { H("sec-websocket-protocol", "x"), H("sec-websocket-protocol", "y,v4.channel.k8s.io") }, "v4.channel.k8s.io" },
		{ { H("sec-websocket-protocol", "v5") }, "" },
		{ { H("other", "v5.channel.k8s.io") }, "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, ws_choose_protocol(t[i].h, 2, server), t[i].want);
}

TEST(websocket_client_handshake)
{
	static const char *const protocols[] = { "a", "b", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct ws_headers request, answer;
	str protocol;
	ws_request_headers(&a, protocols, &request);
	CHECK_STR(http_header_find(request.headers, request.n, STR("sec-websocket-protocol")), "a, b");
	CHECK_INT(ws_accept_headers(&a, request.headers, request.n, STR("b"), &answer, NULL), 0);
	CHECK_INT(ws_check_response(&request, protocols, 101, answer.headers, answer.n, &protocol, NULL), 0);
	CHECK_STR(protocol, "b");
	CHECK_INT(ws_check_response(&request, protocols, 200, answer.headers, answer.n, &protocol, NULL), -ERR_BAD_REQUEST);
	CHECK_INT(ws_check_response(&request, NULL, 101, answer.headers, answer.n, &protocol, NULL), -ERR_BAD_REQUEST);
	request.key[0] ^= 1;
	CHECK_INT(ws_check_response(&request, protocols, 101, answer.headers, answer.n, &protocol, NULL), -ERR_BAD_REQUEST);
}

/* ---- messages ---- */

static void make_pair(int fd[2])
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}

/* What a server makes of these bytes: "T:text", "B:text", "closed CODE", or the error; and what it answers. */
static void serve_bytes(str in, size_t step, struct buf *said, struct buf *answers)
{
	int fd[2];
	make_pair(fd);
	CLEANUP(ws_freep) struct ws *w = ws_new(stream_of_fd(fd[0]), &(struct ws_options){ .max_message = 1000 });
	CLEANUP(stream_freep) struct stream *peer = stream_of_fd(fd[1]);
	for (size_t at = 0; at < in.n; at += step) {
		CHECK_INT(stream_write(peer, in.p + at, MIN(step, in.n - at), NULL), 0);
		fiber_settle();
	}
	CHECK_INT(stream_shutdown_write(peer, NULL), 0);
	str data;
	struct err err = ERR_INIT;
	int r;
	while ((r = ws_read(w, &data, &err)) > 0)
		buf_addf(said, "%s:" STR_FMT " ", r == WS_TEXT ? "T" : "B", STR_ARG(data));
	if (r == 0)
		buf_addf(said, "closed %d " STR_FMT, ws_close_code(w), STR_ARG(ws_close_reason(w)));
	else
		buf_addf(said, "%s", err.msg);
	ws_freep(&w);
	w = NULL;
	char p[256];
	ssize_t n;
	while ((n = stream_read(peer, p, sizeof(p), NULL)) > 0)
		buf_add(answers, str_span(p, (size_t)n));
}

#define MASK "\0\0\0\0" /* nothing changes, so that tests can be read */

FIBER_TEST(websocket_server_reads)
{
	static const struct { str in; const char *said; str answers; } t[] = {
		{ BYTES("\x81\x82" MASK "hi" "\x88\x82" MASK "\x03\xe8"), "T:hi closed 1000 ", BYTES("\x88\x02\x03\xe8") },
		{ BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\x88\x80" MASK), "T:Hello closed 1005 ", BYTES("\x88\x00") },
		{ BYTES("\x02\x81" MASK "a" "\x89\x82" MASK "p!" "\x00\x80" MASK "\x80\x81" MASK "b" "\x88\x85" MASK "\x03\xe9" "bye"),
		  "B:ab closed 1001 bye", BYTES("\x8a\x02p!\x88\x02\x03\xe9") },
		{ BYTES("\x81\x80" MASK "\x8a\x81" MASK "x" "\x88\x82" MASK "\x0f\xa0"), "T: closed 4000 ", BYTES("\x88\x02\x0f\xa0") },
		{ BYTES("\x81\x82" MASK "hi"), "T:hi websocket: unexpected EOF", BYTES("") },
		{ BYTES("\x81\x02hi"), "websocket: a frame without mask", BYTES("\x88\x02\x03\xea") },
		{ BYTES("\x80\x81" MASK "x"), "websocket: a continuation of nothing", BYTES("\x88\x02\x03\xea") },
		{ BYTES("\x01\x81" MASK "x" "\x81\x81" MASK "y"), "websocket: a new message inside another", BYTES("\x88\x02\x03\xea") },
		{ BYTES("\x81\x81" MASK "\xff"), "websocket: text that is not UTF-8", BYTES("\x88\x02\x03\xef") },
		{ BYTES("\x81\x81" MASK "\xc3"), "websocket: text that is not UTF-8", BYTES("\x88\x02\x03\xef") },
		{ BYTES("\x01\x81" MASK "\xc3" "\x80\x81" MASK "\xa4" "\x88\x80" MASK), "T:\xc3\xa4 closed 1005 ", BYTES("\x88\x00") },
		{ BYTES("\x82\xff\x00\x00\x00\x01\x00\x00\x00\x00" MASK "x"), "websocket: a message larger than 1000 bytes",
		  BYTES("\x88\x02\x03\xf1") },
		{ BYTES("\x88\x81" MASK "x"), "websocket: a malformed close frame", BYTES("\x88\x02\x03\xea") },
		{ BYTES("\x88\x82" MASK "\x03\xed"), "websocket: a malformed close frame", BYTES("\x88\x02\x03\xea") },
		{ BYTES("\x88\x83" MASK "\x03\xe8\xff"), "websocket: a malformed close frame", BYTES("\x88\x02\x03\xea") },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		for (size_t step = 1; step <= 1000; step *= 1000) {
			CLEANUP(buf_done) struct buf said = BUF_INIT(10000), answers = BUF_INIT(10000);
			serve_bytes(t[i].in, step, &said, &answers);
			CHECK_STR_ROW(i, buf_str(&said), t[i].said);
			CHECK_ROW(i, str_eq(buf_str(&answers), t[i].answers));
		}
	}
}

static int echo(void *arg)
{
	struct ws *w = arg;
	str data;
	int r;
	while ((r = ws_read(w, &data, NULL)) > 0)
		if ((r = ws_write2(w, (enum ws_opcode)r, str_head(data, 1), str_skip(data, 1), NULL)) < 0)
			break;
	return r;
}

FIBER_TEST(websocket_client_and_server)
{
	static const size_t sizes[] = { 0, 1, 125, 126, 2047, 2048, 65535, 65536, 1000000 };
	int fd[2];
	make_pair(fd);
	struct ws *server = ws_new(stream_of_fd(fd[0]), &(struct ws_options){ 0 });
	struct ws *client = ws_new(stream_of_fd(fd[1]), &(struct ws_options){ .client = true });
	struct fiber *f = start(echo, server);
	CLEANUP(mem_freep) char *p = mem_alloc(1000000);
	random_bytes(p, 1000000);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		str data;
		CHECK_INT(ws_ping(client, STR("?"), NULL), 0);
		CHECK_ROW(i, ws_write(client, WS_BINARY, str_span(p, sizes[i]), NULL) == 0);
		CHECK_ROW(i, ws_read(client, &data, NULL) == WS_BINARY);
		CHECK_ROW(i, str_eq(data, str_span(p, sizes[i])));
	}
	CHECK_INT(ws_close(client, WS_NORMAL, STR("done"), 1000, NULL), 0);
	CHECK_INT(ws_close_code(client), WS_NORMAL);
	CHECK_INT(join(f), 0);
	CHECK_STR(ws_close_reason(server), "done");
	CHECK_INT(ws_write(client, WS_TEXT, STR("late"), NULL), -ERR_GONE);
	CHECK_INT(ws_write(server, WS_TEXT, STR("late"), NULL), -ERR_GONE);
	ws_free(client);
	ws_free(server);
}

/* A deadline in the middle of a message loses nothing of it. */
FIBER_TEST(websocket_interrupted_read)
{
	int fd[2];
	make_pair(fd);
	CLEANUP(ws_freep) struct ws *w = ws_new(stream_of_fd(fd[0]), &(struct ws_options){ 0 });
	CLEANUP(stream_freep) struct stream *peer = stream_of_fd(fd[1]);
	str data;
	CHECK_INT(stream_write(peer, "\x81\x84" MASK "ab", 8, NULL), 0);
	{
		DEADLINE_SCOPE(20);
		CHECK_INT(ws_read(w, &data, NULL), -ERR_TIMEOUT);
	}
	CHECK_INT(stream_write(peer, "cd", 2, NULL), 0);
	CHECK_INT(ws_read(w, &data, NULL), WS_TEXT);
	CHECK_STR(data, "abcd");
}
