/*
 * The checks of the Pod Security Standards, as rows: baseline ones first, each part in the order of their names in Kubernetes, which
 * is the order of the messages. A row looks at the pod and at each of its containers and notes what it does not like. The same
 * code answers whether a pod passes (no arena: only the first thing noted matters) and why it does not (all is collected).
 */
#include <stdlib.h>

#include "apiserver/admission/pod_security.h"
#include "base/buf.h"
#include "codec/atoms.h"
#include "codec/go.h"
#include "machinery/names.h"
#include "machinery/resources.h"

struct names {
	str *list;
	size_t n;
};

/* A pod under examination by one check, and what was found. */
struct look {
	struct val metadata, spec;
	struct val security;          /* the pod's security context */
	int minor;

	struct arena *arena;          /* NULL: only `failed` is wanted */
	bool failed;
	bool pod;                     /* the pod itself is to blame */
	bool user, role;              /* SELinux: set */
	struct names names;           /* containers (volumes, sysctls) that do what they must not */
	struct names silent;          /* containers that do not say what they must */
	struct names values;          /* what was found there; a set */
	struct names annotations;
};

enum { NEVER = 255, FIRST = 0 };

struct check {
	const char *reason;
	bool plural;                  /* the reason gets an "s" when several values are bad */
	enum pod_level level;
	uint8_t from, until;          /* in which minor versions it is looked at */
	uint8_t replaced;             /* from here on, restricted has a check of its own for this */
	uint8_t spares_windows, spares_user_namespaces; /* from here on, pods of that sort pass */
	void (*look_at_pod)(struct look *l);
	void (*look_at_container)(struct look *l, struct val container, struct val security);
	void (*tell)(struct buf *b, struct look *l);
};

/* ---- noting ---- */

static void note(struct look *l, struct names *names, str name)
{
	size_t n = names->n;
	l->failed = true;
	if (!l->arena)
		return;
	if ((n & (n - 1)) == 0) { /* 0, 1, 2, 4, ...: the room is used up */
		str *room = ARENA_ARRAY(l->arena, str, n ? 2 * n : 1);
		if (n)
			memcpy(room, names->list, n * sizeof *room);
		names->list = room;
	}
	names->list[names->n++] = name;
}

static void blame_pod(struct look *l) { l->pod = l->failed = true; }

static void blame(struct look *l, struct val named) { note(l, &l->names, val_str(named, name)); }

static void note_annotation(struct look *l, str key, str value)
{
	l->failed = true;
	if (!l->arena)
		return;
	CLEANUP(buf_done) struct buf b = BUF_INIT(8 << 20);
	buf_add(&b, key);
	buf_addc(&b, '=');
	buf_add_quoted(&b, value);
	note(l, &l->annotations, arena_str(l->arena, buf_str(&b)));
}

/* ---- telling ---- */

static int compare(const void *a, const void *b) { return str_cmp(*(const str *)a, *(const str *)b); }

/* Sorted, equal ones once. */
static void make_set(struct names *names)
{
	size_t n = 0;
	if (names->n)
		qsort(names->list, names->n, sizeof *names->list, compare);
	for (size_t i = 0; i < names->n; i++)
		if (!n || !str_eq(names->list[n - 1], names->list[i]))
			names->list[n++] = names->list[i];
	names->n = n;
}

static void add_list(struct buf *b, const struct names *names, bool quoted)
{
	for (size_t i = 0; i < names->n; i++) {
		buf_add(b, i ? STR(", ") : STR(""));
		if (quoted)
			buf_addc(b, '"');
		buf_add(b, names->list[i]);
		if (quoted)
			buf_addc(b, '"');
	}
}

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

/* container "a"; containers "a", "b" */
static void add_named(struct buf *b, const char *what, const struct names *names)
{
	buf_addf(b, "%s%s ", what, plural(names->n));
	add_list(b, names, true);
}

