#include "base/fiber_test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fiber_hooks.h"
#include "base/log.h"

/* What the fibers of a test did, in order. */
static struct buf trace = BUF_INIT(4096);

/* ---- Order and results ---- */

static int trace_twice(void *arg)
{
	const char *name = arg;
	for (int i = 1; i <= 2; i++) {
		buf_addf(&trace, "%s%d ", name, i);
		CHECK_INT(fiber_yield(NULL), 0);
	}
	return name[0];
}

FIBER_TEST(fiber_runs_in_order_of_spawning_and_yields_in_turn)
{
	buf_reset(&trace);
	struct fiber *a = start(trace_twice, "a"), *b = start(trace_twice, "b");
	CHECK_STR(buf_str(&trace), "");
	struct fiber *c = start(trace_twice, "c");
	CHECK_INT(join(a), 'a');
	CHECK_INT(join(b), 'b');
	CHECK_INT(join(c), 'c');
	CHECK_STR(buf_str(&trace), "a1 b1 c1 a2 b2 c2 ");
	buf_done(&trace);
}

static int return_7(void *arg)
{
	(void)arg;
	return 7;
}

static int sleep_forever(void *arg)
{
	(void)arg;
	return fiber_sleep_ns(INT64_MAX, NULL);
}

FIBER_TEST(fiber_join_stop_detach)
{
	struct fiber *f = start(return_7, NULL);
	fiber_settle();
	CHECK_INT(join(f), 7); /* ended before the join */
	CHECK_INT(join(start(return_7, NULL)), 7);
	CHECK_INT(fiber_stop(start(sleep_forever, NULL)), -ERR_CANCELED);
	CHECK_INT(fiber_stop(start(return_7, NULL)), 7);

	f = start(sleep_forever, NULL);
	{
		DEADLINE_SCOPE(1);
		struct err err = ERR_INIT;
		CHECK_INT(fiber_join(f, NULL, &err), -ERR_TIMEOUT);
		CHECK_STR(err_str(&err), "timed out while waiting for another fiber to end");
	}
	fiber_detach(start(return_7, NULL)); /* before it ran */
	struct fiber *ended = start(return_7, NULL);
	fiber_settle();
	fiber_detach(ended);
	{
		CLEANUP(fiber_stopp) struct fiber *helper = start(sleep_forever, NULL);
		CHECK(strcmp(fiber_name(helper), "helper") == 0);
	}
	CHECK_INT(loop_fibers(loop_self()), 2);
	fiber_cancel(f);
	fiber_settle();
	CHECK_INT(loop_fibers(loop_self()), 1);
	CHECK_INT(join(f), -ERR_CANCELED);
}

TEST(fiber_main_result_is_that_of_loop_run)
{
	CHECK_INT(run_loop(return_7, NULL), 7);
	CHECK(fiber_self() == NULL);
	CHECK(loop_self() == NULL);
}

/* ---- Cancel and deadline, at every waiting call of the room that needs no descriptor ---- */

static struct fiber_cond never;
static struct channel full, empty;
static struct fiber *sleeper;
static struct fiber_group group;
static int cleaned;

static void count_cleanup(int *unused)
{
	(void)unused;
	cleaned++;
}

static int wait_yield(struct err *err)
{
	int r;
	while ((r = fiber_yield(err)) == 0)
		(void)fiber_sleep_ns(1000, NULL);
	return r;
}

static int wait_check(struct err *err)
{
	int r;
	while ((r = fiber_check(err)) == 0)
		(void)fiber_sleep_ns(1000, NULL);
	return r;
}

static int wait_sleep(struct err *err) { return fiber_sleep_ms(3600 * 1000, err); }
static int wait_cond(struct err *err) { return fiber_cond_wait(&never, err); }
static int wait_send(struct err *err) { return channel_send(&full, NULL, err); }
static int wait_recv(struct err *err) { return channel_recv(&empty, &(void *){ NULL }, err); }
static int wait_join(struct err *err) { return fiber_join(sleeper, NULL, err); }
static int wait_group(struct err *err) { return fiber_group_wait(&group, err); }

static const struct {
	const char *what; /* in the message */
	int (*wait)(struct err *err);
} waits[] = {
	{ "the next step", wait_yield },
	{ "the next step", wait_check },
	{ "time to pass", wait_sleep },
	{ "never", wait_cond },
	{ "a place", wait_send },
	{ "a message", wait_recv },
	{ "another fiber to end", wait_join },
	{ "the fibers of a group to end", wait_group },
};

static struct err last_err;

