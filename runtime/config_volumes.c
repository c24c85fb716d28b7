/*
 * Volumes that an image declares: each is a folder of the container's, with what the image has at that place, and goes with the
 * container. Both sides are walked by descriptors, links are copied as links.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "runtime/config_json.h"

enum { DEPTH_MAX = 128, VOLUMES_MAX = 256, PIECE = 1 << 20 };

static int copy_folder(int from, int to, unsigned depth, struct err *err);

/* Holes stay holes: a file of an image may have terabytes of them. -1: errno says why. */
static int copy_content(int in, int out, off_t size)
{
	off_t at = 0, end;

	if (ftruncate(out, size) < 0)
		return -1;
	while (at < size && (at = lseek(in, at, SEEK_DATA)) >= 0) {
		if ((end = lseek(in, at, SEEK_HOLE)) < 0 || lseek(in, at, SEEK_SET) < 0 || lseek(out, at, SEEK_SET) < 0)
			return -1;
		while (at < end) {
			ssize_t n = sendfile(out, in, NULL, (size_t)MIN(end - at, (off_t)PIECE));
			if (n <= 0)
				return (int)n;
			at += n;
		}
	}
	return at < 0 && errno != ENXIO ? -1 : 0;
}

static int copy_file(int from, int to, const char *name, const struct stat *st, struct err *err)
{
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	int out = in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool ok = in >= 0 && out >= 0 && copy_content(in, out, st->st_size) == 0 && fchown(out, st->st_uid, st->st_gid) == 0 && fchmod(out, st->st_mode & 07777) == 0;
	int sys = errno;
	if (in >= 0)
		(void)close(in);
	if (out >= 0)
		(void)close(out);
	return ok ? 0 : err_sys(err, sys, "copy %s of the image into a volume", name);
}

static int copy_link(int from, int to, const char *name, const struct stat *st, struct err *err)
{
	CLEANUP(mem_freep) char *target = mem_alloc(PATH_MAX + 1);
	ssize_t n = readlinkat(from, name, target, PATH_MAX);

	if (n < 0)
		return err_sys(err, errno, "read the link %s", name);
	target[n] = '\0';
	if (symlinkat(target, to, name) < 0 || fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "copy the link %s", name);
	return 0;
}

static int copy_sub_folder(int from, int to, const char *name, const struct stat *st, unsigned depth, struct err *err)
{
	enum { FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

	if (mkdirat(to, name, 0700) < 0)
		return err_sys(err, errno, "make the folder %s", name);
	int in = openat(from, name, FLAGS), out = openat(to, name, FLAGS);
	int r = in < 0 || out < 0 ? err_sys(err, errno, "open the folder %s", name) : copy_folder(in, out, depth + 1, err);
	if (r == 0 && (fchown(out, st->st_uid, st->st_gid) < 0 || fchmod(out, st->st_mode & 07777) < 0))
		r = err_sys(err, errno, "set the mode of %s", name);
	if (in >= 0)
		(void)close(in);
	if (out >= 0)
		(void)close(out);
	return r;
}

static int copy_entry(int from, int to, const char *name, unsigned depth, struct err *err)
{
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "stat %s", name);
	if (S_ISDIR(st.st_mode))
		return copy_sub_folder(from, to, name, &st, depth, err);
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to, name, &st, err);
	if (S_ISREG(st.st_mode))
		return copy_file(from, to, name, &st, err);
	if (mknodat(to, name, st.st_mode, st.st_rdev) < 0 || fchownat(to, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "copy %s", name);
	return 0;
}

static int copy_folder(int from, int to, unsigned depth, struct err *err)
{
	struct dirent *e;
	int r = 0, again = dup(from);
	DIR *dir = again < 0 ? NULL : fdopendir(again);

	if (!dir || depth > DEPTH_MAX)
		r = err_set(err, ERR_TOO_LARGE, "a volume of the image cannot be copied");
	while (r == 0 && (e = readdir(dir)))
		if (!str_eq(str_of(e->d_name), STR(".")) && !str_eq(str_of(e->d_name), STR("..")))
			r = copy_entry(from, to, e->d_name, depth, err);
	if (dir)
		(void)closedir(dir);
	else if (again >= 0)
		(void)close(again);
	return r;
}

/* What the image has there, if it is a folder. */
static int fill(int root, const char *inside, const char *folder, struct err *err)
{
	struct stat st;
	int from = path_open(root, inside, O_RDONLY | O_DIRECTORY, err);

	if (from == -ERR_NOT_FOUND)
		return 0;
	if (from < 0)
		return from;
	int to = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = to < 0 ? err_sys(err, errno, "open %s", folder) : copy_folder(from, to, 0, err);
	if (r == 0 && (fstat(from, &st) < 0 || fchown(to, st.st_uid, st.st_gid) < 0 || fchmod(to, st.st_mode & 07777) < 0))
		r = err_sys(err, errno, "set the mode of %s", folder);
	(void)close(from);
	if (to >= 0)
		(void)close(to);
	return r;
}

static bool is_mounted(struct val mounts, str path)
{
	VAL_EACH(m, mounts) {
		str at = val_str(*m, containerPath);
		while (at.n > 1 && at.p[at.n - 1] == '/')
			at.n--;
		if (str_eq(at, path))
			return true;
	}
	return false;
}

int config_volumes(const struct config_input *in, struct arena *a, struct val *ret_mounts, struct err *err)
{
	struct val volumes = val_get(in->image, Volumes), mounts = val_get(in->config, mounts);
	struct val_builder b = val_builder(a);
	size_t n = 0;

	*ret_mounts = VAL_EMPTY_LIST;
	if (!val_len(volumes))
		return 0;
	if (val_len(volumes) > VOLUMES_MAX)
		return err_set(err, ERR_TOO_LARGE, "the image has more than %d volumes", VOLUMES_MAX);
	int root = path_open_tree(in->root, err), r = root < 0 ? root : 0;
	VAL_EACH_MEMBER(v, volumes) {
		str path = atom_str(v->key);
		while (path.n > 1 && path.p[path.n - 1] == '/')
			path.n--;
		if (r < 0 || !path.n || str_eq(path, STR("/")) || is_mounted(mounts, path))
			continue;
		const char *inside = runtime_text(a, "%s" STR_FMT, path.p[0] == '/' ? "" : "/", STR_ARG(path));
		const char *folder = runtime_text(a, "%s/volumes/%zu", in->folder, n++);
		if ((r = file_make_dirs(folder, 0755, err)) == 0)
			r = fill(root, inside, folder, err);
		val_add_item(&b, OBJECT(a, F(containerPath, VAL_STR(str_of(inside))), F(hostPath, VAL_STR(str_of(folder)))));
	}
	if (root >= 0)
		(void)close(root);
	*ret_mounts = val_end_list(&b);
	return r;
}
