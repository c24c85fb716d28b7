#include "machinery/table.h"

#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "machinery/testing.h"

/* Two hours after most of the objects below were made. */
static int64_t now(void)
{
	struct timestamp t;
	CHECK_INT(time_parse(STR("2026-01-02T02:00:00Z"), &t, NULL), 0);
	return t.seconds * NS_PER_S;
}

#define MADE "'creationTimestamp':'2026-01-02T00:00:00Z'"
#define META(name) "'metadata':{'name':'" name "'," MADE "}"

/* object: JSON with ' for "; want: the cells in the same form. */
struct row {
	const char *object, *want;
};

static void check_rows(const struct row *rows, size_t n)
{
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < n; i++) {
		const struct type *type = NULL;
		struct val object, cells, conditions;
		struct err err = ERR_INIT;
		int r = json_decode_object(&a, testing_json(&a, rows[i].object), NULL, &object, &type, &err);
		CHECK_STR_ROW(i, err_str(&err), "");
		CHECK_ROW(i, r == 0 && type);
		table_row(&a, table_of(type), object, now(), &cells, &conditions);
		CHECK_STR_ROW(i, testing_text(&a, cells), rows[i].want);
	}
	arena_done(&a);
}

#define POD(spec, status) "{'apiVersion':'v1','kind':'Pod'," META("p") ",'spec':{" spec "},'status':{" status "}}"
#define POD_GONE(status) \
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'," MADE ",'deletionTimestamp':'2026-01-02T01:00:00Z'}," \
	"'spec':{'containers':[{'name':'a'}]},'status':{" status "}}"
#define ONE "'containers':[{'name':'a'}]"
#define TWO "'containers':[{'name':'a'},{'name':'b'}]"
#define INIT "'initContainers':[{'name':'i'},{'name':'j'}]," ONE
#define SIDECAR "'initContainers':[{'name':'i','restartPolicy':'Always'}]," ONE
#define RUNS "'ready':true,'state':{'running':{}}"
#define REST ",'<none>','<none>','<none>','<none>']"

