/* Between those who sign tokens (jwt.c), know keys (jwt_keys.c) and check tokens (jwt_verify.c). */
#ifndef C8S_APISERVER_AUTHN_JWT_PRIV_H
#define C8S_APISERVER_AUTHN_JWT_PRIV_H

#include <openssl/evp.h>

#include "apiserver/authn/jwt_verify.h"

/* A row per "alg" that there is. A key of these bits (0: any) of this type is for it. */
struct jwt_algorithm {
	const char *name;
	int type, bits;
	const EVP_MD *(*digest)(void);
	int number_bytes;             /* of each of the two numbers of an ECDSA signature; 0: RSA */
	bool pss;
};

/* NULL: there is none of that name. */
const struct jwt_algorithm *jwt_algorithm_find(str name);
/* What Kubernetes signs with by such a key: RS256, or the ES of its size; NULL: tokens are not signed with it. */
const struct jwt_algorithm *jwt_algorithm_of(const EVP_PKEY *key);
bool jwt_algorithm_fits(const struct jwt_algorithm *alg, const EVP_PKEY *key);

/* Base64 of 32 bytes, terminated. */
enum { JWT_KEY_ID_SIZE = 44 };
/* SHA-256 of the public part in DER, in base64url. */
int jwt_key_id_make(EVP_PKEY *key, char ret[JWT_KEY_ID_SIZE], struct err *err);

struct jwt_key {
	EVP_PKEY *key;                /* public */
	str id;
};

struct jwt_memo;

struct jwt_keys {
	struct arena arena;
	struct jwt_key *keys;
	size_t n;
	struct jwt_memo *memo;        /* tokens that were verified */
};

struct jwt_memo *jwt_memo_new(void) NONNULL_RESULT;
void jwt_memo_free(struct jwt_memo *m); /* NULL is fine */

/* Bytes of base64url, in the arena: nothing but its letters, and no bits to spare. */
int jwt_decode(struct arena *a, str text, str *ret, struct err *err);

#endif
