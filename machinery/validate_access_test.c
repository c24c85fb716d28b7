/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define META "'metadata':{'name':'x','namespace':'n','resourceVersion':'1'}"
#define CLUSTER_META "'metadata':{'name':'x','resourceVersion':'1'}"
#define RBAC(kind, members) "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'" kind "'," META "," members "}"
#define CLUSTER_RBAC(kind, members) "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'" kind "'," CLUSTER_META "," members "}"
#define ROLE_REF "'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'ClusterRole','name':'r'}"
#define REVIEW(kind, members) "{'apiVersion':'authorization.k8s.io/v1','kind':'" kind "'," members "}"
#define RESOURCE "'resourceAttributes':{'resource':'pods'}"
#define TOKEN(spec) "{'apiVersion':'authentication.k8s.io/v1','kind':'TokenRequest','spec':{" spec "}}"
#define PRIORITY(name, members) \
	"{'apiVersion':'scheduling.k8s.io/v1','kind':'PriorityClass','metadata':{'name':'" name "','resourceVersion':'1'}," members "}"
#define RUNTIME(members) "{'apiVersion':'node.k8s.io/v1','kind':'RuntimeClass'," CLUSTER_META members "}"
#define LEASE(spec) "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease'," META ",'spec':{" spec "}}"
#define CANDIDATE(spec) "{'apiVersion':'coordination.k8s.io/v1beta1','kind':'LeaseCandidate'," META ",'spec':{" spec "}}"

