/*
 * Who a container runs as and what it may do. A container's security context goes before its pod's, member by member; what only a
 * container can say (capabilities, privileged, ...) is taken from there alone.
 */
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "kubelet/cri_config_priv.h"
#include "machinery/names.h"

/* ---- namespaces ---- */

static int user_namespace(const struct kubelet_node *n, struct arena *a, struct val pod, struct val *ret, struct err *err)
{
	struct val host_users = val_get(pod, spec, hostUsers);

	if (val_is_nil(host_users) || val_as_bool(host_users)) {
		*ret = OBJECT(a, F(mode, VAL_LIT("NODE")));
		return 0;
	}
	if (!n->hooks || !n->hooks->user_namespace)
		return err_set(err, ERR_UNAVAILABLE, "can't set `spec.hostUsers: false`, runtime does not support user namespaces");
	return n->hooks->user_namespace(n->hooks->arg, a, pod, ret, err);
}

int cri_config_namespaces(const struct kubelet_node *n, struct arena *a, struct val pod, str target_id, struct val *ret, struct err *err)
{
	struct val spec = val_get(pod, spec), users;
	bool shared = val_bool(spec, shareProcessNamespace), host = val_bool(spec, hostPID), targeted = target_id.n && !host && !shared;
	int r;

	if ((r = user_namespace(n, a, pod, &users, err)) < 0)
		return r;
	*ret = OBJECT(a, F(network, val_bool(spec, hostNetwork) ? VAL_LIT("NODE") : VAL_LIT("POD")),
		      F(pid, targeted ? VAL_LIT("TARGET") : host ? VAL_LIT("NODE") : shared ? VAL_LIT("POD") : VAL_LIT("CONTAINER")),
		      F(ipc, val_bool(spec, hostIPC) ? VAL_LIT("NODE") : VAL_LIT("POD")),
		      F(targetId, targeted ? VAL_STR(target_id) : VAL_EMPTY), F(usernsOptions, users));
	return 0;
}

/* ---- users and groups ---- */

/* Int64Value, or nothing for what is not said. */
static struct val boxed(struct arena *a, struct val id) { return val_is_nil(id) ? VAL_EMPTY : OBJECT(a, F(value, id)); }

/* fsGroup, those of volumes, and those that the pod lists; the sandbox has the two latter the other way round. */
static struct val groups(const struct kubelet_node *n, struct arena *a, struct val pod, bool volumes_first)
{
	struct val context = val_get(pod, spec, securityContext), fs_group = val_get(context, fsGroup);
	struct val listed = val_get(context, supplementalGroups);
	struct val extra = n->hooks && n->hooks->extra_groups ? n->hooks->extra_groups(n->hooks->arg, a, pod) : VAL_EMPTY;
	struct val_builder b = val_builder(a);

	if (!val_is_nil(fs_group))
		val_add_item(&b, fs_group);
	VAL_EACH(g, volumes_first ? extra : listed)
		val_add_item(&b, *g);
	VAL_EACH(g, volumes_first ? listed : extra)
		val_add_item(&b, *g);
	return val_end_list(&b);
}

static int groups_policy(struct val pod, struct val *ret, struct err *err)
{
	struct val policy = val_get(pod, spec, securityContext, supplementalGroupsPolicy);

	if (!val_is_nil(policy) && !str_eq(val_as_str(policy), STR("Merge")) && !str_eq(val_as_str(policy), STR("Strict")))
		return err_set(err, ERR_INVALID, "unsupported supplementalGroupsPolicy: " STR_FMT, STR_ARG(val_as_str(policy)));
	*ret = policy;
	return 0;
}

static struct val selinux(struct arena *a, struct val o)
{
	if (val_is_nil(o))
		return VAL_EMPTY;
	return OBJECT(a, F(user, val_get(o, user)), F(role, val_get(o, role)), F(type, val_get(o, type)), F(level, val_get(o, level)));
}

