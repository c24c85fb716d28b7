/*
 * Resources that change while containers run: what has been given to a pod (pod_allocation.c) is told to the kernel and the runtime. Limits
 * of the pod grow before those of its containers, and shrink after them. Before memory is taken away somebody looks whether it is
 * in use: half a resize would be worse than none.
 */
#include "base/buf.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/allocation.h"
#include "kubelet/cri_config_priv.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pods_priv.h"

enum { TEXT_MAX = 4096 };

void container_set_actuated(struct pod *p, str name, struct val resources)
{
	struct container_memory *m = pod_memory(p, name);

	frozen_unref(m->actuated);
	m->actuated = val_freeze(val_exists(resources) ? resources : VAL_EMPTY_OBJECT);
	m->note.actuated = m->actuated->val;
	pods_allocation_changed(p->pods);
}

void pod_set_actuated(struct pod *p, struct val resources)
{
	frozen_unref(p->actuated);
	p->actuated = val_freeze(val_exists(resources) ? resources : VAL_EMPTY_OBJECT);
	pods_allocation_changed(p->pods);
}

/* ---- whether there is anything to do ---- */

static bool pod_level_changed(const struct pod *p, struct val pod)
{
	return p->actuated && !resources_same(val_get(pod, spec, resources), p->actuated->val);
}

static bool is_resized(struct pod *p, struct val pod, struct val container)
{
	struct val actuated = pod_memory(p, val_str(container, name))->note.actuated;

	return val_exists(actuated) && container_is_resized(val_get(pod, spec, resources), container,
							    p->actuated ? p->actuated->val : val_get(pod, spec, resources), actuated);
}

bool pod_resize_is_open(struct pod *p, const struct pod_view *v)
{
	static const atom lists[] = { A_initContainers, A_containers };
	struct val pod = (p->allocated ? p->allocated : p->object)->val;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(val_get(pod, spec), lists[i]))
			if (container_cri_state(pod_view_container(v, val_str(*c, name))) == CRI_RUNNING && is_resized(p, pod, *c))
				return true;
	return pod_level_changed(p, pod);
}

static bool starts_resized(struct pod *p, const struct pod_view *v, const struct pod_actions *actions)
{
	for (size_t i = 0; i < actions->n_starts; i++)
		if (actions->starts[i].list != LIST_EPHEMERAL && is_resized(p, v->pod, pod_container_of(v->pod, actions->starts[i])))
			return true;
	return false;
}

void pod_resize_look(struct pod *p, const struct pod_view *v)
{
	int64_t generation = val_int(p->object->val, metadata, generation);

	if (!p->given)
		return;
	if (pod_resize_is_open(p, v)) {
		if (!p->resize || !val_exists(resize_condition(p->resize->val, RESIZE_IN_PROGRESS)))
			pod_resize_set(p, RESIZE_IN_PROGRESS, STR_NONE, STR_NONE, generation);
	} else if (pod_resize_clear(p, RESIZE_IN_PROGRESS, &generation)) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val pod = (p->allocated ? p->allocated : p->object)->val;
		kubelet_event(p->kubelet, p->object->val, STR_NONE, false, "ResizeCompleted",
			      resize_message(&a, "Pod resize completed", pod, generation, STR_NONE));
		pods_resize_retry(p->pods); /* what it gave back may be what another waits for */
	}
}

/* ---- is the memory free? ---- */

struct complaints {
	struct buf text;
	size_t n;
};

static void complaints_done(struct complaints *c) { buf_done(&c->text); }

static void complain(struct complaints *c, str text)
{
	if (c->n++)
		buf_add(&c->text, STR(", "));
	buf_add(&c->text, text);
}

/* How much memory a container would have less than it has, as a limit; 0: it would not. */
static int64_t lower_limit(struct pod *p, struct val pod, struct val container)
{
	struct val actuated = pod_memory(p, val_str(container, name))->note.actuated;
	int64_t want = resources_memory(val_get(container, resources, limits)), is = resources_memory(val_get(actuated, limits));

	if (!want)
		want = resources_memory(val_get(pod, spec, resources, limits));
	return want && val_exists(actuated) && (!is || want < is) ? want : 0;
}

static void check_container(struct complaints *c, struct arena *a, str name, int64_t limit, struct val of_container, struct val of_pod)
{
	struct val used = val_get(of_container, memory, usageBytes);

	if (!val_exists(used))
		complain(c, arena_printf(a, "missing container \"" STR_FMT "\" memory usage", STR_ARG(name)));
	else if (val_as_int(used) >= limit) /* it is the pod's use that is shown, as in 1.36 */
		complain(c, arena_printf(a, "attempting to set container \"" STR_FMT "\" memory limit (%lld) below current usage (%lld)",
					 STR_ARG(name), (long long)limit, (long long)val_int(of_pod, memory, usageBytes)));
}

