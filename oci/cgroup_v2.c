/* v2: one hierarchy. config.json speaks of v1's values: here they are converted. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "codec/atoms.h"
#include "oci/cgroup_priv.h"

enum { CONTROLLERS_TEXT_MAX = 4096 };

void cgroup_v2_enable(int fd)
{
	struct cgroup_hierarchy h = { .fd = fd, .dir = "" };
	CLEANUP(buf_done) struct buf have = BUF_INIT(CONTROLLERS_TEXT_MAX), on = BUF_INIT(CONTROLLERS_TEXT_MAX);
	CLEANUP(buf_done) struct buf wanted = BUF_INIT(2 * CONTROLLERS_TEXT_MAX);
	if (cgroup_read(&h, "cgroup.controllers", &have, NULL) < 0 || cgroup_read(&h, "cgroup.subtree_control", &on, NULL) < 0)
		return;
	str all = str_trim(buf_str(&have));
	for (str name; all.n; ) {
		str_cut(all, ' ', &name, &all);
		bool is_on = false;
		for (str have_name, rest = str_trim(buf_str(&on)); rest.n && !is_on; ) {
			str_cut(rest, ' ', &have_name, &rest);
			is_on = str_eq(have_name, name);
		}
		if (!is_on)
			buf_addf(&wanted, "%s+" STR_FMT, wanted.n ? " " : "", STR_ARG(name));
	}
	if (!wanted.n || cgroup_write(&h, "cgroup.subtree_control", buf_str(&wanted), NULL) >= 0)
		return;
	/* One that cannot be (realtime processes forbid cpu) must not cost the others. A limit that needs it fails then, and says so. */
	for (str name, rest = buf_str(&wanted); rest.n; ) {
		str_cut(rest, ' ', &name, &rest);
		(void)cgroup_write(&h, "cgroup.subtree_control", name, NULL);
	}
}

uint64_t cgroup_weight_of_shares(uint64_t shares)
{
	if (shares == 0)
		return 0;
	if (shares <= 2)
		return 1;
	if (shares >= 262144)
		return 10000;
	/* The curve of runc 1.3 and crun 1.23 through (2, 1), (1024, 100) and (262144, 10000). */
	double l = log2((double)shares);
	return (uint64_t)ceil(pow(10, (l * l + 125 * l) / 612.0 - 7.0 / 34.0));
}

uint64_t cgroup_io_weight(uint64_t weight)
{
	return weight == 0 ? 0 : 1 + (MAX(weight, UINT64_C(10)) - 10) * 9999 / 990;
}

int cgroup_v2_swap(int64_t swap, int64_t limit, int64_t *ret, struct err *err)
{
	*ret = swap;
	if (swap == 0)
		*ret = limit == -1 ? -1 : -2;   /* no limit of memory: none of both together either, as under v1 */
	else if (swap == -1 || limit == -1)
		return 0;
	else if (limit == 0)
		return err_set(err, ERR_INVALID, "unable to set swap limit without memory limit");
	else if (swap < limit)
		return err_set(err, ERR_INVALID, "memory+swap limit should be >= memory limit");
	else
		*ret = swap - limit;
	return 0;
}

/* A limit of bytes; -1 is "max". */
static int write_bytes(const struct cgroup_hierarchy *h, const char *file, int64_t value, struct err *err)
{
	return value == -1 ? cgroup_write(h, file, STR("max"), err) : cgroup_writef(h, file, err, "%lld", (long long)value);
}

/* What is asked for must be above what is used, when config.json wants to know beforehand rather than be killed after. */
static int check_usage(const struct cgroup_hierarchy *h, int64_t limit, int64_t swap, struct err *err)
{
	uint64_t usage;
	if (cgroup_read_u64(h, "memory.current", &usage, NULL) < 0)
		return 0;
	if (swap > 0 && (uint64_t)swap <= usage)
		return err_set(err, ERR_INVALID, "rejecting memory+swap limit %lld <= usage %llu", (long long)swap, (unsigned long long)usage);
	if (limit > 0 && (uint64_t)limit <= usage)
		return err_set(err, ERR_INVALID, "rejecting memory limit %lld <= usage %llu", (long long)limit, (unsigned long long)usage);
	return 0;
}

