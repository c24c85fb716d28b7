/*
 * From a node to a bound pod: Permit to PostBind on a fiber of its own, while the next pod is looked after. The pod counts on its node from
 * Reserve on; if anything fails it leaves it again, others that may fit now are woken, and it is tried again.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "scheduler/extenders.h"
#include "scheduler/scheduler_priv.h"
#include "scheduler/storage.h"

enum { WORK_MAX = 1000 };

/* ---- attempts ---- */

struct attempt *attempt_new(struct scheduler *s, struct profile *p, struct queued *q)
{
	struct attempt *a = s->spare;

	if (a) {
		s->spare = a->next;
	} else {
		a = mem_zalloc(sizeof(*a));
		arena_init(&a->arena);
	}
	a->profile = p;
	a->queued = q;
	a->pod = frozen_ref(q->pod);
	a->uid = val_str(a->pod->val, metadata, uid);
	a->begin_ns = clock_now_ns();
	a->detached = true;
	a->expected = a->preempted = false;
	a->pre_binding = NULL;
	a->cycle = (struct cycle){ .scheduler = s, .nodes = &s->nodes, .arena = &a->arena, .pod = a->pod->val, .storage = s->storage,
				   .devices = s->devices };
	a->cycle.placed = placed_new(&s->nodes, a->pod);
	map_put(&s->attempts, a->uid, a);
	return a;
}

void attempt_free(struct scheduler *s, struct attempt *a)
{
	map_remove(&s->attempts, a->uid);
	if (a->detached)
		placed_free(a->cycle.placed);
	frozen_unref(TAKE(a->pod));
	arena_reset(&a->arena);
	a->next = s->spare;
	s->spare = a;
}

void attempt_assume(struct scheduler *s, struct attempt *a)
{
	struct placed *p = a->cycle.placed;

	a->detached = false;
	p->assumed = true;
	a->node_name = arena_str(&a->arena, word_str(&s->nodes, s->nodes.name[a->node]));
	map_put(&s->pods, val_str(p->pod->val, metadata, uid), p);
	nodes_place(&s->nodes, p, a->node);
	storage_pod_placed(s->storage, p->pod->val);
	nominations_remove(&s->nominations, a->uid);
}

void attempt_forget(struct scheduler *s, struct attempt *a)
{
	cycle_unreserve(&a->cycle, a->profile, a->node);
	/* The informer may have been faster: then the table has the pod as it is stored, or not at all. */
	if (!a->detached)
		scheduler_forget_pod(s, a->cycle.placed);
}

/* ---- binding ---- */

static int pre_bind(struct attempt *a, struct err *err)
{
	struct profile *p = a->profile;

	for (unsigned k = 0; k < p->n_order[POINT_PRE_BIND]; k++) {
		unsigned i = p->order[POINT_PRE_BIND][k];
		a->cycle.at = i;
		int r = p->plugins[i]->pre_bind(&a->cycle, a->node, err);
		if (r == -ERR_CANCELED && a->preempted)
			r = err_set(err, ERR_INTERNAL, "context canceled");
		if (r < 0)
			return err_wrap(err, r, "running PreBind plugin \"%s\"", p->plugins[i]->name);
	}
	return a->preempted ? err_set(err, ERR_INTERNAL, "preempted by DefaultPreemption") : 0;
}

static bool pre_bind_works(const struct attempt *a)
{
	const struct profile *p = a->profile;
	struct cycle c = a->cycle;

	for (unsigned k = 0; k < p->n_order[POINT_PRE_BIND]; k++) {
		c.at = p->order[POINT_PRE_BIND][k];
		if (p->plugins[c.at]->pre_bind_works(&c))
			return true;
	}
	return false;
}

/* (suspends) Others, such as autoscalers, learn which node the pod is about to get. Whoever binds it takes that back: the server, or not_bound. */
static void tell_expected(struct scheduler *s, struct attempt *a)
{
	struct val pod = a->pod->val, patch = OBJECT(&a->arena, F(status, OBJECT(&a->arena, F(nominatedNodeName, VAL_STR(a->node_name)))));
	struct err err = ERR_INIT;

	if (str_eq(val_str(pod, status, nominatedNodeName), a->node_name))
		return;
	a->expected = true;
	if (client_patch(s->client, TYPE(core_v1, Pod), val_str(pod, metadata, namespace), val_str(pod, metadata, name), CLIENT_PATCH_STRATEGIC, patch,
			 &(struct client_write_options){ .subresource = STR("status") }, NULL, &err) < 0)
		log_warn("the node that a pod is about to get could not be told; ignoring", KV("pod", val_str(pod, metadata, name)), KV("err", &err));
}

bool attempt_preempt(struct scheduler *s, str uid)
{
	struct attempt *a = map_get(&s->attempts, uid);

	if (!a || !a->pre_binding)
		return false;
	a->preempted = true;
	fiber_cancel(a->pre_binding);
	return true;
}

