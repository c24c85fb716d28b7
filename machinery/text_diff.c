/*
 * Python's SequenceMatcher, since Kubernetes' messages are made with a port of it: the longest run of equal lines is
 * found, then the same on its left and on its right. Lines that make up more than a hundredth of a text of 200 lines or
 * more begin no run, they only extend one.
 */
#include "machinery/text_diff.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/map.h"

enum {
	CONTEXT = 3,
	POPULAR_FROM = 200,      /* lines */
	BUDGET = 20 << 20,       /* lines and pairs of lines that may be looked at */
	DIFF_MAX = 4 << 20,
};

struct text {
	const str *lines;
	const uint32_t *ids; /* equal lines have equal ids */
	uint32_t n;
};

struct match {
	uint32_t a, b, n;
};

struct range {
	uint32_t a0, a1, b0, b1;
};

struct matcher {
	struct arena *arena;
	struct text a, b;
	const uint32_t *first;   /* by id: where in places its places in b begin; [id + 1]: where they end */
	const uint32_t *places;
	/* length of the run that ends at a line of b, for the last and the current line of a; [j + 1] for line j */
	uint32_t *run[2];
	uint64_t budget;
};

enum tag { EQUAL, REPLACE, DELETE, INSERT };

struct opcode {
	enum tag tag;
	struct range at;
};

/*
 * Lines with their final newline, which the last one gets if it has none; a text that ends in one has an empty last
 * line.
 */
static uint32_t split(struct arena *a, str text, str **ret)
{
	uint32_t n = 1;
	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '\n';
	*ret = ARENA_ARRAY(a, str, n);
	for (uint32_t i = 0; i < n; i++) {
		str head;
		str_cut(text, '\n', &head, &text);
		(*ret)[i] = head;
	}
	return n;
}

static struct text read_text(struct arena *a, str text, struct map *known)
{
	str *lines;
	uint32_t n = split(a, text, &lines), *ids = ARENA_ARRAY(a, uint32_t, n);

	for (uint32_t i = 0; i < n; i++) {
		uintptr_t id = (uintptr_t)map_get(known, lines[i]);
		if (!id) {
			id = map_len(known) + 1;
			map_put(known, lines[i], (void *)id);
		}
		ids[i] = (uint32_t)id - 1;
	}
	return (struct text){ lines, ids, n };
}

/* Fills first and places: for every line, where it stands in b. Popular lines stand nowhere. */
static void index_lines(struct matcher *m, uint32_t n_ids)
{
	uint32_t *first = ARENA_ARRAY(m->arena, uint32_t, n_ids + 1), *places = ARENA_ARRAY(m->arena, uint32_t, m->b.n);
	uint32_t *count = ARENA_ARRAY(m->arena, uint32_t, n_ids);
	uint32_t limit = m->b.n >= POPULAR_FROM ? m->b.n / 100 + 1 : m->b.n, sum = 0;

	memset(count, 0, n_ids * sizeof(*count));
	for (uint32_t j = 0; j < m->b.n; j++)
		count[m->b.ids[j]]++;
	for (uint32_t id = 0; id < n_ids; id++) {
		first[id] = sum;
		sum += count[id] > limit ? 0 : count[id];
		count[id] = count[id] > limit ? UINT32_MAX : 0;
	}
	first[n_ids] = sum;
	for (uint32_t j = 0; j < m->b.n; j++) {
		uint32_t id = m->b.ids[j];
		if (count[id] != UINT32_MAX)
			places[first[id] + count[id]++] = j;
	}
	m->first = first;
	m->places = places;
}

static void clear_runs(struct matcher *m, uint32_t *run, uint32_t line)
{
	uint32_t id = m->a.ids[line], n = 1 + m->first[id + 1] - m->first[id];
	m->budget -= MIN(m->budget, (uint64_t)n);
	for (uint32_t k = m->first[id]; k < m->first[id + 1]; k++)
		run[m->places[k] + 1] = 0;
}

