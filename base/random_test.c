#include "base/random.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

TEST(random_bytes_of_any_length)
{
	for (size_t n = 0; n < 3000; n = n * 2 + 1) {
		unsigned char buf[3010] = { 0 };
		unsigned seen = 0;
		random_bytes(buf, n);
		for (size_t i = n; i < sizeof(buf); i++)
			CHECK(buf[i] == 0);
		for (size_t i = 0; i < n; i++)
			seen |= buf[i];
		CHECK(n < 100 || seen == 0xff);
	}
	CHECK(random_u64() != random_u64());
}

TEST(random_below_is_even)
{
	static const uint64_t bounds[] = { 1, 2, 3, 10, 1000, (UINT64_C(1) << 63) + 1, UINT64_MAX };
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++)
		for (int k = 0; k < 1000; k++)
			CHECK_ROW(i, random_below(bounds[i]) < bounds[i]);

	int count[6] = { 0 };
	random_seed(3);
	for (int k = 0; k < 60000; k++)
		count[random_below(6)]++;
	for (int i = 0; i < 6; i++)
		CHECK_ROW(i, count[i] > 9500 && count[i] < 10500);
	random_unseed();
}

TEST(random_seed_repeats)
{
	uint64_t first[8], again[8], other[8];
	unsigned char bytes[13];

	random_seed(42);
	for (int i = 0; i < 8; i++)
		first[i] = random_u64();
	random_seed(42);
	for (int i = 0; i < 8; i++)
		again[i] = random_u64();
	random_seed(43);
	for (int i = 0; i < 8; i++)
		other[i] = random_u64();
	CHECK(memcmp(first, again, sizeof(first)) == 0);
	CHECK(memcmp(first, other, sizeof(first)) != 0);
	random_seed(42);
	random_bytes(bytes, sizeof(bytes));
	CHECK(memcmp(bytes, first, sizeof(bytes)) == 0);
	random_unseed();
	CHECK(random_u64() != again[0]);
}

TEST(random_hash_key_stays)
{
	uint64_t before[2], after[2], seeded[2];
	random_hash_key(before);
	random_seed(5);
	random_hash_key(seeded);
	random_unseed();
	random_hash_key(after);
	CHECK(memcmp(before, after, sizeof(before)) == 0);
	CHECK(memcmp(before, seeded, sizeof(before)) != 0);
}

/* Parent and child must not hand out what is left of the same block. */
TEST(random_differs_after_fork)
{
	int fds[2], status;
	uint64_t mine, theirs = 0;

	(void)random_u64(); /* the block is filled */
	CHECK(pipe(fds) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		theirs = random_u64();
		_exit(write(fds[1], &theirs, sizeof(theirs)) != sizeof(theirs));
	}
	mine = random_u64();
	CHECK(read(fds[0], &theirs, sizeof(theirs)) == sizeof(theirs));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(mine != theirs);
	close(fds[0]);
	close(fds[1]);
}

static void *draw(void *out)
{
	for (int i = 0; i < 1000; i++)
		((uint64_t *)out)[i] = random_u64();
	return NULL;
}

TEST(random_in_threads)
{
	static uint64_t drawn[4][1000];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, draw, drawn[i]) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < 4; i++)
		for (int k = i + 1; k < 4; k++)
			CHECK(memcmp(drawn[i], drawn[k], sizeof(drawn[i])) != 0);
}
