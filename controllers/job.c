/*
 * Jobs. One look at a Job follows job_plan.h. Pod events are gathered for a second, so that a Job whose pods end together writes its status
 * once; what the user changes is looked at at once. Keys "pod:namespace/name" are pods that carry our finalizer though nobody will count them:
 * those of Jobs that are gone or finished, or without an owner.
 */
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/job_plan.h"
#include "controllers/moment.h"
#include "controllers/owner.h"
#include "controllers/owners.h"
#include "controllers/pod_control.h"
#include "machinery/selector.h"

enum { BATCH_MS = 1000, KEY_MAX = 512 };

#define ORPHAN "pod:"

/* Of one Job while it runs. */
struct pace {
	struct job_backoff backoff;
	str key;
	char text[];
};

/* A pod whose finalizer was removed by us, until the copy shows it. */
struct released {
	str uid;
	char text[];
};

struct jobs {
	struct informer *jobs, *pods;
	struct expectations *expectations;
	struct owners owners;
	struct map paces;                       /* key of a Job to struct pace */
	struct map released;                    /* uid to struct released */
};

/* One sync. */
struct work {
	struct controller *c;
	struct jobs *s;
	struct arena *arena;
	struct job_plan *plan;
	struct val job;
	str key;
	size_t n_ready;
	bool *gone;                             /* finalizers of plan->release */
	bool *deleted;                          /* pods of plan->remove */
	size_t n_made, n_failed;
};

static str key_of(char out[KEY_MAX], const char *prefix, str namespace, str name)
{
	int n = snprintf(out, KEY_MAX, "%s" STR_FMT "/" STR_FMT, prefix, STR_ARG(namespace), STR_ARG(name));
	return str_span(out, (size_t)MIN(n, KEY_MAX - 1));
}

/* ---- what is remembered ---- */

static void pace_set(struct jobs *s, str key, struct job_backoff b)
{
	struct pace *p = map_get(&s->paces, key);
	if (!p) {
		p = mem_zalloc(sizeof(*p) + key.n);
		memcpy(p->text, key.p, key.n);
		p->key = str_span(p->text, key.n);
		map_put(&s->paces, p->key, p);
	}
	p->backoff = b;
}

static void pace_forget(struct jobs *s, str key) { free(map_remove(&s->paces, key)); }

static void released_add(struct jobs *s, str uid)
{
	if (map_get(&s->released, uid))
		return;
	struct released *r = mem_zalloc(sizeof(*r) + uid.n);
	memcpy(r->text, uid.p, uid.n);
	r->uid = str_span(r->text, uid.n);
	map_put(&s->released, r->uid, r);
}

static bool is_released(void *arg, str uid) { return map_get(&((struct jobs *)arg)->released, uid); }

/* ---- what changes concern ---- */

/* The Job that controls a pod; NULL: none that exists. Its key is written to out. */
static struct frozen *job_of(struct jobs *s, struct val pod, char out[KEY_MAX], str *ret_key)
{
	struct val ref = owner_controller(pod);
	if (!str_eq(val_str(ref, apiVersion), STR("batch/v1")))
		return NULL;
	*ret_key = key_of(out, "", val_str(pod, metadata, namespace), val_str(ref, name));
	return owner_of(&s->owners, pod);
}

static void add_orphan(struct controller *c, struct val pod)
{
	char key[KEY_MAX];
	if (job_pod_is_tracked(pod))
		controller_add(c, key_of(key, ORPHAN, val_str(pod, metadata, namespace), val_str(pod, metadata, name)));
}

static void pod_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	struct jobs *s = c->state;
	struct val pod = object ? object->val : old->val;
	char text[KEY_MAX], pod_text[KEY_MAX];
	str key, pod_key = key_of(pod_text, "", val_str(pod, metadata, namespace), val_str(pod, metadata, name));
	bool going = !object || val_has(pod, metadata, deletionTimestamp);

	if (!object || !job_pod_is_tracked(pod))
		free(map_remove(&s->released, val_str(pod, metadata, uid)));
	if (old && object && job_of(s, old->val, text, &key) && !val_equal(owner_controller(old->val), owner_controller(pod)))
		controller_add_after(c, key, BATCH_MS);
	struct frozen *job = job_of(s, pod, text, &key);
	if (!job || job_is_finished(job->val)) {
		if (object && (going || !val_exists(owner_controller(pod))))
			add_orphan(c, pod);
		if (object && !going && !val_exists(owner_controller(pod)) &&
		    (!old || !val_equal(val_get(old->val, metadata, labels), val_get(pod, metadata, labels)) ||
		     val_exists(owner_controller(old->val))))
			owners_add_adopters(c, &s->owners, pod);
		return;
	}
	if (!old)
		expectations_created(s->expectations, key);
	if (going)
		expectations_deleted(s->expectations, key, pod_key);
	controller_add_after(c, key, BATCH_MS);
}

