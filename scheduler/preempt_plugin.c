/*
 * The plugin DefaultPreemption. Looking is done at once, in the cycle; the victims are deleted by a fiber afterwards, and other pods need not wait
 * for that. As long as it runs, the pod does not enter the queue again (pre_enqueue): it would look for more victims. Whether it is over is told by
 * the last victim: when that is seen to be going, the fiber may just not have had its turn yet. Without the gate SchedulerAsyncPreemption the
 * victims are deleted in the cycle, before the pod is told its node.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "scheduler/extenders.h"
#include "scheduler/preempt.h"
#include "scheduler/scheduler_priv.h"

enum { PERCENTAGE = 10, ABSOLUTE = 100 };

struct preemption {                   /* the profile's */
	int64_t percentage, absolute;
	struct map running;           /* uid of the pod -> struct deed */
};

struct deed {                         /* being done for one pod */
	struct scheduler *scheduler;
	struct preemption *of;
	struct recorder *recorder;
	struct frozen *pod;
	str uid;                      /* in pod */
	int32_t priority;
	str node;                     /* in the arena */
	struct frozen **victims;
	size_t n;
	bool last;                    /* only the last victim is left to be deleted */
	struct arena arena;
};

static struct preemption *preemption_of(const struct cycle *c)
{
	return c->config[c->at];
}

/* ---- the deed ---- */

static void deed_free(struct deed *d)
{
	for (size_t i = 0; i < d->n; i++)
		frozen_unref(d->victims[i]);
	frozen_unref(d->pod);
	arena_done(&d->arena);
	free(d);
}

/* Gone already, or somebody else by now, is as good as deleted. */
static int gone_is_fine(int r, struct err *err)
{
	if (r != -ERR_NOT_FOUND && r != -ERR_CONFLICT)
		return r;
	err_clear(err);
	return 1;
}

/* (suspends) */
static int deed_delete(struct deed *d, struct val victim, struct err *err)
{
	struct client *client = d->scheduler->client;
	str namespace = val_str(victim, metadata, namespace), name = val_str(victim, metadata, name), uid = val_str(victim, metadata, uid);
	struct val patch = preempt_patch(&d->arena, victim, val_str(d->pod->val, spec, schedulerName), clock_wall_ns());
	bool inside = attempt_preempt(d->scheduler, uid);
	int r = 0;
	if (!inside && val_exists(patch))
		r = gone_is_fine(client_patch(client, TYPE(core_v1, Pod), namespace, name, CLIENT_PATCH_STRATEGIC, patch,
					      &(struct client_write_options){ .subresource = STR("status") }, NULL, err), err);
	if (!inside && r == 0)
		r = gone_is_fine(client_delete(client, TYPE(core_v1, Pod), namespace, name,
					       &(struct client_delete_options){ .grace_s = -1, .uid = uid }, err), err);
	if (r != 0)
		return MIN(r, 0);
	struct val about = OBJECT(&d->arena, F(kind, VAL_LIT("Pod")), F(namespace, VAL_STR(namespace)), F(name, VAL_STR(name)),
				  F(uid, VAL_STR(uid)), F(apiVersion, VAL_LIT("v1")), F(resourceVersion, val_get(victim, metadata, resourceVersion)));
	if (d->recorder)
		record(d->recorder, about, RECORD_NORMAL, "Preempted", "Preempted by pod " STR_FMT " on node " STR_FMT "%s", STR_ARG(d->uid),
		       STR_ARG(d->node), inside ? " (in kube-scheduler memory)." : "");
	return 0;
}

/* (suspends) Pods of lower priority that wait for the node look elsewhere. They are gathered first: the list changes while we wait. */
static int deed_clear_nominations(struct deed *d, struct err *err)
{
	struct scheduler *s = d->scheduler;
	uint32_t node = nodes_find(&s->nodes, d->node);
	struct val_builder pods = val_builder(&d->arena);
	int result = 0;
	for (struct nominated *n = node == UINT32_MAX ? NULL : nominations_at(&s->nominations, node); n; n = n->next)
		if (n->placed->priority < d->priority && val_str(n->placed->pod->val, status, nominatedNodeName).n)
			val_add_item(&pods, OBJECT(&d->arena,
				F(namespace, VAL_STR(arena_str(&d->arena, val_str(n->placed->pod->val, metadata, namespace)))),
				F(name, VAL_STR(arena_str(&d->arena, val_str(n->placed->pod->val, metadata, name))))));
	struct val patch = OBJECT(&d->arena, F(status, OBJECT(&d->arena, F(nominatedNodeName, VAL_NULL_VALUE))));
	VAL_EACH(p, val_end_list(&pods)) {
		int r = client_patch(s->client, TYPE(core_v1, Pod), val_str(*p, namespace), val_str(*p, name), CLIENT_PATCH_STRATEGIC, patch,
				     &(struct client_write_options){ .subresource = STR("status") }, NULL, err);
		result = r < 0 ? r : result;
	}
	return result;
}

