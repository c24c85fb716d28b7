/* PodTopologySpread: how many pods like this one are in each domain, counted anew for every question. */
#include <math.h>

#include "codec/atoms.h"
#include "scheduler/reference.h"

struct rule {
	str key;
	int64_t max_skew, min_domains;
	bool affinity, taints;        /* which nodes count */
	struct val selector;          /* a LabelSelector */
};

struct rules {
	size_t n;
	struct rule *all;
	bool all_keys;                /* nodes must have the keys of all rules */
};

static struct val in_list(const struct reference *r, struct val key, struct val value)
{
	return OBJECT(r->arena, F(key, key), F(operator, VAL_LIT("In")), F(values, LIST(r->arena, value)));
}

static struct val with_requirement(const struct reference *r, struct val selector, struct val requirement)
{
	return val_with(r->arena, selector, val_list_append(r->arena, val_get(selector, matchExpressions), requirement), matchExpressions);
}

static bool is_owner(struct val ref, struct val owner, str namespace)
{
	return val_bool(ref, controller) && str_eq(val_str(ref, kind), val_str(owner, kind)) &&
	       str_eq(val_str(ref, apiVersion), val_str(owner, apiVersion)) && str_eq(val_str(ref, name), val_str(owner, metadata, name)) &&
	       str_eq(val_str(owner, metadata, namespace), namespace);
}

static struct val merged(const struct reference *r, struct val labels, struct val more)
{
	VAL_EACH_MEMBER(m, more)
		labels = val_put(r->arena, labels, m->key, m->val);
	return labels;
}

/* Of a pod that says nothing: its services and its controller select the pods that are like it. */
static struct val default_selector(const struct reference *r, struct val pod)
{
	struct val labels = VAL_EMPTY_OBJECT, owner = VAL_EMPTY, selector = VAL_EMPTY_OBJECT;
	str namespace = val_str(pod, metadata, namespace);

	for (size_t i = 0; i < r->services.n; i++) {
		struct val s = r->services.all[i], wants = val_get(s, spec, selector);
		if (str_eq(val_str(s, metadata, namespace), namespace) && val_exists(wants) &&
		    reference_selects(OBJECT(r->arena, F(matchLabels, wants)), val_get(pod, metadata, labels)))
			labels = merged(r, labels, wants);
	}
	VAL_EACH(ref, val_get(pod, metadata, ownerReferences))
		for (size_t i = 0; i < r->owners.n; i++)
			if (is_owner(*ref, r->owners.all[i], namespace))
				owner = r->owners.all[i];
	if (str_eq(val_str(owner, kind), STR("ReplicationController")))
		return OBJECT(r->arena, F(matchLabels, merged(r, labels, val_get(owner, spec, selector))));
	if (val_exists(owner))
		selector = val_get(owner, spec, selector);
	VAL_EACH_MEMBER(m, labels)
		selector = with_requirement(r, selector, in_list(r, VAL_STR(atom_str(m->key)), m->val));
	return selector;
}

static struct val own_selector(const struct reference *r, struct val constraint, struct val pod)
{
	struct val selector = val_get(constraint, labelSelector);

	if (!val_exists(selector))
		return selector;
	VAL_EACH(key, val_get(constraint, matchLabelKeys)) {
		struct val label = reference_label(pod, val_as_str(*key));
		if (val_exists(label))
			selector = with_requirement(r, selector, in_list(r, *key, label));
	}
	return selector;
}

static struct val system_constraints(const struct reference *r)
{
	struct val anyway = VAL_LIT("ScheduleAnyway");

	return LIST(r->arena,
		    OBJECT(r->arena, F(maxSkew, val_of_int(3)), F(topologyKey, VAL_LIT("kubernetes.io/hostname")), F(whenUnsatisfiable, anyway)),
		    OBJECT(r->arena, F(maxSkew, val_of_int(5)), F(topologyKey, VAL_LIT("topology.kubernetes.io/zone")),
			   F(whenUnsatisfiable, anyway)));
}

static struct rules rules_of(const struct reference *r, struct val pod, str action)
{
	struct val own = val_get(pod, spec, topologySpreadConstraints), args = reference_args(r, "PodTopologySpread");
	bool system = !str_eq(val_str(args, defaultingType), STR("List"));
	struct val list = val_len(own) ? own : system ? system_constraints(r) : val_get(args, defaultConstraints);
	struct rules all = { .all_keys = val_len(own) || !system, .all = ARENA_ARRAY(r->arena, struct rule, val_len(list) + 1) };
	struct val by_default = val_len(own) ? VAL_EMPTY : default_selector(r, pod);

	if (!val_len(own) && reference_selects_all(by_default))
		return all;
	VAL_EACH(v, list)
		if (str_eq(val_str(*v, whenUnsatisfiable), action))
			all.all[all.n++] = (struct rule){
				.key = val_str(*v, topologyKey), .max_skew = val_int(*v, maxSkew),
				.min_domains = val_has(*v, minDomains) ? val_int(*v, minDomains) : 1,
				.affinity = !str_eq(val_str(*v, nodeAffinityPolicy), STR("Ignore")),
				.taints = str_eq(val_str(*v, nodeTaintsPolicy), STR("Honor")),
				.selector = val_len(own) ? own_selector(r, *v, pod) : by_default };
	return all;
}

static bool has_keys(const struct rules *all, struct val node)
{
	for (size_t i = 0; i < all->n; i++)
		if (!val_exists(reference_label(node, all->all[i].key)))
			return false;
	return true;
}

/* Whether pods on this node are counted. */
static bool counts(const struct reference *r, const struct rules *all, const struct rule *x, struct val pod, size_t node)
{
	struct val v = r->nodes.all[node];

	return (!all->all_keys || has_keys(all, v)) && (!x->affinity || reference_node_affinity(pod, v)) && (!x->taints || reference_taints(pod, v));
}

