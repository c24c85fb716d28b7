/*
 * Everything goes through openat2. The kernel answers EAGAIN when something was renamed or mounted while it followed ".." or a
 * link inside; trying again is right, but not for ever: who renames all the time must not hold us.
 *
 * path_remove walks without recursion and with two descriptors, however deep the tree is: it goes down into the first folder it
 * meets and up again by "..", and compares whom it finds there with whom it came from.
 */
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"

enum { TRIES_MAX = 128, LINKS_MAX = 40, REMOVE_DEPTH_MAX = 65536, PROC_ROOT_INODE = 1 };

static int fail(struct err *err, int sys, const char *path)
{
	int r = err_sys(err, sys, "%s", path);
	enum err_code code = (enum err_code)-r;

	if (sys == ENOTDIR)
		code = ERR_NOT_FOUND;
	else if (sys == EXDEV || sys == ELOOP)
		code = ERR_FORBIDDEN;
	if (err)
		err->code = code;
	return -(int)code;
}

/* The descriptor, or -1 and errno. */
static int open_how(int at, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC), .mode = mode, .resolve = resolve };

	for (int tries = 0;; tries++) {
		int fd = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || tries == TRIES_MAX)
			return fd;
	}
}

static int open_inside(int tree, const char *path, int flags)
{
	return open_how(tree, *path ? path : ".", flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* The same for a folder whose path is no C string; on the heap, since this runs on fibers. */
static int open_folder(int tree, str path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PATH_MAX);

	buf_add(&text, path.n ? path : STR("."));
	if (!text.overflow)
		return open_inside(tree, text.p, O_PATH | O_DIRECTORY);
	errno = ENAMETOOLONG;
	return -1;
}

str path_clean(struct arena *a, str path)
{
	char *out = arena_alloc(a, path.n + 2, 1);
	size_t n = 0;
	str rest = path, part;

	while (rest.n) {
		(void)str_cut(rest, '/', &part, &rest);
		if (!part.n || str_eq(part, STR(".")))
			continue;
		if (str_eq(part, STR(".."))) {
			while (n && out[--n] != '/')
				;
			continue;
		}
		out[n++] = '/';
		memcpy(out + n, part.p, part.n);
		n += part.n;
	}
	if (!n)
		out[n++] = '/';
	out[n] = '\0';
	return str_span(out, n);
}

str path_absolute(struct arena *a, const char *path)
{
	char *here = path[0] == '/' ? NULL : arena_alloc(a, PATH_MAX, 1);

	if (here && getcwd(here, PATH_MAX))
		return path_clean(a, arena_printf(a, "%s/%s", here, path));
	return path_clean(a, str_of(path));
}

int path_open_tree(const char *path, struct err *err)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? fail(err, errno, path) : fd;
}

int path_open(int tree, const char *path, int flags, struct err *err)
{
	int fd = open_inside(tree, path, flags);
	return fd < 0 ? fail(err, errno, path) : fd;
}

/* The length of path without slashes at its end, and where its last part begins. */
static size_t split_last(const char *path, size_t *ret_last)
{
	size_t n = strlen(path);

	while (n && path[n - 1] == '/')
		n--;
	*ret_last = n;
	while (*ret_last && path[*ret_last - 1] != '/')
		--*ret_last;
	return n;
}

int path_open_parent(int tree, const char *path, const char **ret_name, struct err *err)
{
	size_t last, n = split_last(path, &last);
	str name = str_span(path + last, n - last);

	if (!name.n || str_eq(name, STR(".")) || str_eq(name, STR("..")) || path[n])
		return err_set(err, ERR_FORBIDDEN, "%s: the path does not end in a name", path);
	int fd = open_folder(tree, str_span(path, last));
	if (fd < 0)
		return fail(err, errno, path);
	*ret_name = path + last;
	return fd;
}

int path_create(int tree, const char *path, int flags, mode_t mode, struct err *err)
{
	const char *name;

	for (int tries = 0; tries < TRIES_MAX; tries++) {
		int fd = flags & O_EXCL ? -1 : open_inside(tree, path, flags & ~O_CREAT);
		if (fd >= 0 || (!(flags & O_EXCL) && errno != ENOENT))
			return fd < 0 ? fail(err, errno, path) : fd;
		CLEANUP(fd_closep) int parent = path_open_parent(tree, path, &name, err);
		if (parent < 0)
			return parent;
		fd = openat(parent, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST || flags & O_EXCL)
			return fail(err, errno, path);
	}
	return fail(err, EEXIST, path);
}

