/*
 * The lexer of JSON, private to this folder: finding the ends of strings, numbers and whole values, quickly and
 * without building anything. Nothing here reads past the end of the text, which need not be terminated.
 *
 * The scanners only say that the text is wrong. What Go would say about it, and where, is found in a second look by
 * json_syntax_error: a text is judged once at full speed, and again at leisure when it was bad.
 */
#ifndef C8S_CODEC_JSON_SCAN_H
#define C8S_CODEC_JSON_SCAN_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/arena.h"
#include "base/err.h"

enum json_string_flags {
	JSON_ESCAPED = 1 << 0,  /* has backslashes */
	JSON_HIGH = 1 << 1,     /* has bytes outside of ASCII */
};

static inline bool json_is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static inline const char *json_skip_space(const char *p, const char *end)
{
	while (p < end && json_is_space(*p))
		p++;
	return p;
}

/*
 * The first quote, backslash or control character at or after p, or end. Adds JSON_HIGH to flags when it passed such
 * bytes.
 */
static inline const char *json_plain_end(const char *p, const char *end, unsigned *flags)
{
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);

	for (; end - p >= 16; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
					   _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
		unsigned stop = (unsigned)_mm_movemask_epi8(hit), high = (unsigned)_mm_movemask_epi8(v);
		if (LIKELY(stop)) {
			if (UNLIKELY(high & (stop - 1) & ~stop))
				*flags |= JSON_HIGH;
			return p + __builtin_ctz(stop);
		}
		if (UNLIKELY(high))
			*flags |= JSON_HIGH;
	}
#endif
	for (; p < end; p++) {
		unsigned char c = (unsigned char)*p;
		if (c == '"' || c == '\\' || c < 0x20)
			return p;
		if (c >= 0x80)
			*flags |= JSON_HIGH;
	}
	return end;
}

/* From after the opening quote to the closing one; NULL if the string is malformed. */
const char *json_string_rest(const char *p, const char *end, unsigned *flags);

static inline const char *json_string_end(const char *p, const char *end, unsigned *flags)
{
	*flags = 0;
	p = json_plain_end(p, end, flags);
	return LIKELY(p < end && *p == '"') ? p : json_string_rest(p, end, flags);
}

/*
 * The text of a string's inside: borrowed when there is nothing to change, else in the arena with U+FFFD for what is
 * not UTF-8.
 */
str json_unescape(struct arena *a, str inside, unsigned flags);

static inline str json_string_text(struct arena *a, str inside, unsigned flags)
{
	return LIKELY(!flags) ? inside : json_unescape(a, inside, flags);
}

/* The end of the number that begins at p, NULL if it is malformed. *ret_integer: without fraction and exponent. */
const char *json_number_end(const char *p, const char *end, bool *ret_integer);

/* The double nearest to a JSON number, rounded to float when single is set; false when it is out of range. */
bool json_to_double(str number, bool single, double *ret);
/* The value of an integer literal, false when it does not fit. */
bool json_to_int64(str number, int64_t *ret);
bool json_to_uint64(str number, uint64_t *ret);

/*
 * The end of the whole value that begins at p (white space before it is skipped) inside depth lists and objects; NULL
 * if it is malformed or too deep. *ret_spaced (may be NULL) says that there is white space to be squeezed out by
 * json_compact.
 */
const char *json_value_end(const char *p, const char *end, unsigned depth, bool *ret_spaced);
/* A well-formed value without the white space between its tokens. */
str json_compact(struct arena *a, str value);

/*
 * Sets Go's message for a text that is not JSON, and its byte offset in *ret_offset (may be NULL); 0 if the text is
 * JSON.
 */
int json_syntax_error(str text, size_t *ret_offset, struct err *err);

#endif
