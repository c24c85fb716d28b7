/*
 * Fibers: making, switching, waiting.
 *
 * The thread's own stack runs the scheduler (loop.c); every switch goes from there to a fiber or back. A fiber leaves
 * its stack only in suspend(), having said where it waits; whoever ends the wait takes it out of that place in the same
 * step, be it the event, a cancel or the deadline. Hence a signal is never given to a fiber that has already been
 * canceled, and a fiber that was given one returns success even if a cancel follows before it runs.
 *
 * fiber_loop is thread-local, and compilers may keep the address of a thread-local variable over a call that switches
 * stacks. That is right here, because a fiber never continues on another thread.
 */
#include "base/fiber_priv.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber_switch.h"

enum {
	BATCH = 256, /* fibers that run between two looks at the clock and the kernel */
	AHEAD = 2,   /* how long before its turn a fiber is fetched into the cache */
};

_Thread_local struct loop *fiber_loop;

struct fiber *fiber_self(void) { return fiber_loop ? fiber_loop->running : NULL; }
const char *fiber_name(const struct fiber *f) { return f->name; }

static struct fiber *self(void)
{
	struct fiber *f = fiber_self();
	assert(f && "this call is for fibers");
	return f;
}

/* ---- Switching ---- */

static void make_ready(struct fiber *f, int result)
{
	f->wait_result = result;
	f->state = FIBER_READY;
	list_remove(&f->link);
	list_add(&f->loop->ready, &f->link);
}

/* f itself is in the stack that goes. */
static void release(struct fiber *f)
{
	list_remove(&f->all);
	fiber_stack_put(f->loop, f->stack);
}

/* On the thread's stack, after the last instruction of the fiber. The stack stays while somebody holds the handle. */
static void finish(struct fiber *f)
{
	loop_timer_stop(&f->timer);
	shadow_done_fiber(&f->shadow);
	f->loop->n_fibers--;
	if (f->group) {
		list_remove(&f->group_link);
		if (--f->group->n == 0)
			fiber_cond_broadcast(&f->group->empty);
	}
	while (!list_empty(&f->joiners))
		make_ready(LIST_FIRST(struct fiber, &f->joiners, link), 0);
	if (!f->owned)
		release(f);
}

/*
 * With thousands of fibers, each finds its stack gone from the nearer caches, and waiting for memory would cost several
 * times the switch. So the top frames of one that is soon to run are fetched, and the struct of the one behind it, by
 * whose list link the next call gets there.
 */
static void prefetch(struct loop *loop)
{
	const struct list *at = &loop->ready;

	for (int i = 0; i < AHEAD; i++) {
		at = at->next;
		if (at == &loop->ready)
			return;
	}
	const char *frames = CONTAINER_OF(at, struct fiber, link)->sp;
	__builtin_prefetch(frames);
	__builtin_prefetch(frames + 64);
	__builtin_prefetch(frames + 128);
	__builtin_prefetch(at->next);
}

static void run(struct loop *loop, struct fiber *f)
{
	list_remove(&f->link);
	f->state = FIBER_RUNNING;
	loop->running = f;
	prefetch(loop);
	*loop->log_slot = f->log;
	shadow_leave(&loop->shadow, &f->shadow, false);
	fiber_switch(&loop->sp, f->sp);
	shadow_arrive(&loop->shadow, &f->shadow);
	f->log = *loop->log_slot;
	*loop->log_slot = NULL;
	loop->running = NULL;
	if (f->state == FIBER_DONE)
		finish(f);
}

void fiber_run_ready(struct loop *loop)
{
	for (int i = 0; i < BATCH && !list_empty(&loop->ready); i++)
		run(loop, LIST_FIRST(struct fiber, &loop->ready, link));
}

static void switch_to_loop(struct fiber *f)
{
	struct loop *loop = f->loop;

	shadow_leave(&f->shadow, &loop->shadow, f->state == FIBER_DONE);
	fiber_switch(&f->sp, loop->sp);
	shadow_arrive(&f->shadow, &loop->shadow);
}

static void fiber_main(void *arg)
{
	struct fiber *f = arg;

	shadow_arrive(&f->shadow, &f->loop->shadow);
	f->result = f->fn(f->arg);
	f->state = FIBER_DONE;
	switch_to_loop(f);
	abort();
}

/* ---- Waiting ---- */

