/*
 * pods: the pods of this node and a fiber for each: it compares what is wanted with what the runtime has, acts, and tells the status.
 *
 *	pods.c           the table: who is wanted, admitted, gone; orphans
 *	pod_worker.c     the fiber: looks, decides (pod_actions.h), acts, tells (pod_status.h)
 *	pod_start.c      sandbox and containers are made and started
 *	pod_stop.c       containers are stopped: hooks, grace, order; the pod is cleaned up
 *	pod_allocation.c what pods have been given, and resizes that wait
 *	pod_resize.c     a resize is told to the kernel and the runtime
 */
#ifndef C8S_KUBELET_PODS_H
#define C8S_KUBELET_PODS_H

#include "kubelet/kubelet.h"

struct frozen;
struct kubelet;
struct pods;

struct pods *pods_new(struct kubelet *k) NONNULL_RESULT;
/* (suspends) The fibers end; containers stay. NULL is fine. */
void pods_free(struct pods *p);

/* ---- what is wanted: source.h tells. Must not suspend. ---- */

/* A pod is new or has changed (its deletion may be asked for). Referenced. */
void pods_update(struct pods *p, struct frozen *pod);
/* It is no longer there at its source: whatever runs of it ends at once (API) or with its grace (file). */
void pods_remove(struct pods *p, str uid);
/* All sources have told of their pods once: what the runtime has beyond them is ended from now on. */
void pods_complete(struct pods *p);

/* ---- what happens ---- */

/* Look at this pod again: the runtime, a probe, a volume or the clock says so. Unknown ones are looked up for orphans. */
void pods_wake(struct pods *p, str uid);
/* The same for a pod that is known, though the runtime has nothing new of it. */
void pods_poke(struct pods *p, str uid);
/* All that could not be brought to where they should be are tried again at once. */
void pods_retry(struct pods *p);
/* Those for whose fiber there was no memory are given one, if there is some now. */
void pods_start_stranded(struct pods *p);
/* A liveness or startup probe has failed for good. */
void pods_probe_failed(struct pods *p, str uid, str container, bool startup);
/*
 * Ends a pod for the kubelet's own reasons: its phase becomes Failed with this reason and message. condition: PodCondition
 * DisruptionTarget, or VAL_NONE. grace_s < 0: its own. Returns at once; (suspends with wait) until nothing of it runs.
 */
int pods_evict(struct pods *p, str uid, str reason, str message, struct val condition, int64_t grace_s, bool wait, struct err *err);

/* ---- looking ---- */

/* core/v1.Pod with the status last made, in the arena; VAL_NONE: not here. */
struct val pods_get(struct pods *p, struct arena *a, str namespace, str name);
struct val pods_by_uid(struct pods *p, struct arena *a, str uid);
/* All, as list; without those that have ended when active. */
struct val pods_list(struct pods *p, struct arena *a, bool active);
/* Whether volumes and cgroup of a pod may be removed: it is not known, or all of it has ended. */
bool pods_may_clean(struct pods *p, str uid);
/* Neither known nor in the runtime any more: it can be deleted for good. */
bool pods_is_gone(struct pods *p, str uid);
/* Whether pods_complete was called. */
bool pods_are_complete(const struct pods *p);
size_t pods_count(const struct pods *p);

#endif
