/*
 * Pods are counted in the informer, which lags behind what was just done: expectations keep a set from acting again until all of it is seen.
 * They are told by the pods' changes (a pod that is being deleted counts as gone at once).
 */
#include "controllers/replica_set.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/moment.h"
#include "controllers/owner.h"
#include "controllers/owners.h"
#include "controllers/pod_control.h"
#include "controllers/replica_set_plan.h"
#include "machinery/selector.h"

#define OWNER_INDEX "owner"

struct replica_sets {
	const struct replica_set_flavor *flavor;
	struct informer *sets, *pods;
	struct expectations *expectations;
	struct owners owners;
};

/* ---- being told ---- */

static void on_pod(struct controller *c, struct frozen *old, struct frozen *object)
{
	const struct replica_sets *s = c->state;
	owners_pod_changed(c, &s->owners, old, object);
}

static void on_set(struct controller *c, struct frozen *old, struct frozen *object)
{
	const struct replica_sets *s = c->state;
	owners_changed(c, &s->owners, old, object);
}

/* ---- one set ---- */

/* What the calls that create or delete pods need. */
struct work {
	struct controller *controller;
	struct arena *arena;
	struct val set, pod, victims;
	str key;
	const str *victim_keys;
};

static int make_pod(size_t i, void *arg, struct err *err)
{
	struct work *w = arg;
	int r = pod_control_create(w->controller, w->arena, w->set, w->pod, NULL, err);

	(void)i;
	return r < 0 && error_is_namespace_ending(err) ? 0 : r;
}

static int delete_pod(size_t i, void *arg, struct err *err)
{
	struct work *w = arg;
	const struct replica_sets *s = w->controller->state;
	struct val pod = val_at(w->victims, i);
	int r = pod_control_delete(w->controller, w->set, val_str(pod, metadata, namespace), val_str(pod, metadata, name), err);

	/* It will not be seen going. */
	if (r != 0)
		expectations_deleted(s->expectations, w->key, w->victim_keys[i]);
	return r;
}

static int create_pods(struct work *w, size_t n, struct err *err)
{
	const struct replica_sets *s = w->controller->state;
	struct val ref = owner_ref(w->arena, w->set, s->flavor->api_version, s->flavor->kind);

	w->pod = pod_from_template(w->arena, val_get(w->set, spec, template), w->set, ref);
	expect_creations(s->expectations, w->key, (unsigned)n);
	size_t made = pod_control_batches(n, make_pod, w, err);
	for (size_t i = made; i < n; i++)
		expectations_created(s->expectations, w->key);
	return made < n ? -(int)err->code : 0;
}

static int delete_pods(struct work *w, struct val victims, struct err *err)
{
	const struct replica_sets *s = w->controller->state;
	size_t n = val_len(victims);
	str *keys = ARENA_ARRAY(w->arena, str, n);

	for (size_t i = 0; i < n; i++)
		keys[i] = object_key(w->arena, val_at(victims, i));
	w->victims = victims;
	w->victim_keys = keys;
	expect_deletions(s->expectations, w->key, keys, n);
	return pod_control_at_once(n, delete_pod, w, err) < n ? -(int)err->code : 0;
}

/* Pods of all sets that the set's owner controls, as far as they match: its own, when it has none. */
static struct val related_pods(struct controller *c, struct arena *a, struct val set)
{
	const struct replica_sets *s = c->state;
	struct val_builder list = val_builder(a);
	struct val ref = owner_controller(set);

	if (!val_exists(ref))
		return val_end_list(&list);
	INFORMER_EACH(other, informer_each_indexed(s->sets, OWNER_INDEX, val_str(ref, uid)))
		INFORMER_EACH(pod, pods_of_owner(s->pods, val_str(other->val, metadata, uid)))
			val_add_item(&list, controller_hold(c, a, pod));
	return val_end_list(&list);
}

static int64_t count_terminating(const struct replica_sets *s, struct arena *a, struct val set)
{
	struct selector selector;
	int64_t n = 0;

	if (!s->flavor->tells_terminating || selector_of_object(a, s->flavor->selector(a, set), &selector, NULL) < 0)
		return -1;
	INFORMER_EACH(pod, pods_of_owner(s->pods, val_str(set, metadata, uid)))
		n += pod_is_terminating(pod->val) && selector_matches(&selector, val_get(pod->val, metadata, labels));
	return n;
}

