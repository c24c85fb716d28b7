/*
 * volume: what a pod mounts: made ready before its containers start, kept up to date while they run, removed after them. All below
 * <root>/pods/<uid>/volumes/kubernetes.io~<plugin>/<name>, as the kubelet of Kubernetes has it.
 */
#ifndef C8S_KUBELET_VOLUME_H
#define C8S_KUBELET_VOLUME_H

#include "kubelet/cri_config.h"

struct volumes;

struct volumes_options {
	const struct kubelet_node *node;
	struct cri_lookups lookups;
	/* (suspends) TokenRequest for a projected token: the token and when it ends, in seconds since 1970; the server may shorten its life. */
	int (*token)(void *arg, struct arena *a, struct val pod, str audience, int64_t *life_s, str *ret_token, int64_t *ret_expiry_s,
		     struct err *err);
	/* (suspends) PersistentVolumeClaim and PersistentVolume by name; ClusterTrustBundles by name or signer. */
	int (*claim)(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err);
	int (*persistent)(void *arg, struct arena *a, str name, struct val *ret, struct err *err);
	int (*trust_bundle)(void *arg, struct arena *a, struct val source, str *ret_pem, struct err *err);
	/* The Node object (in the arena), by which PersistentVolumes choose nodes. NULL or VAL_NONE: all fit. */
	struct val (*node_object)(void *arg, struct arena *a);
	/* Whether the pod's runtime handler can mount recursively read-only; NULL: it cannot. */
	bool (*recursive_readonly)(void *arg, struct val pod);
	void *arg;
};

struct volumes *volumes_new(const struct volumes_options *o) NONNULL_RESULT;
void volumes_free(struct volumes *v); /* (suspends) */

/*
 * (suspends) All volumes of the pod, ready to be mounted into containers. Errors are the messages of FailedMount events, as in 1.36:
 * MountVolume.SetUp failed for volume "x" : configmap "y" not found. When several fail, the others have their events by the node's
 * hooks. Called again, it looks after what has changed.
 */
int volumes_mount(struct volumes *v, struct val pod, struct err *err);
/*
 * (suspends) Mounts of one container (subPath resolved safely), for cri_config.h. -ERR_... with the messages of CreateContainerConfigError.
 * Images are named as the pod names them: who has pulled them puts the runtime's name into image.image.
 */
int volumes_of_container(struct volumes *v, struct arena *a, struct val pod, struct val container, struct val env, struct cri_mount **ret,
			 size_t *ret_n, struct err *err);
/* Adds the container's volumeDevices to in->devices. Errors are those of CreateContainerConfigError. */
int volumes_devices_of_container(struct volumes *v, struct arena *a, struct cri_container_input *in, struct err *err);
/* Group ids that the pod's PersistentVolumes ask for: list of numbers. */
struct val volumes_groups(struct volumes *v, struct arena *a, struct val pod);
/* (suspends) Contents that follow other objects (configMap, secret, downwardAPI, projected, tokens), written anew when they have changed. */
int volumes_refresh(struct volumes *v, struct val pod, struct err *err);
/* (suspends) Unmounts all and removes the folder of the pod. Works from the folder alone, after a crash of the kubelet, too. */
int volumes_unmount(struct volumes *v, str pod_uid, struct err *err);
/* Uids of pods that have folders. */
struct val volumes_pods(struct volumes *v, struct arena *a);
/*
 * (suspends) Bytes and inodes in use, per volume, and what the file system has: list of { name, usedBytes, inodesUsed, capacityBytes,
 * availableBytes, inodes, inodesFree }. Volumes of another machine that does not answer are left out.
 */
int volumes_usage(struct volumes *v, struct arena *a, struct val pod, struct val *ret, struct err *err);

#endif
