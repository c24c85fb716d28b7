/*
 * bridge: a veth pair between the pod and a bridge of the node, which is made if it is not there. The address comes first and the
 * pair after it, because the pod's hardware address follows from the address (attach_mac). Whatever fails, what was made is undone.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/random.h"
#include "cni/attach.h"
#include "cni/bridge_vlan.h"
#include "cni/ipam.h"
#include "cni/netns.h"
#include "cni/result.h"
#include "codec/atoms.h"

enum { PORT_WAIT_MS = 3000, MTU_MAX = 65535 };

struct conf {
	const char *bridge;
	bool gateway, default_gateway, force_address, masquerade, hairpin, promisc, detect_duplicates, no_interface, isolated;
	uint32_t mtu;
	bool has_mac;
	uint8_t mac[6];
	struct bridge_vlans vlans;
};

/* ---- configuration ---- */

static int load_bools(struct plugin *p, struct conf *c, struct err *err)
{
	const struct {
		const char *name;
		bool *value;
	} bools[] = {
		{ "isGateway", &c->gateway }, { "isDefaultGateway", &c->default_gateway }, { "forceAddress", &c->force_address },
		{ "ipMasq", &c->masquerade }, { "hairpinMode", &c->hairpin }, { "promiscMode", &c->promisc },
		{ "enabledad", &c->detect_duplicates }, { "disableContainerInterface",
							  &c->no_interface }, { "portIsolation", &c->isolated },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(bools) && r == 0; i++)
		r = plugin_bool(p, bools[i].name, bools[i].value, err);
	return r;
}

static int load_mac(struct plugin *p, struct conf *c, struct err *err)
{
	str mac = val_str(p->config, runtimeConfig, mac);

	if (!mac.n)
		mac = val_str(p->config, args, cni, mac);
	if (!mac.n)
		mac = plugin_arg(p, STR("MAC"));
	if (!mac.n)
		return 0;
	c->has_mac = mac_parse(mac, c->mac);
	return c->has_mac ? 0 : plugin_fail(p, CNI_INVALID_CONFIG, err, "invalid MAC address: " STR_FMT, STR_ARG(mac));
}

static int check_backend(struct plugin *p, struct err *err)
{
	str backend = STR_NONE;
	int r = plugin_str(p, "ipMasqBackend", &backend, err);

	if (r < 0 || !backend.n || str_eq(backend, STR("nftables")) || str_eq(backend, STR("iptables")))
		return r; /* the rules are nftables' in any case */
	return plugin_fail(p, CNI_INVALID_CONFIG, err, "unrecognized ipmasq backend \"" STR_FMT "\"", STR_ARG(backend));
}

static int load(struct plugin *p, struct conf *c, struct err *err)
{
	str bridge = STR("cni0");
	int64_t mtu = 0;
	int r;

	*c = (struct conf){ 0 };
	if ((r = plugin_refuse(p, "macspoofchk", err)) < 0 || (r = bridge_vlans_load(p, &c->vlans, err)) < 0)
		return r;
	if ((r = load_bools(p, c, err)) < 0 || (r = plugin_int(p, "mtu", 0, MTU_MAX, &mtu, err)) < 0 ||
	    (r = plugin_str(p, "bridge", &bridge, err)) < 0 || (r = check_backend(p, err)) < 0 || (r = load_mac(p, c, err)) < 0)
		return r;
	if ((r = cni_check_ifname(bridge, err)) < 0) {
		p->code = CNI_INVALID_CONFIG;
		return err_wrap(err, r, "bridge");
	}
	c->bridge = arena_str(p->arena, bridge).p;
	c->mtu = (uint32_t)mtu;
	c->gateway |= c->default_gateway;
	if (c->hairpin && c->promisc)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "cannot set hairpin mode and promiscuous mode at the same time");
	if (c->no_interface && ipam_used(p))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "cannot use IPAM when DisableContainerInterface flag is set");
	return 0;
}

/* ---- the bridge ---- */

