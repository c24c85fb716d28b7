/* What is told about a pod, and how: pure functions behind status.h. */
#ifndef C8S_KUBELET_STATUS_PRIV_H
#define C8S_KUBELET_STATUS_PRIV_H

#include "codec/val.h"

/*
 * The status that the API server shall have: what the kubelet says, with what others have put into the pod as the server has it (live).
 * core/v1.PodStatus, in the arena or shared.
 */
struct val status_merge(struct arena *a, struct val live, struct val status, int64_t now_ns);
/* The strategic merge patch of the pod that makes it so, for the pod of this uid only; VAL_NONE: it is so already. */
int status_patch(struct arena *a, struct val live, struct val merged, struct val *ret, struct err *err);
/* A status in which everything has ended: containers of which nothing is known have failed, and so has a pod that was not static. */
struct val status_ended(struct arena *a, struct val pod, struct val status);

#endif
