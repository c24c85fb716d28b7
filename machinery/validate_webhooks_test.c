/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define HOOKS(kind, hooks) \
	"{'apiVersion':'admissionregistration.k8s.io/v1','kind':'" kind "WebhookConfiguration','metadata':{'name':'x','resourceVersion':'1'}," \
	"'webhooks':[" hooks "]}"
#define REST "'sideEffects':'None','admissionReviewVersions':['v1']"
#define CLIENT "'clientConfig':{'url':'https://a/b'}"
#define HOOK(members) HOOKS("Validating", "{'name':'a.b.c'," CLIENT "," REST "," members "}")
#define CONFIG(config) HOOKS("Validating", "{'name':'a.b.c','clientConfig':{" config "}," REST "}")
#define URL(url) CONFIG("'url':'" url "'")
#define RULE(members) HOOK("'rules':[{" members "}]")
#define RESOURCES(list) RULE("'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],'resources':[" list "]")
#define OPERATION_TEXT "supported values: '*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'"
#define FORM_TEXT "; desired format: https://host[/path]"

TEST(validate_webhooks)
{
	static const struct create_row t[] = {
		{ HOOKS("Validating", "{'name':'a.b.c'," CLIENT "," REST "}"), "" },
		{ HOOKS("Mutating", "{'name':'a.b.c','clientConfig':{'service':{'name':'a','namespace':'b','path':'/c','port':1}},"
				    "'reinvocationPolicy':'IfNeeded'," REST "}"), "" },
		{ HOOKS("Validating", "{}"),
		  "webhooks[0].name: Required value\n"
		  "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun\n"
		  "webhooks[0].clientConfig: Required value: exactly one of url or service is required\n"
		  "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1" },
		{ HOOKS("Validating", "{'name':'a'," CLIENT "," REST "},{'name':'a.b.c'," CLIENT "," REST "},{'name':'a.b.c'," CLIENT "," REST "}"),
		  "webhooks[0].name: Invalid value: 'a': should be a domain with at least three segments separated by"
		  " dots\n"
		  "webhooks[2].name: Duplicate value: 'a.b.c'" },
		{ HOOK("'failurePolicy':'x','matchPolicy':'x','timeoutSeconds':31,'namespaceSelector':{'matchLabels':{'a b':'c'}}"),
		  "webhooks[0].failurePolicy: Unsupported value: 'x': supported values: 'Fail', 'Ignore'\n"
		  "webhooks[0].matchPolicy: Unsupported value: 'x': supported values: 'Equivalent', 'Exact'\n"
		  "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds\n"
		  "webhooks[0].namespaceSelector.matchLabels: Invalid value: 'a b': " NAME_PART_TEXT },
		{ HOOKS("Validating", "{'name':'a.b.c'," CLIENT ",'sideEffects':'Some','admissionReviewVersions':['v2','v2','A']}"),
		  "webhooks[0].sideEffects: Unsupported value: 'Some': supported values: 'None', 'NoneOnDryRun'\n"
		  "webhooks[0].admissionReviewVersions[1]: Invalid value: 'v2': duplicate version\n"
		  "webhooks[0].admissionReviewVersions[2]: Invalid value: 'A': " OLD_LABEL_TEXT "\n"
		  "webhooks[0].admissionReviewVersions: Invalid value: ['v2','v2','A']: must include at least one of"
		  " v1, v1beta1" },
		{ HOOKS("Mutating", "{'name':'a.b.c'," CLIENT ",'reinvocationPolicy':'x'," REST "}"),
		  "webhooks[0].reinvocationPolicy: Unsupported value: 'x': supported values: 'IfNeeded', 'Never'" },
	};
	static const struct update_row u[] = {
		{ HOOKS("Validating", "{'name':'a.b.c'," CLIENT ",'sideEffects':'Some','admissionReviewVersions':['v2']}"),
		  HOOKS("Validating", "{'name':'a.b.c'," CLIENT ",'sideEffects':'Unknown','admissionReviewVersions':['v3']}"), "",
		  "" },
		{ HOOKS("Validating", "{'name':'a.b.c'," CLIENT ",'sideEffects':'Some','admissionReviewVersions':['v2']}"),
		  HOOKS("Validating", "{'name':'a.b.c'," CLIENT "," REST "}"), "",
		  "webhooks[0].sideEffects: Unsupported value: 'Some': supported values: 'None', 'NoneOnDryRun'\n"
		  "webhooks[0].admissionReviewVersions: Invalid value: ['v2']: must include at least one of v1, v1beta1" },
	};
	check_create_rows(t, ARRAY_LEN(t));
	check_update_rows(u, ARRAY_LEN(u));
}

