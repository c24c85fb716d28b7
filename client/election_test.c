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
