#include "controllers/pod_gc_plan.h"

#include <stdlib.h>

#include "codec/atoms.h"
#include "machinery/conditions.h"

static bool is_phase(struct val pod, str phase) { return str_eq(val_str(pod, status, phase), phase); }

static bool is_terminated(struct val pod)
{
	return !is_phase(pod, STR("Pending")) && !is_phase(pod, STR("Running")) && !is_phase(pod, STR("Unknown"));
}

static bool is_ready(struct val node)
{
	VAL_EACH(c, val_get(node, status, conditions))
		if (str_eq(val_str(*c, type), STR("Ready")))
			return str_eq(val_str(*c, status), STR("True"));
	return false;
}

static bool is_out_of_service(struct val node)
{
	VAL_EACH(t, val_get(node, spec, taints))
		if (str_eq(val_str(*t, key), STR("node.kubernetes.io/out-of-service")))
			return !is_ready(node);
	return false;
}

enum pod_gc_why pod_gc_judge(struct val pod, struct val node, bool node_gone)
{
	bool deleted = val_has(pod, metadata, deletionTimestamp);
	if (deleted && val_exists(node) && is_out_of_service(node))
		return POD_GC_OUT_OF_SERVICE;
	if (!val_str(pod, spec, nodeName).n)
		return deleted ? POD_GC_UNSCHEDULED : is_terminated(pod) ? POD_GC_TERMINATED : POD_GC_STAYS;
	if (node_gone)
		return POD_GC_ORPHANED;
	return is_terminated(pod) ? POD_GC_TERMINATED : POD_GC_STAYS;
}

static bool is_evicted(struct val pod) { return is_phase(pod, STR("Failed")) && str_eq(val_str(pod, status, reason), STR("Evicted")); }

static int by_age(const void *x, const void *y)
{
	struct val a = (*(struct frozen *const *)x)->val, b = (*(struct frozen *const *)y)->val;
	if (is_evicted(a) != is_evicted(b))
		return is_evicted(a) ? -1 : 1;
	int r = str_cmp(val_str(a, metadata, creationTimestamp), val_str(b, metadata, creationTimestamp));
	return r ? r : str_cmp(val_str(a, metadata, name), val_str(b, metadata, name));
}

void pod_gc_sort(struct frozen **pods, size_t n)
{
	if (n)
		qsort(pods, n, sizeof *pods, by_age);
}

static struct val disruption(struct arena *a, struct val pod, struct val now)
{
	struct val since = now;
	VAL_EACH(c, val_get(pod, status, conditions))
		if (str_eq(val_str(*c, type), STR("DisruptionTarget")) && str_eq(val_str(*c, status), STR("True")))
			since = val_get(*c, lastTransitionTime);
	return OBJECT(a, F(type, VAL_LIT("DisruptionTarget")), F(observedGeneration, val_get(pod, metadata, generation)),
		      F(status, VAL_LIT("True")), F(lastTransitionTime, since), F(reason, VAL_LIT("DeletionByPodGC")),
		      F(message, VAL_LIT("PodGC: node no longer exists")));
}

struct val pod_gc_patch(struct arena *a, struct val pod, bool orphaned, struct val now)
{
	if (is_phase(pod, STR("Succeeded")) || is_phase(pod, STR("Failed")))
		return VAL_EMPTY;
	struct val status = OBJECT(a, F(observedGeneration, val_get(pod, metadata, generation)), F(phase, VAL_LIT("Failed")));
	if (orphaned)
		status = condition_patch(a, status, val_get(pod, status, conditions), disruption(a, pod, now));
	return OBJECT(a, F(metadata, OBJECT(a, F(uid, val_get(pod, metadata, uid)))), F(status, status));
}
