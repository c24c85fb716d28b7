/* Between the files of the kube-controller-manager command. */
#ifndef C8S_CMD_KUBE_CONTROLLER_MANAGER_H
#define C8S_CMD_KUBE_CONTROLLER_MANAGER_H

#include "cmd/component_server.h"
#include "cmd/flags.h"
#include "controllers/controllers.h"

/* What the command line says. */
struct controller_manager_flags {
	const char *kubeconfig, *master, *lock, *lock_name, *lock_namespace, *log_format;
	double qps;
	int64_t burst, lease_ns, renew_ns, retry_ns, verbosity;
	bool elect, release, version; /* release: by a feature gate */
	struct component_server_flags server;
	const char *const *controllers, *const *feature_gates;
	bool use_accounts, allocate_node_cidrs;
	const char *cluster_name, *cluster_cidr, *service_cidr, *root_ca_file, *account_key_file, *provisioner_root;
	struct signing_files signing, signing_of[SIGNER_MAX];
	int64_t signing_ns, legacy_token_ns, node_mask, node_mask_v4, node_mask_v6, monitor_period_ns, monitor_grace_ns, startup_grace_ns, large_cluster_size,
		terminated_pods;
	double eviction_rate, secondary_eviction_rate, unhealthy_zone;
};

extern const struct flag controller_manager_flags[];

/*
 * Checks, with Kubernetes' texts; fills what the controllers run with, which points into the flags. 0, or the exit code after a message of c.
 */
int controller_manager_complete(const struct command *c, struct controller_manager_flags *f, struct controllers_options *ret);

/* The command line as KubeControllerManagerConfiguration, typed, in the arena. 0, or the exit code after a message. */
int controller_manager_config(const struct command *c, int argc, char **argv, struct arena *a, struct val *ret);

/* One run of it, which the caller fills. */
struct controller_manager {
	struct controller_manager_flags flags;
	struct controllers_options options; /* of controller_manager_complete, with client_for and its arg */
	struct val config;                  /* of controller_manager_config; VAL_NONE: it is not told */
	struct client *client;              /* the manager's own: for the election and the port */
	void (*on_ready)(void *arg);        /* the controllers work */
	void (*waits)(void *arg);           /* somebody else leads; may be NULL */
	void *arg;
	/* ---- of the run ---- */
	bool leads;
	int result;
	struct err err;
};

/* (suspends) The controllers, once this process leads, and the port. Until canceled; "leaderelection lost" is -ERR_UNAVAILABLE. */
int controller_manager_run(struct controller_manager *m, struct err *err);

#endif
