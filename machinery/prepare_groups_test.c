/* What the server makes of objects besides pods and workloads before it looks at them: as Kubernetes 1.36 does. */
#include "machinery/validate_testing.h"

#define META "'metadata':{'name':'x','namespace':'n','resourceVersion':'1','generation':1}"
#define CORE(kind, members) "{'apiVersion':'v1','kind':'" kind "'," META "," members "}"
#define OF(group, kind, members) "{'apiVersion':'" group "','kind':'" kind "'," META "," members "}"
#define TIME "2024-01-01T00:00:00Z"

struct made_row {
	const char *object, *old, *subresource; /* old NULL: a new object */
	const char *want;                       /* without apiVersion and kind; of metadata only what a row could change */
};

/* The text of what was made; times that are now are @. */
static str made_text(struct arena *a, struct val v)
{
	struct val meta = val_without(a, val_without(a, val_get(v, metadata), uid), name);
	meta = val_without(a, val_without(a, meta, namespace), resourceVersion);
	v = val_put(a, val_without(a, val_without(a, v, apiVersion), kind), A_metadata, meta);
	str text = testing_text(a, v), mark = STR("Time':'");
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	for (ptrdiff_t at; (at = str_find(text, mark)) >= 0;) {
		str rest = str_skip(text, (size_t)at + mark.n), time = str_head(rest, (size_t)str_chr(rest, '\''));
		buf_add(&b, str_head(text, (size_t)at + mark.n));
		buf_add(&b, str_eq(time, STR(TIME)) ? time : STR("@"));
		text = str_skip(rest, time.n);
	}
	buf_add(&b, text);
	return arena_str(a, buf_str(&b));
}

static void check_made_rows(const struct made_row *rows, size_t n)
{
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < n; i++) {
		struct val made;
		if (rows[i].old)
			testing_update(&a, rows[i].object, rows[i].old, rows[i].subresource, &made);
		else
			testing_create(&a, rows[i].object, &made);
		CHECK_STR_ROW(i, made_text(&a, made), rows[i].want);
		arena_reset(&a);
	}
	arena_done(&a);
}

TEST(prepare_core)
{
	static const struct made_row t[] = {
		{ CORE("Namespace", "'spec':{'finalizers':['a.b/c']},'status':{'phase':'Terminating'}"), NULL, NULL,
		  "{'metadata':{'generation':1,'labels':{'kubernetes.io/metadata.name':'x'}},"
		  "'spec':{'finalizers':['a.b/c','kubernetes']},'status':{'phase':'Active'}}" },
		{ CORE("Namespace", "'spec':{'finalizers':['a.b/c']}"), CORE("Namespace", "'spec':{'finalizers':['kubernetes']}"), "",
		  "{'metadata':{'generation':1,'labels':{'kubernetes.io/metadata.name':'x'}},"
		  "'spec':{'finalizers':['kubernetes']},'status':{'phase':'Active'}}" },
		{ CORE("Namespace", "'spec':{},'status':{'phase':'Terminating'}"), CORE("Namespace", "'spec':{'finalizers':['kubernetes']}"), "finalize",
		  "{'metadata':{'generation':1,'labels':{'kubernetes.io/metadata.name':'x'}},"
		  "'status':{'phase':'Active'}}" },
		{ CORE("Node", "'spec':{'configSource':{}},'status':{'config':{},'phase':'a'}"), NULL, NULL,
		  "{'metadata':{'generation':1},'status':{'phase':'a'}}" },
		{ CORE("Node", "'spec':{'configSource':{}}"), CORE("Node", "'spec':{}"), "",
		  "{'metadata':{'generation':1}}" },
		{ CORE("ServiceAccount", "'secrets':[{'name':'a','kind':'b','namespace':'c'}]"), NULL, NULL,
		  "{'metadata':{'generation':1},'secrets':[{'name':'a'}]}" },
	};
	check_made_rows(t, ARRAY_LEN(t));
}

