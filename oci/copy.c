#include "oci/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/mem.h"
#include "base/str.h"
#include "oci/oci_priv.h"

/* Each level has its descriptors open. */
enum { DEPTH_MAX = 128, PIECE = 1 << 20, FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static int copy_folder(int from, int to, unsigned depth, struct err *err);

/* Files may have terabytes of holes. False: errno says why. */
static bool copy_content(int in, int out, off_t size)
{
	off_t at = 0, end;

	if (ftruncate(out, size) < 0)
		return false;
	while (at < size && (at = lseek(in, at, SEEK_DATA)) >= 0) {
		if ((end = lseek(in, at, SEEK_HOLE)) < 0 || lseek(in, at, SEEK_SET) < 0 || lseek(out, at, SEEK_SET) < 0)
			return false;
		while (at < end) {
			ssize_t n = sendfile(out, in, NULL, (size_t)MIN(end - at, (off_t)PIECE));
			if (n <= 0)
				return n == 0; /* it has become shorter */
			at += n;
		}
	}
	return at >= 0 || errno == ENXIO;
}

static int copy_file(int from, int to, const char *name, struct err *err)
{
	CLEANUP(fd_closep) int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	CLEANUP(fd_closep) int out = in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (out < 0 || fstat(in, &st) < 0 || !copy_content(in, out, st.st_size) || fchown(out, st.st_uid, st.st_gid) < 0 ||
	    fchmod(out, st.st_mode & 07777) < 0)
		return err_sys(err, errno, "%s", name);
	return 0;
}

static int copy_link(int from, int to, const char *name, const struct stat *st, struct err *err)
{
	CLEANUP(mem_freep) char *target = mem_alloc(PATH_MAX + 1);
	ssize_t n = readlinkat(from, name, target, PATH_MAX);

	if (n < 0)
		return err_sys(err, errno, "%s", name);
	target[n] = '\0';
	if (symlinkat(target, to, name) < 0 || fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "%s", name);
	return 0;
}

static int copy_sub_folder(int from, int to, const char *name, unsigned depth, struct err *err)
{
	if (mkdirat(to, name, 0700) < 0)
		return err_sys(err, errno, "%s", name);
	CLEANUP(fd_closep) int in = openat(from, name, FOLDER);
	CLEANUP(fd_closep) int out = in < 0 ? -1 : openat(to, name, FOLDER);
	return out < 0 ? err_sys(err, errno, "%s", name) : copy_folder(in, out, depth + 1, err);
}

static int copy_entry(int from, int to, const char *name, unsigned depth, struct err *err)
{
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "%s", name);
	switch (st.st_mode & S_IFMT) {
	case S_IFDIR: return copy_sub_folder(from, to, name, depth, err);
	case S_IFREG: return copy_file(from, to, name, err);
	case S_IFLNK: return copy_link(from, to, name, &st, err);
	case S_IFSOCK: return 0;
	default: break;
	}
	if (mknodat(to, name, st.st_mode, st.st_rdev) < 0 || fchownat(to, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(to, name, st.st_mode & 07777, 0) < 0)
		return err_sys(err, errno, "%s", name);
	return 0;
}

static int copy_folder(int from, int to, unsigned depth, struct err *err)
{
	struct dirent *e;
	struct stat st;
	int r = 0;

	if (depth > DEPTH_MAX)
		return err_set(err, ERR_TOO_LARGE, "folders are more than %d deep", DEPTH_MAX);
	int again = dup(from);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	if (!dir) {
		r = err_sys(err, errno, "a folder");
		fd_closep(&again);
		return r;
	}
	while (r == 0 && (e = readdir(dir)))
		if (!str_eq(str_of(e->d_name), STR(".")) && !str_eq(str_of(e->d_name), STR("..")))
			r = copy_entry(from, to, e->d_name, depth, err);
	closedir(dir);
	if (r == 0 && (fstat(from, &st) < 0 || fchown(to, st.st_uid, st.st_gid) < 0 || fchmod(to, st.st_mode & 07777) < 0))
		r = err_sys(err, errno, "a folder");
	return r;
}

int copy_tree(int from, int to, struct err *err)
{
	CLEANUP(fd_closep) int in = openat(from, ".", FOLDER);
	CLEANUP(fd_closep) int out = in < 0 ? -1 : openat(to, ".", FOLDER);
	int r = out < 0 ? err_sys(err, errno, "a folder") : copy_folder(in, out, 0, err);

	return r < 0 ? err_wrap(err, r, "copying") : 0;
}
