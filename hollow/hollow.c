/*
 * One queue for all. A key without a slash is a node: it is made, its lease is renewed, and the key comes back after the time between two
 * heartbeats. One with a slash is a pod on a node of ours. What the informers keep of objects is cut down to what is looked at.
 */
#include "hollow/hollow.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "codec/types.h"
#include "hollow/hollow_plan.h"

enum { HEARTBEAT_MS = 10 * 1000, WORKERS = 32, REMOVE_MS = 120 * 1000, UID_MAX = 64 };

#define LEASES STR("kube-node-lease")

struct hollow_node {
	uint32_t index;
	bool made, seen, has_lease;  /* seen: the informer has shown it */
	uint64_t slots[2];           /* addresses that are taken, a bit each */
	struct hollow_room used;     /* by those that were let in */
	char uid[UID_MAX];
	size_t n;
	char name[];
};

struct hollow_pod_state {
	struct hollow_node *node;
	uint64_t life;               /* differs between pods of one name */
	int slot;                    /* -1: none */
	int64_t cpu_milli;
	bool admitted;               /* it counts on its node */
	bool started, ended;         /* that was written; the informer may not show it yet */
	int64_t seen_ns;
	size_t n;
	char key[];
};

struct hollow {
	const struct hollow_options *o;
	struct client *client;
	struct informers *informers;
	struct informer *nodes, *pods;
	struct informer_listener on_node, on_pod;
	struct work_queue *queue;
	struct map by_name, by_key;  /* struct hollow_node, struct hollow_pod_state */
	size_t n_made;
	uint64_t lives;
	struct hollow_room room;     /* of each node */
	void (*on_ready)(void *arg);
	void *arg;
};

/* ---- addresses ---- */

static void slot_take(struct hollow_node *n, int slot) { n->slots[slot / 64] |= UINT64_C(1) << slot % 64; }

static void slot_free(struct hollow_pod_state *p)
{
	if (p->slot >= 0)
		p->node->slots[p->slot / 64] &= ~(UINT64_C(1) << p->slot % 64);
	p->slot = -1;
}

static int slot_find(struct hollow_node *n)
{
	for (int slot = 0; slot < HOLLOW_PODS_MAX; slot++)
		if (!(n->slots[slot / 64] & UINT64_C(1) << slot % 64)) {
			slot_take(n, slot);
			return slot;
		}
	return -1;
}

/* ---- room ---- */

static void pod_count(struct hollow_pod_state *p)
{
	if (p->admitted)
		return;
	p->admitted = true;
	p->node->used.cpu_milli += p->cpu_milli;
	p->node->used.pods++;
}

static void pod_uncount(struct hollow_pod_state *p)
{
	if (!p->admitted)
		return;
	p->admitted = false;
	p->node->used.cpu_milli -= p->cpu_milli;
	p->node->used.pods--;
}

/* As a kubelet does: schedulers that do not know of each other can send more than there is room for. */
static bool pod_has_room(const struct hollow *h, const struct hollow_pod_state *p)
{
	return p->admitted || (p->node->used.cpu_milli + p->cpu_milli <= h->room.cpu_milli && p->node->used.pods + 1 <= h->room.pods);
}

/* ---- nodes ---- */

static int ignore(int r, int code, struct err *err)
{
	if (r != -code)
		return r;
	err_clear(err);
	return 0;
}

static void count_made(struct hollow *h, struct hollow_node *n, struct val node)
{
	str uid = val_str(node, metadata, uid);

	if (uid.n && uid.n < UID_MAX) {
		memcpy(n->uid, uid.p, uid.n);
		n->uid[uid.n] = '\0';
	}
	if (n->made)
		return;
	n->made = true;
	if (++h->n_made == (size_t)h->o->nodes && h->on_ready)
		h->on_ready(h->arg);
}

static int make_node(struct hollow *h, struct arena *a, struct hollow_node *n, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *node = NULL;
	str name = str_span(n->name, n->n);
	struct val object;
	int r = hollow_node(a, h->o, n->index, name, clock_wall_ns(), &object, err);

	if (r == 0)
		r = client_create(h->client, TYPE(core_v1, Node), object, NULL, &node, err);
	if (r == -ERR_ALREADY_EXISTS) {
		err_clear(err);
		r = client_get(h->client, TYPE(core_v1, Node), STR_NONE, name, &node, err);
	}
	if (r == 0)
		count_made(h, n, node->val);
	return r;
}

