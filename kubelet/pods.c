/*
 * The table of pods. Until all sources have told their pods, nothing of the API server's is admitted: what already ran before a restart
 * must not lose its place to a newcomer whose name comes first.
 */
#include "kubelet/pods.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "kubelet/admit.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pods_priv.h"

struct pods *pods_new(struct kubelet *k)
{
	struct pods *p = mem_zalloc(sizeof(*p));

	p->kubelet = k;
	map_init(&p->by_uid);
	fiber_cond_init(&p->empty, "the workers of pods to end");
	pods_allocation_load(p);
	return p;
}

str pod_uid(const struct pod *p) { return str_of(p->uid); }

void text_set(char **text, str s)
{
	char *copy = NULL;

	if (s.n) {
		copy = mem_alloc(s.n + 1);
		memcpy(copy, s.p, s.n);
		copy[s.n] = '\0';
	}
	free(*text);
	*text = copy;
}

/* ---- one pod ---- */

static struct pod *pod_new(struct pods *ps, str uid, struct frozen *object)
{
	struct pod *p = mem_zalloc(sizeof(*p));

	p->pods = ps;
	p->kubelet = ps->kubelet;
	text_set(&p->uid, uid);
	p->object = frozen_ref(object);
	p->due_ns = INT64_MAX;
	p->grace_s = -1;
	fiber_cond_init(&p->woken, "news of the pod");
	fiber_cond_init(&p->changed, "the pod to end");
	map_put(&ps->by_uid, pod_uid(p), p);
	pod_allocation_begin(p);
	return p;
}

static void memory_done(struct container_memory *m)
{
	free(m->name);
	free(m->reason);
	free(m->message);
	free(m->counted);
	free(m->probed);
	frozen_unref(m->actuated);
}

void pod_forget(struct pod *p)
{
	struct pods *ps = p->pods;
	CLEANUP(frozen_unrefp) struct frozen *again = p->again;

	map_remove(&ps->by_uid, pod_uid(p));
	objects_forget(p->kubelet->objects, pod_uid(p));
	fiber_cond_broadcast(&p->changed);
	for (size_t i = 0; i < p->n_containers; i++)
		memory_done(&p->containers[i]);
	free(p->containers);
	frozen_unref(p->object);
	frozen_unref(p->told);
	frozen_unref(p->condition);
	pod_allocation_end(p);
	frozen_unref(p->allocated);
	frozen_unref(p->resize);
	free(p->fail_reason);
	free(p->fail_message);
	free(p->uid);
	free(p);
	if (!map_len(&ps->by_uid))
		fiber_cond_broadcast(&ps->empty);
	if (again && !ps->closing)
		pods_update(ps, again);
}

void pod_set_stage(struct pod *p, enum pod_stage stage)
{
	p->stage = stage;
	fiber_cond_broadcast(&p->changed);
	if (stage != POD_ENDED)
		return;
	objects_forget(p->kubelet->objects, pod_uid(p));
	pod_allocation_end(p);
	pods_resize_retry(p->pods);
}

bool pods_must_wait(struct pod *p)
{
	struct map_iter it = map_iter(&p->pods->by_uid);
	str name = val_str(p->object->val, metadata, name), namespace = val_str(p->object->val, metadata, namespace);

	if (p->begun || !pod_is_static(p->object->val))
		return false;
	for (struct pod *other; (other = map_next(&it, NULL));)
		if (other != p && (other->begun || other->orphan) && str_eq(val_str(other->object->val, metadata, name), name) &&
		    str_eq(val_str(other->object->val, metadata, namespace), namespace))
			return true;
	p->begun = true;
	return false;
}

struct container_memory *pod_memory(struct pod *p, str name)
{
	for (size_t i = 0; i < p->n_containers; i++)
		if (str_eq(str_of(p->containers[i].name), name))
			return &p->containers[i];
	p->containers = mem_resize(p->containers, (p->n_containers + 1) * sizeof(*p->containers));
	struct container_memory *m = &p->containers[p->n_containers++];
	*m = (struct container_memory){ 0 };
	text_set(&m->name, name);
	m->note.name = str_of(m->name);
	return m;
}

