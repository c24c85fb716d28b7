/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define ADMISSION(kind, members) \
	"{'apiVersion':'admissionregistration.k8s.io/v1','kind':'" kind "','metadata':{'name':'x','resourceVersion':'1'}," members "}"
#define RULE "'resourceRules':[{'operations':['CREATE'],'apiGroups':[''],'apiVersions':['v1'],'resources':['pods']}]"
#define MATCH "'matchConstraints':{" RULE "}"
#define POLICY(spec) ADMISSION("ValidatingAdmissionPolicy", "'spec':{" spec "}")
#define VALIDATION(members) POLICY(MATCH ",'validations':[{" members "}]")
#define TRUE "'validations':[{'expression':'true'}]"
#define BINDING(spec) ADMISSION("ValidatingAdmissionPolicyBinding", "'spec':{" spec "}")
#define DENY "'policyName':'p','validationActions':['Deny']"
#define MUTATING(spec) ADMISSION("MutatingAdmissionPolicy", "'spec':{" spec "}")
#define MUTATION(mutation) MUTATING(MATCH ",'reinvocationPolicy':'Never','mutations':[{" mutation "}]")
#define APPLY "'patchType':'ApplyConfiguration','applyConfiguration':{'expression':'Object{}'}"
#define STATUS(status) ADMISSION("ValidatingAdmissionPolicy", "'spec':{" MATCH "," TRUE "},'status':{" status "}")

