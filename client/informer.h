/*
 * informer: a copy of the objects of a kind, kept up to date by one list and watch, for all loops of a process that want
 * them. Lists are streamed (sendInitialEvents) where the server can; a watch that breaks goes on where it was; one that
 * is too old (410) begins anew, and what changed or vanished meanwhile is told as if it had been seen. No update is lost,
 * but several changes of one object may be told as one.
 *
 *	struct informers *all = informers_new(client);
 *	struct informer *pods = informers_get(all, TYPE(core_v1, Pod), &(struct informer_options){ .fields = STR("spec.nodeName=n1") });
 *	informer_index(pods, "owner", informer_by_owner);
 *	informer_listen(pods, &my->listener);
 *	if ((r = informers_start(all, err)) == 0)
 *		r = informers_wait(all, err);
 *
 * Everything belongs to one loop. Objects are borrowed from the copy unless referenced.
 */
#ifndef C8S_CLIENT_INFORMER_H
#define C8S_CLIENT_INFORMER_H

#include "base/list.h"
#include "base/omap.h"
#include "client/client.h"

struct informers;
struct informer;

struct informers *informers_new(struct client *c) NONNULL_RESULT;
/* (suspends) Stops them. */
void informers_free(struct informers *all);

struct informer_options {
	str namespace, labels, fields; /* empty: all */
	/* What is kept of an object (in the arena): for those that want less memory; NULL: all of it. */
	struct val (*keep)(struct arena *a, struct val object);
	bool shared;                 /* as in struct client_watch_options */
};

/* The one of this type and these options; made at the first call, and started at once when the others run already. */
struct informer *informers_get(struct informers *all, const struct type *type, const struct informer_options *o) NONNULL_RESULT;
/* (suspends) Ends one, though not all: nobody else may use it, nor listen to it. */
void informers_drop(struct informer *i);
/* Starts all. -ERR_SYSTEM where a fiber cannot be made. */
int informers_start(struct informers *all, struct err *err);
/* (suspends) Until all have seen their first list, and their listeners were told of it. */
int informers_wait(struct informers *all, struct err *err);

/* ---- being told ---- */

struct informer_listener {
	struct list link;
	/*
	 * old: NULL for one that is new; object: NULL for one that is gone (old is its last known state). A resync tells
	 * object == old. Callbacks: must not suspend, usually they add a key to a queue.
	 */
	void (*changed)(struct informer_listener *l, struct frozen *old, struct frozen *object);
	/* All of the first list has been told. May be NULL. */
	void (*synced)(struct informer_listener *l);
};

/* Those that exist already are told at once. */
void informer_listen(struct informer *i, struct informer_listener *l);
void informer_unlisten(struct informer_listener *l);

/* ---- looking ---- */

bool informer_synced(const struct informer *i);
/* Borrowed until the fiber suspends; NULL: none. Keys are "namespace/name" or "name". */
struct frozen *informer_get(const struct informer *i, str key);
size_t informer_count(const struct informer *i);
/* The newest resourceVersion that it has seen; "" before the first list. */
str informer_revision(const struct informer *i);

/* All in the order of keys, from a snapshot: the copy may change meanwhile, and the fiber may suspend. */
struct informer_iter {
	struct omap *snapshot;       /* NULL: nothing */
	struct omap_iter at;
};

/* INFORMER_EACH(pod, informer_each(pods)) gives struct frozen *pod. */
#define INFORMER_EACH(object_, each_)                                                                                    \
	for (CLEANUP(informer_iter_done) struct informer_iter object_##_it = (each_); object_##_it.snapshot;                \
	     informer_iter_done(&object_##_it))                                                                            \
		for (struct frozen *object_; (object_ = informer_next(&object_##_it));)

struct informer_iter informer_each(const struct informer *i);
/* Those that an index has under this value. */
struct informer_iter informer_each_indexed(const struct informer *i, const char *index, str value);
struct frozen *informer_next(struct informer_iter *it);
void informer_iter_done(struct informer_iter *it);

/* Calls add(value, arg) for every value that the object shall be found by. */
typedef void informer_values(struct val object, void (*add)(str value, void *arg), void *arg);
/* Before the informers start, or at any time: those that are there are indexed then. The name is a constant. */
void informer_index(struct informer *i, const char *name, informer_values *values);

/* Ready-made: metadata.namespace, uid of the controlling owner, spec.nodeName. */
informer_values informer_by_namespace, informer_by_owner, informer_by_node;

/* "namespace/name" or "name" of an object, in the arena. */
str object_key(struct arena *a, struct val object);

#endif
