#include "scheduler/requests.h"

#include "codec/atoms.h"
#include "scheduler/plugin_testing.h"

/* cpu, memory and a.example/x of a pod. */
TEST(pod_requests)
{
	static const struct {
		const char *pod;
		unsigned how;
		int64_t cpu, memory, x;
	} t[] = {
		/* Containers are added up. */
		{ "{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'1','memory':'1Ki'}}},"
		  "{'name':'b','resources':{'requests':{'cpu':'250m','a.example/x':'2'}}}]}}", 0, 1250, 1024, 2 },
		/* Parts are rounded up once, at the end. */
		{ "{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'100u'}}},{'name':'b','resources':{'requests':{'cpu':"
		  "'100u'}}}]}}", 0, 1, 0, 0 },
		/* Init containers run before them, one at a time. */
		{ "{'spec':{'initContainers':[{'name':'i','resources':{'requests':{'cpu':'2'}}},{'name':'j','resources':{'requests':{'cpu':'3',"
		  "'memory':'1'}}}],'containers':[{'name':'a','resources':{'requests':{'cpu':'1','memory':'5'}}}]}}", 0, 3000, 5, 0 },
		/* Sidecars run beside the containers, and beside the init containers after them. */
		{ "{'spec':{'initContainers':[{'name':'i','resources':{'requests':{'cpu':'4'}}},{'name':'s','restartPolicy':'Always','resources':"
		  "{'requests':{'cpu':'2'}}},{'name':'j','resources':{'requests':{'cpu':'3'}}}],'containers':[{'name':'a','resources':{'requests':"
		  "{'cpu':'1'}}}]}}", 0, 5000, 0, 0 },
		{ "{'spec':{'initContainers':[{'name':'s','restartPolicy':'Always','resources':{'requests':{'cpu':'2'}}}],'containers':[{'name':'a',"
		  "'resources':{'requests':{'cpu':'1'}}}]}}", 0, 3000, 0, 0 },
		/* The pod as a whole says it, where it does; overhead is added. */
		{ "{'spec':{'resources':{'requests':{'cpu':'5'}},'overhead':{'cpu':'1','memory':'7'},'containers':[{'name':'a','resources':{"
		  "'requests':{'cpu':'1','memory':'1'}}}]}}", 0, 6000, 8, 0 },
		{ "{'spec':{'resources':{'requests':{'cpu':'5'}},'overhead':{'cpu':'1','memory':'7'},'containers':[{'name':'a','resources':{"
		  "'requests':{'cpu':'1','memory':'1'}}}]}}", REQUEST_CONTAINERS, 2000, 8, 0 },
		/* Containers that do not say how much. */
		{ "{'spec':{'containers':[{'name':'a'},{'name':'b','resources':{'requests':{'cpu':'0'}}}]}}", 0, 0, 0, 0 },
		{ "{'spec':{'containers':[{'name':'a'},{'name':'b','resources':{'requests':{'cpu':'0'}}}]}}", REQUEST_NONZERO, 100, 400 << 20, 0 },
		{ "{'spec':{'initContainers':[{'name':'i'},{'name':'j'}],'containers':[{'name':'a'}]}}", REQUEST_NONZERO, 100, 200 << 20, 0 },
		/* With a pod that says one of the two, only the other is assumed, unless somebody says it. */
		{ "{'spec':{'resources':{'requests':{'cpu':'5'}},'containers':[{'name':'a'},{'name':'b'}]}}", REQUEST_NONZERO, 5000, 400 << 20, 0 },
		{ "{'spec':{'resources':{'requests':{'cpu':'5'}},'containers':[{'name':'a','resources':{'requests':{'memory':'1'}}},{'name':'b'}]}}",
		  REQUEST_NONZERO, 5000, 1, 0 },
		{ "{'spec':{'resources':{'requests':{'cpu':'5'}},'containers':[{'name':'a'}]}}", REQUEST_NONZERO | REQUEST_CONTAINERS, 100, 200 << 20, 0 },
		/* What is in force and what is set aside count while a resize is on its way, and what was asked for unless it cannot be. */
		{ "{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'1','memory':'9'}}}]},'status':{'containerStatuses':[{'name':'a',"
		  "'allocatedResources':{'cpu':'2','memory':'1'},'resources':{'requests':{'cpu':'3','memory':'2'}}}]}}", 0, 3000, 9, 0 },
		{ "{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'9'}}}]},'status':{'conditions':[{'type':'PodResizePending',"
		  "'status':'True','reason':'Infeasible'}],'containerStatuses':[{'name':'a','allocatedResources':{'cpu':'2'},'resources':{'requests':"
		  "{'cpu':'1'}}}]}}", 0, 2000, 0, 0 },
		{ "{'spec':{'containers':[{'name':'a','resources':{'requests':{'cpu':'9'}}}]},'status':{'containerStatuses':[{'name':'a',"
		  "'allocatedResources':{'cpu':'20'}}]}}", 0, 9000, 0, 0 },
		{ "{'spec':{'resources':{'requests':{'cpu':'1'}},'containers':[{'name':'a'}]},'status':{'allocatedResources':{'cpu':'2'},"
		  "'resources':{'requests':{'cpu':'4'}}}}", 0, 4000, 0, 0 },
		/* Absurd amounts saturate. */
		{ "{'spec':{'containers':[{'name':'a','resources':{'requests':{'memory':'9E','cpu':'9E'}}},{'name':'b','resources':{'requests':{"
		  "'memory':'9E'}}}]}}", 0, INT64_MAX, INT64_MAX, 0 },
	};
	struct world w;

	world_init(&w, NULL);
	world_node(&w, "{'metadata':{'name':'n'},'status':{'allocatable':{'a.example/x':'5'}}}");
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct pod_request q;
		pod_request(&w.table, world_object(&w, TYPE(core_v1, Pod), t[i].pod), t[i].how, &q);
		CHECK_ROW(i, q.amount.v[RES_CPU] == t[i].cpu);
		CHECK_ROW(i, q.amount.v[RES_MEMORY] == t[i].memory);
		CHECK_ROW(i, q.amount.v[RES_FIXED] == t[i].x);
		CHECK_ROW(i, q.amount.v[RES_PODS] == 1);
		CHECK_ROW(i, !q.unknown);
	}
	world_done(&w);
}

TEST(pod_unknown_resources_are_named_once)
{
	struct world w;
	str *names;

	world_init(&w, NULL);
	world_node(&w, "{'metadata':{'name':'n'},'status':{'allocatable':{'a.example/x':'5'}}}");
	struct val pod = world_object(&w, TYPE(core_v1, Pod), "{'spec':{'initContainers':[{'name':'i','resources':{'requests':{'b.example/y':'1'}}}],"
							      "'containers':[{'name':'a','resources':{'requests':{'a.example/x':'1','b.example/y':'2',"
							      "'b.example/z':'0','cpu':'1','strange':'3'}}}]}}");
	CHECK_INT(pod_unknown_resources(&w.table, &w.arena, pod, &names), 1);
	CHECK_STR(names[0], "b.example/y");
	world_done(&w);
}
