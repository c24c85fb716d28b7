/*
 * The life of nodes. A fiber looks at all of them every few seconds: who has not been heard of for too long is Unknown. Keys of the queue are
 * nodes (taints that keep pods away, at once when a condition changes) and pods ("namespace/name": no longer ready, as their node is not).
 *
 * Taints that throw pods out are put on one node after another, at a pace per zone: a second fiber does that. When most of a zone is gone it
 * slows down or stops, for then it is rather the network that is broken; when all of the cluster is, those taints are taken away again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "client/rate.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/labels.h"
#include "controllers/node_lifecycle_plan.h"
#include "controllers/pod_control.h"
#include "controllers/taints.h"

enum { TAINT_PERIOD_MS = 100, HEALTH_TRIES = 5 };

struct zone {
	struct rate rate;            /* of taints; qps 0: none */
	enum zone_state state;
	size_t ready, not_ready;     /* in this look */
	struct list waiting;         /* nodes to be tainted */
	size_t n;
	char key[];
};

struct known_node {
	struct node_health health;
	bool not_ready;              /* as of the last look */
	bool seen;                   /* in this look */
	struct list link;            /* of zone->waiting */
	char *uid;
	size_t n;
	char name[];
};

struct lifecycle {
	struct informer *nodes, *leases, *pods;
	struct map known, zones;     /* by name; by key */
	int64_t period_ms, grace_ns, startup_grace_ns;
	double rate, secondary_rate, threshold;
	size_t large;
	struct fiber_cond queued;    /* some zone has nodes to taint */
};

/* ---- writing ---- */

struct node_change {
	struct val (*taints)(struct arena *a, struct val node, str ready, struct val now);
	str ready;
	bool labels;
};

static struct val condition_taints(struct arena *a, struct val node, str ready, struct val now)
{
	(void)ready;
	return node_no_schedule_taints(a, node, now);
}

static struct val change_node(struct arena *a, struct val live, void *arg)
{
	const struct node_change *n = arg;
	struct val taints = n->taints(a, live, n->ready, time_now(a)), labels = n->labels ? node_old_labels(a, live) : VAL_EMPTY, next = live;

	if (!val_exists(taints) && !val_exists(labels))
		return VAL_EMPTY;
	if (val_exists(taints))
		next = val_with(a, next, val_len(taints) ? taints : VAL_EMPTY, spec, taints);
	return val_exists(labels) ? val_with(a, next, labels, metadata, labels) : next;
}

static int write_node(struct controller *c, struct val node, struct node_change change, struct err *err)
{
	int r = controller_update(c, TYPE(core_v1, Node), node, "", change_node, &change, NULL, err);

	if (r == -ERR_NOT_FOUND) {
		err_clear(err);
		return 0;
	}
	return r;
}

/* ---- keys ---- */

static int sync_pod(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct lifecycle *s = c->state;
	struct frozen *found = informer_get(s->pods, key);
	const struct known_node *node = found ? map_get(&s->known, val_str(found->val, spec, nodeName)) : NULL;

	if (!node || !node->not_ready || !pod_is_ready(found->val))
		return 0;
	struct val pod = controller_hold(c, a, found);
	struct val condition = OBJECT(a, F(type, VAL_LIT("Ready")), F(status, VAL_LIT("False")), F(lastTransitionTime, time_now(a)));
	struct val patch = OBJECT(a, F(metadata, OBJECT(a, F(uid, val_get(pod, metadata, uid)))),
				  F(status, OBJECT(a, F(conditions, LIST(a, condition)))));
	int r = client_patch(c->client, TYPE(core_v1, Pod), val_str(pod, metadata, namespace), val_str(pod, metadata, name), CLIENT_PATCH_STRATEGIC,
			     patch, &(struct client_write_options){ .subresource = STR("status") }, NULL, err);
	if (r == -ERR_NOT_FOUND) {
		err_clear(err);
		return 0;
	}
	if (r == 0)
		controller_event(c, pod, true, "NodeNotReady", "Node is not ready");
	return r;
}

