/* Defaults of everything besides pods and workloads: what Kubernetes 1.36 adds to these objects. */
#include "machinery/validate_testing.h"

#define META "'metadata':{'name':'x'}"
#define CORE(kind, members) "{'apiVersion':'v1','kind':'" kind "'," META members "}"
#define OF(group, kind, members) "{'apiVersion':'" group "','kind':'" kind "'," META members "}"

struct default_row {
	const char *object, *want; /* without apiVersion, kind and name */
};

static void check_default_rows(const struct default_row *rows, size_t n)
{
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < n; i++) {
		const struct type *type;
		struct val v = testing_object(&a, rows[i].object, &type);
		v = val_without(&a, val_without(&a, val_without(&a, v, apiVersion), kind), metadata, name);
		CHECK_STR_ROW(i, testing_text(&a, v), rows[i].want);
		arena_reset(&a);
	}
	arena_done(&a);
}

TEST(defaults_core)
{
	static const struct default_row t[] = {
		{ CORE("Namespace", ""),
		  "{'metadata':{'labels':{'kubernetes.io/metadata.name':'x'}},'status':{'phase':'Active'}}" },
		{ CORE("Secret", ",'data':{'a':'AAEC','b':'AAEC'},'stringData':{'b':'x','c':''}"),
		  "{'metadata':{},'data':{'a':'AAEC','b':'eA==','c':''},'type':'Opaque'}" },
		{ CORE("LimitRange", ",'spec':{'limits':[{'type':'Container','max':{'cpu':'2'},'min':{'cpu':'1','memory':'1Gi'}},"
			"{'type':'Pod','max':{'cpu':'2'}},{'type':'Container','default':{'cpu':'1.0005'},'defaultRequest':{'memory':'1Mi'}}]}"),
		  "{'metadata':{},'spec':{'limits':[{'type':'Container','max':{'cpu':'2'},'min':{'cpu':'1',"
		  "'memory':'1Gi'},'default':{'cpu':'2'},'defaultRequest':{'cpu':'2','memory':'1Gi'}},{'type':'Pod',"
		  "'max':{'cpu':'2'}},{'type':'Container','default':{'cpu':'1001m'},'defaultRequest':{'cpu':'1001m',"
		  "'memory':'1Mi'}}]}}" },
		{ CORE("ResourceQuota", ",'spec':{'hard':{'cpu':'1.00001'}}"),
		  "{'metadata':{},'spec':{'hard':{'cpu':'1001m'}}}" },
		{ CORE("Node", ",'spec':{'podCIDR':'10.0.0.0/24'},'status':{'capacity':{'cpu':'1.0001'}}"),
		  "{'metadata':{},'spec':{'podCIDR':'10.0.0.0/24','podCIDRs':['10.0.0.0/24']},"
		  "'status':{'capacity':{'cpu':'1001m'},'allocatable':{'cpu':'1001m'}}}" },
		{ CORE("Node", ",'spec':{'podCIDRs':['10.0.0.0/24','fd00::/64']}"),
		  "{'metadata':{},'spec':{'podCIDR':'10.0.0.0/24','podCIDRs':['10.0.0.0/24','fd00::/64']}}" },
		{ CORE("Endpoints", ",'subsets':[{'addresses':[{'ip':'10.0.0.1'}],'ports':[{'port':80}]}]"),
		  "{'metadata':{},'subsets':[{'addresses':[{'ip':'10.0.0.1'}],'ports':[{'port':80,'protocol':'TCP'}]}]}" },
	};
	check_default_rows(t, ARRAY_LEN(t));
}

