/* What stream.c needs of a TLS context. */
#ifndef C8S_NET_TLS_PRIV_H
#define C8S_NET_TLS_PRIV_H

#include <openssl/ssl.h>

#include "net/tls.h"

/*
 * A connection that has not shaken hands yet, with the certificates of this moment. NULL with err set. A client whose
 * server shows a certificate that is not accepted leaves it in *refused, for tls_verify_error; the caller's to free.
 */
SSL *tls_ssl_new(struct tls_context *t, struct x509_st **refused, struct err *err);
/* The name that a client verifies in place of the host dialled, or NULL; and whether it verifies at all. */
const char *tls_server_name(const struct tls_context *t);
bool tls_is_insecure(const struct tls_context *t);

/* err_set with OpenSSL's oldest queued reason behind the text; empties the queue. */
int tls_err(struct err *err, enum err_code code, const char *what);
/* For a client whose handshake failed because of the server's certificate. */
int tls_verify_error(long code, struct x509_st *refused, const char *host, struct err *err);

#endif
