/*
 * logs: reading a container's log file (logs_format.h) as `kubectl logs` shows it. Memory is bounded whatever stands in the file; a line
 * that is not in the format is left out.
 */
#ifndef C8S_RUNTIME_LOGS_H
#define C8S_RUNTIME_LOGS_H

#include "base/arena.h"
#include "base/err.h"
#include "runtime/logs_format.h"

struct logs_options {
	int64_t tail;                 /* this many entries from the end; negative: all */
	int64_t limit;                /* bytes at most; negative: no limit */
	int64_t since_ns;             /* entries from before are left out; INT64_MIN: none are */
	bool follow;                  /* until the container does not run any more; also over rotations */
	bool timestamps;              /* before each line: 2006-01-02T15:04:05.000000000Z */
	bool no_stdout, no_stderr;
};

#define LOGS_OPTIONS_INIT { .tail = -1, .limit = -1, .since_ns = INT64_MIN }

struct logs_reader {
	/* (may suspend) A piece of output; an error ends the reading with it. */
	int (*write)(void *arg, enum logs_stream stream, str text, struct err *err);
	/* (may suspend) Does the container still run? Asked when following, about once per second. */
	bool (*running)(void *arg);
	void *arg;
};

/*
 * (suspends) Reads. -ERR_NOT_FOUND: there is no such file; -ERR_INVALID: its first line is in no format that is known. Reaching the
 * limit is no error.
 */
int logs_read(const char *path, const struct logs_options *o, const struct logs_reader *to, struct err *err);

/* The file of the run before: DIR/2.log of DIR/3.log. -ERR_NOT_FOUND for the first run and for names that are not of this kind. */
int logs_previous(struct arena *a, str path, str *ret_path, struct err *err);

#endif
