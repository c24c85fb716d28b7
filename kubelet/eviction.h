/*
 * eviction: pods end when memory, disk, inodes or process ids run short; soft and hard thresholds, ranking and texts of 1.36.
 *
 *	eviction.c       the loop: thresholds, pressures, what is freed      eviction_signals.c    what is left, and when that is too little
 *	eviction_rank.c  who goes first, and the texts
 */
#ifndef C8S_KUBELET_EVICTION_H
#define C8S_KUBELET_EVICTION_H

#include "kubelet/cgroups.h"
#include "kubelet/images.h"
#include "kubelet/stats.h"

struct eviction;

struct eviction_options {
	const struct kubelet_node *node;
	struct val config;            /* evictionHard, evictionSoft, ...GracePeriod, MinimumReclaim, PressureTransitionPeriod, ... */
	struct stats *stats;
	struct val (*pods)(void *arg, struct arena *a); /* active ones, as core/v1.Pod with status */
	/* (suspends) As pods_evict, with wait. */
	int (*evict)(void *arg, struct val pod, str reason, str message, struct val condition, int64_t grace_s, struct err *err);
	bool (*gone)(void *arg, str uid); /* whether nothing is left of it; NULL: that is not waited for */
	/* (suspends) Frees disk: dead containers; unused images. */
	void (*free_containers)(void *arg);
	int64_t (*free_images)(void *arg, struct err *err);
	void (*event)(void *arg, struct val pod, bool warning, const char *reason, str message); /* VAL_NONE: of the node */
	void (*changed)(void *arg);   /* a pressure has begun or ended: the node's status */
	/* Signals come from here instead of from the machine, for tests; NULL: the machine. list of { signal, available, capacity }, as numbers
	 * or quantities. */
	struct val (*observe)(void *arg, struct arena *a);
	void *arg;
};

struct eviction *eviction_new(const struct eviction_options *o) NONNULL_RESULT;
void eviction_free(struct eviction *e); /* NULL is fine */
/* (suspends, until canceled) Looks every 10 s; also at limits of emptyDir and ephemeral-storage. */
int eviction_run(struct eviction *e, struct err *err);
/* (suspends) One look. Whether a pod was ended. */
bool eviction_look(struct eviction *e);
/*
 * (suspends) As o->evict, but not for much longer than the pod's grace; then there is an event, and -ERR_TIMEOUT: a runtime that hangs must
 * not keep others from being evicted. Of o, evict, event and arg are used.
 */
int eviction_within_grace(const struct eviction_options *o, struct val pod, str reason, str message, struct val condition, int64_t grace_s,
			  struct err *err);
bool eviction_memory_pressure(const struct eviction *e);
bool eviction_disk_pressure(const struct eviction *e);
bool eviction_pids_pressure(const struct eviction *e);
/* Hard thresholds by resource as quantities, which node allocatable leaves aside; in the arena. */
struct val eviction_reserved(struct val config, struct arena *a, int64_t memory_bytes, int64_t disk_bytes);

#endif
