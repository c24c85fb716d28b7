/*
 * index: which keys exist, and existed since the last compaction, with the revisions of each: enough to answer at any
 * revision that was not compacted which row holds a key's value. Values are not here. Belongs to one thread at a time.
 *
 * Memory: about 130 bytes and the key, and 56 bytes for each older version that is still remembered.
 */
#ifndef C8S_STORE_INDEX_H
#define C8S_STORE_INDEX_H

#include "base/omap.h"

struct index_version {
	int64_t revision, created, version; /* version 0: deleted at this revision */
	int64_t expires_ns;                 /* wall time; 0: never */
	struct index_version *older;
};

/* The versions of a key, the newest inside. Counted, so that others may hold it; the count is not atomic. */
struct index_key {
	uint32_t refs;
	void *expiry;                       /* of whoever looks after expiry; NULL for most */
	struct index_version newest;        /* revision 0: there is none, the key has left the index */
};

struct index {
	struct omap *keys;
	int64_t live;                       /* keys whose newest version is not a deletion */
};

void index_init(struct index *x);
void index_done(struct index *x);

struct index_key *index_key_ref(struct index_key *k);
void index_key_unref(struct index_key *k);

/* Borrowed, or NULL when the index does not know the key. */
struct index_key *index_find(const struct index *x, str key);
/* The version that was the newest at this revision, also when it is a deletion; NULL when there was none. */
const struct index_version *index_at(const struct index_key *k, int64_t revision);

/* Adds a version that is newer than all before it; borrowed. */
struct index_key *index_push(struct index *x, str key, struct index_version v);
/* Takes the newest version of a key back: a write that failed. The key may leave the index. */
void index_pop(struct index *x, str key);
/*
 * Forgets versions of the key that nobody can ask for at revisions >= revision. A deletion at exactly this revision
 * stays, since a watch from there must see it.
 */
void index_forget(struct index *x, str key, int64_t revision);

#endif
