/*
 * Security contexts of pods and containers: users, profiles, sysctls. What depends on the operating system is in
 * validate_pod_os.c.
 */
#include "codec/atoms.h"
#include "machinery/validate_pod.h"

enum { APP_ARMOR_PROFILE_MAX = 4095, SYSCTL_MAX = 253 };

static const str profile_types[] = { STR_INIT("Localhost"), STR_INIT("RuntimeDefault"), STR_INIT("Unconfined"),
				     { NULL, 0 } };

#define SECCOMP_POD_KEY STR("seccomp.security.alpha.kubernetes.io/pod")
#define SECCOMP_CONTAINER_PREFIX STR("container.seccomp.security.alpha.kubernetes.io/")
#define APP_ARMOR_PREFIX STR("container.apparmor.security.beta.kubernetes.io/")

bool pod_uses_host_users(struct val spec) { return !val_has(spec, hostUsers) || val_bool(spec, hostUsers); }

static void check_id(struct field_errors *e, const struct field_path *at, struct val id)
{
	struct name_errors found;
	if (val_exists(id) && name_check_id(val_as_int(id), &found))
		field_invalid(e, at, id, STR_FMT, STR_ARG(found.text[0]));
}

/* ---- profiles ---- */

static void check_seccomp_profile(struct field_errors *e, const struct field_path *at, struct val profile)
{
	str type = val_str(profile, type);

	if (!val_exists(profile))
		return;
	if (type.n == 0)
		field_required(e, FIELD(at, "type"), "type is required when seccompProfile is set");
	else
		check_one_of(e, FIELD(at, "type"), type, profile_types);
	if (!str_eq(type, STR("Localhost"))) {
		if (val_has(profile, localhostProfile))
			field_invalid(e, FIELD(at, "localhostProfile"),
				      internal_form(e->arena, TYPE(core_v1, SeccompProfile), profile),
				      "can only be set when seccomp type is Localhost");
	} else if (!val_has(profile, localhostProfile)) {
		field_required(e, FIELD(at, "localhostProfile"), "must be set when seccomp type is Localhost");
	} else {
		check_descending_path(e, FIELD(at, "localhostProfile"), val_str(profile, localhostProfile));
	}
}

static void check_app_armor_local(struct field_errors *e, const struct field_path *at, struct val name)
{
	str text = val_as_str(name);

	if (!val_exists(name)) {
		field_required(e, at, "must be set when AppArmor type is Localhost");
		return;
	}
	if (str_is_padded(text))
		field_invalid(e, at, name, "must not be padded with whitespace");
	else if (text.n == 0)
		field_required(e, at, "must be set when AppArmor type is Localhost");
	if (text.n > APP_ARMOR_PROFILE_MAX)
		field_too_long(e, at, APP_ARMOR_PROFILE_MAX);
}

static void check_app_armor_profile(struct field_errors *e, const struct field_path *at, struct val profile)
{
	str type = val_str(profile, type);

	if (!val_exists(profile))
		return;
	if (type.n == 0)
		field_required(e, FIELD(at, "type"), "type is required when appArmorProfile is set");
	else if (!str_in(type, profile_types))
		field_not_supported(e, FIELD(at, "type"), VAL_STR(type), profile_types);
	else if (str_eq(type, STR("Localhost")))
		check_app_armor_local(e, FIELD(at, "localhostProfile"), val_get(profile, localhostProfile));
	else if (val_has(profile, localhostProfile))
		field_invalid(e, FIELD(at, "localhostProfile"), val_get(profile, localhostProfile),
			      "can only be set when AppArmor type is Localhost");
}

/* ---- sysctls ---- */

static bool is_sysctl_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/* Segments with '.' or '/' between them; they begin and end with a letter or digit and can have '-' and '_' inside. */
static bool is_sysctl(str name)
{
	if (name.n == 0 || name.n > SYSCTL_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool inside = i > 0 && i < name.n - 1;
		if (is_sysctl_char(c))
			continue;
		if (!inside || !strchr("-_./", c) || c == '\0')
			return false;
		char before = name.p[i - 1], after = name.p[i + 1];
		bool separator = c == '.' || c == '/';
		if (separator && (!is_sysctl_char(before) || !is_sysctl_char(after)))
			return false;
		if (!separator && (before == '.' || before == '/' || after == '.' || after == '/'))
			return false;
	}
	return true;
}

