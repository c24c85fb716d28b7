#include "controllers/csr_request.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "apiserver/pki_priv.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "controllers/controllers.h"
#include "controllers/plan_testing.h"

#define NOW_S INT64_C(1767225600) /* 2026-01-01 */

/* An authority, and the key of those who ask. */
struct fixture {
	struct arena arena;
	struct key_pair ca;
	EVP_PKEY *key;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){ .arena = ARENA_INIT };
	clock_virtual_set(0, NOW_S * NS_PER_S);
	CHECK_INT(key_make(&f->ca.key, NULL), 0);
	CHECK_INT(key_make(&f->key, NULL), 0);
	CHECK_INT(cert_make(&(struct cert_request){ .common_name = "kubernetes-ca", .is_ca = true, .days = 100 }, f->ca.key, NULL, &f->ca.cert, NULL),
		  0);
}

static void fixture_done(struct fixture *f)
{
	EVP_PKEY_free(f->key);
	key_pair_done(&f->ca);
	arena_done(&f->arena);
	clock_virtual_off();
}

static void add_name(X509_NAME *n, int nid, const char *text)
{
	if (text)
		CHECK_INT(X509_NAME_add_entry_by_NID(n, nid, MBSTRING_UTF8, (const unsigned char *)text, -1, -1, 0), 1);
}

/* names: "DNS:a,IP:1.2.3.4"; NULL: none. */
static struct val object(struct fixture *f, const char *cn, const char *organization, const char *names)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	X509_REQ *q = X509_REQ_new();
	BIO *bio = BIO_new(BIO_s_mem());
	char *p;
	add_name(X509_REQ_get_subject_name(q), NID_commonName, cn);
	add_name(X509_REQ_get_subject_name(q), NID_organizationName, organization);
	if (names) {
		STACK_OF(X509_EXTENSION) *list = sk_X509_EXTENSION_new_null();
		sk_X509_EXTENSION_push(list, X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names));
		CHECK_INT(X509_REQ_add_extensions(q, list), 1);
		sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
	}
	CHECK(X509_REQ_set_pubkey(q, f->key) == 1 && X509_REQ_sign(q, f->key, EVP_sha256()) > 0 && PEM_write_bio_X509_REQ(bio, q) == 1);
	long n = BIO_get_mem_data(bio, &p);
	base64_encode_buf(&b, str_span(p, (size_t)n));
	struct val request = VAL_STR(arena_str(&f->arena, buf_str(&b)));
	BIO_free(bio);
	X509_REQ_free(q);
	return OBJECT(&f->arena, F(spec, OBJECT(&f->arena, F(request, request))));
}

#define CLIENT_USES "['digital signature','key encipherment','client auth']"
#define SERVER_USES "['digital signature','server auth']"

