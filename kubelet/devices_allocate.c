/*
 * Which container gets which device. A choice is noted as an allocation without an answer before the plugin is asked to allocate it, so
 * that nobody else can take these devices meanwhile; a choice that comes to nothing is taken back.
 *
 * Kubernetes goes over limits and devices in no order; here it is that of names and of the plugin's list.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "codec/go.h"
#include "codec/types.h"
#include "kubelet/devices_priv.h"
#include "machinery/resources.h"

enum { NODE_UNKNOWN = -1, ALLOCATE_MS = 2 * 60 * 1000, PREFER_MS = 30 * 1000 };

/* ---- choosing ---- */

/* One container's wish for one resource. */
struct wish {
	struct devices *devices;
	struct arena *arena;
	struct val pod;
	str uid, container, resource;
	int64_t required;
	struct map *reusable;         /* ids, of init containers that have ended by then */
	struct val_builder chosen;
	struct map taken;             /* those in chosen */
	int64_t needed;               /* still */
};

static void take(struct wish *w, str id)
{
	if (!w->needed || map_get(&w->taken, id))
		return;
	(void)map_put(&w->taken, id, w);
	val_add_item(&w->chosen, VAL_STR(id));
	w->needed--;
}

/* Ids that are healthy and nobody's, in the order of the plugin's list. */
static struct val available(struct wish *w, const struct offer *r)
{
	struct val_builder b = val_builder(w->arena);
	struct map used = MAP_INIT;

	map_init(&used);
	allocation_owners(w->devices, w->resource, &used);
	if (r->told)
		VAL_EACH(device, r->told->val) {
			str id = val_str(*device, ID);
			if (offer_has(r, device, id) && offer_is_healthy(r, *device) && !map_get(&used, id) && !map_get(&w->taken, id))
				val_add_item(&b, VAL_STR(arena_str(w->arena, id)));
		}
	map_done(&used);
	return val_end_list(&b);
}

static int unavailable(const struct wish *w, struct val free, struct err *err)
{
	return err_set(err, ERR_CONFLICT, "requested number of devices unavailable for " STR_FMT ". Requested: %lld, Available: %u",
		       STR_ARG(w->resource), (long long)w->needed, val_len(free));
}

/* (suspends) What the plugin would take of the free ones. VAL_NONE: it does not mind. */
static int preferred(struct wish *w, struct device_plugin *p, struct val free, struct val *ret, struct err *err)
{
	struct arena *a = w->arena;
	struct val_builder all = val_builder(a), must = val_builder(a);
	struct map_iter it = map_iter(&w->taken);
	struct val answer;
	str id;

	*ret = VAL_EMPTY;
	if (!p || !p->preferred)
		return 0;
	VAL_EACH(f, free)
		val_add_item(&all, *f);
	while (map_next(&it, &id)) {
		val_add_item(&all, VAL_STR(id));
		val_add_item(&must, VAL_STR(id));
	}
	struct val request = OBJECT(a, F(availableDeviceIDs, val_end_list(&all)), F(mustIncludeDeviceIDs, val_end_list(&must)),
				    F(allocationSize, val_of_int(MIN(w->required, (int64_t)INT32_MAX))));
	int r = plugin_ask(p->channel, &rpc_DevicePlugin_GetPreferredAllocation, a,
			   OBJECT(a, F(containerRequests, LIST(a, request))), PREFER_MS, &answer, err);
	if (r < 0)
		return err_wrap(err, r, "device plugin GetPreferredAllocation rpc failed with err");
	*ret = val_get(val_at(val_get(answer, containerResponses), 0), deviceIDs);
	return 0;
}

