/* What fiber*.c and loop.c share. Nobody else includes this, but tools/gdb-fibers.py knows the names of some fields. */
#ifndef C8S_BASE_FIBER_PRIV_H
#define C8S_BASE_FIBER_PRIV_H

#include <stdarg.h>
#include <stdatomic.h>
#include <uv.h>

/* libuv brings the ones of sys/param.h, which evaluate twice: include this file before any other of ours. */
#undef MIN
#undef MAX

#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_hooks.h"
#include "base/log.h"
#include "base/loop.h"

#define NEVER_NS INT64_MAX

struct fiber_stack {
	char *low; /* lowest usable byte; the guard is below */
	unsigned valgrind_id;
};

/*
 *	spawn -> READY <-> RUNNING -> DONE
 *	           ^          |
 *	           +- WAITING <
 */
enum fiber_state { FIBER_READY, FIBER_RUNNING, FIBER_WAITING, FIBER_DONE };

struct fiber {
	/* One cache line: what a switch touches. */
	void *sp;                /* saved stack pointer, while not running */
	struct list link;        /* in the loop's ready list, or in the queue it waits in */
	struct loop *loop;
	struct log_context *log; /* while not running */
	int64_t due_ns;          /* the deadline in force */
	enum fiber_state state;
	int wait_result;         /* what the pending wait returns */
	unsigned shields;        /* SHIELD_SCOPEs in force */
	bool canceled, owned;    /* owned: somebody holds the handle */

	const char *what;        /* what it waits for, in words, */
	int what_fd;             /* and the descriptor, or -1 */
	int timer_result;        /* what the pending wait returns when the timer ends it */
	int64_t since_ns;        /* when it began to wait, roughly */
	struct loop_timer timer; /* until due_ns, or the end of a sleep; see prepare_timer() */
	int result;
	unsigned id;
	int (*fn)(void *arg);
	void *arg;
	struct list joiners;
	struct list all;         /* in loop->fibers */
	struct fiber_group *group;
	struct list group_link;
	struct fiber_stack stack;
	struct fiber_shadow shadow;
	char name[32];
};

struct loop_message;
struct poll_fd;

struct loop {
	uv_loop_t uv;
	void *sp;                         /* of the thread's own stack, while a fiber runs */
	struct fiber *running;
	struct list ready;
	struct list settling;             /* fibers in fiber_settle */
	struct list fibers;               /* all that have not been freed, oldest first */
	unsigned n_fibers, max_fibers, last_id;
	bool stopping, dumps;
	int64_t now_ns;                   /* the clock at the last look */
	int64_t rest_ns;                  /* when to look again whether it rests, */
	unsigned turns;                   /* the turns since the last look, */
	bool busy;                        /* and what it has found */
	unsigned outside;                 /* fibers that the thread pool works for: virtual time stands still meanwhile */

	struct fiber_stack *stacks;       /* pool of unused stacks, the cold ones first */
	size_t n_stacks, n_cold;

	struct loop_timer **timers;       /* binary heap, earliest first */
	size_t n_timers, cap_timers;
	int64_t tick_ns;                  /* what the libuv timer is set to */
	uv_timer_t tick;
	uv_prepare_t prepare;

	_Atomic(struct loop_message *) inbox; /* newest first */
	atomic_bool stop_wanted;
	uv_async_t wake;

	int epoll;                        /* of fiber_io.c */
	uv_poll_t epoll_ready;
	struct poll_fd *fds;
	size_t n_fds;

	uv_signal_t sigusr2;
	struct fiber_shadow shadow;
	struct log_context **log_slot;    /* of the thread */
	struct clock_hook hook;           /* follows the virtual clock, while hooked */
	bool hooked;
	struct list all;                  /* in loop_all, for debuggers */
	char name[16];
};

/* fiber_stack.c */
int fiber_stack_get(struct loop *loop, struct fiber_stack *ret_stack, struct err *err);
void fiber_stack_put(struct loop *loop, struct fiber_stack stack);
void fiber_stack_drop_pool(struct loop *loop);
/* Gives back all memory of stacks that nobody needs just now. */
void fiber_stack_rest(struct loop *loop);
size_t fiber_stack_size(void);
/*
 * Where the struct goes, at the top of the stack, with the frames below it: an idle fiber has one page in use. id
 * spreads them; at the same place in their pages, the hot lines of all fibers would fight for a few sets of a cache.
 */
struct fiber *fiber_stack_top(struct fiber_stack stack, unsigned id);
/* Bytes of it that have memory behind them. */
size_t fiber_stack_resident(struct fiber_stack stack);

/* fiber.c: the loop that runs on this thread, */
extern _Thread_local struct loop *fiber_loop;
/* and the part of its turn that runs the ready fibers (not endlessly: those who stay ready wait for the next turn). */
void fiber_run_ready(struct loop *loop);
void fiber_cancel_all(struct loop *loop);
/* Frees the ended fibers whose handles nobody gave back. */
void fiber_free_ended(struct loop *loop);
int fiber_vspawn(int (*fn)(void *arg), void *arg, struct fiber_group *group, struct fiber **ret_fiber, struct err *err,
		 const char *name, va_list ap) PRINTF_LIKE(6, 0);

/*
 * Suspends the running fiber in queue (NULL: in none) until fiber_wake, a cancel or the deadline takes it out: 0, or
 * the error; at once when there is one already. what must be a constant; what_fd is a descriptor to name too, or -1.
 */
int fiber_wait(struct list *queue, const char *what, int what_fd, struct err *err);
/* The same, but only fiber_wake ends it; nothing is checked before. */
void fiber_wait_firm(struct list *queue, const char *what);
/* Ends the wait of f with 0; nothing happens when f does not wait. Only for who knows what f waits for. */
void fiber_wake(struct fiber *f);

/* fiber_io.c */
int fiber_io_init(struct loop *loop, struct err *err);
void fiber_io_close(struct loop *loop);

#endif
