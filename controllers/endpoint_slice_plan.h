/* endpoint_slice_plan: from a Service, its pods and the slices that it has to the slices that it shall have. Pure. */
#ifndef C8S_CONTROLLERS_ENDPOINT_SLICE_PLAN_H
#define C8S_CONTROLLERS_ENDPOINT_SLICE_PLAN_H

#include "codec/val.h"

#define ENDPOINT_SLICE_MANAGER "endpointslice-controller.k8s.io"

struct endpoint_slice_input {
	struct val service;
	struct val pods;             /* those that it selects */
	struct val slices;           /* those of this service that are ours */
	/* A node by its name; VAL_NONE: there is none. */
	struct val (*node)(void *arg, str name);
	void *arg;
	str trigger;                 /* when the change happened that led to this; empty: not known */
	size_t max;                  /* endpoints in one slice */
};

struct endpoint_slice_plan {
	struct val create, update, gone; /* lists of slices */
	str lost_pod, lost_node;     /* a pod that was left out because its node is not known (yet); empty: none */
};

void endpoint_slice_plan(struct arena *a, const struct endpoint_slice_input *in, struct endpoint_slice_plan *ret);

#endif
