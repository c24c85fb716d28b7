/*
 * job_policy: what a finished pod means to its Job: pod failure policy, success policy, and when and how long to wait after failures. Pure.
 */
#ifndef C8S_CONTROLLERS_JOB_POLICY_H
#define C8S_CONTROLLERS_JOB_POLICY_H

#include "codec/val.h"
#include "controllers/job_indexes.h"

enum job_failure { JOB_FAILURE_COUNT, JOB_FAILURE_IGNORE, JOB_FAILURE_FAIL_INDEX, JOB_FAILURE_FAIL_JOB };

/* What spec.podFailurePolicy says of a failed pod. With JOB_FAILURE_FAIL_JOB *ret_message (may be NULL) says why. */
enum job_failure job_failure_match(struct arena *a, struct val policy, struct val pod, str *ret_message);
/* Whether a rule of spec.successPolicy is met; *ret_message then says which. */
bool job_success_match(struct arena *a, struct val policy, int64_t completions, const struct job_indexes *succeeded, str *ret_message);

/* When a pod finished: its containers, the condition Ready, its deletion, else its creation. */
int64_t job_pod_finished_ns(struct val pod);

enum { JOB_BACKOFF_S = 10, JOB_BACKOFF_MAX_S = 600 };

/* Failures since the last success, for the pace of new pods. Lives as long as the Job does, in memory alone. */
struct job_backoff {
	int64_t failures, last_ns;
};

/* After these pods have finished since. */
struct job_backoff job_backoff_after(struct job_backoff old, const int64_t *succeeded_ns, size_t n_succeeded, const int64_t *failed_ns,
				     size_t n_failed);
/* How long no pod must be made yet; 0: now. */
int64_t job_backoff_left_ns(struct job_backoff b, int64_t now_ns);

#endif
