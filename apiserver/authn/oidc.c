/*
 * Tokens of an OpenID provider. Its discovery document says where its keys are; both are fetched over HTTPS, the keys again when a
 * token is signed with one that is not known, and once in a while. Several requests that need them at the same time are one fetch.
 */
#include "apiserver/authn/oidc.h"

#include "apiserver/authn/jwt_verify.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "net/http_client.h"

enum {
	BODY_MAX = 1 << 20,
	CA_MAX = 1 << 20,
	FETCH_MS = 30 * 1000,
	DISCOVER_AGAIN_MS = 10 * 1000,
	REFRESH_MS = 10 * 60 * 1000,
	FETCH_PAUSE_MS = 1000,        /* tokens with wrong signatures cause no more fetches than this */
	EXPIRY_DELTA_S = 30,          /* keys that are valid for no longer than this may be fetched again */
	NBF_LEEWAY_S = 60,
};

const char *const oidc_algorithms[] = { "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512", NULL };

struct provider {
	struct frozen *config;        /* JWTAuthenticator */
	const char *const *algorithms;
	struct tls_context *tls;
	struct http_client *http;
	char *keys_url;               /* NULL: the provider was not found yet */
	struct jwt_keys *keys;        /* NULL: not fetched yet */
	int64_t keys_until_ns;        /* so long the provider says that they stay the same */
	bool fetching, fetched_once;
	unsigned fetches;             /* that have ended */
	int64_t fetched_ns;           /* when the last one ended */
	int fetch_result;
	struct err fetch_err;
	struct fiber_cond fetched;
};

static str issuer_of(const struct provider *p) { return val_str(p->config->val, issuer, url); }

/* ---- fetching ---- */

struct document {
	str body, content_type, cache_control;
};

/* (suspends) what: begins the message of a status that is not 200. */
static int fetch(struct provider *p, struct arena *a, str url, const char *what, struct document *ret, struct err *err)
{
	const struct http1_head *head;
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http_request q = { .method = STR("GET"), .url = url };
	str body;
	int r;
	DEADLINE_SCOPE(FETCH_MS);
	if ((r = http_call_open(p->http, &q, &call, err)) < 0 || (r = http_call_head(call, &head, err)) < 0 ||
	    (r = http_call_read_all(call, BODY_MAX, &body, err)) < 0)
		return r;
	if (head->status != 200)
		return err_set(err, ERR_UNAVAILABLE, "%s%d " STR_FMT ": " STR_FMT, what, head->status, STR_ARG(head->reason),
			       STR_ARG(str_head(body, 200)));
	ret->body = arena_str(a, body);
	ret->content_type = arena_str(a, http_header_find(head->headers, head->n_headers, STR("content-type")));
	ret->cache_control = arena_str(a, http_header_find(head->headers, head->n_headers, STR("cache-control")));
	return 0;
}

/* What was expected to be JSON, and is not. */
static int not_json(const struct document *d, const char *what, int r, struct err *err)
{
	if (str_starts(d->content_type, STR("application/json")))
		return err_wrap(err, r, "%s: got Content-Type = application/json, but could not unmarshal as JSON", what);
	return err_wrap(err, r, "%s: expected Content-Type = application/json, got \"" STR_FMT "\"", what,
			STR_ARG(d->content_type));
}

static str discovery_url(const struct provider *p, struct arena *a)
{
	str other = val_str(p->config->val, issuer, discoveryURL), issuer = issuer_of(p);
	if (other.n)
		return other;
	if (issuer.n && issuer.p[issuer.n - 1] == '/')
		issuer.n--;
	return arena_printf(a, STR_FMT "/.well-known/openid-configuration", STR_ARG(issuer));
}

/* (suspends) */
static int discover(struct provider *p, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct document d;
	struct val v;
	int r = fetch(p, &a, discovery_url(p, &a), "", &d, err);
	if (r < 0)
		return r;
	if ((r = json_decode(&a, d.body, &(const struct json_decode_options){ .sort_keys = true }, &v, err)) < 0)
		return not_json(&d, "oidc: failed to decode provider discovery object", r, err);
	str issuer = val_as_str(val_find(v, STR("issuer"))), keys = val_as_str(val_find(v, STR("jwks_uri")));
	if (!str_eq(issuer, issuer_of(p)))
		return err_set(err, ERR_INVALID,
			       "oidc: issuer did not match the issuer returned by provider, expected \"" STR_FMT "\" got \""
			       STR_FMT "\"", STR_ARG(issuer_of(p)), STR_ARG(issuer));
	if (!keys.n)
		return err_set(err, ERR_INVALID, "provider did not return JWKS URL");
	char *url = mem_alloc(keys.n + 1);
	memcpy(url, keys.p, keys.n);
	url[keys.n] = '\0';
	p->keys_url = url;
	return 0;
}

