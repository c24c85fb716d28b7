#include "base/clock.h"
#include "base/fiber_test.h"
#include "scheduler/devices_testing.h"

#define ON_A SLICE("s1", "'nodeName':'a'", "a", "{'name':'d1','attributes':{'numa':{'int':0}}},{'name':'d2','attributes':{'numa':{'int':1}}}," \
		   "{'name':'d3','attributes':{'x/numa':{'int':1}}}")
#define PART(name, memory) "{'name':'" name "','consumesCounters':[{'counterSet':'gpu0','counters':{'memory':{'value':'" memory "'}}}]}"
#define PARTS "{'metadata':{'name':'p1'},'spec':{'driver':'x','pool':{'name':'a','generation':1,'resourceSliceCount':2},'nodeName':'a','devices':[" \
	      PART("whole", "8Gi") "," PART("half1", "4Gi") "," PART("half2", "4Gi") "]}}"
#define SHARED "{'metadata':{'name':'p2'},'spec':{'driver':'x','pool':{'name':'a','generation':1,'resourceSliceCount':2},'nodeName':'a'," \
	       "'sharedCounters':[{'name':'gpu0','counters':{'memory':{'value':'8Gi'}}}]}}"
#define EMPTY "claim d/c, constraint #0: empty constraint (unsupported constraint type?)"
#define INVALID "invalid resource pools were encountered"
#define NO_CEL "claim d/c, request q, selector #0: CEL expression empty (unsupported selector type?)"
#define TWO(name, node, device) "{'metadata':{'name':'" name "'},'spec':{'driver':'x','pool':{'name':'p','generation':1,'resourceSliceCount':2}," \
	"'nodeName':'" node "','devices':[{'name':'" device "'}]}}"
#define BIG(more) CLAIM("'requests':[{'name':'q','exactly':{'deviceClassName':'big','allocationMode':'ExactCount','count':1" more "}}]")
#define MEMORY SLICE("s", "'nodeName':'a'", "a", "{'name':'d1','capacity':{'memory':{'value':'4Gi'}}},{'name':'d2','capacity':{'memory':{'value':'8Gi'}}}," \
		     "{'name':'d3','capacity':{'memory':{'value':'16Gi'}}}")
#define MANY "claim d/c: number of requested devices 33 exceeds the claim limit of 32"

