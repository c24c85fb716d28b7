/* apps, batch, autoscaling, policy, scheduling. */
#include "machinery/table_priv.h"

#include "base/clock.h"
#include "codec/time.h"
#include "machinery/selector.h"

/* ---- apps ---- */

static const struct column replica_set[] = {
	NAME,
	REPLICA_COUNTS,
	AGE,
	CONTAINERS(spec, template, spec, containers),
	CONTAINER_IMAGES(spec, template, spec, containers),
	COLUMN("Selector", "string", 1, "Which pods are counted", SELECTOR(spec, selector)),
};

static const struct column daemon_set[] = {
	NAME,
	COLUMN("Desired", "integer", 0, "Nodes that should run the pod", NUMBER(status, desiredNumberScheduled)),
	COLUMN("Current", "integer", 0, "Nodes that have the pod and should", NUMBER(status, currentNumberScheduled)),
	COLUMN("Ready", "integer", 0, "Nodes whose pod is ready", NUMBER(status, numberReady)),
	COLUMN("Up-to-date", "integer", 0, "Nodes whose pod is of the current template", NUMBER(status, updatedNumberScheduled)),
	COLUMN("Available", "integer", 0, "Nodes whose pod is available", NUMBER(status, numberAvailable)),
	COLUMN("Node Selector", "string", 0, "Labels of the nodes that are meant", LABELS(spec, template, spec, nodeSelector)),
	AGE,
	CONTAINERS(spec, template, spec, containers),
	CONTAINER_IMAGES(spec, template, spec, containers),
	COLUMN("Selector", "string", 1, "Which pods are counted", SELECTOR(spec, selector)),
};

static struct val ready_of_desired(const struct row *row)
{
	return cell_printf(row, "%lld/%lld", (long long)val_int(row->object, status, readyReplicas),
			   (long long)val_int(row->object, spec, replicas));
}

static const struct column stateful_set[] = {
	NAME,
	COLUMN("Ready", "string", 0, "Replicas that are ready, of those wanted", CALL(ready_of_desired)),
	AGE,
	CONTAINERS(spec, template, spec, containers),
	CONTAINER_IMAGES(spec, template, spec, containers),
};

static struct val deployment_selector(const struct row *row)
{
	struct selector s;
	if (selector_of_object(row->arena, val_get(row->object, spec, selector), &s, NULL) < 0)
		return VAL_LIT("<invalid>");
	return val_of_str(selector_text(row->arena, &s));
}

static const struct column deployment[] = {
	NAME,
	COLUMN("Ready", "string", 0, "Replicas that are ready, of those wanted", CALL(ready_of_desired)),
	COLUMN("Up-to-date", "string", 0, "Replicas of the current template", NUMBER(status, updatedReplicas)),
	COLUMN("Available", "string", 0, "Replicas that are available", NUMBER(status, availableReplicas)),
	AGE,
	CONTAINERS(spec, template, spec, containers),
	CONTAINER_IMAGES(spec, template, spec, containers),
	COLUMN("Selector", "string", 1, "Which pods are counted", CALL(deployment_selector)),
};

static struct val revision_controller(const struct row *row)
{
	VAL_EACH(owner, val_get(row->object, metadata, ownerReferences)) {
		str group, version, api_version = val_str(*owner, apiVersion);
		if (!val_bool(*owner, controller))
			continue;
		if (!str_cut(api_version, '/', &group, &version))
			group = STR_NONE;
		if (val_str(*owner, kind).n + group.n == 0)
			return val_of_str(val_str(*owner, name));
		str kind = cell_qualified(row->arena, val_str(*owner, kind), group);
		return cell_printf(row, STR_FMT "/" STR_FMT, STR_ARG(cell_lower(row->arena, kind)), STR_ARG(val_str(*owner, name)));
	}
	return VAL_LIT("<none>");
}

static const struct column controller_revision[] = {
	NAME,
	COLUMN("Controller", "string", 0, "Object whose state this is", CALL(revision_controller)),
	COLUMN("Revision", "string", 0, "Number of the revision", NUMBER(revision)),
	AGE,
};

/* ---- batch ---- */

