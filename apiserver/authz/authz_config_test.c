#include "apiserver/authz/authz_priv.h"
#include "base/test.h"

#define HEAD "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
#define HOOK HEAD "authorizers:\n- type: Webhook\n  name: hook\n  webhook:\n"
#define HOOK_REST                                                                                             \
	"    timeout: 3s\n    subjectAccessReviewVersion: v1\n    failurePolicy: Deny\n    connectionInfo:\n" \
	"      type: KubeConfigFile\n      kubeConfigFile: "
#define NAME_RULE                                                                                                             \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " \
	"end with an alphanumeric character (e.g. 'example.com', regex used for validation is "                                \
	"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

static int read_text(const char *yaml, struct authz_chain *c, unsigned *types, struct err *err)
{
	struct apiserver s = { .options.authz.config_file = "file" };
	*c = (struct authz_chain){ .refs = 1 };
	return authz_config_read(&s, str_of(yaml), c, types, err);
}

TEST(authz_config_refuses)
{
	static const struct { const char *yaml, *message; } t[] = {
		{ "apiVersion: v1\nkind: Pod\n", "failed to load AuthorizationConfiguration from file: no kind \"Pod\" is registered "
		  "for version \"v1\"" },
		{ "apiVersion: apiserver.config.k8s.io/v2\nkind: AuthorizationConfiguration\n", "failed to load "
		  "AuthorizationConfiguration from file: no kind \"AuthorizationConfiguration\" is registered for version "
		  "\"apiserver.config.k8s.io/v2\"" },
		{ HEAD "authorizers: []\nfoo: 1\n", "failed to load AuthorizationConfiguration from file: strict decoding error: "
		  "unknown field \"foo\"" },
		{ HEAD, "authorizers: Required value: at least one authorization mode must be defined" },
		{ HEAD "authorizers:\n- name: x\n", "authorizers[0].type: Required value" },
		{ HEAD "authorizers:\n- type: Foo\n  name: foo\n", "authorizers[0].type: Unsupported value: \"Foo\": supported values: "
		  "\"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"" },
		{ HEAD "authorizers:\n- type: AlwaysAllow\n  name: alwaysallow\n- type: AlwaysAllow\n  name: b\n",
		  "authorizers[1].type: Duplicate value: \"AlwaysAllow\"" },
		{ HEAD "authorizers:\n- type: AlwaysAllow\n", "authorizers[0].name: Required value" },
		{ HEAD "authorizers:\n- type: AlwaysAllow\n  name: x\n- type: AlwaysDeny\n  name: x\n",
		  "authorizers[1].name: Duplicate value: \"x\"" },
		{ HEAD "authorizers:\n- type: AlwaysAllow\n  name: Foo\n",
		  "authorizers[0].name: Invalid value: \"Foo\": authorizer name is invalid: " NAME_RULE },
		{ HEAD "authorizers:\n- type: AlwaysAllow\n  name: foo\n",
		  "expected name alwaysallow for authorizer AlwaysAllow instead of foo" },
		{ HEAD "authorizers:\n- type: AlwaysAllow\n  name: foo\n- type: AlwaysDeny\n  name: bar\n",
		  "[expected name alwaysallow for authorizer AlwaysAllow instead of foo, expected name alwaysdeny for authorizer "
		  "AlwaysDeny instead of bar]" },
		{ HEAD "authorizers:\n- type: AlwaysAllow\n  name: alwaysallow\n  webhook: {timeout: 3s}\n",
		  "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook" },
		{ HEAD "authorizers:\n- type: Webhook\n  name: x\n", "authorizers[0].webhook: Required value: required when type=Webhook" },
		{ HEAD "authorizers:\n- type: ABAC\n  name: abac\n", "authorizers[0].type: Forbidden: ABAC is not supported by c8s" },
		{ HOOK "    authorizedTTL: -1s\n" HOOK_REST "/dev/null\n",
		  "[authorizers[0].authorizedTTL: Invalid value: \"-1s\": must be > 0s, authorizers[0].connectionInfo.kubeConfigFile: "
		  "Invalid value: \"/dev/null\": must be a regular file]" },
		{ HOOK "    unauthorizedTTL: -1m\n" HOOK_REST "conf\n",
		  "[authorizers[0].unauthorizedTTL: Invalid value: \"-1m0s\": must be > 0s, "
		  "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"conf\": must be an absolute path]" },
		{ HOOK HOOK_REST "/nowhere/x\n", "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"/nowhere/x\": error "
		  "loading file: stat /nowhere/x: no such file or directory" },
		{ HOOK "    timeout: 31s\n    subjectAccessReviewVersion: v2\n    failurePolicy: Ask\n    connectionInfo: {type: X}\n",
		  "[authorizers[0].timeout: Invalid value: \"31s\": must be > 0s and <= 30s, "
		  "authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\", "
		  "authorizers[0].failurePolicy: Unsupported value: \"Ask\": supported values: \"NoOpinion\", \"Deny\", "
		  "authorizers[0].connectionInfo.type: Unsupported value: {\"Type\":\"X\",\"KubeConfigFile\":null}: supported values: \"InClusterConfig\", "
		  "\"KubeConfigFile\"]" },
		{ HOOK "    timeout: 0s\n", "[authorizers[0].timeout: Required value, authorizers[0].subjectAccessReviewVersion: "
		  "Required value, authorizers[0].failurePolicy: Required value, authorizers[0].connectionInfo.type: Required value]" },
		{ HOOK "    timeout: 3s\n    subjectAccessReviewVersion: v1\n    failurePolicy: Deny\n    connectionInfo: {type: "
		  "InClusterConfig}\n", "authorizers[0].connectionInfo.type: Forbidden: InClusterConfig is not supported by c8s; use "
		  "KubeConfigFile" },
		{ HOOK "    matchConditions: [{expression: 'true'}, {expression: ' '}]\n" HOOK_REST "conf\n",
		  "[authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are "
		  "specified, authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"conf\": must be an absolute path, "
		  "authorizers[0].matchConditions[0].expression: Forbidden: match conditions are not supported by c8s yet, "
		  "authorizers[0].matchConditions[1].expression: Required value]" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		static struct authz_chain c;
		struct err err = ERR_INIT;
		unsigned types = 0;
		CHECK_ROW(i, read_text(t[i].yaml, &c, &types, &err) < 0 && !c.n && !types);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
		arena_done(&c.arena);
	}
}

TEST(authz_config_keeps_the_order)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct authz_chain c;
	struct err err = ERR_INIT;
	str reason;
	static const char *const versions[] = { "v1", "v1beta1", "v1alpha1" };
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		str text = arena_printf(&a, "apiVersion: apiserver.config.k8s.io/%s\nkind: AuthorizationConfiguration\nauthorizers:\n"
					"- {type: AlwaysDeny, name: alwaysdeny}\n- {type: AlwaysAllow, name: alwaysallow}\n", versions[i]);
		unsigned types = 0;
		CHECK_INT(read_text(text.p, &c, &types, &err), 0);
		CHECK_INT(c.n, 2);
		CHECK_STR(str_of(c.ways[0].name), "alwaysdeny");
		CHECK_INT(c.ways[0].decide(c.ways[0].self, &a, NULL, &reason, &err), AUTHZ_NO_OPINION);
		CHECK_STR(reason, "Everything is forbidden.");
		CHECK_INT(c.ways[1].decide(c.ways[1].self, &a, NULL, &reason, &err), AUTHZ_ALLOW);
		arena_done(&c.arena);
	}
}

