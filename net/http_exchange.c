/* One request and its answer, whatever the protocol: what handlers call, and what the protocols call for them. */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http1.h"
#include "net/http_priv.h"

enum {
	FREE_MAX = 256,             /* exchanges kept for later */
	FREE_ARENA_MAX = 64 * 1024, /* those that used more give their memory back */
	PARKED_MAX = 64,
};

static struct exchange *of(const struct http_exchange *pub) { return CONTAINER_OF(pub, struct exchange, pub); }

/* ---- Life ---- */

static void on_wake(struct http_sink *sink)
{
	struct exchange *x = CONTAINER_OF(sink, struct exchange, sink);

	if (!x->later || x->closed)
		return;
	x->later = false;
	x->progress_ns = clock_now_ns();
	if (!list_linked(&x->woken))
		list_add(&x->conn->woken, &x->woken);
	conn_woken(x->conn);
}

struct exchange *exchange_new(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct exchange *x = LIST_FIRST(struct exchange, &s->free_exchanges, link);
	struct arena arena = ARENA_INIT;

	if (x) {
		list_remove(&x->link);
		s->n_free--;
		arena = x->arena;
	} else {
		x = mem_alloc(sizeof(*x));
	}
	*x = (struct exchange){ .arena = arena, .conn = c, .left = -1 };
	x->pub = (struct http_exchange){ .arena = &x->arena, .content_length = -1, .peer = &c->peer };
	x->pub.version = c->protocol->version;
	buf_init(&x->in, SIZE_MAX / 2);
	fiber_cond_init(&x->in_cond, "the body of a request");
	x->sink.wake = on_wake;
	list_add(&c->exchanges, &x->link);
	if (c->n_exchanges++ == 0)
		conn_set_idle(c, false);
	return x;
}

/* Both the handler and the protocol are through with it. */
static void release(struct exchange *x)
{
	struct http_conn *c = x->conn;
	struct http_server *s = c->server;

	assert(!x->source && list_empty(&x->in_cond.waiters));
	list_remove(&x->link);
	list_remove(&x->woken);
	buf_done(&x->in);
	if (s->n_free < FREE_MAX && x->arena.used <= FREE_ARENA_MAX) {
		arena_reset(&x->arena);
		list_add_front(&s->free_exchanges, &x->link);
		s->n_free++;
	} else {
		arena_done(&x->arena);
		free(x);
	}
	if (--c->n_exchanges == 0)
		conn_set_idle(c, true);
	conn_changed(c);
}

void exchange_free_all(struct http_server *s)
{
	struct exchange *x;

	while ((x = LIST_FIRST(struct exchange, &s->free_exchanges, link))) {
		list_remove(&x->link);
		arena_done(&x->arena);
		free(x);
	}
	s->n_free = 0;
}

static void stop_source(struct exchange *x)
{
	struct http_source *source = TAKE(x->source);

	if (!source)
		return;
	source->sink = NULL;
	source->stop(source);
}

void exchange_close(struct exchange *x)
{
	if (x->closed)
		return;
	x->closed = true;
	x->body = STR_NONE;
	list_remove(&x->woken);
	stop_source(x);
	fiber_cond_broadcast(&x->in_cond);
	if (x->started && !x->handled) {
		if (!x->answered)
			fiber_cancel(x->fiber);
		return;
	}
	release(x);
}

/* ---- The handler ---- */

static void run_handler(struct exchange *x)
{
	struct http_server *s = x->conn->server;
	int r = s->o.handle(&x->pub, s->o.arg);

	if (!x->answered && !x->closed) {
		if (r == -ERR_CANCELED)
			x->conn->protocol->abandon(x);
		else
			exchange_refuse(x, 500);
	}
	x->fiber = NULL;
	x->handled = true;
	if (x->closed)
		release(x);
	else
		x->conn->protocol->handled(x);
}

/*
 * A fiber that runs one handler after the other: making one costs more than most requests. Those without work are parked;
 * one that was canceled is of no more use.
 */
struct worker {
	struct list link;        /* in server->parked */
	struct fiber *fiber;
	struct exchange *next;
	struct fiber_cond given;
};

