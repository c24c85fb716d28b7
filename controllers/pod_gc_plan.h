/* pod_gc_plan: which pods nobody else will ever remove. Pure. */
#ifndef C8S_CONTROLLERS_POD_GC_PLAN_H
#define C8S_CONTROLLERS_POD_GC_PLAN_H

#include "codec/val.h"

enum pod_gc_why {
	POD_GC_STAYS,
	POD_GC_TERMINATED,            /* it is over: only to be removed when there are too many of its sort */
	POD_GC_OUT_OF_SERVICE,        /* it is being deleted, on a node that was declared out of service */
	POD_GC_ORPHANED,              /* its node is gone */
	POD_GC_UNSCHEDULED,           /* it is being deleted, and on no node */
};

/* node: the one that it is on, VAL_NONE: there is none of that name; node_gone: and that is sure by now. */
enum pod_gc_why pod_gc_judge(struct val pod, struct val node, bool node_gone);

/* Puts pods into the order in which they go when there are too many: evicted ones first, then the oldest. */
void pod_gc_sort(struct frozen **pods, size_t n);

/*
 * What is to be written into the status before the pod is deleted (strategic patch), so that its owners see that it has failed; VAL_NONE: it
 * has ended already. orphaned: with the condition that says why. now: a time.
 */
struct val pod_gc_patch(struct arena *a, struct val pod, bool orphaned, struct val now);

#endif
