/*
 * Everything that makes the API larger: the table of admission webhooks and policies, CustomResourceDefinitions and
 * devices, whose rules are in files of their own, and the rules of APIService, StorageVersionMigration, PodGroup and
 * Workload.
 */
#include "codec/atoms.h"
#include "machinery/validate_groups.h"

/* ---- APIService ---- */

enum { GROUP_PRIORITY_MAX = 20000, VERSION_PRIORITY_MAX = 1000 };

static size_t accept_name(str name, bool prefix, struct name_errors *ret)
{
	(void)name, (void)prefix, (void)ret;
	return 0;
}

static void check_service_name(struct field_errors *e, const struct field_path *at, str name, str wanted)
{
	size_t before = e->n;
	if (name.n == 0)
		return;
	check_name(e, at, name, name_check_path_segment);
	if (e->n == before && !str_eq(name, wanted))
		field_invalid(e, at, VAL_STR(name), "must be `spec.version+\".\"+spec.group`: \"" STR_FMT "\"",
			      STR_ARG(wanted));
}

static void check_api_service_target(struct field_errors *e, const struct field_path *at, struct val spec)
{
	const struct field_path *at_service = FIELD(at, "service"), *at_insecure = FIELD(at, "insecureSkipTLSVerify");
	struct val service = val_get(spec, service);
	bool insecure = val_bool(spec, insecureSkipTLSVerify);
	str bundle = val_str(spec, caBundle);
	struct name_errors found;

	if (!val_exists(service)) {
		str size = arena_printf(e->arena, "%zu bytes", base64_size(bundle));
		if (bundle.n)
			field_invalid(e, FIELD(at, "caBundle"), VAL_STR(size), "local APIServices may not have a caBundle");
		if (insecure)
			field_invalid(e, at_insecure, val_of_bool(true),
				      "local APIServices may not have insecureSkipTLSVerify");
		return;
	}
	check_given(e, FIELD(at_service, "namespace"), val_str(service, namespace));
	check_given(e, FIELD(at_service, "name"), val_str(service, name));
	if (name_check_port_number(val_int(service, port), &found))
		field_invalid(e, FIELD(at_service, "port"), shown_int(val_get(service, port)), "port is not valid: " STR_FMT,
			      STR_ARG(found.text[0]));
	if (insecure && bundle.n)
		field_invalid(e, at_insecure, val_of_bool(true), "may not be true if caBundle is present");
}

static void check_api_service(struct field_errors *e, struct val service)
{
	const struct field_path *at = FIELD(NULL, "spec"), *meta = FIELD(NULL, "metadata");
	struct val spec = val_get(service, spec);
	str group = val_str(spec, group), version = val_str(spec, version);
	str wanted = arena_printf(e->arena, STR_FMT "." STR_FMT, STR_ARG(version), STR_ARG(group));
	int64_t group_priority = val_int(spec, groupPriorityMinimum), version_priority = val_int(spec, versionPriority);

	check_service_name(e, FIELD(meta, "generateName"), val_str(service, metadata, generateName), wanted);
	check_service_name(e, FIELD(meta, "name"), val_str(service, metadata, name), wanted);
	check_generic_meta(e, meta, val_get(service, metadata), false, accept_name);
	if (group.n == 0 && !str_eq(version, STR("v1")))
		field_required(e, FIELD(at, "group"), "only v1 may have an empty group and it better be legacy kube");
	if (group.n)
		check_name(e, FIELD(at, "group"), group, name_check_dns1123_subdomain);
	check_name(e, FIELD(at, "version"), version, name_check_dns1035_label);
	if (group_priority <= 0 || group_priority > GROUP_PRIORITY_MAX)
		field_invalid(e, FIELD(at, "groupPriorityMinimum"), val_of_int(group_priority),
			      "must be positive and less than %d", GROUP_PRIORITY_MAX);
	if (version_priority <= 0 || version_priority > VERSION_PRIORITY_MAX)
		field_invalid(e, FIELD(at, "versionPriority"), val_of_int(version_priority),
			      "must be positive and less than %d", VERSION_PRIORITY_MAX);
	check_api_service_target(e, at, spec);
}

