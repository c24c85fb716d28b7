/* Devices that several claims share, those that have to be waited for, and features that are off. */
#include "base/clock.h"
#include "scheduler/device_capacity.h"
#include "scheduler/devices_testing.h"

TEST(devices_capacity)
{
	static const struct { const char *capacity, *asked, *want; bool permitted; } t[] = {
		{ "{'value':'10Gi'}", NULL, "10Gi", true },
		{ "{'value':'10Gi'}", "3Gi", "3Gi", true },
		{ "{'value':'10Gi','requestPolicy':{'default':'1Gi'}}", NULL, "1Gi", true },
		{ "{'value':'10Gi','requestPolicy':{'default':'1Gi','validValues':['1Gi','4Gi']}}", "2Gi", "4Gi", true },
		{ "{'value':'10Gi','requestPolicy':{'default':'1Gi','validValues':['1Gi','4Gi']}}", "5Gi", "5Gi", false },
		{ "{'value':'10Gi','requestPolicy':{'default':'1Gi','validRange':{'min':'2Gi'}}}", "1Mi", "2Gi", true },
		{ "{'value':'10Gi','requestPolicy':{'default':'1Gi','validRange':{'min':'1Gi','step':'2Gi'}}}", "2Gi", "3Gi", true },
		{ "{'value':'10Gi','requestPolicy':{'default':'1Gi','validRange':{'min':'1Gi','max':'2Gi'}}}", "3Gi", "3Gi", false },
		/* The default need not be in the range. */
		{ "{'value':'10Gi','requestPolicy':{'default':'1Gi','validRange':{'min':'2Gi','step':'2Gi'}}}", NULL, "1Gi", true },
		{ "{'value':'9223372036854775807','requestPolicy':{'default':'1','validRange':{'min':'1','step':'9223372036854775806'}}}", "9223372036854775807",
		  "9223372036854775807", true },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		char text[QUANTITY_TEXT_MAX];
		struct val capacity = testing_tree(&a, t[i].capacity);
		struct quantity amount = capacity_consumed(capacity, t[i].asked ? VAL_STR(str_of(t[i].asked)) : VAL_EMPTY);
		CHECK_STR_ROW(i, quantity_format(amount, text), t[i].want);
		CHECK_ROW(i, capacity_permits(capacity, amount) == t[i].permitted);
	}
}

#define NIC SLICE("s", "'nodeName':'a'", "a", "{'name':'d1','allowMultipleAllocations':true,'capacity':{'bandwidth':{'value':'10','requestPolicy':{'default':'1'," \
		  "'validRange':{'min':'1','max':'8'}}}}}")
#define ASK(name, amount) EXACT(name, ",'count':1,'capacity':{'requests':{'bandwidth':'" amount "'}}")
#define OTHER(amount, share) "{'metadata':{'namespace':'d','name':'other','uid':'uo'},'status':{'allocation':{'devices':{'results':[{'request':'q','driver':'x','pool':'a'," \
	"'device':'d1'" share ",'consumedCapacity':{'bandwidth':'" amount "'}}]}}}}"
#define SHARE ",'shareID':'8f2d1c6e-9a55-4e7c-8f4f-1f0d0f1f2f3f'"

