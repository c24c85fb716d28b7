/*
 * Walking: the folders in a folder are noted while it is read, then entered one after the other; the way up is "..", and whom we find
 * there is compared with whom we came from. Counting tolerates that containers go on working; copying is of trees that nobody changes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "runtime/layer.h"
#include "runtime/snapshot_priv.h"

enum { FOLDERS_MAX = 256 << 20, DEPTH_MAX = 65536, COUNT_TRIES = 5, COPY_BLOCK = 64 << 10 };

#define SELINUX_XATTR "security.selinux"

struct level {
	struct level *above;
	dev_t dev;
	ino_t ino;
	struct buf folders;              /* names, each with a '\0' */
	size_t at;                       /* of the next one to be entered */
};

struct walk {
	const struct snapshot_visitor *v;
	void *arg;
	int fd;
	struct level *level;
	size_t depth;
};

static void pop(struct walk *w)
{
	struct level *l = w->level;
	w->level = l->above;
	w->depth--;
	buf_done(&l->folders);
	free(l);
}

static void walk_done(struct walk *w)
{
	while (w->level)
		pop(w);
	fd_closep(&w->fd);
}

static int see(struct walk *w, const char *name, struct err *err)
{
	struct stat st;
	if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "%s", name);
	int r = w->v->entry(w->arg, w->fd, name, &st, err);
	if (r == 0 && S_ISDIR(st.st_mode))
		buf_add(&w->level->folders, str_span(name, strlen(name) + 1));
	return r;
}

