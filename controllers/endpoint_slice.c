/* EndpointSlices of Services with a selector. A key is a Service's. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/endpoint_slice_plan.h"
#include "controllers/service_pods.h"
#include "controllers/slice_writer.h"

enum { MAX_ENDPOINTS_PER_SLICE = 100 };

struct endpoint_slices {
	struct informer *services, *pods, *nodes, *slices;
	struct slice_tracker tracker;
	struct trigger_times times;
};

struct nodes {
	struct controller *c;
	struct arena *arena;
};

static struct val node_by_name(void *arg, str name)
{
	const struct nodes *n = arg;
	const struct endpoint_slices *s = n->c->state;
	struct frozen *node = informer_get(s->nodes, name);

	return node ? controller_hold(n->c, n->arena, node) : VAL_EMPTY;
}

static int carry_out(struct controller *c, str key, struct val service, const struct endpoint_slice_plan *plan, struct err *err)
{
	struct endpoint_slices *s = c->state;
	int r = slices_write(c, &s->tracker, s->slices, key, plan->create, plan->update, plan->gone, "Service", err);

	if (r < 0 && r != -ERR_CANCELED)
		controller_event(c, service, true, "FailedToUpdateEndpointSlices", "Error updating Endpoint Slices for Service " STR_FMT ": %s",
				 STR_ARG(key), err ? err->msg : "");
	if (r == 0 && plan->lost_pod.n)
		r = err_set(err, ERR_NOT_FOUND, "skipping Pod " STR_FMT " for Service " STR_FMT ": Node " STR_FMT " Not Found",
			    STR_ARG(plan->lost_pod), STR_ARG(key), STR_ARG(plan->lost_node));
	return r;
}

static int endpoint_slice_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct endpoint_slices *s = c->state;
	struct frozen *found = informer_get(s->services, key);
	struct nodes nodes = { c, a };
	struct endpoint_slice_plan plan;
	int64_t wait_ms;

	if (!found) {
		trigger_times_forget(&s->times, key);
		slice_tracker_forget(&s->tracker, key);
		return 0; /* the slices go with their owner */
	}
	if (!service_has_selector(found->val))
		return 0;
	if (!slice_tracker_settled(&s->tracker, key, &wait_ms)) {
		controller_add_after(c, key, wait_ms);
		return 0;
	}
	struct val service = controller_hold(c, a, found), pods = service_pods(c, a, service, s->pods);
	struct endpoint_slice_input in = { .service = service, .pods = pods, .slices = slices_of(c, a, s->slices, key, ENDPOINT_SLICE_MANAGER),
					   .node = node_by_name, .arg = &nodes, .max = MAX_ENDPOINTS_PER_SLICE,
					   .trigger = trigger_times_next(&s->times, a, key, service, pods) };
	endpoint_slice_plan(a, &in, &plan);
	return carry_out(c, key, service, &plan, err);
}

/* ---- being told ---- */

static void pod_changed(struct controller *c, struct frozen *old, struct frozen *pod)
{
	const struct endpoint_slices *s = c->state;
	service_pods_add_keys(c, s->services, old, pod);
}

static void own_slice_changed(struct controller *c, struct frozen *old, struct frozen *slice)
{
	struct endpoint_slices *s = c->state;
	slice_changed(c, &s->tracker, ENDPOINT_SLICE_MANAGER, old, slice);
}

static void endpoint_slice_stop(struct controller *c)
{
	struct endpoint_slices *s = c->state;

	slice_tracker_done(&s->tracker);
	trigger_times_done(&s->times);
	free(s);
}

static int endpoint_slice_start(struct controller *c, struct err *err)
{
	struct endpoint_slices *s = mem_zalloc(sizeof *s);

	(void)err;
	c->state = s;
	c->sync = endpoint_slice_sync;
	map_init(&s->tracker.services);
	map_init(&s->times.by_service);
	s->services = controller_informer(c, TYPE(core_v1, Service));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	s->nodes = controller_informer(c, TYPE(core_v1, Node));
	s->slices = controller_informer(c, TYPE(discovery_v1, EndpointSlice));
	informer_index(s->services, "namespace", informer_by_namespace);
	informer_index(s->pods, "namespace", informer_by_namespace);
	informer_index(s->slices, SLICE_INDEX, slice_by_service);
	controller_watch(c, s->services, controller_key_self);
	controller_watch(c, s->pods, pod_changed);
	controller_watch(c, s->slices, own_slice_changed);
	return 0;
}

const struct controller_kind controller_endpoint_slice = { .name = "endpointslice-controller", .start = endpoint_slice_start, .workers = 5, .retry_ms = 1000,
							   .stop = endpoint_slice_stop, .source = "endpoint-slice-controller" };
