/*
 * The CRI log format: one entry per line, `<RFC 3339 time with nanoseconds> stdout|stderr F|P <text>`. P: the line goes on in the next
 * entry of that stream. Pure functions, for the monitor that writes (without fibers) and for logs.h that reads.
 */
#ifndef C8S_RUNTIME_LOGS_FORMAT_H
#define C8S_RUNTIME_LOGS_FORMAT_H

#include "base/str.h"

enum { LOGS_TEXT_MAX = 16 << 10 }; /* of an entry, as containerd's max_container_log_line_size */

enum logs_stream { LOGS_STDOUT, LOGS_STDERR };

/* 2006-01-02T15:04:05.000000000Z; a terminated slice of out. */
enum { LOGS_TIME_MAX = 48 };
str logs_time_format(int64_t ns, char out[LOGS_TIME_MAX]);

/* All that stands before the text. */
enum { LOGS_HEAD_MAX = LOGS_TIME_MAX + 16 };
str logs_head(int64_t ns, enum logs_stream stream, bool partial, char out[LOGS_HEAD_MAX]);

/*
 * Output becomes entries. held is the beginning of a line from before, data what has come now. LOGS_FULL and LOGS_PARTIAL: an entry's text
 * is *ret_held (a beginning of held) followed by *ret_piece (a part of data), and *ret_taken bytes of data are used up, held as well.
 * LOGS_MORE: no entry yet; all of data belongs to held (together no more than LOGS_TEXT_MAX). Lines end with "\n" or "\r\n".
 */
enum logs_cut { LOGS_MORE, LOGS_FULL, LOGS_PARTIAL };
enum logs_cut logs_cut(str held, str data, str *ret_held, str *ret_piece, size_t *ret_taken);

struct logs_entry {
	int64_t ns;               /* since 1970 */
	enum logs_stream stream;
	bool partial;
	str text;                 /* without the end of the line */
};

/* One line of a log file, without its end. -ERR_INVALID. */
struct err;
int logs_parse(str line, struct logs_entry *ret, struct err *err);

#endif
