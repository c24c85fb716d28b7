/*
 * A server for tests of the scheduler on random clusters: it keeps nothing, tells informers what the test puts or removes, and notes what is
 * done to pods for preemption. On a fiber.
 */
#ifndef C8S_SCHEDULER_REFERENCE_SERVER_H
#define C8S_SCHEDULER_REFERENCE_SERVER_H

#include "base/buf.h"
#include "base/fiber.h"
#include "client/client_priv.h"

enum { SERVER_KINDS = 32, SERVER_EVENTS = 1024 };

struct server {
	struct client client;
	int64_t revision;
	struct feed {                 /* the watch of one kind */
		const struct type *type;
		struct server_event { enum client_event_type type; struct frozen *object; } events[SERVER_EVENTS];
		size_t n, at;
	} feeds[SERVER_KINDS];
	size_t n_feeds;
	struct fiber_cond more;
	struct buf victims;           /* names of pods that are to go, each with a ' ' behind it */
	struct buf cleared;           /* names of pods that do not wait for their node any more */
};

void server_init(struct server *s);
void server_done(struct server *s);
/* (suspends) Everybody has been told when it returns. The object with its new revision, referenced. */
struct frozen *server_put(struct server *s, const struct type *type, struct val object, bool is_new);
void server_remove(struct server *s, const struct type *type, struct frozen *object);

#endif
