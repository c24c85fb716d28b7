/*
 * pods/eviction: a deletion that asks the pod's disruption budget first. The budget's controller says how many pods may go;
 * an eviction takes one of them, by a write that fails when somebody else was faster, and leaves a note so that the controller
 * counts the pod as gone before it is.
 */
#include "apiserver/admission/admission.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/change.h"
#include "apiserver/meta.h"
#include "apiserver/pod.h"
#include "apiserver/resets.h"
#include "apiserver/subresource.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/conditions.h"

enum { ATTEMPTS_MAX = 20, RETRY_MS = 500, DISRUPTED_PODS_MAX = 2000, RETRY_AFTER_S = 10 };

#define BUDGET_VIOLATED "Cannot evict pod as it would violate the pod's disruption budget."

struct eviction {
	struct val options;           /* DeleteOptions as the client gave them */
	str budget;                   /* name of the budget that was asked, if any */
	str key;                      /* of the pod */
};

/* ---- the budget ---- */

static void add_cause(struct request *q, str message)
{
	struct val cause = OBJECT(q->arena, F(reason, VAL_LIT("DisruptionBudget")), F(message, val_of_str(message)));
	q->failure = val_with(q->arena, q->failure, LIST(q->arena, cause), details, causes);
}

static int too_many(struct request *q, int retry_after_s, str cause)
{
	struct val details = retry_after_s ? OBJECT(q->arena, F(causes, VAL_EMPTY_LIST),
						    F(retryAfterSeconds, val_of_int(retry_after_s))) :
					     VAL_EMPTY_OBJECT;
	int r = request_fail(q, ERR_TOO_MANY_REQUESTS, details, BUDGET_VIOLATED);
	add_cause(q, cause);
	return r;
}

static int still_processed(struct request *q, str budget)
{
	return too_many(q, RETRY_AFTER_S, arena_printf(q->arena,
						       "The disruption budget " STR_FMT " is still being processed by the server.",
						       STR_ARG(budget)));
}

static int forbidden(struct request *q, str budget, const char *why, const char *cause)
{
	int r = fail_forbidden(q, STR("policy"), STR("poddisruptionbudget"), budget, "%s", why);
	add_cause(q, arena_printf(q->arena, "The disruption budget " STR_FMT " does not allow evicting pods currently: %s",
				  STR_ARG(budget), cause));
	return r;
}

static struct val condition_of(struct val budget)
{
	VAL_EACH(c, val_get(budget, status, conditions))
		if (str_eq(val_str(*c, type), STR("DisruptionAllowed")))
			return *c;
	return VAL_EMPTY;
}

static int none_allowed(struct request *q, struct val budget)
{
	struct val condition = condition_of(budget);
	str name = val_str(budget, metadata, name), message = val_str(condition, message), reason = val_str(condition, reason);
	int64_t has = val_int(budget, status, currentHealthy), needs = val_int(budget, status, desiredHealthy);
	bool says = str_eq(val_str(condition, status), STR("False")) && message.n;
	str cause;
	if (says && str_eq(reason, STR("SyncFailed")))
		cause = arena_printf(q->arena,
				     "The disruption budget " STR_FMT " does not allow evicting pods currently because it failed sync: "
				     STR_FMT, STR_ARG(name), STR_ARG(message));
	else if (has <= needs)
		cause = arena_printf(q->arena,
				     "The disruption budget " STR_FMT " needs %lld healthy pods and has %lld currently",
				     STR_ARG(name), (long long)needs, (long long)has);
	else if (says)
		cause = arena_printf(q->arena,
				     "The disruption budget " STR_FMT " does not allow evicting pods currently (" STR_FMT "): " STR_FMT,
				     STR_ARG(name), STR_ARG(reason), STR_ARG(message));
	else
		cause = arena_printf(q->arena, "The disruption budget " STR_FMT " does not allow evicting pods currently",
				     STR_ARG(name));
	return too_many(q, 0, cause);
}

/* This server writes the budget's status as one of its users. */
static struct val with_managers(struct request *q, struct val before, struct val after)
{
	const struct endpoint *e = kinds_endpoint(&q->server->kinds, STR("policy"), STR("v1"), STR("poddisruptionbudgets"),
						  STR("status"));
	if (!e)
		return after;
	struct apply_request req = apply_request_of(q, e, e->type, STR("kube-apiserver"));
	struct val with;
	return apply_update(q->arena, &req, before, after, &with, NULL) == 0 ? with : after;
}

