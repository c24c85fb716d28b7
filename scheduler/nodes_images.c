/* Images of nodes: a sorted list of names for each, and of each name on how many nodes it is. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "scheduler/nodes_priv.h"

static int word_cmp(const void *a, const void *b)
{
	word x = *(const word *)a, y = *(const word *)b;
	return (x > y) - (x < y);
}

void node_images_clear(struct nodes *t, uint32_t i)
{
	for (uint32_t k = 0; k < t->n_node_images[i]; k++) {
		word name = t->node_images[i][k];
		struct image *image = map_get(&t->images, word_str(t, name));
		if (image->last == i)
			image->last = NO_NODE;
		if (--image->n_nodes == 0) {
			map_remove(&t->images, word_str(t, name));
			free(image);
		}
		word_drop(t, name);
	}
	free(t->node_images[i]);
	t->node_images[i] = NULL;
	t->n_node_images[i] = 0;
}

/* False when the node has it already. Nodes hold the word, the image itself does not. */
static bool image_count(struct nodes *t, uint32_t i, word name, int64_t size)
{
	struct image *image = map_get(&t->images, word_str(t, name));

	if (!image) {
		image = mem_alloc(sizeof(*image));
		*image = (struct image){ .name = name, .size = size, .last = NO_NODE };
		map_put(&t->images, word_str(t, name), image);
	}
	if (image->last == i)
		return false;
	image->last = i;
	image->n_nodes++;
	return true;
}

void node_images_set(struct nodes *t, uint32_t i, struct val list)
{
	size_t room = 0;
	uint32_t n = 0;

	node_images_clear(t, i);
	VAL_EACH(image, list)
		room += val_len(val_get(*image, names));
	if (!room)
		return;
	t->node_images[i] = mem_array(room, sizeof(word));
	VAL_EACH(image, list)
		VAL_EACH(name, val_get(*image, names)) {
			word w = word_make(t, val_as_str(*name));
			if (image_count(t, i, w, val_int(*image, sizeBytes)))
				t->node_images[i][n++] = w;
			else
				word_drop(t, w);
		}
	t->n_node_images[i] = n;
	qsort(t->node_images[i], n, sizeof(word), word_cmp);
}
