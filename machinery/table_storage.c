/* Volumes and their claims, storage.k8s.io, and what the API server says about its own storage. */
#include "machinery/table_priv.h"

/* ---- PersistentVolume, PersistentVolumeClaim ---- */

static struct val access_modes(const struct row *row, struct val modes)
{
	static const struct {
		str mode, shown;
	} names[] = {
		{ STR_INIT("ReadWriteOnce"), STR_INIT("RWO") },
		{ STR_INIT("ReadOnlyMany"), STR_INIT("ROX") },
		{ STR_INIT("ReadWriteMany"), STR_INIT("RWX") },
		{ STR_INIT("ReadWriteOncePod"), STR_INIT("RWOP") },
	};
	str text = STR_NONE;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		bool has = false;
		VAL_EACH(mode, modes)
			has |= str_eq(val_as_str(*mode), names[i].mode);
		if (has)
			text = arena_printf(row->arena, STR_FMT "%s" STR_FMT, STR_ARG(text), text.n ? "," : "",
					    STR_ARG(names[i].shown));
	}
	return val_of_str(text);
}

static struct val phase(const struct row *row)
{
	return cell_is_deleted(row) ? VAL_LIT("Terminating") : val_of_str(val_str(row->object, status, phase));
}

static struct val storage_class_of(const struct row *row)
{
	str name = STR("volume.beta.kubernetes.io/storage-class");
	struct val old = val_find(val_get(row->object, metadata, annotations), name);
	return val_of_str(val_exists(old) ? val_as_str(old) : val_str(row->object, spec, storageClassName));
}

static struct val volume_access_modes(const struct row *row) { return access_modes(row, val_get(row->object, spec, accessModes)); }

static struct val volume_claim(const struct row *row)
{
	struct val ref = val_get(row->object, spec, claimRef);
	if (!val_exists(ref))
		return VAL_LIT("");
	return cell_printf(row, STR_FMT "/" STR_FMT, STR_ARG(val_str(ref, namespace)), STR_ARG(val_str(ref, name)));
}

static const struct column persistent_volume[] = {
	NAME,
	COLUMN("Capacity", "string", 0,
	       "capacity is the description of the persistent volume's resources and capacity. More "
	       "info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#capacity",
	       TEXT(spec, capacity, storage), OR("0")),
	COLUMN("Access Modes", "string", 0,
	       "accessModes contains all ways the volume can be mounted. More info: "
	       "https://kubernetes.io/docs/concepts/storage/persistent-volumes#access-modes",
	       CALL(volume_access_modes)),
	COLUMN("Reclaim Policy", "string", 0,
	       "persistentVolumeReclaimPolicy defines what happens to a persistent volume when "
	       "released from its claim. Valid options are Retain (default for manually created "
	       "PersistentVolumes), Delete (default for dynamically provisioned PersistentVolumes), "
	       "and Recycle (deprecated). Recycle must be supported by the volume plugin underlying "
	       "this PersistentVolume. More info: "
	       "https://kubernetes.io/docs/concepts/storage/persistent-volumes#reclaiming",
	       TEXT(spec, persistentVolumeReclaimPolicy)),
	COLUMN("Status", "string", 0,
	       "phase indicates if a volume is available, bound to a claim, or released by a claim. "
	       "More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#phase",
	       CALL(phase)),
	COLUMN("Claim", "string", 0,
	       "claimRef is part of a bi-directional binding between PersistentVolume and "
	       "PersistentVolumeClaim. Expected to be non-nil when bound. claim.VolumeName is the "
	       "authoritative bind between PV and PVC. More info: "
	       "https://kubernetes.io/docs/concepts/storage/persistent-volumes#binding",
	       CALL(volume_claim)),
	COLUMN("StorageClass", "string", 0, "StorageClass of the pv", CALL(storage_class_of)),
	COLUMN("VolumeAttributesClass", "string", 0,
	       "VolumeAttributesClass of the pv",
	       TEXT(spec, volumeAttributesClassName), OR("<unset>")),
	COLUMN("Reason", "string", 0,
	       "reason is a brief CamelCase string that describes any failure and is meant for "
	       "machine parsing and tidy display in the CLI.",
	       TEXT(status, reason)),
	AGE,
	COLUMN("VolumeMode", "string", 1,
	       "volumeMode defines if a volume is intended to be used with a formatted filesystem or "
	       "to remain in raw block state. Value of Filesystem is implied when not included in "
	       "spec.",
	       TEXT(spec, volumeMode), OR("<unset>")),
};