static int beat(struct hollow *h, struct arena *a, struct hollow_node *n, struct err *err)
{
	str name = str_span(n->name, n->n);
	int r;

	if (n->has_lease) {
		r = client_patch(h->client, TYPE(coordination_v1, Lease), LEASES, name, CLIENT_PATCH_MERGE, hollow_renewal(a, clock_wall_ns()), NULL, NULL, err);
		if (r != -ERR_NOT_FOUND)
			return r;
		err_clear(err);
		n->has_lease = false;
	}
	r = client_create(h->client, TYPE(coordination_v1, Lease), hollow_lease(a, name, str_of(n->uid), clock_wall_ns()), NULL, NULL, err);
	n->has_lease = r == 0 || r == -ERR_ALREADY_EXISTS;
	return r == -ERR_ALREADY_EXISTS ? -ERR_CONFLICT : r; /* once more, with what is there */
}

static bool is_ready(struct val node) { return str_eq(val_str(val_at(val_get(node, status, conditions), 0), status), STR("True")); }

static int sync_node(struct hollow *h, struct arena *a, struct hollow_node *n, struct err *err)
{
	str name = str_span(n->name, n->n);
	const struct frozen *node = informer_get(h->nodes, name);
	int64_t period_ms = h->o->heartbeat_ms > 0 ? h->o->heartbeat_ms : HEARTBEAT_MS;
	bool first = !n->has_lease, folders = node && hollow_has_folders(node->val);
	int r = 0;

	if (node)
		count_made(h, n, node->val);
	else if (n->made && n->seen)
		return 0; /* somebody has deleted it: it is gone, until somebody makes it again */
	if (!n->made)
		r = make_node(h, a, n, err);
	else if (node && !is_ready(node->val))
		r = client_patch(h->client, TYPE(core_v1, Node), STR_NONE, name, CLIENT_PATCH_STRATEGIC, hollow_node_ready(a, clock_wall_ns()),
				 &(struct client_write_options){ .subresource = STR("status") }, NULL, err);
	if (r == 0 && folders)
		r = client_patch(h->client, TYPE(core_v1, Node), STR_NONE, name, CLIENT_PATCH_MERGE, hollow_folders_gone(a), NULL, NULL, err);
	if (r == 0)
		r = beat(h, a, n, err);
	if (r == 0) /* the first ones all at once, then spread over the period */
		work_queue_add_after(h->queue, name, first ? 1 + (int64_t)random_below((uint64_t)period_ms) : period_ms);
	return r;
}

static void node_changed(struct informer_listener *l, struct frozen *old, struct frozen *node)
{
	struct hollow *h = CONTAINER_OF(l, struct hollow, on_node);
	struct hollow_node *n = map_get(&h->by_name, val_str(node ? node->val : old->val, metadata, name));

	if (!n)
		return;
	if (!node) {
		n->has_lease = false;
		return;
	}
	n->seen = true;
	if (!old || !is_ready(node->val) || hollow_has_folders(node->val))
		work_queue_add(h->queue, str_span(n->name, n->n));
}

/* ---- pods ---- */

static bool has_ended(struct val pod)
{
	return str_eq(val_str(pod, status, phase), STR("Succeeded")) || str_eq(val_str(pod, status, phase), STR("Failed"));
}

static struct hollow_pod_state *pod_state(struct hollow *h, str key, struct val pod)
{
	struct hollow_node *n = map_get(&h->by_name, val_str(pod, spec, nodeName));
	struct hollow_pod_state *p = map_get(&h->by_key, key);

	if (p || !n)
		return p;
	p = mem_zalloc(sizeof *p + key.n);
	*p = (struct hollow_pod_state){ .node = n, .life = ++h->lives, .slot = -1, .seen_ns = clock_wall_ns(), .cpu_milli = hollow_pod_cpu(pod), .n = key.n };
	if (str_eq(val_str(pod, status, phase), STR("Running")))
		pod_count(p);
	if (!has_ended(pod)) /* another may have its address by now */
		p->slot = hollow_slot_of(n->index, val_str(pod, status, podIP));
	memcpy(p->key, key.p, key.n);
	if (p->slot >= 0)
		slot_take(n, p->slot);
	(void)map_put(&h->by_key, str_span(p->key, p->n), p);
	return p;
}

/* After a call: the pod may be gone by now, and another one have its name. NULL then. */
static struct hollow_pod_state *pod_again(struct hollow *h, struct arena *a, struct val pod, uint64_t life)
{
	struct hollow_pod_state *p = map_get(&h->by_key, object_key(a, pod));
	return p && p->life == life ? p : NULL;
}

static void pod_forget(struct hollow *h, str key)
{
	struct hollow_pod_state *p = map_remove(&h->by_key, key);

	if (!p)
		return;
	slot_free(p);
	pod_uncount(p);
	free(p);
}

