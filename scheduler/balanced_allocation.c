/*
 * Nodes whose resources are used evenly: how much the standard deviation of the used shares becomes better or worse by the pod. What pods really
 * ask for counts here, without assumptions about those that ask for nothing.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "scheduler/plugin.h"
#include "scheduler/resource_score.h"
#include "scheduler/score.h"

struct config {
	struct arena arena;
	struct resource_specs specs;
};

struct state {
	size_t n;
	struct scored_resource *all;
	double *shares;               /* room for n */
};

static const struct resource_specs *specs_of(const struct cycle *c)
{
	const struct config *config = c->config ? c->config[c->at] : NULL;
	return config ? &config->specs : &resource_specs_default;
}

static bool balanced_pre_score(struct cycle *c, void **ret_state, const uint32_t *nodes, size_t n)
{
	struct state *s = ARENA_NEW(c->arena, struct state);
	bool asks = false;

	(void)nodes;
	(void)n;
	s->n = resources_to_score(c->arena, c, specs_of(c), &c->placed->request, &s->all);
	s->shares = ARENA_ARRAY(c->arena, double, s->n);
	for (size_t i = 0; i < s->n; i++)
		asks |= s->all[i].request != 0;
	*ret_state = s;
	return asks;
}

/* 50 for the most uneven, 100 for even shares. */
static int64_t evenness(const double *shares, size_t n)
{
	double deviation = 0, mean = 0, sum = 0;

	if (n == 2) {
		deviation = fabs((shares[0] - shares[1]) / 2);
	} else if (n > 2) {
		for (size_t i = 0; i < n; i++)
			mean += shares[i];
		mean /= (double)n;
		for (size_t i = 0; i < n; i++)
			sum += (shares[i] - mean) * (shares[i] - mean);
		deviation = sqrt(sum / (double)n);
	}
	return (int64_t)((1 - deviation) * SCORE_MAX);
}

/* With the pod (1) or without it (0). */
static int64_t node_evenness(const struct state *s, const struct cycle *c, uint32_t node, int64_t with)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		int64_t used, capacity = scored_capacity(c, &s->all[i], node, &used);
		used = res_add(used, with * s->all[i].request);
		if (capacity > 0)
			s->shares[n++] = used > capacity || used < 0 ? 1 : (double)used / (double)capacity;
	}
	return evenness(s->shares, n);
}

static void balanced_score(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores)
{
	for (size_t i = 0; i < n; i++) {
		int64_t with = node_evenness(state, c, nodes[i], 1), without = node_evenness(state, c, nodes[i], 0);
		scores[i] = SCORE_MAX / 2 + (SCORE_MAX / 2 + with - without) / 2;
	}
}

static void config_free(void *config)
{
	struct config *x = config;

	if (!x)
		return;
	arena_done(&x->arena);
	free(x);
}

/* NodeResourcesBalancedAllocationArgs. */
static int balanced_configure(struct val args, void **ret_config, struct err *err)
{
	struct config *config = mem_zalloc(sizeof(*config));
	const struct resource_specs *specs = &config->specs;
	struct field_errors e;
	int r;

	*ret_config = NULL;
	field_errors_init(&e, &config->arena);
	resource_specs_read(&config->arena, val_get(args, resources), &config->specs);
	for (size_t i = 0; i < specs->n; i++) {
		const struct field_path *at = FIELD_INDEX(FIELD(NULL, "resources"), i);
		for (size_t k = 0; k < i; k++)
			if (str_eq(specs->all[k].name, specs->all[i].name)) {
				field_duplicate(&e, FIELD(at, "name"), val_of_str(specs->all[i].name));
				break;
			}
		if (specs->all[i].weight != 1)
			field_invalid(&e, FIELD(at, "weight"), val_of_int(specs->all[i].weight), "must be 1");
	}
	if (e.n) {
		r = err_set(err, ERR_INVALID, STR_FMT, STR_ARG(field_errors_plain(&e)));
		config_free(config);
		return r;
	}
	*ret_config = config;
	return 0;
}

const struct plugin plugin_balanced_allocation = {
	.name = "NodeResourcesBalancedAllocation",
	.weight = 1,
	.pre_score = balanced_pre_score,
	.score = balanced_score,
	.configure = balanced_configure,
	.config_free = config_free,
};
