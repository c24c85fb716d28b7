/* What a policy says about requests, and what is said about bad policies. */
#include "apiserver/audit/policy.h"

#include "base/test.h"

static const char policy[] =
	"apiVersion: audit.k8s.io/v1\n"
	"kind: Policy\n"
	"omitStages: [RequestReceived]\n"
	"omitManagedFields: true\n"
	"rules:\n"
	"- {level: None, users: ['system:kube-proxy'], verbs: [watch], resources: [{group: '', resources: [endpoints, services]}]}\n"
	"- {level: None, nonResourceURLs: ['/healthz*', /version]}\n"
	"- {level: Request, userGroups: [auditors], verbs: [get], nonResourceURLs: ['*']}\n"
	"- {level: Metadata, resources: [{group: '', resources: [secrets], resourceNames: [top]}], omitStages: [ResponseStarted]}\n"
	"- {level: Request, resources: [{group: apps, resources: ['deployments/*']}]}\n"
	"- {level: RequestResponse, omitManagedFields: false, resources: [{group: '*', resources: ['*/scale', pods/log]}]}\n"
	"- {level: Metadata, namespaces: [kube-system]}\n"
	"- {level: Request, namespaces: [''], resources: [{group: rbac.authorization.k8s.io}]}\n";

struct asked {
	const char *user, *group, *verb, *path, *api_group, *resource, *subresource, *name, *namespace;
};

TEST(audit_policy_rules)
{
	static const struct { struct asked c; enum audit_level level; } t[] = {
		{ { "system:kube-proxy", "x", "watch", NULL, "", "services", "", "", "" }, AUDIT_NONE },
		{ { "u", "x", "GET", "/healthz/etcd", "", "", "", "", "" }, AUDIT_NONE },
		{ { "u", "auditors", "GET", "/version", "", "", "", "", "" }, AUDIT_NONE },
		{ { "u", "auditors", "GET", "/versions", "", "", "", "", "" }, AUDIT_REQUEST },
		{ { "u", "auditors", "POST", "/x", "", "", "", "", "" }, AUDIT_NONE },
		{ { "u", "x", "get", NULL, "", "secrets", "", "top", "a" }, AUDIT_METADATA },
		{ { "u", "x", "get", NULL, "", "secrets", "", "low", "a" }, AUDIT_NONE },
		{ { "u", "x", "get", NULL, "apps", "deployments", "", "d", "a" }, AUDIT_REQUEST },
		{ { "u", "x", "get", NULL, "apps", "deployments", "scale", "d", "a" }, AUDIT_REQUEST },
		{ { "u", "x", "get", NULL, "apps", "statefulsets", "scale", "d", "a" }, AUDIT_REQUEST_RESPONSE },
		{ { "u", "x", "get", NULL, "apps", "statefulsets", "", "d", "a" }, AUDIT_NONE },
		{ { "u", "x", "get", NULL, "", "pods", "log", "d", "a" }, AUDIT_REQUEST_RESPONSE },
		{ { "u", "x", "get", NULL, "", "pods", "", "d", "kube-system" }, AUDIT_METADATA },
		{ { "u", "x", "list", NULL, "rbac.authorization.k8s.io", "clusterroles", "", "", "" }, AUDIT_REQUEST },
		{ { "u", "x", "list", NULL, "rbac.authorization.k8s.io", "roles", "", "", "a" }, AUDIT_NONE },
	};
	struct audit_policy *p = NULL;
	str warning;
	struct err err = ERR_INIT;
	CHECK_INT(audit_policy_parse(str_of(policy), &p, &warning, &err), 0);
	CHECK_STR(warning, "");
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct asked *c = &t[i].c;
		str group = str_of(c->group);
		struct request q = {
			.user = { .name = str_of(c->user), .groups = &group, .n_groups = 1 }, .is_resource = !c->path, .method = str_of(c->verb),
			.verb_text = str_of(c->verb), .path = str_of(c->path), .group = str_of(c->api_group), .resource = str_of(c->resource),
			.subresource = str_of(c->subresource), .name = str_of(c->name), .namespace = str_of(c->namespace),
		};
		struct audit_verdict v = audit_policy_judge(p, &q);
		CHECK_ROW(i, v.level == t[i].level && (v.omit & 1U << AUDIT_STAGE_REQUEST_RECEIVED));
		CHECK_ROW(i, v.omit_managed_fields == (v.level != AUDIT_REQUEST_RESPONSE));
		CHECK_ROW(i, !(v.omit & 1U << AUDIT_STAGE_RESPONSE_STARTED) == (i != 5));
	}
	audit_policy_free(p);
}

#define HEAD "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

TEST(audit_policies_that_are_refused)
{
	static const struct { const char *text, *want; } t[] = {
		{ HEAD, "loaded illegal policy with 0 rules" },
		{ "kind: Policy\nrules: []\n", "failed decoding: Object 'apiVersion' is missing in '{\"kind\":\"Policy\",\"rules\":[]}'" },
		{ "apiVersion: audit.k8s.io/v2\nkind: Policy\n",
		  "failed decoding: no kind \"Policy\" is registered for version \"audit.k8s.io/v2\" in scheme \"k8s.io/apiserver/pkg/audit/scheme.go:30\"" },
		{ HEAD "rules: [{}]\n", "rules[0].level: Required value" },
		{ HEAD "rules: [{level: All}]\n",
		  "rules[0].level: Unsupported value: \"All\": supported values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\"" },
		{ HEAD "omitStages: [Never]\nrules: [{level: None, nonResourceURLs: [x, '/a*b'], namespaces: [ns]}]\n",
		  "[omitStages[0]: Invalid value: \"Never\": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic, "
		  "rules[0].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must begin with a '/' character, "
		  "rules[0].nonResourceURLs[1]: Invalid value: \"/a*b\": non-resource URL wildcards '*' must be the final character of the rule, "
		  "rules[0].nonResourceURLs: Invalid value: [\"x\",\"/a*b\"]: rules cannot apply to both regular resources and non-resource URLs]" },
		{ HEAD "rules: [{level: None, resources: [{resourceNames: [a]}]}]\n",
		  "rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames requires at least one resource" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct audit_policy *p;
		str warning;
		struct err err = ERR_INIT;
		CHECK_ROW(i, audit_policy_parse(str_of(t[i].text), &p, &warning, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].want);
	}
}

TEST(audit_policies_may_have_unknown_fields)
{
	struct audit_policy *p = NULL;
	str warning;
	CHECK_INT(audit_policy_parse(STR(HEAD "rules: [{level: None, color: red}]\n"), &p, &warning, NULL), 0);
	CHECK_STR(warning, "strict decoding error: unknown field \"rules[0].color\"");
	audit_policy_free(p);
}
