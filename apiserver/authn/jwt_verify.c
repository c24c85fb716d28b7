/*
 * Taking tokens apart and verifying their signatures. That a signature is good is true forever, so tokens that passed are
 * remembered by their SHA-256 together with the keys: bearers send the same token with every request, and comparing sums
 * costs a fiftieth of verifying. Only tokens that somebody with a key has signed get in. Everything that can change (times,
 * accounts, audiences) is checked each time by those who ask.
 */
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <stdlib.h>

#include "apiserver/authn/jwt_priv.h"
#include "base/encoding.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"

/* Half of it is forgotten at a time. */
enum { MEMO_MAX = 16384, SIGNATURE_MAX = 2048 };

/* ---- taking apart ---- */

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

int jwt_decode(struct arena *a, str text, str *ret, struct err *err)
{
	for (size_t i = 0; i < text.n; i++)
		if (!is_letter(text.p[i]))
			return err_set(err, ERR_BAD_REQUEST, "illegal base64 data at input byte %zu", i);
	char *out = arena_alloc(a, base64_decoded_max(text.n) + 1, 1), tail[4];
	size_t n, rest;
	int r = base64url_decode(out, text, &n, err);
	if (r < 0)
		return r;
	/* the last letter may have bits that stand for nothing */
	rest = n % 3;
	if (rest) {
		size_t letters = base64url_encode(tail, str_span(out + n - rest, rest));
		if (memcmp(tail, text.p + text.n - letters, letters) != 0)
			return err_set(err, ERR_BAD_REQUEST, "illegal base64 data at input byte %zu", text.n - 1);
	}
	*ret = str_span(out, n);
	return 0;
}

static int decode_part(struct arena *a, str text, struct val *ret, struct err *err)
{
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	strict->arena = a;
	str json;
	int r = jwt_decode(a, text, &json, err);
	if (r < 0 ||
	    (r = json_decode(a, json, &(struct json_decode_options){ .strict = strict, .sort_keys = true }, ret, err)) < 0)
		return r;
	if (!val_is(*ret, VAL_OBJECT))
		return err_set(err, ERR_BAD_REQUEST, "it is no JSON object");
	return strict_errors_fail(strict, err);
}

struct parts {
	str head, body, signature, signed_text;
};

static int split(str token, struct parts *ret, struct err *err)
{
	str rest, more;
	if (token.n > JWT_TOKEN_MAX)
		return err_set(err, ERR_BAD_REQUEST, "the token is longer than %d bytes", JWT_TOKEN_MAX);
	if (!str_cut(token, '.', &ret->head, &rest) || !str_cut(rest, '.', &ret->body, &ret->signature) ||
	    str_cut(ret->signature, '.', &rest, &more))
		return err_set(err, ERR_BAD_REQUEST, "a token has three parts");
	ret->signed_text = str_head(token, ret->head.n + 1 + ret->body.n);
	return 0;
}

int jwt_peek(struct arena *a, str token, struct jwt *ret, struct err *err)
{
	struct parts p;
	int r = split(token, &p, err);
	if (r < 0)
		return r;
	if ((r = decode_part(a, p.head, &ret->header, err)) < 0)
		return err_wrap(err, r, "the header of the token");
	if ((r = decode_part(a, p.body, &ret->claims, err)) < 0)
		return err_wrap(err, r, "the claims of the token");
	ret->algorithm = val_str(ret->header, alg);
	ret->key_id = val_str(ret->header, kid);
	return 0;
}

/* ---- remembering ---- */

struct known {
	char sum[SHA256_BYTES];
	const struct jwt_algorithm *algorithm;
	struct frozen *claims;
};

struct jwt_memo {
	struct map young, old;
};

struct jwt_memo *jwt_memo_new(void)
{
	struct jwt_memo *m = mem_zalloc(sizeof *m);
	map_init(&m->young);
	map_init(&m->old);
	return m;
}

static void forget(struct map *m)
{
	struct map_iter it = map_iter(m);
	struct known *k;
	while ((k = map_next(&it, NULL))) {
		frozen_unref(k->claims);
		free(k);
	}
	map_done(m);
}

void jwt_memo_free(struct jwt_memo *m)
{
	if (!m)
		return;
	forget(&m->young);
	forget(&m->old);
	free(m);
}

static void memo_add(struct jwt_memo *m, struct known *k)
{
	if (map_len(&m->young) >= MEMO_MAX / 2) {
		forget(&m->old);
		m->old = m->young;
		map_init(&m->young);
	}
	map_put(&m->young, str_span(k->sum, sizeof k->sum), k);
}

static struct known *memo_find(struct jwt_memo *m, str sum)
{
	struct known *k = map_get(&m->young, sum);
	if (k || !(k = map_remove(&m->old, sum)))
		return k;
	memo_add(m, k);
	return k;
}

static void remember(const struct jwt_keys *keys, str token, const struct jwt_algorithm *alg, struct val claims)
{
	struct known *k = mem_zalloc(sizeof *k);
	sha256(token, (uint8_t *)k->sum);
	k->algorithm = alg;
	k->claims = val_freeze(claims);
	memo_add(keys->memo, k);
}

