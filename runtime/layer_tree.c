/*
 * Entries become files. Every entry is made in the folder that its name without the last part leads to, which is resolved inside the
 * top: links on the way are followed there and nowhere else. The last part is never followed. Entries of one folder mostly come
 * together, so the folder used last is kept open.
 */
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "runtime/layer.h"

#define WHITEOUT ".wh."
#define WHITEOUT_META ".wh..wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"
#define OPAQUE_XATTR "trusted.overlay.opaque"

struct layer_time {
	struct layer_time *before;
	const char *name;
	struct timespec times[2];
};

void layer_tree_init(struct layer_tree *t, int top, bool overlay, struct layer_left *left)
{
	*t = (struct layer_tree){ .top = top, .overlay = overlay, .parent = -1, .left = left };
	buf_init(&t->name, PATH_MAX - 1);
	buf_init(&t->link, PATH_MAX - 1);
	buf_init(&t->parent_name, PATH_MAX - 1);
}

void layer_tree_done(struct layer_tree *t)
{
	fd_closep(&t->parent);
	buf_done(&t->name);
	buf_done(&t->link);
	buf_done(&t->parent_name);
	arena_done(&t->names);
}

/* ---- names ---- */

static void drop_last(struct buf *out)
{
	ptrdiff_t slash = str_rchr(buf_str(out), '/');
	out->n = slash < 0 ? 0 : (size_t)slash;
	out->p[out->n] = '\0';
}

int layer_clean(struct buf *out, str name, struct err *err)
{
	str rest = name, part, shown = str_head(name, 200);
	size_t depth = 0;
	buf_reset(out);
	while (rest.n) {
		str_cut(rest, '/', &part, &rest);
		if (!part.n || str_eq(part, STR(".")))
			continue;
		if (str_eq(part, STR(".."))) {
			if (!depth--)
				return err_set(err, ERR_INVALID, "\"" STR_FMT "\" leads out of the layer", STR_ARG(shown));
			drop_last(out);
			continue;
		}
		if (part.n > NAME_MAX)
			return err_set(err, ERR_INVALID, "\"" STR_FMT "...\": a part of the name is longer than %d bytes", STR_ARG(shown),
				       NAME_MAX);
		if (++depth > LAYER_DEPTH_MAX)
			return err_set(err, ERR_INVALID, "\"" STR_FMT "...\" is more than %d folders deep", STR_ARG(shown),
				       LAYER_DEPTH_MAX);
		if (out->n)
			buf_addc(out, '/');
		buf_add(out, part);
	}
	if (out->overflow)
		return err_set(err, ERR_INVALID, "\"" STR_FMT "...\": the name is longer than %d bytes", STR_ARG(shown), PATH_MAX - 1);
	return 0;
}

/* ---- folders ---- */

bool layer_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

bool layer_is_opaque(int folder)
{
	char value[4];
	return fgetxattr(folder, OPAQUE_XATTR, value, sizeof(value)) == 1 && value[0] == 'y';
}

int layer_set_opaque(int folder, struct err *err)
{
	return fsetxattr(folder, OPAQUE_XATTR, "y", 1, 0) < 0 ? err_sys(err, errno, "extended attribute " OPAQUE_XATTR) : 0;
}

static void forget_parent(struct layer_tree *t)
{
	fd_closep(&t->parent);
	t->parent = -1;
}

static int open_folder(int parent, const char *name, struct err *err)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "open") : fd;
}

/* A new folder where nothing or a whiteout is; over a whiteout it hides the lower one. Its descriptor. */
static int make_folder(struct layer_tree *t, int parent, const char *name, struct err *err)
{
	struct stat st;
	bool hides = t->overlay && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && layer_is_whiteout(&st);
	if (hides && unlinkat(parent, name, 0) < 0)
		return err_sys(err, errno, "unlink");
	if (mkdirat(parent, name, 0700) < 0)
		return err_sys(err, errno, "mkdir");
	int fd = open_folder(parent, name, err);
	int r = fd < 0 ? fd : hides ? layer_set_opaque(fd, err) : 0;
	if (r < 0)
		fd_closep(&fd);
	return r < 0 ? r : fd;
}

