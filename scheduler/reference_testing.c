/* Filters and scores that look at one node at a time. Those that look at other pods are in reference_pods_testing.c. */
#include "scheduler/reference_testing.h"

#include <math.h>
#include <stdlib.h>

#include "codec/atoms.h"
#include "machinery/node_selector.h"
#include "machinery/resources.h"

enum { MAX_NAMES = 64 };

bool reference_is_on(const struct reference *r, struct val pod, size_t node)
{
	return str_eq(val_str(pod, spec, nodeName), val_str(r->nodes[node], metadata, name));
}

static struct reference_verdict refused(const char *plugin, bool unresolvable, str reason)
{
	return (struct reference_verdict){ plugin, unresolvable, reason };
}

/* ---- resources ---- */

static quantity_nanos amount(struct val list, str name) { return quantity_of(val_find(list, name)).nanos; }

static quantity_nanos larger(quantity_nanos a, quantity_nanos b) { return a > b ? a : b; }

static struct val status_of(struct val pod, struct val container)
{
	VAL_EACH(s, val_get(pod, status, containerStatuses))
		if (str_eq(val_str(*s, name), val_str(container, name)))
			return *s;
	VAL_EACH(s, val_get(pod, status, initContainerStatuses))
		if (str_eq(val_str(*s, name), val_str(container, name)))
			return *s;
	return VAL_EMPTY;
}

static bool is_infeasible(struct val pod)
{
	VAL_EACH(k, val_get(pod, status, conditions))
		if (str_eq(val_str(*k, type), STR("PodResizePending")))
			return str_eq(val_str(*k, reason), STR("Infeasible"));
	return false;
}

/* What a container needs of a resource; nonzero: at least something of CPU and memory when it does not say. */
static quantity_nanos container_needs(struct val pod, struct val container, str name, bool nonzero, bool resizes)
{
	struct val requests = val_get(container, resources, requests), status = status_of(pod, container);
	quantity_nanos needs = amount(requests, name);
	bool said = val_exists(val_find(requests, name));

	if (resizes && val_has(status, resources)) {
		struct val actual = val_get(status, resources, requests), allocated = val_get(status, allocatedResources);
		quantity_nanos now = larger(amount(actual, name), amount(allocated, name));
		needs = is_infeasible(pod) ? now : larger(needs, now);
		said = (said && !is_infeasible(pod)) || val_exists(val_find(actual, name)) || val_exists(val_find(allocated, name));
	}
	if (nonzero && !said && str_eq(name, STR("cpu")))
		return quantity_of_milli(100, QUANTITY_DECIMAL_SI).nanos;
	if (nonzero && !said && str_eq(name, STR("memory")))
		return quantity_of_int(200 << 20, QUANTITY_BINARY_SI).nanos;
	return needs;
}

static bool is_sidecar(struct val container) { return str_eq(val_str(container, restartPolicy), STR("Always")); }

/* What a pod needs of a resource, in thousandths of CPU, else in whole numbers. */
static int64_t pod_needs(struct val pod, str name, bool nonzero)
{
	quantity_nanos sum = 0, sidecars = 0, most = 0;
	struct val whole = val_get(pod, spec, resources, requests);

	VAL_EACH(k, val_get(pod, spec, containers))
		sum += container_needs(pod, *k, name, nonzero, true);
	VAL_EACH(k, val_get(pod, spec, initContainers)) {
		quantity_nanos needs = container_needs(pod, *k, name, nonzero, is_sidecar(*k));
		if (is_sidecar(*k)) {
			sum += needs;
			sidecars += needs;
			most = larger(most, sidecars);
		} else {
			most = larger(most, needs + sidecars);
		}
	}
	sum = larger(sum, most);
	if (resource_is_pod_level(name) && val_exists(val_find(whole, name)))
		sum = amount(whole, name);
	sum += amount(val_get(pod, spec, overhead), name);
	struct quantity q = { sum, QUANTITY_DECIMAL_SI };
	return str_eq(name, STR("cpu")) ? quantity_milli(q) : quantity_value(q);
}

static int64_t node_gives(struct val node, str name)
{
	struct quantity q = quantity_of(val_find(val_get(node, status, allocatable), name));
	return str_eq(name, STR("cpu")) ? quantity_milli(q) : quantity_value(q);
}