static bool any_privileged(struct val pod)
{
	const struct val lists[] = { val_get(pod, spec, initContainers), val_get(pod, spec, containers),
				     val_get(pod, spec, ephemeralContainers) };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			if (val_bool(*c, securityContext, privileged))
				return true;
	return false;
}

int cri_config_sandbox_security(const struct kubelet_node *n, struct arena *a, struct val pod, struct val *ret, struct err *err)
{
	struct val context = val_get(pod, spec, securityContext), namespaces, policy;
	int r;

	if ((r = cri_config_namespaces(n, a, pod, STR_NONE, &namespaces, err)) < 0 || (r = groups_policy(pod, &policy, err)) < 0)
		return r;
	/* The sandbox itself needs little: its own process never has more than the runtime's default profile. */
	*ret = OBJECT(a, F(namespaceOptions, namespaces), F(selinuxOptions, selinux(a, val_get(context, seLinuxOptions))),
		      F(runAsUser, boxed(a, val_get(context, runAsUser))), F(runAsGroup, boxed(a, val_get(context, runAsGroup))),
		      F(supplementalGroups, groups(n, a, pod, true)), F(supplementalGroupsPolicy, policy),
		      F(privileged, val_of_bool(any_privileged(pod))),
		      F(seccomp, OBJECT(a, F(profileType, VAL_LIT("RuntimeDefault")))));
	return 0;
}

/* What a container says, else what its pod says. */
static struct val effective(const struct cri_container_input *in, atom member)
{
	struct val own = val_member(val_get(in->container, securityContext), member);
	return val_is_nil(own) ? val_member(val_get(in->pod, spec, securityContext), member) : own;
}

static bool image_user_is_name(const struct cri_container_input *in) { return in->image_uid < 0 && in->image_user.n; }

int cri_config_check_non_root(const struct cri_container_input *in, struct err *err)
{
	struct val user = effective(in, A_runAsUser);
	str container = val_str(in->container, name);
	struct name_errors e;
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;

	if (!val_as_bool(effective(in, A_runAsNonRoot)))
		return 0;
	str pod = cri_config_pod_name(&scratch, in->pod);
	if (!val_is_nil(user) && val_as_int(user) == 0)
		return err_set(err, ERR_FORBIDDEN, "container's runAsUser breaks non-root policy (pod: \"" STR_FMT "\", container: "
			       STR_FMT ")", STR_ARG(pod), STR_ARG(container));
	if (!val_is_nil(user))
		return 0;
	if (image_user_is_name(in))
		return err_set(err, ERR_FORBIDDEN, "container has runAsNonRoot and image has non-numeric user (" STR_FMT "), cannot verify "
			       "user is non-root (pod: \"" STR_FMT "\", container: " STR_FMT ")", STR_ARG(in->image_user), STR_ARG(pod),
			       STR_ARG(container));
	if (in->image_uid <= 0)
		return err_set(err, ERR_FORBIDDEN, "container has runAsNonRoot and image will run as root (pod: \"" STR_FMT "\", "
			       "container: " STR_FMT ")", STR_ARG(pod), STR_ARG(container));
	if (name_check_id(in->image_uid, &e))
		return err_set(err, ERR_FORBIDDEN, "container has runAsNonRoot and image has an invalid user id (%lld). (Must be 1-(%d)): "
			       STR_FMT " (pod: \"" STR_FMT "\", container: " STR_FMT ")", (long long)in->image_uid, INT32_MAX, STR_ARG(e.text[0]),
			       STR_ARG(pod), STR_ARG(container));
	return 0;
}

/* ---- profiles ---- */