TEST(csr_signers)
{
	static const struct {
		const char *signer, *cn, *organization, *names, *usages, *want;
	} t[] = {
		{ CSR_KUBELET_CLIENT, "system:node:n", "system:nodes", NULL, CLIENT_USES, "" },
		{ CSR_KUBELET_CLIENT, "system:node:n", "system:nodes", NULL, "['client auth','digital signature']", "" },
		{ CSR_KUBELET_CLIENT, "system:node:n", "nodes", NULL, CLIENT_USES, "subject organization is not system:nodes" },
		{ CSR_KUBELET_CLIENT, "n", "system:nodes", NULL, CLIENT_USES, "subject common name does not begin with system:node:" },
		{ CSR_KUBELET_CLIENT, "system:node:n", "system:nodes", "DNS:n", CLIENT_USES, "DNS subjectAltNames are not allowed" },
		{ CSR_KUBELET_CLIENT, "system:node:n", "system:nodes", "IP:10.0.0.1", CLIENT_USES, "IP subjectAltNames are not allowed" },
		{ CSR_KUBELET_CLIENT, "system:node:n", "system:nodes", "URI:http://a/b", CLIENT_USES, "URI subjectAltNames are not allowed" },
		{ CSR_KUBELET_CLIENT, "system:node:n", "system:nodes", NULL, SERVER_USES,
		  "usages did not match [client auth digital signature key encipherment]" },
		{ CSR_KUBELET_SERVING, "system:node:n", "system:nodes", "DNS:n,IP:10.0.0.1", SERVER_USES, "" },
		{ CSR_KUBELET_SERVING, "system:node:n", "system:nodes", NULL, SERVER_USES, "DNS or IP subjectAltName is required" },
		{ CSR_KUBELET_SERVING, "system:node:n", "system:nodes", "DNS:n,email:a@b.c", SERVER_USES, "Email subjectAltNames are not allowed" },
		{ CSR_KUBELET_SERVING, "system:node:n", "system:nodes", "DNS:n", CLIENT_USES,
		  "usages did not match [digital signature key encipherment server auth]" },
		{ CSR_CLIENT, "anybody", NULL, "DNS:n", CLIENT_USES, "" },
		{ CSR_CLIENT, "anybody", NULL, NULL, "['digital signature','server auth']", "invalid usage for client certificate: server auth" },
		{ CSR_CLIENT, "anybody", NULL, NULL, "['digital signature']", "missing required usage for client certificate: client auth" },
		{ CSR_LEGACY, "anybody", NULL, NULL, "['cert sign']", "" },
	};
	CLEANUP(fixture_done) struct fixture f;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(csr_request_done) struct csr_request q;
		CHECK_ROW(i, csr_request_parse(&f.arena, object(&f, t[i].cn, t[i].organization, t[i].names), &q, NULL) == 0);
		CHECK_STR_ROW(i, csr_signer_refuses(&f.arena, str_of(t[i].signer), &q, tree(&f.arena, t[i].usages)), t[i].want);
	}
}

