/*
 * Pods that match a selector shall be spread evenly over the values of a label of nodes. Numbers come from the counters, which follow the
 * table: a filter is one look per constraint, whatever the number of pods, and pods that are tried on nodes or taken off them (preemption,
 * nominations) are in the numbers without add_pod and remove_pod.
 *
 * Kubernetes' peculiarities that are kept: an empty selector counts no pod though it matches the new one, and pods that are being deleted do not
 * count, but both do when they are tried on nodes or taken off them; a node is only counted when it has the labels of all constraints of the pod;
 * without a controller or service nothing is spread by default.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "machinery/names.h"
#include "scheduler/counters.h"
#include "scheduler/plugin.h"
#include "scheduler/scheduler_priv.h"
#include "scheduler/score.h"

#define REASON "node(s) didn't match pod topology spread constraints"
#define HOSTNAME "kubernetes.io/hostname"

struct config {
	bool system;                  /* defaultingType System */
	struct frozen *defaults;      /* defaultConstraints; NULL: none */
};

static const struct config default_config = { .system = true };

struct constraint {
	struct topo *topo;
	struct pick *pick;            /* NULL: counts nothing */
	struct tally *tally;          /* NULL: counts nothing, or by node */
	struct scope *scope;          /* NULL: by node */
	struct selector selector;
	uint32_t tried;               /* a domain that has more than is counted, by pods that are tried there */
	int64_t more;
	bool self;                    /* the pod counts itself */
	bool by_node;                 /* ScheduleAnyway of host names: what is on the node alone */
	bool few;                     /* there are less domains than minDomains: the least counts as 0 */
	int64_t max_skew, min_domains;
	double weight;
};

struct spread {
	size_t n;
	struct constraint *all;
	bool require_all;             /* nodes must have all labels */
};

static const struct config *config_of(const struct cycle *c)
{
	const struct config *k = c->config ? c->config[c->at] : NULL;
	return k ? k : &default_config;
}

/* ---- constraints ---- */

static bool is_action(struct val constraint, str action) { return str_eq(val_str(constraint, whenUnsatisfiable), action); }

/* The constraint's selector, with the pod's own values of matchLabelKeys. */
static int selector_of(const struct cycle *c, struct val constraint, struct val pod, struct selector *ret, struct err *err)
{
	struct arena *a = c->arena;
	struct val keys = val_get(constraint, matchLabelKeys), labels = val_get(pod, metadata, labels);
	int r = selector_of_object(a, val_get(constraint, labelSelector), ret, err);

	if (r < 0 || ret->nothing || !val_len(keys) || !scheduler_gate(c->scheduler, "MatchLabelKeysInPodTopologySpread"))
		return r;
	struct requirement *all = ARENA_ARRAY(a, struct requirement, ret->n + val_len(keys));
	size_t n = 0;
	for (; n < ret->n; n++)
		all[n] = ret->all[n];
	VAL_EACH(key, keys) {
		struct val label = val_find(labels, val_as_str(*key));
		if (!val_is(label, VAL_STRING))
			continue;
		str *value = ARENA_NEW(a, str);
		*value = val_as_str(label);
		all[n++] = (struct requirement){ .key = atom_make(a, val_as_str(*key)), .op = SELECTOR_EQUALS, .n_values = 1, .values = value };
	}
	*ret = selector_of_requirements(a, all, n);
	return 0;
}

/* What the system spreads by, when it decides. */
static struct val system_constraints(struct arena *a)
{
	struct val anyway = VAL_LIT("ScheduleAnyway");
	return LIST(a, OBJECT(a, F(maxSkew, val_of_int(3)), F(topologyKey, VAL_LIT(HOSTNAME)), F(whenUnsatisfiable, anyway)),
		    OBJECT(a, F(maxSkew, val_of_int(5)), F(topologyKey, VAL_LIT("topology.kubernetes.io/zone")), F(whenUnsatisfiable, anyway)));
}

/*
 * The constraints that apply: the pod's own, else the profile's with the selector that follows from services and controllers. *ret_selector is
 * NULL for the pod's own.
 */
