/*
 * Container statuses. Three sources, in this order: what the runtime has of a container (its newest run is the state, the one
 * before the last state), what was told before (a container that the runtime has forgotten has not un-happened), and what the
 * kubelet knows of failed starts. Then readiness, from probes.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pod_status_priv.h"

enum { EXIT_UNKNOWN = 137, TEXT_BYTES_MAX = 1 << 20 };

/* A core/v1.ContainerStatus being made. */
struct draft {
	struct val state, last;
	int64_t restarts;
	str image, image_id, id;
	struct val allocated, resources, mounts, user, health;
	struct val started;
	bool ready;
};

/* What is common to the containers of a list. */
struct list_context {
	struct arena *arena;
	const struct pod_view *v;
	atom list;
	struct val old;             /* list of core/v1.ContainerStatus */
	bool restarting_all;
};

/* ---- pieces ---- */

struct val status_time(struct arena *a, int64_t ns)
{
	struct timestamp t = { MAX(ns, INT64_C(0)) / NS_PER_S, 0 };
	char text[TIME_TEXT_MAX];
	return VAL_STR(arena_str(a, time_format(t, text)));
}

struct val status_text(str s) { return s.n ? VAL_STR(s) : VAL_EMPTY; }

/* What is no UTF-8 is replaced, as JSON would: else what the API server then has would never be what was told. */
static str clean_text(struct arena *a, str s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_BYTES_MAX);

	if (str_is_utf8(s))
		return s;
	while (s.n) {
		uint32_t rune;
		size_t n = str_rune(s, &rune);
		buf_add(&b, n ? str_head(s, n) : STR("\xef\xbf\xbd"));
		s = str_skip(s, n ? n : 1);
	}
	return arena_str(a, buf_str(&b));
}

static struct val waiting(struct arena *a, str reason, str message)
{
	return OBJECT(a, F(waiting, OBJECT(a, F(reason, status_text(reason)), F(message, status_text(clean_text(a, message))))));
}

/* Ended, without anybody having seen how. */
static struct val lost(struct arena *a, const char *reason, const char *message, int64_t exit_code)
{
	return OBJECT(a, F(terminated, OBJECT(a, F(exitCode, val_of_int(exit_code)), F(reason, VAL_STR(str_of(reason))),
					      F(message, VAL_STR(str_of(message))))));
}

static struct val lost_at_end(struct arena *a, const char *reason)
{
	return lost(a, reason, "The container could not be located when the pod was terminated", EXIT_UNKNOWN);
}

/* Termination messages of a pod are 12 KiB in all; none is cut inside a character. */
static str cut_message(struct val pod, str message)
{
	size_t n = val_len(val_get(pod, spec, containers)) + val_len(val_get(pod, spec, initContainers)) +
		   val_len(val_get(pod, spec, ephemeralContainers));
	size_t max = n ? 12 * 1024 / n : 12 * 1024;

	if (message.n <= max)
		return message;
	while (max && ((unsigned char)message.p[max] & 0xc0) == 0x80)
		max--;
	return str_head(message, max);
}

static struct val exited(const struct list_context *x, struct val cri, str id)
{
	struct arena *a = x->arena;

	return OBJECT(a, F(terminated, OBJECT(a, F(exitCode, val_of_int(val_int(cri, exitCode))), F(reason, val_get(cri, reason)),
					      F(message, status_text(clean_text(a, cut_message(x->v->pod, val_str(cri, message))))),
					      F(startedAt, status_time(a, val_int(cri, startedAt))),
					      F(finishedAt, status_time(a, val_int(cri, finishedAt))),
					      F(containerID, VAL_STR(id)))));
}

static struct val user(struct arena *a, struct val cri)
{
	struct val u = val_get(cri, user), l = val_get(u, linux);

	if (!val_exists(u))
		return VAL_EMPTY;
	if (val_exists(l))
		l = OBJECT(a, F(uid, val_of_int(val_int(l, uid))), F(gid, val_of_int(val_int(l, gid))),
			   F(supplementalGroups, val_get(l, supplementalGroups)));
	return OBJECT(a, F(linux, l));
}

