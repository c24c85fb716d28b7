/*
 * monitors: informers of all kinds that discovery lists and that a controller wants to hear of, followed as the list changes.
 */
#ifndef C8S_CONTROLLERS_MONITORS_H
#define C8S_CONTROLLERS_MONITORS_H

#include "base/fiber.h"
#include "controllers/controller.h"
#include "controllers/discovery.h"

/* The objects of one kind. */
struct monitor {
	struct list link;
	struct informer_listener listener;
	struct monitors *all;
	struct informer *informer;
	const struct resource *resource;
	str api_version;              /* "apps/v1", behind it */
	bool found;                   /* by the last discovery */
};

struct monitors {
	struct controller *c;
	bool (*wanted)(const struct served *s);
	/* One of the objects, as a listener is told. Must not suspend. */
	void (*changed)(struct controller *c, struct monitor *m, struct frozen *old, struct frozen *object);
	void (*again)(struct controller *c); /* every 30 seconds, after discovery; may be NULL */
	struct discovery discovery;
	struct list list;             /* of struct monitor */
	struct fiber_cond ready_changed;
	bool ready;                   /* all that existed at the start has been seen, or that took too long */
};

/* Fields up to `again` are the caller's. */
void monitors_init(struct monitors *all);
void monitors_done(struct monitors *all);
/* (suspends, until canceled) */
int monitors_run(struct monitors *all, struct err *err);
/* (suspends) Until they are ready. */
int monitors_wait(struct monitors *all, struct err *err);

#endif