static struct val constraints_of(struct cycle *c, struct val pod, const struct placed *p, str action, struct selector **ret_selector)
{
	const struct config *config = config_of(c);
	struct val own = val_get(pod, spec, topologySpreadConstraints), list;
	bool any = false;

	*ret_selector = NULL;
	if (val_len(own))
		return own;
	if (config->system && str_eq(action, STR("DoNotSchedule")))
		return VAL_EMPTY;
	list = config->system ? system_constraints(c->arena) : config->defaults ? config->defaults->val : VAL_EMPTY;
	VAL_EACH(k, list)
		any |= is_action(*k, action);
	*ret_selector = ARENA_NEW(c->arena, struct selector);
	return any && p && counters_default_selector(c->nodes->counters, c->arena, pod, p, *ret_selector) ? list : VAL_EMPTY;
}

static bool honours(struct val constraint, atom policy, bool by_default)
{
	str says = val_as_str(val_member(constraint, policy));
	return says.n ? str_eq(says, STR("Honor")) : by_default;
}

/* Everything but scopes, which need all labels. */
static int constraint_read(struct cycle *c, struct val v, const struct selector *given, struct constraint *ret, struct err *err)
{
	struct counters *k = c->nodes->counters;
	struct selector s = given ? *given : SELECTOR_NOTHING;
	str namespace = val_str(c->pod, metadata, namespace);
	int r = given ? 0 : selector_of(c, v, c->pod, &s, err);

	if (r < 0)
		return r;
	*ret = (struct constraint){ .topo = counters_topo(k, val_str(v, topologyKey)), .max_skew = val_int(v, maxSkew),
				    .min_domains = val_has(v, minDomains) ? val_int(v, minDomains) : 1,
				    .self = selector_matches(&s, val_get(c->pod, metadata, labels)), .selector = s };
	struct pick_part part = { .namespaces = &namespace, .n_namespaces = 1, .labels = s };
	if (s.n)
		ret->pick = counters_pick(k, &(struct pick_spec){ .parts = &part, .n = 1, .living = true });
	return 0;
}

static void constraint_count(struct cycle *c, struct val v, const struct spread *s, struct topo *const *keys, struct constraint *x)
{
	struct scope_spec spec = { .keys = keys, .n_keys = s->require_all ? s->n : 0, .affinity = honours(v, A_nodeAffinityPolicy, true),
				   .taints = honours(v, A_nodeTaintsPolicy, false) };

	x->scope = counters_scope(c->nodes->counters, x->topo, &spec, c->pod);
	x->few = (int64_t)scope_domains(x->scope) < x->min_domains;
	if (x->pick)
		x->tally = counters_tally(c->nodes->counters, x->pick, x->topo, x->scope);
}

/* 1: there are constraints with this action; 0: none; < 0: a selector is not valid. */
static int spread_read(struct cycle *c, str action, struct spread *ret, struct err *err)
{
	struct selector *given;
	struct val list = constraints_of(c, c->pod, c->placed, action, &given);
	struct constraint *all = ARENA_ARRAY(c->arena, struct constraint, val_len(list) + (size_t)1);
	struct topo **keys = ARENA_ARRAY(c->arena, struct topo *, val_len(list) + (size_t)1);
	bool soft = str_eq(action, STR("ScheduleAnyway"));
	size_t n = 0;

	*ret = (struct spread){ .all = all, .require_all = !given || !config_of(c)->system };
	VAL_EACH(v, list)
		if (is_action(*v, action)) {
			int r = constraint_read(c, *v, given, &all[n], err);
			if (r < 0)
				return r;
			keys[n] = all[n].topo;
			n++;
		}
	ret->n = n;
	n = 0;
	VAL_EACH(v, list)
		if (is_action(*v, action)) {
			all[n].by_node = soft && str_eq(val_str(*v, topologyKey), STR(HOSTNAME));
			if (!all[n].by_node)
				constraint_count(c, *v, ret, keys, &all[n]);
			n++;
		}
	return n > 0;
}

