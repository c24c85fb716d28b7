#include "controllers/node_lifecycle_plan.h"

#include "base/clock.h"
#include "codec/atoms.h"
#include "controllers/controller.h"
#include "controllers/labels.h"
#include "controllers/moment.h"
#include "controllers/taints.h"

/* ---- heartbeats ---- */

/* NetworkUnavailable is not the node's to say. */
static const char *const silent_types[] = { "Ready", "MemoryPressure", "DiskPressure", "PIDPressure" };

static struct val unknown(struct arena *a, struct val old, struct val node, const char *type, struct val now)
{
	bool never = !val_exists(old);

	return OBJECT(a, F(type, VAL_STR(str_of(type))), F(status, VAL_LIT("Unknown")),
		      F(lastHeartbeatTime, never ? val_get(node, metadata, creationTimestamp) : val_get(old, lastHeartbeatTime)),
		      F(lastTransitionTime, now), F(reason, never ? VAL_LIT("NodeStatusNeverUpdated") : VAL_LIT("NodeStatusUnknown")),
		      F(message, never ? VAL_LIT("Kubelet never posted node status.") : VAL_LIT("Kubelet stopped posting node status.")));
}

struct val node_conditions_unknown(struct arena *a, struct val node, struct val now)
{
	struct val conditions = val_get(node, status, conditions);

	for (size_t i = 0; i < ARRAY_LEN(silent_types); i++) {
		struct val old = condition_find(conditions, silent_types[i]);
		if (!str_eq(val_str(old, status), STR("Unknown")))
			conditions = condition_set(a, conditions, unknown(a, old, node, silent_types[i], now), false);
	}
	return conditions;
}

static void hear(struct node_health *h, const struct node_look *in, struct val ready)
{
	int64_t heartbeat_ns = moment_of(val_get(ready, lastHeartbeatTime)), renew_ns = moment_of(val_get(in->lease, spec, renewTime));

	if (!val_exists(ready)) {
		if (!h->known)
			h->probe_ns = in->now_ns - (in->wall_ns - moment_of(val_get(in->node, metadata, creationTimestamp)));
	} else if (!h->known || !h->has_ready || h->heartbeat_ns != heartbeat_ns) {
		h->probe_ns = in->now_ns;
	}
	if (val_exists(in->lease) && renew_ns > h->renew_ns) {
		h->probe_ns = in->now_ns;
		h->renew_ns = renew_ns;
	}
	h->known = true;
	h->has_ready = val_exists(ready);
	h->heartbeat_ns = heartbeat_ns;
}

void node_health_look(struct arena *a, const struct node_look *in, struct node_health *h, struct node_verdict *ret)
{
	struct val ready = condition_find(val_get(in->node, status, conditions), "Ready");
	int64_t grace_ns = val_exists(ready) ? in->grace_ns : in->startup_grace_ns;

	*ret = (struct node_verdict){ .was = val_exists(ready) ? val_str(ready, status) : STR("Unknown"), .is = val_str(ready, status) };
	hear(h, in, ready);
	if (in->now_ns - h->probe_ns <= grace_ns)
		return;
	ret->is = STR("Unknown");
	if (!str_eq(val_str(ready, status), STR("Unknown")))
		ret->conditions = node_conditions_unknown(a, in->node, moment_time(a, in->wall_ns));
}

/* ---- taints ---- */

static const struct {
	const char *type, *status, *taint;
} condition_taints[] = {
	{ "Ready", "False", TAINT_NOT_READY },
	{ "Ready", "Unknown", TAINT_UNREACHABLE },
	{ "MemoryPressure", "True", "node.kubernetes.io/memory-pressure" },
	{ "DiskPressure", "True", "node.kubernetes.io/disk-pressure" },
	{ "NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable" },
	{ "PIDPressure", "True", "node.kubernetes.io/pid-pressure" },
};

#define UNSCHEDULABLE "node.kubernetes.io/unschedulable"

static const char *taint_of(struct val condition)
{
	for (size_t i = 0; i < ARRAY_LEN(condition_taints); i++)
		if (str_eq(val_str(condition, type), str_of(condition_taints[i].type)) &&
		    str_eq(val_str(condition, status), str_of(condition_taints[i].status)))
			return condition_taints[i].taint;
	return NULL;
}

