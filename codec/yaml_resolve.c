#include "codec/yaml_resolve.h"

#include <math.h>

#include "codec/json_scan.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* ---- words ---- */

static bool one_of(str s, const char *const *words)
{
	for (; *words; words++)
		if (str_eq(s, str_of(*words)))
			return true;
	return false;
}

static bool resolve_word(str s, struct yaml_scalar *ret)
{
	static const char *const yes[] = { "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON",
					   NULL };
	static const char *const no[] = { "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF",
					  NULL };
	static const char *const null[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const nan_[] = { ".nan", ".NaN", ".NAN", NULL };
	static const char *const inf[] = { ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", NULL };
	static const char *const minus_inf[] = { "-.inf", "-.Inf", "-.INF", NULL };

	if (s.n > 5)
		return false;
	if (one_of(s, yes) || one_of(s, no))
		*ret = (struct yaml_scalar){ .kind = YAML_BOOL, .b = one_of(s, yes) };
	else if (one_of(s, null))
		*ret = (struct yaml_scalar){ .kind = YAML_NULL };
	else if (one_of(s, nan_))
		*ret = (struct yaml_scalar){ .kind = YAML_FLOAT, .d = NAN };
	else if (one_of(s, inf) || one_of(s, minus_inf))
		*ret = (struct yaml_scalar){ .kind = YAML_FLOAT, .d = one_of(s, inf) ? INFINITY : -INFINITY };
	else
		return false;
	return true;
}

/* ---- timestamps: strings all the same, but printed in quotes ---- */

/* One or two digits up to most; moves s behind them. */
static bool take_number(str *s, int least, int most, int *ret)
{
	int value = 0;
	size_t n = 0;

	while (n < 2 && n < s->n && is_digit(s->p[n]))
		value = value * 10 + (s->p[n++] - '0');
	*s = str_skip(*s, n);
	*ret = value;
	return n > 0 && value >= least && value <= most;
}

static bool take_char(str *s, char c)
{
	if (!s->n || s->p[0] != c)
		return false;
	*s = str_skip(*s, 1);
	return true;
}

static int days_of(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return month == 2 && leap ? 29 : days[month - 1];
}

/* Z, or +hh:mm with two digits each. */
static bool take_zone(str *s)
{
	int hour, minute;

	if (take_char(s, 'Z'))
		return true;
	if (s->n < 6 || (s->p[0] != '+' && s->p[0] != '-') || s->p[3] != ':' || !is_digit(s->p[2]) || !is_digit(s->p[5]))
		return false;
	str hours = str_span(s->p + 1, 2), minutes = str_span(s->p + 4, 2);
	*s = str_skip(*s, 6);
	return take_number(&hours, 0, 24, &hour) && !hours.n && take_number(&minutes, 0, 60, &minute) && !minutes.n;
}

static bool is_timestamp(str s)
{
	int year = 0, month, day, ignored;

	if (s.n < 5 || s.p[4] != '-')
		return false;
	for (int i = 0; i < 4; i++) {
		if (!is_digit(s.p[i]))
			return false;
		year = year * 10 + (s.p[i] - '0');
	}
	s = str_skip(s, 5);
	if (!take_number(&s, 1, 12, &month) || !take_char(&s, '-') || !take_number(&s, 1, days_of(year, month), &day))
		return false;
	if (!s.n)
		return true;
	bool zoned = take_char(&s, 'T') || take_char(&s, 't');
	if (!zoned && !take_char(&s, ' '))
		return false;
	if (!take_number(&s, 0, 23, &ignored) || !take_char(&s, ':') || !take_number(&s, 0, 59, &ignored) ||
	    !take_char(&s, ':') || !take_number(&s, 0, 59, &ignored))
		return false;
	if (s.n >= 2 && (s.p[0] == '.' || s.p[0] == ',') && is_digit(s.p[1]))
		for (s = str_skip(s, 1); s.n && is_digit(s.p[0]);)
			s = str_skip(s, 1);
	return (!zoned || take_zone(&s)) && !s.n;
}

/* ---- numbers ---- */

/* Digits of a base, all of s. */
static bool digits_value(str s, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned c = (unsigned char)s.p[i], digit = c - '0';
		if (c >= 'a' && c <= 'f')
			digit = c - 'a' + 10;
		else if (c >= 'A' && c <= 'F')
			digit = c - 'A' + 10;
		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return s.n > 0;
}

/* Go's ParseInt and ParseUint with base 0: 0x, 0o, 0b, and a plain 0 for octal. */
static bool resolve_integer(str s, struct yaml_scalar *ret)
{
	bool negative = s.n && s.p[0] == '-', sign = negative || (s.n && s.p[0] == '+');
	unsigned base = 10;
	uint64_t value;

	s = str_skip(s, sign);
	if (s.n > 1 && s.p[0] == '0') {
		char c = s.p[1] | 0x20;
		base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
		s = str_skip(s, c == 'x' || c == 'b' || c == 'o' ? 2 : 1);
	}
	/* Of "0b-1" Go's parser makes a number too. */
	if (base == 2 && !sign && s.n && (s.p[0] == '-' || s.p[0] == '+')) {
		negative = s.p[0] == '-';
		sign = true;
		s = str_skip(s, 1);
	}
	if (!digits_value(s, base, &value))
		return false;
	if (value <= (uint64_t)INT64_MAX + negative)
		*ret = (struct yaml_scalar){ .kind = YAML_INT, .i = (int64_t)(negative ? -value : value) };
	else if (!sign)
		*ret = (struct yaml_scalar){ .kind = YAML_UINT, .u = value };
	else
		return false;
	return true;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_float(str s)
{
	size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+'), whole = i, fraction;

	while (i < s.n && is_digit(s.p[i]))
		i++;
	whole = i - whole;
	fraction = 0;
	if (i < s.n && s.p[i] == '.')
		for (i++; i < s.n && is_digit(s.p[i]); i++)
			fraction++;
	if (!whole && !fraction)
		return false;
	if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
		size_t from;
		i++;
		i += i < s.n && (s.p[i] == '-' || s.p[i] == '+');
		for (from = i; i < s.n && is_digit(s.p[i]);)
			i++;
		if (i == from)
			return false;
	}
	return i == s.n;
}

static bool resolve_float(str s, struct yaml_scalar *ret)
{
	*ret = (struct yaml_scalar){ .kind = YAML_FLOAT };
	return is_float(s) && json_to_double(s, false, &ret->d);
}

/* Underscores between digits mean nothing. */
static str without_underscores(str s, char *room, size_t size)
{
	size_t n = 0;

	if (str_chr(s, '_') < 0 || s.n > size)
		return s;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != '_')
			room[n++] = s.p[i];
	return str_span(room, n);
}

/* Behind a leading point, underscores have to stand between digits. */
static bool resolve_fraction(str s, struct yaml_scalar *ret)
{
	char room[512];

	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '_' && (i + 1 == s.n || !is_digit(s.p[i - 1]) || !is_digit(s.p[i + 1])))
			return false;
	return resolve_float(without_underscores(s, room, sizeof(room)), ret);
}

