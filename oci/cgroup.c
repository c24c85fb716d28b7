/*
 * Where cgroups are mounted, and making, opening and removing one in all hierarchies. The mounts are looked up once: at the usual
 * place of v2 by its inode (a node may have thousands of mounts, and their list is slow to read), else in the list.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "oci/cgroup_priv.h"

enum {
	MOUNTS_TEXT_MAX = 64 << 20,
	OWN_TEXT_MAX = 1 << 20,
	FILE_TEXT_MAX = 16 << 20,
	DEPTH_MAX = 128,                /* of cgroups below one that is removed */
	REMOVE_TRIES = 11,              /* with pauses of 1 ms, 2 ms, ... between them: two seconds */
};

const char *const cgroup_controller_names[CGROUP_CONTROLLERS] = {
	[CGROUP_CPU] = "cpu", [CGROUP_CPUACCT] = "cpuacct", [CGROUP_CPUSET] = "cpuset", [CGROUP_MEMORY] = "memory",
	[CGROUP_DEVICES] = "devices", [CGROUP_FREEZER] = "freezer", [CGROUP_BLKIO] = "blkio", [CGROUP_PIDS] = "pids",
	[CGROUP_HUGETLB] = "hugetlb", [CGROUP_NET_CLS] = "net_cls", [CGROUP_NET_PRIO] = "net_prio",
	[CGROUP_PERF_EVENT] = "perf_event", [CGROUP_RDMA] = "rdma", [CGROUP_MISC] = "misc", [CGROUP_SYSTEMD] = "name=systemd",
	[CGROUP_UNIFIED] = "unified",
};

/* A mounted hierarchy. root: which part of it is mounted, "/" unless we are in a container. */
struct mount {
	unsigned controllers;
	char *dir, *root;
};

static struct {
	pthread_once_t once;
	enum cgroup_mode mode;
	size_t n;
	struct mount mounts[CGROUP_CONTROLLERS];
} found = { .once = PTHREAD_ONCE_INIT };

static char *text_of(str s)
{
	char *p = mem_alloc(s.n + 1);
	memcpy(p, s.p ? s.p : "", s.n);
	p[s.n] = '\0';
	return p;
}

static unsigned controllers_of(str list)
{
	unsigned bits = 0;
	for (str name; list.n; ) {
		str_cut(list, ',', &name, &list);
		for (unsigned i = 0; i < CGROUP_UNIFIED; i++)
			if (str_eq(name, str_of(cgroup_controller_names[i])))
				bits |= 1U << i;
	}
	return bits;
}

/* Adds a mount, unless its hierarchy is known from an earlier one. */
static void mount_add(unsigned controllers, str dir, str root)
{
	unsigned known = 0;
	for (size_t i = 0; i < found.n; i++)
		known |= found.mounts[i].controllers;
	if (controllers && !(controllers & known))
		found.mounts[found.n++] = (struct mount){ controllers, text_of(dir), text_of(root) };
}

/* The next word of a line. */
static str word(str *line)
{
	str w;
	str_cut(*line, ' ', &w, line);
	return w;
}

/* Paths in mountinfo have blanks and the like as \040. */
static str unescape(struct arena *a, str s)
{
	char *out = ARENA_ARRAY(a, char, s.n + 1);
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\\' && s.n - i > 3) {
			out[n++] = (char)((s.p[i + 1] - '0') << 6 | (s.p[i + 2] - '0') << 3 | (s.p[i + 3] - '0'));
			i += 3;
		} else {
			out[n++] = s.p[i];
		}
	}
	return str_span(out, n);
}

/* Whether that file system is what is seen there: something else may be mounted over it. */
static bool is_seen(struct arena *a, str dir, long magic)
{
	struct statfs fs;
	return statfs(arena_str(a, dir).p, &fs) == 0 && fs.f_type == magic;
}