static const struct {
	const char *claim, *slices[3];
	const char *want;
	const char *results;          /* on node a: "request device" for each */
} rows[] = {
	{ CLAIM("'requests':[" EXACT("q", ",'count':2") "]"), { ON_A }, "a: FIT, b: " CANNOT, "q d1, q d2" },
	{ CLAIM("'requests':[" EXACT("q", ",'count':4") "]"), { ON_A }, "a: " CANNOT ", b: " CANNOT, NULL },
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "," EXACT("r", ",'count':1") "]"), { ON_A }, "a: FIT, b: " CANNOT, "q d1, r d2" },
	/* The same attribute: the first choice has to be made otherwise. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':2") "],'constraints':[{'matchAttribute':'x/numa'}]"), { ON_A }, "a: FIT, b: " CANNOT, "q d2, q d3" },
	{ CLAIM("'requests':[" EXACT("q", ",'count':3") "],'constraints':[{'matchAttribute':'x/numa'}]"), { ON_A }, "a: " CANNOT ", b: " CANNOT, NULL },
	{ CLAIM("'requests':[" EXACT("q", ",'count':2") "],'constraints':[{'requests':['other'],'matchAttribute':'x/numa'}]"), { ON_A }, "a: FIT, b: " CANNOT,
	  "q d1, q d2" },
	/* A different attribute for each. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "," EXACT("r", ",'count':1") "],'constraints':[{'distinctAttribute':'x/numa'}]"), { ON_A },
	  "a: FIT, b: " CANNOT, "q d1, r d2" },
	{ CLAIM("'requests':[" EXACT("q", ",'count':3") "],'constraints':[{'distinctAttribute':'x/numa'}]"), { ON_A }, "a: " CANNOT ", b: " CANNOT, NULL },
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "],'constraints':[{'requests':['q']}]"), { ON_A },
	  "a: FAILED " EMPTY ", b: FAILED " EMPTY, NULL },
	/* All of them. */
	{ CLAIM("'requests':[{'name':'q','exactly':{'deviceClassName':'gpu','allocationMode':'All'}}]"), { ON_A }, "a: FIT, b: " CANNOT, "q d1, q d2, q d3" },
	/* Alternatives. */
	{ CLAIM("'requests':[{'name':'q','firstAvailable':[{'name':'many','deviceClassName':'gpu','allocationMode':'ExactCount','count':9},{'name':'few',"
		"'deviceClassName':'gpu','allocationMode':'ExactCount','count':1}]}]"), { ON_A }, "a: FIT, b: " CANNOT, "q/few d1" },
	/* Taints. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { SLICE("s", "'nodeName':'a'", "a", "{'name':'d1','taints':[{'key':'k','effect':'NoSchedule'}]}") },
	  "a: " CANNOT ", b: " CANNOT, NULL },
	{ CLAIM("'requests':[" EXACT("q", ",'count':1,'tolerations':[{'key':'k','operator':'Exists'}]") "]"),
	  { SLICE("s", "'nodeName':'a'", "a", "{'name':'d1','taints':[{'key':'k','effect':'NoSchedule'}]}") }, "a: FIT, b: " CANNOT, "q d1" },
	/* Devices of several nodes; of a pool that is being rewritten; of an old generation. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { SLICE("s", "'allNodes':true", "n", "{'name':'d1'}") }, "a: FIT, b: FIT", "q d1" },
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { SLICE("s", "'nodeSelector':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'rack','operator':'In',"
	  "'values':['1']}]}]}", "n", "{'name':'d1'}") }, "a: FIT, b: " CANNOT, "q d1" },
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { SLICE("s", "'perDeviceNodeSelection':true", "n", "{'name':'d1','nodeName':'b'},{'name':'d2','allNodes':true}") },
	  "a: FIT, b: FIT", "q d2" },
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { "{'metadata':{'name':'s'},'spec':{'driver':'x','pool':{'name':'p','generation':1,'resourceSliceCount':2},"
	  "'allNodes':true,'devices':[{'name':'d1'}]}}" }, "a: " CANNOT ", b: " CANNOT, NULL },
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { ON_A, "{'metadata':{'name':'s2'},'spec':{'driver':'x','pool':{'name':'a','generation':2,'resourceSliceCount':1},"
	  "'nodeName':'a','devices':[{'name':'d9'}]}}" }, "a: FIT, b: " CANNOT, "q d9" },
	/* Parts of one thing: a whole and a half do not go together, two halves do. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':2") "]"), { PARTS, SHARED }, "a: FIT, b: " CANNOT, "q half1, q half2" },
	{ CLAIM("'requests':[" EXACT("q", ",'count':3") "]"), { PARTS, SHARED }, "a: " CANNOT ", b: " CANNOT, NULL },
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { PARTS, SHARED }, "a: FIT, b: " CANNOT, "q whole" },
	/* Two slices of one pool with a device of the same name; devices that take from what is not there. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { SLICE("s", "'nodeName':'a'", "a", "{'name':'d1'},{'name':'d1'}") }, "a: UNRESOLVABLE " INVALID ", b: " CANNOT, NULL },
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { SLICE("s", "'nodeName':'a'", "a", PART("d1", "1")) }, "a: UNRESOLVABLE " INVALID ", b: " CANNOT, NULL },
	/* One pool that cannot be used is none of the others' business, except for who wants all. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { SLICE("s", "'nodeName':'a'", "a", "{'name':'d1'},{'name':'d1'}"), SLICE("t", "'nodeName':'a'", "z",
	  "{'name':'d2'}") }, "a: FIT, b: " CANNOT, "q d2" },
	{ CLAIM("'requests':[{'name':'q','exactly':{'deviceClassName':'gpu','allocationMode':'All'}}]"), { SLICE("s", "'nodeName':'a'", "a", "{'name':'d1'},{'name':'d1'}") },
	  "a: FAILED claim d/c, request q: asks for all devices, but resource pool x/a is currently invalid, b: " CANNOT, NULL },
	{ CLAIM("'requests':[{'name':'q','exactly':{'deviceClassName':'gpu','allocationMode':'All'}}]"), { "{'metadata':{'name':'s'},'spec':{'driver':'x','pool':{'name':'p',"
	  "'generation':1,'resourceSliceCount':2},'nodeName':'a','devices':[{'name':'d1'}]}}" },
	  "a: FAILED claim d/c, request q: asks for all devices, but resource pool x/p is currently being updated, b: " CANNOT, NULL },
	/* Pools and slices are tried by their names; those whose devices have to be waited for come last. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':3") "]"), { SLICE("z", "'nodeName':'a'", "b", "{'name':'d3'}"), SLICE("y", "'nodeName':'a'", "c", "{'name':'d2'}"),
	  SLICE("x", "'nodeName':'a'", "a", "{'name':'d1','bindingConditions':['ready'],'bindingFailureConditions':['no']}") }, "a: FIT, b: " CANNOT, "q d3, q d2, q d1" },
	/* A node that sees only some slices of a pool knows that the others exist. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), { TWO("s", "a", "d1"), TWO("t", "b", "d2") }, "a: FIT, b: FIT", "q d1" },
	/* One that does not see the newest generation knows that what it sees is old. */
	{ CLAIM("'requests':[{'name':'q','exactly':{'deviceClassName':'gpu','allocationMode':'All'}}]"), { TWO("s", "a", "d1"), "{'metadata':{'name':'t'},'spec':{'driver':'x',"
	  "'pool':{'name':'p','generation':2,'resourceSliceCount':1},'nodeName':'b','devices':[{'name':'d2'}]}}" }, "a: " CANNOT ", b: FIT", NULL },
	/* A choice of the first claim leaves nothing for the second request: made otherwise. */
	{ CLAIM("'requests':[" EXACT("q", ",'count':1") "," EXACT("r", ",'count':1") "],'constraints':[{'requests':['r'],'matchAttribute':'x/only'}]"),
	  { SLICE("s", "'nodeName':'a'", "a", "{'name':'d1','attributes':{'only':{'string':'s'}}},{'name':'d2'}") }, "a: FIT, b: " CANNOT, "q d2, r d1" },
	/* Selectors, of the class and of the request. */
	{ BIG(""), { MEMORY }, "a: FIT, b: " CANNOT, "q d2" },
	{ BIG(",'selectors':[{'cel':{'expression':'device.driver == \\\"x\\\" && device.capacity[\\\"x\\\"].memory.isGreaterThan(quantity(\\\"8Gi\\\"))'}}]"), { MEMORY },
	  "a: FIT, b: " CANNOT, "q d3" },
	{ BIG(",'selectors':[{'cel':{'expression':'device.attributes[\\\"x\\\"].none == 1'}}]"), { MEMORY },
	  "a: FAILED claim d/c: selector #0: CEL runtime error: no such key: none, b: " CANNOT, NULL },
	{ BIG(",'selectors':[{}]"), { MEMORY }, "a: FAILED " NO_CEL ", b: FAILED " NO_CEL, NULL },
	/* What no node can change. */
	{ CLAIM("'requests':[{'name':'q','exactly':{'deviceClassName':'none','allocationMode':'ExactCount','count':1}}]"), { NULL },
	  "UNRESOLVABLE request q: device class none does not exist", NULL },
	{ CLAIM("'requests':[" EXACT("q", ",'count':33") "]"), { ON_A }, "a: FAILED " MANY ", b: FAILED " MANY, NULL },
	{ CLAIM("'requests':[{'name':'q'}]"), { ON_A }, "UNRESOLVABLE resource claim d/c, request q: unknown request type", NULL },
};

