/*
 * What pods use: their requests and limits as the scheduler counts them, with what a resize that is under way needs at most. A
 * pod that is over, or was to be gone by now, only counts as an object.
 */
#include "apiserver/admission/resource_quota.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "machinery/resources.h"

static bool is_terminating(struct val pod)
{
	struct val seconds = val_get(pod, spec, activeDeadlineSeconds);
	return val_exists(seconds) && val_as_int(seconds) >= 0;
}

static bool handles(const struct request *q)
{
	enum admission_operation op = admission_operation(q);
	if (!q->subresource.n)
		return op == ADMISSION_CREATE ||
		       (op == ADMISSION_UPDATE && is_terminating(q->old) != is_terminating(q->object));
	return str_eq(q->subresource, STR("resize")) && op == ADMISSION_UPDATE;
}

/* ---- names ---- */

static bool is_prefixed_request(str name)
{
	return str_starts(name, STR("requests.")) &&
	       (!resource_is_native(name) || str_starts(name, STR("requests.deviceclass.resource.kubernetes.io/")));
}

static bool covers(const struct request *q, str name)
{
	static const str names[] = {
		STR_INIT("count/pods"), STR_INIT("cpu"), STR_INIT("memory"), STR_INIT("ephemeral-storage"), STR_INIT("requests.cpu"),
		STR_INIT("requests.memory"), STR_INIT("requests.ephemeral-storage"), STR_INIT("limits.cpu"),
		STR_INIT("limits.memory"), STR_INIT("limits.ephemeral-storage"), STR_INIT("pods"),
	};
	(void)q;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return resource_is_huge_page(name) || str_starts(name, STR("requests.hugepages-")) || is_prefixed_request(name);
}

/* ---- amounts ---- */

static bool resize_is_infeasible(struct val pod)
{
	VAL_EACH(c, val_get(pod, status, conditions))
		if (str_eq(val_str(*c, type), STR("PodResizePending")))
			return str_eq(val_str(*c, reason), STR("Infeasible"));
	return false;
}

/* The container with the most of what it asks for and what it has. */
static struct val with_status(struct arena *a, struct val container, struct val status, bool infeasible, atom which)
{
	struct val given = infeasible ? VAL_EMPTY : val_member(val_get(container, resources), which);
	struct quota_amounts most = quota_merge(a, quota_amounts_of(a, given),
						quota_amounts_of(a, val_member(val_get(status, resources), which)), QUOTA_MAX);
	if (which == A_requests)
		most = quota_merge(a, most, quota_amounts_of(a, val_get(status, allocatedResources)), QUOTA_MAX);
	struct val resources = val_put(a, val_get(container, resources), which, quota_amounts_map(a, most));
	return val_put(a, container, A_resources, resources);
}

static void index_statuses(struct arena *a, struct val statuses, struct map *by_name)
{
	VAL_EACH(s, statuses)
		if (val_has(*s, resources)) {
			struct val *entry = ARENA_NEW(a, struct val);
			*entry = *s;
			map_put(by_name, val_str(*s, name), entry);
		}
}

/* The spec with what containers have in place of what they ask for, where that is more. */
static struct val effective_spec(struct arena *a, struct val pod, atom which)
{
	CLEANUP(map_done) struct map by_name = MAP_INIT;
	struct val spec = val_get(pod, spec);
	const atom lists[] = { A_containers, A_initContainers };
	bool infeasible = resize_is_infeasible(pod);
	index_statuses(a, val_get(pod, status, containerStatuses), &by_name);
	index_statuses(a, val_get(pod, status, initContainerStatuses), &by_name);
	for (size_t i = 0; i < ARRAY_LEN(lists) && map_len(&by_name); i++) {
		struct val_builder b = val_builder(a);
		VAL_EACH(c, val_member(spec, lists[i])) {
			const struct val *status = map_get(&by_name, val_str(*c, name));
			bool stays = lists[i] == A_containers || container_is_sidecar(*c);
			val_add_item(&b, status && stays ? with_status(a, *c, *status, infeasible, which) : *c);
		}
		if (b.n)
			spec = val_put(a, spec, lists[i], val_end_list(&b));
	}
	return spec;
}