TEST(defaults_networking)
{
	static const struct default_row t[] = {
		{ CORE("Service", ""),
		  "{'metadata':{},'spec':{'type':'ClusterIP','sessionAffinity':'None',"
		  "'internalTrafficPolicy':'Cluster'}}" },
		{ CORE("Service", ",'spec':{'ports':[{'port':80},{'port':81,'protocol':'UDP','targetPort':'a'}],'clusterIP':'None','sessionAffinity':'ClientIP'}"),
		  "{'metadata':{},'spec':{'ports':[{'protocol':'TCP','port':80,'targetPort':80},{'protocol':'UDP',"
		  "'port':81,'targetPort':'a'}],'clusterIP':'None','type':'ClusterIP',"
		  "'sessionAffinity':'ClientIP','sessionAffinityConfig':{'clientIP':{'timeoutSeconds':10800}},"
		  "'internalTrafficPolicy':'Cluster'}}" },
		{ CORE("Service", ",'spec':{'type':'LoadBalancer','sessionAffinity':'None','sessionAffinityConfig':{'clientIP':{'timeoutSeconds':1}}},"
			"'status':{'loadBalancer':{'ingress':[{'ip':'10.0.0.1'},{'hostname':'a'}]}}"),
		  "{'metadata':{},'spec':{'type':'LoadBalancer','sessionAffinity':'None',"
		  "'externalTrafficPolicy':'Cluster','allocateLoadBalancerNodePorts':true,"
		  "'internalTrafficPolicy':'Cluster'},'status':{'loadBalancer':{'ingress':[{'ip':'10.0.0.1',"
		  "'ipMode':'VIP'},{'hostname':'a'}]}}}" },
		{ CORE("Service", ",'spec':{'externalIPs':['10.0.0.1']}"),
		  "{'metadata':{},'spec':{'type':'ClusterIP','externalIPs':['10.0.0.1'],'sessionAffinity':'None',"
		  "'externalTrafficPolicy':'Cluster','internalTrafficPolicy':'Cluster'}}" },
		{ CORE("Service", ",'spec':{'type':'ExternalName'}"),
		  "{'metadata':{},'spec':{'type':'ExternalName','sessionAffinity':'None'}}" },
		{ OF("discovery.k8s.io/v1", "EndpointSlice", ",'addressType':'IPv4','ports':[{'port':80}]"),
		  "{'metadata':{},'addressType':'IPv4','ports':[{'name':'','protocol':'TCP','port':80}]}" },
		{ OF("networking.k8s.io/v1", "IngressClass", ",'spec':{'parameters':{'kind':'a','name':'b'}}"),
		  "{'metadata':{},'spec':{'parameters':{'kind':'a','name':'b','scope':'Cluster'}}}" },
		{ OF("networking.k8s.io/v1", "NetworkPolicy", ""),
		  "{'metadata':{},'spec':{'policyTypes':['Ingress']}}" },
		{ OF("networking.k8s.io/v1", "NetworkPolicy", ",'spec':{'ingress':[{'ports':[{'port':80}]}],'egress':[{'ports':[{}]}]}"),
		  "{'metadata':{},'spec':{'ingress':[{'ports':[{'protocol':'TCP','port':80}]}],"
		  "'egress':[{'ports':[{'protocol':'TCP'}]}],'policyTypes':['Ingress','Egress']}}" },
		{ OF("networking.k8s.io/v1", "NetworkPolicy", ",'spec':{'egress':[{}],'policyTypes':['Egress']}"),
		  "{'metadata':{},'spec':{'egress':[{}],'policyTypes':['Egress']}}" },
	};
	check_default_rows(t, ARRAY_LEN(t));
}

