#include "base/clock.h"
#include "codec/time.h"
#include "controllers/cron_job_plan.h"
#include "controllers/moment.h"
#include "controllers/plan_testing.h"

static int64_t seconds(const char *text)
{
	struct timestamp t;
	if (time_parse(str_of(text), &t, NULL) < 0)
		fail_msg("no time: %s", text);
	return t.seconds;
}

static str shown(struct arena *a, int64_t s) { return s ? val_as_str(moment_time(a, s * NS_PER_S)) : STR("never"); }

TEST(cron_schedule_next)
{
	static const struct { const char *schedule, *zone, *after, *want; } t[] = {
		{ "* * * * *", "UTC", "2026-11-15T20:54:33Z", "2026-11-15T20:55:00Z" },
		{ "* * * * *", "UTC", "2026-11-15T20:54:00Z", "2026-11-15T20:55:00Z" },
		{ "*/15 * * * *", "UTC", "2026-12-31T23:50:00Z", "2027-01-01T00:00:00Z" },
		{ "30 6-16/4 * * 1-5", "UTC", "2026-11-13T14:30:00Z", "2026-11-16T06:30:00Z" },
		{ "0 0 13 * 5", "UTC", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z" },
		{ "0 0 29 2 *", "UTC", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z" },
		{ "59 23 31 2 *", "UTC", "2026-03-01T00:00:00Z", "never" },
		{ "@hourly", "UTC", "2026-11-15T20:54:33Z", "2026-11-15T21:00:00Z" },
		{ "@every 90s", "UTC", "2026-11-15T20:54:33Z", "2026-11-15T20:56:03Z" },
		{ "@yearly", "UTC", "2026-11-15T20:54:33Z", "2027-01-01T00:00:00Z" },
		{ "0 9 * * *", "Europe/Berlin", "2026-07-01T08:00:00Z", "2026-07-02T07:00:00Z" },
		{ "0 9 * * *", "Europe/Berlin", "2026-12-01T08:00:00Z", "2026-12-02T08:00:00Z" },
		{ "TZ=Asia/Kathmandu 0 0 * * *", "", "2026-11-15T00:00:00Z", "2026-11-15T18:15:00Z" },
		/* 02:30 does not exist on the day that summer time begins, and 02:30 comes twice on the day that it ends */
		{ "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z" },
		{ "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z" },
		{ "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z" },
		/* the day that summer time begins has no midnight */
		{ "0 12 * * 1", "Asia/Beirut", "2027-03-26T12:00:00Z", "2027-03-29T09:00:00Z" },
		{ "0 12 * * 1", "America/Havana", "2027-03-12T12:00:00Z", "2027-03-15T16:00:00Z" },
		/* beyond the tables of the file: its rule */
		{ "0 12 1 7 *", "America/New_York", "2080-01-01T00:00:00Z", "2080-07-01T16:00:00Z" },
		{ "0 12 1 1 *", "Australia/Sydney", "2080-06-01T00:00:00Z", "2081-01-01T01:00:00Z" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct cron_schedule s;
		struct err err = ERR_INIT;
		if (!time_zone_exists(str_of("Europe/Berlin")) && strcmp(t[i].zone, "UTC") != 0)
			continue;
		CHECK_ROW(i, cron_schedule_parse(&a, str_of(t[i].schedule), str_of(t[i].zone), &s, &err) == 0);
		CHECK_STR_ROW(i, shown(&a, cron_schedule_next(&s, seconds(t[i].after))), t[i].want);
	}
}

TEST(cron_job_due)
{
	static const struct {
		const char *schedule, *last, *deadline, *now, *due;
		bool many;
		int64_t wait_s; /* until the next look */
	} t[] = {
		{ "0 * * * *", "10:00:00", "", "10:30:00", "never", false, 1800 },
		{ "0 * * * *", "10:00:00", "", "11:00:10", "2026-11-15T11:00:00Z", false, 3590 },
		{ "0 * * * *", "10:00:00", "", "13:30:00", "2026-11-15T13:00:00Z", false, 1800 },
		{ "0 * * * *", "10:00:00", ",'startingDeadlineSeconds':60", "13:30:00", "never", false, 1800 },
		{ "0 * * * *", "10:00:00", ",'startingDeadlineSeconds':60", "13:00:30", "2026-11-15T13:00:00Z", false, 3570 },
		{ "* * * * *", "10:00:00", "", "13:30:30", "2026-11-15T13:30:00Z", true, 30 },
		{ "@every 40s", "10:00:00", "", "10:02:10", "2026-11-15T10:02:00Z", false, 30 },
		/* between uneven times the rough count may miss the last one, as in 1.36 */
		{ "30 6-16/4 * * *", "06:30:00", "", "23:00:00", "never", false, 27000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct cron_schedule s;
		int64_t due;
		bool many;
		str text = arena_printf(&a, "{'metadata':{'creationTimestamp':'2026-11-01T00:00:00Z'},'spec':{'schedule':'%s'%s},'status':{'lastScheduleTime':'2026-11-15T%sZ'}}",
					t[i].schedule, t[i].deadline, t[i].last);
		str now_text = arena_printf(&a, "2026-11-15T%sZ", t[i].now);
		struct val job = tree(&a, text.p);
		int64_t now_ns = seconds(now_text.p) * NS_PER_S;
		CHECK_ROW(i, cron_schedule_parse(&a, str_of(t[i].schedule), STR("UTC"), &s, NULL) == 0);
		CHECK_ROW(i, cron_job_due(job, &s, now_ns, &due, &many, NULL) == 0);
		CHECK_STR_ROW(i, shown(&a, due), t[i].due);
		CHECK_ROW(i, many == t[i].many);
		if (due) /* as after the Job was made */
			job = val_with(&a, job, moment_time(&a, due * NS_PER_S), status, lastScheduleTime);
		CHECK_ROW(i, cron_job_wait_ns(job, &s, now_ns) == t[i].wait_s * NS_PER_S + 100 * NS_PER_MS);
	}
}

TEST(cron_job_never_due)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct cron_schedule s;
	struct err err = ERR_INIT;
	struct val job = tree(&a, "{'metadata':{'creationTimestamp':'2026-11-01T00:00:00Z'}}");
	int64_t due;
	bool many;

	CHECK_INT(cron_schedule_parse(&a, STR("59 23 31 2 *"), STR("UTC"), &s, NULL), 0);
	CHECK_INT(cron_job_due(job, &s, seconds("2026-11-15T00:00:00Z") * NS_PER_S, &due, &many, &err), -ERR_INVALID);
	CHECK_STR(err_str(&err), "time difference between two schedules is less than 1 second");
}

TEST(cron_job_object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val cron_job = tree(&a, "{'metadata':{'name':'cj','namespace':'ns','uid':'u'},'spec':{'jobTemplate':{'metadata':{'labels':{'x':'y'}},'spec':{'backoffLimit':1}}}}");
	const struct time_zone *utc;
	int64_t due = seconds("2026-11-15T21:00:00Z");

	CHECK_INT(time_zone_load(&a, STR(""), &utc, NULL), 0);
	CHECK_STR(tree_text(&a, cron_job_make(&a, cron_job, due, utc)),
		  "{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'cj-29912940','namespace':'ns','labels':{'x':'y'},"
		  "'annotations':{'batch.kubernetes.io/cronjob-scheduled-timestamp':'2026-11-15T21:00:00Z'},"
		  "'ownerReferences':[{'apiVersion':'batch/v1','kind':'CronJob','name':'cj','uid':'u','controller':true,'blockOwnerDeletion':true}]},"
		  "'spec':{'backoffLimit':1}}");
	CHECK_STR(cron_job_time_text(&a, due), "Sun, 15 Nov 2026 21:00:00 +0000");
}

TEST(cron_job_history)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
#define JOB(name, start, end) "{'metadata':{'name':'" name "'},'status':{'startTime':'2026-11-15T" start "Z','conditions':[{'type':'" end "','status':'True'}]}}"
	struct val jobs = tree(&a, "[" JOB("c", "10:02:00", "Complete") "," JOB("a", "10:00:00", "Complete") "," JOB("b", "10:01:00", "Failed") ","
				       JOB("d", "10:03:00", "Suspended") "," JOB("e", "10:04:00", "Complete") "]");
	static const struct { const char *spec, *want; } t[] = {
		{ "{'spec':{'successfulJobsHistoryLimit':1,'failedJobsHistoryLimit':0}}", "acb" },
		{ "{'spec':{'successfulJobsHistoryLimit':3,'failedJobsHistoryLimit':1}}", "" },
		{ "{'spec':{'successfulJobsHistoryLimit':2}}", "a" },
		{ "{'spec':{}}", "" },
	};
#undef JOB

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str names = STR_NONE;
		VAL_EACH(j, cron_job_outdated(&a, tree(&a, t[i].spec), jobs))
			names = arena_join(&a, names, val_str(*j, metadata, name));
		CHECK_STR_ROW(i, names, t[i].want);
	}
}
