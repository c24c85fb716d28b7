/*
 * StatefulSets. Expectations keep a set from being looked at before our copy shows what was done in the last look: a pod that was deleted a
 * moment ago must not be deleted again for the next one.
 */
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/labels.h"
#include "controllers/moment.h"
#include "controllers/owner.h"
#include "controllers/owners.h"
#include "controllers/pod_control.h"
#include "controllers/revision.h"
#include "controllers/stateful_set_plan.h"
#include "machinery/selector.h"

#define REVISION_HASH "controller.kubernetes.io/hash"

enum { CLAIMS_LOOK_MS = 1000 };

struct stateful_sets {
	struct informer *sets, *pods, *claims, *revisions;
	struct expectations *expectations;
	struct owners owners;
};

/* One sync. */
struct work {
	struct controller *c;
	struct stateful_sets *s;
	struct arena *arena;
	struct val set;
	str key;
	struct stateful_plan plan;
	size_t first;               /* step of the stage that runs */
};

/* ---- what changes concern ---- */

static void pod_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	const struct stateful_sets *s = c->state;
	owners_pod_changed(c, &s->owners, old, object);
}

static void set_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	const struct stateful_sets *s = c->state;
	owners_changed(c, &s->owners, old, object);
}

/* ---- claims ---- */

static struct val claim_named(void *arg, str name)
{
	struct work *w = arg;
	str key = arena_printf(w->arena, STR_FMT "/" STR_FMT, STR_ARG(val_str(w->set, metadata, namespace)), STR_ARG(name));
	struct frozen *claim = informer_get(w->s->claims, key);
	return claim ? controller_hold(w->c, w->arena, claim) : VAL_EMPTY;
}

static void tell_claim(struct work *w, struct val pod, str claim, const struct err *err)
{
	str pod_name = val_str(pod, metadata, name), set_name = val_str(w->set, metadata, name);

	if (err)
		controller_event(w->c, w->set, true, "FailedCreate", "Create Claim " STR_FMT " for Pod " STR_FMT " in StatefulSet " STR_FMT " failed error: %s",
				 STR_ARG(claim), STR_ARG(pod_name), STR_ARG(set_name), err->msg);
	else
		controller_event(w->c, w->set, false, "SuccessfulCreate", "Create Claim " STR_FMT " Pod " STR_FMT " in StatefulSet " STR_FMT " success",
				 STR_ARG(claim), STR_ARG(pod_name), STR_ARG(set_name));
}

/* (suspends) Those that are missing. All are tried; the first error counts. */
static int create_claims(struct work *w, struct val pod, struct err *err)
{
	int64_t ordinal = stateful_ordinal(pod, NULL);
	int result = 0;

	VAL_EACH(t, val_get(w->set, spec, volumeClaimTemplates)) {
		struct err one = ERR_INIT;
		str name = stateful_claim_name(w->arena, w->set, *t, ordinal);
		struct val claim = claim_named(w, name);
		int r = 0;
		if (!val_exists(claim)) {
			r = client_create(w->c->client, TYPE(core_v1, PersistentVolumeClaim), stateful_claim(w->arena, w->set, *t, ordinal), NULL, NULL, &one);
			if (r != -ERR_ALREADY_EXISTS)
				tell_claim(w, pod, name, r < 0 ? &one : NULL);
			if (r < 0)
				err_wrap(&one, r, "failed to create PVC " STR_FMT, STR_ARG(name));
		} else if (val_has(claim, metadata, deletionTimestamp)) {
			r = err_set(&one, ERR_CONFLICT, "pvc " STR_FMT " is being deleted", STR_ARG(name));
		}
		if (r < 0 && result == 0) {
			result = r;
			*err = one;
		}
	}
	return result;
}

/* (suspends) Owner references of claims, by the retention policy. */
static int settle_claims(struct work *w, struct val pod, struct err *err)
{
	int64_t ordinal = stateful_ordinal(pod, NULL);

	VAL_EACH(t, val_get(w->set, spec, volumeClaimTemplates)) {
		str name = stateful_claim_name(w->arena, w->set, *t, ordinal);
		struct val claim = claim_named(w, name);
		if (!val_exists(claim))
			continue;
		if (stateful_claim_is_foreign(claim, w->set, pod))
			controller_event(w->c, w->set, true, "ConflictingController",
					 "PersistentVolumeClaim " STR_FMT " has a conflicting OwnerReference that acts as a manging controller, "
					 "the retention policy is ignored for this claim", STR_ARG(name));
		if (stateful_claim_is_settled(claim, w->set, pod))
			continue;
		int r = client_update(w->c->client, TYPE(core_v1, PersistentVolumeClaim), stateful_claim_settle(w->arena, claim, w->set, pod), NULL,
				      NULL, err);
		if (r < 0)
			return err_wrap(err, r, "could not update claim " STR_FMT " for delete policy ownerRefs", STR_ARG(name));
	}
	return 0;
}

