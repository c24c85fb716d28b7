/* SchedulingGates: a pod with gates does not enter the queue. */
#include "base/buf.h"
#include "codec/atoms.h"
#include "scheduler/plugin.h"

static enum verdict gates_pre_enqueue(struct cycle *c)
{
	struct val gates = val_get(c->pod, spec, schedulingGates);
	if (!val_len(gates))
		return FIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	buf_add(&b, STR("waiting for scheduling gates: ["));
	VAL_EACH(g, gates) {
		if (g != gates.items)
			buf_addc(&b, ' ');
		buf_add(&b, val_str(*g, name));
	}
	buf_addc(&b, ']');
	c->reason = arena_str(c->arena, buf_str(&b));
	return UNRESOLVABLE;
}

static bool gates_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	(void)c, (void)event, (void)old;
	return str_eq(val_str(pod, metadata, uid), val_str(new, metadata, uid));
}

const struct plugin plugin_scheduling_gates = {
	.name = "SchedulingGates",
	.events = EV_POD_GATES,
	.hint = gates_hint,
	.pre_enqueue = gates_pre_enqueue,
};