/* Takes one of the disruptions that the budget allows. */
static int take_disruption(struct request *q, struct val *budget, void *arg)
{
	(void)arg;
	struct val object = *budget;
	str name = val_str(object, metadata, name);
	int64_t allowed = val_int(object, status, disruptionsAllowed);
	if (val_int(object, status, observedGeneration) < val_int(object, metadata, generation))
		return still_processed(q, name);
	if (allowed < 0)
		return forbidden(q, name, "pdb disruptions allowed is negative", "pdb disruptions allowed is negative");
	if (val_len(val_get(object, status, disruptedPods)) > DISRUPTED_PODS_MAX)
		return forbidden(q, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
				 "too many pending evictions not confirmed by PDB controller");
	if (allowed == 0)
		return none_allowed(q, object);
	object = val_with(q->arena, object, val_of_int(allowed - 1), status, disruptionsAllowed);
	if (allowed == 1) {
		struct val condition = OBJECT(q->arena, F(type, VAL_LIT("DisruptionAllowed")), F(status, VAL_LIT("False")),
			F(observedGeneration, val_get(object, status, observedGeneration)),
			F(reason, VAL_LIT("InsufficientPods")));
		object = val_with(q->arena, object, conditions_put(q, val_get(object, status, conditions), condition),
				  status, conditions);
	}
	struct val disrupted = val_put(q->arena, val_get(object, status, disruptedPods), atom_make(q->arena, q->name),
				       meta_now(q));
	object = val_with(q->arena, object, disrupted, status, disruptedPods);
	struct err ignored = ERR_INIT;
	if (val_canonical(q->arena, object, TYPE(policy_v1, PodDisruptionBudget), NULL, &object, &ignored) == 0)
		object = with_managers(q, *budget, object);
	*budget = object;
	return 0;
}

/* The budgets that the pod falls under: how many, and one of them (a reference). */
static size_t budgets_of(struct request *q, struct val pod, struct object **ret)
{
	struct kind *kind = kinds_find(&q->server->kinds, STR("policy"), STR("poddisruptionbudgets"));
	str prefix = arena_join(q->arena, q->namespace, STR("/")), key;
	struct omap_iter it;
	struct object *o;
	size_t n = 0;
	if (!kind)
		return 0;
	omap_seek(&it, kind->objects, prefix);
	while ((o = omap_next(&it, &key)) && str_starts(key, prefix)) {
		struct selector selector;
		if (selector_of_object(q->arena, val_get(o->val, spec, selector), &selector, NULL) < 0 ||
		    !selector_matches(&selector, val_get(pod, metadata, labels)))
			continue;
		if (n++ == 0)
			*ret = object_ref(o);
	}
	return n;
}

/* An unhealthy pod may go without being counted: always, or as long as enough others are healthy. */
static bool may_go_unhealthy(struct val budget)
{
	if (str_eq(val_str(budget, spec, unhealthyPodEvictionPolicy), STR("AlwaysAllow")))
		return true;
	int64_t has = val_int(budget, status, currentHealthy), needs = val_int(budget, status, desiredHealthy);
	return has >= needs && needs > 0;
}

/* ---- the pod ---- */

static bool is_phase(struct val pod, const char *phase) { return str_eq(val_str(pod, status, phase), str_of(phase)); }

static bool is_over(struct val pod)
{
	return is_phase(pod, "Succeeded") || is_phase(pod, "Failed") || val_has(pod, metadata, deletionTimestamp);
}

static int refuse(struct request *q, struct val pod, const char *what, str wanted, str has, const char *might)
{
	return fail_conflict(q, STR_NONE, STR("Pod"), val_str(pod, metadata, name), "the %s in the precondition (" STR_FMT
			     ") does not match the %s in record (" STR_FMT "). The object might have been %s", what,
			     STR_ARG(wanted), what, STR_ARG(has), might);
}

/* The pod says why it went. */
static int mark_evicted(struct request *q, struct val *pod, void *arg)
{
	struct val conditions = val_get(*(const struct val *)arg, preconditions);
	str uid = val_str(conditions, uid), version = val_str(conditions, resourceVersion);
	str has_uid = val_str(*pod, metadata, uid), has_version = val_str(*pod, metadata, resourceVersion);
	if (uid.n && !str_eq(uid, has_uid))
		return refuse(q, *pod, "UID", uid, has_uid, "deleted and then recreated");
	if (version.n && !str_eq(version, has_version))
		return refuse(q, *pod, "ResourceVersion", version, has_version, "modified");
	struct val condition = OBJECT(q->arena, F(type, VAL_LIT("DisruptionTarget")), F(status, VAL_LIT("True")),
				      F(reason, VAL_LIT("EvictionByEvictionAPI")),
				      F(message, VAL_LIT("Eviction API: evicting")));
	*pod = pod_with_condition(q, *pod, condition);
	return 0;
}

static struct val with_version(struct request *q, struct val options, struct val pod)
{
	return val_with(q->arena, options, val_get(pod, metadata, resourceVersion), preconditions, resourceVersion);
}