/* How long a document stays the same, as it says itself; without a word: not at all. */
static int64_t max_age_ns(str cache_control)
{
	static const str word = STR_INIT("max-age=");
	int64_t seconds;
	if (str_find(cache_control, STR("no-store")) >= 0 || str_find(cache_control, STR("no-cache")) >= 0)
		return 0;
	ptrdiff_t at = str_find(cache_control, word);
	if (at < 0)
		return 0;
	str digits = str_skip(cache_control, (size_t)at + word.n);
	size_t n = 0;
	while (n < digits.n && digits.p[n] >= '0' && digits.p[n] <= '9')
		n++;
	return n && n < 10 && str_to_i64(str_head(digits, n), &seconds) ? seconds * NS_PER_S : 0;
}

/* (suspends) */
static int fetch_keys_now(struct provider *p, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct document d;
	struct jwt_keys *keys = NULL;
	int r = fetch(p, &a, str_of(p->keys_url), "oidc: get keys failed: ", &d, err);
	if (r < 0)
		return str_starts(err_str(err), STR("oidc: ")) ? r : err_wrap(err, r, "oidc: get keys failed");
	if ((r = jwt_keys_from_jwks(d.body, &keys, err)) < 0)
		return not_json(&d, "oidc: failed to decode keys", r, err);
	jwt_keys_free(p->keys);
	p->keys = keys;
	p->keys_until_ns = clock_now_ns() + max_age_ns(d.cache_control);
	return 0;
}

/* (suspends) One fetch for all who want it at a time. */
static int fetch_keys(struct provider *p, struct err *err)
{
	int r;
	do {
		unsigned before = p->fetches;
		if (!p->fetching) {
			p->fetching = true;
			err_clear(&p->fetch_err);
			p->fetch_result = fetch_keys_now(p, &p->fetch_err);
			p->fetching = false;
			p->fetched_once = true;
			p->fetched_ns = clock_now_ns();
			p->fetches++;
			fiber_cond_broadcast(&p->fetched);
		}
		while (p->fetches == before)
			if ((r = fiber_cond_wait(&p->fetched, err)) < 0)
				return r;
		/* One who was canceled while fetching for all does not speak for the others. */
	} while (p->fetch_result == -ERR_CANCELED && fiber_check(NULL) == 0);
	if (p->fetch_result < 0 && err)
		*err = p->fetch_err;
	return p->fetch_result;
}

static int provider_run(void *self, struct err *err)
{
	struct provider *p = self;
	int r = 0;
	while (!p->keys_url) {
		struct err e = ERR_INIT;
		if ((r = discover(p, &e)) == -ERR_CANCELED)
			return r;
		if (r < 0)
			log_error("oidc authenticator: initializing plugin", KV("issuer", issuer_of(p)), KV("error", &e));
		if (r < 0 && (r = fiber_sleep_ms(DISCOVER_AGAIN_MS, err)) < 0)
			return r;
	}
	do {
		struct err e = ERR_INIT;
		if (fetch_keys(p, &e) < 0)
			log_warn("ignoring: keys of an OpenID provider cannot be fetched now", KV("issuer", issuer_of(p)),
				 KV("error", &e));
	} while ((r = fiber_sleep_ms(REFRESH_MS, err)) == 0);
	return r;
}

/* ---- verifying ---- */

static int unverified(struct err *err)
{
	return err_set(err, ERR_UNAUTHORIZED, "failed to verify signature: failed to verify id token signature");
}

/* (suspends) */
static int verify_signature(struct provider *p, struct arena *a, str token, struct val *ret, struct err *err)
{
	int64_t now = clock_now_ns();
	int r;
	if (p->keys && jwt_verify(p->keys, p->algorithms, a, token, ret, NULL) == 0)
		return 0;
	bool recent = p->fetched_once && now - p->fetched_ns < FETCH_PAUSE_MS * NS_PER_MS;
	if (p->keys && (recent || now + EXPIRY_DELTA_S * NS_PER_S < p->keys_until_ns))
		return unverified(err);
	if (recent && p->fetch_result < 0 && !p->fetching) {
		if (err)
			*err = p->fetch_err;
		r = p->fetch_result;
	} else {
		r = fetch_keys(p, err);
	}
	if (r < 0)
		return err_wrap(err, r, "failed to verify signature: fetching keys");
	return p->keys && jwt_verify(p->keys, p->algorithms, a, token, ret, NULL) == 0 ? 0 : unverified(err);
}

