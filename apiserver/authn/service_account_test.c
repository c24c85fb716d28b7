/* Tokens of service accounts against a store with accounts and what tokens are bound to. */
#include <openssl/pem.h>

#include "apiserver/authn/authn_priv.h"
#include "apiserver/authn/jwt_testing.h"
#include "apiserver/read_fixture.h"
#include "base/clock.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "machinery/testing.h"

#define NOW INT64_C(1800000000)
#define ACCOUNT "{'kind':'ServiceAccount','apiVersion':'v1','metadata':{'name':'bot','namespace':'ns','uid':'u1'}}"
#define OWN "'kubernetes.io':{'namespace':'ns','serviceaccount':{'name':'bot','uid':'u1'}"

struct world {
	struct read_fixture f;
	struct authn authn;
	struct authn_way way;
	EVP_PKEY *key, *older;
	struct arena arena;
	struct err err;
	struct authn_identity who;
};

static const char *const issuers[] = { "https://here", "https://before", NULL };
static const str here = STR_INIT("https://here");

static void world_init(struct world *w)
{
	*w = (struct world){ .key = EVP_EC_gen("P-256"), .older = EVP_RSA_gen(2048) };
	read_fixture_init(&w->f);
	BIO *bio = BIO_new(BIO_s_mem());
	CHECK(PEM_write_bio_PUBKEY(bio, w->key) == 1 && PEM_write_bio_PUBKEY(bio, w->older) == 1);
	char *pem;
	long n = BIO_get_mem_data(bio, &pem);
	CHECK_INT(jwt_keys_from_pem(str_span(pem, (size_t)n), &w->authn.keys, NULL), 0);
	BIO_free(bio);
	w->authn.audiences = &here;
	w->authn.n_audiences = 1;
	w->f.server.authn = &w->authn;
	w->f.server.options.authn.service_account_issuers = issuers;
	w->f.server.options.authn.service_account_lookup = true;
	CHECK_INT(authn_service_account_way(&w->f.server, &w->way, NULL), 0);
	CHECK(w->way.self);
	clock_virtual_set(clock_now_ns(), NOW * NS_PER_S);
	read_fixture_put(&w->f, STR("serviceaccounts"), "ns/bot", ACCOUNT);
}

static void world_done(struct world *w)
{
	clock_virtual_off();
	jwt_keys_free(w->authn.keys);
	EVP_PKEY_free(w->key);
	EVP_PKEY_free(w->older);
	arena_done(&w->arena);
	read_fixture_done(&w->f);
}

static int ask(struct world *w, str token, const char *audience)
{
	str one = str_of(audience);
	w->who = (struct authn_identity){ 0 };
	err_clear(&w->err);
	return w->way.token(w->way.self, &w->arena, token, &one, 1, &w->who, &w->err);
}

static str token_of(struct world *w, const char *json) { return jwt_make(&w->arena, w->key, "ES256", NULL, testing_json(&w->arena, json)); }

