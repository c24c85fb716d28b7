#include "cni/attach.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "cni/ipam.h"
#include "cni/netns.h"
#include "codec/atoms.h"

enum { NAME_TRIES = 10, SETTLE_MS = 5000, SETTLE_STEP_MS = 20 };

int attach_open(struct attach *t, struct plugin *p, struct err *err)
{
	int r;

	t->netns = netns_open(p->netns, err);
	if (t->netns < 0) {
		p->code = CNI_INVALID_NETNS;
		return t->netns;
	}
	if ((r = netlink_open(&t->host, NETLINK_ROUTE, err)) < 0)
		return r;
	return netns_netlink(t->netns, &t->pod, err);
}

void attach_close(struct attach *t)
{
	netlink_close(&t->host);
	netlink_close(&t->pod);
	if (t->netns >= 0)
		close(t->netns);
	t->netns = -1;
}

/* ---- results ---- */

int attach_ips(struct plugin *p, struct val result, struct attach_ip **ret, size_t *ret_n, struct err *err)
{
	struct val list = val_get(result, ips);

	*ret = ARENA_ARRAY(p->arena, struct attach_ip, val_len(list) + 1);
	*ret_n = 0;
	VAL_EACH(v, list) {
		struct attach_ip *ip = &(*ret)[(*ret_n)++];
		str gateway = val_str(*v, gateway);
		*ip = (struct attach_ip){ 0 };
		if (!inet_net_parse(val_str(*v, address), &ip->net) || (gateway.n && !inet_parse(gateway, &ip->gateway)))
			return plugin_fail(p, CNI_DECODING_FAILURE, err, "the result has an invalid address: " STR_FMT,
					   STR_ARG(val_str(*v, address)));
	}
	return 0;
}

void attach_mac(struct inet ip, uint8_t ret[6])
{
	/* Locally administered, and not those that others are known to use. */
	static const uint8_t prefix[2][2] = { { 0x0e, 0xc8 }, { 0x0e, 0xc6 } };
	memcpy(ret, prefix[!inet_is_v4(ip)], 2);
	memcpy(ret + 2, ip.b + inet_len(ip) - 4, 4);
}

struct val attach_interface(struct plugin *p, const struct link *l, bool in_pod)
{
	char mac[MAC_TEXT];

	return OBJECT(p->arena, F(name, val_of_str(arena_str(p->arena, str_of(l->name)))),
		      F(mac, val_of_str(arena_str(p->arena, str_of(mac_text(l->mac, mac))))),
		      F(sandbox, in_pod ? val_of_str(str_of(p->netns)) : VAL_EMPTY));
}

struct val attach_dns(struct plugin *p, struct val result)
{
	struct val dns = val_get(p->config, dns);
	return val_is_zero(dns) ? result : val_with(p->arena, result, dns, dns);
}

/* ---- the pair ---- */

int attach_veth(struct attach *t, struct plugin *p, const struct attach_options *o, struct err *err)
{
	char name[IFNAMSIZ];
	struct link there;
	struct err e = ERR_INIT;
	int r = -ERR_ALREADY_EXISTS, home = netns_open_own(err);

	if (home < 0)
		return home;
	for (int i = 0; i < NAME_TRIES && r == -ERR_ALREADY_EXISTS; i++) {
		(void)snprintf(name, sizeof(name), "veth%08x", (unsigned)random_u64());
		struct link_spec spec = { .name = p->ifname, .kind = "veth", .mtu = o->mtu, .mac = o->mac,
					  .peer_name = name, .peer_netns = home };
		r = link_add(&t->pod, &spec, &e);
		if (r == -ERR_ALREADY_EXISTS && link_get(&t->pod, p->ifname, &there, NULL) == 0)
			break;
	}
	close(home);
	if (r < 0) {
		if (err)
			*err = e;
		return r == -ERR_ALREADY_EXISTS ? err_set(err, ERR_ALREADY_EXISTS,
							  "container veth name (\"%s\") already exists", p->ifname) : r;
	}
	if ((r = link_get(&t->pod, p->ifname, &t->pod_link, err)) < 0 || (r = link_get(&t->host, name, &t->host_link, err)) < 0)
		return r;
	/* Routes of the node are not announced by pods. */
	char setting[64];
	(void)snprintf(setting, sizeof(setting), "net/ipv6/conf/%s/accept_ra", name);
	(void)sysctl_set(setting, "0", NULL);
	return link_set(&t->host, t->host_link.index, &(struct link_change){ .up = LINK_ON }, err);
}

static void pod_setting(const char *family, const char *ifname, const char *name, const char *value)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "net/%s/conf/%s/%s", family, ifname, name);
	(void)sysctl_set(path, value, NULL);
}

