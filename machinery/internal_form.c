/*
 * Objects as Kubernetes' messages show them, and their equality.
 *
 * Validation there works on Go structs of its own that have no names for JSON, so encoding/json falls back to the
 * fields' Go names, leaves nothing out and writes null for what is nil. These structs follow the order of the published
 * types and their names mostly follow from the published ones; the tables below list what does not. Types of package
 * meta are the same in both worlds and look as usual.
 */
#include "base/buf.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "machinery/validate_priv.h"

/* Names whose Go form is not the published one with a capital letter. */
static const struct {
	uint16_t name;
	str go;
} go_names[] = {
	{ A_apiGroup, STR_INIT("APIGroup") },
	{ A_apiGroups, STR_INIT("APIGroups") },
	{ A_apiVersion, STR_INIT("APIVersion") },
	{ A_apiVersions, STR_INIT("APIVersions") },
	{ A_awsElasticBlockStore, STR_INIT("AWSElasticBlockStore") },
	{ A_bool, STR_INIT("BoolValue") },
	{ A_bools, STR_INIT("BoolValues") },
	{ A_caBundle, STR_INIT("CABundle") },
	{ A_cel, STR_INIT("CEL") },
	{ A_cephfs, STR_INIT("CephFS") },
	{ A_chapAuthDiscovery, STR_INIT("DiscoveryCHAPAuth") },
	{ A_chapAuthSession, STR_INIT("SessionCHAPAuth") },
	{ A_cidr, STR_INIT("CIDR") },
	{ A_cidrs, STR_INIT("CIDRs") },
	{ A_csi, STR_INIT("CSI") },
	{ A_diskURI, STR_INIT("DataDiskURI") },
	{ A_dnsConfig, STR_INIT("DNSConfig") },
	{ A_dnsPolicy, STR_INIT("DNSPolicy") },
	{ A_endpoints, STR_INIT("EndpointsName") },
	{ A_externalID, STR_INIT("DoNotUseExternalID") },
	{ A_fc, STR_INIT("FC") },
	{ A_fsGroup, STR_INIT("FSGroup") },
	{ A_fsGroupChangePolicy, STR_INIT("FSGroupChangePolicy") },
	{ A_fsGroupPolicy, STR_INIT("FSGroupPolicy") },
	{ A_fsType, STR_INIT("FSType") },
	{ A_gcePersistentDisk, STR_INIT("GCEPersistentDisk") },
	{ A_gid, STR_INIT("GID") },
	{ A_gmsaCredentialSpec, STR_INIT("GMSACredentialSpec") },
	{ A_gmsaCredentialSpecName, STR_INIT("GMSACredentialSpecName") },
	{ A_grpc, STR_INIT("GRPC") },
	{ A_http, STR_INIT("HTTP") },
	{ A_httpGet, STR_INIT("HTTPGet") },
	{ A_httpHeaders, STR_INIT("HTTPHeaders") },
	{ A_int, STR_INIT("IntValue") },
	{ A_ints, STR_INIT("IntValues") },
	{ A_ip, STR_INIT("IP") },
	{ A_ipBlock, STR_INIT("IPBlock") },
	{ A_ipFamilies, STR_INIT("IPFamilies") },
	{ A_ipFamilyPolicy, STR_INIT("IPFamilyPolicy") },
	{ A_ipMode, STR_INIT("IPMode") },
	{ A_ips, STR_INIT("IPs") },
	{ A_iqn, STR_INIT("IQN") },
	{ A_iscsi, STR_INIT("ISCSI") },
	{ A_iscsiInterface, STR_INIT("ISCSIInterface") },
	{ A_jsonPatch, STR_INIT("JSONPatch") },
	{ A_lastState, STR_INIT("LastTerminationState") },
	{ A_nfs, STR_INIT("NFS") },
	{ A_os, STR_INIT("OS") },
	{ A_osImage, STR_INIT("OSImage") },
	{ A_pdName, STR_INIT("PDName") },
	{ A_qosClass, STR_INIT("QOSClass") },
	{ A_rbd, STR_INIT("RBD") },
	{ A_seLinuxChangePolicy, STR_INIT("SELinuxChangePolicy") },
	{ A_seLinuxMount, STR_INIT("SELinuxMount") },
	{ A_seLinuxOptions, STR_INIT("SELinuxOptions") },
	{ A_sslEnabled, STR_INIT("SSLEnabled") },
	{ A_storageos, STR_INIT("StorageOS") },
	{ A_string, STR_INIT("StringValue") },
	{ A_strings, STR_INIT("StringValues") },
	{ A_tcpSocket, STR_INIT("TCPSocket") },
	{ A_tls, STR_INIT("TLS") },
	{ A_ttlSecondsAfterFinished, STR_INIT("TTLSecondsAfterFinished") },
	{ A_tty, STR_INIT("TTY") },
	{ A_uid, STR_INIT("UID") },
	{ A_url, STR_INIT("URL") },
	{ A_versions, STR_INIT("VersionValues") },
	{ A_wwids, STR_INIT("WWIDs") },
};

