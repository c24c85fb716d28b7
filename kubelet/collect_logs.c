/*
 * Logs: rotated when they are large, removed with their containers and pods. c/0.log, rotated c/0.log.20261115-101112, later with .gz; what
 * ends in .tmp was being compressed when the kubelet ended. The newest rotated one stays as it is, as readers may not be through with it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/collect_priv.h"
#include "kubelet/cri_config.h"
#include "kubelet/pod_rules.h"

enum { COPY_BYTES = 1 << 16 };

str collect_log_path(const struct collect_options *o, struct arena *a, struct val container)
{
	struct val labels = val_get(container, labels);
	struct val pod = OBJECT(a, F(metadata, OBJECT(a, F(name, val_find(labels, STR("io.kubernetes.pod.name"))),
						      F(namespace, val_find(labels, STR("io.kubernetes.pod.namespace"))),
						      F(uid, val_find(labels, STR("io.kubernetes.pod.uid"))))));
	str name = val_str(container, metadata, name);

	if (!val_str(pod, metadata, uid).n || !name.n || str_chr(name, '/') >= 0)
		return STR_NONE;
	return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(pod_log_folder(o->node, a, pod)),
			    STR_ARG(container_log_path(a, name, (unsigned)val_int(container, metadata, attempt))));
}

/* ---- one log and those rotated from it ---- */

struct log_job {
	const char *path;
	int max_files;
};

static int name_order(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* Names beside path that begin with it and '.', sorted: the oldest first. */
static size_t rotated_names(struct arena *a, int folder, str base, str **ret)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	str prefix = arena_join(a, base, STR(".")), *all = NULL;
	size_t n = 0, cap = 0;

	if (!dir) {
		fd_closep(&fd);
		return 0;
	}
	for (struct dirent *e; (e = readdir(dir));) {
		if (!str_starts(str_of(e->d_name), prefix))
			continue;
		if (n == cap) {
			str *more = ARENA_ARRAY(a, str, cap = cap ? 2 * cap : 8);
			if (n)
				memcpy(more, all, n * sizeof(*all));
			all = more;
		}
		all[n++] = arena_str(a, str_of(e->d_name));
	}
	closedir(dir);
	if (n)
		qsort(all, n, sizeof(*all), name_order);
	*ret = all;
	return n;
}

/* Begun and not ended, or compressed already. */
static bool is_unused(struct arena *a, const str *names, size_t n, str name)
{
	str compressed = arena_join(a, name, STR(".gz"));

	if (str_ends(name, STR(".tmp")))
		return true;
	for (size_t i = 0; i < n; i++)
		if (str_eq(names[i], compressed))
			return true;
	return false;
}

static int copy_compressed(int from, int to, const char *name, struct err *err)
{
	gzFile z = gzdopen(dup(to), "wb");
	char *room = mem_alloc(COPY_BYTES);
	ssize_t n = -1;
	int r = 0;

	if (z)
		while ((n = read(from, room, COPY_BYTES)) > 0 && gzwrite(z, room, (unsigned)n) == n)
			;
	if (n != 0)
		r = err_sys(err, n < 0 && errno ? errno : EIO, "compress %s", name);
	if (z && gzclose(z) != Z_OK && r >= 0)
		r = err_sys(err, EIO, "compress %s", name);
	free(room);
	return r;
}

static int compress_log(struct arena *a, int folder, str name, struct err *err)
{
	const char *temporary = arena_join(a, name, STR(".tmp")).p, *final = arena_join(a, name, STR(".gz")).p;
	CLEANUP(fd_closep) int from = openat(folder, name.p, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), to = -1;
	struct stat st;
	int r;

	if (from < 0 || fstat(from, &st) < 0)
		return err_sys(err, errno, "open log %s", name.p);
	to = openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, st.st_mode & 0777);
	if (to < 0)
		return err_sys(err, errno, "make log %s", temporary);
	if ((r = copy_compressed(from, to, name.p, err)) >= 0 && renameat(folder, temporary, folder, final) < 0)
		r = err_sys(err, errno, "rename log %s", temporary);
	if (r < 0)
		(void)unlinkat(folder, temporary, 0);
	else if (unlinkat(folder, name.p, 0) < 0)
		r = err_sys(err, errno, "remove log %s", name.p);
	return r;
}

/* The folder of a log, and its name in it. */
static int open_folder(struct arena *a, const char *path, str *ret_name, struct err *err)
{
	str text = str_of(path);
	ptrdiff_t slash = str_rchr(text, '/');
	str folder = arena_str(a, str_head(text, (size_t)MAX(slash, (ptrdiff_t)0)));
	int fd = open(folder.p, O_PATH | O_DIRECTORY | O_CLOEXEC);

	*ret_name = str_skip(text, (size_t)(slash + 1));
	return fd < 0 ? err_sys(err, errno, "open %s", folder.p) : fd;
}