static bool mounts_recursively(const struct pod_view *v, struct val mount)
{
	str mode = val_str(mount, recursiveReadOnly), propagation = val_str(mount, mountPropagation);

	return v->recursive_readonly && (!propagation.n || str_eq(propagation, STR("None"))) &&
	       (str_eq(mode, STR("Enabled")) || str_eq(mode, STR("IfPossible")));
}

static struct val mounts(const struct list_context *x, struct val container)
{
	struct arena *a = x->arena;
	struct val_builder b = val_builder(a);

	VAL_EACH(m, val_get(container, volumeMounts)) {
		bool readonly = val_bool(*m, readOnly);
		str mode = mounts_recursively(x->v, *m) ? STR("Enabled") : STR("Disabled");
		val_add_item(&b, OBJECT(a, F(name, val_get(*m, name)), F(mountPath, val_get(*m, mountPath)),
					F(readOnly, val_of_bool(readonly)),
					F(recursiveReadOnly, readonly ? VAL_STR(mode) : VAL_EMPTY)));
	}
	return val_end_list(&b);
}

static struct draft draft_of(struct val status)
{
	return (struct draft){
		.state = val_get(status, state), .last = val_get(status, lastState), .restarts = val_int(status, restartCount),
		.image = val_str(status, image), .image_id = val_str(status, imageID), .id = val_str(status, containerID),
		.allocated = val_get(status, allocatedResources), .resources = val_get(status, resources),
		.mounts = val_get(status, volumeMounts), .user = val_get(status, user),
		.health = val_get(status, allocatedResourcesStatus), .started = val_get(status, started),
		.ready = val_bool(status, ready),
	};
}

static struct val draft_end(struct arena *a, str name, const struct draft *d)
{
	return OBJECT(a, F(name, VAL_STR(name)), F(state, d->state), F(lastState, d->last), F(ready, val_of_bool(d->ready)),
		      F(restartCount, val_of_int(d->restarts)), F(image, VAL_STR(d->image)), F(imageID, VAL_STR(d->image_id)),
		      F(containerID, VAL_STR(d->id)), F(started, d->started), F(allocatedResources, d->allocated),
		      F(resources, d->resources), F(volumeMounts, d->mounts), F(user, d->user),
		      F(allocatedResourcesStatus, d->health));
}

/* ---- one container ---- */

/* One run of it. old: what was told before. */
static struct val state_of(const struct list_context *x, struct val cri, str id, struct val old)
{
	struct arena *a = x->arena;

	switch (container_cri_state(cri)) {
	case CRI_RUNNING:
		return OBJECT(a, F(running, OBJECT(a, F(startedAt, status_time(a, val_int(cri, startedAt))))));
	case CRI_EXITED:
		return exited(x, cri, id);
	case CRI_UNKNOWN:
		if (val_has(old, state, running))
			return lost_at_end(a, x->restarting_all ? "RestartingAllContainers" : "ContainerStatusUnknown");
		break;
	default:
		break;
	}
	return waiting(a, STR_NONE, STR_NONE);
}

static str cri_id(const struct list_context *x, struct val cri)
{
	return arena_printf(x->arena, STR_FMT "://" STR_FMT, STR_ARG(x->v->runtime_name), STR_ARG(val_str(cri, id)));
}

/* From the newest run that the runtime has. */
static struct draft draft_run(const struct list_context *x, struct val container, struct val cri, struct val old)
{
	struct arena *a = x->arena;
	int64_t told = val_int(old, restartCount);
	struct draft d = { .restarts = MAX(container_cri_restarts(cri), told), .image = val_str(cri, image, image),
			   .image_id = val_str(cri, imageRef), .id = cri_id(x, cri), .mounts = mounts(x, container),
			   .user = user(a, cri), .allocated = val_get(container, resources, requests) };
	bool was_running = val_has(old, state, running), had_ended = val_has(old, state, terminated);

