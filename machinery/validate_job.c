/* Jobs and CronJobs. */
#include "base/time_zone.h"
#include "codec/atoms.h"
#include "machinery/cron.h"
#include "machinery/selector.h"
#include "machinery/validate_workloads.h"

enum {
	FAILURE_RULES_MAX = 20,
	EXIT_CODES_MAX = 255,
	CONDITION_PATTERNS_MAX = 20,
	SUCCESS_RULES_MAX = 20,
	INDEXES_TEXT_MAX = 64 << 10,
	MANAGED_BY_MAX = 63,
	INDEXED_MAX = 100000,       /* parallelism, failed indexes, and completions before the limits get stricter */
	MANY_COMPLETIONS_MAX = 10000,
	CRON_NAME_MAX = 52,
	ZONE_PART_MAX = 14,
};

static bool is_indexed(struct val spec) { return str_eq(val_str(spec, completionMode), STR("Indexed")); }

/* ---- indexes: 1,3-5,7 ---- */

static bool parse_index(struct arena *a, str text, int64_t completions, int64_t *ret, str *ret_why)
{
	str digits = str_starts(text, STR("+")) ? str_skip(text, 1) : text;

	if (!str_to_i64(digits, ret) || (digits.n < text.n && digits.n && digits.p[0] == '-')) {
		*ret_why = arena_printf(a, "cannot convert string to integer for index: \"" STR_FMT "\"", STR_ARG(text));
		return false;
	}
	if (*ret >= completions) {
		*ret_why = arena_printf(a, "too large index: \"" STR_FMT "\"", STR_ARG(text));
		return false;
	}
	return true;
}

static bool parse_interval(struct arena *a, str text, int64_t completions, int64_t *ret_from, int64_t *ret_to, str *ret_why)
{
	str from, to;
	bool two = str_cut(text, '-', &from, &to);

	if (two && str_chr(to, '-') >= 0) {
		*ret_why = arena_printf(a, "the fragment \"" STR_FMT "\" violates the requirement that an index"
					" interval can have at most two parts separated by '-'", STR_ARG(text));
		return false;
	}
	if (!parse_index(a, from, completions, ret_from, ret_why))
		return false;
	*ret_to = *ret_from;
	if (!two)
		return true;
	if (!parse_index(a, to, completions, ret_to, ret_why))
		return false;
	if (*ret_from < *ret_to)
		return true;
	*ret_why = arena_printf(a, "non-increasing order, previous: %lld, current: %lld", (long long)*ret_from,
				(long long)*ret_to);
	return false;
}

int64_t count_indexes(struct arena *a, str text, int64_t completions, str *ret_why)
{
	int64_t total = 0, last = 0, from, to;
	bool first = true;

	for (bool more = text.n > 0; more; first = false) {
		str part;
		more = str_cut(text, ',', &part, &text);
		if (!parse_interval(a, part, completions, &from, &to, ret_why))
			return -1;
		if (!first && last >= from) {
			*ret_why = arena_printf(a, "non-increasing order, previous: %lld, current: %lld", (long long)last,
						(long long)from);
			return -1;
		}
		total += to - from + 1;
		last = to;
	}
	return total;
}

/* ---- policies ---- */

static void check_exit_codes(struct field_errors *e, const struct field_path *at, struct val codes,
			     const struct map *containers)
{
	static const str operators[] = { STR_INIT("In"), STR_INIT("NotIn"), { NULL, 0 } };
	CLEANUP(map_done) struct map seen = MAP_INIT;
	const struct field_path *values_at = FIELD(at, "values");
	struct val values = val_get(codes, values);
	str operator = val_str(codes, operator);
	bool ordered = true;

	if (operator.n == 0)
		field_required(e, FIELD(at, "operator"), "valid values: [\"In\" \"NotIn\"]");
	else
		check_one_of(e, FIELD(at, "operator"), operator, operators);
	if (val_has(codes, containerName) && !set_has(containers, val_str(codes, containerName)))
		field_invalid(e, FIELD(at, "containerName"), val_get(codes, containerName),
			      "must be one of the container or initContainer names in the pod template");
	if (val_len(values) == 0)
		field_invalid(e, values_at, values, "at least one value is required");
	else if (val_len(values) > EXIT_CODES_MAX)
		field_too_many(e, values_at, val_len(values), EXIT_CODES_MAX);
	for (uint32_t i = 0; i < val_len(values); i++) {
		struct val code = val_at(values, i);
		if (val_as_int(code) == 0 && str_eq(operator, STR("In")))
			field_invalid(e, FIELD_INDEX(values_at, i), code, "must not be 0 for the In operator");
		if (!set_add(&seen, arena_printf(e->arena, "%lld", (long long)val_as_int(code))))
			field_duplicate(e, FIELD_INDEX(values_at, i), code);
		ordered &= i == 0 || val_as_int(val_at(values, i - 1)) <= val_as_int(code);
	}
	if (!ordered)
		field_invalid(e, values_at, values, "must be ordered");
}

