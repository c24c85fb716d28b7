/*
 * Open addressing with linear probing in a table of a power of two, at most three quarters full. A removal moves the
 * following entries of its run back into the hole, so there are no tombstones and a table never decays. The hash is
 * SipHash-1-3 under the process's secret key; it is kept in the slot, so growing does not read keys again.
 */
#include "base/map.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"

enum { SLOTS_MIN = 8 };

struct map_slot {
	uint64_t hash;
	str key;
	void *value; /* NULL: the slot is empty */
};

static inline uint64_t rotl(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

struct sip {
	uint64_t a, b, c, d;
};

static inline void sip_round(struct sip *s)
{
	s->a += s->b;
	s->c += s->d;
	s->b = rotl(s->b, 13) ^ s->a;
	s->d = rotl(s->d, 16) ^ s->c;
	s->a = rotl(s->a, 32) + s->d;
	s->c += s->b;
	s->d = rotl(s->d, 21) ^ s->a;
	s->b = rotl(s->b, 17) ^ s->c;
	s->c = rotl(s->c, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
	s->d ^= word;
	sip_round(s);
	s->a ^= word;
}

static uint64_t hash(const uint64_t key[2], str text)
{
	struct sip s = {
		.a = key[0] ^ 0x736f6d6570736575u,
		.b = key[1] ^ 0x646f72616e646f6du,
		.c = key[0] ^ 0x6c7967656e657261u,
		.d = key[1] ^ 0x7465646279746573u,
	};
	uint64_t word, last = (uint64_t)text.n << 56;
	size_t i = 0;

	for (; i + 8 <= text.n; i += 8) {
		memcpy(&word, text.p + i, 8);
		sip_word(&s, word);
	}
	for (int shift = 0; i < text.n; i++, shift += 8)
		last |= (uint64_t)(unsigned char)text.p[i] << shift;
	sip_word(&s, last);
	s.c ^= 0xff;
	for (int round = 0; round < 3; round++)
		sip_round(&s);
	return s.a ^ s.b ^ s.c ^ s.d;
}

void map_init(struct map *m) { *m = (struct map)MAP_INIT; }

void map_done(struct map *m)
{
	free(m->slots);
	map_init(m);
}

/* The slot that holds key, or the empty one where it belongs. The map has slots. */
static struct map_slot *find(const struct map *m, uint64_t h, str key)
{
	for (size_t i = h & m->mask;; i = (i + 1) & m->mask) {
		struct map_slot *s = &m->slots[i];
		if (!s->value || (s->hash == h && str_eq(s->key, key)))
			return s;
	}
}

void *map_get(const struct map *m, str key) { return m->len ? find(m, hash(m->hash_key, key), key)->value : NULL; }

static void grow(struct map *m)
{
	struct map_slot *old = m->slots;
	size_t n = old ? m->mask + 1 : 0, bigger = old ? n * 2 : SLOTS_MIN;

	if (!old)
		random_hash_key(m->hash_key);
	m->slots = mem_array(bigger, sizeof(*m->slots));
	memset(m->slots, 0, bigger * sizeof(*m->slots));
	m->mask = bigger - 1;
	for (size_t i = 0; i < n; i++) {
		if (!old[i].value)
			continue;
		size_t at = old[i].hash & m->mask;
		while (m->slots[at].value)
			at = (at + 1) & m->mask;
		m->slots[at] = old[i];
	}
	free(old);
}

void *map_put(struct map *m, str key, void *value)
{
	assert(value);
	if (!m->slots || m->len + 1 > (m->mask + 1) / 4 * 3)
		grow(m);
	uint64_t h = hash(m->hash_key, key);
	struct map_slot *s = find(m, h, key);
	void *before = s->value;
	*s = (struct map_slot){ h, key, value };
	if (!before)
		m->len++;
	return before;
}

void *map_remove(struct map *m, str key)
{
	if (!m->len)
		return NULL;
	struct map_slot *s = find(m, hash(m->hash_key, key), key);
	void *removed = s->value;
	if (!removed)
		return NULL;
	size_t hole = (size_t)(s - m->slots);
	for (size_t i = (hole + 1) & m->mask; m->slots[i].value; i = (i + 1) & m->mask) {
		/* An entry may move back as far as its own place, counted around the end of the table. */
		size_t home = m->slots[i].hash & m->mask;
		if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole] = (struct map_slot){ 0 };
	m->len--;
	return removed;
}

/*
 * The walk goes backwards from an empty slot. Removing the current entry moves entries of its run back into its slot;
 * these stand behind it, up to the next empty slot, and have been visited already.
 */
struct map_iter map_iter(const struct map *m)
{
	struct map_iter it = { .map = m };
	if (m->len == 0)
		return it;
	while (m->slots[it.at].value)
		it.at++;
	it.left = m->mask;
	return it;
}

void *map_next(struct map_iter *it, str *ret_key)
{
	const struct map *m = it->map;
	while (it->left) {
		it->left--;
		it->at = (it->at - 1) & m->mask;
		const struct map_slot *s = &m->slots[it->at];
		if (!s->value)
			continue;
		if (ret_key)
			*ret_key = s->key;
		return s->value;
	}
	return NULL;
}