static int64_t node_used(const struct reference *r, size_t node, str name, bool nonzero)
{
	int64_t used = 0;

	for (size_t i = 0; i < r->n_pods; i++)
		if (reference_is_on(r, r->pods[i], node))
			used += pod_needs(r->pods[i], name, nonzero);
	return used;
}

static int64_t node_pods(const struct reference *r, size_t node)
{
	int64_t n = 0;

	for (size_t i = 0; i < r->n_pods; i++)
		n += reference_is_on(r, r->pods[i], node);
	return n;
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

static int name_order(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

static size_t pod_names(struct val pod, str *names)
{
	size_t n = 0;

	VAL_EACH(k, val_get(pod, spec, containers))
		add_names(val_get(*k, resources, requests), names, &n);
	VAL_EACH(k, val_get(pod, spec, initContainers))
		add_names(val_get(*k, resources, requests), names, &n);
	add_names(val_get(pod, spec, resources, requests), names, &n);
	add_names(val_get(pod, spec, overhead), names, &n);
	qsort(names, n, sizeof(*names), name_order);
	return n;
}

static bool counts(str name)
{
	return str_eq(name, STR("cpu")) || str_eq(name, STR("memory")) || str_eq(name, STR("ephemeral-storage")) || resource_is_extended(name) ||
	       resource_is_huge_page(name) || str_starts(name, STR("attachable-volumes-")) || str_find(name, STR("kubernetes.io/")) >= 0;
}

static struct reference_verdict fit(const struct reference *r, struct val pod, size_t node)
{
	str names[MAX_NAMES], reason = STR("");
	size_t n = pod_names(pod, names);
	bool unresolvable = false;

	for (size_t i = 0; i < n; i++) {
		int64_t needs = pod_needs(pod, names[i], false), gives = node_gives(r->nodes[node], names[i]);
		if (!counts(names[i]) || needs <= 0 || needs <= gives - node_used(r, node, names[i], false))
			continue;
		reason = arena_printf(r->arena, STR_FMT "%sInsufficient " STR_FMT, STR_ARG(reason), reason.n ? "\n" : "", STR_ARG(names[i]));
		unresolvable |= needs > gives;
	}
	if (node_pods(r, node) + 1 > node_gives(r->nodes[node], STR("pods")))
		reason = arena_printf(r->arena, STR_FMT "%sToo many pods", STR_ARG(reason), reason.n ? "\n" : "");
	return refused(reason.n ? "NodeResourcesFit" : NULL, unresolvable, reason);
}

/* ---- taints ---- */

static bool tolerates(struct val pod, str key, str value, str effect)
{
	VAL_EACH(t, val_get(pod, spec, tolerations)) {
		str operator_ = val_str(*t, operator);
		bool exists = str_eq(operator_, STR("Exists"));
		if (val_str(*t, effect).n && !str_eq(val_str(*t, effect), effect))
			continue;
		if (val_str(*t, key).n && !str_eq(val_str(*t, key), key))
			continue;
		if (exists || ((!operator_.n || str_eq(operator_, STR("Equal"))) && str_eq(val_str(*t, value), value)))
			return true;
	}
	return false;
}

bool reference_taints(struct val pod, struct val node)
{
	VAL_EACH(t, val_get(node, spec, taints))
		if (!str_eq(val_str(*t, effect), STR("PreferNoSchedule")) &&
		    !tolerates(pod, val_str(*t, key), val_str(*t, value), val_str(*t, effect)))
			return false;
	return true;
}

/* ---- ports ---- */

static str host_ip(struct val port) { return val_str(port, hostIP).n ? val_str(port, hostIP) : STR("0.0.0.0"); }

static str protocol_of(struct val port) { return val_str(port, protocol).n ? val_str(port, protocol) : STR("TCP"); }

static bool ports_clash(struct val a, struct val b)
{
	if (val_int(a, hostPort) <= 0 || val_int(a, hostPort) != val_int(b, hostPort) || !str_eq(protocol_of(a), protocol_of(b)))
		return false;
	return str_eq(host_ip(a), STR("0.0.0.0")) || str_eq(host_ip(b), STR("0.0.0.0")) || str_eq(host_ip(a), host_ip(b));
}

/* All ports of a pod's containers and sidecars. */
static struct val host_ports(struct arena *a, struct val pod)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(k, val_get(pod, spec, initContainers))
		if (is_sidecar(*k))
			VAL_EACH(p, val_get(*k, ports))
				val_add_item(&b, *p);
	VAL_EACH(k, val_get(pod, spec, containers))
		VAL_EACH(p, val_get(*k, ports))
			val_add_item(&b, *p);
	return val_end_list(&b);
}

static bool ports_free(const struct reference *r, struct val pod, size_t node)
{
	struct val wanted = host_ports(r->arena, pod);

	for (size_t i = 0; i < r->n_pods; i++) {
		if (!reference_is_on(r, r->pods[i], node))
			continue;
		VAL_EACH(used, host_ports(r->arena, r->pods[i]))
			VAL_EACH(want, wanted)
				if (ports_clash(*want, *used))
					return false;
	}
	return true;
}

/* ---- node affinity ---- */

bool reference_node_affinity(const struct reference *r, struct val pod, struct val node)
{
	struct node_affinity f;

	node_affinity_compile(r->arena, val_get(pod, spec), &f);
	return node_affinity_matches(&f, node, NULL) == 1;
}

static struct val preferred_nodes(struct val pod)
{
	return val_get(pod, spec, affinity, nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution);
}

static int64_t node_affinity_score(const struct reference *r, struct val pod, struct val node)
{
	int64_t sum = 0;

	VAL_EACH(p, preferred_nodes(pod)) {
		struct node_term term;
		node_term_compile(r->arena, val_get(*p, preference), NULL, &term);
		if (node_term_matches(&term, node))
			sum += val_int(*p, weight);
	}
	return sum;
}

/* ---- images ---- */

static str image_name(struct arena *a, str name)
{
	return str_rchr(name, ':') <= str_rchr(name, '/') ? arena_join(a, name, STR(":latest")) : name;
}

static bool node_has_image(struct val node, str name, int64_t *ret_size)
{
	VAL_EACH(image, val_get(node, status, images))
		VAL_EACH(n, val_get(*image, names))
			if (str_eq(val_as_str(*n), name)) {
				*ret_size = val_int(*image, sizeBytes);
				return true;
			}
	return false;
}

/* The size of an image that the node has, the more the more nodes have it. */
static int64_t image_worth(const struct reference *r, size_t node, str image)
{
	str name = image_name(r->arena, image);
	int64_t size = 0, first = 0, n = 0;

	if (!node_has_image(r->nodes[node], name, &size))
		return 0;
	for (size_t i = 0; i < r->n_nodes; i++)
		if (node_has_image(r->nodes[i], name, &size) && n++ == 0)
			first = size;
	return (int64_t)((double)first * ((double)n / (double)r->n_nodes));
}

static int64_t image_score(const struct reference *r, struct val pod, size_t node)
{
	struct val containers = val_get(pod, spec, containers), init = val_get(pod, spec, initContainers);
	int64_t low = 23 << 20, high = ((int64_t)1000 << 20) * (val_len(containers) + val_len(init)), sum = 0;

	VAL_EACH(k, init)
		sum += image_worth(r, node, val_str(*k, image));
	VAL_EACH(k, containers)
		sum += image_worth(r, node, val_str(*k, image));
	VAL_EACH(v, val_get(pod, spec, volumes))
		if (val_has(*v, image))
			sum += image_worth(r, node, val_str(*v, image, reference));
	sum = sum < low ? low : sum > high ? high : sum;
	return 100 * (sum - low) / (high - low);
}

/* ---- resources: scores ---- */

static const str scored[] = { STR_INIT("cpu"), STR_INIT("memory") };

static int64_t least_allocated(const struct reference *r, struct val pod, size_t node)
{
	int64_t sum = 0, n = 0;

	for (size_t i = 0; i < ARRAY_LEN(scored); i++) {
		int64_t gives = node_gives(r->nodes[node], scored[i]);
		int64_t used = node_used(r, node, scored[i], true) + pod_needs(pod, scored[i], true);
		if (gives == 0)
			continue;
		sum += used > gives ? 0 : (gives - used) * 100 / gives;
		n++;
	}
	return n ? sum / n : 0;
}

static int64_t balance(const struct reference *r, struct val pod, size_t node, bool with)
{
	double part[ARRAY_LEN(scored)], off = 0;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(scored); i++) {
		int64_t gives = node_gives(r->nodes[node], scored[i]);
		int64_t used = node_used(r, node, scored[i], false) + (with ? pod_needs(pod, scored[i], false) : 0);
		if (gives)
			part[n++] = used > gives ? 1 : (double)used / (double)gives;
	}
	if (n == 2)
		off = fabs((part[0] - part[1]) / 2);
	return (int64_t)((1 - off) * 100);
}

