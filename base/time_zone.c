/*
 * TZif (RFC 9636): a header, a block with 32-bit times, the same again with 64-bit times, and a line with the rule for later times, in the form of
 * the TZ variable of POSIX: CET-1CEST,M3.5.0,M10.5.0/3.
 */
#include "base/time_zone.h"

#include <errno.h>

#include "base/file.h"

enum { FILE_MAX = 1 << 20, HEADER = 44, ZONE_NAME_MAX = 255, DAY = 86400 };

/* When a rule switches: month, week (5: the last) and weekday; or a day of the year. */
struct rule_date {
	char form;                /* 'M', 'J' (1 to 365, never February 29), 'n' (0 to 365) */
	int month, week, weekday, day;
	int64_t time;             /* seconds after midnight */
};

struct rule {
	bool known, has_summer;
	int64_t offset, summer_offset;
	struct rule_date from, to; /* of summer time */
};

struct time_zone {
	size_t n;
	int64_t *at;              /* n moments, in order */
	int64_t *offset;          /* from then on */
	int64_t first_offset;     /* before the first */
	struct rule rule;         /* after the last */
};

/* ---- the rule ---- */

static bool take(str *s, char c)
{
	if (!s->n || s->p[0] != c)
		return false;
	*s = str_skip(*s, 1);
	return true;
}

static bool take_number(str *s, int max, int *ret)
{
	size_t n = 0;
	int v = 0;
	while (n < s->n && n < 4 && s->p[n] >= '0' && s->p[n] <= '9')
		v = v * 10 + (s->p[n++] - '0');
	*s = str_skip(*s, n);
	*ret = v;
	return n && v <= max;
}

/* hh[:mm[:ss]] with a sign before it. */
static bool take_time(str *s, int64_t *ret)
{
	int h, m = 0, sec = 0;
	bool negative = take(s, '-');
	if (!negative)
		take(s, '+');
	if (!take_number(s, 167, &h) || (take(s, ':') && (!take_number(s, 59, &m) || (take(s, ':') && !take_number(s, 59, &sec)))))
		return false;
	*ret = (int64_t)h * 3600 + m * 60 + sec;
	if (negative)
		*ret = -*ret;
	return true;
}

static bool take_name(str *s)
{
	size_t n = 0;
	if (take(s, '<')) {
		while (n < s->n && s->p[n] != '>')
			n++;
		*s = str_skip(*s, n);
		return take(s, '>');
	}
	while (n < s->n && ((s->p[n] | 32) >= 'a' && (s->p[n] | 32) <= 'z'))
		n++;
	*s = str_skip(*s, n);
	return n >= 3;
}

static bool take_date(str *s, struct rule_date *ret)
{
	*ret = (struct rule_date){ .form = 'n', .time = 7200 };
	if (take(s, 'M')) {
		ret->form = 'M';
		if (!take_number(s, 12, &ret->month) || !take(s, '.') || !take_number(s, 5, &ret->week) || !take(s, '.') ||
		    !take_number(s, 6, &ret->weekday) || !ret->month || !ret->week)
			return false;
	} else {
		if (take(s, 'J'))
			ret->form = 'J';
		if (!take_number(s, 365, &ret->day))
			return false;
	}
	return !take(s, '/') || take_time(s, &ret->time);
}

static void rule_parse(str s, struct rule *ret)
{
	struct rule r = { 0 };

	if (!take_name(&s) || !take_time(&s, &r.offset))
		return;
	r.offset = -r.offset; /* POSIX counts westwards */
	r.known = true;
	if (s.n) {
		if (!take_name(&s))
			return;
		r.has_summer = true;
		r.summer_offset = r.offset + 3600;
		if (s.n && s.p[0] != ',') {
			if (!take_time(&s, &r.summer_offset))
				return;
			r.summer_offset = -r.summer_offset;
		}
		if (!take(&s, ',') || !take_date(&s, &r.from) || !take(&s, ',') || !take_date(&s, &r.to))
			return;
	}
	*ret = r;
}

static bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

