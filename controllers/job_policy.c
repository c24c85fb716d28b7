#include "controllers/job_policy.h"

#include "codec/atoms.h"
#include "controllers/moment.h"
#include "controllers/pod_control.h"

/* ---- pod failure policy ---- */

static bool code_matches(struct val rule, int64_t code)
{
	bool listed = false;
	VAL_EACH(v, val_get(rule, values))
		listed |= val_as_int(*v) == code;
	str op = val_str(rule, operator);
	return str_eq(op, STR("In")) ? listed : str_eq(op, STR("NotIn")) && !listed;
}

/* The status of the first container that ended with a code that the rule means; VAL_NONE: none. */
static struct val find_container(struct val statuses, struct val rule)
{
	str name = val_str(rule, containerName);
	VAL_EACH(s, statuses) {
		struct val terminated = val_get(*s, state, terminated);
		int64_t code = val_int(terminated, exitCode);
		if (val_exists(terminated) && code != 0 && (!name.n || str_eq(name, val_str(*s, name))) && code_matches(rule, code))
			return *s;
	}
	return VAL_EMPTY;
}

static struct val find_condition(struct val pod, struct val patterns)
{
	VAL_EACH(c, val_get(pod, status, conditions))
		VAL_EACH(p, patterns)
			if (str_eq(val_str(*c, type), val_str(*p, type)) && str_eq(val_str(*c, status), val_str(*p, status)))
				return *c;
	return VAL_EMPTY;
}

static bool rule_matches(struct arena *a, struct val rule, size_t index, struct val pod, str *ret_message)
{
	str namespace = val_str(pod, metadata, namespace), name = val_str(pod, metadata, name), action = val_str(rule, action);
	struct val codes = val_get(rule, onExitCodes);

	if (val_exists(codes)) {
		struct val s = find_container(val_get(pod, status, containerStatuses), codes);
		if (!val_exists(s))
			s = find_container(val_get(pod, status, initContainerStatuses), codes);
		if (!val_exists(s))
			return false;
		*ret_message = arena_printf(a, "Container " STR_FMT " for pod " STR_FMT "/" STR_FMT " failed with exit code %lld matching " STR_FMT " rule at index %zu",
					    STR_ARG(val_str(s, name)), STR_ARG(namespace), STR_ARG(name),
					    (long long)val_int(s, state, terminated, exitCode), STR_ARG(action), index);
		return true;
	}
	struct val c = find_condition(pod, val_get(rule, onPodConditions));
	if (!val_exists(c))
		return false;
	*ret_message = arena_printf(a, "Pod " STR_FMT "/" STR_FMT " has condition " STR_FMT " matching " STR_FMT " rule at index %zu",
				    STR_ARG(namespace), STR_ARG(name), STR_ARG(val_str(c, type)), STR_ARG(action), index);
	return true;
}

enum job_failure job_failure_match(struct arena *a, struct val policy, struct val pod, str *ret_message)
{
	static const struct { const char *name; enum job_failure action; } actions[] = {
		{ "Ignore", JOB_FAILURE_IGNORE }, { "Count", JOB_FAILURE_COUNT },
		{ "FailIndex", JOB_FAILURE_FAIL_INDEX }, { "FailJob", JOB_FAILURE_FAIL_JOB },
	};
	struct val rules = val_get(policy, rules);
	str message;

	for (size_t i = 0; i < val_len(rules); i++) {
		struct val rule = val_at(rules, i);
		if (!rule_matches(a, rule, i, pod, &message))
			continue;
		for (size_t k = 0; k < ARRAY_LEN(actions); k++)
			if (str_eq(val_str(rule, action), str_of(actions[k].name))) {
				if (ret_message)
					*ret_message = message;
				return actions[k].action;
			}
	}
	return JOB_FAILURE_COUNT;
}

/* ---- success policy ---- */

