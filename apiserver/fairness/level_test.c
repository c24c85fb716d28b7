/* How seats are divided and lent, and how long the rejected stay away. */
#include "apiserver/fairness/level.h"

#include "base/clock.h"
#include "base/fiber_test.h"
#include "codec/types.h"
#include "machinery/testing.h"

TEST(retry_after_grows_and_shrinks)
{
	struct retry_after r = { 0 };
	CHECK_INT(retry_after_note(&r, 1000), 1);
	CHECK_INT(retry_after_note(&r, 1000), 1);
	CHECK_INT(retry_after_note(&r, 1000), 1);
	CHECK_INT(retry_after_note(&r, 1001), 2); /* three in a second */
	for (int i = 0; i < 10; i++)
		CHECK_INT(retry_after_note(&r, 1002), 2); /* not so soon again */
	CHECK_INT(retry_after_note(&r, 1003), 4);
	int64_t seconds = 4;
	for (int64_t at = 1004; at < 1200; at++)
		for (int i = 0; i < 10; i++)
			seconds = retry_after_note(&r, at);
	CHECK_INT(seconds, RETRY_AFTER_MAX);
	CHECK_INT(retry_after_note(&r, 2000), RETRY_AFTER_MAX - 1);
	CHECK_INT(retry_after_note(&r, 3000), RETRY_AFTER_MAX - 2);
}

TEST(allocation_keeps_bounds)
{
	static const struct { double sum; struct allocation a[3]; double want[3]; bool ok; } t[] = {
		{ 30, { { 10, 0, 100, 0 }, { 20, 0, 100, 0 }, { 0, 0, 0, 0 } }, { 10, 20, 0 }, true },
		{ 60, { { 10, 0, 100, 0 }, { 20, 0, 100, 0 }, { 30, 0, 100, 0 } }, { 10, 20, 30 }, true },
		{ 30, { { 10, 8, 100, 0 }, { 20, 0, 100, 0 }, { 30, 0, 100, 0 } }, { 8, 8.8, 13.2 }, true },
		{ 90, { { 10, 0, 12, 0 }, { 20, 0, 100, 0 }, { 30, 0, 100, 0 } }, { 12, 31.2, 46.8 }, true },
		{ 10, { { 10, 5, 12, 0 }, { 20, 5, 100, 0 }, { 30, 5, 100, 0 } }, { 0 }, false },
		{ 400, { { 10, 5, 12, 0 }, { 20, 5, 100, 0 }, { 30, 5, 100, 0 } }, { 0 }, false },
		{ 15, { { 10, 5, 12, 0 }, { 20, 5, 100, 0 }, { 30, 5, 100, 0 } }, { 5, 5, 5 }, true },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct allocation a[3];
		double fraction;
		memcpy(a, t[i].a, sizeof a);
		CHECK_ROW(i, allocate(t[i].sum, a, 3, &fraction) == t[i].ok);
		for (size_t k = 0; k < 3 && t[i].ok; k++)
			CHECK_ROW(i, a[k].share > t[i].want[k] - 0.001 && a[k].share < t[i].want[k] + 0.001);
	}
}

static struct val level(struct arena *a, const char *name, int shares, int lendable, const char *more)
{
	str text = arena_printf(a, "{'metadata':{'name':'%s','uid':'uid-%s'},'spec':{'type':'Limited','limited':"
				"{'nominalConcurrencyShares':%d,'lendablePercent':%d,'limitResponse':{%s}}}}",
				name, name, shares, lendable, more);
	return testing_typed(a, TYPE(flowcontrol_v1, PriorityLevelConfiguration), text.p);
}

#define QUEUES(n, hand) "'type':'Queue','queuing':{'queues':" #n ",'handSize':" #hand ",'queueLengthLimit':50}"

