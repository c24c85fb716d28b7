/*
 * Between the files of the kubelet's certificates:
 *
 *	certificates_store.c      pairs of certificate and key in files
 *	certificates_request.c    a certificate by a CertificateSigningRequest
 *	certificates_bootstrap.c  who this kubelet is
 *	certificates_serve.c      what it serves with
 *	certificates.c            renewal
 */
#ifndef C8S_KUBELET_CERTIFICATES_PRIV_H
#define C8S_KUBELET_CERTIFICATES_PRIV_H

#include "base/buf.h"
#include "kubelet/register.h"

struct evp_pkey_st;
struct x509_st;

enum { CERTIFICATES_PEM_MAX = 1 << 20 };

/* ---- certificates_store.c ---- */

/* DIR/NAME-current.pem is a link to one of DIR/NAME-<date>.pem, each with a certificate (and its chain) and then its key. All of it blocks. */
struct cert_store {
	const char *dir, *name;
};

/* "DIR/NAME-current.pem", in the arena. */
const char *cert_store_path(const struct cert_store *s, struct arena *a);
/* Finishes an update that was cut off. */
int cert_store_recover(const struct cert_store *s, struct err *err);
/* Makes these the current ones. -ERR_INVALID when they do not fit together. */
int cert_store_update(const struct cert_store *s, str cert_pem, struct evp_pkey_st *key, struct err *err);
/* Both of the current pair; -ERR_NOT_FOUND: there is none. Either may be NULL. */
int cert_store_read(const struct cert_store *s, struct x509_st **ret_cert, struct evp_pkey_st **ret_key, struct err *err);

/* When the first of these certificates ends, in seconds since 1970; -1: there is none. */
int64_t certs_end(str pem);
/* The subject's texts; in the arena. */
str cert_subject(struct arena *a, struct x509_st *cert, int nid);

/* ---- certificates_request.c ---- */

/* What is asked for. Of the organization system:nodes. */
struct cert_order {
	str node_name;                /* the common name is system:node:<this> */
	struct val names, addresses;  /* lists of texts, of serving certificates; empty ones of clients */
	bool serving;                 /* kubernetes.io/kubelet-serving, else kubernetes.io/kube-apiserver-client-kubelet */
};

/* Appends a request for the key in PEM. */
int cert_order_pem(const struct cert_order *o, struct evp_pkey_st *key, struct buf *b, struct err *err);
/* node-csr-<hash of all that matters>: the same key asks for the same thing under the same name. */
str cert_order_name(const struct cert_order *o, struct evp_pkey_st *key, struct arena *a);
/*
 * (suspends) Asks for the certificate and waits for it; PEM. named: under cert_order_name, which may have been asked for before; else
 * under a new name. -ERR_FORBIDDEN: it was denied.
 */
int cert_order_get(const struct cert_order *o, struct client *c, struct evp_pkey_st *key, bool named, int64_t timeout_ms, struct buf *ret,
		   struct err *err);

/* ---- certificates_serve.c ---- */

/* The names and addresses (two lists) that a node's addresses make. */
void serving_names(struct arena *a, struct val addresses, struct val *ret_names, struct val *ret_addresses);
/* A pair for the host with a throw-away authority: *ret_cert is both certificates in PEM. */
int self_signed_make(str host, struct buf *ret_cert, struct evp_pkey_st **ret_key, struct err *err);
/* (blocks) The files are there and go on for a day at least: 0; else new ones are made: 1. */
int self_signed_ensure(const char *cert_file, const char *key_file, str host, struct err *err);

#endif
