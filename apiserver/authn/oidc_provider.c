/*
 * A provider's discovery document says where its keys are; both are fetched over HTTPS, the keys again when a token is signed with
 * one that is not known, and once in a while. Several requests that need them at the same time are one fetch.
 */
#include "apiserver/authn/oidc_provider.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/time.h"
#include "net/http_client.h"

enum {
	BODY_MAX = 1 << 20,
	FETCH_MS = 30 * 1000,
	DISCOVER_AGAIN_MS = 10 * 1000,
	REFRESH_MS = 10 * 60 * 1000,
	FETCH_PAUSE_MS = 1000,        /* tokens with wrong signatures cause no more fetches than this */
	EXPIRY_DELTA_S = 30,          /* keys that are valid for no longer than this may be fetched again */
	NBF_LEEWAY_S = 60,
};

struct oidc_provider {
	struct frozen *config;        /* JWTAuthenticator */
	const char *const *algorithms;
	struct tls_context *tls;
	struct http_client *http;
	char *keys_url;               /* NULL: the provider was not found yet */
	bool looking, looked;         /* for it, by oidc_provider_find */
	int64_t looked_ns;
	struct jwt_keys *keys;        /* NULL: not fetched yet */
	int64_t keys_until_ns;        /* so long the provider says that they stay the same */
	bool fetching, fetched_once;
	unsigned fetches;             /* that have ended */
	int64_t fetched_ns;           /* when the last one ended */
	int fetch_result;
	struct err fetch_err;
	struct fiber_cond fetched;
	struct fiber *fetcher;        /* the last one, which may have ended; NULL: never */
};

struct val oidc_provider_config(const struct oidc_provider *p) { return p->config->val; }
str oidc_provider_issuer(const struct oidc_provider *p) { return val_str(p->config->val, issuer, url); }
bool oidc_provider_is_found(const struct oidc_provider *p) { return p->keys_url; }
const char *const *oidc_provider_algorithms(const struct oidc_provider *p) { return p->algorithms; }

/* ---- fetching ---- */

struct document {
	int status;
	str reason, body, content_type, cache_control;
};

/* (suspends) Whatever its status is. */
static int call(struct oidc_provider *p, struct arena *a, str url, str authorization, struct document *ret, struct err *err)
{
	const struct http1_head *head;
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http_header header = { STR("authorization"), authorization };
	const struct http_request q = { .method = STR("GET"), .url = url, .headers = &header, .n_headers = authorization.n ? 1 : 0 };
	str body;
	int r;
	DEADLINE_SCOPE(FETCH_MS);
	if ((r = http_call_open(p->http, &q, &call, err)) < 0 || (r = http_call_head(call, &head, err)) < 0 ||
	    (r = http_call_read_all(call, BODY_MAX, &body, err)) < 0)
		return r;
	*ret = (struct document){ .status = head->status, .reason = arena_str(a, head->reason), .body = arena_str(a, body) };
	ret->content_type = arena_str(a, http_header_find(head->headers, head->n_headers, STR("content-type")));
	ret->cache_control = arena_str(a, http_header_find(head->headers, head->n_headers, STR("cache-control")));
	return 0;
}

/* (suspends) what: begins the message of a status that is not 200. */
static int fetch(struct oidc_provider *p, struct arena *a, str url, const char *what, struct document *ret, struct err *err)
{
	int r = call(p, a, url, STR_NONE, ret, err);
	if (r < 0 || ret->status == 200)
		return r;
	return err_set(err, ERR_UNAVAILABLE, "%s%d " STR_FMT ": " STR_FMT, what, ret->status, STR_ARG(ret->reason),
		       STR_ARG(str_head(ret->body, 200)));
}

