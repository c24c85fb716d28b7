/* Against a store of a few lines that does what each test needs; at the end, against a real one. */
#include <stdlib.h>
#include <unistd.h>

#include "apiserver/cache_priv.h"
#include "base/clock.h"
#include "base/fiber_test.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "store/store_priv.h"

enum { FAKE_WRITES = 512 };

struct fake {
	struct store store;
	struct store_engine engine;
	struct store_kv writes[FAKE_WRITES]; /* in the order of revisions; without a value: a deletion */
	size_t n;
	int64_t revision, compacted;
	unsigned ranges, questions, batches;
	bool progress, failing;
	struct fiber_cond filled;
	struct kinds kinds;
	struct cache *cache;
	struct fiber *runner;
};

struct fake_watch {
	struct store_watch watch;
	size_t next;
	int64_t after;
};

static struct fake *fake_of(struct store *s) { return CONTAINER_OF(s, struct fake, store); }

/* The newest write of this key at a revision: its place, or -1. */
static ptrdiff_t fake_newest(const struct fake *f, str key, int64_t revision)
{
	for (size_t i = f->n; i-- > 0;)
		if (f->writes[i].mod_revision <= revision && str_eq(f->writes[i].key, key))
			return (ptrdiff_t)i;
	return -1;
}

static int fake_compare(const void *x, const void *y)
{
	return str_cmp(((const struct store_kv *)x)->key, ((const struct store_kv *)y)->key);
}

/* Two at a time, so that there are pages. */
static int fake_range(struct store *s, const struct store_range *q, struct store_page *ret, struct err *err)
{
	struct fake *f = fake_of(s);
	int64_t revision = q->revision ? q->revision : f->revision;
	struct arena *memory = store_memory_new();

	f->ranges++;
	if (revision < f->compacted)
		return arena_done(memory), free(memory), err_set(err, ERR_EXPIRED, "compacted");
	*ret = (struct store_page){ .revision = revision, .memory = memory, .kvs = ARENA_ARRAY(memory, struct store_kv, f->n + 1) };
	for (size_t i = 0; i < f->n; i++) {
		struct store_kv kv = f->writes[i];
		if (kv.value && fake_newest(f, kv.key, revision) == (ptrdiff_t)i && store_range_has(q->from, q->to, kv.key))
			ret->kvs[ret->n++] = kv;
	}
	qsort(ret->kvs, ret->n, sizeof *ret->kvs, fake_compare);
	ret->count = (int64_t)ret->n;
	ret->more = ret->n > 2;
	ret->n = MIN(ret->n, (size_t)2);
	for (size_t i = 0; i < ret->n; i++)
		store_value_ref(ret->kvs[i].value);
	return fiber_yield(err);
}

static int fake_revision(struct store *s, int64_t *ret_revision, struct err *err)
{
	struct fake *f = fake_of(s);

	f->questions++;
	int r = fiber_sleep_ms(10, err);
	if (r >= 0 && f->failing)
		return err_set(err, ERR_UNAVAILABLE, "nobody answers");
	*ret_revision = f->revision;
	return r;
}

static int fake_watch_open(struct store *s, str from, str to, int64_t revision, struct store_watch **ret, struct err *err)
{
	struct fake *f = fake_of(s);
	struct fake_watch *w = mem_zalloc(sizeof *w);

	(void)from, (void)to, (void)err;
	w->watch.store = s;
	w->after = revision - 1;
	while (w->next < f->n && f->writes[w->next].mod_revision <= w->after)
		w->next++;
	*ret = &w->watch;
	return 0;
}

/* All there is in one batch. */
static int fake_watch_next(struct store_watch *watch, struct store_batch *ret, struct err *err)
{
	struct fake_watch *w = CONTAINER_OF(watch, struct fake_watch, watch);
	struct fake *f = fake_of(watch->store);
	int r = 0;

	while (w->next == f->n && !f->progress && w->after >= f->compacted)
		if ((r = fiber_cond_wait(&f->filled, err)) < 0)
			return r;
	f->progress = false;
	if (w->after < f->compacted)
		return err_set(err, ERR_EXPIRED, "compacted");
	struct arena *memory = store_memory_new();
	*ret = (struct store_batch){ .revision = f->revision, .memory = memory,
				     .events = ARENA_ARRAY(memory, struct store_event, f->n - w->next + 1) };
	for (; w->next < f->n; w->next++) {
		const struct store_kv *kv = &f->writes[w->next];
		if (kv->value)
			store_value_ref(kv->value);
		ret->events[ret->n++] = (struct store_event){ .deleted = !kv->value, .kv = *kv };
	}
	w->after = f->revision;
	f->batches++;
	return 0;
}