/* The longest run without popular lines at its start; the first in a, then in b, if several are equally long. */
static struct match longest_core(struct matcher *m, struct range r)
{
	struct match best = { r.a0, r.b0, 0 };

	for (uint32_t i = r.a0; i < r.a1; i++) {
		uint32_t id = m->a.ids[i], *last = m->run[i & 1], *now = m->run[~i & 1];
		for (uint32_t k = m->first[id]; k < m->first[id + 1] && m->places[k] < r.b1; k++) {
			uint32_t j = m->places[k];
			if (j < r.b0)
				continue;
			uint32_t n = last[j] + 1;
			now[j + 1] = n;
			if (n > best.n)
				best = (struct match){ i + 1 - n, j + 1 - n, n };
		}
		if (i > r.a0)
			clear_runs(m, last, i - 1);
	}
	if (r.a1 > r.a0)
		clear_runs(m, m->run[r.a1 & 1], r.a1 - 1);
	return best;
}

static struct match longest(struct matcher *m, struct range r)
{
	struct match best = longest_core(m, r);

	while (best.a > r.a0 && best.b > r.b0 && m->a.ids[best.a - 1] == m->b.ids[best.b - 1]) {
		best.a--;
		best.b--;
		best.n++;
	}
	while (best.a + best.n < r.a1 && best.b + best.n < r.b1 && m->a.ids[best.a + best.n] == m->b.ids[best.b + best.n])
		best.n++;
	return best;
}

static int match_cmp(const void *x, const void *y)
{
	uint32_t a = ((const struct match *)x)->a, b = ((const struct match *)y)->a;
	return (a > b) - (a < b);
}

/* All matches in order, adjacent ones as one, and an empty one at the end; NULL when the budget does not suffice. */
static struct match *all_matches(struct matcher *m, size_t *ret_n)
{
	/* Every match takes a line of both texts and leaves at most two ranges. */
	size_t max = MIN(m->a.n, m->b.n) + 1, n = 0, n_open = 0, kept = 0;
	struct match *found = ARENA_ARRAY(m->arena, struct match, max);
	struct range *open = ARENA_ARRAY(m->arena, struct range, max + 1);

	open[n_open++] = (struct range){ 0, m->a.n, 0, m->b.n };
	while (n_open) {
		struct range r = open[--n_open];
		struct match best = longest(m, r);
		if (m->budget == 0)
			return NULL;
		if (best.n == 0)
			continue;
		found[n++] = best;
		if (r.a0 < best.a && r.b0 < best.b)
			open[n_open++] = (struct range){ r.a0, best.a, r.b0, best.b };
		if (best.a + best.n < r.a1 && best.b + best.n < r.b1)
			open[n_open++] = (struct range){ best.a + best.n, r.a1, best.b + best.n, r.b1 };
	}
	qsort(found, n, sizeof(*found), match_cmp);
	for (size_t i = 0; i < n; i++) {
		struct match *last = kept ? &found[kept - 1] : NULL;
		if (last && last->a + last->n == found[i].a && last->b + last->n == found[i].b)
			last->n += found[i].n;
		else
			found[kept++] = found[i];
	}
	found[kept++] = (struct match){ m->a.n, m->b.n, 0 };
	*ret_n = kept;
	return found;
}

static size_t opcodes_of(struct arena *a, const struct match *matches, size_t n, struct opcode **ret)
{
	struct opcode *codes = ARENA_ARRAY(a, struct opcode, n * 2);
	uint32_t i = 0, j = 0;
	size_t k = 0;

	for (const struct match *m = matches; m < matches + n; m++) {
		if (i < m->a || j < m->b)
			codes[k++] = (struct opcode){ i < m->a && j < m->b ? REPLACE : i < m->a ? DELETE : INSERT,
						      { i, m->a, j, m->b } };
		i = m->a + m->n;
		j = m->b + m->n;
		if (m->n)
			codes[k++] = (struct opcode){ EQUAL, { m->a, i, m->b, j } };
	}
	*ret = codes;
	return k;
}

