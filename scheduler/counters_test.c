/* Random clusters that change at random: what the counters say through the plugins is what plain loops over all pods say. */
#include "base/random.h"
#include "codec/atoms.h"
#include "scheduler/counters_priv.h"
#include "scheduler/plugin_testing.h"
#include "scheduler/reference_testing.h"

enum { NODES = 9, PODS = 60, STEPS = 120, SEEDS = 12 };

static const char *const apps[] = { "web", "db", "cache" };
static const char *const spaces[] = { "a", "b", "c" };
static const char *const keys[] = { "zone", "kubernetes.io/hostname", "rack", "topology.kubernetes.io/zone" };

#define ONE(array) (array)[random_below(ARRAY_LEN(array))]

struct town {
	struct nodes table;
	struct arena arena;           /* of one step */
	struct placed *pods[PODS];
	struct frozen *nodes[NODES], *namespaces[ARRAY_LEN(spaces)], *services[4], *owners[3];
	uint64_t made;
};

static bool chance(unsigned percent) { return random_below(100) < percent; }

static struct frozen *object(struct town *w, const struct type *type, const struct buf *text)
{
	return val_freeze(testing_typed(&w->arena, type, arena_str(&w->arena, buf_str(text)).p));
}

/* ---- making ---- */

static void add_selector(struct buf *b, const char *name)
{
	switch (random_below(6)) {
	case 0: buf_addf(b, "'%s':{'matchExpressions':[{'key':'tier','operator':'Exists'}]}", name); break;
	case 1: buf_addf(b, "'%s':{'matchExpressions':[{'key':'app','operator':'NotIn','values':['web']}]}", name); break;
	case 2: buf_addf(b, "'%s':{'matchExpressions':[{'key':'app','operator':'In','values':['web','db']}]}", name); break;
	case 3: buf_addf(b, "'%s':{}", name); break;
	default: buf_addf(b, "'%s':{'matchLabels':{'app':'%s'}}", name, ONE(apps)); break;
	}
}

static void add_term(struct buf *b)
{
	buf_addf(b, "{'topologyKey':'%s'", ONE(keys));
	if (chance(90)) {
		buf_addf(b, ",");
		add_selector(b, "labelSelector");
	}
	if (chance(20))
		buf_addf(b, ",'namespaces':['%s','%s']", ONE(spaces), ONE(spaces));
	if (chance(15))
		buf_addf(b, ",'namespaceSelector':{%s}", chance(50) ? "'matchLabels':{'team':'x'}" : chance(50) ? "" :
			 "'matchExpressions':[{'key':'team','operator':'DoesNotExist'}]");
	buf_addf(b, "}");
}

static void add_terms(struct buf *b, bool required, bool preferred)
{
	buf_addf(b, "{'requiredDuringSchedulingIgnoredDuringExecution':[");
	for (uint64_t i = 0, n = required ? random_below(3) : 0; i < n; i++) {
		buf_addf(b, "%s", i ? "," : "");
		add_term(b);
	}
	buf_addf(b, "],'preferredDuringSchedulingIgnoredDuringExecution':[");
	for (uint64_t i = 0, n = preferred ? random_below(3) : 0; i < n; i++) {
		buf_addf(b, "%s{'weight':%llu,'podAffinityTerm':", i ? "," : "", (unsigned long long)random_below(100) + 1);
		add_term(b);
		buf_addf(b, "}");
	}
	buf_addf(b, "]}");
}

static void add_constraints(struct buf *b)
{
	buf_addf(b, ",'topologySpreadConstraints':[");
	for (uint64_t i = 0, n = random_below(3) + 1; i < n; i++) {
		buf_addf(b, "%s{'maxSkew':%llu,'topologyKey':'%s','whenUnsatisfiable':'%s'", i ? "," : "", (unsigned long long)random_below(3) + 1,
			 ONE(keys), chance(50) ? "DoNotSchedule" : "ScheduleAnyway");
		if (chance(90)) {
			buf_addf(b, ",");
			add_selector(b, "labelSelector");
		}
		if (chance(20))
			buf_addf(b, ",'matchLabelKeys':['tier']");
		if (chance(20))
			buf_addf(b, ",'minDomains':%llu", (unsigned long long)random_below(4) + 1);
		if (chance(30))
			buf_addf(b, ",'nodeAffinityPolicy':'%s'", chance(50) ? "Honor" : "Ignore");
		if (chance(30))
			buf_addf(b, ",'nodeTaintsPolicy':'%s'", chance(70) ? "Honor" : "Ignore");
		buf_addf(b, "}");
	}
	buf_addf(b, "]");
}

