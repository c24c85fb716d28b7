#include "cni/link.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

/* ---- reading links ---- */

static void copy_name(char to[IFNAMSIZ], const struct nlattr *a)
{
	str s = str_head(netlink_attr_str(a), IFNAMSIZ - 1);
	memcpy(to, s.p, s.n);
	to[s.n] = '\0';
}

static void read_bridge(struct link *ret, const struct nlattr *data)
{
	NETLINK_EACH(a, netlink_attr_data(data), netlink_attr_len(data)) {
		if (netlink_attr_type(a) == IFLA_BR_VLAN_FILTERING && netlink_attr_len(a))
			ret->vlan_filtering = *(const uint8_t *)netlink_attr_data(a);
		else if (netlink_attr_type(a) == IFLA_BR_VLAN_DEFAULT_PVID && netlink_attr_len(a) == sizeof(ret->default_vlan))
			memcpy(&ret->default_vlan, netlink_attr_data(a), sizeof(ret->default_vlan));
	}
}

/* The kind comes before what depends on it. */
static void read_info(struct link *ret, const struct nlattr *info)
{
	NETLINK_EACH(a, netlink_attr_data(info), netlink_attr_len(info)) {
		if (netlink_attr_type(a) == IFLA_INFO_KIND)
			copy_name(ret->kind, a);
		else if (netlink_attr_type(a) == IFLA_INFO_DATA && str_eq(str_of(ret->kind), STR("bridge")))
			read_bridge(ret, a);
	}
}

static bool link_read(const struct nlmsghdr *h, struct link *ret)
{
	const struct ifinfomsg *i = NLMSG_DATA(h);

	if (h->nlmsg_type != RTM_NEWLINK || h->nlmsg_len < NLMSG_LENGTH(sizeof(*i)))
		return false;
	*ret = (struct link){ .index = i->ifi_index, .flags = i->ifi_flags };
	NETLINK_EACH(a, (const char *)i + NLMSG_ALIGN(sizeof(*i)), NLMSG_PAYLOAD(h, sizeof(*i))) {
		switch (netlink_attr_type(a)) {
		case IFLA_IFNAME: copy_name(ret->name, a); break;
		case IFLA_MTU: ret->mtu = netlink_attr_u32(a); break;
		case IFLA_MASTER: ret->master = (int)netlink_attr_u32(a); break;
		case IFLA_LINK: ret->peer = (int)netlink_attr_u32(a); break;
		case IFLA_PROMISCUITY: ret->promisc = netlink_attr_u32(a); break;
		case IFLA_OPERSTATE: ret->operstate = netlink_attr_len(a) ? *(const uint8_t *)netlink_attr_data(a) : 0; break;
		case IFLA_ADDRESS:
			ret->has_mac = netlink_attr_len(a) == sizeof(ret->mac);
			if (ret->has_mac)
				memcpy(ret->mac, netlink_attr_data(a), sizeof(ret->mac));
			break;
		case IFLA_LINKINFO: read_info(ret, a); break;
		default: break;
		}
	}
	return true;
}

/* A growing array of what a dump has. */
struct collect {
	struct arena *arena;
	char *items;
	size_t n, cap, size;
	int index;                 /* of the link that is asked about; 0: all */
};

static void *collect_room(struct collect *c)
{
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 16;
		char *items = arena_array_of(c->arena, cap, c->size, _Alignof(max_align_t));
		if (c->n)
			memcpy(items, c->items, c->n * c->size);
		c->items = items;
		c->cap = cap;
	}
	return c->items + c->size * c->n++;
}

static void visit_link(const struct nlmsghdr *h, void *arg)
{
	struct collect *c = arg;
	struct link l;

	if (!h)
		c->n = 0;
	else if (link_read(h, &l))
		*(struct link *)collect_room(c) = l;
}

static void visit_one_link(const struct nlmsghdr *h, void *arg)
{
	if (h)
		(void)link_read(h, arg);
}

