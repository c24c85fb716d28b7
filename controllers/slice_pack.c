/*
 * Slices are grouped by their ports. Endpoints are one and the same when addresses and pod (or whatever they refer to) are: then the slice
 * that has it keeps it, with what is new about it.
 */
#include "controllers/slice_pack.h"

#include <stdlib.h>

#include "codec/atoms.h"
#include "controllers/labels.h"

struct wanted {
	struct val endpoint;
	bool placed;
	struct wanted *next;
};

struct packed {
	struct val slice;            /* as it is, or fresh */
	struct val endpoints;
	size_t n;
	bool exists, changed, gone;
	struct packed *next;
};

struct slice_group {
	struct val ports;
	bool is_wanted;
	struct map by_key;           /* of wanted */
	struct wanted *wanted, **wanted_end, *next_left;
	size_t n_left;
	struct packed *slices, **slices_end;
	struct slice_group *next;
};

/* ---- keys ---- */

static int cmp_str(const void *a, const void *b) { return str_cmp(*(const str *)a, *(const str *)b); }

static str joined(struct arena *a, str *parts, size_t n)
{
	size_t size = 1, at = 0;

	qsort(parts, n, sizeof *parts, cmp_str);
	for (size_t i = 0; i < n; i++)
		size += parts[i].n + 1;
	char *all = ARENA_ARRAY(a, char, size);
	for (size_t i = 0; i < n; i++) {
		if (parts[i].n)
			memcpy(all + at, parts[i].p, parts[i].n);
		at += parts[i].n;
		all[at++] = '\n';
	}
	return str_span(all, at);
}

/* The order of ports does not matter. */
static str ports_key(struct arena *a, struct val ports)
{
	str *parts = ARENA_ARRAY(a, str, val_len(ports) + 1);
	size_t n = 0;

	VAL_EACH(p, ports)
		parts[n++] = arena_printf(a, STR_FMT "|" STR_FMT "|%lld|" STR_FMT, STR_ARG(val_str(*p, name)), STR_ARG(val_str(*p, protocol)),
					  (long long)val_int(*p, port), STR_ARG(val_str(*p, appProtocol)));
	return joined(a, parts, n);
}

static str endpoint_key(struct arena *a, struct val endpoint)
{
	struct val addresses = val_get(endpoint, addresses);
	str *parts = ARENA_ARRAY(a, str, val_len(addresses) + 1);
	size_t n = 0;

	VAL_EACH(address, addresses)
		parts[n++] = val_as_str(*address);
	return arena_printf(a, STR_FMT "|" STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(joined(a, parts, n)),
			    STR_ARG(val_str(endpoint, targetRef, namespace)), STR_ARG(val_str(endpoint, targetRef, name)),
			    STR_ARG(val_str(endpoint, hostname)));
}

/* ---- what is wanted, what is there ---- */

static struct slice_group *group_of(struct slice_pack *p, struct val ports)
{
	str key = ports_key(p->arena, ports);
	struct slice_group *g = map_get(&p->groups, key);

	if (g)
		return g;
	g = ARENA_NEW(p->arena, struct slice_group);
	g->ports = ports;
	g->wanted_end = &g->wanted;
	g->slices_end = &g->slices;
	map_init(&g->by_key);
	if (!p->last)
		p->last = &p->first;
	*p->last = g;
	p->last = &g->next;
	(void)map_put(&p->groups, key, g);
	return g;
}

void slice_pack_want(struct slice_pack *p, struct val ports, struct val endpoint)
{
	struct slice_group *g = group_of(p, ports);

	g->is_wanted = true;
	if (!val_exists(endpoint))
		return;
	str key = endpoint_key(p->arena, endpoint);
	struct wanted *w = map_get(&g->by_key, key);
	if (w) {
		w->endpoint = endpoint;
		return;
	}
	w = ARENA_NEW(p->arena, struct wanted);
	w->endpoint = endpoint;
	*g->wanted_end = w;
	g->wanted_end = &w->next;
	g->n_left++;
	(void)map_put(&g->by_key, key, w);
}

static struct packed *packed_new(struct slice_pack *p, struct slice_group *g, struct val slice, bool exists)
{
	struct packed *s = ARENA_NEW(p->arena, struct packed);

	*s = (struct packed){ .slice = slice, .exists = exists, .endpoints = VAL_EMPTY_LIST };
	*g->slices_end = s;
	g->slices_end = &s->next;
	return s;
}

void slice_pack_found(struct slice_pack *p, struct val slice)
{
	(void)packed_new(p, group_of(p, val_get(slice, ports)), slice, true);
	p->n_found++;
}

/* ---- packing ---- */

static bool same_beyond_hints(struct arena *a, struct val x, struct val y)
{
	return val_equal(val_without(a, x, hints), val_without(a, y, hints));
}

static struct val dressed(const struct slice_pack *p, const struct slice_group *g, const struct packed *s)
{
	struct val slice = val_with(p->arena, s->slice, s->endpoints, endpoints);

	if (!s->exists)
		slice = val_with(p->arena, slice, g->ports, ports);
	return p->dress(p->arena, slice, p->arg);
}

static bool same_slice(struct arena *a, struct val before, struct val after)
{
	if (!val_exists(val_get(before, endpoints)))
		before = val_with(a, before, VAL_EMPTY_LIST, endpoints);
	return val_equal(before, after);
}

