/*
 * What pods have been given, and resizes that wait. A pod is admitted with what it asks for, and that is written down; when it asks for
 * something else later, it gets that only if the node would admit it so, and goes on with what it has until then. Two files keep this
 * over restarts: what is given, and what the runtime was told of it. Each is a PodList of uids and resources.
 *
 * Files are written before a resize goes on, so that a restart does not do it twice, but soon after a pod is admitted or ends: should that
 * be lost, the pod is admitted anew with what it asks for.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "kubelet/allocation.h"
#include "kubelet/cri_config.h"
#include "kubelet/pods_priv.h"

enum { STATE_MAX = 16 << 20, RETRY_MS = 3 * 60 * 1000 };

/* ---- files ---- */

static const char *const state_files[] = { "allocated_pods_state", "actuated_pods_state" };

static const char *state_path(const struct pods *ps, struct arena *a, size_t i)
{
	return arena_printf(a, STR_FMT "/%s", STR_ARG(ps->kubelet->node.root), state_files[i]).p;
}

static struct frozen *load(const struct pods *ps, size_t i)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX);
	struct err err = ERR_INIT;
	const char *path = state_path(ps, &a, i);
	struct val list;
	int r = file_read(path, &text, &err);

	if (r >= 0)
		r = json_decode(&a, buf_str(&text), &(struct json_decode_options){ .type = TYPE(core_v1, PodList) }, &list, &err);
	if (r >= 0)
		return val_freeze(list);
	if (r != -ERR_NOT_FOUND)
		log_warn("what pods have been given cannot be read: it will be what they ask for", KV("file", path), KV("error", &err));
	return NULL;
}

void pods_allocation_load(struct pods *ps)
{
	fiber_cond_init(&ps->given_changed, "pods that are given other resources");
	for (size_t i = 0; i < ARRAY_LEN(ps->before); i++)
		ps->before[i] = load(ps, i);
}

void pods_allocation_done(struct pods *ps)
{
	for (size_t i = 0; i < ARRAY_LEN(ps->before); i++)
		frozen_unref(ps->before[i]);
}

static struct val actuated_of(struct arena *a, const struct pod *p)
{
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < p->n_containers; i++)
		if (p->containers[i].actuated)
			val_add_item(&b, OBJECT(a, F(name, VAL_STR(str_of(p->containers[i].name))), F(resources, p->containers[i].actuated->val)));
	return OBJECT(a, F(containers, val_end_list(&b)), F(resources, p->actuated ? p->actuated->val : VAL_EMPTY));
}

static str state_text(const struct pods *ps, struct arena *a, size_t i)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX);
	struct val_builder b = val_builder(a);
	struct map_iter it = map_iter(&ps->by_uid);
	struct err err = ERR_INIT;

	for (struct pod *p; (p = map_next(&it, NULL));)
		if (p->given)
			val_add_item(&b, OBJECT(a, F(metadata, OBJECT(a, F(uid, VAL_STR(pod_uid(p))))),
						F(spec, i ? actuated_of(a, p) : p->given->val)));
	struct val list = OBJECT(a, F(items, val_end_list(&b)));
	if (json_encode(&text, list, &(struct json_encode_options){ 0 }, &err) < 0)
		log_error("what pods have been given cannot be kept", KV("error", &err));
	return arena_str(a, buf_str(&text));
}

void pods_allocation_save(struct pods *ps)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;

	if (ps->closing || !ps->complete)
		return; /* what is there is for the next kubelet to find, or is of pods that are not known again yet */
	ps->given_dirty = false;
	for (size_t i = 0; i < ARRAY_LEN(state_files); i++)
		if (file_replace(state_path(ps, &a, i), state_text(ps, &a, i), 0600, &err) < 0)
			log_error("what pods have been given cannot be written", KV("error", &err));
}

void pods_allocation_changed(struct pods *ps)
{
	ps->given_dirty = true;
	fiber_cond_signal(&ps->given_changed);
}

int pods_allocation_run(struct pods *ps, struct err *err)
{
	int r;

	while ((r = fiber_check(err)) >= 0) {
		struct err waited = ERR_INIT;
		if (ps->given_dirty)
			pods_allocation_save(ps); /* or later, when all are known */
		DEADLINE_SCOPE(RETRY_MS);
		if (fiber_cond_wait(&ps->given_changed, &waited) == -ERR_TIMEOUT)
			pods_resize_retry(ps);
	}
	return r;
}

