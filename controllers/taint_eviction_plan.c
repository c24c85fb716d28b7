#include "controllers/taint_eviction_plan.h"

#include "base/clock.h"
#include "controllers/taints.h"

struct eviction_plan taint_eviction_plan(struct val no_execute_taints, struct val tolerations, struct eviction now, int64_t now_ns)
{
	struct eviction_plan plan = { .next = now };
	bool all;
	int64_t stay_s = taints_tolerated_s(no_execute_taints, tolerations, &all);

	if (stay_s == TOLERATED_FOREVER) {
		plan.tell_canceled = now.state == EVICTION_DUE;
		plan.next = (struct eviction){ EVICTION_NONE, 0 };
		return plan;
	}
	if (now.state == EVICTION_DONE)
		return plan;
	if (now.state == EVICTION_DUE && now.due_ns > now_ns && all)
		return plan;
	plan.tell_canceled = now.state == EVICTION_DUE && now.due_ns > now_ns;
	if (now.state == EVICTION_NONE && stay_s > 0) {
		plan.next = (struct eviction){ EVICTION_DUE, stay_s > (INT64_MAX - now_ns) / NS_PER_S ? INT64_MAX : now_ns + stay_s * NS_PER_S };
		return plan;
	}
	plan.evict = true;
	plan.next = (struct eviction){ EVICTION_DONE, 0 };
	return plan;
}
