/*
 * The garbage collector: objects whose owners are all gone are deleted; an object that is deleted in the foreground waits until those
 * that block it are gone, one that is deleted with its dependents orphaned until none refers to it.
 *
 * gc_graph.c keeps who owns whom, of all kinds that discovery lists; keys of the queue are uids behind a letter, 'd' for those that may
 * have to be deleted, 'o' for those whose dependents are to be orphaned. The graph may lag behind the server, so that nothing is done
 * that a fresh read of object and owners does not confirm. After each call that suspends a node is looked up again.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "controllers/controller.h"
#include "controllers/gc_graph.h"
#include "controllers/monitors.h"

enum { FINALIZER_TRIES = 4, FINALIZER_PAUSE_MS = 10 };

struct collector {
	struct controller *c;
	struct gc_graph graph;
	struct monitors monitors;
};

/* ---- what the graph wants ---- */

static void add_key(struct collector *g, char letter, str uid, bool later)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	buf_addc(&b, letter);
	buf_add(&b, uid);
	if (later)
		work_queue_add_again(g->c->queue, buf_str(&b));
	else
		controller_add(g->c, buf_str(&b));
}

static void look(void *arg, str uid) { add_key(arg, 'd', uid, false); }
static void look_later(void *arg, str uid) { add_key(arg, 'd', uid, true); }
static void orphan(void *arg, str uid) { add_key(arg, 'o', uid, false); }

static void misplaced(void *arg, const struct gc_node *n, const struct gc_owner *o)
{
	struct collector *g = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val about = OBJECT(&a, F(kind, VAL_STR(n->id.kind)), F(namespace, VAL_STR(n->id.namespace)), F(name, VAL_STR(n->id.name)),
				  F(uid, VAL_STR(n->id.uid)), F(apiVersion, VAL_STR(n->id.api_version)));
	controller_event(g->c, about, true, "OwnerRefInvalidNamespace",
			 "ownerRef [" STR_FMT "/" STR_FMT ", namespace: " STR_FMT ", name: " STR_FMT ", uid: " STR_FMT
			 "] does not exist in namespace \"" STR_FMT "\"",
			 STR_ARG(o->api_version), STR_ARG(o->kind), STR_ARG(n->id.namespace), STR_ARG(o->name), STR_ARG(o->uid),
			 STR_ARG(n->id.namespace));
}

static const struct gc_hooks hooks = { look, look_later, orphan, misplaced };

/* ---- watching everything ---- */

static void changed(struct controller *c, struct monitor *m, struct frozen *old, struct frozen *object)
{
	struct collector *g = c->state;
	if (object)
		gc_graph_seen(&g->graph, m->api_version, m->resource->kind, old ? old->val : VAL_EMPTY, object->val);
	else
		gc_graph_gone(&g->graph, m->api_version, m->resource->kind, old->val);
}

/* All that can go; but events come and go by themselves. */
static bool wanted(const struct served *s)
{
	const struct resource *r = s->resource;
	bool event = str_eq(r->name, STR("events")) && (!r->group.n || str_eq(r->group, STR("events.k8s.io")));
	return !event && served_can(s, VERB_DELETE | VERB_LIST | VERB_WATCH);
}

/* ---- calls ---- */

static struct gc_identity identity_in(struct arena *a, const struct gc_identity *id)
{
	return (struct gc_identity){ arena_str(a, id->api_version), arena_str(a, id->kind), arena_str(a, id->namespace),
				     arena_str(a, id->name), arena_str(a, id->uid) };
}

/* Where the objects of a reference are. An object of the cluster cannot have an owner in a namespace: -ERR_BAD_REQUEST. */
static int find_place(struct collector *g, const struct gc_identity *id, str namespace, const struct type **ret_type, str *ret_namespace,
		      struct err *err)
{
	struct served s;
	if (!discovery_find(&g->monitors.discovery, id->api_version, id->kind, &s))
		return err_set(err, ERR_CONFLICT, "unable to get REST mapping for " STR_FMT "/" STR_FMT ".", STR_ARG(id->api_version),
			       STR_ARG(id->kind)); /* perhaps later; and nothing to write into the log each time */
	if (served_namespaced(&s) && !namespace.n)
		return err_set(err, ERR_BAD_REQUEST, "cluster-scoped objects cannot refer to namespaced owners");
	*ret_type = s.resource->type;
	*ret_namespace = served_namespaced(&s) ? namespace : STR_NONE;
	return 0;
}

