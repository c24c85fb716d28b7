/*
 * A request outlives the wait for its certificate: when the connection breaks, the watch is opened again, and a kubelet that starts anew
 * with the same key finds its own request by its name.
 */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/certificates_priv.h"

enum { RETRY_MS = 1000, DIGEST_BYTES = 32 };

static const char organization[] = "system:nodes", digital_signature[] = "digital signature";

static const char *purpose_of(const struct cert_order *o) { return o->serving ? "server auth" : "client auth"; }

static const char *signer_of(const struct cert_order *o)
{
	return o->serving ? "kubernetes.io/kubelet-serving" : "kubernetes.io/kube-apiserver-client-kubelet";
}

static str common_name(const struct cert_order *o, struct arena *a)
{
	return arena_printf(a, "system:node:" STR_FMT, STR_ARG(o->node_name));
}

static int failed(struct err *err, const char *what)
{
	char text[200];

	ERR_error_string_n(ERR_get_error(), text, sizeof(text));
	ERR_clear_error();
	return err_set(err, ERR_INTERNAL, "%s: %s", what, text);
}

/* ---- the request in PEM ---- */

/* Takes the text over; false: it could not be made. */
static bool push_name(GENERAL_NAMES *names, int type, ASN1_STRING *text, str bytes)
{
	GENERAL_NAME *name = GENERAL_NAME_new();

	if (!text || !name || ASN1_STRING_set(text, bytes.p, (int)bytes.n) != 1) {
		ASN1_STRING_free(text);
		GENERAL_NAME_free(name);
		return false;
	}
	GENERAL_NAME_set0_value(name, type, text);
	if (sk_GENERAL_NAME_push(names, name) > 0)
		return true;
	GENERAL_NAME_free(name);
	return false;
}

static bool push_address(GENERAL_NAMES *names, struct arena *a, str text)
{
	char bytes[16];
	const char *p = arena_str(a, text).p;
	size_t n = inet_pton(AF_INET, p, bytes) == 1 ? 4 : inet_pton(AF_INET6, p, bytes) == 1 ? 16 : 0;

	return n && push_name(names, GEN_IPADD, ASN1_OCTET_STRING_new(), str_span(bytes, n));
}

/* Made from the values themselves: nothing in a name can become another name. */
static bool add_names(X509_REQ *q, const struct cert_order *o, struct arena *a)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	STACK_OF(X509_EXTENSION) *extensions = NULL;
	bool ok = names != NULL;

	VAL_EACH(name, o->names)
		ok = ok && push_name(names, GEN_DNS, ASN1_IA5STRING_new(), val_as_str(*name));
	VAL_EACH(address, o->addresses)
		ok = ok && push_address(names, a, val_as_str(*address));
	if (ok && sk_GENERAL_NAME_num(names) > 0)
		ok = X509V3_add1_i2d(&extensions, NID_subject_alt_name, names, 0, 0) == 1 && X509_REQ_add_extensions(q, extensions) == 1;
	sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
	GENERAL_NAMES_free(names);
	return ok;
}

static bool set_subject(X509_REQ *q, str cn)
{
	X509_NAME *name = X509_REQ_get_subject_name(q);

	return X509_NAME_add_entry_by_NID(name, NID_organizationName, MBSTRING_UTF8, (const unsigned char *)organization, -1, -1, 0) == 1 &&
	       X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8, (const unsigned char *)cn.p, (int)cn.n, -1, 0) == 1;
}

int cert_order_pem(const struct cert_order *o, struct evp_pkey_st *key, struct buf *b, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	X509_REQ *q = X509_REQ_new();
	BIO *bio = BIO_new(BIO_s_mem());
	char *p = NULL;
	bool ok = q && bio && X509_REQ_set_version(q, X509_REQ_VERSION_1) == 1 && set_subject(q, common_name(o, &a)) &&
		  X509_REQ_set_pubkey(q, key) == 1 && add_names(q, o, &a) && X509_REQ_sign(q, key, EVP_sha256()) > 0 &&
		  PEM_write_bio_X509_REQ(bio, q) == 1;
	long n = ok ? BIO_get_mem_data(bio, &p) : 0;

	if (n > 0)
		buf_add(b, str_span(p, (size_t)n));
	BIO_free(bio);
	X509_REQ_free(q);
	return n > 0 ? buf_check(b, "a certificate request", err) : failed(err, "unable to generate certificate request");
}

