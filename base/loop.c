/*
 * The turn of a loop: take messages, fire timers, run ready fibers, then let libuv wait for the next event. Fibers and
 * timers are ours and libuv is only asked to wait, so that a virtual clock can take time's place. Callbacks of libuv
 * run inside uv_run, fibers outside: a fiber may therefore do anything to libuv's handles but run the loop.
 */
#include "base/fiber_priv.h"

#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* How often it is looked whether a loop rests, and how many turns it may make in that time. */
#define REST_NS (10 * NS_PER_S)
enum { REST_TURNS = 1000 };

/* Every loop of the process, for tools/gdb-fibers.py. */
static struct list loop_all = LIST_INIT(loop_all);
static pthread_mutex_t loop_all_lock = PTHREAD_MUTEX_INITIALIZER;

struct loop_message {
	struct loop_message *next;
	void (*fn)(void *arg);
	void *arg;
};

struct loop *loop_self(void) { return fiber_loop; }
struct uv_loop_s *loop_uv(struct loop *loop) { return &loop->uv; }
void loop_set_max_fibers(struct loop *loop, unsigned max) { loop->max_fibers = max; }
unsigned loop_fibers(const struct loop *loop) { return loop->n_fibers; }

/* ---- Timers: a binary heap; places count from 1, so the children of i are 2i and 2i+1 ---- */

static void place(struct loop *loop, size_t at, struct loop_timer *timer)
{
	loop->timers[at] = timer;
	timer->place = at;
}

static void sift_up(struct loop *loop, struct loop_timer *timer)
{
	size_t at = timer->place;

	for (; at > 1 && timer->due_ns < loop->timers[at / 2]->due_ns; at /= 2)
		place(loop, at, loop->timers[at / 2]);
	place(loop, at, timer);
}

static void sift_down(struct loop *loop, struct loop_timer *timer)
{
	size_t at = timer->place, child;

	for (; (child = at * 2) <= loop->n_timers; at = child) {
		if (child < loop->n_timers && loop->timers[child + 1]->due_ns < loop->timers[child]->due_ns)
			child++;
		if (timer->due_ns <= loop->timers[child]->due_ns)
			break;
		place(loop, at, loop->timers[child]);
	}
	place(loop, at, timer);
}

void loop_timer_start(struct loop_timer *timer, int64_t due_ns)
{
	struct loop *loop = fiber_loop;

	assert(loop && "a timer needs the loop that runs on this thread");
	timer->due_ns = due_ns;
	if (!timer->place) {
		if (loop->n_timers + 1 >= loop->cap_timers) {
			loop->cap_timers = MAX(loop->cap_timers * 2, (size_t)64);
			loop->timers = mem_resize(loop->timers, loop->cap_timers * sizeof(struct loop_timer *));
		}
		place(loop, ++loop->n_timers, timer);
	}
	sift_up(loop, timer);
	sift_down(loop, timer);
}

void loop_timer_stop(struct loop_timer *timer)
{
	struct loop *loop = fiber_loop;

	if (!timer->place)
		return;
	struct loop_timer *last = loop->timers[loop->n_timers--];
	if (last != timer) {
		place(loop, timer->place, last);
		sift_up(loop, last);
		sift_down(loop, last);
	}
	timer->place = 0;
}

static int64_t next_due(const struct loop *loop) { return loop->n_timers ? loop->timers[1]->due_ns : NEVER_NS; }

/* Fires what is due now; not endlessly, even if fire starts timers for times that are past. */
static void fire_due(struct loop *loop)
{
	loop->now_ns = clock_now_ns();
	for (size_t left = loop->n_timers; left && next_due(loop) <= loop->now_ns; left--) {
		struct loop_timer *timer = loop->timers[1];
		loop_timer_stop(timer);
		timer->fire(timer);
	}
}

/* ---- The virtual clock ---- */

static void on_clock_moved(struct clock_hook *hook)
{
	struct loop *loop = CONTAINER_OF(hook, struct loop, hook);

	fire_due(loop);
	if (loop->running)
		fiber_settle();
}

static int64_t clock_next(struct clock_hook *hook) { return next_due(CONTAINER_OF(hook, struct loop, hook)); }