static int lifecycle_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct lifecycle *s = c->state;
	struct frozen *node;

	if (str_chr(key, '/') >= 0)
		return sync_pod(c, a, key, err);
	if (!(node = informer_get(s->nodes, key)))
		return 0;
	return write_node(c, controller_hold(c, a, node), (struct node_change){ .taints = condition_taints, .labels = true }, err);
}

/* ---- zones ---- */

static struct zone *zone_of(struct lifecycle *s, struct val node)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str key = node_zone(&a, node);
	struct zone *z = map_get(&s->zones, key);

	if (z)
		return z;
	z = mem_zalloc(sizeof *z + key.n + 1);
	*z = (struct zone){ .rate = { .qps = s->rate, .burst = 1, .at_ns = clock_now_ns() }, .n = key.n };
	if (key.n)
		memcpy(z->key, key.p, key.n);
	list_init(&z->waiting);
	(void)map_put(&s->zones, str_span(z->key, z->n), z);
	return z;
}

static void queue_for_taint(struct lifecycle *s, struct known_node *k, struct zone *z)
{
	if (list_linked(&k->link))
		return;
	list_add(&z->waiting, &k->link);
	fiber_cond_broadcast(&s->queued);
}

static int taint_one(struct controller *c, str name, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct lifecycle *s = c->state;
	struct frozen *node = informer_get(s->nodes, name);

	if (!node)
		return 0;
	str ready = val_str(condition_find(val_get(node->val, status, conditions), "Ready"), status);
	if (!ready.n || str_eq(ready, STR("True")))
		return 0;
	return write_node(c, controller_hold(c, &a, node), (struct node_change){ .taints = node_no_execute_taints, .ready = ready }, err);
}

/* The nodes of a zone that may be tainted now. */
static int taint_zone(struct controller *c, struct zone *z)
{
	struct known_node *k;
	struct err err = ERR_INIT;
	int r = 0;

	while (r == 0 && z->rate.qps > 0 && (k = LIST_FIRST(struct known_node, &z->waiting, link)) && rate_try(&z->rate)) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		str name = arena_str(&a, str_span(k->name, k->n)); /* the node may go meanwhile */
		list_remove(&k->link);
		r = taint_one(c, name, &err);
		if (r < 0 && r != -ERR_CANCELED) {
			log_warn("a node could not be tainted, it is tried again", KV("node", name), KV("error", &err));
			r = 0; /* the next look puts it into the queue again */
		}
	}
	return r;
}

static bool any_waiting(const struct lifecycle *s)
{
	struct map_iter it = map_iter(&s->zones);
	const struct zone *z;

	while ((z = map_next(&it, NULL)))
		if (!list_empty(&z->waiting))
			return true;
	return false;
}

static int run_taints(void *arg)
{
	struct controller *c = arg;
	struct lifecycle *s = c->state;
	int r = 0;

	while (r == 0) {
		while (r == 0 && !any_waiting(s))
			r = fiber_cond_wait(&s->queued, NULL);
		/* Zones come and go between the looks only, but those may happen while a node is written: one zone at a time, by a copy of its key. */
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val_builder keys = val_builder(&a);
		struct map_iter it = map_iter(&s->zones);
		for (const struct zone *z; (z = map_next(&it, NULL));)
			val_add_item(&keys, VAL_STR(arena_str(&a, str_span(z->key, z->n))));
		VAL_EACH(key, val_end_list(&keys)) {
			struct zone *z = map_get(&s->zones, val_as_str(*key));
			if (r == 0 && z)
				r = taint_zone(c, z);
		}
		if (r == 0)
			r = fiber_sleep_ms(TAINT_PERIOD_MS, NULL);
	}
	return r;
}

/* ---- one look at all nodes ---- */

static struct val node_reference(struct arena *a, str name, str uid)
{
	return OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Node")), F(name, VAL_STR(name)), F(uid, VAL_STR(uid)));
}

static void node_event(struct controller *c, struct arena *a, const struct known_node *k, const char *reason, const char *what, const char *how)
{
	str name = str_span(k->name, k->n);
	controller_event(c, node_reference(a, name, str_of(k->uid)), false, reason, "Node " STR_FMT " event: %s Node " STR_FMT " %s Controller",
			 STR_ARG(name), what, STR_ARG(name), how);
}

