/*
 * The watch cache: all objects of all kinds in memory, kept up to date by one watch of the store, with a window of
 * recent events per kind. Every read is answered from here; a consistent read first makes sure that the cache has seen
 * what the store had when the read began.
 */
#ifndef C8S_APISERVER_CACHE_H
#define C8S_APISERVER_CACHE_H

#include "apiserver/kinds.h"
#include "base/fiber.h"
#include "store/store.h"

struct cache;

enum cache_event_type { CACHE_ADDED, CACHE_MODIFIED, CACHE_DELETED };

struct cache_event {
	enum cache_event_type type;
	int64_t revision;
	struct object *object;        /* of a deletion: the last state, with the revision of the deletion */
	struct object *before;        /* NULL when it was added */
	int64_t at_ns;                /* clock_now_ns() when the cache learnt of it */
};

struct cache *cache_new(struct store *store, struct kinds *kinds) NONNULL_RESULT;
void cache_free(struct cache *c);
/* (suspends) Reads everything from the store. */
int cache_load(struct cache *c, struct err *err);
/* (suspends, until canceled) Follows the store. When events were missed (compaction), it loads again and ends all watches. */
int cache_run(struct cache *c, struct err *err);
/* Whether it has loaded and follows the store. */
bool cache_is_ready(const struct cache *c);
/* How many values it could not decode; each was logged with its key. */
uint64_t cache_undecodable(const struct cache *c);

/* Everything up to this revision is in the cache. */
int64_t cache_revision(const struct cache *c);
/* (suspends) Waits until it is; -ERR_TIMEOUT after timeout_ms. */
int cache_wait(struct cache *c, int64_t revision, int64_t timeout_ms, struct err *err);
/*
 * (suspends) Waits until the cache has what the store had at the time of the call. Costs nothing when this process is the
 * only one that writes (sqlite); else one question to the store, shared by all who ask at the same time.
 */
int cache_wait_current(struct cache *c, struct err *err);

/* Borrowed; NULL when there is none, and of a kind that is not served (NULL). Keys are "namespace/name" or "name". */
struct object *cache_get(const struct kind *kind, str key);

/*
 * One who follows the events of a kind: embedded in what waits for them. wake is called (as a callback; must not suspend) once
 * after events came, until cache_watch_next has returned NULL again.
 */
struct cache_watcher {
	struct list link;
	struct kind *kind;
	uint64_t next;                /* sequence number of the next event to look at */
	int64_t after;                /* events up to this revision are passed over */
	struct cache_event event;     /* the one that was returned last */
	bool ended;                   /* no more events: it was too slow, or the cache was loaded anew */
	bool sleeping;
	void (*wake)(struct cache_watcher *w);
};

/* Events with a revision > `after` will follow. -ERR_EXPIRED when the window does not reach back so far. */
int cache_watch_begin(struct kind *kind, int64_t after, struct cache_watcher *w, struct err *err);
/* Takes one that never began, too. */
void cache_watch_end(struct cache_watcher *w);
/* The next event, borrowed until this watcher asks again; NULL when there is none now (see also ended). */
const struct cache_event *cache_watch_next(struct cache_watcher *w);

/* ---- between objects and bytes of the store ---- */

/*
 * The tree as it comes back from the store: protobuf does not know empty lists and maps, so they are dropped from kinds
 * that are stored in it. The tree itself when there are none.
 */
struct val cache_stored_form(struct arena *a, const struct kind *kind, struct val object);
/* The value to store for an object: in the storage version, encrypted where the kind says so. The object is attached. */
int cache_encode(struct object *o, struct store_value **ret, struct err *err);
/* The object of a value that was read, converted to the hub version and defaulted. */
int cache_decode(struct kind *kind, str key, const struct store_kv *kv, struct object **ret, struct err *err);
/* The store's key: prefix and key, in the arena. */
str cache_store_key(struct arena *a, const struct kind *kind, str key);

#endif
