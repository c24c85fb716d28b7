#include "scheduler/queue.h"

#include "base/clock.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "scheduler/plugin.h"

enum { BIT_CPU = 1, BIT_TAINT = 2 };

/* What the plugins of these tests are: bit 0 hopes for nodes and deletions, bit 1 for taints. Gates hold pods back. */
static bool may_enter(void *arg, struct val pod)
{
	(void)arg;
	return !val_len(val_get(pod, spec, schedulingGates));
}

static unsigned asked;

static bool helps(void *arg, struct queued *q, unsigned event, struct val old, struct val new)
{
	(void)arg, (void)old, (void)new;
	asked++;
	return ((q->refused_by & BIT_CPU) && (event & (EV_NODE_ADD | EV_POD_DELETE))) || ((q->refused_by & BIT_TAINT) && event == EV_NODE_TAINT);
}

static unsigned events_for(void *arg, const struct queued *q)
{
	(void)arg;
	return (q->refused_by & BIT_CPU ? EV_NODE_ADD | EV_POD_DELETE : 0) | (q->refused_by & BIT_TAINT ? EV_NODE_TAINT : 0);
}

static struct sched_queue *make(void)
{
	clock_virtual_set(100 * NS_PER_S, 1000 * NS_PER_S);
	return sched_queue_new(&(struct sched_queue_options){ .backoff_first_ms = 1000, .backoff_max_ms = 10000, .may_enter = may_enter,
		.events = events_for, .helps = helps });
}

static void done(struct sched_queue *q)
{
	sched_queue_free(q);
	clock_virtual_off();
}

static struct frozen *pod(const char *name, int priority, const char *more)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v;
	str json = arena_printf(&a, "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"%s\"},\"spec\":{\"priority\":%d%s}}", name, name, priority,
				more);

	CHECK_INT(json_decode(&a, json, &(struct json_decode_options){ .type = TYPE(core_v1, Pod) }, &v, NULL), 0);
	return val_freeze(v);
}

static void put(struct sched_queue *q, const char *name, int priority, const char *more)
{
	struct frozen *p = pod(name, priority, more);

	sched_queue_put(q, p);
	frozen_unref(p);
}

static struct queued *take(struct sched_queue *q, const char *name)
{
	struct queued *p = sched_queue_try(q);

	CHECK(p);
	CHECK_STR(val_str(p->pod->val, metadata, name), name);
	return p;
}

static void check_lengths(struct sched_queue *q, size_t active, size_t backoff, size_t unschedulable, size_t gated)
{
	CHECK_INT(sched_queue_length(q, "active"), active);
	CHECK_INT(sched_queue_length(q, "backoff"), backoff);
	CHECK_INT(sched_queue_length(q, "unschedulable"), unschedulable);
	CHECK_INT(sched_queue_length(q, "gated"), gated);
}

static void tick_for(struct sched_queue *q, int seconds)
{
	for (int i = 0; i < seconds; i++) {
		clock_virtual_advance(NS_PER_S);
		sched_queue_tick(q);
	}
}

/* With the pod "a", which was refused. */
static struct sched_queue *make_refused(uint64_t by)
{
	struct sched_queue *q = make();

	put(q, "a", 0, "");
	sched_queue_refused(q, take(q, "a"), by);
	return q;
}

/* With two pods, both taken. */
static struct sched_queue *make_taken(struct queued **ret_a, struct queued **ret_b)
{
	struct sched_queue *q = make();

	put(q, "a", 0, "");
	put(q, "b", 0, "");
	*ret_a = take(q, "a");
	*ret_b = take(q, "b");
	return q;
}

TEST(queue_gives_by_priority_then_by_age)
{
	struct sched_queue *q = make();

	put(q, "old", 0, "");
	clock_virtual_advance(NS_PER_MS);
	put(q, "young", 0, "");
	put(q, "important", 10, "");
	sched_queue_done(q, take(q, "important"));
	sched_queue_done(q, take(q, "old"));
	sched_queue_done(q, take(q, "young"));
	CHECK(!sched_queue_try(q));
	done(q);
}

