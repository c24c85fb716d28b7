/* The parts of the transport over HTTPS: https.c (connections, requests), https_body.c (what is in them), https_raw.c, https_watch.c,
 * https_shared.c (connections that watches share). */
#ifndef C8S_CLIENT_HTTPS_PRIV_H
#define C8S_CLIENT_HTTPS_PRIV_H

#include "base/fiber.h"
#include "base/list.h"
#include "client/client_priv.h"
#include "client/credentials.h"
#include "client/https_shared.h"
#include "client/servers.h"
#include "net/http_client.h"
#include "net/http_proxy.h"

enum { HTTPS_ANSWER_MAX = 64 << 20, HTTPS_FAILURE_MAX = 4 << 20 };

/*
 * Connections to one server that were made with one set of certificates. When either changes there is a new one; the old one lives until its
 * last call has ended, and watches on it are broken off: they begin anew with what is used now.
 */
struct session {
	unsigned refs;
	struct tls_context *tls;         /* NULL: http */
	struct http_client *http;
	struct shared *shared;           /* connections that watches share; NULL: none was asked for yet */
	struct list watches;
	unsigned server;                 /* number in servers */
	str base;                        /* "https://10.0.0.1:6443/prefix"; behind the session */
};

struct https {
	struct client client;
	struct arena arena;              /* of config and what comes from it */
	struct client_config config;
	str base;                        /* that of the configuration */
	struct servers servers;
	int64_t left_ns;                 /* when a server was left that was not well; 0: never */
	bool secure, gzip;
	bool json_only;                  /* the server does not take protobuf */
	struct http_proxy proxy;
	bool has_proxy;
	struct credentials *credentials;
	struct session *session;
	unsigned cert_number;            /* of the credential that the session was made with */
	int64_t looked_ns;               /* when the files were looked at */
	unsigned n_calls;                /* under way; watches and streams apart */
	struct fiber_cond turn;          /* there is one less */
};

/* One request on its way. */
struct exchange {
	struct session *session;
	struct http_call *call;
	const struct http1_head *head;
	bool sent_proto;
	size_t others;                   /* servers that can be tried: this one was not reached, and knows nothing of the request */
};

/* (suspends) Sends it and waits for the head of the answer. Fills ret->status, ret->retry_after_s and ret->cut. */
int https_begin(struct https *h, const struct client_request *q, struct exchange *ret_x, struct client_reply *ret, struct err *err);
/*
 * (suspends) The same for a watch that shares a connection: 1 when it has begun; 0 when that is to be done by https_begin. The session
 * is referenced then.
 */
int https_begin_shared(struct https *h, const struct client_request *q, struct session **ret_session, struct shared_call **ret,
		       struct err *err);
/* (suspends) Takes one that never began. */
void https_end(struct exchange *x);
/*
 * What went wrong with a connection must not be taken for something that a server said of an object: all such errors but those
 * of time, cancel and size become -ERR_UNAVAILABLE.
 */
int https_unavailable(int r, struct err *err);
/* (suspends) The rest of an answer that is not 2xx, as an error. */
int https_fail(struct exchange *x, const struct client_request *q, struct err *err);

/* ---- https_body.c ---- */

/* The body of a request, and its content type; empty: none. */
int https_body_encode(struct arena *a, const struct client_request *q, bool json_only, struct buf *out, str *ret_content_type,
		      struct err *err);
/* (suspends) All of an answer, out of gzip where it came so; -ERR_TOO_LARGE beyond max. */
int https_body_read(struct exchange *x, size_t max, struct buf *out, struct err *err);
/* (suspends) An object of any kind. -ERR_UNAVAILABLE for what is none. */
int https_body_decode(str content_type, str body, struct frozen **ret, struct err *err);
bool https_is_proto(str content_type);

/* ---- https_raw.c ---- */

int https_answer(struct client *c, const struct client_request *q, struct arena *a, size_t max, struct client_answer *ret_answer,
		 struct client_reply *ret, struct err *err);

/* ---- https_watch.c ---- */

int https_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret,
		struct err *err);
int https_watch_next(struct client_watch *w, struct client_event *ret, struct err *err);
void https_watch_free(struct client_watch *w);
/* The session is over for those that use it. */
void https_watches_break(struct session *s);

#endif