TEST(devices_search)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct world w;
		begin(&w);
		put_claim(&w, rows[i].claim);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].slices) && rows[i].slices[k]; k++)
			put_slice(&w, rows[i].slices[k]);
		CHECK_STR_ROW(i, world_filter(&w, POD), rows[i].want);
		if (rows[i].results)
			CHECK_STR_ROW(i, results_on(&w, "a"), rows[i].results);
		end(&w);
	}
}

TEST(devices_claims_of_a_pod)
{
	struct world w;
	begin(&w);
	CHECK_STR(world_filter(&w, POD), "UNRESOLVABLE could not find ResourceClaim \"d/c\"");
	CHECK_STR(world_filter(&w, "{'metadata':{'name':'p'}}"), "skip");
	CHECK_STR(world_filter(&w, "{'metadata':{'namespace':'d','name':'p','uid':'up'},'spec':{'resourceClaims':[{'name':'r','resourceClaimTemplateName':'t'}]}}"),
		  "UNRESOLVABLE pod \"d/p\": ResourceClaim not created yet");
	put_claim(&w, "{'metadata':{'namespace':'d','name':'c','uid':'uc','deletionTimestamp':'2026-01-01T00:00:00Z'}}");
	CHECK_STR(world_filter(&w, POD), "UNRESOLVABLE resourceclaim \"c\" is being deleted");
	put_claim(&w, "{'metadata':{'namespace':'d','name':'c','uid':'uc'}}");
	CHECK_STR(world_filter(&w, "{'metadata':{'namespace':'d','name':'p','uid':'up'},'spec':{'resourceClaims':[{'name':'r','resourceClaimTemplateName':'t'}]},"
			       "'status':{'resourceClaimStatuses':[{'name':'r','resourceClaimName':'c'}]}}"),
		  "UNRESOLVABLE ResourceClaim d/c was not created for Pod d/p (Pod is not owner)");
	/* One that is allocated elsewhere. */
	put_claim(&w, "{'metadata':{'namespace':'d','name':'c','uid':'uc'},'status':{'allocation':{'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':"
		  "'metadata.name','operator':'In','values':['b']}]}]}}}}");
	CHECK_STR(world_filter(&w, POD), "a: UNRESOLVABLE resourceclaim not available on the node, b: FIT");
	end(&w);
}