/* (suspends) */
static int get_object(struct collector *g, const struct gc_identity *id, struct frozen **ret, struct err *err)
{
	const struct type *type;
	str namespace;
	int r = find_place(g, id, id->namespace, &type, &namespace, err);
	return r < 0 ? r : client_get(g->c->client, type, namespace, id->name, ret, err);
}

/* (suspends) */
static int patch_object(struct collector *g, const struct gc_identity *id, enum client_patch kind, struct val patch, struct err *err)
{
	const struct type *type;
	str namespace;
	int r = find_place(g, id, id->namespace, &type, &namespace, err);
	return r < 0 ? r : client_patch(g->c->client, type, namespace, id->name, kind, patch, NULL, NULL, err);
}

/* A patch (strategic) of the references, which are told apart by their uids, of this very object. */
static struct val references_patch(struct arena *a, str uid, struct val references)
{
	return OBJECT(a, F(metadata, OBJECT(a, F(uid, VAL_STR(uid)), F(ownerReferences, references))));
}

static struct val drop_reference(struct arena *a, str uid)
{
	return val_put(a, OBJECT(a, F(uid, VAL_STR(uid))), atom_make(a, STR("$patch")), VAL_LIT("delete"));
}

/* (suspends) The object, unless its references have changed since; changes of anything else do not stand in the way. */
static int delete_object(struct collector *g, const struct gc_identity *id, struct val latest, const char *propagation, struct err *err)
{
	struct client_delete_options o = { .grace_s = -1, .uid = id->uid, .revision = val_str(latest, metadata, resourceVersion),
					   .propagation = str_of(propagation) };
	CLEANUP(frozen_unrefp) struct frozen *live = NULL;
	struct err why = ERR_INIT;
	const struct type *type;
	str namespace;
	int r = find_place(g, id, id->namespace, &type, &namespace, err);
	if (r < 0 || (r = client_delete(g->c->client, type, namespace, id->name, &o, err)) != -ERR_CONFLICT)
		return r;
	int got = client_get(g->c->client, type, namespace, id->name, &live, &why);
	if (got == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "%s", why.msg);
	if (got < 0 || !str_eq(val_str(live->val, metadata, uid), id->uid) ||
	    str_eq(val_str(live->val, metadata, resourceVersion), o.revision) ||
	    !val_equal(val_get(live->val, metadata, ownerReferences), val_get(latest, metadata, ownerReferences)))
		return r;
	err_clear(err);
	o.revision = STR_NONE;
	return client_delete(g->c->client, type, namespace, id->name, &o, err);
}

