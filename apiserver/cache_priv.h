/* What the files of the watch cache share. */
#ifndef C8S_APISERVER_CACHE_PRIV_H
#define C8S_APISERVER_CACHE_PRIV_H

#include "apiserver/cache.h"

/* ---- cache_window.c: the events of one kind, and who follows them ---- */

enum {
	WINDOW_EVENTS_MIN = 100,     /* that are kept however old they are */
	WINDOW_EVENTS_MAX = 100000,
	WINDOW_SECONDS = 90,         /* older ones may go */
};

/* Adds an event, which takes both references over. The watchers are due; window_wake tells them. */
void window_add(struct kind *kind, enum cache_event_type type, int64_t revision, struct object *object,
		struct object *before);
/* Drops what is older than the window; gives back memory that is no longer needed. */
void window_trim(struct kind *kind);
/* Wakes the watchers that sleep. They may end themselves and others, and new ones may begin. */
void window_wake(struct kind *kind);
/* Forgets all events and ends all watches: the window begins anew at this revision. */
void window_restart(struct kind *kind, int64_t revision);
void window_done(struct kind *kind);

/* ---- cache_value.c ---- */

/* The object that a writer of this process attached, borrowed; NULL: none. */
struct object *cache_attached(const struct store_value *v);

#endif
