/*
 * The Node authorizer: a kubelet reads what the pods on its node need, writes what it is to report, and nothing else.
 * What leads from an object to a node is either said by the object itself (a pod, an attachment, a slice), which is then
 * looked at in the cache, or counted by node_graph.h, which follows the cache's events of pods and volumes. Those are
 * taken in when they come, and once more before a decision, so that a decision sees what the cache has.
 *
 * Whatever is not allowed here may still be allowed by somebody else: there is no decision but "yes" and "no opinion".
 */
#include "apiserver/authz/node.h"

#include <stdlib.h>

#include "apiserver/authz/authz_priv.h"
#include "apiserver/authz/node_graph.h"
#include "apiserver/cache.h"
#include "base/mem.h"
#include "codec/atoms.h"

#define USER_PREFIX STR("system:node:")
#define NODE_GROUP STR("system:nodes")
#define LEASE_NAMESPACE "kube-node-lease"

struct follower {
	struct cache_watcher watcher;
	struct node *node;
	void (*take)(struct node_graph *g, struct val before, struct val after);
};

struct node {
	struct apiserver *server;
	struct node_graph *graph;     /* NULL: not made yet */
	struct follower pods, volumes;
};

bool user_is_node(const struct user *u, str *ret_name)
{
	bool member = false;
	for (size_t i = 0; i < u->n_groups; i++)
		member = member || str_eq(u->groups[i], NODE_GROUP);
	if (!member || !str_starts(u->name, USER_PREFIX))
		return false;
	*ret_name = str_skip(u->name, USER_PREFIX.n);
	return true;
}

/* ---- the graph, kept up to date ---- */

static void take_events(struct follower *f)
{
	const struct cache_event *e;
	while (f->watcher.kind && (e = cache_watch_next(&f->watcher)))
		f->take(f->node->graph, e->before ? e->before->val : VAL_EMPTY,
			e->type == CACHE_DELETED ? VAL_EMPTY : e->object->val);
}

static void wake(struct cache_watcher *w)
{
	take_events(CONTAINER_OF(w, struct follower, watcher));
}

static int follow(struct node *n, struct follower *f, str resource, struct err *err)
{
	struct kind *kind = kinds_find(&n->server->kinds, STR_NONE, resource);
	struct omap_iter it;
	struct object *o;
	if (!kind)
		return 0;
	omap_seek(&it, kind->objects, STR_NONE);
	while ((o = omap_next(&it, NULL)))
		f->take(n->graph, VAL_EMPTY, o->val);
	int64_t seen = MAX(kind->changed, kind->floor);
	return cache_watch_begin(kind, MAX(cache_revision(n->server->cache), seen), &f->watcher, err);
}

static void forget(struct node *n)
{
	cache_watch_end(&n->pods.watcher);
	cache_watch_end(&n->volumes.watcher);
	node_graph_free(TAKE(n->graph));
	n->pods = (struct follower){ .watcher.wake = wake, .node = n, .take = node_graph_pod };
	n->volumes = (struct follower){ .watcher.wake = wake, .node = n, .take = node_graph_volume };
}

/* Afterwards the graph is what the cache is. It is made anew when the cache was loaded anew. */
static int catch_up(struct node *n, struct err *err)
{
	if (n->graph) {
		take_events(&n->pods);
		take_events(&n->volumes);
		if (!n->pods.watcher.ended && !n->volumes.watcher.ended)
			return 0;
		forget(n);
	}
	n->graph = node_graph_new();
	int r = follow(n, &n->pods, STR("pods"), err);
	if (r == 0)
		r = follow(n, &n->volumes, STR("persistentvolumes"), err);
	if (r < 0)
		forget(n);
	return r;
}

/* ---- from an object to the node ---- */

enum path {
	FROM_SECRET, FROM_CONFIG_MAP, FROM_SERVICE_ACCOUNT, FROM_RESOURCE_CLAIM, FROM_VOLUME_CLAIM, /* as enum node_reach */
	FROM_VOLUME, FROM_POD, FROM_ATTACHMENT, FROM_SLICE,
};

struct question {
	struct node *self;
	struct arena *arena;
	const struct authz_attributes *what;
	str node;
	str reason;
	struct err *err;
};

static struct val stored(const struct question *q)
{
	const struct authz_attributes *w = q->what;
	struct kind *kind = kinds_find(&q->self->server->kinds, w->group, w->resource);
	if (!kind)
		return VAL_EMPTY;
	str key = w->name;
	if (kind->namespaced)
		key = arena_printf(q->arena, STR_FMT "/" STR_FMT, STR_ARG(w->namespace), STR_ARG(w->name));
	struct object *o = cache_get(kind, key);
	return o ? o->val : VAL_EMPTY;
}

