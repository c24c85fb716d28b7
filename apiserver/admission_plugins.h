/* The plugins, one file each, and what they share. */
#ifndef C8S_APISERVER_ADMISSION_PLUGINS_H
#define C8S_APISERVER_ADMISSION_PLUGINS_H

#include "apiserver/admission.h"

extern const struct admission_plugin admission_namespace_lifecycle, admission_service_account, admission_taint_nodes,
	admission_priority, admission_default_toleration_seconds, admission_default_storage_class,
	admission_storage_protection, admission_default_ingress_class, admission_node_features, admission_pod_resize,
	admission_runtime_class;

/* 403: pods "x" is forbidden: <why>. A name that is yet to be made is shown as its beginning. */
int admission_forbid(struct request *q, const char *fmt, ...) PRINTF_LIKE(2, 3);

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
