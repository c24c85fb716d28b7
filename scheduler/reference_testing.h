/*
 * reference: what the scheduler's default filters and scores say, in the plainest way: loops over objects, nothing kept, nothing fast. For tests
 * that compare the real ones with it on random clusters; so nothing here uses the table of nodes or anything made from it.
 */
#ifndef C8S_SCHEDULER_REFERENCE_TESTING_H
#define C8S_SCHEDULER_REFERENCE_TESTING_H

#include "codec/val.h"

struct reference {
	struct arena *arena;
	const struct val *nodes, *pods;     /* pods: those that have a node (spec.nodeName) and are not over */
	size_t n_nodes, n_pods;
	const struct val *namespaces, *services;
	size_t n_namespaces, n_services;
	const struct val *owners;           /* ReplicaSets, StatefulSets, ReplicationControllers, with apiVersion and kind */
	size_t n_owners;
	/* Arguments of plugins; all zero: Kubernetes' defaults. */
	bool list_defaulting;               /* of PodTopologySpread: by default_constraints, not by the system's */
	struct val default_constraints;
	int64_t hard_pod_affinity_weight;   /* 0: 1; less than 0: 0 */
	bool ignore_preferred;
};

struct reference_verdict {
	const char *plugin;                 /* the first that refuses; NULL: it fits */
	bool unresolvable;
	str reason;                         /* several are separated by '\n', sorted */
};

/* All filters for a pod and a node. */
struct reference_verdict reference_filter(const struct reference *r, struct val pod, size_t node);
/*
 * The scores of one plugin ("NodeResourcesFit", ...) for nodes that fit, normalised and not weighted. False: the plugin has nothing to say
 * about this pod (all are 0).
 */
bool reference_score(const struct reference *r, const char *plugin, struct val pod, const size_t *nodes, size_t n, int64_t *scores);
/* The sums over all plugins with Kubernetes' weights. */
void reference_total(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores);

/* ---- between the two files ---- */

bool reference_is_on(const struct reference *r, struct val pod, size_t node);
/* spec.nodeSelector and required node affinity. */
bool reference_node_affinity(const struct reference *r, struct val pod, struct val node);
/* No taint that keeps the pod away. */
bool reference_taints(struct val pod, struct val node);
/* *ret is left alone when it fits. */
void reference_spread_filter(const struct reference *r, struct val pod, size_t node, struct reference_verdict *ret);
void reference_affinity_filter(const struct reference *r, struct val pod, size_t node, struct reference_verdict *ret);
bool reference_spread_score(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores);
bool reference_affinity_score(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores);

#endif
