#include "apiserver/admission/certificates.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include "apiserver/admission/plugins.h"
#include "apiserver/authn/x509.h"
#include "apiserver/authz/authz.h"
#include "base/encoding.h"
#include "codec/atoms.h"
#include "machinery/pem.h"

bool certificate_write(const struct request *q, str resource, str subresource)
{
	return str_eq(q->resource, resource) && str_eq(q->group, CERTIFICATES_GROUP) && str_eq(q->subresource, subresource);
}

bool certificate_signer_allows(struct request *q, str verb, str signer)
{
	str domain, rest;
	struct authz_attributes what = {
		.user = &q->user, .verb = verb, .is_resource = true, .group = CERTIFICATES_GROUP, .version = STR("*"),
		.resource = STR("signers"), .name = signer,
	};
	if (authz_allows(q, &what))
		return true;
	(void)str_cut(signer, '/', &domain, &rest);
	what.name = arena_join(q->arena, domain, STR("/*"));
	return authz_allows(q, &what);
}

int certificate_need(struct request *q, str verb)
{
	str signer = val_str(q->old, spec, signerName); /* an update cannot change it */
	if (certificate_signer_allows(q, verb, signer))
		return 0;
	return admission_forbid(q, "user not permitted to " STR_FMT " requests with signerName " STR_FMT, STR_ARG(verb),
				STR_ARG(admission_quoted(q, signer)));
}

/* ---- the subject of a request ---- */

static void x509_req_freep(X509_REQ **x) { X509_REQ_free(*x); }

const char *certificate_request_subject(struct arena *a, struct val signing_request, struct certificate_subject *ret)
{
	str text = val_str(signing_request, spec, request);
	char *pem = ARENA_ARRAY(a, char, base64_decoded_max(text.n) + 1);
	size_t n = 0;
	struct pem_block block;
	if (base64_decode(pem, text, &n, NULL) < 0 || !pem_next(a, &(str){ pem, n }, &block) ||
	    !str_eq(block.type, STR("CERTIFICATE REQUEST")))
		return "PEM block type must be CERTIFICATE REQUEST";
	const unsigned char *at = (const unsigned char *)block.bytes.p;
	CLEANUP(x509_req_freep) X509_REQ *request = d2i_X509_REQ(NULL, &at, (long)block.bytes.n);
	ERR_clear_error(); /* the thread's list of errors is for its connections */
	if (!request)
		return "asn1: structure error";
	if ((const char *)at != block.bytes.p + block.bytes.n)
		return "asn1: syntax error: trailing data";
	const X509_NAME *subject = X509_REQ_get_subject_name(request);
	ret->common_name = authn_x509_common_name(subject, a);
	ret->n_organizations = authn_x509_texts(subject, NID_organizationName, a, &ret->organizations);
	ERR_clear_error();
	return NULL;
}
