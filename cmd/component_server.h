/*
 * The secure port of the scheduler and of the controller manager: health, metrics, configuration, and paths of the component's own. Who asks is
 * found out by certificates of --client-ca-file (or those that the API server trusts) and by TokenReview; what they may do by SubjectAccessReview of
 * the path. Paths of --authorization-always-allow-paths need neither.
 */
#ifndef C8S_CMD_COMPONENT_SERVER_H
#define C8S_CMD_COMPONENT_SERVER_H

#include "base/buf.h"
#include "codec/val.h"
#include "net/http.h"

struct client;

struct component_server_flags {
	const char *bind_address, *cert_dir, *tls_cert_file, *tls_private_key_file, *tls_min_version, *client_ca_file, *authentication_kubeconfig,
		*authorization_kubeconfig;
	const char *const *tls_cipher_suites, *const *tls_sni_cert_keys, *const *always_allow_paths;
	int64_t secure_port;
	bool skip_lookup, tolerate_lookup_failure;
};

/* A named check of /healthz and the like. NULL: it is fine; else what is wrong, a constant. */
struct component_check {
	const char *name;
	bool ready_only;                /* of /readyz alone */
	const char *(*check)(void *arg);
};

struct component_server {
	const char *name;               /* kube-scheduler: for certificates */
	const struct component_server_flags *flags;
	struct client *client;
	const struct component_check *checks; /* ended by name NULL; may be NULL */
	void (*metrics)(void *arg, struct buf *out);
	struct val (*config)(void *arg);      /* configz, a typed tree; NULL: none */
	const char *config_name;        /* that configz calls it by */
	const struct type *config_type;
	/* (suspends) Other paths: status of the answer in *out; 0: there is none. May be NULL. */
	int (*other)(void *arg, struct http_exchange *x, struct buf *out);
	void *arg;
	/* ---- the server's own ---- */
	bool trusts;                    /* client certificates are verified */
};

/* (suspends) Until the fiber is canceled. Port 0: does nothing but wait. */
int component_serve(struct component_server *s, struct err *err);

/* Rows for the table of flags of a component, whose struct has a member `server` of type struct component_server_flags. */
#define COMPONENT_AT(type, member) FLAG_WORKS, offsetof(type, server.member)
#define COMPONENT_SERVER_FLAGS(type, port) \
	FLAG_GROUP("Secure serving"), \
	{ "bind-address", FLAG_IP, COMPONENT_AT(type, bind_address), "0.0.0.0", "address to listen on; 0.0.0.0 and :: stand for all" }, \
	{ "cert-dir", FLAG_STRING, COMPONENT_AT(type, cert_dir), NULL, "folder with the serving certificate, where --tls-cert-file names none; without it one is made in memory" }, \
	{ "disable-http2-serving", FLAG_BOOL, FLAG_REFUSED, 0, "false", "serve HTTP/1.1 only" }, \
	{ "http2-max-streams-per-connection", FLAG_INT, FLAG_TUNING, 0, "0", "requests at the same time on one connection" }, \
	{ "permit-address-sharing", FLAG_BOOL, FLAG_TUNING, 0, "false", "listen while old connections of the address linger; always so here" }, \
	{ "permit-port-sharing", FLAG_BOOL, FLAG_REFUSED, 0, "false", "several servers on one port" }, \
	{ "secure-port", FLAG_INT, COMPONENT_AT(type, secure_port), port, "port to listen on; 0: none" }, \
	{ "tls-cert-file", FLAG_STRING, COMPONENT_AT(type, tls_cert_file), NULL, "serving certificate, with its chain; without it one is made" }, \
	{ "tls-cipher-suites", FLAG_LIST, COMPONENT_AT(type, tls_cipher_suites), NULL, "cipher suites of TLS 1.2, by Go's names" }, \
	{ "tls-curve-preferences", FLAG_LIST, FLAG_REFUSED, 0, NULL, "key exchanges, by Go's numbers" }, \
	{ "tls-min-version", FLAG_STRING, COMPONENT_AT(type, tls_min_version), NULL, "VersionTLS12 (default) or VersionTLS13" }, \
	{ "tls-private-key-file", FLAG_STRING, COMPONENT_AT(type, tls_private_key_file), NULL, "key of --tls-cert-file" }, \
	{ "tls-sni-cert-key", FLAG_ARRAY, FLAG_REFUSED, 0, NULL, "another certificate, by name: file.crt,file.key[:name,...]" }, \
	FLAG_GROUP("Authentication"), \
	{ "authentication-kubeconfig", FLAG_STRING, COMPONENT_AT(type, authentication_kubeconfig), NULL, "kubeconfig for asking about tokens; without it that of the component" }, \
	{ "authentication-skip-lookup", FLAG_BOOL, COMPONENT_AT(type, skip_lookup), "false", "do not ask the API server whose client certificates it trusts" }, \
	{ "authentication-token-webhook-cache-ttl", FLAG_DURATION, FLAG_TUNING, 0, "10s", "how long answers about tokens are kept; they are asked for anew here" }, \
	{ "authentication-tolerate-lookup-failure", FLAG_BOOL, COMPONENT_AT(type, tolerate_lookup_failure), "true", "go on when that cannot be found out" }, \
	{ "client-ca-file", FLAG_STRING, COMPONENT_AT(type, client_ca_file), NULL, "authorities of client certificates" }, \
	{ "requestheader-allowed-names", FLAG_LIST, FLAG_LATER, 0, NULL, "names that a proxy's certificate may have" }, \
	{ "requestheader-client-ca-file", FLAG_STRING, FLAG_LATER, 0, NULL, "authority of proxies that vouch for users in headers" }, \
	{ "requestheader-extra-headers-prefix", FLAG_LIST, FLAG_LATER, 0, "x-remote-extra-", "headers with further facts" }, \
	{ "requestheader-group-headers", FLAG_LIST, FLAG_LATER, 0, "x-remote-group", "headers with groups" }, \
	{ "requestheader-uid-headers", FLAG_LIST, FLAG_LATER, 0, NULL, "headers with the uid" }, \
	{ "requestheader-username-headers", FLAG_LIST, FLAG_LATER, 0, "x-remote-user", "headers with the user's name" }, \
	FLAG_GROUP("Authorization"), \
	{ "authorization-always-allow-paths", FLAG_LIST, COMPONENT_AT(type, always_allow_paths), "/healthz,/readyz,/livez", "paths that everybody may ask for; * at the end stands for anything" }, \
	{ "authorization-kubeconfig", FLAG_STRING, COMPONENT_AT(type, authorization_kubeconfig), NULL, "kubeconfig for asking what callers may do; without it that of the component" }, \
	{ "authorization-webhook-cache-authorized-ttl", FLAG_DURATION, FLAG_TUNING, 0, "10s", "how long a yes is kept; asked for anew here" }, \
	{ "authorization-webhook-cache-unauthorized-ttl", FLAG_DURATION, FLAG_TUNING, 0, "10s", "how long a no is kept; asked for anew here" }

#endif