static int get(struct netlink *n, const char *name, int index, struct link *ret, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifinfomsg head = { .ifi_index = index };
	struct err e = ERR_INIT;
	char number[16];

	if (!name) {
		(void)snprintf(number, sizeof(number), "%d", index);
		name = number;
	}
	netlink_begin(&m, RTM_GETLINK, 0, &head, sizeof(head));
	if (!index)
		netlink_put_str(&m, IFLA_IFNAME, name);
	*ret = (struct link){ 0 };
	int r = netlink_ask(n, &m, visit_one_link, ret, &e);
	if (r < 0 && e.sys == ENODEV) {
		(void)err_set(err, ERR_NOT_FOUND, "link \"%s\" not found", name);
		return -ERR_NOT_FOUND;
	}
	if (err)
		*err = e;
	return r < 0 ? err_wrap(err, r, "cannot look up link \"%s\"", name) : 0;
}

int link_get(struct netlink *n, const char *name, struct link *ret, struct err *err)
{
	return strlen(name) < IFNAMSIZ ? get(n, name, 0, ret, err) : err_set(err, ERR_NOT_FOUND, "link \"%s\" not found", name);
}

int link_get_index(struct netlink *n, int index, struct link *ret, struct err *err)
{
	return get(n, NULL, index, ret, err);
}

int link_list(struct netlink *n, struct arena *a, struct link **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifinfomsg head = { 0 };
	struct collect c = { .arena = a, .size = sizeof(struct link) };

	netlink_begin(&m, RTM_GETLINK, NLM_F_DUMP, &head, sizeof(head));
	int r = netlink_ask(n, &m, visit_link, &c, err);
	*ret = (struct link *)c.items;
	*ret_n = c.n;
	return r < 0 ? err_wrap(err, r, "cannot list links") : 0;
}

/* ---- changing links ---- */

static void put_ip(struct netlink_msg *m, uint16_t attr, struct inet a) { netlink_put(m, attr, a.b, inet_len(a)); }

static void put_veth_peer(struct netlink_msg *m, const struct link_spec *s)
{
	struct ifinfomsg head = { 0 };
	size_t peer = netlink_nest(m, VETH_INFO_PEER);

	/* The peer is described as a message of its own would: its head is not an attribute. */
	buf_add(&m->buf, str_span((const char *)&head, sizeof(head)));
	netlink_put_str(m, IFLA_IFNAME, s->peer_name);
	if (s->mtu)
		netlink_put_u32(m, IFLA_MTU, s->mtu);
	if (s->peer_netns > 0)
		netlink_put_u32(m, IFLA_NET_NS_FD, (uint32_t)s->peer_netns);
	netlink_nest_end(m, peer);
}

static void put_vxlan(struct netlink_msg *m, const struct link_spec *s)
{
	netlink_put_u32(m, IFLA_VXLAN_ID, s->vni);
	netlink_put_be16(m, IFLA_VXLAN_PORT, s->port);
	netlink_put_u8(m, IFLA_VXLAN_LEARNING, 0);
	if (inet_exists(s->local))
		put_ip(m, inet_is_v4(s->local) ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6, s->local);
}

int link_add(struct netlink *n, const struct link_spec *s, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifinfomsg head = { 0 };

	if (strlen(s->name) >= IFNAMSIZ)
		return err_set(err, ERR_INVALID, "the name \"%s\" is too long for a link", s->name);
	netlink_begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head));
	netlink_put_str(&m, IFLA_IFNAME, s->name);
	if (s->mtu)
		netlink_put_u32(&m, IFLA_MTU, s->mtu);
	if (s->mac)
		netlink_put(&m, IFLA_ADDRESS, s->mac, 6);
	size_t info = netlink_nest(&m, IFLA_LINKINFO);
	netlink_put_str(&m, IFLA_INFO_KIND, s->kind);
	if (s->peer_name || s->vni || s->vlan_filtering) {
		size_t data = netlink_nest(&m, IFLA_INFO_DATA);
		if (s->vlan_filtering)
			netlink_put_u8(&m, IFLA_BR_VLAN_FILTERING, 1);
		if (s->peer_name)
			put_veth_peer(&m, s);
		if (s->vni)
			put_vxlan(&m, s);
		netlink_nest_end(&m, data);
	}
	netlink_nest_end(&m, info);
	int r = netlink_do(n, &m, err);
	return r < 0 ? err_wrap(err, r, "cannot add %s \"%s\"", s->kind, s->name) : 0;
}

int link_del(struct netlink *n, int index, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifinfomsg head = { .ifi_index = index };

	netlink_begin(&m, RTM_DELLINK, 0, &head, sizeof(head));
	int r = netlink_do(n, &m, err);
	return r < 0 ? err_wrap(err, r, "cannot delete link %d", index) : 0;
}

