/*
 * Files that change together. In the folder are
 *
 *	..2006_01_02_15_04_05.123   the files themselves; written once
 *	..data                      a link to that folder, replaced by a rename
 *	name                        a link to ..data/name for the first part of every path
 *
 * so that a reader sees all of the old files or all of the new ones. Links and folders that nothing leads to any more are found by
 * looking at the folder itself: what a crash has left is removed with the next change.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/random.h"
#include "kubelet/volume_priv.h"

enum { PATH_TEXT_MAX = 4096, FILE_NAME_MAX = 255, STAMP_MAX = 64, STAMP_TRIES = 100 };

struct writer {
	struct arena arena;
	int top;
	struct volume_files *files;
	int (*own)(void *arg, struct err *err);
	void *own_arg;
	char now[STAMP_MAX];             /* the folder that ..data leads to; "" if there is none */
};

/* ---- the paths ---- */

static int check_path(str path, struct err *err)
{
	str rest = path, part;

	if (!path.n)
		return err_set(err, ERR_INVALID, "invalid path: must not be empty: \"\"");
	if (path.p[0] == '/')
		return err_set(err, ERR_INVALID, "invalid path: must be relative path: " STR_FMT, STR_ARG(path));
	if (path.n > PATH_TEXT_MAX)
		return err_set(err, ERR_INVALID, "invalid path: must be less than or equal to %d characters", PATH_TEXT_MAX);
	for (bool more = true; more;) {
		more = str_cut(rest, '/', &part, &rest);
		if (str_eq(part, STR("..")))
			return err_set(err, ERR_INVALID, "invalid path: must not contain '..': " STR_FMT, STR_ARG(path));
		if (part.n > FILE_NAME_MAX)
			return err_set(err, ERR_INVALID, "invalid path: filenames must be less than or equal to %d characters",
				       FILE_NAME_MAX);
	}
	if (str_starts(path, STR("..")))
		return err_set(err, ERR_INVALID, "invalid path: must not start with '..': " STR_FMT, STR_ARG(path));
	if (memchr(path.p, '\0', path.n))
		return err_set(err, ERR_INVALID, "invalid path: must not contain a zero byte");
	return 0;
}

static int compare(const void *x, const void *y)
{
	const struct volume_file *f = x, *g = y;
	int order = str_cmp(f->path, g->path);

	return order ? order : f->uid < g->uid ? -1 : f->uid > g->uid;
}

/* Sorted, with clean paths, each once: the last one of a path stays. */
static int sort_files(struct writer *w, struct err *err)
{
	struct volume_files *f = w->files;
	int64_t *uids = ARENA_ARRAY(&w->arena, int64_t, f->n + 1);
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		int r = check_path(f->files[i].path, err);
		if (r < 0)
			return r;
		f->files[i].path = str_skip(path_clean(&w->arena, f->files[i].path), 1);
		if (!f->files[i].path.n)
			return err_set(err, ERR_INVALID, "invalid path: must not be empty: \".\"");
		uids[i] = f->files[i].uid;
		f->files[i].uid = (int64_t)i; /* for a while: so that equal paths stay in their order */
	}
	if (f->n)
		qsort(f->files, f->n, sizeof *f->files, compare);
	for (size_t i = 0; i < f->n; i++) {
		f->files[i].uid = uids[f->files[i].uid];
		if (i + 1 == f->n || !str_eq(f->files[i].path, f->files[i + 1].path))
			f->files[n++] = f->files[i];
	}
	f->n = n;
	return 0;
}

