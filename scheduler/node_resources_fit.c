/*
 * Enough of every resource that the pod asks for, and scores by how much is used with the pod. The few resources that a pod asks for are gathered
 * once, so that a node costs as many comparisons.
 */
#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "machinery/names.h"
#include "machinery/resources.h"
#include "scheduler/devices.h"
#include "scheduler/plugin.h"
#include "scheduler/requests.h"
#include "scheduler/resource_score.h"
#include "scheduler/score.h"

enum strategy { LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO, STRATEGIES };

static const str strategy_names[] = {
	STR_INIT("LeastAllocated"), STR_INIT("MostAllocated"), STR_INIT("RequestedToCapacityRatio"), { NULL, 0 },
};

struct config {
	struct arena arena;
	enum strategy strategy;
	struct resource_specs specs;
	struct score_shape shape;
	size_t n_ignored, n_groups;
	str *ignored, *groups;        /* resources, and prefixes of them, that are not counted */
};

static const struct config *config_of(const struct cycle *c)
{
	static const struct config usual = { .specs = { 0 } };
	const struct config *config = c->config ? c->config[c->at] : NULL;
	return config ? config : &usual;
}

/* ---- filter ---- */

enum { SEEN_MAX = 16, REASONS_MAX = 1 << 16, RARE_MAX = 64 };

struct asked {
	unsigned index;
	int64_t amount;
	bool by_devices;              /* those serve it on nodes that do not have it: DynamicResources' matter */
};

struct filter_state {
	size_t n, n_rare;
	struct asked *all;
	str *rare;                    /* names of what no node has, or what the table has no room for: found out by looking at objects */
	int64_t *rare_amount;
	/* Reasons that were given before, by what is short. */
	size_t n_seen;
	struct {
		uint32_t lacking;
		uint64_t rare;
		str text;
	} seen[SEEN_MAX];
};

static bool listed(const str *list, size_t n, str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i], name))
			return true;
	return false;
}

static bool is_ignored(const struct config *config, str name)
{
	ptrdiff_t slash = str_chr(name, '/');

	if (!(config->n_ignored + config->n_groups) || !resource_is_extended(name))
		return false;
	return listed(config->ignored, config->n_ignored, name) || listed(config->groups, config->n_groups, str_head(name, (size_t)slash));
}

static bool is_by_devices(struct cycle *c, unsigned r, str name)
{
	return r >= RES_FIXED && c->devices && val_exists(devices_class_of(c->devices, name));
}

static enum verdict fit_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	const struct config *config = config_of(c);
	struct filter_state *s = ARENA_NEW(c->arena, struct filter_state);
	size_t n_names;

	*ret_skip = false;
	*ret_state = s;
	if (c->placed->unknown)
		placed_request(c->placed); /* it may be known by now */
	s->all = ARENA_ARRAY(c->arena, struct asked, c->nodes->n_resources);
	for (unsigned r = 0; r < c->nodes->n_resources; r++) {
		str name = word_str(c->nodes, c->nodes->resource_names[r]);
		int64_t amount = c->placed->request.v[r];
		if (amount && !(r >= RES_FIXED && is_ignored(config, name)))
			s->all[s->n++] = (struct asked){ r, amount, is_by_devices(c, r, name) };
	}
	if (!c->placed->unknown)
		return FIT;
	n_names = pod_unknown_resources(c->nodes, c->arena, c->pod, &s->rare);
	s->rare_amount = ARENA_ARRAY(c->arena, int64_t, n_names + 1);
	for (size_t i = 0; i < n_names && s->n_rare < RARE_MAX; i++)
		if (!is_ignored(config, s->rare[i]) && (nodes_are_full(c->nodes) || !is_by_devices(c, RES_MAX, s->rare[i]))) {
			s->rare[s->n_rare] = s->rare[i];
			s->rare_amount[s->n_rare++] = pod_asks_for(c->nodes, c->pod, s->rare[i]);
		}
	return FIT;
}

/* What the table has no room for: bits of those that the node has too little of. */
static uint64_t lacks_rare(struct cycle *c, const struct filter_state *s, uint32_t node, bool *never)
{
	struct val allocatable = val_get(c->nodes->object[node]->val, status, allocatable);
	uint64_t lacking = 0;

	for (size_t i = 0; i < s->n_rare; i++) {
		int64_t has = quantity_value(quantity_of(sorted_find(allocatable, s->rare[i]))), used = 0;
		if (has <= 0 && is_by_devices(c, RES_MAX, s->rare[i]))
			continue;
		for (uint32_t k = 0; s->rare_amount[i] <= has && k < c->nodes->n_pods[node]; k++)
			if (c->nodes->pods[node][k]->unknown)
				used = res_add(used, pod_asks_for(c->nodes, c->nodes->pods[node][k]->pod->val, s->rare[i]));
		if (s->rare_amount[i] <= res_sub(has, used))
			continue;
		lacking |= UINT64_C(1) << i;
		*never |= s->rare_amount[i] > has;
	}
	return lacking;
}

