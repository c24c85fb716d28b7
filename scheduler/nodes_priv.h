/* What the files of the table of nodes share: nodes.c, nodes_zones.c, nodes_images.c, words.c. */
#ifndef C8S_SCHEDULER_NODES_PRIV_H
#define C8S_SCHEDULER_NODES_PRIV_H

#include "scheduler/nodes.h"

#define NO_NODE UINT32_MAX

void words_init(struct nodes *t);
void words_done(struct nodes *t);

/* The region and the zone by the labels of today or those of before, held; 0: neither. */
word zone_make(struct nodes *t, struct val labels);
/* Into the zone of t->zone[i], as its last; and out of it. */
void zone_enter(struct nodes *t, uint32_t i);
void zone_leave(struct nodes *t, uint32_t i);

/* status.images of the node. */
void node_images_set(struct nodes *t, uint32_t i, struct val list);
void node_images_clear(struct nodes *t, uint32_t i);

#endif
