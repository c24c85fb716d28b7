/*
 * Regular expressions with the syntax of RE2 (Go's regexp package) and its promise: the time of a match is linear in the text, whatever
 * the pattern is.
 */
#ifndef C8S_MACHINERY_CEL_RE_H
#define C8S_MACHINERY_CEL_RE_H

#include "base/arena.h"
#include "base/err.h"

struct cel_re;

/* Immutable; lives in the arena. NULL with Go's text ("error parsing regexp: missing closing ): `(`") when the pattern is wrong. */
const struct cel_re *cel_re_compile(struct arena *a, str pattern, struct err *err);

/*
 * The first match at or after byte `from`, as Perl would choose it: its place in *ret_begin and *ret_end (may be NULL when only
 * the answer matters). Memory for the match comes from the arena. *steps, when not NULL, is what it took.
 */
bool cel_re_match(const struct cel_re *re, struct arena *a, str text, size_t from, size_t *ret_begin, size_t *ret_end, size_t *steps);

#endif
