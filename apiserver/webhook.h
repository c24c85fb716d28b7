/*
 * Asking other servers: tokens, access, admission, images and audit can all be somebody else's to decide. One question is one
 * POST of a JSON object over HTTPS; the answer is bounded in size and time, redirects are not followed.
 */
#ifndef C8S_APISERVER_WEBHOOK_H
#define C8S_APISERVER_WEBHOOK_H

#include "apiserver/request.h"

struct webhook;

/* Where it is, and how to be trusted there. Texts are copied. */
struct webhook_options {
	str url;                      /* or, when empty, a Service of the cluster: */
	str service_namespace, service_name, service_path;
	int service_port;             /* 0: 443 */
	str ca_bundle;                /* PEM; empty: the system's authorities */
	bool insecure;                /* do not check the certificate */
	str server_name;              /* that the certificate must have; empty: the URL's host, or name.namespace.svc */
	str client_cert, client_key;  /* PEM; empty: none */
	str token;                    /* bearer; empty: none */
	str user, password;           /* basic; empty: none */
};

int webhook_new(struct apiserver *s, const struct webhook_options *o, struct webhook **ret, struct err *err);
/* From the current context of a kubeconfig file: server, authority, client certificate, token (also from files), basic auth. */
int webhook_open(struct apiserver *s, const char *kubeconfig_file, struct webhook **ret, struct err *err);
void webhook_free(struct webhook *w); /* (suspends) Nobody may be asking it. NULL is fine */

struct webhook_reply {
	int status;
	str body, content_type;       /* in the arena */
};

/*
 * (suspends) Posts JSON. query is appended to the URL ("timeout=10s"; may be empty); timeout_ms 0: 30 s. Errors are those of
 * net/http_client.h, worded as Go's: Post "https://...": context deadline exceeded. An answer of any status is no error.
 */
int webhook_post(struct webhook *w, struct arena *a, str query, str body, int64_t timeout_ms, struct webhook_reply *ret,
		 struct err *err);
/* 0 for a status from 200 to 206; else an error in Kubernetes' words: the message of a Status, or what the number means. */
int webhook_reply_check(const struct webhook_reply *reply, struct arena *a, struct err *err);
/*
 * (suspends) The same with a typed object; the answer must be 2xx and of the same type. Unknown fields in it are ignored.
 * The query says the timeout, as Kubernetes' does.
 */
int webhook_ask(struct webhook *w, struct arena *a, const struct type *type, struct val question, int64_t timeout_ms,
		struct val *ret, struct err *err);

#endif
