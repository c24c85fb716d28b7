/*
 * Mounts, and the end of a pod's volumes. Nothing is known but the folder: what is mounted below it is in mountinfo, whoever has mounted it, also
 * containers with bidirectional propagation. Only when nothing is mounted there any more the folder is removed, and path_remove
 * would stop at a mount: the content of a PersistentVolume cannot go with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "kubelet/volume_priv.h"

enum { MOUNTINFO_MAX = 256 << 20, ROUNDS_MAX = 32 };

bool volume_is_mounted(const char *path)
{
	struct statx st;

	/* Without asking a server that may be away. */
	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

int volume_bind(int fd, const char *target, bool readonly, struct err *err)
{
	CLEANUP(volume_close) int mounted = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	if (mounted < 0 || (readonly && mount_setattr(mounted, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0) ||
	    move_mount(mounted, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return volume_fail(err, errno, "mount", target);
	return 0;
}

int volume_unmount(const char *path, struct err *err)
{
	if (umount2(path, UMOUNT_NOFOLLOW) == 0 || errno == EINVAL || errno == ENOENT)
		return 0;
	/* Somebody still looks into it: the mount goes when they have done. A server that does not answer is not waited for. */
	if (umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) == 0)
		return 0;
	return volume_fail(err, errno, "unmount", path);
}

/* ---- mountinfo ---- */

static bool is_octal(char c) { return c >= '0' && c <= '7'; }

/* The text with \040 and the like as what they stand for. */
static const char *unescape(struct arena *a, str s)
{
	char *out = arena_alloc(a, s.n + 1, 1);
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '\\' && i + 3 < s.n && is_octal(s.p[i + 1]) && is_octal(s.p[i + 2]) && is_octal(s.p[i + 3])) {
			out[n++] = (char)((s.p[i + 1] - '0') << 6 | (s.p[i + 2] - '0') << 3 | (s.p[i + 3] - '0'));
			i += 3;
		} else {
			out[n++] = s.p[i];
		}
	out[n] = '\0';
	return out;
}

/* The fifth word of a line. */
static str mount_point(str line)
{
	str word = STR_NONE;

	for (int i = 0; i < 5; i++)
		(void)str_cut(line, ' ', &word, &line);
	return word;
}

/* Takes away everything that is mounted below the folder, the newest first; how many there were. */
static int unmount_below(struct arena *a, const char *folder, struct err *err)
{
	CLEANUP(buf_done) struct buf info = BUF_INIT(MOUNTINFO_MAX);
	str prefix = arena_printf(a, "%s/", folder), rest, line;
	const char **points = NULL;
	size_t n = 0, cap = 0;
	int r = file_read("/proc/thread-self/mountinfo", &info, err);

	if (r < 0)
		return r;
	for (rest = buf_str(&info); rest.n;) {
		(void)str_cut(rest, '\n', &line, &rest);
		const char *point = unescape(a, mount_point(line));
		if (!str_starts(str_of(point), prefix))
			continue;
		if (n == cap) {
			const char **more = ARENA_ARRAY(a, const char *, cap = cap ? 2 * cap : 16);
			if (n)
				memcpy(more, points, n * sizeof *more);
			points = more;
		}
		points[n++] = point;
	}
	for (size_t i = n; i-- > 0 && r == 0;)
		r = volume_unmount(points[i], err);
	return r < 0 ? r : n > 0;
}

int volume_remove_pod(const char *root, const char *uid, struct err *err)
{
	struct arena a = ARENA_INIT;
	const char *pods = arena_printf(&a, "%s/pods", root).p, *folder = arena_printf(&a, "%s/%s", pods, uid).p;
	int r = 1;

	/* Again and again: taking one away may show another that it was mounted over. */
	for (int round = 0; r == 1 && round < ROUNDS_MAX; round++)
		r = unmount_below(&a, folder, err);
	if (r == 1)
		r = err_set(err, ERR_SYSTEM, "%s: something is mounted there again and again", folder);
	if (r == 0) {
		CLEANUP(volume_close) int tree = path_open_tree(pods, err);
		r = tree < 0 ? tree : path_remove(tree, uid, err);
	}
	arena_done(&a);
	return r == -ERR_NOT_FOUND ? 0 : r;
}
