/*
 * HorizontalPodAutoscaler. Its version 1 has one metric in a field of its own; it is checked in the form that it has in
 * version 2, so errors name spec.metrics as Kubernetes' do.
 */
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "machinery/validate_groups.h"

enum { WINDOW_SECONDS_MAX = 3600, PERIOD_SECONDS_MAX = 1800 };

/* What an update tolerates because the object had it before. */
struct hpa_before {
	bool same_target, bad_object_version, scales_to_zero;
};

/* What is wrong with an apiVersion, or nothing. */
static str api_version_error(struct arena *a, str version, bool may_be_core)
{
	str group, rest;
	bool grouped = str_cut(version, '/', &group, &rest);

	if (grouped && str_chr(rest, '/') >= 0)
		return arena_printf(a, "unexpected GroupVersion string: " STR_FMT, STR_ARG(version));
	if (!may_be_core && (!grouped || group.n == 0))
		return STR("apiVersion must specify API group");
	return STR_NONE;
}

static void check_reference(struct field_errors *e, const struct field_path *at, struct val ref, bool any_version,
			    bool may_be_core)
{
	str version = val_str(ref, apiVersion);

	check_given_name(e, FIELD(at, "kind"), val_str(ref, kind), name_check_path_segment);
	check_given_name(e, FIELD(at, "name"), val_str(ref, name), name_check_path_segment);
	str wrong = any_version ? STR_NONE : api_version_error(e->arena, version, may_be_core);
	if (wrong.n)
		field_invalid(e, FIELD(at, "apiVersion"), VAL_STR(version), STR_FMT, STR_ARG(wrong));
}

/* ---- metrics ---- */

static void check_target(struct field_errors *e, const struct field_path *at, struct val target)
{
	static const str types[] = { STR_INIT("Utilization"), STR_INIT("Value"), STR_INIT("AverageValue"), { NULL, 0 } };
	struct val value = val_get(target, value), average = val_get(target, averageValue);
	struct val percent = val_get(target, averageUtilization);
	str type = val_str(target, type);

	if (type.n == 0)
		field_required(e, FIELD(at, "type"), "must specify a metric target type");
	if (!str_in(type, types))
		field_invalid(e, FIELD(at, "type"), VAL_STR(type), "must be either Utilization, Value, or AverageValue");
	if (val_exists(value) && quantity_of(value).nanos <= 0)
		field_invalid(e, FIELD(at, "value"), value, "must be positive");
	if (val_exists(average) && quantity_of(average).nanos <= 0)
		field_invalid(e, FIELD(at, "averageValue"), average, "must be positive");
	if (val_exists(percent) && val_as_int(percent) < 1)
		field_invalid(e, FIELD(at, "averageUtilization"), percent, "must be greater than 0");
}

static void check_metric_name(struct field_errors *e, const struct field_path *at, struct val source)
{
	str name = val_str(source, metric, name);
	if (name.n == 0)
		field_required(e, FIELD(FIELD(at, "metric"), "name"), "must specify a metric name");
	else
		check_name(e, FIELD(FIELD(at, "metric"), "name"), name, name_check_path_segment);
}

static void check_object_source(struct field_errors *e, const struct field_path *at, struct val source,
				const struct hpa_before *before)
{
	struct val target = val_get(source, target);

	check_reference(e, FIELD(at, "describedObject"), val_get(source, describedObject), before->bad_object_version, true);
	check_metric_name(e, at, source);
	check_target(e, FIELD(at, "target"), target);
	if (!val_has(target, value) && !val_has(target, averageValue))
		field_required(e, FIELD(FIELD(at, "target"), "averageValue"),
			       "must set either a target value or averageValue");
}

static void check_external_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	struct val target = val_get(source, target);

	check_metric_name(e, at, source);
	check_target(e, FIELD(at, "target"), target);
	if (!val_has(target, value) && !val_has(target, averageValue))
		field_required(e, FIELD(FIELD(at, "target"), "averageValue"),
			       "must set either a target value for metric or a per-pod target");
	if (val_has(target, value) && val_has(target, averageValue))
		field_forbidden(e, FIELD(FIELD(at, "target"), "value"),
				"may not set both a target value for metric and a per-pod target");
}

static void check_pods_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	check_metric_name(e, at, source);
	check_target(e, FIELD(at, "target"), val_get(source, target));
	if (!val_has(source, target, averageValue))
		field_required(e, FIELD(FIELD(at, "target"), "averageValue"), "must specify a positive target averageValue");
}

