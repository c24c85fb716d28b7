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
	COLUMN("Desired", "integer", 0,
	       "The total number of nodes that should be running the daemon pod (including nodes "
	       "correctly running the daemon pod). More info: "
	       "https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/",
	       NUMBER(status, desiredNumberScheduled)),
	COLUMN("Current", "integer", 0,
	       "The number of nodes that are running at least 1 daemon pod and are supposed to run "
	       "the daemon pod. More info: "
	       "https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/",
	       NUMBER(status, currentNumberScheduled)),
	COLUMN("Ready", "integer", 0,
	       "numberReady is the number of nodes that should be running the daemon pod and have one "
	       "or more of the daemon pod running with a Ready Condition.",
	       NUMBER(status, numberReady)),
	COLUMN("Up-to-date", "integer", 0,
	       "The total number of nodes that are running updated daemon pod",
	       NUMBER(status, updatedNumberScheduled)),
	COLUMN("Available", "integer", 0,
	       "The number of nodes that should be running the daemon pod and have one or more of the "
	       "daemon pod running and available (ready for at least spec.minReadySeconds)",
	       NUMBER(status, numberAvailable)),
	COLUMN("Node Selector", "string", 0,
	       "NodeSelector is a selector which must be true for the pod to fit on a node. Selector "
	       "which must match a node's labels for the pod to be scheduled on that node. More info: "
	       "https://kubernetes.io/docs/concepts/configuration/assign-pod-node/",
	       LABELS(spec, template, spec, nodeSelector)),
	AGE,
	CONTAINERS(spec, template, spec, containers),
	CONTAINER_IMAGES(spec, template, spec, containers),
	COLUMN("Selector", "string", 1,
	       "A label query over pods that are managed by the daemon set. Must match in order to be "
	       "controlled. It must match the pod template's labels. More info: "
	       "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
	       SELECTOR(spec, selector)),
};

static struct val ready_of_desired(const struct row *row)
{
	return cell_printf(row, "%lld/%lld", (long long)val_int(row->object, status, readyReplicas),
			   (long long)val_int(row->object, spec, replicas));
}

static const struct column stateful_set[] = {
	NAME,
	COLUMN("Ready", "string", 0, "Number of the pod with ready state", CALL(ready_of_desired)),
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
	COLUMN("Ready", "string", 0, "Number of the pod with ready state", CALL(ready_of_desired)),
	COLUMN("Up-to-date", "string", 0,
	       "Total number of non-terminating pods targeted by this deployment that have the "
	       "desired template spec.",
	       NUMBER(status, updatedReplicas)),
	COLUMN("Available", "string", 0,
	       "Total number of available non-terminating pods (ready for at least minReadySeconds) "
	       "targeted by this deployment.",
	       NUMBER(status, availableReplicas)),
	AGE,
	CONTAINERS(spec, template, spec, containers),
	CONTAINER_IMAGES(spec, template, spec, containers),
	COLUMN("Selector", "string", 1,
	       "Label selector for pods. Existing ReplicaSets whose pods are selected by this will be "
	       "the ones affected by this deployment. It must match the pod template's labels.",
	       CALL(deployment_selector)),
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
	COLUMN("Controller", "string", 0, "Controller of the object", CALL(revision_controller)),
	COLUMN("Revision", "string", 0,
	       "Revision indicates the revision of the state represented by Data.",
	       NUMBER(revision)),
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
	return val_of_str(cell_duration(row->arena, time_between(from, to)));
}

