/*
 * What plugins offer, and who has what of it; and what plugins say about both, checked. Nothing here suspends, or asks anybody.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "kubelet/devices_priv.h"
#include "machinery/resources.h"

enum { OFFERS_MAX = 256, NAME_MAX_BYTES = 317, DEVICES_MAX = 65536 };

void devices_state_init(struct devices *d)
{
	list_init(&d->offers);
	list_init(&d->allocations);
	list_init(&d->allocating);
	csi_drivers_init(&d->csi);
}

void devices_state_done(struct devices *d)
{
	LIST_EACH_SAFE(struct allocation, x, &d->allocations, link)
		allocation_remove(x);
	LIST_EACH_SAFE(struct offer, r, &d->offers, link)
		offer_free(d, r);
	csi_drivers_done(&d->csi);
}

/* ---- offers ---- */

struct offer *offer_find(const struct devices *d, str name)
{
	LIST_EACH(struct offer, r, &d->offers, link)
		if (str_eq(r->name, name))
			return r;
	return NULL;
}

struct offer *offer_add(struct devices *d, str name)
{
	struct offer *before = NULL;

	if (d->n_offers >= OFFERS_MAX || name.n > NAME_MAX_BYTES)
		return NULL;
	LIST_EACH(struct offer, other, &d->offers, link)
		if (!before && str_cmp(other->name, name) > 0)
			before = other;
	struct offer *r = mem_zalloc(sizeof(*r) + name.n);
	char *text = (char *)(r + 1);
	memcpy(text, name.p, name.n);
	*r = (struct offer){ .name = str_span(text, name.n), .stopped_ns = clock_now_ns(), .lost = true };
	map_init(&r->ids);
	list_add(before ? &before->link : &d->offers, &r->link);
	d->n_offers++;
	return r;
}

void offer_free(struct devices *d, struct offer *r)
{
	list_remove(&r->link);
	d->n_offers--;
	map_done(&r->ids);
	frozen_unref(r->told);
	free(r);
}

/* Calls pod_changed for pods that have a device whose health is another than before, or which was not there before. */
static void tell_pods(struct devices *d, const struct offer *r, const struct map *before)
{
	struct map told = MAP_INIT, owners = MAP_INIT;

	map_init(&told);
	map_init(&owners);
	allocation_owners(d, r->name, &owners);
	VAL_EACH(device, r->told->val) {
		str id = val_str(*device, ID);
		const struct val *old = map_get(before, id);
		if (!offer_has(r, device, id) || (old && str_eq(val_str(*old, health), val_str(*device, health))))
			continue;
		const struct allocation *x = map_get(&owners, id);
		if (x && !map_put(&told, x->pod, d))
			d->o.pod_changed(d->o.arg, x->pod);
	}
	map_done(&owners);
	map_done(&told);
}

/* False: it is what the plugin has told before. */
static bool offer_update(struct devices *d, struct offer *r, struct val devices)
{
	struct frozen *old = r->told;

	if (old && r->listed && !r->lost && val_equal(old->val, devices))
		return false;
	struct map before = r->ids;
	size_t n = map_len(&before), healthy = r->lost ? 0 : r->n_healthy;
	bool is_new = !r->listed;

	r->told = val_freeze(devices);
	map_init(&r->ids);
	r->n_healthy = 0;
	r->lost = r->gone = false;
	r->listed = true;
	VAL_EACH(device, r->told->val)
		(void)map_put(&r->ids, val_str(*device, ID), (void *)device);
	VAL_EACH(device, r->told->val)
		r->n_healthy += offer_has(r, device, val_str(*device, ID)) && offer_is_healthy(r, *device);
	tell_pods(d, r, &before);
	map_done(&before);
	frozen_unref(old);
	if (is_new || n != map_len(&r->ids) || healthy != r->n_healthy)
		d->o.changed(d->o.arg);
	log_debug("device plugin told its devices", KV("resource", r->name), KV("devices", map_len(&r->ids)), KV("healthy", r->n_healthy));
	return true;
}

int offer_tell(struct devices *d, struct offer *r, str message, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val answer;
	int code = proto_decode(&a, message, rpc_DevicePlugin_ListAndWatch.response, &answer, err);

	if (code < 0)
		return code;
	struct val devices = val_get(answer, devices);
	if (val_len(devices) > DEVICES_MAX)
		return err_set(err, ERR_TOO_LARGE, "it has more than %d devices", DEVICES_MAX);
	return r ? offer_update(d, r, val_is(devices, VAL_LIST) ? devices : VAL_EMPTY_LIST) : 0;
}