static void check_resource_source(struct field_errors *e, const struct field_path *at, struct val source, bool of_container)
{
	struct val target = val_get(source, target);
	str name = val_str(source, name), container = val_str(source, container);

	if (name.n == 0)
		field_required(e, FIELD(at, "name"), "must specify a resource name");
	else if (of_container)
		check_container_resource_name(e, FIELD(at, "name"), name);
	if (of_container && container.n == 0)
		field_required(e, FIELD(at, "container"), "must specify a container");
	else if (of_container)
		check_name(e, FIELD(at, "container"), container, name_check_dns1123_label);
	check_target(e, FIELD(at, "target"), target);
	if (!val_has(target, averageUtilization) && !val_has(target, averageValue))
		field_required(e, FIELD(FIELD(at, "target"), "averageUtilization"),
			       "must set either a target raw value or a target utilization");
	if (val_has(target, averageUtilization) && val_has(target, averageValue))
		field_forbidden(e, FIELD(FIELD(at, "target"), "averageValue"),
				"may not set both a target raw value and a target utilization");
}

/* Types of metrics and their members, in the order in which sources are looked at. */
static const struct source {
	str type;
	uint16_t member;
} sources[] = {
	{ STR_INIT("Object"), A_object },
	{ STR_INIT("External"), A_external },
	{ STR_INIT("Pods"), A_pods },
	{ STR_INIT("Resource"), A_resource },
	{ STR_INIT("ContainerResource"), A_containerResource },
};

static void check_source(struct field_errors *e, const struct field_path *at, atom member, struct val source,
			 const struct hpa_before *before)
{
	if (member == A_object)
		check_object_source(e, at, source, before);
	else if (member == A_external)
		check_external_source(e, at, source);
	else if (member == A_pods)
		check_pods_source(e, at, source);
	else
		check_resource_source(e, at, source, member == A_containerResource);
}

static void check_metric(struct field_errors *e, const struct field_path *at, struct val metric,
			 const struct hpa_before *before)
{
	static const str types[] = { STR_INIT("ContainerResource"), STR_INIT("External"), STR_INIT("Object"),
				     STR_INIT("Pods"), STR_INIT("Resource"), { NULL, 0 } };
	str type = val_str(metric, type);
	size_t found = 0;

	if (type.n == 0)
		field_required(e, FIELD(at, "type"), "must specify a metric source type");
	check_one_of(e, FIELD(at, "type"), type, types);
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		struct val source = val_member(metric, sources[i].member);
		if (val_exists(source) && found++ == 0)
			check_source(e, FIELD_STR(at, atom_str(sources[i].member)), sources[i].member, source, before);
	}
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		if (str_eq(sources[i].type, type) && !val_exists(val_member(metric, sources[i].member)))
			field_required(e, FIELD_STR(at, atom_str(sources[i].member)),
				       "must populate information for the given metric source");
	check_one_of(e, FIELD(at, "type"), type, types);
	for (size_t i = 0; i < ARRAY_LEN(sources) && found != 1; i++)
		if (!str_eq(sources[i].type, type) && val_exists(val_member(metric, sources[i].member)))
			field_forbidden(e, FIELD_STR(at, atom_str(sources[i].member)),
					"must populate the given metric source only");
}

static void check_metrics(struct field_errors *e, const struct field_path *at, struct val metrics, struct val min,
			  const struct hpa_before *before)
{
	bool from_outside = false;
	size_t i = 0;

	VAL_EACH(metric, metrics) {
		str type = val_str(*metric, type);
		check_metric(e, FIELD_INDEX(at, i++), *metric, before);
		from_outside |= str_eq(type, STR("Object")) || str_eq(type, STR("External"));
	}
	if (val_exists(min) && val_as_int(min) == 0 && !from_outside)
		field_forbidden(e, at,
				"must specify at least one Object or External metric to support scaling to zero replicas");
}

/* ---- behavior ---- */

static void check_scaling_policy(struct field_errors *e, const struct field_path *at, struct val policy)
{
	static const str types[] = { STR_INIT("Percent"), STR_INIT("Pods"), { NULL, 0 } };
	int64_t period = val_int(policy, periodSeconds);

	check_one_of(e, FIELD(at, "type"), val_str(policy, type), types);
	if (val_int(policy, value) <= 0)
		field_invalid(e, FIELD(at, "value"), shown_int(val_get(policy, value)), "must be greater than zero");
	if (period <= 0)
		field_invalid(e, FIELD(at, "periodSeconds"), val_of_int(period), "must be greater than zero");
	if (period > PERIOD_SECONDS_MAX)
		field_invalid(e, FIELD(at, "periodSeconds"), val_of_int(period), "must be less than or equal to %d",
			      PERIOD_SECONDS_MAX);
}

