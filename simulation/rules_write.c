/* What must hold at every write. */
#include <stdio.h>

#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "codec/time.h"
#include "controllers/owner.h"
#include "simulation/rules.h"

/* How long what was let in before a quota was in force may take; how old what a controller counts may be, and what an eviction reads. */
static const int64_t in_force_ns = 5 * NS_PER_S, books_ns = 5 * NS_PER_S, known_ns = 10 * NS_PER_S;

static int64_t milli_of(struct val list, str name)
{
	struct quantity q;
	return quantity_parse(val_as_str(val_find(list, name)), &q, NULL) == 0 ? quantity_milli(q) : -1;
}

static bool is_new(struct val old, struct val now)
{
	return val_exists(now) && !str_eq(val_str(old, metadata, uid), val_str(now, metadata, uid));
}

/* ---- pods and nodes ---- */

/*
 * A pod has one node for its whole life, and that has room for it. A binding that arrives when its scheduler does not know of it any more may
 * ask for too much, and so may the next one when nobody was told that the last one was done: the node has to refuse it then.
 */
static void check_binding(struct rules *r, str key, struct val old, struct val now)
{
	str before = val_str(old, spec, nodeName), node = val_str(now, spec, nodeName);

	if (!val_exists(now) || str_eq(before, node))
		return;
	if (before.n && !is_new(old, now)) {
		rules_fail(r, "a pod was bound twice", key, "to " STR_FMT " and to " STR_FMT, STR_ARG(before), STR_ARG(node));
		return;
	}
	struct val object = rules_find(r, "minions/" STR_FMT, STR_ARG(node));
	struct use use = node_use(r, node, INT32_MIN), room = node_room(object);
	bool known = !r->late && clock_now_ns() - rules_fact_of(r, "unsure", node) >= known_ns;
	if (val_exists(object) && known && (use.cpu_milli + pod_cpu_milli(now) > room.cpu_milli || use.pods + 1 > room.pods))
		rules_fail(r, "a node has more than it can take", key, STR_FMT " has %lldm of %lldm and %lld of %lld pods", STR_ARG(node),
			   (long long)(use.cpu_milli + pod_cpu_milli(now)), (long long)room.cpu_milli, (long long)use.pods + 1, (long long)room.pods);
}

static bool runs(struct val pod) { return str_eq(val_str(pod, status, phase), STR("Running")); }

/* Whoever has placed it there, a node never runs more than it can take, nor two under one address. */
static void check_room(struct rules *r, str key, struct val old, struct val now)
{
	str node = val_str(now, spec, nodeName), at;
	struct val object = rules_find(r, "minions/" STR_FMT, STR_ARG(node));
	struct use use = { .pods = 1, .cpu_milli = pod_cpu_milli(now) }, room = node_room(object);

	if (!runs(now) || (runs(old) && !is_new(old, now)) || !val_exists(object))
		return;
	RULES_EACH(r, "pods/", at, pod) {
		if (!runs(pod) || !str_eq(val_str(pod, spec, nodeName), node) || str_eq(at, key))
			continue;
		use.pods++;
		use.cpu_milli += pod_cpu_milli(pod);
		if (val_has(now, status, podIP) && val_equal(val_get(now, status, podIP), val_get(pod, status, podIP)))
			rules_fail(r, "two pods have one address", key, STR_FMT, STR_ARG(at));
	}
	if (use.cpu_milli > room.cpu_milli || use.pods > room.pods)
		rules_fail(r, "a node runs more than it can take", key, STR_FMT " runs %lldm of %lldm and %lld of %lld pods", STR_ARG(node),
			   (long long)use.cpu_milli, (long long)room.cpu_milli, (long long)use.pods, (long long)room.pods);
}

/* One that may still run is not forgotten: another of its name could begin. */
static void check_removal(struct rules *r, str key, struct val old, struct val now)
{
	str node = val_str(old, spec, nodeName), uid = val_str(old, metadata, uid);

	if (!val_exists(old) || (val_exists(now) && !is_new(old, now)) || !node.n || pod_is_over(old))
		return;
	if (!rules_fact_of(r, "stopped", uid) && val_exists(rules_find(r, "minions/" STR_FMT, STR_ARG(node))))
		rules_fail(r, "a pod is gone that its node has not stopped", key, "on " STR_FMT, STR_ARG(node));
}

/* Once it has ended, it has ended. */
static void check_phase(struct rules *r, str key, struct val old, struct val now)
{
	if (val_exists(now) && !is_new(old, now) && pod_is_over(old) && !str_eq(val_str(old, status, phase), val_str(now, status, phase)))
		rules_fail(r, "a pod that has ended lives again", key, STR_FMT, STR_ARG(val_str(now, status, phase)));
}

/* ---- jobs ---- */