/* (suspends) */
static int check_memory(struct pod *p, struct arena *a, const struct pod_view *v, const struct pod_actions *actions, struct err *err)
{
	struct kubelet *k = p->kubelet;
	CLEANUP(complaints_done) struct complaints c = { .text = BUF_INIT(TEXT_MAX) };
	int64_t of_pod = k->cgroups ? cgroups_pod_memory_drop(k->cgroups, v->pod) : 0;
	bool lower = of_pod > 0;

	for (size_t i = 0; i < actions->n_resizes; i++)
		lower |= lower_limit(p, v->pod, pod_container_of(v->pod, actions->resizes[i])) > 0;
	if (!lower)
		return 0;
	struct val stats = stats_pod(k->stats, a, v->pod), used = val_get(stats, memory, usageBytes);
	if (of_pod && !val_exists(used))
		complain(&c, STR("missing pod memory usage"));
	else if (of_pod && val_as_int(used) >= of_pod)
		complain(&c, arena_printf(a, "attempting to set pod memory limit (%lld) below current usage (%lld)", (long long)of_pod,
					  (long long)val_as_int(used)));
	for (size_t i = 0; i < actions->n_resizes; i++) {
		struct val container = pod_container_of(v->pod, actions->resizes[i]);
		int64_t limit = lower_limit(p, v->pod, container);
		str name = val_str(container, name);
		if (limit)
			check_container(&c, a, name, limit, find_named(val_get(stats, containers), name), stats);
	}
	if (!c.n)
		return 0;
	return err_set(err, ERR_CONFLICT, "cannot decrease memory limits: %s" STR_FMT "%s", c.n > 1 ? "[" : "", STR_ARG(buf_str(&c.text)),
		       c.n > 1 ? "]" : "");
}

/* ---- doing it ---- */

/* (suspends) The runtime hears of it before the kernel does: it may refuse. Old ones know no such call. */
static int tell_sandbox(struct pod *p, struct arena *a, const struct pod_view *v, struct err *err)
{
	struct kubelet *k = p->kubelet;
	struct err failed = ERR_INIT;
	struct val answer, sandbox = val_at(v->sandboxes, 0);
	struct val request = OBJECT(a, F(podSandboxId, val_get(sandbox, id)), F(overhead, cri_config_overhead(&k->node, a, v->pod)),
				    F(resources, cri_config_sandbox_resources(&k->node, a, v->pod)));

	if (!val_exists(sandbox) || cri_ask(k->cri, &rpc_RuntimeService_UpdatePodSandboxResources, a, request, 0, &answer, &failed) >= 0)
		return 0;
	str text = cri_error_text(a, &failed);
	if (cri_text_is_unknown_call(text))
		return 0;
	return err_set(err, failed.code, "failed to notify runtime for UpdatePodSandboxResources; resize rejected: " STR_FMT, STR_ARG(text));
}

/* (suspends) */
static int resize_container(struct pod *p, struct arena *a, const struct pod_view *v, struct container_start which, struct err *err)
{
	struct kubelet *k = p->kubelet;
	struct err failed = ERR_INIT;
	struct val c = pod_container_of(v->pod, which), status = pod_view_container(v, val_str(c, name)), answer;
	struct val request = OBJECT(a, F(containerId, val_get(status, id)), F(linux, container_resources_make(&k->node, a, v->pod, c)));
	int r = cri_ask(k->cri, &rpc_RuntimeService_UpdateContainerResources, a, request, 0, &answer, &failed);

	if (r < 0)
		return err_set(err, failed.code, STR_FMT, STR_ARG(cri_error_text(a, &failed)));
	container_set_actuated(p, val_str(c, name), val_get(c, resources));
	return 0;
}

/* (suspends) */
static int resize(struct pod *p, struct arena *a, const struct pod_view *v, const struct pod_actions *actions, struct err *err)
{
	struct cgroups *groups = p->kubelet->cgroups;
	int r;

	if ((r = check_memory(p, a, v, actions, err)) < 0 || (r = tell_sandbox(p, a, v, err)) < 0 ||
	    (groups && (r = cgroups_pod_resize(groups, v->pod, true, err)) < 0))
		return r;
	for (size_t i = 0; i < actions->n_resizes; i++)
		if ((r = resize_container(p, a, v, actions->resizes[i], err)) < 0)
			return r;
	if (groups && (r = cgroups_pod_resize(groups, v->pod, false, err)) < 0)
		return r;
	if (val_has(v->pod, spec, resources))
		pod_set_actuated(p, val_get(v->pod, spec, resources));
	return 0;
}

int pod_resize(struct pod *p, struct arena *a, const struct pod_view *v, const struct pod_actions *actions, struct err *err)
{
	if (actions->kill_pod || (!actions->n_resizes && !pod_level_changed(p, v->pod) && !starts_resized(p, v, actions)))
		return 0;
	int r = resize(p, a, v, actions, err);
	pods_allocation_save(p->pods); /* part of it may have been done */
	if (r >= 0)
		return 1;
	if (r == -ERR_CANCELED)
		return r;
	struct val old = p->resize ? resize_condition(p->resize->val, RESIZE_IN_PROGRESS) : VAL_EMPTY;
	int64_t generation = val_exists(old) ? val_int(old, observedGeneration) : val_int(p->object->val, metadata, generation);
	if (pod_resize_set(p, RESIZE_IN_PROGRESS, STR("Error"), err_str(err), generation))
		kubelet_event(p->kubelet, p->object->val, STR_NONE, true, "ResizeError",
			      resize_message(a, "Pod resize error", v->pod, generation, err_str(err)));
	return r;
}
