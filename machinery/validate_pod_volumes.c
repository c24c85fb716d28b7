/*
 * Volumes of pods: exactly one source each, and the sources that only pods have. The others are in
 * validate_volume_sources.c.
 */
#include "codec/atoms.h"
#include "machinery/validate_groups.h"
#include "machinery/validate_pod.h"

enum { MODE_MAX = 0777, TOKEN_SECONDS_MIN = 600, ISCSI_NAME_MAX = 64 };

/* ---- files ---- */

static void check_mode(struct field_errors *e, const struct field_path *at, struct val mode)
{
	if (val_as_int(mode) < 0 || val_as_int(mode) > MODE_MAX)
		field_invalid(e, at, mode, "must be a number between 0 and 0777 (octal), both inclusive");
}

static void check_key_to_path(struct field_errors *e, const struct field_path *at, struct val item)
{
	if (val_str(item, key).n == 0)
		field_missing(e, FIELD(at, "key"));
	if (val_str(item, path).n == 0)
		field_missing(e, FIELD(at, "path"));
	check_local_path(e, FIELD(at, "path"), val_str(item, path));
	check_mode(e, FIELD(at, "mode"), val_get(item, mode));
}

static void check_keys_to_paths(struct field_errors *e, const struct field_path *at, struct val items)
{
	size_t i = 0;
	VAL_EACH(item, items)
		check_key_to_path(e, FIELD_INDEX(at, i++), *item);
}

static void check_downward_file(struct field_errors *e, const struct field_path *at, struct val file)
{
	static const str paths[] = {
		STR_INIT("metadata.annotations"), STR_INIT("metadata.labels"), STR_INIT("metadata.name"),
		STR_INIT("metadata.namespace"), STR_INIT("metadata.uid"), { NULL, 0 },
	};
	if (val_str(file, path).n == 0)
		field_missing(e, FIELD(at, "path"));
	check_local_path(e, FIELD(at, "path"), val_str(file, path));
	if (val_has(file, fieldRef)) {
		check_field_ref(e, FIELD(at, "fieldRef"), val_get(file, fieldRef), paths);
		if (val_has(file, resourceFieldRef))
			field_invalid(e, at, VAL_LIT("resource"),
				      "fieldRef and resourceFieldRef can not be specified simultaneously");
	} else if (val_has(file, resourceFieldRef)) {
		check_resource_ref(e, FIELD(at, "resourceFieldRef"), val_get(file, resourceFieldRef), true);
	} else {
		field_required(e, at, "one of fieldRef and resourceFieldRef is required");
	}
	check_mode(e, FIELD(at, "mode"), val_get(file, mode));
}

/* ---- sources with one object ---- */

/* One signature for all sources, so that a table can list them. */
typedef void pod_source_check(struct pod_check *c, const struct field_path *at, struct val source, struct val volume);

#define PLAIN(name, check)                                                                    \
	static void name(struct pod_check *c, const struct field_path *at, struct val source, \
			 struct val volume __attribute__((unused)))                           \
	{                                                                                     \
		check(c->e, at, source);                                                      \
	}

PLAIN(host_path, check_host_path_source)
PLAIN(gce_disk, check_gce_disk_source)
PLAIN(aws_disk, check_aws_disk_source)
PLAIN(nfs, check_nfs_source)
PLAIN(glusterfs, check_glusterfs_source)
PLAIN(flocker, check_flocker_source)
PLAIN(rbd, check_rbd_source)
PLAIN(cinder, check_cinder_source)
PLAIN(cephfs, check_cephfs_source)
PLAIN(quobyte, check_quobyte_source)
PLAIN(fc, check_fc_source)
PLAIN(flex, check_flex_source)
PLAIN(azure_file, check_azure_file_source)
PLAIN(vsphere, check_vsphere_source)
PLAIN(photon, check_photon_source)
PLAIN(portworx, check_portworx_source)
PLAIN(azure_disk, check_azure_disk_source)
PLAIN(storageos, check_storageos_source)
PLAIN(scaleio, check_scaleio_source)
#undef PLAIN

#define SOURCE(name)                                                                          \
	static void name(struct pod_check *c, const struct field_path *at, struct val source, \
			 struct val volume __attribute__((unused)))

SOURCE(empty_dir)
{
	if (quantity_of(val_get(source, sizeLimit)).nanos < 0)
		field_forbidden(c->e, FIELD(at, "sizeLimit"), "SizeLimit field must be a valid resource quantity");
}

SOURCE(git_repo)
{
	if (val_str(source, repository).n == 0)
		field_missing(c->e, FIELD(at, "repository"));
	check_descending_path(c->e, FIELD(at, "directory"), val_str(source, directory));
}

