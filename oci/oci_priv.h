/* Between the files of oci/: the steps that init.c puts in order. Each returns 0 or an error that names what failed. */
#ifndef C8S_OCI_OCI_PRIV_H
#define C8S_OCI_OCI_PRIV_H

#include <sys/types.h>
#include <unistd.h>

#include "base/file.h"
#include "oci/cgroup.h"
#include "oci/mount.h"
#include "oci/oci.h"
#include "oci/seccomp.h"
#include "oci/spec.h"

/* ---- namespaces.c ---- */

/* Those to be joined, by their paths: ret_fd[kind] or -1. The caller closes them. */
int namespaces_open(const struct spec *s, int ret_fd[NS_KINDS], struct err *err);
/* Those of a running process that differ from ours. */
int namespaces_open_of(pid_t pid, int ret_fd[NS_KINDS], struct err *err);
void namespaces_close(int fd[NS_KINDS]);
/* setns into all of them; user last. */
int namespaces_join(const int fd[NS_KINDS], struct err *err);
/* CLONE_NEW* of those that clone3 makes; those of cgroup and time come later and earlier. */
unsigned namespaces_new(const struct spec *s);
/* A new time namespace for our children, with its offsets. */
int namespaces_make_time(const struct spec *s, struct err *err);
/* Outside: the maps of a new user namespace. */
int namespaces_write_maps(pid_t pid, struct val uid_maps, struct val gid_maps, struct err *err);
/* A descriptor of a user namespace with these maps and nobody in it. */
int namespaces_mapped(struct val uid_maps, struct val gid_maps, struct err *err);
/* Inside: hostname, domain name, loopback, sysctls; sysctls are written through the proc of outside. */
int namespaces_set_names(const struct spec *s, struct err *err);
int namespaces_loopback_up(struct err *err);
int namespaces_check_sysctls(const struct spec *s, struct err *err);
int namespaces_set_sysctls(const struct spec *s, struct err *err);

/* clone3 as fork: 0 in the child. -1 and errno. */
pid_t process_clone(uint64_t flags);
/* The same into a cgroup of v2; -1: into ours. */
pid_t process_clone_into(uint64_t flags, int cgroup);

/* ---- rootfs.c ---- */

struct rootfs {
	const struct spec *spec;
	int tree;                    /* the root: detached at first, then mounted over / */
	struct mount *mounts;
	size_t mounts_n;
	int *cgroups;                /* detached trees of our cgroup, for mounts of type cgroup; as in cgroup->hierarchies */
	const struct cgroup *cgroup;
	unsigned long propagation;   /* linux.rootfsPropagation; 0: none is asked for */
	const char *label;           /* linux.mountLabel; NULL: none */
	bool no_pivot;
};

/* Outside: reads the mounts and opens what they show. */
int rootfs_open(struct rootfs *r, const struct spec *s, const struct cgroup *c, struct arena *a, struct err *err);
void rootfs_close(struct rootfs *r);
/* Inside, in this order. */
int rootfs_mount(struct rootfs *r, struct err *err);
/* A folder in it, with those above it, while that can be written to. */
int rootfs_make_folder(struct rootfs *r, const char *path, struct err *err);
int rootfs_protect(struct rootfs *r, struct err *err);
int rootfs_enter(struct rootfs *r, struct err *err);

/* ---- devices.c ---- */

int devices_make(int root, const struct spec *s, struct err *err);
/* A descriptor of /dev/null in our mount namespace, which is it and not something else. */
int devices_open_null(struct err *err);

/* ---- process.c ---- */

bool process_has_selinux(void);
/* Checks what the kernel must have: AppArmor, SELinux. */
int process_check(const struct process *p, struct err *err);
/* Opens the file that takes the label of what is executed, while /proc is there: *ret_fd, -1 if there is none to write. */
int process_open_label(const struct process *p, int *ret_fd, struct err *err);
int process_set_label(const struct process *p, int fd, struct err *err);
int process_set_limits(const struct process *p, struct err *err);
int process_set_schedule(const struct process *p, struct err *err);
int process_set_personality(struct val personality, struct err *err);
int process_new_keyring(const char *name, struct err *err);
/* stdio for its user; groups, ids, capabilities, umask. */
int process_set_identity(const struct process *p, struct err *err);
/* Inside: HOME, if it is not set, by the container's /etc/passwd. */
void process_set_home(struct process *p, struct arena *a);
int process_enter_cwd(const struct process *p, struct err *err);
/* The program that args[0] is, by PATH of its own environment. */
int process_find_program(const struct process *p, struct arena *a, const char **ret, struct err *err);
/* Outside: of the process, by its pid. */
int process_set_oom_score(pid_t pid, struct val process, struct err *err);

/* Puts stdio at 0, 1, 2 (-1: /dev/null). */
int process_set_stdio(const int stdio[3], struct err *err);
/* Closes all but 0 .. 2+preserve and the kept ones, which get the numbers after that. */
int process_close_others(int preserve, int *const kept[], size_t n, struct err *err);

/* ---- terminal.c ---- */

/* A new terminal from the devpts of root: the slave is made ours and is 0, 1, 2; console: it is mounted at /dev/console too. */
int terminal_make(int root, const struct process *p, bool console, int *ret_master, struct err *err);
/* The master to who waits for it at the other end of socket. */
int terminal_send(int socket, int master, struct err *err);

/* ---- hooks.c ---- */

/* Runs hooks.<kind>, one after the other, with state (JSON) on their stdin; the first that fails ends it. */
int hooks_run(struct val hooks, atom kind, str state, struct err *err);

/* ---- init.c ---- */

struct state;

/* All that the process needs to become what it shall be. It is a copy of the runtime: this is shared by clone, not sent. */
struct init {
	const struct spec *spec;     /* NULL: exec */
	struct process *process;
	struct rootfs *rootfs;
	struct seccomp *seccomp;     /* NULL: no filter */
	const struct state *state;
	struct cgroup *cgroup;       /* cgroup_join_prepare was called */
	struct arena *arena;
	struct val hooks, personality;
	const char *id;
	int join[NS_KINDS];          /* namespaces to be joined, or -1 */
	int sync;                    /* its end of the pair */
	int start;                   /* a listening socket: who connects wants us to start; -1: at once */
	int stdio[3], preserve_fds;
	bool no_new_keyring;
	/* What it finds out on its way. */
	pid_t pid;                   /* as it is outside */
	int label;
	bool new_user, in_cwd;
	const char *program;
};

/* clone3 and, in the child, all after it. *ret_pid is our child: it asks over parent_sync, beginning with SYNC_PLACE. */
int init_clone(struct init *i, int parent_sync, pid_t *ret_pid, struct err *err);

#endif
