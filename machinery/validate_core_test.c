/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define META "'metadata':{'name':'x','namespace':'n','resourceVersion':'1'}"
#define CORE(kind, members) "{'apiVersion':'v1','kind':'" kind "'," META members "}"
#define NAMESPACE(meta, members) "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'x','resourceVersion':'1'" meta "}" members "}"
#define NODE_WITH(meta, members) "{'apiVersion':'v1','kind':'Node','metadata':{'name':'x','resourceVersion':'1'" meta "}" members "}"
#define NODE(members) NODE_WITH("", members)
#define SECRET(type, members) CORE("Secret", ",'type':'" type "'" members)
#define LIMITS(items) CORE("LimitRange", ",'spec':{'limits':[" items "]}")
#define QUOTA(spec) CORE("ResourceQuota", ",'spec':{" spec "}")
#define SUBSETS(items) CORE("Endpoints", ",'subsets':[" items "]")
#define CORE_EVENT(members) CORE("Event", members)
#define EVENT_AT(namespace, members) \
	"{'apiVersion':'events.k8s.io/v1','kind':'Event','metadata':{'name':'x','namespace':'" namespace "','resourceVersion':'1'}" members "}"
#define EVENT(members) EVENT_AT("n", members)
#define EVENT_MEMBERS \
	"'eventTime':'2024-01-01T00:00:00.000000Z','type':'Normal','reason':'r','action':'a','reportingController':'c.io/x'," \
	"'reportingInstance':'i','regarding':{'namespace':'n'}"
#define CONFIG_KEY_TEXT \
	"a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name'," \
	" regex used for validation is '[-._a-zA-Z0-9]+')"

