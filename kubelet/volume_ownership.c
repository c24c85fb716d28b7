/*
 * fsGroup: everything in the volume gets the group, which may read (and write) it; new files in its folders get it by setgid. As
 * Kubernetes does it, but by descriptors: other pods may write to the volume at the same time, and a link that takes a file's place must
 * not have its target changed.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/path.h"
#include "kubelet/volume_priv.h"

enum { GROUP_RW = 0660, GROUP_RO = 0440, GROUP_ENTER = 0110 };

static mode_t wanted_mode(const struct volume_setup *s, bool folder)
{
	mode_t mode = s->volume->readonly || s->volume->kind->readonly ? GROUP_RO : GROUP_RW;
	return folder ? mode | GROUP_ENTER | S_ISGID : mode;
}

/* What cannot be changed is left as it is: the pod will tell what it cannot read. */
static int own_one(void *arg, int fd, const char *name, const struct stat *st)
{
	const struct volume_setup *s = arg;
	CLEANUP(volume_close) int file = -1;
	char text[PATH_FD_TEXT];
	struct stat now;

	if (name) {
		file = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (file < 0 || fstat(file, &now) < 0)
			return 0;
		st = &now;
		fd = file;
	}
	/* The mode afterwards: a change of group takes setuid and setgid away from files. */
	(void)!fchownat(fd, "", (uid_t)-1, (gid_t)s->fs_group, AT_EMPTY_PATH);
	if (!S_ISLNK(st->st_mode))
		(void)chmod(path_of_fd(fd, text), (st->st_mode & 07777) | wanted_mode(s, S_ISDIR(st->st_mode)));
	return 0;
}

static bool root_matches(const struct volume_setup *s, int top)
{
	mode_t want = wanted_mode(s, true);
	struct stat st;

	return fstat(top, &st) == 0 && S_ISDIR(st.st_mode) && (int64_t)st.st_gid == s->fs_group && (st.st_mode & want) == want;
}

int volume_own(struct volume_setup *s, struct err *err)
{
	if (s->fs_group < 0)
		return 0;
	CLEANUP(volume_close) int top = path_open_tree(s->volume->path, err);
	if (top < 0)
		return top;
	if (s->on_root_mismatch && root_matches(s, top))
		return 0;
	return volume_walk(top, own_one, s, err);
}
