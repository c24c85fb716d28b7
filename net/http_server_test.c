#include "net/http_server_test.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_test.h"
#include "base/mem.h"
#include "net/test_certs.h"

static const char *const both[] = { "h2", "http/1.1", NULL };

static void check_contains(struct buf b, const char *text)
{
	if (str_find(buf_str(&b), str_of(text)) < 0)
		fail_msg("no '%s' in '%s'", text, b.p ? b.p : "");
}

static void check_reply(struct test_server *t, const char *request, const char *want)
{
	CLEANUP(stream_freep) struct stream *s = test_dial(t);

	test_send(s, str_of(request));
	CLEANUP(buf_done) struct buf b = test_read_all(s);
	check_contains(b, want);
}

/* ---- With curl ---- */

struct peer {
	struct tls_context *tls;
	const char *how[2];           /* options of curl */
	const char *scheme, *version; /* what it then speaks */
};

/* Fills url and runs curl with it. */
static struct buf curl(struct test_server *t, const struct peer *p, const char *path, int want_exit, const char *const *more)
{
	char url[128];
	const char *argv[24] = { "curl", "-sk", "--max-time", "30" };
	size_t n = 4;

	(void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u%s", p->scheme, t->port, path);
	for (size_t i = 0; i < ARRAY_LEN(p->how) && p->how[i]; i++)
		argv[n++] = p->how[i];
	while (more && *more && n < ARRAY_LEN(argv) - 2)
		argv[n++] = *more++;
	argv[n++] = url;
	return test_run(want_exit, argv);
}

static void curl_fails(struct test_server *t, const char *how, const char *path, int want_exit, const char *const *more)
{
	const struct peer p = { NULL, { how }, "http", "" };
	struct buf b = curl(t, &p, path, want_exit, more);
	buf_done(&b);
}

static void check_big(struct buf b)
{
	CHECK_INT(b.n, BIG);
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] != (char)('a' + i / 1000 % 26))
			fail_msg("byte %zu", i);
}

static void check_get(struct test_server *t, const struct peer *p)
{
	static const char *const show[] = { "-i", NULL }, *const head[] = { "-I", NULL }, *const zip[] = { "--compressed", NULL };
	CLEANUP(buf_done) struct buf hello = curl(t, p, "/hello", 0, show);
	CHECK(str_starts(buf_str(&hello), str_of(p->version)));
	CHECK(str_ends(buf_str(&hello), STR("\r\n\r\nhello\n")));
	CHECK(strcasestr(hello.p, "content-length: 6\r\n") && strcasestr(hello.p, "\ndate: "));
	CLEANUP(buf_done) struct buf headed = curl(t, p, "/hello", 0, head);
	CHECK(strcasestr(headed.p, "content-length: 6\r\n") && str_ends(buf_str(&headed), STR("\r\n\r\n")));
	CLEANUP(buf_done) struct buf headed_big = curl(t, p, "/big", 0, head);
	CHECK(!strcasestr(headed_big.p, "content-length"));
	CLEANUP(buf_done) struct buf missing = curl(t, p, "/missing", 0, show);
	check_contains(missing, " 404");
	CLEANUP(buf_done) struct buf none = curl(t, p, "/none", 0, show);
	check_contains(none, " 500");
	CLEANUP(buf_done) struct buf big = curl(t, p, "/big", 0, NULL);
	check_big(big);
	CLEANUP(buf_done) struct buf length = curl(t, p, "/big?length", 0, NULL);
	check_big(length);
	CLEANUP(buf_done) struct buf zipped = curl(t, p, "/gzip", 0, zip);
	check_big(zipped);
	CHECK_INT(t->stopped, 4);
}

