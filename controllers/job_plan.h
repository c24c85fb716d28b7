/*
 * job_plan: what a Job needs next. The pods of a Job carry the finalizer batch.kubernetes.io/job-tracking until they are counted, so that none
 * is forgotten and none counted twice, whenever somebody stops in between. One look at a Job is therefore done in three steps, with calls to the
 * API server between them:
 *
 *	job_plan_make     counts, finds out whether the Job has come to its end, says which pods to delete or to make
 *	  the pods are deleted or made
 *	job_plan_account  says how many of that succeeded; the status with uncounted pods, interim conditions, and whose finalizers to remove
 *	  the status is written, finalizers are removed
 *	job_plan_settle   the status with these pods counted, and with the final condition
 *	  the status is written
 *
 * All three are pure and keep their memory in the arena of the plan.
 */
#ifndef C8S_CONTROLLERS_JOB_PLAN_H
#define C8S_CONTROLLERS_JOB_PLAN_H

#include "controllers/job_policy.h"

#define JOB_FINALIZER "batch.kubernetes.io/job-tracking"
#define JOB_INDEX "batch.kubernetes.io/job-completion-index"
#define JOB_CONTROLLER "kubernetes.io/job-controller"

/* Of one look: pods made or deleted, uids in status.uncountedTerminatedPods. */
enum { JOB_PODS_MAX = 500, JOB_UNCOUNTED_MAX = 500 };

struct job_view {
	struct val job, pods;
	bool expectations_met;
	int64_t now_ns;
	struct job_backoff backoff;              /* before this look */
	/* Whether the finalizer of this pod was removed, though the copy may not show it yet. */
	bool (*released)(void *arg, str uid);
	void *arg;
};

struct job_pod {
	struct val pod;
	str uid;
	int64_t index;                           /* -1: none */
	bool tracked;                            /* has the finalizer, and was not released */
	bool active, failed, succeeded;
};

/* A pod to be made: with its index (-1: none), and in the place of which failed one (VAL_NONE: none). */
struct job_new_pod {
	int64_t index;
	struct val replaced;
};

/* The condition that ends a Job; type NULL: it goes on. */
struct job_finish {
	const char *type;
	str reason, message;
};

struct job_plan {
	struct arena *arena;
	struct job_view view;
	bool indexed, per_index, suspended, only_failed;
	int64_t completions;                     /* -1: not given */
	struct job_pod *pods;
	size_t n_pods, n_active;
	int64_t ready, terminating, active, succeeded, failed;
	struct job_indexes before, done, lost;   /* completed as the status says, and now; failed */
	struct val *delayed;                     /* by place of struct job_pod: see keeps_finalizer */
	size_t n_delayed;
	struct job_backoff backoff;              /* to be kept once the status is written */
	struct job_finish finish;
	struct val status;

	/* ---- after job_plan_make ---- */
	struct val *remove;                      /* pods to be deleted */
	size_t n_remove;
	bool remove_keeps_finalizer;             /* the Job ends: they are yet to be counted */
	struct job_new_pod *create;
	size_t n_create;
	bool managed;                            /* pods were looked after; else expectations are open, or the Job goes */
	int64_t again_ns;                        /* look again after that time; 0: no need */

	/* ---- after job_plan_account ---- */
	bool write;                              /* the status has to be written, now */
	const char *told;                        /* "Suspended", "Resumed": event; NULL: none */
	struct job_pod **release;                /* whose finalizers are to be removed */
	size_t n_release;
	bool more;                               /* there were too many for one look */

	/* ---- after job_plan_settle ---- */
	bool finished;                           /* with finish.type */
};

bool job_is_finished(struct val job);
bool job_is_managed_by_us(struct val job);
bool job_pod_is_tracked(struct val pod);
int64_t job_pod_index(struct val pod);

void job_plan_make(struct arena *a, const struct job_view *v, struct job_plan *ret);
/* removed: pods deleted, ready of these were ready; made: pods created. */
void job_plan_account(struct job_plan *p, size_t removed, size_t ready, size_t made);
/* released[i]: the finalizer of release[i] is gone. p->status is the one that was written. */
void job_plan_settle(struct job_plan *p, const bool *released);

/* The pod for n, without an owner: from the Job's template, with finalizer, and index, host name and failure counts of indexed Jobs. */
struct val job_pod_template(struct arena *a, struct val job, const struct job_new_pod *n);
/* metadata.generateName of that; "" for the usual one. */
str job_pod_generate_name(struct arena *a, struct val job, const struct job_new_pod *n);

#endif
