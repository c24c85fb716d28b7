/*
 * hollow/: nodes that only pretend: Node objects with heartbeats, on which pods become Running with addresses, and go when they are deleted;
 * no container is ever started. For load tests of control planes, ours and others. Thousands of nodes cost one process with two watches.
 *
 *	hollow.c        the nodes and pods, one queue for all
 *	hollow_plan.h   what the objects look like (pure)
 *
 * Pods may say how they fare: annotation hollow.c8s.io/seconds: so long they run and then they end; hollow.c8s.io/exit-code: with which code.
 */
#ifndef C8S_HOLLOW_HOLLOW_H
#define C8S_HOLLOW_HOLLOW_H

#include "client/client.h"

enum { HOLLOW_NODES_MAX = 65536, HOLLOW_PODS_MAX = 126 };

/* Texts live as long as hollow_run. Zero: the default. */
struct hollow_options {
	int64_t nodes;               /* up to HOLLOW_NODES_MAX */
	int64_t first;               /* number of the first: several processes can share the work */
	const char *prefix;          /* of names: hollow- */
	const char *cpu, *memory;    /* of each: 32, 256Gi */
	int64_t pods;                /* of each: 110, up to HOLLOW_PODS_MAX */
	int64_t zones;               /* labels topology.kubernetes.io/zone zone-0 ... are spread over them; 0: none */
	const char *const *taints;   /* key=value:effect, NULL at the end; may be NULL */
	int64_t heartbeat_ms;        /* between two renewals of a lease: 10 s */
	int64_t start_ms, stop_ms;   /* that a pod takes to run, and to stop (never longer than its grace period) */
	unsigned workers;            /* calls at a time: 32 */
	bool remove;                 /* the nodes and leases are deleted at the end */
};

/* (suspends, until canceled) on_ready (may be NULL): all nodes are there. */
int hollow_run(const struct hollow_options *o, struct client *client, void (*on_ready)(void *arg), void *arg, struct err *err);

#endif
