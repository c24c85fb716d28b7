/* NodeResourcesFit and NodeResourcesBalancedAllocation. */
#include "codec/atoms.h"
#include "scheduler/plugin_testing.h"
#include "scheduler/resource_score.h"

#define POD(requests) "{'metadata':{'name':'p','uid':'u'},'spec':{'containers':[{'name':'c','resources':{'requests':{" requests "}}}]}}"
#define NODE(name, allocatable) "{'metadata':{'name':'" name "'},'status':{'allocatable':{" allocatable "}}}"
#define FIT_ARGS TYPE(kubeschedulerconfig_v1, NodeResourcesFitArgs)
#define BALANCED_ARGS TYPE(kubeschedulerconfig_v1, NodeResourcesBalancedAllocationArgs)

TEST(fit_filter)
{
	static const struct {
		const char *pod, *want;
	} t[] = {
		{ POD(""), "a: FIT, b: UNSCHEDULABLE Too many pods" },
		{ POD("'cpu':'1','memory':'50'"), "a: FIT, b: UNSCHEDULABLE Too many pods" },
		{ POD("'cpu':'1001m'"), "a: UNSCHEDULABLE Insufficient cpu, b: UNSCHEDULABLE Insufficient cpu\nToo many pods" },
		{ POD("'cpu':'2','memory':'51'"),
		  "a: UNSCHEDULABLE Insufficient cpu\nInsufficient memory, b: UNSCHEDULABLE Insufficient cpu\nToo many pods" },
		{ POD("'cpu':'3'"), "a: UNRESOLVABLE Insufficient cpu, b: UNRESOLVABLE Insufficient cpu\nToo many pods" },
		{ POD("'ephemeral-storage':'11'"),
		  "a: UNRESOLVABLE Insufficient ephemeral-storage, b: UNRESOLVABLE Insufficient ephemeral-storage\nToo many pods" },
		{ POD("'v.example/gpu':'2'"), "a: FIT, b: UNRESOLVABLE Too many pods\nInsufficient v.example/gpu" },
		{ POD("'v.example/gpu':'3'"), "a: UNSCHEDULABLE Insufficient v.example/gpu, b: UNRESOLVABLE Too many pods\nInsufficient v.example/gpu" },
		{ POD("'v.example/none':'1'"), "a: UNRESOLVABLE Insufficient v.example/none, b: UNRESOLVABLE Too many pods\nInsufficient v.example/none" },
		{ POD("'v.example/none':'0'"), "a: FIT, b: UNSCHEDULABLE Too many pods" },
	};
	struct world w;

	world_init(&w, &plugin_node_resources_fit);
	world_node(&w, NODE("a", "'cpu':'2','memory':'100','ephemeral-storage':'10','pods':'10','v.example/gpu':'4'"));
	world_node(&w, NODE("b", "'cpu':'2','memory':'100','ephemeral-storage':'10','pods':'1'"));
	world_pod(&w, "a", POD("'cpu':'1','memory':'50','v.example/gpu':'2'"));
	world_pod(&w, "b", POD("'cpu':'1'"));
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, world_filter(&w, t[i].pod), t[i].want);
	world_done(&w);
}

TEST(fit_ignores_what_it_is_told_to)
{
	struct world w;

	world_init(&w, &plugin_node_resources_fit);
	world_node(&w, NODE("a", "'cpu':'2','pods':'10','v.example/gpu':'1','v.example/other':'1','g.example/x':'1'"));
	CHECK_STR(world_configure(&w, FIT_ARGS, "{'ignoredResources':['v.example/gpu','v.example/none'],'ignoredResourceGroups':['g.example']}"), "");
	CHECK_STR(world_filter(&w, POD("'v.example/gpu':'9','g.example/x':'9','v.example/none':'9','g.example/y':'1'")), "a: FIT");
	CHECK_STR(world_filter(&w, POD("'v.example/other':'9'")), "a: UNRESOLVABLE Insufficient v.example/other");
	CHECK_STR(world_filter(&w, POD("'cpu':'9'")), "a: UNRESOLVABLE Insufficient cpu");
	world_done(&w);
}

