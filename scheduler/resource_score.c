#include "scheduler/resource_score.h"

#include "codec/atoms.h"
#include "scheduler/devices.h"
#include "scheduler/requests.h"
#include "scheduler/score.h"

enum { SHAPE_SCORE_MAX = 10 };

/* ---- arguments ---- */

const struct resource_specs resource_specs_default = {
	2, (const struct resource_spec[]){ { STR_INIT("cpu"), 1 }, { STR_INIT("memory"), 1 } },
};

void resource_specs_read(struct arena *a, struct val list, struct resource_specs *ret)
{
	struct resource_spec *all;
	size_t n = 0;

	*ret = resource_specs_default;
	if (!val_len(list))
		return;
	all = ARENA_ARRAY(a, struct resource_spec, val_len(list));
	VAL_EACH(spec, list) {
		int64_t weight = val_int(*spec, weight);
		all[n++] = (struct resource_spec){ arena_str(a, val_str(*spec, name)), weight ? weight : 1 };
	}
	*ret = (struct resource_specs){ n, all };
}

size_t resources_to_score(struct arena *a, const struct cycle *c, const struct resource_specs *specs, const struct res *request,
			  struct scored_resource **ret)
{
	struct scored_resource *all = ARENA_ARRAY(a, struct scored_resource, specs->n);
	size_t n = 0;

	for (size_t i = 0; i < specs->n; i++) {
		str name = specs->all[i].name;
		unsigned r = nodes_resource_find(c->nodes, name);
		struct val class = r >= RES_FIXED ? devices_class_of(c->devices, name) : VAL_EMPTY;
		int64_t amount = r < RES_MAX ? request->v[r] : val_exists(class) ? pod_asks_for(c->nodes, c->pod, name) : 0;
		if (r == RES_PODS || (r >= RES_FIXED && amount == 0))
			continue;
		if (val_exists(class))
			devices_refresh(c->devices);
		all[n++] = (struct scored_resource){ r, specs->all[i].weight, amount, class };
	}
	*ret = all;
	return n;
}

int64_t scored_devices(const struct cycle *c, const struct scored_resource *x, uint32_t node, int64_t *ret_used)
{
	const struct nodes *t = c->nodes;
	int64_t capacity = x->index < RES_MAX ? t->allocatable[node].v[x->index] : 0;

	*ret_used = x->index < RES_MAX ? t->requested[node].v[x->index] : 0;
	if (capacity > 0)
		return capacity;
	return devices_count(c->devices, x->class, word_str(t, t->name[node]), t->object[node]->val, ret_used);
}

void shape_check(struct field_errors *e, const struct field_path *at, struct val list)
{
	size_t i;

	if (!val_len(list)) {
		field_required(e, at, "at least one point must be specified");
		return;
	}
	for (i = 1; i < val_len(list); i++)
		if (val_int(val_at(list, i - 1), utilization) >= val_int(val_at(list, i), utilization)) {
			field_invalid(e, FIELD(FIELD_INDEX(at, i), "utilization"), val_of_int(val_int(val_at(list, i), utilization)),
				      "values must be sorted in increasing order");
			break;
		}
	i = 0;
	VAL_EACH(point, list) {
		int64_t utilization = val_int(*point, utilization), score = val_int(*point, score);
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (utilization < 0 || utilization > 100)
			field_invalid(e, FIELD(item, "utilization"), val_of_int(utilization), "not in valid range [0, 100]");
		if (score < 0 || score > SHAPE_SCORE_MAX)
			field_invalid(e, FIELD(item, "score"), val_of_int(score), "not in valid range [0, %d]", SHAPE_SCORE_MAX);
	}
}

void shape_read(struct arena *a, struct val list, struct score_shape *ret)
{
	struct shape_point *points = ARENA_ARRAY(a, struct shape_point, val_len(list));
	size_t n = 0;

	VAL_EACH(point, list)
		points[n++] = (struct shape_point){ val_int(*point, utilization), val_int(*point, score) * (SCORE_MAX / SHAPE_SCORE_MAX) };
	*ret = (struct score_shape){ n, points };
}

/* ---- scores ---- */

/* part * 100 / whole, for 0 <= part <= whole; of amounts that are too large for that, nearly. */
static int64_t percent(int64_t part, int64_t whole)
{
	if (UNLIKELY(whole > INT64_MAX / SCORE_MAX)) {
		part >>= 7;
		whole >>= 7;
	}
	return part * SCORE_MAX / whole;
}

static bool exceeds(int64_t requested, int64_t capacity) { return requested > capacity || requested < 0; }

int64_t score_least_allocated(int64_t requested, int64_t capacity)
{
	return exceeds(requested, capacity) ? 0 : percent(capacity - requested, capacity);
}

int64_t score_most_allocated(int64_t requested, int64_t capacity)
{
	return exceeds(requested, capacity) ? SCORE_MAX : percent(requested, capacity);
}

int64_t score_by_shape(const struct score_shape *shape, int64_t requested, int64_t capacity)
{
	int64_t used = exceeds(requested, capacity) ? 100 : percent(requested, capacity);
	const struct shape_point *p = shape->points;

	for (size_t i = 0; i < shape->n; i++)
		if (used <= p[i].utilization) {
			if (i == 0)
				return p[0].score;
			return p[i - 1].score + (p[i].score - p[i - 1].score) * (used - p[i - 1].utilization) /
							(p[i].utilization - p[i - 1].utilization);
		}
	return p[shape->n - 1].score;
}