static void check_post(struct test_server *t, const struct peer *p, const char *dir)
{
	char *text = mem_alloc(ECHO_MAX + 2), at[128];
	memset(text, 'x', ECHO_MAX + 1);
	text[ECHO_MAX] = '\0';
	char *fits = test_file(dir, "fits", text);
	text[ECHO_MAX] = 'y';
	text[ECHO_MAX + 1] = '\0';
	char *large = test_file(dir, "large", text);
	const char *const small[] = { "-d", "abc", NULL };
	CLEANUP(buf_done) struct buf b = curl(t, p, "/echo", 0, small);
	CHECK_STR(buf_str(&b), "abc");
	for (int chunked = 0; chunked < 2; chunked++) {
		const char *const send[] = { "-w", "%{http_code}", "-H", chunked ? "Transfer-Encoding: chunked" : "X: y",
					     "--data-binary", at, NULL };
		(void)snprintf(at, sizeof(at), "@%s", fits);
		CLEANUP(buf_done) struct buf echoed = curl(t, p, "/echo", 0, send);
		CHECK_INT(echoed.n, ECHO_MAX + 3);
		CHECK(memcmp(echoed.p, text, ECHO_MAX) == 0 && str_ends(buf_str(&echoed), STR("200")));
		(void)snprintf(at, sizeof(at), "@%s", large);
		CLEANUP(buf_done) struct buf refused = curl(t, p, "/echo", 0, send);
		CHECK_STR(buf_str(&refused), "Request entity too large: limit is 1048576413");
	}
	(void)unlink(fits);
	(void)unlink(large);
	free(fits);
	free(large);
	free(text);
}

FIBER_TEST(http_server_with_curl)
{
	char dir[] = "/tmp/http-test-XXXXXX";
	CHECK(mkdtemp(dir) != NULL);
	CLEANUP(test_cert_done) struct test_cert c = test_cert_new("server", "IP:127.0.0.1", NULL);
	const struct tls_options o = { .cert_pem = c.cert, .key_pem = c.key, .alpn = both, .client_auth = TLS_CLIENT_AUTH_REQUEST };
	struct tls_context *tls = NULL;
	CHECK_INT(tls_server_new(&o, &tls, NULL), 0);
	const struct peer peers[] = {
		{ NULL, { "--http1.1" }, "http", "HTTP/1.1 200 OK\r\n" },
		{ NULL, { "--http2-prior-knowledge" }, "http", "HTTP/2 200" },
		{ tls, { "--http1.1" }, "https", "HTTP/1.1 200 OK\r\n" },
		{ tls, { "--http2" }, "https", "HTTP/2 200" },
	};

	for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
		struct test_server t;
		test_server_start(&t, (struct http_server_options){ .tls = peers[i].tls }, 1000);
		check_get(&t, &peers[i]);
		check_post(&t, &peers[i], dir);
		test_server_stop(&t);
	}
	tls_context_free(tls);
	(void)rmdir(dir);
}

FIBER_TEST(http_server_tls_versions_and_certificates)
{
	char dir[] = "/tmp/http-test-XXXXXX";
	CHECK(mkdtemp(dir) != NULL);
	CLEANUP(test_cert_done) struct test_cert ca = test_cert_new("ca", NULL, NULL);
	CLEANUP(test_cert_done) struct test_cert c = test_cert_new("server", "IP:127.0.0.1", &ca);
	CLEANUP(test_cert_done) struct test_cert user = test_cert_new("alice", "DNS:a", &ca);
	const struct tls_options o = { .cert_pem = c.cert, .key_pem = c.key, .ca_pem = ca.cert, .alpn = both,
				       .client_auth = TLS_CLIENT_AUTH_REQUEST };
	struct tls_context *tls = NULL;
	struct test_server t;
	char *cert = test_file(dir, "crt", user.cert), *key = test_file(dir, "key", user.key);
	const struct peer peer = { tls, { "--http2" }, "https", "HTTP/2 200" }, plain = { NULL, { NULL }, "http", "" };

	CHECK_INT(tls_server_new(&o, &tls, NULL), 0);
	test_server_start(&t, (struct http_server_options){ .tls = tls }, 1000);
	const char *const own[] = { "--cert", cert, "--key", key, NULL };
	const char *const tls12[] = { "--cert", cert, "--key", key, "--tls-max", "1.2", NULL };
	CLEANUP(buf_done) struct buf known = curl(&t, &peer, "/peer", 0, own);
	CHECK_STR(buf_str(&known), "alice 0 1");
	CLEANUP(buf_done) struct buf known12 = curl(&t, &peer, "/peer", 0, tls12);
	CHECK_STR(buf_str(&known12), "alice 0 1");
	CLEANUP(buf_done) struct buf nobody = curl(&t, &peer, "/peer", 0, NULL);
	CHECK_STR(buf_str(&nobody), "nobody 0 1");
	CLEANUP(buf_done) struct buf wrong = curl(&t, &plain, "/peer", 0, NULL);
	CHECK_STR(buf_str(&wrong), "Client sent an HTTP request to an HTTPS server.\n");
	test_server_stop(&t);
	tls_context_free(tls);
	(void)unlink(cert);
	(void)unlink(key);
	(void)rmdir(dir);
	free(cert);
	free(key);
}

