/*
 * scheduler/: which node a pod runs on. Queue, filters, scores, binding; one file per plugin.
 *
 *	nodes.h        the table of nodes: arrays, updated in place by events; what pods on them use
 *	queue.h        pods that wait: active, back-off, unschedulable, gated
 *	plugin.h       what a plugin is; plugins.c: the table of all
 *	cycle.c        one pod: PreFilter to Reserve; bind.c: Permit to PostBind, on fibers; failure.c: what is told when nothing fits
 *	events.c       what informers tell, to the table and the queue; changes.c: what a change may mean
 *	nominations.h  pods that wait for a node which is being made free for them
 *	preempt.c      who has to go
 *	classes.h      what nodes said to pods like this one, so that only those that have changed are asked again
 *	config.c       KubeSchedulerConfiguration: profiles, weights, arguments; extenders.c
 *	why.c          c8s why POD
 *
 * A pod costs O(nodes examined) and allocates nothing per node. With a seed everything is deterministic.
 */
#ifndef C8S_SCHEDULER_SCHEDULER_H
#define C8S_SCHEDULER_SCHEDULER_H

#include "base/buf.h"
#include "client/client.h"
#include "client/informer.h"

struct scheduler;

struct scheduler_options {
	struct client *client;
	struct informers *informers;        /* may be shared with others */
	struct frozen *config;              /* KubeSchedulerConfiguration, complete (scheduler_config_load) */
	uint64_t seed;                      /* 0: by chance */
	int64_t unschedulable_max_ms;       /* how long a pod waits for events at most; 0: five minutes */
	struct val gates;                   /* feature gates that somebody has set (machinery/gates.h), copied; VAL_EMPTY: none */
};

/* -ERR_INVALID for what only shows when plugins are put together. Registers its informers; start them afterwards. */
int scheduler_new(const struct scheduler_options *o, struct scheduler **ret, struct err *err);
void scheduler_free(struct scheduler *s); /* (suspends) NULL is fine */
/* (suspends, until canceled) Informers must have been started. */
int scheduler_run(struct scheduler *s, struct err *err);
/*
 * Reads --config (NULL: defaults), completes it, lays `flags` (members of KubeSchedulerConfiguration that flags say; VAL_NONE: none) over it and
 * checks it, with Kubernetes' messages. Blocks.
 */
int scheduler_config_load(const char *path, struct val flags, struct frozen **ret, struct err *err);
/* In the text form of Prometheus. */
void scheduler_metrics(const struct scheduler *s, struct buf *out);
/* (suspends) For `c8s why`: each node with the plugin that said no and why, or its scores by plugin. In the arena. */
struct val scheduler_why(struct scheduler *s, struct arena *a, struct val pod);

#endif
