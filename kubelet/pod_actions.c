/*
 * What to do next follows from three looks: at the sandbox (a new one means that everything begins anew), at init containers (from
 * the last to the first, since those that are done may have been removed: the last one that is known tells how far the pod has
 * come) and, once these are through, at the containers. Back-off comes last and only leaves out starts: whether the pod has come
 * to its end is decided without it.
 */
#include "kubelet/pod_actions.h"

#include "base/clock.h"
#include "codec/atoms.h"
#include "kubelet/cri_config.h"
#include "kubelet/pod_rules.h"

#define HASH_ANNOTATION STR("io.kubernetes.container.hash")

/* Indexes of containers to start, and what is being decided. Every array has room for all containers. */
struct plan {
	struct arena *arena;
	const struct pod_view *v;
	const struct probe_failure *failed;
	size_t n_failed;
	struct pod_actions *out;
	struct val init, containers;
	size_t *init_starts, *starts;
	size_t n_init_starts, n_starts;
};

static struct val cri_of(const struct plan *p, struct val container)
{
	return pod_view_container(p->v, val_str(container, name));
}

static void add_kill(struct plan *p, struct val status, enum kill_reason reason, str message)
{
	p->out->kills[p->out->n_kills++] =
		(struct container_kill){ val_str(status, id), val_str(status, metadata, name), reason, message };
}

#define add_killf(p, status, reason, ...) add_kill(p, status, reason, arena_printf((p)->arena, __VA_ARGS__))

static bool probe_failed(const struct plan *p, struct val container, enum kill_reason reason)
{
	for (size_t i = 0; i < p->n_failed; i++)
		if (p->failed[i].reason == reason && str_eq(p->failed[i].container, val_str(container, name)))
			return true;
	return false;
}

/* A container without the annotation is left as it is. */
static bool has_changed(struct arena *a, struct val container, struct val status)
{
	str hash = val_as_str(val_find(val_get(status, annotations), HASH_ANNOTATION));
	return hash.n && !str_eq(hash, arena_printf(a, "%x", (unsigned)container_hash(container)));
}

/* ---- resizing in place ---- */

/* What of a container's resources can change while it runs. */
struct amounts {
	int64_t cpu_request, cpu_limit, memory_request, memory_limit;
};

/* A limit that the container does not have is that of the pod. */
static struct amounts amounts_of(struct val of_pod, struct val of_container)
{
	struct val requests = val_get(of_container, requests), limits = val_get(of_container, limits);
	struct amounts n = { resources_cpu_milli(requests), resources_cpu_milli(limits), resources_memory(requests),
			     resources_memory(limits) };

	if (!n.cpu_limit)
		n.cpu_limit = resources_cpu_milli(val_get(of_pod, limits));
	if (!n.memory_limit)
		n.memory_limit = resources_memory(val_get(of_pod, limits));
	return n;
}

bool container_is_resized(struct val of_pod, struct val container, struct val pod_was, struct val was)
{
	struct amounts x = amounts_of(of_pod, val_get(container, resources)), y = amounts_of(pod_was, was);

	return x.cpu_request != y.cpu_request || x.cpu_limit != y.cpu_limit || x.memory_request != y.memory_request ||
	       x.memory_limit != y.memory_limit;
}

static bool resize_restarts(struct val container, const char *resource)
{
	VAL_EACH(policy, val_get(container, resizePolicy))
		if (str_eq(val_str(*policy, resourceName), str_of(resource)))
			return str_eq(val_str(*policy, restartPolicy), STR("RestartContainer"));
	return false;
}

static void add_resize(struct plan *p, struct container_start which, bool shrinks)
{
	struct container_start *list = p->out->resizes;
	size_t at = shrinks ? 0 : p->out->n_resizes;

	for (size_t i = p->out->n_resizes; i > at; i--)
		list[i] = list[i - 1];
	list[at] = which;
	p->out->n_resizes++;
}