FIBER_TEST(http_server_many_streams_at_once)
{
	struct test_server t;
	char url[64];

	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/busy", t.port);
	const char *const argv[] = { "h2load", "-c4", "-m100", "-n2000", url, NULL };
	CLEANUP(buf_done) struct buf b = test_run(0, argv);
	check_contains(b, "2000 succeeded, 0 failed");
	CHECK_INT(t.ended, 2000);
	CHECK_INT(http_server_stats(t.server).requests, 2000);
	CHECK_INT(http_server_stats(t.server).floods, 0);
	test_server_stop(&t);
}

/* ---- HTTP/1 by hand ---- */

FIBER_TEST(http1_requests_by_hand)
{
	struct test_server t;
	static const struct { const char *request, *want; } rows[] = {
		{ "GET /hello HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n" },
		{ "GET /hello HTTP/1.0\r\n\r\n", "Connection: close\r\n\r\nhello\n" },
		{ "GET /big HTTP/1.0\r\n\r\n", "Connection: close\r\n\r\naaa" },
		{ "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "Connection: close\r\n\r\nhello\n" },
		{ "nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n" },
		{ "GET /hello HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n" },
		{ "GET /hello HTTP/3.0\r\nHost: x\r\n\r\n", "HTTP/1.1 505 HTTP Version Not Supported\r\n" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "the body of the request is broken" },
		{ "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcdeGET /hello HTTP/1.0\r\n\r\n",
		  "hello\nHTTP/1.1 200 OK\r\n" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\nConnection: close\r\n\r\n",
		  "HTTP/1.1 413 Request Entity Too Large\r\n" },
		{ "GET /busy HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /missing HTTP/1.0\r\n\r\n",
		  "done" },
	};

	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("# row %zu\n", i);
		check_reply(&t, rows[i].request, rows[i].want);
	}
	test_server_stop(&t);
}

FIBER_TEST(http1_pipelined_answers_keep_their_order)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t);

	test_send(s, STR("GET /busy HTTP/1.1\r\nHost: x\r\n\r\n"
			 "GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /missing HTTP/1.0\r\n\r\n"));
	CLEANUP(buf_done) struct buf b = test_read_all(s);
	ptrdiff_t busy = str_find(buf_str(&b), STR("done")), hello = str_find(buf_str(&b), STR("hello\n"));
	ptrdiff_t missing = str_find(buf_str(&b), STR("no such page"));
	CHECK(busy > 0 && hello > busy && missing > hello);
	stream_free(TAKE(s));
	test_server_stop(&t);
}

FIBER_TEST(http1_expect_continue)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t);

	test_send(s, STR("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"));
	CLEANUP(buf_done) struct buf b = test_read_until(s, "\r\n\r\n");
	CHECK_STR(buf_str(&b), "HTTP/1.1 100 Continue\r\n\r\n");
	test_send(s, STR("abc"));
	CLEANUP(buf_done) struct buf answer = test_read_until(s, "abc");
	CHECK(str_starts(buf_str(&answer), STR("HTTP/1.1 200 OK\r\n")));
	/* A handler that does not want the body answers at once, and the connection ends. */
	test_send(s, STR("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"));
	CLEANUP(buf_done) struct buf refused = test_read_all(s);
	check_contains(refused, "Connection: close\r\n\r\nhello\n");
	stream_free(TAKE(s));
	test_server_stop(&t);
}

