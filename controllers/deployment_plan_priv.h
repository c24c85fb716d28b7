/* Between deployment_plan.c and deployment_status.c. */
#ifndef C8S_CONTROLLERS_DEPLOYMENT_PLAN_PRIV_H
#define C8S_CONTROLLERS_DEPLOYMENT_PLAN_PRIV_H

#include "controllers/deployment_plan.h"

/* A ReplicaSet while a plan is made: what it is and what it is going to be. */
struct planned_set {
	struct val set;
	int64_t from, to;              /* spec.replicas */
	int64_t actual, ready, available; /* status */
	bool busy, create, write, gone;
	size_t rank;                   /* in which order they are written */
};

struct planning {
	struct arena *arena;
	const struct deployment_seen *seen;
	struct val d;                  /* the deployment: annotations and status change on the way */
	struct planned_set *sets;      /* oldest first; there is room for one more */
	size_t n;
	struct planned_set *fresh;     /* the one that has the deployment's template; NULL: there is none */
	int64_t replicas, max_surge, max_unavailable;
	struct val now;
	bool resumed;                  /* a pause has ended, which is told in this look */
	struct deployment_plan *plan;
};

bool deployment_has_deadline(struct val d);
/* Sets a condition of the deployment at hand as Kubernetes does: nothing happens when status and reason are as they were. */
void deployment_set_condition(struct planning *p, const char *type, const char *status, const char *reason, str message);
struct val deployment_condition(struct val d, const char *type);
bool deployment_is_complete(struct val d, struct val status);
/* The new status goes to plan->told: with or without a look at how the roll-out is getting on. */
void deployment_tell_status(struct planning *p);
void deployment_tell_progress(struct planning *p);

#endif
