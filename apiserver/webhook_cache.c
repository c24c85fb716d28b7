/* Answers of webhooks, kept for a while. */
#include "apiserver/webhook_cache.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"

/* Of an answer that is larger there is nothing to gain. */
enum { ANSWER_MAX = 64 << 10 };

struct entry {
	struct list link;             /* most recently used last */
	struct webhook_cache_key key;
	struct frozen *answer;
	int64_t until_ns;
};

struct webhook_cache {
	size_t max;
	struct map entries;
	struct list used;
	uint8_t secret[SHA256_BYTES];
};

static str key_text(const struct webhook_cache_key *key) { return str_span((const char *)key->sum, sizeof key->sum); }

static void entry_remove(struct webhook_cache *c, struct entry *e)
{
	map_remove(&c->entries, key_text(&e->key));
	list_remove(&e->link);
	frozen_unref(e->answer);
	free(e);
}

struct webhook_cache *webhook_cache_new(size_t max)
{
	struct webhook_cache *c = mem_zalloc(sizeof *c);
	c->max = max;
	map_init(&c->entries);
	list_init(&c->used);
	random_bytes(c->secret, sizeof c->secret);
	return c;
}

void webhook_cache_free(struct webhook_cache *c)
{
	if (!c)
		return;
	LIST_EACH_SAFE(struct entry, e, &c->used, link)
		entry_remove(c, e);
	map_done(&c->entries);
	free(c);
}

struct webhook_cache_key webhook_cache_key(const struct webhook_cache *c, const str *texts, size_t n)
{
	CLEANUP(sha256_done) struct sha256 h = { 0 };
	struct webhook_cache_key key;
	sha256_init(&h);
	sha256_add(&h, str_span((const char *)c->secret, sizeof c->secret));
	for (size_t i = 0; i < n; i++) {
		uint64_t length = texts[i].n;
		sha256_add(&h, str_span((const char *)&length, sizeof length));
		sha256_add(&h, texts[i]);
	}
	sha256_sum(&h, key.sum);
	return key;
}

struct frozen *webhook_cache_get(struct webhook_cache *c, const struct webhook_cache_key *key)
{
	struct entry *e = map_get(&c->entries, key_text(key));
	if (!e)
		return NULL;
	if (clock_now_ns() >= e->until_ns) {
		entry_remove(c, e);
		return NULL;
	}
	list_remove(&e->link);
	list_add(&c->used, &e->link);
	return frozen_ref(e->answer);
}

void webhook_cache_put(struct webhook_cache *c, const struct webhook_cache_key *key, struct frozen *answer, int64_t ttl_ns)
{
	if (ttl_ns <= 0 || answer->size > ANSWER_MAX)
		return;
	struct entry *old = map_get(&c->entries, key_text(key));
	if (old)
		entry_remove(c, old);
	if (map_len(&c->entries) >= c->max)
		entry_remove(c, LIST_FIRST(struct entry, &c->used, link));
	struct entry *e = mem_zalloc(sizeof *e);
	e->key = *key;
	e->answer = frozen_ref(answer);
	e->until_ns = clock_now_ns() + ttl_ns;
	map_put(&c->entries, key_text(&e->key), e);
	list_add(&c->used, &e->link);
}
