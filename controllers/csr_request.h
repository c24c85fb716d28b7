/*
 * csr_request: what is in a CertificateSigningRequest, whether a signer of Kubernetes may sign it, and the certificate itself. No I/O.
 */
#ifndef C8S_CONTROLLERS_CSR_REQUEST_H
#define C8S_CONTROLLERS_CSR_REQUEST_H

#include "base/buf.h"
#include "codec/val.h"

struct X509_req_st;
struct key_pair; /* apiserver/pki_priv.h */
struct controllers_options; /* controllers.h */
struct signing_files;

struct csr_request {
	struct X509_req_st *x509;
	str common_name;              /* the last one; in the arena, as all texts */
	const str *organizations;
	size_t n_organizations;
	size_t n_dns, n_ips, n_emails, n_uris; /* subjectAltNames */
};

/* spec.request of the object. -ERR_INVALID says what is wrong with it. */
int csr_request_parse(struct arena *a, struct val object, struct csr_request *ret, struct err *err);
void csr_request_done(struct csr_request *q);

/* ---- who signs what ---- */

#define CSR_KUBELET_CLIENT "kubernetes.io/kube-apiserver-client-kubelet"
#define CSR_KUBELET_SERVING "kubernetes.io/kubelet-serving"
#define CSR_CLIENT "kubernetes.io/kube-apiserver-client"
#define CSR_LEGACY "kubernetes.io/legacy-unknown"

/* What signs for it; NULL: it is none of these four, or somebody else signs for it. */
const struct signing_files *csr_signing_files(const struct controllers_options *o, str signer);
/* What keeps the (known) signer from signing it, in the arena; empty: nothing. */
str csr_signer_refuses(struct arena *a, str signer, const struct csr_request *q, struct val usages);

/* ---- the state of an object ---- */

bool csr_has_condition(struct val object, const char *type); /* whatever its status is */
bool csr_has_failed(struct val object);
bool csr_is_approved(struct val object);                     /* and not denied */
bool csr_is_issued(struct val object);

/* ---- signing ---- */

/* How long it is to be valid: as asked for, at least ten minutes and at most max_s. */
int64_t csr_lifetime(struct val object, int64_t max_s);
/* Appends the certificate in PEM. -ERR_INVALID: usages that are none, a signature that does not fit, or an authority that has ended. */
int csr_certificate(struct arena *a, const struct csr_request *q, struct val usages, int64_t lifetime_s, const struct key_pair *ca,
		    struct buf *pem, struct err *err);
/* Whether the certificate that was issued has ended by then (seconds since 1970). */
bool csr_has_expired(struct arena *a, struct val object, int64_t now_s);

/* ---- cleaning ---- */

/* Why the object is no longer needed; NULL: it is. */
const char *csr_useless(struct arena *a, struct val object, int64_t now_ns);

#endif
