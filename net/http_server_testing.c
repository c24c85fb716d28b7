#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/fiber_test.h"
#include "base/mem.h"
#include "base/process.h"
#include "net/http_server_test.h"

static const struct http_header plain[] = { { STR_INIT("content-type"), STR_INIT("text/plain") } };

/* ---- Sources ---- */

struct big {
	struct http_source source;
	struct test_server *t;
	size_t at;
};

static ssize_t big_fill(struct http_source *s, char *p, size_t n)
{
	struct big *b = CONTAINER_OF(s, struct big, source);

	n = MIN(n, BIG - b->at);
	for (size_t i = 0; i < n; i++)
		p[i] = (char)('a' + (b->at + i) / 1000 % 26);
	b->at += n;
	return (ssize_t)n;
}

static void big_stop(struct http_source *s)
{
	struct big *b = CONTAINER_OF(s, struct big, source);

	b->t->stopped++;
	free(b);
}

static struct http_source *big_new(struct test_server *t)
{
	struct big *b = mem_alloc(sizeof(*b));

	*b = (struct big){ .source = { .fill = big_fill, .stop = big_stop }, .t = t };
	return &b->source;
}

struct ticks {
	struct http_source source;
	struct test_server *t;
};

static ssize_t ticks_fill(struct http_source *s, char *p, size_t n)
{
	struct test_server *t = CONTAINER_OF(s, struct ticks, source)->t;

	if (!t->queue.n)
		return t->queue_end ? 0 : HTTP_LATER;
	n = MIN(n, t->queue.n);
	memcpy(p, t->queue.p, n);
	memmove(t->queue.p, t->queue.p + n, t->queue.n - n);
	t->queue.n -= n;
	return (ssize_t)n;
}

static void ticks_stop(struct http_source *s)
{
	struct ticks *ticks = CONTAINER_OF(s, struct ticks, source);

	ticks->t->stopped++;
	ticks->t->ticks = NULL;
	free(ticks);
}

void ticks_push(struct test_server *t, const char *text)
{
	buf_add(&t->queue, str_of(text));
	if (t->ticks)
		http_wake(t->ticks);
}

void ticks_end(struct test_server *t)
{
	t->queue_end = true;
	if (t->ticks)
		http_wake(t->ticks);
}

/* ---- Handlers ---- */

static int echo(struct http_exchange *x)
{
	struct err err = ERR_INIT;
	str body;
	int r = http_read_all(x, ECHO_MAX, &body, &err);

	if (r == -ERR_CANCELED)
		return r;
	if (r < 0)
		http_answer(x, err_http_status(err.code), plain, 1, err_str(&err));
	else
		http_answer(x, 200, plain, 1, body);
	return 0;
}

static int slow(struct http_exchange *x, struct test_server *t, int64_t ms)
{
	t->begun++;
	int r = fiber_sleep_ms(ms, NULL);
	t->canceled += r == -ERR_CANCELED;
	t->ended++;
	if (r == 0)
		http_answer(x, 200, plain, 1, STR("done"));
	return r;
}

static int show_peer(struct http_exchange *x)
{
	char cn[64] = "nobody";

	if (x->peer->certificate)
		X509_NAME_get_text_by_NID(X509_get_subject_name(x->peer->certificate), NID_commonName, cn, sizeof(cn));
	http_answer(x, 200, plain, 1, arena_printf(x->arena, "%s %ld %d", cn, x->peer->verify_result, (int)x->peer->tls));
	return 0;
}

static int upgrade(struct http_exchange *x, struct test_server *t)
{
	static const struct http_header headers[] = {
		{ STR_INIT("connection"), STR_INIT("Upgrade") }, { STR_INIT("upgrade"), STR_INIT("echo") },
	};
	CLEANUP(stream_freep) struct stream *s = NULL;
	struct err err = ERR_INIT;
	char p[64];
	ssize_t n;

	if (str_eq(x->query, STR("canceled")))
		fiber_cancel(fiber_self());
	int r = http_upgrade(x, headers, ARRAY_LEN(headers), &s, &err);

	if (r < 0) {
		http_answer(x, err_http_status(err.code), plain, 1, err_str(&err));
		return 0;
	}
	t->begun++;
	while ((n = stream_read(s, p, sizeof(p), NULL)) > 0)
		if (stream_write(s, p, (size_t)n, NULL) < 0)
			break;
	t->ended++;
	return 0;
}

static int answer_sources(struct http_exchange *x, struct test_server *t)
{
	static const struct http_header zipped[] = { { STR_INIT("content-encoding"), STR_INIT("gzip") } };

	if (str_eq(x->path, STR("/big")))
		http_answer_source(x, 200, plain, 1, big_new(t), str_eq(x->query, STR("length")) ? BIG : -1);
	else if (str_eq(x->path, STR("/gzip")))
		http_answer_source(x, 200, zipped, 1, http_gzip(big_new(t), 1), -1);
	else if (str_eq(x->path, STR("/short")))
		http_answer_source(x, 200, plain, 1, big_new(t), BIG + 1);
	else
		return -1;
	return 0;
}