/* A part that is taken leaves room for the other, not for the whole. */
TEST(devices_parts_that_are_taken)
{
	struct world w;
	begin(&w);
	put_slice(&w, PARTS);
	put_slice(&w, SHARED);
	put_claim(&w, CLAIM("'requests':[" EXACT("q", ",'count':1") "]"));
	put_claim(&w, "{'metadata':{'namespace':'d','name':'other','uid':'uo'},'status':{'allocation':{'devices':{'results':[{'request':'q','driver':'x','pool':'a',"
		  "'device':'half1'}]}}}}");
	CHECK_STR(results_on(&w, "a"), "q half2");
	put_claim(&w, "{'metadata':{'namespace':'d','name':'other','uid':'uo'}}");
	CHECK_STR(results_on(&w, "a"), "q whole");
	end(&w);
}

/* Devices that one pod is about to get are not there for the next. */
TEST(devices_reserve)
{
	struct world w;
	void *own[1] = { NULL };
	bool skip;
	begin(&w);
	put_slice(&w, ON_A);
	put_claim(&w, CLAIM("'requests':[" EXACT("q", ",'count':2") "]"));
	put_claim(&w, "{'metadata':{'namespace':'d','name':'e','uid':'ue'},'spec':{'devices':{'requests':[" EXACT("q", ",'count':2") "]}}}");
	uint32_t a = nodes_find(&w.table, STR("a"));
	struct cycle c = world_cycle(&w, POD);
	c.state = own;
	CHECK_INT(w.plugin->pre_filter(&c, &own[0], &skip), FIT);
	CHECK_INT(w.plugin->filter(&c, own[0], a), FIT);
	CHECK_INT(w.plugin->reserve(&c, a), FIT);
	const char *other = "{'metadata':{'namespace':'d','name':'o','uid':'uo'},'spec':{'resourceClaims':[{'name':'r','resourceClaimName':'e'}]}}";
	CHECK_STR(world_filter(&w, other), "a: " CANNOT ", b: " CANNOT);
	CHECK_STR(world_filter(&w, POD), "UNRESOLVABLE resource claim d/c is in the process of being allocated");
	w.plugin->unreserve(&c, a);
	CHECK_STR(world_filter(&w, other), "a: FIT, b: " CANNOT);
	end(&w);
}

