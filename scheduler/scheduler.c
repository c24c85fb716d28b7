/*
 * The loop: a pod from the queue, a node for it, and its binding on a fiber. One pod at a time looks for a node, so that each sees what the one
 * before it has taken; nothing else changes the table meanwhile.
 */
#include "scheduler/scheduler.h"

#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/gates.h"
#include "scheduler/counters.h"
#include "scheduler/devices.h"
#include "scheduler/extenders.h"
#include "scheduler/profile.h"
#include "scheduler/scheduler_priv.h"
#include "scheduler/storage.h"

enum { TICK_MS = 1000, BURST = 64 };

/* ---- small things that others ask for ---- */

bool scheduler_gate(const struct scheduler *s, const char *name)
{
	return gate_is_on(s && s->gates ? s->gates->val : VAL_EMPTY, str_of(name));
}

struct profile *scheduler_profile(struct scheduler *s, struct val pod)
{
	str name = val_str(pod, spec, schedulerName);

	for (size_t i = 0; i < s->n_profiles; i++)
		if (str_eq(s->profiles[i].name, name))
			return &s->profiles[i];
	return NULL;
}

struct informer *scheduler_informer(struct scheduler *s, const struct type *type)
{
	return informers_get(s->informers, type, &(struct informer_options){ .keep = NULL });
}

/* splitmix64, then xorshift128+: small, and the same everywhere. */
static void dice_seed(uint64_t dice[2], uint64_t seed)
{
	for (int i = 0; i < 2; i++) {
		uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		dice[i] = z ^ z >> 31;
	}
}

uint64_t scheduler_dice(struct scheduler *s, uint64_t n)
{
	uint64_t x = s->dice[0], y = s->dice[1];

	s->dice[0] = y;
	x ^= x << 23;
	s->dice[1] = x ^ y ^ x >> 17 ^ y >> 26;
	__extension__ typedef unsigned __int128 wide;
	return (uint64_t)((wide)(s->dice[1] + y) * n >> 64);
}

void scheduler_make_room(struct scheduler *s)
{
	uint32_t need = s->nodes.n;

	if (need <= s->room)
		return;
	need = MAX(need, 64U);
	s->room = MAX(2 * s->room, need);
	s->found = mem_resize(s->found, s->room * sizeof(*s->found));
	s->scores = mem_resize(s->scores, s->room * sizeof(*s->scores));
	s->totals = mem_resize(s->totals, s->room * sizeof(*s->totals));
	s->verdicts = mem_resize(s->verdicts, s->room);
}

/* ---- what the queue asks ---- */

static struct cycle question(struct scheduler *s, struct arena *a, struct profile *p, struct val pod)
{
	return (struct cycle){ .scheduler = s, .nodes = &s->nodes, .arena = a, .pod = pod, .config = p->config, .storage = s->storage,
			       .devices = s->devices };
}

static bool may_enter(void *arg, struct val pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct scheduler *s = arg;
	struct profile *p = scheduler_profile(s, pod);

	if (!p)
		return true;
	struct cycle c = question(s, &a, p, pod);
	for (unsigned k = 0; k < p->n_order[POINT_PRE_ENQUEUE]; k++) {
		c.at = p->order[POINT_PRE_ENQUEUE][k];
		if (p->plugins[c.at]->pre_enqueue(&c) != FIT)
			return false;
	}
	return true;
}

static unsigned events_for(void *arg, const struct queued *q)
{
	const struct profile *p = scheduler_profile(arg, q->pod->val);
	unsigned events = 0;

	if (!p || q->refused_by >> EXTENDER_BIT)
		return UINT_MAX;
	for (unsigned i = 0; i < p->n; i++)
		if (q->refused_by >> i & 1)
			events |= p->plugins[i]->events;
	return events;
}

static bool helps(void *arg, struct queued *q, unsigned event, struct val old, struct val new)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct scheduler *s = arg;
	struct profile *p = scheduler_profile(s, q->pod->val);
	bool known = val_exists(old) || val_exists(new);

	if (!p || q->refused_by >> EXTENDER_BIT)
		return true;
	struct cycle c = question(s, &a, p, q->pod->val);
	for (unsigned i = 0; i < p->n; i++) {
		const struct plugin *plugin = p->plugins[i];
		if (!(q->refused_by >> i & 1) || !(plugin->events & event))
			continue;
		c.at = i;
		if (!known || !plugin->hint || plugin->hint(&c, q->pod->val, event, old, new))
			return true;
	}
	return false;
}

/* ---- one pod ---- */

