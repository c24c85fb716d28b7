/* bits: sets of small numbers, as places in an order, 64 to a word. */
#ifndef C8S_SCHEDULER_BITS_H
#define C8S_SCHEDULER_BITS_H

#include "base/defs.h"

#define BITS_WORDS(n) (((size_t)(n) + 63) / 64)

static inline bool bits_has(const uint64_t *set, uint32_t i) { return set[i / 64] >> i % 64 & 1; }
static inline void bits_add(uint64_t *set, uint32_t i) { set[i / 64] |= UINT64_C(1) << i % 64; }
static inline void bits_remove(uint64_t *set, uint32_t i) { set[i / 64] &= ~(UINT64_C(1) << i % 64); }

/* The first that is in both sets, of from to end - 1; end: none. also NULL: every number is in it. */
static inline uint32_t bits_next(const uint64_t *set, const uint64_t *also, uint32_t from, uint32_t end)
{
	uint64_t mask = UINT64_MAX << from % 64;

	for (uint32_t w = from / 64; from < end && w <= (end - 1) / 64; w++, mask = UINT64_MAX) {
		uint64_t both = set[w] & mask & (also ? also[w] : UINT64_MAX);
		if (both)
			return MIN(w * 64 + (uint32_t)__builtin_ctzll(both), end);
	}
	return end;
}

/* Of the numbers below end. */
static inline uint32_t bits_count(const uint64_t *set, uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < end / 64; w++)
		n += (uint32_t)__builtin_popcountll(set[w]);
	return end % 64 ? n + (uint32_t)__builtin_popcountll(set[end / 64] & ~(UINT64_MAX << end % 64)) : n;
}

/* The one that has `before` others before it; there are more than that. */
static inline uint32_t bits_select(const uint64_t *set, uint32_t before)
{
	uint32_t w = 0;

	for (uint32_t n; before >= (n = (uint32_t)__builtin_popcountll(set[w])); w++)
		before -= n;
	uint64_t left = set[w];
	for (; before; before--)
		left &= left - 1;
	return w * 64 + (uint32_t)__builtin_ctzll(left);
}

#endif
