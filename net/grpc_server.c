/*
 * gRPC on top of the HTTP server. The answer is a source of the connection: what a handler replies waits in a queue, which the
 * connection empties as fast as the client reads; a handler that is ahead by QUEUE_MAX bytes waits. The status is in the trailers.
 *
 * A call lives in the arena of its exchange, which is there until both the handler has returned and the answer has ended.
 */
#include "net/grpc_server.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/grpc_frame.h"

enum {
	MESSAGE_MAX = 16 << 20,
	QUEUE_MAX = 1 << 20,
	ANSWER_MAX = 1 << 30,
	STATUS_TEXT_MAX = 4096,
	STREAMS_MAX = 1000,
	IDLE_MS = 24 * 3600 * 1000,
};

struct grpc_server {
	struct grpc_server_options o;
	struct map methods;
	struct http_server *http;
};

struct grpc_server_call {
	struct http_source source;
	struct http_exchange *x;
	const struct grpc_method *method;
	struct fiber *fiber;          /* of the handler, while it runs */
	bool answering;               /* the source is the connection's */
	bool stopped;                 /* nobody takes it any more */
	bool ended;                   /* the handler has returned: status is there */
	struct buf queue;             /* framed; queue.p[at..] is to be sent */
	size_t at;
	struct fiber_cond drained;
	int status;
	struct buf message;           /* of the status, encoded */
	char status_text[12];
	struct http_header trailers[2];
};

/* ---- the answer ---- */

static ssize_t fill(struct http_source *source, char *p, size_t n)
{
	struct grpc_server_call *c = CONTAINER_OF(source, struct grpc_server_call, source);
	size_t part = MIN(n, c->queue.n - c->at);

	if (!part)
		return c->ended ? 0 : HTTP_LATER;
	memcpy(p, c->queue.p + c->at, part);
	c->at += part;
	if (c->at == c->queue.n) {
		buf_reset(&c->queue);
		c->at = 0;
	}
	if (c->queue.n - c->at < QUEUE_MAX)
		fiber_cond_broadcast(&c->drained);
	return (ssize_t)part;
}

static size_t trailers(struct http_source *source, const struct http_header **ret)
{
	struct grpc_server_call *c = CONTAINER_OF(source, struct grpc_server_call, source);

	(void)snprintf(c->status_text, sizeof c->status_text, "%d", c->status);
	c->trailers[0] = (struct http_header){ STR("grpc-status"), str_of(c->status_text) };
	c->trailers[1] = (struct http_header){ STR("grpc-message"), buf_str(&c->message) };
	*ret = c->trailers;
	return c->message.n ? 2 : 1;
}

static void stop(struct http_source *source)
{
	struct grpc_server_call *c = CONTAINER_OF(source, struct grpc_server_call, source);

	c->stopped = true;
	buf_done(&c->queue);
	buf_done(&c->message);
	fiber_cond_broadcast(&c->drained);
	if (c->fiber)
		fiber_cancel(c->fiber);
}

static void begin(struct grpc_server_call *c)
{
	static const struct http_header headers[] = { { STR_INIT("content-type"), STR_INIT("application/grpc") } };

	c->answering = true;
	http_answer_source(c->x, 200, headers, ARRAY_LEN(headers), &c->source, -1);
}

int grpc_reply(struct grpc_server_call *c, str message, struct err *err)
{
	char prefix[GRPC_PREFIX];
	int r = 0;

	while (r == 0 && !c->stopped && c->queue.n - c->at >= QUEUE_MAX)
		r = fiber_cond_wait(&c->drained, err);
	if (r < 0)
		return r;
	if (c->stopped)
		return err_set(err, ERR_CANCELED, "the client went away");
	grpc_prefix(prefix, message.n);
	buf_add(&c->queue, str_span(prefix, GRPC_PREFIX));
	buf_add(&c->queue, message);
	if ((r = buf_check(&c->queue, "the answer", err)) < 0)
		return r;
	if (c->answering)
		http_wake(&c->source);
	return 0;
}

struct arena *grpc_call_arena(struct grpc_server_call *c) { return c->x->arena; }

const struct grpc_method *grpc_call_method(const struct grpc_server_call *c) { return c->method; }

/* The handler has returned r. */
static void end(struct grpc_server_call *c, int r, const struct err *err)
{
	enum err_code code = r < 0 ? (enum err_code)-r : ERR_NONE;

	c->fiber = NULL;
	c->ended = true;
	if (c->stopped)
		return;
	c->status = grpc_status_of_err(code);
	if (r < 0)
		grpc_message_encode(&c->message, err->n ? err_str(err) : str_of(err_reason(code)));
	if (c->answering)
		http_wake(&c->source);
	else
		begin(c);
}

/* ---- calls ---- */

/* The one message of the request; it borrows from the body. */
static int read_request(struct http_exchange *x, size_t max, str *ret, struct err *err)
{
	str body;
	int r = http_read_all(x, max + GRPC_PREFIX, &body, err);

	if (r == -ERR_TOO_LARGE)
		return err_set(err, ERR_TOO_LARGE, "grpc: received message larger than max (%zu)", max);
	if (r < 0)
		return r;
	if (body.n < GRPC_PREFIX)
		return err_set(err, ERR_BAD_REQUEST, "grpc: the request has no message");
	if (body.p[0] != 0)
		return err_set(err, ERR_METHOD_NOT_ALLOWED, "grpc: compressed messages are not taken");
	size_t length = 0;
	for (size_t i = 1; i < GRPC_PREFIX; i++)
		length = length << 8 | (unsigned char)body.p[i];
	if (length != body.n - GRPC_PREFIX)
		return err_set(err, ERR_BAD_REQUEST, "grpc: the request is not one message");
	*ret = str_skip(body, GRPC_PREFIX);
	return 0;
}