static bool calls_for(struct val node, const char *taint)
{
	VAL_EACH(c, val_get(node, status, conditions)) {
		const char *own = taint_of(*c);
		if (own && str_eq(str_of(own), str_of(taint)))
			return true;
	}
	return false;
}

struct val node_no_schedule_taints(struct arena *a, struct val node, struct val now)
{
	struct val before = val_get(node, spec, taints), taints = before;
	bool cordoned = val_bool(node, spec, unschedulable);

	for (size_t i = 0; i < ARRAY_LEN(condition_taints); i++)
		if (!calls_for(node, condition_taints[i].taint))
			taints = taints_remove(a, taints, str_of(condition_taints[i].taint), NO_SCHEDULE);
	if (!cordoned)
		taints = taints_remove(a, taints, STR(UNSCHEDULABLE), NO_SCHEDULE);
	VAL_EACH(c, val_get(node, status, conditions)) {
		const char *taint = taint_of(*c);
		if (taint)
			taints = taints_add(a, taints, str_of(taint), NO_SCHEDULE, now);
	}
	if (cordoned)
		taints = taints_add(a, taints, STR(UNSCHEDULABLE), NO_SCHEDULE, now);
	return val_same(before, taints) ? VAL_EMPTY : taints;
}

struct val node_no_execute_taints(struct arena *a, struct val node, str ready, struct val now)
{
	struct val before = val_get(node, spec, taints), taints = before;
	bool not_ready = str_eq(ready, STR("False")), unreachable = str_eq(ready, STR("Unknown"));

	if (!not_ready)
		taints = taints_remove(a, taints, STR(TAINT_NOT_READY), NO_EXECUTE);
	if (!unreachable)
		taints = taints_remove(a, taints, STR(TAINT_UNREACHABLE), NO_EXECUTE);
	if (not_ready)
		taints = taints_add(a, taints, STR(TAINT_NOT_READY), NO_EXECUTE, now);
	if (unreachable)
		taints = taints_add(a, taints, STR(TAINT_UNREACHABLE), NO_EXECUTE, now);
	return val_same(before, taints) ? VAL_EMPTY : taints;
}

/* ---- labels ---- */

struct val node_old_labels(struct arena *a, struct val node)
{
	static const struct { str is, was; } names[] = {
		{ STR_INIT("kubernetes.io/os"), STR_INIT("beta.kubernetes.io/os") },
		{ STR_INIT("kubernetes.io/arch"), STR_INIT("beta.kubernetes.io/arch") },
	};
	struct val before = val_get(node, metadata, labels), labels = before;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct val value = val_find(labels, names[i].is);
		if (val_exists(value) && !val_equal(value, val_find(labels, names[i].was)))
			labels = labels_put(a, labels, names[i].was, value);
	}
	return val_same(before, labels) ? VAL_EMPTY : labels;
}

static str either(struct val node, str key, str old_key)
{
	str value = label_of(node, key);
	return value.n ? value : label_of(node, old_key);
}

str node_zone(struct arena *a, struct val node)
{
	str zone = either(node, STR("topology.kubernetes.io/zone"), STR("failure-domain.beta.kubernetes.io/zone"));
	str region = either(node, STR("topology.kubernetes.io/region"), STR("failure-domain.beta.kubernetes.io/region"));

	return zone.n || region.n ? arena_printf(a, STR_FMT "::" STR_FMT, STR_ARG(region), STR_ARG(zone)) : STR("");
}

/* ---- zones ---- */

enum zone_state zone_state(size_t ready, size_t not_ready, double threshold)
{
	if (!ready && not_ready)
		return ZONE_FULL;
	if (not_ready > 2 && (double)not_ready / (double)(not_ready + ready) >= threshold)
		return ZONE_PARTIAL;
	return ZONE_NORMAL;
}

double zone_rate(enum zone_state state, size_t nodes, double rate, double secondary_rate, size_t large)
{
	if (state != ZONE_PARTIAL)
		return rate;
	return nodes > large ? secondary_rate : 0;
}