/* ---- one pod ---- */

static struct val before_of(const struct pods *ps, size_t i, str uid)
{
	if (ps->before[i])
		VAL_EACH(pod, val_get(ps->before[i]->val, items))
			if (str_eq(val_str(*pod, metadata, uid), uid))
				return val_get(*pod, spec);
	return VAL_EMPTY;
}

static void set_conditions(struct pod *p, struct val list)
{
	struct frozen *was = p->resize; /* list may share parts of it */

	p->resize = val_len(list) ? val_freeze(list) : NULL;
	frozen_unref(was);
}

/* Those that were told before a restart are still true, until looked at. */
static void take_conditions(struct pod *p)
{
	static const char *const types[] = { RESIZE_PENDING, RESIZE_IN_PROGRESS };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val list = VAL_EMPTY_LIST;

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct val c = resize_condition(val_get(p->object->val, status, conditions), types[i]);
		if (val_exists(c))
			list = resize_condition_put(&a, list, types[i], val_str(c, reason), val_str(c, message), val_int(c, observedGeneration));
	}
	set_conditions(p, list);
}

void pod_allocation_begin(struct pod *p)
{
	struct val given = before_of(p->pods, 0, pod_uid(p)), actuated = before_of(p->pods, 1, pod_uid(p));

	if (!val_exists(given))
		return;
	p->given = val_freeze(given);
	VAL_EACH(c, val_get(actuated, containers))
		container_set_actuated(p, val_str(*c, name), val_get(*c, resources));
	if (val_has(actuated, resources))
		p->actuated = val_freeze(val_get(actuated, resources));
	take_conditions(p);
	pod_allocation_follow(p);
}

void pod_allocation_follow(struct pod *p)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct frozen *was = p->allocated;

	p->allocated = NULL;
	if (p->given && val_has(p->object->val, spec) && !allocation_is_same(p->object->val, p->given->val))
		p->allocated = val_freeze(allocation_apply(&a, p->object->val, p->given->val));
	frozen_unref(was);
}

static void give(struct pod *p)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	frozen_unref(p->given);
	p->given = val_freeze(allocation_of(&a, p->object->val));
	pod_allocation_follow(p);
}

void pod_allocation_admitted(struct pod *p)
{
	if (!p->given)
		give(p);
	else if (p->allocated)
		p->resize_waits = true; /* changed while nobody was here to see */
	pods_allocation_changed(p->pods);
}

void pod_allocation_end(struct pod *p)
{
	frozen_unref(p->given);
	frozen_unref(p->actuated);
	p->given = p->actuated = NULL;
	p->resize_waits = false;
	pods_allocation_changed(p->pods);
}

struct val pods_holding(struct pods *ps, struct arena *a)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(pod, pods_list(ps, a, true)) {
		const struct pod *p = map_get(&ps->by_uid, val_str(*pod, metadata, uid));
		bool changes = p->resize && val_exists(resize_condition(p->resize->val, RESIZE_IN_PROGRESS));
		val_add_item(&b, changes ? allocation_max(a, *pod, actuated_of(a, p)) : *pod);
	}
	return val_end_list(&b);
}

/* ---- conditions ---- */

bool pod_resize_set(struct pod *p, const char *type, str reason, str message, int64_t generation)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val list = p->resize ? p->resize->val : VAL_EMPTY_LIST, old = resize_condition(list, type);

	if (val_exists(old) && str_eq(val_str(old, reason), reason) && str_eq(val_str(old, message), message) &&
	    val_int(old, observedGeneration) == generation)
		return false;
	set_conditions(p, resize_condition_put(&a, list, type, reason, message, generation));
	return true;
}

bool pod_resize_clear(struct pod *p, const char *type, int64_t *ret_generation)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val old = p->resize ? resize_condition(p->resize->val, type) : VAL_EMPTY;

	if (!val_exists(old))
		return false;
	if (ret_generation)
		*ret_generation = val_int(old, observedGeneration);
	set_conditions(p, resize_condition_remove(&a, p->resize->val, type));
	return true;
}

void pod_resize_event(struct pod *p, bool warning, const char *reason, const char *text, int64_t generation, str error)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	kubelet_event(p->kubelet, p->object->val, STR_NONE, warning, reason, resize_message(&a, text, p->object->val, generation, error));
}