/* With dots: a name whose first separator is a slash has slashes and dots the other way round. */
static str normal_sysctl(char out[SYSCTL_MAX], str name)
{
	ptrdiff_t dot = str_chr(name, '.'), slash = str_chr(name, '/');
	name = str_head(name, SYSCTL_MAX);
	for (size_t i = 0; i < name.n; i++)
		out[i] = name.p[i];
	if (slash >= 0 && (dot < 0 || slash < dot))
		for (size_t i = 0; i < name.n; i++)
			out[i] = name.p[i] == '/' ? '.' : name.p[i] == '.' ? '/' : name.p[i];
	return str_span(out, name.n);
}

bool sysctl_is_of_host(str name, struct val spec, const char **ret_flag)
{
	static const str of_ipc[] = {
		STR_INIT("kernel.sem"), STR_INIT("kernel.shmall"), STR_INIT("kernel.shmmax"), STR_INIT("kernel.shmmni"),
		STR_INIT("kernel.shm_rmid_forced"), STR_INIT("kernel.shm"), STR_INIT("kernel.msgmax"),
		STR_INIT("kernel.msgmnb"), STR_INIT("kernel.msgmni"), STR_INIT("kernel.msg"), { NULL, 0 },
	};
	char room[SYSCTL_MAX];
	str head, tail, normal = normal_sysctl(room, name);

	str_cut(normal, '*', &head, &tail);
	bool net = str_starts(head, STR("net."));
	bool ipc = str_in(head, of_ipc) || str_starts(head, STR("fs.mqueue."));
	*ret_flag = net ? "hostNetwork" : "hostIPC";
	return (net && val_bool(spec, hostNetwork)) || (ipc && val_bool(spec, hostIPC));
}

static void check_sysctls(struct pod_check *c, const struct field_path *at, struct val sysctls)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	size_t i = 0;

	VAL_EACH(s, sysctls) {
		const struct field_path *item = FIELD(FIELD_INDEX(at, i++), "name");
		str name = val_str(*s, name);
		const char *flag;
		bool new = set_add(&names, name);
		if (name.n == 0)
			field_missing(c->e, item);
		else if (!is_sysctl(name))
			field_invalid(c->e, item, VAL_STR(name),
				      "must have at most 253 characters and match regex"
				      " ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*"
				      "[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
		else if (!new)
			field_duplicate(c->e, item, VAL_STR(name));
		if (!c->host_sysctls && sysctl_is_of_host(name, c->spec, &flag))
			field_invalid(c->e, item, VAL_STR(name), "may not be specified when '%s' is true", flag);
	}
}

/* ---- contexts ---- */

static void check_pod_policies(struct pod_check *c, const struct field_path *at, struct val context)
{
	static const str groups[] = { STR_INIT("Merge"), STR_INIT("Strict"), { NULL, 0 } };
	static const str labels[] = { STR_INIT("MountOption"), STR_INIT("Recursive"), { NULL, 0 } };

	if (val_has(context, supplementalGroupsPolicy))
		check_one_of(c->e, FIELD(at, "supplementalGroupsPolicy"), val_str(context, supplementalGroupsPolicy),
			     groups);
	if (val_has(context, seLinuxChangePolicy))
		check_one_of(c->e, FIELD(at, "seLinuxChangePolicy"), val_str(context, seLinuxChangePolicy),
			     c->any_selinux_policy ? labels : labels + 1);
}

