/*
 * kubelet/: a pod with this node's name becomes running processes. It watches pods, compares, and calls a container runtime by CRI.
 *
 *	kubelet.c        all parts put together; kubelet_node.c: what this node is; kubelet_lookups.c: other objects; kubelet_serve.c: ports
 *	config.h         flags and files                  source.h    where pods come from
 *	pods.h           the pods of this node, one fiber each: from what is wanted and what is there to calls
 *	runtime_pods.h   what the runtime has             status.h    telling the API server
 *	pod_view.h       a pod as the kubelet sees it: the object, and what the runtime has of it
 *	pod_actions.h    what has to be done next about a pod: a pure function of its view
 *	pod_status.h     what its status is: a pure function of its view
 *	cri_config.h     what the runtime is told: sandbox and containers, with environment, security, resources, names
 *	cri_client.h     the calls of CRI, to a socket or inside this process
 *	images.h         pulling: policy, back-off, secrets; collecting those that nobody uses
 *	probe.h          startup, liveness, readiness
 *	volume.h         what a pod mounts                objects.h   ConfigMaps and Secrets that pods refer to
 *	trust_bundles.h  certificates of ClusterTrustBundles  allocation.h  resources that pods have been given
 *	node_status.h    the Node object       admit.h     whether this node takes a pod
 *	cgroups.h        the tree of QoS classes and pods
 *	stats.h          figures                          eviction.h  pods end when the node runs short
 *	collect.h        what nobody needs any more       devices.h   device plugins
 *	register.h       the Node object is kept, leases, certificates, shutdown
 *	server.h         the HTTP API on 10250            local_path.h  folders of volumes that are gone
 */
#ifndef C8S_KUBELET_KUBELET_H
#define C8S_KUBELET_KUBELET_H

#include "codec/val.h"

/* What the parts of a kubelet know of their node. Texts live as long as the kubelet. */
struct kubelet_node {
	str name;
	str address, address6;        /* InternalIP; "" if there is none of that family */
	str root;                     /* /var/lib/kubelet */
	str log_root;                 /* /var/log/pods */
	str cluster_domain;           /* cluster.local */
	struct val cluster_dns;       /* list of addresses */
	str resolv_conf;              /* file of --resolv-conf */
	bool cgroup_v2;
	str cgroup_root;              /* "" or "/c8s-...": what kubepods is below */
	int64_t memory_bytes, cpus_milli; /* capacity */
	struct val allowed_sysctls;   /* list of patterns */
	int max_pods;
	int pod_pids_limit;           /* -1: none */
	/* What may stay zero: the kubelet's defaults. */
	struct val allocatable;       /* of the Node's status, for resourceFieldRef; VAL_NONE: the capacity counts */
	bool seccomp_default;         /* pods that say nothing run with the runtime's default profile */
	bool single_process_oom_kill; /* cgroup v2: not all of a container dies when memory is short */
	bool no_cfs_quota;            /* cpuCFSQuota: false */
	int64_t cfs_period_us;        /* 0: 100 ms */
	bool swap_controller;         /* the kernel counts swap by control group */
	bool swap_limited;            /* memorySwap.swapBehavior: LimitedSwap */
	int64_t swap_bytes;           /* of the machine */
	bool memory_qos;              /* cgroup v2 and the gate MemoryQoS: memory.high, and with memory_tiered memory.min and memory.low */
	bool memory_tiered;           /* memoryReservationPolicy: TieredReservation */
	double memory_throttling;     /* memoryThrottlingFactor */
	int64_t memory_for_pods;      /* the capacity without what is reserved for the system and for Kubernetes */
	const struct kubelet_hooks *hooks; /* NULL: none */
};

/* What the making of configurations tells and asks the kubelet. Each may be NULL. */
struct kubelet_hooks {
	/* An event about a pod, or (VAL_NONE) about the node. Must not suspend. */
	void (*event)(void *arg, struct val pod, bool warning, const char *reason, str message);
	/* (suspends) runtime.v1.UserNamespace of a pod with hostUsers: false: mode, uids, gids. NULL: the runtime cannot do it. */
	int (*user_namespace)(void *arg, struct arena *a, struct val pod, struct val *ret, struct err *err);
	/* Group ids that the persistent volumes of a pod ask for: list of numbers. */
	struct val (*extra_groups)(void *arg, struct arena *a, struct val pod);
	void *arg;
};

struct kubelet_options; /* config.h */

/* What a kubelet with these options calls its node, in the arena. */
int kubelet_node_name(const struct kubelet_options *o, struct arena *a, str *ret, struct err *err);

/*
 * (suspends, until canceled) A whole kubelet. on_ready (may be NULL) is called once pods are being looked after. Containers go on when
 * it ends, and the next one takes them over.
 */
int kubelet_run(const struct kubelet_options *o, void (*on_ready)(void *arg), void *arg, struct err *err);

#endif
