/*
 * Checking JSON Web Tokens (RFC 7519, in the compact form of RFC 7515) against public keys: RS256, ES256, PS256 and the same
 * with 384 and 512 bits. A key says by its kind which algorithms it is for, so a token can neither ask for none nor have a
 * public key taken for a shared secret. What a token says that was only peeked at is not to be believed.
 */
#ifndef C8S_APISERVER_AUTHN_JWT_VERIFY_H
#define C8S_APISERVER_AUTHN_JWT_VERIFY_H

#include "base/err.h"
#include "codec/val.h"

/* No token is longer, and no set has more keys; what is beyond is refused. */
enum { JWT_TOKEN_MAX = 128 << 10, JWT_KEYS_MAX = 256 };

/* A set of public keys, and the tokens that were verified with them lately; belongs to one thread. */
struct jwt_keys;

/*
 * All keys of PEM text: public keys, the public parts of private keys, and those of certificates; anything else in the text is
 * passed over. Their ids are Kubernetes': SHA-256 of the public key's DER, in base64url. -ERR_INVALID when there is none.
 */
int jwt_keys_from_pem(str pem, struct jwt_keys **ret, struct err *err);
/* All keys of these files (NULL-ended), as if they were one. */
int jwt_keys_from_files(const char *const *files, struct jwt_keys **ret, struct err *err);
/*
 * A JSON Web Key Set (RFC 7517): its RSA and EC keys that are for signatures, with the ids they have there; keys of other kinds
 * are passed over. -ERR_INVALID when it is no such set, or one of its keys is broken. A set without keys is fine.
 */
int jwt_keys_from_jwks(str json, struct jwt_keys **ret, struct err *err);
void jwt_keys_free(struct jwt_keys *k); /* NULL is fine */

/* A JSON Web Key per key, in their order: {"keys":[{"use":"sig","kty":...}]}; free tree. */
struct val jwt_keys_jwks(const struct jwt_keys *k, struct arena *a);
/* The algorithm that tokens are signed with by such a key ("RS256", "ES384", ...); NULL beyond the last one. */
const char *jwt_keys_algorithm(const struct jwt_keys *k, size_t i);

/* A token taken apart. Free trees with sorted keys; everything in the arena. */
struct jwt {
	struct val header, claims;
	str algorithm, key_id;        /* of the header; empty: it names none */
};

/*
 * What a token says, unverified: to find out who could verify it. -ERR_BAD_REQUEST when it is no token: not three parts of
 * strict base64url, of which the first two are JSON objects without members that occur twice, or too long.
 */
int jwt_peek(struct arena *a, str token, struct jwt *ret, struct err *err);

/*
 * Verifies the signature with the keys that have the token's key id (all keys, when it has none). algorithms: those that are
 * accepted, NULL-ended; NULL: all. On success the claims, in the arena; what they mean (issuer, audience, times) is for the
 * caller to check. -ERR_BAD_REQUEST: no token; -ERR_NOT_FOUND: no key of that id; -ERR_UNAUTHORIZED: any other failure.
 */
int jwt_verify(const struct jwt_keys *k, const char *const *algorithms, struct arena *a, str token, struct val *ret_claims,
	       struct err *err);
/*
 * The same for a token that jwt_verify has seen before with this set, at the cost of a hash; false: it may have been forgotten,
 * or never was good.
 */
bool jwt_recall(const struct jwt_keys *k, const char *const *algorithms, struct arena *a, str token, struct val *ret_claims);

#endif