static void job_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	struct jobs *s = c->state;
	struct val job = object ? object->val : old->val;
	char text[KEY_MAX];
	str key = key_of(text, "", val_str(job, metadata, namespace), val_str(job, metadata, name));

	if (!object || job_is_finished(job)) {
		pace_forget(s, key);
		INFORMER_EACH(pod, pods_of_owner(s->pods, val_str(job, metadata, uid)))
			add_orphan(c, pod->val);
	}
	bool status_only = old && object && val_int(old->val, metadata, generation) == val_int(job, metadata, generation);
	if (status_only)
		controller_add_after(c, key, BATCH_MS);
	else
		controller_add(c, key);
}

/* ---- pods ---- */

/* (suspends) A pod that is gone is fine. */
static int remove_finalizer(struct controller *c, struct arena *a, struct val pod, struct err *err)
{
	atom directive = atom_make(a, STR("$deleteFromPrimitiveList/finalizers"));
	struct val metadata = val_put(a, VAL_EMPTY_OBJECT, directive, LIST(a, VAL_LIT(JOB_FINALIZER)));

	if (!job_pod_is_tracked(pod))
		return 0;
	int r = client_patch(c->client, TYPE(core_v1, Pod), val_str(pod, metadata, namespace), val_str(pod, metadata, name),
			     CLIENT_PATCH_STRATEGIC, OBJECT(a, F(metadata, metadata)), NULL, NULL, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int sync_orphan(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct jobs *s = c->state;
	char text[KEY_MAX];
	str job_key;
	struct frozen *pod = informer_get(s->pods, key);

	if (!pod)
		return 0;
	struct val ref = owner_controller(pod->val);
	struct frozen *job = job_of(s, pod->val, text, &job_key);
	if (job ? !job_is_managed_by_us(job->val) || !job_is_finished(job->val)
		: val_exists(ref) && !(str_eq(val_str(ref, kind), STR("Job")) && str_eq(val_str(ref, apiVersion), STR("batch/v1"))))
		return 0;
	return remove_finalizer(c, a, controller_hold(c, a, pod), err);
}

static int delete_one(size_t i, void *arg, struct err *err)
{
	struct work *w = arg;
	struct val pod = w->plan->remove[i];
	str name = val_str(pod, metadata, name), namespace = val_str(pod, metadata, namespace);
	int r = 0;

	if (!w->plan->remove_keeps_finalizer && (r = remove_finalizer(w->c, w->arena, pod, err)) < 0)
		err_wrap(err, r, "removing completion finalizer");
	if (r >= 0)
		r = pod_control_delete(w->c, w->job, namespace, name, err);
	if (r < 0)
		return r;
	if (r > 0) /* it was gone already, and will not be seen going */
		expectations_deleted(w->s->expectations, w->key, object_key(w->arena, pod));
	w->deleted[i] = true;
	w->n_ready += pod_is_ready(pod);
	return 0;
}

static int create_one(size_t i, void *arg, struct err *err)
{
	struct work *w = arg;
	const struct job_new_pod *n = &w->plan->create[i];
	struct val pod = pod_from_template(w->arena, job_pod_template(w->arena, w->job, n), w->job,
					   owner_ref(w->arena, w->job, "batch/v1", "Job"));
	str prefix = job_pod_generate_name(w->arena, w->job, n);

	if (prefix.n)
		pod = val_with(w->arena, pod, VAL_STR(prefix), metadata, generateName);
	int r = pod_control_create(w->c, w->arena, w->job, pod, NULL, err);
	if (r >= 0) {
		w->n_made++;
		return 0;
	}
	w->n_failed++;
	expectations_created(w->s->expectations, w->key);
	return error_is_namespace_ending(err) ? 0 : r;
}

static int release_one(size_t i, void *arg, struct err *err)
{
	struct work *w = arg;
	struct job_pod *x = w->plan->release[i];
	int r = remove_finalizer(w->c, w->arena, x->pod, err);

	if (r < 0)
		return err_wrap(err, r, "removing tracking finalizer");
	w->gone[i] = true;
	struct frozen *now = informer_get(w->s->pods, object_key(w->arena, x->pod));
	if (now && job_pod_is_tracked(now->val) && str_eq(val_str(now->val, metadata, uid), x->uid))
		released_add(w->s, x->uid);
	return 0;
}

/* (suspends) What the plan says about pods; how many were deleted. */
static size_t carry_out(struct work *w, struct err *err)
{
	struct job_plan *p = w->plan;
	size_t n = 0;

	w->deleted = ARENA_ARRAY(w->arena, bool, p->n_remove + 1);
	memset(w->deleted, 0, (p->n_remove + 1) * sizeof(bool));
	if (p->n_remove) {
		str *keys = ARENA_ARRAY(w->arena, str, p->n_remove);
		for (size_t i = 0; i < p->n_remove; i++)
			keys[i] = object_key(w->arena, p->remove[i]);
		if (!p->remove_keeps_finalizer)
			expect_deletions(w->s->expectations, w->key, keys, p->n_remove);
		pod_control_at_once(p->n_remove, delete_one, w, err);
		for (size_t i = 0; i < p->n_remove; i++) {
			n += w->deleted[i];
			if (!w->deleted[i])
				expectations_deleted(w->s->expectations, w->key, keys[i]);
		}
	} else if (p->n_create) {
		expect_creations(w->s->expectations, w->key, (unsigned)p->n_create);
		pod_control_batches(p->n_create, create_one, w, err);
		/* Those that were never tried after a failure will not come either. */
		for (size_t i = w->n_made + w->n_failed; i < p->n_create; i++)
			expectations_created(w->s->expectations, w->key);
	}
	return n;
}

/* ---- the status ---- */

/* (suspends) From now on the plan works on what was stored. */
static int write_status(struct work *w, struct err *err)
{
	struct frozen *stored = NULL;
	struct val job = val_with(w->arena, w->job, w->plan->status, status);
	const struct client_write_options o = { .subresource = STR("status") };

	int r = client_update(w->c->client, TYPE(batch_v1, Job), job, &o, &stored, err);
	if (r < 0)
		return r;
	w->job = val_copy(w->arena, stored->val);
	w->plan->status = val_get(w->job, status);
	frozen_unref(stored);
	return 0;
}

static void tell_end(struct work *w)
{
	struct job_plan *p = w->plan;

	if (!str_eq(str_of(p->finish.type), STR("Complete"))) {
		char reason[64];
		snprintf(reason, sizeof(reason), STR_FMT, STR_ARG(p->finish.reason));
		controller_event(w->c, w->job, true, reason, STR_FMT, STR_ARG(p->finish.message));
		return;
	}
	if (p->completions >= 0 && val_int(p->status, succeeded) > p->completions)
		controller_event(w->c, w->job, true, "TooManySucceededPods", "Too many succeeded pods running after completion count reached");
	controller_event(w->c, w->job, false, "Completed", "Job completed");
}

static int track(struct work *w, struct err *err)
{
	struct job_plan *p = w->plan;
	struct err release_err = ERR_INIT;
	int r;

	if (p->write) {
		if ((r = write_status(w, err)) < 0)
			return err_wrap(err, r, "tracking status: adding uncounted pods to status");
		pace_set(w->s, w->key, p->backoff);
	}
	w->gone = ARENA_ARRAY(w->arena, bool, p->n_release + 1);
	memset(w->gone, 0, (p->n_release + 1) * sizeof(bool));
	if (p->n_release)
		pod_control_at_once(p->n_release, release_one, w, &release_err);
	job_plan_settle(p, w->gone);
	if (p->write && (r = write_status(w, err)) < 0)
		return err_wrap(err, r, "tracking status: removing uncounted pods from status");
	if (p->finished)
		tell_end(w);
	if (!release_err.code)
		return 0;
	*err = release_err;
	return -(int)release_err.code;
}

/* ---- one look ---- */

/* (suspends) Pods that were just adopted get the finalizer, so that they are counted too. */
static int track_adopted(struct work *w, struct val *pods, struct err *err)
{
	for (size_t i = 0; i < val_len(*pods); i++) {
		struct val pod = val_at(*pods, i), finalizers = val_get(pod, metadata, finalizers);
		/* The list has them as they were before: what is not ours there has just been adopted. Our copy may show that by now. */
		if (job_pod_is_tracked(pod) || owner_is(pod, w->job))
			continue;
		struct val metadata = OBJECT(w->arena, F(uid, val_get(pod, metadata, uid)), F(finalizers, LIST(w->arena, VAL_LIT(JOB_FINALIZER))));
		int r = client_patch(w->c->client, TYPE(core_v1, Pod), val_str(pod, metadata, namespace), val_str(pod, metadata, name),
				     CLIENT_PATCH_STRATEGIC, OBJECT(w->arena, F(metadata, metadata)), NULL, NULL, err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return r;
		finalizers = val_list_append(w->arena, finalizers, VAL_LIT(JOB_FINALIZER));
		*pods = val_list_set(w->arena, *pods, i, val_with(w->arena, pod, finalizers, metadata, finalizers));
	}
	return 0;
}

static bool mode_is_known(struct val job)
{
	str mode = val_str(job, spec, completionMode);
	return !mode.n || str_eq(mode, STR("NonIndexed")) || str_eq(mode, STR("Indexed"));
}

static int sync_job(struct work *w, struct err *err)
{
	struct job_view v = { .job = w->job, .expectations_met = expectations_met(w->s->expectations, w->key), .released = is_released, .arg = w->s };
	struct err manage = ERR_INIT;
	int r;

	if ((r = pod_control_claim(w->c, w->arena, w->job, "batch/v1", "Job", val_get(w->job, spec, selector), w->s->pods, &v.pods, err)) < 0 ||
	    (r = track_adopted(w, &v.pods, err)) < 0)
		return r;
	if (!v.expectations_met)
		controller_add_after(w->c, w->key, EXPECTATIONS_LAPSE_MS);
	v.now_ns = clock_wall_ns();
	const struct pace *pace = map_get(&w->s->paces, w->key); /* only now: a Job that ends meanwhile is forgotten */
	v.backoff = pace ? pace->backoff : (struct job_backoff){ 0 };
	job_plan_make(w->arena, &v, w->plan);
	size_t removed = carry_out(w, &manage);
	job_plan_account(w->plan, removed, w->n_ready, w->n_made);
	if (w->plan->told)
		controller_event(w->c, w->job, false, w->plan->told, "Job %s", w->plan->suspended ? "suspended" : "resumed");
	if (w->plan->again_ns)
		controller_add_after(w->c, w->key, MAX(moment_wait_ms(w->plan->again_ns), (int64_t)BATCH_MS));
	if ((r = track(w, err)) < 0)
		return r;
	if (!manage.code)
		return 0;
	*err = manage;
	return -(int)manage.code;
}

static int job_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct jobs *s = c->state;

	if (str_starts(key, STR(ORPHAN)))
		return sync_orphan(c, a, str_skip(key, sizeof(ORPHAN) - 1), err);
	struct frozen *job = informer_get(s->jobs, key);
	if (!job) {
		expectations_forget(s->expectations, key);
		pace_forget(s, key);
		return 0;
	}
	if (!job_is_managed_by_us(job->val) || job_is_finished(job->val))
		return 0;
	if (!mode_is_known(job->val)) {
		controller_event(c, job->val, true, "UnknownCompletionMode", "Skipped Job sync because completion mode is unknown");
		return 0;
	}
	struct work w = { .c = c, .s = s, .arena = a, .plan = ARENA_NEW(a, struct job_plan), .job = controller_hold(c, a, job), .key = key };
	return sync_job(&w, err);
}

static void job_stop(struct controller *c)
{
	struct jobs *s = c->state;
	void *value;

	for (struct map_iter it = map_iter(&s->paces); (value = map_next(&it, NULL));)
		free(value);
	for (struct map_iter it = map_iter(&s->released); (value = map_next(&it, NULL));)
		free(value);
	map_done(&s->paces);
	map_done(&s->released);
	expectations_free(s->expectations);
	free(s);
}

static int job_start(struct controller *c, struct err *err)
{
	struct jobs *s = mem_zalloc(sizeof(*s));

	(void)err;
	c->state = s;
	c->sync = job_sync;
	map_init(&s->paces);
	map_init(&s->released);
	s->expectations = expectations_new();
	s->jobs = controller_informer(c, TYPE(batch_v1, Job));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	s->owners = (struct owners){ .all = s->jobs, .kind = "Job", .expectations = s->expectations, .delay_ms = BATCH_MS };
	informer_index(s->jobs, "namespace", informer_by_namespace);
	pod_control_index(s->pods);
	controller_watch(c, s->jobs, job_changed);
	controller_watch(c, s->pods, pod_changed);
	return 0;
}

const struct controller_kind controller_job = { .name = "job-controller", .start = job_start, .workers = 5, .stop = job_stop, .retry_ms = 1000,
						 .retry_max_ms = 60 * 1000 };
