/* Client certificates, and whom they stand for. Whether their signer is trusted is for others to find out. */
#ifndef C8S_APISERVER_AUTHN_X509_H
#define C8S_APISERVER_AUTHN_X509_H

#include "apiserver/request.h"

struct x509_st;
struct X509_name_st;

/*
 * Who a certificate says that it is: the user's name is the common name, the groups are the organizations, the uid is Kubernetes'
 * attribute for it, the fingerprint becomes the credential id; all in the arena. 1: that is known; 0: it names nobody;
 * -ERR_UNAUTHORIZED when it is not valid now or not meant for clients.
 */
int authn_x509_user(struct x509_st *cert, struct arena *a, struct user *ret, struct err *err);
/* The texts of all attributes of one sort (NID_...) of a subject, in the arena; those that are no text are passed over. */
size_t authn_x509_texts(const struct X509_name_st *subject, int sort, struct arena *a, const str **ret);
/* In the arena; empty when there is none. Of several it is the last, as in Go. */
str authn_x509_common_name(const struct X509_name_st *subject, struct arena *a);
/* Whether clients may use it: it says so, or says nothing about that. */
bool authn_x509_is_for_clients(struct x509_st *cert);

#endif
