/*
 * kubepods and its classes. What the classes may use follows from the pods in them: shares of CPU always, memory only with qosReserved.
 * kubepods itself has no more memory than the node can give to pods, if that is to be enforced; as long as more is in use, that is tried
 * again with each update.
 */
#include "kubelet/cgroups.h"

#include <signal.h>
#include <stdlib.h>

#include "base/fiber_io.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "kubelet/admit_priv.h"
#include "kubelet/cgroups_priv.h"
#include "kubelet/cri_config_priv.h"
#include "kubelet/stats_priv.h"
#include "machinery/resources.h"

enum { BEST_EFFORT_SHARES = 2 };

static const char *const tiers[] = { "", "/burstable", "/besteffort" };

/* ---- writing ---- */

/* One member of linux.resources at a time: a controller that is missing must not cost the others. */
static int set_part(struct cgroup *g, struct val resources, struct err *err)
{
	struct err why = ERR_INIT;
	int r = cgroup_limit(g, resources, &why);

	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r < 0 && err)
		*err = why;
	return MIN(r, 0);
}

int cgroups_set(struct cgroup *g, struct arena *a, const struct cgroups_values *v, struct err *err)
{
	int r = 0;

	if (v->shares || v->quota_us)
		r = set_part(g, OBJECT(a, F(cpu, OBJECT(a, F(shares, v->shares ? val_of_int(v->shares) : VAL_EMPTY),
							F(quota, v->quota_us ? val_of_int(v->quota_us) : VAL_EMPTY),
							F(period, v->quota_us ? val_of_int(v->period_us) : VAL_EMPTY)))), err);
	if (r >= 0 && v->memory)
		r = set_part(g, OBJECT(a, F(memory, OBJECT(a, F(limit, val_of_int(v->memory))))), err);
	if (r >= 0 && v->pids)
		r = set_part(g, OBJECT(a, F(pids, OBJECT(a, F(limit, val_of_int(v->pids))))), err);
	if (r >= 0 && val_len(v->huge))
		r = set_part(g, OBJECT(a, F(hugepageLimits, v->huge)), err);
	if (r >= 0 && val_len(v->unified))
		r = set_part(g, OBJECT(a, F(unified, v->unified)), err);
	return r;
}

struct val cgroups_huge(const struct cgroups *c, struct arena *a, struct val resources, int64_t otherwise)
{
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < c->machine.n_huge; i++) {
		int64_t bytes = c->machine.huge[i].page_bytes, limit = otherwise;
		str size = cri_config_page_size(a, bytes);
		VAL_EACH_MEMBER(m, resources) {
			str name = atom_str(m->key);
			struct quantity q;
			if (resource_is_huge_page(name) && quantity_parse(str_skip(name, sizeof("hugepages-") - 1), &q, NULL) == 0 &&
			    quantity_value(q) == bytes)
				limit = quantity_value(quantity_of(m->val));
		}
		if (size.n)
			val_add_item(&b, OBJECT(a, F(pageSize, VAL_STR(size)), F(limit, val_of_int(limit))));
	}
	return val_end_list(&b);
}

int cgroups_open(struct arena *a, str path, bool make, struct cgroup **ret, struct err *err)
{
	const char *text = arena_str(a, path).p;

	return make ? cgroup_make(text, ret, err) : cgroup_open(text, ret, err);
}

/* ---- the node ---- */

static struct val unified_one(struct arena *a, const char *file, int64_t value)
{
	struct val_builder b = val_builder(a);

	val_add_member(&b, atom_make(a, str_of(file)), val_of_str(arena_printf(a, "%lld", (long long)value)));
	return val_end_object(&b);
}

bool cgroups_enforces(struct val config, str what)
{
	struct val list = val_get(config, enforceNodeAllocatable);

	if (!val_exists(list))
		return str_eq(what, STR("pods"));
	VAL_EACH(v, list)
		if (str_eq(val_as_str(*v), what))
			return true;
	return false;
}

/* What is there less what is reserved, never below 0. */
static int64_t left_of(const struct cgroups *c, str name, int64_t capacity)
{
	struct quantity reserved = quantity_of(val_find(c->o.reserved, name));
	int64_t taken = str_eq(name, STR("cpu")) ? quantity_milli(reserved) : quantity_value(reserved);

	return MAX(capacity - taken, INT64_C(0));
}

