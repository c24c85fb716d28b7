/* Volumes and what belongs to them; nodes, secrets, accounts and quotas. */
#include "apiserver/warnings_priv.h"

#include "base/encoding.h"
#include "machinery/resources.h"

/* ---- volumes ---- */

#define OLD_CLASS "deprecated since v1.8; use \"storageClassName\" attribute instead"

static void warn_volume_annotations(struct request *q)
{
	static const struct {
		str key, why;
	} old[] = {
		{ STR_INIT("volume.beta.kubernetes.io/storage-class"), STR_INIT(OLD_CLASS) },
		{ STR_INIT("volume.beta.kubernetes.io/mount-options"),
		  STR_INIT("deprecated since v1.31; use \"mountOptions\" attribute instead") },
	};
	const struct field_path *at = FIELD(FIELD(NULL, "metadata"), "annotations");
	for (size_t i = 0; i < ARRAY_LEN(old); i++)
		if (warn_has_annotation(val_get(q->object, metadata), old[i].key))
			warn_at(q, FIELD_KEY(at, old[i].key), STR_FMT, STR_ARG(old[i].why));
}

static void warn_volume(struct request *q)
{
	static const struct {
		atom field;
		str name, why;
	} old[] = {
		{ A_cephfs, STR_INIT("cephfs"), STR_INIT("deprecated in v1.28, non-functional in v1.31+") },
		{ A_photonPersistentDisk, STR_INIT("photonPersistentDisk"),
		  STR_INIT("deprecated in v1.11, non-functional in v1.16+") },
		{ A_scaleIO, STR_INIT("scaleIO"), STR_INIT("deprecated in v1.16, non-functional in v1.22+") },
		{ A_storageos, STR_INIT("storageOS"), STR_INIT("deprecated in v1.22, non-functional in v1.25+") },
		{ A_glusterfs, STR_INIT("glusterfs"), STR_INIT("deprecated in v1.25, non-functional in v1.26+") },
		{ A_rbd, STR_INIT("rbd"), STR_INIT("deprecated in v1.28, non-functional in v1.31+") },
	};
	const struct field_path *at = FIELD(NULL, "spec");
	struct val spec = val_get(q->object, spec);
	size_t i = 0;

	warn_volume_annotations(q);
	if (str_eq(val_str(spec, persistentVolumeReclaimPolicy), STR("Recycle")))
		warn_at(q, FIELD(at, "persistentVolumeReclaimPolicy"),
			"The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.");
	VAL_EACH(t, val_get(spec, nodeAffinity, required, nodeSelectorTerms))
		warn_node_term(q, FIELD_INDEX(FIELD(FIELD(FIELD(at, "nodeAffinity"), "required"), "nodeSelectorTerms"),
					      i++), *t, false);
	for (size_t k = 0; k < ARRAY_LEN(old); k++)
		if (val_exists(val_member(spec, old[k].field)))
			warn_at(q, FIELD_STR(at, old[k].name), STR_FMT, STR_ARG(old[k].why));
}

void warn_claim_spec(struct request *q, const struct field_path *at, struct val spec)
{
	const struct field_path *resources = FIELD(at, "resources");
	warn_fraction(q, FIELD(resources, "requests"), val_get(spec, resources, requests), STR("storage"));
	warn_fraction(q, FIELD(resources, "limits"), val_get(spec, resources, limits), STR("storage"));
}

static void warn_claim(struct request *q)
{
	str old = STR("volume.beta.kubernetes.io/storage-class");
	if (warn_has_annotation(val_get(q->object, metadata), old))
		warn_at(q, FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), old), OLD_CLASS);
	warn_claim_spec(q, FIELD(NULL, "spec"), val_get(q->object, spec));
}

static void warn_storage_class(struct request *q)
{
	size_t i = 0;
	VAL_EACH(t, val_get(q->object, allowedTopologies)) {
		const struct field_path *at = FIELD(FIELD_INDEX(FIELD(NULL, "allowedTopologies"), i++),
						    "matchLabelExpressions");
		size_t k = 0;
		VAL_EACH(x, val_get(*t, matchLabelExpressions)) {
			str why = warn_node_label(val_str(*x, key));
			if (why.n)
				warn_at(q, FIELD(FIELD_INDEX(at, k), "key"), STR_FMT, STR_ARG(why));
			k++;
		}
	}
}

static void warn_storage_capacity(struct request *q)
{
	const struct field_path *at = FIELD(NULL, "nodeTopology");
	struct val selector = val_get(q->object, nodeTopology);
	warn_node_term(q, at, selector, false);
	VAL_EACH_MEMBER(m, val_get(selector, matchLabels)) {
		str why = warn_node_label(atom_str(m->key));
		if (why.n)
			warn_at(q, FIELD_STR(FIELD(at, "matchLabels"), atom_str(m->key)), STR_FMT, STR_ARG(why));
	}
}