static int wait_with_cleanup(void *arg)
{
	int (*wait)(struct err *err) = waits[*(size_t *)arg].wait;
	CLEANUP(count_cleanup) __attribute__((unused)) int guard = 0;
	return wait(&last_err);
}

static int wait_under_deadline(void *arg)
{
	DEADLINE_SCOPE(20);
	return wait_with_cleanup(arg);
}

static void waits_begin(void)
{
	fiber_cond_init(&never, "never");
	channel_init(&full, 1, "a place");
	channel_init(&empty, 1, "a message");
	CHECK(channel_try_send(&full, NULL));
	sleeper = start(sleep_forever, NULL);
	fiber_group_init(&group);
	CHECK_INT(fiber_group_spawn(&group, sleep_forever, NULL, NULL, "member"), 0);
	cleaned = 0;
}

static void waits_end(void)
{
	fiber_group_done(&group);
	(void)fiber_stop(sleeper);
	channel_done(&full);
	channel_done(&empty);
}

static void check_last_err(size_t row, const char *how)
{
	CLEANUP(buf_done) struct buf want = BUF_INIT(200);
	buf_addf(&want, "%s while waiting for %s", how, waits[row].what);
	CHECK_STR_ROW(row, err_str(&last_err), want.p);
}

FIBER_TEST(fiber_cancel_ends_every_wait_and_cleanups_run)
{
	waits_begin();
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		struct fiber *f = start(wait_with_cleanup, &i);
		fiber_settle();
		CHECK_ROW(i, cleaned == (int)i);
		fiber_cancel(f);
		CHECK_ROW(i, join(f) == -ERR_CANCELED);
		CHECK_ROW(i, cleaned == (int)i + 1);
		check_last_err(i, "canceled");
	}
	waits_end();
}

FIBER_TEST(fiber_cancel_before_the_wait)
{
	waits_begin();
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		struct fiber *f = start(wait_with_cleanup, &i);
		fiber_cancel(f);
		CHECK_ROW(i, join(f) == -ERR_CANCELED);
	}
	waits_end();
}

FIBER_TEST(fiber_deadline_ends_every_wait)
{
	waits_begin();
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		CHECK_ROW(i, join(start(wait_under_deadline, &i)) == -ERR_TIMEOUT);
		CHECK_ROW(i, cleaned == (int)i + 1);
		check_last_err(i, "timed out");
	}
	waits_end();
}

/* ---- Virtual time ---- */

/* The body of a test on a clock that starts at 0. */
static int virtual_main(void *arg)
{
	void (*body)(void) = *(void (**)(void))arg;
	body();
	return 0;
}

static void run_virtual(void (*body)(void))
{
	clock_virtual_set(0, 0);
	int r = run_loop(virtual_main, &body);
	clock_virtual_off();
	CHECK_INT(r, 0);
}

static int64_t now_ms(void) { return clock_now_ns() / NS_PER_MS; }

static int sleep_and_trace(void *arg)
{
	int64_t ms = *(int *)arg;
	CHECK_INT(fiber_sleep_ms(ms, NULL), 0);
	CHECK_INT(now_ms(), ms);
	buf_addf(&trace, "%d ", *(int *)arg);
	return 0;
}

static void sleep_in_order(void)
{
	int ms[] = { 3000, 1000, 7200 * 1000, 2000, 1000 };
	struct fiber *f[ARRAY_LEN(ms)];

	buf_reset(&trace);
	for (size_t i = 0; i < ARRAY_LEN(ms); i++)
		f[i] = start(sleep_and_trace, &ms[i]);
	for (size_t i = 0; i < ARRAY_LEN(ms); i++)
		CHECK_INT(join(f[i]), 0);
	CHECK_STR(buf_str(&trace), "1000 1000 2000 3000 7200000 ");
	buf_done(&trace);
}

TEST(fiber_virtual_clock_wakes_sleepers_in_order_without_waiting)
{
	struct timespec before, after;
	clock_gettime(CLOCK_MONOTONIC, &before);
	run_virtual(sleep_in_order);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK(after.tv_sec - before.tv_sec < 60);
}

static int tick_every_second(void *arg)
{
	int *ticks = arg;
	while (fiber_sleep_ms(1000, NULL) == 0)
		++*ticks;
	return 0;
}

static void advance_by_hand(void)
{
	int ticks = 0;
	struct fiber *f = start(tick_every_second, &ticks);

	fiber_settle();
	clock_virtual_advance(999 * NS_PER_MS);
	CHECK_INT(ticks, 0);
	clock_virtual_advance(NS_PER_MS);
	CHECK_INT(ticks, 1);
	clock_virtual_advance(10 * NS_PER_S); /* in steps: the fiber sees every second */
	CHECK_INT(ticks, 11);
	CHECK_INT(now_ms(), 11000);
	(void)fiber_stop(f);
	CHECK_INT(now_ms(), 11000);
}

