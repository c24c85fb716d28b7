/* Extended resources that classes of devices serve. */
#include "scheduler/devices_testing.h"
#include "scheduler/extended_claim.h"

static void put_class(struct world *w, const char *quoted) { put(w, &w->devices->classes, TYPE(resource_v1, DeviceClass), quoted); }

#define ASKS(name, amounts) "{'name':'" name "','resources':{'requests':{" amounts "}}}"
#define EXTENDED(init, containers) \
	"{'metadata':{'namespace':'d','name':'p','uid':'up'},'spec':{'initContainers':[" init "],'containers':[" containers "]}}"

TEST(devices_classes_of_resources)
{
	struct world w;
	begin(&w);
	put_class(&w, "{'metadata':{'name':'old','creationTimestamp':'2026-01-01T00:00:00Z'},'spec':{'extendedResourceName':'x.example/gpu'}}");
	CHECK_STR(val_str(devices_class_of(w.devices, STR("x.example/gpu")), metadata, name), "old");
	/* The newer one; of two that are as old the one whose name comes first. */
	put_class(&w, "{'metadata':{'name':'z','creationTimestamp':'2026-01-02T00:00:00Z'},'spec':{'extendedResourceName':'x.example/gpu'}}");
	CHECK_STR(val_str(devices_class_of(w.devices, STR("x.example/gpu")), metadata, name), "z");
	put_class(&w, "{'metadata':{'name':'y','creationTimestamp':'2026-01-02T00:00:00Z'},'spec':{'extendedResourceName':'x.example/gpu'}}");
	CHECK_STR(val_str(devices_class_of(w.devices, STR("x.example/gpu")), metadata, name), "y");
	CHECK_STR(val_str(devices_class_of(w.devices, STR("deviceclass.resource.kubernetes.io/gpu")), metadata, name), "gpu");
	CHECK(!val_exists(devices_class_of(w.devices, STR("x.example/other"))));
	devices_set_gates(w.devices, testing_tree(&w.arena, "{'DRAExtendedResource':false}"));
	CHECK(!val_exists(devices_class_of(w.devices, STR("x.example/gpu"))));
	end(&w);
}

