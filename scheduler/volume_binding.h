/*
 * volume_binding: which nodes can use the volumes of a pod, and which volumes its claims get.
 *
 * Claims that have a volume allow the nodes that the volume's affinity allows. Claims of classes with WaitForFirstConsumer get the smallest
 * volume that fits and that the node can use; or, when there is none and the class has a provisioner, one is made: the scheduler writes the
 * node's name into an annotation of the claim, and waits. The plugin (plugin_volume_binding) reads struct storage of the cycle. While it waits in
 * pre_bind, the fiber is to be canceled when the pod goes.
 */
#ifndef C8S_SCHEDULER_VOLUME_BINDING_H
#define C8S_SCHEDULER_VOLUME_BINDING_H

#include "codec/quantity.h"
#include "machinery/node_selector.h"
#include "scheduler/storage.h"

#define SELECTED_NODE_ANNOTATION "volume.kubernetes.io/selected-node"

enum { BIND_NODE_CONFLICT = 1, BIND_NO_VOLUME = 2, BIND_NO_SPACE = 4, BIND_VOLUME_GONE = 8 }; /* why a node cannot be used */

struct bound_volume {                 /* of a claim that has one */
	bool gone, anywhere;
	struct node_selector nodes;
};

struct bind_candidate {               /* a volume that a claim could get, were it not for the node */
	struct val volume;
	str name;
	struct quantity size;
	bool anywhere;
	struct node_selector nodes;
	str host;                     /* only nodes with this kubernetes.io/hostname; empty: others too */
};

struct waiting_claim {
	struct val claim, class;
	str class_name;
	struct quantity request;
	struct val selected;          /* the node of the annotation; VAL_NONE: not chosen yet */
	bool has_prebound;            /* a volume that names this claim: that one, or none */
	struct bind_candidate prebound;
	const struct bind_candidate *candidates; /* sorted by host, size, name */
	size_t n_candidates;
	bool counted;                 /* space must be known to suffice: */
	const struct selector *space; /* nodes that have enough */
	size_t n_space;
	const struct bind_candidate *chosen; /* by bindings_find; NULL: to be provisioned */
};

struct pod_bindings {
	bool unbound;                 /* a claim should have been bound long ago */
	struct bound_volume *bound;
	size_t n_bound;
	struct waiting_claim *waiting; /* smallest first */
	size_t n_waiting;
};

/* What the pod's claims need, in the arena; objects are borrowed from s. -ERR_INTERNAL with Kubernetes' text. */
int pod_bindings_make(struct arena *a, const struct storage *s, struct val pod, struct pod_bindings *ret, struct err *err);
/*
 * Whether a node with these labels fits: bits of why not in *ret_why, 0: it does, and b->waiting[].chosen say how. Allocates nothing.
 * -ERR_INTERNAL for classes that cannot be asked.
 */
int pod_bindings_find(struct pod_bindings *b, str node, struct val labels, unsigned *ret_why, struct err *err);
/* The volume bound to the claim (spec.claimRef, annotation), in the arena. */
struct val volume_with_claim(struct arena *a, struct val volume, struct val claim);
struct val claim_with_node(struct arena *a, struct val claim, str node);

#endif
