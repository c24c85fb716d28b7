#include "client/servers.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/url.h"

enum { FILE_BYTES_MAX = 64 << 10 };

static char *text(str s)
{
	char *out = mem_zalloc(s.n + 1);

	memcpy(out, s.p, s.n);
	return out;
}

void servers_init(struct servers *s, str first, str file)
{
	*s = (struct servers){ .first = text(first), .current = text(first), .file = file.n ? text(file) : NULL };
}

void servers_done(struct servers *s)
{
	free(s->first);
	free(s->current);
	free(s->file);
	*s = (struct servers){ 0 };
}

struct found {
	str list[SERVERS_MAX];
	size_t n;
};

static void add(struct found *f, struct arena *a, str url)
{
	struct url parts;

	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->list[i], url))
			return;
	if (f->n < SERVERS_MAX && str_starts(url, STR("https://")) && url_parse(a, url, &parts, NULL) == 0 && parts.host.n)
		f->list[f->n++] = url;
}

/* All of them, in an order that stays the same as long as the file does. */
static void find(const struct servers *s, struct arena *a, str lines, struct found *f)
{
	f->list[f->n++] = str_of(s->first);
	while (lines.n) {
		str line;
		(void)str_cut(lines, '\n', &line, &lines);
		add(f, a, str_trim(line));
	}
}

size_t servers_move(struct servers *s, unsigned number)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf lines = BUF_INIT(FILE_BYTES_MAX);
	struct found f = { .n = 0 };
	size_t at = 0;

	if (!s->file || file_read(s->file, &lines, NULL) < 0)
		return 0;
	find(s, &a, buf_str(&lines), &f);
	while (at < f.n && !str_eq(f.list[at], str_of(s->current)))
		at++;
	str next = f.list[at + 1 < f.n ? at + 1 : 0];
	if (number == s->number && !str_eq(next, str_of(s->current))) {
		log_info("the API server cannot be reached, another one is tried", KV("server", s->current), KV("next", next));
		free(s->current);
		s->current = text(next);
		s->number++;
	}
	return f.n - (at < f.n);
}
