/* An API server that costs next to nothing, for the scheduler's benchmark: it keeps nodes and pods and tells watches of them. */
#ifndef C8S_BENCH_SCHED_SERVER_H
#define C8S_BENCH_SCHED_SERVER_H

#include "base/fiber.h"
#include "client/client_priv.h"

struct told {                         /* an event that a watch has yet to tell */
	enum client_event_type type;
	struct frozen *object;
};

struct feed {                         /* of one kind */
	const struct type *type;
	struct told *events;
	size_t n, cap, at;
	struct fiber_cond more;
};

struct sched_server {
	struct client client;
	struct feed nodes, pods;
	struct frozen **stored;       /* pods by their number, which is the end of their name */
	size_t n_stored;
	size_t n_bound, n_refused, n_deleted, n_events;
	size_t wanted;                /* the waiter is woken when so many are bound */
	struct fiber_cond enough;
};

/* Room for so many pods: they are named "p-0" and so on. */
void sched_server_init(struct sched_server *s, size_t pods);
/* Watches must be over. */
void sched_server_done(struct sched_server *s);
/* Take the reference. */
void sched_server_node(struct sched_server *s, struct frozen *node);
void sched_server_pod(struct sched_server *s, size_t number, struct frozen *pod);

#endif
