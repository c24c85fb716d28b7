/*
 * SPDY/3.1 sessions for fibers, as moby/spdystream speaks it: what kubectl before 1.30, API servers and kubelets carry exec,
 * attach and port-forward over, after an HTTP upgrade. Streams have headers and bytes in both directions, each of which
 * is closed by itself. As there, windows are neither kept nor announced: a stream whose reader is slow holds up the
 * session once its queue is full, so all streams of a session are to be read, each by a fiber of its own where need be.
 *
 * A session belongs to the loop of the thread that made it and has one fiber that reads. Streams may be used by any
 * fiber of that loop, one reading and any number writing.
 */
#ifndef C8S_NET_SPDY_H
#define C8S_NET_SPDY_H

#include "net/http.h"
#include "net/spdy_frame.h"

struct spdy;
struct spdy_stream;

struct spdy_options {
	bool client;                /* opened the connection: numbers its streams 1, 3, 5 */
	size_t queue_bytes;         /* that wait in a stream to be read; 0: 256 KiB */
	unsigned max_streams;       /* of the other side at a time; beyond it they are refused; 0: 1,000 */
	int64_t idle_timeout_ms;    /* no frame in either direction for so long ends the session; 0: never */
};

/* Takes the stream over, also on failure (when no fiber could be made). */
int spdy_new(struct stream *s, const struct spdy_options *o, struct spdy **ret_session, struct err *err);
/*
 * (suspends) Resets the streams that are open, says goodbye, waits for the other side to end too (a second at most), and
 * closes. Streams not yet freed stay valid to be freed; all else with them fails. Takes NULL.
 */
void spdy_free(struct spdy *s);
void spdy_freep(struct spdy **s);

/* (suspends) The next stream that the other side opened: 1; 0 when there will be no more. To be replied to, or reset. */
int spdy_accept(struct spdy *s, struct spdy_stream **ret_stream, struct err *err);
/*
 * (suspends) Opens a stream and waits until it was replied to. -ERR_FORBIDDEN when the other side reset it instead,
 * -ERR_GONE when the session has ended or is ending.
 */
int spdy_open(struct spdy *s, const struct http_header *headers, size_t n, struct spdy_stream **ret_stream, struct err *err);
/* (suspends) Waits for an echo. */
int spdy_ping(struct spdy *s, struct err *err);
/* (suspends) Waits until the other side has ended the session or the connection broke. */
int spdy_wait(struct spdy *s, struct err *err);
/* True from then on. */
bool spdy_ended(const struct spdy *s);

/* ---- streams ---- */

/* (suspends) Resets a direction that is still open. Takes NULL. */
void spdy_stream_free(struct spdy_stream *st);
void spdy_stream_freep(struct spdy_stream **st);

uint32_t spdy_stream_id(const struct spdy_stream *st);
/* What it was opened with, with names in lower case; the first value of a name (n == 0 and p == NULL: none). */
str spdy_stream_header(const struct spdy_stream *st, str name);

/* (suspends) Accepts a stream that the other side opened. Once; headers may be none. */
int spdy_stream_reply(struct spdy_stream *st, const struct http_header *headers, size_t n, struct err *err);
/*
 * (suspends) Waits for at least one byte: the number of bytes; 0 at the end, which is also how a reset or the end of the
 * session reads (as with spdystream, where it is the usual end). -ERR_GONE when the connection broke.
 */
ssize_t spdy_stream_read(struct spdy_stream *st, void *p, size_t n, struct err *err);
/* (suspends) Writes all. -ERR_GONE when the stream was reset or closed for writing, or the session has ended. */
int spdy_stream_write(struct spdy_stream *st, str data, struct err *err);
/* (suspends) No more writes: the other side reads an end. */
int spdy_stream_close_write(struct spdy_stream *st, struct err *err);
/* (suspends) Ends both directions at once, with SPDY_CANCEL or, to refuse it, SPDY_REFUSED_STREAM. */
int spdy_stream_reset(struct spdy_stream *st, enum spdy_status status, struct err *err);
/* Whether the other side reset it, and why: 0 when not. */
uint32_t spdy_stream_reset_status(const struct spdy_stream *st);

/* ---- the upgrade ---- */

/* Does this request ask for SPDY/3.1? Answer it with http_upgrade, connection: Upgrade, upgrade: SPDY/3.1. */
bool spdy_is_upgrade(const struct http_header *headers, size_t n);
/*
 * The first protocol of the client (header x-stream-protocol-version, which may come several times or as a list) that is
 * in the NULL-ended list, as a slice of the header; n == 0: none of them. *ret_offered: whether it named any.
 */
str spdy_choose_protocol(const struct http_header *headers, size_t n, const char *const *supported, bool *ret_offered);

struct http_client;
struct http_request;

/*
 * (suspends) Opens a session to the request's http(s) URL with its headers, offering the NULL-ended protocols.
 * *ret_protocol (may be NULL) is the one that was chosen, or NULL. -ERR_BAD_REQUEST "unable to upgrade connection: ..."
 * when the server does not want to, with its status in *ret_status (0 before there was one; may be NULL).
 */
int spdy_dial(struct http_client *c, const struct http_request *q, const char *const *protocols, const struct spdy_options *o,
	      struct spdy **ret_session, const char **ret_protocol, int *ret_status, struct err *err);

#endif
