/* The plugins that ask one node at a time. */
#include "codec/atoms.h"
#include "scheduler/plugin_testing.h"

#define POD(spec) "{'metadata':{'name':'p','uid':'u'},'spec':{" spec "}}"
#define CONTAINER(rest) "'containers':[{'name':'c'" rest "}]"
#define NODE(name, spec) "{'metadata':{'name':'" name "'},'spec':{" spec "}}"

struct filter_row {
	const char *pod, *want;
};

static void check_filter(struct world *w, const struct filter_row *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK_STR_ROW(i, world_filter(w, t[i].pod), t[i].want);
}

static void check_score(struct world *w, const struct filter_row *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK_STR_ROW(i, world_score(w, t[i].pod), t[i].want);
}

struct hint_row {
	const char *pod;
	unsigned event;
	const char *old, *new;
	bool want;
};

static void check_hint(struct world *w, const struct type *type, const struct hint_row *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK_ROW(i, world_hint(w, type, t[i].pod, t[i].event, t[i].old, t[i].new) == t[i].want);
}

TEST(node_name_filter)
{
	static const struct filter_row t[] = {
		{ POD(CONTAINER("")), "skip" },
		{ POD("'nodeName':'a'," CONTAINER("")), "a: FIT, b: UNRESOLVABLE node(s) didn't match the requested node name" },
		{ POD("'nodeName':'x'," CONTAINER("")), "a: UNRESOLVABLE node(s) didn't match the requested node name, "
							"b: UNRESOLVABLE node(s) didn't match the requested node name" },
	};
	struct world w;

	world_init(&w, &plugin_node_name);
	world_node(&w, NODE("a", ""));
	world_node(&w, NODE("b", ""));
	check_filter(&w, t, ARRAY_LEN(t));
	world_done(&w);
}

#define TOLERATES_UNSCHEDULABLE "'tolerations':[{'key':'node.kubernetes.io/unschedulable','operator':'Exists','effect':'NoSchedule'}]"

TEST(node_unschedulable)
{
	static const struct filter_row t[] = {
		{ POD(CONTAINER("")), "a: FIT, b: UNRESOLVABLE node(s) were unschedulable" },
		{ POD(TOLERATES_UNSCHEDULABLE), "skip" },
		{ POD("'tolerations':[{'key':'node.kubernetes.io/unschedulable'}]"), "skip" },
		{ POD("'tolerations':[{'operator':'Exists','effect':'NoExecute'}]"), "a: FIT, b: UNRESOLVABLE node(s) were unschedulable" },
	};
	static const struct hint_row nodes[] = {
		{ POD(""), EV_NODE_ADD, NULL, NODE("n", ""), true },
		{ POD(""), EV_NODE_ADD, NULL, NODE("n", "'unschedulable':true"), false },
		{ POD(""), EV_NODE_TAINT, NODE("n", "'unschedulable':true"), NODE("n", ""), true },
		{ POD(""), EV_NODE_TAINT, NODE("n", ""), NODE("n", ""), false },
	}, pods[] = {
		{ POD(""), EV_POD_TOLERATION, POD(""), POD(TOLERATES_UNSCHEDULABLE), true },
		{ POD(""), EV_POD_TOLERATION, POD(""), POD("'tolerations':[{'key':'x'}]"), false },
		{ POD(""), EV_POD_TOLERATION, POD(""), "{'metadata':{'uid':'v'},'spec':{" TOLERATES_UNSCHEDULABLE "}}", false },
	};
	struct world w;

	world_init(&w, &plugin_node_unschedulable);
	world_node(&w, NODE("a", ""));
	world_node(&w, NODE("b", "'unschedulable':true"));
	check_filter(&w, t, ARRAY_LEN(t));
	check_hint(&w, TYPE(core_v1, Node), nodes, ARRAY_LEN(nodes));
	check_hint(&w, TYPE(core_v1, Pod), pods, ARRAY_LEN(pods));
	world_done(&w);
}

/* ---- taints ---- */

#define TAINT(key, value, effect) "{'key':'" key "','value':'" value "','effect':'" effect "'}"
#define UNTOLERATED "UNRESOLVABLE node(s) had untolerated taint(s)"

