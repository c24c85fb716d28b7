/*
 * A node owns its texts in one block each for its identity and its references. A reference is in the list of its owner's dependents as
 * long as that is in the graph; when the owner goes, its dependents keep their references, unlinked: they are about to be looked at.
 */
#include "controllers/gc_graph.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { ABSENT_MAX = 500 };

void gc_graph_init(struct gc_graph *g, const struct gc_hooks *hooks, void *arg)
{
	*g = (struct gc_graph){ .hooks = hooks, .arg = arg };
	map_init(&g->by_uid);
	recent_init(&g->absent, sizeof(struct recent_entry), ABSENT_MAX, NULL);
}

static str put_text(char **at, str s)
{
	str copy = str_span(*at, s.n);
	if (s.n)
		memcpy(*at, s.p, s.n);
	*at += s.n;
	return copy;
}

/* A copy whose texts follow it, freed by freeing uid's block: api_version stands first. */
static struct gc_identity identity_copy(const struct gc_identity *id)
{
	char *room = mem_alloc(id->api_version.n + id->kind.n + id->namespace.n + id->name.n + id->uid.n + 1), *at = room;
	struct gc_identity copy;
	copy.api_version = put_text(&at, id->api_version);
	copy.kind = put_text(&at, id->kind);
	copy.namespace = put_text(&at, id->namespace);
	copy.name = put_text(&at, id->name);
	copy.uid = put_text(&at, id->uid);
	return copy;
}

static void identity_free(struct gc_identity *id)
{
	free((char *)id->api_version.p);
	*id = (struct gc_identity){ 0 };
}

static bool identity_eq(const struct gc_identity *x, const struct gc_identity *y)
{
	return str_eq(x->uid, y->uid) && str_eq(x->name, y->name) && str_eq(x->namespace, y->namespace) && str_eq(x->kind, y->kind) &&
	       str_eq(x->api_version, y->api_version);
}

static void unlink_owner(struct gc_owner *o)
{
	if (!o->owner)
		return;
	list_remove(&o->link);
	o->owner->n_dependents--;
	o->owner = NULL;
}

static void link_owner(struct gc_owner *o, struct gc_node *owner)
{
	o->owner = owner;
	list_add(&owner->dependents, &o->link);
	owner->n_dependents++;
}

static void node_free(struct gc_node *n)
{
	for (size_t i = 0; i < n->n_owners; i++)
		unlink_owner(&n->owners[i]);
	LIST_EACH_SAFE(struct gc_owner, o, &n->dependents, link)
		unlink_owner(o);
	free(n->owners);
	identity_free(&n->id);
	free(n);
}

void gc_graph_done(struct gc_graph *g)
{
	struct map_iter it = map_iter(&g->by_uid);
	for (struct gc_node *n; (n = map_next(&it, NULL));)
		node_free(n);
	map_done(&g->by_uid);
	recent_done(&g->absent);
}

struct gc_node *gc_graph_find(const struct gc_graph *g, str uid) { return map_get(&g->by_uid, uid); }

static struct gc_node *node_add(struct gc_graph *g, const struct gc_identity *id)
{
	struct gc_node *n = mem_zalloc(sizeof *n);
	n->id = identity_copy(id);
	list_init(&n->dependents);
	(void)map_put(&g->by_uid, n->id.uid, n);
	return n;
}

static void node_rename(struct gc_graph *g, struct gc_node *n, const struct gc_identity *id)
{
	struct gc_identity old = n->id;
	n->id = identity_copy(id);
	(void)map_put(&g->by_uid, n->id.uid, n); /* the key is borrowed from the node, too */
	identity_free(&old);
}

/* ---- what does not exist ---- */

static str absent_key(const struct gc_identity *id, struct buf *b)
{
	const str parts[] = { id->uid, id->api_version, id->kind, id->namespace, id->name };
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		buf_add(b, parts[i]);
		buf_addc(b, '\0');
	}
	return buf_str(b);
}

bool gc_graph_is_absent(struct gc_graph *g, const struct gc_identity *id)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	str key = absent_key(id, &b);
	if (!map_get(&g->absent.by_key, key))
		return false;
	(void)recent_get(&g->absent, key);
	return true;
}

void gc_graph_remember_absent(struct gc_graph *g, const struct gc_identity *id)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	(void)recent_get(&g->absent, absent_key(id, &b));
}

/* ---- references that do not fit ---- */

static bool names(const struct gc_owner *o, const struct gc_identity *id)
{
	return str_eq(o->uid, id->uid) && str_eq(o->name, id->name) && str_eq(o->kind, id->kind) && str_eq(o->api_version, id->api_version);
}

