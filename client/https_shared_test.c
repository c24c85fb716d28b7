/* Watches on shared connections, with servers on the loop of the test. */
#include "client/https_shared.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/fiber_test.h"
#include "base/mem.h"
#include "net/stream.h"
#include "net/test_certs.h"

enum { WAIT_MS = 5000, TAKES = 100, MANY = 150, AHEAD = 32 << 20 };

/* ---- a server whose watches tell what the test says ---- */

struct body {
	struct http_source source;
	struct server *server;
	size_t left;                  /* bytes that it still gives */
	bool ends;                    /* after them */
};

struct server {
	struct test_cert cert;
	struct tls_context *tls;
	struct http_server *http;
	struct fiber *fiber;
	uint16_t port;
	int requests;
	struct body *last;            /* of the newest answer; NULL: it has ended */
	size_t stopped;
};

static ssize_t body_fill(struct http_source *s, char *p, size_t n)
{
	struct body *b = CONTAINER_OF(s, struct body, source);
	size_t now = MIN(n, b->left);

	if (!now)
		return b->ends ? 0 : HTTP_LATER;
	memset(p, 'x', now);
	b->left -= now;
	return (ssize_t)now;
}

static void body_stop(struct http_source *s)
{
	struct body *b = CONTAINER_OF(s, struct body, source);

	b->server->stopped++;
	if (b->server->last == b)
		b->server->last = NULL;
	free(b);
}

static int handle(struct http_exchange *x, void *arg)
{
	struct server *s = arg;
	const struct http_header json = { STR_INIT("content-type"), STR_INIT("application/json") };

	s->requests++;
	if (!str_eq(x->path, STR("/watch"))) {
		http_answer(x, 404, &json, 1, STR("{}"));
		return 0;
	}
	CHECK_STR(x->query, "a=b");
	CHECK_STR(http_request_header(x, STR("authorization")), "Bearer t");
	struct body *b = mem_zalloc(sizeof(*b));
	*b = (struct body){ .source = { .fill = body_fill, .stop = body_stop }, .server = s };
	s->last = b;
	http_answer_source(x, 200, &json, 1, &b->source, -1);
	return 0;
}

static int run_server(void *arg) { return http_server_run(arg, 0, NULL); }

static void server_init(struct server *s, const char *protocol)
{
	const char *const alpn[] = { protocol, NULL };
	struct err err = ERR_INIT;

	*s = (struct server){ .cert = test_cert_new("server", "IP:127.0.0.1", NULL) };
	CHECK_INT(tls_server_new(&(struct tls_options){ .cert_pem = s->cert.cert, .key_pem = s->cert.key, .alpn = alpn }, &s->tls, &err), 0);
	CHECK_INT(http_server_new(&(struct http_server_options){ .tls = s->tls, .handle = handle, .arg = s, .max_streams = TAKES }, &s->http,
				  &err), 0);
	CHECK_INT(http_server_listen(s->http, "127.0.0.1", 0, &s->port, &err), 0);
	s->fiber = start(run_server, s->http);
}

static void server_done(struct server *s)
{
	(void)fiber_stop(s->fiber);
	http_server_free(s->http);
	tls_context_free(s->tls);
	test_cert_done(&s->cert);
}

static void tell(struct server *s, size_t bytes, bool ends)
{
	s->last->left += bytes;
	s->last->ends = ends;
	http_wake(&s->last->source);
}

/* ---- the other end ---- */

static struct shared *shared_make(void)
{
	static const char *const alpn[] = { "h2", "http/1.1", NULL };
	struct tls_context *tls = NULL;

	CHECK_INT(tls_client_new(&(struct tls_options){ .insecure_skip_verify = true, .alpn = alpn }, &tls, NULL), 0);
	return shared_new(tls);
}

