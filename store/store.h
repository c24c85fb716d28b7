/*
 * store/: where objects live. The contract is etcd's: one revision for all keys that grows by one with each write,
 * writes that depend on a key's revision, ranges at a revision, watches from a revision, compaction, keys that expire.
 * Two engines keep it: sqlite (embedded) and etcd (a gRPC client). Everything above sees only this header.
 *
 * A store belongs to the loop of one thread; calls marked (suspends) are for fibers of that loop. A call that was cut
 * short by a cancel or a deadline may still take effect, as with any network.
 *
 * Errors: -ERR_UNAVAILABLE (no member of etcd answers, disk full, file damaged: nothing was written, try again),
 * -ERR_TIMEOUT (it is not known whether it was written), -ERR_EXPIRED (that revision has been compacted), -ERR_INTERNAL.
 * The message says what to do where there is something to do.
 */
#ifndef C8S_STORE_STORE_H
#define C8S_STORE_STORE_H

#include "base/err.h"

struct store;

/* ---- opening ---- */

struct store_options {
	/* sqlite: the file; its folder exists. */
	const char *path;
	/* etcd: addresses with scheme, NULL-ended; not NULL chooses etcd. */
	const char *const *endpoints;
	const char *ca_file, *cert_file, *key_file; /* for https endpoints; each may be NULL */
	bool read_only;           /* sqlite: refuse writes; for inspection */
	struct store *given;      /* an engine that is there already, beside the two (simulation/); its own table says what store_free does */
};

/*
 * (suspends) sqlite: checks the file and loads its index; a damaged file is opened for reading only, with a log line
 * that says what to do, and every write is refused with -ERR_UNAVAILABLE. etcd: waits until a member answers.
 */
int store_open(const struct store_options *o, struct store **ret, struct err *err);
/* (suspends) Finishes writes that were begun. All watches must have been freed and no call be under way. Takes NULL. */
void store_free(struct store *s);

/* ---- values ---- */

/* Immutable bytes, shared by reference between threads. */
struct store_value {
	_Atomic uint32_t refs;
	/*
	 * The writer may attach what the bytes were made from (a decoded object): engines that see a write of this
	 * process come back in a watch give the same value again, and nobody has to decode it.
	 */
	void *object;
	void (*object_unref)(void *object);
	size_t n;
	char bytes[];
};

/* A copy of the bytes, with one reference. */
struct store_value *store_value_new(str bytes) NONNULL_RESULT;
/* Uninitialised room for n bytes. */
struct store_value *store_value_room(size_t n) NONNULL_RESULT;
struct store_value *store_value_ref(struct store_value *v);
void store_value_unref(struct store_value *v); /* NULL is fine */
static inline str store_value_str(const struct store_value *v) { return v ? str_span(v->bytes, v->n) : STR_NONE; }

struct store_kv {
	str key;                  /* lives as long as what holds the kv: a page, a batch, or (store_get) value's holder */
	struct store_value *value; /* NULL: the key does not exist (or keys only were asked for) */
	int64_t create_revision, mod_revision, version;
};

/* ---- reading ---- */

/* All keys k with from <= k < to; an empty `to` means the key `from` alone. */
struct store_range {
	str from, to;
	int64_t revision;         /* 0: the newest, linearizable */
	size_t limit;             /* 0: none */
	bool keys_only, count_only;
};

struct store_page {
	struct store_kv *kvs;     /* in byte order of keys */
	size_t n;
	int64_t count;            /* how many keys are in the range, whatever the limit */
	bool more;
	int64_t revision;         /* at which it was read; the newest, when 0 was asked for */
	void *memory;             /* the engine's */
};

/* (suspends) -ERR_EXPIRED when the revision was compacted; -ERR_BAD_REQUEST when it is in the future. */
int store_range(struct store *s, const struct store_range *q, struct store_page *ret, struct err *err);
void store_page_done(struct store_page *page);
/*
 * (suspends) One key at its newest: 1 and a value that the caller unrefs (ret->key is the caller's key), or 0 when it
 * does not exist. *ret_revision (may be NULL) is the store's.
 */
