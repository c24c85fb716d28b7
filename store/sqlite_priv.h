/*
 * The sqlite engine's own state.
 *
 * Who does what: everything but SQL runs on the thread of the store's loop, so there are no locks. A write is decided
 * there at once, against the index with all writes before it, and gets its revision; then it waits in a queue. The
 * writing fiber takes all that wait and has the thread pool append them in one transaction: one fsync for all. While the
 * disk works, the next group gathers. Nobody sees a write before it is on disk: readers ask the index for the newest
 * version up to `committed`. When a transaction fails, its writes and all that were decided after it are taken back.
 *
 * Values are read by connections of their own, so no read waits behind an fsync. The pool's threads are used rather
 * than one of ours, because a virtual clock knows of work in the pool and stands still meanwhile.
 *
 * A row is needed as long as somebody reads at a revision below the one that supersedes it: readers hold a pin.
 */
#ifndef C8S_STORE_SQLITE_PRIV_H
#define C8S_STORE_SQLITE_PRIV_H

#include "base/fiber.h"
#include "base/loop.h"
#include "store/index.h"
#include "store/sqlite_db.h"
#include "store/store_priv.h"

enum {
	SQLITE_READERS = 2,              /* of the pool's four threads */
	SQLITE_GROUP_MAX = 1024,         /* writes in a transaction */
	SQLITE_GROUP_BYTES = 8 << 20,
	SQLITE_RECENT_MAX = 8192,        /* writes kept in memory for watches; a power of two */
	SQLITE_RECENT_BYTES = 32 << 20,
	SQLITE_LOG_PAGES = 2000,         /* 8 MiB of log are worth copying into the file */
	SQLITE_LOG_SLACK = 256,          /* and so many more may come until that is done */
};

/* A write: first between its decision and its result, then an event for watches. */
struct sqlite_op {
	struct list link;                /* in the queue, or in the group being written */
	uint32_t refs;                   /* the store's, and that of a fiber that waits; not atomic */
	struct row row;
	bool done;
	int result;                      /* 1, or the error, whose text goes to *err */
	struct err *err;                 /* of the fiber that waits; else NULL */
	struct fiber_cond decided;
	char key[];                      /* row.key */
};

/* The newest events, by revision: first .. first + n - 1, without a gap, up to `committed`. */
struct sqlite_recent {
	struct sqlite_op **ring;
	int64_t first;
	size_t n, bytes;
};

struct sqlite_pin {
	struct list link;
	int64_t revision;
};

struct sqlite_store {
	struct store store;
	char *path;
	int lock_fd;                     /* -1: none */
	bool read_only;
	bool damaged;                 /* that is why it is read_only */
	struct db *writer, *readers[SQLITE_READERS], *keeper;
	struct worker *thread; /* where groups are written */
	bool reader_busy[SQLITE_READERS];
	struct fiber_cond reader_free;

	struct index index;
	int64_t committed, decided;      /* newest revision that is on disk; that has been given out */
	int64_t compact_revision, cleaned_revision;
	struct list pins;

	struct list queue, group;        /* ops that wait; ops that are being written */
	struct row **rows;               /* of the group, for the pool's thread */
	struct fiber_cond work;          /* for the writing fiber: ops, chores, closing */
	struct fiber_cond advanced;      /* `committed` moved, or writes were taken back */
	struct fiber *writing, *keeping;
	bool closing, failing;           /* failing: the last transaction did not work */

	struct sqlite_recent recent;
	struct list watches;
	struct list expiries;

	int64_t compact_wanted;          /* what store_compact was last asked for */
	struct fiber_cond compact_tried;
	uint64_t compact_tries;
	struct err compact_err;          /* of the last try; code 0 when it worked */
	int64_t rest_until_ns;           /* no chores before: the last one failed */
	bool cannot_shrink;
	bool log_reserved;               /* or it could not be, which only costs time */

	struct fiber_cond keep;          /* for the keeping fiber */
	bool keep_wanted, finish_wanted;
	int64_t keep_at_pages;           /* the log's length that is worth the keeper's next round */

	int64_t size_bytes, free_bytes;
	uint64_t commits, writes;
};

static inline struct sqlite_store *sqlite_of(struct store *s) { return CONTAINER_OF(s, struct sqlite_store, store); }

/* ---- sqlite_write.c: deciding, writing in groups, taking back ---- */

int sqlite_write(struct store *store, const struct store_write *w, int64_t *ret_revision, struct store_kv *ret_current,
		 struct err *err);
/* Decides the deletion of a key that exists; nobody waits for it. */
void sqlite_drop(struct sqlite_store *s, str key);
void sqlite_op_unref(struct sqlite_op *op);
/* (suspends) Writes the first ops of the queue, as one transaction. */
void sqlite_write_group(struct sqlite_store *s);

/* ---- sqlite_chores.c: compaction, the log, space ---- */

int sqlite_compact(struct store *store, int64_t revision, struct err *err);
/* The bodies of the two fibers, which run until s->closing. The writing one empties the queue before. */
int sqlite_writing(void *store);
int sqlite_keeping(void *store);

/* ---- sqlite_read.c ---- */

int sqlite_range(struct store *store, const struct store_range *q, struct store_page *ret, struct err *err);
int sqlite_get(struct store *store, str key, struct store_kv *ret, int64_t *ret_revision, struct err *err);
int sqlite_revision(struct store *store, int64_t *ret_revision, struct err *err);
/* (suspends) The key as it is at this revision, which is committed and not compacted: 1 with a value to unref, or 0. */
int sqlite_get_at(struct sqlite_store *s, str key, int64_t revision, struct store_kv *ret, struct err *err);

void sqlite_pin(struct sqlite_store *s, struct sqlite_pin *pin, int64_t revision);
void sqlite_unpin(struct sqlite_pin *pin);
/* The lowest revision that somebody reads at; INT64_MAX for none. */
int64_t sqlite_pinned(const struct sqlite_store *s);

/* (suspends) Runs a blocking call on a free reading connection. */
int sqlite_reading(struct sqlite_store *s, int (*fn)(struct db *db, void *arg, struct err *err), void *arg, struct err *err);

/* ---- sqlite_watch.c ---- */

int sqlite_watch_open(struct store *store, str from, str to, int64_t revision, struct store_watch **ret, struct err *err);
int sqlite_watch_next(struct store_watch *watch, struct store_batch *ret, struct err *err);
void sqlite_watch_progress(struct store_watch *watch);
void sqlite_watch_free(struct store_watch *watch);
/* Adds what was just committed, with a reference of its own. */
void sqlite_recent_add(struct sqlite_store *s, struct sqlite_op *op);
void sqlite_recent_done(struct sqlite_store *s);
/* The event of this revision, borrowed; NULL when it is no longer (or not yet) in memory. */
const struct sqlite_op *sqlite_recent_at(const struct sqlite_store *s, int64_t revision);
/* Wakes the watches that events from this revision up to `committed` concern. */
void sqlite_watches_tell(struct sqlite_store *s, int64_t first);

/* ---- sqlite_expiry.c ---- */

/* Follows the newest version of the key (k is what the index has or had of it): starts, moves or stops its timer. */
void sqlite_expiry_follow(struct sqlite_store *s, str key, struct index_key *k);
void sqlite_expiry_done(struct sqlite_store *s);

#endif
