/*
 * fiber: sequential code that waits without blocking its thread. A fiber is a function with a stack of its own (256 KiB
 * of address space, of which an idle one has touched about one page) on the loop of one thread (loop.h); it never moves
 * to another. Fibers of one loop run one at a time and switch only inside calls marked (suspends), so plain data needs
 * no locks; but re-read shared state after such a call, and errno does not survive one.
 *
 * Every (suspends) call returns -ERR_CANCELED once its fiber was canceled and -ERR_TIMEOUT once the deadline in force
 * has passed, also when it would not have had to wait: pass the error up, and the cleanups on the way run. An event
 * that had already been given to the fiber is not lost: the call then succeeds and the next one reports the cancel. All
 * calls are for fibers and callbacks of the same loop; other threads go through loop_post. Calls marked (suspends) are
 * for fibers only.
 *
 * Waiting with a channel or a condition costs no allocation and no system call.
 */
#ifndef C8S_BASE_FIBER_H
#define C8S_BASE_FIBER_H

#include "base/err.h"
#include "base/list.h"

struct fiber;

/* ---- Life ---- */

/*
 * Makes a fiber that will run fn(arg) soon on the loop of the calling thread; does not run it yet. The name (printf
 * style, cut to 31 bytes) is for dumps and debuggers. With ret_fiber the caller owns a handle, which exactly one of
 * fiber_join, fiber_stop or fiber_detach takes back; with NULL the fiber is on its own from the start. fn's result is
 * kept for fiber_join. Deadlines and the log context are not inherited. -ERR_TOO_MANY_REQUESTS at the loop's maximum,
 * -ERR_SYSTEM when the kernel gives no memory for a stack.
 */
int fiber_spawn(int (*fn)(void *arg), void *arg, struct fiber **ret_fiber, struct err *err, const char *name, ...)
	PRINTF_LIKE(5, 6);

/*
 * (suspends) Waits for the fiber to end, stores its result (ret_result may be NULL) and frees the handle. On error the
 * handle stays.
 */
int fiber_join(struct fiber *f, int *ret_result, struct err *err);
/*
 * (suspends) Cancels the fiber, waits until it has ended, and returns its result; neither cancel nor deadline of the
 * caller cut this short. CLEANUP(fiber_stopp) struct fiber *f keeps a scope from leaving its helper behind.
 */
int fiber_stop(struct fiber *f);
void fiber_stopp(struct fiber **f);
/* Gives up the handle; the fiber goes on. */
void fiber_detach(struct fiber *f);

/*
 * Makes the pending wait of f, and every later one, return -ERR_CANCELED. There is no way back. f may be the caller, or
 * have ended. A fiber that was never run yet still runs: its first wait fails.
 */
void fiber_cancel(struct fiber *f);

/* The fiber that runs, or NULL in a callback and on threads without a loop. */
struct fiber *fiber_self(void);
const char *fiber_name(const struct fiber *f);

/* ---- Waiting ---- */

/* Has the calling fiber been canceled, or has its deadline passed? 0 or the error. Never suspends. */
int fiber_check(struct err *err);
/* (suspends) Lets every other fiber that is ready run first. */
int fiber_yield(struct err *err);
/*
 * (suspends) Waits until no other fiber can run without an event from outside or the passing of time. For tests; not
 * cut short by cancel or deadline.
 */
void fiber_settle(void);
/* (suspends) */
int fiber_sleep_ms(int64_t ms, struct err *err);
int fiber_sleep_ns(int64_t ns, struct err *err);

/*
 * A place to wait for a change of shared state. As with any condition, look again after waking:
 *
 *	while (!queue->n && (r = fiber_cond_wait(&queue->filled, err)) == 0)
 *		;
 *
 * what says in dumps what is being waited for ("a free worker"); it must outlive the condition. The memory may go as
 * soon as nobody waits, which is so directly after a broadcast.
 */
struct fiber_cond {
	struct list waiters;
	const char *what;
};

#define FIBER_COND_INIT(name, text) { LIST_INIT((name).waiters), text }