static int run_worker(void *arg)
{
	struct exchange *first = arg;
	struct http_server *s = first->conn->server;
	struct worker w = { .fiber = first->fiber, .next = first };

	fiber_cond_init(&w.given, "a request");
	while (w.next) {
		run_handler(TAKE(w.next));
		if (s->n_parked == PARKED_MAX || s->stopping || fiber_check(NULL) < 0)
			break;
		list_add_front(&s->parked, &w.link);
		s->n_parked++;
		(void)fiber_cond_wait(&w.given, NULL);
		if (list_linked(&w.link)) {
			list_remove(&w.link);
			s->n_parked--;
		}
	}
	if (--s->n_workers == 0)
		fiber_cond_broadcast(&s->emptied);
	fiber_detach(w.fiber);
	return 0;
}

void exchange_end_workers(struct http_server *s)
{
	LIST_EACH(struct worker, w, &s->parked, link)
		fiber_cancel(w->fiber);
	while (s->n_workers)
		(void)fiber_cond_wait(&s->emptied, NULL);
}

static int give_to_worker(struct exchange *x)
{
	struct http_server *s = x->conn->server;
	struct worker *w = LIST_FIRST(struct worker, &s->parked, link);

	if (!w) {
		int r = fiber_spawn(run_worker, x, &x->fiber, NULL, "request");
		s->n_workers += r == 0;
		return r;
	}
	list_remove(&w->link);
	s->n_parked--;
	w->next = x;
	x->fiber = w->fiber;
	fiber_cond_signal(&w->given);
	return 0;
}

void exchange_start(struct exchange *x)
{
	struct http_server *s = x->conn->server;

	s->stats.requests++;
	x->pub.headers = x->headers;
	x->head_only = str_eq(x->pub.method, STR("HEAD"));
	if (x->in_end)
		x->pub.content_length = 0;
	x->progress_ns = INT64_MAX;
	if (!x->refused && give_to_worker(x) < 0)
		x->refused = 503;
	x->started = !x->refused;
	if (x->refused)
		exchange_refuse(x, x->refused);
}

void exchange_refuse(struct exchange *x, int status)
{
	static const struct http_header text[] = {
		{ STR_INIT("content-type"), STR_INIT("text/plain; charset=utf-8") },
		{ STR_INIT("x-content-type-options"), STR_INIT("nosniff") },
	};
	str body = arena_printf(&x->arena, "%d %s\n", status, http1_reason(status));

	http_answer(&x->pub, status, text, ARRAY_LEN(text), body);
}

/* ---- The header ---- */

int exchange_add_header(struct exchange *x, str name, str value)
{
	x->header_bytes += name.n + value.n + 32;
	if (x->pub.n_headers >= HTTP_HEADERS_MAX || x->header_bytes > x->conn->server->o.max_header_bytes)
		return -ERR_TOO_LARGE;
	if (x->pub.n_headers == x->cap_headers) {
		size_t cap = x->cap_headers ? x->cap_headers * 2 : 16;
		struct http_header *h = ARENA_ARRAY(&x->arena, struct http_header, cap);
		if (x->pub.n_headers)
			memcpy(h, x->headers, x->pub.n_headers * sizeof(*h));
		x->headers = h;
		x->cap_headers = cap;
	}
	x->headers[x->pub.n_headers++] = (struct http_header){ arena_str(&x->arena, name), arena_str(&x->arena, value) };
	return 0;
}

/* ---- The body of the request ---- */

void exchange_body(struct exchange *x, str data)
{
	buf_add(&x->in, data);
	fiber_cond_broadcast(&x->in_cond);
}

void exchange_body_end(struct exchange *x)
{
	x->in_end = true;
	fiber_cond_broadcast(&x->in_cond);
}

void exchange_body_error(struct exchange *x, enum err_code code)
{
	x->in_error = code;
	fiber_cond_broadcast(&x->in_cond);
}

/* (suspends) Until there is something to read, or there will be nothing more: 0, or the error. */
static int wait_body(struct exchange *x, struct err *err)
{
	int r = fiber_check(err);

	if (!x->in_wanted && !x->in_end && !x->closed) {
		x->in_wanted = true;
		x->conn->protocol->want_body(x);
	}
	while (r == 0 && !exchange_unread(x) && !x->in_end) {
		if (x->in_error)
			return err_set(err, x->in_error, "the body of the request is broken");
		if (x->closed)
			return err_set(err, ERR_GONE, "the client went away");
		DEADLINE_SCOPE(x->conn->server->o.body_timeout_ms);
		r = fiber_cond_wait(&x->in_cond, err);
	}
	return r;
}

