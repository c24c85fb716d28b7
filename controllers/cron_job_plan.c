#include "controllers/cron_job_plan.h"

#include <stdlib.h>

#include "base/clock.h"
#include "codec/atoms.h"
#include "controllers/labels.h"
#include "controllers/moment.h"
#include "controllers/owner.h"

enum { MANY = 100, DAY_S = 86400 };

/* ---- when ---- */

struct missed {
	int64_t since_ns;       /* the last time it ran, or began to exist; not before the deadline */
	int64_t recent;         /* 0: none */
	enum cron_missed how;
};

static int find_missed(struct val cron_job, const struct cron_schedule *s, int64_t now_ns, bool with_deadline, struct missed *ret, struct err *err)
{
	struct val deadline = val_get(cron_job, spec, startingDeadlineSeconds), last = val_get(cron_job, status, lastScheduleTime);

	*ret = (struct missed){ .since_ns = moment_of(val_exists(last) ? last : val_get(cron_job, metadata, creationTimestamp)) };
	if (with_deadline && val_exists(deadline))
		ret->since_ns = MAX(ret->since_ns, now_ns - moment_seconds(deadline));
	int64_t now = now_ns / NS_PER_S;
	int64_t first = cron_schedule_next(s, ret->since_ns / NS_PER_S), second = cron_schedule_next(s, first);
	if (now < first)
		return 0;
	if (now < second) {
		ret->recent = first;
		return 0;
	}
	int64_t between = second - first;
	if (between < 1)
		return err_set(err, ERR_INVALID, "time difference between two schedules is less than 1 second");
	/* A rough count, by the distance of the first two; the exact moment is then looked for from shortly before now. */
	int64_t n = (now - first) / between + 1;
	for (int64_t t = cron_schedule_next(s, first + (n - 2) * between); t && t <= now; t = cron_schedule_next(s, t))
		ret->recent = t;
	ret->how = n > MANY ? CRON_MISSED_MANY : CRON_MISSED_FEW;
	return 0;
}

int cron_job_due(struct val cron_job, const struct cron_schedule *s, int64_t now_ns, int64_t *ret_due, bool *ret_many, struct err *err)
{
	struct missed m;
	int r = find_missed(cron_job, s, now_ns, true, &m, err);

	*ret_due = r < 0 ? 0 : m.recent;
	*ret_many = *ret_due && m.how == CRON_MISSED_MANY;
	return r;
}

int64_t cron_job_wait_ns(struct val cron_job, const struct cron_schedule *s, int64_t now_ns)
{
	struct missed m;
	int64_t from;

	if (find_missed(cron_job, s, now_ns, false, &m, NULL) < 0 || (!m.recent && m.how != CRON_MISSED_NONE))
		from = now_ns / NS_PER_S;
	else
		from = m.recent ? m.recent : m.since_ns / NS_PER_S;
	int64_t next = cron_schedule_next(s, from);
	return next ? next * NS_PER_S + 100 * NS_PER_MS - now_ns : DAY_S * NS_PER_S;
}

bool cron_job_is_late(struct val cron_job, int64_t due, int64_t now_ns)
{
	struct val deadline = val_get(cron_job, spec, startingDeadlineSeconds);
	return val_exists(deadline) && due * NS_PER_S + moment_seconds(deadline) < now_ns;
}

str cron_job_time_text(struct arena *a, int64_t seconds)
{
	static const char *const days[] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	struct civil c = civil_of_seconds(seconds);
	return arena_printf(a, "%s, %02u %s %04lld %02u:%02u:%02u +0000", days[(seconds / DAY_S % 7 + 7) % 7], c.day, months[c.month - 1],
			    (long long)c.year, c.hour, c.minute, c.second);
}

/* ---- Jobs ---- */

str cron_job_name(struct arena *a, struct val cron_job, int64_t due)
{
	return arena_printf(a, STR_FMT "-%lld", STR_ARG(val_str(cron_job, metadata, name)), (long long)(due / 60));
}

/* RFC 3339, with the offset of the zone. */
static str local_text(struct arena *a, const struct time_zone *zone, int64_t seconds)
{
	struct civil c = time_zone_civil(zone, seconds);
	int64_t offset = time_zone_offset(zone, seconds) / 60, size = offset < 0 ? -offset : offset;
	str text = arena_printf(a, "%04lld-%02u-%02uT%02u:%02u:%02u", (long long)c.year, c.month, c.day, c.hour, c.minute, c.second);
	if (offset == 0)
		return arena_join(a, text, STR("Z"));
	return arena_printf(a, STR_FMT "%c%02lld:%02lld", STR_ARG(text), offset < 0 ? '-' : '+', (long long)(size / 60), (long long)(size % 60));
}

