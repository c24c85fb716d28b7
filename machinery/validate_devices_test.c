/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define CLAIM_WITH(devices, status) \
	"{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaim','metadata':{'name':'x','namespace':'n','resourceVersion':'1'}," \
	"'spec':{'devices':{" devices "}},'status':{" status "}}"
#define CLAIM(devices) CLAIM_WITH(devices, "")
#define ONE "'requests':[{'name':'r','exactly':{'deviceClassName':'c'}}]"
#define EXACT(members) CLAIM("'requests':[{'name':'r','exactly':{'deviceClassName':'c'" members "}}]")
#define STATUS(status) CLAIM_WITH(ONE, status)
#define ALLOCATED "'allocation':{'devices':{'results':[{'request':'r','driver':'d','pool':'p','device':'v'}]}}"
#define DEVICE "'driver':'d','pool':'p','device':'v'"
#define TEMPLATE(spec) \
	"{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaimTemplate','metadata':{'name':'x','namespace':'n','resourceVersion':'1'}," \
	"'spec':{" spec "}}"
#define CLASS(spec) "{'apiVersion':'resource.k8s.io/v1','kind':'DeviceClass','metadata':{'name':'x','resourceVersion':'1'},'spec':{" spec "}}"
#define TAINT_RULE(spec) \
	"{'apiVersion':'resource.k8s.io/v1beta2','kind':'DeviceTaintRule','metadata':{'name':'x','resourceVersion':'1'},'spec':{" spec "}}"

