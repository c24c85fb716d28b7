/*
 * Conditions. Their order in the status: those of others as the API server has them, then ours. A time changes only with the
 * status of its condition (of a resize: with its reason).
 */
#include "base/buf.h"
#include "codec/atoms.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pod_status_priv.h"

enum { TEXT_MAX = 1024 * 1024 };

/* What a condition says; empty reason: True. */
struct verdict {
	bool is_true;
	const char *reason;
	str message;
};

bool condition_is_ours(str type)
{
	static const str ours[] = {
		STR_INIT("PodScheduled"), STR_INIT("Ready"), STR_INIT("Initialized"), STR_INIT("ContainersReady"),
		STR_INIT("PodResizeInProgress"), STR_INIT("PodResizePending"), STR_INIT("PodReadyToStartContainers"),
		STR_INIT("AllContainersRestarting"),
	};

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (str_eq(type, ours[i]))
			return true;
	return false;
}

struct val status_condition(struct val conditions, str type)
{
	VAL_EACH(c, conditions)
		if (str_eq(val_str(*c, type), type))
			return *c;
	return VAL_EMPTY;
}

struct val status_conditions_of_others(struct arena *a, const struct pod_view *v)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(c, val_get(v->pod, status, conditions))
		if (!condition_is_ours(val_str(*c, type)))
			val_add_item(&b, *c);
	return val_end_list(&b);
}

/* ---- making one ---- */

/* with_generation: the condition says which generation of the pod it is about. */
static struct val make(struct arena *a, const struct pod_view *v, const char *type, struct verdict said, bool with_generation)
{
	struct val old = status_condition(val_get(pod_view_status(v), conditions), str_of(type));
	struct val status = said.is_true ? VAL_LIT("True") : VAL_LIT("False");
	bool same = val_exists(old) && str_eq(val_str(old, status), val_as_str(status));

	return OBJECT(a, F(type, VAL_STR(str_of(type))),
		      F(observedGeneration, with_generation ? val_get(v->pod, metadata, generation) : VAL_EMPTY), F(status, status),
		      F(lastTransitionTime, same ? val_get(old, lastTransitionTime) : status_time(a, v->now_ns)),
		      F(reason, said.reason ? VAL_STR(str_of(said.reason)) : VAL_EMPTY),
		      F(message, said.message.n ? VAL_STR(said.message) : VAL_EMPTY));
}

static struct val make_resize(struct arena *a, const struct pod_view *v, struct val wanted)
{
	struct val old = status_condition(val_get(pod_view_status(v), conditions), val_str(wanted, type));
	bool same = val_exists(old) && str_eq(val_str(old, reason), val_str(wanted, reason));
	struct val now = status_time(a, v->now_ns);

	return OBJECT(a, F(type, val_get(wanted, type)), F(observedGeneration, val_get(wanted, observedGeneration)),
		      F(status, VAL_LIT("True")), F(lastProbeTime, now),
		      F(lastTransitionTime, same ? val_get(old, lastTransitionTime) : now),
		      F(reason, val_get(wanted, reason)), F(message, val_get(wanted, message)));
}

/* ---- what each says ---- */

/*
 * "containers with unready status: [a b]" of those that do not have what is asked, after those that before names; empty if all
 * have it.
 */
static str name_those(struct arena *a, const char *what, struct val specs, struct val statuses, bool sidecars_only,
		      bool (*is_fine)(struct val container, struct val status), str before)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	VAL_EACH(c, specs) {
		if ((sidecars_only && !container_is_sidecar(*c)) || is_fine(*c, find_named(statuses, val_str(*c, name))))
			continue;
		if (!b.n && !before.n)
			buf_addf(&b, "containers with %s status: [", what);
		else
			buf_addf(&b, STR_FMT " ", STR_ARG(b.n ? STR_NONE : str_head(before, before.n - 1)));
		buf_add(&b, val_str(*c, name));
	}
	if (!b.n)
		return before;
	buf_addc(&b, ']');
	return arena_str(a, buf_str(&b));
}

static bool is_ready(struct val container __attribute__((unused)), struct val status) { return val_bool(status, ready); }

static bool is_initialized(struct val container, struct val status)
{
	return container_is_sidecar(container) ? val_bool(status, started) : val_bool(status, ready);
}

static struct verdict containers_ready(struct arena *a, const struct condition_input *in)
{
	struct val pod = in->v->pod;
	str unready;

	if (phase_is_terminal(in->phase))
		return (struct verdict){ .reason = str_eq(in->phase, STR("Failed")) ? "PodFailed" : "PodCompleted" };
	unready = name_those(a, "unready", val_get(pod, spec, initContainers), in->init_statuses, true, is_ready, STR_NONE);
	unready = name_those(a, "unready", val_get(pod, spec, containers), in->statuses, false, is_ready, unready);
	if (unready.n)
		return (struct verdict){ .reason = "ContainersNotReady", .message = unready };
	return (struct verdict){ .is_true = true };
}

