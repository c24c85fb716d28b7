#include "apiserver/change.h"

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/meta.h"
#include "codec/atoms.h"

enum { ATTEMPTS_MAX = 100, CACHE_WAIT_MS = 3000 };

static int load(struct request *q, struct kind *kind, str key, bool fresh, struct object **ret, struct err *err)
{
	*ret = NULL;
	if (!fresh) {
		int r = cache_wait_current(q->server->cache, err);
		struct object *o = r < 0 ? NULL : cache_get(kind, key);
		*ret = o ? object_ref(o) : NULL;
		return r;
	}
	struct store_kv kv;
	int r = store_get(q->server->store, cache_store_key(q->arena, kind, key), &kv, NULL, err);
	if (r > 0) {
		r = cache_decode(kind, key, &kv, ret, err);
		store_value_unref(kv.value);
	}
	return r < 0 ? r : 0;
}

/* 1: stored; 0: somebody else was faster. */
static int put(struct request *q, struct object *current, struct val object, struct object **ret, struct err *err)
{
	struct kind *kind = current->kind;
	object = meta_put(q->arena, object, A_resourceVersion, VAL_EMPTY);
	CLEANUP(object_unrefp) struct object *o = object_new(kind, current->key, cache_stored_form(q->arena, kind, object));
	struct store_value *value;
	int r = cache_encode(o, &value, err);
	if (r < 0)
		return r;
	int64_t revision;
	r = store_put(q->server->store, cache_store_key(q->arena, kind, current->key), value, current->revision, kind->ttl_s, &revision,
		      NULL, err);
	store_value_unref(value);
	if (r <= 0)
		return r;
	if (!o->revision)
		object_set_revision(o, revision);
	(void)cache_wait(q->server->cache, revision, CACHE_WAIT_MS, NULL);
	*ret = TAKE(o);
	return 1;
}

/* 1: done; 0: again. */
static int attempt(struct request *q, struct kind *kind, str key, bool fresh, change_fn change, void *arg, struct object **ret,
		   struct err *err)
{
	CLEANUP(object_unrefp) struct object *current = NULL;
	int r = load(q, kind, key, fresh, &current, err);
	if (r < 0)
		return r;
	if (!current)
		return fail_not_found(q, kind->group, kind->resource, str_skip(key, (size_t)(str_rchr(key, '/') + 1)));
	struct val object = current->val;
	r = change(q, &object, arg);
	if (r < 0 && !fresh) { /* perhaps the cache is behind: the newest decides */
		q->failure = VAL_EMPTY;
		return 0;
	}
	if (r < 0 || (r = val_canonical(q->arena, object, kind->hub, NULL, &object, err)) < 0)
		return r;
	if (q->dry_run || val_equal(object, current->val)) {
		*ret = TAKE(current);
		return 1;
	}
	return put(q, current, object, ret, err);
}

int change_object(struct request *q, struct kind *kind, str key, change_fn change, void *arg, struct object **ret, struct err *err)
{
	CLEANUP(object_unrefp) struct object *after = NULL;
	int r = 0;
	for (unsigned i = 0; i < ATTEMPTS_MAX && r == 0; i++)
		r = attempt(q, kind, key, i > 0, change, arg, &after, err);
	if (r == 0)
		return err_set(err, ERR_CONFLICT, "the object changes too fast to be written");
	if (r > 0 && ret)
		*ret = TAKE(after);
	return r < 0 ? r : 0;
}