TEST(taint_toleration_filter)
{
	static const struct filter_row t[] = {
		{ POD(""), "a: FIT, b: " UNTOLERATED ", c: " UNTOLERATED ", d: FIT" },
		{ POD("'tolerations':[{'operator':'Exists'}]"), "a: FIT, b: FIT, c: FIT, d: FIT" },
		{ POD("'tolerations':[{'operator':'Exists','effect':'NoSchedule'}]"), "a: FIT, b: FIT, c: " UNTOLERATED ", d: FIT" },
		{ POD("'tolerations':[{'key':'k','value':'v'}]"), "a: FIT, b: FIT, c: FIT, d: FIT" },
		{ POD("'tolerations':[{'key':'k','operator':'Equal','value':'v','effect':'NoExecute'}]"),
		  "a: FIT, b: " UNTOLERATED ", c: " UNTOLERATED ", d: FIT" },
		{ POD("'tolerations':[{'key':'k','operator':'Exists'}]"), "a: FIT, b: FIT, c: FIT, d: FIT" },
		{ POD("'tolerations':[{'key':'k','value':'other'}]"), "a: FIT, b: " UNTOLERATED ", c: " UNTOLERATED ", d: FIT" },
		{ POD("'tolerations':[{'key':'strange','operator':'Exists'}]"), "a: FIT, b: " UNTOLERATED ", c: " UNTOLERATED ", d: FIT" },
		{ POD("'tolerations':[{'key':'k','operator':'Gt','value':'v'}]"), "a: FIT, b: " UNTOLERATED ", c: " UNTOLERATED ", d: FIT" },
	};
	struct world w;

	world_init(&w, &plugin_taint_toleration);
	world_node(&w, NODE("a", ""));
	world_node(&w, NODE("b", "'taints':[" TAINT("k", "v", "NoSchedule") "]"));
	world_node(&w, NODE("c", "'taints':[" TAINT("k", "v", "NoSchedule") "," TAINT("k", "v", "NoExecute") "]"));
	world_node(&w, NODE("d", "'taints':[" TAINT("p", "", "PreferNoSchedule") "]"));
	check_filter(&w, t, ARRAY_LEN(t));
	world_done(&w);
}

TEST(taint_toleration_score)
{
	static const struct filter_row t[] = {
		{ POD(""), "a: 100, b: 67, c: 0, d: 100" },
		{ POD("'tolerations':[{'operator':'Exists'}]"), "a: 100, b: 100, c: 100, d: 100" },
		{ POD("'tolerations':[{'key':'x','operator':'Exists','effect':'PreferNoSchedule'}]"), "a: 100, b: 100, c: 0, d: 100" },
		/* Of another effect: says nothing. */
		{ POD("'tolerations':[{'operator':'Exists','effect':'NoSchedule'}]"), "a: 100, b: 67, c: 0, d: 100" },
	};
	struct world w;

	world_init(&w, &plugin_taint_toleration);
	world_node(&w, NODE("a", ""));
	world_node(&w, NODE("b", "'taints':[" TAINT("x", "", "PreferNoSchedule") "]"));
	world_node(&w, NODE("c", "'taints':[" TAINT("x", "", "PreferNoSchedule") "," TAINT("y", "", "PreferNoSchedule") ","
				 TAINT("z", "1", "PreferNoSchedule") "]"));
	world_node(&w, NODE("d", "'taints':[" TAINT("x", "", "NoSchedule") "]"));
	check_score(&w, t, ARRAY_LEN(t));
	world_done(&w);
}

