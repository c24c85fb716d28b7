#include "cmd/image_progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum { LINES_MAX = 64, BAR = 30, SHORT = 12, EVERY_MS = 50 };

struct line {
	char name[SHORT + 1];
	const char *state;
	uint64_t done, total;
};

struct image_progress_lines {
	struct image_progress progress;
	bool terminal;
	struct line lines[LINES_MAX];
	size_t n, drawn;            /* drawn: lines that are on the screen now */
	int64_t drawn_ns;
};

static bool is_final(const char *state)
{
	return strcmp(state, "done") == 0 || strcmp(state, "exists") == 0 || strcmp(state, "mounted") == 0;
}

static void draw_line(const struct line *l)
{
	char bar[BAR + 1];
	size_t filled = l->total ? (size_t)((double)l->done / (double)l->total * BAR) : 0;
	filled = MIN(filled, (size_t)BAR);
	memset(bar, '=', filled);
	memset(bar + filled, ' ', BAR - filled);
	if (filled && filled < BAR)
		bar[filled - 1] = '>';
	bar[BAR] = '\0';
	fprintf(stderr, "\r\033[K%s: %-11s [%s] %.1f/%.1f MB\n", l->name, l->state, bar, (double)l->done / 1e6, (double)l->total / 1e6);
}

static void draw(struct image_progress_lines *p)
{
	if (p->drawn)
		fprintf(stderr, "\033[%zuA", p->drawn);
	for (size_t i = 0; i < p->n; i++)
		draw_line(&p->lines[i]);
	p->drawn = p->n;
	p->drawn_ns = clock_now_ns();
}

static struct line *line_of(struct image_progress_lines *p, str digest)
{
	char name[SHORT + 1] = "";
	str shortened = str_head(str_skip(digest, 7), SHORT);
	memcpy(name, shortened.p, shortened.n);
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->lines[i].name, name) == 0)
			return &p->lines[i];
	if (p->n == LINES_MAX)
		return NULL;
	struct line *l = &p->lines[p->n++];
	*l = (struct line){ .state = "" };
	memcpy(l->name, name, sizeof(name));
	return l;
}

static void on_layer(void *arg, str digest, uint64_t done, uint64_t total, const char *state)
{
	struct image_progress_lines *p = arg;
	struct line *l = line_of(p, digest);
	if (!l)
		return;
	bool changed = strcmp(l->state, state) != 0;
	l->state = state;
	l->done = done;
	l->total = total;
	if (p->terminal && (changed || clock_now_ns() - p->drawn_ns > EVERY_MS * NS_PER_MS))
		draw(p);
	else if (!p->terminal && changed && (is_final(state) || strcmp(state, "resuming") == 0))
		fprintf(stderr, "%s: %s (%.1f of %.1f MB)\n", l->name, state, (double)done / 1e6, (double)total / 1e6);
}

struct image_progress_lines *image_progress_lines_new(bool quiet)
{
	struct image_progress_lines *p = mem_zalloc(sizeof(*p));
	p->progress = (struct image_progress){ quiet ? NULL : on_layer, p };
	p->terminal = isatty(2);
	return p;
}

const struct image_progress *image_progress_lines_of(struct image_progress_lines *p) { return &p->progress; }

void image_progress_lines_free(struct image_progress_lines *p)
{
	if (p->terminal && p->n)
		draw(p);
	free(p);
}
