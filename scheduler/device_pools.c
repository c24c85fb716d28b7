/*
 * Slices by pool. A pool is rewritten by writing slices of a newer generation: until all of these are there the pool is incomplete. A node may see
 * only some slices of a pool, which is fine as long as the others exist. The counters that devices of a pool share stand in slices of their own,
 * which every node sees.
 */
#include <stdlib.h>

#include "codec/atoms.h"
#include "machinery/resources.h"
#include "scheduler/devices.h"

struct device_place {
	struct device_slice *slices;
};

/* ---- once per change of slices ---- */

static int by_pool(const struct device_slice *x, const struct device_slice *y)
{
	int order = str_cmp(x->driver, y->driver);
	return order ? order : str_cmp(x->pool_name, y->pool_name);
}

static int by_order(const void *p, const void *q)
{
	const struct device_slice *x = *(struct device_slice *const *)p, *y = *(struct device_slice *const *)q;
	int order = by_pool(x, y);
	if (!order)
		order = (x->generation > y->generation) - (x->generation < y->generation);
	return order ? order : str_cmp(x->name, y->name);
}

static void compile_device_nodes(struct arena *a, struct device_slice *s)
{
	struct val list = val_get(s->object, spec, devices);
	size_t i = 0;
	s->device_nodes = ARENA_ARRAY(a, struct node_selector, val_len(list) + 1);
	VAL_EACH(d, list)
		node_selector_compile(a, val_get(*d, nodeSelector), NULL, &s->device_nodes[i++]);
}

static struct device_slice *slice_make(struct arena *a, struct val object)
{
	struct device_slice *s = ARENA_NEW(a, struct device_slice);
	struct val spec = val_get(object, spec);
	*s = (struct device_slice){ .object = object, .driver = val_str(spec, driver), .pool_name = val_str(spec, pool, name),
				    .name = val_str(object, metadata, name), .node = val_str(spec, nodeName), .generation = val_int(spec, pool, generation),
				    .count = val_int(spec, pool, resourceSliceCount), .counters = val_len(val_get(spec, sharedCounters)) > 0,
				    .everywhere = val_bool(spec, allNodes), .selects = val_has(spec, nodeSelector),
				    .by_device = val_bool(spec, perDeviceNodeSelection) };
	if (s->selects)
		node_selector_compile(a, val_get(spec, nodeSelector), NULL, &s->nodes);
	if (s->by_device)
		compile_device_nodes(a, s);
	VAL_EACH(d, val_get(spec, devices))
		s->binding |= val_has(*d, bindingConditions);
	return s;
}

static bool names_differ(struct device_slice *const *slices, size_t n, bool partitionable)
{
	struct map names;
	bool distinct = true;
	map_init(&names);
	for (size_t i = 0; i < n; i++) {
		if (partitionable && slices[i]->counters)
			continue;
		VAL_EACH(d, val_get(slices[i]->object, spec, devices))
			distinct &= !map_put(&names, val_str(*d, name), slices[i]);
	}
	map_done(&names);
	return distinct;
}

static struct device_counter *counter_find(const struct device_pool *p, str set, str name)
{
	for (struct device_counter *c = p->counters; c; c = c->next)
		if (str_eq(c->set, set) && str_eq(c->name, name))
			return c;
	return NULL;
}

static bool has_set(const struct device_pool *p, str set)
{
	for (struct device_counter *c = p->counters; c; c = c->next)
		if (str_eq(c->set, set))
			return true;
	return false;
}

/* False if two sets have the same name. */
static bool make_counters(struct arena *a, struct device_pool *p)
{
	bool distinct = true;
	p->counters = NULL;
	for (size_t i = 0; i < p->n; i++)
		VAL_EACH(set, val_get(p->slices[i]->object, spec, sharedCounters)) {
			str name = val_str(*set, name);
			distinct &= !has_set(p, name);
			VAL_EACH_MEMBER(m, val_get(*set, counters)) {
				struct device_counter *c = ARENA_NEW(a, struct device_counter);
				*c = (struct device_counter){ p->counters, name, atom_str(m->key), quantity_of(val_get(m->val, value)) };
				p->counters = c;
			}
		}
	return distinct;
}

static bool devices_know_counters(const struct device_pool *p)
{
	for (size_t i = 0; i < p->n; i++)
		VAL_EACH(d, val_get(p->slices[i]->object, spec, devices))
			VAL_EACH(u, val_get(*d, consumesCounters)) {
				if (!has_set(p, val_str(*u, counterSet)))
					return false;
				VAL_EACH_MEMBER(m, val_get(*u, counters))
					if (!counter_find(p, val_str(*u, counterSet), atom_str(m->key)))
						return false;
			}
	return true;
}

