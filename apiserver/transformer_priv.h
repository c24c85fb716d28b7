/* Between the files of encryption at rest: the providers, and what a configuration becomes. */
#ifndef C8S_APISERVER_TRANSFORMER_PRIV_H
#define C8S_APISERVER_TRANSFORMER_PRIV_H

#include "apiserver/transformer.h"

struct evp_cipher_st;

enum { PROVIDER_KEY_MAX = 32 };

struct provider_key {
	str name;                            /* with the ':' that stands behind it in stored values */
	uint8_t bytes[PROVIDER_KEY_MAX];
	size_t n;
	struct evp_cipher_st *cipher;        /* of AES providers, for this key's length */
};

/* One way to encrypt. Functions append to ret; error texts are those of Kubernetes. */
struct provider_type {
	str name;                            /* as in the configuration: "aescbc" */
	str prefix;                          /* of stored values; empty: identity */
	const char *no_key;                  /* what is said when no key has the name that a value tells */
	const size_t *key_sizes;             /* ended by 0 */
	const char *key_sizes_text;          /* as Go prints the list */
	/* Makes what the key needs beyond its bytes; may be NULL. */
	int (*key_init)(struct provider_key *k, struct err *err);
	void (*key_done)(struct provider_key *k);
	int (*encrypt)(const struct provider_key *k, str authenticated, str plain, struct buf *ret, struct err *err);
	int (*decrypt)(const struct provider_key *k, str authenticated, str data, struct buf *ret, struct err *err);
};

extern const struct provider_type provider_aesgcm, provider_aescbc, provider_secretbox;

/* A provider of the configuration with its keys; the first key writes. type NULL: identity. */
struct provider {
	const struct provider_type *type;
	struct provider_key *keys;
	size_t n_keys;
};

/* Providers in the order of the configuration; the first writes. */
struct transformer {
	const struct provider **providers;
	size_t n;
};

#endif