/* ---- filter ---- */

static enum verdict spread_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	struct spread *s = ARENA_NEW(c->arena, struct spread);
	struct err err = ERR_INIT;

	int r = spread_read(c, STR("DoNotSchedule"), s, &err);
	if (r < 0) {
		c->reason = arena_printf(c->arena, "get constraints from pod: obtaining pod's hard topology spread constraints: " STR_FMT,
					 STR_ARG(err_str(&err)));
		return FAILED;
	}
	*ret_state = s;
	*ret_skip = r == 0;
	return FIT;
}

/* Beyond what is counted. Only one node is tried at a time. */
static void spread_try(struct cycle *c, const struct spread *s, const struct placed *p, uint32_t node, int by)
{
	for (size_t i = 0; i < s->n && p->namespace == c->placed->namespace; i++) {
		struct constraint *x = &s->all[i];
		if ((x->tally && !p->deleting) || !scope_has(x->scope, node) ||
		    !selector_matches(&x->selector, val_get(p->pod->val, metadata, labels)))
			continue;
		x->tried = x->topo->of[node];
		x->more += by;
	}
}

static void spread_add_pod(struct cycle *c, void *state, const struct placed *p, uint32_t node) { spread_try(c, state, p, node, 1); }

static void spread_remove_pod(struct cycle *c, void *state, const struct placed *p, uint32_t node) { spread_try(c, state, p, node, -1); }

/* Of all domains. */
static int64_t least_of(const struct constraint *x)
{
	int64_t counted = x->tally ? tally_min(x->tally) : 0, tried = x->more + (x->tally ? tally_at(x->tally, x->tried) : 0);

	return x->more < 0 ? MIN(counted, tried) : x->more && scope_domains(x->scope) == 1 ? tried : counted;
}

static enum verdict spread_filter(struct cycle *c, void *state, uint32_t node)
{
	const struct spread *s = state;

	for (size_t i = 0; i < s->n; i++) {
		const struct constraint *x = &s->all[i];
		uint32_t domain = x->topo->of[node];
		if (!domain) {
			c->reason = STR(REASON " (missing required label)");
			return UNRESOLVABLE;
		}
		int64_t here = (x->tally ? tally_at(x->tally, domain) : 0) + (x->tried == domain ? x->more : 0);
		if (here + x->self - (x->few ? 0 : least_of(x)) > x->max_skew) {
			c->reason = STR(REASON);
			return UNSCHEDULABLE;
		}
	}
	return FIT;
}

/* ---- score ---- */

static bool has_labels(const struct spread *s, uint32_t node)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->all[i].topo->of[node])
			return false;
	return true;
}

static bool spread_pre_score(struct cycle *c, void **ret_state, const uint32_t *nodes, size_t n)
{
	struct spread *s = ARENA_NEW(c->arena, struct spread);

	if (spread_read(c, STR("ScheduleAnyway"), s, NULL) <= 0)
		return false;
	uint32_t *counted = ARENA_ARRAY(c->arena, uint32_t, n + 1);
	size_t n_counted = 0;
	for (size_t i = 0; i < n; i++)
		if (!s->require_all || has_labels(s, nodes[i]))
			counted[n_counted++] = nodes[i];
	for (size_t i = 0; i < s->n; i++) {
		struct constraint *x = &s->all[i];
		size_t size = x->by_node ? n_counted : topo_distinct(x->topo, counted, n_counted);
		x->weight = log((double)(size + 2)); /* so that many small domains do not drown a few large ones */
	}
	*ret_state = s;
	return true;
}

static int64_t score_node(struct cycle *c, const struct spread *s, uint32_t node)
{
	double score = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct constraint *x = &s->all[i];
		int64_t count = 0;
		if (!x->topo->of[node])
			continue;
		if (x->by_node)
			count = x->pick ? counters_on_node(c->nodes->counters, x->pick, node) : 0;
		else if (x->tally)
			count = tally_on(x->tally, node);
		score += (double)count * x->weight + (double)(x->max_skew - 1);
	}
	return (int64_t)round(score);
}

