/*
 * OpenSSL's algorithms come from providers. Ours is OpenSSL's default one, whose lists are cut down before anybody sees them. The name
 * of its first function is not for everybody: only the archive has it, not the shared library. So it is with the texts of errors,
 * which are loaded when something has failed.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* there is no other way to load libssl's texts later */
#include "net/crypto_part.h"

#include <openssl/core_dispatch.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

extern OSSL_provider_init_fn ossl_default_provider_init __attribute__((weak));
extern int ossl_err_load_crypto_strings(void) __attribute__((weak));

enum { LIST_MAX = 40, FUNCTIONS_MAX = 16 };

/* By the first of their names. Operations that are not listed have few algorithms, and show them all. */
static const struct part {
	int operation;
	const char *names;
} parts[] = {
	{ OSSL_OP_DIGEST, "SHA1,SHA2-224,SHA2-256,SHA2-384,SHA2-512" },
	/* the first two are for random numbers */
	{ OSSL_OP_CIPHER, "AES-256-CTR,AES-256-ECB,AES-128-CBC,AES-256-CBC,AES-128-GCM,AES-256-GCM,ChaCha20-Poly1305" },
	{ OSSL_OP_MAC, "HMAC" },
	{ OSSL_OP_KDF, "HKDF,TLS13-KDF,TLS1-PRF" },
	{ OSSL_OP_RAND, "CTR-DRBG,SEED-SRC" },
	/* RSA-PSS is how RSA signs, too; HMAC is a key and a signature to the older suites of TLS 1.2 */
	{ OSSL_OP_KEYMGMT, "EC,RSA,RSA-PSS,ED25519,X25519,HMAC" },
	{ OSSL_OP_SIGNATURE, "ECDSA,RSA,ED25519,HMAC" },
	{ OSSL_OP_DECODER, "EC,RSA,ED25519,DER" },
};

/* ---- the provider ---- */

static OSSL_FUNC_provider_query_operation_fn *query_whole;
static OSSL_ALGORITHM lists[ARRAY_LEN(parts)][LIST_MAX + 1];
static OSSL_DISPATCH functions[FUNCTIONS_MAX + 1];

static const OSSL_ALGORITHM *query_part(void *provider, int operation, int *ret_no_cache)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].operation == operation) {
			*ret_no_cache = 0;
			return lists[i];
		}
	return query_whole(provider, operation, ret_no_cache);
}

/* Of keys: Microsoft's, and names for "type-specific" that nobody asks for. */
static bool is_odd_form(const char *properties)
{
	static const char *const forms[] = { "input=msblob", "input=pvk", "structure=rsa", "structure=ec" };
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (strstr(properties, forms[i]))
			return true;
	return false;
}

static bool is_shown(const char *names, const OSSL_ALGORITHM *a)
{
	str rest = str_of(names), name, first, others;
	if (is_odd_form(a->property_definition))
		return false;
	(void)str_cut(str_of(a->algorithm_names), ':', &first, &others);
	while (rest.n) {
		(void)str_cut(rest, ',', &name, &rest);
		if (str_eq(first, name))
			return true;
	}
	return false;
}

static bool fill_lists(void *provider)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		int no_cache = 0;
		size_t n = 0;
		for (const OSSL_ALGORITHM *a = query_whole(provider, parts[i].operation, &no_cache); a && a->algorithm_names; a++)
			if (is_shown(parts[i].names, a)) {
				if (n == LIST_MAX)
					return false;
				lists[i][n++] = *a;
			}
	}
	return true;
}

static int provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **ret, void **ret_provider)
{
	const OSSL_DISPATCH *f;
	size_t n = 0;
	if (!ossl_default_provider_init(handle, in, &f, ret_provider))
		return 0;
	for (; f->function_id; f++) {
		if (n == FUNCTIONS_MAX)
			return 0;
		functions[n] = *f;
		if (f->function_id == OSSL_FUNC_PROVIDER_QUERY_OPERATION) {
			query_whole = OSSL_FUNC_provider_query_operation(f);
			functions[n].function = (void (*)(void))query_part;
		}
		n++;
	}
	*ret = functions;
	return query_whole && fill_lists(*ret_provider);
}

/* Signatures of certificates are looked up among these still, by numbers, and so are keys that would need a password. */
static bool add_old_tables(void)
{
	return EVP_add_digest(EVP_sha1()) && EVP_add_digest(EVP_sha224()) && EVP_add_digest(EVP_sha256()) && EVP_add_digest(EVP_sha384()) &&
	       EVP_add_digest(EVP_sha512()) && EVP_add_cipher(EVP_aes_128_cbc()) && EVP_add_cipher(EVP_aes_256_cbc()) &&
	       EVP_add_cipher(EVP_des_ede3_cbc());
}

/* ---- texts ---- */

static bool without_texts;

static void load_texts(void)
{
	if (without_texts) {
		(void)ossl_err_load_crypto_strings();
		(void)ERR_load_SSL_strings();
	}
}

void crypto_part_texts(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, load_texts);
}

/* ---- the beginning ---- */

static bool start(void)
{
	uint64_t options = OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ADD_ALL_CIPHERS | OPENSSL_INIT_NO_ADD_ALL_DIGESTS;
	without_texts = ossl_err_load_crypto_strings;
	if (without_texts)
		options |= OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_NO_LOAD_SSL_STRINGS;
	if (OPENSSL_init_crypto(options, NULL) != 1 || OPENSSL_init_ssl(options, NULL) != 1 || !add_old_tables())
		return false;
	return !ossl_default_provider_init ||
	       (OSSL_PROVIDER_add_builtin(NULL, "part", provider_init) == 1 && OSSL_PROVIDER_load(NULL, "part"));
}

void crypto_part_use(void)
{
	if (!start()) {
		fputs("c8s: OpenSSL does not work\n", stderr);
		abort();
	}
}