TEST(table_pod)
{
	static const struct row t[] = {
		{ POD(ONE, "'phase':'Pending'"), "['p','0/1','Pending','0','120m'" REST },
		{ POD(ONE, "'phase':'Failed','reason':'Evicted'"), "['p','0/1','Evicted','0','120m'" REST },
		{ POD(ONE, "'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'SchedulingGated'}]"),
		  "['p','0/1','SchedulingGated','0','120m'" REST },
		{ POD(TWO, "'phase':'Running','containerStatuses':[{'name':'a'," RUNS "},{'name':'b'," RUNS "}]"),
		  "['p','2/2','Running','0','120m'" REST },
		{ POD(TWO, "'phase':'Running','containerStatuses':[{'name':'a'," RUNS ",'restartCount':2,'lastState':{'terminated':{"
			   "'exitCode':1,'finishedAt':'2026-01-02T01:55:00Z'}}},{'name':'b','restartCount':1,'lastState':{'terminated':{"
			   "'finishedAt':'2026-01-02T01:00:00Z'}},'state':{'waiting':{'reason':'CrashLoopBackOff'}}}]"),
		  "['p','1/2','CrashLoopBackOff','3 (5m ago)','120m'" REST },
		{ POD(ONE, "'phase':'Succeeded','containerStatuses':[{'name':'a','state':{'terminated':{'reason':'Completed'}}}]"),
		  "['p','0/1','Completed','0','120m'" REST },
		{ POD(ONE, "'phase':'Failed','containerStatuses':[{'name':'a','state':{'terminated':{'exitCode':3}}}]"),
		  "['p','0/1','ExitCode:3','0','120m'" REST },
		{ POD(ONE, "'phase':'Failed','containerStatuses':[{'name':'a','state':{'terminated':{'exitCode':137,'signal':9}}}]"),
		  "['p','0/1','Signal:9','0','120m'" REST },
		{ POD(TWO, "'phase':'Running','conditions':[{'type':'Ready','status':'True'}],'containerStatuses':[{'name':'a','state':"
			   "{'terminated':{'reason':'Completed'}}},{'name':'b'," RUNS "}]"),
		  "['p','1/2','Running','0','120m'" REST },
		{ POD(TWO, "'phase':'Running','containerStatuses':[{'name':'a','state':{'terminated':{'reason':'Completed'}}},{'name':'b',"
			   RUNS "}]"), "['p','1/2','NotReady','0','120m'" REST },
		{ POD(TWO, "'phase':'Running','containerStatuses':[{'name':'a','state':{'terminated':{'reason':'Completed'}}},{'name':'b',"
			   "'state':{'terminated':{'reason':'Error','exitCode':1}}}]"),
		  "['p','0/2','Error','0','120m'" REST },
		{ POD(INIT, "'phase':'Pending','initContainerStatuses':[{'name':'i','state':{'terminated':{}}},{'name':'j','state':{}}]"),
		  "['p','0/1','Init:1/2','0','120m'" REST },
		{ POD(INIT, "'phase':'Pending','initContainerStatuses':[{'name':'i','restartCount':4,'state':{'waiting':{'reason':"
			    "'ImagePullBackOff'}}}]"),
		  "['p','0/1','Init:ImagePullBackOff','4','120m'" REST },
		{ POD(INIT, "'phase':'Pending','initContainerStatuses':[{'name':'i','state':{'terminated':{'exitCode':2}}}]"),
		  "['p','0/1','Init:ExitCode:2','0','120m'" REST },
		{ POD(SIDECAR, "'phase':'Running','initContainerStatuses':[{'name':'i','started':true,'ready':true,'restartCount':1,'state':"
			       "{'running':{}}}],'containerStatuses':[{'name':'a'," RUNS "}]"),
		  "['p','2/2','Running','1','120m'" REST },
		{ POD_GONE("'phase':'Running'"), "['p','0/1','Terminating','0','120m'" REST },
		{ POD_GONE("'phase':'Running','reason':'NodeLost'"), "['p','0/1','Unknown','0','120m'" REST },
		{ POD_GONE("'phase':'Succeeded'"), "['p','0/1','Succeeded','0','120m'" REST },
		{ POD(ONE ",'nodeName':'n1','readinessGates':[{'conditionType':'x'},{'conditionType':'y'}]",
		      "'phase':'Running','nominatedNodeName':'n2','podIP':'10.0.0.7','podIPs':[{'ip':'10.0.0.7'},{'ip':'fd00::7'}],"
		      "'conditions':[{'type':'y','status':'True'}]"),
		  "['p','0/1','Running','0','120m','10.0.0.7','n1','n2','1/2']" },
	};
	check_rows(t, ARRAY_LEN(t));
}

