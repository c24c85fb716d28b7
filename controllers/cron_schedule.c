/*
 * The search goes from month to minute: a part that does not match is moved on and all below it begin anew; one that wraps around begins
 * the search again. Hours and minutes move in real time, so that a change of the clocks is passed in step with them.
 */
#include "controllers/cron_schedule.h"

enum { YEARS = 5, HOUR = 3600, DAY = 24 * HOUR };

int cron_schedule_parse(struct arena *a, str text, str time_zone, struct cron_schedule *ret, struct err *err)
{
	int r = cron_parse(text, &ret->cron, err);
	if (r < 0)
		return r;
	str zone = ret->cron.time_zone.n ? ret->cron.time_zone : time_zone.n ? time_zone : STR("Local");
	return time_zone_load(a, zone, &ret->zone, err);
}

static bool has(uint64_t field, unsigned n) { return field >> n & 1; }

/* Days are given in two ways: when both are restricted either will do. */
static bool day_matches(const struct cron *c, const struct civil *at)
{
	const struct civil date = { .year = at->year, .month = at->month, .day = at->day };
	int64_t days = civil_to_seconds(&date) / DAY;
	bool day = has(c->days, at->day), weekday = has(c->weekdays, (unsigned)(((days + 4) % 7 + 7) % 7));
	return (c->days | c->weekdays) & CRON_STAR ? day && weekday : day || weekday;
}

/* Midnight of the day that is n days after that of *at; where the clocks skip or repeat it, as near as they come. */
static int64_t midnight(const struct cron_schedule *s, const struct civil *at, int64_t n)
{
	const struct civil date = { .year = at->year, .month = at->month, .day = at->day };
	const struct civil moved = civil_of_seconds(civil_to_seconds(&date) + n * DAY);
	int64_t t = time_zone_seconds(s->zone, &moved);
	unsigned hour = time_zone_civil(s->zone, t).hour;
	/* Late in the evening before: on to the end of that day. In the morning: this is the hour that the day begins with. */
	return hour > 12 && n ? t + (int64_t)(24 - hour) * HOUR : t;
}

static int64_t next_month(const struct cron_schedule *s, const struct civil *at)
{
	struct civil c = { .year = at->year + (at->month == 12), .month = at->month % 12 + 1, .day = 1 };
	return time_zone_seconds(s->zone, &c);
}

/* To the moment that was looked for; where the clocks bring it back to where it was, an hour on, so that every search ends. */
static void move_on(int64_t *t, int64_t to) { *t = to > *t ? to : *t + HOUR; }

/* Moves *t on until one part matches. False: the part above it has changed, and the search begins again. */
static bool find_month(const struct cron_schedule *s, int64_t *t, int64_t last_year)
{
	struct civil at = time_zone_civil(s->zone, *t);
	while (!has(s->cron.months, at.month) && at.year <= last_year) {
		move_on(t, next_month(s, &at));
		at = time_zone_civil(s->zone, *t);
		if (at.month == 1)
			return false;
	}
	return true;
}

static bool find_day(const struct cron_schedule *s, int64_t *t)
{
	struct civil at = time_zone_civil(s->zone, *t);
	while (!day_matches(&s->cron, &at)) {
		move_on(t, midnight(s, &at, 1));
		at = time_zone_civil(s->zone, *t);
		if (at.day == 1)
			return false;
	}
	return true;
}

static bool find_hour(const struct cron_schedule *s, int64_t *t)
{
	struct civil at = time_zone_civil(s->zone, *t);
	while (!has(s->cron.hours, at.hour)) {
		*t += HOUR - (int64_t)at.minute * 60 - at.second;
		at = time_zone_civil(s->zone, *t);
		if (at.hour == 0)
			return false;
	}
	return true;
}

static bool find_minute(const struct cron_schedule *s, int64_t *t)
{
	struct civil at = time_zone_civil(s->zone, *t);
	while (!has(s->cron.minutes, at.minute) || at.second) {
		*t += 60 - (int64_t)at.second;
		at = time_zone_civil(s->zone, *t);
		if (at.minute == 0)
			return false;
	}
	return true;
}

int64_t cron_schedule_next(const struct cron_schedule *s, int64_t after)
{
	int64_t t = after + 1, last_year = time_zone_civil(s->zone, t).year + YEARS;

	if (s->cron.every_ns)
		return after + s->cron.every_ns / 1000000000;
	while (time_zone_civil(s->zone, t).year <= last_year)
		if (find_month(s, &t, last_year) && time_zone_civil(s->zone, t).year <= last_year && find_day(s, &t) && find_hour(s, &t) &&
		    find_minute(s, &t))
			return t;
	return 0;
}
