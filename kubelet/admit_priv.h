/* Between the files of admit: what pods ask for, and what is missing of it. */
#ifndef C8S_KUBELET_ADMIT_PRIV_H
#define C8S_KUBELET_ADMIT_PRIV_H

#include "kubelet/admit.h"

/* A resource that is not there in the amount wanted; cpu in thousandths, all others in units. */
struct shortage {
	str name;
	int64_t requested, used, capacity;
};

struct shortages {
	struct shortage *all;
	size_t n;
};

/* What a pod takes: by containers or for the pod as a whole, with overhead. A map of quantities, in the arena. */
struct val admit_requests(struct arena *a, struct val spec);
/* One of them, in the units of a shortage. */
int64_t admit_amount(struct val requests, str name);
/* pods, cpu, memory, ephemeral-storage first, then the others by name. */
struct shortages admit_shortages(struct arena *a, const struct admit_input *in);
/* Whether it counts: another one than that which asks, and not over. */
bool admit_counts(const struct admit_input *in, struct val other);

#endif
