/* Times and durations as Go reads and writes them. */
#include "codec/time.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/calendar.h"

enum { QUOTE_MAX = 500 };

/* As package time quotes: all that is not ASCII as \xNN. Cut when longer than any error message. */
static const char *quote(str s, char out[QUOTE_MAX])
{
	size_t n = 0;
	out[n++] = '"';
	for (size_t i = 0; i < s.n && n < QUOTE_MAX - 8; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c < ' ' || c >= 0x80)
			n += (size_t)snprintf(out + n, 5, "\\x%02x", c);
		else if (c == '"' || c == '\\')
			n += (size_t)snprintf(out + n, 3, "\\%c", c);
		else
			out[n++] = (char)c;
	}
	out[n++] = '"';
	out[n] = '\0';
	return out;
}

/* ---- calendar ---- */

static unsigned days_in(int64_t year, unsigned month)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return days[month - 1] + (month == 2 && leap);
}

/* ---- parsing times ---- */

struct scan {
	str text, at;
	bool micro;
	struct err *err;
};

static bool is_digit(str s, size_t i) { return i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; }
static bool is_point(str s) { return s.n && (s.p[0] == '.' || s.p[0] == ','); }

static int scan_fail(const struct scan *s, str at, const char *element)
{
	char text[QUOTE_MAX], part[QUOTE_MAX];
	return err_set(s->err, ERR_BAD_REQUEST, "parsing time %s as \"2006-01-02T15:04:05%sZ07:00\": cannot parse %s as \"%s\"",
		       quote(s->text, text), s->micro ? ".000000" : "", quote(at, part), element);
}

static int scan_out_of_range(const struct scan *s, const char *what)
{
	char text[QUOTE_MAX];
	return err_set(s->err, ERR_BAD_REQUEST, "parsing time %s: %s out of range", quote(s->text, text), what);
}

static int scan_literal(struct scan *s, const char *c)
{
	if (s->at.n == 0 || s->at.p[0] != *c)
		return scan_fail(s, s->at, c);
	s->at = str_skip(s->at, 1);
	return 0;
}

static int scan_year(struct scan *s, int64_t *ret)
{
	if (!is_digit(s->at, 0) || !str_to_i64(str_head(s->at, 4), ret) || s->at.n < 4)
		return scan_fail(s, s->at, "2006");
	s->at = str_skip(s->at, 4);
	return 0;
}

/* Two digits, of which the first may be missing when loose is set. */
static int scan_number(struct scan *s, const char *element, bool loose, unsigned *ret)
{
	if (!is_digit(s->at, 0) || (!is_digit(s->at, 1) && !loose))
		return scan_fail(s, s->at, element);
	size_t n = is_digit(s->at, 1) ? 2 : 1;
	unsigned v = 0;
	for (size_t i = 0; i < n; i++)
		v = v * 10 + (unsigned)(s->at.p[i] - '0');
	s->at = str_skip(s->at, n);
	*ret = v;
	return 0;
}

static int scan_date(struct scan *s, struct civil *c)
{
	int r;
	if ((r = scan_year(s, &c->year)) < 0 || (r = scan_literal(s, "-")) < 0 || (r = scan_number(s, "01", false, &c->month)) < 0)
		return r;
	if (c->month < 1 || c->month > 12)
		return scan_out_of_range(s, "month");
	if ((r = scan_literal(s, "-")) < 0)
		return r;
	return scan_number(s, "02", false, &c->day);
}

static int scan_clock(struct scan *s, struct civil *c)
{
	int r;
	if ((r = scan_number(s, "15", true, &c->hour)) < 0)
		return r;
	if (c->hour >= 24)
		return scan_out_of_range(s, "hour");
	if ((r = scan_literal(s, ":")) < 0 || (r = scan_number(s, "04", false, &c->minute)) < 0)
		return r;
	if (c->minute >= 60)
		return scan_out_of_range(s, "minute");
	if ((r = scan_literal(s, ":")) < 0 || (r = scan_number(s, "05", false, &c->second)) < 0)
		return r;
	if (c->second >= 60)
		return scan_out_of_range(s, "second");
	return 0;
}

