/*
 * Pods stand in the order of their ordinals. First every place gets its pod, from the lowest on; then pods outside of the range go, from the
 * highest on; then, with RollingUpdate, pods of an older revision go, again from the highest on, and come back as new ones in the next look.
 */
#include "controllers/stateful_set_plan.h"

#include <stdlib.h>

#include "codec/atoms.h"
#include "controllers/controller.h"
#include "controllers/labels.h"
#include "controllers/owner.h"
#include "controllers/pod_control.h"

enum { REPLICAS, SETTLE, CONDEMNED, UPDATE };
enum { LOOK_AHEAD = 500 };

struct plan {
	struct arena *arena;
	const struct stateful_view *v;
	struct stateful_plan *out;
	struct val *replicas, *condemned;
	size_t n_replicas, n_condemned;
	str first_unavailable;                     /* name */
	int64_t min_ready_s, current;              /* current: pods that an update takes away from the current revision */
	bool ordered, cut;                         /* cut: not all places are looked at */
};

/* ---- one pod ---- */

static bool phase_is(struct val pod, const char *phase) { return str_eq(val_str(pod, status, phase), str_of(phase)); }
static bool is_created(struct val pod) { return val_str(pod, status, phase).n; }
static bool is_terminating(struct val pod) { return val_has(pod, metadata, deletionTimestamp); }
static bool is_running_ready(struct val pod) { return phase_is(pod, "Running") && pod_is_ready(pod); }
static bool is_available(const struct plan *p, struct val pod) { return pod_is_available(pod, p->min_ready_s, p->v->now_ns); }
static bool is_unavailable(const struct plan *p, struct val pod) { return !is_available(p, pod) || is_terminating(pod); }
static str revision_of(struct val pod) { return label_of(pod, STR(STATEFUL_REVISION)); }

bool stateful_identity_matches(struct val set, struct val pod)
{
	str parent = STR_NONE, name = val_str(pod, metadata, name);
	return stateful_ordinal(pod, &parent) >= 0 && str_eq(parent, val_str(set, metadata, name)) &&
	       str_eq(val_str(pod, metadata, namespace), val_str(set, metadata, namespace)) && str_eq(label_of(pod, STR(STATEFUL_POD_NAME)), name);
}

struct val stateful_with_identity(struct arena *a, struct val set, struct val pod)
{
	int64_t ordinal = stateful_ordinal(pod, NULL);
	str name = arena_printf(a, STR_FMT "-%lld", STR_ARG(val_str(set, metadata, name)), (long long)ordinal);
	struct val labels = labels_put(a, val_get(pod, metadata, labels), STR(STATEFUL_POD_NAME), VAL_STR(name));

	labels = labels_put(a, labels, STR(STATEFUL_POD_INDEX), VAL_STR(arena_printf(a, "%lld", (long long)ordinal)));
	pod = val_with(a, pod, VAL_STR(name), metadata, name);
	pod = val_with(a, pod, val_get(set, metadata, namespace), metadata, namespace);
	return val_with(a, pod, labels, metadata, labels);
}

/* Below the partition, and while no partition is given among the current ones, pods are of the current revision. */
static bool is_current_place(const struct plan *p, int64_t place)
{
	struct val strategy = val_get(p->v->set, spec, updateStrategy), rolling = val_get(strategy, rollingUpdate);

	if (val_exists(rolling))
		return place < val_int(rolling, partition);
	return str_eq(val_str(strategy, type), STR("RollingUpdate")) && place < val_int(p->v->set, status, currentReplicas);
}

static struct val new_pod(const struct plan *p, int64_t ordinal, int64_t place)
{
	struct arena *a = p->arena;
	struct val set = p->v->set;
	bool current = is_current_place(p, place);
	str name = arena_printf(a, STR_FMT "-%lld", STR_ARG(val_str(set, metadata, name)), (long long)ordinal);
	struct val pod = pod_from_template(a, current ? p->v->current_template : p->v->update_template, set,
					   owner_ref(a, set, "apps/v1", "StatefulSet"));

	pod = val_with(a, pod, VAL_STR(name), metadata, name);
	pod = stateful_with_identity(a, set, pod);
	pod = val_with(a, pod, VAL_STR(name), spec, hostname);
	str service = val_str(set, spec, serviceName);
	pod = val_with(a, pod, service.n ? VAL_STR(service) : VAL_EMPTY, spec, subdomain);
	str revision = current ? p->v->current_revision : p->v->update_revision;
	pod = val_with(a, pod, labels_put(a, val_get(pod, metadata, labels), STR(STATEFUL_REVISION), VAL_STR(revision)), metadata, labels);
	return stateful_with_volumes(a, set, pod);
}

/* ---- claims ---- */

enum claims { CLAIMS_FINE, CLAIMS_UNSETTLED, CLAIMS_STALE };

static enum claims look_at_claims(const struct plan *p, struct val pod)
{
	enum claims found = CLAIMS_FINE;

