/*
 * The two routines in assembly under the fibers, one file per machine: fiber_switch_<machine>.S. Only fiber.c uses
 * them.
 */
#ifndef C8S_BASE_FIBER_SWITCH_H
#define C8S_BASE_FIBER_SWITCH_H

/*
 * Saves what the ABI tells a function to preserve (and the floating point control words) on the current stack, stores
 * the stack pointer in *ret_from, and continues from `to`, a stack pointer that an earlier switch stored or that
 * fiber_switch_prepare made. Returns when somebody switches back to *ret_from. The signal mask is the thread's: not
 * touched.
 */
void fiber_switch(void **ret_from, void *to);

/*
 * Lays out the first frame of a new stack that ends at top, so that the first switch to the returned stack pointer
 * calls fn(arg). fn must not return.
 */
void *fiber_switch_prepare(void *top, void (*fn)(void *arg), void *arg);

#endif