static void wake(struct pod *p, unsigned why)
{
	p->wake |= why;
	fiber_cond_broadcast(&p->woken);
}

static void start_worker(struct pod *p)
{
	struct err err = ERR_INIT;
	str uid = pod_uid(p);

	wake(p, WAKE_OTHER);
	p->stranded = !p->fiber && fiber_spawn(pod_worker, p, &p->fiber, &err, "pod " STR_FMT, STR_ARG(str_head(uid, 20))) < 0;
	if (p->stranded)
		log_error("no worker for a pod; it is tried again later", KV("pod", uid), KV("error", &err));
}

void pods_start_stranded(struct pods *ps)
{
	struct map_iter it = map_iter(&ps->by_uid);

	for (struct pod *p; (p = map_next(&it, NULL));)
		if (p->stranded)
			start_worker(p);
}

void pods_free(struct pods *ps)
{
	if (!ps)
		return;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	size_t n = map_len(&ps->by_uid), i = 0;
	struct pod **all = ARENA_ARRAY(&a, struct pod *, n + 1);
	struct map_iter it = map_iter(&ps->by_uid);

	ps->closing = true;
	for (struct pod *p; (p = map_next(&it, NULL));)
		all[i++] = p;
	for (i = 0; i < n; i++)
		if (all[i]->fiber)
			fiber_cancel(all[i]->fiber);
		else
			pod_forget(all[i]);
	SHIELD_SCOPE();
	struct err err = ERR_INIT;
	while (map_len(&ps->by_uid) && fiber_cond_wait(&ps->empty, &err) == 0)
		;
	pods_allocation_done(ps);
	map_done(&ps->by_uid);
	free(ps);
}

/* ---- admission ---- */

static bool is_over(struct val pod)
{
	str phase = val_str(pod, status, phase);
	return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
}

static bool is_active(const struct pod *p)
{
	return (p->stage == POD_WANTED || p->stage == POD_ENDING) && !p->orphan;
}

void pods_reject(struct pod *p, str reason, str message)
{
	p->rejected = true;
	text_set(&p->fail_reason, reason);
	text_set(&p->fail_message, message);
	kubelet_event(p->kubelet, p->object->val, STR_NONE, true, p->fail_reason, message);
	log_info("a pod is not admitted", KV("pod", val_str(p->object->val, metadata, name)), KV("reason", reason), KV("message", message));
}

/* Others have to go so that a critical pod can run. */
static bool make_room(struct pod *p, struct arena *a, const struct admit_input *in, str *ret_reason, str *ret_message)
{
	struct err err = ERR_INIT;
	struct val victims;

	if (admit_victims(a, in, &victims, &err) < 0) {
		*ret_reason = STR("UnexpectedAdmissionError");
		*ret_message = arena_str(a, err_str(&err));
		return false;
	}
	VAL_EACH(victim, victims)
		pods_evict(p->pods, val_str(*victim, metadata, uid), STR("Preempting"), STR("Preempted in order to admit critical pod"),
			   OBJECT(a, F(type, VAL_LIT("DisruptionTarget")), F(status, VAL_LIT("True")), F(reason, VAL_LIT("TerminationByKubelet")),
				  F(message, VAL_LIT("Pod was preempted by Kubelet to accommodate a critical pod."))), -1, false, &err);
	return true;
}

bool pod_fits(struct pod *p, struct arena *a, struct val pod, str *ret_reason, str *ret_message)
{
	struct kubelet *k = p->kubelet;
	struct admit_input in = { .pod = pod, .others = pods_holding(p->pods, a),
				  .node = devices_hide(k->devices, a, node_keeper_object(k->node_keeper, a)),
				  .memory_pressure = eviction_memory_pressure(k->eviction), .disk_pressure = eviction_disk_pressure(k->eviction),
				  .pids_pressure = eviction_pids_pressure(k->eviction), .shutting_down = k->shutdown.n > 0 };

	if (admit_pod(&k->node, a, &in, ret_reason, ret_message))
		return true;
	return str_starts(*ret_reason, STR("OutOf")) && admit_is_critical(pod) && make_room(p, a, &in, ret_reason, ret_message);
}

