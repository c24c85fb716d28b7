/* Between the files of authn/. */
#ifndef C8S_APISERVER_AUTHN_AUTHN_PRIV_H
#define C8S_APISERVER_AUTHN_AUTHN_PRIV_H

#include "apiserver/apiserver.h"
#include "apiserver/authn/authn.h"

/* One who may know whom a token stands for: as authn_token() without the rest of the chain. */
struct authn_way {
	const char *name;
	void *self;
	int (*token)(void *self, struct arena *a, str token, const str *audiences, size_t n_audiences,
		     struct authn_identity *ret, struct err *err);
	int (*run)(void *self, struct err *err); /* (suspends, until canceled) looks after itself; NULL: nothing to do */
	void (*free)(void *self);
};

enum { AUTHN_WAYS_MAX = 72 }; /* 64 issuers of a configuration, and the others */

/* Each makes one way; self is NULL afterwards when the options ask for none. */
int authn_token_file_way(struct apiserver *s, struct authn_way *ret, struct err *err);
int authn_service_account_way(struct apiserver *s, struct authn_way *ret, struct err *err);
int authn_bootstrap_way(struct apiserver *s, struct authn_way *ret, struct err *err);
/* The provider of the --oidc-... flags. */
int authn_oidc_way(struct apiserver *s, struct authn_way *ret, struct err *err);
int authn_webhook_way(struct apiserver *s, struct authn_way *ret, struct err *err);

/* What an AuthenticationConfiguration says beside its issuers. */
struct authn_anonymous {
	bool enabled;
	const str *paths;             /* that strangers may ask for; none: all */
	size_t n_paths;
};

/* Reads --authentication-config: one way per issuer into ways, and who strangers are. */
int authn_config_read(struct apiserver *s, struct arena *a, struct authn_way *ways, size_t max, size_t *ret_n,
		      struct authn_anonymous *ret_anonymous, struct err *err);

#endif
