/* Filters and scores that look at other pods: spreading and affinity, straight from their definitions. */
#include <math.h>

#include "codec/atoms.h"
#include "machinery/selector.h"
#include "scheduler/reference_testing.h"

static struct val label_of(struct val object, str key) { return val_find(val_get(object, metadata, labels), key); }

static bool same_domain(const struct reference *r, size_t a, size_t b, str key)
{
	struct val x = label_of(r->nodes[a], key), y = label_of(r->nodes[b], key);
	return val_exists(x) && val_exists(y) && str_eq(val_as_str(x), val_as_str(y));
}

static struct selector selector_of(const struct reference *r, struct val v)
{
	struct selector s = SELECTOR_NOTHING;
	(void)selector_of_object(r->arena, v, &s, NULL);
	return s;
}

/* ---- spreading ---- */

struct rule {
	str key;
	int64_t max_skew, min_domains;
	bool affinity, taints;
	struct selector selector;
};

struct rules {
	size_t n;
	struct rule *all;
	bool all_keys;                /* nodes must have them */
};

static bool labels_have(struct val labels, struct val map)
{
	VAL_EACH_MEMBER(m, map)
		if (!val_equal(val_find(labels, atom_str(m->key)), m->val))
			return false;
	return true;
}

static void add_labels(const struct reference *r, struct val *all, struct val map)
{
	VAL_EACH_MEMBER(m, map)
		*all = val_put(r->arena, *all, m->key, m->val);
}

/* By services and the controller; nothing required: nothing is known. */
static struct selector default_selector(const struct reference *r, struct val pod)
{
	struct val all = VAL_EMPTY_OBJECT, labels = val_get(pod, metadata, labels), more = VAL_EMPTY;
	str namespace = val_str(pod, metadata, namespace);

	for (size_t i = 0; i < r->n_services; i++)
		if (str_eq(val_str(r->services[i], metadata, namespace), namespace) && labels_have(labels, val_get(r->services[i], spec, selector)))
			add_labels(r, &all, val_get(r->services[i], spec, selector));
	VAL_EACH(ref, val_get(pod, metadata, ownerReferences))
		for (size_t i = 0; i < r->n_owners; i++) {
			struct val o = r->owners[i];
			if (!val_bool(*ref, controller) || !str_eq(val_str(*ref, kind), val_str(o, kind)) ||
			    !str_eq(val_str(*ref, apiVersion), val_str(o, apiVersion)) || !str_eq(val_str(*ref, name), val_str(o, metadata, name)) ||
			    !str_eq(val_str(o, metadata, namespace), namespace))
				continue;
			if (str_eq(val_str(o, kind), STR("ReplicationController")))
				add_labels(r, &all, val_get(o, spec, selector));
			else
				more = val_get(o, spec, selector);
		}
	struct selector x = selector_of_labels(r->arena, all), y = val_exists(more) ? selector_of(r, more) : SELECTOR_EVERYTHING;
	struct requirement *both = ARENA_ARRAY(r->arena, struct requirement, x.n + y.n + 1);
	for (size_t i = 0; i < x.n + y.n; i++)
		both[i] = i < x.n ? x.all[i] : y.all[i - x.n];
	return selector_of_requirements(r->arena, both, x.n + y.n);
}

static struct selector rule_selector(const struct reference *r, struct val v, struct val pod)
{
	struct val selector = val_get(v, labelSelector);

	if (val_is_nil(selector))
		return SELECTOR_NOTHING;
	VAL_EACH(key, val_get(v, matchLabelKeys)) {
		struct val label = label_of(pod, val_as_str(*key));
		if (!val_exists(label))
			continue;
		struct val more = OBJECT(r->arena, F(key, *key), F(operator, VAL_LIT("In")), F(values, LIST(r->arena, label)));
		selector = val_with(r->arena, selector, val_list_append(r->arena, val_get(selector, matchExpressions), more), matchExpressions);
	}
	return selector_of(r, selector);
}

