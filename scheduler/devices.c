#include "scheduler/devices.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/cel_device.h"
#include "machinery/gates.h"
#include "machinery/resources.h"

#define CLASS_PREFIX "deviceclass.resource.kubernetes.io/"

enum { ID_MAX = 512, SELECTORS_MAX = 256 };

struct flight {
	str uid;                      /* in the block */
	struct frozen *allocation;
};

struct extended_class {
	struct val class;
};

/* The pod that a claim was made for. */
static str claim_owner(struct val claim)
{
	VAL_EACH(o, val_get(claim, metadata, ownerReferences))
		if (val_bool(*o, controller))
			return val_str(*o, uid);
	return STR("");
}

struct devices *device_table_new(struct client *client, struct informers *informers)
{
	struct devices *d = mem_zalloc(sizeof(*d));
	d->client = client;
	d->features = (struct device_features){ true, true, true, true, true, true, true };
	fiber_cond_init(&d->claims_changed, "a resource claim");
	copies_init(&d->claims, claim_owner, &d->claims_changed);
	copies_init(&d->slices, NULL, NULL);
	copies_init(&d->classes, NULL, NULL);
	map_init(&d->flights);
	map_init(&d->selectors);
	map_init(&d->extended);
	map_init(&d->taken);
	map_init(&d->places);
	d->taken_claims = d->pools_version = d->extended_version = UINT64_MAX;
	if (informers) {
		copies_follow(&d->claims, informers_get(informers, TYPE(resource_v1, ResourceClaim), &(struct informer_options){ 0 }));
		copies_follow(&d->slices, informers_get(informers, TYPE(resource_v1, ResourceSlice), &(struct informer_options){ 0 }));
		copies_follow(&d->classes, informers_get(informers, TYPE(resource_v1, DeviceClass), &(struct informer_options){ 0 }));
	}
	return d;
}

void devices_set_gates(struct devices *d, struct val said)
{
	d->features = (struct device_features){
		.consumable_capacity = gate_is_on(said, STR("DRAConsumableCapacity")),
		.binding_conditions = gate_is_on(said, STR("DRADeviceBindingConditions")) && gate_is_on(said, STR("DRAResourceClaimDeviceStatus")),
		.taints = gate_is_on(said, STR("DRADeviceTaints")),
		.extended_resources = gate_is_on(said, STR("DRAExtendedResource")),
		.partitionable = gate_is_on(said, STR("DRAPartitionableDevices")),
		.prioritized_list = gate_is_on(said, STR("DRAPrioritizedList")),
		.filter_timeout = gate_is_on(said, STR("DRASchedulerFilterTimeout")),
	};
}

static void flight_free(struct flight *f)
{
	frozen_unref(f->allocation);
	free(f);
}

static void drop_selectors(struct devices *d)
{
	struct map_iter it = map_iter(&d->selectors);
	for (struct device_selector *s; (s = map_next(&it, NULL));) {
		cel_program_free(s->program);
		free(s);
	}
	map_done(&d->selectors);
	map_init(&d->selectors);
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
	drop_selectors(d);
	map_done(&d->selectors);
	map_done(&d->flights);
	map_done(&d->extended);
	map_done(&d->taken);
	map_done(&d->places);
	arena_done(&d->taken_arena);
	arena_done(&d->pools_arena);
	arena_done(&d->extended_arena);
	arena_done(&d->eval_arena);
	free(d);
}

void devices_hold(struct devices *d, const bool *busy)
{
	d->claims.hold = d->slices.hold = d->classes.hold = busy;
}

/* ---- what is taken ---- */

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
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
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

static void use_add(struct devices *d, struct device_use *u, struct val consumed)
{
	VAL_EACH_MEMBER(m, consumed) {
		struct capacity_sum *sum = u->sums;
		while (sum && !str_eq(sum->name, atom_str(m->key)))
			sum = sum->next;
		if (!sum) {
			sum = ARENA_NEW(&d->taken_arena, struct capacity_sum);
			*sum = (struct capacity_sum){ u->sums, arena_str(&d->taken_arena, atom_str(m->key)), { 0 } };
			u->sums = sum;
		}
		sum->used = quantity_add(sum->used, quantity_of(m->val));
	}
}

/* Devices that administrators look at are not taken by that. */
static void take(struct devices *d, struct val allocation)
{
	char room[ID_MAX];
	VAL_EACH(r, val_get(allocation, devices, results)) {
		if (val_bool(*r, adminAccess))
			continue;
		str id = join_id(room, val_str(*r, driver), val_str(*r, pool), val_str(*r, device));
		struct device_use *u = map_get(&d->taken, id);
		if (!u) {
			u = ARENA_NEW(&d->taken_arena, struct device_use);
			map_put(&d->taken, arena_str(&d->taken_arena, id), u);
		}
		if (!d->features.consumable_capacity || !val_has(*r, shareID)) {
			u->alone = true;
			continue;
		}
		u->shared = true;
		u->counted |= val_has(*r, consumedCapacity);
		use_add(d, u, val_get(*r, consumedCapacity));
	}
}

