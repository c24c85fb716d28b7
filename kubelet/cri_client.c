/* CRI over gRPC. All calls share a connection (two when images are elsewhere), which is made when it is needed. */
#include "kubelet/cri_client.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fiber.h"
#include "base/mem.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "kubelet/cri_client_priv.h"
#include "net/grpc.h"

/* As Kubernetes has them: maxMsgSize, and --runtime-request-timeout. */
enum { MESSAGE_MAX = 16 << 20, TIMEOUT_MS = 120 * 1000, OPEN_TIMEOUT_MS = 10 * 1000, ENDPOINT_MAX = 1024 };

struct remote {
	struct cri cri;
	struct grpc_channel *channel, *images; /* images: NULL when it is the same */
};

static struct remote *remote_of(struct cri *c) { return CONTAINER_OF(c, struct remote, cri); }

static struct grpc_channel *channel_for(struct remote *r, const struct rpc *rpc)
{
	return r->images && str_starts(rpc->path, STR("/runtime.v1.ImageService/")) ? r->images : r->channel;
}

/* May it be called again when the connection broke? Most calls of CRI are so; these make something, or run it. */
static bool is_repeatable(const struct rpc *rpc)
{
	static const struct rpc *const others[] = {
		&rpc_RuntimeService_RunPodSandbox, &rpc_RuntimeService_CreateContainer, &rpc_RuntimeService_StartContainer,
		&rpc_RuntimeService_ExecSync, &rpc_RuntimeService_CheckpointContainer,
	};

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (rpc == others[i])
			return false;
	return true;
}

static int remote_ask(struct cri *c, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);
	unsigned flags = is_repeatable(rpc) ? GRPC_IDEMPOTENT : 0;
	int r = proto_encode(&b, request, rpc->request, err);

	if (r < 0 || (r = grpc_call(channel_for(remote_of(c), rpc), rpc->path, flags, buf_str(&b), &m, NULL, err)) < 0)
		return r;
	return proto_decode(a, arena_str(a, grpc_message_str(m)), rpc->response, ret, err);
}

/* (suspends) */
static int events_open(struct remote *r, struct grpc_stream **ret, struct err *err)
{
	DEADLINE_SCOPE(OPEN_TIMEOUT_MS);
	int code = grpc_stream_open(r->channel, rpc_RuntimeService_GetContainerEvents.path, ret, err);

	if (code == 0 && (code = grpc_stream_send(*ret, STR(""), err)) < 0) {
		grpc_stream_free(*ret);
		*ret = NULL;
	}
	if (code == 0)
		grpc_stream_half_close(*ret);
	return code;
}

/* (suspends) Until it ends: 0 when in order. */
static int events_read(struct grpc_stream *s, void (*on_event)(struct val event, void *arg), void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r;

	for (;;) {
		CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
		struct val event;
		if ((r = grpc_stream_recv(s, &m, err)) <= 0 ||
		    (r = proto_decode(&a, grpc_message_str(m), rpc_RuntimeService_GetContainerEvents.response, &event, err)) < 0)
			return r;
		on_event(event, arg);
		arena_reset(&a);
	}
}

static int remote_follow(struct cri *c, void (*on_event)(struct val event, void *arg), void *arg, struct err *err)
{
	struct grpc_stream *s = NULL;
	int r = events_open(remote_of(c), &s, err);

	if (r == 0)
		r = events_read(s, on_event, arg, err);
	grpc_stream_free(s);
	if (r == -ERR_METHOD_NOT_ALLOWED)
		return err_set(err, ERR_UNAVAILABLE, "the runtime does not tell what happens to containers");
	if (r == 0)
		return err_set(err, ERR_GONE, "the runtime has ended its events");
	if (r == -ERR_UNAVAILABLE || (r == -ERR_TIMEOUT && fiber_check(NULL) == 0)) {
		if (err)
			err->code = ERR_GONE;
		return -ERR_GONE;
	}
	return r;
}

static void remote_close(struct cri *c)
{
	struct remote *r = remote_of(c);

	grpc_channel_free(r->images);
	grpc_channel_free(r->channel);
	free(r);
}

static const struct cri_transport remote_transport = { remote_ask, remote_follow, remote_close };

static int channel_open(const char *endpoint, struct grpc_channel **ret, struct err *err)
{
	char with_scheme[ENDPOINT_MAX];
	const char *endpoints[] = { endpoint, NULL };
	struct grpc_options o = { .endpoints = endpoints, .max_message = MESSAGE_MAX };

	if (endpoint[0] == '/') { /* as old configurations have it */
		if ((size_t)snprintf(with_scheme, sizeof(with_scheme), "unix://%s", endpoint) >= sizeof(with_scheme))
			return err_set(err, ERR_BAD_REQUEST, "the path of the runtime's socket is too long");
		endpoints[0] = with_scheme;
	}
	return grpc_channel_new(&o, ret, err);
}

int cri_open(const char *endpoint, const char *image_endpoint, struct cri **ret, struct err *err)
{
	CLEANUP(grpc_channel_freep) struct grpc_channel *channel = NULL, *images = NULL;
	bool apart = image_endpoint && *image_endpoint && strcmp(image_endpoint, endpoint) != 0;
	int r = channel_open(endpoint, &channel, err);

	if (r < 0 || (apart && (r = channel_open(image_endpoint, &images, err)) < 0))
		return r;
	struct remote *c = mem_zalloc(sizeof(*c));
	*c = (struct remote){ .cri = { &remote_transport }, .channel = TAKE(channel), .images = TAKE(images) };
	*ret = &c->cri;
	return 0;
}

/* ---- any of them ---- */

void cri_close(struct cri *c)
{
	if (c)
		c->transport->close(c);
}

int cri_ask(struct cri *c, const struct rpc *rpc, struct arena *a, struct val request, int64_t timeout_ms, struct val *ret,
	    struct err *err)
{
	if (timeout_ms < 0)
		return c->transport->ask(c, rpc, a, request, ret, err);
	DEADLINE_SCOPE(timeout_ms ? timeout_ms : TIMEOUT_MS);
	return c->transport->ask(c, rpc, a, request, ret, err);
}

str cri_error_text(struct arena *a, const struct err *err)
{
	return arena_printf(a, "rpc error: code = %s desc = %s", grpc_status_name(grpc_status_of_err(err->code)), err->msg);
}

/* containerd 2.2 says so in words, without the code. */
bool cri_text_is_unknown_call(str text) { return str_find(text, STR("Unimplemented")) >= 0 || str_find(text, STR("not implemented")) >= 0; }

int cri_follow_events(struct cri *c, void (*on_event)(struct val event, void *arg), void *arg, struct err *err)
{
	return c->transport->follow(c, on_event, arg, err);
}