static struct frozen *make_pod(struct town *w, str node)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	buf_addf(&b, "{'metadata':{'name':'p%llu','uid':'u%llu','namespace':'%s','labels':{'app':'%s'", (unsigned long long)w->made,
		 (unsigned long long)w->made, ONE(spaces), ONE(apps));
	w->made++;
	if (chance(30))
		buf_addf(&b, ",'tier':'%s'", chance(50) ? "front" : "back");
	buf_addf(&b, "}");
	if (chance(10))
		buf_addf(&b, ",'deletionTimestamp':'2026-01-01T00:00:00Z'");
	if (chance(50))
		buf_addf(&b, ",'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'%s','uid':'o','controller':true}]", ONE(apps));
	buf_addf(&b, "},'spec':{'nodeName':'" STR_FMT "'", STR_ARG(node));
	if (chance(60))
		add_constraints(&b);
	if (chance(30))
		buf_addf(&b, ",'nodeSelector':{'disk':'ssd'}");
	if (chance(30))
		buf_addf(&b, ",'tolerations':[{'key':'special','operator':'Exists'}]");
	if (chance(60)) {
		buf_addf(&b, ",'affinity':{'podAffinity':");
		add_terms(&b, chance(50), chance(50));
		buf_addf(&b, ",'podAntiAffinity':");
		add_terms(&b, chance(50), chance(50));
		buf_addf(&b, "}");
	}
	buf_addf(&b, "}}");
	return object(w, TYPE(core_v1, Pod), &b);
}

static void change_node(struct town *w, size_t i)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	if (w->nodes[i] && chance(25)) {
		nodes_remove(&w->table, val_str(w->nodes[i]->val, metadata, name));
		frozen_unref(TAKE(w->nodes[i]));
		return;
	}
	buf_addf(&b, "{'metadata':{'name':'n%zu','labels':{'n':'%zu'", i, i);
	if (chance(90))
		buf_addf(&b, ",'kubernetes.io/hostname':'n%zu'", i);
	if (chance(85))
		buf_addf(&b, ",'zone':'z%llu'", (unsigned long long)random_below(3));
	if (chance(70))
		buf_addf(&b, ",'topology.kubernetes.io/zone':'z%llu'", (unsigned long long)random_below(3));
	if (chance(60))
		buf_addf(&b, ",'rack':'r%llu'", (unsigned long long)random_below(4));
	if (chance(60))
		buf_addf(&b, ",'disk':'%s'", chance(70) ? "ssd" : "hdd");
	buf_addf(&b, "}},'spec':{%s}}", chance(30) ? "'taints':[{'key':'special','effect':'NoSchedule'}]" : "");
	frozen_unref(w->nodes[i]);
	w->nodes[i] = object(w, TYPE(core_v1, Node), &b);
	CHECK(nodes_put(&w->table, w->nodes[i]) < w->table.n);
}

static void change_namespace(struct town *w, size_t i)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	struct frozen *old = w->namespaces[i];

	buf_addf(&b, "{'metadata':{'name':'%s','labels':{%s}}}", spaces[i], chance(50) ? "'team':'x'" : "");
	w->namespaces[i] = object(w, TYPE(core_v1, Namespace), &b);
	counters_namespace(w->table.counters, old ? old->val : VAL_EMPTY, w->namespaces[i]->val);
	frozen_unref(old);
}

