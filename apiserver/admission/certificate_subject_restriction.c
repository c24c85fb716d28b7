/* CertificateSubjectRestriction: nobody becomes a master of the cluster by asking for a client certificate. */
#include "apiserver/admission/certificates.h"
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

#define SIGNER "kubernetes.io/kube-apiserver-client"

static int validate(struct request *q, struct err *err)
{
	(void)err;
	struct certificate_subject subject;
	if (!certificate_write(q, STR("certificatesigningrequests"), STR("")) || admission_operation(q) != ADMISSION_CREATE ||
	    !str_eq(val_str(q->object, spec, signerName), STR(SIGNER)))
		return 0;
	const char *wrong = certificate_request_subject(q->arena, q->object, &subject);
	if (wrong)
		return admission_forbid(q, "failed to parse CSR: %s", wrong);
	for (size_t i = 0; i < subject.n_organizations; i++)
		if (str_eq(subject.organizations[i], STR("system:masters")))
			return admission_forbid(q, "use of " SIGNER " signer with system:masters group is not allowed");
	return 0;
}

const struct admission_plugin admission_certificate_subject_restriction = {
	.name = "CertificateSubjectRestriction", .validate = validate,
};
