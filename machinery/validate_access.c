/*
 * Who may do what, and what is admitted where: RBAC, reviews and tokens, PriorityClass, RuntimeClass and leases.
 * Certificates, flow control and autoscaling have files of their own.
 */
#include "codec/atoms.h"
#include "machinery/semver.h"
#include "machinery/validate_groups.h"
#include "machinery/validate_pod.h"

/* ---- RBAC ---- */

static size_t name_rule_rbac(str name, bool prefix, struct name_errors *ret)
{
	(void)prefix;
	return name_check_path_segment(name, ret);
}

static const str rbac_group[] = { STR_INIT("rbac.authorization.k8s.io"), { NULL, 0 } };

static void check_policy_rules(struct field_errors *e, struct val rules, bool namespaced)
{
	size_t i = 0;
	VAL_EACH(rule, rules) {
		const struct field_path *at = FIELD_INDEX(FIELD(NULL, "rules"), i++);
		struct val urls = val_get(*rule, nonResourceURLs), groups = val_get(*rule, apiGroups);
		struct val resources = val_get(*rule, resources);
		if (val_len(val_get(*rule, verbs)) == 0)
			field_required(e, FIELD(at, "verbs"), "verbs must contain at least one value");
		if (val_len(urls)) {
			if (namespaced)
				field_invalid(e, FIELD(at, "nonResourceURLs"), urls,
					      "namespaced rules cannot apply to non-resource URLs");
			if (val_len(groups) || val_len(resources) || val_len(val_get(*rule, resourceNames)))
				field_invalid(e, FIELD(at, "nonResourceURLs"), urls,
					      "rules cannot apply to both regular resources and non-resource URLs");
			continue;
		}
		if (val_len(groups) == 0)
			field_required(e, FIELD(at, "apiGroups"), "resource rules must supply at least one api group");
		if (val_len(resources) == 0)
			field_required(e, FIELD(at, "resources"), "resource rules must supply at least one resource");
	}
}

static void check_role(struct field_errors *e, struct val role)
{
	check_meta(e, role, true, name_rule_rbac);
	check_policy_rules(e, val_get(role, rules), true);
}

static void check_role_update(struct field_errors *e, struct val role, struct val old)
{
	check_role(e, role);
	check_meta_update(e, role, old);
}

static void check_cluster_role_all(struct field_errors *e, struct val role, bool allow_bad_values)
{
	const struct field_path *at = FIELD(FIELD(NULL, "aggregationRule"), "clusterRoleSelectors");
	struct val selectors = val_get(role, aggregationRule, clusterRoleSelectors);
	size_t i = 0;

	check_meta(e, role, false, name_rule_rbac);
	check_policy_rules(e, val_get(role, rules), false);
	if (val_has(role, aggregationRule) && val_len(selectors) == 0)
		field_required(e, at, "at least one clusterRoleSelector required if aggregationRule is non-nil");
	VAL_EACH(selector, selectors) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		struct field_errors strict;
		check_label_selector(e, item, *selector, allow_bad_values);
		field_errors_init(&strict, e->arena);
		check_label_selector(&strict, NULL, *selector, false);
		if (strict.n)
			field_invalid(e, item, VAL_EMPTY, "invalid label selector.");
	}
}

static void check_cluster_role(struct field_errors *e, struct val role) { check_cluster_role_all(e, role, false); }

static void check_cluster_role_update(struct field_errors *e, struct val role, struct val old)
{
	struct field_errors of_old;

	field_errors_init(&of_old, e->arena);
	VAL_EACH(selector, val_get(old, aggregationRule, clusterRoleSelectors))
		check_label_selector(&of_old, NULL, *selector, false);
	check_cluster_role_all(e, role, of_old.n > 0);
	check_meta_update(e, role, old);
}