TEST(defaults_storage)
{
	static const struct default_row t[] = {
		{ CORE("PersistentVolume", ",'spec':{'capacity':{'storage':'1.0001'},'hostPath':{'path':'/a'}}"),
		  "{'metadata':{},'spec':{'capacity':{'storage':'1001m'},'hostPath':{'path':'/a','type':''},"
		  "'persistentVolumeReclaimPolicy':'Retain','volumeMode':'Filesystem'},'status':{'phase':'Pending'}}" },
		{ CORE("PersistentVolumeClaim", ",'spec':{'resources':{'requests':{'storage':'1.0001'}}}"),
		  "{'metadata':{},'spec':{'resources':{'requests':{'storage':'1001m'}},'volumeMode':'Filesystem'},"
		  "'status':{'phase':'Pending'}}" },
		{ OF("storage.k8s.io/v1", "StorageClass", ""),
		  "{'metadata':{},'reclaimPolicy':'Delete','volumeBindingMode':'Immediate'}" },
		{ OF("storage.k8s.io/v1", "CSIDriver", ""),
		  "{'metadata':{},'spec':{'attachRequired':true,'podInfoOnMount':false,"
		  "'volumeLifecycleModes':['Persistent'],'storageCapacity':false,"
		  "'fsGroupPolicy':'ReadWriteOnceWithFSType','requiresRepublish':false,'seLinuxMount':false}}" },
		{ OF("storage.k8s.io/v1", "VolumeAttachment", ",'spec':{'source':{'inlineVolumeSpec':{'hostPath':{'path':'/a'}}}}"),
		  "{'metadata':{},'spec':{'source':{'inlineVolumeSpec':{'hostPath':{'path':'/a','type':''}}}}}" },
	};
	check_default_rows(t, ARRAY_LEN(t));
}

TEST(defaults_access)
{
	static const struct default_row t[] = {
		{ OF("rbac.authorization.k8s.io/v1", "RoleBinding", ",'roleRef':{'kind':'Role'},'subjects':[{'kind':'User'},{'kind':'ServiceAccount'}]"),
		  "{'metadata':{},'subjects':[{'kind':'User','apiGroup':'rbac.authorization.k8s.io'},"
		  "{'kind':'ServiceAccount'}],'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'Role'}}" },
		{ OF("scheduling.k8s.io/v1", "PriorityClass", ""),
		  "{'metadata':{},'preemptionPolicy':'PreemptLowerPriority'}" },
		{ OF("node.k8s.io/v1", "RuntimeClass", ",'handler':'a','overhead':{'podFixed':{'cpu':'1.0001'}}"),
		  "{'metadata':{},'handler':'a','overhead':{'podFixed':{'cpu':'1001m'}}}" },
		{ OF("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", ""),
		  "{'metadata':{},'spec':{'matchingPrecedence':1000}}" },
		{ OF("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration",
		     ",'spec':{'type':'Limited','limited':{'limitResponse':{'type':'Queue','queuing':{}}}}"),
		  "{'metadata':{},'spec':{'type':'Limited','limited':{'nominalConcurrencyShares':30,"
		  "'limitResponse':{'type':'Queue','queuing':{'queues':64,'handSize':8,'queueLengthLimit':50}},"
		  "'lendablePercent':0}}}" },
		{ OF("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", ",'spec':{'type':'Exempt','exempt':{}}"),
		  "{'metadata':{},'spec':{'type':'Exempt','exempt':{'nominalConcurrencyShares':0,'lendablePercent':0}}}" },
		{ OF("autoscaling/v1", "HorizontalPodAutoscaler", ",'spec':{'maxReplicas':3}"),
		  "{'metadata':{},'spec':{'minReplicas':1,'maxReplicas':3,'targetCPUUtilizationPercentage':80}}" },
		{ OF("autoscaling/v2", "HorizontalPodAutoscaler", ",'spec':{'maxReplicas':3}"),
		  "{'metadata':{},'spec':{'minReplicas':1,'maxReplicas':3,'metrics':[{'type':'Resource',"
		  "'resource':{'name':'cpu','target':{'type':'Utilization','averageUtilization':80}}}]}}" },
		{ OF("autoscaling/v2", "HorizontalPodAutoscaler", ",'spec':{'maxReplicas':3,'metrics':[{'type':'Pods'}],'behavior':{'scaleUp':{'selectPolicy':'Min'}}}"),
		  "{'metadata':{},'spec':{'minReplicas':1,'maxReplicas':3,'metrics':[{'type':'Pods'}],"
		  "'behavior':{'scaleUp':{'stabilizationWindowSeconds':0,'selectPolicy':'Min',"
		  "'policies':[{'type':'Pods','value':4,'periodSeconds':15},{'type':'Percent','value':100,"
		  "'periodSeconds':15}]},'scaleDown':{'selectPolicy':'Max','policies':[{'type':'Percent','value':100,"
		  "'periodSeconds':15}]}}}}" },
		{ OF("authentication.k8s.io/v1", "TokenRequest", ""),
		  "{'metadata':{},'spec':{'expirationSeconds':3600}}" },
	};
	check_default_rows(t, ARRAY_LEN(t));
}