	VAL_EACH(t, val_get(p->v->set, spec, volumeClaimTemplates)) {
		struct val claim = p->v->claim ? p->v->claim(p->v->arg, stateful_claim_name(p->arena, p->v->set, *t, stateful_ordinal(pod, NULL))) : VAL_EMPTY;
		if (!val_exists(claim))
			continue;
		if (stateful_claim_is_stale(claim, pod))
			return CLAIMS_STALE;
		if (!stateful_claim_is_settled(claim, p->v->set, pod))
			found = CLAIMS_UNSETTLED;
	}
	return found;
}

/* A new pod must not take over claims that are going with the pod before it. */
static bool claims_are_going(const struct plan *p, struct val pod)
{
	struct val policy = val_get(p->v->set, spec, persistentVolumeClaimRetentionPolicy);
	return str_eq(val_str(policy, whenScaled), STR("Delete")) && look_at_claims(p, pod) == CLAIMS_STALE;
}

/* ---- steps ---- */

static void add(struct plan *p, enum stateful_step_type type, int stage, struct val pod)
{
	p->out->steps[p->out->n++] = (struct stateful_step){ type, stage, pod };
}

/* False: with ordered pods nothing more is done now. */
static bool plan_replica(struct plan *p, struct val pod)
{
	if (phase_is(pod, "Failed") || phase_is(pod, "Succeeded")) {
		if (!is_terminating(pod))
			add(p, STATEFUL_DELETE, REPLICAS, pod);
		return !p->ordered;
	}
	if (!is_created(pod)) {
		if (claims_are_going(p, pod))
			p->out->waits = true;
		else
			add(p, STATEFUL_CREATE, REPLICAS, pod);
		return !p->ordered;
	}
	if (phase_is(pod, "Pending") && val_len(val_get(p->v->set, spec, volumeClaimTemplates)))
		add(p, STATEFUL_CLAIMS, REPLICAS, pod);
	if (p->ordered && (is_terminating(pod) || !is_running_ready(pod) || !is_available(p, pod)))
		return false;
	if (!stateful_identity_matches(p->v->set, pod) || !stateful_volumes_match(p->arena, p->v->set, pod) ||
	    look_at_claims(p, pod) == CLAIMS_UNSETTLED)
		add(p, STATEFUL_UPDATE, REPLICAS, pod);
	return true;
}

static bool plan_condemned(struct plan *p, struct val pod)
{
	bool first = str_eq(val_str(pod, metadata, name), p->first_unavailable);

	if (is_terminating(pod))
		return !p->ordered;
	if (p->ordered && !first && (!is_running_ready(pod) || !is_available(p, pod)))
		return false;
	add(p, STATEFUL_DELETE, CONDEMNED, pod);
	return !p->ordered;
}

/* How many may be down for an update: one, unless spec.updateStrategy.rollingUpdate.maxUnavailable (off by default in 1.36) says more. */
static int64_t updates_allowed(const struct plan *p, struct val max)
{
	int64_t allowed = MAX(scaled_value(max, val_int(p->v->set, spec, replicas), false), INT64_C(1));

	for (size_t i = 0; i < p->n_replicas; i++)
		allowed -= is_unavailable(p, p->replicas[i]);
	return allowed;
}

static bool is_outdated(const struct plan *p, struct val pod)
{
	return !str_eq(revision_of(pod), p->v->update_revision) && !is_terminating(pod);
}

static void plan_update(struct plan *p)
{
	struct val strategy = val_get(p->v->set, spec, updateStrategy), max = val_get(strategy, rollingUpdate, maxUnavailable);
	int64_t lowest = val_int(strategy, rollingUpdate, partition), allowed = val_exists(max) ? updates_allowed(p, max) : 1;

	if (str_eq(val_str(strategy, type), STR("OnDelete")) || p->cut)
		return;
	for (int64_t i = (int64_t)p->n_replicas - 1; i >= lowest && allowed > 0; i--) {
		struct val pod = p->replicas[i];
		if (is_outdated(p, pod)) {
			add(p, STATEFUL_DELETE, UPDATE, pod);
			p->current--;
			allowed--;
		} else if (!val_exists(max) && is_unavailable(p, pod)) {
			return;
		}
	}
}

static void plan_steps(struct plan *p)
{
	for (size_t i = 0; i < p->n_replicas; i++)
		if (!plan_replica(p, p->replicas[i]))
			return;
	for (size_t i = 0; i < p->n_condemned; i++)
		if (look_at_claims(p, p->condemned[i]) == CLAIMS_UNSETTLED)
			add(p, STATEFUL_SETTLE, SETTLE, p->condemned[i]);
	for (size_t i = 0; i < p->n_condemned; i++)
		if (!plan_condemned(p, p->condemned[i]))
			return;
	plan_update(p);
}

/* ---- places ---- */

static int from_the_top(const void *a, const void *b)
{
	int64_t x = stateful_ordinal(*(const struct val *)a, NULL), y = stateful_ordinal(*(const struct val *)b, NULL);
	return x > y ? -1 : x < y;
}

/*
 * spec.replicas can be two billion, and a pod can have any of these places. Only so many places are looked at that some are sure to be empty
 * when there are more; pods beyond them come after these.
 */
