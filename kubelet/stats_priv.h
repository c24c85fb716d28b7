/*
 * Between the files of stats.h: a look at all pods (struct look), from which summaries and metrics are written. Figures of cgroups and
 * folders are read in the thread pool, all of a look in one go.
 */
#ifndef C8S_KUBELET_STATS_PRIV_H
#define C8S_KUBELET_STATS_PRIV_H

#include "base/map.h"
#include "kubelet/node_machine.h"
#include "kubelet/stats.h"
#include "oci/cgroup.h"

#define MEMORY_UNLIMITED (UINT64_C(1) << 62) /* v1 shows a limit of that size where there is none */

/* How fast something uses CPU, from two looks at it. */
struct rate {
	char *key;
	int64_t at_ns, used_at_ns;    /* used: when it was last asked for, by clock_now_ns */
	uint64_t cpu_ns, nano_cores;
	bool known;
};

/* What the volumes of a pod take. */
struct measured {
	char *uid;
	struct frozen *volumes;       /* list of stats.v1alpha1.VolumeStats */
	int64_t at_ns, took_ns;       /* by clock_now_ns */
	bool wanted;
};

struct counter {
	char *key;                    /* metric and labels, as they are written */
	double value;
};

struct stats {
	struct stats_options o;
	struct arena arena;
	struct node_machine machine;
	struct map rates, measured, counters;
	int64_t boot_ns, begun_ns;
};

/* ---- what is read ---- */

struct cgroup_look {
	const char *path;             /* NULL: none */
	bool ok;
	struct cgroup_stats g;
	struct cgroup_limits limits;
};

/* Files directly in a folder, or one file. */
struct folder_look {
	const char *path;
	bool ok;
	uint64_t bytes, inodes;
};

struct container_look {
	struct val container, stats;  /* runtime.v1.Container and ContainerStats; VAL_NONE: it has none */
	struct cgroup_look cgroup;    /* only with cgroups */
	struct folder_look logs;
};

struct pod_look {
	struct val pod, sandbox, stats; /* core/v1.Pod (VAL_NONE: unknown), runtime.v1.PodSandbox, LinuxPodSandboxStats (or VAL_NONE) */
	struct container_look *containers;
	size_t n;
	struct cgroup_look cgroup, own; /* of the pod; of its sandbox alone (only with cgroups) */
	struct folder_look logs, hosts;
};

struct look {
	struct pod_look *pods;
	size_t n;
	struct cgroup_look root, top, self; /* of the node, of all pods, of the kubelet */
};

/* LEAN: what cgroups tell is enough; the runtime is asked for figures only if a container has none. It measures disks for its answer. */
enum look_flags { LOOK_FOLDERS = 1, LOOK_CGROUPS = 2, LOOK_LEAN = 4 };

/* (suspends) uid "": all pods. */
int stats_look(struct stats *s, struct arena *a, str uid, unsigned flags, struct look *ret, struct err *err);

struct fs_look {
	bool ok;
	uint64_t capacity, available, used, inodes, inodes_free;
};

/* Of the file system that a path is on. */
struct fs_look stats_fs(const char *path);

struct memory_look {
	uint64_t total, usage, working_set, rss, swap_total, swap_used, faults, major_faults;
};

/* Of the machine. */
struct memory_look stats_memory(void);
/* Greatest number of tasks, and how many there are; -1: not known. */
void stats_tasks(int64_t *ret_max, int64_t *ret_now);

/* Billionths of a CPU since the last time that this key was asked for; -1: not known yet. */
int64_t stats_rate(struct stats *s, str key, uint64_t cpu_ns);
/* (suspends) Unless that was done just now. */
int stats_measure(struct stats *s, struct val pod, bool fresh, struct err *err);

/* ---- trees ---- */

/* (suspends) The node's part of a summary. */
struct val stats_node(struct stats *s, struct arena *a, const struct look *l, bool brief);
struct val stats_pod_tree(struct stats *s, struct arena *a, const struct pod_look *p, bool brief);
/* Whether a volume of a pod's spec is on the disk of the node and gone with the pod: what counts as ephemeral storage. */
bool stats_volume_is_local(struct val volume);
/* Text of a time. */
struct val stats_time(struct arena *a, int64_t wall_ns);

#endif
