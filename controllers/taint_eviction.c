/*
 * Pods that do not tolerate a NoExecute taint of their node, or not for so long, are deleted. A key is a pod's. What was decided about a pod
 * is kept in memory only: after a restart the time that it tolerates begins anew, as in Kubernetes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/moment.h"
#include "controllers/taint_eviction_plan.h"
#include "controllers/taints.h"

/* A pod that something was decided about. */
struct decided {
	struct eviction eviction;
	size_t n_uid, n;
	char text[];                 /* uid, then key */
};

struct evictions {
	struct informer *nodes, *pods;
	struct map pods_decided;     /* by key */
};

static str decided_uid(const struct decided *d) { return str_span(d->text, d->n_uid); }

static void forget(struct evictions *s, str key) { free(map_remove(&s->pods_decided, key)); }

static void decide(struct evictions *s, str key, str uid, struct eviction e)
{
	struct decided *d;

	forget(s, key);
	if (e.state == EVICTION_NONE)
		return;
	d = mem_zalloc(sizeof *d + uid.n + key.n);
	*d = (struct decided){ .eviction = e, .n_uid = uid.n, .n = key.n };
	if (uid.n)
		memcpy(d->text, uid.p, uid.n);
	memcpy(d->text + uid.n, key.p, key.n);
	(void)map_put(&s->pods_decided, str_span(d->text + uid.n, d->n), d);
}

/* ---- doing it ---- */

static struct val reference(struct arena *a, str key)
{
	str namespace, name;

	controller_split(key, &namespace, &name);
	return OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Pod")), F(namespace, VAL_STR(namespace)), F(name, VAL_STR(name)));
}

static void tell_canceled(struct controller *c, struct arena *a, str key)
{
	controller_event(c, reference(a, key), false, "TaintManagerEviction", "Cancelling deletion of Pod " STR_FMT, STR_ARG(key));
}

static int mark(struct controller *c, struct arena *a, struct val pod, struct err *err)
{
	struct val condition = OBJECT(a, F(type, VAL_LIT("DisruptionTarget")), F(observedGeneration, val_get(pod, metadata, generation)),
				      F(status, VAL_LIT("True")), F(lastTransitionTime, time_now(a)), F(reason, VAL_LIT("DeletionByTaintManager")),
				      F(message, VAL_LIT("Taint manager: deleting due to NoExecute taint")));
	struct val status = condition_patch(a, VAL_EMPTY_OBJECT, val_get(pod, status, conditions), condition);
	struct val patch = OBJECT(a, F(metadata, OBJECT(a, F(uid, val_get(pod, metadata, uid)))), F(status, status));
	struct val old = condition_find(val_get(pod, status, conditions), "DisruptionTarget");

	if (str_eq(val_str(old, status), STR("True")) && str_eq(val_str(old, reason), STR("DeletionByTaintManager")))
		return 0;
	return client_patch(c->client, TYPE(core_v1, Pod), val_str(pod, metadata, namespace), val_str(pod, metadata, name), CLIENT_PATCH_STRATEGIC,
			    patch, &(struct client_write_options){ .subresource = STR("status") }, NULL, err);
}

static int evict(struct controller *c, struct arena *a, str key, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *pod = NULL;
	str namespace, name;

	controller_split(key, &namespace, &name);
	controller_event(c, reference(a, key), false, "TaintManagerEviction", "Marking for deletion Pod " STR_FMT, STR_ARG(key));
	int r = client_get(c->client, TYPE(core_v1, Pod), namespace, name, &pod, err);
	if (r == 0)
		r = mark(c, a, pod->val, err);
	if (r == 0)
		r = client_delete(c->client, TYPE(core_v1, Pod), namespace, name, NULL, err);
	if (r == -ERR_NOT_FOUND) {
		err_clear(err);
		r = 0;
	}
	return r;
}

/* ---- looking at a pod ---- */

static struct eviction eviction_of(struct evictions *s, str key, str uid)
{
	const struct decided *d = map_get(&s->pods_decided, key);

	return d && str_eq(decided_uid(d), uid) ? d->eviction : (struct eviction){ EVICTION_NONE, 0 };
}

static int taint_eviction_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct evictions *s = c->state;
	struct frozen *pod = informer_get(s->pods, key), *node;
	struct decided *d = map_get(&s->pods_decided, key);

	if (!pod) {
		if (d && d->eviction.state == EVICTION_DUE)
			tell_canceled(c, a, key);
		forget(s, key);
		return 0;
	}
	if (!val_str(pod->val, spec, nodeName).n || !(node = informer_get(s->nodes, val_str(pod->val, spec, nodeName))))
		return 0; /* whose node is gone is the pod collector's */
	int64_t now_ns = clock_now_ns();
	str uid = arena_str(a, val_str(pod->val, metadata, uid));
	struct eviction_plan plan = taint_eviction_plan(taints_no_execute(a, node->val), val_get(pod->val, spec, tolerations),
							eviction_of(s, key, uid), now_ns);
	if (plan.tell_canceled)
		tell_canceled(c, a, key);
	if (plan.evict) {
		int r = evict(c, a, key, err);
		if (r < 0)
			return r;
	} else if (plan.next.state == EVICTION_DUE) {
		controller_add_after(c, key, moment_wait_ms(plan.next.due_ns - now_ns));
	}
	if (informer_get(s->pods, key)) /* not gone meanwhile: then nobody would forget it */
		decide(s, key, uid, plan.next);
	else
		forget(s, key);
	return 0;
}

/* ---- being told ---- */

static void pod_changed(struct controller *c, struct frozen *old, struct frozen *pod)
{
	if (old && pod && str_eq(val_str(old->val, spec, nodeName), val_str(pod->val, spec, nodeName)) &&
	    val_equal(val_get(old->val, spec, tolerations), val_get(pod->val, spec, tolerations)))
		return;
	controller_key_self(c, old, pod);
}

static void node_changed(struct controller *c, struct frozen *old, struct frozen *node)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct evictions *s = c->state;

	if (!node || val_equal(taints_no_execute(&a, old ? old->val : VAL_EMPTY), taints_no_execute(&a, node->val)))
		return;
	INFORMER_EACH(pod, informer_each_indexed(s->pods, "node", val_str(node->val, metadata, name)))
		controller_add(c, object_key(&a, pod->val));
}

static void taint_eviction_stop(struct controller *c)
{
	struct evictions *s = c->state;
	struct map_iter it = map_iter(&s->pods_decided);
	struct decided *d;

	while ((d = map_next(&it, NULL)))
		free(d);
	map_done(&s->pods_decided);
	free(s);
}

static int taint_eviction_start(struct controller *c, struct err *err)
{
	struct evictions *s = mem_zalloc(sizeof *s);

	(void)err;
	c->state = s;
	c->sync = taint_eviction_sync;
	map_init(&s->pods_decided);
	s->nodes = controller_informer(c, TYPE(core_v1, Node));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	informer_index(s->pods, "node", informer_by_node);
	controller_watch(c, s->pods, pod_changed);
	controller_watch(c, s->nodes, node_changed);
	return 0;
}

const struct controller_kind controller_taint_eviction = { .name = "taint-eviction-controller", .start = taint_eviction_start, .workers = 8,
							   .stop = taint_eviction_stop, .account = "node-controller" };
