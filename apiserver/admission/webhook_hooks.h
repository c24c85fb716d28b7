/*
 * The webhooks that are configured now, compiled. A configuration is compiled when it is new or has changed; requests hold on to
 * the list that they have begun with, also when it changes while they wait for an answer.
 */
#ifndef C8S_APISERVER_ADMISSION_WEBHOOK_HOOKS_H
#define C8S_APISERVER_ADMISSION_WEBHOOK_HOOKS_H

#include "apiserver/apiserver.h"
#include "apiserver/webhook.h"
#include "machinery/selector.h"

struct hook_config;
struct hook_metrics;
struct webhook_auth;

/* One webhook of one configuration. */
struct hook {
	str name, configuration;
	str uid;                      /* "configuration/name/0": tells it from all others */
	struct val spec;              /* MutatingWebhook or ValidatingWebhook */
	struct selector namespaces, objects;
	bool ignore;                  /* failurePolicy: what goes wrong is no reason to refuse */
	bool equivalent;              /* matchPolicy */
	bool again;                   /* reinvocationPolicy IfNeeded */
	int64_t timeout_ms;           /* 0: none */
	struct webhook *client;       /* once it was needed (hook_client) */
};

/* All webhooks, in the order of the names of configurations, and in each as it has them. */
struct hook_list {
	unsigned refs;
	int64_t revision;             /* of the last change that it knows of */
	struct hook **hooks;
	size_t n;
	struct hook_config **configs;
	size_t n_configs;
};

/* Where they are configured: a kind of the API. */
struct hook_source {
	struct apiserver *server;
	struct kind *kind;            /* NULL: it is not served */
	struct webhook_auth *auth;    /* how the server is known to them; NULL: it is not */
	struct hook_list *now;
	struct hook_metrics *metrics;
};

/* From the plugin's part of AdmissionConfiguration. */
int hook_source_new(struct apiserver *s, str resource, const char *metrics_type, struct val config,
		    struct hook_source **ret, struct err *err);
void hook_source_free(struct hook_source *s); /* (suspends) NULL is fine */

/* The list as of now, a reference. */
struct hook_list *hook_list_now(struct hook_source *s) NONNULL_RESULT;
void hook_list_unref(struct hook_list *l); /* (suspends, when it is the last one) */
void hook_list_unrefp(struct hook_list **l);

/* The way to it. */
int hook_client(struct hook_source *s, struct hook *h, struct webhook **ret, struct err *err);

#endif