/* pod and container "a" */
static void add_setters(struct buf *b, const struct look *l)
{
	if (l->pod)
		buf_add(b, STR("pod"));
	if (l->pod && l->names.n)
		buf_add(b, STR(" and "));
	if (l->names.n)
		add_named(b, "container", &l->names);
}

static void add_uses(struct buf *b, const struct look *l, const char *what)
{
	buf_addf(b, " use%s %s%s ", l->names.n == 1 ? "s" : "", what, plural(l->values.n));
}

/* ---- AppArmor ---- */

#define APPARMOR_ANNOTATION "container.apparmor.security.beta.kubernetes.io/"

static bool is_default_or_local(str profile)
{
	return str_eq(profile, STR("RuntimeDefault")) || str_eq(profile, STR("Localhost"));
}

static bool has_bad_profile(struct look *l, struct val security, atom which)
{
	struct val profile = val_member(security, which);
	str type = val_str(profile, type);
	if (!val_exists(profile) || is_default_or_local(type))
		return false;
	note(l, &l->values, type);
	return true;
}

static void pod_apparmor(struct look *l)
{
	if (has_bad_profile(l, l->security, A_appArmorProfile))
		blame_pod(l);
	VAL_EACH_MEMBER(m, val_get(l->metadata, annotations)) {
		str value = val_as_str(m->val);
		if (str_starts(atom_str(m->key), STR(APPARMOR_ANNOTATION)) && value.n && !str_eq(value, STR("runtime/default")) &&
		    !str_starts(value, STR("localhost/")))
			note_annotation(l, atom_str(m->key), value);
	}
}

static void container_apparmor(struct look *l, struct val container, struct val security)
{
	if (has_bad_profile(l, security, A_appArmorProfile))
		blame(l, container);
}

static void tell_apparmor(struct buf *b, struct look *l)
{
	add_setters(b, l);
	if (l->annotations.n)
		buf_addf(b, "%sannotation%s", b->n ? " and " : "", plural(l->annotations.n));
	buf_add(b, STR(" must not set AppArmor profile type to "));
	add_list(b, &l->values, true);
	buf_add(b, l->values.n && l->annotations.n ? STR(", ") : STR(""));
	add_list(b, &l->annotations, true);
}

/* ---- capabilities ---- */

static bool is_one_of(str s, const str *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(s, list[i]))
			return true;
	return false;
}

/* The container adds a capability that is not in the list. */
static void look_at_added(struct look *l, struct val container, struct val security, const str *list, size_t n)
{
	bool bad = false;
	VAL_EACH(c, val_get(security, capabilities, add))
		if (!is_one_of(val_as_str(*c), list, n)) {
			note(l, &l->values, val_as_str(*c));
			bad = true;
		}
	if (bad)
		blame(l, container);
}

static void container_default_capabilities(struct look *l, struct val container, struct val security)
{
	static const str allowed[] = {
		STR_INIT("AUDIT_WRITE"), STR_INIT("CHOWN"), STR_INIT("DAC_OVERRIDE"), STR_INIT("FOWNER"), STR_INIT("FSETID"),
		STR_INIT("KILL"), STR_INIT("MKNOD"), STR_INIT("NET_BIND_SERVICE"), STR_INIT("SETFCAP"), STR_INIT("SETGID"),
		STR_INIT("SETPCAP"), STR_INIT("SETUID"), STR_INIT("SYS_CHROOT"),
	};
	look_at_added(l, container, security, allowed, ARRAY_LEN(allowed));
}

static void add_capabilities(struct buf *b, const struct look *l)
{
	add_named(b, "container", &l->names);
	buf_add(b, STR(" must not include "));
	add_list(b, &l->values, true);
	buf_add(b, STR(" in securityContext.capabilities.add"));
}

static void tell_default_capabilities(struct buf *b, struct look *l) { add_capabilities(b, l); }

static void container_capabilities(struct look *l, struct val container, struct val security)
{
	static const str allowed[] = { STR_INIT("NET_BIND_SERVICE") };
	bool drops_all = false;
	VAL_EACH(c, val_get(security, capabilities, drop))
		drops_all |= str_eq(val_as_str(*c), STR("ALL"));
	if (!drops_all)
		note(l, &l->silent, val_str(container, name));
	look_at_added(l, container, security, allowed, ARRAY_LEN(allowed));
}

