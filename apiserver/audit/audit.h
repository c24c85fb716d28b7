/*
 * audit/: what was asked, by whom, and what came of it, as the audit policy wants it told.
 *
 *	audit.c       the stages: every request gets its name and its event; what later stages know is added as they know it
 *	policy.h      the policy file: which rule a request falls under, and so its level and stages
 *	event.c       an audit.k8s.io/v1 Event as JSON
 *	log.h         JSON lines in a file, with rotation
 *	backend.h     where events go: the file, the webhook; batching, buffering, truncation
 *
 * A server without a policy, or with nowhere to send events to, pays one branch per call.
 */
#ifndef C8S_APISERVER_AUDIT_AUDIT_H
#define C8S_APISERVER_AUDIT_AUDIT_H

#include "apiserver/request.h"

struct audit;
struct audit_event;

/* Of the log and of the webhook alike; names and units as the flags --audit-log-... and --audit-webhook-... have them. */
struct audit_backend_options {
	const char *mode;             /* "batch", "blocking" or "blocking-strict" */
	int64_t buffer_size, max_batch_size, max_batch_wait_ns, throttle_burst;
	double throttle_qps;
	bool throttle, truncate;
	int64_t truncate_batch_bytes, truncate_event_bytes;
	const char *version;          /* "audit.k8s.io/v1" */
};

struct audit_options {
	const char *policy_file;
	const char *log_path, *log_format;
	int64_t log_max_age_days, log_max_backups, log_max_size_mb;
	bool log_compress;
	struct audit_backend_options log, webhook;
	const char *webhook_config_file;
	int64_t webhook_initial_backoff_ns;
};

/* *ret is NULL when nothing is to be told. */
int audit_new(struct apiserver *s, struct audit **ret, struct err *err);
/* (suspends) Sends what is left, within bounds. NULL is fine. */
void audit_free(struct audit *a);
/* (suspends, until canceled) Sends events. */
int audit_run(struct apiserver *s, struct err *err);
/* apiserver_audit_...; NULL is fine */
void audit_metrics(const struct audit *a, struct buf *b);

/*
 * A fact about the request that its event shows (and nobody else): "pod-security.kubernetes.io/enforce-policy". The first value
 * of a key stays. Texts live as long as the request.
 */
void audit_annotate(struct request *q, str key, str value);
/* The same for what tells about the object (a webhook's patch): only events of level Request and above show it. */
void audit_annotate_request(struct request *q, str key, str value);

/* The request goes on as q->user, who is not who asked. constraint: the verb that allows it in this case only; empty: in all. */
void audit_impersonated(struct request *q, str constraint);

/* Whether the object that was sent is wanted: q->body is then looked at. */
bool audit_wants_request(const struct request *q);
/* Whether the answer's object is wanted: then audit_response_object is called with its JSON (which is copied). */
bool audit_wants_response(const struct request *q);
void audit_response_object(struct request *q, str json);
/* (suspends) The answer of a stream begins with this status; nothing if it is none, or has begun before. */
void audit_response_started(struct request *q, int status);
/* (suspends) The answer is known and about to be sent, or (streams) has ended. */
void audit_response_complete(struct request *q);

/* (suspends) Something that cannot be has happened to the request: the last that is told about it. */
void audit_panicked(struct request *q, const struct err *why);

/* The event of an answer that outlives its request (a watch), which audit_end ends; NULL is fine for that. */
struct audit_event *audit_keep(struct request *q);
void audit_end(struct audit_event *e);

#endif
