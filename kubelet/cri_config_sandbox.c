/* What the runtime is told about a pod as a whole. */
#include "base/map.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "kubelet/cri_config_priv.h"
#include "machinery/ip.h"
#include "machinery/names.h"

enum { HOSTNAME_MAX = 63, KERNEL_HOSTNAME_MAX = 64, CONFIG_MAX = 64 << 20 };

int cri_config_typed(struct arena *a, struct val loose, const struct type *type, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf wire = BUF_INIT(CONFIG_MAX);
	int r = proto_encode(&wire, loose, type, err);

	return r < 0 ? r : proto_decode(a, arena_str(a, buf_str(&wire)), type, ret, err);
}

str cri_config_pod_name(struct arena *a, struct val pod)
{
	return arena_printf(a, STR_FMT "_" STR_FMT "(" STR_FMT ")", STR_ARG(val_str(pod, metadata, name)),
			    STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(val_str(pod, metadata, uid)));
}

str pod_log_folder(const struct kubelet_node *n, struct arena *a, struct val pod)
{
	return arena_printf(a, STR_FMT "/" STR_FMT "_" STR_FMT "_" STR_FMT, STR_ARG(n->log_root),
			    STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(val_str(pod, metadata, name)), STR_ARG(val_str(pod, metadata, uid)));
}

str pod_cgroup_parent(const struct kubelet_node *n, struct arena *a, struct val pod)
{
	str class = pod_qos(pod), root = str_eq(n->cgroup_root, STR("/")) ? STR_NONE : n->cgroup_root;
	const char *tier = str_eq(class, STR("Burstable")) ? "/burstable" : str_eq(class, STR("BestEffort")) ? "/besteffort" : "";

	return arena_printf(a, STR_FMT "/kubepods%s/pod" STR_FMT, STR_ARG(root), tier, STR_ARG(val_str(pod, metadata, uid)));
}

/* ---- host name ---- */

static int check_name(struct arena *a, name_check *check, const char *what, const char *kind, str name, struct err *err)
{
	struct name_errors e;

	if (!check(name, &e))
		return 0;
	str why = name_errors_join(a, &e, ";");
	return err_set(err, ERR_INVALID, "pod %s \"" STR_FMT "\" is not a valid DNS %s: " STR_FMT, what, STR_ARG(name), kind, STR_ARG(why));
}

static int cut_hostname(struct val pod, str name, str *ret, struct err *err)
{
	str cut = str_head(name, HOSTNAME_MAX);

	while (name.n > HOSTNAME_MAX && cut.n && (cut.p[cut.n - 1] == '-' || cut.p[cut.n - 1] == '.'))
		cut.n--;
	if (name.n && !cut.n)
		return err_set(err, ERR_INVALID, "hostname for pod \"" STR_FMT "\" was invalid: \"" STR_FMT "\"",
			       STR_ARG(val_str(pod, metadata, name)), STR_ARG(name));
	*ret = cut;
	return 0;
}

int pod_hostname(const struct kubelet_node *n, struct arena *a, struct val pod, str *ret_hostname, str *ret_domain, struct err *err)
{
	struct val override = val_get(pod, spec, hostnameOverride);
	str name = val_str(pod, metadata, name), said = val_str(pod, spec, hostname), subdomain = val_str(pod, spec, subdomain);
	int r = 0;

	*ret_domain = STR_NONE;
	if (!val_is_nil(override)) {
		name = val_as_str(override);
		r = check_name(a, name_check_dns1123_subdomain, "HostnameOverride", "subdomain", name, err);
		return r < 0 ? r : cut_hostname(pod, name, ret_hostname, err);
	}
	if (said.n && (r = check_name(a, name_check_dns1123_label, "Hostname", "label", name = said, err)) < 0)
		return r;
	if ((r = cut_hostname(pod, name, ret_hostname, err)) < 0 || !subdomain.n)
		return r;
	if ((r = check_name(a, name_check_dns1123_label, "Subdomain", "label", subdomain, err)) < 0)
		return r;
	*ret_domain = arena_printf(a, STR_FMT "." STR_FMT ".svc." STR_FMT, STR_ARG(subdomain), STR_ARG(val_str(pod, metadata, namespace)),
				   STR_ARG(n->cluster_domain));
	return 0;
}

/* As the kernel gets it: the whole name when the pod wants that. */
static int kernel_hostname(const struct kubelet_node *n, struct arena *a, struct val pod, struct val *ret, struct err *err)
{
	str name, domain;
	int r;

	*ret = VAL_EMPTY;
	if (val_bool(pod, spec, hostNetwork))
		return 0;
	if ((r = pod_hostname(n, a, pod, &name, &domain, err)) < 0)
		return r;
	*ret = VAL_STR(name);
	if (!domain.n || !val_bool(pod, spec, setHostnameAsFQDN))
		return 0;
	str whole = arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(domain));
	if (whole.n > KERNEL_HOSTNAME_MAX)
		return err_set(err, ERR_INVALID, "failed to construct FQDN from pod hostname and cluster domain, FQDN " STR_FMT
			       " is too long (%d characters is the max, %zu characters requested)", STR_ARG(whole), KERNEL_HOSTNAME_MAX,
			       whole.n);
	*ret = VAL_STR(whole);
	return 0;
}

