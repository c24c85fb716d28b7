/* PersistentVolumeClaimSpec: in claims, in ephemeral volumes of pods, in StatefulSets. */
#include "codec/atoms.h"
#include "machinery/validate_priv.h"

static const str access_modes[] = {
	STR_INIT("ReadOnlyMany"), STR_INIT("ReadWriteMany"), STR_INIT("ReadWriteOnce"), STR_INIT("ReadWriteOncePod"),
	{ NULL, 0 },
};

void check_access_modes(struct field_errors *e, const struct field_path *at, struct val modes)
{
	bool exclusive = false, other = false;
	VAL_EACH(m, modes) {
		str mode = val_as_str(*m);
		check_one_of(e, at, mode, access_modes);
		if (str_eq(mode, STR("ReadWriteOncePod")))
			exclusive = true;
		else if (str_in(mode, access_modes))
			other = true;
	}
	if (exclusive && other)
		field_forbidden(e, at, "may not use ReadWriteOncePod with other access modes");
}

void check_volume_mode(struct field_errors *e, const struct field_path *at, struct val mode)
{
	static const str modes[] = { STR_INIT("Block"), STR_INIT("Filesystem"), { NULL, 0 } };
	if (val_exists(mode))
		check_one_of(e, at, val_as_str(mode), modes);
}

static void check_storage_request(struct field_errors *e, const struct field_path *at, struct val spec)
{
	struct val storage = val_find(val_get(spec, resources, requests), STR("storage"));

	if (!val_exists(storage))
		field_missing(e, at);
	else if (quantity_of(storage).nanos <= 0)
		field_invalid(e, at, storage, "must be greater than zero");
}

static void check_data_source(struct field_errors *e, const struct field_path *at, struct val source, bool allow_bad_group)
{
	str group = val_str(source, apiGroup), kind = val_str(source, kind);

	if (val_str(source, name).n == 0)
		field_missing(e, FIELD(at, "name"));
	if (kind.n == 0)
		field_missing(e, FIELD(at, "kind"));
	if (group.n == 0 && !str_eq(kind, STR("PersistentVolumeClaim")))
		field_invalid(e, at, VAL_STR(kind),
			      "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
	if (group.n && !allow_bad_group)
		check_name(e, FIELD(at, "apiGroup"), group, name_check_dns1123_subdomain);
	if (val_str(source, namespace).n)
		check_name(e, FIELD(at, "namespace"), val_str(source, namespace), name_check_dns1123_label);
}

static bool same_source(struct val a, struct val b)
{
	return val_equal(val_get(a, apiGroup), val_get(b, apiGroup)) && str_eq(val_str(a, kind), val_str(b, kind)) &&
	       str_eq(val_str(a, name), val_str(b, name));
}

static void check_data_sources(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	struct val source = val_get(spec, dataSource), ref = val_get(spec, dataSourceRef);
	bool allow = val_has(old, dataSource, apiGroup) || val_has(old, dataSourceRef, apiGroup);
	/* The value that Kubernetes shows here is a path, which has no public members. */
	struct val shown = VAL_EMPTY_OBJECT;

	if (val_exists(source))
		check_data_source(e, FIELD(at, "dataSource"), source, allow);
	if (val_exists(ref))
		check_data_source(e, FIELD(at, "dataSourceRef"), ref, allow);
	if (!val_exists(source) || !val_exists(ref))
		return;
	if (val_str(ref, namespace).n)
		field_invalid(e, at, shown, "may not be specified when dataSourceRef.namespace is specified");
	else if (!same_source(source, ref))
		field_invalid(e, at, shown, "must match dataSourceRef");
}

static bool selector_is_bad(struct arena *a, struct val selector)
{
	struct field_errors found;
	field_errors_init(&found, a);
	check_label_selector(&found, NULL, selector, false);
	return found.n > 0;
}

static void check_class_name(struct field_errors *e, const struct field_path *at, str name)
{
	if (name.n)
		check_name(e, at, name, name_check_dns1123_subdomain);
}

void check_claim_spec(struct field_errors *e, const struct field_path *at, struct val spec, struct val old)
{
	if (val_len(val_get(spec, accessModes)) == 0)
		field_required(e, FIELD(at, "accessModes"), "at least 1 access mode is required");
	if (val_has(spec, selector))
		check_label_selector(e, FIELD(at, "selector"), val_get(spec, selector),
				     selector_is_bad(e->arena, val_get(old, selector)));
	check_access_modes(e, FIELD(at, "accessModes"), val_get(spec, accessModes));
	check_storage_request(e, FIELD_KEY(FIELD(at, "resources"), STR("storage")), spec);
	check_class_name(e, FIELD(at, "storageClassName"), val_str(spec, storageClassName));
	check_volume_mode(e, FIELD(at, "volumeMode"), val_get(spec, volumeMode));
	check_data_sources(e, at, spec, old);
	check_class_name(e, FIELD(at, "volumeAttributesClassName"), val_str(spec, volumeAttributesClassName));
}