	if (!str_eq(val_str(old, containerID), d.id) && had_ended)
		d.last = val_get(old, state);
	else if (val_has(old, lastState, terminated))
		d.last = val_get(old, lastState);
	d.state = state_of(x, cri, d.id, old);
	/* What ended and was removed, or ended unseen, the runtime cannot have counted. */
	if (val_has(d.state, running) && had_ended && told >= container_cri_restarts(cri))
		d.restarts = told + 1;
	else if (container_cri_state(cri) == CRI_UNKNOWN && was_running)
		d.restarts = told + 1;
	d.resources = status_container_resources(a, x->v, container, cri, d.id, old);
	return d;
}

/* It was told of, and the runtime has nothing of it any more. */
static void draft_missing(const struct list_context *x, struct draft *d, struct val old)
{
	static const char removed[] = "The container is removed because RestartAllContainers in place";
	struct arena *a = x->arena;

	if (x->restarting_all && !val_has(old, state, waiting)) {
		d->state = waiting(a, STR("RestartingAllContainers"), str_of(removed));
		d->last = lost(a, "RestartingAllContainers", removed, EXIT_UNKNOWN);
		d->restarts = val_int(old, restartCount) + 1;
	} else if (val_has(old, state, running) && !val_has(d->last, terminated)) {
		d->last = lost(a, "ContainerStatusUnknown",
			       "The container could not be located when the pod was deleted.  The container used to be Running",
			       EXIT_UNKNOWN);
		d->restarts += !val_has(x->v->pod, metadata, deletionTimestamp);
	}
}

/* Before it has ever run, or after the runtime has forgotten it. */
static struct draft draft_without_run(const struct list_context *x, struct val container, struct val old)
{
	bool init = val_len(val_get(x->v->pod, spec, initContainers)) > 0;
	struct draft d = { .image = val_str(container, image), .mounts = mounts(x, container),
			   .state = waiting(x->arena, init ? STR("PodInitializing") : STR("ContainerCreating"), STR_NONE) };

	if (!val_exists(old))
		return d;
	if (val_has(old, state, terminated)) {
		d = draft_of(old);
	} else {
		d.restarts = val_int(old, restartCount);
		d.last = val_get(old, lastState);
	}
	draft_missing(x, &d, old);
	return d;
}

/* A start that failed, or that has to wait, makes it wait whatever it was. */
static void draft_failed_start(const struct list_context *x, struct draft *d, struct val container, struct val cri)
{
	const struct container_note *note = pod_view_note(x->v, val_str(container, name));
	enum cri_state state = container_cri_state(cri);

	if (x->list == A_initContainers) {
		bool forgotten = state == CRI_NONE && pod_has_made_container(x->v);
		if (state == CRI_EXITED && !val_int(cri, exitCode))
			return;
		if (forgotten && !container_is_sidecar(container) && val_has(d->state, waiting)) {
			d->state = lost(x->arena, "Completed",
					"Unable to get init container status from container runtime and pod has been initialized, "
					"treat it as exited normally", 0);
			return;
		}
	}
	if (!note->waiting_reason.n || !container_starts_next(x->v, container))
		return;
	if (val_has(d->state, terminated))
		d->last = d->state;
	d->state = waiting(x->arena, note->waiting_reason, note->waiting_message);
}

/* A kubelet that begins anew has no results yet: a container that had started is still the same. */
static bool has_started(const struct list_context *x, const struct draft *d, struct val container, struct val old)
{
	if (!val_has(d->state, running))
		return false;
	return !val_has(container, startupProbe) || pod_view_note(x->v, val_str(container, name))->started ||
	       (val_bool(old, started) && val_has(old, state, running) && str_eq(val_str(old, containerID), d->id));
}

static void draft_ready(const struct list_context *x, struct draft *d, struct val container, struct val old)
{
	bool started;

	if (x->list == A_ephemeralContainers)
		return;
	started = has_started(x, d, container, old);
	d->started = val_of_bool(started);
	if (x->list == A_initContainers && !container_is_sidecar(container))
		d->ready = val_has(d->state, terminated) && !val_int(d->state, terminated, exitCode);
	else
		d->ready = started && (!val_has(container, readinessProbe) || pod_view_note(x->v, val_str(container, name))->ready);
}

