/* admit: whether this node takes a pod: resources, ports, affinity, taints, sysctls, OS, pressure; reasons and messages of 1.36. */
#ifndef C8S_KUBELET_ADMIT_H
#define C8S_KUBELET_ADMIT_H

#include "kubelet/kubelet.h"

struct admit_input {
	struct val pod;
	struct val others;            /* list of the pods that this node runs already; pod itself, as it was, does not count */
	struct val node;              /* its Node object, with status.allocatable */
	bool memory_pressure, disk_pressure, pids_pressure;
	bool shutting_down;
};

/*
 * True: it may run. Else the reason ("OutOfcpu", "NodeAffinity", "TaintToleration", "SysctlForbidden", "PodOSNotSupported", "Evicted",
 * ...) and message, in the arena. (status.message puts "Pod was rejected: " before it, the event does not.) The same
 * is asked about a pod whose resources are to change in place; a refusal is then reason and message of its PodResizePending.
 */
bool admit_pod(const struct kubelet_node *n, struct arena *a, const struct admit_input *in, str *ret_reason, str *ret_message);

/* It may make room for itself: static and mirror pods, and those of priority system-cluster-critical and above. */
bool admit_is_critical(struct val pod);
/*
 * The pods to end so that a critical pod, which was refused because of resources ("OutOf..."), can run; list in the arena. When that is
 * not possible the error is the message of the refusal, and its reason "UnexpectedAdmissionError".
 */
int admit_victims(struct arena *a, const struct admit_input *in, struct val *ret, struct err *err);

#endif