TEST(devices_claims_for_resources)
{
#define REQUEST(name, count) "{'name':'" name "','exactly':{'deviceClassName':'card','allocationMode':'ExactCount','count':" count "}}"
#define MAPPING(container, request) "{'containerName':'" container "','resourceName':'x.example/gpu','requestName':'" request "'}"
	static const struct { const char *pod, *requests, *mappings; } t[] = {
		{ EXTENDED("", ASKS("c", "'cpu':'1','x.example/gpu':'2'")), "[" REQUEST("container-0-request-1", "2") "]", "[" MAPPING("c", "container-0-request-1") "]" },
		{ EXTENDED("", ASKS("c", "'x.example/gpu':'2'") "," ASKS("d", "'x.example/gpu':'1'")),
		  "[" REQUEST("container-0-request-0", "2") "," REQUEST("container-1-request-0", "1") "]",
		  "[" MAPPING("c", "container-0-request-0") "," MAPPING("d", "container-1-request-0") "]" },
		/* One that ends before the others run uses theirs, */
		{ EXTENDED(ASKS("i", "'x.example/gpu':'1'"), ASKS("c", "'x.example/gpu':'2'")), "[" REQUEST("container-1-request-0", "2") "]",
		  "[" MAPPING("c", "container-1-request-0") "," MAPPING("i", "container-1-request-0") "]" },
		/* and has more of its own; the most that such containers need serves all of them. */
		{ EXTENDED(ASKS("i", "'x.example/gpu':'3'") "," ASKS("j", "'x.example/gpu':'5'"), ASKS("c", "'x.example/gpu':'2'")),
		  "[" REQUEST("container-1-request-0", "3") "," REQUEST("container-2-request-0", "2") "]",
		  "[" MAPPING("c", "container-2-request-0") "," MAPPING("i", "container-2-request-0") "," MAPPING("i", "container-1-request-0") ","
		  MAPPING("j", "container-2-request-0") "," MAPPING("j", "container-1-request-0") "]" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		struct extended_needs needs;
		struct val mappings;
		begin(&w);
		put_class(&w, "{'metadata':{'name':'card'},'spec':{'extendedResourceName':'x.example/gpu'}}");
		struct val pod = world_object(&w, TYPE(core_v1, Pod), t[i].pod);
		extended_needs_read(&w.arena, w.devices, pod, &needs);
		CHECK_ROW(i, needs.any && needs.n == 1);
		struct val claim = extended_claim_make(&w.arena, &needs, pod, 1, STR("u"), &mappings);
		CHECK_STR_ROW(i, testing_text(&w.arena, val_get(claim, spec, devices, requests)), t[i].requests);
		CHECK_STR_ROW(i, testing_text(&w.arena, mappings), t[i].mappings);
		CHECK_STR_ROW(i, testing_text(&w.arena, val_get(claim, metadata)),
			      "{'name':'<extended-resources>','generateName':'p-extended-resources-','namespace':'d','uid':'u','annotations':{'resource.kubernetes.io/"
			      "extended-resource-claim':'true'},'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p','uid':'up','controller':true}]}");
		end(&w);
	}
}

#define ONE EXTENDED("", ASKS("c", "'x.example/gpu':'1'"))

/* Both plugins: what the one leaves to the other. */
TEST(devices_for_resources)
{
	struct world w;
	begin(&w);
	(void)world_node(&w, "{'metadata':{'name':'plain'},'status':{'allocatable':{'pods':'9','x.example/gpu':'1'}}}");
	(void)world_node(&w, "{'metadata':{'name':'a'},'status':{'allocatable':{'pods':'9'}}}");
	(void)world_node(&w, "{'metadata':{'name':'b'},'status':{'allocatable':{'pods':'9'}}}");
	put_slice(&w, SLICE("s", "'nodeName':'a'", "a", "{'name':'d1'}"));
	/* No class: a matter of counting only. */
	CHECK_STR(world_filter(&w, ONE), "skip");
	w.plugin = &plugin_node_resources_fit;
	CHECK_STR(world_filter(&w, ONE), "a: UNRESOLVABLE Insufficient x.example/gpu, b: UNRESOLVABLE Insufficient x.example/gpu, plain: FIT");
	put_class(&w, "{'metadata':{'name':'card'},'spec':{'extendedResourceName':'x.example/gpu'}}");
	CHECK_STR(world_filter(&w, ONE), "a: FIT, b: FIT, plain: FIT");
	w.plugin = &plugin_dynamic_resources;
	CHECK_STR(world_filter(&w, ONE), "a: FIT, b: " CANNOT ", plain: FIT");
	/* One that nobody serves. */
	CHECK_STR(world_filter(&w, EXTENDED("", ASKS("c", "'x.example/gpu':'1','x.example/none':'1'"))),
		  "a: UNRESOLVABLE cannot fit resource, b: UNRESOLVABLE cannot fit resource, plain: UNRESOLVABLE cannot fit resource");
	/* What is left of an earlier try has to go first. */
	put_claim(&w, "{'metadata':{'namespace':'d','name':'left','uid':'ul','annotations':{'resource.kubernetes.io/extended-resource-claim':'true'},'ownerReferences':["
		  "{'apiVersion':'v1','kind':'Pod','name':'p','uid':'up','controller':true}]},'spec':{'devices':{'requests':[" EXACT("q", "") "]}}}");
	CHECK_STR(world_filter(&w, ONE), "a: UNRESOLVABLE cannot schedule extended resource claim, b: UNRESOLVABLE cannot schedule extended resource claim, "
		  "plain: UNRESOLVABLE cannot schedule extended resource claim");
	end(&w);
}

/* Where resources of devices count for scores, so do the devices that are taken. */
TEST(devices_scores_of_resources)
{
	struct world w;
	begin(&w);
	w.plugin = &plugin_node_resources_fit;
	put_class(&w, "{'metadata':{'name':'card'},'spec':{'extendedResourceName':'x.example/gpu','selectors':[{'cel':{'expression':'device.driver == \\\"x\\\"'}}]}}");
	put_slice(&w, SLICE("s", "'nodeName':'a'", "a", "{'name':'d1'},{'name':'d2'},{'name':'d3'},{'name':'d4'}"));
	put_slice(&w, SLICE("t", "'perDeviceNodeSelection':true", "b", "{'name':'d1','nodeName':'b'},{'name':'d2','allNodes':true},{'name':'d3','nodeName':'none'}"));
	put_claim(&w, "{'metadata':{'namespace':'d','name':'other','uid':'uo'},'status':{'allocation':{'devices':{'results':[{'request':'q','driver':'x','pool':'a',"
		  "'device':'d1'}]}}}}");
	CHECK_STR(world_configure(&w, TYPE(kubeschedulerconfig_v1, NodeResourcesFitArgs),
				  "{'scoringStrategy':{'type':'MostAllocated','resources':[{'name':'x.example/gpu','weight':1}]}}"), "");
	CHECK_STR(world_score(&w, ONE), "a: 40, b: 50");
	end(&w);
}
