/* Signing tokens: compact JWS (RFC 7515) with the algorithm that the key is for. */
#include "apiserver/authn/jwt.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdlib.h>

#include "apiserver/pki_priv.h"
#include "base/buf.h"
#include "base/encoding.h"
#include "base/mem.h"

enum { TOKEN_MAX = 1 << 20, SIGNATURE_MAX = 2048 };

struct jwt_signer {
	EVP_PKEY *key;
	const char *algorithm;
	const EVP_MD *digest;
	int number_bytes;             /* of the two numbers of an ECDSA signature; 0: RSA */
	char id[44];                  /* base64 of 32 bytes, terminated */
};

static const struct {
	int type, bits;               /* bits 0: any */
	const char *algorithm;
	const EVP_MD *(*digest)(void);
	int number_bytes;
} kinds[] = {
	{ EVP_PKEY_EC, 256, "ES256", EVP_sha256, 32 },
	{ EVP_PKEY_EC, 384, "ES384", EVP_sha384, 48 },
	{ EVP_PKEY_EC, 521, "ES512", EVP_sha512, 66 },
	{ EVP_PKEY_RSA, 0, "RS256", EVP_sha256, 0 },
};

static int set_kind(struct jwt_signer *s, const char *file, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (EVP_PKEY_base_id(s->key) != kinds[i].type || (kinds[i].bits && EVP_PKEY_bits(s->key) != kinds[i].bits))
			continue;
		s->algorithm = kinds[i].algorithm;
		s->digest = kinds[i].digest();
		s->number_bytes = kinds[i].number_bytes;
		return 0;
	}
	return err_set(err, ERR_INVALID, "%s: tokens are signed with RSA keys or with ECDSA keys of 256, 384 or 521 bits",
		       file);
}

static int set_id(struct jwt_signer *s, struct err *err)
{
	unsigned char *der = NULL;
	int n = i2d_PUBKEY(s->key, &der);
	if (n < 0)
		return err_set(err, ERR_INTERNAL, "the public key cannot be encoded");
	uint8_t hash[SHA256_BYTES];
	sha256(str_span((const char *)der, (size_t)n), hash);
	OPENSSL_free(der);
	s->id[base64url_encode(s->id, str_span((const char *)hash, sizeof hash))] = '\0';
	return 0;
}

int jwt_signer_open(const char *key_file, struct jwt_signer **ret, struct err *err)
{
	struct jwt_signer *s = mem_zalloc(sizeof *s);
	int r = key_read(key_file, &s->key, err);
	if (r == 0)
		r = set_kind(s, key_file, err);
	if (r == 0)
		r = set_id(s, err);
	if (r < 0)
		jwt_signer_free(s);
	else
		*ret = s;
	return r;
}

void jwt_signer_free(struct jwt_signer *s)
{
	if (!s)
		return;
	EVP_PKEY_free(s->key);
	free(s);
}

str jwt_key_id(const struct jwt_signer *s) { return str_of(s->id); }

/* An ECDSA signature as JWTs have it: the two numbers, each in its full length. */
static int raw_signature(const struct jwt_signer *s, unsigned char *p, size_t *n)
{
	const unsigned char *der = p;
	ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)*n);
	int bytes = s->number_bytes;
	bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), p, bytes) == bytes &&
		BN_bn2binpad(ECDSA_SIG_get0_s(sig), p + bytes, bytes) == bytes;
	ECDSA_SIG_free(sig);
	*n = 2 * (size_t)bytes;
	return ok ? 0 : -ERR_INTERNAL;
}

static int sign(const struct jwt_signer *s, str text, unsigned char *p, size_t *n)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_DigestSignInit(ctx, NULL, s->digest, NULL, s->key) == 1 &&
		  EVP_DigestSign(ctx, p, n, (const unsigned char *)text.p, text.n) == 1;
	EVP_MD_CTX_free(ctx);
	if (!ok)
		return -ERR_INTERNAL;
	return s->number_bytes ? raw_signature(s, p, n) : 0;
}

int jwt_sign(const struct jwt_signer *s, struct arena *a, str claims, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TOKEN_MAX);
	unsigned char signature[SIGNATURE_MAX];
	size_t n = sizeof signature;
	str head = arena_printf(a, "{\"alg\":\"%s\",\"kid\":\"%s\"}", s->algorithm, s->id);
	base64url_encode_buf(&b, head);
	buf_addc(&b, '.');
	base64url_encode_buf(&b, claims);
	if (sign(s, buf_str(&b), signature, &n) < 0)
		return err_set(err, ERR_INTERNAL, "the token cannot be signed");
	buf_addc(&b, '.');
	base64url_encode_buf(&b, str_span((const char *)signature, n));
	int r = buf_check(&b, "the token", err);
	if (r == 0)
		*ret = arena_str(a, buf_str(&b));
	return r;
}
