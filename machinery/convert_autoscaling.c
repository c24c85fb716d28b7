/*
 * HorizontalPodAutoscaler: version 1 has fields for one metric only, the utilisation of the CPU. All else of version 2
 * travels in annotations, as JSON, and comes back from there: metrics and conditions in forms that version 1 had once
 * (all amounts beside each other, where version 2 has a target), the behavior in that of Kubernetes' internal types.
 */
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "machinery/convert_priv.h"
#include "machinery/validate_priv.h"

enum { DEFAULT_CPU_PERCENT = 80, ANNOTATION_MAX = 4 << 20 };

#define ANNOTATION(name) STR_INIT("autoscaling.alpha.kubernetes.io/" name)
static const str metrics_annotation = ANNOTATION("metrics");
static const str statuses_annotation = ANNOTATION("current-metrics");
static const str conditions_annotation = ANNOTATION("conditions");
static const str behavior_annotation = ANNOTATION("behavior");
static const str scale_down_annotation = ANNOTATION("scale-down-tolerance");
static const str scale_up_annotation = ANNOTATION("scale-up-tolerance");

/* What is in them. */
static const struct type *const metric_type = TYPE(autoscaling_v1, MetricSpec);
static const struct type *const status_type = TYPE(autoscaling_v1, MetricStatus);
static const struct type *const condition_type = TYPE(autoscaling_v1, HorizontalPodAutoscalerCondition);

static bool is_ours(str annotation)
{
	const str ours[] = { metrics_annotation, statuses_annotation, conditions_annotation, behavior_annotation,
			     scale_down_annotation, scale_up_annotation, STR_NONE };
	return str_in(annotation, ours);
}

static struct val annotations_without_ours(struct arena *a, struct val annotations)
{
	struct val_builder b = val_builder(a);
	VAL_EACH_MEMBER(m, annotations)
		if (!is_ours(atom_str(m->key)))
			val_add_member(&b, m->key, m->val);
	return val_end_object(&b);
}

/* ---- metrics: version 2 to the old form ---- */

static struct val old_object_source(struct arena *a, struct val m)
{
	return OBJECT(a, F(target, val_get(m, describedObject)), F(metricName, val_get(m, metric, name)),
		      F(targetValue, val_get(m, target, value)), F(selector, val_get(m, metric, selector)),
		      F(averageValue, val_get(m, target, averageValue)));
}

static struct val old_pods_source(struct arena *a, struct val m)
{
	return OBJECT(a, F(metricName, val_get(m, metric, name)), F(targetAverageValue, val_get(m, target, averageValue)),
		      F(selector, val_get(m, metric, selector)));
}

static struct val old_resource_source(struct arena *a, struct val m)
{
	return OBJECT(a, F(name, val_get(m, name)), F(targetAverageUtilization, val_get(m, target, averageUtilization)),
		      F(targetAverageValue, val_get(m, target, averageValue)), F(container, val_get(m, container)));
}

static struct val old_external_source(struct arena *a, struct val m)
{
	return OBJECT(a, F(metricName, val_get(m, metric, name)), F(metricSelector, val_get(m, metric, selector)),
		      F(targetValue, val_get(m, target, value)), F(targetAverageValue, val_get(m, target, averageValue)));
}

static struct val old_object_status(struct arena *a, struct val m)
{
	return OBJECT(a, F(target, val_get(m, describedObject)), F(metricName, val_get(m, metric, name)),
		      F(currentValue, val_get(m, current, value)), F(selector, val_get(m, metric, selector)),
		      F(averageValue, val_get(m, current, averageValue)));
}

static struct val old_pods_status(struct arena *a, struct val m)
{
	return OBJECT(a, F(metricName, val_get(m, metric, name)), F(currentAverageValue, val_get(m, current, averageValue)),
		      F(selector, val_get(m, metric, selector)));
}

static struct val old_resource_status(struct arena *a, struct val m)
{
	return OBJECT(a, F(name, val_get(m, name)), F(currentAverageUtilization, val_get(m, current, averageUtilization)),
		      F(currentAverageValue, val_get(m, current, averageValue)), F(container, val_get(m, container)));
}

static struct val old_external_status(struct arena *a, struct val m)
{
	return OBJECT(a, F(metricName, val_get(m, metric, name)), F(metricSelector, val_get(m, metric, selector)),
		      F(currentValue, val_get(m, current, value)), F(currentAverageValue, val_get(m, current, averageValue)));
}