TEST(prepare_limit_range_name)
{
	struct arena a = ARENA_INIT;
	struct val made;

	testing_create(&a, "{'apiVersion':'v1','kind':'LimitRange','metadata':{'namespace':'n'}}", &made);
	CHECK_INT(val_str(made, metadata, name).n, 36);
	arena_done(&a);
}

#define SERVICE(spec) CORE("Service", "'spec':{" spec "}")
#define CLUSTER_IP "'type':'ClusterIP','clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1'],'ipFamilies':['IPv4'],'ipFamilyPolicy':'SingleStack'"
#define NODE_PORTS "'type':'NodePort','clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1'],'ports':[{'name':'a','port':1,'nodePort':30001}," \
		   "{'name':'b','port':2,'nodePort':30002}]"

TEST(prepare_service)
{
	static const struct made_row t[] = {
		{ SERVICE("'ports':[{'port':80}]"), SERVICE(CLUSTER_IP), "",
		  "{'metadata':{'generation':1},'spec':{'ports':[{'protocol':'TCP','port':80,'targetPort':80}],"
		  "'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1'],'type':'ClusterIP','sessionAffinity':'None',"
		  "'internalTrafficPolicy':'Cluster'}}" },
		{ SERVICE("'type':'ExternalName','externalName':'a'"), SERVICE(CLUSTER_IP), "",
		  "{'metadata':{'generation':1},'spec':{'type':'ExternalName','sessionAffinity':'None',"
		  "'externalName':'a'}}" },
		{ SERVICE("'type':'ExternalName','externalName':'a',"
			  "'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1'],'ipFamilies':['IPv4'],'ipFamilyPolicy':'SingleStack'"), SERVICE(CLUSTER_IP), "",
		  "{'metadata':{'generation':1},'spec':{'type':'ExternalName','sessionAffinity':'None',"
		  "'externalName':'a'}}" },
		{ SERVICE("'clusterIP':'10.0.0.2','clusterIPs':['10.0.0.1']"), SERVICE(CLUSTER_IP), "",
		  "{'metadata':{'generation':1},'spec':{'clusterIP':'10.0.0.2','clusterIPs':['10.0.0.2'],"
		  "'type':'ClusterIP','sessionAffinity':'None','internalTrafficPolicy':'Cluster'}}" },
		{ SERVICE("'type':'NodePort','ports':[{'name':'a','port':1},{'name':'c','port':3},{'name':'d','port':4,'nodePort':30002}]"), SERVICE(NODE_PORTS), "",
		  "{'metadata':{'generation':1},'spec':{'ports':[{'name':'a','protocol':'TCP','port':1,'targetPort':1,"
		  "'nodePort':30001},{'name':'c','protocol':'TCP','port':3,'targetPort':3},{'name':'d',"
		  "'protocol':'TCP','port':4,'targetPort':4,'nodePort':30002}],'clusterIP':'10.0.0.1',"
		  "'clusterIPs':['10.0.0.1'],'type':'NodePort','sessionAffinity':'None',"
		  "'externalTrafficPolicy':'Cluster','internalTrafficPolicy':'Cluster'}}" },
		{ SERVICE("'type':'NodePort','ports':[{'name':'a','port':1},{'name':'b','port':2,'nodePort':30001}]"), SERVICE(NODE_PORTS), "",
		  "{'metadata':{'generation':1},'spec':{'ports':[{'name':'a','protocol':'TCP','port':1,'targetPort':1},"
		  "{'name':'b','protocol':'TCP','port':2,'targetPort':2,'nodePort':30001}],'clusterIP':'10.0.0.1',"
		  "'clusterIPs':['10.0.0.1'],'type':'NodePort','sessionAffinity':'None',"
		  "'externalTrafficPolicy':'Cluster','internalTrafficPolicy':'Cluster'}}" },
		{ SERVICE("'type':'ClusterIP','ports':[{'name':'a','port':1,'nodePort':30001},{'name':'b','port':2,'nodePort':30002}],'externalTrafficPolicy':'Cluster'"),
		  SERVICE(NODE_PORTS), "",
		  "{'metadata':{'generation':1},'spec':{'ports':[{'name':'a','protocol':'TCP','port':1,'targetPort':1},"
		  "{'name':'b','protocol':'TCP','port':2,'targetPort':2}],'clusterIP':'10.0.0.1',"
		  "'clusterIPs':['10.0.0.1'],'type':'ClusterIP','sessionAffinity':'None',"
		  "'internalTrafficPolicy':'Cluster'}}" },
		{ SERVICE("'type':'ClusterIP','ports':[{'name':'a','port':1,'nodePort':30009}]"), SERVICE(NODE_PORTS), "",
		  "{'metadata':{'generation':1},'spec':{'ports':[{'name':'a','protocol':'TCP','port':1,'targetPort':1,"
		  "'nodePort':30009}],'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1'],'type':'ClusterIP',"
		  "'sessionAffinity':'None','internalTrafficPolicy':'Cluster'}}" },
		{ SERVICE("'type':'LoadBalancer','externalTrafficPolicy':'Local'"),
		  SERVICE("'type':'LoadBalancer','externalTrafficPolicy':'Local','healthCheckNodePort':30003"), "",
		  "{'metadata':{'generation':1},'spec':{'type':'LoadBalancer','sessionAffinity':'None',"
		  "'externalTrafficPolicy':'Local','healthCheckNodePort':30003,'allocateLoadBalancerNodePorts':true,"
		  "'internalTrafficPolicy':'Cluster'}}" },
		{ CORE("Service", "'spec':{'type':'ClusterIP','allocateLoadBalancerNodePorts':true,'loadBalancerClass':'a','externalTrafficPolicy':'Local',"
			"'healthCheckNodePort':30003},'status':{'loadBalancer':{'ingress':[{'ip':'10.0.0.9'}]}}"),
		  SERVICE("'type':'LoadBalancer','externalTrafficPolicy':'Local','healthCheckNodePort':30003,'loadBalancerClass':'a'"), "",
		  "{'metadata':{'generation':1},'spec':{'type':'ClusterIP','sessionAffinity':'None',"
		  "'internalTrafficPolicy':'Cluster'}}" },
	};
	check_made_rows(t, ARRAY_LEN(t));
}

