/* For tests: a cgroup root of their own, /c8s-test-RANDOM, which goes with them even when they fail. */
#ifndef C8S_KUBELET_CGROUPS_TESTING_H
#define C8S_KUBELET_CGROUPS_TESTING_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/random.h"
#include "oci/cgroup.h"

static char cgroups_left[64];   /* the root of a test that has not ended */

static void cgroups_tidy(void)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;

	if (cgroups_left[0] && cgroup_open(cgroups_left, &g, NULL) >= 0) {
		(void)cgroup_kill(g, SIGKILL, NULL);
		(void)cgroup_remove(g, NULL);
	}
	cgroups_left[0] = '\0';
}

static void cgroups_name_root(void)
{
	static bool once;

	cgroups_tidy();
	snprintf(cgroups_left, sizeof cgroups_left, "/c8s-test-%016llx", (unsigned long long)random_u64());
	if (!once)
		once = atexit(cgroups_tidy) == 0;
}

static bool cgroups_possible(void)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	bool made;

	cgroups_name_root();
	made = getuid() == 0 && cgroup_make(cgroups_left, &g, NULL) >= 0;
	cgroups_tidy();
	return made;
}

#endif
