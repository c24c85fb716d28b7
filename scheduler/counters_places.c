/*
 * Where pods are counted: domains of labels, and the nodes that a constraint speaks of. Nodes change rarely: most updates of a Node are
 * heartbeats and are recognised by a hash of what counts here (name, labels, taints). A change moves the node's pods from its old domains to
 * its new ones, in all tallies.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "scheduler/counters_priv.h"
#include "scheduler/tolerations.h"

/* ---- topos ---- */

static void topo_room(struct counters *c, struct topo *t, uint32_t n)
{
	if (n < t->cap)
		return;
	uint32_t cap = MAX(n + 1, t->cap * 2);
	t->value = room_grow(c, t->value, t->cap, cap, sizeof(*t->value));
	t->n_nodes = room_grow(c, t->n_nodes, t->cap, cap, sizeof(*t->n_nodes));
	t->seen = room_grow(c, t->seen, t->cap, cap, sizeof(*t->seen));
	t->cap = cap;
}

/* One node more has this value: the domain's number. */
static uint32_t domain_take(struct counters *c, struct topo *t, word value)
{
	uint32_t d = (uint32_t)tab_get(&t->by_value, value);

	if (!d) {
		if (t->free) {
			d = t->free;
			t->free = t->n_nodes[d];
		} else {
			d = ++t->n;
			topo_room(c, t, d);
		}
		t->value[d] = word_hold(c->nodes, value);
		t->n_nodes[d] = 0;
		*tab_put(&t->by_value, value) = d;
	}
	t->n_nodes[d]++;
	return d;
}

static void domain_release(struct counters *c, struct topo *t, uint32_t d)
{
	if (--t->n_nodes[d])
		return;
	*tab_put(&t->by_value, t->value[d]) = 0;
	word_drop(c->nodes, t->value[d]);
	t->value[d] = 0;
	t->n_nodes[d] = t->free;
	t->free = d;
}

static word node_value(const struct counters *c, uint32_t node, word key)
{
	return c->signs[node] ? nodes_label(c->nodes, node, key) : 0;
}

static void topo_put(struct counters *c, struct topo *t, uint32_t node, uint32_t domain)
{
	if (!t->own && domain) {
		t->of = room_grow(c, NULL, 0, c->cap_nodes, sizeof(*t->of));
		t->own = true;
	}
	if (t->own)
		t->of[node] = domain;
}

struct topo *counters_topo(struct counters *c, str key)
{
	word k = word_make(c->nodes, key);
	struct topo *t = tab_pointer(&c->topo_keys, k);

	if (t) {
		word_drop(c->nodes, k);
		t->stamp = c->now;
		return t;
	}
	t = room_grow(c, NULL, 0, 1, sizeof(*t));
	t->key = k;
	t->stamp = c->now;
	t->of = c->zeros;
	topo_room(c, t, 0);
	for (uint32_t i = 0; i < c->cap_nodes; i++) {
		word value = node_value(c, i, k);
		if (value)
			topo_put(c, t, i, domain_take(c, t, value));
	}
	list_add(&c->topos, &t->link);
	tab_point(&c->topo_keys, k, t);
	return t;
}

size_t topo_distinct(struct topo *t, const uint32_t *nodes, size_t n)
{
	size_t found = 0;

	if (++t->look == 0) {
		memset(t->seen, 0, t->cap * sizeof(*t->seen));
		t->look = 1;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t *seen = &t->seen[t->of[nodes[i]]];
		found += *seen != t->look;
		*seen = t->look;
	}
	return found;
}

static void topo_free(struct counters *c, struct topo *t)
{
	list_remove(&t->link);
	tab_point(&c->topo_keys, t->key, NULL);
	word_drop(c->nodes, t->key);
	for (uint32_t d = 1; d <= t->n; d++)
		word_drop(c->nodes, t->value[d]);
	tab_done(&t->by_value);
	if (t->own)
		room_free(c, t->of, c->cap_nodes, sizeof(*t->of));
	room_free(c, t->value, t->cap, sizeof(*t->value));
	room_free(c, t->n_nodes, t->cap, sizeof(*t->n_nodes));
	room_free(c, t->seen, t->cap, sizeof(*t->seen));
	room_free(c, t, 1, sizeof(*t));
}

/* ---- sets of nodes ---- */

static bool set_wants(const struct counters *c, const struct node_set *s, uint32_t node)
{
	if (!c->signs[node])
		return false;
	for (size_t i = 0; i < s->n_keys; i++)
		if (!nodes_label(c->nodes, node, s->keys[i]->key))
			return false;
	struct val object = c->nodes->object[node]->val;
	if (s->affinity && node_affinity_matches(&s->compiled, object, NULL) != 1)
		return false;
	return !s->taints || !node_object_is_tainted(object, s->asks ? val_get(s->asks->val, tolerations) : VAL_EMPTY);
}

static void set_put(struct node_set *s, uint32_t node, bool in)
{
	uint64_t bit = (uint64_t)1 << (node % 64);
	s->bits[node / 64] = in ? s->bits[node / 64] | bit : s->bits[node / 64] & ~bit;
}