static bool is_bound(const struct row *row) { return val_str(row->object, spec, volumeName).n > 0; }

static struct val claim_capacity(const struct row *row)
{
	return val_of_str(is_bound(row) ? cell_text_or(val_get(row->object, status, capacity, storage), STR("0")) : STR_NONE);
}

static struct val claim_access_modes(const struct row *row)
{
	return is_bound(row) ? access_modes(row, val_get(row->object, status, accessModes)) : VAL_LIT("");
}

static const struct column persistent_volume_claim[] = {
	NAME,
	COLUMN("Status", "string", 0, "phase represents the current phase of PersistentVolumeClaim.", CALL(phase)),
	COLUMN("Volume", "string", 0,
	       "volumeName is the binding reference to the PersistentVolume backing this claim.",
	       TEXT(spec, volumeName)),
	COLUMN("Capacity", "string", 0,
	       "capacity represents the actual resources of the underlying volume.",
	       CALL(claim_capacity)),
	COLUMN("Access Modes", "string", 0,
	       "accessModes contains the actual access modes the volume backing the PVC has. More "
	       "info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#access-modes-1",
	       CALL(claim_access_modes)),
	COLUMN("StorageClass", "string", 0, "StorageClass of the pvc", CALL(storage_class_of)),
	COLUMN("VolumeAttributesClass", "string", 0,
	       "VolumeAttributesClass of the pvc",
	       TEXT(spec, volumeAttributesClassName),
	       OR("<unset>")),
	AGE,
	COLUMN("VolumeMode", "string", 1,
	       "volumeMode defines what type of volume is required by the claim. Value of Filesystem "
	       "is implied when not included in claim spec.",
	       TEXT(spec, volumeMode), OR("<unset>")),
};

/* ---- storage.k8s.io ---- */

static struct val class_name(const struct row *row)
{
	bool is_default = str_eq(cell_annotation(row, STR("storageclass.kubernetes.io/is-default-class")), STR("true")) ||
			  str_eq(cell_annotation(row, STR("storageclass.beta.kubernetes.io/is-default-class")), STR("true"));
	return cell_printf(row, STR_FMT "%s", STR_ARG(val_str(row->object, metadata, name)), is_default ? " (default)" : "");
}

static const struct column storage_class[] = {
	COLUMN_WITH_FORMAT("Name", "string", "name", 0, NAME_TEXT, CALL(class_name)),
	COLUMN("Provisioner", "string", 0, "provisioner indicates the type of the provisioner.", TEXT(provisioner)),
	COLUMN("ReclaimPolicy", "string", 0,
	       "reclaimPolicy controls the reclaimPolicy for dynamically provisioned "
	       "PersistentVolumes of this storage class. Defaults to Delete.",
	       TEXT(reclaimPolicy), OR("Delete")),
	COLUMN("VolumeBindingMode", "string", 0,
	       "volumeBindingMode indicates how PersistentVolumeClaims should be provisioned and "
	       "bound.  When unset, VolumeBindingImmediate is used. This field is only honored by "
	       "servers that enable the VolumeScheduling feature.",
	       TEXT(volumeBindingMode), OR("Immediate")),
	COLUMN("AllowVolumeExpansion", "string", 0,
	       "allowVolumeExpansion shows whether the storage class allow volume expand.",
	       BOOL(allowVolumeExpansion)),
	AGE,
};

static const struct column volume_attributes_class[] = {
	NAME,
	COLUMN("DriverName", "string", 0, "Name of the CSI driver This field is immutable.", TEXT(driverName)),
	AGE,
};

static const struct column volume_attachment[] = {
	NAME,
	COLUMN_WITH_FORMAT("Attacher", "string", "name", 0,
	       "attacher indicates the name of the volume driver that MUST handle this request. This "
	       "is the name returned by GetPluginName().",
	       TEXT(spec, attacher)),
	COLUMN("PV", "string", 0,
	       "persistentVolumeName represents the name of the persistent volume to attach.",
	       TEXT(spec, source, persistentVolumeName)),
	COLUMN("Node", "string", 0,
	       "nodeName represents the node that the volume should be attached to.",
	       TEXT(spec, nodeName)),
	COLUMN("Attached", "boolean", 0,
	       "attached indicates the volume is successfully attached. This field must only be set "
	       "by the entity completing the attach operation, i.e. the external-attacher.",
	       BOOL(status, attached)),
	AGE,
};

static const struct column csi_node[] = {
	NAME,
	COLUMN("Drivers", "integer", 0,
	       "Drivers indicates the number of CSI drivers registered on the node",
	       COUNT(spec, drivers)),
	AGE,
};

