/* Who a client certificate says that it is: from its subject, if it is valid and meant for clients. */
#include "apiserver/authn/x509.h"

#include <inttypes.h>
#include <openssl/bn.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/encoding.h"

/* 1.3.6.1.4.1.57683.2, Kubernetes' attribute for the UID of a user */
static const char uid_oid[] = "1.3.6.1.4.1.57683.2";
static const str credential_id = STR_INIT("authentication.kubernetes.io/credential-id");

/* ---- texts for messages ---- */

static void add_colon_hex(struct buf *b, const ASN1_OCTET_STRING *id)
{
	for (int i = 0; id && i < ASN1_STRING_length(id); i++)
		buf_addf(b, "%s%02X", i ? ":" : "", ASN1_STRING_get0_data(id)[i]);
}

/* "verifying certificate SN=1, SKID=, AKID=AB:CD failed: " and why */
static int refuse(struct x509_st *cert, const char *why, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	BIGNUM *serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
	char *digits = serial ? BN_bn2dec(serial) : NULL;

	buf_addf(&b, "SN=%s, SKID=", digits ? digits : "");
	add_colon_hex(&b, X509_get0_subject_key_id(cert));
	buf_add(&b, STR(", AKID="));
	add_colon_hex(&b, X509_get0_authority_key_id(cert));
	OPENSSL_free(digits);
	BN_free(serial);
	return err_set(err, ERR_UNAUTHORIZED, "verifying certificate " STR_FMT " failed: x509: %s", STR_ARG(buf_str(&b)), why);
}

/* ---- the subject ---- */

/* The text of an attribute of the subject, in the arena; false when it is no text. */
static bool attribute_text(const X509_NAME *name, int at, struct arena *a, str *ret)
{
	unsigned char *utf8;
	const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, at);
	int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));

	if (n < 0)
		return false;
	*ret = arena_str(a, str_span((const char *)utf8, (size_t)n));
	OPENSSL_free(utf8);
	return true;
}

size_t authn_x509_texts(const struct X509_name_st *subject, int sort, struct arena *a, const str **ret)
{
	str *all = ARENA_ARRAY(a, str, (size_t)X509_NAME_entry_count(subject));
	size_t n = 0;
	for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, sort, at)) >= 0;)
		n += attribute_text(subject, at, a, &all[n]);
	*ret = all;
	return n;
}

str authn_x509_common_name(const struct X509_name_st *subject, struct arena *a)
{
	const str *names;
	size_t n = authn_x509_texts(subject, NID_commonName, a, &names);
	return n ? names[n - 1] : STR_NONE;
}

static int find_uid(const X509_NAME *subject, struct arena *a, str *ret, struct err *err)
{
	ASN1_OBJECT *oid = OBJ_txt2obj(uid_oid, 1);
	int at = X509_NAME_get_index_by_OBJ(subject, oid, -1), r = 0;

	if (at < 0)
		*ret = STR_NONE;
	else if (!attribute_text(subject, at, a, ret))
		r = err_set(err, ERR_UNAUTHORIZED, "unable to parse UID into a string");
	else if (X509_NAME_get_index_by_OBJ(subject, oid, at) >= 0)
		r = err_set(err, ERR_UNAUTHORIZED, "expected 1 UID, but found multiple");
	else if (!ret->n)
		r = err_set(err, ERR_UNAUTHORIZED, "UID cannot be an empty string");
	ASN1_OBJECT_free(oid);
	return r;
}

static struct val fingerprint(struct x509_st *cert, struct arena *a)
{
	unsigned char *der = NULL;
	int n = i2d_X509(cert, &der);
	char hex[SHA256_HEX + 1];

	if (n < 0)
		return VAL_EMPTY;
	sha256_hex(str_span((const char *)der, (size_t)n), hex);
	OPENSSL_free(der);
	return VAL_STR(arena_printf(a, "X509SHA256=%s", hex));
}

bool authn_x509_is_for_clients(struct x509_st *cert)
{
	return X509_get_extended_key_usage(cert) & (XKU_SSL_CLIENT | XKU_ANYEKU);
}

int authn_x509_user(struct x509_st *cert, struct arena *a, struct user *ret, struct err *err)
{
	time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
	const X509_NAME *subject = X509_get_subject_name(cert);
	struct user user = { 0 };
	int r;

	if (X509_cmp_time(X509_get0_notBefore(cert), &now) > 0 || X509_cmp_time(X509_get0_notAfter(cert), &now) < 0)
		return refuse(cert, "certificate has expired or is not yet valid", err);
	if (!authn_x509_is_for_clients(cert))
		return refuse(cert, "certificate specifies an incompatible key usage", err);
	user.name = authn_x509_common_name(subject, a);
	if (!user.name.n)
		return 0;
	user.n_groups = authn_x509_texts(subject, NID_organizationName, a, &user.groups);
	if ((r = find_uid(subject, a, &user.uid, err)) < 0)
		return r;
	const struct member extra = { atom_make(a, credential_id), LIST(a, fingerprint(cert, a)) };
	user.extra = val_object(a, &extra, 1);
	*ret = user;
	return 1;
}