/* The run before the newest one of that name; VAL_NONE: there is none. */
static struct val previous_run(const struct pod_view *v, str name)
{
	bool newest = true;

	VAL_EACH(c, v->containers) {
		if (!str_eq(val_str(*c, metadata, name), name))
			continue;
		if (!newest)
			return *c;
		newest = false;
	}
	return VAL_EMPTY;
}

static struct val status_of(const struct list_context *x, struct val container)
{
	str name = val_str(container, name);
	struct val old = find_named(x->old, name), cri = pod_view_container(x->v, name), before;
	struct draft d;

	if (val_exists(cri)) {
		d = draft_run(x, container, cri, old);
		before = previous_run(x->v, name);
		if (val_exists(before))
			d.last = state_of(x, before, cri_id(x, before), old);
	} else {
		d = draft_without_run(x, container, old);
	}
	draft_failed_start(x, &d, container, cri);
	draft_ready(x, &d, container, old);
	if (val_exists(pod_view_note(x->v, name)->devices))
		d.health = pod_view_note(x->v, name)->devices;
	return draft_end(x->arena, name, &d);
}

/* ---- lists ---- */

static int by_name(const void *a, const void *b)
{
	return str_cmp(val_str(*(const struct val *)a, name), val_str(*(const struct val *)b, name));
}

struct val status_containers(struct arena *a, const struct pod_view *v, atom list)
{
	atom statuses = list == A_initContainers ? A_initContainerStatuses
			: list == A_containers	 ? A_containerStatuses
						 : A_ephemeralContainerStatuses;
	struct val specs = val_member(val_get(v->pod, spec), list);
	struct list_context x = { a, v, list, val_member(pod_view_status(v), statuses),
				  pod_may_restart_all(v->pod) && pod_restarts_all(v) };
	size_t n = val_len(specs);
	struct val *out;

	if (!n)
		return VAL_EMPTY;
	out = ARENA_ARRAY(a, struct val, n);
	for (size_t i = 0; i < n; i++)
		out[i] = status_of(&x, val_at(specs, i));
	if (list != A_initContainers)
		qsort(out, n, sizeof(*out), by_name);
	return val_list(a, out, n);
}

/* ---- the end ---- */

/* Whether there is any sign that containers had their turn. */
static bool has_initialized(struct val pod, struct val init_statuses, struct val statuses)
{
	size_t n = val_len(init_statuses);
	struct val spec = val_get(pod, spec, initContainers), last = val_at(init_statuses, n ? n - 1 : 0);

	if (!val_len(spec))
		return true;
	VAL_EACH(c, statuses)
		if (val_has(*c, lastState, terminated) || !val_has(*c, state, waiting))
			return true;
	if (!n)
		return false;
	if (container_is_sidecar(find_named(spec, val_str(last, name))))
		return val_has(last, state, running) && val_bool(last, started);
	return (val_has(last, lastState, terminated) && !val_int(last, lastState, terminated, exitCode)) ||
	       (val_has(last, state, terminated) && !val_int(last, state, terminated, exitCode));
}

/* The first n of a list, those that have not ended made to. */
static struct val end_first(struct arena *a, struct val list, size_t n)
{
	struct val_builder b = val_builder(a);
	size_t i = 0;

	VAL_EACH(c, list) {
		bool open = i++ < n && !val_has(*c, state, terminated);
		val_add_item(&b, open ? val_put(a, *c, A_state, lost_at_end(a, "ContainerStatusUnknown")) : *c);
	}
	return val_end_list(&b);
}

void status_containers_finish(struct arena *a, struct val pod, struct val *init_statuses, struct val *statuses)
{
	size_t begun = val_len(*init_statuses);

	if (has_initialized(pod, *init_statuses, *statuses))
		*statuses = end_first(a, *statuses, val_len(*statuses));
	/* Init containers from the first that has not had its turn on are left alone; the first of all had it. */
	while (begun > 1 && val_has(init_statuses->items[begun - 1], state, waiting) &&
	       !val_has(init_statuses->items[begun - 1], lastState, terminated))
		begun--;
	*init_statuses = end_first(a, *init_statuses, begun);
}
