/* Nodes with taints that the pod does not tolerate: NoSchedule and NoExecute keep it away, PreferNoSchedule make the node less welcome. */
#include "codec/atoms.h"
#include "scheduler/plugin.h"
#include "scheduler/score.h"
#include "scheduler/tolerations.h"

static void compile(struct cycle *c, void **ret_state)
{
	struct tolerations *all = ARENA_NEW(c->arena, struct tolerations);

	*all = tolerations_compile(c->arena, c->nodes, val_get(c->pod, spec, tolerations));
	*ret_state = all;
}

static enum verdict taint_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	compile(c, ret_state);
	*ret_skip = false;
	return FIT;
}

static enum verdict taint_filter(struct cycle *c, void *state, uint32_t node)
{
	if (LIKELY(!node_is_tainted(c->nodes, node, state)))
		return FIT;
	c->reason = STR("node(s) had untolerated taint(s)");
	return UNRESOLVABLE;
}

static bool taint_pre_score(struct cycle *c, void **ret_state, const uint32_t *nodes, size_t n)
{
	(void)nodes;
	(void)n;
	compile(c, ret_state);
	return true;
}

static void taint_score(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores)
{
	const struct nodes *t = c->nodes;

	for (size_t i = 0; i < n; i++) {
		const struct taint *taints = t->taints[nodes[i]];
		scores[i] = 0;
		for (uint32_t k = 0; k < t->n_taints[nodes[i]]; k++)
			scores[i] += taints[k].effect == TAINT_PREFER_NO_SCHEDULE && !tolerations_cover(state, &taints[k]);
	}
	scores_normalize(scores, n, true);
}

static bool taint_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	struct val tolerations = val_get(pod, spec, tolerations);

	(void)c;
	if (event == EV_POD_TOLERATION)
		return str_eq(val_str(pod, metadata, uid), val_str(new, metadata, uid));
	return !node_object_is_tainted(new, tolerations) && (!val_exists(old) || node_object_is_tainted(old, tolerations));
}

const struct plugin plugin_taint_toleration = {
	.name = "TaintToleration",
	.weight = 3,
	.events = EV_NODE_ADD | EV_NODE_TAINT | EV_POD_TOLERATION,
	.hint = taint_hint,
	.pre_filter = taint_pre_filter,
	.filter = taint_filter,
	.by_node_alone = true,
	.pre_score = taint_pre_score,
	.score = taint_score,
};
