/* What the files of scheduler/ share; plugins get at informers and pods through it. */
#ifndef C8S_SCHEDULER_SCHEDULER_PRIV_H
#define C8S_SCHEDULER_SCHEDULER_PRIV_H

#include "base/fiber.h"
#include "client/recorder.h"
#include "scheduler/classes.h"
#include "scheduler/cycle.h"
#include "scheduler/nominations.h"
#include "scheduler/queue.h"
#include "scheduler/scheduler.h"

struct counters;
struct devices;
struct extender;
struct storage;

enum { KINDS_MAX = 16 };

typedef void kind_count(struct counters *c, struct val old, struct val new);

/* A kind that is listened to besides nodes and pods: what changes of it may mean for pods that wait. */
struct kind_listener {
	struct informer_listener listener;
	struct scheduler *scheduler;
	unsigned event;
	bool tells;                         /* hints understand these objects */
	kind_count *count;                  /* who counts them; NULL: nobody */
};

struct scheduler {
	struct client *client;
	struct informers *informers;
	struct frozen *config, *gates;
	struct nodes nodes;
	struct map pods;                    /* uid -> struct placed: on nodes, assumed ones among them */
	struct map homeless;                /* name of a node that is not known -> struct homeless */
	struct nominations nominations;
	struct classes classes;
	struct storage *storage;
	struct devices *devices;
	struct sched_queue *queue;
	struct profile *profiles;
	size_t n_profiles;
	struct extender **extenders;
	size_t n_extenders;
	uint64_t dice[2];                   /* the sequence that chance is taken from */
	uint32_t next_start;                /* where the next look at nodes begins, in nodes.order */
	/* Room for one look at the nodes; grows with the table. */
	uint32_t *found;
	int64_t *scores, *totals;
	uint8_t *verdicts;
	uint32_t room;
	/* Attempts that are not over, by uid; spare ones keep their memory. */
	struct map attempts;
	struct attempt *spare;
	bool expects_nodes;                 /* gate NominatedNodeNameForExpectation */
	bool preempts_at_once;              /* in the cycle: gate SchedulerAsyncPreemption is off */
	struct fiber_group work;            /* bindings, and what is told to the API server */
	struct fiber_cond less_work;
	/* One looks for a node, or asks why. Events are kept back meanwhile if it waits for others: what it has seen of the table stays true. */
	bool busy;
	struct fiber_cond idle;
	struct list deferred;
	struct informer *node_informer, *pod_informer;
	struct informer_listener node_listener, pod_listener;
	struct kind_listener kinds[KINDS_MAX];
	size_t n_kinds;
	struct sched_counts counts;
};

/* A feature gate; s may be NULL: as Kubernetes has it. */
bool scheduler_gate(const struct scheduler *s, const char *name);
/* The one of a pod's spec.schedulerName; NULL: not ours. */
struct profile *scheduler_profile(struct scheduler *s, struct val pod);
/* An informer of all objects of a kind; before scheduler_run. */
struct informer *scheduler_informer(struct scheduler *s, const struct type *type) NONNULL_RESULT;
/* From the scheduler's own sequence: 0 to n - 1. */
uint64_t scheduler_dice(struct scheduler *s, uint64_t n);
void scheduler_make_room(struct scheduler *s);

/* ---- events.c ---- */

void scheduler_listen(struct scheduler *s);
void scheduler_unlisten(struct scheduler *s);
/* Tells what was kept back, in its order. */
void scheduler_release_events(struct scheduler *s);
void scheduler_drop_events(struct scheduler *s);
/* The pod leaves the table; p is freed unless an attempt still has it. */
void scheduler_forget_pod(struct scheduler *s, struct placed *p);
/* Pods that wait may fit now, as this one has left the node; it need not have been bound to it. */
void scheduler_tell_left(struct scheduler *s, struct val pod, str node);

/* ---- bind.c ---- */

/* A pod on its way, from the queue until it is bound or given back. */
struct attempt {
	struct attempt *next;               /* of spare ones */
	struct arena arena;
	struct cycle cycle;
	struct profile *profile;
	struct queued *queued;
	struct frozen *pod;                 /* referenced */
	str uid;                            /* in pod */
	uint32_t node;
	str node_name;                      /* in arena */
	bool detached;                      /* cycle.placed is not in the table any more, and ours to free */
	bool expected;                      /* the server was told the node before the binding */
	struct fiber *pre_binding;          /* that runs PreBind; NULL: it does not run */
	bool preempted;                     /* while it ran */
	int64_t begin_ns;
};

/* Takes over the queued pod. */
struct attempt *attempt_new(struct scheduler *s, struct profile *p, struct queued *q) NONNULL_RESULT;
void attempt_free(struct scheduler *s, struct attempt *a);
/* The node is a->node: the pod counts there from now on. */
void attempt_assume(struct scheduler *s, struct attempt *a);
/* Plugins give back what they reserved, and the pod leaves the node. */
void attempt_forget(struct scheduler *s, struct attempt *a);
/* (suspends when there is much to do) Permit to PostBind, on a fiber; a is gone afterwards. */
int attempt_bind(struct scheduler *s, struct attempt *a, struct err *err);
/* A pod in PreBind gives its node back, for which no call is needed. False: it is elsewhere. */
bool attempt_preempt(struct scheduler *s, str uid);
/* (suspends) Waits until so little is at work that one more fiber may be made. */
int scheduler_wait_for_room(struct scheduler *s, struct err *err);

/* ---- failure.c ---- */

/* As events refer to it; in the arena. */
struct val pod_reference(struct arena *a, struct val pod);
/* The attempt did not find a node, or lost it: requeues the pod, tells, and ends the attempt. */
void attempt_failed(struct scheduler *s, struct attempt *a, const struct cycle_result *r);

#endif