TEST(queue_of_many_stays_in_order)
{
	struct sched_queue *q = make();
	char name[16];
	int last = 1000;

	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		put(q, name, i * 7919 % 101, "");
	}
	for (int i = 0; i < 500; i += 3) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		sched_queue_remove(q, str_of(name));
	}
	for (struct queued *p; (p = sched_queue_try(q));) {
		int priority = (int)val_int(p->pod->val, spec, priority);
		CHECK(priority <= last);
		last = priority;
		sched_queue_done(q, p);
	}
	check_lengths(q, 0, 0, 0, 0);
	done(q);
}

TEST(queue_refused_pods_wait_for_events_that_help)
{
	struct queued *a, *b;
	struct sched_queue *q = make_taken(&a, &b);

	sched_queue_refused(q, a, BIT_CPU);
	sched_queue_refused(q, b, BIT_TAINT);
	check_lengths(q, 0, 0, 2, 0);
	CHECK(!sched_queue_try(q));
	sched_queue_event(q, EV_POD_ADD, VAL_EMPTY, VAL_EMPTY);
	check_lengths(q, 0, 0, 2, 0);
	sched_queue_event(q, EV_NODE_ADD, VAL_EMPTY, VAL_EMPTY);
	check_lengths(q, 0, 1, 1, 0);
	/* Its back-off is over after the window of the next second. */
	tick_for(q, 1);
	check_lengths(q, 0, 1, 1, 0);
	tick_for(q, 1);
	check_lengths(q, 1, 0, 1, 0);
	/* One that has waited long enough need not back off. */
	sched_queue_event(q, EV_NODE_TAINT, VAL_EMPTY, VAL_EMPTY);
	check_lengths(q, 2, 0, 0, 0);
	done(q);
}

/* An event costs nothing where it cannot help. */
TEST(queue_asks_only_pods_that_an_event_may_help)
{
	struct sched_queue *q = make();

	for (int i = 0; i < 8; i++) {
		char name[2] = { (char)('a' + i), 0 };
		put(q, name, 0, "");
		sched_queue_refused(q, take(q, name), i % 4 ? BIT_CPU : BIT_TAINT);
	}
	clock_virtual_advance(10 * NS_PER_S);
	asked = 0;
	sched_queue_event(q, EV_POD_ADD, VAL_EMPTY, VAL_EMPTY);
	CHECK_INT(asked, 0);
	sched_queue_event(q, EV_NODE_TAINT, VAL_EMPTY, VAL_EMPTY);
	CHECK_INT(asked, 2);
	check_lengths(q, 2, 0, 6, 0);
	sched_queue_remove(q, STR("b"));
	sched_queue_event(q, EV_NODE_TAINT, VAL_EMPTY, VAL_EMPTY);
	CHECK_INT(asked, 2);
	sched_queue_event(q, EV_NODE_ADD, VAL_EMPTY, VAL_EMPTY);
	CHECK_INT(asked, 7);
	check_lengths(q, 7, 0, 0, 0);
	done(q);
}

TEST(queue_takes_from_back_off_when_there_is_nothing_else)
{
	struct sched_queue *q = make_refused(BIT_CPU);

	sched_queue_event(q, EV_NODE_ADD, VAL_EMPTY, VAL_EMPTY);
	check_lengths(q, 0, 1, 0, 0);
	struct queued *p = take(q, "a");
	CHECK_INT(p->attempts, 2);
	/* But not one that had an error. */
	sched_queue_again(q, p);
	check_lengths(q, 0, 1, 0, 0);
	CHECK(!sched_queue_try(q));
	tick_for(q, 2);
	sched_queue_done(q, take(q, "a"));
	done(q);
}

