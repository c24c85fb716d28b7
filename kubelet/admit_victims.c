/*
 * Room for a critical pod: which others have to go. As few as possible, Guaranteed pods only when nothing else helps, then Burstable ones;
 * of two that help equally the one that asks for less. The choice is Kubernetes' (kubelet/preemption).
 */
#include "base/buf.h"
#include "codec/atoms.h"
#include "kubelet/admit_priv.h"
#include "kubelet/pod_rules.h"
#include "machinery/resources.h"

enum { SYSTEM_CRITICAL = 2000000000, MESSAGE_MAX = 16 << 10 };

bool admit_is_critical(struct val pod)
{
	return pod_is_static(pod) || val_exists(val_find(val_get(pod, metadata, annotations), STR("kubernetes.io/config.mirror"))) ||
	       val_int(pod, spec, priority) >= SYSTEM_CRITICAL;
}

static bool may_replace(struct val pod, struct val other)
{
	if (admit_is_critical(pod) && !admit_is_critical(other))
		return true;
	return val_has(pod, spec, priority) && val_has(other, spec, priority) &&
	       val_int(pod, spec, priority) > val_int(other, spec, priority);
}

struct candidate {
	struct val pod, requests;
	bool chosen;
};

struct need {
	str name;
	int64_t amount;
};

struct needs {
	struct need *all;
	size_t n;
};

/* One resource of a pod; every pod is one of "pods". */
static int64_t frees(const struct candidate *c, str name)
{
	return str_eq(name, STR("pods")) ? 1 : admit_amount(c->requests, name);
}

/* What is still needed once this one is gone. */
static void needs_take(struct needs *needs, const struct candidate *c)
{
	size_t n = 0;

	for (size_t i = 0; i < needs->n; i++) {
		struct need one = needs->all[i];
		one.amount -= frees(c, one.name);
		if (one.amount > 0)
			needs->all[n++] = one;
	}
	needs->n = n;
}

static struct needs needs_copy(struct arena *a, const struct needs *from)
{
	struct needs copy = { ARENA_ARRAY(a, struct need, from->n), from->n };

	if (from->n)
		memcpy(copy.all, from->all, from->n * sizeof(*copy.all));
	return copy;
}

/* How much is still needed, by the part that this one leaves of each resource. */
static double distance(const struct needs *needs, const struct candidate *c)
{
	double sum = 0;

	for (size_t i = 0; i < needs->n; i++) {
		double left = (double)(needs->all[i].amount - frees(c, needs->all[i].name)), part = left / (double)needs->all[i].amount;
		if (left > 0)
			sum += part * part;
	}
	return sum;
}

static bool asks_less(const struct candidate *a, const struct candidate *b)
{
	static const str names[] = { STR_INIT("memory"), STR_INIT("cpu") };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int64_t x = frees(a, names[i]), y = frees(b, names[i]);
		if (x != y)
			return x < y;
	}
	return true;
}

enum class { BEST_EFFORT, BURSTABLE, GUARANTEED, CLASSES };

struct group {
	struct candidate *all;
	size_t n;
};

static int no_room(const struct needs *needs, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);

	for (size_t i = 0; i < needs->n; i++)
		buf_addf(&b, "(res: " STR_FMT ", q: %lld), ", STR_ARG(needs->all[i].name), (long long)needs->all[i].amount);
	return err_set(err, ERR_INVALID,
		       "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: "
		       "no set of running pods found to reclaim resources: [%s]", b.p ? b.p : "");
}

/* Of this group, those that free what is needed when all of `gone` are gone already. */
static int choose(struct group *g, struct needs needs, struct err *err)
{
	while (needs.n) {
		struct candidate *best = NULL;
		double least = 0;
		for (size_t i = 0; i < g->n; i++) {
			struct candidate *c = &g->all[i];
			double d = c->chosen ? 0 : distance(&needs, c);
			if (!c->chosen && (!best || d < least || (d == least && asks_less(c, best)))) {
				best = c;
				least = d;
			}
		}
		if (!best)
			return no_room(&needs, err);
		best->chosen = true;
		needs_take(&needs, best);
	}
	return 0;
}

static void take_group(struct needs *needs, const struct group *g, bool all)
{
	for (size_t i = 0; i < g->n; i++)
		if (all || g->all[i].chosen)
			needs_take(needs, &g->all[i]);
}

static void sort_out(struct arena *a, const struct admit_input *in, struct group groups[CLASSES])
{
	static const char *const names[CLASSES] = { "BestEffort", "Burstable", "Guaranteed" };

	for (int i = 0; i < CLASSES; i++)
		groups[i] = (struct group){ .all = ARENA_ARRAY(a, struct candidate, val_len(in->others)) };
	VAL_EACH(other, in->others) {
		struct val spec = val_get(*other, spec);
		str class = pod_qos_class(spec);
		for (int i = 0; i < CLASSES; i++)
			if (str_eq(class, str_of(names[i])) && admit_counts(in, *other) && may_replace(in->pod, *other))
				groups[i].all[groups[i].n++] = (struct candidate){ *other, admit_requests(a, spec), false };
	}
}

int admit_victims(struct arena *a, const struct admit_input *in, struct val *ret, struct err *err)
{
	struct shortages s = admit_shortages(a, in);
	struct needs needs = { ARENA_ARRAY(a, struct need, s.n), s.n }, left;
	struct group groups[CLASSES];
	struct val_builder b = val_builder(a);
	int r = 0;

	for (size_t i = 0; i < s.n; i++)
		needs.all[i] = (struct need){ s.all[i].name, s.all[i].requested - (s.all[i].capacity - s.all[i].used) };
	sort_out(a, in, groups);
	left = needs_copy(a, &needs);
	for (int i = 0; i < CLASSES; i++)
		take_group(&left, &groups[i], true);
	if (left.n)
		return no_room(&left, err);
	for (int i = CLASSES - 1; r == 0 && i >= 0; i--) {
		left = needs_copy(a, &needs);
		for (int j = 0; j < CLASSES; j++)
			if (j != i)
				take_group(&left, &groups[j], j < i);
		r = choose(&groups[i], left, err);
	}
	for (int i = 0; r == 0 && i < CLASSES; i++)
		for (size_t j = 0; j < groups[i].n; j++)
			if (groups[i].all[j].chosen)
				val_add_item(&b, groups[i].all[j].pod);
	*ret = val_end_list(&b);
	return r;
}
