/*
 * What the sanitizers and valgrind must be told about stacks; empty functions in ordinary builds. A struct fiber_shadow
 * is what a sanitizer keeps for one stack: a fiber's, or the thread's own.
 */
#ifndef C8S_BASE_FIBER_HOOKS_H
#define C8S_BASE_FIBER_HOOKS_H

#include "base/defs.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define FIBER_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define FIBER_TSAN 0
#endif
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_UNDEFINED(at, size) ((void)(at), (void)(size))
#define VALGRIND_STACK_REGISTER(start, end) 0
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#define RUNNING_ON_VALGRIND 0
#endif

struct fiber_shadow {
	const void *low; /* of the stack */
	size_t size;
	void *fake;      /* AddressSanitizer's stack for use-after-return */
	void *thread;    /* ThreadSanitizer's idea of the thread */
};

static inline void shadow_init_fiber(struct fiber_shadow *s, const void *low, size_t size)
{
	*s = (struct fiber_shadow){ .low = low, .size = size };
#if FIBER_TSAN
	s->thread = __tsan_create_fiber(0);
#endif
}

static inline void shadow_init_thread(struct fiber_shadow *s)
{
#if FIBER_TSAN
	s->thread = __tsan_get_current_fiber();
#else
	(void)s;
#endif
}

static inline void shadow_done_fiber(struct fiber_shadow *s)
{
#if FIBER_ASAN
	/* The next user of the stack must not find the red zones of frames that were left without returning. */
	__asan_unpoison_memory_region(s->low, s->size);
#endif
#if FIBER_TSAN
	__tsan_destroy_fiber(s->thread);
#endif
	(void)s;
}

/* Directly before a switch. for_good: nobody will come back to from. */
static inline void shadow_leave(struct fiber_shadow *from, const struct fiber_shadow *to, bool for_good)
{
#if FIBER_ASAN
	__sanitizer_start_switch_fiber(for_good ? NULL : &from->fake, to->low, to->size);
#endif
#if FIBER_TSAN
	__tsan_switch_to_fiber(to->thread, 0);
#endif
	(void)from, (void)to, (void)for_good;
}

/*
 * First thing after a switch, on the stack of self. from learns where its stack is: that is how the thread's own
 * becomes known.
 */
static inline void shadow_arrive(const struct fiber_shadow *self, struct fiber_shadow *from)
{
#if FIBER_ASAN
	__sanitizer_finish_switch_fiber(self->fake, &from->low, &from->size);
#endif
	(void)self, (void)from;
}

#endif
