/* The parts of timestamps and durations. Zones are given by their distance from UTC ("+02:00"), or by a name of the system's database. */
#include "base/time_zone.h"
#include "machinery/cel_priv.h"

enum { ZONES_KEPT = 8, ZONE_NAME_MAX = 63, LOAD_WORK = 1000 /* names may come from a long list: files are read while others wait */ };

/*
 * Zones by name: an expression is evaluated for many objects, mostly with the same few, and loading one reads a file. Those that were loaded last
 * are kept, by each thread for itself.
 */
static _Thread_local struct kept_zone {
	char name[ZONE_NAME_MAX + 1];
	struct arena arena;
	const struct time_zone *zone; /* NULL: the place is free */
} kept[ZONES_KEPT];
static _Thread_local unsigned next_kept;

static const struct time_zone *zone_find(str name)
{
	for (unsigned i = 0; i < ZONES_KEPT; i++)
		if (kept[i].zone && str_eq(str_of(kept[i].name), name))
			return kept[i].zone;
	return NULL;
}

static bool named_offset(struct cel_eval *ev, str name, int64_t seconds, int64_t *ret, struct cel_val *ret_error)
{
	const struct time_zone *zone = name.n <= ZONE_NAME_MAX ? zone_find(name) : NULL;
	struct err err = ERR_INIT;

	if (!zone && !cel_work(ev, LOAD_WORK)) {
		*ret_error = cel_fail(ev, "too many time zones");
		return false;
	}
	if (!zone) {
		struct kept_zone *k = &kept[next_kept];
		bool keeps = name.n <= ZONE_NAME_MAX && !memchr(name.p, '\0', name.n);
		if (keeps) {
			k->zone = NULL;
			arena_done(&k->arena);
			arena_init(&k->arena);
		}
		if (time_zone_load(keeps ? &k->arena : ev->arena, name, &zone, &err) < 0) {
			*ret_error = cel_fail(ev, STR_FMT, STR_ARG(err_str(&err)));
			return false;
		}
		if (keeps) {
			memcpy(k->name, name.p, name.n);
			k->name[name.n] = '\0';
			k->zone = zone;
			next_kept = (next_kept + 1) % ZONES_KEPT;
		}
	}
	*ret = time_zone_offset(zone, seconds);
	return true;
}

/* strconv.Atoi */
static bool zone_number(struct cel_eval *ev, str text, int64_t *ret, struct cel_val *ret_error)
{
	bool plus = str_starts(text, STR("+"));
	str digits = str_skip(text, plus);

	if (!(plus && str_starts(digits, STR("-"))) && str_to_i64(digits, ret) && *ret > -100000 && *ret < 100000)
		return true;
	*ret_error = cel_fail(ev, "strconv.Atoi: parsing \"" STR_FMT "\": invalid syntax", STR_ARG(text));
	return false;
}

/* Seconds east of UTC at that moment. */
static bool zone_offset(struct cel_eval *ev, str zone, int64_t seconds, int64_t *ret, struct cel_val *ret_error)
{
	str hours, minutes;
	int64_t h, m;

	*ret = 0;
	if (!str_cut(zone, ':', &hours, &minutes)) {
		if (!zone.n || str_eq(zone, STR("UTC")))
			return true;
		return named_offset(ev, zone, seconds, ret, ret_error);
	}
	if (!zone_number(ev, hours, &h, ret_error) || !zone_number(ev, minutes, &m, ret_error))
		return false;
	*ret = 60 * (str_starts(zone, STR("-")) ? h * 60 - m : h * 60 + m);
	return true;
}

enum part { YEAR, MONTH, DAY_OF_YEAR, DAY_OF_MONTH, DATE, DAY_OF_WEEK, HOURS, MINUTES, SECONDS, MILLISECONDS };

static int64_t time_part(int64_t seconds, uint32_t nanos, enum part part)
{
	struct civil c = civil_of_seconds(seconds), first = { .year = c.year, .month = 1, .day = 1 };
	int64_t days = seconds / 86400 - (seconds % 86400 < 0);

	switch (part) {
	case YEAR:
		return c.year;
	case MONTH:
		return c.month - 1;
	case DAY_OF_YEAR:
		return days - civil_to_seconds(&first) / 86400;
	case DAY_OF_MONTH:
		return c.day - 1;
	case DATE:
		return c.day;
	case DAY_OF_WEEK:
		return ((days + 4) % 7 + 7) % 7;
	case HOURS:
		return c.hour;
	case MINUTES:
		return c.minute;
	case SECONDS:
		return c.second;
	case MILLISECONDS:
		break;
	}
	return nanos / 1000000;
}

