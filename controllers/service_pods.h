/*
 * service_pods: which pods stand behind a Service, and what of them makes an endpoint; what EndpointSlices and Endpoints share. Pure, but
 * for the two that look into an informer.
 */
#ifndef C8S_CONTROLLERS_SERVICE_PODS_H
#define C8S_CONTROLLERS_SERVICE_PODS_H

#include "base/map.h"
#include "controllers/controller.h"


/* Neither an alias (ExternalName) nor one whose endpoints somebody else makes. */
bool service_has_selector(struct val service);
bool service_selects(struct val service, struct val pod);
/* Without an address of its own. */
bool service_is_headless(struct val service);
/* The pods that it selects, in the order of their names; held as controller_hold does. The informer has the index "namespace". */
struct val service_pods(struct controller *c, struct arena *a, struct val service, const struct informer *pods);
/* Adds the keys of all services that a pod's change concerns: those that select it, before or after. */
void service_pods_add_keys(struct controller *c, const struct informer *services, const struct frozen *old, const struct frozen *pod);

/* It has an address and has not ended; one that is being deleted counts only on request. */
bool pod_has_endpoint(struct val pod, bool with_terminating);
/* Whether it has its own name below the service's. */
bool pod_has_hostname(struct val pod, struct val service);
/* The number of a service's port in the pod; 0: the pod has none of that name. */
int64_t pod_service_port(struct val pod, struct val service_port);

/*
 * When the oldest change happened that was not known before: the time for the annotation, "" for none. before: *ret_seen of the last look,
 * VAL_NONE if there was none. pods are in the order of their names.
 */
str trigger_time(struct arena *a, struct val before, struct val service, struct val pods, struct val *ret_seen);

/* What was seen last, by service. */
struct trigger_times {
	struct map by_service;
};

void trigger_times_done(struct trigger_times *t);
str trigger_times_next(struct trigger_times *t, struct arena *a, str service_key, struct val service, struct val pods);
void trigger_times_forget(struct trigger_times *t, str service_key);

#endif
