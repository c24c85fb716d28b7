/* One pod from the first question to a node, or to the message that says why there is none. */
#include "scheduler/reference.h"

#include <stdlib.h>

#include "codec/atoms.h"

bool reference_next_pod(const struct reference *r, const struct reference_if *w, size_t *at, struct val *ret_pod, size_t *ret_node)
{
	while (w && w->away && *at < r->pods.n && w->away[*at])
		++*at;
	if (*at >= r->pods.n) {
		size_t i = (*at)++ - r->pods.n;
		if (!w || i >= w->come.n)
			return false;
		*ret_pod = w->come.all[i];
		*ret_node = w->to;
		return true;
	}
	*ret_pod = r->pods.all[(*at)++];
	*ret_node = SIZE_MAX;
	for (size_t i = 0; i < r->nodes.n; i++)
		if (str_eq(val_str(*ret_pod, spec, nodeName), val_str(r->nodes.all[i], metadata, name)))
			*ret_node = i;
	return true;
}

struct val reference_args(const struct reference *r, const char *plugin)
{
	VAL_EACH(c, r->config)
		if (str_eq(val_str(*c, name), str_of(plugin)))
			return val_get(*c, args);
	return VAL_EMPTY;
}

int64_t reference_priority(struct val pod) { return val_int(pod, spec, priority); }

/* ---- filters ---- */

static struct reference_verdict refused(const char *plugin, bool unresolvable, str reason)
{
	return (struct reference_verdict){ plugin, unresolvable, reason };
}

/* The affinity that the profile adds to all pods. */
static bool is_enforced(const struct reference *r, struct val node)
{
	struct val added = val_get(reference_args(r, "NodeAffinity"), addedAffinity, requiredDuringSchedulingIgnoredDuringExecution);

	return !val_exists(added) || reference_terms_match(added, node);
}

struct reference_verdict reference_filter_if(const struct reference *r, const struct reference_if *w, struct val pod, size_t node)
{
	struct val v = r->nodes.all[node];
	struct reference_verdict ret = { 0 };

	if (val_bool(v, spec, unschedulable) &&
	    !reference_tolerates(pod, STR("node.kubernetes.io/unschedulable"), STR(""), STR("NoSchedule")))
		return refused("NodeUnschedulable", true, STR("node(s) were unschedulable"));
	if (val_str(pod, spec, nodeName).n && !str_eq(val_str(pod, spec, nodeName), val_str(v, metadata, name)))
		return refused("NodeName", true, STR("node(s) didn't match the requested node name"));
	if (!reference_taints(pod, v))
		return refused("TaintToleration", true, STR("node(s) had untolerated taint(s)"));
	if (!is_enforced(r, v))
		return refused("NodeAffinity", true, STR("node(s) didn't match scheduler-enforced node affinity"));
	if (!reference_node_affinity(pod, v))
		return refused("NodeAffinity", true, STR("node(s) didn't match Pod's node affinity/selector"));
	if (!reference_ports_free(r, w, pod, node))
		return refused("NodePorts", false, STR("node(s) didn't have free ports for the requested pod ports"));
	reference_fit(r, w, pod, node, &ret);
	if (!ret.plugin)
		reference_spread_filter(r, w, pod, node, &ret);
	if (!ret.plugin)
		reference_affinity_filter(r, w, pod, node, &ret);
	return ret;
}

/* Pods of the same or a higher priority that wait for the node may come or not: it has to fit in both cases. */
struct reference_verdict reference_filter_both(const struct reference *r, const struct reference_if *w, struct val pod, size_t node)
{
	struct val *come = ARENA_ARRAY(r->arena, struct val, r->waiting.n + 1);
	struct reference_if with = { .away = w ? w->away : NULL, .come.all = come, .to = node };

	for (size_t i = 0; i < r->waiting.n; i++) {
		struct val p = r->waiting.all[i];
		if (str_eq(val_str(p, status, nominatedNodeName), val_str(r->nodes.all[node], metadata, name)) &&
		    reference_priority(p) >= reference_priority(pod) && !str_eq(val_str(p, metadata, uid), val_str(pod, metadata, uid)))
			come[with.come.n++] = p;
	}
	if (with.come.n) {
		struct reference_verdict v = reference_filter_if(r, &with, pod, node);
		if (v.plugin)
			return v;
	}
	return reference_filter_if(r, w, pod, node);
}

struct reference_verdict reference_filter(const struct reference *r, struct val pod, size_t node)
{
	return reference_filter_both(r, NULL, pod, node);
}

/* ---- scores ---- */