static void add_rule(const struct reference *r, struct rules *all, struct val v, struct selector selector)
{
	struct rule *more = ARENA_ARRAY(r->arena, struct rule, all->n + 1);

	for (size_t i = 0; i < all->n; i++)
		more[i] = all->all[i];
	more[all->n] = (struct rule){ .key = val_str(v, topologyKey), .max_skew = val_int(v, maxSkew),
				      .min_domains = val_has(v, minDomains) ? val_int(v, minDomains) : 1,
				      .affinity = !str_eq(val_str(v, nodeAffinityPolicy), STR("Ignore")),
				      .taints = str_eq(val_str(v, nodeTaintsPolicy), STR("Honor")), .selector = selector };
	all->all = more;
	all->n++;
}

static struct rules rules_of(const struct reference *r, struct val pod, str action)
{
	struct val own = val_get(pod, spec, topologySpreadConstraints), anyway = VAL_LIT("ScheduleAnyway");
	struct val list = val_len(own) ? own : r->default_constraints;
	struct rules all = { .all_keys = val_len(own) || r->list_defaulting };

	if (!val_len(own) && !r->list_defaulting)
		list = LIST(r->arena,
			    OBJECT(r->arena, F(maxSkew, val_of_int(3)), F(topologyKey, VAL_LIT("kubernetes.io/hostname")), F(whenUnsatisfiable, anyway)),
			    OBJECT(r->arena, F(maxSkew, val_of_int(5)), F(topologyKey, VAL_LIT("topology.kubernetes.io/zone")),
				   F(whenUnsatisfiable, anyway)));
	struct selector by_default = default_selector(r, pod);
	if (!val_len(own) && by_default.n == 0)
		return all;
	VAL_EACH(v, list)
		if (str_eq(val_str(*v, whenUnsatisfiable), action))
			add_rule(r, &all, *v, val_len(own) ? rule_selector(r, *v, pod) : by_default);
	return all;
}

static bool has_keys(const struct rules *all, struct val node)
{
	for (size_t i = 0; i < all->n; i++)
		if (!val_exists(label_of(node, all->all[i].key)))
			return false;
	return true;
}

/* Whether pods on this node are counted. */
static bool counts(const struct reference *r, const struct rules *all, const struct rule *x, struct val pod, size_t node)
{
	struct val v = r->nodes[node];

	return (!all->all_keys || has_keys(all, v)) && (!x->affinity || reference_node_affinity(r, pod, v)) &&
	       (!x->taints || reference_taints(pod, v));
}

static int64_t on_node(const struct reference *r, const struct rule *x, struct val pod, size_t node)
{
	int64_t n = 0;

	for (size_t i = 0; i < r->n_pods && x->selector.n; i++) {
		struct val p = r->pods[i];
		n += reference_is_on(r, p, node) && !val_has(p, metadata, deletionTimestamp) &&
		     str_eq(val_str(p, metadata, namespace), val_str(pod, metadata, namespace)) &&
		     selector_matches(&x->selector, val_get(p, metadata, labels));
	}
	return n;
}

static int64_t in_domain(const struct reference *r, const struct rules *all, const struct rule *x, struct val pod, size_t node)
{
	int64_t n = 0;

	for (size_t i = 0; i < r->n_nodes; i++)
		if (same_domain(r, i, node, x->key) && counts(r, all, x, pod, i))
			n += on_node(r, x, pod, i);
	return n;
}

/* Over domains that have a node that counts. */
static int64_t least(const struct reference *r, const struct rules *all, const struct rule *x, struct val pod)
{
	int64_t low = INT64_MAX, n = 0;

	for (size_t i = 0; i < r->n_nodes; i++) {
		bool first = counts(r, all, x, pod, i) && val_exists(label_of(r->nodes[i], x->key));
		for (size_t k = 0; k < i && first; k++)
			first = !(counts(r, all, x, pod, k) && same_domain(r, k, i, x->key));
		if (!first)
			continue;
		n++;
		low = MIN(low, in_domain(r, all, x, pod, i));
	}
	return n < x->min_domains ? 0 : low;
}

