/*
 * Updates of pods. Nearly everything is fixed once a pod exists, so the rule is: put back what may change, and see
 * whether anything else did. Ephemeral containers and resources have subresources of their own.
 */
#include "base/buf.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "machinery/text_diff.h"
#include "machinery/validate_pod.h"

enum { SHOWN_MAX = 16 << 20 };

#define MIRROR_KEY STR("kubernetes.io/config.mirror")
#define APP_ARMOR_PREFIX STR("container.apparmor.security.beta.kubernetes.io/")

/* ---- annotations ---- */

static const char *fixed_annotation(str key)
{
	return str_starts(key, APP_ARMOR_PREFIX) ? "AppArmor annotations" :
		str_eq(key, MIRROR_KEY) ? "mirror pod annotation" : NULL;
}

void check_pod_annotations_update(struct pod_check *c, const struct field_path *at, struct val annotations, struct val old)
{
	VAL_EACH_MEMBER(m, old) {
		str key = atom_str(m->key);
		struct val now = sorted_find(annotations, key);
		const char *what = fixed_annotation(key);
		if (what && !(val_exists(now) && val_equal(now, m->val)))
			field_forbidden(c->e, FIELD_KEY(at, key), "may not remove or update %s", what);
	}
	VAL_EACH_MEMBER(m, annotations) {
		const char *what = fixed_annotation(atom_str(m->key));
		if (what && !val_exists(sorted_find(old, atom_str(m->key))))
			field_forbidden(c->e, FIELD_KEY(at, atom_str(m->key)), "may not add %s", what);
	}
	check_pod_annotations(c, at, annotations);
}

/* ---- what may change ---- */

/* False when containers were added or removed, which makes further comparison pointless. */
static bool check_container_updates(struct field_errors *e, const struct field_path *at, struct val now, struct val before)
{
	size_t i = 0;

	if (val_len(now) != val_len(before)) {
		field_forbidden(e, at, "pod updates may not add or remove containers");
		return false;
	}
	VAL_EACH(container, now) {
		const struct field_path *item = FIELD(FIELD_INDEX(at, i++), "image");
		str image = val_str(*container, image);
		if (image.n == 0)
			field_missing(e, item);
		if (str_is_padded(image))
			field_invalid(e, item, VAL_STR(image), "must not have leading or trailing whitespace");
	}
	return true;
}

/* A deadline may be set and brought forward. False when it was wrong in a way that ends the comparison. */
static bool check_deadline_update(struct field_errors *e, const struct field_path *at, struct val now, struct val before)
{
	if (!val_exists(now)) {
		if (val_exists(before))
			field_invalid(e, at, VAL_NULL_VALUE, "must not update from a positive integer to nil value");
		return true;
	}
	if (val_as_int(now) < 0 || val_as_int(now) > INT32_MAX) {
		field_invalid(e, at, now, "must be between 0 and 2147483647, inclusive");
		return false;
	}
	if (val_exists(before) && val_as_int(before) < val_as_int(now)) {
		field_invalid(e, at, now, "must be less than or equal to previous value");
		return false;
	}
	return true;
}

static str toleration_id(struct arena *a, struct val t)
{
	return arena_printf(a, STR_FMT "\n" STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(val_str(t, key)),
			    STR_ARG(val_str(t, operator)), STR_ARG(val_str(t, effect)), STR_ARG(val_str(t, value)));
}

static void check_toleration_updates(struct pod_check *c, const struct field_path *at, struct val now, struct val before)
{
	CLEANUP(map_done) struct map kept = MAP_INIT;

	VAL_EACH(t, now)
		set_add(&kept, toleration_id(c->e->arena, *t));
	VAL_EACH(t, before) {
		if (set_has(&kept, toleration_id(c->e->arena, *t)))
			continue;
		field_forbidden(c->e, at, "existing toleration can not be modified except its tolerationSeconds");
		return;
	}
	check_pod_tolerations(c, at, now);
}

static void check_gate_updates(struct field_errors *e, const struct field_path *at, struct val now, struct val before)
{
	CLEANUP(map_done) struct map old = MAP_INIT;
	size_t i = 0;

	VAL_EACH(gate, before)
		set_add(&old, val_str(*gate, name));
	VAL_EACH(gate, now) {
		const struct field_path *item = FIELD(FIELD_INDEX(at, i++), "name");
		if (!set_has(&old, val_str(*gate, name)))
			field_forbidden(e, item, "only deletion is allowed, but found new scheduling gate '" STR_FMT "'",
					STR_ARG(val_str(*gate, name)));
	}
}