int store_get(struct store *s, str key, struct store_kv *ret, int64_t *ret_revision, struct err *err);
/* (suspends) The newest revision, linearizable: all writes acknowledged before the call are in it. */
int store_revision(struct store *s, int64_t *ret_revision, struct err *err);

/* The end of the range of all keys with this prefix, in the arena. */
struct arena;
str store_prefix_end(struct arena *a, str prefix);

/* ---- writing ---- */

enum { STORE_ABSENT = 0, STORE_ANY = -1 };

/*
 * (suspends) Writes one key if its mod_revision is `expect` (STORE_ABSENT: if it does not exist; STORE_ANY: in any
 * case). ttl_s > 0: the key goes by itself after so many seconds (at least; etcd shares leases). Returns 1 and the new
 * revision once it is on disk; 0 when the condition does not hold, and then *ret_current (may be NULL) is the key as it is
 * now (value NULL: it does not exist), to be unreffed by the caller. The store takes its own reference on value.
 */
int store_put(struct store *s, str key, struct store_value *value, int64_t expect, int64_t ttl_s, int64_t *ret_revision,
	      struct store_kv *ret_current, struct err *err);
/* (suspends) Removes one key, likewise. Removing what is not there: 0 with value NULL. */
int store_delete(struct store *s, str key, int64_t expect, int64_t *ret_revision, struct store_kv *ret_current,
		 struct err *err);

/*
 * (suspends) Forgets what was superseded up to this revision: ranges and watches below it give -ERR_EXPIRED. Space is
 * given back in small steps in the background.
 */
int store_compact(struct store *s, int64_t revision, struct err *err);
/*
 * (suspends, until canceled) Every interval: compacts to the revision that was the newest one interval ago. Several API
 * servers on one store agree by the key compact_rev_key, as Kubernetes' do.
 */
int store_compact_loop(struct store *s, int64_t interval_ms, struct err *err);

/* ---- watching ---- */

struct store_event {
	bool deleted;
	struct store_kv kv;       /* of a deletion: key and mod_revision (that of the deletion) only */
};

/* Events in the order of revisions, no revision cut in two. */
struct store_batch {
	struct store_event *events;
	size_t n;
	int64_t revision;         /* everything in the watched range up to here has been delivered with this batch */
	void *memory;             /* the engine's */
};

struct store_watch;

/*
 * (suspends) Watches [from, to) from this revision on, inclusive. The watch is the caller's to free. One that is not read
 * falls behind without costing memory, and ends with -ERR_EXPIRED once what it would need next has been compacted.
 */
int store_watch_open(struct store *s, str from, str to, int64_t revision, struct store_watch **ret, struct err *err);
/*
 * (suspends) Waits for the next batch, which may be empty (progress only). Breaks of the connection are mended inside, without
 * loss or repetition. -ERR_EXPIRED: the revision to go on from has been compacted; list again.
 */
int store_watch_next(struct store_watch *w, struct store_batch *ret, struct err *err);
void store_batch_done(struct store_batch *b);
/* Asks for a batch with the newest revision, even when there are no events. May get lost, as connections do: ask again. */
void store_watch_progress(struct store_watch *w);
void store_watch_free(struct store_watch *w);

/* ---- looking after it ---- */

/* What is shown in metrics and by `c8s store check`. */
struct store_stats {
	const char *engine;       /* "sqlite", "etcd", or that of a given one */
	int64_t revision, compact_revision, keys;
	int64_t size_bytes, free_bytes; /* of the file, and of it unused; 0 for etcd */
	bool read_only;
	uint64_t commits, writes; /* sqlite: transactions and rows in them */
};

void store_stats(struct store *s, struct store_stats *ret);

#endif