static int unknown(str path, struct err *err)
{
	str service, method;

	if (!str_starts(path, STR("/")) || !str_cut(str_skip(path, 1), '/', &service, &method))
		return err_set(err, ERR_METHOD_NOT_ALLOWED, "malformed method name: \"" STR_FMT "\"", STR_ARG(path));
	return err_set(err, ERR_METHOD_NOT_ALLOWED, "unknown method " STR_FMT " for service " STR_FMT, STR_ARG(method),
		       STR_ARG(service));
}

/* (suspends) Within the time that the client gives it. */
static int call(struct grpc_server *s, struct grpc_server_call *c, struct err *err)
{
	const struct grpc_method *m = c->method = map_get(&s->methods, c->x->path);
	str timeout = http_request_header(c->x, STR("grpc-timeout")), request;
	int64_t ns = timeout.n ? grpc_timeout_parse(timeout) : INT64_MAX;
	int r;

	if (ns < 0)
		return err_set(err, ERR_BAD_REQUEST, "malformed grpc-timeout");
	if (!m)
		return unknown(c->x->path, err);
	DEADLINE_SCOPE(ns == INT64_MAX ? INT64_MAX : ns / NS_PER_MS + 1);
	if ((r = read_request(c->x, s->o.max_message, &request, err)) < 0)
		return r;
	if (m->stream)
		begin(c);
	r = m->handle(c, request, s->o.arg, err);
	if (r == -ERR_TIMEOUT && fiber_check(NULL) == -ERR_TIMEOUT)
		return err_set(err, ERR_TIMEOUT, "context deadline exceeded");
	return r;
}

static int handle(struct http_exchange *x, void *arg)
{
	static const struct http_header plain[] = { { STR_INIT("content-type"), STR_INIT("text/plain") } };
	struct grpc_server *s = arg;
	struct err err = ERR_INIT;

	if (x->version != 20 || !str_eq(x->method, STR("POST"))) {
		http_answer(x, 405, plain, 1, STR("gRPC is spoken here: POST over HTTP/2\n"));
		return 0;
	}
	if (!str_starts(http_request_header(x, STR("content-type")), STR("application/grpc"))) {
		http_answer(x, 415, plain, 1, STR("gRPC is spoken here: application/grpc\n"));
		return 0;
	}
	struct grpc_server_call *c = ARENA_NEW(x->arena, struct grpc_server_call);
	*c = (struct grpc_server_call){ .source = { .fill = fill, .stop = stop, .trailers = trailers }, .x = x,
					.fiber = fiber_self(), .queue = BUF_INIT(ANSWER_MAX),
					.message = BUF_INIT(STATUS_TEXT_MAX) };
	fiber_cond_init(&c->drained, "the reader of a gRPC stream");
	int r = call(s, c, &err);
	if (r == -ERR_CANCELED && !c->answering) {
		buf_done(&c->queue);
		return r;
	}
	end(c, r, &err);
	return 0;
}

/* ---- the server ---- */

struct grpc_server *grpc_server_new(const struct grpc_server_options *o)
{
	struct grpc_server *s = mem_zalloc(sizeof *s);
	struct http_server_options http = { .tls = o->tls, .handle = handle, .arg = s, .max_streams = STREAMS_MAX,
					    .idle_timeout_ms = IDLE_MS };

	s->o = *o;
	s->o.max_message = o->max_message ? o->max_message : MESSAGE_MAX;
	map_init(&s->methods);
	for (size_t i = 0; i < o->n_methods; i++)
		(void)map_put(&s->methods, o->methods[i].path, (void *)(uintptr_t)&o->methods[i]);
	if (http_server_new(&http, &s->http, NULL) < 0)
		abort(); /* it fails only without a handler */
	return s;
}

int grpc_server_listen(struct grpc_server *s, const char *address, struct err *err)
{
	str text = str_of(address);
	int64_t port;

	if (str_starts(text, STR("unix:"))) {
		/* unix:///path and unix:/path are the same. */
		const char *path = address + strlen("unix:");
		CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
		buf_addf(&b, "unix:%s", str_starts(str_of(path), STR("//")) ? path + 2 : path);
		return http_server_listen(s->http, b.p, 0, NULL, err);
	}
	ptrdiff_t colon = str_rchr(text, ':');
	if (colon < 0 || !str_to_i64(str_skip(text, (size_t)colon + 1), &port) || port < 0 || port > UINT16_MAX)
		return err_set(err, ERR_INVALID, "%s is neither unix:/path nor host:port", address);
	CLEANUP(buf_done) struct buf host = BUF_INIT(256);
	buf_add(&host, str_head(text, (size_t)colon));
	return http_server_listen(s->http, host.p ? host.p : "", (uint16_t)port, NULL, err);
}

int grpc_server_run(struct grpc_server *s, int64_t grace_ms, struct err *err)
{
	return http_server_run(s->http, grace_ms, err);
}

void grpc_server_free(struct grpc_server *s)
{
	if (!s)
		return;
	http_server_free(s->http);
	map_done(&s->methods);
	free(s);
}