static void check_condition_patterns(struct field_errors *e, const struct field_path *at, struct val patterns)
{
	static const str statuses[] = { STR_INIT("False"), STR_INIT("True"), STR_INIT("Unknown"), { NULL, 0 } };
	size_t i = 0;

	if (val_len(patterns) > CONDITION_PATTERNS_MAX)
		field_too_many(e, at, val_len(patterns), CONDITION_PATTERNS_MAX);
	VAL_EACH(pattern, patterns) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		check_label_key(e, FIELD(item, "type"), val_str(*pattern, type));
		if (val_str(*pattern, status).n == 0)
			field_required(e, FIELD(item, "status"), "valid values: [\"False\" \"True\" \"Unknown\"]");
		else
			check_one_of(e, FIELD(item, "status"), val_str(*pattern, status), statuses);
	}
}

static void check_failure_rule(struct field_errors *e, const struct field_path *at, struct val rule, struct val spec,
			       const struct map *containers)
{
	static const str actions[] = { STR_INIT("Count"), STR_INIT("FailIndex"), STR_INIT("FailJob"), STR_INIT("Ignore"),
				       { NULL, 0 } };
	str action = val_str(rule, action);
	bool codes = val_has(rule, onExitCodes), conditions = val_len(val_get(rule, onPodConditions)) > 0;

	if (action.n == 0)
		field_required(e, FIELD(at, "action"), "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
	else if (!str_eq(action, STR("FailIndex")))
		check_one_of(e, FIELD(at, "action"), action, actions);
	else if (!val_has(spec, backoffLimitPerIndex))
		field_invalid(e, FIELD(at, "action"), VAL_STR(action), "requires the backoffLimitPerIndex to be set");
	if (codes)
		check_exit_codes(e, FIELD(at, "onExitCodes"), val_get(rule, onExitCodes), containers);
	if (conditions)
		check_condition_patterns(e, FIELD(at, "onPodConditions"), val_get(rule, onPodConditions));
	if (codes && conditions)
		field_invalid(e, at, FIELD_VALUE_OMITTED,
			      "specifying both OnExitCodes and OnPodConditions is not supported");
	if (!codes && !conditions)
		field_invalid(e, at, FIELD_VALUE_OMITTED, "specifying one of OnExitCodes and OnPodConditions is required");
}

static void check_failure_policy(struct field_errors *e, const struct field_path *at, struct val spec)
{
	CLEANUP(map_done) struct map containers = MAP_INIT;
	const struct field_path *rules_at = FIELD(at, "rules");
	struct val rules = val_get(spec, podFailurePolicy, rules);
	size_t i = 0;

	if (val_len(rules) > FAILURE_RULES_MAX)
		field_too_many(e, rules_at, val_len(rules), FAILURE_RULES_MAX);
	VAL_EACH(container, val_get(spec, template, spec, containers))
		set_add(&containers, val_str(*container, name));
	VAL_EACH(container, val_get(spec, template, spec, initContainers))
		set_add(&containers, val_str(*container, name));
	VAL_EACH(rule, rules)
		check_failure_rule(e, FIELD_INDEX(rules_at, i++), *rule, spec, &containers);
}

static void check_success_rule(struct field_errors *e, const struct field_path *at, struct val rule, int64_t completions)
{
	struct val count = val_get(rule, succeededCount), indexes = val_get(rule, succeededIndexes);
	int64_t total = 0;
	str why;

	if (!val_exists(count) && !val_exists(indexes))
		field_required(e, at, "at least one of succeededCount or succeededIndexes must be specified");
	if (val_exists(indexes)) {
		const struct field_path *below = FIELD(at, "succeededIndexes");
		if (val_as_str(indexes).n > INDEXES_TEXT_MAX)
			field_too_long(e, below, INDEXES_TEXT_MAX);
		total = count_indexes(e->arena, val_as_str(indexes), completions, &why);
		if (total < 0)
			field_invalid(e, below, indexes, "error parsing succeededIndexes: " STR_FMT, STR_ARG(why));
		total = MAX(total, (int64_t)0);
	}
	if (!val_exists(count))
		return;
	check_non_negative(e, FIELD(at, "succeededCount"), count);
	if (val_as_int(count) > completions)
		field_invalid(e, FIELD(at, "succeededCount"), count,
			      "must be less than or equal to %lld (the number of specified completions)",
			      (long long)completions);
	if (val_exists(indexes) && val_as_int(count) > total)
		field_invalid(e, FIELD(at, "succeededCount"), count,
			      "must be less than or equal to %lld (the number of indexes in the specified"
			      " succeededIndexes field)",
			      (long long)total);
}

static void check_success_policy(struct field_errors *e, const struct field_path *at, struct val spec)
{
	struct val policy = val_get(spec, successPolicy), rules = val_get(policy, rules);
	const struct field_path *rules_at = FIELD(at, "rules");
	size_t i = 0;

	if (!is_indexed(spec)) {
		field_invalid(e, at, internal_form(e->arena, TYPE(batch_v1, SuccessPolicy), policy),
			      "requires indexed completion mode");
		return;
	}
	if (val_len(rules) == 0)
		field_required(e, rules_at, "at least one rules must be specified when the successPolicy is specified");
	if (val_len(rules) > SUCCESS_RULES_MAX)
		field_too_many(e, rules_at, val_len(rules), SUCCESS_RULES_MAX);
	VAL_EACH(rule, rules)
		check_success_rule(e, FIELD_INDEX(rules_at, i++), *rule, val_int(spec, completions));
}

static void check_replacement_policy(struct field_errors *e, const struct field_path *at, struct val spec)
{
	static const str all[] = { STR_INIT("Failed"), STR_INIT("TerminatingOrFailed"), { NULL, 0 } };
	static const str failed[] = { STR_INIT("Failed"), { NULL, 0 } };

	if (val_has(spec, podReplacementPolicy))
		check_one_of(e, at, val_str(spec, podReplacementPolicy), val_has(spec, podFailurePolicy) ? failed : all);
}

/* ---- numbers ---- */

static void check_many_completions(struct field_errors *e, const struct field_path *at, struct val spec)
{
	struct val failed = val_get(spec, maxFailedIndexes), parallelism = val_get(spec, parallelism);

	if (!val_exists(failed))
		field_required(e, FIELD(at, "maxFailedIndexes"), "must be specified when completions is above 100000");
	if (val_as_int(parallelism) > MANY_COMPLETIONS_MAX)
		field_invalid(e, FIELD(at, "parallelism"), parallelism,
			      "must be less than or equal to 10000 when completions are above 100000 and used with"
			      " backoff limit per index");
	if (val_as_int(failed) > MANY_COMPLETIONS_MAX)
		field_invalid(e, FIELD(at, "maxFailedIndexes"), failed,
			      "must be less than or equal to 10000 when completions are above 100000 and used with"
			      " backoff limit per index");
}

static void check_indexed(struct field_errors *e, const struct field_path *at, struct val spec)
{
	struct val completions = val_get(spec, completions), failed = val_get(spec, maxFailedIndexes);

	if (!val_exists(completions))
		field_required(e, FIELD(at, "completions"), "when completion mode is Indexed");
	if (val_int(spec, parallelism) > INDEXED_MAX)
		field_invalid(e, FIELD(at, "parallelism"), val_get(spec, parallelism),
			      "must be less than or equal to 100000 when completion mode is Indexed");
	if (val_exists(completions) && val_exists(failed) && val_as_int(failed) > val_as_int(completions))
		field_invalid(e, FIELD(at, "maxFailedIndexes"), failed, "must be less than or equal to completions");
	if (val_as_int(failed) > INDEXED_MAX)
		field_invalid(e, FIELD(at, "maxFailedIndexes"), failed, "must be less than or equal to 100000");
	if (val_as_int(completions) > INDEXED_MAX && val_has(spec, backoffLimitPerIndex))
		check_many_completions(e, at, spec);
}

static void check_completion_mode(struct field_errors *e, const struct field_path *at, struct val spec)
{
	static const str modes[] = { STR_INIT("NonIndexed"), STR_INIT("Indexed"), { NULL, 0 } };
	static const uint16_t indexed_only[] = { A_backoffLimitPerIndex, A_maxFailedIndexes };
	str mode = val_str(spec, completionMode);

	if (val_has(spec, completionMode))
		check_one_of(e, FIELD(at, "completionMode"), mode, modes);
	if (is_indexed(spec))
		check_indexed(e, at, spec);
	if (val_has(spec, completionMode) && !str_eq(mode, STR("NonIndexed")))
		return;
	for (size_t i = 0; i < ARRAY_LEN(indexed_only); i++) {
		struct val v = val_member(spec, indexed_only[i]);
		if (val_exists(v))
			field_invalid(e, FIELD_STR(at, atom_str(indexed_only[i])), v, "requires indexed completion mode");
	}
}

static void check_managed_by(struct field_errors *e, const struct field_path *at, str manager)
{
	struct name_errors found;

	if (manager.n == 0)
		field_missing(e, at);
	else if (name_check_domain_prefixed_path(manager, &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, at, VAL_STR(found.value[i]), STR_FMT, STR_ARG(found.text[i]));
	if (manager.n > MANAGED_BY_MAX)
		field_too_long(e, at, MANAGED_BY_MAX);
}

static void check_numbers(struct field_errors *e, const struct field_path *at, struct val spec)
{
	static const uint16_t numbers[] = {
		A_parallelism, A_completions, A_activeDeadlineSeconds, A_backoffLimit, A_ttlSecondsAfterFinished,
		A_backoffLimitPerIndex, A_maxFailedIndexes,
	};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		check_non_negative(e, FIELD_STR(at, atom_str(numbers[i])), val_member(spec, numbers[i]));
	if (val_has(spec, maxFailedIndexes) && !val_has(spec, backoffLimitPerIndex))
		field_required(e, FIELD(at, "backoffLimitPerIndex"), "when maxFailedIndexes is specified");
	if (val_has(spec, managedBy))
		check_managed_by(e, FIELD(at, "managedBy"), val_str(spec, managedBy));
}

static void check_restart(struct field_errors *e, const struct field_path *at, struct val spec)
{
	static const str policies[] = { STR_INIT("OnFailure"), STR_INIT("Never"), { NULL, 0 } };
	str policy = val_str(spec, template, spec, restartPolicy);

	if (policy.n == 0 || str_eq(policy, STR("Always")))
		field_required(e, at, "valid values: \"OnFailure\", \"Never\"");
	else if (!str_in(policy, policies))
		field_not_supported(e, at, VAL_STR(policy), policies);
	else if (val_has(spec, podFailurePolicy) && !str_eq(policy, STR("Never")))
		field_invalid(e, at, VAL_STR(policy), "only \"Never\" is supported when podFailurePolicy is specified");
}

/* All of a job's spec but its selector, which templates do not have. */
static void check_spec(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	const struct field_path *template = FIELD(at, "template");

	check_numbers(e, at, spec);
	check_completion_mode(e, at, spec);
	if (val_has(spec, podFailurePolicy))
		check_failure_policy(e, FIELD(at, "podFailurePolicy"), spec);
	if (val_has(spec, successPolicy))
		check_success_policy(e, FIELD(at, "successPolicy"), spec);
	check_replacement_policy(e, FIELD(at, "podReplacementPolicy"), spec);
	check_pod_template(e, template, val_get(spec, template), val_get(old, template));
	check_restart(e, FIELD(FIELD(template, "spec"), "restartPolicy"), spec);
}

/* ---- jobs ---- */

static bool has_bad_values(struct val selector)
{
	VAL_EACH(r, val_get(selector, matchExpressions))
		VAL_EACH(v, val_get(*r, values))
			if (name_check_label_value(val_as_str(*v), NULL))
				return true;
	return false;
}

static void check_job_spec(struct field_errors *e, struct val spec, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec");
	struct val labels = val_get(spec, template, metadata, labels);
	struct selector selector;
	struct err ignored;

	check_spec(e, at, spec, old);
	if (!val_has(spec, selector))
		field_missing(e, FIELD(at, "selector"));
	else
		check_label_selector(e, FIELD(at, "selector"), val_get(spec, selector),
				     has_bad_values(val_get(old, selector)));
	if (selector_of_object(e->arena, val_get(spec, selector), &selector, &ignored) >= 0 &&
	    !selector_matches(&selector, labels))
		field_invalid(e, FIELD(FIELD(FIELD(at, "template"), "metadata"), "labels"), labels,
			      "`selector` does not match template `labels`");
}

static void check_has_label(struct field_errors *e, struct val labels, str key, str wanted)
{
	const struct field_path *template = FIELD(FIELD(NULL, "spec"), "template");
	const struct field_path *at = FIELD_KEY(FIELD(FIELD(template, "metadata"), "labels"), key);
	struct val found = val_find(labels, key);

	if (!val_exists(found))
		field_required(e, at, "must be '" STR_FMT "'", STR_ARG(wanted));
	else if (!str_eq(val_as_str(found), wanted))
		field_invalid(e, at, labels, "must be '" STR_FMT "'", STR_ARG(wanted));
}

/* The labels and the selector that the server made; prefixed: the newer names of the labels are there too. */
static void check_generated_selector(struct field_errors *e, struct val job, bool prefixed)
{
	static const str keys[] = {
		STR_INIT("controller-uid"), STR_INIT("job-name"), STR_INIT("batch.kubernetes.io/controller-uid"),
		STR_INIT("batch.kubernetes.io/job-name"),
	};
	struct arena *a = e->arena;
	struct val labels = val_get(job, spec, template, metadata, labels), wanted = VAL_EMPTY_OBJECT;
	str uid = val_str(job, metadata, uid), name = val_str(job, metadata, name);
	struct selector selector;
	struct err ignored;

	if (val_bool(job, spec, manualSelector) || !val_has(job, spec, selector))
		return;
	if (uid.n == 0)
		field_missing(e, FIELD(FIELD(NULL, "metadata"), "uid"));
	for (size_t i = 0; i < (prefixed ? 4 : 2); i++) {
		str value = i % 2 ? name : uid;
		check_has_label(e, labels, keys[i], value);
		wanted = val_put(a, wanted, atom_make(a, keys[i]), VAL_STR(value));
	}
	if (selector_of_object(a, val_get(job, spec, selector), &selector, &ignored) >= 0 &&
	    !selector_matches(&selector, wanted))
		field_invalid(e, FIELD(FIELD(NULL, "spec"), "selector"),
			      internal_form(a, TYPE(meta_v1, LabelSelector), val_get(job, spec, selector)),
			      "`selector` not auto-generated");
}

static void check_job_as_new(struct field_errors *e, struct val job, struct val old)
{
	struct val labels = val_get(old, spec, template, metadata, labels);
	int64_t completions = val_int(job, spec, completions);
	bool prefixed = !val_exists(old) || (val_exists(val_find(labels, STR("batch.kubernetes.io/job-name"))) &&
					     val_exists(val_find(labels, STR("batch.kubernetes.io/controller-uid"))));

	check_object_meta(e, FIELD(NULL, "metadata"), val_get(job, metadata), true, name_rule_subdomain);
	check_generated_selector(e, job, prefixed);
	check_job_spec(e, val_get(job, spec), val_get(old, spec));
	if (!is_indexed(val_get(job, spec)) || completions <= 0)
		return;
	str name = val_str(job, metadata, name);
	str host = arena_printf(e->arena, STR_FMT "-%lld", STR_ARG(name), (long long)completions - 1);
	if (name_check_dns1123_label(host, NULL))
		field_invalid(e, FIELD(FIELD(NULL, "metadata"), "name"), VAL_STR(name),
			      "will not able to create pod with invalid DNS label: " STR_FMT, STR_ARG(host));
}

void check_job(struct field_errors *e, struct val job) { check_job_as_new(e, job, VAL_EMPTY); }

/* ---- updates ---- */

static void check_completions_update(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	struct val now = val_get(spec, completions), before = val_get(old, completions);

	if (!is_indexed(spec))
		check_immutable(e, at, NULL, now, before);
	else if (!val_semantic_equal(NULL, now, before) && val_exists(now) && val_as_int(now) != val_int(spec, parallelism))
		field_invalid(e, at, now, "can only be modified in tandem with spec.parallelism");
}

bool job_condition(struct val job, str type, str status)
{
	VAL_EACH(condition, val_get(job, status, conditions))
		if (str_eq(val_str(*condition, type), type) && str_eq(val_str(*condition, status), status))
			return true;
	return false;
}

/* A suspended job without pods can still choose where they run. */
static struct val adopt_scheduling(struct arena *a, struct val old, struct val now)
{
	static const uint16_t of_spec[] = { A_nodeSelector, A_tolerations, A_schedulingGates };
	struct val affinity = val_get(old, spec, affinity), wanted = val_get(now, spec, affinity);

	if (val_exists(affinity) || val_exists(wanted)) {
		affinity = val_put(a, affinity, A_nodeAffinity, val_get(wanted, nodeAffinity));
		old = val_with(a, old, val_len(affinity) || val_exists(wanted) ? affinity : VAL_EMPTY, spec, affinity);
	}
	for (size_t i = 0; i < ARRAY_LEN(of_spec); i++)
		old = val_put_path(a, old, (const atom[]){ A_spec, of_spec[i] }, 2,
				   val_member(val_get(now, spec), of_spec[i]));
	old = val_with(a, old, val_get(now, metadata, annotations), metadata, annotations);
	return val_with(a, old, val_get(now, metadata, labels), metadata, labels);
}

/* The old spec with the resources of the new one, where the containers are the same. */
static struct val adopt_resources(struct arena *a, struct val old, struct val now, atom list)
{
	struct val before = val_member(old, list), after = val_member(now, list);
	struct val_builder b = val_builder(a);

	if (val_len(before) != val_len(after) || val_len(before) == 0)
		return old;
	for (uint32_t i = 0; i < val_len(before); i++) {
		struct val container = val_at(before, i), other = val_at(after, i);
		bool same = str_eq(val_str(container, name), val_str(other, name));
		val_add_item(&b, same ? val_put(a, container, A_resources, val_get(other, resources)) : container);
	}
	return val_put(a, old, list, val_end_list(&b));
}

static void check_template_change(struct field_errors *e, const struct field_path *at, struct val job, struct val old)
{
	struct val now = val_get(job, spec, template), before = val_get(old, spec, template), spec;
	bool suspended = val_bool(old, spec, suspend);
	bool idle = suspended && (!val_has(old, status, startTime) || job_condition(old, STR("Suspended"), STR("True"))) &&
		    val_int(old, status, active) == 0;

	if (!idle) {
		check_immutable(e, FIELD(at, "template"), TYPE(core_v1, PodTemplateSpec), now, before);
		return;
	}
	before = adopt_scheduling(e->arena, before, now);
	spec = adopt_resources(e->arena, val_get(before, spec), val_get(now, spec), A_containers);
	spec = adopt_resources(e->arena, spec, val_get(now, spec), A_initContainers);
	check_immutable(e, FIELD(at, "template.spec"), TYPE(core_v1, PodSpec), val_get(now, spec), spec);
}

void check_job_update(struct field_errors *e, struct val job, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec");
	struct val spec = val_get(job, spec), before = val_get(old, spec);

	/* Kubernetes checks the job as if it were new, and then its spec once more with the change. */
	check_job_as_new(e, job, old);
	check_object_meta_update(e, FIELD(NULL, "metadata"), val_get(job, metadata), val_get(old, metadata));
	check_job_spec(e, spec, before);
	check_completions_update(e, FIELD(at, "completions"), spec, before);
	check_immutable(e, FIELD(at, "selector"), TYPE(meta_v1, LabelSelector), val_get(spec, selector),
			val_get(before, selector));
	check_template_change(e, at, job, old);
	check_immutable(e, FIELD(at, "completionMode"), NULL, val_get(spec, completionMode),
			val_get(before, completionMode));
	check_immutable(e, FIELD(at, "podFailurePolicy"), TYPE(batch_v1, PodFailurePolicy), val_get(spec, podFailurePolicy),
			val_get(before, podFailurePolicy));
	check_immutable(e, FIELD(at, "backoffLimitPerIndex"), NULL, val_get(spec, backoffLimitPerIndex),
			val_get(before, backoffLimitPerIndex));
	check_immutable(e, FIELD(at, "managedBy"), NULL, val_get(spec, managedBy), val_get(before, managedBy));
	check_immutable(e, FIELD(at, "successPolicy"), TYPE(batch_v1, SuccessPolicy), val_get(spec, successPolicy),
			val_get(before, successPolicy));
}

/* ---- CronJob ---- */

static void check_schedule(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	str schedule = val_str(spec, schedule);
	bool zone = str_find(schedule, STR("TZ")) >= 0, had_zone = str_find(val_str(old, schedule), STR("TZ")) >= 0;
	struct cron cron;
	struct err err;

	if (cron_parse(schedule, &cron, &err) < 0)
		field_invalid(e, at, VAL_STR(schedule), STR_FMT, STR_ARG(err_str(&err)));
	if (zone && !had_zone)
		field_invalid(e, at, VAL_STR(schedule), "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
	else if (zone && val_has(spec, timeZone))
		field_invalid(e, at, VAL_STR(schedule), "cannot use both timeZone field and TZ or CRON_TZ in schedule");
}

static bool is_zone_part(str part)
{
	if (part.n == 0 || part.n > ZONE_PART_MAX || str_eq(part, STR(".")) || str_eq(part, STR("..")) || part.p[0] == '-')
		return false;
	for (size_t i = 0; i < part.n; i++) {
		char c = part.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr(".-_+", c)) ||
		    c == '\0')
			return false;
	}
	return true;
}

static bool is_zone_name(str zone)
{
	for (bool more = true; more;) {
		str part;
		more = str_cut(zone, '/', &part, &zone);
		if (!is_zone_part(part))
			return false;
	}
	return true;
}

static void check_time_zone(struct field_errors *e, const struct field_path *at, struct val zone)
{
	str name = val_as_str(zone);

	if (!val_exists(zone))
		return;
	if (name.n == 0)
		field_invalid(e, at, zone, "timeZone must be nil or non-empty string");
	else if (!is_zone_name(name))
		field_invalid(e, at, zone, "unknown time zone " STR_FMT, STR_ARG(name));
	else if (str_eq(ascii_lower(e->arena, name), STR("local"))) {
		field_invalid(e, at, zone,
			      "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
		if (!time_zone_exists(name))
			field_invalid(e, at, zone, "unknown time zone " STR_FMT, STR_ARG(name));
	} else if (!time_zone_exists(name))
		field_invalid(e, at, zone, "unknown time zone " STR_FMT, STR_ARG(name));
}

static void check_job_template(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	static const str unset[] = { STR_INIT("nil"), STR_INIT("false"), { NULL, 0 } };

	check_spec(e, at, spec, old);
	if (val_has(spec, selector))
		field_invalid(e, FIELD(at, "selector"),
			      internal_form(e->arena, TYPE(meta_v1, LabelSelector), val_get(spec, selector)),
			      "`selector` will be auto-generated");
	if (val_bool(spec, manualSelector))
		field_not_supported(e, FIELD(at, "manualSelector"), val_get(spec, manualSelector), unset);
}

static void check_cron_spec(struct field_errors *e, struct val spec, struct val old)
{
	static const str policies[] = { STR_INIT("Allow"), STR_INIT("Forbid"), STR_INIT("Replace"), { NULL, 0 } };
	const struct field_path *at = FIELD(NULL, "spec");

	if (val_str(spec, schedule).n == 0)
		field_missing(e, FIELD(at, "schedule"));
	else
		check_schedule(e, FIELD(at, "schedule"), spec, old);
	check_non_negative(e, FIELD(at, "startingDeadlineSeconds"), val_get(spec, startingDeadlineSeconds));
	if (!val_exists(old) || !val_equal(val_get(old, timeZone), val_get(spec, timeZone)))
		check_time_zone(e, FIELD(at, "timeZone"), val_get(spec, timeZone));
	check_required_one_of(e, FIELD(at, "concurrencyPolicy"), val_str(spec, concurrencyPolicy), policies);
	check_job_template(e, FIELD(FIELD(at, "jobTemplate"), "spec"), val_get(spec, jobTemplate, spec),
			   val_get(old, jobTemplate, spec));
	check_non_negative(e, FIELD(at, "successfulJobsHistoryLimit"), val_get(spec, successfulJobsHistoryLimit));
	check_non_negative(e, FIELD(at, "failedJobsHistoryLimit"), val_get(spec, failedJobsHistoryLimit));
}

void check_cron_job(struct field_errors *e, struct val cron_job)
{
	str name = val_str(cron_job, metadata, name);

	check_cron_spec(e, val_get(cron_job, spec), VAL_EMPTY);
	if (name.n > CRON_NAME_MAX)
		field_invalid(e, FIELD(FIELD(NULL, "metadata"), "name"), VAL_STR(name),
			      "must be no more than 52 characters");
}

void check_cron_job_update(struct field_errors *e, struct val cron_job, struct val old)
{
	check_cron_spec(e, val_get(cron_job, spec), val_get(old, spec));
}