/* Nanoseconds from the digits of a fraction, of which the tenth and later do not count. */
static int32_t fraction_nanos(str digits)
{
	int32_t v = 0;
	for (size_t i = 0; i < 9; i++)
		v = v * 10 + (i < digits.n ? digits.p[i] - '0' : 0);
	return v;
}

/* Go reads the six characters as an integer, which may have a sign in place of the first digit. */
static int scan_micros(struct scan *s, int32_t *ret)
{
	str part = str_head(s->at, 7);
	int64_t micros;
	if (part.n < 7 || !is_point(part) || !is_digit(part, 2) || !str_to_i64(str_skip(part, part.p[1] == '+' ? 2 : 1), &micros))
		return scan_fail(s, s->at, ".000000");
	if (micros < 0)
		return scan_out_of_range(s, "fractional second");
	s->at = str_skip(s->at, 7);
	*ret = (int32_t)micros * 1000;
	return 0;
}

static int scan_fraction(struct scan *s, int32_t *ret)
{
	*ret = 0;
	if (s->micro)
		return scan_micros(s, ret);
	if (is_point(s->at) && is_digit(s->at, 1)) {
		size_t n = 1;
		while (is_digit(s->at, n))
			n++;
		*ret = fraction_nanos(str_span(s->at.p + 1, n - 1));
		s->at = str_skip(s->at, n);
	}
	return 0;
}

static int scan_zone(struct scan *s, int64_t *ret_offset)
{
	str at = s->at;
	unsigned hour, minute;
	*ret_offset = 0;
	if (at.n && at.p[0] == 'Z') {
		s->at = str_skip(at, 1);
		return 0;
	}
	if (at.n < 6 || at.p[3] != ':' || !is_digit(at, 1) || !is_digit(at, 2))
		return scan_fail(s, at, "Z07:00");
	bool minutes = is_digit(at, 4) && is_digit(at, 5);
	hour = (unsigned)(at.p[1] - '0') * 10 + (unsigned)(at.p[2] - '0');
	minute = minutes ? (unsigned)(at.p[4] - '0') * 10 + (unsigned)(at.p[5] - '0') : 0;
	/* In Go's order: the last range that is exceeded is named, then the form is minded. */
	if (minute > 60)
		return scan_out_of_range(s, "time zone offset minute");
	if (hour > 24)
		return scan_out_of_range(s, "time zone offset hour");
	if (!minutes || (at.p[0] != '+' && at.p[0] != '-'))
		return scan_fail(s, at, "Z07:00");
	*ret_offset = (int64_t)(hour * 60 + minute) * (at.p[0] == '-' ? -60 : 60);
	s->at = str_skip(at, 6);
	return 0;
}

static int parse(str text, bool micro, struct timestamp *ret, struct err *err)
{
	struct scan s = { .text = text, .at = text, .micro = micro, .err = err };
	struct civil c = { 0 };
	int64_t offset;
	int32_t nanos;
	int r;
	if ((r = scan_date(&s, &c)) < 0 || (r = scan_literal(&s, "T")) < 0 || (r = scan_clock(&s, &c)) < 0 ||
	    (r = scan_fraction(&s, &nanos)) < 0 || (r = scan_zone(&s, &offset)) < 0)
		return r;
	if (s.at.n) {
		char quoted[QUOTE_MAX], extra[QUOTE_MAX];
		return err_set(err, ERR_BAD_REQUEST, "parsing time %s: extra text: %s", quote(text, quoted), quote(s.at, extra));
	}
	if (c.day < 1 || c.day > days_in(c.year, c.month))
		return scan_out_of_range(&s, "day");
	*ret = (struct timestamp){ .seconds = civil_to_seconds(&c) - offset, .nanos = nanos };
	return 0;
}

