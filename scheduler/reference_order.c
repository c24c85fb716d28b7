/* In which order nodes are asked. */
#include "base/test.h"
#include "codec/atoms.h"
#include "scheduler/reference.h"

static void zone_name(struct val node, char out[REFERENCE_ZONE_MAX])
{
	str region = val_as_str(reference_label(node, STR("topology.kubernetes.io/region")));
	str zone = val_as_str(reference_label(node, STR("topology.kubernetes.io/zone")));

	CHECK(region.n + zone.n + 2 < REFERENCE_ZONE_MAX);
	(void)snprintf(out, REFERENCE_ZONE_MAX, "%.*s:%.*s", (int)region.n, region.n ? region.p : "", (int)zone.n, zone.n ? zone.p : "");
}

static bool find(const struct reference_tree *t, size_t node, size_t *ret_zone, size_t *ret_at)
{
	for (size_t z = 0; z < t->n_zones; z++)
		for (size_t i = 0; i < t->zones[z].n; i++)
			if (t->zones[z].nodes[i] == node) {
				*ret_zone = z;
				*ret_at = i;
				return true;
			}
	return false;
}

/* A zone without nodes is forgotten. */
static void take_out(struct reference_tree *t, size_t zone, size_t at)
{
	struct reference_zone *z = &t->zones[zone];

	memmove(&z->nodes[at], &z->nodes[at + 1], (--z->n - at) * sizeof(*z->nodes));
	if (!z->n)
		memmove(z, z + 1, (--t->n_zones - zone) * sizeof(*z));
}

static void put_last(struct reference_tree *t, size_t node, const char *name)
{
	size_t z = 0;

	while (z < t->n_zones && strcmp(t->zones[z].name, name) != 0)
		z++;
	if (z == t->n_zones) {
		CHECK(t->n_zones < ARRAY_LEN(t->zones));
		t->zones[z].n = 0;
		memcpy(t->zones[t->n_zones++].name, name, strlen(name) + 1);
	}
	t->zones[z].nodes[t->zones[z].n++] = node;
}

void reference_tree_put(struct reference_tree *t, size_t node, struct val object)
{
	char name[REFERENCE_ZONE_MAX];
	size_t zone = 0, at = 0;

	zone_name(object, name);
	if (!find(t, node, &zone, &at)) {
		CHECK(t->n < REFERENCE_TREE_MAX);
		t->n++;
	} else if (strcmp(t->zones[zone].name, name) == 0) {
		return;
	} else {
		take_out(t, zone, at);
	}
	put_last(t, node, name);
	t->stale = true;
}

void reference_tree_remove(struct reference_tree *t, size_t node)
{
	size_t zone = 0, at = 0;

	CHECK(find(t, node, &zone, &at));
	take_out(t, zone, at);
	t->n--;
	t->stale = true;
}

const size_t *reference_tree_list(struct reference_tree *t)
{
	for (size_t row = 0, n = 0; t->stale && n < t->n; row++)
		for (size_t z = 0; z < t->n_zones; z++)
			if (row < t->zones[z].n)
				t->list[n++] = t->zones[z].nodes[row];
	t->stale = false;
	return t->list;
}
