/* resource_claim_plan: what becomes of ResourceClaims of pods. Pure functions over trees. */
#ifndef C8S_CONTROLLERS_RESOURCE_CLAIM_PLAN_H
#define C8S_CONTROLLERS_RESOURCE_CLAIM_PLAN_H

#include "codec/val.h"

/* Which entry of its pod's spec.resourceClaims a claim was made for. */
#define POD_CLAIM_ANNOTATION "resource.kubernetes.io/pod-claim-name"

/* The claim for an entry of a pod's spec.resourceClaims, from its template, as it is created. */
struct val claim_from_template(struct arena *a, struct val template, struct val pod, struct val entry);
/* The pod has ended, or will never run. */
bool pod_is_done(struct val pod);

struct claim_plan {
	struct val status;            /* the claim as its status is to be written; VAL_NONE: it is fine */
	bool unlock;                  /* afterwards the finalizer goes */
	bool unused;                  /* nobody uses it any more */
};

/* keep: for each entry of status.reservedFor, whether that user still exists. */
struct claim_plan claim_plan_users(struct arena *a, struct val claim, const bool *keep);
/* A claim that nobody uses was made for a pod that does not need it: it can go at once. pod: the one that has the owner's name now; VAL_NONE: none. */
bool claim_is_left_over(struct val claim, struct val pod);
/* Name of the pod that a claim was made for; empty: for none. */
str claim_pod_name(struct val claim);

#endif