static const struct column job[] = {
	NAME,
	COLUMN("Status", "string", 0, "Status of the job.", CALL(job_status)),
	COLUMN("Completions", "string", 0,
	       "The number of pods which reached phase Succeeded. The value increases monotonically "
	       "for a given spec. However, it may decrease in reaction to scale down of elastic "
	       "indexed jobs.",
	       CALL(job_completions)),
	COLUMN("Duration", "string", 0, "Time required to complete the job.", CALL(job_duration)),
	AGE,
	CONTAINERS(spec, template, spec, containers),
	CONTAINER_IMAGES(spec, template, spec, containers),
	COLUMN("Selector", "string", 1,
	       "A label query over pods that should match the pod count. Normally, the system sets "
	       "this field for you. More info: "
	       "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
	       SELECTOR(spec, selector)),
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
	COLUMN("Schedule", "string", 0,
	       "The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.",
	       TEXT(spec, schedule)),
	COLUMN("Timezone", "string", 0,
	       "The time zone name for the given schedule, see "
	       "https://en.wikipedia.org/wiki/List_of_tz_database_time_zones. If not specified, this "
	       "will default to the time zone of the kube-controller-manager process. The set of "
	       "valid time zone names and the time zone offset is loaded from the system-wide time "
	       "zone database by the API server during CronJob validation and the controller manager "
	       "during execution. If no system-wide time zone database can be found a bundled version "
	       "of the database is used instead. If the time zone name becomes invalid during the "
	       "lifetime of a CronJob or due to a change in host configuration, the controller will "
	       "stop creating new new Jobs and will create a system event with the reason "
	       "UnknownTimeZone. More information can be found in "
	       "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones",
	       TEXT(spec, timeZone), OR("<none>")),
	COLUMN("Suspend", "boolean", 0,
	       "This flag tells the controller to suspend subsequent executions, it does not apply to "
	       "already started executions.  Defaults to false.",
	       CALL(cron_job_suspend)),
	COLUMN("Active", "integer", 0, "A list of pointers to currently running jobs.", COUNT(status, active)),
	COLUMN("Last Schedule", "string", 0,
	       "Information when was the last time the job was successfully scheduled.",
	       SINCE(status, lastScheduleTime), OR("<none>")),
	AGE,
	CONTAINERS(spec, jobTemplate, spec, template, spec, containers),
	CONTAINER_IMAGES(spec, jobTemplate, spec, template, spec, containers),
	COLUMN("Selector", "string", 1,
	       "A label query over pods that should match the pod count. Normally, the system sets "
	       "this field for you. More info: "
	       "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
	       SELECTOR(spec, jobTemplate, spec, selector)),
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
	COLUMN("Reference", "string", 0,
	       "scaleTargetRef points to the target resource to scale, and is used to the pods for "
	       "which metrics should be collected, as well as to actually change the replica count.",
	       CALL(scale_target)),
	COLUMN("Targets", "string", 0,
	       "metrics contains the specifications for which to use to calculate the desired replica "
	       "count (the maximum replica count across all metrics will be used).  The desired "
	       "replica count is calculated multiplying the ratio between the target value and the "
	       "current value by the current number of pods.  Ergo, metrics used must decrease as the "
	       "pod count is increased, and vice-versa.  See the individual metric source types for "
	       "more information about how each type of metric must respond. If not set, the default "
	       "metric will be set to 80% average CPU utilization.",
	       CALL(scale_metrics)),
	COLUMN("MinPods", "string", 0,
	       "minReplicas is the lower limit for the number of replicas to which the autoscaler can "
	       "scale down.  It defaults to 1 pod.  minReplicas is allowed to be 0 if the alpha "
	       "feature gate HPAScaleToZero is enabled and at least one Object or External metric is "
	       "configured.  Scaling is active as long as at least one metric value is available.",
	       TEXT(spec, minReplicas), OR("<unset>")),
	COLUMN("MaxPods", "string", 0,
	       "maxReplicas is the upper limit for the number of replicas to which the autoscaler can "
	       "scale up. It cannot be less that minReplicas.",
	       NUMBER(spec, maxReplicas)),
	COLUMN("Replicas", "string", 0,
	       "currentReplicas is current number of replicas of pods managed by this autoscaler, as "
	       "last seen by the autoscaler.",
	       NUMBER(status, currentReplicas)),
	AGE,
};

static const struct column scale[] = {
	COLUMN("Name", "string", 0, NAME_TEXT, TEXT(metadata, name)),
	COLUMN("Desired", "integer", 0, "Replicas that should run", NUMBER(spec, replicas)),
	COLUMN("Available", "integer", 0, "Replicas that exist", NUMBER(status, replicas)),
	AGE,
};

/* ---- policy, scheduling ---- */

static const struct column pod_disruption_budget[] = {
	NAME,
	COLUMN("Min Available", "string", 0,
	       "The minimum number of pods that must be available.",
	       TEXT(spec, minAvailable), OR("N/A")),
	COLUMN("Max Unavailable", "string", 0,
	       "The maximum number of pods that may be unavailable.",
	       TEXT(spec, maxUnavailable), OR("N/A")),
	COLUMN("Allowed Disruptions", "integer", 0,
	       "Calculated number of pods that may be disrupted at this time.",
	       NUMBER(status, disruptionsAllowed)),
	AGE,
};

static const struct column priority_class[] = {
	NAME,
	COLUMN("Value", "integer", 0,
	       "value represents the integer value of this priority class. This is the actual "
	       "priority that pods receive when they have the name of this class in their pod spec.",
	       NUMBER(value)),
	COLUMN("Global-Default", "boolean", 0,
	       "globalDefault specifies whether this PriorityClass should be considered as the "
	       "default priority for pods that do not have any priority class. Only one PriorityClass "
	       "can be marked as `globalDefault`. However, if more than one PriorityClasses exists "
	       "with their `globalDefault` field set to true, the smallest value of such global "
	       "default PriorityClasses will be used as the default priority.",
	       BOOL(globalDefault)),
	AGE,
	COLUMN("PreemptionPolicy", "string", 0,
	       "preemptionPolicy is the Policy for preempting pods with lower priority. One of Never, "
	       "PreemptLowerPriority. Defaults to PreemptLowerPriority if unset.",
	       TEXT(preemptionPolicy)),
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
