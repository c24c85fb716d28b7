/*
 * apiserver/: the only thing that touches the store and the thing everybody talks to. A request passes the stages of the
 * pipeline (pipeline.h); what is stored is cached (cache.h), and every read comes from there.
 *
 *	kinds.h      what is served            request.h   one request, and how it fails
 *	object.h     one stored object         pipeline.h  the stages
 *	cache.h      all of them, and watches  apiserver.h starting and stopping
 *
 * One thread, one loop: all state belongs to it.
 */
#ifndef C8S_APISERVER_APISERVER_H
#define C8S_APISERVER_APISERVER_H

#include "apiserver/kinds.h"
#include "net/http.h"
#include "store/store.h"

struct cache;
struct tokens;
struct encryption;
struct metrics;
struct flow_control;
struct ip_allocators;

/* What the flags of kube-apiserver become. Texts live as long as the server. */
struct apiserver_options {
	struct store_options store;
	const char *bind_address;           /* --bind-address */
	uint16_t secure_port;               /* --secure-port */
	const char *advertise_address;      /* --advertise-address, or what stands for it */
	const char *cert_file, *key_file;   /* --tls-cert-file, --tls-private-key-file */
	const char *client_ca_file;
	const char *tls_min_version, *tls_cipher_suites;
	const char *const *sni_cert_keys;   /* "cert,key[:names]", NULL-ended */
	const char *token_auth_file;
	const char *encryption_config;      /* --encryption-provider-config */
	const char *requestheader_client_ca_file;
	const char *const *requestheader_allowed_names, *const *requestheader_username_headers, *const *requestheader_group_headers,
		*const *requestheader_extra_headers_prefix, *const *requestheader_uid_headers;
	const char *service_cluster_ip_range; /* one CIDR, or two with a comma */
	int service_node_port_first, service_node_port_last;
	const char *kubelet_client_cert, *kubelet_client_key, *kubelet_ca;
	const char *kubelet_preferred_address_types;
	const char *service_account_signing_key_file, *service_account_issuer, *api_audiences;
	int64_t event_ttl_s;
	int64_t compaction_interval_ms;     /* --etcd-compaction-interval */
	unsigned max_requests_inflight, max_mutating_requests_inflight;
	int64_t request_timeout_ms, min_request_timeout_s, shutdown_delay_ms;
	int64_t max_body_bytes;             /* 3 MiB */
	bool profiling;                     /* /debug/... */
	bool anonymous_auth;
	bool allow_privileged;              /* containers may be privileged */
	bool (*served)(const struct resource *r, void *arg); /* --runtime-config; NULL: what is served by default */
	void *served_arg;
};

/* The state of a server; files of this folder use its members directly. */
struct apiserver {
	struct apiserver_options options;
	struct store *store;
	struct cache *cache;
	struct kinds kinds;
	struct http_server *http;
	struct tls_context *tls;
	uint16_t port;                      /* that it listens on */
	int64_t started_wall_ns;
	bool ready, stopping;
	struct tokens *tokens;              /* static tokens (authn_token.h) */
	struct encryption *encryption;      /* NULL: none */
	struct metrics *metrics;            /* metrics.h */
	struct flow_control *flow;          /* fairness.c */
	struct ip_allocators *allocators;   /* service addresses and ports (service_ip.h) */
	struct documents *documents;        /* discovery and OpenAPI, encoded (documents.h) */
	struct kubelet_client *kubelets;    /* ways to nodes and pods, once needed (kubelet_client.h) */
	struct jwt_signer *signer;          /* of tokens, once needed (jwt.h) */
};

/*
 * (suspends) Opens the store, loads the cache, makes what every cluster has, listens, and serves until the fiber is
 * canceled; then stops in good order. on_ready (may be NULL) is called once, when /readyz would say ok.
 */
int apiserver_run(const struct apiserver_options *o, void (*on_ready)(struct apiserver *s, void *arg), void *arg, struct err *err);

#endif