static int limit_memory(const struct cgroup_hierarchy *h, struct val memory, struct err *err)
{
	int64_t limit = 0, swap = 0, reservation = 0, swap_only;
	int r = 0;
	cgroup_int(val_get(memory, limit), "memory.limit", -1, INT64_MAX, &limit, &r, err);
	cgroup_int(val_get(memory, swap), "memory.swap", -1, INT64_MAX, &swap, &r, err);
	cgroup_int(val_get(memory, reservation), "memory.reservation", -1, INT64_MAX, &reservation, &r, err);
	if (r < 0 || (r = cgroup_v2_swap(swap, limit, &swap_only, err)) < 0)
		return r;
	if (val_bool(memory, checkBeforeUpdate) && (r = check_usage(h, limit, swap, err)) < 0)
		return r;
	if (swap_only != -2) {
		struct err why = ERR_INIT;
		r = write_bytes(h, "memory.swap.max", swap_only, &why);
		/* A kernel that does not count swap has none to limit. */
		if (r < 0 && !(why.sys == ENOENT && swap_only <= 0)) {
			if (err)
				*err = why;
			return r;
		}
	}
	if (limit != 0 && (r = write_bytes(h, "memory.max", limit, err)) < 0)
		return r;
	return reservation != 0 ? write_bytes(h, "memory.low", reservation, err) : 0;
}

static int limit_cpu(const struct cgroup_hierarchy *h, struct val cpu, struct err *err)
{
	int64_t shares = 0, quota = 0, period = 0, idle, burst;
	int r = 0;
	cgroup_int(val_get(cpu, shares), "cpu.shares", 0, INT64_MAX, &shares, &r, err);
	cgroup_int(val_get(cpu, quota), "cpu.quota", INT64_MIN, INT64_MAX, &quota, &r, err);
	cgroup_int(val_get(cpu, period), "cpu.period", 0, INT64_MAX, &period, &r, err);
	bool has_idle = cgroup_int(val_get(cpu, idle), "cpu.idle", INT64_MIN, INT64_MAX, &idle, &r, err);
	bool has_burst = cgroup_int(val_get(cpu, burst), "cpu.burst", 0, INT64_MAX, &burst, &r, err);
	if (r < 0)
		return r;
	if (has_idle && (r = cgroup_writef(h, "cpu.idle", err, "%lld", (long long)idle)) < 0)
		return r;
	/* An idle cgroup has no weight. */
	if (shares && !(has_idle && idle == 1) &&
	    (r = cgroup_writef(h, "cpu.weight", err, "%llu", (unsigned long long)cgroup_weight_of_shares((uint64_t)shares))) < 0)
		return r;
	struct err why = ERR_INIT;
	if (has_burst) {
		r = cgroup_writef(h, "cpu.max.burst", &why, "%lld", (long long)burst);
		/* Above the quota that is about to change: once more after that. */
		if (r < 0 && !(why.sys == EINVAL && quota)) {
			if (err)
				*err = why;
			return r;
		}
		has_burst = r < 0;
	}
	if (quota || period) {
		if (!period)
			period = 100000;
		r = quota > 0 ? cgroup_writef(h, "cpu.max", err, "%lld %lld", (long long)quota, (long long)period) :
				cgroup_writef(h, "cpu.max", err, "max %lld", (long long)period);
		if (r >= 0 && has_burst)
			r = cgroup_writef(h, "cpu.max.burst", err, "%lld", (long long)burst);
	}
	return MIN(r, 0);
}

static int limit_cpuset(const struct cgroup_hierarchy *h, struct val cpu, struct err *err)
{
	str cpus = val_str(cpu, cpus), mems = val_str(cpu, mems);
	int r = cpus.n ? cgroup_write(h, "cpuset.cpus", cpus, err) : 0;
	return r >= 0 && mems.n ? cgroup_write(h, "cpuset.mems", mems, err) : r;
}