/* A claim or setting that is one text or several. */
static const str *texts_of(struct arena *a, struct val v, size_t *ret_n)
{
	size_t n = val_is(v, VAL_STRING) ? 1 : val_len(v);
	str *list = ARENA_ARRAY(a, str, n + 1);
	for (size_t i = 0; i < n; i++)
		list[i] = val_is(v, VAL_STRING) ? val_as_str(v) : val_as_str(val_at(v, i));
	*ret_n = val_is(v, VAL_STRING) || val_is(v, VAL_LIST) ? n : 0;
	return list;
}

static int check_audience(const struct provider *p, struct arena *a, struct val claims, struct err *err)
{
	size_t n_own, n_got, n_both;
	const str *own = texts_of(a, val_get(p->config->val, issuer, audiences), &n_own);
	const str *got = texts_of(a, val_find(claims, STR("aud")), &n_got);
	(void)authn_common(a, own, n_own, got, n_got, &n_both);
	if (n_both)
		return 0;
	str got_text = authn_quoted(a, got, n_got);
	if (n_own == 1)
		return err_set(err, ERR_UNAUTHORIZED, "oidc: expected audience \"" STR_FMT "\" got " STR_FMT, STR_ARG(own[0]),
			       STR_ARG(got_text));
	str own_text = authn_quoted(a, own, n_own);
	return err_set(err, ERR_UNAUTHORIZED, "oidc: expected audience in " STR_FMT " got " STR_FMT, STR_ARG(own_text),
		       STR_ARG(got_text));
}

/* As Go prints a time. */
static str go_time(struct arena *a, int64_t seconds)
{
	char text[TIME_TEXT_MAX];
	str t = time_format((struct timestamp){ .seconds = seconds }, text);
	char *copy = (char *)arena_printf(a, STR_FMT " +0000 UTC", STR_ARG(str_head(t, t.n - 1))).p;
	char *between = strchr(copy, 'T');
	if (between)
		*between = ' ';
	return str_of(copy);
}

static bool is_number(struct val v) { return val_is(v, VAL_INT) || val_is(v, VAL_DOUBLE); }

static int check_times(struct arena *a, struct val claims, struct err *err)
{
	int64_t now = clock_wall_ns() / NS_PER_S;
	struct val exp = val_find(claims, STR("exp")), nbf = val_find(claims, STR("nbf"));
	if ((!val_is_nil(exp) && !is_number(exp)) || (!val_is_nil(nbf) && !is_number(nbf)))
		return err_set(err, ERR_UNAUTHORIZED, "oidc: failed to unmarshal claims: a time is not a number");
	int64_t until = is_number(exp) ? val_as_int(exp) : TIME_ZERO_SECONDS;
	if (until < now)
		return err_set(err, ERR_UNAUTHORIZED, "oidc: token is expired (Token Expiry: " STR_FMT ")",
			       STR_ARG(go_time(a, until)));
	if (is_number(nbf) && now + NBF_LEEWAY_S < val_as_int(nbf)) {
		str is = go_time(a, now), from = go_time(a, val_as_int(nbf));
		return err_set(err, ERR_UNAUTHORIZED, "oidc: current time " STR_FMT " before the nbf (not before) time: " STR_FMT,
			       STR_ARG(is), STR_ARG(from));
	}
	return 0;
}

static bool accepts(const struct provider *p, str algorithm)
{
	for (const char *const *one = p->algorithms; *one; one++)
		if (str_eq(str_of(*one), algorithm))
			return true;
	return false;
}

/* (suspends) */
static int verify(struct provider *p, struct arena *a, const struct jwt *peeked, str token, struct val *ret, struct err *err)
{
	int r;
	if (!accepts(p, peeked->algorithm)) {
		size_t n;
		const str *list = authn_list(a, p->algorithms, &n);
		str expected = authn_quoted(a, list, n);
		return err_set(err, ERR_UNAUTHORIZED,
			       "oidc: id token signed with unsupported algorithm, expected " STR_FMT " got \"" STR_FMT "\"",
			       STR_ARG(expected), STR_ARG(peeked->algorithm));
	}
	if ((r = verify_signature(p, a, token, ret, err)) < 0 || (r = check_audience(p, a, *ret, err)) < 0)
		return r;
	return check_times(a, *ret, err);
}

