/* The parts of kubeconfig.h: kubeconfig.c (files), kubeconfig_resolve.c (choosing), kubeconfig_check.c (what can be wrong). */
#ifndef C8S_CLIENT_KUBECONFIG_PRIV_H
#define C8S_CLIENT_KUBECONFIG_PRIV_H

#include "base/buf.h"
#include "client/kubeconfig.h"

enum { KUBECONFIG_MAX = 16 << 20 };

/* All that is wrong, each thing once. */
struct faults {
	struct arena *arena;
	struct val_builder list;       /* of texts */
};

static inline struct faults faults_of(struct arena *a) { return (struct faults){ .arena = a, .list = val_builder(a) }; }
void faults_add(struct faults *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* 0 when there are none; else -ERR_INVALID with prefix and "x" or "[x, y]". */
int faults_fail(struct faults *f, const char *prefix, struct err *err);

/* "no such file or directory": as Go writes errno. */
str go_errno(struct arena *a, int sys);

/* The member of what's list that has this name: named(clusters, "c", A_cluster); VAL_NONE: there is none. */
struct val kubeconfig_named(struct val list, str name, atom what);

/* The text of a file: with paths that begin at its folder, and with defaults. */
int kubeconfig_decode(struct arena *a, str text, str file, struct val *ret, struct err *err);

/* What a context leads to, with what flags said in place of it. */
struct kubeconfig_choice {
	str context_name, cluster_name, user_name, namespace;
	struct val cluster, user;      /* of clientcmd/v1 */
	bool has_context, has_cluster; /* in the document */
	bool touched;                  /* the cluster: has anything of it been given */
};

/* As clientcmd's ConfirmUsable. *ret_empty: nothing is wrong but that there is nothing. */
int kubeconfig_check(struct arena *a, const struct kubeconfig_choice *c, bool *ret_empty, struct err *err);

/* kubeconfig_in_cluster for a pod whose service account is told in this folder. */
int kubeconfig_in_cluster_at(struct arena *a, const char *folder, struct client_config *ret, struct err *err);

#endif