/* Says what f is about to wait for, and looks whether it may: 0 or -ERR_x. */
static int check(struct fiber *f, const char *what, int what_fd)
{
	f->what = what;
	f->what_fd = what_fd;
	if (f->canceled && !f->shields)
		return -ERR_CANCELED;
	if (f->due_ns != NEVER_NS && f->due_ns <= clock_now_ns())
		return -ERR_TIMEOUT;
	return 0;
}

/* Passes r on, with a message if it is an error. */
static int explain(const struct fiber *f, int r, struct err *err)
{
	const char *how = r == -ERR_CANCELED ? "canceled" : "timed out";

	if (r == 0)
		return 0;
	if (f->what_fd >= 0)
		return err_set(err, (enum err_code)-r, "%s while waiting for %s %d", how, f->what, f->what_fd);
	return err_set(err, (enum err_code)-r, "%s while waiting for %s", how, f->what);
}

int fiber_check(struct err *err)
{
	struct fiber *f = self();
	return explain(f, check(f, "the next step", -1), err);
}

/* The timer of f ran out. It may have been left running by a wait that ended otherwise: then there is nothing to do. */
static void on_timer(struct loop_timer *timer)
{
	struct fiber *f = CONTAINER_OF(timer, struct fiber, timer);

	if (f->state == FIBER_WAITING)
		make_ready(f, f->timer_result);
}

/*
 * Before a wait. Most waits inside a deadline's scope end early and are followed by others with the same deadline, so
 * the timer is left alone when a wait ends, and stopped when the scope does. While all fibers wait, exactly the timers
 * that matter are running: a virtual clock relies on that.
 */
static void prepare_timer(struct fiber *f, int64_t due_ns, int result)
{
	f->timer_result = result;
	if (due_ns == NEVER_NS)
		loop_timer_stop(&f->timer);
	else if (!loop_timer_running(&f->timer) || f->timer.due_ns != due_ns)
		loop_timer_start(&f->timer, due_ns);
}

static int suspend(struct fiber *f, struct list *queue)
{
	f->since_ns = f->loop->now_ns;
	f->state = FIBER_WAITING;
	if (queue)
		list_add(queue, &f->link);
	switch_to_loop(f);
	return f->wait_result;
}

int fiber_wait(struct list *queue, const char *what, int what_fd, struct err *err)
{
	struct fiber *f = self();
	int r = check(f, what, what_fd);

	if (r == 0) {
		prepare_timer(f, f->due_ns, -ERR_TIMEOUT);
		r = suspend(f, queue);
	}
	return explain(f, r, err);
}

void fiber_wait_firm(struct list *queue, const char *what)
{
	struct fiber *f = self();

	f->what = what;
	f->what_fd = -1;
	f->shields++;
	prepare_timer(f, NEVER_NS, 0);
	(void)suspend(f, queue);
	f->shields--;
}

void fiber_wake(struct fiber *f)
{
	if (f->state == FIBER_WAITING)
		make_ready(f, 0);
}

int fiber_yield(struct err *err)
{
	int r = fiber_check(err);
	if (r < 0)
		return r;
	struct fiber *f = self();
	make_ready(f, 0);
	switch_to_loop(f);
	return 0;
}

void fiber_settle(void)
{
	fiber_wait_firm(&self()->loop->settling, "the others to settle");
}

/* The time in ns from now; NEVER_NS when that is beyond the end of time. */
static int64_t from_now(int64_t ns)
{
	int64_t t;
	return __builtin_add_overflow(clock_now_ns(), ns, &t) ? NEVER_NS : t;
}

int fiber_sleep_ns(int64_t ns, struct err *err)
{
	struct fiber *f = self();
	int64_t end_ns = from_now(MAX(ns, (int64_t)0));
	int r = check(f, "time to pass", -1);

	if (r == 0) {
		prepare_timer(f, MIN(end_ns, f->due_ns), end_ns <= f->due_ns ? 0 : -ERR_TIMEOUT);
		r = suspend(f, NULL);
		loop_timer_stop(&f->timer);
	}
	return explain(f, r, err);
}

static int64_t ns_of_ms(int64_t ms) { return ms > NEVER_NS / NS_PER_MS ? NEVER_NS : MAX(ms, (int64_t)0) * NS_PER_MS; }

int fiber_sleep_ms(int64_t ms, struct err *err) { return fiber_sleep_ns(ns_of_ms(ms), err); }

/* ---- Scopes ---- */