static int handle(struct http_exchange *x, void *arg)
{
	struct test_server *t = arg;

	if (str_eq(x->path, STR("/echo")))
		return echo(x);
	if (str_eq(x->path, STR("/slow")))
		return slow(x, t, 60000);
	if (str_eq(x->path, STR("/busy")))
		return slow(x, t, 30);
	if (str_eq(x->path, STR("/peer")))
		return show_peer(x);
	if (str_eq(x->path, STR("/upgrade")))
		return upgrade(x, t);
	if (str_eq(x->path, STR("/none")) || answer_sources(x, t) == 0)
		return 0;
	if (str_eq(x->path, STR("/ticks"))) {
		struct ticks *ticks = mem_alloc(sizeof(*ticks));
		*ticks = (struct ticks){ .source = { .fill = ticks_fill, .stop = ticks_stop }, .t = t };
		t->begun++;
		t->ticks = &ticks->source;
		http_answer_source(x, 200, plain, 1, &ticks->source, -1);
		return 0;
	}
	bool known = str_eq(x->path, STR("/hello"));
	http_answer(x, known ? 200 : 404, plain, 1, known ? STR("hello\n") : STR("no such page\n"));
	return 0;
}

/* ---- Server ---- */

struct run_arg {
	struct http_server *server;
	int64_t grace_ms;
};

static int run(void *arg)
{
	CLEANUP(mem_freep) struct run_arg *a = arg;
	return http_server_run(a->server, a->grace_ms, NULL);
}

void test_server_start(struct test_server *t, struct http_server_options o, int64_t grace_ms)
{
	struct err err = ERR_INIT;

	*t = (struct test_server){ .queue = BUF_INIT(1 << 20) };
	o.handle = handle;
	o.arg = t;
	CHECK_INT(http_server_new(&o, &t->server, &err), 0);
	if (http_server_listen(t->server, "127.0.0.1", 0, &t->port, &err) < 0)
		fail_msg("%s", err.msg);
	struct run_arg *a = mem_alloc(sizeof(*a));
	*a = (struct run_arg){ t->server, grace_ms };
	t->run = start(run, a);
}

void test_server_stop(struct test_server *t)
{
	CHECK_INT(fiber_stop(TAKE(t->run)), -ERR_CANCELED);
	CHECK_INT(http_server_stats(t->server).connections, 0);
	http_server_free(t->server);
	buf_done(&t->queue);
}

void wait_for(const int *n, int want)
{
	for (int i = 0; *n < want; i++) {
		CHECK(i < 2000);
		CHECK_INT(fiber_sleep_ms(5, NULL), 0);
	}
	CHECK_INT(*n, want);
}

/* ---- Clients ---- */

struct stream *test_dial(struct test_server *t)
{
	struct stream *s = NULL;
	struct err err = ERR_INIT;

	if (stream_dial("127.0.0.1", t->port, NULL, &s, &err) < 0 || !s) {
		fail_msg("%s", err.msg);
		abort();
	}
	return s;
}

void test_send(struct stream *s, str bytes) { CHECK_INT(stream_write(s, bytes.p, bytes.n, NULL), 0); }

struct buf test_read_all(struct stream *s)
{
	struct buf b = BUF_INIT(64 << 20);
	DEADLINE_SCOPE(20000);

	for (ssize_t n = 1; n > 0;) {
		n = stream_read(s, buf_reserve(&b, 16384), 16384, NULL);
		CHECK(n != -ERR_TIMEOUT);
		if (n > 0)
			buf_commit(&b, (size_t)n);
	}
	return b;
}

struct buf test_read_until(struct stream *s, const char *end)
{
	struct buf b = BUF_INIT(1 << 20);
	DEADLINE_SCOPE(20000);

	while (str_find(buf_str(&b), str_of(end)) < 0) {
		ssize_t n = stream_read(s, buf_reserve(&b, 4096), 4096, NULL);
		if (n <= 0)
			fail_msg("no '%s' after '%s'", end, b.p ? b.p : "");
		buf_commit(&b, (size_t)n);
	}
	return b;
}

void test_skip_until(struct stream *s, const char *end)
{
	struct buf b = test_read_until(s, end);
	buf_done(&b);
}

struct buf test_run(int want_exit, const char *const *argv)
{
	struct process_output out;
	struct err err = ERR_INIT;
	const struct process_spec spec = { .argv = argv };
	DEADLINE_SCOPE(60000);

	if (process_run(&spec, STR_NONE, 64 << 20, &out, &err) < 0)
		fail_msg("%s: %s", argv[0], err.msg);
	if (out.status.exit_code != want_exit)
		fail_msg("%s: exit code %d: " STR_FMT, argv[0], out.status.exit_code, STR_ARG(buf_str(&out.err)));
	buf_done(&out.err);
	return out.out;
}
