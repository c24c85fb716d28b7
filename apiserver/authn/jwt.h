/* Signing JSON Web Tokens (RFC 7519) with the key of service accounts: ES256, ES384, ES512 or RS256, by the kind of key. */
#ifndef C8S_APISERVER_JWT_H
#define C8S_APISERVER_JWT_H

#include "base/arena.h"
#include "base/err.h"

struct jwt_signer;

/* Reads a private key in PEM. -ERR_INVALID for a kind of key that tokens are not signed with. */
int jwt_signer_open(const char *key_file, struct jwt_signer **ret, struct err *err);
void jwt_signer_free(struct jwt_signer *s); /* NULL is fine */

/* The token with these claims (a JSON object), in the arena. */
int jwt_sign(const struct jwt_signer *s, struct arena *a, str claims, str *ret, struct err *err);

/* The name of the key, as the "kid" of its tokens has it: SHA-256 of its public part, in base64. */
str jwt_key_id(const struct jwt_signer *s);

#endif
