/*
 * PodDisruptionBudgets: how many pods may be disrupted is kept in their status, where evictions take it from. A budget that cannot be computed
 * allows none. Keys "pod:namespace/name" are pods that were told that they will be disrupted and are still there after two minutes.
 */
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/disruption_plan.h"
#include "controllers/moment.h"
#include "controllers/owner.h"
#include "machinery/selector.h"

#define STALE "pod:"

enum { REPLY_MAX = 4 << 20 };

struct disruption {
	struct informer *budgets, *pods, *replica_sets, *deployments, *stateful_sets, *replication_controllers;
};

/* One sync of a budget. */
struct work {
	struct controller *c;
	struct disruption *s;
	struct arena *arena;
	struct val pdb, pods;
	str key;
};

/* ---- what changes concern ---- */

static void look_for_stale(struct controller *c, struct arena *a, struct val pod)
{
	int64_t wait;
	if (disruption_is_stale(pod, clock_wall_ns(), &wait))
		controller_add_after(c, arena_join(a, STR(STALE), object_key(a, pod)), moment_wait_ms(wait));
}

static void add_budgets(struct controller *c, struct arena *a, struct val pod)
{
	const struct disruption *s = c->state;
	struct selector selector;
	size_t n = 0;
	str first = STR_NONE;

	INFORMER_EACH(pdb, informer_each_indexed(s->budgets, "namespace", val_str(pod, metadata, namespace))) {
		if (selector_of_object(a, val_get(pdb->val, spec, selector), &selector, NULL) < 0 ||
		    !selector_matches(&selector, val_get(pod, metadata, labels)))
			continue;
		if (n++ == 0)
			first = arena_str(a, val_str(pdb->val, metadata, name));
		controller_add(c, object_key(a, pdb->val));
	}
	if (n > 1)
		controller_event(c, pod, true, "MultiplePodDisruptionBudgets",
				 "Pod \"" STR_FMT "\"/\"" STR_FMT "\" matches multiple PodDisruptionBudgets.  Chose \"" STR_FMT "\" arbitrarily.",
				 STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(val_str(pod, metadata, name)), STR_ARG(first));
}

static void pod_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	add_budgets(c, &a, (object ? object : old)->val);
	if (old && object && !val_equal(val_get(old->val, metadata, labels), val_get(object->val, metadata, labels)))
		add_budgets(c, &a, old->val);
	if (object)
		look_for_stale(c, &a, object->val);
}

/* ---- how many pods there should be ---- */

static struct frozen *find(struct work *w, struct informer *i, struct val ref, str kind, str group)
{
	str version, head, namespace = val_str(w->pdb, metadata, namespace);

	if (!str_eq(val_str(ref, kind), kind))
		return NULL;
	if (!str_cut(val_str(ref, apiVersion), '/', &head, &version))
		head = STR_NONE;
	if (!str_eq(head, group))
		return NULL;
	struct frozen *object = informer_get(i, arena_printf(w->arena, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(val_str(ref, name))));
	return object && str_eq(val_str(object->val, metadata, uid), val_str(ref, uid)) ? object : NULL;
}

/* The kind that scales the pods of a reference, as our copies show it: a Deployment stands above its ReplicaSets. */
static struct frozen *find_known(struct work *w, struct val ref)
{
	const struct disruption *s = w->s;
	struct frozen *object;

	if ((object = find(w, s->replication_controllers, ref, STR("ReplicationController"), STR_NONE)) ||
	    (object = find(w, s->stateful_sets, ref, STR("StatefulSet"), STR("apps"))))
		return object;
	if (!(object = find(w, s->replica_sets, ref, STR("ReplicaSet"), STR("apps"))))
		return NULL;
	struct val above = owner_controller(object->val);
	return str_eq(val_str(above, kind), STR("Deployment")) ? find(w, s->deployments, above, STR("Deployment"), STR("apps")) : object;
}

static int get_json(struct work *w, str path, struct val *ret, struct err *err)
{
	str text;
	int r = client_get_raw(w->c->client, w->arena, path, REPLY_MAX, &text, err);
	return r < 0 ? r : json_decode(w->arena, text, &(struct json_decode_options){ 0 }, ret, err);
}

/* The name of a kind's resource, and whether it can be scaled. */
static int find_resource(struct work *w, struct val ref, str *ret_name, bool *ret_scales, struct err *err)
{
	str version = val_str(ref, apiVersion), kind = val_str(ref, kind);
	struct val list;
	bool core = str_find(version, STR("/")) < 0;
	int r = get_json(w, arena_printf(w->arena, "/%s/" STR_FMT, core ? "api" : "apis", STR_ARG(version)), &list, err);

	if (r < 0)
		return r;
	*ret_name = STR_NONE;
	*ret_scales = false;
	VAL_EACH(x, val_get(list, resources))
		if (str_eq(val_str(*x, kind), kind) && str_find(val_str(*x, name), STR("/")) < 0)
			*ret_name = val_str(*x, name);
	if (!ret_name->n)
		return err_set(err, ERR_NOT_FOUND, "no matches for kind \"" STR_FMT "\" in version \"" STR_FMT "\"", STR_ARG(kind), STR_ARG(version));
	str scale = arena_join(w->arena, *ret_name, STR("/scale"));
	VAL_EACH(x, val_get(list, resources))
		*ret_scales |= str_eq(val_str(*x, name), scale);
	return 0;
}