/* False: its resources have changed so that it must restart, and that has been arranged. */
static bool resize_in_place(struct plan *p, enum container_list list, size_t index, struct val container, struct val status)
{
	str name = val_str(container, name);
	const struct container_note *note = pod_view_note(p->v, name);
	struct val of_pod = val_get(p->v->pod, spec, resources), pod_was = val_exists(p->v->actuated) ? p->v->actuated : of_pod;
	struct amounts want = amounts_of(of_pod, val_get(container, resources));
	struct amounts is = amounts_of(pod_was, val_exists(note->actuated) ? note->actuated : val_get(container, resources));
	bool cpu = want.cpu_request != is.cpu_request || want.cpu_limit != is.cpu_limit;
	bool memory = want.memory_request != is.memory_request || want.memory_limit != is.memory_limit;

	if (!cpu && !memory)
		return true;
	if ((cpu && resize_restarts(container, "cpu")) || (memory && resize_restarts(container, "memory"))) {
		add_killf(p, status, KILL_CHANGED, "Container " STR_FMT " resize requires restart", STR_ARG(name));
		if (list == LIST_INIT_CONTAINERS)
			p->init_starts[p->n_init_starts++] = index;
		else
			p->starts[p->n_starts++] = index;
		return false;
	}
	add_resize(p, (struct container_start){ list, index, (unsigned)container_cri_restarts(status) },
		   want.memory_limit < is.memory_limit || want.cpu_limit < is.cpu_limit);
	return true;
}

/* ---- init containers ---- */

static bool init_has_failed(struct val status)
{
	return container_cri_state(status) == CRI_UNKNOWN || val_int(status, exitCode) ||
	       str_eq(val_str(status, reason), STR("OOMKilled"));
}

static void restart_init(struct plan *p, size_t i) { p->init_starts[p->n_init_starts++] = i; }

/* How a look at one init container ends. */
enum init_verdict {
	INIT_BUSY,     /* what follows it has to wait */
	INIT_DONE,     /* what follows it may start */
	INIT_FAILED,   /* and with it the pod */
};

/* A sidecar that runs. */
static enum init_verdict look_at_sidecar(struct plan *p, size_t i, struct val c, struct val status)
{
	str name = val_str(c, name);

	if (probe_failed(p, c, KILL_STARTUP)) {
		add_killf(p, status, KILL_STARTUP, "Init container " STR_FMT " failed startup probe", STR_ARG(name));
		restart_init(p, i);
		return INIT_BUSY;
	}
	return val_has(c, startupProbe) && !pod_view_note(p->v, name)->started ? INIT_BUSY : INIT_DONE;
}

/* The same, once it has started: it may have to restart nevertheless. */
static void keep_sidecar(struct plan *p, size_t i, struct val c, struct val status)
{
	str name = val_str(c, name);

	if (has_changed(p->arena, c, status)) {
		add_killf(p, status, KILL_CHANGED, "Init container " STR_FMT " definition changed", STR_ARG(name));
		restart_init(p, i);
	} else if (probe_failed(p, c, KILL_LIVENESS)) {
		add_killf(p, status, KILL_LIVENESS, "Init container " STR_FMT " failed liveness probe", STR_ARG(name));
		restart_init(p, i);
	} else {
		resize_in_place(p, LIST_INIT_CONTAINERS, i, c, status);
	}
}

static bool restarts_on_failure(const struct plan *p, struct val container)
{
	str policy = val_str(container, restartPolicy);
	return !str_eq(policy.n ? policy : val_str(p->v->pod, spec, restartPolicy), STR("Never"));
}

static enum init_verdict look_at_ended_init(struct plan *p, size_t i, struct val c, struct val status)
{
	if (container_is_sidecar(c)) {
		restart_init(p, i);
		return INIT_BUSY;
	}
	if (!init_has_failed(status))
		return INIT_DONE;
	if (!container_starts_next(p->v, c))
		return INIT_FAILED;
	restart_init(p, i);
	return INIT_BUSY;
}