static void spread_score(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores)
{
	const struct spread *s = state;
	int64_t low = INT64_MAX, high = 0;

	for (size_t i = 0; i < n; i++) {
		scores[i] = -1;
		if (s->require_all && !has_labels(s, nodes[i]))
			continue;
		scores[i] = score_node(c, s, nodes[i]);
		low = MIN(low, scores[i]);
		high = MAX(high, scores[i]);
	}
	for (size_t i = 0; i < n; i++)
		scores[i] = scores[i] < 0 ? 0 : high == 0 ? SCORE_MAX : SCORE_MAX * (high + low - scores[i]) / high;
}

/* ---- what may help a pod that was refused ---- */

static bool involved(struct val changed, struct val pod)
{
	if (str_eq(val_str(changed, metadata, uid), val_str(pod, metadata, uid)))
		return true;
	return (val_str(changed, spec, nodeName).n || val_str(changed, status, nominatedNodeName).n) &&
	       str_eq(val_str(changed, metadata, namespace), val_str(pod, metadata, namespace));
}

static bool matches(struct cycle *c, struct val constraint, const struct selector *given, struct val pod, struct val other)
{
	struct selector s;

	if (given)
		s = *given;
	else if (selector_of(c, constraint, pod, &s, NULL) < 0)
		return false;
	return selector_matches(&s, val_get(other, metadata, labels));
}

static bool pod_hint(struct cycle *c, struct val pod, struct val list, const struct selector *given, struct val old, struct val new)
{
	bool both = val_exists(old) && val_exists(new);

	if ((val_exists(new) && !involved(new, pod)) || (val_exists(old) && !involved(old, pod)))
		return false;
	if (both && str_eq(val_str(new, metadata, uid), val_str(pod, metadata, uid)) &&
	    !val_equal(val_get(old, spec, tolerations), val_get(new, spec, tolerations)))
		VAL_EACH(k, list)
			if (is_action(*k, STR("DoNotSchedule")) && honours(*k, A_nodeTaintsPolicy, false))
				return true;
	VAL_EACH(k, list) {
		if (!is_action(*k, STR("DoNotSchedule")))
			continue;
		bool before = val_exists(old) && matches(c, *k, given, pod, old), after = val_exists(new) && matches(c, *k, given, pod, new);
		if (both ? before != after : before || after)
			return true;
	}
	return false;
}

static bool node_has_keys(struct val node, struct val list)
{
	if (!val_exists(node))
		return false;
	VAL_EACH(k, list)
		if (is_action(*k, STR("DoNotSchedule")) && !val_exists(val_find(val_get(node, metadata, labels), val_str(*k, topologyKey))))
			return false;
	return true;
}

static bool node_hint(struct val list, struct val old, struct val new)
{
	bool before = node_has_keys(old, list), after = node_has_keys(new, list);

	if (!val_exists(old) || !val_exists(new) || before != after)
		return before || after;
	if (!after)
		return false;
	VAL_EACH(k, list) {
		str key = val_str(*k, topologyKey);
		if (is_action(*k, STR("DoNotSchedule")) && !str_eq(val_as_str(val_find(val_get(old, metadata, labels), key)),
								 val_as_str(val_find(val_get(new, metadata, labels), key))))
			return true;
	}
	return !val_equal(val_get(old, spec, taints), val_get(new, spec, taints));
}

static bool spread_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	struct selector *given;
	struct val list = constraints_of(c, pod, c->placed, STR("DoNotSchedule"), &given);

	/* Refused by constraints of the profile, whose selector is not known without the pod's words. */
	if (given && !c->placed)
		return true;
	if (event & (EV_POD_ADD | EV_POD_DELETE | EV_POD_LABEL | EV_POD_TOLERATION))
		return pod_hint(c, pod, list, given, old, new);
	return node_hint(list, old, new);
}

/* ---- arguments ---- */

