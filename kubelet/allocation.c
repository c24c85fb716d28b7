#include "kubelet/allocation.h"

#include "base/buf.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/quantity.h"
#include "kubelet/admit_priv.h"
#include "kubelet/config.h"
#include "kubelet/cri_config.h"
#include "kubelet/pod_rules.h"
#include "machinery/resources.h"

enum { MESSAGE_MAX = 64 * 1024 };

static const atom lists[] = { A_initContainers, A_containers };

static struct val resources_of(struct val container)
{
	struct val r = val_get(container, resources);
	return val_exists(r) ? r : VAL_EMPTY_OBJECT;
}

struct val allocation_of(struct arena *a, struct val pod)
{
	struct val given[ARRAY_LEN(lists)];

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct val_builder b = val_builder(a);
		VAL_EACH(c, val_member(val_get(pod, spec), lists[i]))
			val_add_item(&b, OBJECT(a, F(name, val_get(*c, name)), F(resources, resources_of(*c))));
		given[i] = val_end_list(&b);
	}
	return OBJECT(a, F(initContainers, val_len(given[0]) ? given[0] : VAL_EMPTY), F(containers, given[1]),
		      F(resources, val_get(pod, spec, resources)));
}

/* ---- comparing ---- */

static bool covers(struct val x, struct val y)
{
	VAL_EACH_MEMBER(m, x) {
		struct val other = val_member(y, m->key);
		if (!val_exists(other) || quantity_cmp(quantity_of(m->val), quantity_of(other)) != 0)
			return false;
	}
	return true;
}

static bool requirements_equal(struct val x, struct val y)
{
	return covers(val_get(x, requests), val_get(y, requests)) && covers(val_get(y, requests), val_get(x, requests)) &&
	       covers(val_get(x, limits), val_get(y, limits)) && covers(val_get(y, limits), val_get(x, limits));
}

/* What is given to the container of that name; VAL_NONE: it was not there then. */
static struct val given_to(struct val given, atom list, struct val container)
{
	return find_named(val_member(given, list), val_str(container, name));
}

bool allocation_is_same(struct val pod, struct val given)
{
	if (!requirements_equal(val_get(pod, spec, resources), val_get(given, resources)))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(val_get(pod, spec), lists[i])) {
			struct val had = given_to(given, lists[i], *c);
			if (val_exists(had) && !requirements_equal(val_get(*c, resources), val_get(had, resources)))
				return false;
		}
	return true;
}

bool resources_same(struct val x, struct val y)
{
	struct val xr = val_get(x, requests), yr = val_get(y, requests), xl = val_get(x, limits), yl = val_get(y, limits);

	return resources_cpu_milli(xr) == resources_cpu_milli(yr) && resources_cpu_milli(xl) == resources_cpu_milli(yl) &&
	       resources_memory(xr) == resources_memory(yr) && resources_memory(xl) == resources_memory(yl);
}

bool allocation_grows(struct arena *a, struct val pod, struct val given)
{
	struct val before = admit_requests(a, val_get(allocation_apply(a, pod, given), spec)), now = admit_requests(a, val_get(pod, spec));

	return admit_amount(now, STR("cpu")) > admit_amount(before, STR("cpu")) ||
	       admit_amount(now, STR("memory")) > admit_amount(before, STR("memory"));
}

/* ---- changing ---- */

/* The spec with other resources of its containers: choose says which, from its own and those of the other spec. */
static struct val map_spec(struct arena *a, struct val spec, struct val other,
			   struct val (*choose)(struct arena *a, struct val own, struct val other))
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct val_builder b = val_builder(a);
		if (!val_len(val_member(spec, lists[i])))
			continue;
		VAL_EACH(c, val_member(spec, lists[i])) {
			struct val had = given_to(other, lists[i], *c);
			val_add_item(&b, val_exists(had) ? val_put(a, *c, A_resources, choose(a, resources_of(*c), resources_of(had))) : *c);
		}
		spec = val_put(a, spec, lists[i], val_end_list(&b));
	}
	return spec;
}

static struct val take_other(struct arena *a, struct val own, struct val other)
{
	(void)a, (void)own;
	return other;
}

struct val allocation_apply(struct arena *a, struct val pod, struct val given)
{
	struct val spec = map_spec(a, val_get(pod, spec), given, take_other);

	return val_put(a, pod, A_spec, val_put(a, spec, A_resources, val_get(given, resources)));
}

static struct val take_more(struct arena *a, struct val own, struct val other)
{
	struct val requests = val_get(own, requests);

	VAL_EACH_MEMBER(m, val_get(other, requests))
		if (quantity_cmp(quantity_of(m->val), quantity_of(val_member(requests, m->key))) > 0)
			requests = val_put(a, val_exists(requests) ? requests : VAL_EMPTY_OBJECT, m->key, m->val);
	return val_put(a, own, A_requests, val_sorted(a, requests));
}

struct val allocation_max(struct arena *a, struct val pod, struct val other)
{
	struct val spec = map_spec(a, val_get(pod, spec), other, take_more), of_pod = val_get(other, resources);

	if (val_has(spec, resources) && val_exists(of_pod))
		spec = val_put(a, spec, A_resources, take_more(a, val_get(spec, resources), of_pod));
	return val_put(a, pod, A_spec, spec);
}