/* ---- pods that wait for their gates: their choice of nodes may become narrower ---- */

static void check_narrower_selector(struct field_errors *e, const struct field_path *at, struct val now, struct val before)
{
	VAL_EACH_MEMBER(m, before) {
		struct val value = sorted_find(now, atom_str(m->key));
		if (val_exists(value) && val_equal(value, m->val))
			continue;
		field_invalid(e, at, now, "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
		return;
	}
}

/* The first requirements must be those from before. */
static bool begins_with(struct val now, struct val before)
{
	if (val_len(now) < val_len(before))
		return false;
	for (uint32_t i = 0; i < val_len(before); i++)
		if (!val_semantic_equal(TYPE(core_v1, NodeSelectorRequirement), val_at(now, i), val_at(before, i)))
			return false;
	return true;
}

static bool is_narrower_term(struct val now, struct val before)
{
	struct val expressions = val_get(before, matchExpressions), fields = val_get(before, matchFields);

	if (val_len(expressions) == 0 && val_len(fields) == 0)
		return val_len(val_get(now, matchExpressions)) == 0 && val_len(val_get(now, matchFields)) == 0;
	return begins_with(val_get(now, matchExpressions), expressions) && begins_with(val_get(now, matchFields), fields);
}

static void check_narrower_affinity(struct field_errors *e, const struct field_path *at, struct val now, struct val before)
{
	struct val terms = val_get(now, requiredDuringSchedulingIgnoredDuringExecution, nodeSelectorTerms);
	struct val old = val_get(before, requiredDuringSchedulingIgnoredDuringExecution, nodeSelectorTerms);
	const struct field_path *below =
		FIELD(FIELD(at, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms");

	if (val_len(old) == 0)
		return;
	if (val_len(old) != val_len(terms)) {
		field_invalid(e, below, internal_form(e->arena, TYPE(core_v1, NodeSelectorTerm), terms),
			      "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
		return;
	}
	for (uint32_t i = 0; i < val_len(old); i++)
		if (!is_narrower_term(val_at(terms, i), val_at(old, i)))
			field_invalid(e, FIELD_INDEX(below, i),
				      internal_form(e->arena, TYPE(core_v1, NodeSelectorTerm), val_at(terms, i)),
				      "only additions are allowed (no mutations or deletions)");
}

/* The spec with the old choice of nodes, after that was checked. */
static struct val restore_nodes(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	struct val now = val_get(spec, affinity, nodeAffinity), before = val_get(old, affinity, nodeAffinity);

	if (!val_semantic_equal(NULL, val_get(spec, nodeSelector), val_get(old, nodeSelector))) {
		check_narrower_selector(e, FIELD(at, "nodeSelector"), val_get(spec, nodeSelector),
					val_get(old, nodeSelector));
		spec = val_put(e->arena, spec, A_nodeSelector, val_get(old, nodeSelector));
	}
	if (val_semantic_equal(TYPE(core_v1, NodeAffinity), now, before))
		return spec;
	check_narrower_affinity(e, FIELD(FIELD(at, "affinity"), "nodeAffinity"), now, before);
	if (!val_has(old, affinity) && !val_has(spec, affinity, podAffinity) && !val_has(spec, affinity, podAntiAffinity))
		return val_without(e->arena, spec, affinity);
	return val_with(e->arena, spec, before, affinity, nodeAffinity);
}

/* ---- everything else must stay ---- */

/* Containers with one member as it was; the lists are equally long. */
static struct val restore_member(struct arena *a, struct val now, struct val before, atom name)
{
	struct val_builder b = val_builder(a);
	for (uint32_t i = 0; i < val_len(now); i++)
		val_add_item(&b, val_put(a, val_at(now, i), name, val_member(val_at(before, i), name)));
	return val_len(now) ? val_end_list(&b) : now;
}

static struct val restore_images(struct arena *a, struct val spec, struct val old)
{
	static const uint16_t lists[] = { A_containers, A_initContainers };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		spec = val_put(a, spec, lists[i],
			       restore_member(a, val_member(spec, lists[i]), val_member(old, lists[i]), A_image));
	return spec;
}

/* The deprecated twin of serviceAccountName is no field of its own. */
static bool spec_equal(struct arena *a, struct val x, struct val y)
{
	return val_semantic_equal(TYPE(core_v1, PodSpec), val_without(a, x, serviceAccount),
				  val_without(a, y, serviceAccount));
}

static str shown(struct arena *a, const struct type *type, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SHOWN_MAX);
	struct err ignored;
	(void)json_encode(&b, internal_form(a, type, v), &(struct json_encode_options){ .indent = 1 }, &ignored);
	return arena_str(a, buf_str(&b));
}

static str difference(struct arena *a, const struct type *type, struct val before, struct val now)
{
	return text_diff(a, shown(a, type, before), shown(a, type, now));
}

static void check_rest(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	struct arena *a = e->arena;
	struct val grace = val_get(old, terminationGracePeriodSeconds);

	if (spec_equal(a, spec, old))
		return;
	spec = restore_images(a, spec, old);
	spec = val_put(a, spec, A_activeDeadlineSeconds, val_get(old, activeDeadlineSeconds));
	spec = val_put(a, spec, A_schedulingGates, val_get(old, schedulingGates));
	spec = val_put(a, spec, A_tolerations, val_get(old, tolerations));
	if (val_as_int(grace) < 0 && val_int(spec, terminationGracePeriodSeconds) == 1)
		spec = val_put(a, spec, A_terminationGracePeriodSeconds, grace);
	if (val_len(val_get(old, schedulingGates)))
		spec = restore_nodes(e, at, spec, old);
	if (!spec_equal(a, spec, old))
		field_forbidden(e, at,
				"pod updates may not change fields other than"
				" `spec.containers[*].image`,`spec.initContainers[*].image`,"
				"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
				"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously"
				" negative)\n" STR_FMT,
				STR_ARG(difference(a, TYPE(core_v1, PodSpec), old, spec)));
}

/* ---- the three kinds of updates ---- */

/* What all of them begin with. */
static void begin(struct pod_check *c, struct field_errors *e, struct val pod, struct val old)
{
	pod_check_init(c, e, val_get(pod, spec), val_get(old, spec), val_get(old, metadata));
	c->is_pod = true;
	c->meta = val_get(pod, metadata);
	check_object_meta_update(e, FIELD(NULL, "metadata"), c->meta, val_get(old, metadata));
	check_pod_whole(c);
}

void check_pod_update(struct field_errors *e, struct val pod, struct val old)
{
	CLEANUP(pod_check_done) struct pod_check c;
	const struct field_path *spec = FIELD(NULL, "spec");
	struct val before = val_get(old, spec);

	begin(&c, e, pod, old);
	check_pod_annotations_update(&c, FIELD(FIELD(NULL, "metadata"), "annotations"), val_get(c.meta, annotations),
				     val_get(old, metadata, annotations));
	if (!check_container_updates(e, FIELD(spec, "containers"), val_get(c.spec, containers),
				     val_get(before, containers)) ||
	    !check_container_updates(e, FIELD(spec, "initContainers"), val_get(c.spec, initContainers),
				     val_get(before, initContainers)) ||
	    !check_deadline_update(e, FIELD(spec, "activeDeadlineSeconds"), val_get(c.spec, activeDeadlineSeconds),
				   val_get(before, activeDeadlineSeconds)))
		return;
	check_toleration_updates(&c, FIELD(spec, "tolerations"), val_get(c.spec, tolerations),
				 val_get(before, tolerations));
	check_gate_updates(e, FIELD(spec, "schedulingGates"), val_get(c.spec, schedulingGates),
			   val_get(before, schedulingGates));
	check_rest(e, spec, c.spec, before);
}

static void check_ephemeral_update(struct field_errors *e, struct val pod, struct val old)
{
	CLEANUP(pod_check_done) struct pod_check c;
	CLEANUP(map_done) struct map names = MAP_INIT;
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "ephemeralContainers");
	size_t errors_before = e->n;

	begin(&c, e, pod, old);
	check_pod_annotations_update(&c, FIELD(FIELD(NULL, "metadata"), "annotations"), val_get(c.meta, annotations),
				     val_get(old, metadata, annotations));
	if (val_exists(sorted_find(val_get(old, metadata, annotations), MIRROR_KEY))) {
		e->n = errors_before;
		field_forbidden(e, FIELD_KEY(NULL, STR("")), "static pods do not support ephemeral containers");
		return;
	}
	VAL_EACH(container, val_get(c.spec, ephemeralContainers))
		map_put(&names, val_str(*container, name), (void *)container);
	VAL_EACH(before, val_get(old, spec, ephemeralContainers)) {
		str name = val_str(*before, name);
		const struct val *now = map_get(&names, name);
		const struct type *type = TYPE(core_v1, EphemeralContainer);
		if (!now)
			field_forbidden(e, at, "existing ephemeral containers \"" STR_FMT "\" may not be removed\n",
					STR_ARG(name));
		else if (!val_semantic_equal(type, *now, *before))
			field_forbidden(e, at, "existing ephemeral containers \"" STR_FMT "\" may not be changed\n" STR_FMT,
					STR_ARG(name), STR_ARG(difference(e->arena, type, *before, *now)));
	}
}

/* ---- resizing ---- */

static bool something_removed(struct val now, struct val before)
{
	VAL_EACH_MEMBER(m, before)
		if (!val_exists(sorted_find(now, atom_str(m->key))))
			return true;
	return false;
}

static bool check_same_containers(struct field_errors *e, const struct field_path *at, struct val now, struct val before,
				  const char *what)
{
	bool same = true;

	if (val_len(now) != val_len(before)) {
		field_forbidden(e, at, "%s may not be added or removed on resize", what);
		return false;
	}
	for (uint32_t i = 0; i < val_len(before); i++)
		if (!str_eq(val_str(val_at(now, i), name), val_str(val_at(before, i), name))) {
			field_forbidden(e, FIELD(FIELD_INDEX(at, i), "name"),
					"%s may not be renamed or reordered on resize", what);
			same = false;
		}
	return same;
}

static void check_nothing_removed(struct field_errors *e, const struct field_path *at, struct val now, struct val before)
{
	size_t i = 0;
	VAL_EACH(container, before) {
		const struct field_path *item = FIELD(FIELD_INDEX(at, i), "resources");
		struct val resources = val_get(val_at(now, i++), resources), old = val_get(*container, resources);
		if (something_removed(val_get(resources, requests), val_get(old, requests)))
			field_forbidden(e, FIELD(item, "requests"), "resource requests cannot be removed");
		if (something_removed(val_get(resources, limits), val_get(old, limits)))
			field_forbidden(e, FIELD(item, "limits"), "resource limits cannot be removed");
	}
}

/* A map of resources with the old cpu and memory. */
static struct val restore_compute(struct arena *a, struct val list, struct val old)
{
	static const str names[] = { STR_INIT("cpu"), STR_INIT("memory") };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct val v = sorted_find(old, names[i]);
		if (val_exists(v) || val_exists(val_find(list, names[i])))
			list = val_put(a, list, atom_make(a, names[i]), v);
	}
	return val_len(list) ? list : VAL_EMPTY;
}

/* Resources with the old cpu and memory; claims are dropped. */
static struct val restore_resources(struct arena *a, struct val resources, struct val old)
{
	return OBJECT(a, F(limits, restore_compute(a, val_get(resources, limits), val_get(old, limits))),
		      F(requests, restore_compute(a, val_get(resources, requests), val_get(old, requests))));
}

/* In the order of a typed tree. */
static struct val sorted_resources(struct arena *a, struct val resources)
{
	struct val result = resources;
	struct err ignored;
	return val_canonical(a, resources, TYPE(core_v1, ResourceRequirements), NULL, &result, &ignored) < 0 ? resources :
		result;
}

static bool is_compute_change(struct arena *a, struct val container, struct val old, struct val *ret_restored)
{
	struct val resources = sorted_resources(a, restore_resources(a, val_get(container, resources),
								     val_get(old, resources)));
	*ret_restored = val_put(a, container, A_resources, val_len(resources) ? resources : VAL_EMPTY);
	return val_semantic_equal(TYPE(core_v1, Container), *ret_restored, old);
}

static struct val check_resized(struct field_errors *e, const struct field_path *at, struct val now, struct val before)
{
	struct val_builder b = val_builder(e->arena);
	for (uint32_t i = 0; i < val_len(now); i++) {
		struct val restored;
		if (!is_compute_change(e->arena, val_at(now, i), val_at(before, i), &restored))
			field_forbidden(e, at, "only cpu and memory resources are mutable");
		val_add_item(&b, restored);
	}
	return val_len(now) ? val_end_list(&b) : now;
}

static struct val check_resized_init(struct field_errors *e, const struct field_path *at, struct val now, struct val before)
{
	struct val_builder b = val_builder(e->arena);
	for (uint32_t i = 0; i < val_len(now); i++) {
		const struct field_path *item = FIELD_INDEX(at, i);
		struct val restored, container = val_at(now, i);
		bool changed = !val_semantic_equal(TYPE(core_v1, Container), container, val_at(before, i));

		if (!is_compute_change(e->arena, container, val_at(before, i), &restored))
			field_forbidden(e, item,
					"only cpu and memory resources for init or sidecar containers are mutable");
		if (changed && !container_is_sidecar(container))
			VAL_EACH(p, val_get(container, resizePolicy))
				if (str_eq(val_str(*p, restartPolicy), STR("RestartContainer")))
					field_forbidden(e, item, "non-sidecar init containers with a resize policy of"
								 " RestartContainer cannot be resized");
		val_add_item(&b, restored);
	}
	return val_len(now) ? val_end_list(&b) : now;
}

static bool has_resources(struct val spec)
{
	return val_len(val_get(spec, resources, requests)) || val_len(val_get(spec, resources, limits));
}

/* The spec with the pod's old resources, after those were checked. */
static struct val check_pod_level(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	struct val now = val_get(spec, resources), before = val_get(old, resources), restored;
	struct arena *a = e->arena;

	if (!has_resources(spec) && !has_resources(old))
		return spec;
	if (val_exists(before) && !val_exists(now)) {
		field_forbidden(e, FIELD(at, "resources"), "pod-level resources cannot be removed");
		return spec;
	}
	if (something_removed(val_get(now, requests), val_get(before, requests)))
		field_forbidden(e, FIELD(FIELD(at, "resources"), "requests"),
				"pod-level resource requests cannot be removed");
	if (something_removed(val_get(now, limits), val_get(before, limits)))
		field_forbidden(e, FIELD(FIELD(at, "resources"), "limits"), "pod-level resource limits cannot be removed");
	restored = val_put(a, restore_resources(a, now, before), A_claims, val_get(now, claims));
	restored = val_len(restored) || val_exists(before) ? sorted_resources(a, restored) : VAL_EMPTY;
	if (!val_semantic_equal(TYPE(core_v1, ResourceRequirements), restored, before))
		field_forbidden(e, at, "only cpu and memory resources are mutable at pod-level");
	return val_put(a, spec, A_resources, restored);
}

/* A node that reports no resources of a running container does not know how to resize one. */
static bool node_can_resize(struct val pod)
{
	VAL_EACH(status, val_get(pod, status, containerStatuses))
		if (val_has(*status, state, running))
			return val_has(*status, resources);
	return true;
}

static void check_resize(struct field_errors *e, struct val pod, struct val old)
{
	CLEANUP(pod_check_done) struct pod_check c;
	const struct field_path *at = FIELD(NULL, "spec"), *list = FIELD(at, "containers"),
		*init = FIELD(at, "initContainers");
	struct val spec, before = val_get(old, spec);
	size_t errors_before = e->n;
	bool mirror = val_exists(sorted_find(val_get(old, metadata, annotations), MIRROR_KEY));

	begin(&c, e, pod, old);
	if (mirror || str_eq(val_str(before, os, name), STR("windows"))) {
		e->n = errors_before;
		field_forbidden(e, FIELD_KEY(NULL, STR("")),
				mirror ? "static pods cannot be resized" : "windows pods cannot be resized");
		return;
	}
	str class = val_has(old, status, qosClass) ? val_str(old, status, qosClass) : pod_qos_class(before);
	if (!str_eq(class, pod_qos_class(c.spec)))
		field_invalid(e, at, VAL_STR(val_str(pod, status, qosClass)),
			      "Pod QOS Class may not change as a result of resizing");
	if (!node_can_resize(old))
		field_forbidden(e, at, "Pod running on node without support for resize");
	spec = check_pod_level(e, at, c.spec, before);
	bool same = check_same_containers(e, list, val_get(spec, containers), val_get(before, containers), "containers");
	if (!check_same_containers(e, init, val_get(spec, initContainers), val_get(before, initContainers),
				   "initContainers") || !same)
		return;
	check_nothing_removed(e, init, val_get(spec, initContainers), val_get(before, initContainers));
	check_nothing_removed(e, list, val_get(spec, containers), val_get(before, containers));
	spec = val_put(e->arena, spec, A_containers,
		       check_resized(e, at, val_get(spec, containers), val_get(before, containers)));
	spec = val_put(e->arena, spec, A_initContainers,
		       check_resized_init(e, init, val_get(spec, initContainers), val_get(before, initContainers)));
	if (e->n == errors_before && !spec_equal(e->arena, spec, before))
		field_forbidden(e, at, "only cpu and memory resources are mutable");
}

void check_pod_subresource(struct field_errors *e, str subresource, struct val pod, struct val old)
{
	if (str_eq(subresource, STR("status")))
		check_pod_status(e, pod, old);
	else if (str_eq(subresource, STR("ephemeralcontainers")))
		check_ephemeral_update(e, pod, old);
	else if (str_eq(subresource, STR("resize")))
		check_resize(e, pod, old);
}