static int seccomp(const struct kubelet_node *n, struct arena *a, const struct cri_container_input *in, struct val *ret, struct err *err)
{
	struct val profile = effective(in, A_seccompProfile);
	str type = val_str(profile, type), file = val_str(profile, localhostProfile);

	if (val_is_nil(profile) ? n->seccomp_default : str_eq(type, STR("RuntimeDefault"))) {
		*ret = OBJECT(a, F(profileType, VAL_LIT("RuntimeDefault")));
		return 0;
	}
	if (!str_eq(type, STR("Localhost"))) {
		*ret = OBJECT(a, F(profileType, VAL_LIT("Unconfined")));
		return 0;
	}
	if (!file.n)
		return err_set(err, ERR_INVALID, "localhostProfile must be set if seccompProfile type is Localhost.");
	str root = path_clean(a, arena_join(a, n->root, STR("/seccomp/")));
	str path = path_clean(a, arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(root), STR_ARG(file)));
	/* The API server refuses "..", but files of static pods come from elsewhere. */
	if (!str_starts(path, root) || path.n == root.n || path.p[root.n] != '/')
		return err_set(err, ERR_INVALID, "localhostProfile \"" STR_FMT "\" is not below " STR_FMT, STR_ARG(file), STR_ARG(root));
	*ret = OBJECT(a, F(profileType, VAL_LIT("Localhost")), F(localhostRef, VAL_STR(path)));
	return 0;
}

/* Type and name of the profile, from the container, the annotation of old (static pods may have only that) or the pod. */
static bool apparmor_profile(struct arena *a, const struct cri_container_input *in, str *ret_type, struct val *ret_name)
{
	struct val own = val_get(in->container, securityContext, appArmorProfile);
	str key = arena_join(a, STR("container.apparmor.security.beta.kubernetes.io/"), val_str(in->container, name));
	str old = val_as_str(val_find(val_get(in->pod, metadata, annotations), key));

	*ret_name = VAL_EMPTY;
	if (val_is_nil(own) && str_eq(old, STR("runtime/default"))) {
		*ret_type = STR("RuntimeDefault");
	} else if (val_is_nil(own) && str_eq(old, STR("unconfined"))) {
		*ret_type = STR("Unconfined");
	} else if (val_is_nil(own) && str_starts(old, STR("localhost/"))) {
		*ret_type = STR("Localhost");
		*ret_name = VAL_STR(str_skip(old, sizeof("localhost/") - 1));
	} else {
		own = effective(in, A_appArmorProfile);
		*ret_type = val_str(own, type);
		*ret_name = val_get(own, localhostProfile);
	}
	return val_exists(own) || ret_type->n;
}

static int apparmor(struct arena *a, const struct cri_container_input *in, struct val *ret, struct val *ret_old, struct err *err)
{
	struct val name;
	str type;

	*ret = *ret_old = VAL_EMPTY;
	if (!apparmor_profile(a, in, &type, &name))
		return 0;
	if (str_eq(type, STR("RuntimeDefault")))
		*ret_old = VAL_LIT("runtime/default");
	else if (str_eq(type, STR("Unconfined")))
		*ret_old = VAL_LIT("unconfined");
	else if (!str_eq(type, STR("Localhost")))
		return err_set(err, ERR_INVALID, "unknown apparmor profile type: \"" STR_FMT "\"", STR_ARG(type));
	else if (val_is_nil(name))
		return err_set(err, ERR_INVALID, "missing localhost apparmor profile name");
	else
		*ret_old = VAL_STR(arena_join(a, STR("localhost/"), val_as_str(name)));
	*ret = OBJECT(a, F(profileType, VAL_STR(type)), F(localhostRef, str_eq(type, STR("Localhost")) ? name : VAL_EMPTY));
	return 0;
}

/* ---- what is hidden of /proc and /sys ---- */

enum { CPUS_MAX = 8192 };

static bool cpu_path(struct arena *a, int64_t cpu, str *ret)
{
	*ret = arena_printf(a, "/sys/devices/system/cpu/cpu%lld/thermal_throttle", (long long)cpu);
	return access(ret->p, F_OK) == 0;
}