enum { MATCHES = 1, DISAGREES = 2 };

/* What a dependent's references to this uid say of where it is: both, when they differ from each other. */
static int agreement(const struct gc_node *dependent, const struct gc_identity *id)
{
	int all = 0;
	if (id->namespace.n && !str_eq(id->namespace, dependent->id.namespace))
		return DISAGREES;
	for (size_t i = 0; i < dependent->n_owners; i++)
		if (str_eq(dependent->owners[i].uid, id->uid))
			all |= names(&dependent->owners[i], id) ? MATCHES : DISAGREES;
	return all;
}

static void misplaced(struct gc_graph *g, const struct gc_node *dependent, str owner_uid)
{
	for (size_t i = 0; i < dependent->n_owners; i++)
		if (str_eq(dependent->owners[i].uid, owner_uid)) {
			g->hooks->misplaced(g->arg, dependent, &dependent->owners[i]);
			return;
		}
}

/* A node that only references told of has been seen: those who thought it elsewhere are looked at. */
static void node_observed(struct gc_graph *g, struct gc_node *n, const struct gc_identity *id)
{
	n->virtual = false;
	if (identity_eq(&n->id, id))
		return;
	LIST_EACH(struct gc_owner, o, &n->dependents, link) {
		if (!(agreement(o->dependent, id) & DISAGREES))
			continue;
		if (id->namespace.n && !str_eq(o->dependent->id.namespace, id->namespace))
			misplaced(g, o->dependent, id->uid);
		g->hooks->look(g->arg, o->dependent->id.uid);
	}
	node_rename(g, n, id);
}

/* Whether this reference may be wrong about its owner, which is in the graph. */
static bool is_doubtful(struct gc_graph *g, const struct gc_node *n, const struct gc_owner *o)
{
	const struct gc_node *owner = o->owner;
	bool same_place = str_eq(owner->id.namespace, n->id.namespace);
	if (owner->id.namespace.n && !same_place) {
		if (!owner->virtual)
			misplaced(g, n, o->uid);
		return true;
	}
	if (!names(o, &owner->id))
		return true;
	/* Nobody has seen the owner, and what was taken for an object of the cluster may be one of a namespace. */
	return !owner->id.namespace.n && !same_place && owner->virtual;
}

/* Links a new reference; the owner becomes a virtual node when it is not known. True: the reference may be wrong. */
static bool connect_owner(struct gc_graph *g, struct gc_node *n, struct gc_owner *o, bool doubtful)
{
	struct gc_node *owner = gc_graph_find(g, o->uid);
	if (owner) {
		link_owner(o, owner);
		return doubtful || is_doubtful(g, n, o);
	}
	owner = node_add(g, &(struct gc_identity){ o->api_version, o->kind, n->id.namespace, o->name, o->uid });
	owner->virtual = true;
	link_owner(o, owner);
	g->hooks->look(g->arg, owner->id.uid);
	return doubtful;
}

/* ---- references ---- */

static struct gc_owner *owners_of(struct gc_node *n, struct val references)
{
	size_t bytes = val_len(references) * sizeof(struct gc_owner) + 1;
	VAL_EACH(r, references)
		bytes += val_str(*r, apiVersion).n + val_str(*r, kind).n + val_str(*r, name).n + val_str(*r, uid).n;
	struct gc_owner *all = mem_alloc(bytes), *o = all;
	char *at = (char *)(all + val_len(references));
	VAL_EACH(r, references) {
		*o = (struct gc_owner){ .dependent = n, .blocks = val_bool(*r, blockOwnerDeletion) };
		o->api_version = put_text(&at, val_str(*r, apiVersion));
		o->kind = put_text(&at, val_str(*r, kind));
		o->name = put_text(&at, val_str(*r, name));
		o->uid = put_text(&at, val_str(*r, uid));
		o++;
	}
	return all;
}

static bool owners_are(const struct gc_node *n, struct val references)
{
	size_t i = 0;
	if (val_len(references) != n->n_owners)
		return false;
	VAL_EACH(r, references) {
		const struct gc_owner *o = &n->owners[i++];
		if (!str_eq(o->uid, val_str(*r, uid)) || !str_eq(o->name, val_str(*r, name)) || !str_eq(o->kind, val_str(*r, kind)) ||
		    !str_eq(o->api_version, val_str(*r, apiVersion)) || o->blocks != val_bool(*r, blockOwnerDeletion))
			return false;
	}
	return true;
}

