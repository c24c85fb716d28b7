/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define HPA_WITH(version, members) \
	"{'apiVersion':'autoscaling/" version "','kind':'HorizontalPodAutoscaler','metadata':{'name':'x','namespace':'n','resourceVersion':'1'}," \
	members "}"
#define TARGET "'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'d'}"
#define HPA(spec) HPA_WITH("v2", "'spec':{" TARGET ",'maxReplicas':5" spec "}")
#define METRIC(metric) HPA(",'metrics':[{" metric "}]")
#define BEHAVIOR(rules) HPA(",'behavior':{'scaleUp':{" rules "}}")

TEST(validate_autoscaler)
{
	static const struct create_row t[] = {
		{ HPA(""), "" },
		{ HPA_WITH("v2", "'spec':{}"),
		  "spec.maxReplicas: Required value: must be set and greater than 0\n"
		  "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`\n"
		  "spec.scaleTargetRef.kind: Required value\n"
		  "spec.scaleTargetRef.name: Required value\n"
		  "spec.scaleTargetRef.apiVersion: Invalid value: '': apiVersion must specify API group" },
		{ HPA_WITH("v2", "'spec':{'scaleTargetRef':{'kind':'a/b','name':'..'},'minReplicas':-1,'maxReplicas':-2}"),
		  "spec.minReplicas: Invalid value: -1: must be greater than or equal to 1\n"
		  "spec.maxReplicas: Invalid value: -2: must be greater than or equal to 1\n"
		  "spec.maxReplicas: Invalid value: -2: must be greater than or equal to `minReplicas`\n"
		  "spec.scaleTargetRef.kind: Invalid value: 'a/b': may not contain '/'\n"
		  "spec.scaleTargetRef.name: Invalid value: '..': may not be '..'\n"
		  "spec.scaleTargetRef.apiVersion: Invalid value: '': apiVersion must specify API group" },
		{ HPA(",'minReplicas':6"),
		  "spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`" },
		{ HPA(",'minReplicas':0"),
		  "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1\n"
		  "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to"
		  " zero replicas" },
		{ HPA(",'minReplicas':0,'metrics':[{'type':'External','external':{'metric':{'name':'a'},'target':{'type':'Value','value':'1'}}}]"),
		  "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1" },
		{ METRIC("'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization','averageUtilization':50}}"),
		  "" },
		{ METRIC("'type':'Resource','resource':{'name':'','target':{'type':'x','value':'0','averageValue':'-1','averageUtilization':0}}"),
		  "spec.metrics[0].resource.name: Required value: must specify a resource name\n"
		  "spec.metrics[0].resource.target.type: Invalid value: 'x': must be either Utilization, Value, or"
		  " AverageValue\n"
		  "spec.metrics[0].resource.target.value: Invalid value: '0': must be positive\n"
		  "spec.metrics[0].resource.target.averageValue: Invalid value: '-1': must be positive\n"
		  "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0\n"
		  "spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a"
		  " target utilization" },
		{ METRIC("'type':'Resource','resource':{'name':'cpu','target':{'type':'AverageValue','averageValue':'1','averageUtilization':50}}"),
		  "spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a"
		  " target utilization" },
		{ METRIC("'type':'ContainerResource','containerResource':{'name':'foo','target':{'type':'Utilization'}}"),
		  "spec.metrics[0].containerResource.name: Invalid value: 'foo': must be a standard resource type or"
		  " fully qualified\n"
		  "spec.metrics[0].containerResource.name: Invalid value: 'foo': must be a standard resource for"
		  " containers\n"
		  "spec.metrics[0].containerResource.container: Required value: must specify a container\n"
		  "spec.metrics[0].containerResource.target.averageUtilization: Required value: must set either a"
		  " target raw value or a target utilization" },
		{ METRIC("'type':'Pods','pods':{'metric':{'name':'a/b'},'target':{'type':'AverageValue'}}"),
		  "spec.metrics[0].pods.metric.name: Invalid value: 'a/b': may not contain '/'\n"
		  "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target"
		  " averageValue" },
		{ METRIC("'type':'Object','object':{'describedObject':{'kind':'','name':'a'},'metric':{'name':''},'target':{}}"),
		  "spec.metrics[0].object.describedObject.kind: Required value\n"
		  "spec.metrics[0].object.metric.name: Required value: must specify a metric name\n"
		  "spec.metrics[0].object.target.type: Required value: must specify a metric target type\n"
		  "spec.metrics[0].object.target.type: Invalid value: '': must be either Utilization, Value, or"
		  " AverageValue\n"
		  "spec.metrics[0].object.target.averageValue: Required value: must set either a target value or"
		  " averageValue" },
		{ METRIC("'type':'External','external':{'metric':{'name':'a','selector':{'matchLabels':{'a b':'c'}}},"
			 "'target':{'type':'Value','value':'1','averageValue':'1'}}"),
		  "spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric and a"
		  " per-pod target" },
		{ METRIC("'type':'External','external':{'metric':{'name':'a'},'target':{'type':'Value'}}"),
		  "spec.metrics[0].external.target.averageValue: Required value: must set either a target value for"
		  " metric or a per-pod target" },
		{ METRIC("'type':'Pods'"),
		  "spec.metrics[0].pods: Required value: must populate information for the given metric source" },
		{ METRIC("'type':'x'"),
		  "spec.metrics[0].type: Unsupported value: 'x': supported values: 'ContainerResource', 'External',"
		  " 'Object', 'Pods', 'Resource'\n"
		  "spec.metrics[0].type: Unsupported value: 'x': supported values: 'ContainerResource', 'External',"
		  " 'Object', 'Pods', 'Resource'" },
		{ METRIC("'resource':{'name':'cpu','target':{'type':'Utilization','averageUtilization':50}},"
			 "'pods':{'metric':{'name':'a'},'target':{'type':'AverageValue','averageValue':'1'}},'type':'Resource'"),
		  "spec.metrics[0].pods: Forbidden: must populate the given metric source only" },
		{ BEHAVIOR("'stabilizationWindowSeconds':3601,'selectPolicy':'x','policies':[{'type':'x','value':0,'periodSeconds':0},"
			   "{'type':'Pods','value':1,'periodSeconds':1801}]"),
		  "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal"
		  " to 3600\n"
		  "spec.behavior.scaleUp.selectPolicy: Unsupported value: 'x': supported values: 'Disabled', 'Max',"
		  " 'Min'\n"
		  "spec.behavior.scaleUp.policies[0].type: Unsupported value: 'x': supported values: 'Percent', 'Pods'\n"
		  "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero\n"
		  "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 0: must be greater than zero\n"
		  "spec.behavior.scaleUp.policies[1].periodSeconds: Invalid value: 1801: must be less than or equal to"
		  " 1800" },
		{ BEHAVIOR("'stabilizationWindowSeconds':-1,'tolerance':'-1'"),
		  "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal"
		  " to zero\n"
		  "spec.behavior.scaleUp.tolerance: Invalid value: '-1': must be greater than or equal to 0" },
		{ HPA_WITH("v1", "'spec':{" TARGET ",'maxReplicas':5,'targetCPUUtilizationPercentage':0}"),
		  "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0" },
	};
	static const struct update_row u[] = {
		{ HPA(",'minReplicas':2"), HPA(""), "", "" },
		{ HPA(",'minReplicas':6"), HPA(""), "",
		  "spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`" },
		{ HPA_WITH("v2", "'spec':{" TARGET ",'maxReplicas':5},'status':{'currentReplicas':-1,'desiredReplicas':-1}"), HPA(""), "status",
		  "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0\n"
		  "status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}
