/* Which schema a request falls under. */
#include "apiserver/fairness/flow.h"

#include "codec/types.h"
#include "machinery/testing.h"

#define META(name) "'metadata':{'name':'" name "','uid':'uid-" name "'}"
#define SPEC(level, precedence, more) "'spec':{'priorityLevelConfiguration':{'name':'" level "'},'matchingPrecedence':" #precedence more
#define GROUP(name) "{'kind':'Group','group':{'name':'" name "'}}"
#define USER(name) "{'kind':'User','user':{'name':'" name "'}}"
#define ACCOUNT(namespace, name) "{'kind':'ServiceAccount','serviceAccount':{'namespace':'" namespace "','name':'" name "'}}"
#define ALL "{'verbs':['*'],'apiGroups':['*'],'resources':['*'],'clusterScope':true,'namespaces':['*']}"

static const char *const schemas[] = {
	"{" META("leases") "," SPEC("catch-all", 100, ",'distinguisherMethod':{'type':'ByUser'},'rules':[{'subjects':["
	USER("scheduler") "," ACCOUNT("kube-system", "*") "],'resourceRules':[{'verbs':['get','update'],'apiGroups':['coordination.k8s.io'],"
	"'resources':['leases'],'namespaces':['*']}]}]") "}}",
	"{" META("probes") "," SPEC("exempt", 2, ",'rules':[{'subjects':[" GROUP("system:unauthenticated") "," GROUP("system:authenticated")
	"],'nonResourceRules':[{'verbs':['get'],'nonResourceURLs':['/healthz','/livez/*']}]}]") "}}",
	"{" META("nodes") "," SPEC("catch-all", 400, ",'distinguisherMethod':{'type':'ByNamespace'},'rules':[{'subjects':[" GROUP("system:nodes")
	"],'resourceRules':[{'verbs':['*'],'apiGroups':[''],'resources':['nodes','nodes/status'],'clusterScope':true}]}]") "}}",
	"{" META("robot") "," SPEC("catch-all", 400, ",'rules':[{'subjects':[" ACCOUNT("ci", "robot") "],'resourceRules':[" ALL "],"
	"'nonResourceRules':[{'verbs':['*'],'nonResourceURLs':['*']}]}]") "}}",
	"{" META("team") "," SPEC("catch-all", 500, ",'rules':[{'subjects':[" GROUP("*") "],'resourceRules':[{'verbs':['list'],'apiGroups':['*'],"
	"'resources':['*'],'namespaces':['team']}]}]") "}}",
	"{" META("dangling") "," SPEC("nowhere", 1, ",'rules':[{'subjects':[" GROUP("*") "],'resourceRules':[" ALL "]}]") "}}",
	"{" META("any-user") "," SPEC("catch-all", 9000, ",'rules':[{'subjects':[" USER("*") "],'resourceRules':[{'verbs':['create'],"
	"'apiGroups':['*'],'resources':['*'],'clusterScope':true}]}]") "}}",
};

struct asked {
	const char *user, *group, *method, *verb, *path, *api_group, *resource, *subresource, *namespace;
};

static struct request request_of(const struct asked *c, str *group)
{
	*group = str_of(c->group);
	return (struct request){
		.user = { .name = str_of(c->user), .groups = group, .n_groups = 1 }, .method = str_of(c->method),
		.is_resource = c->verb != NULL, .verb_text = c->verb ? str_of(c->verb) : str_of(c->method), .path = str_of(c->path),
		.group = str_of(c->api_group), .resource = str_of(c->resource), .subresource = str_of(c->subresource),
		.namespace = str_of(c->namespace),
	};
}

static void table_init(struct flow_table *t, struct levels *l, struct arena *a, size_t n)
{
	struct val objects[ARRAY_LEN(schemas)];
	for (size_t i = 0; i < n; i++)
		objects[i] = testing_typed(a, TYPE(flowcontrol_v1, FlowSchema), schemas[i]);
	levels_init(l, 600);
	levels_update(l, NULL, 0);
	flow_table_init(t, l, objects, n);
}