TEST(csr_signers_have_authorities)
{
	static const struct controllers_options none = { 0 }, one = { .signing = { "ca.crt", "ca.key" } },
		own = { .signing = { "ca.crt", "ca.key" }, .signing_of = { [SIGNER_KUBELET_SERVING] = { "s.crt", "s.key" }, [SIGNER_LEGACY] = { "l.crt", "l.key" } } };
	static const struct {
		const struct controllers_options *o;
		const char *signer, *want;
	} t[] = {
		{ &none, CSR_CLIENT, NULL },
		{ &one, CSR_CLIENT, "ca.key" },
		{ &one, CSR_KUBELET_CLIENT, "ca.key" },
		{ &one, CSR_KUBELET_SERVING, "ca.key" },
		{ &one, CSR_LEGACY, "ca.key" },
		{ &one, "example.test/signer", NULL },
		{ &own, CSR_KUBELET_SERVING, "s.key" },
		{ &own, CSR_LEGACY, "l.key" },
		{ &own, CSR_CLIENT, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct signing_files *files = csr_signing_files(t[i].o, str_of(t[i].signer));
		CHECK_ROW(i, !files == !t[i].want);
		if (files)
			CHECK_STR_ROW(i, str_of(files->key), t[i].want);
	}
}

/* The certificate as the authority's clients see it. */
static X509 *issued(struct fixture *f, struct val csr, const char *usages, int64_t lifetime_s, struct val *ret_object)
{
	CLEANUP(csr_request_done) struct csr_request q;
	CLEANUP(buf_done) struct buf pem = BUF_INIT(1 << 16), text = BUF_INIT(1 << 17);
	struct err err = ERR_INIT;
	CHECK_INT(csr_request_parse(&f->arena, csr, &q, NULL), 0);
	if (csr_certificate(&f->arena, &q, tree(&f->arena, usages), lifetime_s, &f->ca, &pem, &err) < 0)
		fail_msg("%s", err.msg);
	base64_encode_buf(&text, buf_str(&pem));
	*ret_object = val_with(&f->arena, csr, VAL_STR(arena_str(&f->arena, buf_str(&text))), status, certificate);
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	CHECK(cert && X509_verify(cert, f->ca.key) == 1);
	return cert;
}

TEST(csr_certificates)
{
	CLEANUP(fixture_done) struct fixture f;
	struct val object_;
	char subject[200];
	fixture_init(&f);
	X509 *cert = issued(&f, object(&f, "system:node:n", "system:nodes", "IP:10.0.0.1,DNS:n"), SERVER_USES, 24 * 3600, &object_);
	X509_NAME_oneline(X509_get_subject_name(cert), subject, sizeof subject);
	CHECK_STR(str_of(subject), "/O=system:nodes/CN=system:node:n");
	CHECK_INT(X509_check_host(cert, "n", 0, 0, NULL), 1);
	CHECK_INT(X509_check_ip_asc(cert, "10.0.0.1", 0), 1);
	CHECK_INT(X509_get_key_usage(cert), KU_DIGITAL_SIGNATURE);
	CHECK_INT(X509_get_extended_key_usage(cert), XKU_SSL_SERVER);
	CHECK_INT(X509_check_ca(cert), 0);
	/* A long life ends earlier by what it was dated back. */
	CHECK_INT(cert_begins(cert), NOW_S - 300);
	CHECK_INT(cert_ends(cert), NOW_S + 24 * 3600 - 300);
	CHECK(!csr_has_expired(&f.arena, object_, NOW_S));
	CHECK(csr_has_expired(&f.arena, object_, NOW_S + 24 * 3600));
	X509_free(cert);
	cert = issued(&f, object(&f, "u", NULL, NULL), CLIENT_USES, 3600, &object_);
	CHECK_INT(cert_ends(cert), NOW_S + 3600);
	CHECK_INT(X509_get_key_usage(cert), KU_DIGITAL_SIGNATURE | KU_KEY_ENCIPHERMENT);
	X509_free(cert);
	/* Nothing outlives its authority. */
	cert = issued(&f, object(&f, "u", NULL, NULL), CLIENT_USES, INT64_C(365) * 24 * 3600, &object_);
	CHECK_INT(cert_ends(cert), cert_ends(f.ca.cert));
	X509_free(cert);
}

TEST(csr_lifetimes)
{
	static const struct {
		const char *spec;
		int64_t want;
	} t[] = { { "{'spec':{}}", 1000 }, { "{'spec':{'expirationSeconds':700}}", 700 }, { "{'spec':{'expirationSeconds':7}}", 600 },
		  { "{'spec':{'expirationSeconds':7000}}", 1000 } };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, csr_lifetime(tree(&a, t[i].spec), 1000) == t[i].want);
}

TEST(csr_cleaning)
{
	static const struct {
		const char *csr;
		bool useless;
	} t[] = {
		{ "{'metadata':{'creationTimestamp':'2025-12-31T12:00:00Z'}}", false },
		{ "{'metadata':{'creationTimestamp':'2025-12-30T23:59:59Z'}}", true },
		{ "{'status':{'conditions':[{'type':'Denied','lastUpdateTime':'2025-12-31T23:30:00Z'}]}}", false },
		{ "{'status':{'conditions':[{'type':'Denied','lastUpdateTime':'2025-12-31T22:30:00Z'}]}}", true },
		{ "{'status':{'conditions':[{'type':'Failed','lastUpdateTime':'2025-12-31T22:30:00Z'}]}}", true },
		{ "{'status':{'conditions':[{'type':'Approved','lastUpdateTime':'2025-12-31T22:30:00Z'}]}}", false },
		{ "{'status':{'conditions':[{'type':'Approved','lastUpdateTime':'2025-12-30T22:30:00Z'}]}}", true },
		{ "{'status':{'certificate':'eA==','conditions':[{'type':'Approved','lastUpdateTime':'2025-12-31T22:30:00Z'}]}}", true },
		{ "{'status':{'certificate':'eA==','conditions':[{'type':'Approved','lastUpdateTime':'2025-12-31T23:30:00Z'}]}}", false },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, (csr_useless(&a, tree(&a, t[i].csr), NOW_S * NS_PER_S) != NULL) == t[i].useless);
}
