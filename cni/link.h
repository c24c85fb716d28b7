/*
 * link: links, addresses, routes and neighbours of a network namespace, by rtnetlink. Every call takes a socket
 * (netlink_open(&n, NETLINK_ROUTE, ...)), and works in the namespace that it was opened in. Errors say what was attempted; err->sys is errno.
 * Lists are in the arena. Nothing suspends.
 */
#ifndef C8S_CNI_LINK_H
#define C8S_CNI_LINK_H

#include <net/if.h>

#include "cni/inet.h"
#include "cni/netlink.h"

/* ---- links ---- */

enum { LINK_OPER_UP = 6 /* IF_OPER_UP of a header that goes with no other */ };

struct link {
	int index;
	int master;            /* the bridge it is a port of; 0: none */
	int peer;              /* of a veth: the other end's index, in the other end's namespace */
	unsigned flags;        /* IFF_UP, ... */
	unsigned promisc;      /* how many want it */
	uint32_t mtu;
	uint8_t operstate;     /* LINK_OPER_UP: frames pass */
	bool has_mac;
	uint8_t mac[6];
	bool vlan_filtering;   /* of a bridge: frames stay in their VLAN */
	uint16_t default_vlan; /* of a bridge: what a new port is in; 0: none */
	char name[IFNAMSIZ], kind[IFNAMSIZ];  /* kind: "veth", "bridge", ...; "" for hardware and lo */
};

/* -ERR_NOT_FOUND: "link \"eth0\" not found". */
int link_get(struct netlink *n, const char *name, struct link *ret, struct err *err);
int link_get_index(struct netlink *n, int index, struct link *ret, struct err *err);
int link_list(struct netlink *n, struct arena *a, struct link **ret, size_t *ret_n, struct err *err);

/* What a new link is to be. Zeros leave it to the kernel. */
struct link_spec {
	const char *name;
	const char *kind;          /* "bridge", "veth", "vxlan", "dummy" */
	uint32_t mtu;
	const uint8_t *mac;
	const char *peer_name;     /* veth */
	int peer_netns;            /* veth: descriptor of a namespace; 0: this one */
	bool vlan_filtering;       /* bridge */
	uint32_t vni;              /* vxlan; it learns nothing by itself */
	uint16_t port;
	struct inet local;
};

/* -ERR_ALREADY_EXISTS when the name (or that of the peer) is taken. */
int link_add(struct netlink *n, const struct link_spec *spec, struct err *err);
int link_del(struct netlink *n, int index, struct err *err);

enum link_switch { LINK_KEEP, LINK_ON, LINK_OFF };

/* What shall change; zeros: it stays. */
struct link_change {
	enum link_switch up, promisc;
	uint32_t mtu;
	int master;                /* index; -1: none */
	int netns;                 /* descriptor of the namespace it goes to */
	const uint8_t *mac;
	const char *name, *alias;
};

int link_set(struct netlink *n, int index, const struct link_change *change, struct err *err);
/* Of a port of a bridge. */
int link_set_port(struct netlink *n, int index, bool hairpin, bool isolated, struct err *err);

/* Of a bridge: from now on frames stay in their VLAN. */
int link_set_vlan_filtering(struct netlink *n, int index, struct err *err);

/* VLANs that a port of a bridge is in: those from first to last; untagged: frames without a tag belong to it (then it is one). */
struct link_vlan {
	uint16_t first, last;
	bool untagged;
};

int link_vlan_add(struct netlink *n, int port, struct link_vlan vlan, struct err *err);
/* Fine when it is not in it. */
int link_vlan_del(struct netlink *n, int port, uint16_t vlan, struct err *err);

/* ---- addresses ---- */

struct addr {
	int index;
	uint32_t flags;            /* IFA_F_TENTATIVE, ... */
	uint8_t scope;
	struct inet_net net;         /* our own, also on point-to-point links */
};

/* Without duplicate address detection unless asked for: nobody else gives these addresses away, and it takes a second. */
int addr_add(struct netlink *n, int index, struct inet_net net, bool detect_duplicates, struct err *err);
int addr_del(struct netlink *n, int index, struct inet_net net, struct err *err);
/* Of one link (index 0: of all), both families. */
int addr_list(struct netlink *n, int index, struct arena *a, struct addr **ret, size_t *ret_n, struct err *err);

/* ---- routes ---- */

struct route {
	struct inet_net dst;         /* 0.0.0.0/0 and ::/0: default */
	struct inet gw, src;         /* none: family 0; gw may be of the other family */
	int index;
	uint32_t table, metric, mtu, advmss;
	uint8_t scope, protocol;   /* protocol 0: RTPROT_BOOT when added; not looked at when deleted */
	bool onlink;               /* gw is taken as reachable on the link */
};

enum route_how { ROUTE_NEW, ROUTE_REPLACE, ROUTE_APPEND };

int route_add(struct netlink *n, const struct route *route, enum route_how how, struct err *err);
int route_del(struct netlink *n, const struct route *route, struct err *err);
/* The main table's (and others') unicast routes of a family. */
int route_list(struct netlink *n, int family, struct arena *a, struct route **ret, size_t *ret_n, struct err *err);
/* The link that packets to this address leave by. */
int route_link_to(struct netlink *n, struct inet to, int *ret_index, struct err *err);

/* ---- neighbours ---- */

/* Who has an address on a link; or, for vxlan (dst), where frames to a hardware address are sent. */
struct neigh {
	int index;
	struct inet ip;              /* the neighbour; or with fdb: the far end of the tunnel */
	bool fdb;
	uint8_t mac[6];
};

int neigh_set(struct netlink *n, const struct neigh *neigh, struct err *err);
/* Fine when it is not there. */
int neigh_del(struct netlink *n, const struct neigh *neigh, struct err *err);

#endif
