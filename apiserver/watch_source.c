/* A watch as the body of an HTTP answer: its events as bytes, made when the connection takes them. */
#include <stdlib.h>

#include "apiserver/metrics.h"
#include "apiserver/pieces.h"
#include "apiserver/watch.h"
#include "base/mem.h"

enum { EVENT_MAX = 1 << 30 };

struct watch_source {
	struct watch watch;
	struct http_source source;
	struct view view;
	bool columns_shown;
	struct pieces pieces;
	struct buf head, body;        /* what pieces stand on when it is nobody else's */
};

/* ---- one event as bytes ---- */

static const struct {
	str name, json;
} event_types[] = {
#define EVENT_ROW(name) { STR_INIT(#name), STR_INIT("{\"type\":\"" #name "\",\"object\":") },
	WATCH_EVENT_TYPES(EVENT_ROW)
#undef EVENT_ROW
};

static size_t varint_len(uint64_t v)
{
	size_t n = 1;
	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

static void put_length(struct buf *b, char tag, uint64_t v)
{
	buf_addc(b, tag);
	for (; v >= 0x80; v >>= 7)
		buf_addc(b, (char)(v | 0x80));
	buf_addc(b, (char)v);
}

/* Four bytes of length, then the message WatchEvent { type = 1; object = 2 { raw = 1 } } up to the object's bytes. */
static void put_frame(struct buf *b, str type, size_t n)
{
	size_t raw = 1 + varint_len(n) + n;
	size_t message = 1 + varint_len(type.n) + type.n + 1 + varint_len(raw) + raw;
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_addc(b, (char)(message >> shift));
	put_length(b, 0x0a, type.n);
	buf_add(b, type);
	put_length(b, 0x12, raw);
	put_length(b, 0x0a, n);
}

static void show_bytes(struct watch_source *s, enum watch_event_type type, str object)
{
	pieces_clear(&s->pieces);
	if (s->view.accept.media == MEDIA_PROTO) {
		buf_reset(&s->head);
		put_frame(&s->head, event_types[type].name, object.n);
		pieces_add(&s->pieces, buf_str(&s->head));
		pieces_add(&s->pieces, object);
	} else {
		pieces_add(&s->pieces, event_types[type].json);
		pieces_add(&s->pieces, object);
		pieces_add(&s->pieces, STR("}\n"));
	}
	s->columns_shown = s->columns_shown || s->view.accept.as == AS_TABLE;
	metrics_watch_event(s->watch.series, object.n);
}

static int show(struct watch_source *s, const struct watch_event *e)
{
	if (e->object && s->view.shared) {
		const struct bytes *b = s->view.accept.media == MEDIA_PROTO ? object_proto(e->object) : object_json(e->object);
		show_bytes(s, e->type, str_span(b->p, b->n));
		return 0;
	}
	struct arena *a = &s->watch.scratch;
	buf_reset(&s->body);
	int r = e->object ? view_event_object(&s->view, e->object, !s->columns_shown, a, &s->body, NULL) :
			    view_event_val(&s->view, e->val, e->val_type, !s->columns_shown, a, &s->body, NULL);
	arena_reset(a);
	if (r >= 0)
		show_bytes(s, e->type, buf_str(&s->body));
	return r;
}

/* Puts the next event into the empty pieces; false when there is none now or ever (over). */
static bool next_event(struct watch_source *s)
{
	struct watch_event e;
	pieces_clear(&s->pieces);
	if (!watch_next(&s->watch, &e))
		return false;
	if (show(s, &e) >= 0)
		return true;
	watch_break(&s->watch, &e); /* nobody may miss an event without knowing */
	return show(s, &e) >= 0;
}

/* ---- the source ---- */

static ssize_t source_fill(struct http_source *source, char *p, size_t n)
{
	struct watch_source *s = CONTAINER_OF(source, struct watch_source, source);
	size_t done = pieces_take(&s->pieces, p, n);
	while (done < n && pieces_empty(&s->pieces)) {
		if (!next_event(s))
			break;
		done += pieces_take(&s->pieces, p + done, n - done);
	}
	if (done || s->watch.over)
		return (ssize_t)done;
	/* Thousands of these sleep: they keep no memory for the next event. */
	buf_done(&s->head);
	buf_done(&s->body);
	arena_done(&s->watch.scratch);
	buf_init(&s->head, EVENT_MAX);
	buf_init(&s->body, EVENT_MAX);
	return HTTP_LATER;
}

static void source_stop(struct http_source *source)
{
	struct watch_source *s = CONTAINER_OF(source, struct watch_source, source);
	watch_done(&s->watch);
	buf_done(&s->head);
	buf_done(&s->body);
	free(s);
}

/* Changes that are not for this watch do not reach the connection. */
static void source_wake(struct watch *w)
{
	struct watch_source *s = CONTAINER_OF(w, struct watch_source, watch);
	bool busy = w->initial.objects || w->initial_bookmark || !pieces_empty(&s->pieces);
	if (busy || next_event(s) || w->over)
		http_wake(&s->source);
}

struct watch *watch_source_new(const struct view *view)
{
	struct watch_source *s = mem_zalloc(sizeof(*s));
	s->source = (struct http_source){ .fill = source_fill, .stop = source_stop };
	s->watch.wake = source_wake;
	s->watch.answer.source = &s->source;
	s->view = *view;
	buf_init(&s->head, EVENT_MAX);
	buf_init(&s->body, EVENT_MAX);
	return &s->watch;
}
