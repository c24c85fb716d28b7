/* Certificates for tests, made on the spot. */
#ifndef C8S_NET_TEST_CERTS_H
#define C8S_NET_TEST_CERTS_H

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"

struct test_cert {
	X509 *x;
	EVP_PKEY *pkey;
	char *cert, *key; /* PEM */
};

static __attribute__((unused)) void test_cert_done(struct test_cert *c)
{
	X509_free(c->x);
	EVP_PKEY_free(c->pkey);
	free(c->cert);
	free(c->key);
}

static char *test_cert_pem(struct test_cert *c, bool key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *p;

	if (key)
		PEM_write_bio_PrivateKey(bio, c->pkey, NULL, NULL, 0, NULL, NULL);
	else
		PEM_write_bio_X509(bio, c->x);
	long n = BIO_get_mem_data(bio, &p);
	char *copy = strndup(p, (size_t)n);
	BIO_free(bio);
	return copy;
}

static void test_cert_extension(X509 *x, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
	CHECK(e && X509_add_ext(x, e, -1) == 1);
	X509_EXTENSION_free(e);
}

/* A certificate for cn, with names ("DNS:localhost,IP:127.0.0.1"; NULL: an authority), by an issuer (NULL: by itself). */
static __attribute__((unused)) struct test_cert test_cert_new(const char *cn, const char *names,
							      const struct test_cert *issuer)
{
	static long serial = 1;
	struct test_cert c = { .x = X509_new(), .pkey = EVP_EC_gen("P-256") };
	X509_NAME *subject = X509_get_subject_name(c.x);

	CHECK(c.pkey != NULL);
	X509_set_version(c.x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(c.x), serial++);
	X509_gmtime_adj(X509_getm_notBefore(c.x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(c.x), 3600);
	X509_set_pubkey(c.x, c.pkey);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)cn, -1, -1, 0);
	X509_set_issuer_name(c.x, issuer ? X509_get_subject_name(issuer->x) : subject);
	if (names)
		test_cert_extension(c.x, NID_subject_alt_name, names);
	else
		test_cert_extension(c.x, NID_basic_constraints, "critical,CA:TRUE");
	CHECK(X509_sign(c.x, issuer ? issuer->pkey : c.pkey, EVP_sha256()) > 0);
	c.cert = test_cert_pem(&c, false);
	c.key = test_cert_pem(&c, true);
	return c;
}

/* Writes text to a new file "dir/name"; the path is the caller's to free. */
static __attribute__((unused)) char *test_file(const char *dir, const char *name, const char *text)
{
	char *path = NULL;

	CHECK(asprintf(&path, "%s/%s", dir, name) > 0);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)close(fd);
	return path;
}

#endif
