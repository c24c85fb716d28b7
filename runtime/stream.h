/*
 * stream: exec, attach and port-forward. CRI answers those calls with a URL; whoever opens it (the API server, by way of the kubelet)
 * speaks WebSocket or SPDY there. A URL holds a random token, is good for one use, and for a minute.
 */
#ifndef C8S_RUNTIME_STREAM_H
#define C8S_RUNTIME_STREAM_H

#include "runtime/container.h"

struct stream_server;

/* Listens at runtime->o.stream_address and stream_port. */
int stream_server_new(struct runtime *r, struct stream_server **ret, struct err *err);
/* (suspends, until canceled) */
int stream_server_run(struct stream_server *s, struct err *err);
void stream_server_free(struct stream_server *s); /* NULL is fine */

enum stream_kind { STREAM_EXEC, STREAM_ATTACH, STREAM_PORT_FORWARD };

struct stream_request {
	enum stream_kind kind;
	str id;                          /* of the container; of the sandbox for port-forward */
	struct val args;                 /* exec: list of strings */
	struct val ports;                /* port-forward: list of numbers */
	bool terminal, in, out, err;
};

/* The URL, in the arena. -ERR_TOO_MANY_REQUESTS when too many were asked for and not used. */
int stream_url(struct stream_server *s, const struct stream_request *q, struct arena *a, str *ret_url, struct err *err);

#endif