/* How many pods of each job have ended, and how: what its status can count. */
static void count_for_job(struct rules *r, struct val old, struct val now)
{
	struct val last = val_exists(now) ? now : old, owner = owner_controller(last);
	bool was = val_exists(old) && !is_new(old, now) && pod_is_over(old);

	if (!str_eq(val_str(owner, kind), STR("Job")))
		return;
	if (val_exists(now) && pod_is_over(now) && !was)
		++*rules_fact(r, str_eq(val_str(now, status, phase), STR("Succeeded")) ? "succeeded" : "failed", val_str(owner, uid));
	else if (val_has(now, metadata, deletionTimestamp) && !val_has(old, metadata, deletionTimestamp) && !pod_is_over(now))
		++*rules_fact(r, "deleted", val_str(owner, uid));
}

static void check_job(struct rules *r, str key, struct val now)
{
	str uid = val_str(now, metadata, uid);
	struct val status = val_get(now, status), waiting = val_get(status, uncountedTerminatedPods);
	int64_t succeeded = val_int(status, succeeded) + (int64_t)val_len(val_get(waiting, succeeded));
	int64_t failed = val_int(status, failed) + (int64_t)val_len(val_get(waiting, failed));

	if (succeeded > rules_fact_of(r, "succeeded", uid))
		rules_fail(r, "a job counts too many successes", key, "%lld of %lld", (long long)succeeded, (long long)rules_fact_of(r, "succeeded", uid));
	if (failed > rules_fact_of(r, "failed", uid) + rules_fact_of(r, "deleted", uid))
		rules_fail(r, "a job counts too many failures", key, "%lld of %lld and %lld", (long long)failed, (long long)rules_fact_of(r, "failed", uid),
			   (long long)rules_fact_of(r, "deleted", uid));
	if (condition_is(now, "Complete", "True") && val_int(status, succeeded) < val_int(now, spec, completions))
		rules_fail(r, "a job is complete too early", key, "%lld of %lld", (long long)val_int(status, succeeded),
			   (long long)val_int(now, spec, completions));
}

/* ---- budgets and quotas ---- */

static bool is_under(struct val budget, struct val pod)
{
	return str_eq(val_str(budget, metadata, namespace), val_str(pod, metadata, namespace)) &&
	       val_equal(val_find(val_get(budget, spec, selector, matchLabels), STR("app")), val_find(val_get(pod, metadata, labels), STR("app")));
}

static bool is_healthy(struct val pod) { return condition_is(pod, "Ready", "True") && !val_has(pod, metadata, deletionTimestamp); }

static bool is_disrupted(struct val budget, struct val pod)
{
	return val_exists(val_find(val_get(budget, status, disruptedPods), val_str(pod, metadata, name)));
}

/* When a pod was lost to its budget that nobody had evicted. */
static void note_loss(struct rules *r, struct val old, struct val now)
{
	str key;

	RULES_EACH(r, "poddisruptionbudgets/", key, budget)
		if (is_under(budget, old) && is_healthy(old) && !is_disrupted(budget, old) && (!is_healthy(now) || !is_under(budget, now)))
			*rules_fact(r, "lost", val_str(budget, metadata, uid)) = clock_now_ns();
}

/* Which pods a budget was ever told of. */
static void note_disrupted(struct rules *r, struct val budget)
{
	char key[256];

	VAL_EACH_MEMBER(m, val_get(budget, status, disruptedPods)) {
		str name = atom_str(m->key);
		(void)snprintf(key, sizeof key, "/registry/pods/" STR_FMT "/" STR_FMT, STR_ARG(val_str(budget, metadata, namespace)), STR_ARG(name));
		*rules_fact(r, "disrupted", str_of(key)) = 1;
	}
}

static bool is_evicted(struct val pod)
{
	VAL_EACH(c, val_get(pod, status, conditions))
		if (str_eq(val_str(*c, reason), STR("EvictionByEvictionAPI")))
			return true;
	return false;
}

/* A healthy pod that is evicted was taken from its budget before, unless one of them was so new that the server did not know it. */
static void check_eviction(struct rules *r, str key, struct val old, struct val now)
{
	int64_t now_ns = clock_now_ns();
	str at;

	if (val_exists(old) && val_exists(now) && !is_new(old, now) &&
	    !val_equal(val_find(val_get(old, metadata, labels), STR("app")), val_find(val_get(now, metadata, labels), STR("app"))))
		*rules_fact(r, "labeled", key) = now_ns;
	if (!is_evicted(now) || is_evicted(old) || !is_healthy(old) || rules_fact_of(r, "disrupted", key) ||
	    now_ns - rules_fact_of(r, "labeled", key) < known_ns)
		return;
	RULES_EACH(r, "poddisruptionbudgets/", at, budget)
		if (is_under(budget, old) && now_ns - rules_fact_of(r, "made", val_str(budget, metadata, uid)) >= known_ns)
			rules_fail(r, "an eviction that its budget does not know of", key, STR_FMT, STR_ARG(at));
}

