/*
 * subPath: a part of a volume, into which containers may write at this very moment. Every part of the path is opened by itself, from the
 * descriptor of the one before and never following a link; a link's text takes the place of the part, and the walk begins anew at the
 * top of the volume. So there is no moment at which a name is looked at and used later: what was opened is what is mounted, at a
 * place in the kubelet's own folder that no container can reach. Links that lead out of the volume are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "kubelet/volume_priv.h"

enum { LINKS_MAX = 40, TRIES_MAX = 40, MISSING_MAX = 1024 };

/* ---- the text ---- */

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* The names in $(NAME) that have no value in the map. */
static size_t find_missing(str text, const struct map *values, str *names)
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < text.n; i++) {
		if (text.p[i] != '$')
			continue;
		i++;
		ptrdiff_t end = text.p[i] == '(' ? str_chr(str_skip(text, i), ')') : -1;
		if (end < 0)
			continue;
		str name = str_span(text.p + i + 1, (size_t)end - 1);
		if (!map_get(values, name))
			names[n++] = name;
		i += (size_t)end;
	}
	return n;
}

/* Those names sorted, each once, with commas; as many as a message has room for. */
static str missing_names(struct arena *a, str text, struct val env)
{
	CLEANUP(map_done) struct map values = MAP_INIT;
	str *names = ARENA_ARRAY(a, str, text.n / 3 + 1), all = STR_NONE;

	map_init(&values);
	VAL_EACH(e, env)
		if (val_str(*e, value).n)
			map_put(&values, val_str(*e, key), a);
	size_t n = find_missing(text, &values, names);
	if (n)
		qsort(names, n, sizeof *names, by_text);
	for (size_t i = 0; i < n && all.n < MISSING_MAX; i++)
		if (i == 0 || !str_eq(names[i], names[i - 1]))
			all = arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(all), i ? ", " : "", STR_ARG(names[i]));
	return all;
}

int volume_sub_path_text(struct arena *a, struct val mount, struct val env, str *ret, struct err *err)
{
	str text = val_str(mount, subPath), expression = val_str(mount, subPathExpr), part, rest;

	if (expression.n) {
		str missing = missing_names(a, expression, env);
		if (missing.p)
			return err_set(err, ERR_INVALID, "missing value for " STR_FMT, STR_ARG(missing));
		text = env_expand(a, expression, env);
	}
	if (str_starts(text, STR("/")))
		return err_set(err, ERR_INVALID, "error SubPath `" STR_FMT "` must not be an absolute path", STR_ARG(text));
	rest = text;
	for (bool more = true; more;) {
		more = str_cut(rest, '/', &part, &rest);
		if (str_eq(part, STR("..")))
			return err_set(err, ERR_INVALID, "unable to provision SubPath `" STR_FMT "`: must not contain '..'", STR_ARG(text));
	}
	*ret = text;
	return 0;
}

/* ---- opening ---- */

struct walk {
	struct arena *arena;
	int top;
	mode_t mode;                     /* of the volume: folders that are made get it */
	const char *volume;              /* its path on the node, without links */
	str path;                        /* below the volume; clean */
	unsigned links;
	bool making;                     /* what failed was making a folder */
};

/* Joins the text of a link at the end of `before` with what follows; -ERR_FORBIDDEN when that is outside. */
static int follow(struct walk *w, str before, str link, str rest, struct err *err)
{
	str whole, part, volume = str_of(w->volume);
	ptrdiff_t depth = 0;

	if (++w->links > LINKS_MAX)
		return err_set(err, ERR_FORBIDDEN, "too many links");
	if (str_starts(link, STR("/"))) {
		str clean = path_clean(w->arena, link);
		if (str_eq(volume, STR("/")))
			volume = STR(""); /* all is inside */
		if (!str_starts(clean, volume) || (clean.n > volume.n && clean.p[volume.n] != '/'))
			return err_set(err, ERR_FORBIDDEN, "a link leads to " STR_FMT, STR_ARG(link));
		before = STR_NONE;
		link = str_skip(clean, volume.n);
	}
	whole = arena_printf(w->arena, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(before), STR_ARG(link), STR_ARG(rest));
	if (whole.n >= PATH_MAX)
		return err_set(err, ERR_FORBIDDEN, "a link is too long");
	/* path_clean stops at the top; here that would be another place than the one that was meant. */
	for (str left = whole; left.n;) {
		(void)str_cut(left, '/', &part, &left);
		depth += str_eq(part, STR("..")) ? -1 : part.n && !str_eq(part, STR("."));
		if (depth < 0)
			return err_set(err, ERR_FORBIDDEN, "a link leads out of the volume");
	}
	w->path = str_skip(path_clean(w->arena, whole), 1);
	return 0;
}

/* A folder that is missing, as open as the volume itself whatever our umask is. */
static int make_folder(struct walk *w, int parent, const char *name)
{
	char text[PATH_FD_TEXT];

	bool made = mkdirat(parent, name, 0700) == 0;
	if (!made && errno != EEXIST)
		return -1;
	int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && made)
		(void)chmod(path_of_fd(fd, text), w->mode & 07777);
	return fd;
}