static enum init_verdict look_at_init(struct plan *p, size_t i, struct val c, struct val status)
{
	switch (container_cri_state(status)) {
	case CRI_RUNNING:
		if (container_is_sidecar(c))
			return look_at_sidecar(p, i, c, status);
		resize_in_place(p, LIST_INIT_CONTAINERS, i, c, status);
		return INIT_BUSY;
	case CRI_EXITED:
		return look_at_ended_init(p, i, c, status);
	case CRI_UNKNOWN:
		if (!container_is_sidecar(c) && !restarts_on_failure(p, c))
			return INIT_FAILED;
		add_kill(p, status, KILL_UNKNOWN_STATE,
			 STR("Init container is in \"unknown\" state, try killing it before restart"));
		break;
	default: /* the runtime could not start what it has made */
		break;
	}
	restart_init(p, i);
	return INIT_BUSY;
}

static bool any_container_is_up(const struct plan *p)
{
	VAL_EACH(c, p->containers) {
		enum cri_state state = container_cri_state(cri_of(p, *c));
		if (state == CRI_CREATED || state == CRI_RUNNING)
			return true;
	}
	return false;
}

static void reverse(size_t *list, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		size_t x = list[i];
		list[i] = list[n - 1 - i];
		list[n - 1 - i] = x;
	}
}

/* Whether the containers may be looked at. */
static bool plan_init(struct plan *p)
{
	size_t n = val_len(p->init);
	bool initialized = any_container_is_up(p), passed = initialized; /* passed: a later one is known to have begun */

	for (size_t i = n; i-- > 0;) {
		struct val c = p->init.items[i], status = cri_of(p, c);
		bool sidecar = container_is_sidecar(c);
		enum init_verdict verdict;

		if (!val_exists(status)) {
			if (passed && sidecar)
				restart_init(p, i);
			continue;
		}
		if (passed && !sidecar)
			continue; /* it is done for good */
		verdict = look_at_init(p, i, c, status);
		if (verdict == INIT_FAILED) {
			p->out->kill_pod = true;
			p->n_init_starts = 0;
			return false;
		}
		if (verdict == INIT_DONE) {
			if (i == n - 1)
				initialized = true;
			else if (!passed)
				restart_init(p, i + 1);
			if (sidecar)
				keep_sidecar(p, i, c, status);
		}
		passed = true;
	}
	if (n && !passed)
		restart_init(p, 0);
	reverse(p->init_starts, p->n_init_starts);
	return initialized || !n;
}

/* ---- containers ---- */

static void plan_stopped(struct plan *p, size_t i, struct val c, struct val status)
{
	if (!container_starts_next(p->v, c))
		return;
	p->starts[p->n_starts++] = i;
	/* It may well run: there must not be two. */
	if (container_cri_state(status) == CRI_UNKNOWN)
		add_kill(p, status, KILL_UNKNOWN_STATE, STR("Container is in \"unknown\" state, try killing it before restart"));
}

/* True: it goes on. */
static bool plan_running(struct plan *p, size_t i, struct val c, struct val status)
{
	static const char *const why[] = { [KILL_CHANGED] = "definition changed", [KILL_LIVENESS] = "failed liveness probe",
					   [KILL_STARTUP] = "failed startup probe" };
	str name = val_str(c, name);
	bool restart = restarts_on_failure(p, c);
	enum kill_reason reason;

	if (has_changed(p->arena, c, status)) {
		reason = KILL_CHANGED;
		restart = true;
	} else if (probe_failed(p, c, KILL_LIVENESS)) {
		reason = KILL_LIVENESS;
	} else if (probe_failed(p, c, KILL_STARTUP)) {
		reason = KILL_STARTUP;
	} else {
		return resize_in_place(p, LIST_CONTAINERS, i, c, status);
	}
	if (restart)
		p->starts[p->n_starts++] = i;
	add_killf(p, status, reason, "Container " STR_FMT " %s%s", STR_ARG(name), why[reason],
		  restart ? ", will be restarted" : "");
	return false;
}