static void check_subject(struct field_errors *e, const struct field_path *at, struct val subject, bool namespaced)
{
	static const str kinds[] = { STR_INIT("ServiceAccount"), STR_INIT("User"), STR_INIT("Group"), { NULL, 0 } };
	static const str no_group[] = { STR_INIT(""), { NULL, 0 } };
	str kind = val_str(subject, kind), name = val_str(subject, name), group = val_str(subject, apiGroup);

	check_given(e, FIELD(at, "name"), name);
	if (!str_in(kind, kinds)) {
		field_not_supported(e, FIELD(at, "kind"), VAL_STR(kind), kinds);
	} else if (!str_eq(kind, STR("ServiceAccount"))) {
		check_one_of(e, FIELD(at, "apiGroup"), group, rbac_group);
	} else {
		if (name.n)
			check_name(e, FIELD(at, "name"), name, name_check_dns1123_subdomain);
		check_one_of(e, FIELD(at, "apiGroup"), group, no_group);
		if (!namespaced)
			check_given(e, FIELD(at, "namespace"), val_str(subject, namespace));
	}
}

static void check_binding_all(struct field_errors *e, struct val binding, bool namespaced)
{
	static const str any_role[] = { STR_INIT("Role"), STR_INIT("ClusterRole"), { NULL, 0 } };
	static const str cluster_role[] = { STR_INIT("ClusterRole"), { NULL, 0 } };
	const struct field_path *at = FIELD(NULL, "roleRef");
	size_t i = 0;

	check_meta(e, binding, namespaced, name_rule_rbac);
	check_one_of(e, FIELD(at, "apiGroup"), val_str(binding, roleRef, apiGroup), rbac_group);
	check_one_of(e, FIELD(at, "kind"), val_str(binding, roleRef, kind), namespaced ? any_role : cluster_role);
	check_given_name(e, FIELD(at, "name"), val_str(binding, roleRef, name), name_check_path_segment);
	VAL_EACH(subject, val_get(binding, subjects))
		check_subject(e, FIELD_INDEX(FIELD(NULL, "subjects"), i++), *subject, namespaced);
}

static void check_binding_change(struct field_errors *e, struct val binding, struct val old)
{
	const struct type *type = TYPE(rbac_v1, RoleRef);
	struct val ref = val_get(binding, roleRef);

	check_meta_update(e, binding, old);
	if (!val_semantic_equal(type, ref, val_get(old, roleRef)))
		field_invalid(e, FIELD(NULL, "roleRef"), internal_form(e->arena, type, ref), "cannot change roleRef");
}

static void check_role_binding(struct field_errors *e, struct val binding) { check_binding_all(e, binding, true); }

static void check_role_binding_update(struct field_errors *e, struct val binding, struct val old)
{
	check_role_binding(e, binding);
	check_binding_change(e, binding, old);
}

static void check_cluster_role_binding(struct field_errors *e, struct val binding) { check_binding_all(e, binding, false); }

static void check_cluster_role_binding_update(struct field_errors *e, struct val binding, struct val old)
{
	check_cluster_role_binding(e, binding);
	check_binding_change(e, binding, old);
}

/* ---- reviews and tokens: nothing of these is stored ---- */

