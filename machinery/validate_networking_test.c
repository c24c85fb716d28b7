/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define META "'metadata':{'name':'x','namespace':'n','resourceVersion':'1'}"
#define SERVICE_WITH(meta, spec) \
	"{'apiVersion':'v1','kind':'Service','metadata':{'name':'x','namespace':'n','resourceVersion':'1'" meta "},'spec':{" spec "}}"
#define SERVICE(spec) SERVICE_WITH("", spec)
#define PORT "'ports':[{'port':80}]"
#define BALANCER(points) \
	"{'apiVersion':'v1','kind':'Service'," META ",'spec':{'type':'LoadBalancer'," PORT "},'status':{'loadBalancer':{'ingress':[" points "]}}}"
#define NETWORKING(kind, members) "{'apiVersion':'networking.k8s.io/v1','kind':'" kind "'," META members "}"
#define CLUSTER(kind, name, spec) \
	"{'apiVersion':'networking.k8s.io/v1','kind':'" kind "','metadata':{'name':'" name "','resourceVersion':'1'},'spec':{" spec "}}"
#define INGRESS_WITH(meta, spec) \
	"{'apiVersion':'networking.k8s.io/v1','kind':'Ingress','metadata':{'name':'x','namespace':'n','resourceVersion':'1'" meta "}," \
	"'spec':{" spec "}}"
#define INGRESS(spec) INGRESS_WITH("", spec)
#define HTTP(paths) INGRESS("'rules':[{'http':{'paths':[" paths "]}}]")
#define BACKEND "'backend':{'service':{'name':'a','port':{'number':80}}}"
#define DEFAULT_BACKEND "'defaultBackend':{'service':{'name':'a','port':{'name':'http'}}}"
#define POLICY(spec) NETWORKING("NetworkPolicy", ",'spec':{" spec "}")
#define SLICE(type, members) "{'apiVersion':'discovery.k8s.io/v1','kind':'EndpointSlice'," META ",'addressType':'" type "'" members "}"
#define ADDRESS(name, spec) CLUSTER("IPAddress", name, spec)
#define PARENT "'parentRef':{'resource':'services','name':'a'}"
#define RANGE(blocks) CLUSTER("ServiceCIDR", "x", "'cidrs':[" blocks "]")
#define CLASS(spec) CLUSTER("IngressClass", "x", spec)
#define IP_TEXT "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"