static struct val attach_required(const struct row *row)
{
	struct val v = val_get(row->object, spec, attachRequired);
	return val_of_bool(!val_exists(v) || val_as_bool(v));
}

static struct val token_requests(const struct row *row)
{
	struct val list = val_get(row->object, spec, tokenRequests);
	return val_exists(list) ? val_of_str(cell_join(row->arena, list, A_audience, ",")) : VAL_LIT("<unset>");
}

static const struct column csi_driver[] = {
	NAME,
	COLUMN("AttachRequired", "boolean", 0,
	       "attachRequired indicates this CSI volume driver requires an attach operation (because "
	       "it implements the CSI ControllerPublishVolume() method), and that the Kubernetes "
	       "attach detach controller should call the attach volume interface which checks the "
	       "volumeattachment status and waits until the volume is attached before proceeding to "
	       "mounting. The CSI external-attacher coordinates with CSI volume driver and updates "
	       "the volumeattachment status when the attach operation is complete. If the value is "
	       "specified to false, the attach operation will be skipped. Otherwise the attach "
	       "operation will be called.\n\nThis field is immutable.",
	       CALL(attach_required)),
	COLUMN("PodInfoOnMount", "boolean", 0,
	       "podInfoOnMount indicates this CSI volume driver requires additional pod information "
	       "(like podName, podUID, etc.) during mount operations, if set to true. If set to "
	       "false, pod information will not be passed on mount. Default is false.\n\nThe CSI "
	       "driver specifies podInfoOnMount as part of driver deployment. If true, Kubelet will "
	       "pass pod information as VolumeContext in the CSI NodePublishVolume() calls. The CSI "
	       "driver is responsible for parsing and validating the information passed in as "
	       "VolumeContext.\n\nThe following VolumeContext will be passed if podInfoOnMount is set "
	       "to true. This list might grow, but the prefix will be used. "
	       "\"csi.storage.k8s.io/pod.name\": pod.Name \"csi.storage.k8s.io/pod.namespace\": "
	       "pod.Namespace \"csi.storage.k8s.io/pod.uid\": string(pod.UID) "
	       "\"csi.storage.k8s.io/ephemeral\": \"true\" if the volume is an ephemeral inline "
	       "volume\n                                defined by a CSIVolumeSource, otherwise "
	       "\"false\"\n\n\"csi.storage.k8s.io/ephemeral\" is a new feature in Kubernetes 1.16. It "
	       "is only required for drivers which support both the \"Persistent\" and \"Ephemeral\" "
	       "VolumeLifecycleMode. Other drivers can leave pod info disabled and/or ignore this "
	       "field. As Kubernetes 1.15 doesn't support this field, drivers can only support one "
	       "mode when deployed on such a cluster and the deployment determines which mode that "
	       "is, for example via a command line parameter of the driver.\n\nThis field was "
	       "immutable in Kubernetes < 1.29 and now is mutable.",
	       BOOL(spec, podInfoOnMount)),
	COLUMN("StorageCapacity", "boolean", 0,
	       "storageCapacity indicates that the CSI volume driver wants pod scheduling to consider "
	       "the storage capacity that the driver deployment will report by creating "
	       "CSIStorageCapacity objects with capacity information, if set to true.\n\nThe check "
	       "can be enabled immediately when deploying a driver. In that case, provisioning new "
	       "volumes with late binding will pause until the driver deployment has published some "
	       "suitable CSIStorageCapacity object.\n\nAlternatively, the driver can be deployed with "
	       "the field unset or false and it can be flipped later when storage capacity "
	       "information has been published.\n\nThis field was immutable in Kubernetes <= 1.22 and "
	       "now is mutable.",
	       BOOL(spec, storageCapacity)),
	COLUMN("TokenRequests", "string", 0,
	       "tokenRequests indicates the CSI driver needs pods' service account tokens it is "
	       "mounting volume for to do necessary authentication. Kubelet will pass the tokens in "
	       "VolumeContext in the CSI NodePublishVolume calls. The CSI driver should parse and "
	       "validate the following VolumeContext: \"csi.storage.k8s.io/serviceAccount.tokens\": "
	       "{\n  \"<audience>\": {\n    \"token\": <token>,\n    \"expirationTimestamp\": "
	       "<expiration timestamp in RFC3339>,\n  },\n  ...\n}\n\nNote: Audience in each "
	       "TokenRequest should be different and at most one token is empty string. To receive a "
	       "new token after expiry, RequiresRepublish can be used to trigger NodePublishVolume "
	       "periodically.",
	       CALL(token_requests)),
	COLUMN("RequiresRepublish", "boolean", 0,
	       "requiresRepublish indicates the CSI driver wants `NodePublishVolume` being "
	       "periodically called to reflect any possible change in the mounted volume. This field "
	       "defaults to false.\n\nNote: After a successful initial NodePublishVolume call, "
	       "subsequent calls to NodePublishVolume should only update the contents of the volume. "
	       "New mount points will not be seen by a running container.",
	       BOOL(spec, requiresRepublish)),
	COLUMN("Modes", "string", 0,
	       "volumeLifecycleModes defines what kind of volumes this CSI volume driver supports. "
	       "The default if the list is empty is \"Persistent\", which is the usage defined by the "
	       "CSI specification and implemented in Kubernetes via the usual PV/PVC mechanism.\n\n"
	       "The other mode is \"Ephemeral\". In this mode, volumes are defined inline inside the "
	       "pod spec with CSIVolumeSource and their lifecycle is tied to the lifecycle of that "
	       "pod. A driver has to be aware of this because it is only going to get a "
	       "NodePublishVolume call for such a volume.\n\nFor more information about implementing "
	       "this mode, see https://kubernetes-csi.github.io/docs/ephemeral-local-volumes.html A "
	       "driver can support one or more of these modes and more modes may be added in the "
	       "future.\n\nThis field is beta. This field is immutable.",
	       JOINED(spec, volumeLifecycleModes), OR("<none>")),
	AGE,
};