static struct val job_status(const struct row *row)
{
	static const struct {
		str condition;
		bool even_if_deleted;
	} order[] = {
		{ STR_INIT("Complete"), true },       { STR_INIT("Failed"), true },
		{ STR_INIT("Suspended"), false },     { STR_INIT("FailureTarget"), false },
		{ STR_INIT("SuccessCriteriaMet"), false },
	};
	struct val conditions = val_get(row->object, status, conditions);
	bool deleted = cell_is_deleted(row);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if ((!deleted || order[i].even_if_deleted) && cell_condition_is_true(conditions, order[i].condition))
			return val_of_str(order[i].condition);
	return deleted ? VAL_LIT("Terminating") : VAL_LIT("Running");
}

static struct val job_completions(const struct row *row)
{
	long long succeeded = val_int(row->object, status, succeeded), parallelism = val_int(row->object, spec, parallelism);
	if (val_has(row->object, spec, completions))
		return cell_printf(row, "%lld/%lld", succeeded, (long long)val_int(row->object, spec, completions));
	return parallelism > 1 ? cell_printf(row, "%lld/1 of %lld", succeeded, parallelism) : cell_printf(row, "%lld/1", succeeded);
}

static struct val job_duration(const struct row *row)
{
	struct val start = val_get(row->object, status, startTime), end = val_get(row->object, status, completionTime);
	struct timestamp from, to;

	if (val_is_nil(start))
		return VAL_LIT("");
	if (val_is_nil(end))
		return val_of_str(cell_since(row, start));
	if (time_parse(val_as_str(start), &from, NULL) < 0 || time_parse(val_as_str(end), &to, NULL) < 0)
		return VAL_LIT("<unknown>");
	int64_t seconds = to.seconds - from.seconds, limit = INT64_MAX / NS_PER_S;
	return val_of_str(cell_duration(row->arena, (seconds > limit ? limit : seconds < -limit ? -limit : seconds) * NS_PER_S));
}

static const struct column job[] = {
	NAME,
	COLUMN("Status", "string", 0, "State of the job", CALL(job_status)),
	COLUMN("Completions", "string", 0, "Pods that succeeded, of those wanted", CALL(job_completions)),
	COLUMN("Duration", "string", 0, "Time that the job took", CALL(job_duration)),
	AGE,
	CONTAINERS(spec, template, spec, containers),
	CONTAINER_IMAGES(spec, template, spec, containers),
	COLUMN("Selector", "string", 1, "Which pods are counted", SELECTOR(spec, selector)),
};

static struct val cron_job_suspend(const struct row *row)
{
	struct val suspend = val_get(row->object, spec, suspend);
	if (!val_exists(suspend))
		return VAL_LIT("<unset>");
	return val_as_bool(suspend) ? VAL_LIT("True") : VAL_LIT("False");
}

static const struct column cron_job[] = {
	NAME,
	COLUMN("Schedule", "string", 0, "When jobs start, in cron's form", TEXT(spec, schedule)),
	COLUMN("Timezone", "string", 0, "Time zone of the schedule", TEXT(spec, timeZone), OR("<none>")),
	COLUMN("Suspend", "boolean", 0, "Whether no jobs are started", CALL(cron_job_suspend)),
	COLUMN("Active", "integer", 0, "Jobs that are running", COUNT(status, active)),
	COLUMN("Last Schedule", "string", 0, "Time since the last job started", SINCE(status, lastScheduleTime), OR("<none>")),
	AGE,
	CONTAINERS(spec, jobTemplate, spec, template, spec, containers),
	CONTAINER_IMAGES(spec, jobTemplate, spec, template, spec, containers),
	COLUMN("Selector", "string", 1, "Which pods are counted", SELECTOR(spec, jobTemplate, spec, selector)),
};

/* ---- autoscaling ---- */

static struct val scale_target(const struct row *row)
{
	struct val ref = val_get(row->object, spec, scaleTargetRef);
	return cell_printf(row, STR_FMT "/" STR_FMT, STR_ARG(val_str(ref, kind)), STR_ARG(val_str(ref, name)));
}

static str percent_or(struct arena *a, struct val v, str other)
{
	return val_exists(v) ? arena_printf(a, "%lld%%", (long long)val_as_int(v)) : other;
}

