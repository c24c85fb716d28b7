/*
 * A walk through a tree by descriptors. A folder is read to its end before its subfolders are entered, so that one descriptor per level
 * is enough; those of the first levels are kept, and from deeper ones the way up is ".." with a look whether that is the folder we came
 * from. If it is not, somebody has moved it: the walk goes on at the deepest folder that it still holds.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "kubelet/volume_priv.h"

enum { HELD_MAX = 128, DEPTH_MAX = 65536, FOLDERS_MAX = 64 << 20 };

struct level {
	struct level *above;
	int fd;                          /* -1: not held */
	dev_t dev;
	ino_t ino;
	struct buf folders;              /* names still to be entered, each with its '\0' */
	size_t next;
};

struct walk {
	struct level *at;
	size_t depth;
	dev_t dev;
	int (*visit)(void *arg, int fd, const char *name, const struct stat *st);
	void *arg;
};

static void leave(struct walk *w)
{
	struct level *l = w->at;

	w->at = l->above;
	w->depth--;
	buf_done(&l->folders);
	volume_close(&l->fd);
	free(l);
}

/* Takes the descriptor. A folder of another file system, or one that is too deep, is not entered. */
static bool enter(struct walk *w, int fd)
{
	struct stat st;

	if (w->depth == DEPTH_MAX || fstat(fd, &st) < 0 || (w->at && st.st_dev != w->dev)) {
		close(fd);
		return false;
	}
	struct level *l = mem_zalloc(sizeof *l);
	*l = (struct level){ w->at, fd, st.st_dev, st.st_ino, BUF_INIT(FOLDERS_MAX), 0 };
	if (w->at && w->depth > HELD_MAX) {
		volume_close(&w->at->fd);
		w->at->fd = -1;
	}
	w->dev = st.st_dev;
	w->at = l;
	w->depth++;
	return true;
}

static int read_entry(struct walk *w, const char *name)
{
	struct level *l = w->at;
	struct stat st;

	if (str_eq(str_of(name), STR(".")) || str_eq(str_of(name), STR("..")) ||
	    fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return w->visit(w->arg, l->fd, name, &st);
	buf_add(&l->folders, str_span(name, strlen(name) + 1));
	return 0;
}

/* Visits the files in the newest level and notes its folders. */
static int read_level(struct walk *w, struct err *err)
{
	int r = 0, copy = openat(w->at->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;

	if (!dir) {
		int sys = errno;
		volume_close(&copy);
		return volume_fail(err, sys, "open", "a folder of the volume");
	}
	while (r == 0 && (errno = 0, d = readdir(dir)))
		r = read_entry(w, d->d_name);
	closedir(dir);
	return r < 0 ? r : buf_check(&w->at->folders, "a list of folders", err);
}

/* The newest level is done: its folder is visited, and the one above is the newest again. */
static int finish_level(struct walk *w)
{
	struct level *l = w->at;
	struct stat st;
	int r = fstat(l->fd, &st) < 0 ? 0 : w->visit(w->arg, l->fd, NULL, &st);

	if (l->above && l->above->fd < 0) {
		int up = openat(l->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (up >= 0 && fstat(up, &st) == 0 && st.st_dev == l->above->dev && st.st_ino == l->above->ino)
			l->above->fd = up;
		else
			volume_close(&up);
	}
	leave(w);
	while (w->at && w->at->fd < 0)
		leave(w);
	return r;
}

int volume_walk(int top, int (*visit)(void *arg, int fd, const char *name, const struct stat *st), void *arg, struct err *err)
{
	struct walk w = { .visit = visit, .arg = arg };
	int r, fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return volume_fail(err, errno, "open", "the volume");
	r = enter(&w, fd) ? read_level(&w, err) : 0;
	while (r == 0 && w.at) {
		struct level *l = w.at;
		if (l->next == l->folders.n) {
			r = finish_level(&w);
			continue;
		}
		const char *name = l->folders.p + l->next;
		l->next += strlen(name) + 1;
		fd = openat(l->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && enter(&w, fd))
			r = read_level(&w, err);
	}
	while (w.at)
		leave(&w);
	return r;
}

/* ---- usage ---- */

struct sum {
	int64_t bytes;
	double inodes;
};

/* A file with several names counts in parts: together they are one, and nothing has to be remembered. */
static int count(void *arg, int fd, const char *name, const struct stat *st)
{
	struct sum *s = arg;
	int64_t links = S_ISDIR(st->st_mode) || st->st_nlink < 2 ? 1 : (int64_t)st->st_nlink;

	(void)fd, (void)name;
	s->bytes += (int64_t)st->st_blocks * 512 / links;
	s->inodes += 1.0 / (double)links;
	return 0;
}

int volume_usage(const struct volume *v, struct volume_size *ret, struct err *err)
{
	CLEANUP(volume_close) int top = path_open_tree(v->path, err);
	struct sum sum = { 0 };
	struct statfs fs;

	if (top < 0)
		return top;
	if (fstatfs(top, &fs) < 0)
		return volume_fail(err, errno, "statfs", v->path);
	*ret = (struct volume_size){ .bytes = (int64_t)(fs.f_blocks - fs.f_bfree) * (int64_t)fs.f_bsize,
				     .inodes = (int64_t)(fs.f_files - fs.f_ffree),
				     .capacity = (int64_t)fs.f_blocks * (int64_t)fs.f_bsize,
				     .available = (int64_t)fs.f_bavail * (int64_t)fs.f_bsize,
				     .all_inodes = (int64_t)fs.f_files, .free_inodes = (int64_t)fs.f_ffree };
	if (v->kind->shared)
		return 0;
	int r = volume_walk(top, count, &sum, err);
	ret->bytes = sum.bytes;
	ret->inodes = (int64_t)(sum.inodes + 0.5);
	return r;
}