TEST(devices_allocation)
{
	struct world w;
	struct err err = ERR_INIT;
	struct device_search *s;
	struct val allocation;
	begin(&w);
	put_slice(&w, ON_A);
	put_claim(&w, CLAIM("'requests':[" EXACT("q", ",'count':1,'adminAccess':true") "],'config':[{'requests':['other'],'opaque':{'driver':'y','parameters':{}}},"
			    "{'opaque':{'driver':'z','parameters':{'m':2}}}]"));
	struct val claim = copies_val(&w.devices->claims, STR("d/c"));
	CHECK_INT(device_search_new(&w.arena, w.devices, &claim, 1, &s, &err), 0);
	CHECK_INT(device_search_run(s, STR("a"), w.table.object[0]->val, VAL_EMPTY, &allocation, &err), 1);
	CHECK_STR(testing_text(&w.arena, allocation),
		  "{'devices':{'results':[{'request':'q','driver':'x','pool':'a','device':'d1','adminAccess':true}],'config':[{'source':'FromClass','requests':['q'],"
		  "'opaque':{'driver':'x','parameters':{'k':1}}},{'source':'FromClaim','opaque':{'driver':'z','parameters':{'m':2}}}]},"
		  "'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':['a']}]}]}}");
	end(&w);
}

#define HINT_CLAIM(name, owner, status) "{'metadata':{'namespace':'d','name':'" name "','uid':'u" name "'" owner "}" status "}"
#define ALLOCATED ",'status':{'allocation':{}}"
#define OF_POD ",'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p','uid':'up','controller':true}]"
#define OF_OTHER ",'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'q','uid':'uq','controller':true}]"

/* Which changes of claims may help a pod that waits. */
TEST(devices_hints)
{
	static const struct { const char *old, *new; bool helps; } t[] = {
		{ HINT_CLAIM("x", "", ALLOCATED), HINT_CLAIM("x", "", ""), true },
		{ HINT_CLAIM("x", "", ALLOCATED), NULL, true },
		{ HINT_CLAIM("x", "", ""), NULL, false },
		{ HINT_CLAIM("x", OF_POD, ""), NULL, true },
		{ HINT_CLAIM("x", OF_OTHER, ""), NULL, false },
		{ HINT_CLAIM("x", "", ""), HINT_CLAIM("x", "", ALLOCATED), false },
		{ HINT_CLAIM("c", "", ""), HINT_CLAIM("c", "", ALLOCATED), true },
		{ NULL, HINT_CLAIM("c", "", ""), true },
		{ NULL, HINT_CLAIM("x", "", ""), false },
	};
	struct world w;
	begin(&w);
	put_claim(&w, HINT_CLAIM("c", "", ""));
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, world_hint(&w, TYPE(resource_v1, ResourceClaim), POD, EV_CLAIM, t[i].old, t[i].new) == t[i].helps);
	end(&w);
}

/* ---- searches that take long ---- */

static int count_turns(void *arg)
{
	unsigned *turns = arg;
	while (fiber_yield(NULL) == 0)
		++*turns;
	return 0;
}

