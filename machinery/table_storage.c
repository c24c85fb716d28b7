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
	COLUMN("Capacity", "string", 0, "Size of the volume", TEXT(spec, capacity, storage), OR("0")),
	COLUMN("Access Modes", "string", 0, "How it can be mounted", CALL(volume_access_modes)),
	COLUMN("Reclaim Policy", "string", 0, "What becomes of it without a claim", TEXT(spec, persistentVolumeReclaimPolicy)),
	COLUMN("Status", "string", 0, "Phase of the volume", CALL(phase)),
	COLUMN("Claim", "string", 0, "Claim that it is bound to", CALL(volume_claim)),
	COLUMN("StorageClass", "string", 0, "Class that it belongs to", CALL(storage_class_of)),
	COLUMN("VolumeAttributesClass", "string", 0, "Class of its attributes", TEXT(spec, volumeAttributesClassName), OR("<unset>")),
	COLUMN("Reason", "string", 0, "Why it is in its phase", TEXT(status, reason)),
	AGE,
	COLUMN("VolumeMode", "string", 1, "Filesystem or Block", TEXT(spec, volumeMode), OR("<unset>")),
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
	COLUMN("Status", "string", 0, "Phase of the claim", CALL(phase)),
	COLUMN("Volume", "string", 0, "Volume that it is bound to", TEXT(spec, volumeName)),
	COLUMN("Capacity", "string", 0, "Size of the volume", CALL(claim_capacity)),
	COLUMN("Access Modes", "string", 0, "How the volume can be mounted", CALL(claim_access_modes)),
	COLUMN("StorageClass", "string", 0, "Class that it asks for", CALL(storage_class_of)),
	COLUMN("VolumeAttributesClass", "string", 0, "Class of the volume's attributes", TEXT(spec, volumeAttributesClassName),
	       OR("<unset>")),
	AGE,
	COLUMN("VolumeMode", "string", 1, "Filesystem or Block", TEXT(spec, volumeMode), OR("<unset>")),
};

/* ---- storage.k8s.io ---- */

static struct val class_name(const struct row *row)
{
	bool is_default = str_eq(cell_annotation(row, STR("storageclass.kubernetes.io/is-default-class")), STR("true")) ||
			  str_eq(cell_annotation(row, STR("storageclass.beta.kubernetes.io/is-default-class")), STR("true"));
	return cell_printf(row, STR_FMT "%s", STR_ARG(val_str(row->object, metadata, name)), is_default ? " (default)" : "");
}

static const struct column storage_class[] = {
	COLUMN_WITH_FORMAT("Name", "string", "name", 0, "Name of the object", CALL(class_name)),
	COLUMN("Provisioner", "string", 0, "Who makes its volumes", TEXT(provisioner)),
	COLUMN("ReclaimPolicy", "string", 0, "What becomes of volumes without a claim", TEXT(reclaimPolicy), OR("Delete")),
	COLUMN("VolumeBindingMode", "string", 0, "When volumes are bound", TEXT(volumeBindingMode), OR("Immediate")),
	COLUMN("AllowVolumeExpansion", "string", 0, "Whether volumes can grow", BOOL(allowVolumeExpansion)),
	AGE,
};

static const struct column volume_attributes_class[] = {
	NAME,
	COLUMN("DriverName", "string", 0, "Driver that understands the parameters", TEXT(driverName)),
	AGE,
};

static const struct column volume_attachment[] = {
	NAME,
	COLUMN_WITH_FORMAT("Attacher", "string", "name", 0, "Driver that attaches the volume", TEXT(spec, attacher)),
	COLUMN("PV", "string", 0, "Volume that is attached", TEXT(spec, source, persistentVolumeName)),
	COLUMN("Node", "string", 0, "Node that it is attached to", TEXT(spec, nodeName)),
	COLUMN("Attached", "boolean", 0, "Whether it is attached", BOOL(status, attached)),
	AGE,
};

static const struct column csi_node[] = { NAME, COLUMN("Drivers", "integer", 0, "Number of drivers on the node", COUNT(spec, drivers)), AGE };

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
	COLUMN("AttachRequired", "boolean", 0, "Whether volumes must be attached first", CALL(attach_required)),
	COLUMN("PodInfoOnMount", "boolean", 0, "Whether it is told about the pod", BOOL(spec, podInfoOnMount)),
	COLUMN("StorageCapacity", "boolean", 0, "Whether the scheduler looks at its capacity", BOOL(spec, storageCapacity)),
	COLUMN("TokenRequests", "string", 0, "Audiences of tokens that it gets", CALL(token_requests)),
	COLUMN("RequiresRepublish", "boolean", 0, "Whether mounts are refreshed", BOOL(spec, requiresRepublish)),
	COLUMN("Modes", "string", 0, "Kinds of volumes that it makes", JOINED(spec, volumeLifecycleModes), OR("<none>")),
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
	COLUMN("Name", "string", 0, "Name of the object", TEXT(metadata, name)),
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
