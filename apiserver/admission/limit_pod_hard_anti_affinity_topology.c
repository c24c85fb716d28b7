/* LimitPodHardAntiAffinityTopology: a pod can keep others away from its node, not from a whole zone. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

static int validate(struct request *q, struct err *err)
{
	(void)err;
	if (!admits(q, STR(""), STR("pods")) || !val_exists(q->object))
		return 0;
	VAL_EACH(term, val_get(q->object, spec, affinity, podAntiAffinity, requiredDuringSchedulingIgnoredDuringExecution)) {
		str key = val_str(*term, topologyKey);
		if (!str_eq(key, STR("kubernetes.io/hostname")))
			return admission_forbid(q,
						"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey " STR_FMT
						" but only key kubernetes.io/hostname is allowed",
						STR_ARG(key));
	}
	return 0;
}

const struct admission_plugin admission_limit_pod_hard_anti_affinity_topology = {
	.name = "LimitPodHardAntiAffinityTopology", .optional = true, .validate = validate,
};
