/* disruption_plan: the status of a PodDisruptionBudget, and conditions of pods that were to be disrupted and were not. Pure. */
#ifndef C8S_CONTROLLERS_DISRUPTION_PLAN_H
#define C8S_CONTROLLERS_DISRUPTION_PLAN_H

#include "codec/val.h"

/* How long an evicted pod is expected to go, and a condition DisruptionTarget to be followed by the deletion of the pod. */
enum { DISRUPTION_TIMEOUT_S = 120 };

/* Whether the budget is relative to how many pods there should be, which their controllers say. */
bool disruption_needs_scale(struct val pdb);
/* How many pods are expected and how many of them must be healthy. scale: what their controllers say, if it is needed. */
int disruption_expect(struct val pdb, int64_t n_pods, int64_t scale, int64_t *ret_expected, int64_t *ret_healthy, struct err *err);

struct disruption_view {
	struct val pdb, pods;
	int64_t expected, healthy;   /* from disruption_expect */
	int64_t now_ns;
};

/*
 * The status. *ret_again_ns: look again after that time, 0: no need. *ret_kept: pods that should have been deleted by now and were not.
 */
struct val disruption_status(struct arena *a, const struct disruption_view *v, int64_t *ret_again_ns, struct val *ret_kept);
/* The status while it cannot be known: nothing may be disrupted. */
struct val disruption_failed_status(struct arena *a, struct val pdb, str why, int64_t now_ns);
/* VAL_NONE and an empty map, and the order of members, do not matter. */
bool disruption_status_differs(struct val pdb, struct val status);

/*
 * 1 with the nanoseconds after which the condition DisruptionTarget of a pod has to be taken back (0: now); 0: it has none, or rightly so.
 */
int disruption_is_stale(struct val pod, int64_t now_ns, int64_t *ret_wait_ns);
/* The pod with the condition taken back. */
struct val disruption_take_back(struct arena *a, struct val pod, int64_t now_ns);

/* A selector as Go prints it. */
str disruption_selector_text(struct arena *a, struct val selector);

#endif