/* The first file whose path is not less than this. */
static size_t lower_bound(const struct volume_files *f, str path)
{
	size_t low = 0, high = f->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (str_cmp(f->files[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether there is a file of that name, or one in a folder of that name. */
static bool is_top(struct writer *w, str name)
{
	str folder = arena_join(&w->arena, name, STR("/"));
	size_t file = lower_bound(w->files, name), inside = lower_bound(w->files, folder);

	return (file < w->files->n && str_eq(w->files->files[file].path, name)) ||
	       (inside < w->files->n && str_starts(w->files->files[inside].path, folder));
}

/* ---- what is there ---- */

static bool same_content(int tree, const struct volume_file *f, struct buf *room)
{
	char path[PATH_FD_TEXT];
	CLEANUP(volume_close) int fd = path_open(tree, f->path.p, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, NULL);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size != f->data.n)
		return false;
	buf_reset(room);
	return file_read(path_of_fd(fd, path), room, NULL) == 0 && str_eq(buf_str(room), f->data);
}

static int count_files(void *arg, int fd, const char *name, const struct stat *st)
{
	(void)fd, (void)st;
	*(size_t *)arg += name != NULL;
	return 0;
}

/* Every file is there with its content, and as many as there should be. */
static bool up_to_date(struct writer *w)
{
	CLEANUP(volume_close) int tree = w->now[0] ? path_open(w->top, w->now, O_PATH | O_DIRECTORY | O_NOFOLLOW, NULL) : -1;
	CLEANUP(buf_done) struct buf room = BUF_INIT(SIZE_MAX / 2);
	size_t n = 0;

	if (tree < 0)
		return false;
	for (size_t i = 0; i < w->files->n; i++)
		if (!same_content(tree, &w->files->files[i], &room))
			return false;
	return volume_walk(tree, count_files, &n, NULL) == 0 && n == w->files->n;
}

/* ---- writing ---- */

static int write_one(int tree, struct arena *a, const struct volume_file *f, struct err *err)
{
	ptrdiff_t last = str_rchr(f->path, '/');

	if (last > 0) {
		int folder = path_mkdirs(tree, arena_str(a, str_head(f->path, (size_t)last)).p, 0755, err);
		if (folder < 0)
			return folder;
		close(folder);
	}
	CLEANUP(volume_close) int fd = path_create(tree, f->path.p, O_WRONLY | O_EXCL, 0600, err);
	if (fd < 0)
		return fd;
	int r = file_write_fd(fd, f->data, -1, f->path.p, err);
	if (r < 0)
		return r;
	if (fchmod(fd, f->mode & 0777) < 0)
		return volume_fail(err, errno, "chmod", f->path.p);
	if (f->uid >= 0 && fchown(fd, (uid_t)f->uid, (gid_t)-1) < 0)
		return volume_fail(err, errno, "lchown", f->path.p);
	return 0;
}

static int make_stamped(struct writer *w, char name[STAMP_MAX], struct err *err)
{
	time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
	struct tm tm;
	char date[STAMP_MAX / 2];

	gmtime_r(&now, &tm);
	strftime(date, sizeof date, "%Y_%m_%d_%H_%M_%S", &tm);
	for (int tries = 0; tries < STAMP_TRIES; tries++) {
		snprintf(name, STAMP_MAX, "..%s.%u", date, (unsigned)random_u64());
		if (mkdirat(w->top, name, 0755) == 0)
			return fchmodat(w->top, name, 0755, 0) < 0 ? volume_fail(err, errno, "chmod", name) : 0;
		if (errno != EEXIST)
			break;
	}
	return volume_fail(err, errno, "mkdir", name);
}

/* A new folder with all files, and ..data leads to it. */
static int publish(struct writer *w, struct err *err)
{
	char name[STAMP_MAX];
	int r = make_stamped(w, name, err);

	if (r < 0)
		return r;
	CLEANUP(volume_close) int tree = path_open(w->top, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, err);
	if (tree < 0)
		return tree;
	for (size_t i = 0; i < w->files->n; i++)
		if ((r = write_one(tree, &w->arena, &w->files->files[i], err)) < 0)
			return r;
	if (w->own && (r = w->own(w->own_arg, err)) < 0)
		return r;
	(void)unlinkat(w->top, "..data_tmp", 0); /* of one that was cut short */
	if (symlinkat(name, w->top, "..data_tmp") < 0)
		return volume_fail(err, errno, "symlink", "..data_tmp");
	if (renameat(w->top, "..data_tmp", w->top, "..data") < 0)
		return volume_fail(err, errno, "rename", "..data_tmp");
	memcpy(w->now, name, sizeof name);
	return 0;
}

/* ---- what is seen ---- */

static int show(struct writer *w, struct err *err)
{
	for (size_t i = 0; i < w->files->n; i++) {
		const struct volume_file *f = &w->files->files[i];
		str name, rest;
		(void)str_cut(f->path, '/', &name, &rest);
		const char *link = arena_str(&w->arena, name).p, *target = arena_join(&w->arena, STR("..data/"), name).p;
		if (symlinkat(target, w->top, link) < 0) {
			if (errno == EEXIST)
				continue; /* the link, or a folder that another volume is mounted on */
			return volume_fail(err, errno, "symlink", link);
		}
		if (f->uid >= 0 && fchownat(w->top, link, (uid_t)f->uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
			return volume_fail(err, errno, "lchown", link);
	}
	return 0;
}

static bool leads_to_data(int top, const char *name)
{
	char target[FILE_NAME_MAX + 16];
	ssize_t n = readlinkat(top, name, target, sizeof target);

	return n > 0 && str_starts(str_span(target, (size_t)n), STR("..data/"));
}

/* Links of files that are no more, and folders that ..data no longer leads to. */
static int prune(struct writer *w, struct err *err)
{
	int r = 0, copy = openat(w->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;

	if (!dir) {
		volume_close(&copy);
		return volume_fail(err, errno, "open", ".");
	}
	while (r == 0 && (d = readdir(dir))) {
		str name = str_of(d->d_name);
		if (str_starts(name, STR("..2"))) {
			if (!str_eq(name, str_of(w->now)))
				r = path_remove(w->top, d->d_name, err);
		} else if (!str_starts(name, STR("..")) && leads_to_data(w->top, d->d_name) && !is_top(w, name)) {
			(void)unlinkat(w->top, d->d_name, 0);
		}
	}
	closedir(dir);
	return r;
}

static int write_all(struct writer *w, struct err *err)
{
	int r = sort_files(w, err);

	if (r < 0)
		return r;
	ssize_t n = readlinkat(w->top, "..data", w->now, sizeof w->now - 1);
	w->now[n > 0 ? n : 0] = '\0';
	r = up_to_date(w) ? 0 : publish(w, err);
	if (r == 0)
		r = show(w, err);
	/* Also after a failure: what was written of the new files goes away again. */
	int pruned = prune(w, r < 0 ? NULL : err);
	return r < 0 ? r : pruned;
}

int volume_atomic_write(const char *folder, struct volume_files *files, int (*own)(void *arg, struct err *err), void *arg,
			struct err *err)
{
	struct writer w = { .files = files, .own = own, .own_arg = arg };

	arena_init(&w.arena);
	w.top = path_open_tree(folder, err);
	int r = w.top < 0 ? w.top : write_all(&w, err);
	volume_close(&w.top);
	arena_done(&w.arena);
	return r;
}
