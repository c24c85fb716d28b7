/*
 * PersistentVolumes and PersistentVolumeClaims. The checks of volume sources that pods have too are in
 * validate_volume_sources.c, those of a claim's spec in validate_claim.c.
 */
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "machinery/validate_groups.h"

/* ---- sources that only PersistentVolumes have in this form ---- */

static void check_secret_namespace(struct field_errors *e, const struct field_path *at, struct val source)
{
	if (val_has(source, secretRef))
		check_given(e, FIELD(FIELD(at, "secretRef"), "namespace"), val_str(source, secretRef, namespace));
}

static void check_glusterfs(struct field_errors *e, const struct field_path *at, struct val source)
{
	struct val namespace = val_get(source, endpointsNamespace);

	check_glusterfs_source(e, at, source);
	if (!val_exists(namespace))
		return;
	if (val_as_str(namespace).n == 0)
		field_invalid(e, FIELD(at, "endpointsNamespace"), namespace,
			      "if the endpointnamespace is set, it must be a valid namespace name");
	else
		check_name(e, FIELD(at, "endpointsNamespace"), val_as_str(namespace), name_check_dns1123_label);
}

static void check_cinder(struct field_errors *e, const struct field_path *at, struct val source)
{
	check_cinder_source(e, at, source);
	check_secret_namespace(e, at, source);
}

static void check_azure_file(struct field_errors *e, const struct field_path *at, struct val source)
{
	check_azure_file_source(e, at, source);
	if (val_has(source, secretNamespace))
		check_given(e, FIELD(at, "secretNamespace"), val_str(source, secretNamespace));
}

static void check_local(struct field_errors *e, const struct field_path *at, struct val source)
{
	if (check_given(e, FIELD(at, "path"), val_str(source, path)))
		check_no_backsteps(e, FIELD(at, "path"), val_str(source, path));
}

static void check_storageos(struct field_errors *e, const struct field_path *at, struct val source)
{
	check_storageos_source(e, at, source);
	check_secret_namespace(e, at, source);
}

static void check_csi(struct field_errors *e, const struct field_path *at, struct val source)
{
	static const uint16_t secrets[] = { A_controllerPublishSecretRef, A_controllerExpandSecretRef,
					    A_nodePublishSecretRef, A_nodeExpandSecretRef };

	check_csi_driver_name(e, FIELD(at, "driver"), val_str(source, driver));
	check_given(e, FIELD(at, "volumeHandle"), val_str(source, volumeHandle));
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		const struct field_path *at_ref = FIELD_STR(at, atom_str(secrets[i]));
		struct val ref = val_member(source, secrets[i]);
		if (!val_exists(ref))
			continue;
		check_given_name(e, FIELD(at_ref, "name"), val_str(ref, name), name_check_dns1123_subdomain);
		check_given_name(e, FIELD(at_ref, "namespace"), val_str(ref, namespace), name_check_dns1123_label);
	}
}

/* In the order in which Kubernetes looks at them; paths are as it writes them. */
static const struct source {
	uint16_t name;
	str path, second_path; /* of errors within, and of being one too many */
	source_check *check;   /* NULL: iscsi, which also looks at the volume's name */
} sources[] = {
#define SOURCE(name, check) { A_##name, STR_INIT(#name), STR_INIT(#name), check }
	SOURCE(hostPath, check_host_path_source),
	{ A_gcePersistentDisk, STR_INIT("persistentDisk"), STR_INIT("gcePersistentDisk"), check_gce_disk_source },
	SOURCE(awsElasticBlockStore, check_aws_disk_source),
	SOURCE(glusterfs, check_glusterfs),
	SOURCE(flocker, check_flocker_source),
	SOURCE(nfs, check_nfs_source),
	SOURCE(rbd, check_rbd_source),
	SOURCE(quobyte, check_quobyte_source),
	{ A_cephfs, STR_INIT("cephfs"), STR_INIT("cephFS"), check_cephfs_source },
	SOURCE(iscsi, NULL),
	SOURCE(cinder, check_cinder),
	SOURCE(fc, check_fc_source),
	SOURCE(flexVolume, check_flex_source),
	SOURCE(azureFile, check_azure_file),
	SOURCE(vsphereVolume, check_vsphere_source),
	SOURCE(photonPersistentDisk, check_photon_source),
	SOURCE(portworxVolume, check_portworx_source),
	SOURCE(azureDisk, check_azure_disk_source),
	SOURCE(scaleIO, check_scaleio_source),
	SOURCE(local, check_local),
	SOURCE(storageos, check_storageos),
	SOURCE(csi, check_csi),
#undef SOURCE
};

