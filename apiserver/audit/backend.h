/*
 * backend: where audit events go. A backend takes events as lines, keeps them in a bounded buffer and stores them from a fiber of
 * its own; in the blocking modes whoever has an event waits until it is stored.
 */
#ifndef C8S_APISERVER_AUDIT_BACKEND_H
#define C8S_APISERVER_AUDIT_BACKEND_H

#include "apiserver/audit/audit.h"
#include "apiserver/audit/log.h"
#include "apiserver/webhook.h"
#include "base/fiber.h"

enum audit_mode { AUDIT_BATCH, AUDIT_BLOCKING, AUDIT_STRICT };

struct audit_line;

struct audit_backend {
	const char *plugin;           /* "log" or "webhook" */
	const struct audit_backend_options *options;
	enum audit_mode mode;
	bool legacy;                  /* lines in the legacy format */
	struct audit_log *log;        /* one of the two, owned */
	struct webhook *webhook;
	int64_t backoff_ns;           /* before sending is tried again */
	struct list lines;
	size_t n, bytes;
	struct fiber_cond filled, stored;
	bool stopped, full;           /* nobody stores any more; events are being dropped */
	int64_t tokens_at_ns;         /* the throttle: how many batches may go now */
	double tokens;
	uint64_t errors;              /* events that were lost */
};

/* Options and what they name live as long as the backend, which owns log and webhook. */
struct audit_backend *audit_backend_to_log(struct audit_log *log, const struct audit_backend_options *o, bool legacy) NONNULL_RESULT;
struct audit_backend *audit_backend_to_webhook(struct webhook *w, const struct audit_backend_options *o, int64_t backoff_ns) NONNULL_RESULT;
/* (suspends) Stores what is left, within a few seconds. NULL is fine. */
void audit_backend_free(struct audit_backend *b);
/* (suspends, until canceled) Stores events. */
int audit_backend_run(struct audit_backend *b, struct err *err);

/*
 * (suspends) Takes an event (copied); in the blocking modes it has been stored when this returns, but not without `wait`, which
 * callbacks leave out. Errors are only for blocking-strict; other losses are counted and logged.
 */
int audit_backend_put(struct audit_backend *b, str event, bool wait, struct err *err);
/* n events are lost. */
void audit_backend_lost(struct audit_backend *b, size_t n, const struct err *why);

#endif
