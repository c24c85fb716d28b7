/*
 * Every ten seconds: what is left is compared with the thresholds. One that is met makes the node's pressure known, which lasts some minutes
 * longer than its cause; when its grace is over, something is freed: first what nobody needs, then one pod. Figures of all pods
 * are read only when one of them has to go.
 */
#include "kubelet/eviction.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "kubelet/admit.h"
#include "kubelet/config.h"
#include "kubelet/eviction_priv.h"

enum {
	LOOK_MS = 10000, GRACE_AT_ONCE_S = 1, AFTER_MS = 1000,
	WAIT_MIN_S = 10, GONE_S = 30, /* for a pod to end that is evicted, at least, and for what it had to go */
};

/* ---- life ---- */

struct eviction *eviction_new(const struct eviction_options *o)
{
	struct eviction *e = mem_zalloc(sizeof(*e));
	struct val local = val_get(o->config, localStorageCapacityIsolation);

	e->o = *o;
	thresholds_of_config(o->config, &e->thresholds);
	e->local = !val_exists(local) || val_as_bool(local);
	e->transition_ns = config_duration_ns(val_get(o->config, evictionPressureTransitionPeriod));
	e->grace_max_s = val_int(o->config, evictionMaxPodGracePeriod);
	return e;
}

void eviction_free(struct eviction *e)
{
	if (!e)
		return;
	free(e->disks.images);
	free(e);
}

bool eviction_memory_pressure(const struct eviction *e) { return e->pressure[PRESSURE_MEMORY]; }
bool eviction_disk_pressure(const struct eviction *e) { return e->pressure[PRESSURE_DISK]; }
bool eviction_pids_pressure(const struct eviction *e) { return e->pressure[PRESSURE_PIDS]; }

/* ---- one look ---- */

int eviction_within_grace(const struct eviction_options *o, struct val pod, str reason, str message, struct val condition, int64_t grace_s,
			  struct err *err)
{
	int64_t own_s = val_int(pod, spec, terminationGracePeriodSeconds), s = MIN(grace_s >= 0 ? grace_s : own_s, (int64_t)INT32_MAX);
	int r;

	{
		DEADLINE_SCOPE(MAX(s + s / 2, (int64_t)WAIT_MIN_S) * 1000);
		r = o->evict(o->arg, pod, reason, message, condition, grace_s, err);
	}
	if (r == -ERR_TIMEOUT && fiber_check(NULL) >= 0)
		o->event(o->arg, pod, true, "ExceededGracePeriod", STR("Container runtime did not kill the pod within specified grace period."));
	return r;
}

/* (suspends) What the pod's volumes hold is free only when they are gone; before, others would end for nothing. */
static void wait_until_gone(const struct eviction *e, struct val pod)
{
	for (int i = 0; e->o.gone && i < GONE_S && !e->o.gone(e->o.arg, val_str(pod, metadata, uid)); i++)
		if (fiber_sleep_ms(1000, NULL) < 0)
			return;
}

/* The end of a pod. Whether it could be. */
static bool evict(struct eviction *e, struct val pod, str message, struct val condition, int64_t grace_s)
{
	struct err err = ERR_INIT;

	if (admit_is_critical(pod)) {
		log_warn("a critical pod is not evicted", KV("pod", val_str(pod, metadata, name)));
		return false;
	}
	e->o.event(e->o.arg, pod, true, "Evicted", message);
	if (eviction_within_grace(&e->o, pod, STR("Evicted"), message, condition, grace_s, &err) < 0)
		log_warn("the eviction of a pod did not end", KV("pod", val_str(pod, metadata, name)), KV("err", &err));
	wait_until_gone(e, pod);
	return true;
}

static void count(struct eviction *e, const char *labels)
{
	if (e->o.stats)
		stats_count(e->o.stats, "kubelet_evictions", labels, 1);
}

/* Pods beyond the limits of their own volumes and layers. */
static bool look_at_local(struct eviction *e, struct arena *a, struct val pods)
{
	bool any = false;

	VAL_EACH(pod, pods) {
		if (!e->o.stats || !eviction_has_local_limit(a, *pod))
			continue;
		struct val stats = stats_pod(e->o.stats, a, *pod);
		str message = val_exists(stats) ? eviction_local_message(a, *pod, stats, &e->disks) : STR_NONE;
		if (!message.n || !evict(e, *pod, message, VAL_EMPTY, GRACE_AT_ONCE_S))
			continue;
		count(e, str_starts(message, STR("Usage")) ? "eviction_signal=\"emptydirfs.limit\"" :
			 str_starts(message, STR("Pod")) ? "eviction_signal=\"ephemeralpodfs.limit\"" :
							   "eviction_signal=\"ephemeralcontainerfs.limit\"");
		any = true;
	}
	return any;
}

/* Which thresholds are met, and for how long. */
static void note_thresholds(struct eviction *e, const struct observation *o, int64_t now)
{
	for (size_t i = 0; i < e->thresholds.n; i++) {
		struct threshold *t = &e->thresholds.all[i];
		/* One that has acted goes on until enough is free. */
		if (threshold_is_met(t, &o[t->signal], false) || (t->acts && threshold_is_met(t, &o[t->signal], true))) {
			t->since_ns = t->since_ns ? t->since_ns : now;
			e->seen_ns[signal_facts[t->signal].pressure] = now;
		} else {
			t->since_ns = 0;
		}
		t->acts = t->since_ns && now - t->since_ns >= t->grace_ns;
	}
}

