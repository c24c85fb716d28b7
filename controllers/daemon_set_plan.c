#include "controllers/daemon_set_plan.h"

#include <stdlib.h>

#include "codec/atoms.h"
#include "controllers/controller.h"
#include "controllers/labels.h"
#include "controllers/moment.h"
#include "controllers/pod_control.h"

/* A node, with the pods that are on it or meant for it. */
struct place {
	str name;
	struct val node;             /* VAL_NONE: there is none of that name */
	bool run, stay;
	struct val *pods;            /* the oldest first, those that are bound before the others */
	size_t n;
};

struct plan {
	struct arena *arena;
	const struct daemon_view *v;
	struct place *places;        /* by name */
	size_t n_places;
	int64_t min_ready_s, desired;
};

/* ---- places ---- */

struct placed {
	str node;
	struct val pod;
	int64_t made;
};

static int by_text(str x, str y)
{
	int diff = memcmp(x.p ? x.p : "", y.p ? y.p : "", MIN(x.n, y.n));
	return diff ? diff : x.n < y.n ? -1 : x.n > y.n;
}

static int by_node_and_age(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int diff = by_text(x->node, y->node);

	if (diff)
		return diff;
	bool x_bound = val_str(x->pod, spec, nodeName).n, y_bound = val_str(y->pod, spec, nodeName).n;
	if (x_bound != y_bound)
		return x_bound ? -1 : 1;
	if (x->made != y->made)
		return x->made < y->made ? -1 : 1;
	return by_text(val_str(x->pod, metadata, name), val_str(y->pod, metadata, name));
}

static int by_name(const void *a, const void *b) { return by_text(((const struct place *)a)->name, ((const struct place *)b)->name); }

static bool is_gone(struct val pod)
{
	str phase = val_str(pod, status, phase);
	return val_has(pod, metadata, deletionTimestamp) && (str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded")));
}

static struct placed *place_pods(const struct plan *p, size_t *ret_n)
{
	struct placed *all = ARENA_ARRAY(p->arena, struct placed, val_len(p->v->pods) + 1);
	size_t n = 0;

	VAL_EACH(pod, p->v->pods) {
		str node = daemon_target(*pod);
		if (node.n && !is_gone(*pod))
			all[n++] = (struct placed){ node, *pod, moment_of(val_get(*pod, metadata, creationTimestamp)) };
	}
	qsort(all, n, sizeof(*all), by_node_and_age);
	*ret_n = n;
	return all;
}

static void make_places(struct plan *p)
{
	struct daemon_place rule;
	size_t n, n_nodes = 0;
	struct placed *placed = place_pods(p, &n);
	struct val *pods = ARENA_ARRAY(p->arena, struct val, n + 1);

	daemon_place_compile(p->arena, p->v->set, &rule);
	p->places = ARENA_ARRAY(p->arena, struct place, val_len(p->v->nodes) + n + 1);
	VAL_EACH(node, p->v->nodes) {
		struct place *x = &p->places[n_nodes++];
		*x = (struct place){ .name = val_str(*node, metadata, name), .node = *node };
		daemon_place_check(&rule, *node, &x->run, &x->stay);
		p->desired += x->run;
	}
	p->n_places = n_nodes;
	qsort(p->places, n_nodes, sizeof(*p->places), by_name);
	for (size_t i = 0; i < n; i++)
		pods[i] = placed[i].pod;
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && str_eq(placed[end].node, placed[i].node);)
			end++;
		const struct place wanted = { .name = placed[i].node };
		struct place *x = n_nodes ? bsearch(&wanted, p->places, n_nodes, sizeof(wanted), by_name) : NULL;
		if (!x) {
			x = &p->places[p->n_places++];
			*x = wanted;
		}
		x->pods = pods + i;
		x->n = end - i;
	}
}

/* ---- one pod per node ---- */

static void add_remove(struct daemon_plan *out, struct val pod) { out->remove[out->n_remove++] = pod; }
static void add_create(struct daemon_plan *out, str node) { out->create[out->n_create++] = node; }

static bool allows_surge(struct val set)
{
	struct val strategy = val_get(set, spec, updateStrategy), surge = val_get(strategy, rollingUpdate, maxSurge);
	return str_eq(val_str(strategy, type), STR("RollingUpdate")) && val_exists(surge) && scaled_value(surge, 1, true) > 0;
}

static bool is_available(const struct plan *p, struct val pod) { return pod_is_available(pod, p->min_ready_s, p->v->now_ns); }

