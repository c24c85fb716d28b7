#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

/*
 * Each thread maps one page marked MADV_WIPEONFORK. In a forked child it reads as zero, which is exactly an empty block:
 * `left` is 0 and the next call asks the kernel. Bytes are erased as they are handed out.
 */
enum { BLOCK_BYTES = 1024 };

struct block {
	size_t left; /* unused bytes, at the end of bytes */
	unsigned char bytes[BLOCK_BYTES];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t block_key;
static _Thread_local struct block *thread_block;

static uint64_t process_key[2];

static atomic_bool seeded;
static _Atomic uint64_t seed_start, seed_state;

static void from_kernel(void *out, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t r = getrandom((char *)out + done, n - done, 0);
		if (r > 0) {
			done += (size_t)r;
		} else if (errno != EINTR) {
			perror("c8s: getrandom");
			abort();
		}
	}
}

/* At the end of a thread, whose later destructors may still draw: they get a new block. */
static void unmap_block(void *block)
{
	munmap(block, sizeof(struct block));
	thread_block = NULL;
}

static void init_once(void)
{
	if (pthread_key_create(&block_key, unmap_block) != 0)
		abort();
	from_kernel(process_key, sizeof(process_key));
}

/* This thread's block; NULL when the system cannot wipe it on fork: then there is no buffering. */
static struct block *block_get(void)
{
	if (LIKELY(thread_block))
		return thread_block;
	pthread_once(&once, init_once);
	void *page = mmap(NULL, sizeof(struct block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, sizeof(struct block), MADV_WIPEONFORK) != 0 || pthread_setspecific(block_key, page) != 0) {
		unmap_block(page);
		return NULL;
	}
	thread_block = page;
	return thread_block;
}

/* SplitMix64: one atomic addition per word, so threads need no lock. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static const uint64_t golden = 0x9e3779b97f4a7c15u;

static uint64_t seeded_u64(void) { return mix(atomic_fetch_add(&seed_state, golden) + golden); }

static void seeded_bytes(void *out, size_t n)
{
	for (size_t done = 0; done < n; done += 8) {
		uint64_t word = seeded_u64();
		memcpy((char *)out + done, &word, MIN(n - done, sizeof(word)));
	}
}

void random_bytes(void *out, size_t n)
{
	if (UNLIKELY(atomic_load(&seeded))) {
		seeded_bytes(out, n);
		return;
	}
	struct block *b = n <= BLOCK_BYTES / 4 ? block_get() : NULL;
	if (!b) {
		from_kernel(out, n);
		return;
	}
	if (b->left < n) {
		from_kernel(b->bytes, BLOCK_BYTES);
		b->left = BLOCK_BYTES;
	}
	unsigned char *from = b->bytes + BLOCK_BYTES - b->left;
	memcpy(out, from, n);
	memset(from, 0, n);
	b->left -= n;
}

uint64_t random_u64(void)
{
	uint64_t v;
	random_bytes(&v, sizeof(v));
	return v;
}

/* The high half of a 128-bit product is even once the few low halves below 2^64 mod n are drawn again. */
uint64_t random_below(uint64_t n)
{
	assert(n > 0);
	for (;;) {
		__extension__ unsigned __int128 product = (unsigned __int128)random_u64() * n;
		if (LIKELY((uint64_t)product >= n) || (uint64_t)product >= -n % n)
			return (uint64_t)(product >> 64);
	}
}

void random_hash_key(uint64_t ret_key[2])
{
	if (UNLIKELY(atomic_load(&seeded))) {
		uint64_t seed = atomic_load(&seed_start);
		ret_key[0] = mix(~seed);
		ret_key[1] = mix(~seed + golden);
		return;
	}
	pthread_once(&once, init_once);
	ret_key[0] = process_key[0];
	ret_key[1] = process_key[1];
}

void random_seed(uint64_t seed)
{
	atomic_store(&seed_start, seed);
	atomic_store(&seed_state, seed);
	atomic_store(&seeded, true);
}

void random_unseed(void) { atomic_store(&seeded, false); }