static void refresh_taken(struct devices *d)
{
	if (d->taken_claims == d->claims.version && d->taken_flights == d->flights_version)
		return;
	map_done(&d->taken);
	map_init(&d->taken);
	arena_reset(&d->taken_arena);
	struct map_iter it = map_iter(&d->claims.all);
	for (struct copy *x; (x = map_next(&it, NULL));)
		take(d, val_get(copy_val(x), status, allocation));
	it = map_iter(&d->flights);
	for (struct flight *f; (f = map_next(&it, NULL));)
		take(d, f->allocation->val);
	d->n_taken++;
	d->taken_claims = d->claims.version;
	d->taken_flights = d->flights_version;
}

const struct device_use *devices_use(const struct devices *d, const struct device_slice *s, str device)
{
	char room[ID_MAX];
	return map_get(&d->taken, join_id(room, s->driver, s->pool_name, device));
}

void devices_refresh(struct devices *d)
{
	refresh_taken(d);
	device_pools_refresh(d);
}

void devices_begin(struct devices *d)
{
	if (map_len(&d->selectors) > SELECTORS_MAX)
		drop_selectors(d);
	devices_refresh(d);
}

/* ---- extended resources ---- */

/* Of two classes with the same resource the newer one counts, then the one whose name comes first. */
static bool class_wins(struct val class, struct val over)
{
	int order = str_cmp(val_str(class, metadata, creationTimestamp), val_str(over, metadata, creationTimestamp));
	return order > 0 || (order == 0 && str_cmp(val_str(class, metadata, name), val_str(over, metadata, name)) < 0);
}

static void offer_class(struct devices *d, str resource, struct val class)
{
	struct extended_class *x = map_get(&d->extended, resource);
	if (x && !class_wins(class, x->class))
		return;
	if (!x) {
		x = ARENA_NEW(&d->extended_arena, struct extended_class);
		map_put(&d->extended, arena_str(&d->extended_arena, resource), x);
	}
	x->class = class;
}

struct val devices_class_of(struct devices *d, str resource)
{
	if (!d || !d->features.extended_resources)
		return VAL_EMPTY;
	if (d->extended_version != d->classes.version) {
		map_done(&d->extended);
		map_init(&d->extended);
		arena_reset(&d->extended_arena);
		COPIES_EACH(x, &d->classes, STR(""))
			if (val_str(copy_val(x), spec, extendedResourceName).n)
				offer_class(d, val_str(copy_val(x), spec, extendedResourceName), copy_val(x));
		d->extended_version = d->classes.version;
	}
	if (str_starts(resource, STR(CLASS_PREFIX)))
		return copies_val(&d->classes, str_skip(resource, strlen(CLASS_PREFIX)));
	const struct extended_class *x = map_get(&d->extended, resource);
	return x ? x->class : VAL_EMPTY;
}

/* ---- selectors ---- */

static unsigned cel_features(const struct devices *d)
{
	return d->features.consumable_capacity ? CEL_DEVICE_CONSUMABLE_CAPACITY : 0;
}

const struct device_selector *devices_selector(struct devices *d, str expression)
{
	struct device_selector *s = map_get(&d->selectors, expression);
	if (s)
		return s;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct cel_program *program = NULL;
	str why = STR("");
	if (cel_device_compile(expression, cel_features(d), &a, &program, &why) == 0)
		why = STR("");
	s = mem_zalloc(sizeof(*s) + expression.n + why.n + 1);
	char *text = (char *)(s + 1);
	if (expression.n)
		memcpy(text, expression.p, expression.n);
	if (why.n)
		memcpy(text + expression.n, why.p, why.n);
	*s = (struct device_selector){ str_span(text, expression.n), program, str_span(text + expression.n, why.n) };
	map_put(&d->selectors, s->expression, s);
	return s;
}

int device_selected(struct devices *d, const struct device_selector *s, const struct device_slice *slice, struct val device, bool *ret, struct err *err)
{
	if (!s->program)
		return err_set(err, ERR_INVALID, "CEL compile error: " STR_FMT, STR_ARG(s->why));
	int r = cel_device_matches(s->program, cel_features(d), slice->driver, device, &d->eval_arena, ret, err);
	arena_reset(&d->eval_arena);
	return r < 0 ? err_wrap(err, r, "CEL runtime error") : 0;
}
