/*
 * The keys and certificates of a cluster, made where they are missing and renewed before they end, in DIR/pki under the
 * names that kubeadm uses:
 *
 *	ca                        signs all of the following; what clients of the cluster trust
 *	apiserver                 the API server's own
 *	apiserver-kubelet-client  how it shows itself to kubelets
 *	admin                     of the administrator; DIR/admin.conf is the kubeconfig with it
 *	controller-manager, scheduler  of these two; DIR/controller-manager.conf and DIR/scheduler.conf likewise
 *	front-proxy-ca, front-proxy-client  how it shows itself to API servers that extend it
 *	sa.key, sa.pub            sign tokens of service accounts
 *
 * Keys are ECDSA P-256 in files that only the owner can read. Files are replaced atomically, and a renewal keeps the key, so
 * that a certificate and its key always fit together. A certificate of another authority is never touched.
 */
#ifndef C8S_APISERVER_PKI_H
#define C8S_APISERVER_PKI_H

#include "base/arena.h"
#include "base/buf.h"

struct file_batch;

enum pki_need {
	PKI_SERVING = 1 << 0,         /* apiserver */
	PKI_CLIENTS = 1 << 1,         /* apiserver-kubelet-client, admin, controller-manager, scheduler */
	PKI_FRONT_PROXY = 1 << 2,
	PKI_SERVICE_ACCOUNTS = 1 << 3,
	PKI_CONFS = 1 << 4,           /* the kubeconfigs; needs PKI_CLIENTS */
	PKI_AUTHORITY = 1 << 5,       /* ca alone */
};

/* Texts are borrowed for as long as the options are used. */
struct pki_options {
	const char *dir;              /* the data directory; exists */
	unsigned needs;               /* of enum pki_need */
	const char *const *names;     /* DNS names of the serving certificate, NULL-ended */
	const char *const *addresses; /* and IP addresses, NULL-ended */
	const char *server;           /* for the kubeconfigs: "https://10.0.0.1:6443" */
	struct file_batch *batch;     /* files are added to it, to be written with others; NULL: they are written */
};

/*
 * Makes what is missing and renews what is due: a certificate beyond two thirds of its life, one that was signed by an
 * earlier ca, or a serving certificate that lacks a name. Returns how many files were written. Blocks: on a fiber, use
 * pki_renew_run or fiber_blocking.
 */
int pki_ensure(const struct pki_options *o, struct err *err);
/* (suspends, until canceled) pki_ensure every hour; errors are logged. */
int pki_renew_run(const struct pki_options *o, struct err *err);

/*
 * Writes a kubeconfig with a new client certificate of DIR's authority, for this user of this group, unless there is one for this server and
 * this authority already: whoever uses it may have renewed its certificate since. Blocks.
 */
int pki_client_conf(const struct pki_options *o, const char *user, const char *group, const char *path, struct err *err);

/* "DIR/pki/NAME", in the arena. */
const char *pki_path(struct arena *a, const char *dir, const char *name);
const char *pki_admin_conf(struct arena *a, const char *dir);

/* Appends a line per certificate of DIR/pki: what it is for, until when it is valid, when it is going to be renewed. */
int pki_show(const char *dir, struct buf *b, struct err *err);
/* The same for one that is elsewhere; of a chain, its first. */
int pki_show_file(const char *name, const char *purpose, const char *path, struct buf *b, struct err *err);

#endif