/* ---- its name ---- */

/* The pieces cannot run into one another: '|' is not in the alphabet. */
static void add_piece(struct buf *b, str piece)
{
	base64url_encode_buf(b, piece);
	buf_addc(b, '|');
}

str cert_order_name(const struct cert_order *o, struct evp_pkey_st *key, struct arena *a)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 10), name = BUF_INIT(256);
	unsigned char *der = NULL, sum[EVP_MAX_MD_SIZE];
	int n = i2d_PUBKEY(key, &der);

	add_piece(&b, str_span((const char *)der, n > 0 ? (size_t)n : 0));
	OPENSSL_free(der);
	add_piece(&b, common_name(o, a));
	add_piece(&b, str_of(organization));
	add_piece(&b, str_of(digital_signature));
	add_piece(&b, str_of(purpose_of(o)));
	(void)EVP_Digest(b.p, b.n, sum, NULL, EVP_sha512_256(), NULL);
	buf_add(&name, STR("node-csr-"));
	base64url_encode_buf(&name, str_span((const char *)sum, DIGEST_BYTES));
	return arena_str(a, buf_str(&name));
}

/* ---- asking ---- */

/* name: "": the server finds one. */
static int make_object(const struct cert_order *o, struct evp_pkey_st *key, str name, struct arena *a, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(CERTIFICATES_PEM_MAX), text = BUF_INIT(2 * CERTIFICATES_PEM_MAX);
	int r = cert_order_pem(o, key, &pem, err);

	if (r < 0)
		return r;
	base64_encode_buf(&text, buf_str(&pem));
	struct val usages = LIST(a, val_of_str(str_of(digital_signature)), val_of_str(str_of(purpose_of(o))));
	struct val spec = OBJECT(a, F(request, val_of_str(arena_str(a, buf_str(&text)))), F(signerName, val_of_str(str_of(signer_of(o)))),
				 F(usages, usages));
	struct val metadata = name.n ? OBJECT(a, F(name, val_of_str(name))) : OBJECT(a, F(generateName, VAL_LIT("csr-")));
	*ret = OBJECT(a, F(kind, VAL_LIT("CertificateSigningRequest")), F(apiVersion, VAL_LIT("certificates.k8s.io/v1")),
		      F(metadata, metadata), F(spec, spec));
	return 0;
}

static X509_REQ *parse_request(struct val object)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(CERTIFICATES_PEM_MAX);

	if (base64_decode_buf(&pem, val_str(object, spec, request), NULL) < 0 || !pem.n)
		return NULL;
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	X509_REQ *q = bio ? PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL) : NULL;
	BIO_free(bio);
	ERR_clear_error();
	return q;
}

/* Whether a request that is there already is as good as the one that we would make. */
static int check_compatible(struct val there, struct val ours, struct evp_pkey_st *key, struct err *err)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(CERTIFICATES_PEM_MAX);
	X509_REQ *x = parse_request(there), *y = parse_request(ours);
	const char *why = NULL;

	if (!x || !y)
		why = "unable to parse csr";
	else if (X509_NAME_cmp(X509_REQ_get_subject_name(x), X509_REQ_get_subject_name(y)) != 0)
		why = "csr subjects differ";
	else if (!str_eq(val_str(there, spec, signerName), val_str(ours, spec, signerName)))
		why = "csr signerNames differ";
	else if (X509_REQ_verify(x, key) != 1)
		why = "error validating signature new CSR against old key";
	X509_REQ_free(x);
	X509_REQ_free(y);
	ERR_clear_error();
	if (!why && base64_decode_buf(&pem, val_str(there, status, certificate), NULL) == 0 && pem.n &&
	    certs_end(buf_str(&pem)) <= clock_wall_ns() / NS_PER_S)
		why = "one of the certificates for the CSR has expired";
	return why ? err_set(err, ERR_CONFLICT, "retrieved csr is not compatible: %s", why) : 0;
}