static void pod_changed(struct informer_listener *l, struct frozen *old, struct frozen *pod)
{
	struct hollow *h = CONTAINER_OF(l, struct hollow, on_pod);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str key = object_key(&a, pod ? pod->val : old->val);

	if (!pod || (old && !str_eq(val_str(old->val, metadata, uid), val_str(pod->val, metadata, uid))))
		pod_forget(h, key);
	struct hollow_pod_state *p = pod ? pod_state(h, key, pod->val) : NULL;
	if (!p)
		return;
	if (has_ended(pod->val)) {
		slot_free(p);
		pod_uncount(p);
	}
	work_queue_add(h->queue, key);
}

static int patch_status(struct hollow *h, struct val pod, struct val patch, struct err *err)
{
	int r = client_patch(h->client, TYPE(core_v1, Pod), val_str(pod, metadata, namespace), val_str(pod, metadata, name), CLIENT_PATCH_STRATEGIC, patch,
			     &(struct client_write_options){ .subresource = STR("status") }, NULL, err);
	return ignore(r, ERR_NOT_FOUND, err);
}

static int start_pod(struct hollow *h, struct arena *a, struct hollow_pod_state *p, struct val pod, struct err *err)
{
	char host[IP_TEXT_MAX], own[IP_TEXT_MAX];
	str host_ip = hollow_node_ip(p->node->index, host), pod_ip = host_ip;

	if (p->started)
		return 0;
	if (!pod_has_room(h, p))
		return patch_status(h, pod, hollow_pod_refused(a, pod, p->node->used, h->room), err);
	pod_count(p);
	if (!val_bool(pod, spec, hostNetwork)) {
		if (p->slot < 0 && (p->slot = slot_find(p->node)) < 0)
			return err_set(err, ERR_UNAVAILABLE, "node %.*s has no address left", (int)p->node->n, p->node->name);
		pod_ip = hollow_pod_ip(p->node->index, (unsigned)p->slot, own);
	}
	uint64_t life = p->life;
	p->started = true;
	int r = patch_status(h, pod, hollow_pod_running(a, pod, host_ip, pod_ip, clock_wall_ns()), err);
	if (r < 0 && (p = pod_again(h, a, pod, life)))
		p->started = false;
	return r;
}

/* Somebody may be waiting for its end to be written before it goes: those with finalizers do. */
static int stop_pod(struct hollow *h, struct arena *a, struct val pod, struct err *err)
{
	int r = 0;

	if (val_len(val_get(pod, metadata, finalizers)) && !has_ended(pod))
		r = patch_status(h, pod, hollow_pod_ended(a, pod, clock_wall_ns()), err);
	if (r == 0)
		r = client_delete(h->client, TYPE(core_v1, Pod), val_str(pod, metadata, namespace), val_str(pod, metadata, name),
				  &(struct client_delete_options){ .grace_s = 0, .uid = val_str(pod, metadata, uid) }, err);
	return ignore(ignore(r, ERR_NOT_FOUND, err), ERR_CONFLICT, err);
}

/* Once: afterwards only finalizers keep it, or the informer is late. */
static int end_pod(struct hollow *h, struct arena *a, struct hollow_pod_state *p, struct val pod, struct err *err)
{
	uint64_t life = p->life;
	int r = stop_pod(h, a, pod, err);

	if (r == 0 && (p = pod_again(h, a, pod, life)))
		p->ended = true;
	return r;
}

static int sync_pod(struct hollow *h, struct arena *a, str key, struct err *err)
{
	struct hollow_pod_state *p = map_get(&h->by_key, key);
	CLEANUP(frozen_unrefp) struct frozen *pod = p ? informer_get(h->pods, key) : NULL;

	if (!pod)
		return 0;
	(void)frozen_ref(pod);
	struct hollow_pod plan = hollow_pod_plan(h->o, pod->val, p->seen_ns, clock_wall_ns());
	if (plan.step != HOLLOW_REST && plan.wait_ms > 0) {
		work_queue_add_after(h->queue, key, plan.wait_ms);
		return 0;
	}
	switch (plan.step) {
	case HOLLOW_START:
		return start_pod(h, a, p, pod->val, err);
	case HOLLOW_READY:
		return patch_status(h, pod->val, hollow_pod_ready(a, pod->val, clock_wall_ns()), err);
	case HOLLOW_FINISH:
		return patch_status(h, pod->val, hollow_pod_ended(a, pod->val, clock_wall_ns()), err);
	case HOLLOW_STOP:
		return p->ended ? 0 : end_pod(h, a, p, pod->val, err);
	case HOLLOW_REST:
		break;
	}
	return 0;
}

/* ---- all of it ---- */

static int sync_key(str key, void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct hollow *h = arg;
	struct hollow_node *n;

	if (str_chr(key, '/') >= 0)
		return sync_pod(h, &a, key, err);
	return (n = map_get(&h->by_name, key)) ? sync_node(h, &a, n, err) : 0;
}