static bool leads(const struct question *q, enum path from)
{
	const struct authz_attributes *w = q->what;
	if (from < FROM_VOLUME)
		return node_graph_reaches(q->self->graph, (enum node_reach)from, w->namespace, w->name, q->node);
	struct val object = stored(q);
	if (from != FROM_VOLUME)
		return str_eq(val_str(object, spec, nodeName), q->node);
	struct val claim = val_get(object, spec, claimRef);
	return val_exists(claim) &&
	       node_graph_reaches(q->self->graph, REACH_VOLUME_CLAIM, val_str(claim, namespace), val_str(claim, name), q->node);
}

static int no(struct question *q, const char *reason)
{
	q->reason = str_of(reason);
	return AUTHZ_NO_OPINION;
}

/*
 * (suspends) Yes if something leads from the object to the node. Another server may just have bound the pod: before it
 * says no it makes sure that the cache has what the store has.
 */
static int by_path(struct question *q, enum path from)
{
	int r = catch_up(q->self, q->err);
	if (r < 0)
		return r;
	if (!leads(q, from)) {
		if ((r = cache_wait_current(q->self->server->cache, q->err)) < 0 || (r = catch_up(q->self, q->err)) < 0)
			return r;
		if (!leads(q, from)) {
			q->reason = arena_printf(q->arena, "no relationship found between node '" STR_FMT "' and this object",
						 STR_ARG(q->node));
			return AUTHZ_NO_OPINION;
		}
	}
	return AUTHZ_ALLOW;
}

/* ---- verbs and selectors ---- */

enum {
	VERBS_READ = VERB_GET | VERB_LIST | VERB_WATCH,
	VERBS_CHANGE = VERB_UPDATE | VERB_PATCH,
	VERBS_OWN = VERB_GET | VERB_CREATE | VERBS_CHANGE | VERB_DELETE,
};

/* One of enum verb, or 0. */
static unsigned verb_of(const struct question *q)
{
	static const struct {
		str name;
		enum verb verb;
	} verbs[] = {
		{ STR_INIT("get"), VERB_GET }, { STR_INIT("list"), VERB_LIST }, { STR_INIT("watch"), VERB_WATCH },
		{ STR_INIT("create"), VERB_CREATE }, { STR_INIT("update"), VERB_UPDATE }, { STR_INIT("patch"), VERB_PATCH },
		{ STR_INIT("delete"), VERB_DELETE }, { STR_INIT("deletecollection"), VERB_DELETE_COLLECTION },
	};
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (str_eq(q->what->verb, verbs[i].name))
			return verbs[i].verb;
	return 0;
}

/* Does the field selector ask for nothing but what belongs to the node? */
static bool selects_own(const struct question *q)
{
	struct field_selector s;
	if (!q->what->field_selector.n || field_selector_parse(q->arena, q->what->field_selector, &s, NULL) < 0)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (str_eq(s.terms[i].field, STR("spec.nodeName")) && !s.terms[i].negated &&
		    str_eq(s.terms[i].value, q->node))
			return true;
	return false;
}

/* ---- rules of resources ---- */

static int by_name(struct question *q, enum path from)
{
	return q->what->name.n ? by_path(q, from) : no(q, "No Object name found");
}

static int read_object(struct question *q, enum path from)
{
	if (!(verb_of(q) & VERBS_READ))
		return no(q, "can only read resources of this type");
	if (q->what->subresource.n)
		return no(q, "cannot read subresource");
	if (!q->what->namespace.n)
		return no(q, "can only read namespaced object of this type");
	return by_name(q, from);
}

static int get_object(struct question *q, enum path from)
{
	if (verb_of(q) != VERB_GET)
		return no(q, "can only get individual resources of this type");
	if (q->what->subresource.n)
		return no(q, "cannot get subresource");
	return by_name(q, from);
}

static int volume_claim(struct question *q, enum path from)
{
	if (!str_eq(q->what->subresource, STR("status")))
		return get_object(q, from);
	if (!(verb_of(q) & VERBS_CHANGE))
		return no(q, "can only get/update/patch this type");
	return by_name(q, from);
}

static int service_account(struct question *q, enum path from)
{
	const struct authz_attributes *w = q->what;
	if (verb_of(q) == VERB_GET && !w->subresource.n)
		return read_object(q, from);
	if (verb_of(q) != VERB_CREATE || !w->name.n)
		return no(q, "can only create tokens for individual service accounts");
	if (!str_eq(w->subresource, STR("token")))
		return no(q, "can only create token subresource of serviceaccount");
	return by_path(q, from);
}

