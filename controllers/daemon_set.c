/*
 * DaemonSets. Pods are bound by the scheduler: each carries the name of its node in its node affinity. Pods that failed are replaced at a pace that
 * slows down per node, from one second to a quarter of an hour; a new template begins anew.
 */
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/daemon_set_plan.h"
#include "controllers/labels.h"
#include "controllers/moment.h"
#include "controllers/owner.h"
#include "controllers/owners.h"
#include "controllers/pod_control.h"
#include "controllers/revision.h"
#include "controllers/template_hash.h"
#include "machinery/selector.h"

enum { BACKOFF_MIN_S = 1, BACKOFF_MAX_S = 15 * 60, BACKOFF_SWEEP_S = 60 };

/* Of one set, its generation and a node. */
struct pace {
	int64_t delay_ns, last_ns;
	str key;
	char text[];
};

struct daemon_sets {
	struct informer *sets, *pods, *nodes, *revisions;
	struct expectations *expectations;
	struct owners owners;
	struct map paces;
	int64_t swept_ns;
};

/* One sync. */
struct work {
	struct controller *c;
	struct daemon_sets *s;
	struct arena *arena;
	struct val set, template, ref;
	struct daemon_view view;
	struct daemon_plan plan;
	str key;
	const str *keys;             /* of plan.remove */
	size_t n_made, n_failed;
};

/* ---- pace of failed pods ---- */

static str pace_key(struct work *w, str node)
{
	return arena_printf(w->arena, STR_FMT "/%lld/" STR_FMT, STR_ARG(val_str(w->set, metadata, uid)),
			    (long long)val_int(w->set, status, observedGeneration), STR_ARG(node));
}

static bool pace_is_over(const struct pace *p, int64_t now_ns) { return now_ns - p->last_ns > 2 * BACKOFF_MAX_S * NS_PER_S; }

static int64_t pace_wait_ns(void *arg, str node)
{
	struct work *w = arg;
	const struct pace *p = map_get(&w->s->paces, pace_key(w, node));
	int64_t now_ns = clock_now_ns();
	return p && !pace_is_over(p, now_ns) ? MAX(p->last_ns + p->delay_ns - now_ns, INT64_C(0)) : 0;
}

static void pace_sweep(struct daemon_sets *s, int64_t now_ns)
{
	struct pace *p;

	if (now_ns - s->swept_ns < BACKOFF_SWEEP_S * NS_PER_S)
		return;
	s->swept_ns = now_ns;
	for (struct map_iter it = map_iter(&s->paces); (p = map_next(&it, NULL));)
		if (pace_is_over(p, now_ns))
			free(map_remove(&s->paces, p->key));
}

static void pace_slow_down(struct work *w, str node)
{
	str key = pace_key(w, node);
	int64_t now_ns = clock_now_ns();

	pace_sweep(w->s, now_ns); /* first: it may free this one */
	struct pace *p = map_get(&w->s->paces, key);
	if (!p) {
		p = mem_zalloc(sizeof(*p) + key.n);
		memcpy(p->text, key.p, key.n);
		p->key = str_span(p->text, key.n);
		map_put(&w->s->paces, p->key, p);
	}
	p->delay_ns = p->delay_ns && !pace_is_over(p, now_ns) ? MIN(2 * p->delay_ns, BACKOFF_MAX_S * NS_PER_S) : BACKOFF_MIN_S * NS_PER_S;
	p->last_ns = now_ns;
}

/* ---- what changes concern ---- */

static void pod_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	const struct daemon_sets *s = c->state;
	owners_pod_changed(c, &s->owners, old, object);
}

static void set_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	const struct daemon_sets *s = c->state;
	owners_changed(c, &s->owners, old, object);
}

/* Sets for which the node has become another: most changes of nodes are heartbeats, which change neither labels nor taints. */
static void node_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	const struct daemon_sets *s = c->state;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (old && object && val_equal(val_get(old->val, metadata, labels), val_get(object->val, metadata, labels)) &&
	    val_equal(val_get(old->val, spec, taints), val_get(object->val, spec, taints)))
		return;
	INFORMER_EACH(set, informer_each(s->sets)) {
		struct daemon_place place;
		bool ran = false, stayed = false, run = false, stay = false;
		daemon_place_compile(&a, set->val, &place);
		if (old)
			daemon_place_check(&place, old->val, &ran, &stayed);
		if (object)
			daemon_place_check(&place, object->val, &run, &stay);
		if (ran != run || stayed != stay || val_int(set->val, status, numberMisscheduled) > 0)
			controller_add(c, object_key(&a, set->val));
	}
}

/* ---- pods ---- */

