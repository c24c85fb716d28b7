/*
 * Many watchers of one kind while somebody writes: how long until the last of them has heard of a write.
 *
 *	bench-watch URL CA-FILE TOKEN [WATCHERS [WRITES-PER-SECOND [SECONDS]]]
 *
 * Every watcher has a connection of its own. They begin at one resourceVersion and see the same events in the same
 * order, one per line: so the number of lines tells which write a watcher has heard of, and nothing is parsed. Events
 * and writes share this process: with many events per second it measures the reader as much as the server.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/tls.h"

enum {
	WRITES_MAX = 1 << 20,
	STEP = 16,    /* connections that are opened at a time */
	PART = 16384, /* bytes that are read at a time */
	WRITERS = 32,
};

struct write {
	int64_t sent_ns, answered_ns, last_ns;
	unsigned seen;
};

struct bench {
	str url, authorization, revision;
	int watchers, rate, seconds;
	struct tls_context *tls;
	struct http_client *client;
	struct arena arena;
	int opened;
	uint64_t events, bytes;
	struct write *writes;
	size_t n, complete;     /* writes that were sent, and that all have heard of */
};

static void must(int r, const struct err *err, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench watch: %s: " STR_FMT "\n", what, STR_ARG(err_str(err)));
	exit(1);
}

static int open_call(struct bench *b, const struct http_request *q, int want, struct http_call **ret, struct err *err)
{
	const struct http1_head *head;
	int r = http_call_open(b->client, q, ret, err);
	if (r == 0)
		r = http_call_head(*ret, &head, err);
	if (r == 0 && head->status != want)
		r = err_set(err, ERR_INTERNAL, "status %d", head->status);
	return r;
}

/* ---- a watcher ---- */

static void heard(struct bench *b, size_t line)
{
	struct write *w = &b->writes[line];
	b->events++;
	if (++w->seen < (unsigned)b->watchers)
		return;
	w->last_ns = clock_now_ns();
	b->complete++;
}

static int watcher(void *arg)
{
	struct bench *b = arg;
	const struct http_header headers[] = { { STR("authorization"), b->authorization } };
	str url = arena_printf(&b->arena, STR_FMT "?watch=1&resourceVersion=" STR_FMT, STR_ARG(b->url), STR_ARG(b->revision));
	const struct http_request q = { .method = STR("GET"), .url = url, .headers = headers, .n_headers = 1 };
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	struct err err = ERR_INIT;
	CLEANUP(mem_freep) char *part = mem_alloc(PART);
	size_t lines = 0;
	ssize_t n;

	must(open_call(b, &q, 200, &call, &err), &err, "watch");
	b->opened++;
	while ((n = http_call_read(call, part, PART, &err)) > 0) {
		const char *at = part, *end = part + n;
		b->bytes += (size_t)n;
		while ((at = memchr(at, '\n', (size_t)(end - at)))) {
			if (lines < b->n)
				heard(b, lines++);
			at++;
		}
	}
	return 0;
}

/* ---- the writer ---- */

static void write_one(struct bench *b, struct write *w)
{
	static const str body = STR_INIT("{\"metadata\":{\"generateName\":\"watched-\"},\"data\":{\"key\":\"value\"}}");
	const struct http_header headers[] = {
		{ STR("authorization"), b->authorization }, { STR("content-type"), STR("application/json") },
	};
	const struct http_request q = {
		.method = STR("POST"), .url = b->url, .headers = headers, .n_headers = ARRAY_LEN(headers), .body = body,
	};
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	struct err err = ERR_INIT;
	str answer;

	w->sent_ns = clock_now_ns();
	must(open_call(b, &q, 201, &call, &err), &err, "write");
	must(http_call_read_all(call, 1 << 20, &answer, &err), &err, "write");
	w->answered_ns = clock_now_ns();
}

/* Several write at a time, as clients do: events come in the order of commits, which is nearly that of sending. */
static int writer(void *arg)
{
	struct bench *b = arg;
	int64_t due = clock_now_ns(), end = due + b->seconds * NS_PER_S;

	while (b->n < WRITES_MAX && clock_now_ns() < end) {
		write_one(b, &b->writes[b->n++]);
		due += WRITERS * NS_PER_S / b->rate;
		int64_t wait = due - clock_now_ns();
		if (wait > 0)
			(void)fiber_sleep_ns(wait, NULL);
	}
	return 0;
}

static void write_all(struct bench *b)
{
	struct fiber_group writers;
	struct err err = ERR_INIT;

	fiber_group_init(&writers);
	for (int i = 0; i < WRITERS; i++)
		must(fiber_group_spawn(&writers, writer, b, &err, "writer %d", i), &err, "fiber");
	(void)fiber_group_wait(&writers, NULL);
	for (int i = 0; i < 1000 && b->complete < b->n; i++)
		(void)fiber_sleep_ms(10, NULL);
	fiber_group_done(&writers);
}