static int64_t balanced_allocation(const struct reference *r, struct val pod, size_t node)
{
	return 50 + (50 + balance(r, pod, node, true) - balance(r, pod, node, false)) / 2;
}

/* ---- all ---- */

struct reference_verdict reference_filter(const struct reference *r, struct val pod, size_t node)
{
	struct val v = r->nodes[node];
	struct reference_verdict ret = { 0 };

	if (val_bool(v, spec, unschedulable) && !tolerates(pod, STR("node.kubernetes.io/unschedulable"), STR(""), STR("NoSchedule")))
		return refused("NodeUnschedulable", true, STR("node(s) were unschedulable"));
	if (val_str(pod, spec, nodeName).n && !reference_is_on(r, pod, node))
		return refused("NodeName", true, STR("node(s) didn't match the requested node name"));
	if (!reference_taints(pod, v))
		return refused("TaintToleration", true, STR("node(s) had untolerated taint(s)"));
	if (!reference_node_affinity(r, pod, v))
		return refused("NodeAffinity", true, STR("node(s) didn't match Pod's node affinity/selector"));
	if (!ports_free(r, pod, node))
		return refused("NodePorts", false, STR("node(s) didn't have free ports for the requested pod ports"));
	ret = fit(r, pod, node);
	if (!ret.plugin)
		reference_spread_filter(r, pod, node, &ret);
	if (!ret.plugin)
		reference_affinity_filter(r, pod, node, &ret);
	return ret;
}