/* Made with a hardware address of its own: it would change with its ports otherwise. */
static int ensure_bridge(struct netlink *n, const struct conf *c, struct link *ret, struct err *err)
{
	uint8_t mac[6] = { 0x0e, 0xc7 };
	struct err e = ERR_INIT;
	char setting[64];
	bool vlans = bridge_vlans_used(&c->vlans);
	int r = link_get(n, c->bridge, ret, err);

	if (r == -ERR_NOT_FOUND) {
		random_bytes(mac + 2, 4);
		r = link_add(n, &(struct link_spec){ .name = c->bridge, .kind = "bridge", .mtu = c->mtu, .mac = mac,
						     .vlan_filtering = vlans }, &e);
		if (r < 0 && r != -ERR_ALREADY_EXISTS) {
			if (err)
				*err = e;
			return err_wrap(err, r, "failed to create bridge \"%s\"", c->bridge);
		}
		(void)snprintf(setting, sizeof(setting), "net/ipv6/conf/%s/accept_ra", c->bridge);
		(void)sysctl_set(setting, "0", NULL);
		r = link_get(n, c->bridge, ret, err);
	}
	if (r < 0)
		return r;
	if (!str_eq(str_of(ret->kind), STR("bridge")))
		return err_set(err, ERR_CONFLICT, "\"%s\" already exists but is not a bridge", c->bridge);
	if (vlans && !ret->vlan_filtering && (r = link_set_vlan_filtering(n, ret->index, err)) < 0)
		return r;
	struct link_change change = { .up = ret->flags & IFF_UP ? LINK_KEEP : LINK_ON,
				      .promisc = c->promisc && !ret->promisc ? LINK_ON : LINK_KEEP };
	return change.up || change.promisc ? link_set(n, ret->index, &change, err) : 0;
}

/* The gateway's address on the bridge. Another one of that network is in the way, unless it may be replaced. */
static int ensure_address(struct netlink *n, struct plugin *p, const struct link *bridge, struct inet_net net, bool force,
			  struct err *err)
{
	struct addr *there;
	struct err e = ERR_INIT;
	char text[INET_TEXT];
	size_t count;
	int r = addr_list(n, bridge->index, p->arena, &there, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct inet_net *a = &there[i].net;
		if (inet_net_eq(*a, net))
			return 0;
		if (a->ip.family != net.ip.family || (!inet_is_v4(net.ip) && !inet_net_has(*a, net.ip) &&
						      !inet_net_has(net, a->ip)))
			continue;
		if (!force)
			return err_set(err, ERR_CONFLICT, "\"%s\" already has an IP address different from %s",
				       bridge->name, inet_net_text(net, text));
		r = addr_del(n, bridge->index, *a, err);
	}
	if (r < 0)
		return r;
	if ((r = addr_add(n, bridge->index, net, false, &e)) < 0 && r != -ERR_ALREADY_EXISTS) {
		if (err)
			*err = e;
		return r;
	}
	/* One that others made keeps its hardware address from now on, too. */
	return link_set(n, bridge->index, &(struct link_change){ .mac = bridge->mac }, err);
}

/* ---- ADD ---- */

/* Gateways that are not given, and the default routes that are wanted. */
static struct val with_gateways(struct plugin *p, struct val result, const struct conf *c, struct attach_ip *ips, size_t n)
{
	struct val_builder list = val_builder(p->arena);
	struct val routes = val_get(result, routes);
	bool has_default[2] = { false, false };

