/* v1: a hierarchy per controller. Some pairs of values are checked against each other by the kernel, so their order matters. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "codec/atoms.h"
#include "oci/cgroup_priv.h"

enum { CPUSET_TEXT_MAX = 65536 };

static int inherit(int parent, int fd, const char *dir, const char *file, struct err *err)
{
	struct cgroup_hierarchy from = { .fd = parent, .dir = (char *)dir }, to = { .fd = fd, .dir = (char *)dir };
	CLEANUP(buf_done) struct buf have = BUF_INIT(CPUSET_TEXT_MAX), above = BUF_INIT(CPUSET_TEXT_MAX);
	int r = cgroup_read(&to, file, &have, err);
	if (r < 0 || str_trim(buf_str(&have)).n)
		return r;
	if ((r = cgroup_read(&from, file, &above, err)) < 0)
		return r;
	return cgroup_write(&to, file, str_trim(buf_str(&above)), err);
}

int cgroup_v1_inherit_cpuset(int parent, int fd, const char *dir, struct err *err)
{
	int r = inherit(parent, fd, dir, "cpuset.cpus", err);
	return r < 0 ? r : inherit(parent, fd, dir, "cpuset.mems", err);
}

/* ---- memory ---- */

/* The kernel says EBUSY when more is in use than it can give back. */
static int write_memory(const struct cgroup_hierarchy *h, int64_t limit, struct err *err)
{
	struct err why = ERR_INIT;
	int r = cgroup_writef(h, "memory.limit_in_bytes", &why, "%lld", (long long)limit);
	uint64_t usage = 0, peak = 0;
	if (r < 0 && why.sys == EBUSY && cgroup_read_u64(h, "memory.usage_in_bytes", &usage, NULL) >= 0 &&
	    cgroup_read_u64(h, "memory.max_usage_in_bytes", &peak, NULL) >= 0) {
		r = err_set(err, ERR_CONFLICT, "unable to set memory limit to %lld (current usage: %llu, peak usage: %llu)",
			    (long long)limit, (unsigned long long)usage, (unsigned long long)peak);
		if (err)
			err->sys = EBUSY;
		return r;
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int write_swap(const struct cgroup_hierarchy *h, int64_t swap, struct err *err)
{
	return cgroup_writef(h, "memory.memsw.limit_in_bytes", err, "%lld", (long long)swap);
}

/* memsw may never be below memory: growing begins with memsw, shrinking with memory. */
static int write_memory_and_swap(const struct cgroup_hierarchy *h, int64_t limit, int64_t swap, struct err *err)
{
	if (limit == -1 && swap == 0 && faccessat(h->fd, "memory.memsw.limit_in_bytes", F_OK, 0) == 0)
		swap = -1;
	int r = 0;
	bool swap_first = false;
	if (limit && swap) {
		uint64_t now;
		if ((r = cgroup_read_u64(h, "memory.limit_in_bytes", &now, err)) < 0)
			return r;
		swap_first = swap == -1 || now < (uint64_t)swap;
	}
	if (swap_first && (r = write_swap(h, swap, err)) < 0)
		return r;
	if (limit && (r = write_memory(h, limit, err)) < 0)
		return r;
	return swap && !swap_first ? write_swap(h, swap, err) : 0;
}

static int limit_memory(const struct cgroup *c, struct val memory, struct err *err)
{
	int64_t limit = 0, swap = 0, reservation = 0, swappiness = -1;
	int r = 0;
	cgroup_int(val_get(memory, limit), "memory.limit", -1, INT64_MAX, &limit, &r, err);
	cgroup_int(val_get(memory, swap), "memory.swap", -1, INT64_MAX, &swap, &r, err);
	cgroup_int(val_get(memory, reservation), "memory.reservation", -1, INT64_MAX, &reservation, &r, err);
	cgroup_int(val_get(memory, swappiness), "memory.swappiness", -1, 100, &swappiness, &r, err);
	bool no_killer = val_bool(memory, disableOOMKiller);
	if (r < 0 || !(limit || swap || reservation || swappiness >= 0 || no_killer))
		return r;
	const struct cgroup_hierarchy *h;
	if ((r = cgroup_need(c, CGROUP_MEMORY, &h, err)) < 0 || (r = write_memory_and_swap(h, limit, swap, err)) < 0)
		return r;
	if (reservation && (r = cgroup_writef(h, "memory.soft_limit_in_bytes", err, "%lld", (long long)reservation)) < 0)
		return r;
	if (no_killer && (r = cgroup_write(h, "memory.oom_control", STR("1"), err)) < 0)
		return r;
	return swappiness >= 0 ? cgroup_writef(h, "memory.swappiness", err, "%lld", (long long)swappiness) : 0;
}

/* ---- cpu ---- */

/*
 * A value that the kernel may refuse (EINVAL) as long as another one is what it was. *pending: it is to be written again after
 * that, which is only tried if the other one is to change at all.
 */
static int write_pending(const struct cgroup_hierarchy *h, const char *file, int64_t value, bool other, bool *pending, struct err *err)
{
	struct err why = ERR_INIT;
	int r = cgroup_writef(h, file, &why, "%lld", (long long)value);
	*pending = r < 0 && why.sys == EINVAL && other;
	if (r < 0 && !*pending && err)
		*err = why;
	return *pending ? 0 : r;
}

static int limit_shares(const struct cgroup_hierarchy *h, int64_t shares, struct err *err)
{
	uint64_t now;
	int r = cgroup_writef(h, "cpu.shares", err, "%lld", (long long)shares);
	if (r < 0 || (r = cgroup_read_u64(h, "cpu.shares", &now, err)) < 0)
		return r;
	/* The kernel silently takes the nearest value that it can. */
	if (now != (uint64_t)shares)
		return err_set(err, ERR_INVALID, "the %s allowed cpu-shares is %llu", (uint64_t)shares > now ? "maximum" : "minimum",
			       (unsigned long long)now);
	return 0;
}

static int limit_bandwidth(const struct cgroup_hierarchy *h, struct val cpu, struct err *err)
{
	int64_t quota = 0, period = 0, burst = 0;
	int r = 0;
	bool pending_period = false, pending_burst = false;
	cgroup_int(val_get(cpu, quota), "cpu.quota", INT64_MIN, INT64_MAX, &quota, &r, err);
	cgroup_int(val_get(cpu, period), "cpu.period", 0, INT64_MAX, &period, &r, err);
	bool has_burst = cgroup_int(val_get(cpu, burst), "cpu.burst", 0, INT64_MAX, &burst, &r, err);
	if (r >= 0 && period)
		r = write_pending(h, "cpu.cfs_period_us", period, quota != 0, &pending_period, err);
	if (r >= 0 && has_burst && faccessat(h->fd, "cpu.cfs_burst_us", F_OK, 0) == 0)
		r = write_pending(h, "cpu.cfs_burst_us", burst, quota != 0, &pending_burst, err);
	if (r >= 0 && quota)
		r = cgroup_writef(h, "cpu.cfs_quota_us", err, "%lld", (long long)quota);
	if (r >= 0 && pending_period)
		r = cgroup_writef(h, "cpu.cfs_period_us", err, "%lld", (long long)period);
	if (r >= 0 && pending_burst)
		r = cgroup_writef(h, "cpu.cfs_burst_us", err, "%lld", (long long)burst);
	return r;
}

static int limit_realtime(const struct cgroup_hierarchy *h, struct val cpu, struct err *err)
{
	int64_t period = 0, runtime = 0;
	int r = 0;
	bool pending = false;
	cgroup_int(val_get(cpu, realtimePeriod), "cpu.realtimePeriod", 0, INT64_MAX, &period, &r, err);
	cgroup_int(val_get(cpu, realtimeRuntime), "cpu.realtimeRuntime", INT64_MIN, INT64_MAX, &runtime, &r, err);
	if (r >= 0 && period)
		r = write_pending(h, "cpu.rt_period_us", period, runtime != 0, &pending, err);
	if (r >= 0 && runtime)
		r = cgroup_writef(h, "cpu.rt_runtime_us", err, "%lld", (long long)runtime);
	if (r >= 0 && pending)
		r = cgroup_writef(h, "cpu.rt_period_us", err, "%lld", (long long)period);
	return r;
}

static int limit_cpu(const struct cgroup *c, struct val cpu, struct err *err)
{
	if (!val_len(cpu))
		return 0;
	int64_t shares = 0, idle = 0;
	int r = 0;
	cgroup_int(val_get(cpu, shares), "cpu.shares", 0, INT64_MAX, &shares, &r, err);
	bool has_idle = cgroup_int(val_get(cpu, idle), "cpu.idle", INT64_MIN, INT64_MAX, &idle, &r, err);
	const struct cgroup_hierarchy *h;
	if (r < 0 || (r = cgroup_need(c, CGROUP_CPU, &h, err)) < 0)
		return r;
	if (shares)
		r = limit_shares(h, shares, err);
	if (r >= 0)
		r = limit_bandwidth(h, cpu, err);
	if (r >= 0 && has_idle)
		r = cgroup_writef(h, "cpu.idle", err, "%lld", (long long)idle);
	return r < 0 ? r : limit_realtime(h, cpu, err);
}

static int limit_cpuset(const struct cgroup *c, struct val cpu, struct err *err)
{
	str cpus = val_str(cpu, cpus), mems = val_str(cpu, mems);
	if (!cpus.n && !mems.n)
		return 0;
	const struct cgroup_hierarchy *h;
	int r = cgroup_need(c, CGROUP_CPUSET, &h, err);
	if (r >= 0 && cpus.n)
		r = cgroup_write(h, "cpuset.cpus", cpus, err);
	return r >= 0 && mems.n ? cgroup_write(h, "cpuset.mems", mems, err) : r;
}

/* ---- the rest ---- */

static int limit_weights(const struct cgroup_hierarchy *h, struct val io, struct err *err)
{
	bool bfq = faccessat(h->fd, "blkio.weight", F_OK, 0) < 0;
	const char *file = bfq ? "blkio.bfq.weight" : "blkio.weight";
	const char *device_file = bfq ? "blkio.bfq.weight_device" : "blkio.weight_device";
	struct cgroup_device own;
	int r = cgroup_device_of(io, &own, err);    /* weight and leafWeight are named so here too */
	if (r >= 0 && own.weight)
		r = cgroup_writef(h, file, err, "%u", own.weight);
	if (r >= 0 && own.leaf_weight)
		r = cgroup_writef(h, "blkio.leaf_weight", err, "%u", own.leaf_weight);
	if (r < 0)
		return r;
	VAL_EACH(v, val_get(io, weightDevice)) {
		struct cgroup_device d;
		if ((r = cgroup_device_of(*v, &d, err)) < 0)
			return r;
		if (d.weight && (r = cgroup_writef(h, device_file, err, "%u:%u %u", d.major, d.minor, d.weight)) < 0)
			return r;
		if (d.leaf_weight &&
		    (r = cgroup_writef(h, "blkio.leaf_weight_device", err, "%u:%u %u", d.major, d.minor, d.leaf_weight)) < 0)
			return r;
	}
	return 0;
}

static int limit_io(const struct cgroup *c, struct val io, struct err *err)
{
	if (!val_len(io))
		return 0;
	const struct cgroup_hierarchy *h;
	int r = cgroup_need(c, CGROUP_BLKIO, &h, err);
	if (r >= 0)
		r = limit_weights(h, io, err);
	if (r >= 0)
		r = cgroup_limit_throttle(h, val_get(io, throttleReadBpsDevice), "blkio.throttle.read_bps_device", "", err);
	if (r >= 0)
		r = cgroup_limit_throttle(h, val_get(io, throttleWriteBpsDevice), "blkio.throttle.write_bps_device", "", err);
	if (r >= 0)
		r = cgroup_limit_throttle(h, val_get(io, throttleReadIOPSDevice), "blkio.throttle.read_iops_device", "", err);
	if (r >= 0)
		r = cgroup_limit_throttle(h, val_get(io, throttleWriteIOPSDevice), "blkio.throttle.write_iops_device", "", err);
	return r;
}

static int limit_network(const struct cgroup *c, struct val network, struct err *err)
{
	const struct cgroup_hierarchy *h;
	int64_t id = 0, priority = 0;
	int r = 0;
	cgroup_int(val_get(network, classID), "network.classID", 0, UINT32_MAX, &id, &r, err);
	if (r >= 0 && id && (r = cgroup_need(c, CGROUP_NET_CLS, &h, err)) >= 0)
		r = cgroup_writef(h, "net_cls.classid", err, "%lld", (long long)id);
	if (r < 0)
		return r;
	VAL_EACH(p, val_get(network, priorities)) {
		str name = val_str(*p, name);
		cgroup_int(val_get(*p, priority), "network.priorities.priority", 0, UINT32_MAX, &priority, &r, err);
		if (r < 0 || (r = cgroup_need(c, CGROUP_NET_PRIO, &h, err)) < 0 ||
		    (r = cgroup_writef(h, "net_prio.ifpriomap", err, STR_FMT " %lld", STR_ARG(name), (long long)priority)) < 0)
			return r;
	}
	return 0;
}

int cgroup_v1_limit(struct cgroup *c, struct val resources, struct err *err)
{
	if (val_len(val_get(resources, unified)))
		return err_set(err, ERR_INVALID, "invalid configuration: cannot use unified on cgroup v1");
	int r = limit_cpuset(c, val_get(resources, cpu), err);
	if (r >= 0)
		r = limit_memory(c, val_get(resources, memory), err);
	if (r >= 0)
		r = limit_cpu(c, val_get(resources, cpu), err);
	if (r >= 0)
		r = cgroup_limit_pids(c, val_get(resources, pids), err);
	if (r >= 0)
		r = limit_io(c, val_get(resources, blockIO), err);
	if (r >= 0)
		r = cgroup_limit_hugepages(c, val_get(resources, hugepageLimits), ".limit_in_bytes", err);
	if (r >= 0)
		r = limit_network(c, val_get(resources, network), err);
	if (r >= 0)
		r = cgroup_limit_rdma(c, val_get(resources, rdma), err);
	return r;
}
