/* DefaultIngressClass: an Ingress that names no class gets the one that is marked as the default. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

static int mutate(struct request *q, struct err *err)
{
	(void)err;
	if (!admits(q, STR("networking.k8s.io"), STR("ingresses")) || q->current || !val_exists(q->object))
		return 0;
	struct val annotations = val_get(q->object, metadata, annotations);
	if (val_has(q->object, spec, ingressClassName) || val_exists(val_find(annotations, STR("kubernetes.io/ingress.class"))))
		return 0;
	struct object *class = admission_default_of(q, STR("networking.k8s.io"), STR("ingressclasses"),
						    STR("ingressclass.kubernetes.io/is-default-class"));
	if (class) {
		struct val name = val_copy(q->arena, val_get(class->val, metadata, name));
		q->object = val_with(q->arena, q->object, name, spec, ingressClassName);
	}
	return 0;
}

const struct admission_plugin admission_default_ingress_class = { .name = "DefaultIngressClass", .mutate = mutate };
