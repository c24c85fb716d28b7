#include "codec/atoms.h"
#include "scheduler/counters.h"
#include "scheduler/plugin_testing.h"

#define REFUSED "UNSCHEDULABLE node(s) didn't match pod topology spread constraints"
#define NO_LABEL "UNRESOLVABLE node(s) didn't match pod topology spread constraints (missing required label)"
#define NODE(name, labels, spec) "{'metadata':{'name':'" name "','labels':{" labels "}},'spec':{" spec "}}"
#define HOST(name) "'kubernetes.io/hostname':'" name "'"
#define WEB "'metadata':{'name':'p','namespace':'x','labels':{'app':'web','v':'1'}}"
#define CONSTRAINT(skew, key, rest) "{'maxSkew':" skew ",'topologyKey':'" key "'," rest "}"
#define HARD "'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}}"
#define SOFT "'whenUnsatisfiable':'ScheduleAnyway','labelSelector':{'matchLabels':{'app':'web'}}"
#define POD(constraints, rest) "{" WEB ",'spec':{'topologySpreadConstraints':[" constraints "]" rest "}}"

/* Zone 1: a with two pods and b with one; zone 2: c with one, and d (tainted) with none; e has no zone. */
static void make(struct world *w)
{
	world_init(w, &plugin_pod_topology_spread);
	(void)counters_new(&w->table);
	world_node(w, NODE("a", "'zone':'1','disk':'ssd'," HOST("a"), ""));
	world_node(w, NODE("b", "'zone':'1'," HOST("b"), ""));
	world_node(w, NODE("c", "'zone':'2','disk':'ssd'," HOST("c"), ""));
	world_node(w, NODE("d", "'zone':'3'," HOST("d"), "'taints':[{'key':'k','effect':'NoSchedule'}]"));
	world_node(w, NODE("e", HOST("e"), ""));
	world_pod(w, "a", "{" WEB "}");
	world_pod(w, "a", "{'metadata':{'name':'q','namespace':'x','labels':{'app':'web','v':'2'}}}");
	world_pod(w, "b", "{" WEB "}");
	world_pod(w, "c", "{" WEB "}");
	/* Not counted: another namespace, another application, on its way out. */
	world_pod(w, "c", "{'metadata':{'name':'r','namespace':'y','labels':{'app':'web'}}}");
	world_pod(w, "c", "{'metadata':{'name':'s','namespace':'x','labels':{'app':'db'}}}");
	world_pod(w, "c", "{'metadata':{'name':'t','namespace':'x','labels':{'app':'web'},'deletionTimestamp':'2026-01-01T00:00:00Z'}}");
}

TEST(spread_filter)
{
	static const struct { const char *pod, *want; } t[] = {
		{ "{" WEB "}", "skip" },
		{ POD(CONSTRAINT("1", "zone", SOFT), ""), "skip" },
		{ POD(CONSTRAINT("1", "zone", HARD), ""), "a: " REFUSED ", b: " REFUSED ", c: " REFUSED ", d: FIT, e: " NO_LABEL },
		{ POD(CONSTRAINT("2", "zone", HARD), ""), "a: " REFUSED ", b: " REFUSED ", c: FIT, d: FIT, e: " NO_LABEL },
		/* Zone 3 does not count, its node is tainted. */
		{ POD(CONSTRAINT("1", "zone", HARD ",'nodeTaintsPolicy':'Honor'"), ""), "a: " REFUSED ", b: " REFUSED ", c: FIT, d: FIT, e: " NO_LABEL },
		{ POD(CONSTRAINT("1", "zone", HARD ",'nodeTaintsPolicy':'Honor','minDomains':3"), ""),
		  "a: " REFUSED ", b: " REFUSED ", c: " REFUSED ", d: FIT, e: " NO_LABEL },
		/* Only nodes with the right disk count. */
		{ POD(CONSTRAINT("1", "zone", HARD), ",'nodeSelector':{'disk':'ssd'}"), "a: " REFUSED ", b: " REFUSED ", c: FIT, d: FIT, e: " NO_LABEL },
		{ POD(CONSTRAINT("1", "zone", HARD ",'nodeAffinityPolicy':'Ignore'"), ",'nodeSelector':{'disk':'ssd'}"),
		  "a: " REFUSED ", b: " REFUSED ", c: " REFUSED ", d: FIT, e: " NO_LABEL },
		{ POD(CONSTRAINT("1", "kubernetes.io/hostname", HARD ",'matchLabelKeys':['v','absent']"), ""),
		  "a: " REFUSED ", b: " REFUSED ", c: " REFUSED ", d: FIT, e: FIT" },
		/* An empty selector counts nobody, a missing one not even the pod itself. */
		{ POD(CONSTRAINT("1", "zone", "'whenUnsatisfiable':'DoNotSchedule','labelSelector':{}"), ""), "a: FIT, b: FIT, c: FIT, d: FIT, e: " NO_LABEL },
		{ POD(CONSTRAINT("1", "zone", "'whenUnsatisfiable':'DoNotSchedule'"), ""), "a: FIT, b: FIT, c: FIT, d: FIT, e: " NO_LABEL },
	};
	struct world w;

	make(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, world_filter(&w, t[i].pod), t[i].want);
	world_done(&w);
}