/* With or without a look for timestamps: only untagged scalars are tried as such. */
static struct yaml_scalar resolve(str text, bool timestamps)
{
	struct yaml_scalar found = { .kind = YAML_STR };
	char first = text.n ? text.p[0] : 'n', room[512];

	if (!is_digit(first) && !memchr("+-.~yYnNtTfFoO", first, 14))
		return found;
	if (resolve_word(text, &found))
		return found;
	if (first == '.')
		return resolve_fraction(text, &found) ? found : (struct yaml_scalar){ .kind = YAML_STR };
	if (!is_digit(first) && first != '+' && first != '-')
		return found;
	if (timestamps && is_timestamp(text))
		return (struct yaml_scalar){ .kind = YAML_TIMESTAMP };
	str plain = without_underscores(text, room, sizeof(room));
	if (resolve_integer(plain, &found) || resolve_float(plain, &found))
		return found;
	return (struct yaml_scalar){ .kind = YAML_STR };
}

struct yaml_scalar yaml_resolve(str text) { return resolve(text, true); }

/* ---- tags ---- */

static const struct {
	enum yaml_kind kind;
	str name;
} tags[] = {
	{ YAML_STR, STR_INIT("str") }, { YAML_NULL, STR_INIT("null") }, { YAML_BOOL, STR_INIT("bool") },
	{ YAML_INT, STR_INIT("int") },
	{ YAML_UINT, STR_INIT("int") }, { YAML_FLOAT, STR_INIT("float") }, { YAML_TIMESTAMP, STR_INIT("timestamp") },
	{ YAML_BINARY, STR_INIT("binary") },
};

int yaml_resolve_tagged(str tag, str text, struct yaml_scalar *ret, struct err *err)
{
	str prefix = STR("tag:yaml.org,2002:"), name = str_starts(tag, prefix) ? str_skip(tag, prefix.n) : STR_NONE;
	int want = -1;

	for (size_t i = 0; i < ARRAY_LEN(tags) && want < 0; i++)
		if (str_eq(tags[i].name, name))
			want = (int)i;
	if (want < 0 || tags[want].kind == YAML_STR || tags[want].kind == YAML_BINARY) {
		*ret = tag.n ? (struct yaml_scalar){ .kind = want < 0 ? YAML_STR : tags[want].kind } : resolve(text, true);
		return 0;
	}
	*ret = resolve(text, tags[want].kind == YAML_TIMESTAMP);
	if (str_eq(tags[ret->kind].name, name))
		return 0;
	if (tags[want].kind == YAML_FLOAT && ret->kind == YAML_INT) {
		*ret = (struct yaml_scalar){ .kind = YAML_FLOAT, .d = (double)ret->i };
		return 0;
	}
	return err_set(err, ERR_BAD_REQUEST, "yaml: cannot decode !!" STR_FMT " `" STR_FMT "` as a !!" STR_FMT,
		       STR_ARG(tags[ret->kind].name), STR_ARG(text), STR_ARG(name));
}
