#include "kubectl/pods.h"

#include <stdio.h>

#include "base/clock.h"
#include "codec/types.h"
#include "kubectl/watch.h"
#include "machinery/conditions.h"
#include "machinery/selector.h"
#include "net/url.h"

#define DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"

/* ---- objects ---- */

int ktl_named_object(struct ktl *k, struct ktl_texts args, struct ktl_info *ret)
{
	struct ktl_builder b = { .args = args, .one_type = true };
	const char *full[2] = { "pods" };
	struct ktl_infos infos;
	if (ktl_namespace(k, &b.namespace, NULL) < 0)
		return -1;
	if (args.n == 1 && !strchr(args.v[0], '/')) {
		full[1] = args.v[0];
		b.args = (struct ktl_texts){ full, 2 };
	}
	if (ktl_build(k, &b, &infos) < 0)
		return -1;
	if (infos.n != 1)
		return ktl_fail(k, "expected a resource");
	*ret = infos.v[0];
	return 0;
}

/* ---- pods ---- */

/* Since when it is ready; empty: it is not. */
static str ready_since(struct val pod)
{
	return pod_is_ready(pod) ? val_str(condition_find(val_get(pod, status, conditions), "Ready"), lastTransitionTime) : STR_NONE;
}

/* One that has ended has logs, but nothing can be run there. */
static int phase_rank(struct val pod, bool logs)
{
	str phase = val_str(pod, status, phase);
	return str_eq(phase, STR("Running")) ? 0 : str_eq(phase, STR("Unknown")) ? 1 : str_eq(phase, STR("Pending")) || !logs ? 2 : 0;
}

static int64_t restarts(struct val pod)
{
	int64_t most = 0;
	VAL_EACH(c, val_get(pod, status, containerStatuses))
		most = MAX(most, val_int(*c, restartCount));
	return most;
}

/* As kubectl: one that has a node, runs, is ready, is not being deleted (which logs do not mind), is ready for longer, is older. */
static int compare(struct val x, struct val y, bool logs)
{
	bool x_node = val_str(x, spec, nodeName).n, y_node = val_str(y, spec, nodeName).n;
	if (x_node != y_node)
		return x_node ? -1 : 1;
	if (phase_rank(x, logs) != phase_rank(y, logs))
		return phase_rank(x, logs) - phase_rank(y, logs);
	if (pod_is_ready(x) != pod_is_ready(y))
		return pod_is_ready(x) ? -1 : 1;
	str x_deleted = val_str(x, metadata, deletionTimestamp), y_deleted = val_str(y, metadata, deletionTimestamp);
	if (!logs && (x_deleted.n == 0) != (y_deleted.n == 0))
		return x_deleted.n ? 1 : -1;
	int r = logs ? 0 : str_cmp(y_deleted, x_deleted);
	if (r == 0)
		r = str_cmp(ready_since(x), ready_since(y));
	if (r == 0 && restarts(x) != restarts(y))
		return (restarts(x) > restarts(y)) == logs ? -1 : 1;
	if (r == 0)
		r = str_cmp(val_str(x, metadata, creationTimestamp), val_str(y, metadata, creationTimestamp));
	return r ? r : str_cmp(val_str(x, metadata, name), val_str(y, metadata, name));
}

static int better_for_logs(const void *x, const void *y) { return compare(*(const struct val *)x, *(const struct val *)y, true); }
static int better_for_sessions(const void *x, const void *y) { return compare(*(const struct val *)x, *(const struct val *)y, false); }

/* The selector of what makes pods; false: it makes none. */
static bool selector_of(struct ktl *k, struct val object, str *ret)
{
	static const char *const kinds[] = { "ReplicaSet", "StatefulSet", "DaemonSet", "Deployment", "Job" };
	struct val wanted = val_get(object, spec, selector);
	struct selector s;
	str kind = val_str(object, kind);
	if (str_eq(kind, STR("Service")) || str_eq(kind, STR("ReplicationController"))) {
		s = selector_of_labels(&k->arena, wanted);
		*ret = selector_text(&k->arena, &s);
		return val_len(wanted) > 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kind, str_of(kinds[i])) && selector_of_object(&k->arena, wanted, &s, NULL) == 0) {
			*ret = selector_text(&k->arena, &s);
			return true;
		}
	return false;
}

