/* DefaultPreemption: on every node where it may help, all pods of lower priority go, and come back one by one. */
#include <stdlib.h>

#include "codec/atoms.h"
#include "codec/time.h"
#include "scheduler/reference.h"

/* A node that would do. */
struct candidate {
	size_t node, n;
	int64_t violations;
	size_t *victims;              /* pods, the most important first */
};

static int64_t start_of(struct val pod)
{
	struct timestamp t = { 0 };

	/* Who has not started is taken to start now. */
	return val_has(pod, status, startTime) && time_parse(val_str(pod, status, startTime), &t, NULL) == 0 ? t.seconds : INT64_MAX;
}

static bool is_on(const struct reference *r, size_t pod, size_t node)
{
	return str_eq(val_str(r->pods.all[pod], spec, nodeName), val_str(r->nodes.all[node], metadata, name));
}

/* ---- who may ---- */

static bool goes_by_preemption(struct val pod)
{
	if (!val_has(pod, metadata, deletionTimestamp))
		return false;
	VAL_EACH(k, val_get(pod, status, conditions))
		if (str_eq(val_str(*k, type), STR("DisruptionTarget")))
			return str_eq(val_str(*k, status), STR("True")) && str_eq(val_str(*k, reason), STR("PreemptionByScheduler"));
	return false;
}

/* Why the pod may not; empty: it may. */
static str not_eligible(const struct reference *r, struct val pod, const struct reference_verdict *verdicts, const bool *asked)
{
	if (str_eq(val_str(pod, spec, preemptionPolicy), STR("Never")))
		return STR("not eligible due to preemptionPolicy=Never.");
	for (size_t node = 0; node < r->nodes.n; node++) {
		if (!str_eq(val_str(r->nodes.all[node], metadata, name), val_str(pod, status, nominatedNodeName)) || !asked[node] ||
		    verdicts[node].unresolvable)
			continue;
		for (size_t i = 0; i < r->pods.n; i++)
			if (is_on(r, i, node) && reference_priority(r->pods.all[i]) < reference_priority(pod) &&
			    goes_by_preemption(r->pods.all[i]))
				return STR("not eligible due to a terminating pod on the nominated node.");
	}
	return STR("");
}

/* ---- victims on a node ---- */

static bool is_more_important(struct val a, struct val b)
{
	if (reference_priority(a) != reference_priority(b))
		return reference_priority(a) > reference_priority(b);
	return start_of(a) < start_of(b);
}

/* All that may go, the most important first. */
static size_t *potential(const struct reference *r, struct val pod, size_t node, size_t *ret_n)
{
	size_t *all = ARENA_ARRAY(r->arena, size_t, r->pods.n + 1), n = 0;

	for (size_t i = 0; i < r->pods.n; i++) {
		if (!is_on(r, i, node) || reference_priority(r->pods.all[i]) >= reference_priority(pod))
			continue;
		size_t at = n++;
		for (; at > 0 && is_more_important(r->pods.all[i], r->pods.all[all[at - 1]]); at--)
			all[at] = all[at - 1];
		all[at] = i;
	}
	*ret_n = n;
	return all;
}

static bool concerns(struct val budget, struct val pod)
{
	struct val selector = val_get(budget, spec, selector), labels = val_get(pod, metadata, labels);

	return val_len(labels) && str_eq(val_str(budget, metadata, namespace), val_str(pod, metadata, namespace)) &&
	       !reference_selects_all(selector) && reference_selects(selector, labels) &&
	       !val_exists(val_find(val_get(budget, status, disruptedPods), val_str(pod, metadata, name)));
}

/* Of pods that go one after another: whether the one at this place violates a budget. */
static bool violates(const struct reference *r, const size_t *pods, size_t at)
{
	for (size_t i = 0; i < r->budgets.n; i++) {
		int64_t before = 0;
		if (!concerns(r->budgets.all[i], r->pods.all[pods[at]]))
			continue;
		for (size_t k = 0; k < at; k++)
			before += concerns(r->budgets.all[i], r->pods.all[pods[k]]);
		if (before + 1 > val_int(r->budgets.all[i], status, disruptionsAllowed))
			return true;
	}
	return false;
}

/* Lets stay who can, of those that violate budgets or of the others. How many cannot. */
static int64_t reprieve(const struct reference *r, struct val pod, const size_t *pods, size_t n, bool violating, struct reference_if *w,
			bool *away, size_t node)
{
	int64_t victims = 0;

	for (size_t i = 0; i < n; i++) {
		if (violates(r, pods, i) != violating)
			continue;
		away[pods[i]] = false;
		away[pods[i]] = reference_filter_both(r, w, pod, node).plugin != NULL;
		victims += away[pods[i]];
	}
	return victims;
}

static struct reference_verdict dry_run(const struct reference *r, struct val pod, size_t node, struct candidate *ret)
{
	size_t n, *pods = potential(r, pod, node, &n);
	bool *away = ARENA_ARRAY(r->arena, bool, r->pods.n + 1);
	struct reference_if w = { .away = away };