/* Reads the folder that w->fd is. */
static int scan(struct walk *w, struct err *err)
{
	struct stat st;
	struct dirent *d;
	if (fstat(w->fd, &st) < 0)
		return err_sys(err, errno, "stat");
	if (w->depth == DEPTH_MAX)
		return err_set(err, ERR_TOO_LARGE, "more than %d folders deep", DEPTH_MAX);
	struct level *l = mem_zalloc(sizeof(*l));
	*l = (struct level){ .above = w->level, .dev = st.st_dev, .ino = st.st_ino, .folders = BUF_INIT(FOLDERS_MAX) };
	w->level = l;
	w->depth++;
	int copy = openat(w->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	if (!dir) {
		int sys = errno;
		fd_closep(&copy);
		return err_sys(err, sys, "reading a folder");
	}
	int r = 0;
	while (r == 0 && (errno = 0, d = readdir(dir)))
		if (!str_eq(str_of(d->d_name), STR(".")) && !str_eq(str_of(d->d_name), STR("..")))
			r = see(w, d->d_name, err);
	if (r == 0 && errno)
		r = err_sys(err, errno, "reading a folder");
	closedir(dir);
	return r == 0 ? buf_check(&l->folders, "the names in a folder", err) : r;
}

static int go_down(struct walk *w, struct err *err)
{
	struct level *l = w->level;
	const char *name = l->folders.p + l->at;
	l->at += strlen(name) + 1;
	int fd = openat(w->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : err_sys(err, errno, "%s", name);
	close(w->fd);
	w->fd = fd;
	int r = w->v->enter ? w->v->enter(w->arg, name, err) : 0;
	return r < 0 ? r : scan(w, err);
}

static int go_up(struct walk *w, struct err *err)
{
	struct stat st;
	int r = w->v->leave ? w->v->leave(w->arg, w->fd, err) : 0;
	pop(w);
	if (r < 0 || !w->level)
		return r;
	int up = openat(w->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (up < 0)
		return err_sys(err, errno, "..");
	close(w->fd);
	w->fd = up;
	if (fstat(up, &st) < 0)
		return err_sys(err, errno, "..");
	if (st.st_dev != w->level->dev || st.st_ino != w->level->ino)
		return err_set(err, ERR_CONFLICT, "folders were moved meanwhile");
	return 0;
}

int snapshot_walk(int top, const struct snapshot_visitor *v, void *arg, struct err *err)
{
	CLEANUP(walk_done) struct walk w = { .v = v, .arg = arg, .fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	if (w.fd < 0)
		return err_sys(err, errno, "open");
	int r = scan(&w, err);
	while (r == 0 && w.level)
		r = w.level->at < w.level->folders.n ? go_down(&w, err) : go_up(&w, err);
	return r;
}

/* ---- labels ---- */

/* Some file systems have no labels, or one for all that is in them. */
static int label_failed(const char *name, struct err *err)
{
	return errno == EOPNOTSUPP || errno == ENOENT ? 0 : err_sys(err, errno, "label %s", name);
}

static int label_entry(void *arg, int folder, const char *name, const struct stat *st, struct err *err)
{
	const str *label = arg;
	char link[PATH_FD_TEXT];
	CLEANUP(buf_done) struct buf path = BUF_INIT(PATH_FD_TEXT + NAME_MAX + 1);
	(void)st;
	buf_addf(&path, "%s/%s", path_of_fd(folder, link), name);
	return lsetxattr(path.p, SELINUX_XATTR, label->p, label->n + 1, 0) < 0 ? label_failed(name, err) : 0;
}

int snapshot_label(int top, const char *label, struct err *err)
{
	static const struct snapshot_visitor visitor = { .entry = label_entry };
	str text = str_of(label);
	char link[PATH_FD_TEXT];
	struct stat st;
	if (fstat(top, &st) < 0)
		return err_sys(err, errno, "stat");
	int r = S_ISDIR(st.st_mode) ? snapshot_walk(top, &visitor, &text, err) : 0;
	if (r < 0)
		return r;
	return setxattr(path_of_fd(top, link), SELINUX_XATTR, label, text.n + 1, 0) < 0 ? label_failed("the top", err) : 0;
}

/* ---- files with several names ---- */

/* The first name of each, by its inode number. */
struct links {
	struct arena arena;
	struct map first;
};

static void links_done(struct links *l)
{
	map_done(&l->first);
	arena_done(&l->arena);
}

/* The name of the file that was seen before; NULL: this is the first one. */
static const char *links_see(struct links *l, const struct stat *st, str name)
{
	/* only the first of them costs memory: a container can have millions of names for one file */
	uint64_t pair[2] = { (uint64_t)st->st_dev, (uint64_t)st->st_ino };
	str key = str_span((const char *)pair, sizeof(pair));
	const char *before = map_get(&l->first, key);
	if (!before)
		map_put(&l->first, arena_str(&l->arena, key), (void *)arena_str(&l->arena, name).p);
	return before;
}

/* ---- counting ---- */

struct count {
	uint64_t bytes, inodes;
	struct links links;
};

static void count_done(struct count *c)
{
	links_done(&c->links);
}

static int count_entry(void *arg, int folder, const char *name, const struct stat *st, struct err *err)
{
	struct count *c = arg;
	(void)folder, (void)name, (void)err;
	if (!S_ISDIR(st->st_mode) && st->st_nlink > 1 && links_see(&c->links, st, STR("seen")))
		return 0;
	c->bytes += (uint64_t)st->st_blocks * 512;
	c->inodes++;
	return 0;
}

static int count_once(int top, uint64_t *ret_bytes, uint64_t *ret_inodes, struct err *err)
{
	static const struct snapshot_visitor visitor = { .entry = count_entry };
	CLEANUP(count_done) struct count c = { 0 };
	struct stat st;
	if (fstat(top, &st) < 0)
		return err_sys(err, errno, "stat");
	int r = count_entry(&c, top, ".", &st, err);
	if (r == 0)
		r = snapshot_walk(top, &visitor, &c, err);
	*ret_bytes = c.bytes;
	*ret_inodes = c.inodes;
	return r;
}

int snapshot_count(int top, uint64_t *ret_bytes, uint64_t *ret_inodes, struct err *err)
{
	int r = -ERR_CONFLICT;
	for (int i = 0; i < COUNT_TRIES && r == -ERR_CONFLICT; i++)
		r = count_once(top, ret_bytes, ret_inodes, err);
	return r;
}

/* ---- copying ---- */

struct copy {
	int top, to;                     /* of the new tree, and the folder in it */
	struct buf path;                 /* of that folder, "" or "a/b/" */
	struct links links;
};

static void copy_done(struct copy *c)
{
	fd_closep(&c->to);
	buf_done(&c->path);
	links_done(&c->links);
}

static int copy_by_hand(int from, int to, int64_t at, int64_t end, struct err *err)
{
	CLEANUP(mem_freep) char *room = mem_alloc(COPY_BLOCK);
	while (at < end) {
		ssize_t n = pread(from, room, (size_t)MIN(end - at, (int64_t)COPY_BLOCK), at);
		if (n <= 0)
			return n < 0 ? err_sys(err, errno, "read") : 0;
		int r = file_write_fd(to, str_span(room, (size_t)n), at, "write", err);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

static int copy_range(int from, int to, int64_t at, int64_t end, struct err *err)
{
	while (at < end) {
		off_t in = at, out = at;
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);
		if (n < 0 && (errno == ENOSYS || errno == EOPNOTSUPP || errno == EXDEV || errno == EINVAL))
			return copy_by_hand(from, to, at, end, err);
		if (n < 0)
			return err_sys(err, errno, "copy");
		if (n == 0)
			return copy_by_hand(from, to, at, end, err);
		at += n;
	}
	return 0;
}

/* Shares the blocks where the file system can; holes stay holes. */
static int copy_content(int from, int to, int64_t size, struct err *err)
{
	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	if (ftruncate(to, size) < 0)
		return err_sys(err, errno, "truncate");
	int r = 0;
	for (int64_t at = 0, end; r == 0 && at < size; at = end) {
		at = lseek(from, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : err_sys(err, errno, "seek");
		end = lseek(from, at, SEEK_HOLE);
		if (end < 0)
			return err_sys(err, errno, "seek");
		r = copy_range(from, to, at, end, err);
	}
	return r;
}

static int copy_regular(int folder, const char *name, int into, int64_t size, struct err *err)
{
	CLEANUP(fd_closep) int from = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(fd_closep) int to = from < 0 ? -1 : openat(into, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return err_sys(err, errno, "open");
	int r = copy_content(from, to, size, err);
	return r < 0 ? r : layer_copy_meta(from, to, err);
}

static int copy_link(struct copy *c, const char *before, const char *name, struct err *err)
{
	const char *base;
	CLEANUP(fd_closep) int folder = path_open_parent(c->top, before, &base, err);
	if (folder < 0)
		return folder;
	return linkat(folder, base, c->to, name, 0) < 0 ? err_sys(err, errno, "link") : 0;
}

static int copy_node(int folder, const char *name, int to, const struct stat *st, struct err *err)
{
	if (S_ISLNK(st->st_mode)) {
		CLEANUP(mem_freep) char *target = mem_alloc(PATH_MAX);
		ssize_t n = readlinkat(folder, name, target, PATH_MAX - 1);
		target[n < 0 ? 0 : n] = '\0';
		if (n < 0 || symlinkat(target, to, name) < 0)
			return err_sys(err, errno, "symlink");
	} else if (mknodat(to, name, st->st_mode & S_IFMT, st->st_rdev) < 0) {
		return err_sys(err, errno, "mknod");
	}
	if (fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISLNK(st->st_mode) && fchmodat(to, name, st->st_mode & 07777, 0) < 0) ||
	    utimensat(to, name, (struct timespec[]){ st->st_atim, st->st_mtim }, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "copying an owner and a mode");
	return 0;
}

int snapshot_copy_file(int from, const char *name, int to, const struct stat *st, struct err *err)
{
	return S_ISREG(st->st_mode) ? copy_regular(from, name, to, st->st_size, err) : copy_node(from, name, to, st, err);
}

static int copy_entry(void *arg, int folder, const char *name, const struct stat *st, struct err *err)
{
	struct copy *c = arg;
	const char *before = NULL;
	if (S_ISDIR(st->st_mode))
		return mkdirat(c->to, name, 0700) < 0 ? err_sys(err, errno, "%s: mkdir", name) : 0;
	if (st->st_nlink > 1) {
		CLEANUP(buf_done) struct buf path = BUF_INIT(PATH_MAX - 1);
		buf_add(&path, buf_str(&c->path));
		buf_add(&path, str_of(name));
		if (path.overflow)
			return err_set(err, ERR_TOO_LARGE, "%s: its path is longer than %d bytes", name, PATH_MAX - 1);
		before = links_see(&c->links, st, buf_str(&path));
	}
	int r = before ? copy_link(c, before, name, err) : snapshot_copy_file(folder, name, c->to, st, err);
	return err_wrap(err, r, "%s", name);
}

static int copy_enter(void *arg, const char *name, struct err *err)
{
	struct copy *c = arg;
	int fd = openat(c->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "%s", name);
	close(c->to);
	c->to = fd;
	buf_add(&c->path, str_of(name));
	buf_addc(&c->path, '/');
	return buf_check(&c->path, "the path of a folder", err);
}

static int copy_leave(void *arg, int folder, struct err *err)
{
	struct copy *c = arg;
	int r = layer_copy_meta(folder, c->to, err);
	if (r < 0 || !c->path.n)
		return r;
	int up = openat(c->to, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (up < 0)
		return err_sys(err, errno, "..");
	close(c->to);
	c->to = up;
	ptrdiff_t slash = str_rchr(str_head(buf_str(&c->path), c->path.n - 1), '/');
	c->path.n = (size_t)(slash + 1);
	c->path.p[c->path.n] = '\0';
	return 0;
}

int snapshot_copy(int from, int to, struct err *err)
{
	static const struct snapshot_visitor visitor = { copy_entry, copy_enter, copy_leave };
	CLEANUP(copy_done) struct copy c = { .top = to, .to = openat(to, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
					     .path = BUF_INIT(DEPTH_MAX) };
	return c.to < 0 ? err_sys(err, errno, "open") : snapshot_walk(from, &visitor, &c, err);
}
