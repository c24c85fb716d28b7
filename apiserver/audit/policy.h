/*
 * policy: the audit policy file, and what it says about a request. The first rule that matches counts; a request that none
 * matches is not audited.
 */
#ifndef C8S_APISERVER_AUDIT_POLICY_H
#define C8S_APISERVER_AUDIT_POLICY_H

#include "apiserver/request.h"

#define AUDIT_LEVELS(X) X(NONE, "None") X(METADATA, "Metadata") X(REQUEST, "Request") X(REQUEST_RESPONSE, "RequestResponse")
#define AUDIT_STAGES(X) \
	X(REQUEST_RECEIVED, "RequestReceived") X(RESPONSE_STARTED, "ResponseStarted") X(RESPONSE_COMPLETE, "ResponseComplete") X(PANIC, "Panic")

enum audit_level {
#define AUDIT_LEVEL_ENUM(name, text) AUDIT_##name,
	AUDIT_LEVELS(AUDIT_LEVEL_ENUM)
#undef AUDIT_LEVEL_ENUM
	AUDIT_LEVEL_MAX,
};

enum audit_stage {
#define AUDIT_STAGE_ENUM(name, text) AUDIT_STAGE_##name,
	AUDIT_STAGES(AUDIT_STAGE_ENUM)
#undef AUDIT_STAGE_ENUM
	AUDIT_STAGE_MAX,
};

/* In the order of the enums. */
extern const str audit_level_names[AUDIT_LEVEL_MAX], audit_stage_names[AUDIT_STAGE_MAX];

struct audit_policy;

/* What is told about one request. */
struct audit_verdict {
	enum audit_level level;
	unsigned omit;                /* bits of enum audit_stage */
	bool omit_managed_fields;
};

/*
 * From the text of an audit.k8s.io/v1 Policy, YAML or JSON. Unknown fields are only warned of, as Kubernetes does; *ret_warning is
 * that text, or "" (in the policy's memory). -ERR_BAD_REQUEST with Kubernetes' messages.
 */
int audit_policy_parse(str text, struct audit_policy **ret, str *ret_warning, struct err *err);
void audit_policy_free(struct audit_policy *p); /* NULL is fine */

struct audit_verdict audit_policy_judge(const struct audit_policy *p, const struct request *q);

#endif
