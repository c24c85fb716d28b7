/*
 * tolerations: which taints of nodes a pod puts up with. Compiled once per pod over the words of the table; good until the table changes. The
 * operators Lt and Gt are an alpha feature of Kubernetes that is off: such tolerations tolerate nothing.
 */
#ifndef C8S_SCHEDULER_TOLERATIONS_H
#define C8S_SCHEDULER_TOLERATIONS_H

#include "scheduler/nodes.h"

struct toleration {
	word key, value;        /* key 0: every key; value 0: every value */
	uint8_t effect;         /* TAINT_EFFECTS: every effect */
};

struct tolerations {
	size_t n;
	const struct toleration *all;
};

/* TAINT_NO_SCHEDULE, ...; TAINT_EFFECTS for none of them. */
unsigned taint_effect(str name);

/* In the arena; those that can match no taint of the table are left out. */
struct tolerations tolerations_compile(struct arena *a, const struct nodes *t, struct val list);
bool tolerations_cover(const struct tolerations *all, const struct taint *taint);
/* Whether the node has a taint (NoSchedule or NoExecute) that keeps the pod away. */
static inline bool node_is_tainted(const struct nodes *t, uint32_t node, const struct tolerations *all)
{
	for (uint32_t i = 0; i < t->n_taints[node]; i++)
		if (t->taints[node][i].effect != TAINT_PREFER_NO_SCHEDULE && !tolerations_cover(all, &t->taints[node][i]))
			return true;
	return false;
}

/* The same questions for objects: a list of tolerations against one taint, and against the taints of a Node. */
bool tolerations_allow(struct val tolerations, str key, str value, unsigned effect);
bool node_object_is_tainted(struct val node, struct val tolerations);

#endif