/* The name of what is created is not known yet: NodeRestriction looks at it. */
static int lease(struct question *q, enum path from)
{
	(void)from;
	if (!(verb_of(q) & VERBS_OWN))
		return no(q, "can only get, create, update, patch, or delete a node lease");
	if (!str_eq(q->what->namespace, STR(LEASE_NAMESPACE)))
		return no(q, "can only access leases in the \"" LEASE_NAMESPACE "\" system namespace");
	if (verb_of(q) != VERB_CREATE && !str_eq(q->what->name, q->node))
		return no(q, "can only access node lease with the same name as the requesting node");
	return AUTHZ_ALLOW;
}

static int csi_node(struct question *q, enum path from)
{
	(void)from;
	if (!(verb_of(q) & VERBS_OWN))
		return no(q, "can only get, create, update, patch, or delete a CSINode");
	if (q->what->subresource.n)
		return no(q, "cannot authorize CSINode subresources");
	if (verb_of(q) != VERB_CREATE && !str_eq(q->what->name, q->node))
		return no(q, "can only access CSINode with the same name as the requesting node");
	return AUTHZ_ALLOW;
}

static int slice(struct question *q, enum path from)
{
	unsigned verb = verb_of(q);
	if (q->what->subresource.n)
		return no(q, "cannot authorize ResourceSlice subresources");
	if (verb == VERB_CREATE)
		return AUTHZ_ALLOW;
	if (verb & (VERB_GET | VERB_UPDATE | VERB_PATCH | VERB_DELETE))
		return by_name(q, from);
	if (!verb)
		return no(q, "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, "
			     "delete, deletecollection");
	return selects_own(q) ? AUTHZ_ALLOW :
				no(q, "can only list/watch/deletecollection resourceslices with nodeName field selector");
}

/* By name, not by the graph: a kubelet looks for its Node before it makes it. */
static int node_object(struct question *q, enum path from)
{
	(void)from;
	unsigned verb = verb_of(q);
	str name = q->what->name, sub = q->what->subresource;
	if (verb & VERBS_CHANGE && (!sub.n || str_eq(sub, STR("status"))))
		return AUTHZ_ALLOW;
	if (sub.n)
		return AUTHZ_NO_OPINION;
	if (verb == VERB_CREATE)
		return AUTHZ_ALLOW;
	if (!(verb & VERBS_READ))
		return AUTHZ_NO_OPINION;
	if (str_eq(name, q->node))
		return AUTHZ_ALLOW;
	str which = name.n ? arena_printf(q->arena, "'" STR_FMT "'", STR_ARG(name)) : STR("all nodes");
	q->reason = arena_printf(q->arena, "node '" STR_FMT "' cannot read " STR_FMT ", only its own Node object",
				 STR_ARG(q->node), STR_ARG(which));
	return AUTHZ_NO_OPINION;
}

static int pod(struct question *q, enum path from)
{
	unsigned verb = verb_of(q);
	str sub = q->what->subresource;
	if (str_eq(sub, STR("status")))
		return verb & VERBS_CHANGE ? AUTHZ_ALLOW : AUTHZ_NO_OPINION;
	if (str_eq(sub, STR("eviction")))
		return verb == VERB_CREATE ? AUTHZ_ALLOW : AUTHZ_NO_OPINION;
	if (sub.n)
		return AUTHZ_NO_OPINION;
	if (verb == VERB_GET)
		return get_object(q, from);
	if (verb & (VERB_CREATE | VERB_DELETE))
		return AUTHZ_ALLOW;
	if (!(verb & (VERB_LIST | VERB_WATCH)))
		return AUTHZ_NO_OPINION;
	if (selects_own(q))
		return AUTHZ_ALLOW;
	return q->what->name.n ? by_path(q, from) : no(q, "can only list/watch pods with spec.nodeName field selector");
}

/* Kubelets ask for these only with a feature that is off. */
static int nothing(struct question *q, enum path from)
{
	(void)q, (void)from;
	return AUTHZ_NO_OPINION;
}

