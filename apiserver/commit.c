/*
 * Committing a write: the object goes to the store under the condition that nobody else was there since it was read. On
 * disk it is acknowledged; refused, the request begins again with what is stored now.
 */
#include "apiserver/admission/admission.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/meta.h"
#include "apiserver/pipeline.h"
#include "apiserver/stored.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "machinery/convert.h"

/* How often a name is made anew when it turns out to be taken, and after how long the client may try once more. */
enum { NAME_ATTEMPTS = 8, NAME_RETRY_S = 1 };

void write_finish(struct request *q, bool stored)
{
	admission_finish(q, stored);
	if (!q->begun)
		return;
	q->begun = false;
	q->endpoint->kind->hooks->finish(q, stored, q->old, q->object);
}

/* The name that a new object should have belongs to an existing one. */
static int taken(struct request *q, struct val existing)
{
	bool generates = val_str(q->sent, metadata, generateName).n;
	if (generates && !val_str(q->sent, metadata, name).n && q->attempt + 1 < NAME_ATTEMPTS)
		return STAGE_AGAIN;
	int r = fail_already_exists(q, q->group, q->resource, val_str(q->object, metadata, name));
	str message = val_str(q->failure, message);
	if (generates) {
		message = arena_join(q->arena, message,
				     STR(", the server was not able to generate a unique name for the object"));
		q->failure = val_with(q->arena, q->failure, val_of_int(NAME_RETRY_S), details, retryAfterSeconds);
	}
	if (val_has(existing, metadata, deletionTimestamp))
		message = arena_join(q->arena, STR("object is being deleted: "), message);
	q->failure = val_with(q->arena, q->failure, val_of_str(message), message);
	return r;
}

/* Somebody else was faster: what is stored now (the reference is taken over) becomes q->current. */
static int outrun(struct request *q, struct object *now)
{
	if (!q->current && q->verb == REQUEST_CREATE) {
		CLEANUP(object_unrefp) struct object *existing = now;
		return taken(q, existing ? existing->val : VAL_EMPTY);
	}
	write_finish(q, false); /* before the object goes that q->old and q->object stand on */
	object_unref(q->current);
	q->current = now;
	q->old = now ? now->val : VAL_EMPTY;
	q->object = VAL_EMPTY;
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

static int remove_finished(struct request *q, struct err *err)
{
	const struct kind_hooks *hooks = q->endpoint->kind->hooks;
	if (!q->dry_run) {
		int64_t revision;
		struct object *now;
		int r = stored_remove(q, q->current, &revision, &now, err);
		if (r < 0 || (r == 0 && now))
			return r < 0 ? r : outrun(q, now);
	}
	write_finish(q, !q->dry_run);
	if (!q->dry_run && hooks->finish) /* and now it is removed, also when only its status was written */
		hooks->finish(q, true, q->object, VAL_EMPTY);
	return show(q, 200, err);
}

static int put(struct request *q, str key, struct val object, struct err *err)
{
	struct object *now;
	int r = stored_put(q, q->endpoint->kind, key, object, q->current ? q->current->revision : STORE_ABSENT, &now, err);
	if (r < 0)
		admission_finish(q, true); /* it may be stored all the same */
	if (r <= 0)
		return r < 0 ? r : outrun(q, now);
	write_finish(q, true);
	answer_object(q, q->current ? 200 : 201, now);
	return 0;
}

/* Everything but writing it. */
static int commit_dry(struct request *q, str key, struct err *err)
{
	CLEANUP(object_unrefp) struct object *existing = NULL;
	int r = q->current ? 0 : stored_get(q, q->endpoint->kind, key, false, &existing, err);
	if (r < 0)
		return r;
	return existing ? taken(q, existing->val) : show(q, q->current ? 200 : 201, err);
}

int write_commit(struct request *q, struct err *err)
{
	struct kind *kind = q->endpoint->kind;
	str name = val_str(q->object, metadata, name), namespace = val_str(q->object, metadata, namespace);
	str key = meta_key(q->arena, kind, namespace, name);
	if (q->verb == REQUEST_CREATE && !q->dry_run && val_str(q->object, metadata, resourceVersion).n)
		return fail_plain(q, "resourceVersion should not be set on objects to be created");
	if (is_finished(q))
		return remove_finished(q, err);
	struct val object = cache_stored_form(q->arena, kind, q->object);
	if (q->current && val_equal(object, q->old)) {
		write_finish(q, true);
		answer_object(q, 200, object_ref(q->current));
		return 0;
	}
	return q->dry_run ? commit_dry(q, key, err) : put(q, key, object, err);
}
