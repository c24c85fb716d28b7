#include "machinery/table_pod.h"

#include "base/map.h"
#include "codec/time.h"

/*
 * Ready, Status and Restarts of a pod come out of one walk over its containers: first those that initialise, in order, up to
 * the first that has not finished; then, if nothing is left to initialise, the others.
 */
struct pod_facts {
	size_t total, ready;
	int64_t restarts, restarts_of_sidecars;
	struct val last_restart, last_sidecar_restart; /* times */
	str status;
	bool initializing, running;
	str error; /* status of a container that failed */
};

static bool is_sidecar(struct val init_container) { return str_eq(val_str(init_container, restartPolicy), STR("Always")); }

/* The later of the two times, of which *last may be absent. */
static void keep_later(struct val *last, struct val time)
{
	struct timestamp a, b;
	if (!val_is(time, VAL_STRING) || time_parse(val_as_str(time), &b, NULL) < 0)
		return;
	if (val_is(*last, VAL_STRING) && time_parse(val_as_str(*last), &a, NULL) == 0 &&
	    (a.seconds > b.seconds || (a.seconds == b.seconds && a.nanos >= b.nanos)))
		return;
	*last = time;
}

/* Why a container ended: its reason, else the signal or the exit code. */
static str end_reason(struct arena *a, struct val terminated)
{
	str reason = val_str(terminated, reason);
	int64_t signal = val_int(terminated, signal);
	if (reason.n)
		return reason;
	if (signal)
		return arena_printf(a, "Signal:%lld", (long long)signal);
	return arena_printf(a, "ExitCode:%lld", (long long)val_int(terminated, exitCode));
}

/* False when this one is not done, so that the pod stops here. */
static bool see_init_container(const struct row *row, struct val status, bool sidecar, size_t i, struct pod_facts *f)
{
	struct val terminated = val_get(status, state, terminated), finished = val_get(status, lastState, terminated, finishedAt);
	str waiting = val_str(status, state, waiting, reason);

	f->restarts += val_int(status, restartCount);
	keep_later(&f->last_restart, finished);
	if (sidecar) {
		f->restarts_of_sidecars += val_int(status, restartCount);
		keep_later(&f->last_sidecar_restart, finished);
	}
	if (val_exists(terminated) && val_int(terminated, exitCode) == 0)
		return true;
	if (sidecar && val_bool(status, started)) {
		f->ready += val_bool(status, ready);
		return true;
	}
	f->initializing = true;
	if (val_exists(terminated))
		f->status = arena_join(row->arena, STR("Init:"), end_reason(row->arena, terminated));
	else if (waiting.n && !str_eq(waiting, STR("PodInitializing")))
		f->status = arena_join(row->arena, STR("Init:"), waiting);
	else
		f->status = arena_printf(row->arena, "Init:%zu/%u", i, val_len(val_get(row->object, spec, initContainers)));
	return false;
}

static void see_init_containers(const struct row *row, struct pod_facts *f)
{
	CLEANUP(map_done) struct map by_name = MAP_INIT;
	size_t i = 0;

	VAL_EACH(c, val_get(row->object, spec, initContainers)) {
		f->total += is_sidecar(*c);
		map_put(&by_name, val_str(*c, name), (void *)c);
	}
	VAL_EACH(s, val_get(row->object, status, initContainerStatuses)) {
		const struct val *container = map_get(&by_name, val_str(*s, name));
		if (!see_init_container(row, *s, container && is_sidecar(*container), i++, f))
			break;
	}
}

static void see_container(const struct row *row, struct val status, struct pod_facts *f)
{
	struct val terminated = val_get(status, state, terminated);
	str waiting = val_str(status, state, waiting, reason);

	f->restarts += val_int(status, restartCount);
	keep_later(&f->last_restart, val_get(status, lastState, terminated, finishedAt));
	if (waiting.n) {
		f->status = waiting;
	} else if (val_exists(terminated)) {
		f->status = end_reason(row->arena, terminated);
		if (val_int(terminated, exitCode))
			f->error = f->status;
	} else if (val_bool(status, ready) && val_has(status, state, running)) {
		f->running = true;
		f->ready++;
	}
}

static void see_containers(const struct row *row, struct pod_facts *f)
{
	struct val statuses = val_get(row->object, status, containerStatuses), conditions = val_get(row->object, status, conditions);

	f->restarts = f->restarts_of_sidecars;
	f->last_restart = f->last_sidecar_restart;
	/* Backwards, so that the first container has the last word. */
	for (size_t i = val_len(statuses); i-- > 0;)
		see_container(row, val_at(statuses, i), f);
	if (!str_eq(f->status, STR("Completed")))
		return;
	bool ready = false;
	VAL_EACH(c, conditions)
		ready |= str_eq(val_str(*c, type), STR("Ready")) && str_eq(val_str(*c, status), STR("True"));
	if (f->running && ready)
		f->status = STR("Running");
	else if (f->error.n)
		f->status = f->error;
	else if (f->running)
		f->status = STR("NotReady");
}

