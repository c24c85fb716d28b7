/* Containers are stopped: first the hook, then the signal, and the rest of the grace period after it; sidecars after all others. */
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "kubelet/cri_config.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pods_priv.h"

/* A container always gets a moment, whatever its hook has used up; a call may take that much longer than the grace that it grants. */
enum { GRACE_MIN_S = 2, GRACE_MAX_S = INT32_MAX, CALL_MARGIN_MS = 120000 };

/* Containers that end together. */
struct stopping {
	struct pod *pod;
	struct val object;
	int64_t grace_s;              /* of all; STOP_GRACE_OWN: each has its own */
	struct stop *stops;
	size_t n;
	int failed;
	struct err err;
	bool shortened;               /* grace_s is less than it was */
	struct fiber_cond ended;      /* one of them has */
};

struct stop {
	struct stopping *all;
	struct val status, container;
	unsigned turn;                /* ends after those of smaller ones */
	bool done, calling;
	bool hooking, hurried;        /* its hook runs; it has been told of the shorter grace */
};

/* What a container without a pod says about itself: an orphan's hook runs, too. */
static struct val spec_from_labels(struct arena *a, struct val status)
{
	struct val notes = val_get(status, annotations), hook = VAL_EMPTY;
	str text = val_as_str(val_find(notes, STR("io.kubernetes.container.preStopHandler")));
	struct err err = ERR_INIT;

	if (text.n && json_decode(a, text, &(struct json_decode_options){ .type = TYPE(core_v1, LifecycleHandler) }, &hook, &err) < 0)
		log_warn("the hook of a container that nobody wants cannot be read", KV("error", &err));
	struct val c = OBJECT(a, F(name, val_get(status, metadata, name)));
	return val_exists(hook) ? val_put(a, c, A_lifecycle, OBJECT(a, F(preStop, hook))) : c;
}

static int64_t grace_from_labels(struct val status)
{
	int64_t s;
	const str names[] = { STR("io.kubernetes.pod.deletionGracePeriod"), STR("io.kubernetes.pod.terminationGracePeriod") };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_to_i64(val_as_str(val_find(val_get(status, annotations), names[i])), &s) && s >= 0)
			return s;
	return GRACE_MIN_S;
}

static int64_t said_grace_s(struct val pod, struct val container, struct val status, enum kill_reason reason)
{
	if (val_has(pod, metadata, deletionGracePeriodSeconds))
		return val_int(pod, metadata, deletionGracePeriodSeconds);
	if (!val_has(pod, spec))
		return grace_from_labels(status);
	if (reason == KILL_LIVENESS || reason == KILL_STARTUP)
		return probe_grace_s(pod, container, reason == KILL_LIVENESS ? PROBE_LIVENESS : PROBE_STARTUP);
	if (val_has(pod, spec, terminationGracePeriodSeconds))
		return val_int(pod, spec, terminationGracePeriodSeconds);
	return GRACE_MIN_S;
}

/* Years count as years: a longer grace would not fit into what the runtime is told. */
static int64_t own_grace_s(struct val pod, struct val container, struct val status, enum kill_reason reason)
{
	return MIN(said_grace_s(pod, container, status, reason), (int64_t)GRACE_MAX_S);
}

/* How many seconds it took. */
static int64_t run_hook(struct pod *p, struct arena *a, struct val pod, struct val container, struct val status, int64_t grace_s)
{
	int64_t began = clock_now_ns();
	struct err err = ERR_INIT;
	str output;
	struct val handler = val_get(container, lifecycle, preStop);
	str ip = p->told ? val_str(p->told->val, podIP) : STR_NONE;

	if (!val_exists(handler) || grace_s <= 0)
		return 0;
	enum probe_result result =
		probe_hook(p->kubelet->cri, a, pod, container, handler, val_str(status, id), ip, grace_s * 1000, &output, &err);
	if (result != PROBE_SUCCESS && err.code != ERR_CANCELED)
		kubelet_event(p->kubelet, pod, val_str(container, name), true, "FailedPreStopHook", STR("PreStopHook failed"));
	return (clock_now_ns() - began) / NS_PER_S;
}

static int call_stop(struct pod *p, struct arena *a, str id, int64_t grace_s, struct err *err)
{
	struct val request = OBJECT(a, F(containerId, VAL_STR(id)), F(timeout, val_of_int(grace_s))), answer;
	int r = cri_ask(p->kubelet->cri, &rpc_RuntimeService_StopContainer, a, request, grace_s * 1000 + CALL_MARGIN_MS, &answer, err);

	return r == -ERR_NOT_FOUND ? 0 : r;
}

