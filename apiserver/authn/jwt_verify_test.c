#include "apiserver/authn/jwt_verify.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>

#include "apiserver/authn/jwt_testing.h"
#include "base/encoding.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/json.h"

static const str claims = STR_INIT("{\"iss\":\"me\",\"n\":1}");

static struct jwt_keys *keys_of(EVP_PKEY *key, bool private)
{
	struct jwt_keys *keys = NULL;
	BIO *bio = BIO_new(BIO_s_mem());
	CHECK((private ? PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) : PEM_write_bio_PUBKEY(bio, key)) == 1);
	char *text;
	long n = BIO_get_mem_data(bio, &text);
	CHECK_INT(jwt_keys_from_pem(str_span(text, (size_t)n), &keys, NULL), 0);
	BIO_free(bio);
	return keys;
}

static str json_of(struct arena *a, struct val v)
{
	struct buf b = BUF_INIT(1 << 20);
	CHECK_INT(json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL), 0);
	str s = arena_str(a, buf_str(&b));
	buf_done(&b);
	return s;
}

TEST(every_algorithm_is_verified_by_its_kind_of_key_only)
{
	struct arena a = ARENA_INIT;
	EVP_PKEY *rsa = EVP_RSA_gen(2048), *p256 = EVP_EC_gen("P-256"), *p384 = EVP_EC_gen("P-384"), *p521 = EVP_EC_gen("P-521");
	const struct {
		EVP_PKEY *key;
		const char *alg;
	} t[] = {
		{ rsa, "RS256" }, { rsa, "RS384" }, { rsa, "RS512" }, { rsa, "PS256" }, { rsa, "PS384" },
		{ rsa, "PS512" }, { p256, "ES256" }, { p384, "ES384" }, { p521, "ES512" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct jwt_keys *own = keys_of(t[i].key, i % 2), *other = keys_of(t[i].key == rsa ? p256 : rsa, false);
		str token = jwt_make(&a, t[i].key, t[i].alg, NULL, claims);
		struct val got;
		struct err err = ERR_INIT;
		const char *const allowed[] = { "XX", t[i].alg, NULL }, *const others[] = { "RS999", NULL };
		CHECK_ROW(i, !jwt_recall(own, NULL, &a, token, &got));
		CHECK_ROW(i, jwt_verify(own, others, &a, token, &got, &err) == -ERR_UNAUTHORIZED);
		CHECK_ROW(i, jwt_verify(own, allowed, &a, token, &got, &err) == 0 && val_int(got, n) == 1);
		CHECK_ROW(i, jwt_verify(own, NULL, &a, token, &got, &err) == 0);
		CHECK_ROW(i, jwt_recall(own, allowed, &a, token, &got) && str_eq(val_str(got, iss), STR("me")));
		CHECK_ROW(i, !jwt_recall(own, others, &a, token, &got));
		CHECK_ROW(i, jwt_verify(own, others, &a, token, &got, &err) == -ERR_UNAUTHORIZED);
		CHECK_ROW(i, jwt_verify(other, NULL, &a, token, &got, &err) == -ERR_UNAUTHORIZED);
		for (size_t cut = 1; cut < token.n; cut += 7)
			CHECK_ROW(i, jwt_verify(own, NULL, &a, str_head(token, cut), &got, &err) < 0);
		jwt_keys_free(own);
		jwt_keys_free(other);
	}
	EVP_PKEY_free(rsa);
	EVP_PKEY_free(p256);
	EVP_PKEY_free(p384);
	EVP_PKEY_free(p521);
	arena_done(&a);
}

/* head.body.HMAC of both with the public key as the secret: the oldest trick. */
static str hmac_token(struct arena *a, EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	PEM_write_bio_PUBKEY(bio, key);
	char *pem;
	long n = BIO_get_mem_data(bio, &pem);
	str head = jwt_parts(a, STR("{\"alg\":\"HS256\"}"), claims);
	unsigned char mac[32];
	unsigned len = 0;
	CHECK(HMAC(EVP_sha256(), pem, (int)n, (const unsigned char *)head.p, head.n, mac, &len) != NULL);
	BIO_free(bio);
	return jwt_with(a, head, str_span((const char *)mac, len));
}

TEST(forged_tokens_are_refused)
{
	struct arena a = ARENA_INIT;
	EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");
	struct jwt_keys *keys = keys_of(key, false);
	str good = jwt_make(&a, key, "ES256", NULL, claims), signature = str_skip(good, (size_t)str_rchr(good, '.') + 1);
	str zeros = arena_str(&a, str_span((char[64]){ 0 }, 64));
	const struct {
		str token;
		int result;
	} t[] = {
		{ good, 0 },
		{ jwt_make(&a, other, "ES256", NULL, claims), -ERR_UNAUTHORIZED },
		{ jwt_make(&a, key, "ES256", "no such key", claims), -ERR_NOT_FOUND },
		{ hmac_token(&a, key), -ERR_UNAUTHORIZED },
		{ jwt_with(&a, jwt_parts(&a, STR("{\"alg\":\"none\"}"), claims), STR_NONE), -ERR_UNAUTHORIZED },
		{ jwt_with(&a, jwt_parts(&a, STR("{\"alg\":\"ES256\"}"), claims), STR_NONE), -ERR_UNAUTHORIZED },
		{ jwt_with(&a, jwt_parts(&a, STR("{\"alg\":\"ES256\"}"), claims), zeros), -ERR_UNAUTHORIZED },
		{ arena_printf(&a, STR_FMT "." STR_FMT, STR_ARG(jwt_parts(&a, STR("{\"alg\":\"ES256\"}"), STR("{\"iss\":\"you\"}"))),
			       STR_ARG(signature)), -ERR_UNAUTHORIZED },
		{ jwt_make_header(&a, key, "ES256", STR("{\"alg\":\"ES256\",\"crit\":[\"exp\"]}"), claims), -ERR_UNAUTHORIZED },
		{ jwt_make(&a, key, "ES256", NULL, STR("[1]")), -ERR_BAD_REQUEST },
		{ jwt_make(&a, key, "ES256", NULL, STR("{\"iss\":\"me\",\"iss\":\"you\"}")), -ERR_BAD_REQUEST },
		{ arena_join(&a, good, STR("=")), -ERR_BAD_REQUEST },
		{ arena_join(&a, good, STR("\n")), -ERR_BAD_REQUEST },
		{ arena_join(&a, good, STR(".x")), -ERR_BAD_REQUEST },
		{ STR("a.b.c"), -ERR_BAD_REQUEST },
		{ STR(".."), -ERR_BAD_REQUEST },
		{ STR(""), -ERR_BAD_REQUEST },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val got;
		CHECK_ROW(i, jwt_verify(keys, NULL, &a, t[i].token, &got, NULL) == t[i].result);
	}
	/* one letter changed, anywhere */
	char *copy = strndup(good.p, good.n);
	for (size_t i = 0; i < good.n; i++) {
		struct val got;
		char was = copy[i];
		copy[i] = was == 'A' ? 'B' : 'A';
		CHECK_ROW(i, jwt_verify(keys, NULL, &a, str_span(copy, good.n), &got, NULL) < 0);
		copy[i] = was;
	}
	free(copy);
	jwt_keys_free(keys);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
	arena_done(&a);
}

TEST(key_sets_are_told_and_read)
{
	struct arena a = ARENA_INIT;
	EVP_PKEY *made[] = { EVP_RSA_gen(2048), EVP_EC_gen("P-256"), EVP_EC_gen("P-384"), EVP_EC_gen("P-521") };
	static const char *const algorithms[] = { "RS256", "ES256", "ES384", "ES512" };
	for (size_t i = 0; i < ARRAY_LEN(made); i++) {
		struct jwt_keys *keys = keys_of(made[i], true), *again = NULL;
		struct val set = jwt_keys_jwks(keys, &a), got;
		str text = json_of(&a, set), kid = val_str(val_at(val_get(set, keys), 0), kid);
		CHECK_ROW(i, kid.n == 43);
		CHECK_ROW(i, str_starts(text, i ? STR("{\"keys\":[{\"use\":\"sig\",\"kty\":\"EC\",\"kid\":\"") :
						  STR("{\"keys\":[{\"use\":\"sig\",\"kty\":\"RSA\",\"kid\":\"")));
		CHECK_ROW(i, str_eq(str_of(jwt_keys_algorithm(keys, 0)), str_of(algorithms[i])) && !jwt_keys_algorithm(keys, 1));
		CHECK_INT(jwt_keys_from_jwks(text, &again, NULL), 0);
		str token = jwt_make(&a, made[i], algorithms[i], arena_str(&a, kid).p, claims);
		CHECK_ROW(i, jwt_verify(again, NULL, &a, token, &got, NULL) == 0);
		jwt_keys_free(keys);
		jwt_keys_free(again);
		EVP_PKEY_free(made[i]);
	}
	arena_done(&a);
}

TEST(broken_key_sets)
{
	static const struct {
		const char *text;
		int result;
	} t[] = {
		{ "{\"keys\":[]}", 0 },
		{ "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"},{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}]}", 0 },
		{ "{\"keys\":[{\"kty\":\"RSA\",\"use\":\"enc\"}]}", 0 },
		{ "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}", -ERR_INVALID },
		{ "{\"keys\":[{\"kty\":\"RSA\"}]}", -ERR_INVALID },
		{ "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}]}", -ERR_INVALID },
		{ "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\","
		  "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}]}", -ERR_INVALID },
		{ "{\"keys\":[1]}", -ERR_INVALID },
		{ "{\"keys\":{}}", -ERR_INVALID },
		{ "[]", -ERR_INVALID },
		{ "{", -ERR_BAD_REQUEST },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct jwt_keys *keys = NULL;
		CHECK_ROW(i, jwt_keys_from_jwks(str_of(t[i].text), &keys, NULL) == t[i].result);
		jwt_keys_free(keys);
	}
	struct jwt_keys *none = NULL;
	CHECK_INT(jwt_keys_from_pem(STR("nothing"), &none, NULL), -ERR_INVALID);
	CHECK_INT(jwt_keys_from_files((const char *const[]){ "/nonexistent/key", NULL }, &none, NULL), -ERR_NOT_FOUND);
}

TEST(verified_tokens_are_remembered_as_they_are)
{
	struct arena a = ARENA_INIT;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	struct jwt_keys *keys = keys_of(key, false);
	struct val got;
	str first = jwt_make(&a, key, "ES256", NULL, claims);
	CHECK_INT(jwt_verify(keys, NULL, &a, first, &got, NULL), 0);
	CHECK(jwt_recall(keys, NULL, &a, first, &got));
	str changed = arena_join(&a, str_head(first, first.n - 1), STR("."));
	CHECK(!jwt_recall(keys, NULL, &a, changed, &got));
	jwt_keys_free(keys);
	EVP_PKEY_free(key);
	arena_done(&a);
}