FIBER_TEST(http1_too_large_a_header)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ .max_header_bytes = 8192 }, 1000);
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	buf_add(&b, STR("GET /hello HTTP/1.1\r\nHost: x\r\n"));
	while (b.n < 100000)
		buf_addf(&b, "h%zu: value\r\n", b.n);
	check_reply(&t, b.p, "HTTP/1.1 431 Request Header Fields Too Large\r\n");
	char url[64];
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/hello", t.port);
	char *value = mem_zalloc(9000 + 3);
	memcpy(value, "x: ", 3);
	memset(value + 3, 'y', 8999);
	const char *const argv[] = { "curl", "-s", "-w", "%{http_code}", "--http2-prior-knowledge", "-H", value, url, NULL };
	CLEANUP(buf_done) struct buf h2 = test_run(0, argv);
	check_contains(h2, "431");
	free(value);
	test_server_stop(&t);
}

FIBER_TEST(http1_upgrade_hands_the_connection_over)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 20);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t), *other = test_dial(&t);
	static const char request[] = "GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nearly";

	test_send(s, str_of(request));
	CLEANUP(buf_done) struct buf b = test_read_until(s, "early");
	CHECK_STR(buf_str(&b), "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly");
	test_send(s, STR("more"));
	test_skip_until(s, "more");
	stream_free(TAKE(s));
	wait_for(&t.ended, 1);
	/* One that goes on does not outlive the server. */
	test_send(other, str_of(request));
	wait_for(&t.begun, 2);
	test_server_stop(&t);
	CHECK_INT(t.ended, 2);
}

/* ---- Streaming and leaving ---- */

FIBER_TEST(http_source_sends_when_woken)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t);

	test_send(s, STR("GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n"));
	CLEANUP(buf_done) struct buf head = test_read_until(s, "\r\n\r\n");
	check_contains(head, "Transfer-Encoding: chunked\r\n");
	ticks_push(&t, "one");
	test_skip_until(s, "one\r\n");
	ticks_push(&t, "two");
	ticks_push(&t, "three");
	test_skip_until(s, "twothree\r\n");
	ticks_end(&t);
	test_skip_until(s, "0\r\n\r\n");
	CHECK_INT(t.stopped, 1);
	test_send(s, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
	test_skip_until(s, "hello\n");
	stream_free(TAKE(s));
	test_server_stop(&t);
}

static int run_curl_ticks(void *arg)
{
	struct test_server *t = arg;
	const struct peer p = { NULL, { "--http2-prior-knowledge" }, "http", "" };
	CLEANUP(buf_done) struct buf b = curl(t, &p, "/ticks", 0, NULL);
	CHECK_STR(buf_str(&b), "onetwo");
	return 0;
}

FIBER_TEST(http2_source_sends_when_woken)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	struct fiber *f = start(run_curl_ticks, &t);

	wait_for(&t.begun, 1);
	ticks_push(&t, "one");
	fiber_settle();
	ticks_push(&t, "two");
	ticks_end(&t);
	CHECK_INT(join(f), 0);
	CHECK_INT(t.stopped, 1);
	test_server_stop(&t);
}

FIBER_TEST(http_source_that_ends_too_early_breaks_the_answer)
{
	struct test_server t;

	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	curl_fails(&t, "--http1.1", "/short", 18, NULL);
	curl_fails(&t, "--http2-prior-knowledge", "/short", 92, NULL);
	CHECK_INT(t.stopped, 2);
	test_server_stop(&t);
}

