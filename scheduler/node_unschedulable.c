#include "codec/atoms.h"
#include "scheduler/plugin.h"
#include "scheduler/tolerations.h"

static bool tolerates(struct val pod)
{
	return tolerations_allow(val_get(pod, spec, tolerations), STR("node.kubernetes.io/unschedulable"), STR(""), TAINT_NO_SCHEDULE);
}

static enum verdict unschedulable_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	*ret_state = NULL;
	*ret_skip = tolerates(c->pod);
	return FIT;
}

static enum verdict unschedulable_filter(struct cycle *c, void *state, uint32_t node)
{
	(void)state;
	if (!c->nodes->unschedulable[node])
		return FIT;
	c->reason = STR("node(s) were unschedulable");
	return UNRESOLVABLE;
}

static bool unschedulable_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	(void)c;
	if (event == EV_POD_TOLERATION)
		return str_eq(val_str(pod, metadata, uid), val_str(new, metadata, uid)) && tolerates(new);
	return !val_bool(new, spec, unschedulable) && (!val_exists(old) || val_bool(old, spec, unschedulable));
}

const struct plugin plugin_node_unschedulable = {
	.name = "NodeUnschedulable",
	.events = EV_NODE_ADD | EV_NODE_TAINT | EV_POD_TOLERATION,
	.hint = unschedulable_hint,
	.pre_filter = unschedulable_pre_filter,
	.filter = unschedulable_filter,
	.by_node_alone = true,
};
