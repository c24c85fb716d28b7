#include "codec/go.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

size_t go_put_rune(char *out, uint32_t rune)
{
	if (rune < 0x80) {
		out[0] = (char)rune;
		return 1;
	}
	if (rune < 0x800) {
		out[0] = (char)(0xc0 | rune >> 6);
		out[1] = (char)(0x80 | (rune & 0x3f));
		return 2;
	}
	if (rune < 0x10000) {
		out[0] = (char)(0xe0 | rune >> 12);
		out[1] = (char)(0x80 | (rune >> 6 & 0x3f));
		out[2] = (char)(0x80 | (rune & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | rune >> 18);
	out[1] = (char)(0x80 | (rune >> 12 & 0x3f));
	out[2] = (char)(0x80 | (rune >> 6 & 0x3f));
	out[3] = (char)(0x80 | (rune & 0x3f));
	return 4;
}

void go_quote_rune(uint32_t rune, char out[GO_QUOTE_RUNE_MAX])
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64);
	char utf8[4];

	buf_add_quoted(&b, str_span(utf8, go_put_rune(utf8, rune)));
	str inside = rune == '\'' ? STR("\\'") : rune == '"' ? STR("\"") : str_span(b.p + 1, b.n - 2);
	snprintf(out, GO_QUOTE_RUNE_MAX, "'" STR_FMT "'", STR_ARG(inside));
}

/* n digits of a base from s; false when there are not that many. */
static bool scan_digits(str s, size_t n, unsigned base, uint32_t *ret)
{
	if (s.n < n)
		return false;
	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		char c = s.p[i] | 0x20;
		unsigned digit = s.p[i] >= '0' && s.p[i] <= '9' ? (unsigned)(s.p[i] - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
		if (digit >= base)
			return false;
		*ret = *ret * base + digit;
	}
	return true;
}

/* One escape of Go's strings; s stands behind the backslash. Writes up to 4 bytes and returns how much of s it used, 0 if wrong. */
static size_t unescape(str s, char quote, char *out, size_t *n)
{
	static const char letters[] = "abfnrtv\\", meanings[] = "\a\b\f\n\r\t\v\\";
	uint32_t code;

	if (s.n == 0)
		return 0;
	char c = s.p[0];
	const char *known = c ? strchr(letters, c) : NULL;
	if (known || c == quote) {
		out[(*n)++] = known ? meanings[known - letters] : c;
		return 1;
	}
	size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
	if (digits) {
		if (!scan_digits(str_skip(s, 1), digits, 16, &code))
			return 0;
		if (c == 'x') {
			out[(*n)++] = (char)code;
		} else {
			if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
				return 0;
			*n += go_put_rune(out + *n, code);
		}
		return 1 + digits;
	}
	if (c < '0' || c > '7' || !scan_digits(s, 3, 8, &code) || code > 255)
		return 0;
	out[(*n)++] = (char)code;
	return 3;
}

bool go_unquote(struct arena *a, str quoted, str *ret)
{
	if (quoted.n < 2)
		return false;
	char quote = quoted.p[0];
	str s = str_span(quoted.p + 1, quoted.n - 2);
	char *out = arena_alloc(a, s.n + 4, 1);
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == quote)
			return false;
		if (s.p[i] != '\\') {
			out[n++] = s.p[i];
			continue;
		}
		size_t used = unescape(str_skip(s, i + 1), quote, out, &n);
		if (used == 0)
			return false;
		i += used;
	}
	*ret = str_span(out, n);
	return true;
}

bool go_equal_fold(str x, str y)
{
	if (x.n != y.n)
		return false;
	for (size_t i = 0; i < x.n; i++) {
		unsigned char a = (unsigned char)x.p[i], b = (unsigned char)y.p[i];
		if (a != b && ((a | 0x20) != (b | 0x20) || (a | 0x20) < 'a' || (a | 0x20) > 'z'))
			return false;
	}
	return true;
}

/* ---- numbers ---- */

static double read_back(const char *text, bool single)
{
	return single ? (double)strtof(text, NULL) : strtod(text, NULL);
}

/* The decimal after text in its last digit; text is in the form of "%e". */
static void next_decimal(char *text)
{
	for (char *p = strchr(text, 'e') - 1; p >= text; p--) {
		if (*p == '.')
			continue;
		if (*p != '9') {
			++*p;
			return;
		}
		*p = '0';
	}
}

/*
 * True when d reads back from so many digits, which are then in text. Of a power of two the neighbour above is
 * farther away than the one below, so that the next larger decimal may do where the nearest one does not; and it is
 * taken when both are as near.
 */
