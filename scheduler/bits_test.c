#include "scheduler/bits.h"

#include "base/test.h"

enum { N = 200 };

/* Against arrays of what is in the sets. */
TEST(bits_are_found_counted_and_chosen)
{
	uint64_t seed = 1;

	for (unsigned round = 0; round < 60; round++) {
		uint64_t set[BITS_WORDS(N)] = { 0 }, also[BITS_WORDS(N)] = { 0 };
		bool in[N], too[N];
		uint32_t n = 0, end = round % 2 ? N : 64 * (round % 3 + 1);

		for (uint32_t i = 0; i < N; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			in[i] = (seed >> 33) % (round + 1) == 0;
			too[i] = (seed >> 50) % 2;
			if (in[i])
				bits_add(set, i);
			if (too[i])
				bits_add(also, i);
			CHECK(bits_has(set, i) == in[i]);
		}
		for (uint32_t i = 0; i < end; i++) {
			uint32_t next = i, both = i;
			while (next < end && !in[next])
				next++;
			while (both < end && !(in[both] && too[both]))
				both++;
			CHECK_ROW(round, bits_next(set, NULL, i, end) == next);
			CHECK_ROW(round, bits_next(set, also, i, end) == both);
			CHECK_ROW(round, bits_count(set, i) == n);
			if (in[i])
				CHECK_ROW(round, bits_select(set, n++) == i);
		}
		CHECK_ROW(round, bits_count(set, end) == n && bits_next(set, NULL, end, end) == end);
		for (uint32_t i = 0; i < N; i++)
			bits_remove(set, i);
		CHECK_ROW(round, bits_count(set, N) == 0);
	}
}