/* ---- numbers ---- */

static int time_cmp(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return a < b ? -1 : a > b;
}

static void print_times(const char *what, int64_t *ns, size_t n)
{
	if (!n)
		return;
	qsort(ns, n, sizeof(*ns), time_cmp);
	printf("%-36s p50 %8.2f ms  p99 %8.2f ms  max %8.2f ms\n", what, (double)ns[n / 2] / 1e6, (double)ns[n * 99 / 100] / 1e6,
	       (double)ns[n - 1] / 1e6);
}

static void report(struct bench *b, int64_t begin)
{
	int64_t *answered = mem_array(b->n + 1, sizeof *answered), *last = mem_array(b->n + 1, sizeof *last);
	double seconds = (double)(clock_now_ns() - begin) / 1e9;
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		answered[i] = b->writes[i].answered_ns - b->writes[i].sent_ns;
		if (b->writes[i].last_ns)
			last[n++] = b->writes[i].last_ns - b->writes[i].sent_ns;
	}
	printf("%d watchers, %zu writes (%.0f/s), %.0f events/s, %.1f MB/s, %zu writes not heard of by all\n", b->watchers, b->n,
	       (double)b->n / seconds, (double)b->events / seconds, (double)b->bytes / 1e6 / seconds, b->n - b->complete);
	print_times("write sent to answered", answered, b->n);
	print_times("write sent to last watcher", last, n);
	free(answered);
	free(last);
}

/* The resourceVersion of the list as it is now. */
static void find_revision(struct bench *b)
{
	const struct http_header headers[] = { { STR("authorization"), b->authorization } };
	str url = arena_printf(&b->arena, STR_FMT "?limit=1", STR_ARG(b->url)), answer;
	const struct http_request q = { .method = STR("GET"), .url = url, .headers = headers, .n_headers = 1 };
	static const str before = STR_INIT("\"resourceVersion\":\"");
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	struct err err = ERR_INIT;

	must(open_call(b, &q, 200, &call, &err), &err, "list");
	must(http_call_read_all(call, 1 << 20, &answer, &err), &err, "list");
	ptrdiff_t at = str_find(answer, before);
	str rest = str_skip(answer, at < 0 ? answer.n : (size_t)at + before.n);
	ptrdiff_t quote = str_chr(rest, '"');
	b->revision = arena_str(&b->arena, str_head(rest, quote < 0 ? 0 : (size_t)quote));
}

static int run(void *arg)
{
	struct bench *b = arg;
	struct err err = ERR_INIT;

	b->client = http_client_new(&(struct http_client_options){ .tls = b->tls, .max_idle_per_host = WRITERS });
	find_revision(b);
	struct fiber **fibers = mem_array((size_t)b->watchers, sizeof *fibers);
	for (int i = 0; i < b->watchers; i++) {
		must(fiber_spawn(watcher, b, &fibers[i], &err, "watcher %d", i), &err, "fiber");
		while (i - b->opened >= STEP)
			(void)fiber_sleep_ms(1, NULL);
	}
	while (b->opened < b->watchers)
		(void)fiber_sleep_ms(1, NULL);
	int64_t begin = clock_now_ns();
	write_all(b);
	report(b, begin);
	for (int i = 0; i < b->watchers; i++)
		(void)fiber_stop(fibers[i]);
	free(fibers);
	http_client_free(b->client);
	return 0;
}

static int number(char **argv, int argc, int i, int otherwise)
{
	int64_t n = otherwise;
	if (argc > i && (!str_to_i64(str_of(argv[i]), &n) || n < 1 || n > 1000000)) {
		fprintf(stderr, "bench watch: %s is not a number from 1 to 1000000\n", argv[i]);
		exit(2);
	}
	return (int)n;
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	struct loop *loop;
	struct err err = ERR_INIT;

	if (argc < 4) {
		fprintf(stderr, "usage: %s URL CA-FILE TOKEN [WATCHERS [WRITES-PER-SECOND [SECONDS]]]\n", argv[0]);
		return 2;
	}
	b.url = str_of(argv[1]);
	b.watchers = number(argv, argc, 4, 1000);
	b.rate = number(argv, argc, 5, 100);
	b.seconds = number(argv, argc, 6, 5);
	b.authorization = arena_printf(&b.arena, "Bearer %s", argv[3]);
	b.writes = mem_zalloc(WRITES_MAX * sizeof *b.writes);
	must(tls_client_new(&(struct tls_options){ .ca_file = argv[2] }, &b.tls, &err), &err, "TLS");
	must(loop_new("bench", &loop, &err), &err, "loop");
	loop_set_max_fibers(loop, (unsigned)b.watchers + WRITERS + 16);
	must(loop_run(loop, run, &b, &err), &err, "run");
	loop_free(loop);
	tls_context_free(b.tls);
	free(b.writes);
	arena_done(&b.arena);
	return 0;
}