/* ---- what cannot be ---- */

static bool changes(struct val pod, struct val given, str resource)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(val_get(pod, spec), lists[i])) {
			struct val had = given_to(given, lists[i], *c);
			struct val now = val_find(val_get(*c, resources, requests), resource), was = val_find(val_get(had, resources, requests), resource);
			if (quantity_cmp(quantity_of(now), quantity_of(was)) != 0)
				return true;
		}
	return false;
}

/* Memory of a container that may swap would change how much: it has to restart for that. */
static bool changes_swap(struct val pod, struct val given)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(val_get(pod, spec), lists[i])) {
			struct val had = given_to(given, lists[i], *c);
			bool restarts = false;
			VAL_EACH(policy, val_get(*c, resizePolicy))
				restarts |= str_eq(val_str(*policy, resourceName), STR("memory")) &&
					    str_eq(val_str(*policy, restartPolicy), STR("RestartContainer"));
			if (!restarts && resources_memory(val_get(*c, resources, requests)) != resources_memory(val_get(had, resources, requests)))
				return true;
		}
	return false;
}

str allocation_infeasible(const struct kubelet_node *n, struct arena *a, struct val config, struct val pod, struct val given)
{
	static const struct { str resource; const char *name; str gate; } managers[] = {
		{ STR_INIT("cpu"), "CPU Manager", STR_INIT("InPlacePodVerticalScalingExclusiveCPUs") },
		{ STR_INIT("memory"), "Memory Manager", STR_INIT("InPlacePodVerticalScalingExclusiveMemory") } };
	const str policies[] = { val_str(config, cpuManagerPolicy), val_str(config, memoryManagerPolicy) };
	static const str fixed[] = { STR_INIT("static"), STR_INIT("Static") };

	if (n->swap_limited && n->cgroup_v2 && n->swap_controller && str_eq(pod_qos(pod), STR("Burstable")) && changes_swap(pod, given))
		return STR("In-place resize of containers with swap is not supported.");
	if (!config_gate(config, STR("InPlacePodLevelResourcesVerticalScaling")) &&
	    !requirements_equal(val_get(pod, spec, resources), val_get(given, resources)))
		return STR("InPlacePodLevelResourcesVerticalScaling is disabled");
	if (!str_eq(pod_qos(pod), STR("Guaranteed")))
		return STR_NONE;
	for (size_t i = 0; i < ARRAY_LEN(managers); i++)
		if (str_eq(policies[i], fixed[i]) && !config_gate(config, managers[i].gate) && changes(pod, given, managers[i].resource))
			return arena_printf(a, "Resize is infeasible for Guaranteed Pods alongside %s policy \"" STR_FMT "\"", managers[i].name,
					    STR_ARG(fixed[i]));
	return STR_NONE;
}

/* ---- telling ---- */

static struct val summary(struct arena *a, struct val containers)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(c, containers) {
		struct val r = val_get(*c, resources), limits = val_get(r, limits), requests = val_get(r, requests);
		struct val shown = OBJECT(a, F(limits, val_len(limits) ? limits : VAL_EMPTY), F(requests, val_len(requests) ? requests : VAL_EMPTY),
					  F(claims, val_get(r, claims)));
		val_add_item(&b, OBJECT(a, F(name, val_get(*c, name)), F(resources, shown)));
	}
	return val_end_list(&b);
}

str resize_message(struct arena *a, const char *text, struct val pod, int64_t generation, str error)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);
	struct val init = val_get(pod, spec, initContainers), containers = val_get(pod, spec, containers);
	struct val all = OBJECT(a, F(initContainers, val_len(init) ? summary(a, init) : VAL_EMPTY), F(containers, summary(a, containers)),
				F(generation, val_of_int(generation)), F(error, error.n ? VAL_STR(error) : VAL_EMPTY));

	buf_addf(&b, "%s: ", text);
	return json_encode(&b, all, &(struct json_encode_options){ 0 }, NULL) < 0 ? str_of(text) : arena_str(a, buf_str(&b));
}

/* ---- conditions ---- */

struct val resize_condition(struct val list, const char *type)
{
	VAL_EACH(c, list)
		if (str_eq(val_str(*c, type), str_of(type)))
			return *c;
	return VAL_EMPTY;
}

static struct val rebuild(struct arena *a, struct val list, const char *type, struct val put)
{
	static const char *const order[] = { RESIZE_PENDING, RESIZE_IN_PROGRESS };
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		struct val c = str_eq(str_of(order[i]), str_of(type)) ? put : resize_condition(list, order[i]);
		if (val_exists(c))
			val_add_item(&b, c);
	}
	return val_end_list(&b);
}

struct val resize_condition_put(struct arena *a, struct val list, const char *type, str reason, str message, int64_t generation)
{
	struct val c = OBJECT(a, F(type, VAL_STR(str_of(type))), F(observedGeneration, generation ? val_of_int(generation) : VAL_EMPTY),
			      F(reason, reason.n ? VAL_STR(reason) : VAL_EMPTY), F(message, message.n ? VAL_STR(message) : VAL_EMPTY));
	return rebuild(a, list, type, c);
}

struct val resize_condition_remove(struct arena *a, struct val list, const char *type) { return rebuild(a, list, type, VAL_EMPTY); }
