/*
 * The status of jobs. Jobs can be run by controllers other than Kubernetes' own, so the server checks what they write;
 * but only what a write changes, so that one wrong status does not block all others.
 */
#include "codec/atoms.h"
#include "codec/time.h"
#include "machinery/validate_workloads.h"

struct job_change {
	struct field_errors *e;
	const struct field_path *at; /* status */
	struct val job, spec, status, old, old_status;
	bool complete, failed, finished;                           /* now */
	bool complete_changed, failed_changed, finished_changed;
};

static bool is_true(struct val job, const char *type) { return job_condition(job, str_of(type), STR("True")); }
static bool is_finished(struct val job) { return is_true(job, "Complete") || is_true(job, "Failed"); }
static bool flipped(const struct job_change *c, const char *type) { return is_true(c->job, type) != is_true(c->old, type); }

static bool changed(const struct job_change *c, atom name)
{
	struct val now = val_member(c->status, name), before = val_member(c->old_status, name);
	return !val_equal(now, before) && !(val_is_nil(now) && val_is_nil(before));
}

static void complain(const struct job_change *c, const char *text)
{
	field_invalid(c->e, FIELD(c->at, "conditions"), FIELD_VALUE_OMITTED, "%s", text);
}

/* ---- the status for itself ---- */

static void check_uids(struct job_change *c, const struct field_path *at, struct val uids, struct map *seen)
{
	size_t i = 0;
	VAL_EACH(uid, uids) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (val_as_str(*uid).n == 0)
			field_invalid(c->e, item, *uid, "must not be empty");
		else if (!set_add(seen, val_as_str(*uid)))
			field_duplicate(c->e, item, *uid);
	}
}

static void check_counters(struct job_change *c)
{
	static const uint16_t counters[] = { A_active, A_succeeded, A_failed, A_ready, A_terminating };
	CLEANUP(map_done) struct map seen = MAP_INIT;
	const struct field_path *uncounted = FIELD(c->at, "uncountedTerminatedPods");

	for (size_t i = 0; i < ARRAY_LEN(counters); i++)
		check_non_negative(c->e, FIELD_STR(c->at, atom_str(counters[i])), val_member(c->status, counters[i]));
	check_uids(c, FIELD(uncounted, "succeeded"), val_get(c->status, uncountedTerminatedPods, succeeded), &seen);
	check_uids(c, FIELD(uncounted, "failed"), val_get(c->status, uncountedTerminatedPods, failed), &seen);
}

static bool is_before(struct val a, struct val b)
{
	struct timestamp x, y;
	struct err ignored;
	return time_parse(val_as_str(a), &x, &ignored) >= 0 && time_parse(val_as_str(b), &y, &ignored) >= 0 &&
		x.seconds < y.seconds;
}

