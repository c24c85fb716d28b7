/* What a container may use, in the terms of control groups. */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/cri_config_priv.h"
#include "kubelet/pod_rules.h"
#include "machinery/resources.h"

enum {
	SHARES_MIN = 2, SHARES_MAX = 262144, SHARES_PER_CPU = 1024,
	QUOTA_MIN_US = 1000,
	OOM_GUARANTEED = -997, OOM_BEST_EFFORT = 1000,
	CRITICAL_PRIORITY = 2000000000,
	PAGE_SIZES_MAX = 16,
};

/* ---- pods ---- */

str pod_qos(struct val pod)
{
	str class = val_str(pod, status, qosClass);
	return class.n ? class : pod_qos_class(val_get(pod, spec));
}

bool cri_config_pod_level(struct val pod, atom which)
{
	VAL_EACH_MEMBER(m, val_member(val_get(pod, spec, resources), which))
		if (resource_is_pod_level(atom_str(m->key)))
			return true;
	return false;
}

static bool pod_is_critical(struct val pod)
{
	return pod_is_static(pod) ||
	       val_exists(val_find(val_get(pod, metadata, annotations), STR("kubernetes.io/config.mirror"))) ||
	       val_int(pod, spec, priority) >= CRITICAL_PRIORITY;
}

static struct quantity amount(struct val resources, atom which, str name)
{
	return quantity_of(val_find(val_member(resources, which), name));
}

static int64_t memory_request(struct val container)
{
	return quantity_value(amount(val_get(container, resources), A_requests, STR("memory")));
}

/* ---- OOM score ---- */

/* What the pod asks for beyond its containers, shared out among them. */
static int64_t memory_left_over(struct arena *a, struct val pod)
{
	int64_t all = quantity_value(amount(val_get(pod, spec, resources), A_requests, STR("memory")));
	int64_t n = (int64_t)val_len(val_get(pod, spec, containers)) + val_len(val_get(pod, spec, initContainers));
	struct val sum;

	if (!all || !n)
		return 0;
	sum = pod_container_resources(a, val_get(pod, spec), A_requests);
	return (all - quantity_value(quantity_of(val_find(sum, STR("memory"))))) / n;
}

static int64_t oom_score_of(int64_t request, int64_t capacity)
{
	quantity_nanos score = 1000 - (quantity_nanos)1000 * request / MAX(capacity, (int64_t)1);
	return (int64_t)MAX(score, (quantity_nanos)INT32_MIN);
}

static bool is_sidecar_of(struct val pod, struct val container)
{
	if (!container_is_sidecar(container))
		return false;
	VAL_EACH(c, val_get(pod, spec, initContainers))
		if (str_eq(val_str(*c, name), val_str(container, name)))
			return true;
	return false;
}

static int64_t oom_score(const struct kubelet_node *n, struct arena *a, struct val pod, struct val container)
{
	str class = pod_qos(pod);
	int64_t extra = 0, score;

	if ((pod_is_critical(pod) && str_eq(val_str(pod, spec, priorityClassName), STR("system-node-critical"))) ||
	    str_eq(class, STR("Guaranteed")))
		return OOM_GUARANTEED;
	if (str_eq(class, STR("BestEffort")))
		return OOM_BEST_EFFORT;
	if (cri_config_pod_level(pod, A_requests))
		extra = memory_left_over(a, pod);
	score = oom_score_of(memory_request(container) + extra, n->memory_bytes);
	/* A sidecar lives at least as long as what it serves. */
	if (is_sidecar_of(pod, container)) {
		int64_t least = INT64_MAX;
		VAL_EACH(c, val_get(pod, spec, containers))
			least = MIN(least, memory_request(*c));
		if (least != INT64_MAX)
			score = MIN(score, oom_score_of(least + extra, n->memory_bytes));
	}
	return score < 1000 + OOM_GUARANTEED ? 1000 + OOM_GUARANTEED : MIN(score, (int64_t)OOM_BEST_EFFORT - 1);
}

/* ---- huge pages ---- */

str cri_config_page_size(struct arena *a, int64_t bytes)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };
	size_t unit = 0;

	while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < ARRAY_LEN(units)) {
		bytes /= 1024;
		unit++;
	}
	return bytes <= 0 || bytes > 1024 ? STR_NONE : arena_printf(a, "%lld%s", (long long)bytes, units[unit]);
}

