/* taints: taints of nodes and what pods say about them. Pure. */
#ifndef C8S_CONTROLLERS_TAINTS_H
#define C8S_CONTROLLERS_TAINTS_H

#include "codec/val.h"

#define TAINT_NOT_READY "node.kubernetes.io/not-ready"
#define TAINT_UNREACHABLE "node.kubernetes.io/unreachable"
#define NO_SCHEDULE "NoSchedule"
#define NO_EXECUTE "NoExecute"

bool taints_have(struct val taints, str key, str effect);
/* The list with that taint at its end, added at that time; the list itself when it has it. */
struct val taints_add(struct arena *a, struct val taints, str key, const char *effect, struct val time);
struct val taints_remove(struct arena *a, struct val taints, str key, const char *effect);
bool toleration_tolerates(struct val toleration, struct val taint);

enum { TOLERATED_FOREVER = -1 };

/* For how many seconds a pod may stay with these NoExecute taints: 0, some, or TOLERATED_FOREVER. *ret_all (may be NULL): it tolerates each. */
int64_t taints_tolerated_s(struct val no_execute_taints, struct val tolerations, bool *ret_all);
/* Those of a node that throw pods out. */
struct val taints_no_execute(struct arena *a, struct val node);

#endif
