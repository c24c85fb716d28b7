/*
 * A target is a container that runs; each of its probes is a worker with a fiber. Targets are found by pod and name, and counted: by the
 * table, and by each fiber. Ending one takes it out of the table and cancels its fibers; what they still find out is told to nobody.
 */
#include "kubelet/probe.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "kubelet/probe_priv.h"
#include "machinery/conditions.h"

enum { KINDS = 3, RETRIES = 3 };

/* A container that was started so long before the kubelet was not started by it. */
#define TAKEN_OVER_NS (10 * NS_PER_S)

struct target;

struct worker {
	struct target *target;
	enum probe_kind kind;
	struct val spec;                       /* VAL_NONE: there is no such probe */
	struct fiber *fiber;                   /* NULL: none */
	enum probe_result result;              /* that counts */
	enum probe_result last;                /* of the last try */
	int64_t run;                           /* how often in a row */
	unsigned early;                        /* tries that did not wait for a period */
	uint64_t outcomes[3];                  /* tries by their result */
	bool stopped;
};

struct target {
	struct probes *probes;
	struct frozen *pod;
	struct arena arena;                    /* of the texts here */
	str key, uid, name, id, ip;
	struct val container;
	int64_t started_ns;                    /* as clock_now_ns counts */
	bool taken_over;
	unsigned refs;
	struct fiber_cond started;
	struct worker workers[KINDS];
};

struct probes {
	struct probes_options o;
	struct map targets;                    /* by key */
	int64_t begin_wall_ns;
	unsigned fibers;
	struct fiber_cond idle;
};

static const char *const kind_names[KINDS] = {
	[PROBE_STARTUP] = "Startup", [PROBE_LIVENESS] = "Liveness", [PROBE_READINESS] = "Readiness",
};

static void target_unref(struct target *t)
{
	if (--t->refs)
		return;
	frozen_unref(t->pod);
	arena_done(&t->arena);
	free(t);
}

static bool target_started(const struct target *t)
{
	const struct worker *w = &t->workers[PROBE_STARTUP];

	return !val_exists(w->spec) || w->result == PROBE_SUCCESS;
}

static void tell(struct worker *w, const char *reason, str message)
{
	struct target *t = w->target;
	struct probes *p = t->probes;

	if (!w->stopped && p->o.event)
		p->o.event(t->pod->val, t->name, true, str_of(reason), message, p->o.arg);
}

static void set_result(struct worker *w, enum probe_result result)
{
	struct target *t = w->target;
	struct probes *p = t->probes;

	if (w->stopped || w->result == result)
		return;
	w->result = result;
	if (w->kind == PROBE_STARTUP && result == PROBE_SUCCESS)
		fiber_cond_broadcast(&t->started);
	if (p->o.changed)
		p->o.changed(t->uid, t->name, w->kind, result, p->o.arg);
}

/* ---- one try ---- */

static void tell_outcome(struct worker *w, struct arena *a, int r, enum check_result result, str output, const struct err *err)
{
	static const char *const states[] = { "unknown", "success", "warning", "failure" };
	const char *kind = kind_names[w->kind];

	if (r < 0)
		tell(w, "Unhealthy", arena_printf(a, "%s probe errored and resulted in %s state: %s", kind, states[result], err->msg));
	else if (result == CHECK_WARNING)
		tell(w, "ProbeWarning", arena_printf(a, "%s probe warning: " STR_FMT, kind, STR_ARG(output)));
	else if (result == CHECK_FAILURE)
		tell(w, "Unhealthy", arena_printf(a, "%s probe failed: " STR_FMT, kind, STR_ARG(output)));
}

/* A number of the probe, for one that was not defaulted, too. */
static int64_t number_or(struct val number, int64_t usual) { return val_as_int(number) > 0 ? val_as_int(number) : usual; }

