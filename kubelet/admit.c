/*
 * A chain of checks, in the order of the real kubelet: pressure, sysctls, operating system, what the scheduler would have looked at,
 * AppArmor, shutdown. The first that says no gives reason and message.
 */
#include "kubelet/admit.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "kubelet/admit_priv.h"
#include "kubelet/pod_rules.h"
#include "machinery/node_selector.h"
#include "machinery/resources.h"

struct check {
	const struct kubelet_node *node;
	struct arena *arena;
	const struct admit_input *in;
	str *reason, *message;
};

static bool refuse(const struct check *c, str reason, str message)
{
	*c->reason = reason;
	*c->message = message;
	return false;
}

/* ---- taints ---- */

static bool tolerates(struct val toleration, struct val taint)
{
	str effect = val_str(toleration, effect), key = val_str(toleration, key), op = val_str(toleration, operator);

	if ((effect.n && !str_eq(effect, val_str(taint, effect))) || (key.n && !str_eq(key, val_str(taint, key))))
		return false;
	if (!op.n || str_eq(op, STR("Equal")))
		return str_eq(val_str(toleration, value), val_str(taint, value));
	return str_eq(op, STR("Exists"));
}

static bool tolerated(struct val pod, struct val taint)
{
	VAL_EACH(t, val_get(pod, spec, tolerations))
		if (tolerates(*t, taint))
			return true;
	return false;
}

static bool is_tainted(const struct admit_input *in)
{
	VAL_EACH(taint, val_get(in->node, spec, taints))
		if (str_eq(val_str(*taint, effect), STR("NoExecute")) && !tolerated(in->pod, *taint))
			return true;
	return false;
}

/* ---- pressure ---- */

static bool pressure_allows(const struct check *c)
{
	const struct admit_input *in = c->in;
	const struct {
		bool is;
		const char *name;
	} all[] = { { in->memory_pressure, "MemoryPressure" }, { in->disk_pressure, "DiskPressure" }, { in->pids_pressure, "PIDPressure" } };
	str list = STR_NONE;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].is)
			list = arena_printf(c->arena, STR_FMT "%s%s", STR_ARG(list), list.n ? " " : "", all[i].name);
	if (!list.n || admit_is_critical(in->pod))
		return true;
	if (in->memory_pressure && !in->disk_pressure && !in->pids_pressure) {
		struct val taint = OBJECT(c->arena, F(key, VAL_LIT("node.kubernetes.io/memory-pressure")), F(effect, VAL_LIT("NoSchedule")));
		if (!str_eq(pod_qos_class(val_get(in->pod, spec)), STR("BestEffort")) || tolerated(in->pod, taint))
			return true;
	}
	return refuse(c, STR("Evicted"), arena_printf(c->arena, "The node had condition: [" STR_FMT "]. ", STR_ARG(list)));
}

/* ---- sysctls ---- */

enum namespace { NAMESPACE_UNKNOWN, NAMESPACE_IPC, NAMESPACE_NET };

/* kernel/shm_rmid_forced is the same as kernel.shm_rmid_forced; with the slash first, dots are part of names. */
static str sysctl_normal(struct arena *a, str name)
{
	ptrdiff_t dot = str_chr(name, '.'), slash = str_chr(name, '/');

	if (slash < 0 || (dot >= 0 && dot < slash))
		return name;
	char *p = (char *)arena_str(a, name).p;
	for (size_t i = 0; i < name.n; i++)
		p[i] = p[i] == '.' ? '/' : p[i] == '/' ? '.' : p[i];
	return str_span(p, name.n);
}

static enum namespace sysctl_namespace(str name)
{
	static const str of_ipc[] = { STR_INIT("kernel.sem"), STR_INIT("kernel.shmall"), STR_INIT("kernel.shmmax"),
				      STR_INIT("kernel.shmmni"), STR_INIT("kernel.shm_rmid_forced"), STR_INIT("kernel.shm"),
				      STR_INIT("kernel.msgmax"), STR_INIT("kernel.msgmnb"), STR_INIT("kernel.msgmni"),
				      STR_INIT("kernel.msg") };

	for (size_t i = 0; i < ARRAY_LEN(of_ipc); i++)
		if (str_eq(name, of_ipc[i]))
			return NAMESPACE_IPC;
	if (str_starts(name, STR("net.")))
		return NAMESPACE_NET;
	return str_starts(name, STR("fs.mqueue.")) ? NAMESPACE_IPC : NAMESPACE_UNKNOWN;
}

/* Does the entry of a list allow it? A '*' stands for any end. */
static bool pattern_allows(struct arena *a, str pattern, str name, enum namespace *ret)
{
	str head, rest;

	pattern = sysctl_normal(a, pattern);
	bool prefix = str_cut(pattern, '*', &head, &rest);
	*ret = sysctl_namespace(head);
	return *ret != NAMESPACE_UNKNOWN && (prefix ? str_starts(name, head) : str_eq(name, head));
}

