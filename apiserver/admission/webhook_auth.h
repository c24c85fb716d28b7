/*
 * As whom this server asks webhooks: the users of a kubeconfig file, by the webhook's host. The file is named by the plugin's
 * part of AdmissionConfiguration, a WebhookAdmissionConfiguration.
 */
#ifndef C8S_APISERVER_ADMISSION_WEBHOOK_AUTH_H
#define C8S_APISERVER_ADMISSION_WEBHOOK_AUTH_H

#include "apiserver/webhook_priv.h"

struct webhook_auth;

/* config VAL_NONE, or one that names no file: NULL, nobody. */
int webhook_auth_open(struct val config, struct webhook_auth **ret, struct err *err);
void webhook_auth_free(struct webhook_auth *w); /* NULL is fine */

/* Adds what the file has for this webhook; texts are in the arena, or w's. w NULL: nothing. */
int webhook_auth_add(const struct webhook_auth *w, struct arena *a, struct webhook_options *o, struct webhook_files *files,
		     struct err *err);
/* The user for a host: "name.namespace.svc:443"; VAL_NONE: none. */
struct val webhook_auth_find(const struct webhook_auth *w, struct arena *a, str target);

#endif
