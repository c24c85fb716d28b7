/*
 * TLS 1.2 and 1.3 by OpenSSL. A context is the part that all connections of one server or client have in common:
 * certificate, key, whom to trust. Certificate and key may be replaced while connections live; new ones use the new
 * ones. A context belongs to the thread of one loop.
 */
#ifndef C8S_NET_TLS_H
#define C8S_NET_TLS_H

#include "base/err.h"

struct tls_context;
struct x509_st;
struct stack_st_X509;

enum tls_client_auth {
	TLS_CLIENT_AUTH_NONE,    /* do not ask for a certificate */
	TLS_CLIENT_AUTH_REQUEST, /* ask, accept any or none: the handler looks at the result of verification */
	TLS_CLIENT_AUTH_REQUIRE, /* a connection without a certificate of client_ca fails */
};

/* Files are PEM. Strings are copied. */
struct tls_options {
	const char *cert_file, *key_file; /* the own certificate (with its chain) and key; a client may have none */
	const char *cert_pem, *key_pem;   /* the same as text instead of files */
	const char *ca_file, *ca_pem;     /* whom to trust; a client without uses the system's */
	const char *other_ca_file;        /* server: named to clients, too, but whom to trust by it is for the handler to say */
	enum tls_client_auth client_auth; /* server */
	bool insecure_skip_verify;        /* client */
	const char *server_name;          /* client: name to verify and to send, when it differs from the host dialled */
	const char *min_version;          /* "VersionTLS12" (default) or "VersionTLS13" */
	const char *cipher_suites;        /* Go's names, separated by commas; NULL: the defaults of Kubernetes */
	const char *const *alpn;          /* "h2", "http/1.1", NULL-ended, most wanted first; NULL: none */
};

int tls_server_new(const struct tls_options *o, struct tls_context **ret, struct err *err);
int tls_client_new(const struct tls_options *o, struct tls_context **ret, struct err *err);
/* Connections keep what they need alive. Takes NULL. */
void tls_context_free(struct tls_context *t);

/*
 * Further certificates of a server, chosen by the name that the client asks for (--tls-sni-cert-key). Empty pattern
 * list: the names in the certificate.
 */
int tls_add_sni(struct tls_context *t, const char *cert_file, const char *key_file, const char *const *names, struct err *err);

/*
 * Reads the files again when their content has changed; 1 when something was replaced, 0 when not. On error all stays as
 * it was. Cheap enough to be called every few seconds (it looks at the files' times first).
 */
int tls_reload(struct tls_context *t, struct err *err);

#endif