static str reason_make(struct cycle *c, const struct filter_state *s, uint32_t lacking, uint64_t rare)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(REASONS_MAX);

	for (uint32_t left = lacking; left; left &= left - 1) {
		unsigned r = (unsigned)__builtin_ctz(left);
		if (r == RES_PODS)
			buf_addf(&b, "%sToo many pods", b.n ? "\n" : "");
		else
			buf_addf(&b, "%sInsufficient " STR_FMT, b.n ? "\n" : "", STR_ARG(word_str(c->nodes, c->nodes->resource_names[r])));
	}
	for (size_t i = 0; i < s->n_rare; i++)
		if (rare >> i & 1)
			buf_addf(&b, "%sInsufficient " STR_FMT, b.n ? "\n" : "", STR_ARG(s->rare[i]));
	return arena_str(c->arena, buf_str(&b));
}

/* Made once for all nodes that lack the same. */
static str reason_of(struct cycle *c, struct filter_state *s, uint32_t lacking, uint64_t rare)
{
	str text;

	for (size_t i = 0; i < s->n_seen; i++)
		if (s->seen[i].lacking == lacking && s->seen[i].rare == rare)
			return s->seen[i].text;
	text = reason_make(c, s, lacking, rare);
	if (s->n_seen < SEEN_MAX) {
		s->seen[s->n_seen].lacking = lacking;
		s->seen[s->n_seen].rare = rare;
		s->seen[s->n_seen++].text = text;
	}
	return text;
}

static enum verdict fit_without(struct cycle *c, void *state, uint32_t node, const struct res *gone)
{
	struct filter_state *s = state;
	const int64_t *allocatable = c->nodes->allocatable[node].v, *requested = c->nodes->requested[node].v;
	bool never = false;
	uint32_t lacking = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct asked *x = &s->all[i];
		int64_t used = gone ? res_sub(requested[x->index], gone->v[x->index]) : requested[x->index];
		if (LIKELY(x->amount <= res_sub(allocatable[x->index], used)) || (x->by_devices && allocatable[x->index] <= 0))
			continue;
		lacking |= 1u << x->index;
		never |= x->amount > allocatable[x->index] && x->index != RES_PODS;
	}
	uint64_t rare = UNLIKELY(s->n_rare) ? lacks_rare(c, s, node, &never) : 0;
	if (LIKELY(!lacking && !rare))
		return FIT;
	c->reason = reason_of(c, s, lacking, rare);
	return never ? UNRESOLVABLE : UNSCHEDULABLE;
}

static enum verdict fit_filter(struct cycle *c, void *state, uint32_t node) { return fit_without(c, state, node, NULL); }

/* ---- score ---- */

struct score_state {
	const struct config *config;
	size_t n;
	struct scored_resource *all;
};

/* What containers ask for, with assumptions for those that do not say: as in Kubernetes, what is said for the pod as a whole does not count here. */
static void request_to_score(struct cycle *c, struct res *ret)
{
	struct pod_request q;

	if (val_len(val_get(c->pod, spec, resources, requests))) {
		pod_request(c->nodes, c->pod, REQUEST_CONTAINERS | REQUEST_NONZERO, &q);
		*ret = q.amount;
		return;
	}
	*ret = c->placed->request;
	ret->v[RES_CPU] = c->placed->nonzero_cpu;
	ret->v[RES_MEMORY] = c->placed->nonzero_memory;
}

static bool fit_pre_score(struct cycle *c, void **ret_state, const uint32_t *nodes, size_t n)
{
	struct score_state *s = ARENA_NEW(c->arena, struct score_state);
	struct res request;

	(void)nodes;
	(void)n;
	s->config = config_of(c);
	request_to_score(c, &request);
	s->n = resources_to_score(c->arena, c, s->config->specs.n ? &s->config->specs : &resource_specs_default, &request, &s->all);
	*ret_state = s;
	return true;
}

static int64_t score_of(const struct config *config, int64_t requested, int64_t capacity)
{
	switch (config->strategy) {
	case MOST_ALLOCATED: return score_most_allocated(requested, capacity);
	case REQUESTED_TO_CAPACITY_RATIO: return score_by_shape(&config->shape, requested, capacity);
	default: return score_least_allocated(requested, capacity);
	}
}