/* ---- the spec of a volume ---- */

static void check_sources(struct field_errors *e, const struct field_path *at, struct val spec, str volume)
{
	size_t found = 0;

	for (const struct source *s = sources; s < sources + ARRAY_LEN(sources); s++) {
		struct val source = val_member(spec, s->name);
		const struct field_path *at_source = FIELD_STR(at, s->path);
		if (!val_exists(source))
			continue;
		if (found && s->name != A_flexVolume) {
			field_forbidden(e, FIELD_STR(at, s->second_path), "may not specify more than 1 volume type");
			continue;
		}
		found++;
		if (s->check)
			s->check(e, at_source, source);
		else
			check_iscsi_source(e, at_source, source, &volume);
		if (s->name == A_local && !val_has(spec, nodeAffinity))
			field_required(e, FIELD(at, "nodeAffinity"), "Local volume requires node affinity");
	}
	if (!found)
		field_required(e, at, "must specify a volume type");
}

static void check_basic_quantity(struct field_errors *e, const struct field_path *at, struct val quantity)
{
	int64_t value = quantity_value(quantity_of(quantity));
	if (value < 0)
		field_invalid(e, at, val_of_int(value), "must be a valid resource quantity");
}

static void check_capacity(struct field_errors *e, const struct field_path *at, struct val capacity)
{
	static const str supported[] = { STR_INIT("storage"), { NULL, 0 } };

	if (val_len(capacity) == 0)
		field_missing(e, at);
	if (!val_has(capacity, storage) || val_len(capacity) > 1)
		field_not_supported(e, at, capacity, supported);
	VAL_EACH_MEMBER(m, capacity) {
		const struct field_path *key = FIELD_KEY(at, atom_str(m->key));
		check_basic_quantity(e, key, m->val);
		if (quantity_of(m->val).nanos <= 0)
			field_invalid(e, key, m->val, "must be greater than zero");
	}
}

/* hostPath volumes of the whole machine. */
static bool is_root_path(str path)
{
	size_t depth = 0;
	if (!str_starts(path, STR("/")))
		return false;
	for (str rest = path, part; rest.n;) {
		str_cut(rest, '/', &part, &rest);
		if (str_eq(part, STR("..")))
			depth -= depth > 0;
		else if (part.n && !str_eq(part, STR(".")))
			depth++;
	}
	return depth == 0;
}

static void check_attributes_class(struct field_errors *e, const struct field_path *at, struct val spec)
{
	str class = val_str(spec, volumeAttributesClassName);

	if (!val_has(spec, volumeAttributesClassName))
		return;
	if (class.n == 0)
		field_required(e, FIELD(at, "volumeAttributesClassName"), "an empty string is disallowed");
	else
		check_name(e, FIELD(at, "volumeAttributesClassName"), class, name_check_dns1123_subdomain);
	if (!val_has(spec, csi))
		field_required(e, FIELD(at, "csi"), "has to be specified when using volumeAttributesClassName");
}

static void check_node_affinity(struct field_errors *e, const struct field_path *at, struct val affinity,
				bool allow_bad_values)
{
	if (!val_exists(affinity))
		return;
	if (val_has(affinity, required))
		check_node_selector(e, FIELD(at, "required"), val_get(affinity, required), allow_bad_values);
	else
		field_required(e, FIELD(at, "required"), "must specify required node constraints");
}

