/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define NAMED(kind, name, members) \
	"{'apiVersion':'flowcontrol.apiserver.k8s.io/v1','kind':'" kind "','metadata':{'name':'" name "','resourceVersion':'1'}," members "}"
#define SCHEMA(spec) NAMED("FlowSchema", "x", "'spec':{" spec "}")
#define LEVEL(spec) NAMED("PriorityLevelConfiguration", "x", "'spec':{" spec "}")
#define TO "'priorityLevelConfiguration':{'name':'l'}"
#define USER "'subjects':[{'kind':'User','user':{'name':'a'}}]"
#define RULE(members) SCHEMA(TO ",'rules':[{" members "}]")
#define URLS "'nonResourceRules':[{'verbs':['*'],'nonResourceURLs':['*']}]"
#define QUEUING(members) LEVEL("'type':'Limited','limited':{'limitResponse':{'type':'Queue','queuing':{" members "}}}")

TEST(validate_flow_schema)
{
	static const struct create_row t[] = {
		{ RULE(USER "," URLS), "" },
		{ SCHEMA(""),
		  "spec.priorityLevelConfiguration.name: Required value: must reference a priority level" },
		{ SCHEMA("'matchingPrecedence':-1,'distinguisherMethod':{'type':'x'},'priorityLevelConfiguration':{'name':'A'}"),
		  "spec.matchingPrecedence: Invalid value: -1: must be a positive value\n"
		  "spec.distinguisherMethod.type: Unsupported value: {'Type':'x'}: supported values: 'ByNamespace',"
		  " 'ByUser'\n"
		  "spec.priorityLevelConfiguration.name: Invalid value: 'A': " SUBDOMAIN_TEXT },
		{ SCHEMA(TO ",'matchingPrecedence':10001,'rules':[{}]"),
		  "spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000\n"
		  "spec.rules[0].subjects: Required value: subjects must contain at least one value\n"
		  "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be"
		  " non-empty" },
		{ SCHEMA(TO ",'matchingPrecedence':1"),
		  "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have"
		  " matchingPrecedence 1" },
		{ RULE(USER ",'resourceRules':[{},{'verbs':['*','get'],'apiGroups':['*','a'],'resources':['*','b'],'namespaces':['*','c']},"
			    "{'verbs':['foo'],'apiGroups':[''],'resources':['a'],'namespaces':['A']},"
			    "{'verbs':['get'],'apiGroups':[''],'resources':['a'],'clusterScope':true}]"),
		  "spec.rules[0].resourceRules[0].verbs: Required value: verbs must contain at least one value\n"
		  "spec.rules[0].resourceRules[0].apiGroups: Required value: resource rules must supply at least one"
		  " api group\n"
		  "spec.rules[0].resourceRules[0].resources: Required value: resource rules must supply at least one"
		  " resource\n"
		  "spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster"
		  " scoped must supply at least one namespace\n"
		  "spec.rules[0].resourceRules[1].verbs: Invalid value: ['*','get']: if '*' is present, must not"
		  " specify other verbs\n"
		  "spec.rules[0].resourceRules[1].apiGroups: Invalid value: ['*','a']: if '*' is present, must not"
		  " specify other api groups\n"
		  "spec.rules[0].resourceRules[1].resources: Invalid value: ['*','b']: if '*' is present, must not"
		  " specify other resources\n"
		  "spec.rules[0].resourceRules[1].namespaces: Invalid value: ['*','c']: if '*' is present, must not"
		  " specify other namespaces\n"
		  "spec.rules[0].resourceRules[2].verbs: Unsupported value: ['foo']: supported values: 'create',"
		  " 'delete', 'deletecollection', 'get', 'list', 'patch', 'proxy', 'update', 'watch'\n"
		  "spec.rules[0].resourceRules[2].namespaces[0]: Invalid value: 'A': each member of this list must be"
		  " '*' or a DNS-1123 label; " LABEL_TEXT },
		{ RULE(USER ",'nonResourceRules':[{},{'verbs':['get'],'nonResourceURLs':['*','/a']},"
			    "{'verbs':['get'],'nonResourceURLs':['','a','/a b','/a//b','/a/*/b','/a/*','/*','//']}]"),
		  "spec.rules[0].nonResourceRules[0].verbs: Required value: verbs must contain at least one value\n"
		  "spec.rules[0].nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must contain at"
		  " least one value\n"
		  "spec.rules[0].nonResourceRules[1].nonResourceURLs: Invalid value: ['*','/a']: if '*' is present,"
		  " must not specify other non-resource URLs\n"
		  "spec.rules[0].nonResourceRules[2].nonResourceURLs[0]: Invalid value: '': must not be empty\n"
		  "spec.rules[0].nonResourceRules[2].nonResourceURLs[1]: Invalid value: 'a': must start with slash\n"
		  "spec.rules[0].nonResourceRules[2].nonResourceURLs[2]: Invalid value: '/a b': must not contain"
		  " white-space\n"
		  "spec.rules[0].nonResourceRules[2].nonResourceURLs[3]: Invalid value: '/a//b': must not contain"
		  " double slash\n"
		  "spec.rules[0].nonResourceRules[2].nonResourceURLs[4]: Invalid value: '/a/*/b': wildcard can only do"
		  " suffix matching\n"
		  "spec.rules[0].nonResourceRules[2].nonResourceURLs[7]: Invalid value: '//': must not contain double"
		  " slash" },
		{ RULE(URLS ",'subjects':[{},{'kind':'User'},{'kind':'User','user':{},'group':{'name':'a'}},{'kind':'Group','group':{}},"
			    "{'kind':'ServiceAccount','serviceAccount':{}},{'kind':'ServiceAccount','serviceAccount':{'name':'A','namespace':'B'}}]"),
		  "spec.rules[0].subjects[0].kind: Unsupported value: '': supported values: 'Group', 'ServiceAccount',"
		  " 'User'\n"
		  "spec.rules[0].subjects[1].user: Required value: user is required when subject kind is 'User'\n"
		  "spec.rules[0].subjects[2].user.name: Required value\n"
		  "spec.rules[0].subjects[2].group: Forbidden: group is forbidden when subject kind is not 'Group'\n"
		  "spec.rules[0].subjects[3].group.name: Required value\n"
		  "spec.rules[0].subjects[4].serviceAccount.name: Required value\n"
		  "spec.rules[0].subjects[4].serviceAccount.namespace: Required value: must specify namespace for"
		  " service account\n"
		  "spec.rules[0].subjects[5].serviceAccount.name: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "spec.rules[0].subjects[5].serviceAccount.namespace: Invalid value: 'B': " LABEL_TEXT },
		{ NAMED("FlowSchema", "exempt", "'spec':{" TO "}"),
		  "spec: Invalid value:"
		  " {'PriorityLevelConfiguration':{'Name':'l'},'MatchingPrecedence':1000,'DistinguisherMethod':null,"
		  "'Rules':null}: spec of 'exempt' must equal the fixed value" },
	};
	static const struct update_row u[] = {
		{ NAMED("FlowSchema", "x", "'spec':{" TO "},'status':{'conditions':[{'type':'a'},{'type':'a'},{}]}"), SCHEMA(TO), "status",
		  "status.conditions[1].type: Duplicate value: 'a'\n"
		  "status.conditions[2].type: Required value" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_priority_level)
{
	static const struct create_row t[] = {
		{ QUEUING(""), "" },
		{ LEVEL("'type':'Limited','limited':{'limitResponse':{'type':'Reject'}}"), "" },
		{ LEVEL(""), "spec.type: Required value" },
		{ LEVEL("'type':'x'"),
		  "spec.type: Unsupported value: 'x': supported values: 'Exempt', 'Limited'" },
		{ LEVEL("'type':'Exempt','limited':{'limitResponse':{'type':'Reject'}}"),
		  "spec.type: Invalid value: 'Exempt': must be 'Exempt' if and only if `name` is 'exempt'\n"
		  "spec.limited: Forbidden: must be nil if the type is not Limited" },
		{ LEVEL("'type':'Limited','exempt':{}"),
		  "spec.exempt: Forbidden: must be nil if the type is Limited\n"
		  "spec.limited: Required value: must not be empty when type is Limited" },
		{ LEVEL("'type':'Limited','limited':{'nominalConcurrencyShares':-1,'lendablePercent':101,'borrowingLimitPercent':-1,"
			"'limitResponse':{'type':'Reject','queuing':{}}}"),
		  "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer\n"
		  "spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not"
		  " Limited\n"
		  "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive\n"
		  "spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer" },
		{ LEVEL("'type':'Limited','limited':{'limitResponse':{'type':'Queue'}}"),
		  "spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type"
		  " is Limited" },
		{ LEVEL("'type':'Limited','limited':{'limitResponse':{'type':'x'}}"),
		  "spec.limited.limitResponse.type: Unsupported value: 'x': supported values: 'Queue', 'Reject'" },
		{ QUEUING("'queues':-1,'handSize':-1,'queueLengthLimit':-1"),
		  "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive\n"
		  "spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive\n"
		  "spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive" },
		{ QUEUING("'queues':10000001,'handSize':8"),
		  "spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than"
		  " 10000000\n"
		  "spec.limited.limitResponse.queuing.handSize: Invalid value: 8: required entropy bits of deckSize"
		  " 10000001 and handSize 8 should not be greater than 60" },
		{ QUEUING("'queues':4,'handSize':5"),
		  "spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)" },
		{ QUEUING("'queues':64,'handSize':64"),
		  "spec.limited.limitResponse.queuing.handSize: Invalid value: 64: required entropy bits of deckSize"
		  " 64 and handSize 64 should not be greater than 60" },
		{ NAMED("PriorityLevelConfiguration", "exempt", "'spec':{'type':'Exempt','exempt':{'nominalConcurrencyShares':1,'lendablePercent':50}}"),
		  "" },
		{ NAMED("PriorityLevelConfiguration", "catch-all", "'spec':{'type':'Limited','limited':{'limitResponse':{'type':'Reject'}}}"),
		  "spec: Invalid value:"
		  " {'Type':'Limited','Limited':{'NominalConcurrencyShares':30,'LimitResponse':{'Type':'Reject',"
		  "'Queuing':null},'LendablePercent':0,'BorrowingLimitPercent':null},'Exempt':null}: spec of"
		  " 'catch-all' must equal the fixed value" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}
