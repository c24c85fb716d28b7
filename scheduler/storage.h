/*
 * storage: claims, volumes and what belongs to them, as the four plugins of volumes read them; and which pods use which claim.
 *
 * Volumes of kinds that were built into Kubernetes once (EBS, GCE disks, Azure disks, Cinder, Portworx) are not translated to their CSI
 * drivers: they count as what they are.
 */
#ifndef C8S_SCHEDULER_STORAGE_H
#define C8S_SCHEDULER_STORAGE_H

#include "scheduler/copies.h"

enum storage_kind {
	STORAGE_CLAIM,                /* "namespace/name" */
	STORAGE_VOLUME,               /* by class */
	STORAGE_CLASS,
	STORAGE_CSI_NODE,
	STORAGE_CSI_DRIVER,
	STORAGE_CAPACITY,             /* by class */
	STORAGE_ATTACHMENT,           /* by node */
	STORAGE_KINDS,
};

struct storage {
	struct client *client;        /* may be NULL where nothing is bound: tests, `why` */
	struct copies kinds[STORAGE_KINDS];
	struct map claim_users;       /* key of a claim -> struct claim_users */
	struct fiber_cond changed;    /* of claims and volumes */
};

/* informers NULL: whoever made it puts objects in. The informers are listened to until storage_free. */
struct storage *storage_new(struct client *client, struct informers *informers) NONNULL_RESULT;
void storage_free(struct storage *s); /* NULL is fine */
/* While *busy, what was borrowed stays: a cycle may suspend. */
void storage_hold(struct storage *s, const bool *busy);

/* A pod is on a node now (assumed ones too), or no longer. */
void storage_pod_placed(struct storage *s, struct val pod);
void storage_pod_gone(struct storage *s, struct val pod);
/* Some pod on a node uses the claim. */
bool storage_claim_used(const struct storage *s, str namespace, str name);

/* VAL_NONE: there is none. Borrowed until something changes. */
struct val storage_claim(const struct storage *s, str namespace, str name);
struct val storage_get(const struct storage *s, enum storage_kind kind, str key);

/* ---- readings ---- */

/* The claim that a volume of a pod uses: its own, or "<pod>-<volume>" in the arena for an ephemeral one. False: it uses none. */
bool pod_volume_claim(struct arena *a, struct val pod, struct val volume, str *ret_name, bool *ret_ephemeral);
/* Does a volume of the pod use this claim? ephemeral: those count too. */
bool pod_names_claim(struct val pod, struct val claim, bool ephemeral);
/* The pod controls the claim. If not, the text of Kubernetes in the arena. */
bool claim_is_for_pod(struct arena *a, struct val claim, struct val pod, str *ret_why);
/* Name of the class; the old annotation counts first. */
str claim_class(struct val claim);
str volume_class(struct val volume);
/* The claim has a volume, and the volume's controller has finished. */
bool claim_is_bound(struct val claim);

#endif
