/*
 * What informers tell becomes changes of the table and of the queue. While a cycle waits for an extender, events
 * are kept back: the table stays as the cycle has seen it.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "scheduler/changes.h"
#include "scheduler/counters.h"
#include "scheduler/scheduler_priv.h"
#include "scheduler/storage.h"

/* Pods of a node that is not known yet, or not any more. */
struct homeless {
	struct placed **pods;
	size_t n, cap;
	str name;                     /* behind this struct */
};

/* ---- pods on nodes ---- */

static bool is_over(struct val pod)
{
	str phase = val_str(pod, status, phase);

	return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
}

static void wait_for_node(struct scheduler *s, struct placed *p, str name)
{
	struct homeless *h = map_get(&s->homeless, name);

	if (!h) {
		h = mem_zalloc(sizeof(*h) + name.n + 1);
		memcpy(h + 1, name.p, name.n);
		h->name = str_span((char *)(h + 1), name.n);
		map_put(&s->homeless, h->name, h);
	}
	if (h->n == h->cap) {
		h->cap = h->cap ? 2 * h->cap : 8;
		h->pods = mem_resize(h->pods, h->cap * sizeof(struct placed *));
	}
	h->pods[h->n++] = p;
	p->node = UINT32_MAX;
}

static void homeless_free(struct homeless *h)
{
	free(h->pods);
	free(h);
}

static void stop_waiting(struct scheduler *s, struct placed *p)
{
	struct homeless *h = map_get(&s->homeless, val_str(p->pod->val, spec, nodeName));

	for (size_t i = 0; h && i < h->n; i++)
		if (h->pods[i] == p) {
			h->pods[i] = h->pods[--h->n];
			break;
		}
	if (h && !h->n) {
		map_remove(&s->homeless, h->name);
		homeless_free(h);
	}
}

static void give_home(struct scheduler *s, str name, uint32_t node)
{
	struct homeless *h = map_remove(&s->homeless, name);

	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		nodes_place(&s->nodes, h->pods[i], node);
	homeless_free(h);
}

static void place(struct scheduler *s, struct frozen *pod)
{
	str node = val_str(pod->val, spec, nodeName);
	uint32_t index = nodes_find(&s->nodes, node);
	struct placed *p = placed_new(&s->nodes, pod);

	map_put(&s->pods, val_str(p->pod->val, metadata, uid), p);
	if (index == UINT32_MAX)
		wait_for_node(s, p, node);
	else
		nodes_place(&s->nodes, p, index);
	storage_pod_placed(s->storage, p->pod->val);
}

void scheduler_forget_pod(struct scheduler *s, struct placed *p)
{
	str uid = val_str(p->pod->val, metadata, uid);
	struct attempt *a = map_get(&s->attempts, uid);

	map_remove(&s->pods, uid);
	storage_pod_gone(s->storage, p->pod->val);
	if (p->node == UINT32_MAX)
		stop_waiting(s, p);
	else
		nodes_unplace(&s->nodes, p);
	if (a && a->cycle.placed == p)
		a->detached = true;
	else
		placed_free(p);
}

/* Hints ask whether the pod was on a node at all: one that was only assumed to be there does not say so. */
void scheduler_tell_left(struct scheduler *s, struct val pod, str node)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	sched_queue_event(s->queue, EV_POD_DELETE, node.n ? val_with(&a, pod, VAL_STR(node), spec, nodeName) : pod, VAL_EMPTY);
}

/* A copy: the name of a node that is gone goes with its last pod. */
static str node_of(const struct scheduler *s, struct arena *a, const struct placed *p)
{
	return p && p->node != UINT32_MAX ? arena_str(a, word_str(&s->nodes, s->nodes.name[p->node])) : STR_NONE;
}

/* ---- pods ---- */

static bool is_assigned(struct frozen *pod) { return pod && val_str(pod->val, spec, nodeName).n && !is_over(pod->val); }

static void assigned(struct scheduler *s, struct frozen *old, struct frozen *pod)
{
	str uid = val_str(pod->val, metadata, uid);
	struct placed *p = map_get(&s->pods, uid);
	unsigned events = is_assigned(old) ? pod_changes(old->val, pod->val) : EV_POD_ADD;

	if (p)
		scheduler_forget_pod(s, p);
	place(s, pod);
	sched_queue_remove(s->queue, uid);
	nominations_remove(&s->nominations, uid);
	for (; events; events &= events - 1)
		sched_queue_event(s->queue, events & -events, old ? old->val : VAL_EMPTY, pod->val);
}

