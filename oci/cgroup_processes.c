/*
 * The processes of a cgroup: adding, listing, freezing and signalling them. A signal to all of them has to reach those that
 * fork meanwhile too: v2 kills in the kernel (cgroup.kill); otherwise they are frozen, signalled and let go.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "oci/cgroup_priv.h"

enum {
	DEPTH_MAX = 128,
	OWN_TEXT_MAX = 1 << 20,
	PROCS_TEXT_MAX = 64 << 20,
	ADD_TRIES = 5,
	FREEZE_TRIES = 1000,
	FREEZE_TIMEOUT_MS = 5000,
	KILL_ROUNDS = 32,               /* when they could not be frozen */
};

static void pause_us(long us)
{
	struct timespec t = { .tv_sec = 0, .tv_nsec = us * NS_PER_US };
	nanosleep(&t, NULL);
}

static bool is_one_thread(void)
{
	struct stat st;
	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;   /* ".", ".." and the thread */
}

int cgroup_add_beside(struct cgroup *c, const struct cgroup_hierarchy *h, pid_t pid, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT(OWN_TEXT_MAX), file = BUF_INIT(PATH_MAX);
	pid_t *pids, first = 0;
	size_t n;
	int r = cgroup_pids(c, &arena, &pids, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (!first || pids[i] < first)
			first = pids[i];
	if (r < 0 || !first)
		return r < 0 ? r : err_set(err, ERR_NOT_FOUND, "cgroup %s has no processes", h->dir);
	str path, above = str_of(h->path);
	if ((r = file_read(arena_printf(&arena, "/proc/%d/cgroup", (int)first).p, &text, err)) < 0)
		return r;
	if (!cgroup_path_of(buf_str(&text), h->controllers, &path) || !str_starts(path, above) || path.n <= above.n + 1)
		return err_set(err, ERR_NOT_FOUND, "cgroup %s: its process %d has left", h->dir, (int)first);
	buf_addf(&file, STR_FMT "/cgroup.procs", STR_ARG(str_skip(path, above.n + 1)));
	if ((r = buf_check(&file, "the path of a cgroup", err)) < 0)
		return r;
	return cgroup_writef(h, file.p, err, "%d", (int)pid);
}

/* A process that is only just being made is refused (EINVAL) for a moment. */
static int add_to(struct cgroup *c, const struct cgroup_hierarchy *h, pid_t pid, struct err *err)
{
	struct err why = ERR_INIT;
	int r = cgroup_writef(h, "cgroup.procs", &why, "%d", (int)pid);
	for (unsigned t = 0; r < 0 && why.sys == EINVAL && t < ADD_TRIES; t++) {
		pause_us(20000);
		r = cgroup_writef(h, "cgroup.procs", &why, "%d", (int)pid);
	}
	/* v2: the container has made cgroups with controllers below its own, which can have no processes then. */
	if (r < 0 && why.sys == EBUSY && cgroup_add_beside(c, h, pid, NULL) >= 0)
		return 0;
	if (r < 0 && err)
		*err = why;
	return r;
}

int cgroup_add(struct cgroup *c, pid_t pid, struct err *err)
{
	char file[64];
	CLEANUP(buf_done) struct buf now = BUF_INIT(OWN_TEXT_MAX);
	snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
	(void)file_read(file, &now, NULL);      /* without it, all are written */
	bool self = pid == getpid() && is_one_thread();
	for (size_t i = 0; i < c->n; i++) {
		const struct cgroup_hierarchy *h = &c->hierarchies[i];
		str path;
		if (cgroup_path_of(buf_str(&now), h->controllers, &path) && str_eq(path, str_of(h->path)))
			continue;
		bool v1 = !(h->controllers & 1U << CGROUP_UNIFIED);
		int r = self && v1 ? cgroup_write(h, "tasks", STR("0"), err) : add_to(c, h, pid, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_join_prepare(struct cgroup *c, struct err *err)
{
	for (size_t i = 0; i < c->n; i++) {
		struct cgroup_hierarchy *h = &c->hierarchies[i];
		if (h->tasks >= 0 || h->controllers & 1U << CGROUP_UNIFIED)
			continue;
		h->tasks = openat(h->fd, "tasks", O_WRONLY | O_CLOEXEC);
		if (h->tasks < 0)
			return err_sys(err, errno, "open %s/tasks", h->dir);
	}
	return 0;
}

int cgroup_join(const struct cgroup *c, struct err *err)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->hierarchies[i].tasks >= 0 && write(c->hierarchies[i].tasks, "0", 1) < 0)
			return err_sys(err, errno, "write \"0\" to %s/tasks", c->hierarchies[i].dir);
	return 0;
}

/* ---- listing ---- */

struct pids {
	struct arena *arena;
	pid_t *all;
	size_t n, cap;
};

static void pids_add(struct pids *p, pid_t pid)
{
	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 64;
		pid_t *all = ARENA_ARRAY(p->arena, pid_t, cap);
		if (p->n)
			memcpy(all, p->all, p->n * sizeof(*all));
		p->all = all;
		p->cap = cap;
	}
	p->all[p->n++] = pid;
}

/* Those of one folder. It may go away while we look; a threaded one shows its processes at the top of its threads only. */
static int pids_of(const struct cgroup_hierarchy *h, struct pids *p, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PROCS_TEXT_MAX);
	struct err why = ERR_INIT;
	int r = cgroup_read(h, "cgroup.procs", &text, &why);
	if (r < 0 && (why.sys == ENOENT || why.sys == ENODEV || why.sys == EOPNOTSUPP))
		return 0;
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	for (str line, rest = buf_str(&text); rest.n; ) {
		int64_t pid;
		str_cut(rest, '\n', &line, &rest);
		if (str_to_i64(line, &pid) && pid > 0)  /* 0: of another pid namespace */
			pids_add(p, (pid_t)pid);
	}
	return 0;
}