static void check_volume_spec(struct field_errors *e, const struct field_path *at, struct val spec, str volume,
			      bool allow_bad_values)
{
	static const str policies[] = { STR_INIT("Delete"), STR_INIT("Recycle"), STR_INIT("Retain"), { NULL, 0 } };
	str policy = val_str(spec, persistentVolumeReclaimPolicy), class = val_str(spec, storageClassName);

	if (val_len(val_get(spec, accessModes)) == 0)
		field_missing(e, FIELD(at, "accessModes"));
	check_access_modes(e, FIELD(at, "accessModes"), val_get(spec, accessModes));
	check_capacity(e, FIELD(at, "capacity"), val_get(spec, capacity));
	if (policy.n)
		check_one_of(e, FIELD(at, "persistentVolumeReclaimPolicy"), policy, policies);
	check_node_affinity(e, FIELD(at, "nodeAffinity"), val_get(spec, nodeAffinity), allow_bad_values);
	check_sources(e, at, spec, volume);
	if (is_root_path(val_str(spec, hostPath, path)) && str_eq(policy, STR("Recycle")))
		field_forbidden(e, FIELD(at, "persistentVolumeReclaimPolicy"),
				"may not be 'recycle' for a hostPath mount of '/'");
	if (class.n)
		check_name(e, FIELD(at, "storageClassName"), class, name_check_dns1123_subdomain);
	check_volume_mode(e, FIELD(at, "volumeMode"), val_get(spec, volumeMode));
	check_attributes_class(e, at, spec);
}

void check_inline_volume(struct field_errors *e, const struct field_path *at, struct val spec)
{
	static const char text[] = "may not be specified in the context of inline volumes";
	str policy = val_str(spec, persistentVolumeReclaimPolicy);
	struct val mode = val_get(spec, volumeMode);

	if (val_has(spec, claimRef))
		field_forbidden(e, FIELD(at, "claimRef"), text);
	if (val_len(val_get(spec, capacity)))
		field_forbidden(e, FIELD(at, "capacity"), text);
	if (!val_has(spec, csi))
		field_required(e, FIELD(at, "csi"), "has to be specified in the context of inline volumes");
	if (val_len(val_get(spec, accessModes)) == 0)
		field_missing(e, FIELD(at, "accessModes"));
	check_access_modes(e, FIELD(at, "accessModes"), val_get(spec, accessModes));
	if (policy.n && !str_eq(policy, STR("Retain")))
		field_forbidden(e, FIELD(at, "persistentVolumeReclaimPolicy"),
				"may only be Retain in the context of inline volumes");
	if (val_has(spec, nodeAffinity))
		field_forbidden(e, FIELD(at, "nodeAffinity"), text);
	check_sources(e, at, spec, STR_NONE);
	if (is_root_path(val_str(spec, hostPath, path)) && str_eq(policy, STR("Recycle")))
		field_forbidden(e, FIELD(at, "persistentVolumeReclaimPolicy"),
				"may not be 'recycle' for a hostPath mount of '/'");
	if (val_str(spec, storageClassName).n)
		field_forbidden(e, FIELD(at, "storageClassName"), text);
	if (val_exists(mode) && !str_eq(val_as_str(mode), STR("Filesystem")))
		field_forbidden(e, FIELD(at, "volumeMode"),
				"may not specify volumeMode other than Filesystem in the context of inline volumes");
}

/* ---- PersistentVolume ---- */

/* Types of volumes whose mounts take options, given by an annotation of old. */
static void check_mount_options(struct field_errors *e, struct val volume)
{
	static const str key = STR_INIT("volume.beta.kubernetes.io/mount-options");
	static const uint16_t with_options[] = {
		A_gcePersistentDisk, A_awsElasticBlockStore, A_glusterfs, A_nfs, A_rbd, A_quobyte, A_iscsi, A_cinder, A_cephfs,
		A_azureFile, A_vsphereVolume, A_azureDisk, A_photonPersistentDisk,
	};

	for (size_t i = 0; i < ARRAY_LEN(with_options); i++)
		if (val_exists(val_member(val_get(volume, spec), with_options[i])))
			return;
	if (val_exists(val_find(val_get(volume, metadata, annotations), key)))
		field_forbidden(e, FIELD_STR(FIELD(FIELD(NULL, "metadata"), "annotations"), key),
				"may not specify mount options for this volume type");
}

