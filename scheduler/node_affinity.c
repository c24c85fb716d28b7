/*
 * nodeSelector, required and preferred node affinity, and what the profile adds to them (addedAffinity). What pods say is compiled over words; what
 * the profile says is the same for all pods and rare, and is matched against the objects.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "scheduler/label_match.h"
#include "scheduler/plugin.h"
#include "scheduler/score.h"

static const str required_name = STR_INIT("requiredDuringSchedulingIgnoredDuringExecution");
static const str preferred_name = STR_INIT("preferredDuringSchedulingIgnoredDuringExecution");

/* addedAffinity. */
struct added {
	struct arena arena;
	bool has_required;
	struct node_selector required;
	size_t n;
	const struct node_term *preferred;
	const int64_t *weights;
};

static const struct added *added_of(const struct cycle *c) { return c->config ? c->config[c->at] : NULL; }

static bool added_refuses(const struct added *added, struct val node)
{
	return added && added->has_required && node_selector_matches(&added->required, node, NULL) != 1;
}

/* ---- filter ---- */

struct filter_state {
	const struct added *added;
	struct node_match match;
};

/* The names that a term allows: those that all of its requirements have. False: it does not name nodes. */
static bool term_names(struct val term, struct arena *a, str **ret, size_t *ret_n)
{
	bool named = false;

	*ret_n = 0;
	VAL_EACH(field, val_get(term, matchFields)) {
		struct val values = val_get(*field, values);
		size_t n = 0;
		if (!str_eq(val_str(*field, key), STR("metadata.name")) || !str_eq(val_str(*field, operator), STR("In")))
			continue;
		if (!named) {
			*ret = ARENA_ARRAY(a, str, val_len(values));
			VAL_EACH(v, values)
				(*ret)[(*ret_n)++] = val_as_str(*v);
			named = true;
			continue;
		}
		for (size_t i = 0; i < *ret_n; i++)
			VAL_EACH(v, values)
				if (str_eq((*ret)[i], val_as_str(*v))) {
					(*ret)[n++] = (*ret)[i];
					break;
				}
		*ret_n = n;
	}
	return named;
}

static int index_cmp(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Terms that all name nodes leave only those. UNRESOLVABLE: none could ever match. */
static enum verdict narrow(struct cycle *c, struct val terms)
{
	uint32_t *only = ARENA_ARRAY(c->arena, uint32_t, 1);
	size_t n = 0, cap = 1, named = 0, kept = 0;

	if (!val_len(terms))
		return FIT;
	VAL_EACH(term, terms) {
		str *names = NULL;
		size_t n_names;
		if (!term_names(*term, c->arena, &names, &n_names))
			return FIT;
		named += n_names;
		if (n + n_names > cap) {
			uint32_t *more = ARENA_ARRAY(c->arena, uint32_t, cap = (n + n_names) * 2);
			memcpy(more, only, n * sizeof(*only));
			only = more;
		}
		for (size_t i = 0; i < n_names; i++)
			if ((only[n] = nodes_find(c->nodes, names[i])) != UINT32_MAX)
				n++;
	}
	if (!named) {
		c->reason = STR("pod affinity terms conflict");
		return UNRESOLVABLE;
	}
	if (n)
		qsort(only, n, sizeof(*only), index_cmp);
	for (size_t i = 0; i < n; i++)
		if (!kept || only[kept - 1] != only[i])
			only[kept++] = only[i];
	c->only = only;
	c->n_only = kept;
	return FIT;
}

static enum verdict affinity_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	struct val spec = val_get(c->pod, spec);
	struct val required = val_get(spec, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution);
	const struct added *added = added_of(c);
	struct filter_state *s;

	*ret_skip = val_is_nil(required) && !(added && added->has_required) && !val_has(spec, nodeSelector);
	if (*ret_skip)
		return FIT;
	*ret_state = s = ARENA_NEW(c->arena, struct filter_state);
	s->added = added;
	node_match_compile(c->arena, c->nodes, spec, &s->match);
	return narrow(c, val_get(required, nodeSelectorTerms));
}

static enum verdict affinity_filter(struct cycle *c, void *state, uint32_t node)
{
	const struct filter_state *s = state;

	if (UNLIKELY(s->added) && added_refuses(s->added, c->nodes->object[node]->val)) {
		c->reason = STR("node(s) didn't match scheduler-enforced node affinity");
		return UNRESOLVABLE;
	}
	if (node_match(c->nodes, &s->match, node))
		return FIT;
	c->reason = STR("node(s) didn't match Pod's node affinity/selector");
	return UNRESOLVABLE;
}

