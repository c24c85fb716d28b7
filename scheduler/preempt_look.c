/*
 * On which node. Nodes are tried in their order from one by chance on, until enough have been found. What a pod of the same class has found out
 * already (classes.h) is not tried again, so that mostly only those are that have changed since.
 */
#include "scheduler/classes.h"
#include "scheduler/preempt.h"
#include "scheduler/scheduler_priv.h"

const uint64_t *preempt_stuck(struct cycle *c, uint32_t *ret_n)
{
	const uint32_t *order = nodes_order(c->nodes);
	uint64_t *set = c->by_class ? c->class->stuck : arena_zero_of(c->arena, BITS_WORDS(c->nodes->n_alive) * sizeof(*set), _Alignof(uint64_t));

	for (uint32_t at = 0; at < c->nodes->n_alive && !c->by_class; at++)
		if (cycle_verdict(c, order[at]) == UNSCHEDULABLE)
			bits_add(set, at);
	*ret_n = bits_count(set, c->nodes->n_alive);
	return set;
}

static void found_add(struct preempt_found *f, struct cycle *c, const struct preempt_victims *v)
{
	if (c->scheduler->n_extenders && f->n == f->cap) {
		const struct preempt_victims *before = f->all;
		f->cap = MAX(2 * f->cap, (size_t)64);
		f->all = ARENA_ARRAY(c->arena, struct preempt_victims, f->cap);
		if (before)
			memcpy(f->all, before, f->n * sizeof(*before));
	}
	if (f->all)
		f->all[f->n] = *v;
	if (!f->best || preempt_is_better(v, f->best))
		f->best = v;
	f->n++;
	f->n_good += !v->violations;
}

/* The dry run, if its result is not known of a pod of the same class. Budgets decide who goes, not whether anybody can. FIT: with victims. */
static enum verdict try_node(struct preempt_search *search, uint32_t node, struct preempt_found *f, const struct preempt_victims **ret)
{
	struct cycle *c = search->c;
	const struct preempt_victims *known = search->class ? class_victims(search->class, c, node) : NULL;

	if (known && known->n && !(known->namespaces & search->namespaces)) {
		*ret = known;
		return FIT;
	}
	if (known && !known->n) {
		fit_error_add(&f->why, class_no_victims(search->class, node), 1);
		return UNSCHEDULABLE;
	}
	if (!f->spare)
		f->spare = ARENA_NEW(c->arena, struct preempt_victims);
	enum verdict v = preempt_dry_run(search, node, f->spare);
	if (v != FIT)
		*f->spare = (struct preempt_victims){ .node = node };
	bool learned = search->class && v != FAILED && !(f->spare->namespaces & search->namespaces) && class_learn_victims(search->class, c, f->spare);
	if (v != FIT) {
		if (!learned || !c->by_class) /* what the class knows by now is counted there */
			fit_error_add(&f->why, c->reason, 1);
		f->error = v == FAILED && !f->error.n ? c->reason : f->error;
		return v;
	}
	*ret = TAKE(f->spare);
	return FIT;
}

void preempt_look(struct preempt_search *search, const uint64_t *stuck, uint32_t n, uint32_t enough, struct preempt_found *f)
{
	struct cycle *c = search->c;
	const uint32_t *order = nodes_order(c->nodes);
	/* Those that are known to have no victims are passed over if the class counts them. */
	const uint64_t *offers = c->by_class && search->class ? search->class->offers : NULL;

	*f = (struct preempt_found){ .n = 0 };
	fit_error_init(&f->why, c->arena);
	if (!n)
		return;
	uint32_t start = bits_select(stuck, (uint32_t)scheduler_dice(c->scheduler, n));
	for (int turn = 0; turn < 2; turn++) {
		uint32_t from = turn ? 0 : start, end = turn ? start : c->nodes->n_alive;
		for (; (from = bits_next(stuck, offers, from, end)) < end; from++) {
			const struct preempt_victims *v = NULL;
			if (try_node(search, order[from], f, &v) != FIT)
				continue;
			found_add(f, c, v);
			if (f->n_good && f->n >= enough)
				return;
		}
	}
}

str preempt_why_none(const struct preempt_search *search, struct preempt_found *f, uint32_t n)
{
	const struct cycle *c = search->c;
	const struct pod_class *k = c->by_class ? search->class : NULL;

	for (unsigned i = 0; k && i < k->n_reasons; i++)
		if (k->reasons[i].n && k->reasons[i].plugin < 0)
			fit_error_add(&f->why, k->reasons[i].text, k->reasons[i].n);
	if (c->nodes->n_alive > n)
		fit_error_add(&f->why, STR("Preemption is not helpful for scheduling"), c->nodes->n_alive - n);
	return fit_error_text(&f->why, c->nodes->n_alive, STR_NONE, STR_NONE);
}
