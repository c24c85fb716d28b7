/* Keys and certificates by OpenSSL. Times are those of base/clock.h, so that tests can let a year pass. */
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "apiserver/pki_priv.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"

enum { FILE_MAX = 1 << 20, SERIAL_BYTES = 16, DAY_S = 24 * 3600, BACKDATED_S = 300 };

void key_pair_done(struct key_pair *p)
{
	EVP_PKEY_free(p->key);
	X509_free(p->cert);
	*p = (struct key_pair){ 0 };
}

static int failed(struct err *err, const char *what)
{
	char text[200];

	ERR_error_string_n(ERR_get_error(), text, sizeof(text));
	ERR_clear_error();
	return err_set(err, ERR_INTERNAL, "%s: %s", what, text);
}

int key_make(struct evp_pkey_st **ret, struct err *err)
{
	*ret = EVP_EC_gen("P-256");
	return *ret ? 0 : failed(err, "cannot make a key");
}

/* ---- certificates ---- */

static int64_t now_s(void)
{
	return clock_wall_ns() / NS_PER_S;
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509V3_set_ctx_nodb(&ctx);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool ok = e && X509_add_ext(cert, e, -1) == 1;
	X509_EXTENSION_free(e);
	return ok;
}

/* "DNS:a,DNS:b,IP:127.0.0.1" */
static bool add_alternative_names(X509 *cert, const struct cert_request *q)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(16 << 10);

	for (size_t i = 0; q->names && q->names[i]; i++)
		buf_addf(&b, "%sDNS:%s", b.n ? "," : "", q->names[i]);
	for (size_t i = 0; q->addresses && q->addresses[i]; i++)
		buf_addf(&b, "%sIP:%s", b.n ? "," : "", q->addresses[i]);
	return b.n == 0 || (!b.overflow && add_extension(cert, NULL, NID_subject_alt_name, b.p));
}

static bool add_extensions(X509 *cert, X509 *issuer, const struct cert_request *q)
{
	const char *usage = q->is_ca ? "critical,digitalSignature,keyEncipherment,keyCertSign" : "critical,digitalSignature,keyEncipherment";
	const char *purpose = q->for_servers &&
		q->for_clients ? "serverAuth,clientAuth" : q->for_servers ? "serverAuth" : "clientAuth";

	return add_extension(cert, issuer, NID_basic_constraints, q->is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
	       add_extension(cert, issuer, NID_key_usage, usage) &&
	       (q->is_ca || add_extension(cert, issuer, NID_ext_key_usage, purpose)) &&
	       add_extension(cert, issuer, NID_subject_key_identifier, "hash") &&
	       (issuer == cert || add_extension(cert, issuer, NID_authority_key_identifier, "keyid")) &&
	       add_alternative_names(cert, q);
}

static bool set_subject(X509 *cert, const struct cert_request *q)
{
	X509_NAME *name = X509_get_subject_name(cert);
	const unsigned char *org = (const unsigned char *)q->organization, *cn = (const unsigned char *)q->common_name;

	return (!org || X509_NAME_add_entry_by_NID(name, NID_organizationName, MBSTRING_UTF8, org, -1, -1, 0)) &&
	       X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8, cn, -1, -1, 0);
}

/* Random, positive, and never 0. */
static bool set_serial(X509 *cert)
{
	unsigned char bytes[SERIAL_BYTES];

	random_bytes(bytes, sizeof(bytes));
	bytes[0] = (bytes[0] & 0x7f) | 0x40;
	BIGNUM *n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	bool ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return ok;
}

static bool set_times(X509 *cert, const struct cert_request *q, const struct key_pair *ca)
{
	int64_t from = now_s() - BACKDATED_S, until = now_s() + (int64_t)q->days * DAY_S;

	if (ca) {
		from = MAX(from, cert_begins(ca->cert));
		until = MIN(until, cert_ends(ca->cert));
	}
	return ASN1_TIME_set(X509_getm_notBefore(cert), from) && ASN1_TIME_set(X509_getm_notAfter(cert), until);
}

int cert_make(const struct cert_request *q, struct evp_pkey_st *key, const struct key_pair *ca, struct x509_st **ret,
	      struct err *err)
{
	X509 *cert = X509_new();
	X509 *issuer = ca ? ca->cert : cert;

