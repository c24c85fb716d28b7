#include "scheduler/fit_error.h"

#include <stdlib.h>

void fit_error_init(struct fit_error *e, struct arena *a)
{
	*e = (struct fit_error){ .arena = a };
}

/* Beyond the maximum (each text is different) the rest counts under the last one. */
static void add_one(struct fit_error *e, str reason, uint32_t n)
{
	size_t i;

	if (e->n && e->reasons[e->last].text.p == reason.p && e->reasons[e->last].text.n == reason.n) {
		e->reasons[e->last].n += n;
		return;
	}
	for (i = 0; i < e->n && !str_eq(e->reasons[i].text, reason); i++)
		;
	if (!e->reasons)
		e->reasons = ARENA_ARRAY(e->arena, struct fit_reason, FIT_REASONS_MAX);
	if (i == FIT_REASONS_MAX)
		i--;
	if (i == e->n)
		e->reasons[e->n++] = (struct fit_reason){ reason, 0 };
	e->reasons[i].n += n;
	e->last = i;
}

static void count(struct fit_error *e)
{
	str reason = e->same, one;

	for (bool more = e->n_same > 0; more;) {
		more = str_cut(reason, '\n', &one, &reason);
		if (one.n)
			add_one(e, one, e->n_same);
	}
	e->n_same = 0;
}

void fit_error_add(struct fit_error *e, str reason, uint32_t n)
{
	if (reason.p != e->same.p || reason.n != e->same.n) {
		count(e);
		e->same = reason;
	}
	e->n_same += n;
}

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* " 1 Insufficient cpu, 2 Too many pods.", sorted as texts: 10 comes before 2. */
static str reasons_text(const struct fit_error *e)
{
	str *texts = ARENA_ARRAY(e->arena, str, e->n + 1), all = STR("");

	for (size_t i = 0; i < e->n; i++)
		texts[i] = arena_printf(e->arena, "%u " STR_FMT, e->reasons[i].n, STR_ARG(e->reasons[i].text));
	qsort(texts, e->n, sizeof(*texts), by_text);
	for (size_t i = 0; i < e->n; i++)
		all = arena_printf(e->arena, STR_FMT "%s" STR_FMT, STR_ARG(all), i ? ", " : " ", STR_ARG(texts[i]));
	return e->n ? arena_join(e->arena, all, STR(".")) : all;
}

str fit_error_text(struct fit_error *e, uint32_t n_nodes, str pre_filter, str post_filter)
{
	count(e);
	str middle = pre_filter.n ? arena_printf(e->arena, " " STR_FMT ".", STR_ARG(pre_filter)) : reasons_text(e);

	return arena_printf(e->arena, "0/%u nodes are available:" STR_FMT "%s" STR_FMT, n_nodes, STR_ARG(middle), post_filter.n ? " " : "",
			    STR_ARG(post_filter));
}
