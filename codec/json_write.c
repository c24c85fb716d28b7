#include "codec/json_write.h"

#include <math.h>

#include "base/encoding.h"
#include "codec/go.h"
#include "codec/json_scan.h"

/* ---- the buffer ---- */

/*
 * Asking for some slack must not fail where the text alone would fit: the maximum is a little higher while the writer
 * has the buffer, and looked at again when it gives it back.
 */
void json_writer_begin(struct json_writer *w, struct buf *b, bool html)
{
	*w = (struct json_writer){ .buf = b, .start = b->n, .max = b->max, .html = html };
	if (b->max < SIZE_MAX / 2)
		b->max += 2 * JSON_SLACK;
}

static void keep_written(struct json_writer *w)
{
	if (w->at)
		buf_commit(w->buf, (size_t)(w->at - w->buf->p) - w->buf->n);
}

void json_writer_end(struct json_writer *w, bool ok)
{
	struct buf *b = w->buf;

	keep_written(w);
	b->max = w->max;
	b->overflow |= b->n > b->max;
	if ((!ok || b->overflow) && b->p)
		b->p[b->n = w->start] = '\0';
	if (b->max < SIZE_MAX / 2)
		b->cap = MIN(b->cap, b->max + 1);
}

bool json_grow(struct json_writer *w, size_t n)
{
	keep_written(w);
	w->at = buf_reserve(w->buf, n);
	w->limit = w->at ? w->buf->p + w->buf->cap - 1 : NULL;
	return w->at;
}

/* ---- strings ---- */

/*
 * Writes the character that s begins with in its escaped form, at most 6 bytes; returns how many bytes of s that was.
 */
static size_t write_escaped(struct json_writer *w, str s)
{
	static const char hex[] = "0123456789abcdef", letters[] = "btn?fr"; /* from \b, 8, to \r, 13 */
	unsigned char c = (unsigned char)s.p[0];
	uint32_t rune = c;
	size_t n = 1;

	if (c >= 0x80) {
		n = str_rune(s, &rune);
		if (n && rune != 0x2028 && rune != 0x2029) {
			memcpy(w->at, s.p, n);
			w->at += n;
			return n;
		}
		rune = n ? rune : GO_REPLACEMENT;
		n = n ? n : 1;
	}
	*w->at++ = '\\';
	if (c == '"' || c == '\\') {
		*w->at++ = (char)c;
	} else if (rune >= 8 && rune <= 13 && rune != 11) {
		*w->at++ = letters[rune - 8];
	} else {
		*w->at++ = 'u';
		for (int shift = 12; shift >= 0; shift -= 4)
			*w->at++ = hex[rune >> shift & 15];
	}
	return n;
}

bool json_write_special(struct json_writer *w, str s)
{
	while (s.n) {
		if (UNLIKELY(!json_room(w, s.n + 6 + JSON_SLACK)))
			return false;
		s = str_skip(s, write_escaped(w, s));
		size_t n = json_copy_plain(w->at, s, w->html);
		w->at += n;
		s = str_skip(s, n);
	}
	w->at = memcpy(w->at, "\",", 2);
	w->at += 2;
	return true;
}

bool json_write_string(struct json_writer *w, str s)
{
	if (UNLIKELY(!json_room(w, s.n + JSON_SLACK)))
		return false;
	return json_put_string(w, w->at, s);
}

void json_quote(struct buf *b, str s, bool plain)
{
	struct json_writer w;

	json_writer_begin(&w, b, !plain);
	bool ok = json_write_string(&w, s);
	w.at -= ok;
	json_writer_end(&w, ok);
}

bool json_write_base64(struct json_writer *w, str bytes)
{
	if (!json_room(w, base64_encoded_len(bytes.n) + JSON_SLACK))
		return false;
	*w->at++ = '"';
	w->at += base64_encode(w->at, bytes);
	memcpy(w->at, "\",", 2);
	w->at += 2;
	return true;
}

/* ---- other scalars ---- */

bool json_write_text(struct json_writer *w, str text)
{
	if (UNLIKELY(!json_room(w, text.n + JSON_SLACK)))
		return false;
	if (text.n <= 64)
		w->at = json_copy(w->at, text);
	else
		w->at = (char *)memcpy(w->at, text.p, text.n) + text.n;
	*w->at++ = ',';
	return true;
}

