#include "scheduler/requests.h"

#include "codec/atoms.h"
#include "scheduler/plugin_testing.h"

#define ASKS(amounts) "'resources':{'requests':{" amounts "}}"
#define C(name, amounts) "{'name':'" name "'," ASKS(amounts) "}"
#define SIDECAR(name, amounts) "{'name':'" name "','restartPolicy':'Always'," ASKS(amounts) "}"
#define SPEC(of_pod, inits, containers) "'spec':{" of_pod "'initContainers':[" inits "],'containers':[" containers "]}"
#define POD(of_pod, inits, containers) "{" SPEC(of_pod, inits, containers) "}"
#define STATUS(of_pod, containers, status) "{" SPEC(of_pod, "", containers) ",'status':{" status "}}"
#define OF_A(allocated, in_force) "'containerStatuses':[{'name':'a','allocatedResources':{" allocated "}" in_force "}]"
#define WHOLE ASKS("'cpu':'5'") ","
#define WITH_OVERHEAD WHOLE "'overhead':{'cpu':'1','memory':'7'},"
#define A "{'name':'a'}"

struct request_row {
	const char *pod;
	unsigned how;
	int64_t cpu, memory, x;       /* x: of a.example/x */
};

static const struct request_row request_rows[] = {
	/* Containers are added up. */
	{ POD("", "", C("a", "'cpu':'1','memory':'1Ki'") "," C("b", "'cpu':'250m','a.example/x':'2'")), 0, 1250, 1024, 2 },
	/* Parts are rounded up once, at the end. */
	{ POD("", "", C("a", "'cpu':'100u'") "," C("b", "'cpu':'100u'")), 0, 1, 0, 0 },
	/* Init containers run before them, one at a time. */
	{ POD("", C("i", "'cpu':'2'") "," C("j", "'cpu':'3','memory':'1'"), C("a", "'cpu':'1','memory':'5'")), 0, 3000, 5, 0 },
	/* Sidecars run beside the containers, and beside the init containers after them. */
	{ POD("", C("i", "'cpu':'4'") "," SIDECAR("s", "'cpu':'2'") "," C("j", "'cpu':'3'"), C("a", "'cpu':'1'")), 0, 5000, 0, 0 },
	{ POD("", SIDECAR("s", "'cpu':'2'"), C("a", "'cpu':'1'")), 0, 3000, 0, 0 },
	/* The pod as a whole says it, where it does (of extended resources it cannot); overhead is added. */
	{ POD(WITH_OVERHEAD, "", C("a", "'cpu':'1','memory':'1'")), 0, 6000, 8, 0 },
	{ POD(WITH_OVERHEAD, "", C("a", "'cpu':'1','memory':'1'")), REQUEST_CONTAINERS, 2000, 8, 0 },
	{ POD(ASKS("'cpu':'5','a.example/x':'2','b.example/y':'2'") ",", "", A), 0, 5000, 0, 0 },
	/* Containers that do not say how much. */
	{ POD("", "", A "," C("b", "'cpu':'0'")), 0, 0, 0, 0 },
	{ POD("", "", A "," C("b", "'cpu':'0'")), REQUEST_NONZERO, 100, 400 << 20, 0 },
	{ POD("", "{'name':'i'},{'name':'j'}", A), REQUEST_NONZERO, 100, 200 << 20, 0 },
	/* With a pod that says one of the two, only the other is assumed, unless somebody says it. */
	{ POD(WHOLE, "", A ",{'name':'b'}"), REQUEST_NONZERO, 5000, 400 << 20, 0 },
	{ POD(WHOLE, "", C("a", "'memory':'1'") ",{'name':'b'}"), REQUEST_NONZERO, 5000, 1, 0 },
	{ POD(WHOLE, "", A), REQUEST_NONZERO | REQUEST_CONTAINERS, 100, 200 << 20, 0 },
	/* What is in force and what is set aside count while a resize is on its way, and what was asked for unless it cannot be. */
	{ STATUS("", C("a", "'cpu':'1','memory':'9'"), OF_A("'cpu':'2','memory':'1'", "," ASKS("'cpu':'3','memory':'2'"))), 0, 3000, 9, 0 },
	{ STATUS("", C("a", "'cpu':'9'"), "'conditions':[{'type':'PodResizePending','status':'True','reason':'Infeasible'}],"
		 OF_A("'cpu':'2'", "," ASKS("'cpu':'1'"))), 0, 2000, 0, 0 },
	{ STATUS("", C("a", "'cpu':'9'"), OF_A("'cpu':'20'", "")), 0, 9000, 0, 0 },
	{ STATUS(WHOLE, A, "'allocatedResources':{'cpu':'2'}," ASKS("'cpu':'8'")), 0, 8000, 0, 0 },
	/* Absurd amounts saturate. */
	{ POD("", "", C("a", "'memory':'9E','cpu':'9E'") "," C("b", "'memory':'9E'")), 0, INT64_MAX, INT64_MAX, 0 },
};

TEST(pod_requests)
{
	struct world w;

	world_init(&w, NULL);
	world_node(&w, "{'metadata':{'name':'n'},'status':{'allocatable':{'a.example/x':'5'}}}");
	for (size_t i = 0; i < ARRAY_LEN(request_rows); i++) {
		const struct request_row *t = &request_rows[i];
		struct pod_request q;
		pod_request(&w.table, world_object(&w, TYPE(core_v1, Pod), t->pod), t->how, &q);
		CHECK_ROW(i, q.amount.v[RES_CPU] == t->cpu && q.amount.v[RES_MEMORY] == t->memory);
		CHECK_ROW(i, q.amount.v[RES_FIXED] == t->x && q.amount.v[RES_PODS] == 1);
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
	struct val pod = world_object(&w, TYPE(core_v1, Pod), POD(ASKS("'b.example/w':'1'") ",", C("i", "'b.example/y':'1'"),
								  C("a", "'a.example/x':'1','b.example/y':'2','b.example/z':'0','cpu':'1','strange':'3'")));
	CHECK_INT(pod_unknown_resources(&w.table, &w.arena, pod, &names), 1);
	CHECK_STR(names[0], "b.example/y");
	world_done(&w);
}