/* The claim "c" on node a has too many ways to be tried: they are given up in time, and others are not kept waiting. */
static void check_gives_up(struct world *w)
{
	enum { LIMIT_MS = 50 };
	struct val claim = copies_val(&w->devices->claims, STR("d/c"));
	struct device_search *s;
	struct err err = ERR_INIT;
	unsigned turns = 0;
	CHECK_INT(device_search_new(&w->arena, w->devices, &claim, 1, &s, &err), 0);
	device_search_limit(s, LIMIT_MS * NS_PER_MS);
	struct fiber *other = start(count_turns, &turns);
	int64_t began = clock_now_ns();
	CHECK_INT(device_search_run(s, STR("a"), w->table.object[nodes_find(&w->table, STR("a"))]->val, VAL_EMPTY, NULL, &err), -ERR_TIMEOUT);
	CHECK_STR(err_str(&err), "node a: timed out trying to allocate devices");
	CHECK(clock_now_ns() - began >= LIMIT_MS * NS_PER_MS && clock_now_ns() - began < 400 * LIMIT_MS * NS_PER_MS);
	CHECK(turns > 0);
	(void)fiber_stop(other);
}

/* One device more than there is power for: all ways to choose the others are tried. */
FIBER_TEST(devices_search_ends_in_time)
{
	enum { DEVICES = 40 };
	struct world w;
	begin(&w);
	str list = STR("");
	for (int i = 0; i < DEVICES; i++)
		list = arena_printf(&w.arena, STR_FMT "%s{'name':'d%d','consumesCounters':[{'counterSet':'s','counters':{'power':{'value':'1'}}}]}", STR_ARG(list),
				    i ? "," : "", i);
	put_slice(&w, arena_printf(&w.arena, "{'metadata':{'name':'s1'},'spec':{'driver':'x','nodeName':'a','pool':{'name':'p','generation':1,'resourceSliceCount':2},"
				   "'devices':[" STR_FMT "]}}", STR_ARG(list)).p);
	put_slice(&w, "{'metadata':{'name':'s2'},'spec':{'driver':'x','nodeName':'a','pool':{'name':'p','generation':1,'resourceSliceCount':2},"
		      "'sharedCounters':[{'name':'s','counters':{'power':{'value':'19'}}}]}}");
	put_claim(&w, CLAIM("'requests':[" EXACT("q", ",'count':20") "]"));
	check_gives_up(&w);
	end(&w);
}

#define ALL_OF(n) "'deviceClassName':'gpu','allocationMode':'All','selectors':[{'cel':{'expression':'device.attributes[\\\"x\\\"].n " n "'}}]}"

/*
 * Where an alternative wants all devices of its kind there is nothing to choose, but alternatives can be combined; the last request wants both
 * devices that the first one has to take one of.
 */
FIBER_TEST(devices_alternatives_end_in_time)
{
	enum { REQUESTS = 30 };
	struct world w;
	begin(&w);
	str list = STR(""), requests = STR("");
	for (int i = 0; i < 2 * REQUESTS; i++)
		list = arena_printf(&w.arena, STR_FMT "%s{'name':'d%d','attributes':{'n':{'int':%d}}}", STR_ARG(list), i ? "," : "", i, i);
	put_slice(&w, arena_printf(&w.arena, SLICE("s1", "'nodeName':'a'", "a", STR_FMT), STR_ARG(list)).p);
	for (int i = 0; i < REQUESTS; i++)
		requests = arena_printf(&w.arena, STR_FMT "{'name':'r%d','firstAvailable':[{'name':'one'," ALL_OF("== %d") ",{'name':'other'," ALL_OF("== %d") "]},",
					STR_ARG(requests), i, 2 * i, 2 * i + 1);
	put_claim(&w, arena_printf(&w.arena, CLAIM("'requests':[" STR_FMT "{'name':'last','exactly':{" ALL_OF("<= 1") "}]"), STR_ARG(requests)).p);
	check_gives_up(&w);
	end(&w);
}