/* Those of the slice that are wanted stay. */
static void keep_endpoints(struct slice_pack *p, struct slice_group *g, struct packed *s)
{
	struct val_builder kept = val_builder(p->arena);
	struct val before = val_get(s->slice, endpoints);

	VAL_EACH(e, before) {
		struct wanted *w = map_get(&g->by_key, endpoint_key(p->arena, *e));
		if (!w || w->placed) {
			s->changed = true;
			continue;
		}
		bool same = same_beyond_hints(p->arena, w->endpoint, *e);
		w->placed = true;
		g->n_left--;
		s->changed |= !same;
		s->n++;
		val_add_item(&kept, same ? *e : w->endpoint);
	}
	s->endpoints = val_end_list(&kept);
	s->gone = !g->is_wanted || (val_len(before) && !s->n);
	if (!s->gone && !s->changed)
		s->changed = !same_slice(p->arena, s->slice, dressed(p, g, s));
}

static void fill(struct slice_pack *p, struct slice_group *g, struct packed *s)
{
	struct val_builder more = val_builder(p->arena);

	if (!g->n_left || s->n >= p->max)
		return;
	VAL_EACH(e, s->endpoints)
		val_add_item(&more, *e);
	for (; g->n_left && s->n < p->max; g->next_left = g->next_left->next) {
		if (g->next_left->placed)
			continue;
		val_add_item(&more, g->next_left->endpoint);
		g->next_left->placed = true;
		g->n_left--;
		s->n++;
	}
	s->endpoints = val_end_list(&more);
	s->changed = true;
}

/* The fullest that changes anyway and has room; then the one that those left fill best; NULL: none. */
static struct packed *to_fill(const struct slice_pack *p, const struct slice_group *g)
{
	struct packed *best = NULL;

	for (struct packed *s = g->slices; s; s = s->next)
		if (s->exists && s->changed && !s->gone && s->n < p->max && (!best || s->n > best->n))
			best = s;
	if (best || g->n_left >= p->max)
		return best;
	for (struct packed *s = g->slices; s; s = s->next)
		if (s->exists && !s->changed && !s->gone && s->n + g->n_left <= p->max && (!best || s->n > best->n))
			best = s;
	return best;
}

static void pack_group(struct slice_pack *p, struct slice_group *g)
{
	for (struct packed *s = g->slices; s; s = s->next)
		keep_endpoints(p, g, s);
	g->next_left = g->wanted;
	while (g->n_left) {
		struct packed *s = to_fill(p, g);
		fill(p, g, s ? s : packed_new(p, g, p->fresh, false));
	}
}

/* ---- the result ---- */

static struct val empty_one(const struct slice_pack *p)
{
	struct val slice = val_with(p->arena, p->fresh, VAL_EMPTY_LIST, endpoints);
	return p->dress(p->arena, val_with(p->arena, slice, VAL_EMPTY_LIST, ports), p->arg);
}

static bool is_empty_one(const struct slice_pack *p, struct val slice)
{
	struct val one = empty_one(p);

	return !val_len(val_get(slice, endpoints)) && !val_len(val_get(slice, ports)) &&
	       val_equal(val_get(one, metadata, labels), val_get(slice, metadata, labels)) &&
	       val_equal(val_get(one, metadata, ownerReferences), val_get(slice, metadata, ownerReferences));
}

static struct val stamped(const struct slice_pack *p, struct val slices)
{
	struct val_builder all = val_builder(p->arena);

	if (!p->stamp)
		return slices;
	VAL_EACH(s, slices)
		val_add_item(&all, annotation_put(p->arena, *s, STR(TRIGGER_TIME_ANNOTATION), p->trigger));
	return val_end_list(&all);
}

/* One that would go becomes one that would be made. */
static struct val renamed(struct arena *a, struct val fresh, struct val old)
{
	fresh = val_with(a, fresh, val_get(old, metadata, name), metadata, name);
	return val_with(a, fresh, val_get(old, metadata, resourceVersion), metadata, resourceVersion);
}

void slice_pack_finish(struct slice_pack *p)
{
	struct val_builder create = val_builder(p->arena), update = val_builder(p->arena);
	struct val_builder gone = val_builder(p->arena), more = val_builder(p->arena);
	struct val makes, leaves;
	size_t n_gone = 0, i = 0;

	for (struct slice_group *g = p->first; g; g = g->next) {
		pack_group(p, g);
		map_done(&g->by_key);
		for (struct packed *s = g->slices; s; s = s->next) {
			n_gone += s->gone;
			if (s->gone)
				val_add_item(&gone, s->slice);
			else if (!s->exists)
				val_add_item(&create, dressed(p, g, s));
			else if (s->changed)
				val_add_item(&update, dressed(p, g, s));
		}
	}
	map_done(&p->groups);
	makes = val_end_list(&create);
	leaves = val_end_list(&gone);
	if (p->keep_one && !val_len(makes) && n_gone == p->n_found) {
		if (n_gone == 1 && is_empty_one(p, val_at(leaves, 0)))
			leaves = VAL_EMPTY_LIST;
		else
			makes = LIST(p->arena, empty_one(p));
	}
	for (; i < val_len(makes) && i < val_len(leaves); i++)
		val_add_item(&update, renamed(p->arena, val_at(makes, i), val_at(leaves, i)));
	p->update = stamped(p, val_end_list(&update));
	p->create = stamped(p, val_list(p->arena, val_len(makes) > i ? makes.items + i : NULL, val_len(makes) - i));
	for (; i < val_len(leaves); i++)
		val_add_item(&more, val_at(leaves, i));
	p->gone = val_end_list(&more);
}
