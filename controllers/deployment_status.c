/*
 * What a deployment tells: numbers, the conditions Available, Progressing and ReplicaFailure. Progress is what can be seen between the last
 * status and this one; without any for longer than the deadline the roll-out counts as failed, though it goes on.
 */
#include "base/clock.h"
#include "codec/atoms.h"
#include "controllers/controller.h"
#include "controllers/deployment_plan_priv.h"
#include "controllers/moment.h"

/* ---- conditions ---- */

bool deployment_has_deadline(struct val d)
{
	struct val deadline = val_get(d, spec, progressDeadlineSeconds);
	return val_exists(deadline) && val_as_int(deadline) != INT32_MAX;
}

struct val deployment_condition(struct val d, const char *type) { return condition_find(val_get(d, status, conditions), type); }

static struct val condition_of(struct planning *p, const char *type, const char *status, const char *reason, str message)
{
	return OBJECT(p->arena, F(type, VAL_STR(str_of(type))), F(status, VAL_STR(str_of(status))), F(lastUpdateTime, p->now),
		      F(lastTransitionTime, p->now), F(reason, VAL_STR(str_of(reason))), F(message, VAL_STR(message)));
}

/* As SetDeploymentCondition: the one that changes goes to the end. */
static struct val put_condition(struct arena *a, struct val conditions, struct val condition)
{
	str type = val_str(condition, type);
	struct val_builder list = val_builder(a);

	VAL_EACH(c, conditions) {
		if (!str_eq(val_str(*c, type), type)) {
			val_add_item(&list, *c);
			continue;
		}
		bool same = str_eq(val_str(*c, status), val_str(condition, status));
		if (same && str_eq(val_str(*c, reason), val_str(condition, reason)))
			return conditions;
		if (same)
			condition = val_with(a, condition, val_get(*c, lastTransitionTime), lastTransitionTime);
	}
	val_add_item(&list, condition);
	return val_end_list(&list);
}

void deployment_set_condition(struct planning *p, const char *type, const char *status, const char *reason, str message)
{
	struct val conditions = put_condition(p->arena, val_get(p->d, status, conditions), condition_of(p, type, status, reason, message));
	p->d = val_with(p->arena, p->d, conditions, status, conditions);
}

static struct val without(struct planning *p, struct val status, const char *type)
{
	struct val rest = condition_remove(p->arena, val_get(status, conditions), type);
	return val_with(p->arena, status, val_len(rest) ? rest : VAL_EMPTY, conditions);
}

static struct val with(struct planning *p, struct val status, struct val condition)
{
	return val_with(p->arena, status, put_condition(p->arena, val_get(status, conditions), condition), conditions);
}

/* ---- numbers ---- */

static struct val number(int64_t n) { return n > 0 ? val_of_int(n) : VAL_EMPTY; }

/* VAL_NONE when a set has been seen to by a controller that does not tell how many. */
static struct val terminating(const struct planning *p)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct val status = val_get(p->sets[i].set, status), n = val_get(status, terminatingReplicas);
		if (!val_exists(n) && val_int(status, observedGeneration))
			return VAL_EMPTY;
		sum += val_as_int(n);
	}
	return val_of_int(sum);
}

static struct val new_status(struct planning *p)
{
	int64_t replicas = 0, actual = 0, ready = 0, available = 0;

	for (size_t i = 0; i < p->n; i++) {
		replicas += p->sets[i].to;
		actual += p->sets[i].actual;
		ready += p->sets[i].ready;
		available += p->sets[i].available;
	}
	struct val status = OBJECT(p->arena, F(observedGeneration, number(val_int(p->d, metadata, generation))), F(replicas, number(actual)),
				   F(updatedReplicas, number(p->fresh ? p->fresh->actual : 0)), F(readyReplicas, number(ready)),
				   F(availableReplicas, number(available)), F(unavailableReplicas, number(replicas - available)),
				   F(terminatingReplicas, terminating(p)), F(conditions, val_get(p->d, status, conditions)),
				   F(collisionCount, val_get(p->d, status, collisionCount)));
	if (available >= p->replicas - p->max_unavailable)
		return with(p, status, condition_of(p, "Available", "True", "MinimumReplicasAvailable", STR("Deployment has minimum availability.")));
	return with(p, status, condition_of(p, "Available", "False", "MinimumReplicasUnavailable",
					    STR("Deployment does not have minimum availability.")));
}

/* Into the plan, if it differs from what the server has. True: it does. */
static bool tell(struct planning *p, struct val status)
{
	struct val d = p->seen->deployment;

	if (val_equal(val_get(d, status), status) && val_equal(val_get(d, metadata, annotations), val_get(p->d, metadata, annotations)))
		return false;
	p->plan->told = val_with(p->arena, p->d, status, status);
	return true;
}

void deployment_tell_status(struct planning *p) { (void)tell(p, new_status(p)); }

/* ---- progress ---- */