/* What preemption tries: the numbers follow the table. */
TEST(spread_filter_follows_the_table)
{
	struct world w;
	bool skip;
	void *made;

	make(&w);
	struct cycle c = world_cycle(&w, POD(CONSTRAINT("2", "zone", HARD), ""));
	CHECK(plugin_pod_topology_spread.pre_filter(&c, &made, &skip) == FIT && !skip);
	CHECK_INT(plugin_pod_topology_spread.filter(&c, made, 0), UNSCHEDULABLE);
	nodes_unplace(&w.table, w.pods[0]);
	CHECK_INT(plugin_pod_topology_spread.filter(&c, made, 0), UNSCHEDULABLE);
	nodes_unplace(&w.table, w.pods[1]);
	CHECK_INT(plugin_pod_topology_spread.filter(&c, made, 0), FIT);
	nodes_place(&w.table, w.pods[0], 0);
	nodes_place(&w.table, w.pods[1], 0);
	CHECK_INT(plugin_pod_topology_spread.filter(&c, made, 0), UNSCHEDULABLE);
	world_done(&w);
}

TEST(spread_score)
{
	static const struct { const char *pod, *want; } t[] = {
		{ "{" WEB "}", "skip" },
		{ POD(CONSTRAINT("1", "zone", SOFT), ""), "a: 0, b: 0, c: 60, d: 100, e: 0" },
		{ POD(CONSTRAINT("1", "kubernetes.io/hostname", SOFT), ""), "a: 0, b: 50, c: 50, d: 100, e: 100" },
	};
	struct world w;

	make(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, world_score(&w, t[i].pod), t[i].want);
	world_done(&w);
}

/* Pods that say nothing are spread by their services and controllers; nodes without a zone take part. */
TEST(spread_score_by_default)
{
	static const char owned[] = "{'metadata':{'name':'p','namespace':'x','labels':{'app':'web'},'ownerReferences':[{'apiVersion':'apps/v1',"
				    "'kind':'ReplicaSet','name':'rs','uid':'u','controller':true}]}}";
	struct world w;

	make(&w);
	struct counters *k = w.table.counters;
	CHECK_STR(world_score(&w, owned), "skip");
	counters_owner(k, OWNER_REPLICA_SET, VAL_EMPTY,
		       world_object(&w, TYPE(apps_v1, ReplicaSet), "{'metadata':{'name':'rs','namespace':'x'},'spec':{'selector':{'matchLabels':{'app':'web'}}}}"));
	/* a: 2 * log(7) + 2; b and c: log(7) + 2; d and e: 2; nobody has the zone's label. */
	CHECK_STR(world_score(&w, owned), "a: 33, b: 66, c: 66, d: 100, e: 100");
	CHECK_STR(world_score(&w, "{" WEB "}"), "skip");
	struct val service = world_object(&w, TYPE(core_v1, Service), "{'metadata':{'name':'s','namespace':'x'},'spec':{'selector':{'v':'1'}}}");
	counters_service(k, VAL_EMPTY, service);
	CHECK_STR(world_score(&w, "{" WEB "}"), "a: 50, b: 50, c: 50, d: 100, e: 100");
	counters_service(k, service, VAL_EMPTY);
	CHECK_STR(world_score(&w, "{" WEB "}"), "skip");
	world_done(&w);
}