const struct reference_weight reference_weights[] = {
	{ "TaintToleration", 3 }, { "NodeAffinity", 2 }, { "NodeResourcesFit", 1 }, { "PodTopologySpread", 2 }, { "InterPodAffinity", 2 },
	{ "NodeResourcesBalancedAllocation", 1 }, { "ImageLocality", 1 }, { NULL, 0 },
};

static void normalize(int64_t *scores, size_t n, bool reverse)
{
	int64_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = MAX(most, scores[i]);
	for (size_t i = 0; i < n; i++) {
		scores[i] = most ? 100 * scores[i] / most : 0;
		scores[i] = reverse ? 100 - scores[i] : scores[i];
	}
}

bool reference_score(const struct reference *r, const char *plugin, struct val pod, const size_t *nodes, size_t n, int64_t *scores)
{
	str p = str_of(plugin);
	bool taints = str_eq(p, STR("TaintToleration")), affinity = str_eq(p, STR("NodeAffinity"));
	bool balanced = str_eq(p, STR("NodeResourcesBalancedAllocation")), fit = str_eq(p, STR("NodeResourcesFit"));

	for (size_t i = 0; i < n; i++)
		scores[i] = 0;
	if (str_eq(p, STR("PodTopologySpread")))
		return reference_spread_score(r, pod, nodes, n, scores);
	if (str_eq(p, STR("InterPodAffinity")))
		return reference_affinity_score(r, pod, nodes, n, scores);
	if ((affinity && !reference_prefers_nodes(r, pod)) || (balanced && !reference_balances(r, pod)) ||
	    !(taints || affinity || balanced || fit || str_eq(p, STR("ImageLocality"))))
		return false;
	for (size_t i = 0; i < n; i++)
		scores[i] = taints ? reference_taint_score(pod, r->nodes.all[nodes[i]]) :
			    affinity ? reference_node_affinity_score(r, pod, r->nodes.all[nodes[i]]) :
			    balanced ? reference_balance_score(r, pod, nodes[i]) :
			    fit ? reference_fit_score(r, pod, nodes[i]) : reference_image_score(r, pod, nodes[i]);
	if (taints || affinity)
		normalize(scores, n, taints);
	return true;
}

/* The best; among equal ones by chance. */
static size_t choose(struct reference *r, struct val pod, const size_t *nodes, size_t n)
{
	int64_t *one = ARENA_ARRAY(r->arena, int64_t, n), *sums = ARENA_ARRAY(r->arena, int64_t, n), best = 0;
	size_t equal = 0;

	memset(sums, 0, n * sizeof(*sums));
	for (const struct reference_weight *w = reference_weights; w->plugin; w++) {
		(void)reference_score(r, w->plugin, pod, nodes, n, one);
		for (size_t i = 0; i < n; i++)
			sums[i] += w->weight * one[i];
	}
	for (size_t i = 0; i < n; i++)
		best = MAX(best, sums[i]);
	for (size_t i = 0; i < n; i++)
		equal += sums[i] == best;
	size_t which = equal > 1 ? r->dice(r->arg, equal) : 0;
	for (size_t i = 0; i < n; i++)
		if (sums[i] == best && which-- == 0)
			return nodes[i];
	return nodes[0];
}

/* ---- what is told ---- */

static int text_order(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* All reasons, each node's apart; how many. */
static size_t gather(const struct reference *r, const struct reference_verdict *verdicts, const bool *asked, str absent, str *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < r->nodes.n; i++) {
		str reason = asked[i] ? verdicts[i].reason : absent;
		while (reason.n) {
			ptrdiff_t end = str_chr(reason, '\n');
			ret[n++] = end < 0 ? reason : str_span(reason.p, (size_t)end);
			reason = end < 0 ? STR("") : str_span(reason.p + end + 1, reason.n - (size_t)end - 1);
		}
	}
	return n;
}

str reference_fit_error(const struct reference *r, const struct reference_verdict *verdicts, const bool *asked, str absent)
{
	str *all = ARENA_ARRAY(r->arena, str, 16 * r->nodes.n + 1), *lines = ARENA_ARRAY(r->arena, str, 16 * r->nodes.n + 1);
	size_t n = gather(r, verdicts, asked, absent, all), n_lines = 0;
	str text = arena_printf(r->arena, "0/%zu nodes are available:", r->nodes.n);

	qsort(all, n, sizeof(*all), text_order);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && str_eq(all[end], all[i]); end++)
			;
		lines[n_lines++] = arena_printf(r->arena, "%zu " STR_FMT, end - i, STR_ARG(all[i]));
	}
	qsort(lines, n_lines, sizeof(*lines), text_order);
	for (size_t i = 0; i < n_lines; i++)
		text = arena_printf(r->arena, STR_FMT "%s" STR_FMT "%s", STR_ARG(text), i ? ", " : " ", STR_ARG(lines[i]), i + 1 == n_lines ? "." : "");
	return text;
}

