/* NodeDeclaredFeatureValidator: what an update asks of a running pod must be something that its node has said it can do. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"
#include "machinery/resources.h"

static bool changes_init_containers(struct val old, struct val new)
{
	struct val was = val_get(old, spec, initContainers), is = val_get(new, spec, initContainers);
	for (uint32_t i = 0; i < val_len(was); i++)
		if (!container_is_sidecar(was.items[i]) &&
		    !val_equal(val_get(was.items[i], resources), val_get(val_at(is, i), resources)))
			return true;
	return false;
}

static bool declares(struct val node, str feature)
{
	VAL_EACH(f, val_get(node, status, declaredFeatures))
		if (str_eq(val_as_str(*f), feature))
			return true;
	return false;
}

static int validate(struct request *q, struct err *err)
{
	(void)err;
	str name = val_str(q->object, spec, nodeName);
	bool pods = str_eq(q->resource, STR("pods")) && !q->group.n &&
		(!q->subresource.n || str_eq(q->subresource, STR("resize")));
	if (!pods || !q->current || !name.n || val_int(q->object, metadata, generation) == val_int(q->old, metadata,
												   generation))
		return 0;
	str needs[2];
	size_t n = 0;
	if (!val_equal(val_get(q->old, spec, resources), val_get(q->object, spec, resources)))
		needs[n++] = STR("InPlacePodLevelResourcesVerticalScaling");
	if (changes_init_containers(q->old, q->object))
		needs[n++] = STR("InPlacePodVerticalScalingInitContainers");
	struct object *node = n ? admission_bound_node(q) : NULL;
	if (n && !node)
		return admission_forbid(q, "node \"" STR_FMT "\" not found", STR_ARG(name));
	str missing = STR_NONE;
	for (size_t i = 0; i < n; i++)
		if (!declares(node->val, needs[i]))
			missing = missing.n ? arena_printf(q->arena, STR_FMT ", " STR_FMT, STR_ARG(missing),
							   STR_ARG(needs[i])) : needs[i];
	if (!missing.n)
		return 0;
	return admission_forbid(q, "pod update requires features " STR_FMT " which are not available on node \"" STR_FMT "\"",
				STR_ARG(missing), STR_ARG(name));
}

const struct admission_plugin admission_node_features = { .name = "NodeDeclaredFeatureValidator", .validate = validate };