/* Pods that ended go, failed ones at a pace that slows down. True for one that runs. */
static bool look_at_pod(struct plan *p, struct daemon_plan *out, struct place *x, struct val pod)
{
	bool failed = str_eq(val_str(pod, status, phase), STR("Failed")), succeeded = str_eq(val_str(pod, status, phase), STR("Succeeded"));

	if (val_has(pod, metadata, deletionTimestamp))
		return false;
	if (!failed && !succeeded)
		return true;
	int64_t wait = failed && p->v->wait_ns ? p->v->wait_ns(p->v->arg, x->name) : 0;
	if (wait > 0) {
		out->again_ns = out->again_ns ? MIN(out->again_ns, wait) : wait;
		return false;
	}
	out->ended[out->n_ended++] = (struct daemon_ended){ pod, x->name, failed };
	add_remove(out, pod);
	return false;
}

/* While new pods may come first a node may have one old and one new pod, until the new one is there or the old one is not ready. */
static void thin_out_surge(struct plan *p, struct daemon_plan *out, struct val *running, size_t n)
{
	struct val fresh = VAL_EMPTY, old = VAL_EMPTY;

	for (size_t i = 0; i < n; i++) {
		bool updated = str_eq(label_of(running[i], STR(DAEMON_HASH)), p->v->hash);
		struct val *slot = updated ? &fresh : &old;
		if (!val_exists(*slot))
			*slot = running[i];
		else
			add_remove(out, running[i]);
	}
	if (val_exists(fresh) && val_exists(old) && (!pod_is_ready(old) || is_available(p, fresh)))
		add_remove(out, old);
}

static void manage_place(struct plan *p, struct daemon_plan *out, struct place *x)
{
	struct val *running = ARENA_ARRAY(p->arena, struct val, x->n + 1);
	size_t n = 0;

	if (x->run && x->n == 0) {
		add_create(out, x->name);
		return;
	}
	if (!x->stay) {
		/* Pods of a node that is gone are the pod collector's, unless they were never bound. */
		for (size_t i = 0; i < x->n; i++)
			if (val_exists(x->node) ? !val_has(x->pods[i], metadata, deletionTimestamp) : !val_str(x->pods[i], spec, nodeName).n)
				add_remove(out, x->pods[i]);
		return;
	}
	for (size_t i = 0; i < x->n; i++)
		if (look_at_pod(p, out, x, x->pods[i]))
			running[n++] = x->pods[i];
	if (allows_surge(p->v->set)) {
		if (n == 0 && x->run)
			add_create(out, x->name);
		if (n > 1)
			thin_out_surge(p, out, running, n);
		return;
	}
	for (size_t i = 1; i < n; i++)
		add_remove(out, running[i]);
}

/* ---- updating ---- */

/* The one new and the one old pod of a node; false: there are more of a kind, which is not for the update to sort out. */
static bool find_both(const struct plan *p, const struct place *x, struct val *ret_new, struct val *ret_old)
{
	*ret_new = *ret_old = VAL_EMPTY;
	for (size_t i = 0; i < x->n; i++) {
		if (val_has(x->pods[i], metadata, deletionTimestamp))
			continue;
		struct val *slot = daemon_is_updated(p->v->set, x->pods[i], p->v->hash) ? ret_new : ret_old;
		if (val_exists(*slot))
			return false;
		*slot = x->pods[i];
	}
	return true;
}

static void update_in_place(struct plan *p, struct daemon_plan *out, int64_t max_unavailable)
{
	struct val *candidates = ARENA_ARRAY(p->arena, struct val, p->n_places + 1), fresh, old;
	int64_t unavailable = 0, n = 0;

	for (struct place *x = p->places; x < p->places + p->n_places; x++) {
		if (!x->run && !x->n)
			continue;
		if (!find_both(p, x, &fresh, &old) || val_exists(fresh) == val_exists(old)) {
			unavailable++;
		} else if (val_exists(fresh)) {
			unavailable += !is_available(p, fresh);
		} else if (!is_available(p, old)) {
			add_remove(out, old); /* nothing is lost with it */
			unavailable++;
		} else if (unavailable < max_unavailable) {
			candidates[n++] = old;
		}
	}
	for (int64_t i = 0; i < MIN(n, max_unavailable - unavailable); i++)
		add_remove(out, candidates[i]);
}

struct surge {
	str *candidates;             /* nodes */
	struct val *misplaced;       /* old pods on nodes that they may stay on but would not come to any more */
	int64_t n_candidates, n_misplaced, surge, available;
};

static void surge_place(struct plan *p, struct daemon_plan *out, struct place *x, int64_t max_surge, struct surge *s)
{
	struct val fresh, old;

	if (!find_both(p, x, &fresh, &old)) {
		s->surge++;
		return;
	}
	s->available += val_exists(old) ? is_available(p, old) : val_exists(fresh) && is_available(p, fresh);
	if (!val_exists(old))
		return;
	if (val_exists(fresh)) {
		if (is_available(p, fresh))
			add_remove(out, old);
		else
			s->surge++;
	} else if (!is_available(p, old)) {
		if (x->run)
			add_create(out, x->name);
		else
			add_remove(out, old);
	} else if (!x->run) {
		s->misplaced[s->n_misplaced++] = old;
	} else if (s->surge < max_surge) {
		s->candidates[s->n_candidates++] = x->name;
	}
}

