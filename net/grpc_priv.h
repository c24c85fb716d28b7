/* What the two halves of the gRPC client share: channels (grpc.c) and calls (grpc_call.c). */
#ifndef C8S_NET_GRPC_PRIV_H
#define C8S_NET_GRPC_PRIV_H

#include "base/arena.h"
#include "base/fiber.h"
#include "net/grpc.h"
#include "net/http2_client.h"

struct grpc_endpoint {
	str text;                 /* as given */
	const char *host;         /* for stream_dial */
	uint16_t port;
	bool tls;
	str authority;
};

struct grpc_channel {
	struct arena arena;       /* of the endpoints and the metadata */
	struct grpc_endpoint *endpoints;
	size_t n_endpoints;
	size_t at;                /* the endpoint in use, or to be tried next */
	struct tls_context *tls;
	struct http_header *metadata;
	size_t n_metadata;
	size_t max_message;
	int64_t connect_timeout_ms, ping_interval_ms;

	struct http2_client *client; /* takes new calls; NULL: there is none */
	uint64_t generation;      /* of client */
	bool connecting;          /* a fiber is at it */
	unsigned waiting;         /* calls that need a connection */
	uint64_t failures;        /* to connect, in all, */
	unsigned in_a_row;        /* and since the last success */
	struct err last;          /* of them */
	struct fiber_cond changed;
	struct fiber_group connections;
};

/*
 * (suspends) A connection that takes new calls. -ERR_UNAVAILABLE when attempts to connect have failed up to this number
 * (channel->failures + channel->n_endpoints when the call began: everyone was asked).
 */
int grpc_channel_client(struct grpc_channel *c, uint64_t max_failures, struct http2_client **ret, struct err *err);

#endif
