/*
 * random: the seam to randomness. By default the bytes are the kernel's, good for keys and tokens, taken in small blocks
 * per thread. A test calls random_seed: from then on every call in the process draws from one reproducible sequence.
 * All functions may be called by any thread and never fail: a kernel that refuses random bytes ends the process.
 *
 * Safe across fork, also by a bare clone system call: the block lies in memory that the kernel wipes in the child, so
 * parent and child never hand out the same bytes. A child that shares the parent's memory (vfork) must not draw any.
 */
#ifndef C8S_BASE_RANDOM_H
#define C8S_BASE_RANDOM_H

#include "base/defs.h"

void random_bytes(void *out, size_t n);
uint64_t random_u64(void);
/* Evenly from 0 to n - 1; n is not 0. */
uint64_t random_below(uint64_t n);

/*
 * The key of seeded hashes: one for the whole life of the process, so that nobody outside can choose keys that collide.
 * After random_seed it depends on the seed alone, which makes the order of walks through hash maps reproducible.
 */
void random_hash_key(uint64_t ret_key[2]);

/* For tests: a reproducible sequence, the same for the same seed when only one thread draws; and back to the kernel's. */
void random_seed(uint64_t seed);
void random_unseed(void);

#endif