TEST(fit_says_many_different_things)
{
	/* More combinations than are remembered. */
	struct world w;

	world_init(&w, &plugin_node_resources_fit);
	for (int i = 0; i < 32; i++)
		world_node(&w, arena_printf(&w.arena, NODE("n%d", "'cpu':'%d','memory':'%d','ephemeral-storage':'%d','pods':'%d','v.example/a':'%d'"), i,
					    i & 1, i >> 1 & 1, i >> 2 & 1, i >> 3 & 1, i >> 4 & 1).p);
	for (int round = 0; round < 2; round++) {
		str all = world_filter(&w, POD("'cpu':'1','memory':'1','ephemeral-storage':'1','v.example/a':'1'"));
		CHECK(str_find(all, STR("n0: UNRESOLVABLE Insufficient cpu\nInsufficient memory\nInsufficient ephemeral-storage\nToo many pods\n"
					"Insufficient v.example/a, n1:")) >= 0);
		CHECK(str_find(all, STR("n22: UNRESOLVABLE Insufficient cpu\nToo many pods, n23: UNSCHEDULABLE Too many pods, n24:")) >= 0);
		CHECK(str_ends(all, STR("n31: FIT")));
	}
	world_done(&w);
}

TEST(fit_score)
{
	static const struct {
		const char *args, *pod, *want;
	} t[] = {
		/* Least: cpu (4000-1000-1000)/4000 = 50, memory (10000-2000-3000)/10000 = 50; 87 and 52. */
		{ "{}", POD("'cpu':'1','memory':'3000'"), "a: 50, b: 69" },
		/* Nothing asked for counts as 100m and 200Mi: more than there is. */
		{ "{}", POD(""), "a: 36, b: 49" },
		{ "{'scoringStrategy':{'type':'LeastAllocated','resources':[{'name':'cpu','weight':3},{'name':'memory'}]}}", POD("'cpu':'1','memory':'3000'"),
		  "a: 50, b: 78" },
		{ "{'scoringStrategy':{'type':'MostAllocated'}}", POD("'cpu':'1','memory':'3000'"), "a: 50, b: 30" },
		{ "{'scoringStrategy':{'type':'MostAllocated'}}", POD(""), "a: 63, b: 50" },
		/* Extended resources count for those who ask for them, on nodes that have them. */
		{ "{'scoringStrategy':{'type':'LeastAllocated','resources':[{'name':'v.example/gpu','weight':1}]}}", POD("'v.example/gpu':'1'"), "a: 75, b: 0" },
		{ "{'scoringStrategy':{'type':'LeastAllocated','resources':[{'name':'v.example/gpu','weight':1}]}}", POD("'cpu':'1'"), "a: 0, b: 0" },
		{ "{'scoringStrategy':{'type':'LeastAllocated','resources':[{'name':'pods'},{'name':'nothing'}]}}", POD(""), "a: 0, b: 0" },
		/* A line from (0%, 100) to (100%, 0), and one that begins and ends later. */
		{ "{'scoringStrategy':{'type':'RequestedToCapacityRatio','requestedToCapacityRatio':{'shape':[{'utilization':0,'score':10},{'utilization':100,"
		  "'score':0}]}}}", POD("'cpu':'1','memory':'3000'"), "a: 50, b: 70" },
		{ "{'scoringStrategy':{'type':'RequestedToCapacityRatio','requestedToCapacityRatio':{'shape':[{'utilization':40,'score':0},{'utilization':60,"
		  "'score':10}]}}}", POD("'cpu':'1','memory':'3000'"), "a: 50, b: 40" },
	};
	struct world w;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		world_init(&w, &plugin_node_resources_fit);
		world_node(&w, NODE("a", "'cpu':'4','memory':'10000','pods':'10','v.example/gpu':'4'"));
		world_node(&w, NODE("b", "'cpu':'8','memory':'10000','pods':'10'"));
		world_pod(&w, "a", POD("'cpu':'1','memory':'2000'"));
		world_pod(&w, "b", POD("'cpu':'0','memory':'1800'"));
		CHECK_STR_ROW(i, world_configure(&w, FIT_ARGS, t[i].args), "");
		CHECK_STR_ROW(i, world_score(&w, t[i].pod), t[i].want);
		world_done(&w);
	}
}

TEST(fit_score_without_what_is_said_for_the_pod_as_a_whole)
{
	struct world w;

	world_init(&w, &plugin_node_resources_fit);
	world_node(&w, NODE("a", "'cpu':'1','memory':'400Mi','pods':'10'"));
	CHECK_STR(world_score(&w, "{'spec':{'resources':{'requests':{'cpu':'1','memory':'400Mi'}},'containers':[{'name':'c'}]}}"), "a: 70");
	world_done(&w);
}