TEST(queue_backs_off_longer_and_longer_up_to_a_limit)
{
	static const int seconds[] = { 1, 2, 4, 8, 10, 10, 10 };
	struct sched_queue *q = make();

	put(q, "a", 0, "");
	for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
		sched_queue_again(q, take(q, "a"));
		tick_for(q, seconds[i]);
		CHECK_ROW(i, sched_queue_length(q, "active") == 0);
		tick_for(q, 1);
		CHECK_ROW(i, sched_queue_length(q, "active") == 1);
	}
	done(q);
}

TEST(queue_nobody_refused_means_try_again)
{
	struct sched_queue *q = make_refused(0);

	check_lengths(q, 0, 1, 0, 0);
	done(q);
}

TEST(queue_event_while_taken_counts)
{
	struct queued *a, *b;
	struct sched_queue *q = make_taken(&a, &b);

	sched_queue_event(q, EV_NODE_ADD, VAL_EMPTY, VAL_EMPTY);
	sched_queue_refused(q, a, BIT_CPU);
	sched_queue_refused(q, b, BIT_TAINT);
	check_lengths(q, 0, 1, 1, 0);
	done(q);
}

TEST(queue_forgets_what_waited_five_minutes)
{
	struct sched_queue *q = make_refused(BIT_CPU);

	tick_for(q, 299);
	check_lengths(q, 0, 0, 1, 0);
	tick_for(q, 31);
	check_lengths(q, 1, 0, 0, 0);
	done(q);
}

TEST(queue_gates_hold_a_pod_until_they_are_gone)
{
	struct sched_queue *q = make();

	put(q, "a", 0, ",\"schedulingGates\":[{\"name\":\"x\"}]");
	check_lengths(q, 0, 0, 0, 1);
	sched_queue_event(q, EV_NODE_ADD, VAL_EMPTY, VAL_EMPTY);
	sched_queue_event(q, EV_CLAIM, VAL_EMPTY, VAL_EMPTY);
	check_lengths(q, 0, 0, 0, 1);
	put(q, "a", 0, "");
	check_lengths(q, 1, 0, 0, 0);
	sched_queue_done(q, take(q, "a"));
	done(q);
}

TEST(queue_keeps_the_newest_of_a_pod)
{
	struct sched_queue *q = make();

	put(q, "a", 0, "");
	put(q, "a", 5, "");
	check_lengths(q, 1, 0, 0, 0);
	struct queued *p = take(q, "a");
	CHECK_INT(val_int(p->pod->val, spec, priority), 5);
	/* What is taken stays as it is until it is given back. */
	put(q, "a", 5, ",\"nodeSelector\":{\"x\":\"y\"}");
	CHECK(!val_has(p->pod->val, spec, nodeSelector));
	sched_queue_again(q, p);
	tick_for(q, 2);
	p = take(q, "a");
	CHECK(val_has(p->pod->val, spec, nodeSelector));
	sched_queue_done(q, p);
	/* A pod of that name may come again. */
	put(q, "a", 0, "");
	check_lengths(q, 1, 0, 0, 0);
	done(q);
}

TEST(queue_removed_while_taken_does_not_come_back)
{
	struct queued *a, *b;
	struct sched_queue *q = make_taken(&a, &b);

	sched_queue_remove(q, STR("a"));
	sched_queue_remove(q, STR("b"));
	sched_queue_refused(q, a, BIT_CPU);
	sched_queue_done(q, b);
	check_lengths(q, 0, 0, 0, 0);
	sched_queue_remove(q, STR("a"));
	done(q);
}

static int put_later(void *arg)
{
	CHECK_INT(fiber_sleep_ms(5, NULL), 0);
	put(arg, "a", 0, "");
	return 0;
}

FIBER_TEST(queue_take_waits)
{
	struct sched_queue *q = sched_queue_new(&(struct sched_queue_options){ .backoff_first_ms = 1, .backoff_max_ms = 1 });
	struct fiber *f = start(put_later, q);
	struct queued *p = NULL;

	CHECK_INT(sched_queue_take(q, &p, NULL), 1);
	sched_queue_done(q, p);
	CHECK_INT(join(f), 0);
	sched_queue_free(q);
}