TEST(validate_validating_policy)
{
	static const struct create_row t[] = {
		{ POLICY(MATCH "," TRUE), "" },
		{ POLICY(""),
		  "spec.matchConstraints: Required value\n"
		  "spec.validations: Required value: validations or auditAnnotations must contain at least one item\n"
		  "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one"
		  " item" },
		{ POLICY("'failurePolicy':'x','matchConstraints':{'matchPolicy':'x','namespaceSelector':{'matchLabels':{'a b':'c'}}}," TRUE),
		  "spec.failurePolicy: Unsupported value: 'x': supported values: 'Fail', 'Ignore'\n"
		  "spec.matchConstraints.matchPolicy: Unsupported value: 'x': supported values: 'Equivalent', 'Exact'\n"
		  "spec.matchConstraints.namespaceSelector.matchLabels: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.matchConstraints.resourceRules: Required value" },
		{ POLICY("'paramKind':{}," MATCH "," TRUE),
		  "spec.paramKind.apiVersion: Required value\n"
		  "spec.paramKind.kind: Required value" },
		{ POLICY("'paramKind':{'apiVersion':'a/b/c','kind':'A_'}," MATCH "," TRUE),
		  "spec.paramKind.apiVersion: Invalid value: 'a/b/c': unexpected GroupVersion string: a/b/c\n"
		  "spec.paramKind.kind: Invalid value: 'A_': may have mixed case, but should otherwise match: " OLD_LABEL_TEXT },
		{ POLICY("'paramKind':{'apiVersion':'A/B','kind':'Kind'}," MATCH "," TRUE),
		  "spec.paramKind.apiVersion: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.paramKind.apiVersion: Invalid value: 'B': " OLD_LABEL_TEXT },
		{ POLICY("'matchConstraints':{'resourceRules':[{'operations':['CREATE'],'apiGroups':[''],'apiVersions':['v1'],'resources':['pods'],"
			 "'resourceNames':['a','a','a/b']}],'excludeResourceRules':[{}]}," TRUE),
		  "spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: 'a'\n"
		  "spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: 'a/b': may not contain '/'\n"
		  "spec.matchConstraints.excludeResourceRules[0].operations: Required value\n"
		  "spec.matchConstraints.excludeResourceRules[0].apiGroups: Required value\n"
		  "spec.matchConstraints.excludeResourceRules[0].apiVersions: Required value\n"
		  "spec.matchConstraints.excludeResourceRules[0].resources: Required value" },
		{ VALIDATION(""), "spec.validations[0].expression: Required value: expression is not specified" },
		{ VALIDATION("'expression':'true','message':' ','messageExpression':' ','reason':'x'"),
		  "spec.validations[0].messageExpression: Invalid value: ' ': must be non-empty if specified\n"
		  "spec.validations[0].message: Invalid value: ' ': must be non-empty if specified\n"
		  "spec.validations[0].reason: Unsupported value: 'x': supported values: 'Forbidden', 'Invalid',"
		  " 'RequestEntityTooLarge'" },
		{ VALIDATION("'expression':'true','message':'a\\nb'"),
		  "spec.validations[0].message: Invalid value: 'a\\nb': must not contain line breaks" },
		{ POLICY(MATCH ",'auditAnnotations':[{},{'key':'a','valueExpression':'b'},{'key':'a','valueExpression':'b'},{'key':'a b','valueExpression':' '}]"),
		  "spec.auditAnnotations[0].key: Invalid value: 'x/': name part must be non-empty\n"
		  "spec.auditAnnotations[0].key: Invalid value: 'x/': " NAME_PART_TEXT "\n"
		  "spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified\n"
		  "spec.auditAnnotations[2].key: Duplicate value: 'a'\n"
		  "spec.auditAnnotations[3].key: Invalid value: 'x/a b': " NAME_PART_TEXT "\n"
		  "spec.auditAnnotations[3].valueExpression: Required value: valueExpression is not specified" },
		{ POLICY(MATCH "," TRUE ",'variables':[{},{'name':'a-b','expression':'c'},{'name':'in','expression':'c'}]"),
		  "spec.variables[0].name: Required value: name is not specified\n"
		  "spec.variables[0].expression: Required value: expression is not specified\n"
		  "spec.variables[1].name: Invalid value: 'a-b': must be a valid CEL identifier\n"
		  "spec.variables[2].name: Invalid value: 'in': must be a valid CEL identifier" },
		{ POLICY(MATCH "," TRUE ",'matchConditions':[{'name':'a'}]"),
		  "spec.matchConditions[0].expression: Required value" },
	};
	static const struct update_row u[] = {
		{ STATUS("'conditions':[{'type':'a','status':'x'}],'typeChecking':{'expressionWarnings':[{},{'fieldRef':'a[','warning':'b'}]}"),
		  STATUS(""), "status",
		  "status.typeChecking.expressionWarnings[0].warning: Required value\n"
		  "status.typeChecking.expressionWarnings[0].fieldRef: Required value\n"
		  "status.typeChecking.expressionWarnings[1].fieldRef: Invalid value: 'a[': invalid JSONPath:"
		  " unterminated array\n"
		  "status.conditions[0].status: Unsupported value: 'x': supported values: 'False', 'True', 'Unknown'\n"
		  "status.conditions[0].lastTransitionTime: Required value\n"
		  "status.conditions[0].reason: Required value" },
		{ POLICY(MATCH ",'validations':[{'expression':''}]"), POLICY(MATCH "," TRUE), "",
		  "spec.validations[0].expression: Required value: expression is not specified" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_policy_binding)
{
	static const struct create_row t[] = {
		{ BINDING(DENY ",'paramRef':{'name':'a','parameterNotFoundAction':'Deny'}"), "" },
		{ BINDING(""),
		  "spec.policyName: Required value\n"
		  "spec.validationActions: Required value: at least one validation action is required" },
		{ BINDING("'policyName':'A','validationActions':['x','Deny','Warn','Deny']"),
		  "spec.policyName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.validationActions[0]: Unsupported value: 'x': supported values: 'Audit', 'Deny', 'Warn'\n"
		  "spec.validationActions[3]: Duplicate value: 'Deny'\n"
		  "spec.validationActions: Invalid value: ['x','Deny','Warn','Deny']: must not contain both Deny and"
		  " Warn (repeating the same validation failure information in the API response and headers serves no"
		  " purpose)" },
		{ BINDING(DENY ",'paramRef':{}"),
		  "spec.paramRef: Required value: one of name or selector must be specified\n"
		  "spec.paramRef.parameterNotFoundAction: Required value" },
		{ BINDING(DENY ",'paramRef':{'name':'a','selector':{},'parameterNotFoundAction':'x'}"),
		  "spec.paramRef.name: Forbidden: name and selector are mutually exclusive\n"
		  "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive\n"
		  "spec.paramRef.parameterNotFoundAction: Unsupported value: 'x': supported values: 'Deny', 'Allow'" },
		{ BINDING(DENY ",'paramRef':{'selector':{'matchLabels':{'a b':'c'}},'parameterNotFoundAction':'Allow'}"),
		  "spec.paramRef.selector.matchLabels: Invalid value: 'a b': " NAME_PART_TEXT },
		{ BINDING(DENY ",'matchResources':{'resourceRules':[{}]}"),
		  "spec.matchResources.resourceRules[0].operations: Required value\n"
		  "spec.matchResources.resourceRules[0].apiGroups: Required value\n"
		  "spec.matchResources.resourceRules[0].apiVersions: Required value\n"
		  "spec.matchResources.resourceRules[0].resources: Required value" },
		{ ADMISSION("MutatingAdmissionPolicyBinding", "'spec':{'policyName':'p'}"), "" },
		{ ADMISSION("MutatingAdmissionPolicyBinding", "'spec':{'paramRef':{'name':'a/b','parameterNotFoundAction':'Deny'}}"),
		  "spec.policyName: Required value\n"
		  "spec.paramRef.name: Invalid value: 'a/b': may not contain '/'" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_mutating_policy)
{
	static const struct create_row t[] = {
		{ MUTATION(APPLY), "" },
		{ MUTATING(""),
		  "spec.matchConstraints: Required value\n"
		  "spec.mutations: Required value: mutations must contain at least one item\n"
		  "spec.reinvocationPolicy: Required value" },
		{ MUTATION(""), "spec.mutations[0].patchType: Required value" },
		{ MUTATION("'patchType':'x'"),
		  "spec.mutations[0].patchType: Unsupported value: 'x': supported values: 'ApplyConfiguration',"
		  " 'JSONPatch'" },
		{ MUTATION("'patchType':'JSONPatch'"),
		  "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch" },
		{ MUTATION(APPLY ",'jsonPatch':{'expression':'[]'}"),
		  "spec.mutations[0].jsonPatch: Invalid value: '{jsonPatch}': must not be specified when patchType is"
		  " ApplyConfiguration" },
		{ MUTATION("'patchType':'JSONPatch','jsonPatch':{'expression':' '}"),
		  "spec.mutations[0].jsonPatch.expression: Required value" },
		{ MUTATING("'matchConstraints':{'resourceRules':[{'operations':['DELETE','*'],'apiGroups':[''],'apiVersions':['v1'],'resources':['pods']}]},"
			   "'reinvocationPolicy':'x','mutations':[{" APPLY "}]"),
		  "spec.matchConstraints.resourceRules[0].operations: Invalid value: ['DELETE','*']: if '*' is"
		  " present, must not specify other operations\n"
		  "spec.matchConstraints.resourceRules.operations: Unsupported value: 'DELETE': supported values: '*',"
		  " 'CONNECT', 'CREATE', 'UPDATE'\n"
		  "spec.reinvocationPolicy: Unsupported value: 'x': supported values: 'IfNeeded', 'Never'" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}