/* Local seconds since 1970 at which the rule switches in that year, in the clocks that are in force before. */
static int64_t date_seconds(const struct rule_date *d, int64_t year)
{
	struct civil c = { .year = year, .month = 1, .day = 1 };

	if (d->form != 'M') {
		int64_t day = d->form == 'J' ? d->day - 1 + (is_leap(year) && d->day >= 60) : d->day;
		return civil_to_seconds(&c) + day * DAY + d->time;
	}
	c.month = (unsigned)d->month;
	int64_t first = civil_to_seconds(&c) / DAY;
	int weekday = (int)(((first + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
	int64_t day = first + (d->weekday - weekday + 7) % 7 + (int64_t)(d->week - 1) * 7;
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int length = days[d->month - 1] + (d->month == 2 && is_leap(year));
	while (day >= first + length)
		day -= 7;
	return day * DAY + d->time;
}

static int64_t rule_offset(const struct rule *r, int64_t seconds)
{
	if (!r->has_summer)
		return r->offset;
	int64_t year = civil_of_seconds(seconds + r->offset).year;
	int64_t from = date_seconds(&r->from, year) - r->offset, to = date_seconds(&r->to, year) - r->summer_offset;
	bool summer = from < to ? seconds >= from && seconds < to : seconds >= from || seconds < to;
	return summer ? r->summer_offset : r->offset;
}

/* ---- the file ---- */

static int64_t big_endian(const char *p, size_t n)
{
	uint64_t v = 0;
	for (size_t i = 0; i < n; i++)
		v = v << 8 | (unsigned char)p[i];
	return n == 4 ? (int32_t)(uint32_t)v : (int64_t)v;
}

struct block {
	size_t n_times, n_types, n_chars, n_leaps, n_std, n_ut, size;
	const char *body;
};

static bool block_open(str file, size_t at, size_t time_size, struct block *ret)
{
	size_t n[6];

	if (file.n < at + HEADER || memcmp(file.p + at, "TZif", 4) != 0)
		return false;
	for (size_t i = 0; i < 6; i++) {
		n[i] = (size_t)(uint32_t)big_endian(file.p + at + 20 + 4 * i, 4);
		if (n[i] > FILE_MAX)
			return false;
	}
	*ret = (struct block){ .n_ut = n[0], .n_std = n[1], .n_leaps = n[2], .n_times = n[3], .n_types = n[4], .n_chars = n[5] };
	ret->body = file.p + at + HEADER;
	ret->size = HEADER + ret->n_times * (time_size + 1) + ret->n_types * 6 + ret->n_chars + ret->n_leaps * (time_size + 4) + ret->n_std +
		    ret->n_ut;
	return ret->n_types && file.n - at >= ret->size;
}

int time_zone_parse(struct arena *a, str file, const struct time_zone **ret, struct err *err)
{
	struct block b;
	size_t time_size = 4, at = 0;

	if (!block_open(file, 0, 4, &b))
		return err_set(err, ERR_BAD_REQUEST, "malformed time zone information");
	if (file.p[4] >= '2') {
		at = b.size;
		time_size = 8;
		if (!block_open(file, at, 8, &b))
			return err_set(err, ERR_BAD_REQUEST, "malformed time zone information");
	}
	struct time_zone *z = ARENA_NEW(a, struct time_zone);
	const char *types = b.body + b.n_times * time_size, *infos = types + b.n_times;
	z->at = ARENA_ARRAY(a, int64_t, b.n_times + 1);
	z->offset = ARENA_ARRAY(a, int64_t, b.n_times + 1);
	for (; z->n < b.n_times; z->n++) {
		size_t type = (unsigned char)types[z->n];
		if (type >= b.n_types)
			return err_set(err, ERR_BAD_REQUEST, "malformed time zone information");
		z->at[z->n] = big_endian(b.body + z->n * time_size, time_size);
		z->offset[z->n] = big_endian(infos + 6 * type, 4);
	}
	z->first_offset = big_endian(infos, 4);
	str rest = str_skip(file, at + b.size), line;
	if (time_size == 8 && take(&rest, '\n') && str_cut(rest, '\n', &line, &rest))
		rule_parse(line, &z->rule);
	*ret = z;
	return 0;
}

static const char *const folders[] = { "/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo" };

static bool is_name(str name)
{
	return name.n && name.p[0] != '/' && name.p[0] != '\\' && str_find(name, STR("..")) < 0;
}

/* (blocks) The first file of this name that can be read; -ERR_NOT_FOUND, or what the system says of one that is there. */
static int zone_read(str name, struct buf *ret, struct err *err)
{
	char path[ZONE_NAME_MAX + 64];
	int result = -ERR_NOT_FOUND;

	for (size_t i = 0; i < ARRAY_LEN(folders) && name.n <= ZONE_NAME_MAX && !memchr(name.p, '\0', name.n); i++) {
		struct err why = ERR_INIT;
		snprintf(path, sizeof(path), "%s/" STR_FMT, folders[i], STR_ARG(name));
		buf_reset(ret);
		int r = file_read(path, ret, &why);
		if (r == 0)
			return 0;
		if (why.sys == EISDIR && result == -ERR_NOT_FOUND)
			result = err_set(err, ERR_SYSTEM, "is a directory");
	}
	return result == -ERR_NOT_FOUND ? err_set(err, ERR_NOT_FOUND, "unknown time zone " STR_FMT, STR_ARG(name)) : result;
}

int time_zone_load(struct arena *a, str name, const struct time_zone **ret, struct err *err)
{
	static const struct time_zone utc;
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);

	*ret = &utc;
	if (!name.n || str_eq(name, STR("UTC")))
		return 0;
	if (str_eq(name, STR("Local")))
		return file_read("/etc/localtime", &b, NULL) < 0 ? 0 : time_zone_parse(a, buf_str(&b), ret, err);
	if (!is_name(name))
		return err_set(err, ERR_NOT_FOUND, "time: invalid location name");
	int r = zone_read(name, &b, err);
	return r < 0 ? r : time_zone_parse(a, buf_str(&b), ret, err);
}

bool time_zone_exists(str name)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);

	if (name.n == 0 || str_eq(name, STR("UTC")) || str_eq(name, STR("Local")))
		return true;
	return is_name(name) && zone_read(name, &b, NULL) == 0 && str_starts(buf_str(&b), STR("TZif"));
}

/* ---- asking ---- */

int64_t time_zone_offset(const struct time_zone *z, int64_t seconds)
{
	size_t low = 0, high = z->n;

	if (z->rule.known && (!z->n || seconds >= z->at[z->n - 1]))
		return rule_offset(&z->rule, seconds);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (z->at[middle] <= seconds)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? z->offset[low - 1] : z->first_offset;
}

struct civil time_zone_civil(const struct time_zone *z, int64_t seconds) { return civil_of_seconds(seconds + time_zone_offset(z, seconds)); }

int64_t time_zone_seconds(const struct time_zone *z, const struct civil *c)
{
	int64_t local = civil_to_seconds(c);
	return local - time_zone_offset(z, local - time_zone_offset(z, local));
}
