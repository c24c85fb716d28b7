/* Certificates for requests, with the names that were asked for and nothing else of what was; as crypto/x509 of Go makes them. */
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "apiserver/pki_priv.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "controllers/csr_request.h"
#include "controllers/moment.h"
#include "machinery/pem.h"

enum { BACKDATED_S = 300, SHORT_S = 8 * 3600, LIFE_MIN_S = 600, SERIAL_BYTES = 16, EXTENSION_MAX = 1 << 10 };

int64_t csr_lifetime(struct val object, int64_t max_s)
{
	struct val asked = val_get(object, spec, expirationSeconds);
	if (!val_exists(asked) || val_as_int(asked) > max_s)
		return max_s;
	return MAX(val_as_int(asked), (int64_t)LIFE_MIN_S);
}

/* ---- usages ---- */

struct usage {
	str name;
	const char *openssl;
};

static const struct usage key_usages[] = {
	{ STR_INIT("signing"), "digitalSignature" }, { STR_INIT("digital signature"), "digitalSignature" },
	{ STR_INIT("content commitment"), "nonRepudiation" }, { STR_INIT("key encipherment"), "keyEncipherment" },
	{ STR_INIT("data encipherment"), "dataEncipherment" }, { STR_INIT("key agreement"), "keyAgreement" },
	{ STR_INIT("cert sign"), "keyCertSign" }, { STR_INIT("crl sign"), "cRLSign" }, { STR_INIT("encipher only"), "encipherOnly" },
	{ STR_INIT("decipher only"), "decipherOnly" },
};

static const struct usage purposes[] = { /* in the order of Go's constants */
	{ STR_INIT("any"), "anyExtendedKeyUsage" }, { STR_INIT("server auth"), "serverAuth" }, { STR_INIT("client auth"), "clientAuth" },
	{ STR_INIT("code signing"), "codeSigning" }, { STR_INIT("email protection"), "emailProtection" },
	{ STR_INIT("s/mime"), "emailProtection" }, { STR_INIT("ipsec end system"), "ipsecEndSystem" },
	{ STR_INIT("ipsec tunnel"), "ipsecTunnel" }, { STR_INIT("ipsec user"), "ipsecUser" }, { STR_INIT("timestamping"), "timeStamping" },
	{ STR_INIT("ocsp signing"), "OCSPSigning" }, { STR_INIT("microsoft sgc"), "msSGC" }, { STR_INIT("netscape sgc"), "nsSGC" },
};

static bool has(struct val usages, str name)
{
	VAL_EACH(u, usages)
		if (str_eq(val_as_str(*u), name))
			return true;
	return false;
}

/* Appends those of the table that are asked for; two names of one are next to each other. */
static void add_usages(struct buf *b, struct val usages, const struct usage *table, size_t n)
{
	const char *last = "";
	for (size_t i = 0; i < n; i++) {
		if (!has(usages, table[i].name) || str_eq(str_of(table[i].openssl), str_of(last)))
			continue;
		buf_addf(b, "%s%s", b->n ? "," : "", table[i].openssl);
		last = table[i].openssl;
	}
}

static bool is_in(str name, const struct usage *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(table[i].name, name))
			return true;
	return false;
}

static int check_usages(struct val usages, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	VAL_EACH(u, usages) {
		str name = val_as_str(*u);
		if (is_in(name, key_usages, ARRAY_LEN(key_usages)) || is_in(name, purposes, ARRAY_LEN(purposes)))
			continue;
		buf_addc(&b, b.n ? ' ' : '[');
		buf_add_quoted(&b, name);
	}
	return b.n ? err_set(err, ERR_INVALID, "unrecognized usage values: " STR_FMT "]", STR_ARG(buf_str(&b))) : 0;
}

/* ---- parts of the certificate ---- */

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

static bool add_usage_extensions(X509 *cert, X509 *issuer, struct val usages)
{
	CLEANUP(buf_done) struct buf keys = BUF_INIT(EXTENSION_MAX), extended = BUF_INIT(EXTENSION_MAX);
	buf_add(&keys, STR("critical"));
	size_t none = keys.n;
	add_usages(&keys, usages, key_usages, ARRAY_LEN(key_usages));
	add_usages(&extended, usages, purposes, ARRAY_LEN(purposes));
	return (keys.n == none || add_extension(cert, issuer, NID_key_usage, keys.p)) &&
	       (!extended.n || add_extension(cert, issuer, NID_ext_key_usage, extended.p));
}