static void fake_watch_progress(struct store_watch *w)
{
	struct fake *f = fake_of(w->store);
	f->progress = true;
	fiber_cond_signal(&f->filled);
}

static void fake_watch_free(struct store_watch *w) { free(CONTAINER_OF(w, struct fake_watch, watch)); }
static void fake_stats(struct store *s, struct store_stats *ret) { ret->revision = fake_of(s)->revision; }

static struct fake *fake_new(const char *name)
{
	struct fake *f = mem_zalloc(sizeof *f);

	log_set_level(LOG_LEVEL_OFF);
	f->engine = (struct store_engine){
		.name = name, .range = fake_range, .revision = fake_revision, .watch_open = fake_watch_open,
		.watch_next = fake_watch_next, .watch_progress = fake_watch_progress, .watch_free = fake_watch_free, .stats = fake_stats,
	};
	f->store.engine = &f->engine;
	f->revision = 1;
	fiber_cond_init(&f->filled, "writes");
	kinds_init(&f->kinds, NULL, NULL);
	f->cache = cache_new(&f->store, &f->kinds);
	return f;
}

static void fake_free(struct fake *f)
{
	if (f->runner)
		fiber_stop(f->runner);
	cache_free(f->cache);
	kinds_done(&f->kinds);
	for (size_t i = 0; i < f->n; i++)
		store_value_unref(f->writes[i].value);
	free(f);
	log_set_level(LOG_LEVEL_INFO);
}

/* Takes the value over; NULL deletes. */
static void fake_write(struct fake *f, const char *key, struct store_value *value)
{
	CHECK(f->n < FAKE_WRITES);
	f->writes[f->n++] = (struct store_kv){ .key = str_of(key), .value = value, .mod_revision = ++f->revision };
	fiber_cond_signal(&f->filled);
}

static void fake_put(struct fake *f, const char *key, const char *json) { fake_write(f, key, store_value_new(str_of(json))); }

static int run_cache(void *arg) { return cache_run(arg, &(struct err)ERR_INIT); }

static void fake_run(struct fake *f)
{
	f->runner = start(run_cache, f->cache);
	fiber_settle();
}

#define MAP(name, value) \
	"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name "\"},\"data\":{\"k\":\"" value "\"}}"
#define MAP_KEY(name) "/registry/configmaps/d/" name

static struct kind *maps_of(const struct fake *f) { return kinds_find(&f->kinds, STR(""), STR("configmaps")); }

static str map_value(const struct fake *f, const char *key)
{
	struct object *o = cache_get(maps_of(f), str_of(key));
	return o ? val_as_str(val_find(val_get(o->val, data), STR("k"))) : STR("none");
}

/* ---- loading and following ---- */

FIBER_TEST(cache_holds_what_the_store_has)
{
	struct fake *f = fake_new("sqlite");

	fake_put(f, MAP_KEY("a"), MAP("a", "1"));
	fake_put(f, MAP_KEY("b"), MAP("b", "1"));
	fake_put(f, MAP_KEY("c"), "k8s:enc:nobody-knows");
	fake_put(f, MAP_KEY("d"), MAP("d", "1"));
	fake_put(f, "/registry/masterleases/1.2.3.4", "{}");
	fake_put(f, "/registry/minions/n", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}");
	CHECK(!cache_is_ready(f->cache));
	fake_run(f);
	CHECK(cache_is_ready(f->cache) && f->ranges == 3);
	CHECK_INT(cache_revision(f->cache), 7);
	CHECK_INT(cache_undecodable(f->cache), 2);
	CHECK_INT(omap_len(maps_of(f)->objects), 3);
	CHECK_STR(val_str(cache_get(maps_of(f), STR("d/d"))->val, metadata, resourceVersion), "5");

	fake_put(f, MAP_KEY("a"), MAP("a", "2"));
	fake_write(f, MAP_KEY("b"), NULL);
	fake_write(f, MAP_KEY("c"), NULL);
	fake_put(f, MAP_KEY("e"), MAP("e", "1"));
	fiber_settle();
	CHECK_INT(cache_revision(f->cache), 11);
	CHECK_STR(map_value(f, "d/a"), "2");
	CHECK_STR(map_value(f, "d/b"), "none");
	CHECK_STR(map_value(f, "d/e"), "1");
	CHECK_INT(maps_of(f)->changed, 11);
	fake_free(f);
}

