#include "machinery/cron.h"

#include "base/buf.h"
#include "base/time_zone.h"
#include "codec/time.h"

enum { FIELDS = 5, MESSAGE_MAX = 400 };

struct bounds {
	unsigned min, max;
	const char (*names)[4]; /* of min, min + 1, ...; NULL: none */
};

static const char month_names[][4] = { "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec" };
static const char day_names[][4] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };

static const struct bounds bounds[FIELDS] =
	{ { 0, 59, NULL }, { 0, 23, NULL }, { 1, 31, NULL }, { 1, 12, month_names }, { 0, 6, day_names } };

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int parse_number(str text, unsigned *ret, struct err *err)
{
	str digits = str_starts(text, STR("+")) ? str_skip(text, 1) : text,
		rest = str_starts(digits, STR("-")) ? str_skip(digits, 1) : digits;
	int64_t n;
	bool number = rest.n > 0 && !(digits.n < text.n && rest.n < digits.n);

	for (size_t i = 0; i < rest.n; i++)
		number &= rest.p[i] >= '0' && rest.p[i] <= '9';
	if (!number || !str_to_i64(digits, &n))
		return err_set(err, ERR_BAD_REQUEST, "failed to parse int from " STR_FMT ": strconv.Atoi: parsing \""
			       STR_FMT "\": %s", STR_ARG(text), STR_ARG(text), number ? "value out of range" : "invalid syntax");
	if (n < 0)
		return err_set(err, ERR_BAD_REQUEST, "negative number (%lld) not allowed: " STR_FMT, (long long)n,
			       STR_ARG(text));
	*ret = n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
	return 0;
}

static int parse_number_or_name(str text, const struct bounds *b, unsigned *ret, struct err *err)
{
	if (b->names && text.n == 3)
		for (unsigned i = 0; i <= b->max - b->min; i++)
			if ((text.p[0] | 0x20) == b->names[i][0] && (text.p[1] | 0x20) == b->names[i][1] &&
			    (text.p[2] | 0x20) == b->names[i][2]) {
				*ret = b->min + i;
				return 0;
			}
	return parse_number(text, ret, err);
}

struct range {
	unsigned start, end, step;
	bool star;
};

static int parse_ends(str text, str expr, const struct bounds *b, struct range *ret, struct err *err)
{
	str low, high;
	bool two = str_cut(text, '-', &low, &high);
	int r;

	if (str_eq(low, STR("*")) || str_eq(low, STR("?"))) {
		*ret = (struct range){ b->min, b->max, 1, true };
		return 0;
	}
	if ((r = parse_number_or_name(low, b, &ret->start, err)) < 0)
		return r;
	ret->end = ret->start;
	if (two && str_chr(high, '-') >= 0)
		return err_set(err, ERR_BAD_REQUEST, "too many hyphens: " STR_FMT, STR_ARG(expr));
	return two ? parse_number_or_name(high, b, &ret->end, err) : 0;
}

static int check_range(const struct range *g, str expr, const struct bounds *b, struct err *err)
{
	if (g->start < b->min)
		return err_set(err, ERR_BAD_REQUEST, "beginning of range (%u) below minimum (%u): " STR_FMT, g->start,
			       b->min, STR_ARG(expr));
	if (g->end > b->max)
		return err_set(err, ERR_BAD_REQUEST, "end of range (%u) above maximum (%u): " STR_FMT, g->end, b->max,
			       STR_ARG(expr));
	if (g->start > g->end)
		return err_set(err, ERR_BAD_REQUEST, "beginning of range (%u) beyond end of range (%u): " STR_FMT,
			       g->start, g->end, STR_ARG(expr));
	if (g->step == 0)
		return err_set(err, ERR_BAD_REQUEST, "step of range should be a positive number: " STR_FMT, STR_ARG(expr));
	return 0;
}

/* number | number-number, with "/step" after it or not. */
static int parse_range(str expr, const struct bounds *b, uint64_t *bits, struct err *err)
{
	struct range g = { .step = 1 };
	str ends, step;
	bool stepped = str_cut(expr, '/', &ends, &step);
	int r = parse_ends(ends, expr, b, &g, err);

	if (r < 0)
		return r;
	if (stepped) {
		if (str_chr(step, '/') >= 0)
			return err_set(err, ERR_BAD_REQUEST, "too many slashes: " STR_FMT, STR_ARG(expr));
		if ((r = parse_number(step, &g.step, err)) < 0)
			return r;
		if (str_chr(ends, '-') < 0)
			g.end = b->max;
		g.star &= g.step <= 1;
	}
	if ((r = check_range(&g, expr, b, err)) < 0)
		return r;
	for (unsigned i = g.start; i <= g.end; i += MIN(g.step, 64u))
		*bits |= UINT64_C(1) << i;
	if (g.star)
		*bits |= CRON_STAR;
	return 0;
}

