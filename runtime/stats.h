/* stats: figures of sandboxes and containers, for CRI's Stats calls (stats.c) and as metrics (metrics.c). */
#ifndef C8S_RUNTIME_STATS_H
#define C8S_RUNTIME_STATS_H

#include "oci/cgroup.h"
#include "runtime/container.h"

/* One network interface of a pod, as /proc/net/dev has it. */
struct interface_stats {
	str name;
	uint64_t rx_bytes, rx_packets, rx_errors, rx_dropped, tx_bytes, tx_packets, tx_errors, tx_dropped;
};

/* A line of that file: "eth0: 1 2 3 ...": eight numbers of what came, eight of what went. The name lies in the line. */
bool interface_stats_parse(str line, struct interface_stats *ret);
/* Of all its processes. -ERR_NOT_FOUND: there is no such cgroup (any more). */
int stats_of_cgroup(const char *cgroup, struct cgroup_stats *ret, struct err *err);
/* Interfaces of a pod but lo, in the arena; none for the node's own network. */
size_t stats_interfaces(const struct sandbox *s, struct arena *a, struct interface_stats **ret);
/* (suspends) What a container has written; measured anew after some seconds only. */
int stats_layer(struct container *c, struct err *err);

#endif