	if (!cert || !X509_set_version(cert, X509_VERSION_3) || !set_serial(cert) || !set_times(cert, q, ca) ||
	    !set_subject(cert, q) ||
	    !X509_set_issuer_name(cert, X509_get_subject_name(issuer)) || !X509_set_pubkey(cert, key) ||
	    !add_extensions(cert, issuer, q) || !X509_sign(cert, ca ? ca->key : key, EVP_sha256())) {
		X509_free(cert);
		return failed(err, "cannot make a certificate");
	}
	*ret = cert;
	return 0;
}

/* ---- PEM ---- */

static int take_bio(BIO *bio, bool ok, struct buf *b, struct err *err)
{
	char *p;
	long n = ok ? BIO_get_mem_data(bio, &p) : 0;

	if (n > 0)
		buf_add(b, str_span(p, (size_t)n));
	BIO_free(bio);
	return n > 0 ? buf_check(b, "a PEM text", err) : failed(err, "cannot write PEM");
}

int key_pem(struct evp_pkey_st *key, struct buf *b, struct err *err)
{
	BIO *bio = BIO_new(BIO_s_secmem());
	return take_bio(bio, bio && PEM_write_bio_PrivateKey_traditional(bio, key, NULL, NULL, 0, NULL, NULL), b, err);
}

int public_key_pem(struct evp_pkey_st *key, struct buf *b, struct err *err)
{
	BIO *bio = BIO_new(BIO_s_mem());
	return take_bio(bio, bio && PEM_write_bio_PUBKEY(bio, key), b, err);
}

int cert_pem(struct x509_st *cert, struct buf *b, struct err *err)
{
	BIO *bio = BIO_new(BIO_s_mem());
	return take_bio(bio, bio && PEM_write_bio_X509(bio, cert), b, err);
}

static int no_password(char *buf, int size, int writing, void *arg)
{
	(void)buf, (void)size, (void)writing, (void)arg;
	return -1;
}

static int unreadable(const char *path, const char *what, struct err *err)
{
	ERR_clear_error();
	return err_set(err, ERR_INVALID, "%s does not hold a %s in PEM; repair it, or remove it to have a new one made",
		       path, what);
}

int key_parse(str pem, const char *path, struct evp_pkey_st **ret, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem.n ? pem.p : "", (int)pem.n);

	*ret = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
	BIO_free(bio);
	return *ret ? 0 : unreadable(path, "private key", err);
}

int cert_parse(str pem, const char *path, struct x509_st **ret, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem.n ? pem.p : "", (int)pem.n);

	*ret = bio ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;
	BIO_free(bio);
	return *ret ? 0 : unreadable(path, "certificate", err);
}

int key_read(const char *path, struct evp_pkey_st **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	int r = file_read(path, &b, err);

	if (r == 0)
		r = key_parse(buf_str(&b), path, ret, err);
	if (b.p)
		OPENSSL_cleanse(b.p, b.n);
	return r;
}

int cert_read(const char *path, struct x509_st **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	int r = file_read(path, &b, err);

	return r < 0 ? r : cert_parse(buf_str(&b), path, ret, err);
}

/* ---- looking at certificates ---- */

static int64_t seconds_of(const ASN1_TIME *t)
{
	struct tm tm;
	return ASN1_TIME_to_tm(t, &tm) ? (int64_t)timegm(&tm) : 0;
}

int64_t cert_begins(const struct x509_st *cert)
{
	return seconds_of(X509_get0_notBefore(cert));
}

int64_t cert_ends(const struct x509_st *cert)
{
	return seconds_of(X509_get0_notAfter(cert));
}

int64_t cert_due(const struct x509_st *cert)
{
	return cert_begins(cert) + (cert_ends(cert) - cert_begins(cert)) / 3 * 2;
}

bool cert_has_names(struct x509_st *cert, const char *const *names, const char *const *addresses)
{
	for (size_t i = 0; names && names[i]; i++)
		if (X509_check_host(cert, names[i], 0, X509_CHECK_FLAG_NO_WILDCARDS, NULL) != 1)
			return false;
	for (size_t i = 0; addresses && addresses[i]; i++)
		if (X509_check_ip_asc(cert, addresses[i], 0) != 1)
			return false;
	return true;
}
