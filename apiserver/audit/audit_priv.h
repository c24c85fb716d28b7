/* What the files of audit/ share. */
#ifndef C8S_APISERVER_AUDIT_AUDIT_PRIV_H
#define C8S_APISERVER_AUDIT_AUDIT_PRIV_H

#include "apiserver/audit/audit.h"
#include "apiserver/audit/backend.h"
#include "apiserver/audit/policy.h"

struct audit_annotation {
	str key, value;
};

/* The event of one request, in its arena. */
struct audit_event {
	struct audit *audit;
	const struct request *q;
	struct audit_verdict verdict;
	bool judged;                  /* the policy has been asked */
	bool started;                 /* the answer of a stream has begun */
	bool kept;                    /* audit_end will end it */
	struct audit_annotation *annotations;
	size_t n_annotations;
	int status;                   /* 0: there was no answer */
	struct val failure;           /* the Status that is answered; or */
	str message;                  /* why there is none */
	str request, response;        /* JSON of the objects; "" none */
	str constraint;               /* of acting as somebody else; "" none */
	str peer;                     /* the connection's other end; the connection may end before the request (exec) */
};

struct audit {
	struct audit_policy *policy;
	struct audit_backend *backends[2];
	size_t n_backends;
	uint64_t events, levels[AUDIT_LEVEL_MAX], rejected;
};

/* Every event of the log begins with this; in lists it is left out. */
#define AUDIT_EVENT_HEAD "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\","

/* The event at a stage as one line of JSON, without the newline. cut: without objects, and marked so. */
int audit_event_json(const struct audit_event *e, enum audit_stage stage, bool cut, struct buf *b, struct err *err);
/* The same as the line of the legacy format. */
void audit_event_legacy(const struct audit_event *e, enum audit_stage stage, struct buf *b);
/* JSON of an object or list, without metadata.managedFields; the text itself when it cannot be read. */
str audit_without_managed_fields(struct arena *a, str json);

#endif