static int mark_and_delete(struct request *q, const struct eviction *e, struct val options, struct err *err)
{
	if (!q->dry_run) {
		CLEANUP(object_unrefp) struct object *marked = NULL;
		int r = change_object(q, q->endpoint->kind, e->key, mark_evicted, &options, &marked, err);
		if (r < 0)
			return r;
		if (val_has(options, preconditions, resourceVersion))
			options = val_copy(q->arena, with_version(q, options, marked->val));
	}
	q->delete_options = options;
	int r = write_delete(q, err);
	if (r == 0)
		answer_created(q);
	return r;
}

/* Pods that do not run are nobody's disruption. 1: gone; 0: the budget has to be asked. */
static int evict_idle(struct request *q, const struct eviction *e, struct err *err)
{
	bool pinned = val_has(e->options, preconditions, resourceVersion);
	for (unsigned i = 0;; i++) {
		int r = write_load(q, i > 0, err);
		if (r < 0)
			return r;
		if (!q->current)
			return write_not_found(q);
		if (!is_over(q->old) && !is_phase(q->old, "Pending"))
			return 0;
		struct val options = e->options;
		if (!is_over(q->old) && !pinned)
			options = with_version(q, options, q->old);
		r = mark_and_delete(q, e, options, err);
		if (r != -ERR_CONFLICT || pinned || i + 1 == ATTEMPTS_MAX)
			return r < 0 ? r : 1;
		q->failure = VAL_EMPTY;
		if ((r = fiber_sleep_ms(RETRY_MS, err)) < 0)
			return r;
	}
}

static int several_budgets(struct request *q)
{
	struct val status = status_of(q->arena, 500, STR_NONE, VAL_EMPTY,
		STR("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."));
	answer_val(q, 500, status, TYPE(meta_v1, Status));
	return 0;
}

static int evict_running(struct request *q, struct eviction *e, struct err *err)
{
	CLEANUP(object_unrefp) struct object *budget = NULL;
	size_t n = budgets_of(q, q->old, &budget);
	struct val options = e->options;
	bool unhealthy = false;
	if (n > 1)
		return several_budgets(q);
	if (n == 1) {
		unhealthy = !pod_is_ready(q->old) && may_go_unhealthy(budget->val);
		e->budget = arena_str(q->arena, val_str(budget->val, metadata, name));
		int r = unhealthy ? 0 : change_object(q, budget->kind, budget->key, take_disruption, NULL, NULL, err);
		if (r < 0)
			return r;
	}
	if (unhealthy)
		options = with_version(q, options, q->old);
	int r = mark_and_delete(q, e, options, err);
	if (r == -ERR_CONFLICT && unhealthy && !val_has(e->options, preconditions, resourceVersion))
		return still_processed(q, e->budget);
	return r;
}

/* ---- the request ---- */

/* Both versions of Eviction are taken; they are the same. */
static int decode(struct request *q, struct val *ret, const struct type **ret_type, struct err *err)
{
	*ret_type = TYPE(policy_v1beta1, Eviction);
	if (str_find(q->body, STR("policy/v1beta1")) >= 0 && write_decode_body(q, *ret_type, ret, err) == 0)
		return 0;
	*ret_type = TYPE(policy_v1, Eviction);
	q->failure = VAL_EMPTY;
	return write_decode_body(q, *ret_type, ret, err);
}

int eviction_handle(struct request *q, struct err *err)
{
	const struct type *type;
	struct val eviction;
	int r = write_read_body(q, err);
	if (r < 0 || (r = write_options(q, STR("CreateOptions"), false)) < 0 || (r = decode(q, &eviction, &type, err)) < 0 ||
	    (r = meta_set_namespace(q, &eviction)) < 0)
		return r;
	if (!str_eq(val_str(eviction, metadata, name), q->name))
		return fail_bad_request(q, "name in URL does not match name in Eviction object");
	if ((r = admission_pass(q, type, &eviction, err)) < 0)
		return r;
	struct eviction e = { .options = val_get(eviction, deleteOptions) };
	if (val_bool(e.options, ignoreStoreReadErrorWithClusterBreakingPotential)) {
		struct field_errors errors;
		field_errors_init(&errors, q->arena);
		field_invalid(&errors, FIELD(FIELD(NULL, "deleteOptions"),
					     "ignoreStoreReadErrorWithClusterBreakingPotential"), val_of_bool(true),
			      "can not be set for pod eviction, try after removing the option");
		return fail_invalid(q, STR("policy"), STR("Eviction"), q->name, &errors);
	}
	q->dry_run = q->dry_run || val_len(val_get(e.options, dryRun));
	if ((r = meta_key_of(q, &e.key)) < 0 || (r = evict_idle(q, &e, err)) != 0)
		return r < 0 ? r : 0;
	return evict_running(q, &e, err);
}
