#include "scheduler/preempt.h"

#include <stdlib.h>

#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "machinery/conditions.h"

static int budget_compare(const void *x, const void *y)
{
	const struct preempt_budget *a = x, *b = y;
	return a->namespace < b->namespace ? -1 : a->namespace > b->namespace;
}

void preempt_budgets(struct preempt_search *s, const struct val *objects, size_t n)
{
	struct arena *a = s->c->arena;
	s->budgets = ARENA_ARRAY(a, struct preempt_budget, n + 1);
	s->n_budgets = 0;
	for (size_t i = 0; i < n; i++) {
		struct preempt_budget *b = &s->budgets[s->n_budgets];
		*b = (struct preempt_budget){ .namespace = word_find(s->c->nodes, val_str(objects[i], metadata, namespace)),
					      .allowed = val_int(objects[i], status, disruptionsAllowed),
					      .disrupted = val_get(objects[i], status, disruptedPods) };
		if (b->namespace && selector_of_object(a, val_get(objects[i], spec, selector), &b->selector, NULL) == 0 &&
		    !selector_is_everything(&b->selector) && !b->selector.nothing) {
			s->namespaces |= preempt_namespace(b->namespace);
			s->n_budgets++;
		}
	}
	if (s->n_budgets)
		qsort(s->budgets, s->n_budgets, sizeof(*s->budgets), budget_compare);
}

