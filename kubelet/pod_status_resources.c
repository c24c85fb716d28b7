/*
 * Resources in force. For a container they are what the runtime says (in the units of control groups), for the pod what its
 * control group has been given, which follows from what the containers were last given. What nobody says stays as it was told
 * before, or else is as allocated.
 */
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "kubelet/cri_config.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pod_status_priv.h"

/* Less than this cannot be set, so that a smaller one is shown as it was asked for. In thousandths of a core. */
enum { CPU_REQUEST_MIN = 2, CPU_LIMIT_MIN = 10 };

static struct val put_quantity(struct arena *a, struct val list, const char *name, struct quantity q)
{
	char text[QUANTITY_TEXT_MAX];
	return val_put(a, list, atom_make(a, str_of(name)), VAL_STR(arena_str(a, quantity_format(q, text))));
}

static struct val put_cpu(struct arena *a, struct val list, int64_t milli)
{
	return put_quantity(a, list, "cpu", quantity_of_milli(milli, QUANTITY_DECIMAL_SI));
}

static struct val put_memory(struct arena *a, struct val list, int64_t bytes)
{
	return put_quantity(a, list, "memory", quantity_of_int(bytes, QUANTITY_BINARY_SI));
}

/* list with what was told before about name, if that still holds. */
static struct val keep_old(struct arena *a, struct val list, const char *name, struct val old)
{
	struct val was = val_find(old, str_of(name));
	return val_exists(was) ? val_put(a, list, atom_make(a, str_of(name)), was) : list;
}

/* ---- containers ---- */

/* Zero: not known. */
struct in_force {
	int64_t cpu_request, cpu_limit, memory_request, memory_limit;
};

static struct in_force in_force(struct val actuated, struct val cri)
{
	struct val linux_ = val_get(cri, resources, linux);
	int64_t period = val_int(linux_, cpuPeriod), quota = val_int(linux_, cpuQuota), shares = val_int(linux_, cpuShares);
	struct val requests = val_get(actuated, requests), limits = val_get(actuated, limits);
	struct in_force f = { .memory_request = resources_memory(requests),
			      .memory_limit = MAX(val_int(linux_, memoryLimitInBytes), INT64_C(0)) };

	if (period > 0 && quota > 0 && quota < INT64_MAX / 1000)
		f.cpu_limit = quota * 1000 / period;
	if (shares >= CPU_REQUEST_MIN && shares < INT64_MAX / 1024)
		f.cpu_request = (shares * 1000 + 1023) / 1024;
	if (!f.cpu_limit && !f.cpu_request && !f.memory_limit) { /* a runtime that does not tell */
		f.cpu_request = resources_cpu_milli(requests);
		f.cpu_limit = resources_cpu_milli(limits);
		f.memory_limit = resources_memory(limits);
	}
	return f;
}

struct val status_container_resources(struct arena *a, const struct pod_view *v, struct val container, struct val cri, str id,
				      struct val old)
{
	struct val all = val_get(container, resources), requests = val_get(all, requests), limits = val_get(all, limits);
	const struct container_note *note = pod_view_note(v, val_str(container, name));
	struct in_force f = in_force(val_exists(note->actuated) ? note->actuated : all, cri);
	bool same = val_has(old, state, running) && str_eq(val_str(old, containerID), id);
	struct val was = same ? val_get(old, resources) : VAL_EMPTY;

	if (!val_exists(all))
		all = VAL_EMPTY_OBJECT;
	if (!str_eq(val_str(cri, state), STR("CONTAINER_RUNNING")))
		return all;
	if (val_len(limits)) {
		if (!f.cpu_limit)
			limits = keep_old(a, limits, "cpu", val_get(was, limits));
		else if (f.cpu_limit > CPU_LIMIT_MIN || resources_cpu_milli(limits) > CPU_LIMIT_MIN)
			limits = put_cpu(a, limits, f.cpu_limit);
		limits = f.memory_limit ? put_memory(a, limits, f.memory_limit) : keep_old(a, limits, "memory", val_get(was, limits));
	}
	if (val_len(requests)) {
		if (!f.cpu_request)
			requests = keep_old(a, requests, "cpu", val_get(was, requests));
		else if (f.cpu_request > CPU_REQUEST_MIN || resources_cpu_milli(requests) > CPU_REQUEST_MIN)
			requests = put_cpu(a, requests, f.cpu_request);
		requests = f.memory_request ? put_memory(a, requests, f.memory_request)
					    : keep_old(a, requests, "memory", val_get(was, requests));
	}
	return val_put(a, val_put(a, all, A_limits, limits), A_requests, requests);
}