/* ---- labels, ports, sysctls ---- */

static struct val with_text(struct arena *a, struct val map, str key, str text)
{
	return val_put(a, map, atom_make(a, key), VAL_STR(text));
}

static struct val pod_labels(struct arena *a, struct val pod)
{
	struct val labels = val_get(pod, metadata, labels);

	labels = with_text(a, labels, STR("io.kubernetes.pod.name"), val_str(pod, metadata, name));
	labels = with_text(a, labels, STR("io.kubernetes.pod.namespace"), val_str(pod, metadata, namespace));
	return with_text(a, labels, STR("io.kubernetes.pod.uid"), val_str(pod, metadata, uid));
}

/* A name, or what makes a port without one different from others; the same number may be used for both families. */
static str port_key(struct arena *a, struct val port)
{
	str name = val_str(port, name), address = val_str(port, hostIP);
	struct ip ip;

	if (name.n)
		return name;
	const char *family = !address.n ? "any" : ip_parse(address, &ip, NULL) && !ip_is_v4(&ip) ? "v6" : "v4";
	return arena_printf(a, "%s-" STR_FMT "-" STR_FMT ":%lld:%lld", family, STR_ARG(val_str(port, protocol)), STR_ARG(address),
			    (long long)val_int(port, containerPort), (long long)val_int(port, hostPort));
}

static void add_ports(struct arena *a, struct val_builder *b, struct val container)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;

	VAL_EACH(p, val_get(container, ports)) {
		str protocol = val_str(*p, protocol);
		if (map_put(&seen, port_key(a, *p), (void *)p))
			continue;
		val_add_item(b, OBJECT(a, F(protocol, protocol.n ? VAL_STR(protocol) : VAL_LIT("TCP")),
				       F(containerPort, val_get(*p, containerPort)), F(hostPort, val_get(*p, hostPort)),
				       F(hostIp, val_get(*p, hostIP))));
	}
}

static struct val port_mappings(struct arena *a, struct val pod)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(c, val_get(pod, spec, containers))
		add_ports(a, &b, *c);
	return val_end_list(&b);
}

/* net/ipv4/conf/eth0.1/x is written net.ipv4.conf.eth0/1.x: by the first separator one knows which way it is. */
static str sysctl_name(struct arena *a, str name)
{
	ptrdiff_t dot = str_chr(name, '.'), slash = str_chr(name, '/');

	if (slash < 0 || (dot >= 0 && dot < slash))
		return name;
	str made = arena_str(a, name);
	for (char *p = (char *)made.p; p < made.p + made.n; p++)
		*p = *p == '.' ? '/' : *p == '/' ? '.' : *p;
	return made;
}

/* Of a name that is given twice the last one counts. */
static struct val sysctls(struct arena *a, struct val pod)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(s, val_get(pod, spec, securityContext, sysctls))
		val_add_member(&b, atom_make(a, sysctl_name(a, val_str(*s, name))), VAL_STR(val_str(*s, value)));
	return val_end_object(&b);
}

/* ---- all of it ---- */

int sandbox_config_make(const struct kubelet_node *n, struct arena *a, struct val pod, unsigned attempt, struct val *ret, struct err *err)
{
	struct val dns, hostname, security;
	int r;

	if ((r = cri_config_dns(n, a, pod, &dns, err)) < 0 || (r = kernel_hostname(n, a, pod, &hostname, err)) < 0 ||
	    (r = cri_config_sandbox_security(n, a, pod, &security, err)) < 0)
		return r;
	struct val metadata = OBJECT(a, F(name, val_get(pod, metadata, name)), F(uid, val_get(pod, metadata, uid)),
				     F(namespace, val_get(pod, metadata, namespace)), F(attempt, val_of_int(attempt)));
	struct val linux_config = OBJECT(a, F(cgroupParent, VAL_STR(pod_cgroup_parent(n, a, pod))), F(securityContext, security),
					 F(sysctls, sysctls(a, pod)), F(overhead, cri_config_overhead(n, a, pod)),
					 F(resources, cri_config_sandbox_resources(n, a, pod)));
	struct val config = OBJECT(a, F(metadata, metadata), F(hostname, hostname), F(logDirectory, VAL_STR(pod_log_folder(n, a, pod))),
				   F(dnsConfig, dns), F(portMappings, port_mappings(a, pod)), F(labels, pod_labels(a, pod)),
				   F(annotations, val_get(pod, metadata, annotations)), F(linux, linux_config));

	return cri_config_typed(a, config, TYPE(cri_v1, PodSandboxConfig), ret, err);
}