static struct cel_val of_duration(int64_t ns, enum part part)
{
	switch (part) {
	case HOURS:
		return cel_of_int(ns / 3600000000000);
	case MINUTES:
		return cel_of_int(ns / 60000000000);
	case SECONDS:
		return cel_of_int(ns / 1000000000);
	default:
		return cel_of_int(ns / 1000000);
	}
}

static struct cel_val get_part(struct cel_eval *ev, const struct cel_val *v, size_t n, enum part part)
{
	struct cel_val error;
	int64_t offset = 0;

	if (v[0].kind == CEL_DURATION)
		return of_duration(v[0].i, part);
	if (n == 2 && !zone_offset(ev, cel_text(v[1]), v[0].i, &offset, &error))
		return error;
	return cel_of_int(time_part(v[0].i + offset, v[0].n, part));
}

#define PART(name, part)                                                                               \
	static struct cel_val name(struct cel_eval *ev, const struct cel_val *v, size_t n) { return get_part(ev, v, n, part); }

PART(get_year, YEAR)
PART(get_month, MONTH)
PART(get_day_of_year, DAY_OF_YEAR)
PART(get_day_of_month, DAY_OF_MONTH)
PART(get_date, DATE)
PART(get_day_of_week, DAY_OF_WEEK)
PART(get_hours, HOURS)
PART(get_minutes, MINUTES)
PART(get_seconds, SECONDS)
PART(get_milliseconds, MILLISECONDS)

static const struct cel_overload overloads[] = {
	{ "getFullYear", "timestamp_to_year", "t:i", true, get_year, 0 },
	{ "getFullYear", "timestamp_to_year_with_tz", "ts:i", true, get_year, 0 },
	{ "getMonth", "timestamp_to_month", "t:i", true, get_month, 0 },
	{ "getMonth", "timestamp_to_month_with_tz", "ts:i", true, get_month, 0 },
	{ "getDayOfYear", "timestamp_to_day_of_year", "t:i", true, get_day_of_year, 0 },
	{ "getDayOfYear", "timestamp_to_day_of_year_with_tz", "ts:i", true, get_day_of_year, 0 },
	{ "getDayOfMonth", "timestamp_to_day_of_month", "t:i", true, get_day_of_month, 0 },
	{ "getDayOfMonth", "timestamp_to_day_of_month_with_tz", "ts:i", true, get_day_of_month, 0 },
	{ "getDate", "timestamp_to_day_of_month_1_based", "t:i", true, get_date, 0 },
	{ "getDate", "timestamp_to_day_of_month_1_based_with_tz", "ts:i", true, get_date, 0 },
	{ "getDayOfWeek", "timestamp_to_day_of_week", "t:i", true, get_day_of_week, 0 },
	{ "getDayOfWeek", "timestamp_to_day_of_week_with_tz", "ts:i", true, get_day_of_week, 0 },
	{ "getHours", "timestamp_to_hours", "t:i", true, get_hours, 0 },
	{ "getHours", "timestamp_to_hours_with_tz", "ts:i", true, get_hours, 0 },
	{ "getHours", "duration_to_hours", "r:i", true, get_hours, 0 },
	{ "getMinutes", "timestamp_to_minutes", "t:i", true, get_minutes, 0 },
	{ "getMinutes", "timestamp_to_minutes_with_tz", "ts:i", true, get_minutes, 0 },
	{ "getMinutes", "duration_to_minutes", "r:i", true, get_minutes, 0 },
	{ "getSeconds", "timestamp_to_seconds", "t:i", true, get_seconds, 0 },
	{ "getSeconds", "timestamp_to_seconds_tz", "ts:i", true, get_seconds, 0 },
	{ "getSeconds", "duration_to_seconds", "r:i", true, get_seconds, 0 },
	{ "getMilliseconds", "timestamp_to_milliseconds", "t:i", true, get_milliseconds, 0 },
	{ "getMilliseconds", "timestamp_to_milliseconds_with_tz", "ts:i", true, get_milliseconds, 0 },
	{ "getMilliseconds", "duration_to_milliseconds", "r:i", true, get_milliseconds, 0 },
};

const struct cel_library cel_lib_time = { overloads, ARRAY_LEN(overloads), false };
