/* Endpoints that users write for Services without a selector, mirrored to EndpointSlices. A key is that of the Endpoints and of the Service. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/endpoint_slice_mirroring_plan.h"
#include "controllers/slice_writer.h"

struct mirrors {
	struct informer *services, *endpoints, *slices;
	struct slice_tracker tracker;
};

static void tell(struct controller *c, struct val endpoints, const struct mirror_plan *plan)
{
	if (plan->n_invalid)
		controller_event(c, endpoints, true, "InvalidIPAddress", "Skipped %zu invalid IP addresses when mirroring to EndpointSlices",
				 plan->n_invalid);
	if (plan->n_skipped > plan->n_invalid)
		controller_event(c, endpoints, true, "TooManyAddressesToMirror",
				 "A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %zu addresses were skipped", MIRROR_MAX,
				 plan->n_skipped);
}

static int mirror_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct mirrors *s = c->state;
	struct frozen *endpoints = informer_get(s->endpoints, key), *service = informer_get(s->services, key);
	struct mirror_plan plan = { 0 };
	int64_t wait_ms;

	if (!endpoints || !service || !mirror_wanted(endpoints->val) || val_has(service->val, spec, selector)) {
		slice_tracker_forget(&s->tracker, key);
		plan.gone = slices_of(c, a, s->slices, key, MIRROR_MANAGER);
	} else if (!slice_tracker_settled(&s->tracker, key, &wait_ms)) {
		controller_add_after(c, key, wait_ms);
		return 0;
	} else {
		struct val mirrored = controller_hold(c, a, endpoints);
		mirror_plan(a, mirrored, slices_of(c, a, s->slices, key, MIRROR_MANAGER), MIRROR_MAX, &plan);
		tell(c, mirrored, &plan);
	}
	return slices_write(c, &s->tracker, s->slices, key, plan.create, plan.update, plan.gone, "Endpoints", err);
}

static void own_slice_changed(struct controller *c, struct frozen *old, struct frozen *slice)
{
	struct mirrors *s = c->state;
	slice_changed(c, &s->tracker, MIRROR_MANAGER, old, slice);
}

static void mirror_stop(struct controller *c)
{
	struct mirrors *s = c->state;

	slice_tracker_done(&s->tracker);
	free(s);
}

static int mirror_start(struct controller *c, struct err *err)
{
	struct mirrors *s = mem_zalloc(sizeof *s);

	(void)err;
	c->state = s;
	c->sync = mirror_sync;
	map_init(&s->tracker.services);
	s->services = controller_informer(c, TYPE(core_v1, Service));
	s->endpoints = controller_informer(c, TYPE(core_v1, Endpoints));
	s->slices = controller_informer(c, TYPE(discovery_v1, EndpointSlice));
	informer_index(s->slices, SLICE_INDEX, slice_by_service);
	controller_watch(c, s->services, controller_key_self);
	controller_watch(c, s->endpoints, controller_key_self);
	controller_watch(c, s->slices, own_slice_changed);
	return 0;
}

const struct controller_kind controller_endpoint_slice_mirroring = {
	.name = "endpointslice-mirroring-controller", .start = mirror_start, .workers = 5, .retry_ms = 1000, .retry_max_ms = 100 * 1000,
	.stop = mirror_stop, .account = "endpointslicemirroring-controller", .source = "endpoint-slice-mirroring-controller",
};
