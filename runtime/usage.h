/* usage: what images and writable layers take on disk, measured not too often. */
#ifndef C8S_RUNTIME_USAGE_H
#define C8S_RUNTIME_USAGE_H

#include "base/defs.h"

struct usage_cache;

struct usage_cache *usage_cache_new(void) NONNULL_RESULT;
void usage_cache_free(struct usage_cache *u); /* NULL is fine */

#endif
