/* Seats and queues under a virtual clock: who is served when, who is turned away, who gives up. */
#include "apiserver/fairness/queue_set.h"

#include "base/clock.h"
#include "base/fiber_test.h"
#include "base/mem.h"
#include "base/random.h"

/* Draws cards from a deck that is really there. */
static void deal_slowly(uint64_t hash, unsigned deck, unsigned n, unsigned hand[])
{
	unsigned cards[64];
	for (unsigned i = 0; i < deck; i++)
		cards[i] = i;
	for (unsigned i = 0; i < n; i++) {
		unsigned at = (unsigned)(hash % (deck - i));
		hash /= deck - i;
		hand[i] = cards[at];
		memmove(&cards[at], &cards[at + 1], (deck - i - at - 1) * sizeof *cards);
	}
}

TEST(shuffle_sharding_deals_different_cards)
{
	static const struct { unsigned deck, n; } t[] = { { 64, 6 }, { 16, 4 }, { 1, 1 }, { 8, 8 }, { 50, 10 }, { 15, 15 } };
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		for (int k = 0; k < 200; k++) {
			unsigned hand[HAND_MAX] = { 0 }, want[HAND_MAX] = { 0 };
			uint64_t hash = random_u64();
			shuffle_deal(hash, t[i].deck, t[i].n, hand);
			deal_slowly(hash, t[i].deck, t[i].n, want);
			CHECK_ROW(i, memcmp(hand, want, sizeof hand) == 0);
		}
}

/* ---- requests on fibers ---- */

enum { STEPS_MAX = 128 };

struct world {
	struct queue_set set;
	struct flow_series series;
	char order[STEPS_MAX];        /* who began, in the order of beginning */
	size_t n;
	unsigned at_work, most_at_work;
};

struct client {
	struct world *w;
	char name;
	uint64_t hash;
	struct seat_work work;
	int64_t takes_ms, patience_ms;
	int result;                   /* 1: rejected at once; 0: served; else what waiting returned */
	int64_t began_ms;
	struct fiber *fiber;
};

static int client_run(void *arg)
{
	struct client *c = arg;
	struct flow_seat seat = { .set = &c->w->set, .series = &c->w->series, .work = c->work };
	enum seat_state state = queue_set_enter(&seat, c->hash);
	c->result = state == SEAT_NONE;
	if (state == SEAT_WAITING)
		c->result = queue_set_wait(&seat, clock_now_ns() + c->patience_ms * NS_PER_MS);
	c->began_ms = clock_now_ns() / NS_PER_MS;
	if (c->result)
		return 0;
	c->w->order[c->w->n++] = c->name;
	c->w->at_work += seat_work_width(&c->work);
	c->w->most_at_work = MAX(c->w->most_at_work, c->w->at_work);
	(void)fiber_sleep_ms(c->takes_ms, NULL);
	c->w->at_work -= seat_work_width(&c->work);
	queue_set_leave(&seat);
	return 0;
}

static void world_init(struct world *w, unsigned limit, unsigned queues, unsigned hand, unsigned length)
{
	clock_virtual_set(0, 0);
	*w = (struct world){ .n = 0 };
	queue_set_init(&w->set);
	queue_set_configure(&w->set, &(struct queue_set_config){ .queues = queues, .hand_size = hand, .queue_length = length });
	queue_set_limit(&w->set, limit);
}

static void world_done(struct world *w)
{
	CHECK(queue_set_is_idle(&w->set) && !w->set.seats && !w->set.seats_waiting && !w->set.active && !w->set.n_lingering);
	CHECK(!w->series.waiting && !w->series.executing && !w->series.seats && !w->series.seats_waiting);
	queue_set_done(&w->set);
	clock_virtual_off();
}

/* n requests of one flow, which come one after the other at the same time. */
static void flood(struct world *w, struct client *c, size_t n, char name, uint64_t hash, int64_t takes_ms)
{
	for (size_t i = 0; i < n; i++) {
		c[i] = (struct client){ .w = w, .name = name, .hash = hash, .work.initial = 1, .takes_ms = takes_ms,
					.patience_ms = 60000 };
		c[i].fiber = start(client_run, &c[i]);
	}
}

