#include "runtime/logs_format.h"

#include <stdio.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/err.h"
#include "codec/time.h"

str logs_time_format(int64_t ns, char out[LOGS_TIME_MAX])
{
	int64_t seconds = ns / NS_PER_S;
	long nanos = (long)(ns % NS_PER_S);

	if (nanos < 0) {
		nanos += NS_PER_S;
		seconds--;
	}
	struct civil t = civil_of_seconds(seconds);
	int n = snprintf(out, LOGS_TIME_MAX, "%04d-%02u-%02uT%02u:%02u:%02u.%09ldZ", (int)(t.year % 10000), t.month, t.day, t.hour,
			 t.minute, t.second, nanos);
	return str_span(out, (size_t)n);
}

str logs_head(int64_t ns, enum logs_stream stream, bool partial, char out[LOGS_HEAD_MAX])
{
	char time[LOGS_TIME_MAX];
	str t = logs_time_format(ns, time);
	int n = snprintf(out, LOGS_HEAD_MAX, STR_FMT " %s %c ", STR_ARG(t), stream == LOGS_STDOUT ? "stdout" : "stderr", partial ? 'P' : 'F');

	return str_span(out, (size_t)n);
}

enum logs_cut logs_cut(str held, str data, str *ret_held, str *ret_piece, size_t *ret_taken)
{
	/* A line's end is looked for no further than an entry can reach: "\r\n" after a text of the largest size is the last one. */
	ptrdiff_t end = str_chr(str_head(data, LOGS_TEXT_MAX - MIN(held.n, (size_t)LOGS_TEXT_MAX) + 2), '\n');
	str piece = end < 0 ? data : str_head(data, (size_t)end), before = held;

	if (end > 0 && piece.p[piece.n - 1] == '\r')
		piece.n--;
	else if (end == 0 && before.n && before.p[before.n - 1] == '\r')
		before.n--;
	*ret_held = before;
	if (before.n + piece.n > LOGS_TEXT_MAX) {
		*ret_held = str_head(held, LOGS_TEXT_MAX);
		*ret_piece = str_head(data, LOGS_TEXT_MAX - ret_held->n);
		*ret_taken = ret_piece->n;
		return LOGS_PARTIAL;
	}
	*ret_piece = piece;
	*ret_taken = end < 0 ? data.n : (size_t)end + 1;
	return end < 0 ? LOGS_MORE : LOGS_FULL;
}

int logs_parse(str line, struct logs_entry *ret, struct err *err)
{
	str time, stream, tags, rest;
	struct timestamp t;

	if (!str_cut(line, ' ', &time, &rest))
		return err_set(err, ERR_INVALID, "timestamp is not found");
	if (time_parse(time, &t, err) < 0)
		return err_wrap(err, -ERR_INVALID, "unexpected timestamp");
	if (t.seconds > INT64_MAX / NS_PER_S - 1 || t.seconds < INT64_MIN / NS_PER_S + 1)
		return err_set(err, ERR_INVALID, "unexpected timestamp: " STR_FMT " is too far away", STR_ARG(time));
	if (!str_cut(rest, ' ', &stream, &rest))
		return err_set(err, ERR_INVALID, "stream type is not found");
	bool out = str_eq(stream, STR("stdout"));
	if (!out && !str_eq(stream, STR("stderr")))
		return err_set(err, ERR_INVALID, "unexpected stream type \"" STR_FMT "\"", STR_ARG(stream));
	if (!str_cut(rest, ' ', &tags, &rest))
		return err_set(err, ERR_INVALID, "log tag is not found");
	/* More tags may follow after a colon; the first one is the one that is known. */
	(void)str_cut(tags, ':', &tags, &(str){ 0 });
	*ret = (struct logs_entry){
		.ns = t.seconds * NS_PER_S + t.nanos,
		.stream = out ? LOGS_STDOUT : LOGS_STDERR,
		.partial = str_eq(tags, STR("P")),
		.text = rest,
	};
	return 0;
}
