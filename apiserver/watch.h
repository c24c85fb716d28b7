/*
 * Watches: the changes of a kind, as they happen, to one client: a place in the window of its kind's events (cache.h), and
 * before that the state to begin with. No fiber, no queue.
 *
 * watch.c knows what the next event is; whoever shows it embeds struct watch in what they have: the source of an HTTP
 * answer (watch_source.c), which is asked for more when the connection takes more and has no bytes of its own as long as
 * objects are shown as they are cached, and the watch of a client in this process (local.h).
 *
 * A watch ends with its timeout, when its client reads too slowly for the window, when the cache was loaded anew, and with
 * the server.
 */
#ifndef C8S_APISERVER_WATCH_H
#define C8S_APISERVER_WATCH_H

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/list.h"
#include "base/loop.h"

#define WATCH_EVENT_TYPES(X) X(ADDED) X(MODIFIED) X(DELETED) X(BOOKMARK) X(ERROR)

enum watch_event_type {
#define WATCH_EVENT_ENUM(name) WATCH_##name,
	WATCH_EVENT_TYPES(WATCH_EVENT_ENUM)
#undef WATCH_EVENT_ENUM
};

/* Borrowed until the next one is asked for. */
struct watch_event {
	enum watch_event_type type;
	struct object *object;        /* of a bookmark and of an error: NULL, and instead */
	struct val val;               /* an object that carries how far the watch has come; a Status */
	const struct type *val_type;
};

struct watch {
	/* There may be an event, or the end. A callback: must not suspend. Calls watch_next, or sees to it that it is called. */
	void (*wake)(struct watch *w);
	bool over;                    /* there are no more events */
	struct metrics_series *series;
	struct arena scratch;         /* what belongs to one event; whoever has shown it resets this */
	struct list_answer answer;    /* how it is stopped */

	/* watch.c's own */
	struct cache_watcher watcher;
	struct loop_timer timer;      /* due at the next bookmark or at the end, whichever comes first */
	struct apiserver *server;
	const struct endpoint *endpoint;
	struct fairness_watch *counted;
	struct audit_event *audit;
	struct list_options options;  /* what they point to lives as long as the exchange */
	struct list_page initial;     /* the state to begin with */
	size_t at;                    /* the next one of it */
	int64_t revision;             /* of that state */
	bool initial_bookmark;        /* its end is still to be told */
	bool following;               /* events will follow */
	bool bookmark_due;
	int64_t end_ns, bookmark_ns;  /* INT64_MAX: never */
	struct val failure;           /* what keeps it from beginning, to be told as its only event */
	struct object *shown;         /* an object that was made for the last event */
};

/* The next event; false when there is none now (wake will be called), or ever (over). */
bool watch_next(struct watch *w, struct watch_event *ret);
/* An event could not be shown: the watch is over, and this is told instead. */
void watch_break(struct watch *w, struct watch_event *ret);
/* Gives back everything that it holds. */
void watch_done(struct watch *w);

/* A new one with nothing but wake and answer: as the body of an HTTP answer. Stopping the source of the answer frees it. */
struct watch *watch_source_new(const struct view *view) NONNULL_RESULT;

/* Ends all watches; s->stopping is set already. */
void watches_end(struct apiserver *s);

#endif
