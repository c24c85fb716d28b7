/*
 * What an engine of the store is: a struct that begins with struct store, and a table of functions. store.c checks the
 * arguments once for both engines and calls through the table; the contracts are those of store.h.
 */
#ifndef C8S_STORE_STORE_PRIV_H
#define C8S_STORE_STORE_PRIV_H

#include "base/arena.h"
#include "store/store.h"

/* One write: a put, or with value NULL a deletion. */
struct store_write {
	str key;
	struct store_value *value;
	int64_t expect, ttl_s;    /* ttl_s: 0 for none */
};

struct store_engine {
	const char *name;
	void (*free)(struct store *s);
	int (*range)(struct store *s, const struct store_range *q, struct store_page *ret, struct err *err);
	int (*get)(struct store *s, str key, struct store_kv *ret, int64_t *ret_revision, struct err *err);
	int (*revision)(struct store *s, int64_t *ret_revision, struct err *err);
	/* store_put and store_delete. ret_revision and ret_current are never NULL here; ret_current is zeroed. */
	int (*write)(struct store *s, const struct store_write *w, int64_t *ret_revision, struct store_kv *ret_current,
		     struct err *err);
	int (*compact)(struct store *s, int64_t revision, struct err *err);
	int (*watch_open)(struct store *s, str from, str to, int64_t revision, struct store_watch **ret, struct err *err);
	int (*watch_next)(struct store_watch *w, struct store_batch *ret, struct err *err);
	void (*watch_progress)(struct store_watch *w);
	void (*watch_free)(struct store_watch *w);
	/* ret is zeroed; engine is filled in by the caller. */
	void (*stats)(struct store *s, struct store_stats *ret);
};

/* The first member of each engine's own struct. */
struct store {
	const struct store_engine *engine;
};

struct store_watch {
	struct store *store;
};

/* Opens one kind each; *ret is set on success only. */
int store_open_sqlite(const struct store_options *o, struct store **ret, struct err *err);
int store_open_etcd(const struct store_options *o, struct store **ret, struct err *err);

/*
 * The `memory` of pages and batches, for both engines: an arena on the heap that holds keys and arrays. store_page_done and
 * store_batch_done unref the values of all kvs (NULL is fine) and free it. A page or batch with memory NULL is empty.
 */
struct arena *store_memory_new(void) NONNULL_RESULT;

/* Is the key in the range, as store.h and store_prefix_end describe it ("\0" as `to`: from this key on)? */
static inline bool store_range_has(str from, str to, str key)
{
	if (to.n == 0)
		return str_eq(key, from);
	return str_cmp(key, from) >= 0 && ((to.n == 1 && to.p[0] == '\0') || str_cmp(key, to) < 0);
}

#endif
