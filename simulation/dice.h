/* dice: what chance decides in a simulation, apart from the random numbers that the programs draw for themselves. */
#ifndef C8S_SIMULATION_DICE_H
#define C8S_SIMULATION_DICE_H

#include "base/defs.h"

struct dice {
	uint64_t state;
};

/* SplitMix64 */
static inline uint64_t dice_u64(struct dice *d)
{
	uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* From 0 to n - 1; n is not 0. */
static inline int64_t dice_below(struct dice *d, int64_t n) { return (int64_t)(dice_u64(d) % (uint64_t)n); }
static inline int64_t dice_between(struct dice *d, int64_t least, int64_t most) { return least + dice_below(d, most - least + 1); }
/* True in so many of 10000 cases. */
static inline bool dice_chance(struct dice *d, unsigned per_10000) { return per_10000 && dice_below(d, 10000) < per_10000; }

#endif
