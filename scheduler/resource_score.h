/*
 * resource_score: what NodeResourcesFit and NodeResourcesBalancedAllocation share: which resources count how much, and the pure functions
 * from amounts to scores. Amounts that sums have wrapped around with (below 0) count as more than there is.
 */
#ifndef C8S_SCHEDULER_RESOURCE_SCORE_H
#define C8S_SCHEDULER_RESOURCE_SCORE_H

#include "machinery/field_error.h"
#include "scheduler/plugin.h"

/* Arguments: a ResourceSpec of the configuration. */
struct resource_spec {
	str name;
	int64_t weight;
};

struct resource_specs {
	size_t n;
	const struct resource_spec *all;
};

/* Texts are copied into the arena. Without any: cpu and memory, alike; weight 0 means 1. */
void resource_specs_read(struct arena *a, struct val list, struct resource_specs *ret);
extern const struct resource_specs resource_specs_default;

/* One that counts for a certain pod. */
struct scored_resource {
	unsigned index;               /* in struct res; RES_MAX: only devices serve it */
	int64_t weight, request;
	struct val class;             /* whose devices serve it on nodes that do not have it; VAL_NONE: none */
};

/* In the arena. Extended resources that the pod does not ask for, and those that no node has, do not count. */
size_t resources_to_score(struct arena *a, const struct cycle *c, const struct resource_specs *specs, const struct res *request,
			  struct scored_resource **ret);
/* Of devices, how many there are on a node, and how many of these are used. */
int64_t scored_devices(const struct cycle *c, const struct scored_resource *x, uint32_t node, int64_t *ret_used);
/* How much of it there is on a node, and how much of that is used. */
static inline int64_t scored_capacity(const struct cycle *c, const struct scored_resource *x, uint32_t node, int64_t *ret_used)
{
	if (UNLIKELY(val_exists(x->class)))
		return scored_devices(c, x, node, ret_used);
	*ret_used = c->nodes->requested[node].v[x->index];
	return c->nodes->allocatable[node].v[x->index];
}

/* ---- of one resource; capacity is above 0 ---- */

int64_t score_least_allocated(int64_t requested, int64_t capacity);
int64_t score_most_allocated(int64_t requested, int64_t capacity);

/* A line from point to point, level before the first and after the last. */
struct shape_point {
	int64_t utilization, score;   /* percent, 0..100 */
};

struct score_shape {
	size_t n;                     /* at least 1 */
	const struct shape_point *points;
};

int64_t score_by_shape(const struct score_shape *shape, int64_t requested, int64_t capacity);
/* UtilizationShapePoint objects: errors, and the points with their scores times ten. */
void shape_check(struct field_errors *e, const struct field_path *at, struct val list);
void shape_read(struct arena *a, struct val list, struct score_shape *ret);

#endif
