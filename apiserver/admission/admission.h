/*
 * admission/: what a cluster's rules make of a write, and whether they take it. A plugin is one file and one row of the table in
 * admission.c, in Kubernetes' order; plugins.h is what they share. --enable-admission-plugins and --disable-admission-plugins
 * choose, AdmissionConfiguration (config.c) configures.
 *
 * What several share: plugins.h; certificates.h, tolerations.h. Those that are more than one file: node_restriction.h, pod_security.h,
 * resource_quota.h. Several in one file: always.c, workload_plugins.c (which do nothing).
 *
 * Webhooks are two plugins (webhook_mutating.c, webhook_validating.c) over: webhook_hooks.h, which there are; webhook_match.h,
 * which want to hear of a request; webhook_call.h, asking one; webhook_review.h, what is said; webhook_auth.h, as whom;
 * webhook_metrics.h, what is counted.
 */
#ifndef C8S_APISERVER_ADMISSION_ADMISSION_H
#define C8S_APISERVER_ADMISSION_ADMISSION_H

#include "apiserver/request.h"

struct admission;

struct admission_options {
	const char *const *enable, *const *disable; /* names of plugins; NULL-ended */
	const char *config_file;      /* --admission-control-config-file */
	int64_t not_ready_toleration_s, unreachable_toleration_s; /* --default-...-toleration-seconds */
};

/* The plugins that are on, with their configuration. */
int admission_new(struct apiserver *s, struct admission **ret, struct err *err);
void admission_free(struct admission *a); /* (suspends) NULL is fine */

/* All plugins, one after the other: 0, or what the first one that refuses returns. */
int admission_mutate(struct request *q, struct err *err);
int admission_validate(struct request *q, struct err *err);
/* Both, for an object that is going to be removed: q->old is the object. */
int admission_remove(struct request *q, struct err *err);
/*
 * Both, for what is not stored (a Binding, an Eviction, a TokenRequest, a review; the options of exec and its kin): q->object
 * and q->type are the object for the time of the call, in its hub version. *object may be replaced.
 */
int admission_pass(struct request *q, const struct type *type, struct val *object, struct err *err);

/*
 * (suspends) A write is over: what quotas were charged for it stays charged (it is stored, or nobody can tell), or is given
 * back. Nothing if nothing was.
 */
void admission_finish(struct request *q, bool kept);

/* What plugins did and webhooks were asked, in the text form of metrics.h. */
void admission_metrics(const struct apiserver *s, struct buf *b);

#endif
