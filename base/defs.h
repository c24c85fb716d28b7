/* The few macros that every file uses. */
#ifndef C8S_BASE_DEFS_H
#define C8S_BASE_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/param.h>

/* CLEANUP(buf_done) struct buf b; runs buf_done(&b) on every way out of the scope. What that reaches (the argument of a fiber that it stops)
 * must be declared before b: locals that are declared later are gone by then. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Moves a pointer out of a variable so that its cleanup finds NULL: ownership leaves here, visibly. */
#define TAKE(p) ({ __typeof__(p) taken_ = (p); (p) = NULL; taken_; })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
/* Arguments are evaluated once, unlike in sys/param.h (which system headers include, so it must come first). */
#undef MIN
#undef MAX
#define MIN(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define MAX(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NONNULL_RESULT __attribute__((returns_nonnull))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