static int open_call(struct shared *s, uint16_t port, const char *path, struct shared_call **ret)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct http_header who = { STR_INIT("authorization"), STR_INIT("Bearer t") };
	struct url url;

	*ret = NULL;
	CHECK_INT(url_parse(&a, arena_printf(&a, "https://127.0.0.1:%u%s", port, path), &url, NULL), 0);
	DEADLINE_SCOPE(WAIT_MS);
	return shared_call_open(s, &url, &who, 1, ret, NULL);
}

/* All that comes within this time: at the end, or once so many bytes are there. */
static ssize_t read_all(struct shared_call *c, size_t enough)
{
	char p[2000];
	ssize_t n = 1, all = 0;

	DEADLINE_SCOPE(WAIT_MS);
	while (n > 0 && (size_t)all < enough)
		if ((n = shared_call_read(c, p, sizeof(p), NULL)) > 0)
			all += n;
	return n < 0 ? n : all;
}

FIBER_TEST(shared_call_reads_what_comes)
{
	struct server s;
	struct shared_call *c = NULL, *other = NULL;
	server_init(&s, "h2");
	struct shared *shared = shared_make();

	CHECK_INT(open_call(shared, s.port, "/watch?a=b", &c), 1);
	CHECK_STR(shared_call_type(c), "application/json");
	tell(&s, 100, false);
	CHECK_INT(read_all(c, 100), 100);
	tell(&s, 20000, true);
	CHECK_INT(read_all(c, SIZE_MAX), 20000);
	CHECK_INT(read_all(c, SIZE_MAX), 0);
	/* What is no watch is asked for by other means. */
	CHECK_INT(open_call(shared, s.port, "/elsewhere", &other), 0);
	CHECK(!other);
	shared_call_free(c);
	shared_free(shared);
	server_done(&s);
}

/* A server that takes no more calls on a connection than kube-apiserver: those beyond get another one, and answers at once. */
FIBER_TEST(shared_calls_are_not_more_than_servers_take)
{
	static struct shared_call *calls[MANY];
	struct server s;
	server_init(&s, "h2");
	struct shared *shared = shared_make();

	for (size_t i = 0; i < MANY; i++)
		CHECK_ROW(i, open_call(shared, s.port, "/watch?a=b", &calls[i]) == 1);
	CHECK_INT(http_server_stats(s.http).accepted, 2);
	for (size_t i = 0; i < MANY; i++)
		shared_call_free(calls[i]);
	/* Connections without calls end. */
	DEADLINE_SCOPE(WAIT_MS);
	while (http_server_stats(s.http).connections)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	shared_free(shared);
	server_done(&s);
}

/* A reader that is slow costs no memory: the server has to wait. */
FIBER_TEST(shared_call_makes_the_server_wait)
{
	struct server s;
	struct shared_call *c = NULL;
	server_init(&s, "h2");
	struct shared *shared = shared_make();

	CHECK_INT(open_call(shared, s.port, "/watch?a=b", &c), 1);
	tell(&s, AHEAD, true);
	CHECK_INT(fiber_sleep_ms(50, NULL), 0);
	CHECK(s.last && s.last->left > AHEAD / 2);
	CHECK_INT(read_all(c, SIZE_MAX), AHEAD);
	shared_call_free(c);
	shared_free(shared);
	server_done(&s);
}

/* One that is never up to date, and never far behind, goes on for ever. */
FIBER_TEST(shared_call_may_always_have_more)
{
	enum { PIECE = 30000, PIECES = 250 };
	struct server s;
	struct shared_call *c = NULL;
	server_init(&s, "h2");
	struct shared *shared = shared_make();

	CHECK_INT(open_call(shared, s.port, "/watch?a=b", &c), 1);
	tell(&s, PIECE, false);
	for (int i = 0; i < PIECES; i++) {
		tell(&s, PIECE, i == PIECES - 1);
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
		CHECK_ROW(i, read_all(c, PIECE) == PIECE);
	}
	CHECK_INT(read_all(c, SIZE_MAX), PIECE);
	shared_call_free(c);
	shared_free(shared);
	server_done(&s);
}

static int read_one(void *arg) { return (int)shared_call_read(arg, &(char){ 0 }, 1, NULL); }

