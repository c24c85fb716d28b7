/*
 * cycle: one pod looks for a node: PreFilter, Filter, PostFilter when nothing fits, PreScore, Score, choice. What is asked of whom is the
 * profile's matter (plugins.c).
 */
#ifndef C8S_SCHEDULER_CYCLE_H
#define C8S_SCHEDULER_CYCLE_H

#include "scheduler/plugin.h"

struct recorder;
struct scheduler;

enum { PLUGINS_MAX = 40, EXTENDER_BIT = 63 };

enum point {
	POINT_PRE_ENQUEUE, POINT_QUEUE_SORT, POINT_PRE_FILTER, POINT_FILTER, POINT_POST_FILTER, POINT_PRE_SCORE, POINT_SCORE, POINT_RESERVE,
	POINT_PERMIT, POINT_PRE_BIND, POINT_BIND, POINT_POST_BIND, POINT_MAX,
};

/* Plugins under one scheduler name. A plugin's index is its place in plugins. */
struct profile {
	str name;
	const struct plugin *plugins[PLUGINS_MAX];
	void *config[PLUGINS_MAX];          /* what configure made of the arguments */
	int64_t weight[PLUGINS_MAX];
	size_t n;
	uint8_t order[POINT_MAX][PLUGINS_MAX]; /* indexes, as they are asked */
	uint8_t n_order[POINT_MAX];
	int percentage;                     /* percentageOfNodesToScore; -1: the scheduler's */
	struct recorder *recorder;          /* events have the profile's name as their source */
};

/* How often what happened, for metrics. */
struct sched_counts {
	uint64_t scheduled, unschedulable, errors;
	uint64_t preemption_attempts;
	int64_t last_ns, total_ns;          /* from the beginning of cycles to bindings */
};

enum cycle_outcome {
	CYCLE_FOUND,
	CYCLE_REFUSED,                      /* by plugins: the pod waits for events */
	CYCLE_ERROR,                        /* or there are no nodes: it is tried again after a while */
};

struct cycle_result {
	enum cycle_outcome outcome;
	bool unschedulable;                 /* the condition's reason: Unschedulable, else SchedulerError */
	uint32_t node;                      /* CYCLE_FOUND */
	uint32_t evaluated, feasible;
	str message;                        /* of FailedScheduling; in the cycle's arena */
	uint64_t refused_by;                /* bits of plugins by their indexes; EXTENDER_BIT */
	/* What becomes of the nomination. */
	enum { NOMINATION_KEEP, NOMINATION_SET } nomination;
	str nominated;                      /* NOMINATION_SET: a node, or empty */
};

/* (suspends only for extenders and post_filter) c has scheduler, nodes, arena, pod and placed; the rest is made here. */
void cycle_run(struct cycle *c, struct profile *p, struct cycle_result *ret);
/* Reserve of all plugins for the node; unreserves what was reserved and says why when one refuses. The pod is assumed to be there. */
bool cycle_reserve(struct cycle *c, struct profile *p, uint32_t node, struct cycle_result *ret);
void cycle_unreserve(struct cycle *c, struct profile *p, uint32_t node);

/* ---- parts, for why.c and preempt.c ---- */

/* Fills c->state, c->config. */
void cycle_init(struct cycle *c, struct profile *p);
/*
 * All PreFilter plugins. FIT, or the verdict with c->reason and *ret_plugin (index; -1: several together). *ret_asked: bits of
 * plugins whose pre_filter was asked; c->skip: of those whose filter need not be. c->only is the intersection; *ret_narrowed: who narrowed.
 */
enum verdict cycle_pre_filter(struct cycle *c, struct profile *p, int *ret_plugin, uint64_t *ret_asked, uint64_t *ret_narrowed);
/* All Filter plugins for a node, with pods that are nominated to it and without. *ret_plugin: who refused. */
enum verdict cycle_filter(struct cycle *c, struct profile *p, uint32_t node, int *ret_plugin);
/* The same as the table is now, nominations apart: for preemption, which changes the table itself. */
enum verdict cycle_filter_plain(struct cycle *c, struct profile *p, uint32_t node, int *ret_plugin);
/* One after another: each plugin's scores for the nodes are told, already times its weight. May be NULL. */
typedef void cycle_told(void *arg, const struct plugin *plugin, int64_t weight, const int64_t *scores, size_t n);
/* Totals by node. Without any plugin that scores: 1 for each. */
void cycle_score(struct cycle *c, struct profile *p, const uint32_t *nodes, size_t n, int64_t *totals, cycle_told *told, void *arg);
/* How many nodes that fit are enough, of so many. */
uint32_t nodes_to_find(uint32_t n, int percentage);
/* cycle_filter as if pods that ask for this much had left the node; only if c->by_sums. */
enum verdict cycle_filter_without(struct cycle *c, struct profile *p, uint32_t node, const struct res *gone, int *ret_plugin);
/* As RunPreFilterAddPod and RemovePod: the states of all plugins as if the pod were (not) on the node. The table is the caller's matter. */
void cycle_add_pod(struct cycle *c, struct profile *p, const struct placed *pod, uint32_t node);
void cycle_remove_pod(struct cycle *c, struct profile *p, const struct placed *pod, uint32_t node);

#endif
