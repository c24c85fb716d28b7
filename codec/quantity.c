/*
 * A text is split once into sign, digits and suffix. Two things are made of that: the number of nanos, and the canonical text.
 * The latter is made from the digits themselves, so that decimal quantities of any length keep every digit.
 */
#include "codec/quantity.h"

#include <stdio.h>

enum { NANO = 1000000000 };

#define NANOS_MAX ((quantity_nanos)(~(__uint128_t)0 >> 1))
/* Kubernetes' cap of quantities with a binary suffix. */
#define BINARY_MAX ((quantity_nanos)INT64_MAX * NANO)

struct number {
	bool negative, verbatim; /* verbatim: Kubernetes writes the text as it came */
	str whole, frac;         /* digits before (without leading zeros, but never empty) and after the point */
	int32_t exponent;        /* of 10, or of 2 for QUANTITY_BINARY_SI */
	enum quantity_format format;
};

static const struct {
	char text[3];
	int8_t exponent;
} decimal_suffixes[] = {
	{ "n", -9 }, { "u", -6 }, { "m", -3 }, { "", 0 }, { "k", 3 }, { "M", 6 }, { "G", 9 }, { "T", 12 }, { "P", 15 }, { "E", 18 },
}, binary_suffixes[] = {
	{ "Ki", 10 }, { "Mi", 20 }, { "Gi", 30 }, { "Ti", 40 }, { "Pi", 50 }, { "Ei", 60 },
};

static size_t digits_at(str s)
{
	size_t n = 0;
	while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
		n++;
	return n;
}