/* (suspends) 0 with a result that is to be counted; 1 when it could not be told. */
static int worker_ask(struct worker *w, enum probe_result *ret)
{
	struct target *t = w->target;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct probe_check c = { .cri = t->probes->o.cri, .arena = &a, .pod = t->pod->val, .container = t->container, .handler = w->spec,
				 .container_id = t->id, .pod_ip = t->ip };
	struct err err = ERR_INIT;
	enum check_result result = CHECK_UNKNOWN;
	int r = -1;

	c.timeout_ms = number_or(val_get(w->spec, timeoutSeconds), 1) * 1000;
	for (unsigned i = 0; r < 0 && r != -ERR_CANCELED && i < RETRIES; i++)
		r = probe_check(&c, &result, &err);
	if (r == -ERR_CANCELED)
		return r;
	tell_outcome(w, &a, r, result, c.output, &err);
	*ret = result == CHECK_FAILURE ? PROBE_FAILURE : PROBE_SUCCESS;
	w->outcomes[r < 0 ? PROBE_UNKNOWN : *ret]++;
	return r < 0 ? 1 : 0;
}

/* (suspends) Tries once and counts. False when nothing is left to be found out about this container. */
static bool worker_try(struct worker *w)
{
	int64_t failures = number_or(val_get(w->spec, failureThreshold), 3);
	int64_t successes = number_or(val_get(w->spec, successThreshold), 1);
	enum probe_result result;
	int r = worker_ask(w, &result);

	if (r != 0)
		return r > 0;
	w->run = w->last == result ? w->run + 1 : 1;
	w->last = result;
	if (w->run < (result == PROBE_FAILURE ? failures : successes))
		return true;
	set_result(w, result);
	/* A container that will be ended is left alone until there is a new one, and one that has started has done so. */
	return !(w->kind == PROBE_STARTUP || (w->kind == PROBE_LIVENESS && result == PROBE_FAILURE));
}

/* ---- when ---- */

static int64_t period_ns(const struct worker *w) { return number_or(val_get(w->spec, periodSeconds), 10) * NS_PER_S; }

static int64_t first_due_ns(const struct worker *w)
{
	const struct target *t = w->target;
	int64_t delay_ns = val_int(w->spec, initialDelaySeconds) * NS_PER_S, now_ns = clock_now_ns();

	if (delay_ns == 0 && w->kind != PROBE_READINESS)
		delay_ns = period_ns(w);
	int64_t due_ns = t->started_ns + delay_ns;
	/* After a restart of the kubelet not all containers of the node are asked at once. */
	if (t->taken_over && due_ns < now_ns)
		due_ns = now_ns + (int64_t)random_below((uint64_t)period_ns(w));
	return due_ns;
}

/*
 * When to try again. A container that has just started is asked for readiness a few times more, as each look of Kubernetes at a pod that
 * is not ready does: most that do not listen at once do so within a second, and need not wait for a whole period.
 */
static int64_t next_due_ns(struct worker *w, int64_t due_ns)
{
	static const int64_t early_ns[] = { 500 * NS_PER_MS, 1000 * NS_PER_MS };
	int64_t now_ns = clock_now_ns();

	if (w->kind == PROBE_READINESS && w->result != PROBE_SUCCESS && !val_int(w->spec, initialDelaySeconds) &&
	    w->early < ARRAY_LEN(early_ns))
		return now_ns + MIN(early_ns[w->early++], period_ns(w));
	w->early = ARRAY_LEN(early_ns);
	return MAX(due_ns + period_ns(w), now_ns);
}

/* (suspends) Until the probe is due and the container has started; *due_ns is then when that was. */
static int worker_wait(struct worker *w, int64_t *due_ns)
{
	struct target *t = w->target;

	for (;;) {
		int64_t left_ns = *due_ns - clock_now_ns();
		int r = left_ns > 0 ? fiber_sleep_ns(left_ns, NULL) : fiber_check(NULL);
		if (r < 0 || w->kind == PROBE_STARTUP || target_started(t))
			return r;
		if (w->kind == PROBE_LIVENESS) {
			*due_ns += period_ns(w);
			continue;
		}
		while (!target_started(t))
			if ((r = fiber_cond_wait(&t->started, NULL)) < 0)
				return r;
		*due_ns = clock_now_ns();
	}
}

static int worker_main(void *arg)
{
	struct worker *w = arg;
	struct probes *p = w->target->probes;
	int64_t due_ns = first_due_ns(w);

	while (worker_wait(w, &due_ns) == 0 && worker_try(w))
		due_ns = next_due_ns(w, due_ns);
	target_unref(w->target);
	if (--p->fibers == 0)
		fiber_cond_broadcast(&p->idle);
	return 0;
}

