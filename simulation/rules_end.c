/* What must hold once nothing goes wrong any more and time has passed. */
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "controllers/owner.h"
#include "simulation/rules.h"

/* ---- what may keep a pod from running ---- */

static bool node_takes_pods(struct val node)
{
	return condition_is(node, "Ready", "True") && !val_bool(node, spec, unschedulable) && !val_len(val_get(node, spec, taints));
}

/* The one node that a pod of a DaemonSet is for; empty: it is not. */
static str pod_pinned_to(struct val pod)
{
	struct val affinity = val_get(pod, spec, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution);
	struct val term = val_at(val_get(affinity, nodeSelectorTerms), 0);

	return val_as_str(val_at(val_get(val_at(val_get(term, matchFields), 0), values), 0));
}

/* No node has room for it, not even without pods of lower priority. */
static bool has_no_place(const struct rules *r, struct val pod)
{
	str key, only = pod_pinned_to(pod);

	RULES_EACH(r, "minions/", key, node) {
		str name = val_str(node, metadata, name);
		struct use use = node_use(r, name, val_int(pod, spec, priority)), room = node_room(node);
		if ((only.n ? str_eq(only, name) : node_takes_pods(node)) && use.cpu_milli + pod_cpu_milli(pod) <= room.cpu_milli && use.pods + 1 <= room.pods &&
		    pod_claims_fit(r, pod, name))
			return false;
	}
	return true;
}

static bool is_owned_by(const struct rules *r, struct val object, str uid)
{
	struct val owner = owner_controller(object);

	if (str_eq(val_str(owner, uid), uid))
		return true;
	if (!str_eq(val_str(owner, kind), STR("ReplicaSet")))
		return false;
	struct val set = rules_find(r, "replicasets/" STR_FMT "/" STR_FMT, STR_ARG(val_str(object, metadata, namespace)), STR_ARG(val_str(owner, name)));
	return str_eq(val_str(owner_controller(set), uid), uid);
}

static int64_t milli_of(struct val list, str name)
{
	struct quantity q;
	return quantity_parse(val_as_str(val_find(list, name)), &q, NULL) == 0 ? quantity_milli(q) : INT64_MAX;
}

/* What quotas count in a namespace. */
static struct use namespace_use(const struct rules *r, str namespace)
{
	struct use use = { 0 };
	str key;

	RULES_EACH(r, "pods/", key, pod) {
		if (!str_eq(val_str(pod, metadata, namespace), namespace) || !pod_is_charged(pod))
			continue;
		use.pods++;
		use.cpu_milli += pod_cpu_milli(pod);
	}
	return use;
}

/* The namespace's quota has no room for another pod of this template. */
static bool is_refused(const struct rules *r, struct val workload)
{
	str namespace = val_str(workload, metadata, namespace);
	struct val hard = val_get(rules_find(r, "resourcequotas/" STR_FMT "/q", STR_ARG(namespace)), spec, hard);
	struct use use = namespace_use(r, namespace);

	if (!val_exists(hard))
		return false;
	use.cpu_milli += pod_cpu_milli(val_get(workload, spec, template));
	return (use.pods + 1) * 1000 > milli_of(hard, STR("pods")) || use.cpu_milli > milli_of(hard, STR("requests.cpu"));
}

/* One of its pods has no place, or cannot be made. */
static bool is_excused(const struct rules *r, struct val workload)
{
	str key;

	RULES_EACH(r, "pods/", key, pod)
		if (!val_str(pod, spec, nodeName).n && is_owned_by(r, pod, val_str(workload, metadata, uid)) && has_no_place(r, pod))
			return true;
	return is_refused(r, workload);
}

/* ---- workloads ---- */

/* Pods that are there for it, not about to go, and those of them that are ready. */
static int64_t pods_of(const struct rules *r, struct val workload, int64_t *ret_ready)
{
	int64_t n = 0;
	str key;

	*ret_ready = 0;
	RULES_EACH(r, "pods/", key, pod) {
		if (pod_is_over(pod) || val_has(pod, metadata, deletionTimestamp) || !is_owned_by(r, pod, val_str(workload, metadata, uid)))
			continue;
		n++;
		*ret_ready += condition_is(pod, "Ready", "True");
	}
	return n;
}

static bool has_replicas(const struct rules *r, str key, struct val w, int64_t want, struct buf *why)
{
	struct val status = val_get(w, status);
	int64_t ready, n = pods_of(r, w, &ready);

	if (val_has(w, metadata, deletionTimestamp))
		return rules_complain(why, key, "it is not gone");
	if (val_int(status, observedGeneration) != val_int(w, metadata, generation))
		return rules_complain(why, key, "its newest specification was not seen");
	if (is_excused(r, w))
		return true;
	if (n != want || ready != want)
		return rules_complain(why, key, "its pods are not there");
	return (val_int(status, replicas) == want && val_int(status, readyReplicas) == want && val_int(status, availableReplicas) == want) ||
	       rules_complain(why, key, "its status does not say what there is");
}

static bool replicas_are_there(const struct rules *r, struct buf *why)
{
	str key;

	RULES_EACH(r, "replicasets/", key, w) {
		int64_t ready;
		if (pods_of(r, w, &ready) > val_int(w, spec, replicas)) /* nothing excuses that */
			return rules_complain(why, key, "it has too many pods");
		if (!has_replicas(r, key, w, val_int(w, spec, replicas), why))
			return false;
	}
	RULES_EACH(r, "controllers/", key, w) {
		int64_t ready;
		if (pods_of(r, w, &ready) > val_int(w, spec, replicas))
			return rules_complain(why, key, "it has too many pods");
		if (!has_replicas(r, key, w, val_int(w, spec, replicas), why))
			return false;
	}
	RULES_EACH(r, "statefulsets/", key, w)
		if (!has_replicas(r, key, w, val_int(w, spec, replicas), why))
			return false;
	RULES_EACH(r, "deployments/", key, w) {
		if (!has_replicas(r, key, w, val_int(w, spec, replicas), why))
			return false;
		if (val_int(w, status, updatedReplicas) != val_int(w, spec, replicas) && !is_excused(r, w))
			return rules_complain(why, key, "its pods are not the newest");
	}
	return true;
}

