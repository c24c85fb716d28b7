/*
 * register: the Node object is made, kept up to date (what has changed every 10 s, all of it every 5 minutes), and its Lease renewed.
 *
 *	register.c       the loop of the status                   register_node.c   making or taking over the object
 *	lease.c          the lease in kube-node-lease             csi_node.c        the CSINode object
 *	shutdown.c       the machine goes down: pods end by priority before it does; it learns that over D-Bus (dbus.h)
 *	certificates.c   renewal of who this kubelet is and of what it serves with; certificates_priv.h lists the parts
 */
#ifndef C8S_KUBELET_REGISTER_H
#define C8S_KUBELET_REGISTER_H

#include "client/client.h"
#include "client/recorder.h"
#include "kubelet/config.h"
#include "kubelet/node_status.h"

struct node_keeper;

struct node_keeper_options {
	const struct kubelet_options *options;
	struct kubelet_node *node;    /* its allocatable is kept up to date here */
	struct client *client;        /* NULL: standalone: nothing is told, but node_keeper_object works */
	struct recorder *recorder;
	/* (suspends) What only others know, asked before each status: images, runtime_version, runtime_status, problems, devices,
	 * pressure, reserved. The rest of *f is filled in already. */
	void (*facts)(void *arg, struct arena *a, struct node_facts *f);
	void (*pod_cidr)(void *arg, str cidr); /* spec.podCIDR is known or has changed; UpdateRuntimeConfig. May suspend. NULL is fine. */
	void *arg;
};

struct node_keeper *node_keeper_new(const struct node_keeper_options *o) NONNULL_RESULT;
void node_keeper_free(struct node_keeper *n); /* (suspends) NULL is fine */
/* (suspends, until canceled) Registers (100 ms doubling to 7 s between tries), then keeps status and lease. */
int node_keeper_run(struct node_keeper *n, struct err *err);
/* Something of the status has changed (pressure, readiness of the runtime): tell it now. */
void node_keeper_hurry(struct node_keeper *n);
/* The Node as last seen in the API, or as it would be registered; in the arena (shared). */
struct val node_keeper_object(const struct node_keeper *n, struct arena *a);

/* ---- the CSINode object ---- */

struct csi_node_options {
	struct client *client;
	str node_name;
	void (*problem)(void *arg, str text); /* why the node is not ready yet; "": it is, as far as this goes. To be copied. */
	void *arg;
};
/*
 * (suspends) Makes the CSINode of the node, which must come into being meanwhile, or puts it right; waits for the API server for as long as
 * it takes. Returns 0 when that is done, or the error after some minutes of trying: a kubelet then ends.
 */
int csi_node_run(const struct csi_node_options *o, struct err *err);
/* (suspends) One attempt, for a moment: for a node that was there before, whose CSINode should be right as it is. */
int csi_node_try(const struct csi_node_options *o, struct err *err);

/* ---- shutdown of the machine: logind's PrepareForShutdown, held up by an inhibitor for shutdownGracePeriod ---- */

struct shutdown_options {
	struct val config;            /* KubeletConfiguration: shutdownGracePeriod, ...CriticalPods, ...ByPodPriority */
	str node_name;
	struct recorder *recorder;
	const char *root;             /* graceful_node_shutdown_state is kept there */
	struct val (*pods)(void *arg, struct arena *a); /* active ones */
	/* (suspends) Ends one with this grace, waits. */
	int (*evict)(void *arg, struct val pod, str reason, str message, struct val condition, int64_t grace_s, struct err *err);
	void (*state)(void *arg, str message); /* "node is shutting down"; "": no longer */
	void *arg;
	const char *bus;              /* address; NULL: the system's */
	const char *logind_folder;    /* where InhibitDelayMaxSec is set; NULL: /etc/systemd/logind.conf.d */
};
/*
 * (suspends, until canceled) Returns 0 at once where no period is configured; where logind cannot be reached says so in the log, tries
 * again.
 */
int shutdown_run(const struct shutdown_options *o, struct err *err);

/* ---- certificates ---- */

struct client_config;
struct tls_context;

/*
 * (suspends) Who we are: --kubeconfig if it is there and works, else by --bootstrap-kubeconfig: a key, a CertificateSigningRequest for
 * kubernetes.io/kube-apiserver-client-kubelet, wait for its certificate, kubeconfig written. Files as kubelets have them
 * (pki/kubelet-client-current.pem, a link to a dated one).
 */
int kubelet_identity(const struct kubelet_options *o, str node_name, struct client_config **ret, struct err *err);
void kubelet_identity_free(struct client_config *c); /* NULL is fine */
struct certificates;
struct certificates_options {
	const struct kubelet_options *options;
	str node_name;
	struct val addresses;         /* list of NodeAddress, for the serving certificate */
	struct client *client;        /* NULL: standalone */
	void (*client_renewed)(void *arg); /* the file of the client certificate is a new one; new connections use it */
	void *arg;
};
/*
 * (suspends) The serving certificate: tlsCertFile and tlsPrivateKeyFile (read again when they change), by CSR with serverTLSBootstrap,
 * else one that it signs itself (pki/kubelet.crt, .key). The context belongs to c, asks for client certificates of
 * authentication.x509.clientCAFile (read again), and always has the newest ones.
 */
int certificates_new(const struct certificates_options *o, struct certificates **ret, struct err *err);
struct tls_context *certificates_tls(struct certificates *c);
/* (suspends, until canceled) Renews both at 70 to 90 % of their life (rotateCertificates, serverTLSBootstrap), reads files again. */
int certificates_run(struct certificates *c, struct err *err);
void certificates_free(struct certificates *c);

#endif