/* cpu: 10%/80%, or with an average value 100m/500m. */
static str resource_metric(struct arena *a, struct val spec, struct val status)
{
	struct val target = val_get(spec, target), current = val_get(status, current);
	str is, want;
	if (val_has(target, averageValue)) {
		is = val_exists(status) ? cell_text_or(val_get(current, averageValue), STR("<nil>")) : STR("<unknown>");
		want = val_str(target, averageValue);
	} else {
		is = percent_or(a, val_get(current, averageUtilization), STR("<unknown>"));
		want = percent_or(a, val_get(target, averageUtilization), STR("<auto>"));
	}
	return arena_printf(a, STR_FMT ": " STR_FMT "/" STR_FMT, STR_ARG(val_str(spec, name)), STR_ARG(is), STR_ARG(want));
}

/* Of an object or something external: the value itself or its average over the pods. */
static str value_metric(struct arena *a, struct val spec, struct val status)
{
	struct val target = val_get(spec, target), current = val_get(status, current);
	bool average = val_has(target, averageValue);
	struct val is = average ? val_get(current, averageValue) : val_get(current, value);
	struct val want = average ? val_get(target, averageValue) : val_get(target, value);
	str none = average || !val_exists(status) ? STR("<unknown>") : STR("<nil>");
	return arena_printf(a, STR_FMT "/" STR_FMT "%s", STR_ARG(cell_text_or(is, none)), STR_ARG(cell_text_or(want, STR("<nil>"))),
			    average ? " (avg)" : "");
}

static str pods_metric(struct arena *a, struct val spec, struct val status)
{
	str is = val_exists(status) ? cell_text_or(val_get(status, current, averageValue), STR("<nil>")) : STR("<unknown>");
	str want = cell_text_or(val_get(spec, target, averageValue), STR("<nil>"));
	return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(is), STR_ARG(want));
}

static str metric_text(struct arena *a, struct val spec, struct val status)
{
	static const struct {
		str type;
		atom field;
		str (*text)(struct arena *, struct val, struct val);
	} types[] = {
		{ STR_INIT("Resource"), A_resource, resource_metric },
		{ STR_INIT("ContainerResource"), A_containerResource, resource_metric },
		{ STR_INIT("Pods"), A_pods, pods_metric },
		{ STR_INIT("Object"), A_object, value_metric },
		{ STR_INIT("External"), A_external, value_metric },
	};
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(val_str(spec, type), types[i].type))
			return types[i].text(a, val_member(spec, types[i].field), val_member(status, types[i].field));
	return STR("<unknown type>");
}

static struct val scale_metrics(const struct row *row)
{
	enum { SHOWN = 2 };
	struct val specs = val_get(row->object, spec, metrics), statuses = val_get(row->object, status, currentMetrics);
	struct val v1_target = val_get(row->object, spec, targetCPUUtilizationPercentage);
	str text = STR_NONE;
	size_t i = 0;

	if (val_len(specs) == 0 && val_exists(v1_target)) {
		struct val is = val_get(row->object, status, currentCPUUtilizationPercentage);
		return cell_printf(row, "cpu: " STR_FMT "/%lld%%", STR_ARG(percent_or(row->arena, is, STR("<unknown>"))),
				   (long long)val_as_int(v1_target));
	}
	if (val_len(specs) == 0)
		return VAL_LIT("<none>");
	VAL_EACH(spec, specs) {
		if (i == SHOWN)
			break;
		str metric = metric_text(row->arena, *spec, val_at(statuses, i));
		text = i++ ? arena_printf(row->arena, STR_FMT ", " STR_FMT, STR_ARG(text), STR_ARG(metric)) : metric;
	}
	if (val_len(specs) > SHOWN)
		return cell_printf(row, STR_FMT " + %u more...", STR_ARG(text), val_len(specs) - SHOWN);
	return val_of_str(text);
}