/* ["c8s-x" "kubepods"], as Kubernetes writes the name of a cgroup. */
static str top_name(const struct cgroups *c, struct arena *a)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);

	for (str part, rest = c->top; rest.n;) {
		(void)str_cut(rest, '/', &part, &rest);
		if (!part.n)
			continue;
		buf_addc(&b, b.n ? ' ' : '[');
		buf_add_quoted(&b, part);
	}
	buf_addc(&b, ']');
	return arena_str(a, buf_str(&b));
}

static void tell(const struct cgroups *c, bool warning, const char *reason, str message)
{
	const struct kubelet_hooks *h = c->o.node->hooks;

	if (h && h->event)
		h->event(h->arg, VAL_EMPTY, warning, reason, message);
}

static int set_top(struct cgroups *c, struct arena *a, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	bool enforced = cgroups_enforces(c->o.config, STR("pods"));
	int64_t cpus = c->o.node->cpus_milli, pids, tasks;
	struct err why = ERR_INIT;
	int r = cgroups_open(a, c->top, true, &g, err);

	if (r < 0)
		return r;
	stats_tasks(&pids, &tasks);
	struct cgroups_values v = { .shares = cri_config_shares(enforced ? left_of(c, STR("cpu"), cpus) : cpus),
				    .pids = !enforced || pids < 0 ? 0 : MAX(left_of(c, STR("pid"), pids), INT64_C(1)) };
	if ((r = cgroups_set(g, a, &v, err)) < 0)
		return r;
	/* More memory may be in use at the moment: eviction brings it down, and then it is set. */
	struct cgroups_values memory = { .memory = enforced ? MAX(c->allocatable, INT64_C(0)) : 0 };
	c->memory_missing = cgroups_set(g, a, &memory, &why) < 0;
	if (c->memory_missing)
		tell(c, true, "FailedNodeAllocatableEnforcement",
		     arena_printf(a, "Failed to update Node Allocatable Limits " STR_FMT ": %s", STR_ARG(top_name(c, a)), why.msg));
	else
		tell(c, false, "NodeAllocatableEnforced", STR("Updated Node Allocatable limit across pods"));
	return 0;
}

/* The cgroup of the system or of the kubelet, which the administrator has made. */
static int enforce_existing(const struct cgroups *c, struct arena *a, const char *what, str path, struct val amounts, bool compressible,
			    struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct val cpu = val_find(amounts, STR("cpu")), memory = val_find(amounts, STR("memory")), pid = val_find(amounts, STR("pid"));
	struct cgroups_values v = { .shares = val_exists(cpu) ? cri_config_shares(quantity_milli(quantity_of(cpu))) : 0 };
	str full = str_starts(path, STR("/")) ? path : arena_printf(a, "/" STR_FMT, STR_ARG(path));
	int r = cgroups_open(a, full, false, &g, err);

	if (!compressible) {
		v.memory = quantity_value(quantity_of(memory));
		v.pids = quantity_value(quantity_of(pid));
		if (c->o.node->memory_qos && v.memory)
			v.unified = unified_one(a, "memory.min", v.memory);
	}
	if (r >= 0)
		r = cgroups_set(g, a, &v, err);
	return r < 0 ? err_wrap(err, r, "Failed to enforce %s Cgroup Limits on \"" STR_FMT "\"", what, STR_ARG(path)) : 0;
}