void reference_spread_filter(const struct reference *r, struct val pod, size_t node, struct reference_verdict *ret)
{
	struct rules all = rules_of(r, pod, STR("DoNotSchedule"));

	for (size_t i = 0; i < all.n; i++) {
		const struct rule *x = &all.all[i];
		if (!val_exists(label_of(r->nodes[node], x->key))) {
			*ret = (struct reference_verdict){ "PodTopologySpread", true,
							   STR("node(s) didn't match pod topology spread constraints (missing required label)") };
			return;
		}
		int64_t self = selector_matches(&x->selector, val_get(pod, metadata, labels));
		if (in_domain(r, &all, x, pod, node) + self - least(r, &all, x, pod) > x->max_skew) {
			*ret = (struct reference_verdict){ "PodTopologySpread", false, STR("node(s) didn't match pod topology spread constraints") };
			return;
		}
	}
}

/* How many domains the nodes are in; without the label: one more. */
static size_t domains(const struct reference *r, const struct rules *all, const struct rule *x, const size_t *nodes, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		bool first = !all->all_keys || has_keys(all, r->nodes[nodes[i]]);
		for (size_t k = 0; k < i && first; k++)
			first = (all->all_keys && !has_keys(all, r->nodes[nodes[k]])) ||
				!val_equal(label_of(r->nodes[nodes[i]], x->key), label_of(r->nodes[nodes[k]], x->key)) ||
				str_eq(x->key, STR("kubernetes.io/hostname"));
		found += first;
	}
	return found;
}

bool reference_spread_score(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores)
{
	struct rules all = rules_of(r, pod, STR("ScheduleAnyway"));
	int64_t low = INT64_MAX, high = 0;

	if (!all.n)
		return false;
	for (size_t i = 0; i < n; i++) {
		double sum = 0;
		for (size_t k = 0; k < all.n; k++) {
			const struct rule *x = &all.all[k];
			bool host = str_eq(x->key, STR("kubernetes.io/hostname"));
			if (!val_exists(label_of(r->nodes[nodes[i]], x->key)))
				continue;
			int64_t count = host ? on_node(r, x, pod, nodes[i]) : in_domain(r, &all, x, pod, nodes[i]);
			sum += (double)count * log((double)domains(r, &all, x, nodes, n) + 2) + (double)(x->max_skew - 1);
		}
		scores[i] = all.all_keys && !has_keys(&all, r->nodes[nodes[i]]) ? -1 : (int64_t)round(sum);
		if (scores[i] >= 0) {
			low = MIN(low, scores[i]);
			high = MAX(high, scores[i]);
		}
	}
	for (size_t i = 0; i < n; i++)
		scores[i] = scores[i] < 0 ? 0 : high == 0 ? 100 : 100 * (high + low - scores[i]) / high;
	return true;
}

/* ---- affinity ---- */

static struct val namespace_labels(const struct reference *r, str name)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (str_eq(val_str(r->namespaces[i], metadata, name), name))
			return val_get(r->namespaces[i], metadata, labels);
	return VAL_EMPTY;
}

/* Whether a term of `owner` speaks of `pod`. */
static bool speaks_of(const struct reference *r, struct val term, struct val owner, struct val pod)
{
	struct val names = val_get(term, namespaces), by = val_get(term, namespaceSelector);
	struct selector labels = selector_of(r, val_get(term, labelSelector)), of_namespace = selector_of(r, by);
	str namespace = val_str(pod, metadata, namespace);
	bool in = !val_len(names) && val_is_nil(by) ? str_eq(val_str(owner, metadata, namespace), namespace) :
						      selector_matches(&of_namespace, namespace_labels(r, namespace));

	VAL_EACH(name, names)
		in |= str_eq(val_as_str(*name), namespace);
	return in && selector_matches(&labels, val_get(pod, metadata, labels));
}

static struct val required(struct val pod, bool anti)
{
	struct val affinity = val_get(pod, spec, affinity);
	return val_get(anti ? val_get(affinity, podAntiAffinity) : val_get(affinity, podAffinity), requiredDuringSchedulingIgnoredDuringExecution);
}

static struct val preferred(struct val pod, bool anti)
{
	struct val affinity = val_get(pod, spec, affinity);
	return val_get(anti ? val_get(affinity, podAntiAffinity) : val_get(affinity, podAffinity), preferredDuringSchedulingIgnoredDuringExecution);
}

static bool speak_all(const struct reference *r, struct val terms, struct val owner, struct val pod)
{
	VAL_EACH(t, terms)
		if (!speaks_of(r, *t, owner, pod))
			return false;
	return true;
}

