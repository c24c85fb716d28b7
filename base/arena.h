/*
 * arena: memory of one task (a request, a reconcile, a decoded object), given back all at once.
 * Allocation is a pointer bump; there is no free of a single piece. Not for use by two threads at a time.
 */
#ifndef C8S_BASE_ARENA_H
#define C8S_BASE_ARENA_H

#include <stdarg.h>

#include "base/str.h"

struct arena_chunk;

struct arena {
	char *at, *end;             /* free room in the newest chunk */
	struct arena_chunk *chunks; /* newest first */
	size_t used;                /* bytes handed out since init or reset */
};

#define ARENA_INIT { 0 }

void arena_init(struct arena *a);
void arena_done(struct arena *a);
/* Forgets all allocations and keeps one chunk of usual size (up to 1 MiB) for the next task. */
void arena_reset(struct arena *a);

void *arena_grow(struct arena *a, size_t size, size_t align) NONNULL_RESULT;

/* size bytes, not initialised, aligned to align (a power of two). Never NULL. */
static inline void *arena_alloc(struct arena *a, size_t size, size_t align)
{
	uintptr_t at = ((uintptr_t)a->at + align - 1) & ~(uintptr_t)(align - 1);
	if (UNLIKELY(at >= (uintptr_t)a->end || size > (uintptr_t)a->end - at))
		return arena_grow(a, size, align);
	a->used += size;
	a->at = (char *)at + size;
	return (void *)at;
}

/* Room for n of a type; overflow ends the process like any failed allocation. */
void *arena_array_of(struct arena *a, size_t n, size_t size, size_t align) NONNULL_RESULT;
void *arena_zero_of(struct arena *a, size_t size, size_t align) NONNULL_RESULT;

#define ARENA_ARRAY(a, type, n) ((type *)arena_array_of(a, n, sizeof(type), _Alignof(type)))
/* One zeroed object. */
#define ARENA_NEW(a, type) ((type *)arena_zero_of(a, sizeof(type), _Alignof(type)))

/* A copy of s, with a '\0' after it. */
str arena_str(struct arena *a, str s);
str arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
str arena_vprintf(struct arena *a, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
/* The two put together. */
str arena_join(struct arena *a, str x, str y);

#endif
