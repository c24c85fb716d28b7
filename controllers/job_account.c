/*
 * The second half of job_plan: which pods are too many, what the status says while pods are being counted, and what new pods look like.
 */
#include <stdlib.h>

#include "codec/atoms.h"
#include "controllers/controller.h"
#include "controllers/job_plan_priv.h"
#include "controllers/labels.h"
#include "controllers/moment.h"
#include "controllers/pod_control.h"

/* ---- too many ---- */

static int phase_rank(struct val pod)
{
	str phase = val_str(pod, status, phase);
	return str_eq(phase, STR("Pending")) ? 0 : str_eq(phase, STR("Unknown")) ? 1 : 2;
}

static int64_t restarts(struct val pod)
{
	int64_t most = 0;
	VAL_EACH(s, val_get(pod, status, containerStatuses))
		most = MAX(most, val_int(*s, restartCount));
	return most;
}

static int64_t ready_since(struct val pod) { return moment_of(val_get(pod_condition(pod, "Ready"), lastTransitionTime)); }

/* Later first; a time that is missing comes before all. */
static int later_first(int64_t x, int64_t y)
{
	if (x == y)
		return 0;
	return x == 0 || (y != 0 && x > y) ? -1 : 1;
}

/* As ActivePods of 1.36: those that are furthest from doing work are given up first. */
static int by_progress(const void *a, const void *b)
{
	struct val x = ((const struct job_pod *)a)->pod, y = ((const struct job_pod *)b)->pod;
	bool x_ready = pod_is_ready(x), y_ready = pod_is_ready(y);
	int diff;

	if ((diff = (val_str(x, spec, nodeName).n != 0) - (val_str(y, spec, nodeName).n != 0)))
		return diff;
	if ((diff = phase_rank(x) - phase_rank(y)) || (diff = x_ready - y_ready))
		return diff;
	if (x_ready && y_ready && (diff = later_first(ready_since(x), ready_since(y))))
		return diff;
	if (restarts(x) != restarts(y))
		return restarts(x) > restarts(y) ? -1 : 1;
	return later_first(moment_of(val_get(x, metadata, creationTimestamp)), moment_of(val_get(y, metadata, creationTimestamp)));
}

static int by_index(const void *a, const void *b)
{
	const struct job_pod *x = a, *y = b;
	return x->index != y->index ? (x->index < y->index ? -1 : 1) : by_progress(a, b);
}

void job_plan_surplus(struct job_plan *p, int64_t at_least)
{
	struct job_pod *left = ARENA_ARRAY(p->arena, struct job_pod, p->n_active + 1);
	size_t n = 0, n_left = 0;

	p->remove = ARENA_ARRAY(p->arena, struct val, p->n_active + 1);
	for (size_t i = 0; i < p->n_pods; i++)
		if (p->pods[i].active)
			left[n++] = p->pods[i];
	if (p->indexed) {
		qsort(left, n, sizeof(*left), by_index);
		for (size_t i = 0; i < n; i++) {
			bool last_of_index = i + 1 == n || left[i + 1].index != left[i].index;
			if (last_of_index && left[i].index >= 0 && left[i].index < p->completions)
				left[n_left++] = left[i];
			else
				p->remove[p->n_remove++] = left[i].pod;
		}
	} else {
		n_left = n;
	}
	if ((int64_t)p->n_remove >= at_least)
		return;
	qsort(left, n_left, sizeof(*left), by_progress);
	for (size_t i = 0; i < n_left && (int64_t)p->n_remove < at_least; i++)
		p->remove[p->n_remove++] = left[i].pod;
}

/* ---- conditions ---- */

