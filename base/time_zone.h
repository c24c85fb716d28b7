/*
 * time_zone: the clocks of a place, from the system's time zone database (TZif files, with the rule at their end for the years beyond their
 * tables). Loading reads a file of a few KiB; the rest is pure.
 */
#ifndef C8S_BASE_TIME_ZONE_H
#define C8S_BASE_TIME_ZONE_H

#include "base/arena.h"
#include "base/calendar.h"
#include "base/err.h"

struct time_zone;

/*
 * (blocks) "Europe/Berlin"; "" and "UTC": UTC; "Local": that of this machine. Lives in the arena. Errors as Go's time.LoadLocation has them:
 * "unknown time zone X".
 */
int time_zone_load(struct arena *a, str name, const struct time_zone **ret, struct err *err);
/* (blocks) Whether it can be loaded. */
bool time_zone_exists(str name);
/* From the content of a TZif file. -ERR_BAD_REQUEST when it is none. */
int time_zone_parse(struct arena *a, str file, const struct time_zone **ret, struct err *err);

/* Seconds to add to UTC at that moment. */
int64_t time_zone_offset(const struct time_zone *z, int64_t seconds);
/* What the clocks show at that moment. */
struct civil time_zone_civil(const struct time_zone *z, int64_t seconds);
/* When the clocks show that. What they never show, and what they show twice, is resolved as by Go's time.Date. */
int64_t time_zone_seconds(const struct time_zone *z, const struct civil *c);

#endif
