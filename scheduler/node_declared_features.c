/*
 * NodeDeclaredFeatures: nodes whose kubelet says (status.declaredFeatures) that it can do what only newer ones can. What it reads of a pod is not
 * what classes (classes.h) go by: pods that it asks something for are in none, as it does not say that it is by_node_alone.
 */
#include "codec/atoms.h"
#include "scheduler/scheduler_priv.h"

struct features {
	str all[2];
	size_t n;
};

static bool restarts_all(struct val containers)
{
	VAL_EACH(c, containers)
		VAL_EACH(rule, val_get(*c, restartPolicyRules))
			if (str_eq(val_str(*rule, action), STR("RestartAllContainers")))
				return true;
	return false;
}

static enum verdict features_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	struct val spec = val_get(c->pod, spec), host_users = val_get(spec, hostUsers);
	struct features *s = ARENA_NEW(c->arena, struct features);

	if (restarts_all(val_get(spec, containers)) || restarts_all(val_get(spec, initContainers)))
		s->all[s->n++] = STR("RestartAllContainersOnContainerExits");
	if (val_bool(spec, hostNetwork) && val_is(host_users, VAL_BOOL) && !val_as_bool(host_users))
		s->all[s->n++] = STR("UserNamespacesHostNetworkSupport");
	*ret_state = s;
	*ret_skip = s->n == 0 || !scheduler_gate(c->scheduler, "NodeDeclaredFeatures");
	return FIT;
}

static bool declares(struct val node, str feature)
{
	VAL_EACH(f, val_get(node, status, declaredFeatures))
		if (str_eq(val_as_str(*f), feature))
			return true;
	return false;
}

static enum verdict features_filter(struct cycle *c, void *state, uint32_t node)
{
	const struct features *s = state;

	for (size_t i = 0; i < s->n; i++)
		if (!declares(c->nodes->object[node]->val, s->all[i])) {
			c->reason = STR("node(s) didn't match Pod's required features");
			return UNRESOLVABLE;
		}
	return FIT;
}

const struct plugin plugin_node_declared_features = {
	.name = "NodeDeclaredFeatures",
	.events = EV_NODE_ADD | EV_NODE_FEATURES,
	.pre_filter = features_pre_filter,
	.filter = features_filter,
};