static void note_pressures(struct eviction *e, int64_t now)
{
	bool changed = false;

	for (size_t i = 0; i < PRESSURES; i++) {
		bool is = e->seen_ns[i] && (e->seen_ns[i] == now || now - e->seen_ns[i] < e->transition_ns);
		changed |= is != e->pressure[i];
		e->pressure[i] = is;
	}
	if (changed)
		e->o.changed(e->o.arg);
}

/* Dead containers, unused images: whatever is on that disk. */
static bool free_disk(struct eviction *e, enum signal s)
{
	bool node = s == SIGNAL_NODE_FS || s == SIGNAL_NODE_FS_INODES;
	bool containers = !e->disks.dedicated || (e->disks.split ? node : !node), images = !e->disks.dedicated || !node;
	struct err err = ERR_INIT;

	if (containers)
		e->o.free_containers(e->o.arg);
	if (images && e->o.free_images(e->o.arg, &err) < 0)
		log_warn("unused images cannot be removed", KV("err", &err));
	return containers || images;
}

/* Whether nothing is short any more. */
static bool free_node(struct eviction *e, struct arena *a, const struct threshold *t)
{
	struct observation now[SIGNALS];

	if (signal_facts[t->signal].pressure != PRESSURE_DISK || !free_disk(e, t->signal))
		return false;
	signals_observe(e, a, now);
	for (size_t i = 0; i < e->thresholds.n; i++)
		if (threshold_is_met(&e->thresholds.all[i], &now[e->thresholds.all[i].signal], true))
			return false;
	return true;
}

static int64_t grace_of(const struct eviction *e, const struct threshold *t, struct val pod)
{
	struct val own = val_get(pod, spec, terminationGracePeriodSeconds);

	if (!t->grace_ns)
		return GRACE_AT_ONCE_S;
	return val_exists(own) ? MIN(e->grace_max_s, val_as_int(own)) : e->grace_max_s;
}

static bool evict_one(struct eviction *e, struct arena *a, struct val pods, const struct threshold *t, const struct observation *o)
{
	str resource = signal_facts[t->signal].resource;
	struct val stats = e->o.stats ? val_get(stats_summary(e->o.stats, a, signal_facts[t->signal].pressure == PRESSURE_MEMORY), pods) : VAL_EMPTY;
	size_t n;

	/* The runtime does not answer: all would look alike, and anybody would go. */
	if (e->o.stats && !val_len(stats)) {
		log_warn("no figures of pods: none is evicted");
		return false;
	}
	struct candidate *all = eviction_rank(a, pods, stats, t->signal, &e->disks, &n);
	for (size_t i = 0; i < n; i++) {
		struct val pod = all[i].pod;
		str message = eviction_message(a, &all[i], resource, t, o);
		struct val condition = OBJECT(a, F(type, VAL_LIT("DisruptionTarget")), F(observedGeneration, val_get(pod, metadata, generation)),
					      F(status, VAL_LIT("True")), F(reason, VAL_LIT("TerminationByKubelet")), F(message, VAL_STR(message)));
		if (!evict(e, pod, message, condition, grace_of(e, t, pod)))
			continue;
		count(e, arena_printf(a, "eviction_signal=\"" STR_FMT "\"", STR_ARG(signal_facts[t->signal].name)).p);
		return true;
	}
	log_warn("no pod of the node can be evicted");
	return false;
}

bool eviction_look(struct eviction *e)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct observation o[SIGNALS];
	const struct threshold *t = NULL;
	int64_t now = clock_now_ns();

	signals_observe(e, &a, o);
	note_thresholds(e, o, now);
	note_pressures(e, now);
	struct val pods = e->o.pods(e->o.arg, &a);
	if (e->local && look_at_local(e, &a, pods))
		return true;
	for (size_t i = 0; i < e->thresholds.n && !t; i++)
		if (e->thresholds.all[i].acts)
			t = &e->thresholds.all[i];
	if (!t)
		return false;
	str resource = signal_facts[t->signal].resource;
	log_info("something is short", KV("signal", signal_facts[t->signal].name), KV("available", quantity_text(&a, o[t->signal].available)));
	e->o.event(e->o.arg, VAL_EMPTY, true, "EvictionThresholdMet", arena_printf(&a, "Attempting to reclaim " STR_FMT, STR_ARG(resource)));
	if (free_node(e, &a, t))
		return false;
	if (!val_len(pods)) {
		log_warn("something is short, and there is no pod to evict");
		return false;
	}
	return evict_one(e, &a, pods, t, &o[t->signal]);
}

int eviction_run(struct eviction *e, struct err *err)
{
	for (;;) {
		/* After the end of a pod it may already be enough, or not. */
		int r = fiber_sleep_ms(eviction_look(e) ? AFTER_MS : LOOK_MS, err);
		if (r < 0)
			return r;
	}
}