/* Owners that a reference blocked and blocks no more may be able to go. */
static void look_at_unblocked(struct gc_graph *g, const struct gc_owner *before, size_t n, const struct map *now)
{
	for (size_t i = 0; i < n; i++) {
		const struct gc_owner *after = map_get(now, before[i].uid);
		if (before[i].blocks && (!after || !after->blocks) && gc_graph_find(g, before[i].uid))
			g->hooks->look(g->arg, before[i].uid);
	}
}

static void set_owners(struct gc_graph *g, struct gc_node *n, struct val references)
{
	if (owners_are(n, references))
		return;
	CLEANUP(map_done) struct map before, now;
	struct gc_owner *old = n->owners;
	size_t n_old = n->n_owners;
	bool doubtful = false;
	map_init(&before);
	map_init(&now);
	n->owners = owners_of(n, references);
	n->n_owners = val_len(references);
	for (size_t i = 0; i < n->n_owners; i++)
		(void)map_put(&now, n->owners[i].uid, &n->owners[i]);
	for (size_t i = 0; i < n_old; i++)
		(void)map_put(&before, old[i].uid, &old[i]);
	look_at_unblocked(g, old, n_old, &now);
	for (size_t i = 0; i < n->n_owners; i++) {
		const struct gc_owner *had = map_get(&before, n->owners[i].uid);
		if (!had)
			doubtful = connect_owner(g, n, &n->owners[i], doubtful);
		else if (had->owner)
			link_owner(&n->owners[i], had->owner);
	}
	for (size_t i = 0; i < n_old; i++)
		unlink_owner(&old[i]);
	free(old);
	if (doubtful)
		g->hooks->look(g->arg, n->id.uid);
}

/* ---- what is seen ---- */

bool gc_has_finalizer(struct val object, str name)
{
	VAL_EACH(f, val_get(object, metadata, finalizers))
		if (str_eq(val_as_str(*f), name))
			return true;
	return false;
}

static bool is_being_deleted(struct val object) { return val_has(object, metadata, deletionTimestamp); }

/* Its deletion, with this finalizer, is new. */
static bool deletion_starts(struct val old, struct val object, str finalizer)
{
	bool has = is_being_deleted(object) && gc_has_finalizer(object, finalizer);
	return has && !(is_being_deleted(old) && gc_has_finalizer(old, finalizer));
}

static void look_at_transitions(struct gc_graph *g, struct gc_node *n, struct val old, struct val object)
{
	if (deletion_starts(old, object, STR(GC_ORPHAN))) {
		g->hooks->orphan(g->arg, n->id.uid);
		return;
	}
	if (!deletion_starts(old, object, STR(GC_FOREGROUND)))
		return;
	n->deleting_dependents = true;
	LIST_EACH(struct gc_owner, o, &n->dependents, link)
		g->hooks->look(g->arg, o->dependent->id.uid);
	g->hooks->look(g->arg, n->id.uid);
}

static struct gc_identity identity_of(str api_version, str kind, struct val object)
{
	return (struct gc_identity){ api_version, kind, val_str(object, metadata, namespace), val_str(object, metadata, name),
				     val_str(object, metadata, uid) };
}

void gc_graph_seen(struct gc_graph *g, str api_version, str kind, struct val old, struct val object)
{
	struct gc_identity id = identity_of(api_version, kind, object);
	if (val_exists(old) && !str_eq(val_str(old, metadata, uid), id.uid)) { /* another one of that name, between two looks */
		gc_graph_gone(g, api_version, kind, old);
		old = VAL_EMPTY;
	}
	struct gc_node *n = gc_graph_find(g, id.uid);
	if (!n)
		n = node_add(g, &id);
	else if (n->virtual)
		node_observed(g, n, &id);
	set_owners(g, n, val_get(object, metadata, ownerReferences));
	n->being_deleted |= is_being_deleted(object);
	n->deleting_dependents |= is_being_deleted(object) && gc_has_finalizer(object, STR(GC_FOREGROUND));
	look_at_transitions(g, n, old, object);
}

static void node_remove(struct gc_graph *g, struct gc_node *n, const struct gc_identity *id)
{
	(void)map_remove(&g->by_uid, n->id.uid);
	if (n->n_dependents)
		gc_graph_remember_absent(g, id);
	LIST_EACH(struct gc_owner, o, &n->dependents, link)
		g->hooks->look(g->arg, o->dependent->id.uid);
	for (size_t i = 0; i < n->n_owners; i++) {
		const struct gc_node *owner = gc_graph_find(g, n->owners[i].uid);
		if (owner && owner->deleting_dependents)
			g->hooks->look(g->arg, owner->id.uid);
	}
	node_free(n);
}