static bool is_link(int parent, const char *name)
{
	struct stat st;
	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Makes the folder `name` (cleaned), for which there was no entry, and those above it. A link there leads to one that is made too. */
static int make_implied(struct layer_tree *t, str name, struct err *err)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(PATH_MAX - 1);
	str rest = name, part;
	const char *base;
	while (rest.n) {
		str_cut(rest, '/', &part, &rest);
		if (path.n)
			buf_addc(&path, '/');
		buf_add(&path, part);
		CLEANUP(fd_closep) int there = path_open(t->top, path.p, O_PATH | O_DIRECTORY, NULL);
		if (there >= 0)
			continue;
		CLEANUP(fd_closep) int parent = path_open_parent(t->top, path.p, &base, err);
		if (parent < 0)
			return parent;
		bool link = is_link(parent, base);
		CLEANUP(fd_closep) int made = link ? path_mkdirs(t->top, path.p, 0755, err) : make_folder(t, parent, base, err);
		if (made < 0)
			return made;
		if (link)
			continue;
		if (fchmod(made, 0755) < 0)
			return err_sys(err, errno, "chmod");
		if (t->left)
			buf_add(&t->left->folders, str_span(path.p, path.n + 1));
	}
	return t->left ? buf_check(&t->left->folders, "what the layer leaves out", err) : 0;
}

/* The folder of the entry at work, into t->parent; *ret_base is the last part of its name. */
static int enter_parent(struct layer_tree *t, const char **ret_base, struct err *err)
{
	ptrdiff_t slash = str_rchr(buf_str(&t->name), '/');
	str folder = str_head(buf_str(&t->name), slash < 0 ? 0 : (size_t)slash);
	*ret_base = t->name.p + slash + 1;
	if (t->parent >= 0 && str_eq(folder, buf_str(&t->parent_name)))
		return 0;
	forget_parent(t);
	buf_reset(&t->parent_name);
	buf_add(&t->parent_name, folder);
	const char *name = folder.n ? t->parent_name.p : ".";
	t->parent = path_open(t->top, name, O_PATH | O_DIRECTORY, err);
	if (t->parent == -ERR_NOT_FOUND) {
		int r = make_implied(t, folder, err);
		t->parent = r < 0 ? r : path_open(t->top, name, O_PATH | O_DIRECTORY, err);
	}
	return t->parent < 0 ? t->parent : 0;
}

/* ---- whiteouts ---- */

static int whiteout_name(const char *base, const char **ret, struct err *err)
{
	*ret = base + sizeof(WHITEOUT) - 1;
	str name = str_of(*ret);
	if (!name.n || str_eq(name, STR(".")) || str_eq(name, STR("..")))
		return err_set(err, ERR_INVALID, "a whiteout of nothing");
	return 0;
}

/* In the form of overlayfs. */
static int add_whiteout(struct layer_tree *t, const char *base, struct err *err)
{
	const char *name;
	struct stat st;
	if (str_eq(str_of(base), STR(WHITEOUT_OPAQUE))) {
		CLEANUP(fd_closep) int fd = open_folder(t->parent, ".", err);
		return fd < 0 ? fd : layer_set_opaque(fd, err);
	}
	if (str_starts(str_of(base), STR(WHITEOUT_META)))
		return 0; /* bookkeeping of aufs */
	int r = whiteout_name(base, &name, err);
	if (r < 0)
		return r;
	if (fstatat(t->parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return mknodat(t->parent, name, S_IFCHR, makedev(0, 0)) < 0 ? err_sys(err, errno, "mknod") : 0;
	if (!S_ISDIR(st.st_mode))
		return 0; /* of this layer, and hides what is below */
	CLEANUP(fd_closep) int fd = open_folder(t->parent, name, err);
	return fd < 0 ? fd : layer_set_opaque(fd, err);
}

int layer_folder_names(int folder, struct buf *ret, struct err *err)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;
	if (!dir) {
		int sys = errno;
		fd_closep(&copy);
		return err_sys(err, sys, "reading a folder");
	}
	while ((errno = 0, d = readdir(dir)))
		if (!str_eq(str_of(d->d_name), STR(".")) && !str_eq(str_of(d->d_name), STR("..")))
			buf_add(ret, str_span(d->d_name, strlen(d->d_name) + 1));
	int sys = errno;
	closedir(dir);
	return sys ? err_sys(err, sys, "reading a folder") : buf_check(ret, "the names in a folder", err);
}

static int remove_all_in(int folder, struct err *err)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(LAYER_NAMES_MAX);
	int r = layer_folder_names(folder, &names, err);
	for (size_t at = 0; r == 0 && at < names.n; at += strlen(names.p + at) + 1)
		r = path_remove(folder, names.p + at, err);
	return r;
}