TEST(fiber_virtual_clock_advanced_by_a_fiber) { run_virtual(advance_by_hand); }

static void nest_deadlines(void)
{
	{
		DEADLINE_SCOPE(1000);
		{
			DEADLINE_SCOPE(5000); /* the outer one is earlier and stays in force */
			CHECK_INT(fiber_deadline_ns(), 1000 * NS_PER_MS);
			CHECK_INT(fiber_sleep_ms(400, NULL), 0);
			CHECK_INT(fiber_sleep_ms(2000, NULL), -ERR_TIMEOUT);
			CHECK_INT(now_ms(), 1000);
		}
		CHECK_INT(fiber_check(NULL), -ERR_TIMEOUT);
	}
	CHECK_INT(fiber_check(NULL), 0);
	{
		DEADLINE_SCOPE(1000);
		{
			DEADLINE_SCOPE(100);
			CHECK_INT(fiber_sleep_ms(500, NULL), -ERR_TIMEOUT);
			CHECK_INT(now_ms(), 1100);
		}
		CHECK_INT(fiber_sleep_ms(500, NULL), 0); /* the outer one has time left */
		CHECK_INT(now_ms(), 1600);
		CHECK_INT(fiber_sleep_ms(400, NULL), 0); /* exactly at the deadline is in time */
		CHECK_INT(fiber_sleep_ms(0, NULL), -ERR_TIMEOUT);
	}
	CHECK_INT(fiber_deadline_ns(), INT64_MAX);
	CHECK_INT(fiber_sleep_ms(5000, NULL), 0);
	{
		DEADLINE_SCOPE(0);
		CHECK_INT(fiber_yield(NULL), -ERR_TIMEOUT);
	}
	{
		DEADLINE_SCOPE(INT64_MAX);
		CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	}
}

TEST(fiber_deadlines_nest) { run_virtual(nest_deadlines); }

static int shielded_cleanup(void *arg)
{
	int *steps = arg;
	DEADLINE_SCOPE(10000);
	if (fiber_sleep_ms(60000, NULL) != -ERR_CANCELED)
		return -1;
	{
		SHIELD_SCOPE();
		for (; *steps < 3; ++*steps)
			if (fiber_sleep_ms(60000, NULL) != 0) /* past the outer deadline, too */
				return -2;
		DEADLINE_SCOPE(50);
		if (fiber_sleep_ms(60000, NULL) != -ERR_TIMEOUT) /* a deadline inside counts */
			return -3;
	}
	return fiber_sleep_ms(1, NULL);
}

static void shield_a_cleanup(void)
{
	int steps = 0;
	struct fiber *f = start(shielded_cleanup, &steps);
	fiber_settle();
	fiber_cancel(f);
	fiber_settle();
	fiber_cancel(f);
	CHECK_INT(join(f), -ERR_CANCELED);
	CHECK_INT(steps, 3);
	CHECK_INT(now_ms(), 180050);
}

TEST(fiber_shield_lets_a_cleanup_wait) { run_virtual(shield_a_cleanup); }

/* ---- Condition ---- */

static int wait_and_trace(void *arg)
{
	int r = fiber_cond_wait(&never, NULL);
	buf_addf(&trace, "%s=%d ", (const char *)arg, r);
	return r;
}

FIBER_TEST(fiber_cond_signal_reaches_one_live_waiter)
{
	buf_reset(&trace);
	fiber_cond_init(&never, "a signal");
	fiber_cond_signal(&never); /* nobody there: forgotten */
	struct fiber *a = start(wait_and_trace, "a"), *b = start(wait_and_trace, "b"), *c = start(wait_and_trace, "c");
	fiber_settle();
	fiber_cancel(a);
	fiber_cond_signal(&never); /* not for a, which is already canceled */
	fiber_cancel(b);           /* too late: b has the signal */
	CHECK_INT(join(a), -ERR_CANCELED);
	CHECK_INT(join(b), 0);
	fiber_cond_broadcast(&never);
	CHECK_INT(join(c), 0);
	CLEANUP(buf_done) struct buf want = BUF_INIT(100);
	buf_addf(&want, "a=%d b=0 c=0 ", -ERR_CANCELED);
	CHECK_STR(buf_str(&trace), want.p);
	buf_done(&trace);
}

/* ---- Channel ---- */

