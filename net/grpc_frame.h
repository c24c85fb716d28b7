/*
 * The pure part of gRPC, for both ends of a call: how messages are framed in the body of an HTTP/2 stream, how deadlines
 * and statuses are written in headers. Private to this folder.
 */
#ifndef C8S_NET_GRPC_FRAME_H
#define C8S_NET_GRPC_FRAME_H

#include "base/buf.h"
#include "net/grpc.h"

/* Each message has five bytes before it: 0 (not compressed) and its length. */
enum { GRPC_PREFIX = 5 };

void grpc_prefix(char out[GRPC_PREFIX], size_t length);

/* Takes messages out of the bytes of a body as they come. */
struct grpc_deframer {
	size_t max;                   /* bytes of a message */
	unsigned n_prefix;            /* bytes of the prefix that are there */
	unsigned char prefix[GRPC_PREFIX];
	size_t length, room;          /* of the message that is being read: all of it; for what there is memory */
	struct grpc_message *partial; /* n: what has come */
};

/*
 * Takes bytes off the front of *bytes: 1 with a message once one is complete, which is then the caller's to free; 0 when
 * all were taken and it is not. -ERR_TOO_LARGE for a message beyond the maximum, -ERR_INTERNAL for a compressed one.
 * Memory grows with what has come, not with what a prefix promises.
 */
int grpc_deframe(struct grpc_deframer *d, str *bytes, struct grpc_message **ret_message, struct err *err);
/* Did the body end in the middle of a message? */
static inline bool grpc_deframe_pending(const struct grpc_deframer *d) { return d->n_prefix != 0; }
void grpc_deframer_done(struct grpc_deframer *d);

/* The value of grpc-timeout for so many nanoseconds, rounded up, with a '\0'. */
enum { GRPC_TIMEOUT_TEXT = 16 };
str grpc_timeout_text(int64_t ns, char out[GRPC_TIMEOUT_TEXT]);

/* And back: nanoseconds, or -1 for what is no timeout. */
int64_t grpc_timeout_parse(str text);

/* The other way round of grpc_message_decode. */
void grpc_message_encode(struct buf *b, str text);
/* Appends the text of a grpc-message header, which is percent-encoded; what is not well encoded stays as it is. */
void grpc_message_decode(struct buf *b, str text);

/* The status code as a number; -1 for what is none. */
int grpc_status_parse(str text);
/* Our error code for a status that is not 0 (GRPC_OK). */
enum err_code grpc_status_err(int status);
/* The status that an answer without one gets from its HTTP status. */
int grpc_status_of_http(int http_status);

#endif
