/* Defaults of RBAC, scheduling, node, flow control, autoscaling and authentication. */
#include "codec/atoms.h"
#include "machinery/validate_groups.h"

/* ---- RBAC ---- */

static struct val default_subject(struct arena *a, struct val subject)
{
	str kind = val_str(subject, kind);
	if (str_eq(kind, STR("User")) || str_eq(kind, STR("Group")))
		subject = default_member(a, subject, A_apiGroup, VAL_LIT("rbac.authorization.k8s.io"));
	return subject;
}

struct val default_role_binding(struct arena *a, struct val binding)
{
	if (val_str(binding, roleRef, apiGroup).n == 0)
		binding = val_with(a, binding, VAL_LIT("rbac.authorization.k8s.io"), roleRef, apiGroup);
	return default_within(a, binding, A_subjects, default_subject);
}

struct val default_token_request(struct arena *a, struct val request)
{
	if (!val_has(request, spec, expirationSeconds))
		request = val_with(a, request, val_of_int(3600), spec, expirationSeconds);
	return request;
}

/* ---- classes ---- */

struct val default_priority_class(struct arena *a, struct val class)
{
	return default_member(a, class, A_preemptionPolicy, VAL_LIT("PreemptLowerPriority"));
}

static struct val default_overhead(struct arena *a, struct val overhead)
{
	return default_within(a, overhead, A_podFixed, default_resource_list);
}

struct val default_runtime_class(struct arena *a, struct val class)
{
	return default_within(a, class, A_overhead, default_overhead);
}

/* ---- flow control ---- */

struct val default_flow_schema(struct arena *a, struct val schema)
{
	if (val_int(schema, spec, matchingPrecedence) == 0)
		schema = val_with(a, schema, val_of_int(1000), spec, matchingPrecedence);
	return schema;
}

static struct val default_queuing(struct arena *a, struct val queuing)
{
	queuing = default_member(a, queuing, A_queues, val_of_int(64));
	queuing = default_member(a, queuing, A_handSize, val_of_int(8));
	return default_member(a, queuing, A_queueLengthLimit, val_of_int(50));
}

static struct val default_limit_response(struct arena *a, struct val response)
{
	return default_within(a, response, A_queuing, default_queuing);
}

static struct val default_limited(struct arena *a, struct val limited)
{
	limited = default_member(a, limited, A_nominalConcurrencyShares, val_of_int(30));
	limited = default_member(a, limited, A_lendablePercent, val_of_int(0));
	return default_within(a, limited, A_limitResponse, default_limit_response);
}

static struct val default_exempt(struct arena *a, struct val exempt)
{
	exempt = default_member(a, exempt, A_nominalConcurrencyShares, val_of_int(0));
	return default_member(a, exempt, A_lendablePercent, val_of_int(0));
}

static struct val default_level_spec(struct arena *a, struct val spec)
{
	spec = default_within(a, spec, A_limited, default_limited);
	return default_within(a, spec, A_exempt, default_exempt);
}

struct val default_priority_level(struct arena *a, struct val level)
{
	return default_within(a, level, A_spec, default_level_spec);
}

/* ---- HorizontalPodAutoscaler ---- */

enum { CPU_PERCENT = 80, SCALING_PERIOD = 15 };

static struct val scaling_policy(struct arena *a, const char *type, int value)
{
	return OBJECT(a, F(type, VAL_STR(str_of(type))), F(value, val_of_int(value)),
		      F(periodSeconds, val_of_int(SCALING_PERIOD)));
}

/* Either direction may change all pods at once; upwards 4 pods are always allowed, and there is no waiting. */
static struct val default_behavior(struct arena *a, struct val behavior)
{
	struct val up = val_get(behavior, scaleUp), down = val_get(behavior, scaleDown);
	struct val percent = scaling_policy(a, "Percent", 100);

	up = default_member(a, up, A_stabilizationWindowSeconds, val_of_int(0));
	up = default_member(a, up, A_selectPolicy, VAL_LIT("Max"));
	up = default_member(a, up, A_policies, LIST(a, scaling_policy(a, "Pods", 4), percent));
	down = default_member(a, down, A_selectPolicy, VAL_LIT("Max"));
	down = default_member(a, down, A_policies, LIST(a, percent));
	return val_with(a, val_with(a, behavior, up, scaleUp), down, scaleDown);
}

static bool has_metrics_annotation(struct val autoscaler)
{
	return val_exists(val_find(val_get(autoscaler, metadata, annotations),
				   STR("autoscaling.alpha.kubernetes.io/metrics")));
}

struct val default_autoscaler(struct arena *a, struct val autoscaler)
{
	struct val spec = default_member(a, val_get(autoscaler, spec), A_minReplicas, val_of_int(1));

	if (str_eq(val_str(autoscaler, apiVersion), STR("autoscaling/v1"))) {
		if (!has_metrics_annotation(autoscaler))
			spec = default_member(a, spec, A_targetCPUUtilizationPercentage, val_of_int(CPU_PERCENT));
		return val_with(a, autoscaler, spec, spec);
	}
	if (val_len(val_get(spec, metrics)) == 0) {
		struct val target = OBJECT(a, F(type, VAL_LIT("Utilization")),
					   F(averageUtilization, val_of_int(CPU_PERCENT)));
		struct val resource = OBJECT(a, F(name, VAL_LIT("cpu")), F(target, target));
		spec = val_with(a, spec, LIST(a, OBJECT(a, F(type, VAL_LIT("Resource")), F(resource, resource))), metrics);
	}
	spec = default_within(a, spec, A_behavior, default_behavior);
	return val_with(a, autoscaler, spec, spec);
}
