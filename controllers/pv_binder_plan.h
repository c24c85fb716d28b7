/*
 * pv_binder_plan: claims and volumes brought together. A claim is bound in four writes, each of which is left out when it is done already, so
 * that whoever is interrupted goes on where it was: the volume's claimRef, the volume's phase, the claim's volumeName, the claim's phase. Pure.
 */
#ifndef C8S_CONTROLLERS_PV_BINDER_PLAN_H
#define C8S_CONTROLLERS_PV_BINDER_PLAN_H

#include "codec/val.h"

#define PV_BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define PV_BOUND_BY_CONTROLLER "pv.kubernetes.io/bound-by-controller"
#define PV_PROVISIONED_BY "pv.kubernetes.io/provisioned-by"
#define PVC_PROVISIONER "volume.kubernetes.io/storage-provisioner"
#define PVC_PROVISIONER_BETA "volume.beta.kubernetes.io/storage-provisioner"
#define PVC_SELECTED_NODE "volume.kubernetes.io/selected-node"

/* ---- facts ---- */

/* The class that it has; "": none. */
str storage_class_of(struct val claim_or_volume);
/* Whether a claim says anything about its class: also that it wants none. */
bool claim_has_class(struct val claim);
/* For this claim, or for its name when nobody has put in the uid. */
bool volume_is_for(struct val volume, struct val claim);
/* Why a volume that a claim names cannot be bound to it; NULL: it can. */
const char *volume_misfit(struct arena *a, struct val volume, struct val claim);
bool class_is_default(struct val class);
/* The newest default class; VAL_NONE: there is none. */
struct val default_class(struct val classes);
/* The volume that suits best: the one that is meant for the claim, else the smallest of those with the fewest modes; VAL_NONE: none. delay: only the first. */
struct val volume_for_claim(struct arena *a, struct val claim, struct val volumes, bool delay);

/* ---- claims ---- */

enum claim_step {
	CLAIM_REST,                  /* nothing but the event, if there is one */
	CLAIM_PENDING,               /* its phase */
	CLAIM_LOST,
	CLAIM_BIND,                  /* to volume */
	CLAIM_SET_CLASS,             /* class */
	CLAIM_PROVISION,             /* by somebody else: the annotations, with class's provisioner */
	CLAIM_WRONG,                 /* an error, to be tried again: message */
};

struct claim_input {
	struct val claim;
	struct val volumes;          /* all; or the one that it names, if there is that */
	struct val class;            /* of the claim; VAL_NONE: there is none of that name */
	struct val default_class;
	struct val waiting_pods;     /* names of pods with this claim that no node was found for yet */
};

struct claim_plan {
	enum claim_step step;
	struct val volume, class;
	bool warning;                /* of the event */
	const char *reason;          /* NULL: no event; of CLAIM_LOST: told when the phase changes */
	str message;
};

void claim_plan(struct arena *a, const struct claim_input *in, struct claim_plan *ret);

/* ---- volumes ---- */

enum volume_step {
	VOLUME_AVAILABLE,            /* its phase */
	VOLUME_BOUND,
	VOLUME_RELEASED,             /* and then what its reclaim policy says */
	VOLUME_UNBIND,
	VOLUME_LOOK_AT_CLAIM,        /* which is not bound yet */
	VOLUME_MISMATCH,             /* both are told */
};

/* claim: the one with the name in claimRef; VAL_NONE: there is none. */
enum volume_step volume_plan(struct val volume, struct val claim);

enum reclaim_step {
	RECLAIM_REST,                /* stays as it is */
	RECLAIM_DELETE,              /* the volume's files (hostPath below /tmp), then the volume */
	RECLAIM_FAIL,                /* phase Failed, with reason and message */
};

struct reclaim_plan {
	enum reclaim_step step;
	const char *reason;
	str message;
};

/* Of a volume whose claim is gone. */
void reclaim_plan(struct arena *a, struct val volume, struct reclaim_plan *ret);

/* ---- what is written; VAL_NONE: it is so already ---- */

struct val volume_bound(struct arena *a, struct val volume, struct val claim);
struct val volume_unbound(struct arena *a, struct val volume);
struct val volume_with_phase(struct arena *a, struct val volume, const char *phase, str message);
struct val claim_bound(struct arena *a, struct val claim, struct val volume);
/* volume: VAL_NONE unless the phase is Bound. */
struct val claim_with_phase(struct arena *a, struct val claim, const char *phase, struct val volume);
struct val claim_with_provisioner(struct arena *a, struct val claim, str provisioner);

#endif
