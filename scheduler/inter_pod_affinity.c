/*
 * Pods that want to be near other pods, or far from them. Three questions for a node: are there pods, in its domain, of all that the new pod wants;
 * are there pods of those it avoids; and does a pod in its domain avoid the new one. The counters answer each with one number: pods that
 * match the new pod's terms, and pods that carry a term that matches the new pod. They follow the table, so add_pod and remove_pod are not needed.
 *
 * matchLabelKeys and mismatchLabelKeys have become part of the selectors when the pod was created (machinery/prepare_pod.c).
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "scheduler/counters.h"
#include "scheduler/plugin.h"
#include "scheduler/score.h"

struct config {
	int64_t hard_weight;
	bool ignore_preferred;        /* of existing pods, for pods that have none themselves */
};

static const struct config default_config = { .hard_weight = 1 };

static const struct config *config_of(const struct cycle *c)
{
	const struct config *k = c->config ? c->config[c->at] : NULL;
	return k ? k : &default_config;
}

/* ---- filter ---- */

struct affinity {
	struct tally **wanted, **avoided, **avoiding; /* of the pod's affinity and anti-affinity; of pods that avoid it */
	size_t n_wanted, n_avoided, n_avoiding;
	bool self;                    /* the pod matches its own affinity */
};

/* Whether the pod itself is among those that its terms speak of: then it is found by them, like any other. */
static bool matches_itself(const struct pod_terms *t, struct carrier *const *all, size_t n)
{
	for (uint32_t i = 0; i < t->n; i++) {
		bool found = t->terms[i].kind != TERM_AFFINITY;
		for (size_t m = 0; m < n && !found; m++)
			found = all[m] == t->terms[i].carrier;
		if (!found)
			return false;
	}
	return true;
}

static void read_own(struct cycle *c, const struct pod_terms *t, struct affinity *s)
{
	struct counters *k = c->nodes->counters;

	s->wanted = ARENA_ARRAY(c->arena, struct tally *, t->n_affinity + (size_t)1);
	s->avoided = ARENA_ARRAY(c->arena, struct tally *, t->n_anti + (size_t)1);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct term *x = &t->terms[i];
		if (x->kind == TERM_AFFINITY)
			s->wanted[s->n_wanted++] = counters_tally(k, t->all, term_topo(x), NULL);
		else if (x->kind == TERM_ANTI)
			s->avoided[s->n_avoided++] = counters_tally(k, x->pick, term_topo(x), NULL);
	}
}

static enum verdict affinity_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	struct counters *k = c->nodes->counters;
	struct affinity *s = ARENA_NEW(c->arena, struct affinity);
	bool avoided = false;
	size_t n;

	const struct pod_terms *t = counters_terms(k, c->placed);
	if (t->error) {
		c->reason = arena_printf(c->arena, "parsing pod: %s", t->error);
		return UNRESOLVABLE;
	}
	struct carrier **all = counters_carriers(k, c->arena, c->placed, &n);
	s->avoiding = ARENA_ARRAY(c->arena, struct tally *, n + 1);
	for (size_t i = 0; i < n; i++) {
		struct tally *x = carrier_tally(all[i], CARRY_ANTI);
		s->avoiding[s->n_avoiding++] = x;
		avoided |= x->total != 0;
	}
	if (t->n_affinity + t->n_anti)
		read_own(c, t, s);
	s->self = t->n_affinity && matches_itself(t, all, n);
	*ret_state = s;
	*ret_skip = !avoided && t->n_affinity + t->n_anti == 0;
	return FIT;
}

/* Pods of all terms in the node's domains; or there are none anywhere and the pod is the first of its kind. */
static bool is_near(const struct affinity *s, uint32_t node)
{
	bool near = true, any = false;

	for (size_t i = 0; i < s->n_wanted; i++) {
		uint32_t domain = s->wanted[i]->topo->of[node];
		if (!domain)
			return false;
		near &= tally_at(s->wanted[i], domain) > 0;
		any |= s->wanted[i]->total > 0;
	}
	return near || (!any && s->self);
}

