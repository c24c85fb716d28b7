#include "net/http_client.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/fiber_test.h"
#include "base/mem.h"
#include "net/spdy.h"
#include "net/websocket.h"

/* ---- a server that plays a script ---- */

/*
 * Each connection reads a request (a head, and all up to the text `until` when there is one) and writes the next of the
 * answers; an answer that begins with '!' closes the connection after it.
 */
struct script {
	int fd;
	uint16_t port;
	const char *const *answers;
	const char *until;
	size_t at;
	struct buf seen;
	struct fiber_group connections;
	struct fiber *fiber;
};

struct connection {
	struct script *s;
	int fd;
};

static bool is_complete(const struct script *s, const struct buf *request)
{
	return str_find(buf_str(request), STR("\r\n\r\n")) >= 0 &&
	       (!s->until || str_find(buf_str(request), str_of(s->until)) >= 0);
}

static int serve_connection(void *arg)
{
	struct connection c = *(struct connection *)arg;
	free(arg);
	CLEANUP(stream_freep) struct stream *stream = stream_of_fd(c.fd);
	CLEANUP(buf_done) struct buf request = BUF_INIT(1 << 20);
	char p[1000];
	ssize_t n;
	while ((n = stream_read(stream, p, sizeof(p), NULL)) > 0) {
		buf_add(&request, str_span(p, (size_t)n));
		if (!is_complete(c.s, &request))
			continue;
		buf_add(&c.s->seen, buf_str(&request));
		buf_reset(&request);
		const char *answer = c.s->answers[c.s->at];
		if (!answer)
			return 0;
		c.s->at++;
		bool last = *answer == '!';
		if (stream_write(stream, answer + last, strlen(answer + last), NULL) < 0 || last)
			return 0;
	}
	return 0;
}

static int serve(void *arg)
{
	struct script *s = arg;
	int fd;
	while ((fd = fiber_accept(s->fd, NULL, NULL)) >= 0) {
		struct connection *c = mem_alloc(sizeof(*c));
		*c = (struct connection){ s, fd };
		CHECK_INT(fiber_group_spawn(&s->connections, serve_connection, c, NULL, "connection"), 0);
	}
	return 0;
}

static void script_init(struct script *s, const char *const *answers)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	*s = (struct script){ .answers = answers };
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(bind(s->fd, (struct sockaddr *)&a, n) == 0 && listen(s->fd, 10) == 0);
	CHECK_INT(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
	s->port = ntohs(a.sin_port);
	buf_init(&s->seen, 1 << 20);
	fiber_group_init(&s->connections);
	s->fiber = start(serve, s);
}

static void script_done(struct script *s)
{
	(void)fiber_stop(s->fiber);
	fiber_group_done(&s->connections);
	close(s->fd);
	buf_done(&s->seen);
}

/* One call: "STATUS BODY" or the error, with the port as PORT. */
static void call(struct http_client *c, const struct script *s, struct http_request q, size_t max, struct buf *out)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct http1_head *head;
	struct err err = ERR_INIT;
	str body;
	q.url = arena_printf(&a, "http://127.0.0.1:%d" STR_FMT, s->port, STR_ARG(q.url));
	if (http_call_open(c, &q, &call, &err) < 0 || http_call_head(call, &head, &err) < 0 ||
	    http_call_read_all(call, max, &body, &err) < 0) {
		str rest = err_str(&err), before;
		str port = arena_printf(&a, "%d", s->port);
		ptrdiff_t at = str_find(rest, port);
		before = at < 0 ? STR_NONE : str_head(rest, (size_t)at);
		rest = str_skip(rest, at < 0 ? 0 : (size_t)at + port.n);
		buf_addf(out, STR_FMT "%s" STR_FMT, STR_ARG(before), at < 0 ? "" : "PORT", STR_ARG(rest));
		return;
	}
	buf_addf(out, "%d " STR_FMT, head->status, STR_ARG(body));
}