static void tell_killing(struct pod *p, struct arena *a, struct val pod, str name, str message)
{
	if (!message.n)
		message = arena_printf(a, "Stopping container " STR_FMT, STR_ARG(name));
	kubelet_event(p->kubelet, pod, name, false, "Killing", message);
}

int pod_stop_container(struct pod *p, struct arena *a, struct val pod, struct val status, enum kill_reason reason, str message,
		       int64_t grace_s, struct err *err)
{
	str name = val_str(status, metadata, name);
	struct val container = pod_find_container(pod, name);

	if (grace_s == STOP_GRACE_OWN)
		grace_s = own_grace_s(pod, container, status, reason);
	tell_killing(p, a, pod, name, message);
	grace_s -= run_hook(p, a, pod, container, status, grace_s);
	return call_stop(p, a, val_str(status, id), MAX(grace_s, (int64_t)GRACE_MIN_S), err);
}

/* ---- all of them ---- */

/* True while one that has to end before this one has not. */
static bool must_wait(const struct stop *s)
{
	for (size_t i = 0; i < s->all->n; i++)
		if (s->all->stops[i].turn < s->turn && !s->all->stops[i].done)
			return true;
	return false;
}

/* The seconds that it took. */
static int64_t wait_turn(struct stop *s, int64_t grace_s)
{
	int64_t began = clock_now_ns();
	struct err err = ERR_INIT;

	if (grace_s <= 0)
		return 0;
	DEADLINE_SCOPE(grace_s * 1000);
	while (must_wait(s) && fiber_cond_wait(&s->all->ended, &err) == 0)
		;
	return (clock_now_ns() - began) / NS_PER_S;
}

static int stop_one(void *arg)
{
	struct stop *s = arg;
	struct stopping *all = s->all;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct pod *p = all->pod;
	int64_t grace_s = all->grace_s >= 0 ? all->grace_s : own_grace_s(all->object, s->container, s->status, KILL_NOT_WANTED);

	tell_killing(p, &a, all->object, val_str(s->status, metadata, name), STR_NONE);
	s->hooking = true;
	grace_s -= run_hook(p, &a, all->object, s->container, s->status, grace_s);
	s->hooking = false;
	grace_s -= wait_turn(s, grace_s);
	if (all->shortened)
		grace_s = MIN(grace_s, all->grace_s);
	s->calling = true;
	int r = call_stop(p, &a, val_str(s->status, id), MAX(grace_s, (int64_t)GRACE_MIN_S), &err);
	if (r < 0 && !all->failed) {
		all->failed = r;
		all->err = err;
	}
	s->done = true;
	fiber_cond_broadcast(&all->ended);
	fiber_cond_broadcast(&p->woken);
	return 0;
}

static bool all_done(const struct stopping *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->stops[i].done)
			return false;
	return true;
}

static int64_t asked_grace_s(const struct pod *p)
{
	int64_t grace_s = p->grace_s;

	if (val_has(p->object->val, metadata, deletionGracePeriodSeconds)) {
		int64_t said = val_int(p->object->val, metadata, deletionGracePeriodSeconds);
		grace_s = grace_s < 0 ? said : MIN(grace_s, said);
	}
	return grace_s;
}

/* Somebody wants it sooner now: those that are being stopped are told once more. */
static int hurry_one(void *arg)
{
	struct stop *s = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;

	if (call_stop(s->all->pod, &a, val_str(s->status, id), MAX(s->all->grace_s, (int64_t)GRACE_MIN_S), &err) < 0)
		return 0;
	s->done = true;
	fiber_cond_broadcast(&s->all->ended);
	fiber_cond_broadcast(&s->all->pod->woken);
	return 0;
}

static void hurry(struct stopping *all, struct fiber_group *g)
{
	for (size_t i = 0; i < all->n; i++) {
		struct stop *s = &all->stops[i];
		if (s->done || s->hurried || !(s->calling || (s->hooking && !must_wait(s))))
			continue;
		struct err err = ERR_INIT;
		s->hurried = fiber_group_spawn(g, hurry_one, s, &err, "hurry") >= 0;
	}
}

static int watch_stopping(struct stopping *all, struct fiber_group *g, struct err *err)
{
	struct pod *p = all->pod;
	int r = 0;

	while (!all_done(all) && r >= 0) {
		int64_t asked = asked_grace_s(p);
		if (all->grace_s >= 0 && asked >= 0 && asked < all->grace_s) {
			all->grace_s = asked;
			all->shortened = true;
			for (size_t i = 0; i < all->n; i++)
				all->stops[i].hurried = false;
		}
		if (all->shortened)
			hurry(all, g);
		if (!all_done(all))
			r = fiber_cond_wait(&p->woken, err);
	}
	return r;
}