/* (suspends) Chooses, with none of them given away meanwhile. */
static int choose(struct wish *w, struct err *err)
{
	struct offer *r = offer_find(w->devices, w->resource);
	struct map_iter it = map_iter(w->reusable);
	struct val wanted;
	str id;

	while (map_next(&it, &id))
		take(w, id);
	if (!w->needed)
		return 0;
	struct val free = available(w, r);
	if ((int64_t)val_len(free) < w->needed)
		return unavailable(w, free, err);
	struct device_plugin *p = device_plugin_ref(r);
	int code = preferred(w, p, free, &wanted, err);
	/* This may suspend, and so comes before the choice, which is noted only by the caller. */
	device_plugin_unref(p);
	if (code < 0)
		return code;
	/* Much may have happened. */
	if (!(r = offer_find(w->devices, w->resource)) || (int64_t)val_len(free = available(w, r)) < w->needed)
		return unavailable(w, r ? free : VAL_EMPTY_LIST, err);
	struct map set = MAP_INIT;
	map_init(&set);
	VAL_EACH(f, free)
		(void)map_put(&set, val_as_str(*f), w);
	VAL_EACH(x, wanted)
		if (map_get(&set, val_as_str(*x)))
			take(w, val_as_str(*x));
	map_done(&set);
	VAL_EACH(f, free)
		take(w, val_as_str(*f));
	return 0;
}

/* A device on a NUMA node. */
struct place {
	int64_t node;
	size_t at;
	struct val id;
};