FIBER_TEST(http_client_responses)
{
	static const struct { const char *answer, *method, *want; } t[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "GET", "200 hello" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", "200 " },
		{ "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n1\r\n!\r\n0\r\nx: y\r\n\r\n", "GET", "404 no!" },
		{ "!HTTP/1.0 200 OK\r\n\r\nuntil the end", "GET", "200 until the end" },
		{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", "POST", "204 " },
		{ "!HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "GET", "Get \"http://127.0.0.1:PORT/x\": unexpected EOF" },
		{ "!HTTP/1.1 200 OK\r\nContent-Le", "GET", "Get \"http://127.0.0.1:PORT/x\": unexpected EOF" },
		{ "!", "DELETE", "Delete \"http://127.0.0.1:PORT/x\": EOF" },
		{ "220 smtp.example.com ESMTP\r\n\r\n", "GET", "Get \"http://127.0.0.1:PORT/x\": malformed HTTP response" },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz", "GET",
		  "Get \"http://127.0.0.1:PORT/x\": invalid byte in chunk length" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n01234567890123456789012345678901234567890123456789", "GET",
		  "Get \"http://127.0.0.1:PORT/x\": the body of the response is larger than 40 bytes" },
		{ "HTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 a\r\n\r\n"
		  "HTTP/1.1 100 a\r\n\r\n", "GET", "Get \"http://127.0.0.1:PORT/x\": too many 1xx informational responses" },
	};
	CLEANUP(http_client_freep) struct http_client *c = http_client_new(&(struct http_client_options){ .max_header_bytes = 1000 });
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
		const char *answers[] = { t[i].answer, NULL };
		struct script s;
		script_init(&s, answers);
		call(c, &s, (struct http_request){ .method = str_of(t[i].method), .url = STR("/x") }, 40, &out);
		script_done(&s);
		CHECK_STR_ROW(i, buf_str(&out), t[i].want);
	}
}

FIBER_TEST(http_client_requests)
{
	static const struct http_header h[] = {
		{ STR_INIT("accept"), STR_INIT("text/plain") }, { STR_INIT("content-length"), STR_INIT("99") },
		{ STR_INIT("host"), STR_INIT("other") },
	};
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", NULL,
	};
	CLEANUP(http_client_freep) struct http_client *c = http_client_new(&(struct http_client_options){ 0 });
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
	struct script s;
	script_init(&s, answers);
	struct http_request q = { .method = STR("PUT"), .url = STR("/a%20b?c=d#e"), .headers = h, .n_headers = 3,
				  .body = STR("hello") };
	call(c, &s, q, 10, &out);
	CHECK_STR(buf_str(&out), "200 ");
	CHECK_STR(buf_str(&s.seen), "PUT /a%20b?c=d HTTP/1.1\r\nHost: other\r\nAccept: text/plain\r\nContent-Length: 5\r\n\r\nhello");
	buf_reset(&s.seen);
	call(c, &s, (struct http_request){ .method = STR("GET") }, 10, &out);
	CHECK(str_starts(buf_str(&s.seen), STR("GET / HTTP/1.1\r\nHost: 127.0.0.1:")));
	CHECK(str_find(buf_str(&s.seen), STR("Content-Length")) < 0);
	script_done(&s);
}

FIBER_TEST(http_client_refuses_bad_requests)
{
	static const struct { const char *url, *method, *name, *value, *error; } t[] = {
		{ "http://a\n/", "GET", "a", "b", "parse \"http://a\n/\": net/url: invalid control character in URL" },
		{ "ftp://a/", "GET", "a", "b", "Get \"ftp://a/\": unsupported protocol scheme \"ftp\"" },
		{ "https://a/", "GET", "a", "b", "Get \"https://a/\": no TLS settings for an https URL" },
		{ "http://a/ HTTP/1.1", "GET", "a", "b", "Get \"http://a/ HTTP/1.1\": a space in the URL" },
		{ "http://a/", "G T", "a", "b", "G t \"http://a/\": net/http: invalid method \"G T\"" },
		{ "http://a/", "GET", "a b", "b", "Get \"http://a/\": net/http: invalid header field name" },
		{ "http://a/", "GET", "a", "b\r\nc: d", "Get \"http://a/\": net/http: invalid header field value for \"a\"" },
	};
	CLEANUP(http_client_freep) struct http_client *c = http_client_new(&(struct http_client_options){ 0 });
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct http_header h = { str_of(t[i].name), str_of(t[i].value) };
		struct http_request q = { .method = str_of(t[i].method), .url = str_of(t[i].url), .headers = &h, .n_headers = 1 };
		struct http_call *call = NULL;
		struct err err = ERR_INIT;
		CHECK_ROW(i, http_call_open(c, &q, &call, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, err_str(&err), t[i].error);
	}
}

