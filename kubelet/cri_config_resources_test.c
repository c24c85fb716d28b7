#include <unistd.h>

#include "kubelet/cri_config_testing.h"

/* Without the limits of huge pages, which depend on the machine. */
static str resources_text(struct arena *a, const struct kubelet_node *n, struct val pod, struct val container)
{
	return testing_text(a, val_without(a, container_resources_make(n, a, pod, container), hugepageLimits));
}

TEST(resources_of_container)
{
	static const struct {
		const char *spec, *resources, *want;
	} t[] = {
		/* BestEffort: the least that there is of everything. */
		{ "", "", "{'cpuPeriod':100000,'cpuShares':2,'oomScoreAdj':1000}" },
		/* Guaranteed. */
		{ "", "'resources':{'requests':{'cpu':'500m','memory':'100Mi'},'limits':{'cpu':'500m','memory':'100Mi'}},",
		  "{'cpuPeriod':100000,'cpuQuota':50000,'cpuShares':512,'memoryLimitInBytes':104857600,'oomScoreAdj':-997}" },
		/* Burstable: by the part of the machine's memory, and never as BestEffort. */
		{ "", "'resources':{'requests':{'cpu':'1','memory':'100Mi'}},", "{'cpuPeriod':100000,'cpuShares':1024,'oomScoreAdj':900}" },
		{ "", "'resources':{'requests':{'memory':'1Ki'}},", "{'cpuPeriod':100000,'cpuShares':2,'oomScoreAdj':999}" },
		{ "", "'resources':{'requests':{'memory':'4000Mi'}},", "{'cpuPeriod':100000,'cpuShares':2,'oomScoreAdj':3}" },
		/* A limit counts as request; quota has a least value, shares have a most. */
		{ "", "'resources':{'limits':{'cpu':'2m'}},", "{'cpuPeriod':100000,'cpuQuota':1000,'cpuShares':2,'oomScoreAdj':999}" },
		{ "", "'resources':{'limits':{'cpu':'250m'}},", "{'cpuPeriod':100000,'cpuQuota':25000,'cpuShares':256,'oomScoreAdj':999}" },
		{ "", "'resources':{'requests':{'cpu':'1000'}},", "{'cpuPeriod':100000,'cpuShares':262144,'oomScoreAdj':999}" },
		/* An explicit request of 0 does not take the limit. */
		{ "", "'resources':{'requests':{'cpu':'0'},'limits':{'cpu':'1'}},",
		  "{'cpuPeriod':100000,'cpuQuota':100000,'cpuShares':2,'oomScoreAdj':999}" },
		/* Limits of the pod hold for containers without; what it asks beyond them is shared out. */
		{ "'resources':{'requests':{'memory':'200Mi'},'limits':{'cpu':'1','memory':'300Mi'}},", "",
		  "{'cpuPeriod':100000,'cpuQuota':100000,'cpuShares':1024,'memoryLimitInBytes':314572800,'oomScoreAdj':800}" },
		{ "'resources':{'limits':{'cpu':'1','memory':'300Mi'}},", "'resources':{'limits':{'cpu':'100m','memory':'1Mi'}},",
		  "{'cpuPeriod':100000,'cpuQuota':10000,'cpuShares':102,'memoryLimitInBytes':1048576,'oomScoreAdj':999}" },
		/* What the node cannot do without. */
		{ "'priority':2000001000,'priorityClassName':'system-node-critical',", "", "{'cpuPeriod':100000,'cpuShares':2,'oomScoreAdj':-997}" },
		{ "'priority':1000,'priorityClassName':'system-node-critical',", "", "{'cpuPeriod':100000,'cpuShares':2,'oomScoreAdj':1000}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		struct val pod = testing_pod(&a, t[i].spec, t[i].resources, "");
		CHECK_STR_ROW(i, resources_text(&a, &n, pod, testing_container(pod)), t[i].want);
	}
}

TEST(resources_of_sidecar_outlive_the_main_container)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct val pod = testing_pod(&a, "'initContainers':[{'name':'s','image':'i','restartPolicy':'Always','resources':{'requests':{'memory':'1Mi'}}}],",
				     "'resources':{'requests':{'memory':'500Mi'}},", "");

	CHECK_INT(val_int(container_resources_make(&n, &a, pod, val_at(val_get(pod, spec, initContainers), 0)), oomScoreAdj), 500);
}