/* ---- the pod ---- */

/* What it needs of every resource: its containers together or, where spec.resources says so, the pod; and its overhead. */
static struct val sum(struct arena *a, struct val spec, atom which)
{
	struct val list = pod_container_resources(a, spec, which);
	char text[QUANTITY_TEXT_MAX];

	VAL_EACH_MEMBER(m, val_member(val_get(spec, resources), which))
		if (resource_is_pod_level(atom_str(m->key)))
			list = val_put(a, list, m->key, m->val);
	VAL_EACH_MEMBER(m, val_get(spec, overhead)) {
		struct quantity q = quantity_of(val_member(list, m->key));
		if (which == A_limits && !q.nanos)
			continue;
		q = quantity_add(q, quantity_of(m->val));
		list = val_put(a, list, m->key, VAL_STR(arena_str(a, quantity_format(q, text))));
	}
	return list;
}

/* The spec with what the runtime was last given in place of what is allocated. */
static struct val actuated_spec(struct arena *a, const struct pod_view *v)
{
	static const atom lists[] = { A_initContainers, A_containers };
	struct val spec = val_get(v->pod, spec);

	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		struct val_builder b = val_builder(a);
		VAL_EACH(c, val_member(spec, lists[k])) {
			struct val given = pod_view_note(v, val_str(*c, name))->actuated;
			val_add_item(&b, val_exists(given) ? val_put(a, *c, A_resources, given) : *c);
		}
		spec = val_put(a, spec, lists[k], val_end_list(&b));
	}
	return val_exists(v->actuated) ? val_put(a, spec, A_resources, v->actuated) : spec;
}

/* A control group has a limit only if the pod has one, or all its containers do. */
static bool limit_is_set(struct val spec, const char *name)
{
	const struct val lists[] = { val_get(spec, containers), val_get(spec, initContainers) };

	if (quantity_of(val_find(val_get(spec, resources, limits), str_of(name))).nanos)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			if (!quantity_of(val_find(val_get(*c, resources, limits), str_of(name))).nanos)
				return false;
	return true;
}

struct val status_pod_allocated(struct arena *a, const struct pod_view *v) { return sum(a, val_get(v->pod, spec), A_requests); }

struct val status_pod_resources(struct arena *a, const struct pod_view *v)
{
	struct val spec = val_get(v->pod, spec), old = pod_view_status(v), given, requests, limits, were;
	bool best_effort = str_eq(pod_qos(v->pod), STR("BestEffort"));
	int64_t cpu;

	if (!str_eq(val_str(v->pod, status, phase), STR("Running")))
		return OBJECT(a, F(limits, sum(a, spec, A_limits)), F(requests, sum(a, spec, A_requests)));
	given = actuated_spec(a, v);
	requests = val_get(given, resources, requests);
	limits = val_get(given, resources, limits);
	were = str_eq(val_str(old, phase), STR("Running")) ? val_get(old, resources) : VAL_EMPTY;

	cpu = best_effort ? 0 : resources_cpu_milli(sum(a, given, A_requests));
	if (MAX(cpu, resources_cpu_milli(requests)) > CPU_REQUEST_MIN)
		requests = put_cpu(a, requests, MAX(cpu, (int64_t)CPU_REQUEST_MIN));
	if (!val_exists(val_find(requests, STR("memory"))))
		requests = keep_old(a, requests, "memory", sum(a, spec, A_requests));
	requests = keep_old(a, requests, "memory", val_get(were, requests));

	if (best_effort || !limit_is_set(given, "cpu")) {
		limits = keep_old(a, limits, "cpu", val_get(were, limits));
	} else {
		cpu = MAX(resources_cpu_milli(sum(a, given, A_limits)), (int64_t)CPU_LIMIT_MIN);
		if (MAX(cpu, resources_cpu_milli(limits)) > CPU_LIMIT_MIN)
			limits = put_cpu(a, limits, cpu);
	}
	if (best_effort || !limit_is_set(given, "memory"))
		limits = keep_old(a, limits, "memory", val_get(were, limits));
	else
		limits = put_memory(a, limits, resources_memory(sum(a, given, A_limits)));
	return OBJECT(a, F(limits, limits), F(requests, requests));
}
