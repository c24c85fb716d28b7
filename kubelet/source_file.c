/*
 * staticPodPath: a folder of manifests, or one manifest. The kernel says when something changes (inotify), and every file_check_ms all
 * is looked at anyway. Files are read again only when stat shows another one.
 *
 * A file that becomes unreadable or wrong does not end its pod at once, since it may be half written, but at the next full check.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "kubelet/source_priv.h"

enum { WATCH_RETRY_MS = 1000, EVENTS_BYTES = 2048, FILES_MAX = 10000 };

#define FOLDER_EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define LOST_EVENTS (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)

/* A manifest that was read, or could not be. */
struct manifest {
	struct list link;
	char *path;
	struct stat st;               /* when it was read */
	struct frozen *pod;           /* NULL: none (yet) */
	bool failed;                  /* what the file says now is not the pod */
	bool found;                   /* by the check at hand */
};

struct folder {
	struct sources *sources;
	str path;
	struct list manifests;        /* in the order of paths */
	int inotify, watch;           /* -1: none */
	bool complained;              /* about the path as a whole */
	struct arena scratch;
};

/* ---- manifests ---- */

static void manifest_free(struct manifest *m)
{
	list_remove(&m->link);
	frozen_unref(m->pod);
	free(m->path);
	free(m);
}

static struct manifest *manifest_of(struct folder *f, str path)
{
	struct list *before = &f->manifests;

	LIST_EACH(struct manifest, m, &f->manifests, link) {
		int c = str_cmp(str_of(m->path), path);
		if (c == 0)
			return m;
		if (c < 0)
			before = &m->link;
	}
	struct manifest *m = mem_zalloc(sizeof *m);
	m->path = strndup(path.p, path.n);
	list_insert(&m->link, before, before->next);
	return m;
}

static bool is_same_file(const struct stat *x, const struct stat *y)
{
	return x->st_dev == y->st_dev && x->st_ino == y->st_ino && x->st_size == y->st_size && x->st_mtim.tv_sec == y->st_mtim.tv_sec &&
	       x->st_mtim.tv_nsec == y->st_mtim.tv_nsec && x->st_ctim.tv_sec == y->st_ctim.tv_sec &&
	       x->st_ctim.tv_nsec == y->st_ctim.tv_nsec;
}

static int manifest_read(struct folder *f, struct manifest *m, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MANIFEST_MAX);
	struct val pods;
	int r = file_read(m->path, &text, err);

	if (r < 0 || (r = static_pods_decode(&f->scratch, f->sources->o.node, SOURCE_FILE, str_of(m->path), buf_str(&text), false, &pods,
					     err)) < 0)
		return r;
	frozen_unref(m->pod);
	m->pod = val_freeze(val_at(pods, 0));
	return 0;
}

/* A regular file that is there. */
static void manifest_look(struct folder *f, str path, const struct stat *st)
{
	struct manifest *m = manifest_of(f, path);
	struct err err = ERR_INIT;

	m->found = true;
	if (is_same_file(&m->st, st))
		return;
	m->st = *st;
	m->failed = manifest_read(f, m, &err) < 0;
	if (m->failed)
		log_error("a manifest cannot be used", KV("path", m->path), KV("err", &err));
	arena_reset(&f->scratch);
}

/* ---- looking at all ---- */

static void look_at_entry(struct folder *f, const char *name)
{
	struct stat st;
	str path = arena_printf(&f->scratch, STR_FMT "/%s", STR_ARG(f->path), name);

	if (stat(path.p, &st) < 0)
		log_warn("a manifest cannot be looked at", KV("path", path), KV("errno", errno));
	else if (S_ISREG(st.st_mode))
		manifest_look(f, path, &st);
	else
		log_debug("it is no file, and no manifest", KV("path", path));
}

static int look_at_folder(struct folder *f, struct err *err)
{
	DIR *dir = opendir(f->path.p);
	const struct dirent *entry;
	size_t n = 0;

	if (!dir)
		return err_sys(err, errno, "opendir");
	while ((entry = readdir(dir)) && n++ < FILES_MAX)
		if (entry->d_name[0] != '.')
			look_at_entry(f, entry->d_name);
	closedir(dir);
	return 0;
}

static int look_at_path(struct folder *f, struct err *err)
{
	struct stat st;

	if (stat(f->path.p, &st) < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "path does not exist, ignoring") : err_sys(err, errno, "stat");
	if (S_ISDIR(st.st_mode))
		return look_at_folder(f, err);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "path is not a directory or file");
	manifest_look(f, f->path, &st);
	return 0;
}