void check_pod_security_context(struct pod_check *c, const struct field_path *at)
{
	static const str change_policies[] = { STR_INIT("Always"), STR_INIT("OnRootMismatch"), { NULL, 0 } };
	struct val context = val_get(c->spec, securityContext);
	size_t i = 0;

	check_id(c->e, FIELD(at, "fsGroup"), val_get(context, fsGroup));
	check_id(c->e, FIELD(at, "runAsUser"), val_get(context, runAsUser));
	check_id(c->e, FIELD(at, "runAsGroup"), val_get(context, runAsGroup));
	VAL_EACH(group, val_get(context, supplementalGroups))
		check_id(c->e, FIELD_INDEX(FIELD(at, "supplementalGroups"), i++), *group);
	if (val_bool(c->spec, shareProcessNamespace) && val_bool(c->spec, hostPID))
		field_invalid(c->e, FIELD(at, "shareProcessNamespace"), val_of_bool(true),
			      "ShareProcessNamespace and HostPID cannot both be enabled");
	check_sysctls(c, FIELD(at, "sysctls"), val_get(context, sysctls));
	if (val_has(context, fsGroupChangePolicy))
		check_one_of(c->e, FIELD(at, "fsGroupChangePolicy"), val_str(context, fsGroupChangePolicy),
			     change_policies);
	check_seccomp_profile(c->e, FIELD(at, "seccompProfile"), val_get(context, seccompProfile));
	check_windows_options(c->e, FIELD(at, "windowsOptions"), val_get(context, windowsOptions));
	check_app_armor_profile(c->e, FIELD(at, "appArmorProfile"), val_get(context, appArmorProfile));
	check_pod_policies(c, at, context);
}

