/*
 * The client's end of one HTTP/2 connection, shared by any number of calls. net/grpc.h is built on it, and what client/ has
 * many of. One fiber runs the connection (http2_client_run); calls are driven by events, which are callbacks and must not
 * suspend. All belongs to one loop.
 */
#ifndef C8S_NET_HTTP2_CLIENT_H
#define C8S_NET_HTTP2_CLIENT_H

#include "base/fiber.h"
#include "net/http.h"
#include "net/stream.h"

struct http2_client;
struct http2_call;

/* How a call ended. */
enum http2_end {
	HTTP2_COMPLETE, /* the peer ended it in order */
	HTTP2_RESET,    /* the peer reset it, or broke the rules in it */
	HTTP2_REFUSED,  /* the peer certainly did not handle it, and it may be made again on another connection */
	HTTP2_BROKEN,   /* the connection ended */
};

struct http2_call_events {
	void (*header)(struct http2_call *call, str name, str value); /* of headers and trailers */
	void (*data)(struct http2_call *call, str bytes);
	/*
	 * Up to n bytes of the request's body at p: how many; 0 when there is nothing now (http2_call_resume says when),
	 * or, with *ret_end set, at its end.
	 */
	size_t (*fill)(struct http2_call *call, char *p, size_t n, bool *ret_end);
	/* The last event; the call has left the connection. code is HTTP/2's; why: of HTTP2_BROKEN, else NULL. */
	void (*end)(struct http2_call *call, enum http2_end how, uint32_t code, const struct err *why);
};

/* One request and its answer; embedded in a struct of the caller's, zeroed before http2_call_start. */
struct http2_call {
	const struct http2_call_events *events;
	bool urgent;              /* an answer is expected soon: pings find out early that the peer does not react */
	struct http2_client *client; /* NULL when it is on no connection */
	struct list link;
	int32_t id;
	bool sent;                /* all of the request was handed to the connection: the peer may have got it */
	bool held;                /* the peer gets no new credit for data of this call */
	size_t owed;              /* credit that was kept back */
};

/* Begins a call; false when the connection takes no new ones. The headers are copied. */
bool http2_call_start(struct http2_client *c, struct http2_call *call, const struct http_header *headers, size_t n);
/* There is more of the body. */
void http2_call_resume(struct http2_call *call);
/* Keeps back the peer's credit, or gives it all: how a reader that is slow makes the peer wait. */
void http2_call_hold(struct http2_call *call, bool hold);
/* Ends it without further events, unless it has ended. */
void http2_call_cancel(struct http2_call *call);

struct http2_client_options {
	/* Called when the peer has spoken HTTP/2, and when the connection takes no new calls any more. */
	void (*changed)(struct http2_client *c, void *arg);
	void *arg;
	int64_t ready_timeout_ms;  /* for the peer's first words */
	int64_t ping_interval_ms;  /* no two pings within so long: servers close the connections of those who ping more */
};

/* Takes the stream over. */
struct http2_client *http2_client_new(struct stream *s, const struct http2_client_options *o) NONNULL_RESULT;
/* (suspends) Serves the connection until it ends, and ends all calls. Always an error, which says why it ended. */
int http2_client_run(struct http2_client *c, struct err *err);
/* (suspends) After http2_client_run. */
void http2_client_free(struct http2_client *c);

/* Takes no new calls: the peer says goodbye, or http2_client_drain was called. */
bool http2_client_draining(const struct http2_client *c);
/* The peer found that there were too many pings. */
bool http2_client_pinged_too_much(const struct http2_client *c);
/* No new calls; the connection ends with the last of those that are at work. */
void http2_client_drain(struct http2_client *c);
/* Ends the connection now. */
void http2_client_close(struct http2_client *c, enum err_code code, const char *why);

#endif