/* (suspends) As in Kubernetes this does not stop it. */
static bool deed_try_clear(struct deed *d)
{
	struct err err = ERR_INIT;
	if (deed_clear_nominations(d, &err) == 0)
		return true;
	log_warn("nominations of pods with a lower priority could not be cleared", KV("node", d->node), KV("err", &err));
	return false;
}

/* (suspends) */
static int deed_delete_all(struct deed *d, struct err *err)
{
	int r = 0;
	for (size_t i = 0; i < d->n && r == 0; i++) {
		d->last = i + 1 == d->n;
		r = deed_delete(d, d->victims[i]->val, err);
	}
	return r;
}

static int deed_run(void *arg)
{
	struct deed *d = arg;
	struct scheduler *s = d->scheduler;
	struct err err = ERR_INIT;
	bool failed = !deed_try_clear(d);
	int r = deed_delete_all(d, &err);
	if (r < 0)
		log_warn("a pod could not be preempted", KV("node", d->node), KV("for", d->uid), KV("err", &err));
	map_remove(&d->of->running, d->uid);
	if (s->queue && r != -ERR_CANCELED) {
		if (r < 0 || failed) /* nothing may happen that would bring the pod back: it is tried again at once */
			sched_queue_event(s->queue, EV_POD_DELETE, VAL_EMPTY, VAL_EMPTY);
		/* All victims may have gone before the last call returned: no event follows then. */
		sched_queue_ask_gates_of(s->queue, d->uid);
	}
	if (s->queue)
		fiber_cond_signal(&s->less_work);
	deed_free(d);
	return 0;
}

/* (suspends) */
static enum verdict deed_now(struct cycle *c, struct deed *d)
{
	struct err err = ERR_INIT;
	int r = deed_delete_all(d, &err);
	if (r == 0)
		(void)deed_try_clear(d);
	else
		c->reason = arena_printf(c->arena, "preemption: %s", err.msg);
	deed_free(d);
	return r == 0 ? FIT : FAILED;
}

static enum verdict deed_start(struct cycle *c, struct deed *d)
{
	struct err err = ERR_INIT;
	if (fiber_group_spawn(&c->scheduler->work, deed_run, d, &err, "preempt") < 0) {
		c->reason = arena_printf(c->arena, "preemption: %s", err.msg);
		deed_free(d);
		return FAILED;
	}
	map_put(&d->of->running, d->uid, d);
	return FIT;
}

/* (suspends) Whoever is being deleted already is left alone. */
static enum verdict preempt_pods(struct cycle *c, const struct preempt_search *search, const struct preempt_victims *v)
{
	struct preemption *of = preemption_of(c);
	struct deed *d = mem_zalloc(sizeof(*d));
	*d = (struct deed){ .scheduler = c->scheduler, .of = of, .recorder = search->profile->recorder, .pod = frozen_ref(c->placed->pod),
			    .priority = c->placed->priority };
	d->uid = val_str(d->pod->val, metadata, uid);
	d->node = arena_str(&d->arena, word_str(c->nodes, c->nodes->name[v->node]));
	d->victims = ARENA_ARRAY(&d->arena, struct frozen *, v->n);
	for (size_t i = 0; i < v->n; i++)
		if (!val_has(v->pods[i]->pod->val, metadata, deletionTimestamp))
			d->victims[d->n++] = frozen_ref(v->pods[i]->pod);
	if (!d->n || map_get(&of->running, d->uid)) {
		deed_free(d);
		return FIT;
	}
	return c->scheduler->preempts_at_once ? deed_now(c, d) : deed_start(c, d);
}

/* ---- looking ---- */

/* Empty: it may. */
static str not_eligible(const struct cycle *c, struct val pod)
{
	str nominated = val_str(pod, status, nominatedNodeName);
	uint32_t node = nominated.n ? nodes_find(c->nodes, nominated) : UINT32_MAX;
	if (str_eq(val_str(pod, spec, preemptionPolicy), STR("Never")))
		return STR("not eligible due to preemptionPolicy=Never.");
	if (node == UINT32_MAX || cycle_verdict(c, node) == UNRESOLVABLE)
		return STR_NONE;
	for (uint32_t i = 0; i < c->nodes->n_pods[node]; i++) {
		const struct placed *p = c->nodes->pods[node][i];
		if (p->priority < c->placed->priority && pod_goes_by_preemption(p->pod->val))
			return STR("not eligible due to a terminating pod on the nominated node.");
	}
	return STR_NONE;
}

static enum verdict say(struct cycle *c, enum verdict v, str what)
{
	c->reason = arena_printf(c->arena, "preemption: " STR_FMT, STR_ARG(what));
	return v;
}