/* (suspends) */
static int submit(const struct cert_order *o, struct client *c, struct evp_pkey_st *key, bool named, struct frozen **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *there = NULL;
	str name = named ? cert_order_name(o, key, &a) : STR_NONE;
	struct val object;
	int r = make_object(o, key, name, &a, &object, err);

	if (r < 0)
		return r;
	r = client_create(c, TYPE(certificates_v1, CertificateSigningRequest), object, NULL, ret, err);
	if (r != -ERR_ALREADY_EXISTS || !named)
		return r < 0 ? err_wrap(err, r, "cannot create certificate signing request") : 0;
	log_info("csr for this node already exists, reusing", KV("csr", name));
	r = client_get(c, TYPE(certificates_v1, CertificateSigningRequest), STR_NONE, name, &there, err);
	if (r < 0)
		return err_wrap(err, r, "cannot retrieve certificate signing request");
	if ((r = check_compatible(there->val, object, key, err)) < 0)
		return r;
	*ret = TAKE(there);
	return 0;
}

/* ---- waiting ---- */

/* 1: the certificate is in ret; 0: not yet. */
static int look_at(struct val csr, str uid, struct buf *ret, struct err *err)
{
	bool approved = false;

	if (!str_eq(val_str(csr, metadata, uid), uid))
		return err_set(err, ERR_CONFLICT, "csr \"" STR_FMT "\" changed UIDs", STR_ARG(val_str(csr, metadata, name)));
	VAL_EACH(c, val_get(csr, status, conditions)) {
		str type = val_str(*c, type), reason = val_str(*c, reason), message = val_str(*c, message);
		if (str_eq(type, STR("Denied")) || str_eq(type, STR("Failed")))
			return err_set(err, ERR_FORBIDDEN, "certificate signing request %s, reason: " STR_FMT ", message: " STR_FMT,
				       str_eq(type, STR("Denied")) ? "is denied" : "failed", STR_ARG(reason), STR_ARG(message));
		approved = approved || str_eq(type, STR("Approved"));
	}
	str text = val_str(csr, status, certificate);
	if (!approved || !text.n)
		return 0;
	int r = base64_decode_buf(ret, text, err);
	return r < 0 ? r : 1;
}

/* (suspends) As look_at; *ret_over: trying again makes no sense. */
static int watch_once(struct client *c, str name, str uid, struct buf *ret, bool *ret_over, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(client_watch_freep) struct client_watch *w = NULL;
	struct client_event e;
	const struct client_watch_options o = {
		.list = { .fields = arena_printf(&a, "metadata.name=" STR_FMT, STR_ARG(name)) }, .initial = true, .bookmarks = true,
	};
	int r = client_watch(c, TYPE(certificates_v1, CertificateSigningRequest), &o, &w, err);

	while (r == 0 && (r = client_watch_next(w, &e, err)) > 0) {
		if (e.type == CLIENT_BOOKMARK) {
			r = 0;
			continue;
		}
		if (e.type == CLIENT_DELETED)
			r = err_set(err, ERR_GONE, "csr \"" STR_FMT "\" was deleted", STR_ARG(name));
		else
			r = look_at(e.object->val, uid, ret, err);
		*ret_over = r != 0;
	}
	return r;
}

/* (suspends) */
static int wait_for(struct client *c, struct val csr, struct buf *ret, struct err *err)
{
	str name = val_str(csr, metadata, name), uid = val_str(csr, metadata, uid);

	for (;;) {
		struct err why = ERR_INIT;
		bool over = false;
		int r = watch_once(c, name, uid, ret, &over, &why);
		if (over) {
			if (err)
				*err = why;
			return r < 0 ? err_wrap(err, r, "cannot watch on the certificate signing request") : 0;
		}
		if (r < 0 && fiber_check(NULL) == 0)
			log_warn("the certificate signing request cannot be watched, will retry", KV("csr", name), KV("error", &why));
		if ((r = fiber_sleep_ms(RETRY_MS, err)) < 0)
			return r;
	}
}

int cert_order_get(const struct cert_order *o, struct client *c, struct evp_pkey_st *key, bool named, int64_t timeout_ms, struct buf *ret,
		   struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *csr = NULL;
	int r = submit(o, c, key, named, &csr, err);

	if (r < 0)
		return r;
	log_info("certificate signing request created, waiting for its certificate", KV("csr", val_str(csr->val, metadata, name)));
	{
		DEADLINE_SCOPE(timeout_ms);
		r = wait_for(c, csr->val, ret, err);
	}
	if (r == -ERR_TIMEOUT)
		return err_set(err, ERR_TIMEOUT, "timed out waiting for the condition");
	return r;
}