/* (suspends) Once: 0 also when there is nothing to remove. */
static int remove_finalizer_once(struct collector *g, const struct gc_identity *id, str finalizer, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *live = NULL;
	struct val_builder rest = val_builder(&a);
	int r = get_object(g, id, &live, err);
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r < 0)
		return err_wrap(err, r, "cannot finalize owner " STR_FMT, STR_ARG(id->name));
	if (!gc_has_finalizer(live->val, finalizer))
		return 0;
	VAL_EACH(f, val_get(live->val, metadata, finalizers))
		if (!str_eq(val_as_str(*f), finalizer))
			val_add_item(&rest, *f);
	struct val meta = OBJECT(&a, F(resourceVersion, val_get(live->val, metadata, resourceVersion)),
				 F(finalizers, rest.n ? val_end_list(&rest) : VAL_NULL_VALUE));
	r = patch_object(g, id, CLIENT_PATCH_MERGE, OBJECT(&a, F(metadata, meta)), err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int remove_finalizer(struct collector *g, const struct gc_identity *id, str finalizer, struct err *err)
{
	for (int i = 1;; i++) {
		int r = remove_finalizer_once(g, id, finalizer, err);
		if (r != -ERR_CONFLICT || i == FINALIZER_TRIES)
			return r;
		err_clear(err);
		if ((r = fiber_sleep_ms(FINALIZER_PAUSE_MS, err)) < 0)
			return r;
	}
}

/* ---- deleting ---- */

enum reference_is { REFERENCE_SOLID, REFERENCE_DANGLING, REFERENCE_WAITING };

/* (suspends) One of enum reference_is, or the error. */
static int classify(struct collector *g, const struct gc_identity *item, struct val ref, struct err *err)
{
	struct gc_identity owner = { val_str(ref, apiVersion), val_str(ref, kind), STR_NONE, val_str(ref, name), val_str(ref, uid) };
	CLEANUP(frozen_unrefp) struct frozen *live = NULL;
	const struct type *type;
	if (gc_graph_is_absent(&g->graph, &owner))
		return REFERENCE_DANGLING;
	owner.namespace = item->namespace;
	if (gc_graph_is_absent(&g->graph, &owner))
		return REFERENCE_DANGLING;
	int r = find_place(g, &owner, item->namespace, &type, &owner.namespace, err);
	if (r < 0)
		return r;
	r = client_get(g->c->client, type, owner.namespace, owner.name, &live, err);
	if (r == -ERR_NOT_FOUND || (r == 0 && !str_eq(val_str(live->val, metadata, uid), owner.uid))) {
		err_clear(err);
		gc_graph_remember_absent(&g->graph, &owner);
		return REFERENCE_DANGLING;
	}
	if (r < 0)
		return r;
	return val_has(live->val, metadata, deletionTimestamp) && gc_has_finalizer(live->val, STR(GC_FOREGROUND)) ? REFERENCE_WAITING
														  : REFERENCE_SOLID;
}

/* (suspends) References that stand in the way of owners which wait, for they may be waiting for each other. */
static int unblock_references(struct collector *g, struct arena *a, const struct gc_identity *id, struct val references, struct err *err)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(ref, references)
		if (val_bool(*ref, blockOwnerDeletion))
			val_add_item(&b, OBJECT(a, F(uid, val_get(*ref, uid)), F(blockOwnerDeletion, val_of_bool(false))));
	return b.n ? patch_object(g, id, CLIENT_PATCH_STRATEGIC, references_patch(a, id->uid, val_end_list(&b)), err) : 0;
}

/* (suspends) An object that has owners, as it is on the server. */
static int collect(struct collector *g, struct arena *a, const struct gc_identity *id, struct val latest, struct err *err)
{
	struct gc_references count = { 0 };
	struct val references = val_get(latest, metadata, ownerReferences);
	struct val_builder drop = val_builder(a);
	VAL_EACH(ref, references) {
		int is = classify(g, id, *ref, err);
		if (is < 0)
			return is;
		count.solid += is == REFERENCE_SOLID;
		count.dangling += is == REFERENCE_DANGLING;
		count.waiting += is == REFERENCE_WAITING;
		if (is != REFERENCE_SOLID)
			val_add_item(&drop, drop_reference(a, val_str(*ref, uid)));
	}
	const struct gc_node *n = gc_graph_find(&g->graph, id->uid);
	if (!n)
		return 0;
	struct gc_decision d = gc_decide(count, n, latest);
	int r = 0;
	if (d.what == GC_KEEP)
		return 0;
	if (d.what == GC_DROP_REFERENCES)
		return patch_object(g, id, CLIENT_PATCH_STRATEGIC, references_patch(a, id->uid, val_end_list(&drop)), err);
	if (d.unblock && (r = unblock_references(g, a, id, references, err)) < 0)
		return r;
	if (d.unblock) /* that was a change of the references, by ourselves */
		latest = val_without(a, latest, metadata, resourceVersion);
	log_debug("deleting item", KV("kind", id->kind), KV("namespace", id->namespace), KV("name", id->name),
		  KV("propagation", d.propagation));
	return delete_object(g, id, latest, d.propagation, err);
}

/* An owner in the foreground: it goes when nothing blocks it; else what blocks it is looked at. */
static int work_off_dependents(struct collector *g, const struct gc_identity *id, const struct gc_node *n, struct err *err)
{
	if (!gc_node_is_blocked(n))
		return remove_finalizer(g, id, STR(GC_FOREGROUND), err);
	LIST_EACH(struct gc_owner, o, &n->dependents, link)
		if (o->blocks && !o->dependent->deleting_dependents)
			look(g, o->dependent->id.uid);
	return 0;
}