TEST(validate_webhook_client)
{
	static const struct create_row t[] = {
		{ CONFIG(""),
		  "webhooks[0].clientConfig: Required value: exactly one of url or service is required" },
		{ CONFIG("'url':'https://a','service':{'name':'a','namespace':'b'}"),
		  "webhooks[0].clientConfig: Required value: exactly one of url or service is required" },
		{ URL("http://a"),
		  "webhooks[0].clientConfig.url: Invalid value: 'http': 'https' is the only allowed URL scheme;"
		  " desired format: https://host[/path]" },
		{ URL("https://"),
		  "webhooks[0].clientConfig.url: Invalid value: '': host must be specified; desired format:"
		  " https://host[/path]" },
		{ URL("a"),
		  "webhooks[0].clientConfig.url: Invalid value: '': 'https' is the only allowed URL scheme; desired"
		  " format: https://host[/path]\n"
		  "webhooks[0].clientConfig.url: Invalid value: '': host must be specified; desired format:"
		  " https://host[/path]" },
		{ URL("https://u:p@a/b?c=d#e"),
		  "webhooks[0].clientConfig.url: Invalid value: 'u:p': user information is not permitted in the URL\n"
		  "webhooks[0].clientConfig.url: Invalid value: 'e': fragments are not permitted in the URL\n"
		  "webhooks[0].clientConfig.url: Invalid value: 'c=d': query parameters are not permitted in the URL" },
		{ URL("https://a:x/"),
		  "webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse 'https://a:x/':"
		  " invalid port ':x' after host; desired format: https://host[/path]" },
		{ URL("%zz"),
		  "webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse '%zz': invalid URL"
		  " escape '%zz'; desired format: https://host[/path]" },
		{ CONFIG("'service':{'port':70000,'path':'a//b'}"),
		  "webhooks[0].clientConfig.service.name: Required value\n"
		  "webhooks[0].clientConfig.service.namespace: Required value\n"
		  "webhooks[0].clientConfig.service.port: Invalid value: 70000: port is not valid: must be between 1"
		  " and 65535, inclusive\n"
		  "webhooks[0].clientConfig.service.path: Invalid value: 'a//b': must start with a '/'\n"
		  "webhooks[0].clientConfig.service.path: Invalid value: 'a//b': segment[0] may not be empty\n"
		  "webhooks[0].clientConfig.service.path: Invalid value: 'a//b': segment[1] may not be empty" },
		{ CONFIG("'service':{'name':'a','namespace':'b','path':'//'}"),
		  "webhooks[0].clientConfig.service.path: Invalid value: '//': segment[0] may not be empty" },
		{ CONFIG("'service':{'name':'a','namespace':'b','path':'/a//B/c'}"),
		  "webhooks[0].clientConfig.service.path: Invalid value: '/a//B/c': segment[1] may not be empty\n"
		  "webhooks[0].clientConfig.service.path: Invalid value: '/a//B/c': segment[2]: " SUBDOMAIN_TEXT },
		{ CONFIG("'service':{'name':'a','namespace':'b','path':'/'}"), "" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_webhook_rules)
{
	static const struct create_row t[] = {
		{ RESOURCES("'*/*'"), "" },
		{ RESOURCES("'pods','pods/status','*/scale'"), "" },
		{ RULE("'scope':'x'"),
		  "webhooks[0].rules[0].operations: Required value\n"
		  "webhooks[0].rules[0].apiGroups: Required value\n"
		  "webhooks[0].rules[0].apiVersions: Required value\n"
		  "webhooks[0].rules[0].resources: Required value\n"
		  "webhooks[0].rules[0].scope: Unsupported value: 'x': supported values: '*', 'Cluster', 'Namespaced'" },
		{ RULE("'operations':['*','CREATE'],'apiGroups':['*','a'],'apiVersions':['','*'],'resources':['']"),
		  "webhooks[0].rules[0].operations: Invalid value: ['*','CREATE']: if '*' is present, must not specify"
		  " other operations\n"
		  "webhooks[0].rules[0].apiGroups: Invalid value: ['*','a']: if '*' is present, must not specify other"
		  " API groups\n"
		  "webhooks[0].rules[0].apiVersions: Invalid value: ['','*']: if '*' is present, must not specify"
		  " other API versions\n"
		  "webhooks[0].rules[0].apiVersions[0]: Required value\n"
		  "webhooks[0].rules[0].resources[0]: Required value" },
		{ RULE("'operations':['x'],'apiGroups':[''],'apiVersions':['v1'],'resources':['*','a']"),
		  "webhooks[0].rules[0].operations[0]: Unsupported value: 'x': supported values: '*', 'CONNECT',"
		  " 'CREATE', 'DELETE', 'UPDATE'\n"
		  "webhooks[0].rules[0].resources: Invalid value: ['*','a']: if '*' is present, must not specify other"
		  " resources without subresources" },
		{ RESOURCES("'*/*','a'"),
		  "webhooks[0].rules[0].resources: Invalid value: ['*/*','a']: if '*/*' is present, must not specify"
		  " other resources" },
		{ RESOURCES("'a/*','a/b'"),
		  "webhooks[0].rules[0].resources[1]: Invalid value: 'a/b': if 'a/*' is present, must not specify a/b" },
		{ RESOURCES("'*/b','a/b'"),
		  "webhooks[0].rules[0].resources[1]: Invalid value: 'a/b': if '*/b' is present, must not specify a/b" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_webhook_conditions)
{
	static const struct create_row t[] = {
		{ HOOK("'matchConditions':[{'name':'a.b/c','expression':'true'}]"), "" },
		{ HOOK("'matchConditions':[{},{'name':'a','expression':'true'},{'name':'a','expression':'true'},{'name':'a b','expression':' '}]"),
		  "webhooks[0].matchConditions[0].expression: Required value\n"
		  "webhooks[0].matchConditions[0].name: Required value\n"
		  "webhooks[0].matchConditions[2].name: Duplicate value: 'a'\n"
		  "webhooks[0].matchConditions[3].expression: Required value\n"
		  "webhooks[0].matchConditions[3].name: Invalid value: 'a b': " NAME_PART_TEXT },
	};
	check_create_rows(t, ARRAY_LEN(t));
}
