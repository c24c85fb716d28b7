/*
 * mount: one entry of "mounts", made safely. A mount is first made detached, with all its flags, and then put on a descriptor that
 * was found inside the root: there is no moment at which a name could lead elsewhere. What a bind shows is opened by the runtime,
 * outside, before there is a container: inside a user namespace it might not be reachable, and could not be id-mapped.
 */
#ifndef C8S_OCI_MOUNT_H
#define C8S_OCI_MOUNT_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/val.h"

enum { MOUNT_PROPAGATIONS_MAX = 8 };

struct mount {
	const char *destination, *type, *source;
	bool bind, recursive, remount, idmap, recursive_idmap;
	bool copy;                             /* a tmpfs begins with what was there */
	uint64_t set, clear;                   /* MOUNT_ATTR_* of the mount itself */
	uint64_t recursive_set, recursive_clear; /* and of all below it */
	unsigned long propagation[MOUNT_PROPAGATIONS_MAX]; /* MS_*, with MS_REC; in the order given */
	size_t propagations;
	str data;                              /* the file system's own options, with commas */
	struct val uid_maps, gid_maps;         /* for idmap */
	const char *label;                     /* SELinux', of a new file system; NULL: the policy's */
	int tree;                              /* detached; -1: not made yet. Later: what is mounted, while that must be kept */
	uint64_t id;                           /* of a bind, once it is mounted: as mount_id says */
};

int mount_read(struct val entry, struct arena *a, struct mount *ret, struct err *err);
/* Outside: opens what a bind shows. shared: keep it in the peer group of the original; else it only hears from it. */
int mount_open_source(struct mount *m, const char *bundle, bool shared, struct err *err);
/* Inside: makes the target in root (a descriptor of the mounted root) if it is missing, and mounts. */
int mount_attach(struct mount *m, int root, struct err *err);
/* After all: a tmpfs that shall be read-only had to be written to until now. */
int mount_finish(struct mount *m, struct err *err);

/* ---- parts, for the mounts that rootfs.c makes of itself ---- */

/* A detached clone of what fd is; flags: AT_RECURSIVE or 0. */
int mount_clone(int fd, unsigned flags, struct err *err);
/* A detached new file system; options with commas; label: SELinux' of all that is in it, or NULL. */
int mount_new(const char *type, const char *source, str options, const char *label, uint64_t set, struct err *err);
/* Puts a detached tree on a descriptor. */
int mount_put(int tree, int target, struct err *err);
int mount_set(int tree, uint64_t set, uint64_t clear, unsigned flags, struct err *err);
int mount_propagate(int tree, unsigned long propagation, struct err *err);
/* Nothing is mounted into /proc but the few files that lxcfs replaces, wherever links lead to. */
int mount_check_target(const struct mount *m, int target, struct err *err);
/* Which mount a descriptor is on; 0: the kernel does not say. */
uint64_t mount_id(int fd);
/* A file in root to mount on, made if it is missing; links are followed inside, also those that lead nowhere yet. O_PATH or O_WRONLY. */
int mount_make_file(int root, const char *path, struct err *err);

/* All options that are known, for `features`. */
struct val mount_options(struct arena *a);
/* MS_* | MS_REC of "rslave" and the like; 0: not known. */
unsigned long mount_propagation(str name);

#endif