FIBER_TEST(cache_defaults_and_converts_what_it_reads)
{
	struct fake *f = fake_new("sqlite");
	struct kind *scalers = kinds_find(&f->kinds, STR("autoscaling"), STR("horizontalpodautoscalers"));

	fake_put(f, "/registry/horizontalpodautoscalers/d/x",
		 "{\"kind\":\"HorizontalPodAutoscaler\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"name\":\"x\",\"namespace\":\"d\"},"
		 "\"spec\":{\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":\"w\"},\"maxReplicas\":3}}");
	fake_run(f);
	struct object *o = cache_get(scalers, STR("d/x"));
	CHECK(o);
	CHECK_STR(val_str(o->val, apiVersion), "autoscaling/v2");
	CHECK_INT(val_int(o->val, spec, minReplicas), 1);
	CHECK_INT(val_len(val_get(o->val, spec, metrics)), 1);
	fake_free(f);
}

FIBER_TEST(cache_uses_the_object_that_was_written)
{
	struct fake *f = fake_new("sqlite");
	struct arena a = ARENA_INIT;
	struct val v;
	struct store_value *value;

	fake_run(f);
	CHECK(json_decode(&a, STR(MAP("a", "1")), &(struct json_decode_options){ .type = TYPE(core_v1, ConfigMap) }, &v, NULL) == 0);
	struct object *o = object_new(maps_of(f), STR("d/a"), v);
	CHECK(cache_encode(o, &value, NULL) == 0);
	CHECK(proto_is_envelope(store_value_str(value)));
	fake_write(f, MAP_KEY("a"), store_value_ref(value));
	fiber_settle();
	CHECK(cache_get(maps_of(f), STR("d/a")) == o && o->revision == f->revision);
	/* The same value again is the same object at another revision. */
	fake_write(f, MAP_KEY("a"), value);
	fiber_settle();
	CHECK(cache_get(maps_of(f), STR("d/a")) != o);
	CHECK_INT(cache_get(maps_of(f), STR("d/a"))->revision, f->revision);

	/* Encoded once more, it has no trace of its revision. */
	struct store_value *again;
	struct object *read;
	CHECK(cache_encode(o, &again, NULL) == 0);
	CHECK(str_eq(store_value_str(again), store_value_str(value)));
	CHECK(cache_decode(maps_of(f), STR("d/a"), &(struct store_kv){ .value = again, .mod_revision = 77 }, &read, NULL) == 0);
	CHECK_STR(val_str(read->val, metadata, resourceVersion), "77");
	CHECK(val_equal(val_get(read->val, data), val_get(o->val, data)));
	object_unref(read);
	store_value_unref(again);
	object_unref(o);
	arena_done(&a);
	fake_free(f);
}

TEST(cache_stores_json_where_kubernetes_does)
{
	struct kinds k;
	struct arena a = ARENA_INIT;
	struct val v;
	struct store_value *value;
	str text = STR("{\"kind\":\"APIService\",\"apiVersion\":\"apiregistration.k8s.io/v1\",\"metadata\":{\"name\":\"v1.apps\"},"
		       "\"spec\":{\"groupPriorityMinimum\":1,\"versionPriority\":2},\"status\":{}}\n");

	kinds_init(&k, NULL, NULL);
	struct kind *kind = kinds_find(&k, STR("apiregistration.k8s.io"), STR("apiservices"));
	CHECK(json_decode(&a, text, &(struct json_decode_options){ .type = kind->hub }, &v, NULL) == 0);
	struct object *o = object_new(kind, STR("v1.apps"), v);
	CHECK(cache_encode(o, &value, NULL) == 0);
	CHECK_STR(store_value_str(value), text.p);
	CHECK_STR(cache_store_key(&a, kind, o->key), "/registry/apiregistration.k8s.io/apiservices/v1.apps");
	object_unref(o);
	store_value_unref(value);
	arena_done(&a);
	kinds_done(&k);
}

/* ---- watching ---- */

struct follower {
	struct cache_watcher watcher;
	unsigned woken;
	struct follower *ends; /* another one that it ends when it is woken */
};

