/*
 * link: the way of one client to the API server of a simulation, with what can go wrong on it. Calls take time, fail before or after they were
 * done, and break when the server ends; watches break, and end with 410; while a link is cut nothing passes. A write that nobody waits for any
 * more can still arrive.
 */
#ifndef C8S_SIMULATION_LINK_H
#define C8S_SIMULATION_LINK_H

#include "apiserver/request.h"
#include "base/fiber.h"
#include "client/client.h"
#include "simulation/dice.h"

/* How often, in 1/10000 of all calls or events. */
struct link_faults {
	unsigned refused, failed;        /* the call is not done (503, 429); it is done, and says 500 or nothing */
	unsigned closed, expired;        /* a watch ends at an event; it ends with 410 */
	int64_t latency_ns;              /* of a call, at most */
};

/* The end that all links of a simulation lead to. */
struct hub {
	struct apiserver *server;        /* NULL: it is down */
	struct dice *dice;
	struct link_faults faults;
	struct list links, calls, watches;
	struct fiber_cond drained;       /* no call and no watch is left */
	struct fiber_group late;         /* writes on the way whose callers have given up */
};

struct client_request; /* client/client_priv.h */

void hub_init(struct hub *h, struct dice *dice);
/* (suspends) The server is down; nothing is on the way any more. To be called before links are freed. */
void hub_done(struct hub *h);
/* Whether what the calling fiber does is for a caller that has given up, of which it may know nothing. */
bool hub_is_late(const struct hub *h);
/* (suspends) The server is about to end: calls that are under way break, whatever they were at, and so do watches. */
void hub_down(struct hub *h);
/* The new one. */
void hub_up(struct hub *h, struct apiserver *s);

/* A client as this user; groups is NULL-ended. Free it with client_free. */
struct client *link_new(struct hub *h, const char *user, const char *const *groups, const char *agent) NONNULL_RESULT;
/* Nothing passes until it is mended. */
void link_cut(struct client *c, bool cut);
/* The process at this end is being killed: nothing more is sent. */
void link_die(struct client *c, bool dead);
/* What it writes never arrives after it has given up. */
void link_in_time(struct client *c);

/* Told of every call when it is made; and of one that has failed so that nobody knows whether it was done. Each may be NULL. */
struct link_listener {
	void (*asks)(void *arg, const struct client_request *q);
	void (*fails)(void *arg, const struct client_request *q);
	void *arg;
};

void link_listen(struct client *c, struct link_listener listener);

#endif
