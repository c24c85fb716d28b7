/* cron_job_plan: when a CronJob is due, what its Jobs look like, and which old ones go. Pure. */
#ifndef C8S_CONTROLLERS_CRON_JOB_PLAN_H
#define C8S_CONTROLLERS_CRON_JOB_PLAN_H

#include "codec/val.h"
#include "controllers/cron_schedule.h"

#define CRON_JOB_TIME "batch.kubernetes.io/cronjob-scheduled-timestamp"

enum cron_missed { CRON_MISSED_NONE, CRON_MISSED_FEW, CRON_MISSED_MANY };

/*
 * The newest moment, in seconds since 1970, at which a Job should have been made and was not; 0: there is none. now_ns is the time of day.
 * -ERR_INVALID for a schedule that is never due. many: more than 100 were missed.
 */
int cron_job_due(struct val cron_job, const struct cron_schedule *s, int64_t now_ns, int64_t *ret_due, bool *ret_many, struct err *err);
/* Nanoseconds from now until it should be looked at again: the next time, and 100 ms for clocks that differ. */
int64_t cron_job_wait_ns(struct val cron_job, const struct cron_schedule *s, int64_t now_ns);
/* spec.startingDeadlineSeconds has passed since it was due. */
bool cron_job_is_late(struct val cron_job, int64_t due, int64_t now_ns);

/* "<name>-<minutes since 1970>" */
str cron_job_name(struct arena *a, struct val cron_job, int64_t due);
/* The Job for that moment, owned by the CronJob. zone: of spec.timeZone, for the annotation. */
struct val cron_job_make(struct arena *a, struct val cron_job, int64_t due, const struct time_zone *zone);

/* Of the list of Jobs those that are more than the limits of history allow, the oldest first; a list. */
struct val cron_job_outdated(struct arena *a, struct val cron_job, struct val jobs);

/* The condition type that ended a Job: "Complete" or "Failed"; "": it runs. */
str cron_job_end(struct val job);

/* status.active with or without a Job of that uid, and whether it is there. */
bool cron_job_is_active(struct val cron_job, str uid);
struct val cron_job_without_active(struct arena *a, struct val cron_job, str uid);
struct val cron_job_with_active(struct arena *a, struct val cron_job, struct val job);

/* "Sun, 15 Nov 2026 21:00:00 +0000" */
str cron_job_time_text(struct arena *a, int64_t seconds);

#endif
