/* One seed: a cluster, a time in which work is done and things go wrong, and a time in which it has to become what was asked for. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/random.h"
#include "codec/types.h"
#include "simulation/simulation.h"

/* 2026-01-01 */
static const int64_t wall_ns = INT64_C(1767225600) * NS_PER_S, begin_ns = 1000 * NS_PER_S;

enum { LEADS_MS = 45 * 1000 }; /* a lease, two looks, and the start of a process */
/*
 * Back-off of work that was refused (by a quota) grows up to 1000 seconds, which is how long some of it waits; and each pod of an update anew, when
 * the quota lets in one at a time.
 */
enum { CHECK_MS = 2000, CALM_MS = 150 * 60 * 1000, STAYS_MS = 30 * 1000, BASE_MS = 2000, NODES_LEAST = 2, NODES_MOST = 4 };

/* What every cluster has, made once; and the loop, with the stacks that it keeps. */
static struct memory_store *base;
static struct loop *loop;

/* ---- writes ---- */

static struct memory_store_fate fate(void *arg)
{
	struct simulation *s = arg;
	bool none = s->no_writes > 0;

	if (!s->slow_ns)
		return (struct memory_store_fate){ .refused = none };
	bool bad = dice_chance(&s->dice, s->bad_writes), done = dice_chance(&s->dice, 5000);
	int64_t before_ns = dice_below(&s->dice, s->slow_ns), after_ns = dice_below(&s->dice, s->slow_ns), seen_ns = dice_below(&s->dice, s->slow_ns);
	return (struct memory_store_fate){ before_ns, after_ns, seen_ns, .refused = none || (bad && !done), .unknown = bad && done };
}

static void written(void *arg, str key, struct store_value *value, int64_t revision)
{
	struct simulation *s = arg;

	history_write(&s->history, key, value, revision);
	s->rules.late = hub_is_late(&s->hub);
	rules_written(&s->rules, key, value);
}

/* ---- the run ---- */

static bool all_lead(struct simulation *s) { return replica_leader(s->schedulers) && replica_leader(s->managers); }

/* What goes back and forth is not as it shall be. */
void settle(struct simulation *s)
{
	CLEANUP(buf_done) struct buf why = BUF_INIT(4096);
	int64_t since_ms = -1;

	for (int64_t ms = 0; !s->rules.failed; ms += CHECK_MS) {
		bool led = all_lead(s);
		buf_reset(&why);
		if (!rules_settled(&s->rules, &why) || !led)
			since_ms = -1;
		else if (since_ms < 0)
			since_ms = ms;
		else if (ms - since_ms >= STAYS_MS)
			return;
		if (ms > LEADS_MS && !led)
			rules_fail(&s->rules, "nobody leads", STR_NONE, "%s", replica_leader(s->schedulers) ? "controllers" : "schedulers");
		else if (ms > CALM_MS && since_ms < 0)
			rules_fail(&s->rules, "nothing moves on", STR_NONE, STR_FMT, STR_ARG(buf_str(&why)));
		(void)fiber_sleep_ms(CHECK_MS, NULL);
	}
}

/* (suspends) What is lost for good is taken out, as an operator does. */
static void calm_down(struct simulation *s)
{
	s->slow_ns = 0;
	s->bad_writes = 0;
	s->hub.faults = (struct link_faults){ 0 };
	for (int i = 0; i < s->n_nodes; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "node-%d", s->nodes[i].number);
		if (s->nodes[i].lost)
			(void)client_delete(s->operator, TYPE(core_v1, Node), STR_NONE, str_of(name), NULL, NULL);
	}
	history_say(&s->history, "== calm");
}

static int cluster_start(struct simulation *s, struct err *err)
{
	int r = server_start(s, err);

	s->cache_late = dice_chance(&s->dice, 5000);
	for (int64_t n = dice_between(&s->dice, NODES_LEAST, NODES_MOST); r == 0 && n > 0; n--)
		r = node_add(s, err) ? 0 : -ERR_INTERNAL;
	return r == 0 ? replicas_start(s, err) : r;
}

