/* informer_index: for one informer and one way to look at its objects: the objects by value. */
#ifndef C8S_CLIENT_INFORMER_INDEX_H
#define C8S_CLIENT_INFORMER_INDEX_H

#include "base/map.h"
#include "client/informer.h"

struct informer_index {
	struct list link;
	const char *name;
	informer_values *values;
	struct map buckets;          /* value to struct bucket */
};

struct informer_index *informer_index_new(const char *name, informer_values *values) NONNULL_RESULT;
void informer_index_free(struct informer_index *x);
/* Either may be NULL: one that is new, one that is gone. */
void informer_index_change(struct informer_index *x, str key, struct frozen *old, struct frozen *object);
/* A snapshot of the objects under a value, by key; NULL: none. */
struct omap *informer_index_find(const struct informer_index *x, str value);

/* How maps hold frozen trees. */
extern const struct omap_type informer_objects;

#endif
