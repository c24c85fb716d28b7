/* Webhooks whose credentials are in files: for webhook_kubeconfig.c, and for those who read kubeconfigs in another way. */
#ifndef C8S_APISERVER_WEBHOOK_PRIV_H
#define C8S_APISERVER_WEBHOOK_PRIV_H

#include "apiserver/webhook.h"

/* What is in files instead of in the options; looked at again while the server runs. Copied; NULL: not in a file. */
struct webhook_files {
	const char *ca, *client_cert, *client_key, *token;
};

int webhook_make(struct apiserver *s, const struct webhook_options *o, const struct webhook_files *files,
		 struct webhook **ret, struct err *err);

/* A kubeconfig (clientcmd/v1.Config), all of it in the arena. It blocks. */
int kubeconfig_read(struct arena *a, const char *path, struct val *ret, struct err *err);
/*
 * How the server shows that it is this user of the kubeconfig file: adds to the options and files. What is in the file itself goes
 * before the certificates and keys that it names; those may be relative to it. Texts are in the arena, or the user's.
 */
int kubeconfig_user(struct arena *a, const char *file, struct val user, struct webhook_options *o, struct webhook_files *files,
		    struct err *err);

#endif
