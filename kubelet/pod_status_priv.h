/* What the files behind pod_status.h have in common. */
#ifndef C8S_KUBELET_POD_STATUS_PRIV_H
#define C8S_KUBELET_POD_STATUS_PRIV_H

#include "kubelet/pod_status.h"

/* A time as statuses have it: whole seconds. */
struct val status_time(struct arena *a, int64_t ns);
/* VAL_NONE for "". */
struct val status_text(str s);
bool phase_is_terminal(str phase);

/* ---- pod_status_containers.c ---- */

/* core/v1.ContainerStatus of all containers of one list of the spec (A_initContainers, ...), in the order of statuses. */
struct val status_containers(struct arena *a, const struct pod_view *v, atom list);
/* The end of a pod: containers of which nothing more is known count as failed, but for those that never had their turn. */
void status_containers_finish(struct arena *a, struct val pod, struct val *init_statuses, struct val *statuses);

/* ---- pod_status_conditions.c ---- */

/* What conditions are made of. */
struct condition_input {
	const struct pod_view *v;
	struct val init_statuses, statuses;
	str phase;
	bool ended;            /* this status tells of the end: DisruptionTarget goes with it */
};

struct val status_conditions(struct arena *a, const struct condition_input *in);
/* conditions with PodReadyToStartContainers, which is true. */
struct val status_conditions_ready_to_start(struct arena *a, const struct pod_view *v, struct val conditions);
/* Those that the kubelet has no say in, as the API server has them. */
struct val status_conditions_of_others(struct arena *a, const struct pod_view *v);
struct val status_condition(struct val conditions, str type);
/* Whether the kubelet alone decides about this type. */
bool condition_is_ours(str type);

/* ---- pod_status_resources.c ---- */

/* core/v1.ResourceRequirements in force for a container that the runtime has; old: its status before. */
struct val status_container_resources(struct arena *a, const struct pod_view *v, struct val container, struct val cri, str id,
				      struct val old);
/* The same for the pod as a whole, and what is set aside for it. */
struct val status_pod_resources(struct arena *a, const struct pod_view *v);
struct val status_pod_allocated(struct arena *a, const struct pod_view *v);

#endif