TEST(validate_namespace)
{
	static const struct create_row t[] = {
		{ NAMESPACE("", ""), "" },
		{ "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'a.b'},'spec':{'finalizers':['nodomain','a.b/c','Bad/x']}}",
		  "metadata.name: Invalid value: 'a.b': must not contain dots\n"
		  "spec.finalizers: Invalid value: 'nodomain': name is neither a standard finalizer name nor is it"
		  " fully qualified\n"
		  "spec.finalizers: Invalid value: 'Bad/x': prefix part " SUBDOMAIN_TEXT },
	};
	static const struct update_row u[] = {
		{ NAMESPACE("", ""), NAMESPACE("", ",'spec':{'finalizers':['kubernetes']}"), "", "" },
		{ NAMESPACE("", ",'spec':{'finalizers':['nodomain']}"), NAMESPACE("", ""), "finalize",
		  "spec.finalizers[0]: Invalid value: 'nodomain': name is neither a standard finalizer name nor is it"
		  " fully qualified" },
		{ NAMESPACE("", ",'status':{'phase':'Terminating'}"), NAMESPACE("", ""), "status",
		  "status.Phase: Invalid value: 'Terminating': may only be 'Active' if `deletionTimestamp` is empty" },
		{ NAMESPACE(",'deletionTimestamp':'2024-01-01T00:00:00Z'", ",'status':{'phase':'Active'}"),
		  NAMESPACE(",'deletionTimestamp':'2024-01-01T00:00:00Z'", ""), "status",
		  "status.Phase: Invalid value: 'Active': may only be 'Terminating' if `deletionTimestamp` is not empty" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_config_map)
{
	static const struct create_row t[] = {
		{ CORE("ConfigMap", ",'data':{'a':'b'},'binaryData':{'c':'AAEC'}"), "" },
		{ CORE("ConfigMap", ",'data':{'':'','a b':'','..':'','..x':'','.':'','both':'x'},'binaryData':{'both':'','/':''}"),
		  "data[]: Invalid value: '': " CONFIG_KEY_TEXT "\n"
		  "data[.]: Invalid value: '.': must not be '.'\n"
		  "data[..]: Invalid value: '..': must not be '..'\n"
		  "data[..x]: Invalid value: '..x': must not start with '..'\n"
		  "data[a b]: Invalid value: 'a b': " CONFIG_KEY_TEXT "\n"
		  "data[both]: Invalid value: 'both': duplicate of key present in binaryData\n"
		  "binaryData[/]: Invalid value: '/': " CONFIG_KEY_TEXT },
	};
	static const struct update_row u[] = {
		{ CORE("ConfigMap", ",'data':{'a':'c'}"), CORE("ConfigMap", ",'data':{'a':'b'}"), "", "" },
		{ CORE("ConfigMap", ",'data':{'a':'c'},'binaryData':{'x':''}"), CORE("ConfigMap", ",'data':{'a':'b'},'immutable':true"), "",
		  "immutable: Forbidden: field is immutable when `immutable` is set\n"
		  "data: Forbidden: field is immutable when `immutable` is set\n"
		  "binaryData: Forbidden: field is immutable when `immutable` is set" },
		{ CORE("ConfigMap", ",'data':{'a':'b'},'immutable':true"), CORE("ConfigMap", ",'data':{'a':'b'},'immutable':true"), "",
		  "" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

/* A mebibyte of data fits, one byte more does not; base64 counts as what it stands for. */
TEST(validate_config_map_size)
{
	enum { MEBIBYTE = 1 << 20 };
	static const struct {
		const char *field;
		size_t n;
		const char *want;
	} t[] = {
		{ "data", MEBIBYTE, "" },
		{ "data", MEBIBYTE + 1, ": Too long: may not be more than 1048576 bytes" },
		{ "binaryData", (MEBIBYTE - 1) / 3 * 4, "" },
		{ "binaryData", (MEBIBYTE + 2) / 3 * 4, ": Too long: may not be more than 1048576 bytes" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		char *text = ARENA_ARRAY(&a, char, t[i].n + 1);
		memset(text, 'A', t[i].n);
		text[t[i].n] = 0;
		str object = arena_printf(&a, CORE("ConfigMap", ",'%s':{'a':'%s'}"), t[i].field, text);
		CHECK_STR_ROW(i, testing_create(&a, object.p, NULL), t[i].want);
		arena_done(&a);
	}
}

TEST(validate_secret)
{
	static const struct create_row t[] = {
		{ SECRET("anything", ",'data':{'a':'AAEC'},'stringData':{'b':'c'}"), "" },
		{ SECRET("Opaque", ",'data':{'a b':''}"), "data[a b]: Invalid value: 'a b': " CONFIG_KEY_TEXT },
		{ SECRET("kubernetes.io/service-account-token", ""),
		  "metadata.annotations[kubernetes.io/service-account.name]: Required value" },
		{ SECRET("kubernetes.io/dockercfg", ""), "data[.dockercfg]: Required value" },
		{ SECRET("kubernetes.io/dockercfg", ",'stringData':{'.dockercfg':'{}'}"), "" },
		{ SECRET("kubernetes.io/dockerconfigjson", ",'stringData':{'.dockerconfigjson':'[]'}"),
		  "data[.dockerconfigjson]: Invalid value: '<secret contents redacted>': json: cannot unmarshal array"
		  " into Go value of type map[string]interface {}" },
		{ SECRET("kubernetes.io/dockerconfigjson", ",'stringData':{'.dockerconfigjson':''}"),
		  "data[.dockerconfigjson]: Invalid value: '<secret contents redacted>': unexpected end of JSON input" },
		{ SECRET("kubernetes.io/basic-auth", ""),
		  "data[username]: Required value\n"
		  "data[password]: Required value" },
		{ SECRET("kubernetes.io/basic-auth", ",'stringData':{'password':''}"), "" },
		{ SECRET("kubernetes.io/ssh-auth", ",'stringData':{'ssh-privatekey':''}"),
		  "data[ssh-privatekey]: Required value" },
		{ SECRET("kubernetes.io/tls", ""),
		  "data[tls.crt]: Required value\n"
		  "data[tls.key]: Required value" },
		{ SECRET("kubernetes.io/tls", ",'stringData':{'tls.crt':'','tls.key':''}"), "" },
	};
	static const struct update_row u[] = {
		{ SECRET("b", ""), SECRET("a", ""), "", "type: Invalid value: 'b': field is immutable" },
		{ SECRET("a", ",'stringData':{'x':'1'}"), SECRET("a", ",'immutable':true"), "",
		  "immutable: Forbidden: field is immutable when `immutable` is set\n"
		  "data: Forbidden: field is immutable when `immutable` is set" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_service_account)
{
	static const struct create_row t[] = {
		{ CORE("ServiceAccount", ",'secrets':[{'name':'BAD'}]"), "" },
		{ "{'apiVersion':'v1','kind':'ServiceAccount','metadata':{'name':'A_','namespace':'n'}}",
		  "metadata.name: Invalid value: 'A_': " SUBDOMAIN_TEXT },
	};
	static const struct update_row u[] = {
		{ CORE("ServiceAccount", ",'automountServiceAccountToken':false"), CORE("ServiceAccount", ""), "",
		  "" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_limit_range)
{
	static const struct create_row t[] = {
		{ LIMITS("{'type':'Container','max':{'cpu':'1'},'min':{'cpu':'100m'},'default':{'cpu':'500m'},"
			 "'defaultRequest':{'cpu':'200m'},'maxLimitRequestRatio':{'cpu':'10'}}"), "" },
		{ LIMITS("{'type':'Foo'},{'type':''},{'type':'a.b/c','max':{'x':'1'}},{'type':'a.b/c'}"),
		  "spec.limits[0].type: Invalid value: 'Foo': must be a standard limit type or fully qualified\n"
		  "spec.limits[1].type: Invalid value: '': name part must be non-empty\n"
		  "spec.limits[1].type: Invalid value: '': " NAME_PART_TEXT "\n"
		  "spec.limits[2].max[x]: Invalid value: 'x': must be a standard resource type or fully qualified\n"
		  "spec.limits[3].type: Duplicate value: 'a.b/c'" },
		{ LIMITS("{'type':'Pod','default':{'cpu':'1'},'defaultRequest':{'cpu':'1'},'max':{'foo':'1'}},"
			 "{'type':'PersistentVolumeClaim','max':{'cpu':'1'}}"),
		  "spec.limits[0].max[foo]: Invalid value: 'foo': must be a standard resource type or fully qualified\n"
		  "spec.limits[0].max[foo]: Invalid value: 'foo': must be a standard resource for containers\n"
		  "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'\n"
		  "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'\n"
		  "spec.limits[1].limits: Required value: either minimum or maximum storage value is required, but"
		  " neither was provided" },
		{ LIMITS("{'type':'Container','min':{'cpu':'2'},'max':{'cpu':'1'},'default':{'cpu':'3'},'defaultRequest':{'cpu':'4'}}"),
		  "spec.limits[0].min[cpu]: Invalid value: '2': min value 2 is greater than max value 1\n"
		  "spec.limits[0].defaultRequest[cpu]: Invalid value: '4': default request value 4 is greater than max"
		  " value 1\n"
		  "spec.limits[0].defaultRequest[cpu]: Invalid value: '4': default request value 4 is greater than"
		  " default limit value 3\n"
		  "spec.limits[0].default[cpu]: Invalid value: '1': default value 3 is greater than max value 1" },
		{ LIMITS("{'type':'Container','min':{'cpu':'2'},'default':{'cpu':'1'},'defaultRequest':{'cpu':'500m'}}"),
		  "spec.limits[0].defaultRequest[cpu]: Invalid value: '500m': min value 2 is greater than default"
		  " request value 500m\n"
		  "spec.limits[0].default[cpu]: Invalid value: '2': min value 2 is greater than default value 1" },
		{ LIMITS("{'type':'Container','min':{'cpu':'1','memory':'1Gi'},'max':{'cpu':'3','memory':'1Gi'},"
			 "'maxLimitRequestRatio':{'cpu':'4','memory':'500m'}}"),
		  "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: '4': ratio 4 is greater than max/min ="
		  " 3.000000\n"
		  "spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: '500m': ratio 500m is less than 1" },
		{ LIMITS("{'type':'Container','default':{'a.b/gpu':'2','hugepages-2Mi':'4Mi'},'defaultRequest':{'a.b/gpu':'1','hugepages-2Mi':'2Mi'}}"),
		  "spec.limits[0].defaultRequest[a.b/gpu]: Invalid value: '1': default value 2 must equal to"
		  " defaultRequest value 1 in a.b/gpu\n"
		  "spec.limits[0].defaultRequest[hugepages-2Mi]: Invalid value: '2Mi': default value 4Mi must equal to"
		  " defaultRequest value 2Mi in hugepages-2Mi" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_resource_quota)
{
	static const struct create_row t[] = {
		{ QUOTA("'hard':{'pods':'1','requests.cpu':'1','count/widgets.example.com':'3','requests.hugepages-2Mi':'4Mi'}"),
		  "" },
		{ QUOTA("'hard':{'foo':'1','storage':'1','pods':'-1','cpu':'100m','pods.x/':'1','services':'1500m'}"),
		  "spec.hard[foo]: Invalid value: 'foo': must be a standard resource type or fully qualified\n"
		  "spec.hard[foo]: Invalid value: 'foo': must be a standard resource for quota\n"
		  "spec.hard[pods]: Invalid value: '-1': must be greater than or equal to 0\n"
		  "spec.hard[pods.x/]: Invalid value: 'pods.x/': name part must be non-empty\n"
		  "spec.hard[pods.x/]: Invalid value: 'pods.x/': " NAME_PART_TEXT "\n"
		  "spec.hard[services]: Invalid value: '1500m': must be an integer\n"
		  "spec.hard[storage]: Invalid value: 'storage': must be a standard resource for quota" },
		{ QUOTA("'hard':{'pods':'1','cpu':'1'},'scopes':['BestEffort','NotBestEffort','Foo']"),
		  "spec.scopes: Invalid value: ['BestEffort','NotBestEffort','Foo']: unsupported scope applied to"
		  " resource\n"
		  "spec.scopes: Invalid value: ['BestEffort','NotBestEffort','Foo']: unsupported scope\n"
		  "spec.scopes: Invalid value: ['BestEffort','NotBestEffort','Foo']: conflicting scopes" },
		{ QUOTA("'hard':{'persistentvolumeclaims':'1','pods':'1'},'scopes':['Terminating','NotTerminating','VolumeAttributesClass']"),
		  "spec.scopes: Invalid value: ['Terminating','NotTerminating','VolumeAttributesClass']: unsupported"
		  " scope applied to resource\n"
		  "spec.scopes: Invalid value: ['Terminating','NotTerminating','VolumeAttributesClass']: unsupported"
		  " scope applied to resource\n"
		  "spec.scopes: Invalid value: ['Terminating','NotTerminating','VolumeAttributesClass']: unsupported"
		  " scope applied to resource\n"
		  "spec.scopes: Invalid value: ['Terminating','NotTerminating','VolumeAttributesClass']: conflicting"
		  " scopes" },
		{ QUOTA("'hard':{'pods':'1'},'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':'In','values':['a']},"
			"{'scopeName':'Terminating','operator':'Exists'}]}"), "" },
		{ QUOTA("'hard':{'pods':'1','services':'1'},'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':'In'},"
			"{'scopeName':'Terminating','operator':'In','values':['a']},{'scopeName':'Foo','operator':'Exists','values':['a']},"
			"{'scopeName':'PriorityClass','operator':'Bar'},{'scopeName':'NotTerminating','operator':'Exists'}]}"),
		  "spec.scopeSelector.matchExpressions: Invalid value:"
		  " {'MatchExpressions':[{'ScopeName':'PriorityClass','Operator':'In','Values':null},"
		  "{'ScopeName':'Terminating','Operator':'In','Values':['a']},{'ScopeName':'Foo','Operator':'Exists',"
		  "'Values':['a']},{'ScopeName':'PriorityClass','Operator':'Bar','Values':null},"
		  "{'ScopeName':'NotTerminating','Operator':'Exists','Values':null}]}: unsupported scope applied to"
		  " resource\n"
		  "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when"
		  " `operator` is 'In' or 'NotIn' for scope selector\n"
		  "spec.scopeSelector.matchExpressions: Invalid value:"
		  " {'MatchExpressions':[{'ScopeName':'PriorityClass','Operator':'In','Values':null},"
		  "{'ScopeName':'Terminating','Operator':'In','Values':['a']},{'ScopeName':'Foo','Operator':'Exists',"
		  "'Values':['a']},{'ScopeName':'PriorityClass','Operator':'Bar','Values':null},"
		  "{'ScopeName':'NotTerminating','Operator':'Exists','Values':null}]}: unsupported scope applied to"
		  " resource\n"
		  "spec.scopeSelector.matchExpressions.operator: Invalid value: 'In': must be 'Exists' when scope is"
		  " any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating,"
		  " ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or"
		  " ResourceQuotaScopeCrossNamespacePodAffinity\n"
		  "spec.scopeSelector.matchExpressions.scopeName: Invalid value: 'Foo': unsupported scope\n"
		  "spec.scopeSelector.matchExpressions.values: Invalid value: ['a']: must be no value when `operator`"
		  " is 'Exist' or 'DoesNotExist' for scope selector\n"
		  "spec.scopeSelector.matchExpressions: Invalid value:"
		  " {'MatchExpressions':[{'ScopeName':'PriorityClass','Operator':'In','Values':null},"
		  "{'ScopeName':'Terminating','Operator':'In','Values':['a']},{'ScopeName':'Foo','Operator':'Exists',"
		  "'Values':['a']},{'ScopeName':'PriorityClass','Operator':'Bar','Values':null},"
		  "{'ScopeName':'NotTerminating','Operator':'Exists','Values':null}]}: unsupported scope applied to"
		  " resource\n"
		  "spec.scopeSelector.matchExpressions.operator: Invalid value: 'Bar': not a valid selector operator\n"
		  "spec.scopeSelector.matchExpressions: Invalid value:"
		  " {'MatchExpressions':[{'ScopeName':'PriorityClass','Operator':'In','Values':null},"
		  "{'ScopeName':'Terminating','Operator':'In','Values':['a']},{'ScopeName':'Foo','Operator':'Exists',"
		  "'Values':['a']},{'ScopeName':'PriorityClass','Operator':'Bar','Values':null},"
		  "{'ScopeName':'NotTerminating','Operator':'Exists','Values':null}]}: unsupported scope applied to"
		  " resource\n"
		  "spec.scopeSelector.matchExpressions: Invalid value: null: conflicting scopes" },
	};
	static const struct update_row u[] = {
		{ QUOTA("'scopes':['NotTerminating','BestEffort']"), QUOTA("'scopes':['BestEffort','NotTerminating','BestEffort']"), "",
		  "" },
		{ QUOTA("'scopes':['BestEffort']"), QUOTA("'scopes':['Terminating']"), "",
		  "spec.scopes: Invalid value: ['BestEffort']: field is immutable" },
		{ CORE("ResourceQuota", ",'status':{'hard':{'foo':'1'},'used':{'pods':'-1'}}"), CORE("ResourceQuota", ""), "status",
		  "status.hard[foo]: Invalid value: 'foo': must be a standard resource type or fully qualified\n"
		  "status.hard[foo]: Invalid value: 'foo': must be a standard resource for quota\n"
		  "status.used[pods]: Invalid value: '-1': must be greater than or equal to 0" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_node)
{
	static const struct create_row t[] = {
		{ NODE(",'spec':{'podCIDR':'10.0.0.0/24','podCIDRs':['10.0.0.0/24','fd00::/64'],"
		       "'taints':[{'key':'a','effect':'NoSchedule'},{'key':'a','effect':'NoExecute'}]}"), "" },
		{ NODE(",'spec':{'taints':[{'key':'a b','value':'?','effect':'NoSchedule'},{'key':'a','effect':'Foo'},{'key':'a'},"
		       "{'key':'c','effect':'NoExecute'},{'key':'c','value':'x','effect':'NoExecute'}]}"),
		  "metadata.taints[0].key: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "metadata.taints[0].value: Invalid value: '?': " VALUE_TEXT "\n"
		  "metadata.taints[1].effect: Unsupported value: 'Foo': supported values: 'NoSchedule',"
		  " 'PreferNoSchedule', 'NoExecute'\n"
		  "metadata.taints[2].effect: Required value\n"
		  "metadata.taints[4]: Duplicate value: {'Key':'c','Value':'x','Effect':'NoExecute','TimeAdded':null}:"
		  " taints must be unique by key and effect pair" },
		{ NODE(",'spec':{'podCIDR':'10.0.0.0/24','podCIDRs':['10.0.0.0/24','10.0.1.0/24']}"),
		  "spec.podCIDRs: Invalid value: ['10.0.0.0/24','10.0.1.0/24']: may specify no more than one CIDR for"
		  " each IP family" },
		{ NODE(",'spec':{'podCIDRs':['x']}"),
		  "spec.podCIDRs[0]: Invalid value: 'x': must be a valid CIDR value, (e.g. 10.9.8.0/24 or"
		  " 2001:db8::/64)" },
		{ NODE(",'spec':{'podCIDRs':['x','10.0.0.0/24']}"),
		  "spec.podCIDRs[0]: Invalid value: 'x': must be a valid CIDR value, (e.g. 10.9.8.0/24 or"
		  " 2001:db8::/64)\n"
		  "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid"
		  " CIDR address: x\n"
		  "spec.podCIDRs: Invalid value: ['x','10.0.0.0/24']: may specify no more than one CIDR for each IP"
		  " family" },
		{ NODE(",'status':{'capacity':{'cpu':'-1','a.b/gpu':'1500m'},'declaredFeatures':['A','b','B/c','B/c','A/'],"
		       "'nodeInfo':{'swap':{'capacity':0}}}"),
		  "status.capacity.a.b/gpu: Invalid value: '1500m': must be an integer\n"
		  "status.capacity.cpu: Invalid value: '-1': must be greater than or equal to 0\n"
		  "status.allocatable.a.b/gpu: Invalid value: '1500m': must be an integer\n"
		  "status.allocatable.cpu: Invalid value: '-1': must be greater than or equal to 0\n"
		  "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero\n"
		  "status.declaredFeatures[1]: Invalid value: 'b': invalid feature name 'b': must start with an"
		  " UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or"
		  " MyFeature/mySubFeature), and contain only alphanumeric characters and slashes\n"
		  "status.declaredFeatures[2]: Invalid value: 'B/c': list must be sorted alphabetically\n"
		  "status.declaredFeatures[3]: Duplicate value: 'B/c'\n"
		  "status.declaredFeatures[4]: Invalid value: 'A/': list must be sorted alphabetically\n"
		  "status.declaredFeatures[4]: Invalid value: 'A/': invalid feature name 'A/': must start with an"
		  " UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or"
		  " MyFeature/mySubFeature), and contain only alphanumeric characters and slashes" },
		{ NODE_WITH(",'annotations':{'scheduler.alpha.kubernetes.io/preferAvoidPods':'{\\'preferAvoidPods\\':[{\\'podSignature\\':{}}]}'}", ""),
		  "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature: Required value" },
	};
	static const struct update_row u[] = {
		{ NODE(",'spec':{'podCIDRs':['10.0.0.0/24'],'providerID':'a'}"), NODE(""), "", "" },
		{ NODE(",'spec':{'podCIDRs':['10.0.1.0/24'],'providerID':'b','externalID':'x'}"),
		  NODE(",'spec':{'podCIDRs':['10.0.0.0/24'],'providerID':'a'}"), "",
		  "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from '' to valid\n"
		  "spec.providerID: Forbidden: node updates may not change providerID except from '' to valid\n"
		  "spec.externalID: Forbidden: may not be updated" },
		{ NODE(""), NODE(",'spec':{'podCIDRs':['10.0.0.0/24'],'providerID':'a'}"), "",
		  "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from '' to valid\n"
		  "spec.providerID: Forbidden: node updates may not change providerID except from '' to valid" },
		{ NODE(",'status':{'addresses':[{'type':'InternalIP','address':'10.0.0.1'},{'type':'InternalIP','address':'10.0.0.1'}],"
		       "'allocatable':{'pods':'1500m'}}"), NODE(""), "status",
		  "status.allocatable.pods: Invalid value: '1500m': must be an integer\n"
		  "status.addresses[1]: Duplicate value: {'Type':'InternalIP','Address':'10.0.0.1'}" },
		{ NODE(",'spec':{'configSource':{'configMap':{'namespace':'A','uid':'u','kubeletConfigKey':'a b'}}}"),
		  NODE(",'spec':{'configSource':{}}"), "",
		  "spec.configSource.configMap.uid: Forbidden: uid must not be set in spec\n"
		  "spec.configSource.configMap.namespace: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.configSource.configMap.name: Required value\n"
		  "spec.configSource.configMap.kubeletConfigKey: Invalid value: 'a b': " CONFIG_KEY_TEXT },
		{ NODE(",'status':{'config':{'assigned':{'configMap':{'name':'a'}},'active':{}}}"), NODE(",'status':{'config':{}}"), "status",
		  "status.config.assigned.configMap.uid: Required value\n"
		  "status.config.assigned.configMap.resourceVersion: Required value\n"
		  "status.config.assigned.configMap.namespace: Required value\n"
		  "status.config.assigned.configMap.kubeletConfigKey: Required value\n"
		  "status.config.active: Invalid value: {'ConfigMap':null}: exactly one reference subfield must be"
		  " non-nil" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_endpoints)
{
	static const struct create_row t[] = {
		{ SUBSETS("{'addresses':[{'ip':'10.0.0.1','hostname':'a','nodeName':'b'}],'ports':[{'port':80}]}"),
		  "" },
		{ SUBSETS("{},{'addresses':[{'ip':'x'},{'ip':'127.0.0.1'},{'ip':'0.0.0.0'},{'ip':'169.254.1.1'},{'ip':'224.0.0.1'},{'ip':'fe80::1'},"
			  "{'ip':'10.0.0.1','hostname':'A','nodeName':'B'}]}"),
		  "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`\n"
		  "subsets[1].addresses[0].ip: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7 or"
		  " 2001:db8::ffff)\n"
		  "subsets[1].addresses[0].ip: Invalid value: 'x': must be a valid IP address\n"
		  "subsets[1].addresses[1].ip: Invalid value: '127.0.0.1': may not be in the loopback range"
		  " (127.0.0.0/8, ::1/128)\n"
		  "subsets[1].addresses[2].ip: Invalid value: '0.0.0.0': may not be unspecified (0.0.0.0)\n"
		  "subsets[1].addresses[3].ip: Invalid value: '169.254.1.1': may not be in the link-local range"
		  " (169.254.0.0/16, fe80::/10)\n"
		  "subsets[1].addresses[4].ip: Invalid value: '224.0.0.1': may not be in the link-local multicast"
		  " range (224.0.0.0/24, ff02::/10)\n"
		  "subsets[1].addresses[5].ip: Invalid value: 'fe80::1': may not be in the link-local range"
		  " (169.254.0.0/16, fe80::/10)\n"
		  "subsets[1].addresses[6].hostname: Invalid value: 'A': " LABEL_TEXT "\n"
		  "subsets[1].addresses[6].nodeName: Invalid value: 'B': " SUBDOMAIN_TEXT },
		{ SUBSETS("{'notReadyAddresses':[{'ip':'010.0.0.1'}],'ports':[{'port':0,'protocol':'x'},{'name':'A','port':65536,'appProtocol':'a b'}]}"),
		  "subsets[0].notReadyAddresses[0].ip: Invalid value: '010.0.0.1': must not have leading 0s\n"
		  "subsets[0].ports[0].name: Required value\n"
		  "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive\n"
		  "subsets[0].ports[0].protocol: Unsupported value: 'x': supported values: 'SCTP', 'TCP', 'UDP'\n"
		  "subsets[0].ports[1].name: Invalid value: 'A': " LABEL_TEXT "\n"
		  "subsets[0].ports[1].port: Invalid value: 65536: must be between 1 and 65535, inclusive\n"
		  "subsets[0].ports[1].appProtocol: Invalid value: 'a b': " NAME_PART_TEXT },
	};
	static const struct update_row u[] = {
		{ SUBSETS("{}"), SUBSETS("{}"), "", "" },
		{ SUBSETS("{},{}"), SUBSETS("{}"), "",
		  "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`\n"
		  "subsets[1]: Required value: must specify `addresses` or `notReadyAddresses`" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_event)
{
	static const struct create_row t[] = {
		{ CORE_EVENT(",'involvedObject':{'namespace':'n'}"), "" },
		{ CORE_EVENT(",'involvedObject':{'namespace':'other'}"),
		  "involvedObject.namespace: Invalid value: 'other': does not match event.namespace" },
		{ CORE_EVENT(",'involvedObject':{}"),
		  "involvedObject.namespace: Invalid value: '': does not match event.namespace" },
		{ CORE_EVENT(",'involvedObject':{},'eventTime':'2024-01-01T00:00:00.000000Z'"),
		  "involvedObject.namespace: Invalid value: '': does not match event.namespace\n"
		  "reportingComponent: Required value\n"
		  "reportingComponent: Invalid value: '': name part must be non-empty\n"
		  "reportingComponent: Invalid value: '': " NAME_PART_TEXT "\n"
		  "reportingInstance: Required value\n"
		  "action: Required value\n"
		  "reason: Required value" },
		{ EVENT("," EVENT_MEMBERS), "" },
		{ EVENT(",'regarding':{'namespace':'n'},'type':'Foo','deprecatedCount':1,'deprecatedSource':{'host':'h'},"
			"'deprecatedFirstTimestamp':'2024-01-01T00:00:00Z','deprecatedLastTimestamp':'2024-01-01T00:00:00Z','series':{'count':1}"),
		  "series.count: Invalid value: '': should be at least 2\n"
		  "series.lastObservedTime: Required value\n"
		  "eventTime: Required value\n"
		  "type: Invalid value: '': has invalid value: Foo\n"
		  "firstTimestamp: Invalid value: '': needs to be unset\n"
		  "lastTimestamp: Invalid value: '': needs to be unset\n"
		  "count: Invalid value: '': needs to be unset\n"
		  "source: Invalid value: '': needs to be unset" },
		{ EVENT_AT("default", ",'eventTime':'2024-01-01T00:00:00.000000Z','type':'Normal','reason':'r','action':'a',"
			   "'reportingController':'a b','reportingInstance':'i'"),
		  "reportingController: Invalid value: 'a b': " NAME_PART_TEXT },
	};
	static const struct update_row u[] = {
		{ EVENT("," EVENT_MEMBERS ",'series':{'count':2,'lastObservedTime':'2024-01-01T00:00:00.000000Z'}"), EVENT("," EVENT_MEMBERS), "",
		  "" },
		{ EVENT("," EVENT_MEMBERS ",'note':'x','series':{'count':1},'related':{'name':'x'},'deprecatedCount':2"), EVENT("," EVENT_MEMBERS), "",
		  "series.count: Invalid value: '': should be at least 2\n"
		  "series.lastObservedTime: Required value\n"
		  "message: Invalid value: 'x': field is immutable\n"
		  "count: Invalid value: 2: field is immutable\n"
		  "related: Invalid value:"
		  " {'Kind':'','Namespace':'','Name':'x','UID':'','APIVersion':'','ResourceVersion':'',"
		  "'FieldPath':''}: field is immutable" },
		{ CORE_EVENT(",'involvedObject':{'namespace':'n'},'message':'b'"), CORE_EVENT(",'involvedObject':{'namespace':'n'},'message':'a'"), "",
		  "" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}
