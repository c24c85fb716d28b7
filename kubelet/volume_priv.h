/*
 * What the files behind volume.h have in common.
 *
 *	volume.c             the volumes of pods: which there are, setting up, refreshing, mounts of containers
 *	volume_empty_dir.c   emptyDir; also what the others have below them
 *	volume_host_path.c   hostPath, image, csi: what needs no folder
 *	volume_content.c     configMap, secret, downwardAPI, projected: files that follow objects
 *	volume_token.c       service account tokens
 *	volume_persistent.c  from claims to PersistentVolumes; local and nfs
 *	volume_block.c       volumeDevices
 *	volume_format.c      disks that are to be mounted: formatted if empty, else checked
 *	volume_atomic.c      writing a set of files at once
 *	volume_ownership.c   fsGroup
 *	volume_sub_path.c    subPath
 *	volume_remove.c      unmounting and removing
 *	volume_walk.c        through a tree that others change meanwhile; usage
 *	volume_remote.c      usage of what is on another machine
 *
 * A volume is set up in two steps: `prepare` runs on the fiber and asks for other objects, `set_up` runs in the thread pool and makes
 * folders and mounts.
 */
#ifndef C8S_KUBELET_VOLUME_PRIV_H
#define C8S_KUBELET_VOLUME_PRIV_H

#include <sys/stat.h>

#include "base/fiber.h"
#include "base/map.h"
#include "base/process.h"
#include "kubelet/volume.h"

struct volume_setup;

struct volume_kind {
	const char *folder;              /* below the pod's volumes; NULL: it has none */
	bool managed;                    /* the content is the kubelet's: fsGroup and labels apply */
	bool readonly;                   /* for containers, always */
	bool content;                    /* follows other objects */
	bool shared;                     /* the content outlives the pod: usage is that of its file system */
	bool remote;                     /* it is on another machine, which may not answer */
	bool device;                     /* for containers it is a block device: below the pod's volumeDevices */
	bool mount_options;              /* a PersistentVolume of this kind may have some */
	int (*prepare)(struct volume_setup *s, struct err *err); /* (suspends) NULL: nothing to do */
	int (*set_up)(struct volume_setup *s, struct err *err);  /* in the thread pool; NULL: nothing to do */
};

/* A volume that is ready; lives with its pod. */
struct volume {
	struct volume *next;
	const struct volume_kind *kind;
	str name;                        /* in the pod's spec */
	str inner;                       /* in messages and of its folder: the same, or the PersistentVolume's */
	const char *path;                /* on the node; NULL: none */
	bool readonly;
	bool persistent;
	int64_t group;                   /* that the PersistentVolume asks for; -1: none */
	struct val image;                /* ImageSpec; VAL_NONE: none */
};

/* A file that is to be in a volume. */
struct volume_file {
	str path, data;
	mode_t mode;
	int64_t uid;                     /* -1: ours */
};

struct volume_files {
	struct arena *arena;
	struct volume_file *files;
	size_t n, cap;
};

struct volume_setup {
	struct volumes *all;
	struct arena *arena;
	struct val pod;
	struct val source;               /* the member of the volume, or of the PersistentVolume's spec, that its kind is from */
	struct val persistent;           /* VAL_NONE: none */
	struct volume *volume;
	const char *pod_folder;
	const char *failed;              /* what an error of this step is called */
	int64_t fs_group, fs_user;       /* -1: none */
	int64_t node_memory;             /* that pods can have; 0: not known */
	bool on_root_mismatch;           /* fsGroupChangePolicy */
	bool first;                      /* no other pod has this PersistentVolume */
	bool fresh;                      /* it was mounted just now */
	struct volume_files content;
};

extern const struct volume_kind volume_kind_config_map, volume_kind_csi, volume_kind_downward, volume_kind_empty_dir,
	volume_kind_host_path, volume_kind_image, volume_kind_local, volume_kind_local_block, volume_kind_nfs, volume_kind_projected,
	volume_kind_secret;

/* ---- volume.c ---- */

const struct volumes_options *volumes_options(const struct volumes *v);
/* Tokens by key: volume_token.c's. */
struct map *volumes_tokens(struct volumes *v);
/* <root>/pods/<uid>, terminated. */
const char *volumes_pod_folder(const struct volumes *v, struct arena *a, str uid);
/* Whether a pod other than this one has the PersistentVolume. */
bool volumes_used_elsewhere(const struct volumes *v, str uid, str persistent);
/* A warning about a pod. */
void volumes_event(const struct volumes *v, struct val pod, const char *reason, str message);
/* A name that stays in the folder it is put into. */
bool volume_name_ok(str name);
/* As Go words a failed call: mkdir /x: permission denied. */
int volume_fail(struct err *err, int sys, const char *call, const char *path);
/* The pod's volume folder, with what is above it; exactly this mode if it is made. */
int volume_make_folder(const struct volume_setup *s, mode_t mode, struct err *err);
void volume_close(int *fd);              /* for CLEANUP */

