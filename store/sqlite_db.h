/*
 * The file of the sqlite engine, and the only place that speaks SQL. All calls block, so they run on the thread pool; a
 * struct db is one connection and is used by one thread at a time.
 *
 * Format 1 (application_id "c8sS", user_version 1, page size 4096, WAL, incremental auto_vacuum):
 *
 *	row(revision INTEGER PRIMARY KEY, prev, created, version, expires, key, value)
 *		one per write, appended. prev: the row of the same key that this one supersedes, 0 for none. created: the
 *		revision at which the key came to be. version: counts its writes from 1; 0 and no value: a deletion.
 *		expires: wall time in nanoseconds, 0 for never.
 *	meta(name TEXT PRIMARY KEY, value)
 *		'compact_revision': ranges below it are refused; 'cleaned_revision': rows that were superseded up to it
 *		have been removed.
 *
 * The row with the highest revision is never removed, so revisions do not go back. An empty store is at revision 1.
 */
#ifndef C8S_STORE_SQLITE_DB_H
#define C8S_STORE_SQLITE_DB_H

#include "base/arena.h"
#include "store/index.h"
#include "store/store_priv.h"

struct db;

enum db_mode {
	DB_WRITER,   /* creates the file if it is not there, and checks what it is */
	DB_READER,   /* one more connection to a file that a writer of this process has open */
	DB_INSPECT,  /* reads a file, whether or not a server has it open */
};

struct row {
	int64_t revision, prev, created, version, expires_ns;
	str key;
	struct store_value *value; /* NULL for a deletion */
};

static inline struct index_version row_version(const struct row *r)
{
	return (struct index_version){ .revision = r->revision, .created = r->created, .version = r->version,
				       .expires_ns = r->expires_ns };
}

/* -ERR_UNAVAILABLE: in use, no permission, not a store, a newer format, damaged: the message says what to do. */
int db_open(const char *path, enum db_mode mode, struct db **ret, struct err *err);
void db_close(struct db *db);
void db_closep(struct db **db);

/*
 * Takes the lock that keeps a second process from writing to the file, which is created if need be: a descriptor to be
 * closed only after all connections of this process to the file.
 */
int db_lock(const char *path, struct err *err);
/* Makes what was created or renamed in the folder of this path durable. */
int db_sync_folder(const char *path, struct err *err);

/* 0, or 1 with what is wrong in problem (cut to its size); < 0 when it could not be found out. */
int db_check(struct db *db, bool thorough, char *problem, size_t size, struct err *err);
/* True once a call has found the file damaged. */
bool db_is_damaged(const struct db *db);

struct db_state {
	int64_t revision, compact_revision, cleaned_revision;
	int64_t size_bytes, free_bytes;
};

int db_state(struct db *db, struct db_state *ret, struct err *err);

/* Calls fn for every row in the order of revisions, without its value (NULL). fn's error ends it. */
int db_each(struct db *db, int (*fn)(void *arg, const struct row *row, struct err *err), void *arg, struct err *err);

/*
 * Appends the rows in one transaction, durable on success. -ERR_UNAVAILABLE: nothing was written. -ERR_TIMEOUT: the disk
 * failed at the very end; the rows are not there, but after a crash they may be.
 */
int db_commit(struct db *db, struct row *const *rows, size_t n, struct err *err);
/* Fills in the values of the rows with these revisions, one reference each; -ERR_INTERNAL when there is no such row. */
int db_read(struct db *db, struct row *const *rows, size_t n, struct err *err);

/* Rows of a range of keys in the order of revisions. */
struct db_scan {
	str from, to;
	int64_t first, last;       /* revisions; first moves behind what has been looked at */
	size_t max_rows, max_bytes; /* of one call; at least one row is taken */
	struct row *rows;          /* out, with the keys in the arena and a reference on each value */
	size_t n;
};

int db_scan(struct db *db, struct db_scan *scan, struct arena *arena, struct err *err);

int db_set_compact_revision(struct db *db, int64_t revision, struct err *err);
/*
 * Removes what the rows from first to last, at most max of them, have superseded, and those that are deletions before
 * last (the one at last is for the next time: a watch from there must see it). Gives the keys of the rows looked at, in
 * the arena, and moves first behind them; there is more to do while it is not beyond last.
 */
struct db_clean {
	int64_t first, last;
	size_t max;
	str *keys;
	size_t n;
};

int db_clean(struct db *db, struct db_clean *step, struct arena *arena, struct err *err);

/* Pages in the write-ahead log, as of the last commit or checkpoint of this connection. */
int64_t db_log_pages(const struct db *db);
/* Copies the log into the file as far as nobody reads it; never waits for others. */
int db_checkpoint(struct db *db, int64_t *ret_left, struct err *err);
/*
 * Makes the log this many pages long. Frames then overwrite what is there: an fsync of a file that keeps its size is twice
 * as fast as one that grows.
 */
int db_reserve_log(struct db *db, int64_t pages, struct err *err);
/* Gives at most so many unused pages back to the file system. */
int db_shrink(struct db *db, int pages, struct err *err);

/* Moves the revision on by n and compacts all before, as if a key had been deleted there. For a store nobody serves. */
int db_bump(struct db *db, int64_t n, struct err *err);
/* Writes a complete, compact copy of what the file holds now; the target must not exist, or be empty. */
int db_copy_to(struct db *db, const char *path, struct err *err);

#endif
