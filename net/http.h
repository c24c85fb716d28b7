/*
 * HTTP server: HTTP/1.1 and HTTP/2 on one port, chosen by ALPN (in the clear: by the client's preface). A request is
 * handled on a fiber of its own; what it answers with is either bytes or a source that is asked for more whenever the
 * connection can take more, so that a slow or idle reader costs neither a fiber nor memory.
 *
 *	static int hello(struct http_exchange *x, void *arg)
 *	{
 *		http_answer(x, 200, NULL, 0, STR("hello\n"));
 *		return 0;
 *	}
 *
 * Everything belongs to the loop of the thread that made the server.
 */
#ifndef C8S_NET_HTTP_H
#define C8S_NET_HTTP_H

#include "base/arena.h"
#include "base/err.h"
#include "net/stream.h"

struct http_header {
	str name, value; /* names are in lower case */
};

/* The value of the first header of that (lower-case) name; n == 0 and p == NULL when there is none. */
str http_header_find(const struct http_header *headers, size_t n, str name);

/* The other end of a connection, the same for all its requests. */
struct http_peer {
	str address;                  /* "10.0.0.7:41312" */
	bool tls;
	struct x509_st *certificate;  /* as shown by the client; NULL: none */
	struct stack_st_X509 *chain;  /* shown with it; NULL: none */
	long verify_result;           /* 0: it could be verified; else OpenSSL's code */
	/* For whoever handles the requests: what it learnt about this peer. memo_free is called when the connection ends. */
	void *memo;
	void (*memo_free)(void *memo);
};

/* One request and its answer. Lives until the handler has returned and the answer has ended. */
struct http_exchange {
	struct arena *arena;          /* lives as long as the exchange */
	unsigned version;             /* 10, 11 or 20 */
	str method, path, query;      /* path and query as they were sent: not decoded; query without '?' */
	str authority;                /* Host or :authority */
	const struct http_header *headers;
	size_t n_headers;
	int64_t content_length;       /* -1: not said; 0: there is no body */
	struct http_peer *peer;
};

static inline str http_request_header(const struct http_exchange *x, str name)
{
	return http_header_find(x->headers, x->n_headers, name);
}

/* ---- reading the body ---- */

/*
 * (suspends) All of the body, in memory of the exchange. -ERR_TOO_LARGE beyond max bytes (nothing more is read),
 * -ERR_BAD_REQUEST for broken framing, -ERR_GONE when the client went away.
 */
int http_read_all(struct http_exchange *x, size_t max, str *ret_body, struct err *err);
/* (suspends) The next part of it, as it comes; 0 at the end. */
ssize_t http_read(struct http_exchange *x, void *p, size_t n, struct err *err);

/* ---- answering: exactly one of these, once ---- */

/* Bytes, which are copied. content-length, date are added; the handler gives content-type and all others. */
void http_answer(struct http_exchange *x, int status, const struct http_header *headers, size_t n, str body);

/* A body that is made while it is sent. Embed it in a struct of one's own. */
struct http_source {
	/*
	 * Puts up to n bytes at p: how many; 0 at the end; HTTP_LATER when there is nothing now (http_wake will be
	 * called); any other negative number breaks the answer off. Runs as a callback: must not suspend.
	 */
	ssize_t (*fill)(struct http_source *s, char *p, size_t n);
	/* Exactly once, when the answer is complete or the client is gone; may free the memory. Must not suspend. */
	void (*stop)(struct http_source *s);
	void *sink;                   /* the server's own */
	/*
	 * May be NULL; HTTP/2 only: headers that follow the body, asked for once fill has given the end. They are copied. Must not
	 * suspend.
	 */
	size_t (*trailers)(struct http_source *s, const struct http_header **ret);
};

enum { HTTP_LATER = -1000 };

/* length: of all bytes that fill will give, or -1. A handler that gave a source may return at once. */
void http_answer_source(struct http_exchange *x, int status, const struct http_header *headers, size_t n,
			struct http_source *source, int64_t length);
/* There is more (or the end) after HTTP_LATER. From fibers and callbacks of the loop; cheap when called again. */
void http_wake(struct http_source *s);

/* A source that gives the gzip form of another one, which it then owns. level 1 to 9. */
struct http_source *http_gzip(struct http_source *inner, int level) NONNULL_RESULT;

/*
 * (suspends) HTTP/1.1 only: answers 101 with these headers and gives the connection's stream to the handler, who frees
 * it; the connection ends with it. -ERR_BAD_REQUEST on HTTP/2 or with a body pending. After any other error nobody hears
 * an answer.
 */
int http_upgrade(struct http_exchange *x, const struct http_header *headers, size_t n, struct stream **ret, struct err *err);

/* ---- the server ---- */

struct http_server;

struct http_server_options {
	struct tls_context *tls;      /* NULL: in the clear */
	/*
	 * Called on a fiber per request, once its headers are there. A client that goes away cancels the fiber, unless
	 * it has answered already. A handler that returns without an answer gets 500 (or, after -ERR_CANCELED, nothing).
	 * Requests that cannot be parsed never get here; they are answered with 400, 408, 431 or 505 and the status' text.
	 */
	int (*handle)(struct http_exchange *x, void *arg);
	void *arg;
	size_t max_header_bytes;      /* 0: 1 MiB */
	unsigned max_streams;         /* at a time per HTTP/2 connection; 0: 250 */
	unsigned max_connections;     /* 0: 10,000; beyond it the oldest idle one is closed, or the new one */
	int64_t header_timeout_ms;    /* from the first byte (or the accept) to complete headers; 0: 32 s */
	int64_t body_timeout_ms;      /* between two pieces of a body; 0: 60 s */
	int64_t idle_timeout_ms;      /* of a connection without requests; 0: 180 s */
	int64_t write_timeout_ms;     /* no byte could be sent for so long although there were some: close; 0: 60 s */
};

int http_server_new(const struct http_server_options *o, struct http_server **ret, struct err *err);
/*
 * Binds and listens; address "" or "0.0.0.0" or "::" for all. Port 0 takes a free one. May be called several times. "unix:/path"
 * is a local socket, for its owner and group; an old one there is replaced, and *ret_port stays as it is.
 */
int http_server_listen(struct http_server *s, const char *address, uint16_t port, uint16_t *ret_port, struct err *err);
/*
 * The same in two steps, which two processes may do: a descriptor that is bound and listens (who connects from then on waits to be
 * accepted); and to serve on it. It is the server's, also on error.
 */
int http_listen_tcp(const char *address, uint16_t port, struct err *err);
int http_server_take(struct http_server *s, int fd, uint16_t *ret_port, struct err *err);
/*
 * (suspends) Accepts and serves until the fiber is canceled. Then no new requests are taken (GOAWAY, Connection: close),
 * those at work get grace_ms to finish, and what is left is broken off.
 */
int http_server_run(struct http_server *s, int64_t grace_ms, struct err *err);
void http_server_free(struct http_server *s);

struct http_server_stats {
	unsigned connections;
	uint64_t accepted, requests, floods; /* floods: connections closed for abuse */
};

struct http_server_stats http_server_stats(const struct http_server *s);

#endif
