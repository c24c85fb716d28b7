/*
 * nominations: pods that wait for a node which is being made free for them. They count on it when pods of lower or the same priority look for
 * a place.
 */
#ifndef C8S_SCHEDULER_NOMINATIONS_H
#define C8S_SCHEDULER_NOMINATIONS_H

#include "scheduler/nodes.h"

struct nominated {
	struct nominated *next;             /* of the same node */
	struct placed *placed;              /* not in the table */
	str uid, node;                      /* in placed->pod, and behind this struct */
	uint32_t index;                     /* of the node; UINT32_MAX: not known */
};

/* All pods that wait for one node. */
struct nominated_sum {
	int32_t least;                      /* priority */
	int64_t v[RES_FIXED];               /* what they ask for, extended resources apart */
};

struct nominations {
	struct nodes *nodes;
	struct map by_uid;
	struct nominated **heads;           /* by node; NULL where there are none */
	struct nominated_sum *sums;         /* by node; where there are some */
	uint32_t cap;
	size_t n_lost;                      /* of nodes that are not known */
};

void nominations_init(struct nominations *t, struct nodes *nodes);
void nominations_done(struct nominations *t);
/* The pod (which may be there already) is for this node; an empty name: for none. */
void nominations_set(struct nominations *t, struct frozen *pod, str node);
/* The pod has changed: as its status says, or as before if neither old nor new status says anything. */
void nominations_update(struct nominations *t, struct frozen *old, struct frozen *pod);
void nominations_remove(struct nominations *t, str uid);
/* A node has come (or is there again), or is about to go. */
void nominations_node_added(struct nominations *t, str name, uint32_t index);
void nominations_node_removed(struct nominations *t, uint32_t index);
/* The node that the pod waits for; UINT32_MAX: none that is known. */
uint32_t nominations_node_of(const struct nominations *t, str uid);
/* Name of the node; empty: none. */
str nominations_of(const struct nominations *t, str uid);

/* The first of a node; NULL: none. */
static inline struct nominated *nominations_at(const struct nominations *t, uint32_t node)
{
	return node < t->cap ? t->heads[node] : NULL;
}

#endif
