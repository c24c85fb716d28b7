/*
 * cgroup: where a container's processes are counted and limited. v1 (a hierarchy per controller), v2 (one), and hybrid (v2 mounted
 * beside v1 without controllers) are found out once per process. Paths are relative to the root of each hierarchy; under v1 the
 * container is in the same path of every one. Used by oci/ (limits) and by runtime/ (figures).
 */
#ifndef C8S_OCI_CGROUP_H
#define C8S_OCI_CGROUP_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/val.h"

struct cgroup;

enum cgroup_mode { CGROUP_V1, CGROUP_V2, CGROUP_HYBRID }; /* HYBRID: controllers are on v1 */

enum cgroup_mode cgroup_mode(void);

/* Makes it (all controllers that there are), or opens what is there. path: absolute ("/kubepods/pod1/x") or relative to ours. */
int cgroup_make(const char *path, struct cgroup **ret, struct err *err);
int cgroup_open(const char *path, struct cgroup **ret, struct err *err);
void cgroup_free(struct cgroup *c);   /* closes; NULL is fine */
void cgroup_freep(struct cgroup **c);
/* Removes it and what is below it in every hierarchy; processes in it make it fail after some tries. */
int cgroup_remove(struct cgroup *c, struct err *err);

/* limits: "linux.resources" of config.json, with "unified" under v2. Members that are not there stay as they are. */
int cgroup_limit(struct cgroup *c, struct val resources, struct err *err);
/* The rules of "linux.resources.devices": the v1 list or a v2 BPF program. None: all that the default has. */
int cgroup_devices(struct cgroup *c, struct val rules, struct err *err);

/* What is set at the moment. What cannot be read counts as not limited. */
struct cgroup_limits {
	int64_t cpu_quota_us;         /* -1: none */
	int64_t cpu_period_us;
	uint64_t memory;              /* UINT64_MAX: none */
};

void cgroup_limits(const struct cgroup *c, struct cgroup_limits *ret);
/* Names of the cgroups directly below it, of all hierarchies, each once: list of texts in the arena. */
struct val cgroup_below(const struct cgroup *c, struct arena *a);
/* Moves a process into it; where it is already, nothing happens. */
int cgroup_add(struct cgroup *c, pid_t pid, struct err *err);
/*
 * v2 and hybrid: a descriptor for clone3's CLONE_INTO_CGROUP; -1 under v1. In hybrid it covers v2's part only: cgroup_join or
 * cgroup_add must follow in any case. Kernels of today (6.18) kill what is cloned into a cgroup that cgroup_kill was used on before.
 */
int cgroup_fd(const struct cgroup *c);
/*
 * The fast way in: moving another process makes the kernel wait for some milliseconds, moving oneself (with one thread) does not.
 * Before clone3: cgroup_join_prepare. Then in the child, in whatever namespaces it is, with an empty /proc or none: cgroup_join
 * enters the v1 hierarchies; into v2's the child was cloned, by cgroup_fd.
 */
int cgroup_join_prepare(struct cgroup *c, struct err *err);
int cgroup_join(const struct cgroup *c, struct err *err);
int cgroup_freeze(struct cgroup *c, bool freeze, struct err *err);
/* All processes in it and below; in the arena. */
int cgroup_pids(struct cgroup *c, struct arena *a, pid_t **ret, size_t *ret_n, struct err *err);
/* A signal to all of them, while they are frozen where that is possible. */
int cgroup_kill(struct cgroup *c, int signal, struct err *err);

struct cgroup_stats {
	uint64_t cpu_usage_ns, cpu_user_ns, cpu_system_ns, cpu_periods, cpu_throttled_periods, cpu_throttled_ns;
	uint64_t memory_usage, memory_limit, memory_rss, memory_cache, memory_working_set, memory_swap, memory_swap_limit,
		memory_page_faults, memory_major_page_faults, oom_kills;
	uint64_t pids, pids_limit;    /* limits: UINT64_MAX is none */
	uint64_t io_read_bytes, io_write_bytes;
};

int cgroup_stats(struct cgroup *c, struct cgroup_stats *ret, struct err *err);
/*
 * A descriptor that becomes readable when something in it was killed for memory, and perhaps at other times (v1: when it is
 * removed): read what is there, a few bytes, and ask cgroup_stats. The caller closes it.
 */
int cgroup_oom_fd(struct cgroup *c, struct err *err);

#endif