TEST(flow_schemas_match)
{
	static const struct { struct asked c; const char *want; } t[] = {
		{ { "admin", "system:masters", "GET", "get", "", "", "pods", "", "a" }, "exempt" },
		{ { "admin", "system:masters", "POST", NULL, "/x", "", "", "", "" }, "exempt" },
		{ { "bob", "system:authenticated", "GET", NULL, "/healthz", "", "", "", "" }, "probes" },
		{ { "bob", "system:authenticated", "GET", NULL, "/healthz/etcd", "", "", "", "" }, "probes" },
		{ { "bob", "system:authenticated", "GET", NULL, "/healthzz", "", "", "", "" }, "catch-all" },
		{ { "bob", "system:authenticated", "GET", NULL, "/livez/ping", "", "", "", "" }, "probes" },
		{ { "bob", "system:authenticated", "POST", NULL, "/healthz", "", "", "", "" }, "catch-all" },
		{ { "scheduler", "x", "GET", "get", "", "coordination.k8s.io", "leases", "", "kube-system" }, "leases" },
		{ { "scheduler", "x", "GET", "list", "", "coordination.k8s.io", "leases", "", "kube-system" }, "catch-all" },
		{ { "scheduler", "x", "GET", "get", "", "", "leases", "", "kube-system" }, "catch-all" },
		{ { "system:serviceaccount:kube-system:x", "x", "PUT", "update", "", "coordination.k8s.io", "leases", "", "a" }, "leases" },
		{ { "system:serviceaccount:kube-systems:x", "x", "PUT", "update", "", "coordination.k8s.io", "leases", "", "a" }, "catch-all" },
		{ { "system:serviceaccount:ci:robot", "x", "GET", "get", "", "", "pods", "log", "a" }, "robot" },
		{ { "system:serviceaccount:ci:robot2", "x", "GET", "get", "", "", "pods", "log", "a" }, "catch-all" },
		{ { "n1", "system:nodes", "PATCH", "patch", "", "", "nodes", "status", "" }, "nodes" },
		{ { "n1", "system:nodes", "PATCH", "patch", "", "", "nodes", "proxy", "" }, "catch-all" },
		{ { "n1", "system:nodes", "GET", "get", "", "", "nodes", "", "" }, "nodes" },
		{ { "n1", "system:nodes", "GET", "get", "", "", "nodes", "", "a" }, "catch-all" }, /* no namespaces are named */
		{ { "bob", "", "GET", "list", "", "apps", "deployments", "", "team" }, "team" },
		{ { "bob", "", "GET", "list", "", "apps", "deployments", "", "" }, "catch-all" },
		{ { "bob", "", "POST", "create", "", "", "namespaces", "", "" }, "any-user" },
		{ { "bob", "", "POST", "create", "", "", "pods", "", "a" }, "catch-all" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct levels l;
	struct flow_table table;
	table_init(&table, &l, &a, ARRAY_LEN(schemas));
	CHECK_INT(table.n, ARRAY_LEN(schemas) - 1 + 2);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str group;
		struct request q = request_of(&t[i].c, &group);
		CHECK_STR_ROW(i, flow_match(&table, &q)->name, t[i].want);
	}
	flow_table_done(&table);
	levels_done(&l);
}

TEST(flow_schemas_are_ordered_and_told_apart)
{
	static const char *const order[] = { "exempt", "probes", "leases", "nodes", "robot", "team", "any-user", "catch-all" };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct levels l;
	struct flow_table t;
	table_init(&t, &l, &a, ARRAY_LEN(schemas));
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		CHECK_STR_ROW(i, t.schemas[i].name, order[i]);
	CHECK_STR(t.schemas[1].uid, "uid-probes");
	CHECK_STR(t.schemas[1].level->name, "exempt");
	str group = STR("x");
	struct request q = { .user = { .name = STR("bob"), .groups = &group, .n_groups = 1 }, .namespace = STR("ns") };
	CHECK_STR(flow_distinguisher(&t.schemas[1], &q), "");
	CHECK_STR(flow_distinguisher(&t.schemas[2], &q), "bob");
	CHECK_STR(flow_distinguisher(&t.schemas[3], &q), "ns");
	CHECK(flow_hash(&t.schemas[2], STR("a")) == flow_hash(&t.schemas[2], STR("a")));
	CHECK(flow_hash(&t.schemas[2], STR("a")) != flow_hash(&t.schemas[2], STR("b")));
	CHECK(flow_hash(&t.schemas[2], STR("a")) != flow_hash(&t.schemas[3], STR("a")));
	flow_table_done(&t);
	levels_done(&l);
}

TEST(mandatory_schemas_are_always_there)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct levels l;
	struct flow_table t;
	table_init(&t, &l, &a, 0);
	CHECK_INT(t.n, 2);
	CHECK(t.schemas[0].level->exempt && !t.schemas[1].level->exempt);
	flow_table_done(&t);
	levels_done(&l);
}
