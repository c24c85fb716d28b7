#include "scheduler/changes.h"

#include "codec/atoms.h"
#include "machinery/resources.h"

/* Types and states of a node's conditions; times and messages change all the time. */
static bool same_conditions(struct val x, struct val y)
{
	if (val_len(x) != val_len(y))
		return false;
	VAL_EACH(c, x) {
		bool found = false;
		VAL_EACH(d, y)
			found |= str_eq(val_str(*c, type), val_str(*d, type)) && str_eq(val_str(*c, status), val_str(*d, status));
		if (!found)
			return false;
	}
	return true;
}

unsigned node_changes(struct val old, struct val new)
{
	unsigned events = 0;

	if (!val_equal(val_get(old, status, allocatable), val_get(new, status, allocatable)))
		events |= EV_NODE_ALLOCATABLE;
	if (!val_equal(val_get(old, metadata, labels), val_get(new, metadata, labels)))
		events |= EV_NODE_LABEL;
	if (!val_equal(val_get(old, spec, taints), val_get(new, spec, taints)) || val_bool(old, spec, unschedulable) != val_bool(new, spec, unschedulable))
		events |= EV_NODE_TAINT;
	if (!same_conditions(val_get(old, status, conditions), val_get(new, status, conditions)))
		events |= EV_NODE_CONDITION;
	return events;
}

/* Less of any resource than before. */
static bool asks_for_less(struct val old, struct val new)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (val_equal(val_get(old, spec, containers), val_get(new, spec, containers)) &&
	    val_equal(val_get(old, status, containerStatuses), val_get(new, status, containerStatuses)) &&
	    val_equal(val_get(old, spec, resources), val_get(new, spec, resources)))
		return false;
	struct val before = pod_container_resources(&a, val_get(old, spec), A_requests), now = pod_container_resources(&a, val_get(new, spec), A_requests);
	VAL_EACH_MEMBER(m, before)
		if (quantity_cmp(quantity_of(m->val), quantity_of(sorted_find(now, atom_str(m->key)))) > 0)
			return true;
	/* A resize that the kubelet has finished: what counts is the larger of what is asked for and what is given. */
	VAL_EACH(c, val_get(old, status, containerStatuses))
		VAL_EACH(d, val_get(new, status, containerStatuses))
			if (str_eq(val_str(*c, name), val_str(*d, name)))
				VAL_EACH_MEMBER(m, val_get(*c, resources, requests))
					if (quantity_cmp(quantity_of(m->val), quantity_of(val_member(val_get(*d, resources, requests), m->key))) > 0)
						return true;
	return false;
}

unsigned pod_changes(struct val old, struct val new)
{
	unsigned events = 0;

	if (!val_equal(val_get(old, metadata, labels), val_get(new, metadata, labels)))
		events |= EV_POD_LABEL;
	if (asks_for_less(old, new))
		events |= EV_POD_SCALE_DOWN;
	if (val_len(val_get(old, spec, schedulingGates)) && !val_len(val_get(new, spec, schedulingGates)))
		events |= EV_POD_GATES;
	if (!val_equal(val_get(old, spec, tolerations), val_get(new, spec, tolerations)))
		events |= EV_POD_TOLERATION;
	if (!val_equal(val_get(old, status, resourceClaimStatuses), val_get(new, status, resourceClaimStatuses)))
		events |= EV_CLAIM;
	return events;
}