static void took(struct exchange *x, size_t n)
{
	x->in_at += n;
	if (x->in_at == x->in.n) {
		buf_reset(&x->in);
		x->in_at = 0;
	}
	if (!x->closed)
		x->conn->protocol->took_body(x, n);
}

ssize_t http_read(struct http_exchange *pub, void *p, size_t n, struct err *err)
{
	struct exchange *x = of(pub);
	int r = wait_body(x, err);

	if (r < 0)
		return r;
	n = MIN(n, exchange_unread(x));
	if (n) {
		memcpy(p, x->in.p + x->in_at, n);
		took(x, n);
	}
	return (ssize_t)n;
}

static int too_large(size_t max, struct err *err)
{
	return err_set(err, ERR_TOO_LARGE, "Request entity too large: limit is %zu", max);
}

/* The bytes stay where they came in: the handler has them all, and nothing is copied. */
int http_read_all(struct http_exchange *pub, size_t max, str *ret_body, struct err *err)
{
	struct exchange *x = of(pub);
	size_t start = x->in_at;
	int r;

	if (pub->content_length > 0 && (uint64_t)pub->content_length > max)
		return too_large(max, err);
	while ((r = wait_body(x, err)) == 0 && exchange_unread(x)) {
		size_t n = exchange_unread(x);
		if (x->in.n - start > max)
			return too_large(max, err);
		x->in_at = x->in.n;
		if (!x->closed)
			x->conn->protocol->took_body(x, n);
	}
	if (r < 0)
		return r;
	*ret_body = str_skip(buf_str(&x->in), start);
	return 0;
}

/* ---- Answering ---- */

static void begin(struct exchange *x, int status, const struct http_header *headers, size_t n)
{
	assert(!x->answered && "one answer per request");
	x->answered = true;
	x->status = status;
	x->progress_ns = clock_now_ns();
	if (x->closed)
		stop_source(x);
	else
		x->conn->protocol->answer(x, headers, n);
}

void http_answer(struct http_exchange *pub, int status, const struct http_header *headers, size_t n, str body)
{
	struct exchange *x = of(pub);

	x->left = (int64_t)body.n;
	if (!x->closed && !x->head_only && http_status_has_body(status))
		x->body = arena_str(&x->arena, body);
	begin(x, status, headers, n);
}

void http_answer_source(struct http_exchange *pub, int status, const struct http_header *headers, size_t n,
			struct http_source *source, int64_t length)
{
	struct exchange *x = of(pub);

	source->sink = &x->sink;
	x->source = source;
	x->left = length;
	if (x->head_only || !http_status_has_body(status))
		stop_source(x);
	begin(x, status, headers, n);
}

void http_wake(struct http_source *source)
{
	struct http_sink *sink = source->sink;

	if (sink)
		sink->wake(sink);
}

static ssize_t fill_bytes(struct exchange *x, char *p, size_t n, bool *ret_end)
{
	n = MIN(n, x->body.n);
	if (n)
		memcpy(p, x->body.p, n);
	x->body = str_skip(x->body, n);
	*ret_end = x->body.n == 0;
	return (ssize_t)n;
}

/* Before the source goes. */
static void take_trailers(struct exchange *x)
{
	const struct http_header *t;

	if (!x->source->trailers || !(x->n_trailers = x->source->trailers(x->source, &t)))
		return;
	x->trailers = ARENA_ARRAY(&x->arena, struct http_header, x->n_trailers);
	for (size_t i = 0; i < x->n_trailers; i++)
		x->trailers[i] = (struct http_header){ arena_str(&x->arena, t[i].name), arena_str(&x->arena, t[i].value) };
}

static ssize_t fill_source(struct exchange *x, char *p, size_t n, bool *ret_end)
{
	ssize_t got = 0;

	if (x->left >= 0)
		n = (size_t)MIN((uint64_t)n, (uint64_t)x->left);
	if (n || x->left < 0)
		got = x->source->fill(x->source, p, n);
	x->later = got == HTTP_LATER;
	if (got < 0)
		return got;
	if (x->left >= 0)
		x->left -= got;
	*ret_end = got == 0 || x->left == 0;
	if (*ret_end) {
		take_trailers(x);
		stop_source(x);
	}
	return x->left > 0 && got == 0 ? -ERR_INTERNAL : got;
}

ssize_t exchange_fill(struct exchange *x, char *p, size_t n, bool *ret_end)
{
	*ret_end = false;
	return x->source ? fill_source(x, p, n, ret_end) : fill_bytes(x, p, n, ret_end);
}