static void plan_containers(struct plan *p)
{
	size_t n = val_len(p->containers), kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct val c = p->containers.items[i], status = cri_of(p, c);
		if (container_cri_state(status) == CRI_RUNNING)
			kept += plan_running(p, i, c, status);
		else
			plan_stopped(p, i, c, status);
	}
	if (!kept && !p->n_starts) {
		p->out->kill_pod = true;
		p->n_init_starts = 0; /* sidecars do not keep a pod alive */
	}
}

/* ---- the pod ---- */

/* With a new sandbox everything begins anew, but what has succeeded and need not. */
static void plan_new_sandbox(struct plan *p)
{
	size_t n = val_len(p->containers);
	bool never = str_eq(val_str(p->v->pod, spec, restartPolicy), STR("Never"));

	p->out->kill_pod = true;
	if (never && p->out->attempt && val_len(p->v->containers))
		return;
	for (size_t i = 0; i < n; i++) {
		struct val c = p->containers.items[i], status = cri_of(p, c);
		str policy = val_str(c, restartPolicy);
		bool once = str_eq(policy.n ? policy : val_str(p->v->pod, spec, restartPolicy), STR("OnFailure"));
		if (!once || container_cri_state(status) != CRI_EXITED || val_int(status, exitCode))
			p->starts[p->n_starts++] = i;
	}
	if (!p->n_starts && pod_has_made_container(p->v))
		return;
	p->out->create_sandbox = true;
	if (val_len(p->init)) {
		restart_init(p, 0);
		p->n_starts = 0;
	}
}

static bool anything_runs(const struct pod_view *v)
{
	VAL_EACH(s, v->sandboxes)
		if (sandbox_is_ready(*s))
			return true;
	VAL_EACH(c, v->containers)
		if (container_cri_state(*c) != CRI_EXITED)
			return true;
	return false;
}

/* All that the runtime has of these containers: sources are those whose end began it. */
static void add_resets(struct plan *p, struct val list, bool sources)
{
	VAL_EACH(c, list)
		VAL_EACH(status, p->v->containers) {
			bool ended = container_cri_state(*status) == CRI_EXITED;
			bool source = ended && container_restarts_all(*c, val_int(*status, exitCode));
			if (str_eq(val_str(*status, metadata, name), val_str(*c, name)) && source == sources)
				p->out->resets[p->out->n_resets++] = (struct container_kill){
					val_str(*status, id), val_str(*c, name), KILL_RESTART_ALL, STR("killing") };
		}
}

static void plan_resets(struct plan *p)
{
	p->out->resets = ARENA_ARRAY(p->arena, struct container_kill, val_len(p->v->containers));
	for (int sources = 0; sources < 2; sources++) {
		add_resets(p, p->containers, sources);
		add_resets(p, p->init, sources);
	}
}

/* ---- starts: attempts and back-off ---- */

/* The restart count that it will have. The runtime may have forgotten what ran: then what was told counts. */
static unsigned next_attempt(const struct plan *p, struct val container, atom statuses)
{
	str name = val_str(container, name);
	struct val status = cri_of(p, container);

	if (val_exists(status))
		return (unsigned)container_cri_restarts(status) + 1;
	VAL_EACH(was, val_member(pod_view_status(p->v), statuses)) {
		if (!str_eq(val_str(*was, name), name))
			continue;
		/* A restart that was made known without a container to show for it has been counted already. */
		bool ran = !val_has(*was, state, waiting) || val_str(*was, lastState, terminated, containerID).n;
		return (unsigned)val_int(*was, restartCount) + (ran && val_has(*was, state));
	}
	return 0;
}

