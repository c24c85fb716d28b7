/*
 * Approved requests for the signers of Kubernetes get their certificates, or a condition that says why not. The authority is read anew for
 * each: requests are rare, and a renewed one is in use at once.
 */
#include "apiserver/pki_priv.h"
#include "base/encoding.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/csr_request.h"

enum { YEAR_S = 365 * 24 * 3600, PEM_MAX = 1 << 20 };

/* (suspends) */
static int write_status(struct controller *c, struct val csr, struct err *err)
{
	const struct client_write_options o = { .subresource = STR("status"), .reply = TYPE(certificates_v1, CertificateSigningRequest) };
	return client_update(c->client, TYPE(certificates_v1, CertificateSigningRequest), csr, &o, NULL, err);
}

/* (suspends) */
static int refuse(struct controller *c, struct arena *a, struct val csr, str why, struct err *err)
{
	struct val condition = OBJECT(a, F(type, VAL_LIT("Failed")), F(status, VAL_LIT("True")), F(reason, VAL_LIT("SignerValidationFailure")),
				      F(message, VAL_STR(why)), F(lastUpdateTime, time_now(a)));
	struct val conditions = val_list_append(a, val_get(csr, status, conditions), condition);
	int r = write_status(c, val_with(a, csr, conditions, status, conditions), err);
	return r < 0 ? err_wrap(err, r, "error adding failure condition for csr") : 0;
}

static int make(struct controller *c, struct arena *a, struct val csr, const struct csr_request *q, str *ret, struct err *err)
{
	CLEANUP(key_pair_done) struct key_pair ca = { 0 };
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_MAX), text = BUF_INIT(2 * PEM_MAX);
	int64_t most_s = c->o->signing_duration_s ? c->o->signing_duration_s : YEAR_S;
	const struct signing_files *files = csr_signing_files(c->o, val_str(csr, spec, signerName));
	int r = cert_read(files->cert, &ca.cert, err);
	if (r == 0)
		r = key_read(files->key, &ca.key, err);
	if (r == 0)
		r = csr_certificate(a, q, val_get(csr, spec, usages), csr_lifetime(csr, most_s), &ca, &pem, err);
	if (r < 0)
		return err_wrap(err, r, "error auto signing csr");
	base64_encode_buf(&text, buf_str(&pem));
	*ret = arena_str(a, buf_str(&text));
	return 0;
}

static int sync_request(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct frozen *object = informer_get(controller_informer(c, TYPE(certificates_v1, CertificateSigningRequest)), key);
	if (!object || csr_is_issued(object->val) || !csr_is_approved(object->val) || csr_has_failed(object->val) ||
	    !csr_signing_files(c->o, val_str(object->val, spec, signerName)))
		return 0;
	struct val csr = controller_hold(c, a, object);
	CLEANUP(csr_request_done) struct csr_request q;
	str certificate;
	int r = csr_request_parse(a, csr, &q, err);
	if (r < 0)
		return err_wrap(err, r, "unable to parse csr \"" STR_FMT "\"", STR_ARG(key));
	str why = csr_signer_refuses(a, val_str(csr, spec, signerName), &q, val_get(csr, spec, usages));
	if (why.n)
		return refuse(c, a, csr, why, err);
	if ((r = make(c, a, csr, &q, &certificate, err)) < 0)
		return r;
	r = write_status(c, val_with(a, csr, VAL_STR(certificate), status, certificate), err);
	return r < 0 ? err_wrap(err, r, "error updating signature for csr") : 0;
}

static int start(struct controller *c, struct err *err)
{
	(void)err;
	controller_watch(c, controller_informer(c, TYPE(certificates_v1, CertificateSigningRequest)), controller_key_self);
	c->sync = sync_request;
	return 0;
}

const struct controller_kind controller_csr_signing = {
	.name = "certificatesigningrequest-signing-controller", .start = start, .workers = 5, .retry_ms = 200, .account = "certificate-controller",
};