static void worker_stop(struct worker *w)
{
	w->stopped = true;
	if (w->fiber) {
		fiber_cancel(w->fiber);
		fiber_detach(TAKE(w->fiber));
	}
}

/* ---- what was before ---- */

static struct val status_of(struct val pod, str name)
{
	VAL_EACH(s, val_get(pod, status, containerStatuses))
		if (str_eq(val_str(*s, name), name))
			return *s;
	VAL_EACH(s, val_get(pod, status, initContainerStatuses))
		if (str_eq(val_str(*s, name), name))
			return *s;
	return VAL_EMPTY;
}

static enum probe_result initial_result(const struct target *t, enum probe_kind kind)
{
	struct val status = status_of(t->pod->val, t->name);
	/* "containerd://<id>" */
	bool same = t->taken_over && t->id.n && str_ends(val_str(status, containerID), t->id);

	switch (kind) {
	case PROBE_STARTUP:
		return same && val_bool(status, started) ? PROBE_SUCCESS : PROBE_UNKNOWN;
	case PROBE_READINESS:
		return same && pod_is_ready(t->pod->val) ? PROBE_SUCCESS : PROBE_FAILURE;
	default:
		return PROBE_SUCCESS;
	}
}

/* ---- targets ---- */

static str key_make(struct arena *a, str uid, str container)
{
	return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(uid), STR_ARG(container));
}

static struct target *target_find(const struct probes *p, str uid, str container)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	return map_get(&p->targets, key_make(&a, uid, container));
}

/* It is out of the table already. */
static void target_end(struct target *t)
{
	for (unsigned i = 0; i < KINDS; i++)
		worker_stop(&t->workers[i]);
	target_unref(t);
}

static struct target *target_new(struct probes *p, struct frozen *pod, struct val container, str id, int64_t started_ns, str ip)
{
	struct target *t = mem_zalloc(sizeof(*t));
	struct arena *a = &t->arena;

	t->probes = p;
	t->pod = frozen_ref(pod);
	t->refs = 1;
	t->container = val_copy(a, container);
	t->uid = val_str(pod->val, metadata, uid);
	t->name = val_str(t->container, name);
	t->key = key_make(a, t->uid, t->name);
	t->id = arena_str(a, id);
	t->ip = arena_str(a, ip);
	t->started_ns = clock_now_ns() - MAX(clock_wall_ns() - started_ns, (int64_t)0);
	t->taken_over = started_ns < p->begin_wall_ns - TAKEN_OVER_NS;
	fiber_cond_init(&t->started, "the start of a container");
	struct val specs[KINDS] = {
		[PROBE_STARTUP] = val_get(t->container, startupProbe),
		[PROBE_LIVENESS] = val_get(t->container, livenessProbe),
		[PROBE_READINESS] = val_get(t->container, readinessProbe),
	};
	for (unsigned i = 0; i < KINDS; i++) {
		enum probe_result result = initial_result(t, i);
		t->workers[i] = (struct worker){ .target = t, .kind = i, .spec = specs[i], .result = result };
	}
	return t;
}

static int worker_start(struct worker *w, struct err *err)
{
	struct target *t = w->target;
	int r;

	if (!val_exists(w->spec) || (w->kind == PROBE_STARTUP && w->result == PROBE_SUCCESS))
		return 0;
	r = fiber_spawn(worker_main, w, &w->fiber, err, "probe %s " STR_FMT, kind_names[w->kind], STR_ARG(t->name));
	if (r < 0)
		return r;
	t->refs++;
	t->probes->fibers++;
	return 0;
}

int probes_begin(struct probes *p, struct frozen *pod, struct val container, str container_id, int64_t started_ns, str pod_ip,
		 struct err *err)
{
	struct target *t = target_new(p, pod, container, container_id, started_ns, pod_ip), *old = map_put(&p->targets, t->key, t);
	bool ending = val_has(pod->val, metadata, deletionTimestamp);
	int r = 0;

	if (old)
		target_end(old);
	for (unsigned i = 0; i < KINDS && r == 0; i++)
		if (!ending || i == PROBE_READINESS)
			r = worker_start(&t->workers[i], err);
	if (r < 0) {
		(void)map_remove(&p->targets, t->key);
		target_end(t);
	}
	return r;
}

