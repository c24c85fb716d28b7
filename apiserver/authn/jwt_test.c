#include "apiserver/authn/jwt.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/test.h"

/* A file with this key, to be removed and freed. */
static char *key_file(EVP_PKEY *key)
{
	char *path = strdup("/tmp/c8s-jwt-XXXXXX");
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	CHECK(f && PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1);
	CHECK(fclose(f) == 0);
	return path;
}

/* An ECDSA signature in DER from the two numbers that a token has. */
static size_t der_of(const char *raw, size_t n, unsigned char *out)
{
	ECDSA_SIG *sig = ECDSA_SIG_new();
	size_t half = n / 2;
	ECDSA_SIG_set0(sig, BN_bin2bn((const unsigned char *)raw, (int)half, NULL),
		       BN_bin2bn((const unsigned char *)raw + half, (int)half, NULL));
	int len = i2d_ECDSA_SIG(sig, &out);
	ECDSA_SIG_free(sig);
	return (size_t)len;
}

static bool verifies(EVP_PKEY *key, const EVP_MD *digest, str text, str signature)
{
	unsigned char der[256];
	const unsigned char *p = (const unsigned char *)signature.p;
	size_t n = signature.n;
	if (EVP_PKEY_base_id(key) == EVP_PKEY_EC) {
		n = der_of(signature.p, signature.n, der);
		p = der;
	}
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = EVP_DigestVerifyInit(ctx, NULL, digest, NULL, key) == 1 &&
		  EVP_DigestVerify(ctx, p, n, (const unsigned char *)text.p, text.n) == 1;
	EVP_MD_CTX_free(ctx);
	return ok;
}

static void check_key(EVP_PKEY *key, const EVP_MD *digest, str algorithm)
{
	struct arena a = ARENA_INIT;
	struct jwt_signer *signer = NULL;
	char *path = key_file(key);
	str token = STR_NONE, claims = STR("{\"sub\":\"me\"}");
	CHECK(jwt_signer_open(path, &signer, NULL) == 0);
	CHECK(jwt_sign(signer, &a, claims, &token, NULL) == 0);
	CHECK(jwt_key_id(signer).n == 43);
	ptrdiff_t dot = str_rchr(token, '.');
	str signed_part = str_head(token, (size_t)dot), head, body;
	str_cut(signed_part, '.', &head, &body);
	char room[2048];
	size_t n;
	CHECK(base64url_decode(room, head, &n, NULL) == 0 && str_find(str_span(room, n), algorithm) >= 0);
	CHECK(str_find(str_span(room, n), jwt_key_id(signer)) >= 0);
	CHECK(base64url_decode(room, body, &n, NULL) == 0 && str_eq(str_span(room, n), claims));
	CHECK(base64url_decode(room, str_skip(token, (size_t)dot + 1), &n, NULL) == 0);
	CHECK(verifies(key, digest, signed_part, str_span(room, n)));
	jwt_signer_free(signer);
	(void)unlink(path);
	free(path);
	arena_done(&a);
	EVP_PKEY_free(key);
}

TEST(jwt_sign)
{
	check_key(EVP_EC_gen("P-256"), EVP_sha256(), STR("\"ES256\""));
	check_key(EVP_EC_gen("P-384"), EVP_sha384(), STR("\"ES384\""));
	check_key(EVP_EC_gen("P-521"), EVP_sha512(), STR("\"ES512\""));
	check_key(EVP_RSA_gen(2048), EVP_sha256(), STR("\"RS256\""));
}

TEST(jwt_refuses_other_keys)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	struct jwt_signer *signer = NULL;
	struct err err = ERR_INIT;
	char *path = key_file(key);
	CHECK(jwt_signer_open(path, &signer, &err) == -ERR_INVALID && !signer);
	CHECK(str_find(err_str(&err), STR("RSA keys or with ECDSA keys")) >= 0);
	CHECK(jwt_signer_open("/nonexistent/key", &signer, &err) == -ERR_NOT_FOUND);
	(void)unlink(path);
	free(path);
	EVP_PKEY_free(key);
}
