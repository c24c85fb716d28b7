/*
 * Schedules of CronJobs: five fields (minute, hour, day of month, month, day of week) with lists, ranges, steps and
 * names, or one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every DURATION.
 */
#ifndef C8S_MACHINERY_CRON_H
#define C8S_MACHINERY_CRON_H

#include "base/arena.h"
#include "base/err.h"

/* Bit n of a field: n matches. CRON_STAR: the field was "*", which matters when days are given in two ways. */
#define CRON_STAR (UINT64_C(1) << 63)

struct cron {
	uint64_t minutes, hours, days, months, weekdays; /* days and months from 1, weekdays from 0: Sunday */
	int64_t every_ns;                                /* of @every: whole seconds; 0: not that form */
	str time_zone;                                   /* of a TZ= or CRON_TZ= before the fields; n == 0: none */
};

/* -ERR_BAD_REQUEST with the texts that Kubernetes shows. Slices borrow from text. */
int cron_parse(str text, struct cron *ret, struct err *err);

#endif
