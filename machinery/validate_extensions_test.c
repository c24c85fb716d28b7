/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define SERVICE_NAMED(name, spec, status) \
	"{'apiVersion':'apiregistration.k8s.io/v1','kind':'APIService','metadata':{'name':'" name "','resourceVersion':'1'},'spec':{" spec "}," \
	"'status':{" status "}}"
#define SERVICE(spec) SERVICE_NAMED("v1.a.b", "'group':'a.b','version':'v1','groupPriorityMinimum':1,'versionPriority':1" spec, "")
#define WITH_CONDITION(condition) \
	SERVICE_NAMED("v1.a.b", "'group':'a.b','version':'v1','groupPriorityMinimum':1,'versionPriority':1", "'conditions':[" condition "]")
#define MIGRATION(spec, status) \
	"{'apiVersion':'storagemigration.k8s.io/v1beta1','kind':'StorageVersionMigration','metadata':{'name':'x','resourceVersion':'1'}," \
	"'spec':{" spec "},'status':{" status "}}"
#define PODS "'resource':{'resource':'pods'}"
#define CONDITION(type, status) "{'type':'" type "','status':'" status "','lastTransitionTime':'2024-01-01T00:00:00Z','reason':'a','message':'b'}"

TEST(validate_api_service)
{
	static const struct create_row t[] = {
		{ SERVICE(""), "" },
		{ SERVICE(",'service':{'name':'a','namespace':'b'},'insecureSkipTLSVerify':true"), "" },
		{ SERVICE_NAMED("x", "", ""),
		  "metadata.name: Invalid value: 'x': must be `spec.version+'.'+spec.group`: '.'\n"
		  "spec.group: Required value: only v1 may have an empty group and it better be legacy kube\n"
		  "spec.version: Invalid value: '': " OLD_LABEL_TEXT "\n"
		  "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000\n"
		  "spec.versionPriority: Invalid value: 0: must be positive and less than 1000" },
		{ SERVICE_NAMED("v1.A_", "'group':'A_','version':'v1','groupPriorityMinimum':20001,'versionPriority':1001", ""),
		  "spec.group: Invalid value: 'A_': " SUBDOMAIN_TEXT "\n"
		  "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000\n"
		  "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000" },
		{ SERVICE_NAMED("a/b", "'group':'a','version':'V','groupPriorityMinimum':1,'versionPriority':1", ""),
		  "metadata.name: Invalid value: 'a/b': may not contain '/'\n"
		  "spec.version: Invalid value: 'V': " OLD_LABEL_TEXT },
		{ SERVICE(",'caBundle':'AAEC','insecureSkipTLSVerify':true"),
		  "spec.caBundle: Invalid value: '3 bytes': local APIServices may not have a caBundle\n"
		  "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have"
		  " insecureSkipTLSVerify" },
		{ SERVICE(",'service':{'port':-1},'caBundle':'AAEC','insecureSkipTLSVerify':true"),
		  "spec.service.namespace: Required value\n"
		  "spec.service.name: Required value\n"
		  "spec.service.port: Invalid value: -1: port is not valid: must be between 1 and 65535, inclusive\n"
		  "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present" },
	};
	static const struct update_row u[] = {
		{ SERVICE(",'service':{}"), SERVICE(""), "",
		  "spec.service.namespace: Required value\n"
		  "spec.service.name: Required value" },
		{ WITH_CONDITION("{'type':'a','status':'x'}"), SERVICE(""), "status",
		  "status.conditions[0].status: Unsupported value: 'x': supported values: 'True', 'False', 'Unknown'" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

#define GROUP(status) \
	"{'apiVersion':'scheduling.k8s.io/v1alpha2','kind':'PodGroup','metadata':{'name':'x','namespace':'n','resourceVersion':'1'}," \
	"'spec':{'schedulingPolicy':{'basic':{}},'resourceClaims':[{'name':'a','resourceClaimName':'b'}]},'status':{" status "}}"

TEST(validate_pod_group_status)
{
	static const struct update_row t[] = {
		{ GROUP("'resourceClaimStatuses':[{'name':'a'}]"), GROUP(""), "status", "" },
		{ GROUP("'resourceClaimStatuses':[{'name':'b'}],'conditions':[{'type':'a b'}]"), GROUP(""), "status",
		  "status.conditions[0].type: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "status.conditions[0].status: Unsupported value: '': supported values: 'False', 'True', 'Unknown'\n"
		  "status.conditions[0].lastTransitionTime: Required value\n"
		  "status.conditions[0].reason: Required value" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}

TEST(validate_storage_version_migration)
{
	static const struct create_row t[] = {
		{ MIGRATION(PODS, ""), "" },
		{ MIGRATION("", ""), "spec.resource.resource: Required value: resource is required to be set" },
		{ MIGRATION("'resource':{'resource':'A','group':'A'}", ""),
		  "spec.resource.resource: Invalid value: 'A': " OLD_LABEL_TEXT "\n"
		  "spec.resource.group: Invalid value: 'A': " SUBDOMAIN_TEXT },
	};
	static const struct update_row u[] = {
		{ MIGRATION("'resource':{'resource':'b'}", ""), MIGRATION(PODS, ""), "",
		  "spec: Invalid value: {'Resource':{'group':'','resource':'b'}}: field is immutable" },
		{ MIGRATION(PODS, "'resourceVersion':'10'"), MIGRATION(PODS, ""), "status", "" },
		{ MIGRATION(PODS, "'resourceVersion':'x','conditions':[" CONDITION("Succeeded", "True") "," CONDITION("Failed", "True") "]"),
		  MIGRATION(PODS, "'resourceVersion':'10'"), "status",
		  "status.resourceVersion: Invalid value: 'x': resource version is not well formed: x\n"
		  "status.resourceVersion: Invalid value: 'x': field is immutable\n"
		  "status.conditions: Invalid value:"
		  " [{'type':'Succeeded','status':'True','lastTransitionTime':'2024-01-01T00:00:00Z','reason':'a',"
		  "'message':'b'},{'type':'Failed','status':'True','lastTransitionTime':'2024-01-01T00:00:00Z',"
		  "'reason':'a','message':'b'}]: Both success and failed conditions cannot be true at the same time" },
		{ MIGRATION(PODS, "'conditions':[" CONDITION("Succeeded", "False") "]"), MIGRATION(PODS, "'conditions':[" CONDITION("Succeeded", "True") "]"),
		  "status",
		  "status.conditions: Invalid value:"
		  " [{'type':'Succeeded','status':'False','lastTransitionTime':'2024-01-01T00:00:00Z','reason':'a',"
		  "'message':'b'}]: Success condition cannot be set to false once it is true" },
		{ MIGRATION(PODS, ""), MIGRATION(PODS, "'conditions':[" CONDITION("Failed", "True") "]"), "status",
		  "status.conditions: Invalid value: null: Failed condition cannot be set to false once it is true" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}
