#include "net/spdy.h"

#include <sys/socket.h>
#include <zlib.h>

#include "base/fiber_test.h"
#include "base/mem.h"
#include "net/stream.h"

#define BYTES(lit) { lit, sizeof(lit) - 1 }
#define H(name, value) { STR_INIT(name), STR_INIT(value) }

/* ---- frames ---- */

TEST(spdy_frame_parse)
{
	static const struct { const char *in; int r; struct spdy_frame f; } t[] = {
		{ "\x00\x00\x00\x05\x01\x00\x00\x03", 0, { .stream = 5, .flags = 1, .length = 3 } },
		{ "\x7f\xff\xff\xff\x00\xff\xff\xff", 0, { .stream = INT32_MAX, .length = SPDY_DATA_MAX } },
		{ "\x80\x03\x00\x06\x00\x00\x00\x04", 0, { .control = true, .type = SPDY_PING, .length = 4 } },
		{ "\x00\x00\x00\x00\x00\x00\x00\x00", -ERR_BAD_REQUEST, { 0 } },
		{ "\x80\x02\x00\x06\x00\x00\x00\x04", -ERR_BAD_REQUEST, { 0 } },
		{ "\x80\x03\x00\x01\x00\x01\x00\x01", -ERR_BAD_REQUEST, { 0 } },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct spdy_frame f = { 0 };
		CHECK_ROW(i, spdy_frame_parse(t[i].in, &f, NULL) == t[i].r);
		CHECK_ROW(i, f.control == t[i].f.control && f.type == t[i].f.type && f.stream == t[i].f.stream &&
				     f.flags == t[i].f.flags && f.length == t[i].f.length);
	}
}