static int send_numbers(void *arg)
{
	struct channel *c = arg;
	for (uintptr_t i = 1; i <= 100; i++) {
		int r = channel_send(c, (void *)i, NULL);
		if (r < 0)
			return r;
		CHECK(c->n <= c->cap);
	}
	channel_close(c);
	return 0;
}

FIBER_TEST(channel_keeps_order_and_drains_after_close)
{
	struct channel c;
	void *item;
	uintptr_t want = 1;
	int r;

	channel_init(&c, 3, "numbers");
	struct fiber *f = start(send_numbers, &c);
	while ((r = channel_recv(&c, &item, NULL)) > 0)
		CHECK_INT((uintptr_t)item, want++);
	CHECK_INT(r, 0);
	CHECK_INT(want, 101);
	CHECK_INT(join(f), 0);
	CHECK(!channel_try_send(&c, NULL));
	channel_done(&c);
}

static int recv_one(void *arg)
{
	void *item;
	return channel_recv(arg, &item, NULL);
}

FIBER_TEST(channel_close_wakes_both_sides)
{
	struct channel c;
	struct err err = ERR_INIT;
	void *item = NULL;

	channel_init(&c, 1, "numbers");
	struct fiber *receivers[] = { start(recv_one, &c), start(recv_one, &c) };
	fiber_settle();
	channel_close(&c);
	CHECK_INT(join(receivers[0]), 0);
	CHECK_INT(join(receivers[1]), 0);
	CHECK_INT(channel_send(&c, NULL, &err), -ERR_GONE);
	CHECK_STR(err_str(&err), "numbers is closed");
	channel_done(&c);

	channel_init(&c, 1, "numbers");
	struct fiber *f = start(send_numbers, &c);
	fiber_settle();
	channel_close(&c);
	CHECK_INT(join(f), -ERR_GONE);
	CHECK(channel_try_recv(&c, &item) && (uintptr_t)item == 1); /* what was inside is still there */
	CHECK(!channel_try_recv(&c, &item));
	channel_done(&c);
}

/* ---- Group ---- */

static int member(void *arg)
{
	int r = fiber_sleep_ms(*(int *)arg, NULL);
	if (r == 0)
		++*(int *)arg;
	return r;
}

