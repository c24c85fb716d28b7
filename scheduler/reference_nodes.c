/* Filters and scores that look at one node alone: taints, node affinity, ports, images. */
#include "codec/atoms.h"
#include "scheduler/reference.h"

/* ---- taints ---- */

bool reference_tolerates(struct val pod, str key, str value, str effect)
{
	VAL_EACH(t, val_get(pod, spec, tolerations)) {
		str how = val_str(*t, operator);
		if (val_str(*t, effect).n && !str_eq(val_str(*t, effect), effect))
			continue;
		if (val_str(*t, key).n && !str_eq(val_str(*t, key), key))
			continue;
		if (str_eq(how, STR("Exists")) || ((!how.n || str_eq(how, STR("Equal"))) && str_eq(val_str(*t, value), value)))
			return true;
	}
	return false;
}

bool reference_taints(struct val pod, struct val node)
{
	VAL_EACH(t, val_get(node, spec, taints))
		if ((str_eq(val_str(*t, effect), STR("NoSchedule")) || str_eq(val_str(*t, effect), STR("NoExecute"))) &&
		    !reference_tolerates(pod, val_str(*t, key), val_str(*t, value), val_str(*t, effect)))
			return false;
	return true;
}

int64_t reference_taint_score(struct val pod, struct val node)
{
	int64_t n = 0;

	VAL_EACH(t, val_get(node, spec, taints))
		n += str_eq(val_str(*t, effect), STR("PreferNoSchedule")) &&
		     !reference_tolerates(pod, val_str(*t, key), val_str(*t, value), STR("PreferNoSchedule"));
	return n;
}

/* ---- node affinity ---- */

/* The names that a term allows by its fields; false: it does not say. */
static bool term_names(struct val term, struct val *ret_names)
{
	bool said = false;

	VAL_EACH(f, val_get(term, matchFields)) {
		if (!str_eq(val_str(*f, key), STR("metadata.name")) || !str_eq(val_str(*f, operator), STR("In")))
			continue;
		if (!said) {
			*ret_names = val_get(*f, values);
		} else if (!str_eq(val_as_str(val_at(*ret_names, 0)), val_as_str(val_at(val_get(*f, values), 0)))) {
			*ret_names = VAL_EMPTY_LIST; /* a field has one value: two different ones have nothing in common */
		}
		said = true;
	}
	return said;
}

/* Kubernetes knows which nodes to look at when all terms name some. */
bool reference_narrows(const struct reference *r, struct val pod, struct val *ret_names)
{
	struct val terms = val_get(pod, spec, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution, nodeSelectorTerms);
	struct val_builder all = val_builder(r->arena);

	if (!val_len(terms))
		return false;
	VAL_EACH(t, terms) {
		struct val some;
		if (!term_names(*t, &some))
			return false;
		VAL_EACH(name, some)
			val_add_item(&all, *name);
	}
	*ret_names = val_end_list(&all);
	return true;
}

static struct val preferred_nodes(struct val pod)
{
	return val_get(pod, spec, affinity, nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution);
}

static struct val added_preferred(const struct reference *r)
{
	return val_get(reference_args(r, "NodeAffinity"), addedAffinity, preferredDuringSchedulingIgnoredDuringExecution);
}

bool reference_prefers_nodes(const struct reference *r, struct val pod) { return val_len(preferred_nodes(pod)) || val_len(added_preferred(r)); }

static int64_t preference(struct val terms, struct val node)
{
	int64_t sum = 0;

	VAL_EACH(p, terms)
		if (reference_term_matches(val_get(*p, preference), node))
			sum += val_int(*p, weight);
	return sum;
}

int64_t reference_node_affinity_score(const struct reference *r, struct val pod, struct val node)
{
	return preference(added_preferred(r), node) + preference(preferred_nodes(pod), node);
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
		if (str_eq(val_str(*k, restartPolicy), STR("Always")))
			VAL_EACH(p, val_get(*k, ports))
				val_add_item(&b, *p);
	VAL_EACH(k, val_get(pod, spec, containers))
		VAL_EACH(p, val_get(*k, ports))
			val_add_item(&b, *p);
	return val_end_list(&b);
}

bool reference_ports_free(const struct reference *r, const struct reference_if *w, struct val pod, size_t node)
{
	struct val wanted = host_ports(r->arena, pod), other;
	size_t at = 0, on;

	while (val_len(wanted) && reference_next_pod(r, w, &at, &other, &on)) {
		if (on != node)
			continue;
		VAL_EACH(used, host_ports(r->arena, other))
			VAL_EACH(want, wanted)
				if (ports_clash(*want, *used))
					return false;
	}
	return true;
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
	int64_t size = 0, n = 0, any;

	if (!node_has_image(r->nodes.all[node], name, &size))
		return 0;
	for (size_t i = 0; i < r->nodes.n; i++)
		n += node_has_image(r->nodes.all[i], name, &any);
	return (int64_t)((double)size * ((double)n / (double)r->nodes.n));
}

int64_t reference_image_score(const struct reference *r, struct val pod, size_t node)
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