/* ---- steps ---- */

static void tell_pod(struct work *w, const char *verb, struct val pod, const struct err *err)
{
	char reason[32];
	str pod_name = val_str(pod, metadata, name), set_name = val_str(w->set, metadata, name);

	snprintf(reason, sizeof(reason), "%s%s", err ? "Failed" : "Successful", verb);
	if (err)
		controller_event(w->c, w->set, true, reason, "%s Pod " STR_FMT " in StatefulSet " STR_FMT " failed error: %s", verb, STR_ARG(pod_name),
				 STR_ARG(set_name), err->msg);
	else
		controller_event(w->c, w->set, false, reason, "%s Pod " STR_FMT " in StatefulSet " STR_FMT " successful", verb, STR_ARG(pod_name),
				 STR_ARG(set_name));
}

static int create_pod(struct work *w, struct val pod, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *made = NULL;
	int r = create_claims(w, pod, err);

	if (r < 0) {
		tell_pod(w, "Create", pod, err);
		return r;
	}
	expect_creations(w->s->expectations, w->key, 1);
	r = client_create(w->c->client, TYPE(core_v1, Pod), pod, NULL, &made, err);
	if (r < 0) {
		expectations_created(w->s->expectations, w->key);
		if (r != -ERR_ALREADY_EXISTS && r != -ERR_CANCELED)
			tell_pod(w, "Create", pod, err);
		return r;
	}
	if ((r = settle_claims(w, made->val, err)) < 0) {
		tell_pod(w, "Update", pod, err);
		return r;
	}
	tell_pod(w, "Create", pod, NULL);
	return 0;
}

static int delete_pod(struct work *w, struct val pod, struct err *err)
{
	const str key = object_key(w->arena, pod);

	expect_deletions(w->s->expectations, w->key, &key, 1);
	int r = client_delete(w->c->client, TYPE(core_v1, Pod), val_str(pod, metadata, namespace), val_str(pod, metadata, name), NULL, err);
	if (r < 0)
		expectations_deleted(w->s->expectations, w->key, key);
	if (r < 0 && r != -ERR_NOT_FOUND) {
		tell_pod(w, "Delete", pod, err);
		return r;
	}
	tell_pod(w, "Delete", pod, NULL);
	return 0;
}

static struct val fix_pod(struct arena *a, struct val live, void *arg)
{
	struct work *w = arg;
	struct val fixed = live;

	if (!stateful_identity_matches(w->set, live))
		fixed = stateful_with_identity(a, w->set, fixed);
	if (!stateful_volumes_match(a, w->set, fixed))
		fixed = stateful_with_volumes(a, w->set, fixed);
	return val_same(fixed, live) ? VAL_EMPTY : fixed;
}

static int update_pod(struct work *w, struct val pod, struct err *err)
{
	int r = 0;

	if (!stateful_volumes_match(w->arena, w->set, pod))
		r = create_claims(w, pod, err);
	if (r >= 0)
		r = settle_claims(w, pod, err);
	if (r >= 0)
		r = controller_update(w->c, TYPE(core_v1, Pod), pod, "", fix_pod, w, NULL, err);
	tell_pod(w, "Update", pod, r < 0 ? err : NULL);
	return r;
}

static int run_step(size_t i, void *arg, struct err *err)
{
	struct work *w = arg;
	const struct stateful_step *step = &w->plan.steps[w->first + i];
	int r = 0;

	switch (step->type) {
	case STATEFUL_CREATE:
		return create_pod(w, step->pod, err);
	case STATEFUL_CLAIMS:
		r = create_claims(w, step->pod, err);
		return r < 0 ? r : settle_claims(w, step->pod, err);
	case STATEFUL_UPDATE:
		return update_pod(w, step->pod, err);
	case STATEFUL_SETTLE:
		return settle_claims(w, step->pod, err);
	case STATEFUL_DELETE:
		return delete_pod(w, step->pod, err);
	}
	return r;
}

