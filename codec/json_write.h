/*
 * Writing JSON into a struct buf without asking it for every byte, private to this folder. A writer takes over the
 * end of the buffer: between begin and end nobody else may touch it. Everything that is written ends in a comma, see
 * json_encode.c.
 */
#ifndef C8S_CODEC_JSON_WRITE_H
#define C8S_CODEC_JSON_WRITE_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "codec/json.h"

/* Room that json_room is asked for beyond a text: for quotes, brackets and commas. */
enum { JSON_SLACK = 16 };

struct json_writer {
	char *at, *limit;
	struct buf *buf;
	size_t start, max; /* of the buffer, as it was given */
	bool html;         /* escape < > & */
	const char *bad;   /* a number that JSON does not have */
};

void json_writer_begin(struct json_writer *w, struct buf *b, bool html);
/* Leaves the buffer with what was written; as it was before when that failed or is too much. */
void json_writer_end(struct json_writer *w, bool ok);
bool json_grow(struct json_writer *w, size_t n);

/* False when the buffer's maximum is reached. */
static inline bool json_room(struct json_writer *w, size_t n)
{
	return LIKELY((size_t)(w->limit - w->at) >= n) || json_grow(w, n);
}

/* Copies a short text to where there is room; returns the place behind it. */
static inline char *json_copy(char *at, str s)
{
	if (s.n >= 16) {
		for (size_t i = 0; i + 16 < s.n; i += 16)
			memcpy(at + i, s.p + i, 16);
		memcpy(at + s.n - 16, s.p + s.n - 16, 16);
	} else if (s.n >= 8) {
		memcpy(at, s.p, 8);
		memcpy(at + s.n - 8, s.p + s.n - 8, 8);
	} else if (s.n >= 4) {
		memcpy(at, s.p, 4);
		memcpy(at + s.n - 4, s.p + s.n - 4, 4);
	} else {
		for (size_t i = 0; i < s.n; i++)
			at[i] = s.p[i];
	}
	return at + s.n;
}

enum json_escape { ESCAPE_NONE, ESCAPE_ALWAYS, ESCAPE_HTML, ESCAPE_HIGH };

static inline enum json_escape json_escape_of(unsigned char c)
{
	if (c < 0x20 || c == '"' || c == '\\')
		return ESCAPE_ALWAYS;
	if (c == '<' || c == '>' || c == '&')
		return ESCAPE_HTML;
	return c >= 0x80 ? ESCAPE_HIGH : ESCAPE_NONE;
}

#ifdef __SSE2__
/* '<' and '>' differ in one bit. */
static inline __m128i json_html_mask(__m128i v)
{
	return _mm_or_si128(_mm_cmpeq_epi8(_mm_or_si128(v, _mm_set1_epi8(2)), _mm_set1_epi8('>')),
			    _mm_cmpeq_epi8(v, _mm_set1_epi8('&')));
}

/* A bit for every byte that cannot be copied as it is. */
static inline unsigned json_special_mask(__m128i v, bool html)
{
	__m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
	/* Signed: bytes from 0x80 on are below 0x20 too. */
	hit = _mm_or_si128(hit, _mm_cmpgt_epi8(_mm_set1_epi8(0x20), v));
	if (html)
		hit = _mm_or_si128(hit, json_html_mask(v));
	return (unsigned)_mm_movemask_epi8(hit);
}
#endif

/* Copies s as far as nothing needs escaping; there is room for all of it. Returns the number of bytes. */
static inline size_t json_copy_plain(char *at, str s, bool html)
{
	size_t i = 0;
#ifdef __SSE2__
	for (; i + 16 <= s.n; i += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)(s.p + i));
		unsigned mask = json_special_mask(v, html);
		_mm_storeu_si128((__m128i *)(void *)(at + i), v);
		if (UNLIKELY(mask))
			return i + (unsigned)__builtin_ctz(mask);
	}
	size_t rest = s.n - i;
	if (rest >= 8) {
		/* Two loads that overlap. */
		long long low, high;
		memcpy(&low, s.p + i, 8);
		memcpy(&high, s.p + s.n - 8, 8);
		unsigned mask = json_special_mask(_mm_set_epi64x(high, low), html);
		memcpy(at + i, &low, 8);
		memcpy(at + s.n - 8, &high, 8);
		if (LIKELY(!mask))
			return s.n;
	} else if (rest >= 4) {
		int low, high;
		memcpy(&low, s.p + i, 4);
		memcpy(&high, s.p + s.n - 4, 4);
		unsigned mask = json_special_mask(_mm_set_epi32(high, low, high, low), html);
		memcpy(at + i, &low, 4);
		memcpy(at + s.n - 4, &high, 4);
		if (LIKELY(!mask))
			return s.n;
	}
#endif
	for (; i < s.n; i++) {
		enum json_escape e = json_escape_of((unsigned char)s.p[i]);
		if (e != ESCAPE_NONE && !(e == ESCAPE_HTML && !html))
			return i;
		at[i] = s.p[i];
	}
	return i;
}

/* The rest of a string from its first special character on, and the closing quote. */
bool json_write_special(struct json_writer *w, str s);

/* A whole string at a place where there is room for it if nothing needs escaping. */
static inline bool json_put_string(struct json_writer *w, char *at, str s)
{
	*at++ = '"';
	size_t n = json_copy_plain(at, s, w->html);
	at += n;
	if (UNLIKELY(n < s.n)) {
		w->at = at;
		return json_write_special(w, str_skip(s, n));
	}
	memcpy(at, "\",", 2);
	w->at = at + 2;
	return true;
}

/* All of these put a comma behind and return false when the buffer's maximum is reached or the value is no JSON. */
bool json_write_string(struct json_writer *w, str s);
bool json_write_base64(struct json_writer *w, str bytes);
bool json_write_double(struct json_writer *w, double d, bool single);
/* Text that is JSON already. */
bool json_write_text(struct json_writer *w, str text);
/* Anything but a list or object. */
bool json_write_scalar(struct json_writer *w, struct val v);

/* Appends compact JSON in the layout of Go's MarshalIndent. */
void json_write_indented(struct buf *b, str compact, unsigned indent);

#endif
