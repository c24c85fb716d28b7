/* For tests: tokens of all kinds, also such as nobody would sign. */
#ifndef C8S_APISERVER_AUTHN_JWT_TESTING_H
#define C8S_APISERVER_AUTHN_JWT_TESTING_H

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "apiserver/authn/jwt_priv.h"
#include "base/encoding.h"

/* "header.claims", encoded. */
static inline str jwt_parts(struct arena *a, str header, str claims)
{
	struct buf b = BUF_INIT(1 << 20);
	base64url_encode_buf(&b, header);
	buf_addc(&b, '.');
	base64url_encode_buf(&b, claims);
	str s = arena_str(a, buf_str(&b));
	buf_done(&b);
	return s;
}

static inline str jwt_with(struct arena *a, str parts, str signature)
{
	char *text = arena_alloc(a, base64url_encoded_len(signature.n) + 1, 1);
	size_t n = base64url_encode(text, signature);
	return arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(parts), STR_ARG(str_span(text, n)));
}

/* A token with this header, signed by the algorithm whatever the header says. */
static inline str jwt_make_header(struct arena *a, EVP_PKEY *key, const char *algorithm, str header, str claims)
{
	const struct jwt_algorithm *alg = jwt_algorithm_find(str_of(algorithm));
	str parts = jwt_parts(a, header, claims);
	unsigned char signature[1024];
	size_t n = sizeof signature;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY_CTX *pkey;
	if (EVP_DigestSignInit(ctx, &pkey, alg->digest(), NULL, key) != 1)
		abort();
	if (alg->pss && EVP_PKEY_CTX_set_rsa_padding(pkey, RSA_PKCS1_PSS_PADDING) != 1)
		abort();
	if (EVP_DigestSign(ctx, signature, &n, (const unsigned char *)parts.p, parts.n) != 1)
		abort();
	EVP_MD_CTX_free(ctx);
	if (alg->number_bytes) {
		const unsigned char *der = signature;
		ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)n);
		BN_bn2binpad(ECDSA_SIG_get0_r(sig), signature, alg->number_bytes);
		BN_bn2binpad(ECDSA_SIG_get0_s(sig), signature + alg->number_bytes, alg->number_bytes);
		ECDSA_SIG_free(sig);
		n = 2 * (size_t)alg->number_bytes;
	}
	return jwt_with(a, parts, str_span((const char *)signature, n));
}

/* kid NULL: without. */
static inline str jwt_make(struct arena *a, EVP_PKEY *key, const char *algorithm, const char *kid, str claims)
{
	str header = kid ? arena_printf(a, "{\"alg\":\"%s\",\"kid\":\"%s\"}", algorithm, kid) :
			   arena_printf(a, "{\"alg\":\"%s\"}", algorithm);
	return jwt_make_header(a, key, algorithm, header, claims);
}

#endif
