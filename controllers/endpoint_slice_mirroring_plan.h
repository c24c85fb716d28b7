/* endpoint_slice_mirroring_plan: from Endpoints that somebody wrote by hand to EndpointSlices that say the same. Pure. */
#ifndef C8S_CONTROLLERS_ENDPOINT_SLICE_MIRRORING_PLAN_H
#define C8S_CONTROLLERS_ENDPOINT_SLICE_MIRRORING_PLAN_H

#include "codec/val.h"

#define MIRROR_MANAGER "endpointslicemirroring-controller.k8s.io"

enum { MIRROR_MAX = 1000 }; /* addresses of one subset */

struct mirror_plan {
	struct val create, update, gone; /* lists of slices */
	size_t n_invalid, n_skipped; /* addresses that are none; those that were left out (the invalid ones among them) */
};

/* Neither marked to be left alone nor a lock for the election of a leader. */
bool mirror_wanted(struct val endpoints);
/* slices: those that mirror this object. */
void mirror_plan(struct arena *a, struct val endpoints, struct val slices, size_t max, struct mirror_plan *ret);

#endif
