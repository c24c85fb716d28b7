/*
 * event_merge: what becomes of an event before anybody hears of it, by client-go's rules. Ten that differ only in their
 * message within ten minutes are combined into one; one that was told before is counted; a source that tells more than 25
 * things about one object is cut off, and gets one more every five minutes.
 */
#ifndef C8S_CLIENT_EVENT_MERGE_H
#define C8S_CLIENT_EVENT_MERGE_H

#include "codec/val.h"

struct event_merge;

enum event_fate { EVENT_DROP, EVENT_CREATE, EVENT_COUNT };

struct event_merge *event_merge_new(void) NONNULL_RESULT;
void event_merge_free(struct event_merge *m); /* NULL is fine */
/*
 * *ret_event is what to create; for EVENT_COUNT *ret_patch (a merge patch) is what to change it by, if it is still there.
 * Both live in the arena or share with the event.
 */
enum event_fate event_merge_take(struct event_merge *m, struct arena *a, struct val event, struct val *ret_event,
				 struct val *ret_patch);

/* A name for an event about an object: its name and the time, or anything unique if that is no valid name. */
str event_name(struct arena *a, str about, int64_t wall_ns);

#endif
