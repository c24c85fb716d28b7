/* Signing tokens: compact JWS (RFC 7515) with the algorithm that the key is for. */
#include "apiserver/authn/jwt.h"

#include <openssl/ec.h>
#include <stdlib.h>

#include "apiserver/authn/jwt_priv.h"
#include "apiserver/pki_priv.h"
#include "base/buf.h"
#include "base/encoding.h"
#include "base/mem.h"

enum { TOKEN_MAX = 1 << 20, SIGNATURE_MAX = 2048 };

struct jwt_signer {
	EVP_PKEY *key;
	const struct jwt_algorithm *algorithm;
	char id[JWT_KEY_ID_SIZE];
};

static int set_kind(struct jwt_signer *s, const char *file, struct err *err)
{
	s->algorithm = jwt_algorithm_of(s->key);
	return s->algorithm ? jwt_key_id_make(s->key, s->id, err) :
			      err_set(err, ERR_INVALID, "%s: tokens are signed with RSA keys or with ECDSA keys of 256, 384 or 521 bits",
				      file);
}

int jwt_signer_open(const char *key_file, struct jwt_signer **ret, struct err *err)
{
	struct jwt_signer *s = mem_zalloc(sizeof *s);
	int r = key_read(key_file, &s->key, err);
	if (r == 0)
		r = set_kind(s, key_file, err);
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
	int bytes = s->algorithm->number_bytes;
	bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), p, bytes) == bytes &&
		BN_bn2binpad(ECDSA_SIG_get0_s(sig), p + bytes, bytes) == bytes;
	ECDSA_SIG_free(sig);
	*n = 2 * (size_t)bytes;
	return ok ? 0 : -ERR_INTERNAL;
}

static int sign(const struct jwt_signer *s, str text, unsigned char *p, size_t *n)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_DigestSignInit(ctx, NULL, s->algorithm->digest(), NULL, s->key) == 1 &&
		  EVP_DigestSign(ctx, p, n, (const unsigned char *)text.p, text.n) == 1;
	EVP_MD_CTX_free(ctx);
	if (!ok)
		return -ERR_INTERNAL;
	return s->algorithm->number_bytes ? raw_signature(s, p, n) : 0;
}

int jwt_sign(const struct jwt_signer *s, struct arena *a, str claims, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TOKEN_MAX);
	unsigned char signature[SIGNATURE_MAX];
	size_t n = sizeof signature;
	str head = arena_printf(a, "{\"alg\":\"%s\",\"kid\":\"%s\"}", s->algorithm->name, s->id);
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
