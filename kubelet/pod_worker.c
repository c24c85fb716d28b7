/*
 * The fiber of one pod. It sleeps until something about the pod changes or a time has come, asks the runtime what it has, makes the status
 * and tells it, decides what has to be done, does it, and looks again. A pod goes from wanted to ending to ended and never back.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pod_status.h"
#include "kubelet/pods_priv.h"

/* How long until the next look when nothing happens: all is well, something failed, the network is not there yet, another pod has its name. */
enum { AGAIN_MS = 60000, AGAIN_SANDBOX_MS = 1000, AGAIN_FAILED_MS = 10000, AGAIN_NETWORK_MS = 1000, AGAIN_NAME_MS = 500 };
/* How long the end of a run, or a failed pull, is seen before it is told that the next try has to wait. */
enum { SEEN_MS = 1000 };
/* Volumes that cannot be mounted are tried again after this, and twice as much each time. */
enum { MOUNT_WAIT_MS = 500, MOUNT_WAIT_MAX_MS = 122000 };

/* One look at a pod. */
struct look {
	struct pod *p;
	struct kubelet *k;
	struct arena *arena;
	struct frozen *object;        /* of p at the beginning: a newer one may come meanwhile */
	struct val pod;
	struct pod_view view;
	struct val status;            /* as last made */
	bool acted;                   /* something was started, stopped or made: look again */
	bool saw_end;                 /* a run of a container has ended that had not before */
	int64_t again_ns;             /* clock_wall_ns */
};

/* ---- times ---- */

/* Half as long again, at random, so that pods do not all come at once. */
static int64_t jitter_ms(int64_t ms)
{
	uint32_t n;

	random_bytes(&n, sizeof(n));
	return ms + (int64_t)(n % 1024) * ms / 2048;
}

static void come_back_ms(struct pod *p, int64_t ms) { p->due_ns = MIN(p->due_ns, clock_now_ns() + ms * NS_PER_MS); }

static void come_back_at(struct pod *p, int64_t wall_ns)
{
	if (wall_ns < INT64_MAX)
		come_back_ms(p, MAX((wall_ns - clock_wall_ns()) / NS_PER_MS + 1, INT64_C(0)));
}

static int64_t time_ns(struct val text)
{
	struct timestamp t;
	struct err err = ERR_INIT;

	return time_parse(val_as_str(text), &t, &err) < 0 ? 0 : t.seconds * NS_PER_S + t.nanos;
}

/* When its time is up, by activeDeadlineSeconds; INT64_MAX: never. */
static int64_t deadline_ns(const struct look *l)
{
	struct val limit = val_get(l->pod, spec, activeDeadlineSeconds), began = val_get(pod_view_status(&l->view), startTime);

	return val_exists(limit) && val_exists(began) ? time_ns(began) + val_as_int(limit) * NS_PER_S : INT64_MAX;
}

/* ---- the view ---- */

/* Whether a run that has ended is followed by another. Init containers that have done their work do not run again. */
static bool runs_again(const struct look *l, struct val container)
{
	struct val status = pod_view_container(&l->view, val_str(container, name));

	if (container_cri_state(status) == CRI_EXITED && !val_int(status, exitCode) && !container_is_sidecar(container) &&
	    val_exists(find_named(val_get(l->pod, spec, initContainers), val_str(container, name))))
		return false;
	return container_starts_next(&l->view, container);
}

/* A run has ended: how long until the next one. */
static void count_end(struct look *l, struct container_memory *m, struct val container, struct val status)
{
	struct pod *p = l->p;
	str id = val_str(status, id);

	if (m->counted && str_eq(str_of(m->counted), id))
		return;
	text_set(&m->counted, id);
	l->saw_end = true;
	probes_end(l->k->probes, pod_uid(p), val_str(container, name));
	m->note.backoff_until_ns = 0;
	if (!runs_again(l, container) || p->stage != POD_WANTED)
		return;
	int64_t wait_ns = crash_backoff_next(&m->backoff, val_int(status, startedAt), val_int(status, finishedAt), l->k->backoff_max_ns);
	if (!wait_ns)
		return;
	m->note.backoff_until_ns = val_int(status, finishedAt) + wait_ns;
	m->backoff_ns = wait_ns;
	m->backoff_told_ns = 0;
}

