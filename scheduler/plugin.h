/*
 * plugin: what the framework of Kubernetes calls a plugin, for arrays: per pod a state is made once (PreFilter, PreScore), and the questions
 * about nodes read that state and the table only. No question suspends or allocates but those that say so; looking for devices may take long and
 * lets others have their turn meanwhile, but the table and what was borrowed stay as they are (scheduler.busy).
 */
#ifndef C8S_SCHEDULER_PLUGIN_H
#define C8S_SCHEDULER_PLUGIN_H

#include "scheduler/nodes.h"

struct cycle;
struct pod_class; /* classes.h */

enum verdict { FIT, UNSCHEDULABLE, UNRESOLVABLE /* preemption cannot help */, FAILED };

/* What moves pods that were refused by a plugin back into the queue. */
enum { EV_NODE_ADD = 1, EV_NODE_ALLOCATABLE = 2, EV_NODE_LABEL = 4, EV_NODE_TAINT = 8, EV_NODE_CONDITION = 16, EV_POD_ADD = 32, EV_POD_DELETE = 64,
       EV_POD_LABEL = 128, EV_POD_SCALE_DOWN = 256, EV_PVC = 512, EV_PV = 1024, EV_STORAGE_CLASS = 2048, EV_CSI_NODE = 4096, EV_CLAIM = 8192,
       EV_POD_TOLERATION = 16384, EV_POD_GATES = 32768, EV_NODE_DELETE = 65536,
       EV_NODE_FEATURES = 131072, EV_DEVICE_CLASS = 262144, EV_RESOURCE_SLICE = 524288 };

#define NODE_NONE UINT32_MAX
#define NODE_KEEP (UINT32_MAX - 1)

struct plugin {
	const char *name;
	unsigned weight;              /* of its scores, by default */
	unsigned events;              /* that may help pods it refused */
	/* Queueing hint: whether this event (old, new: objects, may be NONE) may help the pod; NULL: always. */
	bool (*hint)(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new);
	/* PreEnqueue: whether the pod may enter the queue at all; else UNRESOLVABLE with c->reason. Of c only scheduler, pod, arena, config, at,
	 * storage and devices are there. */
	enum verdict (*pre_enqueue)(struct cycle *c);
	/* ---- per pod; state is in c->arena, at c->state[plugin's index]. *skip: its filter need not be asked. ---- */
	enum verdict (*pre_filter)(struct cycle *c, void **ret_state, bool *ret_skip);
	/* Reason texts are constants or in c->arena: c->reason. Asked again with pods added and removed for preemption (below). */
	enum verdict (*filter)(struct cycle *c, void *state, uint32_t node);
	/* The filter's answer does not depend on the pods that are on the node. */
	bool by_node_alone;
	/* The filter as if pods that ask for this much had left the node, where their requests are all it wants to know of them; NULL: it is not. */
	enum verdict (*filter_without)(struct cycle *c, void *state, uint32_t node, const struct res *gone);
	/* Preemption: the state as if the pod were (not) on the node. */
	void (*add_pod)(struct cycle *c, void *state, const struct placed *p, uint32_t node);
	void (*remove_pod)(struct cycle *c, void *state, const struct placed *p, uint32_t node);
	bool (*pre_score)(struct cycle *c, void **ret_state, const uint32_t *nodes, size_t n); /* false: skip */
	/* For all nodes that fit at once: scores[i] of nodes[i]; normalised to 0..100 by itself. */
	void (*score)(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores);
	/* ---- the chosen node ---- */
	enum verdict (*reserve)(struct cycle *c, uint32_t node);
	void (*unreserve)(struct cycle *c, uint32_t node);
	/* (suspends) */
	int (*pre_bind)(struct cycle *c, uint32_t node, struct err *err);
	/* PreBindPreFlight: pre_bind has something to do for the pod, which may take its time. */
	bool (*pre_bind_works)(const struct cycle *c);
	/* Arguments of the profile have been read: checks them. args: its pluginConfig. May be NULL. */
	int (*configure)(struct val args, void **ret_config, struct err *err);
	void (*config_free)(void *config); /* NULL: free() */
	/*
	 * (suspends) No node fits; cycle_verdict tells of each. FIT: room was or is being made; UNSCHEDULABLE: no help here, the next plugin is asked;
	 * UNRESOLVABLE, FAILED: nobody else is. *ret_node is NODE_KEEP: the nomination stays as it is; NODE_NONE: taken back; else the node that is
	 * nominated. c->reason says what was found. made: this plugin's pre_filter was asked for the pod.
	 */
	enum verdict (*post_filter)(struct cycle *c, void *state, bool made, uint32_t *ret_node);
};

/* One pod on its way. */
struct cycle {
	struct scheduler *scheduler;
	struct nodes *nodes;
	struct arena *arena;
	struct val pod;               /* core/v1.Pod */
	struct placed *placed;        /* the same as the table has it, not placed */
	void **state;                 /* by index of plugin in the profile */
	void *const *config;          /* of plugins, by index */
	unsigned at;                  /* index of the plugin that is being asked: set by those who call its functions */
	str reason;                   /* of the last refusal: "node(s) had untolerated taint(s)"; several are separated by '\n' */
	const uint8_t *verdicts;      /* enum verdict by node, for post_filter, which asks cycle_verdict */
	bool by_class;                /* the class has them */
	bool unnominate;              /* set by a post_filter that is UNSCHEDULABLE: no node is worth waiting for, the pod's nomination ends */
	uint64_t skip;                /* bits of plugins whose filter need not be asked */
	uint32_t nominated_to;        /* the node that it waits for itself; NODE_NONE: none */
	struct pod_class *class;      /* what nodes said to pods like this one; NULL: nothing is known */
	bool only_fixed;              /* it asks for no extended resource */
	bool by_sums;                 /* what its filters want to know of the pods on a node is only the sum of their requests; known after PreFilter */
	/* Nodes that pre_filter narrows to (names that match); NULL: all. */
	const uint32_t *only;
	size_t n_only;
	struct storage *storage;      /* claims, volumes, classes: storage.h */
	struct devices *devices;      /* resource claims, slices, device classes: devices.h */
};

extern const struct plugin plugin_scheduling_gates, plugin_priority_sort, plugin_node_unschedulable, plugin_node_name, plugin_taint_toleration,
	plugin_node_affinity, plugin_node_ports, plugin_node_resources_fit, plugin_balanced_allocation, plugin_volume_restrictions,
	plugin_node_volume_limits, plugin_volume_binding, plugin_volume_zone, plugin_pod_topology_spread, plugin_inter_pod_affinity,
	plugin_image_locality, plugin_dynamic_resources, plugin_default_preemption, plugin_default_binder,
	plugin_node_declared_features;

#endif