TEST(validate_roles)
{
	static const struct create_row t[] = {
		{ RBAC("Role", "'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['pods']}]"), "" },
		{ "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'Role','metadata':{'name':'system:A.b','namespace':'n'}}",
		  "" },
		{ "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'Role','metadata':{'name':'a/b%','namespace':'n'}}",
		  "metadata.name: Invalid value: 'a/b%': may not contain '/'\n"
		  "metadata.name: Invalid value: 'a/b%': may not contain '%'" },
		{ RBAC("Role", "'rules':[{},{'verbs':['get'],'nonResourceURLs':['/a']}]"),
		  "rules[0].verbs: Required value: verbs must contain at least one value\n"
		  "rules[0].apiGroups: Required value: resource rules must supply at least one api group\n"
		  "rules[0].resources: Required value: resource rules must supply at least one resource\n"
		  "rules[1].nonResourceURLs: Invalid value: ['/a']: namespaced rules cannot apply to non-resource URLs" },
		{ CLUSTER_RBAC("ClusterRole", "'rules':[{'verbs':['get'],'nonResourceURLs':['/a']}]"), "" },
		{ CLUSTER_RBAC("ClusterRole", "'rules':[{'verbs':['get'],'nonResourceURLs':['/a'],'resourceNames':['b']}],'aggregationRule':{}"),
		  "rules[0].nonResourceURLs: Invalid value: ['/a']: rules cannot apply to both regular resources and"
		  " non-resource URLs\n"
		  "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if"
		  " aggregationRule is non-nil" },
		{ CLUSTER_RBAC("ClusterRole", "'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'a b':'c'}}]}"),
		  "aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector." },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_role_bindings)
{
	static const struct create_row t[] = {
		{ RBAC("RoleBinding", ROLE_REF ",'subjects':[{'kind':'User','name':'a'},{'kind':'ServiceAccount','name':'b'}]"),
		  "" },
		{ RBAC("RoleBinding", "'roleRef':{}"),
		  "roleRef.kind: Unsupported value: '': supported values: 'Role', 'ClusterRole'\n"
		  "roleRef.name: Required value" },
		{ RBAC("RoleBinding", "'roleRef':{'apiGroup':'x','kind':'Role','name':'a/b'}"),
		  "roleRef.apiGroup: Unsupported value: 'x': supported values: 'rbac.authorization.k8s.io'\n"
		  "roleRef.name: Invalid value: 'a/b': may not contain '/'" },
		{ RBAC("RoleBinding", ROLE_REF ",'subjects':[{},{'kind':'Group','apiGroup':'x'},{'kind':'ServiceAccount','apiGroup':'x','name':'A'}]"),
		  "subjects[0].name: Required value\n"
		  "subjects[0].kind: Unsupported value: '': supported values: 'ServiceAccount', 'User', 'Group'\n"
		  "subjects[1].name: Required value\n"
		  "subjects[1].apiGroup: Unsupported value: 'x': supported values: 'rbac.authorization.k8s.io'\n"
		  "subjects[2].name: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "subjects[2].apiGroup: Unsupported value: 'x': supported values: ''" },
		{ CLUSTER_RBAC("ClusterRoleBinding", "'roleRef':{'kind':'Role','name':'r'},'subjects':[{'kind':'ServiceAccount','name':'a'}]"),
		  "roleRef.kind: Unsupported value: 'Role': supported values: 'ClusterRole'\n"
		  "subjects[0].namespace: Required value" },
	};
	static const struct update_row u[] = {
		{ RBAC("RoleBinding", "'roleRef':{'kind':'Role','name':'r'}"), RBAC("RoleBinding", ROLE_REF), "",
		  "roleRef: Invalid value: {'APIGroup':'rbac.authorization.k8s.io','Kind':'Role','Name':'r'}: cannot"
		  " change roleRef" },
		{ CLUSTER_RBAC("ClusterRoleBinding", ROLE_REF ",'subjects':[{'kind':'User','name':'a'}]"), CLUSTER_RBAC("ClusterRoleBinding", ROLE_REF), "",
		  "" },
		{ CLUSTER_RBAC("ClusterRole", "'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'a':'?'}}]}"),
		  CLUSTER_RBAC("ClusterRole", "'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'a':'!'}}]}"), "",
		  "aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: '?': " VALUE_TEXT "\n"
		  "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector." },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_reviews)
{
	static const struct {
		const char *object, *want;
	} t[] = {
		{ REVIEW("SubjectAccessReview", "'spec':{'user':'a'," RESOURCE "}"), "" },
		{ REVIEW("SubjectAccessReview", "'spec':{}"),
		  "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or"
		  " resourceAttributes must be specified\n"
		  "spec.user: Invalid value: '': at least one of user or group must be specified" },
		{ REVIEW("SubjectAccessReview", "'metadata':{'name':'x'},'spec':{'groups':['a'],'nonResourceAttributes':{'path':'/','verb':'get'}," RESOURCE "}"),
		  "spec.nonResourceAttributes: Invalid value: {'Path':'/','Verb':'get'}: cannot be specified in"
		  " combination with resourceAttributes\n"
		  "metadata: Invalid value: {'name':'x'}: must be empty" },
		{ REVIEW("SelfSubjectAccessReview", "'spec':{" RESOURCE "}"), "" },
		{ REVIEW("LocalSubjectAccessReview", "'metadata':{'namespace':'n'},'spec':{'user':'a','resourceAttributes':{'namespace':'n'}}"),
		  "" },
		{ REVIEW("LocalSubjectAccessReview", "'metadata':{'name':'x','namespace':'n'},'spec':{'user':'a'," RESOURCE "}"),
		  "metadata: Invalid value: {'name':'x','namespace':'n'}: must be empty except for namespace\n"
		  "spec.resourceAttributes.namespace: Invalid value: '': must match metadata.namespace" },
		{ REVIEW("LocalSubjectAccessReview", "'metadata':{'namespace':'n'},'spec':{'user':'a','nonResourceAttributes':{}}"),
		  "spec.nonResourceAttributes: Invalid value: {'Path':'','Verb':''}: disallowed on this kind of request" },
		{ REVIEW("SelfSubjectAccessReview", "'spec':{'resourceAttributes':{'fieldSelector':{},'labelSelector':{'rawSelector':'a','requirements':"
			 "[{'key':'a b','operator':'In'},{'key':'a','operator':'Exists','values':['?']}]}}}"),
		  "spec.resourceAttributes.fieldSelector.requirements: Required value: when"
		  " spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required\n"
		  "spec.resourceAttributes.labelSelector.rawSelector: Invalid value: 'a': may not specified at the"
		  " same time as requirements\n"
		  "spec.resourceAttributes.labelSelector.requirements[0].values: Required value: must be specified"
		  " when `operator` is 'In' or 'NotIn'\n"
		  "spec.resourceAttributes.labelSelector.requirements[0].key: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "spec.resourceAttributes.labelSelector.requirements[1].values: Forbidden: may not be specified when"
		  " `operator` is 'Exists' or 'DoesNotExist'\n"
		  "spec.resourceAttributes.labelSelector.requirements[1].values[0]: Invalid value: '?': " VALUE_TEXT },
		{ REVIEW("SelfSubjectAccessReview", "'spec':{'resourceAttributes':{'fieldSelector':{'requirements':[{'operator':'NotIn'},"
			 "{'key':'?','operator':'DoesNotExist','values':['a']},{'key':'a','operator':'Foo'}]}}}"),
		  "spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified\n"
		  "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be specified"
		  " when `operator` is 'In' or 'NotIn'\n"
		  "spec.resourceAttributes.fieldSelector.requirements[1].values: Forbidden: may not be specified when"
		  " `operator` is 'Exists' or 'DoesNotExist'" },
		{ TOKEN(""), "" },
		{ TOKEN("'expirationSeconds':599"),
		  "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes" },
		{ TOKEN("'expirationSeconds':4294967297"),
		  "spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32"
		  " seconds" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct type *type;
		struct val object = testing_object(&a, t[i].object, &type);
		struct field_errors errors;
		field_errors_init(&errors, &a);
		validate_create(type, object, &errors);
		CHECK_STR_ROW(i, testing_lines(&a, &errors), t[i].want);
		arena_reset(&a);
	}
	arena_done(&a);
}

TEST(validate_priority_class)
{
	static const struct create_row t[] = {
		{ PRIORITY("x", "'value':1000000000"), "" },
		{ PRIORITY("x", "'value':1000000001,'preemptionPolicy':'x'"),
		  "value: Forbidden: maximum allowed value of a user defined priority is 1000000000\n"
		  "preemptionPolicy: Unsupported value: 'x': supported values: 'PreemptLowerPriority', 'Never'" },
		{ PRIORITY("system-x", "'value':1"),
		  "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use"
		  " only. error: system-x is not a known system priority class" },
		{ PRIORITY("system-node-critical", "'value':2000001000"), "" },
		{ PRIORITY("system-node-critical", "'value':2000001000,'globalDefault':true"),
		  "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use"
		  " only. error: globalDefault of system-node-critical PriorityClass must be false" },
		{ PRIORITY("system-cluster-critical", "'value':1"),
		  "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use"
		  " only. error: value of system-cluster-critical PriorityClass must be 2000000000" },
	};
	static const struct update_row u[] = {
		{ PRIORITY("x", "'value':2,'preemptionPolicy':'Never'"), PRIORITY("x", "'value':1"), "",
		  "value: Forbidden: may not be changed in an update.\n"
		  "preemptionPolicy: Invalid value: 'Never': field is immutable" },
		{ PRIORITY("x", "'value':1,'description':'a'"), PRIORITY("x", "'value':1"), "", "" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_runtime_class)
{
	static const struct create_row t[] = {
		{ RUNTIME(",'handler':'a','overhead':{'podFixed':{'cpu':'1'}},'scheduling':{'nodeSelector':{'a':'b'}}"),
		  "" },
		{ RUNTIME(""), "handler: Required value" },
		{ RUNTIME(",'handler':'A','overhead':{'podFixed':{'foo':'1','cpu':'-1'}},'scheduling':{'nodeSelector':{'a b':'c'},"
			  "'tolerations':[{'key':'a','operator':'Exists','value':'b'},{'key':'a'},{'key':'a'}]}"),
		  "handler: Invalid value: 'A': " LABEL_TEXT "\n"
		  "overhead.limits[cpu]: Invalid value: '-1': must be greater than or equal to 0\n"
		  "overhead.limits[foo]: Invalid value: 'foo': must be a standard resource type or fully qualified\n"
		  "overhead.limits[foo]: Invalid value: 'foo': must be a standard resource for containers\n"
		  "scheduling.nodeSelector: Invalid value: 'a b': " NAME_PART_TEXT "\n"
		  "scheduling.tolerations[0].operator: Invalid value: 'b': value must be empty when `operator` is"
		  " 'Exists'\n"
		  "scheduling.tolerations[2]: Duplicate value:"
		  " {'Key':'a','Operator':'','Value':'','Effect':'','TolerationSeconds':null}" },
	};
	static const struct update_row u[] = {
		{ RUNTIME(",'handler':'b'"), RUNTIME(",'handler':'a'"), "",
		  "handler: Invalid value: 'b': field is immutable" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_lease)
{
	static const struct create_row t[] = {
		{ LEASE("'leaseDurationSeconds':1"), "" },
		{ LEASE("'leaseDurationSeconds':0,'leaseTransitions':-1"),
		  "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0\n"
		  "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0" },
		{ CANDIDATE("'leaseName':'a','binaryVersion':'1.2.3','emulationVersion':'1.2.0','strategy':'OldestEmulationVersion'"),
		  "" },
		{ CANDIDATE(""),
		  "spec.leaseName: Required value\n"
		  "spec.binaryVersion: Required value\n"
		  "spec.strategy: Required value" },
		{ CANDIDATE("'leaseName':'a','binaryVersion':'1.1.0','emulationVersion':'1.2.0','strategy':'x'"),
		  "spec.binaryVersion: Invalid value: '1.1.0': must be greater than or equal to `emulationVersion`\n"
		  "spec.strategy.strategy: Unsupported value: 'x': supported values: 'OldestEmulationVersion'" },
		{ CANDIDATE("'leaseName':'a','binaryVersion':'x','emulationVersion':'1.2','strategy':'a b/c'"),
		  "spec.emulationVersion: Invalid value: '1.2': must be a valid semantic version\n"
		  "spec.binaryVersion: Invalid value: 'x': must be a valid semantic version\n"
		  "spec.strategy.strategy: Invalid value: 'a b/c': prefix part " SUBDOMAIN_TEXT },
		{ CANDIDATE("'leaseName':'a','binaryVersion':'1.0.0','strategy':'OldestEmulationVersion'"),
		  "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'" },
	};
	static const struct update_row u[] = {
		{ LEASE("'leaseDurationSeconds':-1"), LEASE(""), "",
		  "spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0" },
		{ CANDIDATE("'leaseName':'b','binaryVersion':'1.0.0','strategy':'a.b/c'"), CANDIDATE("'leaseName':'a','binaryVersion':'1.0.0','strategy':'a.b/c'"),
		  "", "spec.leaseName: Invalid value: 'b': field is immutable" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}