static int pids_below(const struct cgroup_hierarchy *h, struct pids *p, unsigned depth, struct err *err)
{
	int r = pids_of(h, p, err);
	if (r < 0)
		return r;
	int copy = openat(h->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	if (!dir) {
		fd_closep(&copy);
		return 0;
	}
	for (struct dirent *e; r >= 0 && (e = readdir(dir)); ) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (depth == 0) {
			r = err_set(err, ERR_TOO_LARGE, "cgroup %s is more than %d cgroups deep", h->dir, DEPTH_MAX);
			break;
		}
		CLEANUP(fd_closep) int fd = openat(h->fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		struct cgroup_hierarchy below = { .controllers = h->controllers, .fd = fd, .dir = h->dir };
		r = pids_below(&below, p, depth - 1, err);
	}
	closedir(dir);
	return r;
}

/* Where the processes are looked up: everywhere they are the same. */
static const struct cgroup_hierarchy *main_hierarchy(const struct cgroup *c)
{
	static const enum cgroup_controller order[] = { CGROUP_FREEZER, CGROUP_DEVICES, CGROUP_PIDS, CGROUP_MEMORY };
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const struct cgroup_hierarchy *h = cgroup_hierarchy(c, order[i]);
		if (h)
			return h;
	}
	return &c->hierarchies[0];
}

int cgroup_pids(struct cgroup *c, struct arena *a, pid_t **ret, size_t *ret_n, struct err *err)
{
	struct pids p = { .arena = a };
	int r = pids_below(main_hierarchy(c), &p, DEPTH_MAX, err);
	if (r < 0)
		return r;
	*ret = p.all;
	*ret_n = p.n;
	return 0;
}

/* ---- freezing ---- */

/*
 * v1: the state is FREEZING until all have stopped. While new processes appear it can stay so forever; writing again helps, and
 * letting go for a moment helps more.
 */
static int freeze_v1(const struct cgroup_hierarchy *h, struct err *err)
{
	for (unsigned i = 1; i <= FREEZE_TRIES; i++) {
		if (i % 50 == 0) {
			(void)cgroup_write(h, "freezer.state", STR("THAWED"), NULL);
			pause_us(10000);
		}
		int r = cgroup_write(h, "freezer.state", STR("FROZEN"), err);
		if (r < 0)
			return r;
		if (i % 25 == 0)
			pause_us(10);
		CLEANUP(buf_done) struct buf state = BUF_INIT(64);
		if ((r = cgroup_read(h, "freezer.state", &state, err)) < 0)
			return r;
		if (str_eq(str_trim(buf_str(&state)), STR("FROZEN")))
			return 0;
	}
	return err_set(err, ERR_TIMEOUT, "freeze cgroup %s: its processes do not stop", h->dir);
}