static void gone(struct scheduler *s, struct frozen *old)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str uid = val_str(old->val, metadata, uid);
	struct placed *p = map_get(&s->pods, uid);
	bool counted = p || nominations_of(&s->nominations, uid).n;
	str node = node_of(s, &a, p);

	sched_queue_remove(s->queue, uid);
	nominations_remove(&s->nominations, uid);
	if (p)
		scheduler_forget_pod(s, p);
	if (counted)
		scheduler_tell_left(s, old->val, node);
}

/* A pod without a node, and ours. */
static void waits(struct scheduler *s, struct frozen *old, struct frozen *pod)
{
	str uid = val_str(pod->val, metadata, uid);
	struct placed *p = map_get(&s->pods, uid);

	if (old && str_eq(val_str(old->val, metadata, resourceVersion), val_str(pod->val, metadata, resourceVersion)))
		return;
	if (p) {
		/* Its binding may fail: it is tried again then as it is now. */
		if (map_get(&s->attempts, uid))
			sched_queue_put(s->queue, pod);
		/* Assumed: what it takes is free at once when it is to go, though its binding is still under way. */
		if (val_has(pod->val, metadata, deletionTimestamp) && old && !val_has(old->val, metadata, deletionTimestamp)) {
			CLEANUP(arena_done) struct arena a = ARENA_INIT;
			str node = node_of(s, &a, p);
			scheduler_forget_pod(s, p);
			scheduler_tell_left(s, pod->val, node);
		}
		return;
	}
	str before = old ? val_str(old->val, status, nominatedNodeName) : STR_NONE;
	if (old)
		nominations_update(&s->nominations, old, pod);
	else
		nominations_set(&s->nominations, pod, val_str(pod->val, status, nominatedNodeName));
	sched_queue_put(s->queue, pod);
	if (before.n && !str_eq(before, val_str(pod->val, status, nominatedNodeName)))
		sched_queue_event(s->queue, EV_POD_DELETE, old->val, VAL_EMPTY);
}

static void pod_changed(struct scheduler *s, struct frozen *old, struct frozen *pod)
{
	/* One that was made anew under the same name. */
	if (old && pod && !str_eq(val_str(old->val, metadata, uid), val_str(pod->val, metadata, uid))) {
		gone(s, old);
		old = NULL;
	}
	if (is_assigned(pod))
		assigned(s, old, pod);
	else if (!pod || is_over(pod->val)) {
		if (old)
			gone(s, old);
	} else if (scheduler_profile(s, pod->val))
		waits(s, old, pod);
}

/* ---- nodes ---- */

static void node_changed(struct scheduler *s, struct frozen *old, struct frozen *node)
{
	if (!node) {
		uint32_t index = nodes_find(&s->nodes, val_str(old->val, metadata, name));
		if (index == UINT32_MAX)
			return;
		nominations_node_removed(&s->nominations, index);
		nodes_remove(&s->nodes, val_str(old->val, metadata, name));
		sched_queue_event(s->queue, EV_NODE_DELETE, old->val, VAL_EMPTY);
		return;
	}
	str name = val_str(node->val, metadata, name);
	bool known = nodes_find(&s->nodes, name) != UINT32_MAX;
	uint32_t index = nodes_put(&s->nodes, node);
	unsigned events = old ? node_changes(old->val, node->val) : EV_NODE_ADD;
	if (!known) {
		give_home(s, name, index);
		nominations_node_added(&s->nominations, name, index);
	}
	for (; events; events &= events - 1)
		sched_queue_event(s->queue, events & -events, old ? old->val : VAL_EMPTY, node->val);
}

/* ---- other kinds ---- */

static void kind_changed(struct kind_listener *k, struct frozen *old, struct frozen *object)
{
	struct val before = old ? old->val : VAL_EMPTY, now = object ? object->val : VAL_EMPTY;

	if (k->count)
		k->count(k->scheduler->nodes.counters, before, now);
	/* Of devices, what goes helps nobody; but a claim may have had some. */
	if (k->event && (object || !(k->event & (EV_DEVICE_CLASS | EV_RESOURCE_SLICE))))
		sched_queue_event(k->scheduler->queue, k->event, k->tells ? before : VAL_EMPTY, k->tells ? now : VAL_EMPTY);
}

static void count_controller(struct counters *c, struct val old, struct val new) { counters_owner(c, OWNER_REPLICATION_CONTROLLER, old, new); }
static void count_replica_set(struct counters *c, struct val old, struct val new) { counters_owner(c, OWNER_REPLICA_SET, old, new); }
static void count_stateful_set(struct counters *c, struct val old, struct val new) { counters_owner(c, OWNER_STATEFUL_SET, old, new); }