/* ---- from claims to a user ---- */

static const char *json_name(struct val v)
{
	switch (v.type) {
	case VAL_BOOL: return "bool";
	case VAL_STRING: return "string";
	case VAL_LIST: return "array";
	case VAL_OBJECT: return "object";
	default: return "number";
	}
}

/* A claim that must be a text; null is an empty one, as in Go. */
static int text_claim(struct val claims, str name, str *ret, struct err *err)
{
	struct val v = val_find(claims, name);
	*ret = val_as_str(v);
	if (!val_exists(v))
		return err_set(err, ERR_UNAUTHORIZED, "claim not present");
	if (!val_is(v, VAL_STRING) && !val_is(v, VAL_NULL))
		return err_set(err, ERR_UNAUTHORIZED, "json: cannot unmarshal %s into Go value of type string", json_name(v));
	return 0;
}

static int check_email(struct val claims, struct err *err)
{
	struct val verified = val_find(claims, STR("email_verified"));
	if (!val_exists(verified))
		return 0;
	if (!val_is(verified, VAL_BOOL) && !val_is(verified, VAL_NULL))
		return err_set(err, ERR_UNAUTHORIZED,
			       "oidc: parse 'email_verified' claim: json: cannot unmarshal %s into Go value of type bool",
			       json_name(verified));
	return val_as_bool(verified) ? 0 : err_set(err, ERR_UNAUTHORIZED, "oidc: email not verified");
}

static int map_name(struct arena *a, struct val mappings, struct val claims, struct user *u, struct err *err)
{
	str claim = val_str(mappings, username, claim), name;
	int r = text_claim(claims, claim, &name, err);
	if (r < 0)
		return err_wrap(err, r, "oidc: parse username claims \"" STR_FMT "\"", STR_ARG(claim));
	if (str_eq(claim, STR("email")) && (r = check_email(claims, err)) < 0)
		return r;
	u->name = arena_join(a, val_str(mappings, username, prefix), name);
	return 0;
}

/* A list of texts, or a single one. */
static int map_groups(struct arena *a, struct val mappings, struct val claims, struct user *u, struct err *err)
{
	str claim = val_str(mappings, groups, claim), prefix = val_str(mappings, groups, prefix);
	struct val v = val_find(claims, claim);
	bool fits = val_is(v, VAL_STRING) || val_is(v, VAL_NULL) || val_is(v, VAL_LIST);
	if (!claim.n || !val_exists(v))
		return 0;
	VAL_EACH(group, v)
		fits = fits && (val_is(*group, VAL_STRING) || val_is(*group, VAL_NULL));
	if (!fits)
		return err_set(err, ERR_UNAUTHORIZED,
			       "oidc: parse groups claim \"" STR_FMT "\": json: cannot unmarshal %s into Go value of type string",
			       STR_ARG(claim), json_name(v));
	str *groups = (str *)texts_of(a, v, &u->n_groups);
	for (size_t i = 0; i < u->n_groups; i++)
		groups[i] = arena_join(a, prefix, groups[i]);
	u->groups = groups;
	return 0;
}

static int map_uid(struct val mappings, struct val claims, struct user *u, struct err *err)
{
	str claim = val_str(mappings, uid, claim);
	int r = claim.n ? text_claim(claims, claim, &u->uid, err) : 0;
	return r < 0 ? err_wrap(err, r, "oidc: parse uid claim \"" STR_FMT "\"", STR_ARG(claim)) : 0;
}

static struct val map_extra(struct arena *a, struct val claims)
{
	struct val_builder b = val_builder(a);
	str id = val_as_str(val_find(claims, STR("jti")));
	if (!id.n)
		return VAL_EMPTY;
	val_add_member(&b, atom_make(a, STR("authentication.kubernetes.io/credential-id")),
		       LIST(a, VAL_STR(arena_join(a, STR("JTI="), id))));
	return val_end_object(&b);
}

