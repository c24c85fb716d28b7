/* A pod that found no node, or lost it: it waits again, and its event and condition say why. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "scheduler/scheduler_priv.h"

enum { NOTE_MAX = 1024 };

#define NOTE_END " ..."

struct val pod_reference(struct arena *a, struct val pod)
{
	struct val m = val_get(pod, metadata);

	return OBJECT(a, F(kind, VAL_LIT("Pod")), F(namespace, val_get(m, namespace)), F(name, val_get(m, name)), F(uid, val_get(m, uid)),
		      F(apiVersion, VAL_LIT("v1")), F(resourceVersion, val_get(m, resourceVersion)));
}

/* ---- telling the API server ---- */

struct telling {
	struct scheduler *scheduler;
	struct frozen *patch;         /* {metadata: {namespace, name}, body: the patch} */
};

static int tell(void *arg)
{
	struct telling *t = arg;
	struct scheduler *s = t->scheduler;
	struct err err = ERR_INIT;
	struct val v = t->patch->val;
	int r = client_patch(s->client, TYPE(core_v1, Pod), val_str(v, metadata, namespace), val_str(v, metadata, name), CLIENT_PATCH_STRATEGIC,
			     val_get(v, object), &(struct client_write_options){ .subresource = STR("status") }, NULL, &err);

	if (r < 0 && r != -ERR_CANCELED && r != -ERR_NOT_FOUND)
		log_warn("the condition of a pod could not be told", KV("pod", val_str(v, metadata, name)), KV("err", &err));
	frozen_unref(t->patch);
	free(t);
	fiber_cond_signal(&s->less_work);
	return r;
}

static struct val find_condition(struct val pod)
{
	VAL_EACH(c, val_get(pod, status, conditions))
		if (str_eq(val_str(*c, type), STR("PodScheduled")))
			return *c;
	return VAL_EMPTY;
}

/* VAL_NONE: the pod says so already. */
static struct val new_condition(struct arena *a, struct val pod, const char *reason, str message)
{
	struct val old = find_condition(pod), at, generation = val_get(pod, metadata, generation);
	char now[TIME_TEXT_MAX];
	bool same = str_eq(val_str(old, status), STR("False"));

	if (same && str_eq(val_str(old, reason), str_of(reason)) && str_eq(val_str(old, message), message))
		return VAL_EMPTY;
	at = same ? val_get(old, lastTransitionTime) : VAL_STR(arena_str(a, time_format((struct timestamp){ clock_wall_ns() / NS_PER_S, 0 }, now)));
	return OBJECT(a, F(type, VAL_LIT("PodScheduled")), F(observedGeneration, generation), F(status, VAL_LIT("False")), F(lastTransitionTime, at),
		      F(reason, VAL_STR(str_of(reason))), F(message, VAL_STR(message)));
}

static void tell_condition(struct scheduler *s, struct arena *a, struct val pod, const struct cycle_result *r, bool expected)
{
	struct val condition = new_condition(a, pod, r->unschedulable ? "Unschedulable" : "SchedulerError", r->message), status = VAL_EMPTY_OBJECT;
	struct err err = ERR_INIT;

	if (val_exists(condition))
		status = val_with(a, status, LIST(a, condition), conditions);
	/* What was expected the informer may not show yet. */
	if (r->nomination == NOMINATION_SET && (expected || !str_eq(r->nominated, val_str(pod, status, nominatedNodeName))))
		status = val_with(a, status, r->nominated.n ? VAL_STR(r->nominated) : VAL_NULL_VALUE, nominatedNodeName);
	if (!val_len(status))
		return;
	struct telling *t = mem_zalloc(sizeof(*t));
	t->scheduler = s;
	t->patch = val_freeze(OBJECT(a, F(metadata, OBJECT(a, F(namespace, val_get(pod, metadata, namespace)), F(name, val_get(pod, metadata, name)))),
				     F(object, OBJECT(a, F(status, status)))));
	if (fiber_group_spawn(&s->work, tell, t, &err, "condition") < 0) {
		log_warn("the condition of a pod is not told", KV("err", &err));
		frozen_unref(t->patch);
		free(t);
	}
}

/* ---- all of it ---- */

static void record_failure(struct attempt *a, struct val pod, str message)
{
	if (message.n > NOTE_MAX)
		message = arena_printf(&a->arena, STR_FMT NOTE_END, STR_ARG(str_head(message, NOTE_MAX - strlen(NOTE_END))));
	record(a->profile->recorder, pod_reference(&a->arena, pod), RECORD_WARNING, "FailedScheduling", STR_FMT, STR_ARG(message));
}

static void count(struct scheduler *s, const struct cycle_result *r)
{
	if (r->unschedulable)
		s->counts.unschedulable++;
	else
		s->counts.errors++;
}

void attempt_failed(struct scheduler *s, struct attempt *a, const struct cycle_result *r)
{
	struct frozen *pod = informer_get(s->pod_informer, object_key(&a->arena, a->pod->val));

	count(s, r);
	if (!r->unschedulable)
		log_warn("a pod could not be scheduled, trying again", KV("pod", val_str(a->pod->val, metadata, name)),
			 KV("namespace", val_str(a->pod->val, metadata, namespace)), KV("err", r->message));
	/* It is gone, another one has its name, or somebody has bound it: it does not wait any more. */
	if (!pod || val_str(pod->val, spec, nodeName).n || !str_eq(val_str(pod->val, metadata, uid), a->uid)) {
		sched_queue_done(s->queue, a->queued);
		attempt_free(s, a);
		return;
	}
	if (r->outcome == CYCLE_REFUSED)
		sched_queue_refused(s->queue, a->queued, r->refused_by);
	else
		sched_queue_again(s->queue, a->queued);
	if (r->nomination == NOMINATION_SET)
		nominations_set(&s->nominations, pod, r->nominated);
	else
		nominations_set(&s->nominations, pod, val_str(pod->val, status, nominatedNodeName));
	record_failure(a, pod->val, r->message);
	tell_condition(s, &a->arena, pod->val, r, a->expected);
	attempt_free(s, a);
}