static int enforce_reserved(struct cgroups *c, struct arena *a, struct err *err)
{
	const struct {
		const char *key, *what;
		str path;
		struct val amounts;
		bool compressible;
	} all[] = {
		{ "system-reserved", "System Reserved", val_str(c->o.config, systemReservedCgroup), val_get(c->o.config, systemReserved), false },
		{ "kube-reserved", "Kube Reserved", val_str(c->o.config, kubeReservedCgroup), val_get(c->o.config, kubeReserved), false },
		{ "system-reserved-compressible", "System Reserved Compressible", val_str(c->o.config, systemReservedCgroup),
		  val_get(c->o.config, systemReserved), true },
		{ "kube-reserved-compressible", "Kube Reserved Compressible", val_str(c->o.config, kubeReservedCgroup),
		  val_get(c->o.config, kubeReserved), true },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(all) && r >= 0; i++) {
		if (!cgroups_enforces(c->o.config, str_of(all[i].key)))
			continue;
		r = enforce_existing(c, a, all[i].what, all[i].path, all[i].amounts, all[i].compressible, err);
		if (r >= 0)
			tell(c, false, "NodeAllocatableEnforced",
			     arena_printf(a, "Updated limits on %s reserved cgroup " STR_FMT, i % 2 ? "kube" : "system", STR_ARG(all[i].path)));
	}
	return r;
}

/* ---- classes ---- */

/* Sums over the active pods. */
struct demand {
	int64_t burstable_milli;
	int64_t guaranteed_memory, burstable_memory;
};

static struct demand demand_of(struct arena *a, struct val pods)
{
	struct demand d = { 0 };

	VAL_EACH(pod, pods) {
		str class = pod_qos(*pod);
		if (str_eq(class, STR("BestEffort")))
			continue;
		struct val requests = admit_requests(a, val_get(*pod, spec));
		int64_t memory = admit_amount(requests, STR("memory"));
		if (str_eq(class, STR("Burstable"))) {
			d.burstable_milli += admit_amount(requests, STR("cpu"));
			d.burstable_memory += memory;
		} else {
			d.guaranteed_memory += memory;
		}
	}
	return d;
}

/* qosReserved: {"memory": "50%"}. */
static int64_t reserved_percent(const struct cgroups *c)
{
	str text = val_as_str(val_find(val_get(c->o.config, qosReserved), STR("memory")));
	int64_t percent;

	return str_ends(text, STR("%")) && str_to_i64(str_head(text, text.n - 1), &percent) && percent >= 0 && percent <= 100 ? percent : 0;
}

/* What is taken from the lower classes for the requests of those above. */
static void reserve_memory(const struct cgroups *c, const struct demand *d, struct cgroups_values v[3])
{
	int64_t percent = reserved_percent(c);

	if (!percent || c->allocatable <= 0)
		return;
	v[1].memory = MAX(c->allocatable - (int64_t)((quantity_nanos)d->guaranteed_memory * percent / 100), INT64_C(1));
	v[2].memory = MAX(v[1].memory - (int64_t)((quantity_nanos)d->burstable_memory * percent / 100), INT64_C(1));
}

/* Memory that is in use cannot be taken back: then the class may at least not grow. */
static int set_class(struct cgroup *g, struct arena *a, struct cgroups_values *v, struct err *err)
{
	struct cgroup_stats s;
	int r = cgroups_set(g, a, v, err);

	if (r >= 0 || !v->memory || cgroup_stats(g, &s, NULL) < 0 || s.memory_usage <= (uint64_t)v->memory)
		return r;
	v->memory = (int64_t)MIN(s.memory_usage, (uint64_t)INT64_MAX);
	return cgroups_set(g, a, v, err);
}