static void join_all(struct client *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)join(c[i].fiber);
}

FIBER_TEST(a_flow_that_floods_does_not_keep_another_waiting)
{
	struct world *w = mem_zalloc(sizeof *w);
	struct client *a = mem_array(40, sizeof *a), b[4];
	world_init(w, 2, 8, 1, 50);
	flood(w, a, 40, 'a', 3, 10);
	CHECK(fiber_sleep_ms(25, NULL) == 0);
	flood(w, b, 4, 'b', 5, 10);
	join_all(b, 4);
	size_t behind = 0;
	for (size_t i = 0; i < w->n; i++)
		behind += w->order[i] == 'a';
	CHECK(behind <= 6 + 2 + 4); /* those that began before it came, and turn by turn after that */
	for (size_t i = 0; i < 4; i++)
		CHECK_ROW(i, b[i].began_ms <= 25 + 50);
	join_all(a, 40);
	CHECK_INT(w->n, 44);
	CHECK_INT(w->most_at_work, 2);
	world_done(w);
	free(a);
	free(w);
}

FIBER_TEST(wide_requests_count_as_wide)
{
	struct world *w = mem_zalloc(sizeof *w);
	struct client *a = mem_array(8, sizeof *a), *b = mem_array(40, sizeof *b);
	world_init(w, 4, 8, 1, 50);
	for (size_t i = 0; i < 8; i++) {
		a[i] = (struct client){ .w = w, .name = 'a', .hash = 3, .work.initial = 4, .takes_ms = 10, .patience_ms = 60000 };
		a[i].fiber = start(client_run, &a[i]);
	}
	flood(w, b, 40, 'b', 5, 10);
	CHECK(fiber_sleep_ms(95, NULL) == 0);
	size_t wide = 0, narrow = 0;
	for (size_t i = 0; i < w->n; i++)
		*(w->order[i] == 'a' ? &wide : &narrow) += 1;
	CHECK(wide >= 3 && wide <= 7 && narrow >= 4 * 3 && narrow <= 4 * 7);
	join_all(a, 8);
	join_all(b, 40);
	CHECK_INT(w->most_at_work, 4);
	world_done(w);
	free(a);
	free(b);
	free(w);
}

FIBER_TEST(full_queues_reject)
{
	struct world *w = mem_zalloc(sizeof *w);
	struct client a[6];
	world_init(w, 1, 1, 1, 3);
	flood(w, a, 6, 'a', 1, 10);
	join_all(a, 6);
	size_t served = 0, rejected = 0;
	for (size_t i = 0; i < 6; i++)
		*(a[i].result == 0 ? &served : &rejected) += 1;
	CHECK_INT(served, 4); /* one at once, three that waited */
	CHECK_INT(rejected, 2);
	CHECK_INT(w->series.rejected[FLOW_REJECT_QUEUE_FULL], 2);
	CHECK_INT(w->series.dispatched, 4);
	world_done(w);
	free(w);
}

FIBER_TEST(without_queues_nobody_waits)
{
	struct world *w = mem_zalloc(sizeof *w);
	struct client a[5];
	world_init(w, 3, 0, 0, 0);
	flood(w, a, 5, 'a', 1, 10);
	join_all(a, 5);
	CHECK(a[0].result == 0 && a[2].result == 0 && a[3].result == 1 && a[4].result == 1);
	CHECK_INT(w->series.rejected[FLOW_REJECT_CONCURRENCY], 2);
	queue_set_configure(&w->set, &(struct queue_set_config){ .exempt = true });
	flood(w, a, 5, 'a', 1, 10);
	join_all(a, 5);
	CHECK(a[4].result == 0);
	world_done(w);
	free(w);
}

