/* Quotas, disruption budgets, priority classes, autoscalers. */
#include "kubectl/describe.h"
#include "machinery/selector.h"

int ktl_describe_quota(struct ktl_page *p, struct val q)
{
	struct val scopes = val_get(q, spec, scopes);
	ktl_say_name(p, q);
	if (val_len(scopes))
		ktl_say(p, 0, "Scopes:\t" STR_FMT "\n", STR_ARG(ktl_join(p->k, scopes, ", ")));
	ktl_say(p, 0, "Resource\tUsed\tHard\n--------\t----\t----\n");
	VAL_EACH_MEMBER(m, val_get(q, status, hard)) {
		str used = val_as_str(val_member(val_get(q, status, used), m->key));
		ktl_say(p, 0, STR_FMT "\t" STR_FMT "\t" STR_FMT "\n", STR_ARG(atom_str(m->key)), STR_ARG(used.n ? used : STR("0")), STR_ARG(val_as_str(m->val)));
	}
	return 0;
}

int ktl_describe_disruption_budget(struct ktl_page *p, struct val b)
{
	struct val spec = val_get(b, spec), status = val_get(b, status);
	ktl_say_name(p, b);
	if (val_has(spec, minAvailable))
		ktl_say(p, 0, "Min available:\t" STR_FMT "\n", STR_ARG(ktl_plain(p->k, val_get(spec, minAvailable))));
	else if (val_has(spec, maxUnavailable))
		ktl_say(p, 0, "Max unavailable:\t" STR_FMT "\n", STR_ARG(ktl_plain(p->k, val_get(spec, maxUnavailable))));
	ktl_say(p, 0, "Selector:\t" STR_FMT "\n", STR_ARG(val_has(spec, selector) ? selector_display(&p->k->arena, val_get(spec, selector)) : STR("<unset>")));
	ktl_say(p, 0, "Status:\n");
	ktl_say(p, 2, "Allowed disruptions:\t%lld\n", (long long)val_int(status, disruptionsAllowed));
	ktl_say(p, 2, "Current:\t%lld\n", (long long)val_int(status, currentHealthy));
	ktl_say(p, 2, "Desired:\t%lld\n", (long long)val_int(status, desiredHealthy));
	ktl_say(p, 2, "Total:\t%lld\n", (long long)val_int(status, expectedPods));
	ktl_say_events(p, b, STR("PodDisruptionBudget"));
	return 0;
}

int ktl_describe_priority_class(struct ktl_page *p, struct val c)
{
	ktl_say(p, 0, "Name:\t" STR_FMT "\n", STR_ARG(val_str(c, metadata, name)));
	ktl_say(p, 0, "Value:\t%lld\n", (long long)val_int(c, value));
	ktl_say(p, 0, "GlobalDefault:\t%s\n", val_bool(c, globalDefault) ? "true" : "false");
	ktl_say(p, 0, "PreemptionPolicy:\t" STR_FMT "\n", STR_ARG(val_str(c, preemptionPolicy)));
	ktl_say(p, 0, "Description:\t" STR_FMT "\n", STR_ARG(val_str(c, description)));
	ktl_say(p, 0, "Annotations:\t" STR_FMT "\n", STR_ARG(labels_display(&p->k->arena, val_get(c, metadata, annotations))));
	ktl_say_events(p, c, STR("PriorityClass"));
	return 0;
}

/* ---- autoscalers ---- */

static str or_unknown(struct ktl *k, struct val v) { return val_exists(v) ? ktl_plain(k, v) : STR("<unknown>"); }

/* Of pods, or of one of their containers: an amount, or a part of what they ask for. */
static void say_resource(struct ktl_page *p, struct val metric, struct val now)
{
	struct ktl *k = p->k;
	struct val target = val_get(metric, target), current = val_get(now, current), used = val_get(current, averageUtilization);
	if (val_has(target, averageValue)) {
		ktl_say(p, 0, ":\t" STR_FMT " / " STR_FMT "\n", STR_ARG(or_unknown(k, val_get(current, averageValue))), STR_ARG(val_str(target, averageValue)));
		return;
	}
	ktl_say(p, 1, "(as a percentage of request):\t");
	if (val_exists(used))
		ktl_say(p, 0, "%lld%% (" STR_FMT ")", (long long)val_as_int(used), STR_ARG(ktl_plain(k, val_get(current, averageValue))));
	else
		ktl_say(p, 0, "<unknown>");
	if (val_has(target, averageUtilization))
		ktl_say(p, 0, " / %lld%%\n", (long long)val_int(target, averageUtilization));
	else
		ktl_say(p, 0, " / <auto>\n");
}

/* A value, or what it is per pod. */
static void say_value(struct ktl_page *p, struct val metric, struct val now)
{
	bool average = val_has(metric, target, averageValue);
	atom which = average ? A_averageValue : A_value;
	ktl_say(p, 0, "(target %svalue):\t" STR_FMT " / " STR_FMT "\n", average ? "average " : "",
		STR_ARG(or_unknown(p->k, val_member(val_get(now, current), which))), STR_ARG(val_as_str(val_member(val_get(metric, target), which))));
}

