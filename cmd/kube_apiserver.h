/* Between the files of the kube-apiserver command. */
#ifndef C8S_CMD_KUBE_APISERVER_H
#define C8S_CMD_KUBE_APISERVER_H

#include "apiserver/apiserver.h"
#include "apiserver/pki.h"
#include "apiserver/runtime_config.h"
#include "cmd/flags.h"

/* What the command line says: flags of Kubernetes in its units, and our own. */
struct kube_apiserver_flags {
	const char *data_dir;
	bool version, profiling, allow_privileged, priority_and_fairness;
	const char *bind_address, *advertise_address, *external_hostname;
	int64_t secure_port, max_requests_inflight, max_mutating_requests_inflight, min_request_timeout_s, verbosity;
	int64_t request_timeout_ns, shutdown_delay_ns, event_ttl_ns, compaction_interval_ns;
	const char *tls_cert_file, *tls_private_key_file, *tls_min_version, *client_ca_file;
	const char *const *tls_cipher_suites, *const *tls_sni_cert_keys;
	const char *encryption_provider_config;
	struct authn_options authn;
	struct authz_options authz;
	struct admission_options admission;
	struct audit_options audit;
	const char *const *etcd_servers;
	const char *etcd_cafile, *etcd_certfile, *etcd_keyfile;
	const char *service_cluster_ip_range, *service_node_port_range;
	const char *kubelet_certificate_authority, *kubelet_client_certificate, *kubelet_client_key;
	const char *const *kubelet_preferred_address_types;
	const char *const *runtime_config, *const *feature_gates;
	const char *logging_format;
};

extern const struct flag kube_apiserver_flags[];

/* What the flags become, once they were checked: everything but the files that are made when no flag names one. */
struct kube_apiserver {
	struct arena *arena;
	struct kube_apiserver_flags flags;
	struct apiserver_options options;
	struct runtime_config *runtime_config;
	const char *service_ip;       /* the first of the service range: that of the service "kubernetes" */
	/* ---- of the run ---- */
	struct pki_options pki;       /* what is made because no flag names it */
	const char *admin_conf;       /* set when it serves and has written one */
	int lock_fd;                  /* of the data directory; -1: none */
};

#define KUBE_APISERVER_INIT(arena_) { .arena = (arena_), .lock_fd = -1 }

/* Checks with Kubernetes' texts and fills options, runtime_config and service_ip. */
int kube_apiserver_complete(struct kube_apiserver *k, struct err *err);
/* (suspends) Makes what no flag names, and serves until canceled. on_ready: it serves; must not suspend. */
int kube_apiserver_run(struct kube_apiserver *k, void (*on_ready)(struct apiserver *s, void *arg), void *arg, struct err *err);
/* A line on standard output: where it serves, and how to use it. */
void kube_apiserver_say_ready(const struct kube_apiserver *k, const char *name);

#endif
