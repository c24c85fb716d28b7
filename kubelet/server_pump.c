/*
 * A fiber writes into a small buffer, from which the connection takes (as a source of net/http.h): a client that reads slowly stops the
 * writing. Both sides hold a reference, as either may be through first.
 */
#include <stdlib.h>

#include "base/fiber.h"
#include "base/mem.h"
#include "kubelet/server_priv.h"

enum { ROOM = 32 << 10 };

struct pump {
	struct http_source source;
	unsigned refs;
	bool ended, stopped;          /* all was written; the client wants no more */
	struct fiber_cond taken;
	size_t from, to;              /* what was written and not yet taken */
	char bytes[ROOM];
};

static void unref(struct pump *p)
{
	if (--p->refs == 0)
		free(p);
}

static ssize_t fill(struct http_source *source, char *room, size_t n)
{
	struct pump *p = CONTAINER_OF(source, struct pump, source);
	size_t has = MIN(n, p->to - p->from);

	if (!has)
		return p->ended ? 0 : HTTP_LATER;
	memcpy(room, p->bytes + p->from, has);
	p->from += has;
	fiber_cond_signal(&p->taken);
	return (ssize_t)has;
}

static void stop(struct http_source *source)
{
	struct pump *p = CONTAINER_OF(source, struct pump, source);

	p->stopped = true;
	fiber_cond_signal(&p->taken);
	unref(p);
}

struct pump *pump_begin(struct http_exchange *x, str content_type)
{
	struct http_header header = { STR("content-type"), content_type };
	struct pump *p = mem_alloc(sizeof *p);

	p->source = (struct http_source){ .fill = fill, .stop = stop };
	p->refs = 2;
	p->ended = p->stopped = false;
	p->from = p->to = 0;
	fiber_cond_init(&p->taken, "a client that reads");
	http_answer_source(x, 200, &header, 1, &p->source, -1);
	return p;
}

int pump_write(struct pump *p, str text, struct err *err)
{
	while (text.n) {
		if (p->stopped)
			return err_set(err, ERR_GONE, "the client is gone");
		if (p->from == p->to)
			p->from = p->to = 0;
		if (p->to == ROOM) {
			int r = fiber_cond_wait(&p->taken, err);
			if (r < 0)
				return r;
			continue;
		}
		size_t n = MIN(text.n, (size_t)ROOM - p->to);
		memcpy(p->bytes + p->to, text.p, n);
		p->to += n;
		text = str_skip(text, n);
		http_wake(&p->source);
	}
	return 0;
}

bool pump_is_stopped(const struct pump *p) { return p->stopped; }

void pump_end(struct pump *p)
{
	p->ended = true;
	if (!p->stopped)
		http_wake(&p->source);
	unref(p);
}
