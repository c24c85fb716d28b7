#include "codec/atoms.h"
#include "scheduler/plugin.h"

struct state {
	word name;              /* 0: a name that no node has */
};

static enum verdict name_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	str name = val_str(c->pod, spec, nodeName);
	struct state *s = ARENA_NEW(c->arena, struct state);

	s->name = word_find(c->nodes, name);
	*ret_state = s;
	*ret_skip = name.n == 0;
	return FIT;
}

static enum verdict name_filter(struct cycle *c, void *state, uint32_t node)
{
	const struct state *s = state;

	if (c->nodes->name[node] == s->name)
		return FIT;
	c->reason = STR("node(s) didn't match the requested node name");
	return UNRESOLVABLE;
}

const struct plugin plugin_node_name = {
	.name = "NodeName",
	.events = EV_NODE_ADD,
	.pre_filter = name_pre_filter,
	.filter = name_filter,
	.by_node_alone = true,
};