TEST(fit_arguments_are_checked)
{
	static const struct {
		const char *args, *want;
	} t[] = {
		{ "{'scoringStrategy':{'type':'Best'}}", "scoringStrategy.type: Unsupported value: \"Best\": supported values: \"LeastAllocated\", "
							"\"MostAllocated\", \"RequestedToCapacityRatio\"" },
		{ "{'scoringStrategy':{'type':'MostAllocated','resources':[{'name':'cpu','weight':101}]}}",
		  "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]" },
		{ "{'scoringStrategy':{'type':'RequestedToCapacityRatio'}}",
		  "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio" },
		{ "{'scoringStrategy':{'type':'LeastAllocated','requestedToCapacityRatio':{'shape':[{'utilization':0,'score':0}]}}}",
		  "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio" },
		{ "{'scoringStrategy':{'type':'RequestedToCapacityRatio','requestedToCapacityRatio':{'shape':[]}}}",
		  "scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified" },
		{ "{'scoringStrategy':{'type':'RequestedToCapacityRatio','requestedToCapacityRatio':{'shape':[{'utilization':5,'score':11},{'utilization':5,"
		  "'score':1}]}}}",
		  "[scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 5: values must be sorted in increasing order, "
		  "scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]]" },
		{ "{'ignoredResourceGroups':['a/b']}", "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'" },
	};
	struct world w;

	world_init(&w, &plugin_node_resources_fit);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, world_configure(&w, FIT_ARGS, t[i].args), t[i].want);
	CHECK(w.config == NULL);
	world_done(&w);
}

TEST(fit_hint)
{
	static const char pod[] = POD("'cpu':'2'"), small[] = NODE("n", "'cpu':'1','pods':'1'"), large[] = NODE("n", "'cpu':'2','pods':'1'");
	static const char larger[] = NODE("n", "'cpu':'2','memory':'7','pods':'1'"), more_pods[] = NODE("n", "'cpu':'2','pods':'2'");
	static const struct {
		unsigned event;
		const char *old, *new;
		bool want;
	} nodes[] = {
		{ EV_NODE_ADD, NULL, small, false },
		{ EV_NODE_ADD, NULL, large, true },
		{ EV_NODE_ADD, NULL, NODE("n", "'cpu':'2'"), false },
		{ EV_NODE_ALLOCATABLE, small, large, true },
		{ EV_NODE_ALLOCATABLE, large, small, false },
		{ EV_NODE_ALLOCATABLE, large, larger, false },
		{ EV_NODE_ALLOCATABLE, large, more_pods, true },
	}, pods[] = {
		{ EV_POD_DELETE, "{'spec':{}}", NULL, false },
		{ EV_POD_DELETE, "{'spec':{'nodeName':'n'}}", NULL, true },
		{ EV_POD_DELETE, "{'spec':{},'status':{'nominatedNodeName':'n'}}", NULL, true },
		{ EV_POD_SCALE_DOWN, POD("'cpu':'2'"), POD("'cpu':'1'"), true },
		{ EV_POD_SCALE_DOWN, "{'metadata':{'uid':'o'},'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'2'}}}]}}",
		  "{'metadata':{'uid':'o'},'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]}}", false },
		{ EV_POD_SCALE_DOWN, "{'metadata':{'uid':'o'},'spec':{'nodeName':'n','containers':[{'name':'c','resources':{'requests':{'cpu':'2'}}}]}}",
		  "{'metadata':{'uid':'o'},'spec':{'nodeName':'n','containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]}}", true },
		{ EV_POD_SCALE_DOWN, "{'metadata':{'uid':'o'},'spec':{'nodeName':'n','containers':[{'name':'c','resources':{'requests':{'memory':'2'}}}]}}",
		  "{'metadata':{'uid':'o'},'spec':{'nodeName':'n','containers':[{'name':'c','resources':{'requests':{'memory':'1'}}}]}}", false },
	};
	struct world w;

	world_init(&w, &plugin_node_resources_fit);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		CHECK_ROW(i, world_hint(&w, TYPE(core_v1, Node), pod, nodes[i].event, nodes[i].old, nodes[i].new) == nodes[i].want);
	for (size_t i = 0; i < ARRAY_LEN(pods); i++)
		CHECK_ROW(i, world_hint(&w, TYPE(core_v1, Pod), pod, pods[i].event, pods[i].old, pods[i].new) == pods[i].want);
	world_done(&w);
}

