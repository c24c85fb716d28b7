/*
 * The window of recent events of one kind is a ring that grows with need: when it is full, events that are older than
 * the window go first; when all of it is young, it doubles, up to its maximum. An event keeps the state before it alive,
 * which is what a window costs.
 *
 * A watcher holds a place in the ring, not a queue: one that is slow costs nothing, and one whose place has left the
 * ring is told that it has ended.
 */
#include "apiserver/cache_priv.h"
#include "base/clock.h"
#include "base/mem.h"

static size_t window_len(const struct kind *kind) { return (size_t)(kind->next_event - kind->first_event); }
static struct cache_event *window_at(const struct kind *kind, uint64_t i) { return &kind->events[i % kind->events_cap]; }

static void window_drop_first(struct kind *kind)
{
	struct cache_event *e = window_at(kind, kind->first_event);

	kind->floor = e->revision;
	object_unref(e->object);
	object_unref(e->before);
	kind->first_event++;
}

static void window_drop_old(struct kind *kind)
{
	int64_t limit = clock_now_ns() - WINDOW_SECONDS * NS_PER_S;

	while (window_len(kind) > WINDOW_EVENTS_MIN && window_at(kind, kind->first_event)->at_ns < limit)
		window_drop_first(kind);
}

static void window_resize(struct kind *kind, size_t cap)
{
	struct cache_event *events = mem_array(cap, sizeof *events);

	for (uint64_t i = kind->first_event; i < kind->next_event; i++)
		events[i % cap] = *window_at(kind, i);
	free(kind->events);
	kind->events = events;
	kind->events_cap = cap;
}

static size_t window_larger(size_t cap) { return cap ? MIN(cap * 2, (size_t)WINDOW_EVENTS_MAX) : WINDOW_EVENTS_MIN; }

void window_add(struct kind *kind, enum cache_event_type type, int64_t revision, struct object *object,
		struct object *before)
{
	if (window_len(kind) == kind->events_cap) {
		window_drop_old(kind);
		if (window_len(kind) == WINDOW_EVENTS_MAX)
			window_drop_first(kind);
		else if (window_len(kind) == kind->events_cap)
			window_resize(kind, window_larger(kind->events_cap));
	}
	*window_at(kind, kind->next_event++) = (struct cache_event){
		.type = type, .revision = revision, .object = object, .before = before, .at_ns = clock_now_ns(),
	};
	kind->watchers_due = true;
}

void window_trim(struct kind *kind)
{
	window_drop_old(kind);
	if (kind->events_cap >= 4 * WINDOW_EVENTS_MIN && window_len(kind) <= kind->events_cap / 4)
		window_resize(kind, kind->events_cap / 2);
}

void window_wake(struct kind *kind)
{
	struct list rest = LIST_INIT(rest);
	struct cache_watcher *w;

	kind->watchers_due = false;
	if (list_empty(&kind->watchers))
		return;
	/* What is woken may change the list in any way: all are taken out, and put back one by one. */
	list_insert(&rest, kind->watchers.prev, kind->watchers.next);
	list_init(&kind->watchers);
	while ((w = LIST_FIRST(struct cache_watcher, &rest, link))) {
		list_remove(&w->link);
		list_add(&kind->watchers, &w->link);
		if (w->sleeping) {
			w->sleeping = false;
			w->wake(w);
		}
	}
}

static void window_clear(struct kind *kind)
{
	while (window_len(kind))
		window_drop_first(kind);
	free(TAKE(kind->events));
	kind->events_cap = 0;
}

void window_restart(struct kind *kind, int64_t revision)
{
	window_clear(kind);
	kind->floor = revision;
	LIST_EACH (struct cache_watcher, w, &kind->watchers, link)
		w->ended = true;
	window_wake(kind);
}

void window_done(struct kind *kind)
{
	window_clear(kind);
	LIST_EACH_SAFE (struct cache_watcher, w, &kind->watchers, link)
		list_remove(&w->link);
}

/* ---- watchers ---- */

int cache_watch_begin(struct kind *kind, int64_t after, struct cache_watcher *w, struct err *err)
{
	if (after < kind->floor)
		return err_set(err, ERR_EXPIRED, "too old resource version: %lld (%lld)", (long long)after,
			       (long long)kind->floor);
	uint64_t low = kind->first_event, high = kind->next_event;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (window_at(kind, middle)->revision > after)
			high = middle;
		else
			low = middle + 1;
	}
	w->kind = kind;
	w->next = low;
	w->after = after;
	w->ended = false;
	w->sleeping = true;
	w->event = (struct cache_event){ 0 };
	list_add(&kind->watchers, &w->link);
	return 0;
}

static void watcher_forget_event(struct cache_watcher *w)
{
	object_unref(TAKE(w->event.object));
	object_unref(TAKE(w->event.before));
}

void cache_watch_end(struct cache_watcher *w)
{
	watcher_forget_event(w);
	list_remove(&w->link);
	w->ended = true;
}

const struct cache_event *cache_watch_next(struct cache_watcher *w)
{
	struct kind *kind = w->kind;

	watcher_forget_event(w);
	if (w->ended)
		return NULL;
	if (w->next < kind->first_event) {
		w->ended = true;
		return NULL;
	}
	/* A watch may begin at a revision that has not come yet. */
	while (w->next < kind->next_event && window_at(kind, w->next)->revision <= w->after)
		w->next++;
	if (w->next == kind->next_event) {
		w->sleeping = true;
		return NULL;
	}
	w->sleeping = false;
	w->event = *window_at(kind, w->next++);
	object_ref(w->event.object);
	if (w->event.before)
		object_ref(w->event.before);
	return &w->event;
}
