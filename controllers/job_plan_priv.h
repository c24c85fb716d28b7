/* What the files of job_plan share. */
#ifndef C8S_CONTROLLERS_JOB_PLAN_PRIV_H
#define C8S_CONTROLLERS_JOB_PLAN_PRIV_H

#include "controllers/job_plan.h"

#define JOB_FAILURES "batch.kubernetes.io/job-index-failure-count"
#define JOB_IGNORED_FAILURES "batch.kubernetes.io/job-index-ignored-failure-count"

/* How often the index of a pod failed before it: failures that count, and those that the pod failure policy ignored. */
int64_t job_pod_failures(struct val pod);
int64_t job_pod_ignored_failures(struct val pod);
/* Look again after this time, or earlier when that was said before. */
void job_plan_again(struct job_plan *p, int64_t ns);
/* Fills p->remove: at least so many active pods, and those with a wrong or a repeated index. */
void job_plan_surplus(struct job_plan *p, int64_t at_least);

#endif
