#include "apiserver/authn/oidc.h"
#include "base/test.h"

#define HEAD "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
#define ISSUER HEAD "jwt:\n- issuer: {url: 'https://i', audiences: [a]}\n"
#define BAD "invalid authentication configuration: "
#define MAPPINGS "  claimMappings: {username: {claim: sub, prefix: ''}}\n"

static int read_text(const char *yaml, struct authn_options o, struct arena *a, struct authn_way *ways, size_t *ret_n,
		     struct authn_anonymous *anonymous, struct err *err)
{
	static const char *const own[] = { "https://own", "https://also", NULL };
	o.config_file = "file";
	o.service_account_issuers = own;
	struct apiserver s = { .options.authn = o };
	int r = authn_config_read(&s, a, str_of(yaml), ways, ret_n, anonymous, err);
	static const str named = STR_INIT("failed to load authentication configuration from file \"file\": ");
	if (r < 0 && str_starts(err_str(err), named))
		r = err_set(err, err->code, "failed: " STR_FMT, STR_ARG(arena_str(a, str_skip(err_str(err), named.n))));
	return r;
}

TEST(authn_config_refuses)
{
	static const struct { const char *yaml, *message; } t[] = {
		{ "", "failed: Object 'Kind' is missing in 'null'" },
		{ HEAD "foo: 1\n", "failed: strict decoding error: unknown field \"foo\"" },
		{ HEAD "jwt: []\njwt: []\n", "failed: strict decoding error: yaml: unmarshal errors:\n  line 4: key \"jwt\" already set in "
		  "map" },
		{ HEAD "jwt:\n- issuer: {audiences: [a]}\n" MAPPINGS, BAD "jwt[0].issuer.url: Required value" },
		{ HEAD "jwt:\n- issuer: {url: 'http://i', audiences: [a]}\n" MAPPINGS,
		  BAD "jwt[0].issuer.url: Invalid value: \"http://i\": URL scheme must be https" },
		{ HEAD "jwt:\n- issuer: {url: 'nothing', audiences: [a]}\n" MAPPINGS,
		  BAD "jwt[0].issuer.url: Invalid value: \"nothing\": URL scheme must be https" },
		{ HEAD "jwt:\n- issuer: {url: 'https://u:p@i?q#f', audiences: [a]}\n" MAPPINGS,
		  BAD "[jwt[0].issuer.url: Invalid value: \"https://u:p@i?q#f\": URL must not contain a username or password, "
		  "jwt[0].issuer.url: Invalid value: \"https://u:p@i?q#f\": URL must not contain a query, "
		  "jwt[0].issuer.url: Invalid value: \"https://u:p@i?q#f\": URL must not contain a fragment]" },
		{ HEAD "jwt:\n- issuer: {url: 'https://i', discoveryURL: 'https://i/', audiences: [a]}\n" MAPPINGS,
		  BAD "jwt[0].issuer.discoveryURL: Invalid value: \"https://i/\": discoveryURL must be different from URL" },
		{ HEAD "jwt:\n- issuer: {url: 'https://i'}\n" MAPPINGS,
		  BAD "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required" },
		{ HEAD "jwt:\n- issuer: {url: 'https://i', audiences: [a, '', a]}\n" MAPPINGS,
		  BAD "[jwt[0].issuer.audiences[1]: Required value, jwt[0].issuer.audiences[2]: Duplicate value: \"a\", "
		  "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences]" },
		{ HEAD "jwt:\n- issuer: {url: 'https://i', audiences: [a], audienceMatchPolicy: All}\n" MAPPINGS,
		  BAD "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"All\": audienceMatchPolicy must be empty or MatchAny for "
		  "single audience" },
		{ HEAD "jwt:\n- issuer: {url: 'https://i', audiences: [a], certificateAuthority: x}\n" MAPPINGS,
		  BAD "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or ECDSA "
		  "certificates" },
		{ HEAD "jwt:\n- issuer: {url: 'https://i', audiences: [a], egressSelectorType: x}\n" MAPPINGS,
		  BAD "jwt[0].issuer.egressSelectorType: Invalid value: \"x\": egress selector must be either controlplane or cluster" },
		{ ISSUER MAPPINGS "- issuer: {url: 'https://i', audiences: [b]}\n" MAPPINGS,
		  BAD "jwt[1].issuer.url: Duplicate value: \"https://i\"" },
		{ HEAD "jwt:\n- issuer: {url: 'https://own', audiences: [a]}\n" MAPPINGS, "issuer.url: Invalid value: \"https://own\": URL "
		  "must not overlap with disallowed issuers: [https://also https://own]" },
		{ ISSUER, BAD "jwt[0].claimMappings.username: Required value: claim or expression is required" },
		{ ISSUER "  claimMappings: {username: {claim: sub}}\n", BAD "jwt[0].claimMappings.username.prefix: Required value: prefix is "
		  "required when claim is set. It can be set to an empty string to disable prefixing" },
		{ ISSUER "  claimMappings: {username: {claim: sub, expression: x}}\n",
		  BAD "jwt[0].claimMappings.username: Invalid value: \"\": claim and expression can't both be set" },
		{ ISSUER "  claimMappings: {username: {expression: claims.sub}}\n",
		  BAD "jwt[0].claimMappings.username.expression: Forbidden: CEL expressions are not supported by c8s yet" },
		{ ISSUER "  claimMappings: {username: {claim: sub, prefix: ''}, uid: {claim: a, expression: b}}\n",
		  BAD "jwt[0].claimMappings.uid: Invalid value: \"\": claim and expression can't both be set" },
		{ ISSUER "  claimMappings: {username: {claim: sub, prefix: ''}, extra: [{key: 'foo.kubernetes.io/x'}, {key: a.io/X, "
		  "valueExpression: x}]}\n",
		  BAD "[jwt[0].claimMappings.extra[0].key: Invalid value: \"foo.kubernetes.io/x\": k8s.io, kubernetes.io and their "
		  "subdomains are reserved for Kubernetes use, jwt[0].claimMappings.extra[0].valueExpression: Required value, "
		  "jwt[0].claimMappings.extra[1].key: Invalid value: \"a.io/X\": must be lowercase, "
		  "jwt[0].claimMappings.extra[1].valueExpression: Forbidden: CEL expressions are not supported by c8s yet]" },
		{ ISSUER MAPPINGS "  claimValidationRules: [{}, {claim: a}, {claim: a, message: m}, {claim: a, expression: e}]\n",
		  BAD "[jwt[0].claimValidationRules[0]: Required value: claim or expression is required, "
		  "jwt[0].claimValidationRules[2].message: Invalid value: \"m\": may not be specified when claim is set, "
		  "jwt[0].claimValidationRules[2].claim: Duplicate value: \"a\", "
		  "jwt[0].claimValidationRules[3]: Invalid value: \"a\": claim and expression can't both be set]" },
		{ ISSUER MAPPINGS "  claimValidationRules: [{expression: e, requiredValue: v}]\n",
		  BAD "[jwt[0].claimValidationRules[0].requiredValue: Invalid value: \"v\": may not be specified when expression is set, "
		  "jwt[0].claimValidationRules[0].expression: Forbidden: CEL expressions are not supported by c8s yet]" },
		{ ISSUER MAPPINGS "  userValidationRules: [{}, {expression: e}]\n",
		  BAD "[jwt[0].userValidationRules[0].expression: Required value, "
		  "jwt[0].userValidationRules[1].expression: Forbidden: CEL expressions are not supported by c8s yet]" },
		{ HEAD "anonymous: {enabled: false, conditions: [{path: /livez}, {path: /readyz}]}\n",
		  BAD "anonymous.conditions: Invalid value: [{\"Path\":\"/livez\"},{\"Path\":\"/readyz\"}]: enabled should be set to true "
		  "when conditions are defined" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		static struct authn_way ways[AUTHN_ISSUERS_MAX];
		struct authn_anonymous anonymous;
		struct err err = ERR_INIT;
		size_t n;
		CHECK_ROW(i, read_text(t[i].yaml, (struct authn_options){ .anonymous_auth = true }, &a, ways, &n, &anonymous, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}

TEST(authn_config_excludes_flags)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct authn_way ways[AUTHN_ISSUERS_MAX];
	struct authn_anonymous anonymous;
	struct err err = ERR_INIT;
	size_t n;
	CHECK(read_text(HEAD, (struct authn_options){ .oidc_issuer_url = "https://x" }, &a, ways, &n, &anonymous, &err) < 0);
	CHECK_STR(err_str(&err), "authentication-config file and oidc-* flags are mutually exclusive");
	CHECK(read_text(HEAD "anonymous: {enabled: true}\n", (struct authn_options){ .anonymous_auth_given = true }, &a, ways, &n, &anonymous, &err) < 0);
	CHECK_STR(err_str(&err), "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in "
				 "authentication configuration file");
}

TEST(authn_config_says_who_strangers_are)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct authn_way ways[AUTHN_ISSUERS_MAX];
	struct authn_anonymous anonymous = { .enabled = true };
	struct err err = ERR_INIT;
	size_t n = 7;
	const struct authn_options o = { .anonymous_auth = true };
	CHECK_INT(read_text(HEAD, o, &a, ways, &n, &anonymous, &err), 0);
	CHECK(n == 0 && anonymous.enabled && anonymous.n_paths == 0);
	CHECK_INT(read_text(HEAD "anonymous: {enabled: true, conditions: [{path: /livez}]}\n", o, &a, ways, &n, &anonymous, &err), 0);
	CHECK(anonymous.enabled && anonymous.n_paths == 1);
	CHECK_STR(anonymous.paths[0], "/livez");
	CHECK_INT(read_text(HEAD "anonymous: {enabled: false}\n", o, &a, ways, &n, &anonymous, &err), 0);
	CHECK(!anonymous.enabled);
}

TEST(oidc_flags_refused)
{
	static const char *const hs256[] = { "HS256", NULL };
	static const char *const pair[] = { "novalue", NULL };
	const struct { struct authn_options o; const char *message; } t[] = {
		{ { .oidc_issuer_url = "https://x" },
		  "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set" },
		{ { .oidc_issuer_url = "https://x", .oidc_client_id = "c", .oidc_signing_algs = hs256 },
		  "oidc: unsupported signing alg: \"HS256\"" },
		{ { .oidc_issuer_url = "http://x", .oidc_client_id = "c" },
		  BAD "jwt[0].issuer.url: Invalid value: \"http://x\": URL scheme must be https" },
		{ { .oidc_issuer_url = "https://x", .oidc_client_id = "c", .oidc_required_claims = pair },
		  "--oidc-required-claim: malformed pair, expect string=string" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct apiserver s = { .options.authn = t[i].o };
		struct authn_way way;
		struct err err = ERR_INIT;
		CHECK_ROW(i, authn_oidc_way(&s, &way, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
	struct apiserver none = { .options.authn = { .oidc_username_claim = "sub" } };
	struct authn_way way;
	CHECK_INT(authn_oidc_way(&none, &way, NULL), 0);
	CHECK(!way.self);
}
