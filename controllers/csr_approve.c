/* Requests of kubelets for their own client certificates are approved when the requestor may have such. */
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/csr_request.h"

/* What a requestor is asked for. */
struct permission {
	const char *subresource, *message;
	bool self;                    /* only for a renewal: the requestor is the one that the certificate is for */
};

static const struct permission permissions[] = {
	{ "selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.", true },
	{ "nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.", false },
};

/* (suspends) 1: the requestor may; 0: not. */
static int ask(struct controller *c, struct arena *a, struct val csr, const struct permission *p, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	struct val what = OBJECT(a, F(verb, VAL_LIT("create")), F(group, VAL_LIT("certificates.k8s.io")), F(version, VAL_LIT("*")),
				 F(resource, VAL_LIT("certificatesigningrequests")), F(subresource, VAL_STR(str_of(p->subresource))));
	struct val spec = OBJECT(a, F(resourceAttributes, what), F(user, val_get(csr, spec, username)), F(groups, val_get(csr, spec, groups)),
				 F(extra, val_get(csr, spec, extra)), F(uid, val_get(csr, spec, uid)));
	int r = client_create(c->client, TYPE(authorization_v1, SubjectAccessReview), OBJECT(a, F(spec, spec)), NULL, &answer, err);
	return r < 0 ? r : val_bool(answer->val, status, allowed);
}

/* (suspends) */
static int approve(struct controller *c, struct arena *a, struct val csr, const char *message, struct err *err)
{
	const struct client_write_options o = { .subresource = STR("approval"), .reply = TYPE(certificates_v1, CertificateSigningRequest) };
	struct val condition = OBJECT(a, F(type, VAL_LIT("Approved")), F(status, VAL_LIT("True")), F(reason, VAL_LIT("AutoApproved")),
				      F(message, VAL_STR(str_of(message)))), had = val_get(csr, status, conditions);
	struct val conditions = val_list_append(a, val_exists(had) ? had : VAL_EMPTY_LIST, condition);
	int r = client_update(c->client, TYPE(certificates_v1, CertificateSigningRequest), val_with(a, csr, conditions, status, conditions), &o,
			      NULL, err);
	return r < 0 ? err_wrap(err, r, "error updating approval for csr") : 0;
}

/* (suspends) */
static int decide(struct controller *c, struct arena *a, struct val csr, const struct csr_request *q, struct err *err)
{
	bool tried = false;
	for (size_t i = 0; i < ARRAY_LEN(permissions); i++) {
		if (permissions[i].self && !str_eq(val_str(csr, spec, username), q->common_name))
			continue;
		int r = ask(c, a, csr, &permissions[i], err);
		if (r != 0)
			return r < 0 ? r : approve(c, a, csr, permissions[i].message, err);
		tried = true;
	}
	/* Asked again later: somebody may be given the right meanwhile. */
	return tried ? err_set(err, ERR_CONFLICT, "recognized csr \"" STR_FMT "\" but subject access review was not approved",
			       STR_ARG(val_str(csr, metadata, name))) : 0;
}

static int sync_request(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct frozen *object = informer_get(controller_informer(c, TYPE(certificates_v1, CertificateSigningRequest)), key);
	if (!object || csr_is_issued(object->val) || csr_has_condition(object->val, "Approved") || csr_has_condition(object->val, "Denied") ||
	    !str_eq(val_str(object->val, spec, signerName), STR(CSR_KUBELET_CLIENT)))
		return 0;
	struct val csr = controller_hold(c, a, object);
	CLEANUP(csr_request_done) struct csr_request q;
	int r = csr_request_parse(a, csr, &q, err);
	if (r < 0)
		return err_wrap(err, r, "unable to parse csr \"" STR_FMT "\"", STR_ARG(key));
	if (csr_signer_refuses(a, STR(CSR_KUBELET_CLIENT), &q, val_get(csr, spec, usages)).n)
		return 0;
	return decide(c, a, csr, &q, err);
}

static int start(struct controller *c, struct err *err)
{
	(void)err;
	controller_watch(c, controller_informer(c, TYPE(certificates_v1, CertificateSigningRequest)), controller_key_self);
	c->sync = sync_request;
	return 0;
}

const struct controller_kind controller_csr_approving = {
	.name = "certificatesigningrequest-approving-controller", .start = start, .workers = 5, .retry_ms = 200, .account = "certificate-controller",
};