static void say_metric(struct ktl_page *p, struct val metric, struct val now)
{
	struct ktl *k = p->k;
	struct val resource = val_get(metric, resource), container = val_get(metric, containerResource), pods = val_get(metric, pods);
	struct val object = val_get(metric, object), external = val_get(metric, external);
	if (val_exists(resource)) {
		ktl_say(p, 1, "resource " STR_FMT " on pods", STR_ARG(val_str(resource, name)));
		say_resource(p, resource, val_get(now, resource));
	} else if (val_exists(container)) {
		ktl_say(p, 1, "resource " STR_FMT " of container \"" STR_FMT "\" on pods", STR_ARG(val_str(container, name)), STR_ARG(val_str(container, container)));
		say_resource(p, container, val_get(now, containerResource));
	} else if (val_exists(pods)) {
		ktl_say(p, 1, STR_FMT " on pods:\t" STR_FMT " / " STR_FMT "\n", STR_ARG(ktl_quote(k, val_str(pods, metric, name))),
			STR_ARG(or_unknown(k, val_get(now, pods, current, averageValue))), STR_ARG(val_str(pods, target, averageValue)));
	} else if (val_exists(object)) {
		ktl_say(p, 1, "\"" STR_FMT "\" on " STR_FMT "/" STR_FMT " ", STR_ARG(val_str(object, metric, name)), STR_ARG(val_str(object, describedObject, kind)),
			STR_ARG(val_str(object, describedObject, name)));
		say_value(p, object, val_get(now, object));
	} else if (val_exists(external)) {
		ktl_say(p, 1, STR_FMT " ", STR_ARG(ktl_quote(k, val_str(external, metric, name))));
		say_value(p, external, val_get(now, external));
	} else {
		ktl_say(p, 1, "<unknown metric type " STR_FMT ">\n", STR_ARG(ktl_quote(k, val_str(metric, type))));
	}
}

static void say_behavior(struct ktl_page *p, const char *title, struct val rules)
{
	str select = val_str(rules, selectPolicy);
	if (!val_exists(rules))
		return;
	ktl_say(p, 1, "%s:\n", title);
	if (val_has(rules, stabilizationWindowSeconds))
		ktl_say(p, 2, "Stabilization Window: %lld seconds\n", (long long)val_int(rules, stabilizationWindowSeconds));
	if (!val_len(val_get(rules, policies)))
		return;
	ktl_say(p, 2, "Select Policy: " STR_FMT "\n", STR_ARG(select.n ? select : STR("Max")));
	ktl_say(p, 2, "Policies:\n");
	VAL_EACH(r, val_get(rules, policies))
		ktl_say(p, 3, "- Type: " STR_FMT "\tValue: %lld\tPeriod: %lld seconds\n", STR_ARG(val_str(*r, type)), (long long)val_int(*r, value),
			(long long)val_int(*r, periodSeconds));
}

int ktl_describe_autoscaler(struct ktl_page *p, struct val h)
{
	struct val spec = val_get(h, spec), status = val_get(h, status), conditions = val_get(status, conditions), min = val_get(spec, minReplicas);
	str kind = val_str(spec, scaleTargetRef, kind);
	size_t i = 0;
	ktl_say_name(p, h);
	ktl_say_labels(p, "Labels", val_get(h, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(h, metadata, annotations));
	ktl_say(p, 0, "CreationTimestamp:\t" STR_FMT "\n", STR_ARG(ktl_date(p->k, val_str(h, metadata, creationTimestamp))));
	ktl_say(p, 0, "Reference:\t" STR_FMT "/" STR_FMT "\n", STR_ARG(kind), STR_ARG(val_str(spec, scaleTargetRef, name)));
	ktl_say(p, 0, "Metrics:\t( current / target )\n");
	VAL_EACH(m, val_get(spec, metrics))
		say_metric(p, *m, val_at(val_get(status, currentMetrics), i++));
	ktl_say(p, 0, "Min replicas:\t" STR_FMT "\n", STR_ARG(val_exists(min) ? ktl_plain(p->k, min) : STR("<unset>")));
	ktl_say(p, 0, "Max replicas:\t%lld\n", (long long)val_int(spec, maxReplicas));
	if (val_has(spec, behavior))
		ktl_say(p, 0, "Behavior:\n");
	say_behavior(p, "Scale Up", val_get(spec, behavior, scaleUp));
	say_behavior(p, "Scale Down", val_get(spec, behavior, scaleDown));
	ktl_say(p, 0, STR_FMT " pods:\t%lld current / %lld desired\n", STR_ARG(kind), (long long)val_int(status, currentReplicas),
		(long long)val_int(status, desiredReplicas));
	if (val_len(conditions))
		ktl_say(p, 0, "Conditions:\n  Type\tStatus\tReason\tMessage\n  ----\t------\t------\t-------\n");
	VAL_EACH(c, conditions)
		ktl_say(p, 1, STR_FMT "\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "\n", STR_ARG(val_str(*c, type)), STR_ARG(val_str(*c, status)),
			STR_ARG(val_str(*c, reason)), STR_ARG(val_str(*c, message)));
	ktl_say_events(p, h, STR("HorizontalPodAutoscaler"));
	return 0;
}