/* Deleted ones need no node, and one that changed on its way may have one already. */
static bool skips(struct scheduler *s, struct profile *p, struct val pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (val_has(pod, metadata, deletionTimestamp)) {
		record(p->recorder, pod_reference(&a, pod), RECORD_WARNING, "FailedScheduling", "skip schedule deleting pod: " STR_FMT "/" STR_FMT,
		       STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(val_str(pod, metadata, name)));
		return true;
	}
	return map_get(&s->pods, val_str(pod, metadata, uid)) != NULL;
}

/* (suspends for extenders, and when much is at work) */
static int schedule(struct scheduler *s, struct queued *q, struct err *err)
{
	struct profile *p = scheduler_profile(s, q->pod->val);
	struct cycle_result result;
	int r = 0;

	while (r == 0 && s->busy) /* somebody asks why */
		r = fiber_cond_wait(&s->idle, err);
	if (r < 0) {
		sched_queue_done(s->queue, q);
		return r;
	}
	if (!p || skips(s, p, q->pod->val)) {
		sched_queue_done(s->queue, q);
		return 0;
	}
	struct attempt *a = attempt_new(s, p, q);
	counters_begin(s->nodes.counters);
	s->busy = true;
	cycle_run(&a->cycle, p, &result);
	if (result.outcome == CYCLE_FOUND) {
		a->node = result.node;
		attempt_assume(s, a);
		if (!cycle_reserve(&a->cycle, p, a->node, &result))
			scheduler_forget_pod(s, a->cycle.placed);
	}
	bool found = result.outcome == CYCLE_FOUND;
	if (!found)
		attempt_failed(s, a, &result);
	bool awaited = !list_empty(&s->idle.waiters);
	scheduler_release_events(s);
	if (found)
		r = attempt_bind(s, a, err);
	/* Who waits for the end of a cycle gets its turn before the next one begins, which may suspend in its middle again. */
	return r == 0 && awaited ? fiber_yield(err) : r;
}

/* ---- life ---- */

static int make_profiles(struct scheduler *s, struct err *err)
{
	struct val list = val_get(s->config->val, profiles);
	int r = 0;

	s->profiles = mem_zalloc((val_len(list) + 1) * sizeof(struct profile));
	VAL_EACH(c, list) {
		struct profile *p = &s->profiles[s->n_profiles++];
		if ((r = profile_init(p, *c, err)) < 0 || (r = recorder_new(s->client, p->name, STR_NONE, &p->recorder, err)) < 0)
			return r;
	}
	return r;
}