/* Names that are like that in one kind of type only. */
static const struct {
	str type;
	uint16_t name;
	str go;
} go_names_of[] = {
	{ STR_INIT("DeviceAttribute"), A_version, STR_INIT("VersionValue") },
	{ STR_INIT("RBDPersistentVolumeSource"), A_image, STR_INIT("RBDImage") },
	{ STR_INIT("RBDPersistentVolumeSource"), A_monitors, STR_INIT("CephMonitors") },
	{ STR_INIT("RBDPersistentVolumeSource"), A_pool, STR_INIT("RBDPool") },
	{ STR_INIT("RBDPersistentVolumeSource"), A_user, STR_INIT("RadosUser") },
	{ STR_INIT("RBDVolumeSource"), A_image, STR_INIT("RBDImage") },
	{ STR_INIT("RBDVolumeSource"), A_monitors, STR_INIT("CephMonitors") },
	{ STR_INIT("RBDVolumeSource"), A_pool, STR_INIT("RBDPool") },
	{ STR_INIT("RBDVolumeSource"), A_user, STR_INIT("RadosUser") },
};

/* Types with another order, or without some fields. */
static const struct layout {
	const struct type *type;
	const uint16_t *fields; /* ended by 0 */
} layouts[] = {
#define FIELDS(...) (const uint16_t[]){ __VA_ARGS__, 0 }
	{ TYPE(core_v1, PodSpec),
	  FIELDS(A_volumes, A_initContainers, A_containers, A_ephemeralContainers, A_restartPolicy,
		 A_terminationGracePeriodSeconds, A_activeDeadlineSeconds, A_dnsPolicy, A_nodeSelector,
		 A_serviceAccountName, A_automountServiceAccountToken, A_nodeName, A_securityContext, A_imagePullSecrets,
		 A_hostname, A_subdomain, A_setHostnameAsFQDN, A_affinity, A_schedulerName, A_tolerations, A_hostAliases,
		 A_priorityClassName, A_priority, A_preemptionPolicy, A_dnsConfig, A_readinessGates, A_runtimeClassName,
		 A_overhead, A_enableServiceLinks, A_topologySpreadConstraints, A_os, A_schedulingGates, A_resourceClaims,
		 A_resources, A_hostnameOverride, A_schedulingGroup) },
	{ TYPE(core_v1, PodSecurityContext),
	  FIELDS(A_hostNetwork, A_hostPID, A_hostIPC, A_shareProcessNamespace, A_hostUsers, A_seLinuxOptions,
		 A_windowsOptions, A_runAsUser, A_runAsGroup, A_runAsNonRoot, A_supplementalGroups,
		 A_supplementalGroupsPolicy, A_fsGroup, A_fsGroupChangePolicy, A_sysctls, A_seccompProfile,
		 A_appArmorProfile, A_seLinuxChangePolicy) },
	{ TYPE(core_v1, Volume),
	  FIELDS(A_name, A_hostPath, A_emptyDir, A_gcePersistentDisk, A_awsElasticBlockStore, A_gitRepo, A_secret, A_nfs,
		 A_iscsi, A_glusterfs, A_persistentVolumeClaim, A_rbd, A_quobyte, A_flexVolume, A_cinder, A_cephfs,
		 A_flocker, A_downwardAPI, A_fc, A_azureFile, A_configMap, A_vsphereVolume, A_azureDisk,
		 A_photonPersistentDisk, A_projected, A_portworxVolume, A_scaleIO, A_storageos, A_csi, A_ephemeral,
		 A_image) },
	{ TYPE(core_v1, PersistentVolumeSpec),
	  FIELDS(A_capacity, A_gcePersistentDisk, A_awsElasticBlockStore, A_hostPath, A_glusterfs, A_nfs, A_rbd,
		 A_quobyte, A_iscsi, A_flexVolume, A_cinder, A_cephfs, A_fc, A_flocker, A_azureFile, A_vsphereVolume,
		 A_azureDisk, A_photonPersistentDisk, A_portworxVolume, A_scaleIO, A_local, A_storageos, A_csi,
		 A_accessModes, A_claimRef, A_persistentVolumeReclaimPolicy, A_storageClassName, A_mountOptions,
		 A_volumeMode, A_nodeAffinity, A_volumeAttributesClassName) },
	{ TYPE(core_v1, ServiceSpec),
	  FIELDS(A_type, A_ports, A_selector, A_clusterIP, A_clusterIPs, A_ipFamilies, A_ipFamilyPolicy, A_externalName,
		 A_externalIPs, A_loadBalancerIP, A_sessionAffinity, A_sessionAffinityConfig, A_loadBalancerSourceRanges,
		 A_externalTrafficPolicy, A_healthCheckNodePort, A_publishNotReadyAddresses,
		 A_allocateLoadBalancerNodePorts, A_loadBalancerClass, A_internalTrafficPolicy, A_trafficDistribution) },
	{ TYPE(core_v1, NodeSpec), FIELDS(A_podCIDRs, A_providerID, A_unschedulable, A_taints, A_configSource,
					  A_externalID) },
	{ TYPE(batch_v1, JobSpec),
	  FIELDS(A_parallelism, A_completions, A_podFailurePolicy, A_successPolicy, A_activeDeadlineSeconds,
		 A_backoffLimit, A_backoffLimitPerIndex, A_maxFailedIndexes, A_selector, A_manualSelector, A_template,
		 A_ttlSecondsAfterFinished, A_completionMode, A_suspend, A_podReplacementPolicy, A_managedBy) },
#undef FIELDS
};

