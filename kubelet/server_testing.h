/* The kubelet's HTTP API with everything around it made up: a runtime that is a table, an API server that knows two tokens. */
#ifndef C8S_KUBELET_SERVER_TESTING_H
#define C8S_KUBELET_SERVER_TESTING_H

#include "base/fiber_test.h"
#include "client/client_priv.h"
#include "client/folder_testing.h"
#include "kubelet/cri_client_priv.h"
#include "kubelet/server.h"
#include "net/http_client.h"

struct fixture {
	struct cri cri;
	struct client api;
	struct kubelet_node node;
	struct kubelet_server_options options;
	struct http_server *server;
	struct fiber *run;
	uint16_t port;
	struct http_client *client;
	struct tls_context *client_tls;
	const char *host;             /* 127.0.0.1 unless set */

	struct folder folder;         /* logs are here: 0.log, 1.log */
	char url[128];                /* what exec, attach and portForward answer with */
	const char *exec_error;       /* what exec fails with, if anything */
	struct val asked;             /* the last request of the runtime that was no list, in asked_arena */
	struct arena asked_arena;
	bool running;                 /* container c does */
	bool dead;                    /* the loop of the kubelet */
	unsigned token_reviews, access_reviews;
	bool api_down;
	struct arena review_arena;
	str last_review;              /* spec of the last SubjectAccessReview, JSON */
};

struct reply {
	int status;
	struct buf body;
};

/* (suspends) */
void fixture_init(struct fixture *f, struct tls_context *server_tls);
void fixture_done(struct fixture *f);
/* (suspends) One request; token NULL: none. The answer is the caller's to give back. */
struct reply fixture_ask(struct fixture *f, const char *method, const char *path, const char *token);
void reply_done(struct reply *r);
/* (suspends) The same, compared. */
void fixture_check(struct fixture *f, int row, const char *method, const char *path, int status, const char *body);
/* Adds to the log of container c. */
void fixture_log(struct fixture *f, const char *text);

#endif