static bool sysctl_is_allowed(const struct check *c, str name, enum namespace *ret)
{
	/* Each works in one namespace and disturbs no other pod. All of them do so on every kernel that this program runs on. */
	static const str safe[] = { STR_INIT("kernel.shm_rmid_forced"), STR_INIT("net.ipv4.ip_local_port_range"),
				    STR_INIT("net.ipv4.tcp_syncookies"), STR_INIT("net.ipv4.ping_group_range"),
				    STR_INIT("net.ipv4.ip_unprivileged_port_start"), STR_INIT("net.ipv4.ip_local_reserved_ports"),
				    STR_INIT("net.ipv4.tcp_keepalive_time"), STR_INIT("net.ipv4.tcp_fin_timeout"),
				    STR_INIT("net.ipv4.tcp_keepalive_intvl"), STR_INIT("net.ipv4.tcp_keepalive_probes"),
				    STR_INIT("net.ipv4.tcp_rmem"), STR_INIT("net.ipv4.tcp_wmem") };

	for (size_t i = 0; i < ARRAY_LEN(safe); i++)
		if (pattern_allows(c->arena, safe[i], name, ret))
			return true;
	VAL_EACH(pattern, c->node->allowed_sysctls)
		if (pattern_allows(c->arena, val_as_str(*pattern), name, ret))
			return true;
	return false;
}

static bool sysctl_refused(const struct check *c, str name, const char *why)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);

	buf_add(&b, STR("forbidden sysctl: "));
	buf_add_quoted(&b, name);
	buf_addf(&b, " %s", why);
	return refuse(c, STR("SysctlForbidden"), arena_str(c->arena, buf_str(&b)));
}

static bool sysctls_allow(const struct check *c)
{
	struct val spec = val_get(c->in->pod, spec);

	VAL_EACH(s, val_get(spec, securityContext, sysctls)) {
		str name = sysctl_normal(c->arena, val_str(*s, name));
		enum namespace ns;
		if (!sysctl_is_allowed(c, name, &ns))
			return sysctl_refused(c, name, "not allowlisted");
		if (ns == NAMESPACE_IPC && val_bool(spec, hostIPC))
			return sysctl_refused(c, name, "not allowed with host IPC enabled");
		if (ns == NAMESPACE_NET && val_bool(spec, hostNetwork))
			return sysctl_refused(c, name, "not allowed with host Net enabled");
	}
	return true;
}

/* ---- operating system and features ---- */

static bool system_allows(const struct check *c)
{
	struct val pod = c->in->pod;
	struct val label = val_find(val_get(pod, metadata, labels), STR("kubernetes.io/os"));
	str os = val_str(pod, spec, os, name), policy = val_str(pod, spec, securityContext, supplementalGroupsPolicy);

	if (val_exists(label) && !str_eq(val_as_str(label), STR("linux")))
		return refuse(c, STR("PodOSSelectorNodeLabelDoesNotMatch"),
			      STR("Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"));
	if (val_has(pod, spec, os) && !str_eq(os, STR("linux")))
		return refuse(c, STR("PodOSNotSupported"), STR("Failed to admit pod as the OS field doesn't match node OS"));
	if (str_eq(policy, STR("Strict")) && !val_bool(c->in->node, status, features, supplementalGroupsPolicy))
		return refuse(c, STR("SupplementalGroupsPolicyNotSupported"),
			      STR("SupplementalGroupsPolicy=Strict is not supported in this node"));
	return true;
}

/* ---- ports ---- */

struct host_port {
	str ip, protocol;
	int64_t port;
};

static struct host_port host_port(struct val port)
{
	str ip = val_str(port, hostIP), protocol = val_str(port, protocol);

	return (struct host_port){ ip.n ? ip : STR("0.0.0.0"), protocol.n ? protocol : STR("TCP"), val_int(port, hostPort) };
}

static bool ports_clash(struct host_port x, struct host_port y)
{
	static const str any = STR_INIT("0.0.0.0");

	return x.port == y.port && str_eq(x.protocol, y.protocol) && (str_eq(x.ip, y.ip) || str_eq(x.ip, any) || str_eq(y.ip, any));
}

static bool port_is_taken(struct val ports, struct host_port wanted)
{
	VAL_EACH(p, ports)
		if (val_int(*p, hostPort) > 0 && ports_clash(host_port(*p), wanted))
			return true;
	return false;
}

/* Containers and sidecars hold their ports; those that only run at the beginning do not. */
static bool pod_holds(struct val pod, struct host_port wanted)
{
	VAL_EACH(c, val_get(pod, spec, containers))
		if (port_is_taken(val_get(*c, ports), wanted))
			return true;
	VAL_EACH(c, val_get(pod, spec, initContainers))
		if (container_is_sidecar(*c) && port_is_taken(val_get(*c, ports), wanted))
			return true;
	return false;
}

