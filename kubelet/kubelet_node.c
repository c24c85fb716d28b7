/* What this node is, by its configuration and the machine. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "kubelet/kubelet_priv.h"
#include "kubelet/node_machine.h"
#include "oci/cgroup.h"

#define BACKOFF_MAX_NS (300 * NS_PER_S)

/* The address that packets to elsewhere would come from; "" if there is no way. Nothing is sent. */
static str own_address(struct arena *a, int family)
{
	/* Any address outside will do: these are for documentation. */
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xc0000201) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = { { { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } } } };
	const struct sockaddr *to = family == AF_INET ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
	socklen_t n = family == AF_INET ? sizeof(v4) : sizeof(v6);
	char text[INET6_ADDRSTRLEN] = "";
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return STR_NONE;
	if (connect(fd, to, n) == 0 && getsockname(fd, family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, &n) == 0)
		inet_ntop(family, family == AF_INET ? (const void *)&v4.sin_addr : (const void *)&v6.sin6_addr, text, sizeof(text));
	close(fd);
	return arena_str(a, str_of(text));
}

static void take_addresses(struct kubelet *k)
{
	str said = str_of(k->options->node_ip), first, second;

	str_cut(said, ',', &first, &second);
	const str each[] = { str_trim(first), str_trim(second) };
	for (size_t i = 0; i < ARRAY_LEN(each); i++) {
		if (each[i].n && str_chr(each[i], ':') < 0 && !str_eq(each[i], STR("0.0.0.0")))
			k->node.address = arena_str(&k->arena, each[i]);
		else if (each[i].n && !str_eq(each[i], STR("::")))
			k->node.address6 = arena_str(&k->arena, each[i]);
	}
	if (k->node.address.n || k->node.address6.n)
		return;
	if (!str_eq(each[0], STR("::")))
		k->node.address = own_address(&k->arena, AF_INET);
	if (!k->node.address.n)
		k->node.address6 = own_address(&k->arena, AF_INET6);
	if (!k->node.address.n && !k->node.address6.n) {
		log_warn("this machine has no address that others could reach it by; --node-ip tells one");
		k->node.address = STR("127.0.0.1");
	}
}

int kubelet_node_name(const struct kubelet_options *o, struct arena *a, str *ret, struct err *err)
{
	char host[256];
	str name = str_trim(str_of(o->hostname_override));

	if (!name.n) {
		if (gethostname(host, sizeof(host)) < 0)
			return err_set(err, ERR_SYSTEM, "this machine's name cannot be read; --hostname-override tells one");
		host[sizeof(host) - 1] = '\0';
		name = str_trim(str_of(host));
	}
	if (!name.n)
		return err_set(err, ERR_BAD_REQUEST, "this machine has no name; --hostname-override tells one");
	char *made = (char *)arena_str(a, name).p;
	for (char *p = made; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p += 'a' - 'A';
	*ret = str_of(made);
	return 0;
}

int kubelet_node_make(struct kubelet *k, struct err *err)
{
	struct kubelet_node *n = &k->node;
	struct val c = k->config;
	struct node_machine m;
	int r;

	if ((r = kubelet_node_name(k->options, &k->arena, &n->name, err)) < 0 || (r = node_machine_read(&k->arena, "", &m, err)) < 0)
		return r;
	take_addresses(k);
	n->root = str_of(k->options->root);
	n->log_root = val_str(c, podLogsDir);
	n->cluster_domain = val_str(c, clusterDomain);
	n->cluster_dns = val_get(c, clusterDNS);
	n->resolv_conf = val_str(c, resolvConf);
	n->cgroup_v2 = cgroup_mode() == CGROUP_V2;
	n->cgroup_root = val_str(c, cgroupRoot);
	n->memory_bytes = m.memory_bytes;
	n->cpus_milli = m.cpus * 1000;
	n->allowed_sysctls = val_get(c, allowedUnsafeSysctls);
	n->max_pods = (int)val_int(c, maxPods);
	n->pod_pids_limit = (int)val_int(c, podPidsLimit);
	n->seccomp_default = val_bool(c, seccompDefault);
	n->single_process_oom_kill = val_bool(c, singleProcessOOMKill);
	n->no_cfs_quota = val_has(c, cpuCFSQuota) && !val_bool(c, cpuCFSQuota);
	n->cfs_period_us = config_duration_ns(val_get(c, cpuCFSQuotaPeriod)) / 1000;
	n->swap_limited = str_eq(val_str(c, memorySwap, swapBehavior), STR("LimitedSwap"));
	n->swap_bytes = m.swap_bytes;
	n->memory_qos = n->cgroup_v2 && config_gate(c, STR("MemoryQoS"));
	n->memory_tiered = str_eq(val_str(c, memoryReservationPolicy), STR("TieredReservation"));
	n->memory_throttling = val_double(c, memoryThrottlingFactor);
	n->swap_controller = node_has_swap_controller(&k->arena, "", n->cgroup_v2);
	n->hooks = &k->hooks;
	k->backoff_max_ns = config_duration_ns(val_get(c, crashLoopBackOff, maxContainerRestartPeriod));
	if (!k->backoff_max_ns)
		k->backoff_max_ns = BACKOFF_MAX_NS;
	if ((r = file_make_dirs(arena_str(&k->arena, n->root).p, 0750, err)) < 0 ||
	    (r = file_make_dirs(arena_join(&k->arena, n->root, STR("/pods")).p, 0750, err)) < 0 ||
	    (r = file_make_dirs(arena_str(&k->arena, n->log_root).p, 0755, err)) < 0)
		return r;
	str beside = str_head(n->log_root, (size_t)MAX(str_rchr(n->log_root, '/'), (ptrdiff_t)0));
	return file_make_dirs(arena_join(&k->arena, beside, STR("/containers")).p, 0755, err);
}
