/* What several tests of this folder need; in cgroup_test.c. */
#ifndef C8S_OCI_CGROUP_TEST_H
#define C8S_OCI_CGROUP_TEST_H

#include "oci/cgroup.h"

/* The tree of a JSON text; text that is none fails the test. */
struct val test_json(struct arena *a, const char *text);
/*
 * A new cgroup /c8s-test-RANDOM in all hierarchies; skips the test where there can be none. What a failing test leaves there is
 * killed and removed at the end of the program.
 */
struct cgroup *test_cgroup(void);
/* Its path: of the newest one. */
extern char test_cgroup_path[64];
/* Removes and frees it; a failure fails the test. */
void test_cgroup_end(struct cgroup *c);

#endif
