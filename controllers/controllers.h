/*
 * controllers/: loops that make the cluster what its objects say. One file per controller (replica_set.c), and where its decision is more
 * than a few lines a second one with it (replica_set_plan.c): a pure function from what is observed to a plan, tested in tables.
 *
 *	controller.h     how a controller is written: informers, queue, sync; what all share
 *	controllers.c    starting and stopping all of them; kinds.c: the table of all
 *	pod_control.h    pods from templates, adopted and released; counting them
 *	owner.h          owner references
 *	owners.h         whom a change of an object concerns: its owner, or all that might adopt it
 *
 * Controllers see informers and a client only. `c8s kube-controller-manager` runs them over HTTPS, or in the API server's process.
 */
#ifndef C8S_CONTROLLERS_CONTROLLERS_H
#define C8S_CONTROLLERS_CONTROLLERS_H

#include "client/client.h"
#include "codec/val.h"

/* Certificate and key of an authority. NULL: none. */
struct signing_files {
	const char *cert, *key;
};

/* The signers of Kubernetes. */
enum signer { SIGNER_KUBELET_SERVING, SIGNER_KUBELET_CLIENT, SIGNER_CLIENT, SIGNER_LEGACY, SIGNER_MAX };

/* What the flags of kube-controller-manager become. Texts live as long as the loops. Zero: the default of 1.36. */
struct controllers_options {
	/*
	 * A client of its own for each controller, with the identity system:serviceaccount:kube-system:<account> (or all the same); NULL: that of
	 * the manager itself, which the informers use. Owned by the caller, the same for the same account. (suspends) NULL: there is none, which
	 * was logged.
	 */
	struct client *(*client_for)(void *arg, const char *account);
	void *arg;
	const char *const *enabled;         /* --controllers: "*", "foo", "-foo"; NULL: "*" */
	const char *cluster_name;           /* kubernetes */
	const char *root_ca_file;           /* for the publisher of kube-root-ca.crt */
	const char *service_account_key_file; /* that tokens in Secrets are signed with; NULL: none are made */
	struct signing_files signing;       /* of certificates, for all signers */
	struct signing_files signing_of[SIGNER_MAX]; /* instead: where one has its own, others without sign nothing */
	int64_t signing_duration_s;         /* a year */
	int64_t legacy_token_s;             /* age at which unused tokens in Secrets go: a year */
	const char *cluster_cidr, *service_cidr; /* node IPAM; NULL: it does not run */
	int node_mask_v4, node_mask_v6;     /* 24, 64 */
	bool allocate_node_cidrs;
	int64_t node_monitor_period_ms, node_monitor_grace_ms, node_startup_grace_ms; /* 5 s, 50 s, 60 s */
	double node_eviction_rate, secondary_node_eviction_rate; /* 0.1, 0.01; below zero: none */
	int large_cluster_size;             /* 50 */
	double unhealthy_zone_threshold;    /* 0.55 */
	int terminated_pod_gc_threshold;    /* 12500 */
	const char *provisioner_root;       /* of the local-path provisioner; NULL: it does not run */
};

/* Whether --controllers may name it (without "-"): a controller of 1.36, also one that does not run here, by its name or its older one. */
bool controllers_knows(const char *name);
/* (suspends, until canceled) All that are enabled. on_ready (may be NULL): their informers have seen everything once. */
int controllers_run(const struct controllers_options *o, void (*on_ready)(void *arg), void *arg, struct err *err);

#endif