/* What does not exist (a kernel without IPv6) needs no setting; what matters fails when addresses are added. */
static int pod_settings(struct attach *t, struct plugin *p, bool six, bool detect_duplicates, struct err *err)
{
	CLEANUP(netns_leave) struct netns_visit visit = NETNS_VISIT_INIT;
	int r = netns_visit(&visit, t->netns, err);

	if (r < 0)
		return r;
	pod_setting("ipv4", p->ifname, "arp_notify", "1");
	pod_setting("ipv6", p->ifname, "ndisc_notify", "1");
	pod_setting("ipv6", p->ifname, "accept_dad", detect_duplicates ? "1" : "0");
	if (six) {
		pod_setting("ipv6", "lo", "disable_ipv6", "0");
		pod_setting("ipv6", p->ifname, "disable_ipv6", "0");
		pod_setting("ipv6", p->ifname, "keep_addr_on_down", "1");
	}
	return 0;
}

static void sleep_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	(void)nanosleep(&t, NULL);
}

/* Waits until no address is tentative any more. */
static int settle(struct attach *t, struct plugin *p, struct err *err)
{
	for (int ms = 0; ms < SETTLE_MS; ms += SETTLE_STEP_MS) {
		struct addr *addrs;
		size_t n;
		bool waits = false;
		int r = addr_list(&t->pod, t->pod_link.index, p->arena, &addrs, &n, err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++) {
			char text[INET_TEXT];
			if (addrs[i].flags & IFA_F_DADFAILED)
				return err_set(err, ERR_CONFLICT, "link %s has address %s in DADFAILED state", p->ifname,
					       inet_text(addrs[i].net.ip, text));
			waits |= (addrs[i].flags & IFA_F_TENTATIVE) != 0;
		}
		if (!waits)
			return 0;
		sleep_ms(SETTLE_STEP_MS);
	}
	return 0;
}

static int route_of(struct plugin *p, struct val v, int index, struct route *ret, struct err *err)
{
	str gw = val_str(v, gw);

	*ret = (struct route){ .index = index, .table = (uint32_t)val_int(v, table), .metric = (uint32_t)val_int(v, priority),
			       .mtu = (uint32_t)val_int(v, mtu), .advmss = (uint32_t)val_int(v, advmss),
			       .scope = (uint8_t)val_int(v, scope) };
	if (!inet_net_parse(val_str(v, dst), &ret->dst) || (gw.n && !inet_parse(gw, &ret->gw)))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "invalid route to " STR_FMT " via " STR_FMT,
				   STR_ARG(val_str(v, dst)), STR_ARG(gw));
	ret->dst.ip = inet_net_first(ret->dst);
	return 0;
}

int attach_routes(struct attach *t, struct plugin *p, struct val result, struct err *err)
{
	struct attach_ip *ips;
	size_t n;
	int r = attach_ips(p, result, &ips, &n, err);

	if (r < 0)
		return r;
	VAL_EACH(v, val_get(result, routes)) {
		struct route route;
		if ((r = route_of(p, *v, t->pod_link.index, &route, err)) < 0)
			return r;
		for (size_t i = 0; i < n && !inet_exists(route.gw); i++)
			if (ips[i].gateway.family == route.dst.ip.family)
				route.gw = ips[i].gateway;
		if (!inet_exists(route.gw) && !val_has(*v, scope))
			route.scope = RT_SCOPE_LINK;
		if ((r = route_add(&t->pod, &route, ROUTE_APPEND, err)) < 0)
			return r;
	}
	return 0;
}

int attach_up(struct attach *t, struct err *err)
{
	return link_set(&t->pod, t->pod_link.index, &(struct link_change){ .up = LINK_ON }, err);
}

