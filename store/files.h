/*
 * The embedded store's file, looked after from outside, whether or not a server has it open. These calls block; they are
 * for commands, not for fibers.
 */
#ifndef C8S_STORE_FILES_H
#define C8S_STORE_FILES_H

#include "base/err.h"

struct store_report {
	bool in_use;              /* a server has it open for writing */
	bool sound;
	char problem[256];        /* what is wrong, when it is not sound */
	int64_t revision, compact_revision;
	int64_t keys, expiring;   /* that exist now; those of them that go by themselves */
	int64_t rows;             /* with what was superseded and not yet removed */
	int64_t size_bytes, free_bytes, log_bytes;
};

/* Reads all of the file. A damaged one is a result, not an error: sound is false, and the numbers are what could be read. */
int store_file_check(const char *path, struct store_report *ret, struct err *err);

/*
 * A complete copy of what the store holds at this moment, while it is written to; checked before it gets its name.
 * -ERR_ALREADY_EXISTS when there is a file of that name, unless replace. Nothing is left behind on failure.
 */
int store_file_snapshot(const char *path, const char *to, bool replace, struct store_report *ret, struct err *err);

/*
 * The other way: makes a store from a snapshot, which is checked before and after. -ERR_ALREADY_EXISTS when there is a
 * store already, unless replace: then that is kept with ".old" after its name. -ERR_UNAVAILABLE when a server uses it.
 *
 * bump (0: none) is added to the revision, and everything before is compacted: clients that saw revisions after the
 * snapshot was taken list anew instead of waiting for a past that did not happen.
 */
int store_file_restore(const char *snapshot, const char *path, bool replace, int64_t bump, struct store_report *ret,
		       struct err *err);

#endif