/* True when the list had to change. Nothing becomes False that was never there. */
static bool set_condition(struct job_plan *p, const char *type, const char *status, str reason, str message)
{
	struct val list = val_get(p->status, conditions), now = moment_time(p->arena, p->view.now_ns);
	struct val c = OBJECT(p->arena, F(type, VAL_STR(str_of(type))), F(status, VAL_STR(str_of(status))), F(lastProbeTime, now),
			      F(lastTransitionTime, now), F(reason, reason.n ? VAL_STR(reason) : VAL_EMPTY),
			      F(message, message.n ? VAL_STR(message) : VAL_EMPTY));
	size_t i = 0;

	while (i < val_len(list) && !str_eq(val_str(val_at(list, i), type), str_of(type)))
		i++;
	struct val old = val_at(list, i);
	if (val_exists(old) ? str_eq(val_str(old, status), str_of(status)) && str_eq(val_str(old, reason), reason) &&
			      str_eq(val_str(old, message), message) : str_eq(str_of(status), STR("False")))
		return false;
	list = val_exists(old) ? val_list_set(p->arena, list, i, c) : val_list_append(p->arena, list, c);
	p->status = val_with(p->arena, p->status, list, conditions);
	return true;
}

/* Suspension is told in a condition, and the clock of the deadline begins anew when it ends. */
static bool follow_suspension(struct job_plan *p)
{
	if (p->suspended) {
		if (!set_condition(p, "Suspended", "True", STR("JobSuspended"), STR("Job suspended")))
			return false;
		p->told = "Suspended";
		p->status = val_without(p->arena, p->status, startTime);
		return true;
	}
	if (!set_condition(p, "Suspended", "False", STR("JobResumed"), STR("Job resumed")))
		return false;
	p->told = "Resumed";
	p->status = val_with(p->arena, p->status, moment_time(p->arena, p->view.now_ns), startTime);
	return true;
}

/* ---- counting ---- */

static struct val uncounted(const struct job_plan *p, bool failed)
{
	struct val u = val_get(p->status, uncountedTerminatedPods);
	return failed ? val_get(u, failed) : val_get(u, succeeded);
}

static void set_uncounted(struct job_plan *p, struct val succeeded, struct val failed)
{
	struct val u = OBJECT(p->arena, F(succeeded, val_len(succeeded) ? succeeded : VAL_EMPTY), F(failed, val_len(failed) ? failed : VAL_EMPTY));
	p->status = val_with(p->arena, p->status, u, uncountedTerminatedPods);
}

static void set_count(struct job_plan *p, atom name, int64_t n)
{
	p->status = val_put(p->arena, p->status, name, n ? val_of_int(n) : VAL_EMPTY);
}

static int by_text(const void *x, const void *y)
{
	str a = *(const str *)x, b = *(const str *)y;
	int diff = memcmp(a.p, b.p, MIN(a.n, b.n));
	return diff ? diff : a.n < b.n ? -1 : a.n > b.n;
}

/* The uids of the list that are among the n tracked ones, which are sorted. */
static struct val still_tracked(struct arena *a, struct val list, const str *tracked, size_t n)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(u, list) {
		str uid = val_as_str(*u);
		if (n && bsearch(&uid, tracked, n, sizeof(*tracked), by_text))
			val_add_item(&b, *u);
	}
	return val_end_list(&b);
}

/* Pods whose finalizer is gone move from the uncounted ones to the counts. True when there were some. */
static bool count_released(struct job_plan *p)
{
	str *tracked = ARENA_ARRAY(p->arena, str, p->n_pods + 1);
	size_t n = 0;

	for (size_t i = 0; i < p->n_pods; i++)
		if (p->pods[i].tracked)
			tracked[n++] = p->pods[i].uid;
	qsort(tracked, n, sizeof(*tracked), by_text);
	struct val succeeded = still_tracked(p->arena, uncounted(p, false), tracked, n);
	struct val failed = still_tracked(p->arena, uncounted(p, true), tracked, n);
	int64_t new_succeeded = (int64_t)val_len(uncounted(p, false)) - val_len(succeeded);
	int64_t new_failed = (int64_t)val_len(uncounted(p, true)) - val_len(failed);
	if (!new_succeeded && !new_failed)
		return false;
	set_count(p, A_succeeded, val_int(p->status, succeeded) + new_succeeded);
	set_count(p, A_failed, val_int(p->status, failed) + new_failed);
	set_uncounted(p, succeeded, failed);
	return true;
}