/* ---- and back ---- */

/* What was no pointer in the old form has a value in any case. */
static struct val amount(struct val quantity) { return val_exists(quantity) ? quantity : VAL_LIT("0"); }

static bool is_zero_amount(struct val quantity) { return str_eq(val_as_str(amount(quantity)), STR("0")); }

static struct val metric_of(struct arena *a, struct val m, struct val selector)
{
	return OBJECT(a, F(name, val_get(m, metricName)), F(selector, selector));
}

static struct val new_object_source(struct arena *a, struct val m)
{
	struct val average = val_get(m, averageValue), value = val_get(m, targetValue);
	bool averaged = val_exists(average);

	if (averaged && is_zero_amount(value))
		value = VAL_EMPTY;
	else
		value = amount(value);
	struct val target = OBJECT(a, F(type, averaged ? VAL_LIT("AverageValue") : VAL_LIT("Value")), F(value, value),
				   F(averageValue, average));
	return OBJECT(a, F(describedObject, val_get(m, target)), F(target, target),
		      F(metric, metric_of(a, m, val_get(m, selector))));
}

static struct val new_pods_source(struct arena *a, struct val m)
{
	struct val average = amount(val_get(m, targetAverageValue));
	struct val target = OBJECT(a, F(type, VAL_LIT("AverageValue")), F(averageValue, average));
	return OBJECT(a, F(metric, metric_of(a, m, val_get(m, selector))), F(target, target));
}

static struct val new_resource_source(struct arena *a, struct val m)
{
	struct val utilization = val_get(m, targetAverageUtilization);
	struct val target = OBJECT(a, F(type, val_exists(utilization) ? VAL_LIT("Utilization") : VAL_LIT("AverageValue")),
				   F(averageValue, val_get(m, targetAverageValue)), F(averageUtilization, utilization));
	return OBJECT(a, F(name, val_get(m, name)), F(target, target), F(container, val_get(m, container)));
}

static struct val new_external_source(struct arena *a, struct val m)
{
	struct val value = val_get(m, targetValue);
	struct val target = OBJECT(a, F(type, val_exists(value) ? VAL_LIT("Value") : VAL_LIT("AverageValue")),
				   F(value, value), F(averageValue, val_get(m, targetAverageValue)));
	return OBJECT(a, F(metric, metric_of(a, m, val_get(m, metricSelector))), F(target, target));
}

static struct val new_object_status(struct arena *a, struct val m)
{
	struct val value = amount(val_get(m, currentValue));
	struct val current = OBJECT(a, F(value, value), F(averageValue, val_get(m, averageValue)));
	return OBJECT(a, F(metric, metric_of(a, m, val_get(m, selector))), F(current, current),
		      F(describedObject, val_get(m, target)));
}

static struct val new_pods_status(struct arena *a, struct val m)
{
	struct val current = OBJECT(a, F(averageValue, amount(val_get(m, currentAverageValue))));
	return OBJECT(a, F(metric, metric_of(a, m, val_get(m, selector))), F(current, current));
}

static struct val new_resource_status(struct arena *a, struct val m)
{
	struct val current = OBJECT(a, F(averageValue, amount(val_get(m, currentAverageValue))),
				    F(averageUtilization, val_get(m, currentAverageUtilization)));
	return OBJECT(a, F(name, val_get(m, name)), F(current, current), F(container, val_get(m, container)));
}

static struct val new_external_status(struct arena *a, struct val m)
{
	struct val value = amount(val_get(m, currentValue));
	struct val current = OBJECT(a, F(value, value), F(averageValue, val_get(m, currentAverageValue)));
	return OBJECT(a, F(metric, metric_of(a, m, val_get(m, metricSelector))), F(current, current));
}

/* ---- lists of them ---- */

/* A metric is its type and one member per source. */
struct metric_rules {
	convert_rule *object, *pods, *resource, *external;
};

#define METRIC_RULES(form, part)                                                                             \
	static const struct metric_rules form##_##part = { form##_object_##part, form##_pods_##part,         \
							   form##_resource_##part, form##_external_##part }
METRIC_RULES(old, source);
METRIC_RULES(new, source);
METRIC_RULES(old, status);
METRIC_RULES(new, status);

static struct val member_by(struct arena *a, struct val metric, atom name, convert_rule *rule)
{
	struct val m = val_member(metric, name);
	return val_exists(m) ? rule(a, m) : VAL_EMPTY;
}

