/*
 * server: the kubelet's HTTP API on 10250: pods, runningpods, containerLogs, exec, attach, portForward, run, checkpoint, stats/summary,
 * metrics, metrics/resource, metrics/cadvisor, metrics/probes, healthz, configz, logs; with certificates, delegated authentication (TokenReview)
 * and fine-grained authorization (SubjectAccessReview on nodes/log, nodes/stats, nodes/metrics, nodes/healthz, nodes/pods, nodes/configz,
 * nodes/checkpoint, nodes/proxy).
 *
 *	server.c          which path leads where, and the answers that need no more than a few lines
 *	server_auth.c     who asks, and whether they may
 *	server_logs.c     containerLogs               server_files.c    logs: the files of /var/log
 *	server_pump.c     answers that are made while they are sent
 *	server_streams.c  exec, attach, portForward (the runtime serves them, bytes pass through here), run, checkpoint
 */
#ifndef C8S_KUBELET_SERVER_H
#define C8S_KUBELET_SERVER_H

#include "base/buf.h"
#include "kubelet/cri_client.h"
#include "kubelet/kubelet.h"
#include "net/http.h"

struct client;
struct kubelet_auth;
struct tls_context;

struct kubelet_server_options {
	const struct kubelet_node *node;
	struct cri *cri;
	struct tls_context *tls;      /* client certificates are asked for */
	struct client *client;        /* for reviews; NULL: there are none, and without allow_all nobody may do anything */
	struct kubelet_auth *auth;    /* remembers what reviews said; NULL: they are asked for every request */
	bool no_tokens;               /* authentication.webhook.enabled: false: tokens are not reviewed */
	bool allow_all;               /* authorization.mode: AlwaysAllow: who is known may do all */
	bool anonymous;
	bool no_debugging;            /* enableDebuggingHandlers: false: no logs, exec, attach, portForward, run, checkpoint */
	const char *system_logs;      /* folder that /logs/ shows: /var/log; NULL: none (enableSystemLogHandler: false) */
	struct val (*pods)(void *arg, struct arena *a);                              /* list of core/v1.Pod with status */
	struct val (*pod)(void *arg, struct arena *a, str namespace, str name);      /* VAL_NONE: none here */
	struct val (*summary)(void *arg, struct arena *a);                           /* stats/summary, suspends */
	void (*metrics)(void *arg, str which, struct buf *text);                     /* "", "resource", "cadvisor", "probes" */
	struct val (*config)(void *arg, struct arena *a);                            /* KubeletConfiguration in force */
	bool (*alive)(void *arg);                                                    /* the loop over pods turns; NULL: it does */
	void *arg;
};

/* How long answers of reviews count, in seconds: authentication.webhook.cacheTTL, authorization.webhook.cacheAuthorizedTTL, cacheUnauthorizedTTL. */
struct kubelet_auth *kubelet_auth_new(int64_t token_s, int64_t allowed_s, int64_t denied_s) NONNULL_RESULT;
void kubelet_auth_free(struct kubelet_auth *auth); /* NULL is fine */

/* The handler of an http_server; arg is the options. (suspends) */
int kubelet_server_handle(struct http_exchange *x, void *arg);

#endif
