/*
 * controller: one way of writing them.
 *
 *	static const struct controller_kind replica_set = { "replicaset-controller", replica_set_start, 5 };
 *
 * start() takes informers (controller_informer), listens (controller_watch: every change of an object becomes a key in the queue by a
 * function), and sets sync. A sync reads informers, makes a plan, carries it out with the client, and updates the status; an error brings the
 * key back later. Everything is on one loop; several workers per controller, never two on one key.
 */
#ifndef C8S_CONTROLLERS_CONTROLLER_H
#define C8S_CONTROLLERS_CONTROLLER_H

#include "client/client.h"
#include "client/expectations.h"
#include "client/informer.h"
#include "client/recorder.h"
#include "client/work_queue.h"
#include "controllers/controllers.h"
#include "machinery/conditions.h"

struct controller;

struct controller_kind {
	const char *name;                   /* "replicaset-controller" */
	/* Takes informers and listens. Memory of its own hangs on c->state; stop (may be NULL) frees it. */
	int (*start)(struct controller *c, struct err *err);
	unsigned workers;                   /* 0: 5 */
	void (*stop)(struct controller *c);
	int64_t retry_ms, retry_max_ms;     /* of keys that failed: 0: 5 ms, doubling up to 1,000 s */
	bool off;                           /* only when --controllers names it */
	const char *account;                /* its service account, where that has another name ("node-controller"); NULL: name; "": the manager */
	const char *source;                 /* of its events, where that is another ("persistentvolume-controller"); NULL: name */
};

struct controller {
	const struct controller_kind *kind;
	const struct controllers_options *o;
	struct client *client;              /* with its own identity */
	struct informers *informers;        /* shared by all */
	struct recorder *recorder;          /* component: the kind's source */
	struct work_queue *queue;
	/* (suspends) Set by start: looks at one key. Events of the recorder, writes of the client. */
	int (*sync)(struct controller *c, struct arena *a, str key, struct err *err);
	/* (suspends, until canceled) Set by start where there is more than a queue: runs beside it. May be NULL. */
	int (*run)(struct controller *c, struct err *err);
	void *state;
	struct controller_watching *watching; /* of controller_watch */
	struct controller_sync *syncing;      /* of controller_hold: who is at work */
	struct recent *written;               /* of controller_latest */
};

/* The informer of a type (all objects), shared. NULL options: all. */
struct informer *controller_informer(struct controller *c, const struct type *type);

/* Which keys an object's change concerns: controller_add each. old or object may be NULL (new, gone). Must not suspend. */
typedef void controller_keys(struct controller *c, struct frozen *old, struct frozen *object);
/* From now on changes of the informer's objects are told to keys. The listener lives as long as the controller. */
void controller_watch(struct controller *c, struct informer *i, controller_keys *keys);
/* Ready-made: the object's own key; the key of its controlling owner of kind `kind` (in the same namespace). */
controller_keys controller_key_self;
void controller_key_owner(struct controller *c, struct frozen *object, const char *kind);
void controller_add(struct controller *c, str key);
void controller_add_after(struct controller *c, str key, int64_t ms);
/* "namespace" and "name" of a key; a key without a slash has no namespace. */
void controller_split(str key, str *ret_namespace, str *ret_name);
/*
 * The object's tree for as long as the arena of the sync: informers lend objects only until the fiber suspends. Costs a reference; where the
 * arena is not that of a sync, a copy.
 */
struct val controller_hold(struct controller *c, struct arena *a, struct frozen *object);

/* ---- writing ---- */

/*
 * Informers are late: a sync that follows a write may not see it yet, would write the same again, and be refused. This is what the controller
 * has written last of an object that an informer shows, if that is newer, else what it shows. Borrowed as from informers.
 */
struct frozen *controller_latest(struct controller *c, struct frozen *shown);
/* (suspends) client_update, whose result controller_latest knows then. subresource "" or "status". */
int controller_write(struct controller *c, const struct type *type, struct val object, const char *subresource, struct err *err);
/*
 * (suspends) Writes a status (or any change) when it differs: fn makes the new object from the live one (VAL_NONE: nothing to do). First from
 * the informer's copy (or what was written last, if that is newer) by update; at a conflict from a fresh read. subresource "" or "status".
 */
int controller_update(struct controller *c, const struct type *type, struct val object, const char *subresource, client_change *fn, void *arg,
		      struct frozen **ret, struct err *err);
/* Whether the server refused to create something because its namespace is being deleted: nothing will help. */
bool error_is_namespace_ending(const struct err *err);
/* The number of an integer or percentage ("25%" of total, rounded up or down); -1: it is neither. */
int64_t scaled_value(struct val int_or_percent, int64_t total, bool up);
/* An event about an object with this controller as the source. */
#define controller_event(c, about, warning, reason, ...) record((c)->recorder, (about), (warning) ? RECORD_WARNING : RECORD_NORMAL, (reason), __VA_ARGS__)

/* ---- conditions ---- */

/*
 * The list with the condition of that type set, in its place or at the end; the list itself when status, reason and message are as they were.
 * lastTransitionTime moves only with the status, lastUpdateTime (if with_update) always when changed.
 */
struct val condition_set(struct arena *a, struct val conditions, struct val condition, bool with_update);
struct val condition_remove(struct arena *a, struct val conditions, const char *type);
/* Time of now as RFC 3339 seconds, in the arena. */
struct val time_now(struct arena *a);

extern const struct controller_kind *const controller_kinds[]; /* NULL at the end; kinds.c */

#endif