static void tell_capabilities(struct buf *b, struct look *l)
{
	if (l->silent.n) {
		add_named(b, "container", &l->silent);
		buf_add(b, STR(" must set securityContext.capabilities.drop=[\"ALL\"]"));
	}
	buf_add(b, l->silent.n && l->names.n ? STR("; ") : STR(""));
	if (l->names.n)
		add_capabilities(b, l);
}

/* ---- the host ---- */

static void pod_host_namespaces(struct look *l)
{
	if (val_bool(l->spec, hostNetwork))
		note(l, &l->names, STR("hostNetwork=true"));
	if (val_bool(l->spec, hostPID))
		note(l, &l->names, STR("hostPID=true"));
	if (val_bool(l->spec, hostIPC))
		note(l, &l->names, STR("hostIPC=true"));
}

static void tell_names(struct buf *b, struct look *l) { add_list(b, &l->names, false); }

static void pod_host_paths(struct look *l)
{
	VAL_EACH(v, val_get(l->spec, volumes))
		if (val_has(*v, hostPath))
			blame(l, *v);
}

static void tell_host_paths(struct buf *b, struct look *l) { add_named(b, "volume", &l->names); }

static void container_host_ports(struct look *l, struct val container, struct val security)
{
	char text[GO_INT_MAX];
	bool bad = false;
	(void)security;
	VAL_EACH(p, val_get(container, ports)) {
		str port = go_format_int(val_int(*p, hostPort), text);
		if (!val_int(*p, hostPort))
			continue;
		note(l, &l->values, l->arena ? arena_str(l->arena, port) : port);
		bad = true;
	}
	if (bad)
		blame(l, container);
}

static void tell_host_ports(struct buf *b, struct look *l)
{
	add_named(b, "container", &l->names);
	add_uses(b, l, "hostPort");
	add_list(b, &l->values, false);
}

static bool names_host(struct look *l, struct val handler)
{
	str hosts[] = { val_str(handler, httpGet, host), val_str(handler, tcpSocket, host) };
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (hosts[i].n)
			note(l, &l->values, hosts[i]);
	return hosts[0].n || hosts[1].n;
}

static void container_probe_hosts(struct look *l, struct val container, struct val security)
{
	struct val lifecycle = val_get(container, lifecycle);
	struct val handlers[] = {
		val_get(container, livenessProbe), val_get(container, readinessProbe), val_get(container, startupProbe),
		val_get(lifecycle, postStart), val_get(lifecycle, preStop),
	};
	bool bad = false;
	(void)security;
	for (size_t i = 0; i < ARRAY_LEN(handlers); i++)
		bad |= names_host(l, handlers[i]);
	if (bad)
		blame(l, container);
}

static void tell_probe_hosts(struct buf *b, struct look *l)
{
	make_set(&l->names);
	add_named(b, "container", &l->names);
	add_uses(b, l, "probe or lifecycle host");
	add_list(b, &l->values, true);
}

/* ---- what a container is allowed to be ---- */

static void container_privileged(struct look *l, struct val container, struct val security)
{
	if (val_bool(security, privileged))
		blame(l, container);
}

static void tell_privileged(struct buf *b, struct look *l)
{
	add_named(b, "container", &l->names);
	buf_add(b, STR(" must not set securityContext.privileged=true"));
}

static void container_proc_mount(struct look *l, struct val container, struct val security)
{
	struct val mount = val_get(security, procMount);
	if (!val_exists(mount) || str_eq(val_as_str(mount), STR("Default")))
		return;
	note(l, &l->values, val_as_str(mount));
	blame(l, container);
}

static void tell_proc_mount(struct buf *b, struct look *l)
{
	add_named(b, "container", &l->names);
	buf_add(b, STR(" must not set securityContext.procMount to "));
	add_list(b, &l->values, true);
}