/* Its last end has been seen for long enough: now it waits for its next start. */
static void show_backoff(struct look *l, struct container_memory *m)
{
	char delay[DURATION_TEXT_MAX];

	if (!m->backoff_told_ns || clock_now_ns() < m->backoff_told_ns + SEEN_MS * NS_PER_MS)
		return;
	str text = arena_printf(l->arena, "back-off " STR_FMT " restarting failed container=" STR_FMT " pod=" STR_FMT "_" STR_FMT "(" STR_FMT ")",
				STR_ARG(duration_format(m->backoff_ns, delay)), STR_ARG(m->note.name), STR_ARG(val_str(l->pod, metadata, name)),
				STR_ARG(val_str(l->pod, metadata, namespace)), STR_ARG(pod_uid(l->p)));
	text_set(&m->reason, STR("CrashLoopBackOff"));
	text_set(&m->message, text);
}

static void begin_probes(struct look *l, struct container_memory *m, struct val container, struct val status)
{
	struct pod *p = l->p;
	struct err err = ERR_INIT;
	str id = val_str(status, id);

	if (p->stage != POD_WANTED || (m->probed && str_eq(str_of(m->probed), id)))
		return;
	text_set(&m->probed, id);
	m->backoff_told_ns = 0;
	text_set(&m->reason, STR_NONE);
	text_set(&m->message, STR_NONE);
	m->liveness_failed = m->startup_failed = false;
	str ip = val_str(val_at(l->view.sandboxes, 0), network, ip);
	if (pod_uses_host_network(l->pod))
		ip = l->k->node.address.n ? l->k->node.address : l->k->node.address6;
	if (probes_begin(l->k->probes, p->object, container, id, val_int(status, startedAt), ip, &err) < 0)
		log_error("a container cannot be probed", KV("container", val_str(container, name)), KV("error", &err));
}

static void note_containers(struct look *l)
{
	static const atom lists[] = { A_initContainers, A_containers, A_ephemeralContainers };
	struct pod *p = l->p;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(val_get(l->pod, spec), lists[i])) {
			struct val status = pod_view_container(&l->view, val_str(*c, name));
			struct container_memory *m = pod_memory(p, val_str(*c, name));
			if (container_cri_state(status) == CRI_EXITED)
				count_end(l, m, *c, status);
			else if (container_cri_state(status) == CRI_RUNNING)
				begin_probes(l, m, *c, status);
			show_backoff(l, m);
			m->note.waiting_reason = str_of(m->reason);
			m->note.waiting_message = str_of(m->message);
			m->note.started = probes_started(l->k->probes, pod_uid(p), val_str(*c, name));
			m->note.ready = probes_ready(l->k->probes, pod_uid(p), val_str(*c, name));
		}
}

static void fill_notes(struct look *l)
{
	struct pod *p = l->p;
	struct container_note *notes = ARENA_ARRAY(l->arena, struct container_note, p->n_containers + 1);

	for (size_t i = 0; i < p->n_containers; i++) {
		notes[i] = p->containers[i].note;
		notes[i].devices = devices_status(l->k->devices, l->arena, pod_uid(p), notes[i].name);
	}
	l->view.notes = notes;
	l->view.n_notes = p->n_containers;
}

static int look_at_runtime(struct look *l, struct err *err)
{
	struct pod *p = l->p;
	struct runtime_pod has;
	int r = runtime_pods_look(l->k->runtime_pods, l->arena, pod_uid(p), &has, err);

	if (r < 0)
		return r;
	l->view.sandboxes = has.sandboxes;
	l->view.containers = has.containers;
	l->view.now_ns = clock_wall_ns();
	p->seen = has.signature;
	note_containers(l);
	fill_notes(l);
	return 0;
}