static void pool_check(struct devices *d, struct device_pool *p)
{
	p->distinct = names_differ(p->slices, p->n, d->features.partitionable);
	p->sound = !d->features.partitionable || (make_counters(&d->pools_arena, p) && devices_know_counters(p));
	p->counters = NULL; /* made again when somebody asks for what is left */
}

static void make_pools(struct devices *d)
{
	for (size_t i = 0, n; i < d->n_all; i += n) {
		struct device_pool *p = ARENA_NEW(&d->pools_arena, struct device_pool);
		for (n = 0; i + n < d->n_all && !by_pool(d->all[i], d->all[i + n]) && d->all[i + n]->generation == d->all[i]->generation; n++)
			d->all[i + n]->pool = p;
		*p = (struct device_pool){ .slices = &d->all[i], .n = n, .newest = i + n == d->n_all || by_pool(d->all[i], d->all[i + n]) };
		pool_check(d, p);
	}
}

static void put_in_place(struct devices *d, struct device_slice *s)
{
	struct device_slice **list = &d->wide;
	if (s->node.n && !s->counters) {
		struct device_place *place = map_get(&d->places, s->node);
		if (!place) {
			place = ARENA_NEW(&d->pools_arena, struct device_place);
			map_put(&d->places, s->node, place);
		}
		list = &place->slices;
	}
	s->next = *list;
	*list = s;
}

void device_pools_refresh(struct devices *d)
{
	if (d->pools_version == d->slices.version)
		return;
	map_done(&d->places);
	map_init(&d->places);
	arena_reset(&d->pools_arena);
	d->wide = NULL;
	d->n_all = 0;
	d->all = ARENA_ARRAY(&d->pools_arena, struct device_slice *, map_len(&d->slices.all) + 1);
	struct map_iter it = map_iter(&d->slices.all);
	for (struct copy *x; (x = map_next(&it, NULL));) {
		struct device_slice *s = slice_make(&d->pools_arena, copy_val(x));
		if (d->features.partitionable || !(s->counters || val_has(s->object, spec, perDeviceNodeSelection)))
			d->all[d->n_all++] = s;
	}
	if (d->n_all)
		qsort(d->all, d->n_all, sizeof(struct device_slice *), by_order);
	for (size_t i = 0; i < d->n_all; i++) {
		d->all[i]->ordinal = i;
		put_in_place(d, d->all[i]);
	}
	make_pools(d);
	d->pools_version = d->slices.version;
}

/* ---- one node ---- */

bool device_is_here(const struct device_slice *s, size_t at, str node_name, struct val node)
{
	struct val device = val_at(val_get(s->object, spec, devices), at);
	if (val_str(device, nodeName).n)
		return str_eq(val_str(device, nodeName), node_name);
	return val_bool(device, allNodes) || (val_has(device, nodeSelector) && node_selector_matches(&s->device_nodes[at], node, NULL) == 1);
}

static bool slice_is_here(const struct device_slice *s, str node_name, struct val node)
{
	if (s->counters || s->everywhere)
		return true;
	if (s->node.n)
		return str_eq(s->node, node_name);
	if (s->selects)
		return node_selector_matches(&s->nodes, node, NULL) == 1;
	for (size_t i = 0, n = val_len(val_get(s->object, spec, devices)); s->by_device && i < n; i++)
		if (device_is_here(s, i, node_name, node))
			return true;
	return false;
}

static void *grown(struct arena *a, void *old, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return old;
	*cap = *cap ? 2 * *cap : 16;
	void *room = arena_alloc(a, *cap * size, _Alignof(max_align_t));
	if (n)
		memcpy(room, old, n * size);
	return room;
}

static void add_slices(struct arena *a, struct device_slice *list, str node_name, struct val node, struct pool_views *v)
{
	for (struct device_slice *s = list; s; s = s->next) {
		if (!slice_is_here(s, node_name, node))
			continue;
		v->slices = grown(a, v->slices, v->n_slices, &v->cap_slices, sizeof(struct device_slice *));
		v->slices[v->n_slices++] = s;
	}
}

