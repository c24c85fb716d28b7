/*
 * Claims that a token leaves to another server (OpenID Connect Core 1.0, 5.6.2), as some do with many groups: _claim_names says
 * which of _claim_sources has it. What is there is a token of its own, of the same audience, which its own issuer has signed.
 */
#ifndef C8S_APISERVER_AUTHN_OIDC_CLAIMS_H
#define C8S_APISERVER_AUTHN_OIDC_CLAIMS_H

#include "apiserver/authn/oidc_provider.h"

struct oidc_claims;

/* provider: whose tokens these are; borrowed. claim: the one that may be elsewhere; empty: none. */
struct oidc_claims *oidc_claims_new(struct oidc_provider *provider, str claim) NONNULL_RESULT;
void oidc_claims_free(struct oidc_claims *c); /* (suspends) NULL is fine */
/* (suspends) Adds it to the verified claims of a token, if it is elsewhere. */
int oidc_claims_expand(struct oidc_claims *c, struct arena *a, struct val *claims, struct err *err);

#endif
