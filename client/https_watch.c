#include "base/fiber.h"
#include "base/mem.h"
#include "client/https_priv.h"
#include "client/watch_frame.h"

struct https_watch {
	struct client_watch watch;
	struct list link;                /* in the session */
	struct exchange x;               /* without a call when it is shared */
	struct shared_call *shared;
	const struct type *type;
	struct watch_frames frames;
	struct arena arena;              /* of the event that is being decoded */
	struct frozen *object;           /* of the last event */
	bool broken;                     /* the session is over */
};

/* The watch of an exchange, or of a shared call, either of which is its own from here on. */
static struct https_watch *watch_new(struct client *c, const struct client_request *q, struct exchange x, struct shared_call *shared)
{
	struct https_watch *w = mem_zalloc(sizeof(*w));
	w->watch.client = c;
	w->type = q->type;
	w->x = x;
	w->shared = shared;
	arena_init(&w->arena);
	str type = shared ? shared_call_type(shared) : http_header_find(x.head->headers, x.head->n_headers, STR("content-type"));
	watch_frames_init(&w->frames, https_is_proto(type));
	list_add(&w->x.session->watches, &w->link);
	/* Certificates, or the server, may have changed while the answer was waited for. */
	if (w->x.session != CONTAINER_OF(c, struct https, client)->session)
		https_watches_break(w->x.session);
	return w;
}

int https_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret,
		struct err *err)
{
	struct https *h = CONTAINER_OF(c, struct https, client);
	CLEANUP(https_end) struct exchange x = { 0 };
	struct shared_call *shared = NULL;
	int r = q->shared ? https_begin_shared(h, q, &x.session, &shared, err) : 0;
	if (r < 0)
		return r;
	if (!shared && (r = https_begin(h, q, &x, ret, err)) < 0)
		return r;
	if (!shared && x.head->status != 200)
		return https_fail(&x, q, err);
	ret->status = 200;
	*ret_watch = &watch_new(c, q, x, shared)->watch;
	x = (struct exchange){ 0 };
	return 0;
}

void https_watches_break(struct session *s)
{
	if (s->shared)
		shared_leave(s->shared);
	LIST_EACH(struct https_watch, w, &s->watches, link) {
		w->broken = true;
		if (w->shared)
			shared_call_abort(w->shared);
		else
			http_call_abort(w->x.call);
	}
}

/* (suspends) The next event's bytes: 1; 0 at the end. */
static int next_frame(struct https_watch *w, str *ret, struct err *err)
{
	enum { PIECE = 4 * 1024 - 1 }; /* most events are small, and most watches idle */
	int r;
	while ((r = watch_frames_next(&w->frames, ret, err)) == 0) {
		char *room = watch_frames_room(&w->frames, PIECE);
		ssize_t n = w->shared ? shared_call_read(w->shared, room, PIECE, err) : http_call_read(w->x.call, room, PIECE, err);
		if (w->broken) /* by ourselves: nothing is wrong, and there is no reason to wait before it begins anew */
			return 0;
		if (n < 0)
			return https_unavailable((int)n, err);
		if (n == 0)
			return watch_frames_end(&w->frames, err);
		watch_frames_commit(&w->frames, (size_t)n);
	}
	return r;
}

int https_watch_next(struct client_watch *watch, struct client_event *ret, struct err *err)
{
	struct https_watch *w = CONTAINER_OF(watch, struct https_watch, watch);
	struct val object;
	str frame, type;
	frozen_unref(TAKE(w->object));
	int r = next_frame(w, &frame, err);
	if (r <= 0)
		return r;
	if ((r = watch_event_decode(&w->arena, frame, w->frames.proto, w->type, &type, &object, err)) < 0)
		return r;
	if ((r = client_event_make(type, val_freeze(object), ret, err)) == 1)
		w->object = ret->object;
	arena_done(&w->arena); /* not kept: the next event may be long in coming */
	return r;
}

void https_watch_free(struct client_watch *watch)
{
	struct https_watch *w = CONTAINER_OF(watch, struct https_watch, watch);
	list_remove(&w->link);
	frozen_unref(w->object);
	watch_frames_done(&w->frames);
	arena_done(&w->arena);
	shared_call_free(w->shared);
	https_end(&w->x);
	free(w);
}
