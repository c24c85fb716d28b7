/* Nodes that have the pod's images already. An image counts by its size, and the more the more nodes have it, so that pods do not gather on one node. */
#include <stdlib.h>

#include "codec/atoms.h"
#include "scheduler/plugin.h"
#include "scheduler/score.h"

#define MIB (INT64_C(1) << 20)

static const int64_t least = 23 * MIB, most_per_container = 1000 * MIB, most_ever = INT64_C(1) << 52;

struct wanted {
	word name;
	int64_t value;
};

struct state {
	int64_t most;
	size_t n;
	struct wanted *all;
};

/* The image's entry in the table; NULL: no node has it. A name without a tag means "latest". */
static const struct image *image_find(struct cycle *c, str name)
{
	if (str_rchr(name, ':') <= str_rchr(name, '/'))
		name = arena_join(c->arena, name, STR(":latest"));
	return map_get(&c->nodes->images, name);
}

static void want(struct cycle *c, struct state *s, str name)
{
	const struct image *image = image_find(c, name);
	double value;

	if (!image || image->size <= 0)
		return;
	value = (double)image->size * ((double)image->n_nodes / (double)c->nodes->n_alive);
	s->all[s->n++] = (struct wanted){ image->name, value < (double)most_ever ? (int64_t)value : most_ever };
}

static bool image_pre_score(struct cycle *c, void **ret_state, const uint32_t *nodes, size_t n)
{
	struct val spec = val_get(c->pod, spec), lists[] = { val_get(spec, initContainers), val_get(spec, containers) };
	struct val volumes = val_get(spec, volumes);
	uint32_t containers = val_len(lists[0]) + val_len(lists[1]);
	struct state *s = ARENA_NEW(c->arena, struct state);

	(void)nodes;
	(void)n;
	*ret_state = s;
	s->most = most_per_container * containers;
	s->all = ARENA_ARRAY(c->arena, struct wanted, containers + val_len(volumes));
	if (map_len(&c->nodes->images) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(container, lists[i])
			want(c, s, val_str(*container, image));
	VAL_EACH(volume, volumes)
		if (val_has(*volume, image))
			want(c, s, val_str(*volume, image, reference));
	return true;
}

static bool node_has_image(const struct nodes *t, uint32_t node, word name)
{
	const word *all = t->node_images[node];
	uint32_t low = 0, high = t->n_node_images[node];

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (all[mid] < name)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->n_node_images[node] && all[low] == name;
}

static void image_score(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores)
{
	const struct state *s = state;

	for (size_t i = 0; i < n; i++) {
		int64_t sum = 0;
		for (size_t k = 0; k < s->n; k++)
			if (node_has_image(c->nodes, nodes[i], s->all[k].name))
				sum = MIN(sum + s->all[k].value, most_ever);
		scores[i] = sum <= least || s->most <= least ? 0 : SCORE_MAX * (MIN(sum, s->most) - least) / (s->most - least);
	}
}

const struct plugin plugin_image_locality = {
	.name = "ImageLocality",
	.weight = 1,
	.pre_score = image_pre_score,
	.score = image_score,
};