	VAL_EACH(v, routes) {
		has_default[0] |= val_str(*v, gw).n && str_eq(val_str(*v, dst), STR("0.0.0.0/0"));
		has_default[1] |= val_str(*v, gw).n && str_eq(val_str(*v, dst), STR("::/0"));
	}
	for (size_t i = 0; i < n; i++) {
		bool six = !inet_is_v4(ips[i].net.ip);
		if (c->gateway && !inet_exists(ips[i].gateway))
			ips[i].gateway = inet_next(inet_net_first(ips[i].net));
		struct val gateway = inet_exists(ips[i].gateway) ? val_of_str(inet_str(p->arena, ips[i].gateway)) : VAL_EMPTY;
		struct val ip = val_with(p->arena, val_at(val_get(result, ips), i), gateway, gateway);
		val_add_item(&list, val_with(p->arena, ip, val_of_int(2), interface));
		if (!c->default_gateway || has_default[six])
			continue;
		has_default[six] = true;
		routes = val_list_append(p->arena, val_is(routes, VAL_LIST) ? routes : VAL_EMPTY_LIST,
					 OBJECT(p->arena, F(dst, six ? VAL_LIT("::/0") : VAL_LIT("0.0.0.0/0")), F(gw, gateway)));
	}
	result = val_with(p->arena, result, val_end_list(&list), ips);
	return val_with(p->arena, result, routes, routes);
}

/* The pair, as a port of the bridge. */
static int plug(struct attach *t, struct plugin *p, const struct conf *c, const struct link *bridge,
		const struct attach_options *o, struct err *err)
{
	int r = attach_veth(t, p, o, err);

	if (r < 0)
		return r;
	if ((r = link_set(&t->host, t->host_link.index, &(struct link_change){ .master = bridge->index }, err)) < 0)
		return err_wrap(err, r, "failed to connect \"%s\" to bridge %s", t->host_link.name, bridge->name);
	if (bridge_vlans_used(&c->vlans) && (r = bridge_vlans_set(&t->host, bridge, t->host_link.index, &c->vlans, err)) < 0)
		return err_wrap(err, r, "failed to setup vlan tag on interface \"%s\"", t->host_link.name);
	return c->hairpin || c->isolated ? link_set_port(&t->host, t->host_link.index, c->hairpin, c->isolated, err) : 0;
}