static int create_one(size_t i, void *arg, struct err *err)
{
	struct work *w = arg;
	struct val spec = daemon_spec_for(w->arena, val_get(w->template, spec), w->plan.create[i]);
	struct val pod = pod_from_template(w->arena, val_with(w->arena, w->template, spec, spec), w->set, w->ref);
	int r = pod_control_create(w->c, w->arena, w->set, pod, NULL, err);

	if (r < 0 && error_is_namespace_ending(err)) {
		expectations_created(w->s->expectations, w->key);
		r = 0;
	}
	if (r < 0) {
		expectations_created(w->s->expectations, w->key);
		w->n_failed++;
	} else {
		w->n_made++;
	}
	return r;
}

static int delete_one(size_t i, void *arg, struct err *err)
{
	struct work *w = arg;
	struct val pod = w->plan.remove[i];
	int r = pod_control_delete(w->c, w->set, val_str(pod, metadata, namespace), val_str(pod, metadata, name), err);

	if (r != 0)
		expectations_deleted(w->s->expectations, w->key, w->keys[i]);
	return r;
}

static void tell_ended(struct work *w)
{
	for (size_t i = 0; i < w->plan.n_ended; i++) {
		const struct daemon_ended *e = &w->plan.ended[i];
		str namespace = val_str(e->pod, metadata, namespace), name = val_str(e->pod, metadata, name);
		if (e->failed) {
			pace_slow_down(w, e->node);
			controller_event(w->c, w->set, true, "FailedDaemonPod",
					 "Found failed daemon pod " STR_FMT "/" STR_FMT " on node " STR_FMT ", will try to kill it",
					 STR_ARG(namespace), STR_ARG(name), STR_ARG(e->node));
		} else {
			controller_event(w->c, w->set, false, "SucceededDaemonPod",
					 "Found succeeded daemon pod " STR_FMT "/" STR_FMT " on node " STR_FMT ", will try to delete it",
					 STR_ARG(namespace), STR_ARG(name), STR_ARG(e->node));
		}
	}
}

/* (suspends) */
static int carry_out(struct work *w, struct err *err)
{
	struct daemon_plan *p = &w->plan;
	struct err create_err = ERR_INIT;
	str *keys = ARENA_ARRAY(w->arena, str, p->n_remove + 1);

	tell_ended(w);
	for (size_t i = 0; i < p->n_remove; i++)
		keys[i] = object_key(w->arena, p->remove[i]);
	w->keys = keys;
	expect_creations(w->s->expectations, w->key, (unsigned)p->n_create);
	expect_deletions(w->s->expectations, w->key, keys, p->n_remove);
	w->template = daemon_template(w->arena, w->set, w->view.hash);
	w->ref = owner_ref(w->arena, w->set, "apps/v1", "DaemonSet");
	pod_control_batches(p->n_create, create_one, w, &create_err);
	for (size_t i = w->n_made + w->n_failed; i < p->n_create; i++)
		expectations_created(w->s->expectations, w->key);
	size_t gone = pod_control_at_once(p->n_remove, delete_one, w, err);
	if (create_err.code)
		*err = create_err;
	return create_err.code || gone < p->n_remove ? -(int)err->code : 0;
}

/* ---- revisions ---- */

struct revisions {
	struct val current, old;
};

static struct val more_collisions(struct arena *a, struct val live, void *arg)
{
	/* Only from the count that was tried: another look may have been faster. */
	int64_t count = val_int(live, status, collisionCount);
	return count == *(const int64_t *)arg ? val_with(a, live, val_of_int(count + 1), status, collisionCount) : VAL_EMPTY;
}

static int make_revision(struct work *w, struct val data, int64_t number, struct val *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *made = NULL, *other = NULL;
	struct val template = val_get(w->set, spec, template);
	int64_t collisions = val_int(w->set, status, collisionCount);
	str hash = template_hash(w->arena, template, collisions), name = arena_printf(w->arena, STR_FMT "-" STR_FMT,
		STR_ARG(val_str(w->set, metadata, name)), STR_ARG(hash));
	struct val labels = labels_put(w->arena, val_get(template, metadata, labels), STR(DAEMON_HASH), VAL_STR(hash));
	struct val revision = revision_make(w->arena, w->set, owner_ref(w->arena, w->set, "apps/v1", "DaemonSet"), labels, data, number);

	revision = val_with(w->arena, revision, VAL_STR(name), metadata, name);
	int r = client_create(w->c->client, TYPE(apps_v1, ControllerRevision), revision, NULL, &made, err);
	if (r >= 0) {
		*ret = val_copy(w->arena, made->val);
		return 0;
	}
	if (r != -ERR_ALREADY_EXISTS ||
	    (r = client_get(w->c->client, TYPE(apps_v1, ControllerRevision), val_str(w->set, metadata, namespace), name, &other, err)) < 0)
		return r;
	if (val_equal(val_get(other->val, data), data)) {
		*ret = val_copy(w->arena, other->val);
		return 0;
	}
	/* The name is taken by another template: the next look tries another one. */
	if ((r = controller_update(w->c, TYPE(apps_v1, DaemonSet), w->set, "status", more_collisions, &collisions, NULL, err)) < 0)
		return r;
	return err_set(err, ERR_CONFLICT, "controllerrevisions.apps \"" STR_FMT "\" already exists", STR_ARG(name));
}