static void add_nodes(struct hollow *h)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *prefix = h->o->prefix ? h->o->prefix : "hollow-";

	for (int64_t i = 0; i < h->o->nodes; i++) {
		str name = arena_printf(&a, "%s%lld", prefix, (long long)(h->o->first + i));
		struct hollow_node *n = mem_zalloc(sizeof *n + name.n);

		n->index = (uint32_t)(h->o->first + i);
		n->n = name.n;
		memcpy(n->name, name.p, name.n);
		(void)map_put(&h->by_name, str_span(n->name, n->n), n);
	}
}

/* One node alone hears of itself and its own pods only, as a kubelet does. */
static void open_informers(struct hollow *h)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct informer_options nodes = { .labels = STR(HOLLOW_LABEL "=true"), .keep = hollow_keep_node };
	struct informer_options pods = { .fields = STR("spec.nodeName!="), .keep = hollow_keep_pod };

	if (h->o->nodes == 1) {
		struct map_iter it = map_iter(&h->by_name);
		const struct hollow_node *n = map_next(&it, NULL);
		nodes.fields = arena_printf(&a, "metadata.name=%.*s", (int)n->n, n->name);
		pods.fields = arena_printf(&a, "spec.nodeName=%.*s", (int)n->n, n->name);
	}
	h->nodes = informers_get(h->informers, TYPE(core_v1, Node), &nodes);
	h->pods = informers_get(h->informers, TYPE(core_v1, Pod), &pods);
}

static void queue_nodes(struct hollow *h)
{
	struct map_iter it = map_iter(&h->by_name);
	const struct hollow_node *n;

	while ((n = map_next(&it, NULL)))
		work_queue_add(h->queue, str_span(n->name, n->n));
}

/* (suspends) */
static void remove_nodes(struct hollow *h)
{
	SHIELD_SCOPE();
	DEADLINE_SCOPE(REMOVE_MS);
	struct map_iter it = map_iter(&h->by_name);
	const struct hollow_node *n;
	int r = 0;

	while ((r == 0 || r == -ERR_NOT_FOUND) && (n = map_next(&it, NULL))) {
		struct err err = ERR_INIT;
		(void)client_delete(h->client, TYPE(coordination_v1, Lease), LEASES, str_span(n->name, n->n), NULL, &err);
		r = client_delete(h->client, TYPE(core_v1, Node), STR_NONE, str_span(n->name, n->n), NULL, &err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			log_warn("the nodes that are left could not be removed", KV("error", &err));
	}
}

static void hollow_done(struct hollow *h)
{
	struct map_iter it;
	void *value;

	informer_unlisten(&h->on_pod);
	informer_unlisten(&h->on_node);
	informers_free(h->informers);
	if (h->o->remove)
		remove_nodes(h);
	work_queue_free(h->queue);
	for (it = map_iter(&h->by_key); (value = map_next(&it, NULL));)
		free(value);
	for (it = map_iter(&h->by_name); (value = map_next(&it, NULL));)
		free(value);
	map_done(&h->by_key);
	map_done(&h->by_name);
}

int hollow_run(const struct hollow_options *o, struct client *client, void (*on_ready)(void *arg), void *arg, struct err *err)
{
	if (o->nodes < 1 || o->first < 0 || o->nodes > HOLLOW_NODES_MAX || o->first > HOLLOW_NODES_MAX - o->nodes)
		return err_set(err, ERR_INVALID, "the numbers of nodes must be below %d", HOLLOW_NODES_MAX);
	if (o->pods > HOLLOW_PODS_MAX)
		return err_set(err, ERR_INVALID, "a node can have %d pods at most", HOLLOW_PODS_MAX);
	struct hollow h = { .o = o, .client = client, .on_ready = on_ready, .arg = arg, .on_node.changed = node_changed, .on_pod.changed = pod_changed };

	struct quantity cpu;
	int r = quantity_parse(str_of(o->cpu ? o->cpu : HOLLOW_CPU), &cpu, err);
	if (r < 0)
		return r;
	h.room.cpu_milli = quantity_milli(cpu);
	h.room.pods = o->pods > 0 ? o->pods : HOLLOW_PODS;
	map_init(&h.by_name);
	map_init(&h.by_key);
	h.queue = work_queue_new(&(struct work_queue_options){ .name = "hollow", .max_ms = HEARTBEAT_MS, .qps = 1000, .burst = 10000 });
	h.informers = informers_new(client);
	add_nodes(&h);
	open_informers(&h);
	informer_listen(h.nodes, &h.on_node);
	informer_listen(h.pods, &h.on_pod);
	r = informers_start(h.informers, err);
	if (r == 0)
		r = informers_wait(h.informers, err);
	if (r == 0) {
		queue_nodes(&h);
		r = work_queue_run(h.queue, o->workers ? o->workers : WORKERS, sync_key, &h, err);
	}
	hollow_done(&h);
	return r;
}