static void check_volume_all(struct field_errors *e, struct val volume, bool allow_bad_values)
{
	check_meta(e, volume, false, name_rule_subdomain);
	check_volume_spec(e, FIELD(NULL, "spec"), val_get(volume, spec), val_str(volume, metadata, name), allow_bad_values);
}

void check_persistent_volume(struct field_errors *e, struct val volume)
{
	check_volume_all(e, volume, false);
	check_mount_options(e, volume);
}

/* Of the spec's members only those that are the source. */
static struct val source_form(struct arena *a, struct val spec)
{
	static const str others[] = {
		STR_INIT("Capacity"), STR_INIT("AccessModes"), STR_INIT("ClaimRef"), STR_INIT("PersistentVolumeReclaimPolicy"),
		STR_INIT("StorageClassName"), STR_INIT("MountOptions"), STR_INIT("VolumeMode"), STR_INIT("NodeAffinity"),
		STR_INIT("VolumeAttributesClassName"),
	};
	struct val form = internal_form(a, TYPE(core_v1, PersistentVolumeSpec), spec);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		form = val_put(a, form, atom_make(a, others[i]), VAL_EMPTY);
	return form;
}

static struct val only_source(struct arena *a, struct val spec)
{
	struct val_builder b = val_builder(a);
	for (const struct source *s = sources; s < sources + ARRAY_LEN(sources); s++)
		val_add_member(&b, s->name, val_member(spec, s->name));
	return val_end_object(&b);
}