static bool success_rule_met(struct arena *a, struct val rule, int64_t completions, const struct job_indexes *succeeded)
{
	struct val count = val_get(rule, succeededCount), indexes = val_get(rule, succeededIndexes);

	if (!val_exists(indexes))
		return val_exists(count) && job_indexes_total(succeeded) >= val_as_int(count);
	struct job_indexes wanted = job_indexes_parse(a, val_as_str(indexes), completions);
	int64_t common = job_indexes_common(&wanted, succeeded);
	return wanted.n && (common == job_indexes_total(&wanted) || (val_exists(count) && common >= val_as_int(count)));
}

bool job_success_match(struct arena *a, struct val policy, int64_t completions, const struct job_indexes *succeeded, str *ret_message)
{
	struct val rules = val_get(policy, rules);

	for (size_t i = 0; succeeded->n && i < val_len(rules); i++)
		if (success_rule_met(a, val_at(rules, i), completions, succeeded)) {
			*ret_message = arena_printf(a, "Matched rules at index %zu", i);
			return true;
		}
	return false;
}

/* ---- pace ---- */

static bool is_sidecar(struct val pod, str name)
{
	VAL_EACH(c, val_get(pod, spec, initContainers))
		if (str_eq(val_str(*c, name), name))
			return str_eq(val_str(*c, restartPolicy), STR("Always"));
	return false;
}

/* The end of the last container, sidecars included; 0 while one runs, or when nothing is known. */
static int64_t containers_finished_ns(struct val pod)
{
	int64_t latest = 0;

	VAL_EACH(s, val_get(pod, status, containerStatuses)) {
		int64_t at = moment_of(val_get(*s, state, terminated, finishedAt));
		if (!at)
			return 0;
		latest = MAX(latest, at);
	}
	VAL_EACH(s, val_get(pod, status, initContainerStatuses)) {
		if (!is_sidecar(pod, val_str(*s, name)))
			continue;
		int64_t at = moment_of(val_get(*s, state, terminated, finishedAt));
		if (!at)
			return 0;
		latest = MAX(latest, at);
	}
	return latest;
}

int64_t job_pod_finished_ns(struct val pod)
{
	int64_t at = containers_finished_ns(pod);
	if (at)
		return at;
	struct val ready = pod_condition(pod, "Ready");
	if (str_eq(val_str(ready, status), STR("False")) && (at = moment_of(val_get(ready, lastTransitionTime))))
		return at;
	if ((at = moment_of(val_get(pod, metadata, deletionTimestamp))))
		return at - moment_seconds(val_get(pod, metadata, deletionGracePeriodSeconds));
	return moment_of(val_get(pod, metadata, creationTimestamp));
}

struct job_backoff job_backoff_after(struct job_backoff old, const int64_t *succeeded_ns, size_t n_succeeded, const int64_t *failed_ns,
				     size_t n_failed)
{
	struct job_backoff b = n_succeeded ? (struct job_backoff){ 0 } : old;
	int64_t success = INT64_MIN, latest = INT64_MIN;

	for (size_t i = 0; i < n_succeeded; i++)
		success = MAX(success, succeeded_ns[i]);
	for (size_t i = 0; i < n_failed; i++) {
		if (n_succeeded && failed_ns[i] <= success)
			continue;
		b.failures++;
		latest = MAX(latest, failed_ns[i]);
	}
	if (latest != INT64_MIN)
		b.last_ns = latest;
	return b;
}

int64_t job_backoff_left_ns(struct job_backoff b, int64_t now_ns)
{
	int64_t wait_s = JOB_BACKOFF_S;

	if (b.failures == 0)
		return 0;
	for (int64_t i = 1; i < b.failures && wait_s < JOB_BACKOFF_MAX_S; i++)
		wait_s = MIN(wait_s * 2, (int64_t)JOB_BACKOFF_MAX_S);
	return MAX(b.last_ns + wait_s * NS_PER_S - now_ns, INT64_C(0));
}