/* Sidecars end after the containers, the last first. */
static unsigned turn_of(struct val pod, str name)
{
	struct val init = val_get(pod, spec, initContainers);
	unsigned n = val_len(init);

	for (unsigned i = 0; i < n; i++)
		if (str_eq(val_str(init.items[i], name), name))
			return container_is_sidecar(init.items[i]) ? n - i : 0;
	return 0;
}

static int stop_containers(struct pod *p, struct arena *a, struct val pod, const struct pod_view *v, int64_t grace_s, struct err *err)
{
	struct stopping all = { .pod = p, .object = pod, .grace_s = grace_s, .err = ERR_INIT };
	CLEANUP(fiber_group_done) struct fiber_group g;
	int r = 0;

	fiber_group_init(&g);
	fiber_cond_init(&all.ended, "a container to stop");
	all.stops = ARENA_ARRAY(a, struct stop, val_len(v->containers) + 1);
	VAL_EACH(c, v->containers) {
		enum cri_state state = container_cri_state(*c);
		if (state != CRI_RUNNING && state != CRI_UNKNOWN)
			continue;
		struct val container = val_has(pod, spec) ? pod_find_container(pod, val_str(*c, metadata, name)) : spec_from_labels(a, *c);
		all.stops[all.n++] = (struct stop){ &all, *c, container, turn_of(pod, val_str(*c, metadata, name)), false, false, false, false };
	}
	for (size_t i = 0; i < all.n && r >= 0; i++)
		r = fiber_group_spawn(&g, stop_one, &all.stops[i], err, "stop");
	if (r >= 0)
		r = watch_stopping(&all, &g, err);
	if (r >= 0 && all.failed < 0) {
		*err = all.err;
		r = all.failed;
	}
	return r;
}

int pod_stop_all(struct pod *p, struct arena *a, struct val pod, const struct pod_view *v, int64_t grace_s, struct err *err)
{
	struct val answer;
	int r = stop_containers(p, a, pod, v, MIN(grace_s, (int64_t)GRACE_MAX_S), err);

	VAL_EACH(s, v->sandboxes) {
		struct err failed = ERR_INIT;
		if (r < 0)
			break;
		int code = cri_ask(p->kubelet->cri, &rpc_RuntimeService_StopPodSandbox, a, OBJECT(a, F(podSandboxId, val_get(*s, id))), 0, &answer,
				   &failed);
		if (code < 0 && code != -ERR_NOT_FOUND) {
			*err = failed;
			r = code;
		}
	}
	return r;
}

/* ---- afterwards ---- */

int pod_clean(struct pod *p, struct val pod, struct err *err)
{
	struct kubelet *k = p->kubelet;
	str uid = pod_uid(p);
	int r;

	(void)pod;
	probes_end(k->probes, uid, STR_NONE);
	if ((r = volumes_unmount(k->volumes, uid, err)) < 0)
		return r;
	user_namespaces_release(k->user_namespaces, uid);
	return k->cgroups ? cgroups_pod_remove(k->cgroups, uid, err) : 0;
}

static void remove_logs(struct pod *p, struct arena *a, struct val pod)
{
	const struct kubelet_node *n = &p->kubelet->node;
	struct err err = ERR_INIT;
	int tree = path_open_tree(arena_str(a, n->log_root).p, &err);

	if (tree < 0)
		return;
	if (path_remove(tree, str_skip(pod_log_folder(n, a, pod), n->log_root.n + 1).p, &err) < 0 && err.code != ERR_NOT_FOUND)
		log_warn("the logs of a pod cannot be removed", KV("error", &err));
	close(tree);
}

int pod_purge(struct pod *p, struct arena *a, struct val pod, struct err *err)
{
	struct kubelet *k = p->kubelet;
	struct runtime_pod has;
	struct val answer;
	int r;

	if ((r = runtime_pods_look(k->runtime_pods, a, pod_uid(p), &has, err)) < 0)
		return r;
	/* Links to logs first: they are named by what is known only as long as the containers are there. */
	VAL_EACH(c, has.containers)
		unlink(container_log_link(&k->node, a, pod, val_str(*c, metadata, name), val_str(*c, id)).p);
	VAL_EACH(s, has.sandboxes)
		if ((r = cri_ask(k->cri, &rpc_RuntimeService_RemovePodSandbox, a, OBJECT(a, F(podSandboxId, val_get(*s, id))), 0, &answer, err)) < 0 &&
		    r != -ERR_NOT_FOUND)
			return err_wrap(err, r, "a sandbox cannot be removed");
	/* An orphan's names are what the runtime says. */
	if (p->orphan)
		pod = OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(has.name)), F(namespace, VAL_STR(has.namespace)), F(uid, VAL_STR(pod_uid(p))))));
	remove_logs(p, a, pod);
	return runtime_pods_look(k->runtime_pods, a, pod_uid(p), &has, err);
}
