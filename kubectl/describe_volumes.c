/* Volumes of pods: a row per kind of volume, and per line that is said of it. */
#include "kubectl/describe.h"

enum how { TEXT, BOOL, COMMAS, OR_NONE, OR_UNSET, IF_GIVEN };

struct line {
	const char *label;
	const char *field;
	enum how how;
};

static const struct volume {
	const char *name;            /* of the member */
	const char *type;
	struct line lines[8];
} volumes[] = {
	{ "hostPath", "HostPath (bare host directory volume)", { { "Path", "path", TEXT }, { "HostPathType", "type", OR_NONE } } },
	{ "emptyDir", "EmptyDir (a temporary directory that shares a pod's lifetime)", { { "Medium", "medium", TEXT }, { "SizeLimit", "sizeLimit", OR_UNSET } } },
	{ "secret", "Secret (a volume populated by a Secret)", { { "SecretName", "secretName", TEXT }, { "Optional", "optional", BOOL } } },
	{ "configMap", "ConfigMap (a volume populated by a ConfigMap)", { { "Name", "name", TEXT }, { "Optional", "optional", BOOL } } },
	{ "nfs", "NFS (an NFS mount that lasts the lifetime of a pod)",
	  { { "Server", "server", TEXT }, { "Path", "path", TEXT }, { "ReadOnly", "readOnly", BOOL } } },
	{ "persistentVolumeClaim", "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
	  { { "ClaimName", "claimName", TEXT }, { "ReadOnly", "readOnly", BOOL } } },
	{ "fc", "FC (a Fibre Channel disk)",
	  { { "TargetWWNs", "targetWWNs", COMMAS }, { "LUN", "lun", OR_NONE }, { "FSType", "fsType", TEXT }, { "ReadOnly", "readOnly", BOOL } } },
	{ "csi", "CSI (a Container Storage Interface (CSI) volume source)",
	  { { "Driver", "driver", TEXT }, { "FSType", "fsType", TEXT }, { "VolumeHandle", "volumeHandle", IF_GIVEN }, { "ReadOnly", "readOnly", BOOL } } },
	{ "image", "Image (a container image or OCI artifact)", { { "Reference", "reference", TEXT }, { "PullPolicy", "pullPolicy", TEXT } } },
	{ "local", "LocalVolume (a persistent volume backed by local storage on a node)", { { "Path", "path", TEXT } } },
	{ "gitRepo", "GitRepo (a volume that is pulled from git when the pod is created)",
	  { { "Repository", "repository", TEXT }, { "Revision", "revision", TEXT } } },
};

static str value_of(struct ktl *k, struct val v, enum how how)
{
	switch (how) {
	case BOOL: return val_as_bool(v) ? STR("true") : STR("false");
	case COMMAS: return ktl_join(k, v, ", ");
	case OR_NONE: return val_exists(v) ? ktl_plain(k, v) : STR("<none>");
	case OR_UNSET: return val_exists(v) ? ktl_plain(k, v) : STR("<unset>");
	case TEXT:
	case IF_GIVEN: break;
	}
	return ktl_plain(k, v);
}

static void say_attributes(struct ktl_page *p, struct val map)
{
	bool first = true;
	ktl_say(p, 2, "VolumeAttributes:\t");
	if (!val_len(map))
		ktl_say(p, 0, "<none>\n");
	VAL_EACH_MEMBER(m, map) {
		ktl_say(p, 0, "%s" STR_FMT "=" STR_FMT "\n", first ? "" : "    \t", STR_ARG(atom_str(m->key)), STR_ARG(val_as_str(m->val)));
		first = false;
	}
}

static void say_projected(struct ktl_page *p, struct val v)
{
	ktl_say(p, 2, "Type:\tProjected (a volume that contains injected data from multiple sources)\n");
	VAL_EACH(s, val_get(v, sources)) {
		struct val secret = val_get(*s, secret), map = val_get(*s, configMap), token = val_get(*s, serviceAccountToken);
		if (val_exists(secret))
			ktl_say(p, 2, "SecretName:\t" STR_FMT "\n    Optional:\t%s\n", STR_ARG(val_str(secret, name)), val_bool(secret, optional) ? "true" : "false");
		else if (val_has(*s, downwardAPI))
			ktl_say(p, 2, "DownwardAPI:\ttrue\n");
		else if (val_exists(map))
			ktl_say(p, 2, "ConfigMapName:\t" STR_FMT "\n    Optional:\t%s\n", STR_ARG(val_str(map, name)), val_bool(map, optional) ? "true" : "false");
		else if (val_exists(token))
			ktl_say(p, 2, "TokenExpirationSeconds:\t%lld\n", (long long)val_int(token, expirationSeconds));
	}
}

static void say_downward(struct ktl_page *p, struct val v)
{
	ktl_say(p, 2, "Type:\tDownwardAPI (a volume populated by information about the pod)\n    Items:\n");
	VAL_EACH(item, val_get(v, items)) {
		str path = val_str(*item, path);
		if (val_has(*item, fieldRef))
			ktl_say(p, 3, STR_FMT " -> " STR_FMT "\n", STR_ARG(val_str(*item, fieldRef, fieldPath)), STR_ARG(path));
		if (val_has(*item, resourceFieldRef))
			ktl_say(p, 3, STR_FMT " -> " STR_FMT "\n", STR_ARG(val_str(*item, resourceFieldRef, resource)), STR_ARG(path));
	}
}

void ktl_say_volume_source(struct ktl_page *p, struct val v)
{
	for (size_t i = 0; i < ARRAY_LEN(volumes); i++) {
		struct val source = val_find(v, str_of(volumes[i].name));
		if (!val_exists(source))
			continue;
		ktl_say(p, 2, "Type:\t%s\n", volumes[i].type);
		for (const struct line *l = volumes[i].lines; l->label; l++)
			if (l->how != IF_GIVEN || val_exists(val_find(source, str_of(l->field))))
				ktl_say(p, 2, "%s:\t" STR_FMT "\n", l->label, STR_ARG(value_of(p->k, val_find(source, str_of(l->field)), l->how)));
		if (ktl_is(volumes[i].name, "csi"))
			say_attributes(p, val_get(source, volumeAttributes));
		return;
	}
	if (val_has(v, projected))
		say_projected(p, val_get(v, projected));
	else if (val_has(v, downwardAPI))
		say_downward(p, val_get(v, downwardAPI));
	else if (val_has(v, ephemeral))
		ktl_say(p, 2, "Type:\tEphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)\n");
	else
		ktl_say(p, 1, "<unknown>\n");
}

void ktl_say_volumes(struct ktl_page *p, struct val list, const char *space)
{
	if (!val_len(list)) {
		ktl_say(p, 0, "%sVolumes:\t<none>\n", space);
		return;
	}
	ktl_say(p, 0, "%sVolumes:\n", space);
	VAL_EACH(v, list) {
		ktl_say(p, 1, "%s" STR_FMT ":\n", space[0] ? " " : "", STR_ARG(val_str(*v, name)));
		ktl_say_volume_source(p, *v);
	}
}