void gc_graph_gone(struct gc_graph *g, str api_version, str kind, struct val object)
{
	struct gc_identity id = identity_of(api_version, kind, object);
	struct gc_node *n = gc_graph_find(g, id.uid);
	if (!n)
		return;
	if (n->virtual)
		node_observed(g, n, &id);
	node_remove(g, n, &id);
}

/* ---- what the server does not have ---- */

static int by_reference(const struct gc_identity *x, const struct gc_identity *y)
{
	int r = str_cmp(x->kind, y->kind);
	r = r ? r : str_cmp(x->api_version, y->api_version);
	r = r ? r : str_cmp(x->namespace, y->namespace);
	r = r ? r : str_cmp(x->name, y->name);
	return r ? r : str_cmp(x->uid, y->uid);
}

/*
 * Another place where the object may be according to its dependents: the next one after the one that is known to be empty, around the end.
 * All are visited in turn that way.
 */
static bool other_identity(const struct gc_node *n, const struct gc_identity *absent, struct gc_identity *ret)
{
	struct gc_identity first, next;
	bool has_first = false, has_next = false;
	LIST_EACH(struct gc_owner, o, &n->dependents, link) {
		struct gc_identity id = { o->api_version, o->kind, o->dependent->id.namespace, o->name, o->uid };
		bool same_kind = str_eq(id.api_version, absent->api_version) && str_eq(id.kind, absent->kind);
		if (!absent->namespace.n && same_kind)
			id.namespace = STR_NONE; /* objects of that kind are in no namespace */
		if (identity_eq(&id, absent))
			continue;
		if (!has_first || by_reference(&id, &first) < 0)
			first = id;
		has_first = true;
		if (by_reference(absent, &id) < 0 && (!has_next || by_reference(&id, &next) < 0)) {
			next = id;
			has_next = true;
		}
	}
	if (has_first)
		*ret = has_next ? next : first;
	return has_first;
}

/* Those dependents that are right about its place lose it. */
static void look_at_matching(struct gc_graph *g, const struct gc_node *n, const struct gc_identity *id)
{
	bool any = false;
	LIST_EACH(struct gc_owner, o, &n->dependents, link) {
		if (!(agreement(o->dependent, id) & MATCHES))
			continue;
		if (!any)
			gc_graph_remember_absent(g, id);
		any = true;
		g->hooks->look(g->arg, o->dependent->id.uid);
	}
}

static bool has_disagreeing(const struct gc_node *n, const struct gc_identity *id)
{
	LIST_EACH(struct gc_owner, o, &n->dependents, link)
		if (agreement(o->dependent, id) & DISAGREES)
			return true;
	return false;
}

void gc_graph_absent(struct gc_graph *g, const struct gc_identity *id)
{
	struct gc_node *n = gc_graph_find(g, id->uid);
	struct gc_identity other;
	if (!n)
		return;
	bool same = identity_eq(&n->id, id);
	if (n->virtual ? !has_disagreeing(n, id) : same) {
		struct gc_identity gone = identity_copy(id); /* it may be the node's own */
		node_remove(g, n, &gone);
		identity_free(&gone);
		return;
	}
	look_at_matching(g, n, id);
	if (n->virtual && same && other_identity(n, id, &other)) {
		node_rename(g, n, &other);
		g->hooks->look_later(g->arg, n->id.uid);
	}
}

/* ---- decisions ---- */

bool gc_node_is_blocked(const struct gc_node *n)
{
	LIST_EACH(struct gc_owner, o, &n->dependents, link)
		if (o->blocks)
			return true;
	return false;
}

static bool has_waiting_dependent(const struct gc_node *n)
{
	LIST_EACH(struct gc_owner, o, &n->dependents, link)
		if (o->dependent->deleting_dependents)
			return true;
	return false;
}

struct gc_decision gc_decide(struct gc_references r, const struct gc_node *n, struct val object)
{
	if (r.solid)
		return (struct gc_decision){ .what = r.dangling || r.waiting ? GC_DROP_REFERENCES : GC_KEEP };
	if (!r.dangling && !r.waiting)
		return (struct gc_decision){ .what = GC_KEEP };
	struct gc_decision d = { .what = GC_DELETE, .propagation = "Background" };
	if (r.waiting && n->n_dependents) {
		d.propagation = "Foreground";
		d.unblock = has_waiting_dependent(n);
	} else if (gc_has_finalizer(object, STR(GC_ORPHAN))) {
		d.propagation = "Orphan";
	} else if (gc_has_finalizer(object, STR(GC_FOREGROUND))) {
		d.propagation = "Foreground";
	}
	return d;
}
