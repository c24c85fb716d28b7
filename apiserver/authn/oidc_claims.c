/*
 * Other issuers are looked for when the first token of theirs comes, and kept. There are few in practice; a provider that names
 * ever new ones is not followed.
 */
#include "apiserver/authn/oidc_claims.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"

enum { OTHERS_MAX = 16 };

struct oidc_claims {
	struct oidc_provider *provider;
	str claim;                    /* the provider's configuration has it */
	struct oidc_provider *others[OTHERS_MAX];
	size_t n;
};

struct oidc_claims *oidc_claims_new(struct oidc_provider *provider, str claim)
{
	struct oidc_claims *c = mem_zalloc(sizeof *c);
	c->provider = provider;
	c->claim = claim;
	return c;
}

void oidc_claims_free(struct oidc_claims *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		oidc_provider_free(c->others[i]);
	free(c);
}

/* The provider of this issuer, with the trust and the audiences of the first. */
static int other_of(struct oidc_claims *c, struct arena *a, str issuer, struct oidc_provider **ret, struct err *err)
{
	struct val first = val_get(oidc_provider_config(c->provider), issuer);
	for (size_t i = 0; i < c->n; i++)
		if (str_eq(oidc_provider_issuer(c->others[i]), issuer)) {
			*ret = c->others[i];
			return 0;
		}
	if (c->n == OTHERS_MAX)
		return err_set(err, ERR_TOO_LARGE, "verifier not initialized for issuer: \"" STR_FMT "\", as there are too many",
			       STR_ARG(str_head(issuer, 250)));
	struct val config = OBJECT(a, F(issuer, OBJECT(a, F(url, VAL_STR(issuer)),
						       F(certificateAuthority, val_get(first, certificateAuthority)),
						       F(audiences, val_get(first, audiences)))));
	int r = oidc_provider_new(config, oidc_provider_algorithms(c->provider), ret, err);
	if (r == 0)
		c->others[c->n++] = *ret;
	return r;
}

/* (suspends) The claims of the token that another server has given. */
static int verify(struct oidc_claims *c, struct arena *a, str url, str token, struct val *ret, struct err *err)
{
	struct oidc_provider *other;
	struct jwt peeked;
	int r = jwt_peek(a, token, &peeked, err);
	if (r < 0)
		return err_wrap(err, r, "getting untrusted issuer from endpoint " STR_FMT " failed for claim \"" STR_FMT "\"",
				STR_ARG(str_head(url, 250)), STR_ARG(c->claim));
	str issuer = oidc_issuer_of(peeked.claims);
	if ((r = other_of(c, a, issuer, &other, err)) < 0 || (r = oidc_provider_find(other, err)) < 0)
		return err_wrap(err, r, "verifying untrusted issuer " STR_FMT " failed", STR_ARG(str_head(issuer, 250)));
	r = oidc_provider_verify(other, a, &peeked, token, ret, err);
	return r < 0 ? err_wrap(err, r, "verify distributed claim token") : 0;
}

/* (suspends) */
static int resolve(struct oidc_claims *c, struct arena *a, struct val source, struct val *claims, struct err *err)
{
	str url = val_as_str(val_find(source, STR("endpoint"))), access = val_as_str(val_find(source, STR("access_token"))), token;
	struct val theirs = VAL_EMPTY;
	if (!url.n)
		return 0; /* the claim may be here, in a token within the token: these are not looked into */
	int r = oidc_provider_fetch_claim(c->provider, a, url, access, &token, err);
	if (r < 0)
		return err_wrap(err, r, "while getting distributed claim \"" STR_FMT "\"", STR_ARG(c->claim));
	if ((r = verify(c, a, url, token, &theirs, err)) < 0)
		return r;
	struct val value = val_find(theirs, c->claim);
	if (!val_exists(value))
		return err_set(err, ERR_UNAUTHORIZED, "jwt returned by distributed claim endpoint \"" STR_FMT
			       "\" did not contain claim: " STR_FMT, STR_ARG(str_head(url, 250)), STR_ARG(c->claim));
	*claims = val_put(a, *claims, atom_make(a, c->claim), value);
	return 0;
}

/* (suspends) */
static int expand(struct oidc_claims *c, struct arena *a, struct val *claims, struct err *err)
{
	struct val names = val_find(*claims, STR("_claim_names")), sources = val_find(*claims, STR("_claim_sources"));
	if (!c->claim.n || val_exists(val_find(*claims, c->claim)) || !val_exists(names))
		return 0;
	if (!val_is(names, VAL_OBJECT))
		return err_set(err, ERR_UNAUTHORIZED, "oidc: error parsing distributed claim names: it is no object");
	if (!val_exists(sources))
		return err_set(err, ERR_UNAUTHORIZED, "oidc: no claim sources");
	if (!val_is(sources, VAL_OBJECT))
		return err_set(err, ERR_UNAUTHORIZED, "oidc: could not parse claim sources: it is no object");
	struct val name = val_find(names, c->claim);
	if (!val_exists(name))
		return 0;
	struct val source = val_find(sources, val_as_str(name));
	if (!val_exists(source))
		return err_set(err, ERR_UNAUTHORIZED, "id token _claim_names contained a source " STR_FMT " missing in _claims_sources",
			       STR_ARG(val_as_str(name)));
	return resolve(c, a, source, claims, err);
}

int oidc_claims_expand(struct oidc_claims *c, struct arena *a, struct val *claims, struct err *err)
{
	int r = expand(c, a, claims, err);
	return r < 0 ? err_wrap(err, r, "oidc: could not expand distributed claims") : 0;
}
