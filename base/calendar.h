/* calendar: seconds since 1970 as a date and time of UTC, and back, for every int64 of them. */
#ifndef C8S_BASE_CALENDAR_H
#define C8S_BASE_CALENDAR_H

#include <stdint.h>

struct civil {
	int64_t year;
	unsigned month, day, hour, minute, second; /* month and day from 1 */
};

int64_t civil_to_seconds(const struct civil *c);
struct civil civil_of_seconds(int64_t seconds);

#endif
