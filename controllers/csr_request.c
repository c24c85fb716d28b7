#include "controllers/csr_request.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/encoding.h"
#include "codec/atoms.h"
#include "controllers/controllers.h"
#include "machinery/pem.h"

#define NODE_PREFIX "system:node:"
#define NODES_GROUP "system:nodes"

/* ---- reading ---- */

static str text_of(struct arena *a, const ASN1_STRING *s)
{
	unsigned char *utf8 = NULL;
	int n = ASN1_STRING_to_UTF8(&utf8, s);
	str text = n > 0 ? arena_str(a, str_span((const char *)utf8, (size_t)n)) : STR_NONE;
	OPENSSL_free(utf8);
	return text;
}

static void read_subject(struct arena *a, struct csr_request *q)
{
	const X509_NAME *name = X509_REQ_get_subject_name(q->x509);
	int n = X509_NAME_entry_count(name);
	str *organizations = ARENA_ARRAY(a, str, n > 0 ? (size_t)n : 1);
	for (int i = 0; i < n; i++) {
		const X509_NAME_ENTRY *e = X509_NAME_get_entry(name, i);
		int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(e));
		if (nid == NID_commonName)
			q->common_name = text_of(a, X509_NAME_ENTRY_get_data(e));
		else if (nid == NID_organizationName)
			organizations[q->n_organizations++] = text_of(a, X509_NAME_ENTRY_get_data(e));
	}
	q->organizations = organizations;
}

static void count_names(struct csr_request *q)
{
	STACK_OF(X509_EXTENSION) *extensions = X509_REQ_get_extensions(q->x509);
	GENERAL_NAMES *names = extensions ? X509V3_get_d2i(extensions, NID_subject_alt_name, NULL, NULL) : NULL;
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		int type = sk_GENERAL_NAME_value(names, i)->type;
		q->n_dns += type == GEN_DNS;
		q->n_ips += type == GEN_IPADD;
		q->n_emails += type == GEN_EMAIL;
		q->n_uris += type == GEN_URI;
	}
	GENERAL_NAMES_free(names);
	sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
}

static str decoded(struct arena *a, struct val base64)
{
	str text = val_as_str(base64);
	char *room = arena_alloc(a, base64_decoded_max(text.n) + 1, 1);
	size_t n = 0;
	return base64_decode(room, text, &n, NULL) == 0 ? str_span(room, n) : STR_NONE;
}

int csr_request_parse(struct arena *a, struct val object, struct csr_request *ret, struct err *err)
{
	struct pem_block block;
	str rest = decoded(a, val_get(object, spec, request));
	*ret = (struct csr_request){ 0 };
	if (!pem_next(a, &rest, &block) || !str_eq(block.type, STR("CERTIFICATE REQUEST")))
		return err_set(err, ERR_INVALID, "PEM block type must be CERTIFICATE REQUEST");
	const unsigned char *at = (const unsigned char *)block.bytes.p;
	ret->x509 = d2i_X509_REQ(NULL, &at, (long)block.bytes.n);
	ERR_clear_error();
	if (!ret->x509)
		return err_set(err, ERR_INVALID, "asn1: structure error");
	read_subject(a, ret);
	count_names(ret);
	ERR_clear_error();
	return 0;
}

void csr_request_done(struct csr_request *q)
{
	X509_REQ_free(q->x509);
	*q = (struct csr_request){ 0 };
}

/* ---- signers ---- */

const struct signing_files *csr_signing_files(const struct controllers_options *o, str signer)
{
	static const str names[] = { [SIGNER_KUBELET_SERVING] = STR_INIT(CSR_KUBELET_SERVING), [SIGNER_KUBELET_CLIENT] = STR_INIT(CSR_KUBELET_CLIENT),
				     [SIGNER_CLIENT] = STR_INIT(CSR_CLIENT), [SIGNER_LEGACY] = STR_INIT(CSR_LEGACY) };
	const struct signing_files *files = NULL;
	bool apart = false;

	for (size_t i = 0; i < SIGNER_MAX; i++) {
		if (str_eq(signer, names[i]))
			files = &o->signing_of[i];
		apart |= o->signing_of[i].cert != NULL;
	}
	if (files && !apart)
		files = &o->signing;
	return files && files->cert && files->key ? files : NULL;
}

