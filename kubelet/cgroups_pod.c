/* The cgroup of a pod: what its containers may use together. */
#include "codec/atoms.h"
#include "kubelet/admit_priv.h"
#include "kubelet/cgroups_priv.h"
#include "kubelet/cri_config_priv.h"
#include "machinery/resources.h"

str cgroups_pod_path(struct cgroups *c, struct arena *a, struct val pod)
{
	return val_exists(pod) ? pod_cgroup_parent(c->o.node, a, pod) : arena_str(a, c->top);
}

/* A pod is limited as a whole when it says so, or when each of its containers is. */
static bool is_limited(struct val pod, str name)
{
	static const atom lists[] = { A_containers, A_initContainers };

	if (quantity_of(val_find(val_get(pod, spec, resources, limits), name)).nanos)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(container, val_member(val_get(pod, spec), lists[i]))
			if (!quantity_of(val_find(val_get(*container, resources, limits), name)).nanos)
				return false;
	return true;
}

static struct quantity limit_of(struct val sums, struct val pod, str name)
{
	struct val said = val_find(val_get(pod, spec, resources, limits), name);
	struct quantity q = quantity_of(val_exists(said) ? said : val_find(sums, name));

	return q.nanos ? quantity_add(q, quantity_of(val_find(val_get(pod, spec, overhead), name))) : q;
}

/* Memory that the kernel leaves to the pod: for sure, or if it can. */
static struct val protection(const struct cgroups *c, struct arena *a, str class, int64_t request)
{
	struct val_builder b = val_builder(a);

	if (c->o.node->memory_qos && c->o.node->memory_tiered && request > 0)
		val_add_member(&b, atom_make(a, str_eq(class, STR("Guaranteed")) ? STR("memory.min") : STR("memory.low")),
			       val_of_str(arena_printf(a, "%lld", (long long)request)));
	return val_end_object(&b);
}

static struct cgroups_values values_of(const struct cgroups *c, struct arena *a, struct val pod)
{
	const struct kubelet_node *n = c->o.node;
	str class = pod_qos(pod);
	struct val requests = admit_requests(a, val_get(pod, spec)), limits = pod_container_resources(a, val_get(pod, spec), A_limits);
	bool guaranteed = str_eq(class, STR("Guaranteed")), burstable = str_eq(class, STR("Burstable"));
	struct cgroups_values v = {
		.shares = cri_config_shares(guaranteed || burstable ? admit_amount(requests, STR("cpu")) : 0),
		.period_us = n->cfs_period_us ? n->cfs_period_us : CRI_CONFIG_PERIOD_US,
		.pids = MAX(n->pod_pids_limit, 0),
		.huge = cgroups_huge(c, a, requests, 0),
		.unified = protection(c, a, class, admit_amount(requests, STR("memory"))),
	};

	if (guaranteed || (burstable && is_limited(pod, STR("cpu"))))
		v.quota_us = n->no_cfs_quota ? -1 : cri_config_quota(quantity_milli(limit_of(limits, pod, STR("cpu"))), v.period_us);
	if (guaranteed || (burstable && is_limited(pod, STR("memory"))))
		v.memory = quantity_value(limit_of(limits, pod, STR("memory")));
	return v;
}

int cgroups_pod_make(struct cgroups *c, struct val pod, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;

	if (c->off)
		return 0;
	struct cgroups_values v = values_of(c, &a, pod);
	str path = cgroups_pod_path(c, &a, pod);
	int r = cgroups_open(&a, path, true, &g, err);
	if (r >= 0)
		r = cgroups_set(g, &a, &v, err);
	return r < 0 ? err_wrap(err, r, "failed to create container for " STR_FMT " ", STR_ARG(path)) : 0;
}

/* -1, no limit, is the largest. */
static bool grows(int64_t from, int64_t to) { return from != -1 && (to == -1 || to > from); }

int cgroups_pod_resize(struct cgroups *c, struct val pod, bool before, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct cgroup_limits now;

	if (c->off)
		return 0;
	struct cgroups_values wanted = values_of(c, &a, pod), v = { .period_us = wanted.period_us };
	int r = cgroups_open(&a, cgroups_pod_path(c, &a, pod), false, &g, err);
	if (r < 0)
		return r;
	cgroup_limits(g, &now);
	int64_t memory = now.memory > INT64_MAX ? -1 : (int64_t)now.memory;
	/* Shares have nothing to do with those of the containers. */
	if (before)
		v.shares = wanted.shares;
	if (wanted.quota_us && wanted.quota_us != now.cpu_quota_us && grows(now.cpu_quota_us, wanted.quota_us) == before)
		v.quota_us = wanted.quota_us;
	if (wanted.memory && wanted.memory != memory && grows(memory, wanted.memory) == before)
		v.memory = wanted.memory;
	return cgroups_set(g, &a, &v, err);
}

int64_t cgroups_pod_memory_drop(struct cgroups *c, struct val pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct cgroup_limits now;
	int64_t wanted = c->off ? 0 : values_of(c, &a, pod).memory;

	if (wanted <= 0 || cgroups_open(&a, cgroups_pod_path(c, &a, pod), false, &g, NULL) < 0)
		return 0;
	cgroup_limits(g, &now);
	return (uint64_t)wanted < now.memory ? wanted : 0;
}
