/* What the tests of fibers share. Not inlined: each brings a struct err, and frames are small here too. */
#ifndef C8S_BASE_FIBER_TEST_H
#define C8S_BASE_FIBER_TEST_H

#include "base/fiber.h"
#include "base/loop.h"
#include "base/test.h"

/* Runs fn on a fresh loop; its result. */
static __attribute__((noinline, unused)) int run_loop(int (*fn)(void *arg), void *arg)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct err err = ERR_INIT;

	CHECK_INT(loop_new("test", &loop, &err), 0);
	return loop_run(loop, fn, arg, &err);
}

/* Defines TEST(name) whose body runs on a fiber; FIBER_TEST_IF skips it where the condition does not hold. */
#define FIBER_TEST(test_name) FIBER_TEST_IF(true, test_name)
#define FIBER_TEST_IF(condition, test_name)                                       \
	static void fiber_body_##test_name(void);                                 \
	static int fiber_main_##test_name(void *arg)                              \
	{                                                                         \
		(void)arg;                                                        \
		fiber_body_##test_name();                                         \
		return 0;                                                         \
	}                                                                         \
	TEST(test_name)                                                           \
	{                                                                         \
		if (!(condition))                                                 \
			skip();                                                   \
		CHECK_INT(run_loop(fiber_main_##test_name, NULL), 0);             \
	}                                                                         \
	static void fiber_body_##test_name(void)

static __attribute__((noinline, unused)) struct fiber *start(int (*fn)(void *arg), void *arg)
{
	struct fiber *f = NULL;
	struct err err = ERR_INIT;

	if (fiber_spawn(fn, arg, &f, &err, "helper") < 0)
		fail_msg("%s", err.msg);
	return f;
}

static __attribute__((noinline, unused)) int join(struct fiber *f)
{
	int result = 0;

	CHECK_INT(fiber_join(f, &result, NULL), 0);
	return result;
}

#endif