static int check_required(struct val rules, struct val claims, struct err *err)
{
	VAL_EACH(rule, rules) {
		str claim = val_str(*rule, claim), want = val_str(*rule, requiredValue), got;
		if (!val_exists(val_find(claims, claim)))
			return err_set(err, ERR_UNAUTHORIZED, "oidc: required claim " STR_FMT " not present in ID token",
				       STR_ARG(claim));
		int r = text_claim(claims, claim, &got, err);
		if (r < 0)
			return err_wrap(err, r, "oidc: parse claim " STR_FMT, STR_ARG(claim));
		if (!str_eq(got, want))
			return err_set(err, ERR_UNAUTHORIZED,
				       "oidc: required claim " STR_FMT " value does not match. Got = " STR_FMT ", want = " STR_FMT,
				       STR_ARG(claim), STR_ARG(got), STR_ARG(want));
	}
	return 0;
}

/* Groups that another server would have to be asked for. */
static int check_distributed(struct val mappings, struct val claims, struct err *err)
{
	str claim = val_str(mappings, groups, claim);
	if (!claim.n || val_exists(val_find(claims, claim)) ||
	    !val_exists(val_find(val_find(claims, STR("_claim_names")), claim)))
		return 0;
	return err_set(err, ERR_UNAUTHORIZED,
		       "oidc: could not expand distributed claims: c8s does not fetch the claim \"" STR_FMT "\" from elsewhere",
		       STR_ARG(claim));
}

/* ---- the way ---- */

static bool is_issuer(const struct provider *p, str issuer)
{
	/* Google's tokens may name it without the scheme. */
	if (str_eq(issuer, STR("accounts.google.com")))
		issuer = STR("https://accounts.google.com");
	return str_eq(issuer, issuer_of(p));
}

static int provider_token(void *self, struct arena *a, str token, const str *audiences, size_t n_audiences,
			  struct authn_identity *ret, struct err *err)
{
	struct provider *p = self;
	struct val mappings = val_get(p->config->val, claimMappings), claims;
	struct user *u = &ret->user;
	struct jwt peeked;
	int r;
	(void)audiences, (void)n_audiences; /* which of the server's they are is not for the provider to know */
	*ret = (struct authn_identity){ 0 };
	if (jwt_peek(a, token, &peeked, NULL) < 0 || !is_issuer(p, val_as_str(val_find(peeked.claims, STR("iss")))))
		return 0;
	if (!p->keys_url)
		return err_set(err, ERR_UNAVAILABLE, "oidc: authenticator not initialized");
	if ((r = verify(p, a, &peeked, token, &claims, err)) < 0)
		return err_wrap(err, r, "oidc: verify token");
	if ((r = check_distributed(mappings, claims, err)) < 0 || (r = map_name(a, mappings, claims, u, err)) < 0 ||
	    (r = map_groups(a, mappings, claims, u, err)) < 0 || (r = map_uid(mappings, claims, u, err)) < 0 ||
	    (r = check_required(val_get(p->config->val, claimValidationRules), claims, err)) < 0)
		return r;
	u->extra = map_extra(a, claims);
	return 1;
}

static bool provider_is_ready(const void *self) { return ((const struct provider *)self)->keys_url; }

static void provider_free(void *self)
{
	struct provider *p = self;
	if (!p)
		return;
	if (p->http)
		http_client_free(p->http);
	tls_context_free(p->tls);
	jwt_keys_free(p->keys);
	frozen_unref(p->config);
	free(p->keys_url);
	free(p);
}

