/*
 * snapshot: root file systems of containers, made of image layers that are unpacked once and shared. overlayfs; where there is none,
 * copies.
 *
 * On disk, under the folder; what is called <id> is a chain id, without "sha256:":
 *	layers/<id>/fs                   an unpacked layer (of an overlay), complete: it was synced and renamed into place
 *	layers/<id>/n                    a number, its short name in mount options: l/<n> links to fs
 *	trees/<id>/fs                    without overlayfs: all layers up to that one, applied
 *	mounts/<key>/{upper,work,root}   what one container writes, and where it is mounted; a copy is in root itself
 *	mounts/<key>/layers              what it is made of: ids, lowest first, or "copy" and one id
 *	tmp/                             what is being made or removed; emptied when it is opened
 * A folder below mounts/ gets its name when it is complete, before anything is mounted there, and loses it after it was unmounted.
 *
 * After a crash mounts are still there, and containers run on in them: snapshots_open leaves everything below mounts/ alone. Whoever
 * knows which containers there are says so with snapshots_keep.
 */
#ifndef C8S_RUNTIME_SNAPSHOT_H
#define C8S_RUNTIME_SNAPSHOT_H

#include "runtime/image.h"

struct snapshots;

/* Opens it, removes what a crash left; finds out whether overlayfs works here. */
int snapshots_open(const char *root, struct snapshots **ret, struct err *err);
void snapshots_free(struct snapshots *s); /* NULL is fine */

/*
 * (suspends) Unpacks what layers of the image are not there yet (in the thread pool, several at a time; verified against its diff
 * ids). -ERR_INVALID: a layer is damaged, or not what the image says; -ERR_TOO_LARGE; -ERR_SYSTEM, with ENOSPC for a full disk.
 */
int snapshot_unpack(struct snapshots *s, struct images *m, const struct image *image, struct err *err);
/*
 * (suspends) Mounts a root for `key` (a container's id): where, in the arena. Again for the same key: the same, also after a restart
 * or a reboot, and of the layers it had at first. label: SELinux' of all files in it; "": none.
 * -ERR_NOT_FOUND: the image is not unpacked.
 */
int snapshot_mount(struct snapshots *s, str key, const struct image *image, str label, struct arena *a, const char **ret_root,
		   struct err *err);
/* (suspends) Unmounts and removes what was written; fine when there is none. */
int snapshot_remove(struct snapshots *s, str key, struct err *err);
/* (suspends) Removes (as above) all but these; the first failure is returned after all were tried. */
int snapshots_keep(struct snapshots *s, const str *keys, size_t n, struct err *err);
/* (suspends) Bytes and inodes that a container has written. */
int snapshot_usage(struct snapshots *s, str key, uint64_t *ret_bytes, uint64_t *ret_inodes, struct err *err);
/* (suspends) Removes layers that no image and no mount needs. */
int snapshots_collect(struct snapshots *s, struct images *m, struct err *err);

/*
 * Unpacks one layer (a tar, plain or compressed) into a folder; blocking, for the thread pool and for tests. overlay: into an empty one, with
 * whiteouts in the form of overlayfs. Else the folder has what the lower layers say, and this one is laid over it. On an error the
 * folder's content is undefined.
 */
struct layer_result {
	char diff_id[72];             /* "sha256:<hex>" of the plain tar */
	uint64_t bytes, files;
};
int layer_unpack(const char *blob, const char *into, bool overlay, struct layer_result *ret, struct err *err);

#endif
