/*
 * oci/: an OCI runtime (runtime-spec 1.2): a bundle's config.json becomes a process in its box. Linked into c8s-pod, which is
 * static and has one thread; nothing here suspends or knows of fibers. Two users: the command line (`c8s runc`, oci_main), and the
 * pod monitor, which calls oci_create and the rest as a library.
 *
 *	cli.h          the OCI command line                 spec.h      config.json, read and checked
 *	container.c    create, start, state, delete         state.h     state.json of a container, under --root
 *	init.c         all between clone3 and execve, in the order of the story
 *	sync.h         what parent and child tell each other, failures with their step and errno; attend.h: the parent's half
 *	namespaces.c   new and joined ones, id maps         rootfs.c    mounts, pivot_root; mount.h: one mount safely; copy.h
 *	devices.c      /dev                                 process.c   user, groups, capabilities, rlimits, labels
 *	cgroup.h       cgroups, v1 and v2                   seccomp.c   the filter
 *	exec.c         one more process in a container      hooks.c     programs at six moments
 *	terminal.c     a pty and its way to who wants it    self.h      running from where nobody can write
 */
#ifndef C8S_OCI_OCI_H
#define C8S_OCI_OCI_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/val.h"

/* The command line of runc: argv[0] is "runc". Exit code. */
int oci_main(int argc, char **argv);

enum oci_status { OCI_CREATING, OCI_CREATED, OCI_RUNNING, OCI_STOPPED, OCI_PAUSED };

struct oci_create_options {
	const char *root;             /* where states are kept: a folder of ours, mode 0700 */
	const char *id, *bundle;
	int console_socket;           /* where the master of the terminal is sent; -1: none */
	int stdio[3];                 /* the container's 0, 1, 2 when it has no terminal */
	int preserve_fds;             /* descriptors 3 .. 2+n are passed on */
	const char *pid_file;         /* NULL: none */
	bool no_pivot, no_new_keyring;
};

/* Makes a container: its first process waits for oci_start. It is a child of the caller (who waits for it). */
int oci_create(const struct oci_create_options *o, pid_t *ret_pid, struct err *err);
int oci_start(const char *root, const char *id, struct err *err);

struct oci_exec_options {
	const char *root, *id;
	struct val process;           /* the "process" object of config.json */
	int console_socket, stdio[3], preserve_fds;
	const char *pid_file;
	bool ignore_paused;           /* else a paused container refuses */
};

/* One more process in a container; a child of the caller. */
int oci_exec(const struct oci_exec_options *o, pid_t *ret_pid, struct err *err);

/* all: every process of its cgroup. -ERR_NOT_FOUND: no such container; -ERR_CONFLICT: it does not run. */
int oci_kill(const char *root, const char *id, int signal, bool all, struct err *err);
/* Cgroups, state and what is left of it; force: it may still run. */
int oci_delete(const char *root, const char *id, bool force, struct err *err);

struct oci_state {
	enum oci_status status;
	pid_t pid;                    /* 0: none */
	str bundle, created;          /* in the arena */
	struct val annotations;
};

int oci_state(const char *root, const char *id, struct arena *a, struct oci_state *ret, struct err *err);
int oci_pause(const char *root, const char *id, bool pause, struct err *err);
/* resources: the "linux.resources" object, only what is to change. */
int oci_update(const char *root, const char *id, struct val resources, struct err *err);

#endif