/* v2: cgroup.events says when all have stopped, and can be waited for. */
static int freeze_v2(const struct cgroup_hierarchy *h, struct err *err)
{
	CLEANUP(fd_closep) int events = openat(h->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (events < 0)
		return err_sys(err, errno, "open %s/cgroup.events", h->dir);
	int r = cgroup_write(h, "cgroup.freeze", STR("1"), err);
	int64_t until = clock_now_ns() + FREEZE_TIMEOUT_MS * NS_PER_MS;
	while (r >= 0) {
		char text[256];
		uint64_t frozen = 0;
		ssize_t n = pread(events, text, sizeof(text), 0);
		if (n < 0)
			return err_sys(err, errno, "read %s/cgroup.events", h->dir);
		if (cgroup_line_u64(str_span(text, (size_t)n), STR("frozen"), &frozen) && frozen)
			return 0;
		int64_t left = (until - clock_now_ns()) / NS_PER_MS;
		if (left <= 0)
			return err_set(err, ERR_TIMEOUT, "freeze cgroup %s: its processes do not stop", h->dir);
		struct pollfd poll_fd = { .fd = events, .events = POLLPRI };
		poll(&poll_fd, 1, (int)left);
	}
	return r;
}

static int thaw(const struct cgroup *c, const struct cgroup_hierarchy *h, struct err *err)
{
	return c->mode == CGROUP_V2 ? cgroup_write(h, "cgroup.freeze", STR("0"), err) :
				      cgroup_write(h, "freezer.state", STR("THAWED"), err);
}

int cgroup_freeze(struct cgroup *c, bool freeze, struct err *err)
{
	const struct cgroup_hierarchy *h;
	int r = cgroup_need(c, CGROUP_FREEZER, &h, err);
	if (r < 0)
		return r;
	if (!freeze)
		return thaw(c, h, err);
	if ((r = cgroup_not_ours(c, "freeze", err)) < 0)
		return r;
	r = c->mode == CGROUP_V2 ? freeze_v2(h, err) : freeze_v1(h, err);
	if (r < 0)
		(void)thaw(c, h, NULL);         /* half frozen is the worst of both */
	return r;
}

/* Whether it was frozen by a pause, and not with one above it. */
static bool is_frozen(const struct cgroup *c)
{
	const struct cgroup_hierarchy *h = cgroup_hierarchy(c, CGROUP_FREEZER);
	uint64_t self = 0;
	return h && cgroup_read_u64(h, c->mode == CGROUP_V2 ? "cgroup.freeze" : "freezer.self_freezing", &self, NULL) >= 0 && self;
}

/* ---- signals ---- */

/* To all that are there now; how many there were. ESRCH: it has gone by itself. */
static int signal_all(struct cgroup *c, int signal, size_t *ret_n, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	pid_t *pids;
	int r = cgroup_pids(c, &arena, &pids, ret_n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < *ret_n; i++)
		if (kill(pids[i], signal) < 0 && errno != ESRCH)
			r = err_sys(err, errno, "kill process %d of a cgroup", (int)pids[i]);
	return r;
}

int cgroup_kill(struct cgroup *c, int signal, struct err *err)
{
	int r = cgroup_not_ours(c, "kill", err);
	if (r < 0)
		return r;
	size_t n = 0;
	for (size_t i = 0; signal == SIGKILL && i < c->n; i++) {
		const struct cgroup_hierarchy *h = &c->hierarchies[i];
		if (h->controllers & 1U << CGROUP_UNIFIED && cgroup_write(h, "cgroup.kill", STR("1"), NULL) >= 0 && c->mode == CGROUP_V2)
			return 0;
	}
	bool paused = is_frozen(c);
	if (!paused && cgroup_freeze(c, true, NULL) >= 0) {
		r = signal_all(c, signal, &n, err);
		int thawed = cgroup_freeze(c, false, r < 0 ? NULL : err);
		return r < 0 ? r : thawed;
	}
	if (paused) {
		/* Only a deadly signal ends the pause: it could not do its work otherwise. */
		r = signal_all(c, signal, &n, err);
		int thawed = signal == SIGKILL ? cgroup_freeze(c, false, r < 0 ? NULL : err) : 0;
		return r < 0 ? r : thawed;
	}
	/* Not frozen: other signals go out once; death is repeated until nobody is left who could have forked. */
	for (unsigned i = 0; i < (signal == SIGKILL ? KILL_ROUNDS : 1); i++) {
		if ((r = signal_all(c, signal, &n, err)) < 0 || n == 0)
			return r;
		pause_us(1000);
	}
	return 0;
}
