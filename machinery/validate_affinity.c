/* Affinity of pods to nodes and to each other, and how they spread. */
#include "codec/atoms.h"
#include "machinery/validate_pod.h"

/* ---- nodes ---- */

static void check_node_field(struct field_errors *e, const struct field_path *at, struct val r)
{
	str operator = val_str(r, operator), key = val_str(r, key);
	size_t i = 0;

	if (!str_eq(operator, STR("In")) && !str_eq(operator, STR("NotIn")))
		field_invalid(e, FIELD(at, "operator"), VAL_STR(operator), "not a valid selector operator");
	else if (val_len(val_get(r, values)) != 1)
		field_required(e, FIELD(at, "values"),
			       "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
	if (!str_eq(key, STR("metadata.name")))
		field_invalid(e, FIELD(at, "key"), VAL_STR(key), "not a valid field selector key");
	else
		VAL_EACH(v, val_get(r, values))
			check_name(e, FIELD_INDEX(FIELD(at, "values"), i++), val_as_str(*v), name_check_dns1123_subdomain);
}

void check_node_selector_term(struct field_errors *e, const struct field_path *at, struct val term, bool allow_bad_values)
{
	size_t i = 0;
	VAL_EACH(r, val_get(term, matchExpressions))
		check_requirement(e, FIELD_INDEX(FIELD(at, "matchExpressions"), i++), *r, true, allow_bad_values);
	i = 0;
	VAL_EACH(r, val_get(term, matchFields))
		check_node_field(e, FIELD_INDEX(FIELD(at, "matchFields"), i++), *r);
}

void check_node_selector(struct field_errors *e, const struct field_path *at, struct val selector, bool allow_bad_values)
{
	struct val terms = val_get(selector, nodeSelectorTerms);
	size_t i = 0;

	if (val_len(terms) == 0)
		field_required(e, FIELD(at, "nodeSelectorTerms"), "must have at least one node selector term");
	VAL_EACH(term, terms)
		check_node_selector_term(e, FIELD_INDEX(FIELD(at, "nodeSelectorTerms"), i++), *term, allow_bad_values);
}

static void check_weight(struct field_errors *e, const struct field_path *at, struct val term)
{
	int64_t weight = val_int(term, weight);
	if (weight < 1 || weight > 100)
		field_invalid(e, FIELD(at, "weight"), val_of_int(weight), "must be in the range 1-100");
}

static void check_node_affinity(struct pod_check *c, const struct field_path *at, struct val affinity)
{
	size_t i = 0;

	if (val_has(affinity, requiredDuringSchedulingIgnoredDuringExecution))
		check_node_selector(c->e, FIELD(at, "requiredDuringSchedulingIgnoredDuringExecution"),
				    val_get(affinity, requiredDuringSchedulingIgnoredDuringExecution),
				    c->bad_node_affinity_values);
	VAL_EACH(term, val_get(affinity, preferredDuringSchedulingIgnoredDuringExecution)) {
		const struct field_path *item =
			FIELD_INDEX(FIELD(at, "preferredDuringSchedulingIgnoredDuringExecution"), i++);
		check_weight(c->e, item, *term);
		check_node_selector_term(c->e, FIELD(item, "preference"), val_get(*term, preference), true);
	}
}

/* ---- pods ---- */

static void check_keys(struct field_errors *e, const struct field_path *at, struct val keys, bool selected)
{
	size_t i = 0;
	if (val_len(keys) && !selected)
		field_forbidden(e, at, "must not be specified when labelSelector is not set");
	else
		VAL_EACH(key, keys)
			check_label_key(e, FIELD_INDEX(at, i++), val_as_str(*key));
}

/*
 * By the time of this check the selector has got the requirements that the keys stand for: a second one for a key is
 * the user's.
 */
static void check_keys_not_selected(struct field_errors *e, const struct field_path *at, struct val keys,
				    struct val selector)
{
	CLEANUP(map_done) struct map selected = MAP_INIT;
	CLEANUP(map_done) struct map index = MAP_INIT;
	uintptr_t i = 0;

	VAL_EACH(key, keys)
		map_put(&index, val_as_str(*key), (void *)++i);
	VAL_EACH_MEMBER(m, val_get(selector, matchLabels))
		set_add(&selected, atom_str(m->key));
	VAL_EACH(r, val_get(selector, matchExpressions)) {
		str key = val_str(*r, key);
		uintptr_t found = (uintptr_t)map_get(&index, key);
		if (!set_add(&selected, key) && found)
			field_invalid(e, FIELD_INDEX(at, found - 1), VAL_STR(key),
				      "exists in both matchLabelKeys and labelSelector");
	}
}

void check_match_label_keys(struct field_errors *e, const struct field_path *at, struct val term)
{
	CLEANUP(map_done) struct map mismatched = MAP_INIT;
	struct val keys = val_get(term, matchLabelKeys), others = val_get(term, mismatchLabelKeys),
		selector = val_get(term, labelSelector);
	size_t i = 0;

	check_keys(e, FIELD(at, "matchLabelKeys"), keys, val_exists(selector));
	check_keys(e, FIELD(at, "mismatchLabelKeys"), others, val_exists(selector));
	check_keys_not_selected(e, at, keys, selector);
	VAL_EACH(key, others)
		set_add(&mismatched, val_as_str(*key));
	VAL_EACH(key, keys) {
		const struct field_path *item = FIELD_INDEX(FIELD(at, "matchLabelKeys"), i++);
		if (set_has(&mismatched, val_as_str(*key)))
			field_invalid(e, item, *key, "exists in both matchLabelKeys and mismatchLabelKeys");
	}
}

static void check_affinity_term(struct pod_check *c, const struct field_path *at, struct val term)
{
	check_label_selector(c->e, FIELD(at, "labelSelector"), val_get(term, labelSelector), c->bad_selector_values);
	check_label_selector(c->e, FIELD(at, "namespaceSelector"), val_get(term, namespaceSelector),
			     c->bad_selector_values);
	VAL_EACH(name, val_get(term, namespaces))
		check_name(c->e, FIELD(at, "namespace"), val_as_str(*name), name_check_dns1123_label);
	check_match_label_keys(c->e, at, term);
	if (val_str(term, topologyKey).n == 0)
		field_required(c->e, FIELD(at, "topologyKey"), "can not be empty");
	check_label_key(c->e, FIELD(at, "topologyKey"), val_str(term, topologyKey));
}

/* podAffinity and podAntiAffinity. */
static void check_pod_affinity(struct pod_check *c, const struct field_path *at, struct val affinity)
{
	size_t i = 0;
	VAL_EACH(term, val_get(affinity, requiredDuringSchedulingIgnoredDuringExecution))
		check_affinity_term(c, FIELD_INDEX(FIELD(at, "requiredDuringSchedulingIgnoredDuringExecution"), i++),
				    *term);
	i = 0;
	VAL_EACH(term, val_get(affinity, preferredDuringSchedulingIgnoredDuringExecution)) {
		const struct field_path *item =
			FIELD_INDEX(FIELD(at, "preferredDuringSchedulingIgnoredDuringExecution"), i++);
		check_weight(c->e, item, *term);
		check_affinity_term(c, FIELD(item, "podAffinityTerm"), val_get(*term, podAffinityTerm));
	}
}

void check_affinity(struct pod_check *c, const struct field_path *at, struct val affinity)
{
	check_node_affinity(c, FIELD(at, "nodeAffinity"), val_get(affinity, nodeAffinity));
	check_pod_affinity(c, FIELD(at, "podAffinity"), val_get(affinity, podAffinity));
	check_pod_affinity(c, FIELD(at, "podAntiAffinity"), val_get(affinity, podAntiAffinity));
}

/* ---- spreading ---- */

/* The rule before the keys became part of the selector, for objects that only it fits. */
static void check_old_spread_keys(struct field_errors *e, const struct field_path *at, struct val constraint)
{
	CLEANUP(map_done) struct map selected = MAP_INIT;
	struct val keys = val_get(constraint, matchLabelKeys), selector = val_get(constraint, labelSelector);
	size_t i = 0;

	if (val_len(keys) && !val_exists(selector))
		field_forbidden(e, at, "must not be specified when labelSelector is not set");
	VAL_EACH_MEMBER(m, val_get(selector, matchLabels))
		set_add(&selected, atom_str(m->key));
	VAL_EACH(r, val_get(selector, matchExpressions))
		set_add(&selected, val_str(*r, key));
	VAL_EACH(key, keys) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		check_label_key(e, item, val_as_str(*key));
		if (set_has(&selected, val_as_str(*key)))
			field_invalid(e, item, *key, "exists in both matchLabelKeys and labelSelector");
	}
}