static int str_order(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* The sizes of this machine, by name. */
static size_t page_sizes(struct arena *a, str ret[PAGE_SIZES_MAX])
{
	DIR *folder = opendir("/sys/kernel/mm/hugepages");
	size_t n = 0;

	if (!folder)
		return 0;
	for (struct dirent *e; n < PAGE_SIZES_MAX && (e = readdir(folder));) {
		str name = str_of(e->d_name);
		int64_t kilobytes;
		if (!str_starts(name, STR("hugepages-")) || !str_ends(name, STR("kB")))
			continue;
		name = str_skip(str_head(name, name.n - 2), sizeof("hugepages-") - 1);
		if (str_to_i64(name, &kilobytes) && kilobytes > 0 && kilobytes <= INT64_MAX / 1024)
			ret[n++] = cri_config_page_size(a, kilobytes * 1024);
	}
	closedir(folder);
	qsort(ret, n, sizeof(*ret), str_order);
	return n;
}

/* The limit of pages of this size, and whether there is one. */
static bool page_limit(struct arena *a, struct val limits, str size, int64_t *ret)
{
	bool found = false;

	VAL_EACH_MEMBER(m, limits) {
		str name = atom_str(m->key);
		struct quantity q;
		if (!resource_is_huge_page(name) || quantity_parse(str_skip(name, sizeof("hugepages-") - 1), &q, NULL) < 0 ||
		    !str_eq(cri_config_page_size(a, quantity_value(q)), size))
			continue;
		*ret = quantity_value(quantity_of(m->val));
		found = true;
	}
	return found;
}

/* Every size of the machine has a limit, of 0 when nothing is said. */
static struct val hugepage_limits(struct arena *a, struct val pod, struct val container)
{
	struct val_builder b = val_builder(a);
	str sizes[PAGE_SIZES_MAX];
	size_t n = page_sizes(a, sizes);

	for (size_t i = 0; i < n; i++) {
		int64_t limit = 0;
		if (!page_limit(a, val_get(container, resources, limits), sizes[i], &limit))
			(void)page_limit(a, val_get(pod, spec, resources, limits), sizes[i], &limit);
		val_add_item(&b, OBJECT(a, F(pageSize, VAL_STR(sizes[i])), F(limit, val_of_int(limit))));
	}
	return val_end_list(&b);
}

/* ---- CPU, memory, swap ---- */

int64_t cri_config_shares(int64_t milli)
{
	quantity_nanos shares = (quantity_nanos)milli * SHARES_PER_CPU / 1000;
	return shares < SHARES_MIN ? SHARES_MIN : shares > SHARES_MAX ? SHARES_MAX : (int64_t)shares;
}

int64_t cri_config_quota(int64_t milli, int64_t period_us)
{
	quantity_nanos quota = (quantity_nanos)milli * period_us / 1000;

	if (!milli)
		return 0;
	return quota < QUOTA_MIN_US ? QUOTA_MIN_US : (int64_t)MIN(quota, (quantity_nanos)INT64_MAX);
}

struct limits {
	bool cpu_asked;               /* a request is given; else the limit counts as one */
	struct quantity cpu_request, cpu_limit, memory_limit;
};

struct swap {
	int64_t v1_limit;             /* memory and swap together; 0: nothing said */
	str v2_max;                   /* "": nothing said */
};

static struct val resources_make(const struct kubelet_node *n, struct arena *a, const struct limits *l, const struct swap *swap,
				 struct val quality, int64_t oom, struct val hugepages)
{
	struct val_builder unified = val_builder(a);
	int64_t period = n->cfs_period_us ? n->cfs_period_us : CRI_CONFIG_PERIOD_US;
	int64_t memory = quantity_value(l->memory_limit);

	/* When memory is short, a container dies as a whole. */
	if (n->cgroup_v2 && !n->single_process_oom_kill)
		val_add_member(&unified, atom_make(a, STR("memory.oom.group")), VAL_LIT("1"));
	if (swap->v2_max.n)
		val_add_member(&unified, atom_make(a, STR("memory.swap.max")), VAL_STR(swap->v2_max));
	VAL_EACH_MEMBER(m, quality)
		val_add_member(&unified, m->key, m->val);
	return OBJECT(a, F(cpuPeriod, n->no_cfs_quota ? VAL_EMPTY : val_of_int(period)),
		      F(cpuQuota, n->no_cfs_quota ? VAL_EMPTY : val_of_int(cri_config_quota(quantity_milli(l->cpu_limit), period))),
		      F(cpuShares, val_of_int(cri_config_shares(quantity_milli(l->cpu_asked ? l->cpu_request : l->cpu_limit)))),
		      F(memoryLimitInBytes, val_of_int(memory)), F(oomScoreAdj, val_of_int(oom)), F(hugepageLimits, hugepages),
		      F(unified, val_end_object(&unified)), F(memorySwapLimitInBytes, val_of_int(swap->v1_limit)));
}

/* Only Burstable pods get swap, and of it the part that their containers' requests are of the memory. */
static bool may_swap(const struct kubelet_node *n, struct val pod, struct val container)
{
	struct val resources = val_get(container, resources);
	struct quantity request = amount(resources, A_requests, STR("memory")), limit = amount(resources, A_limits, STR("memory"));

	return n->swap_limited && n->cgroup_v2 && !pod_is_critical(pod) && str_eq(pod_qos(pod), STR("Burstable")) &&
	       quantity_cmp(request, limit) != 0 && n->memory_bytes > 0 && quantity_value(request) <= n->memory_bytes;
}

static struct swap swap_of(const struct kubelet_node *n, struct arena *a, struct val pod, struct val container, int64_t memory_limit)
{
	if (!n->swap_controller)
		return (struct swap){ 0 };
	if (!n->cgroup_v2)
		return (struct swap){ .v1_limit = memory_limit };
	if (!may_swap(n, pod, container))
		return (struct swap){ .v2_max = STR("0") };
	double part = (double)memory_request(container) / (double)n->memory_bytes;
	return (struct swap){ .v2_max = arena_printf(a, "%lld", (long long)(part * (double)n->swap_bytes)) };
}

static void add_bytes(struct val_builder *b, struct arena *a, str file, int64_t bytes)
{
	val_add_member(b, atom_make(a, file), VAL_STR(arena_printf(a, "%lld", (long long)bytes)));
}

/*
 * Memory QoS: what the kernel leaves to the container (memory.min: for sure, memory.low: if it can), and where it begins to slow it down
 * (memory.high): most of the way from what is asked for to the limit, or to what all pods have. Only what the container itself says counts.
 */
static struct val memory_quality(const struct kubelet_node *n, struct arena *a, struct val pod, struct val container)
{
	struct val_builder b = val_builder(a);
	int64_t request = memory_request(container), page = sysconf(_SC_PAGESIZE);
	int64_t limit = quantity_value(amount(val_get(container, resources), A_limits, STR("memory"))), most = limit ? limit : n->memory_for_pods;

	if (!n->memory_qos)
		return VAL_EMPTY_OBJECT;
	if (request && n->memory_tiered) {
		add_bytes(&b, a, str_eq(pod_qos(pod), STR("Guaranteed")) ? STR("memory.min") : STR("memory.low"), request);
	} else {
		add_bytes(&b, a, STR("memory.min"), 0);
		add_bytes(&b, a, STR("memory.low"), 0);
	}
	if (request != limit && most > 0) {
		int64_t high = (int64_t)(((double)request + ((double)most - (double)request) * n->memory_throttling) / (double)page) * page;
		if (high && high > request)
			add_bytes(&b, a, STR("memory.high"), high);
	}
	return val_end_object(&b);
}

/* The limit of a container, or that of its pod when it has none. */
static struct quantity limit_of(struct val pod, struct val container, str name)
{
	struct quantity own = amount(val_get(container, resources), A_limits, name);
	return own.nanos ? own : amount(val_get(pod, spec, resources), A_limits, name);
}

struct val container_resources_make(const struct kubelet_node *n, struct arena *a, struct val pod, struct val container)
{
	struct val request = val_find(val_get(container, resources, requests), STR("cpu"));
	struct limits l = {
		.cpu_asked = val_exists(request),
		.cpu_request = quantity_of(request),
		.cpu_limit = limit_of(pod, container, STR("cpu")),
		.memory_limit = limit_of(pod, container, STR("memory")),
	};
	struct swap swap = swap_of(n, a, pod, container, quantity_value(l.memory_limit));
	struct val loose = resources_make(n, a, &l, &swap, memory_quality(n, a, pod, container), oom_score(n, a, pod, container),
					  hugepage_limits(a, pod, container)), typed;

	/* What is made of numbers and names always fits. */
	return cri_config_typed(a, loose, TYPE(cri_v1, LinuxContainerResources), &typed, NULL) < 0 ? loose : typed;
}

/* Of all containers together, or what the pod says. */
static struct val of_pod(struct val sums, struct val pod, atom which, str name)
{
	struct val said = val_find(val_member(val_get(pod, spec, resources), which), name);
	return val_exists(said) ? said : val_find(sums, name);
}

struct val cri_config_sandbox_resources(const struct kubelet_node *n, struct arena *a, struct val pod)
{
	struct val requests = pod_container_resources(a, val_get(pod, spec), A_requests);
	struct val limits = pod_container_resources(a, val_get(pod, spec), A_limits);
	struct val request = of_pod(requests, pod, A_requests, STR("cpu"));
	struct limits l = {
		.cpu_asked = val_exists(request),
		.cpu_request = quantity_of(request),
		.cpu_limit = quantity_of(of_pod(limits, pod, A_limits, STR("cpu"))),
		.memory_limit = quantity_of(of_pod(limits, pod, A_limits, STR("memory"))),
	};

	return resources_make(n, a, &l, &(struct swap){ 0 }, VAL_EMPTY, 0, VAL_EMPTY);
}

struct val cri_config_overhead(const struct kubelet_node *n, struct arena *a, struct val pod)
{
	struct val overhead = val_get(pod, spec, overhead);
	struct quantity cpu = quantity_of(val_find(overhead, STR("cpu")));
	struct limits l = { .cpu_asked = true, .cpu_request = cpu, .cpu_limit = cpu,
			    .memory_limit = quantity_of(val_find(overhead, STR("memory"))) };

	return val_exists(overhead) ? resources_make(n, a, &l, &(struct swap){ 0 }, VAL_EMPTY, 0, VAL_EMPTY) : VAL_EMPTY_OBJECT;
}
