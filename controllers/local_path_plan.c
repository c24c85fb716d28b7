#include "controllers/local_path_plan.h"

#include <limits.h>

#include "codec/atoms.h"
#include "controllers/labels.h"
#include "controllers/protection.h"
#include "controllers/pv_binder_plan.h"

#define HOSTNAME "kubernetes.io/hostname"

/* ---- making ---- */

struct val local_path_class(struct arena *a, bool is_default)
{
	struct val annotations = labels_put(a, VAL_EMPTY_OBJECT, STR("storageclass.kubernetes.io/is-default-class"), VAL_LIT("true"));

	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT(LOCAL_PATH_CLASS)), F(annotations, is_default ? annotations : VAL_EMPTY))),
		      F(provisioner, VAL_LIT(LOCAL_PATH_PROVISIONER)), F(reclaimPolicy, VAL_LIT("Delete")),
		      F(volumeBindingMode, VAL_LIT("WaitForFirstConsumer")));
}

bool local_path_wants(struct val claim)
{
	return str_eq(annotation_of(claim, STR(PVC_PROVISIONER)), STR(LOCAL_PATH_PROVISIONER)) && !val_str(claim, spec, volumeName).n &&
	       !val_has(claim, metadata, deletionTimestamp);
}

static const char *misfit(struct val claim, struct val node)
{
	if (!val_exists(node))
		return "no node was chosen: the class must have volumeBindingMode WaitForFirstConsumer";
	if (val_has(claim, spec, selector))
		return "claim.Spec.Selector is not supported";
	if (str_eq(val_str(claim, spec, volumeMode), STR("Block")))
		return "local-path volumes are folders: volumeMode Block is not supported";
	VAL_EACH(m, val_get(claim, spec, accessModes))
		if (!str_eq(val_as_str(*m), STR("ReadWriteOnce")) && !str_eq(val_as_str(*m), STR("ReadWriteOncePod")))
			return "local-path volumes only support the access modes ReadWriteOnce and ReadWriteOncePod";
	if (!label_of(node, STR(HOSTNAME)).n)
		return "the node has no label " HOSTNAME;
	return NULL;
}

static struct val on_node(struct arena *a, struct val node)
{
	struct val is_it = OBJECT(a, F(key, VAL_LIT(HOSTNAME)), F(operator, VAL_LIT("In")), F(values, LIST(a, VAL_STR(label_of(node, STR(HOSTNAME))))));
	return OBJECT(a, F(required, OBJECT(a, F(nodeSelectorTerms, LIST(a, OBJECT(a, F(matchExpressions, LIST(a, is_it))))))));
}

static struct val claim_reference(struct arena *a, struct val claim)
{
	return OBJECT(a, F(kind, VAL_LIT("PersistentVolumeClaim")), F(namespace, val_get(claim, metadata, namespace)),
		      F(name, val_get(claim, metadata, name)), F(uid, val_get(claim, metadata, uid)), F(apiVersion, VAL_LIT("v1")),
		      F(resourceVersion, val_get(claim, metadata, resourceVersion)));
}

/* The volume's name is unique; those of the claim are for the eye, and may be too long for a folder. */
static str folder_name(struct arena *a, str volume, struct val claim)
{
	str name = arena_printf(a, STR_FMT "_" STR_FMT "_" STR_FMT, STR_ARG(volume), STR_ARG(val_str(claim, metadata, namespace)),
				STR_ARG(val_str(claim, metadata, name)));
	return str_head(name, NAME_MAX);
}

struct val local_path_volume(struct arena *a, struct val claim, struct val class, struct val node, const char *root, str *ret_why)
{
	const char *why = misfit(claim, node);
	str name = arena_printf(a, "pvc-" STR_FMT, STR_ARG(val_str(claim, metadata, uid)));
	struct val policy = val_get(class, reclaimPolicy);

	if (why) {
		*ret_why = str_of(why);
		return VAL_EMPTY;
	}
	struct val annotations = labels_put(a, VAL_EMPTY_OBJECT, STR(PV_PROVISIONED_BY), VAL_LIT(LOCAL_PATH_PROVISIONER));
	struct val path = VAL_STR(arena_printf(a, "%s/" STR_FMT, root, STR_ARG(folder_name(a, name, claim))));
	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(name)), F(annotations, annotations), F(finalizers, LIST(a, VAL_LIT(LOCAL_PATH_FINALIZER))))),
		      F(spec, OBJECT(a, F(capacity, OBJECT(a, F(storage, val_get(claim, spec, resources, requests, storage)))),
				     F(hostPath, OBJECT(a, F(path, path), F(type, VAL_LIT("DirectoryOrCreate")))),
				     F(accessModes, val_get(claim, spec, accessModes)), F(claimRef, claim_reference(a, claim)),
				     F(persistentVolumeReclaimPolicy, val_exists(policy) ? policy : VAL_LIT("Delete")),
				     F(storageClassName, VAL_STR(storage_class_of(claim))), F(volumeMode, VAL_LIT("Filesystem")),
				     F(nodeAffinity, on_node(a, node)))));
}

/* ---- removing ---- */

enum local_path_step local_path_step(struct val volume)
{
	str phase = val_str(volume, status, phase);
	bool ours = str_eq(annotation_of(volume, STR(PV_PROVISIONED_BY)), STR(LOCAL_PATH_PROVISIONER));

	if (!ours)
		return LOCAL_PATH_REST;
	if (str_eq(phase, STR("Released")) && str_eq(val_str(volume, spec, persistentVolumeReclaimPolicy), STR("Delete")) && local_path_folder(volume).n)
		return LOCAL_PATH_REMOVE_FOLDER;
	if (val_has(volume, metadata, deletionTimestamp) && finalizers_have(volume, STR(LOCAL_PATH_FINALIZER)) && !str_eq(phase, STR("Bound")))
		return LOCAL_PATH_LET_GO;
	return LOCAL_PATH_REST;
}

str local_path_node(struct val volume)
{
	struct val term = val_at(val_get(volume, spec, nodeAffinity, required, nodeSelectorTerms), 0);
	struct val is_it = val_at(val_get(term, matchExpressions), 0);

	return str_eq(val_str(is_it, key), STR(HOSTNAME)) ? val_as_str(val_at(val_get(is_it, values), 0)) : STR_NONE;
}

str local_path_folder(struct val volume)
{
	str path = val_str(volume, spec, hostPath, path);
	ptrdiff_t slash = str_rchr(path, '/');
	str folder = slash < 0 ? STR_NONE : str_skip(path, (size_t)slash + 1);

	return str_starts(folder, STR("pvc-")) && str_chr(folder, ',') < 0 ? folder : STR_NONE;
}

bool folder_list_has(str list, str folder)
{
	str one;

	while (list.n) {
		(void)str_cut(list, ',', &one, &list);
		if (str_eq(one, folder))
			return true;
	}
	return false;
}

str folder_list_add(struct arena *a, str list, str folder)
{
	if (folder_list_has(list, folder))
		return list;
	return list.n ? arena_printf(a, STR_FMT "," STR_FMT, STR_ARG(list), STR_ARG(folder)) : folder;
}

str folder_list_remove(struct arena *a, str list, str folder)
{
	str kept = STR_NONE, one;

	while (list.n) {
		(void)str_cut(list, ',', &one, &list);
		if (one.n && !str_eq(one, folder))
			kept = folder_list_add(a, kept, one);
	}
	return kept;
}
