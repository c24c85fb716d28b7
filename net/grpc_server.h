/*
 * gRPC server: methods by their path, messages are bytes. On a unix socket in the clear (as CRI has it) or with TLS. A call is a fiber.
 */
#ifndef C8S_NET_GRPC_SERVER_H
#define C8S_NET_GRPC_SERVER_H

#include "net/grpc.h"

struct grpc_server;
struct grpc_server_call;

/*
 * (on the call's fiber; suspends) request: the message (unary and server-streaming). Answers by grpc_reply, or several times for a
 * stream; returning 0 ends the call with OK, a negative error with the status of its code and its text.
 */
typedef int grpc_handler(struct grpc_server_call *call, str request, void *arg, struct err *err);

struct grpc_method {
	str path;                     /* "/runtime.v1.RuntimeService/Version" */
	grpc_handler *handle;
	bool stream;                  /* of answers */
	const void *user;             /* for whoever handles several methods alike */
};

struct grpc_server_options {
	const struct grpc_method *methods;
	size_t n_methods;
	void *arg;
	struct tls_context *tls;      /* NULL: in the clear */
	size_t max_message;           /* of a request; 0: 16 MiB */
};

struct grpc_server *grpc_server_new(const struct grpc_server_options *o) NONNULL_RESULT;
/* "unix:/path" (an old socket there is replaced; mode 0660) or "host:port". */
int grpc_server_listen(struct grpc_server *s, const char *address, struct err *err);
/* (suspends, until canceled) Serves; then calls at work get grace_ms. */
int grpc_server_run(struct grpc_server *s, int64_t grace_ms, struct err *err);
void grpc_server_free(struct grpc_server *s); /* NULL is fine */

/* (suspends) One message of the answer. */
int grpc_reply(struct grpc_server_call *call, str message, struct err *err);
/* Which one was called. */
const struct grpc_method *grpc_call_method(const struct grpc_server_call *call);
/* Lives as long as the call. */
struct arena *grpc_call_arena(struct grpc_server_call *call);

#endif
