/* For tests of what is no resource: a server that serves nothing, and requests to it. */
#ifndef C8S_APISERVER_DOCUMENTS_TESTING_H
#define C8S_APISERVER_DOCUMENTS_TESTING_H

#include "apiserver/apiserver.h"
#include "apiserver/documents.h"
#include "apiserver/metrics.h"
#include "base/test.h"

struct fixture {
	struct apiserver server;
	struct apiserver *other;   /* the server to ask, when it is not the fixture's own */
	struct arena arena;
	struct http_header headers[4];
	struct http_exchange http;
	struct query_parameter query[8];
	struct request q;
	struct err err;
};

static inline void fixture_init(struct fixture *f)
{
	*f = (struct fixture){ .server = { .ready = true, .port = 6443, .options = { .advertise_address = "192.0.2.2" } } };
	kinds_init(&f->server.kinds, NULL, NULL);
	f->server.metrics = metrics_new(&f->server.kinds);
}

static inline void fixture_done(struct fixture *f)
{
	documents_free(f->server.documents);
	metrics_free(f->server.metrics);
	kinds_done(&f->server.kinds);
	arena_done(&f->arena);
}

/* A GET of the path with an Accept header (NULL: none), answered: what the handler returned. */
static inline int fixture_get(struct fixture *f, const char *path, const char *accept)
{
	size_t n = 0;
	if (accept)
		f->headers[n++] = (struct http_header){ STR("accept"), str_of(accept) };
	f->http = (struct http_exchange){ .arena = &f->arena, .headers = f->headers, .n_headers = n };
	f->q = (struct request){
		.server = f->other ? f->other : &f->server, .http = &f->http, .arena = &f->arena, .method = STR("GET"),
		.path = str_of(path),
	};
	err_clear(&f->err);
	return nonresource_handle(&f->q, &f->err);
}

/* Again with one request header more. */
static inline int fixture_again(struct fixture *f, const char *name, str value)
{
	f->headers[f->http.n_headers++] = (struct http_header){ str_of(name), value };
	f->q.answer = (struct answer){ 0 };
	return nonresource_handle(&f->q, &f->err);
}

static inline str fixture_header(const struct fixture *f, const char *name)
{
	return http_header_find(f->q.answer.headers, f->q.answer.n_headers, str_of(name));
}

#endif