#define SLICE(labels, endpoints) \
	"{'apiVersion':'discovery.k8s.io/v1','kind':'EndpointSlice','metadata':{'name':'x','namespace':'n','resourceVersion':'1','generation':1" labels \
	"},'addressType':'IPv4','endpoints':[" endpoints "]}"
#define ENDPOINT(members) "{'addresses':['10.0.0.1']" members "}"

TEST(prepare_endpoint_slice)
{
	static const struct made_row t[] = {
		{ SLICE("", ENDPOINT(",'deprecatedTopology':{'a':'b'}")), NULL, NULL,
		  "{'metadata':{'generation':1},'addressType':'IPv4','endpoints':[{'addresses':['10.0.0.1']}]}" },
		{ SLICE("", ENDPOINT(",'deprecatedTopology':{'a':'b'}")), SLICE("", ENDPOINT(",'deprecatedTopology':{'a':'b'}")), "",
		  "{'metadata':{'generation':1},'addressType':'IPv4','endpoints':[{'addresses':['10.0.0.1'],"
		  "'deprecatedTopology':{'a':'b'}}]}" },
		{ SLICE("", ENDPOINT(",'nodeName':'c','deprecatedTopology':{'a':'b'}")), SLICE("", ENDPOINT(",'deprecatedTopology':{'a':'b'}")), "",
		  "{'metadata':{'generation':2},'addressType':'IPv4','endpoints':[{'addresses':['10.0.0.1'],"
		  "'nodeName':'c'}]}" },
		{ SLICE(",'labels':{'a':'b'}", ENDPOINT("")), SLICE("", ENDPOINT("")), "",
		  "{'metadata':{'generation':2,'labels':{'a':'b'}},'addressType':'IPv4',"
		  "'endpoints':[{'addresses':['10.0.0.1']}]}" },
	};
	check_made_rows(t, ARRAY_LEN(t));
}