static void follow_clock(struct loop *loop, bool wanted)
{
	if (wanted == loop->hooked)
		return;
	if (wanted)
		clock_hook_add(&loop->hook);
	else
		clock_hook_remove(&loop->hook);
	loop->hooked = wanted;
}

/* ---- Messages ---- */

void loop_post(struct loop *loop, void (*fn)(void *arg), void *arg)
{
	struct loop_message *m = mem_alloc(sizeof(*m)), *newest = atomic_load(&loop->inbox);

	m->fn = fn;
	m->arg = arg;
	do {
		m->next = newest;
	} while (!atomic_compare_exchange_weak(&loop->inbox, &newest, m));
	/* The loop takes all messages at once, so only the first after that has to wake it; m may be gone by now. */
	if (!newest && fiber_loop != loop)
		(void)uv_async_send(&loop->wake);
}

void loop_stop(struct loop *loop)
{
	atomic_store(&loop->stop_wanted, true);
	(void)uv_async_send(&loop->wake);
}

static bool has_messages(struct loop *loop) { return atomic_load(&loop->inbox) != NULL; }

/* The posted messages, oldest first. */
static struct loop_message *take_messages(struct loop *loop)
{
	struct loop_message *m = atomic_exchange(&loop->inbox, NULL), *oldest = NULL;

	while (m) {
		struct loop_message *older = m->next;
		m->next = oldest;
		oldest = m;
		m = older;
	}
	return oldest;
}

static void run_messages(struct loop *loop)
{
	struct loop_message *m = has_messages(loop) ? take_messages(loop) : NULL;

	while (m) {
		struct loop_message *next = m->next;
		m->fn(m->arg);
		free(m);
		m = next;
	}
	if (atomic_load(&loop->stop_wanted) && atomic_exchange(&loop->stop_wanted, false)) {
		loop->stopping = true;
		fiber_cancel_all(loop);
	}
}

/* ---- The turn ---- */

/* These only end libuv's waiting; the turn looks at the messages and the clock itself. */
static void on_wake(uv_async_t *wake) { (void)wake; }
static void on_tick(uv_timer_t *tick) { CONTAINER_OF(tick, struct loop, tick)->tick_ns = NEVER_NS; }

static bool idle(struct loop *loop) { return list_empty(&loop->ready) && !has_messages(loop); }

/*
 * Just before libuv waits: callbacks that it ran in this round (its timers come first, the tick among them) may have
 * made fibers ready or started timers. Without this it would wait as if they had not.
 */
static void on_prepare(uv_prepare_t *prepare)
{
	struct loop *loop = CONTAINER_OF(prepare, struct loop, prepare);

	if (!idle(loop) || (!loop->hooked && loop->tick_ns != next_due(loop)))
		uv_stop(&loop->uv);
}

/* Sets the libuv timer to the next time that something is due; false when that is now. */
static bool set_tick(struct loop *loop)
{
	int64_t next = next_due(loop), ns = next == NEVER_NS ? NEVER_NS : next - clock_now_ns();

	if (ns <= 0)
		return false;
	if (next == loop->tick_ns)
		return true;
	loop->tick_ns = next;
	if (next == NEVER_NS)
		return uv_timer_stop(&loop->tick) == 0;
	uv_update_time(&loop->uv);
	return uv_timer_start(&loop->tick, on_tick, (uint64_t)((ns - 1) / NS_PER_MS + 1), 0) == 0;
}

void loop_rest(struct loop *loop) { fiber_stack_rest(loop); }

/* The heap is looked through only once, which takes a while in a large process. */
static void look_for_rest(struct loop *loop)
{
	bool rests = loop->turns < REST_TURNS;

	if (loop->now_ns < loop->rest_ns)
		return;
	if (rests)
		loop_rest(loop);
	if (rests && loop->busy)
		(void)malloc_trim(0);
	loop->busy = !rests;
	loop->turns = 0;
	loop->rest_ns = loop->now_ns + REST_NS;
}

/* Nothing is ready: waits for events, or moves the virtual clock. */
static void wait_idle(struct loop *loop)
{
	if (!list_empty(&loop->settling) && !(loop->hooked && loop->outside)) {
		fiber_wake(LIST_FIRST(struct fiber, &loop->settling, link));
		return;
	}
	if (!loop->hooked) {
		look_for_rest(loop);
		(void)uv_run(&loop->uv, set_tick(loop) ? UV_RUN_ONCE : UV_RUN_NOWAIT);
		return;
	}
	int64_t next = next_due(loop);
	if (next == NEVER_NS || loop->outside)
		(void)uv_run(&loop->uv, UV_RUN_ONCE);
	else
		clock_virtual_advance(MAX(next - clock_now_ns(), (int64_t)0));
}

