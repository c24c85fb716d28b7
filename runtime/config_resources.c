/* Limits. */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/atoms.h"
#include "runtime/config_json.h"

enum { CAP_SYS_RESOURCE = 24, STATUS_MAX = 64 << 10 };

/* Zero is "not said" in CRI. */
static struct val said(struct val v) { return val_as_int(v) ? v : VAL_EMPTY; }
static struct val said_text(struct val v) { return val_as_str(v).n ? v : VAL_EMPTY; }

/* An object without members is left out. */
static struct val some(struct val object) { return val_len(object) ? object : VAL_EMPTY; }

static bool has_swap(void)
{
	return access("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", F_OK) == 0 ||
	       access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
}

static bool has_hugetlb(void)
{
	return access("/sys/fs/cgroup/hugetlb", F_OK) == 0 || access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
}

/* Without a limit of its own, swap has that of memory: there is none. */
static struct val memory(struct arena *a, struct val r)
{
	struct val limit = said(val_get(r, memoryLimitInBytes)), swap = said(val_get(r, memorySwapLimitInBytes));

	if (val_is_nil(swap))
		swap = limit;
	return some(OBJECT(a, F(limit, limit), F(swap, has_swap() ? swap : VAL_EMPTY)));
}

/* Where nothing counts huge pages, limits of them are not obeyed, as containerd's default is. */
static struct val hugepages(struct arena *a, struct val list)
{
	struct val_builder b = val_builder(a);

	if (!val_len(list) || !has_hugetlb())
		return VAL_EMPTY;
	VAL_EACH(h, list)
		val_add_item(&b, OBJECT(a, F(pageSize, val_get(*h, pageSize)), F(limit, val_of_int(val_int(*h, limit)))));
	return val_end_list(&b);
}

struct val config_resources(struct arena *a, struct val r)
{
	struct val cpu = some(OBJECT(a, F(shares, said(val_get(r, cpuShares))), F(quota, said(val_get(r, cpuQuota))),
				     F(period, said(val_get(r, cpuPeriod))), F(cpus, said_text(val_get(r, cpusetCpus))),
				     F(mems, said_text(val_get(r, cpusetMems)))));

	return OBJECT(a, F(memory, memory(a, r)), F(cpu, cpu), F(hugepageLimits, hugepages(a, val_get(r, hugepageLimits))),
		      F(unified, some(val_get(r, unified))));
}

static bool may_lower(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(STATUS_MAX);

	if (file_read("/proc/self/status", &b, NULL) < 0)
		return false;
	const char *at = strstr(b.p, "CapEff:");
	return at && (strtoull(at + strlen("CapEff:"), NULL, 16) >> CAP_SYS_RESOURCE & 1);
}

int64_t config_oom_score_adj(int64_t wanted)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64);
	int64_t own;

	if (may_lower() || file_read("/proc/self/oom_score_adj", &b, NULL) < 0 || !str_to_i64(str_trim(buf_str(&b)), &own))
		return wanted;
	return MAX(wanted, own);
}