static void put_flag(struct ifinfomsg *head, unsigned flag, enum link_switch to)
{
	if (to == LINK_KEEP)
		return;
	head->ifi_change |= flag;
	head->ifi_flags |= to == LINK_ON ? flag : 0;
}

int link_set(struct netlink *n, int index, const struct link_change *c, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifinfomsg head = { .ifi_index = index };

	put_flag(&head, IFF_UP, c->up);
	put_flag(&head, IFF_PROMISC, c->promisc);
	netlink_begin(&m, RTM_NEWLINK, 0, &head, sizeof(head));
	if (c->mtu)
		netlink_put_u32(&m, IFLA_MTU, c->mtu);
	if (c->master)
		netlink_put_u32(&m, IFLA_MASTER, c->master < 0 ? 0 : (uint32_t)c->master);
	if (c->netns > 0)
		netlink_put_u32(&m, IFLA_NET_NS_FD, (uint32_t)c->netns);
	if (c->mac)
		netlink_put(&m, IFLA_ADDRESS, c->mac, 6);
	if (c->name)
		netlink_put_str(&m, IFLA_IFNAME, c->name);
	if (c->alias)
		netlink_put_str(&m, IFLA_IFALIAS, c->alias);
	int r = netlink_do(n, &m, err);
	return r < 0 ? err_wrap(err, r, "cannot change link %d", index) : 0;
}

int link_set_port(struct netlink *n, int index, bool hairpin, bool isolated, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifinfomsg head = { .ifi_family = AF_BRIDGE, .ifi_index = index };

	netlink_begin(&m, RTM_SETLINK, 0, &head, sizeof(head));
	size_t port = netlink_nest(&m, IFLA_PROTINFO);
	netlink_put_u8(&m, IFLA_BRPORT_MODE, hairpin);
	netlink_put_u8(&m, IFLA_BRPORT_ISOLATED, isolated);
	netlink_nest_end(&m, port);
	int r = netlink_do(n, &m, err);
	return r < 0 ? err_wrap(err, r, "cannot change bridge port %d", index) : 0;
}

int link_set_vlan_filtering(struct netlink *n, int index, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifinfomsg head = { .ifi_index = index };

	netlink_begin(&m, RTM_NEWLINK, 0, &head, sizeof(head));
	size_t info = netlink_nest(&m, IFLA_LINKINFO);
	netlink_put_str(&m, IFLA_INFO_KIND, "bridge");
	size_t data = netlink_nest(&m, IFLA_INFO_DATA);
	netlink_put_u8(&m, IFLA_BR_VLAN_FILTERING, 1);
	netlink_nest_end(&m, data);
	netlink_nest_end(&m, info);
	int r = netlink_do(n, &m, err);
	return r < 0 ? err_wrap(err, r, "cannot separate the VLANs of bridge %d", index) : 0;
}

static void put_vlan(struct netlink_msg *m, uint16_t id, uint16_t flags)
{
	struct bridge_vlan_info info = { .flags = flags, .vid = id };
	netlink_put(m, IFLA_BRIDGE_VLAN_INFO, &info, sizeof(info));
}

static int change_vlan(struct netlink *n, uint16_t type, int port, struct link_vlan v, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifinfomsg head = { .ifi_family = AF_BRIDGE, .ifi_index = port };

	netlink_begin(&m, type, 0, &head, sizeof(head));
	size_t spec = netlink_nest(&m, IFLA_AF_SPEC);
	if (v.first == v.last) {
		put_vlan(&m, v.first, v.untagged ? BRIDGE_VLAN_INFO_PVID | BRIDGE_VLAN_INFO_UNTAGGED : 0);
	} else {
		put_vlan(&m, v.first, BRIDGE_VLAN_INFO_RANGE_BEGIN);
		put_vlan(&m, v.last, BRIDGE_VLAN_INFO_RANGE_END);
	}
	netlink_nest_end(&m, spec);
	return netlink_do(n, &m, err);
}

int link_vlan_add(struct netlink *n, int port, struct link_vlan vlan, struct err *err)
{
	int r = change_vlan(n, RTM_SETLINK, port, vlan, err);
	return r < 0 ? err_wrap(err, r, "cannot put bridge port %d into VLAN %u", port, vlan.first) : 0;
}

