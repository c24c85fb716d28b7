/*
 * The parts that stream.h is made of, for servers that feed many connections from few buffers: nothing here suspends but
 * stream_wait.
 */
#ifndef C8S_NET_STREAM_PRIV_H
#define C8S_NET_STREAM_PRIV_H

#include "net/stream.h"

enum { STREAM_WAIT = -10000 };

/* What is there: the number of bytes, 0 at the end, STREAM_WAIT when nothing is there now, or the error. */
ssize_t stream_try_read(struct stream *s, void *p, size_t n, struct err *err);
/* Queues bytes (encrypted) for stream_send. What is queued is not bounded here: send before putting more. */
int stream_put(struct stream *s, const void *p, size_t n, struct err *err);
/* Sends of what is queued as much as the socket takes: 1 when nothing is left, 0 when it is full. */
int stream_send(struct stream *s, struct err *err);
/* (suspends) Until the descriptor has one of these events, as poll(2) has them. */
int stream_wait(struct stream *s, short events, struct err *err);
/* Frees a stream in the clear of which all that was read was used; its descriptor, which is the caller's. */
int stream_release(struct stream *s);
/* Gives memory back that an idle stream does not need. */
void stream_trim(struct stream *s);
/* Is it open, with nothing to be read? When not, it is good for nothing any more: a byte may have been lost. */
bool stream_is_quiet(struct stream *s);

/* "10.0.0.7:41312", "[::1]:80", "@" for a local socket. */
struct sockaddr_storage;
void stream_format_address(const struct sockaddr_storage *addr, char *p, size_t n);

#endif