#define EMPTY_OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

FIBER_TEST(http_client_keeps_connections)
{
	static const char *const answers[] = { EMPTY_OK, EMPTY_OK, "!" EMPTY_OK, EMPTY_OK, EMPTY_OK, NULL };
	static const struct http_client_options o = { .max_idle_per_host = 1, .idle_timeout_ms = 1000 };
	CLEANUP(http_client_freep) struct http_client *c = http_client_new(&o);
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
	struct script s;
	script_init(&s, answers);
	for (int i = 0; i < 4; i++) {
		call(c, &s, (struct http_request){ .method = STR("POST"), .url = STR("/"), .body = STR("x") }, 10, &out);
		fiber_settle();
	}
	/* The third answer closed the connection, so the fourth call dialled again. */
	CHECK_STR(buf_str(&out), "200 ok200 ok200 ok200 ok");
	CHECK_INT(http_client_stats(c).dialled, 2);
	CHECK_INT(http_client_stats(c).reused, 2);
	CHECK_INT(http_client_stats(c).idle, 1);
	DEADLINE_SCOPE(10000);
	while (http_client_stats(c).idle)
		CHECK_INT(fiber_sleep_ms(5, NULL), 0);
	script_done(&s);
}

/* A kept connection that ends just when it is used is replaced. */
FIBER_TEST(http_client_replaces_stale_connections)
{
	static const char *const answers[] = { EMPTY_OK, "!", EMPTY_OK, NULL };
	CLEANUP(http_client_freep) struct http_client *c = http_client_new(&(struct http_client_options){ .max_idle_per_host = 1 });
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
	struct script s;
	script_init(&s, answers);
	for (int i = 0; i < 2; i++)
		call(c, &s, (struct http_request){ .method = STR("GET"), .url = STR("/") }, 10, &out);
	CHECK_STR(buf_str(&out), "200 ok200 ok");
	CHECK_INT(http_client_stats(c).dialled, 2);
	CHECK_INT(http_client_stats(c).reused, 1);
	script_done(&s);
}

/* But not for what might be carried out twice. */
FIBER_TEST(http_client_does_not_repeat_writes)
{
	static const char *const answers[] = { EMPTY_OK, "!", EMPTY_OK, NULL };
	CLEANUP(http_client_freep) struct http_client *c = http_client_new(&(struct http_client_options){ .max_idle_per_host = 1 });
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
	struct script s;
	script_init(&s, answers);
	for (int i = 0; i < 2; i++)
		call(c, &s, (struct http_request){ .method = STR("POST"), .url = STR("/"), .body = STR("x") }, 10, &out);
	CHECK_STR(buf_str(&out), "200 okPost \"http://127.0.0.1:PORT/\": EOF");
	CHECK_INT(http_client_stats(c).dialled, 1);
	script_done(&s);
}

FIBER_TEST(http_client_streams_bodies)
{
	static const char *const answers[] = { EMPTY_OK, EMPTY_OK, NULL };
	CLEANUP(http_client_freep) struct http_client *c = http_client_new(&(struct http_client_options){ 0 });
	struct script s;
	script_init(&s, answers);
	s.until = "end";
	for (int64_t length = -1; length <= 6; length += 7) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct http_call *call;
		str body, url = arena_printf(&a, "http://127.0.0.1:%d/", s.port);
		struct http_request q = { .method = STR("POST"), .url = url, .streamed = true, .content_length = length };
		CHECK_INT(http_call_open(c, &q, &call, NULL), 0);
		CHECK_INT(http_call_write(call, STR("one"), NULL), 0);
		CHECK_INT(http_call_write(call, STR(""), NULL), 0);
		CHECK_INT(http_call_write_end(call, NULL), length < 0 ? 0 : -ERR_BAD_REQUEST);
		if (length < 0) {
			CHECK_INT(http_call_write(call, STR("end"), NULL), -ERR_BAD_REQUEST);
			http_call_free(call);
			continue;
		}
		CHECK_INT(http_call_write(call, STR("end!"), NULL), -ERR_BAD_REQUEST);
		CHECK_INT(http_call_write(call, STR("end"), NULL), 0);
		CHECK_INT(http_call_write_end(call, NULL), 0);
		CHECK_INT(http_call_read_all(call, 10, &body, NULL), 0);
		CHECK_STR(body, "ok");
		http_call_free(call);
	}
	CHECK(str_find(buf_str(&s.seen), STR("Content-Length: 6\r\n\r\noneend")) > 0);
	script_done(&s);
}