static void fill_view(struct look *l)
{
	struct pod *p = l->p;
	struct kubelet *k = l->k;

	l->pod = l->object->val;
	l->view.pod = l->pod;
	l->view.status = p->told ? p->told->val : VAL_EMPTY;
	l->view.terminating = p->stage >= POD_ENDING;
	l->view.terminated = p->stage == POD_ENDED;
	l->view.now_ns = clock_wall_ns(); /* a pod that is rejected is not looked at any further */
	l->view.fail_reason = str_of(p->fail_reason);
	l->view.fail_message = str_of(p->fail_message);
	l->view.rejected = p->rejected;
	l->view.host_address = k->node.address;
	l->view.host_address6 = k->node.address6;
	l->view.volumes_mounted = p->volumes_mounted;
	l->view.runtime_name = k->runtime_name;
	l->view.recursive_readonly = k->recursive_readonly;
	l->view.actuated = p->actuated ? p->actuated->val : VAL_EMPTY;
	l->view.disruption = p->condition ? p->condition->val : VAL_EMPTY;
}

static void tell(struct look *l, struct val status)
{
	struct pod *p = l->p;
	struct frozen *told = val_freeze(status);

	frozen_unref(p->told);
	p->told = told;
	l->status = l->view.status = told->val;
	statuses_set(l->k->statuses, p->object, told->val);
}

/* The status follows from the view; it is remembered and told. */
static void tell_status(struct look *l)
{
	struct pod *p = l->p;

	if (p->orphan)
		return;
	if (p->stage == POD_WANTED)
		pod_resize_look(p, &l->view);
	l->view.resize = p->resize ? p->resize->val : VAL_EMPTY;
	l->view.actuated = p->actuated ? p->actuated->val : VAL_EMPTY;
	tell(l, pod_status_make(l->arena, &l->view));
}

/* ---- wanted ---- */

/* Later changes of contents are those of objects.h to make: what is missing then does not keep containers from restarting. */
static int mount_volumes(struct look *l, struct err *err)
{
	struct pod *p = l->p;
	int64_t generation = val_int(l->pod, metadata, generation);
	int r;

	if (p->volumes_mounted && p->volumes_generation == generation)
		return 0;
	if ((r = volumes_mount(l->k->volumes, l->pod, err)) < 0) {
		if (r == -ERR_CANCELED)
			return r;
		kubelet_event(l->k, l->pod, STR_NONE, true, "FailedMount", err_str(err));
		p->mount_wait_ms = p->mount_wait_ms ? MIN(2 * p->mount_wait_ms, (int64_t)MOUNT_WAIT_MAX_MS) : MOUNT_WAIT_MS;
		come_back_ms(p, p->mount_wait_ms);
		return r;
	}
	p->mount_wait_ms = 0;
	p->volumes_mounted = l->view.volumes_mounted = true;
	p->volumes_generation = generation;
	return 0;
}

static int prepare(struct look *l, struct err *err)
{
	struct pod *p = l->p;
	struct kubelet *k = l->k;
	int r;

	objects_follow(k->objects, l->object);
	if (k->network_problem.n && !pod_uses_host_network(l->pod)) {
		str text = arena_printf(l->arena, "network is not ready: " STR_FMT, STR_ARG(k->network_problem));
		if (k->runtime_status)
			kubelet_event(k, l->pod, STR_NONE, true, "NetworkNotReady", text);
		come_back_ms(p, jitter_ms(AGAIN_NETWORK_MS));
		return err_set(err, ERR_UNAVAILABLE, STR_FMT, STR_ARG(text));
	}
	/* While it is being resized, that is pod_resize.c's to do. */
	if (k->cgroups && !pod_resize_is_open(p, &l->view) && (r = cgroups_pod_make(k->cgroups, l->pod, err)) < 0) {
		kubelet_event(k, l->pod, STR_NONE, true, "FailedToCreatePodContainer",
			      arena_printf(l->arena, "unable to ensure pod container exists: %s", err->msg));
		return r;
	}
	if (!p->actuated && val_has(l->pod, spec, resources))
		pod_set_actuated(p, val_get(l->pod, spec, resources));
	if (pod_is_static(l->pod) && k->client) {
		struct err failed = ERR_INIT;
		if (sources_mirror_sync(k->sources, l->pod, &failed) < 0)
			log_warn("the mirror of a static pod cannot be made", KV("error", &failed));
	}
	return mount_volumes(l, err);
}