/* Requirements of a field or label selector; operators that only newer clients know are let through. */
static void check_requirements(struct field_errors *e, const struct field_path *at, struct val selector, bool of_labels)
{
	struct val requirements = val_get(selector, requirements);
	str raw = val_str(selector, rawSelector);
	size_t i = 0;

	if (!val_exists(selector))
		return;
	if (raw.n && val_len(requirements))
		field_invalid(e, FIELD(at, "rawSelector"), VAL_STR(raw),
			      "may not specified at the same time as requirements");
	if (raw.n == 0 && val_len(requirements) == 0)
		field_required(e, FIELD(at, "requirements"),
			       "when " STR_FMT " is specified, requirements or rawSelector is required",
			       STR_ARG(field_path_text(e->arena, at)));
	VAL_EACH(requirement, requirements) {
		const struct field_path *item = FIELD_INDEX(FIELD(at, "requirements"), i++);
		str operator = val_str(*requirement, operator), key = val_str(*requirement, key);
		struct val values = val_get(*requirement, values);
		size_t j = 0;
		if (!of_labels && key.n == 0)
			field_required(e, FIELD(item, "key"), "must be specified");
		if ((str_eq(operator, STR("In")) || str_eq(operator, STR("NotIn"))) && val_len(values) == 0)
			field_required(e, FIELD(item, "values"), "must be specified when `operator` is 'In' or 'NotIn'");
		if ((str_eq(operator, STR("Exists")) || str_eq(operator, STR("DoesNotExist"))) && val_len(values))
			field_forbidden(e, FIELD(item, "values"),
					"may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
		if (!of_labels)
			continue;
		check_label_key(e, FIELD(item, "key"), key);
		VAL_EACH(value, values)
			check_name(e, FIELD_INDEX(FIELD(item, "values"), j++), val_as_str(*value), name_check_label_value);
	}
}

static void check_review_spec(struct field_errors *e, struct val spec, bool with_user)
{
	const struct field_path *at = FIELD(NULL, "spec"), *at_resource = FIELD(NULL, "spec.resourceAttributes");
	const struct type *type = TYPE(authorization_v1, NonResourceAttributes);
	struct val resource = val_get(spec, resourceAttributes), other = val_get(spec, nonResourceAttributes);

	if (val_exists(resource) && val_exists(other))
		field_invalid(e, FIELD(at, "nonResourceAttributes"), internal_form(e->arena, type, other),
			      "cannot be specified in combination with resourceAttributes");
	if (!val_exists(resource) && !val_exists(other))
		field_invalid(e, FIELD(at, "resourceAttributes"), VAL_EMPTY,
			      "exactly one of nonResourceAttributes or resourceAttributes must be specified");
	if (with_user && val_str(spec, user).n == 0 && val_len(val_get(spec, groups)) == 0)
		field_invalid(e, FIELD(at, "user"), VAL_LIT(""), "at least one of user or group must be specified");
	check_requirements(e, FIELD(at_resource, "fieldSelector"), val_get(resource, fieldSelector), false);
	check_requirements(e, FIELD(at_resource, "labelSelector"), val_get(resource, labelSelector), true);
}

static void check_no_meta(struct field_errors *e, struct val review, bool may_have_namespace)
{
	struct val meta = val_get(review, metadata), rest = val_without(e->arena, meta, managedFields);

	if (may_have_namespace)
		rest = val_without(e->arena, rest, namespace);
	if (!val_is_zero(rest))
		field_invalid(e, FIELD(NULL, "metadata"), internal_form(e->arena, TYPE(meta_v1, ObjectMeta), meta),
			      may_have_namespace ? "must be empty except for namespace" : "must be empty");
}

static void check_subject_review(struct field_errors *e, struct val review)
{
	check_review_spec(e, val_get(review, spec), true);
	check_no_meta(e, review, false);
}

static void check_self_review(struct field_errors *e, struct val review)
{
	check_review_spec(e, val_get(review, spec), false);
	check_no_meta(e, review, false);
}

static void check_local_review(struct field_errors *e, struct val review)
{
	struct val resource = val_get(review, spec, resourceAttributes);
	struct val other = val_get(review, spec, nonResourceAttributes);
	str namespace = val_str(resource, namespace);

	check_review_spec(e, val_get(review, spec), true);
	check_no_meta(e, review, true);
	if (val_exists(resource) && !str_eq(namespace, val_str(review, metadata, namespace)))
		field_invalid(e, FIELD(NULL, "spec.resourceAttributes.namespace"), VAL_STR(namespace),
			      "must match metadata.namespace");
	if (val_exists(other))
		field_invalid(e, FIELD(NULL, "spec.nonResourceAttributes"),
			      internal_form(e->arena, TYPE(authorization_v1, NonResourceAttributes), other),
			      "disallowed on this kind of request");
}

static void check_token_request(struct field_errors *e, struct val request)
{
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "expirationSeconds");
	int64_t seconds = val_int(request, spec, expirationSeconds);

	if (seconds < 600)
		field_invalid(e, at, val_of_int(seconds), "may not specify a duration less than 10 minutes");
	if (seconds > INT64_C(1) << 32)
		field_invalid(e, at, val_of_int(seconds), "may not specify a duration larger than 2^32 seconds");
}

/* ---- PriorityClass ---- */

enum { USER_PRIORITY_MAX = 1000000000, SYSTEM_PRIORITY = 2 * USER_PRIORITY_MAX };