/* Copies text as far as neither < > & nor a line separator (e2 80 a8 or a9) occurs. Returns the number of bytes. */
static size_t copy_raw(char *at, str text, bool html)
{
	size_t n = 0;
#ifdef __SSE2__
	for (; n + 16 <= text.n; n += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)(text.p + n));
		__m128i hit = _mm_cmpeq_epi8(v, _mm_set1_epi8((char)0xe2));
		if (html)
			hit = _mm_or_si128(hit, json_html_mask(v));
		_mm_storeu_si128((__m128i *)(void *)(at + n), v);
		if (UNLIKELY(_mm_movemask_epi8(hit)))
			break;
	}
#endif
	for (; n < text.n; n++) {
		if (html && json_escape_of((unsigned char)text.p[n]) == ESCAPE_HTML)
			break;
		if (text.n - n >= 3 && memcmp(text.p + n, "\xe2\x80", 2) == 0 && (text.p[n + 2] & ~1) == (char)0xa8)
			break;
		at[n] = text.p[n];
	}
	return n;
}

/*
 * JSON text that was kept unparsed: only what HTML and JavaScript would trip over is escaped, as Go does in
 * compacting.
 */
static bool write_raw(struct json_writer *w, str text)
{
	while (text.n) {
		if (UNLIKELY(!json_room(w, text.n + 6 + JSON_SLACK)))
			return false;
		size_t n = copy_raw(w->at, text, w->html);
		w->at += n;
		text = str_skip(text, n);
		if (text.n)
			text = str_skip(text, write_escaped(w, text));
	}
	if (UNLIKELY(!json_room(w, JSON_SLACK)))
		return false;
	*w->at++ = ',';
	return true;
}

bool json_write_double(struct json_writer *w, double d, bool single)
{
	char out[GO_FLOAT_MAX];

	if (!isfinite(d)) {
		w->bad = isnan(d) ? "NaN" : d < 0 ? "-Inf" : "+Inf";
		return false;
	}
	return json_write_text(w, go_format_float(d, single, GO_FLOAT_JSON, out));
}

static bool write_int(struct json_writer *w, int64_t i)
{
	if (UNLIKELY(!json_room(w, GO_INT_MAX + JSON_SLACK)))
		return false;
	/* Digits are made from the last to the first, at the end of the room, and then moved to its beginning. */
	str digits = go_format_int(i, w->at);
	for (size_t k = 0; k < digits.n; k++)
		w->at[k] = digits.p[k];
	w->at += digits.n;
	*w->at++ = ',';
	return true;
}

bool json_write_scalar(struct json_writer *w, struct val v)
{
	switch ((enum val_type)v.type) {
	case VAL_BOOL: return json_write_text(w, v.b ? STR("true") : STR("false"));
	case VAL_INT: return write_int(w, v.i);
	case VAL_DOUBLE: return json_write_double(w, v.d, false);
	case VAL_STRING: return json_write_string(w, val_as_str(v));
	case VAL_RAW: return write_raw(w, val_as_str(v));
	default: return json_write_text(w, STR("null"));
	}
}

/* ---- layout ---- */

static void new_line(struct buf *b, unsigned spaces)
{
	char *at = buf_reserve(b, spaces + 1);
	if (at) {
		at[0] = '\n';
		memset(at + 1, ' ', spaces);
		buf_commit(b, spaces + 1);
	}
}

void json_write_indented(struct buf *b, str compact, unsigned indent)
{
	const char *p = compact.p, *end = p + compact.n;
	unsigned level = 0, flags;

	while (p < end) {
		const char *from = p, c = *p++;
		switch (c) {
		case '{':
		case '[':
			buf_addc(b, c);
			if (p < end && (*p == '}' || *p == ']'))
				buf_addc(b, *p++);
			else
				new_line(b, ++level * indent);
			break;
		case '}':
		case ']':
			new_line(b, --level * indent);
			buf_addc(b, c);
			break;
		case ',':
			buf_addc(b, c);
			new_line(b, level * indent);
			break;
		case ':':
			buf_add(b, STR(": "));
			break;
		case '"':
			p = json_string_end(p, end, &flags) + 1;
			buf_add(b, str_span(from, (size_t)(p - from)));
			break;
		default:
			buf_addc(b, c);
		}
	}
}