TEST(table_row_conditions)
{
	static const struct {
		const char *phase, *want;
	} t[] = {
		{ "Running", NULL },
		{ "Succeeded", "[{'type':'Completed','status':'True','reason':'Succeeded','message':'The pod has completed successfully.'}]" },
		{ "Failed", "[{'type':'Completed','status':'True','reason':'Failed','message':'The pod failed.'}]" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val cells, conditions, pod = OBJECT(&a, F(status, OBJECT(&a, F(phase, val_of_str(str_of(t[i].phase))))));
		table_row(&a, table_of(TYPE(core_v1, Pod)), pod, now(), &cells, &conditions);
		CHECK_ROW(i, val_exists(conditions) == (t[i].want != NULL));
		if (t[i].want)
			CHECK_STR_ROW(i, testing_text(&a, conditions), t[i].want);
	}
	arena_done(&a);
}

#define SERVICE(spec, status) "{'apiVersion':'v1','kind':'Service'," META("s") ",'spec':{" spec "},'status':{" status "}}"
#define NODE(meta, rest) "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n'," MADE meta "}," rest "}"
#define CORE(kind, rest) "{'apiVersion':'v1','kind':'" kind "'," META("x") rest "}"

TEST(table_core)
{
	static const struct row t[] = {
		{ SERVICE("'type':'ClusterIP','clusterIPs':['10.96.0.1'],'ports':[{'port':443,'protocol':'TCP'}]", ""),
		  "['s','ClusterIP','10.96.0.1','<none>','443/TCP','120m','<none>']" },
		{ SERVICE("'type':'NodePort','clusterIPs':['10.96.0.1'],'externalIPs':['1.1.1.1','2.2.2.2'],'selector':{'b':'2','a':'1'},"
			  "'ports':[{'port':80,'nodePort':30080,'protocol':'TCP'},{'port':53,'protocol':'UDP'}]", ""),
		  "['s','NodePort','10.96.0.1','1.1.1.1,2.2.2.2','80:30080/TCP,53/UDP','120m','a=1,b=2']" },
		{ SERVICE("'type':'LoadBalancer'", ""), "['s','LoadBalancer','<none>','<pending>','<none>','120m','<none>']" },
		{ SERVICE("'type':'LoadBalancer','externalIPs':['1.1.1.1']",
			  "'loadBalancer':{'ingress':[{'ip':'9.9.9.9'},{'hostname':'lb.example.com'},{'ip':'9.9.9.9'}]}"),
		  "['s','LoadBalancer','<none>','9.9.9.9,lb.example.com,1.1.1.1','<none>','120m','<none>']" },
		{ SERVICE("'type':'ExternalName','externalName':'db.example.com'", ""),
		  "['s','ExternalName','<none>','db.example.com','<none>','120m','<none>']" },
		{ CORE("Endpoints", ",'subsets':[{'addresses':[{'ip':'10.0.0.1'},{'ip':'fd00::1'}],'ports':[{'port':80},{'port':81}]}]"),
		  "['x','10.0.0.1:80,[fd00::1]:80,10.0.0.1:81 + 1 more...','120m']" },
		{ CORE("Endpoints", ",'subsets':[{'addresses':[{'ip':'10.0.0.1'}]}]"), "['x','10.0.0.1','120m']" },
		{ CORE("Endpoints", ""), "['x','<none>','120m']" },
		{ NODE(",'labels':{'kubernetes.io/role':'worker','node-role.kubernetes.io/control-plane':''}",
		       "'spec':{'unschedulable':true},'status':{'conditions':[{'type':'Ready','status':'True'}],'addresses':[{'type':'Hostname',"
		       "'address':'h'},{'type':'InternalIP','address':'10.0.0.1'}],'nodeInfo':{'kubeletVersion':'v1.36.4','osImage':'Debian',"
		       "'kernelVersion':'6.1','architecture':'amd64','containerRuntimeVersion':'c8s://1'}}"),
		  "['n','Ready,SchedulingDisabled','control-plane,worker','120m','v1.36.4','10.0.0.1','<none>','Debian','6.1 (amd64)',"
		  "'c8s://1']" },
		{ NODE("", "'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}"),
		  "['n','NotReady','<none>','120m','','<none>','<none>','<unknown>','<unknown>','<unknown>']" },
		{ NODE("", "'status':{}"), "['n','Unknown','<none>','120m','','<none>','<none>','<unknown>','<unknown>','<unknown>']" },
		{ CORE("Secret", ",'type':'Opaque','data':{'a':'eA==','b':''}"), "['x','Opaque',2,'120m']" },
		{ CORE("ConfigMap", ",'data':{'a':'1'},'binaryData':{'b':'eA=='}"), "['x',2,'120m']" },
		{ CORE("Namespace", ",'status':{'phase':'Active'}"), "['x','Active','120m']" },
		{ CORE("ResourceQuota", ",'status':{'hard':{'limits.cpu':'4','pods':'10','requests.cpu':'2'},'used':{'pods':'3',"
					"'limits.cpu':'500m'}}"),
		  "['x','pods: 3/10, requests.cpu: 0/2','limits.cpu: 500m/4','120m']" },
		{ "{'apiVersion':'v1','kind':'Event','metadata':{'name':'e'},'involvedObject':{'kind':'Pod','name':'p','fieldPath':'spec'},"
		  "'type':'Normal','reason':'Pulled','message':' done\\n','source':{'component':'kubelet','host':'n1'},'count':3,"
		  "'firstTimestamp':'2026-01-02T01:00:00Z','lastTimestamp':'2026-01-02T01:59:00Z'}",
		  "['60s','Normal','Pulled','pod/p','spec','kubelet, n1','done','60m',3,'e']" },
		{ "{'apiVersion':'events.k8s.io/v1','kind':'Event','metadata':{'name':'e'},'regarding':{'kind':'Node'},'type':'Warning',"
		  "'reason':'Bad','note':'n','reportingController':'example.com/c','reportingInstance':'i',"
		  "'eventTime':'2026-01-02T01:00:00.000000Z','series':{'count':7,'lastObservedTime':'2026-01-02T01:59:30.000000Z'}}",
		  "['30s','Warning','Bad','node','','example.com/c, i','n','60m',7,'e']" },
		{ CORE("PersistentVolume", ",'spec':{'capacity':{'storage':'5Gi'},'accessModes':['ReadWriteMany','ReadWriteOnce'],"
					   "'persistentVolumeReclaimPolicy':'Retain','claimRef':{'namespace':'ns','name':'c'},"
					   "'storageClassName':'fast','volumeMode':'Block'},'status':{'phase':'Bound'}"),
		  "['x','5Gi','RWO,RWX','Retain','Bound','ns/c','fast','<unset>','','120m','Block']" },
		{ CORE("PersistentVolumeClaim", ",'spec':{'volumeName':'pv','storageClassName':'fast'},'status':{'phase':'Bound','capacity':"
						"{'storage':'5Gi'},'accessModes':['ReadWriteOncePod']}"),
		  "['x','Bound','pv','5Gi','RWOP','fast','<unset>','120m','<unset>']" },
		{ CORE("PersistentVolumeClaim", ",'spec':{},'status':{'phase':'Pending','accessModes':['ReadWriteOnce']}"),
		  "['x','Pending','','','','','<unset>','120m','<unset>']" },
		{ "{'apiVersion':'v1','kind':'LimitRange'," META("x") "}", "['x','2026-01-02T00:00:00Z']" },
		{ "{'apiVersion':'v1','kind':'ServiceAccount','metadata':{'name':'x'}}", "['x','<unknown>']" },
	};
	check_rows(t, ARRAY_LEN(t));
}

/* What is not shown of many addresses at many ports is counted without being visited. */
TEST(table_many_endpoints)
{
	enum { N = 30000 };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder addresses = val_builder(&a), ports = val_builder(&a);
	struct val cells, conditions;

	for (int i = 0; i < N; i++) {
		val_add_item(&addresses, OBJECT(&a, F(ip, VAL_LIT("10.0.0.1"))));
		val_add_item(&ports, OBJECT(&a, F(port, val_of_int(i))));
	}
	struct val subset = OBJECT(&a, F(addresses, val_end_list(&addresses)), F(ports, val_end_list(&ports)));
	struct val endpoints = OBJECT(&a, F(subsets, LIST(&a, subset)));
	table_row(&a, table_of(TYPE(core_v1, Endpoints)), endpoints, now(), &cells, &conditions);
	CHECK_STR(val_as_str(val_at(cells, 1)), "10.0.0.1:0,10.0.0.1:0,10.0.0.1:0 + 899999997 more...");
}

#define TEMPLATE "'template':{'spec':{'containers':[{'name':'a','image':'i:1'},{'name':'b','image':'j'}]}}"
#define OBJECT_OF(api, kind, rest) "{'apiVersion':'" api "','kind':'" kind "'," META("x") rest "}"
#define HPA(metrics, current) \
	OBJECT_OF("autoscaling/v2", "HorizontalPodAutoscaler", \
		  ",'spec':{'scaleTargetRef':{'kind':'Deployment','name':'d'},'maxReplicas':9,'metrics':[" metrics "]},'status':" \
		  "{'currentReplicas':2,'currentMetrics':[" current "]}")
#define CPU(target) "{'type':'Resource','resource':{'name':'cpu','target':{" target "}}}"

TEST(table_workloads)
{
	static const struct row t[] = {
		{ OBJECT_OF("apps/v1", "Deployment", ",'spec':{'replicas':3,'selector':{'matchLabels':{'app':'x'}}," TEMPLATE "},'status':"
						     "{'readyReplicas':2,'updatedReplicas':3,'availableReplicas':1}"),
		  "['x','2/3',3,1,'120m','a,b','i:1,j','app=x']" },
		{ OBJECT_OF("apps/v1", "ReplicaSet", ",'spec':{'replicas':3,'selector':{}," TEMPLATE "},'status':{'replicas':2}"),
		  "['x',3,2,0,'120m','a,b','i:1,j','<none>']" },
		{ OBJECT_OF("apps/v1", "StatefulSet", ",'spec':{'replicas':3," TEMPLATE "},'status':{}"), "['x','0/3','120m','a,b','i:1,j']" },
		{ OBJECT_OF("apps/v1", "ControllerRevision", ",'revision':4"), "['x','<none>',4,'120m']" },
		{ "{'apiVersion':'apps/v1','kind':'ControllerRevision','metadata':{'name':'x','ownerReferences':[{'apiVersion':'apps/v1','kind':"
		  "'DaemonSet','name':'d','uid':'u','controller':true}]},'revision':1}",
		  "['x','daemonset.apps/d',1,'<unknown>']" },
		{ OBJECT_OF("batch/v1", "Job", ",'spec':{'parallelism':2," TEMPLATE "},'status':{'succeeded':1,'startTime':"
					       "'2026-01-02T01:00:00Z'}"),
		  "['x','Running','1/1 of 2','60m','120m','a,b','i:1,j','<none>']" },
		{ OBJECT_OF("batch/v1", "Job", ",'spec':{'completions':5," TEMPLATE "},'status':{'succeeded':5,'startTime':"
					       "'2026-01-02T01:00:00Z','completionTime':'2026-01-02T01:01:30Z','conditions':[{'type':"
					       "'SuccessCriteriaMet','status':'True'},{'type':'Complete','status':'True'}]}"),
		  "['x','Complete','5/5','90s','120m','a,b','i:1,j','<none>']" },
		{ OBJECT_OF("batch/v1", "CronJob", ",'spec':{'schedule':'@daily','suspend':false},'status':{'active':[{},{}],'lastScheduleTime':"
						   "'2026-01-02T01:00:00Z'}"),
		  "['x','@daily','<none>','False',2,'60m','120m','','','<none>']" },
		{ HPA("", ""), "['x','Deployment/d','<none>','<unset>',9,2,'120m']" },
		{ HPA(CPU("'type':'Utilization','averageUtilization':80"), ""),
		  "['x','Deployment/d','cpu: <unknown>/80%','<unset>',9,2,'120m']" },
		{ HPA(CPU("'type':'Utilization','averageUtilization':80"),
		      "{'type':'Resource','resource':{'name':'cpu','current':{'averageUtilization':12}}}"),
		  "['x','Deployment/d','cpu: 12%/80%','<unset>',9,2,'120m']" },
		{ HPA(CPU("'type':'AverageValue','averageValue':'500m'") ",{'type':'External','external':{'metric':{'name':'q'},'target':{"
		      "'type':'AverageValue','averageValue':'30'}}},{'type':'Pods','pods':{'metric':{'name':'p'},'target':{}}}",
		      "{'type':'Resource','resource':{'name':'cpu','current':{'averageValue':'100m'}}}"),
		  "['x','Deployment/d','cpu: 100m/500m, <unknown>/30 (avg) + 1 more...','<unset>',9,2,'120m']" },
		{ OBJECT_OF("policy/v1", "PodDisruptionBudget", ",'spec':{'minAvailable':'50%'},'status':{'disruptionsAllowed':1}"),
		  "['x','50%','N/A',1,'120m']" },
		{ OBJECT_OF("policy/v1", "PodDisruptionBudget", ",'spec':{'maxUnavailable':2}"), "['x','N/A','2',0,'120m']" },
	};
	check_rows(t, ARRAY_LEN(t));
}

TEST(table_others)
{
	static const struct row t[] = {
		{ OBJECT_OF("networking.k8s.io/v1", "Ingress", ",'spec':{'tls':[{}],'rules':[{'host':'a'},{},{'host':'b'},{'host':'c'},"
							       "{'host':'d'}]}"),
		  "['x','<none>','a,b,c + 2 more...','','80, 443','120m']" },
		{ OBJECT_OF("networking.k8s.io/v1", "IPAddress", ",'spec':{'parentRef':{'resource':'services','namespace':'d','name':'s'}}"),
		  "['x','services/d/s','120m']" },
		{ OBJECT_OF("discovery.k8s.io/v1", "EndpointSlice", ",'addressType':'IPv4','endpoints':[{'addresses':['1','2']},{'addresses':"
								    "['3','4','5']}],'ports':[{'port':80},{'name':'dns'},{}]"),
		  "['x','IPv4','80,dns,*','1,2,3 + 2 more...','120m']" },
		{ "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'x'," MADE ",'annotations':"
		  "{'storageclass.kubernetes.io/is-default-class':'true'}},'provisioner':'p'}",
		  "['x (default)','p','Delete','Immediate',false,'120m']" },
		{ OBJECT_OF("storage.k8s.io/v1", "CSIDriver", ",'spec':{'tokenRequests':[{'audience':'a'},{'audience':'b'}]}"),
		  "['x',true,false,false,'a,b',false,'<none>','120m']" },
		{ OBJECT_OF("rbac.authorization.k8s.io/v1", "RoleBinding", ",'roleRef':{'kind':'Role','name':'r'},'subjects':[{'kind':'User',"
			    "'name':'u'},{'kind':'ServiceAccount','namespace':'n','name':'s'},{'kind':'User','name':'v'}]"),
		  "['x','Role/r','120m','u, v','','n/s']" },
		{ OBJECT_OF("certificates.k8s.io/v1", "CertificateSigningRequest", ",'spec':{'signerName':'s/t','username':'u',"
			    "'expirationSeconds':3600},'status':{'certificate':'eA==','conditions':[{'type':'Approved','status':'True'}]}"),
		  "['x','120m','s/t','u','60m','Approved,Issued']" },
		{ OBJECT_OF("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", ",'spec':{'policyName':'p','paramRef':"
			    "{'selector':{'matchLabels':{'a':'1'},'matchExpressions':[{'key':'k','operator':'In','values':['x','y']}]}}}"),
		  "['x','p','&LabelSelector{MatchLabels:map[string]string{a: 1,},MatchExpressions:[]LabelSelectorRequirement{"
		  "LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}','120m']" },
		{ OBJECT_OF("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", ",'spec':{'type':'Limited','limited':"
			    "{'nominalConcurrencyShares':100,'limitResponse':{'type':'Queue','queuing':{'queues':128,'handSize':6,"
			    "'queueLengthLimit':50}}}}"),
		  "['x','Limited',100,128,6,50,'120m']" },
		{ OBJECT_OF("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", ",'spec':{'type':'Exempt'}"),
		  "['x','Exempt','<none>','<none>','<none>','<none>','120m']" },
		{ OBJECT_OF("apiregistration.k8s.io/v1", "APIService", ",'spec':{'service':{'namespace':'n','name':'s'}},'status':{'conditions':"
			    "[{'type':'Available','status':'False','reason':'Missing'}]}"),
		  "['x','n/s','False (Missing)','120m']" },
		{ OBJECT_OF("coordination.k8s.io/v1", "Lease", ",'spec':{'holderIdentity':'me'}"), "['x','me','120m']" },
		{ OBJECT_OF("resource.k8s.io/v1", "ResourceClaim", ",'status':{'allocation':{},'reservedFor':[{'name':'p'}]}"),
		  "['x','allocated,reserved','120m']" },
		{ OBJECT_OF("resource.k8s.io/v1", "ResourceClaim", ""), "['x','pending','120m']" },
	};
	check_rows(t, ARRAY_LEN(t));
}

TEST(table_order)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	table_rank_fn *rank = table_rank(table_of(TYPE(flowcontrol_v1, FlowSchema)));
	CHECK(rank && !table_rank(table_of(TYPE(core_v1, Pod))));
	CHECK_INT(rank(testing_tree(&a, "{'spec':{'matchingPrecedence':900}}")), 900);
}

