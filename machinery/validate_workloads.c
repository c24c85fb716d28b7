/*
 * ReplicationController, ReplicaSet, Deployment, DaemonSet, ControllerRevision, PodTemplate, PodDisruptionBudget; and
 * the table of all workloads. StatefulSets and jobs have files of their own.
 */
#include "codec/atoms.h"
#include "machinery/selector.h"
#include "machinery/validate_workloads.h"

static const str only_always[] = { STR_INIT("Always"), { NULL, 0 } };

/* ---- shared ---- */

int64_t int_or_percent(struct val v)
{
	str text = val_as_str(v);
	int64_t n = 0;

	if (!val_is(v, VAL_STRING))
		return val_as_int(v);
	if (str_ends(text, STR("%")))
		text = str_head(text, text.n - 1);
	return str_to_i64(text, &n) ? n : 0;
}

void check_workload_selector(struct field_errors *e, const struct field_path *at, struct val selector, const char *kind)
{
	if (!val_exists(selector)) {
		field_missing(e, at);
		return;
	}
	check_label_selector(e, at, selector, false);
	if (val_len(val_get(selector, matchLabels)) == 0 && val_len(val_get(selector, matchExpressions)) == 0)
		field_invalid(e, at, internal_form(e->arena, TYPE(meta_v1, LabelSelector), selector),
			      "empty selector is invalid for %s", kind);
}

static void check_labels_match(struct field_errors *e, const struct field_path *at, const struct selector *selector,
			       struct val template)
{
	struct val labels = val_get(template, metadata, labels);
	if (!selector_is_everything(selector) && !selector_matches(selector, labels))
		field_invalid(e, FIELD(FIELD(at, "metadata"), "labels"), labels,
			      "`selector` does not match template `labels`");
}

bool check_selects(struct field_errors *e, const struct field_path *at, struct val spec, const char *bad_selector)
{
	struct val selector = val_get(spec, selector);
	struct selector compiled;
	struct err ignored;

	if (selector_of_object(e->arena, selector, &compiled, &ignored) >= 0) {
		check_labels_match(e, FIELD(at, "template"), &compiled, val_get(spec, template));
		return true;
	}
	if (bad_selector)
		field_invalid(e, FIELD(at, "selector"), internal_form(e->arena, TYPE(meta_v1, LabelSelector), selector),
			      "%s", bad_selector);
	return false;
}

void check_runs_forever(struct field_errors *e, const struct field_path *at, struct val template, const char *kind)
{
	const struct field_path *spec = FIELD(at, "spec");
	str policy = val_str(template, spec, restartPolicy);

	if (!str_eq(policy, STR("Always")))
		field_not_supported(e, FIELD(spec, "restartPolicy"), VAL_STR(policy), only_always);
	if (val_has(template, spec, activeDeadlineSeconds))
		field_forbidden(e, FIELD(spec, "activeDeadlineSeconds"), "activeDeadlineSeconds in %s is not Supported",
				kind);
}

/* No counter of a status is negative. */
static void check_counters(struct field_errors *e, const struct field_path *at, struct val status, const uint16_t *names,
			   size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_non_negative(e, FIELD_STR(at, atom_str(names[i])), val_member(status, names[i]));
}

static void check_below_replicas(struct field_errors *e, const struct field_path *at, struct val status,
				 const uint16_t *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct val v = val_member(status, names[i]);
		if (val_as_int(v) > val_int(status, replicas))
			field_invalid(e, FIELD_STR(at, atom_str(names[i])), val_of_int(val_as_int(v)),
				      "cannot be greater than status.replicas");
	}
	if (val_int(status, availableReplicas) > val_int(status, readyReplicas))
		field_invalid(e, FIELD(at, "availableReplicas"), val_of_int(val_int(status, availableReplicas)),
			      "cannot be greater than readyReplicas");
}

static void check_collisions(struct field_errors *e, struct val status, struct val old)
{
	struct val now = val_get(status, collisionCount), before = val_get(old, collisionCount);
	if (val_exists(before) && (!val_exists(now) || val_as_int(now) < val_as_int(before)))
		field_invalid(e, FIELD(FIELD(NULL, "status"), "collisionCount"), val_of_int(val_as_int(now)),
			      "cannot be decremented");
}

/* ---- ReplicationController ---- */

/* Its name is checked with the words of declarative rules, and generateName is not. */
static size_t name_rule_long(str name, bool prefix, struct name_errors *ret)
{
	return prefix ? 0 : name_check_long_name(name, ret);
}

