/* PersistentVolumeClaimResize: a claim may grow once it is bound, if its storage class can make volumes grow. */
#include "apiserver/admission/plugins.h"
#include "apiserver/cache.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "machinery/resources.h"

static struct quantity size_of(struct val claim)
{
	return quantity_of(val_find(val_get(claim, spec, resources, requests), STR("storage")));
}

static str class_of(struct val claim)
{
	struct val old_way = val_find(val_get(claim, metadata, annotations), STR("volume.beta.kubernetes.io/storage-class"));
	return val_exists(old_way) ? val_as_str(old_way) : val_str(claim, spec, storageClassName);
}

static bool may_grow(const struct request *q)
{
	str class = class_of(q->object);
	if (!class.n || !str_eq(class, class_of(q->old)))
		return false;
	struct object *o = cache_get(kinds_find(&q->server->kinds, STR("storage.k8s.io"), STR("storageclasses")), class);
	return o && val_bool(o->val, allowVolumeExpansion);
}

static int validate(struct request *q, struct err *err)
{
	(void)err;
	if (!admits(q, STR(""), STR("persistentvolumeclaims")) || admission_operation(q) != ADMISSION_UPDATE ||
	    quantity_cmp(size_of(q->object), size_of(q->old)) <= 0)
		return 0;
	if (!str_eq(val_str(q->old, status, phase), STR("Bound")))
		return admission_forbid(q, "Only bound persistent volume claims can be expanded");
	if (!may_grow(q))
		return admission_forbid(q, "only dynamically provisioned pvc can be resized and the storageclass that provisions the "
					   "pvc must support resize");
	return 0;
}

const struct admission_plugin admission_pvc_resize = { .name = "PersistentVolumeClaimResize", .validate = validate };