static str go_name(struct arena *a, const struct type *t, atom name)
{
	for (size_t i = 0; i < ARRAY_LEN(go_names_of); i++)
		if (go_names_of[i].name == name && str_eq(go_names_of[i].type, t->name))
			return go_names_of[i].go;
	for (size_t i = 0; i < ARRAY_LEN(go_names); i++)
		if (go_names[i].name == name)
			return go_names[i].go;
	str json = atom_str(name);
	return arena_printf(a, "%c" STR_FMT, json.p[0] >= 'a' && json.p[0] <= 'z' ? json.p[0] - 32 : json.p[0],
			    STR_ARG(str_skip(json, 1)));
}

static bool is_published(const struct type *t) { return str_starts(t->package->name, STR("meta/")); }

/* ---- making the form ---- */

struct former {
	struct arena *arena;
	bool published; /* as clients see it, for all types */
	unsigned depth;
};

static struct val form_object(struct former *f, const struct type *t, struct val v);

/* What a Go struct has for a field that is not set. */
static struct val zero_of(struct former *f, const struct field *field)
{
	if (field->shape != SHAPE_ONE || (field->flags & FIELD_POINTER))
		return VAL_NULL_VALUE;
	switch ((enum field_kind)field->kind) {
	case KIND_STRING:
	case KIND_DURATION: return VAL_LIT("");
	case KIND_QUANTITY: return VAL_LIT("0");
	case KIND_BOOL: return val_of_bool(false);
	case KIND_INT32:
	case KIND_INT64:
	case KIND_UINT32:
	case KIND_UINT64:
	case KIND_DOUBLE:
	case KIND_FLOAT:
	case KIND_INT_OR_STRING: return val_of_int(0);
	case KIND_MESSAGE: return form_object(f, field->type, VAL_EMPTY);
	default: return VAL_NULL_VALUE;
	}
}