static const struct column horizontal_pod_autoscaler[] = {
	NAME,
	COLUMN("Reference", "string", 0, "What is scaled", CALL(scale_target)),
	COLUMN("Targets", "string", 0, "Metrics and the values they should have", CALL(scale_metrics)),
	COLUMN("MinPods", "string", 0, "Fewest replicas", TEXT(spec, minReplicas), OR("<unset>")),
	COLUMN("MaxPods", "string", 0, "Most replicas", NUMBER(spec, maxReplicas)),
	COLUMN("Replicas", "string", 0, "Replicas that exist", NUMBER(status, currentReplicas)),
	AGE,
};

static const struct column scale[] = {
	COLUMN("Name", "string", 0, "Name of the object", TEXT(metadata, name)),
	COLUMN("Desired", "integer", 0, "Replicas that should run", NUMBER(spec, replicas)),
	COLUMN("Available", "integer", 0, "Replicas that exist", NUMBER(status, replicas)),
	AGE,
};

/* ---- policy, scheduling ---- */

static const struct column pod_disruption_budget[] = {
	NAME,
	COLUMN("Min Available", "string", 0, "Pods that must stay available", TEXT(spec, minAvailable), OR("N/A")),
	COLUMN("Max Unavailable", "string", 0, "Pods that may be unavailable", TEXT(spec, maxUnavailable), OR("N/A")),
	COLUMN("Allowed Disruptions", "integer", 0, "Pods that may be evicted now", NUMBER(status, disruptionsAllowed)),
	AGE,
};

static const struct column priority_class[] = {
	NAME,
	COLUMN("Value", "integer", 0, "Priority; more is more important", NUMBER(value)),
	COLUMN("Global-Default", "boolean", 0, "Whether pods without a class get this one", BOOL(globalDefault)),
	AGE,
	COLUMN("PreemptionPolicy", "string", 0, "Whether lesser pods are removed to make room", TEXT(preemptionPolicy)),
};

static const struct column workload[] = { NAME, AGE };

static struct val pod_group_policy(const struct row *row)
{
	return val_has(row->object, spec, schedulingPolicy, gang) ? VAL_LIT("Gang") : VAL_LIT("Basic");
}

static struct val pod_group_status(const struct row *row)
{
	struct val status = VAL_LIT("Pending"), disruption = VAL_EMPTY;
	VAL_EACH(c, val_get(row->object, status, conditions)) {
		if (str_eq(val_str(*c, type), STR("PodGroupScheduled")))
			status = str_eq(val_str(*c, status), STR("True")) ? VAL_LIT("Scheduled") : VAL_LIT("Unschedulable");
		if (str_eq(val_str(*c, type), STR("DisruptionTarget")))
			disruption = *c;
	}
	return val_exists(disruption) ? val_of_str(val_str(disruption, reason)) : status;
}

static struct val pod_group_workload(const struct row *row)
{
	struct val ref = val_get(row->object, spec, podGroupTemplateRef);
	return val_exists(ref) ? val_of_str(val_str(ref, workload, workloadName)) : VAL_LIT("<none>");
}

static const struct column pod_group[] = {
	NAME,
	COLUMN("Policy", "string", 0, "How its pods are scheduled", CALL(pod_group_policy)),
	COLUMN("Workload", "string", 0, "Workload that it belongs to", CALL(pod_group_workload)),
	COLUMN("Status", "string", 0, "Whether its pods are scheduled", CALL(pod_group_status)),
	AGE,
};

static const struct table tables_workload_all[] = {
	TABLE("apps", "ReplicaSet", replica_set),
	TABLE("apps", "DaemonSet", daemon_set),
	TABLE("apps", "StatefulSet", stateful_set),
	TABLE("apps", "Deployment", deployment),
	TABLE("apps", "ControllerRevision", controller_revision),
	TABLE("batch", "Job", job),
	TABLE("batch", "CronJob", cron_job),
	TABLE("autoscaling", "HorizontalPodAutoscaler", horizontal_pod_autoscaler),
	TABLE("autoscaling", "Scale", scale),
	TABLE("policy", "PodDisruptionBudget", pod_disruption_budget),
	TABLE("scheduling.k8s.io", "PriorityClass", priority_class),
	TABLE("scheduling.k8s.io", "Workload", workload),
	TABLE("scheduling.k8s.io", "PodGroup", pod_group),
};

TABLE_SET(tables_workload);