FIBER_TEST(shared_call_ends_with_its_connection)
{
	struct server s;
	struct shared_call *c[3];
	server_init(&s, "h2");
	struct shared *shared = shared_make();

	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		CHECK_INT(open_call(shared, s.port, "/watch?a=b", &c[i]), 1);
	struct fiber *reading = start(read_one, c[0]);
	fiber_settle();
	shared_call_abort(c[0]);
	CHECK_INT(join(reading), -ERR_UNAVAILABLE);
	/* Others on the same connection are none the worse for it, nor for one that is no longer wanted. */
	shared_call_free(c[0]);
	shared_call_free(c[1]);
	tell(&s, 1, false);
	CHECK_INT(read_all(c[2], 1), 1);
	reading = start(read_one, c[2]);
	server_done(&s);
	CHECK_INT(join(reading), -ERR_UNAVAILABLE);
	CHECK_INT(s.stopped, 3);
	shared_call_free(c[2]);
	shared_free(shared);
}

FIBER_TEST(shared_call_is_left_to_others_without_http2)
{
	struct server s;
	struct shared_call *c = NULL;
	server_init(&s, "http/1.1");
	struct shared *shared = shared_make();

	for (int i = 0; i < 3; i++)
		CHECK_ROW(i, open_call(shared, s.port, "/watch?a=b", &c) == 0);
	CHECK_INT(http_server_stats(s.http).accepted, 1); /* it is not asked again */
	CHECK_INT(s.requests, 0);
	shared_free(shared);
	server_done(&s);
}

/* ---- servers that do not get to speak HTTP/2 ---- */

struct mute {
	struct test_cert cert;
	struct tls_context *tls;
	struct fiber *fiber;
	int fd, accepted;
	uint16_t port;
};

/* Shakes hands, and is gone. */
static int run_mute(void *arg)
{
	struct mute *m = arg;
	int fd;

	while ((fd = fiber_accept(m->fd, NULL, NULL)) >= 0) {
		struct stream *stream = NULL;
		m->accepted++;
		if (stream_accept_tls(fd, m->tls, &stream, NULL) == 0)
			stream_free(stream);
	}
	return 0;
}

static void mute_init(struct mute *m)
{
	static const char *const alpn[] = { "h2", NULL };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);

	*m = (struct mute){ .cert = test_cert_new("server", "IP:127.0.0.1", NULL) };
	CHECK_INT(tls_server_new(&(struct tls_options){ .cert_pem = m->cert.cert, .key_pem = m->cert.key, .alpn = alpn }, &m->tls, NULL), 0);
	m->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(bind(m->fd, (struct sockaddr *)&a, n) == 0 && listen(m->fd, 10) == 0);
	CHECK_INT(getsockname(m->fd, (struct sockaddr *)&a, &n), 0);
	m->port = ntohs(a.sin_port);
	m->fiber = start(run_mute, m);
}

static void mute_done(struct mute *m)
{
	(void)fiber_stop(m->fiber);
	close(m->fd);
	tls_context_free(m->tls);
	test_cert_done(&m->cert);
}

/* One that restarts hangs up on those who have just come: all who wait are told, and later ones get through. */
FIBER_TEST(shared_connections_that_fail_are_tried_again)
{
	struct mute m;
	struct server s;
	struct shared_call *c = NULL;
	mute_init(&m);
	server_init(&s, "h2");
	struct shared *shared = shared_make();

	for (int i = 1; i <= 3; i++) {
		CHECK_ROW(i, open_call(shared, m.port, "/watch?a=b", &c) == 0);
		CHECK_ROW(i, m.accepted == i);
	}
	mute_done(&m);
	CHECK_INT(open_call(shared, m.port, "/watch?a=b", &c), 0); /* nobody is there */
	CHECK_INT(open_call(shared, s.port, "/watch?a=b", &c), 1);
	shared_call_free(c);
	shared_free(shared);
	server_done(&s);
}
