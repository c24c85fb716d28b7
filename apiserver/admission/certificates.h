/* certificates: what the plugins about certificates share. */
#ifndef C8S_APISERVER_ADMISSION_CERTIFICATES_H
#define C8S_APISERVER_ADMISSION_CERTIFICATES_H

#include "apiserver/request.h"

#define CERTIFICATES_GROUP STR("certificates.k8s.io")

/* Is it a write of that resource of certificates.k8s.io and its subresource ("" for none)? */
bool certificate_write(const struct request *q, str resource, str subresource);
/* (suspends) May the user of the request do this for the signer, or for all signers of its domain? */
bool certificate_signer_allows(struct request *q, str verb, str signer);
/* (suspends) The same about an update of a CertificateSigningRequest ("approve", "sign"), for the signer of the stored one: 403. */
int certificate_need(struct request *q, str verb);

/* The subject of a certificate request. */
struct certificate_subject {
	str common_name;              /* the last one */
	const str *organizations;
	size_t n_organizations;
};

/* Reads spec.request of a CertificateSigningRequest. NULL, or what is wrong with it. Texts are in the arena. */
const char *certificate_request_subject(struct arena *a, struct val signing_request, struct certificate_subject *ret);

#endif
