/*
 * volumeDevices: PersistentVolumes that containers get as block devices. Only local ones can be had so, as in Kubernetes (CSI aside). The
 * device is named by a link below the pod's volumeDevices, where Kubernetes has it; the runtime resolves it.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "kubelet/volume_priv.h"

/* In the thread pool. */
static int set_up_block(struct volume_setup *s, struct err *err)
{
	const char *source = arena_str(s->arena, val_str(s->source, path)).p, *link = s->volume->path, *slash = strrchr(link, '/');
	CLEANUP(mem_freep) char *found = realpath(source, NULL);
	struct stat st;

	s->failed = "MapVolume.EvalHostSymlinks failed";
	if (!found || stat(found, &st) < 0)
		return volume_fail(err, errno, "lstat", source);
	s->failed = "MapVolume.MapBlockVolume failed";
	if (!S_ISBLK(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is not a block device", found);
	size_t want = strlen(found);
	CLEANUP(mem_freep) char *old = mem_alloc(want + 1);
	ssize_t n = readlink(link, old, want + 1);
	if (n == (ssize_t)want && memcmp(old, found, want) == 0)
		return 0;
	int r = file_make_dirs(arena_str(s->arena, str_span(link, (size_t)(slash - link))).p, 0750, err);
	if (r < 0)
		return r;
	if ((n >= 0 && unlink(link) < 0) || symlink(found, link) < 0)
		return volume_fail(err, errno, "symlink", link);
	return 0;
}

const struct volume_kind volume_kind_local_block = { .folder = "kubernetes.io~local-volume", .device = true, .shared = true,
						     .set_up = set_up_block };