int link_vlan_del(struct netlink *n, int port, uint16_t vlan, struct err *err)
{
	struct err e = ERR_INIT;
	int r = change_vlan(n, RTM_DELLINK, port, (struct link_vlan){ vlan, vlan, false }, &e);

	if (r >= 0 || e.sys == ENOENT)
		return 0;
	if (err)
		*err = e;
	return err_wrap(err, r, "cannot take bridge port %d out of VLAN %u", port, vlan);
}

/* ---- addresses ---- */

static int change_addr(struct netlink *n, uint16_t type, uint16_t flags, int index, struct inet_net net,
		       uint32_t addr_flags, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifaddrmsg head = { .ifa_family = net.ip.family, .ifa_prefixlen = net.prefix, .ifa_index = (uint32_t)index };
	char text[INET_TEXT];

	head.ifa_scope = inet_is_loopback(net.ip) ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
	netlink_begin(&m, type, flags, &head, sizeof(head));
	put_ip(&m, IFA_LOCAL, net.ip);
	put_ip(&m, IFA_ADDRESS, net.ip);
	if (type == RTM_NEWADDR && inet_is_v4(net.ip) && net.prefix < 31)
		put_ip(&m, IFA_BROADCAST, inet_net_last(net));
	if (addr_flags)
		netlink_put_u32(&m, IFA_FLAGS, addr_flags);
	int r = netlink_do(n, &m, err);
	return r < 0 ? err_wrap(err, r, "cannot %s address %s", type == RTM_NEWADDR ? "add" : "delete",
				inet_net_text(net, text)) : 0;
}

int addr_add(struct netlink *n, int index, struct inet_net net, bool detect_duplicates, struct err *err)
{
	return change_addr(n, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, index, net,
			   inet_is_v4(net.ip) || detect_duplicates ? 0 : IFA_F_NODAD, err);
}

int addr_del(struct netlink *n, int index, struct inet_net net, struct err *err)
{
	return change_addr(n, RTM_DELADDR, 0, index, net, 0, err);
}

static void visit_addr(const struct nlmsghdr *h, void *arg)
{
	struct collect *c = arg;
	const struct ifaddrmsg *i = h ? NLMSG_DATA(h) : NULL;

	if (!h) {
		c->n = 0;
		return;
	}
	if (h->nlmsg_type != RTM_NEWADDR || h->nlmsg_len < NLMSG_LENGTH(sizeof(*i)) ||
	    (c->index && (int)i->ifa_index != c->index) || (i->ifa_family != AF_INET && i->ifa_family != AF_INET6))
		return;
	struct addr addr = { .index = (int)i->ifa_index, .flags = i->ifa_flags, .scope = i->ifa_scope };
	struct inet local = { 0 }, address = { 0 };
	size_t want = i->ifa_family == AF_INET ? 4 : 16;
	NETLINK_EACH(a, (const char *)i + NLMSG_ALIGN(sizeof(*i)), NLMSG_PAYLOAD(h, sizeof(*i))) {
		unsigned type = netlink_attr_type(a);
		if ((type == IFA_LOCAL || type == IFA_ADDRESS) && netlink_attr_len(a) == want)
			*(type == IFA_LOCAL ? &local : &address) = inet_of(i->ifa_family, netlink_attr_data(a));
		else if (type == IFA_FLAGS)
			addr.flags = netlink_attr_u32(a);
	}
	addr.net = (struct inet_net){ inet_exists(local) ? local : address, i->ifa_prefixlen };
	if (inet_exists(addr.net.ip))
		*(struct addr *)collect_room(c) = addr;
}

int addr_list(struct netlink *n, int index, struct arena *a, struct addr **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ifaddrmsg head = { .ifa_index = (uint32_t)index };
	struct collect c = { .arena = a, .size = sizeof(struct addr), .index = index };

	netlink_begin(&m, RTM_GETADDR, NLM_F_DUMP, &head, sizeof(head));
	int r = netlink_ask(n, &m, visit_addr, &c, err);
	*ret = (struct addr *)c.items;
	*ret_n = c.n;
	return r < 0 ? err_wrap(err, r, "cannot list addresses") : 0;
}

/* ---- routes ---- */