static void check_min_domains(struct field_errors *e, const struct field_path *at, struct val constraint)
{
	struct val domains = val_get(constraint, minDomains);

	if (!val_exists(domains))
		return;
	if (val_as_int(domains) <= 0)
		field_invalid(e, at, domains, "must be greater than zero");
	if (!str_eq(val_str(constraint, whenUnsatisfiable), STR("DoNotSchedule")))
		field_invalid(e, at, domains, "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " STR_FMT,
			      STR_ARG(val_str(constraint, whenUnsatisfiable)));
}

static void check_spread(struct pod_check *c, const struct field_path *at, struct val constraint, bool repeated)
{
	static const str actions[] = { STR_INIT("DoNotSchedule"), STR_INIT("ScheduleAnyway"), { NULL, 0 } };
	static const str policies[] = { STR_INIT("Honor"), STR_INIT("Ignore"), { NULL, 0 } };
	str key = val_str(constraint, topologyKey), action = val_str(constraint, whenUnsatisfiable);

	if (val_int(constraint, maxSkew) <= 0)
		field_invalid(c->e, FIELD(at, "maxSkew"), val_of_int(val_int(constraint, maxSkew)),
			      "must be greater than zero");
	if (key.n == 0)
		field_required(c->e, FIELD(at, "topologyKey"), "can not be empty");
	check_one_of(c->e, FIELD(at, "whenUnsatisfiable"), action, actions);
	if (repeated)
		field_duplicate(c->e, FIELD(at, "{topologyKey, whenUnsatisfiable}"),
				VAL_STR(arena_printf(c->e->arena, "{" STR_FMT ", " STR_FMT "}", STR_ARG(key),
						     STR_ARG(action))));
	check_min_domains(c->e, FIELD(at, "minDomains"), constraint);
	if (val_has(constraint, nodeAffinityPolicy))
		check_one_of(c->e, FIELD(at, "nodeAffinityPolicy"), val_str(constraint, nodeAffinityPolicy), policies);
	if (val_has(constraint, nodeTaintsPolicy))
		check_one_of(c->e, FIELD(at, "nodeTaintsPolicy"), val_str(constraint, nodeTaintsPolicy), policies);
	if (c->bad_spread_keys)
		check_old_spread_keys(c->e, FIELD(at, "matchLabelKeys"), constraint);
	else
		check_match_label_keys(c->e, at, constraint);
	if (!c->bad_spread_selector)
		check_label_selector(c->e, FIELD(at, "labelSelector"), val_get(constraint, labelSelector), false);
}

static str spread_id(struct arena *a, struct val constraint)
{
	return arena_printf(a, STR_FMT "\n" STR_FMT, STR_ARG(val_str(constraint, topologyKey)),
			    STR_ARG(val_str(constraint, whenUnsatisfiable)));
}

void check_spread_constraints(struct pod_check *c, const struct field_path *at, struct val constraints)
{
	CLEANUP(map_done) struct map later = MAP_INIT; /* id -> how many are left */
	size_t i = 0;

	VAL_EACH(constraint, constraints) {
		str id = spread_id(c->e->arena, *constraint);
		map_put(&later, id, (void *)((uintptr_t)map_get(&later, id) + 1));
	}
	VAL_EACH(constraint, constraints) {
		str id = spread_id(c->e->arena, *constraint);
		uintptr_t left = (uintptr_t)map_get(&later, id) - 1;
		check_spread(c, FIELD_INDEX(at, i++), *constraint, left > 0);
		if (left)
			map_put(&later, id, (void *)left);
	}
}