static bool try_digits(double d, bool single, int precision, char *text, size_t size)
{
	char exact[64];
	int exponent;

	snprintf(text, size, "%.*e", precision - 1, d);
	if (frexp(d, &exponent) != 0.5)
		return read_back(text, single) == d;
	snprintf(exact, sizeof(exact), "%.*e", precision + 15, d);
	bool tie = strncmp(strchr(exact, 'e') - 16, "5000000000000000", 16) == 0;
	bool rounded_down = strncmp(text, exact, (size_t)precision + 1) == 0;
	if (tie ? rounded_down : read_back(text, single) != d)
		next_decimal(text);
	return read_back(text, single) == d;
}

/* The shortest digits (without a point) of a positive d, and the place of the point: 0.digits * 10^*ret_point. */
static size_t shortest_digits(double d, bool single, char digits[20], int *ret_point)
{
	char text[40];
	/*
	 * So many digits of a decimal survive the way into a number and back, unless it is denormal: fewer need not
	 * be tried.
	 */
	int sure = single ? 6 : 15, most = single ? 9 : 17;
	bool denormal = d < (single ? 0x1p-126 : 0x1p-1022);

	int precision = denormal ? 1 : sure;
	while (precision < most && !try_digits(d, single, precision, text, sizeof(text)))
		precision++;
	if (precision == most)
		snprintf(text, sizeof(text), "%.*e", most - 1, d);
	size_t n = 0;
	const char *p = text;
	for (; *p != 'e'; p++)
		if (*p != '.')
			digits[n++] = *p;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	*ret_point = (int)strtol(p + 1, NULL, 10) + 1;
	return n;
}

static str format_exponent(const char *digits, size_t n, int exponent, bool negative, int exponent_width,
			   char out[GO_FLOAT_MAX])
{
	const char *sign = negative ? "-" : "", *point = n > 1 ? "." : "";
	int at = snprintf(out, GO_FLOAT_MAX, "%s%c%s%.*se%c%0*d", sign, digits[0], point, (int)(n - 1), digits + 1,
			  exponent < 0 ? '-' : '+', exponent_width, abs(exponent));

	return str_span(out, (size_t)at);
}

static str format_plain(const char *digits, int n, int point, bool negative, char out[GO_FLOAT_MAX])
{
	static const char zeros[] = "000000000000000000000000";
	const char *sign = negative ? "-" : "";
	int at;

	if (point <= 0)
		at = snprintf(out, GO_FLOAT_MAX, "%s0.%.*s%.*s", sign, -point, zeros, n, digits);
	else if (point >= n)
		at = snprintf(out, GO_FLOAT_MAX, "%s%.*s%.*s", sign, n, digits, point - n, zeros);
	else
		at = snprintf(out, GO_FLOAT_MAX, "%s%.*s.%.*s", sign, point, digits, n - point, digits + point);
	return str_span(out, (size_t)at);
}

str go_format_float(double d, bool single, enum go_float_style style, char out[GO_FLOAT_MAX])
{
	bool negative = signbit(d);
	char digits[20];
	int point;

	d = fabs(d);
	if (d == 0)
		return str_span(out, (size_t)snprintf(out, GO_FLOAT_MAX, negative ? "-0" : "0"));
	size_t n = shortest_digits(d, single, digits, &point);
	if (style == GO_FLOAT_G) {
		if (point - 1 < -4 || point - 1 >= 6)
			return format_exponent(digits, n, point - 1, negative, 2, out);
	} else if (single ? (float)d < 1e-6f || (float)d >= 1e21f : d < 1e-6 || d >= 1e21) {
		/* encoding/json cleans e-09 up to e-9. */
		return format_exponent(digits, n, point - 1, negative, point - 1 < 0 ? 1 : 2, out);
	}
	return format_plain(digits, (int)n, point, negative, out);
}

str go_format_uint(uint64_t u, char out[GO_INT_MAX])
{
	static const char pairs[] =
		"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354"
		"555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
	char *end = out + GO_INT_MAX, *p = end;

	for (; u >= 100; u /= 100)
		memcpy(p -= 2, pairs + u % 100 * 2, 2);
	if (u >= 10)
		memcpy(p -= 2, pairs + u * 2, 2);
	else
		*--p = (char)('0' + u);
	return str_span(p, (size_t)(end - p));
}

str go_format_int(int64_t i, char out[GO_INT_MAX])
{
	str digits = go_format_uint(i < 0 ? -(uint64_t)i : (uint64_t)i, out);

	if (i < 0) {
		out[GO_INT_MAX - digits.n - 1] = '-';
		digits = str_span(digits.p - 1, digits.n + 1);
	}
	return digits;
}
