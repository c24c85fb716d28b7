/*
 * runtime_pods: what the runtime has, by pod: sandboxes and containers with their statuses, as of the last look. Follows the runtime's
 * events where it has them, and lists everything now and then (each second where it has no events). Kept between looks, so that asking
 * costs nothing.
 */
#ifndef C8S_KUBELET_RUNTIME_PODS_H
#define C8S_KUBELET_RUNTIME_PODS_H

#include "kubelet/cri_client.h"

struct runtime_pods;

struct runtime_pods_options {
	struct cri *cri;
	/* Something about this pod has changed, or is gone. Must not suspend. */
	void (*changed)(str pod_uid, void *arg);
	/* The runtime was away and is back: what could not be done may work now. Must not suspend; may be NULL. */
	void (*back)(void *arg);
	void *arg;
};

/* One pod as the runtime has it. */
struct runtime_pod {
	str uid, namespace, name;
	struct val sandboxes;         /* list of runtime.v1.PodSandboxStatus, the newest first */
	struct val containers;        /* list of runtime.v1.ContainerStatus, the newest of each name first */
	uint64_t signature;           /* the same as long as ids and states are; 0: there is nothing */
};

struct runtime_pods *runtime_pods_new(const struct runtime_pods_options *o) NONNULL_RESULT;
void runtime_pods_free(struct runtime_pods *p);
/* (suspends, until canceled) Follows the runtime. */
int runtime_pods_run(struct runtime_pods *p, struct err *err);
/* (suspends) Until the first list is complete. */
int runtime_pods_wait(struct runtime_pods *p, struct err *err);

/* (suspends) Asks the runtime anew about one pod; for who has just changed it. *ret is in the arena. */
int runtime_pods_look(struct runtime_pods *p, struct arena *a, str uid, struct runtime_pod *ret, struct err *err);
/* As of the last look; uid "" in it: the runtime has nothing of it. *ret is in the arena. */
void runtime_pods_get(const struct runtime_pods *p, struct arena *a, str uid, struct runtime_pod *ret);
/* Whether there was something of it at the last look, or when all were listed. */
bool runtime_pods_has(const struct runtime_pods *p, str uid);
/* Uids of all, as list of texts. */
struct val runtime_pods_list(const struct runtime_pods *p, struct arena *a);
/* When everything was last listed (clock_wall_ns), for healthz; 0: never. */
int64_t runtime_pods_listed_ns(const struct runtime_pods *p);

#endif