static void check_api_service_update(struct field_errors *e, struct val service, struct val old)
{
	check_generic_meta_update(e, FIELD(NULL, "metadata"), val_get(service, metadata), val_get(old, metadata));
	check_api_service(e, service);
}

static void check_api_service_status(struct field_errors *e, str subresource, struct val service, struct val old)
{
	static const str statuses[] = { STR_INIT("True"), STR_INIT("False"), STR_INIT("Unknown"), { NULL, 0 } };
	const struct field_path *at = FIELD(FIELD(NULL, "status"), "conditions");
	size_t i = 0;

	(void)subresource;
	check_generic_meta_update(e, FIELD(NULL, "metadata"), val_get(service, metadata), val_get(old, metadata));
	VAL_EACH(condition, val_get(service, status, conditions))
		check_one_of(e, FIELD(FIELD_INDEX(at, i++), "status"), val_str(*condition, status), statuses);
}

/* ---- StorageVersionMigration ---- */

static void check_migration(struct field_errors *e, struct val migration)
{
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "resource");
	str resource = val_str(migration, spec, resource, resource), group = val_str(migration, spec, resource, group);

	check_meta(e, migration, false, name_rule_subdomain);
	if (resource.n == 0)
		field_required(e, FIELD(at, "resource"), "resource is required to be set");
	else
		check_name_joined(e, FIELD(at, "resource"), resource, name_check_dns1035_label, ",");
	if (group.n)
		check_name_joined(e, FIELD(at, "group"), group, name_check_dns1123_subdomain, ",");
}

static void check_migration_update(struct field_errors *e, struct val migration, struct val old)
{
	check_migration(e, migration);
	check_meta_update(e, migration, old);
	check_immutable(e, FIELD(NULL, "spec"), TYPE(storagemigration_v1beta1, StorageVersionMigrationSpec),
			val_get(migration, spec), val_get(old, spec));
}

static bool has_condition(struct val migration, str type)
{
	VAL_EACH(c, val_get(migration, status, conditions))
		if (str_eq(val_str(*c, type), type))
			return str_eq(val_str(*c, status), STR("True"));
	return false;
}

static bool is_resource_version(str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] < '0' || text.p[i] > '9' || (i == 0 && text.p[0] == '0'))
			return false;
	return text.n > 0;
}

static void check_migration_status(struct field_errors *e, str subresource, struct val migration, struct val old)
{
	const struct field_path *at = FIELD(NULL, "status"), *at_conditions = FIELD(at, "conditions");
	const struct field_path *at_version = FIELD(at, "resourceVersion");
	struct val conditions = val_get(migration, status, conditions);
	str version = val_str(migration, status, resourceVersion), before = val_str(old, status, resourceVersion);
	bool succeeded = has_condition(migration, STR("Succeeded")), failed = has_condition(migration, STR("Failed"));

	(void)subresource;
	check_meta_update(e, migration, old);
	if (version.n && !is_resource_version(version))
		field_invalid(e, at_version, VAL_STR(version), "resource version is not well formed: " STR_FMT,
			      STR_ARG(version));
	check_conditions(e, at_conditions, conditions);
	if (before.n && !str_eq(before, version))
		field_invalid(e, at_version, VAL_STR(version), "field is immutable");
	if (succeeded && failed)
		field_invalid(e, at_conditions, conditions,
			      "Both success and failed conditions cannot be true at the same time");
	if (has_condition(old, STR("Succeeded")) && !succeeded)
		field_invalid(e, at_conditions, conditions, "Success condition cannot be set to false once it is true");
	if (has_condition(old, STR("Failed")) && !failed)
		field_invalid(e, at_conditions, conditions, "Failed condition cannot be set to false once it is true");
}

/* ---- PodGroup: what the schema does not say ---- */