TEST(authz_config_keeps_the_types_of_the_one_before)
{
	static struct authz_chain c;
	struct err err = ERR_INIT;
	unsigned types = 0;
	CHECK_INT(read_text(HEAD "authorizers:\n- {type: AlwaysDeny, name: alwaysdeny}\n- {type: AlwaysAllow, name: alwaysallow}\n", &c,
			    &types, &err), 0);
	arena_done(&c.arena);
	unsigned before = types;
	CHECK(read_text(HEAD "authorizers:\n- {type: AlwaysAllow, name: x}\n", &c, &types, &err) < 0);
	CHECK_STR(err_str(&err), "[expected name alwaysallow for authorizer AlwaysAllow instead of x, missing required types: [AlwaysDeny]]");
	CHECK_INT(types, before);
	arena_done(&c.arena);
}

TEST(authz_config_excludes_flags)
{
	static const char *const modes[] = { "RBAC", NULL };
	struct apiserver s = { .options.authz = { .config_file = "file", .modes = modes } };
	static struct authz_chain c = { .refs = 1 };
	struct err err = ERR_INIT;
	unsigned types = 0;
	CHECK(authz_config_read(&s, STR(HEAD), &c, &types, &err) < 0);
	CHECK_STR(err_str(&err), "--authorization-config can not be specified when --authorization-mode or "
				 "--authorization-webhook-* flags are defined");
}
