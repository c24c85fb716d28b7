/*
 * status: tells the API server the statuses of pods, the newest only, and deletes pods that have ended after they were deleted. Failures
 * are tried again; what the server has that differs from what was told (somebody else wrote) is told again.
 *
 *	status.c         who is told what and when    status_merge.c   what the kubelet says and what others have said, as a patch
 */
#ifndef C8S_KUBELET_STATUS_H
#define C8S_KUBELET_STATUS_H

#include "client/client.h"
#include "codec/val.h"

struct statuses;

struct statuses_options {
	struct client *client;        /* NULL: standalone, nothing is told */
	/* Uid of the mirror pod of a static pod; "": none (yet). Its status goes there. Must not suspend. */
	str (*mirror_of)(void *arg, struct arena *a, str uid);
	/* Whether nothing of the pod is left on the node (containers, volumes, cgroup): only then it may vanish from the API. Asked again,
	 * soon, until it is so. Must not suspend. May be NULL. */
	bool (*may_delete)(void *arg, str uid);
	/* The API server has deleted or replaced it: nothing more is told. Must not suspend. May be NULL. */
	void (*gone)(void *arg, str uid);
	void *arg;
};

struct statuses *statuses_new(const struct statuses_options *o) NONNULL_RESULT;
void statuses_free(struct statuses *s); /* Nobody may run it. NULL is fine. */
/* (suspends, until canceled) Sends: at once what has changed, every 10 s what was missed. */
int statuses_run(struct statuses *s, struct err *err);

/*
 * The status of a pod is now this; both are frozen_ref'd resp. copied. Equal ones cost nothing (pod_status_equal). What the API
 * server holds for others stays: conditions that are not the kubelet's (readiness gates, scheduler), resourceClaimStatuses,
 * hostIP once set. Phase never goes back from Succeeded or Failed.
 */
void statuses_set(struct statuses *s, struct frozen *pod, struct val status);
/* The last one set, in the arena (shared); VAL_NONE: none. */
struct val statuses_get(const struct statuses *s, struct arena *a, str uid);
/* Nothing runs any more and nothing is left: when the pod is being deleted it is now deleted from the API with grace 0. */
void statuses_finish(struct statuses *s, struct frozen *pod);
/*
 * The pod, or the mirror of a static one, as the API server has it has changed: compared with what was told, which is told again if it
 * differs.
 */
void statuses_check(struct statuses *s, struct frozen *pod);
/* The kubelet no longer knows it. Also to be called for those that are gone. */
void statuses_forget(struct statuses *s, str uid);

#endif