TEST(resources_by_cgroup_version_and_swap)
{
	static const struct {
		bool v2, single, swap, limited;
		const char *want;
	} t[] = {
		{ false, false, false, false, "{'cpuPeriod':100000,'cpuShares':2,'memoryLimitInBytes':209715200,'oomScoreAdj':900}" },
		{ false, false, true, true,
		  "{'cpuPeriod':100000,'cpuShares':2,'memoryLimitInBytes':209715200,'oomScoreAdj':900,'memorySwapLimitInBytes':209715200}" },
		{ true, false, false, false,
		  "{'cpuPeriod':100000,'cpuShares':2,'memoryLimitInBytes':209715200,'oomScoreAdj':900,'unified':{'memory.oom.group':'1'}}" },
		{ true, true, false, false, "{'cpuPeriod':100000,'cpuShares':2,'memoryLimitInBytes':209715200,'oomScoreAdj':900}" },
		{ true, true, true, false,
		  "{'cpuPeriod':100000,'cpuShares':2,'memoryLimitInBytes':209715200,'oomScoreAdj':900,'unified':{'memory.swap.max':'0'}}" },
		/* A tenth of the memory, so a tenth of the swap. */
		{ true, false, true, true,
		  "{'cpuPeriod':100000,'cpuShares':2,'memoryLimitInBytes':209715200,'oomScoreAdj':900,"
		  "'unified':{'memory.oom.group':'1','memory.swap.max':'5000'}}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		struct val pod = testing_pod(&a, "", "'resources':{'requests':{'memory':'100Mi','cpu':'1m'},'limits':{'memory':'200Mi'}},", "");
		n.cgroup_v2 = t[i].v2;
		n.single_process_oom_kill = t[i].single;
		n.swap_controller = t[i].swap;
		n.swap_limited = t[i].limited;
		n.swap_bytes = 50000;
		CHECK_STR_ROW(i, resources_text(&a, &n, pod, testing_container(pod)), t[i].want);
	}
}

TEST(resources_memory_quality)
{
	static const struct {
		bool tiered;
		const char *resources, *want;
	} t[] = {
		/* Up to nine tenths of the way from the request to the limit, in whole pages. */
		{ false, "'requests':{'memory':'100Mi'},'limits':{'memory':'200Mi'}", "{'memory.high':'199229440','memory.low':'0','memory.min':'0'}" },
		{ false, "'requests':{'memory':'1001'},'limits':{'memory':'100001'}", "{'memory.high':'86016','memory.low':'0','memory.min':'0'}" },
		/* Without a limit: to what all pods have; never below the request. */
		{ false, "'requests':{'memory':'100Mi'}", "{'memory.high':'859832320','memory.low':'0','memory.min':'0'}" },
		{ false, "'requests':{'memory':'901Mi'}", "{'memory.low':'0','memory.min':'0'}" },
		{ true, "'requests':{'memory':'100Mi'},'limits':{'memory':'200Mi'}", "{'memory.high':'199229440','memory.low':'104857600'}" },
		/* Guaranteed: for sure, and no slowing down. */
		{ true, "'requests':{'cpu':'1','memory':'100Mi'},'limits':{'cpu':'1','memory':'100Mi'}", "{'memory.min':'104857600'}" },
		{ true, "'requests':{'memory':'100Mi'},'limits':{'memory':'100Mi'}", "{'memory.low':'104857600'}" },
		/* BestEffort. */
		{ true, "", "{'memory.low':'0','memory.min':'0'}" },
	};

	if (sysconf(_SC_PAGESIZE) != 4096)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		struct val pod = testing_pod(&a, "", arena_printf(&a, "'resources':{%s},", t[i].resources).p, "");
		n.cgroup_v2 = n.single_process_oom_kill = n.memory_qos = true;
		n.memory_tiered = t[i].tiered;
		n.memory_throttling = 0.9;
		n.memory_for_pods = 900 << 20;
		CHECK_STR_ROW(i, testing_text(&a, val_get(container_resources_make(&n, &a, pod, testing_container(pod)), unified)), t[i].want);
	}
}