static void check_rc_spec(struct field_errors *e, struct val spec, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec"), *template_at = FIELD(at, "template");
	struct val template = val_get(spec, template);

	check_non_negative(e, FIELD(at, "minReadySeconds"), val_get(spec, minReadySeconds));
	if (val_len(val_get(spec, selector)) == 0)
		field_missing(e, FIELD(at, "selector"));
	if (!val_has(spec, replicas))
		field_missing(e, FIELD(at, "replicas"));
	check_non_negative(e, FIELD(at, "replicas"), val_get(spec, replicas));
	if (!val_exists(template)) {
		field_missing(e, template_at);
		return;
	}
	struct selector selector = selector_of_labels(e->arena, val_get(spec, selector));
	check_labels_match(e, template_at, &selector, template);
	check_pod_template(e, template_at, template, val_get(old, template));
	check_runs_forever(e, template_at, template, "ReplicationController");
}

static void check_rc(struct field_errors *e, struct val rc) { check_rc_spec(e, val_get(rc, spec), VAL_EMPTY); }

static void check_rc_update(struct field_errors *e, struct val rc, struct val old)
{
	check_rc_spec(e, val_get(rc, spec), val_get(old, spec));
}

static void check_rc_status(struct field_errors *e, str subresource, struct val rc, struct val old)
{
	static const uint16_t counters[] =
		{ A_replicas, A_fullyLabeledReplicas, A_readyReplicas, A_availableReplicas, A_observedGeneration };
	const struct field_path *at = FIELD(NULL, "status");
	(void)old;

	if (!str_eq(subresource, STR("status")))
		return;
	check_counters(e, at, val_get(rc, status), counters, ARRAY_LEN(counters));
	check_below_replicas(e, at, val_get(rc, status), counters + 1, 3);
}

/* ---- ReplicaSet ---- */

static void check_rs_template(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	const struct field_path *template_at = FIELD(at, "template");

	if (!check_selects(e, at, spec, "invalid label selector"))
		return;
	check_pod_template(e, template_at, val_get(spec, template), val_get(old, template));
	check_runs_forever(e, template_at, val_get(spec, template), "ReplicaSet");
}

static void check_rs_spec(struct field_errors *e, struct val spec, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec");

	check_non_negative(e, FIELD(at, "replicas"), val_get(spec, replicas));
	check_non_negative(e, FIELD(at, "minReadySeconds"), val_get(spec, minReadySeconds));
	check_workload_selector(e, FIELD(at, "selector"), val_get(spec, selector), "deployment");
	check_rs_template(e, at, spec, old);
}

static void check_same_selector(struct field_errors *e, struct val object, struct val old)
{
	check_immutable(e, FIELD(FIELD(NULL, "spec"), "selector"), TYPE(meta_v1, LabelSelector),
			val_get(object, spec, selector), val_get(old, spec, selector));
}

static void check_rs(struct field_errors *e, struct val rs) { check_rs_spec(e, val_get(rs, spec), VAL_EMPTY); }

static void check_rs_update(struct field_errors *e, struct val rs, struct val old)
{
	check_rs_spec(e, val_get(rs, spec), val_get(old, spec));
	check_same_selector(e, rs, old);
}

static void check_rs_status(struct field_errors *e, str subresource, struct val rs, struct val old)
{
	static const uint16_t counters[] = {
		A_replicas, A_fullyLabeledReplicas, A_readyReplicas, A_availableReplicas, A_observedGeneration,
		A_terminatingReplicas,
	};
	const struct field_path *at = FIELD(NULL, "status");
	(void)old;

	if (!str_eq(subresource, STR("status")))
		return;
	check_counters(e, at, val_get(rs, status), counters, ARRAY_LEN(counters));
	check_below_replicas(e, at, val_get(rs, status), counters + 1, 3);
}

/* ---- Deployment ---- */