/* False: it has to wait. */
static bool add_start(struct plan *p, enum container_list list, size_t i)
{
	static const struct { atom specs, statuses; } names[] = {
		[LIST_INIT_CONTAINERS] = { A_initContainers, A_initContainerStatuses },
		[LIST_CONTAINERS] = { A_containers, A_containerStatuses },
		[LIST_EPHEMERAL] = { A_ephemeralContainers, A_ephemeralContainerStatuses },
	};
	struct pod_actions *out = p->out;
	struct val c = val_at(val_member(val_get(p->v->pod, spec), names[list].specs), i);
	int64_t until = pod_view_note(p->v, val_str(c, name))->backoff_until_ns;

	if (until > p->v->now_ns) {
		out->again_ns = MIN(out->again_ns, until);
		return false;
	}
	out->starts[out->n_starts++] = (struct container_start){ list, i, next_attempt(p, c, names[list].statuses) };
	return true;
}

static void add_ephemeral(struct plan *p)
{
	size_t i = 0;

	VAL_EACH(c, val_get(p->v->pod, spec, ephemeralContainers)) {
		if (!val_exists(cri_of(p, *c)))
			add_start(p, LIST_EPHEMERAL, i);
		i++;
	}
}

static void add_starts(struct plan *p)
{
	for (size_t k = 0; k < p->n_init_starts; k++) {
		size_t i = p->init_starts[k];
		if (!add_start(p, LIST_INIT_CONTAINERS, i) && !container_is_sidecar(p->init.items[i]))
			return; /* nothing comes before its turn */
	}
	for (size_t k = 0; k < p->n_starts; k++)
		add_start(p, LIST_CONTAINERS, p->starts[k]);
}

void pod_actions_compute(struct arena *a, const struct pod_view *v, const struct probe_failure *failed, size_t n_failed,
			 struct pod_actions *ret)
{
	struct plan p = { .arena = a, .v = v, .failed = failed, .n_failed = n_failed, .out = ret,
			  .init = val_get(v->pod, spec, initContainers), .containers = val_get(v->pod, spec, containers) };
	size_t n_init = val_len(p.init), n = val_len(p.containers);
	size_t n_all = n_init + n + val_len(val_get(v->pod, spec, ephemeralContainers));

	*ret = (struct pod_actions){ .again_ns = INT64_MAX };
	if (v->terminating || v->terminated) {
		ret->kill_pod = anything_runs(v);
		return;
	}
	if (!v->volumes_mounted)
		return;
	/* An init container can be named twice: as the next one, and because it has to restart. */
	ret->starts = ARENA_ARRAY(a, struct container_start, n_all + n_init);
	ret->kills = ARENA_ARRAY(a, struct container_kill, n_all + n_init);
	ret->resizes = ARENA_ARRAY(a, struct container_start, n_all);
	p.init_starts = ARENA_ARRAY(a, size_t, 2 * n_init + 1);
	p.starts = ARENA_ARRAY(a, size_t, n);

	bool anew = pod_needs_sandbox(v, &ret->attempt, &ret->sandbox_id);
	if (pod_may_restart_all(v->pod) && pod_restarts_all(v) && pod_has_leftovers(v)) {
		plan_resets(&p);
		return;
	}
	if (anew) {
		plan_new_sandbox(&p);
	} else {
		add_ephemeral(&p);
		if (plan_init(&p))
			plan_containers(&p);
	}
	add_starts(&p);
}

/* ---- back-off ---- */

int64_t crash_backoff_next(struct crash_backoff *b, int64_t started_ns, int64_t finished_ns, int64_t most)
{
	static const int64_t forgiven = 600 * NS_PER_S;
	const int64_t first = MIN(10 * NS_PER_S, most);
	int64_t wait = 0;

	if (!b->delay_ns || finished_ns - MAX(b->last_ns, started_ns) > forgiven) {
		b->delay_ns = first;
	} else {
		wait = b->delay_ns;
		b->delay_ns = MIN(2 * b->delay_ns, most);
	}
	b->last_ns = finished_ns + wait;
	return wait;
}