int layer_tree_apply_whiteout(struct layer_tree *t, struct archive_entry *e, struct err *err)
{
	const char *name;
	int r = layer_clean(&t->name, str_of(archive_entry_pathname(e)), err);
	if (r < 0 || !t->name.n)
		return r;
	ptrdiff_t slash = str_rchr(buf_str(&t->name), '/');
	const char *base = t->name.p + slash + 1;
	bool opaque = str_eq(str_of(base), STR(WHITEOUT_OPAQUE));
	if (!str_starts(str_of(base), STR(WHITEOUT)) || (!opaque && str_starts(str_of(base), STR(WHITEOUT_META))))
		return 0;
	/* as with overlayfs, what is behind a link is another folder's business */
	CLEANUP(fd_closep) int fd = -1;
	if (layer_find_folder(t->top, str_head(buf_str(&t->name), slash < 0 ? 0 : (size_t)slash), &fd) <= 0)
		return 0;
	if (opaque)
		return remove_all_in(fd, err);
	if ((r = whiteout_name(base, &name, err)) < 0)
		return err_wrap(err, r, "%.200s", t->name.p);
	r = path_remove(fd, name, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* ---- files ---- */

/* Makes room for the entry. 1: a folder is there, and stays. */
static int clear_way(struct layer_tree *t, const char *base, bool folder, struct err *err)
{
	struct stat st;
	if (fstatat(t->parent, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "stat");
	if (folder && (S_ISDIR(st.st_mode) || (t->overlay && layer_is_whiteout(&st))))
		return S_ISDIR(st.st_mode);
	if (!S_ISDIR(st.st_mode))
		return unlinkat(t->parent, base, 0) < 0 ? err_sys(err, errno, "unlink") : 0;
	return path_remove(t->parent, base, err);
}

static int add_file(struct layer_tree *t, struct layer_reader *l, struct archive_entry *e, const char *base, struct err *err)
{
	int64_t size = archive_entry_size(e), offset;
	str data;
	CLEANUP(fd_closep) int fd = openat(t->parent, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, "create");
	int r;
	while ((r = layer_reader_data(l, &data, &offset, err)) > 0) {
		if (offset < 0 || size < 0 || (uint64_t)offset + data.n > (uint64_t)size)
			return err_set(err, ERR_INVALID, "content beyond its size of %lld bytes", (long long)size);
		if ((r = file_write_fd(fd, data, offset, "write", err)) < 0 || (r = layer_tree_check_room(t, data.n, err)) < 0)
			return r;
	}
	if (r < 0)
		return r;
	/* what the tar has no bytes for, at the end too, is a hole */
	if (ftruncate(fd, size) < 0)
		return err_sys(err, errno, "truncate to %lld bytes", (long long)size);
	return layer_set_meta(fd, e, true, err);
}

static int keep_time(struct layer_tree *t, struct archive_entry *e, struct err *err)
{
	struct timespec times[2];
	if (!layer_time(e, times))
		return 0;
	if (t->names.used > LAYER_NAMES_MAX)
		return err_set(err, ERR_TOO_LARGE, "the names of folders are longer than %d bytes in all", LAYER_NAMES_MAX);
	struct layer_time *lt = ARENA_NEW(&t->names, struct layer_time);
	*lt = (struct layer_time){ t->times, arena_str(&t->names, t->name.n ? buf_str(&t->name) : STR(".")).p, { times[0], times[1] } };
	t->times = lt;
	return 0;
}

static int add_folder(struct layer_tree *t, struct archive_entry *e, const char *base, bool there, struct err *err)
{
	CLEANUP(fd_closep) int fd = there ? open_folder(t->parent, base, err) : make_folder(t, t->parent, base, err);
	if (fd < 0)
		return fd;
	int r = layer_set_meta(fd, e, false, err);
	return r < 0 ? r : keep_time(t, e, err);
}

/* What is not in this layer may be in a lower one, as when a file got a second name and nothing else. */
static int leave_link(struct layer_tree *t, struct err *err)
{
	ptrdiff_t slash = str_rchr(buf_str(&t->link), '/');
	int r = slash < 0 ? 0 : make_implied(t, str_head(buf_str(&t->link), (size_t)slash), err);
	buf_add(&t->left->links, str_span(t->link.p, t->link.n + 1));
	buf_add(&t->left->links, str_span(t->name.p, t->name.n + 1));
	return r < 0 ? r : buf_check(&t->left->links, "the hard links to lower layers", err);
}

/* Of something in this layer (applied: in the tree), and never followed itself. */
static int add_hard_link(struct layer_tree *t, const char *target, const char *base, struct err *err)
{
	struct stat st;
	const char *name;
	int r = layer_clean(&t->link, str_of(target), err);
	if (r < 0)
		return r;
	CLEANUP(fd_closep) int from = path_open_parent(t->top, t->link.n ? t->link.p : ".", &name, err);
	bool missing = from == -ERR_NOT_FOUND || (from >= 0 && fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT);
	if (missing && t->left && t->link.n)
		return leave_link(t, err);
	if (from < 0)
		return err_wrap(err, from == -ERR_SYSTEM ? from : -ERR_INVALID, "hard link to %s", target);
	if (linkat(from, name, t->parent, base, 0) < 0)
		return err_set(err, errno == ENOENT || errno == EPERM ? ERR_INVALID : ERR_SYSTEM, "hard link to %s: %s", target,
			       strerror(errno));
	return 0;
}

static int add_node(struct layer_tree *t, struct archive_entry *e, const char *base, struct err *err)
{
	mode_t type = archive_entry_filetype(e);
	dev_t dev = type == AE_IFIFO ? 0 : makedev((unsigned)archive_entry_rdevmajor(e), (unsigned)archive_entry_rdevminor(e));
	if (mknodat(t->parent, base, type | 0600, dev) < 0)
		return err_sys(err, errno, "mknod");
	return layer_set_node_meta(t->parent, base, e, err);
}

static int add_symlink(struct layer_tree *t, struct archive_entry *e, const char *base, struct err *err)
{
	const char *target = archive_entry_symlink(e);
	if (!target || !*target || strlen(target) >= PATH_MAX)
		return err_set(err, ERR_INVALID, "a symbolic link to nothing, or to too long a name");
	if (symlinkat(target, t->parent, base) < 0)
		return err_sys(err, errno, "symlink");
	return layer_set_node_meta(t->parent, base, e, err);
}

static int add_made(struct layer_tree *t, struct layer_reader *l, struct archive_entry *e, const char *base, struct err *err)
{
	mode_t type = archive_entry_filetype(e);
	const char *link = archive_entry_hardlink(e);
	/* a link to itself must not be removed before it is there */
	if (link && layer_clean(&t->link, str_of(link), err) == 0 && str_eq(buf_str(&t->link), buf_str(&t->name)))
		return err_set(err, ERR_INVALID, "a hard link to itself");
	int r = clear_way(t, base, !link && type == AE_IFDIR, err);
	if (r < 0)
		return r;
	if (link)
		return add_hard_link(t, link, base, err);
	switch (type) {
	case AE_IFREG:
		return add_file(t, l, e, base, err);
	case AE_IFDIR:
		return add_folder(t, e, base, r > 0, err);
	case AE_IFLNK:
		return add_symlink(t, e, base, err);
	case AE_IFCHR:
	case AE_IFBLK:
	case AE_IFIFO:
		return add_node(t, e, base, err);
	default:
		return err_set(err, ERR_INVALID, "a kind of file that layers do not have (%o)", (unsigned)type);
	}
}

static int add_top(struct layer_tree *t, struct archive_entry *e, struct err *err)
{
	if (archive_entry_hardlink(e) || archive_entry_filetype(e) != AE_IFDIR)
		return err_set(err, ERR_INVALID, "the top of a layer is a folder");
	CLEANUP(fd_closep) int fd = open_folder(t->top, ".", err);
	int r = fd < 0 ? fd : layer_set_meta(fd, e, false, err);
	t->has_top = true;
	return r < 0 ? r : keep_time(t, e, err);
}

int layer_tree_add(struct layer_tree *t, struct layer_reader *l, struct archive_entry *e, struct err *err)
{
	const char *base, *text = archive_entry_pathname(e);
	int r = text ? layer_clean(&t->name, str_of(text), err) : err_set(err, ERR_INVALID, "an entry without a name");
	if (r < 0)
		return r;
	if (++t->files > LAYER_ENTRIES_MAX)
		return err_set(err, ERR_TOO_LARGE, "the layer has more than %d entries", LAYER_ENTRIES_MAX);
	if (!t->name.n)
		return add_top(t, e, err);
	r = enter_parent(t, &base, err);
	if (r == 0 && str_starts(str_of(base), STR(WHITEOUT)))
		r = t->overlay ? add_whiteout(t, base, err) : 0;
	else if (r == 0)
		r = add_made(t, l, e, base, err);
	return r < 0 ? err_wrap(err, r, "%.200s", t->name.p) : layer_tree_check_room(t, 0, err);
}

int layer_tree_finish(struct layer_tree *t, struct err *err)
{
	forget_parent(t);
	/* the newest first: of several entries of one folder the last is right, so it must be set after the others */
	struct layer_time *turned = NULL;
	while (t->times) {
		struct layer_time *lt = t->times;
		t->times = lt->before;
		lt->before = turned;
		turned = lt;
	}
	for (; turned; turned = turned->before) {
		/* it may have been replaced by something else since */
		CLEANUP(fd_closep) int fd = path_open(t->top, turned->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, NULL);
		if (fd >= 0 && futimens(fd, turned->times) < 0)
			return err_sys(err, errno, "%.200s: utimens", turned->name);
	}
	return 0;
}
