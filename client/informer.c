/*
 * The copy is a map of frozen objects by key. A fiber fills it: it lists (as a streamed watch, or in one answer from a
 * server that cannot), then watches from there. While a list comes in, the copy stays as it was; then both are compared,
 * and the differences are told like any other change.
 */
#include "client/informer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "client/informer_index.h"
#include "codec/atoms.h"

/*
 * Pauses after failures, as client-go's: doubling, with up to as much again by chance; anew after two quiet minutes. They begin shorter where the
 * server has not answered yet: it may be about to start, like us.
 */
enum { LOOK_MS = 250, FIRST_PAUSE_MS = 25, PAUSE_MS = 800, PAUSE_MAX_MS = 30 * 1000, QUIET_MS = 2 * 60 * 1000 };
/* A watch that ends sooner in good order is no use: a pause before the next. */
enum { SHORT_MS = 1000 };
/* A watch asks to be ended after five to ten minutes: a connection that died without a word is noticed then. */
enum { WATCH_S = 300 };

struct informer {
	struct informers *all;
	struct list link;
	const struct type *type;
	struct informer_options options;
	struct arena texts;          /* of the options */
	struct arena scratch;        /* for the event at hand */
	struct omap *objects;
	struct list indexes, listeners;
	struct fiber *fiber;
	char *revision;              /* NULL: list first */
	bool synced;
	bool plain_lists;            /* the server cannot stream them */
};

struct informers {
	struct client *client;
	struct list list;
	struct fiber_cond synced;
	bool started;
};

/* ---- the copy ---- */

str object_key(struct arena *a, struct val object)
{
	str namespace = val_str(object, metadata, namespace), name = val_str(object, metadata, name);
	return namespace.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)) : arena_str(a, name);
}

static void set_revision(struct informer *i, str revision)
{
	free(i->revision);
	i->revision = revision.n ? strndup(revision.p, revision.n) : NULL;
}

/* The object as it is kept; a new reference. */
static struct frozen *kept(struct informer *i, struct frozen *object)
{
	return i->options.keep ? val_freeze(i->options.keep(&i->scratch, object->val)) : frozen_ref(object);
}

/* From the copy's old state to the new one, either NULL; tells everybody. */
static void change(struct informer *i, str key, struct frozen *object)
{
	CLEANUP(frozen_unrefp) struct frozen *old = omap_get(i->objects, key);

	if (!old && !object)
		return;
	if (old)
		(void)frozen_ref(old);
	if (object)
		(void)omap_put(i->objects, key, object);
	else
		(void)omap_remove(i->objects, key);
	LIST_EACH(struct informer_index, x, &i->indexes, link)
		informer_index_change(x, key, old, object);
	LIST_EACH_SAFE(struct informer_listener, l, &i->listeners, link)
		l->changed(l, old, object);
}

static bool same_version(const struct frozen *a, const struct frozen *b)
{
	str revision = val_str(a->val, metadata, resourceVersion);

	/* What is kept of objects may have none: then nobody can tell. */
	return revision.n && str_eq(revision, val_str(b->val, metadata, resourceVersion)) &&
	       str_eq(val_str(a->val, metadata, uid), val_str(b->val, metadata, uid));
}

/* The list is complete: the copy becomes what it says. */
static void replace(struct informer *i, struct omap *fresh)
{
	CLEANUP(omap_freep) struct omap *before = omap_snapshot(i->objects);
	struct omap_iter it;
	struct frozen *object;
	str key;

	omap_seek(&it, before, STR_NONE);
	while (omap_next(&it, &key))
		if (!omap_get(fresh, key))
			change(i, key, NULL);
	omap_seek(&it, fresh, STR_NONE);
	while ((object = omap_next(&it, &key))) {
		struct frozen *old = omap_get(before, key);
		if (!old || !same_version(old, object))
			change(i, key, object);
	}
	if (i->synced)
		return;
	i->synced = true;
	LIST_EACH_SAFE(struct informer_listener, l, &i->listeners, link)
		if (l->synced)
			l->synced(l);
	fiber_cond_broadcast(&i->all->synced);
}

/* ---- following the server ---- */

static void put_fresh(struct informer *i, struct omap *fresh, struct frozen *object)
{
	CLEANUP(frozen_unrefp) struct frozen *keep = kept(i, object);
	(void)omap_put(fresh, object_key(&i->scratch, object->val), keep);
}

static struct client_list_options list_options(const struct informer *i)
{
	return (struct client_list_options){ .namespace = i->options.namespace, .labels = i->options.labels, .fields = i->options.fields };
}

static int list_plainly(struct informer *i, struct err *err)
{
	CLEANUP(omap_freep) struct omap *fresh = omap_new(&informer_objects);
	CLEANUP(frozen_unrefp) struct frozen *list = NULL;
	struct client_list_options o = list_options(i);
	int r = client_list(i->all->client, i->type, &o, &list, err);

	if (r < 0)
		return r;
	if (!val_str(list->val, metadata, resourceVersion).n)
		return err_set(err, ERR_UNAVAILABLE, "the list does not say how new it is");
	VAL_EACH(item, val_get(list->val, items)) {
		CLEANUP(frozen_unrefp) struct frozen *object = val_freeze(*item);
		arena_reset(&i->scratch);
		put_fresh(i, fresh, object);
	}
	replace(i, fresh);
	set_revision(i, val_str(list->val, metadata, resourceVersion));
	return 0;
}