/* (suspends) The first one that comes. */
static int wait_for_pod(struct ktl *k, const struct ktl_kind *kind, str namespace, str selector, int64_t timeout_ns, struct val *ret)
{
	CLEANUP(ktl_watch_freep) struct ktl_watch *w = NULL;
	CLEANUP(buf_done) struct buf q = BUF_INIT(1 << 16);
	struct val object;
	bool timeout;
	str type;
	url_query_add(&q, STR("labelSelector"), selector);
	if (ktl_watch_open(k, kind, namespace, STR_NONE, buf_str(&q), STR_NONE, STR_NONE, &w) < 0)
		return -1;
	int r = ktl_watch_next(k, w, timeout_ns / NS_PER_MS, &timeout, &type, &object);
	if (r != 1)
		return r < 0 ? -1 : ktl_fail(k, "timed out waiting for the condition");
	*ret = LIST(&k->arena, val_copy(&k->arena, object));
	return 0;
}

int ktl_pods_of(struct ktl *k, const struct ktl_info *object, int64_t timeout_ns, bool logs, const char *doing, struct val *ret)
{
	const struct ktl_kind *pods = ktl_kind_of_type(k, TYPE(core_v1, Pod));
	str selector;
	if (object->kind == pods) {
		*ret = LIST(&k->arena, object->object);
		return 0;
	}
	if (!selector_of(k, object->object, &selector))
		return ktl_fail(k, "%s *v1." STR_FMT ": selector for *v1." STR_FMT " not implemented", doing, STR_ARG(object->kind->kind),
				STR_ARG(object->kind->kind));
	if (ktl_list(k, pods, object->namespace, selector, STR_NONE, ret) < 0)
		return -1;
	if (!val_len(*ret) && wait_for_pod(k, pods, object->namespace, selector, timeout_ns, ret) < 0)
		return -1;
	*ret = ktl_sorted_list(k, *ret, logs ? better_for_logs : better_for_sessions);
	return 0;
}

/* ---- containers ---- */

/* The container of that name, of any kind; VAL_NONE: there is none. */
static struct val find_container(struct val pod, str name)
{
	struct val spec = val_get(pod, spec), lists[] = { val_get(spec, containers), val_get(spec, initContainers), val_get(spec, ephemeralContainers) };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			if (str_eq(val_str(*c, name), name))
				return *c;
	return VAL_EMPTY;
}

static void add_names(struct buf *b, struct val list, const char *kind)
{
	VAL_EACH(c, list)
		buf_addf(b, "%s" STR_FMT "%s", b->n ? ", " : "", STR_ARG(val_str(*c, name)), kind);
}

/* "main, side, init (init)" */
static str container_names(struct ktl *k, struct val pod)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	add_names(&b, val_get(pod, spec, containers), "");
	add_names(&b, val_get(pod, spec, ephemeralContainers), " (ephem)");
	add_names(&b, val_get(pod, spec, initContainers), " (init)");
	return arena_str(&k->arena, buf_str(&b));
}

int ktl_choose_container(struct ktl *k, struct val pod, str named, bool quiet, struct val *ret)
{
	struct val spec = val_get(pod, spec), containers = val_get(spec, containers);
	if (!named.n)
		named = val_as_str(val_find(val_get(pod, metadata, annotations), STR(DEFAULT_CONTAINER)));
	*ret = named.n ? find_container(pod, named) : val_at(containers, 0);
	if (!val_exists(*ret))
		return ktl_fail(k, "container " STR_FMT " is not valid for pod " STR_FMT " out of: " STR_FMT, STR_ARG(named),
				STR_ARG(val_str(pod, metadata, name)), STR_ARG(container_names(k, pod)));
	bool several = val_len(containers) > 1 || val_len(val_get(spec, initContainers)) || val_len(val_get(spec, ephemeralContainers));
	if (!named.n && several && !quiet)
		fprintf(stderr, "Defaulted container " STR_FMT " out of: " STR_FMT "\n", STR_ARG(ktl_quote(k, val_str(*ret, name))),
			STR_ARG(container_names(k, pod)));
	return 0;
}