static void check_constraint(struct field_errors *e, const struct field_path *at, struct val v)
{
	static const str actions[] = { STR_INIT("DoNotSchedule"), STR_INIT("ScheduleAnyway"), { NULL, 0 } };
	str key = val_str(v, topologyKey), action = val_str(v, whenUnsatisfiable);

	if (val_int(v, maxSkew) <= 0)
		field_invalid(e, FIELD(at, "maxSkew"), val_of_int(val_int(v, maxSkew)), "not in valid range (0, inf)");
	if (!key.n)
		field_required(e, FIELD(at, "topologyKey"), "can not be empty");
	else
		(void)selector_check_key(e, FIELD(at, "topologyKey"), key);
	if (!action.n)
		field_required(e, FIELD(at, "whenUnsatisfiable"), "can not be empty");
	else if (!str_eq(action, actions[0]) && !str_eq(action, actions[1]))
		field_not_supported(e, FIELD(at, "whenUnsatisfiable"), val_of_str(action), actions);
	if (!val_is_nil(val_get(v, labelSelector)))
		field_forbidden(e, FIELD(at, "labelSelector"), "constraint must not define a selector, as they deduced for each pod");
}

static void check_repeated(struct field_errors *e, const struct field_path *at, struct val list, size_t i)
{
	struct val v = val_at(list, i);

	for (size_t k = 0; k < i; k++) {
		struct val other = val_at(list, k);
		if (!str_eq(val_str(other, topologyKey), val_str(v, topologyKey)) ||
		    !str_eq(val_str(other, whenUnsatisfiable), val_str(v, whenUnsatisfiable)))
			continue;
		field_duplicate(e, FIELD_INDEX(at, i), val_of_str(arena_printf(e->arena, "{" STR_FMT ", " STR_FMT "}", STR_ARG(val_str(v, topologyKey)),
									      STR_ARG(val_str(v, whenUnsatisfiable)))));
		return;
	}
}

static int spread_configure(struct val args, void **ret_config, struct err *err)
{
	static const str types[] = { STR_INIT("System"), STR_INIT("List"), { NULL, 0 } };
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct val list = val_get(args, defaultConstraints);
	str type = val_has(args, defaultingType) ? val_str(args, defaultingType) : types[0];
	struct field_errors e;

	field_errors_init(&e, &arena);
	if (!str_eq(type, types[0]) && !str_eq(type, types[1]))
		field_not_supported(&e, FIELD(NULL, "defaultingType"), val_of_str(type), types);
	else if (str_eq(type, types[0]) && val_len(list))
		field_invalid(&e, FIELD(NULL, "defaultingType"), val_of_str(type), "when .defaultConstraints are not empty");
	for (size_t i = 0; i < val_len(list); i++) {
		check_constraint(&e, FIELD_INDEX(FIELD(NULL, "defaultConstraints"), i), val_at(list, i));
		check_repeated(&e, FIELD(NULL, "defaultConstraints"), list, i);
	}
	if (e.n)
		return err_set(err, ERR_INVALID, STR_FMT, STR_ARG(field_errors_plain(&e)));
	struct config *config = mem_zalloc(sizeof(*config));
	config->system = str_eq(type, types[0]);
	config->defaults = val_len(list) ? val_freeze(list) : NULL;
	*ret_config = config;
	return 0;
}

static void spread_config_free(void *config)
{
	if (config)
		frozen_unref(((struct config *)config)->defaults);
	free(config);
}

const struct plugin plugin_pod_topology_spread = {
	.name = "PodTopologySpread",
	.weight = 2,
	.events = EV_POD_ADD | EV_POD_LABEL | EV_POD_DELETE | EV_POD_TOLERATION | EV_NODE_ADD | EV_NODE_LABEL | EV_NODE_TAINT |
		  EV_NODE_DELETE,
	.hint = spread_hint,
	.pre_filter = spread_pre_filter,
	.filter = spread_filter,
	.add_pod = spread_add_pod,
	.remove_pod = spread_remove_pod,
	.pre_score = spread_pre_score,
	.score = spread_score,
	.configure = spread_configure,
	.config_free = spread_config_free,
};
