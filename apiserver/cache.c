/*
 * One fiber follows the store; everybody else reads what it has left. A batch of events is applied without suspending,
 * then the cache's revision moves, then watchers and waiting readers are woken: nobody sees half of a batch.
 *
 * Loading again (after events were missed) builds new maps beside the old ones, takes over what has not changed, and
 * puts them in place at once. Watchers cannot be told what happened in between, so they end and their clients begin anew.
 */
#include <assert.h>

#include "apiserver/cache_priv.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

enum {
	PAGE_OBJECTS = 5000,
	RETRY_MS = 1000,          /* after the store has failed */
	PROGRESS_MS = 100,        /* how long to wait for an event before asking the store for its revision */
	CURRENT_TIMEOUT_MS = 10000,
	TRIM_SECONDS = 10,
};

static const str registry = STR_INIT("/registry/");

struct cache {
	struct store *store;
	struct kinds *kinds;
	bool shared;              /* other processes write to the store, too */
	bool loaded;
	int64_t revision;
	struct store_watch *watch; /* while it follows */
	struct fiber_cond moved;   /* the revision has grown */
	uint64_t undecodable;
	int64_t trimmed_ns;

	/* The question for the store's revision, shared by those who came before it was asked. */
	bool asking;
	uint64_t asked, answered;  /* numbers of questions */
	struct fiber_cond answer_came;
	int64_t answer;
	int answer_result;
	struct err answer_err;
};

static void object_map_ref(void *object) { object_ref(object); }
static void object_map_unref(void *object) { object_unref(object); }
static const struct omap_type object_map = { object_map_ref, object_map_unref };

struct cache *cache_new(struct store *store, struct kinds *kinds)
{
	struct cache *c = mem_zalloc(sizeof *c);
	struct store_stats stats;

	store_stats(store, &stats);
	c->store = store;
	c->kinds = kinds;
	c->shared = strcmp(stats.engine, "etcd") == 0;
	fiber_cond_init(&c->moved, "a revision in the watch cache");
	fiber_cond_init(&c->answer_came, "the store's revision");
	for (size_t i = 0; i < kinds->n_kinds; i++)
		kinds->kinds[i].objects = omap_new(&object_map);
	return c;
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	assert(!c->watch);
	for (size_t i = 0; i < c->kinds->n_kinds; i++) {
		window_done(&c->kinds->kinds[i]);
		omap_free(TAKE(c->kinds->kinds[i].objects));
	}
	free(c);
}

bool cache_is_ready(const struct cache *c) { return c->loaded && c->watch; }
int64_t cache_revision(const struct cache *c) { return c->revision; }
uint64_t cache_undecodable(const struct cache *c) { return c->undecodable; }
struct object *cache_get(const struct kind *kind, str key) { return kind ? omap_get(kind->objects, key) : NULL; }

static void cache_move(struct cache *c, int64_t revision)
{
	if (revision > c->revision)
		c->revision = revision;
	fiber_cond_broadcast(&c->moved);
}

/* The object of a value, with a reference of its own; NULL when it cannot be decoded. */
static struct object *cache_object(struct cache *c, struct kind *kind, str key, const struct store_kv *kv)
{
	struct object *o = cache_attached(kv->value);
	struct err err = ERR_INIT;

	if (o && o->kind == kind && str_eq(o->key, key)) {
		if (!o->revision)
			object_set_revision(o, kv->mod_revision);
		/* The same value may have been written twice. */
		return o->revision == kv->mod_revision ? object_ref(o) : object_at_revision(o, kv->mod_revision);
	}
	if (cache_decode(kind, key, kv, &o, &err) >= 0)
		return o;
	c->undecodable++;
	log_error("stored value cannot be decoded, it is left out", KV("key", kv->key), KV("revision", kv->mod_revision),
		  KV("err", &err));
	return NULL;
}

/* ---- loading ---- */

/* New maps, one per kind, until they are in place. */
struct load {
	struct cache *cache;
	struct omap **maps;
	int64_t revision;
	size_t objects;
};