/* Those that wait for their next start say so at every look, but not at the one that is there to show it in the status. */
static void tell_backoffs(struct look *l)
{
	for (size_t i = 0; i < l->p->n_containers; i++) {
		struct container_memory *m = &l->p->containers[i];
		struct val c = pod_find_container(l->pod, m->note.name);
		if (m->note.backoff_until_ns <= l->view.now_ns || !val_exists(c) || !runs_again(l, c))
			continue;
		int64_t told_ms = m->backoff_told_ns ? (clock_now_ns() - m->backoff_told_ns) / NS_PER_MS : INT64_MAX;
		if (m->backoff_told_ns && !str_eq(m->note.waiting_reason, STR("CrashLoopBackOff")))
			come_back_ms(l->p, MAX(SEEN_MS - told_ms, INT64_C(1)));
		if (told_ms < 2 * SEEN_MS)
			continue;
		m->backoff_told_ns = clock_now_ns();
		come_back_ms(l->p, SEEN_MS);
		kubelet_event(l->k, l->pod, m->note.name, true, "BackOff",
			      arena_printf(l->arena, "Back-off restarting failed container " STR_FMT " in pod " STR_FMT "_" STR_FMT "(" STR_FMT ")",
					   STR_ARG(m->note.name), STR_ARG(val_str(l->pod, metadata, name)),
					   STR_ARG(val_str(l->pod, metadata, namespace)), STR_ARG(pod_uid(l->p))));
	}
}

static struct val running_status(const struct look *l, str id)
{
	VAL_EACH(c, l->view.containers)
		if (str_eq(val_str(*c, id), id))
			return *c;
	return VAL_EMPTY;
}

static int remove_container(struct look *l, struct val status, struct err *err)
{
	struct arena *a = l->arena;
	struct val answer;
	str id = val_str(status, id);
	int r = cri_ask(l->k->cri, &rpc_RuntimeService_RemoveContainer, a, OBJECT(a, F(containerId, VAL_STR(id))), 0, &answer, err);

	if (r >= 0)
		unlink(container_log_link(&l->k->node, a, l->pod, val_str(status, metadata, name), id).p);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int do_kills(struct look *l, const struct pod_actions *actions, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < actions->n_kills && r >= 0; i++) {
		const struct container_kill *kill = &actions->kills[i];
		probes_end(l->k->probes, pod_uid(l->p), kill->name);
		r = pod_stop_container(l->p, l->arena, l->pod, running_status(l, kill->id), kill->reason, kill->message, STOP_GRACE_OWN, err);
	}
	for (size_t i = 0; i < actions->n_resets && r >= 0; i++) {
		const struct container_kill *kill = &actions->resets[i];
		struct val status = running_status(l, kill->id);
		if (container_cri_state(status) == CRI_RUNNING)
			r = pod_stop_container(l->p, l->arena, l->pod, status, kill->reason, kill->message, 0, err);
		if (r >= 0)
			r = remove_container(l, status, err);
	}
	return r;
}

/* Only the last run of an init container is kept. */
static void prune_init(struct look *l)
{
	struct err err = ERR_INIT;

	VAL_EACH(init, val_get(l->pod, spec, initContainers)) {
		unsigned n = 0;
		VAL_EACH(c, l->view.containers)
			if (str_eq(val_str(*c, metadata, name), val_str(*init, name)) && container_cri_state(*c) >= CRI_EXITED && n++)
				remove_container(l, *c, &err);
	}
}

static int do_sandbox(struct look *l, const struct pod_actions *actions, str *ret_id, struct err *err)
{
	struct val config;
	int r;

	if ((r = pod_start_sandbox(l->p, l->arena, l->pod, actions->attempt, ret_id, &config, err)) < 0 || (r = look_at_runtime(l, err)) < 0)
		return r;
	l->acted = true;
	l->view.resize = l->p->resize ? l->p->resize->val : VAL_EMPTY; /* may be another one by now */
	/* Before images are pulled; the rest is told when containers are there. */
	tell(l, pod_status_ready_to_start(l->arena, &l->view));
	l->status = pod_status_make(l->arena, &l->view);
	return 0;
}