/* Those kinds of names that Go knows, in its order; critical where there is no subject. */
static bool add_names(X509 *cert, X509_REQ *request)
{
	static const int types[] = { GEN_DNS, GEN_EMAIL, GEN_IPADD, GEN_URI };
	STACK_OF(X509_EXTENSION) *extensions = X509_REQ_get_extensions(request);
	GENERAL_NAMES *all = extensions ? X509V3_get_d2i(extensions, NID_subject_alt_name, NULL, NULL) : NULL;
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	bool ok = names != NULL;
	for (size_t t = 0; t < ARRAY_LEN(types); t++)
		for (int i = 0; ok && i < sk_GENERAL_NAME_num(all); i++)
			if (sk_GENERAL_NAME_value(all, i)->type == types[t])
				ok = sk_GENERAL_NAME_push(names, sk_GENERAL_NAME_value(all, i)) > 0;
	bool critical = X509_NAME_entry_count(X509_get_subject_name(cert)) == 0;
	if (ok && sk_GENERAL_NAME_num(names))
		ok = X509_add1_ext_i2d(cert, NID_subject_alt_name, names, critical, X509V3_ADD_APPEND) == 1;
	sk_GENERAL_NAME_free(names);
	GENERAL_NAMES_free(all);
	sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
	return ok;
}

/* Adds the attribute of that kind; all of them in one set, or only the last. */
static bool add_attribute(X509_NAME *to, const X509_NAME *from, int nid, bool last_only)
{
	int last = X509_NAME_get_index_by_NID(from, nid, -1), n = 0;
	for (int i = last; i >= 0; i = X509_NAME_get_index_by_NID(from, nid, i))
		last = i;
	for (int i = 0; i <= last; i++) {
		const X509_NAME_ENTRY *e = X509_NAME_get_entry(from, i);
		const ASN1_STRING *s = X509_NAME_ENTRY_get_data(e);
		if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(e)) != nid || (last_only && i < last))
			continue;
		if (!X509_NAME_add_entry_by_NID(to, nid, ASN1_STRING_type(s), ASN1_STRING_get0_data(s), ASN1_STRING_length(s), -1, n++ ? -1 : 0))
			return false;
	}
	return true;
}

/* The attributes that Go knows, in its order. */
static bool set_subject(X509 *cert, X509_REQ *request)
{
	static const int nids[] = {
		NID_countryName, NID_organizationName, NID_organizationalUnitName, NID_localityName, NID_stateOrProvinceName,
		NID_streetAddress, NID_postalCode, NID_commonName, NID_serialNumber,
	};
	for (size_t i = 0; i < ARRAY_LEN(nids); i++)
		if (!add_attribute(X509_get_subject_name(cert), X509_REQ_get_subject_name(request), nids[i],
				   nids[i] == NID_commonName || nids[i] == NID_serialNumber))
			return false;
	return true;
}

static bool set_serial(X509 *cert)
{
	unsigned char bytes[SERIAL_BYTES];
	random_bytes(bytes, sizeof bytes);
	bytes[0] = (bytes[0] & 0x7f) | 0x40;
	BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
	bool ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return ok;
}

static const EVP_MD *digest_for(EVP_PKEY *key)
{
	if (EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519)
		return NULL;
	if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC)
		return EVP_sha256();
	int bits = EVP_PKEY_get_bits(key);
	return bits > 384 ? EVP_sha512() : bits > 256 ? EVP_sha384() : EVP_sha256();
}

/* ---- the whole ---- */

/* A short life is not made shorter by what it was dated back. */
static int set_times(X509 *cert, const struct key_pair *ca, int64_t lifetime_s, struct arena *a, struct err *err)
{
	int64_t now = clock_wall_ns() / NS_PER_S, end = cert_ends(ca->cert);
	int64_t until = MIN(now + lifetime_s - (lifetime_s < SHORT_S ? 0 : BACKDATED_S), end);
	str shown = val_as_str(moment_time(a, end * NS_PER_S));
	if (now - BACKDATED_S >= end)
		return err_set(err, ERR_INVALID, "the signer has expired: NotAfter=" STR_FMT, STR_ARG(shown));
	if (now >= end)
		return err_set(err, ERR_INVALID, "refusing to sign a certificate that expired in the past: NotAfter=" STR_FMT, STR_ARG(shown));
	if (!ASN1_TIME_set(X509_getm_notBefore(cert), now - BACKDATED_S) || !ASN1_TIME_set(X509_getm_notAfter(cert), until))
		return err_set(err, ERR_INTERNAL, "failed to sign certificate: it has no time");
	return 0;
}