/* (suspends) One stage after the other; an error ends it. */
static int run_steps(struct work *w, struct err *err)
{
	const struct stateful_plan *p = &w->plan;

	for (size_t n; w->first < p->n; w->first += n) {
		for (n = 1; p->at_once && w->first + n < p->n && p->steps[w->first + n].stage == p->steps[w->first].stage;)
			n++;
		if (pod_control_batches(n, run_step, w, err) < n)
			return -(int)err->code;
	}
	return 0;
}

/* ---- revisions ---- */

struct revisions {
	struct val all, current, update;
	struct val pods;
	int64_t collisions;
};

/* (suspends) Under another name when that one is taken by other data. */
static int create_revision(struct work *w, struct val data, int64_t number, struct revisions *v, struct err *err)
{
	struct val labels = val_get(w->set, spec, template, metadata, labels);
	struct val ref = owner_ref(w->arena, w->set, "apps/v1", "StatefulSet");
	str label = revision_hash(w->arena, data, v->collisions);

	for (;;) {
		CLEANUP(frozen_unrefp) struct frozen *made = NULL, *other = NULL;
		str name = revision_name(w->arena, w->set, revision_hash(w->arena, data, v->collisions));
		struct val marked = labels_put(w->arena, labels, STR(REVISION_HASH), VAL_STR(label));
		struct val revision = val_with(w->arena, revision_make(w->arena, w->set, ref, marked, data, number), VAL_STR(name), metadata, name);
		int r = client_create(w->c->client, TYPE(apps_v1, ControllerRevision), revision, NULL, &made, err);
		if (r >= 0) {
			v->update = val_copy(w->arena, made->val);
			return 0;
		}
		if (r != -ERR_ALREADY_EXISTS)
			return r;
		if ((r = client_get(w->c->client, TYPE(apps_v1, ControllerRevision), val_str(w->set, metadata, namespace), name, &other, err)) < 0)
			return r;
		if (val_equal(val_get(other->val, data), data)) {
			v->update = val_copy(w->arena, other->val);
			return 0;
		}
		v->collisions++;
	}
}

static int find_revisions(struct work *w, struct revisions *v, struct err *err)
{
	struct val data;
	int r = revisions_of(w->c, w->arena, w->s->revisions, w->set, "apps/v1", "StatefulSet", val_get(w->set, spec, selector), &v->all, err);

	if (r < 0 || (r = revision_data(w->arena, val_get(w->set, spec, template), &data, err)) < 0)
		return r;
	v->collisions = val_int(w->set, status, collisionCount);
	v->update = revisions_find(v->all, data);
	int64_t next = revisions_next(v->all);
	if (!val_exists(v->update))
		r = create_revision(w, data, next, v, err);
	else if (val_int(v->update, revision) != next - 1)
		r = revision_renumber(w->c, w->arena, v->update, next, &v->update, err);
	if (r < 0)
		return r;
	v->current = v->update;
	VAL_EACH(rev, v->all)
		if (str_eq(val_str(*rev, metadata, name), val_str(w->set, status, currentRevision)))
			v->current = *rev;
	return 0;
}

static bool is_live(str name, void *arg)
{
	const struct revisions *v = arg;

	if (str_eq(name, val_str(v->current, metadata, name)) || str_eq(name, val_str(v->update, metadata, name)))
		return true;
	VAL_EACH(pod, v->pods)
		if (str_eq(name, label_of(*pod, STR(STATEFUL_REVISION))))
			return true;
	return false;
}