/* Kubernetes wraps exponents to 32 bits wherever it handles them; so they come out the same. */
static int32_t wrap_add(int32_t a, int64_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

static bool suffix_read(str s, struct number *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(decimal_suffixes); i++) {
		if (str_eq(s, str_of(decimal_suffixes[i].text))) {
			ret->exponent = decimal_suffixes[i].exponent;
			ret->format = QUANTITY_DECIMAL_SI;
			return true;
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(binary_suffixes); i++) {
		if (str_eq(s, str_of(binary_suffixes[i].text))) {
			ret->exponent = binary_suffixes[i].exponent;
			ret->format = QUANTITY_BINARY_SI;
			return true;
		}
	}
	int64_t exponent;
	str number = str_skip(s, s.n > 1 && s.p[1] == '+' ? 2 : 1);
	if ((s.p[0] != 'e' && s.p[0] != 'E') || !str_to_i64(number, &exponent))
		return false;
	ret->exponent = wrap_add(0, exponent);
	ret->format = QUANTITY_DECIMAL_EXPONENT;
	return true;
}

static unsigned digit(const struct number *x, size_t i)
{
	return (unsigned char)(i < x->whole.n ? x->whole.p[i] : x->frac.p[i - x->whole.n]) - '0';
}

static bool digits_are_zero(const struct number *x, size_t from, size_t to)
{
	while (from < to && digit(x, from) == 0)
		from++;
	return from == to;
}

/* True for the numbers that Kubernetes reads on a short cut, which has rules of its own for what is canonical. */
static bool is_short(const struct number *x)
{
	size_t n = x->whole.n + x->frac.n;
	if (x->format == QUANTITY_BINARY_SI)
		return x->frac.n == 0 && (int64_t)n + x->exponent / 10 * 3 <= 14;
	return n <= 18 && wrap_add(x->exponent, -(int64_t)x->frac.n) >= -9;
}

/* Texts that Kubernetes takes for canonical on its short cut, right or wrong. */
static bool is_verbatim(const struct number *x)
{
	size_t n = x->whole.n + x->frac.n;
	if (!is_short(x))
		return false;
	if (x->format == QUANTITY_BINARY_SI) {
		/* The last three digits decide what the number leaves modulo 8. */
		unsigned low = digit(x, n - 1) + (n > 1 ? digit(x, n - 2) * 2 : 0) + (n > 2 ? digit(x, n - 3) * 4 : 0);
		return low % 8 != 0;
	}
	if (wrap_add(x->exponent, -(int64_t)x->frac.n) % 3 != 0 || digit(x, 0) == 0)
		return false;
	return n < 3 || !digits_are_zero(x, n - 3, n);
}

static int number_read(str text, struct number *ret, struct err *err)
{
	str s = text;
	struct number x = { .negative = s.n && s.p[0] == '-' };

	if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
		s = str_skip(s, 1);
	bool digits = digits_at(s) > 0;
	while (s.n && s.p[0] == '0')
		s = str_skip(s, 1);
	x.whole = str_head(s, digits_at(s));
	s = str_skip(s, x.whole.n);
	if (x.whole.n == 0)
		x.whole = STR("0");
	if (s.n && s.p[0] == '.') {
		s = str_skip(s, 1);
		x.frac = str_head(s, digits_at(s));
		s = str_skip(s, x.frac.n);
		digits |= x.frac.n > 0;
	}
	str suffix = s;
	while (s.n && s.p[0] && strchr("eEinumkKMGTP", s.p[0]))
		s = str_skip(s, 1);
	if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
		s = str_skip(s, 1);
	s = str_skip(s, digits_at(s));
	if (s.n || text.n == 0)
		return err_set(err, ERR_BAD_REQUEST, "quantities must match the regular expression "
			       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
	if (!suffix_read(suffix, &x))
		return err_set(err, ERR_BAD_REQUEST, "unable to parse quantity's suffix");
	if (!digits && !is_short(&x))
		return err_set(err, ERR_BAD_REQUEST, "unable to parse numeric part of quantity");
	x.verbatim = is_verbatim(&x);
	*ret = x;
	return 0;
}

/* ---- numbers ---- */

static quantity_nanos decimal_nanos(const struct number *x)
{
	size_t n = x->whole.n + x->frac.n;
	/* How many of the digits, and of the zeros after them, stand before the end of the nanos. */
	int64_t keep = (int64_t)n + wrap_add(x->exponent, -(int64_t)x->frac.n) + 9;
	size_t cut = keep < 0 ? 0 : MIN((size_t)keep, n);
	quantity_nanos v = 0;

	for (size_t i = 0; i < cut; i++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit(x, i), &v))
			return NANOS_MAX;
	for (int64_t i = (int64_t)n; i < keep && v; i++)
		if (__builtin_mul_overflow(v, 10, &v))
			return NANOS_MAX;
	if (!digits_are_zero(x, cut, n) && v < NANOS_MAX)
		v++;
	return v;
}

/*
 * Exact for any number of digits: a multiple of 2^-60 nanos has at most 69 digits after the point, so of the digits
 * behind 72 only matters whether there are any.
 */
static quantity_nanos binary_nanos(const struct number *x)
{
	enum { LIMBS = 8, LIMB_DIGITS = 9 };
	uint64_t limb[LIMBS] = { 0 };
	__uint128_t whole = 0;

	for (size_t i = 0; i < x->whole.n; i++) {
		whole = whole * 10 + digit(x, i);
		if (whole > INT64_MAX)
			return BINARY_MAX;
	}
	if (!x->frac.n) { /* as good as always */
		whole <<= x->exponent;
		return whole >= INT64_MAX ? BINARY_MAX : (quantity_nanos)whole * NANO;
	}
	for (size_t i = 0; i < LIMBS * LIMB_DIGITS; i++)
		limb[i / LIMB_DIGITS] = limb[i / LIMB_DIGITS] * 10 + (i < x->frac.n ? digit(x, x->whole.n + i) : 0);
	size_t end = x->whole.n + x->frac.n, kept = MIN(end, x->whole.n + LIMBS * LIMB_DIGITS);
	bool rest = !digits_are_zero(x, kept, end);
	for (int32_t e = 0; e < x->exponent; e += 10) {
		uint64_t carry = 0;
		for (size_t i = LIMBS; i-- > 0;) {
			carry += limb[i] << 10;
			limb[i] = carry % NANO;
			carry /= NANO;
		}
		whole = (whole << 10) + carry;
	}
	for (size_t i = 1; i < LIMBS; i++)
		rest |= limb[i] != 0;
	if (whole >= INT64_MAX)
		return BINARY_MAX;
	return (quantity_nanos)whole * NANO + (quantity_nanos)limb[0] + rest;
}

int quantity_parse(str text, struct quantity *ret, struct err *err)
{
	struct number x;
	int r = number_read(text, &x, err);
	if (r < 0)
		return r;
	struct quantity q = { .format = x.format };
	if (x.format == QUANTITY_BINARY_SI) {
		q.nanos = binary_nanos(&x);
		if (q.nanos > 0 && q.nanos < NANO)
			q.format = QUANTITY_DECIMAL_SI;
	} else {
		q.nanos = decimal_nanos(&x);
	}
	if (x.negative)
		q.nanos = -q.nanos;
	*ret = q;
	return 0;
}

/* ---- texts ---- */

/* Room behind the digits that decimal_end may need: two zeros and the longest suffix, "e-2147483648". */
enum { DECIMAL_END_MAX = 14 };

/* Moves tens into the suffix; digits are n > 0 without leading zeros. Returns the length of the text. */
static size_t decimal_end(char *digits, size_t n, int32_t scale, enum quantity_format format)
{
	while (digits[n - 1] == '0') {
		n--;
		scale = wrap_add(scale, 1);
	}
	while (scale % 3 != 0) {
		digits[n++] = '0';
		scale = wrap_add(scale, -1);
	}
	if (format == QUANTITY_DECIMAL_EXPONENT)
		return scale == 0 ? n : n + (size_t)snprintf(digits + n, DECIMAL_END_MAX - 1, "e%d", (int)scale);
	/* Beyond exa Kubernetes writes no suffix at all. */
	for (size_t i = 0; i < ARRAY_LEN(decimal_suffixes); i++)
		if (decimal_suffixes[i].exponent == scale && scale != 0)
			digits[n++] = decimal_suffixes[i].text[0];
	return n;
}

static size_t put_digits(char *out, __uint128_t v)
{
	char reversed[40];
	size_t n = 0;
	do {
		reversed[n++] = (char)('0' + (int)(v % 10));
		v /= 10;
	} while (v);
	for (size_t i = 0; i < n; i++)
		out[i] = reversed[n - 1 - i];
	return n;
}

str quantity_format(struct quantity q, char out[QUANTITY_TEXT_MAX])
{
	__uint128_t v = q.nanos < 0 ? -(__uint128_t)q.nanos : (__uint128_t)q.nanos;
	size_t n = q.nanos < 0, start = n, power = 0;

	out[0] = '-';
	if (v == 0) {
		out[n++] = '0';
	} else if (q.format != QUANTITY_BINARY_SI || v < (__uint128_t)1024 * NANO || v % NANO != 0) {
		/* Also binary quantities that would lose something. */
		n += put_digits(out + start, v);
		n = start + decimal_end(out + start, n - start, -9,
					q.format == QUANTITY_DECIMAL_EXPONENT ? QUANTITY_DECIMAL_EXPONENT : QUANTITY_DECIMAL_SI);
	} else {
		for (v /= NANO; v % 1024 == 0; v /= 1024)
			power++;
		n += put_digits(out + n, v);
		if (power > 0 && power <= ARRAY_LEN(binary_suffixes)) {
			memcpy(out + n, binary_suffixes[power - 1].text, 2);
			n += 2;
		}
	}
	out[n] = '\0';
	return str_span(out, n);
}

/* The first n digits of x, plus one in the last place; returns their number, which grows by one for 99 -> 100. */
static size_t digits_increment(char *digits, size_t n)
{
	size_t i = n;
	while (i > 0 && digits[i - 1] == '9')
		digits[--i] = '0';
	if (i > 0) {
		digits[i - 1]++;
		return n;
	}
	if (n > 0)
		digits[n] = '0';
	digits[0] = '1';
	return n + 1;
}

static str decimal_canonical(struct arena *a, const struct number *x)
{
	size_t from = 0, total = x->whole.n + x->frac.n;
	int32_t scale = wrap_add(x->exponent, -(int64_t)x->frac.n);

	while (from < total && digit(x, from) == 0)
		from++;
	if (from == total)
		return STR("0");
	size_t drop = scale < -9 ? MIN((size_t)(-9 - (int64_t)scale), total - from) : 0;
	size_t n = total - from - drop;
	char *text = arena_alloc(a, 1 + n + 1 + DECIMAL_END_MAX, 1), *digits = text + x->negative;

	text[0] = '-';
	for (size_t i = 0; i < n; i++)
		digits[i] = (char)('0' + digit(x, from + i));
	if (drop || scale < -9) {
		scale = -9;
		if (!digits_are_zero(x, from + n, total))
			n = digits_increment(digits, n);
	}
	n = decimal_end(digits, n, scale, x->format);
	return str_span(text, n + x->negative);
}

int quantity_canonical(struct arena *a, str text, str *ret, struct err *err)
{
	struct number x;
	int r = number_read(text, &x, err);
	if (r < 0)
		return r;
	if (x.verbatim) {
		*ret = text;
	} else if (x.format == QUANTITY_BINARY_SI) {
		struct quantity q;
		char out[QUANTITY_TEXT_MAX];
		r = quantity_parse(text, &q, err);
		*ret = arena_str(a, quantity_format(q, out));
	} else {
		*ret = decimal_canonical(a, &x);
	}
	return r;
}

/* ---- arithmetic ---- */

struct quantity quantity_of_int(int64_t value, enum quantity_format format)
{
	return (struct quantity){ .nanos = (quantity_nanos)value * NANO, .format = format };
}

struct quantity quantity_of_milli(int64_t value, enum quantity_format format)
{
	return (struct quantity){ .nanos = (quantity_nanos)value * (NANO / 1000), .format = format };
}

int quantity_cmp(struct quantity a, struct quantity b) { return a.nanos < b.nanos ? -1 : a.nanos > b.nanos; }

struct quantity quantity_add(struct quantity a, struct quantity b)
{
	struct quantity sum = { .format = a.nanos ? a.format : b.format };
	if (__builtin_add_overflow(a.nanos, b.nanos, &sum.nanos))
		sum.nanos = a.nanos < 0 ? -NANOS_MAX : NANOS_MAX;
	return sum;
}

struct quantity quantity_sub(struct quantity a, struct quantity b)
{
	b.nanos = -b.nanos;
	return quantity_add(a, b);
}

/* Divides, rounding away from zero. */
static quantity_nanos divide_up(quantity_nanos v, quantity_nanos unit)
{
	quantity_nanos rest = v % unit;
	return v / unit + (rest > 0) - (rest < 0);
}

static int64_t saturate(quantity_nanos v) { return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v; }

int64_t quantity_value(struct quantity q) { return saturate(divide_up(q.nanos, NANO)); }
int64_t quantity_milli(struct quantity q) { return saturate(divide_up(q.nanos, NANO / 1000)); }

struct quantity quantity_round_up(struct quantity q, int scale)
{
	quantity_nanos unit = 1, rounded;
	for (int i = -9; i < scale && i < 0; i++)
		unit *= 10;
	if (__builtin_mul_overflow(divide_up(q.nanos, unit), unit, &rounded))
		rounded = q.nanos < 0 ? -NANOS_MAX : NANOS_MAX;
	return (struct quantity){ .nanos = rounded, .format = q.format };
}
