/* Between webhook.c and webhook_kubeconfig.c. */
#ifndef C8S_APISERVER_WEBHOOK_PRIV_H
#define C8S_APISERVER_WEBHOOK_PRIV_H

#include "apiserver/webhook.h"

/* What is in files instead of in the options; looked at again while the server runs. Copied; NULL: not in a file. */
struct webhook_files {
	const char *ca, *client_cert, *client_key, *token;
};

int webhook_make(struct apiserver *s, const struct webhook_options *o, const struct webhook_files *files,
		 struct webhook **ret, struct err *err);

#endif