/* What may be said for the pod as a whole. */
static struct quota_amounts pod_level(struct arena *a, struct val spec, atom which)
{
	struct quota_amounts all = quota_amounts_of(a, val_member(val_get(spec, resources), which)), x = { all.list, 0 };
	for (size_t i = 0; i < all.n; i++)
		if (resource_is_pod_level(all.list[i].name))
			x.list[x.n++] = all.list[i];
	return x;
}

static struct quota_amounts needed(struct arena *a, struct val pod, atom which)
{
	struct val spec = val_get(pod, spec);
	struct quota_amounts x = quota_amounts_of(a, pod_container_resources(a, effective_spec(a, pod, which), which));
	x = quota_merge(a, x, pod_level(a, spec, which), QUOTA_REPLACE);
	return quota_merge(a, x, quota_amounts_of(a, val_get(spec, overhead)), which == A_requests ? QUOTA_ADD : QUOTA_RAISE);
}

static bool is_of_containers(str name)
{
	return str_eq(name, STR("cpu")) || str_eq(name, STR("memory")) || str_eq(name, STR("ephemeral-storage"));
}

/* The names that quotas have for requests and limits. */
static struct quota_amounts quota_names_of(struct arena *a, struct quota_amounts requests, struct quota_amounts limits)
{
	struct quota_amounts x = { ARENA_ARRAY(a, struct quota_amount, 2 * requests.n + limits.n + 1), 0 };
	x.list[x.n++] = (struct quota_amount){ STR("pods"), quantity_of_int(1, QUANTITY_DECIMAL_SI) };
	for (size_t i = 0; i < requests.n; i++) {
		str name = requests.list[i].name;
		bool plain = is_of_containers(name) || resource_is_huge_page(name);
		if (plain)
			x.list[x.n++] = requests.list[i];
		if (plain || resource_is_extended(name) || str_starts(name, STR("deviceclass.resource.kubernetes.io/")))
			x.list[x.n++] = (struct quota_amount){ arena_join(a, STR("requests."), name), requests.list[i].q };
	}
	for (size_t i = 0; i < limits.n; i++)
		if (is_of_containers(limits.list[i].name))
			x.list[x.n++] = (struct quota_amount){ arena_join(a, STR("limits."), limits.list[i].name),
							       limits.list[i].q };
	quota_amounts_sort(x);
	return x;
}