static void follower_wake(struct cache_watcher *w)
{
	struct follower *f = CONTAINER_OF(w, struct follower, watcher);

	f->woken++;
	if (f->ends)
		cache_watch_end(&f->ends->watcher);
}

/* What comes, as "A3 M4 D5". */
static str follower_read(struct arena *a, struct follower *f)
{
	str text = STR("");
	const struct cache_event *e;

	while ((e = cache_watch_next(&f->watcher)))
		text = arena_printf(a, STR_FMT "%s%c%lld", STR_ARG(text), text.n ? " " : "", "AMD"[e->type], (long long)e->revision);
	return text;
}

FIBER_TEST(cache_tells_watchers_once_per_batch)
{
	struct fake *f = fake_new("sqlite");
	struct arena a = ARENA_INIT;
	struct follower w = { .watcher.wake = follower_wake }, late = w, other = w;

	fake_run(f);
	CHECK(cache_watch_begin(maps_of(f), 1, &w.watcher, NULL) == 0);
	CHECK(cache_watch_begin(kinds_find(&f->kinds, STR(""), STR("secrets")), 1, &other.watcher, NULL) == 0);
	CHECK(!cache_watch_next(&w.watcher));
	fake_put(f, MAP_KEY("a"), MAP("a", "1"));
	fake_put(f, MAP_KEY("a"), MAP("a", "2"));
	fiber_settle();
	CHECK_INT(w.woken, 1);
	CHECK_INT(other.woken, 0);
	/* Not again before it has read all. */
	fake_write(f, MAP_KEY("a"), NULL);
	fiber_settle();
	CHECK_INT(w.woken, 1);

	CHECK(cache_watch_begin(maps_of(f), 2, &late.watcher, NULL) == 0);
	CHECK_STR(follower_read(&a, &w), "A2 M3 D4");
	CHECK_STR(follower_read(&a, &late), "M3 D4");
	cache_watch_end(&late.watcher);

	/* A deletion shows the last state at the revision of the deletion, and keeps it while it is looked at. */
	CHECK(cache_watch_begin(maps_of(f), 3, &late.watcher, NULL) == 0);
	const struct cache_event *e = cache_watch_next(&late.watcher);
	window_restart(maps_of(f), f->revision);
	CHECK_INT(e->object->revision, 4);
	CHECK_INT(e->before->revision, 3);
	CHECK_STR(val_str(e->object->val, metadata, resourceVersion), "4");
	CHECK(!cache_watch_next(&late.watcher) && late.watcher.ended);

	cache_watch_end(&w.watcher);
	cache_watch_end(&late.watcher);
	cache_watch_end(&other.watcher);
	cache_watch_end(&(struct cache_watcher){ 0 });
	arena_done(&a);
	fake_free(f);
}

FIBER_TEST(cache_watchers_may_end_each_other)
{
	struct fake *f = fake_new("sqlite");
	struct follower w[3] = { 0 };

	fake_run(f);
	for (size_t i = 0; i < ARRAY_LEN(w); i++) {
		w[i].watcher.wake = follower_wake;
		CHECK(cache_watch_begin(maps_of(f), 1, &w[i].watcher, NULL) == 0);
	}
	w[0].ends = &w[1];
	w[2].ends = &w[0];
	fake_put(f, MAP_KEY("a"), MAP("a", "1"));
	fiber_settle();
	CHECK(w[0].woken == 1 && w[1].woken == 0 && w[2].woken == 1);
	CHECK(cache_watch_next(&w[2].watcher));
	cache_watch_end(&w[2].watcher);
	CHECK(list_empty(&maps_of(f)->watchers));
	fake_free(f);
}

FIBER_TEST(cache_watch_in_the_future_waits_for_it)
{
	struct fake *f = fake_new("sqlite");
	struct arena a = ARENA_INIT;
	struct follower w = { .watcher.wake = follower_wake };

	fake_run(f);
	CHECK(cache_watch_begin(maps_of(f), 3, &w.watcher, NULL) == 0);
	for (int i = 0; i < 3; i++)
		fake_put(f, MAP_KEY("a"), MAP("a", "1"));
	fiber_settle();
	CHECK_STR(follower_read(&a, &w), "M4");
	cache_watch_end(&w.watcher);
	arena_done(&a);
	fake_free(f);
}

static void window_fill(struct kind *kind, struct object *o, int64_t first, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		window_add(kind, CACHE_MODIFIED, first + i, object_ref(o), object_ref(o));
}

