/*
 * Time, MicroTime and Duration in their JSON forms.
 */
#ifndef C8S_CODEC_TIME_H
#define C8S_CODEC_TIME_H

#include "base/err.h"

/* Seconds since 1970 and nanoseconds (0 to 999,999,999); Kubernetes' zero time (year 1) is { TIME_ZERO_SECONDS, 0 }. */
struct timestamp {
	int64_t seconds;
	int32_t nanos;
};

#define TIME_ZERO_SECONDS INT64_C(-62135596800)

/*
 * RFC 3339 with Go's rules and error texts (parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006").
 * A Time may have a fraction of any length, a MicroTime must have one of six digits. -ERR_BAD_REQUEST.
 */
int time_parse(str text, struct timestamp *ret, struct err *err);
int microtime_parse(str text, struct timestamp *ret, struct err *err);
enum { TIME_TEXT_MAX = 40 };
/* 2006-01-02T15:04:05Z, fraction cut off; a terminated slice of out. Years outside 0 to 9999 come out as Go has them. */
str time_format(struct timestamp t, char out[TIME_TEXT_MAX]);
/* 2006-01-02T15:04:05.000000Z */
str microtime_format(struct timestamp t, char out[TIME_TEXT_MAX]);
/* Back from what time_format and microtime_format wrote, for all years; false for any other text. */
bool time_unformat(str text, struct timestamp *ret);

/* Nanoseconds from one time to another; the most that there can be where they are too far apart, as Go's Time.Sub has it. */
int64_t time_between(struct timestamp from, struct timestamp to);

/* Go's time.ParseDuration and Duration.String; -ERR_BAD_REQUEST with Go's texts. */
int duration_parse(str text, int64_t *ret_ns, struct err *err);
enum { DURATION_TEXT_MAX = 40 };
str duration_format(int64_t ns, char out[DURATION_TEXT_MAX]);
/* As `kubectl get` shows ages: 5s, 3m20s, 47h, 2d3h, 3y12d. */
str duration_human(int64_t ns, char out[DURATION_TEXT_MAX]);

#endif