/* (suspends) Several revisions have the wanted data: the newest stays, and the pods of the others become its own. */
static int merge_current(struct work *w, struct val same, struct val *ret, struct err *err)
{
	size_t n = val_len(same);
	int r = 0;

	*ret = val_at(same, n - 1);
	str hash = label_of(*ret, STR(DAEMON_HASH));
	for (size_t i = 0; n > 1 && r >= 0 && i < val_len(w->view.pods); i++) {
		struct val pod = val_at(w->view.pods, i);
		if (str_eq(label_of(pod, STR(DAEMON_HASH)), hash))
			continue;
		struct val labels = labels_put(w->arena, VAL_EMPTY_OBJECT, STR(DAEMON_HASH), VAL_STR(hash));
		r = client_patch(w->c->client, TYPE(core_v1, Pod), val_str(pod, metadata, namespace), val_str(pod, metadata, name), CLIENT_PATCH_MERGE,
				 OBJECT(w->arena, F(metadata, OBJECT(w->arena, F(labels, labels)))), NULL, NULL, err);
	}
	for (size_t i = 0; r >= 0 && i + 1 < n; i++)
		r = client_delete(w->c->client, TYPE(apps_v1, ControllerRevision), val_str(w->set, metadata, namespace),
				  val_str(val_at(same, i), metadata, name), NULL, err);
	return r;
}

static int find_revisions(struct work *w, struct revisions *v, struct err *err)
{
	struct val all, data;
	struct val_builder same = val_builder(w->arena), old = val_builder(w->arena);
	int r = revisions_of(w->c, w->arena, w->s->revisions, w->set, "apps/v1", "DaemonSet", val_get(w->set, spec, selector), &all, err);

	if (r < 0 || (r = revision_data(w->arena, val_get(w->set, spec, template), &data, err)) < 0)
		return r;
	VAL_EACH(rev, all)
		val_add_item(val_equal(val_get(*rev, data), data) ? &same : &old, *rev);
	v->old = val_end_list(&old);
	struct val current = val_end_list(&same);
	int64_t number = revisions_next(v->old);
	if (!val_len(current))
		return make_revision(w, data, number, &v->current, err);
	if ((r = merge_current(w, current, &v->current, err)) < 0 || val_int(v->current, revision) >= number)
		return r;
	return revision_renumber(w->c, w->arena, v->current, number, &v->current, err);
}

