/*
 * user_namespaces: which ids of the node the users of pods with hostUsers: false are: 65,536 each, no two pods the same. Kept in the pod's
 * folder (userns), so that they stay when the kubelet restarts.
 */
#ifndef C8S_KUBELET_USER_NAMESPACES_H
#define C8S_KUBELET_USER_NAMESPACES_H

#include "kubelet/kubelet.h"

struct user_namespaces;

/* first: of the ids that may be given away (a multiple of 65,536); n: how many pods. Takes over what the folders of pods have. Blocks. */
struct user_namespaces *user_namespaces_new(const struct kubelet_node *node, int64_t first, size_t n) NONNULL_RESULT;
void user_namespaces_free(struct user_namespaces *u); /* NULL is fine */
/* runtime.v1.UserNamespace of a pod, in the arena: mode POD with its ids; the same each time. -ERR_UNAVAILABLE when there are none left. */
int user_namespaces_of(struct user_namespaces *u, struct arena *a, struct val pod, struct val *ret, struct err *err);
/* The pod has ended. */
void user_namespaces_release(struct user_namespaces *u, str pod_uid);

#endif
