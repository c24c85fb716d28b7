/* What pods ask for and nodes have; whether it fits, and how well. */
#include <math.h>
#include <stdlib.h>

#include "codec/atoms.h"
#include "codec/quantity.h"
#include "scheduler/reference.h"

enum { MAX_NAMES = 64 };

/* A member of a resource list; !said: it is not in the list. */
struct amount {
	bool said;
	quantity_nanos nanos;
};

/* How the requests of a pod are put together, as PodResourcesOptions. */
struct how {
	bool status;            /* what is allocated counts while a pod is resized */
	bool whole;             /* spec.resources counts */
	struct amount missing;  /* instead of what a container does not say */
};

static struct amount amount_in(struct val list, str name)
{
	struct val v = val_find(list, name);
	struct quantity q = { 0, QUANTITY_DECIMAL_SI };

	if (val_exists(v))
		(void)quantity_parse(val_as_str(v), &q, NULL);
	return (struct amount){ val_exists(v), q.nanos };
}

static struct amount plus(struct amount a, struct amount b) { return (struct amount){ a.said || b.said, a.nanos + b.nanos }; }

static struct amount larger(struct amount a, struct amount b)
{
	if (!a.said || !b.said)
		return a.said ? a : b;
	return a.nanos >= b.nanos ? a : b;
}

static bool is_infeasible(struct val pod)
{
	VAL_EACH(k, val_get(pod, status, conditions))
		if (str_eq(val_str(*k, type), STR("PodResizePending")))
			return str_eq(val_str(*k, reason), STR("Infeasible"));
	return false;
}

/* While something is resized, the largest of what is wanted, in force and allocated counts; of what cannot be, not what is wanted. */
static struct amount effective(struct val pod, struct amount wanted, struct amount in_force, struct amount allocated)
{
	struct amount now = larger(in_force, allocated);

	return is_infeasible(pod) ? now : larger(wanted, now);
}

static struct val status_of(struct val pod, struct val container)
{
	struct val found = VAL_EMPTY;

	VAL_EACH(s, val_get(pod, status, containerStatuses))
		if (str_eq(val_str(*s, name), val_str(container, name)))
			found = *s;
	VAL_EACH(s, val_get(pod, status, initContainerStatuses))
		if (str_eq(val_str(*s, name), val_str(container, name)))
			found = *s;
	return found;
}

static bool is_sidecar(struct val container) { return str_eq(val_str(container, restartPolicy), STR("Always")); }

static struct amount container_needs(struct val pod, struct val container, str name, struct how how, bool resizes)
{
	struct amount needs = amount_in(val_get(container, resources, requests), name);
	struct val status = status_of(pod, container);

	if (how.status && resizes && val_has(status, resources))
		needs = effective(pod, needs, amount_in(val_get(status, resources, requests), name),
				  amount_in(val_get(status, allocatedResources), name));
	return needs.said ? needs : how.missing;
}

static bool is_whole_resource(str name)
{
	return str_eq(name, STR("cpu")) || str_eq(name, STR("memory")) || str_starts(name, STR("hugepages-"));
}

static struct amount pod_needs(struct val pod, str name, struct how how)
{
	struct amount sum = { 0 }, sidecars = { 0 }, most = { 0 };
	struct val whole = val_get(pod, spec, resources, requests);

	VAL_EACH(k, val_get(pod, spec, containers))
		sum = plus(sum, container_needs(pod, *k, name, how, true));
	VAL_EACH(k, val_get(pod, spec, initContainers)) {
		struct amount needs = container_needs(pod, *k, name, how, is_sidecar(*k));
		if (is_sidecar(*k)) {
			sum = plus(sum, needs);
			sidecars = plus(sidecars, needs);
			most = larger(most, sidecars);
		} else {
			most = larger(most, plus(needs, sidecars));
		}
	}
	sum = larger(sum, most);
	if (how.whole && is_whole_resource(name) && val_exists(val_find(whole, name))) {
		sum = amount_in(whole, name);
		if (how.status && val_has(pod, status, resources))
			sum = effective(pod, sum, amount_in(val_get(pod, status, resources, requests), name),
					amount_in(val_get(pod, status, allocatedResources), name));
		sum.said = true;
	}
	return plus(sum, amount_in(val_get(pod, spec, overhead), name));
}

/* In thousandths of CPU, else in whole numbers. */
static int64_t count_of(struct amount a, str name)
{
	struct quantity q = { a.nanos, QUANTITY_DECIMAL_SI };

	return str_eq(name, STR("cpu")) ? quantity_milli(q) : quantity_value(q);
}

