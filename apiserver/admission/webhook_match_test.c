#include "apiserver/admission/webhook_match.h"

#include "base/test.h"
#include "codec/codec.h"

static struct val parse(struct arena *a, const char *json)
{
	struct val v;
	CHECK_INT(json_decode(a, str_of(json), &(struct json_decode_options){ 0 }, &v, NULL), 0);
	return v;
}

#define RULE(operations, groups, versions, resources) \
	"{\"operations\":[" operations "],\"apiGroups\":[" groups "],\"apiVersions\":[" versions "],\"resources\":[" resources "]}"
#define SCOPED(scope, resources) \
	"{\"operations\":[\"*\"],\"apiGroups\":[\"*\"],\"apiVersions\":[\"*\"],\"resources\":[" resources "],\"scope\":\"" scope "\"}"

TEST(webhook_rules_match)
{
#define POD { ADMISSION_CREATE, STR_INIT(""), STR_INIT("v1"), STR_INIT("pods"), STR_INIT(""), STR_INIT("n") }
#define EXEC { ADMISSION_CONNECT, STR_INIT(""), STR_INIT("v1"), STR_INIT("pods"), STR_INIT("exec"), STR_INIT("n") }
#define SCALE { ADMISSION_UPDATE, STR_INIT("apps"), STR_INIT("v1"), STR_INIT("deployments"), STR_INIT("scale"), STR_INIT("n") }
#define NODE { ADMISSION_DELETE, STR_INIT(""), STR_INIT("v1"), STR_INIT("nodes"), STR_INIT(""), STR_INIT("") }
#define NAMESPACE { ADMISSION_UPDATE, STR_INIT(""), STR_INIT("v1"), STR_INIT("namespaces"), STR_INIT(""), STR_INIT("n") }
	static const struct {
		const char *rule;
		struct hook_target target;
		bool want;
	} t[] = {
		{ RULE("\"CREATE\"", "\"\"", "\"v1\"", "\"pods\""), POD, true },
		{ RULE("\"UPDATE\",\"CREATE\"", "\"\"", "\"v1\"", "\"pods\""), POD, true },
		{ RULE("\"UPDATE\"", "\"\"", "\"v1\"", "\"pods\""), POD, false },
		{ RULE("\"*\"", "\"*\"", "\"*\"", "\"*\""), POD, true },
		{ RULE("\"*\"", "\"apps\"", "\"*\"", "\"*\""), POD, false },
		{ RULE("\"*\"", "\"*\"", "\"v1beta1\"", "\"*\""), POD, false },
		{ RULE("\"*\"", "\"*\"", "\"*\"", ""), POD, false },
		{ RULE("", "\"*\"", "\"*\"", "\"*\""), POD, false },
		/* "*" is every resource, but no subresource */
		{ RULE("\"*\"", "\"*\"", "\"*\"", "\"*\""), EXEC, false },
		{ RULE("\"*\"", "\"*\"", "\"*\"", "\"pods\""), EXEC, false },
		{ RULE("\"*\"", "\"*\"", "\"*\"", "\"pods/exec\""), EXEC, true },
		{ RULE("\"CONNECT\"", "\"*\"", "\"*\"", "\"pods/*\""), EXEC, true },
		{ RULE("\"CREATE\"", "\"*\"", "\"*\"", "\"pods/*\""), EXEC, false },
		{ RULE("\"*\"", "\"*\"", "\"*\"", "\"*/*\""), EXEC, true },
		/* and "pods/" with a star is pods, too */
		{ RULE("\"*\"", "\"*\"", "\"*\"", "\"pods/*\""), POD, true },
		{ RULE("\"*\"", "\"*\"", "\"*\"", "\"*/*\""), POD, true },
		{ RULE("\"*\"", "\"*\"", "\"*\"", "\"*/scale\""), SCALE, true },
		{ RULE("\"*\"", "\"*\"", "\"*\"", "\"*/status\""), SCALE, false },
		{ SCOPED("*", "\"*\""), NODE, true },
		{ SCOPED("Cluster", "\"*\""), NODE, true },
		{ SCOPED("Namespaced", "\"*\""), NODE, false },
		{ SCOPED("Cluster", "\"*\""), POD, false },
		{ SCOPED("Namespaced", "\"*\""), POD, true },
		/* a namespace is in itself, and yet in none */
		{ SCOPED("Cluster", "\"*\""), NAMESPACE, true },
		{ SCOPED("Namespaced", "\"*\""), NAMESPACE, false },
		{ SCOPED("Other", "\"*\""), POD, false },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, hook_rule_matches(parse(&a, t[i].rule), &t[i].target) == t[i].want);
	struct hook_target pod = POD;
	struct val both = LIST(&a, parse(&a, RULE("\"DELETE\"", "\"*\"", "\"*\"", "\"*\"")), parse(&a, SCOPED("*", "\"pods\"")));
	CHECK(hook_rules_match(both, &pod));
	CHECK(!hook_rules_match(VAL_EMPTY, &pod));
}

TEST(webhook_configurations_are_exempt)
{
	static const struct {
		str group, resource;
		bool want;
	} t[] = {
		{ STR_INIT("admissionregistration.k8s.io"), STR_INIT("validatingwebhookconfigurations"), true },
		{ STR_INIT("admissionregistration.k8s.io"), STR_INIT("mutatingadmissionpolicybindings"), true },
		{ STR_INIT("admissionregistration.k8s.io"), STR_INIT("others"), false },
		{ STR_INIT("example.com"), STR_INIT("validatingwebhookconfigurations"), false },
		{ STR_INIT(""), STR_INIT("pods"), false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct request q = { .group = t[i].group, .resource = t[i].resource };
		CHECK_ROW(i, hook_is_exempt(&q) == t[i].want);
	}
}
