/*
 * What the files of the service share. All of it belongs to one loop: fibers of calls, of exits and of streams take turns, and
 * hold an object that they wait with by a reference.
 *
 * On disk:
 *	<root>/images, <root>/snapshots       image.h, snapshot.h
 *	<root>/sandboxes/<id>/                sandbox.json, the bundle of its first process, hosts, hostname, resolv.conf
 *	<root>/containers/<id>/               container.json, the bundle, volumes of the image
 *	<state>/pods/<id>/                    the monitor's (monitor.h); shm: what the pod's containers share
 *	<state>/netns/<id>                    the network namespace, mounted
 *	<state>/userns/<id>                   the user namespace, mounted, of a pod that has one
 *	<state>/oci/                          states of OCI containers
 */
#ifndef C8S_RUNTIME_RUNTIME_PRIV_H
#define C8S_RUNTIME_RUNTIME_PRIV_H

#include "base/arena.h"
#include "base/fiber.h"
#include "base/map.h"
#include "cni/cni.h"
#include "runtime/image.h"
#include "runtime/monitor.h"
#include "runtime/runtime.h"
#include "runtime/snapshot.h"

enum { RUNTIME_ID = 64 };                  /* hexadecimal digits of an id */

struct runtime {
	struct runtime_options o;
	struct images *images;
	struct snapshots *snapshots;
	struct cni *cni;
	struct stream_server *streams;
	struct list sandboxes, containers;     /* oldest first */
	bool apparmor_loaded;                  /* the default profile, since this runtime began */
	struct map sandbox_ids, container_ids;
	struct map names;                      /* of sandboxes and containers, kept from the moment that they are being made */
	struct map execs;                      /* processes that somebody waits for */
	struct list followers;                 /* events.h */
	struct fiber_group work;               /* what goes on after an answer */
	struct usage_cache *usage;             /* usage.h */
	unsigned pulls;                        /* under way */
	bool collect_wanted, collecting;
	int lock_fd;
	bool userns;                           /* pods can have user namespaces; else why they cannot: */
	struct err no_userns;
};

/* The handler of that name, or NULL. */
const struct runtime_handler *runtime_handler_find(const struct runtime *r, str name);
/* A new id. */
void runtime_id_make(char ret[RUNTIME_ID + 1]);
/* A text with a '\0', in the arena. */
const char *runtime_text(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The value of an enum of CRI, of which the first is not written: "" for it. */
static inline bool runtime_is(struct val v, const char *name) { return str_eq(val_as_str(v), str_of(name)); }

/* Names: false when somebody has it. */
bool runtime_name_reserve(struct runtime *r, str name, const char *id, struct err *err);
void runtime_name_release(struct runtime *r, str name);

/* Collects images' blobs and layers that nothing needs, in the background and not while something is being pulled. */
void runtime_collect(struct runtime *r);

/* ---- one at a time ---- */

struct turn {
	bool held;
	struct fiber_cond given;
};

static inline void turn_init(struct turn *t, const char *what)
{
	t->held = false;
	fiber_cond_init(&t->given, what);
}

/* (suspends) */
static inline int turn_take(struct turn *t, struct err *err)
{
	while (t->held) {
		int r = fiber_cond_wait(&t->given, err);
		if (r < 0)
			return r;
	}
	t->held = true;
	return 0;
}

static inline void turn_give(struct turn *t)
{
	t->held = false;
	fiber_cond_signal(&t->given);
}

#endif
