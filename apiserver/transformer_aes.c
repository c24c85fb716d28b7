/*
 * aesgcm: nonce (12 bytes), ciphertext, tag (16); the store's key is authenticated with it.
 * aescbc: IV (16 bytes), ciphertext of the value padded as PKCS #7 says; nothing is authenticated.
 */
#include <openssl/evp.h>

#include "apiserver/transformer_priv.h"
#include "base/random.h"

enum { BLOCK = 16, GCM_NONCE = 12, GCM_TAG = 16 };

static const char too_short[] = "the stored data was shorter than the required size";

static void free_ctx(EVP_CIPHER_CTX **ctx)
{
	EVP_CIPHER_CTX_free(*ctx);
}

static int failed(struct err *err)
{
	return err_set(err, ERR_INTERNAL, "AES failed in OpenSSL");
}

static int fetch(struct provider_key *k, const char *mode, struct err *err)
{
	char name[16];

	snprintf(name, sizeof(name), "AES-%zu-%s", 8 * k->n, mode);
	k->cipher = EVP_CIPHER_fetch(NULL, name, NULL);
	return k->cipher ? 0 : err_set(err, ERR_INTERNAL, "OpenSSL has no %s", name);
}

static int cbc_init(struct provider_key *k, struct err *err)
{
	return fetch(k, "CBC", err);
}

static int gcm_init(struct provider_key *k, struct err *err)
{
	return fetch(k, "GCM", err);
}

static void key_done(struct provider_key *k)
{
	EVP_CIPHER_free(k->cipher);
}

/* Room in ret for all of the result; NULL when it does not fit, or is more than OpenSSL counts. */
static unsigned char *room(struct buf *ret, size_t n)
{
	return n <= INT32_MAX - 2 * BLOCK ? (unsigned char *)buf_reserve(ret, n) : NULL;
}

static int too_large(struct err *err)
{
	return err_set(err, ERR_TOO_LARGE, "the value is too large to be encrypted");
}

static int gcm_encrypt(const struct provider_key *k, str authenticated, str plain, struct buf *ret, struct err *err)
{
	CLEANUP(free_ctx) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	unsigned char *out = room(ret, GCM_NONCE + plain.n + GCM_TAG);
	int n, last;

	if (!out)
		return too_large(err);
	random_bytes(out, GCM_NONCE);
	if (!ctx || EVP_EncryptInit_ex(ctx, k->cipher, NULL, k->bytes, out) != 1 ||
	    EVP_EncryptUpdate(ctx, NULL, &n, (const unsigned char *)authenticated.p, (int)authenticated.n) != 1 ||
	    EVP_EncryptUpdate(ctx, out + GCM_NONCE, &n, (const unsigned char *)plain.p, (int)plain.n) != 1 ||
	    EVP_EncryptFinal_ex(ctx, out + GCM_NONCE + n, &last) != 1 ||
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, GCM_TAG, out + GCM_NONCE + plain.n) != 1)
		return failed(err);
	buf_commit(ret, GCM_NONCE + plain.n + GCM_TAG);
	return 0;
}

static int gcm_decrypt(const struct provider_key *k, str authenticated, str data, struct buf *ret, struct err *err)
{
	CLEANUP(free_ctx) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	const unsigned char *in = (const unsigned char *)data.p;
	unsigned char tag[GCM_TAG];
	int n, last;

	if (data.n < GCM_NONCE)
		return err_set(err, ERR_INTERNAL, "%s", too_short);
	if (data.n < GCM_NONCE + GCM_TAG)
		return err_set(err, ERR_INTERNAL, "cipher: message authentication failed");
	size_t size = data.n - GCM_NONCE - GCM_TAG;
	unsigned char *out = room(ret, size);
	if (!out)
		return too_large(err);
	memcpy(tag, in + data.n - GCM_TAG, GCM_TAG);
	if (!ctx || EVP_DecryptInit_ex(ctx, k->cipher, NULL, k->bytes, in) != 1 ||
	    EVP_DecryptUpdate(ctx, NULL, &n, (const unsigned char *)authenticated.p, (int)authenticated.n) != 1 ||
	    EVP_DecryptUpdate(ctx, out, &n, in + GCM_NONCE, (int)size) != 1 ||
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, GCM_TAG, tag) != 1)
		return failed(err);
	if (EVP_DecryptFinal_ex(ctx, out + n, &last) != 1)
		return err_set(err, ERR_INTERNAL, "cipher: message authentication failed");
	buf_commit(ret, size);
	return 0;
}