static bool is_killed(const struct pod_actions *actions, str name)
{
	for (size_t i = 0; i < actions->n_kills; i++)
		if (str_eq(actions->kills[i].name, name))
			return true;
	return false;
}

/*
 * Whether a container that was just stopped starts again at once: what counts is how long ago the run before that ended. If it does not, the
 * end of this one is counted as any other.
 */
static bool starts_at_once(struct look *l, str name)
{
	struct container_memory *m = pod_memory(l->p, name);

	VAL_EACH(c, l->view.containers) {
		struct crash_backoff next = m->backoff;
		if (!str_eq(val_str(*c, metadata, name), name) || container_cri_state(*c) != CRI_EXITED)
			continue;
		int64_t wait_ns = crash_backoff_next(&next, val_int(*c, startedAt), val_int(*c, finishedAt), l->k->backoff_max_ns);
		if (wait_ns && val_int(*c, finishedAt) + wait_ns > clock_wall_ns())
			return false;
		m->backoff = next;
		return true;
	}
	return true;
}

/* A container could not be started: when the next look is due, if that is not as for any failure. */
static void come_back_after(struct look *l, struct val container)
{
	str reason = str_of(pod_memory(l->p, val_str(container, name))->reason);
	static const str ended[] = { STR_INIT("ErrImagePull"), STR_INIT("RunContainerError"), STR_INIT("PostStartHookError") };

	for (size_t i = 0; i < ARRAY_LEN(ended); i++)
		if (str_eq(reason, ended[i]))
			come_back_ms(l->p, SEEN_MS);
	int64_t until_ns = images_backoff_until(l->k->images, pod_uid(l->p), val_str(container, image));
	if (str_eq(reason, STR("ImagePullBackOff")) && until_ns)
		come_back_at(l->p, until_ns);
}

static int do_starts(struct look *l, const struct pod_actions *actions, str sandbox_id, struct err *err)
{
	struct val config, secrets = actions->n_starts ? pod_pull_secrets(l->p, l->arena, l->pod) : VAL_EMPTY;
	struct val ips = val_get(l->status, podIPs);
	int r, failed = 0;

	if (!actions->n_starts)
		return 0;
	if ((r = sandbox_config_make(&l->k->node, l->arena, l->pod, actions->attempt, &config, err)) < 0)
		return r;
	for (size_t i = 0; i < actions->n_starts; i++) {
		struct err failure = ERR_INIT;
		struct val c = pod_container_of(l->pod, actions->starts[i]);
		if (is_killed(actions, val_str(c, name)) && !starts_at_once(l, val_str(c, name)))
			continue;
		r = pod_start_container(l->p, l->arena, &l->view, actions->starts[i], sandbox_id, config, secrets, ips, &failure);
		l->acted = true;
		if (r >= 0)
			continue;
		come_back_after(l, c);
		*err = failure;
		failed = r;
		if (r == -ERR_CANCELED || (actions->starts[i].list == LIST_INIT_CONTAINERS && !container_is_sidecar(c)))
			break;
	}
	return failed;
}

static size_t probe_failures(const struct look *l, struct probe_failure **ret)
{
	const struct pod *p = l->p;
	size_t n = 0;

	*ret = ARENA_ARRAY(l->arena, struct probe_failure, 2 * p->n_containers + 1);
	for (size_t i = 0; i < p->n_containers; i++) {
		const struct container_memory *m = &p->containers[i];
		if (m->liveness_failed)
			(*ret)[n++] = (struct probe_failure){ m->note.name, KILL_LIVENESS };
		if (m->startup_failed)
			(*ret)[n++] = (struct probe_failure){ m->note.name, KILL_STARTUP };
	}
	return n;
}

