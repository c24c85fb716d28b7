/* pod_actions: what has to be done next about a pod, as kuberuntime's computePodActions decides it. */
#ifndef C8S_KUBELET_POD_ACTIONS_H
#define C8S_KUBELET_POD_ACTIONS_H

#include "kubelet/pod_view.h"

enum container_list { LIST_INIT_CONTAINERS, LIST_CONTAINERS, LIST_EPHEMERAL };

struct container_start {
	enum container_list list;
	size_t index;                 /* in spec.initContainers, containers or ephemeralContainers */
	unsigned attempt;             /* restartCount that it will have */
};

enum kill_reason {
	KILL_NOT_WANTED, KILL_CHANGED, KILL_LIVENESS, KILL_STARTUP, KILL_SANDBOX, KILL_UNKNOWN_STATE,
	KILL_RESTART_ALL,             /* a container's end restarts all of them */
};

struct container_kill {
	str id, name;
	enum kill_reason reason;
	str message;                  /* of the Killing event: "Container web failed liveness probe, will be restarted" */
};

struct pod_actions {
	bool kill_pod;                /* sandbox and all containers */
	bool create_sandbox;
	unsigned attempt;             /* of the new sandbox */
	str sandbox_id;               /* of the one to use when none is created */
	struct container_start *starts; /* in this order; those in back-off are not among them */
	size_t n_starts;
	struct container_kill *kills;
	size_t n_kills;
	struct container_start *resizes; /* running ones whose resources have changed in place; those that shrink first */
	size_t n_resizes;
	/* A container's restartPolicyRules restart all: these are stopped without grace and removed, in this order, and nothing
	 * else is done. The next look at the pod starts it anew, after a new status was made. */
	struct container_kill *resets;
	size_t n_resets;
	int64_t again_ns;             /* look again at this time (back-off); INT64_MAX: only when something changes */
};

/* liveness failures are told by names in failed (probes that said no): "web" with KILL_LIVENESS or KILL_STARTUP. */
struct probe_failure {
	str container;
	enum kill_reason reason;
};

void pod_actions_compute(struct arena *a, const struct pod_view *v, const struct probe_failure *failed, size_t n_failed,
			 struct pod_actions *ret);

/*
 * Whether a container is to have other CPU or memory than it was given: of_pod and pod_was are spec.resources now and then, was what it was
 * given.
 */
bool container_is_resized(struct val of_pod, struct val container, struct val pod_was, struct val was);

/*
 * Restart back-off, one per container, of zeros at first; asked once at each end of it: how long it waits from then on. The first
 * restart is at once, the next after 10 s, doubling to max_ns (no wait is longer), and anew after 600 s of running. delay_ns is what the wait after that
 * will be, last_ns when it was to start.
 */
struct crash_backoff {
	int64_t delay_ns, last_ns;
};
int64_t crash_backoff_next(struct crash_backoff *b, int64_t started_ns, int64_t finished_ns, int64_t max_ns);

#endif