TEST(devices_that_are_shared)
{
	static const struct { const char *claim, *other, *want; } t[] = {
		{ CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), NULL, "q d1" },
		/* Once for each request, but not twice for one. */
		{ CLAIM("'requests':[" ASK("q", "4") "," ASK("r", "6") "]"), NULL, "q d1, r d1" },
		{ CLAIM("'requests':[" ASK("q", "5") "," ASK("r", "6") "]"), NULL, "none" },
		{ CLAIM("'requests':[" EXACT("q", ",'count':2") "]"), NULL, "none" },
		/* More than may be asked for; something that the device does not have. */
		{ CLAIM("'requests':[" ASK("q", "9") "]"), NULL, "none" },
		{ CLAIM("'requests':[" EXACT("q", ",'count':1,'capacity':{'requests':{'other':'1'}}") "]"), NULL, "none" },
		/* What others have taken. */
		{ CLAIM("'requests':[" ASK("q", "4") "]"), OTHER("6", SHARE), "q d1" },
		{ CLAIM("'requests':[" ASK("q", "5") "]"), OTHER("6", SHARE), "none" },
		{ CLAIM("'requests':[" ASK("q", "1") "]"), OTHER("1", ""), "none" }, /* somebody has it alone */
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		begin(&w);
		put_slice(&w, NIC);
		put_claim(&w, t[i].claim);
		if (t[i].other)
			put_claim(&w, t[i].other);
		CHECK_STR_ROW(i, results_on(&w, "a"), t[i].want);
		end(&w);
	}
}

TEST(devices_shares_are_told)
{
	struct world w;
	struct err err = ERR_INIT;
	struct device_search *s;
	struct val allocation;
	begin(&w);
	put_slice(&w, NIC);
	put_claim(&w, CLAIM("'requests':[" ASK("q", "4") "]"));
	struct val claim = copies_val(&w.devices->claims, STR("d/c"));
	CHECK_INT(device_search_new(&w.arena, w.devices, &claim, 1, &s, &err), 0);
	CHECK_INT(device_search_run(s, STR("a"), w.table.object[0]->val, VAL_EMPTY, &allocation, &err), 1);
	struct val result = val_at(val_get(allocation, devices, results), 0);
	CHECK_INT(val_str(result, shareID).n, 36);
	CHECK_STR(testing_text(&w.arena, val_get(result, consumedCapacity)), "{'bandwidth':'4'}");
	end(&w);
}

/* What devices of a pool have in common is taken once by a device, however many share it. */
TEST(devices_shares_of_parts)
{
	struct world w;
	begin(&w);
	put_slice(&w, "{'metadata':{'name':'p1'},'spec':{'driver':'x','pool':{'name':'a','generation':1,'resourceSliceCount':2},'nodeName':'a','devices':["
		  "{'name':'d1','allowMultipleAllocations':true,'capacity':{'m':{'value':'4','requestPolicy':{'default':'1'}}},'consumesCounters':[{'counterSet':'s','counters':{'c':{'value':'1'}}}]},"
		  "{'name':'d2','consumesCounters':[{'counterSet':'s','counters':{'c':{'value':'1'}}}]}]}}");
	put_slice(&w, "{'metadata':{'name':'p2'},'spec':{'driver':'x','pool':{'name':'a','generation':1,'resourceSliceCount':2},'allNodes':true,"
		  "'sharedCounters':[{'name':'s','counters':{'c':{'value':'1'}}}]}}");
	put_claim(&w, CLAIM("'requests':[" EXACT("q", ",'count':1") "," EXACT("r", ",'count':1") "," EXACT("s", ",'count':1") "]"));
	CHECK_STR(results_on(&w, "a"), "q d1, r d1, s d1");
	end(&w);
}

#define WAITS SLICE("s", "'allNodes':true", "a", "{'name':'d1','bindsToNode':true,'bindingConditions':['ready'],'bindingFailureConditions':['broken']}")

TEST(devices_with_conditions)
{
	struct world w;
	struct err err = ERR_INIT;
	struct device_search *s;
	struct val allocation;
	begin(&w);
	put_slice(&w, WAITS);
	put_claim(&w, CLAIM("'requests':[" EXACT("q", ",'count':1") "]"));
	struct val claim = copies_val(&w.devices->claims, STR("d/c"));
	CHECK_INT(device_search_new(&w.arena, w.devices, &claim, 1, &s, &err), 0);
	CHECK_INT(device_search_run(s, STR("a"), w.table.object[0]->val, VAL_EMPTY, &allocation, &err), 1);
	CHECK_STR(testing_text(&w.arena, val_get(allocation, devices, results)), "[{'request':'q','driver':'x','pool':'a','device':'d1','bindingConditions':['ready'],"
		  "'bindingFailureConditions':['broken']}]");
	CHECK_STR(testing_text(&w.arena, val_get(allocation, nodeSelector)),
		  "{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':['a']}]}]}");
	end(&w);
}

