/*
 * CRI in the process of the runtime: its methods are called on the fiber of the caller. Requests and answers pass the codec all the same:
 * methods then see exactly what they would see from a socket (no zero values, names of enums checked), and answers do not point into
 * the runtime's own objects. That costs microseconds, where a connection costs wake-ups.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "kubelet/cri_client_priv.h"
#include "runtime/cri.h"

enum { MESSAGE_MAX = 64 << 20 };

struct inside {
	struct cri cri;
	struct runtime *runtime;
};

static struct inside *inside_of(struct cri *c) { return CONTAINER_OF(c, struct inside, cri); }

/* As if it had come through a socket. */
static int through_codec(struct arena *a, struct val v, const struct type *type, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);
	int r = proto_encode(&b, v, type, err);

	return r < 0 ? r : proto_decode(a, arena_str(a, buf_str(&b)), type, ret, err);
}

static int inside_ask(struct cri *c, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	const struct cri_method *m = cri_method_find(rpc);
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	struct val typed, answer = VAL_EMPTY_OBJECT;
	int r;

	if (!m || !m->call)
		return err_set(err, ERR_METHOD_NOT_ALLOWED, "unknown method " STR_FMT, STR_ARG(rpc->path));
	if ((r = through_codec(&scratch, request, rpc->request, &typed, err)) < 0 ||
	    (r = m->call(inside_of(c)->runtime, &scratch, typed, &answer, err)) < 0)
		return r;
	return through_codec(a, answer, rpc->response, ret, err);
}

struct follower {
	void (*on_event)(struct val event, void *arg);
	void *arg;
};

static int take_event(void *arg, struct val message, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct follower *f = arg;
	struct val event;
	int r = through_codec(&a, message, rpc_RuntimeService_GetContainerEvents.response, &event, err);

	if (r == 0)
		f->on_event(event, f->arg);
	return r;
}

static int inside_follow(struct cri *c, void (*on_event)(struct val event, void *arg), void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct follower f = { on_event, arg };
	struct cri_stream s = { .rpc = &rpc_RuntimeService_GetContainerEvents, .arena = &a, .sink = take_event, .sink_arg = &f };
	int r = cri_get_container_events(inside_of(c)->runtime, &s, VAL_EMPTY_OBJECT, err);

	return r < 0 ? r : err_set(err, ERR_GONE, "the runtime has ended its events");
}

static void inside_close(struct cri *c) { free(inside_of(c)); }

static const struct cri_transport inside_transport = { inside_ask, inside_follow, inside_close };

struct cri *cri_inside(struct runtime *r)
{
	struct inside *c = mem_zalloc(sizeof(*c));

	*c = (struct inside){ .cri = { &inside_transport }, .runtime = r };
	return &c->cri;
}
