/* What the server fills in for pods, and what their endpoints may not change. */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "machinery/validate_pod.h"

#define APP_ARMOR_PREFIX STR("container.apparmor.security.beta.kubernetes.io/")

/* ---- matchLabelKeys: the pod's own labels become requirements ---- */

static struct val add_requirements(struct arena *a, struct val selector, struct val keys, struct val labels, str operator)
{
	struct val list = val_get(selector, matchExpressions);
	struct val_builder b = val_builder(a);
	bool added = false;

	VAL_EACH(r, list)
		val_add_item(&b, *r);
	VAL_EACH(key, keys) {
		struct val value = sorted_find(labels, val_as_str(*key));
		if (!val_exists(value))
			continue;
		val_add_item(&b, OBJECT(a, F(key, *key), F(operator, VAL_STR(operator)), F(values, LIST(a, value))));
		added = true;
	}
	return added ? val_put(a, selector, A_matchExpressions, val_end_list(&b)) : selector;
}

static struct val apply_label_keys(struct arena *a, struct val term, struct val labels)
{
	struct val selector = val_get(term, labelSelector);

	if (!val_exists(selector))
		return term;
	selector = add_requirements(a, selector, val_get(term, matchLabelKeys), labels, STR("In"));
	selector = add_requirements(a, selector, val_get(term, mismatchLabelKeys), labels, STR("NotIn"));
	return val_put(a, term, A_labelSelector, selector);
}

static struct val apply_to_list(struct arena *a, struct val list, struct val labels, bool weighted)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(item, list) {
		struct val term = weighted ? val_get(*item, podAffinityTerm) : *item;
		term = apply_label_keys(a, term, labels);
		val_add_item(&b, weighted ? val_put(a, *item, A_podAffinityTerm, term) : term);
	}
	return val_len(list) ? val_end_list(&b) : list;
}

static struct val apply_to_affinity(struct arena *a, struct val spec, atom which, struct val labels)
{
	struct val affinity = val_member(val_get(spec, affinity), which);

	if (!val_exists(affinity))
		return spec;
	affinity = val_put(a, affinity, A_preferredDuringSchedulingIgnoredDuringExecution,
			   apply_to_list(a, val_get(affinity, preferredDuringSchedulingIgnoredDuringExecution), labels,
					 true));
	affinity = val_put(a, affinity, A_requiredDuringSchedulingIgnoredDuringExecution,
			   apply_to_list(a, val_get(affinity, requiredDuringSchedulingIgnoredDuringExecution), labels,
					 false));
	return val_put(a, spec, A_affinity, val_put(a, val_get(spec, affinity), which, affinity));
}

/* ---- AppArmor: annotations become fields ---- */

struct val app_armor_profile(struct arena *a, str text)
{
	str local = str_skip(text, sizeof("localhost/") - 1);

	if (str_eq(text, STR("unconfined")))
		return OBJECT(a, F(type, VAL_LIT("Unconfined")));
	if (str_eq(text, STR("runtime/default")))
		return OBJECT(a, F(type, VAL_LIT("RuntimeDefault")));
	if (str_starts(text, STR("localhost/")) && local.n && local.n <= 4095 && !str_is_padded(local))
		return OBJECT(a, F(type, VAL_LIT("Localhost")), F(localhostProfile, VAL_STR(local)));
	return VAL_EMPTY;
}

static struct val apply_app_armor(struct arena *a, struct val spec, atom list, struct val annotations)
{
	struct val containers = val_member(spec, list), of_pod = val_get(spec, securityContext, appArmorProfile);
	struct val_builder b = val_builder(a);

	VAL_EACH(c, containers) {
		struct val text = sorted_find(annotations, arena_join(a, APP_ARMOR_PREFIX, val_str(*c, name)));
		struct val profile = app_armor_profile(a, val_as_str(text));
		bool wanted = val_exists(text) && val_exists(profile) && !val_has(*c, securityContext, appArmorProfile) &&
			      !val_equal(profile, of_pod);
		val_add_item(&b, wanted ? val_with(a, *c, profile, securityContext, appArmorProfile) : *c);
	}
	return val_len(containers) ? val_put(a, spec, list, val_end_list(&b)) : spec;
}

static struct val apply_annotations(struct arena *a, struct val spec, struct val annotations)
{
	static const uint16_t lists[] = { A_initContainers, A_containers, A_ephemeralContainers };
	bool any = false;

	VAL_EACH_MEMBER(m, annotations)
		any |= str_starts(atom_str(m->key), APP_ARMOR_PREFIX);
	if (!any || str_eq(val_str(spec, os, name), STR("windows")))
		return spec;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		spec = apply_app_armor(a, spec, lists[i], annotations);
	return spec;
}

/* ---- new pods ---- */

static struct val gated_condition(struct arena *a)
{
	char now[TIME_TEXT_MAX];
	str text = time_format((struct timestamp){ clock_wall_ns() / NS_PER_S, 0 }, now);

	return OBJECT(a, F(type, VAL_LIT("PodScheduled")), F(status, VAL_LIT("False")),
		      F(lastTransitionTime, VAL_STR(arena_str(a, text))), F(reason, VAL_LIT("SchedulingGated")),
		      F(message, VAL_LIT("Scheduling is blocked due to non-empty scheduling gates")));
}