/* Whether the pod is on some node that is in the same domain as this one; SIZE_MAX: in any domain. */
static bool is_near(const struct reference *r, struct val pod, size_t node, str key)
{
	for (size_t i = 0; i < r->n_nodes; i++)
		if (reference_is_on(r, pod, i))
			return node == SIZE_MAX ? val_exists(label_of(r->nodes[i], key)) : same_domain(r, i, node, key);
	return false;
}

static bool wants(const struct reference *r, struct val pod, size_t node)
{
	struct val terms = required(pod, false);
	bool all = true, none = true;

	VAL_EACH(t, terms) {
		bool found = false;
		if (!val_exists(label_of(r->nodes[node], val_str(*t, topologyKey))))
			return false;
		for (size_t i = 0; i < r->n_pods; i++) {
			if (!speak_all(r, terms, pod, r->pods[i]))
				continue;
			found |= is_near(r, r->pods[i], node, val_str(*t, topologyKey));
			none &= !is_near(r, r->pods[i], SIZE_MAX, val_str(*t, topologyKey));
		}
		all &= found;
	}
	return all || (none && speak_all(r, terms, pod, pod));
}

/* Whether an anti-affinity of `owner` speaks of `pod`, and the existing one of the two is near the node. */
static bool avoids(const struct reference *r, struct val owner, struct val pod, struct val existing, size_t node)
{
	VAL_EACH(t, required(owner, true))
		if (speaks_of(r, *t, owner, pod) && is_near(r, existing, node, val_str(*t, topologyKey)))
			return true;
	return false;
}

void reference_affinity_filter(const struct reference *r, struct val pod, size_t node, struct reference_verdict *ret)
{
	const char *plugin = "InterPodAffinity";

	if (!wants(r, pod, node)) {
		*ret = (struct reference_verdict){ plugin, true, STR("node(s) didn't match pod affinity rules") };
		return;
	}
	for (size_t i = 0; i < r->n_pods; i++)
		if (avoids(r, pod, r->pods[i], r->pods[i], node)) {
			*ret = (struct reference_verdict){ plugin, false, STR("node(s) didn't match pod anti-affinity rules") };
			return;
		}
	for (size_t i = 0; i < r->n_pods; i++)
		if (avoids(r, r->pods[i], pod, r->pods[i], node)) {
			*ret = (struct reference_verdict){ plugin, false, STR("node(s) didn't satisfy existing pods anti-affinity rules") };
			return;
		}
}

/* What the preferred terms of `owner` about `pod` are worth when the existing one is near the node. */
static int64_t preference(const struct reference *r, struct val owner, struct val pod, struct val existing, size_t node)
{
	int64_t sum = 0;

	for (int anti = 0; anti < 2; anti++)
		VAL_EACH(p, preferred(owner, anti)) {
			struct val t = val_get(*p, podAffinityTerm);
			if (speaks_of(r, t, owner, pod) && is_near(r, existing, node, val_str(t, topologyKey)))
				sum += anti ? -val_int(*p, weight) : val_int(*p, weight);
		}
	return sum;
}

bool reference_affinity_score(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores)
{
	int64_t hard = r->hard_pod_affinity_weight ? MAX(r->hard_pod_affinity_weight, (int64_t)0) : 1, low = INT64_MAX, high = INT64_MIN;

	if (r->ignore_preferred && !val_len(preferred(pod, false)) && !val_len(preferred(pod, true)))
		return false;
	for (size_t i = 0; i < n; i++) {
		scores[i] = 0;
		for (size_t k = 0; k < r->n_pods; k++) {
			struct val p = r->pods[k];
			scores[i] += preference(r, pod, p, p, nodes[i]) + preference(r, p, pod, p, nodes[i]);
			VAL_EACH(t, required(p, false))
				if (speaks_of(r, *t, p, pod) && is_near(r, p, nodes[i], val_str(*t, topologyKey)))
					scores[i] += hard;
		}
		low = MIN(low, scores[i]);
		high = MAX(high, scores[i]);
	}
	for (size_t i = 0; i < n; i++)
		scores[i] = high > low ? (int64_t)(100 * ((double)(scores[i] - low) / (double)(high - low))) : 0;
	return true;
}