struct fiber_scope fiber_deadline_enter(int64_t ms)
{
	struct fiber *f = self();
	struct fiber_scope scope = { .fiber = f, .outer_due_ns = f->due_ns };

	f->due_ns = MIN(f->due_ns, from_now(ns_of_ms(ms)));
	return scope;
}

struct fiber_scope fiber_shield_enter(void)
{
	struct fiber *f = self();
	struct fiber_scope scope = { .fiber = f, .outer_due_ns = f->due_ns, .shields = true };

	f->shields++;
	f->due_ns = NEVER_NS;
	return scope;
}

void fiber_scope_leave(struct fiber_scope *scope)
{
	struct fiber *f = scope->fiber;

	assert(f == fiber_self());
	f->due_ns = scope->outer_due_ns;
	f->shields -= scope->shields;
	loop_timer_stop(&f->timer);
}

int64_t fiber_deadline_ns(void) { return self()->due_ns; }

/* ---- Life ---- */

int fiber_vspawn(int (*fn)(void *arg), void *arg, struct fiber_group *group, struct fiber **ret_fiber, struct err *err,
		 const char *name, va_list ap)
{
	struct loop *loop = fiber_loop;
	struct fiber_stack stack;
	struct fiber *f;

	assert(loop && "a fiber needs the loop that runs on this thread");
	if (loop->n_fibers >= loop->max_fibers)
		return err_set(err, ERR_TOO_MANY_REQUESTS, "loop %s has %u fibers, its maximum", loop->name, loop->n_fibers);
	int r = fiber_stack_get(loop, &stack, err);
	if (r < 0)
		return r;

	f = fiber_stack_top(stack, ++loop->last_id);
	memset(f, 0, sizeof(*f));
	f->loop = loop;
	f->stack = stack;
	f->fn = fn;
	f->arg = arg;
	f->due_ns = NEVER_NS;
	f->timer.fire = on_timer;
	f->what_fd = -1;
	f->canceled = loop->stopping;
	f->owned = ret_fiber != NULL;
	f->group = group;
	f->since_ns = loop->now_ns;
	f->id = loop->last_id;
	(void)vsnprintf(f->name, sizeof(f->name), name, ap);
	list_init(&f->joiners);
	list_add(&loop->fibers, &f->all);
	if (group) {
		list_add(&group->members, &f->group_link);
		group->n++;
	}
	loop->n_fibers++;
	shadow_init_fiber(&f->shadow, stack.low, fiber_stack_size());
	f->sp = fiber_switch_prepare(f, fiber_main, f);
	make_ready(f, 0);
	if (ret_fiber)
		*ret_fiber = f;
	return 0;
}

int fiber_spawn(int (*fn)(void *arg), void *arg, struct fiber **ret_fiber, struct err *err, const char *name, ...)
{
	va_list ap;
	va_start(ap, name);
	int r = fiber_vspawn(fn, arg, NULL, ret_fiber, err, name, ap);
	va_end(ap);
	return r;
}

void fiber_detach(struct fiber *f)
{
	f->owned = false;
	if (f->state == FIBER_DONE)
		release(f);
}

int fiber_join(struct fiber *f, int *ret_result, struct err *err)
{
	int r = fiber_check(err);

	assert(f != fiber_self());
	while (r == 0 && f->state != FIBER_DONE)
		r = fiber_wait(&f->joiners, "another fiber to end", -1, err);
	if (r < 0)
		return r;
	if (ret_result)
		*ret_result = f->result;
	fiber_detach(f);
	return 0;
}

int fiber_stop(struct fiber *f)
{
	int result = 0;

	fiber_cancel(f);
	SHIELD_SCOPE();
	(void)fiber_join(f, &result, NULL);
	return result;
}

void fiber_stopp(struct fiber **f)
{
	if (*f)
		(void)fiber_stop(TAKE(*f));
}

void fiber_cancel(struct fiber *f)
{
	f->canceled = true;
	if (f->state == FIBER_WAITING && !f->shields)
		make_ready(f, -ERR_CANCELED);
}

void fiber_cancel_all(struct loop *loop)
{
	LIST_EACH(struct fiber, f, &loop->fibers, all)
		fiber_cancel(f);
}

void fiber_free_ended(struct loop *loop)
{
	while (!list_empty(&loop->fibers))
		release(LIST_FIRST(struct fiber, &loop->fibers, all));
}
