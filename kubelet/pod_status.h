/*
 * pod_status: the status of a pod: phase, conditions, container statuses with their reasons, addresses, QoS class, resources; as the
 * kubelet of 1.36 makes it. Order of conditions and fields as the API server stores them. Pure functions.
 *
 *	pod_status.c             the whole
 *	pod_status_containers.c  the three lists of container statuses
 *	pod_status_conditions.c  conditions
 *	pod_status_phase.c       phase
 *	pod_status_resources.c   resources in force
 */
#ifndef C8S_KUBELET_POD_STATUS_H
#define C8S_KUBELET_POD_STATUS_H

#include "kubelet/pod_view.h"

/*
 * core/v1.PodStatus (typed), in the arena or shared with the view: what the API server is to be told. Transition times stay where a
 * condition's status stays. The phase becomes Succeeded or Failed only with v->terminated: others take that as a sign that nothing of
 * the pod runs any more.
 */
struct val pod_status_make(struct arena *a, const struct pod_view *v);
/* What was told last, but for PodReadyToStartContainers, which is true now. */
struct val pod_status_ready_to_start(struct arena *a, const struct pod_view *v);
/* Whether the phase is to become Succeeded or Failed: the worker then stops what still runs, and sets terminated. */
bool pod_has_ended(struct arena *a, const struct pod_view *v);
/*
 * "Pending", "Running", "Succeeded", "Failed" from container statuses (of the status being made) and the restart policies.
 * terminated: nothing will start again. initialized: a container of its present sandbox has been made.
 */
str pod_phase(struct val pod, struct val init_statuses, struct val statuses, bool terminated, bool initialized);
/* Whether an update is worth sending: what the kubelet decides is the same, but for times and generations of conditions. */
bool pod_status_equal(struct val a, struct val b);

#endif
