/*
 * buf: a growing, bounded, always terminated byte buffer. It never exceeds its maximum: the first addition that would is
 * dropped with all that follow, and buf->overflow stays set, so that a long piece of building is checked once, at its end.
 * What is added must not lie in the buffer itself.
 */
#ifndef C8S_BASE_BUF_H
#define C8S_BASE_BUF_H

#include "base/err.h"

struct buf {
	char *p;          /* p[n] is '\0' once anything was added; NULL before */
	size_t n, cap, max;
	bool overflow;
};

#define BUF_INIT(maximum) { .max = (maximum) }

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
/* Empties the buffer and keeps its memory. */
void buf_reset(struct buf *b);
/* buf_reserve when there is no room yet. */
char *buf_grow(struct buf *b, size_t n);

/* Room for n more bytes at the returned place, to be followed by buf_commit; NULL and overflow if that is too much. */
static inline char *buf_reserve(struct buf *b, size_t n)
{
	/* cap is never above max + 1, so what fits in the memory is within the maximum too. */
	return LIKELY(n < b->cap - b->n && !b->overflow) ? b->p + b->n : buf_grow(b, n);
}

static inline void buf_commit(struct buf *b, size_t n)
{
	b->n += n;
	b->p[b->n] = '\0';
}

void buf_add(struct buf *b, str s);

static inline void buf_addc(struct buf *b, char c)
{
	char *at = buf_reserve(b, 1);
	if (!at)
		return;
	*at = c;
	buf_commit(b, 1);
}

void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* In double quotes with Go's escapes, as %q prints a string there. */
void buf_add_quoted(struct buf *b, str s);
/* Gives the memory to the caller, who frees it; the buffer is empty again. Never NULL. */
char *buf_take(struct buf *b);
/* 0, or -ERR_TOO_LARGE with "what is larger than N bytes". */
int buf_check(const struct buf *b, const char *what, struct err *err);

static inline str buf_str(const struct buf *b) { return str_span(b->p, b->n); }

#endif