int scheduler_new(const struct scheduler_options *o, struct scheduler **ret, struct err *err)
{
	struct scheduler *s = mem_zalloc(sizeof(*s));
	struct val config = o->config->val;
	int r;

	s->client = o->client;
	s->informers = o->informers;
	s->config = frozen_ref(o->config);
	s->gates = val_freeze(o->gates);
	dice_seed(s->dice, o->seed ? o->seed : random_u64());
	nodes_init(&s->nodes);
	s->nodes.no_pod_level = !scheduler_gate(s, "PodLevelResources");
	s->nodes.no_pod_level_resize = !scheduler_gate(s, "InPlacePodLevelResourcesVerticalScaling");
	s->expects_nodes = scheduler_gate(s, "NominatedNodeNameForExpectation");
	s->preempts_at_once = !scheduler_gate(s, "SchedulerAsyncPreemption");
	(void)counters_new(&s->nodes);
	map_init(&s->pods);
	map_init(&s->homeless);
	map_init(&s->attempts);
	list_init(&s->deferred);
	nominations_init(&s->nominations, &s->nodes);
	fiber_group_init(&s->work);
	fiber_cond_init(&s->less_work, "bindings to end");
	fiber_cond_init(&s->idle, "the end of a cycle");
	s->storage = storage_new(s->client, s->informers);
	s->devices = device_table_new(s->client, s->informers);
	devices_set_gates(s->devices, s->gates->val);
	storage_hold(s->storage, &s->busy);
	devices_hold(s->devices, &s->busy);
	s->queue = sched_queue_new(&(struct sched_queue_options){ .backoff_first_ms = 1000 * val_int(config, podInitialBackoffSeconds),
		.backoff_max_ms = 1000 * val_int(config, podMaxBackoffSeconds), .flush_after_ms = o->unschedulable_max_ms, .may_enter = may_enter,
		.waits_out_backoff = !scheduler_gate(s, "SchedulerPopFromBackoffQ"),
		.events = events_for, .helps = helps, .arg = s });
	s->node_informer = scheduler_informer(s, TYPE(core_v1, Node));
	s->pod_informer = scheduler_informer(s, TYPE(core_v1, Pod));
	(void)scheduler_informer(s, TYPE(policy_v1, PodDisruptionBudget)); /* for preemption, from the start */
	scheduler_listen(s);
	if ((r = make_profiles(s, err)) < 0 || (r = extenders_new(s, val_get(config, extenders), err)) < 0) {
		scheduler_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void free_pods(struct scheduler *s)
{
	struct map_iter it = map_iter(&s->pods);

	for (struct placed *p; (p = map_next(&it, NULL));) {
		if (p->node != UINT32_MAX)
			nodes_unplace(&s->nodes, p);
		placed_free(p);
	}
	map_done(&s->pods);
}

void scheduler_free(struct scheduler *s)
{
	if (!s)
		return;
	fiber_group_done(&s->work);
	scheduler_unlisten(s);
	extenders_free(s);
	for (size_t i = 0; i < s->n_profiles; i++) {
		recorder_free(s->profiles[i].recorder);
		profile_done(&s->profiles[i]);
	}
	free(s->profiles);
	sched_queue_free(s->queue);
	classes_done(&s->classes);
	nominations_done(&s->nominations);
	free_pods(s);
	scheduler_drop_events(s);
	for (struct attempt *a; (a = s->spare);) {
		s->spare = a->next;
		arena_done(&a->arena);
		free(a);
	}
	map_done(&s->attempts);
	device_table_free(s->devices);
	storage_free(s->storage);
	counters_free(s->nodes.counters);
	nodes_done(&s->nodes);
	free(s->found);
	free(s->scores);
	free(s->totals);
	free(s->verdicts);
	frozen_unref(s->config);
	frozen_unref(s->gates);
	free(s);
}

static int tick(void *arg)
{
	struct scheduler *s = arg;
	int r;

	/* At whole seconds, as back-offs end. */
	while ((r = fiber_sleep_ns(TICK_MS * NS_PER_MS - clock_now_ns() % (TICK_MS * NS_PER_MS), NULL)) == 0)
		sched_queue_tick(s->queue);
	return r;
}

int scheduler_run(struct scheduler *s, struct err *err)
{
	CLEANUP(fiber_stopp) struct fiber *ticking = NULL;
	struct queued *q;
	int r = informers_wait(s->informers, err);

	if (r == 0)
		r = fiber_spawn(tick, s, &ticking, err, "back-offs");
	/* Others get their turn though there is always a next pod. */
	for (unsigned n = 1; r >= 0; n++) {
		if ((r = scheduler_wait_for_room(s, err)) < 0 || (r = sched_queue_take(s->queue, &q, err)) < 0)
			break;
		r = schedule(s, q, err);
		if (r == 0 && n % BURST == 0)
			r = fiber_yield(err);
	}
	fiber_group_cancel(&s->work);
	SHIELD_SCOPE();
	(void)fiber_group_wait(&s->work, NULL);
	return r;
}

/* ---- figures ---- */

static void add_gauge(struct buf *out, const struct scheduler *s, const char *queue)
{
	buf_addf(out, "scheduler_pending_pods{queue=\"%s\"} %zu\n", queue, sched_queue_length(s->queue, queue));
}

void scheduler_metrics(const struct scheduler *s, struct buf *out)
{
	const struct sched_counts *c = &s->counts;

	buf_add(out, STR("# HELP scheduler_pending_pods [STABLE] Number of pending pods, by the queue type.\n# TYPE scheduler_pending_pods gauge\n"));
	add_gauge(out, s, "active");
	add_gauge(out, s, "backoff");
	add_gauge(out, s, "gated");
	add_gauge(out, s, "unschedulable");
	buf_add(out, STR("# HELP scheduler_schedule_attempts_total [STABLE] Number of attempts to schedule pods, by the result.\n"
			 "# TYPE scheduler_schedule_attempts_total counter\n"));
	for (size_t i = 0; i < s->n_profiles && i < 1; i++) {
		str name = s->profiles[i].name;
		buf_addf(out, "scheduler_schedule_attempts_total{profile=\"" STR_FMT "\",result=\"error\"} %llu\n", STR_ARG(name), (unsigned long long)c->errors);
		buf_addf(out, "scheduler_schedule_attempts_total{profile=\"" STR_FMT "\",result=\"scheduled\"} %llu\n", STR_ARG(name),
			 (unsigned long long)c->scheduled);
		buf_addf(out, "scheduler_schedule_attempts_total{profile=\"" STR_FMT "\",result=\"unschedulable\"} %llu\n", STR_ARG(name),
			 (unsigned long long)c->unschedulable);
	}
	buf_add(out, STR("# HELP scheduler_cache_size [ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.\n"
			 "# TYPE scheduler_cache_size gauge\n"));
	buf_addf(out, "scheduler_cache_size{type=\"assumed_pods\"} %zu\n", map_len(&s->attempts));
	buf_addf(out, "scheduler_cache_size{type=\"nodes\"} %u\n", s->nodes.n_alive);
	buf_addf(out, "scheduler_cache_size{type=\"pods\"} %zu\n", map_len(&s->pods));
}