static void take_event(struct informer *i, const struct client_event *e)
{
	struct val object = e->object->val;

	arena_reset(&i->scratch);
	if (e->type == CLIENT_DELETED) {
		change(i, object_key(&i->scratch, object), NULL);
	} else if (e->type != CLIENT_BOOKMARK) {
		CLEANUP(frozen_unrefp) struct frozen *keep = kept(i, e->object);
		change(i, object_key(&i->scratch, object), keep);
	}
	set_revision(i, val_str(object, metadata, resourceVersion));
}

/* Up to the bookmark that ends the list. -ERR_UNAVAILABLE when the watch ends before it. */
static int take_initial(struct informer *i, struct client_watch *w, struct err *err)
{
	CLEANUP(omap_freep) struct omap *fresh = omap_new(&informer_objects);
	struct client_event e;
	int r;

	while ((r = client_watch_next(w, &e, err)) > 0) {
		arena_reset(&i->scratch);
		if (e.type == CLIENT_DELETED)
			(void)omap_remove(fresh, object_key(&i->scratch, e.object->val));
		else if (e.type != CLIENT_BOOKMARK)
			put_fresh(i, fresh, e.object);
		if (e.type == CLIENT_BOOKMARK && e.initial_end) {
			replace(i, fresh);
			set_revision(i, val_str(e.object->val, metadata, resourceVersion));
			return 0;
		}
	}
	return r < 0 ? r : err_set(err, ERR_UNAVAILABLE, "the list ended early");
}

/* One watch, from its beginning to its end, with the list before it where one is needed. */
static int follow(struct informer *i, struct err *err)
{
	CLEANUP(client_watch_freep) struct client_watch *w = NULL;
	int r = !i->revision && i->plain_lists ? list_plainly(i, err) : 0;
	bool initial = !i->revision;

	if (r < 0)
		return r;
	struct client_watch_options o = {
		.list = list_options(i),
		.bookmarks = true,
		.initial = initial,
		.timeout_s = WATCH_S + (int64_t)random_below(WATCH_S),
		.shared = i->options.shared,
	};
	o.list.revision = initial ? STR_NONE : str_of(i->revision);
	r = client_watch(i->all->client, i->type, &o, &w, err);
	if (initial && r == -ERR_INVALID && !i->plain_lists) {
		i->plain_lists = true;
		return follow(i, err);
	}
	if (r == 0 && initial)
		r = take_initial(i, w, err);
	struct client_event e;
	while (r == 0 && (r = client_watch_next(w, &e, err)) > 0) {
		take_event(i, &e);
		r = 0;
	}
	return r;
}

/* (suspends) 1 when it was cut short: servers that could not be reached answer somebody else again. */
static int take_pause(const struct client *c, int64_t ms)
{
	unsigned before = client_recoveries(c);

	for (int64_t left = ms; left > 0; left -= LOOK_MS) {
		if (fiber_sleep_ms((unsigned)MIN(left, (int64_t)LOOK_MS), NULL) < 0)
			return -ERR_CANCELED;
		if (client_recoveries(c) != before)
			return 1;
	}
	return 0;
}

static int informer_run(void *arg)
{
	struct informer *i = arg;
	int64_t pause_ms = FIRST_PAUSE_MS, anew_ns = INT64_MIN / 2;

	for (;;) {
		struct err err = ERR_INIT;
		int64_t begun_ns = clock_now_ns();
		int r = follow(i, &err);
		if (fiber_check(NULL) < 0)
			return -ERR_CANCELED;
		int64_t took_ms = (clock_now_ns() - begun_ns) / NS_PER_MS;
		bool too_old = i->revision && (r == -ERR_EXPIRED || r == -ERR_GONE);
		/* Too old again so soon: whoever listed at once for ever would only add to what keeps the server busy. */
		bool anew = too_old && clock_now_ns() - anew_ns > PAUSE_MAX_MS * NS_PER_MS;
		if (too_old) {
			set_revision(i, STR_NONE);
			anew_ns = clock_now_ns();
		}
		if (took_ms >= QUIET_MS || (i->synced && pause_ms < PAUSE_MS))
			pause_ms = PAUSE_MS;
		if (anew || (r == 0 && took_ms > SHORT_MS))
			continue;
		if (r < 0)
			log_warn("watch failed, trying again soon", KV("kind", i->type->name), KV("err", &err));
		if ((r = take_pause(i->all->client, pause_ms + (int64_t)random_below((uint64_t)pause_ms))) < 0)
			return -ERR_CANCELED;
		pause_ms = r ? PAUSE_MS : MIN(2 * pause_ms, (int64_t)PAUSE_MAX_MS);
	}
}

/* ---- life ---- */

struct informers *informers_new(struct client *c)
{
	struct informers *all = mem_zalloc(sizeof *all);