/* How hot a CPU is tells what the neighbours do. The kernel lists CPUs as 0-3,8. */
static void hide_thermal(struct arena *a, struct val_builder *b)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	int64_t from, to;

	if (file_read("/sys/devices/system/cpu/possible", &text, NULL) < 0)
		return;
	for (str rest = str_trim(buf_str(&text)), range, low, high; rest.n;) {
		str_cut(rest, ',', &range, &rest);
		if (!str_cut(range, '-', &low, &high))
			high = low;
		if (!str_to_i64(low, &from) || !str_to_i64(high, &to) || from < 0 || to >= CPUS_MAX)
			return;
		for (str path; from <= to; from++)
			if (cpu_path(a, from, &path))
				val_add_item(b, VAL_STR(path));
	}
}

static struct val masked_paths(struct arena *a)
{
	static const char *const paths[] = {
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	};
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		val_add_item(&b, VAL_STR(str_of(paths[i])));
	hide_thermal(a, &b);
	return val_end_list(&b);
}

static struct val readonly_paths(struct arena *a)
{
	return LIST(a, VAL_LIT("/proc/bus"), VAL_LIT("/proc/fs"), VAL_LIT("/proc/irq"), VAL_LIT("/proc/sys"),
		    VAL_LIT("/proc/sysrq-trigger"));
}

/* ---- all of it ---- */

static struct val capabilities(struct arena *a, struct val c)
{
	return val_is_nil(c) ? VAL_EMPTY : OBJECT(a, F(addCapabilities, val_get(c, add)), F(dropCapabilities, val_get(c, drop)));
}

/* Root, when neither the pod nor the image says anything. */
static void run_as(struct arena *a, const struct cri_container_input *in, struct val *ret_user, struct val *ret_name)
{
	struct val user = effective(in, A_runAsUser);
	bool named = val_is_nil(user) && image_user_is_name(in);

	*ret_user = named ? VAL_EMPTY : boxed(a, val_is_nil(user) ? val_of_int(MAX(in->image_uid, (int64_t)0)) : user);
	*ret_name = named ? VAL_STR(in->image_user) : VAL_EMPTY;
}

int cri_config_container_security(const struct kubelet_node *n, struct arena *a, const struct cri_container_input *in, struct val *ret,
				  struct err *err)
{
	struct val own = val_get(in->container, securityContext), escalation = val_get(own, allowPrivilegeEscalation);
	struct val namespaces, policy, seccomp_profile, apparmor_new, apparmor_old, user, user_name;
	bool unmasked = str_eq(val_str(own, procMount), STR("Unmasked"));
	int r;

	if ((r = seccomp(n, a, in, &seccomp_profile, err)) < 0 || (r = apparmor(a, in, &apparmor_new, &apparmor_old, err)) < 0 ||
	    (r = cri_config_namespaces(n, a, in->pod, in->target_id, &namespaces, err)) < 0 ||
	    (r = groups_policy(in->pod, &policy, err)) < 0)
		return r;
	run_as(a, in, &user, &user_name);
	*ret = OBJECT(a, F(capabilities, capabilities(a, val_get(own, capabilities))), F(privileged, val_get(own, privileged)),
		      F(namespaceOptions, namespaces), F(selinuxOptions, selinux(a, effective(in, A_seLinuxOptions))), F(runAsUser, user),
		      F(runAsGroup, boxed(a, effective(in, A_runAsGroup))), F(runAsUsername, user_name),
		      F(readonlyRootfs, val_get(own, readOnlyRootFilesystem)), F(supplementalGroups, groups(n, a, in->pod, false)),
		      F(supplementalGroupsPolicy, policy),
		      F(noNewPrivs, val_of_bool(!val_is_nil(escalation) && !val_as_bool(escalation))),
		      F(maskedPaths, unmasked ? VAL_EMPTY : masked_paths(a)), F(readonlyPaths, unmasked ? VAL_EMPTY : readonly_paths(a)),
		      F(seccomp, seccomp_profile), F(apparmor, apparmor_new), F(apparmorProfile, apparmor_old));
	return 0;
}