static void place_pods(struct plan *p)
{
	size_t n_pods = val_len(p->v->pods);
	int64_t start = val_int(p->v->set, spec, ordinals, start), replicas = MAX(val_int(p->v->set, spec, replicas), INT64_C(0));
	int64_t near = MIN(replicas, (int64_t)n_pods + LOOK_AHEAD);

	p->cut = near < replicas;
	p->n_replicas = (size_t)near;
	p->replicas = ARENA_ARRAY(p->arena, struct val, p->n_replicas + n_pods + 1);
	for (size_t i = 0; i < p->n_replicas; i++)
		p->replicas[i] = VAL_EMPTY;
	p->condemned = ARENA_ARRAY(p->arena, struct val, n_pods + 1);
	VAL_EACH(pod, p->v->pods) {
		int64_t ordinal = stateful_ordinal(*pod, NULL), place = ordinal - start;
		if (place >= 0 && place < near)
			p->replicas[place] = *pod;
		else if (place >= 0 && place < replicas)
			p->replicas[p->n_replicas++] = *pod;
		else if (ordinal >= 0)
			p->condemned[p->n_condemned++] = *pod;
	}
	for (int64_t i = 0; i < near; i++)
		if (!val_exists(p->replicas[i]))
			p->replicas[i] = new_pod(p, start + i, i);
	qsort(p->condemned, p->n_condemned, sizeof(*p->condemned), from_the_top);
	for (size_t i = 0; i < p->n_replicas && !p->first_unavailable.n; i++)
		if (is_unavailable(p, p->replicas[i]))
			p->first_unavailable = val_str(p->replicas[i], metadata, name);
	for (size_t i = p->n_condemned; i-- > 0 && !p->first_unavailable.n;)
		if (is_unavailable(p, p->condemned[i]))
			p->first_unavailable = val_str(p->condemned[i], metadata, name);
}

/* ---- status ---- */

struct counts {
	int64_t replicas, ready, available, current, updated;
};

static void count(const struct plan *p, struct counts *n, struct val pod)
{
	bool ready = is_running_ready(pod), counts = is_created(pod) && !is_terminating(pod);

	n->replicas += is_created(pod);
	n->ready += ready;
	n->available += ready && is_available(p, pod);
	n->current += counts && str_eq(revision_of(pod), p->v->current_revision);
	n->updated += counts && str_eq(revision_of(pod), p->v->update_revision);
}

static struct val number(int64_t n) { return n ? val_of_int(n) : VAL_EMPTY; }

static struct val make_status(const struct plan *p)
{
	struct counts n = { 0 };
	struct val set = p->v->set;
	str current = p->v->current_revision;
	int64_t replicas = val_int(set, spec, replicas);

	for (size_t i = 0; i < p->n_replicas; i++)
		count(p, &n, p->replicas[i]);
	for (size_t i = 0; i < p->n_condemned; i++)
		count(p, &n, p->condemned[i]);
	n.current += p->current;
	if (str_eq(val_str(set, spec, updateStrategy, type), STR("RollingUpdate")) && n.updated == replicas && n.ready == replicas &&
	    n.replicas == replicas) {
		n.current = n.updated;
		current = p->v->update_revision;
	}
	return OBJECT(p->arena, F(observedGeneration, val_get(set, metadata, generation)), F(replicas, val_of_int(n.replicas)),
		      F(readyReplicas, number(n.ready)), F(currentReplicas, number(n.current)), F(updatedReplicas, number(n.updated)),
		      F(currentRevision, VAL_STR(current)), F(updateRevision, VAL_STR(p->v->update_revision)),
		      F(collisionCount, val_of_int(p->v->collisions)), F(availableReplicas, val_of_int(n.available)));
}

bool stateful_status_differs(struct val set, struct val status)
{
	static const atom names[] = { A_replicas, A_readyReplicas, A_currentReplicas, A_updatedReplicas, A_availableReplicas };
	struct val old = val_get(set, status);

	if (val_int(status, observedGeneration) > val_int(old, observedGeneration) ||
	    !str_eq(val_str(status, currentRevision), val_str(old, currentRevision)) ||
	    !str_eq(val_str(status, updateRevision), val_str(old, updateRevision)))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (val_as_int(val_member(status, names[i])) != val_as_int(val_member(old, names[i])))
			return true;
	return false;
}

void stateful_plan_make(struct arena *a, const struct stateful_view *v, struct stateful_plan *ret)
{
	struct plan p = { .arena = a, .v = v, .out = ret, .min_ready_s = val_int(v->set, spec, minReadySeconds) };

	p.ordered = !str_eq(val_str(v->set, spec, podManagementPolicy), STR("Parallel"));
	*ret = (struct stateful_plan){ .at_once = !p.ordered };
	place_pods(&p);
	/* Two steps at most for a pod in its place or a condemned one, and one more for the update. */
	ret->steps = ARENA_ARRAY(a, struct stateful_step, 3 * p.n_replicas + 2 * p.n_condemned + 1);
	if (!val_has(v->set, metadata, deletionTimestamp))
		plan_steps(&p);
	ret->status = make_status(&p);
}