static void change_service(struct town *w, size_t i)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	struct frozen *old = w->services[i];

	buf_addf(&b, "{'metadata':{'name':'s%zu','namespace':'%s'},'spec':{'selector':{%s'app':'%s'}}}", i, spaces[i % ARRAY_LEN(spaces)],
		 chance(30) ? "'tier':'front'," : "", ONE(apps));
	w->services[i] = object(w, TYPE(core_v1, Service), &b);
	counters_service(w->table.counters, old ? old->val : VAL_EMPTY, w->services[i]->val);
	frozen_unref(old);
}

static void make_owner(struct town *w, size_t i)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	buf_addf(&b, "{'apiVersion':'apps/v1','kind':'ReplicaSet','metadata':{'name':'%s','namespace':'%s'},'spec':{", apps[i], spaces[i]);
	add_selector(&b, "selector");
	buf_addf(&b, "}}");
	w->owners[i] = object(w, TYPE(apps_v1, ReplicaSet), &b);
	counters_owner(w->table.counters, OWNER_REPLICA_SET, VAL_EMPTY, w->owners[i]->val);
}

static void change_pod(struct town *w, size_t i)
{
	size_t node = random_below(NODES);

	if (w->pods[i]) {
		nodes_unplace(&w->table, w->pods[i]);
		placed_free(TAKE(w->pods[i]));
	} else if (w->nodes[node]) {
		str name = val_str(w->nodes[node]->val, metadata, name);
		CLEANUP(frozen_unrefp) struct frozen *pod = make_pod(w, name);
		w->pods[i] = placed_new(&w->table, pod);
		nodes_place(&w->table, w->pods[i], nodes_find(&w->table, name));
	}
}

/* ---- comparing ---- */

struct look {
	struct town *w;
	struct reference reference;
	uint32_t index[NODES];        /* of the reference's nodes, in the table */
	size_t all[NODES];
};

static struct look *look_at(struct town *w)
{
	struct look *l = ARENA_NEW(&w->arena, struct look);
	struct val *nodes = ARENA_ARRAY(&w->arena, struct val, NODES), *pods = ARENA_ARRAY(&w->arena, struct val, PODS);
	struct val *others = ARENA_ARRAY(&w->arena, struct val, 16);
	struct reference *r = &l->reference;
	size_t n = 0;

	l->w = w;
	*r = (struct reference){ .arena = &w->arena, .nodes = nodes, .pods = pods };
	for (size_t i = 0; i < NODES; i++)
		if (w->nodes[i]) {
			l->all[r->n_nodes] = r->n_nodes;
			l->index[r->n_nodes] = nodes_find(&w->table, val_str(w->nodes[i]->val, metadata, name));
			nodes[r->n_nodes++] = w->nodes[i]->val;
		}
	for (size_t i = 0; i < PODS; i++)
		if (w->pods[i])
			pods[r->n_pods++] = w->pods[i]->pod->val;
	r->namespaces = &others[n];
	for (; r->n_namespaces < ARRAY_LEN(spaces); r->n_namespaces++)
		others[n++] = w->namespaces[r->n_namespaces]->val;
	r->services = &others[n];
	for (; r->n_services < ARRAY_LEN(w->services); r->n_services++)
		others[n++] = w->services[r->n_services]->val;
	r->owners = &others[n];
	for (; r->n_owners < ARRAY_LEN(w->owners); r->n_owners++)
		others[n++] = w->owners[r->n_owners]->val;
	return l;
}

static void compare_filter(struct look *l, struct cycle *c, const struct plugin *plugin)
{
	bool spread = plugin == &plugin_pod_topology_spread, skip = false;
	void *state = NULL;

	CHECK(plugin->pre_filter(c, &state, &skip) == FIT);
	for (size_t i = 0; i < l->reference.n_nodes; i++) {
		struct reference_verdict want = { 0 };
		(spread ? reference_spread_filter : reference_affinity_filter)(&l->reference, c->pod, i, &want);
		enum verdict got = skip ? FIT : plugin->filter(c, state, l->index[i]);
		CHECK_INT(got, !want.plugin ? FIT : want.unresolvable ? UNRESOLVABLE : UNSCHEDULABLE);
		if (got != FIT)
			CHECK(str_eq(c->reason, want.reason));
	}
}