TEST(scores_of_one_resource)
{
	static const struct shape_point points[] = { { 10, 100 }, { 20, 0 }, { 90, 70 } };
	static const struct score_shape shape = { 3, points };
	static const struct {
		int64_t requested, capacity, least, most, shaped;
	} t[] = {
		{ 0, 100, 100, 0, 100 },
		{ 15, 100, 85, 15, 50 },
		{ 33, 100, 67, 33, 13 },
		{ 1, 3, 66, 33, 13 },
		{ 100, 100, 0, 100, 70 },
		{ 101, 100, 0, 100, 70 },
		/* Sums that have wrapped around, and amounts that are too large to be multiplied. */
		{ -5, 100, 0, 100, 70 },
		{ INT64_MAX / 2, INT64_MAX, 50, 49, 29 },
		{ INT64_MAX, INT64_MAX, 0, 100, 70 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_ROW(i, score_least_allocated(t[i].requested, t[i].capacity) == t[i].least);
		CHECK_ROW(i, score_most_allocated(t[i].requested, t[i].capacity) == t[i].most);
		CHECK_ROW(i, score_by_shape(&shape, t[i].requested, t[i].capacity) == t[i].shaped);
	}
}

/* ---- balance ---- */

TEST(balanced_allocation_score)
{
	static const struct {
		const char *args, *pod, *want;
	} t[] = {
		{ "{}", POD(""), "skip" },
		{ "{}", POD("'v.example/gpu':'1'"), "skip" },
		/* a: 25% and 0% (87) become 50% and 50% (100); b: 0% and 0% (100) become 10% and 33% (88). */
		{ "{}", POD("'cpu':'1','memory':'500'"), "a: 81, b: 69" },
		/* Only one of the two grows. */
		{ "{}", POD("'cpu':'2'"), "a: 62, b: 70" },
		{ "{'resources':[{'name':'cpu','weight':1},{'name':'memory','weight':1},{'name':'v.example/gpu','weight':1}]}",
		  POD("'cpu':'1','memory':'500','v.example/gpu':'1'"), "a: 75, b: 69" },
	};
	struct world w;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		world_init(&w, &plugin_balanced_allocation);
		world_node(&w, NODE("a", "'cpu':'4','memory':'1000','pods':'10','v.example/gpu':'4'"));
		world_node(&w, NODE("b", "'cpu':'10','memory':'1500','pods':'10'"));
		world_pod(&w, "a", POD("'cpu':'1'"));
		CHECK_STR_ROW(i, world_configure(&w, BALANCED_ARGS, t[i].args), "");
		CHECK_STR_ROW(i, world_score(&w, t[i].pod), t[i].want);
		world_done(&w);
	}
}

TEST(balanced_allocation_arguments_are_checked)
{
	struct world w;

	world_init(&w, &plugin_balanced_allocation);
	CHECK_STR(world_configure(&w, BALANCED_ARGS, "{'resources':[{'name':'cpu'},{'name':'cpu','weight':2}]}"),
		  "[resources[1].name: Duplicate value: \"cpu\", resources[1].weight: Invalid value: 2: must be 1]");
	CHECK(w.config == NULL);
	world_done(&w);
}

/* More names than the table has room for: the others are found by looking at objects. */
TEST(node_resources_beyond_the_table)
{
	struct world w;
	world_init(&w, &plugin_node_resources_fit);
	for (unsigned i = 0; i < RES_MAX; i++) {
		str name = arena_printf(&w.arena, "{'metadata':{'name':'n%u'},'status':{'allocatable':{'pods':'9','x.example/r%u':'1'}}}", i, i);
		(void)world_node(&w, name.p);
	}
	(void)world_node(&w, "{'metadata':{'name':'last'},'status':{'allocatable':{'pods':'9','x.example/last':'2'}}}");
	for (unsigned i = 0; i < RES_MAX; i++)
		nodes_remove(&w.table, arena_printf(&w.arena, "n%u", i));
#define LAST(name, amount) "{'metadata':{'name':'" name "','uid':'" name "'},'spec':{'containers':[{'name':'c','resources':{'requests':{'x.example/last':'" amount "'}}}]}}"
	CHECK_STR(world_filter(&w, LAST("p", "2")), "last: FIT");
	CHECK_STR(world_filter(&w, LAST("p", "3")), "last: UNRESOLVABLE Insufficient x.example/last");
	struct placed *one = world_pod(&w, "last", LAST("q", "1"));
	CHECK_STR(world_filter(&w, LAST("p", "2")), "last: UNSCHEDULABLE Insufficient x.example/last");
	CHECK_STR(world_filter(&w, LAST("p", "1")), "last: FIT");
	nodes_unplace(&w.table, one);
	CHECK_STR(world_filter(&w, LAST("p", "2")), "last: FIT");
	world_done(&w);
}