static void check_scaling_rules(struct field_errors *e, const struct field_path *at, struct val rules)
{
	static const str select[] = { STR_INIT("Disabled"), STR_INIT("Max"), STR_INIT("Min"), { NULL, 0 } };
	struct val window = val_get(rules, stabilizationWindowSeconds), tolerance = val_get(rules, tolerance);
	size_t i = 0;

	if (!val_exists(rules))
		return;
	if (val_as_int(window) < 0)
		field_invalid(e, FIELD(at, "stabilizationWindowSeconds"), window, "must be greater than or equal to zero");
	if (val_as_int(window) > WINDOW_SECONDS_MAX)
		field_invalid(e, FIELD(at, "stabilizationWindowSeconds"), window, "must be less than or equal to %d",
			      WINDOW_SECONDS_MAX);
	if (val_has(rules, selectPolicy))
		check_one_of(e, FIELD(at, "selectPolicy"), val_str(rules, selectPolicy), select);
	if (val_len(val_get(rules, policies)) == 0)
		field_required(e, FIELD(at, "policies"), "must specify at least one Policy");
	VAL_EACH(policy, val_get(rules, policies))
		check_scaling_policy(e, FIELD_INDEX(FIELD(at, "policies"), i++), *policy);
	if (quantity_of(tolerance).nanos < 0)
		field_invalid(e, FIELD(at, "tolerance"), tolerance, "must be greater than or equal to 0");
}

/* ---- HorizontalPodAutoscaler ---- */

static struct val metrics_of(struct arena *a, struct val spec)
{
	struct val percent = val_get(spec, targetCPUUtilizationPercentage);
	if (!val_exists(percent))
		return val_get(spec, metrics);
	struct val target = OBJECT(a, F(type, VAL_LIT("Utilization")), F(averageUtilization, percent));
	struct val resource = OBJECT(a, F(name, VAL_LIT("cpu")), F(target, target));
	return LIST(a, OBJECT(a, F(type, VAL_LIT("Resource")), F(resource, resource)));
}

static void check_spec(struct field_errors *e, struct val spec, const struct hpa_before *before)
{
	const struct field_path *at = FIELD(NULL, "spec"), *at_max = FIELD(at, "maxReplicas");
	struct val min = val_get(spec, minReplicas), target = val_get(spec, scaleTargetRef);
	int64_t max = val_int(spec, maxReplicas), least = before->scales_to_zero ? 0 : 1;

	if (val_exists(min) && val_as_int(min) < least)
		field_invalid(e, FIELD(at, "minReplicas"), min, "must be greater than or equal to %d", (int)least);
	if (max == 0)
		field_required(e, at_max, "must be set and greater than 0");
	else if (max < 0)
		field_invalid(e, at_max, val_of_int(max), "must be greater than or equal to 1");
	if (val_exists(min) && max < val_as_int(min))
		field_invalid(e, at_max, val_of_int(max), "must be greater than or equal to `minReplicas`");
	check_reference(e, FIELD(at, "scaleTargetRef"), target, before->same_target,
			str_eq(val_str(target, kind), STR("ReplicationController")));
	check_metrics(e, FIELD(at, "metrics"), metrics_of(e->arena, spec), min, before);
	check_scaling_rules(e, FIELD(FIELD(at, "behavior"), "scaleUp"), val_get(spec, behavior, scaleUp));
	check_scaling_rules(e, FIELD(FIELD(at, "behavior"), "scaleDown"), val_get(spec, behavior, scaleDown));
}

void check_autoscaler(struct field_errors *e, struct val autoscaler)
{
	check_meta(e, autoscaler, true, name_rule_subdomain);
	check_spec(e, val_get(autoscaler, spec), &(struct hpa_before){ 0 });
}

void check_autoscaler_update(struct field_errors *e, struct val autoscaler, struct val old)
{
	struct val target = val_get(autoscaler, spec, scaleTargetRef), old_target = val_get(old, spec, scaleTargetRef);
	struct val old_min = val_get(old, spec, minReplicas);
	struct hpa_before before = {
		.same_target = str_eq(val_str(target, apiVersion), val_str(old_target, apiVersion)) &&
			       str_eq(val_str(target, kind), val_str(old_target, kind)),
		.scales_to_zero = val_exists(old_min) && val_as_int(old_min) == 0,
	};

	VAL_EACH(metric, val_get(old, spec, metrics))
		if (str_eq(val_str(*metric, type), STR("Object")) && val_has(*metric, object)) {
			str version = val_str(*metric, object, describedObject, apiVersion);
			before.bad_object_version |= api_version_error(e->arena, version, true).n > 0;
		}
	check_meta_update(e, autoscaler, old);
	check_spec(e, val_get(autoscaler, spec), &before);
}

void check_autoscaler_status(struct field_errors *e, str subresource, struct val autoscaler, struct val old)
{
	const struct field_path *at = FIELD(NULL, "status");

	(void)subresource;
	check_meta_update(e, autoscaler, old);
	check_non_negative(e, FIELD(at, "currentReplicas"), val_get(autoscaler, status, currentReplicas));
	check_non_negative(e, FIELD(at, "desiredReplicas"), val_get(autoscaler, status, desiredReplicas));
}
