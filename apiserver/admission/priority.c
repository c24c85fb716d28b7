/* Priority: a pod's number follows from its class, or from the one that is marked as the default. */
#include "apiserver/admission/plugins.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "codec/atoms.h"

/* The class that is the default: of several the one with the lowest value, as Kubernetes chooses. */
static struct object *default_class(struct request *q)
{
	struct kind *kind = kinds_find(&q->server->kinds, STR("scheduling.k8s.io"), STR("priorityclasses"));
	struct object *best = NULL, *o;
	struct omap_iter it;
	if (!kind)
		return NULL;
	omap_seek(&it, kind->objects, STR(""));
	while ((o = omap_next(&it, NULL)))
		if (val_bool(o->val, globalDefault) && (!best || val_int(o->val, value) < val_int(best->val, value)))
			best = o;
	return best;
}

static int set_priority(struct request *q, struct val pod, struct err *err)
{
	struct arena *a = q->arena;
	str name = val_str(pod, spec, priorityClassName), policy = STR("PreemptLowerPriority");
	struct object *class = NULL;
	int r = name.n ? admission_find(q, STR("scheduling.k8s.io"), STR("priorityclasses"), name, &class, err) : 0;
	if (r < 0)
		return r;
	if (!name.n)
		class = default_class(q);
	if (name.n && !class)
		return admission_forbid(q, "no PriorityClass with name " STR_FMT " was found", STR_ARG(name));
	int64_t value = class ? val_int(class->val, value) : 0;
	if (class && val_str(class->val, preemptionPolicy).n)
		policy = arena_str(a, val_str(class->val, preemptionPolicy));
	struct val given = val_get(pod, spec, priority);
	str given_policy = val_str(pod, spec, preemptionPolicy);
	if (val_exists(given) && val_as_int(given) != value)
		return admission_forbid(q,
					"the integer value of priority (%lld) must not be provided in pod spec; priority admission "
					"controller computed %lld from the given PriorityClass name",
					(long long)val_as_int(given), (long long)value);
	if (given_policy.n && !str_eq(given_policy, policy))
		return admission_forbid(q,
					"the string value of PreemptionPolicy (" STR_FMT ") must not be provided in pod spec; priority "
					"admission controller computed " STR_FMT " from the given PriorityClass name",
					STR_ARG(given_policy), STR_ARG(policy));
	if (class)
		pod = val_with(a, pod, val_copy(a, val_get(class->val, metadata, name)), spec, priorityClassName);
	pod = val_with(a, pod, val_of_int(value), spec, priority);
	q->object = val_with(a, pod, val_of_str(policy), spec, preemptionPolicy);
	return 0;
}

/* An update that leaves them out means the ones that were. */
static void keep_priority(struct request *q)
{
	if (!val_has(q->object, spec, priority) && val_has(q->old, spec, priority))
		q->object = val_with(q->arena, q->object, val_get(q->old, spec, priority), spec, priority);
	if (!val_has(q->object, spec, preemptionPolicy) && val_has(q->old, spec, preemptionPolicy))
		q->object = val_with(q->arena, q->object, val_get(q->old, spec, preemptionPolicy), spec, preemptionPolicy);
}

static int mutate(struct request *q, struct err *err)
{
	if (!admits(q, STR(""), STR("pods")) || !val_exists(q->object))
		return 0;
	if (!q->current)
		return set_priority(q, q->object, err);
	keep_priority(q);
	return 0;
}

static int validate(struct request *q, struct err *err)
{
	(void)err;
	if (!admits(q, STR("scheduling.k8s.io"), STR("priorityclasses")) || !val_bool(q->object, globalDefault))
		return 0;
	struct object *other = default_class(q);
	if (!other || (q->current && str_eq(other->key, val_str(q->object, metadata, name))))
		return 0;
	return admission_forbid(q, "PriorityClass " STR_FMT " is already marked as default. Only one default can exist",
				STR_ARG(other->key));
}

const struct admission_plugin admission_priority = { .name = "Priority", .mutate = mutate, .validate = validate };
