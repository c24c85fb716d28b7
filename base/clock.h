/*
 * clock: the seam to time. All code asks here; tests put a virtual clock behind it that stands still until they move it.
 * Reading is possible in any thread and costs one indirect call and the vDSO.
 */
#ifndef C8S_BASE_CLOCK_H
#define C8S_BASE_CLOCK_H

#include "base/list.h"

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* Nanoseconds that never go back, from an arbitrary start: for timeouts and durations. */
int64_t clock_now_ns(void);
/* Nanoseconds since 1970 UTC: for what is shown or stored. May be set back by the administrator. */
int64_t clock_wall_ns(void);

/*
 * The virtual clock. One thread drives it; other threads may read the time meanwhile.
 * clock_virtual_set puts it in place, showing these times, and may be called again to jump to others (no hook is called).
 */
void clock_virtual_set(int64_t now_ns, int64_t wall_ns);
/*
 * Moves both times forward by ns in steps: time stops at every deadline that a hook announces on the way, so that
 * timers fire one after the other, each at its own time. Hooks are called after each step and at the end.
 */
void clock_virtual_advance(int64_t ns);
/* The earliest announced deadline after now, or INT64_MAX: a test that wants to skip idle time advances to it. */
int64_t clock_virtual_next_ns(void);
bool clock_is_virtual(void);
/* Back to the system's clock. */
void clock_virtual_off(void);

/*
 * How a sleeper (an event loop) follows the virtual clock: `moved` says that the time changed and runs what is due now;
 * `next_ns` tells the earliest time that something is due, INT64_MAX when nothing is. Hooks are added and removed in the
 * thread that drives the clock, also from inside `moved`, which may advance the clock further; with the system's clock
 * they are not called.
 */
struct clock_hook {
	struct list link;
	void (*moved)(struct clock_hook *hook);
	int64_t (*next_ns)(struct clock_hook *hook);
};

void clock_hook_add(struct clock_hook *hook);
void clock_hook_remove(struct clock_hook *hook);

#endif