TEST(resources_cfs_quota_by_configuration)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct val pod = testing_pod(&a, "", "'resources':{'limits':{'cpu':'1'}},", "");

	n.cfs_period_us = 10000;
	CHECK_STR(resources_text(&a, &n, pod, testing_container(pod)), "{'cpuPeriod':10000,'cpuQuota':10000,'cpuShares':1024,'oomScoreAdj':999}");
	n.no_cfs_quota = true;
	CHECK_STR(resources_text(&a, &n, pod, testing_container(pod)), "{'cpuShares':1024,'oomScoreAdj':999}");
}

static struct val pages_of(struct val resources, const char *size)
{
	VAL_EACH(h, val_get(resources, hugepageLimits))
		if (str_eq(val_str(*h, pageSize), str_of(size)))
			return *h;
	return VAL_EMPTY;
}

TEST(resources_huge_pages_have_limits)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct val with = testing_pod(&a, "", "'resources':{'limits':{'hugepages-2Mi':'6Mi','memory':'1Mi'}},", "");
	struct val of_pod = testing_pod(&a, "'resources':{'limits':{'hugepages-2Mi':'8Mi'}},", "", ""), without = testing_pod(&a, "", "", "");

	if (access("/sys/kernel/mm/hugepages/hugepages-2048kB", F_OK) != 0)
		skip();
	CHECK_INT(val_int(pages_of(container_resources_make(&n, &a, with, testing_container(with)), "2MB"), limit), 6 << 20);
	CHECK_INT(val_int(pages_of(container_resources_make(&n, &a, of_pod, testing_container(of_pod)), "2MB"), limit), 8 << 20);
	struct val none = pages_of(container_resources_make(&n, &a, without, testing_container(without)), "2MB");
	CHECK(val_exists(none));
	CHECK_INT(val_int(none, limit), 0);
}

TEST(resources_of_sandbox)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct val pod = testing_pod(&a, "'overhead':{'cpu':'250m','memory':'16Mi'},"
				     "'initContainers':[{'name':'i','image':'i','resources':{'limits':{'memory':'64Mi'}}}],",
				     "'resources':{'requests':{'cpu':'100m'},'limits':{'cpu':'200m','memory':'32Mi'}},", "");

	CHECK_STR(testing_text(&a, cri_config_sandbox_resources(&n, &a, pod)),
		  "{'cpuPeriod':100000,'cpuQuota':20000,'cpuShares':102,'memoryLimitInBytes':67108864,'oomScoreAdj':0,'unified':{},"
		  "'memorySwapLimitInBytes':0}");
	CHECK_STR(testing_text(&a, cri_config_overhead(&n, &a, pod)),
		  "{'cpuPeriod':100000,'cpuQuota':25000,'cpuShares':256,'memoryLimitInBytes':16777216,'oomScoreAdj':0,'unified':{},"
		  "'memorySwapLimitInBytes':0}");
	CHECK_STR(testing_text(&a, cri_config_overhead(&n, &a, testing_pod(&a, "", "", ""))), "{}");
}

TEST(pod_qos_is_that_of_the_status)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = testing_pod(&a, "", "", "");

	CHECK_STR(pod_qos(pod), "BestEffort");
	CHECK_STR(pod_qos(val_with(&a, pod, VAL_LIT("Burstable"), status, qosClass)), "Burstable");
}
