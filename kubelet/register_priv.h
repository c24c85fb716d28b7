/* Between the files that keep the Node object: register.c, register_node.c, lease.c; and what the shutdown of the machine tells about it. */
#ifndef C8S_KUBELET_REGISTER_PRIV_H
#define C8S_KUBELET_REGISTER_PRIV_H

#include "base/fiber.h"
#include "client/informer.h"
#include "kubelet/register.h"

/* Texts of kubelet_node's allocatable are borrowed by many: so many of the earlier ones stay. */
enum { NODE_ALLOCATABLE_KEPT = 64 };

struct node_keeper {
	struct node_keeper_options o;
	struct val config;            /* KubeletConfiguration */
	struct informers *informers;
	struct informer_listener listener;
	struct frozen *seen;          /* as last seen in the API; NULL: not yet */
	struct frozen *initial;       /* as it is registered; NULL: not made yet */
	struct frozen *allocatable[NODE_ALLOCATABLE_KEPT];
	size_t n_allocatable;         /* ever */
	struct fiber_cond wake;
	bool hurry;
	bool registered;
	bool told_initial;            /* events about the conditions at the start */
	bool unschedulable;           /* as last told */
	bool reported;                /* since this kubelet has started */
	int64_t reported_ns, delay_ns;
	str cidr;                     /* spec.podCIDRs as last told; in the arena */
	struct arena arena;
};

/* ---- register.c ---- */

/* Takes the reference over, unless what is known already is newer. */
void node_keeper_see(struct node_keeper *n, struct frozen *node);
/*
 * (suspends) The status that belongs to the node now. before: the Node as it is in the API, VAL_NONE: it is new. ret_facts: what it is made
 * from; its texts are in the arena.
 */
int node_keeper_status(struct node_keeper *n, struct arena *a, struct val before, struct node_facts *ret_facts, struct val *ret, struct err *err);
/* What has become of the conditions; before: a status, VAL_NONE: the node is new. */
void node_keeper_tell(struct node_keeper *n, struct arena *a, struct val before, struct val after);
/* (suspends) Brings labels, annotations and status of the node in the API from before to after. */
int node_keeper_patch(struct node_keeper *n, struct arena *a, struct val before, struct val after, struct err *err);
/* How long a call may take: no longer than until the next one is due. */
int64_t node_keeper_timeout_ms(const struct node_keeper *n);

/* ---- register_node.c ---- */

/* (suspends) Makes the object, or takes over the one that is there. Once; the caller tries again. */
int node_keeper_register(struct node_keeper *n, struct err *err);
/* What a node that exists becomes when the kubelet comes (back) to it: labels, annotation, resources. reset: devices are not known any more. */
struct val node_reconcile(struct arena *a, struct val initial, struct val existing, bool reset);

/* ---- lease.c ---- */

/* (suspends, until canceled) */
int node_lease_run(struct node_keeper *n, struct err *err);

/* ---- events ---- */

/* What events about a node refer to. */
struct val node_reference(struct arena *a, str name);

#endif
