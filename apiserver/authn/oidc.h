/* Tokens of one OpenID provider, as an element "jwt" of an AuthenticationConfiguration describes it. */
#ifndef C8S_APISERVER_AUTHN_OIDC_H
#define C8S_APISERVER_AUTHN_OIDC_H

#include "apiserver/authn/authn_priv.h"

/* All that are accepted with a configuration; NULL-ended. */
extern const char *const oidc_algorithms[];

/* Whether options of --oidc-... were given. */
bool oidc_flags_set(const struct authn_options *o);

/*
 * authenticator: a JWTAuthenticator that has been checked; copied. algorithms: NULL-ended, live as long as the server. The
 * provider need not be there yet: the way's run looks for it until it is found.
 */
int oidc_way_of(struct val authenticator, const char *const *algorithms, struct authn_way *ret, struct err *err);

/* authn_config.c: -ERR_INVALID with all that is wrong with an AuthenticationConfiguration, in Kubernetes' words. */
int authn_config_check(struct apiserver *s, struct arena *a, struct val config, struct err *err);

#endif