	memset(away, 0, r->pods.n + 1);
	*ret = (struct candidate){ .node = node, .victims = ARENA_ARRAY(r->arena, size_t, n + 1) };
	if (!n)
		return (struct reference_verdict){ "DefaultPreemption", true, STR("No preemption victims found for incoming pod") };
	for (size_t i = 0; i < n; i++)
		away[pods[i]] = true;
	struct reference_verdict v = reference_filter_both(r, &w, pod, node);
	if (v.plugin)
		return v;
	ret->violations = reprieve(r, pod, pods, n, true, &w, away, node);
	(void)reprieve(r, pod, pods, n, false, &w, away, node);
	for (size_t i = 0; i < n; i++)
		if (away[pods[i]])
			ret->victims[ret->n++] = pods[i];
	return v;
}

/* ---- the choice ---- */

static int64_t sum_of_priorities(const struct reference *r, const struct candidate *c)
{
	int64_t sum = 0;

	for (size_t i = 0; i < c->n; i++)
		sum += reference_priority(r->pods.all[c->victims[i]]) + INT64_C(2147483648);
	return sum;
}

/* When the first of the most important victims began. */
static int64_t earliest_start(const struct reference *r, const struct candidate *c)
{
	int64_t highest = reference_priority(r->pods.all[c->victims[0]]), first = INT64_MAX;

	for (size_t i = 0; i < c->n; i++)
		if (reference_priority(r->pods.all[c->victims[i]]) == highest)
			first = MIN(first, start_of(r->pods.all[c->victims[i]]));
	return first;
}

static bool is_better(const struct reference *r, const struct candidate *a, const struct candidate *b)
{
	int64_t x = reference_priority(r->pods.all[a->victims[0]]), y = reference_priority(r->pods.all[b->victims[0]]);

	if (a->violations != b->violations)
		return a->violations < b->violations;
	if (x != y)
		return x < y;
	if (sum_of_priorities(r, a) != sum_of_priorities(r, b))
		return sum_of_priorities(r, a) < sum_of_priorities(r, b);
	if (a->n != b->n)
		return a->n < b->n;
	return earliest_start(r, a) > earliest_start(r, b);
}

/* How many candidates are enough, of so many nodes. */
static size_t enough_of(const struct reference *r, size_t n)
{
	struct val args = reference_args(r, "DefaultPreemption");
	int64_t percentage = val_has(args, minCandidateNodesPercentage) ? val_int(args, minCandidateNodesPercentage) : 10;
	int64_t absolute = val_has(args, minCandidateNodesAbsolute) ? val_int(args, minCandidateNodesAbsolute) : 100;
	size_t enough = (size_t)MAX((int64_t)n * percentage / 100, absolute);

	return MIN(enough, n);
}

/* Candidates without violations first, each as they were found; *ret_why by node, for those that will not do. */
static size_t find_candidates(struct reference *r, struct val pod, const size_t *nodes, size_t n, struct candidate *ret,
			      struct reference_verdict *ret_why, bool *ret_tried)
{
	struct candidate *bad = ARENA_ARRAY(r->arena, struct candidate, n + 1);
	size_t first = n ? r->dice(r->arg, n) : 0, n_good = 0, n_bad = 0;

	for (size_t i = 0; i < n && !(n_good && n_good + n_bad >= enough_of(r, n)); i++) {
		size_t node = nodes[(first + i) % n];
		struct candidate c;
		struct reference_verdict v = dry_run(r, pod, node, &c);
		if (v.plugin) {
			ret_why[node] = v;
			ret_tried[node] = true;
		} else if (c.violations) {
			bad[n_bad++] = c;
		} else {
			ret[n_good++] = c;
		}
	}
	for (size_t i = 0; i < n_bad; i++)
		ret[n_good + i] = bad[i];
	return n_good + n_bad;
}

static void tell_victims(const struct reference *r, const struct candidate *c, struct reference_outcome *ret)
{
	struct val_builder victims = val_builder(r->arena);

	for (size_t i = 0; i < c->n; i++)
		val_add_item(&victims, r->pods.all[c->victims[i]]);
	ret->victims = val_end_list(&victims);
	ret->nominates = ret->preempts = true;
	ret->node = c->node;
}

str reference_preempt(struct reference *r, struct val pod, const struct reference_verdict *verdicts, const bool *asked,
		      struct reference_outcome *ret)
{
	str why = not_eligible(r, pod, verdicts, asked);
	size_t n = 0, *nodes = ARENA_ARRAY(r->arena, size_t, r->nodes.n + 1);
	struct candidate *all = ARENA_ARRAY(r->arena, struct candidate, r->nodes.n + 1);
	struct reference_verdict *reasons = ARENA_ARRAY(r->arena, struct reference_verdict, r->nodes.n + 1);
	bool *tried = ARENA_ARRAY(r->arena, bool, r->nodes.n + 1);

	if (why.n)
		return arena_join(r->arena, STR("preemption: "), why);
	memset(tried, 0, r->nodes.n);
	for (size_t i = 0; i < r->nodes.n; i++) {
		size_t node = r->order ? r->order[i] : i;
		if (asked[node] && verdicts[node].plugin && !verdicts[node].unresolvable)
			nodes[n++] = node;
	}
	size_t found = find_candidates(r, pod, nodes, n, all, reasons, tried), best = 0;
	if (!found) {
		ret->nominates = true;
		return arena_join(r->arena, STR("preemption: "),
				  reference_fit_error(r, reasons, tried, STR("Preemption is not helpful for scheduling")));
	}
	for (size_t i = 1; i < found; i++)
		if (is_better(r, &all[i], &all[best]))
			best = i;
	tell_victims(r, &all[best], ret);
	return STR("");
}
