/*
 * Removes pods that nobody else removes: those on nodes that are gone, those that are deleted but on no node, those on nodes that were
 * declared out of service, and the oldest of those that are over when there are too many. Every 20 seconds.
 *
 * A node must be missing for 40 seconds before its pods go: informers of pods and nodes do not move together, and a node may be made anew.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/pod_gc_plan.h"

enum { PERIOD_MS = 20000, QUARANTINE_MS = 40000, TERMINATED_MAX = 12500 };

/* A node that pods are on and that is not there. */
struct missing {
	int64_t due_ns;               /* when it is asked for */
	bool wanted, gone;            /* there are pods of it; the server has none of that name */
	size_t n;
	char name[];
};

struct state {
	struct informer *pods, *nodes;
	struct map missing;
};

/* ---- nodes ---- */

static struct missing *missing_node(struct state *s, str name)
{
	struct missing *m = map_get(&s->missing, name);
	if (m)
		return m;
	m = mem_zalloc(sizeof *m + name.n);
	m->due_ns = clock_now_ns() + QUARANTINE_MS * NS_PER_MS;
	m->n = name.n;
	memcpy(m->name, name.p, name.n);
	(void)map_put(&s->missing, str_span(m->name, m->n), m);
	return m;
}

static void forget_node(struct state *s, struct missing *m)
{
	(void)map_remove(&s->missing, str_span(m->name, m->n));
	free(m);
}

/* Notes which nodes are missing now. */
static void look_for_missing(struct state *s)
{
	struct map_iter it = map_iter(&s->missing);
	for (struct missing *m; (m = map_next(&it, NULL));)
		m->wanted = false;
	INFORMER_EACH(pod, informer_each(s->pods)) {
		str node = val_str(pod->val, spec, nodeName);
		if (node.n && !informer_get(s->nodes, node))
			missing_node(s, node)->wanted = true;
	}
	it = map_iter(&s->missing);
	for (struct missing *m; (m = map_next(&it, NULL));)
		if (!m->wanted)
			forget_node(s, m);
}

/* (suspends) Asks the server for those that are missing for long enough. Nobody else changes the map. */
static int confirm_missing(struct controller *c, struct state *s, struct err *err)
{
	struct map_iter it = map_iter(&s->missing);
	for (struct missing *m; (m = map_next(&it, NULL));) {
		CLEANUP(frozen_unrefp) struct frozen *node = NULL;
		struct err why = ERR_INIT;
		if (clock_now_ns() < m->due_ns)
			continue;
		int r = client_get(c->client, TYPE(core_v1, Node), STR_NONE, str_span(m->name, m->n), &node, &why);
		if (r == -ERR_CANCELED)
			return err_set(err, why.code, "%s", why.msg);
		m->gone = r == -ERR_NOT_FOUND;
		if (r < 0 && !m->gone)
			log_warn("error while getting node", KV("node", str_span(m->name, m->n)), KV("err", &why));
	}
	return 0;
}

/* ---- pods ---- */

/* (suspends) Only a cancel is an error. */
static int remove_pod(struct controller *c, struct val pod, bool orphaned, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct client_write_options status = { .subresource = STR("status"), .reply = TYPE(core_v1, Pod) };
	const struct client_delete_options now = { .grace_s = 0 };
	str namespace = val_str(pod, metadata, namespace), name = val_str(pod, metadata, name);
	struct val patch = pod_gc_patch(&a, pod, orphaned, time_now(&a));
	struct err why = ERR_INIT;
	int r = 0;
	log_info("PodGC is force deleting Pod", KV("namespace", namespace), KV("name", name));
	if (val_exists(patch))
		r = client_patch(c->client, TYPE(core_v1, Pod), namespace, name, CLIENT_PATCH_STRATEGIC, patch, &status, NULL, &why);
	if (r == 0)
		r = client_delete(c->client, TYPE(core_v1, Pod), namespace, name, &now, &why);
	if (r == -ERR_CANCELED)
		return err_set(err, why.code, "%s", why.msg);
	if (r < 0 && r != -ERR_NOT_FOUND)
		log_warn("PodGC failed to delete a pod", KV("namespace", namespace), KV("name", name), KV("err", &why));
	return 0;
}

/* Pods that are over, with a reference to each. */
struct over {
	struct frozen **pods;
	size_t n, cap;
};

static void over_add(struct over *o, struct frozen *pod)
{
	if (o->n == o->cap) {
		o->cap = o->cap ? 2 * o->cap : 256;
		o->pods = mem_resize(o->pods, o->cap * sizeof(struct frozen *));
	}
	o->pods[o->n++] = pod;
}

/* (suspends) */
static int remove_oldest(struct controller *c, struct over *o, struct err *err)
{
	size_t max = c->o->terminated_pod_gc_threshold ? (size_t)MAX(c->o->terminated_pod_gc_threshold, 0) : TERMINATED_MAX;
	int r = 0;
	if (!max || o->n <= max)
		return 0;
	pod_gc_sort(o->pods, o->n);
	for (size_t i = 0; i < o->n - max && r == 0; i++)
		r = remove_pod(c, o->pods[i]->val, false, err);
	return r;
}

/* (suspends) */
static int remove_useless(struct controller *c, struct state *s, struct over *o, struct err *err)
{
	int r = 0;
	INFORMER_EACH(pod, informer_each(s->pods)) {
		str name = val_str(pod->val, spec, nodeName);
		const struct frozen *node = name.n ? informer_get(s->nodes, name) : NULL;
		const struct missing *m = name.n && !node ? map_get(&s->missing, name) : NULL;
		enum pod_gc_why why = pod_gc_judge(pod->val, node ? node->val : VAL_EMPTY, m && m->gone);
		if (why == POD_GC_TERMINATED)
			over_add(o, frozen_ref(pod));
		else if (why != POD_GC_STAYS && r == 0)
			r = remove_pod(c, pod->val, why == POD_GC_ORPHANED, err);
	}
	return r;
}

/* (suspends) */
static int collect(struct controller *c, struct state *s, struct err *err)
{
	struct over over = { 0 };
	look_for_missing(s);
	int r = confirm_missing(c, s, err);
	if (r == 0)
		r = remove_useless(c, s, &over, err);
	if (r == 0)
		r = remove_oldest(c, &over, err);
	for (size_t i = 0; i < over.n; i++)
		frozen_unref(over.pods[i]);
	free(over.pods);
	return r;
}

static int run(struct controller *c, struct err *err)
{
	struct state *s = c->state;
	for (;;) {
		int r = informer_synced(s->pods) && informer_synced(s->nodes) ? collect(c, s, err) : 0;
		if (r < 0 || (r = fiber_sleep_ms(PERIOD_MS, err)) < 0)
			return r;
	}
}

static int start(struct controller *c, struct err *err)
{
	struct state *s = mem_zalloc(sizeof *s);
	(void)err;
	map_init(&s->missing);
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	s->nodes = controller_informer(c, TYPE(core_v1, Node));
	c->state = s;
	c->run = run;
	return 0;
}

static void stop(struct controller *c)
{
	struct state *s = c->state;
	struct map_iter it = map_iter(&s->missing);
	for (struct missing *m; (m = map_next(&it, NULL));)
		free(m);
	map_done(&s->missing);
	free(s);
}

const struct controller_kind controller_pod_gc = {
	.name = "pod-garbage-collector-controller", .start = start, .stop = stop, .account = "pod-garbage-collector",
};