static void complain(struct folder *f, int r, const struct err *err)
{
	if (r < 0 && !f->complained)
		log_error("static pods cannot be read", KV("path", f->path), KV("err", err));
	f->complained = r < 0;
}

/* full: what has failed counts now. */
static void check(struct folder *f, bool full)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder pods = val_builder(&a);
	struct err err = ERR_INIT;

	LIST_EACH(struct manifest, m, &f->manifests, link)
		m->found = false;
	int r = look_at_path(f, &err);
	complain(f, r, &err);
	if (r < 0 && r != -ERR_NOT_FOUND)
		return; /* nobody knows what is there: all stays */
	LIST_EACH_SAFE(struct manifest, m, &f->manifests, link) {
		if (!m->found) {
			manifest_free(m);
			continue;
		}
		if (m->failed && full)
			frozen_unref(TAKE(m->pod));
		if (m->pod)
			val_add_item(&pods, m->pod->val);
	}
	sources_replace(f->sources, SOURCE_FILE, val_end_list(&pods));
	arena_reset(&f->scratch);
}

/* ---- being told ---- */

static void watch(struct folder *f)
{
	if (f->inotify < 0)
		f->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->inotify >= 0 && f->watch < 0)
		f->watch = inotify_add_watch(f->inotify, f->path.p, FOLDER_EVENTS);
}

/* A new file is read when whoever writes it closes it; links have nothing to be written. */
static bool is_new_link(struct folder *f, const char *name)
{
	struct stat st;
	str path = arena_printf(&f->scratch, STR_FMT "/%s", STR_ARG(f->path), name);
	return lstat(path.p, &st) == 0 && (S_ISLNK(st.st_mode) || st.st_nlink > 1);
}

static bool is_news(struct folder *f, const struct inotify_event *e)
{
	if (e->wd >= 0 && e->wd != f->watch)
		return false;
	if (e->mask & LOST_EVENTS) {
		(void)inotify_rm_watch(f->inotify, f->watch);
		f->watch = -1;
		return true;
	}
	if (e->len && e->name[0] == '.')
		return false;
	return !(e->mask & IN_CREATE) || is_new_link(f, e->name);
}

/* All events that are there; whether one of them matters. */
static bool take_events(struct folder *f)
{
	_Alignas(struct inotify_event) char events[EVENTS_BYTES];
	bool news = false;
	ssize_t n;

	while ((n = read(f->inotify, events, sizeof events)) > 0) {
		const struct inotify_event *e;
		for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof *e + e->len)) {
			e = (const struct inotify_event *)(events + at);
			if (is_news(f, e))
				news = true;
		}
	}
	return news;
}

/* (suspends) Whether something has happened, within this time. */
static int wait_for_event(struct folder *f, int64_t ms)
{
	int r;

	if (f->watch < 0) {
		r = fiber_sleep_ms(MIN(ms, (int64_t)WATCH_RETRY_MS), NULL);
		watch(f);
		return r < 0 ? r : f->watch >= 0;
	}
	DEADLINE_SCOPE(ms);
	r = fiber_wait_fd(f->inotify, POLLIN, NULL);
	return r == -ERR_TIMEOUT ? 0 : r < 0 ? r : take_events(f);
}

/* (suspends) Until something has happened (1), or the time has come (0). */
static int wait(struct folder *f, int64_t due_ns)
{
	int64_t left_ns;

	while ((left_ns = due_ns - clock_now_ns()) > 0) {
		int r = wait_for_event(f, left_ns / NS_PER_MS + 1);
		if (r != 0)
			return r;
	}
	return 0;
}

static void folder_done(struct folder *f)
{
	LIST_EACH_SAFE(struct manifest, m, &f->manifests, link)
		manifest_free(m);
	if (f->inotify >= 0)
		close(f->inotify);
	arena_done(&f->scratch);
}

int source_file_run(void *arg)
{
	struct sources *s = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(folder_done) struct folder f = { .sources = s, .inotify = -1, .watch = -1, .manifests = LIST_INIT(f.manifests) };
	int64_t due_ns = clock_now_ns() + s->o.file_check_ms * NS_PER_MS;
	str path = str_of(s->o.path);
	int r;

	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	f.path = arena_str(&a, path);
	watch(&f);
	check(&f, true);
	while ((r = wait(&f, due_ns)) >= 0) {
		if (r == 0)
			due_ns = clock_now_ns() + s->o.file_check_ms * NS_PER_MS;
		watch(&f); /* first, so that nothing happens unseen between both */
		check(&f, r == 0);
	}
	return r;
}
