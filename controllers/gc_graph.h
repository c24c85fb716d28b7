/*
 * gc_graph: who owns whom, of all objects that were seen, by their uids. It knows of owners that nobody has seen, too: what only a
 * reference tells of is a virtual node, until an informer shows the object (then it is a node like others) or the server says that there
 * is none (gc_graph_absent). References may be wrong about name, kind or namespace of the uid that they name; those that disagree with
 * what was seen are looked at one by one.
 *
 * No I/O and no clock: what is to be done is told by hooks, which must not change the graph. Nothing here suspends; nodes are borrowed
 * until the graph is changed.
 */
#ifndef C8S_CONTROLLERS_GC_GRAPH_H
#define C8S_CONTROLLERS_GC_GRAPH_H

#include "base/list.h"
#include "base/map.h"
#include "client/recent.h"
#include "codec/val.h"

#define GC_ORPHAN "orphan"
#define GC_FOREGROUND "foregroundDeletion"

struct gc_node;

/* Which object. namespace is empty for one of the cluster. */
struct gc_identity {
	str api_version, kind, namespace, name, uid;
};

/* A reference to an owner. */
struct gc_owner {
	struct list link;             /* in the owner's dependents, while the owner is in the graph */
	struct gc_node *dependent;    /* whose reference it is */
	struct gc_node *owner;        /* NULL: it is not linked */
	str api_version, kind, name, uid;
	bool blocks;                  /* blockOwnerDeletion */
};

struct gc_node {
	struct gc_identity id;
	struct gc_owner *owners;
	size_t n_owners;
	struct list dependents;       /* of struct gc_owner */
	size_t n_dependents;
	bool virtual;                 /* known by references only */
	bool being_deleted;           /* has a deletionTimestamp */
	bool deleting_dependents;     /* and the finalizer foregroundDeletion */
};

struct gc_hooks {
	/* Whether it is to be deleted, or an owner that waits for it may go, should be looked at. */
	void (*look)(void *arg, str uid);
	/* The same a while later. */
	void (*look_later)(void *arg, str uid);
	/* Its dependents are to lose their references to it. */
	void (*orphan)(void *arg, str uid);
	/* The dependent names an owner that is in another namespace. */
	void (*misplaced)(void *arg, const struct gc_node *dependent, const struct gc_owner *reference);
};

struct gc_graph {
	struct map by_uid;            /* of struct gc_node */
	struct recent absent;         /* identities that are known not to exist */
	const struct gc_hooks *hooks;
	void *arg;
};

void gc_graph_init(struct gc_graph *g, const struct gc_hooks *hooks, void *arg);
void gc_graph_done(struct gc_graph *g);

struct gc_node *gc_graph_find(const struct gc_graph *g, str uid);

/* An informer shows the object. old: what it was before, VAL_NONE if it is new. */
void gc_graph_seen(struct gc_graph *g, str api_version, str kind, struct val old, struct val object);
/* And shows that it is gone. */
void gc_graph_gone(struct gc_graph *g, str api_version, str kind, struct val object);
/* The server says that there is no such object. */
void gc_graph_absent(struct gc_graph *g, const struct gc_identity *id);

/* What is remembered of objects that do not exist (of the last 500 of them). */
bool gc_graph_is_absent(struct gc_graph *g, const struct gc_identity *id);
void gc_graph_remember_absent(struct gc_graph *g, const struct gc_identity *id);

/* ---- what becomes of an object ---- */

/* How many of its references are to owners that exist, that do not, and that wait for their dependents to be deleted. */
struct gc_references {
	size_t solid, dangling, waiting;
};

enum gc_what {
	GC_KEEP,
	GC_DROP_REFERENCES,           /* to all but the solid owners */
	GC_DELETE,
};

struct gc_decision {
	enum gc_what what;
	const char *propagation;      /* of GC_DELETE */
	/* Its references should stop blocking first: an owner and a dependent of it both wait, perhaps in a circle. */
	bool unblock;
};

/* object: as it is on the server. */
struct gc_decision gc_decide(struct gc_references r, const struct gc_node *n, struct val object);
/* Whether some dependent keeps it from going. */
bool gc_node_is_blocked(const struct gc_node *n);
bool gc_has_finalizer(struct val object, str name);

#endif