static int truncate_history(struct work *w, struct revisions *v, struct err *err)
{
	VAL_EACH(rev, revisions_outdated(w->arena, v->all, val_int(w->set, spec, revisionHistoryLimit), is_live, v)) {
		int r = client_delete(w->c->client, TYPE(apps_v1, ControllerRevision), val_str(*rev, metadata, namespace),
				      val_str(*rev, metadata, name), NULL, err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return r;
	}
	return 0;
}

/* ---- one look ---- */

/* Only pods whose names say so are members: one of another name is neither adopted nor kept, whatever its labels say. */
static bool is_member(struct val pod, struct val set)
{
	str parent;
	return stateful_ordinal(pod, &parent) >= 0 && str_eq(parent, val_str(set, metadata, name));
}

/* (suspends) */
static int find_pods(struct work *w, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(w->arena);

	INFORMER_EACH(pod, pods_of_owner(w->s->pods, val_str(w->set, metadata, uid)))
		val_add_item(&b, controller_hold(w->c, w->arena, pod));
	INFORMER_EACH(pod, pods_without_owner(w->s->pods, val_str(w->set, metadata, namespace)))
		if (is_member(pod->val, w->set))
			val_add_item(&b, controller_hold(w->c, w->arena, pod));
	return controller_claim(w->c, w->arena, TYPE(core_v1, Pod), val_end_list(&b), w->set, "apps/v1", "StatefulSet",
				val_get(w->set, spec, selector), is_member, ret, err);
}

static struct val put_status(struct arena *a, struct val live, void *arg)
{
	struct val status = *(const struct val *)arg;
	return stateful_status_differs(live, status) ? val_with(a, live, status, status) : VAL_EMPTY;
}

static int sync_set(struct work *w, struct err *err)
{
	struct stateful_view v = { .set = w->set, .claim = claim_named, .arg = w };
	struct revisions revisions;
	struct err step_err = ERR_INIT, status_err = ERR_INIT;
	int r;

	if ((r = find_pods(w, &v.pods, err)) < 0 || (r = find_revisions(w, &revisions, err)) < 0 ||
	    (r = revision_template(w->arena, revisions.current, &v.current_template, err)) < 0 ||
	    (r = revision_template(w->arena, revisions.update, &v.update_template, err)) < 0)
		return r;
	v.current_revision = val_str(revisions.current, metadata, name);
	v.update_revision = val_str(revisions.update, metadata, name);
	v.collisions = revisions.collisions;
	v.now_ns = clock_wall_ns();
	revisions.pods = v.pods;
	stateful_plan_make(w->arena, &v, &w->plan);
	r = run_steps(w, &step_err);
	int s = controller_update(w->c, TYPE(apps_v1, StatefulSet), w->set, "status", put_status, &w->plan.status, NULL, &status_err);
	if (r >= 0 && s >= 0)
		r = truncate_history(w, &revisions, err);
	else
		*err = r < 0 ? step_err : status_err;
	if (w->plan.waits)
		controller_add_after(w->c, w->key, CLAIMS_LOOK_MS);
	int64_t min_ready_s = val_int(w->set, spec, minReadySeconds);
	if (r >= 0 && min_ready_s > 0 && val_int(w->plan.status, readyReplicas) != val_int(w->plan.status, availableReplicas)) {
		int64_t wait = pods_available_in_ns(v.pods, min_ready_s, v.now_ns);
		controller_add_after(w->c, w->key, moment_wait_ms(wait < 0 ? min_ready_s * NS_PER_S : wait));
	}
	return r < 0 ? r : MIN(s, 0);
}

static int stateful_set_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct stateful_sets *s = c->state;
	struct frozen *set = informer_get(s->sets, key);

	if (!set) {
		expectations_forget(s->expectations, key);
		return 0;
	}
	if (!expectations_met(s->expectations, key)) {
		controller_add_after(c, key, EXPECTATIONS_LAPSE_MS);
		return 0;
	}
	struct work *w = ARENA_NEW(a, struct work);
	*w = (struct work){ .c = c, .s = s, .arena = a, .set = controller_hold(c, a, set), .key = key };
	return sync_set(w, err);
}

static void stateful_set_stop(struct controller *c)
{
	struct stateful_sets *s = c->state;

	expectations_free(s->expectations);
	free(s);
}

static int stateful_set_start(struct controller *c, struct err *err)
{
	struct stateful_sets *s = mem_zalloc(sizeof(*s));

	(void)err;
	c->state = s;
	c->sync = stateful_set_sync;
	s->expectations = expectations_new();
	s->sets = controller_informer(c, TYPE(apps_v1, StatefulSet));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	s->claims = controller_informer(c, TYPE(core_v1, PersistentVolumeClaim));
	s->revisions = controller_informer(c, TYPE(apps_v1, ControllerRevision));
	s->owners = (struct owners){ .all = s->sets, .kind = "StatefulSet", .expectations = s->expectations };
	informer_index(s->sets, "namespace", informer_by_namespace);
	pod_control_index(s->pods);
	revisions_index(s->revisions);
	controller_watch(c, s->sets, set_changed);
	controller_watch(c, s->pods, pod_changed);
	return 0;
}

const struct controller_kind controller_stateful_set = { .name = "statefulset-controller", .start = stateful_set_start, .workers = 5,
							  .stop = stateful_set_stop };