static bool is_delayed(const struct job_plan *p, const struct job_pod *x)
{
	for (size_t i = 0; p->per_index && i < p->n_delayed; i++)
		if (str_eq(val_str(p->delayed[i], metadata, uid), x->uid))
			return true;
	return false;
}

static bool can_release(const struct job_plan *p, const struct job_pod *x)
{
	if (val_has(p->view.job, metadata, deletionTimestamp) || p->finish.type || x->succeeded)
		return true;
	return x->failed && !is_delayed(p, x);
}

static bool list_has(struct val list, str uid)
{
	VAL_EACH(u, list)
		if (str_eq(val_as_str(*u), uid))
			return true;
	return false;
}

/* What becomes of one pod that is released. */
struct tally {
	struct val was_succeeded, was_failed;    /* uncounted before this look */
	struct val_builder succeeded, failed;    /* and after it */
	int64_t *indexes;
	size_t n_indexes, n;
};

static void tally_pod(struct job_plan *p, struct tally *t, const struct job_pod *x)
{
	bool valid = !p->indexed || (x->index >= 0 && x->index < p->completions);
	bool was_failed = list_has(t->was_failed, x->uid);

	if (x->succeeded && !was_failed) {
		/* The index keeps a pod from being counted twice. */
		if (p->indexed && valid && !job_indexes_has(&p->before, x->index))
			t->indexes[t->n_indexes++] = x->index;
		else if (!p->indexed && !list_has(t->was_succeeded, x->uid))
			val_add_item(&t->succeeded, VAL_STR(x->uid));
		else
			return;
		p->write = true;
		t->n++;
		return;
	}
	/* When a Job has failed, pods that did not end count as failed too. */
	bool lost = x->failed || (p->finish.type && !str_eq(str_of(p->finish.type), STR("SuccessCriteriaMet")));
	if (!lost || was_failed || !valid ||
	    job_failure_match(p->arena, val_get(p->view.job, spec, podFailurePolicy), x->pod, NULL) == JOB_FAILURE_IGNORE)
		return;
	val_add_item(&t->failed, VAL_STR(x->uid));
	p->write = true;
	t->n++;
}