/* A QoS class that the user gave is believed. */
static struct val first_status(struct arena *a, struct val spec, struct val given)
{
	bool gated = val_len(val_get(spec, schedulingGates)) > 0;

	return OBJECT(a, F(phase, VAL_LIT("Pending")), F(conditions, gated ? LIST(a, gated_condition(a)) : VAL_EMPTY),
		      F(qosClass, val_has(given, qosClass) ? val_get(given, qosClass) : VAL_STR(pod_qos_class(spec))));
}

struct val prepare_pod(struct arena *a, struct val pod)
{
	struct val spec = val_get(pod, spec), labels = val_get(pod, metadata, labels);

	pod = val_put(a, pod, A_status, first_status(a, spec, val_get(pod, status)));
	spec = apply_to_affinity(a, spec, A_podAffinity, labels);
	spec = apply_to_affinity(a, spec, A_podAntiAffinity, labels);
	if (val_has(spec, topologySpreadConstraints))
		spec = val_put(a, spec, A_topologySpreadConstraints,
			       apply_to_list(a, val_get(spec, topologySpreadConstraints), labels, false));
	return val_put(a, pod, A_spec, apply_annotations(a, spec, val_get(pod, metadata, annotations)));
}

/* ---- updates ---- */

/* A kubelet that does not know of generations must not take them away. */
static struct val keep_generations(struct arena *a, struct val status, struct val old)
{
	CLEANUP(map_done) struct map next = MAP_INIT; /* type -> the first old condition of that type that is not used */
	struct val before = val_get(old, conditions), list = val_get(status, conditions);
	struct val_builder b = val_builder(a);

	status = default_member(a, status, A_observedGeneration, val_get(old, observedGeneration));
	for (uint32_t i = val_len(before); i-- > 0;)
		map_put(&next, val_str(before.items[i], type), (void *)&before.items[i]);
	VAL_EACH(condition, list) {
		const struct val *was = map_remove(&next, val_str(*condition, type));
		val_add_item(&b, was ? default_member(a, *condition, A_observedGeneration,
						      val_get(*was, observedGeneration)) : *condition);
	}
	return val_len(list) ? val_put(a, status, A_conditions, val_end_list(&b)) : status;
}

static struct val prepare_status(struct arena *a, struct val pod, struct val old)
{
	struct val status = default_member(a, val_get(pod, status), A_qosClass, val_get(old, status, qosClass));

	pod = val_put(a, pod, A_spec, val_get(old, spec));
	pod = val_with(a, pod, val_get(old, metadata, ownerReferences), metadata, ownerReferences);
	return val_put(a, pod, A_status, keep_generations(a, status, val_get(old, status)));
}

/* Labels, annotations and the like belong to the pod, not to its subresources. */
static struct val keep_meta(struct arena *a, struct val pod, struct val old)
{
	static const uint16_t kept[] = { A_deletionTimestamp, A_selfLink, A_labels, A_annotations, A_finalizers,
					 A_ownerReferences };
	struct val meta = val_get(pod, metadata);

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		meta = val_put(a, meta, kept[i], val_member(val_get(old, metadata), kept[i]));
	return val_put(a, pod, A_metadata, meta);
}

/* The old containers with new resources; those that were renamed are left to validation. */
static struct val resized(struct arena *a, struct val now, struct val before)
{
	struct val_builder b = val_builder(a);

	for (uint32_t i = 0; i < val_len(now); i++) {
		struct val container = val_at(before, i), new = val_at(now, i);
		if (!str_eq(val_str(container, name), val_str(new, name)))
			return now;
		container = val_put(a, container, A_resources, val_get(new, resources));
		val_add_item(&b, val_put(a, container, A_resizePolicy, val_get(new, resizePolicy)));
	}
	return val_len(now) ? val_end_list(&b) : now;
}

static struct val prepare_resize(struct arena *a, struct val pod, struct val old)
{
	struct val now = val_get(pod, spec), before = val_get(old, spec), spec = before;

	if (val_len(val_get(now, containers)) != val_len(val_get(before, containers)) ||
	    val_len(val_get(now, initContainers)) != val_len(val_get(before, initContainers)))
		return pod;
	spec = val_put(a, spec, A_resources, val_get(now, resources));
	spec = val_put(a, spec, A_containers, resized(a, val_get(now, containers), val_get(before, containers)));
	spec = val_put(a, spec, A_initContainers,
		       resized(a, val_get(now, initContainers), val_get(before, initContainers)));
	pod = val_put(a, keep_meta(a, pod, old), A_status, val_get(old, status));
	return val_put(a, pod, A_spec, spec);
}

struct val prepare_pod_update(struct arena *a, str subresource, struct val pod, struct val old)
{
	if (str_eq(subresource, STR("status")))
		return prepare_status(a, pod, old);
	if (str_eq(subresource, STR("resize")))
		return prepare_resize(a, pod, old);
	if (str_eq(subresource, STR("ephemeralcontainers"))) {
		struct val spec = val_put(a, val_get(old, spec), A_ephemeralContainers,
					  val_get(pod, spec, ephemeralContainers));
		pod = val_put(a, keep_meta(a, pod, old), A_spec, spec);
	}
	return val_put(a, pod, A_status, val_get(old, status));
}