/* An eviction leaves as many healthy pods as there shall be: what was lost otherwise may not be in the books yet. */
static void check_healthy(struct rules *r, str key, struct val old)
{
	str uid = val_str(old, metadata, uid), at;
	int64_t healthy = 0, lost_ns = rules_fact_of(r, "lost", uid);

	if (lost_ns && lost_ns > rules_fact_of(r, "counted", uid) - books_ns)
		return;
	RULES_EACH(r, "pods/", at, pod)
		healthy += is_under(old, pod) && is_healthy(pod) && !is_disrupted(old, pod);
	if (healthy <= val_int(old, status, desiredHealthy))
		rules_fail(r, "an eviction breaks a disruption budget", key, "%lld healthy before it, %lld needed", (long long)healthy,
			   (long long)val_int(old, status, desiredHealthy));
}

/* An eviction takes one of the disruptions that there are; everything else is the controller's count. */
static void check_budget(struct rules *r, str key, struct val old, struct val now)
{
	int64_t before = val_int(old, status, disruptionsAllowed), after = val_int(now, status, disruptionsAllowed);

	if (after < 0)
		rules_fail(r, "a disruption budget is overdrawn", key, "%lld", (long long)after);
	note_disrupted(r, now);
	if (!val_exists(old) || is_new(old, now))
		*rules_fact(r, "made", val_str(now, metadata, uid)) = clock_now_ns();
	if (!val_exists(old) || is_new(old, now) || val_len(val_get(now, status, disruptedPods)) <= val_len(val_get(old, status, disruptedPods))) {
		*rules_fact(r, "counted", val_str(now, metadata, uid)) = clock_now_ns();
		return;
	}
	if (before < 1 || after != before - 1)
		rules_fail(r, "an eviction that its budget does not allow", key, "%lld allowed before it, %lld after", (long long)before, (long long)after);
	check_healthy(r, key, old);
}

/* From when on a quota is in force. */
static void note_quota(struct rules *r, struct val quota)
{
	int64_t *since_ns = rules_fact(r, "in force", val_str(quota, metadata, uid));

	if (!*since_ns && val_has(quota, status, hard))
		*since_ns = clock_now_ns();
}

static void check_quota(struct rules *r, str key, struct val pod)
{
	str namespace = val_str(pod, metadata, namespace), at;
	struct val quota = rules_find(r, "resourcequotas/" STR_FMT "/q", STR_ARG(namespace)), hard = val_get(quota, status, hard);
	struct use use = { .pods = 1, .cpu_milli = pod_cpu_milli(pod) };

	if (!val_exists(hard) || clock_now_ns() - rules_fact_of(r, "in force", val_str(quota, metadata, uid)) < in_force_ns)
		return;
	RULES_EACH(r, "pods/", at, other) {
		if (!str_eq(val_str(other, metadata, namespace), namespace) || !pod_is_charged(other))
			continue;
		use.pods++;
		use.cpu_milli += pod_cpu_milli(other);
	}
	if (use.pods * 1000 > milli_of(hard, STR("pods")) || use.cpu_milli > milli_of(hard, STR("requests.cpu")))
		rules_fail(r, "a quota is exceeded", key, "%lld pods with %lldm", (long long)use.pods, (long long)use.cpu_milli);
}

/* ---- leaders ---- */

/* Whoever holds a lease has it to its end, unless it is given back. */
static void check_lease(struct rules *r, str key, struct val old, struct val now)
{
	str before = val_str(old, spec, holderIdentity), after = val_str(now, spec, holderIdentity);
	struct timestamp t;

	if (!before.n || !after.n || str_eq(before, after) || time_parse(val_str(old, spec, renewTime), &t, NULL) < 0)
		return;
	int64_t ends_ns = (t.seconds + val_int(old, spec, leaseDurationSeconds)) * NS_PER_S + t.nanos;
	if (ends_ns > clock_wall_ns())
		rules_fail(r, "a lease is taken from who holds it", key, "by " STR_FMT " from " STR_FMT, STR_ARG(after), STR_ARG(before));
}

void rules_check_write(struct rules *r, str key, struct val old, struct val now)
{
	rules_check_volumes(r, key, old, now);
	if (str_starts(key, STR("/registry/pods/"))) {
		count_for_job(r, old, now);
		check_binding(r, key, old, now);
		check_room(r, key, old, now);
		check_removal(r, key, old, now);
		check_phase(r, key, old, now);
		note_loss(r, old, now);
		check_eviction(r, key, old, now);
		if (is_new(old, now))
			check_quota(r, key, now);
	} else if (str_starts(key, STR("/registry/jobs/")) && val_exists(now)) {
		check_job(r, key, now);
		rules_check_cron(r, key, old, now);
	} else if (str_starts(key, STR("/registry/poddisruptionbudgets/")) && val_exists(now)) {
		check_budget(r, key, old, now);
	} else if (str_starts(key, STR("/registry/resourcequotas/")) && val_exists(now)) {
		note_quota(r, now);
	} else if (str_starts(key, STR("/registry/leases/"))) {
		check_lease(r, key, old, now);
	}
}
