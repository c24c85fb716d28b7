/* Tokens of an OpenID provider: who its claims say that somebody is. */
#include "apiserver/authn/oidc.h"

#include <stdlib.h>

#include "apiserver/authn/oidc_claims.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { CA_MAX = 1 << 20 };

const char *const oidc_algorithms[] = { "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512", NULL };

struct way {
	struct oidc_provider *provider;
	struct oidc_claims *claims;   /* those that are elsewhere */
};

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
	str *groups = (str *)oidc_texts(a, v, &u->n_groups);
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

/* ---- the way ---- */

static int way_token(void *self, struct arena *a, str token, const str *audiences, size_t n_audiences, struct authn_identity *ret,
		     struct err *err)
{
	struct way *w = self;
	struct val config = oidc_provider_config(w->provider), mappings = val_get(config, claimMappings), claims;
	struct user *u = &ret->user;
	struct jwt peeked;
	int r;
	(void)audiences, (void)n_audiences; /* which of the server's they are is not for the provider to know */
	*ret = (struct authn_identity){ 0 };
	if (jwt_peek(a, token, &peeked, NULL) < 0 || !str_eq(oidc_issuer_of(peeked.claims), oidc_provider_issuer(w->provider)))
		return 0;
	if (!oidc_provider_is_found(w->provider))
		return err_set(err, ERR_UNAVAILABLE, "oidc: authenticator not initialized");
	if ((r = oidc_provider_verify(w->provider, a, &peeked, token, &claims, err)) < 0)
		return err_wrap(err, r, "oidc: verify token");
	if ((r = oidc_claims_expand(w->claims, a, &claims, err)) < 0 || (r = map_name(a, mappings, claims, u, err)) < 0 ||
	    (r = map_groups(a, mappings, claims, u, err)) < 0 || (r = map_uid(mappings, claims, u, err)) < 0 ||
	    (r = check_required(val_get(config, claimValidationRules), claims, err)) < 0)
		return r;
	u->extra = map_extra(a, claims);
	return 1;
}

static bool way_is_ready(const void *self) { return oidc_provider_is_found(((const struct way *)self)->provider); }
static int way_run(void *self, struct err *err) { return oidc_provider_run(((struct way *)self)->provider, err); }

static void way_free(void *self)
{
	struct way *w = self;
	oidc_claims_free(w->claims);
	oidc_provider_free(w->provider);
	free(w);
}

int oidc_way_of(struct val authenticator, const char *const *algorithms, struct authn_way *ret, struct err *err)
{
	struct oidc_provider *provider;
	for (const char *const *one = algorithms; *one; one++) {
		size_t i = 0;
		while (oidc_algorithms[i] && strcmp(oidc_algorithms[i], *one) != 0)
			i++;
		if (!oidc_algorithms[i])
			return err_set(err, ERR_INVALID, "oidc: unsupported signing alg: \"%s\"", *one);
	}
	int r = oidc_provider_new(authenticator, algorithms, &provider, err);
	if (r < 0)
		return r;
	struct way *w = mem_zalloc(sizeof *w);
	w->provider = provider;
	w->claims = oidc_claims_new(provider, val_str(oidc_provider_config(provider), claimMappings, groups, claim));
	*ret = (struct authn_way){ .name = "oidc", .self = w, .token = way_token, .run = way_run, .is_ready = way_is_ready,
				   .free = way_free };
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
