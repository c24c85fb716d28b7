/*
 * What the files of streams share.
 *
 *	stream.c           the server, its tokens        stream_remote.c    exec and attach as WebSocket or SPDY carry them
 *	stream_process.c   exec and attach               stream_forward.c   port-forward         stream_netns.c   sockets in pods
 */
#ifndef C8S_RUNTIME_STREAM_PRIV_H
#define C8S_RUNTIME_STREAM_PRIV_H

#include "net/spdy.h"
#include "net/websocket.h"
#include "runtime/stream.h"

enum { STREAM_COPY = 32 << 10, STREAM_CLOSE_MS = 1000, STREAM_CREATION_MS = 30000, STREAM_IDLE_MS = 4 * 3600 * 1000 };

/* A plain refusal, as Go's http.Error writes it. */
void stream_refuse(struct http_exchange *x, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/*
 * (suspends) Answers a SPDY upgrade: 1 with the session and the chosen protocol (a slice of the request); 0: it was refused, and told
 * so; < 0: nobody is there any more.
 */
int stream_accept_spdy(struct http_exchange *x, const char *const *protocols, struct spdy **ret, str *ret_protocol, struct err *err);
/* The same for WebSocket; a client that names no protocol gets none. */
int stream_accept_ws(struct http_exchange *x, const char *const *protocols, struct ws **ret, str *ret_protocol, struct err *err);

/* ---- stream_remote.c: the side of the client ---- */

/* Numbers of WebSocket channels. */
enum remote_channel { REMOTE_IN, REMOTE_OUT, REMOTE_ERR, REMOTE_STATUS, REMOTE_RESIZE, REMOTE_CHANNELS };

/* What comes from the client, as it comes. They may suspend, which holds the client back. */
struct remote_taker {
	void (*input)(void *arg, str data);
	void (*input_end)(void *arg);
	void (*resize)(void *arg, unsigned width, unsigned height);
};

struct remote {
	bool in, out, err, terminal;         /* what is wanted */
	bool json;                           /* how it went is told as a Status; else as plain text, and only when it went wrong */
	struct ws *ws;                       /* either of them */
	bool base64, closes;                 /* messages are text; the client can close channels (v5) */
	struct spdy *session;
	struct spdy_stream *streams[REMOTE_CHANNELS];
	const struct remote_taker *taker;
	void *arg;
	struct buf size;                     /* of the terminal: what is not complete yet */
	bool gone;                           /* the client is */
	struct fiber_cond *changed;
	struct fiber_group group;            /* who reads */
};

/* (suspends) Agrees with the client, waits for its streams. 1: open; 0: refused, and told so; < 0: it went away. */
int remote_open(struct remote *r, struct http_exchange *x, struct err *err);
/* Begins to take what comes; changed is woken when the client goes. */
int remote_start(struct remote *r, const struct remote_taker *taker, void *arg, struct fiber_cond *changed, struct err *err);
/* (suspends) To a channel that is not wanted: dropped. */
int remote_write(struct remote *r, enum remote_channel channel, str data, struct err *err);
/* (suspends) The end: how it went, a metav1.Status. */
void remote_finish(struct remote *r, struct val status);
/* (suspends) Also right for one that was zeroed. */
void remote_done(struct remote *r);

/* ---- the rest ---- */

/* (suspends, until it ends) */
int stream_exec(struct runtime *r, struct http_exchange *x, const struct stream_request *q, struct err *err);
int stream_attach(struct runtime *r, struct http_exchange *x, const struct stream_request *q, struct err *err);
int stream_forward(struct runtime *r, struct http_exchange *x, const struct stream_request *q, struct err *err);

/* (suspends) A connection to a port of the loopback device in a network namespace (NULL: ours); IPv4, else IPv6. A descriptor. */
int stream_dial_netns(const char *netns, uint16_t port, struct err *err);

#endif
