/*
 * daemon_set_plan: which pods a DaemonSet needs and which go. First every node gets its one pod; only when that is so does an update go on,
 * within spec.updateStrategy.rollingUpdate: maxUnavailable (old pods go first) or maxSurge (new pods come first). Pure.
 */
#ifndef C8S_CONTROLLERS_DAEMON_SET_PLAN_H
#define C8S_CONTROLLERS_DAEMON_SET_PLAN_H

#include "controllers/daemon_set_pod.h"

/* Pods made or deleted in one look. */
enum { DAEMON_BURST = 250 };

struct daemon_view {
	struct val set;
	struct val nodes, pods;      /* lists; all nodes, the set's own pods */
	str hash;                    /* of the newest revision */
	int64_t now_ns;
	/* How long a failed pod of this node is still left alone; 0: not any more. May be NULL. */
	int64_t (*wait_ns)(void *arg, str node);
	void *arg;
};

/* A pod that ended by itself: told in an event. */
struct daemon_ended {
	struct val pod;
	str node;
	bool failed;
};

struct daemon_plan {
	str *create;                 /* names of nodes */
	struct val *remove;          /* pods */
	struct daemon_ended *ended;  /* those of remove that had ended */
	size_t n_create, n_remove, n_ended;
	int64_t again_ns;            /* look again then; 0: no need */
};

void daemon_plan_make(struct arena *a, const struct daemon_view *v, struct daemon_plan *ret);
/* Counts of the status; other members stay. The generation counts as observed if so. */
struct val daemon_status(struct arena *a, const struct daemon_view *v, bool observed);
bool daemon_status_differs(struct val set, struct val status);

#endif
