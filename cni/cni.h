/*
 * cni/: networks of pods. Who needs one (runtime/) executes a chain of plugins as the CNI specification (0.3.1 to 1.1) says; and
 * there are plugins: bridge, host-local, loopback, portmap, ptp, which are c8s-pod under other names.
 *
 * Executing (linked into c8s; suspends):
 *	cni.c          attachments: chains of plugins
 *	config.c       /etc/cni/net.d: the first file by name; lists and single plugins
 *	execute.c      a plugin is a program: environment, stdin, stdout; cache.c: results, kept for CHECK and DEL
 *	routes.c       ways to the pods of other nodes: routes on a shared link, VXLAN otherwise
 * Plugins (linked into c8s-pod; static, one thread, nothing suspends):
 *	plugin.h       what all have: arguments, configuration, versions, errors; ipam.h: asking the address plugin
 *	bridge.c with bridge_vlan.h, ptp.c: attach.h is what they share; loopback.c, host_local.h, portmap.c with conntrack.h
 *	netns.h        network namespaces and their settings
 * Both:
 *	result.h       results in the forms of all versions; inet.h: addresses
 *	link.h         links, addresses and routes; nft.h: nftables; rules.h: what our table holds; netlink.h: messages to the kernel
 */
#ifndef C8S_CNI_CNI_H
#define C8S_CNI_CNI_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/val.h"

struct cni_options {
	const char *conf_dir;         /* /etc/cni/net.d */
	const char *const *bin_dirs;  /* /opt/cni/bin, ...; NULL-ended */
	const char *cache_dir;        /* /var/lib/cni */
	const char *own_plugins;      /* c8s-pod, which stands in for the names it knows when no bin_dir has them */
};

struct cni;

struct cni *cni_new(const struct cni_options *o) NONNULL_RESULT;
void cni_free(struct cni *c); /* NULL is fine */

/* The configuration that is used now: its name, in the arena. -ERR_NOT_FOUND "no network config found in ...". */
int cni_network(struct cni *c, struct arena *a, str *ret_name, struct err *err);
/* Whether there is one that cni_write_default has not made: how its pods reach each other is then others' business. */
bool cni_network_is_foreign(struct cni *c);

/* One attachment: a pod in its network namespace. */
struct cni_pod {
	str id;                       /* of the sandbox */
	const char *netns;            /* path; NULL for DEL when it is gone already */
	str namespace, name, uid;     /* K8S_POD_... in CNI_ARGS */
	struct val port_mappings;     /* list of {hostPort, containerPort, protocol, hostIP}; VAL_NONE: none */
	struct val bandwidth;         /* VAL_NONE: none */
	struct val dns;
	str cgroup_path;
	struct val capabilities;      /* more of them by name: mac, ips, ipRanges, aliases, ...; VAL_NONE: none */
};

/* (suspends) Loopback and the network's chain. The merged result (CNI's JSON, a free tree) in the arena. */
int cni_add(struct cni *c, const struct cni_pod *p, struct arena *a, struct val *ret, struct err *err);
/* (suspends) Undoes all of it, also what only half happened; fine when there is nothing. */
int cni_del(struct cni *c, const struct cni_pod *p, struct err *err);
int cni_check(struct cni *c, const struct cni_pod *p, struct err *err);
/*
 * (suspends) Frees what attachments of ours other than these hold: DEL for those that are cached; and CNI 1.1 GC, if the network is one that
 * cni_write_default has made for us, for what the cache does not know.
 */
int cni_gc(struct cni *c, const str *valid_ids, size_t n, struct err *err);
/* (suspends) Whether ADD could work: CNI 1.1 STATUS, or that the plugins are there. */
int cni_status(struct cni *c, struct err *err);
/*
 * Writes a configuration of our own (bridge with host-local for these ranges, portmap) unless there is one; one of ours whose
 * ranges are others is replaced. The list ends with NULL.
 */
int cni_write_default(struct cni *c, const char *const *pod_cidrs, struct err *err);
/* Removes what cni_write_default's configuration has made and outlives its pods: the bridge; and rules that nobody needs any more. */
int cni_remove_default(struct cni *c, struct err *err);

/*
 * Ways to the pods of other nodes: these and no others; what this cluster had before is removed, what others have is not touched. Nodes on
 * the same link as own_address are reached by routes, the others by VXLAN (UDP port 4789). Pods of other nodes see the
 * addresses of ours. A node that cannot be reached does not keep others from it: the first error is returned at the end. With n == 0 all
 * are removed, and own_address may be NULL. Blocks.
 *
 * Nodes say themselves what they have. Of ranges that overlap, the one counts that was there at the last call, or else comes first in the
 * list; one with nodes in it, or of half of the world, does not count at all. -ERR_INVALID: such ranges were left out, all else is done.
 */
struct cni_route {
	str pod_cidr, node_address;
	bool own;                     /* a range of this node: it needs no way, but nobody else gets it */
};

int cni_routes_sync(struct cni *c, const char *own_address, const struct cni_route *routes, size_t n, struct err *err);

/* A plugin's main, by the name it was called: "bridge", "host-local", ...; -1: no such plugin. */
int cni_plugin_main(const char *name);

#endif