TEST(defaults_extensions)
{
	static const struct default_row t[] = {
		{ OF("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration",
		     ",'webhooks':[{'name':'a','clientConfig':{'service':{'name':'b'}},'rules':[{'resources':['c']}]}]"),
		  "{'metadata':{},'webhooks':[{'name':'a','clientConfig':{'service':{'name':'b','port':443}},"
		  "'rules':[{'resources':['c'],'scope':'*'}],'failurePolicy':'Fail','matchPolicy':'Equivalent',"
		  "'namespaceSelector':{},'objectSelector':{},'timeoutSeconds':10,'reinvocationPolicy':'Never'}]}" },
		{ OF("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", ",'webhooks':[{'name':'a'}]"),
		  "{'metadata':{},'webhooks':[{'name':'a','failurePolicy':'Fail','matchPolicy':'Equivalent',"
		  "'namespaceSelector':{},'objectSelector':{},'timeoutSeconds':10}]}" },
		{ OF("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", ",'spec':{'matchConstraints':{'resourceRules':[{}]}}"),
		  "{'metadata':{},'spec':{'matchConstraints':{'namespaceSelector':{},'objectSelector':{},"
		  "'resourceRules':[{'scope':'*'}],'matchPolicy':'Equivalent'},'failurePolicy':'Fail'}}" },
		{ OF("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", ",'spec':{'matchResources':{}}"),
		  "{'metadata':{},'spec':{'matchResources':{'namespaceSelector':{},'objectSelector':{},"
		  "'matchPolicy':'Equivalent'}}}" },
		{ OF("apiextensions.k8s.io/v1", "CustomResourceDefinition",
		     ",'spec':{'names':{'kind':'Ab'},'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'service':{}}}}}"),
		  "{'metadata':{},'spec':{'names':{'singular':'ab','kind':'Ab','listKind':'AbList'},"
		  "'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'service':{'port':443}}}}}}" },
		{ OF("apiextensions.k8s.io/v1", "CustomResourceDefinition", ",'spec':{'versions':[{'name':'v1'},{'name':'v2','storage':true}]}"),
		  "{'metadata':{},'spec':{'versions':[{'name':'v1'},{'name':'v2','storage':true}],"
		  "'conversion':{'strategy':'None'}},'status':{'storedVersions':['v2']}}" },
		{ OF("apiregistration.k8s.io/v1", "APIService", ",'spec':{'service':{'name':'a'}}"),
		  "{'metadata':{},'spec':{'service':{'name':'a','port':443}}}" },
		{ OF("resource.k8s.io/v1", "ResourceClaim", ",'spec':{'devices':{'requests':[{'name':'a','exactly':{}},{'name':'b',"
		     "'firstAvailable':[{'allocationMode':'All'}]}]}}"),
		  "{'metadata':{},'spec':{'devices':{'requests':[{'name':'a','exactly':{'allocationMode':'ExactCount',"
		  "'count':1}},{'name':'b','firstAvailable':[{'allocationMode':'All'}]}]}}}" },
		{ OF("resource.k8s.io/v1beta1", "ResourceClaimTemplate", ",'spec':{'spec':{'devices':{'requests':[{'name':'a','deviceClassName':'b'}]}}}"),
		  "{'metadata':{},'spec':{'spec':{'devices':{'requests':[{'name':'a','deviceClassName':'b',"
		  "'allocationMode':'ExactCount','count':1}]}}}}" },
	};
	check_default_rows(t, ARRAY_LEN(t));
}
