/* CertificateApproval: who approves or denies a certificate request must be allowed to do so for its signer. */
#include "apiserver/admission/certificates.h"
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

static int validate(struct request *q, struct err *err)
{
	(void)err;
	if (!certificate_write(q, STR("certificatesigningrequests"), STR("approval")) ||
	    admission_operation(q) != ADMISSION_UPDATE)
		return 0;
	/* the signer of the stored one: an approval cannot change it */
	str signer = val_str(q->old, spec, signerName);
	if (certificate_signer_allows(q, STR("approve"), signer))
		return 0;
	return admission_forbid(q, "user not permitted to approve requests with signerName " STR_FMT,
				STR_ARG(admission_quoted(q, signer)));
}

const struct admission_plugin admission_certificate_approval = { .name = "CertificateApproval", .validate = validate };
