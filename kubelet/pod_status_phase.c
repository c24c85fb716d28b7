/* The phase: counts of what the containers are doing, and one decision. */
#include "codec/atoms.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pod_status_priv.h"

struct counts {
	size_t pending_init, pending_sidecars, failed_for_good;                  /* init containers */
	size_t unknown, running, waiting, stopped, stopped_for_good, succeeded;  /* sidecars and containers */
};

bool phase_is_terminal(str phase) { return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed")); }

/* How a container has ended: now, or before what it waits for; VAL_NONE: it has not. */
static struct val ended(struct val status)
{
	struct val now = val_get(status, state, terminated);
	return val_exists(now) ? now : val_has(status, state, waiting) ? val_get(status, lastState, terminated) : VAL_EMPTY;
}

static bool starts_again(struct val pod, struct val container, struct val end)
{
	return container_restarts_after(pod, container, val_int(end, exitCode)) ||
	       str_eq(val_str(end, reason), STR("RestartingAllContainers"));
}

static void count_init(struct counts *n, struct val pod, struct val c, struct val status)
{
	struct val end = ended(status);

	if (!val_exists(end))
		n->pending_init++;
	else if (val_int(end, exitCode) && !starts_again(pod, c, end))
		n->failed_for_good++;
}

/* Sidecars that have ended do not count. */
static void count_sidecar(struct counts *n, struct val status)
{
	if (val_has(status, state, running)) {
		n->pending_sidecars += !val_bool(status, started);
		n->running++;
	} else if (!val_exists(status)) {
		n->unknown++;
	} else if (!val_exists(ended(status))) {
		n->pending_sidecars++;
		if (val_has(status, state, waiting))
			n->waiting++;
		else
			n->unknown++;
	}
}

static void count_container(struct counts *n, struct val pod, struct val c, struct val status)
{
	struct val end = ended(status);

	if (val_has(status, state, running)) {
		n->running++;
	} else if (val_exists(end)) {
		n->stopped++;
		n->stopped_for_good += !starts_again(pod, c, end);
		/* Of one that waits to run again it does not count how it ended. */
		n->succeeded += val_has(status, state, terminated) && !val_int(end, exitCode);
	} else if (val_has(status, state, waiting)) {
		n->waiting++;
	} else {
		n->unknown++;
	}
}

str pod_phase(struct val pod, struct val init_statuses, struct val statuses, bool terminated, bool initialized)
{
	struct counts n = { 0 };

	VAL_EACH(c, val_get(pod, spec, initContainers)) {
		struct val status = find_named(init_statuses, val_str(*c, name));
		if (container_is_sidecar(*c))
			count_sidecar(&n, status);
		else
			count_init(&n, pod, *c, status);
	}
	VAL_EACH(c, val_get(pod, spec, containers))
		count_container(&n, pod, *c, find_named(statuses, val_str(*c, name)));

	if (n.failed_for_good)
		return STR("Failed");
	if (n.pending_init || (n.pending_sidecars && !initialized) || n.waiting)
		return STR("Pending");
	if (n.unknown || (!n.running && !n.stopped))
		return STR("Pending");
	if (n.running)
		return STR("Running");
	if (n.stopped != n.stopped_for_good && !(terminated && !pod_is_static(pod)))
		return STR("Running");
	return n.stopped == n.succeeded ? STR("Succeeded") : STR("Failed");
}
