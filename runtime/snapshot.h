/*
 * snapshot: root file systems of containers, made of image layers that are unpacked once and shared. overlayfs; where there is none,
 * copies.
 *
 * On disk, under the folder:
 *	layers/<chain id>/fs             an unpacked layer (of an overlay), complete: it was renamed into place
 *	layers/<chain id>/n              a number, its short name in mount options: l/<n> links to fs
 *	mounts/<key>/{upper,work,root}   what one container writes, and where it is mounted
 */
#ifndef C8S_RUNTIME_SNAPSHOT_H
#define C8S_RUNTIME_SNAPSHOT_H

#include "runtime/image.h"

struct snapshots;

/* Opens it, removes what a crash left; finds out whether overlayfs works here. */
int snapshots_open(const char *root, struct snapshots **ret, struct err *err);
void snapshots_free(struct snapshots *s); /* NULL is fine */

/* (suspends) Unpacks what layers of the image are not there yet (in the thread pool; verified against its diff ids). */
int snapshot_unpack(struct snapshots *s, struct images *m, const struct image *image, struct err *err);
/*
 * (suspends) Mounts a root for `key` (a container's id): where, in the arena. Again for the same key: the same. read_only: without
 * an upper layer. labels of SELinux are none of its business.
 */
int snapshot_mount(struct snapshots *s, str key, const struct image *image, struct arena *a, const char **ret_root, struct err *err);
/* (suspends) Unmounts and removes what was written; fine when there is none. */
int snapshot_remove(struct snapshots *s, str key, struct err *err);
/* (suspends) Bytes and inodes that a container has written. */
int snapshot_usage(struct snapshots *s, str key, uint64_t *ret_bytes, uint64_t *ret_inodes, struct err *err);
/* (suspends) Removes layers that no image and no mount needs. */
int snapshots_collect(struct snapshots *s, struct images *m, struct err *err);

/* Unpacks one layer (gzip, zstd or plain tar) into an empty folder; blocking, for the thread pool and for tests. */
struct layer_result {
	char diff_id[72];             /* "sha256:<hex>" of the plain tar */
	uint64_t bytes, files;
};
int layer_unpack(const char *blob, const char *into, bool overlay, struct layer_result *ret, struct err *err);

#endif
