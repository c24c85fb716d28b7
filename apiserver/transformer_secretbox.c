/* secretbox: nonce (24 bytes), then NaCl's box: tag (16 bytes) and ciphertext of XSalsa20 with Poly1305. */
#include <sodium.h>

#include "apiserver/transformer_priv.h"
#include "base/random.h"

enum { NONCE = crypto_secretbox_NONCEBYTES, TAG = crypto_secretbox_MACBYTES };

static int key_init(struct provider_key *k, struct err *err)
{
	(void)k;
	return sodium_init() < 0 ? err_set(err, ERR_INTERNAL, "libsodium could not be started") : 0;
}

static int encrypt(const struct provider_key *k, str authenticated, str plain, struct buf *ret, struct err *err)
{
	unsigned char *out = (unsigned char *)buf_reserve(ret, NONCE + TAG + plain.n);

	(void)authenticated;
	if (!out)
		return err_set(err, ERR_TOO_LARGE, "the value is too large to be encrypted");
	random_bytes(out, NONCE);
	crypto_secretbox_easy(out + NONCE, (const unsigned char *)plain.p, plain.n, out, k->bytes);
	buf_commit(ret, NONCE + TAG + plain.n);
	return 0;
}

static int decrypt(const struct provider_key *k, str authenticated, str data, struct buf *ret, struct err *err)
{
	const unsigned char *in = (const unsigned char *)data.p;

	(void)authenticated;
	if (data.n < NONCE + TAG)
		return err_set(err, ERR_INTERNAL, "the stored data was shorter than the required size");
	size_t size = data.n - NONCE - TAG;
	unsigned char *out = (unsigned char *)buf_reserve(ret, size);
	if (!out)
		return err_set(err, ERR_TOO_LARGE, "the value is too large to be decrypted");
	/* Kubernetes says this of every box that does not open. */
	if (crypto_secretbox_open_easy(out, in + NONCE, data.n - NONCE, in, k->bytes) != 0)
		return err_set(err, ERR_INTERNAL, "output array was not large enough for encryption");
	buf_commit(ret, size);
	return 0;
}

static const size_t key_sizes[] = { crypto_secretbox_KEYBYTES, 0 };

const struct provider_type provider_secretbox = {
	.name = STR_INIT("secretbox"),
	.prefix = STR_INIT("k8s:enc:secretbox:v1:"),
	.no_key = "no matching key was found for the provided Secretbox transformer",
	.key_sizes = key_sizes,
	.key_sizes_text = "[32]",
	.key_init = key_init,
	.encrypt = encrypt,
	.decrypt = decrypt,
};