FIBER_TEST(service_account_claims)
{
	static struct world w;
	world_init(&w);
	static const struct {
		const char *claims, *audience;
		int result;
		const char *error;
	} t[] = {
		{ "{'iss':'https://here','aud':['https://here'],'sub':'s'," OWN "}}", "https://here", 1, "" },
		{ "{'iss':'https://before','aud':'https://here'," OWN "}}", "https://here", 1, "" },
		{ "{'iss':'https://here'," OWN "}}", "https://here", 1, "" },
		{ "{'iss':'https://elsewhere','aud':['https://here']," OWN "}}", "https://here", 0, "" },
		{ "{'iss':['https://here']," OWN "}}", "https://here", 0, "" },
		{ "{'iss':'https://here','aud':['a','b']," OWN "}}", "https://here", -ERR_UNAUTHORIZED,
		  "token audiences [\"a\" \"b\"] is invalid for the target audiences [\"https://here\"]" },
		{ "{'iss':'https://here','aud':['a','b']," OWN "}}", "b", 1, "" },
		{ "{'iss':'https://here','aud':7," OWN "}}", "https://here", -ERR_UNAUTHORIZED,
		  "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience" },
		{ "{'iss':'https://here','exp':1799999941," OWN "}}", "https://here", 1, "" },
		{ "{'iss':'https://here','exp':1799999939," OWN "}}", "https://here", -ERR_UNAUTHORIZED,
		  "service account token has expired" },
		{ "{'iss':'https://here','exp':-1e300," OWN "}}", "https://here", -ERR_UNAUTHORIZED,
		  "service account token has expired" },
		{ "{'iss':'https://here','exp':'never'," OWN "}}", "https://here", -ERR_UNAUTHORIZED,
		  "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate" },
		{ "{'iss':'https://here','nbf':1800000059," OWN "}}", "https://here", 1, "" },
		{ "{'iss':'https://here','nbf':1800000061," OWN "}}", "https://here", -ERR_UNAUTHORIZED,
		  "service account token is not valid yet" },
		{ "{'iss':'https://here','iat':1800000061," OWN "}}", "https://here", -ERR_UNAUTHORIZED,
		  "service account token is issued in the future" },
		{ "{'iss':'https://here'}", "https://here", -ERR_UNAUTHORIZED, "serviceaccounts \"\" not found" },
		{ "{'iss':'https://here','kubernetes.io':{'namespace':'ns','serviceaccount':{'name':'bot','uid':'u0'}}}", "https://here",
		  -ERR_UNAUTHORIZED, "service account UID (u1) does not match claim (u0)" },
		{ "{'iss':'https://here','kubernetes.io':{'namespace':'','serviceaccount':{'name':'ns/bot','uid':'u1'}}}", "https://here",
		  -ERR_UNAUTHORIZED, "serviceaccounts \"ns/bot\" not found" },
		{ "{'iss':'https://here'," OWN ",'pod':{'name':'p','uid':'x'}}}", "https://here", -ERR_UNAUTHORIZED,
		  "service account token has been invalidated" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str token = token_of(&w, t[i].claims);
		/* the second time it is one that was seen before */
		for (int k = 0; k < 2; k++) {
			CHECK_ROW(i, ask(&w, token, t[i].audience) == t[i].result);
			CHECK_STR_ROW(i, err_str(&w.err), t[i].error);
		}
	}
	world_done(&w);
}

FIBER_TEST(service_account_keys)
{
	static struct world w;
	world_init(&w);
	str claims = testing_json(&w.arena, "{'iss':'https://here'," OWN "}}");
	EVP_PKEY *stranger = EVP_EC_gen("P-256");
	CHECK_INT(ask(&w, jwt_make(&w.arena, w.older, "RS256", NULL, claims), "https://here"), 1);
	CHECK_INT(ask(&w, jwt_make(&w.arena, w.older, "PS512", NULL, claims), "https://here"), 1);
	CHECK_INT(ask(&w, jwt_make(&w.arena, stranger, "ES256", NULL, claims), "https://here"), -ERR_UNAUTHORIZED);
	CHECK_STR(err_str(&w.err), "go-jose/go-jose: error in cryptographic primitive");
	CHECK_INT(ask(&w, jwt_make(&w.arena, w.key, "ES256", "other", claims), "https://here"), -ERR_NOT_FOUND);
	CHECK_STR(err_str(&w.err), "invalid signature, no keys found");
	str none = jwt_with(&w.arena, jwt_parts(&w.arena, STR("{\"alg\":\"none\"}"), claims), STR_NONE);
	CHECK_INT(ask(&w, none, "https://here"), -ERR_UNAUTHORIZED);
	CHECK_INT(ask(&w, STR("x.y.z"), "https://here"), 0);
	CHECK_INT(ask(&w, STR("opaque"), "https://here"), 0);
	EVP_PKEY_free(stranger);
	world_done(&w);
}

static const char *extra(const struct world *w, const char *key)
{
	static char text[128];
	struct val v = val_at(val_find(w->who.user.extra, str_of(key)), 0);
	(void)snprintf(text, sizeof text, STR_FMT, STR_ARG(val_as_str(v)));
	return text;
}

FIBER_TEST(service_account_user)
{
	static struct world w;
	world_init(&w);
	read_fixture_put(&w.f, STR("pods"), "ns/p", "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'p','namespace':'ns','uid':'pu'}}");
	str token = token_of(&w, "{'iss':'https://here','aud':['https://here'],'jti':'j1','sub':'me'," OWN
			     ",'pod':{'name':'p','uid':'pu'},'node':{'name':'n','uid':'nu'},'warnafter':1799999990}}");
	CHECK_INT(ask(&w, token, "https://here"), 1);
	CHECK_STR(w.who.user.name, "system:serviceaccount:ns:bot");
	CHECK_STR(w.who.user.uid, "u1");
	CHECK_INT(w.who.user.n_groups, 2);
	CHECK_STR(w.who.user.groups[0], "system:serviceaccounts");
	CHECK_STR(w.who.user.groups[1], "system:serviceaccounts:ns");
	CHECK_STR(str_of(extra(&w, "authentication.kubernetes.io/credential-id")), "JTI=j1");
	CHECK_STR(str_of(extra(&w, "authentication.kubernetes.io/pod-name")), "p");
	CHECK_STR(str_of(extra(&w, "authentication.kubernetes.io/pod-uid")), "pu");
	CHECK_STR(str_of(extra(&w, "authentication.kubernetes.io/node-name")), "n");
	CHECK_STR(str_of(extra(&w, "authentication.kubernetes.io/node-uid")), "nu");
	CHECK_INT(w.who.n_audiences, 1);
	CHECK_STR(val_as_str(val_find(w.who.annotations, STR("authentication.k8s.io/stale-token"))),
		  "subject: me, seconds after warning threshold: 10");
	CHECK_INT(ask(&w, token_of(&w, "{'iss':'https://here','sub':'me'," OWN "}}"), "https://here"), 1);
	CHECK_STR(val_as_str(val_find(w.who.annotations, STR("authentication.k8s.io/legacy-token"))), "me");
	CHECK_INT(val_len(w.who.user.extra), 0);
	world_done(&w);
}

#define AT(kind, name, uid, more) \
	"{'kind':'" kind "','apiVersion':'v1','metadata':{'name':'" name "','namespace':'ns','uid':'" uid "'" more "}}"

/* What a token is bound to goes, is going, comes back as another. */
FIBER_TEST(service_account_bound_objects)
{
	static struct world w;
	world_init(&w);
	static const struct {
		const char *resource, *key, *claim, *there, *leaving, *gone, *again, *changed;
	} t[] = {
		{ "pods", "ns/x", ",'pod':{'name':'x','uid':'1'}", AT("Pod", "x", "1", ""),
		  AT("Pod", "x", "1", ",'deletionTimestamp':'2027-01-15T07:59:01Z'"),
		  AT("Pod", "x", "1", ",'deletionTimestamp':'2027-01-15T07:58:59Z'"), AT("Pod", "x", "2", ""),
		  "pod UID (2) does not match service account pod ref claim (1)" },
		{ "secrets", "ns/x", ",'secret':{'name':'x','uid':'1'}", AT("Secret", "x", "1", ""),
		  AT("Secret", "x", "1", ",'deletionTimestamp':'2027-01-15T07:59:01Z'"),
		  AT("Secret", "x", "1", ",'deletionTimestamp':'2027-01-15T07:58:59Z'"), AT("Secret", "x", "2", ""),
		  "secret UID (2) does not match service account secret ref claim (1)" },
		{ "nodes", "x", ",'node':{'name':'x','uid':'1'}", AT("Node", "x", "1", ""),
		  AT("Node", "x", "1", ",'deletionTimestamp':'2027-01-15T07:59:01Z'"),
		  AT("Node", "x", "1", ",'deletionTimestamp':'2027-01-15T07:58:59Z'"), AT("Node", "x", "2", ""),
		  "node UID (2) does not match service account node ref claim (1)" },
		{ "serviceaccounts", "ns/bot", "", AT("ServiceAccount", "bot", "u1", ""),
		  AT("ServiceAccount", "bot", "u1", ",'deletionTimestamp':'2027-01-15T07:59:01Z'"),
		  AT("ServiceAccount", "bot", "u1", ",'deletionTimestamp':'2027-01-15T07:58:59Z'"), AT("ServiceAccount", "bot", "u2", ""),
		  "service account UID (u2) does not match claim (u1)" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str resource = str_of(t[i].resource);
		bool account = i == 3;
		str token = token_of(&w, arena_printf(&w.arena, "{'iss':'https://here'," OWN "%s}}", t[i].claim).p);
		read_fixture_put(&w.f, resource, t[i].key, t[i].there);
		CHECK_ROW(i, ask(&w, token, "https://here") == 1);
		read_fixture_put(&w.f, resource, t[i].key, t[i].leaving);
		CHECK_ROW(i, ask(&w, token, "https://here") == 1);
		read_fixture_put(&w.f, resource, t[i].key, t[i].gone);
		CHECK_ROW(i, ask(&w, token, "https://here") == -ERR_UNAUTHORIZED);
		CHECK_STR_ROW(i, err_str(&w.err), account ? "service account ns/bot has been deleted" :
							    "service account token has been invalidated");
		read_fixture_put(&w.f, resource, t[i].key, t[i].again);
		CHECK_ROW(i, ask(&w, token, "https://here") == -ERR_UNAUTHORIZED);
		CHECK_STR_ROW(i, err_str(&w.err), t[i].changed);
		read_fixture_put(&w.f, resource, t[i].key, NULL);
		CHECK_ROW(i, ask(&w, token, "https://here") == -ERR_UNAUTHORIZED);
		CHECK_STR_ROW(i, err_str(&w.err), account ? "serviceaccounts \"bot\" not found" :
							    "service account token has been invalidated");
	}
	world_done(&w);
}

#define LEGACY(name) "'kubernetes.io/serviceaccount/" name "'"

FIBER_TEST(service_account_secrets)
{
	static struct world w;
	world_init(&w);
	str token = token_of(&w, "{'iss':'kubernetes/serviceaccount'," LEGACY("namespace") ":'ns'," LEGACY("secret.name") ":'s',"
			     LEGACY("service-account.name") ":'bot'," LEGACY("service-account.uid") ":'u1',"
			     "'sub':'system:serviceaccount:ns:bot'}");
	CHECK_INT(ask(&w, token, "https://here"), -ERR_UNAUTHORIZED);
	CHECK_STR(err_str(&w.err), "Token has been invalidated");
	struct buf encoded = BUF_INIT(1 << 16);
	base64_encode_buf(&encoded, token);
	const char *today = ",'labels':{'kubernetes.io/legacy-token-last-used':'2027-01-15'}",
		   *marked = ",'labels':{'kubernetes.io/legacy-token-invalid-since':'2027-01-01',"
			     "'kubernetes.io/legacy-token-last-used':'2027-01-15'}";
	const struct {
		const char *labels;
		str data, account;
		int result;
		const char *error;
	} t[] = {
		{ today, buf_str(&encoded), STR(ACCOUNT), 1, "" },
		{ today, STR("eA=="), STR(ACCOUNT), -ERR_UNAUTHORIZED, "Token does not match server's copy" },
		{ today, buf_str(&encoded), STR(AT("ServiceAccount", "bot", "u2", "")), -ERR_UNAUTHORIZED,
		  "ServiceAccount UID (u2) does not match claim (u1)" },
		{ marked, buf_str(&encoded), STR(ACCOUNT), -ERR_UNAUTHORIZED,
		  "the token in secret ns/s for service account ns/bot has been marked invalid. Use tokens from the TokenRequest API or "
		  "manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the "
		  "secret to temporarily allow use of this token" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		read_fixture_put(&w.f, STR("serviceaccounts"), "ns/bot", t[i].account.p);
		read_fixture_put(&w.f, STR("secrets"), "ns/s",
				 arena_printf(&w.arena, "{'kind':'Secret','apiVersion':'v1','metadata':{'name':'s','namespace':'ns'%s},"
					      "'data':{'token':'" STR_FMT "'}}", t[i].labels, STR_ARG(t[i].data)).p);
		CHECK_ROW(i, ask(&w, token, "https://here") == t[i].result);
		CHECK_STR_ROW(i, err_str(&w.err), t[i].error);
		if (t[i].result > 0)
			CHECK_STR_ROW(i, w.who.user.name, "system:serviceaccount:ns:bot");
	}
	CHECK_STR(val_as_str(val_find(w.who.annotations, STR("authentication.k8s.io/legacy-token-invalidated"))), "s/ns");
	CHECK_INT(ask(&w, token_of(&w, "{'iss':'kubernetes/serviceaccount','sub':'x'}"), "https://here"), -ERR_UNAUTHORIZED);
	CHECK_STR(err_str(&w.err), "namespace claim is missing");
	buf_done(&encoded);
	world_done(&w);
}