static void check_system_class(struct field_errors *e, str name, int64_t value, bool is_default)
{
	static const char intro[] = "priority class names with 'system-' prefix are reserved for system use only. error: ";
	static const struct {
		str name;
		int64_t value;
	} known[] = {
		{ STR_INIT("system-node-critical"), SYSTEM_PRIORITY + 1000 },
		{ STR_INIT("system-cluster-critical"), SYSTEM_PRIORITY },
	};
	const struct field_path *at = FIELD(FIELD(NULL, "metadata"), "name");

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (!str_eq(known[i].name, name))
			continue;
		if (known[i].value != value)
			field_forbidden(e, at, "%svalue of " STR_FMT " PriorityClass must be %lld", intro,
					STR_ARG(name), (long long)known[i].value);
		else if (is_default)
			field_forbidden(e, at, "%sglobalDefault of " STR_FMT " PriorityClass must be false", intro,
					STR_ARG(name));
		return;
	}
	field_forbidden(e, at, "%s" STR_FMT " is not a known system priority class", intro, STR_ARG(name));
}

static void check_priority_class(struct field_errors *e, struct val class)
{
	static const str policies[] = { STR_INIT("PreemptLowerPriority"), STR_INIT("Never"), { NULL, 0 } };
	str name = val_str(class, metadata, name);
	int64_t value = val_int(class, value);

	check_meta(e, class, false, name_rule_subdomain);
	if (str_starts(name, STR("system-")))
		check_system_class(e, name, value, val_bool(class, globalDefault));
	else if (value > USER_PRIORITY_MAX)
		field_forbidden(e, FIELD(NULL, "value"), "maximum allowed value of a user defined priority is %d",
				USER_PRIORITY_MAX);
	if (val_has(class, preemptionPolicy))
		check_required_one_of(e, FIELD(NULL, "preemptionPolicy"), val_str(class, preemptionPolicy), policies);
}

static void check_priority_class_update(struct field_errors *e, struct val class, struct val old)
{
	check_meta_update(e, class, old);
	if (val_int(class, value) != val_int(old, value))
		field_forbidden(e, FIELD(NULL, "value"), "may not be changed in an update.");
	check_immutable(e, FIELD(NULL, "preemptionPolicy"), NULL, val_get(class, preemptionPolicy),
			val_get(old, preemptionPolicy));
}

/* ---- RuntimeClass ---- */

static void check_class_overhead(struct field_errors *e, struct val overhead)
{
	struct pod_check c;

	if (!val_exists(overhead))
		return;
	pod_check_init(&c, e, VAL_EMPTY, VAL_EMPTY, VAL_EMPTY);
	check_container_resources(&c, FIELD(NULL, "overhead"), OBJECT(e->arena, F(limits, val_get(overhead, podFixed))));
	pod_check_done(&c);
}

static void check_class_tolerations(struct field_errors *e, const struct field_path *at, struct val tolerations)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	check_tolerations(e, at, tolerations);
	VAL_EACH(t, tolerations) {
		/* no valid part has a newline, and invalid ones have got their errors */
		str key = arena_printf(e->arena, STR_FMT "\n" STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(val_str(*t, key)),
				       STR_ARG(val_str(*t, operator)), STR_ARG(val_str(*t, value)),
				       STR_ARG(val_str(*t, effect)));
		if (!set_add(&seen, key))
			field_duplicate(e, FIELD_INDEX(at, i), internal_form(e->arena, TYPE(core_v1, Toleration), *t));
		i++;
	}
}

static void check_runtime_class(struct field_errors *e, struct val class)
{
	const struct field_path *at = FIELD(NULL, "scheduling");

	check_meta(e, class, false, name_rule_subdomain);
	check_given_name(e, FIELD(NULL, "handler"), val_str(class, handler), name_check_dns1123_label);
	check_class_overhead(e, val_get(class, overhead));
	check_labels(e, FIELD(at, "nodeSelector"), val_get(class, scheduling, nodeSelector));
	check_class_tolerations(e, FIELD(at, "tolerations"), val_get(class, scheduling, tolerations));
}

static void check_runtime_class_update(struct field_errors *e, struct val class, struct val old)
{
	check_runtime_class(e, class);
	check_meta_update(e, class, old);
	check_immutable_str(e, FIELD(NULL, "handler"), val_str(class, handler), val_str(old, handler));
}

