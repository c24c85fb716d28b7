/*
 * Committing a write: the object goes to the store under the condition that nobody else was there since it was read. On
 * disk it is acknowledged; refused, the request begins again with what is stored now.
 */
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/meta.h"
#include "apiserver/metrics.h"
#include "apiserver/pipeline.h"
#include "apiserver/write.h"
#include "base/clock.h"
#include "codec/atoms.h"
#include "machinery/convert.h"

/* How often a name is made anew when it turns out to be taken. */
enum { NAME_ATTEMPTS = 8, CACHE_WAIT_MS = 3000 };

static void finish(struct request *q, bool stored)
{
	if (!q->begun)
		return;
	q->begun = false;
	q->endpoint->kind->hooks->finish(q, stored, q->old, q->object);
}

static int taken(struct request *q, struct val existing)
{
	bool generated = val_str(q->sent, metadata, generateName).n && !val_str(q->sent, metadata, name).n;
	if (generated && q->attempt + 1 < NAME_ATTEMPTS)
		return STAGE_AGAIN;
	str name = val_str(q->object, metadata, name);
	int r = fail_already_exists(q, q->group, q->resource, name);
	if (val_has(existing, metadata, deletionTimestamp))
		q->failure = val_with(q->arena, q->failure,
				      val_of_str(arena_join(q->arena, STR("object is being deleted: "), val_str(q->failure, message))),
				      message);
	return r;
}

/* Somebody else was faster: what is stored now becomes q->current. */
static int outrun(struct request *q, str key, const struct store_kv *now, struct err *err)
{
	struct kind *kind = q->endpoint->kind;
	bool creating = !q->current;
	object_unref(TAKE(q->current));
	if (now->value) {
		int r = cache_decode(kind, key, now, &q->current, err);
		if (r < 0)
			return r;
	}
	q->old = q->current ? q->current->val : VAL_EMPTY;
	if (creating && q->verb == REQUEST_CREATE) {
		struct val existing = q->old;
		int r = taken(q, existing);
		object_unref(TAKE(q->current));
		q->old = VAL_EMPTY;
		return r;
	}
	return STAGE_AGAIN;
}

/* Answers with q->object, which was not stored as it is, in the version that was asked for. */
static int show(struct request *q, int status, struct err *err)
{
	struct val shown;
	int r = convert_object(q->arena, q->object, q->type, q->endpoint->type, &shown, err);
	answer_val(q, status, shown, q->endpoint->type);
	return r;
}

/* The last finalizer is gone from an object that was to be removed: now it is. */
static bool is_finished(const struct request *q)
{
	if (!q->current || val_len(val_get(q->object, metadata, finalizers)) || !val_has(q->old, metadata, deletionTimestamp))
		return false;
	if (val_int(q->old, metadata, deletionGracePeriodSeconds) != 0)
		return false;
	bool is_namespace = str_eq(q->resource, STR("namespaces")) && !q->group.n;
	return !is_namespace || !val_len(val_get(q->object, spec, finalizers));
}

static int remove_finished(struct request *q, str store_key, struct err *err)
{
	int64_t revision;
	struct store_kv now = { .value = NULL };
	if (!q->dry_run) {
		int r = store_delete(q->server->store, store_key, q->current->revision, &revision, &now, err);
		if (r < 0)
			return r;
		if (r == 0 && now.value) {
			r = outrun(q, q->current->key, &now, err);
			store_value_unref(now.value);
			return r;
		}
		(void)cache_wait(q->server->cache, revision, CACHE_WAIT_MS, NULL);
	}
	finish(q, !q->dry_run);
	if (!q->dry_run && q->endpoint->kind->hooks->finish) /* and now it is removed, also when only its status was written */
		q->endpoint->kind->hooks->finish(q, true, q->object, VAL_EMPTY);
	return show(q, 200, err);
}

static int put(struct request *q, str key, struct val object, struct err *err)
{
	struct kind *kind = q->endpoint->kind;
	CLEANUP(object_unrefp) struct object *o = object_new(kind, key, object);
	struct store_value *value;
	int r = cache_encode(o, &value, err);
	if (r < 0)
		return r;
	int64_t revision, expect = q->current ? q->current->revision : STORE_ABSENT;
	struct store_kv now = { .value = NULL };
	int64_t begun_ns = clock_now_ns();
	r = store_put(q->server->store, cache_store_key(q->arena, kind, key), value, expect, kind->ttl_s, &revision, &now, err);
	metrics_store(q->server->metrics, kind, q->current ? METRICS_STORE_UPDATE : METRICS_STORE_CREATE, r < 0,
		      clock_now_ns() - begun_ns);
	store_value_unref(value);
	if (r == 0) {
		r = outrun(q, key, &now, err);
		store_value_unref(now.value);
		return r;
	}
	if (r < 0)
		return r;
	if (!o->revision)
		object_set_revision(o, revision);
	(void)cache_wait(q->server->cache, revision, CACHE_WAIT_MS, NULL);
	finish(q, true);
	answer_object(q, q->current ? 200 : 201, TAKE(o));
	return 0;
}

int write_commit(struct request *q, struct err *err)
{
	struct kind *kind = q->endpoint->kind;
	str name = val_str(q->object, metadata, name), namespace = val_str(q->object, metadata, namespace);
	str key = meta_key(q->arena, kind, namespace, name);
	if (q->verb == REQUEST_CREATE && !q->dry_run && val_str(q->object, metadata, resourceVersion).n)
		return fail_plain(q, "resourceVersion should not be set on objects to be created");
	if (is_finished(q))
		return remove_finished(q, cache_store_key(q->arena, kind, key), err);
	if (q->current && val_equal(cache_stored_form(q->arena, kind, q->object), q->old)) {
		finish(q, true);
		answer_object(q, 200, object_ref(q->current));
		return 0;
	}
	if (q->dry_run) {
		struct object *there = q->current ? NULL : cache_get(kind, key);
		if (there)
			return taken(q, there->val);
		return show(q, q->current ? 200 : 201, err);
	}
	struct val object = meta_put(q->arena, q->object, A_resourceVersion, VAL_EMPTY);
	return put(q, key, cache_stored_form(q->arena, kind, object), err);
}
