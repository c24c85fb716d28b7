/*
 * kubeconfig: where the API server is and who we are, as kubectl and client-go find it.
 *
 * Files are merged as KUBECONFIG says: the first to set a value wins, names that are new are added. Relative paths in a
 * file begin at its folder. Everything lives in an arena until client_open has copied it.
 */
#ifndef C8S_CLIENT_KUBECONFIG_H
#define C8S_CLIENT_KUBECONFIG_H

#include "codec/val.h"

/* One way to a server, complete: what is left of a kubeconfig once a context is chosen. Texts may be empty. */
struct client_config {
	str server;                  /* https://10.0.0.1:6443/prefix */
	str servers_file;            /* others that are used when that one cannot be reached, one per line; no kubeconfig says it */
	str tls_server_name;
	bool insecure;
	str ca;                      /* PEM */
	str proxy_url;               /* http, https or socks5; empty: HTTPS_PROXY and NO_PROXY of the environment */
	bool disable_compression;
	str client_cert, client_key; /* PEM */
	str client_cert_file, client_key_file, ca_file; /* read again when they change; ca, client_cert, client_key are then empty */
	str token;
	str token_file;              /* read again every minute */
	str username, password;
	str impersonate, impersonate_uid;
	struct val impersonate_groups, impersonate_extra; /* list; map of lists */
	struct val exec;             /* ExecConfig: a program that tells token or certificate; VAL_NONE: none */
	struct val exec_cluster;     /* what the program is told about the cluster */
	str namespace;               /* of the context; "default" if it has none */
	str user_agent;              /* empty: c8s/<version> (linux/amd64) */
};

/* What flags of a command may say instead of the file; empty: nothing. */
struct kubeconfig_overrides {
	str context, cluster, user, namespace;
	str server, tls_server_name, ca_file, client_cert_file, client_key_file, token, username, password;
	str impersonate, impersonate_uid;
	struct val impersonate_groups;
	bool insecure;
};

/*
 * The merged document (an object of clientcmd v1.Config, lists as in the file). path: of --kubeconfig; NULL: KUBECONFIG, or
 * ~/.kube/config. Files that do not exist are passed over, unless path names one: -ERR_NOT_FOUND. What cannot be read
 * or decoded is an error in client-go's words.
 */
int kubeconfig_load(struct arena *a, const char *path, struct val *ret, struct err *err);
/* The file that changes of this document go to: the first that exists, or the first that is named. */
const char *kubeconfig_main_path(struct arena *a, const char *path);
/* The same for one of its contexts: the file that it is from, or, where it is new, the one above. */
const char *kubeconfig_context_path(struct arena *a, const char *path, str context);
/* (suspends) Writes the document; atomically, for its owner alone, under client-go's lock file. */
int kubeconfig_save(const char *path, struct val document, struct err *err);

/*
 * The way that the document's context leads to, checked: all faults at once, in client-go's words. When the document has
 * no context and no overrides, the in-cluster configuration if we run in a pod; else -ERR_NOT_FOUND with kubectl's words.
 */
int kubeconfig_resolve(struct arena *a, struct val document, const struct kubeconfig_overrides *o, struct client_config *ret,
		       struct err *err);
/* From the environment and files of a pod (KUBERNETES_SERVICE_HOST, the service account's token). -ERR_NOT_FOUND outside. */
int kubeconfig_in_cluster(struct arena *a, struct client_config *ret, struct err *err);

/* Both steps for the parts that take --kubeconfig: NULL or "" is in-cluster. */
int kubeconfig_open(struct arena *a, const char *path, struct client_config *ret, struct err *err);

#endif
