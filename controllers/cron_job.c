/*
 * CronJobs. A key comes back at the next time of its schedule; what was missed meanwhile is found by looking from the last time on, and only
 * the newest of it is made up for. The name of a Job is made of its time, so that none is made twice.
 */
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/cron_job_plan.h"
#include "controllers/moment.h"
#include "controllers/owner.h"

struct cron_jobs {
	struct informer *cron_jobs, *jobs;
};

/* One sync. */
struct work {
	struct controller *c;
	struct arena *arena;
	struct val cron_job;        /* with the status in the making */
	struct val jobs;
	bool write;                 /* the status has changed */
	int64_t again_ns;           /* 0: not before something changes */
};

static void job_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	if (object)
		controller_key_owner(c, object, "CronJob");
	if (old && (!object || !val_equal(owner_controller(old->val), owner_controller(object->val))))
		controller_key_owner(c, old, "CronJob");
}

/* With another schedule what was missed by it before does not count: it is looked at when it is due next. */
static void cron_job_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct cron_schedule s;
	str key = object_key(&a, (object ? object : old)->val);

	if (!old || !object || (val_equal(val_get(old->val, spec, schedule), val_get(object->val, spec, schedule)) &&
				val_equal(val_get(old->val, spec, timeZone), val_get(object->val, spec, timeZone)))) {
		controller_add(c, key);
		return;
	}
	str text = val_str(object->val, spec, schedule);
	if (cron_schedule_parse(&a, text, val_str(object->val, spec, timeZone), &s, NULL) < 0)
		controller_event(c, object->val, true, "UnParseableCronJobSchedule", "unparseable schedule for cronjob: " STR_FMT, STR_ARG(text));
	else
		controller_add_after(c, key, moment_wait_ms(cron_job_wait_ns(object->val, &s, clock_wall_ns())));
}

/* ---- Jobs ---- */

/* (suspends) Deletes a Job and takes it off the list. */
static int delete_job(struct work *w, struct val job, struct err *err)
{
	const struct client_delete_options o = { .grace_s = -1, .propagation = STR("Background") };
	str name = val_str(job, metadata, name);
	int r = client_delete(w->c->client, TYPE(batch_v1, Job), val_str(job, metadata, namespace), name, &o, err);

	if (r < 0) {
		controller_event(w->c, w->cron_job, true, "FailedDelete", "Deleted job: %s", err->msg);
		return r;
	}
	w->cron_job = cron_job_without_active(w->arena, w->cron_job, val_str(job, metadata, uid));
	w->write = true;
	controller_event(w->c, w->cron_job, false, "SuccessfulDelete", "Deleted job " STR_FMT, STR_ARG(name));
	return 0;
}

static void delete_outdated(struct work *w)
{
	struct err ignored = ERR_INIT;

	VAL_EACH(j, cron_job_outdated(w->arena, w->cron_job, w->jobs))
		(void)delete_job(w, *j, &ignored);
}

/* (suspends) An unfinished Job that is ours but not on our list: the list may have been written a moment ago. */
static int look_at_unknown(struct work *w, struct val job, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *fresh = NULL;
	struct val m = val_get(w->cron_job, metadata);
	int r = client_get(w->c->client, TYPE(batch_v1, CronJob), val_str(m, namespace), val_str(m, name), &fresh, err);

	if (r < 0)
		return r;
	if (cron_job_is_active(fresh->val, val_str(job, metadata, uid)))
		w->cron_job = val_copy(w->arena, fresh->val);
	else
		controller_event(w->c, w->cron_job, true, "UnexpectedJob", "Saw a job that the controller did not create or forgot: " STR_FMT,
				 STR_ARG(val_str(job, metadata, name)));
	return 0;
}

static void look_at_finished(struct work *w, struct val job)
{
	str end = cron_job_end(job), uid = val_str(job, metadata, uid);
	struct val done = val_get(job, status, completionTime);

	if (cron_job_is_active(w->cron_job, uid)) {
		w->cron_job = cron_job_without_active(w->arena, w->cron_job, uid);
		w->write = true;
		controller_event(w->c, w->cron_job, false, "SawCompletedJob", "Saw completed job: " STR_FMT ", condition: " STR_FMT,
				 STR_ARG(val_str(job, metadata, name)), STR_ARG(end));
	}
	if (str_eq(end, STR("Complete")) && moment_of(done) > moment_of(val_get(w->cron_job, status, lastSuccessfulTime))) {
		w->cron_job = val_with(w->arena, w->cron_job, done, status, lastSuccessfulTime);
		w->write = true;
	}
}