static const struct column csi_storage_capacity[] = {
	NAME,
	COLUMN("StorageClassName", "string", 0, "Class that the capacity is for", TEXT(storageClassName)),
	COLUMN("Capacity", "string", 0, "Room that is left", TEXT(capacity), OR("<unset>")),
};

/* ---- the API server's own storage ---- */

static struct val encoding_versions(const struct row *row)
{
	struct cell_few f = { .arena = row->arena, .max = 3 };
	VAL_EACH(v, val_get(row->object, status, storageVersions))
		cell_few_add(&f, arena_printf(row->arena, STR_FMT "=" STR_FMT, STR_ARG(val_str(*v, apiServerID)),
					      STR_ARG(val_str(*v, encodingVersion))));
	return val_of_str(cell_few_text(&f, STR("<unset>")));
}

static const struct column storage_version[] = {
	NAME,
	COLUMN("CommonEncodingVersion", "string", 0, "Version that all servers write", TEXT(status, commonEncodingVersion), OR("<unset>")),
	COLUMN("StorageVersions", "string", 0, "Version that each server writes", CALL(encoding_versions)),
	AGE,
};

static struct val migrated_resource(const struct row *row)
{
	struct val r = val_get(row->object, spec, resource);
	return val_of_str(cell_qualified(row->arena, val_str(r, resource), val_str(r, group)));
}

static struct val migration_status(const struct row *row)
{
	struct val status = VAL_LIT("Unknown");
	VAL_EACH(c, val_get(row->object, status, conditions)) {
		str type = val_str(*c, type);
		bool known = str_eq(type, STR("Running")) || str_eq(type, STR("Failed")) || str_eq(type, STR("Succeeded"));
		if (known && str_eq(val_str(*c, status), STR("True")))
			status = val_of_str(type);
	}
	return status;
}

static const struct column storage_version_migration[] = {
	COLUMN("Name", "string", 0, NAME_TEXT, TEXT(metadata, name)),
	COLUMN("Resource", "string", 0, "Resource whose objects are rewritten", CALL(migrated_resource)),
	COLUMN("Status", "string", 0, "State of the migration", CALL(migration_status)),
};

static const struct table tables_storage_all[] = {
	TABLE("", "PersistentVolume", persistent_volume),
	TABLE("", "PersistentVolumeClaim", persistent_volume_claim),
	TABLE("storage.k8s.io", "StorageClass", storage_class),
	TABLE("storage.k8s.io", "VolumeAttributesClass", volume_attributes_class),
	TABLE("storage.k8s.io", "VolumeAttachment", volume_attachment),
	TABLE("storage.k8s.io", "CSINode", csi_node),
	TABLE("storage.k8s.io", "CSIDriver", csi_driver),
	TABLE("storage.k8s.io", "CSIStorageCapacity", csi_storage_capacity),
	TABLE("internal.apiserver.k8s.io", "StorageVersion", storage_version),
	TABLE("storagemigration.k8s.io", "StorageVersionMigration", storage_version_migration),
};

TABLE_SET(tables_storage);