/* ---- Lease and LeaseCandidate: metadata is checked without the rules of core ---- */

static void check_strategy(struct field_errors *e, const struct field_path *at, str strategy)
{
	static const str known[] = { STR_INIT("OldestEmulationVersion"), { NULL, 0 } };
	if (str_chr(strategy, '/') < 0)
		check_one_of(e, FIELD(at, "strategy"), strategy, known);
	else
		check_label_key(e, FIELD(at, "strategy"), strategy);
}

static void check_lease_spec(struct field_errors *e, struct val spec)
{
	const struct field_path *at = FIELD(NULL, "spec");
	struct val seconds = val_get(spec, leaseDurationSeconds), transitions = val_get(spec, leaseTransitions);

	if (val_exists(seconds) && val_as_int(seconds) <= 0)
		field_invalid(e, FIELD(at, "leaseDurationSeconds"), seconds, "must be greater than 0");
	if (val_as_int(transitions) < 0)
		field_invalid(e, FIELD(at, "leaseTransitions"), transitions, "must be greater than or equal to 0");
	if (val_has(spec, strategy))
		check_strategy(e, FIELD(at, "strategy"), val_str(spec, strategy));
	if (val_str(spec, preferredHolder).n && val_str(spec, strategy).n == 0)
		field_forbidden(e, FIELD(at, "preferredHolder"), "may only be specified if `strategy` is defined");
}

static void check_lease(struct field_errors *e, struct val lease)
{
	check_generic_meta(e, FIELD(NULL, "metadata"), val_get(lease, metadata), true, name_rule_subdomain);
	check_lease_spec(e, val_get(lease, spec));
}

static void check_lease_update(struct field_errors *e, struct val lease, struct val old)
{
	check_generic_meta_update(e, FIELD(NULL, "metadata"), val_get(lease, metadata), val_get(old, metadata));
	check_lease_spec(e, val_get(lease, spec));
}

static size_t candidate_name(str name, bool prefix, struct name_errors *ret)
{
	(void)prefix; /* a '-' at the end is fine anyway */
	return name_check_config_key(name, ret);
}

static void check_version(struct field_errors *e, const struct field_path *at, str text, struct semver *ret)
{
	*ret = (struct semver){ 0 };
	if (text.n && !semver_parse(text, ret))
		field_invalid(e, at, VAL_STR(text), "must be a valid semantic version");
}

static void check_candidate_spec(struct field_errors *e, struct val spec)
{
	const struct field_path *at = FIELD(NULL, "spec");
	str binary = val_str(spec, binaryVersion), emulation = val_str(spec, emulationVersion);
	str strategy = val_str(spec, strategy);
	struct semver of_binary, of_emulation, zero = { 0 };

	check_given(e, FIELD(at, "leaseName"), val_str(spec, leaseName));
	check_version(e, FIELD(at, "emulationVersion"), emulation, &of_emulation);
	check_given(e, FIELD(at, "binaryVersion"), binary);
	check_version(e, FIELD(at, "binaryVersion"), binary, &of_binary);
	if (binary.n && emulation.n && semver_cmp(&of_binary, &of_emulation) < 0)
		field_invalid(e, FIELD(at, "binaryVersion"), VAL_STR(binary),
			      "must be greater than or equal to `emulationVersion`");
	if (!check_given(e, FIELD(at, "strategy"), strategy))
		return;
	if (str_eq(strategy, STR("OldestEmulationVersion")) && semver_cmp(&of_emulation, &zero) == 0)
		field_required(e, FIELD(at, "emulationVersion"),
			       "must be specified when `strategy` is 'OldestEmulationVersion'");
	check_strategy(e, FIELD(at, "strategy"), strategy);
}

static void check_candidate(struct field_errors *e, struct val candidate)
{
	check_generic_meta(e, FIELD(NULL, "metadata"), val_get(candidate, metadata), true, candidate_name);
	check_candidate_spec(e, val_get(candidate, spec));
}

