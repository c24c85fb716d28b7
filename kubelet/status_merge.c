/*
 * A status has several authors. The kubelet owns most of it, but conditions of other types belong to whoever wrote them, as do the
 * statuses of resource claims. DisruptionTarget is shared: the kubelet's counts once, when the pod ends.
 */
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pod_status_priv.h"
#include "kubelet/status_priv.h"
#include "machinery/patch.h"

/* ---- conditions ---- */

static size_t find_condition(struct val conditions, str type)
{
	size_t i = 0;

	while (i < val_len(conditions) && !str_eq(val_str(conditions.items[i], type), type))
		i++;
	return i;
}

static struct val put_condition(struct arena *a, struct val conditions, struct val c)
{
	size_t i = find_condition(conditions, val_str(c, type));

	return i < val_len(conditions) ? val_list_set(a, conditions, i, c) : val_list_append(a, conditions, c);
}

static bool is_true(struct val conditions, const char *type)
{
	return str_eq(val_str(status_condition(conditions, str_of(type)), status), STR("True"));
}

/* The kubelet's DisruptionTarget, which may have waited long for the pod's end. */
static struct val disruption(struct arena *a, struct val old, struct val c, int64_t now_ns)
{
	struct val was = status_condition(val_get(old, conditions), STR("DisruptionTarget"));
	bool same = val_exists(was) && str_eq(val_str(was, status), val_str(c, status));

	return val_with(a, c, same ? val_get(was, lastTransitionTime) : status_time(a, now_ns), lastTransitionTime);
}

static struct val merge_conditions(struct arena *a, struct val old, struct val new, int64_t now_ns)
{
	bool ends = !phase_is_terminal(val_str(old, phase)) && phase_is_terminal(val_str(new, phase));
	struct val_builder b = val_builder(a);
	struct val target = status_condition(val_get(new, conditions), STR("DisruptionTarget")), list;

	VAL_EACH(c, val_get(old, conditions))
		if (!condition_is_ours(val_str(*c, type)))
			val_add_item(&b, *c);
	list = val_end_list(&b);
	if (ends && val_exists(target))
		list = put_condition(a, list, disruption(a, old, target, now_ns));
	VAL_EACH(c, val_get(new, conditions))
		if (condition_is_ours(val_str(*c, type)))
			list = val_list_append(a, list, *c);
	return list;
}

/* Nothing is ready in a pod that has ended. */
static struct val not_ready(struct arena *a, struct val live, struct val conditions, str phase, int64_t now_ns)
{
	static const char *const types[] = { "ContainersReady", "Ready" };
	struct val reason = str_eq(phase, STR("Failed")) ? VAL_LIT("PodFailed") : VAL_LIT("PodCompleted");

	if (!is_true(conditions, "Ready") && !is_true(conditions, "ContainersReady"))
		return conditions;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct val was = status_condition(conditions, str_of(types[i])), now = status_time(a, now_ns);
		bool same = str_eq(val_str(was, status), STR("False"));
		struct val c = OBJECT(a, F(type, VAL_STR(str_of(types[i]))), F(observedGeneration, val_get(live, metadata, generation)),
				      F(status, VAL_LIT("False")), F(lastTransitionTime, same ? val_get(was, lastTransitionTime) : now),
				      F(reason, reason));
		conditions = put_condition(a, conditions, c);
	}
	return conditions;
}

/* ---- the whole ---- */

/* What is taken from the server's status whether the kubelet has it or not, and what only where the kubelet has nothing. */
static const atom of_others[] = { A_resourceClaimStatuses, A_extendedResourceClaimStatus, A_nodeAllocatableResourceClaimStatuses };
static const atom kept[] = { A_hostIP, A_hostIPs };
static const atom outcome[] = { A_phase, A_reason, A_message };

struct val status_merge(struct arena *a, struct val live, struct val status, int64_t now_ns)
{
	struct val old = val_get(live, status), conditions = merge_conditions(a, old, status, now_ns), typed;

	for (size_t i = 0; i < ARRAY_LEN(of_others); i++)
		status = val_put(a, status, of_others[i], val_member(old, of_others[i]));
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (!val_exists(val_member(status, kept[i])))
			status = val_put(a, status, kept[i], val_member(old, kept[i]));
	/* A pod that others saw end has ended. */
	if (phase_is_terminal(val_str(old, phase)) && !phase_is_terminal(val_str(status, phase)))
		for (size_t i = 0; i < ARRAY_LEN(outcome); i++)
			status = val_put(a, status, outcome[i], val_member(old, outcome[i]));
	if (phase_is_terminal(val_str(status, phase)))
		conditions = not_ready(a, live, conditions, val_str(status, phase), now_ns);
	status = val_put(a, status, A_conditions, conditions);
	/* It can fail only for what is no status; the server then says so. */
	return val_canonical(a, status, TYPE(core_v1, PodStatus), NULL, &typed, NULL) < 0 ? status : typed;
}

int status_patch(struct arena *a, struct val live, struct val merged, struct val *ret, struct err *err)
{
	const struct type *type = TYPE(core_v1, PodStatus);
	struct val before, after, patch;
	int r = patch_document(a, val_get(live, status), type, &before, err);

	*ret = VAL_EMPTY;
	if (r < 0 || (r = patch_document(a, merged, type, &after, err)) < 0 ||
	    (r = strategic_patch_create(a, before, after, type, 0, &patch, err)) < 0 || !val_len(patch))
		return r;
	*ret = OBJECT(a, F(metadata, OBJECT(a, F(uid, val_get(live, metadata, uid)))), F(status, patch));
	return 0;
}

struct val status_ended(struct arena *a, struct val pod, struct val status)
{
	struct val init = val_get(status, initContainerStatuses), main = val_get(status, containerStatuses);

	status_containers_finish(a, pod, &init, &main);
	if (val_len(init))
		status = val_put(a, status, A_initContainerStatuses, init);
	if (val_len(main))
		status = val_put(a, status, A_containerStatuses, main);
	if (!phase_is_terminal(val_str(status, phase)) && !pod_is_static(pod))
		status = val_put(a, status, A_phase, VAL_LIT("Failed"));
	return status;
}
