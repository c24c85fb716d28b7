/* One OpenID provider: where it and its keys are, and whether a token is one of its. For oidc.c and oidc_claims.c. */
#ifndef C8S_APISERVER_AUTHN_OIDC_PROVIDER_H
#define C8S_APISERVER_AUTHN_OIDC_PROVIDER_H

#include "apiserver/authn/authn_priv.h"
#include "apiserver/authn/jwt_verify.h"

struct oidc_provider;

/* authenticator: a JWTAuthenticator that has been checked, of which the issuer counts; copied. algorithms live as long as it. */
int oidc_provider_new(struct val authenticator, const char *const *algorithms, struct oidc_provider **ret, struct err *err);
void oidc_provider_free(struct oidc_provider *p); /* (suspends) NULL is fine */

struct val oidc_provider_config(const struct oidc_provider *p);
str oidc_provider_issuer(const struct oidc_provider *p);
const char *const *oidc_provider_algorithms(const struct oidc_provider *p);
bool oidc_provider_is_found(const struct oidc_provider *p);

/* (suspends, until canceled) Looks for the provider until it is found, and after its keys then. */
int oidc_provider_run(struct oidc_provider *p, struct err *err);
/* (suspends) For a provider that nobody runs: looks for it if need be, not again within ten seconds. */
int oidc_provider_find(struct oidc_provider *p, struct err *err);
/*
 * (suspends) The claims of a token, in the arena, if it is the provider's, for one of its audiences, and valid now. peeked: of the
 * same token; that it names the provider as its issuer is for the caller to see to, as it is that the provider has been found.
 */
int oidc_provider_verify(struct oidc_provider *p, struct arena *a, const struct jwt *peeked, str token, struct val *ret,
			 struct err *err);
/* (suspends) What is at this URL, which should be a token, with the provider's trust in servers. */
int oidc_provider_fetch_claim(struct oidc_provider *p, struct arena *a, str url, str access_token, str *ret_jwt, struct err *err);

/* A claim or setting that is one text or several, in the arena. */
const str *oidc_texts(struct arena *a, struct val v, size_t *ret_n);
/* The issuer that a token names; Google's may leave out the scheme. */
static inline str oidc_issuer_of(struct val claims)
{
	str issuer = val_as_str(val_find(claims, STR("iss")));
	return str_eq(issuer, STR("accounts.google.com")) ? STR("https://accounts.google.com") : issuer;
}

#endif
