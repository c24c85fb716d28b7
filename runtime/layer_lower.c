/*
 * What a layer of an overlay left to those below it. The layers are looked at one by one, as overlayfs would: whiteouts and opaque
 * folders hide what is further down, and links on the way are not followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "runtime/layer.h"
#include "runtime/snapshot_priv.h"

/* ---- finding ---- */

/* Down one part of the name. 1: *fd is that folder; 0: it is not there; -1: something else is there, or it cannot be read. */
static int step_down(int *fd, str part)
{
	char name[256];
	struct stat st;
	if (part.n >= sizeof(name))
		return -1;
	memcpy(name, part.p, part.n);
	name[part.n] = '\0';
	if (fstatat(*fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	int next = S_ISDIR(st.st_mode) ? openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (next < 0)
		return -1;
	close(*fd);
	*fd = next;
	return 1;
}

int layer_find_folder(int top, str path, int *ret)
{
	CLEANUP(fd_closep) int fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool opaque = false;
	str part;
	while (fd >= 0 && path.n) {
		opaque = opaque || layer_is_opaque(fd);
		str_cut(path, '/', &part, &path);
		int r = step_down(&fd, part);
		if (r <= 0)
			return opaque ? -1 : r;
	}
	*ret = fd;
	fd = -1;
	return *ret < 0 ? -1 : 1;
}

/* ---- folders without an entry ---- */

static int inherit_folder(int top, const char *name, const int *lowers, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		CLEANUP(fd_closep) int from = -1;
		int r = layer_find_folder(lowers[i], str_of(name), &from);
		if (r < 0)
			return 0;
		if (r == 0)
			continue;
		CLEANUP(fd_closep) int to = path_open(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, err);
		return to < 0 ? to : err_wrap(err, layer_copy_meta(from, to, err), "%s", name);
	}
	return 0;
}

static int inherit_folders(int top, str names, const int *lowers, size_t n, struct err *err)
{
	int r = 0;
	/* the deepest first: going down must not disturb times that were set */
	while (r == 0 && names.n) {
		str head = str_head(names, names.n - 1);
		ptrdiff_t at = str_rchr(head, '\0');
		r = inherit_folder(top, names.p + at + 1, lowers, n, err);
		names = str_head(names, (size_t)(at + 1));
	}
	return r;
}

/* ---- hard links to files of lower layers ---- */

/* 1: *ret is the folder of the layer that has the file; 0: the layer says nothing of it; -1: it hides the file, or has it not to give. */
static int find_file(int layer, str folder, const char *base, int *ret, struct stat *ret_st)
{
	CLEANUP(fd_closep) int fd = -1;
	int r = layer_find_folder(layer, folder, &fd);
	if (r <= 0)
		return r;
	if (fstatat(fd, base, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && !layer_is_opaque(fd) ? 0 : -1;
	if (layer_is_whiteout(ret_st) || S_ISDIR(ret_st->st_mode))
		return -1;
	*ret = fd;
	fd = -1;
	return 1;
}

/* Brings the file up to the layer, and does not disturb the time of its folder there. */
static int copy_up(int top, const char *target, const int *lowers, size_t n, struct err *err)
{
	struct stat st, before;
	const char *base;
	ptrdiff_t slash = str_rchr(str_of(target), '/');
	str folder = str_head(str_of(target), slash < 0 ? 0 : (size_t)slash);
	CLEANUP(fd_closep) int from = -1;
	CLEANUP(fd_closep) int to = path_open_parent(top, target, &base, err);
	if (to < 0)
		return to;
	int r = find_file(top, folder, base, &from, &st);
	if (r != 0)
		return r > 0 ? 0 : err_set(err, ERR_INVALID, "the layer itself hides it");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = find_file(lowers[i], folder, base, &from, &st);
	if (r <= 0)
		return err_set(err, ERR_INVALID, "No such file in this layer or below");
	if (fstat(to, &before) < 0)
		return err_sys(err, errno, "stat");
	/* a few bytes of a layer can bring up any file again and again */
	if ((r = layer_check_disk(to, (uint64_t)st.st_blocks * 512, err)) < 0)
		return r;
	r = snapshot_copy_file(from, base, to, &st, err);
	if (r == 0 && utimensat(to, ".", (struct timespec[]){ before.st_atim, before.st_mtim }, 0) < 0)
		return err_sys(err, errno, "utimens");
	return r;
}

static int inherit_link(int top, const char *target, const char *name, const int *lowers, size_t n, struct err *err)
{
	struct stat st;
	const char *base, *target_base;
	CLEANUP(fd_closep) int to = path_open_parent(top, name, &base, NULL);
	bool there = to < 0 || fstatat(to, base, &st, AT_SYMLINK_NOFOLLOW) == 0;
	/* what came later in the layer has taken its place; but a whiteout is about lower layers */
	if (there && (to < 0 || !layer_is_whiteout(&st)))
		return 0;
	if (there && unlinkat(to, base, 0) < 0)
		return err_sys(err, errno, "unlink");
	int r = copy_up(top, target, lowers, n, err);
	if (r < 0)
		return r;
	CLEANUP(fd_closep) int from = path_open_parent(top, target, &target_base, err);
	if (from < 0)
		return from;
	if (fstat(to, &st) < 0 || linkat(from, target_base, to, base, 0) < 0 ||
	    utimensat(to, ".", (struct timespec[]){ st.st_atim, st.st_mtim }, 0) < 0)
		return err_sys(err, errno, "link");
	return 0;
}

static int inherit_links(int top, str pairs, const int *lowers, size_t n, struct err *err)
{
	int r = 0;
	for (size_t at = 0; r == 0 && at < pairs.n;) {
		const char *target = pairs.p + at, *name = target + strlen(target) + 1;
		r = inherit_link(top, target, name, lowers, n, err);
		if (r < 0)
			return err_wrap(err, err_wrap(err, r, "hard link to %.200s", target), "%.200s", name);
		at += strlen(target) + strlen(name) + 2;
	}
	return r;
}

int layer_inherit(int top, const struct layer_left *left, const int *lowers, size_t n, struct err *err)
{
	int r = inherit_links(top, buf_str(&left->links), lowers, n, err);
	return r < 0 ? r : inherit_folders(top, buf_str(&left->folders), lowers, n, err);
}
