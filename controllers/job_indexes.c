#include "controllers/job_indexes.h"

#include <stdlib.h>

#include "base/buf.h"

enum { TEXT_MAX = 1 << 20 };

/* Adds an interval that does not begin before the last one; touching ones become one. */
static void append(struct job_indexes *x, struct job_interval add)
{
	struct job_interval *last = x->n ? &x->v[x->n - 1] : NULL;
	if (!last || add.first > last->last + 1)
		x->v[x->n++] = add;
	else if (last->last < add.last)
		last->last = add.last;
}

static bool interval_parse(str text, int64_t completions, struct job_interval *ret)
{
	str first, last;
	bool two = str_cut(text, '-', &first, &last);
	if (!str_to_i64(first, &ret->first) || (two && !str_to_i64(last, &ret->last)))
		return false;
	if (!two)
		ret->last = ret->first;
	ret->last = MIN(ret->last, completions - 1);
	return ret->first <= ret->last;
}

struct job_indexes job_indexes_parse(struct arena *a, str text, int64_t completions)
{
	size_t room = 1;
	struct job_interval part;

	for (size_t i = 0; i < text.n; i++)
		room += text.p[i] == ',';
	struct job_indexes x = { ARENA_ARRAY(a, struct job_interval, room), 0 };
	for (str head, rest = text; rest.n;) {
		str_cut(rest, ',', &head, &rest);
		if (interval_parse(head, completions, &part) && (x.n == 0 || part.first > x.v[x.n - 1].last))
			append(&x, part);
	}
	return x;
}

str job_indexes_text(struct arena *a, const struct job_indexes *x)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	for (size_t i = 0; i < x->n; i++) {
		struct job_interval v = x->v[i];
		buf_addf(&b, "%s%lld", i ? "," : "", (long long)v.first);
		if (v.last > v.first)
			buf_addf(&b, "%c%lld", v.last == v.first + 1 ? ',' : '-', (long long)v.last);
	}
	return arena_str(a, buf_str(&b));
}

static int by_number(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return a < b ? -1 : a > b;
}

struct job_indexes job_indexes_with(struct arena *a, const struct job_indexes *x, const int64_t *more, size_t n)
{
	int64_t *sorted = ARENA_ARRAY(a, int64_t, n + 1);
	struct job_indexes y = { ARENA_ARRAY(a, struct job_interval, n + 1), 0 };

	if (n) {
		memcpy(sorted, more, n * sizeof(*more));
		qsort(sorted, n, sizeof(*sorted), by_number);
	}
	for (size_t i = 0; i < n; i++)
		append(&y, (struct job_interval){ sorted[i], sorted[i] });
	return job_indexes_merge(a, x, &y);
}

struct job_indexes job_indexes_merge(struct arena *a, const struct job_indexes *x, const struct job_indexes *y)
{
	struct job_indexes all = { ARENA_ARRAY(a, struct job_interval, x->n + y->n + 1), 0 };
	size_t i = 0, j = 0;

	while (i < x->n || j < y->n) {
		bool from_x = j == y->n || (i < x->n && x->v[i].first < y->v[j].first);
		append(&all, from_x ? x->v[i] : y->v[j]);
		*(from_x ? &i : &j) += 1;
	}
	return all;
}

int64_t job_indexes_total(const struct job_indexes *x)
{
	int64_t total = 0;
	for (size_t i = 0; i < x->n; i++)
		total += x->v[i].last - x->v[i].first + 1;
	return total;
}

bool job_indexes_has(const struct job_indexes *x, int64_t index)
{
	size_t low = 0, high = x->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (x->v[middle].last < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low < x->n && x->v[low].first <= index;
}

int64_t job_indexes_common(const struct job_indexes *x, const struct job_indexes *y)
{
	int64_t common = 0;
	for (size_t i = 0, j = 0; i < x->n && j < y->n;) {
		int64_t first = MAX(x->v[i].first, y->v[j].first), last = MIN(x->v[i].last, y->v[j].last);
		common += last >= first ? last - first + 1 : 0;
		*(x->v[i].last < y->v[j].last ? &i : &j) += 1;
	}
	return common;
}

size_t job_indexes_missing(const struct job_indexes *x, int64_t completions, size_t max, int64_t *ret)
{
	size_t n = 0, i = 0;
	for (int64_t at = 0; at < completions && n < max;) {
		if (i < x->n && at >= x->v[i].first) {
			at = x->v[i++].last + 1;
			continue;
		}
		ret[n++] = at++;
	}
	return n;
}
