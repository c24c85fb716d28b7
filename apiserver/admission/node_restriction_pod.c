/*
 * NodeRestriction of pods: a node makes only mirrors of pods that it runs by itself, which name nothing that it could then
 * read, and removes, evicts and reports about only those that are bound to it.
 */
#include "apiserver/admission/node_restriction.h"
#include "apiserver/authz/node_graph.h"
#include "base/buf.h"
#include "codec/atoms.h"

enum { QUOTED_MAX = 4096 };

/* ---- what a pod refers to ---- */

struct named {
	bool secrets, config_maps;
};

static void note(enum node_reach what, str name, void *arg)
{
	(void)name;
	struct named *n = arg;
	n->secrets = n->secrets || what == REACH_SECRET;
	n->config_maps = n->config_maps || what == REACH_CONFIG_MAP;
}

/* Volumes, in the order in which they are looked for; text NULL: it needs nothing of the API. */
static const struct {
	atom source;
	const char *text;
} volume_sources[] = {
	{ A_awsElasticBlockStore, NULL }, { A_azureDisk, NULL }, { A_cephfs, NULL }, { A_cinder, NULL }, { A_downwardAPI, NULL },
	{ A_emptyDir, NULL }, { A_fc, NULL }, { A_flexVolume, NULL }, { A_flocker, NULL }, { A_gcePersistentDisk, NULL },
	{ A_gitRepo, NULL }, { A_hostPath, NULL }, { A_image, NULL }, { A_iscsi, NULL }, { A_nfs, NULL },
	{ A_photonPersistentDisk, NULL }, { A_portworxVolume, NULL }, { A_quobyte, NULL }, { A_rbd, NULL }, { A_scaleIO, NULL },
	{ A_storageos, NULL }, { A_vsphereVolume, NULL },
	{ A_configMap, "configmaps (via configmap volumes)" }, { A_secret, "secrets (via secret volumes)" },
	{ A_csi, "csidrivers (via CSI volumes)" }, { A_glusterfs, "endpoints (via glusterFS volumes)" },
	{ A_persistentVolumeClaim, "persistentvolumeclaims" },
	{ A_ephemeral, "persistentvolumeclaims (via ephemeral volumes)" }, { A_azureFile, "secrets (via azureFile volumes)" },
}, projected_sources[] = {
	{ A_configMap, "configmaps (via projected volumes)" }, { A_secret, "secrets (via projected volumes)" },
	{ A_serviceAccountToken, "serviceaccounts (via projected volumes)" },
	{ A_clusterTrustBundle, "clustertrustbundles" }, { A_podCertificate, "podcertificates" }, { A_downwardAPI, NULL },
};

static int unknown_source(const char *what, struct val volume, struct err *err)
{
	CLEANUP(buf_done) struct buf name = BUF_INIT(QUOTED_MAX);

	buf_add_quoted(&name, val_str(volume, name));
	return err_set(err, ERR_INVALID, "unknown %s " STR_FMT, what, STR_ARG(buf_str(&name)));
}

static int projected_reference(struct val volume, const char **ret, struct err *err)
{
	VAL_EACH(source, val_get(volume, projected, sources)) {
		size_t i = 0;
		while (i < ARRAY_LEN(projected_sources) && !val_exists(val_member(*source, projected_sources[i].source)))
			i++;
		if (i == ARRAY_LEN(projected_sources))
			return unknown_source("source for projected volume", volume, err);
		if ((*ret = projected_sources[i].text))
			return 0;
	}
	return 0;
}

static int volume_reference(struct val volume, const char **ret, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(volume_sources); i++)
		if (val_exists(val_member(volume, volume_sources[i].source))) {
			*ret = volume_sources[i].text;
			return 0;
		}
	return val_has(volume, projected) ? projected_reference(volume, ret, err) : unknown_source("volume type for volume ", volume, err);
}

int pod_api_reference(struct arena *a, struct val pod, const char **ret, struct err *err)
{
	struct named named = { 0 };
	int r = 0;

	pod_references(a, pod, note, &named);
	*ret = val_str(pod, spec, serviceAccountName).n	       ? "serviceaccounts"
	       : named.secrets				       ? "secrets"
	       : named.config_maps			       ? "configmaps"
	       : val_len(val_get(pod, spec, resourceClaims)) ? "resourceclaims"
							       : NULL;
	VAL_EACH(volume, val_get(pod, spec, volumes))
		if (r == 0 && !*ret)
			r = volume_reference(*volume, ret, err);
	return r;
}

static int check_references(struct request *q, str node)
{
	struct err why = ERR_INIT;
	const char *what;

	if (pod_api_reference(q->arena, q->object, &what, &why) < 0)
		return admission_forbid(q, "error checking mirror pod for API references: %s", why.msg);
	return what ? admission_forbid(q, "node " STR_FMT " can not create pods that reference %s", STR_ARG(admission_quoted(q, node)), what) :
		      0;
}

/* ---- new pods ---- */