FIBER_TEST(http_client_timeouts_and_dialling)
{
	static const char *const answers[] = { "HTTP/1.1 200", NULL };
	CLEANUP(http_client_freep) struct http_client *c = http_client_new(&(struct http_client_options){ .head_timeout_ms = 30 });
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
	struct script s;
	script_init(&s, answers);
	call(c, &s, (struct http_request){ .method = STR("GET"), .url = STR("/") }, 10, &out);
	CHECK_STR(buf_str(&out), "Get \"http://127.0.0.1:PORT/\": timeout awaiting response headers");
	script_done(&s);
	buf_reset(&out);
	call(c, &s, (struct http_request){ .method = STR("GET"), .url = STR("/"), .dial = "unix:/nonexistent/socket" }, 10, &out);
	CHECK(str_find(buf_str(&out), STR("dial unix /nonexistent/socket")) > 0);
	buf_reset(&out);
	call(c, &s, (struct http_request){ .method = STR("GET"), .url = STR("/") }, 10, &out); /* nobody listens any more */
	CHECK(str_find(buf_str(&out), STR("dial tcp 127.0.0.1:")) > 0);
}

/* ---- against the server of this tree ---- */

static int answer_websocket(struct http_exchange *x)
{
	static const char *const supported[] = { "v5.channel.k8s.io", NULL };
	struct ws_headers h;
	struct stream *stream;
	str data;
	int r = ws_accept_headers(x->arena, x->headers, x->n_headers, ws_choose_protocol(x->headers, x->n_headers, supported), &h, NULL);
	if (r < 0 || (r = http_upgrade(x, h.headers, h.n, &stream, NULL)) < 0)
		return r;
	CLEANUP(ws_freep) struct ws *w = ws_new(stream, &(struct ws_options){ 0 });
	while ((r = ws_read(w, &data, NULL)) > 0)
		if (ws_write(w, (enum ws_opcode)r, data, NULL) < 0)
			break;
	return 0;
}

static int answer_spdy(struct http_exchange *x)
{
	static const struct http_header h[] = {
		{ STR_INIT("connection"), STR_INIT("Upgrade") }, { STR_INIT("upgrade"), STR_INIT("SPDY/3.1") },
		{ STR_INIT("x-stream-protocol-version"), STR_INIT("v4.channel.k8s.io") },
	};
	struct stream *stream;
	struct spdy_stream *st;
	char p[100];
	int r = http_upgrade(x, h, 3, &stream, NULL);
	if (r < 0)
		return r;
	CLEANUP(spdy_freep) struct spdy *s = NULL;
	if ((r = spdy_new(stream, &(struct spdy_options){ 0 }, &s, NULL)) < 0)
		return r;
	while ((r = spdy_accept(s, &st, NULL)) > 0) {
		(void)spdy_stream_reply(st, NULL, 0, NULL);
		ssize_t n = spdy_stream_read(st, p, sizeof(p), NULL);
		if (n > 0 && spdy_stream_write(st, str_span(p, (size_t)n), NULL) == 0)
			(void)spdy_stream_close_write(st, NULL);
		spdy_stream_free(st);
	}
	return 0;
}

static int answer(struct http_exchange *x, void *arg)
{
	(void)arg;
	str body;
	if (ws_is_upgrade(x->headers, x->n_headers))
		return answer_websocket(x);
	if (spdy_is_upgrade(x->headers, x->n_headers))
		return answer_spdy(x);
	int r = http_read_all(x, 1 << 22, &body, NULL);
	if (r == 0)
		http_answer(x, 200, NULL, 0, body);
	return r;
}

static int run_server(void *arg) { return http_server_run(arg, 100, NULL); }

struct local_server {
	struct http_server *server;
	struct fiber *fiber;
	uint16_t port;
};

