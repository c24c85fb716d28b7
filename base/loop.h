/*
 * loop: one event loop (libuv) per thread and any number of fibers on it. Fibers never move to another loop. Threads
 * share nothing but immutable values; loops talk through loop_post. Fibers themselves are in fiber.h.
 *
 *	int app(void *arg) { ... fiber_sleep_ms(100, &err) ... return 0; }
 *
 *	struct loop *loop;
 *	int r = loop_new("api", &loop, &err);
 *	if (r == 0)
 *		r = loop_run(loop, app, arg, &err);
 *	loop_free(loop);
 *
 * Time is that of base/clock.h. On a virtual clock (set before loop_run, driven by this thread only) no time is waited
 * for: once no fiber can run and the thread pool has nothing of ours, the loop looks at its descriptors once (and waits
 * for them only when nothing is due ever), then moves the clock to the next time that something is due. One fiber may
 * also move it: clock_virtual_advance suspends its caller (without regard to cancel) at each step until the fibers that
 * woke have nothing left to do, so a sleeper sees every time it asked for.
 *
 * Callbacks (messages, timers, libuv's own) run on the thread's stack, between fibers. They must not suspend; they wake
 * fibers (fiber_cond_signal, channel_try_send) or spawn one.
 */
#ifndef C8S_BASE_LOOP_H
#define C8S_BASE_LOOP_H

#include "base/err.h"

struct loop;
struct uv_loop_s;

/*
 * A loop for the calling thread, not running yet. name (copied, cut to 15 bytes) is for dumps. Ignores SIGPIPE for the
 * whole process: a write to a closed pipe is an error for its fiber, not the end of the program. -ERR_SYSTEM when the
 * kernel refuses.
 */
int loop_new(const char *name, struct loop **ret_loop, struct err *err);
/* Takes NULL. The loop must not be running; messages that no loop_run has taken are dropped. */
void loop_free(struct loop *loop);
void loop_freep(struct loop **loop);

/*
 * Runs fn(arg) on a fiber called "main", and everything it spawns, until all of them have finished; returns fn's
 * result. -ERR_x with err set when even the first fiber could not be made. One loop runs on a thread at a time.
 */
int loop_run(struct loop *loop, int (*fn)(void *arg), void *arg, struct err *err);

/*
 * Cancels every fiber of the loop, now and those that are still being spawned, so that loop_run returns as soon as
 * their cleanups have run. From any thread, also before loop_run (which then starts its main fiber canceled). Not from
 * a signal handler.
 */
void loop_stop(struct loop *loop);

/*
 * Runs fn(arg) as a callback on the loop's thread, in the order of posting. From any thread, fibers and callbacks
 * included; never waits. The loop must outlive the call; messages posted after loop_run returned wait for the next one.
 */
void loop_post(struct loop *loop, void (*fn)(void *arg), void *arg);

/* The loop that is running on this thread, or NULL. */
struct loop *loop_self(void);
/* For libuv handles of one's own; they do not keep loop_run from returning, and must be closed before loop_free. */
struct uv_loop_s *loop_uv(struct loop *loop);

/* How many fibers the loop may have at once (LOOP_FIBERS_DEFAULT unless set); beyond it, fiber_spawn fails. */
enum { LOOP_FIBERS_DEFAULT = 16384 };
void loop_set_max_fibers(struct loop *loop, unsigned max);
/* Fibers that have not finished. */
unsigned loop_fibers(const struct loop *loop);

/*
 * A timer: fire(timer) runs as a callback once clock_now_ns() reaches the time given. For things that have no fiber; a
 * fiber uses fiber_sleep_ms and DEADLINE_SCOPE. Belongs to the loop that runs on the thread of loop_timer_start; stop
 * it before its memory goes. One that fired may be started again, also by fire itself; those still running when
 * loop_run returns are stopped.
 */
struct loop_timer {
	int64_t due_ns;
	size_t place; /* in the loop's heap, counted from 1; 0 when it is not running */
	void (*fire)(struct loop_timer *timer);
};

#define LOOP_TIMER_INIT(fn) { .fire = (fn) }

/* Starts it, or moves it when it is running. */
void loop_timer_start(struct loop_timer *timer, int64_t due_ns);
void loop_timer_stop(struct loop_timer *timer);
static inline bool loop_timer_running(const struct loop_timer *timer) { return timer->place != 0; }

/* Gives back the memory of stacks that nobody needs just now; a loop with little to do does it itself, now and then. From its own thread. */
void loop_rest(struct loop *loop);

/* Writes all fibers to fd: number, name, state, what each waits for, how long, stack. From the loop's own thread. */
void loop_dump(struct loop *loop, int fd);
/* From now on SIGUSR2 makes the loop write such a dump to standard error. Several loops may ask; each does. */
int loop_dump_on_sigusr2(struct loop *loop, struct err *err);

#endif