/* (suspends) */
static int prepare(struct scheduler *s, struct attempt *a, struct err *err)
{
	if (s->expects_nodes && pre_bind_works(a))
		tell_expected(s, a);
	a->pre_binding = fiber_self();
	int r = pre_bind(a, err);
	a->pre_binding = NULL;
	return r;
}

/* Others bind for some pods; else it is the API server's binding subresource. */
static int bind_pod(struct scheduler *s, struct attempt *a, struct err *err)
{
	struct val meta = val_get(a->pod->val, metadata);
	struct val binding = OBJECT(&a->arena,
		F(metadata, OBJECT(&a->arena, F(name, val_get(meta, name)), F(namespace, val_get(meta, namespace)), F(uid, val_get(meta, uid)))),
		F(target, OBJECT(&a->arena, F(kind, VAL_LIT("Node")), F(name, VAL_STR(a->node_name)))));
	int r = extenders_bind(s, a->pod->val, a->node_name, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = client_create(s->client, TYPE(core_v1, Pod), binding, &(struct client_write_options){ .subresource = STR("binding") }, NULL, err);
	return r < 0 ? err_wrap(err, r, "running Bind plugin \"DefaultBinder\"") : 0;
}

static void bound(struct scheduler *s, struct attempt *a)
{
	struct val pod = a->pod->val;
	int64_t took = clock_now_ns() - a->begin_ns;

	s->counts.scheduled++;
	s->counts.last_ns = took;
	s->counts.total_ns += took;
	record(a->profile->recorder, pod_reference(&a->arena, pod), RECORD_NORMAL, "Scheduled", "Successfully assigned " STR_FMT "/" STR_FMT " to " STR_FMT,
	       STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(val_str(pod, metadata, name)), STR_ARG(a->node_name));
	log_debug("pod is bound", KV("pod", val_str(pod, metadata, name)), KV("namespace", val_str(pod, metadata, namespace)), KV("node", a->node_name));
	sched_queue_done(s->queue, a->queued);
	attempt_free(s, a);
}

static void not_bound(struct scheduler *s, struct attempt *a, struct err *err)
{
	struct frozen *pod = frozen_ref(a->pod);
	struct cycle_result failed = { .outcome = CYCLE_ERROR, .nomination = NOMINATION_SET, .message = arena_str(&a->arena, err_str(err)) };

	attempt_forget(s, a);
	scheduler_tell_left(s, pod->val, a->node_name);
	attempt_failed(s, a, &failed);
	frozen_unref(pod);
}

/* (suspends) Nothing leaves the table while another pod looks at it; nor goes what has left it already. The result that counts. */
static int wait_for_idle(struct scheduler *s, struct attempt *a, int r)
{
	if (a->preempted) { /* canceled by another pod, not by the end of the scheduler */
		SHIELD_SCOPE();
		while (s->busy)
			(void)fiber_cond_wait(&s->idle, NULL);
		return r;
	}
	while ((r < 0 || a->detached) && r != -ERR_CANCELED && s->busy)
		if (fiber_cond_wait(&s->idle, NULL) < 0) {
			if (r == 0)
				break;
			r = -ERR_CANCELED;
		}
	return r;
}

static int run_binding(void *arg)
{
	struct attempt *a = arg;
	struct scheduler *s = a->cycle.scheduler;
	struct err err = ERR_INIT;
	int r = prepare(s, a, &err);

	if (r == 0)
		r = bind_pod(s, a, &err);
	r = wait_for_idle(s, a, r);
	if (r == 0)
		bound(s, a);
	else if (r != -ERR_CANCELED)
		not_bound(s, a, &err);
	else {
		/* The scheduler ends; the next one sees what has become of the pod. */
		attempt_forget(s, a);
		sched_queue_done(s->queue, a->queued);
		attempt_free(s, a);
	}
	fiber_cond_signal(&s->less_work);
	return r;
}

int scheduler_wait_for_room(struct scheduler *s, struct err *err)
{
	int r = 0;

	while (r == 0 && s->work.n >= WORK_MAX)
		r = fiber_cond_wait(&s->less_work, err);
	return r;
}

int attempt_bind(struct scheduler *s, struct attempt *a, struct err *err)
{
	struct err cause = ERR_INIT;
	int r = scheduler_wait_for_room(s, err);

	if (r == 0 && (r = fiber_group_spawn(&s->work, run_binding, a, &cause, "bind " STR_FMT, STR_ARG(val_str(a->pod->val, metadata, name)))) == 0)
		return 0;
	if (r != -ERR_CANCELED) {
		not_bound(s, a, &cause);
		return 0;
	}
	attempt_forget(s, a);
	sched_queue_done(s->queue, a->queued);
	attempt_free(s, a);
	return r;
}
