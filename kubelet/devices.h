/*
 * devices: device plugins and who has which device; plugin registration; the pod-resources service.
 *
 *	plugins.c             plugins_registry: sockets in a folder are found, asked who they are, told the outcome
 *	devices.c             device-plugins/kubelet.sock: Register; ListAndWatch of each plugin
 *	devices_state.c       what plugins offer, and who has what of it
 *	devices_allocate.c    which container gets which device
 *	devices_container.c   devices of a container that starts; devices_told.c: what it sees of them
 *	devices_checkpoint.c  kept in kubelet_internal_checkpoint, for the next kubelet
 *	pod_resources.c       pod-resources/kubelet.sock: List, GetAllocatableResources, Get
 */
#ifndef C8S_KUBELET_DEVICES_H
#define C8S_KUBELET_DEVICES_H

#include "kubelet/cri_config.h"

struct devices;

struct devices_options {
	const struct kubelet_node *node;                /* its root: device-plugins/, plugins_registry/, pod-resources/ */
	/* Active ones, with those for whom devices_allocate has returned. VAL_NONE: not all are known yet, so none has ended. */
	struct val (*pods)(void *arg, struct arena *a);
	/* Does the container run? After a restart of the kubelet it has its devices, whatever plugins say. NULL: none runs. */
	bool (*runs)(void *arg, str pod_uid, str container);
	void (*changed)(void *arg);                     /* capacity has changed: the node's status. Must not suspend. */
	void (*pod_changed)(void *arg, str pod_uid);    /* health of a device of this pod has changed. Must not suspend. */
	void *arg;
};

/* Reads what the last kubelet has left. Blocks for that. */
struct devices *devices_new(const struct devices_options *o) NONNULL_RESULT;
void devices_free(struct devices *d); /* (suspends) after devices_run has ended; NULL is fine */
/* (suspends, until canceled) Serves the three. */
int devices_run(struct devices *d, struct err *err);
/* Quantities by resource, for the node: capacity and allocatable (healthy ones); in the arena. */
void devices_of_node(struct devices *d, struct arena *a, struct val *ret_capacity, struct val *ret_allocatable);
/*
 * (suspends) Devices for all containers of a pod that ask for some: kept until the pod has ended. Errors are messages of
 * UnexpectedAdmissionError ("Allocate failed due to ..., which is unexpected"); the pod then has none. Pods that ask for none cost nothing.
 */
int devices_allocate(struct devices *d, struct val pod, struct err *err);
/* The Node without what plugins offer, in the arena: whether a pod gets of that is not a matter of numbers, but of devices_allocate. */
struct val devices_hide(const struct devices *d, struct arena *a, struct val node);
/*
 * (suspends) What a container with devices is told: in->devices, cdi_devices, extra_env, extra_annotations; more mounts at *ret_mounts.
 * Errors are those of CreateContainerConfigError.
 */
int devices_of_container(struct devices *d, struct arena *a, struct cri_container_input *in, struct cri_mount **ret_mounts, size_t *ret_n,
			 struct err *err);
/* list of ResourceStatus for allocatedResourcesStatus of a container; VAL_NONE: none. */
struct val devices_status(struct devices *d, struct arena *a, str pod_uid, str container);
/* CSI drivers that have registered: list of { name, endpoint }, in the arena. */
struct val devices_csi_drivers(struct devices *d, struct arena *a);

#endif
