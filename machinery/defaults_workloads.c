/* Defaults of workloads, and what the server fills in for new and updated ones. */
#include "codec/atoms.h"
#include "machinery/validate_workloads.h"

#define TEMPLATE_GENERATION STR("deprecated.daemonset.template.generation")

static struct val with_template(struct arena *a, struct val object)
{
	return val_with(a, object, default_pod_template(a, val_get(object, spec, template)), spec, template);
}

static struct val default_spec(struct arena *a, struct val object, atom key, struct val v)
{
	return val_put(a, object, A_spec, default_member(a, val_get(object, spec), key, v));
}

struct val default_pod_template_kind(struct arena *a, struct val template)
{
	return val_put(a, template, A_template, default_pod_template(a, val_get(template, template)));
}

struct val default_replication_controller(struct arena *a, struct val rc)
{
	struct val labels = val_get(rc, spec, template, metadata, labels);

	if (val_has(rc, spec, template))
		rc = with_template(a, rc);
	if (val_len(labels) && val_len(val_get(rc, spec, selector)) == 0)
		rc = val_with(a, rc, labels, spec, selector);
	if (val_len(labels) && val_len(val_get(rc, metadata, labels)) == 0)
		rc = val_with(a, rc, labels, metadata, labels);
	return rc;
}

struct val default_replica_set(struct arena *a, struct val rs)
{
	return default_spec(a, with_template(a, rs), A_replicas, val_of_int(1));
}

static bool rolls(struct val strategy) { return str_eq(val_str(strategy, type), STR("RollingUpdate")); }

/* With another type a rollingUpdate that is given gets zeros, which then are what is wrong with it. */
static struct val default_rolling(struct arena *a, struct val strategy, struct val unavailable, struct val surge)
{
	struct val rolling = val_get(strategy, rollingUpdate);
	bool wanted = rolls(strategy);

	if (!wanted && !val_exists(rolling))
		return strategy;
	rolling = default_member(a, val_exists(rolling) ? rolling : VAL_EMPTY_OBJECT, A_maxUnavailable,
				 wanted ? unavailable : val_of_int(0));
	return val_put(a, strategy, A_rollingUpdate,
		       default_member(a, rolling, A_maxSurge, wanted ? surge : val_of_int(0)));
}

struct val default_deployment(struct arena *a, struct val deployment)
{
	struct val strategy = default_member(a, val_get(deployment, spec, strategy), A_type, VAL_LIT("RollingUpdate"));

	strategy = default_rolling(a, strategy, VAL_LIT("25%"), VAL_LIT("25%"));
	deployment = val_with(a, with_template(a, deployment), strategy, spec, strategy);
	deployment = default_spec(a, deployment, A_replicas, val_of_int(1));
	deployment = default_spec(a, deployment, A_revisionHistoryLimit, val_of_int(10));
	return default_spec(a, deployment, A_progressDeadlineSeconds, val_of_int(600));
}

struct val default_daemon_set(struct arena *a, struct val ds)
{
	struct val strategy = default_member(a, val_get(ds, spec, updateStrategy), A_type, VAL_LIT("RollingUpdate"));

	strategy = default_rolling(a, strategy, val_of_int(1), val_of_int(0));
	ds = val_with(a, with_template(a, ds), strategy, spec, updateStrategy);
	return default_spec(a, ds, A_revisionHistoryLimit, val_of_int(10));
}

/* ---- StatefulSet ---- */

static struct val default_partition(struct arena *a, struct val rolling)
{
	return default_member(a, rolling, A_partition, val_of_int(0));
}

/* Templates of claims are whole claims, which name their kind and have a first status. */
static struct val default_claim(struct arena *a, struct val claim)
{
	claim = val_put(a, claim, A_apiVersion, VAL_LIT("v1"));
	claim = val_put(a, claim, A_kind, VAL_LIT("PersistentVolumeClaim"));
	claim = val_put(a, claim, A_spec, default_claim_spec(a, val_get(claim, spec)));
	return val_has(claim, status, phase) ? claim : val_with(a, claim, VAL_LIT("Pending"), status, phase);
}

static struct val default_claims(struct arena *a, struct val claims) { return edit_items(a, claims, default_claim); }

struct val default_stateful_set(struct arena *a, struct val sts)
{
	struct val strategy = val_get(sts, spec, updateStrategy),
		retention = val_get(sts, spec, persistentVolumeClaimRetentionPolicy);

	if (!val_has(strategy, type)) {
		strategy = val_put(a, strategy, A_type, VAL_LIT("RollingUpdate"));
		strategy = default_member(a, strategy, A_rollingUpdate, VAL_EMPTY_OBJECT);
	}
	strategy = edit_member(a, strategy, A_rollingUpdate, default_partition);
	retention = default_member(a, retention, A_whenDeleted, VAL_LIT("Retain"));
	retention = default_member(a, retention, A_whenScaled, VAL_LIT("Retain"));
	sts = val_with(a, with_template(a, sts), strategy, spec, updateStrategy);
	sts = val_with(a, sts, retention, spec, persistentVolumeClaimRetentionPolicy);
	sts = val_put(a, sts, A_spec, edit_member(a, val_get(sts, spec), A_volumeClaimTemplates, default_claims));
	sts = default_spec(a, sts, A_podManagementPolicy, VAL_LIT("OrderedReady"));
	sts = default_spec(a, sts, A_replicas, val_of_int(1));
	return default_spec(a, sts, A_revisionHistoryLimit, val_of_int(10));
}