static void fit_score(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores)
{
	const struct score_state *s = state;
	const struct nodes *t = c->nodes;
	bool by_shape = s->config->strategy == REQUESTED_TO_CAPACITY_RATIO;

	for (size_t i = 0; i < n; i++) {
		int64_t sum = 0, weights = 0;
		uint32_t node = nodes[i];
		for (size_t k = 0; k < s->n; k++) {
			const struct scored_resource *x = &s->all[k];
			int64_t used, score, capacity = scored_capacity(c, x, node, &used);
			if (x->index == RES_CPU || x->index == RES_MEMORY)
				used = x->index == RES_CPU ? t->nonzero_cpu[node] : t->nonzero_memory[node];
			if (capacity <= 0)
				continue;
			score = score_of(s->config, res_add(used, x->request), capacity);
			if (by_shape && score <= 0)
				continue;
			sum += score * x->weight;
			weights += x->weight;
		}
		scores[i] = !weights ? 0 : by_shape ? (int64_t)round((double)sum / (double)weights) : sum / weights;
	}
}

/* ---- queue ---- */

static bool more_of_any(const struct res *want, const struct res *before, const struct res *now)
{
	for (unsigned r = 0; r < RES_MAX; r++)
		if (want->v[r] && now->v[r] > before->v[r])
			return true;
	return false;
}

/* Another pod needs less than before. */
static bool hint_scale_down(struct cycle *c, struct val pod, struct val old, struct val new)
{
	struct pod_request want, before, now;

	if (str_eq(val_str(pod, metadata, uid), val_str(new, metadata, uid)))
		return true;
	if (!val_str(new, spec, nodeName).n)
		return false;
	pod_request(c->nodes, pod, 0, &want);
	pod_request(c->nodes, old, 0, &before);
	pod_request(c->nodes, new, 0, &now);
	return more_of_any(&want.amount, &now.amount, &before.amount);
}

/* Of what the table has no room for, an empty node has enough. */
static bool has_rare(struct cycle *c, struct val pod, struct val node, str name)
{
	int64_t has = quantity_value(quantity_of(sorted_find(val_get(node, status, allocatable), name)));

	return nodes_are_full(c->nodes) && pod_asks_for(c->nodes, pod, name) <= has;
}

/* Whether the pod would fit if the node were empty, and has not fitted so before. */
static bool hint_node(struct cycle *c, struct val pod, struct val old, struct val new)
{
	struct pod_request want;
	struct res before, now;
	str *names;

	pod_request(c->nodes, pod, 0, &want);
	resources_read(c->nodes, val_get(new, status, allocatable), &now);
	size_t n_names = want.unknown ? pod_unknown_resources(c->nodes, c->arena, pod, &names) : 0;
	for (size_t i = 0; i < n_names; i++)
		if (!is_by_devices(c, RES_MAX, names[i]) && !has_rare(c, pod, new, names[i]))
			return false;
	/* Whether there is more of these than before is not looked at: rather too often than not. */
	bool by_devices = n_names > 0;
	for (unsigned r = 0; r < c->nodes->n_resources; r++) {
		bool others = want.amount.v[r] && !now.v[r] && is_by_devices(c, r, word_str(c->nodes, c->nodes->resource_names[r]));
		if (want.amount.v[r] > now.v[r] && !others)
			return false;
		by_devices |= others;
	}
	if (!val_exists(old) || by_devices)
		return true;
	resources_read(c->nodes, val_get(old, status, allocatable), &before);
	return more_of_any(&want.amount, &before, &now);
}

/* Whether devices of the class may serve what the pod asks for, and did not before. */
static bool hint_class(struct cycle *c, struct val pod, struct val old, struct val new)
{
	struct val asked = pod_container_resources(c->arena, val_get(pod, spec), A_requests);
	str name = val_str(new, spec, extendedResourceName);
	str own = arena_printf(c->arena, "deviceclass.resource.kubernetes.io/" STR_FMT, STR_ARG(val_str(new, metadata, name)));

	if (val_exists(old) ? str_eq(val_str(old, spec, extendedResourceName), name) : val_exists(sorted_find(asked, own)))
		return !val_exists(old);
	return name.n && val_exists(sorted_find(asked, name));
}

static bool fit_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	if (event == EV_POD_DELETE)
		return val_str(old, spec, nodeName).n || val_str(old, status, nominatedNodeName).n;
	if (event == EV_DEVICE_CLASS)
		return hint_class(c, pod, old, new);
	return event == EV_POD_SCALE_DOWN ? hint_scale_down(c, pod, old, new) : hint_node(c, pod, old, new);
}

