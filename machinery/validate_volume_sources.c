/*
 * Volume sources that pods and PersistentVolumes share. Most of them name drivers that left Kubernetes long ago; their
 * rules stayed.
 */
#include "codec/atoms.h"
#include "machinery/validate_priv.h"

enum { CSI_DRIVER_MAX = 63, ISCSI_NAME_MAX = 64, QUOBYTE_TENANT_MAX = 64, LUN_MAX = 255, PARTITION_MAX = 255,
       IQN_START_MAX = 256 };

/* A member that must be given, below its own name. */
static void require(struct field_errors *e, const struct field_path *at, struct val source, atom name)
{
	if (val_is_zero(val_member(source, name)))
		field_missing(e, FIELD_STR(at, atom_str(name)));
}

static void require_secret_name(struct field_errors *e, const struct field_path *at, struct val source)
{
	if (val_has(source, secretRef))
		require(e, FIELD(at, "secretRef"), val_get(source, secretRef), A_name);
}

void check_host_path_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	static const str types[] = {
		STR_INIT(""), STR_INIT("BlockDevice"), STR_INIT("CharDevice"), STR_INIT("Directory"),
		STR_INIT("DirectoryOrCreate"), STR_INIT("File"), STR_INIT("FileOrCreate"), STR_INIT("Socket"), { NULL, 0 },
	};
	require(e, at, source, A_path);
	if (!val_has(source, path))
		return;
	check_no_backsteps(e, FIELD(at, "path"), val_str(source, path));
	if (val_has(source, type))
		check_one_of(e, FIELD(at, "type"), val_str(source, type), types);
}

static void check_partition(struct field_errors *e, const struct field_path *at, struct val source)
{
	int64_t partition = val_int(source, partition);
	if (partition < 0 || partition > PARTITION_MAX)
		field_invalid(e, FIELD(at, "partition"), val_get(source, partition),
			      "must be between 1 and 255, inclusive");
}

void check_gce_disk_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_pdName);
	check_partition(e, at, source);
}

void check_aws_disk_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_volumeID);
	check_partition(e, at, source);
}

void check_nfs_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_server);
	require(e, at, source, A_path);
	if (!str_starts(val_str(source, path), STR("/")))
		field_invalid(e, FIELD(at, "path"), VAL_STR(val_str(source, path)), "must be an absolute path");
}

void check_glusterfs_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_endpoints);
	require(e, at, source, A_path);
}

void check_flocker_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	str name = val_str(source, datasetName);
	bool uuid = val_has(source, datasetUUID);

	if (name.n == 0 && !uuid)
		field_required(e, at, "one of datasetName and datasetUUID is required");
	if (name.n && uuid)
		field_invalid(e, at, VAL_LIT("resource"),
			      "datasetName and datasetUUID can not be specified simultaneously");
	if (str_chr(name, '/') >= 0)
		field_invalid(e, FIELD(at, "datasetName"), VAL_STR(name), "must not contain '/'");
}

/* As Go's net.SplitHostPort wants it. */
static bool is_host_port(str s)
{
	ptrdiff_t colon = str_rchr(s, ':'), end;
	str head;

	if (colon < 0)
		return false;
	if (str_starts(s, STR("["))) {
		end = str_chr(s, ']');
		if (end < 0 || end + 1 != colon)
			return false;
		return str_chr(str_span(s.p + 1, (size_t)end - 1), '[') < 0 && str_chr(str_skip(s, (size_t)colon), ']') < 0;
	}
	head = str_head(s, (size_t)colon);
	return str_chr(head, ':') < 0 && str_chr(s, '[') < 0 && str_chr(s, ']') < 0;
}

void check_quobyte_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	str registry = val_str(source, registry), rest = registry, pair;
	bool more = true;

	if (registry.n == 0)
		field_required(e, FIELD(at, "registry"), "must be a host:port pair or multiple pairs separated by commas");
	else if (val_str(source, tenant).n > QUOBYTE_TENANT_MAX)
		field_required(e, FIELD(at, "tenant"), "must be a UUID and may not exceed a length of 64 characters");
	else
		while (more) {
			more = str_cut(rest, ',', &pair, &rest);
			if (!is_host_port(pair))
				field_invalid(e, FIELD(at, "registry"), VAL_STR(registry),
					      "must be a host:port pair or multiple pairs separated by commas");
		}
	require(e, at, source, A_volume);
}