/* Revisions that pods still have stay, even beyond the limit. */
static int truncate_history(struct work *w, const struct revisions *v, struct err *err)
{
	int64_t excess = (int64_t)val_len(v->old) - val_int(w->set, spec, revisionHistoryLimit);

	for (size_t i = 0; i < val_len(v->old) && excess > 0; i++) {
		struct val rev = val_at(v->old, i);
		bool live = false;
		VAL_EACH(pod, w->view.pods)
			live |= str_eq(label_of(*pod, STR(DAEMON_HASH)), label_of(rev, STR(DAEMON_HASH)));
		if (live)
			continue;
		int r = client_delete(w->c->client, TYPE(apps_v1, ControllerRevision), val_str(rev, metadata, namespace),
				      val_str(rev, metadata, name), NULL, err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return err_wrap(err, r, "failed to clean up revisions of DaemonSet");
		excess--;
	}
	return 0;
}

/* ---- one look ---- */

static struct val put_status(struct arena *a, struct val live, void *arg)
{
	struct val status = *(const struct val *)arg;

	if (!daemon_status_differs(live, status))
		return VAL_EMPTY;
	status = val_with(a, status, val_get(live, status, collisionCount), collisionCount);
	return val_with(a, live, status, status);
}

/* (suspends) As our copy shows it by now. */
static int write_status(struct work *w, bool observed, struct err *err)
{
	struct val_builder pods = val_builder(w->arena);
	struct daemon_view v = w->view;

	INFORMER_EACH(pod, pods_of_owner(w->s->pods, val_str(w->set, metadata, uid)))
		val_add_item(&pods, controller_hold(w->c, w->arena, pod));
	v.pods = val_end_list(&pods);
	v.now_ns = clock_wall_ns();
	struct val status = daemon_status(w->arena, &v, observed);
	int64_t min_ready_s = val_int(w->set, spec, minReadySeconds);
	if (min_ready_s > 0 && val_int(status, numberReady) != val_int(status, numberAvailable))
		controller_add_after(w->c, w->key, min_ready_s * 1000);
	return controller_update(w->c, TYPE(apps_v1, DaemonSet), w->set, "status", put_status, &status, NULL, err);
}

static int sync_set(struct work *w, struct err *err)
{
	struct revisions revisions;
	struct val_builder nodes = val_builder(w->arena);
	struct err work_err = ERR_INIT;
	int r;

	if ((r = pod_control_claim(w->c, w->arena, w->set, "apps/v1", "DaemonSet", val_get(w->set, spec, selector), w->s->pods, &w->view.pods, err)) < 0)
		return r;
	if ((r = find_revisions(w, &revisions, err)) < 0)
		return err_wrap(err, r, "failed to construct revisions of DaemonSet");
	INFORMER_EACH(node, informer_each(w->s->nodes))
		val_add_item(&nodes, controller_hold(w->c, w->arena, node));
	w->view.nodes = val_end_list(&nodes);
	w->view.hash = label_of(revisions.current, STR(DAEMON_HASH));
	w->view.now_ns = clock_wall_ns();
	if (!expectations_met(w->s->expectations, w->key)) {
		controller_add_after(w->c, w->key, EXPECTATIONS_LAPSE_MS);
		return write_status(w, false, err);
	}
	daemon_plan_make(w->arena, &w->view, &w->plan);
	if (w->plan.again_ns)
		controller_add_after(w->c, w->key, moment_wait_ms(w->plan.again_ns));
	r = carry_out(w, &work_err);
	if (r >= 0)
		r = truncate_history(w, &revisions, &work_err);
	int s = write_status(w, true, err);
	if (r < 0)
		*err = work_err;
	return r < 0 ? r : s;
}

static int daemon_set_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct daemon_sets *s = c->state;
	struct frozen *set = informer_get(s->sets, key);

	if (!set) {
		expectations_forget(s->expectations, key);
		return 0;
	}
	struct val selector = val_get(set->val, spec, selector);
	if (!val_len(val_get(selector, matchLabels)) && !val_len(val_get(selector, matchExpressions))) {
		controller_event(c, set->val, true, "SelectingAll", "This daemon set is selecting all pods. A non-empty selector is required.");
		return 0;
	}
	if (val_has(set->val, metadata, deletionTimestamp))
		return 0;
	struct work *w = ARENA_NEW(a, struct work);
	*w = (struct work){ .c = c, .s = s, .arena = a, .set = controller_hold(c, a, set), .key = key };
	w->view = (struct daemon_view){ .set = w->set, .wait_ns = pace_wait_ns, .arg = w };
	return sync_set(w, err);
}

static void daemon_set_stop(struct controller *c)
{
	struct daemon_sets *s = c->state;
	void *pace;

	for (struct map_iter it = map_iter(&s->paces); (pace = map_next(&it, NULL));)
		free(pace);
	map_done(&s->paces);
	expectations_free(s->expectations);
	free(s);
}

static int daemon_set_start(struct controller *c, struct err *err)
{
	struct daemon_sets *s = mem_zalloc(sizeof(*s));

	(void)err;
	c->state = s;
	c->sync = daemon_set_sync;
	map_init(&s->paces);
	s->expectations = expectations_new();
	s->sets = controller_informer(c, TYPE(apps_v1, DaemonSet));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	s->nodes = controller_informer(c, TYPE(core_v1, Node));
	s->revisions = controller_informer(c, TYPE(apps_v1, ControllerRevision));
	/* A second more, for clocks that differ. */
	s->owners = (struct owners){ .all = s->sets, .kind = "DaemonSet", .expectations = s->expectations, .available_ms = 1000 };
	informer_index(s->sets, "namespace", informer_by_namespace);
	pod_control_index(s->pods);
	revisions_index(s->revisions);
	controller_watch(c, s->sets, set_changed);
	controller_watch(c, s->pods, pod_changed);
	controller_watch(c, s->nodes, node_changed);
	return 0;
}

const struct controller_kind controller_daemon_set = { .name = "daemonset-controller", .account = "daemon-set-controller", .start = daemon_set_start, .workers = 2,
						       .stop = daemon_set_stop };