static struct val metric_convert(struct arena *a, struct val metric, const struct metric_rules *rules)
{
	return OBJECT(a, F(type, val_get(metric, type)), F(object, member_by(a, metric, A_object, rules->object)),
		      F(pods, member_by(a, metric, A_pods, rules->pods)),
		      F(resource, member_by(a, metric, A_resource, rules->resource)),
		      F(containerResource, member_by(a, metric, A_containerResource, rules->resource)),
		      F(external, member_by(a, metric, A_external, rules->external)));
}

static bool is_cpu(struct val metric)
{
	return str_eq(val_str(metric, type), STR("Resource")) && str_eq(val_str(metric, resource, name), STR("cpu"));
}

static bool is_cpu_target(struct val metric)
{
	return is_cpu(metric) && val_has(metric, resource, target, averageUtilization);
}

/* ---- annotations ---- */

/* Sets an annotation to the JSON of a list whose items are of this type; nothing for an empty one. */
static struct val with_list(struct arena *a, struct val annotations, str name, struct val list, const struct type *type)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(ANNOTATION_MAX);
	const char *separator = "[";

	if (!val_len(list))
		return annotations;
	VAL_EACH(item, list) {
		struct val canonical;
		buf_add(&b, str_of(separator));
		if (val_canonical(a, *item, type, NULL, &canonical, NULL) < 0 ||
		    json_encode(&b, canonical, &(struct json_encode_options){ .type = type }, NULL) < 0)
			return annotations;
		separator = ",";
	}
	buf_addc(&b, ']');
	return val_put(a, annotations, atom_make(a, name), VAL_STR(arena_str(a, buf_str(&b))));
}

static struct val with_behavior(struct arena *a, struct val annotations, struct val behavior)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(ANNOTATION_MAX);

	if (!val_exists(behavior))
		return annotations;
	struct val form = internal_form(a, TYPE(autoscaling_v2, HorizontalPodAutoscalerBehavior), behavior);
	if (json_encode(&b, form, &(struct json_encode_options){ 0 }, NULL) < 0)
		return annotations;
	return val_put(a, annotations, atom_make(a, behavior_annotation), VAL_STR(arena_str(a, buf_str(&b))));
}

static bool annotation_tree(struct arena *a, struct val annotations, str name, struct val *ret)
{
	struct val text = val_find(annotations, name);
	struct json_decode_options options = { .sort_keys = true };
	return val_exists(text) && json_decode(a, val_as_str(text), &options, ret, NULL) >= 0;
}

/* The list in an annotation. False: there is none, or it is not what it should be, which Kubernetes passes over. */
static bool annotation_list(struct arena *a, struct val annotations, str name, const struct type *type, struct val *ret)
{
	struct val list;
	struct val_builder b = val_builder(a);

	if (!annotation_tree(a, annotations, name, &list) || !(val_is(list, VAL_LIST) || val_is(list, VAL_NULL)))
		return false;
	VAL_EACH(item, list) {
		struct val typed = VAL_EMPTY_OBJECT;
		if (!val_is_nil(*item) && val_canonical(a, *item, type, NULL, &typed, NULL) < 0)
			return false;
		val_add_item(&b, typed);
	}
	*ret = val_end_list(&b);
	return true;
}

/* Go's names with a small first letter, as far down as a behavior goes. */
static struct val published_names(struct arena *a, struct val v, unsigned depth)
{
	enum { BEHAVIOR_DEPTH = 4 };
	struct val_builder b = val_builder(a);

	if (depth > BEHAVIOR_DEPTH || v.type < VAL_LIST)
		return v;
	if (v.type == VAL_LIST) {
		VAL_EACH(item, v)
			val_add_item(&b, published_names(a, *item, depth + 1));
		return val_end_list(&b);
	}
	VAL_EACH_MEMBER(m, v) {
		str name = arena_str(a, atom_str(m->key));
		if (name.n)
			((char *)(uintptr_t)name.p)[0] |= 0x20;
		val_add_member(&b, atom_make(a, name), published_names(a, m->val, depth + 1));
	}
	return val_end_object(&b);
}

static struct val annotation_behavior(struct arena *a, struct val annotations)
{
	struct val v;
	const struct type *type = TYPE(autoscaling_v2, HorizontalPodAutoscalerBehavior);