static size_t budgets_of(const struct preempt_search *s, word namespace)
{
	size_t low = 0, high = s->n_budgets;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (s->budgets[middle].namespace < namespace)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Nobody has gone yet. */
static void budgets_begin(struct preempt_search *s, const struct placed *p)
{
	for (size_t i = budgets_of(s, p->namespace); i < s->n_budgets && s->budgets[i].namespace == p->namespace; i++)
		s->budgets[i].left = s->budgets[i].allowed;
}

/* One more pod would go: does that violate a budget? */
static bool budgets_violated(struct preempt_search *s, const struct placed *p)
{
	bool violated = false;
	struct val pod = p->pod->val, labels = val_get(pod, metadata, labels);
	if (!val_len(labels))
		return false;
	for (size_t i = budgets_of(s, p->namespace); i < s->n_budgets && s->budgets[i].namespace == p->namespace; i++) {
		struct preempt_budget *b = &s->budgets[i];
		if (selector_matches(&b->selector, labels) && !val_exists(val_find(b->disrupted, val_str(pod, metadata, name))))
			violated |= --b->left < 0;
	}
	return violated;
}

/* Higher priority first, then the one that has run longer; the numbers of names only so that the order is always the same. */
static int compare_importance(const struct placed *a, const struct placed *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->namespace != b->namespace)
		return a->namespace < b->namespace ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static int room_compare(const void *x, const void *y)
{
	return compare_importance(((const struct preempt_pod *)x)->pod, ((const struct preempt_pod *)y)->pod);
}

static void sum_change(struct preempt_search *s, const struct placed *p, int sign)
{
	for (unsigned r = 0; r < s->c->nodes->n_resources; r++)
		s->gone.v[r] = sign > 0 ? res_add(s->gone.v[r], p->request.v[r]) : res_sub(s->gone.v[r], p->request.v[r]);
}

static void pod_out(struct preempt_search *s, struct placed *p, uint32_t node)
{
	if (s->c->by_sums) {
		sum_change(s, p, 1);
		return;
	}
	nodes_unplace(s->c->nodes, p);
	cycle_remove_pod(s->c, s->profile, p, node);
}

static void pod_in(struct preempt_search *s, struct placed *p, uint32_t node)
{
	if (s->c->by_sums) {
		sum_change(s, p, -1);
		return;
	}
	nodes_place(s->c->nodes, p, node);
	cycle_add_pod(s->c, s->profile, p, node);
}

static enum verdict fits(struct preempt_search *s, uint32_t node)
{
	int plugin;
	return s->c->by_sums ? cycle_filter_without(s->c, s->profile, node, &s->gone, &plugin) : cycle_filter(s->c, s->profile, node, &plugin);
}

/* The pods of the node that may go. */
static size_t gather(struct preempt_search *s, uint32_t node)
{
	const struct nodes *t = s->c->nodes;
	size_t n = 0;
	if (s->cap < t->n_pods[node]) {
		s->cap = MAX((size_t)t->n_pods[node] * 2, (size_t)64);
		s->room = ARENA_ARRAY(s->c->arena, struct preempt_pod, s->cap);
	}
	for (uint32_t i = 0; i < t->n_pods[node]; i++)
		if (t->pods[node][i]->priority < s->c->placed->priority)
			s->room[n++] = (struct preempt_pod){ .pod = t->pods[node][i] };
	return n;
}

/* Lets stay who can, of those that violate budgets or of the others. How many cannot. */
static unsigned reprieve(struct preempt_search *s, size_t n, bool violating, uint32_t node)
{
	unsigned victims = 0;
	for (size_t i = 0; i < n; i++) {
		struct preempt_pod *p = &s->room[i];
		if (p->violates != violating)
			continue;
		pod_in(s, p->pod, node);
		p->stays = fits(s, node) == FIT;
		if (p->stays)
			continue;
		pod_out(s, p->pod, node);
		victims++;
	}
	return victims;
}

void preempt_weigh(struct preempt_victims *v)
{
	v->highest = v->n ? v->pods[0]->priority : INT32_MIN;
	v->sum = 0;
	v->start_ns = INT64_MAX;
	for (size_t i = 0; i < v->n; i++) {
		v->sum += (int64_t)v->pods[i]->priority + INT64_C(2147483648);
		if (v->pods[i]->priority == v->highest)
			v->start_ns = MIN(v->start_ns, v->pods[i]->start_ns);
	}
}

enum verdict preempt_dry_run(struct preempt_search *s, uint32_t node, struct preempt_victims *ret)
{
	size_t n = gather(s, node);
	if (!n) {
		s->c->reason = STR("No preemption victims found for incoming pod");
		return UNRESOLVABLE;
	}
	s->gone = (struct res){ { 0 } };
	for (size_t i = 0; i < n; i++)
		pod_out(s, s->room[i].pod, node);
	enum verdict v = fits(s, node);
	str why = s->c->reason;
	if (v == FIT) {
		qsort(s->room, n, sizeof(*s->room), room_compare);
		for (size_t i = 0; i < n && s->n_budgets; i++)
			budgets_begin(s, s->room[i].pod);
		for (size_t i = 0; i < n && s->n_budgets; i++)
			s->room[i].violates = budgets_violated(s, s->room[i].pod);
		*ret = (struct preempt_victims){ .node = node };
		for (size_t i = 0; i < n; i++)
			ret->namespaces |= preempt_namespace(s->room[i].pod->namespace);
		ret->violations = reprieve(s, n, true, node);
		ret->n = ret->violations + reprieve(s, n, false, node);
		ret->pods = ARENA_ARRAY(s->c->arena, struct placed *, ret->n + 1);
	}
	size_t victims = 0;
	for (size_t i = 0; i < n; i++) {
		if (s->room[i].stays)
			continue;
		if (v == FIT)
			ret->pods[victims++] = s->room[i].pod;
		pod_in(s, s->room[i].pod, node);
	}
	s->c->reason = why;
	if (v == FIT && !victims) {
		s->c->reason = arena_printf(s->c->arena, "expected at least one victim pod on node \"" STR_FMT "\"",
					    STR_ARG(word_str(s->c->nodes, s->c->nodes->name[node])));
		return FAILED;
	}
	if (v != FIT)
		return v;
	preempt_weigh(ret);
	return FIT;
}

bool preempt_is_better(const struct preempt_victims *a, const struct preempt_victims *b)
{
	if (a->violations != b->violations)
		return a->violations < b->violations;
	if (a->highest != b->highest)
		return a->highest < b->highest;
	if (a->sum != b->sum)
		return a->sum < b->sum;
	if (a->n != b->n)
		return a->n < b->n;
	return a->start_ns > b->start_ns;
}

size_t preempt_choose(const struct preempt_victims *all, size_t n)
{
	size_t best = 0;
	for (size_t i = 1; i < n; i++)
		if (preempt_is_better(&all[i], &all[best]))
			best = i;
	return best;
}

uint32_t preempt_enough(uint32_t n_nodes, int64_t percentage, int64_t absolute)
{
	int64_t n = MAX((int64_t)n_nodes * percentage / 100, absolute);
	return (uint32_t)MIN(n, (int64_t)n_nodes);
}

static struct val condition_of(struct val pod, str type)
{
	VAL_EACH(c, val_get(pod, status, conditions))
		if (str_eq(val_str(*c, type), type))
			return *c;
	return VAL_EMPTY;
}

bool pod_goes_by_preemption(struct val pod)
{
	struct val c = condition_of(pod, STR("DisruptionTarget"));
	return val_has(pod, metadata, deletionTimestamp) && str_eq(val_str(c, status), STR("True")) &&
	       str_eq(val_str(c, reason), STR("PreemptionByScheduler"));
}

struct val preempt_patch(struct arena *a, struct val victim, str scheduler_name, int64_t wall_ns)
{
	char text[TIME_TEXT_MAX];
	struct val old = condition_of(victim, STR("DisruptionTarget"));
	str message = arena_printf(a, STR_FMT ": preempting to accommodate a higher priority pod", STR_ARG(scheduler_name));
	bool was = str_eq(val_str(old, status), STR("True"));
	if (was && str_eq(val_str(old, reason), STR("PreemptionByScheduler")) && str_eq(val_str(old, message), message) &&
	    !val_has(old, lastProbeTime))
		return VAL_EMPTY;
	str now = arena_str(a, time_format((struct timestamp){ wall_ns / NS_PER_S, 0 }, text));
	struct val condition = OBJECT(a, F(type, VAL_LIT("DisruptionTarget")), F(observedGeneration, val_get(victim, metadata, generation)),
				      F(status, VAL_LIT("True")),
				      F(lastTransitionTime, was ? val_get(old, lastTransitionTime) : VAL_STR(now)),
				      F(reason, VAL_LIT("PreemptionByScheduler")), F(message, VAL_STR(message)));
	return OBJECT(a, F(status, condition_patch(a, VAL_EMPTY_OBJECT, val_get(victim, status, conditions), condition)));
}
