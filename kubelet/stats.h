/*
 * stats: figures of node, pods, containers and volumes: stats/summary (api/stats.api), and as metrics: resource, cadvisor, the kubelet's own.
 *
 *	stats.c          reading cgroups, CRI, disks       stats_summary.c   the Summary
 *	stats_metrics.c  Prometheus' text
 */
#ifndef C8S_KUBELET_STATS_H
#define C8S_KUBELET_STATS_H

#include "base/buf.h"
#include "kubelet/cgroups.h"
#include "kubelet/cri_client.h"
#include "kubelet/volume.h"

struct probes;
struct stats;

struct stats_options {
	const struct kubelet_node *node;
	struct cri *cri;
	struct cgroups *cgroups;
	struct volumes *volumes;
	struct val (*pods)(void *arg, struct arena *a); /* active ones */
	void *arg;
};

struct stats *stats_new(const struct stats_options *o) NONNULL_RESULT;
void stats_free(struct stats *s); /* NULL is fine */
/* (suspends, until canceled) Measures volumes and root file systems each minute: walking them is slow. */
int stats_run(struct stats *s, struct err *err);
/* (suspends) stats.v1alpha1.Summary, typed, in the arena; only CPU and memory when brief. */
struct val stats_summary(struct stats *s, struct arena *a, bool brief);
/* (suspends) One pod: stats.v1alpha1.PodStats, fresh; VAL_NONE: not there. */
struct val stats_pod(struct stats *s, struct arena *a, struct val pod);
/* (suspends) which: "resource", "cadvisor", "" (the kubelet's own). Any other writes nothing. */
void stats_metrics(struct stats *s, str which, struct buf *text);
/* Counters of the kubelet itself, told by its parts: stats_count(s, "kubelet_x_total", "a=\"b\"", 1). labels NULL or "": none. */
void stats_count(struct stats *s, const char *metric, const char *labels, double add);

#endif
