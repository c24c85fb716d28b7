#include "scheduler/devices.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/resources.h"

enum { ID_MAX = 512 };

struct flight {
	str uid;                      /* in the block */
	struct frozen *allocation;
};

struct pool_slice {
	struct pool_slice *next;
	struct val slice;
};

static str slice_node(struct val slice) { return val_str(slice, spec, nodeName); }

struct devices *device_table_new(struct client *client, struct informers *informers)
{
	struct devices *d = mem_zalloc(sizeof(*d));
	d->client = client;
	copies_init(&d->claims, NULL, NULL);
	copies_init(&d->slices, slice_node, NULL);
	copies_init(&d->classes, NULL, NULL);
	map_init(&d->flights);
	map_init(&d->taken);
	map_init(&d->pools);
	arena_init(&d->taken_arena);
	arena_init(&d->pools_arena);
	d->taken_claims = d->pools_version = UINT64_MAX;
	if (informers) {
		copies_follow(&d->claims, informers_get(informers, TYPE(resource_v1, ResourceClaim), &(struct informer_options){ 0 }));
		copies_follow(&d->slices, informers_get(informers, TYPE(resource_v1, ResourceSlice), &(struct informer_options){ 0 }));
		copies_follow(&d->classes, informers_get(informers, TYPE(resource_v1, DeviceClass), &(struct informer_options){ 0 }));
	}
	return d;
}

static void flight_free(struct flight *f)
{
	frozen_unref(f->allocation);
	free(f);
}

void device_table_free(struct devices *d)
{
	if (!d)
		return;
	copies_done(&d->claims);
	copies_done(&d->slices);
	copies_done(&d->classes);
	struct map_iter it = map_iter(&d->flights);
	for (struct flight *f; (f = map_next(&it, NULL));)
		flight_free(f);
	map_done(&d->flights);
	map_done(&d->taken);
	map_done(&d->pools);
	arena_done(&d->taken_arena);
	arena_done(&d->pools_arena);
	free(d);
}

void devices_hold(struct devices *d, const bool *busy)
{
	d->claims.hold = d->slices.hold = d->classes.hold = busy;
}

void devices_land(struct devices *d, str claim_uid)
{
	struct flight *f = map_remove(&d->flights, claim_uid);
	if (!f)
		return;
	flight_free(f);
	d->flights_version++;
}

void devices_depart(struct devices *d, str claim_uid, struct val allocation)
{
	devices_land(d, claim_uid);
	struct flight *f = mem_zalloc(sizeof(*f) + claim_uid.n + 1);
	if (claim_uid.n)
		memcpy((char *)(f + 1), claim_uid.p, claim_uid.n);
	f->uid = str_span((char *)(f + 1), claim_uid.n);
	f->allocation = val_freeze(allocation);
	map_put(&d->flights, f->uid, f);
	d->flights_version++;
}

bool devices_flying(const struct devices *d, str claim_uid)
{
	return map_get(&d->flights, claim_uid) != NULL;
}

/* Names are checked by the server to be much shorter; longer ones would be the same thing as nothing. */
static str join_id(char out[ID_MAX], str driver, str pool, str device)
{
	const str parts[] = { driver, pool, device };
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(parts) && parts[i].p; i++) {
		if (n + parts[i].n + 1 > ID_MAX)
			return STR_NONE;
		if (i)
			out[n++] = '/';
		if (parts[i].n)
			memcpy(out + n, parts[i].p, parts[i].n);
		n += parts[i].n;
	}
	return str_span(out, n);
}

/* Devices that administrators look at are not taken by that. */
static void take(struct devices *d, struct val allocation)
{
	char room[ID_MAX];
	VAL_EACH(r, val_get(allocation, devices, results)) {
		if (val_bool(*r, adminAccess))
			continue;
		str id = arena_str(&d->taken_arena, join_id(room, val_str(*r, driver), val_str(*r, pool), val_str(*r, device)));
		map_put(&d->taken, id, d);
	}
}

