#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void buf_init(struct buf *b, size_t max) { *b = (struct buf)BUF_INIT(max); }

void buf_done(struct buf *b)
{
	free(b->p);
	buf_init(b, b->max);
}

void buf_reset(struct buf *b)
{
	b->n = 0;
	b->overflow = false;
	if (b->p)
		b->p[0] = '\0';
}

char *buf_grow(struct buf *b, size_t n)
{
	size_t max = MIN(b->max, SIZE_MAX / 4);
	if (b->overflow || n > max || b->n > max - n) {
		b->overflow = true;
		return NULL;
	}
	size_t want = b->n + n + 1;
	size_t cap = b->cap < 64 ? 64 : b->cap;
	while (cap < want)
		cap *= 2;
	b->cap = MIN(cap, max + 1);
	b->p = mem_resize(b->p, b->cap);
	return b->p + b->n;
}

void buf_add(struct buf *b, str s)
{
	char *at = buf_reserve(b, s.n);
	if (!at)
		return;
	if (s.n)
		memcpy(at, s.p, s.n);
	buf_commit(b, s.n);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	/* Mostly the text fits in the room that is there; else its length is now known and it is formatted again. */
	size_t room = b->overflow ? 0 : b->cap - b->n;
	int len = vsnprintf(room ? b->p + b->n : NULL, room, fmt, ap);
	va_end(ap);
	char *at = len < 0 ? NULL : buf_reserve(b, (size_t)len);
	if (at) {
		if ((size_t)len >= room)
			vsnprintf(at, (size_t)len + 1, fmt, again);
		buf_commit(b, (size_t)len);
	} else if (room) {
		b->p[b->n] = '\0';
	}
	va_end(again);
}

/* Roughly Go's unicode.IsPrint: everything but controls, separators, format characters and what has no meaning. */
static bool is_printable(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad)
		return false;
	if ((c >= 0x2000 && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x206f) || c == 0x3000)
		return false;
	return !((c >= 0xe000 && c <= 0xf8ff) || c == 0xfeff || (c >= 0xfff0 && c <= 0xfffb) || c >= 0xe0000 || (c & 0xfffe) == 0xfffe);
}

static void add_escaped(struct buf *b, uint32_t c)
{
	static const char letters[] = "abtnvfr";
	if (c >= 7 && c <= 13)
		buf_addf(b, "\\%c", letters[c - 7]);
	else if (c < ' ' || c == 0x7f)
		buf_addf(b, "\\x%02x", c);
	else if (c < 0x10000)
		buf_addf(b, "\\u%04x", c);
	else
		buf_addf(b, "\\U%08x", c);
}

void buf_add_quoted(struct buf *b, str s)
{
	buf_addc(b, '"');
	while (s.n) {
		uint32_t c;
		size_t n = str_rune(s, &c);
		if (n == 0) {
			n = 1;
			buf_addf(b, "\\x%02x", (unsigned char)s.p[0]);
		} else if (c == '"' || c == '\\') {
			buf_addf(b, "\\%c", (char)c);
		} else if (is_printable(c)) {
			buf_add(b, str_head(s, n));
		} else {
			add_escaped(b, c);
		}
		s = str_skip(s, n);
	}
	buf_addc(b, '"');
}

char *buf_take(struct buf *b)
{
	char *p = b->p ? TAKE(b->p) : mem_zalloc(1);
	buf_init(b, b->max);
	return p;
}

int buf_check(const struct buf *b, const char *what, struct err *err)
{
	if (b->overflow)
		return err_set(err, ERR_TOO_LARGE, "%s is larger than %zu bytes", what, b->max);
	return 0;
}