#define VOLUME(status) CORE("PersistentVolume", "'spec':{},'status':{" status "}")
#define CLAIM(spec) CORE("PersistentVolumeClaim", "'spec':{" spec "},'status':{'phase':'Bound'}")
#define SOURCE "{'kind':'PersistentVolumeClaim','name':'a'}"

TEST(prepare_storage)
{
	static const struct made_row t[] = {
		{ VOLUME("'phase':'Bound'"), NULL, NULL,
		  "{'metadata':{'generation':1},'spec':{'persistentVolumeReclaimPolicy':'Retain',"
		  "'volumeMode':'Filesystem'},'status':{'phase':'Pending','lastPhaseTransitionTime':'@'}}" },
		{ VOLUME("'phase':'Bound'"), VOLUME("'phase':'Pending','lastPhaseTransitionTime':'" TIME "'"), "status",
		  "{'metadata':{'generation':1},'spec':{'persistentVolumeReclaimPolicy':'Retain',"
		  "'volumeMode':'Filesystem'},'status':{'phase':'Bound','lastPhaseTransitionTime':'@'}}" },
		{ VOLUME("'phase':'Pending'"), VOLUME("'phase':'Pending','lastPhaseTransitionTime':'" TIME "'"), "status",
		  "{'metadata':{'generation':1},'spec':{'persistentVolumeReclaimPolicy':'Retain',"
		  "'volumeMode':'Filesystem'},'status':{'phase':'Pending',"
		  "'lastPhaseTransitionTime':'2024-01-01T00:00:00Z'}}" },
		{ CLAIM("'dataSource':" SOURCE), NULL, NULL,
		  "{'metadata':{'generation':1},'spec':{'volumeMode':'Filesystem',"
		  "'dataSource':{'kind':'PersistentVolumeClaim','name':'a'},"
		  "'dataSourceRef':{'kind':'PersistentVolumeClaim','name':'a'}},'status':{'phase':'Pending'}}" },
		{ CLAIM("'dataSource':{'kind':'Pod','name':'a'}"), NULL, NULL,
		  "{'metadata':{'generation':1},'spec':{'volumeMode':'Filesystem'},'status':{'phase':'Pending'}}" },
		{ CLAIM("'dataSourceRef':" SOURCE), NULL, NULL,
		  "{'metadata':{'generation':1},'spec':{'volumeMode':'Filesystem',"
		  "'dataSource':{'kind':'PersistentVolumeClaim','name':'a'},"
		  "'dataSourceRef':{'kind':'PersistentVolumeClaim','name':'a'}},'status':{'phase':'Pending'}}" },
		{ CLAIM("'dataSourceRef':{'kind':'Foo','apiGroup':'a.b','name':'a','namespace':'b'}"), NULL, NULL,
		  "{'metadata':{'generation':1},'spec':{'volumeMode':'Filesystem'},'status':{'phase':'Pending'}}" },
		{ OF("storage.k8s.io/v1", "CSIDriver", "'spec':{'podInfoOnMount':true}"), OF("storage.k8s.io/v1", "CSIDriver", "'spec':{}"), "",
		  "{'metadata':{'generation':2},'spec':{'attachRequired':true,'podInfoOnMount':true,"
		  "'volumeLifecycleModes':['Persistent'],'storageCapacity':false,"
		  "'fsGroupPolicy':'ReadWriteOnceWithFSType','requiresRepublish':false,'seLinuxMount':false}}" },
	};
	check_made_rows(t, ARRAY_LEN(t));
}

#define CSR(spec, status) OF("certificates.k8s.io/v1", "CertificateSigningRequest", "'spec':{" spec "},'status':{" status "}")
#define APPROVED(members) "'conditions':[{'type':'Approved','status':'True'" members "}]"