static void check_lun(struct field_errors *e, const struct field_path *at, struct val lun)
{
	if (val_as_int(lun) < 0 || val_as_int(lun) > LUN_MAX)
		field_invalid(e, FIELD(at, "lun"), lun, "must be between 0 and 255, inclusive");
}

void check_fc_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	struct val wwns = val_get(source, targetWWNs), lun = val_get(source, lun);

	if (val_len(wwns) == 0 && val_len(val_get(source, wwids)) == 0)
		field_required(e, FIELD(at, "targetWWNs"), "must specify either targetWWNs or wwids, but not both");
	if (val_len(wwns) && val_len(val_get(source, wwids)))
		field_invalid(e, FIELD(at, "targetWWNs"), wwns, "targetWWNs and wwids can not be specified simultaneously");
	if (val_len(wwns) == 0)
		return;
	if (val_is_nil(lun))
		field_required(e, FIELD(at, "lun"), "lun is required if targetWWNs is specified");
	else
		check_lun(e, at, lun);
}

void check_vsphere_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_volumePath);
}

void check_photon_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_pdID);
}

void check_portworx_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_volumeID);
}

void check_cephfs_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_monitors);
}

void check_azure_file_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_secretName);
	require(e, at, source, A_shareName);
}

void check_azure_disk_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	static const str modes[] = { STR_INIT("None"), STR_INIT("ReadOnly"), STR_INIT("ReadWrite"), { NULL, 0 } };
	static const str kinds[] = { STR_INIT("Dedicated"), STR_INIT("Managed"), STR_INIT("Shared"), { NULL, 0 } };
	static const str managed_uri[] = {
		STR_INIT("/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"),
		{ NULL, 0 },
	};
	static const str blob_uri[] = {
		STR_INIT("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"), { NULL, 0 },
	};
	str uri = val_str(source, diskURI), kind = val_str(source, kind);
	bool managed = str_eq(kind, STR("Managed"));

	require(e, at, source, A_diskName);
	require(e, at, source, A_diskURI);
	if (val_has(source, cachingMode))
		check_one_of(e, FIELD(at, "cachingMode"), val_str(source, cachingMode), modes);
	if (!val_has(source, kind))
		return;
	check_one_of(e, FIELD(at, "kind"), kind, kinds);
	if (!str_starts(uri, managed ? STR("/subscriptions/") : STR("https://")))
		field_not_supported(e, FIELD(at, "diskURI"), VAL_STR(uri), managed ? managed_uri : blob_uri);
}

void check_rbd_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_monitors);
	require(e, at, source, A_image);
}

void check_scaleio_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_gateway);
	require(e, at, source, A_system);
	require(e, at, source, A_volumeName);
}

void check_cinder_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_volumeID);
	require_secret_name(e, at, source);
}

void check_storageos_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_volumeName);
	if (val_has(source, volumeName))
		check_name(e, FIELD(at, "volumeName"), val_str(source, volumeName), name_check_dns1123_label);
	if (val_has(source, volumeNamespace))
		check_name(e, FIELD(at, "volumeNamespace"), val_str(source, volumeNamespace), name_check_dns1123_label);
	require_secret_name(e, at, source);
}

void check_flex_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	require(e, at, source, A_driver);
	VAL_EACH_MEMBER(m, val_get(source, options)) {
		str key = atom_str(m->key), domain, rest;
		str_cut(key, '/', &domain, &rest);
		domain = ascii_lower(e->arena, domain);
		if (str_ends(domain, STR(".kubernetes.io")) || str_ends(domain, STR(".k8s.io")) ||
		    str_eq(domain, STR("kubernetes.io")) ||
		    str_eq(domain, STR("k8s.io")))
			field_invalid(e, FIELD_KEY(FIELD(at, "options"), key), VAL_STR(key),
				      "kubernetes.io and k8s.io namespaces are reserved");
	}
}

