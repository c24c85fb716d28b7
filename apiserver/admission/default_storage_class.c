/* DefaultStorageClass: a claim that names no class gets the one that is marked as the default. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

static int mutate(struct request *q, struct err *err)
{
	(void)err;
	if (!admits(q, STR(""), STR("persistentvolumeclaims")) || q->current || !val_exists(q->object))
		return 0;
	struct val annotations = val_get(q->object, metadata, annotations);
	if (val_has(q->object, spec, storageClassName) ||
	    val_exists(val_find(annotations, STR("volume.beta.kubernetes.io/storage-class"))))
		return 0;
	struct object *class = admission_default_of(q, STR("storage.k8s.io"), STR("storageclasses"),
						    STR("storageclass.kubernetes.io/is-default-class"));
	if (class) {
		struct val name = val_copy(q->arena, val_get(class->val, metadata, name));
		q->object = val_with(q->arena, q->object, name, spec, storageClassName);
	}
	return 0;
}

const struct admission_plugin admission_default_storage_class = { .name = "DefaultStorageClass", .mutate = mutate };