/* (suspends) What users do, and meanwhile what goes wrong. */
static void work(struct simulation *s)
{
	CLEANUP(fiber_group_done) struct fiber_group faults;
	struct err err = ERR_INIT;

	fiber_group_init(&faults);
	work_begin(s);
	if (!s->calm) {
		s->slow_ns = dice_below(&s->dice, 20) * NS_PER_MS;
		s->hub.faults = (struct link_faults){ .refused = 20, .failed = 20, .closed = 10, .expired = 5, .latency_ns = 5 * NS_PER_MS };
		if (faults_start(s, &faults, &err) < 0)
			rules_fail(&s->rules, "no fiber", STR_NONE, "%s", err.msg);
	}
	work_run(s);
}

static void work_and_settle(struct simulation *s)
{
	work(s);
	calm_down(s);
	work_end(s);
	settle(s);
}

static int run_seed(void *arg)
{
	struct simulation *s = arg;
	struct err err = ERR_INIT;

	cluster_init(s);
	if (cluster_start(s, &err) < 0)
		rules_fail(&s->rules, "the cluster does not start", STR_NONE, "%s", err.msg);
	else if (s->story)
		s->story(s);
	else
		work_and_settle(s);
	cluster_done(s);
	return 0;
}

static int make_base(void *arg)
{
	struct simulation *s = arg;
	struct err err = ERR_INIT;

	cluster_init(s);
	int r = server_start(s, &err);
	if (r == 0)
		r = fiber_sleep_ms(BASE_MS, &err);
	if (r < 0)
		rules_fail(&s->rules, "the cluster does not start", STR_NONE, "%s", err.msg);
	cluster_done(s);
	return 0;
}

static void run_loop(struct simulation *s, int (*fn)(void *arg), const struct memory_store *like)
{
	struct err err = ERR_INIT;

	random_seed(s->seed);
	clock_virtual_set(begin_ns, wall_ns);
	s->dice.state = s->seed;
	s->store = memory_store_new(&(struct memory_store_options){ .fate = fate, .written = written, .arg = s }, like);
	if ((!loop && loop_new("simulation", &loop, &err) < 0) || loop_run(loop, fn, s, &err) < 0)
		rules_fail(&s->rules, "no loop", STR_NONE, "%s", err.msg);
	clock_virtual_off();
	random_unseed();
}

static struct simulation *sim_new(uint64_t seed, bool verbose)
{
	struct simulation *s = mem_zalloc(sizeof *s);

	s->seed = seed;
	history_init(&s->history, verbose);
	rules_init(&s->rules, &s->history);
	return s;
}

static void sim_free(struct simulation *s)
{
	memory_store_free(s->store);
	rules_done(&s->rules);
	history_done(&s->history);
	free(s);
}

static void run(struct simulation *s, struct sim_result *ret, struct buf *out)
{
	if (!base) {
		struct simulation *first = sim_new(0, false);
		run_loop(first, make_base, NULL);
		base = TAKE(first->store);
		sim_free(first);
	}
	run_loop(s, run_seed, base);
	*ret = (struct sim_result){ .sum = s->history.sum, .writes = s->history.writes, .failed = s->rules.failed };
	if (s->rules.failed)
		buf_add(out, buf_str(&s->rules.text));
	sim_free(s);
}

void simulate(const struct sim_options *o, struct sim_result *ret, struct buf *out)
{
	struct simulation *s = sim_new(o->seed, o->verbose);

	log_set_level(o->verbose ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR);
	s->calm = o->calm;
	run(s, ret, out);
}

void simulate_story(void (*story)(struct simulation *s), struct sim_result *ret, struct buf *out)
{
	struct simulation *s = sim_new(1, false);

	log_set_level(LOG_LEVEL_ERROR);
	s->story = story;
	run(s, ret, out);
}

void simulate_done(void)
{
	memory_store_free(TAKE(base));
	loop_free(TAKE(loop));
}
