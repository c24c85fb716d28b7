/* taint_eviction_plan: when a pod has to leave a node with NoExecute taints. Pure. */
#ifndef C8S_CONTROLLERS_TAINT_EVICTION_PLAN_H
#define C8S_CONTROLLERS_TAINT_EVICTION_PLAN_H

#include "codec/val.h"

/* What is decided about one pod: nothing, a deletion at a time, or that it was done. */
enum eviction_state { EVICTION_NONE, EVICTION_DUE, EVICTION_DONE };

struct eviction {
	enum eviction_state state;
	int64_t due_ns;
};

struct eviction_plan {
	struct eviction next;
	bool tell_canceled;          /* a deletion that was decided does not come (or comes sooner) */
	bool evict;                  /* now; next is what holds once that has been done */
};

/* A deletion that is on its way stays as it is, also when the taints that are left would leave more time or less. */
struct eviction_plan taint_eviction_plan(struct val no_execute_taints, struct val tolerations, struct eviction now, int64_t now_ns);

#endif
