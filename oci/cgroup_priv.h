/* Between the files of cgroups: the hierarchies, and how their files are read and written. */
#ifndef C8S_OCI_CGROUP_PRIV_H
#define C8S_OCI_CGROUP_PRIV_H

#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "oci/cgroup.h"

/* Under v1 they may each have their own hierarchy or share one; UNIFIED is the one of v2, and has what it has. */
enum cgroup_controller {
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_CPUSET,
	CGROUP_MEMORY,
	CGROUP_DEVICES,
	CGROUP_FREEZER,
	CGROUP_BLKIO,
	CGROUP_PIDS,
	CGROUP_HUGETLB,
	CGROUP_NET_CLS,
	CGROUP_NET_PRIO,
	CGROUP_PERF_EVENT,
	CGROUP_RDMA,
	CGROUP_MISC,
	CGROUP_SYSTEMD,     /* name=systemd: no controller, but systemd looks there for who is who */
	CGROUP_UNIFIED,
	CGROUP_CONTROLLERS,
};

extern const char *const cgroup_controller_names[CGROUP_CONTROLLERS];

struct cgroup_hierarchy {
	unsigned controllers;   /* bits of 1 << enum cgroup_controller */
	int fd;                 /* the folder of the cgroup in it */
	int tasks;              /* its file of that name, for cgroup_join; -1 before */
	char *path;             /* within the hierarchy: "/kubepods/x" */
	char *dir;              /* "/sys/fs/cgroup/memory/kubepods/x" */
};

struct cgroup {
	enum cgroup_mode mode;
	size_t n;
	struct cgroup_hierarchy hierarchies[CGROUP_CONTROLLERS];
};

/* The hierarchy with this controller (or UNIFIED), NULL if there is none. Under v2 all but names of v1 are in UNIFIED. */
const struct cgroup_hierarchy *cgroup_hierarchy(const struct cgroup *c, enum cgroup_controller controller);
/* The same, or -ERR_NOT_FOUND that says what could not be limited. */
int cgroup_need(const struct cgroup *c, enum cgroup_controller controller, const struct cgroup_hierarchy **ret, struct err *err);

/* The path of a cgroup in a hierarchy, from the lines ID:controllers:path of /proc/PID/cgroup. */
bool cgroup_path_of(str text, unsigned controllers, str *ret);

/* -ERR_FORBIDDEN "what cgroup ...: this process is in it" if we are in c or below it: nothing stops or ends itself that way. */
int cgroup_not_ours(const struct cgroup *c, const char *what, struct err *err);

/* One write(2) of the text. The error names value and file, and err->sys is errno. */
int cgroup_write(const struct cgroup_hierarchy *h, const char *file, str text, struct err *err);
int cgroup_writef(const struct cgroup_hierarchy *h, const char *file, struct err *err, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Appends all of a file. */
int cgroup_read(const struct cgroup_hierarchy *h, const char *file, struct buf *b, struct err *err);
/* A file of one number; "max" and what v1 has for it are UINT64_MAX. */
int cgroup_read_u64(const struct cgroup_hierarchy *h, const char *file, uint64_t *ret, struct err *err);
/* Line "key N" of a file; false if there is none. */
bool cgroup_line_u64(str text, str key, uint64_t *ret);
/* A decimal number that fills s, or "max". */
bool cgroup_parse_u64(str s, uint64_t *ret);

/* Into the cgroup below c that the oldest process of c is in. */
int cgroup_add_beside(struct cgroup *c, const struct cgroup_hierarchy *h, pid_t pid, struct err *err);

/* What an integer member of linux.resources is: false if it is absent. Out of [min, max], or no integer: -ERR_INVALID in *ret_r. */
bool cgroup_int(struct val v, const char *name, int64_t min, int64_t max, int64_t *ret, int *ret_r, struct err *err);

/* linux.resources, without devices. */
int cgroup_v1_limit(struct cgroup *c, struct val resources, struct err *err);
int cgroup_v2_limit(struct cgroup *c, struct val resources, struct err *err);
/* Members that are the same in both: the folder and the file's name differ. */
int cgroup_limit_pids(const struct cgroup *c, struct val pids, struct err *err);
int cgroup_limit_rdma(const struct cgroup *c, struct val rdma, struct err *err);
int cgroup_limit_hugepages(const struct cgroup *c, struct val limits, const char *suffix, struct err *err);
/* A list of devices with rates: lines "major:minor keyrate". */
int cgroup_limit_throttle(const struct cgroup_hierarchy *h, struct val list, const char *file, const char *key, struct err *err);

/* One of blockIO.weightDevice; weights that are not there are 0. */
struct cgroup_device {
	unsigned major, minor, weight, leaf_weight;
};
int cgroup_device_of(struct val v, struct cgroup_device *ret, struct err *err);

/* v1: gives an empty cpuset at fd the processors and memory nodes of the one above it, parent. */
int cgroup_v1_inherit_cpuset(int parent, int fd, const char *dir, struct err *err);
/* v2: lets the cgroups below the folder fd have all controllers that it has. What cannot be is left out. */
void cgroup_v2_enable(int fd);

/* How v1's values of 2 .. 262144 (0: none) and 10 .. 1000 are told to v2. */
uint64_t cgroup_weight_of_shares(uint64_t shares);
uint64_t cgroup_io_weight(uint64_t blkio_weight);
/* swap and limit as config.json has them (memory and swap together; -1: no limit, 0: absent); *ret -1: no limit, -2: leave it. */
int cgroup_v2_swap(int64_t swap, int64_t limit, int64_t *ret, struct err *err);

/* ---- devices ---- */

enum { CGROUP_DEVICE_MKNOD = 1, CGROUP_DEVICE_READ = 2, CGROUP_DEVICE_WRITE = 4, CGROUP_DEVICE_ALL = 7 };

struct cgroup_device_rule {
	char type;              /* 'a', 'b' or 'c' */
	bool allow;
	uint8_t access;         /* CGROUP_DEVICE_* */
	int64_t major, minor;   /* -1: any */
};

/* Those of config.json followed by the defaults, which every container has. In the arena. */
int cgroup_device_rules(struct arena *a, struct val rules, struct cgroup_device_rule **ret, size_t *ret_n, struct err *err);

struct bpf_insn;
/* The program of BPF_PROG_TYPE_CGROUP_DEVICE that decides as the rules say, per kind of access the last rule that speaks of it. */
struct bpf_insn *cgroup_device_program(struct arena *a, const struct cgroup_device_rule *rules, size_t n, size_t *ret_n);
/* Attaches the program of these rules to the folder fd of a v2 hierarchy, in place of what is attached to it. */
int cgroup_v2_devices(int fd, const struct cgroup_device_rule *rules, size_t n, struct err *err);
int cgroup_v1_devices(const struct cgroup_hierarchy *h, const struct cgroup_device_rule *rules, size_t n, struct err *err);

#endif
