/* CronJobs: no time twice, as many at once as they allow, and no longer history than they want. */
#include <stdio.h>

#include "codec/atoms.h"
#include "controllers/cron_job_plan.h"
#include "controllers/owner.h"
#include "simulation/rules.h"

static bool is_over(struct val job) { return condition_is(job, "Complete", "True") || condition_is(job, "Failed", "True"); }

/* Jobs of this CronJob that run, those that are on their way out aside. */
static int64_t running(const struct rules *r, str uid)
{
	int64_t n = 0;
	str key;

	RULES_EACH(r, "jobs/", key, job)
		n += str_eq(val_str(owner_controller(job), uid), uid) && !is_over(job) && !val_has(job, metadata, deletionTimestamp);
	return n;
}

/* A Job that arrives when whoever has made it does not know of it any more: nothing can be said of that. */
void rules_check_cron(struct rules *r, str key, struct val old, struct val now)
{
	struct val owner = owner_controller(now);
	str time = val_as_str(val_find(val_get(now, metadata, annotations), STR(CRON_JOB_TIME))), uid = val_str(owner, uid);
	char what[64];

	if (r->late || !val_exists(now) || str_eq(val_str(old, metadata, uid), val_str(now, metadata, uid)) || !str_eq(val_str(owner, kind), STR("CronJob")))
		return;
	(void)snprintf(what, sizeof what, "ran " STR_FMT, STR_ARG(time));
	if (++*rules_fact(r, what, uid) > 1)
		rules_fail(r, "a CronJob runs twice at one time", key, STR_FMT, STR_ARG(time));
	struct val cron_job = rules_find(r, "cronjobs/" STR_FMT "/" STR_FMT, STR_ARG(val_str(now, metadata, namespace)), STR_ARG(val_str(owner, name)));
	if (str_eq(val_str(cron_job, spec, concurrencyPolicy), STR("Forbid")) && running(r, uid))
		rules_fail(r, "a CronJob runs two at once", key, "that it forbids");
}

/* Those on its list run; one that was made when the list could not be written need not be there. */
static bool list_is_right(const struct rules *r, struct val cron_job)
{
	VAL_EACH(ref, val_get(cron_job, status, active)) {
		struct val job = rules_find(r, "jobs/" STR_FMT "/" STR_FMT, STR_ARG(val_str(cron_job, metadata, namespace)), STR_ARG(val_str(*ref, name)));
		if (!str_eq(val_str(job, metadata, uid), val_str(*ref, uid)) || is_over(job))
			return false;
	}
	return true;
}

bool rules_cron_settled(const struct rules *r, struct buf *why)
{
	str key, at;

	RULES_EACH(r, "cronjobs/", key, cron_job) {
		int64_t good = 0, bad = 0;
		RULES_EACH(r, "jobs/", at, job) {
			if (!str_eq(val_str(owner_controller(job), uid), val_str(cron_job, metadata, uid)))
				continue;
			good += condition_is(job, "Complete", "True");
			bad += condition_is(job, "Failed", "True");
		}
		if (good > val_int(cron_job, spec, successfulJobsHistoryLimit) || bad > val_int(cron_job, spec, failedJobsHistoryLimit))
			return rules_complain(why, key, "its history is too long");
		if (!list_is_right(r, cron_job))
			return rules_complain(why, key, "it does not know what runs");
	}
	return true;
}