SOURCE(secret)
{
	if (val_str(source, secretName).n == 0)
		field_missing(c->e, FIELD(at, "secretName"));
	check_mode(c->e, FIELD(at, "defaultMode"), val_get(source, defaultMode));
	check_keys_to_paths(c->e, FIELD(at, "items"), val_get(source, items));
}

SOURCE(config_map)
{
	if (val_str(source, name).n == 0)
		field_missing(c->e, FIELD(at, "name"));
	check_mode(c->e, FIELD(at, "defaultMode"), val_get(source, defaultMode));
	check_keys_to_paths(c->e, FIELD(at, "items"), val_get(source, items));
}

SOURCE(iscsi) { check_iscsi_source(c->e, at, source, NULL); }

SOURCE(claim)
{
	if (val_str(source, claimName).n == 0)
		field_missing(c->e, FIELD(at, "claimName"));
}

SOURCE(downward)
{
	check_mode(c->e, FIELD(at, "defaultMode"), val_get(source, defaultMode));
	VAL_EACH(file, val_get(source, items)) /* Kubernetes gives all files the path of the source */
		check_downward_file(c->e, at, *file);
}

SOURCE(csi)
{
	str secret = val_str(source, nodePublishSecretRef, name);
	check_csi_driver_name(c->e, FIELD(at, "driver"), val_str(source, driver));
	if (!val_has(source, nodePublishSecretRef))
		return;
	if (secret.n == 0)
		field_missing(c->e, FIELD(FIELD(at, "nodePublishSecretRef"), "name"));
	else
		check_name(c->e, FIELD(at, "name"), secret, name_check_dns1123_subdomain);
}

SOURCE(image)
{
	static const str policies[] = { STR_INIT("Always"), STR_INIT("IfNotPresent"), STR_INIT("Never"), { NULL, 0 } };
	if (c->is_pod && val_str(source, reference).n == 0)
		field_missing(c->e, FIELD(at, "reference"));
	check_required_one_of(c->e, FIELD(at, "pullPolicy"), val_str(source, pullPolicy), policies);
}

/*
 * Fields of ObjectMeta in the order of the Go struct; only labels and annotations may be given in a template for a
 * claim.
 */
static void check_template_meta(struct field_errors *e, const struct field_path *at, struct val meta)
{
	const struct type *t = TYPE(meta_v1, ObjectMeta);

	check_annotations(e, FIELD(at, "annotations"), val_get(meta, annotations));
	check_labels(e, FIELD(at, "labels"), val_get(meta, labels));
	for (const struct field *f = t->fields; f < t->fields + t->n_fields; f++) {
		if (f->name == A_labels || f->name == A_annotations || !val_exists(val_member(meta, f->name)))
			continue;
		field_forbidden(e, f->name == A_uid ? FIELD(at, "uID") : FIELD_STR(at, atom_str(f->name)), "cannot be set");
	}
}

