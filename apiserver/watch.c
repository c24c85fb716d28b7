/* A watch from its first byte to its end: the initial state, changes, bookmarks. */
#include "apiserver/watch.h"

#include <stdlib.h>

#include "apiserver/cache.h"
#include "apiserver/fairness/fairness.h"
#include "apiserver/list.h"
#include "apiserver/metrics.h"
#include "apiserver/pieces.h"
#include "apiserver/read.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum {
	BOOKMARK_S = 60,              /* between two of them, about */
	BOOKMARK_BEFORE_END_S = 2,
	TIMEOUT_MAX_S = 1000000000,
	EVENT_MAX = 1 << 30,
};

struct watch {
	struct http_source source;
	struct cache_watcher watcher;
	struct loop_timer timer;      /* due at the next bookmark or at the end, whichever comes first */
	struct list_answer answer;
	struct apiserver *server;
	struct metrics_series *series;
	struct fairness_watch *counted;
	struct audit_event *audit;
	struct view view;
	struct list_options options;  /* what they point to lives as long as the exchange */
	struct list_page initial;     /* the state to begin with */
	size_t at;                    /* the next one of it */
	int64_t revision;             /* of that state */
	bool initial_bookmark;        /* its end is still to be told */
	bool columns_shown;
	bool following, over;         /* events will follow; nothing more after what is in pieces */
	bool bookmark_due;
	int64_t end_ns, bookmark_ns;  /* INT64_MAX: never */
	struct object *shown;         /* an object that was made for the event that is being sent */
	struct pieces pieces;
	struct buf head, body;        /* what pieces stand on when it is nobody else's */
	struct arena scratch;
};

/* ---- one event as bytes ---- */

#define EVENT_TYPES(X) X(ADDED) X(MODIFIED) X(DELETED) X(BOOKMARK) X(ERROR)

enum event_type {
#define EVENT_ENUM(name) EVENT_##name,
	EVENT_TYPES(EVENT_ENUM)
#undef EVENT_ENUM
};

