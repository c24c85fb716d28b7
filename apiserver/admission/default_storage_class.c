/* DefaultStorageClass: a claim that names no class gets the one that is marked as the default. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

#define GROUP "storage.k8s.io"
#define MARK "storageclass.kubernetes.io/is-default-class"
#define OLD_MARK "storageclass.beta.kubernetes.io/is-default-class"

/* Of those with the one mark and those with the other: the newest, then the first by name. */
static struct object *default_class(struct request *q)
{
	struct object *a = admission_default_of(q, STR(GROUP), STR("storageclasses"), STR(MARK));
	struct object *b = admission_default_of(q, STR(GROUP), STR("storageclasses"), STR(OLD_MARK));
	if (!a || !b)
		return a ? a : b;
	int newer = str_cmp(val_str(a->val, metadata, creationTimestamp), val_str(b->val, metadata, creationTimestamp));
	return newer > 0 || (newer == 0 && str_cmp(a->key, b->key) < 0) ? a : b;
}

static int mutate(struct request *q, struct err *err)
{
	(void)err;
	if (!admits(q, STR(""), STR("persistentvolumeclaims")) || q->current || !val_exists(q->object))
		return 0;
	struct val annotations = val_get(q->object, metadata, annotations);
	if (val_has(q->object, spec, storageClassName) ||
	    val_exists(val_find(annotations, STR("volume.beta.kubernetes.io/storage-class"))))
		return 0;
	struct object *class = default_class(q);
	if (class) {
		struct val name = val_copy(q->arena, val_get(class->val, metadata, name));
		q->object = val_with(q->arena, q->object, name, spec, storageClassName);
	}
	return 0;
}

const struct admission_plugin admission_default_storage_class = { .name = "DefaultStorageClass", .mutate = mutate };