static const struct rule {
	str group, resource;
	int (*decide)(struct question *q, enum path from);
	enum path from;
} subdivided[] = {
	{ STR_INIT(""), STR_INIT("secrets"), read_object, FROM_SECRET },
	{ STR_INIT(""), STR_INIT("configmaps"), read_object, FROM_CONFIG_MAP },
	{ STR_INIT(""), STR_INIT("persistentvolumeclaims"), volume_claim, FROM_VOLUME_CLAIM },
	{ STR_INIT(""), STR_INIT("persistentvolumes"), get_object, FROM_VOLUME },
	{ STR_INIT("resource.k8s.io"), STR_INIT("resourceclaims"), get_object, FROM_RESOURCE_CLAIM },
	{ STR_INIT("storage.k8s.io"), STR_INIT("volumeattachments"), get_object, FROM_ATTACHMENT },
	{ STR_INIT(""), STR_INIT("serviceaccounts"), service_account, FROM_SERVICE_ACCOUNT },
	{ STR_INIT("coordination.k8s.io"), STR_INIT("leases"), lease, 0 },
	{ STR_INIT("storage.k8s.io"), STR_INIT("csinodes"), csi_node, 0 },
	{ STR_INIT("resource.k8s.io"), STR_INIT("resourceslices"), slice, FROM_SLICE },
	{ STR_INIT(""), STR_INIT("nodes"), node_object, 0 },
	{ STR_INIT(""), STR_INIT("pods"), pod, FROM_POD },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("podcertificaterequests"), nothing, 0 },
};

/* What all nodes may do alike. */
static const struct {
	str group, resource;
	unsigned verbs;
	const char *gate; /* that must be on; NULL: none */
} shared[] = {
	{ STR_INIT("authentication.k8s.io"), STR_INIT("tokenreviews"), VERB_CREATE, NULL },
	{ STR_INIT("authorization.k8s.io"), STR_INIT("subjectaccessreviews"), VERB_CREATE, NULL },
	{ STR_INIT("authorization.k8s.io"), STR_INIT("localsubjectaccessreviews"), VERB_CREATE, NULL },
	{ STR_INIT(""), STR_INIT("services"), VERBS_READ, NULL },
	{ STR_INIT(""), STR_INIT("events"), VERB_CREATE | VERBS_CHANGE, NULL },
	{ STR_INIT("events.k8s.io"), STR_INIT("events"), VERB_CREATE | VERBS_CHANGE, NULL },
	{ STR_INIT(""), STR_INIT("endpoints"), VERB_GET, NULL },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("certificatesigningrequests"), VERB_CREATE | VERBS_READ, NULL },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("clustertrustbundles"), VERBS_READ, "ClusterTrustBundle" },
	{ STR_INIT("storage.k8s.io"), STR_INIT("csidrivers"), VERBS_READ, NULL },
	{ STR_INIT("node.k8s.io"), STR_INIT("runtimeclasses"), VERBS_READ, NULL },
};

static int decide_resource(struct question *q)
{
	const struct authz_attributes *w = q->what;
	for (size_t i = 0; i < ARRAY_LEN(subdivided); i++)
		if (str_eq(w->resource, subdivided[i].resource) && str_eq(w->group, subdivided[i].group))
			return subdivided[i].decide(q, subdivided[i].from);
	for (size_t i = 0; i < ARRAY_LEN(shared) && !w->subresource.n; i++)
		if (str_eq(w->resource, shared[i].resource) && str_eq(w->group, shared[i].group))
			return verb_of(q) & shared[i].verbs && apiserver_gate(q->self->server, shared[i].gate) ? AUTHZ_ALLOW : AUTHZ_NO_OPINION;
	return AUTHZ_NO_OPINION;
}

/* ---- the way ---- */

static int decide(void *self, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err)
{
	struct question q = { .self = self, .arena = a, .what = what, .err = err };
	int r = AUTHZ_NO_OPINION;
	*ret_reason = STR_NONE;
	if (!user_is_node(what->user, &q.node))
		return r;
	if (!q.node.n)
		q.reason = arena_printf(a, "unknown node for user \"" STR_FMT "\"", STR_ARG(what->user->name));
	else if (what->is_resource)
		r = decide_resource(&q);
	*ret_reason = q.reason;
	return r;
}

static int rules(void *self, struct arena *a, const struct user *u, str namespace, struct authz_rules *rules, struct err *err)
{
	(void)self, (void)namespace, (void)err;
	str node, why = STR("node authorizer does not support user rule resolution");
	if (!user_is_node(u, &node))
		return 0;
	rules->incomplete = true;
	rules->error = rules->error.n ? arena_printf(a, STR_FMT ", " STR_FMT, STR_ARG(rules->error), STR_ARG(why)) : why;
	return 0;
}

static void release(void *self)
{
	struct node *n = self;
	forget(n);
	free(n);
}

int authz_node_way(struct apiserver *s, struct authz_way *ret, struct err *err)
{
	struct node *n = mem_zalloc(sizeof *n);
	n->server = s;
	forget(n);
	int r = s->cache ? catch_up(n, err) : 0; /* now, so that the first node does not have to wait for it */
	if (r < 0) {
		release(n);
		return r;
	}
	*ret = (struct authz_way){ .type = "Node", .name = "node", .self = n, .decide = decide, .rules = rules, .free = release };
	return 0;
}