TEST(table_columns)
{
	struct arena a = ARENA_INIT;
	struct val columns = table_columns(&a, table_of(TYPE(core_v1, Pod)));
	CHECK_INT(val_len(columns), 9);
	CHECK_STR(val_str(val_at(columns, 0), format), "name");
	CHECK_STR(val_str(val_at(columns, 8), name), "Readiness Gates");
	CHECK_INT(val_int(val_at(columns, 8), priority), 1);
	VAL_EACH(c, columns)
		CHECK(val_str(*c, description).n > 0 && val_str(*c, type).n > 0);

	/* Its rows have an age that is no column. */
	CHECK_INT(val_len(table_columns(&a, table_of(TYPE(networking_v1, IPAddress)))), 2);
	columns = table_columns(&a, table_of(TYPE(rbac_v1, Role)));
	CHECK_STR(val_str(val_at(columns, 1), name), "Created At");
	CHECK_STR(val_str(val_at(columns, 1), type), "date");
	arena_done(&a);
}

TEST(table_custom)
{
	static const char definition[] =
		"[{'name':'Size','type':'integer','jsonPath':'.spec.size'},{'name':'Color','type':'string','priority':1,'description':'c',"
		"'jsonPath':'.spec.color'},{'name':'All','type':'string','jsonPath':'.spec'},{'name':'On','type':'boolean','jsonPath':"
		"'.spec.on'},{'name':'Ratio','type':'number','jsonPath':'.spec.size'},{'name':'Made','type':'date','jsonPath':"
		"'.metadata.creationTimestamp'},{'name':'None','type':'string','jsonPath':'.spec.none'},{'name':'Wrong','type':'boolean',"
		"'jsonPath':'.spec.color'},{'name':'Bad','type':'date','jsonPath':'.spec.color'}]";
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	const struct table *t;
	struct val columns = testing_tree(&a, definition), cells, conditions;
	struct val object = testing_tree(&a, "{" META("x") ",'spec':{'size':3,'color':'red','on':true}}");

	CHECK_INT(table_of_custom(&a, columns, &t, &err), 0);
	table_row(&a, t, object, now(), &cells, &conditions);
	CHECK_STR(testing_text(&a, cells), "['x',3,'red','{\\'color\\':\\'red\\',\\'on\\':true,\\'size\\':3}',true,3,'120m',null,null,"
					   "'<invalid>']");
	struct val defs = table_columns(&a, t);
	CHECK_STR(val_str(val_at(defs, 1), description), "Custom resource definition column (in JSONPath format): .spec.size");
	CHECK_STR(val_str(val_at(defs, 2), description), "c");

	CHECK_INT(table_of_custom(&a, VAL_EMPTY, &t, &err), 0);
	table_row(&a, t, object, now(), &cells, &conditions);
	CHECK_STR(testing_text(&a, cells), "['x','120m']");

	struct val bad = LIST(&a, OBJECT(&a, F(name, VAL_LIT("B")), F(jsonPath, VAL_LIT(".spec["))));
	CHECK_INT(table_of_custom(&a, bad, &t, &err), -ERR_INVALID);
	CHECK_STR(err_str(&err), "unrecognized column definition \".spec[\"");
	arena_done(&a);
}
