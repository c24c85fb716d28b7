/*
 * map: a hash map from str to a pointer. Keys are borrowed: a key's bytes must stay as they are for as long as the entry is
 * in the map; mostly they are a field of the value itself. Values are never NULL and are not owned. The hash is seeded per
 * process, so keys chosen by a peer cannot degrade it. Not for use by two threads at a time.
 */
#ifndef C8S_BASE_MAP_H
#define C8S_BASE_MAP_H

#include "base/str.h"

struct map_slot;

struct map {
	struct map_slot *slots;
	size_t len, mask; /* mask: number of slots - 1, while there are any */
	uint64_t hash_key[2];
};

#define MAP_INIT { 0 }

void map_init(struct map *m);
/* Frees the table, not the values; the map is empty again. */
void map_done(struct map *m);

static inline size_t map_len(const struct map *m) { return m->len; }

/* The value, or NULL. */
void *map_get(const struct map *m, str key);
/* Adds or replaces, the borrowed key included; returns the value that was there before, or NULL. */
void *map_put(struct map *m, str key, void *value);
/* Returns the value that was removed, or NULL. */
void *map_remove(struct map *m, str key);

/*
 * A walk in no order. Between two steps the entry last returned may be removed; nothing else may change.
 *
 *	struct map_iter it = map_iter(&m);
 *	while ((pod = map_next(&it, NULL)))
 */
struct map_iter {
	const struct map *map;
	size_t at, left;
};

struct map_iter map_iter(const struct map *m);
/* The next value, with its key in *ret_key (may be NULL); NULL at the end. */
void *map_next(struct map_iter *it, str *ret_key);

#endif
