/*
 * SHA-256 by OpenSSL: in a file of its own, so that small programs which need no sums are not linked with it. Finding the
 * algorithm costs more than a short hash, so it is done once.
 */
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/encoding.h"

static pthread_once_t md_once = PTHREAD_ONCE_INIT;
static EVP_MD *md;

static void must(bool ok)
{
	if (!ok) {
		fputs("c8s: OpenSSL's SHA-256 does not work\n", stderr);
		abort();
	}
}

static void md_find(void)
{
	md = EVP_MD_fetch(NULL, "SHA256", NULL);
	must(md != NULL);
}

void sha256_init(struct sha256 *h)
{
	pthread_once(&md_once, md_find);
	h->ctx = EVP_MD_CTX_new();
	must(h->ctx && EVP_DigestInit_ex2(h->ctx, md, NULL) == 1);
}

void sha256_add(struct sha256 *h, str in) { must(EVP_DigestUpdate(h->ctx, in.p, in.n) == 1); }
void sha256_sum(struct sha256 *h, uint8_t ret_sum[SHA256_BYTES]) { must(EVP_DigestFinal_ex(h->ctx, ret_sum, NULL) == 1); }

void sha256_done(struct sha256 *h)
{
	EVP_MD_CTX_free(h->ctx);
	h->ctx = NULL;
}

void sha256(str in, uint8_t ret_sum[SHA256_BYTES])
{
	CLEANUP(sha256_done) struct sha256 h = { 0 };
	sha256_init(&h);
	sha256_add(&h, in);
	sha256_sum(&h, ret_sum);
}

void sha256_hex(str in, char ret_hex[SHA256_HEX + 1])
{
	uint8_t sum[SHA256_BYTES];
	sha256(in, sum);
	ret_hex[hex_encode(ret_hex, str_span((const char *)sum, sizeof(sum)))] = '\0';
}