static struct object *map_object(struct kind *kind)
{
	struct object *o = object_new(kind, STR("d/a"), VAL_EMPTY_OBJECT);
	object_set_revision(o, 1);
	return o;
}

TEST(cache_window_keeps_what_is_young)
{
	struct kind kind = { .floor = 10 };
	struct cache_watcher slow = { 0 }, w = { 0 };
	struct err err = ERR_INIT;
	struct object *o = map_object(&kind);

	clock_virtual_set(1000 * NS_PER_S, 1000 * NS_PER_S);
	list_init(&kind.watchers);
	CHECK(cache_watch_begin(&kind, 10, &slow, NULL) == 0);
	window_fill(&kind, o, 11, 300);
	CHECK_INT(kind.next_event - kind.first_event, 300);
	CHECK(cache_watch_next(&slow)->revision == 11);

	/* Old events go when there are more than enough. */
	clock_virtual_set(1091 * NS_PER_S, 1091 * NS_PER_S);
	window_trim(&kind);
	CHECK_INT(kind.next_event - kind.first_event, WINDOW_EVENTS_MIN);
	CHECK_INT(cache_watch_begin(&kind, 209, &w, &err), -ERR_EXPIRED);
	CHECK_STR(err_str(&err), "too old resource version: 209 (210)");
	CHECK(cache_watch_begin(&kind, 210, &w, &err) == 0);
	CHECK_INT(cache_watch_next(&w)->revision, 211);
	cache_watch_end(&w);
	CHECK(!cache_watch_next(&slow) && slow.ended);
	cache_watch_end(&slow);

	/* The ring has a maximum, and gives memory back. */
	window_fill(&kind, o, 311, WINDOW_EVENTS_MAX + 1);
	CHECK_INT(kind.next_event - kind.first_event, WINDOW_EVENTS_MAX);
	CHECK_INT(kind.floor, 311);
	clock_virtual_set(2000 * NS_PER_S, 2000 * NS_PER_S);
	for (int i = 0; i < 20; i++)
		window_trim(&kind);
	CHECK(kind.events_cap < 4 * WINDOW_EVENTS_MIN);
	CHECK_INT(o->refs, 1 + 2 * WINDOW_EVENTS_MIN);
	window_done(&kind);
	CHECK_INT(o->refs, 1);
	object_unref(o);
	clock_virtual_off();
}

FIBER_TEST(cache_loads_again_when_events_were_missed)
{
	struct fake *f = fake_new("sqlite");
	struct follower w = { .watcher.wake = follower_wake };
	struct err err = ERR_INIT;

	fake_put(f, MAP_KEY("a"), MAP("a", "1"));
	fake_put(f, MAP_KEY("b"), MAP("b", "1"));
	fake_run(f);
	struct object *a = object_ref(cache_get(maps_of(f), STR("d/a")));
	CHECK(cache_watch_begin(maps_of(f), 3, &w.watcher, NULL) == 0);
	f->writes[f->n++] = (struct store_kv){ .key = STR(MAP_KEY("b")), .mod_revision = ++f->revision };
	f->compacted = f->revision;
	fiber_cond_signal(&f->filled);
	fiber_settle();
	CHECK(cache_is_ready(f->cache));
	CHECK_INT(cache_revision(f->cache), 4);
	CHECK(cache_get(maps_of(f), STR("d/a")) == a); /* unchanged: not decoded again */
	CHECK(!cache_get(maps_of(f), STR("d/b")));
	CHECK_INT(w.woken, 1);
	CHECK(!cache_watch_next(&w.watcher) && w.watcher.ended);
	cache_watch_end(&w.watcher);
	CHECK_INT(cache_watch_begin(maps_of(f), 3, &w.watcher, &err), -ERR_EXPIRED);
	CHECK_STR(err_str(&err), "too old resource version: 3 (4)");
	object_unref(a);
	fake_free(f);
}

/* ---- waiting ---- */

static int wait_current(void *arg) { return cache_wait_current(arg, &(struct err)ERR_INIT); }

FIBER_TEST(cache_waits_for_a_revision)
{
	struct fake *f = fake_new("sqlite");

	fake_run(f);
	CHECK_INT(cache_wait(f->cache, 1, 0, NULL), 0);
	CHECK_INT(cache_wait(f->cache, 3, 20, NULL), -ERR_TIMEOUT);
	/* A write to another key is learnt by asking. */
	f->revision = 3;
	CHECK_INT(cache_wait(f->cache, 3, 5000, NULL), 0);
	CHECK_INT(cache_revision(f->cache), 3);
	fake_free(f);
}

