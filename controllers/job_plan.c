/*
 * The end of a Job is decided in the order of 1.36: what an earlier look has written down (SuccessCriteriaMet, FailureTarget) stays; then pod
 * failure policy, back-off limit, deadline, failed indexes; then success policy and completions. The interim condition is written before
 * finalizers are removed, since pods that tell why may be gone afterwards; the final one when all pods are counted and none is terminating.
 */
#include "controllers/job_plan.h"

#include <stdlib.h>

#include "codec/atoms.h"
#include "controllers/controller.h"
#include "controllers/job_plan_priv.h"
#include "controllers/labels.h"
#include "controllers/moment.h"
#include "controllers/pod_control.h"

/* ---- looking at pods ---- */

bool job_is_finished(struct val job)
{
	VAL_EACH(c, val_get(job, status, conditions)) {
		str type = val_str(*c, type);
		if ((str_eq(type, STR("Complete")) || str_eq(type, STR("Failed"))) && str_eq(val_str(*c, status), STR("True")))
			return true;
	}
	return false;
}

bool job_is_managed_by_us(struct val job)
{
	str by = val_str(job, spec, managedBy);
	return !by.n || str_eq(by, STR(JOB_CONTROLLER));
}

bool job_pod_is_tracked(struct val pod)
{
	VAL_EACH(f, val_get(pod, metadata, finalizers))
		if (str_eq(val_as_str(*f), STR(JOB_FINALIZER)))
			return true;
	return false;
}

static int64_t annotation_number(struct val pod, str name, int64_t missing)
{
	int64_t n;
	struct val v = val_find(val_get(pod, metadata, annotations), name);
	return val_exists(v) && str_to_i64(val_as_str(v), &n) && n >= 0 && n <= INT32_MAX ? n : missing;
}

int64_t job_pod_index(struct val pod)
{
	return annotation_number(pod, STR(JOB_INDEX), -1);
}

int64_t job_pod_failures(struct val pod) { return annotation_number(pod, STR(JOB_FAILURES), 0); }
int64_t job_pod_ignored_failures(struct val pod) { return annotation_number(pod, STR(JOB_IGNORED_FAILURES), 0); }

static int64_t failures_in_all(struct val pod) { return job_pod_failures(pod) + job_pod_ignored_failures(pod); }

static bool phase_is(struct val pod, const char *phase) { return str_eq(val_str(pod, status, phase), str_of(phase)); }

/* A pod that is being deleted counts as failed, unless only failed ones are replaced. */
static bool pod_failed(const struct job_plan *p, struct val pod)
{
	return phase_is(pod, "Failed") ||
	       (!p->only_failed && val_has(pod, metadata, deletionTimestamp) && !phase_is(pod, "Succeeded"));
}

static bool uid_in(struct val list, str uid)
{
	VAL_EACH(u, list)
		if (str_eq(val_as_str(*u), uid))
			return true;
	return false;
}

static bool index_is_valid(const struct job_plan *p, int64_t index)
{
	return !p->indexed || (index >= 0 && index < p->completions);
}

static void look_at_pods(struct job_plan *p)
{
	p->pods = ARENA_ARRAY(p->arena, struct job_pod, val_len(p->view.pods) + 1);
	VAL_EACH(pod, p->view.pods) {
		struct job_pod *x = &p->pods[p->n_pods++];
		*x = (struct job_pod){ .pod = *pod, .uid = val_str(*pod, metadata, uid), .index = job_pod_index(*pod) };
		x->tracked = job_pod_is_tracked(*pod) && !(p->view.released && p->view.released(p->view.arg, x->uid));
		x->active = pod_is_active(*pod);
		x->succeeded = phase_is(*pod, "Succeeded");
		x->failed = pod_failed(p, *pod);
		p->n_active += x->active;
		p->ready += x->active && pod_is_ready(*pod);
		p->terminating += pod_is_terminating(*pod);
	}
	p->active = (int64_t)p->n_active;
}

static bool is_counted(const struct job_plan *p, struct val pod)
{
	return job_failure_match(p->arena, val_get(p->view.job, spec, podFailurePolicy), pod, NULL) != JOB_FAILURE_IGNORE;
}

