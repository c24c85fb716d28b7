/*
 * gRPC client: a channel to one of several endpoints of a service. Messages are bytes; protobuf is done above. All calls of
 * a channel share one HTTP/2 connection, however many fibers make them.
 *
 *	struct grpc_message *answer;
 *	r = grpc_call(channel, STR("/etcdserverpb.KV/Range"), GRPC_IDEMPOTENT, request, &answer, NULL, err);
 *
 * Endpoints are used one at a time: the connection stays where it is until it breaks or grpc_channel_move says that the
 * other end is of no use; then the next endpoint is tried, at once for a first round over all and with growing pauses
 * after that. A peer that is there but does not react is found out by pings.
 *
 * A channel belongs to the loop of the thread that made it. Calls marked (suspends) honour cancel and deadlines, and tell
 * the other end the deadline.
 *
 * Errors: a status that the peer answered with keeps its text and gets our code (Unavailable gives -ERR_UNAVAILABLE,
 * NotFound -ERR_NOT_FOUND, ...; see grpc_frame.c). Errors of the way there:
 * -ERR_UNAVAILABLE: the request certainly was not handled (no endpoint could be reached); -ERR_TIMEOUT: it is not known
 * whether it was (the connection broke, or the deadline passed, after it had been sent).
 */
#ifndef C8S_NET_GRPC_H
#define C8S_NET_GRPC_H

#include "base/err.h"
#include "base/list.h"
#include "net/http.h"
#include "net/tls.h"

enum grpc_status {
	GRPC_OK,
	GRPC_CANCELLED,
	GRPC_UNKNOWN,
	GRPC_INVALID_ARGUMENT,
	GRPC_DEADLINE_EXCEEDED,
	GRPC_NOT_FOUND,
	GRPC_ALREADY_EXISTS,
	GRPC_PERMISSION_DENIED,
	GRPC_RESOURCE_EXHAUSTED,
	GRPC_FAILED_PRECONDITION,
	GRPC_ABORTED,
	GRPC_OUT_OF_RANGE,
	GRPC_UNIMPLEMENTED,
	GRPC_INTERNAL,
	GRPC_UNAVAILABLE,
	GRPC_DATA_LOSS,
	GRPC_UNAUTHENTICATED,
};

/* As messages name it: "NotFound". */
const char *grpc_status_name(int status);
/* The status for an error of ours: what a peer written in Go would answer with. */
int grpc_status_of_err(enum err_code code);

/* ---- channels ---- */

struct grpc_channel;

struct grpc_options {
	/* "http://host:port", "https://host:port", "unix:/path" or "unix:///path" each; NULL-ended; copied. */
	const char *const *endpoints;
	struct tls_context *tls;           /* for https; offers ALPN "h2"; must outlive the channel */
	const struct http_header *metadata; /* sent with every call; copied */
	size_t n_metadata;
	size_t max_message;                /* bytes of a message that is taken; 0: 4 MiB, as gRPC has it */
	int64_t connect_timeout_ms;        /* to one endpoint, until it speaks HTTP/2; 0: 2 s */
};

/* Connects at the first call. -ERR_BAD_REQUEST for an endpoint that is none of the above. */
int grpc_channel_new(const struct grpc_options *o, struct grpc_channel **ret, struct err *err);
/* (suspends) No call may be under way, and streams must have been freed. Takes NULL. */
void grpc_channel_free(struct grpc_channel *c);
void grpc_channel_freep(struct grpc_channel **c);

/* The endpoint in use (or last in use), as it was given. */
str grpc_channel_endpoint(const struct grpc_channel *c);
/* Counts connections that were made: to see whether a call was on the same one as another. */
uint64_t grpc_channel_generation(const struct grpc_channel *c);
/*
 * New calls go to the next endpoint, unless the connection is not any more that of `generation`; those at work on the
 * present one go on. With a single endpoint nothing happens.
 */
void grpc_channel_move(struct grpc_channel *c, uint64_t generation);

/* ---- messages ---- */

struct grpc_message {
	struct list link;                  /* the channel's while it holds the message; free for the owner after that */
	size_t n;
	char bytes[];
};

void grpc_message_free(struct grpc_message *m); /* NULL is fine */
void grpc_message_freep(struct grpc_message **m);
static inline str grpc_message_str(const struct grpc_message *m) { return m ? str_span(m->bytes, m->n) : STR_NONE; }

/* ---- unary calls ---- */

enum grpc_flags {
	/* The call may be made again on another connection when it is not known whether it was handled. */
	GRPC_IDEMPOTENT = 1 << 0,
};

/*
 * (suspends) One request, one answer, which the caller frees. A call that certainly was not handled is made again
 * elsewhere, until each endpoint has failed. *ret_status (may be NULL) is the enum grpc_status that the peer answered with,
 * or -1 when none came: -ERR_UNAVAILABLE with -1 means that nobody handled the request.
 */
int grpc_call(struct grpc_channel *c, str path, unsigned flags, str request, struct grpc_message **ret_response,
	      int *ret_status, struct err *err);

/* ---- streams ---- */

struct grpc_stream;

/*
 * (suspends) Opens a stream in both directions once there is a connection. It ends with the connection; the deadline in
 * force is for opening it only.
 */
int grpc_stream_open(struct grpc_channel *c, str path, struct grpc_stream **ret, struct err *err);
/* (suspends, while much is waiting to be sent) Copies the message. -ERR_GONE when the stream has ended: recv says why. */
int grpc_stream_send(struct grpc_stream *s, str message, struct err *err);
/* The same without waiting, also for callbacks: false when much is waiting or the stream has ended. */
bool grpc_stream_try_send(struct grpc_stream *s, str message);
/*
 * (suspends) 1 and a message that the caller frees; 0 when the peer has ended the stream in order; an error when it ended
 * it otherwise or the connection broke (-ERR_UNAVAILABLE). Messages that are not received are not asked for: beyond a
 * window the peer has to wait.
 */
int grpc_stream_recv(struct grpc_stream *s, struct grpc_message **ret_message, struct err *err);
/* No more messages will be sent. */
void grpc_stream_half_close(struct grpc_stream *s);
/* The generation of the connection that it is on. */
uint64_t grpc_stream_generation(const struct grpc_stream *s);
/* Cancels the stream unless it has ended. Nobody may be waiting in it. Takes NULL. */
void grpc_stream_free(struct grpc_stream *s);

#endif