/* ---- score ---- */

struct score_state {
	const struct added *added;
	size_t n;
	struct preferred {
		struct node_term_match term;
		int64_t weight;
	} *all;
};

static bool affinity_pre_score(struct cycle *c, void **ret_state, const uint32_t *nodes, size_t n)
{
	struct val terms = val_get(c->pod, spec, affinity, nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution);
	const struct added *added = added_of(c);
	struct score_state *s;

	(void)nodes;
	(void)n;
	if (val_is_nil(terms) && !(added && added->n))
		return false;
	*ret_state = s = ARENA_NEW(c->arena, struct score_state);
	s->added = added && added->n ? added : NULL;
	s->all = ARENA_ARRAY(c->arena, struct preferred, val_len(terms));
	VAL_EACH(term, terms) {
		struct preferred *p = &s->all[s->n];
		p->weight = val_int(*term, weight);
		node_term_match_compile(c->arena, c->nodes, val_get(*term, preference), &p->term);
		s->n += p->weight && !p->term.never;
	}
	return true;
}

static void affinity_score(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores)
{
	const struct score_state *s = state;

	for (size_t i = 0; i < n; i++) {
		scores[i] = 0;
		for (size_t k = 0; k < s->n; k++)
			if (node_term_match(c->nodes, &s->all[k].term, nodes[i]))
				scores[i] += s->all[k].weight;
		for (size_t k = 0; s->added && k < s->added->n; k++)
			if (node_term_matches(&s->added->preferred[k], c->nodes->object[nodes[i]]->val))
				scores[i] += s->added->weights[k];
	}
	scores_normalize(scores, n, false);
}

/* ---- queue ---- */

static bool affinity_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_affinity affinity;
	int now;

	(void)event;
	if (added_refuses(added_of(c), new))
		return false;
	node_affinity_compile(&a, val_get(pod, spec), &affinity);
	now = node_affinity_matches(&affinity, new, NULL);
	if (now != 1 || !val_exists(old))
		return now != 0;
	return node_affinity_matches(&affinity, old, NULL) != 1;
}

/* ---- arguments ---- */

static void added_free(void *config)
{
	struct added *added = config;

	if (!added)
		return;
	arena_done(&added->arena);
	free(added);
}

/* NodeAffinityArgs. */
static int affinity_configure(struct val args, void **ret_config, struct err *err)
{
	struct val affinity = val_get(args, addedAffinity), terms;
	const struct field_path *at = FIELD(NULL, "addedAffinity");
	struct added *added;
	struct node_term *all;
	int64_t *weights;
	size_t n = 0, i = 0;
	int r;

	*ret_config = NULL;
	if (val_is_nil(affinity))
		return 0;
	added = mem_zalloc(sizeof(*added));
	/* Texts of a selector are in its arena, its terms in the object's. */
	affinity = val_copy(&added->arena, affinity);
	terms = val_get(affinity, preferredDuringSchedulingIgnoredDuringExecution);
	added->has_required = val_has(affinity, requiredDuringSchedulingIgnoredDuringExecution);
	node_selector_compile(&added->arena, val_get(affinity, requiredDuringSchedulingIgnoredDuringExecution),
			      FIELD_STR(at, required_name), &added->required);
	all = ARENA_ARRAY(&added->arena, struct node_term, added->required.n + val_len(terms));
	weights = ARENA_ARRAY(&added->arena, int64_t, val_len(terms));
	added->preferred = all + added->required.n;
	added->weights = weights;
	if (added->required.n)
		memcpy(all, added->required.terms, added->required.n * sizeof(*all));
	VAL_EACH(term, terms) {
		const struct field_path *item = FIELD_INDEX(FIELD_STR(at, preferred_name), i++);
		weights[n] = val_int(*term, weight);
		node_term_compile(&added->arena, val_get(*term, preference), item, &all[added->required.n + n]);
		n += weights[n] && !all[added->required.n + n].empty;
	}
	added->n = n;
	if ((r = node_selector_check(&(struct node_selector){ added->required.n + n, all }, err)) < 0) {
		added_free(added);
		return r;
	}
	*ret_config = added;
	return 0;
}

const struct plugin plugin_node_affinity = {
	.name = "NodeAffinity",
	.weight = 2,
	.events = EV_NODE_ADD | EV_NODE_LABEL,
	.hint = affinity_hint,
	.pre_filter = affinity_pre_filter,
	.filter = affinity_filter,
	.by_node_alone = true,
	.pre_score = affinity_pre_score,
	.score = affinity_score,
	.configure = affinity_configure,
	.config_free = added_free,
};
