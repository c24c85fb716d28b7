/*
 * Tokens and keys. The first byte says what the rest is: a token (which a key that nobody has must refuse, and which has two
 * objects and no other alphabet when it can be taken apart), a JSON Web Key Set (whose keys can be told and read again), or PEM.
 */
#include <openssl/ec.h>
#include <openssl/rsa.h>

#include "apiserver/authn/jwt_priv.h"
#include "codec/json.h"
#include "fuzz/fuzz.h"

enum { INPUT_MAX = 256 << 10 };

static struct jwt_keys *secret_keys(void)
{
	static struct jwt_keys *keys;
	if (keys)
		return keys;
	struct arena a = ARENA_INIT;
	struct buf json = BUF_INIT(1 << 16);
	EVP_PKEY *made[] = { EVP_EC_gen("P-256"), EVP_RSA_gen(2048) };
	struct jwt_key list[] = { { made[0], STR("a") }, { made[1], STR("b") } };
	struct jwt_keys set = { .keys = list, .n = 2 };
	check(json_encode(&json, jwt_keys_jwks(&set, &a), &(struct json_encode_options){ 0 }, NULL) == 0 &&
	      jwt_keys_from_jwks(buf_str(&json), &keys, NULL) == 0, "keys can be made");
	EVP_PKEY_free(made[0]);
	EVP_PKEY_free(made[1]);
	buf_done(&json);
	arena_done(&a);
	return keys;
}

static void token(struct arena *a, str text)
{
	struct jwt jwt;
	struct val claims;
	int r = jwt_peek(a, text, &jwt, NULL);
	check(r == 0 || r == -ERR_BAD_REQUEST, "it is a token or not");
	check(r < 0 || (val_is(jwt.header, VAL_OBJECT) && val_is(jwt.claims, VAL_OBJECT)), "a token has two objects");
	check(jwt_verify(secret_keys(), NULL, a, text, &claims, NULL) < 0, "nobody can sign without the key");
	check(!jwt_recall(secret_keys(), NULL, a, text, &claims), "what was refused is not remembered");
}

static void key_set(struct arena *a, str text)
{
	struct jwt_keys *keys = NULL, *again = NULL;
	struct buf json = BUF_INIT(4 << 20);
	if (jwt_keys_from_jwks(text, &keys, NULL) < 0)
		return;
	check(json_encode(&json, jwt_keys_jwks(keys, a), &(struct json_encode_options){ 0 }, NULL) == 0, "keys can be told");
	check(jwt_keys_from_jwks(buf_str(&json), &again, NULL) == 0 && again->n == keys->n, "and read again");
	for (size_t i = 0; i < keys->n; i++)
		check(EVP_PKEY_eq(keys->keys[i].key, again->keys[i].key) == 1 && str_eq(keys->keys[i].id, again->keys[i].id),
		      "as they were");
	jwt_keys_free(keys);
	jwt_keys_free(again);
	buf_done(&json);
}

static void pem(str text)
{
	struct jwt_keys *keys = NULL;
	if (jwt_keys_from_pem(text, &keys, NULL) == 0)
		check(keys->n > 0 && keys->n <= JWT_KEYS_MAX && jwt_keys_algorithm(keys, 0), "there is a key that signs");
	jwt_keys_free(keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	if (n < 1 || n > INPUT_MAX)
		return 0;
	str text = str_span((const char *)data + 1, n - 1);
	if (data[0] == '{')
		key_set(&a, str_span((const char *)data, n));
	else if (data[0] == '-')
		pem(str_span((const char *)data, n));
	else
		token(&a, text);
	arena_done(&a);
	return 0;
}