static bool daemons_are_there(const struct rules *r, struct buf *why)
{
	int64_t nodes = 0, ready;
	str key;

	RULES_EACH(r, "minions/", key, node)
		nodes++;
	RULES_EACH(r, "daemonsets/", key, w) {
		if (val_has(w, metadata, deletionTimestamp))
			return rules_complain(why, key, "it is not gone");
		if (is_refused(r, w))
			continue;
		if (val_int(w, status, observedGeneration) != val_int(w, metadata, generation) || val_int(w, status, desiredNumberScheduled) != nodes)
			return rules_complain(why, key, "it does not know how many there shall be");
		if (pods_of(r, w, &ready) != nodes)
			return rules_complain(why, key, "its pods are not there");
		if (ready != nodes && !is_excused(r, w))
			return rules_complain(why, key, "its pods are not ready");
		if (val_int(w, status, updatedNumberScheduled) != nodes && !is_excused(r, w))
			return rules_complain(why, key, "its pods are not the newest");
		if (val_int(w, status, numberReady) != ready)
			return rules_complain(why, key, "its status does not say what there is");
	}
	return true;
}

static bool jobs_are_over(const struct rules *r, struct buf *why)
{
	str key;

	RULES_EACH(r, "jobs/", key, job) {
		if (is_excused(r, job))
			continue;
		if (!condition_is(job, "Complete", "True") && !condition_is(job, "Failed", "True"))
			return rules_complain(why, key, "it has not ended");
		if (val_int(job, status, active) || val_len(val_get(job, status, uncountedTerminatedPods, succeeded)) ||
		    val_len(val_get(job, status, uncountedTerminatedPods, failed)))
			return rules_complain(why, key, "it has ended, and counts still");
		if (val_has(job, spec, ttlSecondsAfterFinished))
			return rules_complain(why, key, "it has ended long ago, and is there");
	}
	return true;
}

/* ---- everything else ---- */

static bool owner_lives(const struct rules *r, struct val object, struct val owner)
{
	static const struct {
		const char *kind, *resource;
	} kinds[] = { { "ReplicaSet", "replicasets" }, { "Deployment", "deployments" }, { "StatefulSet", "statefulsets" }, { "DaemonSet", "daemonsets" },
		      { "Job", "jobs" }, { "CronJob", "cronjobs" }, { "ReplicationController", "controllers" }, { "Service", "services/specs" },
		      { "Pod", "pods" } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(val_str(owner, kind), str_of(kinds[i].kind)))
			return str_eq(val_str(rules_find(r, "%s/" STR_FMT "/" STR_FMT, kinds[i].resource, STR_ARG(val_str(object, metadata, namespace)),
							 STR_ARG(val_str(owner, name))), metadata, uid), val_str(owner, uid));
	return true;
}

static bool nothing_is_left(const struct rules *r, struct buf *why)
{
	str key;

	RULES_EACH(r, "", key, object) {
		str namespace = val_str(object, metadata, namespace);
		struct val owner = owner_controller(object);
		if (val_exists(owner) && !owner_lives(r, object, owner))
			return rules_complain(why, key, "its owner is gone");
		if (namespace.n == 1 && !val_exists(rules_find(r, "namespaces/" STR_FMT, STR_ARG(namespace))))
			return rules_complain(why, key, "its namespace is gone");
		if (val_has(object, metadata, deletionTimestamp) &&
		    !(str_starts(key, STR("/registry/persistentvolumeclaims/")) && claim_is_used(r, object)))
			return rules_complain(why, key, "it is not gone");
	}
	return true;
}

static bool pods_have_places(const struct rules *r, struct buf *why)
{
	str key;

	RULES_EACH(r, "pods/", key, pod) {
		if (pod_is_over(pod))
			continue;
		if (val_str(pod, spec, nodeName).n && !val_exists(rules_find(r, "minions/" STR_FMT, STR_ARG(val_str(pod, spec, nodeName)))))
			return rules_complain(why, key, "its node is gone");
		if (!val_str(pod, spec, nodeName).n && !has_no_place(r, pod))
			return rules_complain(why, key, "there is a node with room for it");
	}
	return true;
}

static bool quotas_are_counted(const struct rules *r, struct buf *why)
{
	str key;

	RULES_EACH(r, "resourcequotas/", key, quota) {
		struct use use = namespace_use(r, val_str(quota, metadata, namespace));
		struct val used = val_get(quota, status, used);
		if (milli_of(used, STR("pods")) != use.pods * 1000 || milli_of(used, STR("requests.cpu")) != use.cpu_milli)
			return rules_complain(why, key, "it does not say what is used");
	}
	return true;
}

bool rules_settled(const struct rules *r, struct buf *why)
{
	return replicas_are_there(r, why) && daemons_are_there(r, why) && jobs_are_over(r, why) && nothing_is_left(r, why) && pods_have_places(r, why) &&
	       quotas_are_counted(r, why) && rules_volumes_settled(r, why) && rules_services_settled(r, why) && rules_cron_settled(r, why);
}