bool deployment_is_complete(struct val d, struct val status)
{
	int64_t replicas = val_int(d, spec, replicas);

	return val_int(status, updatedReplicas) == replicas && val_int(status, replicas) == replicas && val_int(status, availableReplicas) == replicas &&
	       val_int(status, observedGeneration) >= val_int(d, metadata, generation);
}

static bool is_progressing(struct val old, struct val status)
{
	return val_int(status, updatedReplicas) > val_int(old, updatedReplicas) ||
	       val_int(status, replicas) - val_int(status, updatedReplicas) < val_int(old, replicas) - val_int(old, updatedReplicas) ||
	       val_int(status, readyReplicas) > val_int(old, readyReplicas) || val_int(status, availableReplicas) > val_int(old, availableReplicas);
}

static int64_t deadline_ns(const struct planning *p, struct val condition)
{
	return moment_of(val_get(condition, lastUpdateTime)) + val_int(p->d, spec, progressDeadlineSeconds) * NS_PER_S;
}

static bool is_late(const struct planning *p, struct val condition)
{
	str reason = val_str(condition, reason);

	if (!val_exists(condition) || str_eq(reason, STR("NewReplicaSetAvailable")))
		return false;
	return str_eq(reason, STR("ProgressDeadlineExceeded")) || deadline_ns(p, condition) < p->seen->now_ns;
}

static str about(struct planning *p, const char *what)
{
	struct val object = p->fresh ? p->fresh->set : p->d;
	return arena_printf(p->arena, "%s \"" STR_FMT "\" %s", p->fresh ? "ReplicaSet" : "Deployment", STR_ARG(val_str(object, metadata, name)), what);
}

static struct val with_progress(struct planning *p, struct val status)
{
	struct val current = deployment_condition(p->d, "Progressing");

	if (val_int(status, replicas) == val_int(status, updatedReplicas) && str_eq(val_str(current, reason), STR("NewReplicaSetAvailable")))
		return status;
	if (deployment_is_complete(p->d, status))
		return with(p, status, condition_of(p, "Progressing", "True", "NewReplicaSetAvailable", about(p, "has successfully progressed.")));
	if (is_progressing(val_get(p->seen->deployment, status), status)) {
		struct val condition = condition_of(p, "Progressing", "True", "ReplicaSetUpdated", about(p, "is progressing."));
		/* Also without a change of status and reason: lastUpdateTime counts. */
		if (str_eq(val_str(current, status), STR("True")))
			condition = val_with(p->arena, condition, val_get(current, lastTransitionTime), lastTransitionTime);
		return with(p, without(p, status, "Progressing"), condition);
	}
	if (is_late(p, condition_find(val_get(status, conditions), "Progressing")))
		return with(p, status, condition_of(p, "Progressing", "False", "ProgressDeadlineExceeded", about(p, "has timed out progressing.")));
	return status;
}

/* That of the new set before that of others. */
static struct val replica_failure(struct planning *p)
{
	struct val failure = p->fresh ? condition_find(val_get(p->fresh->set, status, conditions), "ReplicaFailure") : VAL_EMPTY;

	for (size_t i = 0; i < p->n && !val_exists(failure); i++)
		failure = condition_find(val_get(p->sets[i].set, status, conditions), "ReplicaFailure");
	return val_exists(failure) ? val_with(p->arena, failure, val_get(failure, lastTransitionTime), lastUpdateTime) : VAL_EMPTY;
}

/* When a roll-out that stands still is to be looked at again; a second later, so that it is late then. */
static void look_again(struct planning *p, struct val status)
{
	struct val current = deployment_condition(p->seen->deployment, "Progressing");

	if (!deployment_has_deadline(p->d) || !val_exists(current) || deployment_is_complete(p->d, status) ||
	    str_eq(val_str(current, reason), STR("ProgressDeadlineExceeded")))
		return;
	p->plan->again_ms = moment_wait_ms(deadline_ns(p, current) - p->seen->now_ns) + 1000;
}

void deployment_tell_progress(struct planning *p)
{
	struct val status = new_status(p), failure = replica_failure(p);

	if (!deployment_has_deadline(p->d))
		status = without(p, status, "Progressing");
	else
		status = with_progress(p, status);
	status = val_exists(failure) ? with(p, status, failure) : without(p, status, "ReplicaFailure");
	if (!tell(p, status))
		look_again(p, status);
}

/* ---- when the new set cannot be ---- */

struct val deployment_failed(struct arena *a, struct val deployment, str name, const char *failure, int64_t now_ns)
{
	struct planning p = { .arena = a, .d = deployment, .now = moment_time(a, now_ns) };

	if (deployment_has_deadline(deployment))
		deployment_set_condition(&p, "Progressing", "False", "ReplicaSetCreateError",
			      arena_printf(a, "Failed to create new replica set \"" STR_FMT "\": %s", STR_ARG(name), failure));
	return p.d;
}

struct val deployment_collided(struct arena *a, struct val deployment)
{
	return val_with(a, deployment, val_of_int(val_int(deployment, status, collisionCount) + 1), status, collisionCount);
}
