#include "apiserver/pod.h"

#include "apiserver/meta.h"
#include "codec/atoms.h"

struct val conditions_put(struct request *q, struct val list, struct val condition)
{
	struct val dated = val_put(q->arena, condition, A_lastTransitionTime, meta_now(q));
	for (uint32_t i = 0; i < val_len(list); i++) {
		struct val had = list.items[i];
		if (!str_eq(val_str(had, type), val_str(condition, type)))
			continue;
		if (str_eq(val_str(had, status), val_str(condition, status)))
			dated = val_put(q->arena, dated, A_lastTransitionTime, val_get(had, lastTransitionTime));
		return val_list_set(q->arena, list, i, dated);
	}
	return val_list_append(q->arena, list, dated);
}

struct val pod_with_condition(struct request *q, struct val pod, struct val condition)
{
	return val_with(q->arena, pod, conditions_put(q, val_get(pod, status, conditions), condition), status, conditions);
}

bool pod_is_ready(struct val pod)
{
	VAL_EACH(c, val_get(pod, status, conditions))
		if (str_eq(val_str(*c, type), STR("Ready")))
			return str_eq(val_str(*c, status), STR("True"));
	return false;
}
