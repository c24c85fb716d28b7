/*
 * classes: most pods are copies of another one, and a node that has not changed since says the same to all of them. What nodes said to the pods
 * of a class is kept by node with its generation (nodes.h). Only pods whose filters want to know nothing of a node but itself and the sums of its
 * pods (by_sums in plugin.h) belong to a class. A few classes are kept, those that were asked for last.
 *
 * Besides, a class has sets of nodes (bits.h), so that a look passes over those that are known not to be of interest 64 at a time: a pod costs what
 * has changed since the last one of its class, and the nodes that it takes. The sets hold places in nodes_order; whoever is not known is among
 * those that have to be looked at.
 *
 * Kubernetes has something like it behind the gate OpportunisticBatching: the next pod of the same kind takes the second best node of the one before.
 * Here nodes are always ranked anew for each pod, and what is kept never changes a decision: the gate is known, and there is nothing to switch.
 */
#ifndef C8S_SCHEDULER_CLASSES_H
#define C8S_SCHEDULER_CLASSES_H

#include "scheduler/bits.h"
#include "scheduler/cycle.h"
#include "scheduler/preempt.h"

enum { CLASSES_MAX = 4, CLASS_REASONS_MAX = 32 };

struct pod_class {
	struct frozen *pod;           /* the first of them; NULL: the place is free */
	const struct profile *profile;
	int32_t priority;
	uint64_t skip;                /* cycle.skip */
	struct res request;
	uint64_t used;
	struct class_answer {
		uint64_t generation;  /* of the node when it was asked; 0: it was not */
		uint8_t verdict, plugin;
		uint16_t reason;
	} *answers;                   /* by node */
	struct class_victims {
		uint64_t generation;
		struct preempt_victims found;
		uint32_t cap;         /* of found.pods, which is its own */
		unsigned reason;      /* why there are none */
	} *victims;                   /* by node; made when somebody asks */
	uint32_t room, victims_room;
	/* Sets. */
	uint64_t *open;               /* fits, or is not known */
	uint64_t *stuck;              /* does not fit, but others might go; where nobody is open */
	uint64_t *offers;             /* has victims, or that is not known */
	uint64_t n_changes, n_orders; /* of the table, which they are up to */
	unsigned n_reasons;
	struct class_reason {
		str text;             /* its own */
		int plugin;           /* whose filter it was; -1: why there are no victims */
		uint32_t n;           /* nodes that are known and say so */
	} reasons[CLASS_REASONS_MAX];
};

struct classes {
	struct pod_class all[CLASSES_MAX];
	uint64_t now;
};

void classes_done(struct classes *t);
/*
 * The class of the pod, after PreFilter; NULL: it has none. Good until the next pod. Its sets are up to date, and the node that the pod itself
 * waits for, to which it is nobody like the others, is not known.
 */
struct pod_class *classes_find(struct classes *t, const struct cycle *c, const struct profile *p);

/* What the node said, if it has not changed since and this pod is nobody special to it. */
static inline const struct class_answer *class_answer(const struct pod_class *k, const struct cycle *c, uint32_t node)
{
	const struct class_answer *a = &k->answers[node];

	return a->generation == c->nodes->generation[node] && node != c->nominated_to ? a : NULL;
}
static inline str class_reason(const struct pod_class *k, const struct class_answer *a)
{
	return a->verdict == FIT ? STR_NONE : k->reasons[a->reason].text;
}
/* False: it stays unknown. */
bool class_learn(struct pod_class *k, const struct cycle *c, uint32_t node, enum verdict v, int plugin);
/* For what the class does not learn: others might go there. Good for this pod only. */
void class_stuck(struct pod_class *k, const struct cycle *c, uint32_t node);

/* What a post_filter may know of a node, when none fits. */
static inline enum verdict cycle_verdict(const struct cycle *c, uint32_t node)
{
	if (!c->by_class)
		return c->verdicts[node];
	return bits_has(c->class->stuck, c->nodes->place[node]) ? UNSCHEDULABLE : UNRESOLVABLE;
}

/* Who would have to go from the node, none if that does not help; NULL: not known. */
const struct preempt_victims *class_victims(const struct pod_class *k, const struct cycle *c, uint32_t node);
/* Why there are none there. */
static inline str class_no_victims(const struct pod_class *k, uint32_t node) { return k->reasons[k->victims[node].reason].text; }
/* c->reason: why there are none. False: it stays unknown. */
bool class_learn_victims(struct pod_class *k, const struct cycle *c, const struct preempt_victims *v);

#endif
