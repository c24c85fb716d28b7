/* Between the files of cgroups.h. */
#ifndef C8S_KUBELET_CGROUPS_PRIV_H
#define C8S_KUBELET_CGROUPS_PRIV_H

#include "kubelet/cgroups.h"
#include "kubelet/node_machine.h"
#include "oci/cgroup.h"

struct cgroups {
	struct cgroups_options o;
	struct arena arena;
	struct node_machine machine;
	str top;                      /* "/...kubepods" */
	bool off;                     /* cgroupsPerQOS: false: there is no tree */
	int64_t allocatable;          /* memory without what is reserved */
	int64_t kept_min, kept_low;   /* memory of Guaranteed and of Burstable pods */
	bool memory_missing;          /* the limit of kubepods could not be set: more is in use */
};

/* What is set; 0, or an empty list or map: stays as it is. -1: no limit. */
struct cgroups_values {
	int64_t shares, quota_us, period_us, memory, pids;
	struct val huge;              /* as hugepageLimits of linux.resources */
	struct val unified;
};

/* Whether enforceNodeAllocatable names it; where nothing is said, pods it is. */
bool cgroups_enforces(struct val config, str what);
/* What the machine has no controller for is left out. */
int cgroups_set(struct cgroup *g, struct arena *a, const struct cgroups_values *v, struct err *err);
/* A limit for every size of page that the machine has: what the resources say, or otherwise. */
struct val cgroups_huge(const struct cgroups *c, struct arena *a, struct val resources, int64_t otherwise);
int cgroups_open(struct arena *a, str path, bool make, struct cgroup **ret, struct err *err);

#endif