int cgroups_classes_update(struct cgroups *c, struct val pods, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct demand d = demand_of(&a, pods);
	struct val huge = cgroups_huge(c, &a, VAL_EMPTY, INT64_C(1) << 62);
	struct cgroups_values v[3] = {
		{ .huge = huge },
		{ .shares = val_exists(pods) ? cri_config_shares(d.burstable_milli) : 0, .huge = huge },
		{ .shares = BEST_EFFORT_SHARES, .huge = huge },
	};
	int r = 0;

	if (c->off)
		return 0;
	if (c->memory_missing && (r = set_top(c, &a, err)) < 0)
		return r;
	if (val_exists(pods))
		reserve_memory(c, &d, v);
	if (val_exists(pods) && c->o.node->memory_qos) {
		bool tiered = c->o.node->memory_tiered;
		c->kept_min = tiered ? d.guaranteed_memory : 0;
		c->kept_low = tiered ? d.burstable_memory : 0;
		v[0].unified = unified_one(&a, "memory.min", tiered ? d.guaranteed_memory + d.burstable_memory : 0);
		v[1].unified = unified_one(&a, "memory.low", tiered ? d.burstable_memory : 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(tiers) && r >= 0; i++) {
		CLEANUP(cgroup_freep) struct cgroup *g = NULL;
		str path = arena_printf(&a, STR_FMT "%s", STR_ARG(c->top), tiers[i]);
		r = cgroups_open(&a, path, true, &g, err);
		if (r >= 0)
			r = set_class(g, &a, &v[i], err);
	}
	return r;
}

void cgroups_memory_kept(const struct cgroups *c, int64_t *ret_min, int64_t *ret_low)
{
	*ret_min = c->kept_min;
	*ret_low = c->kept_low;
}

/* ---- life ---- */

static int start(struct cgroups *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = node_machine_read(&c->arena, "", &c->machine, err);

	if (r < 0)
		return r;
	c->allocatable = left_of(c, STR("memory"), c->o.node->memory_bytes);
	if (!c->off && (r = set_top(c, &a, err)) < 0)
		return r;
	/* Which pods run is not known yet: what their class has stays. */
	if ((r = cgroups_classes_update(c, VAL_EMPTY, err)) < 0)
		return r;
	return enforce_reserved(c, &a, err);
}

int cgroups_new(const struct cgroups_options *o, struct cgroups **ret, struct err *err)
{
	struct cgroups *c = mem_zalloc(sizeof(*c));
	struct val per_class = val_get(o->config, cgroupsPerQOS);
	str root = str_eq(o->node->cgroup_root, STR("/")) ? STR_NONE : o->node->cgroup_root;
	int r;

	c->o = *o;
	c->o.reserved = val_copy(&c->arena, o->reserved);
	c->top = arena_printf(&c->arena, STR_FMT "/kubepods", STR_ARG(root));
	c->off = val_exists(per_class) && !val_as_bool(per_class);
	if ((r = start(c, err)) < 0) {
		cgroups_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void cgroups_free(struct cgroups *c)
{
	if (!c)
		return;
	arena_done(&c->arena);
	free(c);
}

/* ---- the pods that there are ---- */

struct val cgroups_pods(struct cgroups *c, struct arena *a)
{
	struct val_builder uids = val_builder(a);

	for (size_t i = 0; i < ARRAY_LEN(tiers) && !c->off; i++) {
		CLEANUP(cgroup_freep) struct cgroup *g = NULL;
		if (cgroups_open(a, arena_printf(a, STR_FMT "%s", STR_ARG(c->top), tiers[i]), false, &g, NULL) < 0)
			continue;
		VAL_EACH(name, cgroup_below(g, a)) {
			str uid = str_skip(val_as_str(*name), sizeof("pod") - 1);
			if (str_starts(val_as_str(*name), STR("pod")) && uid.n)
				val_add_item(&uids, val_of_str(uid));
		}
	}
	return val_end_list(&uids);
}

struct removal {
	const struct cgroups *c;
	str uid;
};

static int remove_one(struct arena *a, str path, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	pid_t *pids;
	size_t n = 0;
	int r = cgroups_open(a, path, false, &g, err);

	if (r < 0)
		return r == -ERR_NOT_FOUND ? 0 : r;
	if ((r = cgroup_pids(g, a, &pids, &n, err)) >= 0 && n)
		r = cgroup_kill(g, SIGKILL, err);
	return r < 0 && r != -ERR_NOT_FOUND ? r : cgroup_remove(g, err);
}

/* In the thread pool: what was killed takes a moment to go. */
static int remove_pod(void *arg, struct err *err)
{
	const struct removal *j = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(tiers) && r >= 0; i++)
		r = remove_one(&a, arena_printf(&a, STR_FMT "%s/pod" STR_FMT, STR_ARG(j->c->top), tiers[i], STR_ARG(j->uid)), err);
	return r;
}

int cgroups_pod_remove(struct cgroups *c, str uid, struct err *err)
{
	struct removal j = { c, uid };

	/* A name that leads elsewhere is nobody's. */
	if (c->off || !uid.n || str_chr(uid, '/') >= 0)
		return 0;
	return fiber_blocking(remove_pod, &j, err);
}