static int by_ordinal(const void *p, const void *q)
{
	const struct device_slice *x = *(struct device_slice *const *)p, *y = *(struct device_slice *const *)q;
	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

/* One generation of a pool, as far as the node sees it. False: there is a newer one that it does not see. */
static bool view_make(const struct devices *d, struct device_slice **slices, size_t n, struct pool_view *ret)
{
	struct device_pool *p = slices[0]->pool;
	*ret = (struct pool_view){ .pool = p, .slices = slices, .n = n };
	if ((int64_t)n != slices[0]->count) {
		if (!p->newest)
			return false;
		ret->incomplete = (int64_t)p->n != slices[0]->count;
	}
	ret->invalid = !ret->incomplete && (!p->sound || (!p->distinct && !names_differ(slices, n, d->features.partitionable)));
	for (size_t i = 0; i < n && !ret->incomplete && !ret->invalid; i++)
		ret->binding |= slices[i]->binding;
	return true;
}

/* Those with binding conditions last, else in the order of names, which drivers can choose. */
static int by_turn(const void *p, const void *q)
{
	const struct pool_view *x = p, *y = q;
	return x->binding != y->binding ? x->binding - y->binding : by_ordinal(x->slices, y->slices);
}

void devices_see(struct devices *d, struct arena *a, str node_name, struct val node, struct pool_views *ret)
{
	const struct device_place *place = map_get(&d->places, node_name);
	ret->n = ret->n_slices = 0;
	if (place)
		add_slices(a, place->slices, node_name, node, ret);
	add_slices(a, d->wide, node_name, node, ret);
	if (!ret->n_slices)
		return;
	qsort(ret->slices, ret->n_slices, sizeof(struct device_slice *), by_ordinal);
	for (size_t i = 0, n; i < ret->n_slices; i += n) {
		for (n = 1; i + n < ret->n_slices && ret->slices[i + n]->pool == ret->slices[i]->pool; n++)
			;
		bool newer = i + n < ret->n_slices && !by_pool(ret->slices[i], ret->slices[i + n]);
		ret->all = grown(a, ret->all, ret->n, &ret->cap, sizeof(struct pool_view));
		if (!newer && view_make(d, &ret->slices[i], n, &ret->all[ret->n]))
			ret->n++;
	}
	if (ret->n)
		qsort(ret->all, ret->n, sizeof(struct pool_view), by_turn);
}

static int is_of_class(struct devices *d, const struct device_slice *s, struct val device, struct val class)
{
	bool match = true;
	VAL_EACH(x, val_get(class, spec, selectors)) {
		if (!val_has(*x, cel))
			continue;
		int r = device_selected(d, devices_selector(d, val_str(*x, cel, expression)), s, device, &match, NULL);
		if (r < 0 || !match)
			return r < 0 ? r : 0;
	}
	return 1;
}

static int count_devices(struct devices *d, const struct device_slice *list, struct val class, str node_name, struct val node, int64_t count[2])
{
	for (const struct device_slice *s = list; s; s = s->next) {
		size_t at = 0;
		if (!slice_is_here(s, node_name, node))
			continue;
		VAL_EACH(device, val_get(s->object, spec, devices)) {
			int r = s->by_device && !device_is_here(s, at, node_name, node) ? 0 : is_of_class(d, s, *device, class);
			at++;
			if (r < 0)
				return r;
			count[0] += r;
			count[1] += r && devices_use(d, s, val_str(*device, name));
		}
	}
	return 0;
}

int64_t devices_count(struct devices *d, struct val class, str node_name, struct val node, int64_t *ret_used)
{
	const struct device_place *place = map_get(&d->places, node_name);
	int64_t count[2] = { 0, 0 };
	*ret_used = 0;
	if (count_devices(d, place ? place->slices : NULL, class, node_name, node, count) < 0 ||
	    count_devices(d, d->wide, class, node_name, node, count) < 0)
		return 0;
	*ret_used = count[1];
	return count[0];
}

/* ---- what devices of a pool share ---- */

static void counters_take(struct devices *d, struct device_pool *p, const struct device_slice *s)
{
	VAL_EACH(device, val_get(s->object, spec, devices)) {
		struct val uses = val_get(*device, consumesCounters);
		if (!val_len(uses) || !devices_use(d, s, val_str(*device, name)))
			continue;
		VAL_EACH(u, uses)
			VAL_EACH_MEMBER(m, val_get(*u, counters)) {
				struct device_counter *c = counter_find(p, val_str(*u, counterSet), atom_str(m->key));
				if (c)
					c->left = quantity_sub(c->left, quantity_of(val_get(m->val, value)));
			}
	}
}

const struct device_counter *devices_counters(struct devices *d, struct device_pool *p)
{
	if (p->counted != d->n_taken) {
		/* In the arena of what is taken: gone together. */
		(void)make_counters(&d->taken_arena, p);
		for (size_t i = 0; i < p->n; i++)
			counters_take(d, p, p->slices[i]);
		p->counted = d->n_taken;
	}
	return p->counters;
}