/* ---- iSCSI ---- */

static bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool digits_at(str s, size_t from, size_t n)
{
	for (size_t i = from; i < from + n; i++)
		if (i >= s.n || s.p[i] < '0' || s.p[i] > '9')
			return false;
	return true;
}

/* iqn.2001-04.com.example:anything, from here to the end. */
static bool is_iqn(str s)
{
	str naming, unique;
	if (!str_starts(s, STR("iqn.")) || !digits_at(s, 4, 4) || !digits_at(s, 9, 2) || s.n < 12 || s.p[8] != '-' ||
	    s.p[11] != '.')
		return false;
	str_cut(str_skip(s, 12), ':', &naming, &unique);
	if (naming.n == 0 || unique.n == 0)
		return false;
	for (size_t i = 0; i < naming.n; i++)
		if (!is_alnum(naming.p[i]) && naming.p[i] != '-' && naming.p[i] != '.')
			return false;
	for (size_t i = 0; i < unique.n; i++)
		if (strchr(",;*&$| \t\n\f\r", unique.p[i])) /* finds '\0' too, which no name has */
			return false;
	return true;
}

/* eui. or naa. and that many letters and digits. */
static bool is_coded(str s, size_t digits)
{
	for (size_t i = 4; i < s.n; i++)
		if (!is_alnum(s.p[i]))
			return false;
	return s.n == 4 + digits;
}

static bool is_iscsi_name(str s)
{
	if (str_starts(s, STR("eui")))
		return is_coded(s, 16);
	if (str_starts(s, STR("naa")))
		return is_coded(s, 32);
	for (size_t i = 0; i < MIN(s.n, (size_t)IQN_START_MAX); i++) /* the pattern is not bound to the start */
		if (is_iqn(str_skip(s, i)))
			return true;
	return false;
}

static void check_iscsi_name(struct field_errors *e, const struct field_path *at, str name, bool of_pod)
{
	bool known = str_starts(name, STR("iqn")) || str_starts(name, STR("eui")) || str_starts(name, STR("naa"));
	if (!known || !is_iscsi_name(name))
		field_invalid(e, at, VAL_STR(name), "must be valid format%s",
			      !known && of_pod ? " starting with iqn, eui, or naa" : "");
}

void check_iscsi_source(struct field_errors *e, const struct field_path *at, struct val source, const str *volume)
{
	str portal = val_str(source, targetPortal);

	require(e, at, source, A_targetPortal);
	if (volume && val_has(source, initiatorName) && volume->n + 1 + portal.n > ISCSI_NAME_MAX)
		field_invalid(e, FIELD(at, "targetportal"), VAL_STR(portal),
			      "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if"
			      " iscsi.initiatorName is specified.");
	require(e, at, source, A_iqn);
	if (val_has(source, iqn))
		check_iscsi_name(e, FIELD(at, "iqn"), val_str(source, iqn), !volume);
	check_lun(e, at, val_get(source, lun));
	if ((val_bool(source, chapAuthDiscovery) || val_bool(source, chapAuthSession)) && !val_has(source, secretRef))
		field_missing(e, FIELD(at, "secretRef"));
	if (volume)
		require_secret_name(e, at, source);
	if (val_has(source, initiatorName))
		check_iscsi_name(e, FIELD(at, "initiatorname"), val_str(source, initiatorName), !volume);
}

void check_csi_driver_name(struct field_errors *e, const struct field_path *at, str driver)
{
	struct name_errors found;

	if (driver.n == 0) {
		field_missing(e, at);
		return;
	}
	if (driver.n > CSI_DRIVER_MAX)
		field_too_long(e, at, CSI_DRIVER_MAX);
	if (name_check_dns1123_subdomain(ascii_lower(e->arena, driver), &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, at, VAL_STR(driver), STR_FMT, STR_ARG(found.text[i]));
}
