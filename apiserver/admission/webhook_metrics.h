/* What is counted about webhooks, under Kubernetes' names. */
#ifndef C8S_APISERVER_ADMISSION_WEBHOOK_METRICS_H
#define C8S_APISERVER_ADMISSION_WEBHOOK_METRICS_H

#include "base/buf.h"

struct hook_call;
struct hook_metrics;

/* type: "admit" or "validating". */
struct hook_metrics *hook_metrics_new(const char *type) NONNULL_RESULT;
void hook_metrics_free(struct hook_metrics *m); /* NULL is fine */

/* A call is over, after ns. */
void hook_metrics_count(struct hook_metrics *m, const struct hook_call *c, int64_t ns);
/* The families of all these together; some may be NULL. */
void hook_metrics_write(const struct hook_metrics *const *all, size_t n, struct buf *b);

#endif