/* Over, or to be gone by now: perhaps its node is lost, and nobody should wait for that to make another one. */
static bool is_over(struct val pod)
{
	str phase = val_str(pod, status, phase);
	struct timestamp gone;
	if (str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded")))
		return true;
	if (!val_has(pod, metadata, deletionGracePeriodSeconds) ||
	    !time_unformat(val_str(pod, metadata, deletionTimestamp), &gone))
		return false;
	return clock_wall_ns() / 1000000000 > gone.seconds + val_int(pod, metadata, deletionGracePeriodSeconds);
}

static struct quota_amounts usage(const struct request *q, struct val pod)
{
	struct arena *a = q->arena;
	struct quota_amount object = { STR("count/pods"), quantity_of_int(1, QUANTITY_DECIMAL_SI) };
	struct quota_amounts x = { 0 };
	if (!is_over(pod))
		x = quota_names_of(a, needed(a, pod, A_requests), needed(a, pod, A_limits));
	return quota_merge(a, x, (struct quota_amounts){ &object, 1 }, QUOTA_ADD);
}

/* ---- what must be said ---- */

static const str must_be_said[] = { /* in the order of names */
	STR_INIT("cpu"), STR_INIT("limits.cpu"), STR_INIT("limits.memory"), STR_INIT("memory"), STR_INIT("requests.cpu"),
	STR_INIT("requests.memory"),
};

static int str_order(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

static bool says(struct val container, str name)
{
	bool limit = str_starts(name, STR("limits."));
	struct val list = limit ? val_get(container, resources, limits) : val_get(container, resources, requests);
	return val_exists(val_find(list, str_ends(name, STR("cpu")) ? STR("cpu") : STR("memory")));
}

/* " for: a,b": the containers that do not say how much they want; "": all do. */
static str silent_containers(struct arena *a, struct val spec, str name)
{
	const struct val lists[] = { val_get(spec, containers), val_get(spec, initContainers) };
	CLEANUP(buf_done) struct buf b = BUF_INIT(8 << 20);
	str *names = ARENA_ARRAY(a, str, val_len(lists[0]) + val_len(lists[1]));
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			if (!says(*c, name))
				names[n++] = val_str(*c, name);
	if (!n)
		return STR_NONE;
	qsort(names, n, sizeof *names, str_order);
	for (size_t i = 0; i < n; i++) {
		buf_add(&b, i ? STR(",") : STR(" for: "));
		buf_add(&b, names[i]);
	}
	return arena_str(a, buf_str(&b));
}

/* Since before there were classes of service, who limits cpu or memory wants to hear it from every container. */
static str missing(struct arena *a, struct quota_amounts required, struct val pod)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(16 << 20);
	struct val spec = val_get(pod, spec);
	if (pod_level(a, spec, A_requests).n || pod_level(a, spec, A_limits).n)
		return STR_NONE;
	for (size_t i = 0; i < ARRAY_LEN(must_be_said); i++) {
		str who = quota_amount_find(required, must_be_said[i]) ? silent_containers(a, spec, must_be_said[i]) : STR_NONE;
		if (!who.n)
			continue;
		buf_add(&b, b.n ? STR("; ") : STR("must specify "));
		buf_add(&b, must_be_said[i]);
		buf_add(&b, who);
	}
	return b.n ? arena_str(a, buf_str(&b)) : STR_NONE;
}

/* ---- scopes ---- */

static bool is_across_namespaces(struct val term)
{
	return val_len(val_get(term, namespaces)) || val_has(term, namespaceSelector);
}

static bool has_affinity_across(struct val affinity)
{
	VAL_EACH(t, val_get(affinity, requiredDuringSchedulingIgnoredDuringExecution))
		if (is_across_namespaces(*t))
			return true;
	VAL_EACH(t, val_get(affinity, preferredDuringSchedulingIgnoredDuringExecution))
		if (is_across_namespaces(val_get(*t, podAffinityTerm)))
			return true;
	return false;
}

static int in_scope(struct arena *a, struct val selector, struct val pod, str *ret_why)
{
	str scope = val_str(selector, scopeName), class = val_str(pod, spec, priorityClassName);
	if (str_eq(scope, STR("Terminating")))
		return is_terminating(pod);
	if (str_eq(scope, STR("NotTerminating")))
		return !is_terminating(pod);
	if (str_eq(scope, STR("BestEffort")))
		return str_eq(pod_qos_class(val_get(pod, spec)), STR("BestEffort"));
	if (str_eq(scope, STR("NotBestEffort")))
		return !str_eq(pod_qos_class(val_get(pod, spec)), STR("BestEffort"));
	if (str_eq(scope, STR("CrossNamespacePodAffinity")))
		return has_affinity_across(val_get(pod, spec, affinity, podAffinity)) ||
		       has_affinity_across(val_get(pod, spec, affinity, podAntiAffinity));
	if (str_eq(scope, STR("PriorityClass")))
		return quota_selector_matches(a, selector, &class, class.n ? 1 : 0, ret_why);
	return 0;
}

const struct quota_evaluator quota_pods = {
	.group = STR_INIT(""), .resource = STR_INIT("pods"), .handles = handles, .covers = covers, .in_scope = in_scope,
	.missing = missing, .usage = usage,
};
