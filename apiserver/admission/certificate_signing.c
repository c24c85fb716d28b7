/* CertificateSigning: who puts a certificate or a condition into a request must be allowed to sign for its signer. */
#include "apiserver/admission/certificates.h"
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

static bool is_same(struct val a, struct val b) { return (!val_len(a) && !val_len(b)) || val_equal(a, b); }

static int validate(struct request *q, struct err *err)
{
	(void)err;
	if (!certificate_write(q, STR("certificatesigningrequests"), STR("status")) ||
	    admission_operation(q) != ADMISSION_UPDATE)
		return 0;
	if (str_eq(val_str(q->old, status, certificate), val_str(q->object, status, certificate)) &&
	    is_same(val_get(q->old, status, conditions), val_get(q->object, status, conditions)))
		return 0;
	return certificate_need(q, STR("sign"));
}

const struct admission_plugin admission_certificate_signing = { .name = "CertificateSigning", .validate = validate };