static void container_escalation(struct look *l, struct val container, struct val security)
{
	struct val allows = val_get(security, allowPrivilegeEscalation);
	if (!val_exists(allows) || val_as_bool(allows))
		blame(l, container);
}

static void tell_escalation(struct buf *b, struct look *l)
{
	add_named(b, "container", &l->names);
	buf_add(b, STR(" must set securityContext.allowPrivilegeEscalation=false"));
}

static void pod_host_process(struct look *l)
{
	if (val_bool(l->security, windowsOptions, hostProcess))
		blame_pod(l);
}

static void container_host_process(struct look *l, struct val container, struct val security)
{
	if (val_bool(security, windowsOptions, hostProcess))
		blame(l, container);
}

static void tell_host_process(struct buf *b, struct look *l)
{
	add_setters(b, l);
	buf_add(b, STR(" must not set securityContext.windowsOptions.hostProcess=true"));
}

/* ---- SELinux ---- */

static bool has_bad_selinux(struct look *l, struct val security)
{
	static const str allowed[] = { STR_INIT(""), STR_INIT("container_t"), STR_INIT("container_init_t"),
				       STR_INIT("container_kvm_t"), STR_INIT("container_engine_t") };
	struct val options = val_get(security, seLinuxOptions);
	str type = val_str(options, type);
	bool user = val_str(options, user).n, role = val_str(options, role).n;
	bool good = is_one_of(type, allowed, ARRAY_LEN(allowed) - (l->minor < 31));
	if (!good)
		note(l, &l->values, type);
	l->user |= user;
	l->role |= role;
	return !good || user || role;
}

static void pod_selinux(struct look *l)
{
	if (has_bad_selinux(l, l->security))
		blame_pod(l);
}

static void container_selinux(struct look *l, struct val container, struct val security)
{
	if (has_bad_selinux(l, security))
		blame(l, container);
}

static void tell_selinux(struct buf *b, struct look *l)
{
	add_setters(b, l);
	buf_add(b, STR(" set forbidden securityContext.seLinuxOptions: "));
	if (l->values.n)
		add_named(b, "type", &l->values);
	if (l->user)
		buf_addf(b, "%suser may not be set", l->values.n ? "; " : "");
	if (l->role)
		buf_addf(b, "%srole may not be set", l->values.n || l->user ? "; " : "");
}

/* ---- seccomp ---- */

#define SECCOMP_POD "seccomp.security.alpha.kubernetes.io/pod"
#define SECCOMP_CONTAINER "container.seccomp.security.alpha.kubernetes.io/"

static void look_at_seccomp(struct look *l, str key)
{
	struct val found = sorted_find(val_get(l->metadata, annotations), key);
	str value = val_as_str(found);
	if (val_exists(found) && !str_eq(value, STR("runtime/default")) && !str_eq(value, STR("docker/default")) &&
	    !str_starts(value, STR("localhost/")))
		note_annotation(l, key, value);
}

static void pod_seccomp_annotation(struct look *l) { look_at_seccomp(l, STR(SECCOMP_POD)); }

static void container_seccomp_annotation(struct look *l, struct val container, struct val security)
{
	char key[sizeof(SECCOMP_CONTAINER) + NAME_LABEL_MAX];
	str name = val_str(container, name);
	(void)security;
	if (name.n > NAME_LABEL_MAX)
		return;
	memcpy(key, SECCOMP_CONTAINER, sizeof(SECCOMP_CONTAINER) - 1);
	if (name.n)
		memcpy(key + sizeof(SECCOMP_CONTAINER) - 1, name.p, name.n);
	look_at_seccomp(l, str_span(key, sizeof(SECCOMP_CONTAINER) - 1 + name.n));
}

static void tell_seccomp_annotation(struct buf *b, struct look *l)
{
	buf_addf(b, "forbidden annotation%s ", plural(l->annotations.n));
	add_list(b, &l->annotations, false);
}

static void pod_seccomp(struct look *l)
{
	if (has_bad_profile(l, l->security, A_seccompProfile))
		blame_pod(l);
}

