#include "base/clock.h"

#include "base/test.h"

TEST(clock_system)
{
	int64_t a = clock_now_ns(), b = clock_now_ns();
	CHECK(b >= a);
	CHECK(clock_wall_ns() > 1700000000 * NS_PER_S);
	CHECK(!clock_is_virtual());
}

TEST(clock_virtual_stands_still)
{
	clock_virtual_set(100, 5000);
	CHECK(clock_is_virtual());
	CHECK(clock_now_ns() == 100 && clock_wall_ns() == 5000);
	clock_virtual_advance(0);
	CHECK(clock_now_ns() == 100);
	clock_virtual_advance(25);
	CHECK(clock_now_ns() == 125 && clock_wall_ns() == 5025);
	clock_virtual_set(7, 8);
	CHECK(clock_now_ns() == 7 && clock_wall_ns() == 8);
	clock_virtual_off();
	CHECK(!clock_is_virtual());
}

/* A loop with one timer that repeats; with every == 0 it never becomes due. */
struct ticker {
	struct clock_hook hook;
	int64_t due, every, fired[16];
	int n;
};

static int64_t ticker_next(struct clock_hook *hook) { return CONTAINER_OF(hook, struct ticker, hook)->due; }

static void ticker_moved(struct clock_hook *hook)
{
	struct ticker *t = CONTAINER_OF(hook, struct ticker, hook);
	while (t->due <= clock_now_ns()) {
		t->fired[t->n++] = clock_now_ns();
		t->due += t->every;
	}
}

TEST(clock_advance_stops_at_every_deadline)
{
	struct ticker fast = { .hook = { .moved = ticker_moved, .next_ns = ticker_next }, .due = 10, .every = 10 };
	struct ticker slow = { .hook = { .moved = ticker_moved, .next_ns = ticker_next }, .due = 25, .every = 100 };

	clock_virtual_set(0, 0);
	clock_hook_add(&fast.hook);
	clock_hook_add(&slow.hook);
	CHECK(clock_virtual_next_ns() == 10);
	clock_virtual_advance(42);
	CHECK_INT(fast.n, 4);
	for (int i = 0; i < 4; i++)
		CHECK_ROW(i, fast.fired[i] == 10 * (i + 1));
	CHECK_INT(slow.n, 1);
	CHECK(slow.fired[0] == 25 && clock_now_ns() == 42 && clock_wall_ns() == 42);
	clock_hook_remove(&fast.hook);
	CHECK(clock_virtual_next_ns() == 125);
	clock_hook_remove(&slow.hook);
	CHECK(clock_virtual_next_ns() == INT64_MAX);
	clock_virtual_off();
}

/* A loop in another thread only notes that it was woken: its deadline stays past and must not stop the clock. */
static void note_moved(struct clock_hook *hook) { CONTAINER_OF(hook, struct ticker, hook)->n++; }

static void leave_moved(struct clock_hook *hook)
{
	CONTAINER_OF(hook, struct ticker, hook)->n++;
	clock_hook_remove(hook);
}

TEST(clock_hooks_that_lag_or_leave)
{
	struct ticker lags = { .hook = { .moved = note_moved, .next_ns = ticker_next }, .due = 5 };
	struct ticker leaves = { .hook = { .moved = leave_moved, .next_ns = ticker_next }, .due = 5 };

	clock_virtual_set(0, 0);
	clock_hook_add(&leaves.hook);
	clock_hook_add(&lags.hook);
	clock_virtual_advance(20);
	CHECK_INT(lags.n, 2);
	CHECK_INT(leaves.n, 1);
	CHECK(clock_now_ns() == 20);
	clock_hook_remove(&lags.hook);
	clock_virtual_off();
}
