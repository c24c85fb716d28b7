/* TaintNodesByCondition: a new node takes no pods until it is found to be ready. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

static int mutate(struct request *q, struct err *err)
{
	(void)err;
	if (!admits(q, STR(""), STR("nodes")) || q->current || !val_exists(q->object))
		return 0;
	struct val taints = val_get(q->object, spec, taints);
	VAL_EACH(t, taints)
		if (str_eq(val_str(*t, key), STR("node.kubernetes.io/not-ready")) &&
		    str_eq(val_str(*t, effect), STR("NoSchedule")))
			return 0;
	struct val taint = OBJECT(q->arena, F(key, VAL_LIT("node.kubernetes.io/not-ready")), F(effect, VAL_LIT("NoSchedule")));
	q->object = val_with(q->arena, q->object, val_list_append(q->arena, taints, taint), spec, taints);
	return 0;
}

const struct admission_plugin admission_taint_nodes = { .name = "TaintNodesByCondition", .mutate = mutate };