int device_plugin_validate(struct devices *d, str name, struct val versions, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(256);
	bool ok = false;

	(void)d;
	VAL_EACH(v, versions) {
		ok = ok || str_eq(val_as_str(*v), STR("v1beta1"));
		buf_addf(&b, "%s" STR_FMT, v == versions.items ? "" : " ", STR_ARG(val_as_str(*v)));
	}
	if (!ok)
		return err_set(err, ERR_INVALID, "manager version, v1beta1, is not among plugin supported versions [" STR_FMT "]",
			       STR_ARG(buf_str(&b)));
	if (!resource_is_extended(name))
		return err_set(err, ERR_INVALID, "invalid name of device plugin socket: the ResourceName \"" STR_FMT "\" is invalid",
			       STR_ARG(name));
	return 0;
}

/* ---- the list of allocations ---- */

static int allocation_cmp(const struct allocation *x, str pod, str container, str resource)
{
	int c = str_cmp(x->pod, pod);

	if (!c)
		c = str_cmp(x->container, container);
	return c ? c : str_cmp(x->resource, resource);
}

struct allocation *allocation_find(const struct devices *d, str pod, str container, str resource)
{
	LIST_EACH(struct allocation, x, &d->allocations, link)
		if (!allocation_cmp(x, pod, container, resource))
			return x;
	return NULL;
}

struct allocation *allocation_add(struct devices *d, str pod, str container, str resource, struct val devices, struct val response)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct allocation *x = mem_zalloc(sizeof(*x)), *after = NULL;
	const struct val parts[] = { VAL_STR(pod), VAL_STR(container), VAL_STR(resource), devices, response };

	x->serial = ++d->serial;
	x->self = val_freeze(val_list(&a, parts, ARRAY_LEN(parts)));
	x->pod = val_as_str(val_at(x->self->val, 0));
	x->container = val_as_str(val_at(x->self->val, 1));
	x->resource = val_as_str(val_at(x->self->val, 2));
	x->devices = val_at(x->self->val, 3);
	x->response = val_at(x->self->val, 4);
	LIST_EACH(struct allocation, other, &d->allocations, link)
		if (!after && allocation_cmp(other, pod, container, resource) > 0)
			after = other;
	list_add(after ? &after->link : &d->allocations, &x->link);
	return x;
}

void allocation_remove(struct allocation *x)
{
	list_remove(&x->link);
	frozen_unref(x->self);
	free(x);
}

/* Adds the ids to a set, whose keys they are. */
void allocation_ids(struct allocation *x, struct map *set)
{
	VAL_EACH_MEMBER(node, x->devices)
		VAL_EACH(device, node->val)
			(void)map_put(set, val_as_str(*device), x);
}

bool allocation_any(const struct devices *d, str resource)
{
	LIST_EACH(struct allocation, x, &d->allocations, link)
		if (str_eq(x->resource, resource))
			return true;
	return false;
}

void allocation_owners(const struct devices *d, str resource, struct map *ret)
{
	LIST_EACH(struct allocation, x, &d->allocations, link)
		if (str_eq(x->resource, resource))
			allocation_ids(x, ret);
}

void allocations_collect(struct devices *d)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct map active = MAP_INIT;

	if (list_empty(&d->allocations))
		return;
	struct val pods = d->o.pods(d->o.arg, &a);
	if (!val_exists(pods))
		return;
	map_init(&active);
	VAL_EACH(pod, pods)
		(void)map_put(&active, val_str(*pod, metadata, uid), d);
	LIST_EACH(struct allocating, busy, &d->allocating, link)
		(void)map_put(&active, busy->pod, d);
	LIST_EACH_SAFE(struct allocation, x, &d->allocations, link)
		if (!map_get(&active, x->pod))
			allocation_remove(x);
	map_done(&active);
}

struct val allocation_id_list(struct arena *a, const struct allocation *x)
{
	struct val_builder b = val_builder(a);
	struct map seen = MAP_INIT;

	map_init(&seen);
	VAL_EACH_MEMBER(node, x->devices)
		VAL_EACH(id, node->val)
			if (!map_put(&seen, val_as_str(*id), (void *)id))
				val_add_item(&b, VAL_STR(arena_str(a, val_as_str(*id))));
	map_done(&seen);
	return val_end_list(&b);
}
