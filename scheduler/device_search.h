/*
 * device_search: which devices of a node serve all claims of a pod.
 *
 *	device_requests.c  what claims ask for, read once per pod
 *	device_search.c    the search
 *	device_result.c    what is written of what was found
 */
#ifndef C8S_SCHEDULER_DEVICE_SEARCH_H
#define C8S_SCHEDULER_DEVICE_SEARCH_H

#include "scheduler/devices.h"

enum { DEVICES_PER_CLAIM = 32, DEVICES_PER_POD = 256, DEVICE_TRIES_MAX = 6000000 };

struct device_search;

/*
 * For all claims of a pod that have no allocation yet; in the arena, objects are borrowed. -ERR_INVALID: the claims can be served by no node as
 * they are (the text of Kubernetes); -ERR_INTERNAL: something is wrong with them.
 */
int device_search_new(struct arena *a, struct devices *d, const struct val *claims, size_t n, struct device_search **ret, struct err *err);
/* How long to try for one node, by the clock; 0: as long as it takes, within reason, which is a number of tries. */
void device_search_limit(struct device_search *s, int64_t ns);
/*
 * (suspends when it takes long, if called on a fiber) 1: the node can serve all of them; 0: it cannot. extra (VAL_NONE: none) is one more claim, for this node alone: its allocation comes last.
 * ret_allocations (may be NULL): an AllocationResult for each, in the arena. -ERR_INVALID: not on this node, with a text of its own;
 * -ERR_INTERNAL: something is wrong with claims or classes; -ERR_TIMEOUT (too many ways to try).
 */
int device_search_run(struct device_search *s, str node_name, struct val node, struct val extra, struct val *ret_allocations, struct err *err);
/* After a run that found something: how good the alternatives are that were chosen (8 for a first one). Some claim has alternatives at all. */
int64_t device_search_score(const struct device_search *s);
bool device_search_has_alternatives(const struct device_search *s);

#endif