/* Budgets as they are now. The frozen objects stay until something suspends, which filters may do that want to know more than sums. */
static void find_budgets(struct preempt_search *search)
{
	struct informer *i = scheduler_informer(search->c->scheduler, TYPE(policy_v1, PodDisruptionBudget));
	struct val *all = ARENA_ARRAY(search->c->arena, struct val, informer_count(i) + 1);
	size_t n = 0, cap = informer_count(i);
	INFORMER_EACH(b, informer_each(i))
		if (n < cap)
			all[n++] = search->c->by_sums ? b->val : val_copy(search->c->arena, b->val);
	preempt_budgets(search, all, n);
}

static enum verdict preempt_post_filter(struct cycle *c, void *state, bool made, uint32_t *ret_node)
{
	struct scheduler *s = c->scheduler;
	unsigned self = c->at;
	(void)state, (void)made;
	s->counts.preemption_attempts++;
	str key = object_key(c->arena, c->pod);
	struct frozen *newest = s->pod_informer ? informer_get(s->pod_informer, key) : NULL;
	if (s->pod_informer && !newest)
		return say(c, FAILED, arena_printf(c->arena, "pod \"" STR_FMT "\" not found", STR_ARG(val_str(c->pod, metadata, name))));
	str why = not_eligible(c, newest ? newest->val : c->pod);
	if (why.n)
		return say(c, UNSCHEDULABLE, why);

	uint32_t n;
	const uint64_t *stuck = preempt_stuck(c, &n);
	struct preempt_search search = { .c = c, .profile = scheduler_profile(s, c->pod), .class = c->class };
	const struct preemption *of = preemption_of(c);
	struct preempt_found f;
	struct err err = ERR_INIT;
	if (n)
		find_budgets(&search);
	preempt_look(&search, stuck, n, preempt_enough(n, of->percentage, of->absolute), &f);
	c->at = self;
	if (!f.n) {
		if (f.error.n)
			return say(c, FAILED, f.error);
		c->unnominate = true;
		return say(c, UNSCHEDULABLE, preempt_why_none(&search, &f, n));
	}
	if (f.all) {
		if (extenders_preempt(s, c, f.all, &f.n, &err) < 0)
			return say(c, FAILED, err_str(&err));
		c->at = self;
		if (!f.n)
			return say(c, UNSCHEDULABLE, STR("no candidate node for preemption"));
		f.best = &f.all[preempt_choose(f.all, f.n)];
	}
	c->reason = STR_NONE;
	enum verdict v = preempt_pods(c, &search, f.best);
	if (v == FIT)
		*ret_node = f.best->node;
	return v;
}

/* ---- the queue ---- */

static enum verdict preempt_pre_enqueue(struct cycle *c)
{
	struct deed *d = map_get(&preemption_of(c)->running, val_str(c->pod, metadata, uid));
	if (!d)
		return FIT;
	if (d->last && c->scheduler->pod_informer) {
		struct frozen *victim = informer_get(c->scheduler->pod_informer, object_key(c->arena, d->victims[d->n - 1]->val));
		if (!victim || val_has(victim->val, metadata, deletionTimestamp))
			return FIT;
	}
	c->reason = STR("waiting for the preemption for this pod to be finished");
	return UNRESOLVABLE;
}

/* Pods that it holds back are let go by those plugins whose refusal was the reason for preempting. */
static bool preempt_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	(void)c, (void)pod, (void)event, (void)old, (void)new;
	return false;
}

static int64_t argument(struct val v, int64_t otherwise)
{
	return val_exists(v) ? val_as_int(v) : otherwise;
}

static int preempt_configure(struct val args, void **ret_config, struct err *err)
{
	int64_t percentage = argument(val_get(args, minCandidateNodesPercentage), PERCENTAGE);
	int64_t absolute = argument(val_get(args, minCandidateNodesAbsolute), ABSOLUTE);
	if (percentage < 0 || percentage > 100)
		return err_set(err, ERR_INVALID, "minCandidateNodesPercentage: Invalid value: %lld: not in valid range [0, 100]", (long long)percentage);
	if (absolute < 0)
		return err_set(err, ERR_INVALID, "minCandidateNodesAbsolute: Invalid value: %lld: not in valid range [0, inf)", (long long)absolute);
	if (!percentage && !absolute)
		return err_set(err, ERR_INVALID, "[minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute,"
			       " minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage]");
	struct preemption *p = mem_zalloc(sizeof(*p));
	p->percentage = percentage;
	p->absolute = absolute;
	map_init(&p->running);
	*ret_config = p;
	return 0;
}

/* All fibers of the scheduler have ended. */
static void preempt_config_free(void *config)
{
	struct preemption *p = config;
	if (p)
		map_done(&p->running);
	free(p);
}

const struct plugin plugin_default_preemption = {
	.name = "DefaultPreemption",
	.events = EV_POD_DELETE,
	.hint = preempt_hint,
	.pre_enqueue = preempt_pre_enqueue,
	.post_filter = preempt_post_filter,
	.configure = preempt_configure,
	.config_free = preempt_config_free,
};
