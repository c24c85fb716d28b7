#include "base/loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fiber_test.h"

/* ---- Messages ---- */

enum { POSTERS = 4, POSTS = 2000 };

struct counter {
	struct loop *loop;
	int last[POSTERS], total;
	struct fiber_cond changed;
};

struct post {
	struct counter *counter;
	int poster, n;
};

static void count(void *arg)
{
	struct post *p = arg;
	CHECK_INT(p->n, p->counter->last[p->poster] + 1); /* in the order of each poster */
	p->counter->last[p->poster] = p->n;
	p->counter->total++;
	fiber_cond_signal(&p->counter->changed);
}

struct poster {
	pthread_t thread;
	struct post posts[POSTS];
};

static void *post_all(void *arg)
{
	struct poster *p = arg;
	for (int i = 0; i < POSTS; i++)
		loop_post(p->posts[i].counter->loop, count, &p->posts[i]);
	return NULL;
}

FIBER_TEST(loop_post_from_several_threads)
{
	static struct poster posters[POSTERS];
	struct counter c = { .loop = loop_self() };

	fiber_cond_init(&c.changed, "messages");
	for (int i = 0; i < POSTERS; i++) {
		for (int n = 0; n < POSTS; n++)
			posters[i].posts[n] = (struct post){ &c, i, n + 1 };
		CHECK_INT(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
	}
	while (c.total < POSTERS * POSTS)
		CHECK_INT(fiber_cond_wait(&c.changed, NULL), 0);
	for (int i = 0; i < POSTERS; i++)
		CHECK_INT(pthread_join(posters[i].thread, NULL), 0);
}

static void add_one(void *arg) { ++*(int *)arg; }

FIBER_TEST(loop_post_to_itself_runs_later)
{
	int n = 0;
	loop_post(loop_self(), add_one, &n);
	CHECK_INT(n, 0);
	fiber_settle();
	CHECK_INT(n, 1);
}

/* libuv runs its timers before it waits: it must not wait then. */
static void on_uv_timer(uv_timer_t *timer) { fiber_cond_signal(timer->data); }

FIBER_TEST(loop_uv_timer_that_wakes_the_only_fiber)
{
	uv_timer_t timer;
	struct fiber_cond fired = FIBER_COND_INIT(fired, "a timer of libuv");

	CHECK_INT(uv_timer_init(loop_uv(loop_self()), &timer), 0);
	timer.data = &fired;
	CHECK_INT(uv_timer_start(&timer, on_uv_timer, 0, 0), 0);
	DEADLINE_SCOPE(60000); /* with nothing else that would end the waiting */
	CHECK_INT(fiber_cond_wait(&fired, NULL), 0);
	CHECK(fiber_check(NULL) == 0);
	uv_close((uv_handle_t *)&timer, NULL);
	fiber_settle();
}

static int do_nothing(void *arg)
{
	(void)arg;
	return fiber_yield(NULL);
}

TEST(loop_runs_again_and_takes_what_was_posted_meanwhile)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	int n = 0;

	CHECK_INT(loop_new("a name that is much too long", &loop, NULL), 0);
	loop_post(loop, add_one, &n);
	CHECK_INT(n, 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(loop_run(loop, do_nothing, NULL, NULL), 0);
	CHECK_INT(n, 1);
	loop_post(loop, add_one, &n); /* dropped by loop_free */
}

/* ---- Two loops that talk ---- */

/* One side of a game: the ball is a number that both count up, and never touched by both threads at a time. */
struct player {
	struct loop *loop;
	struct player *other;
	struct channel inbox;
	int64_t *ball;
};

enum { ROUNDS = 1000 };

static void catch_ball(void *arg)
{
	struct player *p = arg;
	CHECK(channel_try_send(&p->inbox, p->ball));
}

static int play(void *arg)
{
	struct player *p = arg;
	void *item;

	while (channel_recv(&p->inbox, &item, NULL) > 0) {
		int64_t *ball = item;
		bool over = ++*ball >= ROUNDS;
		p->other->ball = ball;
		loop_post(p->other->loop, catch_ball, p->other);
		if (over)
			break;
	}
	return 0;
}

static void *play_on_thread(void *arg)
{
	struct player *p = arg;
	struct err err = ERR_INIT;
	CHECK_INT(loop_run(p->loop, play, p, &err), 0);
	return NULL;
}

TEST(loop_two_threads_exchange_messages)
{
	struct player a = { .loop = NULL }, b = { .loop = NULL };
	int64_t ball = 0;
	pthread_t thread;

	a.other = &b;
	b.other = &a;
	a.ball = &ball;
	CHECK_INT(loop_new("a", &a.loop, NULL), 0);
	CHECK_INT(loop_new("b", &b.loop, NULL), 0);
	channel_init(&a.inbox, 1, "the ball");
	channel_init(&b.inbox, 1, "the ball");
	loop_post(a.loop, catch_ball, &a);
	CHECK_INT(pthread_create(&thread, NULL, play_on_thread, &a), 0);
	play_on_thread(&b);
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK(ball == ROUNDS || ball == ROUNDS + 1);
	loop_free(a.loop);
	loop_free(b.loop);
	channel_done(&a.inbox);
	channel_done(&b.inbox);
}

/* ---- Stop ---- */

static int sleep_long(void *arg)
{
	int *r = arg;
	*r = fiber_sleep_ms(3600 * 1000, NULL);
	/* Born after the stop: canceled from the start. */
	if (fiber_spawn(do_nothing, NULL, NULL, NULL, "late") < 0)
		return -1;
	return 5;
}

static void *stop_from_thread(void *arg)
{
	loop_stop(arg);
	return NULL;
}

TEST(loop_stop_from_another_thread_cancels_all)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	pthread_t thread;
	int r = 0;

	CHECK_INT(loop_new("stopped", &loop, NULL), 0);
	CHECK_INT(pthread_create(&thread, NULL, stop_from_thread, loop), 0);
	CHECK_INT(loop_run(loop, sleep_long, &r, NULL), 5);
	CHECK_INT(r, -ERR_CANCELED);
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK_INT(loop_run(loop, do_nothing, NULL, NULL), 0); /* over: the next run is a new one */
	loop_stop(loop);
	CHECK_INT(loop_run(loop, do_nothing, NULL, NULL), -ERR_CANCELED);
}

