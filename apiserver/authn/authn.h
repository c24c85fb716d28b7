/*
 * authn/: who asks. The ways to tell are tried one after the other, and the first that knows wins:
 *
 *	request_header.c   a proxy that we trust says it in headers; authorities.h: whom certificates are believed from
 *	x509.c             a client certificate
 *	token_file.h       a token of --token-auth-file
 *	service_account.c  a token that this cluster has issued (jwt.h signs them, jwt_verify.h checks them, jwt_keys.c knows keys)
 *	bootstrap_token.c  a token in a Secret, that nodes join with
 *	oidc.h             a token of an OpenID provider: oidc_provider.h, oidc_claims.h; issuers.c: of all that a file names
 *	webhook.c          a token that another server knows
 *	authn.c            the stage: all of them in turn, and strangers; metrics.c: how often who is known
 *	token_request.c    serviceaccounts/token: a new token of this cluster
 *	authn_config.c     AuthenticationConfiguration, that file
 *	openid.c           how others check the tokens of this cluster: /.well-known/openid-configuration, /openid/v1/jwks
 *	token_review.c     the same question, asked by a client: TokenReview; and SelfSubjectReview
 */
#ifndef C8S_APISERVER_AUTHN_AUTHN_H
#define C8S_APISERVER_AUTHN_AUTHN_H

#include "apiserver/request.h"

struct authn;

/* Flags, in Kubernetes' words. Lists end with NULL; NULL and 0 stand for what was not said. */
struct authn_options {
	const char *token_auth_file;
	bool anonymous_auth, anonymous_auth_given; /* given: also said by the flag */
	const char *requestheader_client_ca_file;
	const char *const *requestheader_allowed_names, *const *requestheader_username_headers,
		*const *requestheader_group_headers, *const *requestheader_extra_headers_prefix,
		*const *requestheader_uid_headers;
	const char *const *service_account_issuers; /* the first one signs; never empty */
	const char *const *service_account_key_files; /* that tokens are checked with; none: the public part of the signing key */
	const char *service_account_signing_key_file, *service_account_jwks_uri;
	const char *const *api_audiences;           /* never empty */
	int64_t service_account_max_expiration_ns;
	bool service_account_extend_expiration;     /* tokens in pods live a year, with a warning after an hour */
	bool service_account_lookup;
	bool bootstrap_tokens;
	const char *oidc_issuer_url, *oidc_client_id, *oidc_ca_file, *oidc_username_claim, *oidc_username_prefix,
		*oidc_groups_claim, *oidc_groups_prefix;
	const char *const *oidc_required_claims, *const *oidc_signing_algs;
	const char *webhook_config_file, *webhook_version; /* version: "v1" or "v1beta1" */
	int64_t webhook_cache_ttl_ns;
	const char *config_file;                    /* --authentication-config */
};

/* Reads keys and configurations. On failure the message names the flag or file. */
int authn_new(struct apiserver *s, struct authn **ret, struct err *err);
void authn_free(struct authn *n); /* NULL is fine */
/* (suspends, until canceled) Files are read again when they change, keys of providers are fetched again. */
int authn_run(struct apiserver *s, struct err *err);

/* Whom a token stands for. */
struct authn_identity {
	struct user user;
	const str *audiences;         /* of those that were asked for, the ones that the token is meant for */
	size_t n_audiences;
	struct val annotations;       /* for the audit event of the request, by key */
	str warning;                  /* for the bearer; empty: none */
};

/*
 * (suspends) Who a token says that its bearer is, for these audiences (none: the server's own). 1: that is known, all texts
 * in the arena or longer-lived; 0: nobody knows this token; < 0: one who may know could not tell or says that it is bad.
 */
int authn_token(struct apiserver *s, struct arena *a, str token, const str *audiences, size_t n_audiences,
		struct authn_identity *ret, struct err *err);

/* Who was known and who was not, in the text form of metrics.h. */
void authn_metrics(const struct authn *n, struct buf *b);

/* Answers to GET /.well-known/openid-configuration and /openid/v1/jwks. */
int openid_configuration_answer(struct request *q, struct err *err);
int openid_keys_answer(struct request *q, struct err *err);
/* POST of serviceaccounts/token (subresource.h). */
int token_request_handle(struct request *q, struct err *err);
/* Creates of TokenReview and SelfSubjectReview (subresource.h). */
int token_review_handle(struct request *q, struct err *err);
int self_review_handle(struct request *q, struct err *err);

/* A user with one group more, unless it is there already. */
void user_add_group(struct arena *a, struct user *u, str group);

#endif
