/*
 * recorder: events. What a component tells about an object becomes an Event of core/v1, as client-go's recorder makes
 * them: the same thing told again raises the count of one event (a patch), many that differ only in their message become
 * one "(combined from similar events)", and a source that tells too much about one object (25 at once, then one in five
 * minutes) is cut off. Telling never waits and never fails; a fiber sends.
 */
#ifndef C8S_CLIENT_RECORDER_H
#define C8S_CLIENT_RECORDER_H

#include "client/client.h"

struct recorder;

/* component, host: source.component and source.host, also reportingComponent and reportingInstance; copied. */
int recorder_new(struct client *c, str component, str host, struct recorder **ret, struct err *err);
/* (suspends) Sends what is left, for a second at most. NULL is fine. */
void recorder_free(struct recorder *r);

enum recorder_type { RECORD_NORMAL, RECORD_WARNING };

/* about: an object with apiVersion and kind, or an ObjectReference (with fieldPath). */
void record(struct recorder *r, struct val about, enum recorder_type type, const char *reason, const char *fmt, ...)
	PRINTF_LIKE(5, 6);

#endif