/* Pods that finished since the status was written: counts, and the pace of new ones. */
static void count_new(struct job_plan *p)
{
	struct val uncounted = val_get(p->status, uncountedTerminatedPods);
	struct val old_succeeded = val_get(uncounted, succeeded), old_failed = val_get(uncounted, failed);
	int64_t *succeeded = ARENA_ARRAY(p->arena, int64_t, p->n_pods + 1), *failed = ARENA_ARRAY(p->arena, int64_t, p->n_pods + 1);
	size_t n_succeeded = 0, n_failed = 0, ignored = 0;

	for (struct job_pod *x = p->pods; x < p->pods + p->n_pods; x++) {
		if (!x->tracked || !index_is_valid(p, x->index))
			continue;
		/* One that counts as failed since it was deleted does not become a success: the Job would be complete without it. */
		if (x->succeeded && !uid_in(old_succeeded, x->uid) && !uid_in(old_failed, x->uid))
			succeeded[n_succeeded++] = job_pod_finished_ns(x->pod);
		if (x->failed && !uid_in(old_failed, x->uid)) {
			failed[n_failed++] = job_pod_finished_ns(x->pod);
			ignored += !is_counted(p, x->pod);
		}
	}
	p->succeeded = val_int(p->status, succeeded) + (int64_t)n_succeeded + val_len(old_succeeded);
	p->failed = val_int(p->status, failed) + (int64_t)(n_failed - ignored) + val_len(old_failed);
	p->backoff = job_backoff_after(p->view.backoff, succeeded, n_succeeded, failed, n_failed);
}

/* ---- the end ---- */

static bool restarted_too_often(const struct job_plan *p)
{
	int64_t restarts = 0, limit = val_int(p->view.job, spec, backoffLimit);

	if (!str_eq(val_str(p->view.job, spec, template, spec, restartPolicy), STR("OnFailure")))
		return false;
	for (size_t i = 0; i < p->n_pods; i++) {
		struct val pod = p->pods[i].pod;
		if (!phase_is(pod, "Running") && !phase_is(pod, "Pending"))
			continue;
		VAL_EACH(s, val_get(pod, status, initContainerStatuses))
			restarts += val_int(*s, restartCount);
		VAL_EACH(s, val_get(pod, status, containerStatuses))
			restarts += val_int(*s, restartCount);
	}
	return limit == 0 ? restarts > 0 : restarts >= limit;
}

static bool fail(struct job_plan *p, const char *reason, const char *message)
{
	p->finish = (struct job_finish){ "FailureTarget", str_of(reason), str_of(message) };
	return true;
}

/* What an earlier look has decided. */
static bool ends_as_before(struct job_plan *p)
{
	static const char *const types[][2] = { { "SuccessCriteriaMet", "SuccessCriteriaMet" }, { "FailureTarget", "Failed" } };

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct val c = condition_find(val_get(p->status, conditions), types[i][0]);
		if (str_eq(val_str(c, status), STR("True"))) {
			p->finish = (struct job_finish){ types[i][1], val_str(c, reason), val_str(c, message) };
			return true;
		}
	}
	return false;
}

static bool ends_by_failure_policy(struct job_plan *p)
{
	struct val policy = val_get(p->view.job, spec, podFailurePolicy);
	str message;

	for (size_t i = 0; val_exists(policy) && i < p->n_pods; i++)
		if (p->pods[i].failed && job_failure_match(p->arena, policy, p->pods[i].pod, &message) == JOB_FAILURE_FAIL_JOB) {
			p->finish = (struct job_finish){ "FailureTarget", STR("PodFailurePolicy"), message };
			return true;
		}
	return false;
}