static void ephemeral(struct pod_check *c, const struct field_path *at, struct val source, struct val volume)
{
	struct val template = val_get(source, volumeClaimTemplate);
	const struct field_path *below = FIELD(at, "volumeClaimTemplate");
	str pod = val_str(c->meta, name), name = val_str(volume, name);
	struct name_errors found;

	if (!val_exists(template)) {
		field_missing(c->e, below);
	} else {
		check_template_meta(c->e, FIELD(below, "metadata"), val_get(template, metadata));
		check_claim_spec(c->e, FIELD(below, "spec"), val_get(template, spec), VAL_EMPTY);
	}
	if (pod.n == 0 || name.n == 0)
		return;
	str claim_name = arena_printf(c->e->arena, STR_FMT "-" STR_FMT, STR_ARG(pod), STR_ARG(name));
	if (name_check_dns1123_subdomain(claim_name, &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(c->e, FIELD(at->parent, "name"), VAL_STR(name),
				      "PVC name \"" STR_FMT "\": " STR_FMT, STR_ARG(claim_name),
				      STR_ARG(found.text[i]));
}

/* ---- projected ---- */

/* Two sources must not write the same file; shown is how Kubernetes names the later one. */
static void claim_path(struct pod_check *c, const struct field_path *at, struct map *taken, str path, str shown)
{
	if (path.n && !set_add(taken, path))
		field_invalid(c->e, at, VAL_STR(shown), "conflicting duplicate paths");
}

/* A Secret or a ConfigMap. */
static void check_named_projection(struct pod_check *c, const struct field_path *at, const struct field_path *volume,
				   struct map *taken, struct val source)
{
	size_t i = 0;
	if (val_str(source, name).n == 0)
		field_missing(c->e, FIELD(at, "name"));
	VAL_EACH(item, val_get(source, items)) {
		check_key_to_path(c->e, FIELD_INDEX(FIELD(at, "items"), i++), *item);
		claim_path(c, volume, taken, val_str(*item, path), val_str(source, name));
	}
}

static void check_token_projection(struct pod_check *c, const struct field_path *at, const struct field_path *volume,
				   struct val source)
{
	struct val seconds = val_get(source, expirationSeconds);
	str path = val_str(source, path);

	if (val_as_int(seconds) < TOKEN_SECONDS_MIN)
		field_invalid(c->e, FIELD(at, "expirationSeconds"), seconds,
			      "may not specify a duration less than 10 minutes");
	if (val_as_int(seconds) > INT64_C(1) << 32)
		field_invalid(c->e, FIELD(at, "expirationSeconds"), seconds,
			      "may not specify a duration larger than 2^32 seconds");
	if (path.n == 0)
		field_missing(c->e, FIELD(volume, "path"));
	else if (!c->foreign_token_path)
		check_local_path(c->e, FIELD(volume, "path"), path);
}

static void check_bundle_projection(struct pod_check *c, const struct field_path *at, const struct field_path *volume,
				    struct map *taken, struct val source)
{
	str path = val_str(source, path), name = val_str(source, name), signer = val_str(source, signerName);
	struct val selector = val_get(source, labelSelector);

	if (val_has(source, name) && val_has(source, signerName)) {
		field_invalid(c->e, at, internal_form(c->e->arena, TYPE(core_v1, ClusterTrustBundleProjection), source),
			      "only one of name and signerName may be used");
	} else if (val_has(source, name)) {
		if (name.n == 0)
			field_required(c->e, FIELD(at, "name"), "must be a valid object name");
		check_bundle_reference(c->e, FIELD(at, "name"), name);
		if (val_exists(selector))
			field_invalid(c->e, FIELD(at, "labelSelector"), internal_form(c->e->arena, TYPE(meta_v1, LabelSelector), selector),
				      "labelSelector must be unset if name is specified");
	} else if (val_has(source, signerName)) {
		if (signer.n == 0)
			field_required(c->e, FIELD(at, "signerName"), "must be a valid signer name");
		check_signer_name(c->e, FIELD(at, "signerName"), signer);
		check_label_selector(c->e, FIELD(at, "labelSelector"), selector, false);
	} else {
		field_required(c->e, at, "either name or signerName must be specified");
	}
	if (path.n == 0)
		field_missing(c->e, FIELD(at, "path"));
	check_local_path(c->e, FIELD(at, "path"), path);
	if (!set_add(taken, path))
		field_invalid(c->e, volume, VAL_STR(path), "conflicting duplicate paths");
}

static void check_projection(struct pod_check *c, const struct field_path *at, const struct field_path *volume,
			     struct map *taken, struct val p)
{
	unsigned n = 0;
	if (val_has(p, secret)) {
		n++;
		check_named_projection(c, FIELD(at, "secret"), volume, taken, val_get(p, secret));
	}
	if (val_has(p, configMap)) {
		n++;
		check_named_projection(c, FIELD(at, "configMap"), volume, taken, val_get(p, configMap));
	}
	if (val_has(p, downwardAPI)) {
		n++;
		VAL_EACH(file, val_get(p, downwardAPI, items)) {
			check_downward_file(c->e, FIELD(at, "downwardAPI"), *file);
			claim_path(c, volume, taken, val_str(*file, path), val_str(*file, path));
		}
	}
	if (val_has(p, serviceAccountToken)) {
		n++;
		check_token_projection(c, FIELD(at, "serviceAccountToken"), volume, val_get(p, serviceAccountToken));
	}
	if (val_has(p, clusterTrustBundle)) {
		n++;
		check_bundle_projection(c, FIELD(at, "clusterTrustBundle"), volume, taken, val_get(p, clusterTrustBundle));
	}
	if (n > 1)
		field_forbidden(c->e, at, "may not specify more than 1 volume type per source");
}

SOURCE(projected)
{
	CLEANUP(map_done) struct map taken = MAP_INIT;
	size_t i = 0;

	check_mode(c->e, FIELD(at, "defaultMode"), val_get(source, defaultMode));
	VAL_EACH(p, val_get(source, sources))
		check_projection(c, FIELD_INDEX(FIELD(at, "sources"), i++), at, &taken, *p);
}

#undef SOURCE

/* ---- all of them ---- */

/* In Kubernetes' order: the first source is checked, every further one is one too many. */
static const struct {
	uint16_t name;
	pod_source_check *check;
	str shown, surplus; /* names in errors, where they are not the field's */
} sources[] = {
	{ A_emptyDir, empty_dir, STR_INIT(""), STR_INIT("") },
	{ A_hostPath, host_path, STR_INIT(""), STR_INIT("") },
	{ A_gitRepo, git_repo, STR_INIT(""), STR_INIT("") },
	{ A_gcePersistentDisk, gce_disk, STR_INIT("persistentDisk"), STR_INIT("") },
	{ A_awsElasticBlockStore, aws_disk, STR_INIT(""), STR_INIT("") },
	{ A_secret, secret, STR_INIT(""), STR_INIT("") },
	{ A_nfs, nfs, STR_INIT(""), STR_INIT("") },
	{ A_iscsi, iscsi, STR_INIT(""), STR_INIT("") },
	{ A_glusterfs, glusterfs, STR_INIT(""), STR_INIT("") },
	{ A_flocker, flocker, STR_INIT(""), STR_INIT("") },
	{ A_persistentVolumeClaim, claim, STR_INIT(""), STR_INIT("") },
	{ A_rbd, rbd, STR_INIT(""), STR_INIT("") },
	{ A_cinder, cinder, STR_INIT(""), STR_INIT("") },
	{ A_cephfs, cephfs, STR_INIT(""), STR_INIT("cephFS") },
	{ A_quobyte, quobyte, STR_INIT(""), STR_INIT("") },
	{ A_downwardAPI, downward, STR_INIT(""), STR_INIT("downwarAPI") },
	{ A_fc, fc, STR_INIT(""), STR_INIT("") },
	{ A_flexVolume, flex, STR_INIT(""), STR_INIT("") },
	{ A_configMap, config_map, STR_INIT(""), STR_INIT("") },
	{ A_azureFile, azure_file, STR_INIT(""), STR_INIT("") },
	{ A_vsphereVolume, vsphere, STR_INIT(""), STR_INIT("") },
	{ A_photonPersistentDisk, photon, STR_INIT(""), STR_INIT("") },
	{ A_portworxVolume, portworx, STR_INIT(""), STR_INIT("") },
	{ A_azureDisk, azure_disk, STR_INIT(""), STR_INIT("") },
	{ A_storageos, storageos, STR_INIT(""), STR_INIT("") },
	{ A_projected, projected, STR_INIT(""), STR_INIT("") },
	{ A_scaleIO, scaleio, STR_INIT(""), STR_INIT("") },
	{ A_csi, csi, STR_INIT(""), STR_INIT("") },
	{ A_ephemeral, ephemeral, STR_INIT(""), STR_INIT("") },
	{ A_image, image, STR_INIT(""), STR_INIT("") },
};

static void check_sources(struct pod_check *c, const struct field_path *at, struct val volume)
{
	unsigned n = 0;
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		struct val source = val_member(volume, sources[i].name);
		str name = atom_str(sources[i].name);
		if (!val_exists(source))
			continue;
		if (n++)
			field_forbidden(c->e, FIELD_STR(at, sources[i].surplus.n ? sources[i].surplus : name),
					"may not specify more than 1 volume type");
		else
			sources[i].check(c, FIELD_STR(at, sources[i].shown.n ? sources[i].shown : name), source, volume);
		if (sources[i].name == A_iscsi && val_has(source, initiatorName) &&
		    val_str(volume, name).n + 1 + val_str(source, targetPortal).n > ISCSI_NAME_MAX)
			field_invalid(c->e, FIELD(at, "name"), VAL_STR(val_str(volume, name)),
				      "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters"
				      " if iscsi.initiatorName is specified.");
	}
	if (n == 0)
		field_required(c->e, at, "must specify a volume type");
}

/* The claims that will be made for ephemeral volumes: only a Pod with a name has them. */
static void gather_made_claims(struct pod_check *c, struct val volumes, struct map *made)
{
	str pod = val_str(c->meta, name);
	if (pod.n == 0)
		return;
	VAL_EACH(v, volumes)
		if (val_has(*v, ephemeral))
			set_add(made, arena_printf(c->e->arena, STR_FMT "-" STR_FMT, STR_ARG(pod),
						   STR_ARG(val_str(*v, name))));
}

void check_volumes(struct pod_check *c, const struct field_path *at, struct val volumes)
{
	CLEANUP(map_done) struct map made = MAP_INIT;
	size_t i = 0;

	gather_made_claims(c, volumes, &made);
	VAL_EACH(v, volumes) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str name = val_str(*v, name), claim_name = val_str(*v, persistentVolumeClaim, claimName);
		size_t errors_before = c->e->n;

		check_sources(c, item, *v);
		if (name.n == 0)
			field_missing(c->e, FIELD(item, "name"));
		else
			check_name(c->e, FIELD(item, "name"), name, name_check_dns1123_label);
		if (map_get(&c->volumes, name))
			field_duplicate(c->e, FIELD(item, "name"), VAL_STR(name));
		if (c->e->n == errors_before)
			map_put(&c->volumes, name, (void *)v);
		if (val_has(*v, persistentVolumeClaim) && set_has(&made, claim_name))
			field_invalid(c->e, FIELD(FIELD(item, "persistentVolumeClaim"), "claimName"), VAL_STR(claim_name),
				      "must not reference a PVC that gets created for an ephemeral volume");
	}
}