FIBER_TEST(waiting_has_an_end)
{
	struct world *w = mem_zalloc(sizeof *w);
	struct client a[3];
	world_init(w, 1, 4, 2, 10);
	flood(w, a, 1, 'a', 1, 1000);
	a[1] = (struct client){ .w = w, .name = 'b', .hash = 2, .work.initial = 1, .takes_ms = 1, .patience_ms = 100 };
	a[2] = a[1];
	a[2].name = 'c';
	a[2].patience_ms = 5000;
	a[1].fiber = start(client_run, &a[1]);
	a[2].fiber = start(client_run, &a[2]);
	CHECK_INT(join(a[1].fiber), 0);
	CHECK(a[1].result == -ERR_TIMEOUT && a[1].began_ms == 100);
	CHECK_INT(w->series.rejected[FLOW_REJECT_TIMEOUT], 1);
	CHECK_INT(w->series.waiting, 1);
	fiber_cancel(a[2].fiber);
	CHECK_INT(join(a[2].fiber), 0);
	CHECK_INT(a[2].result, -ERR_CANCELED);
	CHECK_INT(w->set.n_waiting, 0);
	CHECK_INT(join(a[0].fiber), 0);
	world_done(w);
	free(w);
}

FIBER_TEST(seats_linger_after_a_write_that_many_hear_of)
{
	struct world *w = mem_zalloc(sizeof *w);
	struct client a[2];
	world_init(w, 2, 4, 2, 10);
	a[0] = (struct client){ .w = w, .name = 'a', .hash = 1, .work = { 1, 2, 50 * NS_PER_MS }, .takes_ms = 10, .patience_ms = 1000 };
	a[1] = (struct client){ .w = w, .name = 'b', .hash = 2, .work.initial = 1, .takes_ms = 1, .patience_ms = 1000 };
	a[0].fiber = start(client_run, &a[0]);
	a[1].fiber = start(client_run, &a[1]);
	CHECK_INT(join(a[0].fiber), 0);
	CHECK(queue_set_is_idle(&w->set) == false && w->set.seats == 2);
	CHECK_INT(join(a[1].fiber), 0);
	CHECK_INT(a[1].began_ms, 60);
	world_done(w);
	free(w);
}

FIBER_TEST(fewer_queues_and_seats_drain)
{
	struct world *w = mem_zalloc(sizeof *w);
	struct client *a = mem_array(30, sizeof *a);
	world_init(w, 1, 16, 4, 50);
	for (uint64_t i = 0; i < 30; i++)
		flood(w, &a[i], 1, 'a', i * 7919, 10);
	CHECK(fiber_sleep_ms(5, NULL) == 0);
	queue_set_configure(&w->set, &(struct queue_set_config){ .queues = 2, .hand_size = 1, .queue_length = 50 });
	queue_set_limit(&w->set, 3);
	join_all(a, 30);
	CHECK_INT(w->n, 30);
	CHECK_INT(w->most_at_work, 3);
	for (size_t i = 2; i < w->set.n_queues; i++)
		CHECK_ROW(i, !queue_set_figures(&w->set, i).waiters);
	world_done(w);
	free(a);
	free(w);
}

FIBER_TEST(demand_is_averaged_over_time)
{
	struct world *w = mem_zalloc(sizeof *w);
	struct client a[4];
	world_init(w, 2, 1, 1, 10);
	(void)seat_demand_take(&w->set.demand);
	flood(w, a, 4, 'a', 1, 1000); /* 4 for a second, 2 for a second, none for two */
	join_all(a, 4);
	CHECK(fiber_sleep_ms(2000, NULL) == 0);
	struct seat_demand_result d = seat_demand_take(&w->set.demand);
	CHECK(d.elapsed == 4 && d.highest == 4 && d.average == 1.5 && d.deviation > 1.6 && d.deviation < 1.7);
	d = seat_demand_take(&w->set.demand);
	CHECK(d.elapsed == 0 && d.highest == 0);
	world_done(w);
	free(w);
}
