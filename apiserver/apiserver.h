/*
 * apiserver/: the only thing that touches the store and the thing everybody talks to. A request passes the stages of the
 * pipeline (pipeline.h); what is stored is cached (cache.h), and every read comes from there. One thread, one loop: all state
 * belongs to it.
 *
 * What there is (headers are the manuals; where a subject is several files, the first one leads):
 *	apiserver.c      starting and stopping            kinds.h      what is served: kinds and endpoints
 *	runtime_config.h which versions are served        object.h     one stored object, shared by all
 *	bootstrap.h      what every cluster has           cache.h      all of them, their recent events, who follows
 *	inprocess.h      writing from inside              stored.h     reading and writing one in the store
 *	transformer.h    encryption at rest (encryption_config.c: the file that asks for it)
 *	follow.h         hearing that kinds have changed  hooks.h      kinds that do something of their own
 *	config_file.h    configuration files              user.h       questions about users; pod.h: about pods
 *
 * A request, in the order of its stages:
 *	request.h        one request, its answer          pipeline.h   the stages, and what they return
 *	info.c, route.h  what is asked for                deadline.c   how long it may take
 *	audit/           that it was asked                authn/       who asks
 *	impersonate.c    as whom                          fairness/    whether there is room
 *	authz/           may they                         negotiate.h  media types
 *	decode.c         what they say (write.h):         patch.c, write_options.c, delete_options.c
 *	mutate.c         what admission/ makes of it      admit.c      whether it takes it
 *	validate.c       whether it can be:               meta.h, admin_access.c, warnings.h
 *	store.c          read (read.h) or write:          get.c, list.h, watch.h; commit.c, delete.c, strategy.h
 *	respond.c        the answer:                      encode.h, status.c, pieces.h; local.h: to one from this process
 *
 * What is more than stored objects:
 *	subresource.h    status aside: scale, binding, eviction, log, exec, proxies, tokens, reviews
 *	change.h         an object beside the one that the request is about; resets.h: managedFields
 *	stream_proxy.h   upgraded connections; relay.h: bodies; kubelet_client.h: the way to nodes
 *	hooks_service.h  what Services get: service_ip.h, service_families.c, service_port*.c, service_repair.c
 *	pki.h            keys and certificates that it makes
 *	webhook.h        asking other servers; webhook_cache.h: what they said; webhook_reviewer.h: both
 *	documents.h      discovery.c, openapi_docs.c, health.c, version.h, debug.c, root.c, metrics.h: what is not a resource
 */
#ifndef C8S_APISERVER_APISERVER_H
#define C8S_APISERVER_APISERVER_H

#include "apiserver/admission/admission.h"
#include "apiserver/audit/audit.h"
#include "apiserver/authn/authn.h"
#include "apiserver/authz/authz.h"
#include "apiserver/kinds.h"
#include "net/http.h"
#include "store/store.h"

struct cache;
struct encryption;
struct metrics;
struct flow_control;
struct ip_allocators;

/* What the flags of kube-apiserver become. Texts live as long as the server. */
struct apiserver_options {
	struct store_options store;
	const char *bind_address;           /* --bind-address; NULL: only this process can ask (local.h) */
	uint16_t secure_port;               /* --secure-port */
	int listen_fd;                      /* bound to both already, by who has started us; 0: not */
	const char *advertise_address;      /* --advertise-address, or what stands for it */
	const char *cert_file, *key_file;   /* --tls-cert-file, --tls-private-key-file */
	const char *client_ca_file;
	const char *tls_min_version, *tls_cipher_suites;
	const char *const *sni_cert_keys;   /* "cert,key[:names]", NULL-ended */
	const char *encryption_config;      /* --encryption-provider-config */
	const char *service_cluster_ip_range; /* one CIDR, or two with a comma */
	int service_node_port_first, service_node_port_last;
	const char *kubelet_client_cert, *kubelet_client_key, *kubelet_ca;
	const char *kubelet_preferred_address_types;
	int64_t event_ttl_s;
	int64_t compaction_interval_ms;     /* --etcd-compaction-interval */
	unsigned max_requests_inflight, max_mutating_requests_inflight;
	int64_t request_timeout_ms, min_request_timeout_s, shutdown_delay_ms;
	int64_t max_body_bytes;             /* 3 MiB */
	bool profiling;                     /* /debug/... */
	bool priority_and_fairness;         /* --enable-priority-and-fairness */
	struct authn_options authn;
	struct authz_options authz;
	struct admission_options admission;
	struct audit_options audit;
	bool allow_privileged;              /* containers may be privileged */
	bool (*served)(const struct resource *r, void *arg); /* --runtime-config; NULL: what is served by default */
	void *served_arg;
	struct val gates;                   /* what --feature-gates says (machinery/gates.h); VAL_EMPTY: nothing */
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
	bool roles_made;                    /* those that every cluster has (authz/rbac_bootstrap.c) */
	struct authn *authn;                /* authn/ */
	struct authz *authz;                /* authz/ */
	struct admission *admission;        /* admission/ */
	struct audit *audit;                /* audit/; NULL: nothing is told */
	struct encryption *encryption;      /* NULL: none */
	struct metrics *metrics;            /* metrics.h */
	struct flow_control *flow;          /* fairness/ */
	struct ip_allocators *allocators;   /* service addresses and ports (service_ip.h) */
	struct documents *documents;        /* discovery and OpenAPI, encoded (documents.h) */
	struct kubelet_client *kubelets;    /* ways to nodes and pods, once needed (kubelet_client.h) */
	struct jwt_signer *signer;          /* of tokens, once needed (jwt.h) */
};

/* Whether a feature gate is on; NULL stands for what needs none. */
bool apiserver_gate(const struct apiserver *s, const char *name);

/*
 * (suspends) Opens the store, loads the cache, makes what every cluster has, listens, and serves until the fiber is
 * canceled; then stops in good order. on_ready (may be NULL) is called once, when /readyz would say ok.
 */
int apiserver_run(const struct apiserver_options *o, void (*on_ready)(struct apiserver *s, void *arg), void *arg,
		  struct err *err);

#endif
