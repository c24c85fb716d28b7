/* Figures of a cgroup, and how to be told that memory ran out in it. A file that is not there leaves its figures at 0. */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "oci/cgroup_priv.h"

enum { STAT_TEXT_MAX = 1 << 20 };

struct figure {
	const char *key;
	uint64_t *to;
	uint64_t factor;        /* to the unit of *to */
};

/* Lines "key N". */
static void figures_read(const struct cgroup_hierarchy *h, const char *file, const struct figure *figures, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(STAT_TEXT_MAX);
	if (!h || cgroup_read(h, file, &b, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t v;
		if (cgroup_line_u64(buf_str(&b), str_of(figures[i].key), &v))
			*figures[i].to = v * figures[i].factor;
	}
}

#define FIGURES(h, file, ...)                                                                          \
	figures_read(h, file, (const struct figure[]){ __VA_ARGS__ },                                  \
		     sizeof((const struct figure[]){ __VA_ARGS__ }) / sizeof(struct figure))

static void figure_read(const struct cgroup_hierarchy *h, const char *file, uint64_t *ret)
{
	if (h)
		(void)cgroup_read_u64(h, file, ret, NULL);
}

static void working_set(struct cgroup_stats *s, uint64_t inactive_file)
{
	s->memory_working_set = s->memory_usage > inactive_file ? s->memory_usage - inactive_file : 0;
}

/* v1: lines "major:minor Read N". */
static void io_v1(const struct cgroup_hierarchy *h, struct cgroup_stats *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(STAT_TEXT_MAX);
	if (!h || cgroup_read(h, "blkio.throttle.io_service_bytes_recursive", &b, NULL) < 0)
		return;
	for (str line, device, kind, rest = buf_str(&b); rest.n; ) {
		uint64_t v;
		str_cut(rest, '\n', &line, &rest);
		if (!str_cut(line, ' ', &device, &line) || !str_cut(line, ' ', &kind, &line) || !cgroup_parse_u64(line, &v))
			continue;
		if (str_eq(kind, STR("Read")))
			s->io_read_bytes += v;
		else if (str_eq(kind, STR("Write")))
			s->io_write_bytes += v;
	}
}

/* v2: lines "major:minor rbytes=N wbytes=N ...". */
static void io_v2(const struct cgroup_hierarchy *h, struct cgroup_stats *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(STAT_TEXT_MAX);
	if (cgroup_read(h, "io.stat", &b, NULL) < 0)
		return;
	for (str line, rest = buf_str(&b); rest.n; ) {
		str_cut(rest, '\n', &line, &rest);
		for (str item, key, value; line.n; ) {
			uint64_t v;
			str_cut(line, ' ', &item, &line);
			if (!str_cut(item, '=', &key, &value) || !cgroup_parse_u64(value, &v))
				continue;
			if (str_eq(key, STR("rbytes")))
				s->io_read_bytes += v;
			else if (str_eq(key, STR("wbytes")))
				s->io_write_bytes += v;
		}
	}
}

static void stats_v1(const struct cgroup *c, struct cgroup_stats *s)
{
	const struct cgroup_hierarchy *cpu = cgroup_hierarchy(c, CGROUP_CPU), *acct = cgroup_hierarchy(c, CGROUP_CPUACCT),
				      *memory = cgroup_hierarchy(c, CGROUP_MEMORY), *pids = cgroup_hierarchy(c, CGROUP_PIDS);
	figure_read(acct, "cpuacct.usage", &s->cpu_usage_ns);
	figure_read(acct, "cpuacct.usage_user", &s->cpu_user_ns);
	figure_read(acct, "cpuacct.usage_sys", &s->cpu_system_ns);
	FIGURES(cpu, "cpu.stat", { "nr_periods", &s->cpu_periods, 1 }, { "nr_throttled", &s->cpu_throttled_periods, 1 },
		{ "throttled_time", &s->cpu_throttled_ns, 1 });
	uint64_t inactive_file = 0, both_limit = UINT64_MAX;
	figure_read(memory, "memory.usage_in_bytes", &s->memory_usage);
	figure_read(memory, "memory.limit_in_bytes", &s->memory_limit);
	figure_read(memory, "memory.memsw.limit_in_bytes", &both_limit);
	if (both_limit != UINT64_MAX && s->memory_limit != UINT64_MAX && both_limit >= s->memory_limit)
		s->memory_swap_limit = both_limit - s->memory_limit;
	FIGURES(memory, "memory.stat", { "total_rss", &s->memory_rss, 1 }, { "total_cache", &s->memory_cache, 1 },
		{ "total_swap", &s->memory_swap, 1 }, { "total_pgfault", &s->memory_page_faults, 1 },
		{ "total_pgmajfault", &s->memory_major_page_faults, 1 }, { "total_inactive_file", &inactive_file, 1 });
	working_set(s, inactive_file);
	FIGURES(memory, "memory.oom_control", { "oom_kill", &s->oom_kills, 1 });
	figure_read(pids, "pids.current", &s->pids);
	figure_read(pids, "pids.max", &s->pids_limit);
	io_v1(cgroup_hierarchy(c, CGROUP_BLKIO), s);
}

static void stats_v2(const struct cgroup_hierarchy *h, struct cgroup_stats *s)
{
	uint64_t inactive_file = 0;
	FIGURES(h, "cpu.stat", { "usage_usec", &s->cpu_usage_ns, 1000 }, { "user_usec", &s->cpu_user_ns, 1000 },
		{ "system_usec", &s->cpu_system_ns, 1000 }, { "nr_periods", &s->cpu_periods, 1 },
		{ "nr_throttled", &s->cpu_throttled_periods, 1 }, { "throttled_usec", &s->cpu_throttled_ns, 1000 });
	figure_read(h, "memory.current", &s->memory_usage);
	figure_read(h, "memory.max", &s->memory_limit);
	figure_read(h, "memory.swap.current", &s->memory_swap);
	figure_read(h, "memory.swap.max", &s->memory_swap_limit);
	FIGURES(h, "memory.stat", { "anon", &s->memory_rss, 1 }, { "file", &s->memory_cache, 1 },
		{ "pgfault", &s->memory_page_faults, 1 }, { "pgmajfault", &s->memory_major_page_faults, 1 },
		{ "inactive_file", &inactive_file, 1 });
	working_set(s, inactive_file);
	FIGURES(h, "memory.events", { "oom_kill", &s->oom_kills, 1 });
	figure_read(h, "pids.current", &s->pids);
	figure_read(h, "pids.max", &s->pids_limit);
	io_v2(h, s);
}

int cgroup_stats(struct cgroup *c, struct cgroup_stats *ret, struct err *err)
{
	/* The folder stays open when it is removed, and has no files then. */
	if (faccessat(c->hierarchies[0].fd, "cgroup.procs", F_OK, 0) < 0)
		return err_sys(err, errno == ENODEV ? ENOENT : errno, "cgroup %s", c->hierarchies[0].dir);
	*ret = (struct cgroup_stats){ .memory_limit = UINT64_MAX, .memory_swap_limit = UINT64_MAX, .pids_limit = UINT64_MAX };
	if (c->mode == CGROUP_V2)
		stats_v2(&c->hierarchies[0], ret);
	else
		stats_v1(c, ret);
	return 0;
}

/* ---- out of memory ---- */

static int oom_fd_v1(const struct cgroup_hierarchy *h, struct err *err)
{
	CLEANUP(fd_closep) int control = openat(h->fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	if (control < 0)
		return err_sys(err, errno, "open %s/memory.oom_control", h->dir);
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return err_sys(err, errno, "eventfd");
	int r = cgroup_writef(h, "cgroup.event_control", err, "%d %d", fd, control);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

static int oom_fd_v2(const struct cgroup_hierarchy *h, struct err *err)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(8192);
	buf_addf(&path, "%s/memory.events", h->dir);
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (fd < 0)
		return err_sys(err, errno, "inotify_init");
	if (inotify_add_watch(fd, path.p, IN_MODIFY) < 0) {
		int r = err_sys(err, errno, "watch %s", path.p);
		close(fd);
		return r;
	}
	return fd;
}

int cgroup_oom_fd(struct cgroup *c, struct err *err)
{
	const struct cgroup_hierarchy *h;
	int r = cgroup_need(c, CGROUP_MEMORY, &h, err);
	if (r < 0)
		return r;
	return c->mode == CGROUP_V2 ? oom_fd_v2(h, err) : oom_fd_v1(h, err);
}
