/*
 * classes: most pods are copies of another one, and a node that has not changed since says the same to all of them. What nodes said to the pods
 * of a class is kept by node with its generation (nodes.h), so that a look at many nodes mostly reads one array. Only pods whose filters want
 * to know nothing of a node but itself and the sums of its pods (by_sums in plugin.h) belong to a class. A few classes are kept, those that were
 * asked for last.
 */
#ifndef C8S_SCHEDULER_CLASSES_H
#define C8S_SCHEDULER_CLASSES_H

#include "scheduler/cycle.h"
#include "scheduler/preempt.h"

enum { CLASSES_MAX = 4, CLASS_REASONS_MAX = 32 };

struct pod_class {
	struct frozen *pod;           /* the first of them; NULL: the place is free */
	const struct profile *profile;
	int32_t priority;
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
	} *victims;                   /* by node; made when somebody asks */
	uint32_t room, victims_room;
	unsigned n_reasons;
	str reasons[CLASS_REASONS_MAX]; /* its own */
};

struct classes {
	struct pod_class all[CLASSES_MAX];
	uint64_t now;
};

void classes_done(struct classes *t);
/* The class of the pod, after PreFilter; NULL: it has none. Good until the next pod. */
struct pod_class *classes_find(struct classes *t, const struct cycle *c, const struct profile *p);

/* What the node said, if it has not changed since and this pod is nobody special to it. */
static inline const struct class_answer *class_answer(const struct pod_class *k, const struct cycle *c, uint32_t node)
{
	const struct class_answer *a = &k->answers[node];

	return a->generation == c->nodes->generation[node] && node != c->nominated_to ? a : NULL;
}
static inline str class_reason(const struct pod_class *k, const struct class_answer *a)
{
	return a->verdict == FIT ? STR_NONE : k->reasons[a->reason];
}
void class_learn(struct pod_class *k, const struct cycle *c, uint32_t node, enum verdict v, int plugin);

/* Who would have to go from the node, none if there is nobody who could; NULL: not known. */
const struct preempt_victims *class_victims(const struct pod_class *k, const struct cycle *c, uint32_t node);
void class_learn_victims(struct pod_class *k, const struct cycle *c, const struct preempt_victims *v);

#endif
