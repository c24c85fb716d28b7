/*
 * str: a borrowed slice of bytes, passed by value. It owns nothing and is not terminated.
 * Parse into slices; copy (arena_str, buf_add) what must outlive the input.
 */
#ifndef C8S_BASE_STR_H
#define C8S_BASE_STR_H

#include <string.h>

#include "base/defs.h"

typedef struct {
	const char *p;
	size_t n;
} str;

/* A str from a string literal, also usable in static initialisers as STR_INIT. */
#define STR(lit) ((str){ "" lit, sizeof(lit) - 1 })
#define STR_INIT(lit) { "" lit, sizeof(lit) - 1 }
#define STR_NONE ((str){ NULL, 0 })

/* printf("%.*s", STR_ARG(s)), with STR_FMT for the format. */
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""

static inline str str_of(const char *cstr) { return (str){ cstr, cstr ? strlen(cstr) : 0 }; }
static inline str str_span(const char *p, size_t n) { return (str){ p, n }; }

static inline bool str_eq(str a, str b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }

static inline bool str_starts(str s, str prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline bool str_ends(str s, str suffix)
{
	return s.n >= suffix.n && (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

/* The slice from `from` on; empty when there is nothing there. */
static inline str str_skip(str s, size_t from)
{
	from = from < s.n ? from : s.n;
	return from ? (str){ s.p + from, s.n - from } : s; /* NULL + 0 is not C */
}

static inline str str_head(str s, size_t n) { return (str){ s.p, n < s.n ? n : s.n }; }

/* Byte order, as Go and etcd compare strings. */
int str_cmp(str a, str b);
/* Position of the first (last) c or of needle, or -1. */
ptrdiff_t str_chr(str s, char c);
ptrdiff_t str_rchr(str s, char c);
ptrdiff_t str_find(str s, str needle);
/* Without white space (space, \t, \r, \n) at both ends. */
str str_trim(str s);
/*
 * Splits at the first sep: *ret_head is what stands before it, *ret_tail what follows.
 * Returns false, with the whole of s as head and an empty tail, when sep does not occur.
 */
bool str_cut(str s, char sep, str *ret_head, str *ret_tail);
/* Decimal integer filling all of s, without sign "+", spaces or overflow. */
bool str_to_i64(str s, int64_t *ret);
/* A good 64-bit hash for tables; not for use against secrets. */
uint64_t str_hash(str s);
/*
 * The length in bytes of the character that s begins with, and the character itself in *ret_rune (may be NULL); 0 when s
 * is empty or does not begin with well-formed UTF-8 (no surrogates, no overlong forms).
 */
size_t str_rune(str s, uint32_t *ret_rune);
/* True when all of s is well-formed UTF-8. */
bool str_is_utf8(str s);

#endif