static void check_escalation(struct field_errors *e, const struct field_path *at, struct val context)
{
	struct val shown = internal_form(e->arena, TYPE(core_v1, SecurityContext), context);

	if (val_bool(context, privileged))
		field_invalid(e, at, shown, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
	VAL_EACH(cap, val_get(context, capabilities, add))
		if (str_eq(val_as_str(*cap), STR("CAP_SYS_ADMIN")))
			field_invalid(e, at, shown, "cannot set `allowPrivilegeEscalation` to false and"
						    " `capabilities.Add` CAP_SYS_ADMIN");
}

void check_security_context(struct pod_check *c, const struct field_path *at, struct val context)
{
	static const str mounts[] = { STR_INIT("Default"), STR_INIT("Unmasked"), { NULL, 0 } };
	str mount = val_str(context, procMount);

	if (!val_exists(context))
		return;
	if (c->e->no_privileged && val_bool(context, privileged))
		field_forbidden(c->e, FIELD(at, "privileged"), "disallowed by cluster policy");
	check_id(c->e, FIELD(at, "runAsUser"), val_get(context, runAsUser));
	check_id(c->e, FIELD(at, "runAsGroup"), val_get(context, runAsGroup));
	if (val_has(context, procMount)) {
		check_one_of(c->e, FIELD(at, "procMount"), mount, mounts);
		if (str_eq(mount, STR("Unmasked")) && pod_uses_host_users(c->spec))
			field_invalid(c->e, FIELD(at, "procMount"), VAL_STR(mount),
				      "`hostUsers` must be false to use `Unmasked`");
	}
	check_seccomp_profile(c->e, FIELD(at, "seccompProfile"), val_get(context, seccompProfile));
	if (val_has(context, allowPrivilegeEscalation) && !val_bool(context, allowPrivilegeEscalation))
		check_escalation(c->e, at, context);
	check_windows_options(c->e, FIELD(at, "windowsOptions"), val_get(context, windowsOptions));
	check_app_armor_profile(c->e, FIELD(at, "appArmorProfile"), val_get(context, appArmorProfile));
}

/* ---- profiles in annotations, from before there were fields ---- */

static void check_seccomp_text(struct field_errors *e, const struct field_path *at, str profile)
{
	static const str known[] = { STR_INIT("runtime/default"), STR_INIT("docker/default"), STR_INIT("unconfined"),
				     { NULL, 0 } };

	if (str_in(profile, known))
		return;
	if (str_starts(profile, STR("localhost/")))
		check_descending_path(e, at, str_skip(profile, sizeof("localhost/") - 1));
	else
		field_invalid(e, at, VAL_STR(profile), "must be a valid seccomp profile");
}

void check_seccomp_annotations(struct pod_check *c, const struct field_path *at, struct val annotations)
{
	struct val of_pod = val_find(annotations, SECCOMP_POD_KEY);

	if (val_exists(of_pod))
		check_seccomp_text(c->e, FIELD_STR(at, SECCOMP_POD_KEY), val_as_str(of_pod));
	VAL_EACH_MEMBER(m, annotations)
		if (str_starts(atom_str(m->key), SECCOMP_CONTAINER_PREFIX))
			check_seccomp_text(c->e, FIELD_STR(at, atom_str(m->key)), val_as_str(m->val));
}

static void gather_name(struct pod_check *c, const struct field_path *at, struct val container, void *arg)
{
	(void)c;
	(void)at;
	set_add(arg, val_str(container, name));
}

void check_app_armor_annotations(struct pod_check *c, const struct field_path *at, struct val annotations)
{
	static const str known[] = { STR_INIT(""), STR_INIT("runtime/default"), STR_INIT("unconfined"), { NULL, 0 } };
	CLEANUP(map_done) struct map names = MAP_INIT;

	VAL_EACH_MEMBER(m, annotations) {
		str key = atom_str(m->key), profile = val_as_str(m->val), name = str_skip(key, APP_ARMOR_PREFIX.n);
		if (!str_starts(key, APP_ARMOR_PREFIX))
			continue;
		if (map_len(&names) == 0)
			each_container(c, NULL, gather_name, &names);
		if (!set_has(&names, name))
			field_invalid(c->e, FIELD_KEY(at, key), VAL_STR(name), "container not found");
		if (!str_in(profile, known) && !str_starts(profile, STR("localhost/")))
			field_invalid(c->e, FIELD_KEY(at, key), VAL_STR(profile),
				      "invalid AppArmor profile name: \"" STR_FMT "\"", STR_ARG(profile));
	}
}

/* Whether a text in an annotation says the same as the field; what: the word for messages. */
static void check_agrees(struct field_errors *e, const struct field_path *at, str text, struct val profile,
			 const char *what)
{
	str type = val_str(profile, type), local = val_str(profile, localhostProfile);
	bool same = true;

	if (str_eq(type, STR("Unconfined")))
		same = str_eq(text, STR("unconfined"));
	else if (str_eq(type, STR("RuntimeDefault")))
		same = str_eq(text, STR("runtime/default")) || (what[0] == 's' && str_eq(text, STR("docker/default")));
	else if (str_eq(type, STR("Localhost")))
		same = str_starts(text, STR("localhost/"));
	if (!same)
		field_forbidden(e, FIELD(at, "type"), "%s type in annotation and field must match", what);
	else if (str_eq(type, STR("Localhost")) &&
		 (!val_has(profile, localhostProfile) || !str_eq(str_skip(text, sizeof("localhost/") - 1), local)))
		field_forbidden(e, FIELD(at, "localhostProfile"), "%s profile in annotation and field must match", what);
}

static struct val annotation_of(struct arena *a, struct val annotations, str prefix, struct val container)
{
	return sorted_find(annotations, arena_join(a, prefix, val_str(container, name)));
}

static void container_seccomp_agrees(struct pod_check *c, const struct field_path *at, struct val container, void *arg)
{
	struct val profile = val_get(container, securityContext, seccompProfile);
	struct val text = annotation_of(c->e->arena, *(struct val *)arg, SECCOMP_CONTAINER_PREFIX, container);

	if (val_exists(profile) && val_exists(text))
		check_agrees(c->e, FIELD(FIELD(at, "securityContext"), "seccompProfile"), val_as_str(text), profile,
			     "seccomp");
}

static void container_app_armor_agrees(struct pod_check *c, const struct field_path *at, struct val container, void *arg)
{
	struct val own = val_get(container, securityContext, appArmorProfile);
	struct val profile = val_exists(own) ? own : val_get(c->spec, securityContext, appArmorProfile);
	struct val text = annotation_of(c->e->arena, *(struct val *)arg, APP_ARMOR_PREFIX, container);

	if (val_exists(profile) && val_exists(text))
		check_agrees(c->e, FIELD(FIELD(at, "securityContext"), "appArmorProfile"), val_as_str(text), profile,
			     "apparmor");
}

void check_profiles_agree(struct pod_check *c, const struct field_path *at, struct val annotations)
{
	struct val profile = val_get(c->spec, securityContext, seccompProfile),
		text = val_find(annotations, SECCOMP_POD_KEY);

	if (val_exists(profile) && val_exists(text))
		check_agrees(c->e, FIELD(FIELD(at, "securityContext"), "seccompProfile"), val_as_str(text), profile,
			     "seccomp");
	each_container(c, at, container_seccomp_agrees, &annotations);
	if (!str_eq(val_str(c->spec, os, name), STR("windows")))
		each_container(c, at, container_app_armor_agrees, &annotations);
}
