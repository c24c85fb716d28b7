/* node_lifecycle_plan: whether a node lives, what taints follow from its conditions, and what state a zone is in. Pure. */
#ifndef C8S_CONTROLLERS_NODE_LIFECYCLE_PLAN_H
#define C8S_CONTROLLERS_NODE_LIFECYCLE_PLAN_H

#include "codec/val.h"

/* What is known of a node's heartbeat. All zero: nothing yet. */
struct node_health {
	bool known, has_ready;
	int64_t probe_ns;            /* when it was heard of last, as clock_now_ns counts */
	int64_t heartbeat_ns;        /* of its condition Ready, and of its lease, then; times of the node's own clock */
	int64_t renew_ns;
};

struct node_look {
	struct val node, lease;      /* VAL_NONE: it has no lease */
	int64_t now_ns, wall_ns;
	int64_t grace_ns, startup_grace_ns; /* silence that is allowed; of one that never said anything */
};

struct node_verdict {
	struct val conditions;       /* as they have to be written; VAL_NONE: as they are */
	str was, is;                 /* of Ready: what the node says, and what is true: "True", "False", "Unknown"; "": it has none */
};

void node_health_look(struct arena *a, const struct node_look *in, struct node_health *h, struct node_verdict *ret);
/* The conditions of a node that is silent. */
struct val node_conditions_unknown(struct arena *a, struct val node, struct val now);

/* spec.taints with NoSchedule taints for the conditions and for spec.unschedulable; those that have others are left alone. VAL_NONE: as it is. */
struct val node_no_schedule_taints(struct arena *a, struct val node, struct val now);
/* spec.taints with the NoExecute taint that goes with this status of Ready ("True": neither), and without the other one; VAL_NONE: as it is. */
struct val node_no_execute_taints(struct arena *a, struct val node, str ready, struct val now);
/* metadata.labels with the old names of operating system and architecture; VAL_NONE: as it is. */
struct val node_old_labels(struct arena *a, struct val node);
/* Region and zone as one text; "" for nodes without. */
str node_zone(struct arena *a, struct val node);

enum zone_state { ZONE_INITIAL, ZONE_NORMAL, ZONE_PARTIAL, ZONE_FULL };

enum zone_state zone_state(size_t ready, size_t not_ready, double threshold);
/* Nodes per second that get a NoExecute taint; 0: none. */
double zone_rate(enum zone_state state, size_t nodes, double rate, double secondary_rate, size_t large);

#endif
