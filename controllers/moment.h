/* moment: times of objects as numbers that can be compared and added to. Pure. */
#ifndef C8S_CONTROLLERS_MOMENT_H
#define C8S_CONTROLLERS_MOMENT_H

#include "base/clock.h"
#include "codec/time.h"
#include "codec/val.h"

/* Nanoseconds since 1970 of a Time or MicroTime field; 0 when it is absent or no time. */
static inline int64_t moment_of(struct val time)
{
	struct timestamp t;
	return val_is(time, VAL_STRING) && time_parse(val_as_str(time), &t, NULL) == 0 ? t.seconds * NS_PER_S + t.nanos : 0;
}

/* The Time field of that moment, in the arena; its fraction is cut off. */
static inline struct val moment_time(struct arena *a, int64_t ns)
{
	char text[TIME_TEXT_MAX];
	int64_t seconds = ns / NS_PER_S - (ns % NS_PER_S < 0);
	return VAL_STR(arena_str(a, time_format((struct timestamp){ .seconds = seconds }, text)));
}

/* A length of time that an object says in seconds. More than 68 years are as good as for ever, and sums of it with moments do not overflow. */
static inline int64_t moment_seconds(struct val seconds)
{
	return MIN(val_as_int(seconds), (int64_t)INT32_MAX) * NS_PER_S;
}

/* Milliseconds from now to then, rounded up, at least 1: for controller_add_after. */
static inline int64_t moment_wait_ms(int64_t ns)
{
	return ns <= 0 ? 1 : (ns + NS_PER_MS - 1) / NS_PER_MS;
}

#endif