TEST(taint_toleration_hint)
{
	static const char tainted[] = NODE("n", "'taints':[" TAINT("k", "v", "NoSchedule") "]");
	static const char soft[] = NODE("n", "'taints':[" TAINT("k", "v", "PreferNoSchedule") "]");
	static const struct hint_row nodes[] = {
		{ POD(""), EV_NODE_ADD, NULL, NODE("n", ""), true },
		{ POD(""), EV_NODE_ADD, NULL, tainted, false },
		{ POD(""), EV_NODE_TAINT, tainted, soft, true },
		{ POD(""), EV_NODE_TAINT, soft, NODE("n", ""), false },
		{ POD("'tolerations':[{'key':'k','value':'v'}]"), EV_NODE_TAINT, tainted, NODE("n", ""), false },
	}, pods[] = {
		{ POD(""), EV_POD_TOLERATION, POD(""), POD("'tolerations':[{'key':'k'}]"), true },
		{ POD(""), EV_POD_TOLERATION, NULL, "{'metadata':{'uid':'v'}}", false },
	};
	struct world w;

	world_init(&w, &plugin_taint_toleration);
	check_hint(&w, TYPE(core_v1, Node), nodes, ARRAY_LEN(nodes));
	check_hint(&w, TYPE(core_v1, Pod), pods, ARRAY_LEN(pods));
	world_done(&w);
}

/* ---- ports ---- */

#define PORTS(list) CONTAINER(",'ports':[" list "]")
#define NO_PORTS "UNSCHEDULABLE node(s) didn't have free ports for the requested pod ports"

TEST(node_ports_filter)
{
	static const struct filter_row t[] = {
		{ POD(CONTAINER("")), "skip" },
		{ POD(PORTS("{'containerPort':80}")), "skip" },
		{ POD(PORTS("{'hostPort':80,'protocol':'TCP'}")), "a: " NO_PORTS ", b: " NO_PORTS },
		{ POD(PORTS("{'hostPort':80,'protocol':'UDP'}")), "a: FIT, b: FIT" },
		{ POD(PORTS("{'hostPort':81}")), "a: FIT, b: FIT" },
		{ POD(PORTS("{'hostPort':80,'hostIP':'127.0.0.1'}")), "a: " NO_PORTS ", b: " NO_PORTS },
		{ POD(PORTS("{'hostPort':80,'hostIP':'127.0.0.2'}")), "a: " NO_PORTS ", b: FIT" },
		{ POD(PORTS("{'hostPort':81},{'hostPort':80,'hostIP':'127.0.0.1'}")), "a: " NO_PORTS ", b: " NO_PORTS },
		{ POD("'initContainers':[{'name':'i','ports':[{'hostPort':80}]}]," CONTAINER("")), "skip" },
		{ POD("'initContainers':[{'name':'i','restartPolicy':'Always','ports':[{'hostPort':80}]}]," CONTAINER("")),
		  "a: " NO_PORTS ", b: " NO_PORTS },
	};
	struct world w;
	struct placed *p;

	world_init(&w, &plugin_node_ports);
	world_node(&w, NODE("a", ""));
	world_node(&w, NODE("b", ""));
	p = world_pod(&w, "a", POD(PORTS("{'hostPort':80,'protocol':'TCP'}")));
	world_pod(&w, "b", POD(PORTS("{'hostPort':80,'hostIP':'127.0.0.1'}")));
	check_filter(&w, t, ARRAY_LEN(t));
	nodes_unplace(&w.table, p);
	CHECK_STR(world_filter(&w, POD(PORTS("{'hostPort':80}"))), "a: FIT, b: " NO_PORTS);
	world_done(&w);
}

TEST(node_ports_hint)
{
	static const struct hint_row t[] = {
		{ POD(PORTS("{'hostPort':80}")), EV_NODE_ADD, NULL, NULL, true },
		{ POD(PORTS("{'hostPort':80}")), EV_POD_DELETE, POD("'nodeName':'n'," PORTS("{'hostPort':80,'hostIP':'10.0.0.1'}")), NULL, true },
		{ POD(PORTS("{'hostPort':80}")), EV_POD_DELETE, POD("'nodeName':'n'," PORTS("{'hostPort':81}")), NULL, false },
		{ POD(PORTS("{'hostPort':80}")), EV_POD_DELETE, POD("'nodeName':'n'," CONTAINER("")), NULL, false },
		{ POD(PORTS("{'hostPort':80}")), EV_POD_DELETE, POD(PORTS("{'hostPort':80}")), NULL, false },
		{ POD(PORTS("{'hostPort':80,'hostIP':'10.0.0.2'}")), EV_POD_DELETE,
		  POD("'nodeName':'n'," PORTS("{'hostPort':80,'hostIP':'10.0.0.1'}")), NULL, false },
	};
	struct world w;

	world_init(&w, &plugin_node_ports);
	check_hint(&w, TYPE(core_v1, Pod), t, ARRAY_LEN(t));
	world_done(&w);
}