/* The weight goes to BFQ's file where there is one: it takes v1's values as they are. */
static int limit_weight(const struct cgroup_hierarchy *h, struct val io, struct err *err)
{
	int64_t weight = 0;
	int r = 0;
	cgroup_int(val_get(io, weight), "blockIO.weight", 0, 1000, &weight, &r, err);
	if (r < 0)
		return r;
	bool bfq = faccessat(h->fd, "io.bfq.weight", F_OK, 0) == 0;
	if (weight && bfq)
		r = cgroup_writef(h, "io.bfq.weight", err, "%lld", (long long)weight);
	else if (weight)
		r = cgroup_writef(h, "io.weight", err, "%llu", (unsigned long long)cgroup_io_weight((uint64_t)weight));
	if (r < 0)
		return r;
	VAL_EACH(d, val_get(io, weightDevice)) {
		struct cgroup_device device;
		if ((r = cgroup_device_of(*d, &device, err)) < 0)
			return r;
		if (device.weight && bfq)
			r = cgroup_writef(h, "io.bfq.weight", err, "%u:%u %u", device.major, device.minor, device.weight);
		else if (device.weight)
			r = cgroup_writef(h, "io.weight", err, "%u:%u %u", device.major, device.minor,
					  (unsigned)cgroup_io_weight(device.weight));
		if (r < 0)
			return r;
	}
	return 0;
}

static int limit_io(const struct cgroup_hierarchy *h, struct val io, struct err *err)
{
	int r = limit_weight(h, io, err);
	if (r >= 0)
		r = cgroup_limit_throttle(h, val_get(io, throttleReadBpsDevice), "io.max", "rbps=", err);
	if (r >= 0)
		r = cgroup_limit_throttle(h, val_get(io, throttleWriteBpsDevice), "io.max", "wbps=", err);
	if (r >= 0)
		r = cgroup_limit_throttle(h, val_get(io, throttleReadIOPSDevice), "io.max", "riops=", err);
	if (r >= 0)
		r = cgroup_limit_throttle(h, val_get(io, throttleWriteIOPSDevice), "io.max", "wiops=", err);
	return r;
}

/* Files by their own names; a value of several lines is written line by line, as the kernel takes one at a time. */
static int limit_unified(const struct cgroup_hierarchy *h, struct val unified, struct err *err)
{
	VAL_EACH_MEMBER(m, unified) {
		str key = atom_str(m->key), value = val_as_str(m->val), controller, rest;
		char file[128];
		if (str_chr(key, '/') >= 0)
			return err_set(err, ERR_INVALID, "unified resource \"" STR_FMT "\" must be a file name (no slashes)", STR_ARG(key));
		if (!str_cut(key, '.', &controller, &rest) || key.n >= sizeof(file))
			return err_set(err, ERR_INVALID, "unified resource \"" STR_FMT "\" must be in the form CONTROLLER.PARAMETER",
				       STR_ARG(key));
		memcpy(file, key.p, key.n);
		file[key.n] = '\0';
		do {
			str line;
			str_cut(value, '\n', &line, &value);
			int r = cgroup_write(h, file, line, err);
			if (r < 0)
				return err_wrap(err, r, "unable to set unified resource \"%s\"", file);
		} while (value.n);
	}
	return 0;
}

int cgroup_v2_limit(struct cgroup *c, struct val resources, struct err *err)
{
	const struct cgroup_hierarchy *h;
	int r = cgroup_need(c, CGROUP_UNIFIED, &h, err);
	if (r >= 0)
		r = cgroup_limit_pids(c, val_get(resources, pids), err);
	if (r >= 0)
		r = limit_memory(h, val_get(resources, memory), err);
	if (r >= 0)
		r = limit_io(h, val_get(resources, blockIO), err);
	if (r >= 0)
		r = limit_cpu(h, val_get(resources, cpu), err);
	if (r >= 0)
		r = limit_cpuset(h, val_get(resources, cpu), err);
	if (r >= 0)
		r = cgroup_limit_hugepages(c, val_get(resources, hugepageLimits), ".max", err);
	if (r >= 0)
		r = cgroup_limit_rdma(c, val_get(resources, rdma), err);
	if (r >= 0)
		r = limit_unified(h, val_get(resources, unified), err);
	return r;
}