int time_parse(str text, struct timestamp *ret, struct err *err) { return parse(text, false, ret, err); }
int microtime_parse(str text, struct timestamp *ret, struct err *err) { return parse(text, true, ret, err); }

/* ---- formatting times ---- */

static char *put_two(char *at, unsigned v, char before)
{
	at[0] = before;
	at[1] = (char)('0' + v / 10);
	at[2] = (char)('0' + v % 10);
	return at + 3;
}

/* The text up to the seconds; returns its end. */
static char *put_civil(char *out, int64_t seconds)
{
	struct civil c = civil_of_seconds(seconds);
	char *at = out;
	uint64_t year = c.year < 0 ? -(uint64_t)c.year : (uint64_t)c.year;
	if (c.year < 0)
		*at++ = '-';
	if (year <= 9999) {
		for (unsigned unit = 1000; unit; unit /= 10)
			*at++ = (char)('0' + year / unit % 10);
	} else {
		at += snprintf(at, 20, "%llu", (unsigned long long)year);
	}
	at = put_two(at, c.month, '-');
	at = put_two(at, c.day, '-');
	at = put_two(at, c.hour, 'T');
	at = put_two(at, c.minute, ':');
	return put_two(at, c.second, ':');
}

static str end_with_z(char *out, char *at)
{
	*at++ = 'Z';
	*at = '\0';
	return str_span(out, (size_t)(at - out));
}

str time_format(struct timestamp t, char out[TIME_TEXT_MAX]) { return end_with_z(out, put_civil(out, t.seconds)); }

str microtime_format(struct timestamp t, char out[TIME_TEXT_MAX])
{
	char *at = put_civil(out, t.seconds);
	*at++ = '.';
	for (int32_t unit = 100000000; unit >= 1000; unit /= 10)
		*at++ = (char)('0' + t.nanos / unit % 10);
	return end_with_z(out, at);
}

/* Two digits after that character. */
static bool take_two(str *s, char before, unsigned *ret)
{
	if (s->n < 3 || s->p[0] != before || !is_digit(*s, 1) || !is_digit(*s, 2))
		return false;
	*ret = (unsigned)(s->p[1] - '0') * 10 + (unsigned)(s->p[2] - '0');
	*s = str_skip(*s, 3);
	return true;
}

bool time_unformat(str text, struct timestamp *ret)
{
	struct civil c;
	size_t n = text.n && text.p[0] == '-';
	int32_t nanos = 0;

	while (is_digit(text, n))
		n++;
	str s = str_skip(text, n);
	if (n < 4 || n > 13 || !str_to_i64(str_head(text, n), &c.year))
		return false;
	if (!take_two(&s, '-', &c.month) || !take_two(&s, '-', &c.day) || !take_two(&s, 'T', &c.hour) ||
	    !take_two(&s, ':', &c.minute) || !take_two(&s, ':', &c.second))
		return false;
	if (s.n == 8 && s.p[0] == '.') {
		for (size_t i = 1; i < 7; i++)
			if (!is_digit(s, i))
				return false;
		nanos = fraction_nanos(str_span(s.p + 1, 6));
		s = str_skip(s, 7);
	}
	if (!str_eq(s, STR("Z")) || c.month < 1 || c.month > 12 || c.day < 1 || c.day > days_in(c.year, c.month) || c.hour > 23 ||
	    c.minute > 59 || c.second > 59)
		return false;
	*ret = (struct timestamp){ .seconds = civil_to_seconds(&c), .nanos = nanos };
	return true;
}

/* ---- durations ---- */

