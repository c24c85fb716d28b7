#include "kubectl/tabs.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"

static void init(struct ktl_tabs *t, size_t min_width, size_t padding)
{
	*t = (struct ktl_tabs){ .text = BUF_INIT(1 << 30), .min_width = min_width, .padding = padding };
}

void ktl_tabs_for_table(struct ktl_tabs *t)
{
	init(t, 6, 3);
	t->remember = true;
}

void ktl_tabs_for_description(struct ktl_tabs *t) { init(t, 0, 2); }

void ktl_tabs_done(struct ktl_tabs *t)
{
	buf_done(&t->text);
	free(t->widths);
}

void ktl_tabs_forget(struct ktl_tabs *t) { t->n_widths = 0; }

/* ---- lines ---- */

struct cell {
	str text;
	size_t width; /* of the text, in characters */
	size_t column; /* how wide its column is */
};

struct line {
	struct cell *cells;
	size_t n;
};

struct page {
	struct arena arena;
	struct line *lines;
	size_t n, most; /* cells of the longest line */
};

static size_t width_of(str s)
{
	size_t n = 0;
	while (s.n) {
		size_t used = str_rune(s, NULL);
		s = str_skip(s, used ? used : 1);
		n++;
	}
	return n;
}

static size_t count(str s, char c)
{
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++)
		n += s.p[i] == c;
	return n;
}

static struct line split_line(struct arena *a, str text)
{
	struct line l = { .n = count(text, '\t') + 1 };
	l.cells = ARENA_ARRAY(a, struct cell, l.n);
	for (size_t i = 0; i < l.n; i++) {
		str cell;
		(void)str_cut(text, '\t', &cell, &text);
		l.cells[i] = (struct cell){ .text = cell, .width = width_of(cell) };
	}
	return l;
}

static void split(struct page *p, str text)
{
	size_t n = count(text, '\n') + 1;
	p->lines = ARENA_ARRAY(&p->arena, struct line, n);
	for (p->n = 0; p->n < n; p->n++) {
		str line;
		(void)str_cut(text, '\n', &line, &text);
		p->lines[p->n] = split_line(&p->arena, line);
		p->most = MAX(p->most, p->lines[p->n].n);
	}
}

/* ---- columns ---- */

static bool has_column(const struct line *l, size_t column) { return column + 1 < l->n; }

static size_t remembered(struct ktl_tabs *t, size_t column, size_t width)
{
	if (!t->remember)
		return width;
	if (column >= t->n_widths) {
		t->widths = mem_resize(t->widths, (column + 1) * sizeof(*t->widths));
		for (; t->n_widths <= column; t->n_widths++)
			t->widths[t->n_widths] = 0;
	}
	return t->widths[column] = MAX(t->widths[column], width);
}

/* Lines that have a column have those before it, too: its runs lie within theirs, and each can be measured by itself. */
static void measure(struct ktl_tabs *t, struct page *p, size_t column)
{
	for (size_t first = 0, end; first < p->n; first = end) {
		size_t width = t->min_width;
		end = first + 1;
		if (!has_column(&p->lines[first], column))
			continue;
		for (end = first; end < p->n && has_column(&p->lines[end], column); end++)
			width = MAX(width, p->lines[end].cells[column].width + t->padding);
		width = remembered(t, column, width);
		for (size_t i = first; i < end; i++)
			p->lines[i].cells[column].column = width;
	}
}

void ktl_tabs_flush(struct ktl_tabs *t, struct buf *out)
{
	struct page p = { .arena = ARENA_INIT };
	split(&p, buf_str(&t->text));
	for (size_t column = 0; column + 1 < p.most; column++)
		measure(t, &p, column);
	for (size_t i = 0; i < p.n; i++) {
		const struct line *l = &p.lines[i];
		for (size_t j = 0; j < l->n; j++) {
			buf_add(out, l->cells[j].text);
			for (size_t w = l->cells[j].width; j + 1 < l->n && w < l->cells[j].column; w++)
				buf_addc(out, ' ');
		}
		if (i + 1 < p.n)
			buf_addc(out, '\n');
	}
	arena_done(&p.arena);
	buf_reset(&t->text);
}