static int act(struct look *l, struct err *err)
{
	struct probe_failure *failures;
	size_t n = probe_failures(l, &failures);
	struct pod_actions actions;
	str sandbox_id;
	int r = 0, resized;

	pod_actions_compute(l->arena, &l->view, failures, n, &actions);
	l->again_ns = actions.again_ns;
	sandbox_id = actions.sandbox_id;
	if (actions.create_sandbox && sandbox_id.n)
		kubelet_event(l->k, l->pod, STR_NONE, false, "SandboxChanged", STR("Pod sandbox changed, it will be killed and re-created."));
	if (actions.kill_pod) {
		bool runs = val_len(l->view.sandboxes) > 0;
		r = pod_stop_all(l->p, l->arena, l->pod, &l->view, STOP_GRACE_OWN, err);
		l->acted = runs;
	} else if (actions.n_kills + actions.n_resets) {
		r = do_kills(l, &actions, err);
		l->acted = true;
	}
	if (r < 0)
		return r;
	prune_init(l);
	if (actions.create_sandbox && (r = do_sandbox(l, &actions, &sandbox_id, err)) < 0)
		return r;
	if ((resized = pod_resize(l->p, l->arena, &l->view, &actions, err)) != 0)
		l->acted = true;
	if (resized == -ERR_CANCELED)
		return resized;
	tell_backoffs(l);
	r = do_starts(l, &actions, sandbox_id, err);
	return r < 0 ? r : MIN(resized, 0);
}

/* What was done may allow for more: a sidecar that runs lets the next container start. */
static bool has_more_to_do(struct look *l)
{
	struct probe_failure *failures;
	size_t n = probe_failures(l, &failures);
	struct pod_actions actions;

	pod_actions_compute(l->arena, &l->view, failures, n, &actions);
	if (actions.create_sandbox) /* one that did not live to the second look is no reason to hurry */
		come_back_ms(l->p, jitter_ms(AGAIN_SANDBOX_MS));
	return actions.n_starts + actions.n_kills + actions.n_resets > 0 && !actions.create_sandbox;
}

static int keep(struct look *l, struct err *err)
{
	int r;

	if (!l->p->has_devices && (r = devices_allocate(l->k->devices, l->pod, err)) < 0) {
		if (r != -ERR_CANCELED)
			pods_reject(l->p, STR("UnexpectedAdmissionError"), err_str(err));
		l->p->wake |= WAKE_OTHER;
		return r;
	}
	l->p->has_devices = true;
	tell_status(l);
	if ((r = prepare(l, err)) < 0 || (r = act(l, err)) < 0)
		return r;
	return 0;
}

/* ---- ending ---- */

static bool anything_runs(const struct pod_view *v)
{
	VAL_EACH(c, v->containers)
		if (container_cri_state(*c) == CRI_RUNNING)
			return true;
	return false;
}

/* At least a second, as the API server or the kubelet asks, or the pod itself. Orphans tell by their containers. */
static int64_t grace_s(const struct look *l)
{
	const struct pod *p = l->p;
	struct val said = val_get(l->pod, metadata, deletionGracePeriodSeconds), own = val_get(l->pod, spec, terminationGracePeriodSeconds);
	int64_t s = val_exists(said) ? val_as_int(said) : 0;

	if (p->grace_s >= 0 && (!s || p->grace_s < s))
		s = p->grace_s;
	if (!s && !val_exists(own) && p->orphan)
		return STOP_GRACE_OWN;
	if (!s && p->grace_s < 0 && !val_exists(said))
		s = val_as_int(own);
	return MAX(s, INT64_C(1));
}

static int end(struct look *l, struct err *err)
{
	struct pod *p = l->p;
	int r;

	tell_status(l);
	probes_terminating(l->k->probes, pod_uid(p));
	if ((r = pod_stop_all(p, l->arena, l->pod, &l->view, grace_s(l), err)) < 0) {
		if (r != -ERR_CANCELED)
			kubelet_event(l->k, l->pod, STR_NONE, true, "FailedKillPod",
				      arena_printf(l->arena, "error killing pod: " STR_FMT, STR_ARG(cri_error_text(l->arena, err))));
		return r;
	}
	probes_end(l->k->probes, pod_uid(p), STR_NONE);
	if ((r = look_at_runtime(l, err)) < 0)
		return r;
	if (anything_runs(&l->view))
		return err_set(err, ERR_INTERNAL, "containers run after all were stopped");
	pod_set_stage(p, POD_ENDED);
	fill_view(l);
	tell_status(l);
	return 0;
}

