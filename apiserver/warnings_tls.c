/*
 * Whether the certificate and the private key of a TLS secret belong together, with the words of Go's crypto/tls, which looks
 * for them in PEM, reads the first certificate and compares it with the key.
 */
#include "apiserver/warnings_priv.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "base/buf.h"
#include "machinery/pem.h"

/* What there was in an input that is not what was looked for. */
struct found {
	struct buf types; /* of blocks, as Go prints a list */
	str first;
	size_t n;
};

static bool is_certificate(str type) { return str_eq(type, STR("CERTIFICATE")); }
static bool is_key(str type) { return str_eq(type, STR("PRIVATE KEY")) || str_ends(type, STR(" PRIVATE KEY")); }

/* DER of the first block of a type that fits; false with the others in *ret_other. */
static bool find(struct request *q, str pem, bool (*fits)(str type), str *ret, struct found *ret_other)
{
	struct pem_block block;
	while (pem_next(q->arena, &pem, &block)) {
		if (fits(block.type)) {
			*ret = block.bytes;
			return true;
		}
		if (!ret_other->n++)
			ret_other->first = block.type;
		buf_addf(&ret_other->types, "%s" STR_FMT, ret_other->n > 1 ? " " : "", STR_ARG(block.type));
	}
	return false;
}

static void warn_no_certificate(struct request *q, const struct found *f)
{
	if (!f->n)
		warnf(q, "tls: failed to find any PEM data in certificate input");
	else if (f->n == 1 && str_ends(f->first, STR("PRIVATE KEY")))
		warnf(q,
		      "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may "
			 "have been switched");
	else
		warnf(q, "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the "
			 "following types: [" STR_FMT "]",
		      STR_ARG(buf_str(&f->types)));
}

static void warn_no_key(struct request *q, const struct found *f)
{
	if (!f->n)
		warnf(q, "tls: failed to find any PEM data in key input");
	else if (f->n == 1 && is_certificate(f->first))
		warnf(q, "tls: found a certificate rather than a key in the PEM for the private key");
	else
		warnf(q,
		      "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of "
			 "the following types: [" STR_FMT "]",
		      STR_ARG(buf_str(&f->types)));
}

static bool find_both(struct request *q, str certificate, str key, str *ret_certificate, str *ret_key)
{
	struct found f = { .types = BUF_INIT(64 << 10) };
	bool ok = false;
	if (!find(q, certificate, is_certificate, ret_certificate, &f)) {
		warn_no_certificate(q, &f);
	} else {
		buf_reset(&f.types);
		f.n = 0;
		ok = find(q, key, is_key, ret_key, &f);
		if (!ok)
			warn_no_key(q, &f);
	}
	buf_done(&f.types);
	return ok;
}

static void compare(struct request *q, const EVP_PKEY *public, const EVP_PKEY *private)
{
	int type = EVP_PKEY_base_id(public);
	if (type != EVP_PKEY_RSA && type != EVP_PKEY_EC && type != EVP_PKEY_ED25519)
		warnf(q, "tls: unknown public key algorithm");
	else if (EVP_PKEY_base_id(private) != type)
		warnf(q, "tls: private key type does not match public key type");
	else if (EVP_PKEY_eq(public, private) != 1)
		warnf(q, "tls: private key does not match public key");
}

void warn_key_pair(struct request *q, str certificate, str key)
{
	str cert_der, key_der;
	if (!find_both(q, certificate, key, &cert_der, &key_der))
		return;
	const unsigned char *p = (const unsigned char *)cert_der.p;
	X509 *x = d2i_X509(NULL, &p, (long)cert_der.n);
	p = (const unsigned char *)key_der.p;
	EVP_PKEY *private = x ? d2i_AutoPrivateKey(NULL, &p, (long)key_der.n) : NULL, *public = x ? X509_get0_pubkey(x) : NULL;
	if (!x)
		warnf(q, "x509: malformed certificate");
	else if (!private)
		warnf(q, "tls: failed to parse private key");
	else if (!public)
		warnf(q, "tls: unknown public key algorithm");
	else
		compare(q, public, private);
	EVP_PKEY_free(private);
	X509_free(x);
	ERR_clear_error(); /* or the next connection on this thread takes it for its own */
}