static bool has_usage(struct val usages, str name)
{
	VAL_EACH(u, usages)
		if (str_eq(val_as_str(*u), name))
			return true;
	return false;
}

/* "digital signature" and the purpose, with or without "key encipherment", which only keys of RSA have a use for; nothing else. */
static bool usages_are(struct val usages, str purpose)
{
	VAL_EACH(u, usages) {
		str name = val_as_str(*u);
		if (!str_eq(name, STR("digital signature")) && !str_eq(name, STR("key encipherment")) && !str_eq(name, purpose))
			return false;
	}
	return has_usage(usages, STR("digital signature")) && has_usage(usages, purpose);
}

static const char *kubelet_refuses(const struct csr_request *q, bool serving)
{
	if (q->n_organizations != 1 || !str_eq(q->organizations[0], STR(NODES_GROUP)))
		return "subject organization is not system:nodes";
	if (serving && !q->n_dns && !q->n_ips)
		return "DNS or IP subjectAltName is required";
	if (!serving && q->n_dns)
		return "DNS subjectAltNames are not allowed";
	if (q->n_emails)
		return "Email subjectAltNames are not allowed";
	if (!serving && q->n_ips)
		return "IP subjectAltNames are not allowed";
	return q->n_uris ? "URI subjectAltNames are not allowed" : NULL;
}

static str kubelet_signer_refuses(const struct csr_request *q, struct val usages, bool serving)
{
	const char *why = kubelet_refuses(q, serving);
	str use = STR_NONE, name = STR_NONE;
	if (why)
		return str_of(why);
	if (!usages_are(usages, serving ? STR("server auth") : STR("client auth")))
		use = serving ? STR("usages did not match [digital signature key encipherment server auth]")
			      : STR("usages did not match [client auth digital signature key encipherment]");
	if (!str_starts(q->common_name, STR(NODE_PREFIX)))
		name = STR("subject common name does not begin with system:node:");
	if (serving) /* in the order in which Kubernetes looks */
		return use.n ? use : name;
	return name.n ? name : use;
}

static str client_signer_refuses(struct arena *a, struct val usages)
{
	VAL_EACH(u, usages) {
		str name = val_as_str(*u);
		if (!str_eq(name, STR("digital signature")) && !str_eq(name, STR("key encipherment")) && !str_eq(name, STR("client auth")))
			return arena_printf(a, "invalid usage for client certificate: " STR_FMT, STR_ARG(name));
	}
	return has_usage(usages, STR("client auth")) ? STR_NONE : STR("missing required usage for client certificate: client auth");
}

str csr_signer_refuses(struct arena *a, str signer, const struct csr_request *q, struct val usages)
{
	if (str_eq(signer, STR(CSR_KUBELET_SERVING)))
		return kubelet_signer_refuses(q, usages, true);
	if (str_eq(signer, STR(CSR_KUBELET_CLIENT)))
		return kubelet_signer_refuses(q, usages, false);
	return str_eq(signer, STR(CSR_CLIENT)) ? client_signer_refuses(a, usages) : STR_NONE;
}

/* ---- states ---- */

bool csr_has_condition(struct val object, const char *type)
{
	VAL_EACH(c, val_get(object, status, conditions))
		if (str_eq(val_str(*c, type), str_of(type)))
			return true;
	return false;
}

bool csr_has_failed(struct val object)
{
	VAL_EACH(c, val_get(object, status, conditions))
		if (str_eq(val_str(*c, type), STR("Failed")) && (!val_str(*c, status).n || str_eq(val_str(*c, status), STR("True"))))
			return true;
	return false;
}

bool csr_is_approved(struct val object) { return csr_has_condition(object, "Approved") && !csr_has_condition(object, "Denied"); }

bool csr_is_issued(struct val object) { return val_str(object, status, certificate).n > 0; }