/* What may stand between two slashes of a path as it is: owner references are what the maker of a pod wrote. */
static bool is_segment(str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '_' && c != ':')
			return false;
	}
	return s.n && !str_eq(s, STR(".")) && !str_eq(s, STR(".."));
}

/* Whether paths can be made of its version and name. */
static bool is_plain(struct val ref)
{
	str group, version;
	bool core = !str_cut(val_str(ref, apiVersion), '/', &group, &version);

	return is_segment(group) && (core || is_segment(version)) && is_segment(val_str(ref, name));
}

/* (suspends) 1: the scale subresource of any other kind says so; 0: that object is gone. */
static int ask_scale(struct work *w, struct val ref, int64_t *ret, struct err *err)
{
	str name, version = val_str(ref, apiVersion), group = STR_NONE, rest;
	struct val scale;
	bool scales;
	int r = 0;

	if (!is_plain(ref) || (r = find_resource(w, ref, &name, &scales, err)) < 0)
		return r;
	bool core = !str_cut(version, '/', &group, &rest);
	if (!scales)
		return err_set(err, ERR_NOT_FOUND, STR_FMT "%s" STR_FMT " does not implement the scale subresource", STR_ARG(name), core ? "" : ".",
			       STR_ARG(core ? STR_NONE : group));
	str path = arena_printf(w->arena, "/%s/" STR_FMT "/namespaces/" STR_FMT "/" STR_FMT "/" STR_FMT "/scale", core ? "api" : "apis", STR_ARG(version),
				STR_ARG(val_str(w->pdb, metadata, namespace)), STR_ARG(name), STR_ARG(val_str(ref, name)));
	if ((r = get_json(w, path, &scale, err)) < 0)
		return r == -ERR_NOT_FOUND ? 0 : r;
	*ret = val_int(scale, spec, replicas);
	return str_eq(val_str(scale, metadata, uid), val_str(ref, uid));
}

/* True the first time. The uid must outlive the map; mark: anything. */
static bool see(struct map *seen, str uid, void *mark) { return !map_put(seen, uid, mark); }

/* (suspends) The sum of what the controllers of the pods want; *ret_unmanaged: there are pods without one. */
static int sum_scales(struct work *w, int64_t *ret, bool *ret_unmanaged, struct err *err)
{
	CLEANUP(map_done) struct map refs = MAP_INIT, owners = MAP_INIT; /* controllers that were counted already, by uid */

	map_init(&refs);
	map_init(&owners);
	*ret = 0;
	*ret_unmanaged = false;
	VAL_EACH(pod, w->pods) {
		struct val ref = owner_controller(*pod);
		int64_t replicas = 0;
		if (!val_exists(ref)) {
			*ret_unmanaged = true;
			continue;
		}
		if (!see(&refs, val_str(ref, uid), w))
			continue;
		struct frozen *known = find_known(w, ref);
		if (known) {
			if (see(&owners, arena_str(w->arena, val_str(known->val, metadata, uid)), w))
				*ret += val_int(known->val, spec, replicas);
			continue;
		}
		int r = ask_scale(w, ref, &replicas, err);
		if (r < 0)
			return r;
		if (r == 0)
			return err_set(err, ERR_NOT_FOUND, "found no controllers for pod \"" STR_FMT "\"", STR_ARG(val_str(*pod, metadata, name)));
		*ret += replicas;
	}
	return 0;
}

/* ---- one look ---- */

static int write_status(struct work *w, struct val status, struct err *err)
{
	const struct client_write_options o = { .subresource = STR("status") };

	if (!disruption_status_differs(w->pdb, status))
		return 0;
	return client_update(w->c->client, TYPE(policy_v1, PodDisruptionBudget), val_with(w->arena, w->pdb, status, status), &o, NULL, err);
}

static int find_pods(struct work *w, struct err *err)
{
	struct val_builder b = val_builder(w->arena);
	struct selector selector;
	int r = selector_of_object(w->arena, val_get(w->pdb, spec, selector), &selector, err);

	if (r < 0) {
		controller_event(w->c, w->pdb, true, "NoPods", "Failed to get pods: %s", err->msg);
		return r;
	}
	INFORMER_EACH(pod, informer_each_indexed(w->s->pods, "namespace", val_str(w->pdb, metadata, namespace)))
		if (selector_matches(&selector, val_get(pod->val, metadata, labels)))
			val_add_item(&b, controller_hold(w->c, w->arena, pod));
	w->pods = val_end_list(&b);
	if (!val_len(w->pods))
		controller_event(w->c, w->pdb, false, "NoPods", "No matching pods found");
	return 0;
}

