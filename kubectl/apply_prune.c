/* kubectl apply --prune: what was applied once, and is not in the files any more, is deleted. */
#include <stdio.h>

#include "kubectl/apply.h"
#include "kubectl/delete.h"
#include "machinery/patch.h"

static const struct { const char *api_version, *kind; } usual[] = {
	{ "v1", "ConfigMap" }, { "v1", "Endpoints" }, { "v1", "PersistentVolumeClaim" }, { "v1", "Pod" }, { "v1", "ReplicationController" },
	{ "v1", "Secret" }, { "v1", "Service" }, { "batch/v1", "Job" }, { "batch/v1", "CronJob" }, { "networking.k8s.io/v1", "Ingress" },
	{ "apps/v1", "DaemonSet" }, { "apps/v1", "Deployment" }, { "apps/v1", "ReplicaSet" }, { "apps/v1", "StatefulSet" }, { "v1", "Namespace" },
	{ "v1", "PersistentVolume" },
};

static int add_kind(struct ktl_apply_job *j, str api_version, str kind)
{
	struct ktl *k = j->k;
	if (ktl_kind_of(k, api_version, kind, &j->prune[j->n_prune]) < 0)
		return -1;
	if (!j->prune[j->n_prune])
		return ktl_fail(k, "no matches for kind " STR_FMT " in version " STR_FMT, STR_ARG(ktl_quote(k, kind)), STR_ARG(ktl_quote(k, api_version)));
	j->n_prune++;
	return 0;
}

int ktl_apply_prune_kinds(struct ktl_apply_job *j)
{
	const struct ktl_texts *given = &j->o->prune_allowlist;
	struct ktl *k = j->k;
	j->prune = ARENA_ARRAY(&k->arena, const struct ktl_kind *, MAX(given->n, ARRAY_LEN(usual)));
	for (size_t i = 0; i < given->n; i++) {
		str group, version, kind, rest;
		if (!str_cut(str_of(given->v[i]), '/', &group, &rest) || !str_cut(rest, '/', &version, &kind) || str_chr(kind, '/') >= 0)
			return ktl_fail(k, "invalid GroupVersionKind format: %s, please follow <group/version/kind>", given->v[i]);
		bool core = !group.n || str_eq(group, STR("core"));
		if (add_kind(j, core ? version : arena_printf(&k->arena, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)), kind) < 0)
			return -1;
	}
	if (given->n)
		return 0;
	fprintf(stderr, "Warning: Deprecated: kubectl apply will no longer prune non-namespaced resources by default when used with the --namespace flag in a future release. To preserve the current behaviour, list the resources you want to target explicitly in the --prune-allowlist flag.\n");
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		if (add_kind(j, str_of(usual[i].api_version), str_of(usual[i].kind)) < 0)
			return -1;
	return 0;
}

static int prune_one(struct ktl_apply_job *j, const struct ktl_delete *d, const struct ktl_info *info, struct val visited)
{
	if (!last_applied_get(info->object).n)
		return 0;
	VAL_EACH(uid, visited)
		if (val_equal(*uid, val_get(info->object, metadata, uid)))
			return 0;
	if (ktl_delete_object(j->k, d, info, NULL) < 0)
		return -1;
	return ktl_print_done(j->k, &j->p, info->kind, info->object, "pruned");
}

static int prune_kind(struct ktl_apply_job *j, const struct ktl_delete *d, const struct ktl_kind *kind, str namespace, struct val visited)
{
	struct ktl *k = j->k;
	struct val list;
	int r = ktl_list(k, kind, namespace, str_of(j->o->selector), STR_NONE, &list);
	VAL_EACH(item, r < 0 ? VAL_EMPTY : list) {
		struct ktl_info info = { .kind = kind, .namespace = namespace, .name = val_str(*item, metadata, name), .object = *item };
		if ((r = prune_one(j, d, &info, visited)) < 0)
			break;
	}
	if (r < 0)
		return ktl_fail_plainly(k, arena_printf(&k->arena, "error pruning %s object " STR_FMT ", Kind=" STR_FMT ": ",
							kind->namespaced ? "namespaced" : "nonNamespaced", STR_ARG(ktl_kind_group_version(k, kind)),
							STR_ARG(kind->kind)).p);
	return 0;
}

static struct val add_text(struct ktl *k, struct val list, str text)
{
	VAL_EACH(old, list)
		if (str_eq(val_as_str(*old), text))
			return list;
	return text.n ? val_list_append(&k->arena, list, VAL_STR(text)) : list;
}

int ktl_apply_prune(struct ktl_apply_job *j, const struct ktl_infos *infos, str namespace)
{
	struct ktl_delete d = { .grace_s = j->o->grace_s, .dry = j->w.dry, .quiet = true };
	struct val visited = val_end_list(&j->visited), namespaces = add_text(j->k, VAL_EMPTY_LIST, namespace);
	if (ktl_cascade_of(j->k, j->o->cascade, &d.cascade) < 0)
		return -1;
	for (size_t i = 0; i < infos->n; i++)
		namespaces = add_text(j->k, namespaces, infos->v[i].namespace);
	VAL_EACH(n, namespaces)
		for (size_t i = 0; i < j->n_prune; i++)
			if (j->prune[i]->namespaced && prune_kind(j, &d, j->prune[i], val_as_str(*n), visited) < 0)
				return -1;
	for (size_t i = 0; i < j->n_prune; i++)
		if (!j->prune[i]->namespaced && prune_kind(j, &d, j->prune[i], STR_NONE, visited) < 0)
			return -1;
	return 0;
}