static void warn_csi_driver(struct request *q)
{
	struct val tokens = val_get(q->object, spec, tokenRequests);
	bool changed = !val_exists(q->old) || !val_equal(tokens, val_get(q->old, spec, tokenRequests));
	if (changed && val_len(tokens) && !val_has(q->object, spec, serviceAccountTokenInSecrets))
		warnf(q, "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
			 "possible logging of tokens in volume attributes");
}

/* ---- nodes, secrets, accounts, quotas ---- */

static void warn_node(struct request *q)
{
	size_t i = 0;
	if (val_has(q->object, spec, configSource))
		warnf(q, "spec.configSource: the feature is removed");
	if (val_str(q->object, spec, externalID).n)
		warnf(q, "spec.externalID: this field is deprecated, and is unused by Kubernetes");
	VAL_EACH(c, val_get(q->object, spec, podCIDRs))
		warn_cidr(q, FIELD_INDEX(FIELD(FIELD(NULL, "spec"), "podCIDRs"), i++), val_as_str(*c));
}

static str decoded(struct request *q, str key)
{
	str text = val_as_str(val_find(val_get(q->object, data), key));
	char *bytes = arena_alloc(q->arena, base64_decoded_max(text.n) + 1, 1);
	size_t n;
	return base64_decode(bytes, text, &n, NULL) < 0 ? STR_NONE : str_span(bytes, n);
}

static void warn_secret(struct request *q)
{
	if (str_eq(val_str(q->object, type), STR("kubernetes.io/tls")))
		warn_key_pair(q, decoded(q, STR("tls.crt")), decoded(q, STR("tls.key")));
}

static void warn_account(struct request *q)
{
	str old = STR("kubernetes.io/enforce-mountable-secrets");
	if (!warn_has_annotation(val_get(q->old, metadata), old) && warn_has_annotation(val_get(q->object, metadata), old))
		warnf(q, "metadata.annotations[" STR_FMT
			 "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
		      STR_ARG(old));
}

static void quota_created(struct request *q)
{
	static const struct {
		str resource;
		bool bare; /* may stand without "requests." */
	} known[] = {
		{ STR_INIT("cpu"), true }, { STR_INIT("memory"), true }, { STR_INIT("storage"), false },
		{ STR_INIT("ephemeral-storage"), false },
	};
	struct val hard = val_get(q->object, spec, hard);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		str request_name = arena_join(q->arena, STR("requests."), known[i].resource);
		str limit_name = arena_join(q->arena, STR("limits."), known[i].resource);
		struct val request = val_find(hard, request_name), limit = val_find(hard, limit_name);
		if (!val_exists(request) && known[i].bare)
			request = val_find(hard, request_name = known[i].resource);
		if (!val_exists(request) || !val_exists(limit) || quantity_cmp(quantity_of(request), quantity_of(limit)) <= 0)
			continue;
		warnf(q, "ResourceQuota " STR_FMT " (" STR_FMT ") should be less than " STR_FMT " (" STR_FMT ")",
		      STR_ARG(request_name), STR_ARG(val_as_str(request)), STR_ARG(limit_name), STR_ARG(val_as_str(limit)));
	}
}

static const struct warned_kind all[] = {
	{ STR_INIT(""), STR_INIT("Node"), warn_node, warn_node, NULL },
	{ STR_INIT(""), STR_INIT("PersistentVolume"), warn_volume, warn_volume, NULL },
	{ STR_INIT(""), STR_INIT("PersistentVolumeClaim"), warn_claim, warn_claim, NULL },
	{ STR_INIT(""), STR_INIT("ResourceQuota"), quota_created, NULL, NULL },
	{ STR_INIT(""), STR_INIT("Secret"), warn_secret, warn_secret, NULL },
	{ STR_INIT(""), STR_INIT("ServiceAccount"), warn_account, warn_account, NULL },
	{ STR_INIT("storage.k8s.io"), STR_INIT("CSIDriver"), warn_csi_driver, warn_csi_driver, NULL },
	{ STR_INIT("storage.k8s.io"), STR_INIT("CSIStorageCapacity"), warn_storage_capacity, warn_storage_capacity, NULL },
	{ STR_INIT("storage.k8s.io"), STR_INIT("StorageClass"), warn_storage_class, warn_storage_class, NULL },
};

const struct warned_set warnings_storage = { all, ARRAY_LEN(all) };
