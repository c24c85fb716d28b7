/*
 * What the parts of the HTTP server share.
 *
 *	http_server.c    listening, accepting, stopping
 *	http_conn.c      one connection: its bytes in and out, its timeouts, its end
 *	http_exchange.c  one request and its answer; what handlers call
 *	http1_server.c   the protocols: state machines without I/O,
 *	http2_server.c   fed with what was read, asked for what to write
 *
 * Who runs when: every connection has one fiber, which reads. Writing is done by one fiber of the server for all
 * connections that have something to say: it comes after all handlers that could run, so that their answers leave
 * in few large pieces; a connection whose socket is full gets a fiber of its own until the socket has taken all. Reading
 * and writing go through two buffers of the server, so an idle connection costs a fiber and little else.
 */
#ifndef C8S_NET_HTTP_PRIV_H
#define C8S_NET_HTTP_PRIV_H

#include "base/buf.h"
#include "base/fiber.h"
#include "base/list.h"
#include "base/loop.h"
#include "net/http.h"
#include "net/stream_priv.h"

enum {
	HTTP_IN_SIZE = 64 * 1024,
	HTTP_OUT_SIZE = 128 * 1024,
	HTTP_DATE_SIZE = 32,
	HTTP_HEADERS_MAX = 1024,         /* of one request */
	HTTP_STREAM_WINDOW = 1 << 20,    /* bytes of a body that wait for their handler */
};

struct http_conn;
struct http_protocol;

/* What http_source.sink points to: who is to be told that there is more. */
struct http_sink {
	void (*wake)(struct http_sink *sink);
};

/* ---- exchanges ---- */

/*
 * It lives until two things have happened, in any order: the handler has returned (handled), and the protocol is through
 * with it (closed): the answer was sent, or nobody wants it any more.
 */
struct exchange {
	struct http_exchange pub;
	struct arena arena;
	struct http_conn *conn;
	struct list link;                /* in conn->exchanges, or the server's free ones */
	struct fiber *fiber;             /* that runs the handler */
	bool started, handled, closed;

	/* The request. */
	struct http_header *headers;     /* pub.headers while it grows */
	size_t cap_headers, header_bytes;
	int refused;                     /* the status that answers it in place of the handler; 0: none */
	bool expect_continue;

	/* Its body. */
	struct buf in;
	size_t in_at;                    /* in.p[in_at..in.n] waits for the handler */
	size_t drained;                  /* bytes that came when the handler had returned */
	bool in_end, in_wanted;
	enum err_code in_error;
	struct fiber_cond in_cond;

	/* The answer. */
	bool answered, head_only;
	int status;
	str head, body;                  /* head: HTTP/1 only */
	struct http_source *source;
	struct http_sink sink;
	struct http_header *trailers;    /* of a source that has ended */
	size_t n_trailers;
	int64_t left;                    /* bytes of the source still to come; -1: not known */
	bool later;                      /* the source said so */
	struct list woken;               /* in conn->woken */
	int64_t progress_ns;             /* when it last could send something or had nothing to send */
	int32_t stream_id;               /* HTTP/2 */
};

/* A new one on c; counted there. */
struct exchange *exchange_new(struct http_conn *c) NONNULL_RESULT;
/* -ERR_TOO_LARGE when the limits are exceeded. The bytes are copied. */
int exchange_add_header(struct exchange *x, str name, str value);
/* The header is complete: runs the handler (or refuses). */
void exchange_start(struct exchange *x);
/* For the protocol: bytes of the body, its end, or that it is broken. */
void exchange_body(struct exchange *x, str data);
void exchange_body_end(struct exchange *x);
void exchange_body_error(struct exchange *x, enum err_code code);
static inline size_t exchange_unread(const struct exchange *x) { return x->in.n - x->in_at; }
/*
 * Up to n bytes of the answer's body at p: how many, with *ret_end set when they are the last; HTTP_LATER; or another
 * negative number when the source broke.
 */
ssize_t exchange_fill(struct exchange *x, char *p, size_t n, bool *ret_end);
/* The protocol is through with it. x may be gone afterwards. */
void exchange_close(struct exchange *x);
/* Answers without a handler: the status and its text. */
void exchange_refuse(struct exchange *x, int status);
/* May an answer with this status have a body? */
static inline bool http_status_has_body(int status) { return status >= 200 && status != 204 && status != 304; }
void exchange_free_all(struct http_server *s);
/* (suspends) Until the fibers that ran handlers are gone. */
void exchange_end_workers(struct http_server *s);

/* ---- protocols ---- */