static void admit(struct pod *p)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = (p->allocated ? p->allocated : p->object)->val;
	str reason, message;

	pod_set_stage(p, POD_WANTED);
	if (val_has(pod, metadata, deletionTimestamp) || is_over(pod))
		return;
	if (pod_fits(p, &a, pod, &reason, &message))
		pod_allocation_admitted(p);
	else
		pods_reject(p, reason, message);
}

/* ---- what is wanted ---- */

/* Whether the worker has to know. Others' words about its state concern it only where the pod waits for them, or has been ended by them. */
static bool matters(struct val old, struct val new)
{
	struct val x = val_get(old, metadata), y = val_get(new, metadata);

	return !val_equal(val_get(old, spec), val_get(new, spec)) || !val_equal(val_get(x, labels), val_get(y, labels)) ||
	       !val_equal(val_get(x, annotations), val_get(y, annotations)) ||
	       !val_equal(val_get(x, deletionTimestamp), val_get(y, deletionTimestamp)) ||
	       !val_equal(val_get(x, deletionGracePeriodSeconds), val_get(y, deletionGracePeriodSeconds)) ||
	       val_len(val_get(new, spec, readinessGates)) || is_over(new);
}

void pods_update(struct pods *ps, struct frozen *object)
{
	str uid = val_str(object->val, metadata, uid);
	struct pod *p = map_get(&ps->by_uid, uid);

	if (p && p->removed) {
		frozen_unref(p->again);
		p->again = frozen_ref(object);
		return;
	}
	if (p) {
		bool news = matters(p->object->val, object->val);
		CLEANUP(frozen_unrefp) struct frozen *old = p->object;
		p->object = frozen_ref(object);
		pod_allocation_update(p, old->val);
		statuses_check(ps->kubelet->statuses, object);
		if (news)
			wake(p, WAKE_OTHER);
		return;
	}
	p = pod_new(ps, uid, object);
	/* Pods from files wait for nobody: one of them may be the API server. */
	if (!ps->complete && !pod_is_static(object->val))
		return;
	admit(p);
	start_worker(p);
}

void pods_remove(struct pods *ps, str uid)
{
	struct pod *p = map_get(&ps->by_uid, uid);

	if (!p)
		return;
	p->removed = true;
	frozen_unref(TAKE(p->again));
	if (p->stage == POD_WAITING)
		pod_forget(p);
	else
		wake(p, WAKE_OTHER);
}

static int by_age(const void *x, const void *y)
{
	const struct pod *a = *(struct pod *const *)x, *b = *(struct pod *const *)y;
	return str_cmp(val_str(a->object->val, metadata, creationTimestamp), val_str(b->object->val, metadata, creationTimestamp));
}

static void orphan_find(struct pods *ps, str uid)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *object = val_freeze(OBJECT(&a, F(metadata, OBJECT(&a, F(uid, VAL_STR(uid))))));
	struct pod *p = pod_new(ps, uid, object);

	p->orphan = p->removed = true;
	pod_set_stage(p, POD_ENDING);
	start_worker(p);
}

void pods_complete(struct pods *ps)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	size_t n = map_len(&ps->by_uid), i = 0;
	struct pod **all = ARENA_ARRAY(&a, struct pod *, n + 1), *p;
	struct map_iter it = map_iter(&ps->by_uid);

	if (ps->complete)
		return;
	ps->complete = true;
	while ((p = map_next(&it, NULL)))
		all[i++] = p;
	qsort(all, n, sizeof(*all), by_age);
	for (i = 0; i < n; i++) {
		if (all[i]->stage != POD_WAITING)
			continue;
		admit(all[i]);
		start_worker(all[i]);
	}
	pods_resize_retry(ps);
	pods_allocation_changed(ps);
	VAL_EACH(uid, runtime_pods_list(ps->kubelet->runtime_pods, &a))
		if (!map_get(&ps->by_uid, val_as_str(*uid)))
			orphan_find(ps, val_as_str(*uid));
}

/* ---- what happens ---- */