/* ---- one pod ---- */

/* How many nodes that fit are enough, of so many. */
static size_t enough_of(size_t n, int64_t percentage)
{
	if (n < 100 || percentage >= 100)
		return n;
	if (!percentage)
		percentage = MAX(INT64_C(50) - (int64_t)n / 125, INT64_C(5));
	return MAX(n * (size_t)percentage / 100, (size_t)100);
}

struct look {
	struct reference_verdict *verdicts;
	bool *asked;                  /* and refused */
	size_t *fit, n_fit;
};

static void examine(struct reference *r, struct val pod, const size_t *nodes, size_t n, struct look *l)
{
	l->n_fit = 0;
	for (size_t i = 0; i < n && l->n_fit < enough_of(n, r->percentage); i++) {
		size_t node = nodes[(r->next_start + i) % n];
		l->verdicts[node] = reference_filter(r, pod, node);
		if (l->verdicts[node].plugin)
			l->asked[node] = true;
		else
			l->fit[l->n_fit++] = node;
	}
}

/* The nodes that have one of these names, or all. */
static size_t candidates(const struct reference *r, bool narrowed, struct val names, size_t *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < r->nodes.n; i++) {
		size_t node = r->order && !narrowed ? r->order[i] : i;
		bool named = !narrowed;
		VAL_EACH(name, names)
			named |= str_eq(val_as_str(*name), val_str(r->nodes.all[node], metadata, name));
		if (named)
			ret[n++] = node;
	}
	return n;
}

/* The node that the pod waits for is tried before all others. */
static bool try_nominated(struct reference *r, struct val pod, struct look *l)
{
	for (size_t i = 0; i < r->nodes.n; i++)
		if (val_str(pod, status, nominatedNodeName).n &&
		    str_eq(val_str(pod, status, nominatedNodeName), val_str(r->nodes.all[i], metadata, name)))
			examine(r, pod, &i, 1, l);
	return l->n_fit > 0;
}

/*
 * Nobody fits. DynamicResources is asked before preemption and always says that there is nothing it could do; but it fails where a plugin before
 * it has refused the pod already (first), and then nothing else is tried.
 */
static struct reference_outcome refuse(struct reference *r, struct val pod, const struct look *l, str first, str absent)
{
	struct reference_outcome o = { 0 };
	str after = first.n ? STR("not found") : reference_preempt(r, pod, l->verdicts, l->asked, &o);

	if (after.n && !first.n)
		after = arena_join(r->arena, STR("no new claims to deallocate, "), after);
	o.message = first.n ? arena_printf(r->arena, "0/%zu nodes are available: " STR_FMT ".", r->nodes.n, STR_ARG(first)) :
			      reference_fit_error(r, l->verdicts, l->asked, absent);
	o.message = arena_printf(r->arena, STR_FMT "%s" STR_FMT, STR_ARG(o.message), after.n ? " " : "", STR_ARG(after));
	return o;
}

struct reference_outcome reference_schedule(struct reference *r, struct val pod)
{
	struct look l = { .verdicts = ARENA_ARRAY(r->arena, struct reference_verdict, r->nodes.n + 1),
			  .asked = ARENA_ARRAY(r->arena, bool, r->nodes.n + 1), .fit = ARENA_ARRAY(r->arena, size_t, r->nodes.n + 1) };
	size_t *nodes = ARENA_ARRAY(r->arena, size_t, r->nodes.n + 1), refusals = 0;
	struct val names = VAL_EMPTY_LIST;
	bool narrowed = reference_narrows(r, pod, &names);

	if (!r->nodes.n)
		return (struct reference_outcome){ .message = STR("no nodes available to schedule pods"), .nominates = true };
	memset(l.asked, 0, r->nodes.n);
	if (narrowed && !val_len(names))
		return refuse(r, pod, &l, STR("pod affinity terms conflict"), STR(""));
	if (try_nominated(r, pod, &l))
		return (struct reference_outcome){ .found = true, .node = l.fit[0] };
	examine(r, pod, nodes, candidates(r, narrowed, names, nodes), &l);
	for (size_t i = 0; i < r->nodes.n; i++)
		refusals += l.asked[i];
	r->next_start = (r->next_start + l.n_fit + refusals) % r->nodes.n;
	if (!l.n_fit)
		return refuse(r, pod, &l, STR(""), narrowed ? STR("node(s) didn't satisfy plugin(s) [NodeAffinity]") : STR(""));
	return (struct reference_outcome){ .found = true, .node = l.n_fit == 1 ? l.fit[0] : choose(r, pod, l.fit, l.n_fit) };
}
