/*
 * A deployment owns ReplicaSets, one for each template that it has had, and moves replicas from the old ones to the one of the present
 * template. What to do is deployment_plan's to say; here it is seen, done and told. A write that met a newer object ends the sync: the
 * newer one comes by watch, and with it the next sync.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/deployment_plan.h"
#include "controllers/owner.h"
#include "controllers/owners.h"
#include "controllers/pod_control.h"
#include "machinery/selector.h"

struct deployments {
	struct informer *deployments, *sets, *pods;
	struct owners of_sets, of_pods;
};

/* ---- being told ---- */

static void add_owner(struct controller *c, struct arena *a, struct val set)
{
	const struct deployments *s = c->state;
	struct frozen *d = owner_of(&s->of_sets, set);

	if (d)
		controller_add(c, object_key(a, d->val));
}

static void on_set(struct controller *c, struct frozen *old, struct frozen *object)
{
	const struct deployments *s = c->state;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (old == object)
		return;
	if (old)
		add_owner(c, &a, old->val);
	if (!object)
		return;
	if (val_exists(owner_controller(object->val))) {
		add_owner(c, &a, object->val);
	} else if (!val_has(object->val, metadata, deletionTimestamp)) {
		bool relabeled = !old || !val_equal(val_get(old->val, metadata, labels), val_get(object->val, metadata, labels));
		if (relabeled || val_exists(owner_controller(old->val)))
			owners_add_adopters(c, &s->of_sets, object->val);
	}
}

/* One that recreates waits for the last of its old pods to go. */
static void on_pod(struct controller *c, struct frozen *old, struct frozen *object)
{
	const struct deployments *s = c->state;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (object)
		return;
	struct frozen *set = owner_of(&s->of_pods, old->val);
	struct frozen *d = set ? owner_of(&s->of_sets, set->val) : NULL;
	if (d && str_eq(val_str(d->val, spec, strategy, type), STR("Recreate")))
		controller_add(c, object_key(&a, d->val));
}

/* ---- seeing ---- */

static void gather(struct controller *c, struct arena *a, struct informer_iter it, struct val_builder *list)
{
	struct frozen *set;

	while ((set = informer_next(&it)))
		val_add_item(list, controller_hold(c, a, controller_latest(c, set)));
	informer_iter_done(&it);
}

/* (suspends) Its ReplicaSets, after adopting and releasing. One that selects everything gets none. */
static int claim_sets(struct controller *c, struct arena *a, struct val d, struct val *ret, struct err *err)
{
	const struct deployments *s = c->state;
	struct val_builder list = val_builder(a);
	struct selector selector;
	int r = selector_of_object(a, val_get(d, spec, selector), &selector, err);

	*ret = VAL_EMPTY_LIST;
	if (r < 0)
		return err_wrap(err, r, "deployment " STR_FMT "/" STR_FMT " has invalid label selector", STR_ARG(val_str(d, metadata, namespace)),
				STR_ARG(val_str(d, metadata, name)));
	if (selector_is_everything(&selector))
		return 0;
	gather(c, a, pods_of_owner(s->sets, val_str(d, metadata, uid)), &list);
	gather(c, a, pods_without_owner(s->sets, val_str(d, metadata, namespace)), &list);
	return controller_claim(c, a, TYPE(apps_v1, ReplicaSet), val_end_list(&list), d, "apps/v1", "Deployment", val_get(d, spec, selector), NULL, ret, err);
}

static const bool *busy_sets(const struct deployments *s, struct arena *a, struct val sets)
{
	bool *busy = ARENA_ARRAY(a, bool, val_len(sets));
	size_t i = 0;

	VAL_EACH(set, sets) {
		busy[i] = false;
		INFORMER_EACH(pod, pods_of_owner(s->pods, val_str(*set, metadata, uid)))
			busy[i] |= pod_is_active(pod->val) || pod_is_terminating(pod->val);
		i++;
	}
	return busy;
}

/* ---- doing ---- */