static void local_init(struct local_server *l)
{
	CHECK_INT(http_server_new(&(struct http_server_options){ .handle = answer }, &l->server, NULL), 0);
	CHECK_INT(http_server_listen(l->server, "127.0.0.1", 0, &l->port, NULL), 0);
	l->fiber = start(run_server, l->server);
}

static void local_done(struct local_server *l)
{
	(void)fiber_stop(l->fiber);
	http_server_free(l->server);
}

enum { BIG = 3 << 20 };

FIBER_TEST(http_client_with_our_server)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(mem_freep) char *big = mem_alloc(BIG);
	struct local_server l;
	local_init(&l);
	struct http_client *c = http_client_new(&(struct http_client_options){ .max_idle_per_host = 2 });
	str url = arena_printf(&a, "http://127.0.0.1:%d/", l.port);
	for (int i = 0; i < BIG; i++)
		big[i] = (char)(i * 17 >> 3);
	for (int i = 0; i < 4; i++) {
		struct http_call *call;
		str body;
		struct http_request q = { .method = STR("POST"), .url = url, .body = str_span(big, i % 2 ? BIG : 10) };
		CHECK_INT(http_call_open(c, &q, &call, NULL), 0);
		CHECK_INT(http_call_read_all(call, BIG, &body, NULL), 0);
		CHECK(str_eq(body, q.body));
		http_call_free(call);
	}
	CHECK_INT(http_client_stats(c).dialled, 1);
	http_client_free(c);
	local_done(&l);
}

FIBER_TEST(http_client_upgrades_to_websocket)
{
	static const char *const protocols[] = { "v6.channel.k8s.io", "v5.channel.k8s.io", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct local_server l;
	local_init(&l);
	struct http_client *c = http_client_new(&(struct http_client_options){ 0 });
	struct http_request q = { .method = STR("GET"), .url = arena_printf(&a, "http://127.0.0.1:%d/", l.port) };
	struct ws *w;
	const char *protocol;
	int status;
	str data;
	CHECK_INT(ws_dial(c, &q, protocols, &(struct ws_options){ 0 }, &w, &protocol, &status, NULL), 0);
	CHECK_INT(status, 101);
	CHECK_STR(str_of(protocol), "v5.channel.k8s.io");
	CHECK_INT(ws_write2(w, WS_BINARY, STR("\0"), STR("hello"), NULL), 0);
	CHECK_INT(ws_read(w, &data, NULL), WS_BINARY);
	CHECK(str_eq(data, STR("\0hello")));
	CHECK_INT(ws_close(w, WS_NORMAL, STR(""), 1000, NULL), 0);
	ws_free(w);
	http_client_free(c);
	local_done(&l);
}

FIBER_TEST(http_client_upgrades_to_spdy)
{
	static const char *const protocols[] = { "v4.channel.k8s.io", NULL };
	static const char *const refuse[] = { "HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nnope\n", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct local_server l;
	struct script script;
	struct err err = ERR_INIT;
	local_init(&l);
	struct http_client *c = http_client_new(&(struct http_client_options){ 0 });
	struct http_request q = { .method = STR("POST"), .url = arena_printf(&a, "http://127.0.0.1:%d/", l.port) };
	struct spdy *s;
	struct spdy_stream *st;
	const char *protocol;
	int status;
	char p[10];
	CHECK_INT(spdy_dial(c, &q, protocols, &(struct spdy_options){ 0 }, &s, &protocol, &status, NULL), 0);
	CHECK_STR(str_of(protocol), "v4.channel.k8s.io");
	CHECK_INT(spdy_open(s, NULL, 0, &st, NULL), 0);
	CHECK_INT(spdy_stream_write(st, STR("abc"), NULL), 0);
	CHECK_INT(spdy_stream_read(st, p, sizeof(p), NULL), 3);
	spdy_stream_free(st);
	spdy_free(s);
	local_done(&l);

	script_init(&script, refuse);
	q.url = arena_printf(&a, "http://127.0.0.1:%d/", script.port);
	CHECK_INT(spdy_dial(c, &q, protocols, &(struct spdy_options){ 0 }, &s, &protocol, &status, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "unable to upgrade connection: nope");
	CHECK_INT(status, 403);
	script_done(&script);
	http_client_free(c);
}
