/* linux.resources: what v1 and v2 have in common, and how its numbers are read. */
#include <errno.h>

#include "codec/atoms.h"
#include "oci/cgroup_priv.h"

bool cgroup_int(struct val v, const char *name, int64_t min, int64_t max, int64_t *ret, int *ret_r, struct err *err)
{
	if (val_is_nil(v) || *ret_r < 0)
		return false;
	if (v.type != VAL_INT || v.i < min || v.i > max) {
		*ret_r = v.type == VAL_INT ?
			err_set(err, ERR_INVALID, "linux.resources.%s: %lld is out of range", name, (long long)v.i) :
			err_set(err, ERR_INVALID, "linux.resources.%s: it is no integer, or too large", name);
		return false;
	}
	*ret = v.i;
	return true;
}

int cgroup_limit_pids(const struct cgroup *c, struct val pids, struct err *err)
{
	int64_t limit;
	int r = 0;
	if (!cgroup_int(val_get(pids, limit), "pids.limit", INT64_MIN, INT64_MAX, &limit, &r, err))
		return r;
	const struct cgroup_hierarchy *h;
	if ((r = cgroup_need(c, CGROUP_PIDS, &h, err)) < 0)
		return r;
	if (limit < 0)
		return cgroup_write(h, "pids.max", STR("max"), err);
	/* 0 is 1, as runc and systemd have it. */
	return cgroup_writef(h, "pids.max", err, "%lld", (long long)MAX(limit, INT64_C(1)));
}

int cgroup_limit_rdma(const struct cgroup *c, struct val rdma, struct err *err)
{
	VAL_EACH_MEMBER(m, rdma) {
		int64_t handles, objects;
		int r = 0;
		const struct cgroup_hierarchy *h;
		CLEANUP(buf_done) struct buf line = BUF_INIT(4096);
		buf_add(&line, atom_str(m->key));
		if (cgroup_int(val_get(m->val, hcaHandles), "rdma.hcaHandles", 0, UINT32_MAX, &handles, &r, err))
			buf_addf(&line, " hca_handle=%lld", (long long)handles);
		if (cgroup_int(val_get(m->val, hcaObjects), "rdma.hcaObjects", 0, UINT32_MAX, &objects, &r, err))
			buf_addf(&line, " hca_object=%lld", (long long)objects);
		if (r < 0 || (r = cgroup_need(c, CGROUP_RDMA, &h, err)) < 0 || (r = buf_check(&line, "linux.resources.rdma", err)) < 0 ||
		    (r = cgroup_write(h, "rdma.max", buf_str(&line), err)) < 0)
			return r;
	}
	return 0;
}

/* A size as the kernel writes it in the names of files: 2MB, 64KB, 1GB. */
static bool is_page_size(str s)
{
	size_t digits = 0;
	while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
		digits++;
	str unit = str_skip(s, digits);
	return digits > 0 && digits < 16 && (str_eq(unit, STR("KB")) || str_eq(unit, STR("MB")) || str_eq(unit, STR("GB")));
}

int cgroup_limit_hugepages(const struct cgroup *c, struct val limits, const char *suffix, struct err *err)
{
	VAL_EACH(l, limits) {
		str size = val_str(*l, pageSize);
		if (!is_page_size(size))
			return err_set(err, ERR_INVALID, "linux.resources.hugepageLimits: \"" STR_FMT "\" is no page size", STR_ARG(size));
		const struct cgroup_hierarchy *h;
		int64_t limit = 0;
		int r = 0;
		cgroup_int(val_get(*l, limit), "hugepageLimits.limit", 0, INT64_MAX, &limit, &r, err);
		if (r < 0 || (r = cgroup_need(c, CGROUP_HUGETLB, &h, err)) < 0)
			return r;
		char file[64];
		snprintf(file, sizeof(file), "hugetlb." STR_FMT "%s", STR_ARG(size), suffix);
		if ((r = cgroup_writef(h, file, err, "%lld", (long long)limit)) < 0)
			return r;
		/* What is reserved counts too, where the kernel (5.7 and later) counts it. */
		struct err why = ERR_INIT;
		snprintf(file, sizeof(file), "hugetlb." STR_FMT ".rsvd%s", STR_ARG(size), suffix);
		if ((r = cgroup_writef(h, file, &why, "%lld", (long long)limit)) < 0 && why.sys != ENOENT) {
			if (err)
				*err = why;
			return r;
		}
	}
	return 0;
}

int cgroup_device_of(struct val v, struct cgroup_device *ret, struct err *err)
{
	int64_t major = 0, minor = 0, weight = 0, leaf = 0;
	int r = 0;
	cgroup_int(val_get(v, major), "blockIO device: major", 0, UINT32_MAX, &major, &r, err);
	cgroup_int(val_get(v, minor), "blockIO device: minor", 0, UINT32_MAX, &minor, &r, err);
	cgroup_int(val_get(v, weight), "blockIO device: weight", 0, 1000, &weight, &r, err);
	cgroup_int(val_get(v, leafWeight), "blockIO device: leafWeight", 0, 1000, &leaf, &r, err);
	*ret = (struct cgroup_device){ (unsigned)major, (unsigned)minor, (unsigned)weight, (unsigned)leaf };
	return r;
}

int cgroup_limit_throttle(const struct cgroup_hierarchy *h, struct val list, const char *file, const char *key, struct err *err)
{
	VAL_EACH(v, list) {
		struct cgroup_device device;
		int64_t rate = 0;
		int r = cgroup_device_of(*v, &device, err);
		cgroup_int(val_get(*v, rate), "blockIO device: rate", 0, INT64_MAX, &rate, &r, err);
		/* 0 is no limit: v1 takes it so, v2 has a word. */
		if (r >= 0 && rate == 0 && key[0])
			r = cgroup_writef(h, file, err, "%u:%u %smax", device.major, device.minor, key);
		else if (r >= 0)
			r = cgroup_writef(h, file, err, "%u:%u %s%lld", device.major, device.minor, key, (long long)rate);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_limit(struct cgroup *c, struct val resources, struct err *err)
{
	return c->mode == CGROUP_V2 ? cgroup_v2_limit(c, resources, err) : cgroup_v1_limit(c, resources, err);
}
