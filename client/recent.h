/* recent: entries by key, of which the longest unused one goes when there are too many. */
#ifndef C8S_CLIENT_RECENT_H
#define C8S_CLIENT_RECENT_H

#include "base/list.h"
#include "base/map.h"

/* Embedded in what is kept, as its first member. */
struct recent_entry {
	struct list link;
	str key;                     /* behind the entry */
};

struct recent {
	struct map by_key;
	struct list order;           /* the longest unused first */
	size_t size, max;            /* of an entry, in bytes; of entries */
	void (*done)(void *entry);   /* before it is freed; may be NULL */
};

void recent_init(struct recent *c, size_t size, size_t max, void (*done)(void *entry));
void recent_done(struct recent *c);
/* The entry of this key, which is the newest now; made, with zeros, if there is none. */
void *recent_get(struct recent *c, str key) NONNULL_RESULT;

#endif