static bool is_far(struct tally *const *all, size_t n, uint32_t node)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t domain = all[i]->topo->of[node];
		if (domain && tally_at(all[i], domain) > 0)
			return false;
	}
	return true;
}

static enum verdict affinity_filter(struct cycle *c, void *state, uint32_t node)
{
	const struct affinity *s = state;

	if (!is_near(s, node)) {
		c->reason = STR("node(s) didn't match pod affinity rules");
		return UNRESOLVABLE;
	}
	if (!is_far(s->avoided, s->n_avoided, node)) {
		c->reason = STR("node(s) didn't match pod anti-affinity rules");
		return UNSCHEDULABLE;
	}
	if (!is_far(s->avoiding, s->n_avoiding, node)) {
		c->reason = STR("node(s) didn't satisfy existing pods anti-affinity rules");
		return UNSCHEDULABLE;
	}
	return FIT;
}

/* ---- score ---- */

struct attraction {             /* numbers of pods by domain, and what each is worth */
	size_t n;
	struct { const struct tally *tally; int64_t weight; } *all;
};

static void attract(struct attraction *s, const struct tally *t, int64_t weight)
{
	if (weight == 0 || (t->total == 0 && t->n_used == 0))
		return;
	s->all[s->n].tally = t;
	s->all[s->n++].weight = weight;
}

static bool affinity_pre_score(struct cycle *c, void **ret_state, const uint32_t *nodes, size_t n)
{
	struct counters *k = c->nodes->counters;
	const struct config *config = config_of(c);
	struct attraction *s = ARENA_NEW(c->arena, struct attraction);
	size_t n_all;

	(void)nodes;
	(void)n;
	const struct pod_terms *t = counters_terms(k, c->placed);
	if (config->ignore_preferred && !t->n_preferred)
		return false;
	struct carrier **all = counters_carriers(k, c->arena, c->placed, &n_all);
	s->all = arena_array_of(c->arena, t->n_preferred + n_all * 2 + 1, sizeof(*s->all), _Alignof(max_align_t));
	for (uint32_t i = 0; i < t->n; i++) {
		const struct term *x = &t->terms[i];
		if (x->kind == TERM_PREFERRED || x->kind == TERM_PREFERRED_ANTI)
			attract(s, counters_tally(k, x->pick, term_topo(x), NULL), x->kind == TERM_PREFERRED ? x->weight : -(int64_t)x->weight);
	}
	for (size_t i = 0; i < n_all; i++) {
		attract(s, carrier_tally(all[i], CARRY_AFFINITY), config->hard_weight);
		attract(s, carrier_tally(all[i], CARRY_WEIGHT), 1);
	}
	*ret_state = s;
	return s->n > 0;
}

static void affinity_score(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores)
{
	const struct attraction *s = state;
	int64_t low = INT64_MAX, high = INT64_MIN;

	(void)c;
	for (size_t i = 0; i < n; i++)
		scores[i] = 0;
	for (size_t k = 0; k < s->n; k++) {
		const struct tally *t = s->all[k].tally;
		for (size_t i = 0; i < n; i++) {
			uint32_t domain = t->topo->of[nodes[i]];
			if (domain)
				scores[i] += s->all[k].weight * tally_at(t, domain);
		}
	}
	for (size_t i = 0; i < n; i++) {
		low = MIN(low, scores[i]);
		high = MAX(high, scores[i]);
	}
	for (size_t i = 0; i < n; i++)
		scores[i] = high > low ? (int64_t)(SCORE_MAX * ((double)(scores[i] - low) / (double)(high - low))) : 0;
}

/* ---- what may help a pod that was refused ---- */

static struct val required_terms(struct val pod, bool anti)
{
	struct val affinity = val_get(pod, spec, affinity);
	struct val side = anti ? val_get(affinity, podAntiAffinity) : val_get(affinity, podAffinity);
	return val_get(side, requiredDuringSchedulingIgnoredDuringExecution);
}