static bool ends_by_limits(struct job_plan *p)
{
	struct val job = p->view.job, deadline = val_get(job, spec, activeDeadlineSeconds);
	int64_t started = moment_of(val_get(p->status, startTime));

	/* A Job with limits per index has a back-off limit of 2147483647 by default. */
	if (p->failed > val_int(job, spec, backoffLimit) || restarted_too_often(p))
		return fail(p, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
	if (!val_exists(deadline) || p->suspended || !started)
		return false;
	int64_t left = started + moment_seconds(deadline) - p->view.now_ns;
	if (left <= 0)
		return fail(p, "DeadlineExceeded", "Job was active longer than specified deadline");
	p->again_ns = left;
	return false;
}

static bool index_failed(const struct job_plan *p, const struct job_pod *x)
{
	if (!x->failed)
		return false;
	enum job_failure f = job_failure_match(p->arena, val_get(p->view.job, spec, podFailurePolicy), x->pod, NULL);
	return f == JOB_FAILURE_FAIL_INDEX ||
	       (f != JOB_FAILURE_IGNORE && job_pod_failures(x->pod) >= val_int(p->view.job, spec, backoffLimitPerIndex));
}

static void look_at_indexes(struct job_plan *p)
{
	int64_t *done = ARENA_ARRAY(p->arena, int64_t, p->n_pods + 1), *lost = ARENA_ARRAY(p->arena, int64_t, p->n_pods + 1);
	size_t n_done = 0, n_lost = 0;

	for (struct job_pod *x = p->pods; x < p->pods + p->n_pods; x++) {
		/* A pod that was released without our copy showing it is in the status already: it does no harm here. */
		if (x->index < 0 || x->index >= p->completions || !job_pod_is_tracked(x->pod))
			continue;
		if (x->succeeded)
			done[n_done++] = x->index;
		if (p->per_index && index_failed(p, x))
			lost[n_lost++] = x->index;
	}
	p->before = job_indexes_parse(p->arena, val_str(p->status, completedIndexes), p->completions);
	p->done = job_indexes_with(p->arena, &p->before, done, n_done);
	p->succeeded = job_indexes_total(&p->done);
	struct job_indexes lost_before = job_indexes_parse(p->arena, val_str(p->status, failedIndexes), p->completions);
	p->lost = job_indexes_with(p->arena, &lost_before, lost, n_lost);
}

static void ends_by_indexes(struct job_plan *p)
{
	struct val max = val_get(p->view.job, spec, maxFailedIndexes);
	int64_t lost = job_indexes_total(&p->lost);
	str message;

	if (p->per_index && val_exists(max) && lost > val_as_int(max))
		fail(p, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes");
	else if (p->per_index && lost > 0 && lost + p->succeeded >= p->completions)
		fail(p, "FailedIndexes", "Job has failed indexes");
	else if (job_success_match(p->arena, val_get(p->view.job, spec, successPolicy), p->completions, &p->done, &message))
		p->finish = (struct job_finish){ "SuccessCriteriaMet", STR("SuccessPolicy"), message };
}

/*
 * With limits per index, the newest failed pod of an index that has no pod and no result yet keeps its finalizer until the one that replaces it
 * has taken over its count.
 */
static void find_delayed(struct job_plan *p)
{
	int64_t *busy = ARENA_ARRAY(p->arena, int64_t, p->n_pods + 1);
	size_t n_busy = 0;

	p->delayed = ARENA_ARRAY(p->arena, struct val, p->n_pods + 1);
	for (struct job_pod *x = p->pods; x < p->pods + p->n_pods; x++)
		if (x->active && x->index >= 0)
			busy[n_busy++] = x->index;
	struct job_indexes over = job_indexes_merge(p->arena, &p->done, &p->lost);
	over = job_indexes_with(p->arena, &over, busy, n_busy);
	for (struct job_pod *x = p->pods; x < p->pods + p->n_pods; x++) {
		if (!x->tracked || !x->failed || x->index < 0 || x->index >= p->completions || job_indexes_has(&over, x->index))
			continue;
		struct val *slot = NULL;
		for (size_t i = 0; i < p->n_delayed && !slot; i++)
			if (job_pod_index(p->delayed[i]) == x->index)
				slot = &p->delayed[i];
		if (!slot)
			p->delayed[p->n_delayed++] = x->pod;
		else if (failures_in_all(*slot) <= failures_in_all(x->pod) &&
			 job_pod_finished_ns(x->pod) >= job_pod_finished_ns(*slot))
			*slot = x->pod;
	}
}

static struct val find_replaced(const struct job_plan *p, int64_t index)
{
	for (size_t i = 0; i < p->n_delayed; i++)
		if (job_pod_index(p->delayed[i]) == index)
			return p->delayed[i];
	return VAL_EMPTY;
}

/* ---- which pods ---- */

static void add_new(struct job_plan *p, int64_t index, struct val replaced)
{
	p->create[p->n_create++] = (struct job_new_pod){ index, replaced };
}

static int64_t index_wait_ns(const struct job_plan *p, struct val replaced)
{
	if (!val_exists(replaced))
		return 0;
	struct job_backoff b = { failures_in_all(replaced) + 1, job_pod_finished_ns(replaced) };
	return job_backoff_left_ns(b, p->view.now_ns);
}

static void add_new_indexes(struct job_plan *p, size_t count)
{
	int64_t *busy = ARENA_ARRAY(p->arena, int64_t, MAX(p->n_pods, count) + 1), wait = 0;
	size_t n = 0;

	for (struct job_pod *x = p->pods; x < p->pods + p->n_pods; x++)
		if (x->index >= 0 && (x->active || (p->only_failed && pod_is_terminating(x->pod))))
			busy[n++] = x->index;
	struct job_indexes taken = job_indexes_with(p->arena, &p->done, busy, n);
	taken = job_indexes_merge(p->arena, &taken, &p->lost);
	n = job_indexes_missing(&taken, p->completions, count, busy);
	for (size_t i = 0; i < n; i++) {
		struct val replaced = p->per_index ? find_replaced(p, busy[i]) : VAL_EMPTY;
		int64_t left = index_wait_ns(p, replaced);
		if (left == 0)
			add_new(p, busy[i], replaced);
		else
			wait = wait ? MIN(wait, left) : left;
	}
	/* Those that must wait are looked at when the others show up; only when there are none does time have to pass. */
	if (p->n_create == 0 && wait)
		job_plan_again(p, wait);
}

static void add_missing(struct job_plan *p, int64_t count)
{
	int64_t wait = p->per_index ? 0 : job_backoff_left_ns(p->backoff, p->view.now_ns);

	if (wait > 0) {
		job_plan_again(p, wait);
		return;
	}
	count = MIN(count, (int64_t)JOB_PODS_MAX);
	p->create = ARENA_ARRAY(p->arena, struct job_new_pod, (size_t)count);
	if (p->indexed)
		add_new_indexes(p, (size_t)count);
	for (int64_t i = 0; !p->indexed && i < count; i++)
		add_new(p, -1, VAL_EMPTY);
}

static int64_t wanted_active(const struct job_plan *p)
{
	int64_t parallelism = val_int(p->view.job, spec, parallelism);

	if (p->suspended)
		return 0;
	if (p->completions < 0)
		return p->succeeded > 0 ? p->active : parallelism;
	int64_t left = MAX(p->completions - p->succeeded, INT64_C(0));
	return MIN(left, parallelism);
}

static void decide_pods(struct job_plan *p)
{
	int64_t want = wanted_active(p);

	p->managed = true;
	job_plan_surplus(p, MAX(p->active - want, INT64_C(0)));
	if (!p->suspended)
		p->n_remove = MIN(p->n_remove, (size_t)JOB_PODS_MAX);
	if (p->n_remove || p->suspended)
		return;
	int64_t missing = want - p->active - (p->only_failed ? p->terminating : 0);
	if (missing > 0)
		add_missing(p, missing);
}

void job_plan_again(struct job_plan *p, int64_t ns)
{
	p->again_ns = p->again_ns ? MIN(p->again_ns, ns) : ns;
}

void job_plan_make(struct arena *a, const struct job_view *v, struct job_plan *ret)
{
	struct val spec = val_get(v->job, spec), completions = val_get(spec, completions);

	*ret = (struct job_plan){ .arena = a, .view = *v, .status = val_get(v->job, status) };
	ret->indexed = str_eq(val_str(spec, completionMode), STR("Indexed"));
	ret->per_index = ret->indexed && val_has(spec, backoffLimitPerIndex);
	ret->suspended = val_bool(spec, suspend);
	ret->only_failed = str_eq(val_str(spec, podReplacementPolicy), STR("Failed")) || val_has(spec, podFailurePolicy);
	ret->completions = val_exists(completions) ? val_as_int(completions) : -1;
	look_at_pods(ret);
	count_new(ret);
	if (!val_has(ret->status, startTime) && !ret->suspended)
		ret->status = val_with(a, ret->status, moment_time(a, v->now_ns), startTime);
	if (!ends_as_before(ret) && !ends_by_failure_policy(ret))
		ends_by_limits(ret);
	if (ret->indexed) {
		look_at_indexes(ret);
		if (!ret->finish.type)
			ends_by_indexes(ret);
		if (ret->per_index)
			find_delayed(ret);
	}
	if (ret->finish.type) {
		ret->remove = ARENA_ARRAY(a, struct val, ret->n_active + 1);
		ret->remove_keeps_finalizer = true;
		for (size_t i = 0; i < ret->n_pods; i++)
			if (ret->pods[i].active)
				ret->remove[ret->n_remove++] = ret->pods[i].pod;
	} else if (v->expectations_met && !val_has(v->job, metadata, deletionTimestamp)) {
		decide_pods(ret);
	}
}
