/* Between the files of authn/. */
#ifndef C8S_APISERVER_AUTHN_AUTHN_PRIV_H
#define C8S_APISERVER_AUTHN_AUTHN_PRIV_H

#include "apiserver/apiserver.h"
#include "apiserver/authn/authn.h"

struct jwt_keys;
struct x509_st;
struct stack_st_X509;

/*
 * One who may know whom a token stands for: as authn_token() without the rest of the chain. There is at least one audience. Who
 * does not look at them leaves ret->audiences empty.
 */
struct authn_way {
	const char *name;
	void *self;
	int (*token)(void *self, struct arena *a, str token, const str *audiences, size_t n_audiences,
		     struct authn_identity *ret, struct err *err);
	int (*run)(void *self, struct err *err); /* (suspends, until canceled) looks after itself; NULL: nothing to do */
	bool (*is_ready)(const void *self); /* it can tell (with run's help); NULL: always */
	void (*free)(void *self);
};

enum { AUTHN_WAYS_MAX = 8 };

/* Each makes one way; self is NULL afterwards when the options ask for none. */
int authn_token_file_way(struct apiserver *s, struct authn_way *ret, struct err *err);
int authn_service_account_way(struct apiserver *s, struct authn_way *ret, struct err *err);
int authn_bootstrap_way(struct apiserver *s, struct authn_way *ret, struct err *err);
/* The provider of the --oidc-... flags. */
int authn_oidc_way(struct apiserver *s, struct authn_way *ret, struct err *err);
int authn_webhook_way(struct apiserver *s, struct authn_way *ret, struct err *err);
/* All issuers of --authentication-config, as one way: issuers.c. What the file says about strangers goes to s->authn. */
int authn_issuers_way(struct apiserver *s, struct authn_way *ret, struct err *err);

/* Runs one way that looks after itself: a fiber's function. */
int authn_run_way(void *way);

/* What an AuthenticationConfiguration says beside its issuers. */
struct authn_anonymous {
	bool enabled;
	const str *paths;             /* that strangers may ask for; none: all */
	size_t n_paths;
};

/* ---- proxies that say in headers who asks: request_header.c ---- */

struct request_header;

/* *ret is NULL when the options name no authority for proxies. */
int request_header_new(struct apiserver *s, struct request_header **ret, struct err *err);
void request_header_free(struct request_header *h); /* NULL is fine */
/* (suspends, until canceled) Reads the authorities again when their file changes. */
int request_header_run(struct request_header *h, struct err *err);
/* Grows when the authorities change: what was found out about a certificate before is to be found out again. */
unsigned request_header_generation(const struct request_header *h);
/* Whether this certificate is one of a proxy that we trust; -ERR_UNAUTHORIZED when not. */
int request_header_check(const struct request_header *h, struct x509_st *cert, struct stack_st_X509 *chain, struct err *err);
/* Whom the headers of a proxy's request name, in its arena; false: nobody. */
bool request_header_user(const struct request_header *h, const struct request *q, struct user *ret);
/* Whether a header (its name in lower case) is one that only proxies may use. h may be NULL: then those by Kubernetes' names. */
bool request_header_is(const struct request_header *h, str name);

/* ---- all of them ---- */

struct authn_link {
	struct authn_way way;
	bool any_audience;            /* it does not know whom a token is for: for this server, then */
};

enum authn_result { AUTHN_SUCCESS, AUTHN_FAILURE, AUTHN_ERROR, AUTHN_RESULTS };
enum { AUTHN_USERS_COUNTED = 7 };

struct authn {
	struct arena arena;
	struct request_header *proxies; /* NULL: none */
	struct authorities *clients;  /* of --client-ca-file; NULL: certificates say nothing */
	struct jwt_keys *keys;        /* that tokens of this cluster are checked with; NULL: it has none */
	const str *audiences;         /* of this server */
	size_t n_audiences;
	struct authn_link links[AUTHN_WAYS_MAX];
	size_t n_links;
	struct authn_anonymous anonymous;
	uint64_t attempts[AUTHN_RESULTS], users[AUTHN_USERS_COUNTED]; /* metrics.c */
};

/* How an attempt ended: as whom, for a success. */
void authn_count(struct authn *n, enum authn_result result, str username);

/* A user who is known, with the group of all who are. */
void authn_add_authenticated(struct arena *a, struct user *u);
/* A list of options as slices, in the arena. */
const str *authn_list(struct arena *a, const char *const *list, size_t *ret_n);
/* Those of the second list that are in the first one, too, in the arena. */
const str *authn_common(struct arena *a, const str *own, size_t n_own, const str *asked, size_t n_asked, size_t *ret_n);
/* ["a" "b"]: as Kubernetes shows lists of texts in errors. */
str authn_quoted(struct arena *a, const str *list, size_t n);

/* "Bearer <token>", in any case, as an Authorization header has it; empty: it has none. *ret_spaced: it has a space too many. */
str authn_bearer(str header, bool *ret_spaced);

enum { AUTHN_ISSUERS_MAX = 64 };

/*
 * The text of --authentication-config: one way per issuer into ways, and who strangers are (in the arena; as it was, when the
 * file does not say).
 */
int authn_config_read(struct apiserver *s, struct arena *a, str text, struct authn_way ways[AUTHN_ISSUERS_MAX], size_t *ret_n,
		      struct authn_anonymous *ret_anonymous, struct err *err);

#endif