static struct val form_one(struct former *f, const struct field *field, struct val v)
{
	return field->kind == KIND_MESSAGE && !val_is_nil(v) ? form_object(f, field->type, v) : v;
}

static struct val form_field(struct former *f, const struct field *field, struct val v)
{
	struct val_builder b = val_builder(f->arena);

	if (val_is_nil(v))
		return zero_of(f, field);
	if (field->kind != KIND_MESSAGE || field->shape == SHAPE_ONE)
		return form_one(f, field, v);
	if (field->shape == SHAPE_LIST) {
		VAL_EACH(item, v)
			val_add_item(&b, form_one(f, field, *item));
		return val_end_list(&b);
	}
	VAL_EACH_MEMBER(m, v)
		val_add_member(&b, m->key, form_one(f, field, m->val));
	return val_end_object(&b);
}

/* Types of package meta: published names, and what is empty is left out. */
static void form_published(struct former *f, struct val_builder *b, const struct type *t, struct val v)
{
	for (const struct field *field = t->fields; field < t->fields + t->n_fields; field++) {
		struct val member = val_member(v, field->name);
		if (val_exists(member) || (field->flags & FIELD_ALWAYS))
			val_add_member(b, field->name, form_field(f, field, member));
	}
}

/* The host namespaces of a pod are part of its security context there. */
static struct val with_namespaces(struct former *f, struct val context, struct val spec)
{
	static const uint16_t moved[] = { A_hostNetwork, A_hostPID, A_hostIPC, A_shareProcessNamespace, A_hostUsers };
	bool given = false;
	for (size_t i = 0; i < ARRAY_LEN(moved); i++) {
		struct val v = val_member(spec, moved[i]);
		given |= val_exists(v);
		if (val_exists(v) || val_exists(context))
			context = val_put(f->arena, context, moved[i], v);
	}
	return given && !val_exists(context) ? VAL_EMPTY_OBJECT : context;
}

static void form_member(struct former *f, struct val_builder *b, const struct type *t, const struct field *field,
			struct val v)
{
	struct val member = val_member(v, field->name);
	if (t == TYPE(core_v1, PodSpec) && field->name == A_securityContext)
		member = with_namespaces(f, member, v);
	/* embedded there: no member of its own */
	if (field->name == A_metadata && field->type && is_published(field->type))
		form_published(f, b, field->type, member);
	else
		val_add_member(b, atom_make(f->arena, go_name(f->arena, t, field->name)), form_field(f, field, member));
}

static void form_by_layout(struct former *f, struct val_builder *b, const struct type *t, const uint16_t *fields,
			   struct val v)
{
	for (; *fields; fields++) {
		const struct field *field = type_field(t, *fields);
		form_member(f, b, t, field ? field : type_field(TYPE(core_v1, PodSpec), *fields), v);
	}
}

static struct val form_object(struct former *f, const struct type *t, struct val v)
{
	struct val_builder b = val_builder(f->arena);
	size_t i;

