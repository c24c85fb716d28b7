/*
 * A fiber reads from the call into a small buffer, the connection to the client takes from it (as a source of http.h). Each
 * side holds a reference: either may be through first.
 */
#include "apiserver/relay.h"

#include <stdlib.h>

#include "base/fiber.h"
#include "base/mem.h"

enum { ROOM = 32 << 10 };

struct relay {
	struct http_source source;
	struct http_call *call;       /* NULL once the reading side is through */
	unsigned refs;
	bool ended, broken, stopped;  /* all was read, reading failed, the client wants no more */
	struct fiber_cond taken;
	size_t from, to;              /* what was read and not yet taken */
	char bytes[ROOM];
};

static void unref(struct relay *r)
{
	if (--r->refs == 0)
		free(r);
}

static ssize_t fill(struct http_source *source, char *p, size_t n)
{
	struct relay *r = CONTAINER_OF(source, struct relay, source);
	size_t has = MIN(n, r->to - r->from);
	if (!has)
		return r->ended ? 0 : r->broken ? -1 : HTTP_LATER;
	memcpy(p, r->bytes + r->from, has);
	r->from += has;
	fiber_cond_signal(&r->taken);
	return (ssize_t)has;
}

static void stop(struct http_source *source)
{
	struct relay *r = CONTAINER_OF(source, struct relay, source);
	r->stopped = true;
	fiber_cond_signal(&r->taken);
	if (r->call && !r->ended)
		http_call_abort(r->call);
	unref(r);
}

/* 1: more may come. */
static int read_more(struct relay *r)
{
	if (r->from == r->to)
		r->from = r->to = 0;
	if (r->to == ROOM)
		return fiber_cond_wait(&r->taken, NULL) < 0 ? -1 : 1;
	ssize_t n = http_call_read(r->call, r->bytes + r->to, ROOM - r->to, NULL);
	if (n > 0)
		r->to += (size_t)n;
	return n > 0 ? 1 : (int)n;
}

void relay_body(struct http_exchange *x, int status, const struct http_header *headers, size_t n, struct http_call *call,
		int64_t length)
{
	struct relay *r = mem_alloc(sizeof *r);
	r->source = (struct http_source){ .fill = fill, .stop = stop };
	r->call = call;
	r->refs = 2;
	r->ended = r->broken = r->stopped = false;
	r->from = r->to = 0;
	fiber_cond_init(&r->taken, "a client that reads");
	http_answer_source(x, status, headers, n, &r->source, length);
	int more = 1;
	while (more > 0 && !r->stopped) {
		more = read_more(r);
		if (!r->stopped && more >= 0)
			http_wake(&r->source);
	}
	r->call = NULL;
	r->ended = more == 0;
	r->broken = more < 0;
	if (!r->stopped)
		http_wake(&r->source);
	unref(r);
}