/* (suspends) */
static int attempt_delete(struct collector *g, struct arena *a, str uid, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *latest = NULL;
	struct gc_node *n = gc_graph_find(&g->graph, uid);
	if (!n || (n->being_deleted && !n->deleting_dependents))
		return 0;
	struct gc_identity id = identity_in(a, &n->id);
	int r = get_object(g, &id, &latest, err);
	if (r == 0 && !str_eq(val_str(latest->val, metadata, uid), id.uid))
		r = -ERR_NOT_FOUND;
	if (r == 0) {
		n = gc_graph_find(&g->graph, uid);
		if (!n)
			return 0;
		if (n->deleting_dependents)
			r = work_off_dependents(g, &id, n, err);
		else if (val_len(val_get(latest->val, metadata, ownerReferences)))
			r = collect(g, a, &id, latest->val, err);
	}
	if (r == -ERR_NOT_FOUND) {
		gc_graph_absent(&g->graph, &id);
		return 0;
	}
	if (r == -ERR_BAD_REQUEST) { /* there can be no such owner, now or later */
		log_debug("garbage collector: a reference that cannot be", KV("kind", id.kind), KV("name", id.name), KV("err", err));
		return 0;
	}
	if (r < 0)
		return err_wrap(err, r, "error syncing item " STR_FMT " " STR_FMT "/" STR_FMT, STR_ARG(id.kind), STR_ARG(id.namespace),
				STR_ARG(id.name));
	n = gc_graph_find(&g->graph, uid);
	/* It exists, but no informer has shown it: looked at again until one does, or it might stay in the graph for ever. */
	return n && n->virtual ? err_set(err, ERR_CONFLICT, "not seen yet") : 0;
}

/* ---- orphaning ---- */

/* (suspends) */
static int attempt_orphan(struct collector *g, struct arena *a, str uid, struct err *err)
{
	struct gc_node *n = gc_graph_find(&g->graph, uid);
	if (!n)
		return 0;
	struct gc_identity id = identity_in(a, &n->id);
	struct gc_identity *dependents = ARENA_ARRAY(a, struct gc_identity, n->n_dependents);
	size_t n_dependents = 0;
	LIST_EACH(struct gc_owner, o, &n->dependents, link)
		dependents[n_dependents++] = identity_in(a, &o->dependent->id);
	for (size_t i = 0; i < n_dependents; i++) {
		struct val patch = references_patch(a, dependents[i].uid, LIST(a, drop_reference(a, id.uid)));
		int r = patch_object(g, &dependents[i], CLIENT_PATCH_STRATEGIC, patch, err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return err_wrap(err, r, "orphaning " STR_FMT " " STR_FMT "/" STR_FMT " failed", STR_ARG(dependents[i].kind),
					STR_ARG(dependents[i].namespace), STR_ARG(dependents[i].name));
		err_clear(err);
	}
	return remove_finalizer(g, &id, STR(GC_ORPHAN), err);
}

/* ---- life ---- */

static int sync_node(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct collector *g = c->state;
	str uid = str_skip(key, 1);
	int r = monitors_wait(&g->monitors, err);
	if (r < 0)
		return r;
	return key.p[0] == 'o' ? attempt_orphan(g, a, uid, err) : attempt_delete(g, a, uid, err);
}

static int run(struct controller *c, struct err *err) { return monitors_run(&((struct collector *)c->state)->monitors, err); }

static int start(struct controller *c, struct err *err)
{
	struct collector *g = mem_zalloc(sizeof *g);
	(void)err;
	g->c = c;
	gc_graph_init(&g->graph, &hooks, g);
	g->monitors = (struct monitors){ .c = c, .wanted = wanted, .changed = changed };
	monitors_init(&g->monitors);
	c->state = g;
	c->sync = sync_node;
	c->run = run;
	return 0;
}

static void stop(struct controller *c)
{
	struct collector *g = c->state;
	monitors_done(&g->monitors);
	gc_graph_done(&g->graph);
	free(g);
}

const struct controller_kind controller_garbage_collector = {
	.name = "garbage-collector-controller", .start = start, .workers = 20, .stop = stop, .account = "generic-garbage-collector",
};
