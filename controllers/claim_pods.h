/* claim_pods: which pods use a claim. Pure. */
#ifndef C8S_CONTROLLERS_CLAIM_PODS_H
#define C8S_CONTROLLERS_CLAIM_PODS_H

#include "client/informer.h"

/* An index of pods by the claims ("namespace/name") that their volumes name; those that are made for the pod among them. */
#define CLAIM_INDEX "claim"
informer_values pod_by_claim;
/* Calls add(name) for the claim of each volume of a pod. */
void pod_claims(struct arena *a, struct val pod, void (*add)(str claim, void *arg), void *arg);
/* Whether the pod keeps the claim from being deleted: it runs, or could. */
bool pod_uses_claim(struct val pod, struct val claim);

#endif
