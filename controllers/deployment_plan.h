/*
 * deployment_plan: what a Deployment is to do next about its ReplicaSets, and what it tells about them. A pure function from what is seen to
 * the writes of one sync; how a roll-out goes on is found out at the next one.
 */
#ifndef C8S_CONTROLLERS_DEPLOYMENT_PLAN_H
#define C8S_CONTROLLERS_DEPLOYMENT_PLAN_H

#include "codec/val.h"

/* What is seen. */
struct deployment_seen {
	struct val deployment;
	struct val sets;               /* list of its ReplicaSets */
	const bool *busy;              /* of each: it has pods that have not ended, whatever its own status says; NULL: none has */
	int64_t now_ns;                /* clock_wall_ns() */
};

/* One ReplicaSet that is to be written. */
struct deployment_write {
	enum deployment_verb { DEPLOYMENT_CREATE, DEPLOYMENT_UPDATE, DEPLOYMENT_DELETE } verb;
	struct val set;                /* as it shall be */
	int64_t from, to;              /* replicas before and after */
};

struct deployment_plan {
	struct deployment_write *writes; /* in this order; an error ends it */
	size_t n;
	struct val changed;            /* the deployment as it shall be, to be updated as a whole: a rollback; VAL_NONE: it stays */
	struct val told;               /* the deployment with its new status (and revision); VAL_NONE: nothing is new */
	int64_t again_ms;              /* look again then, for the progress deadline; -1: no need */
	const char *reason;            /* of an event about the deployment; NULL: none */
	bool warning;
	str message;
};

/* -ERR_INVALID for a deployment with an unknown strategy. All in the arena. */
int deployment_plan(struct arena *a, const struct deployment_seen *seen, struct deployment_plan *ret, struct err *err);

/* The deployment when its new ReplicaSet could not be created, and when its name is taken by one that is not its own. */
struct val deployment_failed(struct arena *a, struct val deployment, str set_name, const char *failure, int64_t now_ns);
struct val deployment_collided(struct arena *a, struct val deployment);

/* Whether two templates are the same but for the label pod-template-hash. */
bool deployment_template_equal(struct arena *a, struct val x, struct val y);

#endif
