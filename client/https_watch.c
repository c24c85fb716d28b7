#include "base/fiber.h"
#include "base/mem.h"
#include "client/https_priv.h"
#include "client/watch_frame.h"

struct https_watch {
	struct client_watch watch;
	struct list link;                /* in the session */
	struct exchange x;
	const struct type *type;
	struct watch_frames frames;
	struct arena arena;              /* of the event that is being decoded */
	struct frozen *object;           /* of the last event */
	bool broken;                     /* the session is over */
};

int https_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret,
		struct err *err)
{
	CLEANUP(https_end) struct exchange x = { 0 };
	int r = https_begin(CONTAINER_OF(c, struct https, client), q, &x, ret, err);
	if (r < 0)
		return r;
	if (x.head->status != 200)
		return https_fail(&x, q, err);
	struct https_watch *w = mem_zalloc(sizeof(*w));
	w->watch.client = c;
	w->type = q->type;
	w->x = x;
	x = (struct exchange){ 0 };
	arena_init(&w->arena);
	watch_frames_init(&w->frames, https_is_proto(http_header_find(w->x.head->headers, w->x.head->n_headers, STR("content-type"))));
	list_add(&w->x.session->watches, &w->link);
	/* Certificates may have changed while the answer was waited for. */
	if (w->x.session != CONTAINER_OF(c, struct https, client)->session)
		https_watches_break(w->x.session);
	*ret_watch = &w->watch;
	return 0;
}

void https_watches_break(struct session *s)
{
	LIST_EACH(struct https_watch, w, &s->watches, link) {
		w->broken = true;
		http_call_abort(w->x.call);
	}
}

/* (suspends) The next event's bytes: 1; 0 at the end. */
static int next_frame(struct https_watch *w, str *ret, struct err *err)
{
	enum { PIECE = 16 * 1024 };
	int r;
	while ((r = watch_frames_next(&w->frames, ret, err)) == 0) {
		ssize_t n = http_call_read(w->x.call, watch_frames_room(&w->frames, PIECE), PIECE, err);
		if (w->broken)
			return err_set(err, ERR_UNAVAILABLE, "the watch was broken off: our certificates have changed");
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
	arena_reset(&w->arena);
	if ((r = watch_event_decode(&w->arena, frame, w->frames.proto, w->type, &type, &object, err)) < 0)
		return r;
	if ((r = client_event_make(type, val_freeze(object), ret, err)) == 1)
		w->object = ret->object;
	return r;
}

void https_watch_free(struct client_watch *watch)
{
	struct https_watch *w = CONTAINER_OF(watch, struct https_watch, watch);
	list_remove(&w->link);
	frozen_unref(w->object);
	watch_frames_done(&w->frames);
	arena_done(&w->arena);
	https_end(&w->x);
	free(w);
}
