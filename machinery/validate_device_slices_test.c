/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define SLICE_WITH(version, spec) \
	"{'apiVersion':'resource.k8s.io/" version "','kind':'ResourceSlice','metadata':{'name':'x','resourceVersion':'1'},'spec':{" spec "}}"
#define POOL "'driver':'d','pool':{'name':'p','resourceSliceCount':1}"
#define SLICE(spec) SLICE_WITH("v1", POOL "," spec)
#define DEVICES(devices) SLICE("'allNodes':true,'devices':[" devices "]")
#define ATTRIBUTES(attributes) DEVICES("{'name':'a','attributes':{" attributes "}}")
#define CAPACITY(capacity) DEVICES("{'name':'a','allowMultipleAllocations':true,'capacity':{'c':{'value':'10'" capacity "}}}")

TEST(validate_resource_slice)
{
	static const struct create_row t[] = {
		{ DEVICES("{'name':'a','attributes':{'b':{'int':1},'c.d/e':{'version':'1.2.3'}},'capacity':{'f':{'value':'1'}}}"),
		  "" },
		{ SLICE_WITH("v1", ""),
		  "spec.driver: Required value\n"
		  "spec.pool.name: Required value\n"
		  "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero\n"
		  "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`,"
		  " `perDeviceNodeSelection` is required" },
		{ SLICE_WITH("v1", "'driver':'A_','pool':{'name':'a//B','resourceSliceCount':-1,'generation':-1},'allNodes':false,'nodeName':''"),
		  "spec.driver: Invalid value: 'A_': " SUBDOMAIN_TEXT "\n"
		  "spec.pool.name: Invalid value: '': " SUBDOMAIN_TEXT "\n"
		  "spec.pool.name: Invalid value: 'B': " SUBDOMAIN_TEXT "\n"
		  "spec.pool.resourceSliceCount: Invalid value: -1: must be greater than zero\n"
		  "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero\n"
		  "spec.nodeName: Invalid value: '': must be either unset or set to a non-empty string\n"
		  "spec.allNodes: Invalid value: false: must be either unset or set to true\n"
		  "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`,"
		  " `perDeviceNodeSelection` is required" },
		{ SLICE("'allNodes':true,'nodeName':'a'"),
		  "spec: Invalid value: '{`nodeName`, `allNodes`}': exactly one of `nodeName`, `nodeSelector`,"
		  " `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set" },
		{ SLICE("'nodeSelector':{'nodeSelectorTerms':[{},{}]}"),
		  "spec.nodeSelector.nodeSelectorTerms: Invalid value:"
		  " [{'MatchExpressions':null,'MatchFields':null},{'MatchExpressions':null,'MatchFields':null}]: must"
		  " have exactly one node selector term" },
		{ SLICE("'allNodes':true,'devices':[],'sharedCounters':[]"), "" },
		{ DEVICES("{'name':'A'},{'name':'a'},{'name':'a'}"),
		  "spec.devices[0].name: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.devices[2]: Duplicate value: 'a'" },
		{ DEVICES("{'name':'a','nodeName':'b'}"),
		  "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if"
		  " `perDeviceNodeSelection` is set to true in the ResourceSlice spec" },
		{ SLICE("'perDeviceNodeSelection':true,'devices':[{'name':'a'},{'name':'b','nodeName':'c','allNodes':true},{'name':'c','nodeName':'B'}]"),
		  "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is"
		  " required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec\n"
		  "spec.devices[1]: Invalid value: '{`nodeName`, `allNodes`}': exactly one of `nodeName`,"
		  " `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the"
		  " ResourceSlice spec\n"
		  "spec.devices[2].nodeName: Invalid value: 'B': " SUBDOMAIN_TEXT },
		{ DEVICES("{'name':'a','taints':[{'key':'a b','effect':'x'},{'key':'b','value':'?'}],'bindingConditions':['a']}"),
		  "spec.devices[0].taints[0].key: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.devices[0].taints[0].effect: Unsupported value: 'x': supported values: 'NoExecute',"
		  " 'NoSchedule', 'None'\n"
		  "spec.devices[0].taints[1].value: Invalid value: '?': " VALUE_TEXT "\n"
		  "spec.devices[0].taints[1].effect: Required value\n"
		  "spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are"
		  " required to use bindingConditions" },
		{ SLICE_WITH("v1beta1", POOL ",'allNodes':true,'devices':[{'name':'a','basic':{'attributes':{'b':{}}}}]"),
		  "spec.devices[0].attributes[b]: Invalid value: '': exactly one value must be specified" },
	};
	static const struct update_row u[] = {
		{ SLICE("'nodeName':'b'"), SLICE("'nodeName':'a'"), "",
		  "spec.nodeName: Invalid value: 'b': field is immutable" },
		{ SLICE_WITH("v1", "'driver':'e','pool':{'name':'q','resourceSliceCount':1},'allNodes':true"), SLICE("'allNodes':true"), "",
		  "spec.pool.name: Invalid value: 'q': field is immutable\n"
		  "spec.driver: Invalid value: 'e': field is immutable" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_device_attributes)
{
	static const struct create_row t[] = {
		{ ATTRIBUTES("'a':{'bool':true},'b':{'string':'x'}"), "" },
		{ ATTRIBUTES("'a':{},'b':{'bool':true,'int':1},'1':{'int':1},'/x':{'int':1},'d/':{'int':1},'e':{'version':'1.2'}"),
		  "spec.devices[0].attributes: Invalid value: '': the domain must not be empty\n"
		  "spec.devices[0].attributes: Invalid value: '1': a valid C identifier must start with alphabetic"
		  " character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or"
		  " 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')\n"
		  "spec.devices[0].attributes[a]: Invalid value: '': exactly one value must be specified\n"
		  "spec.devices[0].attributes[b]: Invalid value:"
		  " {'IntValue':1,'BoolValue':true,'StringValue':null,'VersionValue':null,'IntValues':null,"
		  "'BoolValues':null,'StringValues':null,'VersionValues':null}: exactly one value must be specified\n"
		  "spec.devices[0].attributes: Invalid value: '': the name must not be empty\n"
		  "spec.devices[0].attributes[e].version: Invalid value: '1.2': must be a string compatible with"
		  " semver.org spec 2.0.0" },
		{ ATTRIBUTES("'a':{'string':'0123456789012345678901234567890123456789012345678901234567890123456789'}"),
		  "spec.devices[0].attributes[a].string: Too long: may not be more than 64 bytes" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_device_capacity)
{
	static const struct create_row t[] = {
		{ CAPACITY(",'requestPolicy':{'default':'2','validValues':['1','2']}"), "" },
		{ CAPACITY(",'requestPolicy':{'default':'2','validRange':{'min':'2','max':'8','step':'2'}}"), "" },
		{ DEVICES("{'name':'a','capacity':{'c':{'value':'10','requestPolicy':{'default':'1'}}}}"),
		  "spec.devices[0].capacity[c].requestPolicy: Forbidden: allowMultipleAllocations must be true" },
		{ CAPACITY(",'requestPolicy':{'default':'3','validValues':['2','1','1','20']}"),
		  "spec.devices[0].capacity[c].requestPolicy.validValues[1]: Invalid value: '1': values must be sorted"
		  " in ascending order\n"
		  "spec.devices[0].capacity[c].requestPolicy.validValues[3]: Invalid value: '20': option is larger"
		  " than capacity value: 10\n"
		  "spec.devices[0].capacity[c].requestPolicy.validValues[2]: Duplicate value: '1'\n"
		  "spec.devices[0].capacity[c].requestPolicy.validValues: Invalid value: '3': default value is not"
		  " valid according to the requestPolicy" },
		{ CAPACITY(",'requestPolicy':{'validValues':['1']}"),
		  "spec.devices[0].capacity[c].requestPolicy.default: Required value: required when validValues is"
		  " defined" },
		{ CAPACITY(",'requestPolicy':{'default':'1','validValues':['1'],'validRange':{'min':'1'}}"),
		  "spec.devices[0].capacity[c].requestPolicy: Forbidden: exactly one policy can be specified, cannot"
		  " specify 'validValues' and 'validRange' at the same time" },
		{ CAPACITY(",'requestPolicy':{'default':'1','validRange':{'min':'11','max':'2'}}"),
		  "spec.devices[0].capacity[c].requestPolicy.validRange.min: Invalid value: '11': min is larger than"
		  " capacity value: 10\n"
		  "spec.devices[0].capacity[c].requestPolicy.validRange.min: Invalid value: '1': default is less than"
		  " min: 11\n"
		  "spec.devices[0].capacity[c].requestPolicy.validRange.max: Invalid value: '11': min is larger than"
		  " max: 2" },
		{ CAPACITY(",'requestPolicy':{'default':'20','validRange':{'min':'1','max':'12','step':'15'}}"),
		  "spec.devices[0].capacity[c].requestPolicy.validRange.max: Invalid value: '12': max is larger than"
		  " capacity value: 10\n"
		  "spec.devices[0].capacity[c].requestPolicy.validRange.max: Invalid value: '20': default is more than"
		  " max: 12\n"
		  "spec.devices[0].capacity[c].requestPolicy.validRange.step: Invalid value: '15': one step 16 is"
		  " larger than capacity value: 10\n"
		  "spec.devices[0].capacity[c].requestPolicy.validRange.step: Invalid value: '20': value is not a"
		  " multiple of a given step (15) from (1)\n"
		  "spec.devices[0].capacity[c].requestPolicy.validRange.step: Invalid value: '12': value is not a"
		  " multiple of a given step (15) from (1)" },
		{ CAPACITY(",'requestPolicy':{'default':'3','validRange':{'min':'1','max':'8','step':'3'}}"),
		  "spec.devices[0].capacity[c].requestPolicy.validRange.step: Invalid value: '3': value is not a"
		  " multiple of a given step (3) from (1)\n"
		  "spec.devices[0].capacity[c].requestPolicy.validRange.step: Invalid value: '8': value is not a"
		  " multiple of a given step (3) from (1)" },
		{ CAPACITY(",'requestPolicy':{'default':'3','validRange':{}}"),
		  "spec.devices[0].capacity[c].requestPolicy.validRange.min: Required value: required when validRange"
		  " is defined" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_device_counters)
{
	static const struct create_row t[] = {
		{ SLICE("'allNodes':true,'sharedCounters':[{'name':'a','counters':{'b':{'value':'1'}}}]"), "" },
		{ SLICE("'allNodes':true,'sharedCounters':[{'name':'A'},{'name':'b','counters':{'C':{'value':'1'}}},{'name':'b','counters':{'c':{'value':'1'}}}]"),
		  "spec.sharedCounters[0].name: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.sharedCounters[0].counters: Required value\n"
		  "spec.sharedCounters[1].counters: Invalid value: 'C': " LABEL_TEXT "\n"
		  "spec.sharedCounters[2]: Duplicate value: 'b'" },
		{ DEVICES("{'name':'a','consumesCounters':[{'counterSet':'A','counters':{}},{'counterSet':'b','counters':{'c':{'value':'1'}}},"
			  "{'counterSet':'b','counters':{'c':{'value':'1'}}}]}"),
		  "spec.devices[0].consumesCounters: Too many: 3: must have at most 2 items" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}