static int cbc_encrypt(const struct provider_key *k, str authenticated, str plain, struct buf *ret, struct err *err)
{
	CLEANUP(free_ctx) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	unsigned char *out = room(ret, BLOCK + plain.n + BLOCK);
	int n, last;

	(void)authenticated;
	if (!out)
		return too_large(err);
	random_bytes(out, BLOCK);
	if (!ctx || EVP_EncryptInit_ex(ctx, k->cipher, NULL, k->bytes, out) != 1 ||
	    EVP_EncryptUpdate(ctx, out + BLOCK, &n, (const unsigned char *)plain.p, (int)plain.n) != 1 ||
	    EVP_EncryptFinal_ex(ctx, out + BLOCK + n, &last) != 1)
		return failed(err);
	buf_commit(ret, (size_t)BLOCK + (size_t)n + (size_t)last);
	return 0;
}

/* The length without padding, or an error. Go lets a padding be longer than a block, so OpenSSL's own check is not used. */
static int unpad(const unsigned char *p, size_t n, size_t *ret_n, struct err *err)
{
	size_t padding = n ? p[n - 1] : 0;

	if (padding == 0 || padding > n)
		return err_set(err, ERR_INTERNAL, "invalid PKCS7 data (empty or not padded)");
	for (size_t i = n - padding; i < n; i++)
		if (p[i] != padding)
			return err_set(err, ERR_INTERNAL, "invalid padding on input");
	*ret_n = n - padding;
	return 0;
}

static int cbc_decrypt(const struct provider_key *k, str authenticated, str data, struct buf *ret, struct err *err)
{
	CLEANUP(free_ctx) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	const unsigned char *in = (const unsigned char *)data.p;
	size_t plain_n = 0;
	int n, last, r;

	(void)authenticated;
	if (data.n < BLOCK)
		return err_set(err, ERR_INTERNAL, "%s", too_short);
	if (data.n % BLOCK)
		return err_set(err, ERR_INTERNAL, "the stored data is not a multiple of the block size");
	unsigned char *out = room(ret, data.n);
	if (!out)
		return too_large(err);
	if (!ctx || EVP_DecryptInit_ex(ctx, k->cipher, NULL, k->bytes, in) != 1 || EVP_CIPHER_CTX_set_padding(ctx, 0) != 1 ||
	    EVP_DecryptUpdate(ctx, out, &n, in + BLOCK, (int)(data.n - BLOCK)) != 1 ||
	    EVP_DecryptFinal_ex(ctx, out + n, &last) != 1)
		return failed(err);
	if ((r = unpad(out, (size_t)n + (size_t)last, &plain_n, err)) < 0)
		return r;
	buf_commit(ret, plain_n);
	return 0;
}

static const size_t key_sizes[] = { 16, 24, 32, 0 };

const struct provider_type provider_aesgcm = {
	.name = STR_INIT("aesgcm"),
	.prefix = STR_INIT("k8s:enc:aesgcm:v1:"),
	.no_key = "no matching key was found for the provided AES transformer",
	.key_sizes = key_sizes,
	.key_sizes_text = "[16 24 32]",
	.key_init = gcm_init,
	.key_done = key_done,
	.encrypt = gcm_encrypt,
	.decrypt = gcm_decrypt,
};

const struct provider_type provider_aescbc = {
	.name = STR_INIT("aescbc"),
	.prefix = STR_INIT("k8s:enc:aescbc:v1:"),
	.no_key = "no matching key was found for the provided AES transformer",
	.key_sizes = key_sizes,
	.key_sizes_text = "[16 24 32]",
	.key_init = cbc_init,
	.key_done = key_done,
	.encrypt = cbc_encrypt,
	.decrypt = cbc_decrypt,
};