/* The secret for growing a CSI volume may be added later. */
static void check_source_change(struct field_errors *e, struct val now, struct val before)
{
	if (val_has(before, csi) && !val_has(before, csi, controllerExpandSecretRef) &&
	    val_has(now, csi, controllerExpandSecretRef))
		now = val_without(e->arena, now, csi, controllerExpandSecretRef);
	if (val_semantic_equal(TYPE(core_v1, PersistentVolumeSource), only_source(e->arena, now),
			       only_source(e->arena, before)))
		return;
	str diff = form_diff(e->arena, source_form(e->arena, before), source_form(e->arena, now));
	field_forbidden(e, FIELD(FIELD(NULL, "spec"), "persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation\n" STR_FMT, STR_ARG(diff));
}

/* The stable name of a label that was once beta, or nothing. */
static str stable_label(str key)
{
	static const struct {
		str beta, stable;
	} labels[] = {
		{ STR_INIT("failure-domain.beta.kubernetes.io/zone"), STR_INIT("topology.kubernetes.io/zone") },
		{ STR_INIT("failure-domain.beta.kubernetes.io/region"), STR_INIT("topology.kubernetes.io/region") },
		{ STR_INIT("beta.kubernetes.io/os"), STR_INIT("kubernetes.io/os") },
		{ STR_INIT("beta.kubernetes.io/arch"), STR_INIT("kubernetes.io/arch") },
		{ STR_INIT("beta.kubernetes.io/instance-type"), STR_INIT("node.kubernetes.io/instance-type") },
	};
	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (str_eq(labels[i].beta, key))
			return labels[i].stable;
	return STR_NONE;
}

/* before, with the keys of beta labels that now has under their stable names. */
static struct val with_stable_labels(struct arena *a, struct val now, struct val before)
{
	struct val terms = val_get(before, required, nodeSelectorTerms);
	for (size_t i = 0; i < val_len(terms); i++) {
		struct val requirements = val_get(val_at(terms, i), matchExpressions);
		struct val others = val_get(val_at(val_get(now, required, nodeSelectorTerms), i), matchExpressions);
		for (size_t j = 0; j < val_len(requirements); j++) {
			struct val r = val_at(requirements, j), other = val_get(val_at(others, j), key);
			str stable = stable_label(val_str(r, key));
			if (stable.n && str_eq(stable, val_as_str(other)))
				requirements = val_list_set(a, requirements, j, val_with(a, r, other, key));
		}
		terms = val_list_set(a, terms, i, val_with(a, val_at(terms, i), requirements, matchExpressions));
	}
	return val_len(terms) ? val_with(a, before, terms, required, nodeSelectorTerms) : before;
}

static void check_affinity_change(struct field_errors *e, struct val now, struct val before)
{
	const struct type *type = TYPE(core_v1, VolumeNodeAffinity);
	if (val_exists(before) && !val_semantic_equal(type, now, with_stable_labels(e->arena, now, before)))
		field_invalid(e, FIELD(NULL, "nodeAffinity"), internal_form(e->arena, type, now),
			      "field is immutable, except for updating from beta label to GA");
}

static bool has_bad_label_value(struct val terms)
{
	VAL_EACH(term, terms)
		VAL_EACH(r, val_get(*term, matchExpressions))
			VAL_EACH(value, val_get(*r, values))
				if (name_check_label_value(val_as_str(*value), NULL))
					return true;
	return false;
}

void check_persistent_volume_update(struct field_errors *e, struct val volume, struct val old)
{
	struct val now = val_get(volume, spec), before = val_get(old, spec);
	bool allow_bad_values = has_bad_label_value(val_get(before, nodeAffinity, required, nodeSelectorTerms));

	check_volume_all(e, volume, allow_bad_values);
	check_mount_options(e, volume);
	check_volume_all(e, volume, allow_bad_values);
	check_source_change(e, now, before);
	check_immutable(e, FIELD(NULL, "volumeMode"), NULL, val_get(now, volumeMode), val_get(before, volumeMode));
	check_affinity_change(e, val_get(now, nodeAffinity), val_get(before, nodeAffinity));
	if (val_has(before, volumeAttributesClassName) && !val_has(now, volumeAttributesClassName))
		field_forbidden(e, FIELD(FIELD(NULL, "spec"), "volumeAttributesClassName"),
				"update from non-nil value to nil is forbidden");
}

void check_persistent_volume_status(struct field_errors *e, str subresource, struct val volume, struct val old)
{
	(void)subresource;
	check_meta_update(e, volume, old);
	check_given(e, FIELD(NULL, "resourceVersion"), val_str(volume, metadata, resourceVersion));
}

/* ---- PersistentVolumeClaim ---- */

static const str class_annotation = STR_INIT("volume.beta.kubernetes.io/storage-class");

void check_claim(struct field_errors *e, struct val claim)
{
	check_meta(e, claim, true, name_rule_subdomain);
	check_claim_spec(e, FIELD(NULL, "spec"), val_get(claim, spec), VAL_EMPTY);
}

/*
 * The class of a claim may be given once: where there was none, or where it was given by the annotation of old. Returns
 * the class that the spec is to be compared with.
 */
static struct val comparable_class(struct field_errors *e, struct val claim, struct val old)
{
	struct val now = val_find(val_get(claim, metadata, annotations), class_annotation);
	struct val before = val_find(val_get(old, metadata, annotations), class_annotation);
	struct val class = val_get(claim, spec, storageClassName), old_class = val_get(old, spec, storageClassName);
	bool comes = val_exists(class) && !val_exists(old_class);

	if (comes && val_exists(before) && val_equal(class, before) && (!val_exists(now) || val_equal(now, before)))
		return old_class;
	if (!str_eq(val_as_str(now), val_as_str(before)))
		field_invalid(e, FIELD_STR(FIELD(FIELD(NULL, "metadata"), "annotations"), class_annotation),
			      shown_str(now), "field is immutable");
	return comes && (!val_exists(before) || val_equal(class, before)) ? old_class : class;
}

static void check_claim_change(struct field_errors *e, struct val claim, struct val old)
{
	struct arena *a = e->arena;
	const struct type *type = TYPE(core_v1, PersistentVolumeClaimSpec);
	bool bound = str_eq(val_str(claim, status, phase), STR("Bound"));
	struct val now = val_get(claim, spec), before = val_get(old, spec);

	now = val_with(a, now, comparable_class(e, claim, old), storageClassName);
	if (val_str(before, volumeName).n == 0)
		before = val_with(a, before, val_get(now, volumeName), volumeName);
	if (bound && val_has(now, resources, requests)) {
		struct val size = val_get(before, resources, requests, storage);
		now = val_with(a, now, val_exists(size) ? size : VAL_LIT("0"), resources, requests, storage);
	}
	if (bound)
		now = val_with(a, now, val_get(before, volumeAttributesClassName), volumeAttributesClassName);
	if (val_semantic_equal(type, now, before))
		return;
	str diff = form_diff(a, internal_form(a, type, before), internal_form(a, type, now));
	field_forbidden(e, FIELD(NULL, "spec"),
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n" STR_FMT,
			STR_ARG(diff));
}

void check_claim_update(struct field_errors *e, struct val claim, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec"), *at_class = FIELD(at, "volumeAttributesClassName");
	struct val now = val_get(claim, spec), before = val_get(old, spec), class = val_get(now, volumeAttributesClassName);
	struct quantity size = quantity_of(val_get(now, resources, requests, storage));

	check_meta_update(e, claim, old);
	check_meta(e, claim, true, name_rule_subdomain);
	check_claim_spec(e, at, now, before);
	check_claim_change(e, claim, old);
	if (quantity_cmp(size, quantity_of(val_get(before, resources, requests, storage))) < 0 &&
	    quantity_cmp(size, quantity_of(val_get(old, status, capacity, storage))) <= 0)
		field_forbidden(e, FIELD(FIELD(FIELD(at, "resources"), "requests"), "storage"),
				"field can not be less than status.capacity");
	check_immutable(e, FIELD(NULL, "volumeMode"), NULL, val_get(now, volumeMode), val_get(before, volumeMode));
	if (val_equal(class, val_get(before, volumeAttributesClassName)) ||
	    !val_has(old, status, currentVolumeAttributesClassName))
		return;
	if (!val_exists(class))
		field_forbidden(e, at_class,
				"update to nil is forbidden when status.currentVolumeAttributesClassName is not nil");
	else if (val_as_str(class).n == 0)
		field_forbidden(e, at_class,
				"update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil");
}

/* Kubernetes' own resources other than storage have nothing to do with claims. */
static bool check_claim_resource(struct field_errors *e, const struct field_path *at, str resource)
{
	static const str supported[] = { STR_INIT("storage"), { NULL, 0 } };
	size_t before = e->n;

	check_label_key(e, at, resource);
	if (e->n == before && resource_is_native(resource))
		check_one_of(e, at, resource, supported);
	return e->n == before;
}

void check_claim_status(struct field_errors *e, str subresource, struct val claim, struct val old)
{
	static const str states[] = { STR_INIT("ControllerResizeInProgress"), STR_INIT("ControllerResizeInfeasible"),
				      STR_INIT("NodeResizeInProgress"), STR_INIT("NodeResizeInfeasible"),
				      STR_INIT("NodeResizePending"), { NULL, 0 } };
	const struct field_path *at = FIELD(NULL, "status"), *at_resources = FIELD(at, "allocatedResources");

	(void)subresource;
	check_meta_update(e, claim, old);
	check_given(e, FIELD(NULL, "resourceVersion"), val_str(claim, metadata, resourceVersion));
	if (val_len(val_get(claim, spec, accessModes)) == 0)
		field_missing(e, FIELD(FIELD(NULL, "Spec"), "accessModes"));
	VAL_EACH_MEMBER(m, val_get(claim, status, capacity))
		check_basic_quantity(e, FIELD_KEY(FIELD(at, "capacity"), atom_str(m->key)), m->val);
	VAL_EACH_MEMBER(m, val_get(claim, status, allocatedResourceStatuses)) {
		const struct field_path *at_states = FIELD(at, "allocatedResourceStatuses");
		check_claim_resource(e, at_states, atom_str(m->key));
		if (!str_in(val_as_str(m->val), states))
			field_not_supported(e, at_states, VAL_STR(atom_str(m->key)), states);
	}
	VAL_EACH_MEMBER(m, val_get(claim, status, allocatedResources)) {
		const struct field_path *key = FIELD_KEY(at_resources, atom_str(m->key));
		size_t before = e->n;
		if (!check_claim_resource(e, at_resources, atom_str(m->key)))
			continue;
		check_basic_quantity(e, key, m->val);
		if (e->n == before)
			check_resource_quantity(e, key, STR("storage"), m->val);
	}
}
