/*
 * Zones are lists of nodes in the order they came, linked through next and prev; the order in which nodes are examined takes one of each zone
 * in turn. It is made when it is asked for, since nodes come by the thousand at the start.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "machinery/names.h"
#include "scheduler/nodes_priv.h"

struct zone {
	word key;
	uint32_t first, last;
};

word zone_make(struct nodes *t, struct val labels)
{
	static const str zone_names[] = { STR_INIT("failure-domain.beta.kubernetes.io/zone"), STR_INIT("topology.kubernetes.io/zone") };
	static const str region_names[] = { STR_INIT("failure-domain.beta.kubernetes.io/region"), STR_INIT("topology.kubernetes.io/region") };
	struct val zone = val_find(labels, zone_names[0]), region = val_find(labels, region_names[0]);
	char text[2 * NAME_LABEL_MAX + 1];
	str parts[2];
	size_t n = 0;

	parts[0] = str_head(val_as_str(val_exists(region) ? region : val_find(labels, region_names[1])), NAME_LABEL_MAX);
	parts[1] = str_head(val_as_str(val_exists(zone) ? zone : val_find(labels, zone_names[1])), NAME_LABEL_MAX);
	if (parts[0].n + parts[1].n == 0)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		if (i)
			text[n++] = '\0';
		if (parts[i].n)
			memcpy(text + n, parts[i].p, parts[i].n);
		n += parts[i].n;
	}
	return word_make(t, str_span(text, n));
}

static struct zone *zone_get(struct nodes *t, word key)
{
	struct zone *z = map_get(&t->by_zone, word_str(t, key));

	if (z)
		return z;
	z = mem_alloc(sizeof(*z));
	*z = (struct zone){ key ? word_make(t, word_str(t, key)) : 0, NO_NODE, NO_NODE };
	map_put(&t->by_zone, word_str(t, key), z);
	if (t->n_zones == t->cap_zones) {
		t->cap_zones = t->cap_zones ? t->cap_zones * 2 : 8;
		t->zones = mem_resize(t->zones, t->cap_zones * sizeof(*t->zones));
	}
	t->zones[t->n_zones++] = z;
	return z;
}

static void zone_free(struct nodes *t, struct zone *z)
{
	size_t i = 0;

	while (t->zones[i] != z)
		i++;
	memmove(t->zones + i, t->zones + i + 1, (--t->n_zones - i) * sizeof(*t->zones));
	map_remove(&t->by_zone, word_str(t, z->key));
	word_drop(t, z->key);
	free(z);
}

void zone_enter(struct nodes *t, uint32_t i)
{
	struct zone *z = zone_get(t, t->zone[i]);

	t->prev[i] = z->last;
	t->next[i] = NO_NODE;
	*(z->last == NO_NODE ? &z->first : &t->next[z->last]) = i;
	z->last = i;
	t->order_stale = true;
}

void zone_leave(struct nodes *t, uint32_t i)
{
	struct zone *z = zone_get(t, t->zone[i]);

	*(t->prev[i] == NO_NODE ? &z->first : &t->next[t->prev[i]]) = t->next[i];
	*(t->next[i] == NO_NODE ? &z->last : &t->prev[t->next[i]]) = t->prev[i];
	if (z->first == NO_NODE)
		zone_free(t, z);
	t->order_stale = true;
}

const uint32_t *nodes_order(struct nodes *t)
{
	size_t zones = t->n_zones;
	uint32_t n = 0;

	if (!t->order_stale)
		return t->order;
	CLEANUP(mem_freep) uint32_t *at = mem_array(zones, sizeof(*at));
	for (size_t i = 0; i < zones; i++)
		at[i] = t->zones[i]->first;
	while (zones) {
		size_t left = 0;
		for (size_t i = 0; i < zones; i++) {
			t->place[at[i]] = n;
			t->order[n++] = at[i];
			if (t->next[at[i]] != NO_NODE)
				at[left++] = t->next[at[i]];
		}
		zones = left;
	}
	t->order_stale = false;
	t->n_orders++;
	return t->order;
}
