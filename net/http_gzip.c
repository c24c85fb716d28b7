/* The gzip form of a source, made while it is sent. */
#define ZLIB_CONST
#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"
#include "net/http_priv.h"

enum { PIECE = 32 * 1024, GZIP = 16 /* added to the window bits: gzip's header in place of zlib's */ };

struct gzip {
	struct http_source source;       /* what the server asks */
	struct http_sink sink;           /* what the inner source wakes */
	struct http_source *inner;
	z_stream z;
	bool inner_ended, ended;
	char piece[PIECE];               /* of the inner source: the next bytes for zlib are at z.next_in */
};

static void on_wake(struct http_sink *sink) { http_wake(&CONTAINER_OF(sink, struct gzip, sink)->source); }

/*
 * When the inner source has nothing now, what it gave so far must not wait inside zlib: an event of a watch is to
 * arrive when it happens.
 */
static ssize_t fill(struct http_source *source, char *p, size_t n)
{
	struct gzip *g = CONTAINER_OF(source, struct gzip, source);
	int flush = Z_NO_FLUSH;

	if (g->ended)
		return 0;
	g->z.next_out = (Bytef *)p;
	g->z.avail_out = (uInt)n;
	while (g->z.avail_out) {
		if (!g->z.avail_in && !g->inner_ended && flush == Z_NO_FLUSH) {
			ssize_t got = g->inner->fill(g->inner, g->piece, sizeof(g->piece));
			if (got < 0 && got != HTTP_LATER)
				return got;
			g->z.next_in = (const Bytef *)g->piece;
			g->z.avail_in = got > 0 ? (uInt)got : 0;
			g->inner_ended = got == 0;
			flush = got == HTTP_LATER ? Z_SYNC_FLUSH : Z_NO_FLUSH;
		}
		int r = deflate(&g->z, g->inner_ended && !g->z.avail_in ? Z_FINISH : flush);
		if (r == Z_STREAM_END) {
			g->ended = true;
			break;
		}
		if (r == Z_STREAM_ERROR)
			return -ERR_INTERNAL;
		if (flush == Z_SYNC_FLUSH && g->z.avail_out)
			break;
	}
	n -= g->z.avail_out;
	return n || g->ended ? (ssize_t)n : HTTP_LATER;
}

static void stop(struct http_source *source)
{
	struct gzip *g = CONTAINER_OF(source, struct gzip, source);

	g->inner->sink = NULL;
	g->inner->stop(g->inner);
	(void)deflateEnd(&g->z);
	free(g);
}

struct http_source *http_gzip(struct http_source *inner, int level)
{
	struct gzip *g = mem_alloc(sizeof(*g));

	*g = (struct gzip){ .source = { .fill = fill, .stop = stop }, .sink.wake = on_wake, .inner = inner };
	inner->sink = &g->sink;
	/* Fails for want of memory only. */
	if (deflateInit2(&g->z, level, Z_DEFLATED, MAX_WBITS + GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	return &g->source;
}