/* What the pod had is removed from the node, then the pod from the API, and once its source has let go of it everything else. */
static int finish(struct look *l, struct err *err)
{
	struct pod *p = l->p;
	int r;

	if (p->rejected && !p->told)
		tell_status(l);
	if (!p->cleaned) {
		if ((r = pod_clean(p, l->pod, err)) < 0)
			return r;
		p->cleaned = true;
	}
	if (!p->orphan && !p->finished && val_has(p->object->val, metadata, deletionTimestamp)) {
		p->finished = true;
		statuses_finish(l->k->statuses, p->object);
	}
	if (!p->removed)
		return 0;
	r = pod_purge(p, l->arena, l->pod, err);
	p->purged = r >= 0;
	return r;
}

/* ---- the loop ---- */

/* Somebody wants it to. */
static bool is_to_end(const struct pod *p) { return p->removed || p->fail_reason || val_has(p->object->val, metadata, deletionTimestamp); }

/* Whether the pod has to end now, and why. */
static bool must_end(struct look *l)
{
	struct pod *p = l->p;
	str phase = val_str(l->pod, status, phase);

	if (is_to_end(p) || str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded")))
		return true;
	if (deadline_ns(l) <= l->view.now_ns) {
		text_set(&p->fail_reason, STR("DeadlineExceeded"));
		text_set(&p->fail_message, STR("Pod was active on the node longer than the specified deadline"));
		kubelet_event(l->k, l->pod, STR_NONE, false, p->fail_reason, str_of(p->fail_message));
		return true;
	}
	return pod_has_ended(l->arena, &l->view);
}

/* What is done for a pod that is wanted, on a fiber of its own. */
struct effort {
	struct look *look;
	struct err err;
	int result;
	bool done;
};

static int make_effort(void *arg)
{
	struct effort *e = arg;
	LOG_CONTEXT("pod", pod_uid(e->look->p));

	e->result = keep(e->look, &e->err);
	e->done = true;
	fiber_cond_broadcast(&e->look->p->woken);
	return 0;
}

/* Once the pod has to end, whatever is being waited for (an image, a hook) is given up. */
static int keep_while_wanted(struct look *l, struct err *err)
{
	struct effort e = { .look = l, .err = ERR_INIT };
	struct fiber *f;
	int r = fiber_spawn(make_effort, &e, &f, err, "pod's start");

	if (r < 0)
		return r;
	while (r >= 0 && !e.done && !is_to_end(l->p))
		r = fiber_cond_wait(&l->p->woken, err);
	fiber_stop(f);
	if (r < 0)
		return r;
	*err = e.err;
	return e.result;
}

static int step(struct look *l, struct err *err)
{
	struct pod *p = l->p;
	int r;

	fill_view(l);
	if (p->stage == POD_WANTED && p->rejected && !runtime_pods_has(l->k->runtime_pods, pod_uid(p)))
		pod_set_stage(p, POD_ENDED);
	if (p->stage == POD_ENDED)
		return finish(l, err);
	if ((r = look_at_runtime(l, err)) < 0)
		return r;
	if (p->stage == POD_WANTED && must_end(l)) {
		pod_set_stage(p, POD_ENDING);
		fill_view(l);
	}
	if (p->stage == POD_WANTED && pods_must_wait(p)) {
		come_back_ms(p, AGAIN_NAME_MS);
		return 0;
	}
	if (p->stage == POD_WANTED)
		return keep_while_wanted(l, err);
	if ((r = end(l, err)) >= 0)
		r = finish(l, err);
	return r;
}

/* Nothing but an event about what is known already: the worker's own doing, mostly. */
static bool is_known(struct pod *p, unsigned why)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct runtime_pod has;
	struct err err = ERR_INIT;

	if (why != WAKE_RUNTIME || p->stage == POD_ENDED)
		return why == WAKE_RUNTIME;
	return runtime_pods_look(p->kubelet->runtime_pods, &a, pod_uid(p), &has, &err) >= 0 && has.signature == p->seen;
}