static void put_gateway(struct netlink_msg *m, const struct route *r)
{
	uint8_t via[2 + 16];
	uint16_t family = r->gw.family;

	if (r->gw.family == r->dst.ip.family) {
		put_ip(m, RTA_GATEWAY, r->gw);
		return;
	}
	memcpy(via, &family, sizeof(family));
	memcpy(via + sizeof(family), r->gw.b, inet_len(r->gw));
	netlink_put(m, RTA_VIA, via, sizeof(family) + inet_len(r->gw));
}

static void put_metrics(struct netlink_msg *m, const struct route *r)
{
	if (!r->mtu && !r->advmss)
		return;
	size_t metrics = netlink_nest(m, RTA_METRICS);
	if (r->mtu)
		netlink_put_u32(m, RTAX_MTU, r->mtu);
	if (r->advmss)
		netlink_put_u32(m, RTAX_ADVMSS, r->advmss);
	netlink_nest_end(m, metrics);
}

static int change_route(struct netlink *n, uint16_t type, uint16_t flags, const struct route *r, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	bool add = type == RTM_NEWROUTE;
	struct rtmsg head = { .rtm_family = r->dst.ip.family, .rtm_dst_len = r->dst.prefix, .rtm_type = add ? RTN_UNICAST : 0 };
	char to[INET_TEXT], via[INET_TEXT];

	head.rtm_table = r->table == 0 ? RT_TABLE_MAIN : r->table < 256 ? (uint8_t)r->table : RT_TABLE_UNSPEC;
	head.rtm_protocol = r->protocol ? r->protocol : add ? RTPROT_BOOT : RTPROT_UNSPEC;
	head.rtm_scope = add ? r->scope : RT_SCOPE_NOWHERE;
	head.rtm_flags = r->onlink ? RTNH_F_ONLINK : 0;
	netlink_begin(&m, type, flags, &head, sizeof(head));
	if (r->dst.prefix)
		put_ip(&m, RTA_DST, r->dst.ip);
	if (inet_exists(r->gw))
		put_gateway(&m, r);
	if (inet_exists(r->src))
		put_ip(&m, RTA_PREFSRC, r->src);
	if (r->index)
		netlink_put_u32(&m, RTA_OIF, (uint32_t)r->index);
	if (r->table)
		netlink_put_u32(&m, RTA_TABLE, r->table);
	if (r->metric)
		netlink_put_u32(&m, RTA_PRIORITY, r->metric);
	put_metrics(&m, r);
	int result = netlink_do(n, &m, err);
	return result < 0 ? err_wrap(err, result, "cannot %s route to %s%s%s", add ? "add" : "delete", inet_net_text(r->dst, to),
				     inet_exists(r->gw) ? " via " : "", inet_text(r->gw, via)) : 0;
}

int route_add(struct netlink *n, const struct route *route, enum route_how how, struct err *err)
{
	static const uint16_t flags[] = { [ROUTE_NEW] = NLM_F_EXCL, [ROUTE_REPLACE] = NLM_F_REPLACE,
					  [ROUTE_APPEND] = NLM_F_APPEND };
	return change_route(n, RTM_NEWROUTE, NLM_F_CREATE | flags[how], route, err);
}

int route_del(struct netlink *n, const struct route *route, struct err *err)
{
	return change_route(n, RTM_DELROUTE, 0, route, err);
}

static bool route_read(const struct nlmsghdr *h, struct route *ret)
{
	const struct rtmsg *i = NLMSG_DATA(h);

	if (h->nlmsg_type != RTM_NEWROUTE || h->nlmsg_len < NLMSG_LENGTH(sizeof(*i)) || i->rtm_type != RTN_UNICAST ||
	    i->rtm_flags & RTM_F_CLONED || (i->rtm_family != AF_INET && i->rtm_family != AF_INET6))
		return false;
	*ret = (struct route){ .dst = { { .family = i->rtm_family }, i->rtm_dst_len }, .table = i->rtm_table, .scope = i->rtm_scope,
			       .protocol = i->rtm_protocol, .onlink = i->rtm_flags & RTNH_F_ONLINK };
	size_t want = inet_len(ret->dst.ip);
	NETLINK_EACH(a, (const char *)i + NLMSG_ALIGN(sizeof(*i)), NLMSG_PAYLOAD(h, sizeof(*i))) {
		unsigned type = netlink_attr_type(a);
		if (type == RTA_OIF)
			ret->index = (int)netlink_attr_u32(a);
		else if (type == RTA_TABLE)
			ret->table = netlink_attr_u32(a);
		else if (type == RTA_PRIORITY)
			ret->metric = netlink_attr_u32(a);
		else if (type == RTA_VIA && netlink_attr_len(a) == 2 + 16)
			ret->gw = inet_of(AF_INET6, (const char *)netlink_attr_data(a) + 2);
		else if (netlink_attr_len(a) != want)
			continue;
		else if (type == RTA_DST)
			ret->dst.ip = inet_of(i->rtm_family, netlink_attr_data(a));
		else if (type == RTA_GATEWAY)
			ret->gw = inet_of(i->rtm_family, netlink_attr_data(a));
		else if (type == RTA_PREFSRC)
			ret->src = inet_of(i->rtm_family, netlink_attr_data(a));
	}
	return true;
}

