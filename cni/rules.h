/*
 * rules: what is in our table of nftables.
 *
 *	table inet c8s_cni {
 *		chain prerouting, output    to an address of this machine: jump hostports
 *		chain hostports             tcp dport 8080 dnat to 10.1.2.3:80              portmap
 *		chain postrouting           jump hairpin; multicast: return; jump pods; jump masquerade
 *		chain hairpin               a pod to itself or a neighbour by a host port: masquerade     portmap
 *		chain pods                  to pods of other nodes: accept, as it is        routes.c
 *		chain masquerade            from a pod to outside of its network            bridge, ptp
 *	}
 *
 * Rules are found again by their comment: "NETWORK ID IFNAME" of the attachment that they belong to (for pods: "NETWORK"). Names of
 * networks and containers have no spaces. Two attachments may claim one address for a moment (a new pod before the old one is
 * gone), so rules belong to attachments, not to addresses. Each call is one transaction.
 */
#ifndef C8S_CNI_RULES_H
#define C8S_CNI_RULES_H

#include "cni/inet.h"

/* An attachment; network alone: see rules_remove. */
struct rules_owner {
	const char *network, *id, *ifname;
};

/* Masquerades what goes from these addresses to outside of their networks. Replaces what the owner had. */
int rules_masquerade(const struct rules_owner *o, const struct inet_net *nets, size_t n, struct err *err);

/* Something that a connection must fulfil. */
struct rules_condition {
	bool not, source;
	struct inet_net net;         /* an address; or (family 0): */
	const char *link;          /* the link that it comes in by */
};

struct rules_port {
	uint16_t host_port, port;
	uint8_t protocol;          /* IPPROTO_TCP, ... */
	struct inet host_ip;         /* none: all */
};

struct rules_ports {
	struct inet_net pod;
	const struct rules_port *ports;
	size_t n;
	const struct rules_condition *conditions;
	size_t n_conditions;
	bool snat, masquerade_all;
};

/* Host ports of a pod, for one or two addresses of it. Replaces what the owner had. */
int rules_host_ports(const struct rules_owner *o, const struct rules_ports *sets, size_t n, struct err *err);

/* Pods of the network's other nodes are not masqueraded for. Replaces what the network had; n may be 0. */
int rules_pods(const char *network, const struct inet_net *nets, size_t n, struct err *err);

enum rules_kind { RULES_MASQUERADE = 1, RULES_HOST_PORTS = 2 };

/* How many rules the owner has: that translate to it (host ports), or masquerade. */
int rules_count(enum rules_kind kind, const struct rules_owner *o, struct err *err);
/* Removes an owner's rules; fine when there are none. */
int rules_remove(unsigned kinds, const struct rules_owner *o, struct err *err);
/* Removes those of a network's attachments other than the valid ones. */
int rules_collect(unsigned kinds, const char *network, const struct rules_owner *valid, size_t n, struct err *err);
/* Removes the table if nobody has rules in it. */
int rules_remove_empty(struct err *err);

#endif
