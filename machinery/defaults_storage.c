/* Defaults of volumes, claims and the kinds of storage.k8s.io. */
#include "codec/atoms.h"
#include "machinery/validate_groups.h"

static struct val default_host_path(struct arena *a, struct val source)
{
	return default_member(a, source, A_type, VAL_LIT(""));
}

/* Also of volumes that are inline in a VolumeAttachment. */
static struct val default_volume_spec(struct arena *a, struct val spec)
{
	spec = default_within(a, spec, A_capacity, default_resource_list);
	return default_within(a, spec, A_hostPath, default_host_path);
}

struct val default_persistent_volume(struct arena *a, struct val volume)
{
	struct val spec = default_volume_spec(a, val_get(volume, spec));

	spec = default_member(a, spec, A_persistentVolumeReclaimPolicy, VAL_LIT("Retain"));
	spec = default_member(a, spec, A_volumeMode, VAL_LIT("Filesystem"));
	volume = val_with(a, volume, spec, spec);
	return val_with(a, volume, default_member(a, val_get(volume, status), A_phase, VAL_LIT("Pending")), status);
}

struct val default_claim(struct arena *a, struct val claim)
{
	struct val status = default_member(a, val_get(claim, status), A_phase, VAL_LIT("Pending"));

	status = default_within(a, status, A_capacity, default_resource_list);
	status = default_within(a, status, A_allocatedResources, default_resource_list);
	claim = val_with(a, claim, default_claim_spec(a, val_get(claim, spec)), spec);
	return val_with(a, claim, status, status);
}

struct val default_storage_class(struct arena *a, struct val class)
{
	class = default_member(a, class, A_reclaimPolicy, VAL_LIT("Delete"));
	return default_member(a, class, A_volumeBindingMode, VAL_LIT("Immediate"));
}

static struct val default_attachment_source(struct arena *a, struct val source)
{
	return default_within(a, source, A_inlineVolumeSpec, default_volume_spec);
}

static struct val default_attachment_spec(struct arena *a, struct val spec)
{
	return default_within(a, spec, A_source, default_attachment_source);
}

struct val default_attachment(struct arena *a, struct val attachment)
{
	return default_within(a, attachment, A_spec, default_attachment_spec);
}

struct val default_csi_driver(struct arena *a, struct val driver)
{
	struct val spec = val_get(driver, spec);

	spec = default_member(a, spec, A_attachRequired, val_of_bool(true));
	spec = default_member(a, spec, A_podInfoOnMount, val_of_bool(false));
	spec = default_member(a, spec, A_storageCapacity, val_of_bool(false));
	spec = default_member(a, spec, A_fsGroupPolicy, VAL_LIT("ReadWriteOnceWithFSType"));
	if (val_len(val_get(spec, volumeLifecycleModes)) == 0)
		spec = val_with(a, spec, LIST(a, VAL_LIT("Persistent")), volumeLifecycleModes);
	spec = default_member(a, spec, A_requiresRepublish, val_of_bool(false));
	spec = default_member(a, spec, A_seLinuxMount, val_of_bool(false));
	return val_with(a, driver, spec, spec);
}
