/*
 * omap: an ordered map from str to a reference counted value, with snapshots that cost O(1).
 *
 * omap_snapshot gives a map of its own that shares all memory with the first; a later change in either copies only the
 * nodes on the way to the change, and only while they are shared. A struct omap belongs to one thread at a time, but
 * different maps, a map and its snapshots among them, may be used and freed in different threads without locks. Hence the
 * value's unref may run in any thread that frees a map, and both callbacks must be safe there.
 *
 * Keys are copied and compare as bytes. What get and walks return is borrowed: it stays valid until this map is changed
 * or freed; as to a snapshot that nobody changes: until that is freed.
 */
#ifndef C8S_BASE_OMAP_H
#define C8S_BASE_OMAP_H

#include "base/str.h"

struct omap;
struct omap_node;

/* How the map holds values; lives as long as any map that was made with it. */
struct omap_type {
	void (*ref)(void *value);
	void (*unref)(void *value);
};

struct omap *omap_new(const struct omap_type *type) NONNULL_RESULT;
/* Gives back what no other map shares: O(1) for an unchanged snapshot of a living map. NULL is allowed. */
void omap_free(struct omap *m);
void omap_freep(struct omap **m);
/* May also be called for one map (that nobody changes meanwhile) by several threads at a time. */
struct omap *omap_snapshot(const struct omap *m) NONNULL_RESULT;

size_t omap_len(const struct omap *m);
/* The value, borrowed, or NULL. */
void *omap_get(const struct omap *m, str key);
/* Adds or replaces; the map takes its own reference on value, which is not NULL. True when the key is new. */
bool omap_put(struct omap *m, str key, void *value);
/* False when there is no such key. */
bool omap_remove(struct omap *m, str key);

/*
 * A walk in key order over a map that does not change meanwhile (walk a snapshot if it may). There is nothing to free.
 *
 *	struct omap_iter it;
 *	omap_seek(&it, m, prefix);
 *	while ((value = omap_next(&it, &key)) && str_starts(key, prefix))
 */
enum { OMAP_DEPTH_MAX = 16 };

struct omap_iter {
	unsigned depth;
	struct {
		const struct omap_node *node;
		unsigned at; /* the next entry of the node */
	} path[OMAP_DEPTH_MAX];
};

/* Goes before the first key that is not less than from; an empty from is the very beginning. */
void omap_seek(struct omap_iter *it, const struct omap *m, str from);
/* The next value and its key (ret_key may be NULL), both borrowed; NULL at the end. */
void *omap_next(struct omap_iter *it, str *ret_key);

#endif
