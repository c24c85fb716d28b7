/* InterPodAffinity: every term of every pod against every other pod. */
#include "codec/atoms.h"
#include "scheduler/reference.h"

/* VAL_NONE: there is no such namespace. */
static struct val namespace_of(const struct reference *r, str name)
{
	for (size_t i = 0; i < r->namespaces.n; i++)
		if (str_eq(val_str(r->namespaces.all[i], metadata, name), name))
			return r->namespaces.all[i];
	return VAL_EMPTY;
}

/* Whether a term of `owner` speaks of `pod`. looks: the owner is the pod that looks for a node. */
static bool speaks_of(const struct reference *r, struct val term, struct val owner, struct val pod, bool looks)
{
	struct val names = val_get(term, namespaces), selector = val_get(term, namespaceSelector);
	str namespace = val_str(pod, metadata, namespace);
	struct val object = namespace_of(r, namespace);
	/* The namespaces that the pod's own terms select are looked up, so that they must exist; others see the labels alone. */
	bool in = (val_exists(object) || !looks || reference_selects_all(selector)) &&
		  reference_selects(selector, val_get(object, metadata, labels));

	if (!val_len(names) && !val_exists(selector))
		in = str_eq(val_str(owner, metadata, namespace), namespace);
	VAL_EACH(name, names)
		in |= str_eq(val_as_str(*name), namespace);
	return in && reference_selects(val_get(term, labelSelector), val_get(pod, metadata, labels));
}

static struct val affinity_of(struct val pod, bool anti)
{
	struct val affinity = val_get(pod, spec, affinity);

	return anti ? val_get(affinity, podAntiAffinity) : val_get(affinity, podAffinity);
}

static struct val required(struct val pod, bool anti) { return val_get(affinity_of(pod, anti), requiredDuringSchedulingIgnoredDuringExecution); }

static struct val preferred(struct val pod, bool anti) { return val_get(affinity_of(pod, anti), preferredDuringSchedulingIgnoredDuringExecution); }

static bool all_speak_of(const struct reference *r, struct val terms, struct val owner, struct val pod)
{
	VAL_EACH(t, terms)
		if (!speaks_of(r, *t, owner, pod, true))
			return false;
	return true;
}

/* Whether both nodes are in the same domain; SIZE_MAX: in any. */
static bool are_near(const struct reference *r, size_t a, size_t b, str key)
{
	struct val x = a == SIZE_MAX ? VAL_EMPTY : reference_label(r->nodes.all[a], key);

	if (!val_exists(x) || b == SIZE_MAX)
		return val_exists(x);
	struct val y = reference_label(r->nodes.all[b], key);
	return val_exists(y) && str_eq(val_as_str(x), val_as_str(y));
}

/* ---- the filter ---- */

/* Where its terms want to be. The first of pods that want to be with each other may be anywhere. */
static bool wants(const struct reference *r, const struct reference_if *w, struct val pod, size_t node)
{
	struct val terms = required(pod, false), other;
	bool all = true, none = true;

	VAL_EACH(t, terms) {
		str key = val_str(*t, topologyKey);
		bool found = false;
		size_t at = 0, on;
		if (!val_exists(reference_label(r->nodes.all[node], key)))
			return false;
		while (reference_next_pod(r, w, &at, &other, &on)) {
			if (!all_speak_of(r, terms, pod, other))
				continue;
			found |= are_near(r, on, node, key);
			none &= !are_near(r, on, SIZE_MAX, key);
		}
		all &= found;
	}
	return all || (none && all_speak_of(r, terms, pod, pod));
}

/* Whether anti-affinity is between the pod and one that is near: by its own terms, or by the other's. SIZE_MAX: near any node. */
static bool clashes(const struct reference *r, const struct reference_if *w, struct val pod, size_t node, bool own)
{
	struct val other;
	size_t at = 0, on;

	while (reference_next_pod(r, w, &at, &other, &on))
		VAL_EACH(t, required(own ? pod : other, true))
			if (are_near(r, on, node, val_str(*t, topologyKey)) &&
			    (own ? speaks_of(r, *t, pod, other, true) : speaks_of(r, *t, other, pod, false)))
				return true;
	return false;
}

void reference_affinity_filter(const struct reference *r, const struct reference_if *w, struct val pod, size_t node,
			       struct reference_verdict *ret)
{
	struct reference_verdict v = { .plugin = "InterPodAffinity" };

	/* Who has no terms, and nobody minds at the beginning, is not asked about: also when pods are put there for trying. */
	if (!val_len(required(pod, false)) && !val_len(required(pod, true)) && !clashes(r, NULL, pod, SIZE_MAX, false))
		return;
	if (!wants(r, w, pod, node)) {
		v.unresolvable = true;
		v.reason = STR("node(s) didn't match pod affinity rules");
	} else if (clashes(r, w, pod, node, true)) {
		v.reason = STR("node(s) didn't match pod anti-affinity rules");
	} else if (clashes(r, w, pod, node, false)) {
		v.reason = STR("node(s) didn't satisfy existing pods anti-affinity rules");
	} else {
		return;
	}
	*ret = v;
}

/* ---- scores ---- */

/* What the preferred terms of `owner` about `pod` are worth on the node, `existing` being on that one. */
static int64_t preference(const struct reference *r, struct val owner, struct val pod, bool looks, size_t existing, size_t node)
{
	int64_t sum = 0;

	for (int anti = 0; anti < 2; anti++)
		VAL_EACH(p, preferred(owner, anti)) {
			struct val t = val_get(*p, podAffinityTerm);
			if (are_near(r, existing, node, val_str(t, topologyKey)) && speaks_of(r, t, owner, pod, looks))
				sum += anti ? -val_int(*p, weight) : val_int(*p, weight);
		}
	return sum;
}

static int64_t raw_score(const struct reference *r, struct val pod, size_t node)
{
	struct val args = reference_args(r, "InterPodAffinity"), other;
	int64_t hard = val_has(args, hardPodAffinityWeight) ? val_int(args, hardPodAffinityWeight) : 1, sum = 0;
	size_t at = 0, on;

	while (reference_next_pod(r, NULL, &at, &other, &on)) {
		sum += preference(r, pod, other, true, on, node) + preference(r, other, pod, false, on, node);
		VAL_EACH(t, required(other, false))
			if (are_near(r, on, node, val_str(*t, topologyKey)) && speaks_of(r, *t, other, pod, false))
				sum += hard;
	}
	return sum;
}

bool reference_affinity_score(const struct reference *r, struct val pod, const size_t *nodes, size_t n, int64_t *scores)
{
	int64_t low = INT64_MAX, high = INT64_MIN;

	if (val_bool(reference_args(r, "InterPodAffinity"), ignorePreferredTermsOfExistingPods) && !val_len(preferred(pod, false)) &&
	    !val_len(preferred(pod, true)))
		return false;
	for (size_t i = 0; i < n; i++) {
		scores[i] = raw_score(r, pod, nodes[i]);
		low = MIN(low, scores[i]);
		high = MAX(high, scores[i]);
	}
	for (size_t i = 0; i < n; i++)
		scores[i] = high > low ? (int64_t)(100 * ((double)(scores[i] - low) / (double)(high - low))) : 0;
	return true;
}
