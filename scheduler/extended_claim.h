/*
 * extended_claim: extended resources that classes of devices serve. A pod that asks for some gets one claim of its own, made by the scheduler, for
 * all of them that the chosen node does not have as counted resources. Pure.
 */
#ifndef C8S_SCHEDULER_EXTENDED_CLAIM_H
#define C8S_SCHEDULER_EXTENDED_CLAIM_H

#include "scheduler/devices.h"

#define EXTENDED_CLAIM_NAME "<extended-resources>" /* until the server gives it one */

enum { EXTENDED_MAX = 64 };

struct extended_needs {
	size_t n;
	str names[EXTENDED_MAX];      /* sorted; of resources that the pod asks for, borrowed */
	struct val class[EXTENDED_MAX]; /* that serves it; VAL_NONE: none */
	bool any;                     /* class */
};

/* What a pod asks for. */
void extended_needs_read(struct arena *a, struct devices *d, struct val pod, struct extended_needs *ret);
/* Bits of those that devices have to serve on the node; false: the node cannot serve one of them. */
bool extended_needs_on(const struct extended_needs *e, struct val node, uint64_t *ret_bits);
/* The claim for these, as it is written, without a name; its uid is only ours. ret_mappings: which containers use which of its requests. In the arena. */
struct val extended_claim_make(struct arena *a, const struct extended_needs *e, struct val pod, uint64_t bits, str uid, struct val *ret_mappings);
/* The one that was made for the pod before; NULL: none. Borrowed. */
struct frozen *extended_claim_find(const struct devices *d, struct val pod);

#endif
