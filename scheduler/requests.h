/*
 * requests: how much of each resource a pod asks for: the sum over containers and sidecars, or what an init container needs with the sidecars
 * before it, whichever is more; what is said for the pod as a whole in place of that; and the overhead on top. Sums are exact and rounded up
 * at the end. Pure.
 */
#ifndef C8S_SCHEDULER_REQUESTS_H
#define C8S_SCHEDULER_REQUESTS_H

#include "scheduler/nodes.h"

enum {
	REQUEST_CONTAINERS = 1, /* without what is said for the pod as a whole */
	REQUEST_NONZERO = 2,    /* 100m of CPU and 200Mi of memory for containers that do not say how much */
};

struct pod_request {
	struct res amount;      /* RES_PODS: 1 */
	bool unknown;           /* something is asked for that the table does not know */
	bool lacks;             /* REQUEST_NONZERO may make a difference */
};

void pod_request(const struct nodes *t, struct val pod, unsigned how, struct pod_request *ret);
/* How much of any one resource a pod asks for, also of those that the table does not know. Slow. */
int64_t pod_asks_for(const struct nodes *t, struct val pod, str name);
/* A resize that its kubelet has given up: what was asked for does not count any more. */
bool resize_is_infeasible(struct val pod);
/* What is placed: request, unknown, and the amounts that are never zero. */
void placed_request(struct placed *p);
/* The resources of a ResourceList, as nodes give them; amounts of names that the table does not know are left out. */
void resources_read(const struct nodes *t, struct val list, struct res *ret);
/* The names that a pod asks for and that the table does not know, more than 0 of it, each once; in the arena. */
size_t pod_unknown_resources(const struct nodes *t, struct arena *a, struct val pod, str **ret);

#endif
