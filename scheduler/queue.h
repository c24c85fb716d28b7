/* queue: pods that wait for a node: active (by priority, then age), back-off, unschedulable, gated. Pure but for the clock. */
#ifndef C8S_SCHEDULER_QUEUE_H
#define C8S_SCHEDULER_QUEUE_H

#include "codec/val.h"

struct sched_queue;

struct queued {                     /* one pod */
	struct frozen *pod;
	unsigned attempts;
	int64_t added_ns, first_ns, backoff_until_ns; /* clock_now_ns */
	uint64_t refused_by;          /* bits of plugins that refused it last */
	bool gated;
	void *link;                   /* the queue's own */
};

struct sched_queue_options {
	int64_t backoff_first_ms, backoff_max_ms; /* 1 s, 10 s */
	bool waits_out_backoff;       /* though nobody else wants to be looked at */
	/* PreEnqueue of all plugins: false: gated. */
	bool (*may_enter)(void *arg, struct val pod);
	int64_t flush_after_ms;       /* how long a pod waits for events at most; 0: five minutes */
	/* The events that may help a pod which these plugins refused at all; NULL: all. */
	unsigned (*events)(void *arg, const struct queued *q);
	/* Whether an event may help a pod that these plugins refused. old and new both VAL_NONE: the objects are not known any more. */
	bool (*helps)(void *arg, struct queued *q, unsigned event, struct val old, struct val new);
	void *arg;
};

struct sched_queue *sched_queue_new(const struct sched_queue_options *o) NONNULL_RESULT;
void sched_queue_free(struct sched_queue *q);
/* A pod without a node is new, or has changed. */
void sched_queue_put(struct sched_queue *q, struct frozen *pod);
void sched_queue_remove(struct sched_queue *q, str uid);
/* (suspends) The next; the caller owns it until it gives it back or frees it. 1, or an error. */
int sched_queue_take(struct sched_queue *q, struct queued **ret, struct err *err);
/* Without waiting; NULL: none. */
struct queued *sched_queue_try(struct sched_queue *q);
/* It could not be placed: to back-off or unschedulable, or, when an event that helps came meanwhile, to back-off. */
void sched_queue_refused(struct sched_queue *q, struct queued *p, uint64_t refused_by);
/* An error: back-off. */
void sched_queue_again(struct sched_queue *q, struct queued *p);
void sched_queue_done(struct sched_queue *q, struct queued *p);
/* Something in the cluster has changed. event: one bit. */
void sched_queue_event(struct sched_queue *q, unsigned event, struct val old, struct val new);
/* Something that plugins hold pods back for at the gate is over; for one pod, if it is there at all. */
void sched_queue_ask_gates(struct sched_queue *q);
void sched_queue_ask_gates_of(struct sched_queue *q, str uid);
/* Every 30 s: those that have waited for five minutes come back. Every second: back-offs that are over. */
void sched_queue_tick(struct sched_queue *q);
size_t sched_queue_length(const struct sched_queue *q, const char *which); /* "active", "backoff", "unschedulable", "gated" */

#endif