int attach_configure(struct attach *t, struct plugin *p, struct val result, const struct attach_options *o, struct err *err)
{
	struct attach_ip *ips;
	bool six = false;
	size_t n;
	int r = attach_ips(p, result, &ips, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		six |= !inet_is_v4(ips[i].net.ip);
	if ((r = pod_settings(t, p, six, o->detect_duplicates, err)) < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if ((r = addr_add(&t->pod, t->pod_link.index, ips[i].net, o->detect_duplicates, err)) < 0)
			return r;
	if ((r = attach_up(t, err)) < 0 || (six && o->detect_duplicates && (r = settle(t, p, err)) < 0))
		return r;
	return attach_routes(t, p, result, err);
}

/* ---- CHECK ---- */

static int check_addresses(struct attach *t, struct plugin *p, struct err *err)
{
	struct attach_ip *ips;
	struct addr *addrs;
	size_t n, n_addrs;
	int r;

	if ((r = attach_ips(p, p->prev, &ips, &n, err)) < 0 ||
	    (r = addr_list(&t->pod, t->pod_link.index, p->arena, &addrs, &n_addrs, err)) < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		char text[INET_TEXT];
		size_t k = 0;
		while (k < n_addrs && !inet_net_eq(addrs[k].net, ips[i].net))
			k++;
		if (k == n_addrs)
			return err_set(err, ERR_NOT_FOUND, "Failed to match addr %s on interface %s",
				       inet_net_text(ips[i].net, text), p->ifname);
	}
	return 0;
}

static int check_routes(struct attach *t, struct plugin *p, struct err *err)
{
	struct route *there[2] = { NULL };
	size_t n[2] = { 0 };
	int r;

	if (!val_len(val_get(p->prev, routes)))
		return 0;
	if ((r = route_list(&t->pod, AF_INET, p->arena, &there[0], &n[0], err)) < 0 ||
	    (r = route_list(&t->pod, AF_INET6, p->arena, &there[1], &n[1], err)) < 0)
		return r;
	VAL_EACH(v, val_get(p->prev, routes)) {
		struct route want;
		bool found = false;
		if ((r = route_of(p, *v, 0, &want, err)) < 0)
			return r;
		for (size_t six = !inet_is_v4(want.dst.ip), i = 0; i < n[six] && !found; i++)
			found = inet_net_eq(there[six][i].dst, want.dst) && (!inet_exists(want.gw) ||
									     inet_eq(there[six][i].gw, want.gw));
		if (!found)
			return err_set(err, ERR_NOT_FOUND, "Expected Route to " STR_FMT " not found in routing table",
				       STR_ARG(val_str(*v, dst)));
	}
	return 0;
}

int attach_check(struct attach *t, struct plugin *p, struct err *err)
{
	struct val said = VAL_EMPTY;
	char mac[MAC_TEXT];
	int r;

	if (!val_exists(p->prev))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "Required prevResult missing");
	VAL_EACH(v, val_get(p->prev, interfaces))
		if (str_eq(val_str(*v, name), str_of(p->ifname)) && str_eq(val_str(*v, sandbox), str_of(p->netns)))
			said = *v;
	if (!val_exists(said))
		return err_set(err, ERR_NOT_FOUND, "prevResult has no interface %s in netns %s", p->ifname, p->netns);
	if ((r = link_get(&t->pod, p->ifname, &t->pod_link, err)) < 0)
		return err_set(err, ERR_NOT_FOUND, "Interface name %s not found", p->ifname);
	if (!str_eq(str_of(t->pod_link.kind), STR("veth")))
		return err_set(err, ERR_INVALID, "Error: Container interface %s not of type veth", p->ifname);
	if (val_str(said, mac).n && !str_eq(val_str(said, mac), str_of(mac_text(t->pod_link.mac, mac))))
		return err_set(err, ERR_INVALID, "Interface %s Mac " STR_FMT " doesn't match container Mac: %s", p->ifname,
			       STR_ARG(val_str(said, mac)), mac);
	if ((r = check_addresses(t, p, err)) < 0)
		return r;
	return check_routes(t, p, err);
}

/* ---- the rest ---- */

static int remove_link(struct plugin *p, struct err *err)
{
	CLEANUP(attach_close) struct attach t = ATTACH_INIT;
	struct err e = ERR_INIT;
	struct link l;
	int r;

	if (!*p->netns || (r = t.netns = netns_open(p->netns, &e)) == -ERR_NOT_FOUND)
		return 0;
	if (r >= 0 && (r = netns_netlink(t.netns, &t.pod, &e)) == 0 && (r = link_get(&t.pod, p->ifname, &l, &e)) == 0)
		r = link_del(&t.pod, l.index, &e);
	if (r == 0 || r == -ERR_NOT_FOUND || e.sys == ENODEV)
		return 0;
	if (err)
		*err = e;
	return r;
}

int attach_del(struct plugin *p, struct err *err)
{
	struct rules_owner owner = plugin_owner(p);
	int r = remove_link(p, err);

	/* An address is free only once nobody can use it any more. */
	if (r < 0 || (val_bool(p->config, ipMasq) && (r = rules_remove(RULES_MASQUERADE, &owner, err)) < 0))
		return r;
	return ipam_used(p) ? ipam_del(p, err) : 0;
}

int attach_gc(struct plugin *p, struct err *err)
{
	struct rules_owner *valid;
	size_t n;
	int r = plugin_valid(p, &valid, &n, err);

	if (r < 0 || (val_bool(p->config, ipMasq) && (r = rules_collect(RULES_MASQUERADE, p->network, valid, n, err)) < 0))
		return r;
	return ipam_used(p) ? ipam_gc(p, err) : 0;
}

int attach_forward(const struct attach_ip *ips, size_t n, struct err *err)
{
	static const char *const settings[2] = { "net/ipv6/conf/all/forwarding", "net/ipv4/ip_forward" };
	bool done[2] = { false, false };
	int r;

	for (size_t i = 0; i < n; i++) {
		bool four = inet_is_v4(ips[i].net.ip);
		if (!done[four] && (r = sysctl_set(settings[four], "1", err)) < 0)
			return err_wrap(err, r, "failed to enable forwarding");
		done[four] = true;
	}
	return 0;
}

int attach_masquerade(struct plugin *p, const struct attach_ip *ips, size_t n, struct err *err)
{
	struct inet_net *nets = ARENA_ARRAY(p->arena, struct inet_net, n + 1);
	struct rules_owner owner = plugin_owner(p);

	for (size_t i = 0; i < n; i++)
		nets[i] = ips[i].net;
	return rules_masquerade(&owner, nets, n, err);
}