static struct verdict ready(struct arena *a, const struct condition_input *in, struct val conditions)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	struct verdict said = containers_ready(a, in);

	if (!said.is_true)
		return said;
	VAL_EACH(gate, val_get(in->v->pod, spec, readinessGates)) {
		str type = val_str(*gate, conditionType);
		struct val c = status_condition(conditions, type);
		if (val_exists(c) && str_eq(val_str(c, status), STR("True")))
			continue;
		if (b.n)
			buf_add(&b, STR(", "));
		buf_add(&b, val_exists(c) ? STR("the status of") : STR("corresponding condition of"));
		buf_add(&b, STR(" pod readiness gate "));
		buf_add_quoted(&b, type);
		if (val_exists(c))
			buf_addf(&b, " is not \"True\", but " STR_FMT, STR_ARG(val_str(c, status)));
		else
			buf_add(&b, STR(" does not exist."));
	}
	return b.n ? (struct verdict){ .reason = "ReadinessGatesNotReady", .message = arena_str(a, buf_str(&b)) } : said;
}

static struct verdict initialized(struct arena *a, const struct condition_input *in)
{
	struct val old = status_condition(val_get(pod_view_status(in->v), conditions), STR("Initialized"));
	str incomplete;

	if (str_eq(in->phase, STR("Succeeded")))
		return (struct verdict){ .is_true = true, .reason = "PodCompleted" };
	VAL_EACH(c, in->statuses) /* sidecars that restart do not take it back */
		if (val_has(*c, state, running) || val_has(*c, state, terminated))
			return (struct verdict){ .is_true = true };
	incomplete = name_those(a, "incomplete", val_get(in->v->pod, spec, initContainers), in->init_statuses, false, is_initialized,
				STR_NONE);
	if (!incomplete.n || str_eq(val_str(old, status), STR("True")))
		return (struct verdict){ .is_true = true };
	return (struct verdict){ .reason = "ContainersNotInitialized", .message = incomplete };
}

static struct verdict restarting_all(const struct condition_input *in)
{
	if (phase_is_terminal(in->phase))
		return (struct verdict){ .reason = str_eq(in->phase, STR("Failed")) ? "PodFailed" : "PodCompleted" };
	if (!pod_restarts_all(in->v) || !pod_has_leftovers(in->v))
		return (struct verdict){ 0 };
	return (struct verdict){ .is_true = true, .reason = "RestartAllContainersStarted",
				 .message = STR("container exited with restart policy rule") };
}

/* ---- all ---- */

/* Others' conditions, with that of a pod which the kubelet ended among them. */
static struct val add_disruption(struct arena *a, const struct condition_input *in, struct val list)
{
	const struct pod_view *v = in->v;
	struct val c;

	if (!in->ended || !val_exists(v->disruption))
		return list;
	c = make(a, v, "DisruptionTarget", (struct verdict){ .is_true = true }, true);
	c = val_put(a, val_put(a, c, A_reason, val_get(v->disruption, reason)), A_message, val_get(v->disruption, message));
	for (size_t i = 0; i < val_len(list); i++)
		if (str_eq(val_str(list.items[i], type), STR("DisruptionTarget")))
			return val_list_set(a, list, i, c);
	return val_list_append(a, list, c);
}

struct val status_conditions(struct arena *a, const struct condition_input *in)
{
	const struct pod_view *v = in->v;
	struct val others = status_conditions_of_others(a, v);
	struct val_builder b = val_builder(a);
	struct verdict sandbox = { 0 };
	unsigned attempt;
	str id;

	others = add_disruption(a, in, others);
	VAL_EACH(c, others)
		val_add_item(&b, *c);
	if (!v->terminated)
		VAL_EACH(c, v->resize)
			val_add_item(&b, make_resize(a, v, *c));
	sandbox.is_true = !pod_needs_sandbox(v, &attempt, &id);
	val_add_item(&b, make(a, v, "PodReadyToStartContainers", sandbox, true));
	val_add_item(&b, make(a, v, "Initialized", initialized(a, in), true));
	val_add_item(&b, make(a, v, "Ready", ready(a, in, others), true));
	val_add_item(&b, make(a, v, "ContainersReady", containers_ready(a, in), true));
	val_add_item(&b, make(a, v, "PodScheduled", (struct verdict){ .is_true = true }, true));
	if (pod_may_restart_all(v->pod))
		val_add_item(&b, make(a, v, "AllContainersRestarting", restarting_all(in), false));
	return val_end_list(&b);
}

struct val status_conditions_ready_to_start(struct arena *a, const struct pod_view *v, struct val conditions)
{
	struct val c = make(a, v, "PodReadyToStartContainers", (struct verdict){ .is_true = true }, true);

	for (size_t i = 0; i < val_len(conditions); i++)
		if (str_eq(val_str(conditions.items[i], type), val_str(c, type)))
			return val_list_set(a, conditions, i, c);
	return val_list_append(a, conditions, c);
}