static const struct {
	str name, json;
} event_types[] = {
#define EVENT_ROW(name) { STR_INIT(#name), STR_INIT("{\"type\":\"" #name "\",\"object\":") },
	EVENT_TYPES(EVENT_ROW)
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

static void show(struct watch *w, enum event_type type, str object)
{
	pieces_clear(&w->pieces);
	if (w->view.accept.media == MEDIA_PROTO) {
		buf_reset(&w->head);
		put_frame(&w->head, event_types[type].name, object.n);
		pieces_add(&w->pieces, buf_str(&w->head));
		pieces_add(&w->pieces, object);
	} else {
		pieces_add(&w->pieces, event_types[type].json);
		pieces_add(&w->pieces, object);
		pieces_add(&w->pieces, STR("}\n"));
	}
	w->columns_shown = w->columns_shown || w->view.accept.as == AS_TABLE;
	metrics_watch_event(w->series, object.n);
}

static int show_object(struct watch *w, enum event_type type, struct object *o)
{
	if (w->view.shared) {
		const struct bytes *b = w->view.accept.media == MEDIA_PROTO ? object_proto(o) : object_json(o);
		show(w, type, str_span(b->p, b->n));
		return 0;
	}
	buf_reset(&w->body);
	int r = view_event_object(&w->view, o, !w->columns_shown, &w->scratch, &w->body, NULL);
	arena_reset(&w->scratch);
	if (r >= 0)
		show(w, type, buf_str(&w->body));
	return r;
}

static int show_val(struct watch *w, enum event_type type, struct val v, const struct type *t)
{
	buf_reset(&w->body);
	int r = view_event_val(&w->view, v, t, !w->columns_shown, &w->scratch, &w->body, NULL);
	arena_reset(&w->scratch);
	if (r >= 0)
		show(w, type, buf_str(&w->body));
	return r;
}

/* An object that carries nothing but how far the watch has come. */
static int show_bookmark(struct watch *w, int64_t revision, bool ends_initial)
{
	struct arena *a = &w->scratch;
	const struct type *type = w->view.endpoint->type;
	struct member mark = { atom_make(a, STR("k8s.io/initial-events-end")), VAL_LIT("true") };
	struct val metadata = OBJECT(a, F(resourceVersion, val_of_str(arena_printf(a, "%lld", (long long)revision))),
				     F(annotations, ends_initial ? val_object(a, &mark, 1) : VAL_EMPTY));
	struct val bookmark = OBJECT(a, F(kind, val_of_str(type->name)), F(apiVersion, val_of_str(type_api_version(a, type))),
				     F(metadata, metadata));
	return show_val(w, EVENT_BOOKMARK, bookmark, type);
}

/* ---- the next event ---- */

/* What a change means to this watch, which may not have seen the object before or will not see it after. 0: nothing. */
static int show_change(struct watch *w, const struct cache_event *e)
{
	static const enum event_type plain[] = {
		[CACHE_ADDED] = EVENT_ADDED, [CACHE_MODIFIED] = EVENT_MODIFIED, [CACHE_DELETED] = EVENT_DELETED,
	};
	const struct list_options *o = &w->options;
	int r;
	if (!o->selects) {
		if (!list_options_match(o, e->object))
			return 0;
		r = show_object(w, plain[e->type], e->object);
		return r < 0 ? r : 1;
	}
	bool now = e->type != CACHE_DELETED && list_options_match(o, e->object);
	bool before = e->before && list_options_match(o, e->before);
	if (!now && !before)
		return 0;
	if (now)
		r = show_object(w, before ? EVENT_MODIFIED : EVENT_ADDED, e->object);
	else if (e->type == CACHE_DELETED)
		r = show_object(w, EVENT_DELETED, e->object);
	else
		r = show_object(w, EVENT_DELETED, w->shown = object_at_revision(e->before, e->revision));
	return r < 0 ? r : 1;
}

static void schedule(struct watch *w)
{
	int64_t now = clock_now_ns();
	w->bookmark_ns = INT64_MAX;
	if (w->options.bookmarks) {
		int64_t last = w->end_ns == INT64_MAX ? INT64_MAX : w->end_ns - BOOKMARK_BEFORE_END_S * NS_PER_S;
		w->bookmark_ns = MIN(now + BOOKMARK_S * NS_PER_S, last);
		if (w->bookmark_ns <= now)
			w->bookmark_ns = INT64_MAX;
	}
	int64_t due = MIN(w->end_ns, w->bookmark_ns);
	if (due != INT64_MAX)
		loop_timer_start(&w->timer, due);
}

static int next_initial(struct watch *w)
{
	if (w->at) {
		object_unref(w->initial.objects[w->at - 1]);
		w->initial.objects[w->at - 1] = NULL;
	}
	if (w->at < w->initial.n) {
		int r = show_object(w, EVENT_ADDED, w->initial.objects[w->at++]);
		return r < 0 ? r : 1;
	}
	list_page_done(&w->initial);
	w->at = 0;
	if (!w->initial_bookmark)
		return 0;
	w->initial_bookmark = false;
	int r = show_bookmark(w, w->revision, true);
	return r < 0 ? r : 1;
}

static int next_change(struct watch *w)
{
	const struct cache_event *e;
	while ((e = cache_watch_next(&w->watcher))) {
		int r = show_change(w, e);
		if (r)
			return r;
	}
	return 0;
}

static int next_shown(struct watch *w)
{
	int r;
	if (w->over)
		return 0;
	if ((w->initial.objects || w->initial_bookmark) && (r = next_initial(w)) != 0)
		return r;
	w->over = w->server->stopping || clock_now_ns() >= w->end_ns;
	if (w->over)
		return 0;
	if ((r = next_change(w)) != 0)
		return r;
	w->over = w->watcher.ended;
	if (w->over || !w->bookmark_due)
		return 0;
	w->bookmark_due = false;
	r = show_bookmark(w, MAX(cache_revision(w->server->cache), w->watcher.after), false);
	return r < 0 ? r : 1;
}

/* What keeps a watch from beginning or from going on is told as its last event. */
static void watch_fail(struct watch *w, struct val status)
{
	w->over = true;
	(void)show_val(w, EVENT_ERROR, status, TYPE(meta_v1, Status));
}

/* Puts the next event into the empty pieces; false when there is none now or ever (w->over). */
static bool next_event(struct watch *w)
{
	pieces_clear(&w->pieces);
	object_unref(TAKE(w->shown));
	int r = next_shown(w);
	if (r < 0) { /* nobody may miss an event without knowing */
		watch_fail(w, status_of(&w->scratch, 500, STR("InternalError"), VAL_EMPTY,
					STR("Internal error occurred: an event could not be encoded")));
		return !pieces_empty(&w->pieces);
	}
	return r > 0;
}

/* ---- the source ---- */

static ssize_t watch_fill(struct http_source *source, char *p, size_t n)
{
	struct watch *w = CONTAINER_OF(source, struct watch, source);
	size_t done = pieces_take(&w->pieces, p, n);
	while (done < n && pieces_empty(&w->pieces)) {
		if (!next_event(w))
			break;
		done += pieces_take(&w->pieces, p + done, n - done);
	}
	if (done || w->over)
		return (ssize_t)done;
	/* Thousands of these sleep: they keep no memory for the next event. */
	buf_done(&w->head);
	buf_done(&w->body);
	arena_done(&w->scratch);
	buf_init(&w->head, EVENT_MAX);
	buf_init(&w->body, EVENT_MAX);
	return HTTP_LATER;
}

static void watch_stop(struct http_source *source)
{
	struct watch *w = CONTAINER_OF(source, struct watch, source);
	loop_timer_stop(&w->timer);
	metrics_longrunning(w->series, -1);
	fairness_watch_end(w->counted);
	audit_end(w->audit);
	if (w->following)
		cache_watch_end(&w->watcher);
	list_page_done(&w->initial);
	object_unref(w->shown);
	buf_done(&w->head);
	buf_done(&w->body);
	arena_done(&w->scratch);
	free(w);
}

/* Changes that are not for this watch do not reach the connection. */
static void watch_wake(struct cache_watcher *watcher)
{
	struct watch *w = CONTAINER_OF(watcher, struct watch, watcher);
	bool busy = w->initial.objects || w->initial_bookmark || !pieces_empty(&w->pieces);
	if (busy || next_event(w) || w->over)
		http_wake(&w->source);
}

static void watch_due(struct loop_timer *timer)
{
	struct watch *w = CONTAINER_OF(timer, struct watch, timer);
	int64_t now = clock_now_ns();
	if (now >= w->bookmark_ns)
		w->bookmark_due = true;
	if (now < w->end_ns)
		schedule(w);
	http_wake(&w->source);
}

void watches_end(struct apiserver *s)
{
	for (size_t i = 0; i < s->kinds.n_kinds; i++) {
		LIST_EACH_SAFE(struct cache_watcher, watcher, &s->kinds.kinds[i].watchers, link) {
			if (watcher->wake == watch_wake)
				http_wake(&CONTAINER_OF(watcher, struct watch, watcher)->source);
		}
	}
}

/* ---- beginning ---- */

static struct watch *watch_new(struct request *q, const struct list_options *o, const struct view *view)
{
	struct watch *w = mem_zalloc(sizeof(*w));
	w->source = (struct http_source){ .fill = watch_fill, .stop = watch_stop };
	w->watcher.wake = watch_wake;
	w->timer.fire = watch_due;
	w->answer = (struct list_answer){ .source = &w->source, .watch = true };
	w->server = q->server;
	w->series = metrics_series(q);
	metrics_longrunning(w->series, 1);
	w->audit = audit_keep(q);
	w->counted = fairness_watch_begin(q, o->name, &o->fields);
	w->view = *view;
	w->options = *o;
	buf_init(&w->head, EVENT_MAX);
	buf_init(&w->body, EVENT_MAX);
	return w;
}

static void watch_begin_timer(struct watch *w)
{
	int64_t asked_s = MIN(w->options.timeout_s, (int64_t)TIMEOUT_MAX_S), ns = MAX(asked_s, (int64_t)-1) * NS_PER_S;
	int64_t least = w->server->options.min_request_timeout_s * NS_PER_S;
	if (ns == 0 && least > 0)
		ns = least + (int64_t)random_below((uint64_t)least);
	w->end_ns = ns ? clock_now_ns() + MAX(ns, (int64_t)0) : INT64_MAX; /* negative: at once, as in Kubernetes */
	schedule(w);
}

/* From the moment of the call on nothing may suspend: the state and the events after it must fit together. */
static int watch_begin(struct watch *w, struct kind *kind, int64_t revision, struct err *err)
{
	int64_t newest = cache_revision(w->server->cache);
	if (w->options.initial == INITIAL_YES) {
		list_current(kind, &w->options, &w->initial);
		w->revision = newest;
		w->initial_bookmark = w->options.bookmarks;
		revision = newest;
	} else if (revision == 0) {
		revision = newest;
	}
	int r = cache_watch_begin(kind, revision, &w->watcher, err);
	w->following = r >= 0;
	return r;
}

int read_watch(struct request *q, struct err *err)
{
	struct list_options options;
	struct view view;
	int64_t revision;
	int r = list_options_read(q, &options, err);
	if (r < 0)
		return r;
	if (read_revision(options.revision, &revision, err) < 0)
		return request_fail_as(q, ERR_INTERNAL, 500, STR_NONE, VAL_EMPTY, STR_FMT, STR_ARG(err_str(err)));
	if ((r = view_of(q, &view)) < 0)
		return r;
	bool wait = options.initial == INITIAL_YES || (options.initial == INITIAL_NO && !options.revision.n);
	r = wait ? read_wait(q, revision, !options.revision.n, err) : 0;
	if (r < 0 && !val_exists(q->failure))
		return r;
	if (fiber_check(err) < 0)
		return -(int)err->code;
	struct watch *w = watch_new(q, &options, &view);
	watch_begin_timer(w);
	if (r < 0) {
		watch_fail(w, q->failure);
		q->failure = VAL_EMPTY;
	} else if ((r = watch_begin(w, q->endpoint->kind, revision, err)) == -ERR_EXPIRED) {
		watch_fail(w, read_expired(q->arena, arena_str(q->arena, err_str(err))));
	} else if (r < 0) {
		watch_stop(&w->source);
		return r;
	}
	q->answer.kind = ANSWER_LIST;
	q->answer.status = 200;
	q->answer.list = &w->answer;
	return 0;
}