/* ID parent major:minor root dir options [optional...] - type source options */
static void mount_line(struct arena *a, str line)
{
	word(&line), word(&line), word(&line);
	str root = word(&line), dir = word(&line);
	ptrdiff_t dash = str_find(line, STR(" - "));
	if (dash < 0)
		return;
	line = str_skip(line, (size_t)dash + 3);
	str type = word(&line);
	word(&line);
	bool v2 = str_eq(type, STR("cgroup2"));
	if (!v2 && !str_eq(type, STR("cgroup")))
		return;
	dir = unescape(a, dir);
	if (is_seen(a, dir, v2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))
		mount_add(v2 ? 1U << CGROUP_UNIFIED : controllers_of(line), dir, unescape(a, root));
}

static void find_in_list(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MOUNTS_TEXT_MAX);
	if (file_read("/proc/self/mountinfo", &text, NULL) < 0)
		return;
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	for (str line, rest = buf_str(&text); rest.n; ) {
		str_cut(rest, '\n', &line, &rest);
		mount_line(&arena, line);
	}
}

static void find_mounts(void)
{
	static const char usual[] = "/sys/fs/cgroup";
	struct statfs fs;
	struct stat st;
	/* The root of the hierarchy has inode 1; in a cgroup namespace, or when a part is mounted, it is another one. */
	if (statfs(usual, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC && stat(usual, &st) == 0 && st.st_ino == 1)
		mount_add(1U << CGROUP_UNIFIED, str_of(usual), STR("/"));
	else
		find_in_list();
	unsigned known = 0;
	for (size_t i = 0; i < found.n; i++)
		known |= found.mounts[i].controllers;
	bool v1 = known & ((1U << CGROUP_SYSTEMD) - 1), v2 = known & 1U << CGROUP_UNIFIED;
	found.mode = v1 && v2 ? CGROUP_HYBRID : v2 ? CGROUP_V2 : CGROUP_V1;
	/* Beside a whole v2 the one of systemd is of no use. */
	for (size_t i = 0; found.mode == CGROUP_V2 && i < found.n; i++) {
		if (found.mounts[i].controllers == 1U << CGROUP_UNIFIED) {
			found.mounts[0] = found.mounts[i];
			found.n = 1;
		}
	}
}

enum cgroup_mode cgroup_mode(void)
{
	pthread_once(&found.once, find_mounts);
	return found.mode;
}

/* ---- paths ---- */

bool cgroup_path_of(str text, unsigned controllers, str *ret)
{
	for (str line; text.n; ) {
		str list, path;
		str_cut(text, '\n', &line, &text);
		str_cut(line, ':', &list, &line);
		str_cut(line, ':', &list, &path);
		unsigned bits = list.n ? controllers_of(list) : 1U << CGROUP_UNIFIED;
		if (bits & controllers) {
			*ret = path;
			return true;
		}
	}
	return false;
}

static int own_text(struct buf *b, struct err *err)
{
	return file_read("/proc/self/cgroup", b, err);
}

/* Adds the parts of path to b ("/a" and "/b"); ".." takes away one that was added here, never more. */
static void path_add(struct buf *b, str path)
{
	size_t base = b->n;
	for (str part; path.n; ) {
		str_cut(path, '/', &part, &path);
		if (str_eq(part, STR("..")) && b->n > base) {
			b->n = (size_t)str_rchr(buf_str(b), '/');
			b->p[b->n] = '\0';
		} else if (part.n && !str_eq(part, STR(".")) && !str_eq(part, STR(".."))) {
			buf_addc(b, '/');
			buf_add(b, part);
		}
	}
}

/* Where path is in a mounted hierarchy: h->path from the hierarchy's root, h->dir as a file name. own: as /proc/self/cgroup has it. */
static int place(const struct mount *m, str own, const char *path, struct cgroup_hierarchy *h, struct err *err)
{
	CLEANUP(buf_done) struct buf at = BUF_INIT(PATH_MAX), full = BUF_INIT(PATH_MAX), dir = BUF_INIT(PATH_MAX);
	str root = str_of(m->root);
	if (root.n == 1)
		root = STR_NONE;
	if (path[0] != '/') {
		if (!str_starts(own, root) || str_starts(own, STR("/..")))
			return err_set(err, ERR_INVALID, "cgroup %s: our own cgroup " STR_FMT " is not below the mounted %s", path,
				       STR_ARG(own), m->dir);
		path_add(&at, str_skip(own, root.n));
	}
	path_add(&at, str_of(path));
	buf_add(&full, root);
	buf_add(&full, buf_str(&at));
	if (!full.n)
		buf_addc(&full, '/');
	buf_add(&dir, str_of(m->dir));
	buf_add(&dir, buf_str(&at));
	int r = buf_check(&dir, "the path of a cgroup", err);
	if (r < 0)
		return r;
	h->path = buf_take(&full);
	h->dir = buf_take(&dir);
	return 0;
}

/* ---- making and opening ---- */

/* The folder and those on the way to it, part by part: some hierarchies want something at each. */
static int make_parts(const struct mount *m, const char *path, struct err *err)
{
	CLEANUP(fd_closep) int at = open(m->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return err_sys(err, errno, "open %s", m->dir);
	for (str part, rest = str_of(path + 1); rest.n; ) {
		str_cut(rest, '/', &part, &rest);
		char name[NAME_MAX + 1];
		if (part.n > NAME_MAX)
			return err_set(err, ERR_INVALID, "cgroup %s: a part of the path is longer than %d bytes", path, NAME_MAX);
		memcpy(name, part.p, part.n);
		name[part.n] = '\0';
		if (m->controllers & 1U << CGROUP_UNIFIED)
			cgroup_v2_enable(at);
		if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			return err_sys(err, errno, "make cgroup %s%s at \"%s\"", m->dir, path, name);
		CLEANUP(fd_closep) int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return err_sys(err, errno, "open cgroup %s%s at \"%s\"", m->dir, path, name);
		int r = m->controllers & 1U << CGROUP_CPUSET ? cgroup_v1_inherit_cpuset(at, next, m->dir, err) : 0;
		if (r < 0)
			return r;
		int was = at;
		at = next;
		next = was;
	}
	return 0;
}

static int make_folder(const struct mount *m, const struct cgroup_hierarchy *h, bool *ret_made, struct err *err)
{
	*ret_made = false;
	const char *path = h->dir + strlen(m->dir);
	bool each = m->controllers & (1U << CGROUP_CPUSET | 1U << CGROUP_UNIFIED);
	if (!path[0])
		return 0;
	if (!each && mkdir(h->dir, 0755) == 0) {
		*ret_made = true;
		return 0;
	}
	if (!each && errno == EEXIST)
		return 0;
	struct stat st;
	*ret_made = stat(h->dir, &st) < 0;
	return make_parts(m, path, err);
}

/* One hierarchy's part of c; *ret_made: it was not there before. */
static int add_hierarchy(struct cgroup *c, const struct mount *m, str own, const char *path, bool make, bool *ret_made, struct err *err)
{
	struct cgroup_hierarchy *h = &c->hierarchies[c->n++];
	*h = (struct cgroup_hierarchy){ .controllers = m->controllers, .fd = -1, .tasks = -1 };
	int r = place(m, own, path, h, err);
	if (r < 0)
		return r;
	if (make && (r = make_folder(m, h, ret_made, err)) < 0)
		return r;
	h->fd = open(h->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return h->fd < 0 ? err_sys(err, errno, "open cgroup %s", h->dir) : 0;
}

static void hierarchy_done(struct cgroup_hierarchy *h)
{
	fd_closep(&h->fd);
	fd_closep(&h->tasks);
	free(h->path);
	free(h->dir);
}

static int open_or_make(const char *path, bool make, struct cgroup **ret, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *c = mem_zalloc(sizeof(*c));
	c->mode = cgroup_mode();
	if (!found.n)
		return err_set(err, ERR_UNAVAILABLE, "cgroup %s: no cgroup filesystem is mounted", path);
	if (!path[0])
		return err_set(err, ERR_INVALID, "the path of a cgroup is empty");
	CLEANUP(buf_done) struct buf text = BUF_INIT(OWN_TEXT_MAX);
	int r = path[0] == '/' ? 0 : own_text(&text, err);
	if (r < 0)
		return r;
	bool made[CGROUP_CONTROLLERS] = { 0 };
	for (size_t i = 0; i < found.n && r >= 0; i++) {
		str own = STR_NONE;
		if (path[0] != '/' && !cgroup_path_of(buf_str(&text), found.mounts[i].controllers, &own))
			continue;
		r = add_hierarchy(c, &found.mounts[i], own, path, make, &made[c->n], err);
		/* One that somebody else made need not be everywhere. */
		if (r == -ERR_NOT_FOUND && !make) {
			hierarchy_done(&c->hierarchies[--c->n]);
			r = 0;
		}
	}
	if (r >= 0 && !c->n)
		return err_set(err, ERR_NOT_FOUND, "cgroup %s does not exist", path);
	for (size_t i = 0; r < 0 && i < c->n; i++)
		if (made[i])
			(void)rmdir(c->hierarchies[i].dir);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}

int cgroup_make(const char *path, struct cgroup **ret, struct err *err)
{
	return open_or_make(path, true, ret, err);
}

int cgroup_open(const char *path, struct cgroup **ret, struct err *err)
{
	return open_or_make(path, false, ret, err);
}

void cgroup_free(struct cgroup *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		hierarchy_done(&c->hierarchies[i]);
	free(c);
}

void cgroup_freep(struct cgroup **c)
{
	cgroup_free(*c);
}

int cgroup_fd(const struct cgroup *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->hierarchies[i].controllers & 1U << CGROUP_UNIFIED)
			return c->hierarchies[i].fd;
	return -1;
}

int cgroup_not_ours(const struct cgroup *c, const char *what, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(OWN_TEXT_MAX);
	int r = own_text(&text, err);
	for (size_t i = 0; r >= 0 && i < c->n; i++) {
		const struct cgroup_hierarchy *h = &c->hierarchies[i];
		str own = STR_NONE, path = str_of(h->path);
		if (path.n == 1)
			path.n = 0;
		if (cgroup_path_of(buf_str(&text), h->controllers, &own) && str_starts(own, path) &&
		    (own.n == path.n || own.p[path.n] == '/'))
			return err_set(err, ERR_FORBIDDEN, "%s cgroup %s: this process is in it", what, h->dir);
	}
	return r;
}

/* ---- removing ---- */

/* Removes what is below the folder fd, the deepest first. What cannot be removed stays, and with it all above. */
static void remove_below(int fd, unsigned depth)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	if (!dir) {
		fd_closep(&copy);
		return;
	}
	for (struct dirent *e; (e = readdir(dir)); ) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (unlinkat(fd, e->d_name, AT_REMOVEDIR) == 0 || errno != EBUSY || depth == 0)
			continue;
		CLEANUP(fd_closep) int below = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			continue;
		remove_below(below, depth - 1);
		(void)unlinkat(fd, e->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

/* A process that was killed leaves its cgroup a moment later: EBUSY until then. */
static int remove_hierarchy(const struct cgroup_hierarchy *h, struct err *err)
{
	for (unsigned i = 0; ; i++) {
		if (rmdir(h->dir) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY || i == REMOVE_TRIES)
			return err_sys(err, errno, "remove cgroup %s", h->dir);
		remove_below(h->fd, DEPTH_MAX);
		if (rmdir(h->dir) == 0)
			return 0;
		struct timespec pause = { .tv_sec = 0, .tv_nsec = NS_PER_MS << MIN(i, 9U) };
		nanosleep(&pause, NULL);
	}
}

int cgroup_remove(struct cgroup *c, struct err *err)
{
	int r = cgroup_not_ours(c, "remove", err);
	for (size_t i = 0; r >= 0 && i < c->n; i++)
		r = remove_hierarchy(&c->hierarchies[i], err);
	return r;
}

/* ---- files ---- */

const struct cgroup_hierarchy *cgroup_hierarchy(const struct cgroup *c, enum cgroup_controller controller)
{
	unsigned bit = 1U << (c->mode == CGROUP_V2 ? CGROUP_UNIFIED : controller);
	for (size_t i = 0; i < c->n; i++)
		if (c->hierarchies[i].controllers & bit)
			return &c->hierarchies[i];
	return NULL;
}

int cgroup_need(const struct cgroup *c, enum cgroup_controller controller, const struct cgroup_hierarchy **ret, struct err *err)
{
	*ret = cgroup_hierarchy(c, controller);
	return *ret ? 0 : err_set(err, ERR_NOT_FOUND, "cannot set %s limit: there is no such cgroup controller",
				  cgroup_controller_names[controller]);
}

int cgroup_write(const struct cgroup_hierarchy *h, const char *file, str text, struct err *err)
{
	CLEANUP(fd_closep) int fd = openat(h->fd, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(err, errno, "open %s/%s to write \"" STR_FMT "\"", h->dir, file, STR_ARG(text));
	ssize_t n;
	do
		n = write(fd, text.p, text.n);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(err, errno, "write \"" STR_FMT "\" to %s/%s", STR_ARG(text), h->dir, file) : 0;
}

int cgroup_writef(const struct cgroup_hierarchy *h, const char *file, struct err *err, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text))
		return err_set(err, ERR_INVALID, "the value for %s/%s is too long", h->dir, file);
	return cgroup_write(h, file, str_span(text, (size_t)n), err);
}

int cgroup_read(const struct cgroup_hierarchy *h, const char *file, struct buf *b, struct err *err)
{
	CLEANUP(fd_closep) int fd = openat(h->fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(err, errno, "open %s/%s", h->dir, file);
	for (;;) {
		char piece[2048];
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n == 0)
			return buf_check(b, file, err);
		if (n > 0)
			buf_add(b, str_span(piece, (size_t)n));
		else if (errno != EINTR)
			return err_sys(err, errno, "read %s/%s", h->dir, file);
		if (b->overflow)
			return buf_check(b, file, err);
	}
}

bool cgroup_parse_u64(str s, uint64_t *ret)
{
	s = str_trim(s);
	if (str_eq(s, STR("max"))) {
		*ret = UINT64_MAX;
		return true;
	}
	uint64_t v = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return false;
	}
	*ret = v;
	return s.n > 0;
}

int cgroup_read_u64(const struct cgroup_hierarchy *h, const char *file, uint64_t *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_TEXT_MAX);
	int r = cgroup_read(h, file, &b, err);
	if (r < 0)
		return r;
	if (!cgroup_parse_u64(buf_str(&b), ret))
		return err_set(err, ERR_INTERNAL, "%s/%s holds no number", h->dir, file);
	/* v1 shows no limit as the largest number of whole pages. */
	if (h->controllers != 1U << CGROUP_UNIFIED && *ret >= (UINT64_C(1) << 63) - 65536)
		*ret = UINT64_MAX;
	return 0;
}

bool cgroup_line_u64(str text, str key, uint64_t *ret)
{
	for (str line, name, value; text.n; ) {
		str_cut(text, '\n', &line, &text);
		if (str_cut(line, ' ', &name, &value) && str_eq(name, key))
			return cgroup_parse_u64(value, ret);
	}
	return false;
}