static void turn(struct loop *loop)
{
	loop->turns++;
	follow_clock(loop, clock_is_virtual());
	run_messages(loop);
	fire_due(loop);
	fiber_run_ready(loop);
	if (!loop->n_fibers)
		return;
	/* What libuv has already may come before time moves on or a settled test looks around. */
	if (!idle(loop) || loop->hooked || !list_empty(&loop->settling))
		(void)uv_run(&loop->uv, UV_RUN_NOWAIT);
	if (idle(loop))
		wait_idle(loop);
}

int loop_run(struct loop *loop, int (*fn)(void *arg), void *arg, struct err *err)
{
	struct fiber *first;

	assert(!fiber_loop && "one loop runs on a thread at a time");
	fiber_loop = loop;
	loop->now_ns = clock_now_ns();
	loop->rest_ns = loop->now_ns + REST_NS;
	loop->busy = true;
	loop->log_slot = log_context_slot();
	shadow_init_thread(&loop->shadow);
	int r = fiber_spawn(fn, arg, &first, err, "main");
	if (r == 0) {
		struct log_context *log = *loop->log_slot;
		*loop->log_slot = NULL;
		while (loop->n_fibers)
			turn(loop);
		r = first->result;
		fiber_detach(first);
		*loop->log_slot = log;
	}
	while (loop->n_timers)
		loop_timer_stop(loop->timers[1]);
	follow_clock(loop, false);
	loop->stopping = false;
	fiber_loop = NULL;
	return r;
}

/* ---- Life ---- */

static int init_handles(struct loop *loop, struct err *err)
{
	int r = uv_async_init(&loop->uv, &loop->wake, on_wake);
	if (r == 0)
		r = uv_timer_init(&loop->uv, &loop->tick);
	if (r == 0)
		r = uv_prepare_init(&loop->uv, &loop->prepare);
	if (r == 0)
		r = uv_prepare_start(&loop->prepare, on_prepare);
	return r < 0 ? err_sys(err, -r, "start an event loop") : fiber_io_init(loop, err);
}

int loop_new(const char *name, struct loop **ret_loop, struct err *err)
{
	CLEANUP(mem_freep) struct loop *loop = mem_zalloc(sizeof(*loop));

	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(loop->name, sizeof(loop->name), "%s", name);
	list_init(&loop->ready);
	list_init(&loop->settling);
	list_init(&loop->fibers);
	loop->max_fibers = LOOP_FIBERS_DEFAULT;
	loop->tick_ns = NEVER_NS;
	loop->hook = (struct clock_hook){ .moved = on_clock_moved, .next_ns = clock_next };
	loop->epoll = -1;
	int r = uv_loop_init(&loop->uv);
	if (r < 0)
		return err_sys(err, -r, "make an event loop");
	pthread_mutex_lock(&loop_all_lock);
	list_add(&loop_all, &loop->all);
	pthread_mutex_unlock(&loop_all_lock);
	r = init_handles(loop, err);
	if (r < 0) {
		loop_free(TAKE(loop));
		return r;
	}
	*ret_loop = TAKE(loop);
	return 0;
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	assert(loop != fiber_loop && !loop->n_fibers);
	pthread_mutex_lock(&loop_all_lock);
	list_remove(&loop->all);
	pthread_mutex_unlock(&loop_all_lock);
	uv_walk(&loop->uv, close_handle, NULL);
	(void)uv_run(&loop->uv, UV_RUN_DEFAULT);
	int r = uv_loop_close(&loop->uv);
	assert(r == 0);
	(void)r;
	for (struct loop_message *m = take_messages(loop), *next; m; m = next) {
		next = m->next;
		free(m);
	}
	fiber_io_close(loop);
	fiber_free_ended(loop);
	fiber_stack_drop_pool(loop);
	free(loop->timers);
	free(loop);
}

void loop_freep(struct loop **loop) { loop_free(TAKE(*loop)); }
