/* Sets of public keys, from PEM and from JSON Web Keys (RFC 7517, RFC 7518 section 6), and back. */
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>

#include "apiserver/authn/jwt_priv.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { FILE_MAX = 1 << 20, NUMBER_MAX = 2048, RSA_BITS_MIN = 1024, RSA_BITS_MAX = 16384, COORDINATE_MAX = 66 };

/* ---- algorithms ---- */

/* The first row that fits a key is what tokens are signed with. */
static const struct jwt_algorithm algorithms[] = {
	{ "ES256", EVP_PKEY_EC, 256, EVP_sha256, 32, false },
	{ "ES384", EVP_PKEY_EC, 384, EVP_sha384, 48, false },
	{ "ES512", EVP_PKEY_EC, 521, EVP_sha512, 66, false },
	{ "RS256", EVP_PKEY_RSA, 0, EVP_sha256, 0, false },
	{ "RS384", EVP_PKEY_RSA, 0, EVP_sha384, 0, false },
	{ "RS512", EVP_PKEY_RSA, 0, EVP_sha512, 0, false },
	{ "PS256", EVP_PKEY_RSA, 0, EVP_sha256, 0, true },
	{ "PS384", EVP_PKEY_RSA, 0, EVP_sha384, 0, true },
	{ "PS512", EVP_PKEY_RSA, 0, EVP_sha512, 0, true },
};

static const struct {
	str name;
	const char *group;
	int bits, bytes;
} curves[] = {
	{ STR_INIT("P-256"), "prime256v1", 256, 32 },
	{ STR_INIT("P-384"), "secp384r1", 384, 48 },
	{ STR_INIT("P-521"), "secp521r1", 521, 66 },
};

const struct jwt_algorithm *jwt_algorithm_find(str name)
{
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
		if (str_eq(name, str_of(algorithms[i].name)))
			return &algorithms[i];
	return NULL;
}

bool jwt_algorithm_fits(const struct jwt_algorithm *alg, const EVP_PKEY *key)
{
	return EVP_PKEY_base_id(key) == alg->type && (!alg->bits || EVP_PKEY_bits(key) == alg->bits);
}

const struct jwt_algorithm *jwt_algorithm_of(const EVP_PKEY *key)
{
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
		if (jwt_algorithm_fits(&algorithms[i], key))
			return &algorithms[i];
	return NULL;
}

/* ---- making a set ---- */

static str public_der(EVP_PKEY *key)
{
	unsigned char *der = NULL;
	int n = i2d_PUBKEY(key, &der);
	return n < 0 ? STR_NONE : str_span((const char *)der, (size_t)n);
}

static void id_of_der(str der, char ret[JWT_KEY_ID_SIZE])
{
	uint8_t hash[SHA256_BYTES];
	sha256(der, hash);
	ret[base64url_encode(ret, str_span((const char *)hash, sizeof hash))] = '\0';
}

int jwt_key_id_make(EVP_PKEY *key, char ret[JWT_KEY_ID_SIZE], struct err *err)
{
	str der = public_der(key);
	if (!der.n)
		return err_set(err, ERR_INTERNAL, "the public key cannot be encoded");
	id_of_der(der, ret);
	OPENSSL_free((void *)(uintptr_t)der.p);
	return 0;
}

static struct jwt_keys *keys_new(void)
{
	struct jwt_keys *k = mem_zalloc(sizeof *k);
	arena_init(&k->arena);
	k->keys = ARENA_ARRAY(&k->arena, struct jwt_key, JWT_KEYS_MAX);
	k->memo = jwt_memo_new();
	return k;
}

void jwt_keys_free(struct jwt_keys *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n; i++)
		EVP_PKEY_free(k->keys[i].key);
	jwt_memo_free(k->memo);
	arena_done(&k->arena);
	free(k);
}

/* Takes the key over. */
static int add(struct jwt_keys *k, EVP_PKEY *key, str id, struct err *err)
{
	if (k->n == JWT_KEYS_MAX) {
		EVP_PKEY_free(key);
		return err_set(err, ERR_INVALID, "there are more than %d keys", JWT_KEYS_MAX);
	}
	k->keys[k->n++] = (struct jwt_key){ key, arena_str(&k->arena, id) };
	return 0;
}

/* Whether tokens can be signed by such a key, as Kubernetes has it. */
static bool usable(const EVP_PKEY *key)
{
	int bits = EVP_PKEY_bits(key);
	return jwt_algorithm_of(key) &&
	       (EVP_PKEY_base_id(key) != EVP_PKEY_RSA || (bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX));
}

/* ---- PEM ---- */