static struct known_node *known_of(struct controller *c, struct arena *a, struct val node)
{
	struct lifecycle *s = c->state;
	str name = val_str(node, metadata, name), uid = val_str(node, metadata, uid);
	struct known_node *k = map_get(&s->known, name);

	if (k)
		return k;
	k = mem_zalloc(sizeof *k + name.n);
	k->n = name.n;
	memcpy(k->name, name.p, name.n);
	k->uid = mem_zalloc(uid.n + 1);
	if (uid.n)
		memcpy(k->uid, uid.p, uid.n);
	list_init(&k->link);
	(void)map_put(&s->known, str_span(k->name, k->n), k);
	node_event(c, a, k, "RegisteredNode", "Registered", "in");
	return k;
}

static void known_free(struct known_node *k)
{
	list_remove(&k->link);
	free(k->uid);
	free(k);
}

static void forget_gone(struct controller *c, struct arena *a)
{
	struct lifecycle *s = c->state;
	struct map_iter it = map_iter(&s->known);
	struct known_node *k;

	while ((k = map_next(&it, NULL))) {
		if (!k->seen) {
			node_event(c, a, k, "RemovingNode", "Removing", "from");
			(void)map_remove(&s->known, str_span(k->name, k->n));
			known_free(k);
		} else {
			k->seen = false;
		}
	}
}

static void pods_not_ready(struct controller *c, struct arena *a, str node)
{
	const struct lifecycle *s = c->state;

	INFORMER_EACH(pod, informer_each_indexed(s->pods, "node", node))
		controller_add(c, object_key(a, pod->val));
}

/* What follows for its NoExecute taints: one that has the wrong one is corrected at once, others wait for their turn. */
static int follow_taints(struct controller *c, struct known_node *k, struct zone *z, struct val node, str ready, struct err *err)
{
	struct val taints = val_get(node, spec, taints);
	bool has_any = taints_have(taints, STR(TAINT_NOT_READY), STR(NO_EXECUTE)) || taints_have(taints, STR(TAINT_UNREACHABLE), STR(NO_EXECUTE));

	if (str_eq(ready, STR("True")))
		list_remove(&k->link);
	else if (!has_any)
		queue_for_taint(c->state, k, z);
	return has_any ? write_node(c, node, (struct node_change){ .taints = node_no_execute_taints, .ready = ready }, err) : 0;
}

static void judge(struct lifecycle *s, struct arena *a, struct val node, struct known_node *k, struct node_verdict *ret)
{
	const struct frozen *lease = informer_get(s->leases, arena_printf(a, "kube-node-lease/" STR_FMT, STR_ARG(val_str(node, metadata, name))));
	const struct node_look look = { .node = node, .lease = lease ? lease->val : VAL_EMPTY, .now_ns = clock_now_ns(), .wall_ns = clock_wall_ns(),
					.grace_ns = s->grace_ns, .startup_grace_ns = s->startup_grace_ns };

	node_health_look(a, &look, &k->health, ret);
}

/*
 * (suspends) Judges a node, and writes what follows over exactly what was judged: when the node has been heard of meanwhile, it is judged anew.
 * *node is then the fresher one, in the arena.
 */
static int update_health(struct controller *c, struct arena *a, struct known_node *k, struct val *node, struct node_verdict *ret, struct err *err)
{
	for (unsigned tries = 1;; tries++) {
		CLEANUP(frozen_unrefp) struct frozen *fresh = NULL;
		judge(c->state, a, *node, k, ret);
		if (!val_exists(ret->conditions))
			return 0;
		int r = controller_write(c, TYPE(core_v1, Node), val_with(a, *node, ret->conditions, status, conditions), "status", err);
		if (r != -ERR_CONFLICT || tries == HEALTH_TRIES)
			return r;
		err_clear(err);
		if ((r = client_get(c->client, TYPE(core_v1, Node), STR_NONE, val_str(*node, metadata, name), &fresh, err)) < 0)
			return r;
		*node = val_copy(a, fresh->val);
	}
}