/* ---- images ---- */

TEST(image_locality_score)
{
	static const struct filter_row t[] = {
		/* 40 MiB on one of two nodes: 20 MiB, too little to count. */
		{ POD(CONTAINER(",'image':'small:1'")), "a: 0, b: 0" },
		/* 300 MiB on one of two: 100 * (150 - 23) / (1000 - 23). */
		{ POD(CONTAINER(",'image':'mid'")), "a: 12, b: 0" },
		/* On both: 100 * (300 - 23) / (2000 - 23), with two containers. */
		{ POD("'containers':[{'name':'c','image':'both:2'},{'name':'d','image':'none'}]"), "a: 14, b: 14" },
		/* Those of init containers and of volumes are added; only containers raise what can be reached: 100 * (150 + 300 - 23) / 1977. */
		{ POD("'initContainers':[{'name':'i','image':'mid:latest'}]," CONTAINER(",'image':'none'") ",'volumes':[{'name':'v','image':{"
		      "'reference':'both:2'}}]"), "a: 21, b: 14" },
		/* More than enough. */
		{ POD(CONTAINER(",'image':'huge:1'")), "a: 0, b: 100" },
		/* A port is not a tag. */
		{ POD(CONTAINER(",'image':'host:5000/x'")), "a: 12, b: 0" },
	};
	struct world w;

	world_init(&w, &plugin_image_locality);
	world_node(&w, "{'metadata':{'name':'a'},'status':{'images':[{'names':['small:1'],'sizeBytes':41943040},{'names':['mid:latest',"
		       "'host:5000/x:latest'],'sizeBytes':314572800},{'names':['both:2'],'sizeBytes':314572800}]}}");
	world_node(&w, "{'metadata':{'name':'b'},'status':{'images':[{'names':['both:2'],'sizeBytes':314572800},{'names':['huge:1'],'sizeBytes':"
		       "9000000000000000000}]}}");
	check_score(&w, t, ARRAY_LEN(t));
	world_done(&w);
}

#define RESTARTS_ALL CONTAINER(",'restartPolicyRules':[{'action':'RestartAllContainers'}]")

TEST(node_declared_features)
{
	static const struct filter_row t[] = {
		{ POD(CONTAINER("")), "skip" },
		{ POD(CONTAINER(",'restartPolicyRules':[{'action':'Restart'}]")), "skip" },
		{ POD("'hostNetwork':true," CONTAINER("")), "skip" },
		{ POD("'hostNetwork':true,'hostUsers':true," CONTAINER("")), "skip" },
		{ POD(RESTARTS_ALL), "a: FIT, b: UNRESOLVABLE node(s) didn't match Pod's required features, c: FIT" },
		{ POD("'hostNetwork':true,'hostUsers':false," RESTARTS_ALL),
		  "a: FIT, b: UNRESOLVABLE node(s) didn't match Pod's required features, c: UNRESOLVABLE node(s) didn't match Pod's required features" },
	};
	struct world w;

	world_init(&w, &plugin_node_declared_features);
	world_node(&w, "{'metadata':{'name':'a'},'status':{'declaredFeatures':['RestartAllContainersOnContainerExits','UserNamespacesHostNetworkSupport']}}");
	world_node(&w, "{'metadata':{'name':'b'}}");
	world_node(&w, "{'metadata':{'name':'c'},'status':{'declaredFeatures':['RestartAllContainersOnContainerExits']}}");
	check_filter(&w, t, ARRAY_LEN(t));
	CHECK((plugin_node_declared_features.events & (EV_NODE_ADD | EV_NODE_FEATURES)) == (EV_NODE_ADD | EV_NODE_FEATURES));
	world_done(&w);
}