/* ---- volume_persistent.c ---- */

/*
 * (suspends) The PersistentVolume behind a persistentVolumeClaim or ephemeral volume, and whether the claim is used read-only.
 * mounted, device: how containers use the volume.
 */
int volume_claim_resolve(struct volumes *v, struct arena *a, struct val pod, struct val volume, bool mounted, bool device,
			 struct val *ret_persistent, bool *ret_readonly, struct err *err);

/* ---- volume_format.c ---- */

/* (suspends) Makes a disk ready to be mounted as a file system of this type: an empty one is formatted, another is checked. */
int volume_format(struct volume_setup *s, const char *type, const char *disk, struct err *err);
/* As Go says how a program has ended. */
const char *volume_exit_text(struct arena *a, struct process_status status);

/* ---- volume_content.c, volume_token.c ---- */

void volume_files_add(struct volume_files *f, str path, str data, mode_t mode, int64_t uid);
/* (suspends) The token for a ServiceAccountTokenProjection: one of before while it is good, else a new one. */
int volume_token(struct volumes *v, struct arena *a, struct val pod, struct val source, str *ret, struct err *err);
/* A pod is gone ("": all). */
void volume_tokens_forget(struct volumes *v, str pod_uid);

/* ---- volume_empty_dir.c: in the thread pool ---- */

/* A folder, or a tmpfs that counts as the pod's memory; also for volumes of content. */
int volume_make_disk(struct volume_setup *s, struct err *err);
int volume_make_memory(struct volume_setup *s, struct val size_limit, struct err *err);
/* Folders for what other volumes of the pod mount inside this one. */
int volume_make_nested(struct volume_setup *s, struct err *err);

/* ---- volume_atomic.c: in the thread pool ---- */

/*
 * The folder shows exactly these files: each by a link into ..data, which is a link to a folder that is never changed, only replaced.
 * own (may be NULL) is called when all is written, before anybody can see it. Files are sorted; of those with one path the last counts.
 */
int volume_atomic_write(const char *folder, struct volume_files *files, int (*own)(void *arg, struct err *err), void *arg,
			struct err *err);

/* ---- volume_ownership.c: in the thread pool ---- */

/* Gives the volume to the group of the pod's fsGroup, if it has one. */
int volume_own(struct volume_setup *s, struct err *err);

/* ---- volume_sub_path.c: in the thread pool ---- */

/* What subPath names in the volume, mounted where only the kubelet can change names. */
int volume_sub_path(struct arena *a, const char *pod_folder, const struct volume *v, str container, size_t index, str sub_path,
		    const char **ret_path, struct err *err);
/* subPath or subPathExpr of a volumeMount, checked; "" when there is none. */
int volume_sub_path_text(struct arena *a, struct val mount, struct val env, str *ret, struct err *err);

/* ---- volume_remove.c: in the thread pool ---- */

/* Whether something is mounted at path itself; false also when there is nothing. */
bool volume_is_mounted(const char *path);
/* Mounts what the descriptor stands for, without what is mounted below it. */
int volume_bind(int fd, const char *target, bool readonly, struct err *err);
/* Takes away what is mounted at path. */
int volume_unmount(const char *path, struct err *err);
/* <root>/pods/<uid> with all that is mounted in it. */
int volume_remove_pod(const char *root, const char *uid, struct err *err);

/* ---- volume_walk.c: in the thread pool ---- */

/*
 * Everything below the folder top on its file system: files by their folder's descriptor and name, folders after what is in them
 * (top as the last) by their own descriptor and NULL. st is from before the call. Whoever renames meanwhile can hide things from the
 * walk, but not lead it out of the tree.
 */
int volume_walk(int top, int (*visit)(void *arg, int fd, const char *name, const struct stat *st), void *arg, struct err *err);
/* What is used, and what its file system has. */
struct volume_size {
	int64_t bytes, inodes;
	int64_t capacity, available, all_inodes, free_inodes;
};
typedef int volume_measure(const struct volume *v, struct volume_size *ret, struct err *err);
volume_measure volume_usage;

/* ---- volume_remote.c ---- */

struct volume_remote;
struct volume_remote *volume_remote_new(void) NONNULL_RESULT;
void volume_remote_free(struct volume_remote *m);
/* (suspends) As measure, volume_usage, does it in a thread; -ERR_UNAVAILABLE when it takes long, here or at an earlier call. */
int volume_remote_usage(struct volume_remote *m, volume_measure *measure, const struct volume *v, struct volume_size *ret, struct err *err);

#endif
