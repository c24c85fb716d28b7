/* Asking one webhook about one request, and what follows from the answer, or from there being none. */
#ifndef C8S_APISERVER_ADMISSION_WEBHOOK_CALL_H
#define C8S_APISERVER_ADMISSION_WEBHOOK_CALL_H

#include "apiserver/admission/webhook_hooks.h"
#include "apiserver/admission/webhook_review.h"

enum hook_outcome {
	HOOK_ALLOWED,
	HOOK_DENIED,                  /* response.status says why */
	HOOK_FAILED,                  /* there is no answer that can be used: failurePolicy decides */
	HOOK_UNFIT,                   /* it cannot be asked about a dry run */
	HOOK_BROKEN,                  /* what it wants cannot be done */
	HOOK_CANCELED,
};

struct hook_call {
	struct hook_source *source;
	struct hook *hook;
	const struct hook_request *request;
	const struct hook_version *version;
	bool mutating;
	unsigned round, index;        /* for the audit's names */
	int64_t deadline_ns;          /* of the request */

	enum hook_outcome outcome;
	str why;                      /* failed, unfit, broken */
	int code;                     /* of the failure or refusal, as metrics tell it */
	struct hook_response response; /* allowed, denied */
};

/* Whether the webhook is to be asked: 1 and the version of the resource that it wants to see, 0, or a failure. */
int hook_wants(const struct hook_request *h, const struct hook *hook, const struct endpoint **ret, struct err *err);

/* (suspends) Asks, and fills in the outcome. Warnings and audit annotations of the answer are passed on. */
void hook_ask(struct hook_call *c);
/* 0, or how the request fails, for everything but HOOK_CANCELED. */
int hook_conclude(struct hook_call *c);
/* Sets an outcome other than allowed. */
void hook_outcome(struct hook_call *c, enum hook_outcome outcome, int code, const char *fmt, ...) PRINTF_LIKE(4, 5);

#endif
