/* Amounts by name: short lists in the order of names, so that any two are put together in one walk. */
#include <stdlib.h>

#include "apiserver/admission/resource_quota.h"
#include "base/buf.h"
#include "machinery/resources.h"

static int by_name(const void *x, const void *y)
{
	return str_cmp(((const struct quota_amount *)x)->name, ((const struct quota_amount *)y)->name);
}

void quota_amounts_sort(struct quota_amounts x)
{
	if (x.n > 1)
		qsort(x.list, x.n, sizeof *x.list, by_name);
}

struct quota_amounts quota_amounts_of(struct arena *a, struct val map)
{
	struct quota_amounts x = { ARENA_ARRAY(a, struct quota_amount, val_len(map)), 0 };
	VAL_EACH_MEMBER(m, val_sorted(a, map))
		x.list[x.n++] = (struct quota_amount){ atom_str(m->key), quantity_of(m->val) };
	return x;
}

struct val quota_amounts_map(struct arena *a, struct quota_amounts x)
{
	struct val_builder b = val_builder(a);
	char text[QUANTITY_TEXT_MAX];
	for (size_t i = 0; i < x.n; i++)
		val_add_member(&b, atom_make(a, x.list[i].name), val_of_str(arena_str(a, quantity_format(x.list[i].q, text))));
	return val_end_object(&b);
}

struct quota_amounts quota_amounts_copy(struct arena *a, struct quota_amounts x)
{
	struct quota_amounts copy = { ARENA_ARRAY(a, struct quota_amount, x.n), x.n };
	for (size_t i = 0; i < x.n; i++)
		copy.list[i] = (struct quota_amount){ arena_str(a, x.list[i].name), x.list[i].q };
	return copy;
}

struct quota_amount *quota_amount_find(struct quota_amounts x, str name)
{
	struct quota_amount key = { .name = name };
	return x.n ? bsearch(&key, x.list, x.n, sizeof key, by_name) : NULL;
}

static struct quantity put_together(struct quantity x, struct quantity y, enum quota_merge how)
{
	struct quantity less;
	switch (how) {
	case QUOTA_ADD: return quantity_add(x, y);
	case QUOTA_MAX: return quantity_cmp(y, x) > 0 ? y : x;
	case QUOTA_REPLACE: return y;
	case QUOTA_RAISE: return x.nanos ? quantity_add(x, y) : x;
	case QUOTA_LESS:
		less = quantity_sub(x, y);
		return less.nanos > 0 ? less : (struct quantity){ 0 };
	default: return x;
	}
}

/* One name that only one of the two has; false: it is left out. */
static bool alone(struct quantity *q, bool in_x, enum quota_merge how)
{
	if (how == QUOTA_MASK || (how == QUOTA_RAISE && !in_x))
		return false;
	if (how == QUOTA_LESS && (!in_x || q->nanos < 0))
		*q = (struct quantity){ 0 };
	return true;
}

struct quota_amounts quota_merge(struct arena *a, struct quota_amounts x, struct quota_amounts y, enum quota_merge how)
{
	struct quota_amounts sum = { ARENA_ARRAY(a, struct quota_amount, x.n + y.n), 0 };
	for (size_t i = 0, k = 0; i < x.n || k < y.n;) {
		int order = i == x.n ? 1 : k == y.n ? -1 : str_cmp(x.list[i].name, y.list[k].name);
		struct quota_amount next = order > 0 ? y.list[k] : x.list[i];
		bool kept = true;
		if (order == 0)
			next.q = put_together(next.q, y.list[k].q, how);
		else
			kept = alone(&next.q, order < 0, how);
		if (kept)
			sum.list[sum.n++] = next;
		i += order <= 0;
		k += order >= 0;
	}
	return sum;
}

struct quota_amounts quota_nonzero(struct arena *a, struct quota_amounts x)
{
	struct quota_amounts rest = { ARENA_ARRAY(a, struct quota_amount, x.n), 0 };
	for (size_t i = 0; i < x.n; i++)
		if (x.list[i].q.nanos)
			rest.list[rest.n++] = x.list[i];
	return rest;
}

enum { TEXT_MAX = 16 << 20 };

static str text_of(struct arena *a, struct quota_amounts x, bool with_amounts)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	char text[QUANTITY_TEXT_MAX];
	for (size_t i = 0; i < x.n; i++) {
		if (i)
			buf_add(&b, STR(","));
		buf_add(&b, x.list[i].name);
		if (with_amounts) {
			buf_add(&b, STR("="));
			buf_add(&b, quantity_format(x.list[i].q, text));
		}
	}
	return arena_str(a, buf_str(&b));
}

str quota_amounts_text(struct arena *a, struct quota_amounts x) { return text_of(a, x, true); }
str quota_names_text(struct arena *a, struct quota_amounts x) { return text_of(a, x, false); }
