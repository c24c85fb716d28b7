#include "codec/json_scan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/go.h"
#include "codec/val.h"

/* ---- strings ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four hexadecimal digits at p, or -1. */
static int32_t hex4(const char *p, const char *end)
{
	int32_t value = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(p[i]);
		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

const char *json_string_rest(const char *p, const char *end, unsigned *flags)
{
	while (p < end && *p == '\\') {
		*flags |= JSON_ESCAPED;
		if (++p == end)
			return NULL;
		if (*p == 'u') {
			if (hex4(p + 1, end) < 0)
				return NULL;
			p += 5;
		} else if (memchr("\"\\/bfnrt", *p, 8)) {
			p++;
		} else {
			return NULL;
		}
		p = json_plain_end(p, end, flags);
	}
	return p < end && *p == '"' ? p : NULL;
}

/*
 * The character of the \u escape at p (after the backslash), joined with the second half of a pair; moves p behind
 * it.
 */
static uint32_t escaped_rune(const char **p, const char *end)
{
	uint32_t rune = (uint32_t)hex4(*p + 1, end);

	*p += 5;
	if (rune < 0xd800 || rune > 0xdfff)
		return rune;
	if (rune < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
		uint32_t low = (uint32_t)hex4(*p + 2, end);
		if (low >= 0xdc00 && low <= 0xdfff) {
			*p += 6;
			return 0x10000 + ((rune - 0xd800) << 10) + (low - 0xdc00);
		}
	}
	return GO_REPLACEMENT;
}

static char escaped_char(char c)
{
	switch (c) {
	case 'b': return '\b';
	case 'f': return '\f';
	case 'n': return '\n';
	case 'r': return '\r';
	case 't': return '\t';
	default: return c;
	}
}

str json_unescape(struct arena *a, str inside, unsigned flags)
{
	const char *p = inside.p, *end = p + inside.n;
	bool utf8 = !(flags & JSON_HIGH) || str_is_utf8(inside);

	if (utf8 && !(flags & JSON_ESCAPED))
		return inside;
	/* Escapes only shrink; a wrong byte becomes the three of U+FFFD. */
	char *out = arena_alloc(a, utf8 ? inside.n : 3 * inside.n, 1), *w = out;
	while (p < end) {
		if (*p == '\\') {
			p++;
			if (*p == 'u')
				w += go_put_rune(w, escaped_rune(&p, end));
			else
				*w++ = escaped_char(*p++);
		} else if ((unsigned char)*p < 0x80) {
			*w++ = *p++;
		} else {
			size_t n = str_rune(str_span(p, (size_t)(end - p)), NULL);
			if (n)
				memcpy(w, p, n);
			w += n ? n : go_put_rune(w, GO_REPLACEMENT);
			p += n ? n : 1;
		}
	}
	return str_span(out, (size_t)(w - out));
}

/* ---- numbers ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

const char *json_number_end(const char *p, const char *end, bool *ret_integer)
{
	*ret_integer = true;
	if (p < end && *p == '-')
		p++;
	if (p == end || !is_digit(*p))
		return NULL;
	p = *p == '0' ? p + 1 : skip_digits(p, end);
	if (p < end && *p == '.') {
		*ret_integer = false;
		if (++p == end || !is_digit(*p))
			return NULL;
		p = skip_digits(p, end);
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		*ret_integer = false;
		if (++p < end && (*p == '+' || *p == '-'))
			p++;
		if (p == end || !is_digit(*p))
			return NULL;
		p = skip_digits(p, end);
	}
	return p;
}

bool json_to_uint64(str number, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < number.n; i++) {
		if (!is_digit(number.p[i]) || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(number.p[i] - '0'), &value))
			return false;
	}
	*ret = value;
	return number.n > 0;
}

bool json_to_int64(str number, int64_t *ret)
{
	bool negative = number.n && number.p[0] == '-';
	uint64_t value;

	if (!json_to_uint64(str_skip(number, negative), &value) || value > (uint64_t)INT64_MAX + negative)
		return false;
	*ret = negative ? (int64_t)-value : (int64_t)value;
	return true;
}

/*
 * Few digits and a small power of ten are exact in a double, so that one division or product rounds correctly
 * (Clinger's fast path). False when the number is not of that sort.
 */
static bool short_double(str number, double *ret)
{
	static const double powers[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
					 1e14, 1e15 };
	bool negative = number.p[0] == '-', fraction = false;
	uint64_t digits = 0;
	size_t scale = 0;

	if (number.n > 16)
		return false;
	for (size_t i = negative; i < number.n; i++) {
		if (number.p[i] == '.') {
			fraction = true;
			continue;
		}
		if (!is_digit(number.p[i]))
			return false;
		digits = digits * 10 + (uint64_t)(number.p[i] - '0');
		scale += fraction;
	}
	if (digits >= UINT64_C(1) << 53)
		return false;
	double value = (double)digits / powers[scale];
	*ret = negative ? -value : value;
	return true;
}

bool json_to_double(str number, bool single, double *ret)
{
	char room[64], *copy = room;

	if (!single && short_double(number, ret))
		return true;
	if (number.n >= sizeof(room))
		copy = mem_alloc(number.n + 1);
	memcpy(copy, number.p, number.n);
	copy[number.n] = '\0';
	double value = single ? (double)strtof(copy, NULL) : strtod(copy, NULL);
	if (copy != room)
		free(copy);
	*ret = value;
	return !isinf(value);
}

/* ---- whole values ---- */

/* Where a text went wrong: at a character, with what Go says after naming it; at its end when context is NULL. */
struct fail {
	const char *at, *context;
};

static const char *failed(struct fail *fail, const char *at, const char *context)
{
	if (fail)
		*fail = (struct fail){ at, context };
	return NULL;
}

static const char *string_fail(struct fail *fail, const char *p, const char *end)
{
	for (; p < end; p++) {
		if ((unsigned char)*p < 0x20)
			return failed(fail, p, "in string literal");
		if (*p != '\\')
			continue;
		if (++p == end || (*p != 'u' && !memchr("\"\\/bfnrt", *p, 8)))
			return failed(fail, p, "in string escape code");
		for (int i = 0; *p == 'u' && i < 4; i++)
			if (p + 1 + i == end || hex_digit(p[1 + i]) < 0)
				return failed(fail, p + 1 + i, "in \\u hexadecimal character escape");
	}
	return failed(fail, end, NULL);
}

static const char *number_fail(struct fail *fail, const char *p, const char *end)
{
	if (*p == '-')
		p++;
	if (p == end || !is_digit(*p))
		return failed(fail, p, "in numeric literal");
	p = *p == '0' ? p + 1 : skip_digits(p, end);
	if (p < end && *p == '.') {
		if (++p == end || !is_digit(*p))
			return failed(fail, p, "after decimal point in numeric literal");
		p = skip_digits(p, end);
	}
	p++; /* an e, for everything else is in order */
	if (p < end && (*p == '+' || *p == '-'))
		p++;
	return failed(fail, p, "in exponent of numeric literal");
}

static const char *literal_end(const char *p, const char *end, struct fail *fail)
{
	static const struct literal {
		str text;
		const char *context[5];
	} literals[] = {
		{ STR_INIT("true"), { NULL, "in literal true (expecting 'r')", "in literal true (expecting 'u')",
				      "in literal true (expecting 'e')" } },
		{ STR_INIT("false"), { NULL, "in literal false (expecting 'a')", "in literal false (expecting 'l')",
				       "in literal false (expecting 's')", "in literal false (expecting 'e')" } },
		{ STR_INIT("null"), { NULL, "in literal null (expecting 'u')", "in literal null (expecting 'l')",
				      "in literal null (expecting 'l')" } },
	};
	const struct literal *l = literals;

	while (l < literals + ARRAY_LEN(literals) && l->text.p[0] != *p)
		l++;
	if (l == literals + ARRAY_LEN(literals))
		return failed(fail, p, "looking for beginning of value");
	for (size_t i = 1; i < l->text.n; i++)
		if (p + i == end || p[i] != l->text.p[i])
			return failed(fail, p + i, l->context[i]);
	return p + l->text.n;
}

static const char *scan_string(const char *p, const char *end, struct fail *fail)
{
	unsigned flags;
	const char *close = json_string_end(p, end, &flags);
	return LIKELY(close) ? close + 1 : string_fail(fail, p, end);
}

static const char *scan_scalar(const char *p, const char *end, struct fail *fail)
{
	bool integer;

	if (*p == '"')
		return scan_string(p + 1, end, fail);
	if (*p != '-' && !is_digit(*p))
		return literal_end(p, end, fail);
	const char *after = json_number_end(p, end, &integer);
	return LIKELY(after) ? after : number_fail(fail, p, end);
}

struct scan {
	const char *end;
	unsigned base, depth;
	bool spaced;
	struct fail *fail;
	uint64_t objects[VAL_MAX_DEPTH / 64 + 1]; /* a bit per level: set for objects, clear for lists */
};

static bool scan_in_object(const struct scan *s) { return s->objects[s->depth / 64] >> s->depth % 64 & 1; }

static const char *scan_space(struct scan *s, const char *p)
{
	if (UNLIKELY(p < s->end && json_is_space(*p))) {
		s->spaced = true;
		p = json_skip_space(p, s->end);
	}
	return p;
}

/* From before a key to behind its colon. */
static const char *scan_key(struct scan *s, const char *p)
{
	p = scan_space(s, p);
	if (UNLIKELY(p == s->end || *p != '"'))
		return failed(s->fail, p, p == s->end ? NULL : "looking for beginning of object key string");
	p = scan_string(p + 1, s->end, s->fail);
	if (UNLIKELY(!p))
		return NULL;
	p = scan_space(s, p);
	if (UNLIKELY(p == s->end || *p != ':'))
		return failed(s->fail, p, p == s->end ? NULL : "after object key");
	return p + 1;
}

/* Behind '{' or '[': *ret_more tells whether there is a member or item, else the bracket was closed again. */
static const char *scan_open(struct scan *s, const char *p, bool *ret_more)
{
	bool object = *p == '{';

	if (UNLIKELY(s->depth == VAL_MAX_DEPTH))
		return failed(s->fail, p, "exceeded max depth");
	s->depth++;
	uint64_t bit = UINT64_C(1) << s->depth % 64, *word = &s->objects[s->depth / 64];
	*word = object ? *word | bit : *word & ~bit;
	p = scan_space(s, p + 1);
	*ret_more = p == s->end || *p != (object ? '}' : ']');
	if (!*ret_more) {
		s->depth--;
		return p + 1;
	}
	return object ? scan_key(s, p) : p;
}

/* Behind a value: closes what ends here, up to the next value (*ret_more) or the end of the outermost one. */
static const char *scan_after(struct scan *s, const char *p, bool *ret_more)
{
	*ret_more = false;
	while (s->depth > s->base) {
		bool object = scan_in_object(s);
		p = scan_space(s, p);
		if (UNLIKELY(p == s->end))
			return failed(s->fail, p, NULL);
		if (*p == ',') {
			*ret_more = true;
			return object ? scan_key(s, p + 1) : p + 1;
		}
		if (UNLIKELY(*p != (object ? '}' : ']')))
			return failed(s->fail, p, object ? "after object key:value pair" : "after array element");
		s->depth--;
		p++;
	}
	return p;
}

static const char *scan_value(struct scan *s, const char *p)
{
	for (bool more = true; more;) {
		p = scan_space(s, p);
		if (UNLIKELY(p == s->end))
			return failed(s->fail, p, NULL);
		if (*p == '{' || *p == '[') {
			p = scan_open(s, p, &more);
			if (p && more)
				continue;
		} else {
			p = scan_scalar(p, s->end, s->fail);
		}
		if (p)
			p = scan_after(s, p, &more);
		if (UNLIKELY(!p))
			return NULL;
	}
	return p;
}

static void scan_init(struct scan *s, const char *end, unsigned depth, struct fail *fail)
{
	/* The bits are written before they are read. */
	s->end = end;
	s->base = s->depth = depth;
	s->spaced = false;
	s->fail = fail;
}

const char *json_value_end(const char *p, const char *end, unsigned depth, bool *ret_spaced)
{
	struct scan s;

	p = json_skip_space(p, end);
	scan_init(&s, end, depth, NULL);
	p = scan_value(&s, p);
	if (ret_spaced)
		*ret_spaced = s.spaced;
	return p;
}

str json_compact(struct arena *a, str value)
{
	const char *p = value.p, *end = p + value.n;
	char *out = arena_alloc(a, value.n, 1), *w = out;

	while (p < end) {
		const char *from = p;
		unsigned flags;
		if (json_is_space(*p)) {
			p++;
			continue;
		}
		p = *p == '"' ? json_string_end(p + 1, end, &flags) + 1 : p + 1;
		memcpy(w, from, (size_t)(p - from));
		w += p - from;
	}
	return str_span(out, (size_t)(w - out));
}

int json_syntax_error(str text, size_t *ret_offset, struct err *err)
{
	struct fail fail = { NULL, NULL };
	struct scan s;

	text = text.n ? text : STR("");
	const char *end = text.p + text.n;
	scan_init(&s, end, 0, &fail);
	const char *p = scan_value(&s, text.p);
	if (p) {
		p = json_skip_space(p, end);
		if (p == end)
			return 0;
		fail = (struct fail){ p, "after top-level value" };
	}
	if (ret_offset)
		*ret_offset = (size_t)(fail.at - text.p);
	/* Go feeds its state machine one more space at the end of the text; only some states object to it. */
	if (!fail.context)
		return err_set(err, ERR_BAD_REQUEST, "unexpected end of JSON input");
	char quoted[GO_QUOTE_RUNE_MAX];
	go_quote_byte(fail.at == end ? ' ' : (unsigned char)*fail.at, quoted);
	return err_set(err, ERR_BAD_REQUEST, "invalid character %s %s", quoted, fail.context);
}