/* All calls are made between switches of fibers and must not suspend. */
struct http_protocol {
	unsigned version;
	void (*open)(struct http_conn *c);
	/* Takes all of in. -ERR_x: this connection has come to its end; what pull still has is sent. */
	int (*feed)(struct http_conn *c, str in, struct err *err);
	/* Should more be read now? */
	bool (*hungry)(const struct http_conn *c);
	/* Puts up to n (HTTP_OUT_SIZE) bytes to be sent at p: how many, 0 when there is nothing now; -ERR_x at the end. */
	ssize_t (*pull)(struct http_conn *c, char *p, size_t n, struct err *err);
	/* True when the connection can be closed: nothing is at work, nothing to send, and nothing more will be taken. */
	bool (*finished)(const struct http_conn *c);
	/* x->status, body or source are set: the answer begins. */
	void (*answer)(struct exchange *x, const struct http_header *headers, size_t n);
	/* There will be no answer, or not all of it. */
	void (*abandon)(struct exchange *x);
	/* The handler waits for the body, and: it has taken n bytes. */
	void (*want_body)(struct exchange *x);
	void (*took_body)(struct exchange *x, size_t n);
	/* The handler has returned. */
	void (*handled)(struct exchange *x);
	/* No new requests. */
	void (*stop)(struct http_conn *c);
	/* A header has taken too long; the connection ends. */
	void (*late)(struct http_conn *c);
	/* Gives up the answers of which the other side has taken nothing since then. */
	void (*expire)(struct http_conn *c, int64_t before_ns);
	/* Frees the state; the exchanges have been closed. */
	void (*done)(struct http_conn *c);
};

extern const struct http_protocol http1_protocol, http2_protocol;

/* What a client of HTTP/2 says first. */
#define HTTP2_PREFACE STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

/* ---- connections ---- */

struct http_conn {
	struct http_server *server;
	struct list link;                /* in server->conns */
	struct list idle;                /* in server->idle, the longest idle first */
	struct list dirty;               /* in server->dirty or server->woken */
	bool urgent;                     /* in server->dirty */
	struct stream *stream;
	struct http_peer peer;
	const struct http_protocol *protocol;
	void *state;                     /* the protocol's */
	struct list exchanges, woken;
	unsigned n_exchanges;
	struct fiber *reader;
	struct fiber *writer;            /* waits for the socket, while it is full */
	struct fiber_cond changed;       /* hungry again, an exchange is gone, the writer has ended */
	bool ending;                     /* the reader is to leave, or has left */
	bool broken;                     /* nothing can be sent any more */
	bool abuse;
	bool linger;                     /* the other side may still be sending: do not reset what it has not read yet */
	bool upgraded;                   /* the stream belongs to a handler */
	bool reader_left;
	bool quiet;                      /* the timer runs for the end of idleness only */
	struct loop_timer timer;
	int64_t idle_ns;                 /* since when there is no exchange */
	int64_t head_ns;                 /* since when a header is being received; 0: none is */
	int fd;                          /* before there is a stream */
};

/* Accepted: takes fd over. */
void conn_start(struct http_server *s, int fd);
/* There is something to send; conn_woken: only more of long answers, which wait behind everything else. */
void conn_dirty(struct http_conn *c);
void conn_woken(struct http_conn *c);
/* It is to end now, whatever is at work. */
void conn_end(struct http_conn *c);
/* The peer does things that only cost. */
void conn_abuse(struct http_conn *c);
/* The number of exchanges changed, or whether input is wanted. */
void conn_changed(struct http_conn *c);
void conn_set_idle(struct http_conn *c, bool idle);
/* The fiber that writes for all. */
int conn_flush_all(void *server);

/* ---- the server ---- */

struct http_server {
	struct http_server_options o;
	struct list conns, idle, dirty, woken, free_exchanges;
	unsigned n_free;
	struct list parked;              /* fibers that wait for a request */
	unsigned n_parked, n_workers;
	struct fiber_cond dirtied, emptied;
	int *listeners;
	size_t n_listeners;
	bool stopping, broken_off;       /* no new requests; not even the end of those at work */
	char *in, *out;                  /* HTTP_IN_SIZE, HTTP_OUT_SIZE */
	int64_t date_s;
	char date[HTTP_DATE_SIZE];
	struct http_server_stats stats;
};

/* A number in digits, in memory of the arena. */
str http_digits(struct arena *a, uint64_t n);
/* "Sun, 15 Nov 2026 09:04:50 GMT" */
str server_date(struct http_server *s);

#endif