static void load_begin(struct load *l, struct cache *c)
{
	*l = (struct load){ .cache = c, .maps = mem_array(c->kinds->n_kinds, sizeof *l->maps) };
	for (size_t i = 0; i < c->kinds->n_kinds; i++)
		l->maps[i] = omap_new(&object_map);
}

static void load_done(struct load *l)
{
	for (size_t i = 0; i < l->cache->kinds->n_kinds; i++)
		omap_free(l->maps[i]);
	free(l->maps);
}

static void load_add(struct load *l, const struct store_kv *kv)
{
	str key;
	struct kind *kind = kinds_of_key(l->cache->kinds, kv->key, &key);

	if (!kind)
		return;
	struct object *old = cache_get(kind, key);
	bool same = old && old->revision == kv->mod_revision;
	struct object *o = same ? object_ref(old) : cache_object(l->cache, kind, key, kv);
	if (!o)
		return;
	omap_put(l->maps[kind - l->cache->kinds->kinds], key, o);
	object_unref(o);
	l->objects++;
}

static int load_pages(struct load *l, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct store_range q = { .from = registry, .to = store_prefix_end(&a, registry), .limit = PAGE_OBJECTS };
	CLEANUP(buf_done) struct buf from = BUF_INIT(SIZE_MAX);

	for (bool more = true; more;) {
		CLEANUP(store_page_done) struct store_page page = { 0 };
		int r = store_range(l->cache->store, &q, &page, err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < page.n; i++)
			load_add(l, &page.kvs[i]);
		l->revision = q.revision = page.revision;
		more = page.more && page.n;
		if (more) {
			buf_reset(&from);
			buf_add(&from, page.kvs[page.n - 1].key);
			buf_addc(&from, '\0');
			q.from = buf_str(&from);
		}
	}
	return 0;
}

/* Puts the new maps in the place of the old ones. */
static void load_commit(struct load *l)
{
	struct cache *c = l->cache;

	for (size_t i = 0; i < c->kinds->n_kinds; i++) {
		struct kind *kind = &c->kinds->kinds[i];
		struct omap *old = kind->objects;
		kind->objects = l->maps[i];
		l->maps[i] = old;
		kind->changed = l->revision;
	}
	c->loaded = true;
	cache_move(c, l->revision);
	for (size_t i = 0; i < c->kinds->n_kinds; i++)
		window_restart(&c->kinds->kinds[i], l->revision);
}

int cache_load(struct cache *c, struct err *err)
{
	int64_t begun = clock_now_ns();

	/* The revision of the first page may be compacted while the others are read; hardly more than once. */
	for (int attempt = 1;; attempt++) {
		CLEANUP(load_done) struct load l;
		load_begin(&l, c);
		int r = load_pages(&l, err);
		if (r >= 0) {
			load_commit(&l);
			log_info("watch cache loaded", KV("objects", l.objects), KV("revision", l.revision),
				 KV("ms", (clock_now_ns() - begun) / NS_PER_MS));
			return 0;
		}
		if (r != -ERR_EXPIRED || attempt == 3)
			return err_wrap(err, r, "reading all objects");
	}
}

/* ---- following ---- */

static void cache_apply_event(struct cache *c, const struct store_event *event)
{
	str key;
	struct kind *kind = kinds_of_key(c->kinds, event->kv.key, &key);

	if (!kind)
		return;
	int64_t revision = event->kv.mod_revision;
	struct object *before = cache_get(kind, key), *o;
	if (event->deleted) {
		if (!before)
			return; /* it could not be decoded */
		object_ref(before);
		omap_remove(kind->objects, key);
		window_add(kind, CACHE_DELETED, revision, object_at_revision(before, revision), before);
	} else {
		if (!(o = cache_object(c, kind, key, &event->kv)))
			return;
		if (before)
			object_ref(before);
		omap_put(kind->objects, key, o);
		window_add(kind, before ? CACHE_MODIFIED : CACHE_ADDED, revision, o, before);
	}
	kind->changed = revision;
}