static void visit_route(const struct nlmsghdr *h, void *arg)
{
	struct collect *c = arg;
	struct route r;

	if (!h)
		c->n = 0;
	else if (route_read(h, &r))
		*(struct route *)collect_room(c) = r;
}

int route_list(struct netlink *n, int family, struct arena *a, struct route **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct rtmsg head = { .rtm_family = (uint8_t)family };
	struct collect c = { .arena = a, .size = sizeof(struct route) };

	netlink_begin(&m, RTM_GETROUTE, NLM_F_DUMP, &head, sizeof(head));
	int r = netlink_ask(n, &m, visit_route, &c, err);
	*ret = (struct route *)c.items;
	*ret_n = c.n;
	return r < 0 ? err_wrap(err, r, "cannot list routes") : 0;
}

static void visit_route_link(const struct nlmsghdr *h, void *arg)
{
	const struct rtmsg *i = h ? NLMSG_DATA(h) : NULL;

	if (!h || h->nlmsg_type != RTM_NEWROUTE || h->nlmsg_len < NLMSG_LENGTH(sizeof(*i)))
		return;
	NETLINK_EACH(a, (const char *)i + NLMSG_ALIGN(sizeof(*i)), NLMSG_PAYLOAD(h, sizeof(*i)))
		if (netlink_attr_type(a) == RTA_OIF)
			*(int *)arg = (int)netlink_attr_u32(a);
}

int route_link_to(struct netlink *n, struct inet to, int *ret_index, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct rtmsg head = { .rtm_family = to.family, .rtm_dst_len = inet_bits(to) };
	char text[INET_TEXT];

	*ret_index = 0;
	netlink_begin(&m, RTM_GETROUTE, 0, &head, sizeof(head));
	put_ip(&m, RTA_DST, to);
	int r = netlink_ask(n, &m, visit_route_link, ret_index, err);
	if (r == 0 && !*ret_index)
		r = err_set(err, ERR_NOT_FOUND, "no link");
	return r < 0 ? err_wrap(err, r, "cannot find the way to %s", inet_text(to, text)) : 0;
}

/* ---- neighbours ---- */

static int change_neigh(struct netlink *n, uint16_t type, uint16_t flags, const struct neigh *g, struct err *err)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct ndmsg head = { .ndm_family = g->fdb ? AF_BRIDGE : g->ip.family, .ndm_ifindex = g->index, .ndm_state = NUD_PERMANENT,
			      .ndm_flags = g->fdb ? NTF_SELF : 0 };
	char text[INET_TEXT];

	netlink_begin(&m, type, flags, &head, sizeof(head));
	put_ip(&m, NDA_DST, g->ip);
	if (g->fdb || type == RTM_NEWNEIGH)
		netlink_put(&m, NDA_LLADDR, g->mac, sizeof(g->mac));
	int r = netlink_do(n, &m, err);
	return r < 0 ? err_wrap(err, r, "cannot %s neighbour %s", type == RTM_NEWNEIGH ? "add" : "delete",
				inet_text(g->ip, text)) : 0;
}

int neigh_set(struct netlink *n, const struct neigh *neigh, struct err *err)
{
	return change_neigh(n, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, neigh, err);
}

int neigh_del(struct netlink *n, const struct neigh *neigh, struct err *err)
{
	struct err e = ERR_INIT;
	int r = change_neigh(n, RTM_DELNEIGH, 0, neigh, &e);

	if (r < 0 && e.sys != ENOENT) {
		if (err)
			*err = e;
		return r;
	}
	return 0;
}
