/*
 * ptp: a veth pair between the pod and the node, without a bridge. The pod's address has the prefix of its network, but nothing
 * else of that network is on the link: only the gateway is, and all others are reached by it. The node has the gateway's address on
 * each pair, and a route to the pod.
 */
#include <linux/rtnetlink.h>

#include "cni/attach.h"
#include "cni/ipam.h"
#include "cni/result.h"
#include "codec/atoms.h"

struct conf {
	bool masquerade;
	uint32_t mtu;
};

static int load(struct plugin *p, struct conf *c, struct err *err)
{
	int64_t mtu = 0;
	int r;

	*c = (struct conf){ 0 };
	if ((r = plugin_bool(p, "ipMasq", &c->masquerade, err)) < 0 || (r = plugin_int(p, "mtu", 0, 65535, &mtu, err)) < 0)
		return r;
	c->mtu = (uint32_t)mtu;
	return ipam_used(p) ? 0 : plugin_fail(p, CNI_INVALID_CONFIG, err, "ptp needs \"ipam\"");
}

/* In the pod: the gateway on the link, the network behind it. */
static int pod_routes(struct attach *t, const struct attach_ip *ip, struct err *err)
{
	int index = t->pod_link.index, r;
	struct inet_net net = { inet_net_first(ip->net), ip->net.prefix };
	struct route direct = { .dst = net, .index = index };
	struct route gateway = { .dst = inet_net_host(ip->gateway), .src = ip->net.ip, .index = index, .scope = RT_SCOPE_LINK };
	struct route rest = { .dst = net, .gw = ip->gateway, .src = ip->net.ip, .index = index };

	if (ip->net.prefix == inet_bits(ip->net.ip))
		return route_add(&t->pod, &gateway, ROUTE_REPLACE, err);
	if ((r = route_del(&t->pod, &direct, err)) < 0 || (r = route_add(&t->pod, &gateway, ROUTE_NEW, err)) < 0)
		return r;
	return route_add(&t->pod, &rest, ROUTE_NEW, err);
}

static int node_side(struct attach *t, const struct attach_ip *ip, struct err *err)
{
	struct route to_pod = { .dst = inet_net_host(ip->net.ip), .index = t->host_link.index, .scope = RT_SCOPE_LINK };
	int r = addr_add(&t->host, t->host_link.index, inet_net_host(ip->gateway), false, err);
	return r < 0 ? r : route_add(&t->host, &to_pod, ROUTE_REPLACE, err);
}

/* Like attach_configure, but routes of the result come after those to the gateway. */
static int configure(struct attach *t, struct plugin *p, struct val result, const struct attach_options *o,
		     struct attach_ip *ips, size_t n, struct err *err)
{
	struct val routes = val_get(result, routes);
	int r = attach_configure(t, p, val_without(p->arena, result, routes), o, err);

	for (size_t i = 0; i < n && r == 0; i++)
		if ((r = pod_routes(t, &ips[i], err)) == 0)
			r = node_side(t, &ips[i], err);
	return r < 0 || !val_len(routes) ? r : attach_routes(t, p, result, err);
}

static int connect_pod(struct attach *t, struct plugin *p, const struct conf *c, struct val *result, struct err *err)
{
	struct attach_options o = { .mtu = c->mtu };
	struct val_builder list = val_builder(p->arena);
	struct attach_ip *ips;
	uint8_t mac[6];
	size_t n;
	int r = attach_ips(p, *result, &ips, &n, err);

	if (r < 0)
		return r;
	attach_mac(ips[0].net.ip, mac);
	o.mac = mac;
	for (size_t i = 0; i < n; i++) {
		if (!inet_exists(ips[i].gateway))
			ips[i].gateway = inet_next(inet_net_first(ips[i].net));
		struct val ip = val_with(p->arena, val_at(val_get(*result, ips), i),
					 val_of_str(inet_str(p->arena, ips[i].gateway)), gateway);
		val_add_item(&list, val_with(p->arena, ip, val_of_int(1), interface));
	}
	*result = val_with(p->arena, *result, val_end_list(&list), ips);
	if ((r = attach_forward(ips, n, err)) < 0 || (r = attach_veth(t, p, &o, err)) < 0 ||
	    (r = configure(t, p, *result, &o, ips, n, err)) < 0)
		return r;
	return c->masquerade ? attach_masquerade(p, ips, n, err) : 0;
}

static int add(struct plugin *p, struct val *ret, struct err *err)
{
	CLEANUP(attach_close) struct attach t = ATTACH_INIT;
	struct val result;
	struct link before;
	struct conf c;
	int r;

	if ((r = load(p, &c, err)) < 0 || (r = attach_open(&t, p, err)) < 0)
		return r;
	if (link_get(&t.pod, p->ifname, &before, NULL) == 0)
		return err_set(err, ERR_ALREADY_EXISTS, "container veth name (\"%s\") already exists", p->ifname);
	if ((r = ipam_add(p, &result, err)) < 0)
		return r;
	if ((r = connect_pod(&t, p, &c, &result, err)) < 0) {
		(void)attach_del(p, NULL);
		return r;
	}
	result = val_with(p->arena, result, LIST(p->arena, attach_interface(p, &t.host_link, false),
						 attach_interface(p, &t.pod_link, true)), interfaces);
	*ret = attach_dns(p, val_with(p->arena, result, VAL_LIT(CNI_VERSION), cniVersion));
	return 0;
}

static int check(struct plugin *p, struct err *err)
{
	CLEANUP(attach_close) struct attach t = ATTACH_INIT;
	struct conf c;
	int r;

	if ((r = load(p, &c, err)) < 0 || (r = attach_open(&t, p, err)) < 0 || (r = ipam_check(p, err)) < 0)
		return r;
	return attach_check(&t, p, err);
}

static int status(struct plugin *p, struct err *err)
{
	struct conf c;
	int r = load(p, &c, err);
	return r < 0 ? r : ipam_status(p, err);
}

const struct plugin_ops plugin_ptp = { "ptp", add, check, attach_del, attach_gc, status };
