/* Which pods go first when there are too many: those that lose the least. What decides is taken from the pods once, before they are sorted. */
#include <stdlib.h>

#include "base/clock.h"
#include "codec/atoms.h"
#include "controllers/moment.h"
#include "controllers/pod_control.h"

struct ranked {
	struct val pod;
	bool assigned, ready;
	int phase;
	int64_t cost, rank, ready_ns, created_ns, restarts, sidecar_restarts, now_ns;
	str uid;
	size_t i;              /* the last word, so that the result is one only */
};

static int phase_order(str phase)
{
	return str_eq(phase, STR("Running")) ? 2 : str_eq(phase, STR("Unknown")) ? 1 : 0;
}

/* An integer of 32 bits without plus sign and leading zeros; anything else counts as 0. */
static int64_t deletion_cost(struct val pod)
{
	str text = val_as_str(val_find(val_get(pod, metadata, annotations), STR("controller.kubernetes.io/pod-deletion-cost")));
	str digits = str_starts(text, STR("-")) ? str_skip(text, 1) : text;
	int64_t cost;

	if (!digits.n || (digits.p[0] == '0' && text.n > 1) || !str_to_i64(text, &cost) || cost != (int32_t)cost)
		return 0;
	return cost;
}

static int64_t most_restarts(struct val statuses, struct val sidecars)
{
	int64_t most = 0;

	VAL_EACH(s, statuses) {
		bool counts = !val_exists(sidecars);
		VAL_EACH(c, sidecars)
			counts |= str_eq(val_str(*c, restartPolicy), STR("Always")) && str_eq(val_str(*c, name), val_str(*s, name));
		if (counts)
			most = MAX(most, val_int(*s, restartCount));
	}
	return most;
}

static struct ranked ranked_of(struct val pod, int64_t rank, int64_t now_ns, size_t i)
{
	bool ready = pod_is_ready(pod);
	struct val init = val_get(pod, spec, initContainers);

	return (struct ranked){
		.pod = pod, .assigned = val_str(pod, spec, nodeName).n, .ready = ready, .phase = phase_order(val_str(pod, status, phase)),
		.cost = deletion_cost(pod), .rank = rank, .now_ns = now_ns, .uid = val_str(pod, metadata, uid), .i = i,
		.ready_ns = ready ? moment_of(val_get(pod_condition(pod, "Ready"), lastTransitionTime)) : 0,
		.created_ns = moment_of(val_get(pod, metadata, creationTimestamp)),
		.restarts = most_restarts(val_get(pod, status, containerStatuses), VAL_EMPTY),
		.sidecar_restarts = most_restarts(val_get(pod, status, initContainerStatuses), val_exists(init) ? init : VAL_EMPTY_LIST),
	};
}

static int magnitude(int64_t ns) { return ns <= 0 ? -1 : 63 - __builtin_clzll((uint64_t)ns); }

/*
 * The younger first: ages count in powers of two, so that those of about the same age go by chance, which the uid at the end is. What has
 * not begun comes before that, and what nobody knows the time of before all.
 */
static int by_age(int64_t x_ns, int64_t y_ns, int64_t now_ns)
{
	if (!x_ns || !y_ns)
		return !!x_ns - !!y_ns;
	return magnitude(now_ns - x_ns) - magnitude(now_ns - y_ns);
}

static int compare(const void *p, const void *q)
{
	const struct ranked *x = p, *y = q;

	if (x->assigned != y->assigned)
		return x->assigned ? 1 : -1;
	if (x->phase != y->phase)
		return x->phase - y->phase;
	if (x->ready != y->ready)
		return x->ready ? 1 : -1;
	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	int age = x->ready ? by_age(x->ready_ns, y->ready_ns, x->now_ns) : 0;
	if (age)
		return age;
	if (x->restarts != y->restarts)
		return x->restarts > y->restarts ? -1 : 1;
	if (x->sidecar_restarts != y->sidecar_restarts)
		return x->sidecar_restarts > y->sidecar_restarts ? -1 : 1;
	if ((age = by_age(x->created_ns, y->created_ns, x->now_ns)))
		return age;
	if ((age = str_cmp(x->uid, y->uid)))
		return age;
	return x->i < y->i ? -1 : x->i > y->i;
}

struct val pods_in_deletion_order(struct arena *a, struct val pods, const int64_t *ranks, int64_t now_ns)
{
	size_t n = val_len(pods), i = 0;
	struct ranked *all = ARENA_ARRAY(a, struct ranked, n);
	struct val_builder sorted = val_builder(a);

	VAL_EACH(pod, pods) {
		all[i] = ranked_of(*pod, ranks ? ranks[i] : 0, now_ns, i);
		i++;
	}
	if (n > 1)
		qsort(all, n, sizeof(*all), compare);
	for (i = 0; i < n; i++)
		val_add_item(&sorted, all[i].pod);
	return val_end_list(&sorted);
}
