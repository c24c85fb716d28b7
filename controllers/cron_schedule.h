/* cron_schedule: when a schedule is due, by the clocks of a time zone. Pure once made. */
#ifndef C8S_CONTROLLERS_CRON_SCHEDULE_H
#define C8S_CONTROLLERS_CRON_SCHEDULE_H

#include "base/time_zone.h"
#include "machinery/cron.h"

struct cron_schedule {
	struct cron cron;
	const struct time_zone *zone;
};

/*
 * From the text of spec.schedule and spec.timeZone (may be empty: the zone of this machine, unless the text begins with TZ=). Lives in the arena
 * and borrows the text. The errors are those of cron_parse.
 */
int cron_schedule_parse(struct arena *a, str text, str time_zone, struct cron_schedule *ret, struct err *err);

/* The first moment after that one, both in seconds since 1970; 0: never (none within five years). Hours that clocks skip do not count. */
int64_t cron_schedule_next(const struct cron_schedule *s, int64_t after);

#endif