/* What of a pod decides, as an object; NONE: nothing. */
static struct val asks_of(struct arena *a, const struct scope_spec *spec, struct val pod)
{
	struct val required = val_get(pod, spec, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution);
	struct val selector = spec->affinity ? val_get(pod, spec, nodeSelector) : VAL_EMPTY, asks = VAL_EMPTY_OBJECT;

	if (val_len(selector))
		asks = val_with(a, asks, selector, nodeSelector);
	if (spec->affinity && !val_is_nil(required))
		asks = val_with(a, asks, required, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution);
	if (spec->taints)
		asks = val_with(a, asks, val_get(pod, spec, tolerations), tolerations);
	return val_len(asks) ? asks : VAL_EMPTY;
}

static bool set_is(const struct node_set *s, uint64_t hash, const struct scope_spec *spec, struct val asks)
{
	if (s->hash != hash || s->n_keys != spec->n_keys || s->taints != spec->taints ||
	    !val_equal(s->asks ? s->asks->val : VAL_EMPTY, asks))
		return false;
	for (size_t i = 0; i < spec->n_keys; i++)
		if (s->keys[i] != spec->keys[i])
			return false;
	return true;
}

/* About what it takes besides its arrays: what was asked for, and that again as it was compiled. */
static size_t set_size(const struct node_set *s) { return s->asks ? 4 * s->asks->size : 0; }

static struct node_set *set_make(struct counters *c, uint64_t hash, const struct scope_spec *spec, struct val asks)
{
	struct node_set *s = room_grow(c, NULL, 0, 1, sizeof(*s));

	s->hash = hash;
	s->keys = mem_array(spec->n_keys + 1, sizeof(struct topo *));
	s->n_keys = spec->n_keys;
	for (size_t i = 0; i < spec->n_keys; i++) {
		s->keys[i] = spec->keys[i];
		s->keys[i]->refs++;
	}
	s->taints = spec->taints;
	s->asks = val_exists(asks) ? val_freeze(asks) : NULL;
	c->size += set_size(s);
	arena_init(&s->arena);
	s->affinity = val_has(asks, nodeSelector) || val_has(asks, affinity);
	if (s->affinity)
		node_affinity_compile(&s->arena, s->asks->val, &s->compiled);
	s->bits = room_grow(c, NULL, 0, c->cap_nodes / 64, sizeof(*s->bits));
	for (uint32_t i = 0; i < c->cap_nodes; i++)
		set_put(s, i, set_wants(c, s, i));
	list_init(&s->scopes);
	list_add(&c->sets, &s->link);
	return s;
}

static struct node_set *set_of(struct counters *c, const struct scope_spec *spec, struct val pod)
{
	arena_reset(&c->scratch);
	struct val asks = asks_of(&c->scratch, spec, pod);
	uint64_t hash = val_hash(asks) * 31 + spec->taints;

	for (size_t i = 0; i < spec->n_keys; i++)
		hash = hash * 1099511628211u + spec->keys[i]->key;
	/* There are few: what pods of one kind ask for is equal. */
	LIST_EACH(struct node_set, s, &c->sets, link)
		if (set_is(s, hash, spec, asks))
			return s;
	return set_make(c, hash, spec, asks);
}

/* ---- scopes ---- */

static void scope_add(struct counters *c, struct scope *s, uint32_t domain, int by)
{
	if (!domain)
		return;
	if (domain >= s->cap) {
		uint32_t cap = MAX(domain + 1, s->topo->cap);
		s->n_nodes = room_grow(c, s->n_nodes, s->cap, cap, sizeof(*s->n_nodes));
		s->cap = cap;
	}
	s->n_domains += by > 0 && s->n_nodes[domain] == 0;
	s->n_nodes[domain] += (uint32_t)by;
	s->n_domains -= by < 0 && s->n_nodes[domain] == 0;
}

struct scope *counters_scope(struct counters *c, struct topo *topo, const struct scope_spec *spec, struct val pod)
{
	struct node_set *set = set_of(c, spec, pod);

	set->stamp = c->now;
	LIST_EACH(struct scope, s, &set->scopes, link)
		if (s->topo == topo) {
			s->stamp = c->now;
			return s;
		}
	struct scope *s = room_grow(c, NULL, 0, 1, sizeof(*s));
	s->set = set;
	s->topo = topo;
	s->stamp = c->now;
	topo->refs++;
	list_add(&set->scopes, &s->link);
	for (uint32_t i = 0; i < c->cap_nodes; i++)
		if (set_has(set, i))
			scope_add(c, s, topo->of[i], 1);
	return s;
}

size_t scope_domains(const struct scope *s) { return s->n_domains; }
bool scope_has(const struct scope *s, uint32_t node) { return set_has(s->set, node); }

static void scope_free(struct counters *c, struct scope *s)
{
	list_remove(&s->link);
	s->topo->refs--;
	room_free(c, s->n_nodes, s->cap, sizeof(*s->n_nodes));
	room_free(c, s, 1, sizeof(*s));
}