struct val cron_job_make(struct arena *a, struct val cron_job, int64_t due, const struct time_zone *zone)
{
	struct val template = val_get(cron_job, spec, jobTemplate), labels = val_get(template, metadata, labels);
	struct val annotations = labels_put(a, val_get(template, metadata, annotations), STR(CRON_JOB_TIME), VAL_STR(local_text(a, zone, due)));
	struct val metadata = OBJECT(a, F(name, VAL_STR(cron_job_name(a, cron_job, due))), F(namespace, val_get(cron_job, metadata, namespace)),
				     F(labels, labels), F(annotations, annotations),
				     F(ownerReferences, LIST(a, owner_ref(a, cron_job, "batch/v1", "CronJob"))));
	return OBJECT(a, F(apiVersion, VAL_LIT("batch/v1")), F(kind, VAL_LIT("Job")), F(metadata, metadata), F(spec, val_get(template, spec)));
}

str cron_job_end(struct val job)
{
	VAL_EACH(c, val_get(job, status, conditions)) {
		str type = val_str(*c, type);
		if ((str_eq(type, STR("Complete")) || str_eq(type, STR("Failed"))) && str_eq(val_str(*c, status), STR("True")))
			return type;
	}
	return STR_NONE;
}

/* ---- history ---- */

static int by_start(const void *a, const void *b)
{
	struct val x = *(const struct val *)a, y = *(const struct val *)b;
	int64_t x_ns = moment_of(val_get(x, status, startTime)), y_ns = moment_of(val_get(y, status, startTime));

	if ((x_ns == 0) != (y_ns == 0))
		return x_ns == 0 ? 1 : -1;
	if (x_ns != y_ns)
		return x_ns < y_ns ? -1 : 1;
	str p = val_str(x, metadata, name), q = val_str(y, metadata, name);
	int diff = memcmp(p.p, q.p, MIN(p.n, q.n));
	return diff ? diff : p.n < q.n ? -1 : p.n > q.n;
}

static void add_outdated(struct arena *a, struct val_builder *out, struct val jobs, const char *end, struct val limit)
{
	struct val *found = ARENA_ARRAY(a, struct val, val_len(jobs) + 1);
	int64_t n = 0;

	if (!val_exists(limit))
		return;
	VAL_EACH(j, jobs)
		if (str_eq(cron_job_end(*j), str_of(end)))
			found[n++] = *j;
	qsort(found, (size_t)n, sizeof(*found), by_start);
	for (int64_t i = 0; i < n - val_as_int(limit); i++)
		val_add_item(out, found[i]);
}

struct val cron_job_outdated(struct arena *a, struct val cron_job, struct val jobs)
{
	struct val_builder out = val_builder(a);

	add_outdated(a, &out, jobs, "Complete", val_get(cron_job, spec, successfulJobsHistoryLimit));
	add_outdated(a, &out, jobs, "Failed", val_get(cron_job, spec, failedJobsHistoryLimit));
	return val_end_list(&out);
}

/* ---- the list of active ones ---- */

bool cron_job_is_active(struct val cron_job, str uid)
{
	VAL_EACH(j, val_get(cron_job, status, active))
		if (str_eq(val_str(*j, uid), uid))
			return true;
	return false;
}

struct val cron_job_without_active(struct arena *a, struct val cron_job, str uid)
{
	struct val_builder out = val_builder(a);

	VAL_EACH(j, val_get(cron_job, status, active))
		if (!str_eq(val_str(*j, uid), uid))
			val_add_item(&out, *j);
	struct val list = val_end_list(&out);
	return val_with(a, cron_job, val_len(list) ? list : VAL_EMPTY, status, active);
}

struct val cron_job_with_active(struct arena *a, struct val cron_job, struct val job)
{
	struct val m = val_get(job, metadata);
	struct val ref = OBJECT(a, F(kind, VAL_LIT("Job")), F(namespace, val_get(m, namespace)), F(name, val_get(m, name)), F(uid, val_get(m, uid)),
				F(apiVersion, VAL_LIT("batch/v1")), F(resourceVersion, val_get(m, resourceVersion)));
	return val_with(a, cron_job, val_list_append(a, val_get(cron_job, status, active), ref), status, active);
}