static void run_group(void)
{
	int ms[3] = { 10, 20, 1000000 };
	CLEANUP(fiber_group_done) struct fiber_group g;

	fiber_group_init(&g);
	CHECK_INT(fiber_group_wait(&g, NULL), 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(fiber_group_spawn(&g, member, &ms[i], NULL, "member %d", i), 0);
	{
		DEADLINE_SCOPE(500);
		CHECK_INT(fiber_group_wait(&g, NULL), -ERR_TIMEOUT);
	}
	CHECK_INT(g.n, 1);
	CHECK(ms[0] == 11 && ms[1] == 21);
	fiber_group_cancel(&g);
	CHECK_INT(fiber_group_wait(&g, NULL), 0);
	CHECK_INT(ms[2], 1000000);
	CHECK_INT(fiber_group_spawn(&g, member, &ms[2], NULL, "left behind"), 0);
}

static void group_ends_with_its_scope(void)
{
	run_group();
	CHECK_INT(loop_fibers(loop_self()), 1);
	CHECK_INT(now_ms(), 500);
}

TEST(fiber_group_ends_with_its_scope) { run_virtual(group_ends_with_its_scope); }

/* ---- Log context, dump ---- */

static int keep_context(void *arg)
{
	LOG_CONTEXT("fiber", (const char *)arg);
	struct log_context *mine = *log_context_slot();
	for (int i = 0; i < 3; i++) {
		CHECK_INT(fiber_yield(NULL), 0);
		CHECK(*log_context_slot() == mine);
		CHECK(mine->outer == NULL);
	}
	return 0;
}

FIBER_TEST(fiber_has_its_own_log_context)
{
	CHECK(*log_context_slot() == NULL);
	LOG_CONTEXT("fiber", "main");
	struct log_context *mine = *log_context_slot();
	struct fiber *a = start(keep_context, "a"), *b = start(keep_context, "b");
	CHECK_INT(join(a), 0);
	CHECK(*log_context_slot() == mine);
	CHECK_INT(join(b), 0);
}

static str dump_to(int fd, char *p, size_t size)
{
	ssize_t n = pread(fd, p, size, 0);
	CHECK(n > 0);
	return str_span(p, (size_t)n);
}

FIBER_TEST(fiber_dump_shows_names_and_what_is_waited_for)
{
	struct fiber *f;
	char text[2048];
	int fd = memfd_create("dump", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_INT(fiber_spawn(sleep_forever, NULL, &f, NULL, "sleeper %d", 42), 0);
	fiber_settle();
	loop_dump(loop_self(), fd);
	str dump = dump_to(fd, text, sizeof(text));
	CHECK(str_starts(dump, STR("loop test: 2 fibers")));
	CHECK(str_find(dump, STR("main ")) > 0);
	CHECK(str_find(dump, STR("running")) > 0);
	CHECK(str_find(dump, STR("sleeper 42")) > 0);
	CHECK(str_find(dump, STR("for time to pass")) > 0);

	/* The same by SIGUSR2, on standard error. */
	int old = dup(STDERR_FILENO);
	CHECK_INT(ftruncate(fd, 0), 0);
	CHECK_INT(loop_dump_on_sigusr2(loop_self(), NULL), 0);
	CHECK_INT(loop_dump_on_sigusr2(loop_self(), NULL), 0);
	CHECK(dup2(fd, STDERR_FILENO) >= 0);
	CHECK_INT(kill(getpid(), SIGUSR2), 0);
	for (int i = 0; i < 1000 && lseek(fd, 0, SEEK_END) == 0; i++)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK(dup2(old, STDERR_FILENO) >= 0);
	CHECK(str_find(dump_to(fd, text, sizeof(text)), STR("sleeper 42")) > 0);
	close(old);
	close(fd);
	(void)fiber_stop(f);
}

/* ---- Many, and too much ---- */

static int wait_for_all(void *arg)
{
	int *n = arg, r = fiber_cond_wait(&never, NULL);
	++*n;
	return r;
}

FIBER_TEST(fiber_ten_thousand_at_once)
{
	/*
	 * ThreadSanitizer keeps a thread's worth of state for each, and valgrind searches all stacks at every switch.
	 */
	int n = 0, many = FIBER_TSAN || RUNNING_ON_VALGRIND ? 500 : 10000;
	CLEANUP(fiber_group_done) struct fiber_group g;

	fiber_group_init(&g);
	fiber_cond_init(&never, "all others");
	for (int round = 1; round <= 2; round++) {
		for (int i = 0; i < many; i++)
			CHECK_INT(fiber_group_spawn(&g, wait_for_all, &n, NULL, "f%d", i), 0);
		fiber_settle();
		CHECK_INT(n, (round - 1) * many);
		fiber_cond_broadcast(&never);
		CHECK_INT(fiber_group_wait(&g, NULL), 0);
		CHECK_INT(n, round * many);
	}
}

FIBER_TEST(fiber_spawn_has_a_maximum)
{
	struct err err = ERR_INIT;

	loop_set_max_fibers(loop_self(), 2);
	struct fiber *f = start(sleep_forever, NULL);
	CHECK_INT(fiber_spawn(sleep_forever, NULL, NULL, &err, "one too many"), -ERR_TOO_MANY_REQUESTS);
	CHECK_STR(err_str(&err), "loop test has 2 fibers, its maximum");
	(void)fiber_stop(f);
	CHECK_INT(join(start(return_7, NULL)), 7);
}

__attribute__((noinline)) static int recurse(int depth, volatile const char *outer)
{
	volatile char frame[1024];
	frame[0] = outer ? outer[0] : 0;
	return depth ? recurse(depth - 1, frame) + frame[0] : 0;
}

static int overflow(void *arg) { return recurse(*(int *)arg, NULL); }

TEST(fiber_stack_overflow_hits_the_guard)
{
	int status = 0, depth = 100000;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		(void)signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would turn it into an exit code */
		(void)run_loop(overflow, &depth);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static bool has_memory(uintptr_t p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char in_core = 0;

	CHECK_INT(mincore((void *)(p & ~(uintptr_t)(page - 1)), 1, &in_core), 0);
	return in_core & 1;
}

struct diver { uintptr_t here, deep; };

__attribute__((noinline, no_sanitize("address"))) static int dive(int depth, struct diver *d)
{
	volatile char frame[1024];

	frame[0] = 1;
	d->deep = (uintptr_t)frame;
	return depth ? dive(depth - 1, d) + frame[0] : 0;
}

static int dive_and_wait(void *arg)
{
	struct diver *d = arg;
	volatile int kept = dive(100, d);

	d->here = (uintptr_t)&kept;
	CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	return kept + dive(100, d);
}

FIBER_TEST(fiber_stack_gives_back_at_rest_what_is_below)
{
	struct diver d;
	struct fiber *f = start(dive_and_wait, &d);

	CHECK_INT(fiber_yield(NULL), 0);
	CHECK(has_memory(d.deep));
	loop_rest(loop_self());
	CHECK(has_memory(d.here) && !has_memory(d.deep));
	CHECK_INT(join(f), 200);
}
