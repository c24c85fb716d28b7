/* Between the files of the PKI: keys and certificates by OpenSSL (pki_cert.c), the kubeconfig (pki_kubeconfig.c). */
#ifndef C8S_APISERVER_PKI_PRIV_H
#define C8S_APISERVER_PKI_PRIV_H

#include "apiserver/pki.h"

struct x509_st;
struct evp_pkey_st;

/* A key and its certificate. */
struct key_pair {
	struct evp_pkey_st *key;
	struct x509_st *cert;
};

void key_pair_done(struct key_pair *p);

/* What a certificate is to say. */
struct cert_request {
	const char *common_name;
	const char *organization;             /* NULL: none */
	bool is_ca, for_servers, for_clients;
	const char *const *names, *const *addresses; /* NULL: none */
	int days;
};

int key_make(struct evp_pkey_st **ret, struct err *err);
/* A certificate for the key, signed by ca, or by the key itself when ca is NULL. It does not outlive the ca's. */
int cert_make(const struct cert_request *q, struct evp_pkey_st *key, const struct key_pair *ca, struct x509_st **ret,
	      struct err *err);

/* PEM, in the forms that Go's tools write. */
int key_pem(struct evp_pkey_st *key, struct buf *b, struct err *err);
int public_key_pem(struct evp_pkey_st *key, struct buf *b, struct err *err);
int cert_pem(struct x509_st *cert, struct buf *b, struct err *err);
/* What a file holds; -ERR_INVALID when that is something else, with a hint. */
int key_parse(str pem, const char *path, struct evp_pkey_st **ret, struct err *err);
int cert_parse(str pem, const char *path, struct x509_st **ret, struct err *err);
/* The same; -ERR_NOT_FOUND when there is no such file. */
int key_read(const char *path, struct evp_pkey_st **ret, struct err *err);
int cert_read(const char *path, struct x509_st **ret, struct err *err);

/* Seconds since 1970. */
int64_t cert_begins(const struct x509_st *cert);
int64_t cert_ends(const struct x509_st *cert);
/* When two thirds of its life are over. */
int64_t cert_due(const struct x509_st *cert);
/* Whether the certificate has all of these. */
bool cert_has_names(struct x509_st *cert, const char *const *names, const char *const *addresses);

/* Appends a kubeconfig with one cluster and one user; PEM texts are put in as they are, encoded. */
void kubeconfig_build(struct buf *b, const char *server, str ca, const char *user, str cert, str key);
/* Whether a kubeconfig has this server and these certificates, whatever else was put into it. */
bool kubeconfig_fits(str text, const char *server, str ca, str cert);

#endif