void pods_wake(struct pods *ps, str uid)
{
	struct pod *p = map_get(&ps->by_uid, uid);

	if (p)
		wake(p, WAKE_RUNTIME);
	else if (ps->complete && !ps->closing && runtime_pods_has(ps->kubelet->runtime_pods, uid))
		orphan_find(ps, uid);
}

void pods_poke(struct pods *ps, str uid)
{
	struct pod *p = map_get(&ps->by_uid, uid);

	if (p)
		wake(p, WAKE_OTHER);
}

void pods_retry(struct pods *ps)
{
	struct map_iter it = map_iter(&ps->by_uid);

	for (struct pod *p; (p = map_next(&it, NULL));)
		if (p->failed)
			wake(p, WAKE_OTHER);
}

void pods_probe_failed(struct pods *ps, str uid, str container, bool startup)
{
	struct pod *p = map_get(&ps->by_uid, uid);
	struct container_memory *m = p ? pod_memory(p, container) : NULL;

	if (!m)
		return;
	if (startup)
		m->startup_failed = true;
	else
		m->liveness_failed = true;
	wake(p, WAKE_OTHER);
}

int pods_evict(struct pods *ps, str uid, str reason, str message, struct val condition, int64_t grace_s, bool wait, struct err *err)
{
	struct pod *p = map_get(&ps->by_uid, uid);
	int r = 0;

	if (!p || p->stage == POD_ENDED)
		return 0;
	if (!p->fail_reason) {
		text_set(&p->fail_reason, reason);
		text_set(&p->fail_message, message);
		frozen_unref(p->condition);
		p->condition = val_exists(condition) ? val_freeze(condition) : NULL;
	}
	if (grace_s >= 0 && (p->grace_s < 0 || grace_s < p->grace_s))
		p->grace_s = grace_s;
	wake(p, WAKE_OTHER);
	while (wait && r >= 0 && (p = map_get(&ps->by_uid, uid)) && p->stage != POD_ENDED)
		r = fiber_cond_wait(&p->changed, err);
	return r;
}

/* ---- looking ---- */

static struct val shown(const struct pod *p, struct arena *a)
{
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	struct val pod = (p->allocated ? p->allocated : p->object)->val;

	if (p->told)
		pod = val_put(&scratch, pod, A_status, p->told->val);
	return val_copy(a, pod);
}

struct val pods_by_uid(struct pods *ps, struct arena *a, str uid)
{
	const struct pod *p = map_get(&ps->by_uid, uid);
	return p && !p->orphan ? shown(p, a) : VAL_EMPTY;
}

struct val pods_get(struct pods *ps, struct arena *a, str namespace, str name)
{
	struct map_iter it = map_iter(&ps->by_uid);
	struct pod *found = NULL;

	/* One that ends may still be here beside the next of its name. */
	for (struct pod *p; (p = map_next(&it, NULL));)
		if (!p->orphan && str_eq(val_str(p->object->val, metadata, name), name) &&
		    str_eq(val_str(p->object->val, metadata, namespace), namespace) && (!found || p->stage == POD_WANTED))
			found = p;
	return found ? shown(found, a) : VAL_EMPTY;
}

struct val pods_list(struct pods *ps, struct arena *a, bool active)
{
	struct val_builder b = val_builder(a);
	struct map_iter it = map_iter(&ps->by_uid);

	for (struct pod *p; (p = map_next(&it, NULL));)
		if (!p->orphan && (!active || (is_active(p) && !p->rejected && !is_over(p->object->val))))
			val_add_item(&b, shown(p, a));
	return val_end_list(&b);
}

bool pods_may_clean(struct pods *ps, str uid)
{
	const struct pod *p = map_get(&ps->by_uid, uid);
	return ps->complete && (!p || p->stage == POD_ENDED);
}

bool pods_is_gone(struct pods *ps, str uid)
{
	struct pod *p = map_get(&ps->by_uid, uid);
	return !p || p->cleaned;
}

bool pods_are_complete(const struct pods *ps) { return ps->complete; }
size_t pods_count(const struct pods *ps) { return map_len(&ps->by_uid); }