static const struct unit {
	str name;
	uint64_t ns;
} units[] = {
	{ STR_INIT("ns"), 1 },
	{ STR_INIT("us"), 1000 },
	{ STR_INIT("\xc2\xb5s"), 1000 }, /* micro sign */
	{ STR_INIT("\xce\xbcs"), 1000 }, /* Greek mu */
	{ STR_INIT("ms"), 1000000 },
	{ STR_INIT("s"), 1000000000 },
	{ STR_INIT("m"), 60000000000 },
	{ STR_INIT("h"), 3600000000000 },
};

#define DURATION_LIMIT (UINT64_C(1) << 63)

static int duration_invalid(str text, struct err *err)
{
	char quoted[QUOTE_MAX];
	return err_set(err, ERR_BAD_REQUEST, "time: invalid duration %s", quote(text, quoted));
}

static bool take_integer(str *s, uint64_t *ret)
{
	uint64_t v = 0;
	for (; is_digit(*s, 0); *s = str_skip(*s, 1)) {
		if (v > DURATION_LIMIT / 10)
			return false;
		v = v * 10 + (uint64_t)(s->p[0] - '0');
		if (v > DURATION_LIMIT)
			return false;
	}
	*ret = v;
	return true;
}

/* Digits that would not fit change nothing, in value or scale. */
static void take_fraction(str *s, uint64_t *ret, double *ret_scale)
{
	bool full = false;
	*ret = 0;
	*ret_scale = 1;
	for (; is_digit(*s, 0); *s = str_skip(*s, 1)) {
		uint64_t more = *ret * 10 + (uint64_t)(s->p[0] - '0');
		full = full || *ret > (DURATION_LIMIT - 1) / 10 || more > DURATION_LIMIT;
		if (!full) {
			*ret = more;
			*ret_scale *= 10;
		}
	}
}

static int take_unit(str *s, str text, uint64_t *ret, struct err *err)
{
	char name[QUOTE_MAX], quoted[QUOTE_MAX];
	size_t n = 0;
	while (n < s->n && s->p[n] != '.' && !is_digit(*s, n))
		n++;
	if (n == 0)
		return err_set(err, ERR_BAD_REQUEST, "time: missing unit in duration %s", quote(text, quoted));
	str unit = str_head(*s, n);
	*s = str_skip(*s, n);
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (str_eq(unit, units[i].name)) {
			*ret = units[i].ns;
			return 0;
		}
	}
	return err_set(err, ERR_BAD_REQUEST, "time: unknown unit %s in duration %s", quote(unit, name), quote(text, quoted));
}

/* One number with its unit, in nanoseconds. */
static int take_part(str *s, str text, uint64_t *ret, struct err *err)
{
	uint64_t v, fraction = 0, unit;
	double scale = 1;
	size_t before = s->n;

	if (!take_integer(s, &v))
		return duration_invalid(text, err);
	bool digits = s->n != before;
	if (s->n && s->p[0] == '.') {
		*s = str_skip(*s, 1);
		before = s->n;
		take_fraction(s, &fraction, &scale);
		digits |= s->n != before;
	}
	if (!digits)
		return duration_invalid(text, err);
	int r = take_unit(s, text, &unit, err);
	if (r < 0)
		return r;
	if (v > DURATION_LIMIT / unit)
		return duration_invalid(text, err);
	/* In floating point, with its rounding, because Go does so. */
	*ret = v * unit + (uint64_t)((double)fraction * ((double)unit / scale));
	return 0;
}

int duration_parse(str text, int64_t *ret_ns, struct err *err)
{
	str s = text;
	uint64_t sum = 0, part = 0;
	bool negative = s.n && s.p[0] == '-';

	if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
		s = str_skip(s, 1);
	if (s.n == 0)
		return duration_invalid(text, err);
	if (str_eq(s, STR("0"))) {
		*ret_ns = 0;
		return 0;
	}
	while (s.n) {
		int r = take_part(&s, text, &part, err);
		if (r < 0)
			return r;
		sum += part;
		if (part > DURATION_LIMIT || sum > DURATION_LIMIT)
			return duration_invalid(text, err);
	}
	if (sum == DURATION_LIMIT && !negative)
		return duration_invalid(text, err);
	*ret_ns = negative ? (int64_t)-sum : (int64_t)sum;
	return 0;
}

