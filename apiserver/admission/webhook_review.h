/*
 * What webhooks are asked and what they answer: the AdmissionReview of a request, in the version of the resource that a webhook
 * wants to see, and the reading of what comes back, which may be anything.
 */
#ifndef C8S_APISERVER_ADMISSION_WEBHOOK_REVIEW_H
#define C8S_APISERVER_ADMISSION_WEBHOOK_REVIEW_H

#include "apiserver/admission/webhook_match.h"

/* One request as webhooks see it. */
struct hook_request {
	struct request *q;
	struct hook_target target;    /* as the client names it */
	str name;
	const struct endpoint **equivalents; /* other endpoints of the same objects and subresource */
	size_t n_equivalents;
	bool stored;                  /* an object of the endpoint's kind, in its hub version; else it has one version only */
};

struct hook_request hook_request_of(struct request *q);
/* What objects of this request are in a version of the resource. */
const struct type *hook_type(const struct hook_request *h, const struct endpoint *e);

/* The request in one version; VAL_NONE where there is no such object. */
struct hook_version {
	const struct endpoint *endpoint;
	const struct type *type;
	struct val object, old;
	struct val object_json, old_json; /* VAL_RAW: as reviews have them */
};

int hook_version_of(const struct hook_request *h, const struct endpoint *e, struct hook_version *ret, struct err *err);
/* Makes an object of a type (of the version's kind) that of the request. */
int hook_version_take(const struct hook_request *h, const struct hook_version *v, struct val object, const struct type *type,
		      struct err *err);

/* Appends an AdmissionReview of this type (v1 or v1beta1) with its id, as JSON. */
int hook_review(const struct hook_request *h, const struct hook_version *v, const struct type *review, str uid, struct buf *ret,
		struct err *err);
enum { HOOK_REVIEW_MAX = 64 << 20 };

/* An AdmissionResponse, once its review was checked; everything in the arena. */
struct hook_response {
	bool allowed;
	str patch;                    /* JSON text; empty: none */
	str patch_type;
	struct val status;            /* VAL_NONE: none */
	struct val annotations, warnings;
};

/* The body of an answer as a review of the type that was asked with. Errors are what Kubernetes' client says of it. */
int hook_response_decode(struct arena *a, str body, const struct type *review, struct val *ret, struct err *err);
/* What it says, or what is wrong with it. */
int hook_response_of(struct arena *a, struct val review, const struct type *type, str uid, bool mutating, struct hook_response *ret,
		     struct err *err);

#endif