static void check_end(struct job_change *c)
{
	struct val start = val_get(c->status, startTime), end = val_get(c->status, completionTime);
	const struct field_path *end_at = FIELD(c->at, "completionTime");
	bool end_changed = changed(c, A_completionTime);

	if ((c->complete_changed || c->failed_changed) && c->complete && c->failed)
		complain(c, "cannot set Complete=True and Failed=true conditions");
	if ((c->complete_changed || flipped(c, "FailureTarget")) && c->complete && is_true(c->job, "FailureTarget"))
		complain(c, "cannot set Complete=True and FailureTarget=true conditions");
	if ((c->complete_changed || end_changed) && val_exists(end) && !c->complete)
		field_invalid(c->e, end_at, end, "cannot set completionTime when there is no Complete=True condition");
	if ((c->complete_changed || end_changed) && !val_exists(end) && c->complete)
		field_required(c->e, end_at, "completionTime is required for Complete jobs");
	if ((changed(c, A_startTime) || end_changed) && val_exists(start) && val_exists(end) && is_before(end, start))
		field_invalid(c->e, end_at, end, "must be equal to or after `startTime`");
	if ((c->failed_changed || changed(c, A_failedIndexes)) && c->failed && !is_true(c->job, "FailureTarget"))
		complain(c, "cannot set Failed=True condition without the FailureTarget=true condition");
	if ((c->complete_changed || flipped(c, "SuccessCriteriaMet")) && c->complete &&
	    !is_true(c->job, "SuccessCriteriaMet"))
		complain(c, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
}

static void check_finished(struct job_change *c)
{
	struct val uncounted = val_get(c->status, uncountedTerminatedPods);
	bool idle = val_bool(c->spec, suspend) && val_has(c->spec, completions) && val_int(c->spec, completions) == 0;

	if (!c->finished)
		return;
	if ((c->finished_changed || changed(c, A_active)) && val_int(c->status, active) > 0)
		field_invalid(c->e, FIELD(c->at, "active"), val_get(c->status, active),
			      "active>0 is invalid for finished job");
	if ((c->finished_changed || changed(c, A_startTime)) && !idle && !val_has(c->status, startTime))
		field_required(c->e, FIELD(c->at, "startTime"), "startTime is required for finished job");
	if ((c->finished_changed || changed(c, A_uncountedTerminatedPods)) &&
	    (val_len(val_get(uncounted, failed)) || val_len(val_get(uncounted, succeeded))))
		field_invalid(c->e, FIELD(c->at, "uncountedTerminatedPods"),
			      internal_form(c->e->arena, TYPE(batch_v1, UncountedTerminatedPods), uncounted),
			      "must be empty for finished job");
}

/* ---- indexes ---- */

/* The next interval that can be read; false at the end. What cannot be read is reported elsewhere. */
static bool next_interval(struct arena *a, str *rest, int64_t completions, int64_t *ret_from, int64_t *ret_to)
{
	while (rest->n) {
		str part, from, to, why;
		str_cut(*rest, ',', &part, rest);
		if (count_indexes(a, part, completions, &why) <= 0)
			continue;
		if (!str_cut(part, '-', &from, &to))
			to = from;
		if (str_to_i64(from, ret_from) && str_to_i64(to, ret_to))
			return true;
	}
	return false;
}

static void check_overlap(struct job_change *c, str completed, str failed)
{
	int64_t completions = val_int(c->spec, completions), c0, c1, f0, f1;
	struct arena *a = c->e->arena;
	bool both = next_interval(a, &completed, completions, &c0, &c1) && next_interval(a, &failed, completions, &f0, &f1);

	while (both) {
		if (c0 <= f1 && f0 <= c1) {
			field_invalid(c->e, FIELD(c->at, "failedIndexes"), val_get(c->status, failedIndexes),
				      "failedIndexes and completedIndexes overlap at index: %lld", (long long)MAX(c0, f0));
			return;
		}
		both = c0 <= f0 ? next_interval(a, &completed, completions, &c0, &c1) :
			next_interval(a, &failed, completions, &f0, &f1);
	}
}

static void check_index_format(struct job_change *c, atom name, const char *what)
{
	struct val text = val_member(c->status, name);
	str why;

	if (count_indexes(c->e->arena, val_as_str(text), val_int(c->spec, completions), &why) < 0)
		field_invalid(c->e, FIELD_STR(c->at, atom_str(name)), text, "error parsing %s: " STR_FMT, what,
			      STR_ARG(why));
}

static void check_indexes(struct job_change *c)
{
	struct val completed = val_get(c->status, completedIndexes), failed = val_get(c->status, failedIndexes);
	bool completed_changed = changed(c, A_completedIndexes), failed_changed = changed(c, A_failedIndexes);
	bool limited = val_has(c->spec, completions), per_index = val_has(c->spec, backoffLimitPerIndex);

	if (completed_changed && limited)
		check_index_format(c, A_completedIndexes, "completedIndexes");
	if (failed_changed && limited && per_index && val_exists(failed))
		check_index_format(c, A_failedIndexes, "failedIndexes");
	if (completed_changed && val_as_str(completed).n && !str_eq(val_str(c->spec, completionMode), STR("Indexed")))
		field_invalid(c->e, FIELD(c->at, "completedIndexes"), completed,
			      "cannot set non-empty completedIndexes when non-indexed completion mode");
	if (failed_changed && !per_index && val_exists(failed))
		field_invalid(c->e, FIELD(c->at, "failedIndexes"), failed,
			      "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
	if ((failed_changed || completed_changed) && limited && val_exists(failed))
		check_overlap(c, val_as_str(completed), val_as_str(failed));
}

static void check_pods(struct job_change *c)
{
	struct val ready = val_get(c->status, ready), terminating = val_get(c->status, terminating);
	bool met = is_true(c->job, "SuccessCriteriaMet");

	if ((c->finished_changed || changed(c, A_terminating)) && c->finished && val_as_int(terminating) > 0)
		field_invalid(c->e, FIELD(c->at, "terminating"), terminating, "terminating>0 is invalid for finished job");
	if ((changed(c, A_ready) || changed(c, A_active)) && val_exists(ready) &&
	    val_as_int(ready) > val_int(c->status, active))
		field_invalid(c->e, FIELD(c->at, "ready"), ready, "cannot set more ready pods than active");
	if (met && c->failed)
		complain(c, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
	if (met && is_true(c->job, "FailureTarget"))
		complain(c, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
	if (val_has(c->spec, successPolicy) && !met && c->complete)
		complain(c, "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
}

/* ---- the change ---- */

static void check_terminal_conditions(struct job_change *c)
{
	static const char *const terminal[] = { "Failed", "Complete", "FailureTarget" };
	for (size_t i = 0; i < ARRAY_LEN(terminal); i++)
		if (is_true(c->old, terminal[i]) && !is_true(c->job, terminal[i]))
			field_invalid(c->e, FIELD(c->at, "conditions"), FIELD_VALUE_OMITTED,
				      "cannot disable the terminal %s=True condition",
				      terminal[i]);
}

static void check_change(struct job_change *c)
{
	struct val start = val_get(c->old_status, startTime), end = val_get(c->status, completionTime);
	bool scales = str_eq(val_str(c->spec, completionMode), STR("Indexed")) &&
		      val_equal(val_get(c->spec, completions), val_get(c->spec, parallelism));
	bool resumes = is_true(c->old, "Suspended") && job_condition(c->job, STR("Suspended"), STR("False"));

	check_terminal_conditions(c);
	if (val_int(c->status, failed) < val_int(c->old_status, failed))
		field_invalid(c->e, FIELD(c->at, "failed"), val_of_int(val_int(c->status, failed)),
			      "cannot decrease the failed counter");
	if (!scales && val_int(c->status, succeeded) < val_int(c->old_status, succeeded))
		field_invalid(c->e, FIELD(c->at, "succeeded"), val_of_int(val_int(c->status, succeeded)),
			      "cannot decrease the succeeded counter");
	if (val_exists(end) && val_has(c->old_status, completionTime) && changed(c, A_completionTime))
		field_invalid(c->e, FIELD(c->at, "completionTime"), end, "field is immutable");
	if (val_exists(start) && changed(c, A_startTime) && !resumes && !val_bool(c->spec, suspend))
		field_invalid(c->e, FIELD(c->at, "startTime"), val_get(c->status, startTime),
			      "field is immutable for unsuspended job once set");
	if (is_true(c->old, "SuccessCriteriaMet") && !is_true(c->job, "SuccessCriteriaMet"))
		complain(c, "cannot disable the SuccessCriteriaMet=True condition");
	if (is_true(c->old, "Complete") && !is_true(c->old, "SuccessCriteriaMet") && is_true(c->job, "SuccessCriteriaMet"))
		complain(c, "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
}

void check_job_status(struct field_errors *e, str subresource, struct val job, struct val old)
{
	struct job_change c = {
		.e = e, .at = FIELD(NULL, "status"), .job = job, .spec = val_get(job, spec),
		.status = val_get(job, status), .old = old,
		.old_status = val_get(old, status), .complete = is_true(job, "Complete"), .failed = is_true(job, "Failed"),
		.finished = is_finished(job),
	};
	if (!str_eq(subresource, STR("status")))
		return;
	check_object_meta_update(e, FIELD(NULL, "metadata"), val_get(job, metadata), val_get(old, metadata));
	c.complete_changed = flipped(&c, "Complete");
	c.failed_changed = flipped(&c, "Failed");
	c.finished_changed = is_finished(old) != c.finished;
	check_counters(&c);
	check_end(&c);
	check_finished(&c);
	check_indexes(&c);
	check_pods(&c);
	check_change(&c);
}