	all->client = c;
	list_init(&all->list);
	fiber_cond_init(&all->synced, "the first lists of informers");
	return all;
}

static void informer_free(struct informer *i)
{
	if (i->fiber)
		(void)fiber_stop(i->fiber);
	LIST_EACH_SAFE(struct informer_index, x, &i->indexes, link)
		informer_index_free(x);
	omap_free(i->objects);
	free(i->revision);
	arena_done(&i->texts);
	arena_done(&i->scratch);
	free(i);
}

void informers_free(struct informers *all)
{
	if (!all)
		return;
	LIST_EACH_SAFE(struct informer, i, &all->list, link)
		informer_free(i);
	free(all);
}

void informers_drop(struct informer *i)
{
	list_remove(&i->link);
	informer_free(i);
}

static bool is_that(const struct informer *i, const struct type *type, const struct informer_options *o)
{
	return i->type == type && i->options.keep == o->keep && str_eq(i->options.namespace, o->namespace) &&
	       str_eq(i->options.labels, o->labels) && str_eq(i->options.fields, o->fields);
}

static int start(struct informer *i, struct err *err)
{
	return fiber_spawn(informer_run, i, &i->fiber, err, "informer " STR_FMT, STR_ARG(i->type->name));
}

struct informer *informers_get(struct informers *all, const struct type *type, const struct informer_options *o)
{
	struct informer_options options = o ? *o : (struct informer_options){ 0 };
	struct err err = ERR_INIT;

	LIST_EACH(struct informer, i, &all->list, link)
		if (is_that(i, type, &options))
			return i;
	struct informer *i = mem_zalloc(sizeof *i);
	i->all = all;
	i->type = type;
	i->options = (struct informer_options){
		.namespace = arena_str(&i->texts, options.namespace),
		.labels = arena_str(&i->texts, options.labels),
		.fields = arena_str(&i->texts, options.fields),
		.keep = options.keep,
		.shared = options.shared,
	};
	i->objects = omap_new(&informer_objects);
	list_init(&i->indexes);
	list_init(&i->listeners);
	list_add(&all->list, &i->link);
	if (all->started && start(i, &err) < 0)
		log_error("an informer cannot start", KV("kind", type->name), KV("err", &err));
	return i;
}

int informers_start(struct informers *all, struct err *err)
{
	int r = 0;

	all->started = true;
	LIST_EACH(struct informer, i, &all->list, link)
		if (r == 0 && !i->fiber)
			r = start(i, err);
	return r;
}

static bool all_synced(const struct informers *all)
{
	LIST_EACH(struct informer, i, &all->list, link)
		if (!i->synced)
			return false;
	return true;
}

int informers_wait(struct informers *all, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0 && !all_synced(all))
		r = fiber_cond_wait(&all->synced, err);
	return r;
}

/* ---- being told ---- */

void informer_listen(struct informer *i, struct informer_listener *l)
{
	CLEANUP(omap_freep) struct omap *now = omap_snapshot(i->objects);
	struct omap_iter it;
	struct frozen *object;

	list_add(&i->listeners, &l->link);
	omap_seek(&it, now, STR_NONE);
	while ((object = omap_next(&it, NULL)))
		l->changed(l, NULL, object);
	if (i->synced && l->synced)
		l->synced(l);
}

void informer_unlisten(struct informer_listener *l) { list_remove(&l->link); }

/* ---- looking ---- */

bool informer_synced(const struct informer *i) { return i->synced; }
struct frozen *informer_get(const struct informer *i, str key) { return omap_get(i->objects, key); }
size_t informer_count(const struct informer *i) { return omap_len(i->objects); }
str informer_revision(const struct informer *i) { return i->revision ? str_of(i->revision) : STR_NONE; }

static struct informer_iter each(struct omap *snapshot)
{
	struct informer_iter it = { .snapshot = snapshot };

	if (snapshot)
		omap_seek(&it.at, snapshot, STR_NONE);
	return it;
}

struct informer_iter informer_each(const struct informer *i) { return each(omap_snapshot(i->objects)); }

struct informer_iter informer_each_indexed(const struct informer *i, const char *index, str value)
{
	LIST_EACH(struct informer_index, x, &i->indexes, link)
		if (strcmp(x->name, index) == 0)
			return each(informer_index_find(x, value));
	assert(!"an index of that name");
	return each(NULL);
}

struct frozen *informer_next(struct informer_iter *it) { return it->snapshot ? omap_next(&it->at, NULL) : NULL; }

void informer_iter_done(struct informer_iter *it) { omap_free(TAKE(it->snapshot)); }

void informer_index(struct informer *i, const char *name, informer_values *values)
{
	struct omap_iter it;
	struct frozen *object;
	str key;

	LIST_EACH(struct informer_index, x, &i->indexes, link)
		if (strcmp(x->name, name) == 0)
			return; /* another loop asked for it before */
	struct informer_index *x = informer_index_new(name, values);
	list_add(&i->indexes, &x->link);
	omap_seek(&it, i->objects, STR_NONE);
	while ((object = omap_next(&it, &key)))
		informer_index_change(x, key, NULL, object);
}