static void refresh_taken(struct devices *d)
{
	if (d->taken_claims == d->claims.version && d->taken_flights == d->flights_version)
		return;
	map_done(&d->taken);
	map_init(&d->taken);
	arena_reset(&d->taken_arena);
	COPIES_EACH(x, &d->claims, STR(""))
		take(d, val_get(copy_val(x), status, allocation));
	struct map_iter it = map_iter(&d->flights);
	for (struct flight *f; (f = map_next(&it, NULL));)
		take(d, f->allocation->val);
	d->n_taken++;
	d->taken_claims = d->claims.version;
	d->taken_flights = d->flights_version;
}

static void count_slice(struct devices *d, struct val slice)
{
	char room[ID_MAX];
	str id = join_id(room, val_str(slice, spec, driver), val_str(slice, spec, pool, name), STR_NONE);
	int64_t generation = val_int(slice, spec, pool, generation);
	struct device_pool *p = map_get(&d->pools, id);
	if (!p) {
		p = ARENA_NEW(&d->pools_arena, struct device_pool);
		p->id = arena_str(&d->pools_arena, id);
		p->generation = generation;
		map_put(&d->pools, p->id, p);
	}
	if (generation > p->generation) {
		p->generation = generation;
		p->n_slices = 0;
		p->slices = NULL;
	}
	if (generation < p->generation)
		return;
	struct pool_slice *one = ARENA_NEW(&d->pools_arena, struct pool_slice);
	*one = (struct pool_slice){ p->slices, slice };
	p->slices = one;
	p->n_slices++;
}

static void refresh_pools(struct devices *d)
{
	if (d->pools_version == d->slices.version)
		return;
	map_done(&d->pools);
	map_init(&d->pools);
	arena_reset(&d->pools_arena);
	struct map_iter it = map_iter(&d->slices.all);
	for (struct copy *x; (x = map_next(&it, NULL));)
		count_slice(d, copy_val(x));
	d->pools_version = d->slices.version;
}

void devices_refresh(struct devices *d)
{
	refresh_taken(d);
	refresh_pools(d);
}

bool devices_taken(const struct devices *d, str driver, str pool, str device)
{
	char room[ID_MAX];
	return map_get(&d->taken, join_id(room, driver, pool, device)) != NULL;
}

struct device_pool *devices_pool(const struct devices *d, str driver, str pool)
{
	char room[ID_MAX];
	return map_get(&d->pools, join_id(room, driver, pool, STR_NONE));
}

static struct device_counter *counter_find(const struct device_pool *p, str set, str name)
{
	for (struct device_counter *c = p->counters; c; c = c->next)
		if (str_eq(c->set, set) && str_eq(c->name, name))
			return c;
	return NULL;
}

static void counters_make(struct devices *d, struct device_pool *p, struct val slice)
{
	VAL_EACH(set, val_get(slice, spec, sharedCounters))
		VAL_EACH_MEMBER(m, val_get(*set, counters)) {
			struct device_counter *c = ARENA_NEW(&d->taken_arena, struct device_counter);
			*c = (struct device_counter){ p->counters, val_str(*set, name), atom_str(m->key), quantity_of(val_get(m->val, value)) };
			p->counters = c;
		}
}

static void counters_take(struct devices *d, struct device_pool *p, struct val slice)
{
	VAL_EACH(device, val_get(slice, spec, devices)) {
		struct val uses = val_get(*device, consumesCounters);
		if (!val_len(uses) || !devices_taken(d, val_str(slice, spec, driver), val_str(slice, spec, pool, name), val_str(*device, name)))
			continue;
		VAL_EACH(u, uses)
			VAL_EACH_MEMBER(m, val_get(*u, counters)) {
				struct device_counter *c = counter_find(p, val_str(*u, counterSet), atom_str(m->key));
				if (c)
					c->left = quantity_sub(c->left, quantity_of(val_get(m->val, value)));
			}
	}
}

const struct device_counter *devices_counter(struct devices *d, struct device_pool *p, str set, str name)
{
	if (p->counted != d->n_taken) {
		p->counters = NULL; /* they were in the arena of the last time */
		for (struct pool_slice *s = p->slices; s; s = s->next)
			counters_make(d, p, s->slice);
		for (struct pool_slice *s = p->slices; s; s = s->next)
			counters_take(d, p, s->slice);
		p->counted = d->n_taken;
	}
	return counter_find(p, set, name);
}