	if (!annotation_tree(a, annotations, behavior_annotation, &v))
		return VAL_EMPTY;
	if (!val_is(v, VAL_OBJECT) || val_canonical(a, published_names(a, v, 0), type, NULL, &v, NULL) < 0)
		return VAL_EMPTY;
	return v.n ? v : VAL_EMPTY;
}

/* ---- the object ---- */

static struct val cpu_metric(struct arena *a, struct val percent)
{
	struct val target = OBJECT(a, F(type, VAL_LIT("Utilization")), F(averageUtilization, percent));
	return OBJECT(a, F(type, VAL_LIT("Resource")), F(resource, OBJECT(a, F(name, VAL_LIT("cpu")), F(target, target))));
}

static struct val new_metrics(struct arena *a, struct val hpa, struct val annotations)
{
	struct val cpu = val_get(hpa, spec, targetCPUUtilizationPercentage), others = VAL_EMPTY_LIST;
	struct val_builder b = val_builder(a);

	(void)annotation_list(a, annotations, metrics_annotation, metric_type, &others);
	VAL_EACH(m, others)
		val_add_item(&b, metric_convert(a, *m, &new_source));
	if (val_exists(cpu))
		val_add_item(&b, cpu_metric(a, cpu));
	if (!b.n)
		val_add_item(&b, cpu_metric(a, val_of_int(DEFAULT_CPU_PERCENT)));
	return val_end_list(&b);
}

static struct val new_statuses(struct arena *a, struct val hpa, struct val annotations)
{
	struct val cpu = val_get(hpa, status, currentCPUUtilizationPercentage), list = VAL_EMPTY_LIST;
	struct val_builder b = val_builder(a);

	if (annotation_list(a, annotations, statuses_annotation, status_type, &list)) {
		VAL_EACH(m, list)
			val_add_item(&b, metric_convert(a, *m, &new_status));
	} else if (val_exists(cpu)) {
		struct val current = OBJECT(a, F(averageUtilization, cpu));
		struct val resource = OBJECT(a, F(name, VAL_LIT("cpu")), F(current, current));
		val_add_item(&b, OBJECT(a, F(type, VAL_LIT("Resource")), F(resource, resource)));
	}
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

struct val convert_autoscaler_v1_to_v2(struct arena *a, struct val hpa)
{
	struct val annotations = val_get(hpa, metadata, annotations), conditions;
	struct val v = val_with(a, hpa, new_metrics(a, hpa, annotations), spec, metrics);

	v = val_with(a, v, annotation_behavior(a, annotations), spec, behavior);
	v = val_with(a, v, new_statuses(a, hpa, annotations), status, currentMetrics);
	if (annotation_list(a, annotations, conditions_annotation, condition_type, &conditions) && conditions.n)
		v = val_with(a, v, conditions, status, conditions);
	if (!val_exists(annotations))
		return v;
	return val_with(a, v, annotations_without_ours(a, annotations), metadata, annotations);
}

struct val convert_autoscaler_v2_to_v1(struct arena *a, struct val hpa)
{
	struct val annotations = annotations_without_ours(a, val_get(hpa, metadata, annotations));
	struct val target = VAL_EMPTY, current = VAL_EMPTY;
	struct val_builder others = val_builder(a), statuses = val_builder(a);

	VAL_EACH(m, val_get(hpa, spec, metrics)) {
		if (!is_cpu_target(*m))
			val_add_item(&others, metric_convert(a, *m, &old_source));
		else if (!val_exists(target))
			target = val_get(*m, resource, target, averageUtilization);
	}
	VAL_EACH(m, val_get(hpa, status, currentMetrics)) {
		if (is_cpu(*m) && val_has(*m, resource, current, averageUtilization))
			current = val_get(*m, resource, current, averageUtilization);
		val_add_item(&statuses, metric_convert(a, *m, &old_status));
	}
	annotations = with_list(a, annotations, metrics_annotation, val_end_list(&others), metric_type);
	annotations = with_list(a, annotations, statuses_annotation, val_end_list(&statuses), status_type);
	annotations = with_behavior(a, annotations, val_get(hpa, spec, behavior));
	annotations = with_list(a, annotations, conditions_annotation, val_get(hpa, status, conditions), condition_type);
	struct val v = val_with(a, hpa, target, spec, targetCPUUtilizationPercentage);
	if (val_exists(current))
		v = val_with(a, v, current, status, currentCPUUtilizationPercentage);
	return val_with(a, v, annotations.n ? annotations : VAL_EMPTY, metadata, annotations);
}
