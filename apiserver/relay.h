/* Answers that come from another server: passed on as they come, no faster than the client reads. */
#ifndef C8S_APISERVER_RELAY_H
#define C8S_APISERVER_RELAY_H

#include "net/http_client.h"

/*
 * (suspends, until all is passed on) Answers with this status, these headers and the rest of the call's body; length is
 * that of the body, or -1. Ends early when the client goes away. What the call fails with breaks the answer off.
 */
void relay_body(struct http_exchange *x, int status, const struct http_header *headers, size_t n, struct http_call *call,
		int64_t length);

#endif
