/*
 * reference: what Kubernetes' scheduler says, in the plainest way: loops over objects, nothing kept, nothing fast. For tests that compare the
 * real one with it on random clusters; so nothing here uses the table of nodes or anything that is made from it.
 *
 *	reference.c            one pod: which nodes are asked, the choice, the message
 *	reference_labels.c     selectors of labels and of nodes
 *	reference_nodes.c      what concerns one node alone: taints, node affinity, ports, images
 *	reference_resources.c  requests, NodeResourcesFit, NodeResourcesBalancedAllocation
 *	reference_affinity.c   InterPodAffinity        reference_spread.c  PodTopologySpread
 *	reference_preempt.c    DefaultPreemption       reference_order.c   in which order nodes are asked
 *
 * Volumes, devices, declared features of nodes and extenders are left out: objects here have none. Chance is the caller's (dice), and where
 * Kubernetes goes through a map the order is that of the nodes as they are given.
 */
#ifndef C8S_SCHEDULER_REFERENCE_H
#define C8S_SCHEDULER_REFERENCE_H

#include "codec/val.h"

struct reference_list {
	const struct val *all;
	size_t n;
};

struct reference {
	struct arena *arena;
	struct reference_list nodes;
	struct reference_list pods;         /* those that have a node (spec.nodeName) and are not over */
	struct reference_list waiting;      /* those that wait for a node: status.nominatedNodeName */
	struct reference_list namespaces, services, budgets;
	struct reference_list owners;       /* ReplicaSets, StatefulSets, ReplicationControllers, with apiVersion and kind */
	struct val config;                  /* pluginConfig of a profile; VAL_NONE: Kubernetes' defaults */
	const size_t *order;                /* of nodes, as they are examined; NULL: as they are given */
	int64_t percentage;                 /* of nodes to score; 0: by their number */
	size_t next_start;                  /* where the next look at nodes begins; moved on by reference_schedule */
	uint64_t (*dice)(void *arg, uint64_t n); /* from 0 to n - 1 */
	void *arg;
};

struct reference_verdict {
	const char *plugin;                 /* the first that refuses; NULL: it fits */
	bool unresolvable;
	str reason;                         /* several are separated by '\n' */
};

/* All filters for a pod and a node, with the pods that wait for the node there and without them. */
struct reference_verdict reference_filter(const struct reference *r, struct val pod, size_t node);

/* The plugins that score, in Kubernetes' order, with their weights; ended by NULL. */
extern const struct reference_weight { const char *plugin; int64_t weight; } reference_weights[];
/*
 * The scores of one plugin for nodes that fit, normalised and not weighted. False: the plugin has nothing to say about this pod (all are 0).
 */
bool reference_score(const struct reference *r, const char *plugin, struct val pod, const size_t *nodes, size_t n, int64_t *scores);

struct reference_outcome {
	bool found;
	size_t node;                        /* where it goes, or where room is made for it */
	str message;                        /* of FailedScheduling */
	bool nominates, preempts;           /* its nomination changes: to a node (preempts), or to none */
	struct val victims;                 /* pods, the most important first */
};

struct reference_outcome reference_schedule(struct reference *r, struct val pod);

/*
 * Nodes by zone, as Kubernetes' cache has them: zones in the order they came, nodes in a zone as well, and all of them listed with one of each
 * zone in turn. Nodes are numbers of the caller. (Kubernetes makes its list anew only when a node comes or goes, so that one whose zone changes
 * keeps its place until then. That is not meant, and not done here.)
 */
enum { REFERENCE_TREE_MAX = 256, REFERENCE_ZONE_MAX = 96 };

struct reference_tree {
	struct reference_zone {
		char name[REFERENCE_ZONE_MAX];
		size_t nodes[REFERENCE_TREE_MAX], n;
	} zones[16];
	size_t n_zones, n;
	bool stale;
	size_t list[REFERENCE_TREE_MAX];
};

void reference_tree_put(struct reference_tree *t, size_t node, struct val object);
void reference_tree_remove(struct reference_tree *t, size_t node);
/* t->n of them. */
const size_t *reference_tree_list(struct reference_tree *t);

/* ---- between the files ---- */

/* What if some pods were not there, and some others were on one node? All zero: as it is. */
struct reference_if {
	const bool *away;                   /* by pod; NULL: all are there */
	struct reference_list come;         /* to this node */
	size_t to;
};

/* Pods that are there, one after another, and the node that they are on (SIZE_MAX: not one of ours). *at begins with 0. */
bool reference_next_pod(const struct reference *r, const struct reference_if *w, size_t *at, struct val *ret_pod, size_t *ret_node);
struct val reference_args(const struct reference *r, const char *plugin);
int64_t reference_priority(struct val pod);
/* All filters as it is or would be, if nobody waited. */
struct reference_verdict reference_filter_if(const struct reference *r, const struct reference_if *w, struct val pod, size_t node);
/* The same with those that wait for the node. */
struct reference_verdict reference_filter_both(const struct reference *r, const struct reference_if *w, struct val pod, size_t node);
/* "0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods." Verdicts by node; `absent` is the reason of those that were not asked. */
str reference_fit_error(const struct reference *r, const struct reference_verdict *verdicts, const bool *asked, str absent);

/* ---- labels ---- */

struct val reference_label(struct val object, str key); /* VAL_NONE: it has none */
/* A LabelSelector; VAL_NONE selects nothing. */
bool reference_selects(struct val selector, struct val labels);
bool reference_selects_all(struct val selector);
/* A NodeSelectorTerm. */
bool reference_term_matches(struct val term, struct val node);
/* One of the terms of a NodeSelector. */
bool reference_terms_match(struct val node_selector, struct val node);
/* spec.nodeSelector and required node affinity of a pod. */
bool reference_node_affinity(struct val pod, struct val node);

/* ---- plugins; *ret is left alone when it fits ---- */

bool reference_tolerates(struct val pod, str key, str value, str effect);
/* No taint keeps the pod away. */
bool reference_taints(struct val pod, struct val node);
/* Names that node affinity narrows to: false when it does not. */
bool reference_narrows(const struct reference *r, struct val pod, struct val *ret_names);
bool reference_ports_free(const struct reference *r, const struct reference_if *w, struct val pod, size_t node);
int64_t reference_taint_score(struct val pod, struct val node);
int64_t reference_node_affinity_score(const struct reference *r, struct val pod, struct val node);
bool reference_prefers_nodes(const struct reference *r, struct val pod);
int64_t reference_image_score(const struct reference *r, struct val pod, size_t node);
void reference_fit(const struct reference *r, const struct reference_if *w, struct val pod, size_t node, struct reference_verdict *ret);
int64_t reference_fit_score(const struct reference *r, struct val pod, size_t node);
bool reference_balances(const struct reference *r, struct val pod); /* it asks for something that is balanced */
int64_t reference_balance_score(const struct reference *r, struct val pod, size_t node);
void reference_spread_filter(const struct reference *r, const struct reference_if *w, struct val pod, size_t node, struct reference_verdict *ret);
bool reference_spread_score(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores);
void reference_affinity_filter(const struct reference *r, const struct reference_if *w, struct val pod, size_t node,
			       struct reference_verdict *ret);
bool reference_affinity_score(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores);

/* No node fits: who has to go. Fills what is told of it; the text. */
str reference_preempt(struct reference *r, struct val pod, const struct reference_verdict *verdicts, const bool *asked,
		      struct reference_outcome *ret);

#endif
