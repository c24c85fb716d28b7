/* StorageObjectInUseProtection: volumes and claims stay as long as somebody uses them. */
#include "apiserver/admission/plugins.h"
#include "apiserver/meta.h"
#include "codec/atoms.h"

static str finalizer_for(const struct request *q)
{
	if (admits(q, STR(""), STR("persistentvolumes")))
		return STR("kubernetes.io/pv-protection");
	if (admits(q, STR(""), STR("persistentvolumeclaims")))
		return STR("kubernetes.io/pvc-protection");
	if (admits(q, STR("storage.k8s.io"), STR("volumeattributesclasses")))
		return STR("kubernetes.io/vac-protection");
	return STR_NONE;
}

static int mutate(struct request *q, struct err *err)
{
	(void)err;
	str finalizer = finalizer_for(q);
	if (!finalizer.n || q->current || !val_exists(q->object))
		return 0;
	struct val finalizers = val_get(q->object, metadata, finalizers);
	VAL_EACH(f, finalizers)
		if (str_eq(val_as_str(*f), finalizer))
			return 0;
	q->object = meta_put(q->arena, q->object, A_finalizers, val_list_append(q->arena, finalizers, val_of_str(finalizer)));
	return 0;
}

const struct admission_plugin admission_storage_protection = { .name = "StorageObjectInUseProtection", .mutate = mutate };
