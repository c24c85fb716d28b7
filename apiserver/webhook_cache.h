/*
 * Answers of webhooks, kept for a while: by a hash of the question, which may hold a secret. At most so many; what was not
 * asked for longest goes first. Nothing here suspends.
 */
#ifndef C8S_APISERVER_WEBHOOK_CACHE_H
#define C8S_APISERVER_WEBHOOK_CACHE_H

#include "base/encoding.h"
#include "codec/val.h"

struct webhook_cache;

/* Hashes begin with a random key of this cache, so that nobody outside can tell what a question's is. */
struct webhook_cache_key {
	uint8_t sum[SHA256_BYTES];
};

struct webhook_cache *webhook_cache_new(size_t max) NONNULL_RESULT;
void webhook_cache_free(struct webhook_cache *c); /* NULL is fine */

/* The key of a question that consists of these texts, however they are cut. */
struct webhook_cache_key webhook_cache_key(const struct webhook_cache *c, const str *texts, size_t n);
/* The answer as a reference that the caller gives back; NULL: there is none, or it is too old. */
struct frozen *webhook_cache_get(struct webhook_cache *c, const struct webhook_cache_key *key);
/* Adds or replaces; does nothing without a ttl, and for answers of more than 64 KiB. */
void webhook_cache_put(struct webhook_cache *c, const struct webhook_cache_key *key, struct frozen *answer, int64_t ttl_ns);

#endif