#define BOUND(devices) "{'metadata':{'namespace':'d','name':'c','uid':'uc'},'status':{'allocation':{'allocationTimestamp':'1970-01-01T00:00:00Z','devices':{'results':[{" \
	"'request':'q','driver':'x','pool':'a','device':'d1','bindingConditions':['ready'],'bindingFailureConditions':['broken']}]}},'devices':[" devices "]}}"
#define STATUS(type, status) "{'driver':'x','pool':'a','device':'d1','conditions':[{'type':'" type "','status':'" status "'}]}"
#define NOT_AVAILABLE "a: UNRESOLVABLE resourceclaim not available on the node, b: UNRESOLVABLE resourceclaim not available on the node"

/* A claim whose devices will never be ready is not used; it is given back later. */
TEST(devices_that_are_never_ready)
{
	static const struct { const char *claim; int64_t after_s; const char *want; } t[] = {
		{ BOUND(""), 1, "a: FIT, b: FIT" },
		{ BOUND(""), 601, NOT_AVAILABLE },
		{ BOUND(STATUS("ready", "True")), 601, "a: FIT, b: FIT" },
		{ BOUND(STATUS("ready", "False")), 601, NOT_AVAILABLE },
		{ BOUND(STATUS("broken", "True")), 1, NOT_AVAILABLE },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		clock_virtual_set(0, t[i].after_s * NS_PER_S);
		begin(&w);
		put_claim(&w, t[i].claim);
		CHECK_STR_ROW(i, world_filter(&w, POD), t[i].want);
		end(&w);
		clock_virtual_off();
	}
}

TEST(devices_features_that_are_off)
{
	static const struct { const char *gates, *slice, *claim, *want; } t[] = {
		{ "{'DRADeviceTaints':false}", SLICE("s", "'nodeName':'a'", "a", "{'name':'d1','taints':[{'key':'k','effect':'NoSchedule'}]}"),
		  CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), "a: FIT, b: " CANNOT },
		{ "{'DRADeviceBindingConditions':false}", WAITS, CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), "a: " CANNOT ", b: " CANNOT },
		{ "{'DRAPartitionableDevices':false}", SLICE("s", "'perDeviceNodeSelection':true", "a", "{'name':'d1','allNodes':true}"),
		  CLAIM("'requests':[" EXACT("q", ",'count':1") "]"), "a: " CANNOT ", b: " CANNOT },
		{ "{'DRAConsumableCapacity':false}", NIC, CLAIM("'requests':[" EXACT("q", ",'count':1") "," EXACT("r", ",'count':1") "]"), "a: " CANNOT ", b: " CANNOT },
		{ "{'DRAConsumableCapacity':false}", NIC, CLAIM("'requests':[" ASK("q", "1") "]"),
		  "a: FAILED claim d/c, request q: has capacity requests, but the DRAConsumableCapacity feature is disabled, "
		  "b: FAILED claim d/c, request q: has capacity requests, but the DRAConsumableCapacity feature is disabled" },
		{ "{'DRAPrioritizedList':false}", NIC, CLAIM("'requests':[{'name':'q','firstAvailable':[{'name':'s','deviceClassName':'gpu'}]}]"),
		  "UNRESOLVABLE resource claim d/c, request q: has subrequests, but the DRAPrioritizedList feature is disabled" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		begin(&w);
		devices_set_gates(w.devices, testing_tree(&w.arena, t[i].gates));
		put_slice(&w, t[i].slice);
		put_claim(&w, t[i].claim);
		CHECK_STR_ROW(i, world_filter(&w, POD), t[i].want);
		end(&w);
	}
}
