#include <stdlib.h>

#include "codec/atoms.h"
#include "scheduler/counters.h"
#include "scheduler/plugin_testing.h"

#define NO_AFFINITY "UNRESOLVABLE node(s) didn't match pod affinity rules"
#define NO_ANTI "UNSCHEDULABLE node(s) didn't match pod anti-affinity rules"
#define EXISTING "UNSCHEDULABLE node(s) didn't satisfy existing pods anti-affinity rules"
#define NODE(name, labels) "{'metadata':{'name':'" name "','labels':{" labels "}}}"
#define POD(namespace, app, affinity) \
	"{'metadata':{'name':'p','namespace':'" namespace "','labels':{'app':'" app "'}},'spec':{'affinity':{" affinity "}}}"
#define TERM(app, key, rest) "{'labelSelector':{'matchLabels':{'app':'" app "'}},'topologyKey':'" key "'" rest "}"
#define NEAR(terms) "'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" terms "]}"
#define FAR(terms) "'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" terms "]}"
#define LIKE(weight, term) "'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':" weight ",'podAffinityTerm':" term "}]}"
#define DISLIKE(weight, term) "'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':" weight ",'podAffinityTerm':" term "}]}"

/* Zone 1: a and b; zone 2: c; d has no zone. A web pod on a; a pod on c that does not want batch pods in its zone. */
static void make(struct world *w)
{
	world_init(w, &plugin_inter_pod_affinity);
	(void)counters_new(&w->table);
	world_node(w, NODE("a", "'zone':'1','host':'a'"));
	world_node(w, NODE("b", "'zone':'1','host':'b'"));
	world_node(w, NODE("c", "'zone':'2','host':'c'"));
	world_node(w, NODE("d", "'host':'d'"));
	counters_namespace(w->table.counters, VAL_EMPTY, world_object(w, TYPE(core_v1, Namespace), "{'metadata':{'name':'x','labels':{'team':'1'}}}"));
	counters_namespace(w->table.counters, VAL_EMPTY, world_object(w, TYPE(core_v1, Namespace), "{'metadata':{'name':'y','labels':{'team':'2'}}}"));
	world_pod(w, "a", POD("x", "web", ""));
	world_pod(w, "c", POD("x", "db", FAR(TERM("batch", "zone", ""))));
}

TEST(affinity_filter)
{
	static const struct { const char *pod, *want; } t[] = {
		{ POD("x", "web", ""), "skip" },
		{ POD("x", "batch", ""), "a: FIT, b: FIT, c: " EXISTING ", d: FIT" },
		{ POD("y", "batch", ""), "skip" },
		{ POD("x", "new", NEAR(TERM("web", "zone", ""))), "a: FIT, b: FIT, c: " NO_AFFINITY ", d: " NO_AFFINITY },
		{ POD("x", "new", NEAR(TERM("web", "host", ""))), "a: FIT, b: " NO_AFFINITY ", c: " NO_AFFINITY ", d: " NO_AFFINITY },
		{ POD("x", "new", FAR(TERM("web", "zone", ""))), "a: " NO_ANTI ", b: " NO_ANTI ", c: FIT, d: FIT" },
		/* Another namespace, unless it says so, by name or by labels. */
		{ POD("y", "new", FAR(TERM("web", "zone", ""))), "a: FIT, b: FIT, c: FIT, d: FIT" },
		{ POD("y", "new", FAR(TERM("web", "zone", ",'namespaces':['x']"))), "a: " NO_ANTI ", b: " NO_ANTI ", c: FIT, d: FIT" },
		{ POD("y", "new", FAR(TERM("web", "zone", ",'namespaceSelector':{}"))), "a: " NO_ANTI ", b: " NO_ANTI ", c: FIT, d: FIT" },
		{ POD("y", "new", FAR(TERM("web", "zone", ",'namespaceSelector':{'matchLabels':{'team':'1'}}"))),
		  "a: " NO_ANTI ", b: " NO_ANTI ", c: FIT, d: FIT" },
		{ POD("y", "new", FAR(TERM("web", "zone", ",'namespaceSelector':{'matchLabels':{'team':'2'}}"))), "a: FIT, b: FIT, c: FIT, d: FIT" },
		/* The first of its kind; and one whose kind is there already. */
		{ POD("x", "new", NEAR(TERM("new", "zone", ""))), "a: FIT, b: FIT, c: FIT, d: " NO_AFFINITY },
		{ POD("x", "web", NEAR(TERM("web", "zone", ""))), "a: FIT, b: FIT, c: " NO_AFFINITY ", d: " NO_AFFINITY },
		/* One pod must match all terms. */
		{ POD("x", "new", NEAR(TERM("web", "zone", "") "," TERM("db", "zone", ""))),
		  "a: " NO_AFFINITY ", b: " NO_AFFINITY ", c: " NO_AFFINITY ", d: " NO_AFFINITY },
		{ POD("x", "new", FAR("{'topologyKey':'zone','labelSelector':{'matchExpressions':[{'key':'app','operator':'Bad'}]}}")),
		  "UNRESOLVABLE parsing pod: \"Bad\" is not a valid label selector operator" },
	};
	struct world w;

	make(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, world_filter(&w, t[i].pod), t[i].want);
	world_done(&w);
}