/* ---- verifying ---- */

static bool allowed(const struct jwt_algorithm *alg, const char *const *algorithms)
{
	for (; algorithms && *algorithms; algorithms++)
		if (str_eq(str_of(*algorithms), str_of(alg->name)))
			return true;
	return !algorithms;
}

/* OpenSSL wants the two numbers of an ECDSA signature in DER. 0: the signature is not of that form. */
static size_t der_signature(const struct jwt_algorithm *alg, str raw, unsigned char *der, size_t room)
{
	int bytes = alg->number_bytes;
	if (raw.n != 2 * (size_t)bytes)
		return 0;
	const unsigned char *p = (const unsigned char *)raw.p;
	ECDSA_SIG *sig = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(p, bytes, NULL), *s = BN_bin2bn(p + bytes, bytes, NULL);
	if (!sig || !r || !s || ECDSA_SIG_set0(sig, r, s) != 1) {
		BN_free(r);
		BN_free(s);
		ECDSA_SIG_free(sig);
		return 0;
	}
	int n = i2d_ECDSA_SIG(sig, NULL);
	n = n > 0 && (size_t)n <= room ? i2d_ECDSA_SIG(sig, &der) : 0;
	ECDSA_SIG_free(sig);
	return n > 0 ? (size_t)n : 0;
}

static bool signature_fits(EVP_PKEY *key, const struct jwt_algorithm *alg, str text, str signature)
{
	unsigned char der[256];
	if (!jwt_algorithm_fits(alg, key) || !signature.n || signature.n > SIGNATURE_MAX)
		return false;
	if (alg->number_bytes) {
		size_t n = der_signature(alg, signature, der, sizeof der);
		if (!n)
			return false;
		signature = str_span((const char *)der, n);
	}
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY_CTX *pkey;
	bool ok = ctx && EVP_DigestVerifyInit(ctx, &pkey, alg->digest(), NULL, key) == 1 &&
		  (!alg->pss || (EVP_PKEY_CTX_set_rsa_padding(pkey, RSA_PKCS1_PSS_PADDING) == 1 &&
				 EVP_PKEY_CTX_set_rsa_pss_saltlen(pkey, RSA_PSS_SALTLEN_AUTO) == 1)) &&
		  EVP_DigestVerify(ctx, (const unsigned char *)signature.p, signature.n, (const unsigned char *)text.p,
				   text.n) == 1;
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return ok;
}

static int verify(const struct jwt_keys *k, const struct jwt *jwt, const struct jwt_algorithm *alg, const struct parts *p,
		  str signature, struct err *err)
{
	bool found = false;
	for (size_t i = 0; i < k->n; i++) {
		if (jwt->key_id.n && !str_eq(jwt->key_id, k->keys[i].id))
			continue;
		if (alg && signature_fits(k->keys[i].key, alg, p->signed_text, signature))
			return 0;
		found = true;
	}
	return found ? err_set(err, ERR_UNAUTHORIZED, "go-jose/go-jose: error in cryptographic primitive") :
		       err_set(err, ERR_NOT_FOUND, "invalid signature, no keys found");
}

bool jwt_recall(const struct jwt_keys *k, const char *const *algorithms, struct arena *a, str token, struct val *ret_claims)
{
	uint8_t sum[SHA256_BYTES];
	sha256(token, sum);
	const struct known *known = memo_find(k->memo, str_span((const char *)sum, sizeof sum));
	if (!known || !allowed(known->algorithm, algorithms))
		return false;
	*ret_claims = val_copy(a, known->claims->val);
	return true;
}

int jwt_verify(const struct jwt_keys *k, const char *const *algorithms, struct arena *a, str token, struct val *ret_claims,
	       struct err *err)
{
	struct parts p;
	struct jwt jwt;
	str signature;
	if (jwt_recall(k, algorithms, a, token, ret_claims))
		return 0;
	int r = jwt_peek(a, token, &jwt, err);
	if (r < 0 || (r = split(token, &p, err)) < 0)
		return r;
	if ((r = jwt_decode(a, p.signature, &signature, err)) < 0)
		return err_wrap(err, r, "the signature of the token");
	const struct jwt_algorithm *alg = jwt_algorithm_find(jwt.algorithm);
	if (algorithms && (!alg || !allowed(alg, algorithms)))
		return err_set(err, ERR_UNAUTHORIZED, "unexpected signature algorithm \"" STR_FMT "\"", STR_ARG(jwt.algorithm));
	/* what a header declares to be critical must be understood, and nothing of it is */
	if (val_exists(val_find(jwt.header, STR("crit"))))
		return err_set(err, ERR_UNAUTHORIZED, "go-jose/go-jose: error in cryptographic primitive");
	if ((r = verify(k, &jwt, alg, &p, signature, err)) < 0)
		return r;
	remember(k, token, alg, jwt.claims);
	*ret_claims = jwt.claims;
	return 0;
}
