/* Between requests, the store and the cache: the one way in which objects are read and written. */
#include "apiserver/stored.h"

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/metrics.h"
#include "base/clock.h"

/* How long a write waits for the cache: it is done already, and reads that must see it wait for themselves. */
enum { CACHE_WAIT_MS = 3000 };

static void count(struct request *q, const struct kind *kind, enum metrics_store_op op, int r, int64_t begun_ns)
{
	metrics_store(q->server->metrics, kind, op, r < 0, clock_now_ns() - begun_ns);
}

int stored_get(struct request *q, struct kind *kind, str key, bool fresh, struct object **ret, struct err *err)
{
	*ret = NULL;
	if (!fresh) {
		int r = cache_wait_current(q->server->cache, err);
		struct object *o = r < 0 ? NULL : cache_get(kind, key);
		*ret = o ? object_ref(o) : NULL;
		return r;
	}
	struct store_kv kv;
	int64_t begun_ns = clock_now_ns();
	int r = store_get(q->server->store, cache_store_key(q->arena, kind, key), &kv, NULL, err);
	count(q, kind, METRICS_STORE_GET, r, begun_ns);
	if (r > 0) {
		r = cache_decode(kind, key, &kv, ret, err);
		store_value_unref(kv.value);
	}
	return r < 0 ? r : 0;
}

/* What is there instead of what was expected; takes the value over. 0, or an error. */
static int meanwhile(struct kind *kind, str key, struct store_kv *now, struct object **ret, struct err *err)
{
	int r = 0;
	if (ret)
		*ret = NULL;
	if (ret && now->value)
		r = cache_decode(kind, key, now, ret, err);
	store_value_unref(now->value);
	return r < 0 ? r : 0;
}

int stored_put(struct request *q, struct kind *kind, str key, struct val object, int64_t expect, struct object **ret,
	       struct err *err)
{
	CLEANUP(object_unrefp) struct object *o = object_new(kind, key, object);
	struct store_value *value;
	int r = cache_encode(o, &value, err);
	if (r < 0)
		return r;
	struct store_kv now = { .value = NULL };
	int64_t revision, begun_ns = clock_now_ns();
	r = store_put(q->server->store, cache_store_key(q->arena, kind, key), value, expect, kind->ttl_s, &revision, &now, err);
	count(q, kind, expect == STORE_ABSENT ? METRICS_STORE_CREATE : METRICS_STORE_UPDATE, r, begun_ns);
	store_value_unref(value);
	if (r <= 0)
		return r < 0 ? r : meanwhile(kind, key, &now, ret, err);
	if (!o->revision)
		object_set_revision(o, revision);
	(void)cache_wait(q->server->cache, revision, CACHE_WAIT_MS, NULL);
	if (ret)
		*ret = TAKE(o);
	return 1;
}

int stored_remove(struct request *q, struct object *o, int64_t *ret_revision, struct object **ret_now, struct err *err)
{
	struct store_kv now = { .value = NULL };
	int64_t begun_ns = clock_now_ns();
	int r = store_delete(q->server->store, cache_store_key(q->arena, o->kind, o->key), o->revision, ret_revision, &now,
			     err);
	count(q, o->kind, METRICS_STORE_DELETE, r, begun_ns);
	if (r <= 0)
		return r < 0 ? r : meanwhile(o->kind, o->key, &now, ret_now, err);
	(void)cache_wait(q->server->cache, *ret_revision, CACHE_WAIT_MS, NULL);
	return 1;
}