FIBER_TEST(http_client_that_leaves_cancels_its_requests)
{
	struct test_server t;
	static const char *const impatient[] = { "--max-time", "0.5", NULL };

	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	curl_fails(&t, "--http2-prior-knowledge", "/slow", 28, impatient);
	wait_for(&t.canceled, 1);
	curl_fails(&t, "--http2-prior-knowledge", "/ticks", 28, impatient);
	wait_for(&t.stopped, 1);
	struct stream *s = test_dial(&t);
	test_send(s, STR("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"));
	wait_for(&t.begun, 3);
	stream_free(s);
	wait_for(&t.canceled, 2);
	s = test_dial(&t);
	test_send(s, STR("GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n"));
	wait_for(&t.begun, 4);
	stream_free(s);
	wait_for(&t.stopped, 2);
	test_server_stop(&t);
}

/* What the handler answers when the upgrade failed is for nobody. */
FIBER_TEST(http_upgrade_that_is_canceled)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t);

	test_send(s, STR("GET /upgrade?canceled HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"));
	CLEANUP(buf_done) struct buf none = test_read_all(s);
	CHECK_INT(none.n, 0);
	check_reply(&t, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "hello\n");
	test_server_stop(&t);
}

/* How much of a body is skipped counts for each request by itself. */
FIBER_TEST(http1_many_bodies_that_nobody_reads)
{
	enum { BODY = 6 << 20, ROUNDS = 4 };
	CLEANUP(mem_freep) char *body = mem_zalloc(BODY);
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 1000);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t);

	for (int i = 0; i < ROUNDS; i++) {
		test_send(s, STR("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 6291456\r\n\r\n"));
		test_send(s, str_span(body, BODY));
		test_skip_until(s, "hello\n");
	}
	stream_free(TAKE(s));
	test_server_stop(&t);
}

/* ---- Stopping ---- */

FIBER_TEST(http_server_stop_lets_requests_finish)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 5000);
	CLEANUP(stream_freep) struct stream *busy = test_dial(&t), *idle = test_dial(&t);

	test_send(idle, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
	test_skip_until(idle, "hello\n");
	test_send(busy, STR("GET /busy HTTP/1.1\r\nHost: x\r\n\r\n"));
	wait_for(&t.begun, 1);
	int64_t begin = clock_now_ns();
	test_server_stop(&t);
	CHECK(clock_now_ns() - begin < 3 * NS_PER_S);
	CHECK_INT(t.ended, 1);
	CHECK_INT(t.canceled, 0);
	CLEANUP(buf_done) struct buf b = test_read_all(busy), none = test_read_all(idle);
	check_contains(b, "Connection: close\r\n\r\ndone");
	CHECK_INT(none.n, 0);
}

static int curl_busy(void *arg)
{
	const struct peer h2 = { NULL, { "--http2-prior-knowledge" }, "http", "" };
	CLEANUP(buf_done) struct buf b = curl(arg, &h2, "/busy", 0, NULL);
	CHECK_STR(buf_str(&b), "done");
	return 0;
}

FIBER_TEST(http2_server_stop_lets_requests_finish)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 5000);
	struct fiber *f = start(curl_busy, &t);

	wait_for(&t.begun, 1);
	test_server_stop(&t);
	CHECK_INT(t.canceled, 0);
	CHECK_INT(join(f), 0);
}

FIBER_TEST(http_server_stop_breaks_off_after_the_grace)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 50);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t), *ticks = test_dial(&t), *partial = test_dial(&t);

	test_send(s, STR("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"));
	test_send(ticks, STR("GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n"));
	test_send(partial, STR("GET /hello HT"));
	wait_for(&t.begun, 2);
	test_server_stop(&t);
	CHECK_INT(t.canceled, 1);
	CHECK_INT(t.stopped, 1);
}

FIBER_TEST(http_server_ends_with_its_loop)
{
	struct test_server t;
	test_server_start(&t, (struct http_server_options){ 0 }, 60000);
	CLEANUP(stream_freep) struct stream *s = test_dial(&t), *ticks = test_dial(&t), *idle = test_dial(&t);

	test_send(idle, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
	test_skip_until(idle, "hello\n");
	test_send(s, STR("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"));
	test_send(ticks, STR("GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n"));
	wait_for(&t.begun, 2);
	loop_stop(loop_self());
	test_server_stop(&t);
	CHECK_INT(t.canceled, 1);
	CHECK_INT(t.stopped, 1);
}
