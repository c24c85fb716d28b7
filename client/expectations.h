/*
 * expectations: what a loop has created and deleted that its informer does not show yet. As long as some of it is
 * missing, counting what the informer shows would make the loop do it twice. They lapse after five minutes: then
 * something was missed, and looking again is better than waiting.
 */
#ifndef C8S_CLIENT_EXPECTATIONS_H
#define C8S_CLIENT_EXPECTATIONS_H

#include "base/str.h"

struct expectations;

/* After that time, whoever waits for something that is missing should look again: nothing else may happen. */
enum { EXPECTATIONS_LAPSE_MS = 5 * 60 * 1000 };

struct expectations *expectations_new(void) NONNULL_RESULT;
void expectations_free(struct expectations *e); /* NULL is fine */

/* Before the calls are made: so many of the key's objects will come, and those with these keys will go. */
void expect_creations(struct expectations *e, str key, unsigned n);
void expect_deletions(struct expectations *e, str key, const str *gone, size_t n);
/* When the informer shows one, and when a call failed. Those that were not expected do not matter. */
void expectations_created(struct expectations *e, str key);
void expectations_deleted(struct expectations *e, str key, str gone);
/* Whether nothing is missing (any more). */
bool expectations_met(struct expectations *e, str key);
/* The key itself is gone. */
void expectations_forget(struct expectations *e, str key);

#endif
