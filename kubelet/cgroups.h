/*
 * cgroups: the tree kubepods[/burstable|/besteffort]/pod<uid> with its limits, v1 and v2, below node->cgroup_root. The runtime makes the
 * containers' own below. oci/cgroup.h knows how to write them.
 */
#ifndef C8S_KUBELET_CGROUPS_H
#define C8S_KUBELET_CGROUPS_H

#include "kubelet/kubelet.h"

struct cgroups;

struct cgroups_options {
	const struct kubelet_node *node;
	struct val config;            /* KubeletConfiguration: enforceNodeAllocatable, kubeReservedCgroup, cgroupsPerQOS, qosReserved, ... */
	struct val reserved;          /* kube- and system-reserved, as quantities */
};

/* Makes kubepods and the classes. Blocks for a few small writes, as all here. */
int cgroups_new(const struct cgroups_options *o, struct cgroups **ret, struct err *err);
void cgroups_free(struct cgroups *c); /* NULL is fine; leaves the tree */
/* The pod's own: cpu shares, quota, memory limit, memory QoS (v2), pids, hugetlb, by pod-level or summed resources. Again: updates. */
int cgroups_pod_make(struct cgroups *c, struct val pod, struct err *err);
/* Sets only what an in-place resize has changed: larger limits before the containers', smaller ones after. */
int cgroups_pod_resize(struct cgroups *c, struct val pod, bool before, struct err *err);
/* The memory limit that it would get, if that is less than it has; 0: it is not. */
int64_t cgroups_pod_memory_drop(struct cgroups *c, struct val pod);
/* (suspends) Kills what is left in it and removes it. One that is not there is fine. */
int cgroups_pod_remove(struct cgroups *c, str uid, struct err *err);
/* Uids of pods that have one. */
struct val cgroups_pods(struct cgroups *c, struct arena *a);
/* CPU shares, memory requests of the classes, and memory of kubepods, from the pods that are active: every minute and at changes.
 * VAL_NONE: they are not known, shares stay. */
int cgroups_classes_update(struct cgroups *c, struct val pods, struct err *err);
/* What memory QoS keeps for pods, by the last of these: memory.min of Guaranteed ones, memory.low of Burstable ones. */
void cgroups_memory_kept(const struct cgroups *c, int64_t *ret_min, int64_t *ret_low);
/* For oci/cgroup.h readers, in the arena and terminated: "/kubepods/burstable/pod<uid>"; VAL_NONE: kubepods itself. */
str cgroups_pod_path(struct cgroups *c, struct arena *a, struct val pod);

#endif