/* Frames pass once the kernel has noticed that both ends are up; usually it has. */
static int wait_for_port(struct attach *t, struct err *err)
{
	long waited = 0;

	for (long ms = 1;; ms = MIN(2 * ms, 100L)) {
		int r = link_get_index(&t->host, t->host_link.index, &t->host_link, err);
		if (r < 0 || t->host_link.operstate == LINK_OPER_UP)
			return r;
		if (waited >= PORT_WAIT_MS)
			return err_set(err, ERR_TIMEOUT, "bridge port in error state: %u", t->host_link.operstate);
		(void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
		waited += ms;
	}
}

/* The gateway's addresses: on the bridge, or in the pod's VLAN on a link of its own, which *ret_vlan is then. */
static int ensure_gateway(struct attach *t, struct plugin *p, const struct conf *c, const struct link *bridge,
			  const struct attach_ip *ips, size_t n, struct link *ret_vlan, struct err *err)
{
	const struct link *on = bridge;
	int r;

	if (c->vlans.native) {
		if ((r = bridge_vlans_gateway(&t->host, bridge, &c->vlans, ret_vlan, err)) < 0)
			return r;
		on = ret_vlan;
	}
	for (size_t i = 0; i < n; i++) {
		struct inet_net gateway = { ips[i].gateway, ips[i].net.prefix };
		if ((r = ensure_address(&t->host, p, on, gateway, c->force_address, err)) < 0)
			return err_wrap(err, r, "failed to set bridge addr");
	}
	return attach_forward(ips, n, err);
}

/* *vlan: see ensure_gateway. */
static int connect_pod(struct attach *t, struct plugin *p, const struct conf *c, struct link *bridge, struct val *result,
		       struct link *vlan, struct err *err)
{
	struct attach_options o = { .mtu = c->mtu, .mac = c->has_mac ? c->mac : NULL, .detect_duplicates = c->detect_duplicates };
	struct attach_ip *ips;
	uint8_t mac[6];
	size_t n;
	int r = attach_ips(p, *result, &ips, &n, err);

	if (r < 0)
		return r;
	if (n && !o.mac) {
		attach_mac(ips[0].net.ip, mac);
		o.mac = mac;
	}
	*result = with_gateways(p, *result, c, ips, n);
	if ((r = plug(t, p, c, bridge, &o, err)) < 0)
		return r;
	if ((c->gateway && n && (r = ensure_gateway(t, p, c, bridge, ips, n, vlan, err)) < 0) ||
	    (c->masquerade && n && (r = attach_masquerade(p, ips, n, err)) < 0))
		return r;
	if (n)
		r = attach_configure(t, p, *result, &o, err);
	else if (!c->no_interface)
		r = attach_up(t, err);
	return r < 0 || c->no_interface ? r : wait_for_port(t, err);
}

static int add(struct plugin *p, struct val *ret, struct err *err)
{
	CLEANUP(attach_close) struct attach t = ATTACH_INIT;
	struct val result = VAL_EMPTY_OBJECT;
	struct link bridge, before, vlan = { 0 };
	struct conf c;
	int r;

	if ((r = load(p, &c, err)) < 0 || (r = attach_open(&t, p, err)) < 0)
		return r;
	if (link_get(&t.pod, p->ifname, &before, NULL) == 0)
		return err_set(err, ERR_ALREADY_EXISTS, "container veth name (\"%s\") already exists", p->ifname);
	if ((r = ensure_bridge(&t.host, &c, &bridge, err)) < 0 || (ipam_used(p) && (r = ipam_add(p, &result, err)) < 0))
		return r;
	if ((r = connect_pod(&t, p, &c, &bridge, &result, &vlan, err)) < 0) {
		(void)attach_del(p, NULL);
		return r;
	}
	if ((r = link_get(&t.host, c.bridge, &bridge, err)) < 0)
		return r;
	struct val interfaces = LIST(p->arena, attach_interface(p, &bridge, false), attach_interface(p, &t.host_link, false),
				     attach_interface(p, &t.pod_link, true));
	if (vlan.index)
		interfaces = val_list_append(p->arena, interfaces, attach_interface(p, &vlan, false));
	result = val_with(p->arena, result, interfaces, interfaces);
	*ret = attach_dns(p, val_with(p->arena, result, VAL_LIT(CNI_VERSION), cniVersion));
	return 0;
}

/* ---- the others ---- */

static int check(struct plugin *p, struct err *err)
{
	CLEANUP(attach_close) struct attach t = ATTACH_INIT;
	struct rules_owner owner = plugin_owner(p);
	struct link bridge;
	struct conf c;
	int r;

	if ((r = load(p, &c, err)) < 0 || (r = attach_open(&t, p, err)) < 0 || (ipam_used(p) && (r = ipam_check(p, err)) < 0) ||
	    (r = attach_check(&t, p, err)) < 0)
		return r;
	if (link_get(&t.host, c.bridge, &bridge, NULL) < 0 || !str_eq(str_of(bridge.kind), STR("bridge")))
		return err_set(err, ERR_NOT_FOUND, "CNI created bridge %s in host namespace was not found", c.bridge);
	if (link_get_index(&t.host, t.pod_link.peer, &t.host_link, NULL) < 0 || t.host_link.peer != t.pod_link.index ||
	    t.host_link.master != bridge.index)
		return err_set(err, ERR_NOT_FOUND, "CNI veth created for bridge %s was not found", c.bridge);
	if (!c.masquerade || !ipam_used(p))
		return 0;
	if ((r = rules_count(RULES_MASQUERADE, &owner, err)) < 0)
		return r;
	return r ? 0 : err_set(err, ERR_NOT_FOUND, "the rules that masquerade are missing");
}

static int status(struct plugin *p, struct err *err)
{
	struct conf c;
	int r = load(p, &c, err);
	return r < 0 || !ipam_used(p) ? r : ipam_status(p, err);
}

const struct plugin_ops plugin_bridge = { "bridge", add, check, attach_del, attach_gc, status };
