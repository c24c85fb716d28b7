/* For tests of stages: requests as a client sends them, to a server that knows its kinds and nothing more. */
#ifndef C8S_APISERVER_REQUEST_TESTING_H
#define C8S_APISERVER_REQUEST_TESTING_H

#include "apiserver/apiserver.h"
#include "apiserver/pipeline.h"
#include "apiserver/route.h"
#include "net/http_priv.h"

enum { CALL_HEADERS = 16 };

struct call {
	struct apiserver server;
	struct arena arena;
	struct http_header headers[CALL_HEADERS];
	struct exchange x;            /* with its body already there */
	struct request q;
	struct err err;
};

static inline void call_init(struct call *c)
{
	*c = (struct call){ .server.options = { .request_timeout_ms = 60000, .max_body_bytes = 3 << 20 } };
	kinds_init(&c->server.kinds, NULL, NULL);
}

static inline void call_done(struct call *c)
{
	kinds_done(&c->server.kinds);
	buf_done(&c->x.in);
	arena_done(&c->arena);
}

/* A new request; the target has a query or not. Nothing has looked at it yet. */
static inline void call_new(struct call *c, str method, str target)
{
	str path, query;
	str_cut(target, '?', &path, &query);
	buf_done(&c->x.in);
	c->x = (struct exchange){ .in = BUF_INIT(4 << 20), .in_end = true, .closed = true };
	c->x.pub = (struct http_exchange){ .arena = &c->arena, .method = method, .path = path, .query = query,
		.headers = c->headers };
	c->q = (struct request){
		.server = &c->server, .http = &c->x.pub, .arena = &c->arena, .method = method,
		.begun_wall_ns = 1700000000123456789,
	};
	err_clear(&c->err);
}

static inline void call_header(struct call *c, str name, str value)
{
	if (c->x.pub.n_headers < CALL_HEADERS)
		c->headers[c->x.pub.n_headers++] = (struct http_header){ name, value };
}

static inline void call_body(struct call *c, str body)
{
	buf_add(&c->x.in, body);
	c->x.pub.content_length = (int64_t)body.n;
}

/* A request up to the point where its endpoint is known. */
static inline int call_route(struct call *c, const char *method, const char *target)
{
	call_new(c, str_of(method), str_of(target));
	int r = stage_info(&c->q, &c->err);
	return r < 0 ? r : route(&c->q);
}

#endif
