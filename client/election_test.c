#include "client/election.h"

#include "base/clock.h"
#include "base/fiber_test.h"
#include "client/fake_test.h"
#include "codec/atoms.h"

struct candidate {
	struct election election;
	unsigned led, leading;
	int64_t ends_after_ms;       /* 0: leads until canceled */
	int result;
};

static int lead(void *arg)
{
	struct candidate *c = arg;
	c->led++;
	c->leading = 1;
	int r = fiber_sleep_ms(c->ends_after_ms ? c->ends_after_ms : 1000 * 1000, NULL);
	c->leading = 0;
	return r < 0 ? r : 7;
}

static int run(void *arg)
{
	struct candidate *c = arg;
	return c->result = election_run(&c->election, lead, c, NULL);
}

static struct candidate candidate(struct fake *f, const char *name)
{
	return (struct candidate){ .election = { .client = &f->client, .namespace = STR("kube-system"), .name = STR("boss"),
						 .identity = str_of(name) } };
}

#define LEASE "leases/kube-system/boss"

FIBER_TEST(election_has_one_leader_and_the_next_takes_over)
{
	struct fake f;
	fake_clock(0);
	fake_init(&f);
	struct candidate a = candidate(&f, "a"), b = candidate(&f, "b");
	struct fiber *fa = start(run, &a);
	fiber_settle();
	struct fiber *fb = start(run, &b);
	CHECK_INT(fiber_sleep_ms(60000, NULL), 0);
	CHECK_INT(a.leading, 1);
	CHECK_INT(b.led, 0);
	CHECK_STR(val_str(fake_get(&f, LEASE)->val, spec, holderIdentity), "a");
	CHECK_INT(val_int(fake_get(&f, LEASE)->val, spec, leaseDurationSeconds), 15);

	CHECK_INT(fiber_stop(fa), -ERR_CANCELED); /* without a word: its lease has to run out */
	CHECK_INT(a.leading, 0);
	CHECK_INT(fiber_sleep_ms(10000, NULL), 0);
	CHECK_INT(b.led, 0);
	CHECK_INT(fiber_sleep_ms(20000, NULL), 0);
	CHECK_INT(b.leading, 1);
	CHECK_INT(val_int(fake_get(&f, LEASE)->val, spec, leaseTransitions), 1);
	(void)fiber_stop(fb);
	fake_done(&f);
	clock_virtual_off();
}

FIBER_TEST(election_gives_the_lease_back_when_asked)
{
	struct fake f;
	fake_clock(0);
	fake_init(&f);
	struct candidate a = candidate(&f, "a"), b = candidate(&f, "b");
	a.election.release = true;
	struct fiber *fa = start(run, &a);
	fiber_settle();
	struct fiber *fb = start(run, &b);
	fiber_settle();
	(void)fiber_stop(fa);
	CHECK_STR(val_str(fake_get(&f, LEASE)->val, spec, holderIdentity), "");
	CHECK_INT(fiber_sleep_ms(5000, NULL), 0);
	CHECK_INT(b.leading, 1);
	(void)fiber_stop(fb);
	fake_done(&f);
	clock_virtual_off();
}

FIBER_TEST(election_stops_leading_when_it_cannot_renew)
{
	struct fake f;
	fake_clock(0);
	fake_init(&f);
	struct candidate a = candidate(&f, "a");
	struct fiber *fa = start(run, &a);
	CHECK_INT(fiber_sleep_ms(5000, NULL), 0);
	f.fail = ERR_UNAVAILABLE;
	CHECK_INT(fiber_sleep_ms(5000, NULL), 0);
	CHECK_INT(a.leading, 1); /* not yet */
	CHECK_INT(fiber_sleep_ms(8000, NULL), 0);
	CHECK_INT(a.leading, 0); /* before the lease can be somebody else's */
	CHECK_INT(join(fa), -ERR_UNAVAILABLE);
	fake_done(&f);
	clock_virtual_off();
}

FIBER_TEST(election_ends_with_the_leaders_own_result)
{
	struct fake f;
	fake_clock(0);
	fake_init(&f);
	struct candidate a = candidate(&f, "a");
	a.ends_after_ms = 30000;
	struct fiber *fa = start(run, &a);
	CHECK_INT(join(fa), 7);
	CHECK_INT(a.led, 1);
	fake_done(&f);
	clock_virtual_off();
}

struct bystander {
	struct candidate candidate;
	struct fiber *fiber;
	unsigned before;             /* so many fibers come and go before it */
	int result;
};

static int nothing(void *arg) { return arg ? 0 : -1; }

static int stand_by(void *arg)
{
	struct bystander *b = arg;
	return b->result = fiber_sleep_ms(1000 * 1000, NULL);
}

/* A leader that still starts something when it is told to stop; the fiber that kept the lease has ended by then. */
static int lead_and_leave(void *arg)
{
	struct bystander *b = arg;
	int r = fiber_sleep_ms(1000 * 1000, NULL);
	SHIELD_SCOPE();
	for (unsigned i = 0; i < b->before; i++)
		CHECK_INT(join(start(nothing, b)), 0);
	CHECK_INT(fiber_spawn(stand_by, b, &b->fiber, NULL, "bystander"), 0);
	fiber_settle();
	return r;
}

static int run_and_leave(void *arg)
{
	struct bystander *b = arg;
	return election_run(&b->candidate.election, lead_and_leave, b, NULL);
}

/* Fibers lie in their stacks at one of a few places, by their number: one of these would be where the one that kept the lease was. */
FIBER_TEST(election_that_is_lost_cancels_nobody_else)
{
	for (unsigned before = 0; before < 16; before++) {
		struct fake f;
		fake_clock(0);
		fake_init(&f);
		struct bystander b = { .candidate = candidate(&f, "a"), .before = before };
		struct fiber *fb = start(run_and_leave, &b);
		CHECK_INT(fiber_sleep_ms(5000, NULL), 0);
		f.fail = ERR_UNAVAILABLE;
		CHECK_INT(join(fb), -ERR_UNAVAILABLE);
		CHECK_INT(fiber_sleep_ms(5000, NULL), 0);
		CHECK_INT(b.result, 0);
		(void)fiber_stop(b.fiber);
		fake_done(&f);
		clock_virtual_off();
	}
}
