#include "scheduler/reference_server.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/test.h"
#include "codec/atoms.h"

struct watch {
	struct client_watch watch;
	struct feed *feed;
	struct frozen *object;
	bool begun;
};

static struct server *server_of(struct client *c) { return CONTAINER_OF(c, struct server, client); }

static struct feed *feed_of(struct server *s, const struct type *type)
{
	for (size_t i = 0; i < s->n_feeds; i++)
		if (s->feeds[i].type == type)
			return &s->feeds[i];
	CHECK(s->n_feeds < SERVER_KINDS);
	s->feeds[s->n_feeds] = (struct feed){ .type = type };
	return &s->feeds[s->n_feeds++];
}

/* Nothing is ever found: nobody goes on with a pod after its first patch. */
static int server_call(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	struct server *s = server_of(c);

	(void)ret;
	if (str_eq(q->resource->name, STR("pods")) && str_eq(q->subresource, STR("status")))
		buf_addf(val_has(q->body, status, nominatedNodeName) ? &s->cleared : &s->victims, STR_FMT " ", STR_ARG(q->name));
	return err_set(err, ERR_NOT_FOUND, "not found");
}

static int server_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret, struct err *err)
{
	struct watch *w = mem_zalloc(sizeof(*w));

	(void)ret, (void)err;
	w->watch.client = c;
	w->feed = feed_of(server_of(c), q->type);
	*ret_watch = &w->watch;
	return 0;
}

static struct frozen *bookmark(void)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	return val_freeze(OBJECT(&a, F(metadata, OBJECT(&a, F(resourceVersion, VAL_LIT("1"))))));
}

static int server_watch_next(struct client_watch *watch, struct client_event *ret, struct err *err)
{
	struct watch *w = CONTAINER_OF(watch, struct watch, watch);
	struct feed *f = w->feed;

	frozen_unref(TAKE(w->object));
	if (!w->begun) {
		w->begun = true;
		w->object = bookmark();
		*ret = (struct client_event){ .type = CLIENT_BOOKMARK, .object = w->object, .initial_end = true };
		return 1;
	}
	while (f->at == f->n) {
		int r = fiber_cond_wait(&server_of(watch->client)->more, err);
		if (r < 0)
			return r;
	}
	w->object = f->events[f->at].object;
	*ret = (struct client_event){ .type = f->events[f->at++].type, .object = w->object };
	return 1;
}

static void server_watch_free(struct client_watch *watch)
{
	struct watch *w = CONTAINER_OF(watch, struct watch, watch);

	frozen_unref(w->object);
	free(w);
}

static const struct client_transport transport = {
	.call = server_call, .watch = server_watch, .watch_next = server_watch_next, .watch_free = server_watch_free,
};

void server_init(struct server *s)
{
	*s = (struct server){ .client.transport = &transport, .victims = BUF_INIT(1 << 16), .cleared = BUF_INIT(1 << 16) };
	fiber_cond_init(&s->more, "objects that change");
}

void server_done(struct server *s)
{
	buf_done(&s->victims);
	buf_done(&s->cleared);
}

static void tell(struct server *s, const struct type *type, enum client_event_type event, struct frozen *object)
{
	struct feed *f = feed_of(s, type);

	if (f->at == f->n)
		f->at = f->n = 0;
	CHECK(f->n < SERVER_EVENTS);
	f->events[f->n++] = (struct server_event){ event, frozen_ref(object) };
	fiber_cond_broadcast(&s->more);
	fiber_settle();
}

struct frozen *server_put(struct server *s, const struct type *type, struct val object, bool is_new)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str revision = arena_printf(&a, "%lld", (long long)++s->revision);
	struct frozen *f = val_freeze(val_with(&a, object, VAL_STR(revision), metadata, resourceVersion));

	tell(s, type, is_new ? CLIENT_ADDED : CLIENT_MODIFIED, f);
	return f;
}

void server_remove(struct server *s, const struct type *type, struct frozen *object)
{
	tell(s, type, CLIENT_DELETED, object);
	frozen_unref(object);
}
