/*
 * node_status: what the Node object says: addresses, capacity, allocatable, conditions, runtime and OS info, images; what is told about
 * its changes, and the Lease that shows that the node is alive.
 *
 *	node_status.c    the object and its status        node_changes.c    changes, events, lease
 *	node_machine.h   what this machine is
 */
#ifndef C8S_KUBELET_NODE_STATUS_H
#define C8S_KUBELET_NODE_STATUS_H

#include "kubelet/kubelet.h"

struct node_facts {
	struct val reserved;          /* kube-reserved + system-reserved + eviction thresholds by resource, as quantities */
	struct val images;            /* images_of_node */
	struct val runtime_version;   /* runtime.v1.VersionResponse */
	struct val runtime_status;    /* runtime.v1.StatusResponse: RuntimeReady, NetworkReady; handlers, features; VAL_NONE: not asked yet */
	struct val problems;          /* list of texts: further reasons why it is not ready ("CSINode is not yet initialized") */
	struct val devices;           /* extended resources: map of quantities */
	struct val healthy_devices;   /* the same without those that do not work; VAL_NONE: all do */
	str kubelet_version;          /* v1.36.4 */
	bool memory_pressure, disk_pressure, pids_pressure;
	str provider_id, pod_cidr;
	struct val labels, taints;    /* of --node-labels, --register-with-taints */
	bool unschedulable;
	int port;                     /* 10250 */
	int64_t now_ns;
	str shutdown;                 /* "" or the message while the node goes down */
};

/* The Node as it is registered: metadata (labels kubernetes.io/hostname, arch, os ...; annotations) and spec. */
struct val node_object_make(const struct kubelet_node *n, const struct node_facts *f, struct arena *a);
/*
 * Its status; old: what it was (transition times stay, as do conditions, extended resources and attached volumes that others have put
 * there). Reads /proc, /sys and /etc/os-release of this machine.
 */
int node_status_make(const struct kubelet_node *n, const struct node_facts *f, struct arena *a, struct val old, struct val *ret, struct err *err);
/* Whether there is more to tell than that the node is still alive. */
bool node_status_changed(struct arena *a, struct val before, struct val after);
/*
 * Events about what has changed, as list of { type, reason, message }: "Node n1 status is now: NodeReady", "Node n1 has been rebooted, ...".
 * before: VAL_NONE when the node is new.
 */
struct val node_status_events(const struct kubelet_node *n, struct arena *a, struct val before, struct val after);
/* Its Lease in kube-node-lease, renewed now; before: what it was, or VAL_NONE. node_uid "": not known yet, then it has no owner. */
struct val node_lease_make(const struct kubelet_node *n, struct arena *a, struct val before, str node_uid, int64_t duration_s, int64_t now_ns);
/* Capacity by resource as quantities: cpu, memory, pods, ephemeral-storage, hugepages-*; and what is left for pods. */
int node_capacity(const struct kubelet_node *n, const struct node_facts *f, struct arena *a, struct val *ret_capacity, struct val *ret_allocatable,
		  struct err *err);

#endif