static int look_at(struct controller *c, struct arena *a, struct frozen *frozen, struct err *err)
{
	struct lifecycle *s = c->state;
	struct frozen *latest = controller_latest(c, frozen);
	struct val node = latest == frozen ? frozen->val : val_copy(a, latest->val); /* the walk holds what it shows */
	struct known_node *k = known_of(c, a, node);
	struct zone *z = zone_of(s, node);
	struct node_verdict v;

	k->seen = true;
	int r = update_health(c, a, k, &node, &v, err);
	if (r < 0)
		return r;
	bool ready = str_eq(v.is, STR("True"));
	if (!label_has(node, STR("node.kubernetes.io/exclude-disruption")))
		*(ready ? &z->ready : &z->not_ready) += 1;
	if (!v.is.n)
		return 0;
	k->not_ready = !ready;
	if (!ready && str_eq(v.was, STR("True"))) {
		controller_event(c, node_reference(a, val_str(node, metadata, name), val_str(node, metadata, uid)), false, "NodeNotReady",
				 "Node " STR_FMT " status is now: NodeNotReady", STR_ARG(val_str(node, metadata, name)));
		pods_not_ready(c, a, val_str(node, metadata, name));
	}
	return follow_taints(c, k, z, node, v.is, err);
}

/* ---- when much is gone at once ---- */

static void set_rate(const struct lifecycle *s, struct zone *z, enum zone_state state)
{
	rate_refill(&z->rate);
	z->rate.qps = zone_rate(state, z->ready + z->not_ready, s->rate, s->secondary_rate, s->large);
	z->state = state;
}

/* All is gone: rather we are. No pod is thrown out for it. */
static int stop_taints(struct controller *c, struct err *err)
{
	struct lifecycle *s = c->state;
	struct map_iter it = map_iter(&s->zones);

	log_info("all nodes are not ready: taints that throw pods out are taken away until some are");
	for (struct zone *z; (z = map_next(&it, NULL));) {
		LIST_EACH_SAFE(struct known_node, k, &z->waiting, link)
			list_remove(&k->link);
		z->rate.qps = 0;
		z->state = ZONE_FULL;
	}
	INFORMER_EACH(node, informer_each(s->nodes)) {
		struct err why = ERR_INIT;
		int r = write_node(c, node->val, (struct node_change){ .taints = node_no_execute_taints, .ready = STR("True") }, &why);
		if (r == -ERR_CANCELED)
			return err_set(err, ERR_CANCELED, "%s", why.msg);
		if (r < 0)
			log_warn("the taints of a node could not be taken away", KV("node", val_str(node->val, metadata, name)), KV("error", &why));
	}
	return 0;
}

/* Some are back: those that are not get their time again. */
static void resume_taints(struct lifecycle *s)
{
	struct map_iter it = map_iter(&s->known);

	log_info("some nodes are ready again");
	for (struct known_node *k; (k = map_next(&it, NULL));)
		k->health.probe_ns = clock_now_ns();
}

static int judge_zones(struct controller *c, struct err *err)
{
	struct lifecycle *s = c->state;
	struct map_iter it = map_iter(&s->zones);
	bool all_full = true, all_were = true, any = false;

	for (struct zone *z; (z = map_next(&it, NULL));) {
		if (!z->ready && !z->not_ready)
			continue;
		any = true;
		all_full &= zone_state(z->ready, z->not_ready, s->threshold) == ZONE_FULL;
		all_were &= z->state == ZONE_FULL;
	}
	if (!any || (all_full && all_were))
		return 0;
	if (all_full)
		return stop_taints(c, err);
	if (all_were)
		resume_taints(s);
	it = map_iter(&s->zones);
	for (struct zone *z; (z = map_next(&it, NULL));) {
		enum zone_state state = zone_state(z->ready, z->not_ready, s->threshold);
		if ((z->ready || z->not_ready) && (all_were || state != z->state))
			set_rate(s, z, state);
	}
	return 0;
}

static void count_anew(struct lifecycle *s)
{
	struct map_iter it = map_iter(&s->zones);

	for (struct zone *z; (z = map_next(&it, NULL));)
		z->ready = z->not_ready = 0;
}

static int look_at_all(struct controller *c, struct err *err)
{
	struct lifecycle *s = c->state;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = 0;

	count_anew(s);
	INFORMER_EACH(node, informer_each(s->nodes)) {
		arena_reset(&a);
		r = look_at(c, &a, node, err);
		if (r < 0 && r != -ERR_CANCELED) {
			log_warn("a node's health could not be updated, its pods stay", KV("node", val_str(node->val, metadata, name)), KV("error", err));
			err_clear(err);
			r = 0;
		}
		if (r < 0)
			return r;
	}
	forget_gone(c, &a);
	return judge_zones(c, err);
}