/* A link that leads nowhere yet stands where a folder is wanted: its text takes the place of the name in path. */
static int follow_dangling(int parent, const char *name, size_t begin, size_t end, struct buf *path)
{
	CLEANUP(buf_done) struct buf link = BUF_INIT(PATH_MAX), next = BUF_INIT(PATH_MAX - 1);

	ssize_t n = readlinkat(parent, name, buf_reserve(&link, PATH_MAX - 1), PATH_MAX - 1);
	if (n < 0)
		return errno == EINVAL ? ENOTDIR : errno;
	str text = str_span(link.p, (size_t)n);
	if (!str_starts(text, STR("/")))
		buf_add(&next, str_head(buf_str(path), begin));
	buf_add(&next, text);
	buf_add(&next, str_skip(buf_str(path), end));
	if (next.overflow)
		return ENAMETOOLONG;
	buf_reset(path);
	buf_add(path, buf_str(&next));
	return 0;
}

/* Makes the part of path between begin and end below parent: 0, or an errno; EAGAIN after path was changed. */
static int make_part(int tree, size_t begin, size_t end, mode_t mode, struct buf *path)
{
	char name[NAME_MAX + 1];

	if (end - begin > NAME_MAX)
		return ENAMETOOLONG;
	memcpy(name, path->p + begin, end - begin);
	name[end - begin] = '\0';
	CLEANUP(fd_closep) int parent = open_folder(tree, str_span(path->p, begin));
	if (parent < 0)
		return errno;
	if (mkdirat(parent, name, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return errno;
	int sys = follow_dangling(parent, name, begin, end, path);
	return sys ? sys : EAGAIN;
}

/* One walk along path: its last folder, or -1 and errno; EAGAIN when a link was replaced by where it leads. */
static int mkdirs_walk(int tree, mode_t mode, struct buf *path)
{
	int fd = open_inside(tree, path->p, O_PATH | O_DIRECTORY);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	for (size_t begin = 0, end; begin < path->n; begin = end) {
		while (begin < path->n && path->p[begin] == '/')
			begin++;
		for (end = begin; end < path->n && path->p[end] != '/'; end++)
			;
		if (begin == end)
			break;
		CLEANUP(fd_closep) int there = open_folder(tree, str_span(path->p, end));
		if (there < 0 && errno != ENOENT)
			return -1;
		int sys = there < 0 ? make_part(tree, begin, end, mode, path) : 0;
		if (sys) {
			errno = sys;
			return -1;
		}
	}
	return open_inside(tree, path->p, O_PATH | O_DIRECTORY);
}

int path_mkdirs(int tree, const char *path, mode_t mode, struct err *err)
{
	CLEANUP(buf_done) struct buf at = BUF_INIT(PATH_MAX - 1);
	int fd = -1;

	buf_add(&at, *path ? str_of(path) : STR("."));
	if (at.overflow)
		return fail(err, ENAMETOOLONG, path);
	for (int links = 0; links < LINKS_MAX; links++) {
		fd = mkdirs_walk(tree, mode, &at);
		if (fd >= 0)
			return fd;
		if (errno != EAGAIN)
			return fail(err, errno, path);
	}
	return fail(err, ELOOP, path);
}

const char *path_of_fd(int fd, char text[PATH_FD_TEXT])
{
	snprintf(text, PATH_FD_TEXT, "/proc/self/fd/%d", fd);
	return text;
}

/* The top of the procfs that is at /proc, or -1 and errno. */
static int open_proc_top(void)
{
	struct statfs fs;
	struct stat st;
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC && fstat(fd, &st) == 0 && st.st_ino == PROC_ROOT_INODE)
		return fd;
	if (fd >= 0)
		close(fd);
	errno = EXDEV;
	return -1;
}

/* One that nobody else sees, and over which nothing is mounted. */
static int open_private_proc(void)
{
	CLEANUP(fd_closep) int config = fsopen("proc", FSOPEN_CLOEXEC);

	if (config < 0 || fsconfig(config, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(config, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

int path_open_proc(const char *path, int flags, struct err *err)
{
	const uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
	CLEANUP(fd_closep) int top = open_proc_top();
	int fd = top < 0 ? -1 : open_how(top, path, flags, 0, resolve);

	if (fd < 0 && errno == EXDEV) {
		CLEANUP(fd_closep) int own = open_private_proc();
		fd = own < 0 ? -1 : open_how(own, path, flags, 0, resolve);
	}
	return fd < 0 ? err_wrap(err, fail(err, errno, path), "/proc") : fd;
}

/* ---- removing ---- */

struct folder {
	struct folder *above;
	dev_t dev;
	ino_t ino;
	const char *name;   /* in the folder above it */
};

struct removal {
	struct arena arena;
	struct folder *at;
	size_t depth;
	int fd;             /* of the folder that `at` is */
};

static int removal_enter(struct removal *m, int parent, const char *name)
{
	struct stat st;
	int fd = open_how(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
			  RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS);

	if (fd < 0)
		return errno;
	if (fstat(fd, &st) < 0 || m->depth == REMOVE_DEPTH_MAX) {
		int sys = m->depth == REMOVE_DEPTH_MAX ? ENAMETOOLONG : errno;
		close(fd);
		return sys;
	}
	struct folder *f = ARENA_NEW(&m->arena, struct folder);
	*f = (struct folder){ m->at, st.st_dev, st.st_ino, arena_str(&m->arena, str_of(name)).p };
	m->at = f;
	m->depth++;
	m->fd = fd;
	return 0;
}

/* Removes the files in the folder; the name of the first folder in it is in *ret_name, NULL when it is empty now. */
static int removal_files(struct removal *m, const char **ret_name)
{
	int sys = 0, copy = openat(m->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;

	*ret_name = NULL;
	if (!dir) {
		sys = errno;
		fd_closep(&copy);
		return sys;
	}
	while (!sys && !*ret_name && (errno = 0, d = readdir(dir))) {
		if (str_eq(str_of(d->d_name), STR(".")) || str_eq(str_of(d->d_name), STR("..")))
			continue;
		if (unlinkat(m->fd, d->d_name, 0) < 0 && errno == EISDIR)
			*ret_name = arena_str(&m->arena, str_of(d->d_name)).p;
		else
			sys = errno == ENOENT ? 0 : errno;
	}
	sys = sys ? sys : *ret_name ? 0 : errno;
	closedir(dir);
	return sys;
}

/* Up again; the folder that was left is empty and is removed from the one above. */
static int removal_leave(struct removal *m)
{
	struct folder *left = m->at;
	struct stat st;
	int up = openat(m->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (up < 0)
		return errno;
	close(m->fd);
	m->fd = up;
	m->at = left->above;
	m->depth--;
	if (fstat(up, &st) < 0)
		return errno;
	if (st.st_dev != m->at->dev || st.st_ino != m->at->ino)
		return EXDEV;
	return unlinkat(up, left->name, AT_REMOVEDIR) < 0 && errno != ENOENT ? errno : 0;
}

static int removal_run(struct removal *m)
{
	for (;;) {
		const char *name;
		int parent = m->fd, sys = removal_files(m, &name);
		if (sys)
			return sys;
		if (name) {
			sys = removal_enter(m, parent, name);
			if (!sys)
				close(parent);
		} else if (m->depth == 1) {
			return 0;
		} else {
			sys = removal_leave(m);
		}
		if (sys)
			return sys;
	}
}

int path_remove(int tree, const char *path, struct err *err)
{
	const char *name;
	CLEANUP(fd_closep) int parent = path_open_parent(tree, path, &name, err);

	if (parent < 0)
		return parent;
	if (unlinkat(parent, name, 0) == 0)
		return 0;
	if (errno != EISDIR)
		return fail(err, errno, path);
	struct removal m = { .fd = -1 };
	int sys = removal_enter(&m, parent, name);
	if (!sys)
		sys = removal_run(&m);
	fd_closep(&m.fd);
	arena_done(&m.arena);
	if (!sys && unlinkat(parent, name, AT_REMOVEDIR) < 0)
		sys = errno;
	return sys ? fail(err, sys, path) : 0;
}