static int may_only(struct request *q, str node, const char *what)
{
	return admission_forbid(q, "node " STR_FMT " can only %s", STR_ARG(admission_quoted(q, node)), what);
}

static int check_owner(struct request *q, str node, struct err *err)
{
	struct val owners = val_get(q->object, metadata, ownerReferences), owner = val_at(owners, 0);
	if (val_len(owners) > 1)
		return may_only(q, node, "create pods with a single owner reference set to itself");
	if (!val_len(owners) || !str_eq(val_str(owner, apiVersion), STR("v1")) || !str_eq(val_str(owner, kind), STR("Node")) ||
	    !str_eq(val_str(owner, name), node))
		return may_only(q, node, "create pods with an owner reference set to itself");
	if (!val_bool(owner, controller))
		return may_only(q, node, "create pods with a controller owner reference set to itself");
	if (val_bool(owner, blockOwnerDeletion))
		return admission_forbid(q, "node " STR_FMT " must not set blockOwnerDeletion on an owner reference",
					STR_ARG(admission_quoted(q, node)));
	struct object *o;
	int r = admission_find(q, STR_NONE, STR("nodes"), node, &o, err);
	if (r < 0)
		return r;
	if (!o)
		return fail_not_found(q, STR_NONE, STR("node"), node);
	str wanted = val_str(owner, uid), has = val_str(o->val, metadata, uid);
	return str_eq(wanted, has) ? 0 :
				     admission_forbid(q, "node " STR_FMT " UID mismatch: expected " STR_FMT " got " STR_FMT,
						      STR_ARG(node), STR_ARG(wanted), STR_ARG(has));
}

static int restrict_new(struct request *q, str node, struct err *err)
{
	if (!pod_is_mirror(q->object))
		return admission_forbid(q, "pod does not have \"kubernetes.io/config.mirror\" annotation, node " STR_FMT
					   " can only create mirror pods",
					STR_ARG(admission_quoted(q, node)));
	if (!str_eq(val_str(q->object, spec, nodeName), node))
		return may_only(q, node, "create pods with spec.nodeName set to itself");
	int r = check_owner(q, node, err);
	return r < 0 ? r : check_references(q, node);
}

/* ---- existing pods ---- */

int node_restrict_pod_status(struct request *q, str node)
{
	struct val was = q->old, is = q->object;
	if (admission_operation(q) != ADMISSION_UPDATE)
		return admission_forbid(q, "unexpected operation \"%s\"", node_operation_text(q));
	if (!str_eq(val_str(was, spec, nodeName), node))
		return may_only(q, node, "update pod status for pods with spec.nodeName set to itself");
	const char *what = NULL;
	if (!node_same(val_get(was, metadata, labels), val_get(is, metadata, labels)))
		what = "labels through pod status";
	else if (!node_same(val_get(was, status, resourceClaimStatuses), val_get(is, status, resourceClaimStatuses)))
		what = "resource claim statues";
	else if (!val_equal(val_get(was, status, extendedResourceClaimStatus), val_get(is, status, extendedResourceClaimStatus)))
		what = "extended resource claim status";
	return what ? admission_forbid(q, "node " STR_FMT " cannot update %s", STR_ARG(admission_quoted(q, node)), what) : 0;
}

static int restrict_eviction(struct request *q, str node, struct err *err)
{
	if (admission_operation(q) != ADMISSION_CREATE)
		return admission_forbid(q, "unexpected operation %s", node_operation_text(q));
	struct object *pod;
	str key = arena_printf(q->arena, STR_FMT "/" STR_FMT, STR_ARG(q->namespace), STR_ARG(q->name));
	int r = admission_find(q, STR_NONE, STR("pods"), key, &pod, err);
	if (r < 0)
		return r;
	if (!pod)
		return fail_not_found(q, STR_NONE, STR("pod"), q->name);
	if (!str_eq(val_str(pod->val, spec, nodeName), node))
		return admission_forbid(q, "node " STR_FMT " can only evict pods with spec.nodeName set to itself", STR_ARG(node));
	return 0;
}

int node_restrict_pod(struct request *q, str node, struct err *err)
{
	if (str_eq(q->subresource, STR("status")))
		return node_restrict_pod_status(q, node);
	if (str_eq(q->subresource, STR("eviction")))
		return restrict_eviction(q, node, err);
	if (q->subresource.n)
		return admission_forbid(q, "unexpected pod subresource " STR_FMT ", only 'status' and 'eviction' are allowed",
					STR_ARG(admission_quoted(q, q->subresource)));
	switch (admission_operation(q)) {
	case ADMISSION_CREATE:
		return restrict_new(q, node, err);
	case ADMISSION_DELETE:
		return str_eq(val_str(q->old, spec, nodeName), node) ?
			       0 :
			       may_only(q, node, "delete pods with spec.nodeName set to itself");
	default:
		return admission_forbid(q, "unexpected operation \"%s\", node " STR_FMT " can only create and delete mirror pods",
					node_operation_text(q), STR_ARG(admission_quoted(q, node)));
	}
}
