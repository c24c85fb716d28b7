/* stateful_set_claims: the PersistentVolumeClaims of the pods of a StatefulSet, and whether they go with the pod or with the set. Pure. */
#ifndef C8S_CONTROLLERS_STATEFUL_SET_CLAIMS_H
#define C8S_CONTROLLERS_STATEFUL_SET_CLAIMS_H

#include "codec/val.h"

/* Ordinal at the end of a pod's name, and what is before its dash (may be NULL); -1: it has none. */
int64_t stateful_ordinal(struct val pod, str *ret_parent);
bool stateful_in_range(struct val set, struct val pod);
/* "<template>-<set>-<ordinal>" */
str stateful_claim_name(struct arena *a, struct val set, struct val template, int64_t ordinal);
/* The claim that a pod needs for a template. */
struct val stateful_claim(struct arena *a, struct val set, struct val template, int64_t ordinal);
/* The pod with volumes for all templates before its other ones. */
struct val stateful_with_volumes(struct arena *a, struct val set, struct val pod);
bool stateful_volumes_match(struct arena *a, struct val set, struct val pod);

/* A claim is owned by something else that decides over it: the policy is not followed. */
bool stateful_claim_is_foreign(struct val claim, struct val set, struct val pod);
/* It says that it belongs to a pod of that name that is gone: it is about to be deleted. */
bool stateful_claim_is_stale(struct val claim, struct val pod);
/* Its owner references are as spec.persistentVolumeClaimRetentionPolicy wants them. */
bool stateful_claim_is_settled(struct val claim, struct val set, struct val pod);
/* The claim with these references. */
struct val stateful_claim_settle(struct arena *a, struct val claim, struct val set, struct val pod);

#endif
