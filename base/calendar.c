/*
 * Days are counted as Go counts them: unsigned, since March 1 of a year so early that every int64 of seconds has a date,
 * and with a leap day that ends its year. libc's own would bring files of time zones into the smallest program.
 */
#include "base/calendar.h"

enum { DAY = 24 * 60 * 60, DAYS_PER_ERA = 146097 /* of 400 years */ };

#define EPOCH_YEARS UINT64_C(292277022400)
/* From that March 1 to 1970: whole eras up to the year 0, then 719,468 days. */
#define EPOCH_DAYS (EPOCH_YEARS / 400 * DAYS_PER_ERA + 719468)

int64_t civil_to_seconds(const struct civil *c)
{
	uint64_t year = (uint64_t)c->year + EPOCH_YEARS - (c->month <= 2);
	unsigned month = (c->month + 9) % 12, of_era = (unsigned)(year % 400);
	uint64_t days = year / 400 * DAYS_PER_ERA + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + c->day - 1;
	uint64_t seconds = (days - EPOCH_DAYS) * DAY + c->hour * 3600 + c->minute * 60 + c->second;
	return (int64_t)seconds;
}

struct civil civil_of_seconds(int64_t seconds)
{
	uint64_t absolute = (uint64_t)seconds + EPOCH_DAYS * DAY, days = absolute / DAY;
	unsigned rest = (unsigned)(absolute % DAY), of_era = (unsigned)(days % DAYS_PER_ERA);
	unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	unsigned of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
	struct civil c = {
		.month = month < 10 ? month + 3 : month - 9,
		.day = of_year - (153 * month + 2) / 5 + 1,
		.hour = rest / 3600, .minute = rest / 60 % 60, .second = rest % 60,
	};
	c.year = (int64_t)(days / DAYS_PER_ERA * 400 + year + (c.month <= 2) - EPOCH_YEARS);
	return c;
}