static size_t defaults(struct arena *a, struct val *ret)
{
	const struct val all[] = {
		level(a, "catch-all", 5, 0, "'type':'Reject'"),
		level(a, "global-default", 20, 50, QUEUES(128, 6)),
		level(a, "leader-election", 10, 0, QUEUES(16, 4)),
		level(a, "node-high", 40, 25, QUEUES(64, 6)),
		level(a, "system", 30, 33, QUEUES(64, 6)),
		level(a, "workload-high", 40, 50, QUEUES(128, 6)),
		level(a, "workload-low", 100, 90, QUEUES(128, 6)),
	};
	memcpy(ret, all, sizeof all);
	return ARRAY_LEN(all);
}

FIBER_TEST(seats_are_divided_by_shares)
{
	static const struct { const char *name; unsigned nominal, least, max_seats; } t[] = {
		{ "catch-all", 13, 13, 0 }, { "exempt", 0, 0, 0 }, { "global-default", 49, 24, 8 }, { "leader-election", 25, 25, 4 },
		{ "node-high", 98, 73, 15 }, { "system", 74, 50, 12 }, { "workload-high", 98, 49, 15 }, { "workload-low", 245, 24, 37 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val objects[8];
	struct levels l;
	clock_virtual_set(0, 0);
	levels_init(&l, 600);
	levels_update(&l, objects, defaults(&a, objects));
	CHECK_INT(l.n, ARRAY_LEN(t));
	unsigned current = 0;
	for (size_t i = 0; i < l.n; i++) {
		CHECK_STR_ROW(i, l.v[i]->name, t[i].name);
		CHECK_ROW(i, l.v[i]->nominal == t[i].nominal && l.v[i]->least == t[i].least && l.v[i]->max_seats == t[i].max_seats);
		CHECK_ROW(i, l.v[i]->current >= l.v[i]->least && l.v[i]->current <= l.v[i]->most);
		current += l.v[i]->current;
	}
	CHECK(current >= l.nominal_sum - 4 && current <= l.nominal_sum + 4);
	levels_done(&l);
	clock_virtual_off();
}

FIBER_TEST(seats_move_to_where_they_are_needed)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val objects[8];
	struct levels l;
	clock_virtual_set(0, 0);
	levels_init(&l, 600);
	levels_update(&l, objects, defaults(&a, objects));
	struct priority_level *busy = levels_find(&l, STR("global-default")), *idle = levels_find(&l, STR("workload-low"));
	unsigned before = busy->current;
	struct flow_series series = { 0 };
	struct flow_seat *seats = ARENA_ARRAY(&a, struct flow_seat, before);
	for (unsigned i = 0; i < before; i++) {
		seats[i] = (struct flow_seat){ .set = &busy->queues, .series = &series, .work.initial = 1 };
		CHECK_ROW(i, queue_set_enter(&seats[i], i) == SEAT_TAKEN);
	}
	CHECK(fiber_sleep_ms(LEVELS_ADJUST_MS, NULL) == 0);
	levels_adjust(&l);
	CHECK(busy->current > before && busy->smoothed > 40);
	CHECK(idle->current >= idle->least && idle->current < idle->nominal);
	for (unsigned i = 0; i < before; i++)
		queue_set_leave(&seats[i]);
	levels_done(&l);
	clock_virtual_off();
}

FIBER_TEST(levels_without_an_object_drain_and_go)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val objects[8];
	struct levels l;
	struct flow_series series = { 0 };
	levels_init(&l, 600);
	levels_update(&l, objects, defaults(&a, objects));
	struct priority_level *p = levels_find(&l, STR("system"));
	CHECK_STR(p->uid, "uid-system");
	struct flow_seat seat = { .set = &p->queues, .series = &series, .work.initial = 1 };
	CHECK(queue_set_enter(&seat, 1) == SEAT_TAKEN);
	levels_update(&l, objects, 1);
	CHECK(!levels_find(&l, STR("system")));
	CHECK_INT(l.n, 3);
	CHECK(p->nominal > 500);
	queue_set_leave(&seat);
	levels_adjust(&l);
	CHECK_INT(l.n, 2);
	CHECK_INT(levels_find(&l, STR("catch-all"))->nominal, 600);
	levels_update(&l, objects, 0); /* not even that: it must be there */
	CHECK_INT(l.n, 2);
	CHECK(levels_find(&l, STR("exempt"))->queues.config.exempt);
	levels_done(&l);
}