static bool build(X509 *cert, const struct csr_request *q, struct val usages, const struct key_pair *ca)
{
	return X509_set_version(cert, X509_VERSION_3) && set_serial(cert) && set_subject(cert, q->x509) &&
	       X509_set_issuer_name(cert, X509_get_subject_name(ca->cert)) && X509_set_pubkey(cert, X509_REQ_get0_pubkey(q->x509)) &&
	       add_usage_extensions(cert, ca->cert, usages) && add_extension(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	       add_extension(cert, ca->cert, NID_authority_key_identifier, "keyid") && add_names(cert, q->x509) &&
	       X509_sign(cert, ca->key, digest_for(ca->key)) > 0;
}

static void x509_freep(X509 **x) { X509_free(*x); }

int csr_certificate(struct arena *a, const struct csr_request *q, struct val usages, int64_t lifetime_s, const struct key_pair *ca,
		    struct buf *pem, struct err *err)
{
	CLEANUP(x509_freep) X509 *cert = X509_new();
	EVP_PKEY *key = X509_REQ_get0_pubkey(q->x509);
	int r = check_usages(usages, err);
	if (r == 0 && (!key || X509_REQ_verify(q->x509, key) != 1))
		r = err_set(err, ERR_INVALID, "unable to verify certificate request signature");
	if (r == 0 && cert)
		r = set_times(cert, ca, lifetime_s, a, err);
	if (r == 0 && (!cert || !build(cert, q, usages, ca)))
		r = err_set(err, ERR_INTERNAL, "failed to sign certificate");
	ERR_clear_error(); /* the thread's list of errors is for its connections */
	return r < 0 ? r : cert_pem(cert, pem, err);
}

/* ---- cleaning ---- */

bool csr_has_expired(struct arena *a, struct val object, int64_t now_s)
{
	str text = val_str(object, status, certificate);
	char *room = arena_alloc(a, base64_decoded_max(text.n) + 1, 1);
	size_t n = 0;
	struct pem_block block;
	if (base64_decode(room, text, &n, NULL) < 0)
		return false;
	str rest = str_span(room, n);
	if (!pem_next(a, &rest, &block))
		return false;
	const unsigned char *at = (const unsigned char *)block.bytes.p;
	CLEANUP(x509_freep) X509 *cert = d2i_X509(NULL, &at, (long)block.bytes.n);
	ERR_clear_error();
	return cert && now_s > cert_ends(cert);
}

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };

static bool is_older(struct val time, int64_t seconds, int64_t now_ns)
{
	int64_t then = moment_of(time);
	return then && now_ns - then > seconds * NS_PER_S;
}

static bool has_old_condition(struct val object, const char *type, int64_t seconds, int64_t now_ns)
{
	VAL_EACH(c, val_get(object, status, conditions))
		if (str_eq(val_str(*c, type), str_of(type)) && is_older(val_get(*c, lastUpdateTime), seconds, now_ns))
			return true;
	return false;
}

const char *csr_useless(struct arena *a, struct val object, int64_t now_ns)
{
	bool issued = csr_is_issued(object);
	if (issued && has_old_condition(object, "Approved", HOUR_S, now_ns))
		return "approved and issued long ago";
	if (has_old_condition(object, "Denied", HOUR_S, now_ns))
		return "denied long ago";
	if (has_old_condition(object, "Failed", HOUR_S, now_ns))
		return "failed long ago";
	if (!val_len(val_get(object, status, conditions)) && is_older(val_get(object, metadata, creationTimestamp), DAY_S, now_ns))
		return "never decided";
	if (issued && csr_has_condition(object, "Approved") && csr_has_expired(a, object, now_ns / NS_PER_S))
		return "its certificate has expired";
	return !issued && has_old_condition(object, "Approved", DAY_S, now_ns) ? "approved long ago and never issued" : NULL;
}