/* ---- arguments ---- */

static void config_free(void *config)
{
	struct config *x = config;

	if (!x)
		return;
	arena_done(&x->arena);
	free(x);
}

static void check_label_key(struct field_errors *e, const struct field_path *at, str name)
{
	struct name_errors wrong;

	if (name_check_label_key(name, &wrong))
		for (size_t i = 0; i < wrong.n; i++)
			field_invalid(e, at, val_of_str(name), STR_FMT, STR_ARG(wrong.text[i]));
}

static str *names_read(struct field_errors *e, const struct field_path *at, struct val list, bool groups, size_t *ret_n)
{
	str *all = ARENA_ARRAY(e->arena, str, val_len(list));
	size_t n = 0;

	VAL_EACH(name, list) {
		const struct field_path *item = FIELD_INDEX(at, n);
		all[n] = arena_str(e->arena, val_as_str(*name));
		if (groups && str_chr(all[n], '/') >= 0)
			field_invalid(e, item, val_of_str(all[n]), "resource group name can't contain '/'");
		check_label_key(e, item, all[n++]);
	}
	*ret_n = n;
	return all;
}

static void strategy_read(struct field_errors *e, const struct field_path *at, struct val strategy, struct config *config)
{
	struct val ratio = val_get(strategy, requestedToCapacityRatio);
	str type = val_str(strategy, type);
	unsigned which = 0;

	if (val_is_nil(strategy)) {
		config->specs = resource_specs_default;
		return;
	}
	while (which < STRATEGIES && !str_eq(strategy_names[which], type))
		which++;
	if (which == STRATEGIES)
		field_not_supported(e, FIELD(at, "type"), val_of_str(type), strategy_names);
	config->strategy = which;
	resource_specs_read(e->arena, val_get(strategy, resources), &config->specs);
	for (size_t i = 0; i < config->specs.n; i++) {
		const struct resource_spec *spec = &config->specs.all[i];
		if (spec->weight <= 0 || spec->weight > 100)
			field_invalid(e, FIELD(FIELD_INDEX(FIELD(at, "resources"), i), "weight"), val_of_int(spec->weight),
				      "resource weight of " STR_FMT " not in valid range (0, 100]", STR_ARG(spec->name));
	}
	if (which != REQUESTED_TO_CAPACITY_RATIO) {
		if (!val_is_nil(ratio))
			field_forbidden(e, FIELD(at, "requestedToCapacityRatio"), "must be nil when type is not RequestedToCapacityRatio");
	} else if (val_is_nil(ratio)) {
		field_required(e, FIELD(at, "requestedToCapacityRatio"), "must be specified when type is RequestedToCapacityRatio");
	} else {
		shape_check(e, FIELD(FIELD(at, "requestedToCapacityRatio"), "shape"), val_get(ratio, shape));
		shape_read(e->arena, val_get(ratio, shape), &config->shape);
	}
}

/* NodeResourcesFitArgs. */
static int fit_configure(struct val args, void **ret_config, struct err *err)
{
	struct config *config = mem_zalloc(sizeof(*config));
	struct field_errors e;
	int r;

	*ret_config = NULL;
	field_errors_init(&e, &config->arena);
	config->ignored = names_read(&e, FIELD(NULL, "ignoredResources"), val_get(args, ignoredResources), false, &config->n_ignored);
	config->groups = names_read(&e, FIELD(NULL, "ignoredResourceGroups"), val_get(args, ignoredResourceGroups), true, &config->n_groups);
	strategy_read(&e, FIELD(NULL, "scoringStrategy"), val_get(args, scoringStrategy), config);
	if (e.n) {
		r = err_set(err, ERR_INVALID, STR_FMT, STR_ARG(field_errors_plain(&e)));
		config_free(config);
		return r;
	}
	*ret_config = config;
	return 0;
}

const struct plugin plugin_node_resources_fit = {
	.name = "NodeResourcesFit",
	.weight = 1,
	.events = EV_POD_DELETE | EV_POD_SCALE_DOWN | EV_NODE_ADD | EV_NODE_ALLOCATABLE | EV_DEVICE_CLASS,
	.hint = fit_hint,
	.pre_filter = fit_pre_filter,
	.filter = fit_filter,
	.filter_without = fit_without,
	.pre_score = fit_pre_score,
	.score = fit_score,
	.configure = fit_configure,
	.config_free = config_free,
};