/* Writes value / 10^places before at, without zeros at the end of the fraction; returns the beginning. */
static char *put_decimal(char *at, uint64_t value, unsigned places)
{
	bool fraction = false;
	for (unsigned i = 0; i < places; i++, value /= 10) {
		fraction |= value % 10 != 0;
		if (fraction)
			*--at = (char)('0' + value % 10);
	}
	if (fraction)
		*--at = '.';
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	return at;
}

str duration_format(int64_t ns, char out[DURATION_TEXT_MAX])
{
	uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	char *end = out + DURATION_TEXT_MAX - 1, *at = end;

	*at = '\0';
	*--at = 's';
	if (v == 0) {
		*--at = '0';
	} else if (v < 1000) {
		*--at = 'n';
		at = put_decimal(at, v, 0);
	} else if (v < 1000000) {
		at -= 2;
		memcpy(at, "\xc2\xb5", 2);
		at = put_decimal(at, v, 3);
	} else if (v < 1000000000) {
		*--at = 'm';
		at = put_decimal(at, v, 6);
	} else {
		at = put_decimal(at, v % 60000000000, 9);
		uint64_t minutes = v / 60000000000;
		if (minutes) {
			*--at = 'm';
			at = put_decimal(at, minutes % 60, 0);
		}
		if (minutes >= 60) {
			*--at = 'h';
			at = put_decimal(at, minutes / 60, 0);
		}
	}
	if (ns < 0)
		*--at = '-';
	size_t n = (size_t)(end - at);
	memmove(out, at, n + 1);
	return str_span(out, n);
}

PRINTF_LIKE(2, 3) static str print(char out[DURATION_TEXT_MAX], const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(out, DURATION_TEXT_MAX, fmt, ap);
	va_end(ap);
	return str_span(out, (size_t)n);
}

/* "2d3h", or "2d" when there is no rest. */
static str print_two(char out[DURATION_TEXT_MAX], int64_t big, char big_unit, int64_t rest, char rest_unit)
{
	if (rest == 0)
		return print(out, "%lld%c", (long long)big, big_unit);
	return print(out, "%lld%c%lld%c", (long long)big, big_unit, (long long)rest, rest_unit);
}

str duration_human(int64_t ns, char out[DURATION_TEXT_MAX])
{
	int64_t seconds = ns / 1000000000, minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

	/* Clocks of two machines may differ a little. */
	if (seconds < -1)
		return print(out, "<invalid>");
	if (seconds < 0)
		return print(out, "0s");
	if (seconds < 120)
		return print_two(out, seconds, 's', 0, 0);
	if (minutes < 10)
		return print_two(out, minutes, 'm', seconds % 60, 's');
	if (minutes < 180)
		return print_two(out, minutes, 'm', 0, 0);
	if (hours < 8)
		return print_two(out, hours, 'h', minutes % 60, 'm');
	if (hours < 48)
		return print_two(out, hours, 'h', 0, 0);
	if (days < 8)
		return print_two(out, days, 'd', hours % 24, 'h');
	if (days < 365 * 2)
		return print_two(out, days, 'd', 0, 0);
	if (days < 365 * 8)
		return print_two(out, days / 365, 'y', days % 365, 'd');
	return print_two(out, days / 365, 'y', 0, 0);
}

int64_t time_between(struct timestamp from, struct timestamp to)
{
	int64_t seconds, ns;

	if (__builtin_sub_overflow(to.seconds, from.seconds, &seconds))
		return to.seconds > from.seconds ? INT64_MAX : INT64_MIN;
	if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &ns) || __builtin_add_overflow(ns, (int64_t)to.nanos - from.nanos, &ns))
		return seconds > 0 ? INT64_MAX : INT64_MIN;
	return ns;
}