static void container_seccomp(struct look *l, struct val container, struct val security)
{
	if (has_bad_profile(l, security, A_seccompProfile))
		blame(l, container);
}

static void container_seccomp_required(struct look *l, struct val container, struct val security)
{
	container_seccomp(l, container, security);
	if (!val_has(security, seccompProfile) && !is_default_or_local(val_str(l->security, seccompProfile, type)))
		note(l, &l->silent, val_str(container, name));
}

static void tell_seccomp(struct buf *b, struct look *l)
{
	if (l->pod || l->names.n) {
		add_setters(b, l);
		buf_add(b, STR(" must not set securityContext.seccompProfile.type to "));
		add_list(b, &l->values, true);
	} else {
		buf_add(b, STR("pod or "));
		add_named(b, "container", &l->silent);
		buf_add(b, STR(" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""));
	}
}

/* ---- sysctls ---- */

static void pod_sysctls(struct look *l)
{
	static const struct {
		str name;
		int from;
	} safe[] = {
		{ STR_INIT("kernel.shm_rmid_forced"), 0 },         { STR_INIT("net.ipv4.ip_local_port_range"), 0 },
		{ STR_INIT("net.ipv4.tcp_syncookies"), 0 },        { STR_INIT("net.ipv4.ping_group_range"), 0 },
		{ STR_INIT("net.ipv4.ip_unprivileged_port_start"), 0 },
		{ STR_INIT("net.ipv4.ip_local_reserved_ports"), 27 }, { STR_INIT("net.ipv4.tcp_keepalive_time"), 29 },
		{ STR_INIT("net.ipv4.tcp_fin_timeout"), 29 },      { STR_INIT("net.ipv4.tcp_keepalive_intvl"), 29 },
		{ STR_INIT("net.ipv4.tcp_keepalive_probes"), 29 }, { STR_INIT("net.ipv4.tcp_rmem"), 32 },
		{ STR_INIT("net.ipv4.tcp_wmem"), 32 },
	};
	VAL_EACH(s, val_get(l->security, sysctls)) {
		bool good = false;
		for (size_t i = 0; i < ARRAY_LEN(safe); i++)
			good |= l->minor >= safe[i].from && str_eq(val_str(*s, name), safe[i].name);
		if (!good)
			blame(l, *s);
	}
}

/* ---- volumes ---- */

static bool has_any(struct val v, const atom *members, size_t n, size_t *ret_first)
{
	for (size_t i = 0; i < n; i++)
		if (val_exists(val_member(v, members[i]))) {
			*ret_first = i;
			return true;
		}
	return false;
}

static void pod_volumes(struct look *l)
{
	static const atom allowed[] = {
		A_configMap, A_csi, A_downwardAPI, A_emptyDir, A_ephemeral, A_image, A_persistentVolumeClaim, A_projected, A_secret,
	}, others[] = {
		A_hostPath, A_gcePersistentDisk, A_awsElasticBlockStore, A_gitRepo, A_nfs, A_iscsi, A_glusterfs, A_rbd, A_flexVolume,
		A_cinder, A_cephfs, A_flocker, A_fc, A_azureFile, A_vsphereVolume, A_quobyte, A_azureDisk, A_photonPersistentDisk,
		A_portworxVolume, A_scaleIO, A_storageos,
	};
	VAL_EACH(v, val_get(l->spec, volumes)) {
		size_t i;
		if (has_any(*v, allowed, ARRAY_LEN(allowed), &i))
			continue;
		blame(l, *v);
		note(l, &l->values, has_any(*v, others, ARRAY_LEN(others), &i) ? atom_str(others[i]) : STR("unknown"));
	}
}

static void tell_volumes(struct buf *b, struct look *l)
{
	add_named(b, "volume", &l->names);
	add_uses(b, l, "restricted volume type");
	add_list(b, &l->values, true);
}

/* ---- users ---- */

static void pod_non_root(struct look *l)
{
	struct val wish = val_get(l->security, runAsNonRoot);
	if (val_exists(wish) && !val_as_bool(wish))
		blame_pod(l);
}

static void container_non_root(struct look *l, struct val container, struct val security)
{
	struct val wish = val_get(security, runAsNonRoot);
	if (val_exists(wish) && !val_as_bool(wish))
		blame(l, container);
	else if (!val_exists(wish) && !val_bool(l->security, runAsNonRoot))
		note(l, &l->silent, val_str(container, name));
}

static void tell_non_root(struct buf *b, struct look *l)
{
	if (l->pod || l->names.n) {
		add_setters(b, l);
		buf_add(b, STR(" must not set securityContext.runAsNonRoot=false"));
	} else {
		buf_add(b, STR("pod or "));
		add_named(b, "container", &l->silent);
		buf_add(b, STR(" must set securityContext.runAsNonRoot=true"));
	}
}

static bool runs_as_root(struct val security)
{
	struct val user = val_get(security, runAsUser);
	return val_exists(user) && val_as_int(user) == 0;
}

static void pod_user(struct look *l)
{
	if (runs_as_root(l->security))
		blame_pod(l);
}

static void container_user(struct look *l, struct val container, struct val security)
{
	if (runs_as_root(security))
		blame(l, container);
}

static void tell_user(struct buf *b, struct look *l)
{
	add_setters(b, l);
	buf_add(b, STR(" must not set runAsUser=0"));
}

/* ---- the table ---- */

static const struct check checks[] = {
	{ "forbidden AppArmor profile", true, POD_BASELINE, FIRST, NEVER, NEVER, NEVER, NEVER,
	  pod_apparmor, container_apparmor, tell_apparmor },
	{ "non-default capabilities", false, POD_BASELINE, FIRST, NEVER, 22, NEVER, NEVER,
	  NULL, container_default_capabilities, tell_default_capabilities },
	{ "host namespaces", false, POD_BASELINE, FIRST, NEVER, NEVER, NEVER, NEVER, pod_host_namespaces, NULL, tell_names },
	{ "hostPath volumes", false, POD_BASELINE, FIRST, NEVER, FIRST, NEVER, NEVER, pod_host_paths, NULL, tell_host_paths },
	{ "hostPort", false, POD_BASELINE, FIRST, NEVER, NEVER, NEVER, NEVER, NULL, container_host_ports, tell_host_ports },
	{ "probe or lifecycle host", false, POD_BASELINE, 34, NEVER, NEVER, NEVER, NEVER,
	  NULL, container_probe_hosts, tell_probe_hosts },
	{ "privileged", false, POD_BASELINE, FIRST, NEVER, NEVER, NEVER, NEVER, NULL, container_privileged, tell_privileged },
	{ "procMount", false, POD_BASELINE, FIRST, NEVER, 35, NEVER, 35, NULL, container_proc_mount, tell_proc_mount },
	{ "seLinuxOptions", false, POD_BASELINE, FIRST, NEVER, NEVER, NEVER, NEVER,
	  pod_selinux, container_selinux, tell_selinux },
	{ "seccompProfile", false, POD_BASELINE, FIRST, 19, NEVER, NEVER, NEVER,
	  pod_seccomp_annotation, container_seccomp_annotation, tell_seccomp_annotation },
	{ "seccompProfile", false, POD_BASELINE, 19, NEVER, 19, NEVER, NEVER, pod_seccomp, container_seccomp, tell_seccomp },
	{ "forbidden sysctls", false, POD_BASELINE, FIRST, NEVER, NEVER, NEVER, NEVER, pod_sysctls, NULL, tell_names },
	{ "hostProcess", false, POD_BASELINE, FIRST, NEVER, NEVER, NEVER, NEVER,
	  pod_host_process, container_host_process, tell_host_process },

	{ "allowPrivilegeEscalation != false", false, POD_RESTRICTED, 8, NEVER, NEVER, 25, NEVER,
	  NULL, container_escalation, tell_escalation },
	{ "unrestricted capabilities", false, POD_RESTRICTED, 22, NEVER, NEVER, 25, NEVER,
	  NULL, container_capabilities, tell_capabilities },
	{ "procMount", false, POD_RESTRICTED, 35, NEVER, NEVER, NEVER, NEVER, NULL, container_proc_mount, tell_proc_mount },
	{ "restricted volume types", false, POD_RESTRICTED, FIRST, NEVER, NEVER, NEVER, NEVER, pod_volumes, NULL, tell_volumes },
	{ "runAsNonRoot != true", false, POD_RESTRICTED, FIRST, NEVER, NEVER, NEVER, 35,
	  pod_non_root, container_non_root, tell_non_root },
	{ "runAsUser=0", false, POD_RESTRICTED, 23, NEVER, NEVER, NEVER, 35, pod_user, container_user, tell_user },
	{ "seccompProfile", false, POD_RESTRICTED, 19, NEVER, NEVER, 25, NEVER,
	  pod_seccomp, container_seccomp_required, tell_seccomp },
};

_Static_assert(ARRAY_LEN(checks) <= 8 * sizeof(pod_checks), "a bit for each check");

/* ---- asking ---- */

static bool reaches(int minor, uint8_t from) { return from != NEVER && minor >= from; }

static bool applies(const struct check *c, struct pod_standard s, bool windows, bool user_namespace)
{
	return c->level <= s.level && reaches(s.minor, c->from) && !reaches(s.minor, c->until) &&
	       !(s.level == POD_RESTRICTED && reaches(s.minor, c->replaced)) &&
	       !(windows && reaches(s.minor, c->spares_windows)) &&
	       !(user_namespace && reaches(s.minor, c->spares_user_namespaces));
}

static void examine(const struct check *c, struct look *l)
{
	if (c->look_at_pod)
		c->look_at_pod(l);
	if (!c->look_at_container)
		return;
	struct val lists[] = { val_get(l->spec, initContainers), val_get(l->spec, containers),
			       val_get(l->spec, ephemeralContainers) };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(container, lists[i])
			c->look_at_container(l, *container, val_get(*container, securityContext));
}

pod_checks pod_standard_failed(struct pod_standard s, struct val metadata, struct val spec)
{
	if (s.level == POD_PRIVILEGED)
		return 0;
	struct val host_users = val_get(spec, hostUsers);
	bool windows = str_eq(val_str(spec, os, name), STR("windows"));
	bool user_namespace = val_exists(host_users) && !val_as_bool(host_users);
	struct look l = { .metadata = metadata, .spec = spec, .security = val_get(spec, securityContext), .minor = s.minor };
	pod_checks failed = 0;
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		if (!applies(&checks[i], s, windows, user_namespace))
			continue;
		l.failed = false;
		examine(&checks[i], &l);
		failed |= (pod_checks)l.failed << i;
	}
	return failed;
}

str pod_standard_why(struct arena *a, struct pod_standard s, pod_checks failed, struct val metadata, struct val spec,
		     bool details)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(16 << 20);
	CLEANUP(buf_done) struct buf one = BUF_INIT(16 << 20);
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		const struct check *c = &checks[i];
		if (!(failed >> i & 1))
			continue;
		struct look l = { .metadata = metadata, .spec = spec, .security = val_get(spec, securityContext),
				  .minor = s.minor, .arena = a };
		examine(c, &l);
		make_set(&l.values);
		make_set(&l.annotations);
		buf_add(&all, all.n ? STR(", ") : STR(""));
		buf_add(&all, str_of(c->reason));
		if (c->plural && l.values.n + l.annotations.n != 1)
			buf_addc(&all, 's');
		if (!details)
			continue;
		buf_reset(&one);
		c->tell(&one, &l);
		buf_addf(&all, " (" STR_FMT ")", STR_ARG(buf_str(&one)));
	}
	return arena_str(a, buf_str(&all));
}

bool pod_checks_same_reasons(pod_checks failed)
{
	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i].plural && failed >> i & 1)
			return false;
	return true;
}