/* 100m of CPU, 200Mi of memory. */
static struct amount at_least(str name)
{
	if (str_eq(name, STR("cpu")))
		return (struct amount){ true, quantity_of_milli(100, QUANTITY_DECIMAL_SI).nanos };
	if (str_eq(name, STR("memory")))
		return (struct amount){ true, quantity_of_int(200 << 20, QUANTITY_DECIMAL_SI).nanos };
	return (struct amount){ 0 };
}

static bool has_whole(struct val pod)
{
	VAL_EACH_MEMBER(m, val_get(pod, spec, resources, requests))
		if (is_whole_resource(atom_str(m->key)))
			return true;
	return false;
}

/* What a pod on a node takes. nonzero: at least something of CPU and memory. */
static int64_t pod_takes(struct val pod, str name, bool nonzero)
{
	struct how how = { .status = true, .whole = true };
	struct amount a = pod_needs(pod, name, how);

	if (nonzero && (!has_whole(pod) || !a.said)) {
		how.missing = at_least(name);
		a = pod_needs(pod, name, how);
	}
	return count_of(a, name);
}

static int64_t node_gives(struct val node, str name) { return count_of(amount_in(val_get(node, status, allocatable), name), name); }

static int64_t node_used(const struct reference *r, const struct reference_if *w, size_t node, str name, bool nonzero)
{
	int64_t used = 0;
	struct val pod;
	size_t at = 0, on;

	while (reference_next_pod(r, w, &at, &pod, &on))
		if (on == node)
			used += pod_takes(pod, name, nonzero);
	return used;
}

/* ---- NodeResourcesFit: the filter ---- */

static bool is_extended(str name)
{
	return str_chr(name, '/') >= 0 && str_find(name, STR("kubernetes.io/")) < 0 && !str_starts(name, STR("requests."));
}

static bool is_scalar(str name)
{
	return is_extended(name) || str_starts(name, STR("hugepages-")) || str_starts(name, STR("attachable-volumes-")) ||
	       str_find(name, STR("kubernetes.io/")) >= 0;
}

/* Each name once. */
static void add_names(struct val list, str *names, size_t *n)
{
	VAL_EACH_MEMBER(m, list) {
		bool known = false;
		for (size_t i = 0; i < *n; i++)
			known |= str_eq(names[i], atom_str(m->key));
		if (!known && *n < MAX_NAMES)
			names[(*n)++] = atom_str(m->key);
	}
}

static size_t pod_names(struct val pod, str *names)
{
	size_t n = 0;

	VAL_EACH(k, val_get(pod, spec, containers))
		add_names(val_get(*k, resources, requests), names, &n);
	VAL_EACH(k, val_get(pod, spec, initContainers))
		add_names(val_get(*k, resources, requests), names, &n);
	add_names(val_get(pod, spec, resources, requests), names, &n);
	add_names(val_get(pod, spec, overhead), names, &n);
	return n;
}

static bool is_ignored(const struct reference *r, str name)
{
	struct val args = reference_args(r, "NodeResourcesFit");

	if (!is_extended(name))
		return false;
	VAL_EACH(i, val_get(args, ignoredResources))
		if (str_eq(val_as_str(*i), name))
			return true;
	VAL_EACH(i, val_get(args, ignoredResourceGroups))
		if (str_eq(val_as_str(*i), str_span(name.p, (size_t)str_chr(name, '/'))))
			return true;
	return false;
}

static void add_reason(const struct reference *r, str *reason, str text, str name)
{
	*reason = arena_printf(r->arena, STR_FMT "%s" STR_FMT STR_FMT, STR_ARG(*reason), reason->n ? "\n" : "", STR_ARG(text), STR_ARG(name));
}

void reference_fit(const struct reference *r, const struct reference_if *w, struct val pod, size_t node, struct reference_verdict *ret)
{
	str names[MAX_NAMES], reason = STR("");
	size_t n = pod_names(pod, names), at = 0, on;
	struct val other;
	bool unresolvable = false;
	int64_t n_pods = 0;

	while (reference_next_pod(r, w, &at, &other, &on))
		n_pods += on == node;
	if (n_pods + 1 > node_gives(r->nodes.all[node], STR("pods")))
		add_reason(r, &reason, STR("Too many pods"), STR(""));
	for (size_t i = 0; i < n; i++) {
		bool counts = str_eq(names[i], STR("cpu")) || str_eq(names[i], STR("memory")) || str_eq(names[i], STR("ephemeral-storage"));
		int64_t needs = count_of(pod_needs(pod, names[i], (struct how){ .whole = true }), names[i]);
		int64_t gives = node_gives(r->nodes.all[node], names[i]);
		if ((!counts && (!is_scalar(names[i]) || is_ignored(r, names[i]))) || needs <= 0 ||
		    needs <= gives - node_used(r, w, node, names[i], false))
			continue;
		add_reason(r, &reason, STR("Insufficient "), names[i]);
		unresolvable |= needs > gives;
	}
	if (reason.n)
		*ret = (struct reference_verdict){ "NodeResourcesFit", unresolvable, reason };
}

