#include "machinery/conditions.h"

#include "codec/atoms.h"

struct val condition_find(struct val conditions, const char *type)
{
	VAL_EACH(c, conditions)
		if (str_eq(val_str(*c, type), str_of(type)))
			return *c;
	return VAL_EMPTY;
}

bool pod_is_ready(struct val pod)
{
	return str_eq(val_str(condition_find(val_get(pod, status, conditions), "Ready"), status), STR("True"));
}

struct val condition_patch(struct arena *a, struct val status, struct val conditions, struct val condition)
{
	struct val_builder order = val_builder(a);

	VAL_EACH(c, conditions)
		if (!str_eq(val_str(*c, type), val_str(condition, type)))
			val_add_item(&order, OBJECT(a, F(type, val_get(*c, type))));
		else
			return val_with(a, status, LIST(a, condition), conditions);
	status = val_with(a, status, LIST(a, condition), conditions);
	if (!order.n)
		return status;
	val_add_item(&order, OBJECT(a, F(type, val_get(condition, type))));
	return val_put(a, status, atom_make(a, STR("$setElementOrder/conditions")), val_end_list(&order));
}