static void compare_score(struct look *l, struct cycle *c, const struct plugin *plugin)
{
	int64_t got[NODES] = { 0 }, want[NODES] = { 0 };
	size_t n = l->reference.n_nodes;
	void *state = NULL;

	if (plugin->pre_score(c, &state, l->index, n))
		plugin->score(c, state, l->index, n, got);
	(void)reference_score(&l->reference, plugin->name, c->pod, l->all, n, want);
	for (size_t i = 0; i < n; i++)
		CHECK_INT(got[i], want[i]);
}

static void compare(struct town *w)
{
	CLEANUP(frozen_unrefp) struct frozen *pod = make_pod(w, STR(""));
	struct placed *p = placed_new(&w->table, pod);
	struct cycle c = { .nodes = &w->table, .arena = &w->arena, .pod = pod->val, .placed = p };
	struct look *l = look_at(w);

	if (chance(10))
		w->table.counters->trim_at = 0; /* there is no room: all is forgotten that the last pods have not asked for */
	counters_begin(w->table.counters);
	compare_filter(l, &c, &plugin_pod_topology_spread);
	compare_filter(l, &c, &plugin_inter_pod_affinity);
	if (l->reference.n_nodes) {
		compare_score(l, &c, &plugin_pod_topology_spread);
		compare_score(l, &c, &plugin_inter_pod_affinity);
	}
	placed_free(p);
}

static void town_done(struct town *w)
{
	for (size_t i = 0; i < PODS; i++)
		if (w->pods[i])
			change_pod(w, i);
	for (size_t i = 0; i < NODES; i++)
		frozen_unref(w->nodes[i]);
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
		frozen_unref(w->namespaces[i]);
	for (size_t i = 0; i < ARRAY_LEN(w->services); i++)
		frozen_unref(w->services[i]);
	for (size_t i = 0; i < ARRAY_LEN(w->owners); i++)
		frozen_unref(w->owners[i]);
	nodes_done(&w->table);
	arena_done(&w->arena);
}

static void run_town(uint64_t seed)
{
	CLEANUP(town_done) struct town w = { 0 };

	random_seed(seed);
	nodes_init(&w.table);
	counters_new(&w.table)->room = 0;
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
		change_namespace(&w, i);
	for (size_t i = 0; i < ARRAY_LEN(w.services); i++)
		change_service(&w, i);
	for (size_t i = 0; i < ARRAY_LEN(w.owners); i++)
		make_owner(&w, i);
	for (unsigned step = 0; step < STEPS; step++) {
		arena_reset(&w.arena);
		if (step < NODES || chance(20))
			change_node(&w, step < NODES ? step : random_below(NODES));
		else if (chance(5))
			change_namespace(&w, random_below(ARRAY_LEN(spaces)));
		else if (chance(5))
			change_service(&w, random_below(ARRAY_LEN(w.services)));
		for (int i = 0; i < 3; i++)
			change_pod(&w, random_below(PODS));
		compare(&w);
	}
	random_unseed();
}

TEST(counters_agree_with_loops)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run_town(seed);
}

/* Pods that are counted before anybody asks, and counters that come after nodes and pods. */
TEST(counters_begin_late)
{
	struct world w;

	world_init(&w, &plugin_pod_topology_spread);
	world_node(&w, "{'metadata':{'name':'a','labels':{'zone':'1'}}}");
	world_node(&w, "{'metadata':{'name':'b','labels':{'zone':'2'}}}");
	world_pod(&w, "a", "{'metadata':{'name':'p','namespace':'x','labels':{'app':'web'}}}");
	(void)counters_new(&w.table);
	CHECK_STR(world_filter(&w, "{'metadata':{'name':'q','namespace':'x','labels':{'app':'web'}},'spec':{'topologySpreadConstraints':[{'maxSkew':1,"
				  "'topologyKey':'zone','whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}}}]}}"),
		  "a: UNSCHEDULABLE node(s) didn't match pod topology spread constraints, b: FIT");
	world_done(&w);
}