const void *pod_prepare(const struct row *row)
{
	struct pod_facts *f = ARENA_NEW(row->arena, struct pod_facts);
	struct val pod = row->object, conditions = val_get(pod, status, conditions);
	str phase = val_str(pod, status, phase), reason = val_str(pod, status, reason);

	f->status = reason.n ? reason : phase;
	VAL_EACH(c, conditions)
		if (str_eq(val_str(*c, type), STR("PodScheduled")) && str_eq(val_str(*c, reason), STR("SchedulingGated")))
			f->status = STR("SchedulingGated");
	f->total = val_len(val_get(pod, spec, containers));
	see_init_containers(row, f);
	if (!f->initializing || cell_condition_is_true(conditions, STR("Initialized")))
		see_containers(row, f);

	bool over = str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded"));
	if (cell_is_deleted(row) && str_eq(reason, STR("NodeLost")))
		f->status = STR("Unknown");
	else if (cell_is_deleted(row) && !over)
		f->status = STR("Terminating");
	return f;
}

static struct val ready(const struct row *row)
{
	const struct pod_facts *f = row->facts;
	return cell_printf(row, "%zu/%zu", f->ready, f->total);
}

static struct val status(const struct row *row) { return val_of_str(((const struct pod_facts *)row->facts)->status); }

static struct val restarts(const struct row *row)
{
	const struct pod_facts *f = row->facts;
	if (f->restarts && val_exists(f->last_restart))
		return cell_printf(row, "%lld (" STR_FMT " ago)", (long long)f->restarts, STR_ARG(cell_since(row, f->last_restart)));
	return cell_printf(row, "%lld", (long long)f->restarts);
}

static struct val ip(const struct row *row)
{
	struct val first = val_get(val_at(val_get(row->object, status, podIPs), 0), ip);
	return val_of_str(cell_text_or(val_get(row->object, status, podIP), cell_text_or(first, STR("<none>"))));
}

static struct val readiness_gates(const struct row *row)
{
	struct val gates = val_get(row->object, spec, readinessGates);
	size_t open = 0;
	if (val_len(gates) == 0)
		return VAL_LIT("<none>");
	VAL_EACH(g, gates)
		open += cell_condition_is_true(val_get(row->object, status, conditions), val_str(*g, conditionType));
	return cell_printf(row, "%zu/%u", open, val_len(gates));
}

struct val pod_conditions(const struct row *row)
{
	str phase = val_str(row->object, status, phase);
	bool failed = str_eq(phase, STR("Failed"));
	if (!failed && !str_eq(phase, STR("Succeeded")))
		return VAL_EMPTY;
	struct val message = failed ? VAL_LIT("The pod failed.") : VAL_LIT("The pod has completed successfully.");
	return LIST(row->arena, OBJECT(row->arena, F(type, VAL_LIT("Completed")), F(status, VAL_LIT("True")),
				       F(reason, val_of_str(phase)), F(message, message)));
}

const struct column pod_columns[POD_COLUMNS] = {
	NAME,
	COLUMN("Ready", "string", 0, "The aggregate readiness state of this pod for accepting traffic.", CALL(ready)),
	COLUMN("Status", "string", 0, "The aggregate status of the containers in this pod.", CALL(status)),
	COLUMN("Restarts", "string", 0,
	       "The number of times the containers in this pod have been restarted and when the last "
	       "container in this pod has restarted.",
	       CALL(restarts)),
	AGE,
	COLUMN("IP", "string", 1,
	       "podIP address allocated to the pod. Routable at least within the cluster. Empty if "
	       "not yet allocated.",
	       CALL(ip)),
	COLUMN("Node", "string", 1,
	       "NodeName indicates in which node this pod is scheduled. If empty, this pod is a "
	       "candidate for scheduling by the scheduler defined in schedulerName. Once this field "
	       "is set, the kubelet for this node becomes responsible for the lifecycle of this pod. "
	       "This field should not be used to express a desire for the pod to be scheduled on a "
	       "specific node. "
	       "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename",
	       TEXT(spec, nodeName), OR("<none>")),
	COLUMN("Nominated Node", "string", 1,
	       "nominatedNodeName is set only when this pod preempts other pods on the node, but it "
	       "cannot be scheduled right away as preemption victims receive their graceful "
	       "termination periods. This field does not guarantee that the pod will be scheduled on "
	       "this node. Scheduler may decide to place the pod elsewhere if other nodes become "
	       "available sooner. Scheduler may also decide to give the resources on this node to a "
	       "higher priority pod that is created after preemption. As a result, this field may be "
	       "different than PodSpec.nodeName when the pod is scheduled.",
	       TEXT(status, nominatedNodeName), OR("<none>")),
	COLUMN("Readiness Gates", "string", 1,
	       "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready "
	       "when all its containers are ready AND all conditions specified in the readiness gates "
	       "have status equal to \"True\" More info: "
	       "https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates",
	       CALL(readiness_gates)),
};