static int by_index_alone(const void *a, const void *b)
{
	const struct job_pod *const *x = a, *const *y = b;
	if ((*x)->index != (*y)->index)
		return (*x)->index < (*y)->index ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

static void tally_pods(struct job_plan *p)
{
	struct tally t = { .was_succeeded = uncounted(p, false), .was_failed = uncounted(p, true) };
	struct job_pod **order = ARENA_ARRAY(p->arena, struct job_pod *, p->n_pods + 1);

	t.succeeded = val_builder(p->arena);
	t.failed = val_builder(p->arena);
	t.indexes = ARENA_ARRAY(p->arena, int64_t, p->n_pods + 1);
	VAL_EACH(u, t.was_succeeded)
		val_add_item(&t.succeeded, *u);
	VAL_EACH(u, t.was_failed)
		val_add_item(&t.failed, *u);
	t.n = val_len(t.was_succeeded) + val_len(t.was_failed);
	for (size_t i = 0; i < p->n_pods; i++)
		order[i] = &p->pods[i];
	if (p->indexed)
		qsort(order, p->n_pods, sizeof(struct job_pod *), by_index_alone);
	p->release = ARENA_ARRAY(p->arena, struct job_pod *, p->n_pods + 1);
	for (size_t i = 0; i < p->n_pods && !p->more; i++) {
		if (!order[i]->tracked || !can_release(p, order[i]))
			continue;
		p->release[p->n_release++] = order[i];
		tally_pod(p, &t, order[i]);
		p->more = t.n >= JOB_UNCOUNTED_MAX;
	}
	if (t.succeeded.n != val_len(t.was_succeeded) || t.failed.n != val_len(t.was_failed) || !val_has(p->status, uncountedTerminatedPods))
		set_uncounted(p, val_end_list(&t.succeeded), val_end_list(&t.failed));
	if (p->indexed)
		p->done = job_indexes_with(p->arena, &p->done, t.indexes, t.n_indexes);
}

static void write_indexes(struct job_plan *p)
{
	str done = job_indexes_text(p->arena, &p->done), lost = p->per_index ? job_indexes_text(p->arena, &p->lost) : STR_NONE;
	struct val old = val_get(p->status, failedIndexes);

	p->write |= !str_eq(done, val_str(p->status, completedIndexes));
	set_count(p, A_succeeded, job_indexes_total(&p->done));
	p->status = val_with(p->arena, p->status, done.n ? VAL_STR(done) : VAL_EMPTY, completedIndexes);
	if (p->per_index != val_exists(old) || (p->per_index && !str_eq(val_as_str(old), lost))) {
		p->status = val_with(p->arena, p->status, p->per_index ? VAL_STR(lost) : VAL_EMPTY, failedIndexes);
		p->write = true;
	}
}

/* The interim condition goes into the status now; what is left is the final one. */
static void write_interim(struct job_plan *p)
{
	bool failure = p->finish.type && str_eq(str_of(p->finish.type), STR("FailureTarget"));
	bool success = p->finish.type && str_eq(str_of(p->finish.type), STR("SuccessCriteriaMet"));

	if (!failure && !success)
		return;
	p->write |= set_condition(p, p->finish.type, "True", p->finish.reason, p->finish.message);
	p->finish.type = failure ? "Failed" : "Complete";
}

static bool is_complete(const struct job_plan *p)
{
	return p->active == 0 && (p->completions < 0 ? p->succeeded > 0 : p->succeeded >= p->completions);
}

/* status.ready and status.terminating are there also when 0. */
static void write_pointer(struct job_plan *p, atom name, int64_t n)
{
	struct val old = val_member(p->status, name);
	p->write |= !val_exists(old) || val_as_int(old) != n;
	p->status = val_put(p->arena, p->status, name, val_of_int(n));
}

void job_plan_account(struct job_plan *p, size_t removed, size_t ready, size_t made)
{
	p->active += (int64_t)made - (int64_t)removed;
	p->terminating += (int64_t)removed;
	p->ready -= (int64_t)ready;
	if (p->finish.type) {
		/* Pods that could not be deleted, or that the copy does not show yet, are still to be dealt with. */
		if (removed != p->n_active || !p->view.expectations_met)
			p->finish.type = NULL;
	} else if (is_complete(p)) {
		p->finish = (struct job_finish){ "SuccessCriteriaMet", STR("CompletionsReached"), STR("Reached expected number of succeeded pods") };
	} else if (p->managed) {
		p->write |= follow_suspension(p);
	}
	p->write |= p->active != val_int(p->status, active);
	set_count(p, A_active, p->active);
	write_pointer(p, A_ready, p->ready);
	write_pointer(p, A_terminating, p->terminating);
	p->write |= count_released(p);
	tally_pods(p);
	if (p->indexed)
		write_indexes(p);
	write_interim(p);
}

void job_plan_settle(struct job_plan *p, const bool *released)
{
	bool all = true;

	for (size_t i = 0; i < p->n_release; i++) {
		p->release[i]->tracked &= !released[i];
		all &= released[i];
	}
	p->write = count_released(p);
	p->finished = all && !p->more && p->finish.type && p->terminating == 0 && !val_len(uncounted(p, false)) && !val_len(uncounted(p, true));
	if (!p->finished)
		return;
	set_condition(p, p->finish.type, "True", p->finish.reason, p->finish.message);
	if (str_eq(str_of(p->finish.type), STR("Complete")))
		p->status = val_with(p->arena, p->status, moment_time(p->arena, p->view.now_ns), completionTime);
	p->write = true;
}

/* ---- new pods ---- */

static struct val with_index_env(struct arena *a, struct val containers)
{
	struct val_builder out = val_builder(a);

	VAL_EACH(c, containers) {
		struct val env = val_get(*c, env);
		bool there = false;
		VAL_EACH(e, env)
			there |= str_eq(val_str(*e, name), STR("JOB_COMPLETION_INDEX"));
		struct val field = OBJECT(a, F(fieldPath, VAL_LIT("metadata.labels['" JOB_INDEX "']")));
		struct val var = OBJECT(a, F(name, VAL_LIT("JOB_COMPLETION_INDEX")), F(valueFrom, OBJECT(a, F(fieldRef, field))));
		val_add_item(&out, there ? *c : val_with(a, *c, val_list_append(a, env, var), env));
	}
	return val_end_list(&out);
}

static struct val number_text(struct arena *a, int64_t n) { return VAL_STR(arena_printf(a, "%lld", (long long)n)); }

static struct val with_failure_counts(struct arena *a, struct val annotations, struct val job, struct val replaced)
{
	int64_t n_failed = 0, n_ignored = 0;

	if (val_exists(replaced)) {
		bool ignore = job_failure_match(a, val_get(job, spec, podFailurePolicy), replaced, NULL) == JOB_FAILURE_IGNORE;
		n_failed = job_pod_failures(replaced) + !ignore;
		n_ignored = job_pod_ignored_failures(replaced) + ignore;
	}
	annotations = labels_put(a, annotations, STR(JOB_FAILURES), number_text(a, n_failed));
	return n_ignored ? labels_put(a, annotations, STR(JOB_IGNORED_FAILURES), number_text(a, n_ignored)) : annotations;
}

struct val job_pod_template(struct arena *a, struct val job, const struct job_new_pod *n)
{
	struct val t = val_get(job, spec, template), finalizers = val_get(t, metadata, finalizers), finalizer = VAL_LIT(JOB_FINALIZER);

	if (!list_has(finalizers, val_as_str(finalizer)))
		t = val_with(a, t, val_list_append(a, finalizers, finalizer), metadata, finalizers);
	if (n->index < 0)
		return t;
	struct val index = number_text(a, n->index);
	struct val annotations = labels_put(a, val_get(t, metadata, annotations), STR(JOB_INDEX), index);
	if (val_has(job, spec, backoffLimitPerIndex))
		annotations = with_failure_counts(a, annotations, job, n->replaced);
	t = val_with(a, t, annotations, metadata, annotations);
	t = val_with(a, t, labels_put(a, val_get(t, metadata, labels), STR(JOB_INDEX), index), metadata, labels);
	str host = arena_printf(a, STR_FMT "-%lld", STR_ARG(val_str(job, metadata, name)), (long long)n->index);
	t = val_with(a, t, VAL_STR(host), spec, hostname);
	if (val_len(val_get(t, spec, initContainers)))
		t = val_with(a, t, with_index_env(a, val_get(t, spec, initContainers)), spec, initContainers);
	return val_with(a, t, with_index_env(a, val_get(t, spec, containers)), spec, containers);
}

str job_pod_generate_name(struct arena *a, struct val job, const struct job_new_pod *n)
{
	enum { PREFIX_MAX = 58 };

	if (n->index < 0)
		return STR_NONE;
	str name = val_str(job, metadata, name), end = arena_printf(a, "-%lld-", (long long)n->index);
	if (name.n + end.n > PREFIX_MAX)
		name.n = PREFIX_MAX - end.n;
	return arena_join(a, name, end);
}