/* What nobody wants is known by what its sandbox says. */
static void name_orphan(struct pod *p, struct arena *a)
{
	struct runtime_pod has;
	struct err err = ERR_INIT;

	if (val_str(p->object->val, metadata, name).n || runtime_pods_look(p->kubelet->runtime_pods, a, pod_uid(p), &has, &err) < 0)
		return;
	struct val meta = OBJECT(a, F(name, VAL_STR(has.name)), F(namespace, VAL_STR(has.namespace)), F(uid, VAL_STR(pod_uid(p))));
	frozen_unref(p->object);
	p->object = val_freeze(OBJECT(a, F(metadata, meta)));
	log_info("the runtime has a pod that nobody wants", KV("name", has.name), KV("namespace", has.namespace));
}

static int look_once(struct pod *p, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (p->orphan)
		name_orphan(p, &a);
	CLEANUP(frozen_unrefp) struct frozen *object = frozen_ref(p->allocated ? p->allocated : p->object);
	struct look l = { .p = p, .k = p->kubelet, .arena = &a, .object = object, .again_ns = INT64_MAX };
	struct err failed = ERR_INIT;

	p->due_ns = INT64_MAX;
	int r = step(&l, &failed);
	if (r == -ERR_CANCELED && fiber_check(err) < 0)
		return r;
	if (p->stage == POD_WANTED && l.acted) {
		/* What was done shows at once. What has ended meanwhile is told by no event any more. */
		struct err second = ERR_INIT;
		l.saw_end = false;
		if (look_at_runtime(&l, &second) >= 0) {
			tell_status(&l);
			if (r >= 0 && (l.saw_end || has_more_to_do(&l) || pod_has_ended(l.arena, &l.view)))
				p->wake |= WAKE_OTHER;
		}
	}
	p->failed = r < 0;
	if (r < 0) {
		log_debug("a pod is not as it should be yet", KV("pod", val_str(p->object->val, metadata, name)), KV("error", &failed));
		come_back_ms(p, jitter_ms(AGAIN_FAILED_MS));
	} else if (p->stage != POD_ENDED) {
		come_back_ms(p, jitter_ms(AGAIN_MS));
	}
	if (p->stage == POD_WANTED) {
		come_back_at(p, l.again_ns);
		fill_view(&l);
		come_back_at(p, deadline_ns(&l));
	}
	return 0;
}

static int wait_for_news(struct pod *p, struct err *err)
{
	int r = 0;

	while (!p->wake && r >= 0) {
		int64_t left_ms = p->due_ns == INT64_MAX ? INT64_MAX / NS_PER_MS : (p->due_ns - clock_now_ns() + NS_PER_MS - 1) / NS_PER_MS;
		if (left_ms <= 0 && p->due_ns != INT64_MAX) {
			p->wake |= WAKE_OTHER;
			break;
		}
		struct err waited = ERR_INIT;
		DEADLINE_SCOPE(left_ms);
		r = fiber_cond_wait(&p->woken, &waited);
		if (r == -ERR_TIMEOUT) {
			p->wake |= WAKE_OTHER;
			r = 0;
		}
	}
	return r < 0 ? err_set(err, ERR_CANCELED, "canceled") : 0;
}

static bool is_done(const struct pod *p) { return p->stage == POD_ENDED && p->removed && p->cleaned && p->purged && !p->wake; }

int pod_worker(void *arg)
{
	struct pod *p = arg;
	struct err err = ERR_INIT;
	LOG_CONTEXT("pod", pod_uid(p));

	while (!is_done(p) && wait_for_news(p, &err) >= 0) {
		unsigned why = p->wake;
		p->wake = 0;
		if (is_known(p, why))
			continue;
		if (look_once(p, &err) < 0)
			break;
	}
	if (is_done(p))
		statuses_forget(p->kubelet->statuses, pod_uid(p));
	fiber_detach(p->fiber);
	pod_forget(p);
	return 0;
}
