#include "apiserver/admission/resource_quota.h"

#include "apiserver/request_testing.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "machinery/testing.h"

static struct quota_amounts amounts(struct arena *a, const char *map) { return quota_amounts_of(a, testing_tree(a, map)); }

TEST(quota_amounts_are_put_together_by_name)
{
	static const struct {
		enum quota_merge how;
		const char *x, *y, *want;
	} t[] = {
		{ QUOTA_ADD, "{'cpu':'500m','pods':'1'}", "{'cpu':'1','memory':'1Gi'}", "cpu=1500m,memory=1Gi,pods=1" },
		{ QUOTA_ADD, "{'memory':'0'}", "{'memory':'100Mi'}", "memory=100Mi" },
		{ QUOTA_MAX, "{'a':'1','b':'3'}", "{'a':'2','b':'2','c':'1'}", "a=2,b=3,c=1" },
		{ QUOTA_REPLACE, "{'a':'3','b':'3'}", "{'a':'2'}", "a=2,b=3" },
		{ QUOTA_RAISE, "{'a':'3','b':'0'}", "{'a':'2','b':'2','c':'2'}", "a=5,b=0" },
		{ QUOTA_LESS, "{'a':'3','b':'1','d':'-1'}", "{'a':'2','b':'2','c':'2'}", "a=1,b=0,c=0,d=0" },
		{ QUOTA_MASK, "{'a':'3','b':'1'}", "{'b':'2','c':'2'}", "b=1" },
		{ QUOTA_ADD, "{}", "{}", "" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, quota_amounts_text(&a, quota_merge(&a, amounts(&a, t[i].x), amounts(&a, t[i].y), t[i].how)),
			      t[i].want);
}

#define CONTAINER(name, resources) "{'name':'" name "','resources':" resources "}"
#define ONE "'containers':[" CONTAINER("c", "{'requests':{'cpu':'1','memory':'1Gi'},'limits':{'cpu':'2'}}") "]"

TEST(quota_usage_of_objects)
{
	static const struct {
		const char *resource, *object, *want;
	} t[] = {
		{ "pods", "{'spec':{" ONE "}}",
		  "count/pods=1,cpu=1,limits.cpu=2,memory=1Gi,pods=1,requests.cpu=1,requests.memory=1Gi" },
		/* an init container needs more than all others together; a sidecar stays */
		{ "pods",
		  "{'spec':{'containers':[" CONTAINER("c", "{'requests':{'cpu':'1'}}") "],'initContainers':["
		  "{'name':'s','restartPolicy':'Always','resources':{'requests':{'cpu':'100m'}}},"
		  CONTAINER("i", "{'requests':{'cpu':'3'}}") "]}}",
		  "count/pods=1,cpu=3100m,pods=1,requests.cpu=3100m" },
		/* overhead is on top of requests, and of limits that there are */
		{ "pods", "{'spec':{" ONE ",'overhead':{'cpu':'250m','memory':'10Mi'}}}",
		  "count/pods=1,cpu=1250m,limits.cpu=2250m,memory=1034Mi,pods=1,requests.cpu=1250m,requests.memory=1034Mi" },
		/* what is said for the pod as a whole counts */
		{ "pods", "{'spec':{" ONE ",'resources':{'requests':{'cpu':'5'},'limits':{'cpu':'6','memory':'2Gi'}}}}",
		  "count/pods=1,cpu=5,limits.cpu=6,limits.memory=2Gi,memory=1Gi,pods=1,requests.cpu=5,requests.memory=1Gi" },
		/* a resize is under way: the most of what is asked for, given and in place; or what is, if it cannot be */
		{ "pods",
		  "{'spec':{" ONE "},'status':{'containerStatuses':[{'name':'c','allocatedResources':{'memory':'3Gi'},"
		  "'resources':{'requests':{'cpu':'1500m'},'limits':{'cpu':'3'}}}]}}",
		  "count/pods=1,cpu=1500m,limits.cpu=3,memory=3Gi,pods=1,requests.cpu=1500m,requests.memory=3Gi" },
		{ "pods",
		  "{'spec':{" ONE "},'status':{'conditions':[{'type':'PodResizePending','reason':'Infeasible'}],"
		  "'containerStatuses':[{'name':'c','resources':{'requests':{'cpu':'500m'}}}]}}",
		  "count/pods=1,cpu=500m,pods=1,requests.cpu=500m" },
		{ "pods",
		  "{'spec':{'containers':[" CONTAINER("c", "{'requests':{'hugepages-2Mi':'4Mi','example.com/gpu':'2',"
		  "'ephemeral-storage':'1Gi'},'limits':{'ephemeral-storage':'2Gi','example.com/gpu':'2'}}") "]}}",
		  "count/pods=1,ephemeral-storage=1Gi,hugepages-2Mi=4Mi,limits.ephemeral-storage=2Gi,pods=1,"
		  "requests.ephemeral-storage=1Gi,requests.example.com/gpu=2,requests.hugepages-2Mi=4Mi" },
		{ "pods", "{'spec':{" ONE "},'status':{'phase':'Succeeded'}}", "count/pods=1" },
		{ "pods",
		  "{'metadata':{'deletionTimestamp':'2020-01-01T00:00:00Z','deletionGracePeriodSeconds':30},'spec':{" ONE "}}",
		  "count/pods=1" },
		{ "services", "{'spec':{'ports':[{'port':1},{'port':2}]}}",
		  "count/services=1,services=1,services.loadbalancers=0,services.nodeports=0" },
		{ "services", "{'spec':{'type':'NodePort','ports':[{'port':1},{'port':2}]}}",
		  "count/services=1,services=1,services.loadbalancers=0,services.nodeports=2" },
		{ "services", "{'spec':{'type':'LoadBalancer','ports':[{'port':1},{'port':2}]}}",
		  "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2" },
		{ "services",
		  "{'spec':{'type':'LoadBalancer','allocateLoadBalancerNodePorts':false,'ports':[{'port':1,'nodePort':9},{'port':2}]}}",
		  "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1" },
		{ "persistentvolumeclaims", "{'spec':{'storageClassName':'gold','resources':{'requests':{'storage':'1500m'}}}}",
		  "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,"
		  "gold.storageclass.storage.k8s.io/requests.storage=2,persistentvolumeclaims=1,requests.storage=2" },
		{ "persistentvolumeclaims",
		  "{'spec':{'resources':{'requests':{'storage':'1Gi'}}},'status':{'allocatedResources':{'storage':'2Gi'}}}",
		  "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2Gi" },
		{ "configmaps", "{}", "configmaps=1,count/configmaps=1" },
		{ "replicationcontrollers", "{}", "count/replicationcontrollers=1,replicationcontrollers=1" },
		{ "endpoints", "{}", "count/endpoints=1" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct request q = { .arena = &a, .resource = str_of(t[i].resource) };
		CHECK_STR_ROW(i, quota_amounts_text(&a, quota_evaluator_of(&q)->usage(&q, testing_tree(&a, t[i].object))), t[i].want);
	}
	struct request q = { .arena = &a, .group = STR("apps"), .resource = STR("deployments") };
	CHECK_STR(quota_amounts_text(&a, quota_evaluator_of(&q)->usage(&q, VAL_EMPTY)), "count/deployments.apps=1");
	q = (struct request){ .arena = &a, .group = STR("events.k8s.io"), .resource = STR("events") };
	CHECK(!quota_evaluator_of(&q));
}

/* ---- checking ---- */

enum { QUOTAS_MAX = 3 };

struct check_row {
	const char *quotas[QUOTAS_MAX];
	const char *resource;         /* or "resource/subresource" */
	const char *old, *object;
	const char *want;             /* "q: cpu=1; r: pods=1", or the message */
};

static str shares_text(struct arena *a, const struct quota_share *shares, size_t n)
{
	str text = STR("");
	for (size_t i = 0; i < n; i++)
		text = arena_printf(a, STR_FMT "%s" STR_FMT ": " STR_FMT, STR_ARG(text), i ? "; " : "", STR_ARG(shares[i].name),
				    STR_ARG(quota_amounts_text(a, shares[i].amounts)));
	return text;
}

static str check(struct call *c, const struct check_row *row, const char *limited)
{
	struct arena *a = &c->arena;
	struct object objects[QUOTAS_MAX];
	struct quota quotas[QUOTAS_MAX];
	struct quota_share *shares;
	struct quota_demand d;
	size_t n = 0, n_shares;
	str resource, subresource;
	str_cut(str_of(row->resource), '/', &resource, &subresource);
	for (; n < QUOTAS_MAX && row->quotas[n]; n++) {
		objects[n] = (struct object){ .val = testing_tree(a, row->quotas[n]) };
		quotas[n] = quota_of(a, &objects[n]);
	}
	c->q = (struct request){ .server = &c->server, .arena = a, .namespace = STR("ns"), .resource = resource,
				 .subresource = subresource, .old = testing_tree(a, row->old),
				 .object = testing_tree(a, row->object) };
	const struct quota_evaluator *e = quota_evaluator_of(&c->q);
	if (!e->handles(&c->q))
		return STR("not asked");
	quota_demand_init(&d, &c->q, e, testing_tree(a, limited));
	if (quota_check(&d, quotas, n, NULL, 0, &shares, &n_shares) < 0)
		return val_str(c->q.failure, message);
	return shares_text(a, shares, n_shares);
}

static void check_rows(const struct check_row *rows, size_t n, const char *limited)
{
	static struct call c;
	call_init(&c);
	for (size_t i = 0; i < n; i++)
		CHECK_STR_ROW(i, check(&c, &rows[i], limited), rows[i].want);
	call_done(&c);
}

#define QUOTA(name, spec, hard, used) \
	"{'metadata':{'name':'" name "','uid':'" name "'},'spec':{" spec "},'status':{'hard':{" hard "},'used':{" used "}}}"
#define POD(requests) "{'metadata':{'name':'p'},'spec':{'containers':[" CONTAINER("c", requests) "]}}"
#define SELECT(scope, operator, values) \
	"'scopeSelector':{'matchExpressions':[{'scopeName':'" scope "','operator':'" operator "','values':[" values "]}]}"

TEST(quota_check_of_amounts)
{
	static const struct check_row rows[] = {
		{ { QUOTA("q", "", "'pods':'2','secrets':'1'", "'pods':'1','secrets':'1'") }, "pods", NULL, POD("{}"), "q: pods=1" },
		{ { QUOTA("q", "", "'pods':'2'", "'pods':'2'") }, "pods", NULL, POD("{}"),
		  "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2" },
		{ { QUOTA("q", "", "'cpu':'2','memory':'1Gi','pods':'9'", "'cpu':'1500m','memory':'1Gi','pods':'1'") }, "pods", NULL,
		  POD("{'requests':{'cpu':'1','memory':'1Mi'}}"),
		  "pods \"p\" is forbidden: exceeded quota: q, requested: cpu=1,memory=1Mi, used: cpu=1500m,memory=1Gi, limited: "
		  "cpu=2,memory=1Gi" },
		/* a status that nobody has filled in limits nothing; one that is half full cannot be told */
		{ { QUOTA("q", "'hard':{'pods':'0'}", "", "") }, "pods", NULL, POD("{}"), "" },
		{ { QUOTA("q", "", "'pods':'1','requests.cpu':'1'", "") }, "pods", NULL, POD("{'requests':{'cpu':'1'}}"),
		  "pods \"p\" is forbidden: status unknown for quota: q, resources: pods,requests.cpu" },
		{ { QUOTA("q", "", "'limits.cpu':'1','requests.memory':'1'", "'limits.cpu':'0','requests.memory':'0'") }, "pods", NULL,
		  "{'metadata':{'generateName':'p-'},'spec':{'initContainers':[{'name':'a'}],'containers':[{'name':'c'},{'name':'b'}]}}",
		  "pods \"p-\" is forbidden: failed quota: q: must specify limits.cpu for: a,b,c; requests.memory for: a,b,c" },
		/* not if the pod says it as a whole */
		{ { QUOTA("q", "", "'requests.cpu':'1'", "'requests.cpu':'0'") }, "pods", NULL,
		  "{'spec':{'containers':[{'name':'c'}],'resources':{'requests':{'cpu':'1'}}}}", "q: requests.cpu=1" },
		{ { QUOTA("q", "", "'pods':'2'", "'pods':'1'"), QUOTA("r", "", "'count/pods':'1'", "'count/pods':'1'") }, "pods", NULL,
		  POD("{}"),
		  "pods \"p\" is forbidden: exceeded quota: r, requested: count/pods=1, used: count/pods=1, limited: count/pods=1" },
		{ { QUOTA("q", "", "'pods':'2'", "'pods':'1'"), QUOTA("r", "", "'count/pods':'2'", "'count/pods':'1'") }, "pods", NULL,
		  POD("{}"), "q: pods=1; r: count/pods=1" },
		/* updates are charged for the difference */
		{ { QUOTA("q", "", "'requests.cpu':'4'", "'requests.cpu':'2'") }, "pods/resize", POD("{'requests':{'cpu':'2'}}"),
		  POD("{'requests':{'cpu':'3'}}"), "q: requests.cpu=1" },
		{ { QUOTA("q", "", "'requests.cpu':'4'", "'requests.cpu':'2'") }, "pods/resize", POD("{'requests':{'cpu':'2'}}"),
		  POD("{'requests':{'cpu':'1'}}"), "" },
		{ { QUOTA("q", "", "'requests.cpu':'4'", "'requests.cpu':'2'") }, "pods", POD("{}"), POD("{}"), "not asked" },
		{ { QUOTA("q", "", "'services.nodeports':'1'", "'services.nodeports':'0'") }, "services",
		  "{'metadata':{'name':'s'},'spec':{'type':'ClusterIP','ports':[{'port':1},{'port':2}]}}",
		  "{'metadata':{'name':'s'},'spec':{'type':'NodePort','ports':[{'port':1},{'port':2}]}}",
		  "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, limited: "
		  "services.nodeports=1" },
		/* a status tells what has happened: it is charged, and never refused */
		{ { QUOTA("q", "", "'requests.storage':'1Gi'", "'requests.storage':'1Gi'") }, "persistentvolumeclaims/status",
		  "{'spec':{'resources':{'requests':{'storage':'1Gi'}}}}",
		  "{'spec':{'resources':{'requests':{'storage':'1Gi'}}},'status':{'allocatedResources':{'storage':'3Gi'}}}",
		  "q: requests.storage=2Gi" },
		{ { QUOTA("q", "", "'count/configmaps':'1'", "'count/configmaps':'0'") }, "configmaps", "{}", "{}", "not asked" },
	};
	check_rows(rows, ARRAY_LEN(rows), NULL);
}

TEST(quota_check_of_scopes)
{
#define LIMIT(spec) { QUOTA("q", spec, "'pods':'1'", "'pods':'0'") }
#define VAC(spec) { QUOTA("q", spec, "'persistentvolumeclaims':'1'", "'persistentvolumeclaims':'0'") }
#define CLASS(name) "{'spec':{'priorityClassName':'" name "','containers':[{'name':'c'}]}}"
#define TERM(term) "{'spec':{'containers':[{'name':'c'}],'affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[" \
		   "{'weight':1,'podAffinityTerm':" term "}]}}}}"
	static const struct check_row rows[] = {
		{ LIMIT("'scopes':['Terminating']"), "pods", NULL, POD("{}"), "" },
		{ LIMIT("'scopes':['Terminating']"), "pods", NULL, "{'spec':{'activeDeadlineSeconds':0}}", "q: pods=1" },
		{ LIMIT("'scopes':['NotTerminating']"), "pods", NULL, POD("{}"), "q: pods=1" },
		/* a pod that moves into a scope is charged as a whole */
		{ LIMIT("'scopes':['Terminating']"), "pods", POD("{}"), "{'spec':{'activeDeadlineSeconds':5}}", "q: pods=1" },
		{ LIMIT("'scopes':['BestEffort','NotTerminating']"), "pods", NULL, POD("{}"), "q: pods=1" },
		{ LIMIT("'scopes':['BestEffort']"), "pods", NULL, POD("{'requests':{'cpu':'1'}}"), "" },
		{ LIMIT("'scopes':['NotBestEffort']"), "pods", NULL, POD("{'requests':{'cpu':'1'}}"), "q: pods=1" },
		{ LIMIT("'scopes':['PriorityClass']"), "pods", NULL, POD("{}"), "" },
		{ LIMIT("'scopes':['PriorityClass']"), "pods", NULL, CLASS("high"), "q: pods=1" },
		{ LIMIT(SELECT("PriorityClass", "In", "'high','low'")), "pods", NULL, CLASS("low"), "q: pods=1" },
		{ LIMIT(SELECT("PriorityClass", "In", "'high','low'")), "pods", NULL, CLASS("other"), "" },
		{ LIMIT(SELECT("PriorityClass", "NotIn", "'high'")), "pods", NULL, POD("{}"), "q: pods=1" },
		{ LIMIT(SELECT("PriorityClass", "NotIn", "'high'")), "pods", NULL, CLASS("high"), "" },
		{ LIMIT(SELECT("PriorityClass", "DoesNotExist", "")), "pods", NULL, POD("{}"), "q: pods=1" },
		{ LIMIT(SELECT("PriorityClass", "Near", "'x'")), "pods", NULL, POD("{}"),
		  "error matching scopes of quota q, err: error on matching scope {PriorityClass Near [x]}: failed to parse and convert "
		  "selector: \"Near\" is not a valid scope selector operator" },
		{ LIMIT("'scopes':['CrossNamespacePodAffinity']"), "pods", NULL, TERM("{'namespaces':['other']}"), "q: pods=1" },
		{ LIMIT("'scopes':['CrossNamespacePodAffinity']"), "pods", NULL, TERM("{'namespaceSelector':{}}"), "q: pods=1" },
		{ LIMIT("'scopes':['CrossNamespacePodAffinity']"), "pods", NULL, TERM("{'topologyKey':'x'}"), "" },
		{ VAC("'scopes':['VolumeAttributesClass']"), "persistentvolumeclaims", NULL, "{}", "" },
		{ VAC(SELECT("VolumeAttributesClass", "In", "'fast'")), "persistentvolumeclaims", NULL,
		  "{'spec':{'volumeAttributesClassName':'fast'}}", "q: persistentvolumeclaims=1" },
		{ VAC(SELECT("VolumeAttributesClass", "In", "'fast'")), "persistentvolumeclaims", NULL,
		  "{'spec':{'volumeAttributesClassName':'slow'},'status':{'currentVolumeAttributesClassName':'fast'}}",
		  "q: persistentvolumeclaims=1" },
		/* other objects are in no scope at all */
		{ { QUOTA("q", "'scopes':['BestEffort']", "'configmaps':'0'", "'configmaps':'0'") }, "configmaps", NULL, "{}", "" },
	};
	check_rows(rows, ARRAY_LEN(rows), NULL);
}

#define GOLD "{'metadata':{'name':'c'},'spec':{'storageClassName':'gold','resources':{'requests':{'storage':'1'}}}}"

TEST(quota_check_of_limited_names)
{
	static const struct check_row rows[] = {
		{ { NULL }, "persistentvolumeclaims", NULL, "{'spec':{'resources':{'requests':{'storage':'1'}}}}", "" },
		{ { NULL }, "persistentvolumeclaims", NULL, GOLD,
		  "persistentvolumeclaims \"c\" is forbidden: insufficient quota to consume: "
		  "gold.storageclass.storage.k8s.io/persistentvolumeclaims,gold.storageclass.storage.k8s.io/requests.storage" },
		{ { NULL }, "persistentvolumeclaims", GOLD, GOLD, "" },
		{ { QUOTA("q", "", "'gold.storageclass.storage.k8s.io/persistentvolumeclaims':'1',"
			  "'gold.storageclass.storage.k8s.io/requests.storage':'9'",
			  "'gold.storageclass.storage.k8s.io/persistentvolumeclaims':'0',"
			  "'gold.storageclass.storage.k8s.io/requests.storage':'0'") },
		  "persistentvolumeclaims", NULL, GOLD,
		  "q: gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=1" },
		{ { NULL }, "configmaps", NULL, "{}", "" },
	};
	check_rows(rows, ARRAY_LEN(rows), "[{'resource':'persistentvolumeclaims','matchContains':['.storageclass.storage.k8s.io/']}]");
}

TEST(quota_check_of_limited_scopes)
{
	static const struct check_row rows[] = {
		{ { NULL }, "pods", NULL, POD("{}"), "" },
		{ { NULL }, "pods", NULL, CLASS("high"), "insufficient quota to match these scopes: [{PriorityClass In [high top]}]" },
		{ LIMIT(SELECT("PriorityClass", "In", "'high'")), "pods", NULL, CLASS("high"), "q: pods=1" },
		{ { NULL }, "configmaps", NULL, "{}", "" },
	};
	check_rows(rows, ARRAY_LEN(rows),
		   "[{'resource':'pods','matchScopes':[{'scopeName':'PriorityClass','operator':'In','values':['high','top']}]}]");
}