static void add_lines(struct buf *b, char sign, const struct text *t, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		buf_addf(b, "%c" STR_FMT "\n", sign, STR_ARG(t->lines[i]));
}

static void add_range(struct buf *b, char sign, uint32_t from, uint32_t to)
{
	if (to - from == 1)
		buf_addf(b, "%c%u ", sign, from + 1);
	else
		buf_addf(b, "%c%u,%u ", sign, from == to ? from : from + 1, to - from);
}

/* One hunk. */
static void add_group(struct buf *b, const struct matcher *m, const struct opcode *codes, size_t n)
{
	buf_add(b, STR("@@ "));
	add_range(b, '-', codes[0].at.a0, codes[n - 1].at.a1);
	add_range(b, '+', codes[0].at.b0, codes[n - 1].at.b1);
	buf_add(b, STR("@@\n"));
	for (const struct opcode *c = codes; c < codes + n; c++) {
		if (c->tag == EQUAL)
			add_lines(b, ' ', &m->a, c->at.a0, c->at.a1);
		if (c->tag == REPLACE || c->tag == DELETE)
			add_lines(b, '-', &m->a, c->at.a0, c->at.a1);
		if (c->tag == REPLACE || c->tag == INSERT)
			add_lines(b, '+', &m->b, c->at.b0, c->at.b1);
	}
}

static void cut_head(struct range *r)
{
	r->a0 = r->a1 - MIN(r->a1 - r->a0, (uint32_t)CONTEXT);
	r->b0 = r->b1 - MIN(r->b1 - r->b0, (uint32_t)CONTEXT);
}

static void cut_tail(struct range *r)
{
	r->a1 = r->a0 + MIN(r->a1 - r->a0, (uint32_t)CONTEXT);
	r->b1 = r->b0 + MIN(r->b1 - r->b0, (uint32_t)CONTEXT);
}

/* Equal parts longer than the context of both neighbours separate hunks. */
static void add_hunks(struct buf *b, const struct matcher *m, struct opcode *codes, size_t n)
{
	size_t from = 0;

	if (codes[0].tag == EQUAL)
		cut_head(&codes[0].at);
	if (codes[n - 1].tag == EQUAL)
		cut_tail(&codes[n - 1].at);
	for (size_t i = 0; i < n; i++) {
		if (codes[i].tag != EQUAL || codes[i].at.a1 - codes[i].at.a0 <= 2 * CONTEXT)
			continue;
		struct range whole = codes[i].at;
		cut_tail(&codes[i].at);
		add_group(b, m, codes + from, i + 1 - from);
		codes[i].at = whole;
		cut_head(&codes[i].at);
		from = i;
	}
	if (n - from > 1 || codes[from].tag != EQUAL)
		add_group(b, m, codes + from, n - from);
}

str text_diff(struct arena *a, str before, str after)
{
	CLEANUP(map_done) struct map known = MAP_INIT;
	CLEANUP(buf_done) struct buf out = BUF_INIT(DIFF_MAX);
	struct matcher m = { .arena = a, .budget = BUDGET };
	struct opcode *codes;
	size_t n_matches, n;

	if (str_eq(before, after))
		return STR_NONE;
	m.a = read_text(a, before, &known);
	m.b = read_text(a, after, &known);
	index_lines(&m, (uint32_t)map_len(&known));
	for (int i = 0; i < 2; i++) {
		m.run[i] = ARENA_ARRAY(a, uint32_t, m.b.n + 1);
		memset(m.run[i], 0, (m.b.n + 1) * sizeof(*m.run[i]));
	}
	struct match *matches = all_matches(&m, &n_matches);
	if (!matches)
		return STR_NONE;
	n = opcodes_of(a, matches, n_matches, &codes);
	add_hunks(&out, &m, codes, n);
	return arena_str(a, buf_str(&out));
}
