/* cluster_role_plan: the rules of a ClusterRole that is made of others. Pure. */
#ifndef C8S_CONTROLLERS_CLUSTER_ROLE_PLAN_H
#define C8S_CONTROLLERS_CLUSTER_ROLE_PLAN_H

#include "codec/val.h"

/* roles: all of them, in the order of names. 1: its rules should be *ret; 0: they are so. -ERR_BAD_REQUEST for a selector that is none. */
int cluster_role_rules(struct arena *a, struct val role, struct val roles, struct val *ret, struct err *err);

#endif