static int manage(struct controller *c, struct arena *a, str key, struct val set, struct val active, struct err *err)
{
	struct work w = { .controller = c, .arena = a, .set = set, .key = key };
	bool many = (int64_t)val_len(active) > val_int(set, spec, replicas);
	struct replica_set_plan plan = replica_set_plan(a, set, active, many ? related_pods(c, a, set) : VAL_EMPTY_LIST, clock_wall_ns());

	if (plan.create)
		return create_pods(&w, plan.create, err);
	return val_len(plan.delete) ? delete_pods(&w, plan.delete, err) : 0;
}

/* What the status is made from, when it is written over a newer object too. */
struct seen {
	struct val active;
	int64_t terminating, generation, now_ns;
	const char *failure;
};

static struct val new_status(struct arena *a, struct val live, void *arg)
{
	const struct seen *seen = arg;
	struct val set = replica_set_status(a, live, seen->active, seen->terminating, seen->failure, seen->now_ns);

	if (val_same(set, live))
		return VAL_EMPTY;
	/* A newer spec has not been acted on. */
	return val_with(a, set, val_of_int(seen->generation), status, observedGeneration);
}

static int sync_set(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct replica_sets *s = c->state;
	const struct replica_set_flavor *f = s->flavor;
	struct frozen *found = informer_get(s->sets, key);
	struct err failure = ERR_INIT;
	struct val active;
	int r, managed = 0;

	if (!found) {
		expectations_forget(s->expectations, key);
		return 0;
	}
	struct val set = controller_hold(c, a, found);
	bool settled = expectations_met(s->expectations, key);
	if (!settled)
		controller_add_after(c, key, EXPECTATIONS_LAPSE_MS);
	if ((r = pod_control_claim_active(c, a, set, f->api_version, f->kind, f->selector(a, set), s->pods, &active, err)) < 0)
		return r;
	struct seen seen = { .active = active, .terminating = count_terminating(s, a, set), .generation = val_int(set, metadata, generation) };
	if (settled && !val_has(set, metadata, deletionTimestamp))
		managed = manage(c, a, key, set, active, &failure);
	seen.now_ns = clock_wall_ns();
	seen.failure = managed < 0 ? failure.msg : NULL;
	if (managed == -ERR_CANCELED || (r = controller_update(c, f->type, set, "status", new_status, &seen, NULL, err)) < 0)
		return managed == -ERR_CANCELED ? managed : r == -ERR_NOT_FOUND ? 0 : r;
	if (managed < 0) {
		*err = failure;
		return managed;
	}
	int64_t next_ns = pods_available_in_ns(active, val_int(set, spec, minReadySeconds), seen.now_ns);
	if (next_ns >= 0)
		controller_add_after(c, key, moment_wait_ms(next_ns));
	return 0;
}

/* ---- life ---- */

int replica_set_start(struct controller *c, const struct replica_set_flavor *flavor, struct err *err)
{
	struct replica_sets *s = mem_zalloc(sizeof *s);

	(void)err;
	*s = (struct replica_sets){ .flavor = flavor, .sets = controller_informer(c, flavor->type), .pods = controller_informer(c, TYPE(core_v1, Pod)),
		.expectations = expectations_new() };
	s->owners = (struct owners){ .all = s->sets, .kind = flavor->kind, .selector = flavor->selector, .expectations = s->expectations };
	c->state = s;
	c->sync = sync_set;
	informer_index(s->sets, "namespace", informer_by_namespace);
	informer_index(s->sets, OWNER_INDEX, informer_by_owner);
	pod_control_index(s->pods);
	controller_watch(c, s->sets, on_set);
	controller_watch(c, s->pods, on_pod);
	return 0;
}

void replica_set_stop(struct controller *c)
{
	struct replica_sets *s = c->state;

	expectations_free(s->expectations);
	free(s);
}

static struct val selector_of(struct arena *a, struct val set)
{
	(void)a;
	return val_get(set, spec, selector);
}

static int start(struct controller *c, struct err *err)
{
	static const struct replica_set_flavor flavor = { TYPE(apps_v1, ReplicaSet), "apps/v1", "ReplicaSet", selector_of, true };
	return replica_set_start(c, &flavor, err);
}

const struct controller_kind controller_replica_set = { .name = "replicaset-controller", .start = start, .workers = 5, .stop = replica_set_stop };