static int write_status(struct controller *c, struct val d, struct err *err)
{
	int r = controller_write(c, TYPE(apps_v1, Deployment), d, "status", err);

	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* The name is taken: by our own that the informer does not show yet, or by another, so that the hash has to become a different one. */
static int name_is_taken(struct controller *c, struct arena *a, struct val d, struct val set, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *other = NULL;
	int r = client_get(c->client, TYPE(apps_v1, ReplicaSet), val_str(set, metadata, namespace), val_str(set, metadata, name), &other, err);

	if (r == -ERR_NOT_FOUND || (r == 0 && owner_is(other->val, d) &&
				    deployment_template_equal(a, val_get(other->val, spec, template), val_get(d, spec, template))))
		return err_set(err, ERR_CONFLICT, "the ReplicaSet is not seen yet");
	if (r == 0 && (r = write_status(c, deployment_collided(a, d), err)) == 0)
		log_info("hash collision of a deployment, counting it", KV("deployment", object_key(a, d)), KV("replicaSet", val_str(set, metadata, name)));
	return r;
}

static int create_failed(struct controller *c, struct arena *a, struct val d, struct val set, struct err *err)
{
	str name = val_str(set, metadata, name);
	int r = -(int)err->code;

	if (r == -ERR_CANCELED || error_is_namespace_ending(err))
		return r == -ERR_CANCELED ? r : 0;
	struct val told = deployment_failed(a, d, name, err->msg, clock_wall_ns());
	if (!val_same(told, d))
		(void)write_status(c, told, NULL);
	controller_event(c, d, true, "ReplicaSetCreateError", "Failed to create new replica set \"" STR_FMT "\": %s", STR_ARG(name), err->msg);
	return r;
}

static void tell_scaled(struct controller *c, struct val d, const struct deployment_write *w)
{
	if (w->from != w->to)
		controller_event(c, d, false, "ScalingReplicaSet", "Scaled %s replica set " STR_FMT " from %lld to %lld", w->from < w->to ? "up" : "down",
				 STR_ARG(val_str(w->set, metadata, name)), (long long)w->from, (long long)w->to);
}

/* 1: nothing more can be done in this sync. */
static int do_write(struct controller *c, struct arena *a, struct val d, const struct deployment_write *w, struct err *err)
{
	const struct type *type = TYPE(apps_v1, ReplicaSet);
	int r = 0;

	switch (w->verb) {
	case DEPLOYMENT_CREATE:
		r = client_create(c->client, type, w->set, NULL, NULL, err);
		if (r < 0) {
			r = r == -ERR_ALREADY_EXISTS ? name_is_taken(c, a, d, w->set, err) : create_failed(c, a, d, w->set, err);
			return r < 0 ? r : 1;
		}
		tell_scaled(c, d, w);
		break;
	case DEPLOYMENT_UPDATE:
		r = controller_write(c, type, w->set, "", err);
		if (r == 0)
			tell_scaled(c, d, w);
		break;
	case DEPLOYMENT_DELETE:
		r = client_delete(c->client, type, val_str(w->set, metadata, namespace), val_str(w->set, metadata, name), NULL, err);
		r = r == -ERR_NOT_FOUND ? 0 : r;
		break;
	}
	return r;
}

static int carry_out(struct controller *c, struct arena *a, str key, struct val d, const struct deployment_plan *plan, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < plan->n; i++)
		if ((r = do_write(c, a, d, &plan->writes[i], err)) != 0)
			return MIN(r, 0);
	if (plan->reason && plan->warning)
		controller_event(c, d, true, plan->reason, STR_FMT, STR_ARG(plan->message));
	if (val_exists(plan->changed) && (r = controller_write(c, TYPE(apps_v1, Deployment), plan->changed, "", err)) < 0)
		return r;
	if (plan->reason && !plan->warning)
		controller_event(c, d, false, plan->reason, STR_FMT, STR_ARG(plan->message));
	if (val_exists(plan->told))
		r = write_status(c, plan->told, err);
	if (plan->again_ms >= 0)
		controller_add_after(c, key, plan->again_ms);
	return r;
}

static int sync_deployment(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct deployments *s = c->state;
	struct frozen *found = informer_get(s->deployments, key);
	struct deployment_seen seen = { 0 };
	struct deployment_plan plan;
	int r;

	if (!found)
		return 0;
	seen.deployment = controller_hold(c, a, controller_latest(c, found));
	if ((r = claim_sets(c, a, seen.deployment, &seen.sets, err)) < 0)
		return r;
	if (str_eq(val_str(seen.deployment, spec, strategy, type), STR("Recreate")))
		seen.busy = busy_sets(s, a, seen.sets);
	seen.now_ns = clock_wall_ns();
	if ((r = deployment_plan(a, &seen, &plan, err)) < 0)
		return r;
	return carry_out(c, a, key, seen.deployment, &plan, err);
}

/* ---- life ---- */

static int start(struct controller *c, struct err *err)
{
	struct deployments *s = mem_zalloc(sizeof *s);

	(void)err;
	*s = (struct deployments){ .deployments = controller_informer(c, TYPE(apps_v1, Deployment)),
		.sets = controller_informer(c, TYPE(apps_v1, ReplicaSet)), .pods = controller_informer(c, TYPE(core_v1, Pod)) };
	c->state = s;
	c->sync = sync_deployment;
	s->of_sets = (struct owners){ .all = s->deployments, .kind = "Deployment" };
	s->of_pods = (struct owners){ .all = s->sets, .kind = "ReplicaSet" };
	informer_index(s->deployments, "namespace", informer_by_namespace);
	pod_control_index(s->sets);
	pod_control_index(s->pods);
	controller_watch(c, s->deployments, controller_key_self);
	controller_watch(c, s->sets, on_set);
	controller_watch(c, s->pods, on_pod);
	return 0;
}

static void stop(struct controller *c) { free(c->state); }

const struct controller_kind controller_deployment = { .name = "deployment-controller", .start = start, .workers = 5, .stop = stop };
