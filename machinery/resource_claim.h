/* resource_claim: which ResourceClaims a pod uses, and who uses a claim. Pure. */
#ifndef C8S_MACHINERY_RESOURCE_CLAIM_H
#define C8S_MACHINERY_RESOURCE_CLAIM_H

#include "codec/val.h"

/* Keeps claims that are allocated from going. */
#define CLAIM_FINALIZER "resource.kubernetes.io/delete-protection"

/*
 * The name of the claim that an entry of spec.resourceClaims is about: 1; 0: intentionally none; -ERR_NOT_FOUND: it has not been made yet;
 * -ERR_INVALID: the entry names none. *ret_made: it was made from a template for the pod, and counts only if the pod is its controller.
 */
int pod_claim_name(struct val pod, struct val entry, str *ret_name, bool *ret_made);
/* status.reservedFor has the pod. */
bool claim_is_reserved_for(struct val claim, struct val pod);
/* The entry of status.reservedFor for a pod. */
struct val claim_user(struct arena *a, struct val pod);
bool claim_has_finalizer(struct val claim);
struct val claim_without_finalizer(struct arena *a, struct val claim);

#endif