static void normalize(int64_t *scores, size_t n, bool reverse)
{
	int64_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = MAX(most, scores[i]);
	for (size_t i = 0; i < n; i++) {
		scores[i] = most ? 100 * scores[i] / most : 0;
		scores[i] = reverse ? 100 - scores[i] : scores[i];
	}
}

static int64_t taint_score(struct val pod, struct val node)
{
	int64_t n = 0;

	VAL_EACH(t, val_get(node, spec, taints))
		n += str_eq(val_str(*t, effect), STR("PreferNoSchedule")) &&
		     !tolerates(pod, val_str(*t, key), val_str(*t, value), STR("PreferNoSchedule"));
	return n;
}

bool reference_score(const struct reference *r, const char *plugin, struct val pod, const size_t *nodes, size_t n, int64_t *scores)
{
	str p = str_of(plugin);
	bool taints = str_eq(p, STR("TaintToleration")), affinity = str_eq(p, STR("NodeAffinity"));
	bool balanced = str_eq(p, STR("NodeResourcesBalancedAllocation"));

	for (size_t i = 0; i < n; i++)
		scores[i] = 0;
	if (str_eq(p, STR("PodTopologySpread")))
		return reference_spread_score(r, pod, nodes, n, scores);
	if (str_eq(p, STR("InterPodAffinity")))
		return reference_affinity_score(r, pod, nodes, n, scores);
	if ((affinity && !val_len(preferred_nodes(pod))) ||
	    (balanced && !pod_needs(pod, scored[0], false) && !pod_needs(pod, scored[1], false)))
		return false;
	for (size_t i = 0; i < n; i++)
		scores[i] = taints ? taint_score(pod, r->nodes[nodes[i]]) :
			    affinity ? node_affinity_score(r, pod, r->nodes[nodes[i]]) :
			    balanced ? balanced_allocation(r, pod, nodes[i]) :
			    str_eq(p, STR("ImageLocality")) ? image_score(r, pod, nodes[i]) : least_allocated(r, pod, nodes[i]);
	if (taints || affinity)
		normalize(scores, n, taints);
	return true;
}

void reference_total(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores)
{
	static const struct { const char *name; int64_t weight; } plugins[] = {
		{ "TaintToleration", 3 }, { "NodeAffinity", 2 }, { "NodeResourcesFit", 1 }, { "PodTopologySpread", 2 }, { "InterPodAffinity", 2 },
		{ "NodeResourcesBalancedAllocation", 1 }, { "ImageLocality", 1 },
	};
	int64_t *one = ARENA_ARRAY(r->arena, int64_t, n + 1);

	for (size_t i = 0; i < n; i++)
		scores[i] = 0;
	for (size_t k = 0; k < ARRAY_LEN(plugins); k++)
		if (reference_score(r, plugins[k].name, pod, nodes, n, one))
			for (size_t i = 0; i < n; i++)
				scores[i] += plugins[k].weight * one[i];
}