void fiber_cond_init(struct fiber_cond *c, const char *what);
/* (suspends) */
int fiber_cond_wait(struct fiber_cond *c, struct err *err);
/* Wakes the fiber that has waited longest (all of them). They run later; the caller goes on. */
void fiber_cond_signal(struct fiber_cond *c);
void fiber_cond_broadcast(struct fiber_cond *c);

/* ---- Scopes ---- */

/* What the scopes below keep, on the stack of the fiber. They nest, and end in reverse order, as blocks do. */
struct fiber_scope {
	struct fiber *fiber;
	int64_t outer_due_ns;
	bool shields;
};

struct fiber_scope fiber_deadline_enter(int64_t ms);
struct fiber_scope fiber_shield_enter(void);
void fiber_scope_leave(struct fiber_scope *scope);

#define FIBER_SCOPE_NAME2(line) fiber_scope_##line
#define FIBER_SCOPE_NAME(line) FIBER_SCOPE_NAME2(line)
#define FIBER_SCOPE(enter) \
	CLEANUP(fiber_scope_leave) __attribute__((unused)) struct fiber_scope FIBER_SCOPE_NAME(__LINE__) = enter

/*
 * From here to the end of the block, waits end with -ERR_TIMEOUT once ms milliseconds have passed in total. An earlier
 * deadline of an outer scope stays in force. To learn after the block whether it was an outer one that passed:
 * fiber_check.
 */
#define DEADLINE_SCOPE(ms) FIBER_SCOPE(fiber_deadline_enter(ms))
/*
 * From here to the end of the block, neither cancel nor outer deadlines end a wait: for cleanups that must wait
 * (unmount, say goodbye to a peer). Put a DEADLINE_SCOPE inside, so that a shutdown cannot hang.
 */
#define SHIELD_SCOPE() FIBER_SCOPE(fiber_shield_enter())

/* The deadline in force, as clock_now_ns() counts; INT64_MAX for none. To pass it on to another process. */
int64_t fiber_deadline_ns(void);

/* ---- Channel: a bounded queue of pointers between fibers of a loop ---- */

struct channel {
	void **items; /* a ring of room places, cap at most */
	size_t n, room, cap, first;
	bool closed;
	struct fiber_cond filled, drained;
};

/* Room for cap (at least 1) pointers. what names it in dumps and must outlive it. */
void channel_init(struct channel *c, size_t cap, const char *what);
/* Nobody may be waiting. Pointers still inside are not the channel's to free: take them out with channel_try_recv. */
void channel_done(struct channel *c);
/* (suspends) Waits for room. -ERR_GONE when the channel is or gets closed; the pointer then stays the caller's. */
int channel_send(struct channel *c, void *item, struct err *err);
/* (suspends) 1 with the oldest pointer; 0 when the channel is closed and empty. */
int channel_recv(struct channel *c, void **ret_item, struct err *err);
/* The same without waiting, also for callbacks: false when there is no room (or it is closed), or nothing to take. */
bool channel_try_send(struct channel *c, void *item);
bool channel_try_recv(struct channel *c, void **ret_item);
/* No more sends. Receivers still get what is inside, then 0. Closing twice is fine. */
void channel_close(struct channel *c);

/* ---- Group: fibers that end together ---- */

/*
 *	CLEANUP(fiber_group_done) struct fiber_group conns;
 *	fiber_group_init(&conns);
 *	while ((fd = fiber_accept(...)) >= 0)
 *		fiber_group_spawn(&conns, conn_serve, conn_new(fd), err, "conn %d", fd);
 *
 * No member outlives the block.
 */
struct fiber_group {
	struct list members;
	size_t n;
	struct fiber_cond empty;
};

void fiber_group_init(struct fiber_group *g);
/* As fiber_spawn; the member's result is ignored. */
int fiber_group_spawn(struct fiber_group *g, int (*fn)(void *arg), void *arg, struct err *err, const char *name, ...)
	PRINTF_LIKE(5, 6);
void fiber_group_cancel(struct fiber_group *g);
/* (suspends) Waits until no member is left. */
int fiber_group_wait(struct fiber_group *g, struct err *err);
/* (suspends) Cancels all members and waits for them, like fiber_stop. */
void fiber_group_done(struct fiber_group *g);

#endif