/* What kind of block it is says its content, not its name. NULL: something else. */
static EVP_PKEY *key_of_block(const unsigned char *data, long n)
{
	const unsigned char *p = data;
	EVP_PKEY *key = d2i_PUBKEY(NULL, &p, n);
	if (!key) {
		p = data;
		key = d2i_AutoPrivateKey(NULL, &p, n);
	}
	if (!key) {
		p = data;
		X509 *cert = d2i_X509(NULL, &p, n);
		key = cert ? X509_get_pubkey(cert) : NULL;
		X509_free(cert);
	}
	ERR_clear_error();
	return key;
}

/* Adds the public part of a key, which it takes over. */
static int add_public(struct jwt_keys *k, EVP_PKEY *key, struct err *err)
{
	str der = usable(key) ? public_der(key) : STR_NONE;
	EVP_PKEY_free(key);
	if (!der.n)
		return 0;
	char id[JWT_KEY_ID_SIZE];
	const unsigned char *p = (const unsigned char *)der.p;
	EVP_PKEY *public = d2i_PUBKEY(NULL, &p, (long)der.n);
	id_of_der(der, id);
	OPENSSL_free((void *)(uintptr_t)der.p);
	return public ? add(k, public, str_of(id), err) : 0;
}

static int add_pem(struct jwt_keys *k, str pem, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", (int)pem.n);
	char *name, *header;
	unsigned char *data;
	long n;
	size_t before = k->n;
	int r = 0;
	while (r == 0 && PEM_read_bio(bio, &name, &header, &data, &n) == 1) {
		EVP_PKEY *key = key_of_block(data, n);
		if (key)
			r = add_public(k, key, err);
		OPENSSL_free(name);
		OPENSSL_free(header);
		OPENSSL_clear_free(data, (size_t)n);
	}
	BIO_free(bio);
	ERR_clear_error();
	if (r == 0 && k->n == before)
		return err_set(err, ERR_INVALID, "data does not contain any valid RSA or ECDSA public keys");
	return r;
}

static int finish(struct jwt_keys *k, int r, struct jwt_keys **ret)
{
	if (r < 0)
		jwt_keys_free(k);
	else
		*ret = k;
	return r;
}

int jwt_keys_from_pem(str pem, struct jwt_keys **ret, struct err *err)
{
	struct jwt_keys *k = keys_new();
	return finish(k, add_pem(k, pem, err), ret);
}

int jwt_keys_from_files(const char *const *files, struct jwt_keys **ret, struct err *err)
{
	struct jwt_keys *k = keys_new();
	int r = 0;
	for (; r == 0 && *files; files++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
		r = file_read(*files, &text, err);
		if (r == 0 && (r = add_pem(k, buf_str(&text), err)) < 0)
			err_wrap(err, r, "error reading public key file %s", *files);
		OPENSSL_cleanse(text.p, text.cap);
	}
	return finish(k, r, ret);
}

/* ---- JSON Web Keys ---- */

static EVP_PKEY *key_from(const char *type, OSSL_PARAM_BLD *params)
{
	EVP_PKEY *key = NULL;
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	OSSL_PARAM *list = OSSL_PARAM_BLD_to_param(params);
	if (ctx && list && EVP_PKEY_fromdata_init(ctx) == 1)
		(void)EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, list);
	OSSL_PARAM_free(list);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