static void cache_apply(struct cache *c, const struct store_batch *batch)
{
	int64_t now = clock_now_ns();
	bool trim = now - c->trimmed_ns >= TRIM_SECONDS * NS_PER_S;

	for (size_t i = 0; i < batch->n; i++)
		cache_apply_event(c, &batch->events[i]);
	cache_move(c, batch->revision);
	if (trim)
		c->trimmed_ns = now;
	for (size_t i = 0; i < c->kinds->n_kinds; i++) {
		struct kind *kind = &c->kinds->kinds[i];
		if (trim)
			window_trim(kind);
		if (kind->watchers_due)
			window_wake(kind);
	}
}

static int cache_follow(struct cache *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = store_watch_open(c->store, registry, store_prefix_end(&a, registry), c->revision + 1, &c->watch, err);

	while (r >= 0) {
		CLEANUP(store_batch_done) struct store_batch batch = { 0 };
		r = store_watch_next(c->watch, &batch, err);
		if (r >= 0)
			cache_apply(c, &batch);
	}
	if (c->watch)
		store_watch_free(TAKE(c->watch));
	return r;
}

int cache_run(struct cache *c, struct err *err)
{
	for (bool missed = !c->loaded;;) {
		int r = missed ? cache_load(c, err) : cache_follow(c, err);
		if (r >= 0) {
			missed = false;
			continue;
		}
		/* Canceled, or out of time: what has failed does not matter then. */
		int ended = fiber_check(err);
		if (ended < 0)
			return ended;
		log_warn("watch cache does not follow the store, trying again", KV("revision", c->revision),
			 KV("err", err));
		if (r == -ERR_EXPIRED && !missed)
			missed = true;
		else if ((ended = fiber_sleep_ms(RETRY_MS, err)) < 0)
			return ended;
	}
}

/* ---- waiting ---- */

/* Waits until the revision grows, at most so long that it is worth asking the store. */
static int cache_wait_move(struct cache *c, struct err *err)
{
	{
		DEADLINE_SCOPE(PROGRESS_MS);
		if (fiber_cond_wait(&c->moved, NULL) >= 0)
			return 0;
	}
	int r = fiber_check(err);
	if (r >= 0 && c->watch)
		store_watch_progress(c->watch);
	return r;
}

int cache_wait(struct cache *c, int64_t revision, int64_t timeout_ms, struct err *err)
{
	DEADLINE_SCOPE(timeout_ms);
	int r = 0;

	while (c->revision < revision && (r = cache_wait_move(c, err)) >= 0)
		;
	return r;
}

/* (suspends) The store's revision at a time after the call: that of the first question that is asked from now on. */
static int cache_ask(struct cache *c, int64_t *ret_revision, struct err *err)
{
	uint64_t mine = c->asked + 1;
	int r;

	while (c->answered < mine) {
		if (c->asking) {
			if ((r = fiber_cond_wait(&c->answer_came, err)) < 0)
				return r;
			continue;
		}
		c->asking = true;
		uint64_t question = ++c->asked;
		struct err why = ERR_INIT;
		r = store_revision(c->store, &c->answer, &why);
		c->asking = false;
		fiber_cond_broadcast(&c->answer_came);
		if (fiber_check(err) < 0)
			return fiber_check(err); /* this fiber's own end; the next one asks again */
		c->answered = question;
		c->answer_result = r;
		c->answer_err = why;
	}
	if (c->answer_result < 0)
		return err_set(err, c->answer_err.code, STR_FMT, STR_ARG(err_str(&c->answer_err)));
	*ret_revision = c->answer;
	return 0;
}

int cache_wait_current(struct cache *c, struct err *err)
{
	int64_t revision;
	/* A store of this process knows its revision by heart. */
	int r = c->shared ? cache_ask(c, &revision, err) : store_revision(c->store, &revision, err);

	if (r < 0 || c->revision >= revision)
		return r;
	if (c->shared && c->watch)
		store_watch_progress(c->watch);
	return cache_wait(c, revision, CURRENT_TIMEOUT_MS, err);
}