static int lifecycle_run(struct controller *c, struct err *err)
{
	struct lifecycle *s = c->state;
	CLEANUP(fiber_stopp) struct fiber *taints = NULL;
	int r = fiber_spawn(run_taints, c, &taints, err, "node taints");

	while (r == 0) {
		int64_t began_ns = clock_now_ns();
		r = look_at_all(c, err);
		if (r < 0 && r != -ERR_CANCELED) {
			log_warn("looking at the nodes failed", KV("error", err));
			err_clear(err);
			r = 0;
		}
		if (r == 0)
			r = fiber_sleep_ms(MAX(s->period_ms - (clock_now_ns() - began_ns) / NS_PER_MS, (int64_t)1), err);
	}
	return r;
}

/* ---- being told ---- */

static void node_changed(struct controller *c, struct frozen *old, struct frozen *node)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (node && (val_exists(node_no_schedule_taints(&a, node->val, VAL_EMPTY)) || val_exists(node_old_labels(&a, node->val))))
		controller_key_self(c, old, node);
}

/* One that came to a node of which we know that it is not ready. */
static void pod_changed(struct controller *c, struct frozen *old, struct frozen *pod)
{
	const struct lifecycle *s = c->state;
	str name = pod ? val_str(pod->val, spec, nodeName) : STR_NONE;
	const struct known_node *k = name.n ? map_get(&s->known, name) : NULL;

	if (k && k->not_ready && !(old && str_eq(val_str(old->val, spec, nodeName), name)))
		controller_key_self(c, old, pod);
}

static void lifecycle_stop(struct controller *c)
{
	struct lifecycle *s = c->state;
	struct map_iter it = map_iter(&s->known);

	for (struct known_node *k; (k = map_next(&it, NULL));)
		known_free(k);
	it = map_iter(&s->zones);
	for (struct zone *z; (z = map_next(&it, NULL));)
		free(z);
	map_done(&s->known);
	map_done(&s->zones);
	free(s);
}

static int lifecycle_start(struct controller *c, struct err *err)
{
	const struct controllers_options *o = c->o;
	struct lifecycle *s = mem_zalloc(sizeof *s);

	(void)err;
	c->state = s;
	c->sync = lifecycle_sync;
	c->run = lifecycle_run;
	map_init(&s->known);
	map_init(&s->zones);
	fiber_cond_init(&s->queued, "nodes to taint");
	s->period_ms = o->node_monitor_period_ms ? o->node_monitor_period_ms : 5000;
	s->grace_ns = (o->node_monitor_grace_ms ? o->node_monitor_grace_ms : 50 * 1000) * NS_PER_MS;
	s->startup_grace_ns = (o->node_startup_grace_ms ? o->node_startup_grace_ms : 60 * 1000) * NS_PER_MS;
	s->rate = o->node_eviction_rate != 0 ? MAX(o->node_eviction_rate, 0.0) : 0.1;
	s->secondary_rate = o->secondary_node_eviction_rate != 0 ? MAX(o->secondary_node_eviction_rate, 0.0) : 0.01;
	s->large = o->large_cluster_size > 0 ? (size_t)o->large_cluster_size : 50;
	s->threshold = o->unhealthy_zone_threshold > 0 ? o->unhealthy_zone_threshold : 0.55;
	s->nodes = controller_informer(c, TYPE(core_v1, Node));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	s->leases = informers_get(c->informers, TYPE(coordination_v1, Lease), &(struct informer_options){ .namespace = STR("kube-node-lease") });
	informer_index(s->pods, "node", informer_by_node);
	controller_watch(c, s->nodes, node_changed);
	controller_watch(c, s->pods, pod_changed);
	return 0;
}

const struct controller_kind controller_node_lifecycle = { .name = "node-lifecycle-controller", .start = lifecycle_start, .workers = 8,
							   .stop = lifecycle_stop, .account = "node-controller", .source = "node-controller" };