static void check_rolling_deployment(struct field_errors *e, const struct field_path *at, struct val rolling)
{
	struct val unavailable = val_get(rolling, maxUnavailable), surge = val_get(rolling, maxSurge);

	check_int_or_percent(e, FIELD(at, "maxUnavailable"), unavailable);
	check_int_or_percent(e, FIELD(at, "maxSurge"), surge);
	if (int_or_percent(unavailable) == 0 && int_or_percent(surge) == 0)
		field_invalid(e, FIELD(at, "maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0");
	check_at_most_100_percent(e, FIELD(at, "maxUnavailable"), unavailable);
}

static void check_deployment_strategy(struct field_errors *e, const struct field_path *at, struct val strategy)
{
	static const str types[] = { STR_INIT("Recreate"), STR_INIT("RollingUpdate"), { NULL, 0 } };
	str type = val_str(strategy, type);

	if (str_eq(type, STR("Recreate"))) {
		if (val_has(strategy, rollingUpdate))
			field_forbidden(e, FIELD(at, "rollingUpdate"),
					"may not be specified when strategy `type` is 'Recreate'");
	} else if (str_eq(type, STR("RollingUpdate"))) {
		check_rolling_deployment(e, FIELD(at, "rollingUpdate"), val_get(strategy, rollingUpdate));
	} else {
		field_not_supported(e, at, internal_form(e->arena, TYPE(apps_v1, DeploymentStrategy), strategy), types);
	}
}

static void check_deployment_spec(struct field_errors *e, struct val spec, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec");
	struct val deadline = val_get(spec, progressDeadlineSeconds);

	check_non_negative(e, FIELD(at, "replicas"), val_get(spec, replicas));
	check_workload_selector(e, FIELD(at, "selector"), val_get(spec, selector), "deployment");
	check_rs_template(e, at, spec, old);
	check_deployment_strategy(e, FIELD(at, "strategy"), val_get(spec, strategy));
	check_non_negative(e, FIELD(at, "minReadySeconds"), val_get(spec, minReadySeconds));
	check_non_negative(e, FIELD(at, "revisionHistoryLimit"), val_get(spec, revisionHistoryLimit));
	check_non_negative(e, FIELD(at, "progressDeadlineSeconds"), deadline);
	if (val_exists(deadline) && val_as_int(deadline) <= val_int(spec, minReadySeconds))
		field_invalid(e, FIELD(at, "progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds");
}

static void check_deployment(struct field_errors *e, struct val deployment)
{
	check_deployment_spec(e, val_get(deployment, spec), VAL_EMPTY);
}

static void check_deployment_update(struct field_errors *e, struct val deployment, struct val old)
{
	check_deployment_spec(e, val_get(deployment, spec), val_get(old, spec));
	check_same_selector(e, deployment, old);
}

static void check_deployment_status(struct field_errors *e, str subresource, struct val deployment, struct val old)
{
	static const uint16_t counters[] = {
		A_observedGeneration, A_replicas, A_updatedReplicas, A_readyReplicas, A_availableReplicas,
		A_unavailableReplicas, A_terminatingReplicas, A_collisionCount,
	};
	const struct field_path *at = FIELD(NULL, "status");

	if (!str_eq(subresource, STR("status")))
		return;
	check_counters(e, at, val_get(deployment, status), counters, ARRAY_LEN(counters));
	check_below_replicas(e, at, val_get(deployment, status), counters + 2, 3);
	check_collisions(e, val_get(deployment, status), val_get(old, status));
}

/* ---- DaemonSet ---- */

static void check_rolling_daemon_set(struct field_errors *e, const struct field_path *at, struct val rolling)
{
	struct val unavailable = val_get(rolling, maxUnavailable), surge = val_get(rolling, maxSurge);

	check_int_or_percent(e, FIELD(at, "maxUnavailable"), unavailable);
	check_int_or_percent(e, FIELD(at, "maxSurge"), surge);
	check_at_most_100_percent(e, FIELD(at, "maxUnavailable"), unavailable);
	check_at_most_100_percent(e, FIELD(at, "maxSurge"), surge);
	if (int_or_percent(unavailable) && int_or_percent(surge))
		field_invalid(e, FIELD(at, "maxSurge"), surge, "may not be set when maxUnavailable is non-zero");
	else if (!int_or_percent(unavailable) && !int_or_percent(surge))
		field_required(e, FIELD(at, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
}

static void check_daemon_set_strategy(struct field_errors *e, const struct field_path *at, struct val strategy)
{
	static const str types[] = { STR_INIT("RollingUpdate"), STR_INIT("OnDelete"), { NULL, 0 } };
	str type = val_str(strategy, type);

	if (str_eq(type, STR("RollingUpdate")))
		check_rolling_daemon_set(e, FIELD(at, "rollingUpdate"), val_get(strategy, rollingUpdate));
	else if (!str_eq(type, STR("OnDelete")))
		field_not_supported(e, at, internal_form(e->arena, TYPE(apps_v1, DaemonSetUpdateStrategy), strategy),
				    types);
}

/* Values of selectors that were not label values before may stay so. */
static bool has_bad_values(struct val selector)
{
	VAL_EACH(r, val_get(selector, matchExpressions))
		VAL_EACH(v, val_get(*r, values))
			if (name_check_label_value(val_as_str(*v), NULL))
				return true;
	return false;
}

static void check_daemon_set_spec(struct field_errors *e, struct val spec, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec"), *template_at = FIELD(at, "template");
	struct val selector = val_get(spec, selector);

	check_label_selector(e, FIELD(at, "selector"), selector, has_bad_values(val_get(old, selector)));
	check_selects(e, at, spec, NULL);
	if (val_exists(selector) && val_len(val_get(selector, matchLabels)) == 0 &&
	    val_len(val_get(selector, matchExpressions)) == 0)
		field_invalid(e, FIELD(at, "selector"), internal_form(e->arena, TYPE(meta_v1, LabelSelector), selector),
			      "empty selector is invalid for daemonset");
	check_pod_template(e, template_at, val_get(spec, template), val_get(old, template));
	check_runs_forever(e, template_at, val_get(spec, template), "DaemonSet");
	check_non_negative(e, FIELD(at, "minReadySeconds"), val_get(spec, minReadySeconds));
	check_daemon_set_strategy(e, FIELD(at, "updateStrategy"), val_get(spec, updateStrategy));
	check_non_negative(e, FIELD(at, "revisionHistoryLimit"), val_get(spec, revisionHistoryLimit));
}

static void check_daemon_set(struct field_errors *e, struct val ds)
{
	check_daemon_set_spec(e, val_get(ds, spec), VAL_EMPTY);
}

static void check_daemon_set_update(struct field_errors *e, struct val ds, struct val old)
{
	check_same_selector(e, ds, old);
	check_daemon_set_spec(e, val_get(ds, spec), val_get(old, spec));
}

static void check_daemon_set_status(struct field_errors *e, str subresource, struct val ds, struct val old)
{
	static const uint16_t counters[] = {
		A_currentNumberScheduled, A_numberMisscheduled, A_desiredNumberScheduled, A_numberReady,
		A_observedGeneration, A_updatedNumberScheduled, A_numberAvailable, A_numberUnavailable, A_collisionCount,
	};
	if (!str_eq(subresource, STR("status")))
		return;
	check_counters(e, FIELD(NULL, "status"), val_get(ds, status), counters, ARRAY_LEN(counters));
	check_collisions(e, val_get(ds, status), val_get(old, status));
}

/* ---- ControllerRevision, PodTemplate ---- */

static void check_revision(struct field_errors *e, struct val revision)
{
	const struct field_path *at = FIELD(NULL, "data");
	struct val data = val_get(revision, data);

	check_non_negative(e, FIELD(NULL, "revision"), val_get(revision, revision));
	if (val_is_nil(data))
		field_required(e, at, "data is mandatory");
	else if (!val_is(data, VAL_OBJECT))
		field_required(e, at, "data must be a valid JSON object");
}

static void check_revision_update(struct field_errors *e, struct val revision, struct val old)
{
	check_object_meta(e, FIELD(NULL, "metadata"), val_get(revision, metadata), true, name_rule_subdomain);
	check_non_negative(e, FIELD(NULL, "revision"), val_get(revision, revision));
	check_immutable(e, FIELD(NULL, "data"), NULL, val_get(revision, data), val_get(old, data));
}

static void check_template(struct field_errors *e, struct val object)
{
	check_pod_template(e, FIELD(NULL, "template"), val_get(object, template), VAL_EMPTY);
}

static void check_template_update(struct field_errors *e, struct val object, struct val old)
{
	check_pod_template(e, FIELD(NULL, "template"), val_get(object, template), val_get(old, template));
}

/* ---- PodDisruptionBudget ---- */

static void check_budget_spec(struct field_errors *e, struct val spec, bool allow_bad_values)
{
	static const str policies[] = { STR_INIT("AlwaysAllow"), STR_INIT("IfHealthyBudget"), { NULL, 0 } };
	static const uint16_t bounds[] = { A_minAvailable, A_maxUnavailable };
	const struct field_path *at = FIELD(NULL, "spec");

	if (val_has(spec, minAvailable) && val_has(spec, maxUnavailable))
		field_invalid(e, at, internal_form(e->arena, TYPE(policy_v1, PodDisruptionBudgetSpec), spec),
			      "minAvailable and maxUnavailable cannot be both set");
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		struct val bound = val_member(spec, bounds[i]);
		check_int_or_percent(e, FIELD_STR(at, atom_str(bounds[i])), bound);
		check_at_most_100_percent(e, FIELD_STR(at, atom_str(bounds[i])), bound);
	}
	check_label_selector(e, FIELD(at, "selector"), val_get(spec, selector), allow_bad_values);
	if (val_has(spec, unhealthyPodEvictionPolicy))
		check_one_of(e, FIELD(at, "unhealthyPodEvictionPolicy"), val_str(spec, unhealthyPodEvictionPolicy),
			     policies);
}

static void check_budget(struct field_errors *e, struct val pdb) { check_budget_spec(e, val_get(pdb, spec), false); }

static void check_budget_update(struct field_errors *e, struct val pdb, struct val old)
{
	struct field_errors before;
	field_errors_init(&before, e->arena);
	check_label_selector(&before, NULL, val_get(old, spec, selector), false);
	check_budget_spec(e, val_get(pdb, spec), before.n > 0);
}

static void check_budget_status(struct field_errors *e, str subresource, struct val pdb, struct val old)
{
	static const uint16_t counters[] = { A_disruptionsAllowed, A_currentHealthy, A_desiredHealthy, A_expectedPods };
	const struct field_path *at = FIELD(NULL, "status");
	(void)old;

	if (!str_eq(subresource, STR("status")))
		return;
	check_conditions(e, FIELD(at, "conditions"), val_get(pdb, status, conditions));
	if (!str_eq(val_str(pdb, apiVersion), STR("policy/v1beta1")))
		check_counters(e, at, val_get(pdb, status), counters, ARRAY_LEN(counters));
}

/* ---- the table ---- */

const struct kind_rules rules_workloads[] = {
	{ TYPE(core_v1, ReplicationController), name_rule_long, KIND_GENERATION,
	  .defaults = default_replication_controller, .check = check_rc, .check_update = check_rc_update,
	  .check_subresource = check_rc_status },
	{ TYPE(core_v1, PodTemplate), name_rule_subdomain, KIND_GENERATION, .defaults = default_pod_template_kind,
	  .check = check_template, .check_update = check_template_update },
	{ TYPE(apps_v1, ReplicaSet), name_rule_subdomain, KIND_GENERATION, .defaults = default_replica_set,
	  .check = check_rs, .check_update = check_rs_update, .check_subresource = check_rs_status },
	{ TYPE(apps_v1, Deployment), name_rule_subdomain, KIND_GENERATION, .defaults = default_deployment,
	  .check = check_deployment, .check_update = check_deployment_update,
	  .check_subresource = check_deployment_status, .prepare_update = prepare_deployment_update },
	{ TYPE(apps_v1, DaemonSet), name_rule_subdomain, KIND_GENERATION, .defaults = default_daemon_set,
	  .check = check_daemon_set, .check_update = check_daemon_set_update,
	  .check_subresource = check_daemon_set_status, .prepare = prepare_daemon_set,
	  .prepare_update = prepare_daemon_set_update },
	{ TYPE(apps_v1, StatefulSet), name_rule_label, KIND_GENERATION, .defaults = default_stateful_set,
	  .check = check_stateful_set, .check_update = check_stateful_set_update,
	  .check_subresource = check_stateful_set_status },
	{ TYPE(apps_v1, ControllerRevision), name_rule_subdomain, .check = check_revision,
	  .check_update = check_revision_update },
	{ TYPE(batch_v1, Job), NULL, KIND_OWN_META | KIND_GENERATION, .defaults = default_job, .check = check_job,
	  .check_update = check_job_update, .check_subresource = check_job_status, .prepare = prepare_job },
	{ TYPE(batch_v1, CronJob), name_rule_subdomain, KIND_GENERATION, .defaults = default_cron_job,
	  .check = check_cron_job, .check_update = check_cron_job_update },
	{ TYPE(policy_v1, PodDisruptionBudget), NULL, KIND_OWN_META | KIND_GENERATION, .check = check_budget,
	  .check_update = check_budget_update, .check_subresource = check_budget_status },
	{ 0 },
};