void probes_end(struct probes *p, str pod_uid, str container)
{
	struct map_iter it = map_iter(&p->targets);
	struct target *t;

	while ((t = map_next(&it, NULL)))
		if (str_eq(t->uid, pod_uid) && (!container.n || str_eq(t->name, container))) {
			(void)map_remove(&p->targets, t->key);
			target_end(t);
		}
}

void probes_terminating(struct probes *p, str pod_uid)
{
	struct map_iter it = map_iter(&p->targets);
	struct target *t;

	while ((t = map_next(&it, NULL)))
		if (str_eq(t->uid, pod_uid)) {
			for (unsigned i = PROBE_STARTUP; i <= PROBE_LIVENESS; i++) {
				worker_stop(&t->workers[i]);
				t->workers[i].result = PROBE_SUCCESS;
			}
			fiber_cond_broadcast(&t->started);
		}
}

enum probe_result probes_result(const struct probes *p, str pod_uid, str container, enum probe_kind kind)
{
	const struct target *t = target_find(p, pod_uid, container);

	return t && val_exists(t->workers[kind].spec) ? t->workers[kind].result : PROBE_UNKNOWN;
}

bool probes_started(const struct probes *p, str pod_uid, str container)
{
	const struct target *t = target_find(p, pod_uid, container);

	return t && target_started(t);
}

bool probes_ready(const struct probes *p, str pod_uid, str container)
{
	const struct target *t = target_find(p, pod_uid, container);

	if (!t || !target_started(t))
		return false;
	return !val_exists(t->workers[PROBE_READINESS].spec) || t->workers[PROBE_READINESS].result == PROBE_SUCCESS;
}

struct probes *probes_new(const struct probes_options *o)
{
	struct probes *p = mem_zalloc(sizeof(*p));

	p->o = *o;
	p->begin_wall_ns = clock_wall_ns();
	map_init(&p->targets);
	fiber_cond_init(&p->idle, "probes to end");
	return p;
}

void probes_free(struct probes *p)
{
	SHIELD_SCOPE();
	struct map_iter it = map_iter(&p->targets);
	struct target *t;

	while ((t = map_next(&it, NULL))) {
		(void)map_remove(&p->targets, t->key);
		target_end(t);
	}
	while (p->fibers)
		(void)fiber_cond_wait(&p->idle, NULL);
	map_done(&p->targets);
	free(p);
}

int64_t probe_grace_s(struct val pod, struct val container, enum probe_kind kind)
{
	struct val own = kind == PROBE_STARTUP    ? val_get(container, startupProbe, terminationGracePeriodSeconds)
			 : kind == PROBE_LIVENESS ? val_get(container, livenessProbe, terminationGracePeriodSeconds)
						  : VAL_EMPTY;

	if (val_has(pod, metadata, deletionGracePeriodSeconds))
		return val_int(pod, metadata, deletionGracePeriodSeconds);
	return val_exists(own) ? val_as_int(own) : val_int(pod, spec, terminationGracePeriodSeconds);
}

void probes_metrics(const struct probes *p, struct buf *text)
{
	static const char *const results[] = { [PROBE_UNKNOWN] = "unknown", [PROBE_SUCCESS] = "successful", [PROBE_FAILURE] = "failed" };
	struct map_iter it = map_iter(&p->targets);

	buf_add(text, STR("# HELP prober_probe_total Probes of containers, by kind and result.\n"
			  "# TYPE prober_probe_total counter\n"));
	for (const struct target *t; (t = map_next(&it, NULL));)
		for (size_t i = 0; i < KINDS; i++)
			for (size_t result = 0; result < ARRAY_LEN(results); result++)
				if (t->workers[i].outcomes[result])
					buf_addf(text, "prober_probe_total{container=\"" STR_FMT "\",namespace=\"" STR_FMT "\",pod=\"" STR_FMT
						 "\",pod_uid=\"" STR_FMT "\",probe_type=\"%s\",result=\"%s\"} %llu\n", STR_ARG(t->name),
						 STR_ARG(val_str(t->pod->val, metadata, namespace)), STR_ARG(val_str(t->pod->val, metadata, name)),
						 STR_ARG(t->uid), kind_names[i], results[result], (unsigned long long)t->workers[i].outcomes[result]);
}
