/*
 * stateful_set_plan: what a StatefulSet needs next, as a list of steps in their order. With OrderedReady a step that must be waited for ends the
 * list; with Parallel the steps of one stage may be done at once. Pure.
 */
#ifndef C8S_CONTROLLERS_STATEFUL_SET_PLAN_H
#define C8S_CONTROLLERS_STATEFUL_SET_PLAN_H

#include "controllers/stateful_set_claims.h"

#define STATEFUL_REVISION "controller-revision-hash"
#define STATEFUL_POD_NAME "statefulset.kubernetes.io/pod-name"
#define STATEFUL_POD_INDEX "apps.kubernetes.io/pod-index"

enum stateful_step_type {
	STATEFUL_CREATE,       /* claims, then the pod */
	STATEFUL_CLAIMS,       /* of a pending pod: those that are missing */
	STATEFUL_UPDATE,       /* identity, volumes, owners of claims */
	STATEFUL_SETTLE,       /* owners of the claims of a pod that will go */
	STATEFUL_DELETE,
};

struct stateful_step {
	enum stateful_step_type type;
	int stage;             /* steps of one stage may be done at once, if they may at all */
	struct val pod;
};

struct stateful_view {
	struct val set, pods;
	str current_revision, update_revision;     /* names */
	struct val current_template, update_template;
	int64_t collisions, now_ns;
	/* The claim of that name in the set's namespace; VAL_NONE: none. */
	struct val (*claim)(void *arg, str name);
	void *arg;
};

struct stateful_plan {
	struct stateful_step *steps;
	size_t n;
	bool at_once;
	bool waits;            /* for claims that are going with a pod: nobody tells when they are gone */
	struct val status;     /* if all steps succeed */
};

void stateful_plan_make(struct arena *a, const struct stateful_view *v, struct stateful_plan *ret);
/* The status differs in something that counts. */
bool stateful_status_differs(struct val set, struct val status);
/* Name and labels are those of its place in the set. */
bool stateful_identity_matches(struct val set, struct val pod);
struct val stateful_with_identity(struct arena *a, struct val set, struct val pod);

#endif
