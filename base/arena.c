#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* Chunks double from 1 KiB up to 1 MiB, so a small task costs one small malloc and a large one few large ones. */
enum { CHUNK_MIN = 1024, CHUNK_MAX = 1 << 20 };

struct arena_chunk {
	struct arena_chunk *older;
	size_t size; /* of data */
	_Alignas(16) char data[];
};

void arena_init(struct arena *a) { *a = (struct arena)ARENA_INIT; }

static void free_from(struct arena_chunk *c)
{
	while (c) {
		struct arena_chunk *older = c->older;
		free(c);
		c = older;
	}
}

void arena_done(struct arena *a)
{
	free_from(a->chunks);
	arena_init(a);
}

void arena_reset(struct arena *a)
{
	struct arena_chunk *keep = a->chunks;
	if (!keep || keep->size > CHUNK_MAX) {
		arena_done(a);
		return;
	}
	free_from(keep->older);
	keep->older = NULL;
	a->at = keep->data;
	a->end = keep->data + keep->size;
	a->used = 0;
}

void *arena_grow(struct arena *a, size_t size, size_t align)
{
	size_t want, next = a->chunks ? MIN(a->chunks->size * 2, (size_t)CHUNK_MAX) : CHUNK_MIN - sizeof(struct arena_chunk);
	if (__builtin_add_overflow(size, align, &want) || want > SIZE_MAX / 2)
		return mem_alloc(SIZE_MAX / 2);
	struct arena_chunk *c = mem_alloc(sizeof(*c) + MAX(want, next));
	c->size = MAX(want, next);
	c->older = a->chunks;
	a->chunks = c;
	a->at = c->data;
	a->end = c->data + c->size;
	return arena_alloc(a, size, align);
}

void *arena_array_of(struct arena *a, size_t n, size_t size, size_t align)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total))
		total = SIZE_MAX;
	return arena_alloc(a, total, align);
}

void *arena_zero_of(struct arena *a, size_t size, size_t align) { return memset(arena_alloc(a, size, align), 0, size); }

str arena_str(struct arena *a, str s)
{
	char *p = arena_alloc(a, s.n + 1, 1);
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return str_span(p, s.n);
}

str arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	size_t n = len < 0 ? 0 : (size_t)len;
	char *p = arena_alloc(a, n + 1, 1);
	vsnprintf(p, n + 1, fmt, ap);
	return str_span(p, n);
}

str arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str s = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return s;
}

str arena_join(struct arena *a, str x, str y)
{
	char *p = arena_alloc(a, x.n + y.n + 1, 1);
	if (x.n)
		memcpy(p, x.p, x.n);
	if (y.n)
		memcpy(p + x.n, y.p, y.n);
	p[x.n + y.n] = '\0';
	return str_span(p, x.n + y.n);
}