TEST(validate_service)
{
	static const struct create_row t[] = {
		{ SERVICE(PORT), "" },
		{ SERVICE("'clusterIP':'None','clusterIPs':['None']"), "" },
		{ SERVICE("'type':'ExternalName','externalName':'a.b.'"), "" },
		{ SERVICE(""), "spec.ports: Required value" },
		{ "{'apiVersion':'v1','kind':'Service','metadata':{'name':'1.x','namespace':'n'},'spec':{'type':'Foo'," PORT "}}",
		  "metadata.name: Invalid value: '1.x': must not contain dots\n"
		  "spec.type: Unsupported value: 'Foo': supported values: 'ClusterIP', 'ExternalName', 'LoadBalancer',"
		  " 'NodePort'" },
		{ SERVICE("'ports':[{'port':0},{'name':'A','port':70000,'protocol':'X','targetPort':0,'appProtocol':'a b'},"
			  "{'name':'b','port':1,'targetPort':70000},{'name':'b','port':2,'targetPort':'-'}]"),
		  "spec.ports[0].name: Required value\n"
		  "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive\n"
		  "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive\n"
		  "spec.ports[1].name: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.ports[1].port: Invalid value: 70000: must be between 1 and 65535, inclusive\n"
		  "spec.ports[1].protocol: Unsupported value: 'X': supported values: 'SCTP', 'TCP', 'UDP'\n"
		  "spec.ports[1].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive\n"
		  "spec.ports[1].appProtocol: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.ports[2].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive\n"
		  "spec.ports[3].name: Duplicate value: 'b'\n"
		  "spec.ports[3].targetPort: Invalid value: '-': must contain at least one letter (a-z)\n"
		  "spec.ports[3].targetPort: Invalid value: '-': must not begin or end with a hyphen" },
		{ SERVICE("'ports':[{'name':'a','port':80},{'name':'b','port':80},{'name':'c','port':80,'protocol':'UDP'}]"),
		  "spec.ports[1]: Duplicate value:"
		  " {'Name':'','Protocol':'TCP','AppProtocol':null,'Port':80,'TargetPort':0,'NodePort':0}" },
		{ SERVICE("'type':'NodePort','ports':[{'name':'a','port':80,'nodePort':30000},{'name':'b','port':81,'nodePort':30000}]"),
		  "spec.ports[1].nodePort: Duplicate value: 30000" },
		{ SERVICE("'ports':[{'port':80,'nodePort':30000}],'selector':{'a b':'?'}"),
		  "spec.selector: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.selector: Invalid value: '?': " VALUE_TEXT "\n"
		  "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'" },
		{ SERVICE(PORT ",'sessionAffinity':'Foo'"),
		  "spec.sessionAffinity: Unsupported value: 'Foo': supported values: 'ClientIP', 'None'" },
		{ SERVICE(PORT ",'sessionAffinity':'ClientIP','sessionAffinityConfig':{'clientIP':{'timeoutSeconds':86401}}"),
		  "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0"
		  " and less than 86400" },
		{ SERVICE(PORT ",'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.2']"),
		  "spec.clusterIPs: Invalid value: ['10.0.0.2']: first value must match `clusterIP`" },
		{ SERVICE(PORT ",'clusterIPs':['10.0.0.1']"),
		  "spec.clusterIPs: Invalid value: ['10.0.0.1']: must be empty when `clusterIP` is not specified" },
		{ SERVICE(PORT ",'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1','10.0.0.2'],'ipFamilies':['IPv6','IPv4']"),
		  "spec.clusterIPs: Invalid value: ['10.0.0.1','10.0.0.2']: may specify no more than one IP for each"
		  " IP family\n"
		  "spec.clusterIPs[0]: Invalid value: '10.0.0.1': expected an IPv6 value as indicated by"
		  " `ipFamilies[0]`" },
		{ SERVICE(PORT ",'clusterIP':'None','clusterIPs':['None','10.0.0.2','x']"),
		  "spec.clusterIPs: Invalid value: ['None','10.0.0.2','x']: 'None' must be the first and only value\n"
		  "spec.clusterIPs[2]: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7 or"
		  " 2001:db8::ffff)\n"
		  "spec.clusterIPs: Invalid value: ['None','10.0.0.2','x']: may only hold up to 2 values" },
		{ SERVICE(PORT ",'ipFamilies':['IPv4','IPv4','x'],'ipFamilyPolicy':'x'"),
		  "spec.ipFamilies[1]: Duplicate value: 'IPv4'\n"
		  "spec.ipFamilies[2]: Unsupported value: 'x': supported values: 'IPv4', 'IPv6'\n"
		  "spec.ipFamilyPolicy: Unsupported value: 'x': supported values: 'PreferDualStack',"
		  " 'RequireDualStack', 'SingleStack'" },
		{ SERVICE(PORT ",'externalIPs':['x','127.0.0.1','10.0.0.1']"),
		  "spec.externalIPs[0]: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7 or"
		  " 2001:db8::ffff)\n"
		  "spec.externalIPs[1]: Invalid value: '127.0.0.1': may not be in the loopback range (127.0.0.0/8,"
		  " ::1/128)" },
		{ SERVICE(PORT ",'type':'NodePort','clusterIP':'None','clusterIPs':['None']"),
		  "spec.clusterIPs[0]: Invalid value: 'None': may not be set to 'None' for NodePort services" },
		{ SERVICE("'type':'ExternalName','externalName':'A_','clusterIPs':['10.0.0.1'],'ipFamilies':['IPv4'],'ipFamilyPolicy':'SingleStack'"),
		  "spec.clusterIPs: Forbidden: may not be set for ExternalName services\n"
		  "spec.ipFamilies: Forbidden: may not be set for ExternalName services\n"
		  "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services\n"
		  "spec.externalName: Invalid value: 'A_': " SUBDOMAIN_TEXT },
		{ SERVICE("'type':'ExternalName'"), "spec.externalName: Required value" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_service_traffic)
{
	static const struct create_row t[] = {
		{ SERVICE(PORT ",'externalTrafficPolicy':'Local','healthCheckNodePort':1,'internalTrafficPolicy':'x','trafficDistribution':'x'"),
		  "spec.externalTrafficPolicy: Invalid value: 'Local': may only be set for externally-accessible"
		  " services\n"
		  "spec.healthCheckNodePort: Invalid value: 1: may only be set when `type` is 'LoadBalancer' and"
		  " `externalTrafficPolicy` is 'Local'\n"
		  "spec.internalTrafficPolicy: Unsupported value: 'x': supported values: 'Cluster', 'Local'\n"
		  "spec.trafficDistribution: Unsupported value: 'x': supported values: 'PreferClose',"
		  " 'PreferSameZone', 'PreferSameNode'" },
		{ SERVICE(PORT ",'type':'LoadBalancer','externalTrafficPolicy':'Local','healthCheckNodePort':70000"),
		  "spec.healthCheckNodePort: Invalid value: 70000: must be between 1 and 65535, inclusive" },
		{ SERVICE(PORT ",'type':'NodePort','externalTrafficPolicy':'x'"),
		  "spec.externalTrafficPolicy: Unsupported value: 'x': supported values: 'Cluster', 'Local'" },
		{ SERVICE(PORT ",'loadBalancerSourceRanges':['10.0.0.0/8'],'loadBalancerClass':'a','allocateLoadBalancerNodePorts':true"),
		  "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'\n"
		  "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'\n"
		  "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'" },
		{ SERVICE(PORT ",'type':'LoadBalancer','loadBalancerSourceRanges':[' 10.0.0.0/8 ','x'],'loadBalancerClass':'a b'"),
		  "spec.LoadBalancerSourceRanges[1]: Invalid value: 'x': must be a valid CIDR value, (e.g. 10.9.8.0/24"
		  " or 2001:db8::/64)\n"
		  "spec.loadBalancerClass: Invalid value: 'a b': " NAME_PART_TEXT },
		{ SERVICE_WITH(",'annotations':{'service.beta.kubernetes.io/load-balancer-source-ranges':'10.0.0.0/8, x'}", PORT),
		  "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Forbidden: may only"
		  " be used when `type` is 'LoadBalancer'\n"
		  "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Invalid value: 'x':"
		  " must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)" },
		{ SERVICE_WITH(",'annotations':{'service.kubernetes.io/topology-mode':'a','service.kubernetes.io/topology-aware-hints':'b'}", PORT),
		  "metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: 'a': must match"
		  " annotations[service.kubernetes.io/topology-aware-hints] when both are specified" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

#define ALLOCATED PORT ",'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1'],'ipFamilies':['IPv4'],'ipFamilyPolicy':'SingleStack'"
#define DUAL \
	PORT ",'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1','fd00::1'],'ipFamilies':['IPv4','IPv6'],'ipFamilyPolicy':'RequireDualStack'"

TEST(validate_service_update)
{
	static const struct update_row t[] = {
		{ SERVICE(PORT), SERVICE(ALLOCATED), "", "" },
		{ SERVICE(PORT ",'clusterIP':'10.0.0.2','clusterIPs':['10.0.0.2'],'ipFamilies':['IPv6']"), SERVICE(ALLOCATED), "",
		  "spec.clusterIPs[0]: Invalid value: ['10.0.0.2']: may not change once set\n"
		  "spec.ipFamilies[0]: Invalid value: ['IPv6']: may not change once set\n"
		  "spec.clusterIPs[0]: Invalid value: '10.0.0.2': expected an IPv6 value as indicated by"
		  " `ipFamilies[0]`" },
		{ SERVICE(PORT ",'clusterIP':'None','clusterIPs':['None']"), SERVICE(ALLOCATED), "",
		  "spec.clusterIPs[0]: Invalid value: ['None']: may not change once set" },
		{ SERVICE(ALLOCATED), SERVICE(DUAL), "", "" },
		{ SERVICE(PORT ",'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1'],'ipFamilies':['IPv4'],'ipFamilyPolicy':'RequireDualStack'"), SERVICE(DUAL), "",
		  "spec.ipFamilyPolicy: Invalid value: 'RequireDualStack': must be set to 'SingleStack' when releasing"
		  " the secondary clusterIP\n"
		  "spec.ipFamilyPolicy: Invalid value: 'RequireDualStack': must be set to 'SingleStack' when releasing"
		  " the secondary ipFamily" },
		{ SERVICE(DUAL), SERVICE(ALLOCATED), "", "" },
		{ SERVICE(PORT ",'clusterIP':'10.0.0.2','clusterIPs':['10.0.0.2','fd00::1'],'ipFamilies':['IPv4','IPv6'],'ipFamilyPolicy':'RequireDualStack'"),
		  SERVICE(ALLOCATED), "",
		  "spec.clusterIPs[0]: Invalid value: ['10.0.0.2','fd00::1']: may not change once set" },
		{ SERVICE("'type':'ExternalName','externalName':'a'"), SERVICE(ALLOCATED), "", "" },
		{ SERVICE(PORT ",'type':'LoadBalancer','loadBalancerClass':'b'"), SERVICE(PORT ",'type':'LoadBalancer','loadBalancerClass':'a'"), "",
		  "spec.loadBalancerClass: Invalid value: 'b': may not change once set" },
		{ SERVICE(PORT ",'type':'LoadBalancer','externalTrafficPolicy':'Local','healthCheckNodePort':2"),
		  SERVICE(PORT ",'type':'LoadBalancer','externalTrafficPolicy':'Local','healthCheckNodePort':1"), "",
		  "spec.healthCheckNodePort: Forbidden: field is immutable" },
		{ SERVICE(PORT ",'externalIPs':['010.0.0.1','010.0.0.2']"), SERVICE(PORT ",'externalIPs':['010.0.0.1']"), "",
		  "spec.externalIPs[1]: Invalid value: '010.0.0.2': must not have leading 0s" },
		{ BALANCER("{'ip':'10.0.0.1'},{'hostname':'a.b'}"), BALANCER(""), "status", "" },
		{ BALANCER("{'ip':'x','ipMode':'Foo','hostname':'A'},{'hostname':'10.0.0.1','ipMode':'VIP'}"), BALANCER(""), "status",
		  "status.loadBalancer.ingress[0].ip: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7"
		  " or 2001:db8::ffff)\n"
		  "status.loadBalancer.ingress[0].ipMode: Unsupported value: 'Foo': supported values: 'Proxy', 'VIP'\n"
		  "status.loadBalancer.ingress[0].hostname: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "status.loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` is not set\n"
		  "status.loadBalancer.ingress[1].hostname: Invalid value: '10.0.0.1': must be a DNS name, not an IP"
		  " address" },
		{ "{'apiVersion':'v1','kind':'Service'," META ",'spec':{" PORT "},'status':{'loadBalancer':{'ingress':[{'ip':'10.0.0.1'}]}}}",
		  SERVICE(PORT), "status",
		  "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}

TEST(validate_network_policy)
{
	static const struct create_row t[] = {
		{ POLICY("'podSelector':{},'ingress':[{'from':[{'ipBlock':{'cidr':'10.0.0.0/8','except':['10.1.0.0/16']}}],"
			 "'ports':[{'port':80,'endPort':90},{'port':'http'}]}],'policyTypes':['Ingress','Egress']"),
		  "" },
		{ POLICY("'podSelector':{'matchLabels':{'a b':'?'}},'policyTypes':['Ingress','x']"),
		  "spec.podSelector.matchLabels: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.podSelector.matchLabels: Invalid value: '?': " VALUE_TEXT "\n"
		  "spec.policyTypes[1]: Unsupported value: 'x': supported values: 'Ingress', 'Egress'" },
		{ POLICY("'policyTypes':['Ingress','Egress','Ingress']"),
		  "spec.policyTypes: Invalid value: ['Ingress','Egress','Ingress']: may not specify more than two"
		  " policyTypes" },
		{ POLICY("'ingress':[{'ports':[{'protocol':'X','port':0,'endPort':1},{'port':'a','endPort':1},{'endPort':1},{'port':80,'endPort':79},"
			 "{'port':'-'},{'port':80,'endPort':70000}]}]"),
		  "spec.ingress[0].ports[0].protocol: Unsupported value: 'X': supported values: 'TCP', 'UDP', 'SCTP'\n"
		  "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive\n"
		  "spec.ingress[0].ports[1].endPort: Invalid value: 1: may not be specified when `port` is non-numeric\n"
		  "spec.ingress[0].ports[2].endPort: Invalid value: 1: may not be specified when `port` is not"
		  " specified\n"
		  "spec.ingress[0].ports[3].endPort: Invalid value: 80: must be greater than or equal to `port`\n"
		  "spec.ingress[0].ports[4].port: Invalid value: '-': must contain at least one letter (a-z)\n"
		  "spec.ingress[0].ports[4].port: Invalid value: '-': must not begin or end with a hyphen\n"
		  "spec.ingress[0].ports[5].endPort: Invalid value: 70000: must be between 1 and 65535, inclusive" },
		{ POLICY("'egress':[{'to':[{},{'podSelector':{},'ipBlock':{'cidr':'x'}},{'ipBlock':{}},{'ipBlock':{'cidr':'10.0.0.0/8',"
			 "'except':['x','11.0.0.0/16','10.0.0.0/8','10.0.0.1/16']}},{'namespaceSelector':{'matchExpressions':[{'key':'a','operator':'x'}]}}]}]"),
		  "spec.egress[0].to[0]: Required value: must specify a peer\n"
		  "spec.egress[0].to[1].ipBlock.cidr: Invalid value: 'x': must be a valid CIDR value, (e.g."
		  " 10.9.8.0/24 or 2001:db8::/64)\n"
		  "spec.egress[0].to[1]: Forbidden: may not specify both ipBlock and another peer\n"
		  "spec.egress[0].to[2].ipBlock.cidr: Required value\n"
		  "spec.egress[0].to[3].ipBlock.except[0]: Invalid value: 'x': must be a valid CIDR value, (e.g."
		  " 10.9.8.0/24 or 2001:db8::/64)\n"
		  "spec.egress[0].to[3].ipBlock.except[1]: Invalid value: '11.0.0.0/16': must be a strict subset of"
		  " `cidr`\n"
		  "spec.egress[0].to[3].ipBlock.except[2]: Invalid value: '10.0.0.0/8': must be a strict subset of"
		  " `cidr`\n"
		  "spec.egress[0].to[3].ipBlock.except[3]: Invalid value: '10.0.0.1/16': must not have bits set beyond"
		  " the prefix length\n"
		  "spec.egress[0].to[4].namespaceSelector.matchExpressions[0].operator: Invalid value: 'x': not a"
		  " valid selector operator" },
	};
	static const struct update_row u[] = {
		{ POLICY("'ingress':[{'from':[{'ipBlock':{'cidr':'010.0.0.0/8'}},{'ipBlock':{'cidr':'011.0.0.0/8'}}]}]"),
		  POLICY("'ingress':[{'from':[{'ipBlock':{'cidr':'010.0.0.0/8'}}]}]"), "",
		  "spec.ingress[0].from[1].ipBlock.cidr: Invalid value: '011.0.0.0/8': must not have leading 0s in IP"
		  " or prefix length" },
		{ POLICY("'podSelector':{'matchExpressions':[{'key':'a','operator':'In','values':['?']}]}"),
		  POLICY("'podSelector':{'matchExpressions':[{'key':'a','operator':'In','values':['?a']}]}"), "",
		  "" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_ingress)
{
	static const struct create_row t[] = {
		{ INGRESS(DEFAULT_BACKEND), "" },
		{ HTTP("{'path':'/a','pathType':'Prefix'," BACKEND "}"), "" },
		{ INGRESS(""), "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified" },
		{ INGRESS("'defaultBackend':{},'ingressClassName':'A'"),
		  "spec.defaultBackend: Invalid value: '': resource or service backend is required\n"
		  "spec.ingressClassName: Invalid value: 'A': " SUBDOMAIN_TEXT },
		{ INGRESS("'defaultBackend':{'service':{'name':'A','port':{'name':'a','number':1}},'resource':{'kind':'a','name':'b'}}"),
		  "spec.defaultBackend: Invalid value: '': cannot set both resource and service backends" },
		{ INGRESS("'defaultBackend':{'resource':{'apiGroup':'A','kind':'','name':'a/b'}}"),
		  "spec.defaultBackend.resource.apiGroup: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.defaultBackend.resource.kind: Required value\n"
		  "spec.defaultBackend.resource.name: Invalid value: 'a/b': may not contain '/'" },
		{ HTTP("{'path':'a','pathType':'Prefix','backend':{'service':{'name':'a','port':{'name':'a','number':1}}}},"
		       "{'path':'/a//b/../c/./d%2f/..','pathType':'Exact','backend':{'service':{'port':{'number':70000}}}},"
		       "{'path':'a','pathType':'ImplementationSpecific','backend':{'service':{'name':'A','port':{}}}},"
		       "{'path':'/','pathType':'x','backend':{'service':{'name':'a','port':{'name':'-'}}}},{'path':'/'}"),
		  "spec.rules[0].http.paths[0].path: Invalid value: 'a': must be an absolute path\n"
		  "spec.rules[0].http.paths[0].backend: Invalid value: '': cannot set both port name & port number\n"
		  "spec.rules[0].http.paths[1].path: Invalid value: '/a//b/../c/./d%2f/..': must not contain '//'\n"
		  "spec.rules[0].http.paths[1].path: Invalid value: '/a//b/../c/./d%2f/..': must not contain '/./'\n"
		  "spec.rules[0].http.paths[1].path: Invalid value: '/a//b/../c/./d%2f/..': must not contain '/../'\n"
		  "spec.rules[0].http.paths[1].path: Invalid value: '/a//b/../c/./d%2f/..': must not contain '%2f'\n"
		  "spec.rules[0].http.paths[1].path: Invalid value: '/a//b/../c/./d%2f/..': cannot end with '/..'\n"
		  "spec.rules[0].http.paths[1].backend.service.name: Required value\n"
		  "spec.rules[0].http.paths[1].backend.service.port.number: Invalid value: 70000: must be between 1"
		  " and 65535, inclusive\n"
		  "spec.rules[0].http.paths[2].path: Invalid value: 'a': must be an absolute path\n"
		  "spec.rules[0].http.paths[2].backend.service.name: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.rules[0].http.paths[2].backend: Required value: port name or number is required\n"
		  "spec.rules[0].http.paths[3].pathType: Unsupported value: 'x': supported values: 'Exact',"
		  " 'ImplementationSpecific', 'Prefix'\n"
		  "spec.rules[0].http.paths[3].backend.service.port.name: Invalid value: '-': must contain at least"
		  " one letter (a-z)\n"
		  "spec.rules[0].http.paths[3].backend.service.port.name: Invalid value: '-': must not begin or end"
		  " with a hyphen\n"
		  "spec.rules[0].http.paths[4].pathType: Required value: pathType must be specified" },
		{ INGRESS("'rules':[{'host':'10.0.0.1'},{'host':'A','http':{}},{'host':'*.a'},{'host':'a.*'}]"),
		  "spec.rules[0].host: Invalid value: '10.0.0.1': must be a DNS name, not an IP address\n"
		  "spec.rules[1].host: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.rules[1].http.paths: Required value\n"
		  "spec.rules[3].host: Invalid value: 'a.*': a wildcard DNS-1123 subdomain must start with '*.',"
		  " followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-'"
		  " or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is"
		  " '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')" },
		{ INGRESS(DEFAULT_BACKEND ",'tls':[{'hosts':['A','*.b'],'secretName':'A'}]"),
		  "spec.tls[0].hosts[0]: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.tls[0].secretName: Invalid value: 'A': " SUBDOMAIN_TEXT },
		{ INGRESS_WITH(",'annotations':{'kubernetes.io/ingress.class':'a'}", DEFAULT_BACKEND ",'ingressClassName':'b'"),
		  "annotations.kubernetes.io/ingress.class: Invalid value: 'a': must match `ingressClassName` when"
		  " both are specified" },
	};
	static const struct update_row u[] = {
		{ INGRESS(DEFAULT_BACKEND ",'tls':[{'secretName':'B'}]"), INGRESS(DEFAULT_BACKEND ",'tls':[{'secretName':'A'}]"), "",
		  "" },
		{ INGRESS_WITH(",'annotations':{'kubernetes.io/ingress.class':'a'}", DEFAULT_BACKEND ",'ingressClassName':'b'"), INGRESS(DEFAULT_BACKEND), "",
		  "" },
		{ NETWORKING("Ingress", ",'status':{'loadBalancer':{'ingress':[{'ip':'x'},{'ip':'010.0.0.1'},{'hostname':'10.0.0.1'}]}}"),
		  NETWORKING("Ingress", ",'status':{'loadBalancer':{'ingress':[{'ip':'010.0.0.1'}]}}"), "status",
		  "status.loadBalancer.ingress[0].ip: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7"
		  " or 2001:db8::ffff)\n"
		  "status.loadBalancer.ingress[2].hostname: Invalid value: '10.0.0.1': must be a DNS name, not an IP"
		  " address" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_ingress_class)
{
	static const struct create_row t[] = {
		{ CLASS("'controller':'a.b/c'"), "" },
		{ CLASS("'controller':'a','parameters':{}"),
		  "spec.controller: Invalid value: 'a': must be a domain-prefixed path (such as 'acme.io/foo')\n"
		  "spec.parameters.kind: Required value\n"
		  "spec.parameters.name: Required value" },
		{ CLASS("'controller':'A/b','parameters':{'kind':'a','name':'b','scope':'Namespace'}"),
		  "spec.controller: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'" },
		{ CLASS("'controller':'a.b/','parameters':{'kind':'a','name':'b','scope':'Namespace','namespace':'A'}"),
		  "spec.controller: Invalid value: 'a.b/': must be a domain-prefixed path (such as 'acme.io/foo')\n"
		  "spec.parameters.namespace: Invalid value: 'A': " LABEL_TEXT },
		{ CLASS("'parameters':{'kind':'a','name':'b','scope':'Cluster','namespace':'a'}"),
		  "spec.controller: Required value\n"
		  "spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'" },
		{ CLASS("'controller':'a.b/c','parameters':{'kind':'a','name':'b','scope':'x'}"),
		  "spec.parameters.scope: Unsupported value: 'x': supported values: 'Cluster', 'Namespace'" },
	};
	static const struct update_row u[] = {
		{ CLASS("'controller':'a.b/d'"), CLASS("'controller':'a.b/c'"), "",
		  "spec.controller: Invalid value: 'a.b/d': field is immutable" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_ip_address_and_range)
{
	static const struct create_row t[] = {
		{ ADDRESS("10.0.0.1", PARENT), "" },
		{ ADDRESS("x", ""),
		  "metadata.name: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)\n"
		  "spec.parentRef: Required value" },
		{ ADDRESS("2001:DB8::1", "'parentRef':{'group':'A','resource':'a/b','namespace':'.'}"),
		  "metadata.name: Invalid value: '2001:DB8::1': must be in canonical form ('2001:db8::1')\n"
		  "spec.parentRef.group: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.parentRef.resource: Invalid value: 'a/b': may not contain '/'\n"
		  "spec.parentRef.name: Required value\n"
		  "spec.parentRef.namespace: Invalid value: '.': may not be '.'" },
		{ RANGE("'10.0.0.0/8','fd00::/64'"), "" },
		{ RANGE(""), "spec.cidrs: Required value: at least one CIDR required" },
		{ RANGE("'a','b','c'"),
		  "spec.cidrs: Invalid value: {'CIDRs':['a','b','c']}: may only hold up to 2 values" },
		{ RANGE("'x','10.0.0.1/8'"),
		  "spec.cidrs[0]: Invalid value: 'x': must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)\n"
		  "spec.cidrs[1]: Invalid value: '10.0.0.1/8': must not have bits set beyond the prefix length" },
		{ RANGE("'10.0.0.0/8','11.0.0.0/8'"),
		  "spec.cidrs: Invalid value: ['10.0.0.0/8','11.0.0.0/8']: may specify no more than one IP for each IP"
		  " family, i.e 192.168.0.0/24 and 2001:db8::/64" },
	};
	static const struct update_row u[] = {
		{ ADDRESS("10.0.0.1", "'parentRef':{'resource':'services','name':'b'}"), ADDRESS("10.0.0.1", PARENT), "",
		  "spec.parentRef: Invalid value: {'Group':'','Resource':'services','Namespace':'','Name':'b'}: field"
		  " is immutable" },
		{ RANGE("'10.0.0.0/8','fd00::/64'"), RANGE("'10.0.0.0/8'"), "", "" },
		{ RANGE("'10.0.0.0/8','11.0.0.0/8'"), RANGE("'10.0.0.0/8'"), "",
		  "spec.cidrs: Invalid value: ['10.0.0.0/8','11.0.0.0/8']: may specify no more than one IP for each IP"
		  " family, i.e 192.168.0.0/24 and 2001:db8::/64" },
		{ RANGE("'11.0.0.0/8'"), RANGE("'10.0.0.0/8'"), "",
		  "spec.cidrs[0]: Invalid value: '11.0.0.0/8': field is immutable" },
		{ RANGE("'10.0.0.0/8'"), RANGE("'10.0.0.0/8','fd00::/64'"), "",
		  "spec.cidrs: Invalid value: ['10.0.0.0/8']: field is immutable" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_endpoint_slice)
{
	static const struct create_row t[] = {
		{ SLICE("IPv4", ",'endpoints':[{'addresses':['10.0.0.1'],'hints':{'forZones':[{'name':'a'}],'forNodes':[{'name':'b'}]}}],"
			"'ports':[{'port':80,'name':'a'}]"), "" },
		{ SLICE("x", ",'endpoints':[{}]"),
		  "addressType: Unsupported value: 'x': supported values: 'FQDN', 'IPv4', 'IPv6'\n"
		  "endpoints[0].addresses: Required value: must contain at least 1 address" },
		{ SLICE("", ""), "addressType: Required value" },
		{ SLICE("IPv4", ",'endpoints':[{'addresses':['x','fd00::1','127.0.0.1'],'nodeName':'A','hostname':'A','hints':{'forZones':[{'name':'a b'},"
			"{'name':'c'},{'name':'c'}],'forNodes':[{'name':'A'}]}}]"),
		  "endpoints[0].addresses[0]: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7 or"
		  " 2001:db8::ffff)\n"
		  "endpoints[0].addresses: Invalid value: 'fd00::1': must be an IPv4 address\n"
		  "endpoints[0].addresses[2]: Invalid value: '127.0.0.1': may not be in the loopback range"
		  " (127.0.0.0/8, ::1/128)\n"
		  "endpoints[0].nodeName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "endpoints[0].hostname: Invalid value: 'A': " LABEL_TEXT "\n"
		  "endpoints[0].hints.forZones[0].name: Invalid value: 'a b': " VALUE_TEXT "\n"
		  "endpoints[0].hints.forZones[2].name: Duplicate value: 'c'\n"
		  "endpoints[0].hints.forNodes[0].name: Invalid value: 'A': " SUBDOMAIN_TEXT },
		{ SLICE("IPv6", ",'endpoints':[{'addresses':['10.0.0.1','fe80::1','2001:DB8::1']}]"),
		  "endpoints[0].addresses: Invalid value: '10.0.0.1': must be an IPv6 address\n"
		  "endpoints[0].addresses[1]: Invalid value: 'fe80::1': may not be in the link-local range"
		  " (169.254.0.0/16, fe80::/10)\n"
		  "endpoints[0].addresses[2]: Invalid value: '2001:DB8::1': must be in canonical form ('2001:db8::1')" },
		{ SLICE("FQDN", ",'endpoints':[{'addresses':['a','','a.b']}]"),
		  "endpoints[0].addresses[0]: Invalid value: 'a': should be a domain with at least two segments"
		  " separated by dots\n"
		  "endpoints[0].addresses[1]: Required value" },
		{ SLICE("IPv4", ",'endpoints':[{'addresses':['10.0.0.1'],'hints':{'forZones':[{'name':'1'},{'name':'2'},{'name':'3'},{'name':'4'},{'name':'5'},"
			"{'name':'6'},{'name':'7'},{'name':'8'},{'name':'9'}]}}]"),
		  "endpoints[0].hints.forZones: Too many: 9: must have at most 8 items" },
		{ SLICE("IPv4", ",'ports':[{'name':'A','protocol':'x','appProtocol':'a b'},{},{}]"),
		  "ports[0].name: Invalid value: 'A': " LABEL_TEXT "\n"
		  "ports[0].protocol: Unsupported value: 'x': supported values: 'SCTP', 'TCP', 'UDP'\n"
		  "ports[0].appProtocol: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "ports[2].name: Duplicate value: ''" },
	};
	static const struct update_row u[] = {
		{ SLICE("IPv6", ",'endpoints':[{'addresses':['10.0.0.1']}]"), SLICE("IPv4", ",'endpoints':[{'addresses':['10.0.0.1']}]"), "",
		  "addressType: Invalid value: 'IPv6': field is immutable" },
		{ SLICE("IPv4", ",'endpoints':[{'addresses':['x']}]"), SLICE("IPv4", ",'endpoints':[{'addresses':['10.0.0.1']}]"), "",
		  "endpoints[0].addresses[0]: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7 or"
		  " 2001:db8::ffff)" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}