static void check_pod_group_status(struct field_errors *e, str subresource, struct val group, struct val old)
{
	const struct field_path *at = FIELD(NULL, "status");
	CLEANUP(map_done) struct map names = MAP_INIT;
	size_t i = 0;

	(void)subresource, (void)old;
	check_conditions(e, FIELD(at, "conditions"), val_get(group, status, conditions));
	VAL_EACH(claim, val_get(group, spec, resourceClaims))
		set_add(&names, val_str(*claim, name));
	VAL_EACH(claim, val_get(group, status, resourceClaimStatuses)) {
		const struct field_path *item = FIELD_INDEX(FIELD(at, "resourceClaimStatuses"), i++);
		str name = val_str(*claim, name);
		if (!set_has(&names, name))
			field_invalid(e, FIELD(item, "name"), VAL_STR(name),
				      "must match the name of an entry in `spec.resourceClaims`");
	}
}

const struct kind_rules rules_extensions[] = {
	{ TYPE(admissionregistration_v1, ValidatingWebhookConfiguration), name_rule_subdomain,
	  KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_webhooks, .check = check_webhooks, .check_update = check_webhooks_update },
	{ TYPE(admissionregistration_v1, MutatingWebhookConfiguration), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_mutating_webhooks, .check = check_webhooks, .check_update = check_webhooks_update },
	{ TYPE(admissionregistration_v1, ValidatingAdmissionPolicy), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_admission_policy, .check = check_validating_policy,
	  .check_update = check_validating_policy_update,
	  .check_subresource = check_validating_policy_status, .prepare_update = prepare_status_only },
	{ TYPE(admissionregistration_v1, ValidatingAdmissionPolicyBinding), name_rule_subdomain,
	  KIND_OWN_META | KIND_GENERATION, .defaults = default_admission_binding, .check = check_validating_binding },
	{ TYPE(admissionregistration_v1, MutatingAdmissionPolicy), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_admission_policy, .check = check_mutating_policy,
	  .check_update = check_mutating_policy_update },
	{ TYPE(admissionregistration_v1, MutatingAdmissionPolicyBinding), name_rule_subdomain,
	  KIND_OWN_META | KIND_GENERATION, .defaults = default_admission_binding, .check = check_mutating_binding },
	{ TYPE(apiextensions_v1, CustomResourceDefinition), .flags = KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_crd, .check = check_crd, .check_update = check_crd_update,
	  .check_subresource = check_crd_status, .prepare = prepare_crd, .prepare_update = prepare_crd_update },
	{ TYPE(apiregistration_v1, APIService), .flags = KIND_OWN_META, .defaults = default_api_service,
	  .check = check_api_service, .check_update = check_api_service_update,
	  .check_subresource = check_api_service_status, .prepare = prepare_api_service,
	  .prepare_update = prepare_status_only },
	{ TYPE(resource_v1, ResourceClaim), name_rule_subdomain, KIND_OWN_META, .defaults = default_resource_claim,
	  .check = check_resource_claim, .check_update = check_resource_claim_update,
	  .check_subresource = check_resource_claim_status, .prepare_update = prepare_resource_claim_update },
	{ TYPE(resource_v1, ResourceClaimTemplate), name_rule_subdomain, KIND_OWN_META, .defaults = default_claim_template,
	  .check = check_claim_template, .check_update = check_claim_template_update },
	{ TYPE(resource_v1, ResourceSlice), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_resource_slice, .check = check_resource_slice,
	  .check_update = check_resource_slice_update },
	{ TYPE(resource_v1, DeviceClass), name_rule_long, KIND_OWN_META | KIND_GENERATION, .check = check_device_class,
	  .check_update = check_device_class_update },
	{ TYPE(resource_v1beta2, DeviceTaintRule), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_taint_rule, .check = check_taint_rule, .check_update = check_taint_rule_update,
	  .check_subresource = check_taint_rule_status },
	{ TYPE(resource_v1alpha3, ResourcePoolStatusRequest), name_rule_subdomain, .flags = KIND_DECLARATIVE },
	{ TYPE(scheduling_v1alpha2, PodGroup), name_rule_subdomain, KIND_DECLARATIVE,
	  .check_subresource = check_pod_group_status },
	{ TYPE(scheduling_v1alpha2, Workload), name_rule_subdomain, .flags = KIND_DECLARATIVE },
	{ TYPE(storagemigration_v1beta1, StorageVersionMigration), name_rule_subdomain, KIND_OWN_META,
	  .check = check_migration, .check_update = check_migration_update,
	  .check_subresource = check_migration_status },
	{ 0 },
};