int oidc_provider_fetch_claim(struct oidc_provider *p, struct arena *a, str url, str access_token, str *ret_jwt, struct err *err)
{
	enum { OK = 200, IM_USED = 226 };
	struct document d;
	str authorization = access_token.n ? arena_join(a, STR("Bearer "), access_token) : STR_NONE;
	int r = call(p, a, url, authorization, &d, err);
	if (r < 0)
		return r;
	if (d.status < OK || d.status > IM_USED)
		return err_set(err, ERR_UNAUTHORIZED, "error while getting distributed claim JWT: %d " STR_FMT, d.status,
			       STR_ARG(d.reason));
	*ret_jwt = d.body;
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

static str discovery_url(const struct oidc_provider *p, struct arena *a)
{
	str other = val_str(p->config->val, issuer, discoveryURL), issuer = oidc_provider_issuer(p);
	if (other.n)
		return other;
	if (issuer.n && issuer.p[issuer.n - 1] == '/')
		issuer.n--;
	return arena_printf(a, STR_FMT "/.well-known/openid-configuration", STR_ARG(issuer));
}

/* (suspends) */
static int discover(struct oidc_provider *p, struct err *err)
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
	if (!str_eq(issuer, oidc_provider_issuer(p)))
		return err_set(err, ERR_INVALID,
			       "oidc: issuer did not match the issuer returned by provider, expected \"" STR_FMT "\" got \""
			       STR_FMT "\"", STR_ARG(oidc_provider_issuer(p)), STR_ARG(issuer));
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
static int fetch_keys_now(struct oidc_provider *p, struct err *err)
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

static int fetch_run(void *arg)
{
	struct oidc_provider *p = arg;
	err_clear(&p->fetch_err);
	p->fetch_result = fetch_keys_now(p, &p->fetch_err);
	p->fetching = false;
	p->fetched_once = true;
	p->fetched_ns = clock_now_ns();
	p->fetches++;
	fiber_cond_broadcast(&p->fetched);
	return 0;
}

/*
 * (suspends) One fetch for all who want it at a time; on a fiber of its own, because a request's end or its short timeout, which
 * strangers choose, must not be what the others hear.
 */
static int fetch_keys(struct oidc_provider *p, struct err *err)
{
	unsigned before = p->fetches;
	int r;
	if (!p->fetching) {
		if (p->fetcher)
			(void)fiber_stop(TAKE(p->fetcher));
		if ((r = fiber_spawn(fetch_run, p, &p->fetcher, err, "OpenID keys")) < 0)
			return r;
		p->fetching = true;
	}
	while (p->fetches == before)
		if ((r = fiber_cond_wait(&p->fetched, err)) < 0)
			return r;
	if (p->fetch_result < 0 && err)
		*err = p->fetch_err;
	return p->fetch_result;
}

int oidc_provider_find(struct oidc_provider *p, struct err *err)
{
	struct err e = ERR_INIT;
	int64_t now = clock_now_ns();
	bool recent = p->looked && now - p->looked_ns < DISCOVER_AGAIN_MS * NS_PER_MS;
	if (!p->keys_url && !p->looking && !recent) {
		p->looking = p->looked = true;
		p->looked_ns = now;
		if (discover(p, &e) < 0)
			log_error("oidc authenticator: async token verifier", KV("issuer", oidc_provider_issuer(p)), KV("error", &e));
		p->looking = false;
		if (!p->keys_url && fiber_check(NULL) < 0)
			p->looked = false; /* we had no time: that says nothing about the provider */
	}
	return p->keys_url ? 0 : err_set(err, ERR_UNAVAILABLE, "verifier not initialized for issuer: \"" STR_FMT "\"",
					 STR_ARG(oidc_provider_issuer(p)));
}

int oidc_provider_run(struct oidc_provider *p, struct err *err)
{
	int r = 0;
	while (!p->keys_url) {
		struct err e = ERR_INIT;
		if ((r = discover(p, &e)) == -ERR_CANCELED)
			return r;
		if (r < 0)
			log_error("oidc authenticator: initializing plugin", KV("issuer", oidc_provider_issuer(p)), KV("error", &e));
		if (r < 0 && (r = fiber_sleep_ms(DISCOVER_AGAIN_MS, err)) < 0)
			return r;
	}
	do {
		struct err e = ERR_INIT;
		if (fetch_keys(p, &e) < 0)
			log_warn("ignoring: keys of an OpenID provider cannot be fetched now", KV("issuer", oidc_provider_issuer(p)),
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
static int verify_signature(struct oidc_provider *p, struct arena *a, str token, struct val *ret, struct err *err)
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

const str *oidc_texts(struct arena *a, struct val v, size_t *ret_n)
{
	size_t n = val_is(v, VAL_STRING) ? 1 : val_len(v);
	str *list = ARENA_ARRAY(a, str, n + 1);
	for (size_t i = 0; i < n; i++)
		list[i] = val_is(v, VAL_STRING) ? val_as_str(v) : val_as_str(val_at(v, i));
	*ret_n = val_is(v, VAL_STRING) || val_is(v, VAL_LIST) ? n : 0;
	return list;
}

static int check_audience(const struct oidc_provider *p, struct arena *a, struct val claims, struct err *err)
{
	size_t n_own, n_got, n_both;
	const str *own = oidc_texts(a, val_get(p->config->val, issuer, audiences), &n_own);
	const str *got = oidc_texts(a, val_find(claims, STR("aud")), &n_got);
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

static bool accepts(const struct oidc_provider *p, str algorithm)
{
	for (const char *const *one = p->algorithms; *one; one++)
		if (str_eq(str_of(*one), algorithm))
			return true;
	return false;
}

int oidc_provider_verify(struct oidc_provider *p, struct arena *a, const struct jwt *peeked, str token, struct val *ret,
			 struct err *err)
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

/* ---- making ---- */

void oidc_provider_free(struct oidc_provider *p)
{
	if (!p)
		return;
	if (p->fetcher)
		(void)fiber_stop(TAKE(p->fetcher));
	if (p->http)
		http_client_free(p->http);
	tls_context_free(p->tls);
	jwt_keys_free(p->keys);
	frozen_unref(p->config);
	free(p->keys_url);
	free(p);
}

int oidc_provider_new(struct val authenticator, const char *const *algorithms, struct oidc_provider **ret, struct err *err)
{
	static const char *const alpn[] = { "http/1.1", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct oidc_provider *p = mem_zalloc(sizeof *p);
	p->config = val_freeze(authenticator);
	p->algorithms = algorithms;
	fiber_cond_init(&p->fetched, "keys of an OpenID provider");
	str ca = val_str(p->config->val, issuer, certificateAuthority);
	const struct tls_options tls = { .ca_pem = ca.n ? arena_str(&a, ca).p : NULL, .alpn = alpn };
	int r = tls_client_new(&tls, &p->tls, err);
	if (r < 0) {
		oidc_provider_free(p);
		return r;
	}
	p->http = http_client_new(&(const struct http_client_options){ .tls = p->tls, .max_idle_per_host = 1 });
	*ret = p;
	return 0;
}
