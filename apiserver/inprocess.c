/*
 * A request that nobody sent: it is made up here, and runs through the steps of the pipeline that are left (inprocess.h).
 */
#include "apiserver/inprocess.h"

#include "apiserver/cache.h"
#include "apiserver/pipeline.h"
#include "apiserver/resets.h"
#include "apiserver/write.h"
#include "base/clock.h"
#include "codec/atoms.h"
#include "machinery/validate.h"

enum { ATTEMPTS_MAX = 100 };

/* What one write does before it is validated: makes q->object. STAGE_ANSWER: there is nothing to write. */
struct step {
	int (*run)(struct request *q, const struct step *step, struct err *err);
	struct val val;
	inprocess_change *change;
	void *arg;
};

static int begin(struct request *q, const struct inprocess *w, enum request_verb verb, str namespace, str name, struct arena *a,
		 struct err *err)
{
	static const str groups[] = { STR_INIT("system:masters"), STR_INIT("system:authenticated") };
	const struct kind *kind = kinds_find(&w->server->kinds, w->group, w->resource);
	*q = (struct request){
		.server = w->server,
		.arena = a,
		.begun_ns = clock_now_ns(),
		.begun_wall_ns = clock_wall_ns(),
		.verb = verb,
		.is_resource = true,
		.group = w->group,
		.resource = w->resource,
		.subresource = w->subresource,
		.namespace = namespace,
		.name = name,
		.user = { .name = STR("system:apiserver"), .groups = groups, .n_groups = ARRAY_LEN(groups) },
		.authenticated = true,
		.field_manager = w->manager,
		.force = true,
	};
	q->path = w->resource;
	q->endpoint = kind ? kinds_endpoint(&w->server->kinds, w->group, kind->hub->package->version, w->resource,
					    w->subresource) : NULL;
	if (!q->endpoint)
		return err_set(err, ERR_NOT_FOUND, STR_FMT " are not served", STR_ARG(w->resource));
	q->version = kind->hub->package->version;
	return 0;
}

static int end(struct request *q, int r, struct err *err)
{
	write_finish(q, false);
	object_unref(TAKE(q->current));
	answer_done(q);
	if (r >= 0)
		return 0;
	if (val_exists(q->failure))
		return err_set(err, (enum err_code)-r, STR_FMT, STR_ARG(val_str(q->failure, message)));
	return r;
}

static int write_steps(struct request *q, const struct step *step, struct err *err)
{
	for (q->attempt = 0; q->attempt < ATTEMPTS_MAX; q->attempt++) {
		int r = step->run(q, step, err);
		if (r != 0)
			return r < 0 ? r : 0;
		if ((r = stage_validate(q, err)) < 0 || (r = write_commit(q, err)) != STAGE_AGAIN)
			return r;
		write_finish(q, false);
	}
	return err_set(err, ERR_CONFLICT, "the object changes too fast");
}

/* ---- create ---- */

static struct val typed(struct request *q, struct val object)
{
	const struct type *t = q->endpoint->type;
	object = val_put(q->arena, object, A_apiVersion, val_of_str(type_api_version(q->arena, t)));
	return val_put(q->arena, object, A_kind, val_of_str(t->name));
}

static int make(struct request *q, const struct step *step, struct err *err)
{
	int r = val_canonical(q->arena, typed(q, step->val), q->endpoint->type, NULL, &q->sent, err);
	if (r == 0)
		r = default_object(q->arena, q->endpoint->type, q->sent, &q->sent, err);
	return r < 0 ? r : write_take(q, VAL_EMPTY, q->sent, false, err);
}

int inprocess_create(const struct inprocess *w, struct val object, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct request q;
	int r = begin(&q, w, REQUEST_CREATE, val_str(object, metadata, namespace), val_str(object, metadata, name), &a, err);
	return r < 0 ? r : end(&q, write_steps(&q, &(struct step){ .run = make, .val = object }, err), err);
}

/* ---- update and apply ---- */

static int load(struct request *q, struct val *ret_live, struct err *err)
{
	int r = q->attempt ? 0 : write_load(q, false, err);
	if (r < 0)
		return r;
	return q->current ? write_live(q, ret_live, err) : write_not_found(q);
}

static int take(struct request *q, struct val live, struct val object, bool managed, struct err *err)
{
	int r = val_canonical(q->arena, object, q->endpoint->type, NULL, &object, err);
	if (r == 0)
		r = default_object(q->arena, q->endpoint->type, object, &object, err);
	return r < 0 ? r : write_take(q, live, object, managed, err);
}

static int change(struct request *q, const struct step *step, struct err *err)
{
	struct val live;
	int r = load(q, &live, err);
	if (r < 0)
		return r;
	struct val object = step->change(q->arena, live, step->arg);
	return val_exists(object) ? take(q, live, object, false, err) : STAGE_ANSWER;
}

int inprocess_update(const struct inprocess *w, str namespace, str name, inprocess_change *fn, void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct request q;
	int r = begin(&q, w, REQUEST_UPDATE, namespace, name, &a, err);
	return r < 0 ? r : end(&q, write_steps(&q, &(struct step){ .run = change, .change = fn, .arg = arg }, err), err);
}

static int apply(struct request *q, const struct step *step, struct err *err)
{
	struct val live, object;
	int r = load(q, &live, err);
	if (r < 0)
		return r;
	struct apply_request req = apply_request_of(q, q->endpoint, q->endpoint->type, q->field_manager);
	r = apply_patch(q->arena, &req, live, step->val, true, &object, NULL, err);
	return r < 0 ? r : take(q, live, object, true, err);
}

int inprocess_apply(const struct inprocess *w, struct val patch, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct request q;
	int r = begin(&q, w, REQUEST_PATCH, val_str(patch, metadata, namespace), val_str(patch, metadata, name), &a, err);
	return r < 0 ? r : end(&q, write_steps(&q, &(struct step){ .run = apply, .val = val_sorted(&a, typed(&q, patch)) },
					       err), err);
}

/* ---- delete ---- */

int inprocess_delete(const struct inprocess *w, str namespace, str name, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct request q;
	int r = begin(&q, w, REQUEST_DELETE, namespace, name, &a, err);
	return r < 0 ? r : end(&q, write_delete(&q, err), err);
}
