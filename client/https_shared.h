/*
 * https_shared: watches that share HTTP/2 connections, for those who have very many of them, each mostly idle: a connection of its own
 * costs a watch some hundred kilobytes here and at the server. A server that does not speak HTTP/2, or answers with anything but
 * 200, is asked again by HTTP/1.1, which knows what to make of it.
 */
#ifndef C8S_CLIENT_HTTPS_SHARED_H
#define C8S_CLIENT_HTTPS_SHARED_H

#include "net/http.h"
#include "net/url.h"

struct shared;
struct shared_call;
struct tls_context;

/* The connections of one session; tls, which is taken over, offers h2. */
struct shared *shared_new(struct tls_context *tls) NONNULL_RESULT;
/* (suspends) There must be no calls. NULL is fine. */
void shared_free(struct shared *s);
/* The session is over: who waits for a connection is to try by other means. */
void shared_leave(struct shared *s);

/*
 * (suspends) GET: 1 when the answer is 200 and its body can be read; 0 when this is to be tried by other means. Errors are those of
 * being canceled and of deadlines.
 */
int shared_call_open(struct shared *s, const struct url *url, const struct http_header *headers, size_t n, struct shared_call **ret,
		     struct err *err);
str shared_call_type(const struct shared_call *c); /* content-type */
/* (suspends) At least one byte, or 0 at the end. -ERR_UNAVAILABLE when the connection is gone. */
ssize_t shared_call_read(struct shared_call *c, void *p, size_t n, struct err *err);
/* A read that waits fails. */
void shared_call_abort(struct shared_call *c);
void shared_call_free(struct shared_call *c); /* NULL is fine */

#endif