static void check_candidate_update(struct field_errors *e, struct val candidate, struct val old)
{
	check_generic_meta_update(e, FIELD(NULL, "metadata"), val_get(candidate, metadata), val_get(old, metadata));
	check_candidate_spec(e, val_get(candidate, spec));
	check_immutable_str(e, FIELD(FIELD(NULL, "spec"), "leaseName"), val_str(candidate, spec, leaseName),
			    val_str(old, spec, leaseName));
}

const struct kind_rules rules_access[] = {
	{ TYPE(rbac_v1, Role), name_rule_rbac, KIND_OWN_META, .check = check_role, .check_update = check_role_update },
	{ TYPE(rbac_v1, ClusterRole), name_rule_rbac, KIND_OWN_META, .check = check_cluster_role,
	  .check_update = check_cluster_role_update },
	{ TYPE(rbac_v1, RoleBinding), name_rule_rbac, KIND_OWN_META, .defaults = default_role_binding,
	  .check = check_role_binding, .check_update = check_role_binding_update },
	{ TYPE(rbac_v1, ClusterRoleBinding), name_rule_rbac, KIND_OWN_META, .defaults = default_role_binding,
	  .check = check_cluster_role_binding, .check_update = check_cluster_role_binding_update },
	{ TYPE(authorization_v1, SubjectAccessReview), .flags = KIND_OWN_META | KIND_NOT_STORED,
	  .check = check_subject_review },
	{ TYPE(authorization_v1, SelfSubjectAccessReview), .flags = KIND_OWN_META | KIND_NOT_STORED,
	  .check = check_self_review },
	{ TYPE(authorization_v1, LocalSubjectAccessReview), .flags = KIND_OWN_META | KIND_NOT_STORED,
	  .check = check_local_review },
	{ TYPE(authentication_v1, TokenRequest), .flags = KIND_OWN_META | KIND_NOT_STORED, .defaults = default_token_request,
	  .check = check_token_request },
	{ TYPE(authentication_v1, TokenReview), .flags = KIND_OWN_META | KIND_NOT_STORED },
	{ TYPE(authentication_v1, SelfSubjectReview), .flags = KIND_OWN_META | KIND_NOT_STORED },
	{ TYPE(authorization_v1, SelfSubjectRulesReview), .flags = KIND_OWN_META | KIND_NOT_STORED },
	{ TYPE(certificates_v1, CertificateSigningRequest), .flags = KIND_OWN_META, .check = check_csr,
	  .check_update = check_csr_update,
	  .check_subresource = check_csr_subresource, .prepare = prepare_csr, .prepare_update = prepare_csr_update },
	{ TYPE(certificates_v1beta1, ClusterTrustBundle), .flags = KIND_OWN_META, .check = check_bundle,
	  .check_update = check_bundle_update },
	{ TYPE(scheduling_v1, PriorityClass), name_rule_subdomain, KIND_OWN_META, .defaults = default_priority_class,
	  .check = check_priority_class, .check_update = check_priority_class_update, .prepare = prepare_first_generation },
	{ TYPE(node_v1, RuntimeClass), name_rule_subdomain, KIND_OWN_META, .defaults = default_runtime_class,
	  .check = check_runtime_class, .check_update = check_runtime_class_update },
	{ TYPE(coordination_v1, Lease), name_rule_subdomain, KIND_OWN_META, .check = check_lease,
	  .check_update = check_lease_update },
	{ TYPE(coordination_v1beta1, LeaseCandidate), candidate_name, KIND_OWN_META, .check = check_candidate,
	  .check_update = check_candidate_update },
	{ TYPE(flowcontrol_v1, FlowSchema), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_flow_schema,
	  .check = check_flow_schema, .check_subresource = check_flowcontrol_status, .prepare_update = prepare_flow_update },
	{ TYPE(flowcontrol_v1, PriorityLevelConfiguration), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_priority_level, .check = check_priority_level, .check_subresource = check_flowcontrol_status,
	  .prepare_update = prepare_flow_update },
	{ TYPE(autoscaling_v2, HorizontalPodAutoscaler), name_rule_subdomain, KIND_OWN_META, .defaults = default_autoscaler,
	  .check = check_autoscaler, .check_update = check_autoscaler_update, .check_subresource = check_autoscaler_status },
	{ 0 },
};