/* ---- scores ---- */

static struct val scored_resources(const struct reference *r, struct val said)
{
	if (val_len(said))
		return said;
	return LIST(r->arena, OBJECT(r->arena, F(name, VAL_LIT("cpu")), F(weight, val_of_int(1))),
		    OBJECT(r->arena, F(name, VAL_LIT("memory")), F(weight, val_of_int(1))));
}

/* From point to point in straight lines. */
static int64_t shape_at(struct val shape, int64_t utilization)
{
	for (uint32_t i = 0; i < val_len(shape); i++) {
		int64_t x = val_int(val_at(shape, i), utilization), y = 10 * val_int(val_at(shape, i), score);
		if (utilization > x)
			continue;
		if (i == 0)
			return y;
		int64_t x0 = val_int(val_at(shape, i - 1), utilization), y0 = 10 * val_int(val_at(shape, i - 1), score);
		return y0 + (y - y0) * (utilization - x0) / (x - x0);
	}
	return 10 * val_int(val_at(shape, val_len(shape) - 1), score);
}

/* One resource: so much of it would be used of what there is. */
static int64_t resource_score(struct val strategy, int64_t used, int64_t gives)
{
	str type = val_str(strategy, type);

	if (str_eq(type, STR("MostAllocated")))
		return (used > gives ? gives : used) * 100 / gives;
	if (str_eq(type, STR("RequestedToCapacityRatio")))
		return shape_at(val_get(strategy, requestedToCapacityRatio, shape), used > gives ? 100 : used * 100 / gives);
	return used > gives ? 0 : (gives - used) * 100 / gives;
}

int64_t reference_fit_score(const struct reference *r, struct val pod, size_t node)
{
	struct val strategy = val_get(reference_args(r, "NodeResourcesFit"), scoringStrategy);
	bool ratio = str_eq(val_str(strategy, type), STR("RequestedToCapacityRatio"));
	int64_t sum = 0, weights = 0;

	VAL_EACH(k, scored_resources(r, val_get(strategy, resources))) {
		str name = val_str(*k, name);
		int64_t weight = val_has(*k, weight) ? val_int(*k, weight) : 1, gives = node_gives(r->nodes.all[node], name);
		/* The pod's own resources as a whole do not count here. */
		int64_t needs = count_of(pod_needs(pod, name, (struct how){ .missing = at_least(name) }), name);
		if ((needs == 0 && is_scalar(name)) || gives == 0)
			continue;
		int64_t score = resource_score(strategy, node_used(r, NULL, node, name, true) + needs, gives);
		if (ratio && score <= 0)
			continue;
		sum += score * weight;
		weights += weight;
	}
	if (!weights)
		return 0;
	return ratio ? (int64_t)round((double)sum / (double)weights) : sum / weights;
}

static struct val balanced(const struct reference *r)
{
	return scored_resources(r, val_get(reference_args(r, "NodeResourcesBalancedAllocation"), resources));
}

bool reference_balances(const struct reference *r, struct val pod)
{
	VAL_EACH(k, balanced(r))
		if (pod_takes(pod, val_str(*k, name), false))
			return true;
	return false;
}

static int64_t balance(const struct reference *r, struct val pod, size_t node, bool with)
{
	double parts[MAX_NAMES], sum = 0, off = 0;
	size_t n = 0;

	VAL_EACH(k, balanced(r)) {
		str name = val_str(*k, name);
		int64_t gives = node_gives(r->nodes.all[node], name), needs = pod_takes(pod, name, false);
		if ((needs == 0 && is_scalar(name)) || gives == 0 || n == MAX_NAMES)
			continue;
		double part = (double)(node_used(r, NULL, node, name, false) + (with ? needs : 0)) / (double)gives;
		parts[n] = part > 1 ? 1 : part;
		sum += parts[n++];
	}
	if (n == 2)
		off = fabs((parts[0] - parts[1]) / 2);
	if (n > 2) {
		double squares = 0;
		for (size_t i = 0; i < n; i++)
			squares += (parts[i] - sum / (double)n) * (parts[i] - sum / (double)n);
		off = sqrt(squares / (double)n);
	}
	return (int64_t)((1 - off) * 100);
}

int64_t reference_balance_score(const struct reference *r, struct val pod, size_t node)
{
	return 50 + (50 + balance(r, pod, node, true) - balance(r, pod, node, false)) / 2;
}
