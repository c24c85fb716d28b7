/* What is set in a cgroup, and which are below it. */
#include <dirent.h>
#include <fcntl.h>

#include "base/map.h"
#include "oci/cgroup_priv.h"

enum { LINE_MAX_BYTES = 256 };

/* v1: -1 is no limit. */
static void quota_v1(const struct cgroup_hierarchy *h, struct cgroup_limits *l)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(LINE_MAX_BYTES);
	uint64_t period;
	int64_t quota;

	if (cgroup_read(h, "cpu.cfs_quota_us", &b, NULL) >= 0 && str_to_i64(str_trim(buf_str(&b)), &quota))
		l->cpu_quota_us = MAX(quota, INT64_C(-1));
	if (cgroup_read_u64(h, "cpu.cfs_period_us", &period, NULL) >= 0)
		l->cpu_period_us = (int64_t)MIN(period, (uint64_t)INT64_MAX);
}

/* v2: "max 100000". */
static void quota_v2(const struct cgroup_hierarchy *h, struct cgroup_limits *l)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(LINE_MAX_BYTES);
	str quota, period;

	if (cgroup_read(h, "cpu.max", &b, NULL) < 0)
		return;
	str_cut(str_trim(buf_str(&b)), ' ', &quota, &period);
	if (!str_to_i64(quota, &l->cpu_quota_us))
		l->cpu_quota_us = -1;
	(void)str_to_i64(period, &l->cpu_period_us);
}

void cgroup_limits(const struct cgroup *c, struct cgroup_limits *ret)
{
	const struct cgroup_hierarchy *cpu = cgroup_hierarchy(c, CGROUP_CPU), *memory = cgroup_hierarchy(c, CGROUP_MEMORY);
	bool v2 = c->mode == CGROUP_V2;

	*ret = (struct cgroup_limits){ .cpu_quota_us = -1, .memory = UINT64_MAX };
	if (cpu && v2)
		quota_v2(cpu, ret);
	else if (cpu)
		quota_v1(cpu, ret);
	if (memory)
		(void)cgroup_read_u64(memory, v2 ? "memory.max" : "memory.limit_in_bytes", &ret->memory, NULL);
}

static void add_names(DIR *folder, struct arena *a, struct map *seen, struct val_builder *names)
{
	static char here;

	for (struct dirent *e; (e = readdir(folder));) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.' || map_get(seen, str_of(e->d_name)))
			continue;
		str name = arena_str(a, str_of(e->d_name));
		map_put(seen, name, &here);
		val_add_item(names, val_of_str(name));
	}
}

struct val cgroup_below(const struct cgroup *c, struct arena *a)
{
	struct val_builder names = val_builder(a);
	CLEANUP(map_done) struct map seen = MAP_INIT;

	map_init(&seen);
	for (size_t i = 0; i < c->n; i++) {
		int fd = openat(c->hierarchies[i].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *folder = fd < 0 ? NULL : fdopendir(fd);
		if (!folder) {
			fd_closep(&fd);
			continue;
		}
		add_names(folder, a, &seen, &names);
		closedir(folder);
	}
	return val_end_list(&names);
}