static bool is_like(const struct rule *x, struct val pod, struct val other)
{
	return str_eq(val_str(other, metadata, namespace), val_str(pod, metadata, namespace)) &&
	       reference_selects(x->selector, val_get(other, metadata, labels));
}

/*
 * Pods on a node. As Kubernetes counts: pods that are being deleted do not, nor does any for a selector that selects everything; but those that
 * are taken away or put there for trying count always, so that taking one away may leave less than none.
 */
static int64_t on_node(const struct reference *r, const struct reference_if *w, const struct rule *x, struct val pod, size_t node)
{
	int64_t n = 0;

	for (size_t i = 0; i < r->pods.n; i++) {
		struct val p = r->pods.all[i];
		if (!str_eq(val_str(p, spec, nodeName), val_str(r->nodes.all[node], metadata, name)) || !is_like(x, pod, p))
			continue;
		n += !val_has(p, metadata, deletionTimestamp) && !reference_selects_all(x->selector);
		n -= w && w->away && w->away[i];
	}
	for (size_t i = 0; w && w->to == node && i < w->come.n; i++)
		n += is_like(x, pod, w->come.all[i]);
	return n;
}

/* The text that domains are told apart by: nodes without the label have an empty one. */
static str domain_of(const struct reference *r, size_t node, str key) { return val_as_str(reference_label(r->nodes.all[node], key)); }

static int64_t in_domain(const struct reference *r, const struct reference_if *w, const struct rules *all, const struct rule *x, struct val pod,
			 str domain)
{
	int64_t n = 0;

	for (size_t i = 0; i < r->nodes.n; i++)
		if (str_eq(domain_of(r, i, x->key), domain) && counts(r, all, x, pod, i))
			n += on_node(r, w, x, pod, i);
	return n;
}

/* Over all domains that have a node that counts. */
static int64_t least(const struct reference *r, const struct reference_if *w, const struct rules *all, const struct rule *x, struct val pod)
{
	int64_t low = INT32_MAX, n = 0;

	for (size_t i = 0; i < r->nodes.n; i++) {
		bool first = counts(r, all, x, pod, i);
		for (size_t k = 0; k < i && first; k++)
			first = !counts(r, all, x, pod, k) || !str_eq(domain_of(r, k, x->key), domain_of(r, i, x->key));
		if (!first)
			continue;
		n++;
		low = MIN(low, in_domain(r, w, all, x, pod, domain_of(r, i, x->key)));
	}
	return n < x->min_domains ? 0 : low;
}

void reference_spread_filter(const struct reference *r, const struct reference_if *w, struct val pod, size_t node, struct reference_verdict *ret)
{
	struct rules all = rules_of(r, pod, STR("DoNotSchedule"));

	for (size_t i = 0; i < all.n; i++) {
		const struct rule *x = &all.all[i];
		if (!val_exists(reference_label(r->nodes.all[node], x->key))) {
			*ret = (struct reference_verdict){ "PodTopologySpread", true,
							   STR("node(s) didn't match pod topology spread constraints (missing required label)") };
			return;
		}
		int64_t self = reference_selects(x->selector, val_get(pod, metadata, labels));
		if (in_domain(r, w, &all, x, pod, domain_of(r, node, x->key)) + self - least(r, w, &all, x, pod) > x->max_skew) {
			*ret = (struct reference_verdict){ "PodTopologySpread", false, STR("node(s) didn't match pod topology spread constraints") };
			return;
		}
	}
}

/* ---- scores ---- */

static bool is_host(const struct rule *x) { return str_eq(x->key, STR("kubernetes.io/hostname")); }

/* How many domains the nodes that fit are in; each host is one. */
static size_t domains(const struct reference *r, const struct rules *all, const struct rule *x, const size_t *nodes, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		bool first = !all->all_keys || has_keys(all, r->nodes.all[nodes[i]]);
		for (size_t k = 0; k < i && first && !is_host(x); k++)
			first = (all->all_keys && !has_keys(all, r->nodes.all[nodes[k]])) ||
				!str_eq(domain_of(r, nodes[k], x->key), domain_of(r, nodes[i], x->key));
		found += first;
	}
	return found;
}

static int64_t raw_score(const struct reference *r, const struct rules *all, struct val pod, const size_t *nodes, size_t n, size_t node)
{
	double sum = 0;

	for (size_t k = 0; k < all->n; k++) {
		const struct rule *x = &all->all[k];
		if (!val_exists(reference_label(r->nodes.all[node], x->key)))
			continue;
		int64_t count = is_host(x) ? on_node(r, NULL, x, pod, node) : in_domain(r, NULL, all, x, pod, domain_of(r, node, x->key));
		sum += (double)count * log((double)domains(r, all, x, nodes, n) + 2) + (double)(x->max_skew - 1);
	}
	return (int64_t)round(sum);
}

bool reference_spread_score(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores)
{
	struct rules all = rules_of(r, pod, STR("ScheduleAnyway"));
	int64_t low = INT64_MAX, high = 0;

	if (!all.n)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool ignored = all.all_keys && !has_keys(&all, r->nodes.all[nodes[i]]);
		scores[i] = ignored ? -1 : raw_score(r, &all, pod, nodes, n, nodes[i]);
		if (ignored)
			continue;
		low = MIN(low, scores[i]);
		high = MAX(high, scores[i]);
	}
	for (size_t i = 0; i < n; i++)
		scores[i] = scores[i] < 0 ? 0 : high == 0 ? 100 : 100 * (high + low - scores[i]) / high;
	return true;
}
