/* For tests: a runtime that is a function, and fibers on a virtual clock. */
#ifndef C8S_KUBELET_CRI_TESTING_H
#define C8S_KUBELET_CRI_TESTING_H

#include "base/clock.h"
#include "base/fiber_test.h"
#include "kubelet/cri_client_priv.h"

struct cri_fake {
	struct cri cri;
	/* Answers one call; may suspend. */
	int (*ask)(struct cri_fake *f, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err);
	void *arg;
};

static int cri_fake_ask(struct cri *c, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct cri_fake *f = CONTAINER_OF(c, struct cri_fake, cri);

	return f->ask(f, rpc, a, request, ret, err);
}

static const struct cri_transport cri_fake_transport = { .ask = cri_fake_ask };

#define CRI_FAKE(fn, argument) { .cri = { &cri_fake_transport }, .ask = (fn), .arg = (argument) }

/* TEST(name) whose body runs on a fiber, while time stands still unless it is waited for. It begins at CLOCK_TEST_WALL_NS. */
#define CLOCK_TEST_WALL_NS (1700000000 * NS_PER_S)
#define CLOCK_TEST(test_name)                                               \
	static void clock_body_##test_name(void);                           \
	static int clock_main_##test_name(void *arg)                        \
	{                                                                   \
		(void)arg;                                                  \
		clock_body_##test_name();                                   \
		return 0;                                                   \
	}                                                                   \
	TEST(test_name)                                                     \
	{                                                                   \
		clock_virtual_set(NS_PER_S, CLOCK_TEST_WALL_NS);            \
		CHECK_INT(run_loop(clock_main_##test_name, NULL), 0);       \
		clock_virtual_off();                                        \
	}                                                                   \
	static void clock_body_##test_name(void)

#endif