	if (f->depth == VAL_RECURSION_MAX)
		return VAL_NULL_VALUE;
	f->depth++;
	for (i = 0; i < ARRAY_LEN(layouts) && layouts[i].type != t; i++)
		;
	if (f->published || is_published(t))
		form_published(f, &b, t, v);
	else if (i < ARRAY_LEN(layouts))
		form_by_layout(f, &b, t, layouts[i].fields, v);
	else
		for (const struct field *field = t->fields; field < t->fields + t->n_fields; field++)
			form_member(f, &b, t, field, v);
	f->depth--;
	return val_end_object(&b);
}

static struct val form(struct former *f, const struct type *type, struct val v)
{
	struct val_builder b = val_builder(f->arena);

	if (val_is_nil(v))
		return VAL_NULL_VALUE;
	if (!val_is(v, VAL_LIST))
		return form_object(f, type, v);
	VAL_EACH(item, v)
		val_add_item(&b, form_object(f, type, *item));
	return val_end_list(&b);
}

struct val internal_form(struct arena *a, const struct type *type, struct val v)
{
	return form(&(struct former){ .arena = a }, type, v);
}

struct val published_form(struct arena *a, const struct type *type, struct val v)
{
	return form(&(struct former){ .arena = a, .published = true }, type, v);
}

/* ---- equality ---- */

static bool object_equal(const struct type *t, struct val a, struct val b, unsigned depth);

static bool one_equal(const struct field *f, struct val a, struct val b, unsigned depth)
{
	if (val_is_nil(a) && val_is_nil(b))
		return true;
	if ((f->flags & FIELD_POINTER) && f->shape == SHAPE_ONE && val_is_nil(a) != val_is_nil(b))
		return false;
	if (f->kind == KIND_MESSAGE)
		return f->type->form == FORM_OBJECT ? object_equal(f->type, a, b, depth) : val_equal(a, b);
	if (f->kind == KIND_QUANTITY)
		return val_equal(a, b) || quantity_cmp(quantity_of(a), quantity_of(b)) == 0;
	return val_equal(a, b) || (val_is_zero(a) && val_is_zero(b));
}

static bool field_equal(const struct field *f, struct val a, struct val b, unsigned depth)
{
	if (f->shape == SHAPE_ONE)
		return one_equal(f, a, b, depth);
	if (val_len(a) != val_len(b))
		return false;
	for (uint32_t i = 0; i < val_len(a); i++) {
		if (f->shape == SHAPE_LIST ? !one_equal(f, a.items[i], b.items[i], depth)
					   : !atom_eq(a.members[i].key, b.members[i].key) ||
						     !one_equal(f, a.members[i].val, b.members[i].val, depth))
			return false;
	}
	return true;
}

static bool object_equal(const struct type *t, struct val a, struct val b, unsigned depth)
{
	if (depth == VAL_RECURSION_MAX)
		return val_equal(a, b);
	for (const struct field *f = t->fields; f < t->fields + t->n_fields; f++)
		if (!field_equal(f, val_member(a, f->name), val_member(b, f->name), depth + 1))
			return false;
	return true;
}

bool field_semantic_equal(const struct field *f, struct val a, struct val b) { return field_equal(f, a, b, 0); }

static bool is_blank(struct val v) { return val_is_nil(v) || (v.type >= VAL_LIST && v.n == 0); }

bool val_semantic_equal(const struct type *type, struct val a, struct val b)
{
	if (val_is(a, VAL_LIST) || val_is(b, VAL_LIST) || !type) {
		if (is_blank(a) || is_blank(b))
			return is_blank(a) && is_blank(b);
		if (!type)
			return val_equal(a, b);
		if (val_len(a) != val_len(b))
			return false;
		for (uint32_t i = 0; i < val_len(a); i++)
			if (!object_equal(type, val_at(a, i), val_at(b, i), 0))
				return false;
		return true;
	}
	return val_is_nil(a) == val_is_nil(b) && object_equal(type, a, b, 0);
}