/* Objects of kinds that share an event with another one are not shown to hints. */
static const struct {
	const struct type *type;
	unsigned event;
	bool tells;
	kind_count *count;
} kinds[] = {
	{ TYPE(core_v1, Namespace), 0, false, counters_namespace },
	{ TYPE(core_v1, Service), 0, false, counters_service },
	{ TYPE(core_v1, ReplicationController), 0, false, count_controller },
	{ TYPE(apps_v1, ReplicaSet), 0, false, count_replica_set },
	{ TYPE(apps_v1, StatefulSet), 0, false, count_stateful_set },
	{ TYPE(core_v1, PersistentVolumeClaim), EV_PVC, true, NULL },
	{ TYPE(core_v1, PersistentVolume), EV_PV, true, NULL },
	{ TYPE(storage_v1, StorageClass), EV_STORAGE_CLASS, true, NULL },
	{ TYPE(storage_v1, CSINode), EV_CSI_NODE, true, NULL },
	{ TYPE(storage_v1, CSIDriver), EV_CSI_NODE, false, NULL },
	{ TYPE(storage_v1, VolumeAttachment), EV_CSI_NODE, false, NULL },
	{ TYPE(storage_v1, CSIStorageCapacity), EV_STORAGE_CLASS, false, NULL },
	{ TYPE(resource_v1, ResourceClaim), EV_CLAIM, true, NULL },
	{ TYPE(resource_v1, ResourceSlice), EV_RESOURCE_SLICE, true, NULL },
	{ TYPE(resource_v1, DeviceClass), EV_DEVICE_CLASS, true, NULL },
};

_Static_assert(ARRAY_LEN(kinds) <= KINDS_MAX, "one listener for each kind");

/* ---- being told ---- */

struct deferred {
	struct list link;
	struct informer_listener *listener;
	struct frozen *old, *object;
};

static bool defer(struct scheduler *s, struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	if (!s->busy)
		return false;
	struct deferred *d = mem_zalloc(sizeof(*d));
	d->listener = l;
	d->old = old ? frozen_ref(old) : NULL;
	d->object = object ? frozen_ref(object) : NULL;
	list_add(&s->deferred, &d->link);
	return true;
}

static void on_node(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct scheduler *s = CONTAINER_OF(l, struct scheduler, node_listener);

	if (old != object && !defer(s, l, old, object))
		node_changed(s, old, object);
}

static void on_pod(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct scheduler *s = CONTAINER_OF(l, struct scheduler, pod_listener);

	if (old != object && !defer(s, l, old, object))
		pod_changed(s, old, object);
}

static void on_kind(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct kind_listener *k = CONTAINER_OF(l, struct kind_listener, listener);

	if (old != object && !defer(k->scheduler, l, old, object))
		kind_changed(k, old, object);
}

static void deferred_free(struct deferred *d)
{
	list_remove(&d->link);
	frozen_unref(d->old);
	frozen_unref(d->object);
	free(d);
}

void scheduler_release_events(struct scheduler *s)
{
	s->busy = false;
	fiber_cond_broadcast(&s->idle);
	LIST_EACH_SAFE(struct deferred, d, &s->deferred, link) {
		d->listener->changed(d->listener, d->old, d->object);
		deferred_free(d);
	}
}

void scheduler_drop_events(struct scheduler *s)
{
	LIST_EACH_SAFE(struct deferred, d, &s->deferred, link)
		deferred_free(d);
	struct map_iter it = map_iter(&s->homeless);
	for (struct homeless *h; (h = map_next(&it, NULL));)
		homeless_free(h);
	map_done(&s->homeless);
}

void scheduler_listen(struct scheduler *s)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct kind_listener *k = &s->kinds[s->n_kinds++];
		*k = (struct kind_listener){ .listener.changed = on_kind, .scheduler = s, .event = kinds[i].event, .tells = kinds[i].tells,
					     .count = kinds[i].count };
		informer_listen(scheduler_informer(s, kinds[i].type), &k->listener);
	}
	s->node_listener.changed = on_node;
	s->pod_listener.changed = on_pod;
	informer_listen(s->node_informer, &s->node_listener);
	informer_listen(s->pod_informer, &s->pod_listener);
}

void scheduler_unlisten(struct scheduler *s)
{
	informer_unlisten(&s->node_listener);
	informer_unlisten(&s->pod_listener);
	for (size_t i = 0; i < s->n_kinds; i++)
		informer_unlisten(&s->kinds[i].listener);
}