static bool others_hold(const struct admit_input *in, struct val ports)
{
	VAL_EACH(p, ports)
		VAL_EACH(other, in->others)
			if (val_int(*p, hostPort) > 0 && admit_counts(in, *other) && pod_holds(*other, host_port(*p)))
				return true;
	return false;
}

static bool ports_are_free(const struct admit_input *in)
{
	VAL_EACH(c, val_get(in->pod, spec, containers))
		if (others_hold(in, val_get(*c, ports)))
			return false;
	VAL_EACH(c, val_get(in->pod, spec, initContainers))
		if (container_is_sidecar(*c) && others_hold(in, val_get(*c, ports)))
			return false;
	return true;
}

/* ---- what the scheduler looks at ---- */

static bool predicate(const struct check *c, const char *name, const char *why)
{
	return refuse(c, str_of(name), arena_printf(c->arena, "Predicate %s failed: %s", name, why));
}

static bool others_allow(const struct check *c)
{
	const struct admit_input *in = c->in;
	str wanted = val_str(in->pod, spec, nodeName);
	struct node_affinity affinity;

	node_affinity_compile(c->arena, val_get(in->pod, spec), &affinity);
	if (node_affinity_matches(&affinity, in->node, NULL) <= 0)
		return predicate(c, "NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
	if (wanted.n && !str_eq(wanted, val_str(in->node, metadata, name)))
		return predicate(c, "NodeName", "node(s) didn't match the requested node name");
	if (!ports_are_free(in))
		return predicate(c, "NodePorts", "node(s) didn't have free ports for the requested pod ports");
	if (!pod_is_static(in->pod) && is_tainted(in))
		return predicate(c, "TaintToleration", "node(s) had taints that the pod didn't tolerate");
	return true;
}

/* Resources come first; but a critical pod can do something about those, so that all else counts more. */
static bool predicates_allow(const struct check *c)
{
	struct shortages s = admit_shortages(c->arena, c->in);

	if ((!s.n || admit_is_critical(c->in->pod)) && !others_allow(c))
		return false;
	if (!s.n)
		return true;
	return refuse(c, arena_join(c->arena, STR("OutOf"), s.all[0].name),
		      arena_printf(c->arena, "Node didn't have enough resource: " STR_FMT ", requested: %lld, used: %lld, capacity: %lld",
				   STR_ARG(s.all[0].name), (long long)s.all[0].requested, (long long)s.all[0].used,
				   (long long)s.all[0].capacity));
}

/* ---- AppArmor ---- */

#define APPARMOR_ANNOTATION "container.apparmor.security.beta.kubernetes.io/"

static bool is_confined(struct val security)
{
	struct val profile = val_get(security, appArmorProfile);
	return val_exists(profile) && !str_eq(val_str(profile, type), STR("Unconfined"));
}

static bool wants_apparmor(struct val pod)
{
	const struct val lists[] = { val_get(pod, spec, initContainers), val_get(pod, spec, containers),
				     val_get(pod, spec, ephemeralContainers) };

	if (is_confined(val_get(pod, spec, securityContext)))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			if (is_confined(val_get(*c, securityContext)))
				return true;
	VAL_EACH_MEMBER(m, val_get(pod, metadata, annotations))
		if (str_starts(atom_str(m->key), STR(APPARMOR_ANNOTATION)))
			return !str_eq(val_as_str(m->val), STR("unconfined"));
	return false;
}

static bool machine_has_apparmor(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64);

	return access("/sys/kernel/security/apparmor", F_OK) == 0 && file_read("/sys/module/apparmor/parameters/enabled", &b, NULL) == 0 && b.n &&
	       b.p[0] == 'Y';
}

static bool apparmor_allows(const struct check *c)
{
	str phase = val_str(c->in->pod, status, phase);

	if ((phase.n && !str_eq(phase, STR("Pending"))) || !wants_apparmor(c->in->pod) || machine_has_apparmor())
		return true;
	return refuse(c, STR("AppArmor"), STR("Cannot enforce AppArmor: AppArmor is not enabled on the host"));
}

bool admit_pod(const struct kubelet_node *n, struct arena *a, const struct admit_input *in, str *ret_reason, str *ret_message)
{
	const struct check c = { n, a, in, ret_reason, ret_message };

	if (!pressure_allows(&c) || !sysctls_allow(&c) || !system_allows(&c) || !predicates_allow(&c) || !apparmor_allows(&c))
		return false;
	if (in->shutting_down)
		return refuse(&c, STR("NodeShutdown"), STR("Pod was rejected as the node is shutting down."));
	return true;
}