/* ---- resizes that wait ---- */

static void accept(struct pod *p, int64_t generation)
{
	give(p);
	pods_allocation_save(p->pods);
	pod_resize_clear(p, RESIZE_PENDING, NULL);
	pod_resize_clear(p, RESIZE_IN_PROGRESS, NULL);
	pod_resize_set(p, RESIZE_IN_PROGRESS, STR_NONE, STR_NONE, generation);
	pod_resize_event(p, false, "ResizeStarted", "Pod resize started", generation, STR_NONE);
	objects_touch(p->kubelet->objects, pod_uid(p)); /* limits can be seen in volumes */
	p->resize_waits = false;
	pods_poke(p->pods, pod_uid(p));
}

static void refuse(struct pod *p, struct arena *a, str reason, str message, int64_t generation)
{
	bool never = str_eq(reason, STR("Infeasible"));
	struct val old = p->resize ? resize_condition(p->resize->val, RESIZE_PENDING) : VAL_EMPTY;
	str shown = never ? reason : STR("Deferred");
	bool told = val_exists(old) && str_eq(val_str(old, reason), shown) && val_int(old, observedGeneration) == generation;

	if (pod_resize_set(p, RESIZE_PENDING, shown, message, generation))
		pods_poke(p->pods, pod_uid(p));
	p->resize_waits = !never;
	if (told)
		return;
	p->resize_since_ns = clock_now_ns();
	pod_resize_event(p, true, never ? "ResizeInfeasible" : "ResizeDeferred",
			 arena_printf(a, "Pod resize " STR_FMT, STR_ARG(reason)).p, generation, message);
}

static void try_resize(struct pod *p)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = p->object->val;
	int64_t generation = val_int(pod, metadata, generation);
	str reason = STR("Infeasible"), message;

	if (!p->allocated) {
		p->resize_waits = false;
		if (pod_resize_clear(p, RESIZE_PENDING, NULL))
			pods_poke(p->pods, pod_uid(p));
		return;
	}
	message = allocation_infeasible(&p->kubelet->node, &a, p->kubelet->config, pod, p->given->val);
	if (!message.n && pod_fits(p, &a, pod, &reason, &message))
		accept(p, generation);
	else
		refuse(p, &a, reason, message, generation);
}

/* Those first that do not grow, then by priority, then Guaranteed ones, then those that have waited longest. */
static int by_turn(const void *x, const void *y)
{
	const struct pod *p[] = { *(struct pod *const *)x, *(struct pod *const *)y };
	int64_t rank[2][4];

	for (int i = 0; i < 2; i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val pod = p[i]->object->val;
		rank[i][0] = allocation_grows(&a, pod, p[i]->given->val);
		rank[i][1] = -val_int(pod, spec, priority);
		rank[i][2] = !str_eq(pod_qos(pod), STR("Guaranteed"));
		rank[i][3] = p[i]->resize_since_ns ? p[i]->resize_since_ns : INT64_MAX;
	}
	for (size_t k = 0; k < ARRAY_LEN(rank[0]); k++)
		if (rank[0][k] != rank[1][k])
			return rank[0][k] < rank[1][k] ? -1 : 1;
	return 0;
}

void pods_resize_retry(struct pods *ps)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct pod **waiting = ARENA_ARRAY(&a, struct pod *, map_len(&ps->by_uid) + 1);
	struct map_iter it = map_iter(&ps->by_uid);
	size_t n = 0;

	if (!ps->complete || ps->closing)
		return;
	for (struct pod *p; (p = map_next(&it, NULL));)
		if (p->resize_waits && p->given && p->stage == POD_WANTED)
			waiting[n++] = p;
	qsort(waiting, n, sizeof(*waiting), by_turn);
	for (size_t i = 0; i < n; i++)
		try_resize(waiting[i]);
}

void pod_allocation_update(struct pod *p, struct val old)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	pod_allocation_follow(p);
	if (!p->given || p->stage != POD_WANTED || allocation_is_same(p->object->val, allocation_of(&a, old)))
		return;
	if (p->allocated) {
		p->resize_waits = true;
		pods_resize_retry(p->pods);
	} else {
		try_resize(p); /* it has been taken back */
	}
}