static int parse_field(str text, const struct bounds *b, uint64_t *ret, struct err *err)
{
	*ret = 0;
	for (str expr; text.n;) {
		str_cut(text, ',', &expr, &text);
		int r = expr.n ? parse_range(expr, b, ret, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* The fields as Go prints a list: [a b c]. */
static int wrong_count(str text, unsigned n, struct err *err)
{
	char list[MESSAGE_MAX];
	size_t k = 0;

	for (size_t i = 0; i < text.n && k < sizeof(list) - 1; i++)
		if (!is_space(text.p[i]))
			list[k++] = text.p[i];
		else if (k && list[k - 1] != ' ')
			list[k++] = ' ';
	while (k && list[k - 1] == ' ')
		k--;
	return err_set(err, ERR_BAD_REQUEST, "expected exactly 5 fields, found %u: [" STR_FMT "]", n,
		       STR_ARG(str_span(list, k)));
}

static unsigned split_fields(str text, str fields[FIELDS])
{
	unsigned n = 0;
	for (size_t i = 0; i < text.n;) {
		size_t from = i;
		while (i < text.n && !is_space(text.p[i]))
			i++;
		if (i > from && n++ < FIELDS)
			fields[n - 1] = str_span(text.p + from, i - from);
		i += i < text.n;
	}
	return n;
}

static int parse_descriptor(str text, struct cron *ret, struct err *err)
{
	static const struct {
		str name, fields;
	} known[] = {
		{ STR_INIT("@yearly"), STR_INIT("0 0 1 1 *") },  { STR_INIT("@annually"), STR_INIT("0 0 1 1 *") },
		{ STR_INIT("@monthly"), STR_INIT("0 0 1 * *") }, { STR_INIT("@weekly"), STR_INIT("0 0 * * 0") },
		{ STR_INIT("@daily"), STR_INIT("0 0 * * *") },   { STR_INIT("@midnight"), STR_INIT("0 0 * * *") },
		{ STR_INIT("@hourly"), STR_INIT("0 * * * *") },
	};
	enum { SECOND = 1000000000 };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(text, known[i].name)) {
			str zone = ret->time_zone;
			int r = cron_parse(known[i].fields, ret, err);
			ret->time_zone = zone;
			return r;
		}
	if (!str_starts(text, STR("@every ")))
		return err_set(err, ERR_BAD_REQUEST, "unrecognized descriptor: " STR_FMT, STR_ARG(text));
	if (duration_parse(str_skip(text, sizeof("@every ") - 1), &ret->every_ns, err) < 0) {
		struct err cause = *err;
		return err_set(err, ERR_BAD_REQUEST, "failed to parse duration " STR_FMT ": " STR_FMT, STR_ARG(text),
			       STR_ARG(err_str(&cause)));
	}
	ret->every_ns = ret->every_ns < SECOND ? SECOND : ret->every_ns - ret->every_ns % SECOND;
	return 0;
}

/* TZ=Europe/Berlin and what follows. */
static int take_zone(str *text, struct cron *ret, struct err *err)
{
	str head, rest, name;

	if (!str_starts(*text, STR("TZ=")) && !str_starts(*text, STR("CRON_TZ=")))
		return 0;
	str_cut(*text, '=', &head, &rest);
	if (!str_cut(rest, ' ', &name, text)) /* Kubernetes' parser breaks here, and it says how */
		return err_set(err, ERR_BAD_REQUEST,
			       "invalid schedule format: runtime error: slice bounds out of range [:-1]");
	if (!time_zone_exists(name))
		return err_set(err, ERR_BAD_REQUEST, "provided bad location " STR_FMT ": unknown time zone " STR_FMT,
			       STR_ARG(name), STR_ARG(name));
	ret->time_zone = name;
	*text = str_trim(*text);
	return 0;
}

int cron_parse(str text, struct cron *ret, struct err *err)
{
	struct err own = ERR_INIT;
	str fields[FIELDS];
	int r;

	err = err ? err : &own;
	*ret = (struct cron){ 0 };
	if (text.n == 0)
		return err_set(err, ERR_BAD_REQUEST, "empty spec string");
	if ((r = take_zone(&text, ret, err)) < 0)
		return r;
	if (str_starts(text, STR("@")))
		return parse_descriptor(text, ret, err);
	unsigned n = split_fields(text, fields);
	if (n != FIELDS)
		return wrong_count(text, n, err);
	uint64_t *out[FIELDS] = { &ret->minutes, &ret->hours, &ret->days, &ret->months, &ret->weekdays };
	for (unsigned i = 0; i < FIELDS; i++)
		if ((r = parse_field(fields[i], &bounds[i], out[i], err)) < 0)
			return r;
	return 0;
}
