/* Ports on the host: free on the node, for the address that is asked for or for all of them. */
#include "codec/atoms.h"
#include "scheduler/plugin.h"

struct state {
	word everywhere;              /* 0.0.0.0 */
	const struct placed *pod;
};

static enum verdict ports_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	struct state *s;

	*ret_skip = c->placed->n_ports == 0;
	if (*ret_skip)
		return FIT;
	*ret_state = s = ARENA_NEW(c->arena, struct state);
	*s = (struct state){ word_find(c->nodes, EVERY_IP), c->placed };
	return FIT;
}

static bool conflict(const struct port *a, const struct port *b, word everywhere)
{
	return a->port == b->port && a->protocol == b->protocol && (a->ip == b->ip || a->ip == everywhere || b->ip == everywhere);
}

static enum verdict ports_filter(struct cycle *c, void *state, uint32_t node)
{
	const struct state *s = state;
	const struct port *in_use = c->nodes->ports[node];
	uint32_t n = c->nodes->n_ports[node];

	for (uint32_t i = 0; i < s->pod->n_ports; i++)
		for (uint32_t k = 0; k < n; k++)
			if (conflict(&s->pod->ports[i], &in_use[k], s->everywhere)) {
				c->reason = STR("node(s) didn't have free ports for the requested pod ports");
				return UNSCHEDULABLE;
			}
	return FIT;
}

/* ---- queue ---- */

static struct host_port *host_ports(struct arena *a, struct val pod, uint32_t *ret_n)
{
	struct val spec = val_get(pod, spec);
	struct host_port *all = ARENA_ARRAY(a, struct host_port, pod_host_ports(spec, NULL));

	*ret_n = pod_host_ports(spec, all);
	return all;
}

/* A pod that is gone from its node may have had a port that is wanted. */
static bool ports_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct host_port *had, *wanted;
	uint32_t n_had, n_wanted;

	(void)c;
	(void)new;
	if (event != EV_POD_DELETE)
		return true;
	if (!val_str(old, spec, nodeName).n && !val_str(old, status, nominatedNodeName).n)
		return false;
	had = host_ports(&a, old, &n_had);
	wanted = host_ports(&a, pod, &n_wanted);
	for (uint32_t i = 0; i < n_had; i++)
		for (uint32_t k = 0; k < n_wanted; k++)
			if (had[i].port == wanted[k].port && had[i].protocol == wanted[k].protocol &&
			    (str_eq(had[i].ip, wanted[k].ip) || str_eq(had[i].ip, EVERY_IP) || str_eq(wanted[k].ip, EVERY_IP)))
				return true;
	return false;
}

const struct plugin plugin_node_ports = {
	.name = "NodePorts",
	.events = EV_POD_DELETE | EV_NODE_ADD,
	.hint = ports_hint,
	.pre_filter = ports_pre_filter,
	.filter = ports_filter,
};