TEST(validate_resource_claim)
{
	static const struct create_row t[] = {
		{ CLAIM(ONE ",'constraints':[{'requests':['r'],'matchAttribute':'a.b/c'}],'config':[{'opaque':{'driver':'d','parameters':{'a':1}}}]"),
		  "" },
		{ CLAIM("'requests':[{'name':'r','firstAvailable':[{'name':'s','deviceClassName':'c'}]}],'constraints':[{'requests':['r/s'],"
			"'matchAttribute':'a.b/c'}]"), "" },
		{ CLAIM("'requests':[{},{'name':'A','exactly':{}},{'name':'a','exactly':{'deviceClassName':'c'},'firstAvailable':[{}]},"
			"{'name':'a','firstAvailable':[{'name':'b','deviceClassName':'c'},{'name':'b','deviceClassName':'C'}]}]"),
		  "spec.devices.requests[0].name: Invalid value: '': " LABEL_TEXT "\n"
		  "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required\n"
		  "spec.devices.requests[1].name: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.devices.requests[1].exactly.deviceClassName: Required value\n"
		  "spec.devices.requests[2]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is"
		  " required, but multiple fields are set\n"
		  "spec.devices.requests[3].firstAvailable[1].deviceClassName: Invalid value: 'C': " SUBDOMAIN_TEXT "\n"
		  "spec.devices.requests[3].firstAvailable[1]: Duplicate value: 'b'\n"
		  "spec.devices.requests[3]: Duplicate value: 'a'" },
		{ EXACT(",'allocationMode':'All','count':1"),
		  "spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode"
		  " is 'All'" },
		{ EXACT(",'allocationMode':'x'"),
		  "spec.devices.requests[0].exactly.allocationMode: Unsupported value: 'x': supported values: 'All',"
		  " 'ExactCount'" },
		{ EXACT(",'count':-1,'selectors':[{}]"),
		  "spec.devices.requests[0].exactly.selectors[0].cel: Required value\n"
		  "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero" },
		{ EXACT(",'tolerations':[{'key':'a b','operator':'Exists','value':'x','effect':'y'},{'operator':'Equal','value':'?'},{'operator':'x'}]"),
		  "spec.devices.requests[0].exactly.tolerations[0].key: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: 'x': must be empty for"
		  " operator `Exists`\n"
		  "spec.devices.requests[0].exactly.tolerations[0].effect: Unsupported value: 'y': supported values:"
		  " 'NoExecute', 'NoSchedule', 'None'\n"
		  "spec.devices.requests[0].exactly.tolerations[1].value: Invalid value: '?': " VALUE_TEXT "\n"
		  "spec.devices.requests[0].exactly.tolerations[2].operator: Unsupported value: 'x': supported values:"
		  " 'Equal', 'Exists'" },
		{ CLAIM(ONE ",'constraints':[{'requests':['x','r','r','a/b/c','r/s']},{'matchAttribute':'a'},{'matchAttribute':'/'},{'matchAttribute':'A/1'}]"),
		  "spec.devices.constraints[0].requests[0]: Invalid value: 'x': must be the name of a request in the"
		  " claim or the name of a request and a subrequest separated by '/'\n"
		  "spec.devices.constraints[0].requests[3]: Invalid value: 'a/b/c': must be the name of a request in"
		  " the claim or the name of a request and a subrequest separated by '/'\n"
		  "spec.devices.constraints[0].requests[4]: Invalid value: 'r/s': must be the name of a request in the"
		  " claim or the name of a request and a subrequest separated by '/'\n"
		  "spec.devices.constraints[0].requests[2]: Duplicate value: 'r'\n"
		  "spec.devices.constraints[0]: Required value: exactly one of 'matchAttribute' or 'distinctAttribute'"
		  " is required, but multiple fields are set\n"
		  "spec.devices.constraints[1].matchAttribute: Invalid value: 'a': a fully qualified name must be a"
		  " domain and a name separated by a slash\n"
		  "spec.devices.constraints[2].matchAttribute: Invalid value: '': the domain must not be empty\n"
		  "spec.devices.constraints[2].matchAttribute: Invalid value: '': the name must not be empty\n"
		  "spec.devices.constraints[3].matchAttribute: Invalid value: '1': a valid C identifier must start"
		  " with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g."
		  " 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')" },
		{ CLAIM(ONE ",'config':[{},{'requests':['x'],'opaque':{}},{'opaque':{'driver':'D_','parameters':[]}}]"),
		  "spec.devices.config[0].opaque: Required value\n"
		  "spec.devices.config[1].requests[0]: Invalid value: 'x': must be the name of a request in the claim"
		  " or the name of a request and a subrequest separated by '/'\n"
		  "spec.devices.config[1].opaque.driver: Required value\n"
		  "spec.devices.config[1].opaque.parameters: Required value\n"
		  "spec.devices.config[2].opaque.driver: Invalid value: 'D_': " SUBDOMAIN_TEXT "\n"
		  "spec.devices.config[2].opaque.parameters: Invalid value: '<value omitted>': must be a valid JSON"
		  " object" },
		{ "{'apiVersion':'resource.k8s.io/v1beta1','kind':'ResourceClaim','metadata':{'name':'x','namespace':'n'},"
		  "'spec':{'devices':{'requests':[{'name':'r','deviceClassName':'C'}]}}}",
		  "spec.devices.requests[0].exactly.deviceClassName: Invalid value: 'C': " SUBDOMAIN_TEXT },
	};
	static const struct update_row u[] = {
		{ CLAIM("'requests':[{'name':'s','exactly':{'deviceClassName':'c'}}]"), CLAIM(ONE), "",
		  "spec: Invalid value:"
		  " {'Devices':{'Requests':[{'Name':'s','Exactly':{'DeviceClassName':'c','Selectors':null,"
		  "'AllocationMode':'ExactCount','Count':1,'AdminAccess':null,'Tolerations':null,'Capacity':null},"
		  "'FirstAvailable':null}],'Constraints':null,'Config':null}}: field is immutable" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_resource_claim_status)
{
	static const struct update_row t[] = {
		{ STATUS(ALLOCATED ",'reservedFor':[{'resource':'pods','name':'p','uid':'1'}]"), STATUS(""), "status",
		  "" },
		{ STATUS("'reservedFor':[{'resource':'pods','name':'p','uid':'1'}]"), STATUS(""), "status",
		  "status.reservedFor: Forbidden: may not be specified when `allocated` is not set" },
		{ STATUS(ALLOCATED ",'reservedFor':[{},{'resource':'pods','name':'p','uid':'1'},{'resource':'pods','name':'q','uid':'1'}]"), STATUS(""), "status",
		  "status.reservedFor[0].resource: Required value\n"
		  "status.reservedFor[0].name: Required value\n"
		  "status.reservedFor[0].uid: Required value\n"
		  "status.reservedFor[2]: Duplicate value: '1'" },
		{ STATUS("'allocation':{'devices':{'results':[{'request':'x','driver':'A_','pool':'a//b','device':'C','shareID':'x','bindingConditions':['a','a']},"
			 "{'request':'r','driver':'d','pool':'p','device':'v','bindingConditions':['a b'],'bindingFailureConditions':['a b','c','c']}],"
			 "'config':[{'source':'x'}]},'nodeSelector':{}}"), STATUS(""), "status",
		  "status.allocation.devices.results[0].request: Invalid value: 'x': must be the name of a request in"
		  " the claim or the name of a request and a subrequest separated by '/'\n"
		  "status.allocation.devices.results[0].driver: Invalid value: 'A_': " SUBDOMAIN_TEXT "\n"
		  "status.allocation.devices.results[0].pool: Invalid value: '': " SUBDOMAIN_TEXT "\n"
		  "status.allocation.devices.results[0].device: Invalid value: 'C': " LABEL_TEXT "\n"
		  "status.allocation.devices.results[0].bindingConditions[1]: Duplicate value: 'a'\n"
		  "status.allocation.devices.results[0].bindingFailureConditions: Invalid value: null:"
		  " bindingFailureConditions are required to use bindingConditions\n"
		  "status.allocation.devices.results[0].shareID: Invalid value: 'x': error validating uid: invalid"
		  " UUID length: 1\n"
		  "status.allocation.devices.results[1].bindingConditions[0]: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "status.allocation.devices.results[1].bindingFailureConditions[0]: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "status.allocation.devices.results[1].bindingFailureConditions[0]: Invalid value: 'a b':"
		  " bindingFailureConditions must not overlap with bindingConditions\n"
		  "status.allocation.devices.results[1].bindingFailureConditions[2]: Duplicate value: 'c'\n"
		  "status.allocation.devices.config[0].source: Unsupported value: 'x': supported values: 'FromClaim',"
		  " 'FromClass'\n"
		  "status.allocation.devices.config[0].opaque: Required value\n"
		  "status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node"
		  " selector term" },
		{ STATUS("'allocation':{'devices':{'results':[{'request':'r','driver':'e','pool':'p','device':'v'}]}}"), STATUS(ALLOCATED), "status",
		  "status.allocation: Invalid value:"
		  " {'Devices':{'Results':[{'Request':'r','Driver':'e','Pool':'p','Device':'v','AdminAccess':null,"
		  "'Tolerations':null,'BindingConditions':null,'BindingFailureConditions':null,'ShareID':null,"
		  "'ConsumedCapacity':null}],'Config':null},'NodeSelector':null,'AllocationTimestamp':null}: field is"
		  " immutable" },
		{ STATUS(ALLOCATED ",'devices':[{" DEVICE ",'data':{'a':1},'networkData':{'ips':['10.0.0.1/24']}}]"), STATUS(ALLOCATED), "status",
		  "" },
		{ STATUS(ALLOCATED ",'devices':[{" DEVICE ",'data':'x','networkData':{'ips':['10.0.0.1','x','010.0.0.1/8']}},{" DEVICE "},"
			 "{'driver':'e','pool':'p','device':'v','shareID':'AAAAAAAA-0000-0000-0000-000000000000'}]"), STATUS(ALLOCATED), "status",
		  "status.devices[0].data: Invalid value: '<value omitted>': must be a valid JSON object\n"
		  "status.devices[0].networkData.ips[0]: Invalid value: '10.0.0.1': must be a valid address in CIDR"
		  " form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)\n"
		  "status.devices[0].networkData.ips[1]: Invalid value: 'x': must be a valid address in CIDR form,"
		  " (e.g. 10.9.8.7/24 or 2001:db8::1/64)\n"
		  "status.devices[0].networkData.ips[2]: Invalid value: '010.0.0.1/8': must be in canonical form"
		  " ('10.0.0.1/8')\n"
		  "status.devices[2].shareID: Invalid value: 'AAAAAAAA-0000-0000-0000-000000000000': uid must be in"
		  " RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal"
		  " characters\n"
		  "status.devices[2]: Invalid value: {'Driver':{},'Pool':{},'Device':{},'ShareID':{}}: must be an"
		  " allocated device in the claim\n"
		  "status.devices[1]: Duplicate value: {'Driver':{},'Pool':{},'Device':{},'ShareID':{}}" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}

TEST(validate_claim_template)
{
	static const struct create_row t[] = {
		{ TEMPLATE("'metadata':{'labels':{'a':'b'}},'spec':{'devices':{" ONE "}}"), "" },
		{ TEMPLATE("'metadata':{'name':'a','labels':{'a b':'c'},'annotations':{'a b':'c'}},'spec':{'devices':{'requests':[{}]}}"),
		  "spec.metadata.annotations: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.metadata.labels: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.metadata.name: Forbidden: cannot be set\n"
		  "spec.spec.devices.requests[0].name: Invalid value: '': " LABEL_TEXT "\n"
		  "spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is"
		  " required" },
	};
	static const struct update_row u[] = {
		{ TEMPLATE("'metadata':{'labels':{'a':'b'}}"), TEMPLATE("'metadata':{'labels':{'a':'c'}}"), "",
		  "spec: Invalid value:"
		  " {'labels':{'a':'b'},'Spec':{'Devices':{'Requests':null,'Constraints':null,'Config':null}}}: field"
		  " is immutable" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_device_class)
{
	static const struct create_row t[] = {
		{ CLASS("'config':[{'opaque':{'driver':'d','parameters':{}}}],'extendedResourceName':'a.b/c'"),
		  "" },
		{ CLASS("'config':[{}],'selectors':[{}],'extendedResourceName':'cpu'"),
		  "spec.selectors[0].cel: Required value\n"
		  "spec.config[0].opaque: Required value\n"
		  "spec.extendedResourceName: Invalid value: 'cpu': must be a valid extended resource name" },
		{ TAINT_RULE("'deviceSelector':{'driver':'d','pool':'a/b','device':'v'},'taint':{'key':'a','effect':'NoSchedule'}"),
		  "" },
		{ TAINT_RULE("'deviceSelector':{'driver':'D_','pool':'','device':'V'},'taint':{'key':'a b','value':'?','effect':'x'}"),
		  "spec.deviceSelector.driver: Invalid value: 'D_': " SUBDOMAIN_TEXT "\n"
		  "spec.deviceSelector.pool: Required value\n"
		  "spec.deviceSelector.device: Invalid value: 'V': " LABEL_TEXT "\n"
		  "spec.taint.key: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.taint.value: Invalid value: '?': " VALUE_TEXT "\n"
		  "spec.taint.effect: Unsupported value: 'x': supported values: 'NoExecute', 'NoSchedule', 'None'" },
		{ TAINT_RULE(""),
		  "spec.taint.key: Invalid value: '': name part must be non-empty\n"
		  "spec.taint.key: Invalid value: '': " NAME_PART_TEXT "\n"
		  "spec.taint.effect: Required value" },
	};
	static const struct update_row u[] = {
		{ CLASS("'config':[{'opaque':{'driver':'d','parameters':{}}}]"), CLASS(""), "", "" },
		{ CLASS("'config':[{}]"), CLASS(""), "", "spec.config[0].opaque: Required value" },
		{ TAINT_RULE("'taint':{'key':'a','effect':'x'}"), TAINT_RULE("'taint':{'key':'a','effect':'x'}"), "",
		  "" },
		{ TAINT_RULE("'taint':{'key':'a','effect':'y'}"), TAINT_RULE("'taint':{'key':'a','effect':'x'}"), "",
		  "spec.taint.effect: Unsupported value: 'y': supported values: 'NoExecute', 'NoSchedule', 'None'" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

/* What a selector may name depends on the gates of the server. */
TEST(validate_selectors_by_gates)
{
	static const struct { const char *gates; bool fine; } t[] = {
		{ "{}", true }, { "{'DRAConsumableCapacity':true}", true }, { "{'DRAConsumableCapacity':false}", false }, { "{'AllBeta':false}", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		str wrong = testing_create_gated(&a, testing_tree(&a, t[i].gates), CLASS("'selectors':[{'cel':{'expression':'device.allowMultipleAllocations == true'}}]"),
						 NULL);
		CHECK_ROW(i, (wrong.n == 0) == t[i].fine);
	}
}