static bool is_among(struct val jobs, str uid)
{
	VAL_EACH(j, jobs)
		if (str_eq(val_str(*j, metadata, uid), uid))
			return true;
	return false;
}

/* (suspends) Jobs of the list that do not exist any more go. The copy may be behind: the server is asked. */
static int forget_missing(struct work *w, struct err *err)
{
	VAL_EACH(j, val_get(w->cron_job, status, active)) {
		CLEANUP(frozen_unrefp) struct frozen *job = NULL;
		if (is_among(w->jobs, val_str(*j, uid)))
			continue;
		int r = client_get(w->c->client, TYPE(batch_v1, Job), val_str(*j, namespace), val_str(*j, name), &job, err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return r;
		if (r == 0)
			continue;
		controller_event(w->c, w->cron_job, false, "MissingJob", "Active job went missing: " STR_FMT, STR_ARG(val_str(*j, name)));
		w->cron_job = cron_job_without_active(w->arena, w->cron_job, val_str(*j, uid));
		w->write = true;
	}
	return 0;
}

static int look_at_jobs(struct work *w, struct err *err)
{
	int r;

	VAL_EACH(j, w->jobs) {
		if (cron_job_end(*j).n)
			look_at_finished(w, *j);
		else if (!cron_job_is_active(w->cron_job, val_str(*j, metadata, uid)) && (r = look_at_unknown(w, *j, err)) < 0)
			return r;
	}
	return forget_missing(w, err);
}

/* (suspends) ConcurrencyPolicy Replace: those that still run go first. */
static int replace_active(struct work *w, struct err *err)
{
	VAL_EACH(j, val_get(w->cron_job, status, active)) {
		CLEANUP(frozen_unrefp) struct frozen *job = NULL;
		int r = client_get(w->c->client, TYPE(batch_v1, Job), val_str(*j, namespace), val_str(*j, name), &job, err);
		if (r < 0) {
			controller_event(w->c, w->cron_job, true, "FailedGet", "Get job: %s", err->msg);
			return r;
		}
		if ((r = delete_job(w, job->val, err)) < 0)
			return err_wrap(err, r, "could not replace job " STR_FMT "/" STR_FMT, STR_ARG(val_str(*j, namespace)),
					STR_ARG(val_str(*j, name)));
	}
	return 0;
}

/* (suspends) 1: there is a Job of that time that the list lacks, new or from a try that did not get further; 0: nothing to add. */
static int make_job(struct work *w, struct val job, struct frozen **ret, struct err *err)
{
	struct val m = val_get(job, metadata);
	int r = client_create(w->c->client, TYPE(batch_v1, Job), job, NULL, ret, err);

	if (r == -ERR_ALREADY_EXISTS) {
		if ((r = client_get(w->c->client, TYPE(batch_v1, Job), val_str(m, namespace), val_str(m, name), ret, err)) < 0)
			return r;
		return owner_is((*ret)->val, w->cron_job) && !cron_job_is_active(w->cron_job, val_str((*ret)->val, metadata, uid));
	}
	if (r < 0) {
		if (!error_is_namespace_ending(err))
			controller_event(w->c, w->cron_job, true, "FailedCreate", "Error creating job: %s", err->msg);
		return r;
	}
	controller_event(w->c, w->cron_job, false, "SuccessfulCreate", "Created job " STR_FMT, STR_ARG(val_str((*ret)->val, metadata, name)));
	return 1;
}

/* ---- one look ---- */

/* Whether a Job is to be made for that time; events tell why not. */
static bool may_start(struct work *w, int64_t due, int64_t now_ns)
{
	struct val active = val_get(w->cron_job, status, active);
	str name = cron_job_name(w->arena, w->cron_job, due);

	if (cron_job_is_late(w->cron_job, due, now_ns)) {
		controller_event(w->c, w->cron_job, true, "MissSchedule", "Missed scheduled time to start a job: " STR_FMT,
				 STR_ARG(cron_job_time_text(w->arena, due)));
		return false;
	}
	VAL_EACH(j, active)
		if (str_eq(val_str(*j, name), name))
			return false;
	if (moment_of(val_get(w->cron_job, status, lastScheduleTime)) == due * NS_PER_S)
		return false;
	if (str_eq(val_str(w->cron_job, spec, concurrencyPolicy), STR("Forbid")) && val_len(active)) {
		controller_event(w->c, w->cron_job, false, "JobAlreadyActive",
				 "Not starting job because prior execution is running and concurrency policy is Forbid");
		return false;
	}
	return true;
}

static int start_job(struct work *w, int64_t due, const struct time_zone *zone, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *job = NULL;
	int r = 0;

	if (str_eq(val_str(w->cron_job, spec, concurrencyPolicy), STR("Replace")) && (r = replace_active(w, err)) < 0)
		return r;
	if ((r = make_job(w, cron_job_make(w->arena, w->cron_job, due, zone), &job, err)) <= 0)
		return r;
	w->cron_job = cron_job_with_active(w->arena, w->cron_job, val_copy(w->arena, job->val));
	w->cron_job = val_with(w->arena, w->cron_job, moment_time(w->arena, due * NS_PER_S), status, lastScheduleTime);
	w->write = true;
	return 1;
}

/* The schedule; false: there is none that could be followed, and the user has been told. */
static bool read_schedule(struct work *w, struct cron_schedule *s, const struct time_zone **zone)
{
	str text = val_str(w->cron_job, spec, schedule), name = val_str(w->cron_job, spec, timeZone);
	struct err err = ERR_INIT;

	if (time_zone_load(w->arena, name, zone, &err) < 0) {
		controller_event(w->c, w->cron_job, true, "UnknownTimeZone", "invalid timeZone: \"" STR_FMT "\": %s", STR_ARG(name), err.msg);
		return false;
	}
	if (val_bool(w->cron_job, spec, suspend))
		return false;
	if (str_find(text, STR("TZ")) >= 0)
		controller_event(w->c, w->cron_job, true, "UnsupportedSchedule",
				 "CRON_TZ or TZ used in schedule \"" STR_FMT "\" is not officially supported, see "
				 "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", STR_ARG(text));
	if (cron_schedule_parse(w->arena, text, name, s, &err) < 0) {
		controller_event(w->c, w->cron_job, true, "UnparseableSchedule", "unparseable schedule: \"" STR_FMT "\" : %s", STR_ARG(text), err.msg);
		return false;
	}
	return true;
}

static int follow_schedule(struct work *w, struct err *err)
{
	struct cron_schedule s;
	const struct time_zone *zone;
	int64_t due, now_ns = clock_wall_ns();
	bool many;
	struct err bad = ERR_INIT;

	if (val_has(w->cron_job, metadata, deletionTimestamp) || !read_schedule(w, &s, &zone))
		return 0;
	if (cron_job_due(w->cron_job, &s, now_ns, &due, &many, &bad) < 0) {
		controller_event(w->c, w->cron_job, true, "InvalidSchedule", "invalid schedule: " STR_FMT " : %s",
				 STR_ARG(val_str(w->cron_job, spec, schedule)), bad.msg);
		return 0;
	}
	if (many)
		controller_event(w->c, w->cron_job, true, "TooManyMissedTimes",
				 "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew");
	if (due && may_start(w, due, now_ns)) {
		int r = start_job(w, due, zone, err);
		if (r <= 0)
			return r;
	}
	w->again_ns = cron_job_wait_ns(w->cron_job, &s, now_ns);
	return 0;
}

static int cron_job_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct cron_jobs *s = c->state;
	struct frozen *cron_job = informer_get(s->cron_jobs, key);
	struct val_builder jobs = val_builder(a);

	if (!cron_job)
		return 0;
	struct work w = { .c = c, .arena = a, .cron_job = val_copy(a, controller_latest(c, cron_job)->val) };
	INFORMER_EACH(job, informer_each_indexed(s->jobs, "owner", val_str(w.cron_job, metadata, uid)))
		val_add_item(&jobs, val_copy(a, job->val));
	w.jobs = val_end_list(&jobs);
	delete_outdated(&w);
	int r = look_at_jobs(&w, err);
	if (r >= 0)
		r = follow_schedule(&w, err);
	struct err write_err = ERR_INIT;
	int written = w.write ? controller_write(c, TYPE(batch_v1, CronJob), w.cron_job, "status", &write_err) : 0;
	if (written < 0) {
		*err = write_err;
		return written;
	}
	if (r >= 0 && w.again_ns)
		controller_add_after(c, key, moment_wait_ms(w.again_ns));
	return r;
}

static void cron_job_stop(struct controller *c) { free(c->state); }

static int cron_job_start(struct controller *c, struct err *err)
{
	struct cron_jobs *s = mem_zalloc(sizeof(*s));

	(void)err;
	c->state = s;
	c->sync = cron_job_sync;
	s->cron_jobs = controller_informer(c, TYPE(batch_v1, CronJob));
	s->jobs = controller_informer(c, TYPE(batch_v1, Job));
	informer_index(s->jobs, "owner", informer_by_owner);
	controller_watch(c, s->cron_jobs, cron_job_changed);
	controller_watch(c, s->jobs, job_changed);
	return 0;
}

const struct controller_kind controller_cron_job = { .name = "cronjob-controller", .start = cron_job_start, .workers = 5, .stop = cron_job_stop };
