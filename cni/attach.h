/*
 * attach: what bridge and ptp have in common: a veth pair with one end in the pod's namespace, the addresses and routes of a
 * result on it, the check that all of it is there, and its end.
 */
#ifndef C8S_CNI_ATTACH_H
#define C8S_CNI_ATTACH_H

#include "cni/link.h"
#include "cni/plugin.h"

/* An address of a result. */
struct attach_ip {
	struct inet_net net;
	struct inet gateway;       /* none: family 0 */
};

struct attach {
	int netns;                   /* the pod's namespace */
	struct netlink host, pod;    /* sockets on both sides */
	struct link host_link, pod_link;
};

#define ATTACH_INIT { .netns = -1, .host = NETLINK_INIT, .pod = NETLINK_INIT }

/* Opens both sides: the namespace of CNI_NETNS and the one that the plugin is called in. */
int attach_open(struct attach *t, struct plugin *p, struct err *err);
void attach_close(struct attach *t);

/* The addresses of a result, in the arena. */
int attach_ips(struct plugin *p, struct val result, struct attach_ip **ret, size_t *ret_n, struct err *err);
/* The hardware address that goes with an address: who gets the address next is reached by what its neighbours remember. */
void attach_mac(struct inet ip, uint8_t ret[6]);

struct attach_options {
	uint32_t mtu;                /* 0: the kernel's */
	const uint8_t *mac;          /* NULL: the kernel chooses */
	bool detect_duplicates;
};

/* Makes the pair: CNI_IFNAME in the pod (still down), and a link with a random name here, which is up. Fills both links. */
int attach_veth(struct attach *t, struct plugin *p, const struct attach_options *o, struct err *err);
/* Addresses the pod's end, brings it up and adds the result's routes; those without a gateway use that of the family's first address. */
int attach_configure(struct attach *t, struct plugin *p, struct val result, const struct attach_options *o, struct err *err);
/* The routes alone. */
int attach_routes(struct attach *t, struct plugin *p, struct val result, struct err *err);
int attach_up(struct attach *t, struct err *err);

/* {name, mac, sandbox} of a link; the sandbox only for the pod's. */
struct val attach_interface(struct plugin *p, const struct link *l, bool in_pod);

/* Whether the pod's link, addresses and routes are as the previous result says; fills pod_link. */
int attach_check(struct attach *t, struct plugin *p, struct err *err);

/* DEL: the pod's link, the rules, then the addresses. Fine when they, the namespace or the name of that are gone. */
int attach_del(struct plugin *p, struct err *err);
/* GC: the same for those that are not valid; their links went with their namespaces. */
int attach_gc(struct plugin *p, struct err *err);

/* Lets packets pass between links, for the families of the addresses. */
int attach_forward(const struct attach_ip *ips, size_t n, struct err *err);

/* Masquerades the addresses, for plugins with ipMasq. */
int attach_masquerade(struct plugin *p, const struct attach_ip *ips, size_t n, struct err *err);

/* With the dns of the configuration, if it has any. */
struct val attach_dns(struct plugin *p, struct val result);

#endif
