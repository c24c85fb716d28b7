/*
 * What a LimitRange asks of a pod or a claim. Pure functions over typed trees, any thread; limit_ranger.c runs them for all
 * LimitRanges of a namespace.
 */
#ifndef C8S_APISERVER_ADMISSION_LIMIT_RANGER_H
#define C8S_APISERVER_ADMISSION_LIMIT_RANGER_H

#include "codec/val.h"

/* The pod with (copies of) the defaults of this LimitRange in its containers, and a note about them in an annotation. */
struct val limit_range_default(struct arena *a, struct val range, struct val pod);
/* At most so many entries would be added by that. */
size_t limit_range_default_size(struct val range, struct val pod);
/* All that a pod, or a claim, breaks, as one text in the arena; "" when it breaks nothing. */
str limit_range_check_pod(struct arena *a, struct val range, struct val pod);
str limit_range_check_claim(struct arena *a, struct val range, struct val claim);

#endif