static void update_by_surge(struct plan *p, struct daemon_plan *out, int64_t max_surge)
{
	struct surge s = { .candidates = ARENA_ARRAY(p->arena, str, p->n_places + 1), .misplaced = ARENA_ARRAY(p->arena, struct val, p->n_places + 1) };

	for (struct place *x = p->places; x < p->places + p->n_places; x++)
		if ((x->run || x->n) && val_exists(x->node))
			surge_place(p, out, x, max_surge, &s);
	for (int64_t i = 0; i < MIN(s.n_misplaced, s.available - p->desired); i++)
		add_remove(out, s.misplaced[i]);
	for (int64_t i = 0; i < MIN(s.n_candidates, max_surge - s.surge); i++)
		add_create(out, s.candidates[i]);
}

static void update(struct plan *p, struct daemon_plan *out)
{
	struct val strategy = val_get(p->v->set, spec, updateStrategy), rolling = val_get(strategy, rollingUpdate);

	if (!str_eq(val_str(strategy, type), STR("RollingUpdate")))
		return;
	int64_t surge = val_has(rolling, maxSurge) ? scaled_value(val_get(rolling, maxSurge), p->desired, true) : 0;
	int64_t unavailable = val_has(rolling, maxUnavailable) ? scaled_value(val_get(rolling, maxUnavailable), p->desired, true) : 0;
	if (surge < 0 || unavailable < 0)
		return;
	if (p->desired > 0 && surge == 0 && unavailable == 0)
		unavailable = 1;
	if (surge > 0)
		update_by_surge(p, out, surge);
	else
		update_in_place(p, out, unavailable);
}

static void plan_init(struct arena *a, const struct daemon_view *v, struct plan *p)
{
	*p = (struct plan){ .arena = a, .v = v, .min_ready_s = val_int(v->set, spec, minReadySeconds) };
	make_places(p);
}

void daemon_plan_make(struct arena *a, const struct daemon_view *v, struct daemon_plan *ret)
{
	struct plan p;
	size_t n_pods = val_len(v->pods);

	plan_init(a, v, &p);
	*ret = (struct daemon_plan){ 0 };
	ret->create = ARENA_ARRAY(a, str, p.n_places + 1);
	ret->remove = ARENA_ARRAY(a, struct val, n_pods + 1);
	ret->ended = ARENA_ARRAY(a, struct daemon_ended, n_pods + 1);
	for (size_t i = 0; i < p.n_places; i++)
		manage_place(&p, ret, &p.places[i]);
	if (!ret->n_create && !ret->n_remove)
		update(&p, ret);
	ret->n_create = MIN(ret->n_create, (size_t)DAEMON_BURST);
	ret->n_remove = MIN(ret->n_remove, (size_t)DAEMON_BURST);
}

/* ---- status ---- */

static const atom count_names[] = { A_currentNumberScheduled, A_numberMisscheduled, A_desiredNumberScheduled, A_numberReady,
				    A_updatedNumberScheduled, A_numberAvailable, A_numberUnavailable };

bool daemon_status_differs(struct val set, struct val status)
{
	struct val old = val_get(set, status);

	for (size_t i = 0; i < ARRAY_LEN(count_names); i++)
		if (val_as_int(val_member(old, count_names[i])) != val_as_int(val_member(status, count_names[i])))
			return true;
	return val_int(old, observedGeneration) < val_int(status, observedGeneration);
}

struct val daemon_status(struct arena *a, const struct daemon_view *v, bool observed)
{
	struct plan p;
	int64_t current = 0, misplaced = 0, ready = 0, updated = 0, available = 0;
	struct val status = val_get(v->set, status);

	plan_init(a, v, &p);
	for (const struct place *x = p.places; x < p.places + p.n_places; x++) {
		if (!x->n || !val_exists(x->node))
			continue;
		if (!x->run) {
			misplaced++;
			continue;
		}
		current++;
		ready += pod_is_ready(x->pods[0]);
		available += is_available(&p, x->pods[0]);
		updated += daemon_is_updated(v->set, x->pods[0], v->hash);
	}
	const int64_t n[] = { current, misplaced, p.desired, ready, updated, available, p.desired - available };
	for (size_t i = 0; i < ARRAY_LEN(count_names); i++)
		status = val_put(a, status, count_names[i], n[i] ? val_of_int(n[i]) : VAL_EMPTY);
	return observed ? val_with(a, status, val_get(v->set, metadata, generation), observedGeneration) : status;
}
