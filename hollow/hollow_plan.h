/* hollow_plan: objects of nodes that pretend. Pure. */
#ifndef C8S_HOLLOW_HOLLOW_PLAN_H
#define C8S_HOLLOW_HOLLOW_PLAN_H

#include "hollow/hollow.h"
#include "machinery/ip.h"

#define HOLLOW_LABEL "c8s.io/hollow"
#define HOLLOW_CPU "32"
enum { HOLLOW_PODS = 110 };

/* Addresses: nodes in 172.16.0.0/12, pods in 10.128.0.0/9 with 128 for each node. */
str hollow_node_ip(uint32_t index, char out[IP_TEXT_MAX]);
str hollow_pod_ip(uint32_t index, unsigned slot, char out[IP_TEXT_MAX]);
/* The slot of an address of this node's pods; -1: it is none. */
int hollow_slot_of(uint32_t index, str ip);

/* -ERR_INVALID for a taint that is none. */
int hollow_node(struct arena *a, const struct hollow_options *o, uint32_t index, str name, int64_t now_ns, struct val *ret, struct err *err);
/* A patch (strategic) of the status of a node that is not Ready. */
struct val hollow_node_ready(struct arena *a, int64_t now_ns);
/* Whether its folders of local-path volumes shall be removed, of which there are none; and the patch (merge) that says they are. */
bool hollow_has_folders(struct val node);
struct val hollow_folders_gone(struct arena *a);
struct val hollow_lease(struct arena *a, str node, str node_uid, int64_t now_ns);
/* A patch (merge) of a lease. */
struct val hollow_renewal(struct arena *a, int64_t now_ns);

enum hollow_step { HOLLOW_REST, HOLLOW_START, HOLLOW_READY, HOLLOW_FINISH, HOLLOW_STOP };

struct hollow_pod {
	enum hollow_step step;
	int64_t wait_ms;             /* for the step; 0: now */
};

/* What becomes of a pod on a hollow node next. HOLLOW_STOP: it has to go; HOLLOW_FINISH: its time is over. seen_ns: when it was bound. */
struct hollow_pod hollow_pod_plan(const struct hollow_options *o, struct val pod, int64_t seen_ns, int64_t now_ns);
/* Patches (strategic) of a pod's status: it runs, with these addresses; it has ended. */
struct val hollow_pod_running(struct arena *a, struct val pod, str host_ip, str pod_ip, int64_t now_ns);

struct hollow_room {
	int64_t cpu_milli, pods;
};

/* What a pod (as it is kept) asks for, in thousandths; and the patch that says that there is no room for it: somebody has not known what there is. */
int64_t hollow_pod_cpu(struct val pod);
struct val hollow_pod_refused(struct arena *a, struct val pod, struct hollow_room used, struct hollow_room all);
/* It is still there, and ready. */
struct val hollow_pod_ready(struct arena *a, struct val pod, int64_t now_ns);
struct val hollow_pod_ended(struct arena *a, struct val pod, int64_t now_ns);
/* What the informer keeps of a pod and of a node: enough for the above. */
struct val hollow_keep_pod(struct arena *a, struct val pod);
struct val hollow_keep_node(struct arena *a, struct val node);

#endif