int oidc_way_of(struct val authenticator, const char *const *algorithms, struct authn_way *ret, struct err *err)
{
	static const char *const alpn[] = { "http/1.1", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (const char *const *one = algorithms; *one; one++) {
		size_t i = 0;
		while (oidc_algorithms[i] && strcmp(oidc_algorithms[i], *one) != 0)
			i++;
		if (!oidc_algorithms[i])
			return err_set(err, ERR_INVALID, "oidc: unsupported signing alg: \"%s\"", *one);
	}
	struct provider *p = mem_zalloc(sizeof *p);
	p->config = val_freeze(authenticator);
	p->algorithms = algorithms;
	fiber_cond_init(&p->fetched, "keys of an OpenID provider");
	str ca = val_str(p->config->val, issuer, certificateAuthority);
	const struct tls_options tls = { .ca_pem = ca.n ? arena_str(&a, ca).p : NULL, .alpn = alpn };
	int r = tls_client_new(&tls, &p->tls, err);
	if (r < 0) {
		provider_free(p);
		return r;
	}
	p->http = http_client_new(&(const struct http_client_options){ .tls = p->tls, .max_idle_per_host = 1 });
	*ret = (struct authn_way){ .name = "oidc", .self = p, .token = provider_token, .run = provider_run,
				   .is_ready = provider_is_ready, .free = provider_free };
	return 0;
}

/* ---- flags ---- */

static bool is_given(const char *text) { return text && *text; }

bool oidc_flags_set(const struct authn_options *o)
{
	const char *const *algs = o->oidc_signing_algs;
	return is_given(o->oidc_issuer_url) || is_given(o->oidc_client_id) || is_given(o->oidc_ca_file) ||
	       is_given(o->oidc_username_prefix) || is_given(o->oidc_groups_claim) || is_given(o->oidc_groups_prefix) ||
	       (o->oidc_required_claims && o->oidc_required_claims[0]) ||
	       (is_given(o->oidc_username_claim) && strcmp(o->oidc_username_claim, "sub") != 0) ||
	       (algs && algs[0] && (strcmp(algs[0], "RS256") != 0 || algs[1]));
}

static int required_of(struct arena *a, const char *const *list, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);
	for (; list && *list; list++) {
		str claim, value;
		if (!str_cut(str_of(*list), '=', &claim, &value))
			return err_set(err, ERR_INVALID, "--oidc-required-claim: malformed pair, expect string=string");
		val_add_item(&b, OBJECT(a, F(claim, VAL_STR(str_trim(claim))), F(requiredValue, VAL_STR(str_trim(value)))));
	}
	*ret = val_end_list(&b);
	return 0;
}

/* The JWTAuthenticator that the flags stand for. */
static int authenticator_of(struct arena *a, const struct authn_options *o, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf ca = BUF_INIT(CA_MAX);
	struct val required, groups = VAL_EMPTY;
	str claim = is_given(o->oidc_username_claim) ? str_of(o->oidc_username_claim) : STR("sub");
	str prefix = str_of(o->oidc_username_prefix);
	int r = required_of(a, o->oidc_required_claims, &required, err);
	if (r < 0)
		return r;
	if (is_given(o->oidc_ca_file) && (r = file_read(o->oidc_ca_file, &ca, err)) < 0)
		return err_wrap(err, r, "--oidc-ca-file");
	/* Names of several providers could be the same, so they have a prefix; addresses are unique. */
	if (!prefix.n && !str_eq(claim, STR("email")))
		prefix = arena_printf(a, "%s#", o->oidc_issuer_url);
	else if (str_eq(prefix, STR("-")))
		prefix = STR("");
	if (is_given(o->oidc_groups_claim))
		groups = OBJECT(a, F(claim, VAL_STR(str_of(o->oidc_groups_claim))),
				F(prefix, VAL_STR(str_of(o->oidc_groups_prefix))));
	*ret = OBJECT(a, F(issuer, OBJECT(a, F(url, VAL_STR(str_of(o->oidc_issuer_url))),
					  F(certificateAuthority, VAL_STR(arena_str(a, buf_str(&ca)))),
					  F(audiences, LIST(a, VAL_STR(str_of(o->oidc_client_id)))))),
		      F(claimValidationRules, required),
		      F(claimMappings, OBJECT(a, F(username, OBJECT(a, F(claim, VAL_STR(claim)), F(prefix, VAL_STR(prefix)))),
					      F(groups, groups))));
	return 0;
}

int authn_oidc_way(struct apiserver *s, struct authn_way *ret, struct err *err)
{
	static const char *const usual[] = { "RS256", NULL };
	const struct authn_options *o = &s->options.authn;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val authenticator;
	int r;
	*ret = (struct authn_way){ .name = "oidc" };
	if (!oidc_flags_set(o))
		return 0;
	if (o->config_file)
		return err_set(err, ERR_INVALID, "authentication-config file and oidc-* flags are mutually exclusive");
	if (!is_given(o->oidc_issuer_url) || !is_given(o->oidc_client_id))
		return err_set(err, ERR_INVALID,
			       "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set");
	if ((r = authenticator_of(&a, o, &authenticator, err)) < 0 ||
	    (r = authn_config_check(s, &a, OBJECT(&a, F(jwt, LIST(&a, authenticator))), err)) < 0)
		return r;
	return oidc_way_of(authenticator, o->oidc_signing_algs && o->oidc_signing_algs[0] ? o->oidc_signing_algs : usual, ret,
			   err);
}
