/* fit_error: why a pod fits nowhere, as Kubernetes tells it: "0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods. preemption: ..." */
#ifndef C8S_SCHEDULER_FIT_ERROR_H
#define C8S_SCHEDULER_FIT_ERROR_H

#include "base/arena.h"

enum { FIT_REASONS_MAX = 256 };

struct fit_error {
	struct arena *arena;
	struct fit_reason {
		str text;
		uint32_t n;
	} *reasons;                   /* room for FIT_REASONS_MAX from the first one on */
	size_t n, last;
	/* Neighbours mostly have the same reason: so many nodes in a row, not counted yet. */
	str same;
	uint32_t n_same;
};

void fit_error_init(struct fit_error *e, struct arena *a);
/* So many nodes more for this reason, which must live as long as the arena; several have '\n' between them, and each counts. */
void fit_error_add(struct fit_error *e, str reason, uint32_t n);
/* In the arena. pre_filter: what PreFilter said, instead of reasons by node; post_filter: what was tried; both may be empty. */
str fit_error_text(struct fit_error *e, uint32_t n_nodes, str pre_filter, str post_filter);

#endif