/* What preemption tries: numbers follow the table, also for those who avoid the pod. */
TEST(affinity_filter_follows_the_table)
{
	struct world w;
	bool skip;
	void *made;

	make(&w);
	struct cycle c = world_cycle(&w, POD("x", "batch", FAR(TERM("web", "zone", ""))));
	CHECK(plugin_inter_pod_affinity.pre_filter(&c, &made, &skip) == FIT && !skip);
	CHECK_INT(plugin_inter_pod_affinity.filter(&c, made, 0), UNSCHEDULABLE);
	CHECK_INT(plugin_inter_pod_affinity.filter(&c, made, 2), UNSCHEDULABLE);
	nodes_unplace(&w.table, w.pods[0]);
	nodes_unplace(&w.table, w.pods[1]);
	CHECK_INT(plugin_inter_pod_affinity.filter(&c, made, 0), FIT);
	CHECK_INT(plugin_inter_pod_affinity.filter(&c, made, 2), FIT);
	nodes_place(&w.table, w.pods[1], 0);
	CHECK_INT(plugin_inter_pod_affinity.filter(&c, made, 1), UNSCHEDULABLE);
	world_done(&w);
}

TEST(affinity_score)
{
	static const struct { const char *pod, *want; } t[] = {
		{ POD("x", "web", ""), "skip" },
		{ POD("x", "new", LIKE("10", TERM("web", "zone", ""))), "a: 100, b: 100, c: 0, d: 0" },
		{ POD("x", "new", DISLIKE("10", TERM("web", "host", ""))), "a: 0, b: 100, c: 100, d: 100" },
		{ POD("x", "new", LIKE("10", TERM("web", "zone", "")) "," DISLIKE("5", TERM("web", "host", ""))), "a: 50, b: 100, c: 0, d: 0" },
		{ POD("y", "new", LIKE("10", TERM("web", "zone", ""))), "skip" },
		/* What pods that are there say of it: 4 for liking it, 1 for needing it. */
		{ POD("x", "liked", ""), "a: 0, b: 0, c: 100, d: 0" },
		{ POD("x", "needed", ""), "a: 0, b: 0, c: 0, d: 100" },
	};
	struct world w;

	make(&w);
	world_pod(&w, "c", POD("x", "other", LIKE("4", TERM("liked", "zone", ""))));
	world_pod(&w, "d", POD("x", "other", NEAR(TERM("needed", "host", ""))));
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, world_score(&w, t[i].pod), t[i].want);
	CHECK_STR(world_configure(&w, NULL, "{'hardPodAffinityWeight':0,'ignorePreferredTermsOfExistingPods':true}"), "");
	CHECK_STR(world_score(&w, POD("x", "liked", "")), "skip");
	CHECK_STR(world_score(&w, POD("x", "needed", LIKE("1", TERM("nobody", "zone", "")))), "skip");
	free(TAKE(w.config));
	world_done(&w);
}

TEST(affinity_configure)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	void *config = NULL;

	CHECK(plugin_inter_pod_affinity.configure(testing_tree(&a, "{'hardPodAffinityWeight':101}"), &config, &err) < 0);
	CHECK_STR(err_str(&err), "hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]");
}

TEST(affinity_hints)
{
#define OTHER(app, node) "{'metadata':{'name':'o','uid':'2','namespace':'x','labels':{'app':'" app "'}},'spec':{'nodeName':'" node "'}}"
	static const char near[] = POD("x", "new", NEAR(TERM("web", "zone", ""))), far[] = POD("x", "new", FAR(TERM("web", "zone", "")));
	static const struct { const char *pod; unsigned event; const char *old, *new; bool want; } pods[] = {
		{ near, EV_POD_ADD, NULL, OTHER("web", "n"), true },
		{ near, EV_POD_ADD, NULL, OTHER("web", ""), false },
		{ near, EV_POD_ADD, NULL, OTHER("db", "n"), false },
		{ near, EV_POD_LABEL, OTHER("db", "n"), OTHER("web", "n"), true },
		{ near, EV_POD_LABEL, OTHER("web", "n"), OTHER("db", "n"), false },
		{ far, EV_POD_LABEL, OTHER("web", "n"), OTHER("db", "n"), true },
		{ far, EV_POD_DELETE, OTHER("web", "n"), NULL, true },
		{ far, EV_POD_DELETE, OTHER("db", "n"), NULL, false },
		{ POD("x", "new", ""), EV_POD_DELETE, "{'metadata':{'namespace':'x'},'spec':{'nodeName':'n','affinity':{" FAR(TERM("new", "zone", "")) "}}}", NULL, true },
	}, nodes[] = {
		{ near, EV_NODE_ADD, NULL, NODE("n", "'zone':'1'"), true },
		{ near, EV_NODE_ADD, NULL, NODE("n", ""), false },
		{ near, EV_NODE_LABEL, NODE("n", ""), NODE("n", "'zone':'1'"), true },
		{ near, EV_NODE_LABEL, NODE("n", "'zone':'1'"), NODE("n", ""), false },
		{ far, EV_NODE_ADD, NULL, NODE("n", ""), true },
		{ far, EV_NODE_LABEL, NODE("n", "'zone':'1'"), NODE("n", ""), true },
		{ far, EV_NODE_LABEL, NODE("n", "'zone':'1'"), NODE("n", "'zone':'2'"), true },
		{ far, EV_NODE_LABEL, NODE("n", ""), NODE("n", "'zone':'1'"), false },
	};
	struct world w;

	make(&w);
	for (size_t i = 0; i < ARRAY_LEN(pods); i++)
		CHECK_ROW(i, world_hint(&w, TYPE(core_v1, Pod), pods[i].pod, pods[i].event, pods[i].old, pods[i].new) == pods[i].want);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		CHECK_ROW(i, world_hint(&w, TYPE(core_v1, Node), nodes[i].pod, nodes[i].event, nodes[i].old, nodes[i].new) == nodes[i].want);
	world_done(&w);
}
