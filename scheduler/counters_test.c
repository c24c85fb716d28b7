#include "scheduler/counters.h"

#include "scheduler/plugin_testing.h"

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

/* What a controller's selector says of a label counts, whatever a service says of it. */
TEST(counters_default_selector_of_a_controller)
{
	static const struct { const char *app, *scores; } t[] = { { "web", "a: 100, b: 100" }, { "db", "a: 66, b: 100" } };

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		world_init(&w, &plugin_pod_topology_spread);
		world_node(&w, "{'metadata':{'name':'a','labels':{'kubernetes.io/hostname':'a'}}}");
		world_node(&w, "{'metadata':{'name':'b','labels':{'kubernetes.io/hostname':'b'}}}");
		struct counters *c = counters_new(&w.table);
		world_pod(&w, "a", arena_printf(&w.arena, "{'metadata':{'name':'p','namespace':'x','labels':{'app':'%s'}}}", t[i].app).p);
		counters_service(c, VAL_EMPTY, world_object(&w, TYPE(core_v1, Service), "{'metadata':{'name':'s','namespace':'x'},'spec':{'selector':{"
									     "'app':'web'}}}"));
		counters_owner(c, OWNER_REPLICATION_CONTROLLER, VAL_EMPTY,
			       world_object(&w, TYPE(core_v1, ReplicationController), "{'metadata':{'name':'r','namespace':'x'},'spec':{'selector':{"
										      "'app':'db'}}}"));
		CHECK_STR_ROW(i, world_score(&w, "{'metadata':{'name':'q','namespace':'x','labels':{'app':'web'},'ownerReferences':[{'apiVersion':'v1',"
						 "'kind':'ReplicationController','name':'r','uid':'u','controller':true}]}}"), t[i].scores);
		world_done(&w);
	}
}
