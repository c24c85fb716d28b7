#include "bench/sched_server.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"

static struct sched_server *server_of(struct client *c) { return (struct sched_server *)c; }

/* ---- what watches tell ---- */

struct bench_watch {
	struct client_watch base;
	struct feed *feed;            /* NULL: a kind without objects */
	struct frozen *last;          /* told, and ours until the next */
	bool began;
};

static void feed_add(struct feed *f, enum client_event_type type, struct frozen *object)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 1024;
		f->events = mem_resize(f->events, f->cap * sizeof(*f->events));
	}
	f->events[f->n++] = (struct told){ type, object };
	fiber_cond_signal(&f->more);
}

static void feed_init(struct feed *f, const struct type *type)
{
	*f = (struct feed){ .type = type };
	fiber_cond_init(&f->more, "objects");
}

static void feed_done(struct feed *f)
{
	for (; f->at < f->n; f->at++)
		frozen_unref(f->events[f->at].object);
	free(f->events);
}

static int watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret, struct err *err)
{
	struct sched_server *s = server_of(c);
	struct bench_watch *w = mem_zalloc(sizeof(*w));

	(void)err;
	w->base.client = c;
	w->feed = q->type == s->nodes.type ? &s->nodes : q->type == s->pods.type ? &s->pods : NULL;
	*ret_watch = &w->base;
	*ret = (struct client_reply){ .status = 200, .retry_after_s = -1 };
	return 0;
}

static struct frozen *bookmark(void)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	return val_freeze(OBJECT(&a, F(metadata, OBJECT(&a, F(resourceVersion, VAL_LIT("1"))))));
}

static int watch_next(struct client_watch *watched, struct client_event *ret, struct err *err)
{
	struct bench_watch *w = (struct bench_watch *)watched;
	struct feed *f = w->feed;
	struct fiber_cond never = FIBER_COND_INIT(never, "nothing");

	frozen_unref(TAKE(w->last));
	if (!w->began && (!f || f->at == f->n)) {
		w->began = true;
		w->last = bookmark();
		*ret = (struct client_event){ .type = CLIENT_BOOKMARK, .object = w->last, .initial_end = true };
		return 1;
	}
	while (!f || f->at == f->n) {
		int r = fiber_cond_wait(f ? &f->more : &never, err);
		if (r < 0)
			return r;
	}
	struct told told = f->events[f->at++];
	if (f->at == f->n)
		f->at = f->n = 0;
	w->last = told.object;
	*ret = (struct client_event){ .type = told.type, .object = told.object };
	return 1;
}

static void watch_free(struct client_watch *watched)
{
	struct bench_watch *w = (struct bench_watch *)watched;

	frozen_unref(w->last);
	free(w);
}

/* ---- writes ---- */

static size_t number_of(str name) { return (size_t)strtoul(name.p + 2, NULL, 10); }

static void store(struct sched_server *s, size_t number, struct frozen *pod, enum client_event_type type)
{
	frozen_unref(s->stored[number]);
	s->stored[number] = type == CLIENT_DELETED ? NULL : frozen_ref(pod);
	feed_add(&s->pods, type, pod);
}

static void bind_pod(struct sched_server *s, struct val binding)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	size_t number = number_of(val_str(binding, metadata, name));

	store(s, number, val_freeze(val_with(&a, s->stored[number]->val, val_get(binding, target, name), spec, nodeName)), CLIENT_MODIFIED);
	if (++s->n_bound == s->wanted)
		fiber_cond_broadcast(&s->enough);
}

static int call(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	struct sched_server *s = server_of(c);
	bool create = strcmp(q->verb, "create") == 0;

	(void)err;
	*ret = (struct client_reply){ .status = 200, .retry_after_s = -1 };
	if (create && str_eq(q->subresource, STR("binding"))) {
		bind_pod(s, q->body);
	} else if (q->type == s->pods.type && strcmp(q->verb, "delete") == 0) {
		s->n_deleted++;
		size_t number = number_of(q->name);
		if (s->stored[number])
			store(s, number, frozen_ref(s->stored[number]), CLIENT_DELETED);
	} else if (q->type == s->pods.type && strcmp(q->verb, "patch") == 0) {
		s->n_refused++;
	} else {
		s->n_events++;
	}
	if (q->wants_object)
		ret->object = val_freeze(q->body);
	/* As over a network, the answer comes later than the question. */
	return fiber_yield(NULL);
}

static const struct client_transport transport = { .call = call, .watch = watch, .watch_next = watch_next, .watch_free = watch_free };

void sched_server_init(struct sched_server *s, size_t pods)
{
	*s = (struct sched_server){ .client.transport = &transport, .n_stored = pods };
	fiber_cond_init(&s->enough, "pods to be bound");
	feed_init(&s->nodes, TYPE(core_v1, Node));
	feed_init(&s->pods, TYPE(core_v1, Pod));
	s->stored = mem_zalloc(pods * sizeof(*s->stored));
}

void sched_server_done(struct sched_server *s)
{
	for (size_t i = 0; i < s->n_stored; i++)
		frozen_unref(s->stored[i]);
	free(s->stored);
	feed_done(&s->nodes);
	feed_done(&s->pods);
}

void sched_server_node(struct sched_server *s, struct frozen *node) { feed_add(&s->nodes, CLIENT_ADDED, node); }

void sched_server_pod(struct sched_server *s, size_t number, struct frozen *pod) { store(s, number, pod, CLIENT_ADDED); }