static int expect(struct work *w, struct disruption_view *v, struct err *err)
{
	int64_t scale = 0;
	bool unmanaged = false;
	int r = disruption_needs_scale(w->pdb) ? sum_scales(w, &scale, &unmanaged, err) : 0;

	if (r >= 0)
		r = disruption_expect(w->pdb, val_len(w->pods), scale, &v->expected, &v->healthy, err);
	if (r < 0) {
		controller_event(w->c, w->pdb, true, "CalculateExpectedPodCountFailed", "Failed to calculate the number of expected pods: %s", err->msg);
		return r;
	}
	if (unmanaged)
		controller_event(w->c, w->pdb, true, "UnmanagedPods",
				 "Pods selected by this PodDisruptionBudget (selector: " STR_FMT ") were found to be unmanaged. As a result, the status "
				 "of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
				 "set \".spec.minAvailable\" field of the PDB to an integer value.",
				 STR_ARG(disruption_selector_text(w->arena, val_get(w->pdb, spec, selector))));
	return 0;
}

static int try_sync(struct work *w, struct err *err)
{
	struct disruption_view v = { .pdb = w->pdb };
	int64_t again_ns;
	struct val kept;
	str namespace = val_str(w->pdb, metadata, namespace);
	int r;

	if ((r = find_pods(w, err)) < 0 || (r = expect(w, &v, err)) < 0)
		return r;
	v.pods = w->pods;
	v.now_ns = clock_wall_ns();
	struct val status = disruption_status(w->arena, &v, &again_ns, &kept);
	VAL_EACH(pod, kept) /* 1.36 names the namespace twice */
		controller_event(w->c, *pod, true, "NotDeleted", "Pod was expected by PDB " STR_FMT "/" STR_FMT " to be deleted but it wasn't",
				 STR_ARG(namespace), STR_ARG(namespace));
	if ((r = write_status(w, status, err)) >= 0 && again_ns)
		controller_add_after(w->c, w->key, moment_wait_ms(again_ns));
	return r;
}

static struct val take_back(struct arena *a, struct val live, void *arg)
{
	int64_t wait, now_ns = *(const int64_t *)arg;
	return disruption_is_stale(live, now_ns, &wait) && wait == 0 ? disruption_take_back(a, live, now_ns) : VAL_EMPTY;
}

static int sync_stale(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct disruption *s = c->state;
	struct frozen *pod = informer_get(s->pods, key);
	int64_t wait, now_ns = clock_wall_ns();

	if (!pod || !disruption_is_stale(pod->val, now_ns, &wait))
		return 0;
	if (wait > 0) {
		controller_add_after(c, arena_join(a, STR(STALE), key), moment_wait_ms(wait));
		return 0;
	}
	return controller_update(c, TYPE(core_v1, Pod), controller_hold(c, a, pod), "status", take_back, &now_ns, NULL, err);
}

static int disruption_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct disruption *s = c->state;

	if (str_starts(key, STR(STALE)))
		return sync_stale(c, a, str_skip(key, sizeof(STALE) - 1), err);
	struct frozen *pdb = informer_get(s->budgets, key);
	if (!pdb)
		return 0;
	struct work w = { .c = c, .s = s, .arena = a, .pdb = controller_hold(c, a, pdb), .key = key };
	int r = try_sync(&w, err);
	if (r >= 0 || r == -ERR_CONFLICT || r == -ERR_CANCELED)
		return r;
	struct val status = disruption_failed_status(a, w.pdb, arena_str(a, err_str(err)), clock_wall_ns());
	return write_status(&w, status, err);
}

static void disruption_stop(struct controller *c) { free(c->state); }

static int disruption_start(struct controller *c, struct err *err)
{
	struct disruption *s = mem_zalloc(sizeof(*s));

	(void)err;
	c->state = s;
	c->sync = disruption_sync;
	s->budgets = controller_informer(c, TYPE(policy_v1, PodDisruptionBudget));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	s->replica_sets = controller_informer(c, TYPE(apps_v1, ReplicaSet));
	s->deployments = controller_informer(c, TYPE(apps_v1, Deployment));
	s->stateful_sets = controller_informer(c, TYPE(apps_v1, StatefulSet));
	s->replication_controllers = controller_informer(c, TYPE(core_v1, ReplicationController));
	informer_index(s->budgets, "namespace", informer_by_namespace);
	informer_index(s->pods, "namespace", informer_by_namespace);
	controller_watch(c, s->budgets, controller_key_self);
	controller_watch(c, s->pods, pod_changed);
	return 0;
}

const struct controller_kind controller_disruption = { .name = "disruption-controller", .source = "controllermanager", .start = disruption_start, .workers = 5,
						       .stop = disruption_stop };