TEST(spdy_control_errors)
{
	static const struct { uint16_t type; uint8_t flags; str payload; int r; } t[] = {
		{ SPDY_PING, 0, BYTES("\0\0\0\1"), 0 },
		{ SPDY_PING, 0, BYTES("\0\0\0\0"), -ERR_BAD_REQUEST },
		{ SPDY_PING, 1, BYTES("\0\0\0\1"), -ERR_BAD_REQUEST },
		{ SPDY_PING, 0, BYTES("\0\0\0"), -ERR_BAD_REQUEST },
		{ SPDY_RST_STREAM, 0, BYTES("\0\0\0\1\0\0\0\5"), 0 },
		{ SPDY_RST_STREAM, 0, BYTES("\0\0\0\1\0\0\0\0"), -ERR_BAD_REQUEST },
		{ SPDY_RST_STREAM, 0, BYTES("\0\0\0\0\0\0\0\5"), -ERR_BAD_REQUEST },
		{ SPDY_RST_STREAM, 0, BYTES("\0\0\0\1"), -ERR_BAD_REQUEST },
		{ SPDY_GOAWAY, 0, BYTES("\0\0\0\0\0\0\0\0"), 0 },
		{ SPDY_GOAWAY, 0, BYTES("\0\0\0\0"), -ERR_BAD_REQUEST },
		{ SPDY_WINDOW_UPDATE, 0, BYTES("\0\0\0\1\0\1\0\0"), 0 },
		{ SPDY_SETTINGS, 0, BYTES("\0\0\0\1\0\0\0\4\0\0\0\144"), 0 },
		{ SPDY_SETTINGS, 0, BYTES("\0\0\0\2\0\0\0\4\0\0\0\144"), -ERR_BAD_REQUEST },
		{ SPDY_SYN_STREAM, 0, BYTES("\0\0\0\1\0\0\0\0\0"), -ERR_BAD_REQUEST },
		{ SPDY_SYN_REPLY, 0, BYTES("\0\0\0\1not zlib"), -ERR_BAD_REQUEST },
		{ SPDY_SYN_REPLY, 0, BYTES("\0\0\0\1"), -ERR_BAD_REQUEST },
		{ 77, 0, BYTES("whatever"), 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct spdy_unpacker *u = spdy_unpacker_new();
		struct spdy_frame f = { .control = true, .type = t[i].type, .flags = t[i].flags };
		struct spdy_control c;
		CHECK_ROW(i, spdy_control_parse(&f, t[i].payload, u, &a, &c, NULL) == t[i].r);
		spdy_unpacker_free(u);
	}
}

/* ---- header blocks ---- */

TEST(spdy_headers_there_and_back)
{
	static const struct http_header h[] = { H("StreamType", "stdin"), H("port", "80"), H("x", "1"), H("X", "2"), H("empty", "") };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(10000);
	struct spdy_packer *p = spdy_packer_new();
	struct spdy_unpacker *u = spdy_unpacker_new();
	size_t first = 0;
	for (int round = 0; round < 50; round++) {
		struct http_header *got;
		size_t n = 0;
		buf_reset(&b);
		CHECK_INT(spdy_pack(p, h, round % 6, &b, NULL), 0);
		/* The method byte and level depend on the library; the dictionary's number does not. */
		if (round == 0)
			CHECK(b.n > 6 && memcmp(b.p + 2, "\xe3\xc6\xa7\xc2", 4) == 0);
		if (round == 5)
			first = b.n;
		CHECK_INT(spdy_unpack(u, buf_str(&b), &a, &got, &n, NULL), 0);
		CHECK_INT(n, round % 6);
		if (n < 5)
			continue;
		CHECK(round == 5 || b.n < first); /* later blocks refer to earlier ones */
		CHECK_STR(got[0].name, "streamtype");
		CHECK_STR(got[0].value, "stdin");
		CHECK_STR(got[2].name, "x");
		CHECK_STR(got[2].value, "1");
		CHECK_STR(got[3].name, "x");
		CHECK_STR(got[3].value, "2");
		CHECK_STR(got[4].value, "");
	}
	spdy_packer_free(p);
	spdy_unpacker_free(u);
}

/* SYN_STREAM for stream 1 with streamtype: error, written by moby/spdystream (Go's compressor). */
TEST(spdy_headers_from_go)
{
	static const char frame[] =
		"\x80\x03\x00\x01\x00\x00\x00\x29\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x78\xf9\xe3\xc6\xa7\xc2\x62\x60\x60"
		"\x60\x04\xa7\xb3\x92\xa2\xd4\xc4\x5c\x68\x51\xc2\x9a\x0a\x0a\x68\x00\x00\x00\x00\xff\xff";
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct spdy_unpacker *u = spdy_unpacker_new();
	struct spdy_frame f;
	struct spdy_control c;
	CHECK_INT(spdy_frame_parse(frame, &f, NULL), 0);
	CHECK(f.control && f.type == SPDY_SYN_STREAM && f.length == sizeof(frame) - 1 - SPDY_FRAME_HEAD);
	CHECK_INT(spdy_control_parse(&f, str_span(frame + SPDY_FRAME_HEAD, f.length), u, &a, &c, NULL), 0);
	CHECK_INT(c.stream, 1);
	CHECK_STR(http_header_find(c.headers, c.n_headers, STR("streamtype")), "error");
	spdy_unpacker_free(u);
}

/* Packs any bytes as a block of the peer's, with zlib's own dictionary number taken from ours. */
static void pack_raw(str plain, struct buf *out)
{
	CLEANUP(buf_done) struct buf first = BUF_INIT(1000);
	struct spdy_packer *p = spdy_packer_new();
	z_stream z = { 0 };
	CHECK_INT(spdy_pack(p, NULL, 0, &first, NULL), 0);
	spdy_packer_free(p);
	/* zlib's head with the dictionary from a packer of ours, then a stream of blocks without reference to it. */
	buf_add(out, str_head(buf_str(&first), 6));
	CHECK_INT(deflateInit2(&z, 9, Z_DEFLATED, -12, 8, Z_DEFAULT_STRATEGY), Z_OK);
	char *at = buf_reserve(out, plain.n + 1000);
	z.next_in = (Bytef *)plain.p;
	z.avail_in = (uInt)plain.n;
	z.next_out = (Bytef *)at;
	z.avail_out = (uInt)plain.n + 1000;
	CHECK_INT(deflate(&z, Z_SYNC_FLUSH), Z_OK);
	buf_commit(out, plain.n + 1000 - z.avail_out);
	deflateEnd(&z);
}

TEST(spdy_header_block_errors)
{
	static const struct { str plain; const char *error; } t[] = {
		{ BYTES("\0\0\0\1\0\0\0\1a\0\0\0\1b"), "" },
		{ BYTES("\0\0\0\2\0\0\0\1a\0\0\0\1b"), "spdy: a malformed header block" },
		{ BYTES("\0\0\0\0more"), "spdy: a malformed header block" },
		{ BYTES("\0\0\0"), "spdy: a malformed header block" },
		{ BYTES("\xff\xff\xff\xff"), "spdy: a malformed header block" },
		{ BYTES("\0\0\0\1\xff\xff\xff\xff" "a\0\0\0\1b"), "spdy: a malformed header block" },
		{ BYTES("\0\0\0\1\0\0\0\0\0\0\0\1b"), "spdy: a header without a name" },
		{ BYTES("\0\0\0\1\0\0\0\1A\0\0\0\1b"), "spdy: header was not lowercased" },
		{ BYTES("\0\0\0\2\0\0\0\1a\0\0\0\1b\0\0\0\1a\0\0\0\1b"), "spdy: multiple headers with same name" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(10000);
		struct spdy_unpacker *u = spdy_unpacker_new();
		struct http_header *got;
		size_t n;
		struct err err = ERR_INIT;
		pack_raw(t[i].plain, &b);
		CHECK_ROW(i, spdy_unpack(u, buf_str(&b), &a, &got, &n, &err) == (*t[i].error ? -ERR_BAD_REQUEST : 0));
		CHECK_STR_ROW(i, err_str(&err), t[i].error);
		spdy_unpacker_free(u);
	}
}

TEST(spdy_header_block_bomb)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf plain = BUF_INIT(1 << 22), b = BUF_INIT(1 << 23);
	struct spdy_unpacker *u = spdy_unpacker_new();
	struct http_header *got;
	size_t n;
	struct err err = ERR_INIT;
	for (int i = 0; i < 1 << 20; i++)
		buf_add(&plain, STR("\0\0\0"));
	pack_raw(buf_str(&plain), &b);
	CHECK(b.n < SPDY_CONTROL_MAX);
	CHECK_INT(spdy_unpack(u, buf_str(&b), &a, &got, &n, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "spdy: the header block is too large");
	spdy_unpacker_free(u);
}

/* ---- the upgrade ---- */

TEST(spdy_upgrade_headers)
{
	static const char *const server[] = { "v5.channel.k8s.io", "v4.channel.k8s.io", NULL };
	static const struct { struct http_header h[3]; bool upgrade, offered; const char *protocol; } t[] = {
		{ { H("connection", "Upgrade"), H("upgrade", "spdy/3.1"), H("x-stream-protocol-version", "v4.channel.k8s.io") }, true, true,
		  "v4.channel.k8s.io" },
		{ { H("x-stream-protocol-version", "v9, v4.channel.k8s.io"), H("x-stream-protocol-version", "v5.channel.k8s.io"), H("a", "") },
		  false, true, "v4.channel.k8s.io" },
		{ { H("x-stream-protocol-version", "v9"), H("b", ""), H("a", "") }, false, true, "" },
		{ { H("connection", "Upgrade"), H("upgrade", "websocket"), H("a", "") }, false, false, "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		bool offered;
		CHECK_ROW(i, spdy_is_upgrade(t[i].h, 3) == t[i].upgrade);
		CHECK_STR_ROW(i, spdy_choose_protocol(t[i].h, 3, server, &offered), t[i].protocol);
		CHECK_ROW(i, offered == t[i].offered);
	}
}

/* ---- sessions ---- */

struct both {
	struct spdy *client, *server;
};

static void both_init(struct both *b, const struct spdy_options *server)
{
	int fd[2];
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
	CHECK_INT(spdy_new(stream_of_fd(fd[0]), &(struct spdy_options){ .client = true }, &b->client, NULL), 0);
	CHECK_INT(spdy_new(stream_of_fd(fd[1]), server, &b->server, NULL), 0);
}

static void both_done(struct both *b)
{
	spdy_free(b->client);
	spdy_free(b->server);
}

/* Accepts streams and echoes each on a fiber of its own, as far as header "mode" does not say otherwise. */
static int echo_stream(void *arg)
{
	CLEANUP(spdy_stream_freep) struct spdy_stream *st = arg;
	char p[3000];
	ssize_t n;
	int r;
	if (str_eq(spdy_stream_header(st, STR("mode")), STR("refuse")))
		return spdy_stream_reset(st, SPDY_REFUSED_STREAM, NULL);
	if ((r = spdy_stream_reply(st, NULL, 0, NULL)) < 0)
		return r;
	while ((n = spdy_stream_read(st, p, sizeof(p), NULL)) > 0)
		if ((r = spdy_stream_write(st, str_span(p, (size_t)n), NULL)) < 0)
			return r;
	return n < 0 ? (int)n : spdy_stream_close_write(st, NULL);
}

static int echo_server(void *arg)
{
	struct spdy *s = arg;
	struct spdy_stream *st;
	CLEANUP(fiber_group_done) struct fiber_group g;
	fiber_group_init(&g);
	int r;
	while ((r = spdy_accept(s, &st, NULL)) > 0)
		CHECK_INT(fiber_group_spawn(&g, echo_stream, st, NULL, "echo"), 0);
	return fiber_group_wait(&g, NULL) < 0 ? -1 : r;
}

enum { LOTS = 2000000 };

static int send_lots(void *arg)
{
	struct spdy_stream *st = arg;
	CLEANUP(mem_freep) char *p = mem_alloc(LOTS);
	for (int i = 0; i < LOTS; i++)
		p[i] = (char)(i * 31 >> 5 ^ (int)spdy_stream_id(st));
	int r = spdy_stream_write(st, str_span(p, LOTS), NULL);
	return r < 0 ? r : spdy_stream_close_write(st, NULL);
}

static int receive_lots(void *arg)
{
	struct spdy_stream *st = arg;
	char p[3000];
	int at = 0;
	ssize_t n;
	while ((n = spdy_stream_read(st, p, sizeof(p), NULL)) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			if (p[i] != (char)(at * 31 >> 5 ^ (int)spdy_stream_id(st)))
				return -1;
	return n < 0 ? (int)n : at;
}

FIBER_TEST(spdy_streams_in_parallel)
{
	static const struct http_header h[] = { H("streamType", "stdin"), H("port", "80") };
	struct both b;
	struct spdy_stream *st[3];
	struct fiber *f[6];
	both_init(&b, &(struct spdy_options){ .queue_bytes = 10000 });
	struct fiber *server = start(echo_server, b.server);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(spdy_open(b.client, h, 2, &st[i], NULL), 0);
		CHECK_INT(spdy_stream_id(st[i]), 2 * i + 1);
	}
	for (int i = 0; i < 3; i++) {
		f[i] = start(send_lots, st[i]);
		f[3 + i] = start(receive_lots, st[i]);
	}
	CHECK_INT(spdy_ping(b.client, NULL), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(join(f[i]), 0);
		CHECK_INT(join(f[3 + i]), LOTS);
		CHECK_INT(spdy_stream_reset_status(st[i]), 0);
		spdy_stream_free(st[i]);
	}
	CHECK_INT(spdy_ping(b.server, NULL), 0);
	spdy_free(TAKE(b.client));
	CHECK_INT(join(server), 0);
	CHECK(spdy_ended(b.server));
	both_done(&b);
}

FIBER_TEST(spdy_refusing_and_resetting)
{
	static const struct http_header refuse[] = { H("mode", "refuse") };
	struct both b;
	struct spdy_stream *st, *other;
	struct err err = ERR_INIT;
	char p[10];
	both_init(&b, &(struct spdy_options){ .max_streams = 1 });
	struct fiber *server = start(echo_server, b.server);

	CHECK_INT(spdy_open(b.client, refuse, 1, &st, &err), -ERR_FORBIDDEN);
	CHECK_STR(err_str(&err), "spdy: Stream reset");
	CHECK_INT(spdy_open(b.client, NULL, 0, &st, NULL), 0);
	CHECK_INT(spdy_open(b.client, NULL, 0, &other, NULL), -ERR_FORBIDDEN); /* one at a time */
	CHECK_INT(spdy_stream_write(st, STR("x"), NULL), 0);
	CHECK_INT(spdy_stream_read(st, p, sizeof(p), NULL), 1);
	CHECK_INT(spdy_stream_reset(st, SPDY_CANCEL, NULL), 0);
	CHECK_INT(spdy_stream_read(st, p, sizeof(p), NULL), 0);
	CHECK_INT(spdy_stream_write(st, STR("x"), NULL), -ERR_GONE);
	spdy_stream_free(st);
	/* The other side ends the session: what waits is told, streams stay valid until they are freed. */
	CHECK_INT(spdy_ping(b.client, NULL), 0);
	CHECK_INT(spdy_open(b.client, NULL, 0, &st, NULL), 0);
	spdy_free(TAKE(b.server));
	CHECK_INT(join(server), 0);
	CHECK_INT(spdy_stream_read(st, p, sizeof(p), NULL), 0);
	CHECK_INT(spdy_stream_reset_status(st), SPDY_CANCEL);
	CHECK_INT(spdy_open(b.client, NULL, 0, &other, NULL), -ERR_GONE);
	CHECK_INT(spdy_accept(b.client, &other, NULL), 0);
	spdy_free(TAKE(b.client));
	CHECK_INT(spdy_stream_write(st, STR("x"), NULL), -ERR_GONE);
	spdy_stream_free(st);
}

FIBER_TEST(spdy_half_close)
{
	struct both b;
	struct spdy_stream *st, *in;
	char p[10];
	both_init(&b, &(struct spdy_options){ 0 });
	/* A server may open streams too. */
	struct fiber *server = start(echo_server, b.client);
	CHECK_INT(spdy_open(b.server, NULL, 0, &st, NULL), 0);
	CHECK_INT(spdy_stream_id(st), 2);
	CHECK_INT(spdy_stream_write(st, STR("abc"), NULL), 0);
	CHECK_INT(spdy_stream_close_write(st, NULL), 0);
	CHECK_INT(spdy_stream_write(st, STR("x"), NULL), -ERR_GONE);
	CHECK_INT(spdy_stream_read(st, p, sizeof(p), NULL), 3);
	CHECK_INT(spdy_stream_read(st, p, sizeof(p), NULL), 0);
	CHECK_INT(spdy_stream_read(st, p, sizeof(p), NULL), 0);
	CHECK_INT(spdy_stream_reset_status(st), 0);
	spdy_stream_free(st);
	spdy_free(TAKE(b.server));
	CHECK_INT(join(server), 0);
	CHECK_INT(spdy_accept(b.client, &in, NULL), 0);
	both_done(&b);
}

/* What a server answers to raw bytes, until it ends the connection. */
static void talk_raw(str in, struct buf *answers, bool accept)
{
	int fd[2];
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
	struct spdy *s;
	struct spdy_stream *st = NULL;
	CLEANUP(stream_freep) struct stream *peer = stream_of_fd(fd[0]);
	CHECK_INT(spdy_new(stream_of_fd(fd[1]), &(struct spdy_options){ 0 }, &s, NULL), 0);
	CHECK_INT(stream_write(peer, in.p, in.n, NULL), 0);
	CHECK_INT(stream_shutdown_write(peer, NULL), 0);
	CHECK_INT(spdy_wait(s, NULL), 0);
	if (accept)
		CHECK_INT(spdy_accept(s, &st, NULL), 1);
	spdy_free(s);
	spdy_stream_free(st);
	char p[256];
	ssize_t n;
	while ((n = stream_read(peer, p, sizeof(p), NULL)) > 0)
		buf_add(answers, str_span(p, (size_t)n));
}

#define PROTOCOL_GOAWAY "\x80\x03\0\x07\0\0\0\x08\0\0\0\0\0\0\0\1"

FIBER_TEST(spdy_raw_bytes)
{
	static const struct { str in, out; } t[] = {
		{ BYTES(""), BYTES("") },
		{ BYTES("\x80\x03\0\x06\0\0\0\4\0\0\0\1"), BYTES("\x80\x03\0\x06\0\0\0\4\0\0\0\1") },          /* a ping comes back */
		{ BYTES("\x80\x03\0\x06\0\0\0\4\0\0\0\2"), BYTES("") },                                           /* an echo of nothing */
		{ BYTES("\0\0\0\7\1\0\0\3abc"), BYTES("") },                                                      /* data for nobody */
		{ BYTES("\x80\x03\0\x03\0\0\0\x08\0\0\0\7\0\0\0\5"), BYTES("") },
		{ BYTES("\x80\x03\0\x4d\0\0\0\2xx\x80\x03\0\x06\0\0\0\4\0\0\0\1"), BYTES("\x80\x03\0\x06\0\0\0\4\0\0\0\1") },
		{ BYTES("\x80\x02\0\x06\0\0\0\4\0\0\0\1"), BYTES(PROTOCOL_GOAWAY) },
		{ BYTES("GET / HTTP/1.1\r\n\r\n"), BYTES("") },                                                   /* data of 0x202f20.. bytes */
		{ BYTES("\0\0\0\0\0\0\0\0"), BYTES(PROTOCOL_GOAWAY) },
		{ BYTES("\x80\x03\0\x02\0\0\0\x08\0\0\0\1junk"), BYTES(PROTOCOL_GOAWAY) },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
		talk_raw(t[i].in, &out, false);
		CHECK_ROW(i, str_eq(buf_str(&out), t[i].out));
	}
}

FIBER_TEST(spdy_bad_stream_numbers)
{
	static const uint32_t ids[] = { 5, 3, 5, 6, 7 };
	CLEANUP(buf_done) struct buf in = BUF_INIT(1000), out = BUF_INIT(1000), want = BUF_INIT(1000);
	struct spdy_packer *p = spdy_packer_new();
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		CHECK_INT(spdy_add_headers(&in, SPDY_SYN_STREAM, ids[i], 0, p, NULL, 0, NULL), 0);
	spdy_packer_free(p);
	spdy_add_rst(&want, 3, SPDY_PROTOCOL_ERROR);
	spdy_add_rst(&want, 5, SPDY_PROTOCOL_ERROR);
	spdy_add_rst(&want, 6, SPDY_PROTOCOL_ERROR);
	talk_raw(buf_str(&in), &out, true);
	CHECK(str_eq(buf_str(&out), buf_str(&want)));
}

struct accepting {
	struct spdy *session;
	struct spdy_stream **ret;
};

static int accept_and_reply(void *arg)
{
	struct accepting *a = arg;
	CHECK_INT(spdy_accept(a->session, a->ret, NULL), 1);
	return spdy_stream_reply(*a->ret, NULL, 0, NULL);
}

FIBER_TEST(spdy_idle_timeout)
{
	struct both b;
	both_init(&b, &(struct spdy_options){ .idle_timeout_ms = 30 });
	CHECK_INT(spdy_wait(b.server, NULL), 0);
	both_done(&b);
}

/* Also when the session waits for somebody to read. */
FIBER_TEST(spdy_idle_timeout_behind_a_full_queue)
{
	CLEANUP(mem_freep) char *p = mem_zalloc(3000);
	struct spdy_stream *st, *in;
	struct both b;
	struct err err = ERR_INIT;
	ssize_t n;
	DEADLINE_SCOPE(10000);
	both_init(&b, &(struct spdy_options){ .idle_timeout_ms = 30, .queue_bytes = 1000 });
	struct fiber *server = start(accept_and_reply, &(struct accepting){ b.server, &in });
	CHECK_INT(spdy_open(b.client, NULL, 0, &st, NULL), 0);
	CHECK_INT(join(server), 0);
	CHECK_INT(spdy_stream_write(st, str_span(p, 3000), NULL), 0);
	CHECK_INT(spdy_wait(b.server, NULL), 0);
	CHECK_INT(spdy_stream_read(in, p, 3000, NULL), 1000);
	n = spdy_stream_read(in, p, 3000, &err);
	CHECK_INT(n, -ERR_GONE);
	CHECK_STR(err_str(&err), "spdy: the session was idle for too long");
	spdy_stream_free(in);
	both_done(&b);
	spdy_stream_free(st);
}
