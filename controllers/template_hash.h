/*
 * The hash of a pod template, as pod-template-hash and the controller-revision-hash of DaemonSets have it: the same text that Kubernetes has for the
 * same template, so that whatever one has made keeps its name under the other.
 */
#ifndef C8S_CONTROLLERS_TEMPLATE_HASH_H
#define C8S_CONTROLLERS_TEMPLATE_HASH_H

#include "codec/val.h"

/* In the arena. collision_count: status.collisionCount of the owner; 0: none. */
str template_hash(struct arena *a, struct val template, int64_t collision_count);

#endif
