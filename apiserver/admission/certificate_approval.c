/* CertificateApproval: who approves or denies a certificate request must be allowed to do so for its signer. */
#include "apiserver/admission/certificates.h"
#include "apiserver/admission/plugins.h"

static int validate(struct request *q, struct err *err)
{
	(void)err;
	if (!certificate_write(q, STR("certificatesigningrequests"), STR("approval")) ||
	    admission_operation(q) != ADMISSION_UPDATE)
		return 0;
	return certificate_need(q, STR("approve"));
}

const struct admission_plugin admission_certificate_approval = { .name = "CertificateApproval", .validate = validate };