/* ---- jobs ---- */

static struct val default_pattern(struct arena *a, struct val pattern)
{
	return default_member(a, pattern, A_status, VAL_LIT("True"));
}

static struct val default_patterns(struct arena *a, struct val list) { return edit_items(a, list, default_pattern); }

static struct val default_rule(struct arena *a, struct val rule)
{
	return edit_member(a, rule, A_onPodConditions, default_patterns);
}

static struct val default_rules(struct arena *a, struct val list) { return edit_items(a, list, default_rule); }

static struct val default_failure_policy(struct arena *a, struct val policy)
{
	return edit_member(a, policy, A_rules, default_rules);
}

/* What templates of jobs get too. */
static struct val default_job_parts(struct arena *a, struct val job)
{
	job = with_template(a, job);
	return val_put(a, job, A_spec, edit_member(a, val_get(job, spec), A_podFailurePolicy, default_failure_policy));
}

struct val default_job(struct arena *a, struct val job)
{
	struct val labels = val_get(job, spec, template, metadata, labels);
	bool per_index = val_has(job, spec, backoffLimitPerIndex), policy = val_has(job, spec, podFailurePolicy);

	job = default_job_parts(a, job);
	if (!val_has(job, spec, parallelism))
		job = default_spec(a, job, A_completions, val_of_int(1));
	/* completions without parallelism stay as they are */
	job = default_spec(a, job, A_parallelism, val_of_int(1));
	job = default_spec(a, job, A_backoffLimit, val_of_int(per_index ? INT32_MAX : 6));
	if (val_len(labels) && val_len(val_get(job, metadata, labels)) == 0)
		job = val_with(a, job, labels, metadata, labels);
	job = default_spec(a, job, A_completionMode, VAL_LIT("NonIndexed"));
	job = default_spec(a, job, A_suspend, val_of_bool(false));
	job = default_spec(a, job, A_podReplacementPolicy, policy ? VAL_LIT("Failed") : VAL_LIT("TerminatingOrFailed"));
	return default_spec(a, job, A_manualSelector, val_of_bool(false));
}

struct val default_cron_job(struct arena *a, struct val cron_job)
{
	cron_job = val_with(a, cron_job, default_job_parts(a, val_get(cron_job, spec, jobTemplate)), spec, jobTemplate);
	cron_job = default_spec(a, cron_job, A_concurrencyPolicy, VAL_LIT("Allow"));
	cron_job = default_spec(a, cron_job, A_suspend, val_of_bool(false));
	cron_job = default_spec(a, cron_job, A_successfulJobsHistoryLimit, val_of_int(3));
	return default_spec(a, cron_job, A_failedJobsHistoryLimit, val_of_int(1));
}

/* A job finds its pods by its own uid, unless the user wants to choose. */
struct val prepare_job(struct arena *a, struct val job)
{
	static const str names[] = { STR_INIT("job-name"), STR_INIT("batch.kubernetes.io/job-name") };
	static const str uids[] = { STR_INIT("controller-uid"), STR_INIT("batch.kubernetes.io/controller-uid") };
	struct val labels = val_get(job, spec, template, metadata, labels);

	if (val_bool(job, spec, manualSelector))
		return job;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		labels = default_member(a, labels, atom_make(a, names[i]), VAL_STR(val_str(job, metadata, name)));
		labels = default_member(a, labels, atom_make(a, uids[i]), VAL_STR(val_str(job, metadata, uid)));
	}
	job = val_with(a, job, labels, spec, template, metadata, labels);
	labels = default_member(a, val_get(job, spec, selector, matchLabels), atom_make(a, uids[1]),
				VAL_STR(val_str(job, metadata, uid)));
	return val_with(a, job, labels, spec, selector, matchLabels);
}

/* ---- updates ---- */

static int64_t template_generation(struct val ds)
{
	int64_t n = 0;
	return str_to_i64(val_as_str(val_find(val_get(ds, metadata, annotations), TEMPLATE_GENERATION)), &n) ? n : 0;
}

static struct val set_template_generation(struct arena *a, struct val ds, int64_t n)
{
	struct val annotations = val_get(ds, metadata, annotations);
	annotations = val_put(a, annotations, atom_make(a, TEMPLATE_GENERATION),
			      VAL_STR(arena_printf(a, "%lld", (long long)n)));
	return val_with(a, ds, annotations, metadata, annotations);
}

struct val prepare_daemon_set(struct arena *a, struct val ds)
{
	return set_template_generation(a, ds, MAX(template_generation(ds), (int64_t)1));
}

/* An annotation counts the changes of the template; once it was a field. */
struct val prepare_daemon_set_update(struct arena *a, str subresource, struct val ds, struct val old)
{
	bool changed = !val_semantic_equal(TYPE(core_v1, PodTemplateSpec), val_get(ds, spec, template),
					   val_get(old, spec, template));
	return set_template_generation(a, ds, template_generation(old) + (subresource.n == 0 && changed));
}

/* Annotations are copied to ReplicaSets, so a change of them counts as one of the deployment. */
struct val prepare_deployment_update(struct arena *a, str subresource, struct val deployment, struct val old)
{
	if (str_eq(subresource, STR("status")))
		return val_with(a, deployment, val_get(old, metadata, labels), metadata, labels);
	if (val_semantic_equal(NULL, val_get(deployment, metadata, annotations), val_get(old, metadata, annotations)))
		return deployment;
	return val_with(a, deployment, val_of_int(val_int(old, metadata, generation) + 1), metadata, generation);
}