/* ---- Timers ---- */

static struct buf fired = BUF_INIT(1024);

struct named_timer {
	struct loop_timer timer;
	char name;
};

static void on_fire(struct loop_timer *timer)
{
	CHECK(clock_now_ns() >= timer->due_ns);
	buf_addc(&fired, CONTAINER_OF(timer, struct named_timer, timer)->name);
}

FIBER_TEST(loop_timers_fire_in_order_of_time)
{
	static struct named_timer t[26]; /* one outlives the fiber */
	int64_t now = clock_now_ns();

	buf_reset(&fired);
	for (int i = 0; i < 26; i++) {
		t[i] = (struct named_timer){ LOOP_TIMER_INIT(on_fire), (char)('a' + i) };
		/* Started in a scattered order. */
		loop_timer_start(&t[i].timer, now + (i * 7 % 26) * NS_PER_MS / 10);
	}
	for (int i = 1; i < 26; i += 2)
		loop_timer_stop(&t[i].timer);
	loop_timer_start(&t[0].timer, now + 20 * NS_PER_MS); /* moved to the end */
	CHECK(loop_timer_running(&t[0].timer) && !loop_timer_running(&t[1].timer));
	CHECK_INT(fiber_sleep_ms(30, NULL), 0);
	/* The even letters by i * 7 % 26. */
	CHECK_STR(buf_str(&fired), "eimquycgkoswa");
	buf_done(&fired);
	loop_timer_start(&t[0].timer, INT64_MAX); /* left running */
}

static void restart(struct loop_timer *timer)
{
	struct named_timer *t = CONTAINER_OF(timer, struct named_timer, timer);
	if (++t->name < 100)
		loop_timer_start(timer, 0);
}

FIBER_TEST(loop_timer_may_restart_itself)
{
	struct named_timer t = { LOOP_TIMER_INIT(restart), 0 };
	loop_timer_start(&t.timer, 0);
	while (t.name < 100)
		CHECK_INT(fiber_yield(NULL), 0);
	CHECK(!loop_timer_running(&t.timer));
}
