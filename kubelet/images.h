/*
 * images: what a container's image policy means: whether to pull, with which secrets, how long to wait after failures; and removing
 * images that nobody uses when the disk fills.
 *
 *	images.c            the policy: present, pulling, back-off
 *	images_keyring.c    credentials for an image, from secrets, the node's own file and providers (credential_provider.h)
 *	images_records.c    who could pull an image: pods that show no such credentials do not get it from the node either
 *	images_collect.c    removing unused images; the list for the Node object
 */
#ifndef C8S_KUBELET_IMAGES_H
#define C8S_KUBELET_IMAGES_H

#include "kubelet/cri_client.h"
#include "kubelet/kubelet.h"

struct credential_providers;
struct images_manager;

/* Texts live as long as the manager. */
struct images_manager_options {
	struct cri *cri;
	/* /var/lib/kubelet: records in image_manager/, the node's credentials in config.json; NULL: records in memory only, no file. */
	const char *root;
	struct credential_providers *providers; /* NULL: none; must outlive the manager */
	double qps;                   /* registryPullQPS: 5; 0: no limit */
	unsigned burst;               /* 10 */
	bool parallel;                /* serializeImagePulls: false */
	unsigned parallel_max;        /* 0: no limit */
	/* imagePullCredentialsVerificationPolicy; NULL: NeverVerifyPreloadedImages. The list is for NeverVerifyAllowlistedImages. */
	const char *verification;
	struct val allowed;
	int gc_high_percent, gc_low_percent; /* 85, 80 */
	int64_t gc_min_age_s;         /* 120 */
	int64_t gc_max_age_s;         /* imageMaximumGCAge; 0: none */
	/*
	 * Pulling, Pulled, Failed, BackOff, InspectFailed, ErrImageNeverPull events with the texts of 1.36. ("Error: ErrImagePull" is the
	 * event of whoever starts the container.) Those of the node itself have no pod (VAL_NONE): InvalidDiskCapacity,
	 * FreeDiskSpaceFailed. Must not suspend.
	 */
	void (*event)(struct val pod, str container, bool warning, const char *reason, str message, void *arg);
	void *arg;
};

struct images_manager *images_manager_new(const struct images_manager_options *o) NONNULL_RESULT;
/* Nothing may be under way. NULL is fine. */
void images_manager_free(struct images_manager *m);

/*
 * (suspends) The image of a container is there: its ref and user (a name, or an id with ret_uid >= 0). secrets: list of core/v1.Secret
 * (imagePullSecrets). On error *ret_reason is the waiting reason: ErrImagePull, ImagePullBackOff, InvalidImageName, ErrImageNeverPull,
 * RegistryUnavailable, SignatureValidationFailed, ImageInspectError, and *ret_message that of the waiting state; both are empty when the
 * fiber was canceled or out of time. container may be any object with name, image and imagePullPolicy.
 */
int images_ensure(struct images_manager *m, struct arena *a, struct val pod, struct val container, struct val secrets,
		  struct val sandbox_config, str *ret_ref, str *ret_user, int64_t *ret_uid, str *ret_reason, str *ret_message,
		  struct err *err);
/* Until when (clock_wall_ns) pulls of this image for this pod wait after failures; 0: they do not. */
int64_t images_backoff_until(const struct images_manager *m, str pod_uid, str image);

/*
 * (suspends) Removes unused images until usage is below the low mark, if it is above the high one; in_use: list of image refs (ids, names
 * or digests). Bytes freed, or an error, also when that was not enough.
 */
int64_t images_manager_collect(struct images_manager *m, struct val in_use, struct err *err);
/* (suspends) Removes all that are unused (and of age), whatever the usage: for a node under pressure. Bytes freed. */
int64_t images_manager_remove_unused(struct images_manager *m, struct val in_use, struct err *err);
/* (suspends) As node.status.images wants them: names and sizes, the largest 50 first. */
int images_of_node(struct images_manager *m, struct arena *a, struct val *ret, struct err *err);

#endif