FIBER_TEST(cache_shares_the_question_for_the_revision)
{
	struct fake *f = fake_new("etcd");
	struct fiber *first, *others[5];

	fake_run(f);
	f->revision = 9;
	first = start(wait_current, f->cache);
	fiber_settle();
	/* The first question was asked before these came; they share the second. */
	f->revision = 12;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		others[i] = start(wait_current, f->cache);
	CHECK_INT(join(first), 0);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		CHECK_INT(join(others[i]), 0);
	CHECK_INT(f->questions, 2);
	CHECK_INT(cache_revision(f->cache), 12);

	/* One that gives up does not take the others with it; a store that fails is not asked by each of them. */
	first = start(wait_current, f->cache);
	fiber_settle();
	others[0] = start(wait_current, f->cache);
	others[1] = start(wait_current, f->cache);
	fiber_settle();
	fiber_stop(first);
	f->failing = true;
	CHECK_INT(join(others[0]), -ERR_UNAVAILABLE);
	CHECK_INT(join(others[1]), -ERR_UNAVAILABLE);
	CHECK_INT(f->questions, 4);
	fake_free(f);
}

/* ---- with a file ---- */

static void remove_store(const char *folder, const char *path)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		(void)unlink(arena_printf(&a, "%s%s", path, ends[i]).p);
	CHECK_INT(rmdir(folder), 0);
	arena_done(&a);
}

/* Writes as a request does, and reads at once. */
static void write_and_read(struct store *store, struct cache *c, struct kind *kind, struct arena *a)
{
	struct val v;
	struct store_value *value;
	int64_t revision;
	str key = cache_store_key(a, kind, STR("d/a"));

	CHECK(json_decode(a, STR(MAP("a", "1")), &(struct json_decode_options){ .type = kind->hub }, &v, NULL) == 0);
	struct object *o = object_new(kind, STR("d/a"), v);
	CHECK(cache_encode(o, &value, NULL) == 0);
	CHECK_INT(store_put(store, key, value, STORE_ABSENT, 0, &revision, NULL, NULL), 1);
	CHECK(cache_wait_current(c, NULL) == 0 && cache_revision(c) >= revision);
	CHECK(cache_get(kind, STR("d/a")) == o && o->revision == revision);
	store_value_unref(value);
	object_unref(o);

	CHECK_INT(store_put(store, key, value = store_value_new(STR(MAP("a", "2"))), revision, 0, NULL, NULL, NULL), 1);
	store_value_unref(value);
	CHECK(cache_wait_current(c, NULL) == 0);
	CHECK_STR(val_as_str(val_find(val_get(cache_get(kind, STR("d/a"))->val, data), STR("k"))), "2");
}

FIBER_TEST(cache_follows_a_store_on_disk)
{
	struct arena a = ARENA_INIT;
	const char *tmp = getenv("TMPDIR");
	char *folder = (char *)(uintptr_t)arena_printf(&a, "%s/c8s-cache-XXXXXX", tmp ? tmp : "/tmp").p;
	struct err err = ERR_INIT;
	struct kinds kinds;
	struct store *store;

	log_set_level(LOG_LEVEL_OFF);
	CHECK(mkdtemp(folder));
	struct store_options options = { .path = arena_printf(&a, "%s/store.db", folder).p };
	kinds_init(&kinds, NULL, NULL);
	struct kind *maps = kinds_find(&kinds, STR(""), STR("configmaps"));
	for (int round = 0; round < 2; round++) {
		if (store_open(&options, &store, &err) < 0)
			fail_msg("%s", err.msg);
		struct cache *c = cache_new(store, &kinds);
		CHECK_INT(cache_load(c, NULL), 0);
		CHECK_INT(omap_len(maps->objects), round);
		struct fiber *runner = start(run_cache, c);
		if (round == 0)
			write_and_read(store, c, maps, &a);
		CHECK_INT(fiber_stop(runner), -ERR_CANCELED);
		cache_free(c);
		store_free(store);
	}
	kinds_done(&kinds);
	remove_store(folder, options.path);
	arena_done(&a);
	log_set_level(LOG_LEVEL_INFO);
}