/* In the thread pool. Makes room for one more: without the oldest, and the others compressed. */
static int tidy_rotated(void *arg, struct err *err)
{
	const struct log_job *j = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str base, *names = NULL;
	CLEANUP(fd_closep) int folder = open_folder(&a, j->path, &base, err);
	size_t n, kept = 0, keep = (size_t)MAX(j->max_files - 2, 0);
	int r = 0;

	if (folder < 0)
		return folder;
	n = rotated_names(&a, folder, base, &names);
	str *used = ARENA_ARRAY(&a, str, n + 1);
	for (size_t i = 0; i < n; i++) {
		if (!is_unused(&a, names, n, names[i]))
			used[kept++] = names[i];
		else if (unlinkat(folder, names[i].p, 0) < 0 && errno != ENOENT)
			return err_sys(err, errno, "failed to remove unused log \"%s\"", names[i].p);
	}
	for (size_t i = 0; i < kept && r >= 0; i++) {
		if (kept - i > keep)
			r = unlinkat(folder, used[i].p, 0) < 0 && errno != ENOENT ? err_sys(err, errno, "failed to remove old log \"%s\"", used[i].p) : 0;
		else if (!str_ends(used[i], STR(".gz")))
			r = compress_log(&a, folder, used[i], err);
	}
	return r;
}

static int remove_log(void *arg, struct err *err)
{
	const struct log_job *j = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str base, *names = NULL;
	CLEANUP(fd_closep) int folder = open_folder(&a, j->path, &base, err);

	if (folder < 0)
		return 0;
	size_t n = rotated_names(&a, folder, base, &names);
	for (size_t i = 0; i < n; i++)
		(void)unlinkat(folder, names[i].p, 0);
	(void)unlinkat(folder, base.p, 0);
	return 0;
}

void collect_remove_log(const struct collect_options *o, struct val container)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct log_job j = { .path = collect_log_path(o, &a, container).p };

	if (j.path)
		(void)fiber_blocking(remove_log, &j, NULL);
}

/* ---- rotation ---- */

static int reopen(const struct collect_options *o, struct arena *a, str id, struct err *err)
{
	struct val reply;

	return cri_ask(o->cri, &rpc_RuntimeService_ReopenContainerLog, a, OBJECT(a, F(containerId, VAL_STR(id))), 0, &reply, err);
}

static int rotate(const struct collect_options *o, struct arena *a, str id, const char *path, struct err *err)
{
	struct log_job j = { path, o->log_max_files };
	time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
	struct tm tm;
	char stamp[32];
	int r = fiber_blocking(tidy_rotated, &j, err);

	if (r < 0)
		return r;
	strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	const char *rotated = arena_printf(a, "%s.%s", path, stamp).p;
	if (rename(path, rotated) < 0)
		return err_sys(err, errno, "failed to rotate log \"%s\" to \"%s\"", path, rotated);
	if ((r = reopen(o, a, id, err)) >= 0)
		return 0;
	/* Back, to be tried again in the next round. */
	if (rename(rotated, path) < 0)
		log_error("cannot put a log back", KV("log", path), KV("rotated", rotated));
	return err_wrap(err, r, "failed to reopen container log \"" STR_FMT "\"", STR_ARG(id));
}

static int look_at(const struct collect_options *o, struct arena *a, struct val container, struct err *err)
{
	const char *path = collect_log_path(o, a, container).p;
	str id = val_str(container, id);
	struct stat st;
	int r;

	if (!path)
		return 0;
	if (lstat(path, &st) < 0) {
		if (errno != ENOENT)
			return err_sys(err, errno, "failed to stat container log %s", path);
		/* The kubelet ended between renaming and opening anew. */
		if ((r = reopen(o, a, id, err)) < 0)
			return r;
		if (lstat(path, &st) < 0)
			return err_sys(err, errno, "failed to stat container log after reopen %s", path);
	}
	return st.st_size < o->log_max_bytes || !S_ISREG(st.st_mode) ? 0 : rotate(o, a, id, path, err);
}

int collect_logs(const struct collect_options *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val running = OBJECT(&a, F(filter, OBJECT(&a, F(state, OBJECT(&a, F(state, VAL_LIT("CONTAINER_RUNNING"))))))), reply;
	int r;

	if (o->log_max_bytes <= 0)
		return 0;
	if ((r = cri_ask(o->cri, &rpc_RuntimeService_ListContainers, &a, running, 0, &reply, err)) < 0)
		return err_wrap(err, r, "failed to list containers");
	VAL_EACH(c, val_get(reply, containers)) {
		struct err why = ERR_INIT;
		/* What does not write any more is not rotated. */
		if (container_cri_state(*c) != CRI_RUNNING || look_at(o, &a, *c, &why) >= 0)
			continue;
		if ((r = fiber_check(err)) < 0)
			return r;
		log_warn("cannot rotate a log", KV("container", val_str(*c, id)), KV("err", &why));
	}
	return 0;
}