/* One part below parent: its descriptor; for a link, of the link itself. */
static int open_part(struct walk *w, int parent, const char *name, struct err *err)
{
	int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT) {
		w->making = true;
		fd = make_folder(w, parent, name);
	}
	return fd < 0 ? volume_fail(err, errno, w->making ? "mkdir" : "open", name) : fd;
}

static int read_link(struct walk *w, int fd, str *ret, struct err *err)
{
	char *text = arena_alloc(w->arena, PATH_MAX, 1);
	ssize_t n = readlinkat(fd, "", text, PATH_MAX);

	if (n <= 0 || n == PATH_MAX)
		return volume_fail(err, n < 0 ? errno : ENAMETOOLONG, "readlink", "a part of the path");
	*ret = str_span(text, (size_t)n);
	return 0;
}

/* Along w->path: a descriptor, or -ERR_CONFLICT when a link has changed the path. */
static int walk_once(struct walk *w, struct err *err)
{
	int at = fcntl(w->top, F_DUPFD_CLOEXEC, 0);
	str rest = w->path, part, link = STR_NONE;
	struct stat st;

	if (at < 0)
		return volume_fail(err, errno, "dup", w->volume);
	while (rest.n) {
		str before = str_head(w->path, (size_t)(rest.p - w->path.p));
		(void)str_cut(rest, '/', &part, &rest);
		if (!part.n)
			continue;
		int next = open_part(w, at, arena_str(w->arena, part).p, err);
		close(at);
		if (next < 0)
			return next;
		at = next;
		if (fstat(at, &st) < 0 || !S_ISLNK(st.st_mode))
			continue;
		int r = read_link(w, at, &link, err);
		close(at);
		if (r == 0)
			r = follow(w, before, link, rest, err);
		return r < 0 ? r : -ERR_CONFLICT;
	}
	return at;
}

static int open_sub_path(struct walk *w, struct err *err)
{
	int fd;

	do
		fd = walk_once(w, err);
	while (fd == -ERR_CONFLICT);
	return fd;
}

/* ---- mounting ---- */

static bool is_same(const char *target, int fd)
{
	struct stat is, wanted;

	return lstat(target, &is) == 0 && fstat(fd, &wanted) == 0 && is.st_dev == wanted.st_dev && is.st_ino == wanted.st_ino;
}

static int make_target(const char *target, int fd, struct err *err)
{
	struct stat st, is;

	if (fstat(fd, &st) < 0)
		return volume_fail(err, errno, "stat", target);
	if (lstat(target, &is) == 0 && S_ISDIR(is.st_mode) == S_ISDIR(st.st_mode))
		return 0;
	(void)unlink(target);
	(void)rmdir(target);
	if (S_ISDIR(st.st_mode))
		return mkdir(target, 0750) < 0 ? volume_fail(err, errno, "mkdir", target) : 0;
	/* A file will do for everything that is no folder. */
	return file_replace(target, STR(""), 0640, err);
}

static int mount_at(const char *folder, const char *target, int fd, struct err *err)
{
	int r = file_make_dirs(folder, 0750, err);

	for (int tries = 0; r == 0 && volume_is_mounted(target); tries++) {
		if (is_same(target, fd))
			return 0;
		r = tries == TRIES_MAX ? err_set(err, ERR_SYSTEM, "%s: too many mounts", target) : volume_unmount(target, err);
	}
	if (r == 0)
		r = make_target(target, fd, err);
	return r < 0 ? r : volume_bind(fd, target, false, err);
}

static int sub_path_open(struct walk *w, struct err *err)
{
	struct stat st;

	w->top = path_open_tree(w->volume, err);
	if (w->top < 0)
		return w->top;
	if (fstat(w->top, &st) < 0)
		return volume_fail(err, errno, "stat", w->volume);
	w->mode = st.st_mode;
	return open_sub_path(w, err);
}

int volume_sub_path(struct arena *a, const char *pod_folder, const struct volume *v, str container, size_t index, str sub_path,
		    const char **ret_path, struct err *err)
{
	const char *folder = arena_printf(a, "%s/volume-subpaths/" STR_FMT "/" STR_FMT, pod_folder, STR_ARG(v->inner), STR_ARG(container)).p;
	const char *target = arena_printf(a, "%s/%zu", folder, index).p;
	struct err why = ERR_INIT;
	char *real = realpath(v->path, NULL);
	struct walk w = { .arena = a, .top = -1, .volume = arena_str(a, str_of(real ? real : v->path)).p,
			  .path = str_skip(path_clean(a, sub_path), 1) };

	free(real);
	int r, fd = sub_path_open(&w, &why);
	bool opened = fd >= 0;
	r = opened ? mount_at(folder, target, fd, &why) : fd;
	volume_close(&fd);
	volume_close(&w.top);
	*ret_path = target;
	if (r == 0)
		return 0;
	/* What is wrong is for the log alone: it would tell the pod about the node's files. */
	log_warn("cannot mount a subPath", KV("volume", v->path), KV("subPath", sub_path), KV("error", &why));
	return err_set(err, ERR_FORBIDDEN, "failed to %s subPath%s for volumeMount \"" STR_FMT "\" of container \"" STR_FMT "\"",
		       w.making && !opened ? "create" : "prepare", w.making && !opened ? " directory" : "", STR_ARG(v->name),
		       STR_ARG(container));
}