/* Namespaces by name; one that is selected by labels may be meant, which is enough to try again. */
static bool term_has_namespace(struct val term, struct val pod, str namespace)
{
	struct val names = val_get(term, namespaces);

	if (!val_is_nil(val_get(term, namespaceSelector)))
		return true;
	if (!val_len(names))
		return str_eq(val_str(pod, metadata, namespace), namespace);
	VAL_EACH(name, names)
		if (str_eq(val_as_str(*name), namespace))
			return true;
	return false;
}

/* Whether the other pod matches all terms of the pod. */
static bool matches_all(struct arena *a, struct val terms, struct val pod, struct val other)
{
	struct selector s;

	VAL_EACH(t, terms)
		if (!term_has_namespace(*t, pod, val_str(other, metadata, namespace)) ||
		    selector_of_object(a, val_get(*t, labelSelector), &s, NULL) < 0 || !selector_matches(&s, val_get(other, metadata, labels)))
			return false;
	return val_len(terms) > 0;
}

static bool is_assigned(struct val pod) { return val_str(pod, spec, nodeName).n || val_str(pod, status, nominatedNodeName).n; }

static bool pod_hint(struct arena *a, struct val pod, struct val old, struct val new)
{
	struct val near = required_terms(pod, false), far = required_terms(pod, true);

	if (val_exists(old) && val_exists(new)) {
		if (str_eq(val_str(new, metadata, uid), val_str(pod, metadata, uid)))
			return true;
		if (!is_assigned(old) || !is_assigned(new))
			return false;
		return (!matches_all(a, near, pod, old) && matches_all(a, near, pod, new)) ||
		       (matches_all(a, far, pod, old) && !matches_all(a, far, pod, new));
	}
	if (val_exists(new))
		return is_assigned(new) && matches_all(a, near, pod, new);
	return is_assigned(old) && (matches_all(a, far, pod, old) || matches_all(a, required_terms(old, true), old, pod));
}

static bool node_hint(struct val pod, struct val old, struct val new)
{
	for (int anti = 0; anti < 2; anti++)
		VAL_EACH(t, required_terms(pod, anti)) {
			str key = val_str(*t, topologyKey);
			struct val before = val_find(val_get(old, metadata, labels), key), after = val_find(val_get(new, metadata, labels), key);
			if (!val_exists(old)) {
				if (anti || val_exists(after))
					return true;
				continue;
			}
			if (anti ? val_exists(before) && !val_exists(after) : !val_exists(before) && val_exists(after))
				return true;
			if (val_exists(before) && val_exists(after) && !val_equal(before, after))
				return true;
		}
	return false;
}

static bool affinity_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	if (event & (EV_POD_ADD | EV_POD_DELETE | EV_POD_LABEL))
		return pod_hint(c->arena, pod, old, new);
	return node_hint(pod, old, new);
}

/* ---- arguments ---- */

static int affinity_configure(struct val args, void **ret_config, struct err *err)
{
	int64_t weight = val_has(args, hardPodAffinityWeight) ? val_int(args, hardPodAffinityWeight) : default_config.hard_weight;

	if (weight < 0 || weight > 100)
		return err_set(err, ERR_INVALID, "hardPodAffinityWeight: Invalid value: %lld: not in valid range [0, 100]", (long long)weight);
	struct config *config = mem_zalloc(sizeof(*config));
	*config = (struct config){ weight, val_bool(args, ignorePreferredTermsOfExistingPods) };
	*ret_config = config;
	return 0;
}

const struct plugin plugin_inter_pod_affinity = {
	.name = "InterPodAffinity",
	.weight = 2,
	.events = EV_POD_ADD | EV_POD_LABEL | EV_POD_DELETE | EV_NODE_ADD | EV_NODE_LABEL,
	.hint = affinity_hint,
	.pre_filter = affinity_pre_filter,
	.filter = affinity_filter,
	.pre_score = affinity_pre_score,
	.score = affinity_score,
	.configure = affinity_configure,
};