static int place_cmp(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static struct val nodes_of(const struct offer *r, struct val id)
{
	const struct val *device = r ? map_get(&r->ids, val_as_str(id)) : NULL;

	return device ? val_get(*device, topology, nodes) : VAL_EMPTY;
}

/* The ids by the NUMA nodes that their devices are on; on "-1" those of which it is not known. */
static struct val by_node(struct wish *w, struct val ids)
{
	const struct offer *r = offer_find(w->devices, w->resource);
	struct val_builder object = val_builder(w->arena);
	size_t n = 0, most = 0;

	VAL_EACH(id, ids)
		most += MAX(val_len(nodes_of(r, *id)), 1U);
	struct place *places = ARENA_ARRAY(w->arena, struct place, most);
	VAL_EACH(id, ids) {
		struct val nodes = nodes_of(r, *id);
		VAL_EACH(node, nodes) {
			places[n] = (struct place){ val_int(*node, ID), n, *id };
			n++;
		}
		if (!val_len(nodes)) {
			places[n] = (struct place){ NODE_UNKNOWN, n, *id };
			n++;
		}
	}
	qsort(places, n, sizeof(*places), place_cmp);
	for (size_t i = 0; i < n;) {
		char text[GO_INT_MAX];
		struct val_builder list = val_builder(w->arena);
		int64_t node = places[i].node;
		for (; i < n && places[i].node == node; i++)
			val_add_item(&list, places[i].id);
		val_add_member(&object, atom_make(w->arena, go_format_int(node, text)), val_end_list(&list));
	}
	return val_end_object(&object);
}

/* ---- allocating ---- */

/* (suspends) The chosen devices are noted; the plugin says how the container gets them. */
static int allocate_chosen(struct wish *w, struct val ids, struct err *err)
{
	struct devices *d = w->devices;
	struct arena *a = w->arena;
	struct offer *r = offer_find(d, w->resource);
	struct val answer, devices = by_node(w, ids);

	if (!r)
		return err_set(err, ERR_NOT_FOUND, "unknown Device Plugin " STR_FMT, STR_ARG(w->resource));
	CLEANUP(device_plugin_unrefp) struct device_plugin *p = device_plugin_ref(r);
	if (!p)
		return err_set(err, ERR_UNAVAILABLE, "endpoint " STR_FMT " has been stopped", STR_ARG(w->resource));
	struct allocation *x = allocation_add(d, w->uid, w->container, w->resource, devices, VAL_EMPTY);
	struct val request = OBJECT(a, F(containerRequests, LIST(a, OBJECT(a, F(devicesIds, ids)))));
	int code = plugin_ask(p->channel, &rpc_DevicePlugin_Allocate, a, request, ALLOCATE_MS, &answer, err);
	allocation_remove(x); /* nobody else does so: the pod is among those that are being given devices */
	if (code < 0)
		return code;
	struct val responses = val_get(answer, containerResponses);
	if (!val_len(responses))
		return err_set(err, ERR_INVALID, "no containers return in allocation response &AllocateResponse{ContainerResponses:"
			       "[]*ContainerAllocateResponse{},}");
	(void)allocation_add(d, w->uid, w->container, w->resource, devices, val_at(responses, 0));
	return 1;
}

/* What there is of an earlier call for the same container. */
static int check_earlier(struct wish *w, const struct offer *r, struct allocation *x, struct err *err)
{
	struct map ids = MAP_INIT;
	struct map_iter it;
	bool healthy = true;
	str id;

	map_init(&ids);
	if (x)
		allocation_ids(x, &ids);
	size_t had = map_len(&ids);
	it = map_iter(&ids);
	while (map_next(&it, &id)) {
		const struct val *device = map_get(&r->ids, id);
		healthy = healthy && device && offer_is_healthy(r, *device);
	}
	map_done(&ids);
	if (!healthy)
		return err_set(err, ERR_UNAVAILABLE, "previously allocated devices are no longer healthy; cannot allocate unhealthy devices "
			       STR_FMT, STR_ARG(w->resource));
	w->needed -= (int64_t)had;
	return 0;
}

static size_t count(struct allocation *x)
{
	struct map ids = MAP_INIT;

	map_init(&ids);
	allocation_ids(x, &ids);
	size_t n = map_len(&ids);
	map_done(&ids);
	return n;
}

/* (suspends) 1: something was allocated. */
static int allocate_resource(struct wish *w, struct err *err)
{
	struct devices *d = w->devices;
	struct allocation *x = allocation_find(d, w->uid, w->container, w->resource);
	const struct offer *r = offer_find(d, w->resource);

	if (x && (int64_t)count(x) != w->required)
		return err_set(err, ERR_CONFLICT, "pod \"" STR_FMT "\" container \"" STR_FMT "\" changed request for resource \"" STR_FMT
			       "\" from %zu to %lld", STR_ARG(w->uid), STR_ARG(w->container), STR_ARG(w->resource), count(x),
			       (long long)w->required);
	if (d->o.runs && d->o.runs(d->o.arg, w->uid, w->container))
		return 0;
	if (!r || !r->listed)
		return err_set(err, ERR_UNAVAILABLE, "cannot allocate unregistered device " STR_FMT, STR_ARG(w->resource));
	if (r->lost || !r->n_healthy)
		return err_set(err, ERR_UNAVAILABLE, "no healthy devices present; cannot allocate unhealthy devices " STR_FMT,
			       STR_ARG(w->resource));
	int code = check_earlier(w, r, x, err);
	if (code < 0 || w->needed <= 0)
		return code;
	map_init(&w->taken);
	w->chosen = val_builder(w->arena);
	code = choose(w, err);
	map_done(&w->taken);
	return code < 0 ? code : allocate_chosen(w, val_end_list(&w->chosen), err);
}

static bool is_of_plugin(const struct devices *d, str resource)
{
	const struct offer *r = offer_find(d, resource);

	return (r && r->listed) || allocation_any(d, resource);
}

struct val devices_hide(const struct devices *d, struct arena *a, struct val node)
{
	struct val allocatable = val_get(node, status, allocatable), left = allocatable;

	VAL_EACH_MEMBER(m, allocatable)
		if (is_of_plugin(d, atom_str(m->key)))
			left = val_put(a, left, m->key, VAL_EMPTY);
	return val_same(left, allocatable) ? node : val_with(a, node, left, status, allocatable);
}

/* Devices that come with a claim of an extended resource are not from plugins. */
static bool is_claimed(struct val pod, str container, str resource)
{
	VAL_EACH(m, val_get(pod, status, extendedResourceClaimStatus, requestMappings))
		if (str_eq(val_str(*m, containerName), container) && str_eq(val_str(*m, resourceName), resource))
			return true;
	return false;
}

/* Devices of init containers, by resource, that later containers of the pod use again. */
struct reuse {
	struct list link;
	str resource;
	struct map ids;
};

static struct reuse *reuse_of(struct list *all, struct arena *a, str resource)
{
	LIST_EACH(struct reuse, u, all, link)
		if (str_eq(u->resource, resource))
			return u;
	struct reuse *u = ARENA_NEW(a, struct reuse);
	u->resource = resource;
	map_init(&u->ids);
	list_add(all, &u->link);
	return u;
}

/* The devices of an init container may be had again after it; those of others may not. */
static void reuse_update(struct devices *d, struct arena *a, str uid, str container, bool add, struct list *all)
{
	LIST_EACH(struct allocation, x, &d->allocations, link) {
		if (!str_eq(x->pod, uid) || !str_eq(x->container, container))
			continue;
		struct reuse *u = reuse_of(all, a, x->resource);
		VAL_EACH_MEMBER(node, x->devices)
			VAL_EACH(device, node->val) {
				if (add)
					(void)map_put(&u->ids, arena_str(a, val_as_str(*device)), d);
				else
					(void)map_remove(&u->ids, val_as_str(*device));
			}
	}
}

/* (suspends) 1: something was allocated. */
static int allocate_container(struct devices *d, struct arena *a, struct val pod, struct val container, struct list *reusable, struct err *err)
{
	str name = val_str(container, name);
	int any = 0;

	VAL_EACH_MEMBER(limit, val_get(container, resources, limits)) {
		str resource = atom_str(limit->key);
		int64_t n = quantity_value(quantity_of(limit->val));
		if (is_claimed(pod, name, resource) || !is_of_plugin(d, resource) || n <= 0)
			continue;
		struct wish w = { .devices = d, .arena = a, .pod = pod, .uid = val_str(pod, metadata, uid), .container = name,
				  .resource = resource, .required = n, .needed = n, .reusable = &reuse_of(reusable, a, resource)->ids };
		int r = allocate_resource(&w, err);
		if (r < 0)
			return r;
		any |= r;
	}
	return any;
}

/* (suspends) 1: something was allocated. */
static int allocate_all(struct devices *d, struct arena *a, struct val pod, struct list *reusable, struct err *err)
{
	str uid = val_str(pod, metadata, uid);
	int any = 0;

	VAL_EACH(c, val_get(pod, spec, initContainers)) {
		int r = allocate_container(d, a, pod, *c, reusable, err);
		if (r < 0)
			return r;
		any |= r;
		reuse_update(d, a, uid, val_str(*c, name), !container_is_sidecar(*c), reusable);
	}
	VAL_EACH(c, val_get(pod, spec, containers)) {
		int r = allocate_container(d, a, pod, *c, reusable, err);
		if (r < 0)
			return r;
		any |= r;
		reuse_update(d, a, uid, val_str(*c, name), false, reusable);
	}
	return any;
}

static bool asks_for_any(const struct devices *d, struct val pod)
{
	static const atom lists[] = { A_initContainers, A_containers };

	if (!d->n_offers && list_empty(&d->allocations))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(val_get(pod, spec), lists[i]))
			VAL_EACH_MEMBER(limit, val_get(*c, resources, limits))
				if (is_of_plugin(d, atom_str(limit->key)))
					return true;
	return false;
}

int devices_allocate(struct devices *d, struct val pod, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct allocating busy = { .pod = val_str(pod, metadata, uid) };
	struct list reusable;
	uint64_t before = d->serial;

	if (!asks_for_any(d, pod))
		return 0;
	list_init(&reusable);
	list_add(&d->allocating, &busy.link);
	allocations_collect(d);
	int r = allocate_all(d, &a, pod, &reusable, err);
	if (r > 0)
		r = devices_save(d, err);
	LIST_EACH(struct reuse, u, &reusable, link)
		map_done(&u->ids);
	list_remove(&busy.link);
	if (r >= 0)
		return 0;
	LIST_EACH_SAFE(struct allocation, x, &d->allocations, link)
		if (str_eq(x->pod, busy.pod) && x->serial > before)
			allocation_remove(x);
	if (err && r != -ERR_CANCELED)
		(void)err_set(err, err->code, "Allocate failed due to " STR_FMT ", which is unexpected",
			      STR_ARG(arena_str(&a, err_str(err))));
	return r;
}