static void set_free(struct counters *c, struct node_set *s)
{
	list_remove(&s->link);
	for (size_t i = 0; i < s->n_keys; i++)
		s->keys[i]->refs--;
	free(s->keys);
	c->size -= set_size(s);
	frozen_unref(s->asks);
	arena_done(&s->arena);
	room_free(c, s->bits, c->cap_nodes / 64, sizeof(*s->bits));
	room_free(c, s, 1, sizeof(*s));
}

/* ---- nodes change ---- */

void places_reach(struct counters *c, uint32_t node)
{
	if (node < c->cap_nodes)
		return;
	uint32_t old = c->cap_nodes, cap = MAX((node + 64) / 64 * 64, old * 2);
	c->zeros = room_grow(c, c->zeros, old, cap, sizeof(*c->zeros));
	LIST_EACH(struct topo, t, &c->topos, link)
		t->of = t->own ? room_grow(c, t->of, old, cap, sizeof(*t->of)) : c->zeros;
	LIST_EACH(struct node_set, s, &c->sets, link)
		s->bits = room_grow(c, s->bits, old / 64, cap / 64, sizeof(*s->bits));
	c->signs = mem_resize(c->signs, cap * sizeof(*c->signs));
	memset(c->signs + old, 0, (cap - old) * sizeof(*c->signs));
	c->cap_nodes = cap;
}

/* Of all that sets and topos look at; never 0 for a node that is alive. */
static uint64_t node_sign(const struct nodes *t, uint32_t node)
{
	if (!t->alive[node])
		return 0;
	uint64_t h = 14695981039346656037u ^ t->name[node];
	for (uint32_t i = 0; i < t->n_labels[node]; i++)
		h = (h ^ ((uint64_t)t->labels[node][i].key << 32 | t->labels[node][i].value)) * 0x9e3779b97f4a7c15u + (h >> 29);
	h = (h ^ t->n_labels[node]) * 1099511628211u;
	for (uint32_t i = 0; i < t->n_taints[node]; i++) {
		const struct taint *x = &t->taints[node][i];
		h = (h ^ ((uint64_t)x->key << 32 | x->value)) * 0x9e3779b97f4a7c15u + (h >> 29) + x->effect;
	}
	return h ? h : 1;
}

static void crowd_move(struct counters *c, struct crowd *d, uint32_t node)
{
	int64_t amount = tab_get(&d->on, node);

	if (!amount)
		return;
	LIST_EACH(struct tally, t, &d->tallies, link) {
		const struct node_set *s = t->scope ? t->scope->set : NULL;
		uint32_t from = !s || s->was ? t->topo->was : 0, to = !s || s->is ? t->topo->is : 0;
		if (from == to)
			continue;
		if (from)
			tally_add(c, t, from, -amount);
		if (to)
			tally_add(c, t, to, amount);
	}
}

static void crowds_move(struct counters *c, uint32_t node)
{
	LIST_EACH(struct pick, k, &c->picks, link) {
		crowd_move(c, &k->crowd, node);
		LIST_EACH(struct carrier, r, &k->carriers, link)
			for (unsigned i = 0; i < CARRY_MAX; i++)
				crowd_move(c, &r->crowd[i], node);
	}
}

void counters_node(struct counters *c, uint32_t node)
{
	uint64_t sign = node_sign(c->nodes, node);

	places_reach(c, node);
	if (sign == c->signs[node])
		return;
	c->signs[node] = sign;
	LIST_EACH(struct topo, t, &c->topos, link) {
		word value = node_value(c, node, t->key);
		t->was = t->of[node];
		t->is = value ? domain_take(c, t, value) : 0;
	}
	LIST_EACH(struct node_set, s, &c->sets, link) {
		s->was = set_has(s, node);
		s->is = set_wants(c, s, node);
		LIST_EACH(struct scope, x, &s->scopes, link) {
			scope_add(c, x, s->is ? x->topo->is : 0, 1);
			scope_add(c, x, s->was ? x->topo->was : 0, -1);
		}
	}
	if (c->nodes->n_pods[node])
		crowds_move(c, node);
	LIST_EACH(struct topo, t, &c->topos, link) {
		topo_put(c, t, node, t->is);
		if (t->was)
			domain_release(c, t, t->was);
	}
	LIST_EACH(struct node_set, s, &c->sets, link)
		set_put(s, node, s->is);
}

/* ---- the whole ---- */

void places_init(struct counters *c)
{
	list_init(&c->topos);
	list_init(&c->sets);
	places_reach(c, 0);
}

void places_trim(struct counters *c, uint64_t since)
{
	LIST_EACH_SAFE(struct node_set, s, &c->sets, link) {
		LIST_EACH_SAFE(struct scope, x, &s->scopes, link)
			if (!x->refs && x->stamp < since)
				scope_free(c, x);
		if (list_empty(&s->scopes) && s->stamp < since)
			set_free(c, s);
	}
	LIST_EACH_SAFE(struct topo, t, &c->topos, link)
		if (!t->refs && t->stamp < since)
			topo_free(c, t);
}

void places_done(struct counters *c)
{
	places_trim(c, UINT64_MAX);
	tab_done(&c->topo_keys);
	free(c->signs);
	free(c->zeros);
}
