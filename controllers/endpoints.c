/* Endpoints of Services with a selector: the old form of EndpointSlices. A key is a Service's. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/endpoints_plan.h"
#include "controllers/labels.h"
#include "controllers/service_pods.h"

struct endpoints {
	struct informer *services, *pods, *endpoints;
	struct trigger_times times;
};

static int write_endpoints(struct controller *c, str key, struct val object, bool create, struct err *err)
{
	int r = create ? client_create(c->client, TYPE(core_v1, Endpoints), object, NULL, NULL, err)
		       : client_update(c->client, TYPE(core_v1, Endpoints), object, NULL, NULL, err);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (r == 0 || r == -ERR_CANCELED || r == -ERR_CONFLICT || r == -ERR_ALREADY_EXISTS)
		return r; /* the informer is late: nothing to tell anybody */
	if (create && error_is_namespace_ending(err)) {
		err_clear(err);
		return 0;
	}
	object = val_with(&a, val_with(&a, object, VAL_LIT("v1"), apiVersion), VAL_LIT("Endpoints"), kind);
	if (create)
		controller_event(c, object, true, "FailedToCreateEndpoint", "Failed to create endpoint for service " STR_FMT ": %s", STR_ARG(key),
				 err ? err->msg : "");
	else
		controller_event(c, object, true, "FailedToUpdateEndpoint", "Failed to update endpoint " STR_FMT ": %s", STR_ARG(key),
				 err ? err->msg : "");
	return r;
}

static int endpoints_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct endpoints *s = c->state;
	struct frozen *found = informer_get(s->services, key), *old = informer_get(s->endpoints, key);
	str namespace, name;

	if (!found) {
		trigger_times_forget(&s->times, key);
		if (!old)
			return 0;
		controller_split(key, &namespace, &name);
		int r = client_delete(c->client, TYPE(core_v1, Endpoints), namespace, name, NULL, err);
		if (r == -ERR_NOT_FOUND)
			err_clear(err);
		return r == -ERR_NOT_FOUND ? 0 : r;
	}
	if (!service_has_selector(found->val))
		return 0;
	struct val service = controller_hold(c, a, found), pods = service_pods(c, a, service, s->pods);
	struct val current = old ? controller_hold(c, a, old) : VAL_EMPTY;
	struct val next = endpoints_plan(a, service, pods, current, trigger_times_next(&s->times, a, key, service, pods), ENDPOINTS_CAPACITY);
	return val_exists(next) ? write_endpoints(c, key, next, !old, err) : 0;
}

/* ---- being told ---- */

static void pod_changed(struct controller *c, struct frozen *old, struct frozen *pod)
{
	const struct endpoints *s = c->state;
	service_pods_add_keys(c, s->services, old, pod);
}

/* May be left over from a Service that is gone: of the first list any, later only our own. Those that users make before their Service stay. */
static bool may_be_left_over(const struct endpoints *s, struct val object)
{
	return !informer_synced(s->endpoints) ||
	       str_eq(label_of(object, STR("endpoints.kubernetes.io/managed-by")), STR("endpoint-controller"));
}

/* One that is a lock for the election of a leader belongs to whoever made it. */
static void endpoints_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	if (!old && annotation_has(object->val, STR("control-plane.alpha.kubernetes.io/leader")))
		return;
	if (!object || (!old && may_be_left_over(c->state, object->val)))
		controller_key_self(c, old, object);
}

static void endpoints_stop(struct controller *c)
{
	struct endpoints *s = c->state;

	trigger_times_done(&s->times);
	free(s);
}

static int endpoints_start(struct controller *c, struct err *err)
{
	struct endpoints *s = mem_zalloc(sizeof *s);

	(void)err;
	c->state = s;
	c->sync = endpoints_sync;
	map_init(&s->times.by_service);
	s->services = controller_informer(c, TYPE(core_v1, Service));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	s->endpoints = controller_informer(c, TYPE(core_v1, Endpoints));
	informer_index(s->services, "namespace", informer_by_namespace);
	informer_index(s->pods, "namespace", informer_by_namespace);
	controller_watch(c, s->services, controller_key_self);
	controller_watch(c, s->pods, pod_changed);
	controller_watch(c, s->endpoints, endpoints_changed);
	return 0;
}

const struct controller_kind controller_endpoints = { .name = "endpoints-controller", .start = endpoints_start, .workers = 5, .stop = endpoints_stop,
						      .account = "endpoint-controller", .source = "endpoint-controller" };
