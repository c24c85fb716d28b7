#include "scheduler/changes.h"

#include "codec/atoms.h"
#include "machinery/resources.h"
#include "scheduler/requests.h"

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
	if (!val_equal(val_get(old, status, declaredFeatures), val_get(new, status, declaredFeatures)))
		events |= EV_NODE_FEATURES;
	return events;
}

/* Less of any resource of the list than before. */
static bool list_is_less(struct val before, struct val now)
{
	VAL_EACH_MEMBER(m, before)
		if (quantity_cmp(quantity_of(m->val), quantity_of(sorted_find(now, atom_str(m->key)))) > 0)
			return true;
	return false;
}

static bool statuses_are_less(struct val before, struct val now)
{
	if (val_equal(before, now))
		return false;
	VAL_EACH(c, before)
		VAL_EACH(d, now)
			if (str_eq(val_str(*c, name), val_str(*d, name)) &&
			    (list_is_less(val_get(*c, resources, requests), val_get(*d, resources, requests)) ||
			     list_is_less(val_get(*c, allocatedResources), val_get(*d, allocatedResources))))
				return true;
	return false;
}

/* Less of any resource than before; rather too often than not: hints look closer. */
static bool asks_for_less(struct val old, struct val new)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val before = val_get(old, spec), now = val_get(new, spec);

	if ((!val_equal(val_get(before, containers), val_get(now, containers)) || !val_equal(val_get(before, initContainers), val_get(now, initContainers))) &&
	    list_is_less(pod_container_resources(&a, before, A_requests), pod_container_resources(&a, now, A_requests)))
		return true;
	if (list_is_less(val_get(before, resources, requests), val_get(now, resources, requests)))
		return true;
	if (resize_is_infeasible(new) && !resize_is_infeasible(old))
		return true;
	/* A resize that the kubelet has finished: what counts is the larger of what is asked for and what is given. */
	before = val_get(old, status);
	now = val_get(new, status);
	return statuses_are_less(val_get(before, containerStatuses), val_get(now, containerStatuses)) ||
	       statuses_are_less(val_get(before, initContainerStatuses), val_get(now, initContainerStatuses)) ||
	       list_is_less(val_get(before, resources, requests), val_get(now, resources, requests)) ||
	       list_is_less(val_get(before, allocatedResources), val_get(now, allocatedResources));
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