static EVP_PKEY *rsa_key(str n, str e)
{
	if (!n.n || n.n > NUMBER_MAX || !e.n || e.n > 8)
		return NULL;
	BIGNUM *modulus = BN_bin2bn((const unsigned char *)n.p, (int)n.n, NULL);
	BIGNUM *exponent = BN_bin2bn((const unsigned char *)e.p, (int)e.n, NULL);
	OSSL_PARAM_BLD *params = OSSL_PARAM_BLD_new();
	EVP_PKEY *key = NULL;
	if (BN_is_odd(exponent) && !BN_is_one(exponent) &&
	    OSSL_PARAM_BLD_push_BN(params, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
	    OSSL_PARAM_BLD_push_BN(params, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
		key = key_from("RSA", params);
	OSSL_PARAM_BLD_free(params);
	BN_free(modulus);
	BN_free(exponent);
	return key;
}

/* A point that is not on its curve is refused. */
static EVP_PKEY *ec_key(str curve, str x, str y)
{
	for (size_t i = 0; i < ARRAY_LEN(curves); i++) {
		size_t bytes = (size_t)curves[i].bytes;
		if (!str_eq(curve, curves[i].name) || x.n != bytes || y.n != bytes)
			continue;
		unsigned char point[1 + 2 * COORDINATE_MAX] = { POINT_CONVERSION_UNCOMPRESSED };
		memcpy(point + 1, x.p, bytes);
		memcpy(point + 1 + bytes, y.p, bytes);
		OSSL_PARAM_BLD *params = OSSL_PARAM_BLD_new();
		EVP_PKEY *key = NULL;
		if (OSSL_PARAM_BLD_push_utf8_string(params, OSSL_PKEY_PARAM_GROUP_NAME, curves[i].group, 0) == 1 &&
		    OSSL_PARAM_BLD_push_octet_string(params, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * bytes) == 1)
			key = key_from("EC", params);
		OSSL_PARAM_BLD_free(params);
		return key;
	}
	return NULL;
}

static str number(struct arena *a, struct val text)
{
	str bytes = STR_NONE;
	return jwt_decode(a, val_as_str(text), &bytes, NULL) < 0 ? STR_NONE : bytes;
}

static int add_jwk(struct jwt_keys *k, struct arena *a, struct val jwk, struct err *err)
{
	str kty = val_str(jwk, kty), use = val_str(jwk, use), kid = val_str(jwk, kid);
	bool rsa = str_eq(kty, STR("RSA")), ec = str_eq(kty, STR("EC"));
	if (!val_is(jwk, VAL_OBJECT))
		return err_set(err, ERR_INVALID, "a key is no JSON object");
	if ((!rsa && !ec) || (use.n && !str_eq(use, STR("sig"))))
		return 0;
	EVP_PKEY *key = rsa ? rsa_key(number(a, val_get(jwk, n)), number(a, val_get(jwk, e))) :
			      ec_key(val_str(jwk, crv), number(a, val_get(jwk, x)), number(a, val_get(jwk, y)));
	ERR_clear_error();
	if (key && usable(key))
		return add(k, key, kid, err);
	EVP_PKEY_free(key);
	return err_set(err, ERR_INVALID, "the " STR_FMT " key \"" STR_FMT "\" is malformed", STR_ARG(kty), STR_ARG(kid));
}

int jwt_keys_from_jwks(str json, struct jwt_keys **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val set;
	int r = json_decode(&a, json, &(struct json_decode_options){ .sort_keys = true }, &set, err);
	if (r < 0)
		return r;
	struct val keys = val_get(set, keys);
	if (!val_is(keys, VAL_LIST))
		return err_set(err, ERR_INVALID, "it is no JSON Web Key Set: it has no list of keys");
	struct jwt_keys *k = keys_new();
	VAL_EACH(key, keys)
		if (r == 0)
			r = add_jwk(k, &a, *key, err);
	return finish(k, r, ret);
}

/* ---- showing them ---- */

/* One of the numbers of a key, in base64url; bytes: its full length, 0: as short as it is. */
static struct val number_text(const EVP_PKEY *key, const char *which, int bytes, struct arena *a)
{
	BIGNUM *number = NULL;
	unsigned char raw[NUMBER_MAX];
	if (EVP_PKEY_get_bn_param(key, which, &number) != 1)
		return VAL_EMPTY;
	int n = bytes ? bytes : BN_num_bytes(number);
	n = n <= NUMBER_MAX ? BN_bn2binpad(number, raw, n) : -1;
	BN_free(number);
	if (n < 0)
		return VAL_EMPTY;
	char *text = arena_alloc(a, base64url_encoded_len((size_t)n), 1);
	return val_of_str(str_span(text, base64url_encode(text, str_span((const char *)raw, (size_t)n))));
}

struct val jwt_keys_jwks(const struct jwt_keys *k, struct arena *a)
{
	struct val_builder list = val_builder(a);
	for (size_t i = 0; i < k->n; i++) {
		const EVP_PKEY *key = k->keys[i].key;
		const struct jwt_algorithm *alg = jwt_algorithm_of(key);
		struct val curve = VAL_EMPTY, none = VAL_EMPTY;
		for (size_t c = 0; c < ARRAY_LEN(curves); c++)
			if (alg->bits == curves[c].bits)
				curve = val_of_str(curves[c].name);
		bool ec = alg->number_bytes;
		val_add_item(&list, OBJECT(a, F(use, VAL_LIT("sig")), F(kty, ec ? VAL_LIT("EC") : VAL_LIT("RSA")),
			F(kid, val_of_str(k->keys[i].id)), F(crv, curve), F(alg, val_of_str(str_of(alg->name))),
			F(x, ec ? number_text(key, OSSL_PKEY_PARAM_EC_PUB_X, alg->number_bytes, a) : none),
			F(y, ec ? number_text(key, OSSL_PKEY_PARAM_EC_PUB_Y, alg->number_bytes, a) : none),
			F(n, ec ? none : number_text(key, OSSL_PKEY_PARAM_RSA_N, 0, a)),
			F(e, ec ? none : number_text(key, OSSL_PKEY_PARAM_RSA_E, 0, a))));
	}
	return OBJECT(a, F(keys, val_end_list(&list)));
}

const char *jwt_keys_algorithm(const struct jwt_keys *k, size_t i)
{
	return i < k->n ? jwt_algorithm_of(k->keys[i].key)->name : NULL;
}
