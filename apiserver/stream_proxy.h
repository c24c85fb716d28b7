/*
 * Connections that become something else: exec, attach and port-forward, and upgrades through the proxies. The request is
 * passed on to the other server; when both sides agree, bytes go both ways until one side ends.
 */
#ifndef C8S_APISERVER_STREAM_PROXY_H
#define C8S_APISERVER_STREAM_PROXY_H

#include "apiserver/request.h"
#include "net/http_client.h"

/* Where a request is passed on to. */
struct proxy_target {
	struct http_client *client;
	str url;
};

/* Why a server could not be reached, without the request that failed: dial tcp 10.0.0.1:80: connect: connection refused */
str proxy_reason(const struct err *err);
/* Does the request ask for its connection to be upgraded? */
bool proxy_is_upgrade(const struct request *q);
/*
 * The headers to pass on: all but credentials and what belongs to the connection; an upgrade keeps what it needs. With
 * X-Forwarded-For, and room for `more` others.
 */
struct http_header *proxy_request_headers(struct request *q, bool upgrade, size_t more, size_t *ret_n);
/* The headers of a response to pass back: all but what belongs to the connection. */
struct http_header *proxy_response_headers(struct request *q, const struct http1_head *head, size_t more, size_t *ret_n);

/* (suspends, until it ends) Passes an upgrade request on as it is. A refusal is passed back. */
int proxy_upgrade(struct request *q, const struct proxy_target *target, struct err *err);

/* Does the client want port-forwarding in WebSocket messages? */
bool proxy_is_tunnel(const struct request *q);
/* (suspends, until it ends) SPDY with the other server, whose bytes the client gets and gives in WebSocket messages. */
int proxy_tunnel(struct request *q, const struct proxy_target *target, struct err *err);

/* What of a container's streams is wanted. */
struct translate_streams {
	bool in, out, err, tty;
};

/* Does the client want a container's streams as channels of a WebSocket (v5.channel.k8s.io)? */
bool translate_is_wanted(const struct request *q);
/* (suspends, until it ends) SPDY streams with the kubelet, channels of a WebSocket with the client: stream_translate.c. */
int translate_handle(struct request *q, const struct proxy_target *target, const struct translate_streams *want,
		     struct err *err);

#endif