TEST(prepare_csr)
{
	static const struct made_row t[] = {
		{ CSR("'signerName':'a.b/c','username':'u','uid':'1','groups':['g'],'extra':{'a':['b']}", ""), NULL, NULL,
		  "{'metadata':{'generation':1},'spec':{'signerName':'a.b/c'}}" },
		{ CSR("'signerName':'b'", APPROVED("")), CSR("'signerName':'a'", ""), "",
		  "{'metadata':{'generation':1},'spec':{'signerName':'a'}}" },
		{ CSR("'signerName':'b'", APPROVED("") ",'certificate':'AAEC'"), CSR("'signerName':'a'", ""), "approval",
		  "{'metadata':{'generation':1},'spec':{'signerName':'a'},'status':{'conditions':[{'type':'Approved',"
		  "'status':'True','lastUpdateTime':'@','lastTransitionTime':'@'}]}}" },
		{ CSR("", APPROVED(",'lastUpdateTime':'" TIME "'")), CSR("", APPROVED(",'lastTransitionTime':'" TIME "'")), "approval",
		  "{'metadata':{'generation':1},'status':{'conditions':[{'type':'Approved','status':'True',"
		  "'lastUpdateTime':'2024-01-01T00:00:00Z','lastTransitionTime':'2024-01-01T00:00:00Z'}]}}" },
	};
	check_made_rows(t, ARRAY_LEN(t));
}

#define VERSION(name, storage) "{'name':'" name "','storage':" storage "}"
#define CRD(versions, stored) OF("apiextensions.k8s.io/v1", "CustomResourceDefinition", "'spec':{'versions':[" versions "]},'status':{'storedVersions':[" stored "]}")
#define RESOURCE_CLAIM(meta, results, devices) \
	"{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaim','metadata':{'name':'x','namespace':'n','resourceVersion':'1'" meta "}," \
	"'status':{'allocation':{'devices':{'results':[" results "]}},'devices':[" devices "]}}"
#define DEVICE(name) "{'driver':'d','pool':'p','device':'" name "'}"

TEST(prepare_extensions)
{
	static const struct made_row t[] = {
		{ CRD(VERSION("v1", "true"), "'v0'"), NULL, NULL,
		  "{'metadata':{'generation':1},'spec':{'versions':[{'name':'v1','storage':true}],"
		  "'conversion':{'strategy':'None'}},'status':{'storedVersions':['v1']}}" },
		{ CRD(VERSION("v1", "false") "," VERSION("v2", "true"), "'v1'"), CRD(VERSION("v1", "true"), "'v1'"), "",
		  "{'metadata':{'generation':2},'spec':{'versions':[{'name':'v1'},{'name':'v2','storage':true}],"
		  "'conversion':{'strategy':'None'}},'status':{'storedVersions':['v1','v2']}}" },
		{ OF("apiregistration.k8s.io/v1", "APIService", "'spec':{}"), NULL, NULL,
		  "{'metadata':{'generation':1},'status':{'conditions':[{'type':'Available','status':'True',"
		  "'lastTransitionTime':'@','reason':'Local','message':'Local APIServices are always available'}]}}" },
		{ OF("apiregistration.k8s.io/v1", "APIService", "'spec':{'service':{}}"), NULL, NULL,
		  "{'metadata':{'generation':1},'spec':{'service':{'port':443}}}" },
		{ RESOURCE_CLAIM(",'labels':{'a':'b'}", DEVICE("a"), DEVICE("a") "," DEVICE("b")),
		  RESOURCE_CLAIM("", DEVICE("a") "," DEVICE("b"), DEVICE("a") "," DEVICE("b")), "status",
		  "{'metadata':{},'status':{'allocation':{'devices':{'results':[{'driver':'d','pool':'p',"
		  "'device':'a'}]}},'devices':[{'driver':'d','pool':'p','device':'a'}]}}" },
		{ OF("scheduling.k8s.io/v1", "PriorityClass", "'value':1"), NULL, NULL,
		  "{'metadata':{'generation':1},'value':1,'preemptionPolicy':'PreemptLowerPriority'}" },
	};
	check_made_rows(t, ARRAY_LEN(t));
}
