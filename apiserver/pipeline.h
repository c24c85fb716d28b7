/*
 * The pipeline: a fixed array of stages in the order of the story, each a function over one struct request and a file
 * of its own. A stage may wait (it is on the request's fiber). What it returns says how it goes on.
 */
#ifndef C8S_APISERVER_PIPELINE_H
#define C8S_APISERVER_PIPELINE_H

#include "apiserver/request.h"

#define STAGES(X)                                                                             \
	X(INFO, stage_info)                 /* what is asked for: info.c */                   \
	X(DEADLINE, stage_deadline)         /* how long it may take: deadline.c */            \
	X(AUDIT, stage_audit)               /* its name: audit.c */                           \
	X(AUTHENTICATE, stage_authenticate) /* who asks: authn.c */                           \
	X(RECEIVED, stage_received)         /* that it was asked: audit.c */                  \
	X(IMPERSONATE, stage_impersonate)   /* as whom: impersonate.c */                      \
	X(FAIRNESS, stage_fairness)         /* whether there is room for it now: fairness.c */ \
	X(AUTHORIZE, stage_authorize)       /* may they: authz.c */                           \
	X(DECODE, stage_decode)             /* what they say, with defaults: decode.c */      \
	X(MUTATE, stage_mutate)             /* what admission makes of it: mutate.c */        \
	X(VALIDATE, stage_validate)         /* whether it can be: validate.c */               \
	X(ADMIT, stage_admit)               /* whether admission takes it: admit.c */         \
	X(STORE, stage_store)               /* read or write: store.c */                      \
	X(RESPOND, stage_respond)           /* the answer: respond.c */

enum stage {
#define STAGE_ENUM(name, fn) STAGE_##name,
	STAGES(STAGE_ENUM)
#undef STAGE_ENUM
	STAGE_MAX,
};

enum stage_result {
	STAGE_NEXT,                   /* go on with the next stage */
	STAGE_ANSWER,                 /* the answer is ready: go to STAGE_RESPOND */
	STAGE_AGAIN,                  /* the object has changed meanwhile: go back to STAGE_DECODE */
};                                    /* or a negative error: answer with q->failure or the error's Status */

#define STAGE_DECLARE(name, fn) int fn(struct request *q, struct err *err);
STAGES(STAGE_DECLARE)
#undef STAGE_DECLARE

extern const char *const stage_names[STAGE_MAX];

/* The handler of the HTTP server: containment and all stages. arg is the struct apiserver. */
int pipeline_handle(struct http_exchange *x, void *arg);
/* The same for a request from inside (local.h): nothing is sent, local_respond has the answer. < 0: nobody wants it any more. */
int pipeline_local(struct http_exchange *x, struct apiserver *s, const struct local_request *local);

#endif
