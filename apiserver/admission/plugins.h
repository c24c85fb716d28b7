/* The plugins, one file each, and what they share. */
#ifndef C8S_APISERVER_ADMISSION_PLUGINS_H
#define C8S_APISERVER_ADMISSION_PLUGINS_H

#include "apiserver/admission/admission.h"
#include "apiserver/apiserver.h"

/*
 * One plugin. All functions may be NULL. mutate and validate see q->old and q->object (VAL_NONE: there is none; of a removal,
 * object is VAL_NONE), may wait, and refuse by a fail_ function. mutate may replace q->object.
 */
struct admission_plugin {
	const char *name;
	bool optional;                /* only on when it is asked for */
	int (*mutate)(struct request *q, struct err *err);
	int (*validate)(struct request *q, struct err *err);
	/* Before the first request: its part of AdmissionConfiguration (VAL_NONE: none) becomes the plugin's state. */
	int (*open)(struct apiserver *s, struct val config, void **ret_state, struct err *err);
	void (*close)(void *state);   /* (suspends) */
};

enum admission_operation { ADMISSION_CREATE, ADMISSION_UPDATE, ADMISSION_DELETE, ADMISSION_CONNECT };

static inline enum admission_operation admission_operation(const struct request *q)
{
	if (q->verb == REQUEST_CONNECT)
		return ADMISSION_CONNECT;
	return !val_exists(q->object) ? ADMISSION_DELETE : val_exists(q->old) ? ADMISSION_UPDATE : ADMISSION_CREATE;
}

/*
 * When a webhook has changed an object, all that may want to change it, too, get a second chance, once. This is what they know
 * of each other, while admission_mutate runs.
 */
struct admission_rounds {
	unsigned round;               /* 1: the second time */
	bool again;                   /* set by who wants one */
	struct webhook_rounds *webhooks; /* webhook_mutating.c's */
};

/* What the plugin's open made. */
void *admission_state(const struct apiserver *s, const struct admission_plugin *p);
/* Whether it is on. */
bool admission_is_on(const struct apiserver *s, const struct admission_plugin *p);

/* Is this a write of that resource itself (not of a subresource)? */
static inline bool admits(const struct request *q, str group, str resource)
{
	return str_eq(q->resource, resource) && str_eq(q->group, group) && !q->subresource.n;
}

extern const struct admission_plugin admission_namespace_lifecycle, admission_service_account, admission_taint_nodes,
	admission_priority, admission_default_toleration_seconds, admission_default_storage_class,
	admission_storage_protection, admission_default_ingress_class, admission_node_features, admission_pod_resize,
	admission_runtime_class;
extern const struct admission_plugin admission_always_pull_images, admission_extended_resource_toleration,
	admission_limit_pod_hard_anti_affinity_topology, admission_limit_ranger, admission_pod_node_selector,
	admission_pod_security, admission_pod_toleration_restriction;
extern const struct admission_plugin admission_event_rate_limit, admission_resource_quota;
extern const struct admission_plugin admission_always_admit, admission_always_deny, admission_namespace_auto_provision,
	admission_namespace_exists, admission_deny_service_external_ips, admission_mutating_webhook,
	admission_validating_webhook, admission_image_policy_webhook;
extern const struct admission_plugin admission_node_restriction, admission_certificate_approval,
	admission_certificate_signing, admission_certificate_subject_restriction, admission_cluster_trust_bundle_attest,
	admission_pod_topology_labels, admission_pvc_resize, admission_owner_references, admission_pod_group_protection,
	admission_pod_group_workload_exists, admission_job_validation;

/* What PodSecurity has counted. */
void admission_pod_security_metrics(const struct apiserver *s, struct buf *b);

/* 403: pods "x" is forbidden: <why>. A name that is yet to be made is shown as its beginning. */
int admission_forbid(struct request *q, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The text in double quotes with Go's escapes, as messages show it; in the arena. */
str admission_quoted(struct request *q, str text);

/*
 * (suspends) The object that a write depends on; NULL: there is none, not even after the cache has caught up with what other
 * servers have written. Borrowed until the next wait: what of it goes into q->object is copied.
 */
int admission_find(struct request *q, str group, str resource, str key, struct object **ret, struct err *err);

/*
 * The object of a kind that is marked as the default by this annotation ("true"); of several the newest, then the first
 * by name. NULL: none. Borrowed as above.
 */
struct object *admission_default_of(struct request *q, str group, str resource, str annotation);

/* The node that q->object, a pod, is bound to; NULL when there is no such node. */
struct object *admission_bound_node(const struct request *q);

#endif