/* ---- folders and links ---- */

struct folder_job {
	const char *root, *name;
};

static int remove_folder(void *arg, struct err *err)
{
	const struct folder_job *j = arg;
	CLEANUP(fd_closep) int tree = path_open_tree(j->root, err);

	return tree < 0 ? tree : path_remove(tree, j->name, err);
}

/* All names in a folder that end so, in the arena. */
static struct val names_in(struct arena *a, const char *path, str suffix)
{
	struct val_builder b = val_builder(a);
	DIR *dir = opendir(path);

	if (!dir)
		return VAL_EMPTY_LIST;
	for (struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.' && str_ends(str_of(e->d_name), suffix))
			val_add_item(&b, val_of_str(arena_str(a, str_of(e->d_name))));
	closedir(dir);
	return val_end_list(&b);
}

/* Links <pod>_<ns>_<container>-<id>.log in the folder "containers" beside that of the pods. One of a container that lives is being rotated. */
static void remove_link(const struct collect_options *o, struct arena *a, str folder, str name)
{
	const char *path = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(folder), STR_ARG(name)).p;
	str id = str_head(name, name.n - (sizeof(".log") - 1));
	ptrdiff_t dash = str_rchr(id, '-');
	struct stat st;
	struct val reply;

	if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode) || stat(path, &st) == 0 || errno != ENOENT)
		return;
	if (dash >= 0 && cri_ask(o->cri, &rpc_RuntimeService_ContainerStatus, a, OBJECT(a, F(containerId, VAL_STR(str_skip(id, (size_t)dash + 1)))),
				 0, &reply, NULL) >= 0 && container_cri_state(val_get(reply, status)) != CRI_EXITED)
		return;
	(void)unlink(path);
}

static bool is_later(const struct stat *x, const struct stat *y)
{
	return x->st_mtim.tv_sec != y->st_mtim.tv_sec ? x->st_mtim.tv_sec > y->st_mtim.tv_sec : x->st_mtim.tv_nsec > y->st_mtim.tv_nsec;
}

/*
 * Of several links to one log the latest is its container's: a container that was removed behind our back, with all that could tell how often
 * it was started, is followed by one that begins to count anew.
 */
static void remove_former_links(struct arena *a, str folder, struct val names)
{
	CLEANUP(map_done) struct map latest = MAP_INIT;

	VAL_EACH(v, names) {
		char to[PATH_MAX];
		struct stat st, other;
		const char *path = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(folder), STR_ARG(val_as_str(*v))).p;
		ssize_t n = readlink(path, to, sizeof(to));
		if (n <= 0 || stat(path, &st) < 0 || lstat(path, &st) < 0)
			continue;
		str log = arena_str(a, str_span(to, (size_t)n));
		const char *known = map_get(&latest, log);
		bool later = !known || lstat(known, &other) < 0 || is_later(&st, &other);
		if (known)
			(void)unlink(later ? known : path);
		if (later)
			map_put(&latest, log, (void *)path);
	}
}

int collect_folders(const struct collect_options *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str root = arena_str(&a, o->node->log_root);
	ptrdiff_t slash = str_rchr(root, '/');
	int r;

	VAL_EACH(v, names_in(&a, root.p, STR_NONE)) {
		str name = val_as_str(*v), uid = str_skip(name, (size_t)(str_rchr(name, '_') + 1));
		struct folder_job j = { root.p, name.p };
		struct err why = ERR_INIT;
		/* <ns>_<name>_<uid>; others are not ours. */
		if (str_chr(name, '_') == str_rchr(name, '_') || !uid.n || !o->deleted(o->arg, uid) || fiber_blocking(remove_folder, &j, &why) >= 0)
			continue;
		if ((r = fiber_check(err)) < 0)
			return r;
		log_warn("cannot remove the logs of a pod", KV("folder", name), KV("err", &why));
	}
	str links = arena_printf(&a, STR_FMT "/containers", STR_ARG(str_head(root, (size_t)MAX(slash, (ptrdiff_t)0))));
	remove_former_links(&a, links, names_in(&a, links.p, STR(".log")));
	VAL_EACH(v, names_in(&a, links.p, STR(".log")))
		remove_link(o, &a, links, val_as_str(*v));
	return 0;
}
