/*
 * follow: being told that something of a few kinds has changed, for who then looks at all of it again. Changes that come while
 * they look are one more change.
 */
#ifndef C8S_APISERVER_FOLLOW_H
#define C8S_APISERVER_FOLLOW_H

#include "apiserver/cache.h"

enum { FOLLOW_MAX = 4 };

struct follow;

struct followed {
	struct cache_watcher watcher;
	struct kind *kind;
	struct follow *follow;
};

/* Stays where it is between init and done. */
struct follow {
	struct cache *cache;
	struct fiber_cond woken;
	struct followed v[FOLLOW_MAX];
	size_t n;
	bool changed;
};

/* Kinds that are not served (NULL) never change; n is at most FOLLOW_MAX. */
void follow_init(struct follow *f, struct cache *cache, struct kind *const *kinds, size_t n);
void follow_done(struct follow *f);
/* (suspends) Until something has changed since the last call; the first call returns at once. */
int follow_wait(struct follow *f, struct err *err);

#endif