TEST(spread_configure)
{
	static const struct { const char *args, *want; } t[] = {
		{ "{'defaultingType':'System'}", "" },
		{ "{'defaultingType':'List','defaultConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':'ScheduleAnyway'}]}", "" },
		{ "{'defaultingType':'System','defaultConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':'ScheduleAnyway'}]}",
		  "defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty" },
		{ "{'defaultingType':'List','defaultConstraints':[{'maxSkew':0,'topologyKey':'zone','whenUnsatisfiable':'ScheduleAnyway'}]}",
		  "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)" },
		{ "{'defaultingType':'List','defaultConstraints':[{'maxSkew':1,'topologyKey':'','whenUnsatisfiable':'ScheduleAnyway'}]}",
		  "defaultConstraints[0].topologyKey: Required value: can not be empty" },
		{ "{'defaultingType':'List','defaultConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'ScheduleAnyway','labelSelector':{}}]}",
		  "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod" },
		{ "{'defaultingType':'List','defaultConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'ScheduleAnyway'},"
		  "{'maxSkew':2,'topologyKey':'z','whenUnsatisfiable':'ScheduleAnyway'}]}",
		  "defaultConstraints[1]: Duplicate value: \"{z, ScheduleAnyway}\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		void *config = NULL;
		(void)plugin_pod_topology_spread.configure(testing_tree(&a, t[i].args), &config, &err);
		CHECK_STR_ROW(i, err_str(&err), t[i].want);
		plugin_pod_topology_spread.config_free(config);
	}
}

TEST(spread_hints)
{
	static const char pod[] = "{'metadata':{'name':'p','namespace':'x','uid':'1','labels':{'app':'web'}},'spec':{'topologySpreadConstraints':["
				  CONSTRAINT("1", "zone", HARD) "]}}";
#define OTHER(namespace, app, node) \
	"{'metadata':{'name':'o','uid':'2','namespace':'" namespace "','labels':{'app':'" app "'}},'spec':{'nodeName':'" node "'}}"
	static const struct { unsigned event; const char *old, *new; bool want; } pods[] = {
		{ EV_POD_ADD, NULL, OTHER("x", "web", "n"), true },
		{ EV_POD_ADD, NULL, OTHER("x", "db", "n"), false },
		{ EV_POD_ADD, NULL, OTHER("y", "web", "n"), false },
		{ EV_POD_ADD, NULL, OTHER("x", "web", ""), false },
		{ EV_POD_DELETE, OTHER("x", "web", "n"), NULL, true },
		{ EV_POD_LABEL, OTHER("x", "web", "n"), OTHER("x", "db", "n"), true },
		{ EV_POD_LABEL, OTHER("x", "db", "n"), OTHER("x", "cache", "n"), false },
	}, nodes[] = {
		{ EV_NODE_ADD, NULL, NODE("n", "'zone':'1'", ""), true },
		{ EV_NODE_ADD, NULL, NODE("n", "", ""), false },
		{ EV_NODE_DELETE, NODE("n", "'zone':'1'", ""), NULL, true }, /* the zone with the fewest pods may be gone */
		{ EV_NODE_DELETE, NODE("n", "", ""), NULL, false },
		{ EV_NODE_LABEL, NODE("n", "'zone':'1'", ""), NODE("n", "'zone':'2'", ""), true },
		{ EV_NODE_LABEL, NODE("n", "'zone':'1'", ""), NODE("n", "", ""), true },
		{ EV_NODE_LABEL, NODE("n", "'zone':'1'", ""), NODE("n", "'zone':'1','a':'b'", ""), false },
		{ EV_NODE_TAINT, NODE("n", "'zone':'1'", "'taints':[{'key':'k','effect':'NoSchedule'}]"), NODE("n", "'zone':'1'", ""), true },
	};
	struct world w;

	make(&w);
	CHECK(plugin_pod_topology_spread.events & EV_NODE_DELETE);
	for (size_t i = 0; i < ARRAY_LEN(pods); i++)
		CHECK_ROW(i, world_hint(&w, TYPE(core_v1, Pod), pod, pods[i].event, pods[i].old, pods[i].new) == pods[i].want);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		CHECK_ROW(i, world_hint(&w, TYPE(core_v1, Node), pod, nodes[i].event, nodes[i].old, nodes[i].new) == nodes[i].want);
	world_done(&w);
}
